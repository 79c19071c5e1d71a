/**
 * The client of the ordering API: tokens, calls, faults and time-outs, against HTTP servers on loopback.
 * One file: its tests share the fake token host and the client on it.
 */
import { getEventListeners } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { type AddressInfo, createServer as createTcpServer } from 'node:net';
import { inspect } from 'node:util';
import { brotliCompressSync, gzipSync } from 'node:zlib';
import { afterEach, describe, expect, test } from 'vitest';
import {
  createOrderingClient,
  type Holds,
  type OrderingClientOptions,
  type RequestInfo,
} from '../../shared/ordering/client.ts';
import { errorFromResponse, OrderingError } from '../../shared/ordering/errors.ts';
import { ActiveJob, ActiveJobsPage, JobDetail } from '../../shared/ordering/schemas.ts';
import {
  type CachedToken,
  createTokenSource,
  type TokenCache,
  type TokenSourceOptions,
} from '../../shared/ordering/tokens.ts';
import { VERSION } from '../../shared/version.ts';

const SECRET = 's3cr3t/with+odd=chars&more';
const NOW = Date.UTC(2026, 10, 21, 12, 0, 0);

const closers: (() => Promise<void>)[] = [];
afterEach(async () => {
  await Promise.all(closers.splice(0).map((close) => close()));
});

type Handler = (request: IncomingMessage, response: ServerResponse, body: string) => void | Promise<void>;

/** A real HTTP server on loopback; `seen` lists the requests as `METHOD url`. */
async function serve(handler: Handler) {
  const seen: string[] = [];
  const server = createServer(async (request, response) => {
    seen.push(`${request.method} ${request.url}`);
    let body = '';
    for await (const chunk of request) body += chunk;
    await handler(request, response, body);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  closers.push(
    () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  );
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  return { url: `http://127.0.0.1:${address.port}`, seen };
}

function json(response: ServerResponse, status: number, body: unknown, headers: Record<string, string> = {}) {
  response.writeHead(status, { 'content-type': 'application/json', ...headers }).end(JSON.stringify(body));
}

/** An auth host that issues token-1, token-2, … */
async function authHost(handler?: Handler, expiresIn = 600) {
  const forms: URLSearchParams[] = [];
  let issued = 0;
  const host = await serve(async (request, response, body) => {
    forms.push(new URLSearchParams(body));
    if (handler) return handler(request, response, body);
    json(response, 200, { access_token: `token-${++issued}`, expires_in: expiresIn });
  });
  return { ...host, forms };
}

const source = (authUrl: string, more: Partial<TokenSourceOptions> = {}) =>
  createTokenSource({ authUrl, realm: 'us', clientId: 'key-1', clientSecret: SECRET, ...more });

/** A client of `handler`, with its own auth host, a stopped clock and recorded sleeps. */
async function connectClient(handler: Handler, more: Partial<OrderingClientOptions> = {}) {
  const auth = await authHost();
  const api = await serve(handler);
  const sleeps: number[] = [];
  const infos: RequestInfo[] = [];
  const client = createOrderingClient({
    baseUrl: api.url,
    tokens: source(auth.url),
    now: () => NOW,
    sleep: async (ms) => void sleeps.push(ms),
    random: () => 0,
    onRequest: (info) => infos.push(info),
    ...more,
  });
  return { client, api, auth, sleeps, infos };
}

/** Answers each request with the next of `answers`; repeats the last one. */
function inTurn(...answers: ((response: ServerResponse) => void)[]): Handler {
  let turn = 0;
  return (_request, response) => answers[Math.min(turn++, answers.length - 1)]?.(response);
}

const account = (response: ServerResponse) => json(response, 200, { id: 7, name: 'Acme' });
const status =
  (code: number, headers: Record<string, string> = {}) =>
  (response: ServerResponse) => {
    response.writeHead(code, headers).end();
  };
const page = (items: unknown, more: object = {}) => ({
  items,
  totalCount: 1,
  pageNumber: 1,
  pageSize: 100,
  totalPages: 1,
  hasPreviousPage: false,
  hasNextPage: false,
  ...more,
});

async function failure(promise: Promise<unknown>): Promise<OrderingError> {
  const error = await promise.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  if (error instanceof OrderingError) return error;
  throw new Error(`expected an OrderingError, got ${inspect(error)}`);
}

/** Any form in which a log could contain a value. */
const shown = (value: unknown) =>
  [
    inspect(value, { depth: 20, showHidden: true }),
    JSON.stringify(value),
    value instanceof Error ? `${value.message}\n${value.stack}` : '',
  ].join('\n');

describe('tokens', () => {
  test('fifty concurrent calls cost one token request, a form with the client credentials', async () => {
    const auth = await authHost();
    const tokens = source(`${auth.url}/keycloak/`);
    const got = await Promise.all(Array.from({ length: 50 }, () => tokens.get()));
    expect(auth.seen).toEqual(['POST /keycloak/realms/us/protocol/openid-connect/token']);
    expect(Object.fromEntries(auth.forms[0] ?? [])).toEqual({
      grant_type: 'client_credentials',
      client_id: 'key-1',
      client_secret: SECRET,
    });
    expect(new Set(got.map((token) => token.value))).toEqual(new Set(['token-1']));
    // All of them waited for it, so each of them knows that it is new.
    expect(got.every((token) => token.fresh)).toBe(true);
    expect((await tokens.get()).fresh).toBe(false);
  });

  test.each([
    { expiresIn: 600, usableMs: 540_000 },
    { expiresIn: 61, usableMs: 1_000 },
    { expiresIn: 60, usableMs: 30_000 },
    { expiresIn: 10, usableMs: 5_000 },
  ])('a token of $expiresIn s is used for exactly $usableMs ms', async ({ expiresIn, usableMs }) => {
    const auth = await authHost(undefined, expiresIn);
    let now = NOW;
    const tokens = source(auth.url, { now: () => now });
    expect(await tokens.get()).toEqual({ value: 'token-1', obtainedAt: NOW, fresh: true });
    now = NOW + usableMs - 1;
    expect(await tokens.get()).toEqual({ value: 'token-1', obtainedAt: NOW, fresh: false });
    now = NOW + usableMs;
    expect(await tokens.get()).toEqual({ value: 'token-2', obtainedAt: now, fresh: true });
  });

  test('a caller that gives up does not abort the request of other callers', async () => {
    const arrived = Promise.withResolvers<void>();
    const release = Promise.withResolvers<void>();
    const auth = await authHost(async (_request, response) => {
      arrived.resolve();
      await release.promise;
      json(response, 200, { access_token: 'shared', expires_in: 600 });
    });
    const tokens = source(auth.url);
    const impatient = new AbortController();
    const first = tokens.get(impatient.signal);
    const second = tokens.get();
    await arrived.promise;
    impatient.abort(new Error('gave up'));
    await expect(first).rejects.toThrow('gave up');
    release.resolve();
    expect((await second).value).toBe('shared');
    expect(auth.seen).toHaveLength(1);
  });

  test('a failure is not cached: the next call sends a request', async () => {
    const auth = await authHost(
      inTurn(status(503), (response) => json(response, 200, { access_token: 'ok', expires_in: 600 })),
    );
    const tokens = source(auth.url);
    expect((await failure(tokens.get())).kind).toBe('unavailable');
    expect((await tokens.get()).value).toBe('ok');
  });

  test('dropping a token that has been replaced meanwhile keeps the new one', async () => {
    const auth = await authHost();
    const tokens = source(auth.url);
    const { value } = await tokens.get();
    await tokens.drop(value);
    expect((await tokens.get()).value).toBe('token-2');
    await tokens.drop(value);
    expect((await tokens.get()).value).toBe('token-2');
    expect(auth.seen).toHaveLength(2);
  });

  test.each([400, 401, 403])(
    'a %i of the token endpoint is credentials_rejected and contains no secret',
    async (code) => {
      const auth = await authHost((_request, response, body) =>
        json(response, code, {
          error: 'unauthorized_client',
          error_description: `Invalid\nclient secret ${SECRET} in ${body}`,
          access_token: 'leaked-token',
          debug: 'internal trace',
        }),
      );
      const tokens = source(auth.url);
      const error = await failure(tokens.get());
      expect(error).toMatchObject({ kind: 'credentials_rejected', status: code });
      expect(error.message).toContain('unauthorized_client: Invalid client secret [hidden]');
      for (const text of [shown(error), shown(tokens)]) {
        expect(text).not.toContain(SECRET);
        expect(text).not.toContain(encodeURIComponent(SECRET));
        expect(text).not.toContain('leaked-token');
        expect(text).not.toContain('internal trace');
      }
    },
  );

  test.each([
    { name: 'not JSON', type: 'application/json', body: '{"access_token":"abcdefghijklmnop"' },
    { name: 'without an expiry', type: 'application/json', body: '{"access_token":"abcdefghijklmnop"}' },
    {
      name: 'with a line break',
      type: 'application/json',
      body: '{"access_token":"abcdefgh\\r\\nijk","expires_in":600}',
    },
    { name: 'an HTML page', type: 'text/html', body: '<html>abcdefghijklmnop</html>' },
  ])('a token answer that is $name is malformed, and not quoted', async ({ type, body }) => {
    const auth = await authHost((_request, response) => {
      response.writeHead(200, { 'content-type': type }).end(body);
    });
    const error = await failure(source(auth.url).get());
    expect(error.kind).toBe('malformed');
    expect(shown(error)).not.toContain('abcdef');
  });

  test('a redirect does not send the credentials to another address', async () => {
    const thief = await serve((_request, response) =>
      json(response, 200, { access_token: 'stolen', expires_in: 600 }),
    );
    const auth = await authHost((_request, response) => {
      response.writeHead(307, { location: `${thief.url}/token` }).end();
    });
    expect((await failure(source(auth.url).get())).kind).toBe('malformed');
    expect(thief.seen).toEqual([]);
  });

  test('a token endpoint that never answers is a timeout, and an unreachable one a network failure', async () => {
    const auth = await authHost(() => {});
    expect((await failure(source(auth.url, { timeoutMs: 40 }).get())).kind).toBe('timeout');
    const gone = await serve(() => {});
    await Promise.all(closers.splice(-1).map((close) => close()));
    const error = await failure(source(gone.url).get());
    expect(error).toMatchObject({ kind: 'network', detail: 'ECONNREFUSED' });
    expect(error.cause).toBeInstanceOf(Error);
  });

  describe('a shared token cache', () => {
    function memoryCache(stored?: CachedToken) {
      const state = { stored };
      const cache: TokenCache = {
        load: async () => state.stored,
        save: async (token) => {
          state.stored = token;
        },
        clear: async () => {
          state.stored = undefined;
        },
      };
      return { state, cache };
    }

    test('two processes use one token, and only the first call reports it as fresh', async () => {
      const auth = await authHost();
      const { state, cache } = memoryCache();
      const now = () => NOW;
      expect((await source(auth.url, { cache, now }).get()).fresh).toBe(true);
      expect(state.stored).toEqual({ value: 'token-1', expiresAt: NOW + 540_000 });
      expect(await source(auth.url, { cache, now }).get()).toMatchObject({ value: 'token-1', fresh: false });
      expect(auth.seen).toHaveLength(1);
    });

    test('an expired cached token is not used', async () => {
      const auth = await authHost();
      const { cache } = memoryCache({ value: 'old', expiresAt: NOW });
      expect((await source(auth.url, { cache, now: () => NOW }).get()).value).toBe('token-1');
    });

    test('a dropped token is removed, and the next one comes from the endpoint even if clearing failed', async () => {
      const auth = await authHost();
      const { state, cache } = memoryCache({ value: 'revoked', expiresAt: NOW + 1e6 });
      const tokens = source(auth.url, { cache, now: () => NOW });
      expect((await tokens.get()).value).toBe('revoked');
      await tokens.drop('revoked');
      expect(state.stored).toBeUndefined();
      state.stored = { value: 'revoked', expiresAt: NOW + 1e6 };
      expect(await tokens.get()).toMatchObject({ value: 'token-1', fresh: true });
      expect(state.stored.value).toBe('token-1');
    });

    test("dropping a process's own old token keeps another process's newer one", async () => {
      const auth = await authHost();
      const { state, cache } = memoryCache();
      const tokens = source(auth.url, { cache, now: () => NOW });
      const { value } = await tokens.get();
      state.stored = { value: 'newer', expiresAt: NOW + 1e6 };
      await tokens.drop(value);
      expect(state.stored.value).toBe('newer');
    });

    test('after a rejection the next token is a new one, although a cached one was used meanwhile', async () => {
      const auth = await authHost(undefined, 120);
      const { state, cache } = memoryCache();
      let now = NOW;
      const tokens = source(auth.url, { cache, now: () => now });
      const refused = await tokens.get();
      now += 60_000;
      state.stored = { value: 'of another process', expiresAt: now + 1e6 };
      expect((await tokens.get()).value).toBe('of another process');
      await tokens.drop(refused.value);
      expect(await tokens.get()).toMatchObject({ value: 'token-2', fresh: true });
    });

    test('a failing cache never fails a call', async () => {
      const auth = await authHost();
      const broken = async () => {
        throw new Error('table is gone');
      };
      const tokens = source(auth.url, { cache: { load: broken, save: broken, clear: broken } });
      expect((await tokens.get()).value).toBe('token-1');
      await tokens.drop('token-1');
      expect((await tokens.get()).value).toBe('token-2');
    });
  });
});

describe('calls', () => {
  test.each(['', '/', '/api/v1', '/api/v1/'])(
    'a base address ending in "%s" keeps its path',
    async (path) => {
      const auth = await authHost();
      const api = await serve((_request, response) => account(response));
      const client = createOrderingClient({ baseUrl: api.url + path, tokens: source(auth.url) });
      await client.account();
      expect(api.seen).toEqual([`GET ${path.replace(/\/$/, '')}/account`]);
    },
  );

  test.each(['ftp://host', 'https://user:pw@host/api', 'https://host/api?x=1', 'api.example'])(
    'the base address %s is rejected when the client is created, without quoting it',
    (baseUrl) => {
      const build = () => createOrderingClient({ baseUrl, tokens: source('http://127.0.0.1:1') });
      expect(build).toThrow(TypeError);
      expect(build).not.toThrow(baseUrl);
    },
  );

  test('query values are encoded, and undefined ones omitted', async () => {
    const { client, api } = await connectClient((_request, response) => json(response, 200, page([])));
    await client.activeJobs({
      page: 2,
      pageSize: 100,
      searchText: 'ü & 50% +1=a?b#c',
      includeClosedJobs: false,
      orderGroup: undefined,
    });
    await client.activeJobs({});
    const [first = '', second] = api.seen;
    expect(Object.fromEntries(new URL(first.slice(4), api.url).searchParams)).toEqual({
      page: '2',
      pageSize: '100',
      searchText: 'ü & 50% +1=a?b#c',
      includeClosedJobs: 'false',
    });
    expect(first).toContain('%20%26%20');
    expect(second).toBe('GET /Jobs/active');
  });

  test('each method reads its own resource with the bearer token', async () => {
    const authorizations = new Set<string | undefined>();
    const { client, api } = await connectClient((request, response) => {
      authorizations.add(request.headers.authorization);
      const bodies: Record<string, unknown> = {
        '/Jobs/active?page=1': page([{ jobNumber: 1 }]),
        '/Jobs/42': { jobNumber: 42 },
        '/Lookups/job-statuses': [{ id: 1, name: 'Awaiting artwork' }],
        '/account': { id: 7, name: 'Acme', taxRate: 15 },
        '/account/user': {
          id: 9,
          emailAddress: 'a@b.example',
          receiveEmails: true,
          textNotifyDispatch: false,
        },
      };
      json(response, 200, bodies[request.url ?? '']);
    });
    expect((await client.activeJobs({ page: 1 })).body.items[0]?.jobNumber).toBe(1);
    expect((await client.job(42)).body?.jobNumber).toBe(42);
    expect((await client.jobStatuses()).body).toEqual([{ id: 1, name: 'Awaiting artwork' }]);
    expect((await client.account()).body).toEqual({ id: 7 });
    expect((await client.accountUser()).body).toMatchObject({
      id: 9,
      mobile: null,
      textNotifyDispatch: false,
    });
    expect(api.seen).toHaveLength(5);
    expect([...authorizations]).toEqual(['Bearer token-1']);
    expect(client.counts).toEqual({ requests: 5, retries: 0, tokens: 1, errors: {} });
  });

  test('requestedAt and respondedAt enclose the request that succeeded, not the failed one before it', async () => {
    let now = NOW;
    const { client } = await connectClient(
      inTurn(status(503), (response) => {
        now += 5;
        account(response);
      }),
      {
        now: () => now,
        sleep: async (ms) => {
          now += ms;
        },
      },
    );
    const { requestedAt, respondedAt } = await client.account();
    expect(requestedAt).toBe(NOW + 500);
    expect(respondedAt).toBe(NOW + 505);
  });

  test('a job unknown upstream is a result: the body is undefined', async () => {
    const { client, api } = await connectClient(
      inTurn(status(404), (response) => json(response, 404, { title: 'Not Found', status: 404 })),
    );
    expect(await client.job(5)).toEqual({ body: undefined, requestedAt: NOW, respondedAt: NOW });
    expect((await client.job(5)).body).toBeUndefined();
    expect(api.seen).toHaveLength(2);
  });

  test('a 404 from another source than the job resource is thrown: HTML page, other resource, token endpoint', async () => {
    const { client } = await connectClient((_request, response) => {
      response.writeHead(404, { 'content-type': 'text/html' }).end('<h1>nginx</h1>');
    });
    expect((await failure(client.job(5))).kind).toBe('not_found');
    const other = await connectClient((_request, response) => status(404)(response));
    expect((await failure(other.client.account())).kind).toBe('not_found');
    const auth = await authHost((_request, response) =>
      json(response, 404, { error: 'Realm does not exist' }),
    );
    const stranded = await connectClient((_request, response) => json(response, 200, {}), {
      tokens: source(auth.url),
    });
    expect(await failure(stranded.client.job(5))).toMatchObject({
      kind: 'not_found',
      detail: 'Realm does not exist',
    });
  });

  test('a detail about another job is malformed', async () => {
    const { client } = await connectClient((_request, response) => json(response, 200, { jobNumber: 6 }));
    expect((await failure(client.job(5))).kind).toBe('malformed');
  });

  test('at most four requests are in progress, and all of them complete', async () => {
    let underWay = 0;
    let most = 0;
    const { client, api } = await connectClient(async (_request, response) => {
      most = Math.max(most, ++underWay);
      await new Promise((resolve) => setTimeout(resolve, 3));
      underWay--;
      json(response, 200, page([]));
    });
    await Promise.all(Array.from({ length: 40 }, (_, i) => client.activeJobs({ page: i + 1 })));
    expect(most).toBe(4);
    expect(api.seen).toHaveLength(40);
  });

  test('time in the queue does not count towards the time-out', async () => {
    const { client } = await connectClient(
      async (_request, response) => {
        await new Promise((resolve) => setTimeout(resolve, 100));
        account(response);
      },
      { maxConcurrency: 1, timeoutMs: 500 },
    );
    const answers = await Promise.all(Array.from({ length: 8 }, () => client.account()));
    expect(answers).toHaveLength(8);
  });

  test('onRequest is called for every request with its attempt, and may throw without effect', async () => {
    const infos: RequestInfo[] = [];
    const { client } = await connectClient(inTurn(status(500), account), {
      onRequest: (info) => {
        infos.push(info);
        throw new Error('logger broke');
      },
    });
    await client.account();
    expect(infos).toEqual([
      { operation: 'GET /account', status: 500, ms: 0, attempt: 1 },
      { operation: 'GET /account', status: 200, ms: 0, attempt: 2 },
    ]);
    expect(client.counts).toEqual({ requests: 2, retries: 1, tokens: 1, errors: { server_error: 1 } });
  });
});

describe('faults', () => {
  test('a 401 is retried once, with a new token', async () => {
    const { client, api, auth, sleeps } = await connectClient((request, response) =>
      request.headers.authorization === 'Bearer token-1' ? status(401)(response) : account(response),
    );
    expect((await client.account()).body.id).toBe(7);
    expect(auth.seen).toHaveLength(2);
    expect(api.seen).toHaveLength(2);
    expect(sleeps).toEqual([]);
    expect(client.counts).toEqual({ requests: 2, retries: 1, tokens: 2, errors: { unauthorized: 1 } });
  });

  test('a 401 for the new token too is unauthorized: two token requests, two calls, no more', async () => {
    const { client, api, auth } = await connectClient((_request, response) => status(401)(response));
    expect(await failure(client.account())).toMatchObject({ kind: 'unauthorized', status: 401 });
    expect(auth.seen).toHaveLength(2);
    expect(api.seen).toHaveLength(2);
  });

  test('many calls rejected at once renew the token together', async () => {
    const { client, auth } = await connectClient((request, response) =>
      request.headers.authorization === 'Bearer token-1' ? status(401)(response) : account(response),
    );
    await Promise.all(Array.from({ length: 20 }, () => client.account()));
    expect(auth.seen).toHaveLength(2);
    expect(client.counts.tokens).toBe(2);
  });

  test('rejected credentials are not tried a second time', async () => {
    const auth = await authHost((_request, response) => json(response, 401, { error: 'invalid_client' }));
    const { client, api } = await connectClient((_request, response) => account(response), {
      tokens: source(auth.url),
    });
    expect(await failure(client.account())).toMatchObject({
      kind: 'credentials_rejected',
      operation: 'POST /realms/us/protocol/openid-connect/token',
      detail: 'invalid_client',
    });
    expect(auth.seen).toHaveLength(1);
    expect(api.seen).toEqual([]);
  });

  test('a token endpoint that is briefly unavailable is retried', async () => {
    const auth = await authHost(
      inTurn(status(503, { 'retry-after': '3' }), (response) =>
        json(response, 200, { access_token: 'late', expires_in: 600 }),
      ),
    );
    const { client, sleeps, infos } = await connectClient((_request, response) => account(response), {
      tokens: source(auth.url),
    });
    await client.account();
    expect(sleeps).toEqual([3_000]);
    expect(infos).toMatchObject([{ attempt: 1 }]);
    expect(client.counts).toEqual({ requests: 1, retries: 0, tokens: 1, errors: { unavailable: 1 } });
  });

  test.each([429, 502, 503, 504])('%i is retried twice with growing pauses, then thrown', async (code) => {
    const { client, api, sleeps } = await connectClient((_request, response) => status(code)(response));
    const error = await failure(client.account());
    expect(error).toMatchObject({ kind: code === 429 ? 'rate_limited' : 'unavailable', status: code });
    expect(api.seen).toHaveLength(3);
    expect(sleeps).toEqual([500, 1_000]);
  });

  test('jitter extends the pauses to at most twice their minimum', async () => {
    const { client, sleeps } = await connectClient((_request, response) => status(503)(response), {
      random: () => 0.999,
    });
    await failure(client.account());
    expect(sleeps[0]).toBeCloseTo(1_000, -1);
    expect(sleeps[1]).toBeCloseTo(2_000, -1);
  });

  test.each([
    { value: '7', ms: 7_000 },
    { value: '0', ms: 0 },
    { value: 'Sat, 21 Nov 2026 12:00:09 GMT', ms: 9_000 },
    { value: 'Saturday, 21-Nov-26 12:00:09 GMT', ms: 9_000 },
    { value: 'Sat, 21 Nov 2026 11:00:00 GMT', ms: 0 },
    { value: 'soon', ms: 500 },
    { value: '-5', ms: 500 },
  ])('Retry-After "$value" is a pause of $ms ms', async ({ value, ms }) => {
    const { client, sleeps } = await connectClient(inTurn(status(429, { 'retry-after': value }), account));
    await client.account();
    expect(sleeps).toEqual([ms]);
  });

  test.each(['21', 'Sat, 21 Nov 2026 12:00:21 GMT'])(
    'a Retry-After of %s is too long: thrown at once',
    async (value) => {
      const { client, api, sleeps } = await connectClient((_request, response) =>
        status(503, { 'retry-after': value })(response),
      );
      expect(await failure(client.account())).toMatchObject({ kind: 'unavailable', retryAfterMs: 21_000 });
      expect(api.seen).toHaveLength(1);
      expect(sleeps).toEqual([]);
    },
  );

  test('a Retry-After holds back all calls of its kind, and no other kind', async () => {
    const rest = Promise.withResolvers<void>();
    const resting = Promise.withResolvers<void>();
    const { client, api } = await connectClient(inTurn(status(429, { 'retry-after': '5' }), account), {
      maxConcurrency: 1,
      sleep: () => {
        resting.resolve();
        return rest.promise;
      },
    });
    const both = Promise.all([client.account(), client.account()]);
    await resting.promise;
    await new Promise((resolve) => setTimeout(resolve, 20));
    expect(api.seen).toHaveLength(1);
    await client.accountUser();
    expect(api.seen).toEqual(['GET /account', 'GET /account/user']);
    rest.resolve();
    await both;
    expect(api.seen).toHaveLength(4);
  });

  test('a call waits for the longest Retry-After of its kind, although its own response stated a shorter one', async () => {
    const held = Promise.withResolvers<void>();
    const sleeps: number[] = [];
    const short = (response: ServerResponse) =>
      void held.promise.then(() => status(503, { 'retry-after': '1' })(response));
    const { client } = await connectClient(inTurn(status(429, { 'retry-after': '15' }), short, account), {
      sleep: async (ms) => {
        sleeps.push(ms);
        held.resolve();
      },
    });
    await Promise.all([client.account(), client.account()]);
    expect(sleeps).toEqual([15_000, 1_000, 15_000]);
  });

  test('a long Retry-After is remembered: calls of its kind are not sent, also by the next client', async () => {
    const holds: Holds = new Map();
    const first = await connectClient(
      (_request, response) => status(429, { 'retry-after': '600' })(response),
      {
        holds,
      },
    );
    await failure(first.client.account());
    expect(await failure(first.client.account())).toMatchObject({ kind: 'rate_limited', notSent: true });
    expect(first.api.seen).toHaveLength(1);
    expect([...holds.keys()]).toEqual(['account']);
    const next = await connectClient((_request, response) => account(response), { holds });
    expect(await failure(next.client.account())).toMatchObject({ notSent: true });
    expect((await next.client.accountUser()).body?.id).toBe(7);
    expect(next.api.seen).toEqual(['GET /account/user']);
  });

  test('a 500 is retried once', async () => {
    const cured = await connectClient(inTurn(status(500), account));
    expect((await cured.client.account()).body.id).toBe(7);
    const { client, api, sleeps } = await connectClient((_request, response) => status(500)(response));
    expect((await failure(client.account())).kind).toBe('server_error');
    expect(api.seen).toHaveLength(2);
    expect(sleeps).toEqual([500]);
  });

  test('for any sequence of faults, a call is retried at most twice', async () => {
    const { client, api } = await connectClient(inTurn(status(503), status(500), status(429), account));
    expect((await failure(client.account())).kind).toBe('rate_limited');
    expect(api.seen).toHaveLength(3);
  });

  test.each([
    { code: 400, kind: 'bad_request' },
    { code: 403, kind: 'forbidden' },
    { code: 409, kind: 'conflict' },
    { code: 422, kind: 'bad_request' },
  ])('$code is thrown without a retry', async ({ code, kind }) => {
    const { client, api } = await connectClient((_request, response) =>
      status(code, { 'retry-after': '1' })(response),
    );
    expect(await failure(client.account())).toMatchObject({ kind, status: code });
    expect(api.seen).toHaveLength(1);
  });

  test('a server that never answers is a timeout, without retry', async () => {
    const { client, api } = await connectClient(() => {}, { timeoutMs: 300 });
    expect(await failure(client.account())).toMatchObject({
      ...{ kind: 'timeout', status: undefined },
      message: expect.stringMatching(/ failed: no complete response within the time limit: 300 ms$/),
    });
    expect(api.seen).toHaveLength(1);
  });

  test('a body that never ends is a timeout too', async () => {
    const { client, infos } = await connectClient(
      (_request, response) => {
        response.writeHead(200, { 'content-type': 'application/json' }).write('{"id":');
      },
      { timeoutMs: 300 },
    );
    expect(await failure(client.account())).toMatchObject({ kind: 'timeout', status: 200 });
    expect(infos).toMatchObject([{ status: undefined, attempt: 1 }]);
  });

  test('a connection that is reset is retried once', async () => {
    const cured = await connectClient(inTurn((response) => void response.destroy(), account));
    expect((await cured.client.account()).body.id).toBe(7);
    const { client, api } = await connectClient((_request, response) => void response.destroy());
    expect((await failure(client.account())).kind).toBe('network');
    expect(api.seen).toHaveLength(2);
  });

  test.each([
    { encoding: 'gzip', compress: gzipSync },
    { encoding: 'br', compress: brotliCompressSync },
  ])('an answer in $encoding is read, and a truncated one is malformed', async ({ encoding, compress }) => {
    const body = compress(JSON.stringify({ id: 7 }));
    const { client } = await connectClient((request, response) => {
      expect(request.headers['accept-encoding']).toContain(encoding);
      response.writeHead(200, { 'content-type': 'application/json', 'content-encoding': encoding }).end(body);
    });
    expect((await client.account()).body.id).toBe(7);
    const truncated = await connectClient((_request, response) => {
      response
        .writeHead(200, { 'content-type': 'application/json', 'content-encoding': encoding })
        .end(body.subarray(0, body.length - 3));
    });
    expect(await failure(truncated.client.account())).toMatchObject({ kind: 'malformed', cutShort: true });
  });

  test.each(['gzip', 'br'])('an empty body is read although its headers say %s', async (encoding) => {
    const { client, auth } = await connectClient(
      inTurn(status(401, { 'content-encoding': encoding }), (response) => json(response, 200, { id: 7 })),
    );
    expect((await client.account()).body.id).toBe(7);
    expect(auth.forms).toHaveLength(2);
  });

  test('an unknown encoding is ignored', async () => {
    const { client } = await connectClient((_request, response) =>
      json(response, 200, { id: 7 }, { 'content-encoding': 'constructor' }),
    );
    expect((await client.account()).body.id).toBe(7);
  });

  test('an answer with the status 101 is a network error, and the next request is sent', async () => {
    let asked = 0;
    const server = createTcpServer((socket) => {
      socket.on('error', () => {});
      socket.once('data', () => {
        asked++;
        socket.write('HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: x\r\n\r\n');
      });
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    closers.push(() => new Promise((resolve) => server.close(() => resolve())));
    const { port } = server.address() as AddressInfo;
    const { client } = await connectClient(() => {}, { baseUrl: `http://127.0.0.1:${port}` });
    expect((await failure(client.account())).kind).toBe('network');
    expect(asked).toBe(2);
  });

  test('a flood of interim answers is a network error after 100 of them, and does not last until the time-out', async () => {
    let asked = 0;
    const server = createTcpServer((socket) => {
      socket.on('error', () => {});
      socket.once('data', () => {
        asked++;
        const flood = (): void => {
          while (!socket.destroyed && socket.write('HTTP/1.1 102 Processing\r\n\r\n'.repeat(50)));
        };
        socket.on('drain', flood);
        flood();
      });
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    closers.push(() => new Promise((resolve) => server.close(() => resolve())));
    const { port } = server.address() as AddressInfo;
    const { client } = await connectClient(() => {}, { baseUrl: `http://127.0.0.1:${port}` });
    expect((await failure(client.account())).kind).toBe('network');
    expect(asked).toBe(2);
  });

  test('requests name the program and its version', async () => {
    const agents: unknown[] = [];
    const { client } = await connectClient((request, response) => {
      agents.push(request.headers['user-agent']);
      json(response, 200, { id: 7 });
    });
    await client.account();
    expect(agents).toEqual([`Jobwire/${VERSION}`]);
  });

  test('requests use one kept connection, also after an answer with an error status', async () => {
    const ports: unknown[] = [];
    const { client } = await connectClient((request, response) => {
      ports.push(request.socket.remotePort);
      json(response, ports.length === 2 ? 404 : 200, { id: 7 });
    });
    await client.account();
    expect(await failure(client.account())).toMatchObject({ kind: 'not_found' });
    await client.account();
    expect(ports).toHaveLength(3);
    expect(new Set(ports).size).toBe(1);
  });

  test.each([
    { name: 'plain', headers: {}, body: Buffer.alloc(5 * 1024 * 1024, ' ') },
    {
      name: 'compressed',
      headers: { 'content-encoding': 'gzip' },
      body: gzipSync(Buffer.alloc(5 * 1024 * 1024, ' ')),
    },
  ])('a $name body of 5 MiB is malformed, and the next request is sent', async ({ headers, body }) => {
    const { client } = await connectClient(
      inTurn((response) => void response.writeHead(200, headers).end(body), account),
    );
    expect(await failure(client.account())).toMatchObject({
      kind: 'malformed',
      detail: 'the body is larger than 4194304 bytes',
    });
    await client.account();
  });

  test.each([
    { name: 'shorter than its content-length', head: 'content-length: 100\r\n', body: '{"id":7}' },
    { name: 'chunked without an end', head: 'transfer-encoding: chunked\r\n', body: '8\r\n{"id":7}\r\n' },
    { name: 'without a length and not whole', head: '', body: '{"id":7,"name":"Ac' },
    { name: 'empty', head: 'content-length: 0\r\n', body: '' },
  ])('a body that is $name is malformed, after one retry', async ({ head, body }) => {
    let asked = 0;
    const server = createTcpServer((socket) => {
      socket.on('error', () => {});
      socket.once('data', () => {
        asked++;
        socket.end(
          `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n${head}\r\n${body}`,
        );
      });
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    closers.push(() => new Promise((resolve) => server.close(() => resolve())));
    const address = server.address();
    if (address === null || typeof address === 'string') throw new Error('no port');
    const { client, sleeps } = await connectClient(() => {}, { baseUrl: `http://127.0.0.1:${address.port}` });
    expect(await failure(client.account())).toMatchObject({ kind: 'malformed', status: 200, cutShort: true });
    expect(asked).toBe(2);
    expect(sleeps).toEqual([500]);
  });

  test.each([
    { name: 'an HTML page', type: 'text/html; charset=utf-8', body: '<html><body>Maintenance</body></html>' },
    { name: 'HTML called JSON', type: 'application/json', body: '\n<!doctype html>' },
    { name: 'another shape', type: 'application/json', body: '{"id":"seven"}' },
    { name: 'null', type: 'application/json', body: 'null' },
  ])('an answer that is $name is malformed at once', async ({ type, body }) => {
    const { client, api } = await connectClient((_request, response) => {
      response.writeHead(200, { 'content-type': type }).end(body);
    });
    const error = await failure(client.account());
    expect(error).toMatchObject({ kind: 'malformed', status: 200, cutShort: false });
    expect(error.message).not.toContain('Maintenance');
    expect(api.seen).toHaveLength(1);
  });

  test('a schema mismatch names the field and not the value', async () => {
    const { client } = await connectClient((_request, response) =>
      json(response, 200, page([{ jobNumber: 1 }, { jobNumber: 2, description: { private: 'text' } }])),
    );
    const error = await failure(client.activeJobs({}));
    expect(error.message).toContain('items.1.description');
    expect(shown(error)).not.toContain('private');
  });

  test.each([204, 302])('an undocumented %i is malformed, and not followed', async (code) => {
    const { client, api } = await connectClient((_request, response) =>
      status(code, { location: '/elsewhere' })(response),
    );
    expect(await failure(client.account())).toMatchObject({ kind: 'malformed', status: code });
    expect(api.seen).toEqual(['GET /account']);
  });

  test('an error body that echoes the token is reported without it', async () => {
    const { client } = await connectClient((request, response) =>
      json(response, 403, { title: 'Forbidden', detail: `no role for ${request.headers.authorization}` }),
    );
    const error = await failure(client.account());
    expect(error.detail).toBe('no role for Bearer [hidden]');
    expect(shown(error)).not.toContain('token-1');
  });
});

describe('aborting', () => {
  const gaveUp = new Error('the poll is over');

  test('an aborted signal starts nothing', async () => {
    const { client, api, auth } = await connectClient((_request, response) => account(response));
    await expect(client.account(AbortSignal.abort(gaveUp))).rejects.toBe(gaveUp);
    expect([...api.seen, ...auth.seen]).toEqual([]);
  });

  test('ends a request in progress, without a retry, and frees the slot', async () => {
    const arrived = Promise.withResolvers<void>();
    const { client, api } = await connectClient(
      inTurn(() => arrived.resolve(), account),
      { maxConcurrency: 1 },
    );
    const caller = new AbortController();
    const call = client.account(caller.signal);
    await arrived.promise;
    caller.abort(gaveUp);
    await expect(call).rejects.toBe(gaveUp);
    expect(api.seen).toHaveLength(1);
    expect((await client.account()).body.id).toBe(7);
  });

  test('ends a pause and frees the slot at once, even if the pause ignores the signal', async () => {
    const pausing = Promise.withResolvers<void>();
    const { client, api } = await connectClient(inTurn(status(503), account), {
      maxConcurrency: 1,
      sleep: () => {
        pausing.resolve();
        return new Promise(() => {});
      },
    });
    const caller = new AbortController();
    const call = client.account(caller.signal);
    await pausing.promise;
    caller.abort(gaveUp);
    await expect(call).rejects.toBe(gaveUp);
    expect(api.seen).toHaveLength(1);
    expect((await client.account()).body.id).toBe(7);
  });

  test('ends the real pause too', async () => {
    const { client } = await connectClient(
      (_request, response) => status(503, { 'retry-after': '15' })(response),
      {
        sleep: undefined,
      },
    );
    const caller = new AbortController();
    setTimeout(() => caller.abort(gaveUp), 50);
    await expect(client.account(caller.signal)).rejects.toBe(gaveUp);
  });

  test('ends the wait in the queue, and the call is never sent', async () => {
    const arrived = Promise.withResolvers<void>();
    const release = Promise.withResolvers<void>();
    const { client, api } = await connectClient(
      async (_request, response) => {
        arrived.resolve();
        await release.promise;
        account(response);
      },
      { maxConcurrency: 1 },
    );
    const caller = new AbortController();
    const first = client.account();
    const queued = client.jobStatuses(caller.signal);
    await arrived.promise;
    caller.abort(gaveUp);
    await expect(queued).rejects.toBe(gaveUp);
    release.resolve();
    await first;
    await client.account();
    expect(api.seen).toEqual(['GET /account', 'GET /account']);
  });

  test('a hundred calls on one signal leave no listeners, timers or warnings behind', async () => {
    const warnings: Error[] = [];
    const note = (warning: Error) => warnings.push(warning);
    process.on('warning', note);
    const { client } = await connectClient((_request, response) => account(response));
    const caller = new AbortController();
    const timers = () => process.getActiveResourcesInfo().filter((resource) => resource === 'Timeout').length;
    const before = timers();
    await Promise.all(Array.from({ length: 100 }, () => client.account(caller.signal)));
    await new Promise((resolve) => setTimeout(resolve, 10));
    process.off('warning', note);
    expect(warnings).toEqual([]);
    expect(timers() - before).toBeLessThan(20);
    expect(getEventListeners(caller.signal, 'abort')).toEqual([]);
  });
});

describe('error bodies', () => {
  const JSON_HEADERS = new Headers({ 'content-type': 'application/problem+json' });
  const detail = (body: unknown, headers = JSON_HEADERS) =>
    errorFromResponse(
      'GET /Jobs/active',
      400,
      headers,
      typeof body === 'string' ? body : JSON.stringify(body),
    ).detail;

  test('a problem document gives its detail, else its title, and the invalid fields', () => {
    expect(detail({ title: 'Bad Request', detail: 'pageSize is too large', status: 400 })).toBe(
      'pageSize is too large',
    );
    expect(
      detail({
        title: 'Validation failed',
        errors: { pageSize: ['must be ≤ 100', 'must be > 0'], page: 'missing' },
      }),
    ).toBe('Validation failed; pageSize: must be ≤ 100 must be > 0; page: missing');
  });

  test('validation messages are listed with their codes', () => {
    expect(
      detail({
        isValid: false,
        validationMessages: [
          { errorCode: 'E7', message: 'No such user' },
          { message: 'Nor this' },
          { errorCode: 9 },
        ],
      }),
    ).toBe('No such user [E7]; Nor this; [9]');
  });

  test('an empty body, an HTML page, other text and other JSON become plain messages', () => {
    expect(detail(' \n')).toBe('the response had no body');
    expect(detail('<html>Bad Gateway</html>')).toBe('the response was an HTML page');
    expect(detail('Bad Gateway', new Headers({ 'content-type': 'text/html' }))).toBe(
      'the response was an HTML page',
    );
    expect(detail('upstream said no')).toBe('the response was not a problem document');
    expect(detail([1, 2])).toBe('the response was not a problem document');
    expect(detail({ title: null, detail: 5, errors: 'x', validationMessages: {} })).toBe(
      'the response contained no reason',
    );
  });

  test('foreign text becomes one line of bounded length without control characters', () => {
    expect(detail({ detail: 'a\r\n\u001b[31mb\u202e\tc' })).toBe('a [31mb c');
    expect(detail({ detail: 'x'.repeat(5_000) })).toHaveLength(300);
    expect(detail({ detail: `Bearer authentication failed for Bearer ${'a1'.repeat(20)}` })).toBe(
      'Bearer authentication failed for [hidden]',
    );
  });

  test('the message has operation, meaning, status and detail', () => {
    const error = errorFromResponse(
      'GET /Jobs/active',
      403,
      JSON_HEADERS,
      '{"detail":"administrators only"}',
    );
    expect(error.message).toBe(
      'GET /Jobs/active failed: the credentials have no permission for this request (403): administrators only',
    );
    expect(error.name).toBe('OrderingError');
  });
});

describe('answers', () => {
  test('unknown and unused fields of any type are dropped, unknown status names and origins are accepted', () => {
    const names = { masterJobStatus: 'Never heard of', originCode: 'MOON' };
    const others = { brandNew: { a: 1 }, shippedDaysToProcess: 'late' };
    const parsed = ActiveJobsPage.parse(page([{ jobNumber: 3, ...names, ...others }], { extra: 1 }));
    expect(parsed.items[0]).toMatchObject(names);
    for (const name of Object.keys(others)) expect(parsed.items[0]).not.toHaveProperty(name);
  });

  test.each([ActiveJob, JobDetail])(
    'missing and null values are equal, and a list stays a list',
    (schema) => {
      const sparse = schema.parse({ jobNumber: 3 });
      const nulls = Object.fromEntries(Object.keys(sparse).map((key) => [key, null]));
      expect(schema.parse({ ...nulls, jobNumber: 3 })).toEqual(sparse);
      expect(Object.entries(sparse).every(([key, value]) => key === 'jobNumber' || value === null)).toBe(
        true,
      );
      expect(ActiveJob.parse({ jobNumber: 3, tracking: [{ trackingNumber: '1Z' }] }).tracking).toEqual([
        { trackingNumber: '1Z', trackingLink: null },
      ]);
      expect(ActiveJob.parse({ jobNumber: 3, tracking: [] }).tracking).toEqual([]);
    },
  );

  test.each([
    { name: 'items null', body: page(null) },
    { name: 'no items', body: page(undefined) },
    { name: 'no page number', body: page([], { pageNumber: undefined }) },
    { name: 'a total that is text', body: page([], { totalCount: '1' }) },
    { name: 'a job without a number', body: page([{ description: 'x' }]) },
    { name: 'a job number with a fraction', body: page([{ jobNumber: 1.5 }]) },
    { name: 'a job that is null', body: page([null]) },
    { name: 'a date that is a number', body: page([{ jobNumber: 1, dateOut: 5 }]) },
  ])('a page with $name is malformed', async ({ body }) => {
    const { client, api } = await connectClient((_request, response) => json(response, 200, body));
    expect((await failure(client.activeJobs({ page: 1, pageSize: 100 }))).kind).toBe('malformed');
    expect(api.seen).toHaveLength(1);
  });
});
