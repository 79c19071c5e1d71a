/**
 * A detail that is older than the list (rule 4): values that the list has already shown are no news when the detail
 * shows them later. Pure.
 */
import { CLOCK_TOLERANCE_MS } from '../clock-tolerance.ts';
import type { LaggingField, ListAhead, SharedField, Snapshot } from '../snapshot.ts';
import { readTimes } from '../timestamps.ts';
import { type DetailView, type ListView, SHARED_FIELDS } from '../views.ts';
import { isEqualField, isUnchangedField, OMITTED_IN_DETAIL } from './equality.ts';

/** Maximum number of values kept per field. */
const MAX_VALUES = 8;
/** A detail that was requested so much later is not older than the list was. */
export const MAX_LAG_MS = 3_600_000;
const FIELDS: readonly LaggingField[] = ['status', 'dateOut', ...SHARED_FIELDS];

/**
 * Adds the values to which the list changed. `at` is epoch ms. A field in which the views differed for another reason
 * is not comparable: see diff.ts. A withdrawn dispatch date is no value, since the detail decides on it.
 */
export function addListValues(
  { ahead, detail, list: was }: Snapshot,
  next: ListView,
  at: number,
): ListAhead | undefined {
  if (was === null) return ahead;
  const added = FIELDS.flatMap((field) => {
    if (isUnchangedField(field, was, next) || (field === 'dateOut' && next.dateOut === null)) return [];
    const known = ahead?.[field];
    const isApart = !known && detail !== null && !isUnchangedField(field, was, detail);
    if (isApart && !isDateBehind(field, was, next, detail)) return [];
    const values = [...(known?.values ?? (isApart ? [was[field]] : [])), next[field]].slice(-MAX_VALUES);
    return [[field, { before: known ? known.before : was[field], values, at }]];
  });
  return added.length === 0 ? ahead : { ...ahead, ...Object.fromEntries(added) };
}

/**
 * Returns whether a detail that was never equal to the list may be older than the list: both views mean the same dispatch, so the
 * detail can still show each date of the list.
 */
function isDateBehind(field: LaggingField, was: ListView, next: ListView, detail: DetailView): boolean {
  return field === 'dateOut' && was.dateOut !== null && !isUnchangedField(field, next, detail);
}

/**
 * Adds the revocation of the dispatch at the time `at` (epoch ms) to the dispatch dates that the detail has not shown yet.
 * `unseen`: the date that was revoked, if no detail has shown one.
 */
export function addRevocation(
  ahead: ListAhead | undefined,
  at: number,
  unseen: string | null,
): ListAhead | undefined {
  const dates = ahead?.dateOut ?? (unseen === null ? undefined : { before: null, values: [unseen] });
  if (!dates) return ahead;
  return { ...ahead, dateOut: { ...dates, values: [...dates.values, null].slice(-MAX_VALUES), at } };
}

/** How a detail relates to the values that the list showed before. */
export interface CaughtUp {
  /** Values that the detail has still not shown. */
  readonly ahead: ListAhead | undefined;
  /** Last values of the list, for fields that the detail changed to a later value: the change starts at them. */
  readonly from: Partial<Pick<DetailView, SharedField | 'dateOut'>>;
  /** Fields that changed to a value that the list has shown already. */
  readonly repeated: readonly LaggingField[];
  /** Fields that changed to a value of which it is unknown whether the list will show it, or had shown it before. */
  readonly undecided: readonly LaggingField[];
}

/**
 * Compares a detail with the values that the list showed since the detail before it. `given` is the detail as received,
 * without the values that it omits. A value that the list did not show is later if the detail is provably not older than the list was:
 * - it shows the dispatch, which the list lacked (`newer`),
 * - or the last value of another field that the list changed in a later poll,
 * - or it was requested {@link MAX_LAG_MS} after the list's last change. Then an unchanged value, or one that the list showed earlier, is later, too.
 */
export function catchUp(
  { ahead, detail: was }: Pick<Snapshot, 'ahead' | 'detail'>,
  next: DetailView,
  requestedAt: number,
  newer: boolean,
  given: DetailView = next,
): CaughtUp {
  if (!ahead) return { ahead, from: {}, repeated: [], undecided: [] };
  const left: Record<string, unknown> = {};
  const from: Record<string, unknown> = {};
  const repeated: LaggingField[] = [];
  const unknown = new Map<LaggingField, { readonly values: readonly unknown[]; readonly at: number }>();
  let listedUntil = 0;
  for (const field of FIELDS) {
    const listedValues = ahead[field];
    if (!listedValues) continue;
    const { before, values, at } = listedValues;
    // A value that the detail omits was filled in, and proves nothing. As long as it is not the list's, it is outdated.
    if (given[field] === null && OMITTED_IN_DETAIL.some((omitted) => omitted === field)) {
      if (requestedAt - at < MAX_LAG_MS || !isValue(field, values.at(-1), next)) left[field] = listedValues;
      continue;
    }
    const isUnchanged = was !== null && isValue(field, was[field], next);
    // A first detail with this value can be older than all changes, even if the last of them led back to it.
    const isBefore = was === null && isValue(field, before, next);
    const found = isUnchanged || isBefore ? -1 : values.findIndex((value) => isValue(field, value, next));
    // A first value that the list never had: the views differ for another reason.
    if (was === null && found < 0 && !isBefore) continue;
    const rest = values.slice(found + 1);
    const isOutdated = requestedAt - at < MAX_LAG_MS;
    if (found >= 0 && (isOutdated || rest.length === 0)) repeated.push(field);
    else if (found < 0 && was !== null && !isUnchanged) unknown.set(field, listedValues);
    if (rest.length === 0) listedUntil = Math.max(listedUntil, at);
    else if (isOutdated || (isUnchanged && !isValue(field, given[field], next)))
      left[field] = { before, values: rest, at };
    // It is not outdated: the value has changed back.
    else if ((isUnchanged || found >= 0) && field !== 'status') from[field] = rest.at(-1);
  }
  // A dispatch that was revoked in the list proves nothing, and neither does another date from before the revocation.
  const dates = unknown.get('dateOut');
  const isNewer =
    newer && (dates ? dates.values.at(-1) !== null || isDatedAfter(next, dates.at) : !left.dateOut);
  const undecided = [...unknown].flatMap(([field, { values, at }]) => {
    if (!isNewer && at >= listedUntil && requestedAt - at < MAX_LAG_MS) return [field];
    // The views name statuses differently, so that the detail's own change counts.
    if (field !== 'status') from[field] = values.at(-1);
    delete left[field];
    return [];
  });
  return { ahead: Object.keys(left).length > 0 ? (left as ListAhead) : undefined, from, repeated, undecided };
}

/** Returns whether a dispatch is dated after a time (epoch ms), even if clocks differ. */
function isDatedAfter({ dateOut, timezone }: DetailView, time: number): boolean {
  const out = dateOut === null ? undefined : readTimes(dateOut, timezone);
  return out !== undefined && out.earliest > time + CLOCK_TOLERANCE_MS;
}

function isValue(field: LaggingField, value: unknown, view: Pick<ListView, LaggingField>): boolean {
  return isEqualField(field, { ...view, [field]: value }, view);
}
