/**
 * The sandbox as a service: tokens, faults, traffic and its process.
 * One file: its tests share the requests that every service must answer alike.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { get } from 'node:http';
import * as fc from 'fast-check';
import { afterEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import { readFlags } from '../../sandbox/flags.ts';
import type { FaultRule } from '../../sandbox/http/faults.ts';
import { TokenStore } from '../../sandbox/http/tokens.ts';
import { PortTakenError, type Sandbox, type SandboxOptions, startSandbox } from '../../sandbox/server.ts';
import { SandboxClock } from '../../sandbox/simulation/clock.ts';
import { addDemoAccounts, createScenario, type ScenarioEvent } from '../../sandbox/simulation/scenario.ts';
import type { WorldOptions } from '../../sandbox/world/records.ts';
import { REGIONS, type RegionCode } from '../../sandbox/world/regions.ts';
import type { ActiveJobDto, JobDto } from '../../sandbox/world/views.ts';
import { createWorld, DuplicateValueError, type SandboxAccount } from '../../sandbox/world/world.ts';
import { runs } from '../support/runs.ts';

const START = Date.parse('2026-11-20T16:14:00Z');
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

const { Request: nativeRequest, Response: nativeResponse } = globalThis;

const running: Sandbox[] = [];
afterEach(async () => {
  vi.restoreAllMocks();
  await Promise.all(running.splice(0).map((sandbox) => sandbox.stop()));
});

/** A sandbox with the account `acme` in the US and a stopped clock. */
async function start(options: Partial<SandboxOptions> & { worldOptions?: WorldOptions } = {}) {
  const clock = { now: START };
  const { worldOptions, ...rest } = options;
  const world = options.world ?? createWorld({ now: () => clock.now, ...worldOptions });
  const acme = world.addAccount({ region: 'us', name: 'acme', users: [{}, {}] });
  const sandbox = await startSandbox({ world, ...rest });
  running.push(sandbox);
  return { clock, world, acme, sandbox, client: await login(sandbox, acme) };
}

interface Page {
  items: ActiveJobDto[] | null;
  totalCount: number;
  pageNumber: number;
  pageSize: number;
  totalPages: number;
  hasPreviousPage: boolean;
  hasNextPage: boolean;
}

interface Problem {
  type: string;
  title: string;
  status: number;
  detail: string;
  instance: string;
  errors?: Record<string, string[]>;
}

interface Reply {
  status: number;
  headers: Headers;
  text: string;
  // Bodies are untyped here: their content is what the tests check.
  page: Page;
  problem: Problem;
  json: unknown;
}

async function ask(url: string, init: RequestInit = {}): Promise<Reply> {
  const response = await fetch(url, init);
  const bytes = Buffer.from(await response.arrayBuffer());
  expect(response.headers.get('content-length')).toBe(String(bytes.length));
  const text = bytes.toString();
  const isJson = /\bjson\b/.test(response.headers.get('content-type') ?? '');
  const body = isJson ? parsed(text) : undefined;
  return {
    status: response.status,
    headers: response.headers,
    text,
    json: body,
    page: body as Page,
    problem: body as Problem,
  };
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function requestToken(
  sandbox: Sandbox,
  region: RegionCode,
  form: Record<string, string>,
  realm: string = region,
) {
  return ask(`${sandbox.authUrl(region)}/realms/${realm}/protocol/openid-connect/token`, {
    method: 'POST',
    body: new URLSearchParams(form),
  });
}

function credentials({ clientId, clientSecret }: SandboxAccount): Record<string, string> {
  return { grant_type: 'client_credentials', client_id: clientId, client_secret: clientSecret };
}

async function fetchToken(sandbox: Sandbox, account: SandboxAccount): Promise<string> {
  const { json } = await requestToken(sandbox, account.region, credentials(account));
  return (json as { access_token: string }).access_token;
}

async function login(sandbox: Sandbox, account: SandboxAccount) {
  const token = await fetchToken(sandbox, account);
  const get = (path: string, init: RequestInit = {}) =>
    ask(sandbox.apiUrl(account.region) + path, {
      ...init,
      headers: { authorization: `Bearer ${token}` },
    });
  return {
    token,
    get,
    /** The job numbers that a query to the active list finds, in its order. */
    list: async (query = 'pageSize=100') =>
      ((await get(`/Jobs/active?${query}`)).page.items ?? []).map(({ jobNumber }) => jobNumber),
    job: async (jobNumber: number) => (await get(`/Jobs/${jobNumber}`)).json as JobDto,
    entry: async (jobNumber: number) => {
      const { page } = await get('/Jobs/active?pageSize=100&includeClosedJobs=true');
      return page.items?.find((item) => item.jobNumber === jobNumber);
    },
  };
}

describe('tokens', () => {
  test('valid credentials get a bearer token for ten minutes, which the API accepts', async () => {
    const { sandbox, acme, client } = await start();
    const reply = await requestToken(sandbox, 'us', credentials(acme));
    expect(reply.status).toBe(200);
    expect(reply.json).toEqual({
      access_token: expect.any(String),
      expires_in: 600,
      token_type: 'Bearer',
    });
    expect(reply.headers.get('cache-control')).toBe('no-store');
    expect((await client.get('/Jobs/active')).status).toBe(200);
  });

  test.each<[string, Record<string, string>, string, number, string]>([
    ['a wrong secret', { client_secret: 'nope' }, 'us', 401, 'invalid_client'],
    ['an unknown client', { client_id: 'nobody' }, 'us', 401, 'invalid_client'],
    ['another grant', { grant_type: 'password' }, 'us', 400, 'unsupported_grant_type'],
    ['no grant', { grant_type: '' }, 'us', 400, 'invalid_request'],
    ['an unknown realm', {}, 'nz', 404, 'Realm does not exist'],
  ])('%s answers an OAuth error', async (_, changed, realm, status, error) => {
    const { sandbox, acme } = await start();
    const reply = await requestToken(sandbox, 'us', { ...credentials(acme), ...changed }, realm);
    expect(reply.status).toBe(status);
    expect(reply.json).toMatchObject({ error });
  });

  test('a form is required', async () => {
    const { sandbox, acme } = await start();
    const reply = await ask(`${sandbox.authUrl('us')}/realms/us/protocol/openid-connect/token`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(credentials(acme)),
    });
    expect(reply.status).toBe(400);
  });

  test('client ids are unique in a region, and so are upstream ids', async () => {
    const { world, acme } = await start();
    expect(() => world.addAccount({ region: 'us', id: acme.id })).toThrow(DuplicateValueError);
    acme.addCredentials({ role: 'staff', clientId: 'desk' });
    expect(() => world.addAccount({ region: 'us', clientId: 'desk' })).toThrow(DuplicateValueError);
    const other = world.addAccount({ region: 'us', name: 'other' });
    expect(() => other.addCredentials({ role: 'viewer', clientId: 'desk' })).toThrow(DuplicateValueError);
    expect(() => other.addCredentials({ role: 'viewer', clientId: acme.clientId })).toThrow(
      DuplicateValueError,
    );
    expect(world.accounts('us')).toEqual([acme, other]);
    world.addAccount({ region: 'nz', clientId: 'desk', id: acme.id });
  });

  test('credentials and tokens of one region are rejected in the other regions', async () => {
    const { sandbox, acme, client } = await start();
    for (const region of REGIONS.filter((code) => code !== 'us')) {
      expect((await requestToken(sandbox, region, credentials(acme))).status).toBe(401);
      const reply = await ask(`${sandbox.apiUrl(region)}/Jobs/active`, {
        headers: { authorization: `Bearer ${client.token}` },
      });
      expect(reply.status).toBe(401);
      expect(reply.headers.get('www-authenticate')).toBe('Bearer');
      expect(reply.headers.get('content-type')).toContain('application/problem+json');
      expect(reply.problem).toMatchObject({ status: 401, instance: `/${region}/api/Jobs/active` });
    }
  });

  test('a token expires by the sandbox clock', async () => {
    const { clock, client } = await start();
    clock.now += 10 * MINUTE - 1;
    expect((await client.get('/account')).status).toBe(200);
    clock.now += 1;
    expect((await client.get('/account')).status).toBe(401);
  });

  test('the 401 for an expired token states it and names the token endpoint, also after others were issued', async () => {
    const { clock, client, sandbox, acme } = await start();
    const detail = async (token = client.token, region: RegionCode = 'us') => {
      const headers = { authorization: `Bearer ${token}` };
      const { status, problem } = await ask(`${sandbox.apiUrl(region)}/account`, { headers });
      return [status, problem.detail];
    };
    const unknown = [401, 'A valid bearer token of this region is required.'];
    clock.now += 10 * MINUTE;
    const expired = [401, 'The token has expired; request a new one at the token endpoint of this region.'];
    expect(await detail()).toEqual(expired);
    const next = await fetchToken(sandbox, acme);
    expect(await detail()).toEqual(expired);
    expect((await client.get('/nothing')).problem.detail).toBe(expired[1]);
    expect(await detail('us.invented')).toEqual(unknown);
    expect(await detail(client.token, 'nz')).toEqual(unknown);
    expect(sandbox.revokeTokens()).toBe(1);
    expect(await detail(next)).toEqual(unknown);
  });

  test('the latest 10,000 expired tokens are remembered, and all valid ones', () => {
    const clock = { now: START };
    const world = createWorld({ now: () => clock.now });
    const acme = world.addAccount({ region: 'us', name: 'acme' });
    const book = new TokenStore(world, 600);
    const issue = () => book.issue(acme, acme.credentials[0]).token;
    const first = issue();
    const many = Array.from({ length: 10_000 }, issue);
    expect(book.holder('us', first)).toBeDefined();
    clock.now += 600_000;
    expect(book.hasExpired('us', first)).toBe(true);
    issue();
    expect([first, many[0], many.at(-1)].map((token = '') => book.hasExpired('us', token))).toEqual([
      false,
      false,
      true,
    ]);
  });

  test('the lifetime of tokens can be set', async () => {
    const { clock, client, sandbox, acme } = await start({ tokenLifetimeSeconds: 30 });
    expect((await requestToken(sandbox, 'us', credentials(acme))).json).toMatchObject({ expires_in: 30 });
    clock.now += 30_000;
    expect((await client.get('/account')).status).toBe(401);
  });

  test('revoked tokens are rejected; other and new ones are accepted', async () => {
    const { sandbox, world, acme, client } = await start();
    const other = world.addAccount({ region: 'us', name: 'other' });
    const otherClient = await login(sandbox, other);
    expect(sandbox.revokeTokens({ account: 'acme' })).toBe(1);
    expect((await client.get('/account')).status).toBe(401);
    expect((await otherClient.get('/account')).status).toBe(200);
    expect((await (await login(sandbox, acme)).get('/account')).status).toBe(200);
    expect(sandbox.revokeTokens({ region: 'nz' })).toBe(0);
    expect(sandbox.revokeTokens()).toBe(2);
    expect((await otherClient.get('/account')).status).toBe(401);
  });

  test('a rotated secret is rejected', async () => {
    const { sandbox, acme } = await start();
    const old = credentials(acme);
    acme.clientSecret = 'fresh';
    expect((await requestToken(sandbox, 'us', old)).status).toBe(401);
    expect((await requestToken(sandbox, 'us', credentials(acme))).status).toBe(200);
  });

  test.each(['/Jobs/active', '/Jobs/1', '/Lookups/job-statuses', '/account', '/account/user', '/nothing'])(
    '%s requires a token',
    async (path) => {
      const { sandbox, client } = await start();
      expect((await ask(sandbox.apiUrl('us') + path)).status).toBe(401);
      const headers = { authorization: `Basic ${client.token}` };
      expect((await ask(sandbox.apiUrl('us') + path, { headers })).status).toBe(401);
    },
  );
});

describe('answers on the wire', () => {
  test('content-length counts bytes for any text', async () => {
    const { acme, client } = await start();
    acme.createJob({ description: '<b>"Zoë"</b> 🙏 — ½ price' });
    // `ask` compares header and bytes.
    expect((await client.get('/Jobs/active')).page.items?.[0]?.description).toBe('<b>"Zoë"</b> 🙏 — ½ price');
  });

  test('any field of either view can be overridden, omitted or added', async () => {
    const { acme, client } = await start();
    const job = acme.createJob();
    acme.override(job, {
      list: { description: 42, tracking: undefined, novelty: { a: 1 } },
      detail: { permissions: null },
    });
    const entry = await client.entry(job);
    expect(entry).toMatchObject({ description: 42, novelty: { a: 1 } });
    expect(entry).not.toHaveProperty('tracking');
    expect((await client.job(job)).permissions).toBeNull();
    acme.override(job, {});
    expect((await client.entry(job))?.tracking).toEqual([]);
  });
});

describe('other data that a tracker reads', () => {
  test('each region has its own extensible status lookup', async () => {
    const { sandbox, world, client } = await start();
    const lookup = (await client.get('/Lookups/job-statuses')).json as { id: number; name: string }[];
    expect(lookup).toContainEqual({ id: expect.any(Number), name: 'Shipped' });
    expect(new Set(lookup.map(({ id }) => id)).size).toBe(lookup.length);
    expect(Object.keys(lookup[0] ?? {})).toEqual(['id', 'name']);

    const british = await login(sandbox, world.addAccount({ region: 'uk' }));
    const names = ((await british.get('/Lookups/job-statuses')).json as typeof lookup).map(
      ({ name }) => name,
    );
    expect(names).toContain('Despatched');

    world.addStatus('us', 'Press test', 'production');
    expect((await client.get('/Lookups/job-statuses')).json).toEqual([
      ...lookup,
      { id: lookup.length + 1, name: 'Press test' },
    ]);
  });

  test('account and user are those of the token', async () => {
    const { sandbox, world, acme, client } = await start();
    const other = world.addAccount({ region: 'us', name: 'other', id: 77 });
    expect((await client.get('/account')).json).toMatchObject({ id: acme.id, name: 'acme', currency: 'USD' });
    expect((await client.get('/account/user')).json).toMatchObject({
      id: acme.users[0]?.id,
      customerId: acme.id,
      active: true,
    });
    expect((await (await login(sandbox, other)).get('/account')).json).toMatchObject({ id: 77 });
  });

  test('the account behind credentials can change its identity', async () => {
    const { acme, client } = await start();
    acme.id = 4242;
    expect((await client.get('/account')).json).toMatchObject({ id: 4242 });
  });

  test('an unknown path is a problem with 404', async () => {
    const { sandbox, client } = await start();
    for (const path of ['/jobs/active', '/stock', '/']) {
      const reply = await client.get(path);
      expect([path, reply.status]).toEqual([path, 404]);
      expect(reply.problem.status).toBe(404);
    }
    expect((await client.get('/Jobs/active', { method: 'POST' })).status).toBe(404);
    expect((await ask(`${sandbox.url}/mars/api/Jobs/active`)).status).toBe(404);
    expect((await ask(`${sandbox.authUrl('us')}/realms/us`)).status).toBe(404);
  });
});

describe('faults', () => {
  test.each([
    ['problem', 500, 'application/problem+json', { status: 500 }],
    ['validation', 400, 'application/json', { isValid: false, validationMessages: [expect.anything()] }],
    ['empty', 503, null, undefined],
    ['html', 502, 'text/html', undefined],
    ['html', 200, 'text/html', undefined],
  ] as const)('a %s body with %i', async (body, status, type, shape) => {
    const { sandbox, client } = await start();
    sandbox.faults.add({ fault: { kind: 'status', status, body } });
    const reply = await client.get('/Jobs/active');
    expect(reply.status).toBe(status);
    if (type === null) expect([reply.headers.get('content-type'), reply.text]).toEqual([null, '']);
    else expect(reply.headers.get('content-type')).toContain(type);
    if (body === 'html') expect(reply.text).toMatch(/^<html>/);
    if (shape) expect(reply.json).toMatchObject(shape);
  });

  test('Retry-After is sent in seconds or as text', async () => {
    const { sandbox, client } = await start();
    sandbox.faults.add({ match: { times: 1 }, fault: { kind: 'status', status: 429, retryAfter: 7 } });
    sandbox.faults.add({
      match: { times: 1 },
      fault: { kind: 'status', status: 503, retryAfter: 'Fri, 20 Nov 2026 17:00:00 GMT' },
    });
    expect((await client.get('/account')).headers.get('retry-after')).toBe('7');
    expect((await client.get('/account')).headers.get('retry-after')).toBe('Fri, 20 Nov 2026 17:00:00 GMT');
    expect((await client.get('/account')).status).toBe(200);
  });

  test('any body is possible', async () => {
    const { sandbox, client } = await start();
    sandbox.faults.add({ fault: { kind: 'raw', body: '[1]' } });
    expect((await client.get('/Jobs/active')).json).toEqual([1]);
  });

  test('a delayed answer is the regular one', async () => {
    const { sandbox, client, acme } = await start();
    acme.createJob();
    const usual = (await client.get('/Jobs/active')).text;
    sandbox.faults.add({ fault: { kind: 'delay', delayMs: 40 } });
    const before = performance.now();
    expect((await client.get('/Jobs/active')).text).toBe(usual);
    // Timers may be a millisecond early.
    expect(performance.now() - before).toBeGreaterThanOrEqual(38);
  });

  test('other faults can be delayed too', async () => {
    const { sandbox, client } = await start();
    sandbox.faults.add({ fault: { kind: 'status', status: 500, delayMs: 40 } });
    const before = performance.now();
    expect((await client.get('/Jobs/active')).status).toBe(500);
    expect(performance.now() - before).toBeGreaterThanOrEqual(38);
  });

  test('a hanging request is never answered, and ends with its client', async () => {
    const { sandbox, client } = await start();
    sandbox.faults.add({ fault: { kind: 'hang' } });
    const patience = new AbortController();
    sandbox.onRequest = () => void setImmediate(() => patience.abort());
    await expect(client.get('/Jobs/active', { signal: patience.signal })).rejects.toThrow(/abort/);
    expect(sandbox.requests.list({ operation: 'activeJobs' })).toMatchObject([{ status: null }]);
  });

  test('a connection is reset', async () => {
    const { sandbox, client } = await start();
    sandbox.faults.add({ fault: { kind: 'reset' } });
    const failure = await client.get('/Jobs/active').catch((error: unknown) => error as Error);
    expect((failure as Error).cause).toMatchObject({ code: 'ECONNRESET' });
  });

  test('a body is shorter than its content-length', async () => {
    const { sandbox, acme, client } = await start();
    for (let n = 0; n < 50; n++) acme.createJob();
    const whole = await client.get('/Jobs/active?pageSize=50');
    sandbox.faults.add({ fault: { kind: 'cutBody' } });
    const response = await fetch(`${sandbox.apiUrl('us')}/Jobs/active?pageSize=50`, {
      headers: { authorization: `Bearer ${client.token}` },
    });
    expect(response.status).toBe(200);
    expect(response.headers.get('content-length')).toBe(whole.headers.get('content-length'));
    await expect(response.text()).rejects.toThrow('terminated');
  });

  test('JSON is truncated in a complete body', async () => {
    const { sandbox, acme, client } = await start();
    acme.createJob();
    const whole = (await client.get('/Jobs/active')).text;
    sandbox.faults.add({ fault: { kind: 'truncatedJson' } });
    const { status, text } = await client.get('/Jobs/active');
    expect(status).toBe(200);
    expect(text.length).toBeGreaterThan(0);
    expect(whole.startsWith(text) && text.length < whole.length).toBe(true);
    expect(() => JSON.parse(text)).toThrow();
  });

  test('items are null', async () => {
    const { sandbox, acme, client } = await start();
    acme.createJob();
    const usual = (await client.get('/Jobs/active')).page;
    sandbox.faults.add({ fault: { kind: 'itemsNull' } });
    expect((await client.get('/Jobs/active')).page).toEqual({ ...usual, items: null });
  });

  test('a page has the number of another one', async () => {
    const { sandbox, client } = await start();
    sandbox.faults.add({ match: { times: 1 }, fault: { kind: 'wrongPageEcho' } });
    sandbox.faults.add({ match: { times: 1 }, fault: { kind: 'wrongPageEcho', pageSize: 50 } });
    sandbox.faults.add({ match: { times: 1 }, fault: { kind: 'wrongPageEcho', pageNumber: 9 } });
    const echo = async () => {
      const { pageNumber, pageSize } = (await client.get('/Jobs/active?page=2&pageSize=100')).page;
      return [pageNumber, pageSize];
    };
    expect([await echo(), await echo(), await echo(), await echo()]).toEqual([
      [3, 100],
      [2, 50],
      [9, 100],
      [2, 100],
    ]);
  });

  test('an empty list answers 200 with consistent totals', async () => {
    const { sandbox, acme, client } = await start();
    const job = acme.createJob();
    const detail = await client.job(job);
    sandbox.faults.add({ fault: { kind: 'emptyList' } });
    expect((await client.get('/Jobs/active')).page).toEqual({
      items: [],
      totalCount: 0,
      pageNumber: 1,
      pageSize: 20,
      totalPages: 0,
      hasPreviousPage: false,
      hasNextPage: false,
    });
    expect(await client.job(job)).toEqual(detail);
  });

  test('a 401 within a crawl, with a valid token', async () => {
    const { sandbox, client } = await start();
    sandbox.faults.add({ match: { query: { page: 2 }, times: 1 }, fault: { kind: 'status', status: 401 } });
    const statuses = [];
    for (const page of [1, 2, 2, 3]) statuses.push((await client.get(`/Jobs/active?page=${page}`)).status);
    expect(statuses).toEqual([200, 401, 200, 200]);
  });

  test('tokens revoked within a crawl, until a new one is requested', async () => {
    const { sandbox, world, acme, client } = await start();
    const other = await login(sandbox, world.addAccount({ region: 'us', name: 'other' }));
    sandbox.faults.add({ match: { account: 'acme', nth: 2 }, fault: { kind: 'revokeTokens' } });
    const statuses = [];
    for (const page of [1, 2, 3]) statuses.push((await client.get(`/Jobs/active?page=${page}`)).status);
    expect(statuses).toEqual([200, 401, 401]);
    expect((await other.get('/Jobs/active')).status).toBe(200);
    expect((await (await login(sandbox, acme)).get('/Jobs/active')).status).toBe(200);
  });

  test('the token endpoint can fail too', async () => {
    const { sandbox, acme } = await start();
    sandbox.faults.add({
      match: { operation: 'token' },
      fault: { kind: 'status', status: 429, retryAfter: 1 },
    });
    expect((await requestToken(sandbox, 'us', credentials(acme))).status).toBe(429);
  });

  test.each<[string, NonNullable<FaultRule['match']>, boolean]>([
    ['no condition', {}, true],
    ['its region', { region: 'us' }, true],
    ['another region', { region: 'nz' }, false],
    ['its account by name', { account: 'acme' }, true],
    ['its account by client id', { account: 'acme-key' }, true],
    ['its account by upstream id', { account: 50_037 }, true],
    ['another account', { account: 'zzz' }, false],
    ['its operation', { operation: 'activeJobs' }, true],
    ['another operation', { operation: 'job' }, false],
    ['its method', { method: 'get' }, true],
    ['another method', { method: 'POST' }, false],
    ['its path', { path: '^/api/Jobs/active$' }, true],
    ['its path by RegExp', { path: /jobs/i }, true],
    ['another path', { path: '^/Jobs' }, false],
    ['its query', { query: { page: 1, includeClosedJobs: true } }, true],
    ['another query', { query: { page: 2 } }, false],
    ['all of several', { region: 'us', operation: 'activeJobs', query: { page: 1 } }, true],
    ['one of several not', { region: 'us', operation: 'activeJobs', query: { page: 2 } }, false],
  ])('a rule applies to the requests that it matches: %s', async (_, match, strikes) => {
    const { sandbox, client } = await start();
    sandbox.faults.add({ match, fault: { kind: 'status', status: 500 } });
    const { status } = await client.get('/Jobs/active?page=1&includeClosedJobs=true');
    expect(status).toBe(strikes ? 500 : 200);
  });

  test('a rule for a job applies only to lists and searches that contain it', async () => {
    const { sandbox, acme, client } = await start();
    const [first, middle, last] = [1, 2, 3].map(() => acme.createJob());
    sandbox.faults.add({
      match: { listsJob: middle, query: { pageSize: 1 } },
      fault: { kind: 'status', status: 500 },
    });
    const asked = async (path: string) => (await client.get(path)).status;
    const pages = async (more: string) => [
      await asked(`/Jobs/active?pageSize=1&page=1${more}`),
      await asked(`/Jobs/active?pageSize=1&page=2${more}`),
      await asked(`/Jobs/active?pageSize=1&page=3${more}`),
    ];
    expect(await pages('')).toEqual([200, 500, 200]);
    expect(await asked(`/Jobs/active?pageSize=1&searchText=${middle}`)).toBe(500);
    expect(await asked(`/Jobs/active?pageSize=1&searchText=${first}`)).toBe(200);
    expect(await asked(`/Jobs/active?pageSize=2`)).toBe(200);
    expect(await asked(`/Jobs/${middle}`)).toBe(200);
    expect(await asked('/Jobs/active?pageSize=1&page=x')).toBe(400);
    acme.close(last ?? 0);
    expect(await pages('')).toEqual([500, 200, 200]);
    expect(await pages('&includeClosedJobs=true')).toEqual([200, 500, 200]);
    acme.close(middle ?? 0);
    expect(await pages('')).toEqual([200, 200, 200]);
  });

  test.each<[NonNullable<FaultRule['match']>, number[]]>([
    [{}, [500, 500, 500, 500]],
    [{ times: 2 }, [500, 500, 200, 200]],
    [{ nth: 3 }, [200, 200, 500, 200]],
    [{ nth: 2, times: 2 }, [200, 500, 500, 200]],
  ])('a rule counts its requests: %j', async (match, expected) => {
    const { sandbox, client } = await start();
    sandbox.faults.add({
      match: { ...match, operation: 'account' },
      fault: { kind: 'status', status: 500 },
    });
    const statuses = [];
    for (const _ of expected) {
      await client.get('/Jobs/active');
      statuses.push((await client.get('/account')).status);
    }
    expect(statuses).toEqual(expected);
  });

  test('rules apply in order, and end when they are deleted', async () => {
    const { sandbox, client } = await start({
      faults: [{ match: { times: 1, operation: 'account' }, fault: { kind: 'status', status: 500 } }],
    });
    const second = sandbox.faults.add({ fault: { kind: 'status', status: 503 } });
    expect((await client.get('/account')).status).toBe(500);
    expect((await client.get('/account')).status).toBe(503);
    expect(sandbox.faults.list()).toMatchObject([
      { seen: 2, struck: 1 },
      { seen: 2, struck: 1 },
    ]);
    expect(sandbox.faults.remove(second)).toBe(true);
    expect(sandbox.faults.remove(second)).toBe(false);
    expect((await client.get('/account')).status).toBe(200);
    sandbox.faults.add({ fault: { kind: 'status', status: 503 } });
    sandbox.faults.clear();
    expect((await client.get('/account')).status).toBe(200);
  });

  test('nth counts every matching request, also those to which another rule applies', async () => {
    const { sandbox, client } = await start();
    for (const [nth, status] of [
      [1, 500],
      [2, 502],
      [3, 503],
    ] as const) {
      sandbox.faults.add({ match: { operation: 'account', nth }, fault: { kind: 'status', status } });
    }
    const statuses: number[] = [];
    for (let count = 0; count < 4; count++) statuses.push((await client.get('/account')).status);
    expect(statuses).toEqual([500, 502, 503, 200]);
  });

  test('an invalid rule is rejected when it is added', async () => {
    const { sandbox } = await start();
    for (const rule of [
      { fault: { kind: 'status', status: 99 } },
      { fault: { kind: 'nonsense' } },
      { match: { path: '(' }, fault: { kind: 'hang' } },
      { match: { nth: 0 }, fault: { kind: 'hang' } },
      { match: { typo: 1 }, fault: { kind: 'hang' } },
    ]) {
      expect(() => sandbox.faults.add(rule as FaultRule)).toThrow();
    }
    expect(sandbox.faults.list()).toEqual([]);
  });
});

describe('hooks and the request log', () => {
  test('the hook runs before an answer is created, so that jobs can move between two pages', async () => {
    const { sandbox, acme, client } = await start();
    const [a = 0, b = 0, c = 0] = [acme.createJob(), acme.createJob(), acme.createJob()];
    sandbox.onRequest = async ({ operation, query }) => {
      await Promise.resolve();
      if (operation === 'activeJobs' && query.page === '2') acme.close(c);
    };
    const pages = [await client.list('pageSize=2&page=1'), await client.list('pageSize=2&page=2')];
    // b has moved to the first page, a to its end: neither page contains a.
    expect(pages).toEqual([[c, b], []]);
    expect(await client.list()).toEqual([b, a]);
  });

  test('the hook receives account and operation', async () => {
    const seen: unknown[] = [];
    const { sandbox, acme, client } = await start({
      onRequest: ({ region, operation, account, method, path, query, jobNumber }) =>
        void seen.push([region, operation, account?.name, method, path, query, jobNumber]),
    });
    await client.get('/Jobs/77?x=1');
    await ask(`${sandbox.apiUrl('nz')}/account`);
    expect(acme.name).toBe('acme');
    expect(seen).toEqual([
      ['us', 'token', 'acme', 'POST', '/auth/realms/us/protocol/openid-connect/token', {}, undefined],
      ['us', 'job', 'acme', 'GET', '/api/Jobs/77', { x: '1' }, 77],
      ['nz', 'account', undefined, 'GET', '/api/account', {}, undefined],
    ]);
  });

  test('requests are counted by operation, region, account and status', async () => {
    const { sandbox, client, clock } = await start();
    clock.now += 5;
    await client.get('/Jobs/active');
    await client.get('/Jobs/1');
    await ask(`${sandbox.apiUrl('nz')}/account`);
    const id = sandbox.faults.add({ fault: { kind: 'status', status: 500 } });
    await client.get('/account/user');
    const { requests } = sandbox;
    expect(requests.count()).toBe(5);
    expect(requests.count({ operation: 'token' })).toBe(1);
    expect(requests.count({ region: 'nz' })).toBe(1);
    expect(requests.count({ account: 'acme', operation: 'job' })).toBe(1);
    expect(requests.count({ status: 401 })).toBe(1);
    expect(requests.list({ status: 500 })).toMatchObject([
      { operation: 'accountUser', account: 'acme', fault: id, at: START + 5 },
    ]);
    requests.clear();
    expect(requests.count()).toBe(0);
  });

  test('the log has the maximum number of concurrent requests', async () => {
    const { sandbox, client } = await start();
    let waiting = 0;
    let release = () => {};
    const all = new Promise<void>((resolve) => {
      release = resolve;
    });
    sandbox.onRequest = () => {
      waiting += 1;
      if (waiting === 3) release();
      return all;
    };
    await Promise.all([1, 2, 3].map((page) => client.get(`/Jobs/active?page=${page}`)));
    await client.get('/Jobs/active');
    expect(sandbox.requests.mostInFlight('activeJobs')).toBe(3);
    expect(sandbox.requests.mostInFlight('job')).toBe(0);
  });
});

describe('the control panel', () => {
  const panel = (sandbox: Sandbox) => (path: string, body?: unknown, method?: string) =>
    ask(`${sandbox.adminUrl}${path}`, {
      method: method ?? (body === undefined ? 'GET' : 'POST'),
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });

  test('faults can be added, listed and deleted over HTTP', async () => {
    const { sandbox, client } = await start();
    const admin = panel(sandbox);
    const rule = { match: { path: 'account', times: 5 }, fault: { kind: 'status', status: 503 } };
    const { status, json } = await admin('/faults', rule);
    expect(status).toBe(201);
    expect((await client.get('/account')).status).toBe(503);
    expect((await admin('/faults')).json).toMatchObject([
      { ...(json as { id: string }), ...rule, struck: 1 },
    ]);
    const { id } = json as { id: string };
    expect((await admin(`/faults/${id}`, undefined, 'DELETE')).status).toBe(200);
    expect((await admin(`/faults/${id}`, undefined, 'DELETE')).status).toBe(404);
    expect((await client.get('/account')).status).toBe(200);
    await admin('/faults', rule);
    await admin('/faults', undefined, 'DELETE');
    expect((await client.get('/account')).status).toBe(200);
  });

  test('jobs can be created and changed over HTTP', async () => {
    const { sandbox, client } = await start();
    const admin = panel(sandbox);
    const created = await admin('/jobs', { region: 'us', account: 'acme', description: 'By hand' });
    expect(created.status).toBe(201);
    const { jobNumber } = created.json as { jobNumber: number };
    const act = (action: string, body: unknown = {}) => admin(`/jobs/us/${jobNumber}/${action}`, body);
    const shown = async () => ({ ...(await client.entry(jobNumber)), ...(await client.job(jobNumber)) });

    expect(await shown()).toMatchObject({ description: 'By hand' });
    await act('edit', { orderNumber: 'X' });
    await act('status', { master: 'M', detail: 'D' });
    await act('line-status', { line: 0, status: 'L' });
    expect(await shown()).toMatchObject({ orderNumber: 'X', masterJobStatus: 'M', jobStatus: 'D' });
    expect((await client.job(jobNumber)).lines[0]?.jobLineStatus).toBe('L');
    await act('dispatch', { tracking: [{ trackingNumber: 'T' }] });
    expect(await shown()).toMatchObject({ dateOut: expect.any(String), tracking: [{ trackingNumber: 'T' }] });
    await act('invoice', { invoiceNumber: 'I' });
    await act('tracking', { tracking: [] });
    await act('clear-date-out');
    expect(await shown()).toMatchObject({ invoiceNumber: 'I', dateOut: null, tracking: [] });
    await act('lock', { reason: 'R' });
    expect(await shown()).toMatchObject({ permissions: { lockedReason: 'R' } });
    await act('unlock');
    await act('close');
    expect(await client.list()).toEqual([]);
    await act('reopen');
    expect((await admin('/jobs?region=us&account=acme')).json).toMatchObject([{ jobNumber }]);
    await act('hide');
    expect(await client.list()).toEqual([]);
    await act('unhide');
    expect(await client.list()).toEqual([jobNumber]);
    await act('cancel', { status: 'Gone' });
    expect(await shown()).toMatchObject({ jobStatus: 'Gone' });
    await act('remove');
    expect((await client.get(`/Jobs/${jobNumber}`)).status).toBe(404);
    expect((await act('close')).status).toBe(404);
  });

  test('it lists accounts and requests, and revokes tokens', async () => {
    const { sandbox, acme, client } = await start();
    const admin = panel(sandbox);
    acme.createJob();
    expect((await admin('/accounts')).json).toEqual([
      {
        region: 'us',
        name: 'acme',
        id: acme.id,
        clientId: 'acme-key',
        clientSecret: 'acme-secret',
        credentials: [{ clientId: 'acme-key', clientSecret: 'acme-secret', role: 'user' }],
        activeJobs: 1,
      },
    ]);
    expect((await admin('/requests?operation=token')).json).toMatchObject([{ account: 'acme', status: 200 }]);
    await admin('/requests', undefined, 'DELETE');
    expect((await admin('/requests')).json).toEqual([]);
    expect((await admin('/tokens/revoke', { account: 'acme' })).json).toEqual({ revoked: 1 });
    expect((await client.get('/account')).status).toBe(401);
  });

  test('it rejects impossible requests with a reason', async () => {
    const { sandbox, acme } = await start();
    const admin = panel(sandbox);
    const job = acme.createJob();
    expect((await admin('/faults', { fault: { kind: 'nope' } })).status).toBe(400);
    expect((await admin('/jobs', { region: 'us', account: 'nobody' })).problem.detail).toContain('nobody');
    expect((await admin(`/jobs/us/${job}/fly`, {})).status).toBe(404);
    const typo = await admin(`/jobs/us/${job}/edit`, { descripton: 'x' });
    expect(typo.status).toBe(400);
    expect(typo.text).toContain('descripton');
    const notJson = await ask(`${sandbox.adminUrl}/faults`, { method: 'POST', body: '{' });
    expect(notJson.status).toBe(400);
  });

  test('it rejects web pages', async () => {
    const { sandbox } = await start();
    const headers = { origin: 'https://evil.example' };
    const reply = await ask(`${sandbox.adminUrl}/tokens/revoke`, { method: 'POST', headers });
    expect(reply.status).toBe(403);
  });

  test('it rejects Host names of other machines, so that no DNS name can be used to reach it', async () => {
    const { sandbox } = await start();
    const { port } = new URL(sandbox.adminUrl);
    const statusFor = async (host: string): Promise<number | undefined> => {
      const [response] = await once(get(sandbox.adminUrl, { headers: { host } }), 'response');
      response.resume();
      return response.statusCode;
    };
    for (const own of ['127.0.0.1', `127.0.0.1:${port}`, `localhost:${port}`, 'LOCALHOST', `[::1]:${port}`]) {
      expect([own, await statusFor(own)]).toEqual([own, 200]);
    }
    for (const other of [
      'evil.example',
      `evil.example:${port}`,
      '127.0.0.1.evil.example',
      'localhost.evil.example',
      '192.0.2.1',
      '0.0.0.0',
    ]) {
      expect([other, await statusFor(other)]).toEqual([other, 403]);
    }
  });
});

describe('the scenario', () => {
  /** A scenario over all regions, and everything that can be seen of its world at the clock's present time. */
  function play(options: { seed?: number; speed?: number; jobs?: number; accounts?: number } = {}) {
    const clock = { now: START };
    const world = createWorld({ now: () => clock.now });
    addDemoAccounts(world, options.accounts ?? 1);
    const scenario = createScenario({
      world,
      startAt: START,
      seed: options.seed,
      speed: options.speed,
      jobsPerAccount: options.jobs ?? 25,
    });
    return {
      clock,
      world,
      scenario,
      to: (instantMs: number) => {
        clock.now = instantMs;
        scenario.advanceTo(instantMs);
      },
      dump: () =>
        world.accounts().map((account) => ({
          lists: [true, false].map((includeClosedJobs) =>
            account.listJobs({ page: 1, pageSize: 10_000, includeClosedJobs }),
          ),
          details: scenario.history
            .filter((event) => event.account === account.name)
            .map((event) => account.jobDetail(event.jobNumber)),
        })),
    };
  }

  test('the same seed gives the same history and the same world', () => {
    const [a, b, other] = [play({ seed: 7 }), play({ seed: 7 }), play({ seed: 8 })];
    for (const each of [a, b, other]) each.to(START + 2 * DAY);
    expect(a.scenario.history.length).toBeGreaterThan(200);
    expect(a.scenario.history.every(({ at }) => at > START && at <= START + 2 * DAY)).toBe(true);
    expect(b.scenario.history).toEqual(a.scenario.history);
    expect(b.dump()).toEqual(a.dump());
    expect(other.scenario.history).not.toEqual(a.scenario.history);
  });

  test('the size of the time steps does not change the history', () => {
    const whole = play({ speed: 60, jobs: 10 });
    whole.to(START + 2 * HOUR);
    const expected = { history: whole.scenario.history, world: whole.dump() };
    fc.assert(
      fc.property(fc.array(fc.integer({ min: -HOUR, max: 2 * HOUR }), { maxLength: 40 }), (stops) => {
        const stepped = play({ speed: 60, jobs: 10 });
        // Not sorted: going back must have no effect.
        for (const stop of stops) stepped.to(START + stop);
        stepped.to(START + 2 * HOUR);
        expect({ history: stepped.scenario.history, world: stepped.dump() }).toEqual(expected);
      }),
      runs(4, 30),
    );
  });

  test('initially each account has its open jobs in all stages, and a few closed ones', () => {
    const { world } = play({ jobs: 60 });
    for (const account of world.accounts()) {
      const open = account.activeJobNumbers().map((jobNumber) => account.jobListEntry(jobNumber));
      expect(open.length).toBeGreaterThanOrEqual(60);
      expect(open.length).toBeLessThanOrEqual(64);
      expect(new Set(open.map((entry) => entry?.masterJobStatus)).size).toBeGreaterThanOrEqual(5);
      expect(open.some((entry) => entry?.dateOut !== null)).toBe(true);
      const all = account.listJobs({ page: 1, pageSize: 1, includeClosedJobs: true }).totalCount;
      expect(all).toBeGreaterThan(open.length);
      const numbers = account.activeJobNumbers();
      expect((numbers.at(-1) ?? 0) - (numbers[0] ?? 0)).toBeGreaterThan(numbers.length);
    }
  });

  test('the first 15 seconds contain all kinds of changes, at most two seconds apart', () => {
    const { scenario, to } = play({ speed: 120, jobs: 40 });
    to(START + 15_000);
    const early = new Set(scenario.history.map(({ kind }) => kind));
    for (const kind of [
      'status',
      'line status',
      'dispatched',
      'tracking link filled in',
      'cancelled',
      'closed',
      'due date changed',
      'edited',
    ] as const) {
      expect([kind, early.has(kind)]).toEqual([kind, true]);
    }
    to(START + 10 * MINUTE);
    expect(scenario.history.length).toBeGreaterThan(300);
  });

  test('the opening also runs with one account and at speed 1', () => {
    const clock = { now: START };
    const world = createWorld({ now: () => clock.now });
    const account = world.addAccount({ region: 'nz', name: 'kiwi' });
    const events: ScenarioEvent[] = [];
    const scenario = createScenario({
      world,
      startAt: START,
      jobsPerAccount: 15,
      onEvent: (event) => events.push(event),
    });
    const opening = account.activeJobNumbers();
    scenario.advanceTo(START + MINUTE);
    const kinds = events.map(({ kind }) => kind);
    for (const kind of ['dispatched', 'cancelled', 'reopened', 'invoiced', 'tracking added'] as const) {
      expect(kinds).toContain(kind);
    }
    expect(world.statuses('nz').map(({ name }) => name)).toContain('Press test');
    scenario.advanceTo(START + HOUR);
    expect(account.activeJobNumbers().filter((job) => opening.includes(job))).toEqual([]);
    expect(events).toEqual(scenario.history);
  });

  test.each([0, 1, 3, 15])('initially each account has %d open jobs if that number is given', (jobs) => {
    const { world } = play({ jobs });
    for (const { activeCount } of world.accounts()) expect(activeCount).toBe(jobs);
  });

  test('over time every kind of change happens, statuses come from the lookup, and the number of jobs is stable', () => {
    const { world, scenario, to, clock } = play({ speed: 60, jobs: 40, accounts: 2 });
    to(START + 3 * HOUR);
    expect(new Set(scenario.history.map(({ kind }) => kind))).toEqual(
      new Set([
        'created',
        'status',
        'line status',
        'edited',
        'due date changed',
        'locked',
        'unlocked',
        'dispatched',
        'tracking added',
        'tracking link filled in',
        'tracking corrected',
        'dispatch date corrected',
        'dispatch revoked',
        'invoiced',
        'closed',
        'reopened',
        'cancelled',
      ]),
    );
    const times = scenario.history.map(({ at }) => at);
    expect(times).toEqual(times.toSorted((a, b) => a - b));
    // Other accounts take numbers too.
    const created = scenario.history
      .filter((event) => event.region === 'nz' && event.kind === 'created')
      .map(({ jobNumber }) => jobNumber);
    expect((created.at(-1) ?? 0) - (created[0] ?? 0)).toBeGreaterThan(1.5 * created.length);
    const entries = world.accounts().flatMap((account) =>
      account.activeJobNumbers().map((jobNumber) => ({
        account,
        entry: account.jobListEntry(jobNumber),
        job: account.job(jobNumber),
      })),
    );
    expect(entries.length).toBeGreaterThan(250);
    expect(entries.length).toBeLessThan(600);
    for (const { account, entry } of entries) {
      expect(world.statuses(account.region).map(({ name }) => name)).toContain(entry?.masterJobStatus);
    }
    // Both sides of the differences a tracker must cope with.
    expect(entries.some(({ job }) => job?.masterJobStatus !== job?.jobStatus)).toBe(true);
    expect(entries.some(({ entry }) => (entry?.tracking.length ?? 0) > 1)).toBe(true);
    expect(entries.some(({ entry }) => (entry?.orderGroupSequence ?? 0) > 1)).toBe(true);
    expect(entries.some(({ job }) => job?.dateOut === null && (job?.dueMs ?? 0) < clock.now)).toBe(true);
    const texts = entries.map(({ job }) => `${job?.description} ${job?.comments}`).join();
    for (const awkward of ['<b>', '"', '🙏', '&']) expect(texts).toContain(awkward);
  });

  test('it skips moves of jobs that were changed otherwise', () => {
    const { world, to, scenario } = play({ speed: 120, jobs: 10 });
    const cancelled: [SandboxAccount, number][] = [];
    const removed: [SandboxAccount, number][] = [];
    for (const account of world.accounts()) {
      account.activeJobNumbers().forEach((jobNumber, index) => {
        if (index % 3 === 0) {
          account.cancel(jobNumber);
          cancelled.push([account, jobNumber]);
        } else if (index % 3 === 1) {
          account.remove(jobNumber);
          removed.push([account, jobNumber]);
        } else {
          account.edit(jobNumber, { lines: [], tracking: [] });
        }
      });
    }
    to(START + 2 * HOUR);
    expect(scenario.history.length).toBeGreaterThan(100);
    for (const [account, jobNumber] of cancelled) {
      expect(account.job(jobNumber)).toMatchObject({
        phase: 'cancelled',
        jobStatus: expect.stringMatching(/^Cancell?ed$/),
      });
    }
    for (const [account, jobNumber] of removed) expect(account.job(jobNumber)).toBeUndefined();
  });

  test('a running sandbox advances its jobs to its clock before each answer', async () => {
    const clock = { now: START };
    const world = createWorld({ now: () => clock.now });
    const account = world.addAccount({ region: 'us', name: 'demo' });
    const scenario = createScenario({ world, startAt: START, jobsPerAccount: 15 });
    const sandbox = await startSandbox({ world, scenario });
    running.push(sandbox);
    const client = await login(sandbox, account);
    const dispatched = async () =>
      ((await client.get('/Jobs/active?pageSize=100')).page.items ?? []).filter(({ dateOut }) => dateOut)
        .length;
    expect(await dispatched()).toBe(1);
    clock.now += 5000;
    expect(await dispatched()).toBe(2);
    clock.now += 5000;
    const panel = await ask(`${sandbox.adminUrl}/jobs?region=us&account=demo`);
    expect((panel.json as ActiveJobDto[]).filter(({ dateOut }) => dateOut)).toHaveLength(3);
  });

  test('a running sandbox advances its jobs without requests while its clock runs', async () => {
    const clock = new SandboxClock();
    const world = createWorld({ now: () => clock.now() });
    world.addAccount({ region: 'us' });
    const moved = Promise.withResolvers<ScenarioEvent>();
    const startAt = clock.now();
    const scenario = createScenario({ world, startAt, speed: 1e5, onEvent: moved.resolve });
    running.push(await startSandbox({ world, scenario, clock }));
    expect((await moved.promise).at).toBeGreaterThan(startAt);
  });
});

describe('starting and stopping', () => {
  test('stop closes open and hanging connections at once, and can be called twice', async () => {
    const { sandbox, client } = await start();
    sandbox.faults.add({ match: { operation: 'activeJobs' }, fault: { kind: 'hang' } });
    sandbox.faults.add({ match: { operation: 'job' }, fault: { kind: 'delay', delayMs: HOUR } });
    const arrived = Promise.withResolvers<void>();
    let count = 0;
    sandbox.onRequest = () => {
      count += 1;
      if (count === 2) arrived.resolve();
    };
    const hanging = Promise.allSettled([client.get('/Jobs/active'), client.get('/Jobs/1')]);
    await arrived.promise;
    await Promise.all([sandbox.stop(), sandbox.stop()]);
    expect((await hanging).map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    await expect(client.get('/account')).rejects.toThrow('fetch failed');
  });

  test('a sandbox is disposable', async () => {
    let url: string;
    {
      await using sandbox = await startSandbox({ world: createWorld() });
      ({ url } = sandbox);
      expect((await ask(`${sandbox.adminUrl}/accounts`)).status).toBe(200);
    }
    await expect(fetch(url)).rejects.toThrow('fetch failed');
  });

  test('an occupied port throws PortTakenError', async () => {
    const { sandbox } = await start();
    const port = Number(new URL(sandbox.url).port);
    const failure = await startSandbox({ world: createWorld(), port }).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(PortTakenError);
    expect((failure as Error).message).toBe(`Port ${port} is already in use.`);
  });

  test('two sandboxes in one process share nothing, and do not change globals', async () => {
    const [one, two] = [await start(), await start()];
    one.acme.createJob();
    expect(await two.client.list()).toEqual([]);
    expect(globalThis.Request).toBe(nativeRequest);
    expect(globalThis.Response).toBe(nativeResponse);
  });
});

describe('npm run sandbox', () => {
  const main = new URL('../../sandbox/main.ts', import.meta.url).pathname;
  const run = (...args: string[]) => {
    const child = spawn(process.execPath, [main, ...args]);
    onTestFinished(() => void child.kill('SIGKILL'));
    const output = { out: '', error: '' };
    child.stdout.on('data', (chunk) => {
      output.out += chunk;
    });
    child.stderr.on('data', (chunk) => {
      output.error += chunk;
    });
    return { child, output, exit: once(child, 'close') };
  };

  test('it prints what runs where, serves it, and exits with 0 on Ctrl-C', async () => {
    const { child, output, exit } = run('--port', '0', '--accounts', '2', '--jobs', '5', '--seed', '3');
    while (!output.out.includes('Jobs/active')) await once(child.stdout, 'data');
    const url = /http:\/\/127\.0\.0\.1:\d+/.exec(output.out)?.[0];
    const panel = /panel +(http:\S+)/.exec(output.out)?.[1];
    for (const region of REGIONS)
      expect(output.out).toMatch(new RegExp(`${region}-demo-2 +${region}-demo-2-secret`));
    const reply = await ask(`${url}/eu/auth/realms/eu/protocol/openid-connect/token`, {
      method: 'POST',
      body: new URLSearchParams({
        grant_type: 'client_credentials',
        client_id: 'eu-demo-2',
        client_secret: 'eu-demo-2-secret',
      }),
    });
    expect(reply.status).toBe(200);

    // Unanswered requests do not delay it.
    const faults = [{ kind: 'hang' }, { kind: 'delay', delayMs: HOUR }].map((fault) =>
      ask(`${panel}/faults`, {
        method: 'POST',
        body: JSON.stringify({ match: { times: 1, region: 'eu' }, fault }),
      }),
    );
    await Promise.all(faults);
    const stuck = Promise.allSettled([ask(`${url}/eu/api/account`), ask(`${url}/eu/api/account`)]);
    while (true) {
      const { json } = await ask(`${panel}/requests?operation=account`);
      if ((json as unknown[]).length === 2) break;
    }
    child.kill('SIGINT');
    await stuck;
    expect(await exit).toEqual([0, null]);
    expect(output.error).toBe('');
  });

  test.each([
    [['--port'], 'argument missing'],
    [['--port', '70000'], '--port must be an integer from 0 to 65535.'],
    [['--port='], '--port must be an integer'],
    [['--port', '0x10'], '--port must be an integer from 0 to 65535.'],
    [
      ['--port', '65535'],
      'There is no port after 65535 for the control panel; choose one with --admin-port.',
    ],
    [['--port', '4444', '--admin-port', '4444'], '--port and --admin-port must differ; both are 4444.'],
    [['--speed', '0'], '--speed must be a number above 0, at most 1000000.'],
    [['--speed', '1e7'], '--speed must be a number above 0, at most 1000000.'],
    [['--jobs', '1.5'], '--jobs must be an integer'],
    [['--admin-port', 'x'], '--admin-port must be an integer from 0 to 65535.'],
    [['--scenario='], '--scenario must be one of credentials-swapped'],
    [['extra'], "Unexpected argument 'extra'"],
  ])('%j is an error with one message', (args, message) => {
    expect(readFlags(args)).toContain(message);
    expect(String(readFlags(args)).split('\n')).toHaveLength(1);
  });

  test.each([
    [['--prot', '1'], "Unknown option '--prot'"],
    [['--scenario', 'season', '--accounts', '2'], 'season lists its accounts'],
    [
      ['--scenario', 'nowhere'],
      'The scenario nowhere cannot be read: it must be one of credentials-swapped, normal-day',
    ],
  ])('%j exits with 1 and one error message', async (args, message) => {
    const { output, exit } = run(...args);
    expect(await exit).toEqual([1, null]);
    expect(output.error).toContain(message);
    expect(output.error.trim().split('\n')).toHaveLength(1);
    expect(output.out).toBe('');
  });

  test('SIGTERM exits with 0 also while its clock is being advanced', async () => {
    const { child, output, exit } = run('--port', '0');
    while (!output.out.includes('control panel')) await once(child.stdout, 'data');
    const panel = /panel +(http:\S+)/.exec(output.out)?.[1];
    const now = async () => Date.parse(((await ask(`${panel}/clock`)).json as { now: string }).now);
    const before = await now();
    const asked = ask(`${panel}/clock/advance`, { method: 'POST', body: '{"seconds":2000000}' });
    const ended = expect(asked).rejects.toThrow('fetch failed');
    while ((await now()) < before + HOUR) await Promise.resolve();
    child.kill('SIGTERM');
    await ended;
    expect(await exit).toEqual([0, null]);
  });

  test('an occupied port exits with 1 and one error message', async () => {
    const { sandbox } = await start();
    const { port } = new URL(sandbox.url);
    const { output, exit } = run('--port', port, '--jobs', '1');
    expect(await exit).toEqual([1, null]);
    expect(output.error).toBe(`Port ${port} is already in use; choose another with --port.\n`);
  });

  test('it starts a scenario by name, prints it, and flags override its file', async () => {
    const { child, output } = run(
      '--port',
      '0',
      '--scenario',
      'region-outage',
      '--jobs',
      '3',
      '--accounts',
      '1',
    );
    while (!output.out.includes('control panel')) await once(child.stdout, 'data');
    expect(output.out).toContain('scenario region-outage');
    expect(output.out.match(/ [3-7] open jobs {2}/g)).toHaveLength(5);
    const panel = /panel +(http:\S+)/.exec(output.out)?.[1];
    expect((await ask(`${panel}/scheduled-changes`)).json).toHaveLength(3);
  });

  test('an occupied port of the control panel exits with 1 and one error message', async () => {
    const { sandbox } = await start();
    const { port } = new URL(sandbox.adminUrl);
    const { output, exit } = run('--port', '0', '--admin-port', port, '--jobs', '1');
    expect(await exit).toEqual([1, null]);
    expect(output.error).toBe(`Port ${port} is already in use; choose another with --admin-port.\n`);
  });

  test('--help lists the options', async () => {
    const { output, exit } = run('--help');
    expect(await exit).toEqual([0, null]);
    for (const flag of ['scenario', 'port', 'admin-port', 'seed', 'speed', 'accounts', 'jobs'])
      expect(output.out).toContain(`--${flag}`);
    for (const text of ['0 to 65535 (4010)', '0 = any free port', 'at most 1000000 (120)', '1 to 100 (1)'])
      expect(output.out).toContain(text);
  });
});
