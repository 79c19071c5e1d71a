/**
 * The cell feed: all events of all accounts of a region, and of the region's own log, in one gapless
 * sequence. It contains references. The events stay in their logs and are returned byte for byte as written.
 *
 *   LOG#us#acme     1 2 3 4 5          position 5 ─┐
 *   LOG#us#bakery   1 2                position 2 ─┤
 *   LOG#us#_cell    1                  position 1 ─┤
 *                                                  ▼
 *   LOG#us#_feed    [acme 1–3] [bakery 1–2] [acme 4–5] [_cell 1]
 *   its numbers        3            5           7         8        = sort keys; Head of _feed: 8
 *
 * This file reads it; `feed-forwarding.ts` writes it, and `feed-renewal.ts` repairs it after a restore.
 */
import pLimit from 'p-limit';
import { type AccountRef, feedLog, keys, logPk } from '../storage/schema.ts';
import { shareCalls } from '../storage/shared-reads.ts';
import type { Item, Table } from '../storage/table.ts';
import { formatKey, getRangeStart, type Range, toRange } from './feed-ranges.ts';
import { findEpochEnd, type Head, toHead } from './head.ts';
import { type LoggedEvent, toLoggedEvent } from './log.ts';

const READS_AT_ONCE = 16;
/** Up to this many events of a range are read by key; above that, a query costs less. */
const READ_BY_KEY = 4;
/**
 * A transaction becomes visible item by item, so a reference can be visible before its event. Reads wait this
 * long (ms) for a missing event, unless its account no longer exists. After that, the event counts as
 * deleted.
 */
const VISIBLE_AFTER_MS = 60_000;

/** An event of the feed, with its feed number. */
export interface FeedEvent {
  readonly number: number;
  readonly event: LoggedEvent;
}

/** Parameters of one read of the feed. */
export interface FeedRead {
  /**
   * Account ids to include; `null`: all accounts and the region's own log. Events of other accounts are
   * skipped without being read.
   */
  readonly accounts: readonly string[] | null;
  /** Maximum number of events to read. */
  readonly events: number;
  /** Maximum number of references to examine. */
  readonly ranges: number;
}

/** The result of a read. */
export type FeedOutcome =
  | {
      readonly kind: 'events';
      readonly events: readonly FeedEvent[];
      /** The last number that this read covered. */
      readonly through: number;
      readonly head: Head;
      /** Number of references and events examined. */
      readonly examined: number;
    }
  /** The position is not in the feed: beyond its head, or past retention. */
  | { readonly kind: 'gone'; readonly head: Head; readonly earliest: number };

/** The feeds of the regions of a table. */
export interface CellFeed {
  /** Returns the head; `undefined` for a region whose feed was not started. */
  head(region: string): Promise<Head | undefined>;
  /** Returns the lowest number within retention; head + 1 if there is none. */
  earliest(region: string, head: Head): Promise<number>;
  /** Returns the events after a number. Skips events that have expired or whose account was deleted. */
  read(region: string, after: number, query: FeedRead): Promise<FeedOutcome | undefined>;
}

/**
 * Creates the reading side. Equal reads within one turn of the event loop run once. A caller never receives a
 * response to a read that began before its call.
 */
export function createCellFeed(table: Table, now: () => number): CellFeed {
  async function readHead(region: string): Promise<Head | undefined> {
    const item = await table.get(keys.head(feedLog(region)));
    return item && toHead(item);
  }

  /** Finds the earliest number by bisection, as in a log. */
  async function earliest(region: string, head: Head): Promise<number> {
    const feed = feedLog(region);
    const at = async (number: number): Promise<Item | undefined> => {
      const [item] = await table.query({ pk: logPk(feed), from: keys.event(feed, number).sk, limit: 1 });
      return item;
    };
    const alive = (item: Item) => Number(item.expiresAt) > now();
    let found = await at(1);
    if (!found || alive(found)) return found ? getRangeStart(toRange(found)) + 1 : head.sequence + 1;
    let low = Number(found.sk) + 1;
    let high = head.sequence + 1;
    found = undefined;
    while (low < high) {
      const middle = Math.floor((low + high) / 2);
      const item = await at(middle);
      if (item && !alive(item)) {
        low = Number(item.sk) + 1;
      } else {
        found = item;
        high = item ? Math.min(middle, getRangeStart(toRange(item)) + 1) : middle;
      }
    }
    return low;
  }

  async function read(region: string, after: number, query: FeedRead): Promise<FeedOutcome | undefined> {
    const feed = feedLog(region);
    const [head, items] = await Promise.all([
      readHead(region),
      table.query({ pk: logPk(feed), after: keys.event(feed, after).sk, limit: query.ranges }),
    ]);
    if (!head) return undefined;
    if (after > head.sequence) return { kind: 'gone', head, earliest: await earliest(region, head) };
    const wanted = query.accounts && new Set(query.accounts);
    const parts: RangePart[] = [];
    let left = query.events;
    let through = after;
    let looked = 0;
    for (const item of items) {
      const range = toRange(item);
      // A gap is a transaction that is not visible yet. Expiry is monotonic, so expired ranges occur only at
      // the beginning.
      if (getRangeStart(range) > through || range.last > head.sequence || Number(item.expiresAt) <= now())
        break;
      looked += 1;
      if (range.account === '' || (wanted && !wanted.has(range.account))) {
        through = range.last;
        continue;
      }
      if (left === 0) break;
      const first = range.after + (through - getRangeStart(range));
      const to = Math.min(range.to, first + left);
      const ref = { region, account: range.account };
      parts.push({ ref, range, after: first, to, forwardedAt: Number(item.forwardedAt) });
      left -= to - first;
      through += to - first;
      if (to < range.to) break;
    }
    if (looked === 0 && after < head.sequence) {
      const first = await earliest(region, head);
      if (first > after + 1) return { kind: 'gone', head, earliest: first };
    }
    const resolved = await resolve(parts, through);
    return { kind: 'events', ...resolved, head, examined: looked + query.events - left };
  }

  /** Resolves references to events, up to the first event that may not be visible yet. */
  async function resolve(
    parts: readonly RangePart[],
    through: number,
  ): Promise<{ events: FeedEvent[]; through: number }> {
    const limit = pLimit(READS_AT_ONCE);
    const few = parts.filter(({ after, to }) => to - after <= READ_BY_KEY);
    const byKey = few.flatMap(({ ref, after, to }) =>
      listNumbers(after, to).map((at) => keys.event(ref, at)),
    );
    const [some, ...many] = await Promise.all([
      byKey.length > 0 ? table.getMany(byKey) : [],
      ...parts
        .filter((part) => !few.includes(part))
        .map(({ ref, after, to }) =>
          limit(() =>
            table.query({
              pk: logPk(ref),
              after: keys.event(ref, after).sk,
              to: keys.event(ref, to).sk,
            }),
          ),
        ),
    ]);
    const items = new Map([...some, ...many.flat()].map((item) => [formatKey(item), item]));
    const events: FeedEvent[] = [];
    for (const part of parts) {
      for (const at of listNumbers(part.after, part.to)) {
        const number = part.range.last - (part.range.to - at);
        const item = items.get(formatKey(keys.event(part.ref, at)));
        if (item && isForwardedEvent(item, part.range) && Number(item.expiresAt) > now()) {
          events.push({ number, event: toLoggedEvent(item, part.ref) });
        } else if (!item && (await mayBecomeVisible(part))) {
          return { events, through: number - 1 };
        }
      }
    }
    return { events, through };
  }

  async function mayBecomeVisible({ ref, range, forwardedAt }: RangePart): Promise<boolean> {
    if (forwardedAt + VISIBLE_AFTER_MS <= now()) return false;
    const item = await table.get(keys.head(ref));
    if (!item) return false;
    const head = toHead(item);
    return head.epoch === range.epoch || findEpochEnd(head, range.epoch) !== undefined;
  }

  const shared = shareCalls((asked: Parameters<CellFeed['read']>) => read(...asked));
  return { head: readHead, earliest, read: (...asked) => shared(asked) };
}

/** The part of a range to read. */
interface RangePart {
  readonly ref: AccountRef;
  readonly range: Range;
  readonly after: number;
  readonly to: number;
  readonly forwardedAt: number;
}

export function listNumbers(after: number, to: number): number[] {
  return Array.from({ length: to - after }, (_, at) => after + at + 1);
}

/**
 * Reports whether this is the forwarded event, and not one with the same number in a log that began anew
 * since. Epochs sort by time. An event that filled a gap when a torn log was renewed has its own type, and
 * represents the lost event.
 */
function isForwardedEvent(item: Item, { epoch }: Range): boolean {
  const [own = ''] = String(item.id).split('.').slice(-2);
  return own <= epoch || item.type === 'account.restored';
}
