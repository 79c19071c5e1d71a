import * as z from 'zod';
import { cleanLine, errorFromResponse, OrderingError } from './errors.ts';
import { baseAddress, exchange, readJson, unlessAborted } from './exchange.ts';
import { TokenResponse } from './schemas.ts';

/** A token as a caller gets it. */
export interface AccessToken {
  value: string;
  /** Epoch ms at which this source got it: from the token endpoint, or from the cache. */
  obtainedAt: number;
  /**
   * True only for the calls that waited for it to be issued. With each such token the caller reads `GET /account` and
   * compares its id (rule 9 of docs/truth.md).
   */
  fresh: boolean;
}

/** Where a client gets its tokens from. */
export interface TokenSource {
  /**
   * A usable token. Concurrent calls share one request; `signal` ends only the wait of this call. Throws OrderingError
   * `credentials_rejected`, or whatever else the token endpoint's failure was; failures are not remembered, the back-off
   * after a refusal is the caller's (rule 11).
   */
  get(signal?: AbortSignal): Promise<AccessToken>;
  /**
   * Forgets a token that a call was refused with; the next `get` asks the token endpoint for a new one, past the cache.
   * Does nothing when that token has been replaced meanwhile. Never throws.
   */
  drop(accessToken: string): Promise<void>;
}

/** A token as it is shared between processes. */
export interface CachedToken {
  value: string;
  /** Epoch ms until which it may be used: the safety margin is already taken off. */
  expiresAt: number;
}

/**
 * A place where processes that serve the same credentials share a token. It is a help, not a dependency: what it throws,
 * or does not answer within two seconds, is as if it were empty. It must be bound to the version of the secret.
 */
export interface TokenCache {
  load(): Promise<CachedToken | undefined>;
  save(token: CachedToken): Promise<void>;
  clear(): Promise<void>;
}

/** What a token source is built from: the region's auth host and one account's credentials. */
export interface TokenSourceOptions {
  /** Base address of the region's auth host; it may carry a path. */
  authUrl: string;
  realm: string;
  clientId: string;
  clientSecret: string;
  cache?: TokenCache | undefined;
  /** Epoch ms. */
  now?: () => number;
  /** For one token request, reading the answer included. Default 15,000. */
  timeoutMs?: number;
  fetch?: typeof globalThis.fetch;
}

const OPERATION = 'POST /protocol/openid-connect/token';
const MARGIN_SECONDS = 60;
const CACHE_PATIENCE_MS = 2_000;

/**
 * A source of access tokens for one set of credentials (OAuth client credentials; rule 11 of docs/truth.md). A token is
 * kept in memory, and in `cache` if there is one, until a minute before it expires (for half its life when it lives no
 * longer than that minute). The secret lives in this closure alone: no error, no inspection and no JSON shows it.
 */
export function createTokenSource(options: TokenSourceOptions): TokenSource {
  const { clientId, clientSecret, cache, now = Date.now, timeoutMs = 15_000 } = options;
  const fetch = options.fetch ?? globalThis.fetch;
  const url = `${baseAddress('authUrl', options.authUrl)}/realms/${encodeURIComponent(options.realm)}/protocol/openid-connect/token`;

  interface Held {
    value: string;
    obtainedAt: number;
    usableUntil: number;
    /** Not issued to this process: its true age is unknown. */
    fromCache: boolean;
  }
  let held: Held | undefined;
  let flight: Promise<AccessToken> | undefined;
  /** Set by a refusal: only a token issued after it can tell a stale token from rejected credentials. */
  let pastCache = false;

  return { get, drop };

  async function get(signal?: AbortSignal): Promise<AccessToken> {
    signal?.throwIfAborted();
    if (held && now() < held.usableUntil) {
      return { value: held.value, obtainedAt: held.obtainedAt, fresh: false };
    }
    if (!flight) {
      flight = acquire().finally(() => {
        flight = undefined;
      });
      // All who waited may have given up by the time it fails.
      flight.catch(() => {});
    }
    return unlessAborted(flight, signal);
  }

  async function drop(accessToken: string): Promise<void> {
    if (held && held.value !== accessToken && !held.fromCache) return;
    held = undefined;
    pastCache = true;
    if (!cache) return;
    // Compared first: another process may have put a better one there already.
    const cached = await cacheAnswer(() => cache.load());
    if (cached?.value === accessToken) await cacheAnswer(() => cache.clear());
  }

  async function acquire(): Promise<AccessToken> {
    const cached = cache && !pastCache ? await cacheAnswer(() => cache.load()) : undefined;
    if (cached && !pastCache && now() < cached.expiresAt) {
      held = { value: cached.value, obtainedAt: now(), usableUntil: cached.expiresAt, fromCache: true };
      return { value: held.value, obtainedAt: held.obtainedAt, fresh: false };
    }
    const issued = await request();
    held = issued;
    pastCache = false;
    if (cache) await cacheAnswer(() => cache.save({ value: issued.value, expiresAt: issued.usableUntil }));
    return { value: issued.value, obtainedAt: issued.obtainedAt, fresh: true };
  }

  async function request(): Promise<Held> {
    const answer = await exchange({
      operation: OPERATION,
      url,
      init: {
        method: 'POST',
        headers: { accept: 'application/json' },
        body: new URLSearchParams({
          grant_type: 'client_credentials',
          client_id: clientId,
          client_secret: clientSecret,
        }),
      },
      timeoutMs,
      fetch,
      now,
    });
    if (answer.status !== 200) throw refusal(answer.status, answer.headers, answer.text);
    const { access_token, expires_in } = readJson(OPERATION, answer, TokenResponse);
    const usableSeconds = expires_in <= MARGIN_SECONDS ? expires_in / 2 : expires_in - MARGIN_SECONDS;
    return {
      value: access_token,
      obtainedAt: answer.answeredAt,
      // Counted from before the request: the token is at most that old.
      usableUntil: answer.askedAt + usableSeconds * 1000,
      fromCache: false,
    };
  }

  /** Of this endpoint's body only the OAuth code and its description are repeated: the rest may hold anything. */
  function refusal(status: number, headers: Headers, text: string): OrderingError {
    const plain = errorFromResponse(OPERATION, status, headers, '', { now: now() });
    return new OrderingError({
      kind: status === 400 || status === 401 || status === 403 ? 'credentials_rejected' : plain.kind,
      operation: OPERATION,
      status,
      retryAfterMs: plain.retryAfterMs,
      detail: oauthReason(text, clientSecret) ?? (status < 400 ? plain.detail : undefined),
    });
  }
}

const OAuthError = z.object({ error: z.string(), error_description: z.string().nullish().catch(null) });

function oauthReason(text: string, clientSecret: string): string | undefined {
  try {
    const { error, error_description } = OAuthError.parse(JSON.parse(text));
    return cleanLine([error, error_description].filter(Boolean).join(': '), [clientSecret]);
  } catch {
    return undefined;
  }
}

/** What the cache answers; undefined when it fails or takes too long. */
async function cacheAnswer<T>(ask: () => Promise<T>): Promise<T | undefined> {
  let timer: NodeJS.Timeout | undefined;
  try {
    const patience = new Promise<undefined>((resolve) => {
      timer = setTimeout(() => resolve(undefined), CACHE_PATIENCE_MS);
    });
    return await Promise.race([ask(), patience]);
  } catch {
    return undefined;
  } finally {
    clearTimeout(timer);
  }
}
