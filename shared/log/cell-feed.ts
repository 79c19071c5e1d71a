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
 * One transaction forwards a log: the feed's Head (as expected, plus n), a range, and the log's position (as
 * expected, to its head). A process that repeats this, is late, or runs concurrently with others fails a
 * condition and reads again. No event is in the feed twice. No event is missing, because a log's wake mark is
 * deleted only after this (`shared/delivery/sink.ts`).
 */
import { randomUUID } from 'node:crypto';
import { setTimeout as sleepMs } from 'node:timers/promises';
import pLimit from 'p-limit';
import {
  type AccountRef,
  accountPk,
  cellLog,
  cursorPk,
  FEED_LOG,
  feedLog,
  keys,
  logPk,
} from '../storage/schema.ts';
import type { Clause, Item, Key, Table, Write } from '../storage/table.ts';
import { formatCursor, formerEnd, type Head, type LoggedEvent, toHead, toLogged } from './log.ts';

/**
 * Maximum number of logs in one transaction: Head, and a range and a position for each. One request of at
 * most 100 keys reads them.
 */
const LOGS_AT_ONCE = 49;
/** As for an account's log: of n concurrent forwarders, one succeeds in each round. */
const RENUMBER_ATTEMPTS = 100;
const MAX_RENUMBER_WAIT_MS = 200;
/** Maximum number of accounts of a region. */
const MAX_ACCOUNTS = 100_000;
const CALLS_AT_ONCE = 16;
/**
 * Number of last ranges of a restored feed that are checked for gaps of a torn backup: far more than one
 * second holds.
 */
const TORN_RANGES = 2_000;
/** A backup may be torn this long (ms) before the last write in it: far more than a second. */
const TORN_MS = 60_000;
/** Up to this many events of a range are read by key; above that, a query costs less. */
const READ_BY_KEY = 4;
/**
 * A transaction becomes visible item by item, so a reference can be visible before its event. Reads wait this
 * long (ms) for a missing event, unless its account no longer exists. After that, the event counts as
 * deleted.
 */
const VISIBLE_AFTER_MS = 60_000;

/** Options of {@link forwardLogs}. */
export interface ForwardOptions {
  /**
   * As for the logs: a feed of an earlier epoch must be renewed ({@link renewFeed}) before anything is
   * written to it.
   */
  readonly leastEpoch?: string | undefined;
  /** Epoch ms. */
  readonly now?: () => number;
  /** Called after each transaction that extended the feed: a hint for readers that wait. */
  readonly onForwarded?: (feed: AccountRef) => void;
  /** Waits before references are renumbered. Tests inject their own. */
  readonly sleep?: (ms: number) => Promise<unknown>;
  readonly random?: () => number;
}

/** Forwards logs for a process. Concurrent requests are combined. */
export interface Forwarder {
  /** See {@link forwardLogs}. */
  forward(ref: AccountRef): Promise<boolean>;
}

/**
 * Creates a forwarder. Each region has one transaction in progress at a time. Requests that arrive meanwhile
 * go with the next one, for any number of accounts.
 */
export function createForwarder(table: Table, options: ForwardOptions = {}): Forwarder {
  const waiting = new Map<string, { readonly refs: AccountRef[]; readonly done: Promise<boolean> }>();
  const underWay = new Map<string, Promise<unknown>>();
  return {
    forward(ref) {
      const { region } = ref;
      const known = waiting.get(region);
      if (known) {
        known.refs.push(ref);
        return known.done;
      }
      const refs = [ref];
      const done = (underWay.get(region) ?? Promise.resolve()).then(() => {
        waiting.delete(region);
        return forwardLogs(table, refs, options);
      });
      waiting.set(region, { refs, done });
      underWay.set(
        region,
        done.catch(() => {}),
      );
      return done;
    },
  };
}

/**
 * Forwards all current events of the logs (of one region) to the feed, each event once. Safe to repeat and to
 * run concurrently.
 *
 * Returns false, and does nothing, while the feed belongs to a restored table and is not renewed; the caller
 * must retry. A feed that was not started takes up existing events by itself ({@link startFeed}).
 */
export async function forwardLogs(
  table: Table,
  refs: readonly AccountRef[],
  options: ForwardOptions = {},
): Promise<boolean> {
  const once = [...new Map(refs.map((ref) => [ref.account, ref])).values()];
  for (let at = 0; at < once.length; at += LOGS_AT_ONCE) {
    if (!(await forwardSome(table, once.slice(at, at + LOGS_AT_ONCE), options))) return false;
  }
  return true;
}

async function forwardSome(
  table: Table,
  refs: readonly AccountRef[],
  { leastEpoch = '', now = Date.now, onForwarded, sleep = sleepMs, random = Math.random }: ForwardOptions,
): Promise<boolean> {
  const feed = feedLog(refs[0]?.region ?? '');
  for (let attempt = 0; attempt < RENUMBER_ATTEMPTS; attempt += 1) {
    const wanted = [keys.head(feed), ...refs.flatMap((ref) => [keys.head(ref), positionKey(ref)])];
    const found = new Map((await table.getMany(wanted)).map((item) => [nameOf(item), item]));
    const item = found.get(nameOf(keys.head(feed)));
    if (!item) return true;
    const head = toHead(item);
    if (head.epoch < leastEpoch) return false;
    const logs = refs.flatMap((ref) => {
      const own = found.get(nameOf(keys.head(ref)));
      // An account that was deleted meanwhile has no events to forward.
      return own ? [{ ref, head: toHead(own), position: found.get(nameOf(positionKey(ref))) }] : [];
    });
    const writes = take(feed, head, logs, now());
    if (writes.length === 0) return true;
    if ((await table.transact(writes, randomUUID())).done) {
      onForwarded?.(feed);
      return true;
    }
    await sleep(Math.min(MAX_RENUMBER_WAIT_MS, 2 ** attempt) * random());
  }
  throw new Error(`The feed of ${feed.region} kept moving while ${refs.length} logs were forwarded.`);
}

/** A log's current state, with its position in the feed. */
interface Standing {
  readonly ref: AccountRef;
  readonly head: Head;
  readonly position: Item | undefined;
}

/**
 * Returns the writes of one transaction that forwards the events beyond the logs' positions. Empty if there
 * are none.
 */
function take(feed: AccountRef, head: Head, logs: readonly Standing[], now: number): Write[] {
  const writes: Write[] = [];
  let last = head.sequence;
  // As in a log: an expiry earlier than that of the previous range must not open a gap.
  let expiresAt = Number(head.attributes.rangesExpireAt ?? 0);
  for (const { ref, head: own, position } of logs) {
    const after = positionIn(own, position);
    if (own.sequence <= after) continue;
    last += own.sequence - after;
    expiresAt = Math.max(expiresAt, Number(own.attributes.eventsExpireAt ?? now));
    const range = { account: ref.account, epoch: own.epoch, after, to: own.sequence, last, expiresAt };
    writes.push(
      { put: toRangeItem(feed, range, now), when: [['pk', 'absent']] },
      { update: positionKey(ref), set: toPosition(range, now), when: stillAt(position) },
    );
  }
  if (writes.length === 0) return [];
  const grown: Write = {
    update: keys.head(feed),
    set: { sequence: last, rangesExpireAt: expiresAt },
    when: [
      ['sequence', '=', head.sequence],
      ['epoch', '=', head.epoch],
    ],
  };
  return [grown, ...writes];
}

/**
 * Returns the last event of a log that is in the feed. 0 for a log that began anew, such as that of an
 * account that was deleted and created again.
 */
function positionIn(head: Head, position: Item | undefined): number {
  if (!position) return 0;
  const epoch = String(position.epoch);
  const isSame = epoch === head.epoch || formerEnd(head, epoch) !== undefined;
  return isSame ? Number(position.position) : 0;
}

function stillAt(position: Item | undefined): readonly Clause[] {
  if (!position) return [['pk', 'absent']];
  return [
    ['position', '=', Number(position.position)],
    ['epoch', '=', String(position.epoch)],
  ];
}

/** Consecutive events of one log in the feed: those after `after`, up to `to`. */
interface Range {
  readonly account: string;
  /** Epoch of the log when it was forwarded. */
  readonly epoch: string;
  readonly after: number;
  readonly to: number;
  /** Feed number of the last event. */
  readonly last: number;
  /** Epoch ms; not before the expiry of the last event, nor before that of the previous range. */
  readonly expiresAt: number;
}

function toRangeItem(feed: AccountRef, { last, ...range }: Range, now: number): Item {
  const ttl = Math.ceil(range.expiresAt / 1000);
  return { ...keys.event(feed, last), ...range, forwardedAt: now, ttl };
}

function toRange({ sk, account, epoch, after, to, expiresAt }: Item): Range {
  return {
    account: String(account),
    epoch: String(epoch),
    after: Number(after),
    to: Number(to),
    last: Number(sk),
    expiresAt: Number(expiresAt),
  };
}

/** Returns the feed number before a range. */
function beginning({ last, after, to }: Range): number {
  return last - (to - after);
}

/**
 * Returns the attributes of a log's position, with the range that set it: a torn backup may have lost that
 * range.
 */
function toPosition({ epoch, after, to, last, expiresAt }: Range, now: number) {
  return { epoch, position: to, after, last, rangeExpiresAt: expiresAt, forwardedAt: now };
}

function positionKey(ref: AccountRef): Key {
  return keys.cursor(ref.region, FEED_LOG, ref.account);
}

function nameOf({ pk, sk }: Key): string {
  return `${pk} ${sk}`;
}

/**
 * Starts the feed of a region that has none. The feed begins at the current positions of the logs. Accounts
 * that are registered later are included from their beginning. Repeating the call is harmless, and completes
 * an interrupted start.
 */
export async function startFeed(
  table: Table,
  region: string,
  options: ForwardOptions & { readonly epoch: string },
): Promise<void> {
  const { epoch, ...forwarding } = options;
  const { now = Date.now } = forwarding;
  const feed = feedLog(region);
  const known = await table.get(keys.head(feed));
  if (known && known.starting === undefined) return;
  const refs = [cellLog(region), ...(await accountsOf(table, region))];
  if (!known) {
    // Positions are written before the feed: a feed without positions would include a log from its beginning.
    const heads = await table.getMany(refs.map(keys.head));
    const byPartition = new Map(refs.map((ref) => [keys.head(ref).pk, ref]));
    await pLimit(CALLS_AT_ONCE).map(heads, async (item) => {
      const ref = byPartition.get(item.pk);
      const { epoch: own, sequence } = toHead(item);
      if (!ref) return;
      await table.write({
        put: {
          ...positionKey(ref),
          ...toPosition(
            { account: ref.account, epoch: own, after: sequence, to: sequence, last: 0, expiresAt: 0 },
            now(),
          ),
        },
        when: [['pk', 'absent']],
      });
    });
    await table.write({
      put: { ...keys.head(feed), epoch, sequence: 0, starting: true },
      when: [['pk', 'absent']],
    });
  }
  // Events recorded after their log's position was read. No process forwarded them, because there was no feed
  // yet.
  await forwardLogs(table, refs, forwarding);
  await table.write({
    update: keys.head(feed),
    set: { starting: undefined },
    when: [['starting', 'present']],
  });
}

async function accountsOf(table: Table, region: string): Promise<AccountRef[]> {
  const items = await table.query({ pk: accountPk(region), limit: MAX_ACCOUNTS });
  return items.map(({ sk }) => ({ region, account: sk }));
}

/**
 * Renews the feed after the table was restored: it resumes in a new epoch, after all numbers that are
 * visible. Call it before the logs are renewed. Repeating it is harmless.
 *
 * A backup can be torn by moments: a transaction of its last second may be there only in part. Any part that
 * is visible is repaired, so that each event is in the feed once; see {@link mend}. The positions then show
 * how far receivers of the feed had read the logs. The logs must not assign those numbers again.
 */
export async function renewFeed(
  table: Table,
  region: string,
  { epoch, leastEpoch, now }: { readonly epoch: string; readonly leastEpoch: string; readonly now: number },
): Promise<void> {
  const feed = feedLog(region);
  const item = await table.get(keys.head(feed));
  if (!item) return;
  const head = toHead(item);
  if (head.epoch >= leastEpoch) return;
  const [shown, positions] = await Promise.all([
    table.query({ pk: logPk(feed), descending: true, limit: TORN_RANGES }),
    table.query({ pk: cursorPk(region, FEED_LOG) }),
  ]);
  // Expired items are deleted in any order and are no gap.
  const alive = shown.filter((range) => Number(range.expiresAt) > now).reverse();
  const times = [...shown, ...positions].map(({ forwardedAt }) => Number(forwardedAt));
  const since = times.reduce((latest, time) => Math.max(latest, time), 0) - TORN_MS;
  const mended = mend(
    head.sequence,
    { ranges: alive.map(toRange), isAll: shown.length < TORN_RANGES },
    positions.map((one) => ({ ...toPlaced(one), isRecent: Number(one.forwardedAt) > since })),
  );
  const limit = pLimit(CALLS_AT_ONCE);
  await limit.map(mended.ranges, (range) =>
    table.write({ put: toRangeItem(feed, range, now), when: [['pk', 'absent']] }),
  );
  await limit.map(mended.positions, (range) =>
    table.write({ put: { ...positionKey({ region, account: range.account }), ...toPosition(range, now) } }),
  );
  const former = [
    ...((head.attributes.former as readonly string[] | undefined) ?? []),
    formatCursor(head.epoch, mended.end),
  ];
  const expiresAt = Math.max(
    Number(head.attributes.rangesExpireAt ?? 0),
    ...[...alive, ...mended.ranges].map((range) => Number(range.expiresAt)),
  );
  // Written last: if interrupted before, the next run finds the same state again.
  await table.write({
    update: keys.head(feed),
    set: { epoch, sequence: mended.sequence, rangesExpireAt: expiresAt, former },
    when: [
      ['epoch', '=', head.epoch],
      ['sequence', '=', head.sequence],
    ],
  });
}

/** Returns the range that set a log's position. */
function toPlaced({ sk, epoch, position, after, last, rangeExpiresAt }: Item): Range {
  return {
    expiresAt: Number(rangeExpiresAt),
    account: sk,
    epoch: String(epoch),
    after: Number(after),
    to: Number(position),
    last: Number(last),
  };
}

/** The repair of a torn feed. */
interface Mended {
  /** Last feed number of the old epoch: after all numbers in any range or position. */
  readonly end: number;
  /** Last feed number after the repair. */
  readonly sequence: number;
  /** Ranges to write. */
  readonly ranges: readonly Range[];
  /** Positions to write. */
  readonly positions: readonly Range[];
}

/**
 * Computes the repair from the last ranges of a feed (in order) and the positions of all logs:
 * - A range is missing, and a position refers to it: the range is written at its place.
 * - A position is before a range of its log: it is advanced to that range.
 * - The ranges of a log do not join each other or its position: the missing events are added again, at the
 * end.
 * - Numbers remain without a range: a range without events fills them, because readers stop at a gap.
 */
function mend(
  sequence: number,
  shown: { readonly ranges: readonly Range[]; readonly isAll: boolean },
  positions: readonly (Range & { readonly isRecent: boolean })[],
): Mended {
  const isShown = new Set(shown.ranges.map(({ last }) => last));
  const least = shown.isAll || !shown.ranges[0] ? 0 : beginning(shown.ranges[0]);
  const lost = positions.filter(
    ({ last, after, to, isRecent }) => isRecent && to > after && last > least && !isShown.has(last),
  );
  const known = [...shown.ranges, ...lost].sort((a, b) => a.last - b.last);
  const end = Math.max(sequence, known.at(-1)?.last ?? 0);

  const latest = new Map<string, Range>(positions.map((one) => [one.account, one]));
  const moved = new Map<string, Range>();
  const between: Omit<Range, 'last' | 'expiresAt'>[] = [];
  const holes: Range[] = [];
  /** Progress of each log when a range was written, according to earlier ranges and older positions. */
  const before = new Map<string, Range>();
  const placed = [...positions].sort((a, b) => a.last - b.last);
  let filled = known[0] ? beginning(known[0]) : sequence;
  let expiresAt = 0;
  for (const range of known) {
    const gap = beginning(range) - filled;
    if (gap > 0) holes.push(nothing(filled + gap, gap, range.expiresAt));
    expiresAt = Math.max(expiresAt, range.expiresAt);
    filled = range.last;
    if (range.account === '') continue;
    for (let one = placed[0]; one && one.last < range.last; one = placed[0]) {
      placed.shift();
      if (isBeyond(one, before.get(one.account))) before.set(one.account, one);
    }
    const { account, epoch } = range;
    const previous = before.get(account);
    if (!isBeyond(range, previous)) continue;
    before.set(account, range);
    if (previous && range.after > previous.to) {
      const missing = { account, epoch, after: previous.to, to: range.after };
      const isThere = known.some(
        (one) => one.account === account && one.after === missing.after && one.to === missing.to,
      );
      if (!isThere) between.push(missing);
    }
    if (isBeyond(range, latest.get(account))) {
      latest.set(account, range);
      moved.set(account, range);
    }
  }
  if (end > filled) holes.push(nothing(end, end - filled, expiresAt));
  let last = end;
  const anew = between.map((range) => {
    last += range.to - range.after;
    return { ...range, last, expiresAt };
  });
  return { end, sequence: last, ranges: [...lost, ...holes, ...anew], positions: [...moved.values()] };
}

/**
 * Reports whether a range is further in its log than another: higher numbers, or a later epoch of a
 * re-created account.
 */
function isBeyond(range: Range, other: Range | undefined): boolean {
  if (!other || range.epoch > other.epoch) return true;
  return range.epoch === other.epoch && range.to > other.to;
}

function nothing(last: number, numbers: number, expiresAt: number): Range {
  return { account: '', epoch: '', after: 0, to: numbers, last, expiresAt };
}

// Reading

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
      readonly looked: number;
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
  const asked = new Map<string, Promise<FeedOutcome | undefined>>();

  async function headOf(region: string): Promise<Head | undefined> {
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
    if (!found || alive(found)) return found ? beginning(toRange(found)) + 1 : head.sequence + 1;
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
        high = item ? Math.min(middle, beginning(toRange(item)) + 1) : middle;
      }
    }
    return low;
  }

  async function read(region: string, after: number, query: FeedRead): Promise<FeedOutcome | undefined> {
    const feed = feedLog(region);
    const [head, items] = await Promise.all([
      headOf(region),
      table.query({ pk: logPk(feed), after: keys.event(feed, after).sk, limit: query.ranges }),
    ]);
    if (!head) return undefined;
    if (after > head.sequence) return { kind: 'gone', head, earliest: await earliest(region, head) };
    const wanted = query.accounts && new Set(query.accounts);
    const parts: Part[] = [];
    let left = query.events;
    let through = after;
    let looked = 0;
    for (const item of items) {
      const range = toRange(item);
      // A gap is a transaction that is not visible yet. Expiry is monotonic, so expired ranges occur only at
      // the beginning.
      if (beginning(range) > through || range.last > head.sequence || Number(item.expiresAt) <= now()) break;
      looked += 1;
      if (range.account === '' || (wanted && !wanted.has(range.account))) {
        through = range.last;
        continue;
      }
      if (left === 0) break;
      const first = range.after + (through - beginning(range));
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
    return { kind: 'events', ...resolved, head, looked: looked + query.events - left };
  }

  /** Resolves references to events, up to the first event that may not be visible yet. */
  async function resolve(
    parts: readonly Part[],
    through: number,
  ): Promise<{ events: FeedEvent[]; through: number }> {
    const limit = pLimit(CALLS_AT_ONCE);
    const few = parts.filter(({ after, to }) => to - after <= READ_BY_KEY);
    const byKey = few.flatMap(({ ref, after, to }) => numbers(after, to).map((at) => keys.event(ref, at)));
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
    const items = new Map([...some, ...many.flat()].map((item) => [nameOf(item), item]));
    const events: FeedEvent[] = [];
    for (const part of parts) {
      for (const at of numbers(part.after, part.to)) {
        const number = part.range.last - (part.range.to - at);
        const item = items.get(nameOf(keys.event(part.ref, at)));
        if (item && isMeant(item, part.range) && Number(item.expiresAt) > now()) {
          events.push({ number, event: toLogged(item, part.ref) });
        } else if (!item && (await mayCome(part))) {
          return { events, through: number - 1 };
        }
      }
    }
    return { events, through };
  }

  async function mayCome({ ref, range, forwardedAt }: Part): Promise<boolean> {
    if (forwardedAt + VISIBLE_AFTER_MS <= now()) return false;
    const item = await table.get(keys.head(ref));
    if (!item) return false;
    const head = toHead(item);
    return head.epoch === range.epoch || formerEnd(head, range.epoch) !== undefined;
  }

  return {
    head: headOf,
    earliest,
    read(region, after, query) {
      const name = JSON.stringify([region, after, query.events, query.ranges, query.accounts]);
      const known = asked.get(name);
      if (known) return known;
      const reading = new Promise((done) => setImmediate(done)).then(() => {
        asked.delete(name);
        return read(region, after, query);
      });
      asked.set(name, reading);
      return reading;
    },
  };
}

/** The part of a range to read. */
interface Part {
  readonly ref: AccountRef;
  readonly range: Range;
  readonly after: number;
  readonly to: number;
  readonly forwardedAt: number;
}

function numbers(after: number, to: number): number[] {
  return Array.from({ length: to - after }, (_, at) => after + at + 1);
}

/**
 * Reports whether this is the forwarded event, and not one with the same number in a log that began anew
 * since. Epochs sort by time. An event that filled a gap when a torn log was renewed has its own type, and
 * represents the lost event.
 */
function isMeant(item: Item, { epoch }: Range): boolean {
  const [own = ''] = String(item.id).split('.').slice(-2);
  return own <= epoch || item.type === 'account.restored';
}
