/**
 * The compared fields of a job: the list view and the detail view, each an allowlist in one canonical form.
 *
 * Equality (rule 6): missing, null, an empty text and an empty list are equal. Tracking is an unordered set
 * keyed by number, else by link. An entry with neither is ignored. Timestamps are compared as points in
 * time or local times, however they are spelled. Other fields (counters that drift, links that expire, fields unknown
 * today) can never cause an event. Texts are truncated here and nowhere else (rule 16), so a difference beyond
 * their maximum length is no change.
 */
import { hash } from 'node:crypto';
import type { TrackingEntry } from '../events/catalogue.ts';
import type { ActiveJob, JobDetail } from '../ordering/schemas.ts';
import { MAX_BYTES, toName, toText } from './texts.ts';
import { comparableTime, presentDate } from './timestamps.ts';

/**
 * Version of the fields below. Raise it with every change of them.
 *
 * It is stored with Head and with every index shard. Fingerprints are only valid for code of the same
 * version: older code does not poll, newer code compares snapshots instead (see `addMissingFields` in snapshot.ts).
 * Rename a field if its normalization changes, because its old values are not comparable either.
 */
export const PROJECTION_VERSION = 2;

/**
 * One line of a job. `quantity` and `comments` are absent in a view that older code stored, and after the first
 * {@link MAX_LINES} lines: then they are unknown. `null`: not given, and in a stored view also no comment.
 */
export interface DetailLine {
  readonly jobLineId: number;
  readonly status: string | null;
  readonly quantity?: number | null;
  readonly comments?: string | null;
}

/** Fields that both views contain. `diff.ts` decides which view is authoritative. */
export const SHARED_FIELDS = [
  'description',
  'orderNumber',
  'orderGroup',
  'orderGroupSequence',
  'dateDue',
  'mustDate',
  'canEdit',
] as const satisfies readonly (keyof ListView & keyof DetailView)[];

/** One job in the list of active jobs. `status` is its masterJobStatus. */
export type ListView = Readonly<ReturnType<typeof listView>>;

/** Returns the list view of an entry of the active list. */
export function listView(job: ActiveJob) {
  return {
    status: toName(job.masterJobStatus, MAX_BYTES.status),
    originCode: toText(job.originCode, MAX_BYTES.other),
    description: toText(job.description, MAX_BYTES.description),
    mustDate: job.mustDate,
    dateDue: presentDate(job.dateDue),
    dateOut: presentDate(job.dateOut),
    orderNumber: toText(job.orderNumber, MAX_BYTES.other),
    orderGroup: toName(job.orderGroup, MAX_BYTES.other),
    orderGroupSequence: job.orderGroupSequence,
    canEdit: job.permissions?.canEdit ?? null,
    tracking: trackingSet(job.tracking),
  };
}

/** Returns whether a text of an entry of the active list is truncated in its view. */
export function isTruncated(job: ActiveJob, view: ListView): boolean {
  return (
    view.description !== (job.description || null) ||
    view.status !== (job.masterJobStatus?.toWellFormed() || null) ||
    view.orderNumber !== (job.orderNumber || null) ||
    view.orderGroup !== (job.orderGroup?.toWellFormed() || null) ||
    view.originCode !== (job.originCode || null)
  );
}

/** One job in its detail. `status` is its jobStatus: never compared with the list's. */
export type DetailView = Readonly<ReturnType<typeof detailView>>;

/** Returns the detail view of a job detail. */
export function detailView(job: JobDetail) {
  return {
    status: toName(job.jobStatus, MAX_BYTES.status),
    description: toText(job.description, MAX_BYTES.description),
    mustDate: job.mustDate,
    dateDue: presentDate(job.dateDue),
    dateIn: presentDate(job.dateIn),
    dateOut: presentDate(job.dateOut),
    orderNumber: toText(job.orderNumber, MAX_BYTES.other),
    orderGroup: toName(job.orderGroup, MAX_BYTES.other),
    orderGroupSequence: job.orderGroupSequence,
    canEdit: job.permissions?.canEdit ?? null,
    invoiceNumber: toText(job.invoiceNumber, MAX_BYTES.other),
    isCancelable: job.isCancelable,
    /** IANA name of the location's time zone. */
    timezone: toText(job.location?.timezone ?? null, MAX_BYTES.other),
    /** Comments of the job. In a detail, `null` is "not given" and an empty text is none; in a stored view, `null` is both. */
    comments: toComment(job.comments, MAX_BYTES.other),
    /** In ascending order of the ids. Empty: not given. */
    lines: toLines(job.lines ?? []),
    tracking: trackingSet(job.shippingAddresses),
  };
}

/** Maximum number of lines whose quantity and comments are compared: those with the lowest ids. */
const MAX_LINES = 200;

/** Returns the lines of a detail. With a line that cannot be identified, no line is known to be missing: none is given. */
function toLines(given: NonNullable<JobDetail['lines']>): readonly DetailLine[] {
  const byId = new Map<number, (typeof given)[number]>();
  for (const line of given) {
    if (line.jobLineId === null) return [];
    byId.set(line.jobLineId, line);
  }
  return [...byId]
    .sort(([a], [b]) => a - b)
    .map(([jobLineId, line], at) => ({
      jobLineId,
      status: toName(line.jobLineStatus, MAX_BYTES.status),
      ...(at < MAX_LINES && {
        quantity: line.quantity,
        comments: toComment(line.comments, MAX_BYTES.lineComments),
      }),
    }));
}

/** Returns a comment of a detail: an empty one means that there is none. */
function toComment(text: string | null, maxBytes: number): string | null {
  return text === '' ? '' : toText(text, maxBytes);
}

const NONE: readonly TrackingEntry[] = [];

function trackingSet(
  entries: readonly { trackingNumber: string | null; trackingLink: string | null }[] | null,
): readonly TrackingEntry[] {
  if (entries === null || entries.length === 0) return NONE;
  const byKey = new Map<string, TrackingEntry>();
  for (const { trackingNumber: number, trackingLink: link } of entries) {
    if (!number && !link) continue;
    const entry = { number: toText(number, MAX_BYTES.other), link: toText(link, MAX_BYTES.other) };
    const known = byKey.get(trackingKey(entry));
    // If one number has several links, always choose the same one, in any order.
    if (entry.link === null ? !known : !known?.link || entry.link < known.link) {
      byKey.set(trackingKey(entry), entry);
    }
  }
  // A set has no order. With this order, equal sets are equal texts.
  return [...byKey.values()].sort((a, b) => (trackingKey(a) < trackingKey(b) ? -1 : 1));
}

/** Returns the identity of a parcel: the number, else the link. */
function trackingKey(entry: TrackingEntry): string {
  return entry.number === null ? `link ${entry.link}` : `number ${entry.number}`;
}

/**
 * Pairs the entries of two sets that are the same parcel, one to one, and returns the unpaired ones of
 * each. If one set has no number for a parcel, the link decides.
 */
export function pairUp(
  before: readonly TrackingEntry[],
  after: readonly TrackingEntry[],
): {
  readonly both: readonly (readonly [TrackingEntry, TrackingEntry])[];
  readonly gone: readonly TrackingEntry[];
  readonly added: readonly TrackingEntry[];
} {
  const both: [TrackingEntry, TrackingEntry][] = [];
  const byKey = new Map(after.map((entry) => [trackingKey(entry), entry]));
  const take = (entry: TrackingEntry, other: TrackingEntry | undefined): boolean => {
    if (!other) return false;
    byKey.delete(trackingKey(other));
    both.push([entry, other]);
    return true;
  };
  const gone = before
    .filter((entry) => !take(entry, byKey.get(trackingKey(entry))))
    .filter((entry) => {
      if (entry.link === null) return true;
      const sameLink = [...byKey.values()].filter(({ link }) => link === entry.link);
      return !take(
        entry,
        sameLink.find(({ number }) => (number === null) !== (entry.number === null)),
      );
    });
  return { both, gone, added: [...byKey.values()] };
}

/**
 * Returns a 48-bit fingerprint of a list view: equal for equal views. Two different views collide once in
 * 2.8e14.
 */
export function fingerprint(view: ListView): number {
  const canonical = JSON.stringify([
    view.status,
    view.originCode,
    view.description,
    view.mustDate,
    comparableTime(view.dateDue),
    comparableTime(view.dateOut),
    view.orderNumber,
    view.orderGroup,
    view.orderGroupSequence,
    view.canEdit,
    view.tracking,
  ]);
  return Number.parseInt(hash('sha256', canonical).slice(0, 12), 16);
}
