/** Texts about the lateness and the risk of a job. Independent of React and the browser. */
import type { JobEntry, StatusDurations } from '../../../client/index.ts';
import { toPlainText } from '../events.ts';
import { formatCount, formatDecimal, formatPercent } from '../texts.ts';

/** Fields of a job about its time. Absent if the job is known only from an event. */
export type JobTiming = Partial<
  Pick<JobEntry, 'hoursLate' | 'inStatus' | 'blockingLine' | 'risk' | 'forecast'>
>;

/** Labels of the risk levels. */
export const RISKS = {
  late: 'Late',
  'at-risk': 'At risk',
  'on-track': 'On track',
  unknown: 'Risk unknown',
} as const satisfies Record<NonNullable<JobEntry['risk']>, string>;

const UNKNOWN = {
  'no-due-date': 'no due date',
  'entry-not-observed': 'beginning of this status not observed',
  'entry-too-vague': 'beginning of this status too uncertain',
  'too-few-jobs': 'too few jobs with this status so far',
} as const;

/** Formats hours: below one hour as minutes, at least one; below two days as hours, otherwise as days. */
export function formatHours(hours: number): string {
  if (hours < 1) return `${Math.max(1, Math.round(hours * 60))} min`;
  if (hours < 10) return `${formatDecimal(hours)} h`;
  return hours < 48 ? `${Math.round(hours)} h` : `${formatDecimal(hours / 24)} days`;
}

/** Returns the label of a late job or one at risk. `undefined` for other jobs. */
export function formatRisk(
  job: JobTiming & { readonly late: boolean },
): { readonly tone: 'bad' | 'warn'; readonly text: string } | undefined {
  const { hoursLate, risk } = job;
  if (hoursLate != null) return { tone: 'bad', text: `${formatHours(hoursLate)} late` };
  if (job.late) return { tone: 'bad', text: 'Late' };
  return risk === 'at-risk' ? { tone: 'warn', text: RISKS[risk] } : undefined;
}

/** Formats the reason for the risk of a job, in numbers. `undefined`: there is none. */
export function formatRiskReason({ risk, forecast }: JobTiming): string | undefined {
  if (!forecast || risk == null) return undefined;
  const { hoursLeft, remaining, unknown } = forecast;
  if (remaining === null || hoursLeft === null) return UNKNOWN[unknown ?? 'too-few-jobs'];
  const { p50Hours, p90Hours, jobs, longer } = remaining;
  const usual = `usually dispatched within ${formatHours(p50Hours)}, 9 in 10 within ${formatHours(p90Hours)}`;
  if (hoursLeft <= 0) return usual;
  return `${formatHours(hoursLeft)} left, ${usual}; ${longer} of ${formatCount(jobs, 'job')} needed longer`;
}

/** Formats the time in the current status, compared with the usual time. `undefined`: unknown. */
export function formatStay({ inStatus }: JobTiming): string | undefined {
  if (!inStatus) return undefined;
  const { hours, sinceEarliest, usual } = inStatus;
  const stay = `${sinceEarliest === null ? 'at least ' : ''}${formatHours(hours)}`;
  return usual
    ? `${stay} (usually ${formatHours(usual.p50Hours)}, 9 in 10 at most ${formatHours(usual.p90Hours)})`
    : stay;
}

/** Formats which lines are furthest behind. `undefined`: unknown, or none. */
export function formatBlockingLine({ blockingLine }: JobTiming): string | undefined {
  if (!blockingLine) return undefined;
  const { status, lines, jobLineIds } = blockingLine;
  const which = lines === 1 ? `line ${jobLineIds[0]}` : formatCount(lines, 'line');
  return `${which} in ${toPlainText(status)}`;
}

/** Formats what is known about the time of a job, for a list: the reason only if the risk is known. */
export function formatTiming(job: JobTiming & { readonly mustDate: boolean | null }): string {
  const stay = formatStay(job);
  const line = formatBlockingLine(job);
  const texts = [
    job.mustDate ? 'due date must be met' : undefined,
    job.forecast?.unknown === null ? formatRiskReason(job) : undefined,
    stay && `${stay} in this status`,
    line && `furthest behind: ${line}`,
  ];
  return texts.filter((text) => text !== undefined).join(' · ');
}

/** Formats the most important of it, if the job is late or at risk. */
export function formatShortReason(job: JobTiming & { readonly mustDate: boolean | null }): string {
  const { risk, forecast } = job;
  if (!forecast || (risk !== 'late' && risk !== 'at-risk')) return '';
  const { hoursLeft, remaining } = forecast;
  const left = hoursLeft !== null && hoursLeft > 0 ? `${formatHours(hoursLeft)} left` : undefined;
  const usual = remaining ? `usually ${formatHours(remaining.p50Hours)} more` : undefined;
  const texts = [job.mustDate ? 'mandatory due date' : undefined, left, usual, formatBlockingLine(job)];
  return texts.filter((text) => text !== undefined).join(', ');
}

/** Numbers of jobs with a result, of several accounts. */
export type FlagTotals = Pick<
  StatusDurations['flags'],
  'flagged' | 'flaggedLate' | 'late' | 'lateFlaggedDayBefore'
>;

/** Adds up the results of the flags of accounts. */
export function sumFlags(parts: readonly Pick<StatusDurations, 'flags'>[]): FlagTotals {
  const sum = (name: keyof FlagTotals) => parts.reduce((total, { flags }) => total + flags[name], 0);
  return {
    flagged: sum('flagged'),
    flaggedLate: sum('flaggedLate'),
    late: sum('late'),
    lateFlaggedDayBefore: sum('lateFlaggedDayBefore'),
  };
}

/** Formats how often the flags were right in the last eight weeks. */
export function formatFlagResults({ flagged, flaggedLate, late, lateFlaggedDayBefore }: FlagTotals): string {
  if (flagged === 0 && late === 0) return 'No results of the last 8 weeks yet.';
  const right =
    flagged === 0
      ? 'no job at risk'
      : `${flaggedLate} of ${formatCount(flagged, 'job')} at risk became late (${formatPercent(flaggedLate, flagged)})`;
  const found =
    late === 0
      ? 'no late jobs'
      : `${lateFlaggedDayBefore} of ${formatCount(late, 'late job')} flagged a day before (${formatPercent(lateFlaggedDayBefore, late)})`;
  return `Last 8 weeks: ${right}; ${found}.`;
}
