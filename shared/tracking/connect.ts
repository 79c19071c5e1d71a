/** From an account's record to a client that speaks with its credentials. */
import {
  createOrderingClient,
  type OrderingClient,
  type OrderingClientOptions,
  type RequestInfo,
} from '../ordering/client.ts';
import { OrderingError } from '../ordering/errors.ts';
import { unlessAborted } from '../ordering/exchange.ts';
import { createTokenSource, type TokenCache, type TokenSource } from '../ordering/tokens.ts';
import { type AccountRef, keys } from '../table/schema.ts';
import type { Table } from '../table/table.ts';
import type { Account } from './accounts.ts';

/** Where the ordering service of one region is. */
export interface RegionSettings {
  readonly baseUrl: string;
  readonly authUrl: string;
  readonly realm: string;
}

/** The credentials of one account. `version` changes with the secret, so that tokens are never kept across secrets. */
export interface Credentials {
  readonly clientId: string;
  readonly clientSecret: string;
  readonly version: string;
}

interface Options {
  readonly regions: Readonly<Record<string, RegionSettings>>;
  /** Resolves an account's `secretRef`. Throws when it can't. */
  readonly readSecret: (secretRef: string) => Promise<Credentials>;
  /**
   * Told of a `secretRef` whose credentials or token the service refused, or that was given new ones since it was used last:
   * what is remembered of it may be out of date.
   */
  readonly onRefused?: (secretRef: string) => void;
  /** Where tokens are shared between processes; absent: each process gets its own. */
  readonly tokenCache?: (ref: AccountRef, version: string) => TokenCache;
  readonly now: () => number;
  readonly onRequest?: (info: RequestInfo) => void;
  /** How requests are sent, to the API and to the token endpoint; the global fetch if absent. */
  readonly fetch?: typeof globalThis.fetch;
  /** How the clients time what they do; their own defaults if absent. */
  readonly timing?: Pick<OrderingClientOptions, 'timeoutMs' | 'maxRetryAfterMs' | 'sleep' | 'random'>;
}

/** Tokens for one version of an account's credentials. */
interface Source {
  readonly version: string;
  readonly tokens: TokenSource;
}

/**
 * Makes `connect` of a poll. Token sources are kept per account and version of its secret; a client is new for each poll,
 * so that its counts are the poll's. Credentials that are refused are read anew at once, and only those that are refused
 * then are: what this process remembered may have been replaced since.
 */
export function createConnector(
  options: Options,
): (account: Account) => Promise<{ client: OrderingClient; tokens: TokenSource }> {
  const sources = new Map<string, Source>();
  /** When the credentials of each account had been changed last, as its record said when it was polled last. */
  const changes = new Map<string, number>();

  function sourceOf(account: Account, region: RegionSettings, credentials: Credentials): Source {
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
    const source = { version, tokens };
    sources.set(name, source);
    return source;
  }

  return async (account) => {
    const { secretRef } = account;
    const region = options.regions[account.region];
    if (!region) throw new Error(`The region ${account.region} is not configured.`);
    const { credentialsAt } = account;
    const name = `${account.region}/${account.account}`;
    if (credentialsAt !== undefined && changes.get(name) !== credentialsAt) options.onRefused?.(secretRef);
    let source = sourceOf(account, region, await options.readSecret(secretRef));
    if (credentialsAt !== undefined) changes.set(name, credentialsAt);
    const tokens: TokenSource = {
      async get(signal) {
        const used = source;
        try {
          return await used.tokens.get(signal);
        } catch (cause) {
          if (!(cause instanceof OrderingError) || cause.kind !== 'credentials_rejected') throw cause;
          // Side by side, calls are refused with the same credentials: the first finds the new ones for all.
          if (source === used) {
            options.onRefused?.(secretRef);
            const credentials = await unlessAborted(options.readSecret(secretRef), signal).catch(() => {
              signal?.throwIfAborted();
              throw cause;
            });
            if (credentials.version === used.version) throw cause;
            source = sourceOf(account, region, credentials);
          }
          return source.tokens.get(signal);
        }
      },
      async drop(accessToken) {
        options.onRefused?.(secretRef);
        await source.tokens.drop(accessToken);
      },
    };
    const client = createOrderingClient({
      ...options.timing,
      baseUrl: region.baseUrl,
      tokens,
      now: options.now,
      onRequest: options.onRequest,
      ...(options.fetch === undefined ? {} : { fetch: options.fetch }),
    });
    return { client, tokens };
  };
}

/** A token kept in the table, under a partition of its own, for as long as its secret's version lasts. */
export function tableTokenCache(table: Table, ref: AccountRef, version: string): TokenCache {
  const key = keys.token(ref);
  return {
    async load() {
      const item = await table.get(key);
      if (item?.version !== version) return undefined;
      return { value: String(item.value), expiresAt: Number(item.expiresAt) };
    },
    async save({ value, expiresAt }) {
      // Of an account that was deleted meanwhile it is kept, too: it leaves with its time, or with the second look of the deletion.
      await table.write({ put: { ...key, value, expiresAt, version, ttl: Math.ceil(expiresAt / 1000) } });
    },
    async clear() {
      await table.write({ delete: key });
    },
  };
}
