/** All kinds of problem details (RFC 9457). */
import type { Context } from 'hono';
import type { Expectation, Rejection } from '../resources.ts';
import type { ApiEnv } from './env.ts';

/** Every kind of problem: status and title. `problem-meanings.ts` describes them. */
export const problems = {
  'invalid-parameter': { status: 400, title: 'Invalid Parameter' },
  'invalid-body': { status: 400, title: 'Invalid Request Body' },
  unauthorized: { status: 401, title: 'Unauthorized' },
  forbidden: { status: 403, title: 'Forbidden' },
  'not-found': { status: 404, title: 'Not Found' },
  'method-not-allowed': { status: 405, title: 'Method Not Allowed' },
  conflict: { status: 409, title: 'Conflict' },
  'nothing-to-confirm': { status: 409, title: 'Nothing to Confirm' },
  'request-in-progress': { status: 409, title: 'Request in Progress' },
  'cursor-gone': { status: 410, title: 'Cursor Gone' },
  'precondition-failed': { status: 412, title: 'Precondition Failed' },
  'content-too-large': { status: 413, title: 'Content Too Large' },
  'unsupported-media-type': { status: 415, title: 'Unsupported Media Type' },
  'unprocessable-content': { status: 422, title: 'Unprocessable Content' },
  'idempotency-key-reused': { status: 422, title: 'Idempotency-Key Reused' },
  'too-many-failed-authentications': { status: 429, title: 'Too Many Failed Authentications' },
  'too-many-streams': { status: 429, title: 'Too Many Open Streams' },
  'too-many-requests': { status: 429, title: 'Too Many Requests' },
  'request-blocked': { status: 403, title: 'Request Blocked' },
  'internal-server-error': { status: 500, title: 'Internal Server Error' },
  'service-unavailable': { status: 503, title: 'Service Unavailable' },
} as const;

/** Last part of a problem's `type`. Its meaning never changes. */
export type ProblemKind = keyof typeof problems;

/** Members of a problem besides those of its kind. */
export interface ProblemParts {
  /** Explanation of the error, with the accepted values. */
  readonly detail: string;
  /** Path of the parameter or field. */
  readonly field?: string;
  /** Extension members of the document. */
  readonly members?: { readonly [member: string]: unknown };
  readonly headers?: { readonly [header: string]: string };
}

/** Prefix of the `type` of every problem. */
export const PROBLEM_TYPE = 'urn:jobwire:problem:';

/** Returns a problem as a response that must not be cached. */
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
    ...(kind === 'service-unavailable' ? { 'retry-after': String(RETRY_SECONDS) } : {}),
    ...headers,
  });
}

/** `Retry-After` of a conflict with another request in progress, and if a service is unavailable. */
const RETRY_SECONDS = 5;

/** Extracts the field from a reason that begins with a field path. */
function findField(reason: string): Pick<ProblemParts, 'detail' | 'field'> {
  const field = /^[a-z][\w.[\]]*(?= )/.exec(reason)?.[0];
  return { detail: reason, ...(field === undefined ? {} : { field }) };
}

/** Returns a problem for a parameter that its schema cannot validate. `reason` begins with the parameter's name. */
export function badParameter(c: Context<ApiEnv>, reason: string): Response {
  return problem(c, 'invalid-parameter', findField(reason));
}

/** Returns the rejection of a use case as a problem. */
export function rejectionProblem(
  c: Context<ApiEnv>,
  { kind, reason, why }: Rejection,
  expected?: Expectation,
): Response {
  const parts = findField(reason);
  switch (kind) {
    case 'rejected':
      return problem(c, 'unprocessable-content', parts);
    case 'unknown':
      return problem(c, 'not-found', parts);
    case 'conflict': {
      if (why === 'changed' && expected?.revision !== undefined) {
        return problem(c, 'precondition-failed', { field: 'If-Match', detail: reason });
      }
      const headers = { 'retry-after': String(RETRY_SECONDS) };
      return problem(c, 'conflict', { ...parts, ...(why ? { headers } : {}) });
    }
  }
}
