/** The data folder of a self-hosted Jobwire: locked against a second start, closed to other users. */
import { randomBytes } from 'node:crypto';
import {
  accessSync,
  chmodSync,
  closeSync,
  constants,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import * as z from 'zod';
import { explainError, findCode } from '../shared/error-codes.ts';
import { findOtherOwner } from './owner.ts';
import { StartError } from './start-error.ts';

/** A pair of AWS credentials. */
export interface AwsCredentials {
  readonly accessKeyId: string;
  readonly secretAccessKey: string;
}

/** Generates random credentials. */
export function newAwsCredentials(): AwsCredentials {
  return {
    accessKeyId: `AKIA${randomBytes(8).toString('hex').toUpperCase()}`,
    secretAccessKey: randomBytes(30).toString('base64'),
  };
}

/** The folder is unusable. The message is the problem, followed by its fix. */
export class DataDirError extends StartError {
  override readonly name = 'DataDirError';
  readonly problem: string;
  readonly fix: string | undefined;

  constructor(problem: string, fix?: string, options?: ErrorOptions) {
    super(fix === undefined ? problem : `${problem} ${fix}`, options);
    this.problem = problem;
    this.fix = fix;
  }
}

/** A folder that this process holds until `release`, or until it ends in any way. */
export interface DataDir {
  readonly path: string;
  /** Folder of the embedded SNS/SQS. */
  readonly queuesPath: string;
  /** File of a generated API key. */
  readonly apiKeyPath: string;
  /** File of the credentials of the embedded SNS/SQS, in the format of AWS tools. */
  readonly awsCredentialsPath: string;
  /** File of the key that encrypts secrets, unless another one is given. */
  readonly secretKeyPath: string;
  /** Returns the stored API key. The first call creates it. */
  apiKey(): string;
  /** Returns the stored credentials of the embedded SNS/SQS. The first call creates them. */
  awsCredentials(): AwsCredentials;
  /**
   * Returns the key (32 bytes) that encrypts secrets of endpoints: the given one, in base64, or the stored one, which the first call
   * creates. Throws {@link DataDirError} for an invalid key.
   */
  secretKey(given?: string): Uint8Array;
  /**
   * Time (epoch ms) at which the folder was restored from a backup. `undefined`: never. Throws {@link DataDirError} if its file is
   * invalid.
   */
  restoredAt(): number | undefined;
  /** Releases the lock. Deletes a temporary folder. */
  release(): void;
}

/** File with the time of the last restore from a backup (ISO 8601, UTC). */
export const RESTORED_AT_FILE = 'restored-at';
/** Folder of a restore that is not complete. */
export const RESTORE_FOLDER = 'restore.unfinished';
/** File whose lock a process holds while it uses the folder. It was modified when that process started. */
export const LOCK_FILE = 'lock.db';

/** Returns whether a process holds the folder. */
export function isLocked(folder: string): boolean {
  const file = join(folder, LOCK_FILE);
  if (!existsSync(file)) return false;
  const lock = new DatabaseSync(file, { timeout: 0 });
  try {
    lock.exec('BEGIN EXCLUSIVE');
    return false;
  } catch (cause) {
    return findCode(cause) === 'SQLITE_BUSY';
  } finally {
    lock.close();
  }
}

/** Returns the time (epoch ms) at which the process that holds the folder started. */
export const readStartTime = (folder: string): number => statSync(join(folder, LOCK_FILE)).mtimeMs;

/** Creates a folder and those above it. Returns the first one that it created. */
function createFolder(path: string): string | undefined {
  try {
    return mkdirSync(path, { recursive: true, mode: 0o700 });
  } catch (cause) {
    // Node reports ENOENT for a read-only file system too.
    let above = dirname(path);
    while (!existsSync(above) && above !== dirname(above)) above = dirname(above);
    accessSync(above, constants.W_OK);
    throw cause;
  }
}

/**
 * Opens and locks the folder, and creates it if necessary. Without a folder, creates a temporary one.
 * The lock is the operating system's, on an SQLite file. It ends with the process, even after kill -9, so a restart never waits. The folder
 * contains keys and personal data, so other users are denied access (0700), even if they had it before. Throws {@link DataDirError}.
 */
export function openDataDir(folder?: string): DataDir {
  const path = folder === undefined ? mkdtempSync(join(tmpdir(), 'jobwire-demo-')) : resolve(folder);
  const lockFile = join(path, LOCK_FILE);
  /** Path of what this call has created last. */
  let created: string | undefined;
  let lock: DatabaseSync | undefined;
  try {
    created = createFolder(path);
    closeToOthers(path);
    accessSync(path, constants.R_OK | constants.W_OK | constants.X_OK);
    if (!existsSync(lockFile)) {
      created ??= lockFile;
      closeSync(openSync(lockFile, 'a', 0o600));
    }
    lock = new DatabaseSync(lockFile, { timeout: 0 });
    lock.exec('BEGIN EXCLUSIVE');
  } catch (cause) {
    lock?.close();
    if (cause instanceof DataDirError) throw cause;
    if (findCode(cause) === 'SQLITE_BUSY') {
      throw new DataDirError(
        `The data folder ${path} is in use by another Jobwire.`,
        'Stop it, or set another dataDir.',
        { cause },
      );
    }
    if (created !== undefined) rmSync(created, { recursive: true, force: true });
    throw new DataDirError(`The data folder ${folder} can’t be used: ${explainError(cause)}.`, undefined, {
      cause,
    });
  }
  const startedAt = new Date(performance.timeOrigin);
  try {
    utimesSync(lockFile, startedAt, startedAt);
  } catch {
    // Another user owns the file. Only a warning of `jobwire doctor` depends on the time.
  }
  if (existsSync(join(path, RESTORE_FOLDER))) {
    lock.close();
    throw new DataDirError(`A restore into the data folder ${path} was interrupted.`, 'Restore again.');
  }
  const apiKeyPath = join(path, 'api-key');
  const awsCredentialsPath = join(path, 'aws-credentials');
  const secretKeyPath = join(path, 'secret.key');
  return {
    ...{ path, apiKeyPath, awsCredentialsPath, secretKeyPath },
    queuesPath: join(path, 'queues'),
    apiKey: () => readOrCreateApiKey(apiKeyPath),
    awsCredentials: () => toAwsCredentials(readOrCreate(awsCredentialsPath, newAwsCredentialsFile)),
    secretKey: (given) =>
      given === undefined
        ? readOrCreateSecretKey(secretKeyPath)
        : toSecretKey(given, 'in JOBWIRE_SECRET_KEY'),
    restoredAt: () => readRestoredAt(join(path, RESTORED_AT_FILE)),
    release() {
      if (lock.isOpen) lock.close();
      if (folder === undefined) rmSync(path, { recursive: true, force: true });
    },
  };
}

/** Names of files that Jobwire stores in the folder. */
const JOBWIRE_FILES =
  /^((lock|tables|state)\.db(-wal|-shm|-journal)?|(api-key|aws-credentials|secret\.key)(\.new)?|queues|restored-at)$/;

/**
 * Denies other users access to the folder and to Jobwire's files in it. Links and files that they may have put there while it was open are
 * not trusted.
 */
function closeToOthers(path: string): void {
  if (process.platform === 'win32') return;
  const me = process.geteuid?.();
  const root = realpathSync(path);
  const owner = findOtherOwner(root);
  if (owner !== undefined) {
    throw new DataDirError(`The data folder ${path} belongs to ${owner}.`, 'Run this command as that user.');
  }
  const close = (entry: string): void => {
    const { mode, uid } = lstatSync(entry);
    const isLink = (mode & constants.S_IFMT) === constants.S_IFLNK;
    if (isLink || uid !== me) {
      throw new DataDirError(
        `${entry} ${isLink ? 'is a symbolic link' : 'belongs to another user'}, so Jobwire may not have created it.`,
        isLink
          ? 'Remove it, or set another dataDir.'
          : 'If you copied it there, change its owner to the user that runs Jobwire. Otherwise remove it, or set another dataDir.',
      );
    }
    const isFolder = (mode & constants.S_IFMT) === constants.S_IFDIR;
    if ((mode & 0o077) !== 0) chmodSync(entry, isFolder ? 0o700 : 0o600);
    if (!isFolder) return;
    const names = readdirSync(entry);
    for (const name of entry === root ? names.filter((one) => JOBWIRE_FILES.test(one)) : names) {
      close(join(entry, name));
    }
  };
  close(root);
}

function readRestoredAt(file: string): number | undefined {
  if (!existsSync(file)) return undefined;
  const time = z.iso.datetime().safeParse(readFileSync(file, 'utf8').trim());
  const at = time.success ? Date.parse(time.data) : Number.NaN;
  // A later time would make every new log unusable.
  if (at <= Date.now()) return at;
  throw new DataDirError(`${file} must contain the time of the restore, in the past (ISO 8601, UTC).`);
}

function readOrCreateApiKey(file: string): string {
  const key = readOrCreate(file, () => randomBytes(24).toString('base64url'));
  if (/^[\x21-\x7e]{16,}$/.test(key)) return key;
  throw new DataDirError(
    `${file} must contain at least 16 printable ASCII characters without spaces.`,
    RECREATE,
  );
}

const SECRET_KEY_BYTES = 32;

function readOrCreateSecretKey(file: string): Uint8Array {
  const text = readOrCreate(file, () => randomBytes(SECRET_KEY_BYTES).toString('base64'));
  return toSecretKey(text, `in ${file}`);
}

function toSecretKey(text: string, where: string): Uint8Array {
  const key = Buffer.from(text, 'base64');
  if (key.length !== SECRET_KEY_BYTES || key.toString('base64') !== text) {
    throw new DataDirError(`The secret key ${where} must be ${SECRET_KEY_BYTES} bytes in base64.`);
  }
  return key;
}

const RECREATE = 'Copy its former content into it, or remove it. Jobwire then creates a new one.';

/** Returns the text of a file that only this user can read. The first call creates it. */
function readOrCreate(file: string, create: () => string): string {
  if (!existsSync(file)) {
    // Renamed only when complete: data encrypted with half a key would be unreadable.
    const unfinished = `${file}.new`;
    rmSync(unfinished, { force: true });
    writeFileSync(unfinished, `${create()}\n`, { mode: 0o600, flush: true });
    renameSync(unfinished, file);
  }
  const text = readFileSync(file, 'utf8').trim();
  if (text !== '') return text;
  throw new DataDirError(`${file} is empty.`, RECREATE);
}

function newAwsCredentialsFile(): string {
  const { accessKeyId, secretAccessKey } = newAwsCredentials();
  return `[default]\naws_access_key_id = ${accessKeyId}\naws_secret_access_key = ${secretAccessKey}`;
}

function toAwsCredentials(text: string): AwsCredentials {
  const [, accessKeyId = ''] = /^aws_access_key_id *= *(\S+)$/m.exec(text) ?? [];
  const [, secretAccessKey = ''] = /^aws_secret_access_key *= *(\S+)$/m.exec(text) ?? [];
  return { accessKeyId, secretAccessKey };
}
