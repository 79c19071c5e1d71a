/** A tracker on a sandbox of the ordering API, with a clock that tests advance. */
import { randomUUID } from 'node:crypto';
import type { FaultRule } from '../../sandbox/http/faults.ts';
import { createSandbox, type Sandbox, type SandboxApp, type SandboxOptions } from '../../sandbox/server.ts';
import type { RegionCode } from '../../sandbox/world/regions.ts';
import { createWorld, type SandboxAccount, type World } from '../../sandbox/world/world.ts';
import { type Account, registerAccount, type Status, toStatus } from '../../shared/accounts/accounts.ts';
import { createConnector } from '../../shared/accounts/connect.ts';
import { type EventSettingsUpdate, withEventDefaults } from '../../shared/accounts/event-settings.ts';
import { catalogue, type EventType } from '../../shared/events/catalogue.ts';
import type { JobEvent } from '../../shared/events/event.ts';
import { createEventLog, type EventLog } from '../../shared/log/log.ts';
import { syncOwnUser } from '../../shared/notifications/own-user.ts';
import { type AccountRef, indexPk, keys, snapshotPk } from '../../shared/storage/schema.ts';
import { createMemoryTable } from '../../shared/storage/sqlite-table.ts';
import type { Item, Table, Write } from '../../shared/storage/table.ts';
import { JobIndex } from '../../shared/tracking/job-index.ts';
import { pollAccount } from '../../shared/tracking/poll.ts';
import type { PollDeps } from '../../shared/tracking/poll-context.ts';
import type { PollReport } from '../../shared/tracking/poll-report.ts';
import { DEFAULT_TRACKING, type TrackingSettings } from '../../shared/tracking/schedule.ts';
import { type Snapshot, toSnapshot } from '../../shared/tracking/snapshot.ts';
import { wireTo } from './in-process-upstream.ts';
import { startSandbox } from './jobwire.ts';

/** Initial time of every rig. */
export const START = Date.parse('2026-03-02T08:00:00Z');

/** The sandbox, the tracker, and the operations of a test on them. */
export interface Rig<S extends SandboxApp = SandboxApp> {
  readonly world: World;
  readonly sandbox: S;
  readonly table: Table;
  readonly log: EventLog;
  readonly deps: PollDeps;
  readonly ref: AccountRef;
  /** The sandbox's account that the tracker follows. */
  readonly upstream: SandboxAccount;
  /** Epoch ms. */
  now(): number;
  /** Registers the account, unless this was done already. Can be repeated. */
  register(): Promise<void>;
  /** Advances the clock. */
  pass(seconds: number): void;
  /**
   * Returns the dependencies of another process that polls the account: its own tokens, and optionally its own access to table
   * and upstream.
   */
  depsOver(table: Table, fetch?: typeof globalThis.fetch): PollDeps;
  /** Polls once, one poll interval after the last poll. */
  poll(): Promise<PollReport>;
  /** The events since the last call, checked against the catalogue. */
  fresh(): Promise<JobEvent[]>;
  /** Polls this many times. Returns the types of the events, each with its job number if it has one. */
  pollTypes(times?: number): Promise<string[]>;
  status(): Promise<Status>;
  snapshot(jobNumber: number): Promise<Snapshot | undefined>;
  /** All snapshots, by job number. */
  snapshots(): Promise<Snapshot[]>;
  /** The stored index. */
  index(): Promise<JobIndex>;
  fault(rule: FaultRule): void;
  /** Changes the settings of configured events. */
  configure(events: EventSettingsUpdate): Promise<void>;
  /** Gives the tracker the credentials of this account. */
  actAs(account: SandboxAccount): void;
}

interface RigOptions {
  readonly table?: Table;
  readonly region?: RegionCode;
  readonly settings?: Partial<TrackingSettings>;
  readonly pollIntervalSeconds?: number;
  readonly events?: EventSettingsUpdate;
  readonly leavesListOnDispatch?: boolean;
  /** Time for which the tracker waits for a response, in real time. */
  readonly timeoutMs?: number;
  /** False: the test registers the account itself. */
  readonly registered?: false;
  /** Advances the sandbox's jobs automatically. Default: only the test changes them. Over HTTP only. */
  readonly scenario?: (world: World) => SandboxOptions['scenario'];
}

/** Creates a rig without sockets: the tracker calls the sandbox as a function. */
export function createRig(options: RigOptions = {}): Promise<Rig> {
  return assemble(options, async (world, region) => {
    const sandbox = createSandbox({ world });
    const address = `http://sandbox.example/${region}`;
    return { sandbox, baseUrl: `${address}/api`, authUrl: `${address}/auth`, fetch: wireTo(sandbox) };
  });
}

/** Creates a rig whose sandbox is reached over HTTP; it stops when the test ends. */
export function createHttpRig(options: RigOptions = {}): Promise<Rig<Sandbox>> {
  return assemble(options, async (world, region) => {
    const scenario = options.scenario?.(world);
    const { sandbox } = await startSandbox({ world, ...(scenario && { scenario }) });
    return { sandbox, baseUrl: sandbox.apiUrl(region), authUrl: sandbox.authUrl(region) };
  });
}

interface Service<S extends SandboxApp> {
  readonly sandbox: S;
  readonly baseUrl: string;
  readonly authUrl: string;
  readonly fetch?: typeof globalThis.fetch;
}

async function assemble<S extends SandboxApp>(
  options: RigOptions,
  serve: (world: World, region: RegionCode) => Promise<Service<S>>,
): Promise<Rig<S>> {
  let clock = START;
  const now = (): number => clock;
  const region = options.region ?? 'us';
  const world = createWorld({ now, leavesListOnDispatch: options.leavesListOnDispatch ?? false });
  const upstream = world.addAccount({ region, name: 'acme' });
  let actor = upstream;
  const { sandbox, baseUrl, authUrl, fetch: defaultFetch } = await serve(world, region);
  const table = options.table ?? createMemoryTable();
  const account: Account = {
    region,
    account: 'acme',
    secretRef: 'acme',
    pollIntervalSeconds: options.pollIntervalSeconds ?? 60,
    paused: false,
    ...(options.events && { events: withEventDefaults(options.events) }),
  };
  const depsOver = (over: Table, fetch = defaultFetch): PollDeps => ({
    table: over,
    log: createEventLog(over, { now, newId: randomUUID, schemaBaseUrl: 'https://jobwire.example' }),
    now,
    newId: randomUUID,
    settings: { ...DEFAULT_TRACKING, ...options.settings },
    syncApiUser: syncOwnUser,
    connect: createConnector({
      regions: { [region]: { baseUrl, authUrl, realm: region } },
      readSecret: async () => ({
        clientId: actor.clientId,
        clientSecret: actor.clientSecret,
        version: `${actor.clientId} ${actor.clientSecret}`,
      }),
      now,
      ...(fetch && { fetch }),
      // Pauses between retries take no real time.
      timing: {
        sleep: async () => {},
        random: () => 0,
        ...(options.timeoutMs === undefined ? {} : { timeoutMs: options.timeoutMs }),
      },
    }),
  });
  const deps = depsOver(table);
  const { log } = deps;
  const register = () => registerAccount(table, log, account, { now: clock, epoch: 'e1' });
  if (options.registered !== false) await register();
  let read = 0;

  const rig: Rig<S> = {
    world,
    sandbox,
    table,
    log,
    deps,
    depsOver,
    ref: account,
    upstream,
    now,
    register,
    pass(seconds) {
      clock += seconds * 1000;
    },
    async poll() {
      clock += account.pollIntervalSeconds * 1000;
      return pollAccount(deps, account, clock + 600_000);
    },
    async fresh() {
      const events: JobEvent[] = [];
      for (;;) {
        const page = await log.read(account, read, 500);
        if (page?.kind !== 'events' || page.events.length === 0) return events;
        for (const { json, sequence } of page.events) {
          const event = JSON.parse(json) as JobEvent;
          catalogue[event.type as EventType].data().parse(event.data);
          events.push(event);
          read = sequence;
        }
      }
    },
    async pollTypes(times = 1) {
      for (let n = 0; n < times; n += 1) await rig.poll();
      return (await rig.fresh()).map(({ type, subject }) => (subject ? `${type} ${subject.slice(5)}` : type));
    },
    async status() {
      const item = await table.get(keys.status(account));
      if (!item) throw new Error('The account has no status.');
      return toStatus(item);
    },
    async snapshot(jobNumber) {
      const item = await table.get(keys.snapshot(account, jobNumber));
      return item && toSnapshot(item);
    },
    async snapshots() {
      return (await table.query({ pk: snapshotPk(account) })).map(toSnapshot);
    },
    async index() {
      const shards = (await table.query({ pk: indexPk(account) })).filter(({ sk }) =>
        sk.startsWith('SHARD#'),
      );
      return JobIndex.decode(
        shards.map(({ sk, packed }) => ({ lowest: Number(sk.slice(6)), packed: packed as Uint8Array })),
      );
    },
    fault(rule) {
      sandbox.faults.add(rule);
    },
    async configure(events) {
      const changed = { ...account, events: withEventDefaults(events) };
      await registerAccount(table, log, changed, { now: clock, epoch: 'e1' });
    },
    actAs(other) {
      actor = other;
    },
  };
  return rig;
}

/** One call of a table. */
export interface TableCall {
  readonly call: 'get' | 'getMany' | 'query' | 'putMany' | 'write' | 'transact';
  /** The partitions of the call, up to the first `#`, such as `STATUS`. */
  readonly of: readonly string[];
}

/** A table that records its calls. `before` and `after` can delay them, or make them fail by throwing. */
export function watchedTable(
  inner: Table,
  hooks: {
    before?: (call: TableCall) => void | Promise<void>;
    after?: (call: TableCall) => void | Promise<void>;
  } = {},
): Table & { readonly calls: TableCall[] } {
  const calls: TableCall[] = [];
  async function watched<T>(
    call: TableCall['call'],
    pks: readonly string[],
    act: () => Promise<T>,
  ): Promise<T> {
    const noted = { call, of: [...new Set(pks.map((pk) => pk.replace(/#.*/, '')))] };
    calls.push(noted);
    await hooks.before?.(noted);
    const result = await act();
    await hooks.after?.(noted);
    return result;
  }
  const getPk = (write: Write): string =>
    ('put' in write
      ? write.put
      : 'update' in write
        ? write.update
        : 'delete' in write
          ? write.delete
          : write.check
    ).pk;
  return {
    calls,
    get: (key): Promise<Item | undefined> => watched('get', [key.pk], () => inner.get(key)),
    getMany: (wanted) =>
      watched(
        'getMany',
        wanted.map(({ pk }) => pk),
        () => inner.getMany(wanted),
      ),
    putMany: (items) =>
      watched(
        'putMany',
        items.map(({ pk }) => pk),
        () => inner.putMany(items),
      ),
    query: (query) => watched('query', [query.pk], () => inner.query(query)),
    write: (write) => watched('write', [getPk(write)], () => inner.write(write)),
    transact: (writes, token) => watched('transact', writes.map(getPk), () => inner.transact(writes, token)),
    units: () => inner.units(),
  };
}
