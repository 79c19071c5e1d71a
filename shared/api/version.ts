/**
 * The version of the API and of the events, in both documents: `major.minor.patch`. What was released is in
 * docs/api-baseline/; a change that can break a client needs a new major version and its note in docs/api-changes.md.
 */
export const API_VERSION = '1.0.0';
