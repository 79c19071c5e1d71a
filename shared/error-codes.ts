/** Error codes of the operating system, of Node and of TLS as text, so that no message has a code as its only explanation. */

const REFUSED = 'the connection was refused';
const UNRESOLVED = 'the host name can’t be resolved';
const LATE = 'the request timed out';
const CUT = 'the connection was cut';
const NO_ROUTE = 'the network has no route to it';
const UNTRUSTED = 'its TLS certificate is not trusted';
const TLS_FAILED = 'the TLS handshake failed';
const DENIED = 'the permission is missing';

const REASONS: ReadonlyMap<string, string> = new Map(
  Object.entries({
    ECONNREFUSED: REFUSED,
    ENOTFOUND: UNRESOLVED,
    EAI_AGAIN: UNRESOLVED,
    EDNS: UNRESOLVED,
    ETIMEDOUT: LATE,
    UND_ERR_CONNECT_TIMEOUT: LATE,
    UND_ERR_HEADERS_TIMEOUT: LATE,
    UND_ERR_BODY_TIMEOUT: LATE,
    ECONNRESET: CUT,
    ECONNECTION: CUT,
    EPIPE: CUT,
    UND_ERR_SOCKET: CUT,
    EHOSTUNREACH: NO_ROUTE,
    ENETUNREACH: NO_ROUTE,
    EADDRNOTAVAIL: NO_ROUTE,
    CERT_HAS_EXPIRED: 'its TLS certificate has expired',
    ERR_TLS_CERT_ALTNAME_INVALID: 'its TLS certificate is for another host name',
    DEPTH_ZERO_SELF_SIGNED_CERT: UNTRUSTED,
    SELF_SIGNED_CERT_IN_CHAIN: UNTRUSTED,
    UNABLE_TO_GET_ISSUER_CERT_LOCALLY: UNTRUSTED,
    UNABLE_TO_VERIFY_LEAF_SIGNATURE: UNTRUSTED,
    EPROTO: TLS_FAILED,
    ETLS: TLS_FAILED,
    EPROTOCOL: 'it responds in another protocol',
    CredentialsProvider: 'no AWS credentials were found',
    EADDRINUSE: 'another program uses this port',
    ENOENT: 'the file or its folder does not exist',
    ENOTDIR: 'a part of the path is not a folder',
    EISDIR: 'it is a folder',
    EACCES: DENIED,
    EPERM: DENIED,
    EROFS: 'the file system is read-only',
    ENOSPC: 'the disk is full',
  }),
);

/** Returns the meaning of an error code as a clause, such as `the connection was refused`. `undefined` for an unknown code. */
export function explainCode(code: string): string | undefined {
  return REASONS.get(code) ?? (code.startsWith('ERR_SSL_') ? TLS_FAILED : undefined);
}

/**
 * Returns the reason of a failure for the end of a sentence, with its code: `: the connection was refused (ECONNREFUSED)`. An unknown code is
 * only in parentheses. Empty without a code.
 */
export function formatCode(code: string | undefined): string {
  if (code === undefined || code === '') return '';
  const meaning = explainCode(code);
  return meaning === undefined ? ` (${code})` : `: ${meaning} (${code})`;
}

/** Returns the error code of an error or of its causes, such as ECONNREFUSED. Of a code that nodemailer replaced, the original one. */
export function findCode(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined;
  if ('originalCode' in error && typeof error.originalCode === 'string') return error.originalCode;
  return 'code' in error && typeof error.code === 'string' ? error.code : findCode(error.cause);
}
