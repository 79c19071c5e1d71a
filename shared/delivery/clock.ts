/**
 * Times that were stored before the clock was set back. They are in the future, and must not stop delivery until the clock reaches them
 * again.
 */

/** Maximum difference (ms) between the clocks of two processes. A start time further in the future was stored before the clock was set back. */
export const MAX_SKEW_MS = 60_000;

/** Reports whether `ms` have passed since a time of this process, or the clock was set back to before that time. */
export function hasElapsed(since: number, ms: number, now: number): boolean {
  return now < since || now >= since + ms;
}
