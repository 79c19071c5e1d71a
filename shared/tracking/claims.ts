/** Claims of due polls: each poll runs in one process, and is repeated if that process stops. */
import { schedule } from '../accounts/accounts.ts';
import {
  type AccountRef,
  dueUntil,
  keys,
  POLL_SHARDS,
  pollDue,
  pollDuePk,
  troubledIndexKeys,
} from '../storage/schema.ts';
import { type Item, RELAXED, type Table } from '../storage/table.ts';
import { acquirePollQuota } from './breaker.ts';

/** An account and the due time of its poll (epoch ms). */
export interface DuePoll extends AccountRef {
  readonly dueAt: number;
}

/** A poll that only the claiming process may start until the claim expires. */
export interface Claim extends DuePoll {
  /** Whether the last claim expired without a report of a poll. That poll may have crashed its process. */
  readonly suspect: boolean;
  /** Number of entries in the account's list at its last complete crawl. 0 before the first. */
  readonly openJobs: number;
}

/**
 * Returns the accounts of a region whose poll is due by `until` (default: `now`), longest waiting first, up
 * to `limit`. While the upstream API fails for the whole region, only a few are returned (rule 12).
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
  return due.slice(0, Math.min(limit, await acquirePollQuota(table, region, now))).map(({ dueSk }) => {
    const text = String(dueSk);
    const end = text.indexOf('#');
    return { region, account: text.slice(end + 1), dueAt: Date.parse(text.slice(0, end)) };
  });
}

/**
 * Claims polls concurrently. A claim moves the due time to `claimSeconds` after the due time, or after
 * `now` if that is later. So no other tick takes the poll, and the poll becomes due again if its process
 * crashes. Polls claimed by another process meanwhile are omitted.
 * - A poll that reports returns the account to the schedule and removes the claim.
 * - If the claim expires, the account is due again with the trace of the claim: a suspect. It is then in the index of accounts that may need
 *   attention until a poll reports, because an account whose polls always crash records no other state.
 *
 * A claimed account moves behind all due accounts. While the region fails, all accounts thus take turns as
 * probes.
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
    const first = await table.write(
      {
        ...claim,
        when: [
          ['dueSk', '=', dueSk],
          ['claimedAt', 'absent'],
        ],
      },
      RELAXED,
    );
    const openJobs = (item: Item | undefined) => Number(item?.openJobs ?? 0);
    if (first.done) return [{ ...poll, suspect: false, openJobs: openJobs(first.item) }];
    if (first.item?.dueSk !== dueSk) return [];
    const set = { ...claim.set, ...troubledIndexKeys(poll, true) };
    const again = await table.write({ ...claim, set, when: [['dueSk', '=', dueSk]] }, RELAXED);
    return again.done ? [{ ...poll, suspect: true, openJobs: openJobs(again.item) }] : [];
  });
  return (await Promise.all(claims)).flat();
}

/** Claims the polls that are due now, longest waiting first, up to `limit`. */
export async function claimDue(
  table: Table,
  region: string,
  options: { readonly now: number; readonly limit: number; readonly claimSeconds: number },
): Promise<Claim[]> {
  return claimPolls(table, await duePolls(table, region, options), options);
}

/**
 * Called when the only process of a table starts: ends the claim of a poll that crashed with its process. That account is due at once, and
 * so is an account whose last poll failed, because the cause may have been corrected before the start. An account whose last poll began in
 * the future is due as well: the clock was set back since.
 */
export async function resumePolls(table: Table, ref: AccountRef, now: number): Promise<void> {
  const status = await table.get(keys.status(ref));
  const { claimedAt, consecutiveFailures = 0, lastPollAt = 0 }: Partial<Item> = status ?? {};
  if (claimedAt === undefined && Number(consecutiveFailures) === 0 && Number(lastPollAt) <= now) return;
  await table.write({ update: keys.status(ref), set: schedule(ref, now), when: [['duePk', 'present']] });
}

/**
 * Makes the accounts due whose last poll began in the future: the clock was set back since. Otherwise, they would wait until it reaches
 * the former time. Accounts that are being polled are not changed.
 */
export async function resumeFuturePolls(
  table: Table,
  accounts: readonly AccountRef[],
  now: number,
): Promise<void> {
  const statuses = await table.getMany(accounts.map(keys.status));
  const late = new Set(statuses.filter(({ lastPollAt }) => Number(lastPollAt) > now).map(({ pk }) => pk));
  for (const ref of accounts.filter((one) => late.has(keys.status(one).pk))) {
    await table.write({
      update: keys.status(ref),
      set: schedule(ref, now),
      when: [
        ['duePk', 'present'],
        ['claimedAt', 'absent'],
      ],
    });
  }
}
