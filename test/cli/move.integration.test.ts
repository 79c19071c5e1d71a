/** `jobwire accounts move` and `jobwire cells` with two real Jobwires at one simulated ordering API, while its jobs change. */
import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it, test } from 'vitest';
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
  const profilesFile = join(home, 'jobwire', 'profiles.json');
  writeFileSync(profilesFile, JSON.stringify({ current: 'former', profiles }), {
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
    ...{ acme, jobs, proxy, start, credentials, profiles, profilesFile },
    former: createClient({ url: formerUrl, key: KEY }),
    target: createClient({ url: targetUrl, key: KEY }),
  };
}

/** Starts a proxy that calls `onImport` before it passes an import. If that throws, the response is 503. */
async function startProxy(to: string) {
  const state = { onImport: async (_number: number) => {}, imports: 0 };
  const server = createServer(async (incoming, response) => {
    if (incoming.url?.endsWith('/import')) {
      state.imports += 1;
      try {
        await state.onImport(state.imports);
      } catch {
        response.writeHead(503).end();
        return;
      }
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

  // Repeating the command only sets the given credentials.
  const wrong = { clientId: acme.clientId, clientSecret: 'wrong' };
  await target.put('/v1/accounts/{id}/credentials', { ...at, body: wrong });
  const third = await start(...move).ended;
  expect(third, third.err).toMatchObject({ code: 0 });
  expect(await target.get('/v1/accounts/{id}', at)).toMatchObject({ paused: false, pollIntervalSeconds: 1 });
  expect(await target.post('/v1/accounts/{id}/test', at)).toMatchObject({ ok: true });
  expect(relevant(await readBoth()).sort()).toEqual([...expected].sort());

  const cancelled = await start(...move, '--cancel').ended;
  expect(cancelled).toMatchObject({ code: 1 });
  expect(cancelled.err).toMatch(
    /^The move is complete: acme is in target\. To go back, which loses its events/,
  );

  // The directory.
  const found = await start('cells', 'find', 'acme', '--json').ended;
  expect(toDocuments(found.out)).toEqual([
    expect.objectContaining({ cell: 'former', account: 'acme', state: 'moved', movedTo: proxy.url }),
    expect.objectContaining({ cell: 'target', account: 'acme', state: 'active', movedTo: null }),
  ]);
  const listed = await start('cells', 'list', '--json').ended;
  expect(listed.out).toBe(found.out);
}, 240_000);

it('lists an account once if several profiles are of its cell', async () => {
  const { former, target } = site.profiles;
  const profiles = { former, reader: former, slash: { ...former, url: `${former.url}/` }, target };
  writeFileSync(site.profilesFile, JSON.stringify({ current: 'former', profiles }));
  const added = await site.start('accounts', 'add', 'once', ...site.credentials).ended;
  expect(added, added.err).toMatchObject({ code: 0 });
  const found = await site.start('cells', 'find', 'once', '--json').ended;
  writeFileSync(site.profilesFile, JSON.stringify({ current: 'former', profiles: site.profiles }));
  expect(found, found.err).toMatchObject({ code: 0 });
  expect(toDocuments(found.out)).toMatchObject([{ cell: 'former', account: 'once', state: 'active' }]);
});

describe('a move that can’t succeed', () => {
  const at = { params: { path: { id: 'bakery' } } };
  beforeAll(async () => {
    const added = await site.start('accounts', 'add', 'bakery', ...site.credentials).ended;
    expect(added, added.err).toMatchObject({ code: 0 });
  });
  const move = (...args: string[]) => site.start('accounts', 'move', 'bakery', '--to', ...args).ended;
  const expectUnchanged = async ({ err }: { err: string }) => {
    expect(err).toContain('The move has not begun. bakery is unchanged.');
    expect(await site.former.get('/v1/accounts/{id}', at)).toMatchObject({ paused: false, move: null });
  };

  it('changes nothing if the other cell can’t use the credentials', async () => {
    const wrong = ['--client-id', site.acme.clientId, '--client-secret-env', 'PATH'];
    const ended = await move('target', ...wrong);
    expect(ended, ended.err).toMatchObject({ code: 1 });
    expect(ended.err).toContain('target can’t use the credentials.');
    await expectUnchanged(ended);
  });

  it('changes nothing if the API key of the other cell lacks permission', async () => {
    const { secret } = await site.target.post('/v1/keys', { body: { role: 'operate', name: 'weak' } });
    const profiles = { ...site.profiles, weak: { url: site.proxy.url, key: secret } };
    writeFileSync(site.profilesFile, JSON.stringify({ current: 'former', profiles }));
    const ended = await move('weak', ...site.credentials);
    writeFileSync(site.profilesFile, JSON.stringify({ current: 'former', profiles: site.profiles }));
    expect(ended, ended.err).toMatchObject({ code: 5 });
    await expectUnchanged(ended);
  });

  it('prints the state and the command that goes back if the other cell rejects the import', async () => {
    const ended = await move('target', '--secret-ref', 'nonexisting');
    expect(ended, ended.err).toMatchObject({ code: 3 });
    expect(ended.err).toContain('bakery is paused in the former cell');
    expect(ended.err).toContain('target has no data of it.');
    expect(ended.err).toMatch(/ accounts move bakery --to target --cancel$/m);
    const found = await site.start('cells', 'find', 'bakery').ended;
    expect(found, found.err).toMatchObject({ code: 1 });
    expect(found.err).toContain(`for a move to ${site.proxy.url}, but no profile of that cell lists it.`);
    const cancelled = await move('target', '--cancel', '--json');
    expect(cancelled, cancelled.err).toMatchObject({ code: 0 });
    expect(JSON.parse(cancelled.out)).toMatchObject({ id: 'bakery', paused: true, move: null });
    expect(await site.start('accounts', 'resume', 'bakery').ended).toMatchObject({ code: 0 });
    expect(await site.former.get('/v1/accounts/{id}', at)).toMatchObject({ paused: false, move: null });
  });

  it('prints the commands that go back if the other cell has a part of the data', async () => {
    const { proxy, start } = site;
    await expect
      .poll(async () => (await site.former.get('/v1/accounts/{id}/status', at)).openJobs, { timeout: 60_000 })
      .toBeGreaterThan(JOBS / 2);
    proxy.imports = 0;
    proxy.onImport = async (number) => {
      if (number === 2) throw new Error('The response is 503.');
    };
    const ended = await move('target', ...site.credentials, '--profile', 'former');
    proxy.onImport = async () => {};
    expect(ended, ended.err).toMatchObject({ code: 4 });
    expect(ended.err).toContain('bakery is paused in the former cell');
    expect(ended.err).toMatch(/target has a part of its data/);
    const deletion = ['accounts', 'delete', 'bakery', '--yes', '--profile', 'target'];
    const cancellation = ['accounts', 'move', 'bakery', '--to', 'target', '--cancel', '--profile', 'former'];
    expect(ended.err).toContain(` ${deletion.join(' ')}\nThen run: `);
    expect(ended.err).toMatch(new RegExp(` ${cancellation.join(' ')}$`, 'm'));
    const early = await start(...cancellation).ended;
    expect(early).toMatchObject({ code: 1 });
    expect(early.err).toContain(` ${deletion.join(' ')}\nThen run: `);
    expect(early.err.trim()).toMatch(/bakery exists in target\. Delete it there first\.$/);
    // The state is also printed if the other cell does not respond.
    const profiles = { ...site.profiles, target: { url: proxy.url, key: 'wrong' } };
    writeFileSync(site.profilesFile, JSON.stringify({ current: 'former', profiles }));
    const unauthorized = await move('target', ...site.credentials, '--profile', 'former');
    writeFileSync(site.profilesFile, JSON.stringify({ current: 'former', profiles: site.profiles }));
    expect(unauthorized, unauthorized.err).toMatchObject({ code: 5 });
    expect(unauthorized.err).toContain('bakery is paused in the former cell');
    expect(unauthorized.err).toMatch(new RegExp(` ${cancellation.join(' ')}$`, 'm'));
    for (const back of [deletion, cancellation, ['accounts', 'resume', 'bakery']]) {
      const { code, err } = await start(...back).ended;
      expect(code, err).toBe(0);
    }
    expect(await site.former.get('/v1/accounts/{id}', at)).toMatchObject({ paused: false, move: null });
  }, 120_000);
});
