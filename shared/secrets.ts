/** Secrets in AWS Secrets Manager: their names, and a reader with a cache. */
import { GetSecretValueCommand, type SecretsManagerClient } from '@aws-sdk/client-secrets-manager';
import * as z from 'zod';
import type { Credentials } from './accounts/connect.ts';

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
    /** The secrets of one endpoint: {@link EndpointSecrets} as JSON. */
    endpoint: (sink: string) => `${cell}/endpoints/${sink}`,
  } as const;
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

const signingSecret = z.string().startsWith('whsec_');

/** The confidential data of an endpoint, which no response contains. */
export const EndpointSecrets = z.object({
  /** Signing secrets until they are replaced, the current one first; usually there is one. */
  secrets: z.array(signingSecret).min(1).max(4),
  /** Former secrets, the latest first: each also signs until its expiry (epoch ms). */
  retiring: z.array(z.object({ secret: signingSecret, until: z.number() })).optional(),
  /** Custom headers of each request: their values may be credentials. */
  headers: z.record(z.string(), z.string()).optional(),
  /**
   * Headers of requests to the former URL, if a change replaced URL and headers together: a drain that still sends to the
   * former URL must not send the new credentials there.
   */
  former: z.object({ url: z.string(), headers: z.record(z.string(), z.string()) }).optional(),
  /**
   * Creation id of their endpoint, as in its record: an id can be reused. Absent in those saved by earlier
   * versions.
   */
  creation: z.string().optional(),
});
export type EndpointSecrets = z.infer<typeof EndpointSecrets>;

/** Returns the secrets that sign at a time (epoch ms), the current one first. */
export function listActiveSecrets(kept: EndpointSecrets, now: number): readonly string[] {
  const former = (kept.retiring ?? []).filter(({ until }) => now < until);
  return [...kept.secrets, ...former.map(({ secret }) => secret)];
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
      const credentials = check(secretRef, part, AccountSecret);
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

/** Parses {@link EndpointSecrets}. Throws {@link SecretError}. */
export function parseEndpointSecrets(secretRef: string, text: string): EndpointSecrets {
  return check(secretRef, readJson(secretRef, text), EndpointSecrets);
}

/** Parses an account's credentials. Throws {@link SecretError}. */
export function parseCredentials(secretRef: string, text: string): z.infer<typeof AccountSecret> {
  return check(secretRef, readJson(secretRef, text), AccountSecret);
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

async function request(client: SecretsManagerClient, secretId: string): Promise<SecretValue> {
  let answer: { SecretString?: string | undefined; VersionId?: string | undefined };
  try {
    answer = await client.send(new GetSecretValueCommand({ SecretId: secretId }));
  } catch (cause) {
    const kind = cause instanceof Error ? cause.name : 'an unknown error';
    throw new SecretError(secretId, `could not be read (${kind}).`, cause);
  }
  if (!answer.SecretString) throw new SecretError(secretId, 'holds no text.');
  return { text: answer.SecretString, version: answer.VersionId ?? '' };
}

/** Parses JSON. The parser's own error is omitted: it quotes the text. */
function readJson(secretRef: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new SecretError(secretRef, 'is not JSON.');
  }
}

function getOwnValue(value: unknown, key: string): unknown {
  if (typeof value !== 'object' || value === null || !Object.hasOwn(value, key)) return undefined;
  return (value as Record<string, unknown>)[key];
}

function check<T>(secretRef: string, value: unknown, shape: z.ZodType<T>): T {
  const result = shape.safeParse(value);
  if (result.success) return result.data;
  // Only the path of the error: the value may be the secret.
  const where = result.error.issues[0]?.path.join('.') || 'its content';
  throw new SecretError(secretRef, `is not as it should be: ${where} is missing or not valid.`);
}
