// One region of the ordering service over HTTP: its token endpoint, and who may ask its API for what in which form.

import { type Context, Hono } from 'hono';
import { parseAccept } from 'hono/utils/accept';
import type * as z from 'zod';
import { type PageDrift, strike } from './http/faults.ts';
import type { Operation } from './http/operation.ts';
import {
  ALREADY_SENT,
  type Answer,
  answerUnexpected,
  json,
  pathOf,
  problem,
  readBody,
  type SandboxEnv,
  send,
  TOO_LARGE,
} from './http/responses.ts';
import { may } from './http/roles.ts';
import type { Holder } from './http/tokens.ts';
import type { OperationName, RequestInfo } from './http/traffic.ts';
import { operations } from './operations.ts';
import type { Service } from './service.ts';
import type { RegionCode } from './world/regions.ts';
import type { SandboxAccount } from './world/world.ts';

/*
 * Where the contract is silent, the sandbox chose:
 *
 * - A body of more than 1 MiB is 413, at the token endpoint and the panel too. Who has no valid token gets 401 whatever it is.
 * - What is offered in several media types comes in the one that Accept weighs most, and as JSON when it wants none of them.
 * - Paths are case-sensitive. What there is not, and a method that is not served, answer 404, after the token was checked.
 * - Credentials act as the account's first user, unless it is said otherwise.
 * - The detail of a 401 says when it is only that the token has expired, as far as the last 10,000 tokens are concerned. Others
 *   are not told apart: revoked, of another region, made up, or none.
 * - At the token endpoint: wrong client or secret 401 invalid_client, another grant 400 unsupported_grant_type, anything else
 *   amiss 400 invalid_request, an unknown realm 404. The realm is named like the region. Tokens are opaque; several may live.
 */

/** Makes the app of one region: API below `/api`, token endpoint below `/auth`. */
export function createRegionApp(service: Service, region: RegionCode): Hono<SandboxEnv> {
  const { world, tokens, faults, requests, agenda } = service;
  const app = new Hono<SandboxEnv>();
  app.onError(answerUnexpected);

  const serve = async (
    c: Context<SandboxEnv>,
    operation: OperationName,
    account: SandboxAccount | undefined,
    answer: () => Answer,
  ): Promise<Response> => {
    const instance = pathOf(c);
    const { path } = c.req;
    const jobNumber = Number(c.req.param('jobNumber'));
    const info: RequestInfo = {
      region,
      operation,
      account,
      method: c.req.method,
      path: path.startsWith(`/${region}/`) ? path.slice(region.length + 1) : path,
      query: c.req.query(),
      jobNumber: Number.isNaN(jobNumber) ? undefined : jobNumber,
    };
    const entry = requests.begin(info, world.now());
    let sent: Answer | null = null;
    try {
      agenda.advanceTo(world.now());
      await service.onRequest?.(info);
      const rule = faults.take(
        info,
        (listed) => operation === 'activeJobs' && jobsIn(answer()).includes(listed),
      );
      if (rule) {
        entry.fault = rule.id;
        const revokeTokens = () => tokens.revoke({ region, ...(account && { account: account.name }) });
        const drift = (how: PageDrift) => {
          for (const inserted of account ? agenda.drift(account, how) : []) {
            if (account) service.ordered?.(account, inserted);
          }
        };
        const outgoing = c.env?.outgoing;
        sent = await strike(rule.fault, { info, instance, answer, outgoing, revokeTokens, drift });
      } else {
        sent = answer();
      }
    } finally {
      requests.end(entry, sent?.status ?? null);
    }
    return sent ? send(c, sent) : ALREADY_SENT;
  };

  // What is spelled out comes before what a parameter would match.
  for (const spec of operations.toSorted((one, other) => placeOf(one) - placeOf(other))) {
    app.on(spec.method.toUpperCase(), `/api${spec.path.replace(/\{(\w+)\}/g, ':$1')}`, async (c) => {
      const token = bearerToken(c);
      // Known now for hooks and rules; asked again when it counts, since those may have revoked it.
      const account = tokens.holder(region, token)?.account;
      const body = spec.body && account ? await readBody(c) : '';
      return serve(c, spec.name, account, () => {
        const holder = tokens.holder(region, token);
        return holder ? callOf(spec, holder, c, body) : unauthorized(c, token);
      });
    });
  }
  // The interface description takes no token, and is no request that rules or hooks are asked about.
  app.get('/api/openapi.json', (c) => describeIn(c, region));
  for (const method of ['GET', 'POST', 'PUT', 'PATCH', 'DELETE']) {
    app.on(method, '/api/*', (c) => {
      const token = bearerToken(c);
      return serve(c, 'unknown', tokens.holder(region, token)?.account, () =>
        tokens.holder(region, token)
          ? problem(404, 'There is no such resource.', pathOf(c))
          : unauthorized(c, token),
      );
    });
  }

  app.post('/auth/realms/:realm/protocol/openid-connect/token', async (c) => {
    const isForm = /^application\/x-www-form-urlencoded\b/i.test(c.req.header('content-type') ?? '');
    const body = isForm ? await readBody(c) : '';
    const form = new URLSearchParams(body);
    // Whose credentials they are may just be changing.
    agenda.advanceTo(world.now());
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

  const unauthorized = (c: Context<SandboxEnv>, token: string): Answer =>
    problem(
      401,
      tokens.hasExpired(region, token)
        ? 'The token has expired; request a new one at the token endpoint of this region.'
        : 'A valid bearer token of this region is required.',
      pathOf(c),
    );

  /** What an operation answers to somebody who has a token. */
  function callOf(
    spec: Operation,
    { account, credentials }: Holder,
    c: Context<SandboxEnv>,
    bodyText: string | undefined,
  ): Answer {
    const instance = pathOf(c);
    const { role } = credentials;
    if (spec.needs !== undefined && !may(role, spec.needs)) {
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
        return problem(415, 'The media type of the body is not one that this operation takes.', instance);
      }
      if (bodyText === undefined) return problem(413, TOO_LARGE, instance);
      let value: unknown;
      try {
        value = JSON.parse(bodyText, refuseProto);
      } catch (cause) {
        const why = cause instanceof UnknownKey ? cause.message : 'The body is not JSON.';
        return problem(400, 'The body is not valid.', instance, { $: [why] });
      }
      const parsed = spec.body.safeParse(value);
      if (!parsed.success) return invalid('The body is not valid.', parsed.error, instance);
      body = parsed.data;
    }
    const answer = spec.handle({
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
      now: world.now(),
    });
    return spec.produces ? inWantedType(answer, spec.produces, c.req.header('accept')) : answer;
  }

  function grantToken(realm: string, form: URLSearchParams, account: SandboxAccount | undefined): Answer {
    const refuse = (status: number, error: string, description: string) =>
      json({ error, error_description: description }, status, NO_STORE);
    if (realm !== region) return json({ error: 'Realm does not exist' }, 404);
    const grantType = form.get('grant_type');
    if (!grantType) return refuse(400, 'invalid_request', 'Missing form parameter: grant_type');
    if (grantType !== 'client_credentials') {
      return refuse(400, 'unsupported_grant_type', 'Unsupported grant_type');
    }
    const credentials = account?.credentials.find(({ clientId }) => clientId === form.get('client_id'));
    if (!account || form.get('client_secret') !== credentials?.clientSecret) {
      return refuse(401, 'invalid_client', 'Invalid client or Invalid client credentials');
    }
    account.noteLogin(credentials.userId);
    const { token, expiresInSeconds } = tokens.issue(account, credentials);
    return json({ access_token: token, expires_in: expiresInSeconds, token_type: 'Bearer' }, 200, NO_STORE);
  }

  return app;
}

/** Sends the interface description of a region, or of all. What makes it is loaded with the first one. */
export async function describeIn(c: Context<SandboxEnv>, region?: RegionCode): Promise<Response> {
  const { openApiDocument } = await import('./http/openapi.ts');
  return send(c, json(openApiDocument({ origin: new URL(c.req.url).origin, ...(region && { region }) })));
}

const placeOf = ({ path }: Operation): number => path.split('{').length;

/** Whether a media type is an allowed one, which may be like `application/*+json`. */
function isOfType(type: string, allowed: string): boolean {
  const [essence = ''] = type.toLowerCase().split(';');
  const [before = '', after] = allowed.split('*');
  const name = essence.trim();
  return after === undefined ? name === before : name.startsWith(before) && name.endsWith(after);
}

/** An answer under the media type of those offered that is wanted most; JSON when none is. */
function inWantedType(answer: Answer, offered: readonly string[], accept = ''): Answer {
  const wanted = wantedOf(offered, accept);
  if (answer.status !== 200 || wanted === undefined) return answer;
  return { ...answer, headers: { ...answer.headers, 'content-type': `${wanted}; charset=utf-8` } };
}

/** The offered type that an Accept header prefers: by its weight, then the one that is named more exactly, then earlier. */
function wantedOf(offered: readonly string[], accept: string): string | undefined {
  const ranges = parseAccept(accept).map(({ type, q }) => ({ type: type.toLowerCase(), q }));
  const exactness = (range: string) => (range === '*/*' ? 0 : range.endsWith('/*') ? 1 : 2);
  // A type has the weight of the range that names it most exactly: `text/plain;q=0, text/*` is all text but the plain one.
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

/** Refuses the one key that schemas drop without a word, also where any other that is unknown would be told. */
function refuseProto(key: string, value: unknown): unknown {
  if (key === '__proto__') throw new UnknownKey('The key __proto__ is unknown wherever it stands.');
  return value;
}

/** What a schema refused, by field: `items[0].quantity`. */
function invalid(detail: string, error: z.ZodError, instance: string): Answer {
  const errors: Record<string, string[]> = {};
  for (const { path, message } of error.issues) {
    const field = path
      .map((part, at) => (typeof part === 'number' ? `[${part}]` : `${at ? '.' : ''}${String(part)}`))
      .join('');
    const messages = errors[field || '$'] ?? [];
    messages.push(message);
    errors[field || '$'] = messages;
  }
  return problem(400, detail, instance, errors);
}

const NO_STORE = { 'cache-control': 'no-store' };

/** The numbers of the jobs that a list answer shows; none if it is not one. */
function jobsIn({ status, body }: Answer): number[] {
  if (status !== 200) return [];
  return JSON.parse(body).items.map(({ jobNumber }: { jobNumber: number }) => jobNumber);
}

function bearerToken(c: Context<SandboxEnv>): string {
  return /^Bearer +(\S+)$/i.exec(c.req.header('authorization') ?? '')?.[1] ?? '';
}
