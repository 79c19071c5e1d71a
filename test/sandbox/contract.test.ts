/** Rules of all operations of the ordering API: authentication, errors, bodies. */
import { once } from 'node:events';
import { connect } from 'node:net';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { operations } from '../../sandbox/operations.ts';
import type { RegionCode } from '../../sandbox/world/regions.ts';
import { Token, TokenError } from '../../shared/ordering/contract/tokens.ts';
import { fetchToken, startService } from '../support/ordering-api.ts';

/** Every operation without a token; parameter values need not exist, because the token is checked first. */
const UNAUTHORIZED = [
  'GET /PriceCodes/processes 401',
  'GET /PriceCodes/price-codes 401',
  'GET /PriceCodes/{priceCode} 401',
  'POST /Jobs 401',
  'GET /Jobs/{jobNumber} 401',
  'PATCH /Jobs/{jobNumber} 401',
  'POST /Jobs/{jobNumber}/cancel 401',
  'GET /Jobs/active 401',
  'GET /Jobs/delivery-options 401',
  'GET /Jobs/earliest-ship-date 401',
  'GET /Assets 401',
  'GET /Assets/global 401',
  'GET /Assets/types 401',
  'GET /Assets/{assetTag} 401',
  'GET /Assets/{assetTag}/files 401',
  'GET /Assets/{assetCode}/jobs 401',
  'GET /account 401',
  'GET /account/user 401',
  'GET /account/users 401',
  'GET /account/users/{userId} 401',
  'GET /account/transactions 401',
  'GET /account/shipment-settings 401',
  'GET /Lookups/countries 401',
  'GET /Lookups/countries/{countryCode}/states 401',
  'GET /Lookups/job-statuses 401',
  'GET /Lookups/process-codes 401',
  'GET /Lookups/size-sets 401',
  'GET /Stock 401',
  'GET /Stock/{code} 401',
  'GET /promocode/validate/{code} 401',
  'GET /stock/{stockItemId}/shipping 401',
  'GET /stock/shipping 401',
];

/** Operations with a documented 500, which only a rule causes. */
const FAILING = [
  'GET /PriceCodes/processes 500',
  'GET /Assets/{assetCode}/jobs 500',
  'GET /Lookups/countries 500',
  'GET /Lookups/countries/{countryCode}/states 500',
  'GET /Lookups/job-statuses 500',
  'GET /Lookups/process-codes 500',
  'GET /Lookups/size-sets 500',
];

const toRequest = (one: string) => {
  const [method = '', path = ''] = one.split(' ');
  return { method, path: path.replaceAll(/\{\w+\}/g, '1'), route: `${method} ${path}` };
};

describe('without a valid token of the region', () => {
  test('the cases cover every operation', () => {
    expect(UNAUTHORIZED.map((one) => toRequest(one).route).toSorted()).toEqual(
      operations.map(({ method, path }) => `${method.toUpperCase()} ${path}`).toSorted(),
    );
  });

  test.each(UNAUTHORIZED)(
    '%s: rejects a missing token, a wrong one, an expired one and one of another region',
    async (one) => {
      const { method, path } = toRequest(one);
      const { us, sandbox, world, clock } = await startService({ tokenLifetimeSeconds: 600 });
      const kiwi = world.addAccount({ region: 'nz', name: 'kiwi' });
      const foreign = await fetchToken(sandbox, kiwi, kiwi.clientId, kiwi.clientSecret);
      const tokens = { none: '', wrong: 'x', foreign, own: us.token };
      const getStatus = async (
        token: string,
        detail = 'A valid bearer token of this region is required.',
      ) => {
        const { status, headers, json } = await us.ask(path, { method, token });
        if (status !== 401) return status;
        expect(headers.get('www-authenticate')).toBe('Bearer');
        expect(headers.get('content-type')).toBe('application/problem+json; charset=utf-8');
        expect(json).toEqual({
          type: 'https://transfers.example/problems/401',
          title: 'Unauthorized',
          status: 401,
          detail,
          instance: `/us/api${path}`,
        });
        return status;
      };
      expect(await getStatus(tokens.none)).toBe(401);
      expect(await getStatus(tokens.wrong)).toBe(401);
      expect(await getStatus(tokens.foreign)).toBe(401);
      expect(await getStatus(tokens.own)).not.toBe(401);
      clock.now += 599_999;
      expect(await getStatus(tokens.own)).not.toBe(401);
      clock.now += 1;
      const expired = 'The token has expired; request a new one at the token endpoint of this region.';
      expect(await getStatus(tokens.own, expired)).toBe(401);
    },
  );
});

test.each(['OPTIONS', 'PROPFIND'])(
  'the method %s is rejected without a token, and unknown with one',
  async (method) => {
    const { us } = await startService();
    expect((await us.ask('/account', { method, token: '' })).status).toBe(401);
    expect((await us.ask('/account', { method })).status).toBe(404);
  },
);

test('a fault rule can select the method OPTIONS', async () => {
  const { us, sandbox } = await startService();
  sandbox.faults.add({ match: { method: 'OPTIONS' }, fault: { kind: 'status', status: 503 } });
  expect((await us.ask('/account', { method: 'OPTIONS' })).status).toBe(503);
});

test.each(FAILING)('%s: fails once under a fault rule, and succeeds on retry', async (one) => {
  const { method, path } = toRequest(one.replace('{countryCode}', 'US'));
  const { us, sandbox } = await startService();
  sandbox.faults.add({ match: { method, nth: 1 }, fault: { kind: 'status', status: 500 } });
  const { status, json } = await us.ask(path, { method });
  expect(status).toBe(500);
  expect(json).toMatchObject({ status: 500, title: 'Internal Server Error', instance: `/us/api${path}` });
  expect((await us.ask(path, { method })).status).not.toBe(500);
});

describe('ProblemDetails · type, title, status, detail, instance, errors: a problem', () => {
  test('has the title of its type, and a detail that names the error and its location', async () => {
    const { us, acme } = await startService();
    const absent = (await us.get('/Jobs/1')).json;
    expect(absent).toEqual({
      type: 'https://transfers.example/problems/404',
      title: 'Not Found',
      status: 404,
      detail: expect.stringMatching(/\.$/),
      instance: '/us/api/Jobs/1',
    });
    const jobNumber = acme.createJob();
    acme.cancel(jobNumber);
    const locked = (await us.patch(`/Jobs/${jobNumber}`, { comments: 'x' })).json;
    expect(locked).toMatchObject({ status: 403, title: 'Forbidden', instance: `/us/api/Jobs/${jobNumber}` });
    expect(locked.detail).not.toBe(absent.detail);
  });

  test('has the messages by parameter or field if the request was invalid', async () => {
    const { us, acme } = await startService();
    const { json } = await us.get('/Jobs/active?page=0&pageSize=101');
    expect(json).toEqual({
      type: 'https://transfers.example/problems/validation',
      title: 'One or more validation errors occurred.',
      status: 400,
      detail: 'A parameter is not valid.',
      instance: '/us/api/Jobs/active',
      errors: {
        page: ['The value must be at least 1.'],
        pageSize: ['The value must be at most 100.'],
      },
    });
    const patched = await us.patch(`/Jobs/${acme.createJob()}`, { mustDate: 'yes', comments: 3 });
    expect(Object.keys(patched.json.errors)).toEqual(['comments', 'mustDate']);
  });
});

describe('bodies', () => {
  test.each([
    ['POST /Jobs 415', '/Jobs'],
    ['PATCH /Jobs/{jobNumber} 415', '/Jobs/{jobNumber}'],
  ])('%s: accepts only the four documented media types', async (what, route) => {
    const { method } = toRequest(what);
    const { us, acme } = await startService();
    const path = route.replace('{jobNumber}', String(acme.createJob()));
    const statusFor = async (type: string) =>
      (await us.ask(path, { method, body: '{', headers: { 'content-type': type } })).status;
    for (const type of [
      'application/json',
      'application/json; charset=utf-8',
      'text/json',
      'application/json-patch+json',
      'application/merge-patch+json',
      'APPLICATION/VND.X+JSON',
    ]) {
      expect(await statusFor(type), type).toBe(400);
    }
    for (const type of [
      'text/plain',
      'application/xml',
      'application/jsonx',
      'application/x-www-form-urlencoded',
    ]) {
      expect(await statusFor(type), type).toBe(415);
    }
  });
});

describe('bodies that are too large', () => {
  const MIB = 1024 * 1024;
  /** A body of a given size and unknown length; reports how much of it was read. */
  const createStream = (bytes: number) => {
    const sent = { bytes: 0 };
    const body = new ReadableStream<Uint8Array>({
      pull(controller) {
        if (sent.bytes >= bytes) return controller.close();
        const chunk = new Uint8Array(Math.min(65_536, bytes - sent.bytes)).fill(32);
        sent.bytes += chunk.length;
        controller.enqueue(chunk);
      },
    });
    return { sent, init: { body, duplex: 'half' as const } };
  };

  test.each([
    ['POST /Jobs 413', '/Jobs'],
    ['PATCH /Jobs/{jobNumber} 413', '/Jobs/{jobNumber}'],
  ])('%s: rejects more than 1 MiB, with and without content-length', async (what, route) => {
    const { method } = toRequest(what);
    const { us, acme } = await startService();
    const path = route.replace('{jobNumber}', String(acme.createJob()));
    const headers = { 'content-type': 'application/json' };
    const rejection = await us.ask(path, { method, headers, body: ' '.repeat(MIB + 1) });
    expect(rejection.json).toMatchObject({ status: 413, instance: `/us/api${path}` });
    expect((await us.ask(path, { method, headers, ...createStream(MIB + 1).init })).status).toBe(413);
    expect((await us.ask(path, { method, headers, body: ' '.repeat(MIB) })).status).toBe(400);
    expect((await us.ask(path, { method, headers, ...createStream(MIB).init })).status).toBe(400);
  });

  test('answers 401 without a token, for any body size, and before the body has arrived', async () => {
    const { sandbox } = await startService();
    const url = new URL(`${sandbox.apiUrl('us')}/Jobs`);
    const socket = connect(Number(url.port), url.hostname);
    // The body that content-length gives is never sent: a server that waits for it would never answer.
    socket.write(
      `POST ${url.pathname} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 60000000\r\n\r\n`,
    );
    const [data] = await once(socket, 'data');
    expect(String(data)).toMatch(/^HTTP\/1\.1 401 /);
    socket.destroy();
  });

  test('POST /realms/{realm}/protocol/openid-connect/token 413: a form of more than a MiB', async () => {
    const { sandbox } = await startService();
    const url = `${sandbox.authUrl('us')}/realms/us/protocol/openid-connect/token`;
    const headers = { 'content-type': 'application/x-www-form-urlencoded' };
    for (const init of [{ body: 'a'.repeat(MIB + 1) }, createStream(MIB + 1).init]) {
      const answer = await fetch(url, { method: 'POST', headers, ...init });
      expect(answer.status).toBe(413);
      expect(TokenError.parse(await answer.json()).error).toBe('invalid_request');
    }
  });
});

describe('an unexpected error', () => {
  test('is a problem with 500, logged once on stderr in a line without content of the request', async () => {
    const logged = vi.spyOn(console, 'error').mockImplementation(() => {});
    onTestFinished(() => logged.mockRestore());
    const { us, sandbox } = await startService();
    sandbox.onRequest = () => {
      throw new RangeError('The secret is hush-hush.');
    };
    const path = '/promocode/validate/SECRET-CODE';
    const answer = await fetch(sandbox.apiUrl('us') + path, {
      headers: { authorization: `Bearer ${us.token}` },
    });
    const { status, headers } = answer;
    const json = (await answer.json()) as { detail: string };
    expect(status).toBe(500);
    expect(headers.get('content-type')).toBe('application/problem+json; charset=utf-8');
    expect(json).toMatchObject({ status: 500, title: 'Internal Server Error', instance: `/us/api${path}` });
    expect(json.detail).not.toContain('hush');
    expect(logged).toHaveBeenCalledTimes(1);
    const [line] = logged.mock.calls[0] ?? [];
    expect(line).toMatch(
      /^Sandbox: GET \/us\/api\/promocode\/validate\/:code failed with RangeError at .*\.ts\b.*:\d+.*\.$/,
    );
    expect(line).not.toMatch(/hush|SECRET|\n/);
  });

  test('does not include a client that disconnects within its body: nothing is logged, and the next request is answered', async () => {
    const logged = vi.spyOn(console, 'error').mockImplementation(() => {});
    onTestFinished(() => logged.mockRestore());
    const { us, sandbox } = await startService();
    const before = sandbox.requests.count();
    for (const [path, length] of [
      ['/us/api/Jobs', 'Content-Length: 5000'],
      ['/us/api/Jobs', 'Transfer-Encoding: chunked'],
      ['/us/auth/realms/us/protocol/openid-connect/token', 'Content-Length: 5000'],
    ]) {
      const { port, hostname } = new URL(sandbox.url);
      const socket = connect(Number(port), hostname);
      const type = path?.includes('auth') ? 'application/x-www-form-urlencoded' : 'application/json';
      const head = [
        ...[`POST ${path} HTTP/1.1`, 'Host: x', `Authorization: Bearer ${us.token}`],
        ...[`Content-Type: ${type}`, 'Expect: 100-continue', length],
      ];
      socket.write(`${head.join('\r\n')}\r\n\r\n`);
      // The service waits for the body from here on.
      await once(socket, 'data');
      socket.write(length?.startsWith('T') ? '5\r\n{"a":' : '{"a":');
      socket.resetAndDestroy();
    }
    // Waits until the request has arrived.
    for (let n = 0; n < 5; n++) expect((await us.get('/account')).status).toBe(200);
    expect(logged.mock.calls).toEqual([]);
    expect(sandbox.requests.count() - before, 'they were no requests').toBe(5);
  });
});

test('a problem’s instance is the path as sent, in any encoding', async () => {
  const { us, sandbox } = await startService();
  for (const path of [
    '/Stock/no%2Fsuch%20one',
    '/Stock/%C3%A9%3F',
    '/Stock/100%25',
    '/nothing/at%20all%2Fhere',
  ]) {
    const { status, json } = await us.get<{ instance: string }>(`${path}?x=/y`);
    expect([status, json.instance]).toEqual([404, `/us/api${path}`]);
  }
  for (const url of [`${sandbox.url}/no%20where%2F`, `${sandbox.url}/files/no%20where%2F`]) {
    const { instance } = (await (await fetch(url)).json()) as { instance: string };
    expect(instance).toBe(new URL(url).pathname);
  }
});

describe('the token endpoint', () => {
  const path = '/realms/us/protocol/openid-connect/token';
  const form = (fields: Record<string, string> = {}) => ({
    ...{ grant_type: 'client_credentials', client_id: 'acme-key', client_secret: 'acme-secret' },
    ...fields,
  });

  /** Requests a token of acme. Default host: the US region's. */
  async function start() {
    const { sandbox, world, clock, us } = await startService({ tokenLifetimeSeconds: 600 });
    const grant = async (
      body: Record<string, string> | string = form(),
      { region = 'us', realm = region, type }: { region?: RegionCode; realm?: string; type?: string } = {},
    ) => {
      const answer = await fetch(sandbox.authUrl(region) + path.replace('us', realm), {
        method: 'POST',
        body: typeof body === 'string' ? body : new URLSearchParams(body),
        ...(type !== undefined && { headers: { 'content-type': type } }),
      });
      const json = (await answer.json()) as { access_token: string };
      (answer.status === 200 ? Token : TokenError).parse(json);
      return { status: answer.status, headers: answer.headers, json };
    };
    return { grant, us, world, clock };
  }

  test('POST /realms/{realm}/protocol/openid-connect/token 200: TokenRequest · grant_type, client_id, client_secret; Token · access_token, expires_in, token_type: the token is valid for ten minutes', async () => {
    const { grant, us, clock } = await start();
    const { status, json, headers } = await grant();
    expect(status).toBe(200);
    expect(headers.get('cache-control')).toBe('no-store');
    expect(json).toEqual({ access_token: expect.any(String), expires_in: 600, token_type: 'Bearer' });
    const token = json.access_token;
    expect((await us.ask('/account', { token })).status).toBe(200);
    const { json: second } = await grant();
    expect(second.access_token).not.toBe(token);
    clock.now += 599_999;
    expect((await us.ask('/account', { token })).status, 'a second one does not revoke the first').toBe(200);
    clock.now += 1;
    expect((await us.ask('/account', { token })).status).toBe(401);
  });

  test.each<[what: string, fields: Record<string, string>, status: number, error: string]>([
    [
      'POST /realms/{realm}/protocol/openid-connect/token 400 · TokenError · error, error_description: no grant type',
      ...([{ grant_type: '' }, 400, 'invalid_request'] as const),
    ],
    ['another grant type', { grant_type: 'password' }, 400, 'unsupported_grant_type'],
    [
      'POST /realms/{realm}/protocol/openid-connect/token 401: a wrong secret',
      ...([{ client_secret: 'x' }, 401, 'invalid_client'] as const),
    ],
    ['an unknown client', { client_id: 'nobody' }, 401, 'invalid_client'],
    ['no secret', { client_secret: '' }, 401, 'invalid_client'],
  ])('%s', async (_, fields, status, error) => {
    const { grant } = await start();
    const rejection = await grant(form(fields));
    expect(rejection.status).toBe(status);
    expect(rejection.json).toEqual({ error, error_description: expect.any(String) });
  });

  test('POST /realms/{realm}/protocol/openid-connect/token 400: a body that is not a form', async () => {
    const { grant } = await start();
    const rejection = await grant(JSON.stringify(form()), { type: 'application/json' });
    expect(rejection).toMatchObject({ status: 400, json: { error: 'invalid_request' } });
  });

  test('POST /realms/{realm}/protocol/openid-connect/token 404: a realm of another region, or an unknown one', async () => {
    const { grant } = await start();
    for (const realm of ['nz', 'nowhere']) {
      expect(await grant(form(), { realm })).toMatchObject({
        status: 404,
        json: { error: expect.any(String) },
      });
    }
  });

  test('credentials are valid in their own region only, with the rights of their role', async () => {
    const { grant, us, world } = await start();
    expect((await grant(form(), { region: 'nz' })).status).toBe(401);
    world.account('us', 'acme')?.addCredentials({ role: 'viewer', clientId: 'looker', clientSecret: 's' });
    const { json } = await grant(form({ client_id: 'looker', client_secret: 's' }));
    expect((await us.ask('/Jobs/active', { token: json.access_token })).status).toBe(403);
    expect((await us.ask('/account', { token: json.access_token })).status).toBe(200);
  });
});
