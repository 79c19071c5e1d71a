/**
 * Storage of account credentials that were given to Jobwire, instead of a reference to their location. One
 * secret per account: in Secrets Manager on AWS, encrypted in the state table elsewhere.
 */
import { randomUUID } from 'node:crypto';
import { GetSecretValueCommand, type SecretsManagerClient } from '@aws-sdk/client-secrets-manager';
import * as z from 'zod';
import {
  type AwsTextsOptions,
  cacheReads,
  checkSecret,
  createAwsTexts,
  openSealedTexts,
  parseSecret,
  readJson,
  SecretError,
  secretNames,
} from '../secrets.ts';
import { keys } from '../storage/schema.ts';
import type { Table } from '../storage/table.ts';
import type { Credentials } from './connect.ts';

/** Credentials as given by a caller. */
export type GivenCredentials = Pick<Credentials, 'clientId' | 'clientSecret'>;

/** Store of account credentials. Every method except `checkSecretRef` throws {@link SecretError}. */
export interface AccountSecrets {
  /** Stores credentials and replaces former ones. Returns the `secretRef` for reading them. */
  save(region: string, account: string, given: GivenCredentials): Promise<string>;
  /** Returns the current credentials of a `secretRef`. Their version changes with each {@link save}. */
  read(secretRef: string): Promise<Credentials>;
  /** Permanently removes the stored credentials of an account. Does nothing if there are none. */
  remove(region: string, account: string): Promise<void>;
  /**
   * Returns why a given `secretRef` is not accepted: an error message without its first part, the field
   * name. `undefined` if it is accepted.
   */
  checkSecretRef(region: string, secretRef: string): string | undefined;
}

/** Creates a store in Secrets Manager, below the prefix from which the cell may read credentials. */
export function createAwsAccountSecrets(
  client: SecretsManagerClient,
  options: AwsTextsOptions & { readonly stage: string; readonly now: () => number },
): AccountSecrets {
  const { stage, now } = options;
  const texts = createAwsTexts(client, options);
  // No cache, so that credentials are current right after a change.
  const reader = createSecretReader(client, { now, maxAgeMs: 0 });
  const toPlace = (region: string, account: string) => ({
    name: `${secretNames(stage, region).accounts}${account}`,
  });
  return {
    async save(region, account, { clientId, clientSecret }) {
      const place = toPlace(region, account);
      await texts.save(place, JSON.stringify({ clientId, clientSecret }));
      return place.name;
    },
    read: (secretRef) => reader.readSecret(secretRef),
    remove: (region, account) => texts.remove(toPlace(region, account)),
    checkSecretRef: (region, secretRef) => checkSecretRef(stage, region, secretRef),
  };
}

/** Prefix of references to credentials in the table. No account id can start with it. */
const KEPT = 'kept:';

/** Returns whether a `secretRef` was issued by {@link openLocalAccountSecrets}. */
export function isKept(secretRef: string): boolean {
  return secretRef.startsWith(KEPT);
}

/**
 * Opens a store in the state table, encrypted. There is no other store to which a `secretRef` could refer.
 */
export async function openLocalAccountSecrets(table: Table, key: Uint8Array): Promise<AccountSecrets> {
  const texts = await openSealedTexts(table, key);
  const toPlace = (region: string, account: string) => ({
    key: keys.credentials({ region, account }),
    binding: `credentials/${region}/${account}`,
    name: `${KEPT}${region}/${account}`,
  });
  return {
    async save(region, account, { clientId, clientSecret }) {
      const place = toPlace(region, account);
      await texts.save(place, JSON.stringify({ clientId, clientSecret, version: randomUUID() }));
      return place.name;
    },
    async read(secretRef) {
      const [region = '', account = ''] = secretRef.slice(KEPT.length).split('/');
      const text = isKept(secretRef) ? await texts.load(toPlace(region, account)) : undefined;
      if (text === undefined) throw new SecretError(secretRef, 'is missing.');
      const { version } = JSON.parse(text) as { version: string };
      return { ...parseSecret(secretRef, text, AccountSecret), version };
    },
    remove: (region, account) => texts.remove(toPlace(region, account)),
    checkSecretRef: () =>
      'must be left out here, where credentials have to be given: there is no other store for them',
  };
}

/** Characters that Secrets Manager allows in a secret's name. */
const SECRET_NAME = /^[A-Za-z0-9/_+=.@-]{1,512}$/;

/**
 * Returns why an account's `secretRef` cannot be a secret of the cell: a phrase to follow the field's name. A
 * secret elsewhere would not be readable, which would only appear at the first poll.
 */
export function checkSecretRef(stage: string, region: string, secretRef: string): string | undefined {
  const { accounts } = secretNames(stage, region);
  const at = secretRef.indexOf('#');
  const name = at < 0 ? secretRef : secretRef.slice(0, at);
  const isBelow = name.startsWith(accounts) && name.length > accounts.length && SECRET_NAME.test(name);
  if (isBelow && at !== secretRef.length - 1) return undefined;
  return `must be the name of a secret that begins with ${accounts}, or that, # and a key of the JSON in it`;
}

/** Reads secrets. Every method throws {@link SecretError}. */
export interface SecretReader {
  /**
   * Returns the credentials of an account's `secretRef`: the name or ARN of a secret with `{"clientId",
   * "clientSecret"}`. With `#key` appended, one secret contains the credentials of many accounts by key (a
   * secret is charged by the month).
   *
   * The version covers the whole secret, and the key if there is one. So a change of one account's
   * credentials renews the tokens of all accounts in it, and an account with a new key keeps none of its old
   * tokens.
   */
  readSecret(secretRef: string): Promise<Credentials>;
  /** Drops the cached secret of a reference: the next call reads it again. */
  forget(secretRef: string): void;
}

interface Options {
  /** Epoch ms. */
  readonly now: () => number;
  /** Maximum age (ms) of cached values, and so the maximum delay of a change. */
  readonly maxAgeMs: number;
}

interface SecretValue {
  readonly text: string;
  readonly version: string;
}

const AccountSecret = z.object({ clientId: z.string().min(1), clientSecret: z.string().min(1) });

/** Creates a reader. Concurrent calls for the same secret share one request; failures are not cached. */
export function createSecretReader(client: SecretsManagerClient, options: Options): SecretReader {
  const { now, maxAgeMs } = options;
  const read = cacheReads((secretId: string) => request(client, secretId), now, maxAgeMs);

  return {
    async readSecret(secretRef) {
      const { secretId, key } = parseSecretRef(secretRef);
      const { text, version } = await read(secretId);
      const whole = readJson(secretRef, text);
      const part = key === undefined ? whole : getOwnValue(whole, key);
      const credentials = checkSecret(secretRef, part, AccountSecret);
      return { ...credentials, version: key === undefined ? version : `${version}#${key}` };
    },

    forget(secretRef) {
      read.forget(parseSecretRef(secretRef).secretId);
    },
  };
}

function parseSecretRef(secretRef: string): { readonly secretId: string; readonly key: string | undefined } {
  const at = secretRef.indexOf('#');
  return at < 0
    ? { secretId: secretRef, key: undefined }
    : { secretId: secretRef.slice(0, at), key: secretRef.slice(at + 1) };
}

async function request(client: SecretsManagerClient, secretId: string): Promise<SecretValue> {
  let answer: { SecretString?: string | undefined; VersionId?: string | undefined };
  try {
    answer = await client.send(new GetSecretValueCommand({ SecretId: secretId }));
  } catch (cause) {
    const kind = cause instanceof Error ? cause.name : 'an unknown error';
    throw new SecretError(secretId, `could not be read (${kind}).`, cause);
  }
  if (!answer.SecretString) throw new SecretError(secretId, 'has no text value.');
  return { text: answer.SecretString, version: answer.VersionId ?? '' };
}

function getOwnValue(value: unknown, key: string): unknown {
  if (typeof value !== 'object' || value === null || !Object.hasOwn(value, key)) return undefined;
  return (value as Record<string, unknown>)[key];
}
