/**
 * The circuit breaker of a cell (rule 12). When the upstream API fails for a whole region, one event is
 * emitted, and a few polls a minute replace those of every account.
 * - closed → open: only failures for a minute, from several accounts. Emits upstream.outage.
 * - open → closed: any answer to any account. Emits upstream.recovered.
 *
 * One item per cell holds the latest observations of its polls. It is a hint for polls: they write it
 * optimistically and give up after some lost races. A table that does not respond here does not block a
 * poll. The events are exact nevertheless: the item changes in the transaction that appends the event to
 * the cell's log.
 */
import type { EventDraft } from '../events/event.ts';
import type { EventLog } from '../log/log.ts';
import { OrderingError, type OrderingErrorKind } from '../ordering/errors.ts';
import { type AccountRef, cellLog, formatTimestamp, keys } from '../storage/schema.ts';
import { type Item, type Table, TableError, type Value, type Write } from '../storage/table.ts';
import { isFromFuture } from './clock-tolerance.ts';

/** State of a region's upstream API as observed by the polls. Times are epoch ms. */
export interface BreakerState {
  /** Revision, raised with every change. 0 before the first write. */
  readonly revision: number;
  /** The current run of consecutive failures. `null` if the last observation was an answer. */
  readonly run: FailureRun | null;
  /** Time at which the outage was emitted. `null` if there is none. */
  readonly openedAt: number | null;
}

/**
 * Consecutive failed polls. If very many accounts fail, not every poll is counted: `failedPolls` is then a
 * lower bound.
 */
interface FailureRun {
  readonly since: number;
  readonly lastAt: number;
  readonly failedPolls: number;
  /** The first accounts among them. */
  readonly accounts: readonly string[];
  /** Error message of the last failure. */
  readonly reason: string;
}

/** A poll that received no answer from upstream. */
export interface Failure {
  readonly account: string;
  readonly at: number;
  readonly reason: string;
}

/** Result of an observation. Both parts must be written together. */
interface Step {
  readonly next: BreakerState;
  readonly event?: EventDraft;
}

/** Minimum duration of a run of failures before an outage is emitted (ms). */
const OUTAGE_AFTER_MS = 60_000;
/** Minimum number of failed polls in the run. */
const OUTAGE_POLLS = 5;
/** Minimum number of accounts in the run: one or two may have faults of their own. */
const OUTAGE_ACCOUNTS = 3;
/** Maximum gap between two failures of a run (ms). Failing polls come at least every 15 minutes. */
const RUN_GAP_MS = 1_800_000;
/** Maximum number of account ids kept in a run. */
const MAX_ACCOUNTS = 10;
/**
 * Minimum time between writes of further failures once that many are kept (ms): thousands of polls share
 * the item.
 */
const COUNT_EVERY_MS = 1_000;
/** Maximum number of write attempts. */
const ATTEMPTS = 4;
/** Number of accounts polled at a time while the breaker is open. */
const PROBES = 3;
/**
 * Minimum time between these polls (ms). It admits each tick of a scheduler that runs once a minute, even
 * slightly early.
 */
const PROBE_EVERY_MS = 50_000;

const CLOSED_BREAKER: BreakerState = { revision: 0, run: null, openedAt: null };

/**
 * Faults of the upstream API or of the network, not of one account. 404 is included: neither the list nor
 * the account itself can be missing, so a gateway is misrouting.
 */
const SERVICE_FAULTS: ReadonlySet<OrderingErrorKind> = new Set<OrderingErrorKind>([
  'server_error',
  'unavailable',
  'timeout',
  'network',
  'malformed',
  'rate_limited',
  'not_found',
]);

/**
 * Returns whether a poll without any answer failed because of upstream, so that others may fail for the
 * same reason.
 */
export function isUpstreamFailure(problem: unknown): problem is OrderingError {
  return problem instanceof OrderingError && SERVICE_FAULTS.has(problem.kind);
}

// Decisions

/** Returns the step after a failed poll. `undefined` if there is nothing to write. Pure. */
export function afterFailure(before: BreakerState, failure: Failure): Step | undefined {
  if (before.openedAt !== null) return undefined;
  const run = longer(before.run, failure);
  const next = { revision: before.revision + 1, run, openedAt: null };
  if (!isEnough(run) || failure.at - run.since < OUTAGE_AFTER_MS) {
    const many = run.failedPolls > 1 && before.run?.accounts.length === MAX_ACCOUNTS;
    return many && failure.at - before.run.lastAt < COUNT_EVERY_MS ? undefined : { next };
  }
  const { failedPolls, reason } = run;
  const data = { since: formatTimestamp(run.since), failedPolls, accounts: run.accounts.length, reason };
  return {
    next: { ...next, openedAt: failure.at },
    event: { type: 'upstream.outage', time: failure.at, data },
  };
}

function longer(run: FailureRun | null, { account, at, reason }: Failure): FailureRun {
  if (run === null || at - run.lastAt > RUN_GAP_MS || isFromFuture(run.lastAt, at)) {
    return { since: at, lastAt: at, failedPolls: 1, accounts: [account], reason };
  }
  const { since, accounts } = run;
  const named = accounts.includes(account) || accounts.length === MAX_ACCOUNTS;
  return {
    since,
    lastAt: Math.max(at, run.lastAt),
    failedPolls: run.failedPolls + 1,
    accounts: named ? accounts : [...accounts, account],
    reason,
  };
}

/**
 * Returns the step after an upstream answer received at `at`. `undefined` if there is nothing to write.
 * Pure.
 */
export function afterAnswer(before: BreakerState, at: number): Step | undefined {
  const { run, openedAt } = before;
  // An answer older than the first failure, reported late by a slow poll, proves nothing about the time
  // since. If the clock was set back, the answer is not older.
  if (run === null || (at < run.since && !isFromFuture(run.since, at))) return undefined;
  const next = { revision: before.revision + 1, run: null, openedAt: null };
  if (openedAt === null) return { next };
  const durationSeconds = Math.max(0, Math.round((at - run.since) / 1000));
  const data = { since: formatTimestamp(run.since), durationSeconds };
  return { next, event: { type: 'upstream.recovered', time: at, data } };
}

/**
 * Returns whether upstream failures are events of the region rather than of an account: an outage was
 * emitted, or only the minimum duration is missing. Pure.
 */
export function isRegionFailing({ run, openedAt }: BreakerState, at: number): boolean {
  return openedAt !== null || (run !== null && isEnough(run) && at - run.since < OUTAGE_AFTER_MS);
}

function isEnough(run: FailureRun): boolean {
  return run.failedPolls >= OUTAGE_POLLS && run.accounts.length >= OUTAGE_ACCOUNTS;
}

/** Returns the message of an emitted outage, with its start. `undefined` if there is none. */
export function describeOutage({ run, openedAt }: BreakerState): string | undefined {
  if (openedAt === null || run === null) return undefined;
  return `The ordering API has been failing for the whole region since ${formatTimestamp(run.since)}: ${run.reason}`;
}

// Reading and writing

/** Returns the state of a region's upstream API. Throws `TableError`. */
export async function readBreakerState(table: Table, region: string): Promise<BreakerState> {
  const item = await table.get(keys.upstream(region));
  return item ? toBreakerState(item) : CLOSED_BREAKER;
}

/** Returns the same for a poll, which continues without that knowledge if the table does not respond. */
export function readUpstreamHealth(table: Table, region: string): Promise<BreakerState> {
  return readBreakerState(table, region).catch(unlessTable(CLOSED_BREAKER));
}

interface Deps {
  readonly table: Table;
  readonly log: EventLog;
}

/** Adds a failed poll to the state of the region. Returns the resulting state. */
export async function recordUpstreamFailure(
  { table, log }: Deps,
  { region, account }: AccountRef,
  failure: Omit<Failure, 'account'>,
  known: BreakerState,
): Promise<BreakerState> {
  let current = known;
  try {
    for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
      // Read again: while a region fails, the state read at the start of the poll is outdated.
      current = await readBreakerState(table, region);
      const step = afterFailure(current, { ...failure, account });
      if (!step) return current;
      if (await stored({ table, log }, region, current, step)) return step.next;
    }
    return await readBreakerState(table, region);
  } catch (cause) {
    return unlessTable(current)(cause);
  }
}

/**
 * Applies an upstream answer received at `at`. Returns the resulting state. Writes only if there is a run
 * to end.
 */
export async function recordResponse(
  deps: Deps,
  region: string,
  at: number,
  known: BreakerState,
): Promise<BreakerState> {
  let current = known;
  try {
    for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
      const step = afterAnswer(current, at);
      if (!step) return current;
      if (await stored(deps, region, current, step)) return step.next;
      current = await readBreakerState(deps.table, region);
    }
    return current;
  } catch (cause) {
    return unlessTable(current)(cause);
  }
}

/** Writes a step unless the item has changed. The event is in the same transaction, so it is emitted once. */
async function stored(
  { table, log }: Deps,
  region: string,
  before: BreakerState,
  { next, event }: Step,
): Promise<boolean> {
  const write = {
    put: toItem(region, next),
    when: [['revision', 'absent or =', before.revision]],
  } satisfies Write;
  if (!event) return (await table.write(write)).done;
  // Also fails if the cell has no log: then no event of the region is emitted, and each account emits its
  // own.
  return (await log.append(cellLog(region), [event], [write])).kind === 'appended';
}

/**
 * Returns the number of accounts of the region that may be claimed for a poll now. It is unlimited unless
 * the breaker is open. Then it is a few, at most once per {@link PROBE_EVERY_MS} across all callers.
 */
export async function acquirePollQuota(table: Table, region: string, now: number): Promise<number> {
  const item = await table.get(keys.upstream(region));
  if (item?.openedAt === undefined) return Number.POSITIVE_INFINITY;
  const probedAt = Number(item.probedAt ?? 0);
  // A later time is from before the clock was set back.
  if (Math.abs(now - probedAt) < PROBE_EVERY_MS) return 0;
  // Independent of the revision, so that it does not conflict with the results of polls.
  const turn = await table.write({
    update: keys.upstream(region),
    set: { probedAt: now },
    when: [
      ['openedAt', 'present'],
      ['probedAt', 'absent or =', probedAt],
    ],
  });
  return turn.done ? PROBES : 0;
}

function unlessTable<T>(instead: T): (cause: unknown) => T {
  return (cause) => {
    if (cause instanceof TableError) return instead;
    throw cause;
  };
}

function toItem(region: string, { revision, run, openedAt }: BreakerState): Item {
  return { ...keys.upstream(region), revision, ...run, openedAt: openedAt ?? undefined };
}

function toBreakerState(item: Item): BreakerState {
  const number = (value: Value | undefined): number | null => (typeof value === 'number' ? value : null);
  const since = number(item.since);
  const run: FailureRun | null =
    since === null
      ? null
      : {
          since,
          lastAt: Number(item.lastAt),
          failedPolls: Number(item.failedPolls),
          accounts: item.accounts as readonly string[],
          reason: String(item.reason),
        };
  return { revision: Number(item.revision), run, openedAt: number(item.openedAt) };
}
