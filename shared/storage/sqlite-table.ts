/**
 * The table in SQLite: in a file for self-hosting, in memory for the demo's tests and benchmarks. Reads run
 * in the calling thread, because they take microseconds. Writes to a file run in a worker: all orders that
 * arrive during one commit are committed together by the next.
 */
import { Worker } from 'node:worker_threads';
import { explainError } from '../error-codes.ts';
import { workerFile } from '../worker-file.ts';
import { historySchema, stateSchema, type TableSchema } from './schema.ts';
import {
  isPrepared,
  type Result,
  SqliteReader,
  SqliteStore,
  StoreFormatError,
  toItem,
  type WriteBatch,
} from './sqlite-store.ts';
import {
  getKey,
  type Item,
  MAX_TRANSACTION_ACTIONS,
  type Query,
  type Table,
  TableError,
  type Write,
  type WriteOutcome,
} from './table.ts';

/** Both tables of a Jobwire installation in one file. */
export interface SqliteTables {
  readonly table: Table;
  /** The history table. */
  readonly history: Table;
  /** Waits for pending writes and closes the file. Idempotent. */
  close(): Promise<void>;
}

/** The schemas of the file's tables, by their names there. */
export const FILE_SCHEMAS = { state: stateSchema, history: historySchema } as const;
/** Time (ms) that reads may use in one turn of the event loop before other work runs. */
const TURN_MS = 10;

/** Creates an empty table in memory, in this thread. */
export function createMemoryTable(schema: TableSchema = stateSchema): Table {
  const store = new SqliteStore(':memory:', { table: schema });
  const reader = new SqliteReader(store, { table: schema });
  return createTable(
    'table',
    reader,
    async (order) => store.commit([order])[0] as Result,
    async () => {},
  );
}

/**
 * Opens the database file, and creates it if necessary. Only one process may open it: the caller holds the
 * lock of the folder.
 *
 * `onFailure` is called if the worker exits without `close`; the file contains all acknowledged writes. The
 * cause is a {@link StoreFormatError} if it could not open the file. `onWrite` is called after each write: with the reason if the database
 * failed, otherwise with `undefined`. Throws {@link StoreFormatError}.
 */
export async function openSqliteTables(
  path: string,
  onFailure: (cause: unknown) => void = () => {},
  onWrite: (fault: string | undefined) => void = () => {},
): Promise<SqliteTables> {
  // Nothing waits for the worker to start unless it must create something first.
  const isReady = checkFile(path);
  const worker = startWriter(path, onFailure, isReady);
  if (!isReady) await worker.opened;
  const reader = new SqliteReader(path, FILE_SCHEMAS);
  let closed: Promise<void> | undefined;
  const commit: Commit = async (order) => {
    const result = await worker.commit(order);
    onWrite('error' in result && result.isFault ? result.error : undefined);
    return result;
  };
  return {
    // The writer executes the orders of both tables one after the other.
    table: { ...createTable('state', reader, commit, turn), ordered: true },
    history: { ...createTable('history', reader, commit, turn), ordered: true },
    close() {
      // The writer closes last: the last connection to close cleans up the database.
      if (!closed) reader.close();
      closed ??= worker.close();
      return closed;
    },
  };
}

/** Returns whether the writer has nothing to create. */
function checkFile(path: string): boolean {
  try {
    return isPrepared(path, FILE_SCHEMAS);
  } catch (cause) {
    throw cannotOpen(path, cause);
  }
}

function cannotOpen(path: string, cause: unknown): StoreFormatError {
  return new StoreFormatError(`The database ${path} cannot be opened: ${explainError(cause)}.`, { cause });
}

type Commit = (order: WriteBatch) => Promise<Result>;

/** Implements the port over a table. Waits for `turn` before each read. */
function createTable(table: string, reader: SqliteReader, commit: Commit, turn: () => Promise<void>): Table {
  async function read<T>(operation: string, action: () => T): Promise<T> {
    await turn();
    try {
      return action();
    } catch (cause) {
      if (cause instanceof TableError) throw cause;
      throw new TableError(operation, cause instanceof Error ? cause.message : String(cause), cause);
    }
  }

  async function execute(order: WriteBatch): Promise<Exclude<Result, { error: string }>> {
    const result = await commit(order);
    if ('error' in result) throw new TableError(order.kind, result.error);
    return result;
  }

  return {
    get: (key) => read('get', () => reader.get(table, key)),
    async getMany(keys) {
      const items = new Map<string, Item>();
      for (const key of keys) {
        const item = await read('get many', () => reader.get(table, key));
        if (item) items.set(JSON.stringify([key.pk, key.sk]), item);
      }
      return [...items.values()];
    },
    async query(query) {
      const found: Item[] = [];
      let from: Parameters<SqliteReader['page']>[2];
      do {
        const rest: Query =
          query.limit === undefined ? query : { ...query, limit: query.limit - found.length };
        const page = await read('query', () => reader.page(table, rest, from));
        found.push(...page.items);
        from = page.next;
      } while (from && (query.limit === undefined || found.length < query.limit));
      return found;
    },
    async putMany(items, durability) {
      const writes = items.map((put) => ({ put }));
      if (items.length > 0) await execute({ table, kind: 'put many', writes, durability });
    },
    async write(write, durability): Promise<WriteOutcome> {
      const result = await execute({ table, kind: 'write', writes: [write], durability });
      const item = result.item && toItem(result.item);
      return { done: result.done, ...(item && { item }) };
    },
    async transact(writes, token, durability) {
      checkTransaction(writes);
      const result = await execute({ table, kind: 'transact', writes, token, durability });
      return result.done ? { done: true } : { done: false, failed: result.failed };
    },
    units: () => ({ read: 0, write: 0 }),
  };
}

/** Throws {@link TableError} for a transaction that DynamoDB would reject. */
function checkTransaction(writes: readonly Write[]): void {
  if (writes.length === 0 || writes.length > MAX_TRANSACTION_ACTIONS) {
    throw new TableError('transact', `${writes.length} actions, expected 1 to ${MAX_TRANSACTION_ACTIONS}`);
  }
  if (writes.some((write) => 'update' in write && Object.keys(write.set).length === 0)) {
    throw new TableError('transact', 'an update sets nothing');
  }
  const items = new Set(writes.map(getKey).map(({ pk, sk }) => JSON.stringify([pk, sk])));
  if (items.size < writes.length) throw new TableError('transact', 'two actions on one item');
}

let turnBegan: number | undefined;

/**
 * Waits for the next turn of the event loop if reads have used too much of this one. Reads are synchronous
 * and never yield otherwise.
 */
async function turn(): Promise<void> {
  const now = performance.now();
  if (turnBegan === undefined) {
    turnBegan = now;
    setImmediate(() => {
      turnBegan = undefined;
    });
  } else if (now - turnBegan > TURN_MS) {
    await new Promise((resolve) => setImmediate(resolve));
  }
}

/** A request to the worker: a commit, or `null` to close the file and exit. */
export type WriterRequest = { readonly id: number; readonly order: WriteBatch } | null;
/** The worker's responses. The first, empty one reports that the file is open. */
export type WriterResponse = readonly (readonly [id: number, result: Result])[];

/** `reports`: whether `onFailure` is also called if the worker can't open the file, which otherwise only `opened` reports. */
function startWriter(
  path: string,
  onFailure: (cause: unknown) => void,
  reports: boolean,
): { readonly opened: Promise<void>; readonly commit: Commit; close(): Promise<void> } {
  const worker = new Worker(workerFile('sqlite-writer', import.meta.url), {
    workerData: path,
    execArgv: [],
  });
  const waiting = new Map<number, (result: Result) => void>();
  let failure: unknown;
  let isOpen = false;
  let closing = false;
  let last = 0;

  const ended = new Promise<void>((done) => {
    worker.on('error', (cause) => {
      failure ??= cause;
    });
    worker.once('exit', () => {
      failure ??= new Error('the storage was closed');
      // An error that a worker throws loses its class in transfer.
      if (!isOpen && !closing) failure = cannotOpen(path, failure);
      const error = failure instanceof Error ? failure.message : String(failure);
      for (const answer of waiting.values()) answer({ error });
      waiting.clear();
      if (!closing && (isOpen || reports)) onFailure(failure);
      done();
    });
  });
  const opened = new Promise<void>((resolve, reject) => {
    worker.once('message', () => {
      isOpen = true;
      resolve();
    });
    ended.then(() => reject(failure));
  });
  opened.catch(() => {});
  worker.on('message', (answers: WriterResponse) => {
    for (const [id, result] of answers) {
      waiting.get(id)?.(result);
      waiting.delete(id);
    }
    if (waiting.size === 0) worker.unref();
  });

  return {
    opened,
    commit(order) {
      if (failure) return Promise.resolve({ error: String(failure) });
      return new Promise((answer) => {
        last += 1;
        waiting.set(last, answer);
        worker.ref();
        worker.postMessage({ id: last, order } satisfies WriterRequest);
      });
    },
    close() {
      closing = true;
      worker.ref();
      worker.postMessage(null satisfies WriterRequest);
      return ended;
    },
  };
}
