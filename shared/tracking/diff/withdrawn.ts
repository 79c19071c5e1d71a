/** Dispatch dates and parcels that are no longer valid, but that a view that is behind can still show (rule 4). Pure. */
import type { TrackingEntry } from '../../events/catalogue.ts';
import type { Snapshot, Withdrawn } from '../snapshot.ts';
import { sameTime } from '../timestamps.ts';
import { type ListView, pairUp } from '../views.ts';
import { MAX_LAG_MS } from './lag.ts';

/** Maximum number of values kept. */
const MAX_VALUES = 8;

type Shown = Pick<ListView, 'dateOut' | 'tracking'>;

/** Adds the emitted values that `now` no longer contains. `at` is the time of the response that shows this (epoch ms). */
export function addWithdrawn(
  { withdrawn = [], announced: was, list, detail }: Snapshot,
  now: Shown,
  at: number,
): readonly Withdrawn[] | undefined {
  const gone = [was.dateOut, ...was.tracking].filter((value) => value !== null && !shows(now, value));
  if (gone.length === 0) return withdrawn.length > 0 ? withdrawn : undefined;
  const added = gone.flatMap((value) =>
    value === null ? [] : [{ value, at, list: shows(list, value), detail: shows(detail, value) }],
  );
  return [...withdrawn.filter((one) => isRecent(one, at)), ...added].slice(-MAX_VALUES);
}

/**
 * Returns a view, requested at `askedAt` (epoch ms), with its former values (`was`) instead of those that were withdrawn
 * within {@link MAX_LAG_MS} and that it shows for the first time. Returns the same object if there are none.
 */
export function withoutWithdrawn<V extends Shown>(
  view: V,
  was: Shown | null,
  { withdrawn = [], announced }: Snapshot,
  askedAt: number,
  kind: 'list' | 'detail' | 'closed',
): V {
  const isOutdated = (value: string | TrackingEntry | null): boolean =>
    value !== null &&
    !shows(announced, value) &&
    withdrawn.some(
      (one) => isRecent(one, askedAt) && (kind === 'closed' || !one[kind]) && isSame(one.value, value),
    );
  // A detail with an earlier dispatch date is compared with the dates of the list.
  const isDateOutdated = kind !== 'detail' && announced.dateOut === null && isOutdated(view.dateOut);
  if (!isDateOutdated && !view.tracking.some(isOutdated)) return view;
  return {
    ...view,
    dateOut: isDateOutdated ? (was?.dateOut ?? null) : view.dateOut,
    tracking: view.tracking.flatMap((entry) =>
      isOutdated(entry) ? pairUp(was?.tracking ?? [], [entry]).both.map(([former]) => former) : [entry],
    ),
  };
}

/** Returns whether the list, requested at `askedAt` (epoch ms), may be from before a dispatch that was revoked since. */
export function mayPrecedeDispatch(withdrawn: Snapshot['withdrawn'] = [], askedAt: number): boolean {
  return withdrawn.some((one) => typeof one.value === 'string' && !one.list && isRecent(one, askedAt));
}

function isRecent({ at }: Withdrawn, time: number): boolean {
  return time - at < MAX_LAG_MS;
}

function shows(view: Shown | null, value: string | TrackingEntry): boolean {
  return view !== null && [view.dateOut, ...view.tracking].some((one) => one !== null && isSame(one, value));
}

function isSame(a: string | TrackingEntry, b: string | TrackingEntry): boolean {
  if (typeof a === 'string' || typeof b === 'string')
    return typeof a === typeof b && sameTime(a as string, b as string);
  return a.number === b.number && a.link === b.link;
}
