/** Stored state of one job: the two views as last observed, and which of their values were emitted. */
import type { JobSummary, TrackingEntry } from '../events/catalogue.ts';
import { toJobIndexKeys } from '../storage/job-indexes.ts';
import { type AccountRef, keys } from '../storage/schema.ts';
import type { Item, Write } from '../storage/table.ts';
import { dayNamed, sameTime } from './timestamps.ts';
import { type DetailView, type ListView, SHARED_FIELDS } from './views.ts';

/** A field that both views contain. */
export type SharedField = (typeof SHARED_FIELDS)[number];

/** A field in which the detail can show an older value than the list. */
export type LaggingField = SharedField | 'status' | 'dateOut';

/** Values of the list that the detail has not shown since, by field, the oldest first. */
export type ListAhead = {
  readonly [F in LaggingField]?: {
    /** Value of the list before. */
    readonly before: ListView[F];
    readonly values: readonly ListView[F][];
    /** Time of the last value (epoch ms). */
    readonly at: number;
  };
};

/**
 * Fingerprint of lines and comments that a detail showed, and the time of the first detail that showed others (epoch
 * ms).
 */
export interface SupersededLines {
  readonly print: number;
  readonly at: number;
}

/**
 * A dispatch date or parcel that was emitted and is no longer valid, the time of the response that showed this (epoch ms),
 * and whether each view had shown the value before.
 */
export interface Withdrawn {
  readonly value: string | TrackingEntry;
  readonly at: number;
  readonly list: boolean;
  readonly detail: boolean;
}

/** Reason why a job that is no longer listed ended, once its event was emitted. */
export type Ending = 'closed' | 'cancelled' | 'unavailable';

/**
 * Dispatch as counted: its day (YYYY-MM-DD), and whether it was late. `late` is `null` if there was no due
 * date.
 */
export interface CountedDispatch {
  readonly day: string;
  readonly late: boolean | null;
}

/** A status that a job entered, and the times between which it entered it (epoch ms). */
export type StatusEntry = readonly [status: string, from: number, to: number];

/** Forecast of a job for one due date (rule 22). Times are epoch ms. */
export interface Forecast {
  readonly dateDue: string;
  /** Time at which the job was first at risk. */
  readonly flaggedAt?: number;
  /** Time at which an open job that is not flagged is assessed again. */
  readonly checkAt?: number;
  /** Set once the job became late or was dispatched: its result is counted. */
  readonly counted?: true;
}

/**
 * Stored form of one job. Times are epoch ms.
 *
 * One view is authoritative at a time. The list is while the job is listed, and until its departure is
 * proved. From then on the detail is, while the job settles. The other view is kept too, so that no event
 * repeats when authority passes.
 */
export interface Snapshot {
  readonly jobNumber: number;
  /**
   * List view with its retained values (see diff.ts). `null` for a job that was never observed in the
   * active list.
   */
  readonly list: ListView | null;
  /** Origin code in the list with closed jobs, for a job that the sweep found. */
  readonly origin?: string | null;
  /**
   * Time at which the list contained all of `list`, or an earlier time. A change observed next happened
   * after it.
   */
  readonly listAt: number;
  /**
   * Set if `list` retains values that the latest list lacked: withdrawn without the detail's agreement, or
   * omitted.
   */
  readonly heldBack?: true;
  /**
   * Set if the job left the list and its detail could not be read since. Until then, the list view stays
   * authoritative.
   */
  readonly detailPending?: true;
  /** Detail view with its retained values. `null` before the first detail fetch. */
  readonly detail: DetailView | null;
  /** Time at which the detail contained all of `detail`, or an earlier time. */
  readonly detailAt: number;
  /**
   * Shared fields of the non-authoritative view that cannot be compared when it becomes authoritative: see
   * diff.ts.
   */
  readonly unsure: readonly SharedField[];
  /** Values that the list has shown and the detail not yet. Absent if there are none. */
  readonly ahead?: ListAhead | undefined;
  /** Lines and comments of earlier details, of the last hour before the latest change. Absent if there are none. */
  readonly supersededLines?: readonly SupersededLines[] | undefined;
  /** Values that were withdrawn, of the last hour before the latest one. Absent if there are none. */
  readonly withdrawn?: readonly Withdrawn[] | undefined;
  /**
   * Time of the first observation, while it is unknown whether the job was created after the baseline (rule
   * 5). Otherwise `null`. `list` keeps its first value until the detail is read. Changes in between are
   * emitted after job.created.
   */
  readonly unproven: number | null;
  /** Dispatch and tracking according to the log, from either view. */
  readonly emitted: {
    readonly dateOut: string | null;
    readonly tracking: readonly TrackingEntry[];
    /** Due date for which job.overdue was emitted (rule 15). `null` if none. */
    readonly overdueFor: string | null;
    /** Due date for which job.due_soon was emitted. Absent if none. */
    readonly dueSoonFor?: string | null;
  };
  /**
   * Stay in the current status of the list. Without a status: set if the job has had none since it was created.
   * Absent in snapshots of older code.
   */
  readonly stay?: {
    /** Time of the first answer with the status (epoch ms). */
    readonly since: number;
    /** Set once job.stalled was emitted. */
    readonly stalled?: true;
    /** Set once job.needs_attention was emitted for the status. */
    readonly attention?: true;
    /** Status for which job.needs_attention was emitted while the list had no status. */
    readonly attended?: string;
  };
  /** Fingerprint of the settings with which the timers were last checked: see EventRules. Absent if empty. */
  readonly timers?: string;
  /**
   * Marks that were set without an event, because its time had passed before these settings: the due date in `emitted`, and the
   * beginning of the stay (epoch ms). Absent if there are none.
   */
  readonly silent?: { readonly dueSoonFor?: string | undefined; readonly stalledSince?: number };
  /**
   * Time of the request whose detail first showed that the job can no longer be cancelled (epoch ms), while it is
   * undecided whether its production started.
   */
  readonly lockedInAt?: number;
  /** Time of the request whose detail last showed `isCancelable` of `detail` (epoch ms). Absent if that is `detailAt`. */
  readonly cancelableAt?: number;
  /** Set after the dispatch was revoked, until a view shows the job as editable: it cannot be cancelled. */
  readonly returned?: true;
  /** Statuses that the job entered until its dispatch, the latest last: see path.ts. Absent if there are none. */
  readonly path?: readonly StatusEntry[] | undefined;
  /** Absent without an assessment of the job. */
  readonly forecast?: Forecast | undefined;
  /** Dispatch as counted in the roll-ups. Absent if none is counted. */
  readonly counted?: CountedDispatch | undefined;
  readonly ended: Ending | null;
  /** Set while the job is missing from the list for an unknown reason. Otherwise `null`. */
  readonly departure: {
    /** Number of inconclusive investigations. */
    readonly tries: number;
    /** Unconfirmed negative verdict, and the start of the crawl in which it was reached. */
    readonly suspected: { readonly as: 'cancelled' | 'unavailable'; readonly at: number } | null;
    /** Set if the latest answers contradict each other. */
    readonly contradictory?: true;
  } | null;
  /** Set once the job left the list: start of settling, and number of fetches since (rule 7). */
  readonly settling: { readonly since: number; readonly fetches: number } | null;
  /**
   * Owed detail fetch. `null` for a listed job that matches its detail, and after the last settling fetch.
   */
  readonly owed: {
    /** Earliest time of the fetch. */
    readonly at: number;
    /**
     * Number of consecutive fetches without an answer, or after which the views of a listed job still
     * disagreed.
     */
    readonly tries: number;
  } | null;
}

/**
 * Adds fields of today's views that a snapshot stored by older code lacks (rule 6). In the view that is
 * `current`, they take its current values, so that they are not a change. In the other view, they cannot be
 * compared before it contains them.
 */
export function addMissingFields(
  snapshot: Snapshot,
  view: 'list' | 'detail',
  current: ListView | DetailView,
): Snapshot {
  const own = snapshot[view];
  const other = snapshot[view === 'list' ? 'detail' : 'list'];
  const missing = own !== null && Object.keys(current).some((field) => !(field in own));
  const unknown = other === null ? [] : SHARED_FIELDS.filter((field) => !(field in other));
  if (!missing && unknown.length === 0) return snapshot;
  const filled = other && {
    ...other,
    ...Object.fromEntries(unknown.map((field) => [field, current[field]])),
  };
  return {
    ...snapshot,
    [view]: own && { ...current, ...own },
    [view === 'list' ? 'detail' : 'list']: filled,
    unsure: [...new Set([...snapshot.unsure, ...unknown])],
  };
}

/** Retention of a snapshot after its index entry is removed (days). */
export const KEPT_DAYS = 180;

/** Returns the time to live (epoch seconds) of the data of a job that left the index at a time (epoch ms). */
export const expiresAfter = (leavesIndexAt: number): number =>
  Math.ceil(leavesIndexAt / 1000) + KEPT_DAYS * 86_400;

/** Returns the write that stores a snapshot. With `leavesIndexAt` (epoch ms), its time to live starts. */
export function putSnapshot(ref: AccountRef, snapshot: Snapshot, leavesIndexAt?: number): Write {
  const job = summarize(snapshot);
  const dueDay = job.dateDue === null ? null : (/^\d{4}-\d\d-\d\d/.exec(job.dateDue)?.[0] ?? null);
  return {
    put: {
      ...keys.snapshot(ref, snapshot.jobNumber),
      ...toJobIndexKeys(ref, {
        jobNumber: snapshot.jobNumber,
        status: job.status,
        dueDay,
        open: snapshot.ended === null && snapshot.settling === null && job.dateOut === null,
        dispatchedDay: toDispatchedDay(snapshot),
        orderNumber: job.orderNumber,
        orderGroup: job.orderGroup,
      }),
      snapshot: JSON.stringify(toStored(snapshot)),
      ...(leavesIndexAt === undefined ? {} : { ttl: expiresAfter(leavesIndexAt) }),
    },
  };
}

/** Why a job needs attention, besides that it may be late. */
export interface JobMarks {
  /** In its status for the number of working days of the account's settings. */
  readonly stalled: boolean;
  /** In one of the `attentionStatuses` of the account. */
  readonly needsAttention: boolean;
  /** job.due_soon was emitted, or would have been, for its due date. */
  readonly dueSoon: boolean;
  /** A poll found it at risk of being late (rule 22), at this time (epoch ms). `null`: not for its due date. */
  readonly atRiskSince: number | null;
}

/** Returns why a listed, undispatched job needs attention. `undefined`: no mark applies. */
export function findMarks(snapshot: Snapshot | undefined): JobMarks | undefined {
  if (!snapshot?.list || snapshot.ended !== null || snapshot.settling !== null) return undefined;
  const { list, emitted, stay, forecast } = snapshot;
  if (list.dateOut !== null || emitted.dateOut !== null) return undefined;
  const { dueSoonFor = null } = emitted;
  const isCurrent = forecast !== undefined && sameTime(forecast.dateDue, list.dateDue);
  const marks = {
    stalled: stay?.stalled === true,
    needsAttention: stay?.attention === true,
    dueSoon: dueSoonFor !== null && sameTime(dueSoonFor, list.dateDue),
    atRiskSince: (isCurrent && forecast.flaggedAt) || null,
  };
  return marks.stalled || marks.needsAttention || marks.dueSoon || marks.atRiskSince !== null
    ? marks
    : undefined;
}

/** Returns the writes that keep the pointer to a job that needs attention: none, or one. */
export function markWrites(
  ref: AccountRef,
  jobNumber: number,
  stored: Snapshot | undefined,
  next: Snapshot | undefined,
): Write[] {
  const [was, is] = [findMarks(stored), findMarks(next)].map((marks) => marks !== undefined);
  if (was === is) return [];
  const key = keys.markedJob(ref, jobNumber);
  return [is ? { put: { ...key } } : { delete: key }];
}

/** A snapshot with the names that two of its fields have in the table. */
type StoredSnapshot = Omit<Snapshot, 'emitted' | 'settling'> & {
  readonly announced: Snapshot['emitted'];
  readonly settling: { readonly since: number; readonly looks: number } | null;
};

function toStored({ emitted, settling, ...rest }: Snapshot): StoredSnapshot {
  return {
    ...{ ...rest, announced: emitted },
    settling: settling && { since: settling.since, looks: settling.fetches },
  };
}

/** Returns the snapshot of an item. */
export function toSnapshot(item: Item): Snapshot {
  const { announced, settling, ...rest } = JSON.parse(String(item.snapshot)) as StoredSnapshot;
  return {
    ...{ ...rest, emitted: announced },
    settling: settling && { since: settling.since, fetches: settling.looks },
  };
}

/**
 * Returns the day (YYYY-MM-DD) on which a job was dispatched: the day on which it is counted. A job
 * dispatched before tracking began is not counted, and has the day of its dispatch date. Returns `null` for
 * a job without a dispatch or with an unreadable date.
 */
export function toDispatchedDay({ emitted, counted, detail }: Snapshot): string | null {
  if (emitted.dateOut === null) return null;
  return counted?.day ?? dayNamed(emitted.dateOut, detail?.timezone ?? null) ?? null;
}

/** Returns whether the list view is authoritative, and not the detail. */
export function isListAuthoritative({
  settling,
  detailPending,
}: Pick<Snapshot, 'settling' | 'detailPending'>): boolean {
  return settling === null || detailPending === true;
}

/** Returns a detail with the values that the list has shown since: it is outdated. */
export function withLaterValues(detail: DetailView, ahead: ListAhead = {}): DetailView {
  const later = Object.entries(ahead).map(([field, { values }]) => [field, values.at(-1)]);
  return { ...detail, ...Object.fromEntries(later) };
}

/** Returns the job for events and the API, with the values of the authoritative view. */
export function summarize(snapshot: Snapshot): JobSummary {
  const { list, detail, emitted } = snapshot;
  const view = isListAuthoritative(snapshot)
    ? (list ?? detail)
    : detail
      ? withLaterValues(detail, snapshot.ahead)
      : list;
  return {
    jobNumber: snapshot.jobNumber,
    status: view?.status ?? list?.status ?? null,
    description: view?.description ?? null,
    orderNumber: view?.orderNumber ?? null,
    orderGroup: view?.orderGroup ?? null,
    orderGroupSequence: view?.orderGroupSequence ?? null,
    originCode: list?.originCode ?? snapshot.origin ?? null,
    dateDue: view?.dateDue ?? null,
    mustDate: view?.mustDate ?? null,
    dateOut: emitted.dateOut,
    tracking: [...emitted.tracking],
  };
}
