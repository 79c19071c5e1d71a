/**
 * The HTTP API: an app of each group of routes in `routes/`, for a Node server and for Lambda. Between requests it stores only caches:
 * reads in progress, verified keys, and numbers of failed authentications.
 */
import { randomUUID } from 'node:crypto';
import { type Context, type ErrorHandler, Hono, type MiddlewareHandler } from 'hono';
import { bodyLimit } from 'hono/body-limit';
import { cors } from 'hono/cors';
import { methodNotAllowed } from 'hono/method-not-allowed';
import { requestId } from 'hono/request-id';
import { secureHeaders } from 'hono/secure-headers';
import type { DeliveryLog } from '../delivery/delivery-log.ts';
import { getDataSchema } from '../events/catalogue.ts';
import { createCellFeed } from '../log/cell-feed.ts';
import { type EventLog, shareReads } from '../log/log.ts';
import type { AccountRef } from '../storage/schema.ts';
import { shareTableReads } from '../storage/shared-reads.ts';
import { type Table, TableError } from '../storage/table.ts';
import { requireKey } from './access.ts';
import { createFailureLimit } from './auth-rate-limit.ts';
import type { ApiEnv } from './env.ts';
import type { FeedPace } from './feed.ts';
import type { GrowthSignal } from './growth-signal.ts';
import type { Keyring } from './keys.ts';
import { problem } from './problems.ts';
import { createReference } from './reference/pages.ts';
import { limitRequests, type RequestLimit } from './request-limit.ts';
import {
  type AlertParts,
  type Documents,
  type Manage,
  type Notifications,
  type Route,
  type RouteParts,
  tags,
} from './route.ts';
import { groups, type RouteGroup } from './routes/groups.ts';
import { IssuerError, NoAccessError, type SignIn } from './sign-in.ts';
import { createStaticReader, type StaticBody, toStaticBody } from './static-body.ts';
import type { Slots } from './waiting-limit.ts';

/** Dependencies of the API. */
export interface ApiDeps {
  readonly table: Table;
  readonly log: EventLog;
  /** Served regions. An account id is looked up in each. */
  readonly regions: readonly string[];
  /** Verifies API keys sent as `Authorization: Bearer …`. */
  readonly keyring: Keyring;
  /** Sign-in of users, whose ID tokens the keyring verifies. Absent: users cannot sign in. */
  readonly signIn?: SignIn | undefined;
  /** Epoch ms. */
  readonly now: () => number;
  /** Delivery log. Absent: only routes that wait are served. */
  readonly deliveries?: DeliveryLog;
  /** Dependencies of notification routes. Absent: these are not served. */
  readonly notifications?: Notifications;
  /** Wakes long polls and streams when a log grows in this process. */
  readonly growth?: GrowthSignal;
  /** Called for every error that results in a 500 or 503 or ends a stream. Contains ids only, no parameters. */
  readonly onError?: (cause: unknown, request: AnsweredRequest) => void;
  /** Called when a response begins. Must not throw. */
  readonly onAnswer?: (
    request: AnsweredRequest,
    answer: { readonly status: number; readonly ms: number },
  ) => void;
  /** Timing of long polls and streams; see {@link FeedPace}. */
  readonly pace?: Partial<FeedPace>;
  /** Slots of streams and waiting long polls. Absent: no limit. */
  readonly slots?: Slots;
  /** Limit of requests per key. Absent: no limit. */
  readonly requestLimit?: RequestLimit | undefined;
  /** Reads a document, or a file of the API reference, by name. Absent: these are not served. */
  readonly readFile?: (name: string) => Promise<Uint8Array<ArrayBuffer>>;
  /** Base URL of the event schemas' `$id`, without a final slash. Default: none, so that `$id` is a path. */
  readonly schemaBaseUrl?: string;
  /** Returns whether the configuration file defines an account. Default: none. */
  readonly isDeclared?: (ref: AccountRef) => boolean;
  /** Returns why writes to the store fail, or `undefined` if they succeed. Absent: not known. */
  readonly checkWrites?: () => Promise<string | undefined>;
  /** Dependencies of changes of alert rules. Absent: rules can only be read. */
  readonly alerts?: AlertParts;
  /** Dependencies of changes. Absent: routes that change resources are not served. */
  readonly manage?: Manage;
  /** Origins of web pages allowed by CORS. Default: none. */
  readonly corsOrigins?: readonly string[];
}

/** A request in the log. Contains no client input except the request id. */
export interface AnsweredRequest {
  /** `X-Request-Id` of the request, if it has at most 255 letters, digits, `_`, `-` and `=`. Otherwise generated. */
  readonly requestId: string;
  /** `GET /v1/accounts/{id}`. `null` if no route matched or authentication failed. */
  readonly route: string | null;
  /** Id of the API key, or pseudonymous id of the user. `null` without valid authentication. */
  readonly keyId: string | null;
}

/** Interval at which waiting readers poll the table, without and with growth hints. */
const RECHECK_MS = 1_000;
const HINTED_RECHECK_MS = 5_000;
export const HEARTBEAT_MS = 15_000;
const STREAM_MS = 10 * 60_000;
const RETRY_MS = 1_000;
export const WAIT_MS = 25_000;
/** Maximum size of a body, unless its route defines one. Sufficient for an endpoint with a thousand accounts. */
const MAX_BODY_BYTES = 100_000;
/** Methods whose requests have no body. Reading it would create a complete `Request` first. */
const BODYLESS: ReadonlySet<string> = new Set(['GET', 'HEAD']);
/** Lifetime of CORS preflight results. */
const CORS_SECONDS = 600;

const NO_ACCESS =
  'You are signed in, but not in a group with access to Jobwire. Ask an administrator to add you to such a group.';

/**
 * Creates the app. Every response has an `x-request-id`; every error is a problem document ({@link problem}). Routes are loaded in
 * groups, each at its first request.
 */
export function createApi(deps: ApiDeps): Hono<ApiEnv> {
  const parts = toParts(deps);
  const loaded = new Map<RouteGroup, Hono<ApiEnv>>();
  const api = new Hono<ApiEnv>();
  api.all('*', async (c) => {
    const group = groups.find(({ paths }) => paths.test(c.req.path)) as RouteGroup;
    const app = loaded.get(group) ?? createGroup(deps, parts, await group.load());
    loaded.set(group, app);
    return app.fetch(c.req.raw, c.env);
  });
  // Called only if a group can't be loaded.
  api.onError((cause, c) => {
    c.set('requestId', randomUUID());
    return respondToErrors(parts)(cause, c);
  });
  return api;
}

function toParts(deps: ApiDeps): RouteParts {
  const { regions, now, growth, deliveries, notifications, alerts, manage } = deps;
  // Concurrent readers of the same data share reads.
  const [table, log] = [shareTableReads(deps.table), shareReads(deps.log)];
  const documents = deps.readFile && documentsFrom(deps.readFile);
  const schemas = createSchemas(deps.schemaBaseUrl ?? '');
  return {
    feed: {
      ...{ table, log, regions, growth, now },
      feed: createCellFeed(table, now),
      pace: {
        recheckMs: growth ? HINTED_RECHECK_MS : RECHECK_MS,
        heartbeatMs: HEARTBEAT_MS,
        streamMs: STREAM_MS,
        retryMs: RETRY_MS,
        waitMs: WAIT_MS,
        ...deps.pace,
      },
    },
    slots: deps.slots,
    signIn: deps.signIn,
    failures: createFailureLimit(),
    pairingStarts: createFailureLimit(),
    pairingGuesses: createFailureLimit(),
    schemas,
    isCurrent: (caller) => deps.keyring.isCurrent(caller),
    isDeclared: deps.isDeclared ?? (() => false),
    checkWrites: deps.checkWrites,
    messages: notifications?.history,
    // Routes with absent dependencies are not served.
    ...({ documents, deliveries, notifications, alerts, manage } as Pick<
      RouteParts,
      'documents' | 'deliveries' | 'notifications' | 'alerts' | 'manage'
    >),
    report: (c, cause) => deps.onError?.(cause, about(c)),
  };
}

/** Creates the app of some routes. Other paths respond with 404, or without a key with 401. */
function createGroup(deps: ApiDeps, parts: RouteParts, routes: readonly Route[]): Hono<ApiEnv> {
  const { now, corsOrigins = [] } = deps;
  const app = new Hono<ApiEnv>();

  app.use(requestId());
  app.use(async (c, next) => {
    const began = now();
    await next();
    deps.onAnswer?.(about(c), { status: c.res.status, ms: now() - began });
  });
  const secure = {
    crossOriginResourcePolicy: corsOrigins.length > 0 ? 'cross-origin' : 'same-origin',
    xFrameOptions: 'DENY',
  } as const;
  // Responses contain text from customers, which browsers must treat as data only.
  const asData = secureHeaders({
    ...secure,
    contentSecurityPolicy: { defaultSrc: ["'none'"], frameAncestors: ["'none'"] },
  });
  // Pages set their own content security policy.
  const asPage = secureHeaders(secure);
  app.use(async (c, next) => {
    await next();
    const of = c.res.headers.has('content-security-policy') ? asPage : asData;
    await of(c, async () => {});
  });
  if (corsOrigins.length > 0) {
    app.use(
      cors({
        origin: [...corsOrigins],
        allowHeaders: [
          'Authorization',
          'Content-Type',
          'Idempotency-Key',
          'If-Match',
          'If-None-Match',
          'Last-Event-ID',
          'X-Request-Id',
        ],
        exposeHeaders: [
          ...['ETag', 'Location', 'Retry-After', 'X-Request-Id', 'Idempotency-Replayed'],
          ...['RateLimit', 'RateLimit-Policy', 'Deprecation', 'Sunset', 'Link'],
        ],
        maxAge: CORS_SECONDS,
      }),
    );
  }
  app.use(async (c, next) => {
    c.header('cache-control', 'no-store');
    await next();
  });
  app.notFound((c) => problem(c, 'not-found', { detail: 'There is no such resource.' }));
  app.onError(respondToErrors(parts));
  const limitBody = (maxSize: number) =>
    bodyLimit({
      maxSize,
      onError: (c) =>
        problem(c, 'content-too-large', { detail: `The body must be no larger than ${maxSize} bytes.` }),
    });
  const limitUsual = limitBody(MAX_BODY_BYTES);
  const limits = new Map<string, MiddlewareHandler>(
    routes.flatMap(({ spec: { path, maxBodyBytes } }) =>
      maxBodyBytes === undefined ? [] : [[path, limitBody(maxBodyBytes)]],
    ),
  );
  app.use((c, next) => (BODYLESS.has(c.req.method) || limits.has(c.req.path) ? next() : limitUsual(c, next)));

  // Malformed requests are rejected before authentication (RFC 9112, 3.2; RFC 3986, 2.1).
  app.use(async (c, next) => {
    if ((c.env?.hostHeaders ?? 1) > 1) {
      return problem(c, 'invalid-parameter', { field: 'Host', detail: 'Host must be sent once.' });
    }
    if (c.env?.blocked) return problem(c, 'request-blocked', { detail: c.env.blocked });
    const bad = malformedPart(c.req.url);
    if (!bad) return next();
    return problem(c, 'invalid-parameter', {
      detail: `The ${bad} must be percent-encoded UTF-8, such as %20 for a space.`,
    });
  });

  const served = routes.filter(({ spec, surface }) => {
    if (spec.document) return deps.readFile;
    if (spec.tag === 'Notifications' && !deps.notifications) return false;
    if (surface === 'manage') return deps.manage && (spec.tag !== 'Alerts' || deps.alerts);
    return surface === 'live' || deps.deliveries;
  });
  const open = served.filter(({ spec }) => spec.role === null);
  for (const route of open) mount(route);
  // Routes registered before this are public. Everything after it requires a key, also unknown paths.
  app.use('/v1/*', requireKey(deps.keyring, parts.failures));
  if (deps.requestLimit) app.use('/v1/*', limitRequests(deps.requestLimit));
  // After authentication, because a body without `Content-Length` is read into memory.
  for (const [path, limit] of limits) app.use(path, limit);
  app.use(
    methodNotAllowed({
      app: toApp(routes),
      onMethodNotAllowed: (c, methods) =>
        problem(c, 'method-not-allowed', {
          detail: `The path supports these methods: ${methods.join(', ')}.`,
          headers: { allow: methods.join(', ') },
        }),
    }),
  );
  for (const route of served) if (!open.includes(route)) mount(route);
  return app;

  function mount(route: Route): void {
    app.on(route.spec.method.toUpperCase(), toPattern(route), route.handler(parts));
  }
}

/** Returns the error handler of an app. */
function respondToErrors({ report }: RouteParts): ErrorHandler<ApiEnv> {
  return (cause, c) => {
    if (cause instanceof NoAccessError) return problem(c, 'forbidden', { detail: NO_ACCESS });
    // Not a failure of Jobwire: the client has closed the connection. It needs no key for this.
    if ('code' in cause && cause.code === 'ECONNRESET' && c.req.raw.signal.aborted) {
      return problem(c, 'invalid-body', { detail: 'The body is incomplete.' });
    }
    report(c, cause);
    if (cause instanceof TableError || cause instanceof IssuerError) {
      const what = cause instanceof IssuerError ? 'identity provider' : 'store';
      return problem(c, 'service-unavailable', { detail: `The ${what} does not respond. Retry later.` });
    }
    return problem(c, 'internal-server-error', {
      detail: 'An unexpected error occurred. It is logged under `requestId`.',
    });
  };
}

/** Returns the part of a URL with invalid percent-encoding, or `undefined` if both are valid. */
export function malformedPart(url: string): 'path' | 'query' | undefined {
  const { pathname, search } = new URL(url);
  if (!isPercentEncoded(pathname)) return 'path';
  return isPercentEncoded(search) ? undefined : 'query';
}

function isPercentEncoded(text: string): boolean {
  try {
    // The result is used, because a bundler may remove a call without effects, although it can throw.
    return decodeURIComponent(text) !== undefined;
  } catch {
    return false;
  }
}

/** Returns an app of routes, also of those that another function serves, so that `Allow` lists every method of a path. */
function toApp(routes: readonly Route[]): Hono<ApiEnv> {
  const app = new Hono<ApiEnv>();
  for (const route of routes) app.on(route.spec.method.toUpperCase(), toPattern(route), (c) => c.notFound());
  return app;
}

function toPattern({ spec }: Route): string {
  return spec.path.replace(/\{(\w+)\}/g, ':$1');
}

/** Returns the event schemas, each built at its first request. */
function createSchemas(baseUrl: string): RouteParts['schemas'] {
  const bodies = new Map<string, StaticBody>();
  return (type) => {
    const known = bodies.get(type);
    if (known) return known;
    // Strict validators reject keywords that JSON Schema does not have.
    const schema = getDataSchema(type, baseUrl, 'examples');
    if (!schema) return undefined;
    const body = toStaticBody(JSON.stringify(schema));
    bodies.set(type, body);
    return body;
  };
}

/** Returns the documents. */
function documentsFrom(read: NonNullable<ApiDeps['readFile']>): Documents {
  const load = createStaticReader(read);
  return { reference: createReference(load, Object.keys(tags)), read: load };
}

function about(c: Context<ApiEnv>): AnsweredRequest {
  return {
    requestId: c.get('requestId'),
    route: c.get('route') ?? null,
    keyId: c.get('caller')?.keyId ?? null,
  };
}
