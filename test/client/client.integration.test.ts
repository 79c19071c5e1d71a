/**
 * The client of the API on broken connections, redirects and unexpected responses, with a server that drops connections at any
 * point.
 */
import type { ServerResponse } from 'node:http';
import { afterEach, describe, expect, test } from 'vitest';
import { markPossiblyProcessed, toUnexpectedResponseError, toUnreachableError } from '../../client/errors.ts';
import { ApiError, createClient, type FollowOptions, UnreachableError } from '../../client/index.ts';
import { getExample } from '../../shared/events/examples.ts';
import { type Answer, type Asked, fakeApi, problem, stream } from '../support/command.ts';

const open: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of open.splice(0).reverse()) await close();
});

async function serve(routes: Record<string, Answer | ((asked: Asked) => Answer)>, options: object = {}) {
  const api = await fakeApi(routes);
  open.push(() => api.stop());
  return { ...api, client: createClient({ url: `${api.url}/`, key: 'a-key', ...options }) };
}

const account = { params: { path: { id: 'acme' } } };
const cut: Answer = { write: (response: ServerResponse) => void response.socket?.resetAndDestroy() };

describe('a failed request', () => {
  test('throws the message, kind, field and members of the problem, and reports a 401', async () => {
    const unauthorized: ApiError[] = [];
    const { client } = await serve(
      {
        'GET /v1/accounts/acme': problem(401, 'unauthorized', 'Send the API key.'),
        'GET /v1/accounts': {
          ...problem(429, 'too-many-requests', 'limit is high.', { field: 'limit', most: 5 }),
          headers: { 'retry-after': '7', 'x-request-id': 'r1' },
        },
      },
      { onUnauthorized: (error: ApiError) => unauthorized.push(error) },
    );
    await expect(client.get('/v1/accounts')).rejects.toMatchObject({
      ...{ status: 429, kind: 'too-many-requests', message: 'limit is high.', field: 'limit' },
      ...{ requestId: 'r1', retryAfterSeconds: 7, problem: { most: 5 } },
    });
    expect(unauthorized).toEqual([]);
    const error = await client.get('/v1/accounts/{id}', account).catch((cause: unknown) => cause);
    expect(unauthorized).toEqual([error]);
  });

  test.each([
    [{ status: 502, json: 'Bad gateway' }, ApiError, / responded with HTTP 502\.$/],
    [
      { write: (response: ServerResponse) => response.end('<html>') },
      UnreachableError,
      /does not seem to be Jobwire/,
    ],
    [{ json: { jobs: [] } }, UnreachableError, /does not seem to be Jobwire\. Check the address\.$/],
  ])('names a response that Jobwire would not send: %j', async (answer, kind, message) => {
    const { client } = await serve({ 'GET /v1/accounts': answer as Answer });
    const error = await client
      .list('/v1/accounts', 'accounts')
      .next()
      .catch((cause: unknown) => cause);
    expect(error).toBeInstanceOf(kind);
    expect((error as Error).message).toMatch(message);
  });

  test('is not redirected: the key is sent to the given address only', async () => {
    const other = await serve({});
    const { client } = await serve({
      'GET /v1/accounts/acme': { status: 307, headers: { location: `${other.url}/v1/x` } },
    });
    await expect(client.get('/v1/accounts/{id}', account)).rejects.toThrow(
      `redirects to ${other.url}. The API key`,
    );
    expect(other.asked).toEqual([]);
  });

  test('ends at its timeout, and with the reason of an aborted signal', async () => {
    const { client } = await serve({ 'GET /v1/accounts': { write: () => {} } }, { timeoutMs: 50 });
    await expect(client.get('/v1/accounts')).rejects.toThrow(/can’t be reached: the request timed out\.$/);
    const signal = AbortSignal.abort(new Error('No longer needed.'));
    await expect(client.get('/v1/accounts', { signal })).rejects.toThrow('No longer needed.');
  });
});

test('a browser’s error without a code leaves in doubt whether the request was processed; a redirect does not', () => {
  const lost = toUnreachableError('https://jobwire.example', new TypeError('Failed to fetch'));
  expect(markPossiblyProcessed('POST', lost).message).toMatch(
    /Failed to fetch\. The request may have been processed\.$/,
  );
  expect(markPossiblyProcessed('GET', lost)).toBe(lost);
  const redirected = toUnexpectedResponseError('https://jobwire.example');
  expect(markPossiblyProcessed('POST', redirected)).toBe(redirected);
});

describe('a broken connection', () => {
  const key = { key: { id: 'k2' }, secret: 'jw_k2_shown-once' };
  const create = { body: { role: 'read' } } as const;

  test('is repeated once, with the same Idempotency-Key, and waits while the first request runs', async () => {
    const busy = problem(409, 'request-in-progress', 'A request with this Idempotency-Key is in progress.');
    const answers = [cut, busy, { status: 201, json: key }];
    const { client, asked } = await serve({ 'POST /v1/keys': () => answers.shift() ?? cut });
    expect(await client.post('/v1/keys', create)).toEqual(key);
    const [first, ...others] = asked.map(({ headers }) => headers['idempotency-key']);
    expect(first).toMatch(/^\w{32}$/);
    expect(others).toEqual([first, first]);
    expect(asked.map(({ body }) => body)).toEqual([create.body, create.body, create.body]);
    answers.push({ status: 201, json: key });
    await client.post('/v1/keys', create);
    expect(asked.at(-1)?.headers['idempotency-key']).not.toBe(first);
  });

  test('stops waiting for the first request when the caller aborts', async () => {
    const busy = problem(409, 'request-in-progress', 'A request with this Idempotency-Key is in progress.');
    const answers: Answer[] = [cut, { ...busy, headers: { 'retry-after': '30' } }];
    const { client, asked } = await serve({ 'POST /v1/keys': () => answers.shift() ?? { json: key } });
    const startedAt = performance.now();
    const signal = AbortSignal.timeout(500);
    await expect(client.post('/v1/keys', { ...create, signal })).rejects.toMatchObject({
      name: 'TimeoutError',
    });
    // Less than the wait that the response demands.
    expect(performance.now() - startedAt).toBeLessThan(20_000);
    expect(asked).toHaveLength(2);
  });

  test('that persists: the message says that the request may have been processed; a DELETE is not repeated', async () => {
    const { client, asked } = await serve({
      'POST /v1/keys': cut,
      'DELETE /v1/keys/k2': cut,
      'GET /v1/keys': cut,
    });
    const doubt = /: the connection was cut\. The request may have been processed\.$/;
    await expect(client.post('/v1/keys', create)).rejects.toThrow(doubt);
    expect(asked).toHaveLength(2);
    await expect(client.delete('/v1/keys/{id}', { params: { path: { id: 'k2' } } })).rejects.toThrow(doubt);
    expect(asked).toHaveLength(3);
    await expect(client.get('/v1/keys')).rejects.toThrow(/: the connection was cut\.$/);
    const nobody = createClient({ url: 'http://127.0.0.1:1', key: 'a-key' });
    await expect(nobody.post('/v1/keys', create)).rejects.not.toThrow(/may have been/);
  });

  test('of a change that required a revision is not reported as a change by others', async () => {
    const modified = problem(412, 'precondition-failed', 'The resource was modified.');
    const answers = [cut, modified];
    const { client, asked } = await serve({ 'PATCH /v1/accounts/acme': () => answers.shift() ?? modified });
    const change = () =>
      client.patch('/v1/accounts/{id}', {
        params: { ...account.params, header: { 'If-Match': '"1"' } },
        body: { pollIntervalSeconds: 300 },
      });
    await expect(change()).rejects.toThrow(
      /: the connection was cut\. The request may have been processed\.$/,
    );
    expect(asked).toHaveLength(2);
    await expect(change()).rejects.toThrow('The resource was modified.');
  });
});

test('a list is read page by page, and no further than its maximum', async () => {
  const { client, asked } = await serve({
    'GET /v1/accounts': ({ query }) => ({
      json: query.after
        ? { accounts: [{ id: 'c' }], next: null }
        : { accounts: [{ id: 'a' }, { id: 'b' }], next: 'p2' },
    }),
  });
  const read = async (options: object) => {
    const ids: string[] = [];
    for await (const { id } of client.list('/v1/accounts', 'accounts', options)) ids.push(id);
    return ids;
  };
  let more = 0;
  const onMore = (): void => {
    more += 1;
  };
  expect(await read({ params: { query: { region: 'us' } }, onMore })).toEqual(['a', 'b', 'c']);
  expect(asked.map(({ query }) => query)).toEqual([
    { region: 'us', limit: '500' },
    { region: 'us', limit: '500', after: 'p2' },
  ]);
  expect(more).toBe(0);
  expect(await read({ max: 2, onMore })).toEqual(['a', 'b']);
  expect(await read({ max: 1, onMore })).toEqual(['a']);
  expect([asked.length, more]).toEqual([4, 2]);
});

test('a list as CSV has no more rows than its maximum, although a page can have more', async () => {
  const rows = ['id,note\r\n', 'a,"x\r\n""y"""\r\n', 'b,\r\n', 'c,\r\n'];
  const write = (response: ServerResponse) =>
    void response.writeHead(200, { 'content-type': 'text/csv' }).end(rows.join(''));
  const { client } = await serve({ 'GET /v1/accounts': { write } });
  let more = 0;
  const onMore = (): void => {
    more += 1;
  };
  const read: string[] = [];
  for await (const text of client.csv('/v1/accounts', { max: 2, onMore })) read.push(text);
  expect(read.join('')).toBe(rows.slice(0, 3).join(''));
  expect(more).toBe(1);
});

test('a list begins at a given cursor', async () => {
  const { client, asked } = await serve({
    'GET /v1/accounts': ({ query }) => ({
      json: query.after === 'p2' ? { accounts: [{ id: 'b' }], next: 'p3' } : { accounts: [], next: null },
    }),
  });
  const ids: string[] = [];
  const init = { params: { query: { after: 'p2' } } };
  for await (const { id } of client.list('/v1/accounts', 'accounts', init)) ids.push(id);
  expect([ids, asked.map(({ query }) => query.after)]).toEqual([['b'], ['p2', 'p3']]);
});

test.each([
  [
    'oldest',
    [
      { events: [1, 2], next: 'e.2', head: 'e.3' },
      { events: [3], next: 'e.3', head: 'e.3' },
    ],
    [{ last: '5' }, { after: 'e.2' }],
  ],
  [
    'newest',
    [
      { events: [3, 2], next: 'e.3', previous: 'e.1', head: 'e.3' },
      { events: [1], next: 'e.1', previous: null, head: 'e.3' },
    ],
    [{ order: 'newest' }, { order: 'newest', before: 'e.1' }],
  ],
] as const)('a list of a feed, %s first, ends at the end of the feed', async (order, pages, queries) => {
  const answers = [...pages];
  const { client, asked } = await serve({ 'GET /v1/events': () => ({ json: answers.shift() }) });
  const query = order === 'newest' ? { order } : { last: 5 };
  const events: unknown[] = [];
  for await (const event of client.list('/v1/events', 'events', { params: { query } })) events.push(event);
  expect(events).toEqual(pages.flatMap((page) => page.events));
  expect(asked.map(({ query: { limit: _, ...rest } }) => rest)).toEqual(queries);
});

describe('a followed stream', () => {
  const event = (number: number) => ({ ...getExample('job.created'), id: `acme.e1.${number}` });
  const frame = (number: number) =>
    `id: e1.${number}\nevent: job.created\ndata: ${JSON.stringify(event(number))}\n\n`;
  const cursorFrame = (number: number) =>
    `id: e1.${number}\nevent: cursor\ndata: {"cursor":"e1.${number}"}\n\n`;

  /** Follows until this number of events has arrived. `changes`: losses and recoveries. */
  async function follow(answers: Answer[], events: number, query: object = {}) {
    const { client, asked } = await serve({
      'GET /v1/accounts/acme/events/stream': () =>
        answers.shift() ?? problem(500, 'internal-server-error', 'Too many.'),
    });
    const changes: string[] = [];
    const options: FollowOptions = {
      onLost: (reason) => changes.push(reason),
      onFound: () => changes.push('found'),
    };
    const ids: number[] = [];
    const params = { ...account.params, query };
    for await (const message of client.follow('/v1/accounts/{id}/events/stream', { params, ...options })) {
      ids.push(Number(JSON.parse(message.event).id.split('.').at(-1)));
      if (ids.length === events) break;
    }
    return { ids, changes, queries: asked.map((one) => one.query) };
  }

  test('resumes at its cursor after a disconnection, also within an event: none missed, none twice', async () => {
    const answers = [
      stream([`retry: 1\n${cursorFrame(4)}`, frame(5), frame(6), frame(7).slice(0, 60)], 'cut'),
      problem(503, 'service-unavailable', 'The table does not respond.'),
      stream([cursorFrame(6), frame(7), frame(8)], 'open'),
    ];
    const { ids, changes, queries } = await follow(answers, 4, { types: 'job.*', after: 'e1.4' });
    expect(ids).toEqual([5, 6, 7, 8]);
    expect(queries.map(({ after }) => after)).toEqual(['e1.4', 'e1.6', 'e1.6']);
    expect(queries.every(({ types }) => types === 'job.*')).toBe(true);
    expect(changes).toEqual([expect.stringMatching(/ can’t be reached: /), 'found']);
  });

  test.each([
    ['cursor events', cursorFrame],
    ['ids without data, which earlier API versions send', (number: number) => `id: e1.${number}\n\n`],
  ])('advances its cursor before the first event by %s', async (_, advance) => {
    const answers = [
      stream([`retry: 1\n${advance(4)}`], 'cut'),
      stream([advance(4), ':\n\n', advance(9)], 'cut'),
      stream([advance(9), frame(10)], 'open'),
    ];
    const { ids, queries } = await follow(answers, 1);
    expect(ids).toEqual([10]);
    expect(queries.map(({ after }) => after)).toEqual([undefined, 'e1.4', 'e1.9']);
  });

  test('does not report the regular end of a connection', async () => {
    const answers = [stream([`retry: 1\n${frame(5)}`], 'end'), stream([frame(6)], 'open')];
    expect(await follow(answers, 2)).toMatchObject({ ids: [5, 6], changes: [] });
  });

  test('throws if the first connection fails, or if its cursor expires later', async () => {
    const gone = problem(410, 'cursor-gone', 'The cursor has expired.', { earliest: 'e2.0' });
    await expect(follow([gone], 1)).rejects.toMatchObject({ problem: { earliest: 'e2.0' } });
    const later = [stream([`retry: 1\n${frame(5)}`], 'end'), gone];
    await expect(follow(later, 2)).rejects.toThrow('The cursor has expired.');
  });
});
