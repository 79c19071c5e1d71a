/** Events that depend on the clock: job.due_soon, job.overdue (rule 15) and job.stalled (rule 20). Pure. */
import type { Snapshot } from '../snapshot.ts';
import { addWorkingDays, sameTime } from '../timestamps.ts';
import { checkOverdue, findDueTime, findEarliestDueTime, readDueTime } from './overdue.ts';
import { buildStep, type EventRules, type ObservationContext, type Step, type ViewResponse } from './step.ts';

/**
 * Emits the events whose time has come for a listed job. An event with a configured time is only marked
 * as emitted, without an event, if that time had come before tracking began or before the settings were changed.
 */
export function checkTimers(snapshot: Snapshot, response: ViewResponse, known: ObservationContext): Step {
  const { rules } = known;
  const overdue = checkOverdue(snapshot, response, known);
  if (!rules) return overdue;
  const { timers, ...before } = overdue.snapshot;
  const isChanged = timers !== rules.timers;
  const silent = known.baselineStartedAt === null || isChanged;
  const marked = isChanged ? withoutSilentMarks(before) : before;
  const today = rules.timers === '' ? marked : { ...marked, timers: rules.timers };
  const soon = checkDueSoon(today, response, rules, silent);
  const stalled = checkStalled(soon.snapshot, response, rules, silent);
  const events = [...soon.events, ...overdue.events, ...stalled.events];
  return { ...overdue, snapshot: stalled.snapshot, events };
}

/** Removes the marks that were set without an event: with other settings, its time may be still to come. */
function withoutSilentMarks({ silent, ...snapshot }: Snapshot): Snapshot {
  const { emitted, stay } = snapshot;
  const { dueSoonFor, ...others } = emitted;
  const { stalled: _, ...unmarked } = stay ?? { since: 0 };
  return {
    ...snapshot,
    emitted: dueSoonFor === silent?.dueSoonFor ? others : emitted,
    ...(stay && stay.since === silent?.stalledSince ? { stay: unmarked } : {}),
  };
}

/** Returns the time at which a listed job must be checked even if it does not change (epoch ms), or `undefined`. */
export function findNextTimer(snapshot: Snapshot, rules: EventRules | undefined): number | undefined {
  // Once that time has passed, a fetch of the zone is owed.
  const zoneAt = snapshot.owed === null ? findZoneTime(snapshot, rules) : undefined;
  const times = [
    zoneAt ?? findDueTime(snapshot)?.at,
    rules && findDueSoon(snapshot, rules)?.from,
    rules && findStalled(snapshot, rules)?.at,
    snapshot.forecast?.checkAt,
  ].filter((at) => at !== undefined);
  return times.length > 0 ? Math.min(...times) : undefined;
}

/**
 * Returns the earliest time at which a listed job may be due soon or overdue (epoch ms), if the zone of its location is
 * unknown because its detail was never read. Otherwise `undefined`.
 */
export function findZoneTime(snapshot: Snapshot, rules: EventRules | undefined): number | undefined {
  const dueAt = findEarliestDueTime(snapshot);
  const soon = rules && findDueSoon(snapshot, rules);
  return dueAt === undefined || !soon ? dueAt : Math.min(dueAt, soon.earliest);
}

type Outcome = Pick<Step, 'snapshot' | 'events'>;

/** Emits job.due_soon once per due date, from the lead time before the due time until the due time. */
function checkDueSoon(
  snapshot: Snapshot,
  response: ViewResponse,
  rules: EventRules,
  silent: boolean,
): Outcome {
  const due = findDueSoon(snapshot, rules);
  if (!due || response.requestedAt <= (silent ? due.earliest : due.from)) return { snapshot, events: [] };
  const { dateDue: dueSoonFor } = due;
  const marks = snapshot.silent;
  const after = {
    ...snapshot,
    emitted: { ...snapshot.emitted, dueSoonFor },
    ...((silent || marks) && { silent: { ...marks, dueSoonFor: silent ? dueSoonFor : undefined } }),
  };
  if (silent || response.requestedAt > due.at) return { snapshot: after, events: [] };
  const dueAt = new Date(due.at).toISOString();
  return buildStep(after, response, due.from, [{ type: 'job.due_soon', changes: {}, dueAt, zone: due.zone }]);
}

/** Returns the time from which a listed job is due soon, and its due time (epoch ms). `earliest`: in any zone. */
function findDueSoon(snapshot: Snapshot, { dueSoonMs }: EventRules) {
  if (dueSoonMs === null) return undefined;
  const due = readDueTime(snapshot);
  if (!due || sameTime(snapshot.emitted.dueSoonFor ?? null, due.dateDue)) return undefined;
  const earliest = (findEarliestDueTime(snapshot) ?? due.at) - dueSoonMs;
  return { ...due, earliest, from: due.at - dueSoonMs };
}

/** Emits job.stalled once per stay in a status. */
function checkStalled(
  snapshot: Snapshot,
  response: ViewResponse,
  rules: EventRules,
  silent: boolean,
): Outcome {
  const stalled = findStalled(snapshot, rules);
  if (!stalled || response.requestedAt <= stalled.at) return { snapshot, events: [] };
  const { since, status, workingDays, at, zone } = stalled;
  const { attention } = snapshot.stay ?? {};
  const after: Snapshot = { ...snapshot, stay: { since, ...(attention && { attention }), stalled: true } };
  if (silent) {
    return { snapshot: { ...after, silent: { ...after.silent, stalledSince: since } }, events: [] };
  }
  const inStatusSince = new Date(since).toISOString();
  return buildStep(after, response, at, [
    { type: 'job.stalled', changes: {}, ...{ status, inStatusSince, workingDays, zone } },
  ]);
}

/** Returns when a listed, undispatched job is stalled in its status (epoch ms). */
function findStalled({ list, emitted, detail, stay }: Snapshot, rules: EventRules) {
  if (!list?.status || list.dateOut !== null || emitted.dateOut !== null) return undefined;
  const workingDays = rules.stalledAfter(list.status);
  if (!stay || stay.stalled || workingDays === null) return undefined;
  const end = addWorkingDays(stay.since, workingDays, detail?.timezone ?? null);
  return { ...end, since: stay.since, status: list.status, workingDays };
}
