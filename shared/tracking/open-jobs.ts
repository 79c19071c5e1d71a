/**
 * Statistics of a complete reading of the list: number of open jobs, by status, and undispatched jobs by
 * due day. Stored if they differ from the stored ones, in the transaction that records the time observed
 * through.
 *
 * The number of late jobs changes with the clock and without any change of a job. Therefore due times are
 * stored instead of a count, and each reader compares them with the clock. An account without changes has
 * no writes.
 */
import { hash } from 'node:crypto';
import { type AccountRef, keys, lateIndexKeys } from '../storage/schema.ts';
import type { Item, Write } from '../storage/table.ts';
import { readTimes } from './timestamps.ts';
import type { ListView } from './views.ts';

/** Properties of an open job that the statistics count. Jobs with the same properties share one object. */
export interface OpenKind {
  readonly status: string | null;
  readonly dispatched: boolean;
  /** Due date in the list. `null` once the job is dispatched, because it no longer counts. */
  readonly dateDue: string | null;
}

/** The kinds of jobs in a crawl: some dozens for tens of thousands of jobs. */
export class OpenKinds {
  readonly #byStatus = new Map<string | null, Map<string | boolean, OpenKind>>();

  of({ status, dateDue, dateOut }: Pick<ListView, 'status' | 'dateDue' | 'dateOut'>): OpenKind {
    let statusCounts = this.#byStatus.get(status);
    if (!statusCounts) {
      statusCounts = new Map();
      this.#byStatus.set(status, statusCounts);
    }
    const dispatched = dateOut !== null;
    const name = dispatched || (dateDue ?? false);
    let kind = statusCounts.get(name);
    if (!kind) {
      kind = { status, dispatched, dateDue: dispatched ? null : dateDue };
      statusCounts.set(name, kind);
    }
    return kind;
  }

  /** Returns the kind of this crawl that is equal to a kind of another one. */
  like({ status, dispatched, dateDue }: OpenKind): OpenKind {
    return this.of({ status, dateDue, dateOut: dispatched ? '' : null });
  }
}

/** Due time (epoch ms) and number of jobs. The jobs are late once that time has passed. */
type DueAt = readonly [dueAt: number, jobs: number];

/** Returns the number of jobs that are late at a time (epoch ms). */
export function countLate({ dueDays, dueEarlier }: OpenJobCounts, now: number): number {
  const due = dueDays.flatMap(([, its]) => its);
  return dueEarlier + due.reduce((sum, [dueAt, jobs]) => sum + (dueAt < now ? jobs : 0), 0);
}

/** The statistics as stored. */
export interface OpenJobCounts {
  readonly jobs: number;
  readonly dispatched: number;
  /** Number of jobs by status name. */
  readonly statuses: readonly (readonly [status: string | null, jobs: number])[];
  /** Number of jobs whose status is not in `statuses`. */
  readonly otherStatuses: number;
  /** Undispatched jobs by the day of their due date, in ascending order. */
  readonly dueDays: readonly (readonly [day: string, due: readonly DueAt[]])[];
  /** Number of undispatched jobs due before the stored days. `dueLater` counts those after them. */
  readonly dueEarlier: number;
  readonly dueLater: number;
  readonly withoutDueDate: number;
}

/** Maximum number of statuses stored by name, those with most jobs, and maximum length of a stored name. */
const MAX_STATUSES = 100;
const MAX_STATUS_LENGTH = 200;
/** Due days stored: 120 around the day of the crawl. A job due before them is late in every zone. */
const DAYS_BACK = 30;
const DAYS_AHEAD = 89;
/**
 * Maximum number of due times of one day that are stored exactly. If a day has more, the earliest ones after the start of the
 * crawl stay exact, and later ones move to the end of their hour.
 */
const MAX_DUE_TIMES = 8;
const HOUR_MS = 3_600_000;
const DAY_MS = 86_400_000;

/** Returns the statistics of a complete crawl. Pure. */
export function countOpenJobs({
  observations,
  startedAt,
}: {
  readonly observations: ReadonlyMap<number, { readonly kind: OpenKind }>;
  readonly startedAt: number;
}): OpenJobCounts {
  const kinds = new Map<OpenKind, number>();
  for (const { kind } of observations.values()) kinds.set(kind, (kinds.get(kind) ?? 0) + 1);

  const first = dayText(startedAt - DAYS_BACK * DAY_MS);
  const last = dayText(startedAt + DAYS_AHEAD * DAY_MS);
  const statuses = new Map<string | null, number>();
  const days = new Map<string, Map<number, number>>();
  const sums = { dispatched: 0, otherStatuses: 0, dueEarlier: 0, dueLater: 0, withoutDueDate: 0 };
  for (const [{ status, dispatched, dateDue }, jobs] of kinds) {
    if (status !== null && status.length > MAX_STATUS_LENGTH) sums.otherStatuses += jobs;
    else statuses.set(status, (statuses.get(status) ?? 0) + jobs);
    if (dispatched) {
      sums.dispatched += jobs;
      continue;
    }
    // The list does not contain a job's location. A due date without an offset is read in the zone where the
    // day ends last (rule 15).
    const due = dateDue === null ? undefined : readTimes(dateDue, null, { midnightIsEndOfDay: true });
    const day = dateDue?.trim().slice(0, 10) ?? '';
    if (!due) sums.withoutDueDate += jobs;
    else if (day < first) sums.dueEarlier += jobs;
    else if (day > last) sums.dueLater += jobs;
    else {
      const dayCounts = days.get(day) ?? new Map<number, number>();
      dayCounts.set(due.latest, (dayCounts.get(due.latest) ?? 0) + jobs);
      days.set(day, dayCounts);
    }
  }
  const most = [...statuses].sort(([a, n], [b, m]) => m - n || (String(a) < String(b) ? -1 : 1));
  for (const [, jobs] of most.slice(MAX_STATUSES)) sums.otherStatuses += jobs;
  return {
    jobs: observations.size,
    ...sums,
    statuses: most.slice(0, MAX_STATUSES),
    dueDays: [...days]
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([day, due]) => [day, [...bounded(due, startedAt)].sort(([a], [b]) => a - b)] as const),
  };
}

/**
 * Limits the number of due times in a day. Past ones are merged into one. The next ones stay exact, and
 * later ones are rounded up, so that no job counts as late too early. Without changes of jobs, the result
 * changes only when a due time passes, and job.overdue is emitted then too.
 */
function bounded(due: ReadonlyMap<number, number>, now: number): ReadonlyMap<number, number> {
  if (due.size <= MAX_DUE_TIMES) return due;
  const dueTimes = [...due].sort(([a], [b]) => a - b);
  const past = dueTimes.filter(([at]) => at < now);
  const bound = new Map<number, number>();
  const add = (at: number, jobs: number) => bound.set(at, (bound.get(at) ?? 0) + jobs);
  for (const [, jobs] of past) add(past.at(-1)?.[0] ?? now, jobs);
  for (const [n, [at, jobs]] of dueTimes.slice(past.length).entries()) {
    add(n < MAX_DUE_TIMES ? at : Math.ceil(at / HOUR_MS) * HOUR_MS, jobs);
  }
  return bound;
}

/**
 * Returns the write that stores the statistics, and their fingerprint, which shows whether they are already
 * stored. `upstreamId`: account of the ordering API, by which accounts with the same jobs are found.
 */
export function openJobsWrite(
  ref: AccountRef,
  counts: OpenJobCounts,
  { changedAt, upstreamId }: { readonly changedAt: number; readonly upstreamId?: number | undefined },
): { readonly print: string; readonly write: Write } {
  const text = JSON.stringify(counts);
  return {
    print: hash('sha256', `${text} ${upstreamId}`).slice(0, 16),
    write: {
      put: {
        ...keys.openJobs(ref),
        figures: text,
        changedAt,
        upstreamId,
        ...lateIndexKeys(ref, findEarliestDue(counts)),
      },
    },
  };
}

/** Returns the earliest due time of the counted jobs (epoch ms; 0: before the stored days), or `null` if none has one. */
function findEarliestDue({ dueEarlier, dueDays }: OpenJobCounts): number | null {
  if (dueEarlier > 0) return 0;
  const times = dueDays.flatMap(([, due]) => due.map(([at]) => at));
  return times.length > 0 ? Math.min(...times) : null;
}

/** Returns the statistics of an item. */
export function toOpenJobCounts(item: Item): { readonly counts: OpenJobCounts; readonly changedAt: number } {
  return { counts: JSON.parse(String(item.figures)) as OpenJobCounts, changedAt: Number(item.changedAt) };
}

function dayText(time: number): string {
  return new Date(time).toISOString().slice(0, 10);
}
