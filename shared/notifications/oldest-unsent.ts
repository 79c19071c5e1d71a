/** Age of the oldest unsent notification. */
import { dueUntil, NOTIFY_SHARDS, notifyDuePk } from '../storage/schema.ts';
import type { Table } from '../storage/table.ts';

/**
 * Returns the earliest time since which a window has been expired or a message has been due (epoch ms). `undefined` if nothing is due.
 * `now` is epoch ms. Reads each of the index's partitions once, for any content.
 */
export async function oldestUnsent(table: Table, region: string, now: number): Promise<number | undefined> {
  const partitions = (['notices', 'messages'] as const).flatMap((what) =>
    Array.from({ length: NOTIFY_SHARDS }, (_, shard) => notifyDuePk(what, region, shard)),
  );
  const found = await Promise.all(
    partitions.map((pk) => table.query({ pk, index: 'due', to: dueUntil(now), limit: 1 })),
  );
  const since = found.flat().map(({ dueSk }) => Date.parse(String(dueSk).split('#')[0] ?? ''));
  return since.length === 0 ? undefined : Math.min(...since);
}
