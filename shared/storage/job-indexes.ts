/** The places of jobs in the indexes of the state table, and the ranges that select them. */
import { type AccountRef, formatRef, nameKey, pad } from './schema.ts';

/** Returns the index attributes of a job. A job with an absent value is not in that index. */
export function toJobIndexKeys(
  ref: AccountRef,
  job: {
    jobNumber: number;
    status: string | null;
    dueDay: string | null;
    open: boolean;
    /** Dispatch day (YYYY-MM-DD); `null` if not dispatched. */
    dispatchedDay: string | null;
    orderNumber: string | null;
    orderGroup: string | null;
  },
): { readonly [attribute: string]: string | undefined } {
  const tail = `${job.dueDay ?? '9999-12-31'}#${pad(job.jobNumber, 12)}`;
  return {
    statusPk: job.status === null || job.status === '' ? undefined : `${formatRef(ref)}#${job.status}`,
    statusSk: job.status === null || job.status === '' ? undefined : tail,
    ...toDueIndexKeys(ref, job, tail),
    orderPk: job.orderNumber ? formatRef(ref) : undefined,
    orderSk: job.orderNumber ? `${orderKey(job.orderNumber)}#${pad(job.jobNumber, 12)}` : undefined,
    relatedPk: job.orderGroup ? groupJobsPk(ref, job.orderGroup) : undefined,
    relatedSk: job.orderGroup ? pad(job.jobNumber, 12) : undefined,
  };
}

/**
 * An open, undispatched job sorts by its due day. A dispatched job sorts by its dispatch day, in a separate
 * partition, so that no list of due jobs includes it.
 */
function toDueIndexKeys(
  ref: AccountRef,
  job: { jobNumber: number; open: boolean; dispatchedDay: string | null },
  tail: string,
): { readonly openPk: string | undefined; readonly openSk: string | undefined } {
  if (job.open) return { openPk: formatRef(ref), openSk: tail };
  if (job.dispatchedDay === null) return { openPk: undefined, openSk: undefined };
  return { openPk: dispatchedPk(ref), openSk: `${job.dispatchedDay}#${pad(job.jobNumber, 12)}` };
}

/** Partition of an account's dispatched jobs in the `jobsByDue` index. No id contains a `#`. */
const dispatchedPk = (ref: AccountRef): string => `${formatRef(ref)}#OUT`;

/** Partition of an order group's jobs in the `related` index. */
const groupJobsPk = (ref: AccountRef, orderGroup: string): string =>
  `GROUP#${formatRef(ref)}#${nameKey(orderGroup)}`;

/** A range of one of the job indexes. */
export interface JobRange {
  readonly index: 'jobsByStatus' | 'jobsByDue' | 'jobsByOrder' | 'related';
  readonly pk: string;
  readonly from?: string;
  readonly to?: string;
}

/** Bounds of sort keys that begin with a day; see {@link toDayKeys}. */
type DayKeys = Pick<JobRange, 'from' | 'to'>;

/**
 * Returns the bounds of the keys of some days (YYYY-MM-DD): on a day, from a day (inclusive), and before each
 * of some days. All that are given apply. Jobs without a due day sort as due on 9999-12-31.
 */
export function toDayKeys(days: {
  readonly on?: string | undefined;
  readonly from?: string | undefined;
  readonly before?: readonly (string | undefined)[];
}): DayKeys {
  const { on, from, before = [] } = days;
  const isGiven = (text: string | undefined) => text !== undefined;
  const low = [on, from].filter(isGiven).sort().at(-1);
  // A key is the day followed by `#` and more text, so the bare day sorts below all keys of that day.
  const [high] = [on === undefined ? undefined : `${on}#~`, ...before].filter(isGiven).sort();
  return { ...(low === undefined ? {} : { from: low }), ...(high === undefined ? {} : { to: high }) };
}

/** Selects an account's jobs in one status, by due day; those without a due date last. */
export function jobsWithStatus(ref: AccountRef, status: string, days: DayKeys): JobRange {
  return { index: 'jobsByStatus', pk: `${formatRef(ref)}#${status}`, ...days };
}

/** Selects an account's open, undispatched jobs by due day; those without a due date last. */
export function jobsAwaited(ref: AccountRef, days: DayKeys): JobRange {
  return { index: 'jobsByDue', pk: formatRef(ref), ...days };
}

/** Selects an account's dispatched jobs by day of dispatch, then by job number. */
export function jobsDispatched(ref: AccountRef, days: DayKeys): JobRange {
  return { index: 'jobsByDue', pk: dispatchedPk(ref), ...days };
}

/**
 * Selects the jobs of an order group, by job number. A very long name is stored as its hash, so compare the
 * names of the results.
 */
export function jobsInGroup(ref: AccountRef, orderGroup: string): JobRange {
  return { index: 'related', pk: groupJobsPk(ref, orderGroup) };
}

/**
 * Selects an account's jobs with an order number. The result can include other jobs: the key has only the
 * first 200 characters, and an order number may contain the separator. Compare the order numbers of the
 * results.
 */
export function jobsWithOrderNumber(ref: AccountRef, orderNumber: string): JobRange {
  const beginning = `${orderKey(orderNumber)}#`;
  return {
    index: 'jobsByOrder',
    pk: formatRef(ref),
    from: `${beginning}${'0'.repeat(12)}`,
    to: `${beginning}${'9'.repeat(12)}`,
  };
}

/**
 * The first 200 characters of an order number. If they end within a surrogate pair, U+FFFD replaces the half:
 * keys are well-formed.
 */
const orderKey = (orderNumber: string): string => orderNumber.slice(0, 200).toWellFormed();
