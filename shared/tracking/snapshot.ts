/** What the tracker remembers of one job: the two views as last seen, and what of them has been announced. */
import type { JobSummary, TrackingEntry } from '../events/catalogue.ts';
import { type AccountRef, jobPlaces, keys } from '../table/schema.ts';
import type { Item, Write } from '../table/table.ts';
import { dayNamed } from './instants.ts';
import { type DetailView, type ListView, SHARED_FIELDS } from './views.ts';

/** A field that both views show. */
export type SharedField = (typeof SHARED_FIELDS)[number];

/** Why a job that is no longer listed ended, once that was announced. */
export type Ending = 'closed' | 'cancelled' | 'unavailable';

/** Where a dispatch is counted: its day (YYYY-MM-DD), and whether it was late; null when there was no due date. */
export interface CountedDispatch {
  readonly day: string;
  readonly late: boolean | null;
}

/**
 * One job as it is stored. Times are epoch ms.
 *
 * One view has the word at a time: the list while the job is listed (and until it is proved that it left), from then on
 * the detail, while it settles. What the other view shows is kept, so that nothing is said twice when the word passes on.
 */
export interface Snapshot {
  readonly jobNumber: number;
  /** The list view as far as it is believed (see diff.ts); null for a job that was never seen in the active list. */
  readonly list: ListView | null;
  /** The list showed all of `list` at this time or later: a change seen next happened after it. */
  readonly listAt: number;
  /** Some of `list` is believed without being shown: what it took back without the detail's agreement, or left unsaid. */
  readonly heldBack?: true;
  /** The detail view as far as it is believed; null before the first look. */
  readonly detail: DetailView | null;
  /** The detail showed all of `detail` at this time or later. */
  readonly detailAt: number;
  /** Shared fields of the view without the word that can't be compared when it gets the word: see diff.ts. */
  readonly unsure: readonly SharedField[];
  /**
   * Set while it isn't known yet whether the job was created after the baseline (rule 5): when it was first seen. `list`
   * stays as it was seen then until the detail tells; what moved meanwhile is said after job.created.
   */
  readonly unproven: number | null;
  /** What the log says of dispatch and tracking, whichever view showed it. */
  readonly announced: {
    readonly dateOut: string | null;
    readonly tracking: readonly TrackingEntry[];
    /** The due date for which job.overdue was said (rule 15). */
    readonly overdueFor: string | null;
  };
  /** The dispatch as it is counted in the roll-ups; absent when none is. */
  readonly counted?: CountedDispatch | undefined;
  readonly ended: Ending | null;
  /** Set while the job is missing from the list and it is open why. */
  readonly departure: {
    /** How often it was looked into and the answers told nothing. */
    readonly tries: number;
    /** A negative verdict that waits for its confirmation, and the start of the crawl it was reached in. */
    readonly suspected: { readonly as: 'cancelled' | 'unavailable'; readonly at: number } | null;
    /** The latest answers did not fit together. */
    readonly contradictory?: true;
  } | null;
  /** Set once the job left the list: since when, and how often it was looked at since (rule 7). */
  readonly settling: { readonly since: number; readonly looks: number } | null;
  /** A look at the job is owed. Absent for a listed job that is as its detail says, and after the last settling look. */
  readonly owed: {
    /** From this time on. */
    readonly at: number;
    /** How many looks in a row stayed without an answer, or told of a listed job that its views still disagree. */
    readonly tries: number;
  } | null;
}

/**
 * A snapshot that older code stored may lack fields of today's views (rule 6). They are taken over from the view that is `shown`
 * now, so that they are no change; in the other view they can't be compared before it shows them itself.
 */
export function adopt(snapshot: Snapshot, view: 'list' | 'detail', shown: ListView | DetailView): Snapshot {
  const own = snapshot[view];
  const other = snapshot[view === 'list' ? 'detail' : 'list'];
  const missing = own !== null && Object.keys(shown).some((field) => !(field in own));
  const unknown = other === null ? [] : SHARED_FIELDS.filter((field) => !(field in other));
  if (!missing && unknown.length === 0) return snapshot;
  const filled = other && { ...other, ...Object.fromEntries(unknown.map((field) => [field, shown[field]])) };
  return {
    ...snapshot,
    [view]: own && { ...shown, ...own },
    [view === 'list' ? 'detail' : 'list']: filled,
    unsure: [...new Set([...snapshot.unsure, ...unknown])],
  };
}

/** How long a snapshot outlives its index entry. */
export const KEPT_DAYS = 180;
/** How long the roll-up of a day is kept, in which dispatches are counted. */
export const ROLLUP_DAYS = 400;

/** The write that stores a snapshot. With `leavesIndexAt` (epoch ms) its time to live begins. */
export function putSnapshot(ref: AccountRef, snapshot: Snapshot, leavesIndexAt?: number): Write {
  const job = summarize(snapshot);
  const dueDay = job.dateDue === null ? null : (/^\d{4}-\d\d-\d\d/.exec(job.dateDue)?.[0] ?? null);
  return {
    put: {
      ...keys.snapshot(ref, snapshot.jobNumber),
      ...jobPlaces(ref, {
        jobNumber: snapshot.jobNumber,
        status: job.status,
        dueDay,
        open: snapshot.ended === null && snapshot.settling === null && job.dateOut === null,
        dispatchedDay: dispatchedDayOf(snapshot),
        orderNumber: job.orderNumber,
        orderGroup: job.orderGroup,
      }),
      snapshot: JSON.stringify(snapshot),
      ...(leavesIndexAt === undefined ? {} : { ttl: Math.ceil(leavesIndexAt / 1000) + KEPT_DAYS * 86_400 }),
    },
  };
}

/** The snapshot in an item. */
export function toSnapshot(item: Item): Snapshot {
  return JSON.parse(String(item.snapshot)) as Snapshot;
}

/**
 * The day (YYYY-MM-DD) a job was dispatched on: the one it is counted on, or, where it was dispatched before tracking began and is
 * not counted, the one that its date names. Null for a job that is not dispatched, or by a date that can't be read.
 */
export function dispatchedDayOf({ announced, counted, detail }: Snapshot): string | null {
  if (announced.dateOut === null) return null;
  return counted?.day ?? dayNamed(announced.dateOut, detail?.timezone ?? null) ?? null;
}

/** The job as events and the API show it, in the words of the view that has the word. */
export function summarize(snapshot: Snapshot): JobSummary {
  const { list, detail, announced } = snapshot;
  const view = snapshot.settling === null ? (list ?? detail) : (detail ?? list);
  return {
    jobNumber: snapshot.jobNumber,
    status: view?.status ?? list?.status ?? null,
    description: view?.description ?? null,
    orderNumber: view?.orderNumber ?? null,
    orderGroup: view?.orderGroup ?? null,
    orderGroupSequence: view?.orderGroupSequence ?? null,
    originCode: list?.originCode ?? null,
    dateDue: view?.dateDue ?? null,
    mustDate: view?.mustDate ?? null,
    dateOut: announced.dateOut,
    tracking: [...announced.tracking],
  };
}
