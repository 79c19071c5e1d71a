/** Accounts whose jobs make totals misleading: paused ones, whose jobs are out of date, and several with the same jobs. */
import * as z from 'zod';
import { toAccount } from '../accounts/accounts.ts';
import { count } from '../representation.ts';
import type { Item } from '../storage/table.ts';
import { countLate, toOpenJobCounts } from '../tracking/open-jobs.ts';

/** Maximum numbers of paused accounts and of groups of accounts that are listed. */
const MAX_LISTED = 20;

const region = z.string().describe('Name of the region.');

export const countedAccounts = {
  paused: z
    .object({
      accounts: z
        .array(
          z.object({
            region,
            account: z.string().describe('Id of the account.'),
            jobs: count.describe('Number of open jobs of the account.'),
            late: count.describe('Number of late jobs of the account.'),
          }),
        )
        .describe(`Paused accounts, most open jobs first, at most ${MAX_LISTED}.`),
      total: count.describe('Number of paused accounts with open jobs.'),
      jobs: count.describe('Number of open jobs of all paused accounts.'),
      late: count.describe('Number of late jobs of all paused accounts.'),
    })
    .meta({ id: 'PausedJobs' })
    .describe('Part of the totals that belongs to paused accounts, and is not updated.'),
  countedTwice: z
    .array(
      z
        .object({
          region,
          accounts: z.array(z.string()),
          jobs: count.describe('Number of jobs that the totals count too often.'),
        })
        .meta({ id: 'CountedTwice' }),
    )
    .describe(
      `Groups of accounts that belong to the same account of the ordering API, or have the same credentials. The totals count their jobs more than once. At most ${MAX_LISTED} groups.`,
    ),
};
const CountedAccounts = z.object(countedAccounts);
export type CountedAccounts = z.infer<typeof CountedAccounts>;

/** Returns the accounts to name beside totals. `open`: the counts of open jobs. `accounts`: Account items. */
export function describeCounted(
  open: readonly Item[],
  accounts: readonly Item[],
  now: number,
): CountedAccounts {
  const known = new Map(accounts.map(toAccount).map((one) => [`${one.region}/${one.account}`, one]));
  const counted = open.flatMap((item) => {
    const account = known.get(`${item.pk.slice(item.pk.indexOf('#') + 1)}/${item.sk}`);
    if (!account) return [];
    const { counts } = toOpenJobCounts(item);
    const { upstreamId } = item;
    return [{ ...account, upstreamId, jobs: counts.jobs, late: countLate(counts, now) }];
  });
  const byJobs = [...counted].sort((a, b) => b.jobs - a.jobs || (a.account < b.account ? -1 : 1));
  const paused = byJobs.filter((one) => one.paused && one.jobs > 0);
  const sum = (all: readonly { jobs: number }[]) => all.reduce((total, { jobs }) => total + jobs, 0);
  return {
    paused: {
      accounts: paused
        .slice(0, MAX_LISTED)
        .map(({ region, account, jobs, late }) => ({ region, account, jobs, late })),
      ...{ total: paused.length, jobs: sum(paused) },
      late: paused.reduce((total, { late }) => total + late, 0),
    },
    countedTwice: groupEqual(byJobs)
      .map((group) => ({
        region: group[0]?.region ?? '',
        accounts: group.map(({ account }) => account).sort(),
        jobs: sum(group.slice(1)),
      }))
      .filter(({ jobs }) => jobs > 0)
      .sort((a, b) => b.jobs - a.jobs)
      .slice(0, MAX_LISTED),
  };
}

/** Returns the groups of accounts of a region with the same account of the ordering API or the same credentials. */
function groupEqual<
  T extends { region: string; secretRef: string; clientHash?: string | undefined; upstreamId: unknown },
>(all: readonly T[]): T[][] {
  // Disjoint sets: each account refers to an earlier one of its group, the first one to itself.
  const parents = all.map((_, at) => at);
  const find = (at: number): number => {
    const parent = parents[at] ?? at;
    return parent === at ? at : find(parent);
  };
  const firstByName = new Map<string, number>();
  for (const [at, { region, secretRef, clientHash, upstreamId }] of all.entries()) {
    for (const name of [
      `secret ${secretRef}`,
      ...(clientHash === undefined ? [] : [`client ${clientHash}`]),
      ...(typeof upstreamId === 'number' ? [`account ${upstreamId}`] : []),
    ]) {
      const first = firstByName.get(`${region} ${name}`);
      if (first === undefined) firstByName.set(`${region} ${name}`, at);
      else {
        const [one, other] = [find(first), find(at)];
        parents[Math.max(one, other)] = Math.min(one, other);
      }
    }
  }
  const groups = Map.groupBy(all.entries(), ([at]) => find(at));
  return [...groups.values()]
    .filter(({ length }) => length > 1)
    .map((group) => group.map(([, account]) => account));
}
