/** The part of KMS that cells use: keys in memory, and ciphertexts bound to their key and encryption context. */
import { createCipheriv, createDecipheriv, hash, randomBytes } from 'node:crypto';
import type { KMSClient } from '@aws-sdk/client-kms';
import { createDataKeys } from '../../functions/secrets.ts';
import { createSealedTexts, type SealedTexts } from '../../shared/secrets.ts';
import type { Table } from '../../shared/storage/table.ts';

/** The input of a call, with binary values in the format of the SDK. */
export interface KmsInput {
  readonly KeyId?: string | undefined;
  readonly EncryptionContext?: Readonly<Record<string, string>> | undefined;
  readonly CiphertextBlob?: Uint8Array | undefined;
}

export interface KmsOutput {
  readonly CiphertextBlob?: Uint8Array;
  readonly Plaintext?: Uint8Array;
}

/** Part of a ciphertext that identifies its key. */
const KEY_BYTES = 8;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const CIPHER = 'aes-256-gcm';

/** Creates a KMS. */
export class FakeKms {
  /** Names of the operations called. */
  readonly calls: string[] = [];
  /** Name of the error that every call fails with. */
  fault: string | undefined;
  readonly #seed = randomBytes(32);

  /** As the client of the SDK. */
  readonly send = async (command: { readonly input: object }): Promise<KmsOutput> =>
    this.answer(command.constructor.name.replace(/Command$/, ''), command.input);

  answer(operation: string, { KeyId = '', EncryptionContext = {}, CiphertextBlob }: KmsInput): KmsOutput {
    this.calls.push(operation);
    if (this.fault) throw createError(this.fault);
    const key = hash('sha256', Buffer.concat([this.#seed, Buffer.from(KeyId)]), 'buffer');
    const context = Buffer.from(JSON.stringify(Object.entries(EncryptionContext).sort()));
    if (operation === 'GenerateDataKeyWithoutPlaintext') {
      const nonce = randomBytes(NONCE_BYTES);
      const cipher = createCipheriv(CIPHER, key, nonce).setAAD(context);
      const encrypted = Buffer.concat([cipher.update(randomBytes(32)), cipher.final()]);
      const parts = [key.subarray(0, KEY_BYTES), nonce, cipher.getAuthTag(), encrypted];
      return { CiphertextBlob: Uint8Array.from(Buffer.concat(parts)) };
    }
    if (operation !== 'Decrypt' || !CiphertextBlob) throw new Error(`${operation} is not known here.`);
    const sealed = CiphertextBlob.subarray(KEY_BYTES);
    if (!key.subarray(0, KEY_BYTES).equals(CiphertextBlob.subarray(0, KEY_BYTES)))
      throw createError('IncorrectKeyException');
    const [nonce, rest] = [sealed.subarray(0, NONCE_BYTES), sealed.subarray(NONCE_BYTES)];
    const decipher = createDecipheriv(CIPHER, key, nonce, { authTagLength: TAG_BYTES });
    decipher.setAAD(context).setAuthTag(rest.subarray(0, TAG_BYTES));
    try {
      return {
        Plaintext: Uint8Array.from(
          Buffer.concat([decipher.update(rest.subarray(TAG_BYTES)), decipher.final()]),
        ),
      };
    } catch {
      throw createError('InvalidCiphertextException');
    }
  }

  /** As its HTTP API: operation and JSON. */
  answerJson(operation: string, body: Readonly<Record<string, unknown>>): Record<string, unknown> {
    const blob = body.CiphertextBlob;
    const answer = this.answer(operation, {
      ...(body as KmsInput),
      CiphertextBlob: typeof blob === 'string' ? Buffer.from(blob, 'base64') : undefined,
    });
    const values = Object.entries(answer).map(([name, value]) => [
      name,
      Buffer.from(value).toString('base64'),
    ]);
    return { KeyId: body.KeyId, ...Object.fromEntries(values) };
  }
}

/** ARN of the KMS key of a cell. */
export const KMS_KEY = 'arn:aws:kms:us-east-1:111122223333:key/0e6e5f0a-5d1c-4a53-9a40-3f1f6f0f2b6d';

/** Opens the secrets in a table as a process of a cell on AWS does. */
export function sealWithKms(
  table: Table,
  kms: FakeKms,
  { stage = 'test', keyArn = KMS_KEY, now = Date.now } = {},
): SealedTexts {
  const client = kms as unknown as Pick<KMSClient, 'send'>;
  return createSealedTexts(
    table,
    createDataKeys(table, client, { stage, cell: 'us', region: 'us', keyArn, now }),
  );
}

function createError(name: string): Error {
  return Object.assign(new Error(name), { name });
}
