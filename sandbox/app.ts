// One region of the ordering API over HTTP: its token endpoint, authorization, and content negotiation.

import { type Context, Hono } from 'hono';
import { parseAccept } from 'hono/utils/accept';
import type * as z from 'zod';
import { applyFault, type PageDrift } from './http/faults.ts';
import type { Operation } from './http/operation.ts';
import {
  ALREADY_SENT,
  answerMissing,
  answerUnexpected,
  type HttpResponse,
  json,
  problem,
  readBody,
  requestPath,
  type SandboxEnv,
  send,
  TOO_LARGE,
} from './http/responses.ts';
import { hasRight } from './http/roles.ts';
import type { Holder } from './http/tokens.ts';
import { findView, type OperationName, type RequestInfo } from './http/traffic.ts';
import { formatPath } from './http/validation-messages.ts';
import { operations } from './operations.ts';
import type { Service } from './service.ts';
import type { RegionCode } from './world/regions.ts';
import type { SandboxAccount } from './world/world.ts';

/*
 * Where the contract is silent, the sandbox chose:
 *
 * - Without a valid token, every path below `/<region>/api` except the OpenAPI document results in 401, even an unknown
 *   one. Paths are case-sensitive.
 * - A body of more than 1 MiB results in 413, also at the token endpoint and at the control panel.
 * - By default, requests act as the first user of the account.
 * - If the token has expired, the `detail` of the 401 says so. All other invalid tokens result in one and the same `detail`.
 * - The token endpoint responds to a wrong client id or secret with 401 `invalid_client`, to another grant type with
 *   400 `unsupported_grant_type`, to an unknown realm with 404, and to other errors with 400 `invalid_request`.
 */

/** Creates the app of one region, below its code: API below `/api`, token endpoint below `/auth`. */
export function createRegionApp(service: Service, region: RegionCode): Hono<SandboxEnv> {
  const { world, tokens, faults, requests, scheduler, freedom } = service;
  const app: Hono<SandboxEnv> = new Hono<SandboxEnv>().basePath(`/${region}`);
  app.onError(answerUnexpected);
  app.notFound(answerMissing);

  const serve = async (
    c: Context<SandboxEnv>,
    operation: OperationName,
    account: SandboxAccount | undefined,
    answer: () => HttpResponse,
  ): Promise<Response> => {
    const instance = requestPath(c);
    const { path } = c.req;
    const jobNumber = Number(c.req.param('jobNumber'));
    const query = c.req.query();
    const info: RequestInfo = {
      region,
      operation,
      account,
      method: c.req.method,
      path: path.startsWith(`/${region}/`) ? path.slice(region.length + 1) : path,
      query,
      view: findView(operation, query),
      jobNumber: Number.isNaN(jobNumber) ? undefined : jobNumber,
    };
    const entry = requests.begin(info, world.now());
    let sent: HttpResponse | null = null;
    try {
      scheduler.advanceTo(world.now());
      await service.onRequest?.(info);
      const rule = faults.take(
        info,
        (listed) => operation === 'activeJobs' && jobsIn(answer()).includes(listed),
      );
      if (rule) {
        entry.fault = rule.id;
        const revokeTokens = () => tokens.revoke({ region, ...(account && { account: account.name }) });
        const drift = (how: PageDrift) => {
          for (const inserted of account ? scheduler.drift(account, how) : []) {
            if (account) service.ordered?.(account, inserted);
          }
        };
        const outgoing = c.env?.outgoing;
        sent = await applyFault(rule.fault, { info, instance, answer, outgoing, revokeTokens, drift });
      } else {
        sent = answer();
      }
    } finally {
      requests.end(entry, sent?.status ?? null);
    }
    if (sent && world.clockSkewMs !== 0) {
      const date = new Date(world.now() + world.clockSkewMs).toUTCString();
      sent = { ...sent, headers: { ...sent.headers, date } };
    }
    return sent ? send(c, sent) : ALREADY_SENT;
  };

  for (const spec of ordered) {
    app.on(spec.method.toUpperCase(), `/api${spec.path.replace(/\{(\w+)\}/g, ':$1')}`, async (c) => {
      const token = bearerToken(c);
      // For hooks and rules; checked again later, because they may have revoked the token.
      const account = tokens.holder(region, token)?.account;
      const body = spec.body && account ? await readBody(c) : '';
      return serve(c, spec.name, account, () => {
        const holder = tokens.holder(region, token);
        return holder ? toCall(spec, holder, c, body) : unauthorized(c, token);
      });
    });
  }
  // The OpenAPI document needs no token; rules and hooks ignore it.
  app.get('/api/openapi.json', (c) => sendOpenApiDocument(c, region));
  app.all('/api/*', (c) => {
    const token = bearerToken(c);
    return serve(c, 'unknown', tokens.holder(region, token)?.account, () =>
      tokens.holder(region, token)
        ? problem(404, 'The resource does not exist.', requestPath(c))
        : unauthorized(c, token),
    );
  });

  app.post('/auth/realms/:realm/protocol/openid-connect/token', async (c) => {
    const isForm = /^application\/x-www-form-urlencoded\b/i.test(c.req.header('content-type') ?? '');
    const body = isForm ? await readBody(c) : '';
    const form = new URLSearchParams(body);
    // A hook may be swapping the credentials.
    scheduler.advanceTo(world.now());
    const account = world
      .accounts(region)
      .find((one) => one.credentials.some(({ clientId }) => clientId === form.get('client_id')));
    return serve(c, 'token', account, () =>
      body === undefined
        ? json({ error: 'invalid_request', error_description: TOO_LARGE }, 413, NO_STORE)
        : grantToken(c.req.param('realm'), form, account),
    );
  });
  app.all('/auth/*', (c) => serve(c, 'unknown', undefined, () => json({ error: 'Not found' }, 404)));

  const unauthorized = (c: Context<SandboxEnv>, token: string): HttpResponse =>
    problem(
      401,
      tokens.hasExpired(region, token)
        ? 'The token has expired; request a new one at the token endpoint of this region.'
        : 'A valid bearer token of this region is required.',
      requestPath(c),
    );

  /** The answer of an operation to an authenticated request. */
  function toCall(
    spec: Operation,
    { account, credentials }: Holder,
    c: Context<SandboxEnv>,
    bodyText: string | undefined,
  ): HttpResponse {
    const instance = requestPath(c);
    const { role } = credentials;
    if (spec.needs !== undefined && !hasRight(role, spec.needs)) {
      return problem(403, `Credentials of the role ${role} may not use this operation.`, instance);
    }
    const params = spec.params?.safeParse(c.req.param());
    if (params?.success === false) return invalid('A parameter is not valid.', params.error, instance);
    const query = spec.query?.safeParse(c.req.query());
    if (query?.success === false) return invalid('A parameter is not valid.', query.error, instance);
    let body: unknown;
    if (spec.body) {
      const type = c.req.header('content-type') ?? '';
      if (!(spec.consumes ?? ['application/json']).some((allowed) => isOfType(type, allowed))) {
        return problem(415, 'The operation does not accept the media type of the body.', instance);
      }
      if (bodyText === undefined) return problem(413, TOO_LARGE, instance);
      let value: unknown;
      try {
        value = JSON.parse(bodyText, rejectProto);
      } catch (cause) {
        const why = cause instanceof UnknownKey ? cause.message : 'The body is not JSON.';
        return problem(400, 'The body is not valid.', instance, { $: [why] });
      }
      const parsed = spec.body.safeParse(value);
      if (!parsed.success) return invalid('The body is not valid.', parsed.error, instance);
      body = parsed.data;
    }
    const view = findView(spec.name, c.req.query());
    const call = () =>
      spec.handle({
        service,
        account,
        user: account.users.find(({ id }) => id === credentials.userId),
        role,
        params: params?.data ?? {},
        query: query?.data ?? {},
        body,
        header: (name) => c.req.header(name),
        instance,
        url: c.req.url,
        now: world.now() - freedom.lagMs(view),
      });
    const schema = spec.answers[200]?.schema;
    const number = Number(c.req.param('jobNumber'));
    const request = { region, operation: spec.name, view, jobNumber: number, instance, schema };
    const answer = freedom.apply(request, call);
    return spec.produces ? inWantedType(answer, spec.produces, c.req.header('accept')) : answer;
  }

  function grantToken(
    realm: string,
    form: URLSearchParams,
    account: SandboxAccount | undefined,
  ): HttpResponse {
    const reject = (status: number, error: string, description: string) =>
      json({ error, error_description: description }, status, NO_STORE);
    if (realm !== region) return json({ error: 'Realm does not exist' }, 404);
    const grantType = form.get('grant_type');
    if (!grantType) return reject(400, 'invalid_request', 'Missing form parameter: grant_type');
    if (grantType !== 'client_credentials') {
      return reject(400, 'unsupported_grant_type', 'Unsupported grant_type');
    }
    const credentials = account?.credentials.find(({ clientId }) => clientId === form.get('client_id'));
    if (!account || form.get('client_secret') !== credentials?.clientSecret) {
      return reject(401, 'invalid_client', 'Invalid client or Invalid client credentials');
    }
    account.noteLogin(credentials.userId);
    const { token, expiresInSeconds } = tokens.issue(account, credentials);
    return json({ access_token: token, expires_in: expiresInSeconds, token_type: 'Bearer' }, 200, NO_STORE);
  }

  return app;
}

/** Sends the OpenAPI document of a region, or of all. Its generator is loaded on first use. */
export async function sendOpenApiDocument(c: Context<SandboxEnv>, region?: RegionCode): Promise<Response> {
  const { openApiDocument } = await import('./http/openapi.ts');
  return send(c, json(openApiDocument({ origin: new URL(c.req.url).origin, ...(region && { region }) })));
}

const parameterCount = ({ path }: Operation): number => path.split('{').length;
/** Literal paths match before parameters. */
const ordered = operations.toSorted((one, other) => parameterCount(one) - parameterCount(other));

/** Whether a media type is allowed; patterns such as `application/*+json` match. */
function isOfType(type: string, allowed: string): boolean {
  const [essence = ''] = type.toLowerCase().split(';');
  const [before = '', after] = allowed.split('*');
  const name = essence.trim();
  return after === undefined ? name === before : name.startsWith(before) && name.endsWith(after);
}

/** An answer under the media type of those offered that is wanted most; JSON when none is. */
function inWantedType(answer: HttpResponse, offered: readonly string[], accept = ''): HttpResponse {
  const wanted = negotiateType(offered, accept);
  if (answer.status !== 200 || wanted === undefined) return answer;
  return { ...answer, headers: { ...answer.headers, 'content-type': `${wanted}; charset=utf-8` } };
}

/** The offered type that an Accept header prefers: by weight, then by the more specific range, then in order. */
function negotiateType(offered: readonly string[], accept: string): string | undefined {
  const ranges = parseAccept(accept).map(({ type, q }) => ({ type: type.toLowerCase(), q }));
  const exactness = (range: string) => (range === '*/*' ? 0 : range.endsWith('/*') ? 1 : 2);
  // The most specific range determines the weight: `text/plain;q=0, text/*` excludes only plain text.
  const rangeFor = (type: string) =>
    [type, type.replace(/\/.*/, '/*'), '*/*']
      .map((name) => ranges.find((range) => range.type === name))
      .find((range) => range !== undefined);
  const wanted = ranges
    .filter(({ q }) => q > 0)
    .sort((one, other) => other.q - one.q || exactness(other.type) - exactness(one.type))
    .find((range) => offered.some((type) => rangeFor(type) === range));
  return wanted && offered.find((type) => rangeFor(type) === wanted);
}

/** A key that no object of a body can have. */
class UnknownKey extends Error {}

/** Rejects `__proto__`, the only key that schemas drop silently. */
function rejectProto(key: string, value: unknown): unknown {
  if (key === '__proto__') throw new UnknownKey('The key __proto__ is unknown in every object.');
  return value;
}

/** Validation errors of a schema, by field. */
function invalid(detail: string, error: z.ZodError, instance: string): HttpResponse {
  const errors: Record<string, string[]> = {};
  for (const { path, message } of error.issues) {
    const field = formatPath(path) || '$';
    const messages = errors[field] ?? [];
    messages.push(message);
    errors[field] = messages;
  }
  return problem(400, detail, instance, errors);
}

const NO_STORE = { 'cache-control': 'no-store' };

/** The job numbers in a list answer; empty for other answers. */
function jobsIn({ status, body }: HttpResponse): number[] {
  if (status !== 200) return [];
  return JSON.parse(body).items.map(({ jobNumber }: { jobNumber: number }) => jobNumber);
}

function bearerToken(c: Context<SandboxEnv>): string {
  return /^Bearer +(\S+)$/i.exec(c.req.header('authorization') ?? '')?.[1] ?? '';
}
