/**
 * Storage of account credentials that were given to Jobwire, instead of a reference to their location. One
 * secret per account: in Secrets Manager on AWS, encrypted in the state table elsewhere.
 */
import { randomUUID } from 'node:crypto';
import type { SecretsManagerClient } from '@aws-sdk/client-secrets-manager';
import { type AwsTextsOptions, createAwsTexts, openSealedTexts } from '../secret-store.ts';
import {
  checkSecretRef,
  createSecretReader,
  parseCredentials,
  SecretError,
  secretNames,
} from '../secrets.ts';
import { keys } from '../storage/schema.ts';
import type { Table } from '../storage/table.ts';
import type { Credentials } from './connect.ts';

/** Credentials as given by a caller. */
export type GivenCredentials = Pick<Credentials, 'clientId' | 'clientSecret'>;

/** Store of account credentials. Every method except `refuse` throws {@link SecretError}. */
export interface AccountSecrets {
  /** Stores credentials and replaces former ones. Returns the `secretRef` for reading them. */
  save(region: string, account: string, given: GivenCredentials): Promise<string>;
  /** Returns the current credentials of a `secretRef`. Their version changes with each {@link save}. */
  read(secretRef: string): Promise<Credentials>;
  /** Permanently removes the stored credentials of an account. Does nothing if there are none. */
  remove(region: string, account: string): Promise<void>;
  /**
   * Returns why a given `secretRef` is not accepted: an error message without its first word, the field
   * name. `undefined` if it is accepted.
   */
  refuse(region: string, secretRef: string): string | undefined;
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
  const nameOf = (region: string, account: string) => `${secretNames(stage, region).accounts}${account}`;
  return {
    async save(region, account, { clientId, clientSecret }) {
      const name = nameOf(region, account);
      await texts.save(name, JSON.stringify({ clientId, clientSecret }));
      return name;
    },
    read: (secretRef) => reader.readSecret(secretRef),
    remove: (region, account) => texts.remove(nameOf(region, account)),
    refuse: (region, secretRef) => checkSecretRef(stage, region, secretRef),
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
  const placeOf = (region: string, account: string) => ({
    key: keys.credentials({ region, account }),
    place: `credentials/${region}/${account}`,
    name: `${KEPT}${region}/${account}`,
  });
  return {
    async save(region, account, { clientId, clientSecret }) {
      const place = placeOf(region, account);
      await texts.save(place, JSON.stringify({ clientId, clientSecret, version: randomUUID() }));
      return place.name;
    },
    async read(secretRef) {
      const [region = '', account = ''] = secretRef.slice(KEPT.length).split('/');
      const text = isKept(secretRef) ? await texts.load(placeOf(region, account)) : undefined;
      if (text === undefined) throw new SecretError(secretRef, 'is missing.');
      const { version } = JSON.parse(text) as { version: string };
      return { ...parseCredentials(secretRef, text), version };
    },
    remove: (region, account) => texts.remove(placeOf(region, account)),
    refuse: () =>
      'must be left out here, where credentials have to be given: there is no other store for them',
  };
}
