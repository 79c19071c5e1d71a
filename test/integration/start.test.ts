import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { Webhook } from 'standardwebhooks';
import { afterEach, expect, test } from 'vitest';
import { startSandbox } from '../../local/sandbox/server.ts';
import { createWorld } from '../../local/sandbox/world/world.ts';

const KEY = 'a-key-for-the-tests-only';
const SECRET = `whsec_${Buffer.alloc(32, 9).toString('base64')}`;
const open: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of open.splice(0).reverse()) await close();
});

/** A started program: its lines, and how it ended. */
interface Started {
  readonly child: ChildProcess;
  readonly lines: string[];
  readonly ended: Promise<number | null>;
  /** The first line, past or future, that fits. */
  line(pattern: RegExp): Promise<string>;
}

function start(args: string[], env: Record<string, string> = {}): Started {
  const child = spawn(process.execPath, ['local/main.ts', ...args], {
    env: { ...process.env, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const lines: string[] = [];
  const waiting = new Set<(line: string) => void>();
  for (const stream of [child.stdout, child.stderr]) {
    createInterface({ input: stream }).on('line', (line) => {
      lines.push(line);
      for (const look of waiting) look(line);
    });
  }
  const ended = once(child, 'close').then(([code]) => code as number | null);
  open.push(async () => {
    child.kill('SIGKILL');
    await ended;
  });
  return {
    child,
    lines,
    ended,
    line(pattern) {
      const past = lines.find((line) => pattern.test(line));
      if (past !== undefined) return Promise.resolve(past);
      return new Promise((resolve, reject) => {
        const look = (line: string): void => {
          if (!pattern.test(line)) return;
          waiting.delete(look);
          resolve(line);
        };
        waiting.add(look);
        void ended.then(() =>
          reject(new Error(`The program ended without ${pattern}:\n${lines.join('\n')}`)),
        );
      });
    },
  };
}

test.each([
  [['--config', 'no-such-file.json'], "The configuration file no-such-file.json can't be read."],
  [['--prot', '1'], /^Unknown option '--prot'\. Usage: npm start/],
  [['--port', 'x'], '--port must be a whole number from 0 to 65535.'],
])('%s: one clear sentence and exit code 1', async (args, sentence) => {
  const started = start(args);
  expect(await started.ended).toBe(1);
  expect(started.lines).toHaveLength(1);
  expect(started.lines[0]).toMatch(sentence);
});

test('a taken port: one clear sentence and exit code 1', async () => {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  open.push(() => server.close());
  const { port } = server.address() as AddressInfo;
  const started = start(['--port', String(port)]);
  expect(await started.ended).toBe(1);
  expect(started.lines).toEqual([`Port ${port} is in use; stop what listens there, or choose another one.`]);
});

/** A sandbox with one account, a receiver, and a configuration for both. */
async function configured() {
  const folder = mkdtempSync(join(tmpdir(), 'jobwire-test-'));
  open.push(() => rmSync(folder, { recursive: true, force: true }));
  const world = createWorld({ now: Date.now });
  const account = world.addAccount({ region: 'us', name: 'acme' });
  const sandbox = await startSandbox({ world });
  open.push(() => sandbox.stop());
  const received: { id: string; type: string; job: string }[] = [];
  const heard = new Set<() => void>();
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const body = Buffer.concat(chunks).toString();
      new Webhook(SECRET).verify(body, request.headers as Record<string, string>);
      const { id, type, subject } = JSON.parse(body) as { id: string; type: string; subject?: string };
      received.push({ id, type, job: subject?.slice(5) ?? '' });
      response.writeHead(204).end();
      for (const hear of heard) hear();
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  open.push(() => {
    server.closeAllConnections();
    return new Promise((resolve) => server.close(resolve));
  });
  const file = join(folder, 'jobwire.json');
  const config = {
    port: 0,
    dataDir: join(folder, 'data'),
    apiKey: 'env:JOBWIRE_TEST_KEY',
    regions: { us: { baseUrl: sandbox.apiUrl('us'), authUrl: sandbox.authUrl('us'), realm: 'us' } },
    accounts: [
      {
        id: 'acme',
        region: 'us',
        clientId: account.clientId,
        clientSecret: account.clientSecret,
        pollIntervalSeconds: 1,
      },
    ],
    endpoints: [
      {
        id: 'erp',
        url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
        secret: SECRET,
        accounts: ['acme'],
        types: ['job.*'],
      },
    ],
    webhooks: { allowPrivateNetworks: true, retrySeconds: [1] },
    departures: { confirmAfterSeconds: 2 },
    settling: { scheduleSeconds: [1], days: 1 },
  };
  writeFileSync(file, JSON.stringify(config));
  return {
    folder,
    file,
    config,
    account,
    received,
    write: (changed: object) => writeFileSync(file, JSON.stringify(changed)),
    start: () => start(['--config', file], { JOBWIRE_TEST_KEY: KEY }),
    /** Waits until a webhook for this was received. */
    async got(type: string, job: number) {
      const found = () => received.some((event) => event.type === type && event.job === String(job));
      while (!found()) {
        await new Promise<void>((resolve) => {
          const hear = () => {
            heard.delete(hear);
            resolve();
          };
          heard.add(hear);
        });
      }
    },
  };
}

test('after kill -9 and a restart nothing is announced twice, and what happened meanwhile is not missed', {
  timeout: 90_000,
}, async () => {
  const setup = await configured();
  const [moving, leaving, cancelled] = [
    setup.account.createJob({ status: 'Scheduled' }),
    setup.account.createJob({ status: 'Scheduled' }),
    setup.account.createJob({ status: 'Scheduled' }),
  ] as const;
  const first = setup.start();
  await first.line(/account\.baselined/);
  setup.account.setStatus(moving, 'In production');
  await setup.got('job.status_changed', moving);
  first.child.kill('SIGKILL');
  await first.ended;

  // While nobody looks: one job is dispatched and closed, one cancelled, one created.
  setup.account.dispatch(leaving, { tracking: [{ trackingNumber: 'T1', trackingLink: null }] });
  setup.account.close(leaving);
  setup.account.cancel(cancelled);
  const created = setup.account.createJob({ status: 'Scheduled' });

  const second = setup.start();
  await Promise.all([
    setup.got('job.dispatched', leaving),
    setup.got('job.closed', leaving),
    setup.got('job.tracking_added', leaving),
    setup.got('job.cancelled', cancelled),
    setup.got('job.created', created),
  ]);
  const said = new Map(setup.received.map((event) => [event.id, `${event.type} ${event.job}`]));
  const dispatches = [...said.values()].filter((event) => event === `job.dispatched ${leaving}`);
  expect(dispatches).toHaveLength(1);
  expect(new Set(said.values()).size, 'no event under two ids').toBe(said.size);

  const [, url] = /HTTP API +(\S+)/.exec(await second.line(/HTTP API/)) ?? [];
  const feed = (await (
    await fetch(`${url}/v1/accounts/acme/events?limit=500`, { headers: { authorization: `Bearer ${KEY}` } })
  ).json()) as { events: { sequence: string; type: string }[] };
  expect(feed.events.map(({ sequence }) => Number(sequence))).toEqual(feed.events.map((_, at) => at + 1));
  expect(feed.events.filter(({ type }) => type === 'account.baselined')).toHaveLength(1);
  second.child.kill('SIGTERM');
  expect(await second.ended).toBe(0);
});

test('a data folder in use: one clear sentence and exit code 1; secrets are never shown', {
  timeout: 60_000,
}, async () => {
  const setup = await configured();
  const first = setup.start();
  await first.line(/Live events/);
  const second = setup.start();
  expect(await second.ended).toBe(1);
  expect(second.lines).toHaveLength(1);
  expect(second.lines[0]).toMatch(/^The data folder \S+ is in use by another Jobwire; /);
  const shown = first.lines.join('\n');
  for (const secret of [KEY, SECRET, setup.account.clientSecret]) expect(shown).not.toContain(secret);
});

test('a setting that is wrong is named, before anything is started', async () => {
  const setup = await configured();
  setup.write({ ...setup.config, settling: { days: 'seven' } });
  const wrong = setup.start();
  expect(await wrong.ended).toBe(1);
  expect(wrong.lines).toEqual([`${setup.file}: settling.days must be a number of days.`]);
});

test('an account that vanishes from the configuration is paused and keeps its log', {
  timeout: 60_000,
}, async () => {
  const setup = await configured();
  setup.account.createJob({});
  const first = setup.start();
  await first.line(/account\.baselined/);
  first.child.kill('SIGTERM');
  await first.ended;
  setup.write({ ...setup.config, accounts: [], endpoints: [] });
  const second = setup.start();
  const [, url] = /HTTP API +(\S+)/.exec(await second.line(/HTTP API/)) ?? [];
  await second.line(/Live events/);
  const read = async (path: string) =>
    (await fetch(`${url}/v1/accounts/acme/${path}`, { headers: { authorization: `Bearer ${KEY}` } })).json();
  expect(await read('status')).toMatchObject({ state: 'paused' });
  expect(await read('events')).toMatchObject({ events: [{ type: 'account.baselined' }] });
});
