/**
 * What nobody is shown of an endpoint: the secrets that sign its requests, and the values of its own headers. They are kept
 * together, apart from its record: in Secrets Manager on AWS, encrypted in the state table elsewhere.
 *
 *   rotate   ├── old signs ──┼── new and old sign, 24 h ──┼── new signs ──▶
 *
 * Judged by the time of reading, so nothing has to happen when a secret's time is up.
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
import {
  type EndpointSecrets,
  parseEndpointSecrets,
  remembering,
  SecretError,
  secretNames,
  signingAt,
} from '../secrets.ts';
import { keys } from '../table/schema.ts';
import type { Table } from '../table/table.ts';

/** Where secrets of endpoints are kept. Every method throws {@link SecretError}. */
export interface SigningSecrets {
  /** As they were saved last; `undefined` when there are none. */
  load(region: string, endpoint: string): Promise<EndpointSecrets | undefined>;
  /** Stores them whole, over those of before. */
  save(region: string, endpoint: string, kept: EndpointSecrets): Promise<void>;
  /** Removes them for good; nothing happens when there are none. */
  remove(region: string, endpoint: string): Promise<void>;
}

/** A former secret signs along for so long, unless somebody says otherwise. */
export const KEEP_OLD_SECONDS = 86_400;
/** Former secrets that sign along at the same time: each is one more signature in every request. */
export const MAX_RETIRING = 3;
const NEW_SECRET_BYTES = 32;

/** A new signing secret. */
export function newSigningSecret(): string {
  return `whsec_${randomBytes(NEW_SECRET_BYTES).toString('base64')}`;
}

/**
 * Puts a new secret first; those of before sign along until `until` (epoch ms), or shorter if their time is up before.
 * `undefined` when too many would sign along.
 */
export function rotated(
  kept: EndpointSecrets,
  secret: string,
  until: number,
  now: number,
): EndpointSecrets | undefined {
  const former = [
    ...kept.secrets.map((old) => ({ secret: old, until })),
    ...(kept.retiring ?? []).map((old) => ({ ...old, until: Math.min(old.until, until) })),
  ];
  const retiring = former.filter((old) => old.until > now && old.secret !== secret);
  if (retiring.length > MAX_RETIRING) return undefined;
  return { ...kept, secrets: [secret], retiring };
}

/** Reads what signs and what is sent along now; what was read is used for a minute at most. Throws {@link SecretError}. */
export function createSigningReader(
  store: Pick<SigningSecrets, 'load'>,
  now: () => number,
  maxAgeMs = 60_000,
): (
  region: string,
  endpoint: string,
) => Promise<{ readonly secrets: readonly string[]; readonly headers: Readonly<Record<string, string>> }> {
  const load = remembering(
    async (name) => {
      const [region = '', endpoint = ''] = name.split('/');
      const kept = await store.load(region, endpoint);
      if (!kept) throw new SecretError(endpoint, 'is missing.');
      return kept;
    },
    now,
    maxAgeMs,
  );
  return async (region, endpoint) => {
    const kept = await load(`${region}/${endpoint}`);
    return { secrets: signingAt(kept, now()), headers: kept.headers ?? {} };
  };
}

/** Attempts to make a secret under a name that AWS has not yet let go of, and the first wait between them. */
const AWS_ATTEMPTS = 6;
const AWS_WAIT_MS = 250;

/** Keeps them in Secrets Manager, one secret per endpoint. */
export function createAwsSigningSecrets(
  client: SecretsManagerClient,
  options: {
    readonly stage: string;
    /** What new ones are encrypted with; absent: a key of AWS. */
    readonly keyArn?: string | undefined;
    readonly sleep?: (ms: number) => Promise<unknown>;
  },
): SigningSecrets {
  const { stage, keyArn, sleep = sleepMs } = options;
  const nameOf = (region: string, endpoint: string) => secretNames(stage, region).endpoint(endpoint);

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
    async load(region, endpoint) {
      const SecretId = nameOf(region, endpoint);
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
      return parseEndpointSecrets(SecretId, answer.SecretString);
    },

    async save(region, endpoint, kept) {
      const SecretId = nameOf(region, endpoint);
      const SecretString = JSON.stringify(kept);
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

    async remove(region, endpoint) {
      const SecretId = nameOf(region, endpoint);
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

/**
 * Keeps them in the state table, encrypted with a key (32 bytes) that stands elsewhere: AES-256-GCM, bound to region and
 * endpoint, so that one endpoint's can't be passed off as another's. Throws {@link SecretError} at once when the key is
 * not the one that was used before.
 */
export async function openLocalSigningSecrets(table: Table, key: Uint8Array): Promise<SigningSecrets> {
  const known = await table.write({
    put: { ...keys.secretKeyCheck(), sealed: seal(key, CHECK, CHECK) },
    when: [['pk', 'absent']],
  });
  const check = known.item?.sealed;
  if (!(check instanceof Uint8Array) || unseal(key, CHECK, check) !== CHECK) {
    throw new SecretError(
      'key',
      'is not the one that the secrets of endpoints were encrypted with: put the former one back.',
    );
  }
  const placeOf = (region: string, endpoint: string) => `${region}/${endpoint}`;
  return {
    async load(region, endpoint) {
      const item = await table.get(keys.endpointSecrets(region, endpoint));
      if (!item) return undefined;
      const text =
        item.sealed instanceof Uint8Array ? unseal(key, placeOf(region, endpoint), item.sealed) : undefined;
      if (text === undefined) throw new SecretError(endpoint, "can't be decrypted.");
      return parseEndpointSecrets(endpoint, text);
    },
    async save(region, endpoint, kept) {
      const sealed = seal(key, placeOf(region, endpoint), JSON.stringify(kept));
      await table.write({ put: { ...keys.endpointSecrets(region, endpoint), sealed } });
    },
    async remove(region, endpoint) {
      await table.write({ delete: keys.endpointSecrets(region, endpoint) });
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
