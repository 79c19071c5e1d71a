/** HTTP API client of the CLI: single requests, lists over all pages, and streams that reconnect. */

import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { createParser } from 'eventsource-parser';
import { backoff, HALF_JITTER, withJitter } from '../shared/retry.ts';

/** Query parameters. Absent values are omitted. */
export type Query = Readonly<Record<string, string | number | boolean | undefined>>;

/**
 * Client of one Jobwire's API. Throws {@link ApiError} and {@link UnreachableError}. Repeats a request once if its connection was cut,
 * unless it is a DELETE. Each POST has its own Idempotency-Key, so nothing is created twice.
 */
export interface Client {
  get<T>(path: string, query?: Query): Promise<T>;
  post<T>(path: string, body?: object, query?: Query): Promise<T>;
  /** `ifMatch`: revision that the resource must still have. */
  put<T>(path: string, body: object, ifMatch?: number): Promise<T>;
  patch<T>(path: string, body: object): Promise<T>;
  /** Deletes a resource. Returns whether the deletion is complete. Large ones complete in the background. */
  remove(path: string, query?: Query): Promise<boolean>;
  /** Yields the entries of a list, page by page, up to a maximum. Calls `more` if there are further entries. */
  list<T>(
    path: string,
    plural: string,
    query: Query,
    limit: number,
    more: () => void,
    /** Maximum page size of the API. */
    page?: number,
  ): AsyncGenerator<T>;
  /** Yields the events of a stream, each once, for as long as the caller reads. Reopens a lost or ended connection at its last position. */
  follow(path: string, options: FollowOptions): AsyncGenerator<StreamedEvent>;
}

/** An event of a stream and the cursor after it. */
export interface StreamedEvent {
  readonly id: string;
  /** The envelope, as received. */
  readonly text: string;
}

/** Options of following a stream. */
export interface FollowOptions {
  readonly types?: string | undefined;
  /** A cursor. Default: only new events. */
  readonly after?: string | undefined;
  readonly onLost?: (why: string) => void;
  readonly onFound?: () => void;
}

/** Options of a client. */
export interface ClientOptions {
  /** As given by the user. */
  readonly url: string;
  readonly key: string;
  /** Timeout of one request, including its response. */
  readonly timeoutMs?: number;
  /** Time without data after which a stream counts as lost. The server sends a heartbeat every 15 s. */
  readonly silenceMs?: number;
  /** Maximum wait before a stream is reopened. */
  readonly maxBackoffMs?: number;
}

/** Error response of the API, with the API's own message. */
export class ApiError extends Error {
  override readonly name = 'ApiError';
  readonly status: number;
  readonly requestId: string | null;
  /** Last segment of the problem's `type`. */
  readonly kind: string;
  /** The problem document, if there is one. */
  readonly problem: Readonly<Record<string, unknown>>;
  /** Time after which the API asks to retry. */
  readonly retryAfterMs: number;

  constructor(response: Response, message: string, problem: Readonly<Record<string, unknown>>) {
    super(message);
    this.status = response.status;
    this.requestId = response.headers.get('x-request-id');
    this.problem = problem;
    this.retryAfterMs = (Number(response.headers.get('retry-after')) || 1) * 1000;
    this.kind = String(problem.type ?? '').replace(/^urn:jobwire:problem:/, '');
  }
}

/** The API did not respond. */
export class UnreachableError extends Error {
  override readonly name = 'UnreachableError';
}

/** No API key is available. */
export class KeyError extends Error {
  override readonly name = 'KeyError';
}

const TIMEOUT_MS = 60_000;
const SILENCE_MS = 45_000;
const FIRST_BACKOFF_MS = 500;
const MAX_BACKOFF_MS = 30_000;
const PAGE = 500;
/** Number of attempts while the API has no free slot, before the error is reported. */
const CROWDED_ATTEMPTS = 10;

/** Creates a client. The key is sent to this address only: redirects are not followed. */
export function createClient(options: ClientOptions): Client {
  const { key, timeoutMs = TIMEOUT_MS, silenceMs = SILENCE_MS, maxBackoffMs = MAX_BACKOFF_MS } = options;
  const base = options.url.replace(/\/+$/, '');

  function address(path: string, query: Query = {}): string {
    const parameters = new URLSearchParams();
    for (const [name, value] of Object.entries(query)) {
      if (value !== undefined) parameters.set(name, String(value));
    }
    const text = parameters.toString();
    return base + path + (text === '' ? '' : `?${text}`);
  }

  async function send(url: string, init: RequestInit): Promise<Response> {
    let answer: Response;
    try {
      answer = await fetch(url, {
        redirect: 'manual',
        ...init,
        headers: { authorization: `Bearer ${key}`, ...init.headers },
      });
    } catch (cause) {
      throw unreachable(base, cause);
    }
    if (answer.ok) return answer;
    throw await rejection(answer, base);
  }

  /** Sends a request and reads its whole response. */
  async function exchange(url: string, init: RequestInit) {
    const answer = await send(url, { ...init, signal: AbortSignal.timeout(timeoutMs) });
    try {
      return { status: answer.status, text: await answer.text() };
    } catch (cause) {
      throw unreachable(base, cause);
    }
  }

  async function request(method: string, path: string, query?: Query, body?: object, ifMatch?: number) {
    const url = address(path, query);
    const init = {
      method,
      headers: {
        accept: 'application/json',
        ...(body ? { 'content-type': 'application/json' } : {}),
        ...(method === 'POST' ? { 'idempotency-key': randomUUID() } : {}),
        ...(ifMatch === undefined ? {} : { 'if-match': `"${ifMatch}"` }),
      },
      ...(body ? { body: JSON.stringify(body) } : {}),
    };
    try {
      return await exchange(url, init);
    } catch (cause) {
      if (!(cause instanceof UnreachableError)) throw cause;
      if (method === 'DELETE' || !wasCut(cause)) throw inDoubt(method, cause);
    }
    for (const until = Date.now() + timeoutMs; ; ) {
      try {
        return await exchange(url, init);
      } catch (cause) {
        if (cause instanceof UnreachableError) throw inDoubt(method, cause, true);
        // The first request arrived and is in progress: its response is the one that counts.
        const isBusy = cause instanceof ApiError && cause.kind === 'request-in-progress';
        if (!isBusy || Date.now() + cause.retryAfterMs > until) throw cause;
        await sleep(cause.retryAfterMs);
      }
    }
  }

  async function ask<T>(...asked: Parameters<typeof request>): Promise<T> {
    const { text } = await request(...asked);
    try {
      return (text === '' ? {} : JSON.parse(text)) as T;
    } catch (cause) {
      throw new UnreachableError(notJobwire(base), { cause });
    }
  }

  return {
    get: (path, query) => ask('GET', path, query),
    post: (path, body, query) => ask('POST', path, query, body),
    put: (path, body, ifMatch) => ask('PUT', path, {}, body, ifMatch),
    patch: (path, body) => ask('PATCH', path, {}, body),
    remove: async (path, query) => (await request('DELETE', path, query)).status !== 202,

    async *list<T>(
      path: string,
      plural: string,
      query: Query,
      limit: number,
      more: () => void,
      most: number = PAGE,
    ) {
      let left = limit;
      let after: string | undefined;
      do {
        const asked = { ...query, limit: Math.min(most, left), after };
        const page = await ask<Record<string, unknown>>('GET', path, asked);
        const entries = page[plural];
        if (!Array.isArray(entries)) throw new UnreachableError(notJobwire(base));
        yield* entries.slice(0, left) as T[];
        left -= entries.length;
        after = typeof page.next === 'string' ? page.next : undefined;
      } while (after !== undefined && left > 0);
      if (after !== undefined || left < 0) more();
    },

    async *follow(path, { types, after, onLost, onFound }) {
      /** Cursor after the last event that was yielded or filtered out. */
      let position: string | undefined;
      let failures = 0;
      let crowded = 0;
      let lost = false;
      let opened = false;
      for (;;) {
        const gone = new AbortController();
        let retryMs = 0;
        try {
          const patience = setTimeout(() => gone.abort(new Error('it does not respond')), silenceMs);
          const answer = await send(address(path, { types, ...(position === undefined ? { after } : {}) }), {
            signal: gone.signal,
            headers: {
              accept: 'text/event-stream',
              ...(position === undefined ? {} : { 'last-event-id': position }),
            },
          }).finally(() => clearTimeout(patience));
          if (lost) onFound?.();
          lost = false;
          opened = true;
          crowded = 0;
          for await (const message of messages(answer, gone, silenceMs)) {
            failures = 0;
            if (message.kind === 'retry') retryMs = message.ms;
            else {
              // Set before the event is yielded, so that no event is yielded twice.
              position = message.id;
              if (message.kind === 'event') yield message;
            }
          }
          // The server ends every stream after some minutes: that is not an error.
          await sleep(Math.min(retryMs, maxBackoffMs));
          failures += 1;
          if (failures > 1) await sleep(reconnectWait(failures, maxBackoffMs));
        } catch (cause) {
          if (!(cause instanceof ApiError || cause instanceof UnreachableError)) throw cause;
          // A stream that never opened is not lost: report the reason and end.
          if (!opened) throw cause;
          if (cause instanceof ApiError && cause.status < 500) {
            crowded += 1;
            if (cause.status !== 429 || crowded > CROWDED_ATTEMPTS) throw cause;
          }
          if (!lost) onLost?.(cause.message);
          lost = true;
          failures += 1;
          await sleep(reconnectWait(failures, maxBackoffMs));
        } finally {
          gone.abort();
        }
      }
    },
  };
}

type Message =
  | { readonly kind: 'event'; readonly id: string; readonly text: string }
  | { readonly kind: 'moved'; readonly id: string }
  | { readonly kind: 'retry'; readonly ms: number };

/** Yields the messages of a stream and ends with it. A break or a long silence throws {@link UnreachableError}. */
async function* messages(
  answer: Response,
  gone: AbortController,
  silenceMs: number,
): AsyncGenerator<Message> {
  if (!answer.body || !answer.headers.get('content-type')?.startsWith('text/event-stream')) {
    throw new UnreachableError(notJobwire(new URL(answer.url).origin));
  }
  const said: Message[] = [];
  let id = '';
  const parser = createParser({
    onId: (given) => {
      id = given;
      said.push({ kind: 'moved', id });
    },
    onRetry: (ms) => said.push({ kind: 'retry', ms }),
    onEvent: ({ event, data }) => {
      // A cursor without an event: its id was reported just before.
      if (event === 'cursor') return;
      // The cursor advances with the event, not before it.
      const last = said.at(-1);
      if (last?.kind === 'moved') said.pop();
      said.push({ kind: 'event', id, text: data });
    },
  });
  const decoder = new TextDecoder();
  let watch: NodeJS.Timeout | undefined;
  const listen = (): void => {
    clearTimeout(watch);
    watch = setTimeout(() => gone.abort(new Error('no data was received')), silenceMs);
  };
  try {
    listen();
    for await (const chunk of answer.body as unknown as AsyncIterable<Uint8Array>) {
      clearTimeout(watch);
      parser.feed(decoder.decode(chunk, { stream: true }));
      yield* said.splice(0);
      listen();
    }
  } catch (cause) {
    throw unreachable(new URL(answer.url).origin, gone.signal.aborted ? gone.signal.reason : cause);
  } finally {
    clearTimeout(watch);
  }
}

/** Returns the wait after this number of failures: exponential with jitter, so that clients of one failed server do not return together. */
function reconnectWait(failures: number, most: number): number {
  return withJitter(
    backoff(failures - 1, { first: FIRST_BACKOFF_MS, max: most }),
    HALF_JITTER,
    Math.random(),
  );
}

async function rejection(answer: Response, base: string): Promise<ApiError | UnreachableError> {
  if (answer.status < 400) {
    const target = answer.headers.get('location');
    const to = target && URL.canParse(target, base) ? ` to ${new URL(target, base).origin}` : '';
    await answer.body?.cancel().catch(() => {});
    return new UnreachableError(
      `${base} redirects${to}. The API key is not sent there. Use that address instead.`,
    );
  }
  let problem: Record<string, unknown> = {};
  try {
    const read: unknown = JSON.parse((await answer.text()).slice(0, 1_000_000));
    if (typeof read === 'object' && read !== null) problem = { ...read };
  } catch {
    // Such a response comes from neither Jobwire nor a proxy in front of it.
  }
  const { detail, title } = problem;
  const text = [detail, title].find((one) => typeof one === 'string' && one !== '');
  const message = typeof text === 'string' ? text : `${base} responded with HTTP ${answer.status}.`;
  return new ApiError(answer, message, problem);
}

function unreachable(base: string, cause: unknown): UnreachableError {
  return new UnreachableError(`${base} can’t be reached: ${whyUnreachable(cause)}.`, { cause });
}

/** Adds to the error that the request may have arrived, where that matters. */
function inDoubt(method: string, cause: UnreachableError, repeated = false): UnreachableError {
  const never = /^(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|UND_ERR_CONNECT_TIMEOUT|)$/.test(codeOf(cause.cause));
  if (method === 'GET' || (never && !repeated)) return cause;
  return new UnreachableError(`${cause.message} The request may have been processed.`, { cause });
}

/** Returns the system's error code, such as `ECONNRESET`, or an empty string. */
function codeOf(cause: unknown): string {
  const inner = cause instanceof Error && cause.cause instanceof Error ? cause.cause : cause;
  return String((inner as NodeJS.ErrnoException | undefined)?.code ?? '');
}

function wasCut({ cause }: UnreachableError): boolean {
  return CUT.includes(codeOf(cause));
}

const CUT = ['ECONNRESET', 'UND_ERR_SOCKET', 'EPIPE'];

/** Returns the reason for a missing response as text. */
export function whyUnreachable(cause: unknown): string {
  if (!(cause instanceof Error)) return String(cause);
  if (cause.name === 'TimeoutError') return 'the request timed out';
  const inner = cause.cause instanceof Error ? cause.cause : cause;
  const code = codeOf(cause);
  if (CUT.includes(code)) return 'the connection was cut';
  switch (code) {
    case 'ECONNREFUSED':
      return 'the connection was refused';
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return 'the host name can’t be resolved';
    case 'ETIMEDOUT':
    case 'UND_ERR_CONNECT_TIMEOUT':
    case 'UND_ERR_HEADERS_TIMEOUT':
    case 'UND_ERR_BODY_TIMEOUT':
      return 'the request timed out';
    default:
      return code === '' ? inner.message.replace(/\.$/, '') : `${inner.message} (${code})`;
  }
}

function notJobwire(base: string): string {
  return `${base} responds, but not as Jobwire does. Check the address.`;
}
