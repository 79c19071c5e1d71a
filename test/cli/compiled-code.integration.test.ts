/** The compiled code that the built CLI stores between starts. */
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { Script } from 'node:vm';
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

  test('is stored in a folder of the user alone', () => {
    const version = run({ HOME: home });
    expect(version).toMatch(/\d/);
    expect(readdirSync(cache)).toHaveLength(1);
    expect(statSync(cache).mode & 0o777).toBe(0o700);
    run({ XDG_CACHE_HOME: join(home, 'other') });
    expect(readdirSync(join(home, 'other', 'jobwire'))).toHaveLength(1);
  });

  test('is not stored where others could write it, in the working folder, or with NODE_DISABLE_COMPILE_CACHE', () => {
    rmSync(cache, { recursive: true });
    mkdirSync(cache);
    chmodSync(cache, 0o770);
    const before = readdirSync(home);
    const off = { XDG_CACHE_HOME: join(home, 'off'), NODE_DISABLE_COMPILE_CACHE: '1' };
    for (const more of [{ HOME: home }, { HOME: '/dev/null' }, { HOME: 'relative' }, {}, off]) {
      expect(run(more as Record<string, string>)).toMatch(/\d/);
    }
    expect(readdirSync(cache)).toEqual([]);
    expect(readdirSync(home)).toEqual(before);
  });

  describe('of jobwire start', () => {
    const folder = join(home, 'start');
    const env = { XDG_CACHE_HOME: folder };
    /** Starts with a configuration that does not exist. Returns the exit code and the error. */
    const fail = () => {
      const args = [program, 'start', '--config', 'missing.json'];
      const { status, stderr } = spawnSync(process.execPath, args, { cwd: home, env, encoding: 'utf8' });
      return { status, stderr };
    };
    const findStored = () => {
      const names = readdirSync(join(folder, 'jobwire')).filter((name) => name.startsWith('start.cjs-'));
      return names.map((name) => join(folder, 'jobwire', name));
    };
    const expected = { status: 2, stderr: expect.stringContaining('missing.json') };

    test('contains the functions that were called, and only a damaged file is written again', () => {
      expect(fail()).toEqual(expected);
      const [stored = '', ...others] = findStored();
      expect(others).toEqual([]);
      const written = statSync(stored);
      const source = readFileSync(join(dirname(program), 'start.cjs'), 'latin1');
      expect(written.size).toBeGreaterThan(
        1.1 * new Script(`(function(){${source}\n})`).createCachedData().length,
      );
      expect(written.mode & 0o777).toBe(0o600);

      expect(fail()).toEqual(expected);
      expect(statSync(stored).ino).toBe(written.ino);

      const code = readFileSync(stored);
      for (const damaged of [
        code.subarray(0, 1_000),
        Buffer.alloc(0),
        code.map((byte, at) => byte ^ +(at === 90_000)),
      ]) {
        writeFileSync(stored, damaged);
        expect(fail()).toEqual(expected);
        expect(readFileSync(stored).length).toBeGreaterThan(0.9 * code.length);
        expect(findStored()).toEqual([stored]);
      }
    });

    test('is stored while it runs, because V8 later discards code that is not called', async () => {
      rmSync(folder, { recursive: true });
      const child = spawn(process.execPath, [program, 'start', '--port', '0'], {
        cwd: home,
        env,
        stdio: 'ignore',
      });
      const ended = once(child, 'exit');
      await expect.poll(() => findStored(), { timeout: 60_000 }).toHaveLength(1);
      child.kill('SIGKILL');
      await ended;
    });
  });
});
