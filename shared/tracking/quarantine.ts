/**
 * Decides whether so many jobs are missing at once that the upstream answers are in doubt rather than the
 * jobs (rule 10). A list that shrank or emptied with a 200 resembles a mass cancellation. Pure.
 */

/** Numbers of an account's open jobs after a complete crawl and its detail fetches. */
export interface Absence {
  /** Number of jobs in the list. */
  readonly listed: number;
  /** Number of missing jobs with a negative verdict that waits for its confirmation or for its event. */
  readonly suspected: number;
  /** Number of missing jobs with contradictory answers. */
  readonly contradictory: number;
  /** Number of missing jobs without an answer yet. */
  readonly unanswered: number;
  /** Number of jobs reported as cancelled or unavailable within the last {@link WINDOW_HOURS} hours. */
  readonly reported: number;
}

/** Ruling on negative verdicts. */
export type Ruling =
  /** Their events may be emitted. */
  | 'clear'
  /** Too many, if the unanswered jobs are gone as well: no event is emitted before they are answered. */
  | 'wait'
  /** Too many. */
  | 'quarantine';

/** Time for which an emitted negative verdict counts (hours). */
export const WINDOW_HOURS = 24;
/**
 * Number of jobs, and share of the open jobs, that may be gone without confirmation. The larger limit
 * applies.
 */
const MOST_JOBS = 10;
const MOST_OF_OPEN = 0.1;

/** Judges an absence. `allowed`: number of jobs that an operator has confirmed as gone. */
export function judgeAbsence(absence: Absence, allowed: number): Ruling {
  const { listed, contradictory, unanswered, reported } = absence;
  const gone = countGoneJobs(absence);
  const open = listed + absence.suspected + contradictory + unanswered + reported;
  const tooMany = (jobs: number): boolean => jobs - allowed > Math.max(MOST_JOBS, open * MOST_OF_OPEN);
  if (tooMany(gone)) return 'quarantine';
  return tooMany(gone + unanswered) ? 'wait' : 'clear';
}

/** Returns the number of jobs gone within the window, according to the answers so far. */
export function countGoneJobs({ suspected, contradictory, reported }: Absence): number {
  return suspected + contradictory + reported;
}

/** Returns the number of jobs missing from the list whose outcome is not certain. */
export function countUnresolvedJobs({ unanswered, suspected, contradictory }: Absence): number {
  return unanswered + suspected + contradictory;
}

// Emitted verdicts are counted per hour, so that the stored count stays small and expires without cleanup.

const HOUR_MS = 3_600_000;

/** Number of verdicts emitted in each hour, as stored: `<hours since 1970>:<number>`. */
export type VerdictCounter = readonly string[];

/** Returns the counter in the attributes of a Head. */
export function readVerdictCounter(head: { readonly [attribute: string]: unknown }): VerdictCounter {
  return (head.goneTally as VerdictCounter | undefined) ?? [];
}

/** Returns the counter with additional verdicts and without expired ones. `at` is epoch ms. */
export function addVerdicts(counter: VerdictCounter, verdicts: number, at: number): VerdictCounter {
  const hour = Math.floor(at / HOUR_MS);
  const counts = new Map(read(counter).filter(([past]) => past > hour - WINDOW_HOURS - 1));
  counts.set(hour, (counts.get(hour) ?? 0) + verdicts);
  return [...counts].map(([past, count]) => `${past}:${count}`);
}

/**
 * Returns the number of verdicts that count at a time (epoch ms): those of the last {@link WINDOW_HOURS}
 * hours, including the whole first hour. With `until` (epoch ms), only those of hours that began before it.
 */
export function countVerdicts(counter: VerdictCounter, at: number, until = Number.POSITIVE_INFINITY): number {
  const first = Math.floor(at / HOUR_MS) - WINDOW_HOURS;
  const counts = read(counter).filter(([hour]) => hour >= first && hour * HOUR_MS < until);
  return counts.reduce((sum, [, count]) => sum + count, 0);
}

/**
 * Returns the number of jobs by which the confirmation of an operator raises the limit at a time (epoch ms). Once the
 * confirmation has expired, it still applies to the verdicts that were emitted before and count, and to the contradictory
 * jobs, which are never reported. From then on, the number is stored as `allowedGone`, so that it never rises again.
 */
export function findAllowance(
  {
    allowedGone,
    allowedGoneUntil,
  }: { readonly allowedGone: number; readonly allowedGoneUntil: number | null },
  counter: VerdictCounter,
  at: number,
  contradictory: number,
): number {
  if (allowedGoneUntil === null) return 0;
  if (at < allowedGoneUntil) return allowedGone;
  return Math.min(allowedGone, countVerdicts(counter, at, allowedGoneUntil) + contradictory);
}

function read(counter: VerdictCounter): [hour: number, count: number][] {
  return counter.map((text) => {
    const [hour, count] = text.split(':');
    return [Number(hour), Number(count)];
  });
}
