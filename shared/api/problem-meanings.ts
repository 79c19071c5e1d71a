/** Descriptions of the kinds of problems, for the documents only. */
import type { ProblemKind } from './problems.ts';

export const meanings: Readonly<Record<ProblemKind, string>> = {
  'invalid-parameter':
    'A path, query or header parameter is invalid. `field` is its name. `detail` contains the accepted values.',
  'invalid-body':
    'The body is not JSON, or a field is unknown, missing or invalid. `field` is the path of the field.',
  unauthorized:
    'The API key or ID token is missing, unknown or expired. Send a valid one as `Authorization: Bearer <key>`.',
  forbidden:
    'The API key is valid, but its role is insufficient, or the operation requires a key for all accounts. The same problem is returned if the signed-in user is in no group with access.',
  'not-found': 'The resource does not exist or is not visible to the API key.',
  'method-not-allowed':
    'The path does not support this method. The header `Allow` lists the supported methods.',
  conflict:
    'The request conflicts with the current state: the id is in use, a maximum number is reached, the resource is built in or managed by the configuration file, or another request is modifying the resource. In the last case, the response has the header `Retry-After`: repeat the request after this number of seconds.',
  'nothing-to-confirm':
    'There is nothing to confirm: the account is neither in quarantine (too many jobs disappeared within a day) nor stopped by an identity mismatch (the credentials belong to another account of the ordering API).',
  'request-in-progress':
    'The first request with this `Idempotency-Key` is still in progress. Repeat the request with the same key after `Retry-After` seconds.',
  'cursor-gone':
    'The log cannot be read from the cursor, for one of these reasons: the cursor is older than the retention period, is beyond the end of the log, belongs to an epoch that is not in this log, or points to an event that was lost in a restore from a backup. Resume from one of the cursors in the problem: `earliest`, `head` or, after a restore, `restored`.',
  'precondition-failed':
    '`If-Match` does not match the current revision. Fetch the resource again and retry.',
  'content-too-large': 'The body exceeds the maximum size. `detail` contains the limit.',
  'unsupported-media-type': 'The body must have `Content-Type: application/json`, and no `Content-Encoding`.',
  'unprocessable-content':
    'The request is well-formed but cannot be processed, for example because a URL resolves to a private network. `detail` contains the reason.',
  'idempotency-key-reused':
    'The `Idempotency-Key` was already used with another path, body or `If-Match`. Use a new key for each new request.',
  'too-many-failed-authentications':
    'Either too many requests with invalid API keys came from this address, or the API key has sent too many unknown codes of wall displays. Wait `Retry-After` seconds. In the first case, requests from the address succeed during this time only with keys that Jobwire has already accepted.',
  'too-many-streams':
    'The limit of open streams and long polls is reached: that of the API key or, on AWS, that of all keys of the cell together. Retry after `Retry-After` seconds. The retry succeeds if an open stream or long poll has ended in the meantime.',
  'too-many-requests':
    'Too many pairings of wall displays are in progress. On AWS, the same problem is returned if the API key has reached its limit of requests per minute, or if the rate limit of API Gateway was exceeded. Wait `Retry-After` seconds.',
  'request-blocked':
    'On AWS: the request was blocked by the web application firewall, or it was malformed. Self-hosted: the host of the request is not served.',
  'internal-server-error': 'An unexpected error occurred. It is logged under `requestId`.',
  'service-unavailable':
    'Jobwire is starting, or the store or the identity provider of users does not respond. Retry after `Retry-After` seconds.',
};
