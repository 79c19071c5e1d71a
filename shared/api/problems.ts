/** Answers that are not what was asked for: problem details (RFC 9457), every kind in one place. */
import type { Context } from 'hono';

const kinds = {
  'bad-parameter': { status: 400, title: 'A parameter is not right' },
  'bad-body': { status: 400, title: 'The body is not right' },
  unauthorized: { status: 401, title: 'The API key is missing or wrong' },
  'not-found': { status: 404, title: 'There is nothing here' },
  'method-not-allowed': { status: 405, title: 'That method is not allowed here' },
  'nothing-to-confirm': { status: 409, title: 'The account waits for no confirmation' },
  'cursor-gone': { status: 410, title: 'The log cannot be read from there' },
  'too-large': { status: 413, title: 'The body is too large' },
  'too-many-waiting': { status: 429, title: 'Too many streams and long polls wait with this key' },
  unavailable: { status: 503, title: 'The store cannot answer right now' },
  internal: { status: 500, title: 'Something went wrong on our side' },
} as const;

/** The last part of a problem's `type`, which never changes its meaning. */
export type ProblemKind = keyof typeof kinds;

/** What a problem says besides its kind. */
export interface ProblemParts {
  /** A sentence for whoever reads the log of the client: what was wrong, and what would be right. */
  readonly detail: string;
  /** The parameter it is about. */
  readonly field?: string;
  /** Further members of the document. */
  readonly members?: { readonly [member: string]: unknown };
  readonly headers?: { readonly [header: string]: string };
}

/** A problem as a response; never cached. */
export function problem(c: Context, kind: ProblemKind, parts: ProblemParts): Response {
  const { status, title } = kinds[kind];
  const { detail, field, members, headers } = parts;
  const body = {
    type: `urn:jobwire:problem:${kind}`,
    title,
    status,
    detail,
    ...(field === undefined ? {} : { field }),
    ...members,
  };
  return c.body(JSON.stringify(body), status, {
    'content-type': 'application/problem+json',
    'cache-control': 'no-store',
    ...headers,
  });
}
