/** What the figures of the page are made of: sums over regions or accounts, days, and how old it all is. Free of React. */

import type { JobEntry } from '../../../shared/api/jobs.ts';
import type { OpenJobs, RegionOpenJobs, RegionRollups, Rollup } from '../../../shared/api/statistics.ts';
import { staleSince } from '../health/status.ts';
import type { Account } from '../queries.ts';

/** Open jobs, as a region or an account has them. */
export type OpenCounts = Omit<RegionOpenJobs, 'region' | 'accounts'>;

/** The open jobs of one or more regions or accounts, with the accounts they are of. */
export interface OpenTotals extends OpenCounts {
  readonly accounts: readonly {
    readonly account: string;
    readonly jobs: number;
    readonly late: number;
    readonly dispatched: number;
  }[];
}

/** Adds up what regions or accounts say of their open jobs. */
export function sumOpenJobs(parts: readonly (RegionOpenJobs | OpenJobs)[]): OpenTotals {
  const sum = (of: (part: OpenCounts) => number): number => parts.reduce((so, part) => so + of(part), 0);
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
    byDueDay: [...days].sort(([a], [b]) => (a < b ? -1 : 1)).map(([day, its]) => ({ day, ...its })),
    dueEarlier: sum(({ dueEarlier }) => dueEarlier),
    dueLater: sum(({ dueLater }) => dueLater),
    withoutDueDate: sum(({ withoutDueDate }) => withoutDueDate),
    accounts: parts.flatMap((part) => ('accounts' in part ? part.accounts : [part])),
  };
}

/** Undispatched jobs that are due on a day. */
export function countDueOn(open: OpenCounts, day: string): number {
  return open.byDueDay.find((due) => due.day === day)?.jobs ?? 0;
}

/** Adds up what regions or accounts say of the same days, day by day. */
export function sumDays(parts: readonly Pick<RegionRollups, 'days'>[]): readonly Rollup[] {
  const byDay = new Map<string, Rollup>();
  for (const { days } of parts) {
    for (const { day, ...figures } of days) {
      const known = byDay.get(day);
      const sums = Object.entries(figures).map(([name, number]) => [
        name,
        number + (known?.[name as keyof typeof figures] ?? 0),
      ]);
      byDay.set(day, { day, ...(Object.fromEntries(sums) as typeof figures) });
    }
  }
  return [...byDay.values()].sort((a, b) => (a.day < b.day ? -1 : 1));
}

/** Of the jobs dispatched on some days: how many in time, of how many of which that can be told. */
export function countOnTime(days: readonly Rollup[]): { readonly onTime: number; readonly of: number } {
  const onTime = days.reduce((sum, day) => sum + day.onTime, 0);
  return { onTime, of: days.reduce((sum, day) => sum + day.late, onTime) };
}

/** A share in per cent, never rounded up to all nor down to none. */
export function formatPercent(part: number, all: number): string {
  if (all === 0) return '–';
  const exact = (part / all) * 100;
  if (exact > 99 && part < all) return `${Math.floor(exact * 10) / 10}%`;
  if (exact < 1 && part > 0) return `${Math.ceil(exact * 10) / 10}%`;
  return `${Math.round(exact)}%`;
}

/** What is known of how old the figures are: an account's jobs are as they were when its list was last read. */
export interface Staleness {
  /** Accounts whose list was never read to its end: their jobs are in no figure. */
  readonly unread: readonly string[];
  /** Accounts that were read too long ago, the longest ago first. One that is paused is not among them. */
  readonly stale: readonly { readonly account: string; readonly through: string }[];
}

/** Which of the accounts make the figures older than they should be. */
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

/** A job in a list, with its account. */
export type ListedJob = JobEntry & { readonly account: string };

/**
 * What is said of a list of at most `most` jobs out of `total`, for which `asked` accounts were looked through and `left` not;
 * empty where it has them all.
 */
export function formatListScope(total: number, most: number, asked: number, left: number): string {
  const first = total > most ? `The first ${most}` : '';
  if (left === 0 || total === 0) return first && `${first}:`;
  return `${first || 'Those'} of the ${asked} accounts with most jobs; ${left.toLocaleString()} others are not looked through:`;
}

/** The first jobs of several accounts by due date. */
export function sortByDueDate(jobs: readonly ListedJob[], most: number): readonly ListedJob[] {
  const key = ({ dateDue }: ListedJob): number => {
    const at = dateDue === null ? Number.NaN : Date.parse(dateDue);
    return Number.isNaN(at) ? Number.MAX_SAFE_INTEGER : at;
  };
  return [...jobs]
    .sort((a, b) => key(a) - key(b) || a.account.localeCompare(b.account) || a.jobNumber - b.jobNumber)
    .slice(0, most);
}
