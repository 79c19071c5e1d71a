/**
 * Storage of the secrets entrusted to Jobwire, as texts: in Secrets Manager on AWS, encrypted in the state
 * table elsewhere. Their owners define the content: secrets of endpoints, credentials of accounts.
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
import { keys } from './storage/schema.ts';
import type { Key, Table } from './storage/table.ts';

/**
 * Number of attempts to create a secret under a name that AWS has not released yet, and the first wait
 * between them.
 */
const AWS_ATTEMPTS = 6;
const AWS_WAIT_MS = 250;

/** Options for creating secrets on AWS. */
export interface AwsTextsOptions {
  /** Key that encrypts new secrets. Default: a key of AWS. */
  readonly keyArn?: string | undefined;
  readonly sleep?: (ms: number) => Promise<unknown>;
}

/** Creates a store of texts in Secrets Manager, by name. Every method throws {@link SecretError}. */
export function createAwsTexts(client: SecretsManagerClient, options: AwsTextsOptions) {
  const { keyArn, sleep = sleepMs } = options;

  /** Returns the response, or the name of the error if it is an expected one. */
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
    /** Returns the text; `undefined` if there is none, or if it is marked for deletion. */
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

    /** Stores a text and overwrites the previous one; creates or restores the secret if necessary. */
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
        // A name that was just deleted is neither there nor free.
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

    /** Deletes a text permanently. No effect if there is none. */
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

/** The key of a text in the table; `place` is its binding, `name` its name in error messages. */
interface SealedPlace {
  readonly key: Key;
  readonly place: string;
  readonly name: string;
}

/**
 * Opens a store of texts in the state table, encrypted with an external key (32 bytes): AES-256-GCM, bound to
 * their place, so that no text can be substituted for another. Throws {@link SecretError} at once if the key
 * differs from the one used before.
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

/** Encrypts a text. Returns nonce, tag and ciphertext. */
function seal(key: Uint8Array, place: string, text: string): Uint8Array {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv(CIPHER, key, nonce).setAAD(Buffer.from(place));
  const sealed = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()]);
  return new Uint8Array(Buffer.concat([nonce, cipher.getAuthTag(), sealed]));
}

/** Decrypts a text. `undefined` if it was not sealed with this key for this place. */
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
