/** The HTTP API as commands use it: one request, a list over its pages, a stream that comes back by itself. */
import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { createParser } from 'eventsource-parser';

/** What the API is asked with. Absent values are left out. */
export type Query = Readonly<Record<string, string | number | boolean | undefined>>;

/**
 * The API of one Jobwire. What is thrown: {@link ApiError}, {@link UnreachableError}. A request whose connection was cut is sent
 * once more, unless it deletes: a POST has an Idempotency-Key of its own, so nothing is made twice.
 */
export interface Client {
  get<T>(path: string, query?: Query): Promise<T>;
  post<T>(path: string, body?: object, query?: Query): Promise<T>;
  /** `ifMatch` is the revision that it must still have. */
  put<T>(path: string, body: object, ifMatch?: number): Promise<T>;
  patch<T>(path: string, body: object): Promise<T>;
  /** Whether nothing is left of it: the rest of what takes long goes by and by. */
  remove(path: string, query?: Query): Promise<boolean>;
  /** The entries of a list, page by page, at most so many; `more` is told when there would be others. */
  list<T>(
    path: string,
    plural: string,
    query: Query,
    limit: number,
    more: () => void,
    /** The most that the API gives at once. */
    page?: number,
  ): AsyncGenerator<T>;
  /**
   * The events of a stream, each once, for as long as the caller reads. A connection that is lost, or ended by the server,
   * is opened again where it stood.
   */
  follow(path: string, options: FollowOptions): AsyncGenerator<StreamedEvent>;
}

/** An event of a stream and the cursor behind it. */
export interface StreamedEvent {
  readonly id: string;
  /** The envelope, as it was sent. */
  readonly text: string;
}

/** How a stream is followed. */
export interface FollowOptions {
  readonly types?: string | undefined;
  /** A cursor. Absent: from now on. */
  readonly after?: string | undefined;
  readonly onLost?: (why: string) => void;
  readonly onFound?: () => void;
}

/** How a client is made. */
export interface ClientOptions {
  /** As the user gave it. */
  readonly url: string;
  readonly key: string;
  /** For one request, its answer included. */
  readonly timeoutMs?: number;
  /** A stream that says nothing for so long is lost: it has a heartbeat every 15 s. */
  readonly silenceMs?: number;
  /** The longest wait before a stream is opened again. */
  readonly maxBackoffMs?: number;
}

/** The API refused, or failed: its own sentence. */
export class ApiError extends Error {
  override readonly name = 'ApiError';
  readonly status: number;
  readonly requestId: string | null;
  /** The last part of the problem's type. */
  readonly kind: string;
  /** The problem document, if there was one. */
  readonly problem: Readonly<Record<string, unknown>>;
  /** When it asks to be asked again. */
  readonly retryAfterMs: number;

  constructor(answer: Response, sentence: string, problem: Readonly<Record<string, unknown>>) {
    super(sentence);
    this.status = answer.status;
    this.requestId = answer.headers.get('x-request-id');
    this.problem = problem;
    this.retryAfterMs = (Number(answer.headers.get('retry-after')) || 1) * 1000;
    this.kind = String(problem.type ?? '').replace(/^urn:jobwire:problem:/, '');
  }
}

/** No answer of the API came. */
export class UnreachableError extends Error {
  override readonly name = 'UnreachableError';
}

/** There is no key to show. */
export class KeyError extends Error {
  override readonly name = 'KeyError';
}

const TIMEOUT_MS = 60_000;
const SILENCE_MS = 45_000;
const FIRST_BACKOFF_MS = 500;
const MAX_BACKOFF_MS = 30_000;
const PAGE = 500;
/** So many refusals for want of a slot are waited out before they are told. */
const CROWDED_ATTEMPTS = 10;

/** Makes a client. The key is sent to this address alone: redirects are not followed. */
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
    throw await refusal(answer, base);
  }

  /** A request with its whole answer. */
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
        // The first one arrived, and is being done: its answer is the answer.
        const isBusy = cause instanceof ApiError && cause.kind === 'still-in-progress';
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
      /** Behind the last event that was handed on, or that was filtered out. */
      let position: string | undefined;
      let failures = 0;
      let crowded = 0;
      let lost = false;
      let opened = false;
      for (;;) {
        const gone = new AbortController();
        let retryMs = 0;
        try {
          const patience = setTimeout(() => gone.abort(new Error('it does not answer')), silenceMs);
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
              // Before it is handed on: whoever has it never gets it again.
              position = message.id;
              if (message.kind === 'event') yield message;
            }
          }
          // Ended by the server, as every stream is after some minutes: that is no news.
          await sleep(Math.min(retryMs, maxBackoffMs));
          failures += 1;
          if (failures > 1) await sleep(backoff(failures, maxBackoffMs));
        } catch (cause) {
          if (!(cause instanceof ApiError || cause instanceof UnreachableError)) throw cause;
          // What never was open is not lost: say why, and end.
          if (!opened) throw cause;
          if (cause instanceof ApiError && cause.status < 500) {
            crowded += 1;
            if (cause.status !== 429 || crowded > CROWDED_ATTEMPTS) throw cause;
          }
          if (!lost) onLost?.(cause.message);
          lost = true;
          failures += 1;
          await sleep(backoff(failures, maxBackoffMs));
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

/** What a stream says. Ends when it ends; a break or a long silence throws {@link UnreachableError}. */
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
      // A cursor and no event: its id was reported just before.
      if (event === 'cursor') return;
      // The cursor moves with the event, not before it.
      const last = said.at(-1);
      if (last?.kind === 'moved') said.pop();
      said.push({ kind: 'event', id, text: data });
    },
  });
  const decoder = new TextDecoder();
  let watch: NodeJS.Timeout | undefined;
  const listen = (): void => {
    clearTimeout(watch);
    watch = setTimeout(() => gone.abort(new Error('it has fallen silent')), silenceMs);
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

/** Doubling, and a random part of it, so that many that lost the same server don't come back together. */
function backoff(failures: number, most: number): number {
  return Math.min(most, FIRST_BACKOFF_MS * 2 ** (failures - 1)) * (0.5 + Math.random() / 2);
}

async function refusal(answer: Response, base: string): Promise<ApiError | UnreachableError> {
  if (answer.status < 400) {
    const target = answer.headers.get('location');
    const to = target && URL.canParse(target, base) ? ` to ${new URL(target, base).origin}` : '';
    await answer.body?.cancel().catch(() => {});
    return new UnreachableError(
      `${base} redirects${to}, where the key is not sent; give that address instead.`,
    );
  }
  let problem: Record<string, unknown> = {};
  try {
    const read: unknown = JSON.parse((await answer.text()).slice(0, 1_000_000));
    if (typeof read === 'object' && read !== null) problem = { ...read };
  } catch {
    // Whoever answers like that is not Jobwire, or a proxy before it.
  }
  const { detail, title } = problem;
  const words = [detail, title].find((text) => typeof text === 'string' && text !== '');
  const sentence = typeof words === 'string' ? words : `${base} answered with ${answer.status}.`;
  return new ApiError(answer, sentence, problem);
}

function unreachable(base: string, cause: unknown): UnreachableError {
  return new UnreachableError(`${base} can’t be reached: ${whyUnreachable(cause)}.`, { cause });
}

/** The request may have arrived all the same: says so, where that makes a difference. */
function inDoubt(method: string, cause: UnreachableError, repeated = false): UnreachableError {
  const never = /^(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|UND_ERR_CONNECT_TIMEOUT|)$/.test(codeOf(cause.cause));
  if (method === 'GET' || (never && !repeated)) return cause;
  return new UnreachableError(`${cause.message} It may have been done all the same.`, { cause });
}

/** What the system says of a fault: `ECONNRESET`; nothing where it says nothing. */
function codeOf(cause: unknown): string {
  const inner = cause instanceof Error && cause.cause instanceof Error ? cause.cause : cause;
  return String((inner as NodeJS.ErrnoException | undefined)?.code ?? '');
}

function wasCut({ cause }: UnreachableError): boolean {
  return CUT.includes(codeOf(cause));
}

const CUT = ['ECONNRESET', 'UND_ERR_SOCKET', 'EPIPE'];

/** Why a request had no answer, in words. */
export function whyUnreachable(cause: unknown): string {
  if (!(cause instanceof Error)) return String(cause);
  if (cause.name === 'TimeoutError') return 'no answer came in time';
  const inner = cause.cause instanceof Error ? cause.cause : cause;
  const code = codeOf(cause);
  if (CUT.includes(code)) return 'the connection was cut';
  switch (code) {
    case 'ECONNREFUSED':
      return 'nothing listens there';
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return 'its name is not known';
    case 'ETIMEDOUT':
    case 'UND_ERR_CONNECT_TIMEOUT':
    case 'UND_ERR_HEADERS_TIMEOUT':
    case 'UND_ERR_BODY_TIMEOUT':
      return 'no answer came in time';
    default:
      return code === '' ? inner.message.replace(/\.$/, '') : `${inner.message} (${code})`;
  }
}

function notJobwire(base: string): string {
  return `${base} answers, but not as Jobwire does; is that the right address?`;
}
