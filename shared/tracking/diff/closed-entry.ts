/** Dispatch and tracking of a delisted job in the list with closed jobs (rule 3). Pure. */
import type { Snapshot } from '../snapshot.ts';
import { sameTime } from '../timestamps.ts';
import { type ListView, pairUp } from '../views.ts';
import { applyDispatchDate, applyTracking } from './dispatch.ts';
import { buildStep, type Known, type Sighting, type Step, sinceListed } from './step.ts';
import { withoutWithdrawn } from './withdrawn.ts';

/**
 * Applies the entry of a job whose detail cannot be read: a first dispatch date, and first tracking. Every
 * other change waits for the detail, because this list can lag behind the list of active jobs. After a revoked dispatch, so do these.
 */
export function applyClosedEntry(before: Snapshot, { view: entry, look }: Sighting, known: Known): Step {
  if (before.returned) return buildStep(before, look, sinceListed(before, known), []);
  const view = withoutWithdrawn(entry, null, before, look.askedAt);
  const zone = before.detail?.timezone ?? null;
  const dispatch = applyDispatchDate(before.announced.dateOut, null, view.dateOut, zone);
  const tracking = applyTracking(before.announced.tracking, null, view.tracking, []);
  const announced = { ...before.announced, dateOut: dispatch.dateOut, tracking: tracking.emitted };
  const events = [...dispatch.events, ...tracking.events];
  return buildStep({ ...before, announced }, look, sinceListed(before, known), events);
}

/** Returns whether an entry shows dispatch or tracking that was not emitted. */
export function showsMore({ announced }: Snapshot, { dateOut, tracking }: ListView): boolean {
  const { both, added } = pairUp(announced.tracking, tracking);
  const relinked = both.some(([one, other]) => other.link !== null && one.link !== other.link);
  return (dateOut !== null && !sameTime(dateOut, announced.dateOut)) || added.length > 0 || relinked;
}
