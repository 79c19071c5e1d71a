/** Secrets of owners of accounts, in Secrets Manager on AWS. They are only read. */
import { GetSecretValueCommand, type SecretsManagerClient } from '@aws-sdk/client-secrets-manager';
import * as z from 'zod';
import { cacheReads, checkSecret, readJson, SecretError } from '../secrets.ts';
import type { Credentials } from './connect.ts';
import { AccountSecret } from './credentials.ts';

/** Reads secrets. Every method throws {@link SecretError}. */
export interface SecretReader {
  /**
   * Returns the credentials of an account's `secretRef`: the name or ARN of a secret with `{"clientId",
   * "clientSecret"}`. With `#key` appended, one secret contains the credentials of many accounts by key (a
   * secret is charged by the month).
   *
   * The version covers the whole secret, and the key if there is one. So a change of one account's
   * credentials renews the tokens of all accounts in it, and an account with a new key keeps none of its old
   * tokens. `upstream` in the value replaces the addresses of the region for this account.
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

const httpsUrl = z.url({ protocol: /^https$/ });
/** Only an operator with access to Secrets Manager can write `upstream`: `AccountSecrets.save` does not. */
const OperatorSecret = AccountSecret.extend({
  upstream: z.object({ baseUrl: httpsUrl, authUrl: httpsUrl, realm: z.string().min(1) }).optional(),
});

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
      const credentials = checkSecret(secretRef, part, OperatorSecret);
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
