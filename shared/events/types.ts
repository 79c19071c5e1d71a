/** Patterns and addresses of event types. Free of dependencies, for pages use it too. */

/** Whether a type matches one of the patterns: a type's name, or a beginning closed by a final `*` (`job.*`, `*`). */
export function typeMatches(type: string, patterns: readonly string[]): boolean {
  return patterns.some((pattern) =>
    pattern.endsWith('*') ? type.startsWith(pattern.slice(0, -1)) : type === pattern,
  );
}

/** Path of the JSON Schema of a type's data. `v1` is the version of the schemas: it changes with a breaking change only. */
export function getSchemaPath(type: string): string {
  return `/schemas/v1/${type}.json`;
}
