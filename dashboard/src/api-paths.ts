/** Paths of the HTTP API. */

/** Returns the path of an account, or of a resource below it: `accountPath('acme', 'recipients', id)`. */
export const accountPath = (account: string, ...segments: readonly string[]): string =>
  ['/v1/accounts', account, ...segments]
    .map((segment, at) => (at === 0 ? segment : encodeURIComponent(segment)))
    .join('/');
