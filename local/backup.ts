/**
 * Backups of the data folder: one tar.gz file with a copy of each database, the keys, and a manifest with the SHA-256 of each file.
 * A restored folder names the time of the restore, and the next start continues its logs in a new epoch
 * (docs/decisions/0017-log-epochs-after-restore.md).
 */
import { createHash } from 'node:crypto';
import {
  createReadStream,
  createWriteStream,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { Readable, Transform, type Writable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';
import { setTimeout as sleepMs } from 'node:timers/promises';
import { createGunzip, createGzip } from 'node:zlib';
import * as z from 'zod';
import { explainFileError } from '../shared/error-codes.ts';
import { epochFloor } from '../shared/log/head.ts';
import { SqliteStore } from '../shared/storage/sqlite-store.ts';
import { FILE_SCHEMAS } from '../shared/storage/sqlite-table.ts';
import {
  DataDirError,
  isLocked,
  LOCK_FILE,
  openDataDir,
  RESTORE_FOLDER,
  RESTORED_AT_FILE,
} from './data-dir.ts';
import { findOtherOwner } from './owner.ts';
import { readTar, type TarFile, writeTar } from './tar.ts';

/** The backup or the restore failed. The message is one sentence. */
export class BackupError extends Error {
  override readonly name = 'BackupError';
}

const TABLES = 'tables.db';
/** The tables first: a message that they count as published is then in the later copy of the queues. */
const DATABASES = [TABLES, 'queues/fauxqs.db'] as const;
/** Files that grant access: the key of stored secrets, an API key, credentials of the embedded SNS and SQS. */
const KEYS = ['secret.key', 'api-key', 'aws-credentials'] as const;
const FILES: readonly string[] = [...DATABASES, ...KEYS];
const MANIFEST = 'backup.json';
const MAX_MANIFEST_BYTES = 65_536;
/** Version of the archive's layout. */
const FORMAT = 1;
/** Folder in the data folder for the copies of a backup in progress. */
const BACKUP_FOLDER = 'backup.unfinished';
/** File there with the path of the archive in progress. The next backup removes it if this one is killed. */
const TARGET = 'target';
const BUSY_MS = 5_000;

const manifestSchema = z.object({
  format: z.int(),
  /** Version of Jobwire that wrote it. */
  version: z.string(),
  /** Time at which the copy of the tables began (ISO 8601, UTC). */
  createdAt: z.iso.datetime(),
  files: z.array(z.object({ name: z.enum(FILES), bytes: z.int().nonnegative(), sha256: z.string() })),
});

/** Content of a backup. */
export type Manifest = z.infer<typeof manifestSchema>;

/**
 * Writes a backup of a data folder to a file that only this user can read, or to a stream, which it does not end. Jobwire may be running.
 * Needs space for a copy of the databases in the data folder. Throws {@link BackupError}; the file is then not there.
 */
export async function writeBackup(options: {
  readonly folder: string;
  readonly to: string | Writable;
  /** Whether to omit the key of stored secrets, the API key and the credentials of the embedded SNS and SQS. */
  readonly withoutKeys: boolean;
  /** Version of this Jobwire. */
  readonly version: string;
}): Promise<Manifest> {
  const { to, version } = options;
  const folder = resolve(options.folder);
  // First, because another user may not be able to see the files.
  const owner = existsSync(folder) ? findOtherOwner(folder) : undefined;
  if (owner !== undefined) {
    throw new BackupError(`The data folder ${folder} belongs to ${owner}. Run this command as that user.`);
  }
  if (!existsSync(join(folder, TABLES))) {
    throw new BackupError(`${folder} is not a data folder of Jobwire: it does not contain ${TABLES}.`);
  }
  if (existsSync(join(folder, RESTORE_FOLDER))) {
    throw new BackupError(
      `A restore into the data folder ${folder} is not complete. Wait for it, or restore again.`,
    );
  }
  if (typeof to === 'string' && existsSync(to)) {
    throw new BackupError(`${to} exists. Choose another file.`);
  }
  const staging = join(folder, BACKUP_FOLDER);
  if (isLocked(staging)) throw new BackupError(`Another backup of ${folder} is in progress.`);
  const { release } = openDataDir(staging);
  let unfinished: string | undefined;
  const clean = () => {
    release();
    if (unfinished !== undefined) rmSync(unfinished, { force: true });
    rmSync(staging, { recursive: true, force: true });
  };
  process.once('exit', clean);
  try {
    // Of a backup that was killed.
    if (existsSync(join(staging, TARGET)))
      rmSync(readFileSync(join(staging, TARGET), 'utf8'), { force: true });
    for (const file of readdirSync(staging)) {
      if (file !== LOCK_FILE) rmSync(join(staging, file), { recursive: true });
    }
    const createdAt = new Date();
    const names = [...DATABASES, ...(options.withoutKeys ? [] : KEYS)].filter((name) =>
      existsSync(join(folder, name)),
    );
    for (const name of names) {
      const copy = join(staging, name);
      mkdirSync(dirname(copy), { recursive: true });
      if (isDatabase(name)) copyDatabase(join(folder, name), copy);
      else writeFileSync(copy, readFileSync(join(folder, name)), { mode: 0o600 });
    }
    const files: Manifest['files'] = [];
    for (const name of names) {
      const path = join(staging, name);
      files.push({ name, bytes: statSync(path).size, sha256: await hashFile(path) });
    }
    const manifest = { format: FORMAT, version, createdAt: createdAt.toISOString(), files };
    const content = Buffer.from(`${JSON.stringify(manifest, null, 2)}\n`);
    const entries: TarFile[] = [
      { name: MANIFEST, bytes: content.length, content: Readable.from([content]) },
      ...files.map(({ name, bytes }) => ({ name, bytes, content: readFile(join(staging, name)) })),
    ];
    const archive = Readable.from(writeTar(entries, createdAt.getTime()));
    if (typeof to === 'string') {
      unfinished = `${resolve(to)}.unfinished`;
      writeFileSync(join(staging, TARGET), unfinished, { flush: true });
      rmSync(unfinished, { force: true });
      const file = createWriteStream(unfinished, { flags: 'wx', mode: 0o600, flush: true });
      await pipeline(archive, createGzip(), file);
      renameSync(unfinished, to);
    } else {
      await pipeline(archive, createGzip(), to, { end: false });
    }
    return manifest;
  } catch (cause) {
    if (cause instanceof BackupError) throw cause;
    throw new BackupError(`The backup failed: ${explainFileError(cause)}.`, { cause });
  } finally {
    process.off('exit', clean);
    clean();
  }
}

/**
 * Restores a backup into a folder that does not exist, is empty, or has only a lock or files of a restore that was killed. Checks every file
 * before the folder becomes usable. Throws {@link BackupError}; the folder is then empty.
 */
export async function restoreBackup(options: {
  readonly folder: string;
  /** Opens the backup, when the folder can be written. */
  readonly open: () => Readable;
  /** Name of the backup in messages. */
  readonly name: string;
}): Promise<Manifest> {
  const { open, name } = options;
  const folder = resolve(options.folder);
  const isNew = !existsSync(folder);
  if (!isNew && isLocked(folder)) throw new BackupError(`The data folder ${folder} is in use by Jobwire.`);
  checkParentOwner(folder);
  // Of a restore that was killed. It began with an empty folder, and no Jobwire has started on it since.
  if (existsSync(join(folder, RESTORE_FOLDER))) removeRestored(folder);
  // A new file system may contain `lost+found`. A failed start and `jobwire doctor` leave only the lock.
  if (!isNew && listFiles(folder).some((file) => file !== 'lost+found' && file !== LOCK_FILE)) {
    throw new BackupError(`The folder ${folder} is not empty. Choose an empty or a new folder.`);
  }
  const target = openDataDir(folder);
  const staging = join(folder, RESTORE_FOLDER);
  let isComplete = false;
  const clean = () => {
    target.release();
    if (isComplete) return;
    removeRestored(folder);
    if (isNew) rmdirSync(folder);
  };
  process.once('exit', clean);
  try {
    mkdirSync(staging, { mode: 0o700 });
    const manifest = await extract(open(), staging, name);
    for (const file of manifest.files) {
      if (isDatabase(file.name)) checkDatabase(join(staging, file.name), `${name}: ${file.name}`);
    }
    upgradeTables(join(staging, TABLES), name);
    const restoredAt = await chooseRestoreTime(join(staging, TABLES));
    writeFileSync(join(staging, RESTORED_AT_FILE), `${new Date(restoredAt).toISOString()}\n`, {
      mode: 0o600,
      flush: true,
    });
    // Until the staging folder is removed, no Jobwire starts on this folder.
    for (const file of [...FILES, RESTORED_AT_FILE]) {
      if (!existsSync(join(staging, file))) continue;
      mkdirSync(dirname(join(folder, file)), { recursive: true, mode: 0o700 });
      renameSync(join(staging, file), join(folder, file));
    }
    rmSync(staging, { recursive: true });
    isComplete = true;
    return manifest;
  } catch (cause) {
    if (cause instanceof BackupError || cause instanceof DataDirError) throw cause;
    throw new BackupError(`The restore failed: ${explainFileError(cause)}.`, { cause });
  } finally {
    process.off('exit', clean);
    clean();
  }
}

/** Removes everything that a restore creates in a folder. */
function removeRestored(folder: string): void {
  // The staging folder last: until then, no Jobwire starts on the folder.
  for (const file of [...FILES, 'queues', RESTORED_AT_FILE, RESTORE_FOLDER, LOCK_FILE]) {
    rmSync(join(folder, file), { recursive: true, force: true });
  }
}

/** Throws if root restores into the folder of a user, who could not read the files of root. */
function checkParentOwner(folder: string): void {
  if (process.geteuid?.() !== 0) return;
  let parent = folder;
  while (!existsSync(parent)) parent = dirname(parent);
  const { uid } = statSync(parent);
  if (uid !== 0) {
    throw new BackupError(
      `${parent} belongs to the user with the id ${uid}, who could not read the files of root. Run the restore as that user, such as with sudo -u '#${uid}'.`,
    );
  }
}

/** Extracts an archive. Verifies that it is complete and unchanged. */
async function extract(from: Readable, folder: string, name: string): Promise<Manifest> {
  let manifest: Manifest | undefined;
  const extracted = new Set<string>();
  try {
    await pipeline(from, createGunzip(), (bytes: AsyncIterable<Buffer>) =>
      readTar(bytes, async (file) => {
        if (manifest === undefined) {
          manifest = await readManifest(file, name);
          return;
        }
        const expected = manifest.files.find((one) => one.name === file.name);
        if (!expected || extracted.has(file.name)) throw new BackupError(`${name} is damaged.`);
        const path = join(folder, file.name);
        mkdirSync(dirname(path), { recursive: true });
        const hash = createHash('sha256');
        const hashing = new Transform({
          transform(chunk, _, done) {
            hash.update(chunk);
            done(null, chunk);
          },
        });
        const output = createWriteStream(path, { flags: 'wx', mode: 0o600, flush: true });
        await pipeline(file.content, hashing, output);
        if (hash.digest('hex') !== expected.sha256) {
          throw new BackupError(`${name} is damaged: ${file.name} differs from its checksum.`);
        }
        extracted.add(file.name);
      }),
    );
  } catch (cause) {
    if (cause instanceof BackupError) throw cause;
    const { code } = cause as NodeJS.ErrnoException;
    // Errors of the file system have another reason than the archive.
    if (code !== undefined && !code.startsWith('Z_')) throw cause;
    const why = explainFileError(cause);
    throw new BackupError(
      manifest === undefined ? `${name} is not a backup of Jobwire.` : `${name} is damaged: ${why}.`,
      { cause },
    );
  }
  const missing = manifest?.files.find((file) => !extracted.has(file.name))?.name;
  if (manifest === undefined) throw new BackupError(`${name} is not a backup of Jobwire.`);
  if (missing !== undefined) throw new BackupError(`${name} is damaged: ${missing} is missing.`);
  if (!extracted.has(TABLES)) throw new BackupError(`${name} is damaged: ${TABLES} is missing.`);
  return manifest;
}

async function readManifest({ name, bytes, content }: TarFile, source: string): Promise<Manifest> {
  if (name !== MANIFEST || bytes > MAX_MANIFEST_BYTES) {
    throw new BackupError(`${source} is not a backup of Jobwire.`);
  }
  const raw = JSON.parse(await text(content));
  if (Number(raw.format) > FORMAT) {
    throw new BackupError(
      `${source} was written by a later version of Jobwire (${String(raw.version).slice(0, 40)}). Restore it with that version.`,
    );
  }
  return manifestSchema.parse(raw);
}

/** Copies a database that other connections may be writing to, as of one commit, and verifies the copy. */
function copyDatabase(path: string, copy: string): void {
  const database = new DatabaseSync(path, { readOnly: true, timeout: BUSY_MS });
  try {
    database.prepare('VACUUM INTO ?').run(copy);
  } finally {
    database.close();
  }
  checkDatabase(copy, path);
}

function checkDatabase(path: string, name: string): void {
  let problem: unknown;
  const database = new DatabaseSync(path, { readOnly: true });
  try {
    problem = database.prepare('PRAGMA integrity_check(1)').get()?.integrity_check;
  } catch (cause) {
    problem = explainFileError(cause);
  } finally {
    database.close();
  }
  if (problem !== 'ok') throw new BackupError(`${name} is damaged: ${problem}.`);
}

/** Opens the tables as a start does, which verifies that this version can read them. */
function upgradeTables(path: string, name: string): void {
  try {
    new SqliteStore(path, FILE_SCHEMAS).close();
  } catch (cause) {
    throw new BackupError(`${name} can't be restored: ${explainFileError(cause)}.`, { cause });
  }
}

/** Returns a time (epoch ms), not in the future, that is later than the epochs of all logs in the tables. */
async function chooseRestoreTime(path: string): Promise<number> {
  const database = new DatabaseSync(path, { readOnly: true });
  let latest: string;
  try {
    const row = database
      .prepare(`SELECT max(item ->> 'epoch') AS latest FROM state WHERE pk > 'INDEX#' AND sk = 'HEAD'`)
      .get();
    latest = String(row?.latest ?? '');
  } finally {
    database.close();
  }
  // Epochs have a resolution of a second.
  if (latest.startsWith(epochFloor(Date.now()))) await sleepMs(1_000);
  const now = Date.now();
  if (latest < epochFloor(now)) return now;
  throw new BackupError(
    `The clock of this machine (${new Date(now).toISOString()}) is behind the events in the backup. Correct it, then restore again.`,
  );
}

function isDatabase(name: string): boolean {
  return name.endsWith('.db');
}

/** Opens the file only when it is read. */
async function* readFile(path: string): AsyncGenerator<Buffer> {
  yield* createReadStream(path);
}

async function hashFile(path: string): Promise<string> {
  const hash = createHash('sha256');
  await pipeline(createReadStream(path), hash);
  return hash.digest('hex');
}

function listFiles(folder: string): string[] {
  try {
    return readdirSync(folder);
  } catch (cause) {
    throw new BackupError(`The folder ${folder} can't be used: ${explainFileError(cause)}.`, { cause });
  }
}
