// Answers of the sandbox before they are on the wire, and the one place that puts them there.

import { STATUS_CODES } from 'node:http';
import type { HttpBindings } from '@hono/node-server';
import { RESPONSE_ALREADY_SENT } from '@hono/node-server/utils/response';
import type { Context } from 'hono';

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

/**
 * Sends an answer with its exact content-length. It writes to the socket itself: that is what a page of 100 jobs costs
 * least on, and it spares the process the adapter's replacement of the global Response.
 */
export function send(c: Context<SandboxEnv>, answer: Answer): Response {
  const headers = { ...answer.headers, 'content-length': String(Buffer.byteLength(answer.body)) };
  const outgoing = c.env?.outgoing;
  if (!outgoing) return new Response(answer.body, { status: answer.status, headers });
  if (!outgoing.destroyed) {
    outgoing.writeHead(answer.status, headers);
    outgoing.end(answer.body);
  }
  return RESPONSE_ALREADY_SENT;
}
