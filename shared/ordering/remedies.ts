/** Error messages for operators: each fault of the ordering API with the setting to check. */
import { formatCode } from '../error-codes.ts';
import { ACCOUNT, ACTIVE_JOBS } from './client.ts';
import type { OrderingError, OrderingErrorKind } from './errors.ts';
import { isTokenRequest } from './tokens.ts';

/** Endpoint that a request uses. A fault of it concerns the setting that contains its address. */
export type Part = 'token' | 'api';

const PLACES: Record<Part, { readonly what: string; readonly setting: string }> = {
  token: { what: 'The token endpoint', setting: 'authUrl' },
  api: { what: 'The ordering API', setting: 'baseUrl' },
};

/** Returns the setting of a region that contains the address of a part, for an error message. */
export function findSetting(part: Part, region: string): string {
  return `${PLACES[part].setting} of region "${region}"`;
}

/** Returns the message for a part that did not respond in time. */
export function describeTimeout(part: Part, region: string, seconds: number | undefined): string {
  const limit = seconds === undefined ? 'in time' : `within ${seconds} seconds`;
  return `${PLACES[part].what} did not respond completely ${limit}. Try again later. If that fails too, check ${findSetting(part, region)} and the network.`;
}

/**
 * Returns the error and its remedy for an operator. It contains only the status of an upstream response,
 * because the rest may contain anything. `seconds`: the time limit of the request, if it is known.
 */
export function describeFault(part: Part, region: string, fault: OrderingError, seconds?: number): string {
  const { what } = PLACES[part];
  const where = findSetting(part, region);
  const { kind, status, retryAfterMs, detail = '' } = fault;
  const http = status === undefined ? '' : ` (HTTP ${status})`;
  switch (kind) {
    case 'timeout':
      return describeTimeout(part, region, seconds);
    case 'network':
      return `${what} can’t be reached${formatCode(detail)}. Check ${where}, and whether this machine may connect to it.`;
    case 'not_found':
      return part === 'token'
        ? `The token endpoint does not know this realm${http}. Check realm and ${where}.`
        : `${what} is not at this address${http}. Check the path of ${where}.`;
    case 'credentials_rejected':
      // The only detail of this kind is the error that RFC 6749 requires in the response of a token endpoint.
      if (detail === '')
        return `The server at authUrl rejected the request${http}, but does not seem to be a token endpoint: the response is not an OAuth error. Check the path of ${where}, and realm. If both are correct, check the client id and the client secret.`;
      return /disabled/i.test(detail)
        ? `The account or its client is disabled${http}. Ask the operator of the ordering API to enable it.`
        : `The client id or the client secret is wrong${http}. Compare both with those that the operator of the ordering API issued; only the latest secret is valid. The id and the secret are valid only in the region of the account ("${region}").`;
    case 'unauthorized':
      return `A token was issued, but the ordering API rejects it${http}. Check that realm and ${where} belong to the same region, and whether the account is disabled there.`;
    case 'forbidden':
      return `The credentials are valid, but lack permission${http}. Ask the operator of the ordering API for permission to read the account and its jobs.`;
    case 'rate_limited': {
      const wait = retryAfterMs === undefined ? 'a minute' : `${Math.ceil(retryAfterMs / 1000)} seconds`;
      return `${what} received too many requests${http}. Try again in ${wait}.`;
    }
    case 'server_error':
    case 'unavailable':
      return `${what} has an internal problem${http}. The settings seem correct. Try again later.`;
    case 'malformed':
      return detail.includes('HTML page')
        ? `${what} responded with a web page${http}. Possibly a proxy or a sign-in page is at this address. Check ${where}.`
        : `${what} responded in an unexpected format${http}. Check ${where}. If it is correct, the ordering API has changed, or the response was truncated.`;
    case 'bad_request':
    case 'conflict':
      return `${what} rejected the request${http}. Check ${where}.`;
  }
}

/** Kinds of faults that end only after a change of a setting, of the credentials or of the network. */
const LASTING: ReadonlySet<OrderingErrorKind> = new Set([
  'not_found',
  'credentials_rejected',
  'unauthorized',
  'forbidden',
  'network',
]);

/**
 * Returns the error and its remedy for a fault of a poll, if a setting or the credentials may have caused it.
 * The fault of a request for one record does not have such a cause.
 */
export function describeLastingFault(region: string, fault: OrderingError): string | undefined {
  if (!LASTING.has(fault.kind)) return undefined;
  if (isTokenRequest(fault.operation)) return describeFault('token', region, fault);
  const isOfAccount = fault.operation === ACCOUNT || fault.operation === ACTIVE_JOBS;
  return isOfAccount ? describeFault('api', region, fault) : undefined;
}
