/**
 * The table in SQLite: in a file for self-hosting, in memory for the demo's tests and benchmarks. Reads happen in the
 * calling thread, for they take microseconds. Writes to a file happen in a worker: everything that waits while one commit
 * is being made durable is committed together by the next.
 */
import { Worker } from 'node:worker_threads';
import { workerFile } from '../worker-file.ts';
import { historySchema, stateSchema, type TableSchema } from './schema.ts';
import {
  type Order,
  type Result,
  SqliteReader,
  SqliteStore,
  StoreFormatError,
  toItem,
} from './sqlite-store.ts';
import {
  type Item,
  keyOf,
  MAX_TRANSACTION_ACTIONS,
  type Query,
  type Table,
  TableError,
  type Write,
  type WriteOutcome,
} from './table.ts';

/** Both tables of a Jobwire in one file. */
export interface SqliteTables {
  readonly table: Table;
  /** The history table. */
  readonly history: Table;
  /** Waits for the writes under way, and closes the file. May be called twice. */
  close(): Promise<void>;
}

/** The schemas of the file's tables, by their names there. */
export const FILE_SCHEMAS = { state: stateSchema, history: historySchema } as const;
/** What a turn of the event loop may spend on reads before others get theirs. */
const TURN_MS = 10;

/** Makes an empty table in memory, in this thread. */
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
 * Opens the database file, making it if need be. One process at a time: the caller holds the folder. `onFailure`: the
 * worker has ended although nobody closed it; what it acknowledged is in the file. Throws {@link StoreFormatError}.
 */
export async function openSqliteTables(
  path: string,
  onFailure: (cause: unknown) => void = () => {},
): Promise<SqliteTables> {
  const worker = await startWriter(path, onFailure);
  const reader = new SqliteReader(path, FILE_SCHEMAS);
  let closed: Promise<void> | undefined;
  return {
    table: createTable('state', reader, worker.commit, turn),
    history: createTable('history', reader, worker.commit, turn),
    close() {
      // The writer last: who closes a database last tidies it up.
      if (!closed) reader.close();
      closed ??= worker.close();
      return closed;
    },
  };
}

type Commit = (order: Order) => Promise<Result>;

/** The port over a table; before each read it waits for `turn`. */
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

  async function carryOut(order: Order): Promise<Exclude<Result, { error: string }>> {
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
    async putMany(items) {
      if (items.length > 0)
        await carryOut({ table, kind: 'put many', writes: items.map((put) => ({ put })) });
    },
    async write(write): Promise<WriteOutcome> {
      const result = await carryOut({ table, kind: 'write', writes: [write] });
      const item = result.item && toItem(result.item);
      return { done: result.done, ...(item && { item }) };
    },
    async transact(writes, token) {
      checkTransaction(writes);
      const result = await carryOut({ table, kind: 'transact', writes, token });
      return result.done ? { done: true } : { done: false, failed: result.failed };
    },
    units: () => ({ read: 0, write: 0 }),
  };
}

/** Throws {@link TableError} for what DynamoDB would not accept as a transaction. */
function checkTransaction(writes: readonly Write[]): void {
  if (writes.length === 0 || writes.length > MAX_TRANSACTION_ACTIONS) {
    throw new TableError('transact', `${writes.length} actions are none, or over ${MAX_TRANSACTION_ACTIONS}`);
  }
  if (writes.some((write) => 'update' in write && Object.keys(write.set).length === 0)) {
    throw new TableError('transact', 'an update sets nothing');
  }
  const items = new Set(writes.map(keyOf).map(({ pk, sk }) => JSON.stringify([pk, sk])));
  if (items.size < writes.length) throw new TableError('transact', 'two actions on one item');
}

let turnBegan: number | undefined;

/** Waits for the next turn of the event loop when reads have taken too much of this one: they never wait for anything else. */
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

/** What the worker is asked for: a commit, or, with null, to close the file and end. */
export type Asked = { readonly id: number; readonly order: Order } | null;
/** Its answers; the first one, empty, says that the file is open. */
export type Answered = readonly (readonly [id: number, result: Result])[];

async function startWriter(
  path: string,
  onFailure: (cause: unknown) => void,
): Promise<{ commit: Commit; close(): Promise<void> }> {
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
      const error = failure instanceof Error ? failure.message : String(failure);
      for (const answer of waiting.values()) answer({ error });
      waiting.clear();
      if (isOpen && !closing) onFailure(failure);
      done();
    });
  });
  await new Promise<void>((opened, failed) => {
    worker.once('message', opened);
    // What a worker throws loses its class on the way.
    ended.then(() => {
      const why = failure instanceof Error ? failure.message : String(failure);
      failed(new StoreFormatError(`The database ${path} can't be opened: ${why}.`, { cause: failure }));
    });
  });
  isOpen = true;
  worker.on('message', (answers: Answered) => {
    for (const [id, result] of answers) {
      waiting.get(id)?.(result);
      waiting.delete(id);
    }
    if (waiting.size === 0) worker.unref();
  });
  worker.unref();

  return {
    commit(order) {
      if (failure) return Promise.resolve({ error: String(failure) });
      return new Promise((answer) => {
        last += 1;
        waiting.set(last, answer);
        worker.ref();
        worker.postMessage({ id: last, order } satisfies Asked);
      });
    },
    close() {
      closing = true;
      worker.ref();
      worker.postMessage(null satisfies Asked);
      return ended;
    },
  };
}
