/** Answers that are not what was asked for: problem details (RFC 9457), every kind in one place. */
import type { Context } from 'hono';
import type { Expectation, Refusal } from '../managed.ts';
import type { ApiEnv } from './route.ts';

/** Every kind: its status, its title, and what the documents say of it. */
export const problems = {
  'bad-parameter': {
    status: 400,
    title: 'A parameter is not right',
    meaning:
      'A parameter of the path, the query or a header; `field` names it, `detail` says what would be right.',
  },
  'bad-body': {
    status: 400,
    title: 'The body is not right',
    meaning: 'The body is no JSON, or a field of it (`field` is its path) is unknown, missing or not valid.',
  },
  unauthorized: {
    status: 401,
    title: 'The API key is missing or wrong',
    meaning: 'Send `Authorization: Bearer <key>`, with a key that exists and has not expired.',
  },
  forbidden: {
    status: 403,
    title: 'The API key may not do this',
    meaning: 'The key is good, but its role is too small, or this takes a key that is for all accounts.',
  },
  'not-found': {
    status: 404,
    title: 'There is nothing here',
    meaning: 'There is no such thing, or none that the key may see: the two are not told apart.',
  },
  'method-not-allowed': {
    status: 405,
    title: 'That method is not allowed here',
    meaning: 'The path exists; the header `Allow` lists its methods.',
  },
  conflict: {
    status: 409,
    title: 'It stands otherwise',
    meaning:
      'What was asked for does not fit how things stand: an id is taken, the configuration file declares it, somebody else is at work on it.',
  },
  'nothing-to-confirm': {
    status: 409,
    title: 'The account waits for no confirmation',
    meaning: 'The account is neither quarantined nor stopped for another identity.',
  },
  'still-in-progress': {
    status: 409,
    title: 'The first request with this Idempotency-Key is still being answered',
    meaning: 'Ask again after `Retry-After` seconds, with the same key.',
  },
  'cursor-gone': {
    status: 410,
    title: 'The log cannot be read from there',
    meaning:
      'The cursor is of another epoch, beyond the head, or older than what is kept. `earliest`, `head` and, after a restore, `restored` are cursors to go on from.',
  },
  'changed-meanwhile': {
    status: 412,
    title: 'It was changed meanwhile',
    meaning: '`If-Match` names another revision than the one there is.',
  },
  'too-large': {
    status: 413,
    title: 'The body is too large',
    meaning: '`detail` says how large it may be.',
  },
  'unsupported-media-type': {
    status: 415,
    title: 'The body is not said to be JSON',
    meaning: 'A body needs `Content-Type: application/json`.',
  },
  refused: {
    status: 422,
    title: 'This cannot be done',
    meaning:
      'The request is well-formed, but what it asks for is refused: an address of a private network, say. `detail` has the reason.',
  },
  'key-reused': {
    status: 422,
    title: 'The Idempotency-Key belongs to another request',
    meaning:
      'The same key was sent before with another path, body or `If-Match`. Take a new key for a new request.',
  },
  'too-many-failures': {
    status: 429,
    title: 'Too many wrong API keys from this address',
    meaning: 'Wait `Retry-After` seconds. Keys that are in use go on working.',
  },
  'too-many-waiting': {
    status: 429,
    title: 'Too many streams and long polls wait with this key',
    meaning: 'Come back when one has ended, after `Retry-After` seconds.',
  },
  'too-many-requests': {
    status: 429,
    title: 'Too many requests at once',
    meaning: 'Of an API on AWS, before the request is looked at: wait `Retry-After` seconds.',
  },
  'turned-away': {
    status: 403,
    title: 'The request was not let through',
    meaning:
      'Of an API on AWS, before the request is looked at: by its firewall, or because it is malformed.',
  },
  internal: {
    status: 500,
    title: 'Something went wrong on our side',
    meaning: 'The fault was recorded under `requestId`.',
  },
  unavailable: {
    status: 503,
    title: 'The store cannot answer right now',
    meaning: 'Nothing is lost; ask again after `Retry-After` seconds.',
  },
} as const;

/** The last part of a problem's `type`, which never changes its meaning. */
export type ProblemKind = keyof typeof problems;

/** What a problem says besides its kind. */
export interface ProblemParts {
  /** A sentence for whoever reads the log of the client: what was wrong, and what would be right. */
  readonly detail: string;
  /** The path of the parameter or field it is about. */
  readonly field?: string;
  /** Further members of the document. */
  readonly members?: { readonly [member: string]: unknown };
  readonly headers?: { readonly [header: string]: string };
}

/** What the `type` of every problem begins with. */
export const PROBLEM_TYPE = 'urn:jobwire:problem:';

/** A problem as a response; never cached. */
export function problem(c: Context<ApiEnv>, kind: ProblemKind, parts: ProblemParts): Response {
  const { status, title } = problems[kind];
  const { detail, field, members, headers } = parts;
  const body = {
    type: `${PROBLEM_TYPE}${kind}`,
    title,
    status,
    detail,
    ...(field === undefined ? {} : { field }),
    ...members,
    requestId: c.get('requestId'),
  };
  return c.body(JSON.stringify(body), status, {
    'content-type': 'application/problem+json',
    'cache-control': 'no-store',
    ...headers,
  });
}

/** When to try again what somebody else was at work on. */
const BUSY_RETRY_SECONDS = 5;

/** A sentence that begins with a field names it; all others begin otherwise. */
function sayingField(reason: string): Pick<ProblemParts, 'detail' | 'field'> {
  const field = /^[a-z][\w.[\]]*(?= )/.exec(reason)?.[0];
  return { detail: reason, ...(field === undefined ? {} : { field }) };
}

/** A parameter that only whoever knows more than its schema could refuse. The sentence begins with its name. */
export function badParameter(c: Context<ApiEnv>, reason: string): Response {
  return problem(c, 'bad-parameter', sayingField(reason));
}

/** What a use-case did not do, as a problem. */
export function notDone(
  c: Context<ApiEnv>,
  { kind, reason, why }: Refusal,
  expected?: Expectation,
): Response {
  const parts = sayingField(reason);
  switch (kind) {
    case 'refused':
      return problem(c, 'refused', parts);
    case 'unknown':
      return problem(c, 'not-found', parts);
    case 'conflict': {
      if (why === 'changed' && expected?.revision !== undefined) {
        return problem(c, 'changed-meanwhile', { field: 'If-Match', detail: reason });
      }
      const headers = { 'retry-after': String(BUSY_RETRY_SECONDS) };
      return problem(c, 'conflict', { ...parts, ...(why === 'busy' ? { headers } : {}) });
    }
  }
}
