/**
 * The ordering API from a client's view: a sandbox over HTTP. Every response is compared with the declaration of its operation.
 * An undeclared status, an additional field or one of the wrong type fails the test.
 *
 *     const { us } = await startService();
 *     const { status, json } = await us.get('/Jobs/active?pageSize=5');
 */
import { expect } from 'vitest';
import { listAnswers, type Operation } from '../../sandbox/http/operation.ts';
import { operations } from '../../sandbox/operations.ts';
import type { Sandbox, SandboxOptions } from '../../sandbox/server.ts';
import type { Role } from '../../sandbox/world/records.ts';
import { createWorld, type SandboxAccount, type World } from '../../sandbox/world/world.ts';
import { startSandbox } from './jobwire.ts';

/** Initial time of the clock: a Friday, 9.14 in Denver. */
export const START = Date.parse('2026-11-20T16:14:00Z');

/** A response with its complete body. */
export interface Reply<T = unknown> {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** Undefined if the body is not JSON. The tests check its content. */
  readonly json: T;
}

/** A client with the credentials of one account and role. */
export interface Client {
  readonly account: SandboxAccount;
  readonly token: string;
  // biome-ignore lint/suspicious/noExplicitAny: the response conforms to its schema; each test reads other fields.
  get<T = any>(path: string, headers?: Record<string, string>): Promise<Reply<T>>;
  // biome-ignore lint/suspicious/noExplicitAny: as above.
  post<T = any>(path: string, body?: unknown, headers?: Record<string, string>): Promise<Reply<T>>;
  // biome-ignore lint/suspicious/noExplicitAny: as above.
  patch<T = any>(path: string, body: unknown, headers?: Record<string, string>): Promise<Reply<T>>;
  /** Sends any request. An empty `token`: without one. */
  ask(path: string, init?: RequestInit & { token?: string }): Promise<Reply>;
}

/** A running sandbox: an account `acme` in the US with an ordinary user, and a stopped clock. */
export interface Service {
  readonly sandbox: Sandbox;
  readonly world: World;
  /** Epoch ms. */
  readonly clock: { now: number };
  readonly acme: SandboxAccount;
  /** Client of acme's ordinary user. */
  readonly us: Client;
  /** Returns a client with credentials of a role, of acme or of another account. Creates missing credentials. */
  as(role: Role, account?: SandboxAccount): Promise<Client>;
}

/** Starts a sandbox, which ends with the test. */
export async function startService(options: Partial<SandboxOptions> = {}): Promise<Service> {
  const clock = { now: START };
  const world = options.world ?? createWorld({ now: () => clock.now });
  const acme = world.addAccount({ region: 'us', name: 'acme', users: [{}, {}] });
  const { sandbox } = await startSandbox({ tokenLifetimeSeconds: 1e9, ...options, world });
  const as = (role: Role, account = acme) => connectClient(sandbox, account, role);
  return { sandbox, world, clock, acme, us: await as('user'), as };
}

/** Requests a token for credentials of an account's region. */
export async function fetchToken(
  sandbox: Sandbox,
  { region }: SandboxAccount,
  clientId: string,
  clientSecret: string,
): Promise<string> {
  const answer = await fetch(`${sandbox.authUrl(region)}/realms/${region}/protocol/openid-connect/token`, {
    method: 'POST',
    body: new URLSearchParams({
      grant_type: 'client_credentials',
      client_id: clientId,
      client_secret: clientSecret,
    }),
  });
  expect(answer.status).toBe(200);
  return ((await answer.json()) as { access_token: string }).access_token;
}

/** Creates a client of a sandbox with credentials of a role of an account. Creates missing credentials. */
export async function connectClient(
  sandbox: Sandbox,
  account: SandboxAccount,
  role: Role = 'user',
): Promise<Client> {
  const { clientId, clientSecret } =
    account.credentials.find((one) => one.role === role) ?? account.addCredentials({ role });
  const ownToken = await fetchToken(sandbox, account, clientId, clientSecret);
  const ask = async <T>(path: string, init: RequestInit & { token?: string } = {}): Promise<Reply<T>> => {
    const { token = ownToken, ...rest } = init;
    const headers = new Headers(rest.headers);
    if (token !== '') headers.set('authorization', `Bearer ${token}`);
    const answer = await fetch(sandbox.apiUrl(account.region) + path, { ...rest, headers });
    const text = await answer.text();
    const json = text === '' ? undefined : JSON.parse(text);
    check(rest.method ?? 'GET', path, answer.status, json);
    return { status: answer.status, headers: answer.headers, text, json };
  };
  const send =
    (method: string) =>
    <T>(path: string, body?: unknown, headers: Record<string, string> = {}) =>
      ask<T>(path, {
        method,
        headers: { ...(body !== undefined && { 'content-type': 'application/json' }), ...headers },
        ...(body !== undefined && { body: JSON.stringify(body) }),
      });
  return {
    account,
    token: ownToken,
    get: (path, headers) => ask(path, { ...(headers && { headers }) }),
    post: send('POST'),
    patch: send('PATCH'),
    ask,
  };
}

/** Compares a response with the declaration of its operation. */
function check(method: string, path: string, status: number, body: unknown): void {
  const spec = getOperation(method, path);
  // An unknown operation returns 404 or 401.
  if (!spec) return;
  const declared = listAnswers(spec)[status];
  if (!declared)
    throw new Error(
      `${method} ${path} answered ${status}, which it does not declare: ${JSON.stringify(body)}`,
    );
  if (!declared.schema) {
    expect(body, `${method} ${path} ${status} has no body`).toBeUndefined();
    return;
  }
  const parsed = declared.schema.safeParse(body);
  if (!parsed.success) {
    throw new Error(
      `${method} ${path} answered ${status} with a body that it does not declare: ${parsed.error.message}`,
    );
  }
}

function getOperation(method: string, path: string): Operation | undefined {
  const [route = ''] = path.split('?');
  return operations
    .filter((spec) => spec.method === method.toLowerCase())
    .toSorted((one, other) => one.path.split('{').length - other.path.split('{').length)
    .find((spec) => new RegExp(`^${spec.path.replace(/\{\w+\}/g, '[^/]+')}$`).test(route));
}
