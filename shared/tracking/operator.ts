/**
 * What an operator asks of tracking, and can say to it where it waits for somebody (rules 9 and 10). Which accounts there are
 * and how they are polled is in `managed-accounts.ts`.
 */
import { randomUUID } from 'node:crypto';
import pLimit from 'p-limit';
import type { EventDraft } from '../events/event.ts';
import { renewFeed } from '../log/cell-feed.ts';
import { type EventLog, formatCursor, formerEnd, type Head, newEpoch, toHead } from '../log/log.ts';
import { listSinks } from '../sinks/sink.ts';
import { type AccountRef, cellLog, cursorPk, FEED_LOG, isCell, keys } from '../table/schema.ts';
import type { Item, Table } from '../table/table.ts';
import type { AccountReport, AccountState, PollRecord } from './account-input.ts';
import { type Account, listAccounts, schedule, toAccount, toStatus } from './accounts.ts';
import { outageOf, readUpstream } from './breaker.ts';
import { pollTimes } from './poll-history.ts';
import { countTally, goneAtOnce, type Tally, WINDOW_HOURS } from './quarantine.ts';

/** What an operator's acts need. */
export interface OperatorDeps {
  readonly table: Table;
  readonly log: EventLog;
  /** Epoch ms. */
  readonly now: () => number;
}

/** Accounts of a region at most, and logs renewed side by side. */
const MAX_ACCOUNTS = 100_000;
const LOGS_AT_ONCE = 16;

/**
 * After the region's table was restored: gives a new epoch to each log that has none since, the cell's own and the
 * cell feed included (docs/decisions/0017-restored-logs.md, 0022-cell-feed.md). Each is renewed whole or not at all, and what is done is passed over, so after
 * a fault it is just repeated.
 */
export async function renewLogs(
  { table, log, now }: OperatorDeps,
  region: string,
): Promise<{ readonly renewed: number; readonly unchanged: number }> {
  const accounts = await listAccounts(table, region, MAX_ACCOUNTS);
  const logs: AccountRef[] = [cellLog(region), ...accounts];
  const { leastEpoch } = log;
  // First, so that nothing new is numbered in the old one.
  await renewFeed(table, region, { epoch: newEpoch(now()), leastEpoch, now: now() });
  // The backup may show a sink further on than the log: what takes those numbers would be passed over as done.
  const taken = new Map<string, number>();
  const inFeed = await table.query({ pk: cursorPk(region, FEED_LOG) });
  const placeInFeed = new Map(inFeed.map((position) => [position.sk, position]));
  for (const { id } of await listSinks(table, region)) {
    for (const cursor of await table.query({ pk: cursorPk(region, id) })) {
      const [account = ''] = cursor.sk.split('#');
      taken.set(account, Math.max(taken.get(account) ?? 0, lastTaken(cursor)));
    }
  }
  let renewed = 0;
  await pLimit(LOGS_AT_ONCE).map(logs, async (ref) => {
    const announce = (after: string): EventDraft[] =>
      isCell(ref) ? [] : [{ type: 'account.restored', time: now(), data: { after } }];
    const position = placeInFeed.get(ref.account);
    const isOurs = position !== undefined && !isOfFormer(position, await log.head(ref));
    const known = Math.max(taken.get(ref.account) ?? 0, isOurs ? lastTaken(position) : 0);
    const outcome = await log.renew(ref, newEpoch(now()), announce, known);
    if (outcome?.renewed) renewed += 1;
  });
  // The others have a wake mark by now. The cell's own log says nothing of this, but may be ahead of the cell feed.
  const own = cellLog(region);
  const sequence = (await log.head(own))?.sequence ?? 0;
  if (sequence > 0) {
    const mark: Item = { ...keys.wake(own), sequence };
    await table.transact([{ put: mark, when: [['sequence', 'absent or <', sequence]] }], randomUUID());
  }
  return { renewed, unchanged: logs.length - renewed };
}

/** Whether a place in the cell feed is that of an account that had the id before: epochs sort by time. */
function isOfFormer({ epoch }: Item, head: Head | undefined): boolean {
  const own = String(epoch);
  return head !== undefined && own < head.epoch && formerEnd(head, own) === undefined;
}

/** The last event that a cursor has as done: its position, or one beyond it (ranges such as `8-16,20`, in order). */
function lastTaken({ position, ahead }: Item): number {
  return Math.max(Number(position ?? 0), Number(/\d+$/.exec(String(ahead ?? ''))?.[0] ?? 0));
}

/** States that an outage of the region changes; in the others the account needs an operator of its own. */
const REGIONAL: ReadonlySet<AccountState> = new Set<AccountState>(['baselining', 'tracking', 'failing']);

/** How an account stands; `undefined` when there is none, or no longer. */
export async function reportAccount(
  deps: Pick<OperatorDeps, 'table' | 'log'>,
  account: Account,
): Promise<AccountReport | undefined> {
  return (await reportAccounts(deps, [account]))[0];
}

/** How each of several accounts stands, in the order given: two reads by key, however many there are. */
export async function reportAccounts(
  { table }: Pick<OperatorDeps, 'table'>,
  accounts: readonly Account[],
): Promise<(AccountReport | undefined)[]> {
  const regions = [...new Set(accounts.map(({ region }) => region))];
  // Before the heads: all that was seen before `observedThrough` is then in the log at or before them.
  const [statuses, upstreams] = await Promise.all([
    table.getMany(accounts.map(keys.status)),
    Promise.all(regions.map(async (region) => [region, await readUpstream(table, region)] as const)),
  ]);
  const heads = await table.getMany(accounts.map(keys.head));
  const statusOf = new Map(statuses.map((item) => [item.pk, item]));
  const headOf = new Map(heads.map((item) => [item.pk, toHead(item)]));
  const outages = new Map(upstreams.map(([region, upstream]) => [region, outageOf(upstream)]));
  return accounts.map((account) => {
    const item = statusOf.get(keys.status(account).pk);
    const head = headOf.get(keys.head(account).pk);
    if (!item || !head) return undefined;
    const status = toStatus(item);
    // Most accounts are not polled while their region fails, so their own status still tells of better days.
    const outage = REGIONAL.has(status.state) ? outages.get(account.region) : undefined;
    return {
      state: account.paused ? 'paused' : outage ? 'failing' : status.state,
      lastPollAt: instant(status.lastPollAt),
      nextPollAt: instant(status.nextPollAt),
      pollMs: pollTimes(status.polls),
      observedThrough: instant(status.lastGoodCrawlStartedAt),
      consecutiveFailures: status.consecutiveFailures,
      openJobs: status.openJobs,
      unreadJobs: status.unreadJobs,
      head: formatCursor(head.epoch, head.sequence),
      problem: outage ?? status.problem,
      missingJobs: status.missing,
      quarantinedAt: instant(status.quarantinedAt),
    };
  });
}

/** The last polls of an account, newest first; `undefined` when there is no such account. */
export async function reportPolls(
  { table }: Pick<OperatorDeps, 'table'>,
  ref: AccountRef,
): Promise<PollRecord[] | undefined> {
  const item = await table.get(keys.status(ref));
  if (!item) return undefined;
  const polls = toStatus(item).polls.map((poll) => ({
    ...poll,
    startedAt: new Date(poll.startedAt).toISOString(),
  }));
  return polls.reverse();
}

function instant(ms: number | null): string | null {
  return ms === null ? null : new Date(ms).toISOString();
}

/** What became of a confirmation. */
export type Confirmed =
  /** `was` is over; the account is polled on. */
  | { readonly kind: 'confirmed'; readonly was: 'quarantined' | 'identity_mismatch' }
  /** The account waits for nothing. */
  | { readonly kind: 'nothing to confirm'; readonly state: AccountState }
  | { readonly kind: 'unknown account' };

/** So often a poll may come between; each of them is seconds long. */
const ATTEMPTS = 5;

/**
 * Confirms what an account waits for, in one transaction with the `account.resumed` that says so:
 * - quarantined: the missing jobs are truly gone. As many as are missing now may be announced within a day, each after
 *   fresh answers about it.
 * - identity mismatch: the credentials are in order again, which the next poll checks. With `upstreamId` the account is to be
 *   that one from now on; its state and log go on.
 *
 * A poll that is under way loses its fence, so that it can't undo this; the next one finds what it saw.
 */
export async function confirmAccount(
  deps: OperatorDeps,
  ref: AccountRef,
  options: { readonly upstreamId?: number } = {},
): Promise<Confirmed> {
  const { table, log, now } = deps;
  for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
    // The fence first: who pauses the account after that comes before what is written with it, and is seen.
    const item = await table.get(keys.status(ref));
    const [account, head] = await Promise.all([table.get(keys.account(ref)), log.head(ref)]);
    if (!account || !item || !head) return { kind: 'unknown account' };
    const status = toStatus(item);
    const mismatch = status.state === 'identity_mismatch';
    if (!mismatch && status.quarantinedAt === null) {
      return { kind: 'nothing to confirm', state: status.state };
    }
    const was = mismatch ? 'identity_mismatch' : 'quarantined';
    const at = now();
    const announced = countTally((head.attributes.goneTally as Tally | undefined) ?? [], at);
    const { upstreamId } = options;
    const outcome = await log.commit(ref, {
      revision: status.revision,
      head,
      events: [{ type: 'account.resumed', time: at, data: { was, by: 'operator' } }],
      writes: [],
      statusAttributes: mismatch
        ? {
            state: status.quarantinedAt === null ? 'tracking' : 'quarantined',
            identityCheckedAt: undefined,
            problem: undefined,
            ...schedule(ref, toAccount(account).paused ? null : at),
          }
        : {
            // A state that says more than "quarantined" is not over by this.
            state: status.state === 'quarantined' ? 'tracking' : status.state,
            quarantinedAt: undefined,
            allowedGone: goneAtOnce({ listed: 0, announced, ...status.missing }) + status.missing.unanswered,
            allowedGoneUntil: at + WINDOW_HOURS * 3_600_000,
          },
      ...(mismatch && upstreamId !== undefined ? { headAttributes: { upstreamId } } : {}),
    });
    if (outcome.kind === 'committed') return { kind: 'confirmed', was };
  }
  throw new Error(`Polls of ${ref.account} kept coming between while it was confirmed.`);
}
