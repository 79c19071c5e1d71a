/**
 * The port to one DynamoDB-shaped table: items under a partition and a sort key, conditional writes, transactions.
 *
 * Two implementations run one conformance suite (`test/tables/table.test.ts`): `dynamo-table.ts` and `memory-table.ts`.
 * Everything above speaks this port, so that rules about ordering, fencing and chunks are written once.
 */

/** What an attribute can hold. Documents that are only read and written whole are kept as JSON text. */
export type Value = string | number | boolean | null | Uint8Array | readonly string[];

/** The primary key of an item. */
export interface Key {
  readonly pk: string;
  readonly sk: string;
}

/** One item: its key and its attributes. An attribute that is absent is `undefined`. */
export type Item = Key & { readonly [attribute: string]: Value | undefined };

/**
 * One named clause of a condition; clauses are joined by AND. `absent or …` holds also when the attribute is missing.
 * Comparisons are of numbers, or of texts by {@link compareText}; a number and a text never compare.
 */
export type Clause =
  | readonly [attribute: string, test: 'present' | 'absent']
  | readonly [attribute: string, test: Comparison, value: string | number];

/** The comparisons a clause can make. */
export type Comparison = '=' | '<' | '<=' | '>' | 'absent or =' | 'absent or <' | 'absent or <=';

/** One write. `when` must hold on the item as it stands, or nothing is written. */
export type Write =
  | { readonly put: Item; readonly when?: readonly Clause[] }
  | {
      readonly update: Key;
      /**
       * Attributes to set; `undefined` removes the attribute. An item that is not there is made, except perhaps by an update
       * that sets nothing: servers differ on it. In a transaction there must be something to set or remove.
       */
      readonly set: { readonly [attribute: string]: Value | undefined };
      readonly when?: readonly Clause[];
    }
  | { readonly delete: Key; readonly when?: readonly Clause[] }
  | { readonly check: Key; readonly when: readonly Clause[] };

/**
 * What became of a single write: the item as it stands now, either way (absent after a delete). A write whose first answer
 * was lost counts as done if the item stands as it would have left it, even if the condition no longer holds.
 */
export type WriteOutcome =
  | { readonly done: true; readonly item?: Item | undefined }
  | { readonly done: false; readonly item?: Item | undefined };

/**
 * What became of a transaction: written whole, or not at all with the positions whose condition did not hold. These are
 * facts, but perhaps not all of them: a position in conflict with another transaction at that moment was not judged.
 */
export type TransactOutcome =
  | { readonly done: true }
  | { readonly done: false; readonly failed: readonly number[] };

/** A range of one partition, of the table or of one of its indexes, in sort-key order. */
export interface Query {
  readonly pk: string;
  /** An index of the schema; absent for the table itself. Index reads are eventually consistent. */
  readonly index?: string;
  /** Inclusive lower bound of the sort key. */
  readonly from?: string;
  /** Exclusive lower bound of the sort key; given both, it is the one that counts. */
  readonly after?: string;
  /** Inclusive upper bound of the sort key. */
  readonly to?: string;
  /** At most this many items. Without it the whole range is read, page by page. */
  readonly limit?: number;
  readonly descending?: boolean;
}

/** Capacity units a table has consumed since it was made, as the service itself counts them (0 in memory). */
export interface Units {
  readonly read: number;
  readonly write: number;
}

/** The port. Every read of the table itself (not of an index) is strongly consistent. */
export interface Table {
  /** One item, or `undefined`. */
  get(key: Key): Promise<Item | undefined>;
  /** The items that exist among the keys, each once and in no particular order; any number of keys. */
  getMany(keys: readonly Key[]): Promise<Item[]>;
  /** A range in sort-key order; see {@link Query}. */
  query(query: Query): Promise<Item[]>;
  /**
   * Puts without conditions, of any number of items and as cheaply as can be: not all or none, and in no order. Of items with
   * the same key the last one counts. After a {@link TableError} some are written and some are not; to put them again is
   * harmless.
   */
  putMany(items: readonly Item[]): Promise<void>;
  /** One conditional write (not a `check`). A condition that does not hold is an outcome, not an error. */
  write(write: Exclude<Write, { check: Key }>): Promise<WriteOutcome>;
  /**
   * All writes or none; at most {@link MAX_TRANSACTION_ACTIONS}. The token makes a repeated call the same call: conflicts,
   * throttling and time-outs are retried inside with it, and are never reported as a failed condition.
   */
  transact(writes: readonly Write[], token: string): Promise<TransactOutcome>;
  /** Units consumed so far. */
  units(): Units;
}

/** DynamoDB's limit on the actions of one transaction. */
export const MAX_TRANSACTION_ACTIONS = 100;
/** What we put into one transaction at most: DynamoDB's 4 MB less a margin for names and its own overhead. */
export const MAX_TRANSACTION_BYTES = 3_500_000;
/** DynamoDB's limit on one item. */
export const MAX_ITEM_BYTES = 400_000;

/** The table could not answer: throttled, in conflict or unreachable after all retries. Nothing is known of the write. */
export class TableError extends Error {
  override readonly name = 'TableError';
  readonly operation: string;

  constructor(operation: string, message: string, cause?: unknown) {
    super(`The table could not ${operation}: ${message}`, { cause });
    this.operation = operation;
  }
}

/**
 * The order of texts in DynamoDB: by their UTF-8 bytes, which is by code point. The language's own comparison is by UTF-16
 * code unit and puts characters beyond U+FFFF too early.
 */
export function compareText(a: string, b: string): number {
  const common = Math.min(a.length, b.length);
  for (let at = 0; at < common; at += 1) {
    const difference = textRank(a.charCodeAt(at)) - textRank(b.charCodeAt(at));
    if (difference !== 0) return difference;
  }
  return a.length - b.length;
}

/** Surrogates stand for code points above all that one unit can hold. */
function textRank(unit: number): number {
  return unit >= 0xd800 && unit <= 0xdfff ? unit + 0x10000 : unit;
}

/** The key a write is about. */
export function keyOf(write: Write): Key {
  if ('put' in write) return { pk: write.put.pk, sk: write.put.sk };
  if ('update' in write) return write.update;
  if ('delete' in write) return write.delete;
  return write.check;
}

/** The size DynamoDB bills for an item, near enough for chunking: names and values in UTF-8, numbers as 21 bytes at most. */
export function sizeOf(item: { readonly [attribute: string]: Value | undefined }): number {
  let bytes = 0;
  for (const [name, value] of Object.entries(item)) {
    if (value === undefined) continue;
    bytes += name.length + 1;
    if (typeof value === 'string') bytes += Buffer.byteLength(value);
    else if (typeof value === 'number') bytes += 21;
    else if (value instanceof Uint8Array) bytes += value.byteLength;
    else if (Array.isArray(value)) for (const text of value) bytes += Buffer.byteLength(text) + 1;
    else bytes += 1;
  }
  return bytes;
}
