// Bodies of requests as they come in, answers before they are on the wire, and the one place that puts them there.

import { STATUS_CODES } from 'node:http';
import type { HttpBindings } from '@hono/node-server';
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response';
import type { Context } from 'hono';
import { routePath } from 'hono/route';

/** A complete answer: status, headers (content-length is added when it is sent) and body text. */
export interface Answer {
  status: number;
  headers: Record<string, string>;
  body: string;
}

/** Hono's types for the sandbox's apps: the socket is at hand, since some faults are about the socket. */
export type SandboxEnv = { Bindings: HttpBindings };

/** What a handler returns when the connection has been dealt with already. */
export const ALREADY_SENT = RESPONSE_ALREADY_SENT;

/** A JSON answer; text is taken as JSON already made. */
export function json(value: unknown, status = 200, headers: Record<string, string> = {}): Answer {
  const body = typeof value === 'string' ? value : JSON.stringify(value);
  return { status, headers: { 'content-type': 'application/json; charset=utf-8', ...headers }, body };
}

/** A success that has nothing to say. */
export const NO_CONTENT: Answer = { status: 204, headers: {}, body: '' };

/** An RFC 7807 problem; with `errors` (messages by field) it is a validation failure. */
export function problem(
  status: number,
  detail: string,
  instance: string,
  errors?: Record<string, string[]>,
): Answer {
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

/** What a body may have at most. */
const MOST_BODY_BYTES = 1024 * 1024;

/** Why a body that `readBody` gave up is refused. */
export const TOO_LARGE = `The body is larger than ${MOST_BODY_BYTES} bytes.`;

/** The client went away while it was sending its body. */
class BodyLostError extends Error {
  constructor(options: ErrorOptions) {
    super('The request ended before its body did.', options);
    this.name = 'BodyLostError';
  }
}

/** The body as text; undefined when it is TOO_LARGE, of which no more is kept then. */
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
        // Who is still sending does not see the answer: what comes is let through to nowhere.
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
    // It went away.
  }
}

/** The path as it was sent, percent-encoded as it was: what problems call their instance. */
export function pathOf(c: Context<SandboxEnv>): string {
  const { url } = c.req;
  const from = url.indexOf('/', url.indexOf('//') + 2);
  const query = url.indexOf('?', from);
  return query < 0 ? url.slice(from) : url.slice(from, query);
}

/** A JSON answer; where there is nothing to show, a 404 that says so. */
export function jsonOr404(value: object | undefined, missing: string, instance: string): Answer {
  return value ? json(value) : problem(404, missing, instance);
}

/**
 * Answers what nobody foresaw with 500, and tells of it on stderr: which route, which error and where, but nothing that a
 * request or an error says. A client that went away while it was sending is told nothing, and so is stderr.
 */
export function answerUnexpected(error: Error, c: Context<SandboxEnv>): Response {
  if (!(error instanceof BodyLostError)) {
    const [, place = 'an unknown place'] = /\n\s+at ([^\n]+)/.exec(error.stack ?? '') ?? [];
    console.error(`Sandbox: ${c.req.method} ${routePath(c)} failed with ${error.name} at ${place}.`);
  }
  if (c.env?.outgoing?.headersSent) {
    c.env.outgoing.destroy();
    return RESPONSE_ALREADY_SENT;
  }
  return send(c, problem(500, 'An unexpected error; retry once.', pathOf(c)));
}

/**
 * Sends an answer with its exact content-length. It writes to the socket itself: that is what a page of 100 jobs costs
 * least on, and it spares the process the adapter's replacement of the global Response.
 */
export function send(
  c: Context<SandboxEnv>,
  answer: Omit<Answer, 'body'> & { body: string | Uint8Array<ArrayBuffer> },
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
  return RESPONSE_ALREADY_SENT;
}
