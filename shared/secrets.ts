/** Secrets as AWS Secrets Manager keeps them: whose names are whose, and a small reader that remembers for a while. */
import { GetSecretValueCommand, type SecretsManagerClient } from '@aws-sdk/client-secrets-manager';
import * as z from 'zod';
import type { Credentials } from './tracking/connect.ts';

/** Names of the secrets of one cell. IAM lets each function read only those below the name it needs. */
export function secretNames(stage: string, region: string) {
  const cell = `jobwire/${stage}/${region}`;
  return {
    /** What the credentials of accounts begin with; an account's `secretRef` names one of them. */
    accounts: `${cell}/accounts/`,
    /** What the signing secrets of endpoints begin with. */
    endpoints: `${cell}/endpoints/`,
    /** The signing secrets of one endpoint, and what else of it is secret: {@link EndpointSecrets} as JSON. */
    endpoint: (sink: string) => `${cell}/endpoints/${sink}`,
  } as const;
}

/** What a secret's name may hold, as Secrets Manager has it. */
const SECRET_NAME = /^[A-Za-z0-9/_+=.@-]{1,512}$/;

/**
 * Why an account's `secretRef` can't be one of the cell's: the rest of a sentence that begins with the field's name. A
 * secret elsewhere could not be read, and that would show in the first poll only.
 */
export function refuseAccountSecret(stage: string, region: string, secretRef: string): string | undefined {
  const { accounts } = secretNames(stage, region);
  const at = secretRef.indexOf('#');
  const name = at < 0 ? secretRef : secretRef.slice(0, at);
  const isBelow = name.startsWith(accounts) && name.length > accounts.length && SECRET_NAME.test(name);
  if (isBelow && at !== secretRef.length - 1) return undefined;
  return `must be the name of a secret that begins with ${accounts}, or that, # and a key of the JSON in it`;
}

const signingSecret = z.string().startsWith('whsec_');

/** What is kept of an endpoint that nobody is shown. */
export const EndpointSecrets = z.object({
  /** They sign until they are replaced, the current one first; usually there is one. */
  secrets: z.array(signingSecret).min(1).max(4),
  /** Former ones, the latest first: each signs along until an instant (epoch ms). */
  retiring: z.array(z.object({ secret: signingSecret, until: z.number() })).optional(),
  /** Headers that each request carries besides our own: their values may be credentials. */
  headers: z.record(z.string(), z.string()).optional(),
  /**
   * Headers of requests to the former URL, if a change replaced URL and headers together: a drain that still sends to the
   * former URL must not send the new credentials there.
   */
  former: z.object({ url: z.string(), headers: z.record(z.string(), z.string()) }).optional(),
  /** The endpoint they belong to, as in its record: an id can be used again. Absent in those saved by earlier versions. */
  creation: z.string().optional(),
});
export type EndpointSecrets = z.infer<typeof EndpointSecrets>;

/** The secrets that sign at an instant (epoch ms), the current one first. */
export function signingAt(kept: EndpointSecrets, now: number): readonly string[] {
  const former = (kept.retiring ?? []).filter(({ until }) => now < until);
  return [...kept.secrets, ...former.map(({ secret }) => secret)];
}

/** A secret could not be had. Neither the message nor the cause holds any of it. */
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
   * The credentials behind an account's `secretRef`: a secret's name or ARN, holding `{"clientId", "clientSecret"}`; or
   * that and `#key`, for one secret that holds the credentials of many accounts by key (a secret costs by the month).
   * The version is the whole secret's, and with a key that as well: a change of one account's credentials renews the
   * tokens of all in it, and an account that is given another key keeps none of its old ones.
   */
  readSecret(secretRef: string): Promise<Credentials>;
  /** Forgets what is remembered of the secret behind a reference: it is read anew when it is asked for next. */
  forget(secretRef: string): void;
}

interface Options {
  /** Epoch ms. */
  readonly now: () => number;
  /** How long a value is used without asking again: a changed secret is picked up this late at most. */
  readonly maxAgeMs: number;
}

interface SecretValue {
  readonly text: string;
  readonly version: string;
}

const AccountSecret = z.object({ clientId: z.string().min(1), clientSecret: z.string().min(1) });

/** Makes a reader. Calls for the same secret at the same time share one request; failures are not remembered. */
export function createSecretReader(client: SecretsManagerClient, options: Options): SecretReader {
  const { now, maxAgeMs } = options;
  const read = remembering((secretId: string) => request(client, secretId), now, maxAgeMs);

  return {
    async readSecret(secretRef) {
      const { secretId, key } = partsOf(secretRef);
      const { text, version } = await read(secretId);
      const whole = readJson(secretRef, text);
      const part = key === undefined ? whole : ownValue(whole, key);
      const credentials = check(secretRef, part, AccountSecret);
      return { ...credentials, version: key === undefined ? version : `${version}#${key}` };
    },

    forget(secretRef) {
      read.forget(partsOf(secretRef).secretId);
    },
  };
}

function partsOf(secretRef: string): { readonly secretId: string; readonly key: string | undefined } {
  const at = secretRef.indexOf('#');
  return at < 0
    ? { secretId: secretRef, key: undefined }
    : { secretId: secretRef.slice(0, at), key: secretRef.slice(at + 1) };
}

/** Reads the text of {@link EndpointSecrets}. Throws {@link SecretError}. */
export function parseEndpointSecrets(secretRef: string, text: string): EndpointSecrets {
  return check(secretRef, readJson(secretRef, text), EndpointSecrets);
}

/** Reads the text of an account's credentials. Throws {@link SecretError}. */
export function parseCredentials(secretRef: string, text: string): z.infer<typeof AccountSecret> {
  return check(secretRef, readJson(secretRef, text), AccountSecret);
}

/** The same reading, with its answers used again for a while. Those who ask at once share one; failures are not kept. */
export function remembering<T>(
  read: (name: string) => Promise<T>,
  now: () => number,
  maxAgeMs: number,
): ((name: string) => Promise<T>) & { forget(name: string): void } {
  const held = new Map<string, { readonly readAt: number; readonly value: Promise<T> }>();
  const reading = (name: string): Promise<T> => {
    const known = held.get(name);
    const ageMs = known ? now() - known.readAt : 0;
    // A clock that was set back does not keep a value for longer.
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

/** The parser's own error is left out: it quotes the text. */
function readJson(secretRef: string, text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    throw new SecretError(secretRef, 'is not JSON.');
  }
}

function ownValue(value: unknown, key: string): unknown {
  if (typeof value !== 'object' || value === null || !Object.hasOwn(value, key)) return undefined;
  return (value as Record<string, unknown>)[key];
}

function check<T>(secretRef: string, value: unknown, shape: z.ZodType<T>): T {
  const result = shape.safeParse(value);
  if (result.success) return result.data;
  // Only where it is wrong: what is there may be the secret.
  const where = result.error.issues[0]?.path.join('.') || 'its content';
  throw new SecretError(secretRef, `is not as it should be: ${where} is missing or not valid.`);
}
