/**
 * Endpoints over HTTP: permissions, idempotent repetition, and the effects of requests.
 * One file: its tests share the HTTP rig of two regions with receivers.
 */
import { randomUUID } from 'node:crypto';
import { createAdaptorServer } from '@hono/node-server';
import { Webhook } from 'standardwebhooks';
import { afterEach, describe, expect, test } from 'vitest';
import { registerAccount } from '../../shared/accounts/accounts.ts';
import { createApi } from '../../shared/api/app.ts';
import type { Role } from '../../shared/api/key-input.ts';
import { createKey, OPERATOR } from '../../shared/api/keys.ts';
import { routes } from '../../shared/api/routes/all.ts';
import { drainSink } from '../../shared/delivery/drain.ts';
import { newSigningSecret } from '../../shared/delivery/signing-secrets.ts';
import { registerSink, type SinkRecord } from '../../shared/delivery/sink.ts';
import { wakeSinks } from '../../shared/delivery/wakes.ts';
import { createEventLog } from '../../shared/log/log.ts';
import { keys } from '../../shared/storage/schema.ts';
import { createMemoryTable } from '../../shared/storage/sqlite-table.ts';
import type { Item, Table } from '../../shared/storage/table.ts';
import { apiParts } from '../support/api.ts';
import { moved, startReceiver } from '../support/delivery-world.ts';

const KEY = 'correct-horse-battery-staple';
const START = Date.parse('2026-03-02T08:00:00Z');
const URL = 'https://erp.example.com/hook';
const HOUR_MS = 3_600_000;

const closers: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

/** Bodies of any answer; each has some of these fields. */
// biome-ignore lint/suspicious/noExplicitAny: responses of all shapes; each test reads its own fields
type Body = any;

type Write = Parameters<Table['write']>[0];

/** The API over real HTTP: accounts `acme` and `other` in `us`, `kiwi` in `nz`; real drains with real sockets. */
async function start(regions = ['us', 'nz']) {
  const clock = { now: START };
  const now = () => clock.now;
  const inner = createMemoryTable();
  /** An action that a test runs before a write. */
  const hooks: { beforeWrite?: (write: Write) => unknown } = {};
  const table: Table = {
    ...inner,
    async write(write) {
      await hooks.beforeWrite?.(write);
      return inner.write(write);
    },
  };
  const parts = apiParts(table, KEY, now);
  const { endpoints } = parts.manage;
  const log = createEventLog(table, { now, newId: randomUUID, schemaBaseUrl: 'http://jobwire.test' });
  for (const [region, account] of [
    ['us', 'acme'],
    ['us', 'other'],
    ['nz', 'kiwi'],
  ] as const) {
    if (!regions.includes(region)) continue;
    const settings = { secretRef: account, pollIntervalSeconds: 60, paused: false };
    await registerAccount(table, log, { region, account, ...settings }, { now: START, epoch: 'e1' });
  }
  const errors: unknown[] = [];
  const api = createApi({ table, log, regions, ...parts, now, onError: (cause) => errors.push(cause) });
  const server = createAdaptorServer({ fetch: api.fetch });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  closers.push(
    () =>
      new Promise((resolve) => {
        server.close(resolve);
        if ('closeAllConnections' in server) server.closeAllConnections();
      }),
  );
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port');

  async function ask(
    method: string,
    path: string,
    { body, key = KEY, headers = {} }: { body?: unknown; key?: string; headers?: object } = {},
  ) {
    const response = await fetch(`http://127.0.0.1:${address && (address as { port: number }).port}${path}`, {
      method,
      headers: {
        authorization: `Bearer ${key}`,
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    const parsed: Body = text === '' ? undefined : JSON.parse(text);
    return { status: response.status, headers: response.headers, text, body: parsed };
  }

  return {
    ...{ clock, table, log, hooks, endpoints, errors, ask, deliveries: parts.deliveries },
    get: (path: string, key?: string) => ask('GET', path, key === undefined ? {} : { key }),
    post: (path: string, body?: unknown, key = KEY) =>
      ask('POST', path, { key, ...(body === undefined ? {} : { body }) }),
    /** A key with a role, for some accounts or for all. */
    async key(role: Role, accounts?: string[]) {
      const made = await createKey({ table, now }, { role, ...(accounts ? { accounts } : {}) }, OPERATOR);
      if (made.kind !== 'created') throw new Error('no key');
      return made.secret;
    },
    /** Creates an endpoint through the API. */
    async make(input: object) {
      const made = await ask('POST', '/v1/endpoints', { body: { url: URL, region: 'us', ...input } });
      expect(made.status, made.text).toBe(201);
      return made.body as { endpoint: { id: string }; secret: string; truncatedAccounts: string[] };
    },
    /** A sink as the configuration or a cell declares it. */
    declare: (record: Partial<SinkRecord> & { id: string }) =>
      registerSink(
        table,
        log,
        { region: 'us', kind: 'webhook', target: URL, accounts: [], types: [], paused: false, ...record },
        [{ region: 'us', account: 'acme' }],
      ),
    /** Appends events of this many jobs, or of the given jobs, and wakes the log's sinks. */
    async say(account: string, jobs: number | number[], region = 'us') {
      const numbers = typeof jobs === 'number' ? Array.from({ length: jobs }, (_, at) => at + 1) : jobs;
      const ref = { region, account };
      const events = numbers.map((job, at) => ({ ...moved(job, `s${at}`), time: clock.now }));
      const appended = await log.append(ref, events);
      if (appended.kind !== 'appended') throw new Error('rejected');
      await wakeSinks(table, ref, appended.head.sequence, clock.now);
    },
    /** One drain, as in a host. */
    async drain(id: string, region = 'us') {
      clock.now += 1000;
      const { open, deliveries } = endpoints;
      return drainSink(
        {
          ...{ table, log, now, newId: randomUUID, open },
          deliveries: deliveries as typeof parts.deliveries,
          random: () => 0.5,
          retrySeconds: [5, 300],
        },
        region,
        id,
        clock.now + 60_000,
      );
    },
  };
}

type Rig = Awaited<ReturnType<typeof start>>;

/** All pages of a list, by its `next`. */
async function pages(rig: Rig, path: string, name: string, key?: string) {
  const all: Body[] = [];
  let next: string | null = null;
  let count = 0;
  do {
    const after: string = next === null ? '' : `&after=${encodeURIComponent(next)}`;
    const { status, text, body } = await rig.get(`${path}${after}`, key);
    expect(status, text).toBe(200);
    all.push(...body[name]);
    next = body.next;
    count += 1;
  } while (next !== null && count < 50);
  return { all, count };
}

describe('an endpoint', () => {
  test('is created, read, listed, changed, paused, resumed and deleted; each answer has its revision', async () => {
    const rig = await start();
    const made = await rig.post('/v1/endpoints', {
      id: 'erp',
      url: URL,
      accounts: ['acme'],
      types: ['job.*'],
      jobFields: { mustDate: true },
      concurrency: 4,
    });
    expect([made.status, made.headers.get('etag'), made.headers.get('location')]).toEqual([
      201,
      '"1"',
      '/v1/endpoints/erp?region=us',
    ]);
    expect(made.body).toEqual({
      endpoint: {
        id: 'erp',
        region: 'us',
        kind: 'webhook',
        url: URL,
        accounts: ['acme'],
        types: ['job.*'],
        orderGroups: [],
        origins: [],
        jobFields: { mustDate: true },
        headers: [],
        concurrency: 4,
        ratePerSecond: null,
        description: null,
        paused: false,
        state: 'active',
        managed: true,
        revision: 1,
        createdAt: '2026-03-02T08:00:00.000Z',
        changedAt: '2026-03-02T08:00:00.000Z',
      },
      secret: expect.stringMatching(/^whsec_/),
      truncatedAccounts: [],
    });
    const { endpoint } = made.body;
    const read = await rig.get(made.headers.get('location') ?? '');
    expect([read.status, read.headers.get('etag'), read.body]).toEqual([200, '"1"', endpoint]);
    expect((await rig.get('/v1/endpoints')).body).toEqual({ endpoints: [endpoint], next: null });

    const changed = await rig.ask('PATCH', '/v1/endpoints/erp', { body: { types: null, description: 'x' } });
    expect([changed.status, changed.headers.get('etag')]).toEqual([200, '"2"']);
    expect(changed.body).toEqual({ ...endpoint, types: [], description: 'x', revision: 2 });
    expect((await rig.post('/v1/endpoints/erp/pause')).body).toMatchObject({ paused: true, revision: 3 });
    expect((await rig.get('/v1/endpoints/erp/health')).body).toMatchObject({ state: 'paused' });
    expect((await rig.post('/v1/endpoints/erp/resume')).body).toMatchObject({ paused: false, revision: 4 });

    const gone = await rig.ask('DELETE', '/v1/endpoints/erp');
    expect([gone.status, gone.text]).toEqual([204, '']);
    expect((await rig.get('/v1/endpoints/erp')).status).toBe(404);
    expect((await rig.get('/v1/endpoints')).body.endpoints).toEqual([]);
  });

  test('never returns its secret again, nor the values of its headers', async () => {
    const rig = await start();
    const headers = { Authorization: 'Bearer t0p-token' };
    const { secret } = await rig.make({ id: 'erp', headers });
    const rotated = await rig.post('/v1/endpoints/erp/rotate-secret', {});
    const texts = [
      await rig.ask('PATCH', '/v1/endpoints/erp', { body: { description: 'x' } }),
      await rig.post('/v1/endpoints/erp/pause'),
      ...(await Promise.all(
        ['', '/erp', '/erp/health', '/erp/deliveries', '/erp/replays'].map((rest) =>
          rig.get(`/v1/endpoints${rest}`),
        ),
      )),
      // Invalid input: the message quotes nothing.
      await rig.post('/v1/endpoints', { url: URL, secret: `${secret}!`, headers }),
    ].map(({ text }) => text);
    for (const text of texts) {
      for (const hidden of [secret, rotated.body.secret, 't0p-token']) expect(text).not.toContain(hidden);
    }
    expect((await rig.get('/v1/endpoints/erp')).body.headers).toEqual(['Authorization']);
  });

  test('is rejected with the invalid field', async () => {
    const rig = await start();
    await rig.make({ id: 'erp' });
    for (const [body, status, field] of [
      [{}, 400, 'url'],
      [{ url: URL, colour: 'red' }, 400, 'colour'],
      [{ url: URL, start: 'tomorrow' }, 400, 'start'],
      [{ url: URL, jobFields: { colour: 'red' } }, 400, 'jobFields.colour'],
      [{ url: URL, types: ['jobs.*'] }, 400, 'types[0]'],
      [{ url: URL, secret: `whsec_${'A'.repeat(43)}` }, 400, 'secret'],
      [{ url: 'ftp://erp.example.com/', region: 'us' }, 422, 'url'],
      [{ url: URL, accounts: ['nobody'] }, 422, 'accounts'],
      [{ url: URL, region: 'us', accounts: ['kiwi'] }, 422, 'accounts'],
      [{ url: URL }, 422, 'region'],
      [{ url: URL, region: 'mars' }, 422, 'region'],
      [{ url: URL, region: 'us', start: { cursors: { acme: 'e1.99' } } }, 422, 'start'],
      [{ url: URL, region: 'us', id: 'erp' }, 409, 'id'],
    ] as const) {
      const { status: got, body: problem, text } = await rig.post('/v1/endpoints', body);
      expect([got, problem.field], text).toEqual([status, field]);
      expect(problem.detail).toMatch(/^[a-z].*\.$/);
    }
  });

  test('gets its region from its accounts, or the only one that is served', async () => {
    const rig = await start();
    const made = await rig.post('/v1/endpoints', { url: URL, accounts: ['kiwi'] });
    expect(made.body.endpoint.region).toBe('nz');
    const single = await start(['us']);
    const only = await single.post('/v1/endpoints', { id: 'erp', url: URL });
    expect([only.body.endpoint.region, only.headers.get('location')]).toEqual(['us', '/v1/endpoints/erp']);
  });

  test('with an id in two regions requires its region', async () => {
    const rig = await start();
    await rig.make({ id: 'erp' });
    await rig.make({ id: 'erp', region: 'nz' });
    const both = await rig.get('/v1/endpoints/erp/health');
    expect([both.status, both.body.field]).toEqual([400, 'region']);
    expect(both.body.detail).toContain('nz, us');
    expect((await rig.get('/v1/endpoints/erp?region=nz')).body.region).toBe('nz');
    expect((await rig.get('/v1/endpoints/erp?region=mars')).status).toBe(404);
    expect((await rig.ask('DELETE', '/v1/endpoints/erp?region=nz')).status).toBe(204);
    expect((await rig.get('/v1/endpoints/erp')).body.region).toBe('us');
  });

  test('is changed only with its current ETag, also after a concurrent change', async () => {
    const rig = await start();
    await rig.make({ id: 'erp' });
    const change = (tag: string) =>
      rig.ask('PATCH', '/v1/endpoints/erp', { body: { concurrency: 2 }, headers: { 'if-match': tag } });
    expect((await change('"7"')).status).toBe(412);
    expect((await rig.ask('DELETE', '/v1/endpoints/erp', { headers: { 'if-match': '"7"' } })).status).toBe(
      412,
    );
    expect((await change('"1"')).status).toBe(200);
    expect((await change('*')).status).toBe(200);
    rig.hooks.beforeWrite = async (write) => {
      if (!('update' in write) || write.update.pk !== 'ENDPOINTS#us') return;
      delete rig.hooks.beforeWrite;
      await rig.post('/v1/endpoints/erp/pause');
    };
    const late = await change('"3"');
    expect([late.status, late.body.type, late.body.field]).toEqual([
      412,
      'urn:jobwire:problem:precondition-failed',
      'If-Match',
    ]);
  });

  test('that another request is changing gets a 409 with Retry-After, and a message that agrees with it', async () => {
    const rig = await start();
    await rig.make({ id: 'erp' });
    await rig.table.write({
      put: { ...keys.endpointLock('us', 'erp'), owner: 'x', until: Number.MAX_SAFE_INTEGER },
    });
    const { status, headers, body } = await rig.ask('PATCH', '/v1/endpoints/erp', {
      body: { types: ['job.*'] },
    });
    expect([status, headers.get('retry-after'), body.detail]).toEqual([
      409,
      '5',
      'Another operation on "erp" is in progress. Retry in a few seconds.',
    ]);
  });

  test('from the configuration can be read and enabled, and is changed there only', async () => {
    const rig = await start();
    await rig.declare({ id: 'erp' });
    expect((await rig.get('/v1/endpoints/erp')).body).toMatchObject({ managed: false, createdAt: null });
    for (const [method, rest, body] of [
      ['PATCH', '', { description: 'x' }],
      ['DELETE', '', undefined],
      ['POST', '/pause', undefined],
      ['POST', '/rotate-secret', {}],
    ] as const) {
      const { status, body: problem } = await rig.ask(method, `/v1/endpoints/erp${rest}`, { body });
      expect([status, problem.type]).toEqual([409, 'urn:jobwire:problem:conflict']);
      expect(problem.detail).toContain('configuration');
    }
    expect((await rig.post('/v1/endpoints/erp/enable')).status).toBe(200);
  });
});

describe('a repeated request', () => {
  const once = (rig: Rig, path: string, body: unknown, idempotencyKey = 'a-key') =>
    rig.ask('POST', path, { body, headers: { 'idempotency-key': idempotencyKey } });
  const input = { url: URL, region: 'us', description: 'made once' };

  test('creates one endpoint, and returns the same id and secret', async () => {
    const rig = await start();
    const [first, second] = [
      await once(rig, '/v1/endpoints', input),
      await once(rig, '/v1/endpoints', input),
    ];
    expect([second.status, second.text]).toEqual([201, first.text]);
    for (const header of ['etag', 'location']) {
      expect(second.headers.get(header)).toBe(first.headers.get(header));
    }
    expect((await rig.get('/v1/endpoints')).body.endpoints).toHaveLength(1);
    const other = await once(rig, '/v1/endpoints', input, 'another-key');
    expect(other.body.endpoint.id).not.toBe(first.body.endpoint.id);
    expect(other.body.secret).not.toBe(first.body.secret);
  });

  test('creates one endpoint wherever the first was interrupted', async () => {
    const ways: Record<string, (write: Write) => boolean> = {
      'before its secrets': (write) => 'put' in write && write.put.pk === 'SECRETS#us',
      'before its cursors': (write) => 'put' in write && write.put.pk.startsWith('CURSORS#'),
    };
    for (const [where, cuts] of Object.entries(ways)) {
      const rig = await start();
      rig.hooks.beforeWrite = (write) => {
        if (!cuts(write)) return;
        delete rig.hooks.beforeWrite;
        throw new Error('cut off');
      };
      expect((await once(rig, '/v1/endpoints', input)).status, where).toBe(500);
      const again = await once(rig, '/v1/endpoints', input);
      expect(again.status, where).toBe(201);
      expect((await rig.get('/v1/endpoints')).body.endpoints, where).toEqual([again.body.endpoint]);
    }

    // It was created, and its answer could not be stored: a repetition returns the same.
    const rig = await start();
    rig.hooks.beforeWrite = (write) => {
      if ('update' in write && write.update.pk.startsWith('IDEMPOTENCY#')) throw new Error('cut off');
    };
    const first = await once(rig, '/v1/endpoints', input);
    delete rig.hooks.beforeWrite;
    rig.clock.now += 61_000;
    const again = await once(rig, '/v1/endpoints', input);
    expect([again.status, again.body]).toEqual([201, first.body]);
    expect((await rig.get('/v1/endpoints')).body.endpoints).toHaveLength(1);
    const signing = await rig.endpoints.secrets.load('us', first.body.endpoint.id);
    expect(signing?.secrets).toEqual([first.body.secret]);
  });

  test('is executed after the first one has ended', async () => {
    const rig = await start();
    await rig.table.write({
      put: { ...keys.endpointLock('us', 'erp'), owner: 'x', until: rig.clock.now + 1000 },
    });
    const busy = await once(rig, '/v1/endpoints', { ...input, id: 'erp' });
    expect([busy.status, busy.headers.get('retry-after')]).toEqual([409, '5']);
    rig.clock.now += 2000;
    expect((await once(rig, '/v1/endpoints', { ...input, id: 'erp' })).status).toBe(201);
  });

  test('creates one new secret, and starts one replay', async () => {
    const rig = await start();
    const { secret } = await rig.make({ id: 'erp' });
    await rig.say('acme', 2);
    rig.hooks.beforeWrite = (write) => {
      if ('update' in write && write.update.pk.startsWith('IDEMPOTENCY#')) throw new Error('cut off');
    };
    const path = '/v1/endpoints/erp';
    const rotated = await once(rig, `${path}/rotate-secret`, {}, 'one');
    const started = await once(rig, `${path}/replays`, { from: 'beginning' }, 'two');
    delete rig.hooks.beforeWrite;
    rig.clock.now += 61_000;
    expect((await once(rig, `${path}/rotate-secret`, {}, 'one')).body.secret).toBe(rotated.body.secret);
    expect((await once(rig, `${path}/replays`, { from: 'beginning' }, 'two')).body.id).toBe(started.body.id);
    expect((await rig.get(`${path}/replays`)).body.replays).toHaveLength(1);
    expect(await rig.endpoints.secrets.load('us', 'erp')).toMatchObject({
      secrets: [rotated.body.secret],
      retiring: [{ secret }],
    });
  });
});

describe('a key', () => {
  /** Every request on one endpoint, with a valid body. */
  const bodies: Record<string, unknown> = {
    updateEndpoint: { description: 'x' },
    resendEvent: { event: 'acme.e1.1' },
    rotateEndpointSecret: {},
    retryParkedEvents: { all: true },
    redeliverEvents: {},
    discardParkedEvents: { all: true },
    startReplay: { from: 'beginning' },
  };
  const endpointRoutes = routes.filter(({ spec }) => spec.path.startsWith('/v1/endpoints/{id}'));
  const askOne = (rig: Rig, { spec }: (typeof routes)[number], id: string, key: string) =>
    rig.ask(spec.method.toUpperCase(), spec.path.replace('{id}', id).replace('{replay}', 'rp-1'), {
      key,
      body: bodies[spec.id],
    });

  test('allows exactly what its role permits', async () => {
    const rig = await start();
    await rig.make({ id: 'erp' });
    const order: readonly Role[] = ['read', 'operate', 'admin'];
    const refused = { read: 0, operate: 0, admin: 0 };
    for (const role of order) {
      const key = await rig.key(role);
      for (const route of endpointRoutes.toReversed()) {
        const needed = order.indexOf(route.spec.role as Role);
        const { status } = await askOne(rig, route, 'erp', key);
        expect(status === 403, `${role} ${route.spec.id}: ${status}`).toBe(order.indexOf(role) < needed);
        if (status === 403) refused[role] += 1;
      }
      const made = await rig.post('/v1/endpoints', { url: URL, region: 'us' }, key);
      expect(made.status).toBe(role === 'admin' ? 201 : 403);
    }
    expect(refused).toEqual({ read: 13, operate: 3, admin: 0 });
  });

  test('for some accounts finds only endpoints that follow no others', async () => {
    const rig = await start();
    await rig.make({ id: 'mine', accounts: ['acme'] });
    await rig.make({ id: 'shared', accounts: ['acme', 'other'] });
    await rig.make({ id: 'all' });
    await rig.declare({ id: 'sns', kind: 'sns', target: 'arn:aws:sns:us-east-1:0:topic' });
    const key = await rig.key('admin', ['acme', 'kiwi']);
    const { all } = await pages(rig, '/v1/endpoints?limit=1&builtIn=true', 'endpoints', key);
    expect(all.map(({ id }) => id)).toEqual(['mine']);
    for (const id of ['shared', 'all', 'sns', 'nobody']) {
      for (const route of endpointRoutes) {
        const { status, body } = await askOne(rig, route, id, key);
        expect([status, body.detail], `${id} ${route.spec.id}`).toEqual([404, 'There is no such endpoint.']);
      }
    }
    expect((await rig.get('/v1/endpoints/mine', key)).status).toBe(200);
  });

  test('for some accounts creates and changes endpoints within them', async () => {
    const rig = await start();
    const key = await rig.key('admin', ['acme', 'kiwi']);
    for (const accounts of [undefined, ['other'], ['acme', 'other']]) {
      const { status, body } = await rig.post('/v1/endpoints', { url: URL, region: 'us', accounts }, key);
      expect([status, body.field], String(accounts)).toEqual([422, 'accounts']);
    }
    const made = await rig.post('/v1/endpoints', { id: 'mine', url: URL, accounts: ['acme'] }, key);
    expect(made.status).toBe(201);
    for (const accounts of [null, ['other'], ['acme', 'other']]) {
      const { status, body } = await rig.ask('PATCH', '/v1/endpoints/mine', { key, body: { accounts } });
      expect([status, body.field], String(accounts)).toEqual([422, 'accounts']);
    }
    expect((await rig.get('/v1/endpoints/mine')).body).toMatchObject({ accounts: ['acme'], revision: 1 });

    // Widened concurrently by another key: its events must not go to another URL then, and the key no longer finds it.
    rig.hooks.beforeWrite = async (write) => {
      if (!('update' in write) || write.update.pk !== 'ENDPOINTS#us') return;
      delete rig.hooks.beforeWrite;
      const item = (await rig.table.get(keys.sink('us', 'mine'))) as Item;
      await rig.table.write({ put: { ...item, accounts: ['acme', 'other'], revision: 2 } });
    };
    const body = { url: 'https://thief.example/' };
    expect((await rig.ask('PATCH', '/v1/endpoints/mine', { key, body })).status).toBe(404);
    expect((await rig.get('/v1/endpoints/mine')).body.url).toBe(URL);
  });

  test('for some accounts cannot choose a queue: the permissions of Jobwire reach those of all customers', async () => {
    const rig = await start();
    const QUEUE = 'arn:aws:sqs:us-east-1:111122223333:jobs.fifo';
    const acme = await rig.key('admin', ['acme']);
    const queue = { id: 'q', region: 'us', kind: 'sqs', url: QUEUE, accounts: ['acme'] };
    expect(await rig.post('/v1/endpoints', queue, acme)).toMatchObject({
      status: 422,
      body: { detail: 'kind must be webhook, because sqs requires an API key for all accounts.' },
    });
    expect(await rig.post('/v1/endpoints', queue)).toMatchObject({
      status: 201,
      body: { secret: null, endpoint: { kind: 'sqs', url: QUEUE, accounts: ['acme'] } },
    });
    const change = (body: object, key: string) => rig.ask('PATCH', '/v1/endpoints/q', { body, key });
    expect((await change({ url: `${QUEUE.replace('jobs', 'others')}` }, acme)).status).toBe(422);
    expect((await change({ types: ['job.*'] }, acme)).status).toBe(200);
    expect((await rig.get('/v1/endpoints', acme)).body.endpoints).toMatchObject([{ id: 'q', kind: 'sqs' }]);
    expect(
      await change({ url: 'https://sqs.us-east-1.amazonaws.com/111122223333/other' }, KEY),
    ).toMatchObject({
      status: 200,
      body: { url: 'arn:aws:sqs:us-east-1:111122223333:other' },
    });
    expect(await change({ url: 'arn:aws:sqs:us-east-1:999999999999:other' }, KEY)).toMatchObject({
      status: 422,
      body: { detail: 'url is not accepted: this test has no such queue.' },
    });
    expect(await rig.post('/v1/endpoints/q/rotate-secret', {})).toMatchObject({
      status: 422,
      body: { detail: 'The endpoint "q" is a queue, and has no signing secret.' },
    });
    expect((await rig.ask('DELETE', '/v1/endpoints/q')).status).toBe(204);
  });

  test('for some accounts cannot read earlier deliveries of an endpoint for other accounts', async () => {
    const rig = await start();
    const receiver = await startReceiver(({ body }) => ({
      status: body.includes('"jobNumber":1,') ? 422 : 204,
    }));
    await rig.make({ id: 'erp', url: receiver.url, accounts: ['acme', 'other'] });
    for (const account of ['acme', 'other']) await rig.say(account, 2);
    expect((await rig.post('/v1/endpoints/erp/replays', { from: 'beginning' })).status).toBe(201);
    // Rejected, retried twice, and dead.
    for (let at = 0; at < 4; at += 1) {
      await rig.drain('erp');
      rig.clock.now += 24 * HOUR_MS;
    }
    await rig.say('acme', [1]);
    await rig.say('other', [1]);
    await rig.drain('erp');
    const key = await rig.key('operate', ['acme']);
    const lists = async (of?: string) => {
      const seen = await Promise.all(
        ['deliveries', 'parked', 'dead', 'replays'].map((name) =>
          pages(rig, `/v1/endpoints/erp/${name}?limit=1`, name, of),
        ),
      );
      return seen.map(({ all }) => JSON.stringify(all));
    };
    for (const text of await lists()) expect(text).toContain('other');
    const item = (await rig.table.get(keys.sink('us', 'erp'))) as Item;
    await rig.table.write({ put: { ...item, accounts: ['acme'] } });
    const theirs = await lists(key);
    for (const text of theirs) expect(text).not.toContain('other');
    for (const text of theirs.slice(0, 3)) expect(text).toContain('acme');
    const [parked] = (await rig.get('/v1/endpoints/erp/parked')).body.parked.filter(
      ({ account }: Body) => account === 'other',
    );
    const discard = (body: object) => rig.post('/v1/endpoints/erp/parked/discard', body, key);
    expect((await discard({ events: [parked.event] })).body).toEqual({
      discarded: 0,
      missing: [parked.event],
    });
    expect((await discard({ all: true })).body).toEqual({ discarded: 1, missing: [] });
    const [replay] = (await rig.get('/v1/endpoints/erp/replays')).body.replays;
    expect((await rig.get(`/v1/endpoints/erp/replays/${replay.id}`, key)).status).toBe(404);
    expect((await rig.post(`/v1/endpoints/erp/replays/${replay.id}/cancel`, undefined, key)).status).toBe(
      404,
    );
    const again = await rig.post('/v1/endpoints/erp/replays', { id: replay.id, from: 'beginning' }, key);
    expect(again.status).toBe(409);
    expect(again.body).not.toHaveProperty('accounts');
  });
});

test('a built-in sink can be read, enabled and replayed to only; it is listed on request', async () => {
  const rig = await start();
  await rig.declare({ id: 'sns', kind: 'sns', target: 'arn:aws:sns:us-east-1:0:topic' });
  await rig.say('acme', 3);
  expect((await rig.get('/v1/endpoints')).body.endpoints).toEqual([]);
  expect((await rig.get('/v1/endpoints?builtIn=true')).body.endpoints).toMatchObject([
    { id: 'sns', kind: 'sns', managed: false },
  ]);
  for (const what of ['', '/health', '/deliveries', '/parked', '/dead', '/replays']) {
    expect((await rig.get(`/v1/endpoints/sns${what}`)).status, what).toBe(200);
  }
  expect((await rig.post('/v1/endpoints/sns/enable')).status).toBe(200);
  const replay = await rig.post('/v1/endpoints/sns/replays', { from: 'beginning' });
  expect([replay.status, replay.body.total]).toEqual([201, 3]);
  expect((await rig.post(`/v1/endpoints/sns/replays/${replay.body.id}/cancel`)).status).toBe(200);
  for (const [method, rest, body] of [
    ['PATCH', '', {}],
    ['DELETE', '', undefined],
    ['POST', '/pause', undefined],
    ['POST', '/resume', undefined],
    ['POST', '/ping', undefined],
    ['POST', '/rotate-secret', {}],
    ['POST', '/resend', { event: 'acme.e1.1' }],
  ] as const) {
    const { status, body: problem } = await rig.ask(method, `/v1/endpoints/sns${rest}`, { body });
    expect([status, problem.detail], rest).toEqual([
      409,
      'The endpoint "sns" is built in. Built-in endpoints do not support this operation.',
    ]);
  }
  expect((await rig.get('/v1/endpoints/sns/statistics')).status).toBe(404);
});

describe('lists', () => {
  test('of endpoints cover all regions by id, each once, for any page size', async () => {
    const rig = await start();
    const expected: string[] = [];
    for (const id of ['a', 'b', 'c', 'd', 'e']) {
      for (const region of ['nz', 'us']) {
        await rig.make({ id, region });
        expected.push(`${id} ${region}`);
      }
    }
    for (const limit of [1, 2, 3, 4, 10]) {
      const { all, count } = await pages(rig, `/v1/endpoints?limit=${limit}`, 'endpoints');
      expect(all.map(({ id, region }) => `${id} ${region}`)).toEqual(expected);
      expect(count).toBe(Math.ceil(expected.length / limit));
    }
    const { all } = await pages(rig, '/v1/endpoints?region=nz&limit=2', 'endpoints');
    expect(all.map(({ id }) => id)).toEqual(['a', 'b', 'c', 'd', 'e']);
    for (const list of ['endpoints', 'accounts']) {
      const { status, body } = await rig.get(`/v1/${list}?region=mars`);
      expect([status, body.field, body.detail]).toEqual([
        400,
        'region',
        'region must be one of the regions that are served here (nz, us).',
      ]);
    }
  });

  test('of deliveries are newest first, by outcome; of parked and dead events and replays each once', async () => {
    const rig = await start();
    const receiver = await startReceiver(({ body }) => ({
      status: body.includes('"jobNumber":1,') ? 422 : 204,
    }));
    await rig.make({ id: 'erp', url: receiver.url });
    await rig.say('acme', [1, 1, 2, 3, 1]);
    await rig.drain('erp');
    await rig.post('/v1/endpoints/erp/ping');
    const deliveries = '/v1/endpoints/erp/deliveries';
    const { all, count } = await pages(rig, `${deliveries}?limit=2`, 'deliveries');
    expect(count).toBe(2);
    expect(all.map(({ at }) => at)).toEqual(
      all
        .map(({ at }) => at)
        .sort()
        .reverse(),
    );
    expect(all.map(({ event, outcome }) => [event, outcome])).toEqual(
      expect.arrayContaining([
        ['acme.e1.1', 'rejected'],
        ['acme.e1.3', 'delivered'],
        ['acme.e1.4', 'delivered'],
      ]),
    );
    const rejected = await rig.get(`${deliveries}?outcome=failed`);
    expect(rejected.body).toEqual({
      deliveries: [
        {
          region: 'us',
          endpoint: 'erp',
          event: 'acme.e1.1',
          type: 'job.status_changed',
          account: 'acme',
          sequence: 1,
          jobNumber: 1,
          at: '2026-03-02T08:00:01.000Z',
          latencyMs: 0,
          outcome: 'rejected',
          reason: expect.any(String),
          status: 422,
          headers: {},
          excerpt: 'a body of some length',
          cause: 'live',
          replay: null,
        },
      ],
      next: null,
    });
    expect((await rig.get(`${deliveries}?outcome=delivered`)).body.deliveries).toHaveLength(3);
    const jobEvents = all.filter(({ type }) => type !== 'jobwire.ping');
    expect((await rig.get(`${deliveries}?types=job.*`)).body.deliveries).toEqual(jobEvents);
    expect((await rig.get(`${deliveries}?types=account.*`)).body.deliveries).toEqual([]);
    const newest = encodeURIComponent(String(all[0]?.at));
    const [since, until] = [`from=${newest}`, `to=${newest}`];
    const split = await Promise.all(
      [since, until].map((range) => rig.get(`${deliveries}?${range}&limit=100`)),
    );
    expect(split.flatMap(({ body }) => body.deliveries)).toEqual(all);
    expect(split[0]?.body.deliveries.length).toBeGreaterThan(0);
    const parked = await pages(rig, '/v1/endpoints/erp/parked?limit=1', 'parked');
    expect(parked.all.map(({ event, attempts, jobNumber }) => [event, attempts, jobNumber])).toEqual([
      ['acme.e1.1', 1, 1],
      ['acme.e1.2', 0, 1],
      ['acme.e1.5', 0, 1],
    ]);
    expect(parked.all[0]).toMatchObject({ retryAt: expect.stringMatching(/Z$/), lane: '1' });

    const dead = async () => (await pages(rig, '/v1/endpoints/erp/dead?limit=1', 'dead')).all;
    expect(await dead()).toEqual([]);
    for (let at = 0; at < 8; at += 1) {
      rig.clock.now += HOUR_MS;
      await rig.drain('erp');
    }
    expect((await dead()).map(({ event }) => event)).toEqual(['acme.e1.1', 'acme.e1.2', 'acme.e1.5']);
    expect((await rig.get('/v1/endpoints/erp/health')).body.dead).toBe(3);

    const ids: string[] = [];
    for (let at = 0; at < 3; at += 1) {
      rig.clock.now += at === 1 ? 0 : 1000;
      ids.push((await rig.post('/v1/endpoints/erp/replays', { from: 'beginning' })).body.id);
    }
    const replays = (await pages(rig, '/v1/endpoints/erp/replays?limit=1', 'replays')).all;
    expect(replays.map(({ id }) => id).sort()).toEqual(ids.sort());
    expect(replays.map(({ startedAt }) => startedAt)).toEqual(
      replays
        .map(({ startedAt }) => startedAt)
        .sort()
        .reverse(),
    );
  });

  test('reject a cursor that none of their pages returned', async () => {
    const rig = await start();
    await rig.make({ id: 'erp' });
    for (const path of [
      '/v1/endpoints?after=erp',
      `/v1/endpoints?after=${Buffer.from('/us').toString('base64url')}`,
      '/v1/endpoints/erp/deliveries?after=2026',
      '/v1/endpoints/erp/parked?after=%20',
      `/v1/endpoints/erp/dead?after=${'A'.repeat(1400)}`,
      '/v1/endpoints/erp/replays?after=x',
    ]) {
      const { status, body } = await rig.get(path);
      expect([status, body.field], path).toEqual([400, 'after']);
    }
    for (const [query, field] of [
      ['outcome=lost', 'outcome'],
      ['types=jobs.*', 'types'],
      ['from=2026-03-02', 'from'],
      ['from=2026-03-02T08:00:00Z&to=2026-03-02T08:00:00Z', 'from'],
    ]) {
      const { status, body } = await rig.get(`/v1/endpoints/erp/deliveries?${query}`);
      expect([status, body.field]).toEqual([400, field]);
    }
  });
});

describe('deliveries', () => {
  test('a ping is signed with the returned secret, and listed in the deliveries', async () => {
    const rig = await start();
    rig.clock.now = Date.now();
    const receiver = await startReceiver(() => ({ status: 204 }));
    const { secret } = await rig.make({ id: 'erp', url: receiver.url, headers: { 'X-Tenant': '7' } });
    await rig.post('/v1/endpoints/erp/pause');
    const pinged = await rig.post('/v1/endpoints/erp/ping');
    expect([pinged.status, pinged.body]).toEqual([
      200,
      { outcome: 'delivered', status: 204, latencyMs: 0, message: expect.any(String), logged: true },
    ]);
    const [request] = receiver.requests;
    expect(request?.headers['x-tenant']).toBe('7');
    const headers = request?.headers as Record<string, string>;
    expect(new Webhook(secret).verify(request?.body ?? '', headers)).toMatchObject({ type: 'jobwire.ping' });
    const [delivery] = (await rig.get('/v1/endpoints/erp/deliveries')).body.deliveries;
    expect(delivery).toMatchObject({
      type: 'jobwire.ping',
      cause: 'ping',
      status: 204,
      outcome: 'delivered',
    });
  });

  test('both secrets sign after a rotation; only the new one on request', async () => {
    const rig = await start();
    rig.clock.now = Date.now();
    const receiver = await startReceiver(() => ({ status: 204 }));
    const { secret: old } = await rig.make({ id: 'erp', url: receiver.url });
    const given = newSigningSecret();
    const rotated = await rig.post('/v1/endpoints/erp/rotate-secret', {
      secret: given,
      gracePeriodSeconds: 60,
    });
    expect(rotated.body).toEqual({
      secret: given,
      previousSecretsExpireAt: new Date(rig.clock.now + 60_000).toISOString(),
    });
    const verifies = async (secret: string) => {
      await rig.post('/v1/endpoints/erp/ping');
      const { body = '', headers } = receiver.requests.at(-1) ?? {};
      try {
        return new Webhook(secret).verify(body, headers as Record<string, string>) !== undefined;
      } catch {
        return false;
      }
    };
    expect([await verifies(old), await verifies(given)]).toEqual([true, true]);
    const last = await rig.post('/v1/endpoints/erp/rotate-secret', { gracePeriodSeconds: 0 });
    expect([await verifies(given), await verifies(last.body.secret)]).toEqual([false, true]);
  });

  test('an event is resent with its id; an error gives the reason', async () => {
    const rig = await start();
    const receiver = await startReceiver((_, at) => ({ status: at === 1 ? 204 : 503 }));
    await rig.make({ id: 'erp', url: receiver.url, accounts: ['acme'] });
    for (const account of ['acme', 'other']) await rig.say(account, 2);
    const resend = (event: string) => rig.post('/v1/endpoints/erp/resend', { event });
    expect((await resend('acme.e1.2')).body).toMatchObject({ outcome: 'delivered', status: 204 });
    expect((await resend('acme.e1.2')).body).toMatchObject({ outcome: 'retry', status: 503 });
    expect(
      receiver.requests.map(({ headers }) => [headers['webhook-id'], headers['webhook-replay']]),
    ).toEqual([
      ['acme.e1.2', 'true'],
      ['acme.e1.2', 'true'],
    ]);
    const unreadable = await resend('acme');
    expect([unreadable.status, unreadable.body.field]).toEqual([400, 'event']);
    expect(unreadable.body.detail).toContain('<account>.<epoch>.<sequence>');
    for (const [event, why] of [
      ['acme.e0.2', 'acme.e1.2'],
      ['acme.e1.3', 'e1.1 to e1.2'],
      ['acme.e1.0', 'positive integer'],
      ['other.e1.1', 'is not one of them'],
    ] as const) {
      const { status, body } = await resend(event);
      expect([status, body.field], event).toEqual([422, 'event']);
      expect(body.detail).toContain(why);
    }
    expect(receiver.requests).toHaveLength(2);
  });
});

describe('a batch', () => {
  /** The results by id: the status of the problem, the number of events, or `done`. */
  const toResults = ({ body }: { body: Body }) =>
    Object.fromEntries(
      body.results.map(({ id, problem, events }: Body) => [id, problem?.status ?? events ?? 'done']),
    );

  test('pauses and resumes the named endpoints, and reports the result of each', async () => {
    const rig = await start();
    await rig.make({ id: 'own', accounts: ['acme'] });
    await rig.make({ id: 'foreign', accounts: ['other'] });
    await rig.declare({ id: 'declared' });
    const ids = ['own', 'declared', 'nothing', 'foreign', 'own'];
    const batch = (body: object, key?: string) => rig.post('/v1/endpoints/batch', body, key);
    const paused = await batch({ action: 'pause', ids });
    expect([paused.status, paused.body.next]).toEqual([200, null]);
    expect(toResults(paused)).toEqual({ own: 'done', declared: 409, nothing: 404, foreign: 'done' });
    expect(paused.body.results[2]).toMatchObject({
      ...{ id: 'nothing', region: null, events: null },
      problem: { type: 'urn:jobwire:problem:not-found', detail: 'There is no such endpoint.' },
    });
    const isPaused = async (id: string) => (await rig.get(`/v1/endpoints/${id}`)).body.paused;
    expect([await isPaused('own'), await isPaused('foreign')]).toEqual([true, true]);
    // A key for some accounts reaches their endpoints only, by name and with all.
    const key = await rig.key('operate', ['acme']);
    expect(toResults(await batch({ action: 'resume', ids }, key))).toEqual({
      ...{ own: 'done', declared: 404, nothing: 404, foreign: 404 },
    });
    expect(toResults(await batch({ action: 'resume', all: true }, key))).toEqual({ own: 'done' });
    expect([await isPaused('own'), await isPaused('foreign')]).toEqual([false, true]);
    for (const [body, field] of [
      [{ action: 'pause' }, undefined],
      [{ action: 'pause', ids, all: true }, undefined],
      [{ action: 'stop', all: true }, 'action'],
      [{ action: 'pause', ids: [] }, 'ids'],
      [{ action: 'pause', ids, after: 'x' }, 'after'],
      [{ action: 'pause', all: true, after: 'x' }, 'after'],
      [{ action: 'pause', all: true, region: 'xx' }, 'region'],
    ] as const) {
      const invalid = await batch(body);
      expect([invalid.status, invalid.body.field], JSON.stringify(body)).toEqual([400, field]);
    }
  });

  test('retries and discards the parked events of all endpoints', async () => {
    const rig = await start();
    const receiver = await startReceiver(() => ({ status: 422 }));
    for (const id of ['erp', 'shop']) await rig.make({ id, url: receiver.url, accounts: ['acme'] });
    await rig.say('acme', [1, 1, 2]);
    for (const id of ['erp', 'shop']) await rig.drain(id);
    const batch = async (action: string) =>
      toResults(await rig.post('/v1/endpoints/batch', { action, all: true }));
    expect(await batch('retry')).toEqual({ erp: 3, shop: 3 });
    expect(await batch('discard')).toEqual({ erp: 3, shop: 3 });
    expect(await batch('discard')).toEqual({ erp: 0, shop: 0 });
  });

  test('of all endpoints has at most 100 per request, and continues after them', async () => {
    const rig = await start();
    await Promise.all(Array.from({ length: 103 }, (_, at) => rig.declare({ id: `declared-${at}` })));
    const batch = (after?: string) => rig.post('/v1/endpoints/batch', { action: 'enable', all: true, after });
    const first = await batch();
    const second = await batch(first.body.next);
    expect([first, second].map(({ body }) => body.results.length)).toEqual([100, 3]);
    expect(second.body.next).toBeNull();
    expect(Object.keys({ ...toResults(first), ...toResults(second) })).toHaveLength(103);
  });

  test('pauses and resumes polling of accounts', async () => {
    const rig = await start();
    const batch = async (body: object, key?: string) => {
      const { status, body: answer } = await rig.post('/v1/accounts/batch', body, key);
      expect(status).toBe(200);
      return toResults({ body: answer });
    };
    expect(await batch({ action: 'pause', all: true })).toEqual({
      acme: 'done',
      other: 'done',
      kiwi: 'done',
    });
    expect((await rig.get('/v1/accounts/kiwi')).body.paused).toBe(true);
    const key = await rig.key('operate', ['acme']);
    expect(await batch({ action: 'resume', ids: ['acme', 'other'] }, key)).toEqual({
      ...{ acme: 'done', other: 404 },
    });
    expect(await batch({ action: 'resume', ids: ['other', 'kiwi'], region: 'nz' })).toEqual({
      ...{ other: 404, kiwi: 'done' },
    });
    const paused = await Promise.all(
      ['acme', 'other', 'kiwi'].map(async (id) => (await rig.get(`/v1/accounts/${id}`)).body.paused),
    );
    expect(paused).toEqual([false, true, false]);
    const repeated = { headers: { 'idempotency-key': 'one' }, body: { action: 'pause', all: true } };
    const [first, again] = [
      await rig.ask('POST', '/v1/accounts/batch', repeated),
      await rig.ask('POST', '/v1/accounts/batch', repeated),
    ];
    expect([again.body, again.headers.get('idempotency-replayed')]).toEqual([first.body, 'true']);
  });
});

test('the deliveries of an event, and of a job, are those to endpoints that the key may read', async () => {
  const rig = await start();
  const receiver = await startReceiver((_, at) => ({ status: at === 1 ? 422 : 204 }));
  for (const [id, accounts] of [
    ['mine', ['acme']],
    ['all', undefined],
  ] as const) {
    await rig.make({ id, url: receiver.url, ...(accounts ? { accounts } : {}) });
  }
  await rig.say('acme', [1, 2, 2]);
  await rig.say('other', [1]);
  for (const id of ['mine', 'all']) await rig.drain(id);
  const event = '/v1/events/acme.e1.2/deliveries';
  const job = '/v1/accounts/acme/jobs/2/deliveries';
  const of = (body: Body) =>
    body.deliveries.map(({ event, endpoint }: Body) => `${event} ${endpoint}`) as string[];
  expect(of((await rig.get(event)).body)).toEqual(['acme.e1.2 mine', 'acme.e1.2 all']);
  expect(of((await rig.get(job)).body)).toEqual([
    'acme.e1.3 mine',
    'acme.e1.3 all',
    'acme.e1.2 mine',
    'acme.e1.2 all',
  ]);
  const key = await rig.key('read', ['acme']);
  expect(of((await rig.get(event, key)).body)).toEqual(['acme.e1.2 mine']);
  expect(of((await rig.get(job, key)).body)).toEqual(['acme.e1.3 mine', 'acme.e1.2 mine']);
  const { all } = await pages(rig, `${job}?limit=1`, 'deliveries', key);
  expect(all.map(({ event }) => event)).toEqual(['acme.e1.3', 'acme.e1.2']);
  expect((await rig.get('/v1/events/other.e1.1/deliveries', key)).status).toBe(404);
  expect((await rig.get('/v1/accounts/other/jobs/1/deliveries', key)).status).toBe(404);
});

test('the deliveries of an event to a deleted endpoint are not returned to the creator of a new one with its id', async () => {
  const rig = await start();
  const receiver = await startReceiver(() => ({ status: 410, body: 'words of the former receiver' }));
  await rig.make({ id: 'opx', url: receiver.url });
  await rig.say('acme', [1, 2]);
  await rig.drain('opx');
  expect((await rig.get('/v1/events/acme.e1.1/deliveries')).body.deliveries.length).toBeGreaterThan(0);
  expect((await rig.ask('DELETE', '/v1/endpoints/opx')).status).toBe(204);
  rig.clock.now += 1_000;
  await rig.make({ id: 'opx', url: receiver.url, accounts: ['acme'] });
  const key = await rig.key('read', ['acme']);
  expect((await rig.get('/v1/events/acme.e1.1/deliveries', key)).body.deliveries).toEqual([]);
  expect((await rig.get('/v1/accounts/acme/jobs/1/deliveries', key)).body.deliveries).toEqual([]);
});

describe('parked events', () => {
  /** Job 1 is rejected three times, job 2 once; the rest is delivered. */
  async function refused() {
    const rig = await start();
    const state = { status: 422 };
    const receiver = await startReceiver(({ body }) => ({
      status: /"jobNumber":[12],/.test(body) ? state.status : 204,
    }));
    await rig.make({ id: 'erp', url: receiver.url });
    await rig.say('acme', [1, 1, 1, 2, 3]);
    await rig.drain('erp');
    const path = '/v1/endpoints/erp/parked';
    return {
      ...{ rig, state, receiver },
      parked: async () => (await rig.get(path)).body.parked.map(({ event }: Body) => event),
      retry: (body: object) => rig.post(`${path}/retry`, body),
      discard: (body: object) => rig.post(`${path}/discard`, body),
      arrived: () => receiver.requests.map(({ headers }) => headers['webhook-id']),
    };
  }

  test('are retried at once on request, in order, and their lane continues', async () => {
    const { rig, state, parked, retry, arrived } = await refused();
    const before = ['acme.e1.1', 'acme.e1.2', 'acme.e1.3', 'acme.e1.4'];
    expect(await parked()).toEqual(before);
    state.status = 204;
    await rig.drain('erp');
    expect(await parked(), 'its time has not come').toEqual(before);
    const asked = await retry({ events: ['acme.e1.2', 'acme.e1.5', 'acme.e1.2'] });
    expect([asked.status, asked.body]).toEqual([200, { retried: 1, missing: ['acme.e1.5'] }]);
    const sent = arrived().length;
    await rig.drain('erp');
    expect(arrived().slice(sent), 'the whole lane of job 1').toEqual(before.slice(0, 3));
    expect(await parked()).toEqual(['acme.e1.4']);
    expect((await retry({ all: true })).body).toEqual({ retried: 1, missing: [] });
    await rig.drain('erp');
    expect(await parked()).toEqual([]);
    const { body } = await rig.get('/v1/endpoints/erp/deliveries?limit=4');
    expect(body.deliveries.map(({ cause }: Body) => cause)).toEqual(['parked', 'parked', 'parked', 'parked']);
  });

  test('that are discarded are no longer sent, and their successors continue', async () => {
    const { rig, state, parked, discard, arrived } = await refused();
    state.status = 204;
    const gone = await discard({ events: ['acme.e1.2', 'acme.e1.1', 'acme.e1.9'] });
    expect(gone.body).toEqual({ discarded: 2, missing: ['acme.e1.9'] });
    expect(await parked()).toEqual(['acme.e1.3', 'acme.e1.4']);
    const [next] = (await rig.get('/v1/endpoints/erp/parked')).body.parked;
    expect(next.retryAt, 'due, so that a drain is begun for it').toBe(new Date(rig.clock.now).toISOString());
    const sent = arrived().length;
    await rig.drain('erp');
    expect(arrived().slice(sent)).toEqual(['acme.e1.3']);
    expect((await discard({ all: true })).body).toEqual({ discarded: 1, missing: [] });
    expect((await discard({ all: true })).body).toEqual({ discarded: 0, missing: [] });
    rig.clock.now += HOUR_MS;
    await rig.drain('erp');
    expect(arrived()).toHaveLength(sent + 1);
  });

  test('can be discarded from the middle: the first one stays, with its time', async () => {
    const { rig, state, discard, parked, arrived } = await refused();
    state.status = 204;
    expect((await discard({ events: ['acme.e1.2'] })).body).toEqual({ discarded: 1, missing: [] });
    const sent = arrived().length;
    await rig.drain('erp');
    expect(arrived()).toHaveLength(sent);
    rig.clock.now += HOUR_MS;
    await rig.drain('erp');
    // The last one is of another job.
    expect(arrived().slice(sent)).toEqual(['acme.e1.1', 'acme.e1.4', 'acme.e1.3']);
    expect(await parked()).toEqual([]);
  });

  test('are selected by ids or as a whole, never both, never neither', async () => {
    const { retry, parked } = await refused();
    const before = await parked();
    for (const body of [{}, { all: false }, { events: [] }, { events: ['x'], all: true }, { event: 'x' }]) {
      expect((await retry(body)).status, JSON.stringify(body)).toBe(400);
    }
    expect(await parked()).toEqual(before);
  });
});

describe('the statistics of an endpoint', () => {
  test('count the attempts of a window, and need a key for its accounts', async () => {
    const rig = await start();
    let status = 204;
    const receiver = await startReceiver(() => ({ status }));
    await rig.make({ id: 'erp', url: receiver.url, accounts: ['acme'] });
    await rig.say('acme', 3);
    await rig.drain('erp');
    rig.clock.now += 3 * HOUR_MS;
    status = 500;
    await rig.say('acme', 1);
    await rig.drain('erp');
    const path = '/v1/endpoints/erp/statistics';
    const day = (await rig.get(path)).body;
    expect(day).toMatchObject({
      window: '24h',
      stepSeconds: 1800,
      to: new Date(rig.clock.now).toISOString(),
      total: {
        attempts: 4,
        delivered: 3,
        failed: 1,
        successRate: 0.75,
        failures: [{ status: 500, count: 1 }],
      },
    });
    expect(day.points).toHaveLength(48);
    expect((await rig.get(`${path}?window=1h`)).body.total).toMatchObject({
      attempts: 1,
      failed: 1,
      p50Ms: null,
    });
    expect((await rig.get(`${path}?window=2h`)).status).toBe(400);
    expect((await rig.get(path, await rig.key('read', ['acme']))).status).toBe(200);
    expect((await rig.get(path, await rig.key('admin', ['other']))).status).toBe(404);
  });
});

describe('a replay', () => {
  test('sends a range of the log again, reports its progress, and completes', async () => {
    const rig = await start();
    const seen: number[] = [];
    let path = '';
    const receiver = await startReceiver(() => ({ status: 204 }));
    await rig.make({ id: 'erp', url: receiver.url });
    await rig.say('acme', 3);
    rig.clock.now += HOUR_MS;
    await rig.say('acme', [1, 4, 5]);
    await rig.say('other', 2);
    await rig.drain('erp');
    const live = receiver.requests.length;
    const started = await rig.post('/v1/endpoints/erp/replays', {
      from: { cursors: { acme: 'e1.1' } },
      filter: { types: ['job.*'], accounts: ['acme'] },
    });
    path = started.headers.get('location') ?? '';
    expect([started.status, path]).toEqual([201, `/v1/endpoints/erp/replays/${started.body.id}?region=us`]);
    expect(started.body).toEqual({
      id: expect.stringMatching(/^rp-[a-z0-9]{24}$/),
      state: 'running',
      accounts: ['acme'],
      filter: { types: ['job.*'] },
      dead: null,
      total: 5,
      done: 0,
      delivered: 0,
      failed: 0,
      skipped: 0,
      truncatedAccounts: [],
      startedAt: new Date(rig.clock.now).toISOString(),
      finishedAt: null,
    });
    for (let at = 0; at < 5; at += 1) {
      seen.push((await rig.get(path)).body.done);
      await rig.drain('erp');
    }
    expect(seen[0]).toBe(0);
    expect((await rig.get(path)).body).toMatchObject({
      state: 'done',
      done: 5,
      delivered: 5,
      finishedAt: expect.stringMatching(/Z$/),
    });
    const replayed = receiver.requests.slice(live).map(({ headers }) => headers);
    expect(replayed.map((headers) => headers['webhook-id']).sort()).toEqual(
      [2, 3, 4, 5, 6].map((sequence) => `acme.e1.${sequence}`),
    );
    expect(new Set(replayed.map((headers) => headers['webhook-replay']))).toEqual(new Set(['true']));
    const { deliveries } = (await rig.get('/v1/endpoints/erp/deliveries?limit=1')).body;
    expect(deliveries[0]).toMatchObject({ cause: 'replay', replay: started.body.id });
    expect((await rig.post(path.replace('?', '/cancel?'))).status).toBe(409);
  });

  test('of dead events by filter is counted before it sends, and covers only accounts that the key can access', async () => {
    const rig = await start();
    let status = 422;
    const receiver = await startReceiver(() => ({ status }));
    await rig.make({ id: 'erp', url: receiver.url, accounts: ['acme', 'other'] });
    await rig.say('acme', 2);
    await rig.say('other', 1);
    for (let attempt = 0; attempt < 3; attempt += 1) {
      await rig.drain('erp');
      rig.clock.now += HOUR_MS;
    }
    const dead = async (key?: string) =>
      (await rig.get('/v1/endpoints/erp/dead', key)).body.dead.map(({ event }: Body) => event);
    expect(await dead()).toEqual(['acme.e1.1', 'acme.e1.2', 'other.e1.1']);
    // Afterwards the endpoint follows only the account of the key.
    await rig.ask('PATCH', '/v1/endpoints/erp', { body: { accounts: ['acme'] } });
    const [own, foreign] = [await rig.key('operate', ['acme']), await rig.key('operate', ['other'])];
    status = 204;
    const redeliver = (body: object, key = own) => rig.post('/v1/endpoints/erp/redeliver', body, key);
    const counted = await redeliver({ dryRun: true, filter: { statuses: [422] } });
    expect(counted.status, counted.text).toBe(200);
    expect(counted.body).toMatchObject({ dryRun: true, parked: 0, dead: 2, replay: null });
    expect(counted.body.events).toMatchObject([
      { event: 'acme.e1.1', state: 'dead', status: 422, jobNumber: 1 },
      { event: 'acme.e1.2', state: 'dead', status: 422, jobNumber: 2 },
    ]);
    expect((await redeliver({ dryRun: true }, foreign)).status).toBe(404);
    for (const body of [
      { states: [] },
      { filter: { statuses: [99] } },
      { filter: { jobNumbers: [0] } },
      { all: true },
    ]) {
      expect((await redeliver(body)).status, JSON.stringify(body)).toBe(400);
    }
    expect(await dead()).toEqual(['acme.e1.1', 'acme.e1.2']);
    const { replay } = (await redeliver({ filter: { jobNumbers: [2] } })).body;
    await rig.drain('erp');
    expect((await rig.get(`/v1/endpoints/erp/replays/${replay.id}`, own)).body).toMatchObject({
      ...{ state: 'done', total: 1, done: 1, delivered: 1 },
      dead: { jobNumbers: [2], accounts: [], types: [], statuses: [], from: null, to: null },
    });
    expect(await dead()).toEqual(['acme.e1.1']);
  });

  test('that is cancelled sends no further events', async () => {
    const rig = await start();
    const receiver = await startReceiver(() => ({ status: 204 }));
    await rig.make({ id: 'erp', url: receiver.url });
    await rig.say('acme', 3);
    await rig.drain('erp');
    const { id } = (await rig.post('/v1/endpoints/erp/replays', { from: 'beginning' })).body;
    const cancel = () => rig.post(`/v1/endpoints/erp/replays/${id}/cancel`);
    expect((await cancel()).body).toMatchObject({ id, state: 'cancelled', done: 0 });
    expect((await cancel()).body).toMatchObject({ id, state: 'cancelled' });
    await rig.drain('erp');
    expect(receiver.requests).toHaveLength(3);
    expect((await rig.get('/v1/endpoints/erp/replays/nobody')).status).toBe(404);
  });

  test("stays within the endpoint's filters, and names invalid fields", async () => {
    const rig = await start();
    await rig.make({ id: 'erp', accounts: ['acme'] });
    for (const account of ['acme', 'other']) await rig.say(account, 2);
    for (const [body, status, field] of [
      [{}, 400, 'from'],
      [{ from: 'now' }, 400, 'from'],
      [{ from: 'beginning', filter: { accounts: ['other'] } }, 422, 'filter.accounts'],
      [{ from: { cursors: { other: 'e1.0' } } }, 422, 'from'],
      [{ from: { cursors: { acme: 'e1.2' } } }, 422, 'from'],
      [{ from: 'beginning', to: { at: '2030-01-01T00:00:00Z' } }, 422, 'to'],
    ] as const) {
      const { status: got, body: problem, text } = await rig.post('/v1/endpoints/erp/replays', body);
      expect([got, problem.field], text).toEqual([status, field]);
    }
    expect((await rig.get('/v1/endpoints/erp/replays')).body.replays).toEqual([]);
    const started = await rig.post('/v1/endpoints/erp/replays', { from: 'beginning' });
    expect(started.body.accounts).toEqual(['acme']);
  });
});

test('health has the time of the last attempt that failed, also if the receiver rejected the event', async () => {
  const rig = await start();
  const receiver = await startReceiver(() => ({ status: 422 }));
  await rig.make({ id: 'erp', url: receiver.url });
  await rig.say('acme', 1);
  await rig.drain('erp');
  const { body } = await rig.get('/v1/endpoints/erp/health');
  expect(body).toMatchObject({ state: 'active', parked: { count: 1 } });
  expect(body.lastFailedAt).toBe(body.statistics.lastError.at);
});

test('health describes an endpoint, with times as texts', async () => {
  const rig = await start();
  const receiver = await startReceiver((_, at) => ({ status: at <= 2 ? 204 : 503 }));
  await rig.make({ id: 'erp', url: receiver.url, concurrency: 1 });
  const path = '/v1/endpoints/erp/health';
  expect((await rig.get(path)).body).toMatchObject({
    state: 'active',
    lastDeliveredAt: null,
    statistics: { attempts: 0, successRate: null, p50Ms: null, lastError: null },
  });
  await rig.say('acme', 4);
  await rig.drain('erp');
  const { body } = await rig.get(path);
  expect(body).toMatchObject({
    state: 'failing',
    waitUntil: expect.stringMatching(/^2026-03-02T08:/),
    lost: 0,
    dead: 0,
    parked: { count: 0, oldestAt: null },
    backlog: { events: 2, accounts: [{ account: 'acme', events: 2 }], complete: true },
    statistics: { attempts: 3, delivered: 2, lastError: { at: expect.stringMatching(/Z$/) } },
  });
  expect((await rig.post('/v1/endpoints/erp/enable')).status).toBe(200);
  expect((await rig.get(path)).body.waitUntil).toBe(null);
});
