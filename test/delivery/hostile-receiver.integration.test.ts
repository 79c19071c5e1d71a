/**
 * Receivers with every kind of fault, a delivering process that is killed repeatedly, real sockets, a real database. One file:
 * it is one test, whose setup is used once for deliveries and once for replays.
 */
import { type ChildProcess, fork } from 'node:child_process';
import { randomBytes, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { setTimeout } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { afterEach, expect, test } from 'vitest';
import { createTables, historyTableName } from '../../local/dynamo-tables.ts';
import { registerAccount } from '../../shared/accounts/accounts.ts';
import { createDeliveryLog, type DeliveryEntry } from '../../shared/delivery/delivery-log.ts';
import type { DrainReport } from '../../shared/delivery/drain-deps.ts';
import { enableEndpoint } from '../../shared/delivery/endpoint-controls.ts';
import type { EndpointDeps } from '../../shared/delivery/endpoint-edits.ts';
import { createEndpoint } from '../../shared/delivery/endpoints.ts';
import { listParked } from '../../shared/delivery/parked-events.ts';
import { readReplay, startReplay } from '../../shared/delivery/replays.ts';
import { openLocalSigningSecrets } from '../../shared/delivery/signing-secrets.ts';
import { toSink } from '../../shared/delivery/sink.ts';
import { getLane } from '../../shared/delivery/window.ts';
import { createEventLog, type LoggedEvent } from '../../shared/log/log.ts';
import { createDynamoTable } from '../../shared/storage/dynamo-table.ts';
import { CELL_LOG, cursorPk, deadPk, historySchema, keys } from '../../shared/storage/schema.ts';
import { makeCertificate } from '../support/certificates.ts';
import { moved, newSecret, REGION } from '../support/delivery-world.ts';
import type { Said, Setup } from '../support/drain-process.ts';
import { startDynamo } from '../support/dynoxide.ts';
import {
  type Arrival,
  type HostileReceiver,
  startHostileReceiver,
  TROUBLES,
  type Trouble,
} from '../support/hostile-receiver.ts';
import { sized } from '../support/runs.ts';

/** Events of one cursor that may be delivered again after a crash. */
const WINDOW_EVENTS = 400;
const LANES = 16;
const RETRY_SECONDS = [0.05, 0.05, 0.1, 0.1, 0.1, 0.1, 0.1];
/** Not an address of the client, so that no outgoing connection takes the port of an unavailable receiver. */
const ADDRESS = '127.0.0.2';
const PATIENCE_MS = 150_000;

/** Accounts, their jobs, and their events in all. */
const ACCOUNTS = { acme: { jobs: 12, events: sized(44, 96) }, beta: { jobs: 5, events: sized(16, 60) } };
const MORE = { gamma: { jobs: 40, events: sized(180, 240) }, bulk: { jobs: 60, events: sized(520, 1_100) } };
/** The event that one endpoint never accepts, and those that it rejects twice. */
const NEVER = { account: 'acme', sequence: 7 };
const refusals = ({ account, sequence }: Pick<Arrival, 'account' | 'sequence'>): number => {
  if (account === NEVER.account && sequence === NEVER.sequence) return Number.POSITIVE_INFINITY;
  return account === 'acme' && sequence % 10 === 3 ? 2 : 0;
};

/** Behaviour of each endpoint, besides accepting events. */
const SCRIPTS: Readonly<Record<string, readonly Trouble[]>> = {
  fine: [],
  slow: ['late', 'silent', 'late', 'dripping'],
  resets: ['reset', 'reset in the answer', 'reset after the answer', 'reset'],
  errors: [500, 503, 502, 500],
  throttle: [429, 'busy', 429],
  moved: [301],
  locked: [401],
  picky: [],
  endless: ['endless', 'endless 500', 'dripping'],
  tls: ['bad certificate', 'bad certificate'],
  dies: ['dies', 'dies', 'dies'],
  gone: ['gone'],
};

/** When to kill the delivering process: after a number of requests, to one receiver or to all; before or after the answer. */
const EVERY_KILL: readonly {
  readonly at: number;
  readonly of?: string;
  readonly moment: 'before' | 'after';
}[] = [
  // Far more than a window into one log.
  { at: sized(500, 1_000), of: 'fine', moment: 'before' },
  { at: 110, moment: 'after' },
  { at: 60, moment: 'before' },
  { at: 150, moment: 'before' },
  { at: 90, moment: 'after' },
  { at: 130, moment: 'before' },
];
const KILLS = EVERY_KILL.slice(0, sized(1, EVERY_KILL.length));

const open: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of open.splice(0).reverse()) await close();
});

/** The same numbers for the same seed, from 0 (inclusive) to 1 (exclusive). */
function seeded(seed: number): () => number {
  let state = seed;
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
}

function shuffled<T>(values: readonly T[], random: () => number): T[] {
  return values
    .map((value) => ({ value, place: random() }))
    .sort((a, b) => a.place - b.place)
    .map(({ value }) => value);
}

/** Database, logs, endpoints and their receivers. */
async function createScene() {
  const random = seeded(20_260_302);
  const dynamo = await startDynamo();
  open.push(() => dynamo.stop());
  const client = dynamo.client();
  const tableName = 'hostile';
  await createTables(client, tableName);
  const table = createDynamoTable(client, { tableName });
  const history = createDynamoTable(client, {
    tableName: historyTableName(tableName),
    schema: historySchema,
  });
  const schemaBaseUrl = 'https://jobwire.example';
  const log = createEventLog(table, { now: Date.now, newId: randomUUID, schemaBaseUrl });
  for (const account of Object.keys({ ...ACCOUNTS, ...MORE })) {
    await registerAccount(
      table,
      log,
      { region: REGION, account, secretRef: account, pollIntervalSeconds: 60, paused: false },
      { now: Date.now(), epoch: 'e1' },
    );
  }
  const secretKey = randomBytes(32).toString('hex');
  const deliveries = createDeliveryLog(history, { newId: randomUUID });
  const deps: EndpointDeps = {
    ...{ table, log, deliveries, schemaBaseUrl, now: Date.now, newId: randomUUID },
    secrets: await openLocalSigningSecrets(table, Buffer.from(secretKey, 'hex')),
    allowPrivateNetworks: true,
    open: async () => {
      throw new Error('Only the delivering process delivers.');
    },
  };

  const news = new Set<() => void>();
  const heard = (): void => {
    for (const hear of news) hear();
  };
  /** Waits for a condition, which is checked after events, at most every 20 ms: it reads everything that arrived. */
  const until = async (what: () => string | undefined): Promise<void> => {
    const patience = AbortSignal.timeout(PATIENCE_MS);
    while (what() !== undefined) {
      await new Promise<void>((resolve) => {
        news.add(resolve);
        patience.addEventListener('abort', () => resolve());
      });
      news.clear();
      await setTimeout(20);
      if (patience.aborted) throw new Error(`Waited in vain: ${what()}`);
    }
  };

  const authority = makeCertificate('Authority of this test', { authority: true });
  const getCertificates = (id: string) => ({
    good: makeCertificate(`${id}.receiver.example`, { issuer: authority }),
    bad: makeCertificate(`${id}.receiver.example`),
  });
  const everything = shuffled([...TROUBLES, 'dies' as const, 401 as const, 422 as const], random);
  const receivers = new Map<string, HostileReceiver>();
  const watchers = new Set<(arrival: Arrival, moment: 'before' | 'after') => void>();
  let order = 0;
  for (const [id, script] of Object.entries({ ...SCRIPTS, all: everything })) {
    const secret = newSecret();
    const calmEvents = id === 'all' ? 9 : 7;
    const receiver = await startHostileReceiver({
      ...{ id, secret, script, address: ADDRESS },
      calm: () => 3 + Math.floor(calmEvents * random()),
      ...(id === 'picky' ? { refusals } : {}),
      ...(script.includes('bad certificate') ? { certificates: getCertificates(id) } : {}),
      nextOrder: () => {
        order += 1;
        return order;
      },
      onArrival(arrival, moment) {
        for (const watch of watchers) watch(arrival, moment);
        heard();
      },
    });
    open.push(() => receiver.stop());
    receivers.set(id, receiver);
    const named = id === 'all' ? [...Object.keys(ACCOUNTS), 'gamma'] : Object.keys(ACCOUNTS);
    const created = await createEndpoint(deps, REGION, {
      ...{ id, secret, url: receiver.url, start: 'beginning' },
      // Without accounts it follows all of them, and the cell's own log.
      ...(id === 'fine' ? {} : { accounts: named }),
    });
    expect(created).toMatchObject({ kind: 'created' });
  }
  const receiver = (id: string): HostileReceiver => {
    const found = receivers.get(id);
    if (!found) throw new Error(`There is no receiver ${id}.`);
    return found;
  };

  const setup: Omit<Setup, 'life'> = {
    ...{ dynamoEndpoint: dynamo.endpoint, tableName, region: REGION, secretKey, address: ADDRESS },
    authorityPem: authority.certPem,
    retrySeconds: RETRY_SECONDS,
    timeouts: { connectMs: 1000, totalMs: 1000 },
  };
  const reports: { readonly report: DrainReport; readonly at: number }[] = [];
  const faults: string[] = [];
  let lives = 0;
  /** Starts the delivering process. */
  function deliver() {
    lives += 1;
    const child: ChildProcess = fork(
      fileURLToPath(new URL('../support/drain-process.ts', import.meta.url)),
      [],
      {
        execArgv: [],
      },
    );
    let exited = false;
    let idle = false;
    const ended = once(child, 'exit').then(() => {
      exited = true;
      heard();
    });
    const kill = (): void => void child.kill('SIGKILL');
    open.push(async () => {
      kill();
      await ended;
    });
    child.on('message', (said: Said) => {
      if (said.kind === 'idle') idle = true;
      if (said.kind === 'fault') faults.push(said.problem);
      if (said.kind === 'drained') {
        reports.push(said);
        receiver(said.report.sink)
          .heard(said.report)
          .catch((cause: unknown) => faults.push(String(cause)));
      }
      heard();
    });
    child.send({ ...setup, life: lives } satisfies Setup);
    return {
      kill,
      ended,
      isRunning: () => !exited,
      /** Ends when nothing is due. */
      async finish() {
        child.send('finish');
        await until(() => (idle || exited ? undefined : 'the delivering process is not idle'));
        expect(exited, 'ended by itself').toBe(false);
        kill();
        await ended;
      },
    };
  }

  return {
    ...{ table, log, deliveries, deps, receivers, receiver, watchers, reports, faults, until, deliver },
    lives: () => lives,
    /** Appends events of an account's jobs, in no order of jobs. */
    async say(account: string, jobs: number, count: number) {
      for (let said = 0; said < count; ) {
        const some = Math.min(90, count - said);
        const events = Array.from({ length: some }, (_, at) =>
          moved(1 + Math.floor(jobs * random()), `s${said + at}`),
        );
        const appended = await log.append({ region: REGION, account }, events);
        expect(appended.kind).toBe('appended');
        said += some;
      }
    },
    /** The current content of a log. */
    async all(account: string): Promise<LoggedEvent[]> {
      const events: LoggedEvent[] = [];
      for (;;) {
        const page = await log.read({ region: REGION, account }, events.length, 500);
        if (page?.kind !== 'events' || page.events.length === 0) return events;
        events.push(...page.events);
      }
    },
    /** Everything that the delivery log has of an endpoint, oldest first. */
    async entries(sink: string): Promise<DeliveryEntry[]> {
      const entries: DeliveryEntry[] = [];
      let before: string | undefined;
      do {
        const page = await deliveries.bySink(REGION, sink, { before, limit: 1000 });
        entries.push(...page.entries);
        before = page.next;
      } while (before !== undefined);
      return entries.reverse();
    },
  };
}

const getAccounts = (endpoint: string): string[] => [
  ...Object.keys(ACCOUNTS),
  ...(endpoint === 'all' ? ['gamma'] : []),
  ...(endpoint === 'fine' ? [...Object.keys(MORE), CELL_LOG] : []),
];

test('for any receivers and kills: every event is delivered, in order per job, and failures are reported', {
  timeout: 1_800_000,
}, async () => {
  const began = performance.now();
  const scene = await createScene();
  const { receivers, receiver, table, until } = scene;

  // A disabled endpoint is enabled once the one that accepts everything has its event.
  const enabled = new Map<string, string>();
  const enabling: Promise<unknown>[] = [];
  scene.watchers.add((arrival, moment) => {
    if (moment === 'before' || arrival.type !== 'endpoint.disabled' || enabled.has(arrival.id)) return;
    const endpoint = String(arrival.data.endpoint);
    enabled.set(arrival.id, endpoint);
    receiver(endpoint).back();
    enabling.push(enableEndpoint(scene.deps, REGION, endpoint));
  });

  /** Kills the delivering process at a point, and waits for its end. */
  async function deliverUntil(kill: (typeof KILLS)[number]): Promise<void> {
    let seen = 0;
    let due = false;
    const child = scene.deliver();
    const watch = (arrival: Arrival, moment: 'before' | 'after'): void => {
      if (kill.of !== undefined && arrival.endpoint !== kill.of) return;
      if (moment === 'before') seen += 1;
      if (seen < kill.at || due || moment !== kill.moment) return;
      if (moment === 'after' && arrival.takenAt === undefined) return;
      due = true;
      child.kill();
    };
    scene.watchers.add(watch);
    await until(() => (child.isRunning() ? `${seen} of ${kill.at} requests until the kill` : undefined));
    scene.watchers.delete(watch);
    expect(due, 'the process ended by itself').toBe(true);
  }

  await scene.say('bulk', MORE.bulk.jobs, MORE.bulk.events);
  const share = (events: number, part: number): number =>
    Math.floor((events * (part + 1)) / (KILLS.length + 1)) - Math.floor((events * part) / (KILLS.length + 1));
  const sayPart = async (part: number): Promise<void> => {
    for (const [account, { jobs, events }] of Object.entries({ ...ACCOUNTS, gamma: MORE.gamma })) {
      await scene.say(account, jobs, share(events, part));
    }
  };
  for (const [part, kill] of KILLS.entries()) {
    await sayPart(part);
    await deliverUntil(kill);
  }
  const child = scene.deliver();
  await sayPart(KILLS.length);

  // Until everything is delivered that is not dead, and every receiver has had all its faults.
  const never = `${NEVER.account}.e1.${NEVER.sequence}`;
  const expected = new Map<string, string[]>();
  for (const endpoint of receivers.keys()) {
    const logs = await Promise.all(getAccounts(endpoint).map((account) => scene.all(account)));
    const ids = logs.flat().map(({ id }) => id);
    expected.set(endpoint, endpoint === 'picky' ? ids.filter((id) => id !== never) : ids);
  }
  const cell = (type: string, endpoint: string): Arrival | undefined =>
    receiver('fine').arrivals.find(
      (arrival) =>
        arrival.type === type && arrival.data.endpoint === endpoint && arrival.takenAt !== undefined,
    );
  await until(() => {
    if (!cell('endpoint.event_dead', 'picky')) return 'picky has no dead event';
    for (const one of ['gone', 'all']) if (!cell('endpoint.recovered', one)) return `${one} did not recover`;
    for (const [endpoint, ids] of expected) {
      const { arrivals, left } = receiver(endpoint);
      const taken = new Set(arrivals.filter(({ takenAt }) => takenAt !== undefined).map(({ id }) => id));
      const missing = ids.filter((id) => !taken.has(id));
      if (missing.length > 0) return `${endpoint} misses ${missing.length}: ${missing.slice(0, 5)}`;
      if (left() > 0) return `${endpoint} has ${left()} troubles left`;
    }
    return undefined;
  });
  await child.finish();
  await Promise.all(enabling);
  const delivered = performance.now();

  expect(scene.faults).toEqual([]);
  let events = 0;
  let requests = 0;
  let repeatsInLife = 0;
  let repeatsOverKills = 0;
  let mostPerKill = 0;
  let failures = 0;
  for (const { id: endpoint, arrivals, forgeries, cuts } of receivers.values()) {
    expect(forgeries, `${endpoint}: signed, and CloudEvents`).toEqual([]);
    expect(arrivals.filter(({ replay }) => replay)).toEqual([]);
    const entries = await scene.entries(endpoint);

    // Every event at least once; each first sent after its predecessor of the job was accepted or given up.
    const seen = new Map<string, Arrival[]>();
    for (const arrival of arrivals) seen.set(arrival.id, [...(seen.get(arrival.id) ?? []), arrival]);
    const logs = await Promise.all(getAccounts(endpoint).map((account) => scene.all(account)));
    const before = new Map<string, LoggedEvent>();
    let missing = 0;
    for (const event of logs.flat()) {
      const of = seen.get(event.id) ?? [];
      const taken = of.filter(({ takenAt }) => takenAt !== undefined);
      const isDead = endpoint === 'picky' && event.id === never;
      expect(taken.length > 0, `${endpoint} took ${event.id}`).toBe(!isDead);
      const lane = `${event.account}/${getLane(event)}`;
      const previous = before.get(lane);
      before.set(lane, event);
      const first = of[0]?.order ?? 0;
      const previously = previous && (seen.get(previous.id) ?? []);
      const through =
        endpoint === 'picky' && previous?.id === never
          ? previously?.[RETRY_SECONDS.length]?.order
          : previously?.find(({ takenAt }) => takenAt !== undefined)?.takenAt;
      if (previous) expect(through, `${endpoint}: ${previous.id} before ${event.id}`).toBeLessThan(first);
      if (!isDead && !entries.some((one) => one.eventId === event.id && one.outcome === 'delivered'))
        missing += 1;
      events += 1;
    }
    requests += arrivals.length;
    expect(missing, `${endpoint}: done with, and not in the delivery log`).toBe(0);

    // Accepted twice only if the sender cannot know: after a kill, or a lost answer.
    const lateAnswers = entries.filter(({ reason }) => reason?.includes('in time')).length;
    const lost = arrivals.filter((arrival) => arrival.lost).length + lateAnswers + cuts * LANES;
    let inLife = 0;
    const overKills = new Map<string, number>();
    for (const of of seen.values()) {
      const taken = of.filter(({ takenAt }) => takenAt !== undefined);
      for (const [at, arrival] of taken.entries()) {
        const previous = taken[at - 1];
        if (!previous) continue;
        if (previous.life === arrival.life) inLife += 1;
        else {
          const kill = `${arrival.account} ${arrival.life}`;
          overKills.set(kill, (overKills.get(kill) ?? 0) + 1);
        }
      }
    }
    expect(inLife, `${endpoint}: repeated without a kill`).toBeLessThanOrEqual(lost);
    for (const [kill, repeats] of overKills) {
      expect(repeats, `${endpoint}: repeated after a kill, ${kill}`).toBeLessThanOrEqual(WINDOW_EVENTS);
      mostPerKill = Math.max(mostPerKill, repeats);
      repeatsOverKills += repeats;
    }
    repeatsInLife += inLife;

    // Failures are in the delivery log with messages; nothing arrived while the endpoint waited.
    const failed = entries.filter(({ outcome }) => outcome !== 'delivered');
    failures += failed.length;
    expect(failed.filter(({ reason }) => !/^[A-Z].+\.$/.test(reason ?? ''))).toEqual([]);
    for (const { report, at } of scene.reports) {
      if (report.sink !== endpoint || report.outcome !== 'waiting') continue;
      const early = entries.filter((entry) => entry.at > at && entry.at < (report.waitUntil ?? 0));
      expect(early, `${endpoint} waits until ${report.waitUntil}`).toEqual([]);
    }

    // No work is left.
    const cursors = await table.query({ pk: cursorPk(REGION, endpoint) });
    expect(cursors.map(({ sk }) => sk).sort()).toEqual(getAccounts(endpoint).sort());
    for (const cursor of cursors) {
      const head = await scene.log.head({ region: REGION, account: cursor.sk });
      expect(cursor, `${endpoint} ${cursor.sk}`).toMatchObject({ position: head?.sequence });
      expect([cursor.duePk, cursor.dueSk, cursor.ahead]).toEqual([undefined, undefined, undefined]);
    }
    expect(await listParked(table, REGION, endpoint)).toEqual([]);
    const item = await table.get(keys.sink(REGION, endpoint));
    if (!item) throw new Error('There is no sink.');
    expect(toSink(item).health, endpoint).toMatchObject({
      ...{ failures: 0, waitUntil: 0, problem: null, disabledAt: null, announcedAt: null, lost: 0 },
    });
    expect([item.leaseUntil, item.parking], endpoint).toEqual([undefined, undefined]);
    const dead = await table.query({ pk: deadPk(REGION, endpoint) });
    expect(dead.map(({ eventId }) => eventId)).toEqual(endpoint === 'picky' ? [never] : []);
  }

  // Each failure has its message in the log.
  const words: readonly [endpoint: string, RegExp][] = [
    ['slow', /^The endpoint did not respond in time\.$/],
    ['slow', /^The endpoint did not complete its response in time\.$/],
    ['resets', /^The endpoint closed the connection before it responded \(ECONNRESET\)\.$/],
    ['resets', /^The endpoint closed the connection before its response was complete \(ECONNRESET\)\.$/],
    ['errors', /^The endpoint responded with status 500\.$/],
    ['errors', /^The endpoint responded with status 503\.$/],
    ['throttle', /^The endpoint responded with status 429\.$/],
    ['moved', /^The endpoint responded with a redirect \(status 301\), which is not followed\.$/],
    ['locked', /^The endpoint responded with status 401\.$/],
    ['picky', /^The endpoint responded with status 422\.$/],
    ['endless', /^The endpoint responded with status 500\.$/],
    ['tls', /^The endpoint's certificate is not valid \(\w+\)\.$/],
    ['dies', /^The endpoint refused the connection \(ECONNREFUSED\)\.$/],
    ['gone', /^The endpoint responded with status 410\.$/],
  ];
  for (const [endpoint, pattern] of words) {
    const reasons = (await scene.entries(endpoint)).map(({ reason = '' }) => reason);
    expect(
      reasons.some((reason) => pattern.test(reason)),
      `${endpoint}: ${pattern}`,
    ).toBe(true);
  }
  const asked = scene.reports.filter(
    ({ report, at }) => report.sink === 'throttle' && (report.waitUntil ?? 0) > at + 300,
  );
  expect(asked.length, 'a Retry-After of a second').toBeGreaterThan(0);

  // Endpoint events of the cell: each once.
  const said = (await scene.all(CELL_LOG)).map(({ json }) => JSON.parse(json));
  const sayings = said.map(({ type, data }) => `${type} ${data.endpoint}`).sort();
  expect(sayings).toEqual([
    'endpoint.disabled all',
    'endpoint.disabled gone',
    'endpoint.event_dead picky',
    'endpoint.recovered all',
    'endpoint.recovered gone',
  ]);
  expect(said.find(({ type }) => type === 'endpoint.event_dead')?.data).toMatchObject({
    ...{ account: NEVER.account, sequence: NEVER.sequence, event: never },
    attempts: RETRY_SECONDS.length + 1,
    reason: 'The endpoint responded with status 422.',
  });

  console.info(
    `${events} events for ${receivers.size} endpoints, ${requests} requests, ${failures} of them failed, ` +
      `${KILLS.length} kills; taken again: ${repeatsInLife} after lost answers, ${repeatsOverKills} after kills ` +
      `(at most ${mostPerKill} of a cursor per kill); ` +
      `${[...receivers.values()].flatMap(({ had }) => had).length} troubles; ${Math.round(delivered - began)} ms`,
  );

  // Replays for two of them, with one more kill: the same ids, marked as a replay, and nothing else.
  const before = new Map([...receivers].map(([id, { arrivals }]) => [id, arrivals.length]));
  const cursorsBefore = await table.query({ pk: cursorPk(REGION, 'all') });
  for (const endpoint of ['all', 'picky']) {
    const input = { id: 'again', from: 'beginning' };
    expect(await startReplay(scene.deps, REGION, endpoint, input)).toMatchObject({ kind: 'started' });
  }
  await deliverUntil({ at: 150, of: 'all', moment: 'before' });
  const last = scene.deliver();
  const getReplays = (endpoint: string): Arrival[] =>
    receiver(endpoint)
      .arrivals.slice(before.get(endpoint))
      .filter(({ replay }) => replay);
  const wanted = new Map<string, LoggedEvent[]>();
  for (const endpoint of ['all', 'picky']) {
    const logs = await Promise.all(getAccounts(endpoint).map((account) => scene.all(account)));
    wanted.set(endpoint, logs.flat());
  }
  await until(() => {
    for (const [endpoint, all] of wanted) {
      const again = new Set(getReplays(endpoint).map(({ id }) => id));
      const missing = all.filter(({ id }) => !again.has(id));
      if (missing.length > 0) return `${endpoint} misses ${missing.length} again, ${missing[0]?.id}`;
    }
    return undefined;
  });
  await last.finish();
  let repeatedReplays = 0;
  for (const { id, arrivals, forgeries } of receivers.values()) {
    const again = getReplays(id);
    expect(arrivals.length - (before.get(id) ?? 0), `${id} got replays only`).toBe(again.length);
    expect(forgeries).toEqual([]);
    const all = wanted.get(id) ?? [];
    const first = again.filter((one, at) => again.findIndex((other) => other.id === one.id) === at);
    expect(first.map((one) => one.id).sort()).toEqual(all.map((event) => event.id).sort());
    expect(again.length - first.length).toBeLessThanOrEqual(WINDOW_EVENTS * getAccounts(id).length);
    repeatedReplays += again.length - first.length;
    const reached = new Map<string, number>();
    for (const { lane, sequence } of first) {
      expect(sequence, `${id}: ${lane} in order`).toBeGreaterThan(reached.get(lane) ?? 0);
      reached.set(lane, sequence);
    }
    if (all.length === 0) continue;
    expect(await readReplay(scene.deps, REGION, id, 'again')).toMatchObject({
      ...{ state: 'done', total: all.length, done: all.length, delivered: all.length, failed: 0, skipped: 0 },
    });
  }
  const cursorsAfter = await table.query({ pk: cursorPk(REGION, 'all') });
  expect(cursorsAfter.filter(({ sk }) => !sk.includes('#'))).toEqual(cursorsBefore);
  expect(scene.faults).toEqual([]);

  console.info(
    `replayed ${[...wanted.values()].flat().length} events, ${repeatedReplays} of them twice after a kill; ` +
      `${Math.round(performance.now() - began)} ms in all`,
  );
});
