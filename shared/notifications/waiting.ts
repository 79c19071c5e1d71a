/** Whether there is anything to tell customers now, and how late that is. */
import { dueUntil, NOTIFY_SHARDS, notifyDuePk } from '../table/schema.ts';
import type { Table } from '../table/table.ts';

/**
 * Since when something has been due, at most (epoch ms): a window that is over, or a message that is to go. `undefined`: nothing
 * is. `now` is epoch ms. A read of the index for each of its partitions, whatever there is.
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
