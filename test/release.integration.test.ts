/** `npm run release -- --dry-run` in a clone. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, inject, test } from 'vitest';

// The dry run installs everything again.
test.runIf(inject('full'))(
  'a dry run builds, packs and installs a package of the new version, and changes nothing',
  () => {
    const folder = mkdtempSync(join(tmpdir(), 'jobwire-release-test-'));
    try {
      execFileSync('git', ['clone', '--quiet', '.', folder]);
      const command = ['release.ts', '99.0.0', '--dry-run', '--skip-tests'];
      const said = execFileSync(process.execPath, command, { cwd: folder, encoding: 'utf8' });
      expect(said).toMatch(/jobwire-99\.0\.0\.tgz: \d+ files, \d+ bytes, \d+ bytes installed/);
      const git = (...args: string[]) => execFileSync('git', args, { cwd: folder, encoding: 'utf8' });
      expect([git('status', '--porcelain'), git('tag'), git('worktree', 'list').split('\n').length]).toEqual([
        '',
        '',
        2,
      ]);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  },
);
