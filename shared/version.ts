/**
 * The version of Jobwire, `major.minor.patch`: of the package, the CLI, the HTTP API and the events. `npm run release` sets it here and in
 * package.json. The API documents of the last release are in docs/api-baseline/. A breaking change of the API needs a new major version and
 * a section in docs/api-changes.md.
 */
export const VERSION = '1.0.0';
