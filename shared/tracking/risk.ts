/** Whether a job is at risk of being late: its time left, compared with the usual remaining time (rule 22). Pure. */
import { type Histogram, MIN_JOBS } from './durations.ts';
import type { StatusEntry } from './snapshot.ts';

/** A job is at risk if more than this share of the comparable jobs needed longer than its time left. */
export const AT_RISK_SHARE = 0.25;

/** An open, undispatched job. Times are epoch ms. */
export interface RiskInput {
  /** `undefined`: the job has no readable due date. */
  readonly dueAt: number | undefined;
  /** Beginning of the stay in the current status. `undefined`: not observed. */
  readonly entry: StatusEntry | undefined;
  /** Usual remaining time from the beginning of a stay in that status. */
  readonly remaining: Histogram;
}

/** Reasons why the risk of a job is unknown. */
export const UNKNOWN_RISKS = [
  'no-due-date',
  'entry-not-observed',
  'too-few-jobs',
  'entry-too-vague',
] as const;

/** Usual time from now until the dispatch of a job. */
export interface Remaining {
  /** Time in which half of the comparable jobs were dispatched, and 90 % (ms). */
  readonly p50: number;
  readonly p90: number;
  /** Number of comparable jobs, and how many of these needed longer than the time left. */
  readonly jobs: number;
  readonly longer: number;
}

/** Risk of a job that is not late yet. */
export type Risk =
  | { readonly level: 'at-risk' | 'on-track'; readonly leftMs: number; readonly remaining: Remaining }
  | {
      readonly level: 'unknown';
      readonly why: (typeof UNKNOWN_RISKS)[number];
      readonly leftMs: number | undefined;
      readonly remaining: Remaining | undefined;
    };

/**
 * Returns the risk of a job at a time.
 *
 * The comparable jobs are those that were still undispatched when their stay had lasted as long as that of this job. If
 * there are fewer than {@link MIN_JOBS}, the job is slower than nearly all others. It is then compared with all jobs, as if its
 * stay began now. If it is uncertain when the stay began, and the answer depends on it, the risk is unknown.
 */
export function assessRisk({ dueAt, entry, remaining }: RiskInput, now: number): Risk {
  const leftMs = dueAt === undefined ? undefined : dueAt - now;
  const unknown = (why: (typeof UNKNOWN_RISKS)[number], known?: Remaining): Risk => ({
    ...{ level: 'unknown', why, leftMs, remaining: known },
  });
  if (dueAt === undefined || leftMs === undefined) return unknown('no-due-date');
  if (!entry) return unknown('entry-not-observed');
  if (remaining.jobs < MIN_JOBS) return unknown('too-few-jobs');
  const [earliest, latest] = [entry[1], entry[2]].map((since) => compare(remaining, since, dueAt, now));
  if (!earliest || !latest) return unknown('too-few-jobs');
  if (isRisky(earliest) !== isRisky(latest)) return unknown('entry-too-vague', latest);
  return { level: isRisky(latest) ? 'at-risk' : 'on-track', leftMs, remaining: latest };
}

/**
 * Returns the first time, from `now` on and before the due time, at which a job is at risk if nothing changes (epoch
 * ms). `undefined`: there is none.
 */
export function findRiskTime(input: RiskInput, now: number): number | undefined {
  const { dueAt, entry, remaining } = input;
  if (dueAt === undefined || !entry) return undefined;
  const times = remaining.durations.flatMap((ms) => [entry[1] + ms, entry[2] + ms, dueAt - ms + 1]);
  return [now, ...times.filter((at) => at > now && at < dueAt).sort((a, b) => a - b)].find(
    (at) => at < dueAt && assessRisk(input, at).level === 'at-risk',
  );
}

const isRisky = ({ longer, jobs }: Remaining): boolean => longer > AT_RISK_SHARE * jobs;

function compare(histogram: Histogram, since: number, dueAt: number, now: number): Remaining | undefined {
  const elapsed = Math.max(0, now - since);
  const isSlow = histogram.countLongerThan(elapsed) < MIN_JOBS;
  const passed = isSlow ? 0 : elapsed;
  const [p50, p90] = [0.5, 0.9].map((share) => histogram.quantile(share, passed));
  if (p50 === undefined || p90 === undefined) return undefined;
  return {
    p50: p50 - passed,
    p90: p90 - passed,
    jobs: histogram.countLongerThan(passed),
    longer: histogram.countLongerThan(Math.max(passed, passed + dueAt - now)),
  };
}
