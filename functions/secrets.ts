/**
 * The secrets of a cell on AWS: encrypted in the state table by data keys. KMS generates the data keys, and
 * the table contains them encrypted by the cell's KMS key. The encryption context names the cell, and IAM
 * requires it.
 *
 *   KMS key ── encrypts ──▶ data key, a new version each year ── encrypts ──▶ credentials, signing secrets
 */
import { DecryptCommand, GenerateDataKeyWithoutPlaintextCommand, KMSClient } from '@aws-sdk/client-kms';
import {
  cacheReads,
  createSealedTexts,
  type KeySource,
  type SealedTexts,
  SecretError,
  secretsContext,
} from '../shared/secrets.ts';
import { dataKeyPk, keys } from '../shared/storage/schema.ts';
import type { Table } from '../shared/storage/table.ts';
import { REQUEST_TIMEOUTS } from './clients.ts';
import type { Env } from './env.ts';

/**
 * Time (ms) for which a process keeps a decrypted data key: every call of KMS is charged. If the permission
 * to use the KMS key is withdrawn, running processes can read secrets for at most this time.
 */
export const DATA_KEY_CACHE_MS = 3_600_000;
/** Age (ms) from which a data key encrypts no more new secrets. It still decrypts older ones. */
export const DATA_KEY_ROTATION_MS = 365 * 86_400_000;

interface Options {
  readonly stage: string;
  /** Name of the cell in its stage. */
  readonly cell: string;
  readonly region: string;
  /** ARN of the cell's KMS key. */
  readonly keyArn: string;
  readonly now: () => number;
}

/** Opens the store of the secrets in a cell's table. */
export function openCellSecrets(
  env: Pick<Env, 'JOBWIRE_STAGE' | 'JOBWIRE_CELL' | 'JOBWIRE_REGION' | 'JOBWIRE_KEY_ARN'>,
  table: Table,
): SealedTexts {
  const { JOBWIRE_STAGE: stage, JOBWIRE_CELL: cell, JOBWIRE_REGION: region, JOBWIRE_KEY_ARN: keyArn } = env;
  const kms = new KMSClient({ requestHandler: REQUEST_TIMEOUTS });
  return createSealedTexts(table, createDataKeys(table, kms, { stage, cell, region, keyArn, now: Date.now }));
}

/** Creates the source of a cell's data keys. */
export function createDataKeys(
  table: Table,
  kms: Pick<KMSClient, 'send'>,
  { stage, cell, region, keyArn, now }: Options,
): KeySource {
  const common = { KeyId: keyArn, EncryptionContext: secretsContext(stage, cell) };
  const decrypt = cacheReads(
    async (version) => {
      const item = await table.get({ pk: dataKeyPk(region), sk: version });
      if (!(item?.encrypted instanceof Uint8Array)) return undefined;
      const command = new DecryptCommand({ ...common, CiphertextBlob: item.encrypted });
      const { Plaintext } = await attempt(`of version ${version} cannot be decrypted`, () =>
        kms.send(command),
      );
      return Plaintext;
    },
    now,
    DATA_KEY_CACHE_MS,
  );

  async function find(version: string | undefined): Promise<Uint8Array | undefined> {
    if (version === undefined) return undefined;
    const key = await decrypt(version);
    // It may be restored.
    if (!key) decrypt.forget(version);
    return key;
  }

  /** Returns whether another KMS key encrypted a data key: the table was restored where that key does not exist. */
  async function isOfAnotherKey(version: string): Promise<boolean> {
    try {
      await find(version);
      return false;
    } catch (error) {
      if (((error as Error).cause as Error | undefined)?.name === 'IncorrectKeyException') return true;
      throw error;
    }
  }

  /** Creates a data key, unless another process was faster. */
  async function create(version: number): Promise<string> {
    const key = keys.dataKey(region, version);
    const command = new GenerateDataKeyWithoutPlaintextCommand({ ...common, KeySpec: 'AES_256' });
    const { CiphertextBlob: encrypted } = await attempt('cannot be generated', () => kms.send(command));
    await table.write({ put: { ...key, encrypted, createdAt: now() }, when: [['pk', 'absent']] });
    return key.sk;
  }

  return {
    find,
    async newest() {
      const [last] = await table.query({ pk: dataKeyPk(region), descending: true, limit: 1 });
      const isRecent = now() - Number(last?.createdAt) < DATA_KEY_ROTATION_MS;
      const isUsable = last && isRecent && !(await isOfAnotherKey(last.sk));
      const version = isUsable ? last.sk : await create(Number(last?.sk ?? 0) + 1);
      const key = await find(version);
      if (!key) throw new SecretError('key', `of version ${version} is missing.`);
      return { version, key };
    },
  };
}

/** Calls KMS. `failure`: what failed, as the predicate of the error message. */
async function attempt<T>(failure: string, call: () => Promise<T>): Promise<T> {
  try {
    return await call();
  } catch (cause) {
    const name = cause instanceof Error ? cause.name : 'an unknown error';
    throw new SecretError('key', `${failure} by KMS (${name}).`, cause);
  }
}
