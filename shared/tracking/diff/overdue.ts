/** Overdue jobs (rule 15). Pure. */

import type { Snapshot } from '../snapshot.ts';
import { readTimes, sameTime } from '../timestamps.ts';
import { buildStep, type ObservationContext, type Step, type ViewResponse } from './step.ts';

/**
 * Emits job.overdue if a listed job is overdue and the event was not yet emitted for its due date (rule
 * 15). Overdue means undispatched in an observation requested after the due time.
 */
export function checkOverdue(snapshot: Snapshot, response: ViewResponse, known: ObservationContext): Step {
  const due = findOverdue(snapshot, response);
  if (!due) return { snapshot, events: [], observedStatuses: [] };
  const after = { ...snapshot, emitted: { ...snapshot.emitted, overdueFor: due.dateDue } };
  if (known.baselineStartedAt === null) return { snapshot: after, events: [], observedStatuses: [] };
  // At the due time the job was not overdue yet, whenever the due date was set.
  return buildStep(after, response, due.at, [
    { type: 'job.overdue', changes: {}, dueAt: new Date(due.at).toISOString(), zone: due.zone },
  ]);
}

/**
 * Returns when a listed job becomes overdue (epoch ms). Returns `undefined` if it is dispatched, has no due
 * date, or job.overdue was already emitted.
 */
export function findDueTime(snapshot: Snapshot): ReturnType<typeof readDueTime> {
  const { list, emitted } = snapshot;
  return list && sameTime(emitted.overdueFor, list.dateDue) ? undefined : readDueTime(snapshot);
}

/**
 * Returns the due time of a listed job (epoch ms), the zone in which it was read, and the due date in the list. `undefined` if
 * the job is dispatched or has no due date.
 */
export function readDueTime(snapshot: Snapshot) {
  const { list, emitted } = snapshot;
  if (!list?.dateDue || list.dateOut || emitted.dateOut !== null) return undefined;
  const reading = readTimes(list.dateDue, snapshot.detail?.timezone ?? null, { midnightIsEndOfDay: true });
  return reading && { dateDue: list.dateDue, at: reading.latest, zone: reading.zone };
}

/**
 * Returns the earliest time at which a listed job may be overdue (epoch ms), if its location's zone is
 * unknown because its detail was never read: the due time in UTC+14. Otherwise `undefined`.
 */
export function findEarliestDueTime(snapshot: Snapshot): number | undefined {
  const { list, detail } = snapshot;
  if (detail !== null || !list?.dateDue || !findDueTime(snapshot)) return undefined;
  const reading = readTimes(list.dateDue, null, { midnightIsEndOfDay: true });
  return reading && reading.earliest < reading.latest ? reading.earliest : undefined;
}

/** Returns the due time of a snapshot, if the observation was requested after it. */
function findOverdue(snapshot: Snapshot, response: ViewResponse): ReturnType<typeof findDueTime> {
  const due = findDueTime(snapshot);
  return due && response.requestedAt > due.at ? due : undefined;
}
