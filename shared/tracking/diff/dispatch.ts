/** Dispatch and tracking of a job: the emitted values, and the events that bring them up to date. Pure. */
import type { TrackingEntry } from '../../events/catalogue.ts';
import type { Snapshot } from '../snapshot.ts';
import { sameTime } from '../timestamps.ts';
import { type DetailView, type ListView, pairUp } from '../views.ts';
import type { CaughtUp } from './lag.ts';
import type { EventContent, ListEntry } from './step.ts';

export interface Dispatch {
  readonly dateOut: string | null;
  readonly events: readonly EventContent[];
}

export interface Tracking {
  readonly emitted: readonly TrackingEntry[];
  readonly events: readonly EventContent[];
}

/**
 * Applies the dispatch date in a view (`null`: none) to the emitted one. `was` is the date in the same
 * view before. `zone` is that of the job's location, if known.
 */
export function applyDispatchDate(
  emitted: string | null,
  was: string | null,
  next: string | null,
  zone: string | null,
): Dispatch {
  if (next === null) return { dateOut: emitted, events: [] };
  if (emitted === null) {
    const changes = { dateOut: { from: null, to: next } };
    return { dateOut: next, events: [{ type: 'job.dispatched', changes, occurredAt: next, zone }] };
  }
  // A correction is emitted as a change of the date, not as another dispatch. The other view may already have
  // caused that event.
  if (was !== null && !sameTime(was, next) && !sameTime(emitted, next)) {
    const changes = { dateOut: { from: was, to: next } };
    return { dateOut: next, events: [{ type: 'job.updated', changes }] };
  }
  return { dateOut: emitted, events: [] };
}

/**
 * Applies the dispatch date of a detail, which can be older than the list. `first` is the first list view of a job whose
 * creation is emitted in this step.
 */
export function applyDetailDispatch(
  before: Snapshot,
  first: ListView | null,
  next: DetailView,
  listed: ListEntry | undefined,
  { ahead, from, undecided }: CaughtUp,
): Dispatch {
  const was = before.detail?.dateOut ?? null;
  const { timezone } = next;
  const inList = applyDispatchDate(before.emitted.dateOut, null, first?.dateOut ?? null, timezone);
  // While the list is ahead, a date is no correction, and after the revocation no dispatch.
  const detailDispatch = ahead?.dateOut
    ? { dateOut: inList.dateOut, events: [] }
    : applyDispatchDate(inList.dateOut, from.dateOut ?? was, next.dateOut, timezone);
  const events = [...inList.events, ...detailDispatch.events];
  const { dateOut } = detailDispatch;
  // Withdrawn: both views lack the date. For a delisted job, the view that contained it lacks it.
  const lacking =
    next.dateOut === null &&
    (listed ? listed.view.dateOut === null : was !== null && !undecided.includes('dateOut'));
  if (dateOut === null || !lacking) return { dateOut, events };
  const changes = { dateOut: { from: was ?? dateOut, to: null } };
  return { dateOut: null, events: [...events, { type: 'job.dispatch_revoked', changes }] };
}

/**
 * Applies the tracking in a view to the emitted tracking.
 *
 * `was` is the tracking in the same view before. `null` if there is none: then entries count only if the view
 * contains all that was emitted. Entries in `passed` (`null`: none) do not count.
 */
export function applyTracking(
  emitted: readonly TrackingEntry[],
  was: readonly TrackingEntry[] | null,
  next: readonly TrackingEntry[],
  passed: readonly TrackingEntry[] | null,
): Tracking {
  const { both, gone, added: unknown } = pairUp(emitted, next);
  if (was === null && gone.length > 0) return { emitted, events: [] };
  const known = passed && pairUp(passed, next).both.map(([, to]) => to);
  const added = unknown.filter((entry) => !known?.includes(entry));
  const own = was && new Map(pairUp(was, next).both.map(([from, to]) => [to, from]));
  const updated = both.flatMap(([from, entry]) => {
    if (own === null) return [];
    const to = { number: entry.number ?? from.number, link: entry.link ?? from.link };
    if (to.number === from.number && to.link === from.link) return [];
    // Previous entries of this view are not emitted. A link that differs from the other view's is emitted
    // only if this view changed.
    const before = own.get(entry);
    const moved = before
      ? before.number !== entry.number || before.link !== entry.link
      : from.link === null || from.link === to.link;
    return moved ? [{ from, to }] : [];
  });
  const events: EventContent[] = [];
  if (added.length > 0) events.push({ type: 'job.tracking_added', changes: {}, tracking: [...added] });
  if (updated.length > 0) events.push({ type: 'job.tracking_updated', changes: {}, tracking: updated });
  return {
    emitted: [...emitted.map((entry) => updated.find(({ from }) => from === entry)?.to ?? entry), ...added],
    events,
  };
}

/** Applies the tracking of a detail. It is withdrawn by the rules of {@link applyDetailDispatch}. */
export function applyDetailTracking(
  before: Snapshot,
  first: ListView | null,
  next: DetailView,
  listed: ListEntry | undefined,
): Tracking {
  const was = before.detail?.tracking ?? null;
  const inList = applyTracking(before.emitted.tracking, [], first?.tracking ?? [], null);
  const lacking = pairUp(inList.emitted, next.tracking).gone;
  // Each set is compared as a whole: one parcel in it matches one, even if two have the same link.
  const candidates = listed
    ? pairUp(inList.emitted, listed.view.tracking).gone
    : was && pairUp(inList.emitted, was).both.map(([entry]) => entry);
  const removed = lacking.filter((entry) => candidates?.includes(entry));
  const rest = inList.emitted.filter((entry) => !removed.includes(entry));
  const { emitted, events } = applyTracking(rest, was, next.tracking, was);
  const removal: EventContent[] =
    removed.length > 0 ? [{ type: 'job.tracking_removed', changes: {}, tracking: removed }] : [];
  return { emitted, events: [...inList.events, ...events, ...removal] };
}

/**
 * Returns a view that keeps emitted dispatch and tracking which it no longer contains, as long as they
 * stay emitted.
 */
export function retainEmitted<V extends Pick<ListView, 'dateOut' | 'tracking'>>(
  was: Pick<ListView, 'dateOut' | 'tracking'> | null,
  next: V,
  emitted: Snapshot['emitted'],
): { retained: V; hasRetained: boolean } {
  if (was === null) return { retained: next, hasRetained: false };
  const dateOut = next.dateOut ?? (emitted.dateOut === null ? null : was.dateOut);
  const missing = pairUp(was.tracking, next.tracking).gone;
  const kept = pairUp(was.tracking, emitted.tracking)
    .both.map(([entry]) => entry)
    .filter((entry) => missing.includes(entry));
  return {
    retained: { ...next, dateOut, tracking: [...next.tracking, ...kept] },
    hasRetained: dateOut !== next.dateOut || kept.length > 0,
  };
}

/** Returns whether a view lacks the emitted dispatch, or an emitted parcel. */
export function isMissing(
  view: Pick<ListView, 'dateOut' | 'tracking'>,
  emitted: Snapshot['emitted'],
): boolean {
  const lacksDate = emitted.dateOut !== null && view.dateOut === null;
  return lacksDate || pairUp(emitted.tracking, view.tracking).gone.length > 0;
}

/** Removes from the list view what is no longer emitted. */
export function dropRevoked(list: ListView, emitted: Snapshot['emitted']): ListView {
  return {
    ...list,
    dateOut: emitted.dateOut === null ? null : list.dateOut,
    tracking: pairUp(list.tracking, emitted.tracking).both.map(([entry]) => entry),
  };
}
