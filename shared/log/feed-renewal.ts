/** The renewal of a cell feed after its table was restored from a backup. */
import pLimit from 'p-limit';
import { cursorPk, FEED_LOG, feedLog, keys, logPk } from '../storage/schema.ts';
import type { Item, Table } from '../storage/table.ts';
import { getRangeStart, positionKey, type Range, toPosition, toRange, toRangeItem } from './feed-ranges.ts';
import { formatCursor, toHead } from './head.ts';

/**
 * Number of last ranges of a restored feed that are checked for gaps of a torn backup: far more than one
 * second holds.
 */
const TORN_RANGES = 2_000;
/** A backup may be torn this long (ms) before the last write in it: far more than a second. */
const TORN_MS = 60_000;
const WRITES_AT_ONCE = 16;

/**
 * Renews the feed after the table was restored: it resumes in a new epoch, after all numbers that are
 * visible. Call it before the logs are renewed. Repeating it is harmless.
 *
 * A backup can be torn: it may contain only a part of a transaction of its last second. Any part that
 * is visible is repaired, so that each event is in the feed once; see {@link planRepair}. The positions then show
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
  const repair = planRepair(
    head.sequence,
    { ranges: alive.map(toRange), isAll: shown.length < TORN_RANGES },
    positions.map((one) => ({ ...toPositionRange(one), isRecent: Number(one.forwardedAt) > since })),
  );
  const limit = pLimit(WRITES_AT_ONCE);
  await limit.map(repair.ranges, (range) =>
    table.write({ put: toRangeItem(feed, range, now), when: [['pk', 'absent']] }),
  );
  await limit.map(repair.positions, (range) =>
    table.write({ put: { ...positionKey({ region, account: range.account }), ...toPosition(range, now) } }),
  );
  const former = [
    ...((head.attributes.former as readonly string[] | undefined) ?? []),
    formatCursor(head.epoch, repair.end),
  ];
  const expiresAt = Math.max(
    Number(head.attributes.rangesExpireAt ?? 0),
    ...[...alive, ...repair.ranges].map((range) => Number(range.expiresAt)),
  );
  // Written last: if interrupted before, the next run finds the same state again.
  await table.write({
    update: keys.head(feed),
    set: { epoch, sequence: repair.sequence, rangesExpireAt: expiresAt, former },
    when: [
      ['epoch', '=', head.epoch],
      ['sequence', '=', head.sequence],
    ],
  });
}

/** Returns the range that set a log's position. */
function toPositionRange({ sk, epoch, position, after, last, rangeExpiresAt }: Item): Range {
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
interface FeedRepair {
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
function planRepair(
  sequence: number,
  shown: { readonly ranges: readonly Range[]; readonly isAll: boolean },
  positions: readonly (Range & { readonly isRecent: boolean })[],
): FeedRepair {
  const isShown = new Set(shown.ranges.map(({ last }) => last));
  const least = shown.isAll || !shown.ranges[0] ? 0 : getRangeStart(shown.ranges[0]);
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
  let filled = known[0] ? getRangeStart(known[0]) : sequence;
  let expiresAt = 0;
  for (const range of known) {
    const gap = getRangeStart(range) - filled;
    if (gap > 0) holes.push(createEmptyRange(filled + gap, gap, range.expiresAt));
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
  if (end > filled) holes.push(createEmptyRange(end, end - filled, expiresAt));
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

function createEmptyRange(last: number, numbers: number, expiresAt: number): Range {
  return { account: '', epoch: '', after: 0, to: numbers, last, expiresAt };
}
