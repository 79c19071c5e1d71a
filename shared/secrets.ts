/**
 * Storage of the secrets entrusted to Jobwire, as texts: in Secrets Manager on AWS, encrypted in the state
 * table elsewhere. Their owners define the content: secrets of endpoints (`delivery/signing-secrets.ts`) and
 * credentials of accounts (`accounts/credentials.ts`).
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
import type * as z from 'zod';
import { type Backoff, backoff } from './retry.ts';
import { keys } from './storage/schema.ts';
import type { Key, Table } from './storage/table.ts';

/**
 * Returns the names of a cell's secrets. IAM lets each function read only those under the prefix it needs.
 */
export function secretNames(stage: string, region: string) {
  const cell = `jobwire/${stage}/${region}`;
  return {
    /** Prefix of the credentials of accounts; an account's `secretRef` names one of them. */
    accounts: `${cell}/accounts/`,
    /** Prefix of the signing secrets of endpoints. */
    endpoints: `${cell}/endpoints/`,
    /** The secrets of one endpoint: `EndpointSecrets` as JSON. */
    endpoint: (sink: string) => `${cell}/endpoints/${sink}`,
  } as const;
}

/** A secret is not available. Neither the message nor the cause contains any of it. */
export class SecretError extends Error {
  override readonly name = 'SecretError';
  readonly secretRef: string;

  constructor(secretRef: string, reason: string, cause?: unknown) {
    super(`The secret ${secretRef} ${reason}`, { cause });
    this.secretRef = secretRef;
  }
}

/** Returns a caching variant of a read function. Concurrent calls share one read; failures are not cached. */
export function cacheReads<T>(
  read: (name: string) => Promise<T>,
  now: () => number,
  maxAgeMs: number,
): ((name: string) => Promise<T>) & { forget(name: string): void } {
  const held = new Map<string, { readonly readAt: number; readonly value: Promise<T> }>();
  const reading = (name: string): Promise<T> => {
    const known = held.get(name);
    const ageMs = known ? now() - known.readAt : 0;
    // A clock that was set back does not extend the age.
    if (known && ageMs >= 0 && ageMs < maxAgeMs) return known.value;
    const entry = { readAt: now(), value: read(name) };
    held.set(name, entry);
    entry.value.catch(() => {
      if (held.get(name) === entry) held.delete(name);
    });
    return entry.value;
  };
  return Object.assign(reading, { forget: (name: string) => void held.delete(name) });
}

/** Parses JSON. The parser's own error is omitted: it quotes the text. */
export function readJson(secretRef: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new SecretError(secretRef, 'is not JSON.');
  }
}

/** Validates a value read from a secret. Throws {@link SecretError}. */
export function checkSecret<T>(secretRef: string, value: unknown, shape: z.ZodType<T>): T {
  const result = shape.safeParse(value);
  if (result.success) return result.data;
  // Only the path of the error: the value may be the secret.
  const where = result.error.issues[0]?.path.join('.') || 'its content';
  throw new SecretError(secretRef, `is invalid: ${where} is missing or invalid.`);
}

/** Parses the JSON of a secret and validates it. Throws {@link SecretError}. */
export function parseSecret<T>(secretRef: string, text: string, shape: z.ZodType<T>): T {
  return checkSecret(secretRef, readJson(secretRef, text), shape);
}

/** A store of secret texts. Every method throws {@link SecretError}. */
export interface TextStore<P extends { readonly name: string }> {
  /** Returns the text; `undefined` if there is none. */
  load(place: P): Promise<string | undefined>;
  /** Stores a text and overwrites the previous one. */
  save(place: P, text: string): Promise<void>;
  /** Deletes a text permanently. No effect if there is none. */
  remove(place: P): Promise<void>;
}

/** Number of attempts to create a secret under a name that AWS has not released yet, and the waits (ms) between them. */
const AWS_ATTEMPTS = 6;
const AWS_BACKOFF: Backoff = { first: 250 };
const NOT_FOUND = 'ResourceNotFoundException';
/** The secret is marked for deletion. */
const INVALID = 'InvalidRequestException';
const EXISTS = 'ResourceExistsException';

/** Options for creating secrets on AWS. */
export interface AwsTextsOptions {
  /** Key that encrypts new secrets. Default: a key of AWS. */
  readonly keyArn?: string | undefined;
  readonly sleep?: (ms: number) => Promise<unknown>;
}

/** Creates a store of texts in Secrets Manager, by name. */
export function createAwsTexts(
  client: SecretsManagerClient,
  options: AwsTextsOptions,
): TextStore<{ readonly name: string }> {
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
    async load({ name: SecretId }) {
      const answer = await attempt(
        SecretId,
        () => client.send(new GetSecretValueCommand({ SecretId })),
        'read',
        [NOT_FOUND, INVALID],
      );
      if (typeof answer === 'string') return undefined;
      if (!answer.SecretString) throw new SecretError(SecretId, 'has no text value.');
      return answer.SecretString;
    },

    /** Creates or restores the secret if necessary. */
    async save({ name: SecretId }, SecretString) {
      for (let tries = 0; tries < AWS_ATTEMPTS; tries += 1) {
        if (tries > 0) await sleep(backoff(tries - 1, AWS_BACKOFF));
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
      throw new SecretError(SecretId, 'could not be saved: AWS has not released its name yet.');
    },

    async remove({ name: SecretId }) {
      await attempt(
        SecretId,
        () => client.send(new DeleteSecretCommand({ SecretId, ForceDeleteWithoutRecovery: true })),
        'deleted',
        [NOT_FOUND],
      );
    },
  };
}

const CHECK = 'jobwire';
const CIPHER = 'aes-256-gcm';
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/** The place of a text in the table. */
interface SealedPlace {
  readonly key: Key;
  /** What the encryption binds the text to. */
  readonly binding: string;
  /** The name in error messages. */
  readonly name: string;
}

/**
 * Opens a store of texts in the state table, encrypted with an external key (32 bytes): AES-256-GCM, bound to
 * their place, so that no text can be substituted for another. Throws {@link SecretError} at once if the key
 * differs from the one used before.
 */
export async function openSealedTexts(table: Table, key: Uint8Array): Promise<TextStore<SealedPlace>> {
  const known = await table.write({
    put: { ...keys.secretKeyCheck(), sealed: seal(key, CHECK, CHECK) },
    when: [['pk', 'absent']],
  });
  const check = known.item?.sealed;
  if (!(check instanceof Uint8Array) || unseal(key, CHECK, check) !== CHECK) {
    throw new SecretError(
      'key',
      'differs from the key that encrypted the secrets of endpoints and accounts: restore the former key.',
    );
  }
  return {
    async load({ key: itemKey, binding, name }) {
      const item = await table.get(itemKey);
      if (!item) return undefined;
      const text = item.sealed instanceof Uint8Array ? unseal(key, binding, item.sealed) : undefined;
      if (text === undefined) throw new SecretError(name, 'cannot be decrypted.');
      return text;
    },
    async save({ key: itemKey, binding }, text) {
      await table.write({ put: { ...itemKey, sealed: seal(key, binding, text) } });
    },
    async remove({ key: itemKey }) {
      await table.write({ delete: itemKey });
    },
  };
}

/** Encrypts a text. Returns nonce, tag and ciphertext. */
function seal(key: Uint8Array, binding: string, text: string): Uint8Array {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv(CIPHER, key, nonce).setAAD(Buffer.from(binding));
  const sealed = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()]);
  return new Uint8Array(Buffer.concat([nonce, cipher.getAuthTag(), sealed]));
}

/** Decrypts a text. `undefined` if it was not encrypted with this key for this binding. */
function unseal(key: Uint8Array, binding: string, bytes: Uint8Array): string | undefined {
  if (bytes.length < NONCE_BYTES + TAG_BYTES) return undefined;
  const nonce = bytes.subarray(0, NONCE_BYTES);
  const decipher = createDecipheriv(CIPHER, key, nonce, { authTagLength: TAG_BYTES });
  decipher.setAAD(Buffer.from(binding)).setAuthTag(bytes.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES));
  try {
    return (
      decipher.update(bytes.subarray(NONCE_BYTES + TAG_BYTES), undefined, 'utf8') + decipher.final('utf8')
    );
  } catch {
    return undefined;
  }
}
