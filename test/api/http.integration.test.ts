/**
 * Rules of all routes: conditional changes, idempotency, pages, strict input, limits, and common headers.
 * One file: its tests share the requests and the world.
 */
import { createAdaptorServer, type HttpBindings } from '@hono/node-server';
import { afterEach, describe, expect, test } from 'vitest';
import type { ApiDeps } from '../../shared/api/app.ts';
import { takesIdempotencyKey } from '../../shared/api/route.ts';
import { routes } from '../../shared/api/routes/all.ts';
import { historySchema } from '../../shared/storage/schema.ts';
import { createMemoryTable } from '../../shared/storage/sqlite-table.ts';
import { TableError } from '../../shared/storage/table.ts';
import { type Asked, getRequests, namedSchemas, operations, type Schema } from '../support/api-requests.ts';
import {
  type ApiWorld,
  createApiWorld,
  FAR,
  getListId,
  MOVING,
  NOTED,
  OWN,
  sharedWorld,
} from '../support/api-world.ts';
import { samples } from '../support/runs.ts';

const closers: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

const worldWith = (api: Partial<ApiDeps> = {}) =>
  createApiWorld({ table: createMemoryTable(), history: createMemoryTable(historySchema), api });

// biome-ignore lint/suspicious/noExplicitAny: responses of all shapes; each test reads its own fields
type Body = any;

/** Sends a request as an admin; returns the complete answer. */
async function ask(
  world: ApiWorld,
  method: string,
  path: string,
  { body, headers = {} }: { body?: unknown; headers?: object } = {},
) {
  const response = await world.app.request(path, {
    method,
    headers: {
      authorization: `Bearer ${world.keys['admin all'].secret}`,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  });
  const text = await response.text();
  const parsed: Body = /json/.test(response.headers.get('content-type') ?? '') ? JSON.parse(text) : undefined;
  return { status: response.status, headers: response.headers, text, body: parsed };
}

/** Successful requests of an operation, from those that its schemas generate. */
async function goodOne(world: ApiWorld, id: string): Promise<Asked> {
  const operation = operations.find(({ operationId }) => operationId === id);
  if (!operation) throw new Error(`There is no ${id}.`);
  for (const asked of samples(getRequests(operation, world).valid, 3, 300)) {
    const { 'Idempotency-Key': _, 'If-Match': __, ...headers } = asked.headers;
    const plain = { ...asked, headers };
    const { status } = await send(world, plain);
    await world.undo();
    if (status >= 200 && status < 300) return plain;
  }
  throw new Error(`Nothing was found that ${id} does.`);
}

async function send(
  world: ApiWorld,
  { method, path, headers, body }: Asked,
  more: Record<string, string> = {},
) {
  const response = await world.app.request(path, {
    method,
    headers: { ...headers, ...more },
    ...(body === undefined ? {} : { body }),
  });
  return { status: response.status, headers: response.headers, text: await response.text() };
}

test('an account is changed only with its current ETag in If-Match', async () => {
  const world = await worldWith();
  const path = `/v1/accounts/${OWN}`;
  const read = await ask(world, 'GET', path);
  const etag = read.headers.get('etag') ?? '';
  expect(etag).toBe(`"${read.body.revision}"`);
  const change = (ifMatch: string, seconds: number) =>
    ask(world, 'PATCH', path, { body: { pollIntervalSeconds: seconds }, headers: { 'if-match': ifMatch } });
  const done = await change(etag, 90);
  expect([done.status, done.body.pollIntervalSeconds]).toEqual([200, 90]);
  expect(done.headers.get('etag')).not.toBe(etag);
  const late = await change(etag, 91);
  expect([late.status, late.body.type, late.body.field]).toEqual([
    412,
    'urn:jobwire:problem:precondition-failed',
    'If-Match',
  ]);
  for (const [method, rest, body] of [
    ['POST', '/pause', undefined],
    ['POST', '/resume', undefined],
    ['PUT', '/credentials', world.credentials],
    ['PUT', '/move', { to: 'https://large.jobwire.example' }],
    ['DELETE', '/move', undefined],
    ['DELETE', '', undefined],
  ] as const) {
    const refused = await ask(world, method, path + rest, { body, headers: { 'if-match': etag } });
    expect([rest, refused.status]).toEqual([rest, 412]);
  }
  expect((await ask(world, 'GET', path)).body.pollIntervalSeconds).toBe(90);
  expect((await change('"0", *', 92)).status, 'a star is one of none others').toBe(400);
  expect((await change('*', 92)).status).toBe(200);
});

describe('a PATCH that changes nothing', () => {
  const shared = sharedWorld();
  test.each([
    [`/v1/accounts/${OWN}`, { pollIntervalSeconds: 90, events: { payments: true } }],
    [`/v1/accounts/${OWN}/recipients/ann`, { name: 'Ann Lee', kinds: ['dispatched'] }],
    [
      '/v1/endpoints/own',
      {
        ...{ url: 'https://erp.example.com/', accounts: [OWN], types: ['job.*'], description: 'ERP' },
        ...{ jobFields: { originCode: 'web' }, headers: { Authorization: 'Bearer t0p' } },
      },
    ],
    [
      '/v1/alert-rules/own',
      {
        ...{ name: 'Late', threshold: 7, accounts: [OWN] },
        quietHours: { zone: 'Europe/London', from: '21:00', to: '07:00', days: ['mon'], action: 'drop' },
        target: { kind: 'teams', url: 'https://hooks.example.com/x' },
      },
    ],
  ])('of %s responds with 200 and the same ETag', async (path, body) => {
    const change = (given: object) => ask(shared.world, 'PATCH', path, { body: given });
    const before = await ask(shared.world, 'GET', path);
    const changed = await change(body);
    expect([changed.status, changed.body.detail]).toEqual([200, undefined]);
    expect(changed.headers.get('etag')).not.toBe(before.headers.get('etag'));
    for (const given of [{}, body]) {
      const same = await change(given);
      expect([same.status, same.headers.get('etag')]).toEqual([200, changed.headers.get('etag')]);
      expect(same.body).toEqual(changed.body);
    }
  });
});

describe('a POST with an Idempotency-Key', () => {
  const shared = sharedWorld();
  const ids = routes.filter(({ spec }) => takesIdempotencyKey(spec)).map(({ spec }) => String(spec.id));

  test.each(ids)(
    '%s: answers a repetition as the first time, and rejects the key with another request',
    async (id) => {
      const { world } = shared;
      const asked = await goodOne(world, id);
      const key = { 'Idempotency-Key': 'one-and-the-same' };
      const first = await send(world, asked, key);
      const again = await send(world, asked, key);
      expect([again.status, again.text]).toEqual([first.status, first.text]);
      expect([first, again].map(({ headers }) => headers.get('idempotency-replayed'))).toEqual([
        null,
        'true',
      ]);
      for (const name of ['content-type', 'etag', 'location']) {
        expect(again.headers.get(name), name).toBe(first.headers.get(name));
      }
      expect(again.headers.get('x-request-id')).not.toBe(first.headers.get('x-request-id'));
      const other = { ...asked, body: asked.body === undefined ? '{}' : `${asked.body} ` };
      const reused = await send(world, other, { ...key, 'Content-Type': 'application/json' });
      expect([reused.status, JSON.parse(reused.text).type]).toEqual([
        422,
        'urn:jobwire:problem:idempotency-key-reused',
      ]);
    },
  );

  test.each(ids)('%s: is executed once for two concurrent requests', async (id) => {
    const { world } = shared;
    const asked = await goodOne(world, id);
    const key = { 'Idempotency-Key': 'both-at-once' };
    const both = await Promise.all([send(world, asked, key), send(world, asked, key)]);
    const [done, ...more] = both.filter(({ status }) => status < 300);
    expect(done).toBeDefined();
    // The second arrived during the first, or after it.
    for (const answer of more)
      expect([
        answer.text,
        answer.headers.has('idempotency-replayed') || done?.headers.has('idempotency-replayed'),
      ]).toEqual([done?.text, true]);
    for (const { status, text, headers } of both.filter(({ status: of }) => of >= 300)) {
      expect([status, JSON.parse(text).type]).toEqual([409, 'urn:jobwire:problem:request-in-progress']);
      expect(Number(headers.get('retry-after'))).toBeGreaterThan(0);
    }
  });

  test('is repeated after a fault, with the same ids', async () => {
    const inner = createMemoryTable();
    let isBroken = false;
    const table = {
      ...inner,
      write: async (write: Parameters<typeof inner.write>[0]) => {
        const outcome = await inner.write(write);
        // It was written, and the answer is lost.
        if (isBroken && 'put' in write && write.put.pk === 'APIKEYS') throw new TableError('write', 'gone');
        return outcome;
      },
    };
    const world = await createApiWorld({ table, history: createMemoryTable(historySchema) });
    const make = () =>
      ask(world, 'POST', '/v1/keys', {
        body: { role: 'read', name: 'x' },
        headers: { 'idempotency-key': 'k' },
      });
    isBroken = true;
    expect((await make()).status).toBe(503);
    isBroken = false;
    const made = await make();
    expect([made.status, made.headers.get('idempotency-replayed')]).toEqual([201, null]);
    const { keys } = (await ask(world, 'GET', '/v1/keys?limit=500')).body;
    expect(keys.filter(({ name }: Body) => name === 'x').map(({ id }: Body) => id)).toEqual([
      made.body.key.id,
    ]);
  });
});

/** The path of a list that is not empty. */
function getListPath(world: ApiWorld, path: string): string {
  return path
    .replace('{id}', getListId(path))
    .replace('{jobNumber}', path.endsWith('/recipients') ? String(world.ids.jobs[0]) : '1')
    .replace('{recipient}', 'ann')
    .replace('{event}', deliveredEvent(world));
}

/** The first event of the job whose deliveries were rejected: there are several. */
const deliveredEvent = ({ ids }: ApiWorld): string => ids.events.at(-1) ?? '';

/** Lists, whose answer has the cursor to resume them. Batches have it in their body. */
const withNext = operations.filter(
  ({ method, responses }) =>
    method === 'GET' && Object.values(responses['200']?.content ?? {}).some(({ schema }) => hasNext(schema)),
);

function hasNext({ $ref, properties, allOf = [] }: Schema): boolean {
  const named = $ref && namedSchemas[$ref.replace('#/components/schemas/', '')];
  return (properties && 'next' in properties) || [...(named ? [named] : []), ...allOf].some(hasNext);
}

describe('every list whose answer has `next`', () => {
  const shared = sharedWorld();
  test('accepts `after` and `limit`', () => {
    expect(withNext.length).toBeGreaterThan(15);
    const without = withNext.filter(
      ({ parameters }) =>
        !['after', 'limit'].every((name) =>
          parameters.some((one) => one.name === name && one.in === 'query'),
        ),
    );
    expect(without.map(({ operationId }) => operationId)).toEqual([]);
  });

  test.each(withNext.map(({ path }) => path))(
    '%s: rejects an invalid `after` with a 400, and never answers an empty page',
    async (path) => {
      const { world } = shared;
      const bad = [
        'nonsense',
        '',
        '-',
        '../..',
        'us/',
        '/',
        '\u0000',
        '\u00e9',
        'bm9uc2Vuc2U',
        'x'.repeat(3000),
      ];
      for (const after of bad) {
        const url = `${getListPath(world, path)}?after=${encodeURIComponent(after)}`;
        const { status, headers, body } = await ask(world, 'GET', url);
        expect([url, status], JSON.stringify(body)).toEqual([url, 400]);
        expect(headers.get('content-type')).toBe('application/problem+json');
        expect(body).toMatchObject({ type: 'urn:jobwire:problem:invalid-parameter', field: 'after' });
        expect(body.detail).toMatch(/^after must be /);
      }
    },
  );
});

describe('every list', () => {
  const shared = sharedWorld();
  const lists = operations.filter(
    ({ method, parameters, path }) =>
      method === 'GET' &&
      ['limit', 'after'].every((name) => parameters.some((one) => one.name === name)) &&
      !path.endsWith('/stream'),
  );

  test.each(lists.map(({ path, parameters }) => [path, parameters] as const))(
    '%s: has the same entries one by one as at once, each once',
    async (path, parameters) => {
      const { world } = shared;
      const url = getListPath(world, path);
      const most = parameters.find(({ name }) => name === 'limit')?.schema.maximum;
      const whole = await ask(world, 'GET', `${url}?limit=${most}`);
      expect(whole.status, whole.text).toBe(200);
      const [name = ''] = Object.keys(whole.body).filter((key) => Array.isArray(whole.body[key]));
      const texts = (body: Body) => body[name].map((one: Body) => JSON.stringify(one));
      const all: string[] = [];
      let after: string | null = null;
      for (let pages = 0; pages <= texts(whole.body).length + 1; pages += 1) {
        const query: string = after === null ? '' : `&after=${encodeURIComponent(after)}`;
        const { status, body, text } = await ask(world, 'GET', `${url}?limit=1${query}`);
        expect(status, text).toBe(200);
        all.push(...texts(body));
        const isEnd: boolean =
          'head' in body ? body.next === body.head && body[name].length === 0 : body.next === null;
        after = body.next;
        if (isEnd) break;
      }
      expect(texts(whole.body).length, 'something to page through').toBeGreaterThan(0);
      expect(all.sort()).toEqual(texts(whole.body).sort());
    },
  );
});

/** Path parameters with an enumeration. */
const NAMED: Record<string, string> = { kind: 'dispatched', channel: 'email', locale: 'en-GB' };
/** Sizes of bodies that are too large for routes with an own limit. */
const LARGE: Record<string, number> = { importAccount: 1_500_000 };
/** Required query parameters. */
const REQUIRED: Record<string, string> = { '/v1/search': '&q=acme' };

describe('every route', () => {
  test('rejects unknown query parameters by name', async () => {
    const world = await worldWith();
    for (const { spec } of routes) {
      const path = spec.path.replace(/\{(\w+)\}/g, (_, name: string) => NAMED[name] ?? '1');
      const body = spec.body ? {} : undefined;
      const url = `${path}?colour=red${REQUIRED[spec.path] ?? ''}`;
      const { status, body: problem } = await ask(world, spec.method.toUpperCase(), url, { body });
      expect([spec.path, status, problem?.field]).toEqual([spec.path, 400, 'colour']);
    }
  });

  test('with a body rejects unknown fields by name, bodies that are too large, and other media types', async () => {
    const world = await worldWith();
    for (const { spec } of routes.filter(({ spec: { body } }) => body)) {
      const id = String(spec.id);
      const good = await goodOne(world, id);
      const path = good.path;
      const method = good.method;
      const extra = await ask(world, method, path, {
        body: { ...JSON.parse(good.body ?? '{}'), colour: 'red' },
      });
      expect([id, extra.status, extra.body.field]).toEqual([id, 400, 'colour']);
      const large = await ask(world, method, path, {
        body: { colour: 'x'.repeat(LARGE[id] ?? 100_000) },
      });
      expect([id, large.status, large.body.type]).toEqual([id, 413, 'urn:jobwire:problem:content-too-large']);
      const text = await ask(world, method, path, {
        body: good.body,
        headers: { 'content-type': 'text/plain' },
      });
      expect([id, text.status, text.body.type]).toEqual([
        id,
        415,
        'urn:jobwire:problem:unsupported-media-type',
      ]);
      await world.undo();
    }
  });

  test('echoes the given request id, and generates one otherwise', async () => {
    const world = await worldWith();
    const given = await ask(world, 'GET', '/v1/key', { headers: { 'x-request-id': 'abc-123' } });
    expect(given.headers.get('x-request-id')).toBe('abc-123');
    const problem = await ask(world, 'GET', '/v1/keys/none', { headers: { 'x-request-id': 'abc-124' } });
    expect([problem.headers.get('x-request-id'), problem.body.requestId]).toEqual(['abc-124', 'abc-124']);
    for (const bad of ['a b', 'x'.repeat(300), '<script>']) {
      const made = (await ask(world, 'GET', '/v1/key', { headers: { 'x-request-id': bad } })).headers.get(
        'x-request-id',
      );
      expect(made).toMatch(/^[0-9a-f-]{36}$/);
    }
  });
});

describe('a rejection', () => {
  const shared = sharedWorld();
  const jobs = `/v1/accounts/${OWN}/jobs`;

  test.each([
    [`${jobs}/1/events?order=newest&order=newest`, 'order must be given once.'],
    [`${jobs}?risk=late&risk=late`, 'risk must be given once.'],
    ['/v1/accounts?include=status&include=status', 'include must be given once.'],
    ['/v1/keys?limit=1&limit=1', 'limit must be given once.'],
    [
      `/v1/accounts/${FAR}/jobs?after=OTHER`,
      'after must be the `next` of a page of the same account, with the same filters and sort order.',
    ],
    ['/v1/search', 'q is missing; it must be 2 to 200 characters long.'],
  ])('of GET %s states what is accepted', async (path, detail) => {
    const other = (await ask(shared.world, 'GET', `${jobs}?limit=1`)).body.next;
    const { status, body } = await ask(shared.world, 'GET', path.replace('OTHER', other));
    expect([status, body.detail]).toEqual([400, detail]);
  });

  const csv = (jobNumber: string) => ({ csv: `email,jobNumber\na@example.com,${jobNumber}\n`, dryRun: true });
  test.each(['1.5', '-1', '0', '9999999999999'])(
    'of the job number %s in a table states the range',
    async (number) => {
      const path = `/v1/accounts/${OWN}/recipients/import`;
      const { body } = await ask(shared.world, 'POST', path, { body: csv(number) });
      const reason = 'jobNumber must be an integer from 1 to 999999999999.';
      expect(body.invalidRows).toMatchObject([{ field: 'jobNumber', reason }]);
    },
  );

  test.each([
    [
      `/v1/accounts/${OWN}/suppressions`,
      { channel: 'email' },
      'address is missing; it must be an e-mail address or a mobile number.',
    ],
    [
      `/v1/accounts/${OWN}/recipients`,
      { email: 'a\r\nb@example.com' },
      'email must be one line without control characters.',
    ],
    [
      '/v1/endpoints',
      { url: 'https://erp.example.com/', headers: { 'a b': '1' } },
      "headers.a b must contain only letters, digits and !#$%&'*+-.^_`|~.",
    ],
    [
      '/v1/endpoints',
      { url: 'https://erp.example.com/', region: 'us', accounts: [FAR] },
      `accounts must contain only accounts of region us; "${FAR}" is not an account of this region.`,
    ],
    ['/v1/endpoints', { url: '::', region: 'us' }, 'url is not accepted. It is not a URL.'],
    [
      '/v1/alert-rules',
      {
        ...{ region: 'us', name: 'Late', condition: 'late_jobs', threshold: 1 },
        target: { kind: 'slack', url: '::' },
      },
      'target.url is not accepted. It is not a URL.',
    ],
    [
      '/v1/alert-rules',
      {
        ...{ region: 'us', name: 'Late', condition: 'late_jobs', threshold: 1, accounts: [OWN, FAR] },
        target: { kind: 'slack', url: 'https://hooks.example.com/x' },
      },
      `accounts must contain only accounts of region us; "${FAR}" is not an account of this region.`,
    ],
    [
      '/v1/wall-pairings/key',
      { code: '123456', deviceToken: 'x' },
      'deviceToken must be the text of 43 characters that the start of the pairing returned.',
    ],
  ])('of POST %s with %j states what is accepted', async (path, body, detail) => {
    expect((await ask(shared.world, 'POST', path, { body })).body.detail).toBe(detail);
  });

  const item = `/v1/attention/${NOTED}`;
  const notes = `/v1/accounts/${OWN}/jobs/1/messages`;
  const url = 'https://erp.example.com/';
  test.each<[string, string, string, object]>([
    ['POST', '/v1/keys', 'name', { role: 'read' }],
    ['POST', '/v1/wall-pairings/approval', 'name', { code: '123456' }],
    ['POST', '/v1/endpoints', 'description', { url }],
    ['PATCH', '/v1/endpoints/own', 'description', {}],
    ['PATCH', '/v1/alert-rules/own', 'name', {}],
    ['POST', `${item}/assign`, 'assignee', {}],
    ['POST', `${item}/note`, 'note', {}],
    ['PATCH', `/v1/accounts/${OWN}/recipients/ann`, 'name', {}],
    ['POST', notes, 'text', { recipient: 'ann', channel: 'email' }],
  ])('%s %s: refuses control characters in %s', async (method, path, field, others) => {
    const isOneLine = field !== 'text';
    for (const character of ['\u0000', '\u0007', '\r', ...(isOneLine ? ['\n', '\u2028'] : [])]) {
      const body = { ...others, [field]: `a${character}b` };
      const answer = await ask(shared.world, method, path, { body });
      const rule = isOneLine ? 'be one line without control' : 'contain no control';
      expect([answer.status, answer.body.field]).toEqual([400, field]);
      expect(answer.body.detail).toMatch(`${field} must ${rule} characters`);
    }
  });

  test('of a place in an export that no page can return says what is accepted', async () => {
    for (const after of ['99:x', `0:${'x'.repeat(1025)}`]) {
      const { status, body } = await ask(shared.world, 'POST', `/v1/accounts/${MOVING}/export`, {
        body: { after },
      });
      expect([status, body.detail]).toEqual([400, 'after must be the `next` of a previous page.']);
    }
  });

  test('of a name that has only spaces says that it must not be empty', async () => {
    const { body } = await ask(shared.world, 'POST', '/v1/keys', { body: { role: 'read', name: '  ' } });
    expect(body.detail).toBe('name must not be empty.');
  });

  test('of an invalid key does not ask for a key, and is the same for an unknown and a revoked one', async () => {
    const get = (key: string) =>
      ask(shared.world, 'GET', '/v1/key', { headers: { authorization: `Bearer ${key}` } });
    const unknown = await get(`jw_${'a'.repeat(12)}_${'A'.repeat(43)}`);
    const revoked = await get(shared.world.revoked);
    expect([unknown.status, revoked.status]).toEqual([401, 401]);
    expect(unknown.body.detail).toMatch(/^The API key or ID token is not valid\./);
    expect(revoked.body.detail).toBe(unknown.body.detail);
    const { body } = await ask(shared.world, 'GET', '/v1/key', { headers: { authorization: '' } });
    expect(body.detail).toMatch(/^Send an API key/);
  });

  test.each(['', '1', 'garbage', '"1', '"1" "2"'])('of If-Match: %s names the format', async (ifMatch) => {
    const headers = { 'if-match': ifMatch };
    const body = { pollIntervalSeconds: 90 };
    const answer = await ask(shared.world, 'PATCH', `/v1/accounts/${OWN}`, { body, headers });
    expect([answer.status, answer.body.field]).toEqual([400, 'If-Match']);
    expect(answer.body.detail).toMatch(/^If-Match must be an ETag with its quotes, such as "3"/);
  });

  test.each(['W/"1"', '"x"', '"0", "99"'])('of If-Match: %s is that it does not match', async (ifMatch) => {
    const headers = { 'if-match': ifMatch };
    const body = { pollIntervalSeconds: 90 };
    expect((await ask(shared.world, 'PATCH', `/v1/accounts/${OWN}`, { body, headers })).status).toBe(412);
  });

  test('of a request that the server blocks is a problem document with a request id, for any path', async () => {
    for (const path of ['/v1/key', '/docs', '/nothing']) {
      const answer = await shared.world.app.request(path, {}, { blocked: 'The host x is not served.' });
      expect([answer.status, answer.headers.get('content-type')]).toEqual([403, 'application/problem+json']);
      expect(await answer.json()).toMatchObject({
        type: 'urn:jobwire:problem:request-blocked',
        detail: 'The host x is not served.',
        requestId: answer.headers.get('x-request-id'),
      });
    }
  });

  test('of a body with a Content-Encoding says so', async () => {
    const headers = { 'content-encoding': 'gzip' };
    const { status, body } = await ask(shared.world, 'POST', '/v1/keys', { body: '{}', headers });
    expect([status, body.detail]).toEqual([415, 'Send the body without Content-Encoding.']);
  });
});

describe('CORS', () => {
  const preflight = {
    origin: 'https://tools.example.com',
    'access-control-request-method': 'PATCH',
    'access-control-request-headers': 'authorization,if-match',
  };
  const getCorsHeaders = (headers: Headers) =>
    [...headers.keys()].filter((name) => name.startsWith('access-control'));

  test('is disabled by default', async () => {
    const world = await worldWith();
    const asked = await world.app.request('/v1/accounts', { method: 'OPTIONS', headers: preflight });
    expect([asked.status, getCorsHeaders(asked.headers)]).toEqual([401, []]);
    expect(getCorsHeaders((await ask(world, 'GET', '/v1/key', { headers: preflight })).headers)).toEqual([]);
  });

  test('allows configured origins: preflights need no key; other origins are rejected', async () => {
    const world = await worldWith({ corsOrigins: [preflight.origin] });
    const asked = await world.app.request('/v1/accounts/acme', { method: 'OPTIONS', headers: preflight });
    expect(asked.status).toBe(204);
    expect(asked.headers.get('access-control-allow-origin')).toBe(preflight.origin);
    expect(asked.headers.get('access-control-allow-methods')).toMatch(/PATCH/);
    expect(asked.headers.get('access-control-allow-headers')?.toLowerCase()).toMatch(
      /authorization.*if-match/,
    );
    const answer = await ask(world, 'GET', '/v1/key', { headers: { origin: preflight.origin } });
    expect(answer.headers.get('access-control-allow-origin')).toBe(preflight.origin);
    expect(answer.headers.get('access-control-allow-credentials')).toBeNull();
    const denied = await world.app.request('/v1/key', { headers: { origin: preflight.origin } });
    expect([denied.status, denied.headers.get('access-control-allow-origin')]).toEqual([
      401,
      preflight.origin,
    ]);
    const foreign = await ask(world, 'GET', '/v1/key', { headers: { origin: 'https://evil.example.com' } });
    expect(foreign.headers.get('access-control-allow-origin')).toBeNull();
  });
});

test('an address with many wrong keys is rate limited; a valid key in use continues from the same address', async () => {
  const world = await worldWith();
  const server = createAdaptorServer({
    fetch: (request, env) =>
      world.app.fetch(request, { clientAddress: (env as HttpBindings).incoming.socket.remoteAddress ?? '' }),
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  closers.push(() => new Promise((resolve) => server.close(resolve)));
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  const key = (secret: string) =>
    fetch(`http://127.0.0.1:${address.port}/v1/key`, {
      headers: { authorization: `Bearer ${secret}`, connection: 'close' },
    });
  const good = world.keys['read own'].secret;
  expect((await key(good)).status).toBe(200);
  const statuses: number[] = [];
  const left: (string | undefined)[] = [];
  for (let at = 0; at < 25; at += 1) {
    const { status, headers } = await key(`wrong-${at}`);
    statuses.push(status);
    expect(headers.get('ratelimit-policy')).toBe('"failed-authentications";q=20;w=60');
    left.push(
      /^"failed-authentications";r=(\d+);t=([1-9]|[1-5]\d|60)$/.exec(headers.get('ratelimit') ?? '')?.[1],
    );
  }
  expect(left).toEqual(Array.from({ length: 25 }, (_, at) => String(Math.max(0, 19 - at))));
  expect(statuses).toEqual([...Array(20).fill(401), ...Array(5).fill(429)]);
  const refused = await key('wrong');
  expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
  expect(await refused.json()).toMatchObject({ type: 'urn:jobwire:problem:too-many-failed-authentications' });
  expect((await key(good)).status).toBe(200);
  expect((await key(world.keys['read all'].secret)).status, 'not seen before').toBe(429);
});
