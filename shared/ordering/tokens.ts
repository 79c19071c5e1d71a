import * as z from 'zod';
import { cleanLine, errorFromResponse, OrderingError } from './errors.ts';
import { baseAddress, exchange, readJson, unlessAborted } from './exchange.ts';
import { TokenResponse } from './schemas.ts';
import { type Fetch, type FetchResponse, httpFetch } from './transport.ts';

/** An access token returned to a caller. */
export interface AccessToken {
  value: string;
  /** Time at which this source got the token, from the token endpoint or from the cache (epoch ms). */
  obtainedAt: number;
  /**
   * `true` only for the calls that waited for the token to be issued. With each such token, the caller
   * reads `GET /account` and compares its id (rule 9 of docs/truth.md).
   */
  fresh: boolean;
}

/** Source of a client's tokens. */
export interface TokenSource {
  /**
   * Returns a usable token. Concurrent calls share one request. `signal` ends only the wait of this call.
   *
   * Throws `OrderingError` `credentials_rejected`, or the token endpoint's other failure. Failures are not
   * cached: the caller is responsible for the back-off after a rejection (rule 11).
   */
  get(signal?: AbortSignal): Promise<AccessToken>;
  /**
   * Discards a token that upstream rejected. The next `get` requests a new one from the token endpoint and
   * bypasses the cache. Does nothing if that token was replaced meanwhile. Never throws.
   */
  drop(accessToken: string): Promise<void>;
}

/** A token shared between processes. */
export interface CachedToken {
  value: string;
  /** Time until which the token may be used (epoch ms). The safety margin is already subtracted. */
  expiresAt: number;
}

/**
 * A token cache shared by processes with the same credentials. It is optional: an error, or no response
 * within two seconds, counts as an empty cache. It must be bound to the version of the secret.
 */
export interface TokenCache {
  load(): Promise<CachedToken | undefined>;
  save(token: CachedToken): Promise<void>;
  clear(): Promise<void>;
}

/** Options of a token source: the region's auth host and one account's credentials. */
export interface TokenSourceOptions {
  /** Base address of the region's auth host. It may contain a path. */
  authUrl: string;
  realm: string;
  clientId: string;
  clientSecret: string;
  cache?: TokenCache | undefined;
  /** Returns the current time in epoch ms. */
  now?: () => number;
  /** Timeout of one token request, including the read of the answer (ms). Default: 15,000. */
  timeoutMs?: number;
  fetch?: Fetch;
}

const TOKEN_PATH = '/protocol/openid-connect/token';
/** Returns whether an operation of an {@link OrderingError} is the request of a token. */
export const isTokenRequest = (operation: string): boolean => operation.endsWith(TOKEN_PATH);

const MARGIN_SECONDS = 60;
const CACHE_PATIENCE_MS = 2_000;

/**
 * Creates a source of access tokens for one set of credentials (OAuth client credentials, rule 11 of
 * docs/truth.md).
 *
 * A token is kept in memory, and in `cache` if there is one, until a minute before it expires. A token that
 * expires within that minute is kept for half its lifetime. The secret exists only in this closure: no
 * error, inspection or JSON contains it.
 */
export function createTokenSource(options: TokenSourceOptions): TokenSource {
  const { clientId, clientSecret, cache, now = Date.now, timeoutMs = 15_000 } = options;
  const fetch = options.fetch ?? httpFetch;
  const path = `/realms/${encodeURIComponent(options.realm)}${TOKEN_PATH}`;
  const url = `${baseAddress('authUrl', options.authUrl)}${path}`;
  const operation = `POST ${path}`;

  interface Held {
    value: string;
    obtainedAt: number;
    usableUntil: number;
    /** Whether the token came from the cache, not from a request of this process: its true age is unknown. */
    fromCache: boolean;
  }
  let held: Held | undefined;
  let flight: Promise<AccessToken> | undefined;
  /**
   * Set by a rejection: only a token issued after it can distinguish a stale token from rejected
   * credentials.
   */
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
      // All waiting callers may have aborted by the time it fails.
      flight.catch(() => {});
    }
    return unlessAborted(flight, signal);
  }

  async function drop(accessToken: string): Promise<void> {
    if (held && held.value !== accessToken && !held.fromCache) return;
    held = undefined;
    pastCache = true;
    if (!cache) return;
    // Compared first: another process may have stored a newer token already.
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
      operation,
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
    if (answer.status !== 200) throw rejection(answer.status, answer.headers, answer.text);
    const { access_token, expires_in } = readJson(operation, answer, TokenResponse);
    const usableSeconds = expires_in <= MARGIN_SECONDS ? expires_in / 2 : expires_in - MARGIN_SECONDS;
    return {
      value: access_token,
      obtainedAt: answer.respondedAt,
      // Counted from before the request: the token is at most that old.
      usableUntil: answer.requestedAt + usableSeconds * 1000,
      fromCache: false,
    };
  }

  /**
   * Builds the error of the token endpoint. Of its body, the error contains only the OAuth code and
   * description, because the rest may contain anything.
   */
  function rejection(status: number, headers: FetchResponse['headers'], text: string): OrderingError {
    const plain = errorFromResponse(operation, status, headers, '', { now: now() });
    return new OrderingError({
      kind: status === 400 || status === 401 || status === 403 ? 'credentials_rejected' : plain.kind,
      operation,
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

/** Returns the answer of the cache. `undefined` if it fails or takes too long. */
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
