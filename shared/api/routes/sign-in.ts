/**
 * Sign-in routes of the dashboard. The refresh token is in a cookie that no script can read and that is sent to these routes only. The
 * ID token is in the response, and the page keeps it in memory.
 */
import type { Context } from 'hono';
import { deleteCookie, getCookie, setCookie } from 'hono/cookie';
import * as z from 'zod';
import { textOrNull } from '../../representation.ts';
import { tooManyFailures } from '../access.ts';
import type { ApiEnv } from '../env.ts';
import { problem } from '../problems.ts';
import { createRouteFactory, type Route, type RouteParts } from '../route.ts';
import type { SignIn, Tokens } from '../sign-in.ts';

const route = createRouteFactory('Sign-in');

/** Name of the cookie with the refresh token. */
export const SESSION_COOKIE = 'jobwire_session';
const COOKIE = { path: '/v1/session', httpOnly: true, secure: true, sameSite: 'Strict' } as const;
/** Browsers ignore longer cookies. The session then ends with its ID token. */
const MAX_COOKIE = 3_900;

const TEXT_RULE = 'must be a text of 1 to 4000 characters';
const text = (about: string) => z.string(TEXT_RULE).min(1, TEXT_RULE).max(4000, TEXT_RULE).describe(about);

const NewSession = z
  .strictObject({
    code: text('Authorization code.'),
    codeVerifier: text('Verifier of the code challenge (PKCE, S256).'),
    redirectUri: text('Redirect URI of the authorization request.'),
    nonce: text('Nonce of the authorization request.'),
  })
  .meta({ id: 'NewSession' });

const SessionRecord = z
  .object({
    token: z.string().describe('ID token. Send it in the header `Authorization: Bearer …`.'),
    expiresInSeconds: z.int().describe('Time until the token expires.'),
  })
  .meta({ id: 'Session' });

const answer = {
  description: 'The session, and a cookie to renew it.',
  schema: SessionRecord,
} as const;
const problems = ['not-found', 'forbidden', 'unauthorized', 'too-many-failed-authentications'] as const;

/** All sign-in routes. */
export const signInRoutes: readonly Route[] = [
  route(
    {
      path: '/v1/sign-in',
      id: 'getSignIn',
      summary: 'Get the issuer at which users sign in',
      role: null,
      answer: {
        description: 'The issuer, or `null` if only API keys are accepted.',
        schema: z
          .object({
            issuer: z
              .object({
                authorizationEndpoint: z.string().describe('URL to which the page sends the user.'),
                endSessionEndpoint: textOrNull.describe(
                  'URL at which the user signs out. `null`: the issuer has none.',
                ),
                clientId: z.string().describe('Id of the client at the issuer.'),
                scope: z.string().describe('Requested scopes, separated by spaces.'),
              })
              .nullable()
              .describe('Issuer of OpenID Connect. `null`: users cannot sign in.'),
          })
          .meta({ id: 'SignIn' }),
      },
    },
    async (_, { signIn }) => ({ body: { issuer: signIn ? await signIn.describe() : null } }),
  ),
  route(
    {
      method: 'post',
      path: '/v1/session',
      id: 'createSession',
      summary: 'Begin a session with an authorization code',
      description:
        'Exchanges the code at the issuer (authorization code flow with PKCE). Only pages of the same origin can call this.',
      role: null,
      body: NewSession,
      answer,
      problems,
    },
    ({ c, body }, parts) => respond(c, parts, (signIn) => signIn.exchange(body)),
  ),
  route(
    {
      method: 'post',
      path: '/v1/session/renewal',
      id: 'renewSession',
      summary: 'Renew the session',
      description: 'Returns a new ID token.',
      role: null,
      answer,
      problems,
    },
    async ({ c }, parts) => {
      const cookie = getCookie(c, SESSION_COOKIE);
      if (cookie === undefined) return ended(c);
      return respond(c, parts, (signIn) => signIn.renew(cookie));
    },
  ),
  route(
    {
      method: 'delete',
      path: '/v1/session',
      id: 'deleteSession',
      summary: 'End the session',
      description: 'The ID token remains valid until it expires.',
      role: null,
      answer: { status: 204, description: 'The session has ended.' },
      problems: ['forbidden'],
    },
    async ({ c }, { signIn, report }) => {
      if (isForeignPage(c)) return foreignPage(c, 'sessions');
      const cookie = getCookie(c, SESSION_COOKIE);
      deleteCookie(c, SESSION_COOKIE, COOKIE);
      // Without the cookie, the browser has no session, whatever the issuer responds.
      if (cookie !== undefined) await signIn?.revoke(cookie).catch((cause: unknown) => report(c, cause));
      return { body: undefined };
    },
  ),
];

async function respond(
  c: Context<ApiEnv>,
  { signIn, failures }: RouteParts,
  request: (signIn: SignIn) => Promise<Tokens | undefined>,
) {
  if (!signIn) return problem(c, 'not-found', { detail: 'Users cannot sign in: signIn is not configured.' });
  if (isForeignPage(c)) return foreignPage(c, 'sessions');
  const address = c.env?.clientAddress;
  const limit = await failures.reached(address);
  if (limit) return tooManyFailures(c, limit);
  const tokens = await request(signIn);
  if (!tokens) {
    await failures.add(address);
    deleteCookie(c, SESSION_COOKIE, COOKIE);
    return ended(c);
  }
  const { idToken: token, refreshToken = '', expiresInSeconds } = tokens;
  if (refreshToken === '' || encodeURIComponent(refreshToken).length > MAX_COOKIE)
    deleteCookie(c, SESSION_COOKIE, COOKIE);
  else setCookie(c, SESSION_COOKIE, refreshToken, COOKIE);
  return { body: { token, expiresInSeconds } };
}

const ended = (c: Context<ApiEnv>) =>
  problem(c, 'unauthorized', {
    detail: 'There is no session, or it has ended. Sign in again.',
    headers: { 'www-authenticate': 'Bearer realm="jobwire"' },
  });

/** Returns whether a page of another origin sent the request. Browsers say so; programs do not. */
export const isForeignPage = (c: Context<ApiEnv>): boolean =>
  (c.req.header('sec-fetch-site') ?? 'same-origin') !== 'same-origin';

/** Returns the problem of such a request. `what`: what only pages of the same origin can use. */
export const foreignPage = (c: Context<ApiEnv>, what: string) =>
  problem(c, 'forbidden', { detail: `Only pages of the same origin can use ${what}.` });
