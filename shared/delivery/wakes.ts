/** Wake-ups: passes the growth of a log to the cursors of its sinks and to the cell feed, and finds due sinks. */

import { forwardLogs } from '../log/feed-forwarding.ts';
import {
  type AccountRef,
  cursorPk,
  DRAIN_SHARDS,
  drainDue,
  drainDuePk,
  dueUntil,
  keys,
  WAKE_SHARDS,
  wakePk,
} from '../storage/schema.ts';
import type { Item, Table } from '../storage/table.ts';
import { isReady } from './health.ts';
import { follows, listSinks, type Sink } from './sink.ts';

/**
 * Processes the growth of an account's log: marks its cursors due, forwards the log to the cell feed, and
 * returns the sinks that can be drained now. Then the wake mark is deleted, unless the log grew further.
 *
 * Safe to call twice, late, or without cause; also for an account that was deleted since, or for a new
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
  /** Ids of the sinks that can be drained now. */
  readonly sinks: readonly string[];

  constructor({ account }: AccountRef, sinks: readonly string[], cause: unknown) {
    super(`The events of ${account} could not be forwarded to the cell feed.`, { cause });
    this.sinks = sinks;
  }
}

/**
 * Marks the cursors of an account due. Returns the sinks that can be drained now, and whether a former log
 * grew.
 */
async function markDue(
  table: Table,
  ref: AccountRef,
  grownTo: number,
  now: number,
): Promise<{ readonly ready: string[]; readonly isFormer: boolean }> {
  const sinks = (await listSinks(table, ref.region)).filter((sink) => follows(sink, ref.account));
  // A drain in the same process may already have processed the event. One read for all sinks saves a write
  // each.
  const known = await table.getMany([
    keys.head(ref),
    ...sinks.map(({ id }) => keys.cursor(ref.region, id, ref.account)),
  ]);
  const head = known.find(({ sk }) => sk === 'HEAD');
  if (!head) return { ready: [], isFormer: true };
  // Never beyond the current log: the end of an earlier log of this id would suppress the next wake-ups.
  const sequence = Math.min(grownTo, Number(head.sequence));
  const through = new Set(
    known
      .filter(({ mark, position }) => Math.max(Number(mark ?? 0), Number(position ?? 0)) >= sequence)
      .map(({ pk }) => pk),
  );
  const behind = sinks.filter(({ id }) => !through.has(cursorPk(ref.region, id)));
  await Promise.all(
    behind.map((sink) =>
      table.write({
        update: keys.cursor(ref.region, sink.id, ref.account),
        set: { sink: sink.id, mark: sequence, ...drainDue(ref.region, sink.id, ref.account, now) },
        when: [
          ['mark', 'absent or <', sequence],
          ['position', 'absent or <', sequence],
        ],
      }),
    ),
  );
  const ready = sinks.filter((sink) => isReady(sink, now)).map((sink) => sink.id);
  return { ready, isFormer: grownTo > sequence };
}

/**
 * Deletes the wake mark. Events before a former log's end have lower numbers and may be new; then only the
 * former log's own mark is deleted.
 */
async function clearWake(table: Table, ref: AccountRef, sequence: number, isFormer: boolean): Promise<void> {
  const when = [['sequence', isFormer ? '=' : 'absent or <=', sequence]] as const;
  await table.write({ delete: keys.wake(ref), when });
}

/**
 * Returns the sinks of a region that can be drained now and have due work: after a wait, or after a lost
 * wake-up.
 */
export async function listDueSinks(table: Table, region: string, now: number): Promise<string[]> {
  const ready = (await listSinks(table, region)).filter((sink) => isReady(sink, now));
  const due = await Promise.all(
    ready.map(async (sink) => (await listDueWork(table, sink, now, 1)).length > 0),
  );
  return ready.filter((_, at) => due[at]).map(({ id }) => id);
}

/**
 * Returns the keys of a sink's due work: cursors, replays, parked lanes. `limit`: maximum number per shard.
 */
export async function listDueWork(
  table: Table,
  { region, id }: Pick<Sink, 'region' | 'id'>,
  now: number,
  limit?: number,
): Promise<Item[]> {
  const shards = await Promise.all(
    Array.from({ length: DRAIN_SHARDS }, (_, shard) =>
      table.query({
        index: 'due',
        pk: drainDuePk(region, id, shard),
        to: dueUntil(now),
        ...(limit === undefined ? {} : { limit }),
      }),
    ),
  );
  return shards.flat();
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
