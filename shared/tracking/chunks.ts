/** Splits the changed jobs of a poll into transactions. */
import type { EventDraft } from '../events/event.ts';
import { COMMIT_OVERHEAD_ACTIONS } from '../log/log.ts';
import { type AccountRef, keys } from '../storage/schema.ts';
import {
  estimateSize,
  type Item,
  MAX_ITEM_BYTES,
  MAX_TRANSACTION_ACTIONS,
  MAX_TRANSACTION_BYTES,
  type Write,
} from '../storage/table.ts';
import { DURATIONS_BYTES, type Durations } from './durations.ts';
import type { PollGroups } from './groups.ts';
import type { JobIndex } from './job-index.ts';
import { toSearchChanges } from './job-search.ts';
import type { PollRollups } from './rollups.ts';
import type { ScheduleContext } from './schedule.ts';
import { markWrites, putSnapshot } from './snapshot.ts';
import { membershipChanges, toIndexEntry, type Work } from './work.ts';

/**
 * Maximum number of new status names emitted for one job in one poll. They are events, and all events of a
 * job stay in one transaction.
 */
export const MAX_DISCOVERED = 10;

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
  readonly works: Work[];
  readonly events: EventDraft[];
  readonly writes: Write[];
  /** Entries of the search index, to store before the transaction. */
  readonly searchItems: Item[];
  /** Status names that first occur in this chunk. Empty if there are none. */
  readonly discovered: string[];
}

/** New status names of a work, with their events. */
export interface Discovery {
  readonly names: readonly string[];
  readonly events: readonly EventDraft[];
}

/** Works to commit. */
interface ChunkOptions {
  readonly ref: AccountRef;
  readonly works: readonly Work[];
  readonly index: JobIndex;
  readonly context: ScheduleContext;
  /** Returns the events that precede those of a work. */
  readonly discover: (work: Work) => Discovery;
  /** Absent if order groups are not tracked. */
  readonly groups?: PollGroups | undefined;
  /** Absent if nothing is counted. */
  readonly rollups?: PollRollups | undefined;
  /** Absent if no duration and no result is counted. */
  readonly durations?: Durations | undefined;
}

/**
 * Splits changed works into self-contained chunks: a job's events, snapshot and index entry are always in
 * the same chunk.
 *
 * Works are in order of shard, so that a shard is written once or twice rather than by every chunk. The
 * index applies a chunk's entries when the chunk is generated. So each chunk must be committed before the
 * next one is generated.
 */
export function* chunks(options: ChunkOptions): Generator<Chunk> {
  const { ref, works, index, context, discover, groups, rollups, durations } = options;
  const queue = [...works].sort(
    (a, b) => index.shardNumber(a.jobNumber) - index.shardNumber(b.jobNumber) || a.jobNumber - b.jobNumber,
  );
  let at = 0;
  for (let next = take(); next; ) {
    const chunk: Chunk = { works: [], events: [], writes: [], searchItems: [], discovered: [] };
    const shards = new Set<number>();
    let bytes = 0;
    for (; next; next = take()) {
      const { work, events, names } = next;
      const write = toWrite(ref, work, context);
      const { jobNumber, stored, snapshot, untracked } = work;
      const marks = markWrites(ref, jobNumber, stored, untracked ? undefined : snapshot);
      const search = toSearchChanges(ref, work, context.startedAt);
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
        marks.length +
        search.former.length +
        2 * (shards.size + touched) +
        days +
        (durations ? 1 : 0);
      const sizes =
        bytes + 10_000 * shards.size + 20_000 * touched + 500 * days + (durations ? DURATIONS_BYTES : 0);
      const full = actions > MAX_TRANSACTION_ACTIONS || sizes > MAX_TRANSACTION_BYTES;
      if (full && chunk.writes.length > 0) break;
      chunk.works.push(work);
      chunk.discovered.push(...names);
      chunk.events.push(...events);
      chunk.writes.push(write, ...marks, ...search.former.map((key) => ({ delete: key })));
      chunk.searchItems.push(...search.items);
      index.set(work.jobNumber, toIndexEntry(work, context.rules));
      for (const join of joins) groups?.move(work.jobNumber, join);
      rollups?.add(work.counts ?? []);
      durations?.add(work.durations ?? [], work.result);
    }
    if (rollups) chunk.writes.push(...rollups.takeWrites());
    if (durations) chunk.writes.push(...durations.takeWrites(ref));
    if (groups) chunk.writes.push(...groups.takeWrites(context.startedAt));
    for (const { lowest, packed } of index.takeChanges()) {
      const key = keys.shard(ref, lowest);
      const { projectionVersion: projection, rules } = context;
      const timers = rules?.timers || undefined;
      chunk.writes.push(packed ? { put: { ...key, packed, projection, timers } } : { delete: key });
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

function toWrite(ref: AccountRef, work: Work, context: ScheduleContext): Write {
  if (work.untracked === 'delete snapshot') return { delete: keys.snapshot(ref, work.jobNumber) };
  return putSnapshot(ref, work.snapshot, toIndexEntry(work) === undefined ? context.startedAt : undefined);
}
