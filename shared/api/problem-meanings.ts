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
    'The role of the API key is insufficient, the operation requires a key for all accounts, or the signed-in user is in no group with access.',
  'not-found': 'The resource does not exist or is not visible to the API key.',
  'method-not-allowed': 'The path does not support this method. The header `Allow` lists the supported ones.',
  conflict:
    'The id is in use, a maximum number is reached, the resource is built in or managed by the configuration file, or another request is modifying it. In the last case, retry after `Retry-After` seconds.',
  'nothing-to-confirm': 'The account is neither in quarantine nor stopped by an identity mismatch.',
  'request-in-progress':
    'The first request with this `Idempotency-Key` is still in progress. Retry after `Retry-After` seconds.',
  'cursor-gone':
    'The cursor is older than the retention period, beyond the end of the log, of an epoch that is not in this log, or at an event that was lost in a restore. Resume from a cursor in the problem: `earliest`, `head` or, after a restore, `restored`.',
  'precondition-failed':
    '`If-Match` does not match the current revision. Fetch the resource again and retry.',
  'content-too-large': 'The body exceeds the maximum size. `detail` contains the limit.',
  'unsupported-media-type': 'The body must have `Content-Type: application/json`, and no `Content-Encoding`.',
  'unprocessable-content':
    'The request cannot be processed, for example because a URL resolves to a private network. `detail` contains the reason.',
  'idempotency-key-reused': 'The `Idempotency-Key` was already used with another path, body or `If-Match`.',
  'too-many-failed-authentications':
    'Too many requests with invalid API keys came from this address, or the API key has sent too many unknown codes of wall displays. Wait `Retry-After` seconds. In the first case, requests from this address succeed until then only with keys that Jobwire accepted before.',
  'too-many-streams':
    'The limit of open streams and long polls is reached: that of the API key or, on AWS, that of the cell. Retry after `Retry-After` seconds.',
  'too-many-requests':
    'Too many pairings of wall displays are in progress. On AWS also: the rate limit of the API key or of API Gateway is exceeded. Wait `Retry-After` seconds.',
  'request-blocked':
    'On AWS: the web application firewall blocked the request, or it was malformed. Self-hosted: the host of the request is not served.',
  'internal-server-error': 'An unexpected error occurred. It is logged under `requestId`.',
  'service-unavailable':
    'Jobwire is starting, or the store or the identity provider of users does not respond. Retry after `Retry-After` seconds.',
};
