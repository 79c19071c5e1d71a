/** Settings of tracking, and the times at which a job is checked again. Pure. */
import { backoff } from '../retry.ts';
import type { EventRules } from './diff/step.ts';
import type { IndexEntry, Phase } from './job-index.ts';
import type { Snapshot } from './snapshot.ts';

/** Timings and budgets of tracking. docs/truth.md names the rule for each. */
export interface TrackingSettings {
  /**
   * Time after which a second, equal verdict confirms a negative one (cancelled, unavailable), in seconds.
   */
  readonly confirmAfterSeconds: number;
  /**
   * Gaps between fetches of a job that left the list (seconds). The last one repeats. Settling ends after
   * `settlingDays`.
   */
  readonly settlingScheduleSeconds: readonly number[];
  readonly settlingDays: number;
  /**
   * Time between sweeps: reads of the newest closed jobs to find those created and delisted between two
   * polls (seconds).
   */
  readonly sweepSeconds: number;
  /** Maximum number of jobs fetched one by one in a poll. The others wait for the next poll. */
  readonly fetchesPerPoll: number;
  /**
   * Maximum number of jobs whose snapshots newer code upgrades in a poll (rule 6). The others follow in the
   * next polls.
   */
  readonly upgradesPerPoll: number;
  /** Number of consecutive failed polls after which account.poll_failing is emitted. */
  readonly failuresBeforeAlarm: number;
}

/** Settings of a production account. */
export const DEFAULT_TRACKING: TrackingSettings = {
  confirmAfterSeconds: 900,
  settlingScheduleSeconds: [300, 1800, 7200, 21_600, 86_400],
  settlingDays: 7,
  sweepSeconds: 900,
  fetchesPerPoll: 60,
  upgradesPerPoll: 10_000,
  failuresBeforeAlarm: 3,
};

/** Maximum time between retries of a failing fetch (seconds). */
const MAX_RETRY_SECONDS = 900;
const LAST_LOOK_TRIES = 10;
const LAST_LOOK_MS = 86_400_000;

/** Inputs of the schedule. */
export interface ScheduleContext {
  /** Start of this poll (epoch ms). */
  readonly startedAt: number;
  readonly pollIntervalSeconds: number;
  readonly settings: TrackingSettings;
  /** Version of the fingerprints in the index: see views.ts. */
  readonly projectionVersion: number;
  /** Absent: no configured events. */
  readonly rules?: EventRules | undefined;
}

/**
 * Reschedules a fetch without an answer, at increasing intervals. The last fetch of a settled job is
 * retried for a day and at least {@link LAST_LOOK_TRIES} times: polling may have paused past its time.
 */
export function rescheduleFailedFetch(snapshot: Snapshot, context: ScheduleContext): Snapshot {
  const { startedAt, pollIntervalSeconds } = context;
  const tries = (snapshot.owed?.tries ?? 0) + 1;
  if (
    snapshot.settling &&
    tries >= LAST_LOOK_TRIES &&
    startedAt >= settledAt(snapshot.settling, context) + LAST_LOOK_MS
  ) {
    return { ...snapshot, owed: null };
  }
  const backOffSeconds = backoff(tries - 1, { first: pollIntervalSeconds, max: MAX_RETRY_SECONDS });
  return { ...snapshot, owed: { tries, at: startedAt + backOffSeconds * 1000 } };
}

/** Reschedules a listed job whose views disagree, at increasing intervals: the disagreement may last long. */
export function rescheduleDisagreement(snapshot: Snapshot, context: ScheduleContext): Snapshot {
  const tries = snapshot.owed?.tries ?? 0;
  return { ...snapshot, owed: { tries: tries + 1, at: afterFetches(tries, context) } };
}

/** Reschedules a missing job after inconclusive answers. A suspicion waits for its confirmation. */
export function rescheduleInvestigation(
  snapshot: Snapshot,
  found: Omit<NonNullable<Snapshot['departure']>, 'tries'>,
  context: ScheduleContext,
): Snapshot {
  const tries = snapshot.departure?.tries ?? 0;
  const { suspected } = found;
  const confirmAt = suspected ? suspected.at + context.settings.confirmAfterSeconds * 1000 : 0;
  return {
    ...snapshot,
    departure: { tries: tries + 1, ...found },
    owed: { tries: 0, at: confirmAt > context.startedAt ? confirmAt : afterFetches(tries, context) },
  };
}

/**
 * Reschedules a confirmed suspicion that is held back (rule 10). Its events require fresh answers, so the
 * job is investigated again.
 */
export function rescheduleHeldSuspicion(snapshot: Snapshot, context: ScheduleContext): Snapshot {
  return {
    ...snapshot,
    owed: { tries: 0, at: context.startedAt + context.settings.confirmAfterSeconds * 1000 },
  };
}

/**
 * Reschedules a job that left the list after a fetch (rule 7). The gaps grow, and the last fetch is at the
 * end of the settling time. If something `moved`, both restart.
 */
export function settled(snapshot: Snapshot, moved: boolean, context: ScheduleContext): Snapshot {
  const { startedAt } = context;
  const before = snapshot.settling;
  const settling =
    before && !moved
      ? { since: before.since, fetches: before.fetches + 1 }
      : { since: startedAt, fetches: 0 };
  const end = settledAt(settling, context);
  return {
    ...snapshot,
    settling,
    owed: startedAt >= end ? null : { tries: 0, at: Math.min(end, afterFetches(settling.fetches, context)) },
  };
}

function settledAt(settling: { readonly since: number }, { settings }: ScheduleContext): number {
  return settling.since + settings.settlingDays * 86_400_000;
}

function afterFetches(fetches: number, { startedAt, settings }: ScheduleContext): number {
  const schedule = settings.settlingScheduleSeconds;
  return startedAt + 1000 * (schedule[Math.min(fetches, schedule.length - 1)] ?? MAX_RETRY_SECONDS);
}

/** Returns the phase of a job. */
export function toPhase({ settling, departure }: Snapshot): Phase {
  if (settling !== null) return 'settling';
  if (departure === null) return 'listed';
  if (departure.suspected !== null) return 'suspected';
  return departure.contradictory ? 'contradictory' : 'departed';
}

/** Returns whether a job's entry is due at a time (epoch ms). */
export function isDue(entry: IndexEntry | undefined, at: number): boolean {
  return entry !== undefined && entry.nextCheckAt > 0 && entry.nextCheckAt * 1000 <= at;
}
