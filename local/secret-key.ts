/** The key that encrypts stored secrets, and the check of stored data before a start. */
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { explainError, findCode } from '../shared/error-codes.ts';
import { openSealedTexts, SecretError } from '../shared/secrets.ts';
import { keys } from '../shared/storage/schema.ts';
import { isPrepared, SqliteReader } from '../shared/storage/sqlite-store.ts';
import { createMemoryTable, FILE_SCHEMAS } from '../shared/storage/sqlite-table.ts';
import type { Table } from '../shared/storage/table.ts';
import type { DataDir } from './data-dir.ts';
import { StartError } from './start-error.ts';

/**
 * Returns the key of the stored secrets. Creates one only if the tables were never used with a key. `given`: JOBWIRE_SECRET_KEY. Throws
 * {@link StartError}.
 */
export async function openSecretKey(
  table: Table,
  dataDir: DataDir,
  given: string | undefined,
): Promise<Uint8Array> {
  const { secretKeyPath: file } = dataDir;
  const fix = `Copy the former secret.key to ${file}, or set JOBWIRE_SECRET_KEY to its content.`;
  if (given === undefined && !existsSync(file) && (await table.get(keys.secretKeyCheck()))) {
    throw new StartError(`The key of the stored secrets of endpoints and accounts is missing. ${fix}`);
  }
  const key = dataDir.secretKey(given);
  try {
    await openSealedTexts(table, key);
  } catch (cause) {
    if (!(cause instanceof SecretError)) throw cause;
    const where = given === undefined ? file : 'JOBWIRE_SECRET_KEY';
    throw new StartError(
      `The secret key in ${where} differs from the key that encrypted the secrets of endpoints and accounts. ${fix}`,
      { cause },
    );
  }
  return key;
}

/** Returns what to do if a database is damaged, as a sentence after a space. Otherwise an empty text. */
export function adviseRestore(cause: unknown): string {
  return ['SQLITE_CORRUPT', 'SQLITE_NOTADB'].includes(findCode(cause) ?? '')
    ? ' Restore a backup (jobwire restore).'
    : '';
}

/**
 * Checks the keys and tables of a data folder that the caller holds. Changes nothing. Throws an error with the message with which a start
 * fails.
 */
export async function checkStored(dataDir: DataDir, givenKey: string | undefined): Promise<void> {
  if (existsSync(dataDir.apiKeyPath)) dataDir.apiKey();
  const path = join(dataDir.path, 'tables.db');
  let known: Awaited<ReturnType<Table['get']>>;
  try {
    known = readKeyCheck(path);
  } catch (cause) {
    throw new StartError(
      `The database ${path} can’t be used: ${explainError(cause)}.${adviseRestore(cause)}`,
      {
        cause,
      },
    );
  }
  if (known === undefined && givenKey === undefined && !existsSync(dataDir.secretKeyPath)) return;
  await openSecretKey({ ...createMemoryTable(), get: async () => known }, dataDir, givenKey);
}

/** Result code of SQLite for a damaged database. */
const SQLITE_CORRUPT = 11;

/** Verifies a database, and returns its item that verifies the secret key. */
function readKeyCheck(path: string): ReturnType<SqliteReader['get']> {
  // A start converts the file of an earlier version first.
  if (!isPrepared(path, FILE_SCHEMAS)) return undefined;
  const database = new DatabaseSync(path, { readOnly: true });
  try {
    const found = database.prepare('PRAGMA quick_check(1)').get()?.quick_check;
    if (found !== 'ok') throw Object.assign(new Error(String(found)), { errcode: SQLITE_CORRUPT });
  } finally {
    database.close();
  }
  const reader = new SqliteReader(path, FILE_SCHEMAS);
  try {
    return reader.get('state', keys.secretKeyCheck());
  } finally {
    reader.close();
  }
}
