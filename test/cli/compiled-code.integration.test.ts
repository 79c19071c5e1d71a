/** The compiled code that the built CLI keeps between starts. */
import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, inject, test } from 'vitest';

describe('compiled code', () => {
  const home = mkdtempSync(join(tmpdir(), 'jobwire-home-'));
  afterAll(() => rmSync(home, { recursive: true }));
  const program = join(inject('packageFolder'), 'cli', 'jobwire.js');
  const cache = join(home, '.cache', 'jobwire');
  /** Runs a command in an empty environment. Returns its output. */
  const run = (more: Record<string, string>) =>
    execFileSync(process.execPath, [program, '--version'], {
      encoding: 'utf8',
      cwd: home,
      env: more,
      stdio: ['ignore', 'pipe', 'inherit'],
    });

  test('is kept in a folder of the user alone', () => {
    const version = run({ HOME: home });
    expect(version).toMatch(/\d/);
    expect(readdirSync(cache)).toHaveLength(1);
    expect(statSync(cache).mode & 0o777).toBe(0o700);
    run({ XDG_CACHE_HOME: join(home, 'other') });
    expect(readdirSync(join(home, 'other', 'jobwire'))).toHaveLength(1);
  });

  test('is not kept where others could write it, and never in the working folder', () => {
    rmSync(cache, { recursive: true });
    mkdirSync(cache);
    chmodSync(cache, 0o770);
    const before = readdirSync(home);
    for (const more of [{ HOME: home }, { HOME: '/dev/null' }, { HOME: 'relative' }, {}]) {
      expect(run(more as Record<string, string>)).toMatch(/\d/);
    }
    expect(readdirSync(cache)).toEqual([]);
    expect(readdirSync(home)).toEqual(before);
  });
});
