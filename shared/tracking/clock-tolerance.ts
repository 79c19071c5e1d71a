/** Differences between clocks, and a clock that was set back. Pure. */

/** Maximum difference between clocks (ms). A date contradicts a number only if it differs by more. */
export const CLOCK_TOLERANCE_MS = 900_000;

/** Returns whether a stored time is so far in the future that the clock was set back since. */
export function isFromFuture(time: number, now: number): boolean {
  return time > now + CLOCK_TOLERANCE_MS;
}
