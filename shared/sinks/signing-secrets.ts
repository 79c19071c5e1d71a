/**
 * What nobody is shown of an endpoint: the secrets that sign its requests, and the values of its own headers. They are kept
 * together, apart from its record: in Secrets Manager on AWS, encrypted in the state table elsewhere.
 *
 *   rotate   ├── old signs ──┼── new and old sign, 24 h ──┼── new signs ──▶
 *
 * Judged by the time of reading, so nothing has to happen when a secret's time is up.
 */
import { randomBytes } from 'node:crypto';
import type { SecretsManagerClient } from '@aws-sdk/client-secrets-manager';
import { type AwsTextsOptions, createAwsTexts, openSealedTexts } from '../secret-texts.ts';
import {
  type EndpointSecrets,
  parseEndpointSecrets,
  remembering,
  SecretError,
  secretNames,
  signingAt,
} from '../secrets.ts';
import { keys } from '../table/schema.ts';
import type { Table } from '../table/table.ts';

/** Where secrets of endpoints are kept. Every method throws {@link SecretError}. */
export interface SigningSecrets {
  /** As they were saved last; `undefined` when there are none. */
  load(region: string, endpoint: string): Promise<EndpointSecrets | undefined>;
  /** Stores them whole, over those of before. */
  save(region: string, endpoint: string, kept: EndpointSecrets): Promise<void>;
  /** Removes them for good; nothing happens when there are none. */
  remove(region: string, endpoint: string): Promise<void>;
}

/** A former secret signs along for so long, unless somebody says otherwise. */
export const KEEP_OLD_SECONDS = 86_400;
/** Former secrets that sign along at the same time: each is one more signature in every request. */
export const MAX_RETIRING = 3;
const NEW_SECRET_BYTES = 32;

/** A new signing secret. */
export function newSigningSecret(bytes: (count: number) => Uint8Array = randomBytes): string {
  return `whsec_${Buffer.from(bytes(NEW_SECRET_BYTES)).toString('base64')}`;
}

/**
 * Puts a new secret first; those of before sign along until `until` (epoch ms), or shorter if their time is up before.
 * `undefined` when too many would sign along.
 */
export function rotated(
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

/** Reads what signs and what is sent along now; what was read is used for a minute at most. Throws {@link SecretError}. */
export function createSigningReader(
  store: Pick<SigningSecrets, 'load'>,
  now: () => number,
  maxAgeMs = 60_000,
): (
  region: string,
  endpoint: string,
) => Promise<{ readonly secrets: readonly string[]; readonly headers: Readonly<Record<string, string>> }> {
  const load = remembering(
    async (name) => {
      const [region = '', endpoint = ''] = name.split('/');
      const kept = await store.load(region, endpoint);
      if (!kept) throw new SecretError(endpoint, 'is missing.');
      return kept;
    },
    now,
    maxAgeMs,
  );
  return async (region, endpoint) => {
    const kept = await load(`${region}/${endpoint}`);
    return { secrets: signingAt(kept, now()), headers: kept.headers ?? {} };
  };
}

/** Keeps them in Secrets Manager, one secret per endpoint. */
export function createAwsSigningSecrets(
  client: SecretsManagerClient,
  options: AwsTextsOptions & { readonly stage: string },
): SigningSecrets {
  const texts = createAwsTexts(client, options);
  const nameOf = (region: string, endpoint: string) => secretNames(options.stage, region).endpoint(endpoint);
  return {
    async load(region, endpoint) {
      const name = nameOf(region, endpoint);
      const text = await texts.load(name);
      return text === undefined ? undefined : parseEndpointSecrets(name, text);
    },
    save: (region, endpoint, kept) => texts.save(nameOf(region, endpoint), JSON.stringify(kept)),
    remove: (region, endpoint) => texts.remove(nameOf(region, endpoint)),
  };
}

/** Keeps them in the state table, encrypted: see {@link openSealedTexts}. */
export async function openLocalSigningSecrets(table: Table, key: Uint8Array): Promise<SigningSecrets> {
  const texts = await openSealedTexts(table, key);
  const placeOf = (region: string, endpoint: string) => ({
    key: keys.endpointSecrets(region, endpoint),
    place: `${region}/${endpoint}`,
    name: endpoint,
  });
  return {
    async load(region, endpoint) {
      const text = await texts.load(placeOf(region, endpoint));
      return text === undefined ? undefined : parseEndpointSecrets(endpoint, text);
    },
    save: (region, endpoint, kept) => texts.save(placeOf(region, endpoint), JSON.stringify(kept)),
    remove: (region, endpoint) => texts.remove(placeOf(region, endpoint)),
  };
}
