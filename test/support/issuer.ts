/** A real OpenID Connect server on loopback, with a login form. Each user signs in with a name and no password. */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { type CryptoKey, exportJWK, generateKeyPair, type JWTPayload, SignJWT } from 'jose';
import Provider from 'oidc-provider';

/** A user: claims of the ID token. */
export type IssuerUser = Readonly<Record<string, unknown>>;

/** A running OpenID Connect server. */
export interface Issuer {
  readonly url: string;
  /** Client ids: of Jobwire, and of another program. */
  readonly clientId: 'jobwire';
  readonly otherClientId: 'other';
  /** Paths of the requests so far. */
  readonly requests: string[];
  /** Whether requests are answered with status 503. */
  down: boolean;
  /** Signs claims with the current key, or with another header or key. */
  sign(claims: JWTPayload, header?: { readonly alg?: string; readonly kid?: string }): Promise<string>;
  /** Replaces the key. */
  rotate(): Promise<void>;
  /** Signs a user in as a browser does. Returns the parameters of the redirect to the client. */
  signIn(user: string, authorization: URL): Promise<URLSearchParams>;
  stop(): Promise<void>;
}

interface Options {
  /** Claims by name of the user. */
  readonly users: Readonly<Record<string, IssuerUser>>;
  /** Origins of the clients' pages. */
  readonly origins: readonly string[];
  /** Lifetime of ID tokens (s). */
  readonly idTokenSeconds?: number;
}

const FORM = `<!doctype html><html lang="en"><title>Login</title>
<link rel="icon" href="data:,"><h1>Login</h1>
<form method="post"><label>User <input name="user"></label><button>Log in</button></form></html>`;

/** Starts the server. */
export async function startIssuer({ users, origins, idTokenSeconds = 300 }: Options): Promise<Issuer> {
  let serve: (request: IncomingMessage, response: ServerResponse) => void = () => {};
  const server = createServer((request, response) => {
    const { pathname } = new URL(request.url ?? '/', 'http://localhost');
    issuer.requests.push(pathname);
    if (issuer.down) response.writeHead(503).end();
    else serve(request, response);
  });
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  let current: { readonly key: CryptoKey; readonly kid: string };

  const issuer: Issuer = {
    url,
    clientId: 'jobwire',
    otherClientId: 'other',
    requests: [],
    down: false,
    sign: (claims, { alg = 'RS256', kid = current.kid } = {}) =>
      new SignJWT(claims).setProtectedHeader({ alg, kid }).sign(current.key),
    async rotate() {
      const { privateKey } = await generateKeyPair('RS256', { extractable: true });
      const kid = `key-${Math.random()}`;
      current = { key: privateKey, kid };
      const provider = createProvider({ ...(await exportJWK(privateKey)), kid, alg: 'RS256', use: 'sig' });
      const handle = provider.callback();
      serve = (request, response) => {
        if (request.url?.startsWith('/login/')) void login(provider, request, response);
        else handle(request, response);
      };
    },
    async signIn(user, authorization) {
      const cookies = new Map<string, string>();
      let [at, body]: [URL, string | undefined] = [authorization, undefined];
      for (;;) {
        const response: Response = await fetch(at, {
          method: body === undefined ? 'GET' : 'POST',
          redirect: 'manual',
          headers: { cookie: [...cookies].map((pair) => pair.join('=')).join('; ') },
          ...(body === undefined ? {} : { body: new URLSearchParams(body) }),
        });
        for (const cookie of response.headers.getSetCookie()) {
          const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(cookie) ?? [];
          cookies.set(name, value);
        }
        const location = response.headers.get('location');
        if (location === null) {
          if (body !== undefined || response.status !== 200) throw new Error(await response.text());
          body = `user=${user}`;
          continue;
        }
        [at, body] = [new URL(location, at), undefined];
        if (at.origin !== url) return at.searchParams;
      }
    },
    stop: () =>
      new Promise((done) => {
        server.close(() => done());
        server.closeAllConnections();
      }),
  };

  function createProvider(jwk: object): Provider {
    const client = {
      token_endpoint_auth_method: 'none',
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
      redirect_uris: origins.map((origin) => `${origin}/sign-in`),
      post_logout_redirect_uris: origins.map((origin) => `${origin}/`),
    };
    const provider = new Provider(url, {
      jwks: { keys: [jwk] },
      clients: [
        { ...client, client_id: 'jobwire' },
        { ...client, client_id: 'other' },
      ],
      claims: { openid: ['sub', 'groups', 'name', 'email'] },
      conformIdTokenClaims: false,
      cookies: { keys: ['a-key-of-the-tests'] },
      features: {
        devInteractions: { enabled: false },
        revocation: { enabled: true, allowedPolicy: () => true },
        rpInitiatedLogout: {
          enabled: true,
          logoutSource(context: { body: string }, form: string) {
            context.body = `<!doctype html><html lang="en"><title>Log out</title><link rel="icon" href="data:,">${form}
<button form="op.logoutForm" name="logout" value="yes">Log out</button></html>`;
          },
        },
      },
      findAccount: (_: unknown, id: string) => ({
        accountId: id,
        claims: () => ({ sub: id, ...users[id] }),
      }),
      interactions: { url: (_: unknown, { uid }: { uid: string }) => `/login/${uid}` },
      issueRefreshToken: () => true,
      async loadExistingGrant(context: {
        oidc: { client: { clientId: string }; session: { accountId: string } };
      }) {
        const { client, session } = context.oidc;
        const grant = new provider.Grant({ clientId: client.clientId, accountId: session.accountId });
        grant.addOIDCScope('openid email profile');
        await grant.save();
        return grant;
      },
      scopes: ['openid', 'email', 'profile'],
      ttl: {
        AccessToken: 300,
        AuthorizationCode: 60,
        Grant: 3600,
        IdToken: idTokenSeconds,
        Interaction: 600,
        RefreshToken: 3600,
        Session: 3600,
      },
    });
    return provider;
  }

  async function login(provider: Provider, request: IncomingMessage, response: ServerResponse) {
    if (request.method !== 'POST') {
      response.writeHead(200, { 'content-type': 'text/html; charset=utf-8' }).end(FORM);
      return;
    }
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const user = new URLSearchParams(Buffer.concat(chunks).toString()).get('user');
    await provider.interactionFinished(request, response, { login: { accountId: user } });
  }

  await issuer.rotate();
  return issuer;
}
