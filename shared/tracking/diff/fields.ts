/** Comparison of the fields and lines of a job: see diff.ts. Pure. */

import {
  isListAuthoritative,
  type LaggingField,
  type SharedField,
  type Snapshot,
  withLaterValues,
} from '../snapshot.ts';
import { type DetailView, type ListView, SHARED_FIELDS } from '../views.ts';
import { isEqualField, isUnchangedField, OMITTED_IN_DETAIL, type SharedValues } from './equality.ts';
import type { CaughtUp } from './lag.ts';
import type { EventContent } from './step.ts';

/**
 * Fills in what a view omits this time, which is not a change: the last known status and flags stay.
 * `silent`: a known value was omitted.
 */
export function carryForwardMissing<V extends Pick<ListView, 'status' | 'canEdit' | 'mustDate'>>(
  was: V | null,
  view: V,
): { view: V; silent: boolean } {
  const merged = {
    ...view,
    status: view.status ?? was?.status ?? null,
    canEdit: view.canEdit ?? was?.canEdit ?? null,
    mustDate: view.mustDate ?? was?.mustDate ?? null,
  };
  const silent =
    merged.status !== view.status || merged.canEdit !== view.canEdit || merged.mustDate !== view.mustDate;
  return { view: merged, silent };
}

/**
 * Returns a detail with the values that it omits and the list contains. After the departure, and for a job that was never
 * listed, the detail's own former value comes first, so that such a value is never cleared.
 */
export function fillFromList(
  detail: DetailView,
  before: Pick<Snapshot, 'list' | 'detail' | 'settling' | 'detailPending'>,
): DetailView {
  const list: SharedValues | null = before.list;
  const own: SharedValues | null = list && isListAuthoritative(before) ? null : before.detail;
  const keep = <F extends (typeof OMITTED_IN_DETAIL)[number]>(field: F): SharedValues[F] =>
    (detail as SharedValues)[field] ?? own?.[field] ?? list?.[field] ?? null;
  return {
    ...detail,
    orderNumber: keep('orderNumber'),
    orderGroup: keep('orderGroup'),
    orderGroupSequence: keep('orderGroupSequence'),
  };
}

/**
 * Returns the shared fields of a view whose change must be emitted. `passing`: the other view was
 * authoritative until now. Its values are not emitted again, and fields of this view can be unsure.
 */
export function findChangedFields(
  was: SharedValues,
  next: SharedValues,
  passing: { readonly other: SharedValues | null; readonly unsure: readonly SharedField[] } | undefined,
): SharedField[] {
  return SHARED_FIELDS.filter(
    (field) =>
      !isUnchangedField(field, was, next) &&
      !(passing?.other && isEqualField(field, passing.other, next)) &&
      !passing?.unsure.includes(field),
  );
}

/**
 * Returns the fields of the other view that can no longer be compared after the authoritative view changed
 * from `was` to `next`.
 */
export function findIncomparable(
  other: SharedValues | null,
  was: SharedValues,
  next: SharedValues,
  unsure: readonly SharedField[],
): readonly SharedField[] {
  if (other === null) return [];
  return SHARED_FIELDS.filter((field) =>
    isUnchangedField(field, was, next)
      ? unsure.includes(field)
      : !isUnchangedField(field, was, other) && !isUnchangedField(field, next, other),
  );
}

export interface DetailFields {
  readonly changes: readonly EventContent[];
  /** Shared fields stored with another value than the current detail contains. */
  readonly kept: Partial<Pick<DetailView, LaggingField>>;
  readonly unsure: readonly SharedField[];
  /** Values that the detail of a delisted job changed, while the list had the former value: its entry is outdated. */
  readonly followed: Partial<SharedValues>;
}

/**
 * Applies the detail of a listed job, where the list is authoritative for the shared fields. A value that
 * changed only in the detail is not stored. It is thus found as a change if the job leaves the list before
 * the list contains it. The same applies to a status if it is undecided whether the list has shown a later one.
 */
export function compareListedDetail(
  { list, detail, unsure }: Snapshot,
  next: DetailView,
  { repeated, undecided }: CaughtUp,
): DetailFields {
  if (detail === null) return { changes: [], kept: {}, unsure: [], followed: {} };
  const apart = SHARED_FIELDS.filter(
    (field) => !isUnchangedField(field, detail, next) && !(list && isEqualField(field, list, next)),
  );
  const kept: LaggingField[] = apart.filter((field) => !unsure.includes(field) && !repeated.includes(field));
  // The views can name a status differently. Only if they named it alike is the detail certainly ahead of the list.
  const isAhead = list?.status === detail.status && next.status !== detail.status;
  if (undecided.includes('status') || isAhead) kept.push('status');
  return {
    changes: [],
    kept: pick(detail, kept),
    // After a change, the value is the detail's own again.
    unsure: unsure.filter(
      (field) => isUnchangedField(field, detail, next) && !(list && isUnchangedField(field, list, next)),
    ),
    followed: {},
  };
}

/**
 * Applies the detail of a job that left the list: the detail is authoritative. A value that the list has shown before
 * is not a change. If that is undecided, the value is not stored: the next comparison then finds it as a change again.
 */
export function compareDelistedDetail(
  before: Snapshot,
  next: DetailView,
  { from, repeated, undecided }: CaughtUp,
): DetailFields {
  const { list, detail, unsure } = before;
  const passing = isListAuthoritative(before) ? { other: list, unsure } : undefined;
  if (detail === null) return { changes: [], kept: {}, unsure: [], followed: {} };
  // For a job that was never listed, a first value is no change: the detail may have omitted it before.
  const filled = list === null ? OMITTED_IN_DETAIL.filter((field) => detail[field] === null) : [];
  const silent = [...repeated, ...undecided, ...filled];
  const base = { ...detail, ...from, ...pick(next, silent) };
  // A field of which the list is ahead stays comparable.
  const incomparable = findIncomparable(list, base, next, passing ? [] : unsure);
  const statusMoved = base.status !== next.status && !(passing && list?.status === next.status);
  const changed = findChangedFields(base, next, passing);
  return {
    changes: buildSharedEvents(changed, base, next, statusMoved),
    kept: pick(detail, undecided),
    unsure: incomparable,
    followed: pick(
      next,
      // A list without the value may never contain it.
      changed.filter((field) => list && list[field] !== null && isEqualField(field, list, base)),
    ),
  };
}

function pick<T extends object, K extends keyof T>(view: T, fields: readonly K[]): Pick<T, K> {
  return Object.fromEntries(fields.map((field) => [field, view[field]])) as Pick<T, K>;
}

/**
 * Returns the changes in the list. `settled`: the job's snapshot, if the job returns to the list and the
 * detail was authoritative.
 */
export function buildListEvents(
  was: ListView,
  next: ListView,
  settled: Snapshot | undefined,
): EventContent[] {
  const other = settled?.detail ? withLaterValues(settled.detail, settled.ahead) : null;
  const origin: Changes =
    was.originCode === next.originCode ? {} : { originCode: { from: was.originCode, to: next.originCode } };
  return buildSharedEvents(
    findChangedFields(was, next, settled && { other, unsure: settled.unsure }),
    was,
    next,
    was.status !== next.status && other?.status !== next.status,
    origin,
  );
}

export type Changes = Record<string, { from: unknown; to: unknown }>;

/** Returns the changes of the fields that both views have. `more` is added to job.updated. */
export function buildSharedEvents<V extends SharedValues & { readonly status: string | null }>(
  news: readonly SharedField[],
  was: V,
  next: V,
  statusMoved: boolean,
  more: Changes = {},
): EventContent[] {
  const changed = (...fields: SharedField[]): Changes =>
    Object.fromEntries(
      fields
        .filter((field) => news.includes(field))
        .map((field) => [field, { from: was[field], to: next[field] }]),
    );
  const updated = { ...changed('description', 'orderNumber', 'orderGroup', 'orderGroupSequence'), ...more };
  const due = changed('dateDue', 'mustDate');
  const found: EventContent[] = [];
  if (Object.keys(updated).length > 0) found.push({ type: 'job.updated', changes: updated });
  if (Object.keys(due).length > 0) found.push({ type: 'job.due_date_changed', changes: due });
  if (news.includes('canEdit')) {
    const changes = { canEdit: { from: was.canEdit, to: next.canEdit } };
    found.push({ type: next.canEdit ? 'job.unlocked' : 'job.locked', changes });
  }
  if (statusMoved) {
    found.push({ type: 'job.status_changed', changes: { status: { from: was.status, to: next.status } } });
  }
  return found;
}

/** Adds changes to the job.updated of the events of one observation. */
export function addToUpdated(events: readonly EventContent[], changes: Changes): readonly EventContent[] {
  if (Object.keys(changes).length === 0) return events;
  const updated = events.find((event) => event.type === 'job.updated');
  return [
    { type: 'job.updated', changes: { ...updated?.changes, ...changes } },
    ...events.filter((event) => event !== updated),
  ];
}

export function buildLineEvents(was: DetailView | null, next: DetailView): EventContent[] {
  if (was === null) return [];
  const before = new Map(was.lines.map((line) => [line.jobLineId, line.status]));
  const lines = next.lines.flatMap(({ jobLineId, status }) => {
    const from = before.get(jobLineId);
    return from === undefined || from === status ? [] : [{ jobLineId, from, to: status }];
  });
  return lines.length === 0 ? [] : [{ type: 'job.line_status_changed', changes: {}, lines }];
}
