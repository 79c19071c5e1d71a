/** Events of a job, and single events by id. `feed.ts` reads logs in order. */
import * as z from 'zod';
import { asStored } from '../representation.ts';
import { type AccountRef, jobEventsPk, keys, pad } from '../storage/schema.ts';
import type { Table } from '../storage/table.ts';

/** A stored envelope. Its type determines the schema of `data`. */
export const Event = asStored(
  z
    .object({
      specversion: z.literal('1.0'),
      id: z.string().describe('Unique id: `<account>.<epoch>.<sequence>`. Never reused.'),
      source: z.string().describe('Log that contains the event. A URL if a public URL is configured.'),
      type: z.string().describe('Event type, as listed by `/v1/event-types`.'),
      subject: z.string().optional().describe('`jobs/<jobNumber>` or `order-groups/<name>`.'),
      time: z.iso.datetime(),
      sequence: z.string().describe('Position in the log of the account: 20 digits, sortable as text.'),
      dataschema: z.string().describe('URI of the JSON Schema of `data`.'),
      datacontenttype: z.literal('application/json'),
      data: z.looseObject({ account: z.string().optional(), region: z.string() }),
    })
    .meta({ id: 'Event', description: 'A CloudEvents 1.0 envelope in structured JSON.' }),
);

interface EventDeps {
  readonly table: Table;
  /** Epoch ms. */
  readonly now: () => number;
}

/** A page of the events of a job. */
export interface JobEvents {
  /** Stored envelopes, byte for byte. */
  readonly events: readonly string[];
  /** Sequence after which the next page starts. `null`: last page. */
  readonly next: string | null;
}

/** Maximum size of a page with more than one event. A Lambda response is limited to 6 MB. */
const PAGE_BYTES = 4_000_000;

/**
 * Returns up to `limit` events of a job within retention, newest or oldest first, after the sequence of a cursor. The index is
 * eventually consistent: usually less than a second behind the log. Events recorded before the index existed are not found.
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
  let last: string | undefined;
  let more = entries.length === limit;
  for (const { sk } of entries) {
    const item = bySequence.get(sk);
    // Expired items remain until TTL deletes them.
    if (item && Number(item.expiresAt) > now()) {
      const text = String(item.event);
      bytes += Buffer.byteLength(text);
      if (events.length > 0 && bytes > PAGE_BYTES) {
        more = true;
        break;
      }
      events.push(text);
    } else if (newest) {
      // Expiry is monotonic: all older events have expired too.
      more = false;
      break;
    }
    last = sk;
  }
  return { events, next: more && last !== undefined ? String(Number(last)) : null };
}

/** Returns an event by its id, as stored, or `undefined` if it does not exist or has expired. */
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
