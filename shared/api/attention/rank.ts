/** The rank of an item in the attention queue. Pure. */
import type { AttentionKind, Rank } from './views.ts';

/** Facts on which the rank depends. */
export interface RankInput {
  readonly kind: AttentionKind;
  readonly ageHours: number;
  /** Hours since the due time of the job. `null`: not late. */
  readonly lateHours: number | null;
  /** Whether the due date of the job must be met. */
  readonly mustDate: boolean;
  /** Number of affected jobs and events. */
  readonly affected: number;
}

/** Points for the kind. What stops everything else comes first. */
const KIND_POINTS: Readonly<Record<AttentionKind, number>> = {
  region_outage: 80,
  account_not_observed: 60,
  endpoint_disabled: 55,
  endpoint_failing: 50,
  job_late: 40,
  events_dead: 35,
  job_needs_attention: 30,
  events_parked: 25,
  message_undelivered: 22,
  job_stalled: 20,
  job_at_risk: 28,
  job_due_soon: 15,
};
const MAX_LATENESS = 40;
const MANDATORY = 25;
const MAX_IMPACT = 20;
const MAX_AGE = 10;

/** The rule in words, for the response. */
export const RANK_RULE = `The score is the sum of: points for the kind (${Object.entries(KIND_POINTS)
  .map(([kind, points]) => `${kind} ${points}`)
  .join(
    ', ',
  )}); lateness of a job, 12 for each doubling of the days late, at most ${MAX_LATENESS}; ${MANDATORY} if its due date must be met and the job is late, at risk or due soon; 6 for each power of ten of the number of affected jobs or events, at most ${MAX_IMPACT}; and 2 for each doubling of the days since the start, at most ${MAX_AGE}. Items with equal scores are sorted by age, oldest first.`;

/** Returns the score with its parts. */
export function rankItem({ kind, ageHours, lateHours, mustDate, affected }: RankInput): Rank {
  const late = lateHours ?? 0;
  const isDue = lateHours !== null || kind === 'job_due_soon' || kind === 'job_at_risk';
  const components = [
    { name: 'kind', points: KIND_POINTS[kind], explanation: `Kind ${kind.replaceAll('_', ' ')}` },
    { name: 'lateness', points: grow(12, late / 24, MAX_LATENESS), explanation: `${formatHours(late)} late` },
    {
      name: 'mandatory_date',
      points: mustDate && isDue ? MANDATORY : 0,
      explanation: 'Due date must be met',
    },
    {
      name: 'impact',
      points: Math.min(MAX_IMPACT, Math.round(6 * Math.log10(Math.max(1, affected)))),
      explanation: `${affected} jobs or events affected`,
    },
    {
      name: 'age',
      points: grow(2, ageHours / 24, MAX_AGE),
      explanation: `Started ${formatHours(ageHours)} ago`,
    },
  ] as const;
  const counted = components.filter(({ points }) => points > 0);
  return { score: counted.reduce((sum, { points }) => sum + points, 0), components: counted };
}

/** Returns `step` points for each doubling of the days plus one, at most `most`. */
const grow = (step: number, days: number, most: number): number =>
  Math.min(most, Math.round(step * Math.log2(1 + Math.max(0, days))));

/** Formats a duration, rounded down: `44 minutes`, `5 hours`, `3 days`. */
export function formatHours(hours: number): string {
  const minutes = Math.max(0, Math.floor(hours * 60));
  if (minutes < 1) return 'less than a minute';
  if (minutes < 60) return minutes === 1 ? '1 minute' : `${minutes} minutes`;
  const whole = Math.floor(minutes / 60);
  if (whole < 48) return whole === 1 ? '1 hour' : `${whole} hours`;
  return `${Math.floor(whole / 24)} days`;
}

/** Compares two items by rank, then by age, then by id. */
export function compareRanked(
  a: { readonly rank: Rank; readonly since: number; readonly id: string },
  b: { readonly rank: Rank; readonly since: number; readonly id: string },
): number {
  return b.rank.score - a.rank.score || a.since - b.since || (a.id < b.id ? -1 : a.id > b.id ? 1 : 0);
}
