/** Waits before retries: exponential backoff, fixed schedules, jitter. Free of Node. */

/** A random factor of waits: from `least` (inclusive) to `least + range` (exclusive). */
export interface Jitter {
  readonly least: number;
  readonly range: number;
}

/** Between half of the wait and all of it. */
export const HALF_JITTER: Jitter = { least: 0.5, range: 0.5 };
/** Between no wait and all of it. */
export const FULL_JITTER: Jitter = { least: 0, range: 1 };

/** Exponential backoff. */
export interface Backoff {
  /** Wait before the first retry, before jitter. It doubles with each retry. */
  readonly first: number;
  /** Maximum wait, before jitter. Default: unlimited. */
  readonly max?: number;
}

/** Returns the wait before a retry (from 0), in the unit of the backoff. */
export function backoff(retry: number, { first, max = Number.POSITIVE_INFINITY }: Backoff): number {
  return Math.min(max, first * 2 ** retry);
}

/** Returns the wait before retry `n` (from 1) of a schedule. The last wait repeats. `undefined` for an empty schedule. */
export function scheduledWait(schedule: readonly number[], n: number): number | undefined {
  return schedule[Math.min(n, schedule.length) - 1];
}

/** Varies a wait, so that clients that failed together do not retry together. `random` is from 0 (inclusive) to 1 (exclusive). */
export function withJitter(wait: number, { least, range }: Jitter, random: number): number {
  return wait * (least + range * random);
}

/** Waits, at most until a signal is aborted. */
export async function sleep(ms: number, signal: AbortSignal | undefined): Promise<void> {
  await new Promise<void>((resolve) => {
    const end = (): void => {
      clearTimeout(timer);
      signal?.removeEventListener('abort', end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    signal?.addEventListener('abort', end);
  });
}
