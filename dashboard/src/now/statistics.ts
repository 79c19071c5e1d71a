/** Computes the statistics of the Now page: sums over regions or accounts, rates, staleness. Independent of React. */

import type { JobEntry, OpenJobs, RegionOpenJobs, RegionRollups, Rollup } from '../../../client/index.ts';
import { staleSince } from '../health/status.ts';
import type { Account } from '../queries.ts';

/** Open jobs of a region or an account. */
export type OpenCounts = Omit<RegionOpenJobs, 'region' | 'accounts'>;

/** Open jobs of several regions or accounts, with their accounts. */
export interface OpenTotals extends OpenCounts {
  readonly accounts: readonly {
    readonly account: string;
    readonly jobs: number;
    readonly late: number;
    readonly dispatched: number;
  }[];
}

/** Adds up the open jobs of regions or accounts. */
export function sumOpenJobs(parts: readonly (RegionOpenJobs | OpenJobs)[]): OpenTotals {
  const sum = (count: (part: OpenCounts) => number): number =>
    parts.reduce((total, part) => total + count(part), 0);
  const statuses = new Map<string | null, number>();
  const days = new Map<string, { jobs: number; late: number }>();
  for (const { byStatus, byDueDay } of parts) {
    for (const { status, jobs } of byStatus) statuses.set(status, (statuses.get(status) ?? 0) + jobs);
    for (const { day, jobs, late } of byDueDay) {
      const known = days.get(day) ?? { jobs: 0, late: 0 };
      days.set(day, { jobs: known.jobs + jobs, late: known.late + late });
    }
  }
  return {
    jobs: sum(({ jobs }) => jobs),
    dispatched: sum(({ dispatched }) => dispatched),
    late: sum(({ late }) => late),
    byStatus: [...statuses]
      .sort(([a, n], [b, m]) => m - n || (String(a) < String(b) ? -1 : 1))
      .map(([status, jobs]) => ({ status, jobs })),
    otherStatuses: sum(({ otherStatuses }) => otherStatuses),
    byDueDay: [...days].sort(([a], [b]) => (a < b ? -1 : 1)).map(([day, counts]) => ({ day, ...counts })),
    dueEarlier: sum(({ dueEarlier }) => dueEarlier),
    dueLater: sum(({ dueLater }) => dueLater),
    withoutDueDate: sum(({ withoutDueDate }) => withoutDueDate),
    accounts: parts.flatMap((part) => ('accounts' in part ? part.accounts : [part])),
  };
}

/** Returns the number of undispatched jobs due on a day. */
export function countDueOn(open: OpenCounts, day: string): number {
  return open.byDueDay.find((due) => due.day === day)?.jobs ?? 0;
}

/** Adds up the roll-ups of regions or accounts by day. */
export function sumDays(parts: readonly Pick<RegionRollups, 'days'>[]): readonly Rollup[] {
  const byDay = new Map<string, Rollup>();
  for (const { days } of parts) {
    for (const { day, ...counts } of days) {
      const known = byDay.get(day);
      const sums = Object.entries(counts).map(([name, number]) => [
        name,
        number + (known?.[name as keyof typeof counts] ?? 0),
      ]);
      byDay.set(day, { day, ...(Object.fromEntries(sums) as typeof counts) });
    }
  }
  return [...byDay.values()].sort((a, b) => (a.day < b.day ? -1 : 1));
}

/** Returns the number of jobs dispatched on time, and of dispatched jobs with a known due date. */
export function countOnTime(days: readonly Rollup[]): { readonly onTime: number; readonly of: number } {
  const onTime = days.reduce((sum, day) => sum + day.onTime, 0);
  return { onTime, of: days.reduce((sum, day) => sum + day.late, onTime) };
}

/** Accounts whose jobs are missing or outdated in the statistics. */
export interface Staleness {
  /** Accounts without a complete crawl, which are not included. */
  readonly unread: readonly string[];
  /** Stale accounts, except paused ones; the earliest observation first. */
  readonly stale: readonly { readonly account: string; readonly through: string }[];
}

/** Returns the stale accounts and those without a complete crawl. */
export function findStaleAccounts(accounts: readonly Account[], nowMs: number): Staleness {
  const through = (account: Account): string | null => account.status?.observedThrough ?? null;
  const stale = accounts.flatMap((account) => {
    const at = through(account);
    return at !== null && staleSince(account, nowMs) !== null ? [{ account: account.id, through: at }] : [];
  });
  return {
    unread: accounts.filter((account) => through(account) === null).map(({ id }) => id),
    stale: stale.sort((a, b) => (a.through < b.through ? -1 : 1)),
  };
}

/** A listed job with its account. */
export type ListedJob = JobEntry & { readonly account: string };

/**
 * Formats which part of `total` jobs a list of at most `most` contains, if `queried` accounts were queried and `skipped` were
 * not. Empty if the list is complete.
 */
export function formatListScope(total: number, most: number, queried: number, skipped: number): string {
  const first = total > most ? `First ${most}` : '';
  if (skipped === 0 || total === 0) return first && `${first}:`;
  return `${first || 'Jobs'} of the ${queried} accounts with the most jobs; ${skipped.toLocaleString()} accounts not searched:`;
}

/** Returns the `most` jobs with the earliest due dates. */
export function sortByDueDate(jobs: readonly ListedJob[], most: number): readonly ListedJob[] {
  const key = ({ dateDue }: ListedJob): number => {
    const at = dateDue === null ? Number.NaN : Date.parse(dateDue);
    return Number.isNaN(at) ? Number.MAX_SAFE_INTEGER : at;
  };
  return [...jobs]
    .sort((a, b) => key(a) - key(b) || a.account.localeCompare(b.account) || a.jobNumber - b.jobNumber)
    .slice(0, most);
}
