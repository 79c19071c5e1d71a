/**
 * A cell of the maximum size in virtual time: the real tick, claims, queues, poll function and polls, on the in-memory table,
 * with production settings. Simulated are the clock, SQS and Lambda (support/virtual-cloud.ts) and the ordering API with random
 * latencies. Accounts have few jobs, because the diff is not under test. That ten polls share a CPU is not simulated.
 */
import { afterEach, expect, test, vi } from 'vitest';
import type { PollMessage } from '../../functions/handlers/messages.ts';
import { createPollAccountHandler } from '../../functions/handlers/poll-account.ts';
import { createTickHandler } from '../../functions/handlers/tick.ts';
import type { Telemetry } from '../../functions/telemetry.ts';
import { readStages } from '../../infra/settings.ts';
import { LONE_POLLS, POLLS } from '../../infra/throughput.ts';
import { registerAccount } from '../../shared/accounts/accounts.ts';
import { wakeSinks } from '../../shared/delivery/wakes.ts';
import { createEventLog, type EventLog } from '../../shared/log/log.ts';
import type { ActiveJobsQuery, OrderingClient, OrderingResponse } from '../../shared/ordering/client.ts';
import { OrderingError } from '../../shared/ordering/errors.ts';
import { ActiveJob, JobDetail } from '../../shared/ordering/schemas.ts';
import type { AccountRef } from '../../shared/storage/schema.ts';
import { createMemoryTable } from '../../shared/storage/sqlite-table.ts';
import type { Table } from '../../shared/storage/table.ts';
import type { PollReport } from '../../shared/tracking/poll-report.ts';
import { DEFAULT_TRACKING } from '../../shared/tracking/schedule.ts';
import { sized } from '../support/runs.ts';
import {
  createFunction,
  createQueue,
  createRandom,
  createVirtualTime,
  type Environment,
  type Invocation,
  type Random,
  type VirtualTime,
} from '../support/virtual-cloud.ts';

const START = Date.parse('2026-03-02T08:00:00Z');
const MINUTE = 60_000;
const INTERVAL_SECONDS = 120;
const JOBS = 3;
const SLOW_PAGES = 17;
const { pollConcurrency } = getSettings('prod');
/** Between the starts of two polls. */
const LIMIT_MS = INTERVAL_SECONDS * 1.1 * 1000;
/** Percentage of polls that find a changed job. */
const MOVING_PERCENT = 2;

afterEach(() => vi.restoreAllMocks());

/** Behaviour of the ordering API for an account. */
type Nature =
  | 'healthy'
  /** Long list and slow pages: a poll takes about a minute. */
  | 'slow'
  /** No answers: the client times out each after 15 s. */
  | 'hanging'
  | 'failing'
  /** A list that exceeds the process's memory: it crashes. */
  | 'deadly'
  /** A list that blocks the process forever. */
  | 'endless';

interface Poll {
  readonly account: string;
  readonly startedAt: number;
  readonly lagMs: number;
  readonly outcome: PollReport['outcome'];
}

test('accounts registered at the same time, ten thousand at full size, are each polled within 1.1 intervals, despite misbehaving accounts', async () => {
  const accounts = sized(200, 10_000);
  const nature = (n: number): Nature =>
    n === 177
      ? 'deadly'
      : n === 288
        ? 'endless'
        : n % 1_000 === 5
          ? 'hanging'
          : n % 400 === 7
            ? 'slow'
            : n % 200 === 9
              ? 'failing'
              : 'healthy';
  const cell = await createCell({ accounts, nature, seed: 5 });
  // Baselines; the claims of polls that shared a crashed process expire, and one by one they return.
  const [from, to] = [START + 9 * MINUTE, START + 19 * MINUTE];
  await cell.time.runUntil(to);

  const measured = cell.measure(from, to);
  console.info(measured.summary);
  expect(cell.faults).toEqual([]);
  expect(measured.late).toEqual([]);
  // If all were polled at the same time, the backlog would never end.
  expect(measured.concurrency).toBeLessThan(pollConcurrency);
  // Accounts polled beside those that crash their process are regular again.
  expect(measured.polledAlone).toEqual([...cell.names('deadly'), ...cell.names('endless')].sort());
}, 1_800_000);

test('accounts registered at the same time are spread over their interval from their second poll on', async () => {
  const cell = await createCell({ accounts: sized(400, 1_000), nature: () => 'healthy', seed: 5 });
  await cell.time.runUntil(START + 9 * MINUTE);
  // Initially all are polled as fast as possible; eight per second result from the interval.
  const burst = cell.measure(START, START + 3 * MINUTE);
  const spread = cell.measure(START + 5 * MINUTE, START + 9 * MINUTE);
  expect(burst.concurrency).toBeGreaterThanOrEqual(sized(20, 30));
  expect(spread.concurrency).toBeLessThan(10);
  expect(spread.late).toEqual([]);
});

test('a run with the same seed is identical', async () => {
  const nature = (n: number): Nature => (n === 77 ? 'deadly' : n % 50 === 9 ? 'failing' : 'healthy');
  const run = async (seed: number): Promise<string> => {
    const cell = await createCell({ accounts: sized(100, 200), nature, seed });
    await cell.time.runUntil(START + 8 * MINUTE);
    return cell.measure(START, START + 8 * MINUTE).summary;
  };
  const first = await run(1);
  expect(await run(1)).toBe(first);
  expect(await run(2)).not.toBe(first);
});

/** Random latency of a request: median 250 ms, 99th percentile 2 s. */
function answerMs(random: Random): number {
  const normal = Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
  return 250 * Math.exp((Math.log(8) / 2.326) * normal);
}

async function createCell(options: {
  readonly accounts: number;
  readonly nature: (n: number) => Nature;
  readonly seed: number;
}) {
  const random = createRandom(options.seed);
  const time = createVirtualTime(START);
  const { now } = time;
  // In real time it would fire at a point of the run that depends on the machine.
  vi.spyOn(AbortSignal, 'timeout').mockImplementation(time.timeout);

  const memory = createMemoryTable();
  let ids = 0;
  const createLog = (table: Table): EventLog =>
    createEventLog(table, {
      now,
      newId: () => String(++ids),
      schemaBaseUrl: 'https://us.jobwire.example',
      sleep: (ms) => time.sleep(ms),
      random,
      // The stream's function.
      onCommitted: (ref, sequence) => void wakeSinks(memory, ref, sequence, now()),
    });

  const names: string[] = [];
  const natures = new Map<string, Nature>();
  for (let n = 0; n < options.accounts; n += 1) {
    const account = `account-${n}`;
    names.push(account);
    natures.set(account, options.nature(n));
    const record = { region: 'us', account, secretRef: account, pollIntervalSeconds: INTERVAL_SECONDS };
    await registerAccount(
      memory,
      createLog(memory),
      { ...record, paused: false },
      { now: START, epoch: 'e1' },
    );
  }

  // Polling

  const polls: Poll[] = [];
  const invocations: Invocation[] = [];
  const pollsByAccount = new Map<string, Poll[]>();
  const faults: string[] = [];
  const telemetry: Pick<Telemetry, 'poll' | 'fault'> = {
    poll({ account, outcome, ms }, { lagMs }) {
      const poll = { account, outcome, lagMs, startedAt: now() - ms };
      polls.push(poll);
      if (outcome === 'complete') pollsByAccount.set(account, [...(pollsByAccount.get(account) ?? []), poll]);
    },
    fault: (message, cause) => faults.push(`${message} ${cause}`),
  };
  const service = createService(time, random, natures);
  const pollAccount = createFunction({
    time,
    random,
    timeoutSeconds: POLLS.timeoutSeconds,
    onEnd: (invocation) => invocations.push(invocation),
    start(environment) {
      const table = over(memory, time, random, environment);
      const connect = async ({ account }: AccountRef) => ({
        client: service(account, environment),
        tokens: {
          get: async () => ({ value: 'token', obtainedAt: now(), fresh: false }),
          drop: async () => {},
        },
        ownAddress: false,
      });
      const newId = () => String(++ids);
      const polling = {
        table,
        log: createLog(table),
        settings: DEFAULT_TRACKING,
        now,
        newId,
        connect,
        syncApiUser: async () => undefined,
      };
      return createPollAccountHandler({ region: 'us', polling, telemetry });
    },
  });
  const createAccountQueue = (
    settings: Pick<typeof POLLS, 'maxReceiveCount'> & {
      readonly batchSize: number;
      readonly batchingSeconds: number;
      readonly maxConcurrency: number;
    },
  ) =>
    createQueue({
      ...settings,
      time,
      random,
      consumer: pollAccount,
      visibilitySeconds: POLLS.timeoutSeconds + 30,
      retentionSeconds: POLLS.retentionSeconds,
    });
  const queues = {
    polls: createAccountQueue({ ...POLLS, maxConcurrency: pollConcurrency }),
    alone: createAccountQueue(LONE_POLLS),
  };

  // The tick

  const alone: { account: string; at: number }[] = [];
  const ticks: { at: number; claimed: number; alone: number; ms: number }[] = [];
  const table = over(memory, time, random);
  const sendTo =
    (queue: keyof typeof queues) => async (messages: readonly { account: string; dueAt: number }[]) => {
      if (messages.length === 0) return;
      await time.sleep(10 + 20 * random());
      for (const message of messages) {
        if (queue === 'alone') alone.push({ account: message.account, at: now() });
        const delaySeconds = Math.max(0, Math.ceil((message.dueAt - now()) / 1000));
        queues[queue].send(JSON.stringify(message satisfies typeof PollMessage._output), delaySeconds);
      }
    };
  const tick = createTickHandler({
    region: 'us',
    table,
    log: createLog(table),
    topicArn: 'arn:of:a:topic',
    sendPolls: sendTo('polls'),
    sendLonePolls: sendTo('alone'),
    sendDrains: async () => {},
    telemetry: { tick: (report) => ticks.push({ at: now(), ...report }) },
    now,
  });
  for (let minute = 1; minute <= 60; minute += 1) {
    // Some seconds late; once nearly a minute, and once not at all.
    if (minute === 14) continue;
    const lateMs = minute === 11 ? 55_000 : 6_000 * random();
    const at = START + minute * MINUTE + lateMs;
    time.at(at, () => {
      void tick({}, { getRemainingTimeInMillis: () => 55_000 }).catch((cause) => faults.push(String(cause)));
    });
  }

  const getNames = (nature: Nature) => names.filter((name) => natures.get(name) === nature);

  /** Times between the starts of successive complete polls, including the pending last one. */
  function longestGap(account: string, from: number, to: number): number {
    const starts = [START, ...(pollsByAccount.get(account) ?? []).map(({ startedAt }) => startedAt), to];
    const gaps = starts.map((start, at) =>
      start < from || start > to ? 0 : start - (starts[at - 1] ?? START),
    );
    return Math.max(...gaps);
  }

  return {
    time,
    faults,
    names: getNames,
    /** Events between two times. */
    measure(from: number, to: number) {
      const within = ({ at }: { readonly at: number }) => at >= from && at < to;
      const begun = ({ startedAt }: { readonly startedAt: number }) => within({ at: startedAt });
      const perMinute = (amount: number) => Math.round(amount / ((to - from) / MINUTE));
      const made = polls.filter(begun);
      const [ended, ticked] = [invocations.filter(begun), ticks.filter(within)];
      const billedMs = sum(ended.map((invocation) => invocation.billedMs));
      const gaps = getNames('healthy').map((account) => ({ account, ms: longestGap(account, from, to) }));
      const most = concurrency(invocations, from, to);
      const outcomes = Object.entries(Object.groupBy(made, ({ outcome }) => outcome));
      const [first] = ticks;
      return {
        late: gaps.filter(({ ms }) => ms > LIMIT_MS),
        concurrency: most,
        polledAlone: [...new Set(alone.filter(within).map(({ account }) => account))].sort(),
        summary: [
          `${names.length} accounts every ${INTERVAL_SECONDS} s, ${(to - from) / MINUTE} minutes:`,
          `  polls        ${perMinute(made.length)} a minute: ${outcomes.map(([outcome, some]) => `${some.length} ${outcome}`).join(', ')}`,
          `  longest gap  ${(Math.max(...gaps.map(({ ms }) => ms)) / 1000).toFixed(1)} s of a healthy account`,
          `  lag          ${lags(made.filter(({ account }) => natures.get(account) === 'healthy'))}; of the others ${lags(made.filter(({ account }) => natures.get(account) !== 'healthy'))}`,
          `  invocations  ${perMinute(ended.length)} a minute, of ${(made.length / ended.length).toFixed(1)} polls`,
          `  billed       ${Math.round(billedMs / ended.length)} ms each, ${perMinute(billedMs / 1000)} s a minute`,
          `  concurrency  ${most} at most; before that ${concurrency(invocations, START, from)}`,
          `  claims       ${perMinute(sum(ticked.map(({ claimed }) => claimed)))} a minute, ${sum(ticked.map((tick) => tick.alone))} alone in all`,
          `  ticks        ${Math.max(...ticked.map(({ ms }) => ms))} ms at most; the first, of ${first?.claimed} claims, ${first?.ms} ms`,
          `  dead         ${queues.polls.dead.length} in batches, ${queues.alone.dead.length} alone since the beginning; ${queues.polls.forgotten + queues.alone.forgotten} forgotten; the longest queue ${queues.polls.longest}`,
        ].join('\n'),
      };
    },
  };
}

function lags(polls: readonly Poll[]): string {
  const sorted = polls.map(({ lagMs }) => lagMs).sort((a, b) => a - b);
  const at = (part: number) => sorted[Math.floor(part * (sorted.length - 1))] ?? 0;
  return `p50 ${at(0.5)} ms, p99 ${at(0.99)} ms, max ${at(1)} ms`;
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}

function getSettings(name: string) {
  const found = readStages('jobwire.cells.example.json').find(({ stage }) => stage === name);
  if (!found) throw new Error(`There is no stage ${name}.`);
  return found;
}

/** Invocations under way at once, at most. */
function concurrency(invocations: readonly Invocation[], from: number, to: number): number {
  const steps = invocations
    .filter(({ startedAt, endedAt }) => endedAt > from && startedAt < to)
    .flatMap(({ startedAt, endedAt }) => [
      { at: startedAt, by: 1 },
      { at: endedAt, by: -1 },
    ])
    .sort((a, b) => a.at - b.at || a.by - b.by);
  let now = 0;
  let most = 0;
  for (const { at, by } of steps) {
    now += by;
    if (at >= from && at < to) most = Math.max(most, now);
  }
  return most;
}

/** The table of a process: each call takes some milliseconds, and none returns to a crashed process. */
function over(table: Table, time: VirtualTime, random: Random, environment?: Environment): Table {
  async function reach<T>(call: () => Promise<T>): Promise<T> {
    await time.sleep(3 + 6 * random());
    if (environment?.alive === false) return new Promise(() => {});
    return call();
  }
  return {
    get: (key) => reach(() => table.get(key)),
    getMany: (keys) => reach(() => table.getMany(keys)),
    query: (query) => reach(() => table.query(query)),
    putMany: (items) => reach(() => table.putMany(items)),
    write: (write) => reach(() => table.write(write)),
    transact: (writes, token) => reach(() => table.transact(writes, token)),
    units: () => table.units(),
  };
}

/** The ordering API: each account has a few jobs, one of which changes occasionally. */
function createService(time: VirtualTime, random: Random, natures: ReadonlyMap<string, Nature>) {
  const STATUSES = ['Scheduled', 'In production'];
  const moved = new Map<string, number>();
  const jobsWith = (status: string | undefined) =>
    Array.from({ length: JOBS }, (_, n) =>
      ActiveJob.parse({ jobNumber: n + 1, masterJobStatus: n === 0 ? status : 'Scheduled' }),
    );
  const lists = STATUSES.map(jobsWith);

  return (account: string, environment: Environment): OrderingClient => {
    const counts = { requests: 0, retries: 0, tokens: 1, errors: {} };
    const nature = natures.get(account) ?? 'healthy';

    async function answer<T>(signal: AbortSignal | undefined, body: () => T): Promise<OrderingResponse<T>> {
      counts.requests += 1;
      const requestedAt = time.now();
      if (nature === 'hanging') {
        await time.sleep(15_000, signal);
        throw new OrderingError({ kind: 'timeout', operation: 'GET /Jobs/active' });
      }
      await time.sleep(nature === 'slow' ? 8_000 + 6_000 * random() : answerMs(random), signal);
      if (nature === 'deadly') environment.die();
      if (nature === 'endless') environment.freeze();
      if (!environment.alive) return new Promise(() => {});
      if (nature === 'failing') {
        throw new OrderingError({ kind: 'unavailable', operation: 'GET /Jobs/active', status: 503 });
      }
      return { body: body(), requestedAt, respondedAt: time.now(), token: 'token' };
    }

    return {
      counts,
      account: (signal) => answer(signal, () => ({ id: 1 })),
      accountUser: () => Promise.reject(new Error('Polls do not ask for it.')),
      transactions: () => Promise.reject(new Error('Polls do not ask for it.')),
      jobStatuses: (signal) => answer(signal, () => STATUSES.map((name, id) => ({ id, name }))),
      job: (jobNumber, signal) =>
        answer(signal, () => JobDetail.parse({ jobNumber, jobStatus: 'Scheduled' })),
      activeJobs: ({ page = 1, pageSize = 20 }: ActiveJobsQuery, signal) =>
        answer(signal, () => {
          if (random() < MOVING_PERCENT / 100) moved.set(account, (moved.get(account) ?? 0) + 1);
          const items = lists[(moved.get(account) ?? 0) % 2] ?? [];
          const totalPages = nature === 'slow' ? SLOW_PAGES : 1;
          const frame = { totalCount: items.length, pageNumber: page, pageSize, totalPages };
          return { ...frame, items: page === 1 ? items : [], hasNextPage: page < totalPages };
        }),
    };
  };
}
