/**
 * A cell: the accounts of one region together, when the ordering API fails for all of them (rule 12).
 * One file: its tests share the cell and its clock.
 */
import { randomUUID } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { createTickHandler } from '../../functions/handlers/tick.ts';
import type { FaultRule } from '../../sandbox/http/faults.ts';
import { createSandbox } from '../../sandbox/server.ts';
import { createWorld } from '../../sandbox/world/world.ts';
import { registerAccount, toStatus } from '../../shared/accounts/accounts.ts';
import { createConnector } from '../../shared/accounts/connect.ts';
import { createApi } from '../../shared/api/app.ts';
import { ConfigError, parseConfig } from '../../shared/config.ts';
import { drainSink } from '../../shared/delivery/drain.ts';
import { registerSink } from '../../shared/delivery/sink.ts';
import { wakeSinks } from '../../shared/delivery/wakes.ts';
import { catalogue, type EventType } from '../../shared/events/catalogue.ts';
import type { JobEvent } from '../../shared/events/event.ts';
import { forwardLogs } from '../../shared/log/feed-forwarding.ts';
import { createEventLog } from '../../shared/log/log.ts';
import { syncOwnUser } from '../../shared/notifications/own-user.ts';
import { OrderingError, type OrderingErrorKind } from '../../shared/ordering/errors.ts';
import { type AccountRef, cellLog, keys } from '../../shared/storage/schema.ts';
import { createMemoryTable } from '../../shared/storage/sqlite-table.ts';
import { type Table, TableError } from '../../shared/storage/table.ts';
import { transition } from '../../shared/tracking/account-state.ts';
import {
  afterAnswer,
  afterFailure,
  type BreakerState,
  isRegionFailing,
  isUpstreamFailure,
  readBreakerState,
} from '../../shared/tracking/breaker.ts';
import { claimDue, resumeFuturePolls } from '../../shared/tracking/claims.ts';
import { pollAccount } from '../../shared/tracking/poll.ts';
import type { PollDeps } from '../../shared/tracking/poll-context.ts';
import type { PollReport } from '../../shared/tracking/poll-report.ts';
import { DEFAULT_TRACKING } from '../../shared/tracking/schedule.ts';
import { apiParts } from '../support/api.ts';
import { wireTo } from '../support/in-process-upstream.ts';
import { sized } from '../support/runs.ts';
import { eachTable } from '../support/tables.ts';
import { START, type TableCall, watchedTable } from '../support/tracker.ts';

interface CellOptions {
  readonly accounts?: number;
  readonly table?: Table;
  readonly pollIntervalSeconds?: number;
  readonly timeoutMs?: number;
  /** An account whose credentials contain addresses of the ordering API. */
  readonly ownAddress?: string;
}

type Cell = Awaited<ReturnType<typeof createCell>>;

/** Accounts a1, a2, … of the region us, each with a job and a baseline, polled as scheduled. */
async function createCell(options: CellOptions = {}) {
  let clock = START;
  const now = (): number => clock;
  const world = createWorld({ now });
  const sandbox = createSandbox({ world });
  const address = 'http://sandbox.example/us';
  const regionSettings = { baseUrl: `${address}/api`, authUrl: `${address}/auth`, realm: 'us' };
  const table = options.table ?? createMemoryTable();
  const log = createEventLog(table, { now, newId: randomUUID, schemaBaseUrl: 'https://jobwire.example' });
  const pollIntervalSeconds = options.pollIntervalSeconds ?? 60;
  const upstream = Array.from({ length: options.accounts ?? 6 }, (_, n) =>
    world.addAccount({ region: 'us', name: `a${n + 1}` }),
  );
  const deps: PollDeps = {
    table,
    log,
    now,
    newId: randomUUID,
    settings: DEFAULT_TRACKING,
    syncApiUser: syncOwnUser,
    connect: createConnector({
      regions: { us: regionSettings },
      readSecret: async (name) => {
        const { clientId = '', clientSecret = '' } = world.account('us', name) ?? {};
        const upstream = name === options.ownAddress ? regionSettings : undefined;
        return { clientId, clientSecret, version: clientSecret, upstream };
      },
      now,
      fetch: wireTo(sandbox),
      timing: {
        sleep: async () => {},
        random: () => 0,
        ...(options.timeoutMs === undefined ? {} : { timeoutMs: options.timeoutMs }),
      },
    }),
  };
  const read = new Map<string, number>();
  let beforePoll: (account: string) => void = () => {};

  async function fresh(ref: AccountRef): Promise<JobEvent[]> {
    const page = await log.read(ref, read.get(ref.account) ?? 0, 500);
    if (page?.kind !== 'events') throw new Error(`There is no log of ${ref.account}.`);
    return page.events.map(({ json, sequence }) => {
      read.set(ref.account, sequence);
      const event = JSON.parse(json) as JobEvent;
      catalogue[event.type as EventType].data().parse(event.data);
      return event;
    });
  }

  const cell = {
    sandbox,
    table,
    log,
    deps,
    now,
    upstream,
    names: upstream.map(({ name }) => name),
    pass(seconds: number): void {
      clock += seconds * 1000;
    },
    fault(fault: FaultRule['fault'], match: FaultRule['match'] = {}): string {
      return sandbox.faults.add({ match: { region: 'us', ...match }, fault });
    },
    clearFaults: () => sandbox.faults.clear(),
    beforePoll(act: (account: string) => void): void {
      beforePoll = act;
    },
    /** Changes every job upstream. */
    moveJobs(): void {
      for (const account of upstream) {
        for (const jobNumber of account.activeJobNumbers()) account.setStatus(jobNumber, 'In production');
      }
    },
    poll: (account: string): Promise<PollReport> =>
      pollAccount(deps, { region: 'us', account }, clock + 600_000),
    /** Advances time and runs due polls. Returns the polled accounts. */
    async run(seconds: number, tickSeconds = 10): Promise<string[]> {
      const polled: string[] = [];
      for (let at = 0; at < seconds; at += tickSeconds) {
        clock += tickSeconds * 1000;
        for (const { account } of await claimDue(table, 'us', {
          now: clock,
          limit: 500,
          claimSeconds: 300,
        })) {
          polled.push(account);
          beforePoll(account);
          await cell.poll(account);
        }
      }
      return polled;
    },
    /** New events of the cell's own log since the last call. */
    region: () => fresh(cellLog('us')),
    regionTypes: async () => (await cell.region()).map(({ type }) => type),
    /** The same of an account: types of events. */
    types: async (account: string) => (await fresh({ region: 'us', account })).map(({ type }) => type),
    /** Types of events of all accounts. */
    async allTypes(): Promise<string[]> {
      return (await Promise.all(cell.names.map((name) => cell.types(name)))).flat();
    },
    async status(account: string) {
      const item = await table.get(keys.status({ region: 'us', account }));
      if (!item) throw new Error(`There is no account ${account}.`);
      return toStatus(item);
    },
    async isOpen(): Promise<boolean> {
      return (await readBreakerState(table, 'us')).openedAt !== null;
    },
  };
  for (const { name } of upstream) {
    const account = { region: 'us', account: name, secretRef: name, pollIntervalSeconds, paused: false };
    await registerAccount(table, log, account, { now: clock, epoch: 'e1' });
  }
  for (const account of upstream) account.createJob({ status: 'Scheduled' });
  await cell.run(10);
  await cell.allTypes();
  return cell;
}

const DOWN: FaultRule['fault'] = { kind: 'status', status: 503 };

describe('a region that fails for all accounts', () => {
  test('emits one upstream.outage and no account alarm; then one upstream.recovered and the delayed job events', async () => {
    const cell = await createCell();
    cell.fault(DOWN);
    const began = cell.now();
    await cell.run(900);
    const [outage, ...more] = await cell.region();
    expect(more).toEqual([]);
    expect(await cell.allTypes()).toEqual([]);
    expect(outage).toMatchObject({
      specversion: '1.0',
      id: '_cell.e1.1',
      source: '/regions/us',
      type: 'upstream.outage',
      dataschema: 'https://jobwire.example/schemas/v1/upstream.outage.json',
    });
    expect(outage).not.toHaveProperty('subject');
    expect(outage?.data).toEqual({
      region: 'us',
      since: expect.any(String),
      failedPolls: expect.any(Number),
      accounts: 6,
      reason: expect.stringContaining('the ordering API is unavailable (503)'),
    });
    expect(outage?.data.failedPolls).toBeGreaterThanOrEqual(5);
    // Each account is polled at its own time within the minute; the first one that arrived failed.
    const since = Date.parse(String(outage?.data.since));
    expect([since > began, since <= began + 60_000]).toEqual([true, true]);
    // Emitted at most a minute and a poll after the first failure.
    expect(Date.parse(outage?.time ?? '') - began).toBeLessThanOrEqual(180_000);

    cell.moveJobs();
    await cell.run(600);
    expect(await cell.region()).toEqual([]);
    cell.clearFaults();
    await cell.run(180);
    const [recovered, ...rest] = await cell.region();
    expect(rest).toEqual([]);
    expect(recovered).toMatchObject({ id: '_cell.e1.2', type: 'upstream.recovered' });
    expect(recovered?.data).toEqual({
      region: 'us',
      since: outage?.data.since,
      durationSeconds: (Date.parse(recovered?.time ?? '') - since) / 1000,
    });
    for (const name of cell.names) expect(await cell.types(name)).toEqual(['job.status_changed']);
  });

  test.each<[string, FaultRule['fault'], FaultRule['match']]>([
    ['answers 500', { kind: 'status', status: 500 }, {}],
    ['responds with Retry-After', { kind: 'status', status: 429, retryAfter: 1 }, {}],
    ['is behind a gateway that cannot reach it', { kind: 'status', status: 404, body: 'html' }, {}],
    ['resets connections', { kind: 'reset' }, {}],
    ['never answers', { kind: 'hang' }, { operation: 'activeJobs' }],
    ['responds with an HTML page', { kind: 'raw', body: '<h1>Maintenance</h1>' }, {}],
    ['returns another page than requested', { kind: 'wrongPageEcho' }, {}],
    ['issues no tokens', { kind: 'status', status: 503 }, { operation: 'token' }],
  ])('also when it %s', async (_, fault, match) => {
    const cell = await createCell({ accounts: 3, ...(fault.kind === 'hang' ? { timeoutMs: 100 } : {}) });
    cell.fault(fault, match);
    cell.sandbox.revokeTokens();
    await cell.run(240, 30);
    expect(await cell.regionTypes()).toEqual(['upstream.outage']);
    expect(await cell.allTypes()).toEqual([]);
    cell.clearFaults();
    await cell.run(180, 30);
    expect(await cell.regionTypes()).toEqual(['upstream.recovered']);
    expect(await cell.allTypes()).toEqual([]);
  });

  test('emits a second outage for a second failure', async () => {
    const cell = await createCell();
    for (let time = 0; time < 2; time += 1) {
      cell.fault(DOWN);
      await cell.run(300);
      cell.clearFaults();
      await cell.run(120);
    }
    expect((await cell.region()).map(({ type, sequence }) => [type, Number(sequence)])).toEqual([
      ['upstream.outage', 1],
      ['upstream.recovered', 2],
      ['upstream.outage', 3],
      ['upstream.recovered', 4],
    ]);
    expect(await cell.allTypes()).toEqual([]);
  });

  test('emits nothing for less than a minute, however often its accounts are polled', async () => {
    const cell = await createCell({ pollIntervalSeconds: 5 });
    cell.fault(DOWN);
    await cell.run(55, 5);
    expect((await cell.status('a1')).consecutiveFailures).toBeGreaterThanOrEqual(3);
    expect((await cell.status('a1')).state).toBe('failing');
    cell.clearFaults();
    await cell.run(60, 5);
    expect([...(await cell.region()), ...(await cell.allTypes())]).toEqual([]);
    expect(await cell.status('a1')).toMatchObject({ state: 'tracking', consecutiveFailures: 0 });
  });

  test('emits an outage after a minute, also if each account was polled often enough to raise its alarm', async () => {
    const cell = await createCell({ pollIntervalSeconds: 5 });
    cell.fault(DOWN);
    await cell.run(120, 5);
    expect(await cell.regionTypes()).toEqual(['upstream.outage']);
    expect(await cell.allTypes()).toEqual([]);
  });
});

describe('does not emit upstream.outage', () => {
  test('while one account’s credentials are rejected and another one’s answers are invalid: each has its own alarm', async () => {
    const cell = await createCell();
    cell.fault({ kind: 'status', status: 401 }, { account: 'a1' });
    cell.fault({ kind: 'raw', body: '{"items":' }, { account: 'a2' });
    await cell.run(900);
    expect(await cell.region()).toEqual([]);
    expect(await cell.types('a1')).toEqual(['account.credentials_rejected']);
    expect(await cell.types('a2')).toEqual(['account.poll_failing']);
    expect(await cell.allTypes()).toEqual([]);
    expect(await cell.isOpen()).toBe(false);
  });

  test('while all credentials are rejected: each account has its own alarm', async () => {
    const cell = await createCell({ accounts: 4 });
    cell.fault({ kind: 'status', status: 401 });
    await cell.run(600);
    expect(await cell.region()).toEqual([]);
    expect(await cell.allTypes()).toEqual(Array.from({ length: 4 }, () => 'account.credentials_rejected'));
  });

  test('while only two accounts fail and the region has no more: each has its own alarm', async () => {
    const cell = await createCell({ accounts: 2 });
    cell.fault(DOWN);
    await cell.run(900);
    cell.clearFaults();
    await cell.run(900);
    expect(await cell.region()).toEqual([]);
    for (const name of cell.names) {
      expect(await cell.types(name)).toEqual(['account.poll_failing', 'account.poll_recovered']);
    }
  });

  test('while every other poll fails', async () => {
    const cell = await createCell({ accounts: 5 });
    let polls = 0;
    cell.beforePoll(() => {
      cell.clearFaults();
      polls += 1;
      if (polls % 2 === 0) cell.fault(DOWN);
    });
    await cell.run(1800);
    expect(polls).toBeGreaterThan(50);
    expect(await cell.region()).toEqual([]);
    expect(await cell.isOpen()).toBe(false);
  });

  test('while half of the accounts fail: each has its own alarm', async () => {
    const cell = await createCell({ accounts: 6 });
    for (const account of ['a1', 'a2', 'a3']) cell.fault(DOWN, { account });
    await cell.run(1800);
    expect(await cell.region()).toEqual([]);
    expect((await cell.allTypes()).sort()).toEqual(Array.from({ length: 3 }, () => 'account.poll_failing'));
  });

  test('while some pages of the list are answered and others are not', async () => {
    const cell = await createCell({ accounts: 3 });
    for (const account of cell.upstream) for (let n = 0; n < 100; n += 1) account.createJob();
    cell.fault(DOWN, { query: { page: 2 } });
    await cell.run(900);
    expect(await cell.region()).toEqual([]);
    const alarms = (await cell.allTypes()).filter((type) => type.startsWith('account.'));
    expect(alarms).toEqual(Array.from({ length: 3 }, () => 'account.poll_failing'));
  });
});

describe('an account of a failed region', () => {
  test('raises its own alarm if it still fails after the region recovered, and its own recovery', async () => {
    const cell = await createCell();
    cell.fault(DOWN);
    await cell.run(900);
    cell.clearFaults();
    cell.fault(DOWN, { account: 'a1' });
    await cell.run(900);
    expect(await cell.regionTypes()).toEqual(['upstream.outage', 'upstream.recovered']);
    expect(await cell.types('a1')).toEqual(['account.poll_failing']);
    cell.clearFaults();
    await cell.run(900);
    expect(await cell.types('a1')).toEqual(['account.poll_recovered']);
    expect([...(await cell.region()), ...(await cell.allTypes())]).toEqual([]);
  });

  test('with an earlier alarm has its own recovery afterwards', async () => {
    const cell = await createCell();
    cell.fault(DOWN, { account: 'a1' });
    await cell.run(600);
    cell.fault(DOWN);
    await cell.run(600);
    cell.clearFaults();
    await cell.run(300);
    expect(await cell.regionTypes()).toEqual(['upstream.outage', 'upstream.recovered']);
    expect(await cell.types('a1')).toEqual(['account.poll_failing', 'account.poll_recovered']);
    expect(await cell.allTypes()).toEqual([]);
  });

  test('with another error raises its own alarm at once', async () => {
    const cell = await createCell();
    cell.fault(DOWN);
    await cell.run(180);
    const { connect } = cell.deps;
    const deps: PollDeps = {
      ...cell.deps,
      async connect(account) {
        if (account.account === 'a1') throw new Error('The secret a1 could not be read.');
        return connect(account);
      },
    };
    for (let n = 0; n < 3; n += 1) {
      cell.pass(60);
      await pollAccount(deps, { region: 'us', account: 'a1' }, cell.now() + 600_000);
    }
    expect(await cell.isOpen()).toBe(true);
    expect(await cell.types('a1')).toEqual(['account.poll_failing']);
  });

  test('does not end the outage and has its own alarm if its credentials contain addresses of the ordering API', async () => {
    const cell = await createCell({ accounts: 4, ownAddress: 'a1' });
    for (const account of ['a2', 'a3', 'a4']) cell.fault(DOWN, { account });
    await cell.run(600);
    expect(await cell.regionTypes()).toEqual(['upstream.outage']);
    expect(await cell.poll('a1')).toMatchObject({ outcome: 'complete' });
    expect(await cell.isOpen()).toBe(true);
    cell.fault(DOWN, { account: 'a1' });
    await cell.run(900);
    expect(await cell.allTypes()).toEqual(['account.poll_failing']);
  });

  test('does not count towards the outage if its credentials contain addresses of the ordering API', async () => {
    const cell = await createCell({ accounts: 3, ownAddress: 'a1' });
    cell.fault(DOWN);
    await cell.run(900);
    expect(await cell.region()).toEqual([]);
    expect(await cell.allTypes()).toEqual(['a1', 'a2', 'a3'].map(() => 'account.poll_failing'));
  });

  test('is polled soon after the region recovered, for any duration of the outage', async () => {
    const cell = await createCell({ accounts: 4 });
    cell.fault(DOWN);
    await cell.run(sized(2, 6) * 3600, 60);
    cell.clearFaults();
    const began = cell.now();
    await cell.run(180);
    for (const name of cell.names) {
      const { lastGoodCrawlStartedAt } = await cell.status(name);
      expect(lastGoodCrawlStartedAt, name).toBeGreaterThan(began);
    }
  });
});

describe('during an outage', () => {
  async function failing(accounts = 12): Promise<Cell> {
    const cell = await createCell({ accounts });
    cell.fault(DOWN);
    await cell.run(180);
    expect(await cell.isOpen()).toBe(true);
    await cell.run(60, 60);
    return cell;
  }

  test('a few accounts a minute are polled, in turn', async () => {
    const cell = await failing();
    const turns: string[] = [];
    for (let minute = 0; minute < 8; minute += 1) {
      const polled = await cell.run(60, 60);
      expect(polled).toHaveLength(3);
      turns.push(...polled);
    }
    expect(new Set(turns.slice(0, 12))).toEqual(new Set(cell.names));
    expect(new Set(turns.slice(12))).toEqual(new Set(cell.names));
  });

  test('no more are polled if ticks are more frequent or concurrent', async () => {
    const cell = await failing();
    expect((await cell.run(600, 1)).length).toBeLessThanOrEqual(36);
    cell.pass(60);
    const claim = () => claimDue(cell.table, 'us', { now: cell.now(), limit: 100, claimSeconds: 300 });
    const claims = await Promise.all(Array.from({ length: 5 }, claim));
    expect(claims.flat()).toHaveLength(3);
  });

  test('the tick queues those few, and all that are due after recovery', async () => {
    const cell = await failing();
    let queued: string[] = [];
    const tick = createTickHandler({
      ...cell,
      region: 'us',
      topicArn: 'arn:of:a:topic',
      sendPolls: async (messages) => void queued.push(...messages.map(({ account }) => account)),
      sendLonePolls: async (messages) => void queued.push(...messages.map(({ account }) => account)),
      sendDrains: async () => {},
      telemetry: { tick() {} },
    });
    const minute = async (): Promise<string[]> => {
      queued = [];
      cell.pass(60);
      await tick({}, { getRemainingTimeInMillis: () => 60_000 });
      return queued;
    };
    const [one, two] = [await minute(), await minute()];
    expect([one.length, two.length, new Set([...one, ...two]).size]).toEqual([3, 3, 6]);
    cell.clearFaults();
    const [back = ''] = one;
    await cell.poll(back);
    const rest = cell.names.filter((name) => ![...one, ...two].includes(name));
    expect((await minute()).sort()).toEqual([...rest, back].sort());
  });

  test('an account with its own errors does not delay the others after recovery', async () => {
    const cell = await failing();
    cell.clearFaults();
    for (const account of ['a1', 'a2']) cell.fault(DOWN, { account });
    await cell.run(60, 60);
    expect(await cell.regionTypes()).toEqual(['upstream.outage', 'upstream.recovered']);
    await cell.run(60, 60);
    for (const name of cell.names.slice(2)) expect((await cell.status(name)).problem, name).toBeNull();
  });

  test('each account’s status has the outage, also if it is not polled; states that need an operator stay', async () => {
    const cell = await createCell();
    cell.fault({ kind: 'status', status: 401 }, { account: 'a1' });
    await cell.run(60);
    cell.fault(DOWN);
    await cell.run(300);
    const api = createApi({ ...cell, regions: ['us'], ...apiParts(cell.table, 'the-key-of-this-test') });
    const status = async (account: string) => {
      const headers = { authorization: 'Bearer the-key-of-this-test' };
      return (await api.request(`/v1/accounts/${account}/status`, { headers })).json();
    };
    expect(await status('a1')).toMatchObject({ state: 'credentials_rejected' });
    for (const name of cell.names.slice(1)) {
      expect(await status(name), name).toMatchObject({
        state: 'failing',
        problem: expect.stringMatching(
          /^The ordering API has been failing for the whole region since 2026-03-02T08:0\d:\d\d\.000Z: GET/,
        ),
      });
    }
    expect(await (await api.request('/healthz')).json()).toEqual({ status: 'ok' });
    cell.clearFaults();
    await cell.run(120);
    expect(await status('a2')).toMatchObject({ state: 'tracking', problem: null });
  });
});

eachTable('polls that overlap', (makeTable) => {
  test('emit an outage once, and its end once', async () => {
    const cell = await createCell({ table: await makeTable() });
    const allAtOnce = () => Promise.all([...cell.names, ...cell.names].map((name) => cell.poll(name)));
    cell.fault(DOWN);
    for (const seconds of [60, 30, 40, 1]) {
      cell.pass(seconds);
      await allAtOnce();
    }
    expect(await cell.regionTypes()).toEqual(['upstream.outage']);
    cell.clearFaults();
    cell.pass(60);
    await allAtOnce();
    expect(await cell.regionTypes()).toEqual(['upstream.recovered']);
    expect(await cell.allTypes()).toEqual([]);
  });

  test('of which one was answered before the first failure: its late commit ends no outage', async () => {
    const cell = await createCell({ table: await makeTable() });
    for (let n = 0; n < 100; n += 1) cell.upstream[0]?.createJob();
    // Starts with a failure to clear, which another poll clears first.
    cell.fault(DOWN, { account: 'a2' });
    await cell.poll('a2');
    // Its first page is answered; its second is delayed until the outage is emitted, and fails then.
    let release = (): void => undefined;
    const held = new Promise<void>((reached) => {
      cell.sandbox.onRequest = ({ query }) => {
        if (query.page !== '2') return;
        cell.sandbox.onRequest = undefined;
        reached();
        return new Promise<void>((go) => {
          release = go;
        });
      };
    });
    const late = cell.poll('a1');
    await held;
    await cell.poll('a3');
    cell.fault(DOWN);
    for (let n = 0; n < 4; n += 1) {
      cell.pass(30);
      for (const name of cell.names.slice(1)) await cell.poll(name);
    }
    expect(await cell.regionTypes()).toEqual(['upstream.outage']);
    release();
    expect(await late).toMatchObject({ outcome: 'partial', pages: 1 });
    expect(await cell.region()).toEqual([]);
    expect(await cell.isOpen()).toBe(true);
  });
});

test('a region recovers from an outage, and all its accounts are polled, after the clock was set back by hours', async () => {
  const cell = await createCell();
  cell.fault(DOWN);
  await cell.run(900);
  expect(await cell.regionTypes()).toEqual(['upstream.outage']);
  cell.clearFaults();
  cell.pass(-6 * 3600);
  const refs = cell.names.map((account) => ({ region: 'us', account }));
  await resumeFuturePolls(cell.table, refs, cell.now());
  expect(new Set(await cell.run(120, 30))).toEqual(new Set(cell.names));
  const [recovered] = await cell.region();
  expect(recovered).toMatchObject({ type: 'upstream.recovered', data: { durationSeconds: 0 } });
});

describe('a poll that crashes', () => {
  async function story(dies: { readonly at: number; readonly when: 'before' | 'after' } | undefined) {
    let counting = false;
    let written = 0;
    const die = (when: 'before' | 'after') => (call: TableCall) => {
      if (!counting || (call.call !== 'write' && call.call !== 'transact')) return;
      if (when === 'before') written += 1;
      if (dies?.when === when && written === dies.at) throw new Error('killed');
    };
    const table = watchedTable(createMemoryTable(), { before: die('before'), after: die('after') });
    const cell = await createCell({ accounts: 3, table });
    let killed = 0;
    const round = async () => {
      cell.pass(60);
      for (const name of cell.names) {
        await cell.poll(name).catch((cause: unknown) => {
          if (!(cause instanceof Error) || cause.message !== 'killed') throw cause;
          killed += 1;
        });
      }
    };
    counting = true;
    cell.fault(DOWN);
    for (let n = 0; n < 4; n += 1) await round();
    cell.moveJobs();
    cell.clearFaults();
    for (let n = 0; n < 2; n += 1) await round();
    counting = false;
    return { region: await cell.regionTypes(), accounts: await cell.allTypes(), written, killed };
  }

  test('at any of its writes, before or after it: an outage and its end are emitted once, and nothing is lost', async () => {
    const whole = await story(undefined);
    expect(whole).toMatchObject({
      region: ['upstream.outage', 'upstream.recovered'],
      accounts: Array.from({ length: 3 }, () => 'job.status_changed'),
      killed: 0,
    });
    expect(whole.written).toBeGreaterThan(20);
    for (let at = 1; at <= whole.written; at += sized(4, 1)) {
      for (const when of ['before', 'after'] as const) {
        const { region, accounts, killed } = await story({ at, when });
        expect({ region, accounts, killed }, `${when} write ${at}`).toEqual({
          region: whole.region,
          accounts: whole.accounts,
          killed: 1,
        });
      }
    }
  });
});

describe('an unavailable item of the region', () => {
  test.each<[string, (call: TableCall) => boolean]>([
    ['at all', () => true],
    ['when it is read', ({ call }) => call === 'get'],
    ['when it is written', ({ call }) => call === 'write' || call === 'transact'],
  ])('%s does not fail a poll: each account raises its own alarms', async (_, fails) => {
    let failing = false;
    const table = watchedTable(createMemoryTable(), {
      before(call) {
        if (failing && call.of.includes('CELL') && fails(call)) throw new TableError(call.call, 'throttled');
      },
    });
    const cell = await createCell({ accounts: 3, table });
    const round = async (outcome: PollReport['outcome']) => {
      cell.pass(60);
      for (const name of cell.names) expect(await cell.poll(name)).toMatchObject({ outcome });
    };
    failing = true;
    cell.fault(DOWN);
    for (let n = 0; n < 5; n += 1) await round('failed');
    cell.clearFaults();
    await round('complete');
    for (const name of cell.names) {
      expect(await cell.types(name)).toEqual(['account.poll_failing', 'account.poll_recovered']);
    }
    expect(await cell.region()).toEqual([]);
  });

  test('at the end of an outage leaves it open, and the next poll ends it', async () => {
    let failing = false;
    const table = watchedTable(createMemoryTable(), {
      before(call) {
        if (failing && call.call === 'transact' && call.of.includes('CELL')) {
          throw new TableError(call.call, 'throttled');
        }
      },
    });
    const cell = await createCell({ table });
    cell.fault(DOWN);
    await cell.run(300);
    cell.clearFaults();
    failing = true;
    expect(await cell.poll('a1')).toMatchObject({ outcome: 'complete' });
    expect(await cell.regionTypes()).toEqual(['upstream.outage']);
    failing = false;
    expect(await cell.poll('a2')).toMatchObject({ outcome: 'complete' });
    expect(await cell.regionTypes()).toEqual(['upstream.recovered']);
  });
});

describe('a successful poll', () => {
  test('writes the region’s item only if there is a failure to clear', async () => {
    const table = watchedTable(createMemoryTable());
    const cell = await createCell({ table });
    const touched = async (act: () => Promise<unknown>) => {
      table.calls.length = 0;
      await act();
      return table.calls.filter(({ of }) => of.includes('CELL')).map(({ call }) => call);
    };
    expect(await touched(() => cell.poll('a1'))).toEqual(['get']);
    cell.fault(DOWN, { account: 'a1' });
    expect(await touched(() => cell.poll('a1'))).toEqual(['get', 'get', 'write']);
    expect(await touched(() => cell.poll('a2'))).toEqual(['get', 'write']);
    expect(await touched(() => cell.poll('a3'))).toEqual(['get']);
  });
});

describe('the cell’s own log', () => {
  const headers = { authorization: 'Bearer the-key-of-this-test' };

  async function withOutage() {
    const cell = await createCell();
    const api = createApi({
      ...cell,
      regions: ['us', 'nz'],
      ...apiParts(cell.table, 'the-key-of-this-test'),
      now: Date.now,
    });
    const get = async (path: string) => {
      const answer = await api.request(`/v1/${path}`, { headers });
      return { status: answer.status, body: (await answer.json()) as Record<string, unknown> };
    };
    return { cell, api, get };
  }

  async function outage(cell: Cell): Promise<void> {
    cell.fault(DOWN);
    await cell.run(300);
  }

  test('is served as a feed of the region, with paging and long poll', async () => {
    const { cell, get } = await withOutage();
    expect(await get('regions/us/events')).toEqual({
      status: 200,
      body: { events: [], next: 'e1.0', head: 'e1.0' },
    });
    await outage(cell);
    cell.clearFaults();
    await cell.run(120);
    const [first, second] = await cell.region();
    expect((await get('regions/us/events?limit=1')).body).toEqual({
      events: [first],
      next: 'e1.1',
      head: 'e1.2',
    });
    expect((await get('regions/us/events?after=e1.1&wait=20')).body).toMatchObject({ events: [second] });
    expect((await get('regions/us/events?after=0&types=upstream.recovered')).body).toMatchObject({
      events: [second],
      next: 'e1.2',
    });
    expect((await get('regions/us/events?after=e9.1')).status).toBe(410);
  });

  test('requires the key, and exists for regions with accounts only', async () => {
    const { api, get } = await withOutage();
    expect((await api.request('/v1/regions/us/events')).status).toBe(401);
    for (const region of ['nz', 'xx', '_cell']) {
      for (const path of ['events', 'events/stream']) {
        expect((await get(`regions/${region}/${path}`)).status, `${region} ${path}`).toBe(404);
      }
    }
  });

  test("is in the live streams of the region and of all events, from the client's cursor", async () => {
    const { cell } = await withOutage();
    const startedAt = performance.now();
    // Streams end by the clock, so it has to advance.
    const now = () => cell.now() + performance.now() - startedAt;
    const pace = { streamMs: 50, recheckMs: 5 };
    const api = createApi({
      ...cell,
      regions: ['us'],
      ...apiParts(cell.table, 'the-key-of-this-test'),
      now,
      pace,
    });
    const read = async (path: string) => (await api.request(path, { headers })).text();
    const places = /^id: (\S+)$/m.exec(await read('/v1/events/stream'))?.[1] ?? '';
    await outage(cell);
    await forwardLogs(cell.table, [cellLog('us')]);
    for (const path of ['/v1/regions/us/events/stream?after=0', `/v1/events/stream?after=${places}`]) {
      const text = await read(path);
      expect(text.match(/^event: .*$/gm), path).toEqual(['event: cursor', 'event: upstream.outage']);
      expect(text, path).toContain('"id":"_cell.e1.1"');
    }
  });

  test('is delivered to sinks that follow everything, not to those that follow some accounts', async () => {
    const cell = await createCell();
    const sink = {
      region: 'us',
      kind: 'webhook' as const,
      target: 'https://erp.example',
      types: [],
      paused: false,
    };
    const accounts = [...cell.names.map((account) => ({ region: 'us', account })), cellLog('us')];
    await registerSink(cell.table, cell.log, { ...sink, id: 'all', accounts: [] }, accounts);
    await registerSink(cell.table, cell.log, { ...sink, id: 'some', accounts: ['a1'] }, accounts);
    await outage(cell);
    await registerSink(cell.table, cell.log, { ...sink, id: 'later', accounts: [] }, accounts);
    const woken = await wakeSinks(cell.table, cellLog('us'), 1, cell.now());
    expect(woken.sort()).toEqual(['all', 'later']);
    const delivered: string[] = [];
    for (const id of ['all', 'some', 'later']) {
      await drainSink(
        {
          ...cell.deps,
          random: () => 0.5,
          retrySeconds: [5],
          open: async () => ({
            maxBatch: 1,
            async deliver(events) {
              delivered.push(...events.map(({ event }) => `${id} ${event.id} ${event.type}`));
              return events.map(() => ({ kind: 'delivered' }));
            },
          }),
        },
        'us',
        id,
        cell.now() + 60_000,
      );
    }
    // A sink that is created later starts at the current end of the log.
    expect(delivered).toEqual(['all _cell.e1.1 upstream.outage']);
  });

  test('has an id that no account can have', async () => {
    const { cell, get } = await withOutage();
    const account = { ...cellLog('us'), secretRef: 'x', pollIntervalSeconds: 60, paused: false };
    await expect(
      registerAccount(cell.table, cell.log, account, { now: cell.now(), epoch: 'e2' }),
    ).rejects.toThrow('No account can have the id _cell.');
    for (const path of ['status', 'events', 'events/stream', 'jobs']) {
      expect((await get(`accounts/_cell/${path}`)).status, path).toBe(404);
    }
    const regions = { us: { baseUrl: 'https://a.example', authUrl: 'https://b.example', realm: 'us' } };
    const accounts = [{ id: '_cell', region: 'us', clientId: 'x', clientSecret: 'y' }];
    expect(() => parseConfig({ regions, accounts }, {})).toThrow(ConfigError);
  });

  test('keeps its epoch and its events when accounts are registered again or added', async () => {
    const cell = await createCell();
    await outage(cell);
    for (const name of ['a1', 'new']) {
      const account = {
        region: 'us',
        account: name,
        secretRef: 'a1',
        pollIntervalSeconds: 60,
        paused: false,
      };
      await registerAccount(cell.table, cell.log, account, { now: cell.now(), epoch: 'e2' });
    }
    expect(await cell.log.head(cellLog('us'))).toMatchObject({ epoch: 'e1', sequence: 1 });
  });
});

describe('failure statistics of a region (pure)', () => {
  type Heard = readonly [second: number, account: string] | readonly [second: number];
  const ok = (second: number): Heard => [second];
  const fail = (second: number, account: string): Heard => [second, account];
  /** Failures of accounts in turn, at a fixed interval in seconds. */
  const fails = (from: number, to: number, step: number, ...accounts: string[]): Heard[] =>
    Array.from({ length: Math.floor((to - from) / step) + 1 }, (_, n) =>
      fail(from + n * step, accounts[n % accounts.length] ?? ''),
    );

  const letters = [...'abcdefghijklmnopqrst'];

  /** The emitted events, with the second. */
  function emitted(...heard: readonly Heard[]): { said: string[]; upstream: BreakerState } {
    let upstream: BreakerState = { revision: 0, run: null, openedAt: null };
    const said: string[] = [];
    for (const [second, account] of heard) {
      const at = START + second * 1000;
      const step =
        account === undefined
          ? afterAnswer(upstream, at)
          : afterFailure(upstream, { account, at, reason: 'down' });
      if (!step) continue;
      expect(step.next.revision).toBe(upstream.revision + 1);
      upstream = step.next;
      if (step.event) said.push(`${step.event.type.slice('upstream.'.length)} ${second}`);
    }
    return { said, upstream };
  }

  test.each<[string, Heard[], string[]]>([
    ['nothing', [], []],
    ['answers', [ok(0), ok(60)], []],
    ['failures of three for a minute', fails(0, 60, 12, 'a', 'b', 'c'), ['outage 60']],
    ['failures of three for less than a minute', fails(0, 59, 1, 'a', 'b', 'c'), []],
    ['four failures', [fail(0, 'a'), fail(20, 'b'), fail(40, 'c'), fail(80, 'a')], []],
    [
      'a fifth, later',
      [fail(0, 'a'), fail(20, 'b'), fail(40, 'c'), fail(80, 'a'), fail(300, 'b')],
      ['outage 300'],
    ],
    ['failures of two', fails(0, 600, 10, 'a', 'b'), []],
    ['failures of two, then of a third', [...fails(0, 600, 10, 'a', 'b'), fail(601, 'c')], ['outage 601']],
    [
      'an answer in between',
      [...fails(0, 50, 5, 'a', 'b', 'c'), ok(55), ...fails(56, 110, 5, 'a', 'b', 'c')],
      [],
    ],
    [
      'a minute of failures after an answer in between',
      [...fails(0, 50, 5, 'a', 'b', 'c'), ok(55), ...fails(60, 120, 5, 'a', 'b', 'c')],
      ['outage 120'],
    ],
    [
      'an answer older than the first failure',
      [...fails(0, 55, 5, 'a', 'b', 'c'), ok(-1), fail(60, 'a')],
      ['outage 60'],
    ],
    ['more failures', fails(0, 600, 5, 'a', 'b', 'c', 'd'), ['outage 60']],
    ['its end', [...fails(0, 90, 5, 'a', 'b', 'c'), ok(100), ok(101)], ['outage 60', 'recovered 100']],
    [
      'a second time',
      [...fails(0, 90, 5, 'a', 'b', 'c'), ok(100), ...fails(110, 200, 5, 'a', 'b', 'c'), ok(210)],
      ['outage 60', 'recovered 100', 'outage 170', 'recovered 210'],
    ],
    [
      'failures on both sides of a long silence',
      [...fails(0, 50, 5, 'a', 'b', 'c'), ...fails(4000, 4050, 5, 'a', 'b', 'c')],
      [],
    ],
    [
      'an answer after the clock was set back: the first failure is in the future',
      [...fails(7200, 7290, 5, 'a', 'b', 'c'), ok(0)],
      ['outage 7260', 'recovered 0'],
    ],
    [
      'failures before and after the clock was set back',
      [...fails(7200, 7255, 5, 'a', 'b', 'c'), ...fails(0, 60, 5, 'a', 'b', 'c')],
      ['outage 60'],
    ],
    [
      'failures of many accounts before and after the clock was set back',
      [...fails(7200, 7255, 1, ...letters), ...fails(0, 60, 5, 'a', 'b', 'c')],
      ['outage 60'],
    ],
    ['hundreds of failures a second', fails(0, 60, 0.005, ...letters), ['outage 60']],
  ])('%s', (_, heard, said) => {
    expect(emitted(...heard).said).toEqual(said);
  });

  test('writes only a few of hundreds of failures per second', () => {
    const { upstream } = emitted(...fails(0, 59, 0.005, ...letters));
    expect(upstream.revision).toBeGreaterThan(10);
    expect(upstream.revision).toBeLessThan(70);
  });

  test('stores ten of thousands of accounts by name', () => {
    const accounts = Array.from({ length: 1000 }, (_, n) => `a${n}`);
    const { said, upstream } = emitted(...fails(0, 70, 0.5, ...accounts));
    expect(said).toEqual(['outage 60']);
    expect(upstream.run?.accounts).toHaveLength(10);
  });

  test('accounts hold back their alarms during an outage, and at most for the minute before it can start', () => {
    const held = (second: number, ...heard: readonly Heard[]) =>
      isRegionFailing(emitted(...heard).upstream, START + second * 1000);
    expect(held(0)).toBe(false);
    expect(held(3, fail(0, 'a'), fail(1, 'b'), fail(2, 'c'))).toBe(false);
    expect(held(20, ...fails(0, 16, 4, 'a', 'b'))).toBe(false);
    expect(held(20, ...fails(0, 16, 4, 'a', 'b', 'c'))).toBe(true);
    expect(held(59.9, ...fails(0, 16, 4, 'a', 'b', 'c'))).toBe(true);
    // No later failure started it.
    expect(held(60, ...fails(0, 16, 4, 'a', 'b', 'c'))).toBe(false);
    expect(held(5000, ...fails(0, 60, 4, 'a', 'b', 'c'))).toBe(true);
    expect(held(101, ...fails(0, 60, 4, 'a', 'b', 'c'), ok(100))).toBe(false);
  });

  test.each<[OrderingErrorKind, boolean]>([
    ['server_error', true],
    ['unavailable', true],
    ['timeout', true],
    ['network', true],
    ['malformed', true],
    ['rate_limited', true],
    ['not_found', true],
    ['unauthorized', false],
    ['credentials_rejected', false],
    ['forbidden', false],
    ['bad_request', false],
    ['conflict', false],
  ])('%s counts as the upstream API’s failure: %s', (kind, expected) => {
    expect(isUpstreamFailure(new OrderingError({ kind, operation: 'GET /Jobs/active' }))).toBe(expected);
  });

  test('an internal error does not count as an upstream failure', () => {
    expect(isUpstreamFailure(new Error('no time'))).toBe(false);
    expect(isUpstreamFailure(new TableError('get', 'throttled'))).toBe(false);
  });

  test('an account of a failed region counts its failures, raises no alarm and does not back off', () => {
    const problem = new OrderingError({ kind: 'unavailable', operation: 'GET /Jobs/active' });
    const failing = (consecutiveFailures: number, regionFails: boolean, alarmed = false) => {
      const next = transition(
        { kind: 'failed', problem, accepted: false },
        {
          status: { state: 'tracking', consecutiveFailures, alarmed, quarantinedAt: null },
          account: { region: 'us', pollIntervalSeconds: 60 },
          baselined: true,
          failuresBeforeAlarm: 3,
          regionFails,
          phase: 0,
        },
        START,
        START + 500,
      );
      const { state, nextPollAt, events } = next;
      return [
        state,
        next.alarmed,
        next.consecutiveFailures,
        ((nextPollAt ?? 0) - START) / 1000,
        events.length,
      ];
    };
    expect(failing(0, true)).toEqual(['tracking', false, 1, 60, 0]);
    expect(failing(2, true)).toEqual(['failing', false, 3, 60, 0]);
    expect(failing(9, true)).toEqual(['failing', false, 10, 60, 0]);
    expect(failing(10, false)).toEqual(['failing', true, 11, 900, 1]);
    expect(failing(10, true, true)).toEqual(['failing', true, 11, 60, 0]);
  });
});
