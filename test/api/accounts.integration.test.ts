/** The life of an account through the HTTP API, on the self-hosted process with a sandbox. */
import { createAdaptorServer } from '@hono/node-server';
import { afterEach, expect, test } from 'vitest';
import { startHost } from '../../local/host.ts';
import { createApi } from '../../shared/api/app.ts';
import { createIdempotency } from '../../shared/api/idempotency.ts';
import { createKeyring } from '../../shared/api/keys.ts';
import { parseConfig } from '../../shared/config.ts';
import { startSandbox } from '../support/jobwire.ts';
import { testDynamo } from '../support/tables.ts';

const KEY = 'correct-horse-battery-staple';
const open: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of open.splice(0).reverse()) await close();
});

// biome-ignore lint/suspicious/noExplicitAny: responses of all shapes; each test reads its own fields
type Body = any;

async function start() {
  const { sandbox, world } = await startSandbox();
  const dynamo = testDynamo();
  const [table, history] = [await dynamo.makeTable(), await dynamo.makeHistoryTable()];
  const faults: unknown[] = [];
  const said: string[] = [];
  const host = await startHost({
    config: parseConfig(
      {
        regions: { us: { baseUrl: sandbox.apiUrl('us'), authUrl: sandbox.authUrl('us'), realm: 'us' } },
        accounts: [],
      },
      {},
    ),
    ...{ table, history, secretKey: Buffer.alloc(32, 1), publicUrl: 'http://jobwire.example' },
    ...{ exclusive: true, tickMs: 50 },
    onPoll: (report) => said.push(JSON.stringify(report)),
    onFault: (what, cause) => faults.push([what, cause]),
  });
  open.push(() => host.stop(2_000));
  const api = createApi({
    ...{
      table,
      log: host.log,
      growth: host.growth,
      deliveries: host.deliveries,
      now: Date.now,
      regions: ['us'],
    },
    keyring: createKeyring({ table, now: Date.now, bootstrap: KEY }),
    manage: {
      idempotency: createIdempotency({ table, now: Date.now }),
      accounts: host.accounts,
      endpoints: host.endpoints,
    },
    onError: (cause) => faults.push(cause),
    onAnswer: (...line) => said.push(JSON.stringify(line)),
  });
  const server = createAdaptorServer({ fetch: api.fetch });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  open.push(() => {
    if ('closeAllConnections' in server) server.closeAllConnections();
    return new Promise((resolve) => server.close(resolve));
  });
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  async function ask(method: string, path: string, body?: unknown, headers: object = {}) {
    const response = await fetch(`http://127.0.0.1:${address && (address as { port: number }).port}${path}`, {
      method,
      headers: {
        authorization: `Bearer ${KEY}`,
        ...(body ? { 'content-type': 'application/json' } : {}),
        ...headers,
      },
      ...(body ? { body: JSON.stringify(body) } : {}),
    });
    const text = await response.text();
    said.push(text);
    return {
      status: response.status,
      headers: response.headers,
      body: (text === '' ? undefined : JSON.parse(text)) as Body,
    };
  }
  return { world, ask, faults, said };
}

test('a second account with the same credentials is created with a warning that names both', async () => {
  const { ask, said } = await start();
  const create = async (id: string, clientId: string) =>
    (
      await ask('POST', '/v1/accounts', {
        id,
        credentials: { clientId, clientSecret: `of ${id}` },
        paused: true,
      })
    ).body.warnings;
  expect(await create('acme', 'client-7')).toEqual([]);
  expect(await create('globex', 'client-8')).toEqual([]);
  expect(await create('acme-2', 'client-7')).toEqual([
    'The accounts "acme" and "acme-2" in region us have the same credentials, so each of them reports the same jobs.',
  ]);
  const rotated = { clientId: 'client-8', clientSecret: 'of acme' };
  expect((await ask('PUT', '/v1/accounts/acme/credentials', rotated)).status).toBe(200);
  expect(await create('globex-2', 'client-8')).toEqual([
    'The accounts "acme", "globex" and "globex-2" in region us have the same credentials, so each of them reports the same jobs.',
  ]);
  expect(said.join('\n')).not.toMatch(/client-[78]|of acme/);
});

test('an account is tested, created, followed, paused, changed, given new credentials and deleted; its secrets are never returned', {
  timeout: 60_000,
}, async () => {
  const { world, ask, faults, said } = await start();
  const upstream = world.addAccount({ region: 'us', name: 'globex' });
  const job = upstream.createJob({ status: 'Scheduled' });
  const credentials = { clientId: upstream.clientId, clientSecret: upstream.clientSecret };
  const wrong = { ...credentials, clientSecret: 'wr0ng-client-secret' };
  const account = '/v1/accounts/globex';

  // Before it exists.
  const good = await ask('POST', '/v1/credentials/test', { credentials });
  expect([good.status, good.body.ok, good.body.steps.map(({ step }: Body) => step)]).toEqual([
    200,
    true,
    ['token', 'identity', 'page'],
  ]);
  const bad = await ask('POST', '/v1/credentials/test', { credentials: wrong });
  expect([bad.status, bad.body.ok, bad.body.steps.at(-1).step]).toEqual([200, false, 'token']);
  expect((await ask('GET', account)).status).toBe(404);

  // Created, and polled at once.
  const input = { id: 'globex', credentials, pollIntervalSeconds: 1 };
  const made = await ask('POST', '/v1/accounts', input);
  expect([made.status, made.headers.get('location')]).toEqual([201, account]);
  expect((await ask('POST', '/v1/accounts', input)).status, 'the id is taken').toBe(409);
  /** The next event of a type, after a cursor. */
  const awaited = async (type: string, after: string): Promise<Body> => {
    for (let asks = 0, from = after; asks < 10; asks += 1) {
      const { body } = await ask('GET', `${account}/events?types=${type}&after=${from}&wait=5`);
      if (body.events.length > 0) return body;
      from = body.next;
    }
    throw new Error(`${type} never came.`);
  };
  const baselined = await awaited('account.baselined', '0');
  upstream.setStatus(job, 'In production');
  const moved = await awaited('job.status_changed', baselined.next);
  expect(moved.events[0].data.job.jobNumber).toBe(job);
  expect((await ask('GET', `${account}/status`)).body).toMatchObject({ state: 'tracking', openJobs: 1 });
  expect((await ask('GET', `${account}/jobs/${job}`)).body.job.status).toBe('In production');
  expect((await ask('POST', `${account}/test`)).body).toMatchObject({ ok: true, openJobs: 1 });

  // Paused and changed, with its ETag.
  const paused = await ask('POST', `${account}/pause`);
  expect([paused.status, paused.body.paused]).toEqual([200, true]);
  expect((await ask('GET', `${account}/status`)).body.state).toBe('paused');
  const etag = { 'if-match': paused.headers.get('etag') };
  const changed = await ask('PATCH', account, { pollIntervalSeconds: 2 }, etag);
  expect([changed.status, changed.body.pollIntervalSeconds]).toEqual([200, 2]);
  expect((await ask('PATCH', account, { pollIntervalSeconds: 3 }, etag)).status).toBe(412);

  // Invalid credentials are reported, and valid ones work at once.
  expect((await ask('PUT', `${account}/credentials`, wrong)).status).toBe(200);
  expect((await ask('POST', `${account}/test`)).body.ok).toBe(false);
  expect((await ask('PUT', `${account}/credentials`, credentials)).status).toBe(200);
  expect((await ask('POST', `${account}/test`)).body.ok).toBe(true);
  upstream.setStatus(job, 'Printing');
  expect((await ask('POST', `${account}/resume`)).body.paused).toBe(false);
  await awaited('job.status_changed', moved.next);

  // Deleted with all of its data; the id can be reused.
  const first = await ask('DELETE', account);
  let deleted = first;
  while (deleted.status === 202) deleted = await ask('DELETE', account);
  // The tick of the host may complete the first request.
  expect(first.status === 202 ? [204, 404] : [204]).toContain(deleted.status);
  for (const rest of ['', '/status', '/jobs', '/events', '/open-jobs']) {
    expect([rest, (await ask('GET', account + rest)).status]).toEqual([rest, 404]);
  }
  expect((await ask('GET', '/v1/accounts')).body).toEqual({ accounts: [], next: null });

  expect(faults).toEqual([]);
  const all = said.join('\n');
  for (const secret of [upstream.clientSecret, wrong.clientSecret, KEY]) expect(all).not.toContain(secret);
});
