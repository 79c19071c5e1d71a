/** The CLI package: packed, installed offline into an empty folder, and run there against a real local start. */
import { execFileSync, spawn } from 'node:child_process';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { pathToFileURL } from 'node:url';
import { Webhook } from 'standardwebhooks';
import { afterAll, afterEach, beforeAll, describe, expect, inject, test } from 'vitest';
import { loadCli } from '../support/cli-site.ts';
import { cleanEnv, type Running } from '../support/command.ts';
import { configFor, launchJobwire, startSandbox, writeConfig } from '../support/jobwire.ts';

const KEY = 'a-key-for-the-tests-only';
const folder = mkdtempSync(join(tmpdir(), 'jobwire-cli-package-'));
const consumer = join(folder, 'consumer');
const modules = join(consumer, 'node_modules');
const ours = resolve('node_modules/.bin/node');
const [host] = (process.env.PATH ?? '')
  .split(delimiter)
  .filter((path) => !path.includes('node_modules'))
  .map((path) => join(path, 'node'))
  .filter((file) => existsSync(file));
const env = {
  ...cleanEnv,
  PATH: host === undefined ? cleanEnv.PATH : dirname(host) + delimiter + cleanEnv.PATH,
};

const open: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of open.splice(0).reverse()) await close();
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

beforeAll(() => {
  cpSync(inject('consumerFolder'), consumer, { recursive: true, verbatimSymlinks: true });
});

/** Runs the installed CLI, as a shell finds it, on a Node. */
function jobwire(node: string, args: string[], more: Record<string, string> = {}): Running {
  const command = [node, join(modules, '.bin', 'jobwire')];
  return launchJobwire(args, { command, cwd: consumer, env: { ...env, ...more } });
}

/** Runs command lines one after the other. Each line of stdin is a JSON array of the module, the arguments and the environment. */
const SHELL = `
  import { EventEmitter } from 'node:events';
  import { createInterface } from 'node:readline';
  import { PassThrough, Readable } from 'node:stream';
  import { text } from 'node:stream/consumers';
  for await (const line of createInterface({ input: process.stdin })) {
    const [module, args, env] = JSON.parse(line);
    const { run } = await import(module);
    const [stdout, stderr] = [new PassThrough(), new PassThrough()];
    const host = Object.assign(new EventEmitter(), { stdin: Readable.from([]), stdout, stderr, env });
    const [out, err] = [text(stdout), text(stderr)];
    const code = await run(args, host);
    stdout.end();
    stderr.end();
    console.log(JSON.stringify({ code, out: await out, err: await err }));
  }`;

/** Starts one process of a Node that runs command lines with the modules of the installed CLI. */
function startShell(node: string) {
  const cli = join(modules, 'jobwire', 'cli');
  const [name = ''] = readdirSync(cli).filter((file) => /^run-\w+\.js$/.test(file));
  const module = pathToFileURL(join(cli, name)).href;
  const child = spawn(node, ['--input-type=module', '-e', SHELL], {
    env: cleanEnv,
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  open.push(() => child.stdin.end());
  const answers = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  return async (args: readonly string[], env: Record<string, string>) => {
    child.stdin.write(`${JSON.stringify([module, args, env])}\n`);
    const { value } = await answers.next();
    return JSON.parse(value ?? 'null') as { code: number; out: string; err: string };
  };
}

const readVersion = (node: string) => execFileSync(node, ['--version'], { encoding: 'utf8' }).trim().slice(1);

/** The Node that runs Jobwire, and the machine's own if that is another one, 20.18 or later. */
function nodes(): { node: string; version: string }[] {
  const found = [ours, ...(host === undefined ? [] : [host])].map((node) => ({
    node,
    version: readVersion(node),
  }));
  const fit = found.filter(({ version }) => {
    const [major = 0, minor = 0] = version.split('.').map(Number);
    return major > 20 || (major === 20 && minor >= 18);
  });
  return fit.filter(({ version }, at) => fit.findIndex((one) => one.version === version) === at);
}

/** A started Jobwire that tracks one account of a sandbox, which has another one. */
async function started(node: string) {
  const { sandbox, world } = await startSandbox();
  const account = world.addAccount({ region: 'us', name: 'acme' });
  const other = world.addAccount({ region: 'us', name: 'bakery' });
  const job = account.createJob({ status: 'Scheduled' });
  const file = writeConfig({
    ...configFor(sandbox, [account]),
    apiKey: 'env:JOBWIRE_TEST_KEY',
    webhooks: { allowPrivateNetworks: true },
  });
  const running = jobwire(node, ['start', '--config', file], { JOBWIRE_TEST_KEY: KEY });
  await running.printed(/account\.baselined/);
  const url = await running.printed(/HTTP API +(\S+)/);
  return {
    running,
    account,
    other,
    job,
    file,
    url,
    env: { JOBWIRE_URL: url, JOBWIRE_API_KEY: KEY, JOBWIRE_TEST_KEY: KEY },
  };
}

/** A receiver on loopback that accepts everything, and records it. */
async function receive() {
  const taken: { id: string; type: string; verify: (secret: string) => unknown }[] = [];
  const listeners = new Set<() => void>();
  const server = createServer((request, response) => {
    let body = '';
    request.setEncoding('utf8').on('data', (text: string) => {
      body += text;
    });
    request.on('end', () => {
      const { id, type } = JSON.parse(body) as { id: string; type: string };
      const headers = request.headers as Record<string, string>;
      taken.push({ id, type, verify: (secret) => new Webhook(secret).verify(body, headers) });
      response.writeHead(204).end();
      for (const look of listeners) look();
    });
  }).listen(0, '127.0.0.1');
  await new Promise((done) => server.once('listening', done));
  open.push(() => {
    server.closeAllConnections();
    server.close();
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`,
    taken,
    /** Resolves when this many events of a type have arrived. */
    came: (type: string, times = 1) =>
      new Promise<void>((done) => {
        const look = (): void => {
          if (taken.filter((one) => one.type === type).length >= times) done();
        };
        listeners.add(look);
        look();
      }),
  };
}

/** A proxy of an API that drops the first response to a POST. */
async function cutFirst(url: string) {
  let asked = 0;
  const server = createServer(async (request, response) => {
    const { method = 'GET', url: path = '/' } = request;
    if (method === 'POST') asked += 1;
    const isFirst = method === 'POST' && asked === 1;
    const { host: _, connection: __, 'transfer-encoding': ___, ...headers } = request.headers;
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk);
    const content = method === 'POST' ? { body: Buffer.concat(chunks) } : {};
    const sent = { method, headers: headers as Record<string, string>, ...content };
    const answer = await fetch(url + path, sent);
    const body = await answer.text();
    if (isFirst) request.socket.resetAndDestroy();
    else response.writeHead(answer.status, { 'content-type': 'application/json' }).end(body);
  }).listen(0, '127.0.0.1');
  await new Promise((done) => server.once('listening', done));
  open.push(() => {
    server.closeAllConnections();
    server.close();
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked: () => asked,
  };
}

test('the package has no dependencies, and start imports its own by name only', () => {
  const manifest = JSON.parse(readFileSync(join(modules, 'jobwire', 'package.json'), 'utf8'));
  expect(manifest.dependencies).toBeUndefined();
  expect(manifest.optionalDependencies).toBeUndefined();
  expect(manifest.bin).toEqual({ jobwire: './cli/jobwire.js' });
  for (const name of Object.keys(manifest.peerDependencies)) {
    expect(manifest.peerDependenciesMeta[name]).toEqual({ optional: true });
  }
  expect(existsSync(join(modules, 'node')), 'npm has installed an optional peer').toBe(false);
  const licenses = readFileSync(join(modules, 'jobwire', 'cli', 'licenses.txt'), 'utf8');
  for (const name of ['hono', 'zod', 'fauxqs', 'fastify', 'eventsource-parser']) {
    expect(licenses).toMatch(new RegExp(`^${name} \\d.*: \\S+$`, 'm'));
  }
});

test('API commands load neither the SDK nor the schemas', () => {
  const loaded = new Set<string>();
  const look = (file: string): void => {
    if (loaded.has(file)) return;
    loaded.add(file);
    const code = readFileSync(join(modules, 'jobwire', 'cli', file), 'utf8');
    for (const [, name = ''] of code.matchAll(/(?:from|import)\s*"\.\/([^"]+)"/g)) look(name);
  };
  look('jobwire.js');
  for (const name of readdirSync(join(modules, 'jobwire', 'cli')).filter((one) => one.startsWith('run-')))
    look(name);
  expect(loaded.size).toBeGreaterThan(2);
  const bytes = [...loaded].reduce(
    (sum, file) => sum + readFileSync(join(modules, 'jobwire', 'cli', file)).length,
    0,
  );
  expect(bytes).toBeLessThan(110_000);
});

// In `npm test` the two long tests run on one Node each, at full size both on each.
describe.each(nodes())('on Node $version', ({ node, version }) => {
  test.runIf(inject('full') || node !== ours || nodes().length === 1)(
    'the installed CLI reads a real Jobwire: status, jobs, live events, and doctor',
    {
      timeout: 90_000,
    },
    async () => {
      const jobwireRuns = await started(ours);
      const start = (...args: string[]) => jobwire(node, args, jobwireRuns.env);
      const shell = startShell(node);
      const run = (...args: string[]) => shell(args, jobwireRuns.env);
      expect((await start('--version').ended).out).toBe(
        `${JSON.parse(readFileSync('package.json', 'utf8')).version}\n`,
      );

      const shown = await start('accounts', 'show', 'acme', '--json').ended;
      expect(JSON.parse(shown.out)).toMatchObject({ status: { state: 'tracking', openJobs: 1 } });
      const listed = await run('jobs', 'list', 'acme', '--json');
      expect(JSON.parse(listed.out)).toMatchObject({ jobNumber: jobwireRuns.job, status: 'Scheduled' });
      expect(await run('accounts', 'confirm', 'acme')).toMatchObject({ code: 3 });
      expect(await run('accounts', 'show', 'nobody')).toMatchObject({
        code: 3,
        err: 'There is no such account.\n',
      });

      const past = await run('events', 'tail', '--account', 'acme', '--since', '1h', '--once', '1', '--json');
      expect(JSON.parse(past.out)).toMatchObject({ type: 'account.baselined' });
      const { head } = (JSON.parse(shown.out) as { status: { head: string } }).status;
      const live = ['events', 'tail', '--account', 'acme', '--after', head, '--types', 'job.status_changed'];
      const tail = start(...live, '--once', '1', '--json');
      jobwireRuns.account.setStatus(jobwireRuns.job, 'In production');
      const ended = await tail.ended;
      expect(JSON.parse(ended.out)).toMatchObject({
        type: 'job.status_changed',
        subject: `jobs/${jobwireRuns.job}`,
        data: { changes: { status: { from: 'Scheduled', to: 'In production' } } },
      });

      const { id } = JSON.parse(ended.out) as { id: string };
      expect(JSON.parse((await run('events', 'show', id, '--json')).out)).toMatchObject({ id });
      const job = await run('jobs', 'show', 'acme', String(jobwireRuns.job), '--json');
      expect(JSON.parse(job.out)).toMatchObject({ job: { status: 'In production' } });
      const everything = await run('events', 'tail', '--since', '1h', '--once', '2', '--json');
      expect(everything.out.split('\n')[0]).toContain('account.baselined');

      const made = await run(
        'keys',
        'create',
        '--role',
        'read',
        '--accounts',
        'acme',
        '--expires',
        '1d',
        '--json',
      );
      const { key, secret } = JSON.parse(made.out) as { key: { id: string }; secret: string };
      const small = (...args: string[]) => shell(args, { ...jobwireRuns.env, JOBWIRE_API_KEY: secret });
      expect(await small('jobs', 'list', 'acme')).toMatchObject({ code: 0 });
      expect(await small('accounts', 'confirm', 'acme')).toMatchObject({ code: 5 });
      expect((await run('keys', 'list')).out).toContain(`${key.id}  `);
      expect(await run('keys', 'revoke', key.id)).toMatchObject({ code: 0 });
      expect((await run('keys', 'list')).out).not.toContain(key.id);

      const looked = await start('doctor', '--config', jobwireRuns.file, '--json').ended;
      const { checks } = JSON.parse(looked.out) as {
        checks: { check: string; state: string; message: string }[];
      };
      expect(checks.find(({ check }) => check === 'Jobwire API')).toMatchObject({ state: 'ok' });
      expect(checks.filter(({ check }) => check === 'Region us').map(({ state }) => state)).toEqual([
        'ok',
        'ok',
      ]);
      expect(looked.out).not.toContain(KEY);

      jobwireRuns.running.child.kill('SIGTERM');
      expect((await jobwireRuns.running.ended).code).toBe(0);
    },
  );

  test.runIf(inject('full') || node === ours)(
    'the installed CLI manages one: accounts, endpoints, replays and keys are created, used and deleted',
    {
      timeout: 180_000,
    },
    async () => {
      const { other, file, url, env } = await started(ours);
      const receiver = await receive();
      const here = await loadCli(join(modules, 'jobwire', 'cli'));
      const begun = new Set<string>();
      // At full size, the first run of each command is a process. In `npm test`, cli.integration.test.ts starts them.
      const run = async (...args: string[]) => {
        const name = here.getName(args);
        if (!inject('full') || begun.has(name)) return here.run(args, { env });
        begun.add(name);
        return jobwire(node, args, env).ended;
      };
      const json = async (...args: string[]) => {
        const ended = await run(...args, '--json');
        expect(ended).toMatchObject({ code: 0, err: '' });
        return ended.out
          .trim()
          .split('\n')
          .map((text) => JSON.parse(text));
      };

      // An account, first rejected, then tested and added; its initial state is read back.
      const first = other.createJob({ status: 'Scheduled' });
      const add = ['accounts', 'add', 'bakery', '--client-id', other.clientId, '--poll-interval', '1'];
      const secretEnv = (secret: string) => ({ ...env, BAKERY_SECRET: secret });
      const adding = [...add, '--client-secret-env', 'BAKERY_SECRET'];
      const wrong = await jobwire(node, adding, secretEnv('not-this-one')).ended;
      expect(wrong).toMatchObject({ code: 1, out: expect.stringMatching(/^fail {2}Token/) });
      const added = await jobwire(node, adding, secretEnv(other.clientSecret)).ended;
      expect(added).toMatchObject({ code: 0, err: '' });
      expect(added.out).toMatch(/^ok .*\nok .*\nok .*\nbakery was added in us\. /);
      expect(added.out).not.toContain(other.clientSecret);
      const [baselined] = await json('events', 'tail', '--account', 'bakery', '--once', '1', '--since', '1h');
      expect(baselined).toMatchObject({ type: 'account.baselined', data: { openJobs: 1 } });
      expect(await json('accounts', 'test', 'bakery')).toMatchObject([{ ok: true }]);

      // An endpoint whose receiver verifies every signature with the printed secret.
      const endpoint = ['endpoints', 'add', receiver.url, '--id', 'erp', '--accounts', 'bakery'];
      const [made] = await json(...endpoint, '--region', 'us', '--types', 'job.*');
      expect(made).toMatchObject({ endpoint: { id: 'erp', region: 'us' }, truncatedAccounts: [] });
      expect(await run('endpoints', 'ping', 'erp')).toMatchObject({ code: 0, err: '' });
      expect(receiver.taken.map(({ type }) => type)).toEqual(['jobwire.ping']);
      other.setStatus(first, 'In production');
      await receiver.came('job.status_changed');
      expect(await json('endpoints', 'list')).toMatchObject([{ id: 'erp', health: { state: 'active' } }]);
      const deliveries = await json('endpoints', 'deliveries', 'erp');
      expect(deliveries.at(-1)).toMatchObject({ cause: 'ping', outcome: 'delivered', status: 204 });

      const steps = await json('endpoints', 'replay', 'erp', '--from', 'beginning', '--watch');
      const done = steps.map((step) => step.done);
      expect(done).toEqual([...done].sort((a, b) => a - b));
      expect(steps.at(-1)).toMatchObject({ state: 'done', failed: 0 });
      expect(steps.at(-1).done).toBe(steps.at(-1).total);
      const changes = receiver.taken.filter(({ type }) => type === 'job.status_changed');
      expect(changes.map(({ id }) => id)).toEqual([changes[0]?.id, changes[0]?.id]);
      for (const { verify } of receiver.taken) expect(() => verify(made.secret)).not.toThrow();
      expect(await json('endpoints', 'replays', 'erp')).toMatchObject([
        { id: steps.at(-1).id, state: 'done' },
      ]);
      const [{ deliveries: attempts }] = await json('events', 'show', changes[0]?.id ?? '', '--deliveries');
      expect(attempts.map(({ cause }: { cause: string }) => cause).sort()).toEqual(['live', 'replay']);

      // A key for one account, created once although the first answer is lost: used, deleted, rejected.
      const cutting = await cutFirst(url);
      const create = ['keys', 'create', '--role', 'operate', '--accounts', 'bakery', '--url', cutting.url];
      const [{ key, secret }] = await json(...create);
      expect(cutting.asked()).toBe(2);
      expect((await json('keys', 'list')).map(({ id }) => id)).toEqual([key.id]);
      const small = (...args: string[]) => here.run(args, { env: { ...env, JOBWIRE_API_KEY: secret } });
      expect(await small('accounts', 'list', '--json')).toMatchObject({
        code: 0,
        out: expect.stringMatching(/^{"id":"bakery".*}\n$/),
      });
      expect(await small('accounts', 'pause', 'acme')).toMatchObject({
        code: 3,
        err: 'There is no such account.\n',
      });
      expect(await small('accounts', 'pause', 'bakery')).toMatchObject({ code: 0 });
      expect(await json('accounts', 'show', 'bakery')).toMatchObject([
        { paused: true, status: { state: 'paused' } },
      ]);
      expect(await small('keys', 'create', '--role', 'read')).toMatchObject({ code: 5 });
      expect(await run('keys', 'revoke', key.id)).toMatchObject({ code: 0 });

      other.setStatus(first, 'Quality check');
      expect(await run('accounts', 'resume', 'bakery')).toMatchObject({ code: 0, err: '' });
      await receiver.came('job.status_changed', 3);
      expect(await run('accounts', 'pause', 'acme')).toMatchObject({ code: 3 });
      expect(await run('endpoints', 'remove', 'erp')).toMatchObject({ code: 0 });
      expect(await run('endpoints', 'list')).toMatchObject({ code: 0, err: 'There are no endpoints.\n' });
      expect(await run('accounts', 'delete', 'bakery', '--yes')).toMatchObject({ code: 0 });
      expect((await json('accounts', 'list')).map(({ id }) => id)).toEqual(['acme']);

      const looked = await run('doctor', '--config', file, '--json');
      const { checks } = JSON.parse(looked.out) as { checks: { check: string; state: string }[] };
      expect(checks.filter(({ state }) => state === 'fail')).toEqual([]);

      // The files that `jobwire start` serves beside the API are in the package.
      const dashboard = await (await fetch(url)).text();
      const scripts = [...dashboard.matchAll(/(?:src|href)="(\/assets\/[^"]+)"/g)].map(
        ([, target]) => target,
      );
      expect(scripts.length, 'scripts of the dashboard').toBeGreaterThan(1);
      for (const script of scripts) expect((await fetch(`${url}${script}`)).status, script).toBe(200);
      const page = await (await fetch(`${url}/docs`)).text();
      const assets = [...page.matchAll(/(?:src|href)="(docs\/[^"#]+)"/g)].map(([, target]) => `/${target}`);
      expect(assets.length).toBeGreaterThan(3);
      for (const path of [
        ...assets,
        '/openapi.json',
        '/asyncapi.json',
        '/v1/event-types/job.created/example',
      ]) {
        const answer = await fetch(url + path);
        expect([path, answer.status, (await answer.text()).length > 100]).toEqual([path, 200, true]);
      }

      // A key that the server has not cached is rejected at once after its revocation.
      const [unused] = await json('keys', 'create', '--role', 'read');
      expect(await run('keys', 'revoke', unused.key.id)).toMatchObject({ code: 0 });
      const refused = await here.run(['accounts', 'list'], {
        env: { ...env, JOBWIRE_API_KEY: unused.secret },
      });
      expect(refused).toMatchObject({
        code: 5,
        out: '',
        err: expect.stringContaining('The API key is invalid'),
      });
    },
  );

  test('start runs on this Node, or on the packaged one, or prints one error message with the fix', {
    timeout: 60_000,
  }, async () => {
    const old = Number.parseInt(version, 10) < 24;
    if (old) {
      const refused = await jobwire(node, ['start', '--port', '0']).ended;
      expect(refused.code).toBe(2);
      expect(refused.err).toMatch(
        /^The command start requires Node 24 or later\. .* run: npm install node@24\n$/,
      );
      mkdirSync(join(modules, 'node'));
      writeFileSync(join(modules, 'node', 'package.json'), '{"name":"node","version":"24.21.0"}');
      const incomplete = await jobwire(node, ['start', '--port', '0']).ended;
      expect([incomplete.code, incomplete.err]).toEqual([
        2,
        'The install script of the npm package node did not run. Run npm rebuild node where the package is installed (with npm 12, first npm approve-scripts node).\n',
      ]);
      const checked = await jobwire(node, ['doctor']).ended;
      expect(checked.code).toBe(1);
      expect(checked.out).toMatch(/^fail +Node +The install script of the npm package node did not run/m);
      rmSync(join(modules, 'node'), { recursive: true });
      symlinkSync(resolve('node_modules/node'), join(modules, 'node'));
      open.push(() => rmSync(join(modules, 'node')));
    }
    // The demo on one of them is enough: it costs more than the rest of this file.
    const running = old ? (await started(node)).running : jobwire(node, ['start', '--port', '0']);
    await running.printed(old ? /account\.baselined/ : /job\.status_changed/);
    expect(running.out()).not.toMatch(/in memory/);
    // Like a terminal: Ctrl-C reaches the process group, here only ours, which signals the other.
    running.child.kill('SIGTERM');
    const ended = await running.ended;
    expect(ended).toMatchObject({ code: 0, err: '' });
  });
});
