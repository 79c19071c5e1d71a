/**
 * Rate limit of failed authentications, per client address and process. It limits the cost of guessing and slows down attacks
 * on weak configured keys; generated keys have 256 random bits.
 *
 * Keys that this process has already verified are never rejected. A client behind the same proxy as an attacker is therefore
 * affected only until its key is verified, and for at most a minute.
 *
 * Memory is bounded: addresses are hashed with a salt of the process into a fixed number of counters. Two addresses can share a
 * counter, and no address is stored.
 *
 * Not guaranteed: that lookups never exceed the limit. Concurrent requests are all looked up.
 */
import { hash, randomBytes } from 'node:crypto';
import { isIPv6 } from 'node:net';
import { expandIPv6 } from 'hono/utils/ipaddr';
import RateLimiterMemory from 'rate-limiter-flexible/lib/RateLimiterMemory.js';
import type { RateLimitState } from './rate-limit-headers.ts';

/** Maximum number of failures in a window, and length of a window from its first failure. */
const MAX_FAILURES = 20;
const WINDOW_SECONDS = 60;
/** The limit in response headers. */
export const FAILURES_POLICY = {
  name: 'failed-authentications',
  quota: MAX_FAILURES,
  windowSeconds: WINDOW_SECONDS,
};
/** Number of counters. About 5 MB if all are in use. */
const PLACES = 16_384;

/** Counts failures by address. */
export interface FailureLimit {
  /** Returns the state of the limit if the address has reached it. */
  reached(address: string | undefined): Promise<RateLimitState | undefined>;
  /** Counts a failure. */
  add(address: string | undefined): Promise<RateLimitState>;
}

/** Creates the counters of a process. */
export function createFailureLimit(): FailureLimit {
  const salt = randomBytes(16);
  const failures = new RateLimiterMemory({ points: MAX_FAILURES, duration: WINDOW_SECONDS });
  return {
    async reached(address) {
      const sofar = await failures.get(toBucket(address, salt));
      const isReached = sofar && sofar.consumedPoints >= MAX_FAILURES && sofar.msBeforeNext > 0;
      return isReached ? toState(sofar) : undefined;
    },
    add: async (address) => toState(await failures.penalty(toBucket(address, salt))),
  };
}

function toState(counted: {
  readonly consumedPoints: number;
  readonly msBeforeNext: number;
}): RateLimitState {
  return {
    remaining: Math.max(0, MAX_FAILURES - counted.consumedPoints),
    resetSeconds: Math.ceil(counted.msBeforeNext / 1000),
  };
}

function toBucket(address: string | undefined, salt: Uint8Array): string {
  const salted = Buffer.concat([salt, Buffer.from(toNetwork(address ?? ''))]);
  return String(hash('sha256', salted, 'buffer').readUInt32BE(0) % PLACES);
}

/** Returns the /64 network of an IPv6 address, which is usually assigned to one client. Other texts are returned as is. */
function toNetwork(address: string): string {
  const mapped = /^::ffff:([\d.]+)$/i.exec(address)?.[1];
  if (mapped !== undefined || !isIPv6(address)) return mapped ?? address;
  return expandIPv6(address.replace(/%.*/, '')).toLowerCase().split(':').slice(0, 4).join(':');
}
