/** `jobwire backup` and `jobwire restore`: the data folder of a self-hosted Jobwire as one file. */
import { createReadStream } from 'node:fs';
import { dirname } from 'node:path';
import type { Manifest } from '../local/backup.ts';
import { ConfigError, parseConfigText, parseStorage } from '../shared/config.ts';
import { VERSION } from '../shared/version.ts';
import { type Context, OperationError, UsageError } from './command.ts';
import { readInputFile } from './input.ts';
import { count, sanitizeLine } from './output.ts';
import { onRecentNode } from './start.ts';

interface FolderFlags {
  readonly config: string | undefined;
  readonly 'data-dir': string | undefined;
}

interface BackupFlags extends FolderFlags {
  readonly 'without-keys': boolean;
}

/** Writes a backup to a file, or for `-` to stdout. */
export function backup(context: Context, file: string, flags: BackupFlags): Promise<number | undefined> {
  return onRecentNode('backup', () => writeBackupTo(context, file, flags));
}

/** Restores a backup from a file, or for `-` from stdin. */
export function restore(context: Context, file: string, flags: FolderFlags): Promise<number | undefined> {
  return onRecentNode('restore', () => restoreFrom(context, file, flags));
}

async function writeBackupTo(context: Context, file: string, flags: BackupFlags): Promise<undefined> {
  const { out } = context;
  const isStream = file === '-';
  if (isStream && out.stdout.isTTY) {
    throw new UsageError('FILE must not be - on a terminal. Redirect stdout, or name a file.');
  }
  const folder = findDataFolder(context, flags);
  const { writeBackup } = await import('../local/backup.ts');
  out.progress('Writing the backup …');
  const manifest = await attempt(() =>
    writeBackup({
      ...{ folder, to: isStream ? out.stdout : file, version: VERSION },
      withoutKeys: flags['without-keys'],
    }),
  );
  out.progress();
  const hasKey = manifest.files.some(({ name }) => name === 'secret.key');
  if (!isStream) {
    out.document({ file, ...manifest }, () => {
      out.line(`Written: ${sanitizeLine(file)} (${describe(manifest)})`);
    });
  }
  out.note(
    hasKey
      ? 'The backup contains secret.key. Anyone who can read the backup can read the stored secrets.'
      : 'The backup does not contain secret.key. Without that key, the stored secrets cannot be read.',
  );
}

async function restoreFrom(context: Context, file: string, flags: FolderFlags): Promise<undefined> {
  const { out, stdin } = context;
  const folder = findDataFolder(context, flags);
  const { restoreBackup } = await import('../local/backup.ts');
  out.progress('Restoring the backup …');
  const isStream = file === '-';
  const manifest = await attempt(() =>
    restoreBackup({
      ...{ folder, name: isStream ? 'The input' : file },
      open: () => (isStream ? stdin : createReadStream(file)),
    }),
  );
  out.progress();
  out.document({ folder, ...manifest }, () => {
    out.line(`Restored: ${sanitizeLine(folder)}, as of ${manifest.createdAt} (${describe(manifest)})`);
    out.line('At the next start, the logs continue in a new epoch.');
  });
  if (!manifest.files.some(({ name }) => name === 'secret.key')) {
    out.note(
      `The backup contains no secret.key. Before the start, copy it to ${sanitizeLine(folder)}, or set JOBWIRE_SECRET_KEY.`,
    );
  }
}

function describe({ version, files }: Manifest): string {
  const bytes = files.reduce((total, file) => total + file.bytes, 0);
  return `${count(files.length, 'file')}, ${(bytes / 1_048_576).toFixed(1)} MiB before compression, Jobwire ${sanitizeLine(version)}`;
}

function findDataFolder({ env }: Context, flags: FolderFlags): string {
  const folder = flags['data-dir'];
  if (folder !== undefined) {
    if (flags.config !== undefined) throw new UsageError('Use only one of --config and --data-dir.');
    return folder;
  }
  const path = flags.config ?? 'jobwire.json';
  const advice = ' Name it with --config, or the folder with --data-dir.';
  const text = readInputFile(path, `The configuration file ${path}`, advice).toString();
  try {
    const storage = parseStorage(parseConfigText(path, text), env, dirname(path));
    if (storage.dynamodbEndpoint === undefined) return storage.dataDir;
  } catch (cause) {
    if (cause instanceof ConfigError) throw new UsageError(`${path}: ${cause.message}`, { cause });
    throw cause;
  }
  throw new UsageError(
    `${path} stores the tables on a DynamoDB server (dynamodbEndpoint). Use the backups of that server.`,
  );
}

/** Converts the expected errors of an operation. */
async function attempt<T>(operation: () => Promise<T>): Promise<T> {
  try {
    return await operation();
  } catch (cause) {
    const { name, message } = cause as Error;
    if (name === 'BackupError' || name === 'DataDirError') throw new OperationError(message, { cause });
    throw cause;
  }
}
