/** The folder that a self-hosted Jobwire keeps its data in: locked against a second start, closed to other users. */
import { randomBytes } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { DatabaseSync } from 'node:sqlite';

/** The folder can't be used; the message says why in one sentence. */
export class DataDirError extends Error {
  override readonly name = 'DataDirError';
}

/** A folder that is ours until `release`, or until the process ends, however it ends. */
export interface DataDir {
  readonly path: string;
  /** The database file of the embedded DynamoDB. */
  readonly dynamoPath: string;
  /** The folder of the embedded SNS/SQS. */
  readonly queuesPath: string;
  /** The API key kept here; made at the first call. */
  apiKey(): string;
  /**
   * The key (32 bytes) that the secrets of endpoints are encrypted with: the one given, in base64, or the one kept here, made
   * at the first call. Throws {@link DataDirError} when it is not such a key.
   */
  secretKey(given?: string): Uint8Array;
  release(): void;
}

/**
 * Opens the folder, making it if need be, and locks it. The lock is the operating system's, on an SQLite file: it is
 * gone with the process, also after kill -9, so a restart never has to wait. Throws {@link DataDirError}.
 */
export function openDataDir(folder: string): DataDir {
  const path = resolve(folder);
  let lock: DatabaseSync;
  try {
    mkdirSync(path, { recursive: true, mode: 0o700 });
    lock = new DatabaseSync(join(path, 'lock.db'), { timeout: 0 });
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new DataDirError(`The data folder ${path} can't be used: ${why}.`, { cause });
  }
  try {
    lock.exec('BEGIN EXCLUSIVE');
  } catch (cause) {
    lock.close();
    throw new DataDirError(
      `The data folder ${path} is in use by another Jobwire; stop that one, or set another dataDir.`,
      { cause },
    );
  }
  return {
    path,
    dynamoPath: join(path, 'state.db'),
    queuesPath: join(path, 'queues'),
    apiKey: () => keptKey(join(path, 'api-key')),
    secretKey: (given) =>
      given === undefined ? keptSecretKey(join(path, 'secret.key')) : toSecretKey(given, 'given'),
    release: () => lock.close(),
  };
}

const SECRET_KEY_BYTES = 32;

function keptSecretKey(file: string): Uint8Array {
  if (!existsSync(file)) {
    // Under its name only when it is whole: half a key would lock everybody out of what is encrypted with it.
    const unfinished = `${file}.new`;
    const key = `${randomBytes(SECRET_KEY_BYTES).toString('base64')}\n`;
    writeFileSync(unfinished, key, { mode: 0o600, flush: true });
    renameSync(unfinished, file);
  }
  return toSecretKey(readFileSync(file, 'utf8').trim(), `in ${file}`);
}

function toSecretKey(text: string, where: string): Uint8Array {
  const key = Buffer.from(text, 'base64');
  if (key.length !== SECRET_KEY_BYTES || key.toString('base64') !== text) {
    throw new DataDirError(`The secret key ${where} must be ${SECRET_KEY_BYTES} bytes in base64.`);
  }
  return key;
}

function keptKey(file: string): string {
  try {
    return readFileSync(file, 'utf8').trim();
  } catch {
    const key = randomBytes(24).toString('base64url');
    writeFileSync(file, `${key}\n`, { mode: 0o600 });
    return key;
  }
}
