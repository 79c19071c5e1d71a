/** Job numbers as evidence (rules 5 and 8): they grow, so a number above all known ones belongs to a newer job. Pure. */

import { CLOCK_TOLERANCE_MS } from './clock-tolerance.ts';
import { readTimes } from './timestamps.ts';
import type { DetailView } from './views.ts';

/** Distance from which a single highest number can be an outlier. */
const MIN_GAP = 1_000;
/** Number of further numbers without which the highest two say nothing. */
const MIN_OTHERS = 2;
/** Number of contradictions at which the numbers of an account stop being evidence. A single contradiction may be a mistake. */
export const MAX_CONTRADICTIONS = 2;

/**
 * Returns the highest job number, without a single outlier: a highest number whose distance to the next one is greater
 * than the range of all others. Returns 0 if there are none.
 */
export function highestNumber(jobNumbers: Iterable<number>): number {
  const [highest = 0, second = 0, ...others] = [...new Set(jobNumbers)].sort((a, b) => b - a);
  const lowest = others.at(-1) ?? 0;
  const gap = highest - second;
  return others.length >= MIN_OTHERS && gap >= MIN_GAP && gap > second - lowest ? second : highest;
}

/**
 * Returns whether the date of a job contradicts its number: created before the baseline with a number above all of that
 * time, or after it with a lower one.
 */
export function contradictsNumbers(
  jobNumber: number,
  { dateIn, timezone }: DetailView,
  baseline: { readonly startedAt: number; readonly number: number },
): boolean {
  const cameIn = dateIn === null ? undefined : readTimes(dateIn, timezone);
  if (!cameIn) return false;
  return jobNumber > baseline.number
    ? cameIn.latest < baseline.startedAt - CLOCK_TOLERANCE_MS
    : cameIn.earliest > baseline.startedAt + CLOCK_TOLERANCE_MS;
}
