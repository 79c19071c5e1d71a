/** The figures of the dashboard's first page, over several regions, in one response. */
import pLimit from 'p-limit';
import * as z from 'zod';
import { count, type SchemaOutput } from '../representation.ts';
import { type AccountRef, keys } from '../storage/schema.ts';
import type { Item, Key } from '../storage/table.ts';
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
    open: OpenChart.describe('Counts of open jobs at the last complete reading of each list.'),
    ...countedAccounts,
    accountsCounted: count.describe('Number of accounts whose open jobs are counted.'),
    accounts: count.describe('Number of all accounts.'),
    dueToday: count.describe('Number of undispatched jobs due on `day`.'),
    dispatchedToday: count.describe('Number of jobs dispatched on `day`.'),
    onTime: z
      .object({
        onTime: count.describe('Number of jobs that were dispatched at or before their due time.'),
        of: count.describe('Number of dispatched jobs that have a due date.'),
        days: count.describe('Length of the period in days, up to `day`.'),
      })
      .describe('Dispatches on time.'),
    days: z.array(Rollup).describe(`The ${FIGURE_DAYS} days up to \`day\`, in ascending order.`),
    attention: AttentionCounts.describe('Numbers of items of the attention queue.'),
  })
  .meta({ id: 'Figures', description: 'Figures of all regions, for an overview.' });
export type Figures = SchemaOutput<typeof Figures>;

/** Returns the figures of regions up to a day (YYYY-MM-DD). A key for some accounts gets those of its accounts. */
export async function readFigures(
  deps: QueueDeps,
  caller: Caller,
  { regions, day }: { readonly regions: readonly string[]; readonly day: string },
): Promise<Figures> {
  const first = new Date(Date.parse(day) - (FIGURE_DAYS - 1) * 86_400_000).toISOString().slice(0, 10);
  const days = dayRange(first, day, FIGURE_DAYS) ?? [];
  const [open, byDay, accounts, attention] = await Promise.all([
    read(keys.openJobs),
    pLimit(QUERIES_AT_ONCE).map(days, async (one) => {
      return [one, await read((ref) => keys.rollup(ref, one))] as const;
    }),
    read(keys.account),
    countAttention(deps, regions, caller),
  ]);
  const { days: rows } = sumDays(days, new Map(byDay));
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

  /** Reads the items of all accounts of the regions, which are in one partition for each region, or of the accounts of the key. */
  async function read(toKey: (ref: AccountRef) => Key): Promise<Item[]> {
    const toKeys = (account: string) => regions.map((region) => toKey({ region, account }));
    if (caller.accounts !== null) return deps.table.getMany(caller.accounts.flatMap(toKeys));
    return (await Promise.all(toKeys('').map(({ pk }) => deps.table.query({ pk })))).flat();
  }
}
