/** Typed client of the HTTP API: single requests, lists over all pages, and streams that reconnect. Free of Node. */
import createHttp from 'openapi-fetch';
import { splitCsvRows } from '../shared/csv.ts';
import { sleep } from '../shared/retry.ts';
import {
  ApiError,
  isConnectionReset,
  markPossiblyProcessed,
  toError,
  toUnexpectedResponseError,
  toUnreachableError,
  UnreachableError,
} from './errors.ts';
import type { Paths, StreamPaths } from './paths.ts';
import { createStreams, type Streams } from './stream.ts';

type Method = 'get' | 'post' | 'put' | 'patch' | 'delete';
/** Paths that support a method. */
type PathWith<M extends Method> = {
  [P in keyof Paths]: Paths[P] extends Record<M, unknown> ? P : never;
}[keyof Paths];
type Operation<M extends Method, P extends keyof Paths> = Paths[P][M & keyof Paths[P]];
/** Data of the response of an operation: `ResponseData<'get', '/v1/accounts/{id}'>`. */
export type ResponseData<M extends Method, P extends PathWith<M>> = Operation<M, P>['data' &
  keyof Operation<M, P>];
/** Parameters and body of an operation, and a signal that cancels it. */
type Init<O> = Omit<O, 'data'> & { readonly signal?: AbortSignal | undefined };
/** The argument is optional if the operation requires none of its parts. */
type Arguments<I> = Record<never, never> extends I ? [init?: I] : [init: I];
type Call<M extends Method> = <P extends PathWith<M>>(
  path: P,
  ...init: Arguments<Init<Operation<M, P>>>
) => Promise<ResponseData<M, P>>;
/** Names of the arrays of a page. */
type ArrayKey<D> = { [K in keyof D]: D[K] extends readonly unknown[] ? K : never }[keyof D];
/** Paths of lists. */
type ListPath = {
  [P in PathWith<'get'>]: ResponseData<'get', P> extends { readonly next: string | null } ? P : never;
}[PathWith<'get'>];
type Item<T> = T extends readonly (infer I)[] ? I : never;

/** Options of a list. */
export interface ListOptions {
  /** Maximum number of entries. Default: all. */
  readonly max?: number;
  /** Maximum number of entries of one page, in place of `limit`. Default: 500. Set it for lists that accept fewer. */
  readonly pageSize?: number;
  /** Called at the end if there are more than `max` entries. */
  readonly onMore?: () => void;
}

/**
 * Client of one Jobwire. Every failed request throws an {@link ApiError} or an {@link UnreachableError}. A request whose connection was
 * cut is repeated once, unless it is a DELETE. Each POST has its own Idempotency-Key, so it is executed once.
 */
export interface Client extends Streams {
  readonly get: Call<'get'>;
  readonly post: Call<'post'>;
  readonly put: Call<'put'>;
  readonly patch: Call<'patch'>;
  /** Deletes a resource. Returns whether the deletion is complete. If not, repeat the request: on AWS, only further requests continue it. */
  delete<P extends PathWith<'delete'>>(
    path: P,
    ...init: Arguments<Init<Operation<'delete', P>>>
  ): Promise<boolean>;
  /** Yields the entries of a list over all pages. A feed ends at its last event. `field`: name of the array in the response. */
  list<P extends PathWith<'get'>, F extends ArrayKey<ResponseData<'get', P>>>(
    path: P,
    field: F,
    ...init: Arguments<Init<Operation<'get', P>> & ListOptions>
  ): AsyncGenerator<Item<ResponseData<'get', P>[F]>, void>;
  /** Yields a list as CSV, one text for each page. Together they are one file, with one row of column names. */
  csv<P extends ListPath>(
    path: P,
    ...init: Arguments<Init<Operation<'get', P>> & ListOptions>
  ): AsyncGenerator<string, void>;
}

/** Options of a client. */
export interface ClientOptions {
  /** Base URL of Jobwire. */
  readonly url: string;
  /**
   * API key or ID token, or a function that returns the current one before each request. It is sent to `url` only: redirects are not
   * followed.
   */
  readonly key: string | (() => Promise<string>);
  /** Whether cookies are sent to the same origin. Default: `omit`. */
  readonly credentials?: 'omit' | 'same-origin';
  /** Timeout of one request with its response. Default: 60 seconds. */
  readonly timeoutMs?: number;
  /** Called after each 401. */
  readonly onUnauthorized?: (error: ApiError) => void;
}

/** Returns the header of a change that requires a revision of the resource. `undefined`: any revision. */
export function ifMatch(revision: number | undefined): { 'If-Match'?: string } {
  return revision === undefined ? {} : { 'If-Match': `"${revision}"` };
}

type Query = Readonly<Record<string, unknown>>;

/** Input of a request; exact types are those of {@link Client}. */
interface AnyInit extends ListOptions {
  readonly params?: { readonly query?: Query };
  readonly body?: unknown;
  readonly signal?: AbortSignal | undefined;
}

/** Signals that cancel a request. */
interface Signals {
  readonly caller: AbortSignal | undefined;
  readonly timeout?: AbortSignal;
}

/** Creates a client. */
export function createClient(options: ClientOptions): Client {
  const { key, timeoutMs = 60_000, credentials = 'omit', onUnauthorized } = options;
  const base = options.url.replace(/\/+$/, '');
  // biome-ignore lint/suspicious/noExplicitAny: the exact types are those of Client
  const http = createHttp<any>({ baseUrl: base });

  async function send({ url, method, headers }: Request, body: string, signals: Signals): Promise<Response> {
    const { caller, timeout } = signals;
    headers.set('authorization', `Bearer ${typeof key === 'string' ? key : await key()}`);
    let response: Response;
    try {
      response = await fetch(url, {
        ...{ method, headers, redirect: 'manual', cache: 'no-store', credentials },
        body: body || null,
        signal: AbortSignal.any([caller, timeout].filter((signal) => signal !== undefined)),
      });
    } catch (cause) {
      throw toCallerError(cause, caller);
    }
    if (response.ok) return response;
    const error = await toError(response, base);
    if (error instanceof ApiError && error.status === 401) onUnauthorized?.(error);
    throw error;
  }

  function toCallerError(cause: unknown, caller: Signals['caller']): unknown {
    return caller?.aborted ? cause : toUnreachableError(base, cause);
  }

  /** Sends a request and reads its whole response. */
  async function exchange(request: Request, body: string, caller: Signals['caller']): Promise<Response> {
    const response = await send(request, body, { caller, timeout: AbortSignal.timeout(timeoutMs) });
    try {
      return new Response((await response.text()) || null, response);
    } catch (cause) {
      throw toCallerError(cause, caller);
    }
  }

  /** Sends a request, and once again if its connection was cut. */
  async function exchangeAgain(request: Request, caller: Signals['caller']): Promise<Response> {
    const { method } = request;
    const body = await request.text();
    let first: UnreachableError;
    try {
      return await exchange(request, body, caller);
    } catch (cause) {
      if (!(cause instanceof UnreachableError)) throw cause;
      if (method === 'DELETE' || !isConnectionReset(cause)) throw markPossiblyProcessed(method, cause);
      first = cause;
    }
    for (const until = Date.now() + timeoutMs; ; ) {
      try {
        return await exchange(request, body, caller);
      } catch (cause) {
        if (cause instanceof UnreachableError) throw markPossiblyProcessed(method, cause, true);
        // The first request may have changed the revision.
        if (cause instanceof ApiError && cause.status === 412)
          throw markPossiblyProcessed(method, first, true);
        // The first request arrived and is in progress: its response is the one that counts.
        const waitMs =
          cause instanceof ApiError && cause.kind === 'request-in-progress'
            ? (cause.retryAfterSeconds ?? 1) * 1000
            : undefined;
        if (waitMs === undefined || Date.now() + waitMs > until) throw cause;
        await sleep(waitMs, caller);
        caller?.throwIfAborted();
      }
    }
  }

  async function request(
    method: Method,
    path: string,
    { signal, params, body }: AnyInit = {},
    csv?: { readonly accept: string },
  ) {
    try {
      return await http.request(method, path, {
        ...{ params, body },
        headers: csv ?? (method === 'post' ? { 'Idempotency-Key': createRandomId() } : {}),
        ...(csv ? { parseAs: 'text' } : {}),
        fetch: (sent: Request) => exchangeAgain(sent, signal),
      });
    } catch (cause) {
      throw cause instanceof SyntaxError ? toUnexpectedResponseError(base, cause) : cause;
    }
  }

  async function* list(path: string, field: string, init: AnyInit = {}) {
    const { max = Number.POSITIVE_INFINITY, pageSize = 500, onMore, ...rest } = init;
    let left = max;
    let query: Query | undefined = rest.params?.query ?? {};
    do {
      const page: Query = { ...query, limit: Math.min(pageSize, left) };
      const { data } = await request('get', path, { ...rest, params: { ...rest.params, query: page } });
      const entries = data?.[field];
      if (!Array.isArray(entries)) throw toUnexpectedResponseError(base);
      yield* entries.slice(0, left);
      left -= entries.length;
      query = findNextPage(query, data);
    } while (query !== undefined && left > 0);
    if (query !== undefined || left < 0) onMore?.();
  }

  async function* csv(path: string, init: AnyInit = {}) {
    const { max = Number.POSITIVE_INFINITY, pageSize = 500, onMore, ...rest } = init;
    let left = max;
    let query: Query | undefined = rest.params?.query ?? {};
    for (let accept = 'text/csv'; query !== undefined && left > 0; accept = 'text/csv;header=absent') {
      const page: Query = { ...query, limit: Math.min(pageSize, left) };
      const { data, response } = await request(
        ...(['get', path, { ...rest, params: { ...rest.params, query: page } }] as const),
        { accept },
      );
      const { headers } = response;
      if (!headers.get('content-type')?.startsWith('text/csv')) throw toUnexpectedResponseError(base);
      const rows = splitCsvRows(String(data ?? ''));
      const names = accept === 'text/csv' ? 1 : 0;
      yield rows.slice(0, names + left).join('');
      left -= rows.length - names;
      const [, next] = /^<\?([^>]*)>; rel="next"$/.exec(headers.get('link') ?? '') ?? [];
      query = next === undefined ? undefined : Object.fromEntries(new URLSearchParams(next));
    }
    if (query !== undefined || left < 0) onMore?.();
  }

  const call = (method: Method) => async (path: string, init?: AnyInit) =>
    (await request(method, path, init)).data;
  const client = {
    get: call('get'),
    post: call('post'),
    put: call('put'),
    patch: call('patch'),
    delete: async (path: string, init?: AnyInit) =>
      (await request('delete', path, init)).response.status !== 202,
    ...{ list, csv },
    ...createStreams(base, async (path: keyof StreamPaths, { params }, signal) => {
      const { response } = await http.request('get', path, {
        ...{ params, parseAs: 'stream', headers: { accept: 'text/event-stream' } },
        fetch: (sent: Request) => send(sent, '', { caller: signal }),
      });
      return response;
    }),
  };
  return client as unknown as Client;
}

/** Returns the query of the page after `data`. `undefined` at the end of the list; a feed ends at its last event. */
function findNextPage(query: Query, data: Query): Query | undefined {
  const { next, previous, head } = data;
  const [name, cursor] =
    previous === undefined ? (['after', next] as const) : (['before', previous] as const);
  if (typeof cursor !== 'string' || cursor === head || cursor === query[name]) return undefined;
  const { last: _, ...others } = query;
  return { ...others, [name]: cursor };
}

/** Returns a random id. `randomUUID` is not available in browsers without TLS. */
function createRandomId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');
}
