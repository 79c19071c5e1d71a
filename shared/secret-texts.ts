/**
 * Where secrets that were given to Jobwire are kept, as texts: in Secrets Manager on AWS, encrypted in the state table
 * elsewhere. What the texts hold is for their owners: secrets of endpoints, credentials of accounts.
 */
import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import { setTimeout as sleepMs } from 'node:timers/promises';
import {
  CreateSecretCommand,
  DeleteSecretCommand,
  GetSecretValueCommand,
  PutSecretValueCommand,
  RestoreSecretCommand,
  type SecretsManagerClient,
} from '@aws-sdk/client-secrets-manager';
import { SecretError } from './secrets.ts';
import { keys } from './table/schema.ts';
import type { Key, Table } from './table/table.ts';

/** Attempts to make a secret under a name that AWS has not yet let go of, and the first wait between them. */
const AWS_ATTEMPTS = 6;
const AWS_WAIT_MS = 250;

/** How secrets are made on AWS. */
export interface AwsTextsOptions {
  /** What new ones are encrypted with; absent: a key of AWS. */
  readonly keyArn?: string | undefined;
  readonly sleep?: (ms: number) => Promise<unknown>;
}

/** Texts in Secrets Manager, by name. Every method throws {@link SecretError}. */
export function createAwsTexts(client: SecretsManagerClient, options: AwsTextsOptions) {
  const { keyArn, sleep = sleepMs } = options;

  /** The answer, or the name of the error if it is one of those expected. */
  async function attempt<T>(
    secretId: string,
    call: () => Promise<T>,
    verb: string,
    expected: readonly string[],
  ): Promise<T | string> {
    try {
      return await call();
    } catch (cause) {
      const name = cause instanceof Error ? cause.name : 'an unknown error';
      if (expected.includes(name)) return name;
      throw new SecretError(secretId, `could not be ${verb} (${name}).`, cause);
    }
  }

  return {
    /** The text; `undefined` when there is none, or it is marked for deletion. */
    async load(SecretId: string): Promise<string | undefined> {
      const answer = await attempt(
        SecretId,
        () => client.send(new GetSecretValueCommand({ SecretId })),
        'read',
        [
          NOT_FOUND,
          // Marked for deletion.
          INVALID,
        ],
      );
      if (typeof answer === 'string') return undefined;
      if (!answer.SecretString) throw new SecretError(SecretId, 'holds no text.');
      return answer.SecretString;
    },

    /** Stores a text over the one before; makes the secret, or brings it back, where that is needed. */
    async save(SecretId: string, SecretString: string): Promise<void> {
      for (let tries = 0; tries < AWS_ATTEMPTS; tries += 1) {
        if (tries > 0) await sleep(AWS_WAIT_MS * 2 ** (tries - 1));
        const put = await attempt(
          SecretId,
          () => client.send(new PutSecretValueCommand({ SecretId, SecretString })),
          'saved',
          [NOT_FOUND, INVALID],
        );
        if (typeof put !== 'string') return;
        if (put === INVALID) {
          await attempt(SecretId, () => client.send(new RestoreSecretCommand({ SecretId })), 'restored', [
            NOT_FOUND,
            INVALID,
          ]);
          continue;
        }
        // A name deleted a moment ago is neither there nor free.
        const created = await attempt(
          SecretId,
          () =>
            client.send(
              new CreateSecretCommand({ Name: SecretId, SecretString, ...(keyArn && { KmsKeyId: keyArn }) }),
            ),
          'created',
          [EXISTS, INVALID],
        );
        if (typeof created !== 'string') return;
      }
      throw new SecretError(SecretId, 'could not be saved: its name is not free yet.');
    },

    /** Removes it for good; nothing happens when there is none. */
    async remove(SecretId: string): Promise<void> {
      await attempt(
        SecretId,
        () => client.send(new DeleteSecretCommand({ SecretId, ForceDeleteWithoutRecovery: true })),
        'deleted',
        [NOT_FOUND],
      );
    },
  };
}

const NOT_FOUND = 'ResourceNotFoundException';
const INVALID = 'InvalidRequestException';
const EXISTS = 'ResourceExistsException';

/** Where a text stands in the table; `place` is what it is bound to, `name` what errors call it. */
interface SealedPlace {
  readonly key: Key;
  readonly place: string;
  readonly name: string;
}

/**
 * Texts in the state table, encrypted with a key (32 bytes) that stands elsewhere: AES-256-GCM, bound to their place, so that
 * one can't be passed off as another. Throws {@link SecretError} at once when the key is not the one that was used
 * before.
 */
export async function openSealedTexts(table: Table, key: Uint8Array) {
  const known = await table.write({
    put: { ...keys.secretKeyCheck(), sealed: seal(key, CHECK, CHECK) },
    when: [['pk', 'absent']],
  });
  const check = known.item?.sealed;
  if (!(check instanceof Uint8Array) || unseal(key, CHECK, check) !== CHECK) {
    throw new SecretError(
      'key',
      'is not the one that the secrets of endpoints and accounts were encrypted with: put the former one back.',
    );
  }
  return {
    async load({ key: itemKey, place, name }: SealedPlace): Promise<string | undefined> {
      const item = await table.get(itemKey);
      if (!item) return undefined;
      const text = item.sealed instanceof Uint8Array ? unseal(key, place, item.sealed) : undefined;
      if (text === undefined) throw new SecretError(name, "can't be decrypted.");
      return text;
    },
    async save({ key: itemKey, place }: SealedPlace, text: string): Promise<void> {
      await table.write({ put: { ...itemKey, sealed: seal(key, place, text) } });
    },
    async remove({ key: itemKey }: SealedPlace): Promise<void> {
      await table.write({ delete: itemKey });
    },
  };
}

const CHECK = 'jobwire';
const CIPHER = 'aes-256-gcm';
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/** Nonce, tag, and what was encrypted. */
function seal(key: Uint8Array, place: string, text: string): Uint8Array {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv(CIPHER, key, nonce).setAAD(Buffer.from(place));
  const sealed = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()]);
  return new Uint8Array(Buffer.concat([nonce, cipher.getAuthTag(), sealed]));
}

/** `undefined` when it was not sealed with this key for this place. */
function unseal(key: Uint8Array, place: string, bytes: Uint8Array): string | undefined {
  if (bytes.length < NONCE_BYTES + TAG_BYTES) return undefined;
  const nonce = bytes.subarray(0, NONCE_BYTES);
  const decipher = createDecipheriv(CIPHER, key, nonce, { authTagLength: TAG_BYTES });
  decipher.setAAD(Buffer.from(place)).setAuthTag(bytes.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES));
  try {
    return (
      decipher.update(bytes.subarray(NONCE_BYTES + TAG_BYTES), undefined, 'utf8') + decipher.final('utf8')
    );
  } catch {
    return undefined;
  }
}
