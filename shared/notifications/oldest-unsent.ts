/** Age of the oldest unsent notification. */
import { dueUntil, NOTIFY_SHARDS, notifyDuePk, parseNotifyDue } from '../storage/schema.ts';
import type { Item, Query, Table } from '../storage/table.ts';

/** Maximum number of notices and of messages read in each partition: those that are processed next. */
const MAX_WAITING = 100;

/**
 * Returns the earliest time since which a notice or a message has been due (epoch ms). `undefined` if nothing is due. A notice counts from
 * the end of its window, also while it is postponed. A message counts only while it is due: from the time of its next attempt. `now` is epoch
 * ms. Reads each of the index's partitions once, for any content.
 */
export async function oldestUnsent(table: Table, region: string, now: number): Promise<number | undefined> {
  const [notices, messages] = await Promise.all([
    queryDue(table, 'notices', region, { limit: MAX_WAITING }),
    queryDue(table, 'messages', region, { to: dueUntil(now), limit: 1 }),
  ]);
  const times = messages.map(({ dueSk }) => Date.parse(String(dueSk).split('#')[0] ?? ''));
  return earliest([...notices.map(parseNotifyDue), ...times], now);
}

/** As {@link oldestUnsent}, but a message counts from the time at which it was first due, also while it waits for its next attempt. */
export async function oldestDelayed(table: Table, region: string, now: number): Promise<number | undefined> {
  const found = await Promise.all(
    (['notices', 'messages'] as const).map((what) => queryDue(table, what, region, { limit: MAX_WAITING })),
  );
  return earliest(found.flat().map(parseNotifyDue), now);
}

/** Reads a range of all partitions, ordered within each. */
export async function queryDue(
  table: Table,
  what: 'notices' | 'messages',
  region: string,
  range: Pick<Query, 'to' | 'limit'>,
): Promise<Item[]> {
  const shards = Array.from({ length: NOTIFY_SHARDS }, (_, shard) => notifyDuePk(what, region, shard));
  return (await Promise.all(shards.map((pk) => table.query({ ...range, pk, index: 'due' })))).flat();
}

function earliest(times: readonly number[], now: number): number | undefined {
  const past = times.filter((time) => time <= now);
  return past.length === 0 ? undefined : Math.min(...past);
}
