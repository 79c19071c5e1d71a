/** One job processed by a poll: its stored state, its new state, and the resulting writes. */

import type { EventDraft } from '../events/event.ts';
import { COMMIT_OVERHEAD_ACTIONS } from '../log/log.ts';
import { backoff } from '../retry.ts';
import { type AccountRef, keys } from '../storage/schema.ts';
import {
  estimateSize,
  MAX_ITEM_BYTES,
  MAX_TRANSACTION_ACTIONS,
  MAX_TRANSACTION_BYTES,
  type Write,
} from '../storage/table.ts';
import { checkOverdue, dueOf, type Known, type Sighting, type Step, seenInList } from './diff.ts';
import { type GroupBook, type MembershipChange, membershipOf } from './groups.ts';
import type { IndexEntry, JobIndex, Phase } from './job-index.ts';
import type { Count, RollupBook } from './rollups.ts';
import { putSnapshot, type Snapshot } from './snapshot.ts';
import { fingerprint } from './views.ts';

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
  readonly looksPerPoll: number;
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
  looksPerPoll: 60,
  upgradesPerPoll: 10_000,
  failuresBeforeAlarm: 3,
};

/** Maximum time between retries of a failing fetch (seconds). */
const MAX_RETRY_SECONDS = 900;
const LAST_LOOK_TRIES = 10;
const LAST_LOOK_MS = 86_400_000;

/**
 * Maximum number of new status names emitted for one job in one poll. They are events, and all events of a
 * job stay in one transaction.
 */
export const MAX_DISCOVERED = 10;

/** A job in processing. Each observation updates the snapshot and adds events. */
export interface Work {
  readonly jobNumber: number;
  /** Entry in the index. `undefined` for a job that was not in it. */
  readonly entry: IndexEntry | undefined;
  readonly stored: Snapshot | undefined;
  /** Entry of the job in the list of this poll. */
  listed?: Sighting;
  snapshot: Snapshot;
  readonly events: EventDraft[];
  /** Counts that the events add to the roll-ups: see {@link countWork}. */
  counts?: readonly Count[];
  /** Status names that were observed. */
  readonly shown: Step['shown'][number][];
  /** Fingerprint of the list view in `snapshot`. */
  fingerprint: number;
  /** Time since which a detail fetch is owed (epoch ms). Absent if none is owed now, or none is possible. */
  lookSince?: number;
  /**
   * Set if the job is not tracked: an old job that was only hidden, or one delisted before the baseline was
   * complete.
   */
  untracked?: 'keep snapshot' | 'delete snapshot';
}

/** Applies the result of an observation. */
export function addStep(work: Work, step: Step): void {
  work.snapshot = step.snapshot;
  work.events.push(...step.events);
  work.shown.push(...step.shown);
}

/**
 * Applies the list entry of a job. An unproven job waits for its detail: job.created must come first, and a
 * job that was only hidden gets no events.
 */
export function takeInList(work: Work, known: Known): void {
  const { jobNumber, listed, snapshot } = work;
  if (!listed) return;
  if (snapshot.unproven !== null) {
    if (snapshot.list !== null) return;
    // Until now only the number was known: this is the job's first list entry.
    work.snapshot = { ...snapshot, list: listed.view, listAt: known.startedAt };
    work.fingerprint = fingerprint(listed.view);
    return;
  }
  addStep(work, seenInList(jobNumber, snapshot, listed, known));
  addStep(work, checkOverdue(work.snapshot, listed.look, known));
  work.fingerprint = fingerprint(listed.view);
}

// Schedule of checks

/** Inputs of the schedule. */
export interface ScheduleContext {
  /** Start of this poll (epoch ms). */
  readonly startedAt: number;
  readonly pollIntervalSeconds: number;
  readonly settings: TrackingSettings;
  /** Version of the fingerprints in the index: see views.ts. */
  readonly projectionVersion: number;
}

/**
 * Reschedules a fetch without an answer, at increasing intervals. The last fetch of a settled job is
 * retried for a day and at least {@link LAST_LOOK_TRIES} times: polling may have paused past its time.
 */
export function unanswered(snapshot: Snapshot, context: ScheduleContext): Snapshot {
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
export function disagreeing(snapshot: Snapshot, context: ScheduleContext): Snapshot {
  const tries = snapshot.owed?.tries ?? 0;
  return { ...snapshot, owed: { tries: tries + 1, at: afterLooks(tries, context) } };
}

/** Reschedules a missing job after inconclusive answers. A suspicion waits for its confirmation. */
export function unexplained(
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
    owed: { tries: 0, at: confirmAt > context.startedAt ? confirmAt : afterLooks(tries, context) },
  };
}

/**
 * Reschedules a confirmed suspicion that is held back (rule 10). Its events require fresh answers, so the
 * job is investigated again.
 */
export function heldUp(snapshot: Snapshot, context: ScheduleContext): Snapshot {
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
    before && !moved ? { since: before.since, looks: before.looks + 1 } : { since: startedAt, looks: 0 };
  const end = settledAt(settling, context);
  return {
    ...snapshot,
    settling,
    owed: startedAt >= end ? null : { tries: 0, at: Math.min(end, afterLooks(settling.looks, context)) },
  };
}

function settledAt(settling: { readonly since: number }, { settings }: ScheduleContext): number {
  return settling.since + settings.settlingDays * 86_400_000;
}

function afterLooks(looks: number, { startedAt, settings }: ScheduleContext): number {
  const schedule = settings.settlingScheduleSeconds;
  return startedAt + 1000 * (schedule[Math.min(looks, schedule.length - 1)] ?? MAX_RETRY_SECONDS);
}

/** Returns the index entry for a work's snapshot. `undefined` if the job is no longer tracked. */
export function entryOf(work: Work): IndexEntry | undefined {
  const { snapshot } = work;
  const phase = phaseOf(snapshot);
  if (work.untracked || (phase === 'settling' && snapshot.owed === null)) return undefined;
  const times = snapshot.owed === null ? [] : [snapshot.owed.at];
  if (phase === 'listed') times.push(dueOf(snapshot)?.at ?? Number.POSITIVE_INFINITY);
  const next = Math.min(...times, Number.POSITIVE_INFINITY);
  // Rounded down: a check up to a second too early has no effect, a late one is a delay.
  const nextCheckAt = next === Number.POSITIVE_INFINITY ? 0 : Math.floor(next / 1000);
  return { fingerprint: work.fingerprint, phase, nextCheckAt };
}

/** Returns the phase of a job. */
export function phaseOf({ settling, departure }: Snapshot): Phase {
  if (settling !== null) return 'settling';
  if (departure === null) return 'listed';
  if (departure.suspected !== null) return 'suspected';
  return departure.contradictory ? 'contradictory' : 'departed';
}

/** Returns whether a job's entry is due at a time (epoch ms). */
export function isDue(entry: IndexEntry | undefined, at: number): boolean {
  return entry !== undefined && entry.nextCheckAt > 0 && entry.nextCheckAt * 1000 <= at;
}

// Order groups

/**
 * Returns the membership changes of a work in order groups (rule 18). `phase` is `undefined` in a group
 * that the job leaves.
 */
export function membershipChanges(work: Work): MembershipChange[] {
  const before = membershipOf(work.stored);
  const after = work.untracked ? undefined : membershipOf(work.snapshot);
  if (before?.orderGroup === after?.orderGroup && before?.phase === after?.phase) return [];
  // A dispatch that counts as announced does not complete a group by itself.
  const silent = !before && after?.phase === 'dispatched' && work.events.length === 0;
  // Latest time at which none of the changes emitted now had happened.
  const times = work.events.flatMap(({ data }) =>
    'job' in data && data.observed.since !== null ? [Date.parse(data.observed.since)] : [],
  );
  const since = times.length === 0 ? null : Math.max(...times);
  return [
    ...(before && before.orderGroup !== after?.orderGroup
      ? [{ orderGroup: before.orderGroup, phase: undefined, since, silent }]
      : []),
    ...(after ? [{ ...after, since, silent }] : []),
  ];
}

// Writes

/**
 * Returns whether a job has changes to write. `listAt`, the time of the last list observation, changes with
 * every poll and does not count.
 */
export function isChanged(work: Work): boolean {
  if (work.events.length > 0 || work.untracked || !work.stored) return true;
  if (JSON.stringify(entryOf(work)) !== JSON.stringify(work.entry)) return true;
  return JSON.stringify({ ...work.snapshot, listAt: 0 }) !== JSON.stringify({ ...work.stored, listAt: 0 });
}

/**
 * Returns whether a write of a work exceeds the table's maximum item size. Such a job must not block all
 * others.
 */
export function isTooLarge(work: Work): boolean {
  return (
    Buffer.byteLength(JSON.stringify(work.snapshot)) + 4_000 > MAX_ITEM_BYTES ||
    work.events.some((event) => sizeOfEvent(event) > MAX_ITEM_BYTES)
  );
}

/** The content of one transaction of a poll. */
export interface Chunk {
  readonly events: EventDraft[];
  readonly writes: Write[];
  /** Status names that first occur in this chunk. Empty if there are none. */
  readonly discovered: string[];
}

/** New status names of a work, with their events. */
export interface Discovery {
  readonly names: readonly string[];
  readonly events: readonly EventDraft[];
}

/**
 * Splits changed works into self-contained chunks: a job's events, snapshot and index entry are always in
 * the same chunk.
 *
 * Works are in order of shard, so that a shard is written once or twice rather than by every chunk. The
 * index applies a chunk's entries when the chunk is generated. So each chunk must be committed before the
 * next one is generated. `discover` returns the events that precede those of a work. Without `groups`,
 * order groups are not tracked. Without `rollups`, nothing is counted.
 */
export function* chunks(
  ref: AccountRef,
  changed: readonly Work[],
  index: JobIndex,
  context: ScheduleContext,
  discover: (work: Work) => Discovery,
  groups?: GroupBook,
  rollups?: RollupBook,
): Generator<Chunk> {
  const queue = [...changed].sort(
    (a, b) => index.shardNumber(a.jobNumber) - index.shardNumber(b.jobNumber) || a.jobNumber - b.jobNumber,
  );
  let at = 0;
  for (let next = take(); next; ) {
    const chunk: Chunk = { events: [], writes: [], discovered: [] };
    const shards = new Set<number>();
    let bytes = 0;
    for (; next; next = take()) {
      const { work, events, names } = next;
      const write = writeOf(ref, work, context);
      shards.add(index.shardNumber(work.jobNumber));
      bytes += events.reduce((sum, event) => sum + sizeOfEvent(event), 0);
      bytes += 'put' in write ? estimateSize(write.put) : 100;
      const joins = groups ? membershipChanges(work) : [];
      const touched = (groups?.touched ?? 0) + joins.length;
      const days = rollups?.touchedWith(work.counts ?? []) ?? 0;
      // A shard can split in two. A group has an item and a mark.
      const actions =
        COMMIT_OVERHEAD_ACTIONS +
        chunk.events.length +
        events.length +
        chunk.writes.length +
        1 +
        2 * (shards.size + touched) +
        days;
      const sizes = bytes + 10_000 * shards.size + 20_000 * touched + 500 * days;
      const full = actions > MAX_TRANSACTION_ACTIONS || sizes > MAX_TRANSACTION_BYTES;
      if (full && chunk.writes.length > 0) break;
      chunk.discovered.push(...names);
      chunk.events.push(...events);
      chunk.writes.push(write);
      index.set(work.jobNumber, entryOf(work));
      for (const join of joins) groups?.move(work.jobNumber, join);
      rollups?.add(work.counts ?? []);
    }
    if (rollups) chunk.writes.push(...rollups.takeWrites());
    if (groups) chunk.writes.push(...groups.takeWrites(context.startedAt));
    for (const { lowest, packed } of index.takeChanges()) {
      const key = keys.shard(ref, lowest);
      const { projectionVersion: projection } = context;
      chunk.writes.push(packed ? { put: { ...key, packed, projection } } : { delete: key });
    }
    yield chunk;
  }

  function take(): ({ readonly work: Work } & Discovery) | undefined {
    const work = queue[at];
    at += 1;
    if (!work) return undefined;
    const { names, events } = discover(work);
    return { work, names, events: [...events, ...work.events] };
  }
}

function sizeOfEvent(event: EventDraft): number {
  return Buffer.byteLength(JSON.stringify(event.data)) + 1_500;
}

function writeOf(ref: AccountRef, work: Work, context: ScheduleContext): Write {
  if (work.untracked === 'delete snapshot') return { delete: keys.snapshot(ref, work.jobNumber) };
  return putSnapshot(ref, work.snapshot, entryOf(work) === undefined ? context.startedAt : undefined);
}
