/**
 * Routes of the HTTP API as data: permissions, input and responses. Derived from them are the request pipeline here, the OpenAPI
 * document (`openapi.ts`), the function of a cell that serves a route (`infra/api.ts`), and the tests of every role on every
 * route.
 *
 *   key ─ role ─ parameters, body ─ whose it is (404) ─ Idempotency-Key ─ If-Match (412) ─ handler
 */
import { randomBytes, randomUUID } from 'node:crypto';
import type { Context, Handler } from 'hono';
import * as z from 'zod';
import type { TestDeps } from '../accounts/account-test.ts';
import type { AccountDeps } from '../accounts/managed-accounts.ts';
import type { DeliveryLog } from '../delivery/delivery-log.ts';
import type { EndpointDeps } from '../delivery/endpoint-edits.ts';
import type { Channel } from '../notifications/types.ts';
import type { Expectation } from '../resources.ts';
import type { AccountRef } from '../storage/schema.ts';
import type { Table } from '../storage/table.ts';
import { pathText, sentenceOf } from '../validation.ts';
import type { ApiEnv } from './env.ts';
import type { FeedDeps } from './feed.ts';
import { fingerprintOf, type Idempotency, IdempotencyKey, type Making } from './idempotency.ts';
import { type Role, roleAllows } from './key-input.ts';
import type { Caller, Keyring } from './keys.ts';
import type { CellFeedDeps } from './merged-feed.ts';
import { type ProblemKind, problem } from './problems.ts';
import type { Reference } from './reference-page.ts';
import { type StaticBody, staticAnswer } from './static-body.ts';
import type { Slots } from './waiting-limit.ts';

/** Function of a cell that serves a route: reads, changes, or waits. */
export type Surface = 'read' | 'manage' | 'live';

/** Tags group routes in the document, in this order. */
export const tags = {
  Accounts: 'Polled accounts of the ordering API.',
  Jobs: 'Current jobs and statistics.',
  Events: 'Event logs: paged feeds, long polls and live streams.',
  Notifications: 'Customer notifications by e-mail and SMS: settings, recipients, templates and messages.',
  Endpoints: 'Webhook endpoints: deliveries, parked and dead events, replays, signing secrets.',
  Keys: 'API keys.',
  Regions: 'Regions and their state.',
  Catalogue: 'Event types with their schemas and examples.',
  Service: 'Health checks and API documents.',
} as const;

/** Static content. */
export interface Documents {
  readonly reference: Reference;
  /** Returns a document. */
  read(name: 'openapi.json' | 'asyncapi.json'): Promise<StaticBody>;
}

/** Dependencies of routes that change resources. */
export interface Manage {
  readonly idempotency: Idempotency;
  readonly accounts: AccountDeps & TestDeps;
  /** For endpoints, and for replays to them and to built-in sinks. */
  readonly endpoints: EndpointDeps;
}

/** Dependencies of notification routes. */
export interface Notifications {
  /** Message history. */
  readonly history: Table;
  /** Base URL of links in messages, without a trailing slash. */
  readonly publicUrl: string;
  /** Configured channels. */
  readonly channels: readonly Channel[];
}

/** Dependencies of routes. */
export interface RouteParts {
  /** Table, log, regions, clock; and how feeds and streams go. */
  readonly feed: FeedDeps & CellFeedDeps;
  /** Delivery log. */
  readonly deliveries: DeliveryLog;
  /** Slots of streams and waiting long polls. Absent: no limit. */
  readonly slots: Slots | undefined;
  readonly notifications: Notifications;
  /** Returns whether the key of a long-running request is still valid. */
  readonly isCurrent: Keyring['isCurrent'];
  /** Returns whether the configuration file defines an account, which makes it read-only in the API. */
  readonly isDeclared: (ref: AccountRef) => boolean;
  /** Returns the JSON Schema of an event type's `data`; `undefined` for an unknown type. */
  readonly schemas: (type: string) => StaticBody | undefined;
  /** The documents and the page that shows them. */
  readonly documents: Documents;
  /** Dependencies of changes. Set only where changes are served. */
  readonly manage: Manage;
  /** Reports errors that occur after the response has begun. */
  readonly report: (c: Context<ApiEnv>, cause: unknown) => void;
}

/** A successful response. */
export interface Answer<A extends z.ZodType = z.ZodType> {
  readonly status: 200 | 201 | 202 | 204 | 304 | 404;
  readonly description: string;
  /** Default: no body. */
  readonly schema?: A;
  /** Default: JSON. */
  readonly contentType?: string;
  /** Headers with their descriptions. */
  readonly headers?: { readonly [header: string]: string };
}

type Texts = { readonly [name: string]: string };

/** Finds the resource of a path. A resource outside the scope of the key is reported as not found. */
export interface Subject<S> {
  /** Path parameters that identify the resource. */
  readonly params: { readonly [name: string]: z.ZodType<string, string> };
  /** Query parameters that identify the resource. */
  readonly query?: { readonly [name: string]: z.ZodOptional<z.ZodType<string, string>> };
  find(
    asked: {
      readonly c: Context<ApiEnv>;
      readonly caller: Caller;
      readonly params: Texts;
      readonly query: Texts;
    },
    parts: RouteParts,
  ): Promise<S | Response>;
  /** Returns the revision that `If-Match` is compared with. */
  revisionOf?(subject: S): number | null;
}

/** A route as it is declared: `P`, `Q` and `B` are what it takes, `A` what it answers, `S` what its path is about. */
export interface RouteSpec<
  P extends z.ZodObject,
  Q extends z.ZodObject,
  B extends z.ZodType,
  A extends z.ZodType,
  S,
> {
  readonly method: 'get' | 'post' | 'put' | 'patch' | 'delete';
  /** Path with parameters in braces. */
  readonly path: `/${string}`;
  /** Operation id, for generated clients. */
  readonly id: string;
  readonly tag: keyof typeof tags;
  readonly summary: string;
  readonly description?: string;
  /** Required role. `null`: no authentication. */
  readonly role: Role | null;
  /** Whether a key for all accounts is required. */
  readonly allAccounts?: boolean;
  readonly of?: Subject<S>;
  /** Path parameters besides those of `of`. */
  readonly params?: P;
  /** Query parameters. Strict: unknown ones are rejected by name. */
  readonly query?: Q;
  /** JSON body. Strict. An optional body must accept `{}`. */
  readonly body?: B;
  /**
   * Instead of `body`: a form, as web pages and mail programs send it. Not strict: what they send besides is passed over, and
   * what is no form at all is one without fields.
   */
  readonly form?: B;
  /** Example body for the document. */
  readonly example?: z.input<B>;
  /** Additional request headers for the document. */
  readonly headers?: { readonly [header: string]: string };
  readonly answer: Answer<A>;
  /** Further responses that are not problems. */
  readonly also?: readonly Answer[];
  /** Problems besides those of every route of its kind. */
  readonly problems?: readonly ProblemKind[];
  /** Whether a GET can wait, or is a stream. */
  readonly waits?: boolean;
  /** Whether the response is a static document or file. */
  readonly document?: boolean;
  /** Whether the response has an `ETag` and supports `If-None-Match` (304). */
  readonly validated?: boolean;
  /** Whether a POST is idempotent and needs no Idempotency-Key. */
  readonly repeatable?: boolean;
  /** Whether a change supports `If-Match`. */
  readonly conditional?: boolean;
}

/** Input of a handler. */
export interface Call<P, Q, B, S> {
  readonly c: Context<ApiEnv>;
  readonly caller: Caller;
  readonly params: P;
  readonly query: Q;
  readonly body: B;
  readonly subject: S;
  /** Expectation from `If-Match`. */
  readonly expected: Expectation;
  /** Source of ids and random bytes. A repeated request gets the same ones. */
  readonly making: Making;
}

/** Result of a handler: the declared body, or a complete response. */
export type Answered<A> = { readonly body: A; readonly headers?: Record<string, string> } | Response;

/** A route of any type. */
export interface Route {
  // biome-ignore lint/suspicious/noExplicitAny: routes of all shapes stand in one list; each is checked where it is declared
  readonly spec: RouteSpec<any, any, any, any, any>;
  readonly surface: Surface;
  /** Runs the request pipeline and the handler. */
  handler(parts: RouteParts): Handler<ApiEnv>;
}

type Nothing = z.ZodObject<Record<never, never>>;

/** Declares a route. The types of the handler are inferred from the schemas. */
export function route<
  P extends z.ZodObject = Nothing,
  Q extends z.ZodObject = Nothing,
  B extends z.ZodType = z.ZodUndefined,
  A extends z.ZodType = z.ZodUndefined,
  S = undefined,
>(
  spec: RouteSpec<P, Q, B, A, S>,
  handle: (
    call: Call<z.output<P>, z.output<Q>, z.output<B>, S>,
    parts: RouteParts,
  ) => Answered<z.input<A>> | Promise<Answered<z.input<A>>>,
): Route {
  const paramsSchema = z.object({ ...spec.of?.params, ...spec.params?.shape });
  const querySchema = withSubject(spec.query ?? z.strictObject({}), spec.of?.query);
  return {
    spec,
    surface: spec.waits ? 'live' : spec.method === 'get' ? 'read' : 'manage',
    handler: (parts) => async (c) => {
      c.set('route', `${spec.method.toUpperCase()} ${spec.path}`);
      const caller = c.get('caller');
      if (spec.role !== null && !roleAllows(caller.role, spec.role)) return insufficientRole(c, spec.role);
      if (spec.allAccounts && caller.accounts !== null) {
        return problem(c, 'forbidden', { detail: 'This operation requires a key for all accounts.' });
      }
      const params = paramsSchema.safeParse(c.req.param(), { reportInput: true });
      if (!params.success) return invalidInput(c, 'invalid-parameter', params.error, paramsSchema);
      const query = querySchema.safeParse(queryOf(c), { reportInput: true });
      if (!query.success) return invalidInput(c, 'invalid-parameter', query.error, querySchema);
      const body = await bodyOf(c, spec);
      if (body instanceof Response) return body;
      const asked = { c, caller, params: params.data as Texts, query: query.data as Texts };
      const subject = await spec.of?.find(asked, parts);
      if (subject instanceof Response) return subject;
      const call = {
        ...{ c, caller },
        params: params.data as z.output<P>,
        query: query.data as z.output<Q>,
        body: body as z.output<B>,
        subject: subject as S,
      };
      // What was done before is no longer as it was expected to be, and is answered all the same.
      const respond = async (making: Making) => {
        const revision = spec.of?.revisionOf?.(call.subject) ?? null;
        const expected = spec.conditional ? expectationOf(c, revision) : {};
        if (expected instanceof Response) return expected;
        return toResponse(c, spec.answer, await handle({ ...call, expected, making }, parts));
      };
      if (!takesIdempotencyKey(spec)) return respond(EACH_ANEW);
      return once(c, parts, respond);
    },
  };
}

/** Returns a static body, according to `Accept-Encoding` and `If-None-Match`. */
export function sendStatic(
  c: Context<ApiEnv>,
  body: StaticBody,
  headers: Readonly<Record<string, string>>,
): Response {
  const answer = staticAnswer(c.req.raw.headers, body);
  const { 'content-type': contentType = '', ...others } = headers;
  // `Vary: Origin` of the CORS middleware stays.
  c.header('vary', 'accept-encoding', { append: true });
  const all = { ...others, ...answer.headers };
  return answer.body === null
    ? bodyless(c, answer.status, all)
    : c.body(answer.body, 200, { ...all, 'content-type': contentType });
}

/** Nothing that is made has to be the same another time. */
const EACH_ANEW: Making = { newId: randomUUID, randomBytes };

function toResponse(
  c: Context<ApiEnv>,
  { status, contentType }: Answer,
  answered: Answered<unknown>,
): Response {
  if (answered instanceof Response) return answered;
  if (answered.body === undefined) return bodyless(c, status, answered.headers);
  return c.body(JSON.stringify(answered.body), status as 200, {
    'content-type': contentType ?? 'application/json',
    ...answered.headers,
  });
}

/** Its type does not tell apart statuses that never have a body. */
function bodyless(c: Context, status: number, headers: Record<string, string> = {}): Response {
  return c.body(null, status as 204, headers);
}

/** Returns whether a route accepts an Idempotency-Key. */
export function takesIdempotencyKey({ method, role, repeatable }: Route['spec']): boolean {
  return method === 'post' && role !== null && !repeatable;
}

const REPLAYED: Record<string, string> = { 'idempotency-replayed': 'true' };
/** What of an answer belongs to what was done, rather than to the exchange. */
const KEPT_HEADERS = ['content-type', 'etag', 'location', 'retry-after'];

/** Executes a request once per Idempotency-Key. Without a key it is always executed. */
async function once(
  c: Context<ApiEnv>,
  { manage }: RouteParts,
  respond: (making: Making) => Promise<Response>,
): Promise<Response> {
  const given = c.req.header('idempotency-key');
  if (given === undefined) return respond(EACH_ANEW);
  const field = 'Idempotency-Key';
  const key = IdempotencyKey.safeParse(given);
  if (!key.success) {
    return problem(c, 'invalid-parameter', { field, detail: `${field} ${key.error.issues[0]?.message}.` });
  }
  const { pathname, search } = new URL(c.req.url);
  // There is no space in a path. On another condition it is another request.
  const condition = c.req.header('if-match');
  const asked = `${pathname}${search}${condition === undefined ? '' : ` ${condition}`}`;
  const outcome = await manage.idempotency.run(
    {
      keyId: c.get('caller').keyId,
      idempotencyKey: key.data,
      bearer: c.req.header('authorization') ?? '',
      fingerprint: fingerprintOf(c.req.method, asked, await c.req.text()),
    },
    async (making) => {
      const response = await respond(making);
      const kept = KEPT_HEADERS.flatMap((name) => {
        const value = response.headers.get(name);
        return value === null ? [] : [[name, value]];
      });
      return { status: response.status, headers: Object.fromEntries(kept), body: await response.text() };
    },
  );
  switch (outcome.kind) {
    case 'done':
    case 'replayed': {
      const { status, headers, body } = outcome.answer;
      const all = { ...headers, ...(outcome.kind === 'replayed' ? REPLAYED : {}) };
      return body === '' ? bodyless(c, status, all) : c.body(body, status as 200, all);
    }
    case 'answer not kept':
      return problem(c, 'conflict', {
        field,
        detail: `The request was executed before (status ${outcome.status}). Its response was too long to be stored.`,
      });
    case 'in progress':
      return problem(c, 'request-in-progress', {
        field,
        detail: 'A request with this key is in progress.',
        headers: { 'retry-after': String(outcome.retryAfterSeconds) },
      });
    case 'other request':
      return problem(c, 'idempotency-key-reused', {
        field,
        detail: 'This key was used for another request. Use a new key for each new request.',
      });
  }
}

/** Returns the problems that a route can respond with, for the document. */
export function problemsOf({ spec, surface }: Route): ProblemKind[] {
  const { role, of, params, body, form, conditional, problems = [] } = spec;
  return [
    ...new Set<ProblemKind>([
      'invalid-parameter',
      ...(body ? (['invalid-body', 'content-too-large', 'unsupported-media-type'] as const) : []),
      ...(form ? (['invalid-body', 'content-too-large'] as const) : []),
      ...(role === null ? [] : (['unauthorized', 'too-many-failed-authentications'] as const)),
      ...(role === null || role === 'read' ? [] : (['forbidden'] as const)),
      ...(of || params ? (['not-found'] as const) : []),
      ...(conditional ? (['precondition-failed'] as const) : []),
      ...(takesIdempotencyKey(spec) ? (['idempotency-key-reused', 'request-in-progress'] as const) : []),
      ...(surface === 'live' ? (['too-many-streams'] as const) : []),
      ...problems,
      'internal-server-error',
      'service-unavailable',
    ]),
  ];
}

/** Returns the `ETag` of a revision. */
export function etagOf(revision: number): string {
  return `"${revision}"`;
}

/** What If-Match expects, or the answer that it does not hold. */
function expectationOf(c: Context<ApiEnv>, revision: number | null): Expectation | Response {
  const given = c.req.header('if-match')?.trim();
  if (given === undefined || given === '*') return {};
  const wanted = given.split(',').map((tag) => tag.trim());
  if (revision !== null && wanted.includes(etagOf(revision))) return { revision };
  const detail =
    revision === null
      ? 'The resource has no revision: it cannot be changed through the API.'
      : `The resource was modified: its ETag is ${etagOf(revision)}. Fetch it again and retry.`;
  return problem(c, 'precondition-failed', { field: 'If-Match', detail });
}

function insufficientRole(c: Context<ApiEnv>, needed: Role): Response {
  const detail = `This operation requires a key with the role ${needed}${needed === 'admin' ? '' : ' or higher'}.`;
  return problem(c, 'forbidden', { detail });
}

function withSubject(query: z.ZodObject, more: Subject<unknown>['query']): z.ZodObject {
  return more ? z.strictObject({ ...query.shape, ...more }) : query;
}

/** What is there once is a text; what is there more often is refused by the schemas, which take texts only. */
function queryOf(c: Context): Record<string, string | string[]> {
  const entries = Object.entries(c.req.queries());
  return Object.fromEntries(
    entries.map(([name, values]) => [name, values.length === 1 ? (values[0] ?? '') : values]),
  );
}

/** What the body says, in the shape that the route takes. */
async function bodyOf(c: Context<ApiEnv>, { body, form }: Route['spec']): Promise<unknown> {
  if (form) return readForm(c, form);
  return body ? readBody(c, body) : undefined;
}

/** Parses a multipart or URL-encoded form. Mail programs send either. */
async function readForm<B extends z.ZodType>(c: Context<ApiEnv>, schema: B): Promise<z.output<B> | Response> {
  const fields = await c.req.parseBody().catch(() => ({}));
  const parsed = schema.safeParse(fields, { reportInput: true });
  return parsed.success ? parsed.data : invalidInput(c, 'invalid-body', parsed.error, schema);
}

/** Parses a JSON body. An absent body is parsed as an empty object. */
async function readBody<B extends z.ZodType>(c: Context<ApiEnv>, schema: B): Promise<z.output<B> | Response> {
  const text = await c.req.text();
  const type = c.req.header('content-type') ?? '';
  if (text.trim() !== '' && !/^application\/([\w.+-]+\+)?json\s*(;|$)/i.test(type)) {
    return problem(c, 'unsupported-media-type', {
      detail: 'Send the body with Content-Type: application/json.',
    });
  }
  let value: unknown;
  try {
    value = text.trim() === '' ? {} : JSON.parse(text);
  } catch {
    return problem(c, 'invalid-body', { detail: 'The body must be JSON.' });
  }
  const odd = findUnsafeText(value);
  if (odd) return problem(c, 'invalid-body', odd);
  const parsed = schema.safeParse(value, { reportInput: true });
  return parsed.success ? parsed.data : invalidInput(c, 'invalid-body', parsed.error, schema);
}

/** A member of a JSON value, and what leads to it. */
interface Member {
  readonly value: unknown;
  readonly name?: PropertyKey;
  readonly parent?: Member;
}

/**
 * What no field may hold, whatever its schema says: a string with a lone surrogate, which no store takes, and a field called
 * `__proto__`. Without recursion, for a body can be nested as deeply as it is long.
 */
function findUnsafeText(body: unknown): { readonly field: string; readonly detail: string } | undefined {
  const left: Member[] = [{ value: body }];
  for (let member = left.pop(); member; member = left.pop()) {
    const { name, value } = member;
    if (name === '__proto__') {
      const field = fieldOf(member);
      return { field, detail: `${field} is not accepted: no field may be named __proto__.` };
    }
    if ([name, value].some((text) => typeof text === 'string' && !text.isWellFormed())) {
      const field = fieldOf(member).toWellFormed();
      return { field, detail: `${field} must be well-formed Unicode: it contains a lone surrogate.` };
    }
    if (typeof value !== 'object' || value === null) continue;
    const isList = Array.isArray(value);
    const members = Object.entries(value).map(([key, inner]) => ({
      value: inner,
      name: isList ? Number(key) : key,
      parent: member,
    }));
    left.push(...members.reverse());
  }
  return undefined;
}

/** The path of a field; of one that is nested deeply, or has long names, the beginning. */
function fieldOf(member: Member): string {
  const path: PropertyKey[] = [];
  for (let at: Member | undefined = member; at?.name !== undefined; at = at.parent) path.unshift(at.name);
  return pathText(path.slice(0, 10), 'The body').slice(0, 100);
}

/** The first thing that is wrong, by its path, in one sentence. Values are not quoted: they may be secrets. */
function invalidInput(
  c: Context<ApiEnv>,
  kind: 'invalid-parameter' | 'invalid-body',
  error: z.ZodError,
  schema: z.ZodType,
): Response {
  const [issue] = error.issues;
  const whole = 'The body';
  if (issue?.code === 'unrecognized_keys') {
    const field = pathText([...issue.path, String(issue.keys[0]).slice(0, 100)], whole);
    const shape =
      issue.path.length === 0 && schema instanceof z.ZodObject ? Object.keys(schema.shape) : undefined;
    const known = shape && ` Known: ${shape.join(', ') || 'none'}.`;
    const what = kind === 'invalid-parameter' ? 'parameter' : 'field';
    return problem(c, kind, { field, detail: `${field} is not a known ${what}.${known ?? ''}` });
  }
  if (issue === undefined || issue.path.length === 0) {
    const own = issue?.code === 'custom' ? issue.message : 'must be a JSON object';
    return problem(c, kind, { detail: `${whole} ${own}.` });
  }
  const field = pathText(issue.path, whole);
  return problem(c, kind, { field, detail: `${sentenceOf(issue, whole)}.` });
}
