/** Events looked up by what they are about, or by their ids: see feed.ts for reading a log as it goes. */
import { type AccountRef, jobEventsPk, keys, pad } from '../storage/schema.ts';
import type { Table } from '../storage/table.ts';

interface EventDeps {
  readonly table: Table;
  /** Epoch ms. */
  readonly now: () => number;
}

/** Some events of one job. */
export interface JobEvents {
  /** The envelopes as stored, byte for byte. */
  readonly events: readonly string[];
  /** The sequence of the last one that was looked at, to go on behind; null when there are no more. */
  readonly next: string | null;
}

/** A page is cut (after its first event) before it grows over this: a Lambda answers with 6 MB at most. */
const PAGE_BYTES = 4_000_000;

/**
 * Up to `limit` events of a job that are within retention, newest first or oldest first, behind the sequence of a cursor.
 * The index lags behind the log by moments, as a rule less than a second. Events that were said before there was such an
 * index are not found by it.
 */
export async function readJobEvents(
  { table, now }: EventDeps,
  ref: AccountRef,
  jobNumber: number,
  query: {
    readonly order: 'newest' | 'oldest';
    readonly after?: { readonly sequence: number } | undefined;
    readonly limit: number;
  },
): Promise<JobEvents> {
  const { order, after, limit } = query;
  const newest = order === 'newest';
  const bound =
    after === undefined ? undefined : pad(newest ? Math.max(0, after.sequence - 1) : after.sequence, 16);
  const entries = await table.query({
    index: 'related',
    pk: jobEventsPk(ref, jobNumber),
    ...(bound === undefined ? {} : newest ? { to: bound } : { after: bound }),
    descending: newest,
    limit,
  });
  const items = await table.getMany(entries.map(({ pk, sk }) => ({ pk, sk })));
  const bySequence = new Map(items.map((item) => [item.sk, item]));
  const events: string[] = [];
  let bytes = 0;
  let behind: string | undefined;
  let more = entries.length === limit;
  for (const { sk } of entries) {
    const item = bySequence.get(sk);
    // Its time may be over before TTL gets round to deleting it, or the index to forgetting it.
    if (item && Number(item.expiresAt) > now()) {
      const text = String(item.event);
      bytes += Buffer.byteLength(text);
      if (events.length > 0 && bytes > PAGE_BYTES) {
        more = true;
        break;
      }
      events.push(text);
    } else if (newest) {
      // Expiry never falls with the sequence: whatever is older is over as well.
      more = false;
      break;
    }
    behind = sk;
  }
  return { events, next: more && behind !== undefined ? String(Number(behind)) : null };
}

/** One event by its id, as stored; `undefined` when there is none such, or it is out of retention. */
export async function readEvent(
  { table, now }: EventDeps,
  ref: AccountRef,
  epoch: string,
  sequence: number,
): Promise<string | undefined> {
  const item = await table.get(keys.event(ref, sequence));
  if (item?.id !== `${ref.account}.${epoch}.${sequence}` || Number(item.expiresAt) <= now()) return undefined;
  return String(item.event);
}
