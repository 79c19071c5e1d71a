// Reads request bodies, creates answers, and writes them to the socket.

import { STATUS_CODES } from 'node:http';
import type { HttpBindings } from '@hono/node-server';
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response';
import type { Context } from 'hono';
import { routePath } from 'hono/route';

/** A complete answer: status, headers (content-length is added when it is sent) and body text. */
export interface HttpResponse {
  status: number;
  headers: Record<string, string>;
  body: string;
}

/** Hono's types for the sandbox's apps: the socket is at hand, since some faults are about the socket. */
export type SandboxEnv = { Bindings: HttpBindings };

/**
 * Returned by a handler that has already handled the connection. A clone is a `Response` of Node: another server of this
 * process may have replaced the global one by one whose instances the adapter always writes.
 */
export const ALREADY_SENT = RESPONSE_ALREADY_SENT.clone();

/** A JSON answer; a string is sent as serialized JSON. */
export function json(value: unknown, status = 200, headers: Record<string, string> = {}): HttpResponse {
  const body = typeof value === 'string' ? value : JSON.stringify(value);
  return { status, headers: { 'content-type': 'application/json; charset=utf-8', ...headers }, body };
}

/** A success without a body. */
export const NO_CONTENT: HttpResponse = { status: 204, headers: {}, body: '' };

/** An RFC 7807 problem; with `errors` (messages by field), a validation failure. */
export function problem(
  status: number,
  detail: string,
  instance: string,
  errors?: Record<string, string[]>,
): HttpResponse {
  const body = {
    type: `https://transfers.example/problems/${errors ? 'validation' : status}`,
    title: errors ? 'One or more validation errors occurred.' : (STATUS_CODES[status] ?? 'Error'),
    status,
    detail,
    instance,
    ...(errors && { errors }),
  };
  return json(body, status, {
    'content-type': 'application/problem+json; charset=utf-8',
    ...(status === 401 && { 'www-authenticate': 'Bearer' }),
  });
}

/** Maximum size of a body. */
const MOST_BODY_BYTES = 1024 * 1024;

/** Reason of an incomplete body. */
export const TOO_LARGE = `The body is larger than ${MOST_BODY_BYTES} bytes.`;

/** The client disconnected while sending its body. */
class BodyLostError extends Error {
  constructor(options: ErrorOptions) {
    super('The request ended before its body did.', options);
    this.name = 'BodyLostError';
  }
}

/** The body as text, or TOO_LARGE, which discards the rest. */
export async function readBody(c: Context<SandboxEnv>): Promise<string | undefined> {
  try {
    const length = c.req.header('content-length');
    if (length !== undefined) return Number(length) > MOST_BODY_BYTES ? undefined : await c.req.text();
    const reader = c.req.raw.body?.getReader();
    if (!reader) return '';
    const chunks: Uint8Array[] = [];
    let bytes = 0;
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return new TextDecoder().decode(Buffer.concat(chunks));
      bytes += value.length;
      if (bytes > MOST_BODY_BYTES) {
        // A client reads no answer while it is still sending, so the rest is read and discarded.
        void discard(reader);
        return undefined;
      }
      chunks.push(value);
    }
  } catch (cause) {
    throw new BodyLostError({ cause });
  }
}

async function discard(reader: ReadableStreamDefaultReader<Uint8Array>): Promise<void> {
  try {
    while (!(await reader.read()).done);
  } catch {
    // The client disconnected.
  }
}

/** The path as sent, percent-encoded: the `instance` of problems. */
export function requestPath(c: Context<SandboxEnv>): string {
  const { url } = c.req;
  const from = url.indexOf('/', url.indexOf('//') + 2);
  const query = url.indexOf('?', from);
  return query < 0 ? url.slice(from) : url.slice(from, query);
}

/** A JSON answer; 404 with a message if there is no value. */
export function jsonOr404(value: object | undefined, missing: string, instance: string): HttpResponse {
  return value ? json(value) : problem(404, missing, instance);
}

/**
 * Answers an unexpected error with 500, and logs route, error class and location to stderr, without content of the request or
 * the error. A client that disconnected while sending gets no answer and no log line.
 */
export function answerUnexpected(error: Error, c: Context<SandboxEnv>): Response {
  if (!(error instanceof BodyLostError)) {
    const [, place = 'an unknown place'] = /\n\s+at ([^\n]+)/.exec(error.stack ?? '') ?? [];
    console.error(`Sandbox: ${c.req.method} ${routePath(c)} failed with ${error.name} at ${place}.`);
  }
  if (c.env?.outgoing?.headersSent) {
    c.env.outgoing.destroy();
    return ALREADY_SENT;
  }
  return send(c, problem(500, 'An unexpected error; retry once.', requestPath(c)));
}

/** Answers a request to a path that does not exist. */
export function answerMissing(c: Context<SandboxEnv>): Response {
  return send(c, problem(404, 'The resource does not exist.', requestPath(c)));
}

/**
 * Sends an answer with its exact content-length. It writes directly to the socket, the cheapest way for a page of 100 jobs,
 * which also avoids the adapter's replacement of the global Response.
 */
export function send(
  c: Context<SandboxEnv>,
  answer: Omit<HttpResponse, 'body'> & { body: string | Uint8Array<ArrayBuffer> },
): Response {
  const hasBody = answer.status !== 204;
  const length = hasBody && { 'content-length': String(Buffer.byteLength(answer.body)) };
  const headers = { ...answer.headers, ...length };
  const outgoing = c.env?.outgoing;
  if (!outgoing) return new Response(hasBody ? answer.body : null, { status: answer.status, headers });
  if (!outgoing.destroyed) {
    outgoing.writeHead(answer.status, headers);
    outgoing.end(answer.body);
  }
  return ALREADY_SENT;
}
