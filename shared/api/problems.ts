/** All kinds of problem details (RFC 9457). */
import type { Context } from 'hono';
import type { Expectation, Rejection } from '../resources.ts';
import type { ApiEnv } from './env.ts';

/** Every kind of problem: status, title, and its description in the documents. */
export const problems = {
  'invalid-parameter': {
    status: 400,
    title: 'Invalid Parameter',
    meaning:
      'A path, query or header parameter is invalid. `field` is its name. `detail` contains the accepted values.',
  },
  'invalid-body': {
    status: 400,
    title: 'Invalid Request Body',
    meaning:
      'The body is not JSON, or a field is unknown, missing or invalid. `field` is the path of the field.',
  },
  unauthorized: {
    status: 401,
    title: 'Unauthorized',
    meaning:
      'The API key or ID token is missing, unknown or expired. Send a valid one as `Authorization: Bearer <key>`.',
  },
  forbidden: {
    status: 403,
    title: 'Forbidden',
    meaning:
      'The API key is valid, but its role is insufficient, or the operation requires a key for all accounts. The same problem is returned if the signed-in user is in no group with access.',
  },
  'not-found': {
    status: 404,
    title: 'Not Found',
    meaning: 'The resource does not exist or is not visible to the API key.',
  },
  'method-not-allowed': {
    status: 405,
    title: 'Method Not Allowed',
    meaning: 'The path does not support this method. The header `Allow` lists the supported methods.',
  },
  conflict: {
    status: 409,
    title: 'Conflict',
    meaning:
      'The request conflicts with the current state: the id is in use, a maximum number is reached, the resource is managed by the configuration file, or another request is modifying the resource. In the last case, the response has the header `Retry-After`: repeat the request after this number of seconds.',
  },
  'nothing-to-confirm': {
    status: 409,
    title: 'Nothing to Confirm',
    meaning:
      'There is nothing to confirm: the account is neither in quarantine (too many jobs disappeared at once) nor stopped by an identity mismatch (the credentials belong to another account of the ordering API).',
  },
  'request-in-progress': {
    status: 409,
    title: 'Request in Progress',
    meaning:
      'The first request with this `Idempotency-Key` is still in progress. Repeat the request with the same key after `Retry-After` seconds.',
  },
  'cursor-gone': {
    status: 410,
    title: 'Cursor Gone',
    meaning:
      'The log cannot be read from the cursor: the cursor belongs to another epoch (a restored log continues in a new epoch), is beyond the end of the log, or is older than the retention period. Resume from one of the cursors in the problem: `earliest`, `head` or, after a restore, `restored`.',
  },
  'precondition-failed': {
    status: 412,
    title: 'Precondition Failed',
    meaning: '`If-Match` does not match the current revision. Fetch the resource again and retry.',
  },
  'content-too-large': {
    status: 413,
    title: 'Content Too Large',
    meaning: 'The body exceeds the maximum size. `detail` contains the limit.',
  },
  'unsupported-media-type': {
    status: 415,
    title: 'Unsupported Media Type',
    meaning: 'The body must have `Content-Type: application/json`.',
  },
  'unprocessable-content': {
    status: 422,
    title: 'Unprocessable Content',
    meaning:
      'The request is well-formed but cannot be processed, for example because a URL resolves to a private network. `detail` contains the reason.',
  },
  'idempotency-key-reused': {
    status: 422,
    title: 'Idempotency-Key Reused',
    meaning:
      'The `Idempotency-Key` was already used with another path, body or `If-Match`. Use a new key for each new request.',
  },
  'too-many-failed-authentications': {
    status: 429,
    title: 'Too Many Failed Authentications',
    meaning:
      'Too many requests with invalid API keys came from this address. Wait `Retry-After` seconds. During this time, requests from this address succeed only with keys that Jobwire has already accepted.',
  },
  'too-many-streams': {
    status: 429,
    title: 'Too Many Open Streams',
    meaning:
      'The API key has reached its limit of open streams and long polls. Retry after `Retry-After` seconds. The retry succeeds if an open stream or long poll has ended in the meantime.',
  },
  'too-many-requests': {
    status: 429,
    title: 'Too Many Requests',
    meaning:
      'Too many pairings of wall displays are in progress. On AWS, the same problem is returned if the API key has reached its limit of requests per minute, or if the rate limit of the whole API was exceeded. Wait `Retry-After` seconds.',
  },
  'request-blocked': {
    status: 403,
    title: 'Request Blocked',
    meaning: 'Only on AWS: the request was blocked by the web application firewall, or it was malformed.',
  },
  'internal-server-error': {
    status: 500,
    title: 'Internal Server Error',
    meaning: 'An unexpected error occurred. It is logged under `requestId`.',
  },
  'service-unavailable': {
    status: 503,
    title: 'Service Unavailable',
    meaning:
      'The store, or the identity provider of users, does not respond. Retry after `Retry-After` seconds.',
  },
} as const;

/** Last part of a problem's `type`. Its meaning never changes. */
export type ProblemKind = keyof typeof problems;

/** Members of a problem besides those of its kind. */
export interface ProblemParts {
  /** What is wrong and what is accepted. */
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
    ...headers,
  });
}

/** `Retry-After` of a conflict with another request in progress. */
const BUSY_RETRY_SECONDS = 5;

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
      const headers = { 'retry-after': String(BUSY_RETRY_SECONDS) };
      return problem(c, 'conflict', { ...parts, ...(why === 'busy' ? { headers } : {}) });
    }
  }
}
