/**
 * The search index of a region: entries that find jobs, order groups and recipients by the beginning of a text.
 *
 * An entry's partition is its kind and the first characters of its text, its sort key the text. So a search is one query per
 * kind. An entry is only a pointer: readers load what it points to and compare, because an entry can be older than its job.
 */
import { hash } from 'node:crypto';
import pLimit from 'p-limit';
import { type AccountRef, pad } from './schema.ts';
import type { Item, Key, Query, Table } from './table.ts';

/** Kinds of entries. `address`: the keyed hash of a recipient's address. */
export type IndexedKind = 'job' | 'orderNumber' | 'orderGroup' | 'trackingNumber' | 'recipient' | 'address';

/** Minimum length of a search text (code points). Shorter values are not in the index. */
export const MIN_SEARCH_LENGTH = 2;
/** Number of code points of a value that are in its entry. Readers compare the rest. */
const INDEXED_LENGTH = 100;
/** Precedes all characters of a folded text, so that an exact match is the first of its range. */
const SEPARATOR = '\t';
/** Number of items per batch, and of batches written concurrently. */
const BATCH_ITEMS = 25;
const BATCHES_AT_ONCE = 8;

/**
 * Returns a text in the form in which it is compared: NFKC, without case, with single spaces. It is converted to upper case
 * first, which has the fewest forms: `ß` and `ss`, or both forms of sigma, are equal. Only `ẞ` must be lower case before that.
 */
export function foldSearchText(text: string): string {
  return text
    .toWellFormed()
    .normalize('NFKC')
    .toLowerCase()
    .toUpperCase()
    .toLowerCase()
    .replaceAll('ς', 'σ')
    .normalize('NFKC')
    .replace(/[\p{Cc}\s]+/gu, ' ')
    .trim();
}

/** Partition of the entries of a kind whose folded texts begin with these characters. */
export const searchPk = (region: string, kind: IndexedKind | '*', beginning: string): string =>
  `SEARCH#${region}#${kind}#${beginning}`;

/**
 * Returns the entry of a value. `id`: number or id of what it points to, within its account. `undefined` if the value is
 * too short to be found.
 */
export function toSearchItem(
  { region, account }: AccountRef,
  kind: IndexedKind,
  value: string,
  id: string,
): Item | undefined {
  const text = foldSearchText(value);
  if (!isSearchable(text)) return undefined;
  return {
    pk: searchPk(region, kind, takeFirst(text, MIN_SEARCH_LENGTH)),
    sk: [takeFirst(text, INDEXED_LENGTH), account, id].join(SEPARATOR),
  };
}

/** Returns the entry of a job's value. */
export function toJobSearchItem(
  ref: AccountRef,
  kind: 'job' | 'orderNumber' | 'trackingNumber',
  value: string,
  jobNumber: number,
): Item | undefined {
  return toSearchItem(ref, kind, value, pad(jobNumber, 12));
}

/** Returns the entry of an order group: one for all of its jobs. */
export function toGroupSearchItem(ref: AccountRef, orderGroup: string): Item | undefined {
  const item = toSearchItem(ref, 'orderGroup', orderGroup, hash('sha256', orderGroup).slice(0, 16));
  return item && { ...item, orderGroup };
}

/** Reports whether a folded text is long enough to be searched for. */
export function isSearchable(text: string): boolean {
  return [...text.slice(0, 2 * MIN_SEARCH_LENGTH)].length >= MIN_SEARCH_LENGTH;
}

/** Returns the range of the entries of a kind that begin with a folded text. */
export function toSearchRange(region: string, kind: IndexedKind, text: string): Query {
  const from = takeFirst(text, INDEXED_LENGTH);
  return { pk: searchPk(region, kind, takeFirst(text, MIN_SEARCH_LENGTH)), from, to: `${from}\u{10ffff}` };
}

/** Returns the account of an entry, and the id of what it points to. */
export function parseSearchItem({ sk }: Key): { readonly account: string; readonly id: string } {
  const [, account = '', id = ''] = sk.split(SEPARATOR);
  return { account, id };
}

/** Stores entries, at one write unit each. */
export async function putSearchItems(table: Table, items: readonly Item[]): Promise<void> {
  const batches = Array.from({ length: Math.ceil(items.length / BATCH_ITEMS) }, (_, at) =>
    items.slice(at * BATCH_ITEMS, (at + 1) * BATCH_ITEMS),
  );
  await pLimit(BATCHES_AT_ONCE).map(batches, (batch) => table.putMany(batch));
}

const takeFirst = (text: string, count: number): string =>
  text.length <= count ? text : [...text.slice(0, 2 * count)].slice(0, count).join('');
