/** Equality of the fields that both views of a job have (rule 6). Pure. */
import type { LaggingField, SharedField } from '../snapshot.ts';
import { sameTime } from '../timestamps.ts';
import type { ListView } from '../views.ts';

export type SharedValues = Pick<ListView, SharedField>;
type LaggingValues = SharedValues & Partial<Pick<ListView, 'status' | 'dateOut'>>;

/** Fields that a detail may omit although the job has a value: `null` in the detail is "not given". */
export const OMITTED_IN_DETAIL = [
  'orderNumber',
  'orderGroup',
  'orderGroupSequence',
] as const satisfies readonly SharedField[];

/**
 * Returns whether a field of one view is unchanged. A flag that is missing on one side is unknown, and not
 * a change.
 */
export function isUnchangedField(field: LaggingField, a: LaggingValues, b: LaggingValues): boolean {
  const flag = field === 'canEdit' || field === 'mustDate';
  return (flag && (a[field] === null || b[field] === null)) || isEqualField(field, a, b);
}

/**
 * Returns whether both views have the same value of a field. A flag that only one side contains is not
 * equal.
 */
export function isEqualField(field: LaggingField, a: LaggingValues, b: LaggingValues): boolean {
  if (field === 'dateDue') return sameTime(a.dateDue, b.dateDue);
  return field === 'dateOut' ? sameTime(a.dateOut ?? null, b.dateOut ?? null) : a[field] === b[field];
}
