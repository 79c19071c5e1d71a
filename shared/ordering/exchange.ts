import { Readable } from 'node:stream';
import type * as z from 'zod';
import { findCode } from '../error-codes.ts';
import { isHtml, OrderingError } from './errors.ts';
import { exceedsMaxValues, MAX_VALUES } from './json-text.ts';
import type { Fetch, FetchResponse } from './transport.ts';

/** One HTTP exchange of the client or the token source. */
interface ExchangeRequest {
  operation: string;
  url: string;
  init: { method: 'GET' | 'POST'; headers: Record<string, string>; body?: URLSearchParams };
  /** Timeout of the whole exchange: connecting, waiting and reading the body to its end (ms). */
  timeoutMs: number;
  fetch: Fetch;
  /** Returns the current time in epoch ms. */
  now: () => number;
  signal?: AbortSignal | undefined;
}

/** A complete answer. Times are epoch ms. */
export interface Exchanged {
  status: number;
  headers: FetchResponse['headers'];
  text: string;
  requestedAt: number;
  respondedAt: number;
}

/** Maximum size of a decompressed answer. A full page of 100 jobs is about 60 kB. */
const MAX_BODY_BYTES = 4 * 1024 * 1024;
const UTF8 = new TextDecoder();

/**
 * Sends one request and reads the complete answer. Throws `OrderingError` `timeout`, `network` (no answer
 * started) or `malformed` (it started and was truncated, or never ended). Rejects with the signal's own
 * reason if the caller aborted. Does not follow redirects.
 */
export async function exchange(request: ExchangeRequest): Promise<Exchanged> {
  const { operation, url, init, timeoutMs, fetch, now, signal } = request;
  signal?.throwIfAborted();
  // Explicit timer and listener: a signal from AbortSignal.any may be garbage-collected before it fires, and
  // would leave its listener on a long-lived caller's signal.
  const giveUp = new AbortController();
  const timer = setTimeout(() => giveUp.abort(), timeoutMs);
  const onAbort = () => giveUp.abort();
  signal?.addEventListener('abort', onAbort, { once: true });
  let response: FetchResponse | undefined;
  try {
    const requestedAt = now();
    response = await fetch(url, { ...init, redirect: 'manual', signal: giveUp.signal });
    const text = await readText(operation, response);
    return { status: response.status, headers: response.headers, text, requestedAt, respondedAt: now() };
  } catch (cause) {
    signal?.throwIfAborted();
    if (cause instanceof OrderingError) throw cause;
    const status = response?.status;
    if (giveUp.signal.aborted) {
      throw new OrderingError({
        kind: 'timeout',
        operation,
        status,
        detail: `${timeoutMs} ms`,
        cause,
      });
    }
    if (response === undefined) {
      throw new OrderingError({ kind: 'network', operation, detail: findCode(cause), cause });
    }
    throw new OrderingError({
      kind: 'malformed',
      operation,
      status,
      detail: 'the body was truncated',
      cutShort: true,
      cause,
    });
  } finally {
    clearTimeout(timer);
    signal?.removeEventListener('abort', onAbort);
  }
}

async function readText(operation: string, response: FetchResponse): Promise<string> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  await forEachChunk(response.body, (chunk) => {
    bytes += chunk.byteLength;
    if (bytes > MAX_BODY_BYTES) {
      throw new OrderingError({
        kind: 'malformed',
        operation,
        status: response.status,
        detail: `the body is larger than ${MAX_BODY_BYTES} bytes`,
      });
    }
    chunks.push(chunk);
  });
  const [only] = chunks;
  return UTF8.decode(only && chunks.length === 1 ? only : Buffer.concat(chunks, bytes));
}

/**
 * Reads a body to its end. Rejects with the error of `take`, or if the body is truncated. The iterator of a stream takes a third
 * of the CPU time of a request, and its events almost none.
 */
async function forEachChunk(body: FetchResponse['body'], take: (chunk: Uint8Array) => void): Promise<void> {
  if (!(body instanceof Readable)) {
    for await (const chunk of body ?? []) take(chunk);
    return;
  }
  await new Promise<void>((resolve, reject) => {
    body.on('data', (chunk: Uint8Array) => {
      try {
        take(chunk);
      } catch (cause) {
        reject(cause);
        body.destroy();
      }
    });
    body.on('end', resolve);
    body.on('error', reject);
  });
}

/**
 * Parses a successful answer as `schema`. Throws `OrderingError` `malformed` if it is not JSON of that
 * shape. The error names the first differing paths, but never their values.
 *
 * JSON that does not parse counts as truncated: without a length in the headers, a body that ended early
 * has exactly this form. The error of the parser is dropped, because it quotes the body.
 */
export function readJson<T>(operation: string, answer: Exchanged, schema: z.ZodType<T>): T {
  const malformed = (detail: string, more: { cutShort?: boolean; cause?: unknown } = {}) =>
    new OrderingError({ kind: 'malformed', operation, status: answer.status, detail, ...more });
  if (isHtml(answer.headers, answer.text)) throw malformed('the response was an HTML page');
  if (exceedsMaxValues(answer.text)) throw malformed(`the body contains more than ${MAX_VALUES} values`);
  let body: unknown;
  try {
    body = JSON.parse(answer.text);
  } catch {
    throw malformed(answer.text.trim() === '' ? 'the response had no body' : 'the body is not JSON', {
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
 * Returns `promise`, but rejects at once with the signal's reason if `signal` fires first. The underlying
 * work continues for other waiting callers, and its later failure is not reported as unhandled.
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
 * Returns a configured address without trailing slashes, so that paths can be appended. Throws `TypeError`,
 * without quoting the address, for a scheme other than http(s), or for a user name, a query or a fragment:
 * a base address has none of these.
 */
export function baseAddress(name: string, address: string): string {
  const url = URL.canParse(address) ? new URL(address) : undefined;
  if (!url || !/^https?:$/.test(url.protocol) || url.username || url.password || url.search || url.hash) {
    throw new TypeError(`${name} must be an http or https URL that consists only of a host and a path`);
  }
  return url.href.replace(/\/+$/, '');
}
