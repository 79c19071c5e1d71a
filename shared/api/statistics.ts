/** Statistics: daily roll-ups of the log and counts of open jobs. docs/truth.md defines them. */
import * as z from 'zod';
import { toStatus } from '../accounts/accounts.ts';
import { textOrNull, timestamp, timestampOrNull } from '../representation.ts';
import { type AccountRef, accountPk, keys, openJobsPk, rollupPk } from '../storage/schema.ts';
import type { Item, Table } from '../storage/table.ts';
import { countLate, type OpenJobCounts, toOpenJobCounts } from '../tracking/open-jobs.ts';
import { addTotals, createTotals, dayOfRollup, toTotals } from '../tracking/rollups.ts';
import { countedAccounts, describeCounted } from './counted-accounts.ts';

// Shapes

const count = z.int().min(0);
const day = z.iso.date();

const totals = {
  created: count.describe(
    'Number of jobs created in the period (`dateIn`) for which `job.created` was emitted.',
  ),
  dispatched: count.describe(
    'Number of jobs dispatched in the period (`dateOut`), without revoked dispatches.',
  ),
  onTime: count.describe(
    'Number of jobs dispatched at or before their due time. Jobs without a due date do not count.',
  ),
  late: count.describe('Number of jobs dispatched after their due time.'),
  overdue: count.describe('Number of `job.overdue` events.'),
  cancelled: count.describe('Number of `job.cancelled` events.'),
  closed: count.describe('Number of `job.closed` events.'),
};

/** Statistics of a day. */
export const Rollup = z
  .object({
    day: day.describe(
      'Calendar day at the production location of each job, or UTC day if its time zone is unknown.',
    ),
    ...totals,
  })
  .meta({
    id: 'Rollup',
    description: 'Statistics of a day.',
  });
export type Rollup = z.infer<typeof Rollup>;

const RollupTotal = z.object(totals).meta({
  id: 'RollupTotal',
  description: 'Totals of several days. In the descriptions of the fields, "the period" is the whole range.',
});

const region = z.string().describe('Name of the region.');
const account = z.string().describe('Id of the account.');

const range = {
  region,
  from: day.describe('First day of the range.'),
  to: day.describe('Last day of the range.'),
  days: z.array(Rollup).describe('All days of the range, in ascending order.'),
  total: RollupTotal.describe('Totals of all days.'),
};

/** Daily statistics of an account. */
export const AccountRollups = z
  .object({ account, ...range })
  .meta({ id: 'AccountRollups', description: 'Daily statistics of an account.' });
export type AccountRollups = z.infer<typeof AccountRollups>;

/** Daily statistics of all accounts of a region. */
export const RegionRollups = z
  .object({
    ...range,
    accounts: z
      .array(z.object({ account, ...totals }))
      .describe('Totals for each account, ordered by id. Accounts without events are omitted.'),
  })
  .meta({ id: 'RegionRollups', description: 'Daily statistics of all accounts of a region.' });
export type RegionRollups = z.infer<typeof RegionRollups>;

const open = {
  jobs: count.describe('Number of active jobs that Jobwire could read.'),
  dispatched: count.describe('Number of dispatched jobs that are still in the list.'),
  late: count.describe(
    'Number of undispatched jobs past their due time. Due dates without a UTC offset are interpreted in UTC−12.',
  ),
};
const openChart = {
  ...open,
  byStatus: z
    .array(
      z.object({
        status: textOrNull.describe('Status name in the ordering API. `null`: jobs without a status.'),
        jobs: count.describe('Number of jobs.'),
      }),
    )
    .describe('Number of jobs for each status, largest first, at most 100 per account.'),
  otherStatuses: count.describe('Number of jobs in other statuses.'),
  byDueDay: z
    .array(
      z.object({
        day: day.describe('Day of the due date, as reported by the ordering API.'),
        jobs: count.describe('Number of undispatched jobs due on this day.'),
        late: count.describe('Number of jobs due on this day that are past their due time.'),
      }),
    )
    .describe(
      'Number of undispatched jobs for each due day, from 30 days before to 89 days after the last reading of the list.',
    ),
  dueEarlier: count.describe('Number of undispatched jobs due before these days.'),
  dueLater: count.describe('Number of undispatched jobs due after these days.'),
  withoutDueDate: count.describe('Number of undispatched jobs without a readable due date.'),
};
/** Open-job counts of several accounts. */
export const OpenChart = z.object(openChart).meta({ id: 'OpenJobCounts' });
export type OpenChart = z.infer<typeof OpenChart>;

const changedAt = timestamp.describe(
  'Time since which the counts have not changed: the start of the first reading of the list that resulted in them.',
);

/** Open-job counts of an account. */
export const OpenJobs = z
  .object({
    region,
    account,
    observedThrough: timestampOrNull.describe('Start of the last complete reading of the list.'),
    changedAt,
    ...openChart,
  })
  .meta({ id: 'OpenJobs', description: 'Open-job counts of an account, by status and by due date.' });
export type OpenJobs = z.infer<typeof OpenJobs>;

/** Open-job counts of all accounts of a region. */
export const RegionOpenJobs = z
  .object({
    region,
    ...openChart,
    ...countedAccounts,
    accounts: z
      .array(z.object({ account, changedAt, ...open }))
      .describe('Counts for each account, ordered by account id.'),
  })
  .meta({ id: 'RegionOpenJobs', description: 'Open-job counts of a region, in total and by account.' });
export type RegionOpenJobs = z.infer<typeof RegionOpenJobs>;

// Roll-ups

/** Maximum number of days per request: a day requires a key lookup for an account, and a query for a region. */
export const MAX_ROLLUP_DAYS = { account: 92, region: 31 } as const;

const DAY_MS = 86_400_000;

/** Returns the days of a range (YYYY-MM-DD, inclusive), or `undefined` if it is invalid or longer than `most` days. */
export function dayRange(from: string, to: string, most: number): readonly string[] | undefined {
  const [first, last] = [from, to].map((text) =>
    day.safeParse(text).success ? Date.parse(text) : Number.NaN,
  );
  if (first === undefined || last === undefined) return undefined;
  const length = (last - first) / DAY_MS + 1;
  if (!(length >= 1 && length <= most)) return undefined;
  return Array.from({ length }, (_, n) => new Date(first + n * DAY_MS).toISOString().slice(0, 10));
}

/** Reads the statistics of an account, by key. Throws RangeError if {@link dayRange} returns `undefined`. */
export async function readRollups(
  { table }: { readonly table: Table },
  ref: AccountRef,
  from: string,
  to: string,
): Promise<AccountRollups> {
  const days = listDays(from, to, MAX_ROLLUP_DAYS.account);
  const items = await table.getMany(days.map((one) => keys.rollup(ref, one)));
  const byDay = new Map(items.map((item) => [dayOfRollup(item), [item]]));
  const { region, account } = ref;
  return { account, region, from, to, ...sumDays(days, byDay) };
}

/** Reads the statistics of all accounts of a region, with one query per day. Throws RangeError if {@link dayRange} returns `undefined`. */
export async function readRegionRollups(
  { table }: { readonly table: Table },
  region: string,
  from: string,
  to: string,
): Promise<RegionRollups> {
  const days = listDays(from, to, MAX_ROLLUP_DAYS.region);
  const byDay = new Map(
    await Promise.all(
      days.map(async (one) => [one, await table.query({ pk: rollupPk(region, one) })] as const),
    ),
  );
  const byAccount = new Map<string, ReturnType<typeof createTotals>>();
  for (const item of [...byDay.values()].flat()) {
    const sum = byAccount.get(item.sk) ?? createTotals();
    addTotals(sum, toTotals(item));
    byAccount.set(item.sk, sum);
  }
  const accounts = [...byAccount]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([account, sum]) => ({ account, ...sum }));
  return { region, from, to, ...sumDays(days, byDay), accounts };
}

function listDays(from: string, to: string, most: number): readonly string[] {
  const days = dayRange(from, to, most);
  if (!days)
    throw new RangeError(`Invalid range from ${from} to ${to}: must be ascending and at most ${most} days.`);
  return days;
}

/** Returns the totals of each day, and of all days. `byDay`: the rollups of all accounts. */
export function sumDays(
  days: readonly string[],
  byDay: ReadonlyMap<string, readonly Item[]>,
): Pick<RegionRollups, 'days' | 'total'> {
  const total = createTotals();
  const rows = days.map((one) => {
    const sum = createTotals();
    for (const item of byDay.get(one) ?? []) addTotals(sum, toTotals(item));
    addTotals(total, sum);
    return { day: one, ...sum };
  });
  return { days: rows, total };
}

// Open jobs

interface FigureDeps {
  readonly table: Table;
  /** Current time in epoch ms. Determines which jobs are late. */
  readonly now: () => number;
}

/** Reads the open-job counts of an account. Returns `undefined` before the first complete scan of its list. */
export async function readOpenJobs(deps: FigureDeps, ref: AccountRef): Promise<OpenJobs | undefined> {
  const [item, status] = await Promise.all([
    deps.table.get(keys.openJobs(ref)),
    deps.table.get(keys.status(ref)),
  ]);
  if (!item) return undefined;
  const { counts, changedAt } = toOpenJobCounts(item);
  const observedThrough = status ? toStatus(status).lastGoodCrawlStartedAt : null;
  const { region, account } = ref;
  return { region, account, observedThrough, changedAt, ...toChart([counts], deps.now()) };
}

/** Reads the open-job counts of all accounts of a region, with two queries. */
export async function readRegionOpenJobs(deps: FigureDeps, region: string): Promise<RegionOpenJobs> {
  const now = deps.now();
  const [items, accounts] = await Promise.all([
    deps.table.query({ pk: openJobsPk(region) }),
    deps.table.query({ pk: accountPk(region) }),
  ]);
  const all = items.map((item) => ({ account: item.sk, ...toOpenJobCounts(item) }));
  const counts = all.map((one) => one.counts);
  return {
    region,
    ...toChart(counts, now),
    ...describeCounted(items, accounts, now),
    accounts: all.map(({ account, changedAt: at, counts: its }) => ({
      account,
      changedAt: at,
      jobs: its.jobs,
      dispatched: its.dispatched,
      late: countLate(its, now),
    })),
  };
}

/** Returns the sums of the counts of several accounts. `now` (epoch ms) determines which jobs are late. */
export function toChart(all: readonly OpenJobCounts[], now: number): OpenChart {
  const sum = (of: (counts: OpenJobCounts) => number): number => all.reduce((so, one) => so + of(one), 0);
  const statuses = new Map<string | null, number>();
  const days = new Map<string, { jobs: number; late: number }>();
  for (const { statuses: its, dueDays } of all) {
    for (const [status, jobs] of its) statuses.set(status, (statuses.get(status) ?? 0) + jobs);
    for (const [one, due] of dueDays) {
      const known = days.get(one) ?? { jobs: 0, late: 0 };
      for (const [dueAt, jobs] of due) {
        known.jobs += jobs;
        known.late += dueAt < now ? jobs : 0;
      }
      days.set(one, known);
    }
  }
  return {
    jobs: sum(({ jobs }) => jobs),
    dispatched: sum(({ dispatched }) => dispatched),
    late: sum((one) => countLate(one, now)),
    byStatus: [...statuses]
      .sort(([a, n], [b, m]) => m - n || (String(a) < String(b) ? -1 : 1))
      .map(([status, jobs]) => ({ status, jobs })),
    otherStatuses: sum(({ otherStatuses }) => otherStatuses),
    byDueDay: [...days].sort(([a], [b]) => (a < b ? -1 : 1)).map(([one, its]) => ({ day: one, ...its })),
    dueEarlier: sum(({ dueEarlier }) => dueEarlier),
    dueLater: sum(({ dueLater }) => dueLater),
    withoutDueDate: sum(({ withoutDueDate }) => withoutDueDate),
  };
}
