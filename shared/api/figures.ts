/** The figures of the dashboard's first page, over several regions, in one response. */
import pLimit from 'p-limit';
import * as z from 'zod';
import { count, type RecordOf } from '../representation.ts';
import { type AccountRef, accountPk, keys, openJobsPk, rollupPk } from '../storage/schema.ts';
import type { Item, Table } from '../storage/table.ts';
import { toOpenJobCounts } from '../tracking/open-jobs.ts';
import { countAttention, type QueueDeps } from './attention/queue.ts';
import { AttentionCounts } from './attention/views.ts';
import { countedAccounts, describeCounted } from './counted-accounts.ts';
import type { Caller } from './keys.ts';
import { dayRange, OpenChart, Rollup, sumDays, toChart } from './statistics.ts';

/** Days of the figures, including the last one, and those of the rate of dispatches on time. */
export const FIGURE_DAYS = 14;
const RATE_DAYS = 7;
const QUERIES_AT_ONCE = 16;

/** Figures of regions, or of the accounts of a key. */
export const Figures = z
  .object({
    day: z.iso.date().describe('Day of the figures, as requested.'),
    regions: z.array(z.string()).describe('Names of the regions.'),
    open: OpenChart.describe(
      'Counts of open jobs, as of the last complete reading of the list of each account.',
    ),
    ...countedAccounts,
    accountsCounted: count.describe('Number of accounts whose open jobs are counted.'),
    accounts: count.describe(
      'Number of accounts, including those whose open jobs are not counted because their list was not read completely yet.',
    ),
    dueToday: count.describe('Number of undispatched jobs due on `day`.'),
    dispatchedToday: count.describe('Number of jobs dispatched on `day`.'),
    onTime: z
      .object({
        onTime: count.describe('Number of jobs that were dispatched at or before their due time.'),
        of: count.describe('Number of dispatched jobs that have a due date.'),
        days: count.describe('Number of days, up to and including `day`.'),
      })
      .describe('Dispatches on time.'),
    days: z
      .array(Rollup)
      .describe(`The ${FIGURE_DAYS} days up to and including \`day\`, in ascending order.`),
    attention: AttentionCounts.describe('Numbers of items of the attention queue.'),
  })
  .meta({ id: 'Figures', description: 'Figures of all regions, for an overview.' });
export type Figures = RecordOf<typeof Figures>;

/** Returns the figures of regions up to a day (YYYY-MM-DD). A key for some accounts gets those of its accounts. */
export async function readFigures(
  deps: QueueDeps,
  caller: Caller,
  { regions, day }: { readonly regions: readonly string[]; readonly day: string },
): Promise<Figures> {
  const first = new Date(Date.parse(day) - (FIGURE_DAYS - 1) * 86_400_000).toISOString().slice(0, 10);
  const days = dayRange(first, day, FIGURE_DAYS) ?? [];
  const [open, byDay, accounts, attention] = await Promise.all([
    readOpen(deps.table, regions, caller),
    readDays(deps.table, regions, caller, days),
    readAccounts(deps.table, regions, caller),
    countAttention(deps, regions, caller),
  ]);
  const { days: rows } = sumDays(days, byDay);
  const counts = open.map((item) => toOpenJobCounts(item).counts);
  const chart = toChart(counts, deps.now());
  const rated = rows.slice(-RATE_DAYS);
  const onTime = rated.reduce((sum, row) => sum + row.onTime, 0);
  return {
    ...{ day, regions, open: chart, accountsCounted: open.length, accounts: accounts.length },
    ...describeCounted(open, accounts, deps.now()),
    dueToday: chart.byDueDay.find((one) => one.day === day)?.jobs ?? 0,
    dispatchedToday: rows.at(-1)?.dispatched ?? 0,
    onTime: { onTime, of: rated.reduce((sum, row) => sum + row.late, onTime), days: RATE_DAYS },
    ...{ days: rows, attention },
  };
}

const refsOf = (regions: readonly string[], accounts: readonly string[]): AccountRef[] =>
  regions.flatMap((region) => accounts.map((account) => ({ region, account })));

async function readOpen(table: Table, regions: readonly string[], { accounts }: Caller): Promise<Item[]> {
  if (accounts !== null) return table.getMany(refsOf(regions, accounts).map(keys.openJobs));
  return (await Promise.all(regions.map((region) => table.query({ pk: openJobsPk(region) })))).flat();
}

async function readAccounts(table: Table, regions: readonly string[], { accounts }: Caller): Promise<Item[]> {
  if (accounts !== null) return table.getMany(refsOf(regions, accounts).map(keys.account));
  return (await Promise.all(regions.map((region) => table.query({ pk: accountPk(region) })))).flat();
}

async function readDays(
  table: Table,
  regions: readonly string[],
  { accounts }: Caller,
  days: readonly string[],
): Promise<ReadonlyMap<string, readonly Item[]>> {
  const pages = await pLimit(QUERIES_AT_ONCE).map(days, async (day) => {
    const items =
      accounts === null
        ? await Promise.all(regions.map((region) => table.query({ pk: rollupPk(region, day) })))
        : [await table.getMany(refsOf(regions, accounts).map((ref) => keys.rollup(ref, day)))];
    return [day, items.flat()] as const;
  });
  return new Map(pages);
}
