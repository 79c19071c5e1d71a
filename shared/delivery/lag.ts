/** The lag of a region's sinks: the event that has waited longest for its sink. Bounded reads. */
import pLimit from 'p-limit';
import { keys } from '../storage/schema.ts';
import type { Item, Table } from '../storage/table.ts';
import { follows, listSinks, type Sink } from './sink.ts';
import { listDueWork } from './wakes.ts';

/** An event that a sink has not reached yet, whether its filter matches or not. */
export interface Undelivered {
  readonly sink: string;
  readonly account: string;
  readonly sequence: number;
  /** Time of observation (epoch ms). */
  readonly time: number;
}

/** Number of keys read from each of a sink's shards. Replays and parked lanes are among them. */
const DUE_PER_SHARD = 100;
/** Number of a sink's cursors that are read concurrently, and in total. */
const CURSORS_AT_ONCE = 5;
const MAX_CURSORS = 25;
const SINKS_AT_ONCE = 10;

/**
 * Returns the oldest undelivered event of all active sinks: those neither paused nor disabled. A sink that
 * waits after a failure is late as well, so it counts. `undefined` if nothing is due.
 *
 * Replays and parked events do not count. `due`: the sinks that are ready and have due work; waiting sinks
 * are looked up. `now` is epoch ms.
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
  const found = await pLimit(SINKS_AT_ONCE).map(sinks, (sink) => findOldest(table, sink, now));
  return oldest(found.filter((one) => one !== undefined));
}

/**
 * Cursors become due in about the order in which their events arrived. So those that became due first are
 * read first. The others are read only while they could still have an older event.
 */
async function findOldest(table: Table, sink: Sink, now: number): Promise<Undelivered | undefined> {
  const due = await dueCursors(table, sink, now);
  let found: Undelivered | undefined;
  for (let at = 0; at < Math.min(due.length, MAX_CURSORS); at += CURSORS_AT_ONCE) {
    const some = due.slice(at, at + CURSORS_AT_ONCE);
    if (found && dueAt(some[0]) > found.time) break;
    found = oldest([...(found ? [found] : []), ...(await firstBehind(table, sink, some))]);
  }
  return found;
}

/** Returns the live cursors of a sink that are due, the longest due first. */
async function dueCursors(table: Table, sink: Sink, now: number): Promise<Item[]> {
  const due = await listDueWork(table, sink, now, DUE_PER_SHARD);
  // The sort keys of replay cursors and parked lanes contain more than the account.
  return due.filter(({ sk }) => !sk.includes('#') && follows(sink, sk)).sort((a, b) => dueAt(a) - dueAt(b));
}

function dueAt(item: Item | undefined): number {
  return Date.parse(String(item?.dueSk).split('#')[0] ?? '');
}

/** Returns the first event behind each of these cursors, where one exists. */
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
