/** The lag of a region's sinks: the event that has waited longest for its sink. Bounded reads. */
import { keys, parseDrainDue } from '../storage/schema.ts';
import type { Item, Table } from '../storage/table.ts';
import { follows, type Sink } from './sink.ts';
import { type DueSink, listDueWork } from './wakes.ts';

/** An event that a sink has not reached yet, whether its filter matches or not. */
export interface Undelivered {
  readonly sink: string;
  readonly account: string;
  readonly sequence: number;
  /** Time of observation (epoch ms). */
  readonly time: number;
}

/** Number of keys of a sink's due work that are read. Replays and parked lanes are among them. */
const MAX_DUE = 200;
/** Number of a sink's cursors that are read concurrently, and in total. */
const CURSORS_AT_ONCE = 5;
const MAX_CURSORS = 25;
const SINKS_AT_ONCE = 10;
const MAX_SINKS = 50;

/**
 * Returns the oldest undelivered event of the sinks with due work (`readDueSinks`), which includes those that
 * wait after a failure. `undefined` if nothing is due.
 *
 * Replays and parked events do not count. `now` is epoch ms.
 *
 * Work becomes due in about the order in which its events arrived. So the sinks and cursors that became due
 * first are read first. The others are read only while they could still have an older event.
 */
export async function oldestUndelivered(
  table: Table,
  sinks: readonly DueSink[],
  now: number,
): Promise<Undelivered | undefined> {
  let found: Undelivered | undefined;
  for (let at = 0; at < Math.min(sinks.length, MAX_SINKS); at += SINKS_AT_ONCE) {
    const some = sinks.slice(at, at + SINKS_AT_ONCE);
    if (found && (some[0]?.dueAt ?? 0) > found.time) break;
    const more = await Promise.all(some.map((one) => findOldest(table, one, now)));
    found = oldest([found, ...more].filter((one) => one !== undefined));
  }
  return found;
}

async function findOldest(
  table: Table,
  { name, sink }: DueSink,
  now: number,
): Promise<Undelivered | undefined> {
  const work = await listDueWork(table, sink.region, name, now, MAX_DUE);
  // The sort keys of replay cursors and parked lanes contain more than the account.
  const due = work.filter(({ sk }) => !sk.includes('#') && follows(sink, sk));
  let found: Undelivered | undefined;
  for (let at = 0; at < Math.min(due.length, MAX_CURSORS); at += CURSORS_AT_ONCE) {
    const some = due.slice(at, at + CURSORS_AT_ONCE);
    if (found && dueAt(some[0]) > found.time) break;
    found = oldest([...(found ? [found] : []), ...(await firstBehind(table, sink, some))]);
  }
  return found;
}

function dueAt(item: Item | undefined): number {
  return parseDrainDue(String(item?.dueSk)).dueAt;
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
