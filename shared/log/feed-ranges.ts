/** The stored form of the cell feed: ranges of references, and the position of the feed in each log. */
import { type AccountRef, FEED_LOG, keys } from '../storage/schema.ts';
import type { Item, Key } from '../storage/table.ts';

/** Consecutive events of one log in the feed: those after `after`, up to `to`. */
export type Range = Readonly<ReturnType<typeof toRange>>;

export function toRangeItem(feed: AccountRef, { last, ...range }: Range, now: number): Item {
  const ttl = Math.ceil(range.expiresAt / 1000);
  return { ...keys.event(feed, last), ...range, forwardedAt: now, ttl };
}

export function toRange({ sk, account, epoch, after, to, expiresAt }: Item) {
  return {
    account: String(account),
    /** Epoch of the log when it was forwarded. */
    epoch: String(epoch),
    after: Number(after),
    to: Number(to),
    /** Feed number of the last event. */
    last: Number(sk),
    /** Epoch ms; not before the expiry of the last event, nor before that of the previous range. */
    expiresAt: Number(expiresAt),
  };
}

/** Returns the feed number before a range. */
export function getRangeStart({ last, after, to }: Range): number {
  return last - (to - after);
}

/**
 * Returns the attributes of a log's position, with the range that set it: a torn backup may have lost that
 * range.
 */
export function toPosition({ epoch, after, to, last, expiresAt }: Range, now: number) {
  return { epoch, position: to, after, last, rangeExpiresAt: expiresAt, forwardedAt: now };
}

export function positionKey(ref: AccountRef): Key {
  return keys.cursor(ref.region, FEED_LOG, ref.account);
}

export function formatKey({ pk, sk }: Key): string {
  return `${pk} ${sk}`;
}
