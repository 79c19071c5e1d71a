/** Formats of numbers and names. Independent of React. */
import type { AttentionItem } from '../../client/index.ts';

/** Severity of a state. Shown by colour and shape, never by colour alone. */
export type Tone = 'good' | 'warn' | 'bad' | 'plain';

/** Formats a number with its noun: `1 row`, `2 rows`, `1,200 rows`. */
export function formatCount(count: number, one: string, many = `${one}s`): string {
  return `${count.toLocaleString()} ${count === 1 ? one : many}`;
}

/** Formats a number with at most one decimal. `least`: minimum number of decimals. */
export const formatDecimal = (value: number, least = 0): string =>
  value.toLocaleString(undefined, { minimumFractionDigits: least, maximumFractionDigits: 1 });

/** Splits a URL into parts between which a line can break: after a slash of the path, and after `?` and `&`. */
export const splitUrl = (url: string): string[] => url.split(/(?<=[^:/]\/|[?&])/);

/** Formats a share as a percentage. Never rounds up to 100 % or down to 0 %. */
export function formatPercent(part: number, all = 1): string {
  if (all === 0) return '–';
  const exact = (part / all) * 100;
  if (exact > 99 && part < all) return `${formatDecimal(Math.floor(exact * 10) / 10)} %`;
  if (exact < 1 && part > 0) return `${formatDecimal(Math.ceil(exact * 10) / 10)} %`;
  return `${Math.round(exact)} %`;
}

/** Joins names: `a, b and c`. */
export const joinNames = (names: readonly string[]): string =>
  names.length < 2 ? names.join('') : `${names.slice(0, -1).join(', ')} and ${names.at(-1)}`;

/** Whether each term of the query is part of one of the texts. Case-insensitive. */
export function matchesQuery(
  query: string,
  ...texts: readonly (string | number | null | undefined)[]
): boolean {
  const text = texts.join(' ').toLowerCase();
  const terms = query.toLowerCase().split(/\s+/);
  return terms.every((term) => text.includes(term));
}

/** Formats who handles an item of the attention queue, and the note for colleagues; empty if it has neither. */
export function formatTriage({ assignee, note }: Pick<AttentionItem, 'assignee' | 'note'>): string {
  return [
    ...(assignee === null ? [] : [`Assigned to ${assignee}`]),
    ...(note === null ? [] : [`Note: ${note}`]),
  ].join(' · ');
}

/** Formats an interval without rounding: `90 s`, `2 min`. */
export const formatInterval = (seconds: number): string =>
  seconds % 3600 === 0 ? `${seconds / 3600} h` : seconds % 60 === 0 ? `${seconds / 60} min` : `${seconds} s`;

/** Formats the id of an API key. */
export const formatKeyId = (id: string): string => (id === 'bootstrap' ? 'Key from the configuration' : id);
