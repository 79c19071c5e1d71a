/** Data folders that cannot be used. */
import fs, { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { syncBuiltinESMExports } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, describe, expect, it, vi } from 'vitest';
import { openDataDir } from '../../local/data-dir.ts';

const folder = mkdtempSync(join(tmpdir(), 'jobwire-data-dir-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** Makes the file system read-only: Node reports ENOENT if it creates folders recursively, and EROFS otherwise. */
function makeReadOnly(): void {
  const fail = (code: string) => () => {
    throw Object.assign(new Error(code), { code });
  };
  vi.spyOn(fs, 'mkdirSync').mockImplementation(fail('ENOENT'));
  vi.spyOn(fs, 'accessSync').mockImplementation(fail('EROFS'));
  vi.spyOn(fs, 'existsSync').mockImplementation((path) => String(path).endsWith('read-only'));
  syncBuiltinESMExports();
}
afterEach(() => {
  vi.restoreAllMocks();
  syncBuiltinESMExports();
});

describe('openDataDir', () => {
  it.each(['data', 'a/b'])(
    'says that the file system is read-only if the folder %s cannot be created there',
    (name) => {
      makeReadOnly();
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
