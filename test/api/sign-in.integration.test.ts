/** Sign-in of users with OpenID Connect, at a real server on loopback. */
import { createHash, randomBytes } from 'node:crypto';
import type { JWTPayload } from 'jose';
import { SignJWT } from 'jose';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type AnsweredRequest, createApi } from '../../shared/api/app.ts';
import { createKeyring } from '../../shared/api/keys.ts';
import { createSignIn } from '../../shared/api/sign-in.ts';
import { SignInSettings } from '../../shared/api/sign-in-input.ts';
import { createMemoryTable } from '../../shared/storage/sqlite-table.ts';
import { apiParts } from '../support/api.ts';
import { type Issuer, startIssuer } from '../support/issuer.ts';

const ORIGIN = 'http://127.0.0.1:4000';
const BOOTSTRAP = 'a-configured-api-key';
const EMAIL = 'ann@acme.example';
let issuer: Issuer;

beforeAll(async () => {
  issuer = await startIssuer({
    origins: [ORIGIN],
    users: {
      ann: { email: EMAIL, groups: ['admins'] },
      sue: { name: 'Sue', groups: ['sales', 'others'] },
      eve: { groups: ['others'] },
    },
  });
});
afterAll(() => issuer.stop());
beforeEach(() => {
  issuer.down = false;
});

/** An API with the sign-in, whose clock is ahead of the real one by `aheadMs`. */
function createSite({ cooldownMs }: { readonly cooldownMs?: number } = {}) {
  const clock = { aheadMs: 0 };
  const now = () => Date.now() + clock.aheadMs;
  const table = createMemoryTable();
  const settings = SignInSettings.parse({
    issuer: issuer.url,
    clientId: issuer.clientId,
    groups: { admins: { role: 'admin' }, sales: { role: 'read', accounts: ['acme'] } },
  });
  const signIn = createSignIn({ settings, now, ...(cooldownMs === undefined ? {} : { cooldownMs }) });
  const logged: AnsweredRequest[] = [];
  const faults: unknown[] = [];
  const api = createApi({
    ...{ table, regions: ['us'], now, signIn },
    ...apiParts(table, BOOTSTRAP, now, ['us']),
    log: {} as never,
    keyring: createKeyring({ table, now, bootstrap: BOOTSTRAP, users: signIn }),
    onAnswer: (request) => void logged.push(request),
    onError: (cause) => void faults.push(cause),
  });
  let addresses = 0;
  /** Sends a request, each from another address unless one is given. */
  async function ask(method: string, path: string, init: Asked = {}) {
    const { token, body, headers = {}, from } = init;
    addresses += 1;
    const all = {
      ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...headers,
    };
    const request = { method, headers: all, ...(body === undefined ? {} : { body: JSON.stringify(body) }) };
    const response = await api.request(path, request, {
      clientAddress: from ?? `10.0.0.${addresses}`,
    });
    return { status: response.status, headers: response.headers, body: toJson(await response.text()) };
  }
  /** Sends a user to the issuer, and begins a session with the code. */
  async function signInAs(user: string, change: object = {}) {
    const begun = await ask('GET', '/v1/sign-in');
    const codeVerifier = randomBytes(32).toString('base64url');
    const redirectUri = `${ORIGIN}/sign-in`;
    const url = new URL(begun.body.issuer.authorizationEndpoint);
    url.search = String(
      new URLSearchParams({
        ...{ response_type: 'code', client_id: begun.body.issuer.clientId, redirect_uri: redirectUri },
        ...{ scope: begun.body.issuer.scope, state: 'state', nonce: 'nonce', code_challenge_method: 'S256' },
        code_challenge: createHash('sha256').update(codeVerifier).digest('base64url'),
      }),
    );
    const answer = await issuer.signIn(user, url);
    const body = { code: answer.get('code'), codeVerifier, redirectUri, nonce: 'nonce', ...change };
    return ask('POST', '/v1/session', { body });
  }
  return { ask, signInAs, clock, logged, faults, table };
}

interface Asked {
  readonly token?: string;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  readonly from?: string;
}

// biome-ignore lint/suspicious/noExplicitAny: responses of several routes
const toJson = (text: string): any => (text === '' ? undefined : JSON.parse(text));

/** Returns the header that sends the session's cookie back. */
function toCookie({ headers }: { readonly headers: Headers }) {
  const [cookie = ''] = headers.getSetCookie();
  return { cookie: cookie.split(';')[0] ?? '' };
}

const claims = (change: JWTPayload = {}): JWTPayload => {
  const seconds = Math.floor(Date.now() / 1000);
  return {
    ...{ iss: issuer.url, aud: issuer.clientId, sub: 'ann', email: EMAIL, groups: ['admins'] },
    ...{ iat: seconds, exp: seconds + 300, ...change },
  };
};

describe('the authorization code flow', () => {
  it('gives a page an ID token, whose groups determine role and accounts, and puts the refresh token into a cookie that scripts cannot read', async () => {
    const { ask, signInAs } = createSite();
    const session = await signInAs('sue');
    expect(session.status).toBe(200);
    expect(session.body).toEqual({ token: expect.any(String), expiresInSeconds: expect.any(Number) });
    expect(session.body.expiresInSeconds).toBeGreaterThan(200);
    expect(session.headers.getSetCookie()).toEqual([
      expect.stringMatching(/^jobwire_session=[^;]+; Path=\/v1\/session; HttpOnly; Secure; SameSite=Strict$/),
    ]);
    const own = await ask('GET', '/v1/key', { token: session.body.token });
    expect(own.body).toEqual({
      id: expect.stringMatching(/^user_[\w-]{22}$/),
      ...{ name: 'Sue', role: 'read', accounts: ['acme'] },
      expiresAt: expect.any(String),
      user: { subject: 'sue', name: 'Sue' },
    });
    expect((await ask('GET', '/v1/keys', { token: session.body.token })).status).toBe(403);
  });

  it('records the user who created a key, and no personal data in logs', async () => {
    const { ask, signInAs, logged } = createSite();
    const { token } = (await signInAs('ann')).body;
    const { key } = (await ask('POST', '/v1/keys', { token, body: { role: 'read' } })).body;
    expect(key).toMatchObject({
      createdBy: expect.stringMatching(/^user_/),
      createdByUser: { subject: 'ann', name: EMAIL },
      expiresAt: null,
    });
    const read = await ask('GET', `/v1/keys/${key.id}`, { token: BOOTSTRAP });
    expect(read.body).toMatchObject({ createdByUser: { subject: 'ann', name: EMAIL } });
    expect(logged.map(({ keyId }) => keyId)).toContain(key.createdBy);
    expect(JSON.stringify(logged)).not.toContain('ann');
  });

  it('renews a session with a new cookie, and ends one whose cookie was used before', async () => {
    const { ask, signInAs } = createSite();
    const first = await signInAs('ann');
    const second = await ask('POST', '/v1/session/renewal', { headers: toCookie(first) });
    expect(second.status).toBe(200);
    expect(toCookie(second)).not.toEqual(toCookie(first));
    expect((await ask('GET', '/v1/key', { token: second.body.token })).status).toBe(200);
    const reused = await ask('POST', '/v1/session/renewal', { headers: toCookie(first) });
    expect(reused.status).toBe(401);
    expect(toCookie(reused)).toEqual({ cookie: 'jobwire_session=' });
    expect((await ask('POST', '/v1/session/renewal')).status).toBe(401);
  });

  it('revokes the refresh token at sign-out', async () => {
    const { ask, signInAs } = createSite();
    const session = await signInAs('ann');
    const ended = await ask('DELETE', '/v1/session', { headers: toCookie(session) });
    expect(ended.status).toBe(204);
    expect(toCookie(ended)).toEqual({ cookie: 'jobwire_session=' });
    expect((await ask('POST', '/v1/session/renewal', { headers: toCookie(session) })).status).toBe(401);
  });

  it.each([
    ['the code verifier', { codeVerifier: randomBytes(32).toString('base64url') }],
    ['the nonce', { nonce: 'another' }],
    ['the redirect URI', { redirectUri: `${ORIGIN}/elsewhere` }],
    ['the code', { code: 'another' }],
  ])('rejects a code if %s is not that of the request', async (_, change) => {
    const { status, headers } = await createSite().signInAs('ann', change);
    expect(status).toBe(401);
    expect(headers.getSetCookie().join()).not.toMatch(/jobwire_session=\w/);
  });

  it('tells a user without a mapped group that there is no access, and begins no session', async () => {
    const { ask, signInAs } = createSite();
    const session = await signInAs('eve');
    expect(session.status).toBe(403);
    expect(session.body.detail).toMatch(/not in a group with access/);
    expect(session.headers.getSetCookie()).toEqual([]);
    const answer = await ask('GET', '/v1/key', { token: await issuer.sign(claims({ groups: [] })) });
    expect([answer.status, answer.body.detail]).toEqual([403, session.body.detail]);
  });

  it.each(['cross-site', 'same-site', 'none'])(
    'rejects session requests of pages that are %s',
    async (site) => {
      const { ask, signInAs } = createSite();
      const headers = { ...toCookie(await signInAs('ann')), 'sec-fetch-site': site };
      expect((await ask('POST', '/v1/session/renewal', { headers })).status).toBe(403);
      expect((await ask('DELETE', '/v1/session', { headers })).status).toBe(403);
    },
  );
});

describe('a bearer token', () => {
  const seconds = () => Math.floor(Date.now() / 1000);

  it('of the issuer for this client is accepted', async () => {
    const token = await issuer.sign(claims());
    expect((await createSite().ask('GET', '/v1/key', { token })).status).toBe(200);
  });

  it.each<[string, () => JWTPayload]>([
    ['for another client', () => claims({ aud: issuer.otherClientId })],
    ['without an audience', () => claims({ aud: undefined })],
    ['of another issuer', () => claims({ iss: 'https://evil.example' })],
    ['for several clients, authorized for none', () => claims({ aud: [issuer.clientId, 'other'] })],
    ['authorized for another client', () => claims({ aud: [issuer.clientId, 'other'], azp: 'other' })],
    ['that expired a minute ago', () => claims({ exp: seconds() - 60 })],
    ['that never expires', () => claims({ exp: undefined })],
    ['that is not valid yet', () => claims({ nbf: seconds() + 60 })],
    ['without a subject', () => claims({ sub: undefined })],
  ])('%s is rejected', async (_, make) => {
    const answer = await createSite().ask('GET', '/v1/key', { token: await issuer.sign(make()) });
    expect(answer.status).toBe(401);
    expect(answer.headers.get('www-authenticate')).toContain('invalid_token');
  });

  it('is accepted with clocks that differ by seconds', async () => {
    const token = await issuer.sign(claims({ exp: seconds() - 10, nbf: seconds() + 10 }));
    expect((await createSite().ask('GET', '/v1/key', { token })).status).toBe(200);
  });

  it('without a signature, or signed with a shared secret or with another key, is rejected', async () => {
    const { ask } = createSite();
    const encode = (part: object) => Buffer.from(JSON.stringify(part)).toString('base64url');
    const none = `${encode({ alg: 'none', typ: 'JWT' })}.${encode(claims())}.`;
    const { keys } = toJson(await (await fetch(`${issuer.url}/jwks`)).text());
    const { kid, n } = keys[0];
    const shared = await new SignJWT(claims())
      .setProtectedHeader({ alg: 'HS256', kid })
      .sign(Buffer.from(n, 'base64url'));
    const [head, , signature] = (await issuer.sign(claims())).split('.');
    const changed = [head, encode(claims({ sub: 'root' })), signature].join('.');
    for (const token of [none, shared, changed]) {
      expect((await ask('GET', '/v1/key', { token })).status).toBe(401);
    }
  });

  it('with a new key of the issuer is accepted, and one with a removed key is not', async () => {
    const site = createSite({ cooldownMs: 0 });
    const before = await issuer.sign(claims());
    expect((await site.ask('GET', '/v1/key', { token: before })).status).toBe(200);
    await issuer.rotate();
    expect((await site.ask('GET', '/v1/key', { token: await issuer.sign(claims()) })).status).toBe(200);
    expect((await site.ask('GET', '/v1/key', { token: before })).status).toBe(401);
  });

  it("with an unknown key makes the API request the issuer's keys at most once per 10 seconds, for any number of tokens", async () => {
    const { ask } = createSite();
    expect((await ask('GET', '/v1/key', { token: await issuer.sign(claims()) })).status).toBe(200);
    issuer.requests.length = 0;
    const tokens = await Promise.all(
      Array.from({ length: 60 }, (_, at) => issuer.sign(claims(), { kid: `unknown-${at}` })),
    );
    const answers = await Promise.all(tokens.map((token) => ask('GET', '/v1/key', { token })));
    expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([401]));
    expect(issuer.requests.length).toBeLessThanOrEqual(1);
  });

  it('counts as a failed authentication if it is invalid, and a verified one still works afterwards', async () => {
    const { ask } = createSite();
    const from = '192.0.2.1';
    const valid = await issuer.sign(claims());
    expect((await ask('GET', '/v1/key', { token: valid, from })).status).toBe(200);
    const invalid = await issuer.sign(claims({ aud: 'other' }));
    for (let failures = 0; failures < 10; failures += 1) {
      expect((await ask('GET', '/v1/key', { token: invalid, from })).status).toBe(401);
      expect(
        (await ask('POST', '/v1/session/renewal', { headers: { cookie: 'jobwire_session=x' }, from })).status,
      ).toBe(401);
    }
    issuer.requests.length = 0;
    expect((await ask('GET', '/v1/key', { token: invalid, from })).status).toBe(429);
    const renewal = { headers: { cookie: 'jobwire_session=x' }, from };
    expect((await ask('POST', '/v1/session/renewal', renewal)).status).toBe(429);
    expect(issuer.requests).toEqual([]);
    expect((await ask('GET', '/v1/key', { token: valid, from })).status).toBe(200);
  });

  it('is not accepted where sign-in is not configured', async () => {
    const table = createMemoryTable();
    const api = createApi({
      ...{ table, log: {} as never, regions: ['us'], now: Date.now },
      ...apiParts(table, BOOTSTRAP, Date.now, ['us']),
    });
    const headers = { authorization: `Bearer ${await issuer.sign(claims())}` };
    expect((await api.request('/v1/key', { headers })).status).toBe(401);
    expect(await (await api.request('/v1/sign-in')).json()).toEqual({ issuer: null });
    const renewal = { method: 'POST', headers: { cookie: 'jobwire_session=x' } };
    expect((await api.request('/v1/session/renewal', renewal)).status).toBe(404);
  });
});

describe('a renewal', () => {
  it.each(['invalid_grant', 'interaction_required', 'login_required', 'consent_required'])(
    'ends the session if the issuer responds with %s, because the user must sign in again',
    async (error) => {
      const settings = {
        issuer: issuer.url,
        clientId: issuer.clientId,
        groups: { admins: { role: 'admin' } },
      };
      const signIn = createSignIn({
        settings: SignInSettings.parse(settings),
        now: Date.now,
        fetch: async (url, init) =>
          init?.method === 'POST' ? Response.json({ error }, { status: 400 }) : fetch(url, init),
      });
      expect(await signIn.renew('a-refresh-token')).toBeUndefined();
    },
  );
});

describe('while the issuer does not respond', () => {
  it('keys work, tokens are rejected with 503, and not every request is sent to the issuer', async () => {
    const { ask, faults } = createSite();
    const token = await issuer.sign(claims());
    issuer.down = true;
    issuer.requests.length = 0;
    for (let request = 0; request < 5; request += 1) {
      const answer = await ask('GET', '/v1/key', { token });
      expect(answer.status).toBe(503);
      expect(answer.body.detail).toBe('The identity provider does not respond. Retry later.');
    }
    expect(issuer.requests.length).toBe(1);
    expect(faults.map(String).join()).toContain(`${issuer.url} responds with status 503`);
    expect((await ask('GET', '/v1/sign-in')).status).toBe(503);
    expect((await ask('GET', '/v1/key', { token: BOOTSTRAP })).status).toBe(200);
  });

  it('tokens are accepted with keys that were read before, and a session cannot be renewed until it responds', async () => {
    const { ask, signInAs } = createSite();
    const session = await signInAs('ann');
    issuer.down = true;
    expect((await ask('GET', '/v1/key', { token: session.body.token })).status).toBe(200);
    const renewal = () => ask('POST', '/v1/session/renewal', { headers: toCookie(session) });
    expect((await renewal()).status).toBe(503);
    issuer.down = false;
    expect((await renewal()).status).toBe(200);
  });

  it('ends the session of the browser at sign-out nevertheless', async () => {
    const { ask, signInAs } = createSite();
    const session = await signInAs('ann');
    issuer.down = true;
    const ended = await ask('DELETE', '/v1/session', { headers: toCookie(session) });
    expect([ended.status, toCookie(ended)]).toEqual([204, { cookie: 'jobwire_session=' }]);
  });
});
