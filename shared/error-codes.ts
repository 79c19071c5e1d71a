/** Error codes of the operating system, of Node and of TLS as text, so that no message has a code as its only explanation. */

const REFUSED = 'the connection was refused';
const UNRESOLVED = 'the host name can’t be resolved';
const LATE = 'the request timed out';
const CUT = 'the connection was cut';
const NO_ROUTE = 'the network has no route to it';
const UNTRUSTED = 'its TLS certificate is not trusted';
const TLS_FAILED = 'the TLS handshake failed';
const FULL = 'the disk is full';
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
    EADDRNOTAVAIL: 'this machine does not have this address',
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
    EEXIST: 'another file has this name',
    ENOTDIR: 'a part of the path is not a folder',
    EISDIR: 'it is a folder',
    EACCES: DENIED,
    EPERM: DENIED,
    EROFS: 'the file system is read-only',
    ENOSPC: FULL,
    SQLITE_FULL: FULL,
    SQLITE_READONLY: 'the file is read-only',
    SQLITE_IOERR: 'the disk failed',
    SQLITE_CORRUPT: 'the database is damaged',
    SQLITE_CANTOPEN: 'the file or its folder can’t be opened for writing',
    SQLITE_NOTADB: 'the file is not a database',
  }),
);

/** Names of primary result codes of SQLite, which `node:sqlite` reports as numbers. */
const SQLITE_CODES: ReadonlyMap<number, string> = new Map([
  [5, 'SQLITE_BUSY'],
  [8, 'SQLITE_READONLY'],
  [10, 'SQLITE_IOERR'],
  [11, 'SQLITE_CORRUPT'],
  [13, 'SQLITE_FULL'],
  [14, 'SQLITE_CANTOPEN'],
  [26, 'SQLITE_NOTADB'],
]);

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

/** Returns the reason of a failure as a clause: the meaning of its code with the code, otherwise its message without the final period. */
export function explainError(error: unknown): string {
  const code = findCode(error);
  const meaning = code === undefined ? undefined : explainCode(code);
  if (meaning !== undefined) return `${meaning} (${code})`;
  return (error instanceof Error ? error.message : String(error)).replace(/\.$/, '');
}

/** Returns the reason of a failure like {@link explainError}. For an error of the file system, it begins with the path. */
export function explainFileError(error: unknown): string {
  const { path } = Object(error) as { path?: unknown };
  const reason = explainError(error);
  return typeof path !== 'string' || reason.includes(path) ? reason : `${path}: ${reason}`;
}

/**
 * Returns the error code of an error or of its causes, such as ECONNREFUSED. Of a code that nodemailer replaced, the original one. Of an
 * error of SQLite, the name of its primary result code.
 */
export function findCode(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined;
  if ('errcode' in error) {
    const name = SQLITE_CODES.get(Number(error.errcode) & 0xff);
    if (name !== undefined) return name;
  }
  if ('originalCode' in error && typeof error.originalCode === 'string') return error.originalCode;
  return 'code' in error && typeof error.code === 'string' ? error.code : findCode(error.cause);
}
