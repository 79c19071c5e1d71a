/**
 * Credentials of accounts. Those that were given to Jobwire are stored in the state table, encrypted. On AWS,
 * an account can instead name a secret of its owner in Secrets Manager, which Jobwire only reads.
 */
import { randomUUID } from 'node:crypto';
import * as z from 'zod';
import { openSealedTexts, parseSecret, type SealedTexts, SecretError, secretPrefix } from '../secrets.ts';
import { keys } from '../storage/schema.ts';
import type { Table } from '../storage/table.ts';
import type { Credentials } from './connect.ts';

/** Credentials as given by a caller. */
export type GivenCredentials = Pick<Credentials, 'clientId' | 'clientSecret' | 'upstream'>;

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
  /** Returns whether the credentials were in the configuration file, and no longer are. Absent: there is no such file. */
  isRemoved?(secretRef: string): boolean;
}

/** Prefix of references to credentials in the table. No account id can start with it. */
const KEPT = 'kept:';

/** Returns whether a `secretRef` was issued by {@link AccountSecrets.save}. */
export function isKept(secretRef: string): boolean {
  return secretRef.startsWith(KEPT);
}

/** Opens a store that is encrypted with an external key, without any other secrets: see {@link openSealedTexts}. */
export async function openLocalAccountSecrets(table: Table, key: Uint8Array): Promise<AccountSecrets> {
  return createAccountSecrets(await openSealedTexts(table, key));
}

/** Credentials in a secret. */
export const AccountSecret = z.object({ clientId: z.string().min(1), clientSecret: z.string().min(1) });

/** Creates a store of credentials. `owned`: the secrets of owners in Secrets Manager, on AWS. */
export function createAccountSecrets(
  texts: SealedTexts,
  owned?: {
    readonly stage: string;
    readonly cell: string;
    /** Returns the credentials in a secret of an owner: see `owner-secrets.ts`. */
    readonly readSecret: (secretRef: string) => Promise<Credentials>;
  },
): AccountSecrets {
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
      if (owned && !isKept(secretRef)) return owned.readSecret(secretRef);
      const [region = '', account = ''] = secretRef.slice(KEPT.length).split('/');
      const text = isKept(secretRef) ? await texts.load(toPlace(region, account)) : undefined;
      if (text === undefined) throw new SecretError(secretRef, 'is missing.');
      const { version } = JSON.parse(text) as { version: string };
      return { ...parseSecret(secretRef, text, AccountSecret), version };
    },
    remove: (region, account) => texts.remove(toPlace(region, account)),
    checkSecretRef: (_region, secretRef) =>
      owned
        ? checkSecretRef(owned.stage, owned.cell, secretRef)
        : 'must be omitted: this installation accepts only credentials',
  };
}

/** Characters that Secrets Manager allows in a secret's name. */
const SECRET_NAME = /^[A-Za-z0-9/_+=.@-]{1,512}$/;

/**
 * Returns why an account's `secretRef` cannot be a secret of the cell: a phrase to follow the field's name. A
 * secret elsewhere would not be readable, which would only appear at the first poll.
 */
export function checkSecretRef(stage: string, cell: string, secretRef: string): string | undefined {
  const prefix = secretPrefix(stage, cell);
  const at = secretRef.indexOf('#');
  const name = at < 0 ? secretRef : secretRef.slice(0, at);
  const isBelow = name.startsWith(prefix) && name.length > prefix.length && SECRET_NAME.test(name);
  if (isBelow && at !== secretRef.length - 1) return undefined;
  return `must be the name of a secret that begins with ${prefix}, optionally followed by # and a key of its JSON`;
}
