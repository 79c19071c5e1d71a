/** Age of the oldest unsent notification. */
import { dueUntil, NOTIFY_SHARDS, notifyDuePk, parseMessageDue } from '../storage/schema.ts';
import type { Table } from '../storage/table.ts';

/** Maximum number of waiting messages read in each partition: those whose next attempts are due first. */
const MAX_WAITING = 100;

/**
 * Returns the earliest time since which a window has been expired or a message has been due (epoch ms). `undefined` if nothing is due.
 * `now` is epoch ms. Reads each of the index's partitions once, for any content.
 */
export async function oldestUnsent(table: Table, region: string, now: number): Promise<number | undefined> {
  const partitions = [...listPartitions('notices', region), ...listPartitions('messages', region)];
  const found = await Promise.all(
    partitions.map((pk) => table.query({ pk, index: 'due', to: dueUntil(now), limit: 1 })),
  );
  return earliest(found.flat().map(({ dueSk }) => Date.parse(String(dueSk).split('#')[0] ?? '')));
}

/** As {@link oldestUnsent}, but a message counts from the time at which it was first due, also while it waits for its next attempt. */
export async function oldestDelayed(table: Table, region: string, now: number): Promise<number | undefined> {
  const [due, ...waiting] = await Promise.all([
    oldestUnsent(table, region, now),
    ...listPartitions('messages', region).map((pk) => table.query({ pk, index: 'due', limit: MAX_WAITING })),
  ]);
  const since = waiting.flat().map(({ dueSk }) => parseMessageDue(String(dueSk)));
  return earliest([...(due === undefined ? [] : [due]), ...since.filter((time) => time <= now)]);
}

const listPartitions = (what: 'notices' | 'messages', region: string): string[] =>
  Array.from({ length: NOTIFY_SHARDS }, (_, shard) => notifyDuePk(what, region, shard));

const earliest = (times: readonly number[]): number | undefined =>
  times.length === 0 ? undefined : Math.min(...times);
