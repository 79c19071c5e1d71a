/**
 * The port to one DynamoDB-shaped table: items under a partition key and a sort key, conditional writes,
 * transactions.
 *
 * The implementations `dynamo-table.ts` and `sqlite-table.ts` run one conformance suite
 * (`test/storage/table.tables.test.ts`). All other code uses this port, so that the rules about ordering, fencing and
 * chunks are written once.
 */
import pLimit from 'p-limit';

/** The content of an attribute. Documents that are only read and written whole are stored as JSON text. */
export type Value = string | number | boolean | null | Uint8Array | readonly string[];

/** The primary key of an item. */
export interface Key {
  readonly pk: string;
  readonly sk: string;
}

/** One item: its key and its attributes. An attribute that is absent is `undefined`. */
export type Item = Key & { readonly [attribute: string]: Value | undefined };

/**
 * One named clause of a condition; clauses are joined by AND. `absent or …` also holds if the attribute is
 * absent. Comparisons are of numbers, or of texts by {@link compareText}. A comparison of a number with a
 * text never holds.
 */
export type Clause =
  | readonly [attribute: string, test: 'present' | 'absent']
  | readonly [attribute: string, test: Comparison, value: string | number];

/** The comparison operators of a clause. */
export type Comparison = '=' | '<' | '<=' | '>' | 'absent or =' | 'absent or <' | 'absent or <=';

/** One write. `when` must hold on the current item; otherwise nothing is written. */
export type Write =
  | { readonly put: Item; readonly when?: readonly Clause[] }
  | {
      readonly update: Key;
      /**
       * Attributes to set; `undefined` removes the attribute. A missing item is created, except perhaps by an
       * update that sets nothing: servers differ. In a transaction, an update must set or remove something.
       */
      readonly set: { readonly [attribute: string]: Value | undefined };
      /**
       * Numbers to add to further attributes; an absent one counts as 0. If a response is lost, the numbers are perhaps added twice.
       */
      readonly add?: { readonly [attribute: string]: number };
      readonly when?: readonly Clause[];
    }
  | { readonly delete: Key; readonly when?: readonly Clause[] }
  | { readonly check: Key; readonly when: readonly Clause[] };

/**
 * The outcome of a single write, with the current item in both cases (absent after a delete). A write whose
 * first response was lost counts as done if the item is in the state that the write would have produced, even
 * if the condition no longer holds.
 */
export type WriteOutcome =
  | { readonly done: true; readonly item?: Item | undefined }
  | { readonly done: false; readonly item?: Item | undefined };

/**
 * The outcome of a transaction: written whole, or not at all with the positions whose condition did not hold.
 * The list can be incomplete: a position in conflict with another transaction at that time was not evaluated.
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
  /** Exclusive lower bound of the sort key. Takes precedence over `from`. */
  readonly after?: string;
  /** Inclusive upper bound of the sort key. */
  readonly to?: string;
  /** Maximum number of items. Default: the whole range, read page by page. */
  readonly limit?: number;
  readonly descending?: boolean;
}

/** Capacity units consumed since the table object was created, as the service counts them (0 in SQLite). */
export interface Units {
  readonly read: number;
  readonly write: number;
}

/** Durability of a write. Default: a write that has succeeded survives a power failure. */
export interface Durability {
  /**
   * A power failure can undo the write, together with all later relaxed ones; the end of the process cannot. For data that is written
   * again if it is missing, such as positions: it does not wait for the disk. DynamoDB makes every write durable.
   */
  readonly relaxed: boolean;
}
export const RELAXED: Durability = { relaxed: true };

/** The port. Every read of the table itself (not of an index) is strongly consistent. */
export interface Table {
  /** Returns one item, or `undefined`. */
  get(key: Key): Promise<Item | undefined>;
  /** Returns the existing items among any number of keys, each once, in no particular order. */
  getMany(keys: readonly Key[]): Promise<Item[]>;
  /** Returns a range in sort-key order; see {@link Query}. */
  query(query: Query): Promise<Item[]>;
  /**
   * Puts any number of items without conditions, at the lowest cost: not atomic and not ordered. If items
   * share a key, the last one wins. After a {@link TableError}, some items are written and some are not.
   * Repeating the call is harmless.
   */
  putMany(items: readonly Item[], durability?: Durability): Promise<void>;
  /**
   * Executes one conditional write (not a `check`). A condition that does not hold is an outcome, not an
   * error.
   */
  write(write: Exclude<Write, { check: Key }>, durability?: Durability): Promise<WriteOutcome>;
  /**
   * Executes all writes or none; at most {@link MAX_TRANSACTION_ACTIONS}. The token makes a repeated call
   * idempotent. Conflicts, throttling and timeouts are retried with the same token and never reported as a
   * failed condition.
   */
  transact(writes: readonly Write[], token: string, durability?: Durability): Promise<TransactOutcome>;
  /** Returns the units consumed so far. */
  units(): Units;
  /**
   * Whether writes of this table and of the other table of the installation take effect in the order of their calls, also if the process is
   * killed: a write need not wait for another one that must precede it. Absent: they do not.
   */
  readonly ordered?: true;
}

/** DynamoDB's limit on the actions of one transaction. */
export const MAX_TRANSACTION_ACTIONS = 100;
/**
 * Our maximum size of one transaction (bytes): DynamoDB's 4 MB less a margin for names and its own overhead.
 */
export const MAX_TRANSACTION_BYTES = 3_500_000;
/** DynamoDB's limit on one item. */
export const MAX_ITEM_BYTES = 400_000;

/**
 * The table could not respond: throttled, in conflict or unreachable after all retries. The outcome of the
 * write is unknown.
 */
export class TableError extends Error {
  override readonly name = 'TableError';
  readonly operation: string;

  constructor(operation: string, message: string, cause?: unknown) {
    super(`The table could not ${operation}: ${message}`, { cause });
    this.operation = operation;
  }
}

/**
 * Compares texts in DynamoDB's order: by UTF-8 bytes, which is by code point. JavaScript compares UTF-16 code
 * units, which sorts characters beyond U+FFFF too early.
 */
export function compareText(a: string, b: string): number {
  const common = Math.min(a.length, b.length);
  for (let at = 0; at < common; at += 1) {
    const difference = textRank(a.charCodeAt(at)) - textRank(b.charCodeAt(at));
    if (difference !== 0) return difference;
  }
  return a.length - b.length;
}

/** Surrogates represent code points above all that one unit can hold. */
function textRank(unit: number): number {
  return unit >= 0xd800 && unit <= 0xdfff ? unit + 0x10000 : unit;
}

/** Returns the key of the item that a write targets. */
export function getKey(write: Write): Key {
  if ('put' in write) return { pk: write.put.pk, sk: write.put.sk };
  if ('update' in write) return write.update;
  if ('delete' in write) return write.delete;
  return write.check;
}

/** The size DynamoDB bills for an item, near enough for chunking: names and values in UTF-8, numbers as 21 bytes at most. */
export function estimateSize(item: { readonly [attribute: string]: Value | undefined }): number {
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

/** Number of items deleted concurrently. */
const DELETES_AT_ONCE = 32;

/** Deletes items, in no particular order. */
export async function deleteItems(table: Table, items: readonly Key[]): Promise<void> {
  await pLimit(DELETES_AT_ONCE).map(items, ({ pk, sk }) => table.write({ delete: { pk, sk } }));
}
