/** Stored data of an account besides its jobs: the polling configuration (Account) and its state (Status). */
import { randomUUID } from 'node:crypto';
import type { EventLog } from '../log/log.ts';
import { getRevision, type Rejection, rejected, revisionUnchanged } from '../resources.ts';
import {
  type AccountRef,
  accountPk,
  cellLog,
  feedLog,
  isReserved,
  keys,
  pollDue,
  pollPhase,
} from '../storage/schema.ts';
import type { Item, Table, Value, Write } from '../storage/table.ts';
import type { AccountState } from './account-views.ts';
import { type EventSettings, readEventSettings, toStoredEventSettings } from './event-settings.ts';
import { readPolls } from './poll-history.ts';

/** Maximum number of attempts after concurrent changes. In each round, one of the writers succeeds. */
const ATTEMPTS = 20;

/** An account as registered. The credentials are stored elsewhere: `secretRef` is their location. */
export interface Account extends AccountRef {
  /** Location of the credentials: a name that the host can resolve. Never the secret itself. */
  readonly secretRef: string;
  readonly pollIntervalSeconds: number;
  /** Whether the account is paused. A paused account is not polled. Its log and snapshots stay. */
  readonly paused: boolean;
  /**
   * Set if the account was created by a user, through the API or as an operator. It is not in the
   * configuration file.
   */
  readonly managed?: boolean;
  /**
   * Time of the last change of the credentials (epoch ms), as far as Jobwire knows it. Cached data of older
   * credentials is stale.
   */
  readonly credentialsAt?: number;
  /**
   * Time since which the API user is notified of the account's jobs, according to that user's notification
   * settings upstream (epoch ms). Absent if the user is not notified.
   */
  readonly ownUserSince?: number;
  /** Hash of the client id, to find accounts with the same credentials. Absent if the client id is not known. */
  readonly clientHash?: string;
  /** Settings of optional events. Absent: all defaults. */
  readonly events?: EventSettings;
}

export type { AccountState };

/** Converts an Account item. */
export function toAccount(item: Item): Account {
  const events = readEventSettings(item.events);
  return {
    region: item.pk.slice('ACCOUNTS#'.length),
    account: item.sk,
    secretRef: String(item.secretRef),
    pollIntervalSeconds: Number(item.pollIntervalSeconds),
    paused: item.paused === true,
    ...(item.managed === true ? { managed: true } : {}),
    ...(typeof item.credentialsAt === 'number' ? { credentialsAt: item.credentialsAt } : {}),
    ...(typeof item.ownUserSince === 'number' ? { ownUserSince: item.ownUserSince } : {}),
    ...(typeof item.clientHash === 'string' ? { clientHash: item.clientHash } : {}),
    ...(events ? { events } : {}),
  };
}

/** Returns the attributes of an Account item. */
function toAttributes({ region: _region, account: _account, events, ...attributes }: Account) {
  return { ...attributes, events: toStoredEventSettings(events) };
}

/** State of polling. Times are epoch ms. Absent values are `null`. */
export type Status = Readonly<ReturnType<typeof toStatus>>;

/** Converts a Status item. */
export function toStatus(item: Item) {
  const number = (value: Value | undefined): number | null => (typeof value === 'number' ? value : null);
  const text = (value: Value | undefined): string | null => (typeof value === 'string' ? value : null);
  const texts = (value: Value | undefined) => (Array.isArray(value) ? (value as readonly string[]) : []);
  return {
    /** Fence: every write of a poll raises it. */
    revision: Number(item.revision),
    state: item.state as AccountState,
    lastPollAt: number(item.lastPollAt),
    /** Time up to which all changes in the upstream list are in the log. */
    lastGoodCrawlStartedAt: number(item.lastGoodCrawlStartedAt),
    consecutiveFailures: number(item.consecutiveFailures) ?? 0,
    /** Whether account.poll_failing was emitted without account.poll_recovered since. */
    alarmed: item.alarmed === true,
    /** Number of entries in the list at the last complete crawl. */
    openJobs: number(item.openJobs),
    /** Number of those entries that no request could read (rule 2). */
    unreadJobs: number(item.unreadJobs) ?? 0,
    /** Number of jobs in the list with a truncated text (rule 16). */
    truncatedJobs: number(item.truncatedJobs) ?? 0,
    nextPollAt: number(item.nextPollAt),
    /** Id of the poll that wrote last. */
    pollId: text(item.pollId),
    /** Time at which the account's identity was last compared with the pinned one (rule 9). */
    identityCheckedAt: number(item.identityCheckedAt),
    /** Hash of the token with which it was read. */
    tokenHash: text(item.tokenHash),
    /**
     * Time at which the API user is due to be read again. `ownUserSince` is the {@link Account.ownUserSince}
     * of the last read.
     */
    ownUserDueAt: number(item.ownUserDueAt),
    ownUserSince: number(item.ownUserSince),
    /**
     * Start of the last complete reading of the payments, and time of the next request. `null` before the first, and while
     * events about payments are off.
     */
    paymentsReadAt: number(item.paymentsReadAt),
    paymentsDueAt: number(item.paymentsDueAt),
    /** Message: why the last request for payments failed. */
    paymentsProblem: text(item.paymentsProblem),
    /**
     * Time at which the newest closed jobs were last read, down to the highest number known at that time
     * (rule 8).
     */
    sweptAt: number(item.sweptAt),
    sweptThrough: number(item.sweptThrough) ?? 0,
    /** Highest number that a sweep has read, if it is a single outlier, which `sweptThrough` ignores. */
    sweptHighest: number(item.sweptHighest) ?? 0,
    /** Time up to which the daily rotation of detail fetches is done. `null`: up to the last complete crawl. */
    rotatedThrough: number(item.rotatedThrough),
    /** Jobs whose detail cannot be read: up to 20 job numbers, and the error of the last one. */
    unreadDetails: texts(item.unreadDetails).map(Number) as readonly number[],
    detailProblem: text(item.detailProblem),
    /** Kinds of requests held back by a Retry-After, each as `<kind>:<until, epoch ms>`. */
    holds: texts(item.holds),
    /** Message: why the last poll failed or was incomplete. */
    problem: text(item.problem),
    /** Time since which negative verdicts are held back (rule 10). `null` if they are not. */
    quarantinedAt: number(item.quarantinedAt),
    /**
     * Numbers of delisted jobs whose outcome is not yet known, as of the last complete crawl: see Absence in
     * quarantine.ts.
     */
    missing: {
      unanswered: number(item.unanswered) ?? 0,
      suspected: number(item.suspected) ?? 0,
      contradictory: number(item.contradictory) ?? 0,
    },
    /**
     * Number of jobs that an operator confirmed as gone. The confirmation is valid until `allowedGoneUntil`.
     */
    allowedGone: number(item.allowedGone) ?? 0,
    allowedGoneUntil: number(item.allowedGoneUntil),
    /** Fingerprint of the stored statistics about open jobs. `null` if none are stored. */
    openPrint: text(item.openPrint),
    /** The last polls, oldest first. */
    polls: readPolls(item),
  };
}

/**
 * Registers an account, due for its first poll at once, or changes how an existing one is polled. History,
 * epoch and state of an existing account stay. Idempotent.
 *
 * Throws if the id is reserved, or if a former account of that id is still being deleted.
 */
export async function registerAccount(
  table: Table,
  log: EventLog,
  account: Account,
  options: { readonly now: number; readonly epoch: string },
): Promise<void> {
  const { account: id } = account;
  const attributes = toAttributes(account);
  for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
    // An account that was moved to another cell stays paused here.
    const outcome = await updateAccountRecord(table, account, options.now, ({ movedTo }) => ({
      set: movedTo === undefined ? attributes : { ...attributes, paused: true },
    }));
    if (outcome.kind === 'changed') return;
    if (await insertAccount(table, log, account, options)) return;
  }
  if (await table.get(keys.deletion(account))) throw new Error(`The account ${id} is still being deleted.`);
  throw new Error(`The account ${id} kept changing while it was registered.`);
}

/**
 * Creates an account with all its items in one transaction. The first account of a region also starts the
 * cell's own log and the cell feed.
 *
 * Returns `false` if the account exists, the id is not yet free, or a condition of `guards` fails. Throws
 * if the id is reserved.
 */
export async function insertAccount(
  table: Table,
  log: EventLog,
  account: Account,
  options: { readonly now: number; readonly epoch: string; readonly revision?: number },
  guards: readonly Write[] = [],
): Promise<boolean> {
  const { region, account: id } = account;
  const { now, epoch, revision = 1 } = options;
  if (isReserved(account)) throw new Error(`No account can have the id ${id}.`);
  const start = async (ref: AccountRef): Promise<boolean> => {
    const started = log.start(ref, epoch);
    return 'put' in started && (await table.write(started)).done;
  };
  // The feed of a new cell contains everything. A cell older than its feed joins at its current position: see
  // startFeed.
  if (await start(cellLog(region))) await start(feedLog(region));
  const created = await table.transact(
    [
      {
        put: {
          ...keys.account(account),
          ...toAttributes(account),
          ...(account.paused && { pausedAt: now }),
          revision,
          createdAt: now,
          changedAt: now,
        },
        when: [['pk', 'absent']],
      },
      log.start(account, epoch),
      {
        put: {
          ...keys.status(account),
          // Higher than any fence of a former account of this id.
          revision: now,
          state: 'baselining' satisfies AccountState,
          ...(account.paused ? {} : schedule(account, now)),
        },
        when: [['pk', 'absent']],
      },
      { check: keys.deletion(account), when: [['pk', 'absent']] },
      ...guards,
    ],
    randomUUID(),
  );
  return created.done;
}

/**
 * Update of an account's record. `atOnce`: the account is due at once in every waiting state, except while
 * it waits for an operator.
 */
export interface RecordUpdate {
  readonly set: { readonly [attribute: string]: Value | undefined };
  readonly atOnce?: boolean;
}

/**
 * Changes an account's record and its place on the schedule in one transaction.
 *
 * If that place changes, a poll in progress loses its fence: its final write would restore the former
 * place. The next poll repeats its observations. `decide` returns either the update for the current record
 * or another result, which is then returned. Unchanged values are not written.
 */
export async function updateAccountRecord<R extends { readonly kind: string } = never>(
  table: Table,
  ref: AccountRef,
  now: number,
  decide: (record: Item) => RecordUpdate | R,
): Promise<R | { readonly kind: 'changed'; readonly record: Item } | { readonly kind: 'absent' }> {
  for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
    const [record, status] = await Promise.all([table.get(keys.account(ref)), table.get(keys.status(ref))]);
    if (!record || !status) return { kind: 'absent' };
    const update = decide(record);
    if ('kind' in update) return update;
    const { set, atOnce = false } = update;
    const place = placeAfter(ref, record, { ...record, ...set }, status, atOnce, now);
    const isSame = Object.entries(set).every(([name, value]) => record[name] === value);
    if (isSame && !place) return { kind: 'changed', record };
    const changed = {
      ...set,
      ...(set.paused === true && record.paused !== true && { pausedAt: now }),
      ...{ revision: getRevision(record) + 1, changedAt: now },
    };
    const writes: Write[] = [
      {
        update: keys.account(ref),
        set: changed,
        when: [revisionUnchanged(record), ['secretRef', 'present']],
      },
    ];
    if (place) {
      const fence = Number(status.revision);
      writes.push({
        update: keys.status(ref),
        // A process that read the record before this write and the fence after it must read the record again.
        set: { ...place, revision: fence + 1, recordRevision: changed.revision },
        when: [['revision', '=', fence]],
      });
    }
    const outcome = await table.transact(writes, randomUUID());
    if (outcome.done) return { kind: 'changed', record: { ...record, ...changed } };
  }
  throw new Error(`The account ${ref.account} kept moving while it was changed.`);
}

/**
 * Returns the Status attributes for the place on the schedule after a change. `undefined` if the place
 * stays.
 */
function placeAfter(
  ref: AccountRef,
  before: Item,
  after: Item,
  status: Item,
  atOnce: boolean,
  now: number,
): ReturnType<typeof schedule> | undefined {
  const isDue = typeof status.duePk === 'string';
  // Written again with a pause, so that a concurrent write to the schedule comes either before it or after
  // it.
  if (after.paused === true) return isDue || before.paused !== true ? schedule(ref, null) : undefined;
  if (status.state === 'identity_mismatch') return before.paused === true ? {} : undefined;
  if (!isDue || atOnce) return schedule(ref, now);
  if (before.pollIntervalSeconds === after.pollIntervalSeconds) return undefined;
  const turn = turnFrom(now, Number(after.pollIntervalSeconds) * 1000, pollPhase(ref));
  // A poll in progress would schedule the next one by the former interval.
  const isLate =
    status.claimedAt !== undefined && Number(before.pollIntervalSeconds) > Number(after.pollIntervalSeconds);
  return isLate || Number(status.nextPollAt) > turn ? schedule(ref, turn) : undefined;
}

/**
 * Returns the Status attributes that schedule the next poll at a time (epoch ms). `null` removes the
 * account from the schedule. Both end an existing claim.
 */
export function schedule(
  ref: AccountRef,
  nextPollAt: number | null,
): { [attribute: string]: Value | undefined } {
  const off = { nextPollAt: undefined, duePk: undefined, dueSk: undefined, claimedAt: undefined };
  return nextPollAt === null ? off : { ...off, nextPollAt, ...pollDue(ref, nextPollAt) };
}

/**
 * Returns an account's first turn at or after a time (epoch ms).
 *
 * Turns are one interval apart and offset by the account's own phase (0 to 1). Accounts thus spread over
 * their interval however they were registered, and after any delay common to all of them.
 */
export function turnFrom(at: number, intervalMs: number, phase: number): number {
  const first = Math.floor(phase * intervalMs);
  return first + Math.ceil((at - first) / intervalMs) * intervalMs;
}

/** Returns the account with this id in any of the regions, or `undefined`. */
export async function findAccount(
  table: Table,
  regions: readonly string[],
  account: string,
): Promise<Account | undefined> {
  const items = await table.getMany(regions.map((region) => keys.account({ region, account })));
  return items[0] && toAccount(items[0]);
}

/** Returns the accounts of a region, by id, up to `limit`. */
export async function listAccounts(table: Table, region: string, limit: number): Promise<Account[]> {
  return (await table.query({ pk: accountPk(region), limit })).map(toAccount);
}

/** Returns why a field cannot name these accounts of a region: names the first one that the region does not have. */
export async function checkAccounts(
  table: Table,
  region: string,
  accounts: readonly string[],
  field: string,
): Promise<Rejection | undefined> {
  const known = await table.getMany(accounts.map((account) => keys.account({ region, account })));
  const stranger = accounts.find((account) => !known.some(({ sk }) => sk === account));
  if (stranger === undefined) return undefined;
  return rejected(
    `${field} must contain only accounts of region ${region}; "${stranger}" is not an account of this region.`,
  );
}
