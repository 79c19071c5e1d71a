/** Lateness and risk of a job, and the usual durations of its account. docs/truth.md defines them (rule 22). */
import * as z from 'zod';
import { timestamp, timestampOrNull } from '../representation.ts';
import { type AccountRef, keys } from '../storage/schema.ts';
import type { Table } from '../storage/table.ts';
import { DURATION_MONTHS, Durations, type Histogram, MIN_JOBS, RESULT_WEEKS } from '../tracking/durations.ts';
import { toRiskInput } from '../tracking/forecast.ts';
import { findEntry } from '../tracking/path.ts';
import { assessRisk, type Remaining, type Risk, UNKNOWN_RISKS } from '../tracking/risk.ts';
import type { Snapshot } from '../tracking/snapshot.ts';
import { readTimes, toLateness } from '../tracking/timestamps.ts';

const HOUR_MS = 3_600_000;

// Shapes

const hours = z.number().describe('Hours, to a tenth.');
const jobs = z.int().min(0);

/** Risk levels. */
export const RISKS = ['late', 'at-risk', 'on-track', 'unknown'] as const;

const Usual = z.object({
  p50Hours: hours.describe('Median, in hours.'),
  p90Hours: hours.describe('90th percentile, in hours.'),
  jobs: jobs.describe('Number of counted jobs.'),
});

/** Fields of a job about its time. */
export const jobTiming = {
  dueAt: timestampOrNull.describe(
    'Due time: `dateDue` in the time zone of the production location, or in UTC−12 if that is unknown. Without a time of day, or at 00:00: the end of that day. `null`: no readable due date.',
  ),
  hoursLate: hours
    .nullable()
    .describe(
      'Hours from the due time to the dispatch, or until now if the job is open. `null`: not late, or unknown.',
    ),
  inStatus: z
    .object({
      since: timestamp.describe('Time of the first response with the current status.'),
      sinceEarliest: timestampOrNull.describe(
        'Last time at which the job was observed in another status. `null`: the beginning of the stay was not observed.',
      ),
      hours: hours.describe('Hours since the time in `since`.'),
      usual: Usual.nullable().describe(
        `Usual time of jobs in this status. \`null\`: fewer than ${MIN_JOBS} such jobs in this and the two previous months.`,
      ),
    })
    .nullable()
    .describe('Time in the current status. `null`: the job is dispatched, ended or without a status.'),
  blockingLine: z
    .object({
      status: z.string().describe('Status name of these lines.'),
      jobLineIds: z.array(z.int()).describe('Ids of these lines, at most 20.'),
      lines: jobs.describe('Number of these lines.'),
      p50Hours: hours.describe('Median time from entering this status until dispatch, in hours.'),
    })
    .nullable()
    .describe(
      'Lines that are furthest behind: their status has the longest median time until dispatch. The statuses are from the last job detail. `null`: the job is dispatched or ended, all lines have the same status, or a usual time is unknown.',
    ),
  risk: z
    .enum(RISKS)
    .nullable()
    .describe(
      '`late`: see `late`. `at-risk`: more than a quarter of the comparable jobs (see `forecast.remaining`) needed more time until dispatch than remains until this job is due. `on-track`: at most a quarter. `unknown`: see `forecast.unknown`. `null`: the job is dispatched or ended.',
    ),
  forecast: z
    .object({
      hoursLeft: hours
        .nullable()
        .describe('Hours until the due time, negative after it. `null`: no readable due date.'),
      remaining: z
        .object({
          p50Hours: hours.describe('Median, in hours.'),
          p90Hours: hours.describe('90th percentile, in hours.'),
          jobs: jobs.describe('Number of comparable jobs.'),
          longer: jobs.describe('Number of comparable jobs that needed longer than `hoursLeft`.'),
        })
        .nullable()
        .describe(
          `Usual time from now until dispatch. Comparable jobs are those of the account that were in the same status for at least as long without being dispatched. If there are fewer than ${MIN_JOBS}, all jobs that had the status are compared, as if this job had just entered it. \`null\`: unknown.`,
        ),
      unknown: z
        .enum(UNKNOWN_RISKS)
        .nullable()
        .describe(
          `Reason why the risk is unknown. \`no-due-date\`: no readable due date. \`entry-not-observed\`: Jobwire did not observe when the job entered its status. \`entry-too-vague\`: that time is not known precisely enough. \`too-few-jobs\`: fewer than ${MIN_JOBS} jobs that were dispatched in this and the two previous months can be compared. \`null\`: the risk is known.`,
        ),
      flaggedAt: timestampOrNull.describe(
        'Time at which the job was first found at risk for its current due date. `null`: never.',
      ),
    })
    .nullable()
    .describe('Reason for `risk`, in numbers. `null`: the job is dispatched or ended.'),
};
export type JobTiming = z.infer<z.ZodObject<typeof jobTiming>>;

const day = z.iso.date();

/** Usual durations of an account. */
export const StatusDurations = z
  .object({
    region: z.string().describe('Name of the region.'),
    account: z.string().describe('Id of the account.'),
    fromMonth: z
      .string()
      .describe(`Earliest counted month of the last ${DURATION_MONTHS} months (\`YYYY-MM\`, UTC).`),
    minimumJobs: jobs.describe('Minimum number of jobs for a usual duration.'),
    statuses: z
      .array(
        z.object({
          status: z.string().describe('Status name in the ordering API.'),
          stay: Usual.nullable().describe('Usual time in the status. `null`: fewer than `minimumJobs` jobs.'),
          stays: jobs.describe('Number of counted stays.'),
          remaining: z
            .object({
              p50Hours: hours.describe('Median, in hours.'),
              p90Hours: hours.describe('90th percentile, in hours.'),
              jobs: jobs.describe('Number of counted jobs.'),
            })
            .nullable()
            .describe(
              'Usual time from entering the status until dispatch. `null`: fewer than `minimumJobs` jobs.',
            ),
          dispatches: jobs.describe('Number of counted dispatches.'),
        }),
      )
      .describe('Statuses, those furthest from dispatch first.'),
    flags: z
      .object({
        from: day.describe(`Monday (UTC) of the earliest counted week of the last ${RESULT_WEEKS} weeks.`),
        flagged: jobs.describe(
          'Number of flagged jobs that became late or were dispatched, once per due date.',
        ),
        flaggedLate: jobs.describe('Number of flagged jobs that became late.'),
        late: jobs.describe('Number of jobs that became late, flagged or not.'),
        lateFlaggedDayBefore: jobs.describe(
          'Number of late jobs flagged at least 24 hours before their due time.',
        ),
      })
      .describe('Accuracy of the flags of jobs at risk in the last 8 weeks.'),
  })
  .meta({
    id: 'StatusDurations',
    description:
      'A stay, or a time until dispatch, is counted in the month in which Jobwire observed its end, if its duration is known precisely enough.',
  });
export type StatusDurations = z.infer<typeof StatusDurations>;

// Reads

interface TimingDeps {
  readonly table: Table;
  /** Current time in epoch ms. */
  readonly now: () => number;
}

/** Reads the counted durations of an account. */
export async function readDurations({ table, now }: TimingDeps, ref: AccountRef): Promise<Durations> {
  return new Durations(await table.get(keys.durations(ref)), now());
}

/** Reads the usual durations of an account, and the results of its risk flags. */
export async function readStatusDurations(deps: TimingDeps, ref: AccountRef): Promise<StatusDurations> {
  const durations = await readDurations(deps, ref);
  const { region, account } = ref;
  const statuses = durations.statuses.map((status) => {
    const [stay, remaining] = [durations.of(status, 'stay'), durations.of(status, 'remaining')];
    return {
      status,
      stay: toUsual(stay),
      stays: stay.jobs,
      remaining: toUsual(remaining),
      dispatches: remaining.jobs,
    };
  });
  const distance = ({ remaining }: (typeof statuses)[number]) => remaining?.p50Hours ?? -1;
  return {
    region,
    account,
    fromMonth: durations.firstCountedMonth,
    minimumJobs: MIN_JOBS,
    statuses: statuses.sort((a, b) => distance(b) - distance(a) || (a.status < b.status ? -1 : 1)),
    flags: { from: durations.firstCountedWeek, ...durations.results },
  };
}

/**
 * Returns the lateness and the risk of a job at a time (epoch ms). `job`: its status, dates and whether it is late and
 * open, that is not ended and not dispatched.
 */
export function toJobTiming(
  snapshot: Snapshot,
  job: {
    readonly status: string | null;
    readonly dateDue: string | null;
    readonly dateOut: string | null;
    readonly late: boolean;
    readonly open: boolean;
  },
  durations: Durations,
  now: number,
): JobTiming {
  const zone = snapshot.detail?.timezone ?? null;
  const due = job.dateDue === null ? undefined : readTimes(job.dateDue, zone, { midnightIsEndOfDay: true });
  const lateBy = toLateness(job.dateOut, job.dateDue, zone).lateBySeconds;
  const lateMs = job.late && due ? now - due.latest : lateBy === null ? null : lateBy * 1000;
  const timing = { dueAt: due?.latest ?? null, hoursLate: lateMs === null ? null : toHours(lateMs) };
  if (!job.open) return { ...timing, inStatus: null, blockingLine: null, risk: null, forecast: null };
  const risk = assessRisk(toRiskInput(snapshot, job.status, durations), now);
  return {
    ...timing,
    inStatus: toStay(snapshot, job.status, durations, now),
    blockingLine: findBlockingLine(snapshot, durations),
    risk: job.late ? 'late' : risk.level,
    forecast: toForecast(snapshot, risk),
  };
}

function toStay(
  snapshot: Snapshot,
  status: string | null,
  durations: Durations,
  now: number,
): JobTiming['inStatus'] {
  const { stay } = snapshot;
  if (!stay || status === null) return null;
  return {
    since: stay.since,
    sinceEarliest: findEntry(snapshot, status)?.[1] ?? null,
    hours: toHours(Math.max(0, now - stay.since)),
    usual: toUsual(durations.of(status, 'stay')),
  };
}

function toForecast({ forecast, list }: Snapshot, risk: Risk): JobTiming['forecast'] {
  const isCurrent = forecast !== undefined && forecast.dateDue === list?.dateDue;
  return {
    hoursLeft: risk.leftMs === undefined ? null : toHours(risk.leftMs),
    remaining: risk.remaining ? toRemaining(risk.remaining) : null,
    unknown: risk.level === 'unknown' ? risk.why : null,
    flaggedAt: (isCurrent ? forecast.flaggedAt : undefined) ?? null,
  };
}

function toRemaining({ p50, p90, jobs: compared, longer }: Remaining) {
  return { p50Hours: toHours(p50), p90Hours: toHours(p90), jobs: compared, longer };
}

/** Maximum number of ids of lines. */
const MAX_LINES = 20;

function findBlockingLine({ detail }: Snapshot, durations: Durations): JobTiming['blockingLine'] {
  const byStatus = Map.groupBy(detail?.lines ?? [], ({ status }) => status);
  if (byStatus.size < 2) return null;
  const usual = [...byStatus].map(([status, lines]) => ({
    status,
    ids: lines.map(({ jobLineId }) => jobLineId),
    p50Hours: toUsual(durations.of(status ?? '', 'remaining'))?.p50Hours,
  }));
  const sorted = usual.sort((a, b) => (b.p50Hours ?? 0) - (a.p50Hours ?? 0));
  const [last] = sorted;
  if (!last?.status || last.p50Hours === undefined || usual.some(({ p50Hours }) => p50Hours === undefined)) {
    return null;
  }
  const { status, ids, p50Hours } = last;
  return { status, jobLineIds: ids.slice(0, MAX_LINES), lines: ids.length, p50Hours };
}

function toUsual(histogram: Histogram) {
  const [p50, p90] = [0.5, 0.9].map((share) => histogram.quantile(share));
  if (histogram.jobs < MIN_JOBS || p50 === undefined || p90 === undefined) return null;
  return { p50Hours: toHours(p50), p90Hours: toHours(p90), jobs: histogram.jobs };
}

const toHours = (ms: number): number => Math.round((10 * ms) / HOUR_MS) / 10;
