/** `jobwire accounts move` and `jobwire cells` with two real Jobwires at one simulated ordering API, while its jobs change. */
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createClient } from '../../client/index.ts';
import { binary, KEY, toDocuments } from '../support/cli-site.ts';
import { launch } from '../support/command.ts';
import { builtProgram, configFor, launchJobwire, startSandbox, writeConfig } from '../support/jobwire.ts';
import { sized } from '../support/runs.ts';

/** Enough for an export of several pages. */
const JOBS = 400;
const CHANGE_EVERY_MS = 40;

const ends: (() => unknown)[] = [];
const end = (stop: () => unknown) => ends.push(stop);
afterAll(async () => {
  for (const stop of ends.reverse()) await stop();
});

let site: Awaited<ReturnType<typeof startSite>>;
beforeAll(async () => {
  site = await startSite();
}, 120_000);

/** Starts two cells of one region. Requests to the API of the second one pass a proxy. */
async function startSite() {
  const { sandbox, world } = await startSandbox({}, end);
  const acme = world.addAccount({ region: 'us', name: 'acme' });
  const jobs = Array.from({ length: JOBS }, () =>
    acme.createJob({ status: 'Scheduled', description: `A job with a description ${'x'.repeat(600)}` }),
  );
  const cells = await Promise.all(
    ['former', 'target'].map(async () => {
      const { regions } = configFor(sandbox, [acme]);
      const file = writeConfig({ regions, accounts: [], port: 0, apiKey: KEY }, end);
      const running = launchJobwire(['--config', file], { command: builtProgram(), end });
      return (await running.printed(/HTTP API +(\S+)/)).trim();
    }),
  );
  const [formerUrl = '', targetUrl = ''] = cells;
  const proxy = await startProxy(targetUrl);
  const home = mkdtempSync(join(tmpdir(), 'jobwire-move-'));
  end(() => rmSync(home, { recursive: true, force: true }));
  mkdirSync(join(home, 'jobwire'));
  const profiles = { former: { url: formerUrl, key: KEY }, target: { url: proxy.url, key: KEY } };
  writeFileSync(join(home, 'jobwire', 'profiles.json'), JSON.stringify({ current: 'former', profiles }), {
    mode: 0o600,
  });
  const env = {
    XDG_CONFIG_HOME: home,
    JOBWIRE_URL: undefined,
    JOBWIRE_API_KEY: undefined,
    SECRET: acme.clientSecret,
  };
  const start = (...args: string[]) => {
    const running = launch([process.execPath, binary, ...args], { env });
    end(() => void running.child.kill('SIGKILL'));
    return running;
  };
  const credentials = ['--client-id', acme.clientId, '--client-secret-env', 'SECRET'];
  return {
    ...{ acme, jobs, proxy, start, credentials },
    former: createClient({ url: formerUrl, key: KEY }),
    target: createClient({ url: targetUrl, key: KEY }),
  };
}

/** Starts a proxy that calls `onImport` before it passes an import. */
async function startProxy(to: string) {
  const state = { onImport: async (_number: number) => {}, imports: 0 };
  const server = createServer(async (incoming, response) => {
    if (incoming.url?.endsWith('/import')) {
      state.imports += 1;
      await state.onImport(state.imports);
    }
    const { host: _, ...headers } = incoming.headers;
    const passed = request(
      new URL(incoming.url ?? '', to),
      { method: incoming.method, headers },
      (answer) => {
        response.writeHead(answer.statusCode ?? 500, answer.headers);
        answer.pipe(response);
      },
    );
    passed.on('error', () => response.destroy());
    incoming.pipe(passed);
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
  end(() => server.close());
  return Object.assign(state, { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` });
}

/** Returns `<type> <job>` of all job events of a log, and the other types. */
async function readLog(client: ReturnType<typeof createClient>) {
  const events: { id: string; type: string; job: string }[] = [];
  for (let after: string | undefined; ; ) {
    const page = await client.get('/v1/accounts/{id}/events', {
      params: { path: { id: 'acme' }, query: { limit: 1000, ...(after !== undefined && { after }) } },
    });
    for (const { id, type, subject } of page.events as { id: string; type: string; subject?: string }[])
      events.push({ id, type, job: /\d+$/.exec(subject ?? '')?.[0] ?? '' });
    if (page.next === page.head) return events;
    after = page.next;
  }
}

test('moves an account between two cells while jobs change: no change is missed or emitted twice, also after an interruption', async () => {
  const { acme, jobs, proxy, former, target, start, credentials } = site;
  const at = { params: { path: { id: 'acme' } } };
  const added = await start('accounts', 'add', 'acme', ...credentials, '--poll-interval', '1').ended;
  expect(added, added.err).toMatchObject({ code: 0 });
  await expect
    .poll(async () => (await former.get('/v1/accounts/{id}/status', at)).openJobs, { timeout: 60_000 })
    .toBe(JOBS);

  // Each of these jobs is changed once, so that no poll can combine two changes.
  const expected: string[] = [];
  const waiting = jobs.slice(0, sized(160, JOBS));
  const changing = setInterval(() => {
    const job = waiting.shift();
    if (job === undefined) return;
    const isDispatched = waiting.length % 3 === 0;
    if (isDispatched) acme.dispatch(job);
    else acme.setStatus(job, 'In production');
    expected.push(`${isDispatched ? 'job.dispatched' : 'job.status_changed'} ${job}`);
    if (waiting.length % 4 === 0) expected.push(`job.created ${acme.createJob({ status: 'Scheduled' })}`);
  }, CHANGE_EVERY_MS);
  end(() => clearInterval(changing));
  await expect.poll(async () => (await readLog(former)).length, { timeout: 60_000 }).toBeGreaterThan(10);

  // The process is killed after the first page.
  const move = ['accounts', 'move', 'acme', '--profile', 'former', '--to', 'target', ...credentials];
  const interrupted = start(...move);
  proxy.onImport = async (number) => {
    if (number === 2) {
      interrupted.child.kill('SIGKILL');
      await interrupted.ended;
    }
  };
  const stopped = await interrupted.ended;
  expect(stopped.code).not.toBe(0);
  expect(proxy.imports, stopped.err).toBe(2);
  proxy.onImport = async () => {};
  expect(await former.get('/v1/accounts/{id}', at)).toMatchObject({ paused: true, move: { complete: true } });
  const before = await readLog(former);
  await expect(former.post('/v1/accounts/{id}/resume', at)).rejects.toThrow('was moved to');

  const again = await start(...move).ended;
  expect(again, again.err).toMatchObject({ code: 0 });
  // The printed command has the profile that was given.
  expect(again.err).toMatch(/ accounts delete acme --yes --profile former$/m);
  expect(proxy.imports).toBeGreaterThanOrEqual(4);
  await expect.poll(() => waiting.length, { timeout: 60_000 }).toBe(0);
  clearInterval(changing);
  const key = ({ type, job }: { type: string; job: string }) => `${type} ${job}`;
  const isCounted = ({ type }: { type: string }) =>
    ['job.created', 'job.status_changed', 'job.dispatched'].includes(type);
  const readBoth = async () => [...(await readLog(former)), ...(await readLog(target))];
  await expect
    .poll(
      async () => {
        const found = new Set(relevant(await readBoth()));
        return expected.filter((one) => !found.has(one));
      },
      { timeout: 60_000 },
    )
    .toEqual([]);
  expect(relevant(await readBoth()).sort()).toEqual([...expected].sort());

  function relevant(events: Awaited<ReturnType<typeof readLog>>): string[] {
    // A dispatch changes the status too.
    const dispatched = new Set(events.filter(({ type }) => type === 'job.dispatched').map(({ job }) => job));
    return events
      .filter(isCounted)
      .filter(({ type, job }) => type !== 'job.status_changed' || !dispatched.has(job))
      .map(key);
  }

  // The former log ends, and the new one has a later epoch.
  expect(await readLog(former)).toEqual(before);
  const after = await readLog(target);
  expect(after[0]?.id.split('.')[1]?.localeCompare(before[0]?.id.split('.')[1] ?? '')).toBe(1);
  expect(after.map(({ type }) => type)).not.toContain('account.baselined');

  // Repeating the command changes nothing.
  const third = await start(...move).ended;
  expect(third, third.err).toMatchObject({ code: 0 });
  expect(await target.get('/v1/accounts/{id}', at)).toMatchObject({ paused: false, pollIntervalSeconds: 1 });
  expect(relevant(await readBoth()).sort()).toEqual([...expected].sort());

  // The directory.
  const found = await start('cells', 'find', 'acme', '--json').ended;
  expect(toDocuments(found.out)).toEqual([
    expect.objectContaining({ cell: 'former', account: 'acme', state: 'moved', movedTo: proxy.url }),
    expect.objectContaining({ cell: 'target', account: 'acme', state: 'active', movedTo: null }),
  ]);
  const listed = await start('cells', 'list', '--json').ended;
  expect(listed.out).toBe(found.out);
}, 240_000);
