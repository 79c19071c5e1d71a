/**
 * Routes of the HTTP API as data: permissions, input and responses. Derived from them are the request pipeline here, the OpenAPI
 * document (`openapi.ts`), the function of a cell that serves a route (`infra/api.ts`), and the tests of every role on every
 * route.
 *
 *   key ─ role ─ parameters, body ─ whose it is (404) ─ Idempotency-Key ─ If-Match (412) ─ handler
 *
 * One file: the declaration of a route and the pipeline that follows it change together.
 */
import { randomBytes, randomUUID } from 'node:crypto';
import type { Context, Handler } from 'hono';
import * as z from 'zod';
import type { TestDeps } from '../accounts/account-test.ts';
import type { AccountDeps } from '../accounts/managed-accounts.ts';
import type { AlertSendDeps } from '../alerts/evaluate.ts';
import type { AlertRuleDeps } from '../alerts/rules.ts';
import type { DeliveryLog } from '../delivery/delivery-log.ts';
import type { EndpointDeps } from '../delivery/endpoint-edits.ts';
import type { Channel, EmailTransport } from '../notifications/types.ts';
import { once } from '../once.ts';
import { createEncoder, type SchemaOutput } from '../representation.ts';
import type { Expectation, Rejection } from '../resources.ts';
import type { AccountRef } from '../storage/schema.ts';
import type { Table } from '../storage/table.ts';
import type { FailureLimit } from './auth-rate-limit.ts';
import { type CsvPage, describeCsv, toPreferred } from './csv.ts';
import type { ApiEnv } from './env.ts';
import type { FeedDeps } from './feed.ts';
import { type Generators, getFingerprint, type Idempotency, IdempotencyKey } from './idempotency.ts';
import { type Role, roleAllows } from './key-input.ts';
import type { Caller, Keyring } from './keys.ts';
import type { CellFeedDeps } from './merged-feed.ts';
import { type ProblemKind, problem, rejectionProblem } from './problems.ts';
import type { Reference } from './reference/pages.ts';
import { invalidInput, readBody, readForm, readQuery } from './request-input.ts';
import type { SignIn } from './sign-in.ts';
import { type StaticBody, staticAnswer } from './static-body.ts';
import type { Slots } from './waiting-limit.ts';

/** Function of a cell that serves a route: reads, changes, or waits. */
export type Surface = 'read' | 'manage' | 'live';

/** Tags group routes in the document, in this order. */
export const tags = {
  Accounts:
    'Accounts of the ordering API that Jobwire polls. An account is in *quarantine* after too many jobs disappeared within a day: no job is reported as cancelled or unavailable until the quarantine ends. In an *identity mismatch*, the credentials belong to another account of the ordering API than before.',
  Jobs: 'Current jobs and statistics.',
  Attention:
    'The attention queue: a ranked list of items that operations staff should handle. Also the figures of the overview.',
  Events: 'Event logs, which can be read in pages, by long polling or as live streams.',
  Notifications: 'Customer notifications by e-mail and SMS.',
  Endpoints:
    'Endpoints: webhook URLs and SQS queues. A *parked* event waits for a retry, and the later events of its job wait behind it. A *dead* event was rejected on every attempt. Replayed and resent events keep their ids and have the header `webhook-replay: true` or, in a queue, the attribute `replay`. The signature does not cover this header.',
  Alerts: 'Alert rules: messages to operations staff by e-mail, Slack, Teams or a webhook.',
  Keys: 'API keys.',
  'Sign-in': 'Sign-in of users at the dashboard, with OpenID Connect.',
  Regions: 'Regions and their state.',
  Search: 'Search across accounts.',
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
  /** Sends test e-mails. Absent: no mail server is configured. */
  readonly mailer?: Pick<EmailTransport, 'domain' | 'send'> | undefined;
}

/** Dependencies of changes of alert rules. */
export interface AlertParts {
  readonly rules: AlertRuleDeps;
  /** For test messages. */
  readonly sending: AlertSendDeps;
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
  /** Table, logs, regions, clock and timing of feeds and streams. */
  readonly feed: FeedDeps & CellFeedDeps;
  /** Delivery log. */
  readonly deliveries: DeliveryLog;
  /** Slots of streams and waiting long polls. Absent: no limit. */
  readonly slots: Slots | undefined;
  readonly notifications: Notifications;
  /** Message history. Absent: notifications are not served. */
  readonly messages: Table | undefined;
  /** Sign-in of users. Absent: users cannot sign in. */
  readonly signIn: SignIn | undefined;
  /** Counters of failed authentications. */
  readonly failures: FailureLimit;
  /** Counters of started pairings of wall displays, by address. */
  readonly pairingStarts: FailureLimit;
  /** Counters of unknown codes of wall displays, by key. */
  readonly pairingGuesses: FailureLimit;
  /** Dependencies of changes of alert rules. */
  readonly alerts: AlertParts;
  /** Returns whether the key of a long-running request is still valid. */
  readonly isCurrent: Keyring['isCurrent'];
  /** Returns whether the configuration file defines an account, which makes it read-only in the API. */
  readonly isDeclared: (ref: AccountRef) => boolean;
  /** Returns why writes to the store fail, or `undefined` if they succeed. Absent: not known. */
  readonly checkWrites: (() => Promise<string | undefined>) | undefined;
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
export interface ResponseSpec<A extends z.ZodType = z.ZodType> {
  /** Default: 200. */
  readonly status?: 200 | 201 | 202 | 204 | 304 | 404;
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
    lookup: {
      readonly c: Context<ApiEnv>;
      readonly caller: Caller;
      readonly params: Texts;
      readonly query: Texts;
    },
    parts: RouteParts,
  ): Promise<S | Response>;
  /** Returns the revision that `If-Match` is compared with. */
  getRevision?(subject: S): number | null;
}

/** The declaration of a route: types of path parameters (`P`), query (`Q`), body (`B`), response (`A`) and subject (`S`). */
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
  readonly subject?: Subject<S>;
  /** Path parameters besides those of `subject`. */
  readonly params?: P;
  /** Query parameters. Strict: unknown ones are rejected by name. */
  readonly query?: Q;
  /** JSON body. Strict. An optional body must accept `{}`. */
  readonly body?: B;
  /** Instead of `body`: a form, as web pages and mail programs send it. Other fields are ignored; an unreadable form has no fields. */
  readonly form?: B;
  /** Maximum size of the body, checked after the authentication. Default: that of most routes, checked before it. */
  readonly maxBodyBytes?: number;
  /** Example body for the document. */
  readonly example?: z.input<B>;
  /** Additional request headers for the document. */
  readonly headers?: { readonly [header: string]: string };
  readonly answer: ResponseSpec<A>;
  /** Further responses that are not problems. */
  readonly also?: readonly ResponseSpec[];
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
  /** Called before the handler. Returns a function that records the call after it has succeeded; `undefined`: not recorded. */
  readonly record?: (
    call: Pick<
      Call<z.output<P>, z.output<Q>, z.output<B>, S>,
      'c' | 'caller' | 'params' | 'body' | 'subject'
    >,
    parts: RouteParts,
  ) => Promise<() => Promise<void>> | undefined;
  /** Whether a successful call has changed anything. Otherwise it is not recorded. Default: it has. */
  readonly hasEffect?: (body: SchemaOutput<A>) => boolean;
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
  readonly generators: Generators;
}

/** Result of a handler: the record of the declared body, a rejection, which becomes its problem, or a complete response. */
export type HandlerResult<A> =
  | {
      readonly body: A;
      readonly headers?: Record<string, string>;
      /** Revision of the resource, for the `ETag`. */
      readonly revision?: number;
    }
  | Rejection
  | Response;

/** Returns the result of a use case as an answer. Only rejections have a `reason`. The encoding of the body leaves out its `kind`. */
export function toHandlerResult<R extends object>(result: R | Rejection): { readonly body: R } | Rejection {
  return 'reason' in result ? (result as Rejection) : { body: result };
}

/** Returns a part of the result of a use case as an answer. */
export function toFieldResult<N extends string, R extends { readonly [P in N]: unknown }>(
  result: R | Rejection,
  name: N,
): { readonly body: R[N] } | Rejection {
  return 'reason' in result ? (result as Rejection) : { body: result[name] };
}

/** A route of any type. */
export interface Route {
  // biome-ignore lint/suspicious/noExplicitAny: one list has routes of all types; each is type-checked where it is declared
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
  ) => HandlerResult<SchemaOutput<A>> | Promise<HandlerResult<SchemaOutput<A>>>,
): Route {
  // Created at the first request, because a start need not wait for all routes.
  const prepare = once(() => ({
    paramsSchema: z.object({ ...spec.subject?.params, ...spec.params?.shape }),
    querySchema: withSubject(spec.query ?? z.strictObject({}), spec.subject?.query),
    encode: createEncoder(spec.answer.schema),
    csv: getCsvPage(spec),
  }));
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
      const { paramsSchema, querySchema, encode, csv } = prepare();
      const params = paramsSchema.safeParse(c.req.param(), { reportInput: true });
      if (!params.success) return invalidInput(c, 'invalid-parameter', params.error, paramsSchema);
      const query = querySchema.safeParse(readQuery(c), { reportInput: true });
      if (!query.success) return invalidInput(c, 'invalid-parameter', query.error, querySchema);
      const body = spec.form ? await readForm(c, spec.form) : spec.body && (await readBody(c, spec.body));
      if (body instanceof Response) return body;
      const lookup = { c, caller, params: params.data as Texts, query: query.data as Texts };
      const subject = await spec.subject?.find(lookup, parts);
      if (subject instanceof Response) return subject;
      const call = {
        ...{ c, caller },
        params: params.data as z.output<P>,
        query: query.data as z.output<Q>,
        body: body as z.output<B>,
        subject: subject as S,
      };
      // Evaluated after the Idempotency-Key: a repeated request gets the stored response, although the revision has changed.
      const respond = async (making: Generators) => {
        const revision = spec.subject?.getRevision?.(call.subject) ?? null;
        const expected = spec.conditional ? parseIfMatch(c, revision) : {};
        if (expected instanceof Response) return expected;
        const record = await spec.record?.(call, parts);
        let outcome = await handle({ ...call, expected, generators: making }, parts);
        // Without `If-Match`, a change that lost a race is performed on the changed resource.
        const mayRepeat = spec.conditional && expected.revision === undefined;
        for (let attempt = 1; mayRepeat && attempt < ATTEMPTS && isLostRace(outcome); attempt += 1) {
          const found = await spec.subject?.find(lookup, parts);
          if (found instanceof Response) return found;
          outcome = await handle({ ...call, subject: found as S, expected, generators: making }, parts);
        }
        const response = toResponse(c, { ...spec.answer, encode }, outcome, expected);
        const isIdle = 'body' in outcome && spec.hasEffect?.(outcome.body as SchemaOutput<A>) === false;
        if (response.ok && !isIdle) await record?.();
        return response;
      };
      if (csv) return toPreferred(c, await respond(RANDOM), csv);
      if (!takesIdempotencyKey(spec)) return respond(RANDOM);
      return executeOnce(c, parts, respond);
    },
  };
}

/** Maximum number of attempts of a change while others change the resource. */
const ATTEMPTS = 3;

function isLostRace(outcome: HandlerResult<unknown>): boolean {
  return 'why' in outcome && outcome.why === 'changed';
}

/** Returns a function that declares a route with a tag. Default method: GET. */
export const createRouteFactory =
  (tag: keyof typeof tags) =>
  <
    P extends z.ZodObject = Nothing,
    Q extends z.ZodObject = Nothing,
    B extends z.ZodType = z.ZodUndefined,
    A extends z.ZodType = z.ZodUndefined,
    S = undefined,
  >(
    spec: Omit<RouteSpec<P, Q, B, A, S>, 'tag' | 'method'> & Partial<Pick<Route['spec'], 'method'>>,
    handle: Parameters<typeof route<P, Q, B, A, S>>[1],
  ): Route =>
    route<P, Q, B, A, S>({ method: 'get', tag, ...spec }, handle);

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

/** Generators for requests without an Idempotency-Key. */
const RANDOM: Generators = { newId: randomUUID, randomBytes };

function toResponse(
  c: Context<ApiEnv>,
  { status = 200, contentType, encode }: ResponseSpec & { readonly encode: (body: unknown) => unknown },
  answered: HandlerResult<unknown>,
  expected: Expectation,
): Response {
  if (answered instanceof Response) return answered;
  if ('kind' in answered) return rejectionProblem(c, answered, expected);
  const { body, revision, headers } = answered;
  const all = { ...(revision === undefined ? {} : { etag: formatEtag(revision) }), ...headers };
  if (body === undefined) return bodyless(c, status, all);
  return c.body(JSON.stringify(encode(body)), status as 200, {
    'content-type': contentType ?? 'application/json',
    ...all,
  });
}

/** Returns a response without a body. Hono's types require the cast. */
function bodyless(c: Context, status: number, headers: Record<string, string> = {}): Response {
  return c.body(null, status as 204, headers);
}

/** Returns whether a route accepts an Idempotency-Key. */
export function takesIdempotencyKey({ method, role, repeatable }: Route['spec']): boolean {
  return method === 'post' && role !== null && !repeatable;
}

/** Returns how the responses of a route become CSV. `undefined`: it does not list anything. */
export function getCsvPage({ method, answer }: Route['spec']): CsvPage | undefined {
  return method === 'get' ? describeCsv(answer.schema) : undefined;
}

const REPLAYED: Record<string, string> = { 'idempotency-replayed': 'true' };
/** Headers that are stored with a response. The others belong to a single exchange. */
const STORED_HEADERS = ['content-type', 'etag', 'location', 'retry-after'];

/** Executes a request once per Idempotency-Key. Without a key it is always executed. */
async function executeOnce(
  c: Context<ApiEnv>,
  { manage }: RouteParts,
  respond: (making: Generators) => Promise<Response>,
): Promise<Response> {
  const given = c.req.header('idempotency-key');
  if (given === undefined) return respond(RANDOM);
  const field = 'Idempotency-Key';
  const key = IdempotencyKey.safeParse(given);
  if (!key.success) {
    return problem(c, 'invalid-parameter', { field, detail: `${field} ${key.error.issues[0]?.message}.` });
  }
  const { pathname, search } = new URL(c.req.url);
  // A path contains no space. A request with another condition is another request.
  const condition = c.req.header('if-match');
  const lookup = `${pathname}${search}${condition === undefined ? '' : ` ${condition}`}`;
  const outcome = await manage.idempotency.run(
    {
      keyId: c.get('caller').keyId,
      idempotencyKey: key.data,
      bearer: c.req.header('authorization') ?? '',
      fingerprint: getFingerprint(c.req.method, lookup, await c.req.text()),
    },
    async (making) => {
      const response = await respond(making);
      const kept = STORED_HEADERS.flatMap((name) => {
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
        detail: 'A request with this Idempotency-Key is in progress.',
        headers: { 'retry-after': String(outcome.retryAfterSeconds) },
      });
    case 'other request':
      return problem(c, 'idempotency-key-reused', {
        field,
        detail: 'This Idempotency-Key was used for another request. Use a new key for each new request.',
      });
  }
}

/** Returns the problems that a route can respond with, for the document. */
export function listProblems({ spec, surface }: Route): ProblemKind[] {
  const { role, subject, params, body, form, conditional, problems = [] } = spec;
  return [
    ...new Set<ProblemKind>([
      'invalid-parameter',
      ...(body ? (['invalid-body', 'content-too-large', 'unsupported-media-type'] as const) : []),
      ...(form ? (['invalid-body', 'content-too-large'] as const) : []),
      ...(role === null ? [] : (['unauthorized', 'too-many-failed-authentications', 'forbidden'] as const)),
      ...(subject || params ? (['not-found'] as const) : []),
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
export function formatEtag(revision: number): string {
  return `"${revision}"`;
}

const ETAG_LIST = /^(W\/)?"[^"]*"(\s*,\s*(W\/)?"[^"]*")*$/;

/** Parses `If-Match`. Returns a problem if it is malformed or does not match the revision. */
function parseIfMatch(c: Context<ApiEnv>, revision: number | null): Expectation | Response {
  const given = c.req.header('if-match')?.trim();
  if (given === undefined || given === '*') return {};
  const field = 'If-Match';
  if (!ETAG_LIST.test(given)) {
    const detail =
      'If-Match must be an ETag with its quotes, such as "3", a comma-separated list of ETags, or *.';
    return problem(c, 'invalid-parameter', { field, detail });
  }
  const wanted = given.split(',').map((tag) => tag.trim());
  if (revision !== null && wanted.includes(formatEtag(revision))) return { revision };
  const detail =
    revision === null
      ? 'The resource has no revision: it cannot be changed through the API.'
      : `The resource was modified: its ETag is ${formatEtag(revision)}. Fetch it again and retry.`;
  return problem(c, 'precondition-failed', { field, detail });
}

function insufficientRole(c: Context<ApiEnv>, needed: Role): Response {
  const detail = `This operation requires a key with the role ${needed}${needed === 'admin' ? '' : ' or higher'}.`;
  return problem(c, 'forbidden', { detail });
}

function withSubject(query: z.ZodObject, more: Subject<unknown>['query']): z.ZodObject {
  return more ? query.safeExtend(more) : query;
}
