/** Patterns of event types. Free of dependencies, for pages use it too. */

/** Whether a type matches one of the patterns: a type's name, or a beginning closed by a final `*` (`job.*`, `*`). */
export function typeMatches(type: string, patterns: readonly string[]): boolean {
  return patterns.some((pattern) =>
    pattern.endsWith('*') ? type.startsWith(pattern.slice(0, -1)) : type === pattern,
  );
}
