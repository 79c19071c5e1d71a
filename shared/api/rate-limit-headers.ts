/** The headers `RateLimit-Policy` and `RateLimit` (draft-ietf-httpapi-ratelimit-headers). */

/** A limit that clients can reach. */
interface RateLimitPolicy {
  /** Name of the limit: letters, digits and `-`. */
  readonly name: string;
  readonly quota: number;
  /** Length of the window in which the quota applies (seconds). Absent: the quota limits concurrent requests. */
  readonly windowSeconds?: number;
}

/** State of a limit: the requests that are left. */
export interface RateLimitState {
  readonly remaining: number;
  /** Time until more of the quota may be available (seconds). */
  readonly resetSeconds: number;
}

/** Returns the headers of a limit. Without `state`, only `RateLimit-Policy`. */
export function rateLimitHeaders(
  { name, quota, windowSeconds }: RateLimitPolicy,
  state?: RateLimitState,
): Record<string, string> {
  const scope = windowSeconds === undefined ? 'qu="concurrent-requests"' : `w=${windowSeconds}`;
  return {
    'ratelimit-policy': `"${name}";q=${quota};${scope}`,
    ...(state && { ratelimit: `"${name}";r=${state.remaining};t=${state.resetSeconds}` }),
  };
}
