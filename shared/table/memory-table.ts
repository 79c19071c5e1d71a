/** The table in this process's memory: for tests, benchmarks, and a demo on a platform without an embedded DynamoDB. */
import { isDeepStrictEqual } from 'node:util';
import { stateSchema, type TableSchema } from './schema.ts';
import {
  type Clause,
  compareText,
  type Item,
  type Key,
  keyOf,
  MAX_ITEM_BYTES,
  MAX_TRANSACTION_ACTIONS,
  type Query,
  sizeOf,
  type Table,
  TableError,
  type TransactOutcome,
  type Value,
  type Write,
  type WriteOutcome,
} from './table.ts';

/** Makes an empty in-memory table with the indexes of the schema. Index reads are consistent here, unlike on AWS. */
export function createMemoryTable(schema: TableSchema = stateSchema): Table {
  const main = new Partitions();
  const indexes = new Map(
    Object.entries(schema.indexes).map(([name, index]) => [name, { ...index, partitions: new Partitions() }]),
  );
  const tokens = new Map<string, readonly Write[]>();

  function store(key: Key, item: Item | undefined): void {
    const before = main.get(key.pk, key.sk);
    for (const { partitionKey, sortKey, partitions } of indexes.values()) {
      const from = before && indexKey(before, partitionKey, sortKey);
      const to = item && indexKey(item, partitionKey, sortKey);
      if (from) partitions.delete(from.pk, from.sk);
      if (to && item) partitions.set(to.pk, to.sk, item);
    }
    if (item) main.set(key.pk, key.sk, item);
    else main.delete(key.pk, key.sk);
  }

  /** The item as it would stand after the write. */
  function applied(write: Write): Item | undefined {
    if ('put' in write) return copy(write.put);
    if ('delete' in write) return undefined;
    const key = keyOf(write);
    const before = main.get(key.pk, key.sk);
    if ('check' in write) return before;
    const changes = Object.entries(write.set);
    const removesOnly = changes.length > 0 && changes.every(([, value]) => value === undefined);
    if (!before && removesOnly) return undefined;
    const after: Record<string, Value | undefined> = { ...before, ...key };
    for (const [name, value] of changes) {
      if (value === undefined) delete after[name];
      else after[name] = copyValue(value);
    }
    return after as Item;
  }

  /** What the write leaves; refuses, before anything is stored, what DynamoDB would refuse. */
  function accepted(write: Write): Item | undefined {
    const item = applied(write);
    if (item && sizeOf(item) > MAX_ITEM_BYTES) {
      throw new TableError('write', `item ${item.pk} ${item.sk} is over ${MAX_ITEM_BYTES} bytes`);
    }
    for (const { partitionKey, sortKey } of indexes.values()) {
      for (const name of [partitionKey, sortKey]) {
        const value = item?.[name];
        if (value !== undefined && (typeof value !== 'string' || value === '')) {
          throw new TableError('write', `${name} is a key of an index and must be a text that is not empty`);
        }
      }
    }
    return item;
  }

  function holds(write: Write): boolean {
    const key = keyOf(write);
    const item = main.get(key.pk, key.sk);
    return (write.when ?? []).every((clause) => clauseHolds(item, clause));
  }

  return {
    async get(key) {
      const item = main.get(key.pk, key.sk);
      return item && copy(item);
    },
    async getMany(keys) {
      return [...new Set(keys.flatMap((key) => main.get(key.pk, key.sk) ?? []))].map(copy);
    },
    async query(query) {
      if (query.index === undefined) return main.range(query).map(copy);
      const index = indexes.get(query.index);
      if (!index) throw new TableError('query', `there is no index ${query.index}`);
      const { partitionKey, sortKey, holds, partitions } = index;
      const found = partitions.range(inIndex(query));
      if (holds === 'items') return found.map(copy);
      return found.map((item) => ({
        pk: item.pk,
        sk: item.sk,
        [partitionKey]: item[partitionKey],
        [sortKey]: item[sortKey],
      }));
    },
    async putMany(items) {
      const puts = items.map((put) => ({ put }));
      const left = puts.map(accepted);
      puts.forEach((write, at) => {
        store(keyOf(write), left[at]);
      });
    },
    async write(write): Promise<WriteOutcome> {
      if (!holds(write)) {
        const key = keyOf(write);
        const item = main.get(key.pk, key.sk);
        return { done: false, item: item && copy(item) };
      }
      const item = accepted(write);
      store(keyOf(write), item);
      return { done: true, item: item && copy(item) };
    },
    async transact(writes, token): Promise<TransactOutcome> {
      if (writes.length === 0 || writes.length > MAX_TRANSACTION_ACTIONS) {
        throw new TableError(
          'transact',
          `${writes.length} actions are none, or over ${MAX_TRANSACTION_ACTIONS}`,
        );
      }
      if (writes.some((write) => 'update' in write && Object.keys(write.set).length === 0)) {
        throw new TableError('transact', 'an update sets nothing');
      }
      const known = tokens.get(token);
      if (known) {
        if (!isDeepStrictEqual(known, writes)) {
          throw new TableError('transact', 'a token was used for two transactions');
        }
        return { done: true };
      }
      const items = new Set(writes.map(keyOf).map(({ pk, sk }) => JSON.stringify([pk, sk])));
      if (items.size < writes.length) {
        throw new TableError('transact', 'two actions on one item');
      }
      const failed = writes.flatMap((write, at) => (holds(write) ? [] : [at]));
      if (failed.length > 0) return { done: false, failed };
      const left = writes.map(accepted);
      writes.forEach((write, at) => {
        if (!('check' in write)) store(keyOf(write), left[at]);
      });
      tokens.set(token, writes);
      if (tokens.size > 1000) tokens.delete(tokens.keys().next().value ?? '');
      return { done: true };
    },
    units: () => ({ read: 0, write: 0 }),
  };
}

/** Whether one clause holds on an item as it stands (`undefined`: there is none). */
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

/** Items by partition, each partition in sort-key order. */
class Partitions {
  readonly #byPk = new Map<string, { sorted: string[]; items: Map<string, Item> }>();

  get(pk: string, sk: string): Item | undefined {
    return this.#byPk.get(pk)?.items.get(sk);
  }

  set(pk: string, sk: string, item: Item): void {
    let partition = this.#byPk.get(pk);
    if (!partition) {
      partition = { sorted: [], items: new Map() };
      this.#byPk.set(pk, partition);
    }
    if (!partition.items.has(sk)) partition.sorted.splice(lowerBound(partition.sorted, sk), 0, sk);
    partition.items.set(sk, item);
  }

  delete(pk: string, sk: string): void {
    const partition = this.#byPk.get(pk);
    if (!partition?.items.delete(sk)) return;
    partition.sorted.splice(lowerBound(partition.sorted, sk), 1);
    if (partition.sorted.length === 0) this.#byPk.delete(pk);
  }

  range(query: Query): Item[] {
    const partition = this.#byPk.get(query.pk);
    if (!partition) return [];
    const { sorted, items } = partition;
    let start = 0;
    if (query.from !== undefined) start = lowerBound(sorted, query.from);
    if (query.after !== undefined) {
      start = lowerBound(sorted, query.after);
      if (sorted[start] === query.after) start += 1;
    }
    let end = sorted.length;
    if (query.to !== undefined) {
      end = lowerBound(sorted, query.to);
      if (sorted[end] === query.to) end += 1;
    }
    const limit = query.limit ?? Number.POSITIVE_INFINITY;
    const found: Item[] = [];
    if (query.descending) {
      for (let at = end - 1; at >= start && found.length < limit; at -= 1) pick(at);
    } else {
      for (let at = start; at < end && found.length < limit; at += 1) pick(at);
    }
    return found;

    function pick(at: number): void {
      const item = items.get(sorted[at] ?? '');
      if (item) found.push(item);
    }
  }
}

/** The first position whose text is not below the one looked for. */
function lowerBound(sorted: readonly string[], text: string): number {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (compareText(sorted[middle] ?? '', text) < 0) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** Where an item stands in an index: sparse, so nowhere when either key is missing. Its own key makes the place unique. */
function indexKey(item: Item, partitionKey: string, sortKey: string): Key | undefined {
  const pk = item[partitionKey];
  const sk = item[sortKey];
  if (typeof pk !== 'string' || typeof sk !== 'string') return undefined;
  return { pk, sk: `${sk}\u0000${item.pk}\u0000${item.sk}` };
}

/** The same range over index positions, which carry the item's own key behind the sort key. */
function inIndex(query: Query): Query {
  const { after, to, ...rest } = query;
  return {
    ...rest,
    ...(after === undefined ? {} : { from: `${after}\u0001` }),
    ...(to === undefined ? {} : { to: `${to}\u0001` }),
  };
}

function copy(item: Item): Item {
  const copied: Record<string, Value | undefined> = {};
  for (const [name, value] of Object.entries(item)) {
    if (value !== undefined) copied[name] = copyValue(value);
  }
  return copied as Item;
}

function copyValue<V extends Value>(value: V): V {
  if (value instanceof Uint8Array) return value.slice() as V;
  if (Array.isArray(value)) return [...value] as unknown as V;
  return value;
}
