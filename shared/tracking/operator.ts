/**
 * Operator requests: reports on tracking, and confirmations of accounts that wait for one (rules 9 and 10).
 * The accounts and their polling configuration are in `managed-accounts.ts`.
 */
import { randomUUID } from 'node:crypto';
import pLimit from 'p-limit';
import type { AccountQuery } from '../accounts/account-input.ts';
import type { AccountRecord, AccountReport, AccountState, PollRecord } from '../accounts/account-views.ts';
import { type Account, listAccounts, schedule, toAccount, toStatus } from '../accounts/accounts.ts';
import { type AccountPage, pageAccounts } from '../accounts/managed-accounts.ts';
import { pollTimes } from '../accounts/poll-history.ts';
import type { EventDraft } from '../events/event.ts';
import { renewFeed } from '../log/feed-renewal.ts';
import { findEpochEnd, formatCursor, type Head, isClosed, newEpoch, toHead } from '../log/head.ts';
import type { EventLog } from '../log/log.ts';
import type { Rejection } from '../resources.ts';
import { type AccountRef, cellLog, cursorPk, FEED_LOG, isCell, keys, sinkPk } from '../storage/schema.ts';
import type { Item, Table } from '../storage/table.ts';
import { describeOutage, readBreakerState } from './breaker.ts';
import { countGoneJobs, countVerdicts, readVerdictCounter, WINDOW_HOURS } from './quarantine.ts';

/** Dependencies of operator requests. */
export interface OperatorDeps {
  readonly table: Table;
  readonly log: EventLog;
  /** Current time in epoch ms. */
  readonly now: () => number;
}

/** Maximum number of accounts per region, and number of logs renewed concurrently. */
const MAX_ACCOUNTS = 100_000;
const LOGS_AT_ONCE = 16;

/**
 * Gives a new epoch to each log of a region whose table was restored, unless the log has one since.
 * Includes the cell's own log and the cell feed (docs/decisions/0017-log-epochs-after-restore.md, 0022-cell-feed.md).
 *
 * Each log is renewed in one transaction, and renewed logs are skipped. After a failure, repeat the call.
 */
export async function renewLogs(
  { table, log, now }: OperatorDeps,
  region: string,
): Promise<{ readonly renewed: number; readonly unchanged: number }> {
  const accounts = await listAccounts(table, region, MAX_ACCOUNTS);
  const logs: AccountRef[] = [cellLog(region), ...accounts];
  const { leastEpoch } = log;
  // First, so that the feed numbers no new event in the old epoch.
  await renewFeed(table, region, { epoch: newEpoch(now()), leastEpoch, now: now() });
  // The backup may contain a sink position beyond the end of the log. New events with those numbers would be
  // skipped as delivered.
  const taken = new Map<string, number>();
  const inFeed = await table.query({ pk: cursorPk(region, FEED_LOG) });
  const placeInFeed = new Map(inFeed.map((position) => [position.sk, position]));
  for (const { sk: id } of await table.query({ pk: sinkPk(region) })) {
    for (const cursor of await table.query({ pk: cursorPk(region, id) })) {
      const [account = ''] = cursor.sk.split('#');
      taken.set(account, Math.max(taken.get(account) ?? 0, lastTaken(cursor)));
    }
  }
  let renewed = 0;
  await pLimit(LOGS_AT_ONCE).map(logs, async (ref) => {
    const draftEvents = (after: string): EventDraft[] =>
      isCell(ref) ? [] : [{ type: 'account.restored', time: now(), data: { after } }];
    const position = placeInFeed.get(ref.account);
    const isOurs = position !== undefined && !isOfFormer(position, await log.head(ref));
    const known = Math.max(taken.get(ref.account) ?? 0, isOurs ? lastTaken(position) : 0);
    const outcome = await log.renew(ref, newEpoch(now()), draftEvents, known);
    if (outcome?.renewed) renewed += 1;
  });
  // The other logs have a wake mark by now. The cell's own log has no restore event, but may be ahead of the
  // cell feed.
  const own = cellLog(region);
  const sequence = (await log.head(own))?.sequence ?? 0;
  if (sequence > 0) {
    const mark: Item = { ...keys.wake(own), sequence };
    await table.transact([{ put: mark, when: [['sequence', 'absent or <', sequence]] }], randomUUID());
  }
  return { renewed, unchanged: logs.length - renewed };
}

/**
 * Returns whether a position in the cell feed belongs to a former account with the same id. Epochs sort by
 * time.
 */
function isOfFormer({ epoch }: Item, head: Head | undefined): boolean {
  const own = String(epoch);
  return head !== undefined && own < head.epoch && findEpochEnd(head, own) === undefined;
}

/**
 * Returns the last event that a cursor marks as delivered: its position, or one beyond it (ranges such as
 * `8-16,20`, in order).
 */
function lastTaken({ position, ahead }: Item): number {
  return Math.max(Number(position ?? 0), Number(/\d+$/.exec(String(ahead ?? ''))?.[0] ?? 0));
}

/** States that an outage of the region overrides. In the others, the account itself needs an operator. */
const REGIONAL: ReadonlySet<AccountState> = new Set<AccountState>(['baselining', 'tracking', 'failing']);

/**
 * Returns the status of several accounts, in the given order. `undefined` for one that does not exist. Takes
 * two reads by key, however many accounts there are.
 */
export async function reportAccounts(
  { table }: Pick<OperatorDeps, 'table'>,
  accounts: readonly Pick<Account, 'region' | 'account' | 'paused'>[],
): Promise<(AccountReport | undefined)[]> {
  const regions = [...new Set(accounts.map(({ region }) => region))];
  // Read before the heads: then the log contains all changes before `observedThrough` at or before the heads.
  const [statuses, upstreams] = await Promise.all([
    table.getMany(accounts.map(keys.status)),
    Promise.all(regions.map(async (region) => [region, await readBreakerState(table, region)] as const)),
  ]);
  const heads = await table.getMany(accounts.map(keys.head));
  const statusByPk = new Map(statuses.map((item) => [item.pk, item]));
  const headByPk = new Map(heads.map((item) => [item.pk, toHead(item)]));
  const outages = new Map(upstreams.map(([region, upstream]) => [region, describeOutage(upstream)]));
  return accounts.map((account) => {
    const item = statusByPk.get(keys.status(account).pk);
    const head = headByPk.get(keys.head(account).pk);
    if (!item || !head) return undefined;
    const status = toStatus(item);
    // Most accounts are not polled while their region fails, so their own status is from before the outage.
    const outage = REGIONAL.has(status.state) ? outages.get(account.region) : undefined;
    return {
      state: account.paused ? 'paused' : outage ? 'failing' : status.state,
      lastPollAt: formatTimestamp(status.lastPollAt),
      nextPollAt: formatTimestamp(status.nextPollAt),
      pollMs: pollTimes(status.polls),
      observedThrough: formatTimestamp(status.lastGoodCrawlStartedAt),
      consecutiveFailures: status.consecutiveFailures,
      openJobs: status.openJobs,
      unreadJobs: status.unreadJobs,
      truncatedJobs: status.truncatedJobs,
      head: formatCursor(head.epoch, head.sequence),
      problem: outage ?? status.problem,
      missingJobs: {
        pending: status.missing.unanswered,
        suspected: status.missing.suspected,
        contradictory: status.missing.contradictory,
      },
      quarantinedAt: formatTimestamp(status.quarantinedAt),
    };
  });
}

/** Returns a page of accounts with the status of each. `null` for an account that is deleted meanwhile. */
export async function pageAccountsWithStatus(
  deps: Parameters<typeof pageAccounts>[0],
  query: AccountQuery = {},
): Promise<
  | (Omit<AccountPage, 'accounts'> & {
      readonly accounts: readonly (AccountRecord & { readonly status: AccountReport | null })[];
    })
  | Rejection
> {
  const page = await pageAccounts(deps, query);
  if (page.kind !== 'page') return page;
  const reports = await reportAccounts(
    deps,
    page.accounts.map(({ id, region, paused }) => ({ account: id, region, paused })),
  );
  return {
    ...page,
    accounts: page.accounts.map((record, at) => ({ ...record, status: reports[at] ?? null })),
  };
}

/** Returns the last polls of an account, newest first. `undefined` if the account does not exist. */
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

function formatTimestamp(ms: number | null): string | null {
  return ms === null ? null : new Date(ms).toISOString();
}

/** Result of a confirmation. */
export type Confirmed =
  /** `was` has ended, and polling continues. */
  | { readonly kind: 'confirmed'; readonly was: 'quarantined' | 'identity_mismatch' }
  /** The account does not wait for a confirmation. */
  | { readonly kind: 'nothing to confirm'; readonly state: AccountState }
  | { readonly kind: 'unknown account' };

/** Maximum number of attempts when polls commit in between. Each poll takes seconds. */
const ATTEMPTS = 5;

/**
 * Confirms the condition for which an account waits, in one transaction with `account.resumed`:
 * - quarantined: the missing jobs are actually gone. As many jobs as are missing now may be reported as
 *   gone within a day, each after fresh answers about it.
 * - identity mismatch: the credentials are correct again, which the next poll verifies. With `upstreamId`,
 *   the account is pinned to that id from now on. Its state and log continue.
 *
 * A poll in progress loses its fence, so that it cannot undo the confirmation. The next poll repeats its
 * observations.
 */
export async function confirmAccount(
  deps: OperatorDeps,
  ref: AccountRef,
  options: { readonly upstreamId?: number } = {},
): Promise<Confirmed> {
  const { table, log, now } = deps;
  for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
    // The fence is read first: a later pause of the account raises it before the write and is thus detected.
    const item = await table.get(keys.status(ref));
    const [account, head] = await Promise.all([table.get(keys.account(ref)), log.head(ref)]);
    if (!account || !item || !head) return { kind: 'unknown account' };
    // The account was moved to another cell, and its log is closed.
    if (isClosed(head)) return { kind: 'nothing to confirm', state: 'paused' };
    const status = toStatus(item);
    const mismatch = status.state === 'identity_mismatch';
    if (!mismatch && status.quarantinedAt === null) {
      return { kind: 'nothing to confirm', state: status.state };
    }
    const was = mismatch ? 'identity_mismatch' : 'quarantined';
    const at = now();
    const reported = countVerdicts(readVerdictCounter(head.attributes), at);
    const { upstreamId } = options;
    const isOther = upstreamId !== undefined && upstreamId !== head.attributes.upstreamId;
    const outcome = await log.commit(ref, {
      revision: status.revision,
      head,
      events: [{ type: 'account.resumed', time: at, data: { previousState: was, by: 'operator' } }],
      writes: [],
      statusAttributes: mismatch
        ? {
            state: status.quarantinedAt === null ? 'tracking' : 'quarantined',
            identityCheckedAt: undefined,
            problem: undefined,
            // The API user and the known payments are those of the former account.
            ...(isOther && { ownUserDueAt: undefined, paymentsDueAt: undefined, paymentsReadAt: undefined }),
            ...schedule(ref, toAccount(account).paused ? null : at),
          }
        : {
            // A state that takes precedence over "quarantined" does not end here.
            state: status.state === 'quarantined' ? 'tracking' : status.state,
            quarantinedAt: undefined,
            allowedGone:
              countGoneJobs({ listed: 0, reported, ...status.missing }) + status.missing.unanswered,
            allowedGoneUntil: at + WINDOW_HOURS * 3_600_000,
          },
      ...(mismatch && upstreamId !== undefined ? { headAttributes: { upstreamId } } : {}),
    });
    if (outcome.kind === 'committed') return { kind: 'confirmed', was };
  }
  throw new Error(`Polls of ${ref.account} kept coming between while it was confirmed.`);
}
