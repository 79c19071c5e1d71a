/** Conversion and comparison of form values. */

/**
 * Converts text to a number: `null` if it is blank. Returns other text unchanged, for the schema to reject. So it does with a dot
 * before three digits: in some languages, `3.000` is three thousand.
 */
export function parseNumber(text: string): number | string | null {
  const trimmed = text.trim();
  if (trimmed === '') return null;
  const isAmbiguous = /^[1-9]\d{0,2}(\.\d{3})+$/.test(trimmed);
  return isAmbiguous || Number.isNaN(Number(trimmed)) ? trimmed : Number(trimmed);
}

/** Returns `null` for blank text; of an object, for each of its blank texts. */
export function emptyToNull(value: string): string | null;
export function emptyToNull<V extends Readonly<Record<string, string>>>(
  value: V,
): Record<keyof V, string | null>;
export function emptyToNull(value: string | Readonly<Record<string, string>>): unknown {
  if (typeof value === 'string') return value.trim() === '' ? null : value;
  return Object.fromEntries(Object.entries(value).map(([name, text]) => [name, emptyToNull(text)]));
}

/** Returns empty text for each `null` of an object. */
export function nullToEmpty<K extends string>(value: Readonly<Record<K, string | null>>): Record<K, string> {
  const entries = Object.entries<string | null>(value).map(([name, text]) => [name, text ?? '']);
  return Object.fromEntries(entries) as Record<K, string>;
}

/** Applies edits to a newer version: values that differ from `before` keep the typed value, all others take the one of `now`. */
export function rebase<V>(before: V, typed: V, now: V): V {
  if (!isObject(before) || !isObject(typed) || !isObject(now)) return isEqual(typed, before) ? now : typed;
  const entries = Object.keys(typed).map((name) => [name, rebase(before[name], typed[name], now[name])]);
  return Object.fromEntries(entries) as V;
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** Returns the labels of the fields that differ between two versions. */
export function findChangedFields<T extends object>(
  before: T,
  now: T,
  labels: Readonly<Partial<Record<keyof T, string>>>,
): readonly string[] {
  return (Object.entries(labels) as [keyof T, string][]).flatMap(([name, label]) =>
    isEqual(before[name], now[name]) ? [] : [label],
  );
}

/** Compares two values. Ignores the order of lists. */
export function isEqual(a: unknown, b: unknown): boolean {
  return JSON.stringify(normalize(a)) === JSON.stringify(normalize(b));
}

function normalize(value: unknown): unknown {
  if (Array.isArray(value))
    return value.map(normalize).sort((a, b) => (JSON.stringify(a) < JSON.stringify(b) ? -1 : 1));
  if (typeof value !== 'object' || value === null) return value;
  return Object.entries(value)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, of]) => [name, normalize(of)]);
}
