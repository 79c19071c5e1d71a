/** Dispatch and tracking of a delisted job in the list with closed jobs (rule 3). Pure. */
import type { Snapshot } from '../snapshot.ts';
import { sameTime } from '../timestamps.ts';
import { type ListView, pairUp } from '../views.ts';
import { applyDispatchDate, applyTracking } from './dispatch.ts';
import { buildStep, type ListEntry, type ObservationContext, type Step, sinceListed } from './step.ts';
import { withoutWithdrawn } from './withdrawn.ts';

/**
 * Applies the entry of a job whose detail cannot be read: a first dispatch date, and first tracking. Every
 * other change waits for the detail, because this list can lag behind the list of active jobs. After a revoked dispatch, so do these.
 */
export function applyClosedEntry(
  before: Snapshot,
  { view: entry, response }: ListEntry,
  known: ObservationContext,
): Step {
  if (before.returned) return buildStep(before, response, sinceListed(before, known), []);
  const view = withoutWithdrawn(entry, null, before, response.requestedAt);
  const zone = before.detail?.timezone ?? null;
  const dispatch = applyDispatchDate(before.emitted.dateOut, null, view.dateOut, zone);
  const tracking = applyTracking(before.emitted.tracking, null, view.tracking, []);
  const emitted = { ...before.emitted, dateOut: dispatch.dateOut, tracking: tracking.emitted };
  const events = [...dispatch.events, ...tracking.events];
  return buildStep({ ...before, emitted }, response, sinceListed(before, known), events);
}

/** Returns whether an entry shows dispatch or tracking that was not emitted. */
export function hasUnemittedValues({ emitted }: Snapshot, { dateOut, tracking }: ListView): boolean {
  const { both, added } = pairUp(emitted.tracking, tracking);
  const relinked = both.some(([one, other]) => other.link !== null && one.link !== other.link);
  return (dateOut !== null && !sameTime(dateOut, emitted.dateOut)) || added.length > 0 || relinked;
}
