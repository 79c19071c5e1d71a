/**
 * Writing the cell feed: forwards logs to it, and starts it.
 *
 * One transaction forwards a log: the feed's Head (as expected, plus n), a range, and the log's position (as
 * expected, to its head). A process that repeats this, is late, or runs concurrently with others fails a
 * condition and reads again. No event is in the feed twice. No event is missing, because a log's wake mark is
 * deleted only after this (`shared/delivery/wakes.ts`).
 */
import { randomUUID } from 'node:crypto';
import { setTimeout as sleepMs } from 'node:timers/promises';
import pLimit from 'p-limit';
import { type Backoff, backoff, FULL_JITTER, withJitter } from '../retry.ts';
import { type AccountRef, accountPk, cellLog, feedLog, keys } from '../storage/schema.ts';
import type { Clause, Item, Table, Write } from '../storage/table.ts';
import { formatKey, positionKey, toPosition, toRangeItem } from './feed-ranges.ts';
import { findEpochEnd, type Head, toHead } from './head.ts';

/**
 * Maximum number of logs in one transaction: Head, and a range and a position for each. One request of at
 * most 100 keys reads them.
 */
export const LOGS_AT_ONCE = 49;
/** As for an account's log: of n concurrent forwarders, one succeeds in each round. */
const RENUMBER_ATTEMPTS = 100;
/** In ms. */
const RENUMBER_BACKOFF: Backoff = { first: 1, max: 200 };
/** Maximum number of accounts of a region. */
const MAX_ACCOUNTS = 100_000;
const WRITES_AT_ONCE = 16;

/** Options of {@link forwardLogs}. */
export interface ForwardOptions {
  /**
   * As for the logs: a feed of an earlier epoch must be renewed (`renewFeed`) before anything is
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
 * Creates a forwarder. Each region has one transaction in progress at a time. Requests that arrive meanwhile, or within `everyMs` after
 * it, go with the next one, for any number of accounts.
 */
export function createForwarder(
  table: Table,
  { everyMs = 0, ...options }: ForwardOptions & { readonly everyMs?: number } = {},
): Forwarder {
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
        done
          .catch(() => {})
          .then(() => (everyMs > 0 ? sleepMs(everyMs, undefined, { ref: false }) : undefined)),
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
    const found = new Map((await table.getMany(wanted)).map((item) => [formatKey(item), item]));
    const item = found.get(formatKey(keys.head(feed)));
    if (!item) return true;
    const head = toHead(item);
    if (head.epoch < leastEpoch) return false;
    const logs = refs.flatMap((ref) => {
      const own = found.get(formatKey(keys.head(ref)));
      // An account that was deleted meanwhile has no events to forward.
      return own ? [{ ref, head: toHead(own), position: found.get(formatKey(positionKey(ref))) }] : [];
    });
    const writes = buildForwardWrites(feed, head, logs, now());
    if (writes.length === 0) return true;
    if ((await table.transact(writes, randomUUID())).done) {
      onForwarded?.(feed);
      return true;
    }
    await sleep(withJitter(backoff(attempt, RENUMBER_BACKOFF), FULL_JITTER, random()));
  }
  throw new Error(
    `Too many concurrent writes to the feed of ${feed.region} while ${refs.length} logs were forwarded.`,
  );
}

/** A log's current state, with its position in the feed. */
interface LogState {
  readonly ref: AccountRef;
  readonly head: Head;
  readonly position: Item | undefined;
}

/**
 * Returns the writes of one transaction that forwards the events beyond the logs' positions. Empty if there
 * are none.
 */
function buildForwardWrites(feed: AccountRef, head: Head, logs: readonly LogState[], now: number): Write[] {
  const writes: Write[] = [];
  let last = head.sequence;
  // As in a log: an expiry earlier than that of the previous range must not open a gap.
  let expiresAt = Number(head.attributes.rangesExpireAt ?? 0);
  for (const { ref, head: own, position } of logs) {
    const after = getForwardedPosition(own, position);
    if (own.sequence <= after) continue;
    last += own.sequence - after;
    expiresAt = Math.max(expiresAt, Number(own.attributes.eventsExpireAt ?? now));
    const range = { account: ref.account, epoch: own.epoch, after, to: own.sequence, last, expiresAt };
    writes.push(
      { put: toRangeItem(feed, range, now), when: [['pk', 'absent']] },
      { update: positionKey(ref), set: toPosition(range, now), when: isUnchanged(position) },
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
function getForwardedPosition(head: Head, position: Item | undefined): number {
  if (!position) return 0;
  const epoch = String(position.epoch);
  const isSame = epoch === head.epoch || findEpochEnd(head, epoch) !== undefined;
  return isSame ? Number(position.position) : 0;
}

function isUnchanged(position: Item | undefined): readonly Clause[] {
  if (!position) return [['pk', 'absent']];
  return [
    ['position', '=', Number(position.position)],
    ['epoch', '=', String(position.epoch)],
  ];
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
  const refs = [cellLog(region), ...(await listAccountRefs(table, region))];
  if (!known) {
    // Positions are written before the feed: a feed without positions would include a log from its beginning.
    const heads = await table.getMany(refs.map(keys.head));
    const byPartition = new Map(refs.map((ref) => [keys.head(ref).pk, ref]));
    await pLimit(WRITES_AT_ONCE).map(heads, async (item) => {
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

async function listAccountRefs(table: Table, region: string): Promise<AccountRef[]> {
  const items = await table.query({ pk: accountPk(region), limit: MAX_ACCOUNTS });
  return items.map(({ sk }) => ({ region, account: sk }));
}
