/** When the data of an account counts as stale. */

/**
 * Returns the time since which an account is stale (epoch ms): two poll intervals and a minute after its last complete observation.
 * `null` if it is not stale, or was never observed.
 */
export function staleSince(
  observedThrough: string | null,
  pollIntervalSeconds: number,
  nowMs: number,
): number | null {
  if (observedThrough === null) return null;
  const since = Date.parse(observedThrough) + 2 * pollIntervalSeconds * 1_000 + 60_000;
  return nowMs > since ? since : null;
}
