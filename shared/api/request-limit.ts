/**
 * Limits the requests of an API key per minute, over all processes that share a table.
 *
 * A process takes a part of the quota from the counter in the table and counts its requests against this part in memory. The parts
 * grow from 1 request to a fiftieth of the quota, so that a key at its limit causes few writes, and instances with few requests
 * leave the rest to others. Because a part is subtracted before it is used, all processes together stay within the quota.
 *
 * Not guaranteed: that a key can use its whole quota. Parts that a process does not use are lost at the end of the minute. While the
 * table does not respond, requests are admitted.
 */
import type { MiddlewareHandler } from 'hono';
import { keys } from '../storage/schema.ts';
import { type Table, TableError } from '../storage/table.ts';
import type { ApiEnv } from './env.ts';
import { problem } from './problems.ts';
import { type RateLimitState, rateLimitHeaders } from './rate-limit-headers.ts';

/** Counts the requests of keys. */
export interface RequestLimit {
  /** Maximum number of requests of a key per minute. */
  readonly perMinute: number;
  /** Counts a request of a key. `admitted`: whether it is within the limit. */
  count(keyId: string): Promise<RateLimitState & { readonly admitted: boolean }>;
}

const WINDOW_SECONDS = 60;
/** Largest part of the quota that a process takes at once. */
const LARGEST_PART = 1 / 50;
/** Number of keys in memory from which those of past minutes are removed: more than a cell can have. */
const MAX_KEYS_IN_MEMORY = 1200;

/** The part of a quota that a process holds. */
interface Part {
  readonly window: number;
  /** Requests left in the part. */
  left: number;
  /** Size of the next part. */
  next: number;
  /** Requests that all processes together had taken at the last access to the table. */
  taken: number;
}

/** Creates a limit with counters in a table. `now`: epoch ms. */
export function createRequestLimit(deps: {
  readonly table: Table;
  readonly region: string;
  readonly perMinute: number;
  readonly now: () => number;
}): RequestLimit {
  const { table, region, perMinute, now } = deps;
  const parts = new Map<string, Part>();

  function getPart(keyId: string, window: number): Part {
    const known = parts.get(keyId);
    if (known?.window === window) return known;
    if (parts.size >= MAX_KEYS_IN_MEMORY)
      for (const [id, part] of parts) if (part.window !== window) parts.delete(id);
    const part = { window, left: 0, next: 1, taken: 0 };
    parts.set(keyId, part);
    return part;
  }

  /** Takes a further part of the quota, if any is left. */
  async function extend(keyId: string, part: Part): Promise<void> {
    const size = Math.min(part.next, perMinute - part.taken);
    const { item } = await table.write({
      update: keys.requestCount(region, keyId, part.window),
      set: { ttl: (part.window + 2) * WINDOW_SECONDS },
      add: { taken: size },
    });
    part.taken = Number(item?.taken ?? perMinute);
    // The sum can exceed the quota: then only the rest of the quota was left.
    part.left += Math.max(0, size - Math.max(0, part.taken - perMinute));
    part.next = Math.max(1, Math.min(2 * size, Math.floor(perMinute * LARGEST_PART)));
  }

  return {
    perMinute,
    async count(keyId) {
      const seconds = now() / 1000;
      const window = Math.floor(seconds / WINDOW_SECONDS);
      const part = getPart(keyId, window);
      try {
        if (part.left === 0 && part.taken < perMinute) await extend(keyId, part);
      } catch (cause) {
        if (!(cause instanceof TableError)) throw cause;
        part.left += 1;
      }
      const admitted = part.left > 0;
      if (admitted) part.left -= 1;
      return {
        admitted,
        remaining: part.left + Math.max(0, perMinute - part.taken),
        resetSeconds: Math.ceil((window + 1) * WINDOW_SECONDS - seconds),
      };
    },
  };
}

/** Rejects requests of a key beyond its limit. Follows the authentication. */
export function limitRequests(limit: RequestLimit): MiddlewareHandler<ApiEnv> {
  const policy = { name: 'requests', quota: limit.perMinute, windowSeconds: WINDOW_SECONDS };
  return async (c, next) => {
    const { admitted, ...state } = await limit.count(c.get('caller').keyId);
    const headers = rateLimitHeaders(policy, state);
    if (admitted) {
      await next();
      for (const [name, value] of Object.entries(headers)) c.res.headers.append(name, value);
      return undefined;
    }
    return problem(c, 'too-many-requests', {
      detail: `The API key has reached its limit of ${limit.perMinute} requests per minute. Retry after ${state.resetSeconds} s.`,
      headers: { 'retry-after': String(state.resetSeconds), ...headers },
    });
  };
}
