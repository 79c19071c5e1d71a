/** One job processed by a poll: its stored state, its new state, and its events. */
import type { EventDraft } from '../events/event.ts';
import { readDueTime } from './diff/overdue.ts';
import type { EventRules, ListEntry, ObservationContext, Step } from './diff/step.ts';
import { checkTimers, findNextTimer, findZoneTime } from './diff/timers.ts';
import { applyListEntry } from './diff.ts';
import type { Duration, RiskResult } from './durations.ts';
import { decideResult } from './forecast.ts';
import { type MembershipChange, toMembership } from './groups.ts';
import type { IndexEntry } from './job-index.ts';
import { followPath } from './path.ts';
import { type Count, countEvents } from './rollups.ts';
import { toPhase } from './schedule.ts';
import type { Snapshot } from './snapshot.ts';
import { fingerprint } from './views.ts';

/** A job in processing. Each observation updates the snapshot and adds events. */
export interface Work {
  readonly jobNumber: number;
  /** Entry in the index. `undefined` for a job that was not in it. */
  readonly entry: IndexEntry | undefined;
  readonly stored: Snapshot | undefined;
  /** Entry of the job in the list of this poll. */
  listed?: ListEntry;
  snapshot: Snapshot;
  readonly events: EventDraft[];
  /** Counts that the events add to the roll-ups: see {@link countWork}. */
  counts?: readonly Count[];
  /** Durations and the result that the events add to the usual durations of the account: see {@link countWork}. */
  durations?: readonly Duration[];
  result?: RiskResult | undefined;
  /** Status names that were observed. */
  readonly observedStatuses: Step['observedStatuses'][number][];
  /** Fingerprint of the list view in `snapshot`. For a settling job: that of its last entry in the list with closed jobs. */
  fingerprint: number;
  /** Time since which a detail fetch is owed (epoch ms). Absent if none is owed now, or none is possible. */
  owedSince?: number;
  /** Set if a change of the job is probable: its detail is fetched before others. */
  hinted?: true;
  /** Entry of a settling job in the list with closed jobs, if it differs from the emitted values. */
  hint?: ListEntry;
  /** Turn in the daily rotation (epoch ms), if the detail is fetched because of it, without a reason of the job's own. */
  turn?: number;
  /**
   * Set if the job is not tracked: an old job that was only hidden, or one delisted before the baseline was
   * complete.
   */
  untracked?: 'keep snapshot' | 'delete snapshot';
}

/** Returns the work of a stored job. `entry`: its entry in the index. */
export function createWork(stored: Snapshot, entry: IndexEntry | undefined): Work {
  const { jobNumber } = stored;
  const print = entry?.fingerprint ?? 0;
  return { jobNumber, entry, stored, snapshot: stored, events: [], observedStatuses: [], fingerprint: print };
}

/** Applies the result of an observation. */
export function addStep(work: Work, step: Step): void {
  work.snapshot = step.snapshot;
  work.events.push(...step.events);
  work.observedStatuses.push(...step.observedStatuses);
}

/**
 * Applies the list entry of a job. An unproven job waits for its detail: job.created must come first, and a
 * job that was only hidden gets no events.
 */
export function applyListed(work: Work, known: ObservationContext): void {
  const { jobNumber, listed, snapshot } = work;
  if (!listed) return;
  if (snapshot.unproven !== null) {
    if (snapshot.list !== null) return;
    // Until now only the number was known: this is the job's first list entry.
    const stay = { since: listed.response.respondedAt };
    work.snapshot = { ...snapshot, list: listed.view, listAt: known.startedAt, stay };
    work.fingerprint = fingerprint(listed.view);
    return;
  }
  addStep(work, applyListEntry(jobNumber, snapshot, listed, known));
  addStep(work, checkTimers(work.snapshot, listed.response, known));
  readDetailOnceDue(work, listed.response.requestedAt, known);
  work.fingerprint = fingerprint(listed.view);
}

/**
 * Owes a detail fetch for a job whose detail was never read: once it may be due soon or overdue, because that depends on the zone of
 * its location, and once it is overdue, because its lines show why (rule 15).
 */
function readDetailOnceDue(work: Work, requestedAt: number, { startedAt, rules }: ObservationContext): void {
  const { snapshot } = work;
  const earliest = findZoneTime(snapshot, rules);
  const due = snapshot.detail === null ? readDueTime(snapshot) : undefined;
  if (earliest !== undefined && requestedAt > earliest) work.hinted = true;
  else if (!due || requestedAt <= due.at) return;
  if (snapshot.owed === null) work.snapshot = { ...snapshot, owed: { at: startedAt, tries: 0 } };
}

/** Returns the index entry for a work's snapshot. `undefined` if the job is no longer tracked. */
export function toIndexEntry(work: Work, rules?: EventRules): IndexEntry | undefined {
  const { snapshot } = work;
  const phase = toPhase(snapshot);
  if (work.untracked || (phase === 'settling' && snapshot.owed === null)) return undefined;
  const times = snapshot.owed === null ? [] : [snapshot.owed.at];
  if (phase === 'listed') times.push(findNextTimer(snapshot, rules) ?? Number.POSITIVE_INFINITY);
  const next = Math.min(...times, Number.POSITIVE_INFINITY);
  // Rounded down: a check up to a second too early has no effect, a late one is a delay.
  const nextCheckAt = next === Number.POSITIVE_INFINITY ? 0 : Math.max(0, Math.floor(next / 1000));
  return { fingerprint: work.fingerprint, phase, nextCheckAt };
}

/** Events that change the phase of a job in its order group. */
const MEMBERSHIP_EVENTS: readonly EventDraft['type'][] = [
  'job.created',
  'job.dispatched',
  'job.dispatch_revoked',
  'job.closed',
  'job.cancelled',
  'job.unavailable',
  'job.reopened',
];

/**
 * Returns the membership changes of a work in order groups (rule 18). `phase` is `undefined` in a group
 * that the job leaves.
 */
export function membershipChanges(work: Work): MembershipChange[] {
  const before = toMembership(work.stored);
  const after = work.untracked ? undefined : toMembership(work.snapshot);
  if (before?.orderGroup === after?.orderGroup && before?.phase === after?.phase) return [];
  // A dispatch that counts as emitted does not complete a group by itself, even if the job was in another group before.
  const isNew = before?.orderGroup !== after?.orderGroup;
  const silent = isNew && after?.phase === 'dispatched' && work.events.length === 0;
  // The membership changed after the times of the events that change it. Other events can have later times.
  const times = work.events.flatMap((event) =>
    'job' in event.data && changesMembership(event) && event.data.observed.since !== null
      ? [Date.parse(event.data.observed.since)]
      : [],
  );
  const since = times.length === 0 ? null : Math.max(...times);
  return [
    ...(before && before.orderGroup !== after?.orderGroup
      ? [{ orderGroup: before.orderGroup, phase: undefined, since, silent }]
      : []),
    ...(after ? [{ ...after, since, silent }] : []),
  ];
}

/** Returns whether an event changes the phase or the order group of its job. */
function changesMembership({ type, data }: EventDraft): boolean {
  if (type === 'job.updated') return 'orderGroup' in data.changes;
  return MEMBERSHIP_EVENTS.includes(type);
}

/**
 * Returns whether a job has changes to write. `listAt` and `detailAt`, the times of the last observations,
 * do not count: earlier times are also true, and an observation without a change is not worth a write.
 */
export function isChanged(work: Work, rules?: EventRules): boolean {
  if (work.events.length > 0 || work.untracked || !work.stored) return true;
  if (JSON.stringify(toIndexEntry(work, rules)) !== JSON.stringify(work.entry)) return true;
  return comparable(work.snapshot) !== comparable(work.stored);
}

function comparable(snapshot: Snapshot): string {
  return JSON.stringify({ ...snapshot, listAt: 0, detailAt: 0 });
}

/** Sets on a work what its events count, and on its snapshot what they counted. Call once per work. */
export function countWork(work: Work): void {
  if (work.events.length === 0) return;
  const { snapshot, events } = work;
  const { counts, counted } = countEvents(events, snapshot.detail?.timezone ?? null, snapshot.counted);
  const { path, durations } = followPath(snapshot.path ?? [], events);
  const { forecast, result } = decideResult(snapshot, events);
  work.counts = counts;
  work.durations = durations;
  work.result = result;
  const { counted: _, path: __, forecast: ___, ...rest } = snapshot;
  work.snapshot = {
    ...rest,
    ...(path.length > 0 && snapshot.emitted.dateOut === null ? { path } : {}),
    ...(forecast === undefined ? {} : { forecast }),
    ...(counted === undefined ? {} : { counted }),
  };
}
