/** Figures: what the log says of a day (roll-ups), and how many jobs are open. docs/truth.md says what they mean. */
import * as z from 'zod';
import { type AccountRef, keys, openJobsPk, rollupPk } from '../table/schema.ts';
import type { Item, Table } from '../table/table.ts';
import { toStatus } from '../tracking/accounts.ts';
import { type OpenFigures, toOpenFigures } from '../tracking/open-jobs.ts';
import { addFigures, dayOfRollup, noFigures, toFigures } from '../tracking/rollups.ts';
import { instant, instantText } from './parameters.ts';

// Shapes

const count = z.int().min(0);
const day = z.iso.date();

const figures = {
  created: count.describe('Jobs created on this day (dateIn), of those whose job.created was said.'),
  dispatched: count.describe(
    'Jobs dispatched on this day (dateOut), less those taken back. A corrected date moves a job to its day.',
  ),
  onTime: count.describe('Of the dispatched: not after the due instant, as far as can be told.'),
  late: count.describe(
    'Of the dispatched: after the due instant. Those without a due date are neither late nor on time.',
  ),
  overdue: count.describe('job.overdue was said on this day.'),
  cancelled: count.describe('job.cancelled was said on this day.'),
  closed: count.describe('job.closed was said on this day.'),
};

/** What the log says of one day. */
export const Rollup = z
  .object({
    day: day.describe('A calendar day at the locations that make the jobs; UTC where a zone is not known.'),
    ...figures,
  })
  .meta({ id: 'Rollup', description: 'What happened on one day.' });
export type Rollup = z.infer<typeof Rollup>;

const RollupTotal = z.object(figures).meta({ id: 'RollupTotal', description: 'The sums of some days.' });

const region = z.string().describe('The region.');
const account = z.string().describe('The id of the account.');

const range = {
  region,
  from: day.describe('The first day.'),
  to: day.describe('The last day.'),
  days: z.array(Rollup).describe('Every day of the range, first to last, also those with nothing.'),
  total: RollupTotal.describe('The sums of all days.'),
};

/** Days of an account. */
export const AccountRollups = z
  .object({ account, ...range })
  .meta({ id: 'AccountRollups', description: 'Roll-ups of an account, day by day.' });
export type AccountRollups = z.infer<typeof AccountRollups>;

/** Days of all accounts of a region. */
export const RegionRollups = z
  .object({
    ...range,
    accounts: z
      .array(z.object({ account, ...figures }))
      .describe('The sums of all days for each account of which anything was said, by id.'),
  })
  .meta({ id: 'RegionRollups', description: 'Roll-ups of all accounts of a region, day by day.' });
export type RegionRollups = z.infer<typeof RegionRollups>;

const open = {
  jobs: count.describe('Jobs in the list of active jobs that could be read.'),
  dispatched: count.describe('Of these: dispatched, and not gone from the list yet.'),
  late: count.describe(
    'Of the undispatched: those whose due instant is over at the moment of the answer. A due date without an offset is over when its day is over everywhere (UTC−12).',
  ),
};
const openChart = {
  ...open,
  byStatus: z
    .array(
      z.object({
        status: z.string().nullable().describe('Null: the service says none.'),
        jobs: count.describe('How many.'),
      }),
    )
    .describe('In the words of the ordering service; most jobs first, at most 100 of an account.'),
  otherStatuses: count.describe('Jobs in statuses that are not among these.'),
  byDueDay: z
    .array(
      z.object({
        day: day.describe('The day of the due date, as the service writes it.'),
        jobs: count.describe('Undispatched jobs due on it.'),
        late: count.describe('Of these: their due instant is over.'),
      }),
    )
    .describe('Undispatched jobs, first day to last; 120 days around the last reading at most.'),
  dueEarlier: count.describe('Undispatched jobs due before these days, all of them late.'),
  dueLater: count.describe('Undispatched jobs due after these days.'),
  withoutDueDate: count.describe('Undispatched jobs without a due date that can be read.'),
};
const changedAt = instant.describe(
  'When the reading of the list began that first showed what is said here of its jobs.',
);

/** The open jobs of an account. */
export const OpenJobs = z
  .object({
    region,
    account,
    observedThrough: instant
      .nullable()
      .describe('When the last complete reading of the list began: nothing later is known.'),
    changedAt,
    ...openChart,
  })
  .meta({ id: 'OpenJobs', description: 'How many jobs of an account are open, by status and by due day.' });
export type OpenJobs = z.infer<typeof OpenJobs>;

/** The open jobs of all accounts of a region. */
export const RegionOpenJobs = z
  .object({
    region,
    ...openChart,
    accounts: z.array(z.object({ account, changedAt, ...open })).describe('By id.'),
  })
  .meta({ id: 'RegionOpenJobs', description: 'How many jobs are open in a region, in all and by account.' });
export type RegionOpenJobs = z.infer<typeof RegionOpenJobs>;

// Roll-ups

/** Days that may be asked for at once: a day is a key for an account, and a Query for a region. */
export const MAX_ROLLUP_DAYS = { account: 92, region: 31 } as const;

const DAY_MS = 86_400_000;

/** The days from one to another (YYYY-MM-DD), both included; `undefined` when these are no days in order, or more than `most`. */
export function dayRange(from: string, to: string, most: number): readonly string[] | undefined {
  const [first, last] = [from, to].map((text) =>
    day.safeParse(text).success ? Date.parse(text) : Number.NaN,
  );
  if (first === undefined || last === undefined) return undefined;
  const length = (last - first) / DAY_MS + 1;
  if (!(length >= 1 && length <= most)) return undefined;
  return Array.from({ length }, (_, n) => new Date(first + n * DAY_MS).toISOString().slice(0, 10));
}

/** The roll-ups of an account, by key. Throws RangeError where {@link dayRange} has nothing. */
export async function readRollups(
  { table }: { readonly table: Table },
  ref: AccountRef,
  from: string,
  to: string,
): Promise<AccountRollups> {
  const days = daysOf(from, to, MAX_ROLLUP_DAYS.account);
  const items = await table.getMany(days.map((one) => keys.rollup(ref, one)));
  const byDay = new Map(items.map((item) => [dayOfRollup(item), [item]]));
  const { region, account } = ref;
  return { account, region, from, to, ...summed(days, byDay) };
}

/** The roll-ups of all accounts of a region, a Query a day. Throws RangeError where {@link dayRange} has nothing. */
export async function readRegionRollups(
  { table }: { readonly table: Table },
  region: string,
  from: string,
  to: string,
): Promise<RegionRollups> {
  const days = daysOf(from, to, MAX_ROLLUP_DAYS.region);
  const byDay = new Map(
    await Promise.all(
      days.map(async (one) => [one, await table.query({ pk: rollupPk(region, one) })] as const),
    ),
  );
  const byAccount = new Map<string, ReturnType<typeof noFigures>>();
  for (const item of [...byDay.values()].flat()) {
    const sum = byAccount.get(item.sk) ?? noFigures();
    addFigures(sum, toFigures(item));
    byAccount.set(item.sk, sum);
  }
  const accounts = [...byAccount]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([account, sum]) => ({ account, ...sum }));
  return { region, from, to, ...summed(days, byDay), accounts };
}

function daysOf(from: string, to: string, most: number): readonly string[] {
  const days = dayRange(from, to, most);
  if (!days) throw new RangeError(`From ${from} to ${to} are no days in order, or more than ${most}.`);
  return days;
}

function summed(
  days: readonly string[],
  byDay: ReadonlyMap<string, readonly Item[]>,
): Pick<RegionRollups, 'days' | 'total'> {
  const total = noFigures();
  const rows = days.map((one) => {
    const sum = noFigures();
    for (const item of byDay.get(one) ?? []) addFigures(sum, toFigures(item));
    addFigures(total, sum);
    return { day: one, ...sum };
  });
  return { days: rows, total };
}

// Open jobs

interface FigureDeps {
  readonly table: Table;
  /** Epoch ms: by it is judged who is late. */
  readonly now: () => number;
}

/** The figures about an account's open jobs; `undefined` before its list was first read completely. */
export async function readOpenJobs(deps: FigureDeps, ref: AccountRef): Promise<OpenJobs | undefined> {
  const [item, status] = await Promise.all([
    deps.table.get(keys.openJobs(ref)),
    deps.table.get(keys.status(ref)),
  ]);
  if (!item) return undefined;
  const stored = toOpenFigures(item);
  const through = status ? toStatus(status).lastGoodCrawlStartedAt : null;
  const { region, account } = ref;
  return {
    region,
    account,
    observedThrough: instantText(through),
    changedAt: instantText(stored.changedAt),
    ...chartOf([stored.figures], deps.now()),
  };
}

/** The figures about the open jobs of all accounts of a region: one Query. */
export async function readRegionOpenJobs(deps: FigureDeps, region: string): Promise<RegionOpenJobs> {
  const now = deps.now();
  const items = await deps.table.query({ pk: openJobsPk(region) });
  const all = items.map((item) => ({ account: item.sk, ...toOpenFigures(item) }));
  return {
    region,
    ...chartOf(
      all.map(({ figures: its }) => its),
      now,
    ),
    accounts: all.map(({ account, changedAt: at, figures: its }) => ({
      account,
      changedAt: instantText(at),
      jobs: its.jobs,
      dispatched: its.dispatched,
      late: lateOf(its, now),
    })),
  };
}

function chartOf(all: readonly OpenFigures[], now: number): Pick<RegionOpenJobs, keyof typeof openChart> {
  const sum = (of: (figures: OpenFigures) => number): number => all.reduce((so, one) => so + of(one), 0);
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
    late: sum((one) => lateOf(one, now)),
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

function lateOf({ dueDays, dueEarlier }: OpenFigures, now: number): number {
  const due = dueDays.flatMap(([, its]) => its);
  return dueEarlier + due.reduce((sum, [dueAt, jobs]) => sum + (dueAt < now ? jobs : 0), 0);
}
