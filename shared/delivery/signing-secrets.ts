/**
 * The confidential part of an endpoint: the secrets that sign its requests, and the values of its custom
 * headers. They are stored together, encrypted, apart from its record.
 *
 *   rotate   ├── old signs ──┼── new and old sign, 24 h ──┼── new signs ──▶
 *
 * Expiry is evaluated at each read, so no process has to act when a secret expires.
 */
import { randomBytes } from 'node:crypto';
import * as z from 'zod';
import { cacheReads, openSealedTexts, parseSecret, type SealedTexts, SecretError } from '../secrets.ts';
import { keys } from '../storage/schema.ts';
import type { Table } from '../storage/table.ts';
import type { SinkRecord } from './sink.ts';

const signingSecret = z.string().startsWith('whsec_');

/** The confidential data of an endpoint, which no response contains. */
export const EndpointSecrets = z.object({
  /** Signing secrets until they are replaced, the current one first; usually there is one. */
  secrets: z.array(signingSecret).min(1).max(4),
  /** Former secrets, the latest first: each also signs until its expiry (epoch ms). */
  retiring: z.array(z.object({ secret: signingSecret, until: z.number() })).optional(),
  /** Custom headers of each request: their values may be credentials. */
  headers: z.record(z.string(), z.string()).optional(),
  /**
   * URL that the headers are for: a drain that still sends to an earlier URL must not send the new credentials there. Absent in those saved
   * by earlier versions.
   */
  url: z.string().optional(),
  /** The URL before the last change of the URL, and its headers. */
  former: z.object({ url: z.string(), headers: z.record(z.string(), z.string()) }).optional(),
  /**
   * Creation id of their endpoint, as in its record: an id can be reused. Absent in those saved by earlier
   * versions.
   */
  creation: z.string().optional(),
});
export type EndpointSecrets = z.infer<typeof EndpointSecrets>;

/** Returns the secrets that sign at a time (epoch ms), the current one first. */
export function listActiveSecrets(kept: EndpointSecrets, now: number): readonly string[] {
  const former = (kept.retiring ?? []).filter(({ until }) => now < until);
  return [...kept.secrets, ...former.map(({ secret }) => secret)];
}

/** The store of endpoint secrets. Every method throws {@link SecretError}. */
export interface SigningSecrets {
  /** Returns the last saved secrets; `undefined` if there are none. */
  load(region: string, endpoint: string): Promise<EndpointSecrets | undefined>;
  /** Stores the secrets whole, and overwrites the previous ones. */
  save(region: string, endpoint: string, kept: EndpointSecrets): Promise<void>;
  /** Deletes the secrets permanently. No effect if there are none. */
  remove(region: string, endpoint: string): Promise<void>;
}

/** Default time (s) for which a former secret also signs. */
export const GRACE_PERIOD_SECONDS = 86_400;
/** Maximum number of former secrets that also sign: each adds a signature to every request. */
export const MAX_RETIRING = 3;
const NEW_SECRET_BYTES = 32;

/** Creates a signing secret. */
export function newSigningSecret(bytes: (count: number) => Uint8Array = randomBytes): string {
  return `whsec_${Buffer.from(bytes(NEW_SECRET_BYTES)).toString('base64')}`;
}

/**
 * Puts a new secret first. Former secrets also sign until `until` (epoch ms), or until their own earlier
 * expiry. Returns `undefined` if too many would sign.
 */
export function rotateSecrets(
  kept: EndpointSecrets,
  secret: string,
  until: number,
  now: number,
): EndpointSecrets | undefined {
  const former = [
    ...kept.secrets.map((old) => ({ secret: old, until })),
    ...(kept.retiring ?? []).map((old) => ({ ...old, until: Math.min(old.until, until) })),
  ];
  const retiring = former.filter((old) => old.until > now && old.secret !== secret);
  if (retiring.length > MAX_RETIRING) return undefined;
  return { ...kept, secrets: [secret], retiring };
}

/** The signing secrets and custom headers of one request. */
export interface Signing {
  /** `whsec_…`, the current one first: the request carries a signature of each. */
  readonly secrets: readonly string[];
  /** Headers besides our own. */
  readonly headers: Readonly<Record<string, string>>;
}

/** Reads the signing secrets and headers of endpoints. */
export interface SigningReader {
  /**
   * Returns secrets and headers for the next request. `record` is the endpoint's record as the caller has
   * read it. Without it, the current endpoint of the id is used. Throws {@link SecretError}, also if the id
   * now belongs to another endpoint, or if the URL was changed more than once since.
   */
  (region: string, endpoint: string, record?: Pick<SinkRecord, 'target' | 'creation'>): Promise<Signing>;
  /** Drops the cached data of an endpoint: the next call reads it from the store. */
  forget(region: string, endpoint: string): void;
}

/** Maximum age of cached secrets: a rotation in another process applies to later requests. */
export const SIGNING_MAX_AGE_MS = 5_000;

/**
 * Creates a reader that caches secrets for `maxAgeMs`, by endpoint, creation and URL. So a re-created endpoint never gets the cached
 * secrets of its predecessor, and a new URL never gets the cached headers of the former one. Changes in the same process apply at once
 * through {@link withCacheInvalidation}.
 */
export function createSigningReader(
  store: Pick<SigningSecrets, 'load'>,
  now: () => number,
  maxAgeMs = SIGNING_MAX_AGE_MS,
): SigningReader {
  const names = new Map<string, Set<string>>();
  const load = cacheReads(
    async (name) => {
      const [region = '', endpoint = ''] = name.split('/');
      const kept = await store.load(region, endpoint);
      if (!kept) throw new SecretError(endpoint, 'is missing.');
      return kept;
    },
    now,
    maxAgeMs,
  );
  async function read(
    region: string,
    endpoint: string,
    record: Partial<Pick<SinkRecord, 'target' | 'creation'>> = {},
  ): Promise<Signing> {
    const place = `${region}/${endpoint}`;
    const name = `${place}/${record.creation ?? ''}/${record.target ?? ''}`;
    names.set(place, (names.get(place) ?? new Set()).add(name));
    const kept = await load(name);
    const { creation = kept.creation } = record;
    if (kept.creation !== undefined && kept.creation !== creation) {
      throw new SecretError(endpoint, 'belongs to another endpoint of the same id.');
    }
    const headers = selectHeaders(kept, record.target);
    if (!headers) throw new SecretError(endpoint, 'is for another URL of the endpoint.');
    return { secrets: listActiveSecrets(kept, now()), headers };
  }
  return Object.assign(read, {
    forget(region: string, endpoint: string) {
      const place = `${region}/${endpoint}`;
      for (const name of names.get(place) ?? []) load.forget(name);
      names.delete(place);
    },
  });
}

/** Returns the headers of requests to a URL (default: the current one). `undefined` for a URL before the former one. */
export function selectHeaders(
  { url: current, headers = NO_HEADERS, former }: EndpointSecrets,
  url = current,
): Readonly<Record<string, string>> | undefined {
  if (current === undefined || url === current) return headers;
  return url === former?.url ? former?.headers : undefined;
}

/** One shared object, because the common part of requests is rebuilt only if it changed. */
const NO_HEADERS: Signing['headers'] = {};

/** Wraps a store so that a save or removal drops the reader's cached data. */
export function withCacheInvalidation(
  store: SigningSecrets,
  reader: Pick<SigningReader, 'forget'>,
): SigningSecrets {
  return {
    load: (region, endpoint) => store.load(region, endpoint),
    // Also after an error: the data may have been saved nevertheless.
    save: (region, endpoint, kept) =>
      store.save(region, endpoint, kept).finally(() => reader.forget(region, endpoint)),
    remove: (region, endpoint) =>
      store.remove(region, endpoint).finally(() => reader.forget(region, endpoint)),
  };
}

/** Opens a store that is encrypted with an external key: see {@link openSealedTexts}. */
export async function openLocalSigningSecrets(table: Table, key: Uint8Array): Promise<SigningSecrets> {
  return createSigningSecrets(await openSealedTexts(table, key));
}

/** Creates a store of the secrets of endpoints. */
export function createSigningSecrets(texts: SealedTexts): SigningSecrets {
  const toPlace = (region: string, endpoint: string) => ({
    key: keys.endpointSecrets(region, endpoint),
    binding: `${region}/${endpoint}`,
    name: endpoint,
  });
  return {
    async load(region, endpoint) {
      const text = await texts.load(toPlace(region, endpoint));
      return text === undefined ? undefined : parseSecret(endpoint, text, EndpointSecrets);
    },
    save: (region, endpoint, kept) => texts.save(toPlace(region, endpoint), JSON.stringify(kept)),
    remove: (region, endpoint) => texts.remove(toPlace(region, endpoint)),
  };
}
