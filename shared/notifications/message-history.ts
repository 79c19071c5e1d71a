/** Reads the history of messages. */
import {
  type AccountRef,
  failedMessagesPk,
  keys,
  sentOfJobPk,
  sentPk,
  sentToRecipientPk,
} from '../storage/schema.ts';
import type { Item, Table } from '../storage/table.ts';
import { toMessageId } from './message-ids.ts';
import type { Message } from './records.ts';
import type { MessageState } from './types.ts';

/** Returns a message from the history, or `undefined`. */
export async function readMessage(history: Table, ref: AccountRef, id: string): Promise<Message | undefined> {
  const item = await history.get(keys.sentMessage(ref, id));
  return item && toMessage(item);
}

/** Filter and page of a list of an account's messages. */
export interface MessageQuery {
  /** Only messages about this job. */
  readonly job?: number | undefined;
  /** Only messages to this recipient. */
  readonly recipient?: string | undefined;
  readonly state?: MessageState | undefined;
  /** Only messages after this cursor: the `next` of the previous page. */
  readonly after?: string | undefined;
  /** Default: 50. */
  readonly limit?: number | undefined;
}

/** Maximum number of messages read when filtering by state. A page can be shorter than its limit because of it. */
const MAX_FILTERED = 1000;
/** Minimum number of messages of the second and further reads of a page. */
const NEXT_READ = 100;

/** Returns an account's messages from the history, newest first. `next` is present if there may be more. */
export async function listMessages(
  history: Table,
  ref: AccountRef,
  { job, recipient, state, after, limit = 50 }: MessageQuery = {},
): Promise<{ readonly messages: Message[]; readonly next?: string }> {
  const pk =
    job !== undefined
      ? sentOfJobPk(ref, job)
      : recipient !== undefined
        ? sentToRecipientPk(ref, recipient)
        : sentPk(ref);
  const messages: Message[] = [];
  let last = after;
  for (
    let looked = 0, size = limit;
    looked < MAX_FILTERED;
    looked += size, size = Math.max(limit, NEXT_READ)
  ) {
    // The upper bound of a range is inclusive, and the item at it was on the previous page.
    const range = { pk, descending: true, limit: size + 1, ...(last === undefined ? {} : { to: last }) };
    const read = await history.query(range);
    const page = read.filter(({ sk }) => sk !== last);
    const records = pk === sentPk(ref) ? page : await readRecords(history, ref, page);
    const found = new Map(records.map((item) => [item.sk, toMessage(item)]));
    for (const { sk } of page) {
      const message = found.get(sk);
      if (message && (state === undefined || message.state === state)) {
        if (messages.length === limit) return { messages, ...(last === undefined ? {} : { next: last }) };
        messages.push(message);
      }
      last = sk;
    }
    if (read.length <= size) return { messages };
  }
  return { messages, ...(last === undefined ? {} : { next: last }) };
}

/** Returns the messages of a region that did not reach their recipients, newest first, since a time (epoch ms). `to`: id of the newest. */
export async function listUndelivered(
  history: Table,
  region: string,
  since: number,
  limit: number,
  to?: string,
): Promise<Message[]> {
  const range = { from: toMessageId('', since), ...(to !== undefined && { to }) };
  const pk = failedMessagesPk(region);
  return (await history.query({ index: 'failures', pk, ...range, descending: true, limit })).map(toMessage);
}

/** Time (ms) between the change that a message reports and its failure: retries and later feedback. */
const MAX_FAILURE_DELAY_MS = 7 * 86_400_000;

/**
 * Returns the accounts of the messages of a region that failed since a time (epoch ms), one for each message. Of the messages with the
 * newest changes, at most `limit` are read.
 */
export async function listFailureAccounts(
  history: Table,
  region: string,
  since: number,
  limit: number,
): Promise<string[]> {
  const from = toMessageId('', since - MAX_FAILURE_DELAY_MS);
  const pk = failedMessagesPk(region);
  const items = await history.query({ index: 'failures', pk, from, descending: true, limit });
  return items.flatMap((item) => {
    const { account, createdAt } = toMessage(item);
    // Earlier versions stored no time of the failure.
    return Number(item.failedAt ?? createdAt) >= since ? [account] : [];
  });
}

/** Reads the records that pointers name. */
function readRecords(history: Table, ref: AccountRef, pointers: readonly Item[]): Promise<Item[]> {
  return history.getMany(pointers.map(({ sk }) => keys.sentMessage(ref, sk)));
}

export function toMessage(item: Item): Message {
  return JSON.parse(String(item.message)) as Message;
}
