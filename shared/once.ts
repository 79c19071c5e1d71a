/** Returns a function that creates a value at its first call, and returns the same value from then on. */
export function once<T>(create: () => T): () => T {
  let value: T | undefined;
  return () => (value ??= create());
}
