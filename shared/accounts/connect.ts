/** Creates a client with an account's credentials from the account's record. */
import {
  createOrderingClient,
  type Holds,
  type OrderingClient,
  type OrderingClientOptions,
  type RequestInfo,
} from '../ordering/client.ts';
import { OrderingError } from '../ordering/errors.ts';
import { unlessAborted } from '../ordering/exchange.ts';
import { createTokenSource, type TokenCache, type TokenSource } from '../ordering/tokens.ts';
import type { Fetch } from '../ordering/transport.ts';
import { type AccountRef, keys } from '../storage/schema.ts';
import type { Table } from '../storage/table.ts';
import type { Account } from './accounts.ts';

/** Addresses of the ordering API of one region. */
export interface RegionSettings {
  readonly baseUrl: string;
  readonly authUrl: string;
  readonly realm: string;
}

/**
 * Credentials of one account. `version` changes with the secret, so that tokens are never reused across
 * secrets.
 */
export interface Credentials {
  readonly clientId: string;
  readonly clientSecret: string;
  readonly version: string;
  /** Addresses of the ordering API for this account only, in place of those of its region. */
  readonly upstream?: RegionSettings | undefined;
}

interface Options {
  readonly regions: Readonly<Record<string, RegionSettings>>;
  /** Resolves an account's `secretRef`. Throws if it cannot be resolved. */
  readonly readSecret: (secretRef: string) => Promise<Credentials>;
  /**
   * Called with a `secretRef` whose credentials or token upstream rejected, or whose credentials changed
   * since the last use. Cached data of it may be outdated.
   */
  readonly onCredentialsRejected?: (secretRef: string) => void;
  /** Token cache shared between processes. Default: each process gets its own tokens. */
  readonly tokenCache?: (ref: AccountRef, version: string) => TokenCache;
  readonly now: () => number;
  readonly onRequest?: (info: RequestInfo) => void;
  /** Function that sends requests to the API and to the token endpoint. Default: Node's HTTP client. */
  readonly fetch?: Fetch;
  /** Timing of the clients. Default: the clients' own defaults. */
  readonly timing?: Pick<OrderingClientOptions, 'timeoutMs' | 'maxRetryAfterMs' | 'sleep' | 'random'>;
}

/** Tokens for one version of an account's credentials. */
interface Source {
  readonly version: string;
  readonly tokens: TokenSource;
  readonly baseUrl: string;
  readonly ownAddress: boolean;
}

/** Result of `connect`. */
export interface Connection {
  readonly client: OrderingClient;
  readonly tokens: TokenSource;
  /** Whether the credentials contain the addresses of the ordering API, in place of those of the region. */
  readonly ownAddress: boolean;
}

/**
 * Creates `connect` of a poll. Token sources are cached per account and version of its secret. Each poll
 * gets a new client, so that the client's counters are those of the poll.
 *
 * Rejected credentials are read again at once, because the cached ones may have been replaced. The fault is
 * reported only if the new ones are rejected too.
 */
export function createConnector(options: Options): (account: Account, holds?: Holds) => Promise<Connection> {
  const sources = new Map<string, Source>();
  /** Time of the last change of each account's credentials, according to its record at its last poll. */
  const changes = new Map<string, number>();

  function createSource(account: Account, regionSettings: RegionSettings, credentials: Credentials): Source {
    const region = credentials.upstream ?? regionSettings;
    const name = `${account.region}/${account.account}`;
    const { clientId, clientSecret, version } = credentials;
    const known = sources.get(name);
    if (known?.version === version) return known;
    const cache = options.tokenCache?.(account, version);
    const tokens = createTokenSource({
      authUrl: region.authUrl,
      realm: region.realm,
      clientId,
      clientSecret,
      now: options.now,
      ...(cache === undefined ? {} : { cache }),
      ...(options.fetch === undefined ? {} : { fetch: options.fetch }),
    });
    const ownAddress = credentials.upstream !== undefined;
    const source = { version, tokens, baseUrl: region.baseUrl, ownAddress };
    sources.set(name, source);
    return source;
  }

  return async (account, holds) => {
    const { secretRef } = account;
    const region = options.regions[account.region];
    if (!region) throw new Error(`The region ${account.region} is not configured.`);
    const { credentialsAt } = account;
    const name = `${account.region}/${account.account}`;
    if (credentialsAt !== undefined && changes.get(name) !== credentialsAt)
      options.onCredentialsRejected?.(secretRef);
    let source = createSource(account, region, await options.readSecret(secretRef));
    if (credentialsAt !== undefined) changes.set(name, credentialsAt);
    const tokens: TokenSource = {
      async get(signal) {
        const used = source;
        try {
          return await used.tokens.get(signal);
        } catch (cause) {
          if (!(cause instanceof OrderingError) || cause.kind !== 'credentials_rejected') throw cause;
          // Concurrent calls are rejected with the same credentials. The first one reads the new ones for
          // all.
          if (source === used) {
            options.onCredentialsRejected?.(secretRef);
            const credentials = await unlessAborted(options.readSecret(secretRef), signal).catch(() => {
              signal?.throwIfAborted();
              throw cause;
            });
            if (credentials.version === used.version) throw cause;
            source = createSource(account, region, credentials);
          }
          return source.tokens.get(signal);
        }
      },
      async drop(accessToken) {
        options.onCredentialsRejected?.(secretRef);
        await source.tokens.drop(accessToken);
      },
    };
    const client = createOrderingClient({
      ...options.timing,
      baseUrl: source.baseUrl,
      tokens,
      now: options.now,
      onRequest: options.onRequest,
      ...(holds && { holds }),
      ...(options.fetch === undefined ? {} : { fetch: options.fetch }),
    });
    return { client, tokens, ownAddress: source.ownAddress };
  };
}

/**
 * Creates a token cache in the table, in its own partition. Tokens are valid for as long as the version of
 * their secret.
 */
export function tableTokenCache(table: Table, ref: AccountRef, version: string): TokenCache {
  const key = keys.token(ref);
  return {
    async load() {
      const item = await table.get(key);
      if (item?.version !== version) return undefined;
      return { value: String(item.value), expiresAt: Number(item.expiresAt) };
    },
    async save({ value, expiresAt }) {
      // Also stored for an account deleted meanwhile. It is removed when it expires, or by the second pass of
      // the deletion.
      await table.write({ put: { ...key, value, expiresAt, version, ttl: Math.ceil(expiresAt / 1000) } });
    },
    async clear() {
      await table.write({ delete: key });
    },
  };
}
