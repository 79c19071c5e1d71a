/**
 * Storage of the secrets entrusted to Jobwire: texts in the state table, encrypted. Their owners define the
 * content: secrets of endpoints (`delivery/signing-secrets.ts`) and credentials of accounts
 * (`accounts/credentials.ts`). The keys have two sources: an external key when self-hosted
 * ({@link openSealedTexts}), data keys encrypted by KMS on AWS (`functions/secrets.ts`).
 */
import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto';
import type * as z from 'zod';
import { keys } from './storage/schema.ts';
import type { Key, Table } from './storage/table.ts';

/** Prefix of the names of the secrets in Secrets Manager that a `secretRef` of a cell's accounts may name. */
export function secretPrefix(stage: string, cell: string): string {
  return `jobwire/${stage}/${cell}/accounts/`;
}

/** Encryption context of the data keys of a cell: KMS decrypts them only with it, and records it. */
export function secretsContext(stage: string, cell: string) {
  return { [SECRETS_CONTEXT]: `${stage}/${cell}` };
}
/** Name of the encryption context. IAM policies contain it. */
export const SECRETS_CONTEXT = 'jobwire:secrets';

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

const CHECK = 'jobwire';
const CIPHER = 'aes-256-gcm';
const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/** The place of a text in the table. */
export interface SealedPlace {
  readonly key: Key;
  /** Context to which the encryption binds the text. */
  readonly binding: string;
  /** The name in error messages. */
  readonly name: string;
}

/** A store of encrypted texts. Every method throws {@link SecretError}. */
export interface SealedTexts {
  /** Returns the text; `undefined` if there is none. */
  load(place: SealedPlace): Promise<string | undefined>;
  /** Stores a text and overwrites the previous one. */
  save(place: SealedPlace, text: string): Promise<void>;
  /** Deletes a text permanently. No effect if there is none. */
  remove(place: SealedPlace): Promise<void>;
}

/** Source of the keys (32 bytes) that encrypt texts. Every method throws {@link SecretError}. */
export interface KeySource {
  /** Returns the key for new texts. Its version is stored with them; a single external key has none. */
  newest(): Promise<{ readonly version?: string; readonly key: Uint8Array }>;
  /** Returns the key of a version; `undefined` if there is no such key. */
  find(version: string | undefined): Promise<Uint8Array | undefined>;
}

/**
 * Creates a store of texts in the state table: AES-256-GCM, bound to their place, so that no text can be
 * substituted for another.
 */
export function createSealedTexts(table: Table, source: KeySource): SealedTexts {
  return {
    async load({ key: itemKey, binding, name }) {
      const item = await table.get(itemKey);
      if (!item) return undefined;
      const version = typeof item.keyVersion === 'string' ? item.keyVersion : undefined;
      const key = await source.find(version);
      if (!key) {
        throw new SecretError(name, `cannot be decrypted: the data key of version ${version} is missing.`);
      }
      const text = item.sealed instanceof Uint8Array ? unseal(key, binding, item.sealed) : undefined;
      if (text === undefined) throw new SecretError(name, 'cannot be decrypted.');
      return text;
    },
    async save({ key: itemKey, binding }, text) {
      const { version, key } = await source.newest();
      const sealed = seal(key, binding, text);
      await table.write({
        put: { ...itemKey, sealed, ...(version === undefined ? {} : { keyVersion: version }) },
      });
    },
    async remove({ key: itemKey }) {
      await table.write({ delete: itemKey });
    },
  };
}

/**
 * Opens a store of texts that are encrypted with one external key (32 bytes). Throws {@link SecretError} at
 * once if the key differs from the one used before.
 */
export async function openSealedTexts(table: Table, key: Uint8Array): Promise<SealedTexts> {
  const place = keys.secretKeyCheck();
  const create = async () => {
    const put = { ...place, sealed: seal(key, CHECK, CHECK) };
    return (await table.write({ put, when: [['pk', 'absent']] })).item;
  };
  // Read first: a start waits for as few writes as possible.
  const known = (await table.get(place)) ?? (await create());
  const check = known?.sealed;
  if (!(check instanceof Uint8Array) || unseal(key, CHECK, check) !== CHECK) {
    throw new SecretError(
      'key',
      'differs from the key that encrypted the secrets of endpoints and accounts: restore the former key.',
    );
  }
  return createSealedTexts(table, {
    newest: async () => ({ key }),
    find: async (version) => (version === undefined ? key : undefined),
  });
}

/** Encrypts a text. Returns nonce, tag and ciphertext. */
export function seal(key: Uint8Array, binding: string, text: string): Uint8Array {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv(CIPHER, key, nonce).setAAD(Buffer.from(binding));
  const sealed = Buffer.concat([cipher.update(text, 'utf8'), cipher.final()]);
  return new Uint8Array(Buffer.concat([nonce, cipher.getAuthTag(), sealed]));
}

/** Decrypts a text. `undefined` if it was not encrypted with this key for this binding. */
export function unseal(key: Uint8Array, binding: string, bytes: Uint8Array): string | undefined {
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
