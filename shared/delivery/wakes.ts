/** Wake-ups: passes the growth of a log to the cursors of its sinks and to the cell feed, and finds due sinks. */

import pLimit from 'p-limit';
import { forwardLogs } from '../log/feed-forwarding.ts';
import {
  type AccountRef,
  ALL_ACCOUNTS,
  cursorPk,
  DRAIN_SHARDS,
  drainDue,
  drainDueEnd,
  drainDuePk,
  drainDueRange,
  followerPk,
  formerDrainDuePks,
  getDrainName,
  getSinkId,
  isCursorPk,
  isPart,
  keys,
  parseDrainDue,
  sinkPk,
  WAKE_SHARDS,
  wakePk,
} from '../storage/schema.ts';
import { type Item, type Key, RELAXED, type Table } from '../storage/table.ts';
import { MAX_SKEW_MS } from './clock.ts';
import { isReady } from './health.ts';
import { follows, putFollowers, type Sink, toSink, withStateOfPart } from './sink.ts';

/**
 * Maximum number of sinks, and parts of sinks, that a tick requests drains of. The rest stays due, and the next
 * tick finds it.
 */
export const MAX_DUE_SINKS = 5_000;
const SHARDS_AT_ONCE = 8;
/** Number of keys per read of the `due` index. */
const DUE_PAGE = 1_000;
/** Time (ms) for which functions of an earlier version may run after an upgrade began. */
const REINDEX_MS = 20 * 60_000;

/**
 * Processes the growth of an account's log: marks its cursors due, forwards the log to the cell feed, and
 * returns the drain names of the sinks that can be drained now. Then the wake mark is deleted, unless the log grew further.
 *
 * Safe to call twice, late, or without cause; even for an account that was deleted since, or for a new
 * account with its id.
 */
export async function wakeSinks(
  table: Table,
  ref: AccountRef,
  grownTo: number,
  now: number,
  forward: () => Promise<boolean> = () => forwardLogs(table, [ref], { now: () => now }),
): Promise<string[]> {
  // The two run concurrently, but the mark is deleted only after both.
  const [sinks, forwarded] = await Promise.allSettled([markDue(table, ref, grownTo, now), forward()]);
  if (sinks.status === 'rejected') throw sinks.reason;
  const { ready, isFormer } = sinks.value;
  if (forwarded.status === 'rejected') throw new ForwardError(ref, ready, forwarded.reason);
  if (forwarded.value) await clearWake(table, ref, grownTo, isFormer);
  return ready;
}

/**
 * The growth of an account's log could not be forwarded to the cell feed. Its sinks are woken; its wake mark
 * is still there.
 */
export class ForwardError extends Error {
  override readonly name = 'ForwardError';
  /** Drain names of the sinks that can be drained now. */
  readonly sinks: readonly string[];

  constructor({ account }: AccountRef, sinks: readonly string[], cause: unknown) {
    super(`The events of ${account} could not be forwarded to the cell feed.`, { cause });
    this.sinks = sinks;
  }
}

/**
 * Marks the cursors of an account due. Returns the drain names of the sinks that can be drained now, and
 * in `isFormer` whether the log that grew is a former one of this account id.
 */
export async function markDue(
  table: Table,
  ref: AccountRef,
  grownTo: number,
  now: number,
): Promise<{ readonly ready: string[]; readonly isFormer: boolean }> {
  const { region, account } = ref;
  const entries = await Promise.all(
    [ref, { region, account: ALL_ACCOUNTS }].map((one) => table.query({ pk: followerPk(one) })),
  );
  const ids = [...new Set(entries.flat().map(({ sk }) => sk))];
  // A drain in the same process may already have processed the event. One read for all sinks saves a write
  // each.
  const known = await table.getMany([
    keys.head(ref),
    ...ids.flatMap((id) => [
      keys.cursor(region, id, account),
      keys.sink(region, id),
      keys.sinkState(region, getDrainName(id, account)),
    ]),
  ]);
  const head = known.find(({ sk }) => sk === 'HEAD');
  if (!head) return { ready: [], isFormer: true };
  const names = ids.map((id) => getDrainName(id, account));
  const sinks = [...toSinks(known, region, names)].filter(([, sink]) => follows(sink, account));
  // Never beyond the current log: the end of an earlier log of this id would suppress the next wake-ups.
  const sequence = Math.min(grownTo, Number(head.sequence));
  const through = new Set(
    known
      .filter(({ mark, position }) => Math.max(Number(mark ?? 0), Number(position ?? 0)) >= sequence)
      .map(({ pk }) => pk),
  );
  const behind = sinks.filter(([, { id }]) => !through.has(cursorPk(region, id)));
  await Promise.all(
    behind.map(([, { id }]) =>
      table.write(
        {
          update: keys.cursor(region, id, account),
          set: { sink: id, mark: sequence, ...drainDue(region, id, account, now) },
          when: [
            ['mark', 'absent or <', sequence],
            ['position', 'absent or <', sequence],
          ],
        },
        RELAXED,
      ),
    ),
  );
  const ready = sinks.filter(([, sink]) => isReady(sink, now)).map(([name]) => name);
  return { ready, isFormer: grownTo > sequence };
}

/**
 * Deletes the wake mark of an account, up to `sequence`. With `isFormer`, `sequence` is of a former log of this account
 * id. Then only a mark with exactly this number is deleted: one with a lower number may report new events of the current log.
 */
export async function clearWake(
  table: Table,
  ref: AccountRef,
  sequence: number,
  isFormer: boolean,
): Promise<void> {
  const when = [['sequence', isFormer ? '=' : 'absent or <=', sequence]] as const;
  await table.write({ delete: keys.wake(ref), when }, RELAXED);
}

/** Due work of an active sink: one that is neither paused nor disabled. */
export interface DueSink {
  /** The name under which it is drained. */
  readonly name: string;
  /** With the health of the drained part. */
  readonly sink: Sink;
  /** Time at which its first work became due (epoch ms). */
  readonly dueAt: number;
}

/**
 * Returns the active sinks of a region with due work, the longest due first. Also those that wait after a failure. `longestWaitMs`:
 * longest wait of parked lanes. A lane that is due later was parked before the clock was set back, and is due now. Default: unknown.
 */
export async function readDueSinks(
  table: Table,
  region: string,
  now: number,
  longestWaitMs = Number.POSITIVE_INFINITY,
): Promise<DueSink[]> {
  const found = await pLimit(SHARDS_AT_ONCE).map(
    Array.from({ length: DRAIN_SHARDS }, (_, shard) => drainDuePk(region, shard)),
    (pk) => scanDue(table, pk, now, longestWaitMs),
  );
  const due = found.flat();
  const states = await readSinks(table, region, new Set(due.map(({ name }) => name)));
  return due
    .flatMap((one) => {
      const sink = states.get(one.name);
      return sink && !sink.paused && sink.health.disabledAt === null ? [{ ...one, sink }] : [];
    })
    .sort((a, b) => a.dueAt - b.dueAt);
}

/** Returns the drain names of those that can be drained now. At most {@link MAX_DUE_SINKS}, the longest due first. */
export function toReadyNames(due: readonly DueSink[], now: number): string[] {
  const ready = due.filter(({ sink }) => isReady(sink, now)).slice(0, MAX_DUE_SINKS);
  return ready.map(({ name }) => name);
}

/**
 * Returns the drain names of the sinks of a region that can be drained now and have due work: after a wait, or
 * after a lost wake-up. `longestWaitMs`: see {@link readDueSinks}.
 */
export async function listDueSinks(
  table: Table,
  region: string,
  now: number,
  longestWaitMs?: number,
): Promise<string[]> {
  return toReadyNames(await readDueSinks(table, region, now, longestWaitMs), now);
}

/**
 * Returns the drain names in one partition of the `due` index whose first work is due. The index sorts by name
 * and then by time, so the rest of a name with much work is skipped.
 */
async function scanDue(
  table: Table,
  pk: string,
  now: number,
  longestWaitMs: number,
): Promise<{ name: string; dueAt: number }[]> {
  const due: { name: string; dueAt: number }[] = [];
  let last: string | undefined;
  for (;;) {
    const after = last === undefined ? {} : { after: drainDueEnd(last) };
    const page = await table.query({ index: 'due', pk, ...after, limit: DUE_PAGE });
    for (const { pk: place, dueSk } of page) {
      const { name, dueAt } = parseDrainDue(String(dueSk));
      last = name;
      // A cursor was due when it was marked: the clock was set back since. A parked lane can become due later, after a wait.
      const leastMs = MAX_SKEW_MS + (isCursorPk(place) ? 0 : longestWaitMs);
      const isDue = dueAt <= now || dueAt > now + leastMs;
      if (isDue && due.at(-1)?.name !== name) due.push({ name, dueAt });
    }
    if (page.length < DUE_PAGE) return due;
  }
}

/** Returns the sinks of drain names, each with the health of its part. */
async function readSinks(
  table: Table,
  region: string,
  names: ReadonlySet<string>,
): Promise<ReadonlyMap<string, Sink>> {
  const wanted = [...names].flatMap((name) => [
    keys.sink(region, getSinkId(name)),
    keys.sinkState(region, name),
  ]);
  return toSinks(await table.getMany(wanted), region, names);
}

function toSinks(items: readonly Item[], region: string, names: Iterable<string>): ReadonlyMap<string, Sink> {
  const byKey = new Map(items.map((item) => [`${item.pk}|${item.sk}`, item]));
  const find = ({ pk, sk }: Key): Item | undefined => byKey.get(`${pk}|${sk}`);
  const sinks = new Map<string, Sink>();
  for (const name of names) {
    const item = find(keys.sink(region, getSinkId(name)));
    if (item?.kind === undefined) continue;
    const state = find(keys.sinkState(region, name));
    sinks.set(name, toSink(isPart(name) ? withStateOfPart(item, state) : item));
  }
  return sinks;
}

/**
 * Returns the keys of the due work under a drain name: cursors, replays, parked lanes. The longest due first. Without `now`, also of
 * work that is due later.
 */
export function listDueWork(
  table: Table,
  region: string,
  name: string,
  now?: number,
  limit?: number,
): Promise<Item[]> {
  const range = drainDueRange(region, name, now);
  return table.query({ index: 'due', ...range, ...(limit === undefined ? {} : { limit }) });
}

/**
 * Indexes the sinks that version 0.1.0 stored: by the accounts that they follow, and their due work by region.
 * During an upgrade, functions of that version still write. So it is repeated for {@link REINDEX_MS} after the
 * first call, and does nothing later. A region without sinks needs no indexing. `exclusive`: no other process writes, so it is not repeated.
 */
export async function indexFormerSinks(
  table: Table,
  region: string,
  now: number,
  exclusive = false,
): Promise<void> {
  const key = keys.sinkIndexing(region);
  const known = await table.get(key);
  if (known && now > Number(known.until)) return;
  const sinks = (await table.query({ pk: sinkPk(region) })).filter(({ kind }) => kind !== undefined);
  await pLimit(SHARDS_AT_ONCE).map(sinks, async (item) => {
    const sink = toSink(item);
    await putFollowers(table, sink);
    for (const pk of formerDrainDuePks(region, sink.id)) {
      for (const { dueSk, ...due } of await table.query({ index: 'due', pk })) {
        const [time = '', ...what] = String(dueSk).split('#');
        await table.write({
          update: { pk: due.pk, sk: due.sk },
          set: drainDue(region, sink.id, what.join('#'), Date.parse(time)),
          when: [
            ['duePk', '=', pk],
            ['dueSk', '=', String(dueSk)],
          ],
        });
      }
    }
  });
  if (!known)
    await table.write({ put: { ...key, until: sinks.length > 0 && !exclusive ? now + REINDEX_MS : 0 } });
}

/** Returns the wake marks of a region that no process has handled yet, up to a limit per shard. */
export async function listPendingWakes(
  table: Table,
  region: string,
  limit: number,
): Promise<{ readonly ref: AccountRef; readonly sequence: number }[]> {
  const shards = await Promise.all(
    Array.from({ length: WAKE_SHARDS }, (_, shard) => table.query({ pk: wakePk(region, shard), limit })),
  );
  return shards
    .flat()
    .map((item) => ({ ref: { region, account: item.sk }, sequence: Number(item.sequence) }));
}
