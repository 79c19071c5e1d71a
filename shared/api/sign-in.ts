/**
 * Sign-in of users with OpenID Connect. The dashboard sends users to the issuer (authorization code flow with PKCE, public client). The
 * API exchanges the code, and accepts the ID token as a bearer token, like API keys. Groups in the token determine role and accounts.
 *
 * Tokens are verified with the published keys of the issuer: signature with an asymmetric algorithm, `iss`, `aud`, `azp`, `exp`, `nbf`.
 * Keys are cached for 10 minutes, and requested again for an unknown key id, at most once in {@link COOLDOWN_MS}.
 *
 * Not guaranteed: that a removed user or group loses access immediately. An ID token is valid until it expires.
 */
import { hash } from 'node:crypto';
import { createRemoteJWKSet, errors, customFetch as fetchKeys, type JWTPayload, jwtVerify } from 'jose';
import * as oauth from 'oauth4webapi';
import { ROLES } from './key-input.ts';
import type { Caller, UserVerifier } from './keys.ts';
import { isSafeUrl, type SignInSettings } from './sign-in-input.ts';

/** Accepted signatures. `none` and those with a shared secret are not. */
const ALGORITHMS = ['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512', 'EdDSA'];
/** Accepted difference of clocks (s). */
const CLOCK_TOLERANCE_SECONDS = 30;
/** Minimum interval between two requests of the issuer's keys because of unknown key ids. */
const COOLDOWN_MS = 10_000;
/** Time after which the discovery document is requested again. */
const DISCOVERY_MS = 3_600_000;
/** Time after a failed request in which the issuer is not asked again for its document or keys. */
const PAUSE_MS = 2_000;
const TIMEOUT_MS = 5_000;
/** Errors of the token endpoint after which the user must sign in again, such as with a second factor. */
const REJECTIONS: ReadonlySet<string> = new Set([
  'invalid_grant',
  'interaction_required',
  'login_required',
  'consent_required',
]);
/** Maximum number of remembered tokens. */
const MAX_KNOWN = 1_000;
const MAX_NAME = 200;

/** The issuer cannot be used. The message has no data of users. */
export class IssuerError extends Error {
  override readonly name = 'IssuerError';
}

/** The user is signed in at the issuer, but in no group with access. */
export class NoAccessError extends Error {
  override readonly name = 'NoAccessError';
}

/** Data with which a page sends a user to the issuer. */
export interface Issuer {
  readonly authorizationEndpoint: string;
  /** Where a user signs out. `null` if the issuer has no such page. */
  readonly endSessionEndpoint: string | null;
  readonly clientId: string;
  /** Requested scopes, separated by spaces. */
  readonly scope: string;
}

/** An authorization code, and what its request began with. */
export interface CodeExchange {
  readonly code: string;
  readonly codeVerifier: string;
  readonly redirectUri: string;
  readonly nonce: string;
}

/** Tokens of a user. */
export interface Tokens {
  /** ID token, for `Authorization: Bearer …`. */
  readonly idToken: string;
  /** Time until it expires. */
  readonly expiresInSeconds: number;
  /** Absent if the issuer returned none. */
  readonly refreshToken: string | undefined;
}

/** Sign-in of users. All methods throw {@link IssuerError} if the issuer does not respond as specified. */
export interface SignIn extends UserVerifier {
  /** Reads the issuer's discovery document. */
  describe(): Promise<Issuer>;
  /** Reads discovery document and keys. Resolves to the number of keys. */
  check(): Promise<number>;
  /** Exchanges a code. `undefined` if the issuer rejects it. Throws {@link NoAccessError}. */
  exchange(code: CodeExchange): Promise<Tokens | undefined>;
  /** Gets new tokens. `undefined` if the issuer rejects the refresh token. Throws {@link NoAccessError}. */
  renew(refreshToken: string): Promise<Tokens | undefined>;
  /** Revokes a refresh token, if the issuer supports it. */
  revoke(refreshToken: string): Promise<void>;
}

/** Dependencies of the sign-in. */
export interface SignInDeps {
  readonly settings: SignInSettings;
  /** Epoch ms. */
  readonly now: () => number;
  readonly fetch?: typeof fetch;
  readonly cooldownMs?: number;
}

type Keys = ReturnType<typeof createRemoteJWKSet>;
interface Found {
  readonly server: oauth.AuthorizationServer;
  readonly keys: Keys;
  readonly readAt: number;
}

/** Creates the sign-in. Requests nothing until it is used. */
export function createSignIn(deps: SignInDeps): SignIn {
  const { settings, now, fetch: send = fetch, cooldownMs = COOLDOWN_MS } = deps;
  const { issuer, clientId } = settings;
  const client: oauth.Client = { client_id: clientId, [oauth.clockTolerance]: CLOCK_TOLERANCE_SECONDS };
  const known = new Set<string>();
  let failedAt = Number.NEGATIVE_INFINITY;
  let found: Found | undefined;
  let finding: Promise<Found> | undefined;

  /** Sends a request. After a failure, documents are not requested again for a moment. */
  const request = async (url: string, init: RequestInit): Promise<Response> => {
    const isDocument = init.method === 'GET';
    if (isDocument && now() < failedAt + PAUSE_MS) throw new IssuerError(`${issuer} does not respond.`);
    try {
      const response = await send(url, { ...init, signal: AbortSignal.timeout(TIMEOUT_MS) });
      if (response.status < 500 && (response.ok || !isDocument)) return response;
      throw new IssuerError(`${issuer} responds with status ${response.status}.`);
    } catch (cause) {
      if (isDocument) failedAt = now();
      throw cause instanceof IssuerError ? cause : new IssuerError(`${issuer} cannot be reached.`);
    }
  };
  const options = { [oauth.customFetch]: request, [oauth.allowInsecureRequests]: issuer.startsWith('http:') };

  async function discover(): Promise<Found> {
    if (found && now() < found.readAt + DISCOVERY_MS) return found;
    finding ??= read().finally(() => {
      finding = undefined;
    });
    try {
      found = await finding;
    } catch (cause) {
      // An old document is better than none.
      if (!found) throw cause;
    }
    return found;
  }

  async function read(): Promise<Found> {
    const url = new URL(issuer);
    const answer = await guard(() => oauth.discoveryRequest(url, options));
    const server = await guard(() => oauth.processDiscoveryResponse(url, answer));
    for (const name of ['authorization_endpoint', 'token_endpoint', 'jwks_uri'] as const) {
      const endpoint = server[name];
      if (endpoint === undefined || !isSafeUrl(endpoint)) {
        throw new IssuerError(`The discovery document of ${issuer} has no valid ${name}.`);
      }
    }
    // The keys stay while they have the same address, with the time of their last request.
    const { jwks_uri: jwks } = server;
    const keys = found && found.server.jwks_uri === jwks ? found.keys : createKeys(new URL(jwks ?? ''));
    return { server, keys, readAt: now() };
  }

  function createKeys(url: URL): Keys {
    return createRemoteJWKSet(url, { cooldownDuration: cooldownMs, [fetchKeys]: request });
  }

  /** Converts errors of the protocol. Their texts may contain what the issuer says about a user. */
  async function guard<T>(action: () => Promise<T>): Promise<T> {
    try {
      return await action();
    } catch (cause) {
      if (cause instanceof IssuerError) throw cause;
      const code = cause instanceof oauth.OperationProcessingError ? ` (${cause.code})` : '';
      throw new IssuerError(`${issuer} does not respond as OpenID Connect requires${code}.`);
    }
  }

  /** Verifies an ID token. `undefined` if it is invalid. */
  async function readToken(token: string): Promise<JWTPayload | undefined> {
    const { server, keys } = await discover();
    try {
      const { payload } = await jwtVerify(token, keys, {
        issuer: server.issuer,
        audience: clientId,
        algorithms: ALGORITHMS,
        clockTolerance: CLOCK_TOLERANCE_SECONDS,
        requiredClaims: ['exp', 'iat', 'sub'],
        currentDate: new Date(now()),
      });
      const { aud, azp } = payload;
      const isOwn = azp === undefined ? !Array.isArray(aud) || aud.length === 1 : azp === clientId;
      return isOwn ? payload : undefined;
    } catch (cause) {
      if (cause instanceof IssuerError) throw cause;
      if (
        cause instanceof errors.JWKSTimeout ||
        cause instanceof errors.JWKSInvalid ||
        !(cause instanceof errors.JOSEError)
      ) {
        throw new IssuerError(`The keys of ${issuer} cannot be read.`);
      }
      return undefined;
    }
  }

  /** Returns the caller of a verified token. Throws {@link NoAccessError}. */
  function admit(token: string, claims: JWTPayload): Caller {
    const caller = toCaller(settings, claims);
    if (!caller) throw new NoAccessError('The user is in no group with access.');
    known.add(digest(token));
    const [oldest] = known;
    if (known.size > MAX_KNOWN && oldest !== undefined) known.delete(oldest);
    return caller;
  }

  /** Requests tokens, and verifies them as in a request of a page. */
  async function requestTokens(
    grant: string,
    parameters: Readonly<Record<string, string>>,
    nonce?: string,
  ): Promise<Tokens | undefined> {
    const { server } = await discover();
    let idToken: string | undefined;
    let refreshToken: string | undefined;
    try {
      const answer = await oauth.genericTokenEndpointRequest(
        server,
        client,
        oauth.None(),
        grant,
        { ...parameters },
        options,
      );
      const tokens = await oauth.processGenericTokenEndpointResponse(server, client, answer);
      idToken = tokens.id_token;
      refreshToken = tokens.refresh_token;
    } catch (cause) {
      if (cause instanceof oauth.ResponseBodyError && REJECTIONS.has(cause.error)) return undefined;
      return guard(() => Promise.reject(cause));
    }
    // A renewal may return none: then the user signs in again.
    const claims = idToken === undefined ? undefined : await readToken(idToken);
    if (idToken === undefined || !claims || (nonce !== undefined && claims.nonce !== nonce)) return undefined;
    admit(idToken, claims);
    const expiresInSeconds = Math.max(0, Number(claims.exp) - Math.floor(now() / 1000));
    return { idToken, expiresInSeconds, refreshToken };
  }

  return {
    async verify(token) {
      const claims = await readToken(token);
      return claims && admit(token, claims);
    },
    isKnown: (token) => known.has(digest(token)),
    async describe() {
      const { server } = await discover();
      return {
        authorizationEndpoint: String(server.authorization_endpoint),
        endSessionEndpoint: server.end_session_endpoint ?? null,
        clientId,
        scope: settings.scopes.join(' '),
      };
    },
    async check() {
      const { keys } = await discover();
      await guard(() => keys.reload());
      return keys.jwks()?.keys.length ?? 0;
    },
    exchange: ({ code, codeVerifier, redirectUri, nonce }) =>
      requestTokens(
        'authorization_code',
        { code, code_verifier: codeVerifier, redirect_uri: redirectUri },
        nonce,
      ),
    async renew(refreshToken) {
      const tokens = await requestTokens('refresh_token', { refresh_token: refreshToken });
      return tokens && { ...tokens, refreshToken: tokens.refreshToken ?? refreshToken };
    },
    async revoke(refreshToken) {
      const { server } = await discover();
      if (server.revocation_endpoint === undefined) return;
      const answer = await guard(() =>
        oauth.revocationRequest(server, client, oauth.None(), refreshToken, options),
      );
      await guard(() => oauth.processRevocationResponse(answer));
    },
  };
}

/** Returns the caller of verified claims. `undefined` if no group has access. */
export function toCaller(settings: SignInSettings, claims: JWTPayload): Caller | undefined {
  const names = new Set(readGroups(claims, settings.groupsClaim));
  const grants = Object.entries(settings.groups).flatMap(([group, grant]) =>
    names.has(group) ? [grant] : [],
  );
  const role = ROLES.findLast((each) => grants.some((grant) => grant.role === each));
  if (role === undefined) return undefined;
  const accounts = grants.filter((grant) => grant.role === role).map((grant) => grant.accounts);
  const isForAll = accounts.includes(undefined);
  const subject = String(claims.sub);
  const name = [claims.email, claims.name, claims.preferred_username].find(
    (text) => typeof text === 'string' && text !== '',
  );
  const user = { subject, name: name === undefined ? null : String(name).slice(0, MAX_NAME) };
  return {
    // In logs: not the subject, because it may be an e-mail address.
    keyId: `user_${digest(`${claims.iss} ${subject}`).slice(0, 22)}`,
    name: user.name,
    role,
    accounts: isForAll ? null : [...new Set(accounts.flatMap((each) => each ?? []))].sort(),
    expiresAt: Number(claims.exp) * 1000,
    user,
    ...(typeof claims.email === 'string' && claims.email_verified !== false ? { email: claims.email } : {}),
  };
}

/** Returns the groups in a claim: by its name, or by its path. */
function readGroups(claims: JWTPayload, claim: string): readonly string[] {
  const byPath = () =>
    claim.split('.').reduce<unknown>((value, part) => {
      const record = Object(value) as Record<string, unknown>;
      return Object.hasOwn(record, part) ? record[part] : undefined;
    }, claims);
  const value = Object.hasOwn(claims, claim) ? claims[claim] : byPath();
  return [value].flat().filter((group) => typeof group === 'string');
}

const digest = (text: string): string => hash('sha256', text, 'base64url');
