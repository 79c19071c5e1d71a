/**
 * The breaker of a cell (rule 12): when the ordering service fails for a whole region, that is said once, and the service is
 * asked a few times a minute instead of by every account.
 *
 *   closed ── nothing but failures for a minute, of several accounts ──▶ open     upstream.outage
 *   open   ── any answer to any account ──────────────────────────────▶ closed   upstream.recovered
 *
 * One item per cell holds what its polls heard last. It is a hint for polls: they write it optimistically, a lost race is
 * given up after some tries, and a table that does not answer here keeps no poll from its work. What is announced is
 * exact all the same: the item changes in the transaction that appends the event to the cell's log.
 */
import type { EventDraft } from '../events/event.ts';
import type { EventLog } from '../log/log.ts';
import { OrderingError, type OrderingErrorKind } from '../ordering/errors.ts';
import { type AccountRef, cellLog, keys } from '../table/schema.ts';
import { type Item, type Table, TableError, type Value, type Write } from '../table/table.ts';

/** What the polls of a region heard of its ordering service. Times are epoch ms. */
export interface Upstream {
  /** Raised with every change; 0 when nothing was ever written. */
  readonly revision: number;
  /** The run of failures without an answer in between; null when the last thing heard was an answer. */
  readonly run: FailureRun | null;
  /** When the outage was announced; null while there is none. */
  readonly openedAt: number | null;
}

/** Polls that failed one after another. Where very many accounts fail not each poll is counted: at least so many. */
interface FailureRun {
  readonly since: number;
  readonly lastAt: number;
  readonly failedPolls: number;
  /** The first accounts among them. */
  readonly accounts: readonly string[];
  /** Why the last one failed, in a sentence. */
  readonly reason: string;
}

/** A poll that got nothing from the service. */
export interface Failure {
  readonly account: string;
  readonly at: number;
  readonly reason: string;
}

/** What follows from something heard, to be written together. */
interface Step {
  readonly next: Upstream;
  readonly event?: EventDraft;
}

/** An outage is announced when nothing but failures came for so long … */
const OUTAGE_AFTER_MS = 60_000;
/** … and at least so many of them … */
const OUTAGE_POLLS = 5;
/** … of at least so many accounts: one or two may have troubles of their own. */
const OUTAGE_ACCOUNTS = 3;
/** Failures with nothing at all heard for so long in between are no run: failing polls come at least every 15 minutes. */
const RUN_GAP_MS = 1_800_000;
/** Accounts that are kept by name at most. */
const MAX_ACCOUNTS = 10;
/** When as many are, further failures are written this far apart: thousands of polls share the item. */
const COUNT_EVERY_MS = 1_000;
/** Tries to write before it is given up. */
const ATTEMPTS = 4;
/** Accounts polled at a time while the breaker is open … */
const PROBES = 3;
/** … and how often: with each tick of a scheduler that comes once a minute, even a little early. */
const PROBE_EVERY_MS = 50_000;

const UNHEARD: Upstream = { revision: 0, run: null, openedAt: null };

/**
 * Faults of the service or of the way to it, and not of one account. 404 is among them: neither the list nor the account
 * itself can be missing, so that is a gateway that lost its way.
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

/** Whether a poll that read nothing failed because of the service, so that others may fail for the same reason. */
export function isServiceFault(problem: unknown): problem is OrderingError {
  return problem instanceof OrderingError && SERVICE_FAULTS.has(problem.kind);
}

// Deciding

/** What a failed poll adds; `undefined` when there is nothing to write. Pure. */
export function afterFailure(before: Upstream, failure: Failure): Step | undefined {
  if (before.openedAt !== null) return undefined;
  const run = longer(before.run, failure);
  const next = { revision: before.revision + 1, run, openedAt: null };
  if (!isEnough(run) || failure.at - run.since < OUTAGE_AFTER_MS) {
    const many = before.run?.accounts.length === MAX_ACCOUNTS;
    return many && failure.at - before.run.lastAt < COUNT_EVERY_MS ? undefined : { next };
  }
  const { failedPolls, reason } = run;
  const data = { since: instant(run.since), failedPolls, accounts: run.accounts.length, reason };
  return {
    next: { ...next, openedAt: failure.at },
    event: { type: 'upstream.outage', time: failure.at, data },
  };
}

function longer(run: FailureRun | null, { account, at, reason }: Failure): FailureRun {
  if (run === null || at - run.lastAt > RUN_GAP_MS) {
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

/** What an answer of the service that came at `at` changes; `undefined` when there is nothing to write. Pure. */
export function afterAnswer(before: Upstream, at: number): Step | undefined {
  const { run, openedAt } = before;
  // An answer from before the first failure, by a poll that was slow to say so, proves nothing of what came since.
  if (run === null || at < run.since) return undefined;
  const next = { revision: before.revision + 1, run: null, openedAt: null };
  if (openedAt === null) return { next };
  const data = { since: instant(run.since), durationSeconds: Math.round((at - run.since) / 1000) };
  return { next, event: { type: 'upstream.recovered', time: at, data } };
}

/**
 * Whether failures of the service are the region's news rather than an account's: an outage was announced, or only the
 * minute is missing that makes it one. Pure.
 */
export function failsForAll({ run, openedAt }: Upstream, at: number): boolean {
  return openedAt !== null || (run !== null && isEnough(run) && at - run.since < OUTAGE_AFTER_MS);
}

function isEnough(run: FailureRun): boolean {
  return run.failedPolls >= OUTAGE_POLLS && run.accounts.length >= OUTAGE_ACCOUNTS;
}

/** An announced outage in words, with when it began; `undefined` when there is none. */
export function outageOf({ run, openedAt }: Upstream): string | undefined {
  if (openedAt === null || run === null) return undefined;
  return `The ordering service has been failing for the whole region since ${instant(run.since)}: ${run.reason}`;
}

function instant(ms: number): string {
  return new Date(ms).toISOString();
}

// Reading and writing

/** What was heard of the service of a region. Throws TableError. */
export async function readUpstream(table: Table, region: string): Promise<Upstream> {
  const item = await table.get(keys.upstream(region));
  return item ? toUpstream(item) : UNHEARD;
}

/** The same for a poll, which goes on without knowing when the table does not answer. */
export function hearUpstream(table: Table, region: string): Promise<Upstream> {
  return readUpstream(table, region).catch(unlessTable(UNHEARD));
}

interface Deps {
  readonly table: Table;
  readonly log: EventLog;
}

/** Adds a failed poll to what is known of the service, and gives what is known then. */
export async function noteFailure(
  { table, log }: Deps,
  { region, account }: AccountRef,
  failure: Omit<Failure, 'account'>,
  known: Upstream,
): Promise<Upstream> {
  let current = known;
  try {
    for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
      // Read anew: while a region fails, what a poll read at its beginning is old.
      current = await readUpstream(table, region);
      const step = afterFailure(current, { ...failure, account });
      if (!step) return current;
      if (await stored({ table, log }, region, current, step)) return step.next;
    }
    return await readUpstream(table, region);
  } catch (cause) {
    return unlessTable(current)(cause);
  }
}

/** Takes in that the service answered at `at`, and gives what is known then. Writes nothing when there is nothing to undo. */
export async function noteAnswer(deps: Deps, region: string, at: number, known: Upstream): Promise<Upstream> {
  let current = known;
  try {
    for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
      const step = afterAnswer(current, at);
      if (!step) return current;
      if (await stored(deps, region, current, step)) return step.next;
      current = await readUpstream(deps.table, region);
    }
    return current;
  } catch (cause) {
    return unlessTable(current)(cause);
  }
}

/** Writes a step unless the item has moved on; an event goes with it in one transaction, so it is said once. */
async function stored(
  { table, log }: Deps,
  region: string,
  before: Upstream,
  { next, event }: Step,
): Promise<boolean> {
  const write = {
    put: toItem(region, next),
    when: [['revision', 'absent or =', before.revision]],
  } satisfies Write;
  if (!event) return (await table.write(write)).done;
  // Refused also where the cell has no log: then nothing is announced, and each account speaks for itself.
  return (await log.append(cellLog(region), [event], [write])).kind === 'appended';
}

/**
 * How many accounts of the region may be claimed for a poll now: any number, but while the breaker is open only a few,
 * and those not more often than once a minute or so, whoever asks.
 */
export async function claimable(table: Table, region: string, now: number): Promise<number> {
  const { openedAt } = await readUpstream(table, region);
  if (openedAt === null) return Number.POSITIVE_INFINITY;
  // Apart from the revision: what the polls find out is not disturbed by it.
  const turn = await table.write({
    update: keys.upstream(region),
    set: { probedAt: now },
    when: [
      ['openedAt', 'present'],
      ['probedAt', 'absent or <=', now - PROBE_EVERY_MS],
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

function toItem(region: string, { revision, run, openedAt }: Upstream): Item {
  return { ...keys.upstream(region), revision, ...run, openedAt: openedAt ?? undefined };
}

function toUpstream(item: Item): Upstream {
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
