/** Dispatch dates and parcels that are no longer valid, but that a view that is behind can still show (rule 4). Pure. */
import type { Snapshot, Withdrawn } from '../snapshot.ts';
import { sameTime } from '../timestamps.ts';
import { type ListView, pairUp } from '../views.ts';
import { MAX_LAG_MS } from './lag.ts';

/** Maximum number of values kept. */
const MAX_VALUES = 8;

type DispatchValues = Pick<ListView, 'dateOut' | 'tracking'>;
type Value = Withdrawn['value'];

/** Adds the emitted values that `now` no longer contains. `at` is the time of the response that shows this (epoch ms). */
export function addWithdrawn(
  { withdrawn, emitted: was, list, detail }: Snapshot,
  now: DispatchValues,
  at: number,
): Snapshot['withdrawn'] {
  const gone = listValues(was).filter((value) => !contains(now, value));
  if (gone.length === 0) return withdrawn;
  const added = gone.map((value) => ({
    value,
    at,
    list: contains(list, value),
    detail: contains(detail, value),
  }));
  return [...(withdrawn ?? []).filter((one) => isRecent(one, at)), ...added].slice(-MAX_VALUES);
}

/**
 * Returns a view, requested at `requestedAt` (epoch ms), with its former values (`was`) instead of those that were withdrawn
 * within {@link MAX_LAG_MS} and that it shows for the first time. Returns the same object if there are none. `kind` is absent for
 * entries of the full list, whose former values are not known.
 */
export function withoutWithdrawn<V extends DispatchValues>(
  view: V,
  was: DispatchValues | null,
  { withdrawn, emitted }: Snapshot,
  requestedAt: number,
  kind?: 'list' | 'detail',
): V {
  const isOutdated = (value: Value): boolean =>
    !contains(emitted, value) &&
    withdrawn?.some(
      (one) => isRecent(one, requestedAt) && !(kind && one[kind]) && isSame(one.value, value),
    ) === true;
  // A detail with an earlier dispatch date is compared with the dates of the list.
  const isDateOutdated =
    kind !== 'detail' && emitted.dateOut === null && view.dateOut !== null && isOutdated(view.dateOut);
  if (!isDateOutdated && !view.tracking.some(isOutdated)) return view;
  const former = was ?? { dateOut: null, tracking: [] };
  return {
    ...view,
    dateOut: isDateOutdated ? former.dateOut : view.dateOut,
    tracking: view.tracking.flatMap((entry) =>
      isOutdated(entry) ? pairUp(former.tracking, [entry]).both.map(([own]) => own) : [entry],
    ),
  };
}

/** Returns whether the list, requested at `requestedAt` (epoch ms), may be from before a dispatch that was revoked since. */
export function mayPrecedeDispatch(withdrawn: Snapshot['withdrawn'], requestedAt: number): boolean {
  const isUnseenDate = (one: Withdrawn): boolean => typeof one.value === 'string' && !one.list;
  return withdrawn?.some((one) => isUnseenDate(one) && isRecent(one, requestedAt)) === true;
}

function isRecent({ at }: Withdrawn, time: number): boolean {
  return time - at < MAX_LAG_MS;
}

function contains(view: DispatchValues | null, value: Value): boolean {
  return view !== null && listValues(view).some((one) => isSame(one, value));
}

function listValues({ dateOut, tracking }: DispatchValues): Value[] {
  return [...(dateOut === null ? [] : [dateOut]), ...tracking];
}

function isSame(a: Value, b: Value): boolean {
  if (typeof a === 'string') return typeof b === 'string' && sameTime(a, b);
  return typeof b !== 'string' && a.number === b.number && a.link === b.link;
}
