/**
 * The session of a user who signed in at the issuer (OpenID Connect, authorization code flow with PKCE). The ID token is only in memory.
 * The API keeps the refresh token in a cookie that scripts cannot read.
 */
import { base64url } from 'jose';
import { ApiError, createClient, type ResponseData } from '../../client/index.ts';
import { localStore, sessionStore } from './storage.ts';

export type Issuer = NonNullable<ResponseData<'get', '/v1/sign-in'>['issuer']>;

/** Path to which the issuer returns the user. */
const CALLBACK = '/sign-in';
/** Session storage: an authorization request in progress. */
const PENDING = 'jobwire.sign-in';
/** Local storage: subject of the user whose session may be renewed. Tabs learn from it that their session has ended. */
const SIGNED_IN = 'jobwire.user';
/** Also the name of a lock: an issuer may end a session if one refresh token is used twice. */
const LOCK = 'jobwire.session';
/** A token is renewed this time before it expires, or after half its lifetime. */
const RENEW_BEFORE_SECONDS = 30;

const http = createClient({ url: location.origin, key: 'none', credentials: 'same-origin' });

/** The sign-in was not completed. */
export class SignInError extends Error {}

/** A session that renews its token. */
export interface UserSession {
  /** Returns a valid ID token. Throws the error of the renewal. */
  readonly token: () => Promise<string>;
  /** Called once when the session cannot be renewed, with its error, or another tab has ended or replaced it. */
  onEnd: (cause: unknown) => void;
  /** Ends the session, here and at the issuer. Resolves unless the page is left. */
  end(): Promise<void>;
}

/** Fetches the issuer. `null` if only API keys are accepted. */
export const fetchIssuer = async (): Promise<Issuer | null> => (await http.get('/v1/sign-in')).issuer;

/** Leaves the page for the issuer, which returns to it. `anew`: asks for the credentials even if the user is signed in there. */
export async function startSignIn(issuer: Issuer, { anew = false } = {}): Promise<void> {
  const [state, nonce, codeVerifier] = [createSecret(), createSecret(), createSecret()];
  const digest = await crypto.subtle.digest('SHA-256', new TextEncoder().encode(codeVerifier));
  const { pathname, search, hash } = location;
  const path = pathname === CALLBACK ? '/' : `${pathname}${search}${hash}`;
  sessionStore.setItem(PENDING, JSON.stringify({ state, nonce, codeVerifier, path }));
  leaveFor(issuer.authorizationEndpoint, {
    response_type: 'code',
    client_id: issuer.clientId,
    redirect_uri: `${location.origin}${CALLBACK}`,
    scope: issuer.scope,
    state,
    nonce,
    code_challenge: base64url.encode(new Uint8Array(digest)),
    code_challenge_method: 'S256',
    ...(anew ? { prompt: 'login' } : {}),
  });
}

/** Completes a sign-in, or resumes the session of the browser. `null` if there is none. Throws {@link SignInError}. */
export async function resumeUser(): Promise<UserSession | null> {
  if (location.pathname === CALLBACK) return completeSignIn();
  if (localStore.getItem(SIGNED_IN) === null) return null;
  try {
    return createSession(await renew());
  } catch (cause) {
    if (!(cause instanceof ApiError) || cause.status !== 401) throw cause;
    localStore.removeItem(SIGNED_IN);
    return null;
  }
}

async function completeSignIn(): Promise<UserSession> {
  const answer = new URLSearchParams(location.search);
  const pending = JSON.parse(sessionStore.getItem(PENDING) ?? 'null') as Record<string, string> | null;
  sessionStore.removeItem(PENDING);
  // The code must not stay in the history.
  history.replaceState(null, '', pending?.path ?? '/');
  const { state = '', nonce = '', codeVerifier = '' } = pending ?? {};
  if (!pending || answer.get('state') !== state) {
    throw new SignInError('This sign-in has expired, or was begun in another tab. Sign in again.');
  }
  const code = answer.get('code');
  if (code === null) {
    throw new SignInError(`The identity provider did not sign you in (${answer.get('error') ?? 'no code'}).`);
  }
  const redirectUri = `${location.origin}${CALLBACK}`;
  try {
    const session = await http.post('/v1/session', { body: { code, codeVerifier, redirectUri, nonce } });
    return createSession(session);
  } catch (cause) {
    if (cause instanceof ApiError && cause.status === 401) {
      throw new SignInError('The identity provider did not confirm the sign-in. Sign in again.');
    }
    throw cause;
  }
}

type Renewed = ResponseData<'post', '/v1/session'>;
const ENDED = 'Your session has ended in another tab. Sign in again.';
const OTHER_USER = 'Another user has signed in on this browser.';

const renew = (): Promise<Renewed> => navigator.locks.request(LOCK, () => http.post('/v1/session/renewal'));

function createSession(first: Renewed): UserSession {
  let { token } = first;
  const subject = readSubject(token);
  localStore.setItem(SIGNED_IN, subject);
  let renewAt = getRenewal(first);
  let renewing: Promise<string> | undefined;
  const stopping = new AbortController();

  async function renewToken(): Promise<string> {
    try {
      const next = await renew();
      if (readSubject(next.token) !== subject) throw new SignInError(OTHER_USER);
      token = next.token;
      renewAt = getRenewal(next);
      return token;
    } catch (cause) {
      const hasEnded = cause instanceof ApiError && [401, 403].includes(cause.status);
      if (hasEnded || cause instanceof SignInError) stop(cause);
      throw cause;
    }
  }

  function stop(cause: unknown): void {
    if (stopping.signal.aborted) return;
    stopping.abort();
    // Not the session of another user.
    if (localStore.getItem(SIGNED_IN) === subject) localStore.removeItem(SIGNED_IN);
    session.onEnd(cause);
  }

  const session: UserSession = {
    async token() {
      if (Date.now() < renewAt) return token;
      renewing ??= renewToken().finally(() => {
        renewing = undefined;
      });
      return renewing;
    },
    onEnd: () => {},
    async end() {
      stopping.abort();
      localStore.removeItem(SIGNED_IN);
      const issuer = await fetchIssuer().catch(() => null);
      await http.delete('/v1/session').catch(() => {});
      if (issuer?.endSessionEndpoint) {
        const home = `${location.origin}/`;
        leaveFor(issuer.endSessionEndpoint, {
          client_id: issuer.clientId,
          id_token_hint: token,
          post_logout_redirect_uri: home,
          // The name at Amazon Cognito.
          logout_uri: home,
        });
      }
    },
  };
  window.addEventListener(
    'storage',
    ({ key, newValue }) => {
      if (key === SIGNED_IN && newValue !== subject)
        stop(new SignInError(newValue === null ? ENDED : OTHER_USER));
    },
    { signal: stopping.signal },
  );
  return session;
}

/** Returns the claim `sub` of an ID token. Only for comparisons: the API has verified the token. */
function readSubject(token: string): string {
  const [, payload = ''] = token.split('.');
  return String(JSON.parse(new TextDecoder().decode(base64url.decode(payload))).sub);
}

function getRenewal({ expiresInSeconds }: Renewed): number {
  return Date.now() + Math.max(expiresInSeconds - RENEW_BEFORE_SECONDS, expiresInSeconds / 2) * 1000;
}

function leaveFor(address: string, parameters: Readonly<Record<string, string>>): void {
  const url = new URL(address);
  for (const [name, value] of Object.entries(parameters)) url.searchParams.set(name, value);
  location.assign(url);
}

const createSecret = (): string => base64url.encode(crypto.getRandomValues(new Uint8Array(32)));
