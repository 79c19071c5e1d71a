import type * as z from 'zod';
import { isHtml, OrderingError } from './errors.ts';

/** One HTTP exchange, as both the client and the token source make it. */
interface ExchangeRequest {
  operation: string;
  url: string;
  init: { method: 'GET' | 'POST'; headers: Record<string, string>; body?: URLSearchParams };
  /** For the whole of it: connecting, waiting and reading the body to its end. */
  timeoutMs: number;
  fetch: typeof globalThis.fetch;
  /** Epoch ms. */
  now: () => number;
  signal?: AbortSignal | undefined;
}

/** What came back, read to its end. Times are epoch ms. */
export interface Exchanged {
  status: number;
  headers: Headers;
  text: string;
  askedAt: number;
  answeredAt: number;
}

/** A full page of 100 jobs is about 60 KB; this only keeps a runaway answer from filling the memory. */
const LARGEST_BODY_BYTES = 32 * 1024 * 1024;

/**
 * Sends one request and reads the answer to its end. Throws OrderingError `timeout`, `network` (no answer began) or
 * `malformed` (it began and was cut short, or never ended); rejects with the signal's own reason when the caller gave up.
 * Redirects are not followed.
 */
export async function exchange(request: ExchangeRequest): Promise<Exchanged> {
  const { operation, url, init, timeoutMs, fetch, now, signal } = request;
  signal?.throwIfAborted();
  // Timer and listener by hand: a signal composed with AbortSignal.any may be collected before it fires, and would
  // leave its listener on a long-lived caller's signal.
  const giveUp = new AbortController();
  const timer = setTimeout(() => giveUp.abort(), timeoutMs);
  const onAbort = () => giveUp.abort();
  signal?.addEventListener('abort', onAbort, { once: true });
  let response: Response | undefined;
  try {
    const askedAt = now();
    response = await fetch(url, { ...init, redirect: 'manual', signal: giveUp.signal });
    const text = await readText(operation, response);
    return { status: response.status, headers: response.headers, text, askedAt, answeredAt: now() };
  } catch (cause) {
    signal?.throwIfAborted();
    if (cause instanceof OrderingError) throw cause;
    const status = response?.status;
    if (giveUp.signal.aborted) {
      throw new OrderingError({
        kind: 'timeout',
        operation,
        status,
        detail: `gave up after ${timeoutMs} ms`,
        cause,
      });
    }
    if (response === undefined) {
      throw new OrderingError({ kind: 'network', operation, detail: codeOf(cause), cause });
    }
    throw new OrderingError({
      kind: 'malformed',
      operation,
      status,
      detail: 'the body was cut short',
      cutShort: true,
      cause,
    });
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener('abort', onAbort);
  }
}

async function readText(operation: string, response: Response): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of response.body ?? []) {
    bytes += chunk.byteLength;
    if (bytes > LARGEST_BODY_BYTES) {
      throw new OrderingError({
        kind: 'malformed',
        operation,
        status: response.status,
        detail: `the body is larger than ${LARGEST_BODY_BYTES} bytes`,
      });
    }
    chunks.push(chunk);
  }
  return new TextDecoder().decode(Buffer.concat(chunks, bytes));
}

/** The system's code for what happened, such as ECONNREFUSED: fetch hides it in its chain of causes. */
function codeOf(error: unknown): string | undefined {
  for (let at: unknown = error; at instanceof Error; at = at.cause) {
    if ('code' in at && typeof at.code === 'string') return at.code;
  }
  return undefined;
}

/**
 * Reads a successful answer as `schema`. Throws OrderingError `malformed` when it is not JSON of that shape, naming the
 * first places that differ but never their values. JSON that does not parse counts as cut short: without a length in the
 * headers, a body that ended early looks exactly like that. The parser's own error is dropped, as it quotes the body.
 */
export function readJson<T>(operation: string, answer: Exchanged, schema: z.ZodType<T>): T {
  const malformed = (detail: string, more: { cutShort?: boolean; cause?: unknown } = {}) =>
    new OrderingError({ kind: 'malformed', operation, status: answer.status, detail, ...more });
  if (isHtml(answer.headers, answer.text)) throw malformed('the answer was an HTML page');
  let body: unknown;
  try {
    body = JSON.parse(answer.text);
  } catch {
    throw malformed(answer.text.trim() === '' ? 'the answer had no body' : 'the body is not JSON', {
      cutShort: true,
    });
  }
  const parsed = schema.safeParse(body);
  if (parsed.success) return parsed.data;
  const places = parsed.error.issues
    .slice(0, 3)
    .map((issue) => `${issue.path.map(String).join('.') || 'body'}: ${issue.message}`)
    .join('; ');
  throw malformed(places, { cause: parsed.error });
}

/**
 * `promise`, unless `signal` fires first: then a rejection with the signal's reason, at once. The work behind the promise
 * goes on for whoever else waits for it, and its later failure is not reported as unhandled.
 */
export function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (!signal) return promise;
  return new Promise<T>((resolve, reject) => {
    const onAbort = () => reject(signal.reason);
    signal.addEventListener('abort', onAbort, { once: true });
    if (signal.aborted) onAbort();
    promise.then(resolve, reject).finally(() => signal.removeEventListener('abort', onAbort));
  });
}

/**
 * A configured address without its trailing slashes, so that paths can be put behind it. Throws TypeError, without
 * quoting it, for anything but http(s), or with a user name, a query or a fragment: those belong to no base address.
 */
export function baseAddress(name: string, address: string): string {
  const url = URL.canParse(address) ? new URL(address) : undefined;
  if (!url || !/^https?:$/.test(url.protocol) || url.username || url.password || url.search || url.hash) {
    throw new TypeError(`${name} must be a plain http(s) address, with nothing but a host and a path`);
  }
  return url.href.replace(/\/+$/, '');
}
