/**
 * Tables in one SQLite database, with a synchronous interface; `sqlite-table.ts` implements the port with it.
 * An item is a row: its attributes as JSON, its binary values concatenated in one column, and the index keys
 * in further columns. SQLite compares texts by their UTF-8 bytes, as DynamoDB does.
 * One file: reads and writes share the layout of rows and its statements.
 */
import { existsSync } from 'node:fs';
import { DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite';
import { isDeepStrictEqual } from 'node:util';
import { explainError } from '../error-codes.ts';
import type { IndexSchema, TableSchema } from './schema.ts';
import {
  type Clause,
  compareText,
  type Durability,
  estimateSize,
  getKey,
  type Item,
  type Key,
  MAX_ITEM_BYTES,
  type Query,
  type Write,
} from './table.ts';

/** The tables of a database, by name. */
export type Schemas = Readonly<Record<string, TableSchema>>;

/**
 * The stored form of an item's attributes. The JSON represents a binary value as `{ "bytes": [start, end] }`.
 */
export interface Stored {
  readonly json: string;
  readonly bytes: Uint8Array | null;
}

/** Writes to one table. A transaction is all or nothing; `put many` contains puts without conditions. */
export interface WriteBatch {
  readonly table: string;
  readonly kind: 'write' | 'transact' | 'put many';
  readonly writes: readonly Write[];
  /** Transactions only. A transaction repeated with the same token is executed once. */
  readonly token?: string;
  readonly durability?: Durability | undefined;
}

/**
 * The result of an order. Plain data, because it may cross threads: errors are messages, and items are not
 * parsed yet.
 */
export type Result =
  | { readonly done: true; readonly item?: Stored | undefined }
  | { readonly done: false; readonly item?: Stored | undefined; readonly failed: readonly number[] }
  | {
      readonly error: string;
      /** Whether the database failed, and not only this order: for example, the disk is full. */
      readonly isFault?: boolean;
    };

/** The file cannot be used: it is not a Jobwire database, or a later version wrote it. */
export class StoreFormatError extends Error {
  override readonly name = 'StoreFormatError';
}

/** The table does not accept the request; the message gives the reason. */
export class RequestRejected extends Error {
  override readonly name = 'Refused';
}

/** The layout of the file, in SQLite's `user_version`. */
const LAYOUT = 1;
/** "Jobw" in ASCII, in SQLite's `application_id`. */
const APPLICATION_ID = 0x4a6f6277;
/**
 * How long a connection waits for another connection's lock. Locks are contended only at startup and
 * shutdown.
 */
const BUSY_MS = 5_000;
const MAX_WAL_BYTES = 64 * 1024 * 1024;
/** Size (pages of 4 kB) of the write-ahead log at which it is copied to the database. Commits wait for the copy. */
const CHECKPOINT_PAGES = 8_192;
/** Maximum number of transaction tokens in memory, each with the writes of its transaction. */
const TOKENS = 50;
/** Maximum number of expired items that one sweep deletes. */
const SWEEP_ITEMS = 500;
/** Maximum number of items in one page. */
const PAGE_ITEMS = 500;
const PAGE_CHARACTERS = 2_000_000;

/** The writing connection: one for each database, in one thread. */
export class SqliteStore {
  readonly database: DatabaseSync;
  readonly #tables: ReadonlyMap<string, StoredTable>;
  readonly #tokens = new Map<string, readonly Write[]>();
  readonly #begin: StatementSync;
  readonly #end: StatementSync;
  #waitsForDisk = true;

  /**
   * Opens the database file (`:memory:`: a private database in memory) and creates missing tables. Throws
   * {@link StoreFormatError}.
   */
  constructor(path: string, schemas: Schemas) {
    this.database = new DatabaseSync(path, { timeout: BUSY_MS });
    try {
      prepare(this.database, schemas);
      this.#tables = openTables(this.database, schemas);
      this.#begin = this.database.prepare('BEGIN IMMEDIATE');
      this.#end = this.database.prepare('COMMIT');
    } catch (cause) {
      this.database.close();
      throw cause;
    }
  }

  /**
   * Executes the orders one after the other in one commit, which waits for the disk unless all of them are relaxed. A commit that waits
   * makes all earlier ones durable. A rejected order changes nothing. If the database fails (for example a full disk), all orders fail.
   */
  commit(orders: readonly WriteBatch[]): Result[] {
    const tokens: string[] = [];
    try {
      this.#waitForDisk(orders.some(({ durability }) => !durability?.relaxed));
      this.#begin.run();
      const results = orders.map((order): Result => {
        try {
          const result = this.#execute(order);
          if (order.token !== undefined && 'done' in result && result.done) {
            this.#tokens.set(order.token, order.writes);
            tokens.push(order.token);
          }
          return result;
        } catch (cause) {
          if (cause instanceof RequestRejected) return { error: cause.message };
          throw cause;
        }
      });
      this.#end.run();
      for (const token of this.#tokens.keys()) {
        if (this.#tokens.size <= TOKENS) break;
        this.#tokens.delete(token);
      }
      return results;
    } catch (cause) {
      for (const token of tokens) this.#tokens.delete(token);
      if (this.database.isTransaction) this.database.exec('ROLLBACK');
      return orders.map(() => ({ error: explainError(cause), isFault: true }));
    }
  }

  /** Deletes expired items (TTL before `now`, epoch seconds). Returns true if there may be more. */
  sweep(now: number): boolean {
    let swept = 0;
    for (const table of this.#tables.values()) swept += table.sweep(now);
    return swept >= SWEEP_ITEMS;
  }

  close(): void {
    this.database.close();
  }

  #waitForDisk(waits: boolean): void {
    if (waits === this.#waitsForDisk) return;
    this.database.exec(`PRAGMA synchronous = ${waits ? 'FULL' : 'NORMAL'}`);
    this.#waitsForDisk = waits;
  }

  #execute({ table: name, kind, writes, token }: WriteBatch): Result {
    const table = getTable(this.#tables, name);
    if (kind === 'put many') {
      const left = writes.map((write) => table.toRow(write, undefined));
      for (const one of left) table.store(one);
      return { done: true };
    }
    const known = token === undefined ? undefined : this.#tokens.get(token);
    if (known) {
      if (isDeepStrictEqual(known, writes)) return { done: true };
      throw new RequestRejected('a token was reused for a different transaction');
    }
    const found = writes.map((write) => table.find(write));
    const failed = writes.flatMap((write, at) => (conditionsHold(write, found[at]?.item) ? [] : [at]));
    if (failed.length > 0) {
      return { done: false, failed, ...(kind === 'write' && { item: found[0]?.stored }) };
    }
    const left = writes.map((write, at) => table.toRow(write, found[at]));
    for (const [at, write] of writes.entries()) {
      if (!('check' in write)) table.store(left[at] as Row);
    }
    return { done: true, ...(kind === 'write' && { item: left[0]?.stored }) };
  }
}

/** A reading connection, in the caller's thread: a read takes less time than a message to another thread. */
export class SqliteReader {
  readonly #database: DatabaseSync | undefined;
  readonly #tables: ReadonlyMap<string, StoredTable>;

  /** Opens a database file, or reads through the connection of a store. */
  constructor(source: string | SqliteStore, schemas: Schemas) {
    if (typeof source === 'string') {
      this.#database = new DatabaseSync(source, { readOnly: true, timeout: BUSY_MS });
    }
    const database = typeof source === 'string' ? this.#database : source.database;
    this.#tables = openTables(database as DatabaseSync, schemas);
  }

  get(table: string, key: Key): Item | undefined {
    const stored = getTable(this.#tables, table).read(key);
    return stored && toItem(stored);
  }

  /**
   * Returns the next items of a range and the place to continue from. Without `next`, the range was read to
   * its end or limit.
   */
  page(table: string, query: Query, from?: Place): Page {
    return getTable(this.#tables, table).page(query, from);
  }

  close(): void {
    this.#database?.close();
  }
}

/** Some items of a range. */
export interface Page {
  readonly items: Item[];
  readonly next?: Place;
}

/** The last item read of a range: its sort key there, and its own key. */
export type Place = readonly [sort: string, pk: string, sk: string];

/** Converts an item to its stored form. */
export function toStored(item: Item): Stored {
  const parts: Uint8Array[] = [];
  let length = 0;
  const binary: Record<string, unknown> = Object.create(null);
  for (const [name, value] of Object.entries(item)) {
    if (value instanceof Uint8Array) {
      binary[name] = { bytes: [length, length + value.byteLength] };
      parts.push(value);
      length += value.byteLength;
    } else if (typeof value === 'number' && !Number.isFinite(value)) {
      throw new RequestRejected(`${name} is ${value}, which cannot be stored`);
    }
  }
  if (parts.length === 0) return { json: JSON.stringify(item), bytes: null };
  return { json: JSON.stringify({ ...item, ...binary }), bytes: Buffer.concat(parts, length) };
}

/** Converts a stored form to its item. */
export function toItem({ json, bytes }: Stored): Item {
  const item = JSON.parse(json);
  if (bytes) {
    for (const [name, value] of Object.entries(item)) {
      if (value !== null && typeof value === 'object' && 'bytes' in value) {
        const [start, end] = value.bytes as [number, number];
        item[name] = bytes.slice(start, end);
      }
    }
  }
  return item as Item;
}

/** An item in both forms. Without them, no item exists under the key. */
interface Row {
  readonly key: Key;
  readonly item?: Item;
  readonly stored?: Stored;
}

/** One table through one connection. */
class StoredTable {
  readonly #schema: TableSchema;
  /** Attributes that are index keys and therefore columns. */
  readonly #columns: readonly string[];
  readonly #statements = new Map<string, StatementSync>();
  readonly #database: DatabaseSync;
  readonly #name: string;
  readonly #sql: { readonly get: string; readonly put: string; readonly delete: string };

  constructor(database: DatabaseSync, name: string, schema: TableSchema) {
    this.#database = database;
    this.#name = quote(name);
    this.#schema = schema;
    this.#columns = listIndexColumns(schema);
    const columns = ['pk', 'sk', 'item', 'bytes', quote(schema.ttlAttribute), ...this.#columns.map(quote)];
    const changes = columns.slice(2).map((one) => `${one} = excluded.${one}`);
    this.#sql = {
      get: `SELECT item, bytes FROM ${this.#name} WHERE pk = ? AND sk = ?`,
      delete: `DELETE FROM ${this.#name} WHERE pk = ? AND sk = ?`,
      put:
        `INSERT INTO ${this.#name} (${columns.join(', ')}) VALUES (${columns.map(() => '?').join(', ')}) ` +
        `ON CONFLICT (pk, sk) DO UPDATE SET ${changes.join(', ')}`,
    };
  }

  read({ pk, sk }: Key): Stored | undefined {
    const row = this.#statement(this.#sql.get).get(pk, sk);
    const [json, bytes] = (row ?? []) as unknown as [string?, (Uint8Array | null)?];
    return json === undefined ? undefined : { json, bytes: bytes ?? null };
  }

  page(query: Query, from: Place | undefined): Page {
    const index = query.index === undefined ? undefined : this.#index(query.index);
    const [partition, sort] = index ? [index.partitionKey, index.sortKey].map(quote) : ['pk', 'sk'];
    const [then, order] = query.descending ? ['<', 'DESC'] : ['>', 'ASC'];
    const where = [`${partition} = ?`];
    const values: SQLInputValue[] = [query.pk];
    const and = (clause: string, ...more: string[]) => {
      where.push(clause);
      values.push(...more);
    };
    if (index) and(`${sort} IS NOT NULL`);
    if (query.after !== undefined) and(`${sort} > ?`, query.after);
    else if (query.from !== undefined) and(`${sort} >= ?`, query.from);
    if (query.to !== undefined) and(`${sort} <= ?`, query.to);
    if (from) and(`(${sort}, pk, sk) ${then} (?, ?, ?)`, ...from);
    const keysOnly = index?.holds === 'keys';
    const statement = this.#statement(
      `SELECT ${sort}, pk, sk${keysOnly ? '' : ', item, bytes'} FROM ${this.#name} WHERE ${where.join(' AND ')} ` +
        `ORDER BY ${sort} ${order}, pk ${order}, sk ${order} LIMIT ?`,
    );
    const limit = Math.min(query.limit ?? PAGE_ITEMS, PAGE_ITEMS);
    const items: Item[] = [];
    let last: Place | undefined;
    let characters = 0;
    for (const row of statement.iterate(...values, limit)) {
      const [place, pk, sk, json, bytes] = row as unknown as [
        string,
        string,
        string,
        string,
        Uint8Array | null,
      ];
      items.push(
        keysOnly
          ? ({ pk, sk, [index.partitionKey]: query.pk, [index.sortKey]: place } as Item)
          : toItem({ json, bytes }),
      );
      last = [place, pk, sk];
      characters += keysOnly ? 0 : json.length + (bytes?.byteLength ?? 0);
      if (characters >= PAGE_CHARACTERS) break;
    }
    const ended = items.length < limit && characters < PAGE_CHARACTERS;
    return { items, ...(last && !ended && { next: last }) };
  }

  /** Returns the item of a write, if the write depends on it. */
  find(write: Write): Row {
    const key = getKey(write);
    const stored = 'update' in write || write.when?.length ? this.read(key) : undefined;
    return stored ? { key, stored, item: toItem(stored) } : { key };
  }

  /**
   * Returns the row that the write leaves. Throws {@link RequestRejected}, before anything is stored, for writes that
   * DynamoDB rejects.
   */
  toRow(write: Write, found: Row | undefined): Row {
    const key = getKey(write);
    if ('delete' in write) return { key };
    if ('check' in write) return found ?? { key };
    if ('put' in write) return this.#toCheckedRow(key, write.put);
    const sums = Object.entries(write.add ?? {}).map(
      ([name, number]) => [name, Number(found?.item?.[name] ?? 0) + number] as const,
    );
    const changes = [...Object.values(write.set), ...sums];
    if (!found?.item && changes.length > 0 && changes.every((value) => value === undefined)) return { key };
    return this.#toCheckedRow(key, { ...found?.item, ...key, ...write.set, ...Object.fromEntries(sums) });
  }

  store({ key: { pk, sk }, item, stored }: Row): void {
    if (!item || !stored) {
      this.#statement(this.#sql.delete).run(pk, sk);
      return;
    }
    const ttl = item[this.#schema.ttlAttribute];
    this.#statement(this.#sql.put).run(
      ...[pk, sk, stored.json, stored.bytes, typeof ttl === 'number' ? ttl : null],
      ...this.#columns.map((name) => (item[name] ?? null) as string | null),
    );
  }

  sweep(now: number): number {
    const ttl = quote(this.#schema.ttlAttribute);
    const { changes } = this.#statement(
      `DELETE FROM ${this.#name} WHERE rowid IN (SELECT rowid FROM ${this.#name} WHERE ${ttl} < ? LIMIT ${SWEEP_ITEMS})`,
    ).run(now);
    return Number(changes);
  }

  #toCheckedRow(key: Key, item: Item): Row {
    if (estimateSize(item) > MAX_ITEM_BYTES) {
      throw new RequestRejected(`item ${item.pk} ${item.sk} is over ${MAX_ITEM_BYTES} bytes`);
    }
    for (const name of ['pk', 'sk', ...this.#columns]) {
      const value = item[name];
      if (value !== undefined && (typeof value !== 'string' || value === '' || !value.isWellFormed())) {
        throw new RequestRejected(`${name} is a key and must be non-empty, well-formed text`);
      }
    }
    return { key, item, stored: toStored(item) };
  }

  #index(name: string): IndexSchema {
    const index = this.#schema.indexes[name];
    if (!index) throw new RequestRejected(`there is no index ${name}`);
    return index;
  }

  #statement(sql: string): StatementSync {
    let statement = this.#statements.get(sql);
    if (!statement) {
      statement = this.#database.prepare(sql);
      statement.setReturnArrays(true);
      this.#statements.set(sql, statement);
    }
    return statement;
  }
}

/** Reports whether the conditions of a write hold on its item. */
function conditionsHold({ when }: Write, item: Item | undefined): boolean {
  return when?.every((clause) => clauseHolds(item, clause)) ?? true;
}

/** Reports whether one clause holds on an item (`undefined`: no item). */
function clauseHolds(item: Item | undefined, clause: Clause): boolean {
  const actual = item?.[clause[0]];
  const test = clause[1];
  if (test === 'present') return actual !== undefined;
  if (test === 'absent') return actual === undefined;
  const value = clause[2];
  if (value === undefined) return false;
  if (actual === undefined) return test.startsWith('absent or ');
  if (typeof actual !== typeof value) return false;
  const order =
    typeof actual === 'string' ? compareText(actual, String(value)) : Number(actual) - Number(value);
  switch (test) {
    case '=':
    case 'absent or =':
      return order === 0;
    case '<':
    case 'absent or <':
      return order < 0;
    case '<=':
    case 'absent or <=':
      return order <= 0;
    case '>':
      return order > 0;
  }
}

/** Sets up a writing connection, and creates the tables, columns and indexes that the schemas define and the file lacks. */
function prepare(database: DatabaseSync, schemas: Schemas): void {
  const missing = listMissing(database, schemas);
  // FULL: acknowledged writes survive a power failure, unless they are relaxed.
  database.exec(`
    PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA journal_size_limit = ${MAX_WAL_BYTES};
    PRAGMA wal_autocheckpoint = ${CHECKPOINT_PAGES};`);
  if (missing.length > 0) database.exec(['BEGIN IMMEDIATE', ...missing, 'COMMIT'].join('; '));
}

/** Returns the statements that create what the file lacks. Throws {@link StoreFormatError}. */
function listMissing(database: DatabaseSync, schemas: Schemas): string[] {
  const pragma = (name: string): number =>
    Number(Object.values(database.prepare(`PRAGMA ${name}`).get() ?? {})[0]);
  const select = (sql: string): ReadonlySet<unknown> =>
    new Set(
      database
        .prepare(sql)
        .all()
        .map(({ name }) => name),
    );
  const [application, layout] = [pragma('application_id'), pragma('user_version')];
  const known = select('SELECT name FROM sqlite_schema');
  if (known.size > 0 && application !== APPLICATION_ID)
    throw new StoreFormatError('it is not a Jobwire database');
  if (layout > LAYOUT)
    throw new StoreFormatError(`it was written by a later version of Jobwire (layout ${layout})`);
  const missing: string[] = [];
  if (application !== APPLICATION_ID) missing.push(`PRAGMA application_id = ${APPLICATION_ID}`);
  if (layout !== LAYOUT) missing.push(`PRAGMA user_version = ${LAYOUT}`);
  for (const [name, schema] of Object.entries(schemas)) {
    const table = quote(name);
    const ttl = quote(schema.ttlAttribute);
    const columns = listIndexColumns(schema);
    if (known.has(name)) {
      const existing = select(`SELECT name FROM pragma_table_info('${name}')`);
      for (const column of columns.filter((one) => !existing.has(one))) {
        missing.push(
          `ALTER TABLE ${table} ADD COLUMN ${quote(column)} TEXT`,
          `UPDATE ${table} SET ${quote(column)} = item ->> '${column}'`,
        );
      }
    } else {
      missing.push(
        `CREATE TABLE ${table} (pk TEXT NOT NULL, sk TEXT NOT NULL, item TEXT NOT NULL, bytes BLOB, ` +
          `${ttl} REAL, ${columns.map((column) => `${quote(column)} TEXT, `).join('')}PRIMARY KEY (pk, sk))`,
      );
    }
    const addIndex = (index: string, definition: string): void => {
      if (!known.has(index)) missing.push(`CREATE INDEX ${quote(index)} ON ${table} ${definition}`);
    };
    addIndex(`${name} ttl`, `(${ttl}) WHERE ${ttl} IS NOT NULL`);
    for (const [index, { partitionKey, sortKey }] of Object.entries(schema.indexes)) {
      const [partition, sort] = [quote(partitionKey), quote(sortKey)];
      addIndex(
        `${name} ${index}`,
        `(${partition}, ${sort}, pk, sk) WHERE ${partition} IS NOT NULL AND ${sort} IS NOT NULL`,
      );
    }
  }
  return missing;
}

/** Returns whether a file exists and has everything that the schemas define. Only reads. Throws {@link StoreFormatError}. */
export function isPrepared(path: string, schemas: Schemas): boolean {
  if (!existsSync(path)) return false;
  const database = new DatabaseSync(path, { readOnly: true, timeout: BUSY_MS });
  try {
    return listMissing(database, schemas).length === 0;
  } finally {
    database.close();
  }
}

function openTables(database: DatabaseSync, schemas: Schemas): ReadonlyMap<string, StoredTable> {
  return new Map(
    Object.entries(schemas).map(([name, schema]) => [name, new StoredTable(database, name, schema)]),
  );
}

/** The attributes that are keys of indexes and not of the table itself. */
function listIndexColumns(schema: TableSchema): string[] {
  const keys = Object.values(schema.indexes).flatMap(({ partitionKey, sortKey }) => [partitionKey, sortKey]);
  return [...new Set(keys)].filter((name) => name !== schema.partitionKey && name !== schema.sortKey);
}

function getTable(tables: ReadonlyMap<string, StoredTable>, name: string): StoredTable {
  const table = tables.get(name);
  if (!table) throw new TypeError(`There is no table ${name}.`);
  return table;
}

function quote(name: string): string {
  return `"${name}"`;
}
