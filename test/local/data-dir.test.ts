/** Data folders that cannot be used. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it, vi } from 'vitest';
import { openDataDir } from '../../local/data-dir.ts';

/** On a read-only file system, Node reports ENOENT if it creates folders recursively, and EROFS otherwise. */
vi.mock('node:fs', async (load) => {
  const fs = await load<typeof import('node:fs')>();
  const fail = (code: string) => {
    throw Object.assign(new Error(code), { code });
  };
  return {
    ...fs,
    mkdirSync: (...[path, options]: Parameters<typeof fs.mkdirSync>) =>
      String(path).includes('read-only') ? fail('ENOENT') : fs.mkdirSync(path, options),
    accessSync: (path: string, mode?: number) =>
      path.endsWith('read-only') ? fail('EROFS') : fs.accessSync(path, mode),
    existsSync: (path: string) => path.endsWith('read-only') || fs.existsSync(path),
  };
});

const folder = mkdtempSync(join(tmpdir(), 'jobwire-data-dir-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

describe('openDataDir', () => {
  it.each(['data', 'a/b'])(
    'says that the file system is read-only if the folder %s cannot be created there',
    (name) => {
      const path = join(folder, 'read-only', name);
      expect(() => openDataDir(path)).toThrow(
        `The data folder ${path} can’t be used: the file system is read-only (EROFS).`,
      );
    },
  );

  it.each(['short', 'two words of a key', 'schlüssel-schlüssel'])(
    'rejects an API key that clients cannot send: %s',
    (key) => {
      const dataDir = openDataDir(join(folder, 'keys'));
      writeFileSync(dataDir.apiKeyPath, `${key}\n`);
      expect(() => dataDir.apiKey()).toThrow(
        `${dataDir.apiKeyPath} must contain at least 16 printable ASCII characters without spaces. Copy its former content into it, or remove it. Jobwire then creates a new one.`,
      );
      dataDir.release();
    },
  );
});
