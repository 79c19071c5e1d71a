/**
 * The version of the API and of the events, as in both API documents: `major.minor.patch`. The released documents are in
 * docs/api-baseline/. A breaking change needs a new major version and a section in docs/api-changes.md.
 */
export const API_VERSION = '1.0.0';
