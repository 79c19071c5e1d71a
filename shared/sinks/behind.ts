/** How far behind the sinks of a region are: the event that has waited longest for its sink. Bounded reads. */
import pLimit from 'p-limit';
import { keys } from '../table/schema.ts';
import type { Item, Table } from '../table/table.ts';
import { dueAtSink, follows, listSinks, type Sink } from './sink.ts';

/** An event that a sink has not come to yet, wanted or not. */
export interface Undelivered {
  readonly sink: string;
  readonly account: string;
  readonly sequence: number;
  /** When it was observed (epoch ms). */
  readonly time: number;
}

/** Keys of what is due that are read of each of a sink's shards: replays and what is set aside stand among them. */
const DUE_PER_SHARD = 100;
/** Cursors of one sink that are looked at together, and in all. */
const CURSORS_AT_ONCE = 5;
const MAX_CURSORS = 25;
const SINKS_AT_ONCE = 10;

/**
 * The first event behind the cursor that is furthest behind in time, of all sinks that should be getting events: those that
 * are neither paused nor disabled; one that waits after a failure is late all the same. `undefined` when nothing is due.
 * Replays and events that are set aside don't count. `due`: the sinks that are ready and have something due; those that
 * wait are looked up. `now` is epoch ms.
 */
export async function oldestUndelivered(
  table: Table,
  region: string,
  due: readonly string[],
  now: number,
): Promise<Undelivered | undefined> {
  const sinks = (await listSinks(table, region)).filter(
    ({ id, paused, health }) =>
      !paused && health.disabledAt === null && (health.waitUntil > now || due.includes(id)),
  );
  const found = await pLimit(SINKS_AT_ONCE).map(sinks, (sink) => oldestOf(table, sink, now));
  return oldest(found.filter((one) => one !== undefined));
}

/**
 * Cursors become due in about the order in which their events came, so those that became due first are looked at, and the
 * others only while they could still have an older event than what was found.
 */
async function oldestOf(table: Table, sink: Sink, now: number): Promise<Undelivered | undefined> {
  const due = await dueCursors(table, sink, now);
  let found: Undelivered | undefined;
  for (let at = 0; at < Math.min(due.length, MAX_CURSORS); at += CURSORS_AT_ONCE) {
    const some = due.slice(at, at + CURSORS_AT_ONCE);
    if (found && dueAt(some[0]) > found.time) break;
    found = oldest([...(found ? [found] : []), ...(await firstBehind(table, sink, some))]);
  }
  return found;
}

/** The live cursors of a sink that are due, the one that has been longest first. */
async function dueCursors(table: Table, sink: Sink, now: number): Promise<Item[]> {
  const due = await dueAtSink(table, sink, now, DUE_PER_SHARD);
  // Cursors of replays and what is set aside have more in their sort key than the account.
  return due.filter(({ sk }) => !sk.includes('#') && follows(sink, sk)).sort((a, b) => dueAt(a) - dueAt(b));
}

function dueAt(item: Item | undefined): number {
  return Date.parse(String(item?.dueSk).split('#')[0] ?? '');
}

/** The first event behind each of these cursors, where there is one. */
async function firstBehind(table: Table, sink: Sink, due: readonly Item[]): Promise<Undelivered[]> {
  const { region, id } = sink;
  const cursors = await table.getMany(due.map(({ sk }) => keys.cursor(region, id, sk)));
  const wanted = cursors.map(({ sk: account, position }) => {
    const sequence = Number(position ?? 0) + 1;
    return { account, sequence, key: keys.event({ region, account }, sequence) };
  });
  const events = await table.getMany(wanted.map(({ key }) => key));
  return wanted.flatMap(({ account, sequence, key }) => {
    const event = events.find(({ pk, sk }) => pk === key.pk && sk === key.sk);
    return event ? [{ sink: id, account, sequence, time: Number(event.time) }] : [];
  });
}

function oldest(events: readonly Undelivered[]): Undelivered | undefined {
  return events.toSorted((a, b) => a.time - b.time)[0];
}
