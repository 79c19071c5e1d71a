/**
 * Credentials of accounts that were given to Jobwire, rather than a reference to where they are. One secret per account: in
 * Secrets Manager on AWS, encrypted in the state table elsewhere.
 */
import { randomUUID } from 'node:crypto';
import type { SecretsManagerClient } from '@aws-sdk/client-secrets-manager';
import { type AwsTextsOptions, createAwsTexts, openSealedTexts } from '../secret-texts.ts';
import {
  createSecretReader,
  parseCredentials,
  refuseAccountSecret,
  SecretError,
  secretNames,
} from '../secrets.ts';
import { keys } from '../table/schema.ts';
import type { Table } from '../table/table.ts';
import type { Credentials } from './connect.ts';

/** Credentials as somebody gives them. */
export type GivenCredentials = Pick<Credentials, 'clientId' | 'clientSecret'>;

/** Where credentials of accounts are kept. Every method but `refuse` throws {@link SecretError}. */
export interface AccountSecrets {
  /** Stores them, over those of before; gives the `secretRef` that they are read by. */
  save(region: string, account: string, given: GivenCredentials): Promise<string>;
  /** What is behind a `secretRef`, as it stands now. Their version changes with each {@link save}. */
  read(secretRef: string): Promise<Credentials>;
  /** Removes what was saved for an account, for good; nothing happens when there is nothing. */
  remove(region: string, account: string): Promise<void>;
  /** Why a `secretRef` that somebody names can't be one: the rest of a sentence that begins with the field's name. */
  refuse(region: string, secretRef: string): string | undefined;
}

/** Keeps them in Secrets Manager, below the name that the cell may read credentials from. */
export function createAwsAccountSecrets(
  client: SecretsManagerClient,
  options: AwsTextsOptions & { readonly stage: string; readonly now: () => number },
): AccountSecrets {
  const { stage, now } = options;
  const texts = createAwsTexts(client, options);
  // Nothing is remembered: credentials that were just changed are the ones to try.
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
    refuse: (region, secretRef) => refuseAccountSecret(stage, region, secretRef),
  };
}

/** What references to credentials in the table begin with. No id of an account can. */
const KEPT = 'kept:';

/** Whether a `secretRef` is one of those that {@link openLocalAccountSecrets} gives. */
export function isKept(secretRef: string): boolean {
  return secretRef.startsWith(KEPT);
}

/** Keeps them in the state table, encrypted. There is no other store that somebody could refer to. */
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
