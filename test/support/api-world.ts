/**
 * An API on a table with data of every kind, for tests of all routes: accounts of two regions with polled jobs, endpoints with
 * deliveries, parked and dead events and replays, an account that is moved to another cell and one that is moved from another
 * cell, keys of every role, a wall display that waits for its key. The changes of a request can be undone, so that the next
 * request finds the same world.
 */

import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll } from 'vitest';
import type { RegionCode } from '../../sandbox/world/regions.ts';
import { createAccount } from '../../shared/accounts/managed-accounts.ts';
import { createAlertRule } from '../../shared/alerts/rules.ts';
import { beginMove, exportAccount } from '../../shared/api/account-move.ts';
import { type AnsweredRequest, type ApiDeps, createApi } from '../../shared/api/app.ts';
import type { Role } from '../../shared/api/key-input.ts';
import { createKey, OPERATOR, revokeKey } from '../../shared/api/keys.ts';
import { startPairing } from '../../shared/api/pairing.ts';
import type { SignIn } from '../../shared/api/sign-in.ts';
import { createDeliveryLog } from '../../shared/delivery/delivery-log.ts';
import { drainSink } from '../../shared/delivery/drain.ts';
import { pingEndpoint } from '../../shared/delivery/endpoint-controls.ts';
import { createEndpoint } from '../../shared/delivery/endpoints.ts';
import { createConnectionPool } from '../../shared/delivery/outbound.ts';
import { listReplays, startReplay } from '../../shared/delivery/replays.ts';
import { createSigningReader } from '../../shared/delivery/signing-secrets.ts';
import { registerSink } from '../../shared/delivery/sink.ts';
import { wakeSinks } from '../../shared/delivery/wakes.ts';
import { createWebhookSink } from '../../shared/delivery/webhook.ts';
import { createForwarder, startFeed } from '../../shared/log/feed-forwarding.ts';
import { createEventLog } from '../../shared/log/log.ts';
import { type AccountRef, cellLog, historySchema, keys } from '../../shared/storage/schema.ts';
import { createMemoryTable } from '../../shared/storage/sqlite-table.ts';
import { getKey, type Item, type Key, type Table } from '../../shared/storage/table.ts';
import { pollAccount } from '../../shared/tracking/poll.ts';
import { apiParts } from './api.ts';
import { moved, startReceiver } from './delivery-world.ts';
import { wireTo } from './in-process-upstream.ts';
import type { End } from './jobwire.ts';
import { type Notifying, notifying } from './notification-samples.ts';
import { createRig } from './tracker.ts';

/** Secret text that no response and no log may contain. Secrets of the world contain it. */
export const CANARY = 'c4n4ry';
/** The configured key. */
export const BOOTSTRAP = `${CANARY}-bootstrap-key`;
/** The served regions. */
export const REGIONS = ['us', 'nz'] as const;
/** The account of most keys; another account of the same region; an account of the other region. */
export const [OWN, FOREIGN, FAR] = ['acme', 'other', 'kiwi'] as const;
/** An account that is being moved to another cell. Only keys for all accounts can access it. */
export const MOVING = 'moving';
/** An item of the attention queue with notes of users. */
export const NOTED = `us~${OWN}~account~${OWN}`;
const OTHER_CELL = 'https://large.jobwire.example';

/** Returns the `{id}` of a path whose list is not empty. */
export function getListId(path: string): string {
  if (path.startsWith('/v1/attention')) return NOTED;
  if (path.startsWith('/v1/regions')) return 'us';
  return path.startsWith('/v1/endpoints') ? 'own' : OWN;
}

/** The keys of the world: of each role for all accounts, for `OWN`, and for `FOREIGN`; and invalid keys. */
export const SCOPES = { all: null, own: [OWN], foreign: [FOREIGN] } as const;
export type Scope = keyof typeof SCOPES;

/** An API and its data. */
export interface ApiWorld {
  readonly app: ReturnType<typeof createApi>;
  readonly table: Table;
  now(): number;
  /** By role and scope: the key and its id. */
  readonly keys: Readonly<Record<`${Role} ${Scope}`, { readonly id: string; readonly secret: string }>>;
  readonly expired: string;
  readonly revoked: string;
  /** Existing ids, by the first part of the path: those of `OWN`, and those that only keys of other accounts can access. */
  readonly ids: {
    readonly jobs: readonly number[];
    readonly events: readonly string[];
    readonly foreignEvent: string;
    /** An event in the region's own log. */
    readonly cellEvent: string;
    readonly replays: Readonly<Record<string, readonly string[]>>;
    /** Messages to customers, by account. */
    readonly notifying: Readonly<Record<string, Notifying>>;
    /** A pairing of a wall display whose code is not confirmed. */
    readonly pairing: { readonly code: string; readonly deviceToken: string };
  };
  /** The data of an account of another cell, as one page. */
  readonly exported: string;
  /** URL of the receiver of webhooks. */
  readonly receiverUrl: string;
  /** The credentials of an account of the ordering API. */
  readonly credentials: { readonly clientId: string; readonly clientSecret: string };
  /** Errors and log lines since the last read. */
  readonly faults: unknown[];
  readonly logged: unknown[];
  /** Reverts all changes since the world was created. */
  undo(): Promise<void>;
}

/** Tables of a world, and deviations of its API. */
export interface WorldOptions {
  readonly table: Table;
  readonly history: Table;
  readonly api?: Partial<ApiDeps>;
  /** Registers what stops the receiver. Default: the end of the test. */
  readonly end?: End;
}

/**
 * Creates one world for all tests of a file or of a `describe`. The writes of a test to the state table are undone after it.
 * Creating a world takes longer than most tests.
 */
export function sharedWorld(): { readonly world: ApiWorld } {
  const stops: Parameters<End>[0][] = [];
  let world: ApiWorld | undefined;
  beforeAll(async () => {
    const tables = { table: createMemoryTable(), history: createMemoryTable(historySchema) };
    world = await createApiWorld({ ...tables, end: (stop) => stops.push(stop) });
  });
  afterEach(async () => {
    await world?.undo();
    world?.faults.splice(0);
    world?.logged.splice(0);
  });
  afterAll(async () => {
    for (const stop of stops) await stop();
  });
  return {
    get world() {
      if (!world) throw new Error('There is no world before the first test.');
      return world;
    },
  };
}

/** An issuer that accepts any code. */
const tokens = { idToken: 'an-id-token', expiresInSeconds: 300, refreshToken: 'a-refresh-token' };
const signIn: SignIn = {
  describe: async () => ({
    authorizationEndpoint: 'https://id.example/authorize',
    endSessionEndpoint: null,
    clientId: 'jobwire',
    scope: 'openid',
  }),
  check: async () => 1,
  exchange: async () => tokens,
  renew: async () => tokens,
  revoke: async () => {},
  verify: async () => undefined,
  isKnown: () => false,
};

/** Creates a world. */
export async function createApiWorld({
  table: inner,
  history,
  api = {},
  end,
}: WorldOptions): Promise<ApiWorld> {
  const undoable = createUndoable(inner);
  const { table } = undoable;
  const rig = await createRig({ table, region: 'us' satisfies RegionCode, registered: false });
  // The clock is stopped while the world is created, and then advances with the real one.
  let ahead = 0;
  let begunAt: number | undefined;
  const now = () => rig.now() + ahead + (begunAt === undefined ? 0 : Date.now() - begunAt);
  const receiver = await startReceiver(
    ({ body }) => ({
      status: /"jobNumber":(1|2),/.test(body) ? 422 : 204,
    }),
    end,
  );
  const { clientId, clientSecret } = rig.upstream;
  const credentials = { clientId, clientSecret };
  const parts = apiParts(table, BOOTSTRAP, now, REGIONS);
  const deliveries = createDeliveryLog(history, { newId: randomUUID });
  const log = createEventLog(table, { now, newId: randomUUID, schemaBaseUrl: 'http://jobwire.test' });
  const signing = createSigningReader(parts.manage.endpoints.secrets, now, 0);
  const connections = createConnectionPool({ allowPrivateNetworks: true });
  const manage = {
    ...parts.manage,
    accounts: {
      ...parts.manage.accounts,
      log,
      // Requests go only to the sandbox.
      fetch: wireTo(rig.sandbox),
      services: Object.fromEntries(
        REGIONS.map((region) => [
          region,
          {
            baseUrl: `http://sandbox.example/${region}/api`,
            authUrl: `http://sandbox.example/${region}/auth`,
            realm: region,
          },
        ]),
      ),
    },
    endpoints: {
      ...parts.manage.endpoints,
      log,
      deliveries,
      // All requests go to the receiver, whatever their URL.
      open: async ({ region, id }: { region: string; id: string }) =>
        createWebhookSink({
          url: receiver.url,
          ...(await signing(region, id)),
          now,
          connections: connections.of(`${region}/${id}`, 4),
        }),
    },
  };

  // Accounts with polled jobs.
  for (const region of REGIONS) await startFeed(table, region, { epoch: 'f1' });
  for (const [region, id] of [
    ['us', OWN],
    ['us', FOREIGN],
    ['nz', FAR],
  ] as const) {
    const made = await createAccount(manage.accounts, { region, id, credentials });
    if (made.kind !== 'created') throw new Error(made.reason);
  }
  const numbers = Array.from({ length: 6 }, (_, at) =>
    rig.upstream.createJob({
      status: 'Awaiting artwork',
      orderNumber: `PO-${at % 2}`,
      orderGroup: `G${at % 3}`,
      description: 'Cards \u{1f600} "quoted" <b>\\',
    }),
  );
  const own = { region: 'us', account: OWN };
  const foreign = { region: 'us', account: FOREIGN };
  for (let poll = 0; poll < 3; poll += 1) {
    rig.pass(120);
    for (const ref of [own, foreign]) {
      await pollAccount(rig.deps, ref, rig.now() + 600_000);
    }
    rig.upstream.edit(numbers[poll] ?? 0, { status: 'Printing' });
  }

  // Endpoints with delivered, parked and dead events.
  const endpoints: object[] = [
    { id: 'own', accounts: [OWN] },
    { id: 'foreign', accounts: [FOREIGN] },
    { id: 'both', accounts: [OWN, FOREIGN] },
    { id: 'everything' },
  ];
  for (const endpoint of endpoints) {
    const made = await createEndpoint(manage.endpoints, 'us', {
      url: receiver.url,
      headers: { 'x-tenant': `${CANARY}-header` },
      secret: SIGNING_SECRET,
      ...endpoint,
    });
    if (made.kind !== 'created') throw new Error(made.reason);
  }
  await registerSink(
    table,
    log,
    {
      ...{
        region: 'us',
        id: 'sns',
        kind: 'sns',
        target: 'arn:aws:sns:us-east-1:1:x',
        accounts: [],
        types: [],
      },
      paused: false,
    },
    [own],
  );
  const say = async (ref: AccountRef, jobs: readonly number[]) => {
    const events = jobs.map((job, at) => ({ ...moved(job, `s${at}`), time: now() }));
    const appended = await log.append(ref, events);
    if (appended.kind !== 'appended') throw new Error('rejected');
    await wakeSinks(table, ref, appended.head.sequence, now());
  };
  const drainAll = async () => {
    for (const id of ['own', 'foreign', 'both', 'everything']) {
      const { open } = manage.endpoints;
      const deps = { table, log, now, newId: randomUUID, deliveries, random: () => 0.5, retrySeconds: [5] };
      await drainSink({ ...deps, open }, 'us', id, now() + 60_000);
    }
  };
  for (const ref of [own, foreign, { region: 'nz', account: FAR }]) await say(ref, [1, 1, 3]);
  for (let hours = 0; hours < 9; hours += 1) {
    await drainAll();
    ahead += 3_600_000;
  }
  for (const ref of [own, foreign]) await say(ref, [2, 2, 4]);
  await drainAll();
  await log.append(cellLog('us'), [
    {
      type: 'endpoint.recovered',
      time: now(),
      data: { endpoint: 'own', disabledAt: new Date(now()).toISOString() },
    },
  ]);
  const forwarder = createForwarder(table);
  for (const ref of [own, foreign, { region: 'nz', account: FAR }, cellLog('us')])
    await forwarder.forward(ref);
  await pingEndpoint(manage.endpoints, 'us', 'own');
  for (const id of ['own', 'everything', 'sns']) {
    await startReplay(manage.endpoints, 'us', id, { from: 'beginning' });
    ahead += 1000;
  }
  await startReplay(manage.endpoints, 'us', 'everything', { from: 'beginning', accounts: [OWN] });

  for (const [id, accounts] of Object.entries({ own: [OWN], foreign: [FOREIGN], everything: undefined })) {
    const target = { kind: 'webhook', url: receiver.url };
    const rule = { id, accounts, name: id, condition: 'dead_events', threshold: 0, target };
    const made = await createAlertRule(parts.alerts.rules, 'us', rule, randomUUID);
    if (made.kind !== 'created') throw new Error(made.reason);
  }

  // Keys.
  const key = async (role: Role, accounts: readonly string[] | null, more: object = {}) => {
    const input = { name: `${role} key`, role, ...(accounts ? { accounts } : {}), ...more };
    const made = await createKey({ table, now }, input, OPERATOR);
    if (made.kind !== 'created') throw new Error(made.reason);
    return { id: made.key.id, secret: made.secret };
  };
  const all: [string, { id: string; secret: string }][] = [];
  for (const role of ['read', 'operate', 'admin'] as const) {
    for (const scope of ['all', 'own', 'foreign'] as const) {
      all.push([`${role} ${scope}`, await key(role, SCOPES[scope])]);
    }
  }
  const revoked = await key('admin', null);
  await revokeKey({ table }, revoked.id, OPERATOR);
  const expired = await key('admin', null, { expiresAt: new Date(now() + 1000).toISOString() });
  ahead += 2000;

  const page = await log.read(own, 0, 500);
  if (page?.kind !== 'events') throw new Error('no events');
  const readFirst = async (ref: AccountRef) => {
    const first = await log.read(ref, 0, 1);
    return first?.kind === 'events' ? (first.events[0]?.id ?? '') : '';
  };
  const replays: Record<string, string[]> = {};
  for (const id of ['own', 'everything', 'sns']) {
    replays[id] = (await listReplays({ table }, 'us', id)).map((replay) => replay.id);
  }
  const told: Record<string, Notifying> = {};
  for (const ref of [own, foreign, { region: 'nz', account: FAR }]) {
    const deps = { table, history, log, now, newId: randomUUID };
    told[ref.account] = await notifying(deps, ref, 1);
  }
  const leaving = await createAccount(manage.accounts, { region: 'us', id: MOVING, credentials });
  if (leaving.kind !== 'created') throw new Error(leaving.reason);
  const begun = await beginMove(manage.accounts, { region: 'us', account: MOVING }, OTHER_CELL);
  if (begun.kind !== 'begun' || begun.waitingFor !== null) throw new Error('The move did not begin.');
  const exported = await exportFromOtherCell(now, credentials);
  const faults: unknown[] = [];
  const logged: unknown[] = [];
  const app = createApi({
    ...{ table, log, regions: REGIONS, ...parts, deliveries, manage, now },
    notifications: { ...parts.notifications, history },
    signIn,
    onError: (cause: unknown, request: AnsweredRequest) => faults.push({ cause, request }),
    onAnswer: (request: AnsweredRequest, answer: object) => logged.push({ request, answer }),
    pace: { recheckMs: 5, heartbeatMs: 20, streamMs: 10, retryMs: 100, waitMs: 5 },
    isDeclared: () => false,
    ...api,
  });
  await undoable.settle();
  // A quarantine that a request can confirm.
  await table.write({
    update: keys.status(own),
    set: { state: 'quarantined', quarantinedAt: now(), suspected: 5 },
  });
  for (const note of ['The first note.', 'The second note.']) {
    const { status } = await app.request(`/v1/attention/${NOTED}/note`, {
      method: 'POST',
      headers: { authorization: `Bearer ${BOOTSTRAP}`, 'content-type': 'application/json' },
      body: JSON.stringify({ note }),
    });
    if (status !== 200) throw new Error(`A note is answered with ${status}.`);
  }
  logged.splice(0);
  const pairing = await startPairing({ table, now });
  if (pairing.kind !== 'started') throw new Error(pairing.kind);
  begunAt = Date.now();
  undoable.begin();
  return {
    ...{ app, table, now, keys: Object.fromEntries(all) as ApiWorld['keys'], credentials, faults, logged },
    ...{ expired: expired.secret, revoked: revoked.secret, receiverUrl: receiver.url },
    ids: {
      jobs: numbers,
      events: page.events.map(({ id }) => id),
      foreignEvent: await readFirst(foreign),
      cellEvent: await readFirst(cellLog('us')),
      replays,
      notifying: told,
      pairing: { code: pairing.code, deviceToken: pairing.deviceToken },
    },
    exported,
    undo: () => undoable.undo(),
  };
}

/** Returns the data of an account that another cell of the region moves to this cell. */
async function exportFromOtherCell(now: () => number, credentials: ApiWorld['credentials']): Promise<string> {
  const { accounts } = apiParts(createMemoryTable(), BOOTSTRAP, now, REGIONS).manage;
  const made = await createAccount(accounts, { region: 'us', id: 'arriving', credentials });
  if (made.kind !== 'created') throw new Error(made.reason);
  const ref = { region: 'us', account: 'arriving' };
  await beginMove(accounts, ref, 'http://jobwire.test');
  const page = await exportAccount(accounts, ref);
  if (page.kind !== 'page' || page.next !== null) throw new Error('The data is not one page.');
  return page.data;
}

/** A table that records items before they are changed. */
function createUndoable(inner: Table) {
  const before = new Map<string, { readonly key: Key; readonly item: Item | undefined }>();
  let recording = false;
  const underWay = new Set<Promise<unknown>>();

  async function noting<T>(wanted: readonly Key[], act: () => Promise<T>): Promise<T> {
    const running = (async () => {
      if (recording) {
        for (const { pk, sk } of wanted) {
          const name = JSON.stringify([pk, sk]);
          if (!before.has(name)) before.set(name, { key: { pk, sk }, item: await inner.get({ pk, sk }) });
        }
      }
      return act();
    })();
    underWay.add(running);
    try {
      return await running;
    } finally {
      underWay.delete(running);
    }
  }
  const settle = async () => {
    while (underWay.size > 0) await Promise.allSettled(underWay);
  };
  const table: Table = {
    ...inner,
    putMany: (items) => noting(items, () => inner.putMany(items)),
    write: (write) => noting([getKey(write)], () => inner.write(write)),
    transact: (writes, token) => noting(writes.map(getKey), () => inner.transact(writes, token)),
  };
  return {
    table,
    settle,
    begin: () => {
      recording = true;
    },
    async undo(): Promise<void> {
      await settle();
      const puts = [...before.values()].flatMap(({ item }) => (item ? [item] : []));
      const gone = [...before.values()].filter(({ item }) => !item);
      before.clear();
      if (puts.length > 0) await inner.putMany(puts);
      for (const { key } of gone) await inner.write({ delete: key });
    },
  };
}

/** The signing secret of all endpoints of the world. It contains `c4n4ry`. */
export const SIGNING_SECRET = `whsec_${Buffer.from(`${CANARY}-signing-secret-of-32-bytes`).toString('base64')}`;
