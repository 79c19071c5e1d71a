/** What is kept of an account besides its jobs: how it is polled (Account) and how that goes (Status). */
import { randomUUID } from 'node:crypto';
import type { EventLog } from '../log/log.ts';
import { revisionOf, revisionStill } from '../managed.ts';
import {
  type AccountRef,
  accountPk,
  cellLog,
  dueUntil,
  feedLog,
  isReserved,
  keys,
  POLL_SHARDS,
  pollDue,
  pollDuePk,
  pollPhase,
} from '../table/schema.ts';
import type { Item, Table, Value, Write } from '../table/table.ts';
import type { AccountState } from './account-input.ts';
import { turnFrom } from './account-state.ts';
import { claimable } from './breaker.ts';
import { type PastPoll, readPolls } from './poll-history.ts';

/** How often something is tried anew because somebody else came in between: each time, one of them is done. */
const ATTEMPTS = 20;

/** An account as it was registered. Its credentials stand elsewhere: `secretRef` says where. */
export interface Account extends AccountRef {
  /** Where the credentials are: a name that the host knows how to resolve. Never the secret itself. */
  readonly secretRef: string;
  readonly pollIntervalSeconds: number;
  /** A paused account is not polled; its log and snapshots stay. */
  readonly paused: boolean;
  /** Made by people, through the API or as operators: the configuration file does not know of it. */
  readonly managed?: boolean;
  /** When its credentials were changed last (epoch ms), as far as that is known here: what is remembered of older ones is stale. */
  readonly credentialsAt?: number;
  /** Since when the user of its credentials is to be told of its jobs as he has asked the ordering service to (epoch ms); absent: he is not. */
  readonly ownUserSince?: number;
}

export type { AccountState };

/** How polling goes. Times are epoch ms; absent values are null. */
export interface Status {
  /** The fence: raised by everything a poll writes. */
  readonly revision: number;
  readonly state: AccountState;
  readonly lastPollAt: number | null;
  /** Everything that the service's list showed before this instant is in the log. */
  readonly lastGoodCrawlStartedAt: number | null;
  readonly consecutiveFailures: number;
  /** account.poll_failing was said, and its recovery was not. */
  readonly alarmed: boolean;
  /** Entries of the list at the last complete crawl. */
  readonly openJobs: number | null;
  /** How many of them no request could read (rule 2). */
  readonly unreadJobs: number;
  readonly nextPollAt: number | null;
  /** The poll that wrote last. */
  readonly pollId: string | null;
  /** When the account's identity was last compared with the pinned one (rule 9). */
  readonly identityCheckedAt: number | null;
  /** When the user of its credentials is to be read again, and the {@link Account.ownUserSince} that he was read for. */
  readonly ownUserDueAt: number | null;
  readonly ownUserSince: number | null;
  /** The newest closed jobs were last read at this time, down to the highest number known then (rule 8). */
  readonly sweptAt: number | null;
  readonly sweptThrough: number;
  /** Why the last poll failed or could not see everything, in a sentence. */
  readonly problem: string | null;
  /** Set while negative verdicts are held back (rule 10): since when. */
  readonly quarantinedAt: number | null;
  /** Jobs missing from the list whose fate is open, as of the last complete crawl: see Absence in quarantine.ts. */
  readonly missing: {
    readonly unanswered: number;
    readonly suspected: number;
    readonly contradictory: number;
  };
  /** So many jobs an operator confirmed to be truly gone, and until when that counts. */
  readonly allowedGone: number;
  readonly allowedGoneUntil: number | null;
  /** A fingerprint of the figures about open jobs that are stored; null when there are none. */
  readonly openPrint: string | null;
  /** The last polls, the oldest first. */
  readonly polls: readonly PastPoll[];
}

/** Reads an Account item. */
export function toAccount(item: Item): Account {
  return {
    region: item.pk.slice('ACCOUNTS#'.length),
    account: item.sk,
    secretRef: String(item.secretRef),
    pollIntervalSeconds: Number(item.pollIntervalSeconds),
    paused: item.paused === true,
    ...(item.managed === true ? { managed: true } : {}),
    ...(typeof item.credentialsAt === 'number' ? { credentialsAt: item.credentialsAt } : {}),
    ...(typeof item.ownUserSince === 'number' ? { ownUserSince: item.ownUserSince } : {}),
  };
}

/** Reads a Status item. */
export function toStatus(item: Item): Status {
  const number = (value: Value | undefined): number | null => (typeof value === 'number' ? value : null);
  const text = (value: Value | undefined): string | null => (typeof value === 'string' ? value : null);
  return {
    revision: Number(item.revision),
    state: item.state as AccountState,
    lastPollAt: number(item.lastPollAt),
    lastGoodCrawlStartedAt: number(item.lastGoodCrawlStartedAt),
    consecutiveFailures: number(item.consecutiveFailures) ?? 0,
    alarmed: item.alarmed === true,
    openJobs: number(item.openJobs),
    unreadJobs: number(item.unreadJobs) ?? 0,
    nextPollAt: number(item.nextPollAt),
    pollId: text(item.pollId),
    identityCheckedAt: number(item.identityCheckedAt),
    ownUserDueAt: number(item.ownUserDueAt),
    ownUserSince: number(item.ownUserSince),
    sweptAt: number(item.sweptAt),
    sweptThrough: number(item.sweptThrough) ?? 0,
    problem: text(item.problem),
    quarantinedAt: number(item.quarantinedAt),
    missing: {
      unanswered: number(item.unanswered) ?? 0,
      suspected: number(item.suspected) ?? 0,
      contradictory: number(item.contradictory) ?? 0,
    },
    allowedGone: number(item.allowedGone) ?? 0,
    allowedGoneUntil: number(item.allowedGoneUntil),
    openPrint: text(item.openPrint),
    polls: readPolls(item),
  };
}

/**
 * Registers an account, due for its first poll at once, or changes how a known one is polled: history, epoch and state
 * of a known account stay. Repeating it is harmless. Throws for ids that are reserved, and for one
 * whose former account is still being deleted.
 */
export async function registerAccount(
  table: Table,
  log: EventLog,
  account: Account,
  options: { readonly now: number; readonly epoch: string },
): Promise<void> {
  const { region: _region, account: id, ...attributes } = account;
  for (let attempt = 0; attempt < ATTEMPTS; attempt += 1) {
    const outcome = await updateAccount(table, account, options.now, () => ({ set: attributes }));
    if (outcome.kind === 'changed') return;
    if (await makeAccount(table, log, account, options)) return;
  }
  if (await table.get(keys.deletion(account))) throw new Error(`The account ${id} is still being deleted.`);
  throw new Error(`The account ${id} kept changing while it was registered.`);
}

/**
 * Makes an account with all that belongs to it, whole or not at all; the first of a region starts the cell's own log and
 * the cell feed, too.
 * False when there is one already, the id is not free yet, or a condition of the guards does not hold. Throws for
 * reserved ids.
 */
export async function makeAccount(
  table: Table,
  log: EventLog,
  account: Account,
  options: { readonly now: number; readonly epoch: string },
  guards: readonly Write[] = [],
): Promise<boolean> {
  const { region, account: id, ...attributes } = account;
  const { now, epoch } = options;
  if (isReserved(account)) throw new Error(`No account can have the id ${id}.`);
  const start = async (ref: AccountRef): Promise<boolean> => {
    const started = log.start(ref, epoch);
    return 'put' in started && (await table.write(started)).done;
  };
  // A new cell's feed has everything. One that is older than its feed is taken in where it stands: see startFeed.
  if (await start(cellLog(region))) await start(feedLog(region));
  const made = await table.transact(
    [
      {
        put: { ...keys.account(account), ...attributes, revision: 1, createdAt: now, changedAt: now },
        when: [['pk', 'absent']],
      },
      log.start(account, epoch),
      {
        put: {
          ...keys.status(account),
          // No fence of a former account of this id comes near it.
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
  return made.done;
}

/** What is to become of an account's record. `atOnce`: it is polled at once, whatever it waits for, unless that is an operator. */
export interface AccountUpdate {
  readonly set: { readonly [attribute: string]: Value | undefined };
  readonly atOnce?: boolean;
}

/**
 * Changes an account's record together with its place on the schedule, whole or not at all. Where that place moves, a poll
 * under way loses its fence: its end would put the account where it was, and the next one finds what it saw. `decide` says
 * what to change of the record as it stands, or something else, which is then the outcome. What is as it should be is not
 * written.
 */
export async function updateAccount<R extends { readonly kind: string } = never>(
  table: Table,
  ref: AccountRef,
  now: number,
  decide: (record: Item) => AccountUpdate | R,
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
    const changed = { ...set, revision: revisionOf(record) + 1, changedAt: now };
    const writes: Write[] = [
      {
        update: keys.account(ref),
        set: changed,
        when: [revisionStill(record), ['secretRef', 'present']],
      },
    ];
    if (place) {
      const fence = Number(status.revision);
      writes.push({
        update: keys.status(ref),
        // Whoever reads the record before this and the fence after it has to read it again.
        set: { ...place, revision: fence + 1, recordRevision: changed.revision },
        when: [['revision', '=', fence]],
      });
    }
    const outcome = await table.transact(writes, randomUUID());
    if (outcome.done) return { kind: 'changed', record: { ...record, ...changed } };
  }
  throw new Error(`The account ${ref.account} kept moving while it was changed.`);
}

/** The place on the schedule that an account has to move to by a change, as attributes of its Status; `undefined`: none. */
function placeAfter(
  ref: AccountRef,
  before: Item,
  after: Item,
  status: Item,
  atOnce: boolean,
  now: number,
): ReturnType<typeof schedule> | undefined {
  const isDue = typeof status.duePk === 'string';
  // Said again with a pause, so that whoever puts the account on the schedule at the same moment comes before it or after it.
  if (after.paused === true) return isDue || before.paused !== true ? schedule(ref, null) : undefined;
  if (status.state === 'identity_mismatch') return before.paused === true ? {} : undefined;
  if (!isDue || atOnce) return schedule(ref, now);
  if (before.pollIntervalSeconds === after.pollIntervalSeconds) return undefined;
  const turn = turnFrom(now, Number(after.pollIntervalSeconds) * 1000, pollPhase(ref));
  return Number(status.nextPollAt) > turn ? schedule(ref, turn) : undefined;
}

/**
 * Status attributes that put the next poll at an instant (epoch ms), or, with null, take the account off the schedule.
 * Whatever it was claimed for is over with that.
 */
export function schedule(
  ref: AccountRef,
  nextPollAt: number | null,
): { [attribute: string]: Value | undefined } {
  const off = { nextPollAt: undefined, duePk: undefined, dueSk: undefined, claimedAt: undefined };
  return nextPollAt === null ? off : { ...off, nextPollAt, ...pollDue(ref, nextPollAt) };
}

/** Whether the account is known, with its record, in any of the regions; ids are looked up where they may be. */
export async function findAccount(
  table: Table,
  regions: readonly string[],
  account: string,
): Promise<Account | undefined> {
  const items = await table.getMany(regions.map((region) => keys.account({ region, account })));
  return items[0] && toAccount(items[0]);
}

/** The accounts of a region, by id, up to a limit. */
export async function listAccounts(table: Table, region: string, limit: number): Promise<Account[]> {
  return (await table.query({ pk: accountPk(region), limit })).map(toAccount);
}

/** An account whose poll falls due at an instant (epoch ms). */
export interface DuePoll extends AccountRef {
  readonly dueAt: number;
}

/** A poll that is nobody else's to begin until its claim runs out. */
export interface Claim extends DuePoll {
  /** The last claim ran out, and no poll has reported since: it may have taken its process with it. */
  readonly suspect: boolean;
  /** Entries of the account's list at its last complete crawl; 0 before the first. */
  readonly openJobs: number;
}

/**
 * The accounts of a region whose poll falls due by an instant (now, if it is left out), those that have waited longest
 * first, up to `limit`. While the ordering service fails for the whole region it is a few only (rule 12).
 */
export async function duePolls(
  table: Table,
  region: string,
  options: { readonly now: number; readonly until?: number; readonly limit: number },
): Promise<DuePoll[]> {
  const { now, until = now, limit } = options;
  const shards = await Promise.all(
    Array.from({ length: POLL_SHARDS }, (_, shard) =>
      table.query({ index: 'due', pk: pollDuePk(region, shard), to: dueUntil(until), limit }),
    ),
  );
  const due = shards.flat().sort((a, b) => (String(a.dueSk) < String(b.dueSk) ? -1 : 1));
  if (due.length === 0) return [];
  return due.slice(0, Math.min(limit, await claimable(table, region, now))).map(({ dueSk }) => {
    const text = String(dueSk);
    const end = text.indexOf('#');
    return { region, account: text.slice(end + 1), dueAt: Date.parse(text.slice(0, end)) };
  });
}

/**
 * Claims polls, side by side: each for `claimSeconds` from when it is due, by moving its due time on, so that no other tick
 * takes it, and so that it comes back by itself when it dies. Those that somebody else has claimed meanwhile are left out.
 *
 *   scheduled ── claimed ──▶ nobody else's ── the poll reports ──▶ scheduled, and no trace of the claim
 *                                  └── the claim runs out ──▶ due again, with its trace: a suspect
 *
 * What is claimed goes behind all that is due: while the region fails, all accounts have their turn as probes.
 */
export async function claimPolls(
  table: Table,
  due: readonly DuePoll[],
  options: { readonly now: number; readonly claimSeconds: number },
): Promise<Claim[]> {
  const { now, claimSeconds } = options;
  const claims = due.map(async (poll): Promise<Claim[]> => {
    const { dueSk } = pollDue(poll, poll.dueAt);
    const claim = {
      update: keys.status(poll),
      set: { ...pollDue(poll, Math.max(now, poll.dueAt) + claimSeconds * 1000), claimedAt: now },
    };
    const first = await table.write({
      ...claim,
      when: [
        ['dueSk', '=', dueSk],
        ['claimedAt', 'absent'],
      ],
    });
    const openJobs = (item: Item | undefined) => Number(item?.openJobs ?? 0);
    if (first.done) return [{ ...poll, suspect: false, openJobs: openJobs(first.item) }];
    if (first.item?.dueSk !== dueSk) return [];
    const again = await table.write({ ...claim, when: [['dueSk', '=', dueSk]] });
    return again.done ? [{ ...poll, suspect: true, openJobs: openJobs(again.item) }] : [];
  });
  return (await Promise.all(claims)).flat();
}

/** Claims the polls that are due now, up to a limit: those that have waited longest. */
export async function claimDue(
  table: Table,
  region: string,
  options: { readonly now: number; readonly limit: number; readonly claimSeconds: number },
): Promise<Claim[]> {
  return claimPolls(table, await duePolls(table, region, options), options);
}

/** Ends the claim of a poll that died with its process, if there is one: the account is due at once. */
export async function breakClaim(table: Table, ref: AccountRef, now: number): Promise<void> {
  await table.write({
    update: keys.status(ref),
    set: schedule(ref, now),
    when: [
      ['claimedAt', 'present'],
      ['duePk', 'present'],
    ],
  });
}
