/** The table on DynamoDB, or on a server that implements the DynamoDB API. */
import { setTimeout as sleepMs } from 'node:timers/promises';
import {
  ConditionalCheckFailedException,
  type DynamoDBClient,
  TransactionCanceledException,
  TransactionConflictException,
  TransactionInProgressException,
} from '@aws-sdk/client-dynamodb';
import {
  BatchGetCommand,
  BatchWriteCommand,
  type BatchWriteCommandInput,
  DeleteCommand,
  DynamoDBDocumentClient,
  GetCommand,
  PutCommand,
  QueryCommand,
  TransactWriteCommand,
  UpdateCommand,
} from '@aws-sdk/lib-dynamodb';
import { type Backoff, backoff, HALF_JITTER, withJitter } from '../retry.ts';
import { type IndexSchema, stateSchema, type TableSchema } from './schema.ts';
import {
  type Clause,
  compareText,
  getKey,
  type Item,
  type Key,
  type Query,
  type Table,
  TableError,
  type TransactOutcome,
  type Value,
  type Write,
  type WriteOutcome,
} from './table.ts';

/**
 * Maximum number of attempts after conflicts, throttling or unprocessed keys and items; then
 * {@link TableError}.
 */
const ATTEMPTS = 8;
/** In ms; the first retry is number 1. */
const RETRY_BACKOFF: Backoff = { first: 25, max: 2000 };
/** DynamoDB's limit on the keys of one BatchGetItem. */
const BATCH_KEYS = 100;
/** DynamoDB's limit on the items of one BatchWriteItem. */
const BATCH_ITEMS = 25;

interface Options {
  readonly tableName: string;
  /** Default: the schema of the state table. */
  readonly schema?: TableSchema;
  /** Waits before a retry. Tests inject their own. */
  readonly sleep?: (ms: number) => Promise<unknown>;
  readonly random?: () => number;
}

type PutRequests = NonNullable<BatchWriteCommandInput['RequestItems']>[string];

/** The consumed capacity in a DynamoDB response. */
interface Consumed {
  readonly CapacityUnits?: number | undefined;
}

/**
 * Creates a {@link Table} on a DynamoDB client.
 *
 * The client's own retries must cover throttling, timeouts and lost responses. They repeat the same call, a
 * transaction with the same token. Configure the client with at least two attempts and a timeout. This
 * adapter retries what the client does not: transaction conflicts and unprocessed keys and items.
 */
export function createDynamoTable(client: DynamoDBClient, options: Options): Table {
  const document = DynamoDBDocumentClient.from(client, { marshallOptions: { removeUndefinedValues: true } });
  // The logger middleware traverses all input and output, although no logger is configured.
  document.middlewareStack.remove('loggerMiddleware');
  const TableName = options.tableName;
  const schema = options.schema ?? stateSchema;
  const sleep = options.sleep ?? sleepMs;
  const random = options.random ?? Math.random;
  const consumed = { read: 0, write: 0 };

  /** Counts the capacity that a call consumes. */
  async function count<A extends { readonly ConsumedCapacity?: Consumed | readonly Consumed[] | undefined }>(
    kind: 'read' | 'write',
    call: Promise<A>,
  ): Promise<A> {
    const answer = await call;
    for (const one of [answer.ConsumedCapacity ?? []].flat()) consumed[kind] += one.CapacityUnits ?? 0;
    return answer;
  }

  async function getItem(Key: Key): Promise<Item | undefined> {
    const command = new GetCommand({ TableName, Key, ConsistentRead: true, ReturnConsumedCapacity: 'TOTAL' });
    return (await count('read', document.send(command))).Item as Item | undefined;
  }

  async function attempt<T>(operation: string, call: () => Promise<T>): Promise<T> {
    try {
      return await call();
    } catch (cause) {
      if (cause instanceof TableError || cause instanceof ConditionalCheckFailedException) throw cause;
      throw new TableError(operation, cause instanceof Error ? cause.message : String(cause), cause);
    }
  }

  function findIndex(name: string): IndexSchema {
    const index = Object.entries<IndexSchema>(schema.indexes).find(([known]) => known === name)?.[1];
    if (!index) throw new TableError('query', `there is no index ${name}`);
    return index;
  }

  function backOff(tries: number): Promise<unknown> {
    return sleep(withJitter(backoff(tries, RETRY_BACKOFF), HALF_JITTER, random()));
  }

  return {
    get: (key) => attempt('get', () => getItem(key)),

    async getMany(keys) {
      return attempt('get many', async () => {
        const items: Item[] = [];
        const wanted = lastOfEachKey(keys.map(({ pk, sk }) => ({ pk, sk })));
        for (let at = 0; at < wanted.length; at += BATCH_KEYS) {
          let left: Key[] = wanted.slice(at, at + BATCH_KEYS);
          for (let tries = 0; left.length > 0; tries += 1) {
            if (tries === ATTEMPTS)
              throw new TableError('get many', `${left.length} keys remained unprocessed`);
            if (tries > 0) await backOff(tries);
            const command = new BatchGetCommand({
              RequestItems: { [TableName]: { Keys: left, ConsistentRead: true } },
              ReturnConsumedCapacity: 'TOTAL',
            });
            const answer = await count('read', document.send(command));
            items.push(...((answer.Responses?.[TableName] ?? []) as Item[]));
            left = (answer.UnprocessedKeys?.[TableName]?.Keys ?? []) as Key[];
          }
        }
        return items;
      });
    },

    async query(query) {
      return attempt('query', async () => {
        const index = query.index === undefined ? undefined : findIndex(query.index);
        const names = { '#pk': index?.partitionKey ?? schema.partitionKey };
        const values: Record<string, string> = { ':pk': query.pk };
        const range = sortKeyRange(query, values);
        // DynamoDB rejects these queries, although they only describe an empty range.
        if (query.limit === 0 || query.to === '') return [];
        if (query.to !== undefined && compareText(getLowerBound(query), query.to) > 0) return [];
        const items: Item[] = [];
        let start: Record<string, unknown> | undefined;
        do {
          const command = new QueryCommand({
            TableName,
            IndexName: query.index,
            KeyConditionExpression: range === undefined ? '#pk = :pk' : `#pk = :pk AND ${range}`,
            ExpressionAttributeNames:
              range === undefined ? names : { ...names, '#sk': index?.sortKey ?? schema.sortKey },
            ExpressionAttributeValues: values,
            ConsistentRead: query.index === undefined,
            ScanIndexForward: !query.descending,
            ...(query.limit === undefined ? {} : { Limit: query.limit - items.length }),
            ...(start === undefined ? {} : { ExclusiveStartKey: start }),
            ReturnConsumedCapacity: 'TOTAL',
          });
          const answer = await count('read', document.send(command));
          // BETWEEN includes both bounds, so an exclusive lower bound is filtered out here.
          for (const item of (answer.Items ?? []) as Item[]) {
            if (query.after === undefined || item[index?.sortKey ?? 'sk'] !== query.after) items.push(item);
          }
          start = answer.LastEvaluatedKey;
        } while (start !== undefined && (query.limit === undefined || items.length < query.limit));
        return items;
      });
    },

    async putMany(items) {
      return attempt('put many', async () => {
        const wanted = lastOfEachKey(items);
        for (let at = 0; at < wanted.length; at += BATCH_ITEMS) {
          let left: PutRequests = wanted
            .slice(at, at + BATCH_ITEMS)
            .map((Item) => ({ PutRequest: { Item } }));
          for (let tries = 0; left.length > 0; tries += 1) {
            if (tries === ATTEMPTS)
              throw new TableError('put many', `${left.length} items remained unprocessed`);
            if (tries > 0) await backOff(tries);
            const command = new BatchWriteCommand({
              RequestItems: { [TableName]: left },
              ReturnConsumedCapacity: 'TOTAL',
            });
            const answer = await count('write', document.send(command));
            left = answer.UnprocessedItems?.[TableName] ?? [];
          }
        }
      });
    },

    async write(write) {
      return attempt('write', async () => {
        for (let tries = 0; ; tries += 1) {
          try {
            const item = await send(write);
            return { done: true, item };
          } catch (cause) {
            if (cause instanceof ConditionalCheckFailedException) return toFailedOutcome(write, cause);
            // A transaction holds the item and nothing was written. The client does not retry this error.
            if (!(cause instanceof TransactionConflictException) || tries + 1 === ATTEMPTS) throw cause;
            await backOff(tries);
          }
        }
      });
    },

    async transact(writes, token) {
      return attempt('transact', async () => {
        const command = new TransactWriteCommand({
          ClientRequestToken: token,
          TransactItems: writes.map(toTransactItem),
          ReturnConsumedCapacity: 'TOTAL',
        });
        for (let tries = 0; ; tries += 1) {
          try {
            await count('write', document.send(command));
            return { done: true };
          } catch (cause) {
            const outcome = toCancelledOutcome(cause);
            if (outcome) return outcome;
            if (!isConflict(cause) || tries + 1 === ATTEMPTS) throw cause;
            await backOff(tries);
          }
        }
      });
    },

    units: () => ({ ...consumed }),
  };

  async function toFailedOutcome(
    write: Exclude<Write, { check: Key }>,
    cause: ConditionalCheckFailedException,
  ): Promise<WriteOutcome> {
    // The exception contains the stored item in raw form. Reading it again is simpler than unmarshalling it,
    // and as current.
    const item = await getItem(getKey(write));
    // If the client repeated the call after a lost response, the condition may have failed because of its first
    // first write.
    return { done: (cause.$metadata.attempts ?? 1) > 1 && isInWrittenState(write, item), item };
  }

  async function send(write: Exclude<Write, { check: Key }>): Promise<Item | undefined> {
    const common = { TableName, ReturnConsumedCapacity: 'TOTAL' } as const;
    if ('put' in write) {
      const command = new PutCommand({ ...common, Item: write.put, ...condition(write.when) });
      await count('write', document.send(command));
      return write.put;
    }
    if ('delete' in write) {
      const command = new DeleteCommand({ ...common, Key: write.delete, ...condition(write.when) });
      await count('write', document.send(command));
      return undefined;
    }
    const changes = update(write);
    const command = new UpdateCommand({ ...common, Key: write.update, ...changes, ReturnValues: 'ALL_NEW' });
    return (await count('write', document.send(command))).Attributes as Item | undefined;
  }

  function toTransactItem(write: Write) {
    if ('put' in write) return { Put: { TableName, Item: write.put, ...condition(write.when) } };
    if ('delete' in write) return { Delete: { TableName, Key: write.delete, ...condition(write.when) } };
    if ('update' in write) return { Update: { TableName, Key: write.update, ...update(write) } };
    const { ConditionExpression = 'attribute_exists(pk) OR attribute_not_exists(pk)', ...rest } = condition(
      write.when,
    );
    return { ConditionCheck: { TableName, Key: write.check, ConditionExpression, ...rest } };
  }
}

/** Returns the last item of each key: DynamoDB rejects a batch that contains a key twice. */
function lastOfEachKey<K extends Key>(all: readonly K[]): K[] {
  return [...new Map(all.map((one) => [JSON.stringify([one.pk, one.sk]), one])).values()];
}

/**
 * Returns the lower bound of the sort key, inclusive or exclusive. Empty without a bound: every sort key
 * sorts after it.
 */
function getLowerBound(query: Query): string {
  return query.after ?? query.from ?? '';
}

function sortKeyRange(query: Query, values: Record<string, string>): string | undefined {
  const low = getLowerBound(query);
  if (low !== '') values[':low'] = low;
  if (query.to !== undefined) values[':high'] = query.to;
  if (low !== '' && query.to !== undefined) return '#sk BETWEEN :low AND :high';
  if (query.to !== undefined) return '#sk <= :high';
  if (low === '') return undefined;
  return query.after === undefined ? '#sk >= :low' : '#sk > :low';
}

/** Reports whether an item is in the state that a write would have produced. */
function isInWrittenState(write: Write, item: Item | undefined): boolean {
  if ('delete' in write || item === undefined) return 'delete' in write && item === undefined;
  if ('check' in write) return false;
  const left = Object.entries('put' in write ? write.put : write.set);
  const known = 'put' in write ? left.filter(([, value]) => value !== undefined).length : undefined;
  return (
    left.length > 0 &&
    left.every(([name, value]) => sameValue(item[name], value)) &&
    (known === undefined || known === Object.keys(item).length)
  );
}

function sameValue(a: Value | undefined, b: Value | undefined): boolean {
  if (a instanceof Uint8Array && b instanceof Uint8Array) return Buffer.compare(a, b) === 0;
  return JSON.stringify(a) === JSON.stringify(b);
}

interface Expression {
  ConditionExpression?: string;
  ExpressionAttributeNames?: Record<string, string>;
  ExpressionAttributeValues?: Record<string, Value>;
}

/** Builds a condition expression from clauses. Every name and value is a placeholder. */
function condition(clauses: readonly Clause[] | undefined): Expression {
  if (!clauses || clauses.length === 0) return {};
  const names: Record<string, string> = {};
  const values: Record<string, Value> = {};
  const texts = clauses.map((clause, at) => {
    const name = `#c${at}`;
    names[name] = clause[0];
    const test = clause[1];
    if (test === 'present') return `attribute_exists(${name})`;
    if (test === 'absent') return `attribute_not_exists(${name})`;
    const value = clause[2];
    if (value !== undefined) values[`:c${at}`] = value;
    const operator = test.replace('absent or ', '');
    const comparison = `${name} ${operator} :c${at}`;
    return test.startsWith('absent or ') ? `(attribute_not_exists(${name}) OR ${comparison})` : comparison;
  });
  return {
    ConditionExpression: texts.join(' AND '),
    ExpressionAttributeNames: names,
    ...(Object.keys(values).length === 0 ? {} : { ExpressionAttributeValues: values }),
  };
}

/**
 * Builds an update with its condition. An empty `set` gives an update without an expression: it only ensures
 * that the item exists.
 */
function update({
  set,
  add = {},
  when,
}: Extract<Write, { update: Key }>): Expression & { UpdateExpression: string | undefined } {
  const guard = condition(when);
  const names: Record<string, string> = { ...guard.ExpressionAttributeNames };
  const values: Record<string, Value> = { ...guard.ExpressionAttributeValues };
  const sets: string[] = [];
  const removes: string[] = [];
  Object.entries(set).forEach(([attribute, value], at) => {
    names[`#s${at}`] = attribute;
    if (value === undefined) {
      removes.push(`#s${at}`);
    } else {
      values[`:s${at}`] = value;
      sets.push(`#s${at} = :s${at}`);
    }
  });
  const additions = Object.entries(add).map(([attribute, number], at) => {
    names[`#a${at}`] = attribute;
    values[`:a${at}`] = number;
    return `#a${at} :a${at}`;
  });
  const expression = [
    ...(additions.length > 0 ? [`ADD ${additions.join(', ')}`] : []),
    ...(sets.length > 0 ? [`SET ${sets.join(', ')}`] : []),
    ...(removes.length > 0 ? [`REMOVE ${removes.join(', ')}`] : []),
  ];
  return {
    ...guard,
    UpdateExpression: expression.length > 0 ? expression.join(' ') : undefined,
    ...(Object.keys(names).length === 0 ? {} : { ExpressionAttributeNames: names }),
    ...(Object.keys(values).length === 0 ? {} : { ExpressionAttributeValues: values }),
  };
}

/**
 * Returns the outcome of a transaction that was cancelled because conditions did not hold; `undefined` for
 * any other error.
 *
 * Some conditions may have failed while other positions were in conflict. DynamoDB evaluates a condition on
 * committed data, so a failed condition is final. A retry would only return it later.
 */
function toCancelledOutcome(cause: unknown): TransactOutcome | undefined {
  if (!(cause instanceof TransactionCanceledException)) return undefined;
  const failed = (cause.CancellationReasons ?? []).flatMap((reason, at) =>
    reason.Code === 'ConditionalCheckFailed' ? [at] : [],
  );
  return failed.length > 0 ? { done: false, failed } : undefined;
}

/**
 * Reports whether an error is transient and does not decide the transaction: a conflict, throttling, or a
 * transaction in progress.
 */
function isConflict(cause: unknown): boolean {
  if (cause instanceof TransactionInProgressException) return true;
  if (!(cause instanceof TransactionCanceledException)) return false;
  const transient = new Set([
    'TransactionConflict',
    'ThrottlingError',
    'ProvisionedThroughputExceeded',
    'RequestLimitExceeded',
  ]);
  return (cause.CancellationReasons ?? []).some((reason) => transient.has(reason.Code ?? ''));
}
