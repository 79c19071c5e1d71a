/** Returns a record with the same names and converted values. */
export function mapValues<V, W>(record: Readonly<Record<string, V>>, map: (one: V) => W): Record<string, W> {
  return Object.fromEntries(Object.entries(record).map(([name, one]) => [name, map(one)]));
}
