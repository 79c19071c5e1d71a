/** One job that a poll works on: what was stored of it, what the poll made of that, and what is to be written. */
import type { EventDraft } from '../events/event.ts';
import { COMMIT_OVERHEAD_ACTIONS } from '../log/log.ts';
import { type AccountRef, keys } from '../table/schema.ts';
import {
  MAX_ITEM_BYTES,
  MAX_TRANSACTION_ACTIONS,
  MAX_TRANSACTION_BYTES,
  sizeOf,
  type Write,
} from '../table/table.ts';
import { checkOverdue, dueOf, type Known, type Sighting, type Step, seenInList } from './diff.ts';
import { type GroupBook, type MembershipChange, membershipOf } from './groups.ts';
import type { IndexEntry, JobIndex, Phase } from './job-index.ts';
import type { Count, RollupBook } from './rollups.ts';
import { putSnapshot, type Snapshot } from './snapshot.ts';
import { fingerprint } from './views.ts';

/** The timings and budgets of tracking; docs/truth.md says which rule needs which. */
export interface TrackingSettings {
  /** A negative verdict (cancelled, unavailable) needs the same verdict this much later. */
  readonly confirmAfterSeconds: number;
  /** Gaps between looks at a job that left the list; the last one repeats. */
  readonly settlingScheduleSeconds: readonly number[];
  readonly settlingDays: number;
  /** How often the newest closed jobs are read for those that came and went between two polls. */
  readonly sweepSeconds: number;
  /** Jobs looked at one by one in a poll, at most; the others wait for the next poll. */
  readonly looksPerPoll: number;
  /** Jobs whose snapshots newer code takes over in a poll, at most (rule 6); the others follow in the next polls. */
  readonly upgradesPerPoll: number;
  /** Polls that fail in a row before it is announced. */
  readonly failuresBeforeAlarm: number;
}

/** What a production account uses. */
export const DEFAULT_TRACKING: TrackingSettings = {
  confirmAfterSeconds: 900,
  settlingScheduleSeconds: [300, 1800, 7200, 21_600, 86_400],
  settlingDays: 7,
  sweepSeconds: 900,
  looksPerPoll: 60,
  upgradesPerPoll: 10_000,
  failuresBeforeAlarm: 3,
};

/** A look that keeps failing is tried again at most this far apart. */
const MAX_RETRY_SECONDS = 900;
const LAST_LOOK_TRIES = 10;
const LAST_LOOK_MS = 86_400_000;

/** Status names of one job that are announced in one poll: they are events, and those of a job stay in one transaction. */
export const MAX_DISCOVERED = 10;

/** A job under work. The snapshot and the events grow with every look. */
export interface Work {
  readonly jobNumber: number;
  /** As the index had it; absent for a job that was not in it. */
  readonly entry: IndexEntry | undefined;
  readonly stored: Snapshot | undefined;
  /** How the list shows the job in this poll. */
  listed?: Sighting;
  snapshot: Snapshot;
  readonly events: EventDraft[];
  /** What the events add to the roll-ups; see {@link countWork}. */
  counts?: readonly Count[];
  /** Status names that were shown. */
  readonly shown: Step['shown'][number][];
  /** The fingerprint of the list view that `snapshot` holds. */
  fingerprint: number;
  /** Epoch ms since when a look at its detail is owed. Absent when none is owed now, or none can be made. */
  lookSince?: number;
  /** Not ours to watch: an old job that was only hidden, or one that was gone before the baseline was complete. */
  untracked?: 'keep snapshot' | 'delete snapshot';
}

/** Takes in what follows from a look. */
export function addStep(work: Work, step: Step): void {
  work.snapshot = step.snapshot;
  work.events.push(...step.events);
  work.shown.push(...step.shown);
}

/**
 * Takes in how the list shows a job. One whose novelty is not proved yet waits for its detail: whether it is new has to be
 * said first, and of one that was only hidden nothing is.
 */
export function takeInList(work: Work, known: Known): void {
  const { jobNumber, listed, snapshot } = work;
  if (!listed) return;
  if (snapshot.unproven !== null) {
    if (snapshot.list !== null) return;
    // Known by its number alone until now: this is its first sighting.
    work.snapshot = { ...snapshot, list: listed.view, listAt: known.startedAt };
    work.fingerprint = fingerprint(listed.view);
    return;
  }
  addStep(work, seenInList(jobNumber, snapshot, listed, known));
  addStep(work, checkOverdue(work.snapshot, listed.look, known));
  work.fingerprint = fingerprint(listed.view);
}

// When a job is looked at next

/** What the schedule of looks depends on. */
export interface ScheduleContext {
  /** Epoch ms: when this poll began. */
  readonly startedAt: number;
  readonly pollIntervalSeconds: number;
  readonly settings: TrackingSettings;
  /** Of the fingerprints in the index: see views.ts. */
  readonly projectionVersion: number;
}

/**
 * A look stayed without an answer: it is tried again, at growing distances, for as long as it means something. The last one
 * at a job that settled is tried for a day, and some times at least: polling may have paused past its time.
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
  const backOffSeconds = Math.min(MAX_RETRY_SECONDS, pollIntervalSeconds * 2 ** Math.min(tries - 1, 20));
  return { ...snapshot, owed: { tries, at: startedAt + backOffSeconds * 1000 } };
}

/** A listed job's views disagree, which they may do for long: it is looked at again ever more rarely. */
export function disagreeing(snapshot: Snapshot, context: ScheduleContext): Snapshot {
  const tries = snapshot.owed?.tries ?? 0;
  return { ...snapshot, owed: { tries: tries + 1, at: afterLooks(tries, context) } };
}

/** The answers about a missing job proved nothing. A suspicion waits for its confirmation. */
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

/** A confirmed suspicion is held back (rule 10). It needs fresh answers when it may be said, so it is asked for again. */
export function heldUp(snapshot: Snapshot, context: ScheduleContext): Snapshot {
  return {
    ...snapshot,
    owed: { tries: 0, at: context.startedAt + context.settings.confirmAfterSeconds * 1000 },
  };
}

/**
 * After a look at a job that left the list (rule 7): the gaps grow, the last look is at the end of the settling time, and
 * when something `moved` both begin anew.
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

/** The index entry that goes with a work's snapshot; `undefined` when the job is no longer watched. */
export function entryOf(work: Work): IndexEntry | undefined {
  const { snapshot } = work;
  const phase = phaseOf(snapshot);
  if (work.untracked || (phase === 'settling' && snapshot.owed === null)) return undefined;
  const times = snapshot.owed === null ? [] : [snapshot.owed.at];
  if (phase === 'listed') times.push(dueOf(snapshot)?.at ?? Number.POSITIVE_INFINITY);
  const next = Math.min(...times, Number.POSITIVE_INFINITY);
  // Rounded down: rather asked for a second too early, when nothing follows yet, than too late.
  const nextCheckAt = next === Number.POSITIVE_INFINITY ? 0 : Math.floor(next / 1000);
  return { fingerprint: work.fingerprint, phase, nextCheckAt };
}

/** Where a job stands. */
export function phaseOf({ settling, departure }: Snapshot): Phase {
  if (settling !== null) return 'settling';
  if (departure === null) return 'listed';
  if (departure.suspected !== null) return 'suspected';
  return departure.contradictory ? 'contradictory' : 'departed';
}

/** Whether a job's entry asks for it to be worked on at an instant (epoch ms). */
export function isDue(entry: IndexEntry | undefined, at: number): boolean {
  return entry !== undefined && entry.nextCheckAt > 0 && entry.nextCheckAt * 1000 <= at;
}

// Order groups

/** How a work changes order groups (rule 18): what it becomes in each, undefined where it leaves. */
export function membershipChanges(work: Work): MembershipChange[] {
  const before = membershipOf(work.stored);
  const after = work.untracked ? undefined : membershipOf(work.snapshot);
  if (before?.orderGroup === after?.orderGroup && before?.phase === after?.phase) return [];
  // A dispatch that counts as announced completes nothing by itself.
  const silent = !before && after?.phase === 'dispatched' && work.events.length === 0;
  // The latest time at which it was not so yet, of what is said of the job now.
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

// What is written

/** Whether anything of a job has to be written. When its list view was last seen moves with every poll, and is no change. */
export function isChanged(work: Work): boolean {
  if (work.events.length > 0 || work.untracked || !work.stored) return true;
  if (JSON.stringify(entryOf(work)) !== JSON.stringify(work.entry)) return true;
  return JSON.stringify({ ...work.snapshot, listAt: 0 }) !== JSON.stringify({ ...work.stored, listAt: 0 });
}

/** Whether what a work wants to write is over what the table takes as one item: such a job must not stop all others. */
export function isTooLarge(work: Work): boolean {
  return (
    Buffer.byteLength(JSON.stringify(work.snapshot)) + 4_000 > MAX_ITEM_BYTES ||
    work.events.some((event) => sizeOfEvent(event) > MAX_ITEM_BYTES)
  );
}

/** One transaction's worth of a poll. */
export interface Chunk {
  readonly events: EventDraft[];
  readonly writes: Write[];
  /** Status names that first appear in this chunk; empty when none does. */
  readonly discovered: string[];
}

/** Status names that a work shows for the first time, with the events that say so. */
export interface Discovery {
  readonly names: readonly string[];
  readonly events: readonly EventDraft[];
}

/**
 * Cuts changed works into chunks that are each complete in themselves: a job's events, its snapshot and its index entry
 * are never apart. In order of shard, so that a shard is written once or twice rather than by every chunk. The index takes
 * a chunk's entries when the chunk is asked for, so each chunk has to be committed before the next one is. `discover`
 * gives the events that come before those of a work; without `groups` no order group is followed, and without `rollups`
 * nothing is counted.
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
      bytes += 'put' in write ? sizeOf(write.put) : 100;
      const joins = groups ? membershipChanges(work) : [];
      const touched = (groups?.touched ?? 0) + joins.length;
      const days = rollups?.touchedWith(work.counts ?? []) ?? 0;
      // A shard can split in two; a group has an item and a mark.
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
