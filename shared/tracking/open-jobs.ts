/**
 * What a complete reading of the list shows in all: how many jobs are open, by status, and by due day those that are not
 * dispatched. Stored when it differs from what is stored, in the transaction that says how far the poll has seen.
 *
 * How many are late moves with the clock and without any change of a job. So due instants are stored and not how many are
 * over, and whoever reads them judges by the clock: an account in which nothing moves has nothing written.
 */
import { hash } from 'node:crypto';
import { type AccountRef, keys } from '../table/schema.ts';
import type { Item, Write } from '../table/table.ts';
import type { Crawl } from './crawl.ts';
import { readInstants } from './instants.ts';
import type { ListView } from './views.ts';

/** What counts of an open job. The same object for all jobs of which it is the same. */
export interface OpenKind {
  readonly status: string | null;
  readonly dispatched: boolean;
  /** As the list says it; null once it is dispatched, for then it counts no more. */
  readonly dateDue: string | null;
}

/** The kinds of jobs that a crawl meets: of tens of thousands of jobs there are some dozens. */
export class OpenKinds {
  readonly #byStatus = new Map<string | null, Map<string | boolean, OpenKind>>();

  of({ status, dateDue, dateOut }: ListView): OpenKind {
    let ofStatus = this.#byStatus.get(status);
    if (!ofStatus) {
      ofStatus = new Map();
      this.#byStatus.set(status, ofStatus);
    }
    const dispatched = dateOut !== null;
    const name = dispatched || (dateDue ?? false);
    let kind = ofStatus.get(name);
    if (!kind) {
      kind = { status, dispatched, dateDue: dispatched ? null : dateDue };
      ofStatus.set(name, kind);
    }
    return kind;
  }
}

/** Jobs that are due at an instant (epoch ms): they are late when it is over. */
type DueAt = readonly [dueAt: number, jobs: number];

/** The figures as they are stored. */
export interface OpenFigures {
  readonly jobs: number;
  readonly dispatched: number;
  /** By name. */
  readonly statuses: readonly (readonly [status: string | null, jobs: number])[];
  /** Jobs in statuses that are left out of the list. */
  readonly otherStatuses: number;
  /** Undispatched jobs by the day of their due date, first to last. */
  readonly dueDays: readonly (readonly [day: string, due: readonly DueAt[]])[];
  /** Undispatched jobs due before the days that are kept. */
  readonly dueEarlier: number;
  readonly dueLater: number;
  readonly withoutDueDate: number;
}

/** Statuses kept by name, the ones with most jobs, and how long a name may be to be kept. */
const MAX_STATUSES = 100;
const MAX_STATUS_LENGTH = 200;
/** Due days kept, of 120 around the day of the crawl. Whoever is due before them is late in every zone. */
const DAYS_BACK = 30;
const DAYS_AHEAD = 89;
/** Due instants of one day that are kept as they are: of more than that the next ones, the later ones at the end of their hour. */
const MAX_INSTANTS = 8;
const HOUR_MS = 3_600_000;
const DAY_MS = 86_400_000;

/** The figures of a crawl that was complete. Pure. */
export function tallyOpen({
  observations,
  startedAt,
}: Pick<Crawl, 'observations' | 'startedAt'>): OpenFigures {
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
    // The list does not say where a job is made: a due date without an offset is read where the day ends last (rule 15).
    const due = dateDue === null ? undefined : readInstants(dateDue, null, { midnightIsEndOfDay: true });
    const day = dateDue?.trim().slice(0, 10) ?? '';
    if (!due) sums.withoutDueDate += jobs;
    else if (day < first) sums.dueEarlier += jobs;
    else if (day > last) sums.dueLater += jobs;
    else {
      const ofDay = days.get(day) ?? new Map<number, number>();
      ofDay.set(due.latest, (ofDay.get(due.latest) ?? 0) + jobs);
      days.set(day, ofDay);
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
 * So many instants as a day may have. Those that are over count as one; of those to come the next are kept as they are, and the
 * later ones are rounded up, so that nobody is called late too early. By the clock that changes only when an instant
 * passes, which job.overdue says as well.
 */
function bounded(due: ReadonlyMap<number, number>, now: number): ReadonlyMap<number, number> {
  if (due.size <= MAX_INSTANTS) return due;
  const instants = [...due].sort(([a], [b]) => a - b);
  const over = instants.filter(([at]) => at < now);
  const bound = new Map<number, number>();
  const add = (at: number, jobs: number) => bound.set(at, (bound.get(at) ?? 0) + jobs);
  for (const [, jobs] of over) add(over.at(-1)?.[0] ?? now, jobs);
  for (const [n, [at, jobs]] of instants.slice(over.length).entries()) {
    add(n < MAX_INSTANTS ? at : Math.ceil(at / HOUR_MS) * HOUR_MS, jobs);
  }
  return bound;
}

/** What is to be stored of figures, and their fingerprint, by which they are known to be stored already. */
export function openJobsWrite(
  ref: AccountRef,
  figures: OpenFigures,
  changedAt: number,
): { readonly print: string; readonly write: Write } {
  const text = JSON.stringify(figures);
  return {
    print: hash('sha256', text).slice(0, 16),
    write: { put: { ...keys.openJobs(ref), figures: text, changedAt } },
  };
}

/** The figures in an item. */
export function toOpenFigures(item: Item): { readonly figures: OpenFigures; readonly changedAt: number } {
  return { figures: JSON.parse(String(item.figures)) as OpenFigures, changedAt: Number(item.changedAt) };
}

function dayText(instant: number): string {
  return new Date(instant).toISOString().slice(0, 10);
}
