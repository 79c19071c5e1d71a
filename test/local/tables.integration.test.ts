/** The tables of a self-hosted Jobwire: durability and rejected files. */
import { spawn } from 'node:child_process';
import { copyFileSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { DatabaseSync } from 'node:sqlite';
import {
  CreateTableCommand,
  DescribeTableCommand,
  DescribeTimeToLiveCommand,
  type KeySchemaElement,
} from '@aws-sdk/client-dynamodb';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import { createTables, historyTableName } from '../../local/dynamo-tables.ts';
import { StartError } from '../../local/start-error.ts';
import { openTables } from '../../local/tables.ts';
import { createDynamoTable } from '../../shared/storage/dynamo-table.ts';
import { historySchema, stateSchema, type TableSchema } from '../../shared/storage/schema.ts';
import {
  isPrepared,
  SqliteStore,
  StoreFormatError,
  type WriteBatch,
} from '../../shared/storage/sqlite-store.ts';
import { FILE_SCHEMAS, openSqliteTables } from '../../shared/storage/sqlite-table.ts';
import { type Item, TableError } from '../../shared/storage/table.ts';
import { startDynamo } from '../support/dynoxide.ts';

describe('the tables in a data folder', () => {
  test('acknowledged writes, relaxed ones too, survive kill -9 during writes, and transactions are atomic', async () => {
    const path = join(temporaryFolder(), 'tables.db');
    const module = JSON.stringify(new URL('../../shared/storage/sqlite-table.ts', import.meta.url).href);
    const program = `
      import { openSqliteTables } from ${module};
      const { table } = await openSqliteTables(${JSON.stringify(path)});
      await Promise.all(['a', 'b', 'c', 'd'].map(async (name) => {
        for (let at = 0; ; at += 1) {
          const sk = name + '-' + at;
          const left = { put: { pk: 'LEFT', sk, text: 'x'.repeat(500) }, when: [['pk', 'absent']] };
          const { done } = await table.transact([left, { put: { pk: 'RIGHT', sk } }], sk, { relaxed: name < 'c' });
          if (done) console.log(sk);
        }
      }));`;
    const child = spawn(process.execPath, ['--input-type=module', '-e', program], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    onTestFinished(() => void child.kill('SIGKILL'));
    const acknowledged: string[] = [];
    for await (const sk of createInterface({ input: child.stdout })) {
      acknowledged.push(sk);
      if (acknowledged.length === 300) child.kill('SIGKILL');
    }
    expect(acknowledged.length).toBeGreaterThanOrEqual(300);

    const { table, close } = await openSqliteTables(path);
    onTestFinished(close);
    const left = (await table.query({ pk: 'LEFT' })).map(({ sk }) => sk);
    const right = (await table.query({ pk: 'RIGHT' })).map(({ sk }) => sk);
    expect(left).toEqual(right);
    expect(acknowledged.filter((sk) => !left.includes(sk))).toEqual([]);
  });

  test('only commits without a durable write do not wait for the disk', () => {
    const store = new SqliteStore(join(temporaryFolder(), 'tables.db'), FILE_SCHEMAS);
    const put = (sk: string, relaxed: boolean): WriteBatch => ({
      ...{ table: 'state', kind: 'write', writes: [{ put: { pk: 'p', sk } }], durability: { relaxed } },
    });
    const waits = (...orders: WriteBatch[]): boolean => {
      expect(store.commit(orders).every((result) => 'done' in result && result.done)).toBe(true);
      return Object.values(store.database.prepare('PRAGMA synchronous').get() ?? {})[0] === 2;
    };
    expect([
      waits(put('a', true)),
      waits(put('b', true), put('c', false)),
      waits(put('d', true)),
      waits({ table: 'state', kind: 'write', writes: [{ put: { pk: 'p', sk: 'e' } }] }),
    ]).toEqual([false, true, false, true]);
    store.close();
  });

  test('writes in progress at closing complete, later ones are rejected', async () => {
    const path = join(temporaryFolder(), 'tables.db');
    const { table, close } = await openSqliteTables(path);
    const writes = Array.from({ length: 50 }, (_, at) => table.write({ put: { pk: 'P', sk: `${at}` } }));
    await close();
    expect((await Promise.all(writes)).every(({ done }) => done)).toBe(true);
    await expect(table.write({ put: { pk: 'P', sk: 'late' } })).rejects.toThrow(TableError);
    const again = await openSqliteTables(path);
    onTestFinished(again.close);
    expect(await again.table.query({ pk: 'P' })).toHaveLength(50);
    // No other file is left beside the database after it was closed.
    await again.close();
    expect(readdirSync(join(path, '..'))).toEqual(['tables.db']);
  });

  test('a fault of the database fails pending calls, and no later ones', async () => {
    const path = join(temporaryFolder(), 'tables.db');
    const { table, close } = await openSqliteTables(path);
    onTestFinished(close);
    const other = new DatabaseSync(path);
    onTestFinished(() => other.close());
    other.exec('ALTER TABLE state RENAME TO gone');
    const writes = [1, 2].map((sk) => table.write({ put: { pk: 'P', sk: `${sk}` } }));
    for (const write of writes) await expect(write).rejects.toThrow(TableError);
    await expect(table.get({ pk: 'P', sk: '1' })).rejects.toThrow(TableError);
    other.exec('ALTER TABLE gone RENAME TO state');
    expect(await table.write({ put: { pk: 'P', sk: '1' } })).toMatchObject({ done: true });
    expect(await table.query({ pk: 'P' })).toHaveLength(1);
  });

  test('an index added by a later version contains the existing items', async () => {
    const path = join(temporaryFolder(), 'tables.db');
    const { due, ...rest } = stateSchema.indexes;
    const before = new SqliteStore(path, { ...FILE_SCHEMAS, state: { ...stateSchema, indexes: rest } });
    const put: Item = { pk: 'P', sk: '1', duePk: 'DUE', dueSk: '5' };
    expect(before.commit([{ table: 'state', kind: 'write', writes: [{ put }] }])).toMatchObject([
      { done: true },
    ]);
    before.close();
    const { table, close } = await openSqliteTables(path);
    onTestFinished(close);
    expect(due.holds).toBe('keys');
    expect(await table.query({ pk: 'DUE', index: 'due' })).toEqual([put]);
  });

  test('the check of a file after a crash only reads: its write-ahead log stays for the writer', async () => {
    const folder = temporaryFolder();
    const [path, copy] = ['tables.db', 'copy.db'].map((name) => join(folder, name)) as [string, string];
    expect(isPrepared(path, FILE_SCHEMAS)).toBe(false);
    const store = new SqliteStore(path, FILE_SCHEMAS);
    onTestFinished(() => store.close());
    store.commit([{ table: 'state', kind: 'write', writes: [{ put: { pk: 'P', sk: '1' } }] }]);
    // The files as they are if the process is killed.
    for (const end of ['', '-wal']) copyFileSync(path + end, copy + end);
    const { size } = statSync(`${copy}-wal`);
    expect(size).toBeGreaterThan(0);
    expect(isPrepared(copy, FILE_SCHEMAS)).toBe(true);
    expect(statSync(`${copy}-wal`).size).toBe(size);
    const { table, close } = await openSqliteTables(copy);
    onTestFinished(close);
    expect(await table.query({ pk: 'P' })).toHaveLength(1);
  });

  test('a foreign file, or one of a later version, is rejected and unchanged', async () => {
    const folder = temporaryFolder();
    writeFileSync(join(folder, 'letter.db'), 'This is a letter, and no database at all.'.repeat(100));
    await expect(openSqliteTables(join(folder, 'letter.db'))).rejects.toThrow(
      /letter.db cannot be opened.*not a database/,
    );
    const other = new DatabaseSync(join(folder, 'other.db'));
    other.exec('CREATE TABLE theirs (a)');
    other.close();
    expect(() => new SqliteStore(join(folder, 'other.db'), FILE_SCHEMAS)).toThrow(StoreFormatError);
    new SqliteStore(join(folder, 'later.db'), FILE_SCHEMAS).close();
    const later = new DatabaseSync(join(folder, 'later.db'));
    later.exec('PRAGMA user_version = 99');
    later.close();
    expect(() => new SqliteStore(join(folder, 'later.db'), FILE_SCHEMAS)).toThrow(/later version/);
  });

  test('expired items are deleted, and no others', () => {
    const store = new SqliteStore(':memory:', FILE_SCHEMAS);
    const puts = [
      { put: { pk: 'P', sk: 'over', ttl: 99 } },
      { put: { pk: 'P', sk: 'lasts', ttl: 101 } },
      { put: { pk: 'P', sk: 'for ever' } },
      { put: { pk: 'P', sk: 'prolonged', ttl: 99 } },
    ];
    store.commit([{ table: 'state', kind: 'put many', writes: puts }]);
    store.commit([
      {
        table: 'state',
        kind: 'write',
        writes: [{ update: { pk: 'P', sk: 'prolonged' }, set: { ttl: 200 } }],
      },
    ]);
    expect(store.sweep(100)).toBe(false);
    const left = store.database.prepare('SELECT sk FROM state ORDER BY sk').all();
    expect(left.map(({ sk }) => sk)).toEqual(['for ever', 'lasts', 'prolonged']);
    store.close();
  });

  test('reads of a large range let other calls run', async () => {
    const { table, close } = await openSqliteTables(join(temporaryFolder(), 'tables.db'));
    onTestFinished(close);
    await table.putMany(
      Array.from({ length: 20_000 }, (_, at) => ({ pk: 'P', sk: `${at}`, text: 'x'.repeat(200) })),
    );
    let turns = 0;
    const counting = setInterval(() => {
      turns += 1;
    }, 1);
    expect(await table.query({ pk: 'P' })).toHaveLength(20_000);
    clearInterval(counting);
    expect(turns).toBeGreaterThan(1);
  });
});

describe('the tables on a server that speaks DynamoDB’s protocol', () => {
  test.each<[string, string, TableSchema]>([
    ['state', 'state', stateSchema],
    ['history', 'state-history', historySchema],
  ])(
    '%s: created from its key schema: on demand, with its indexes, TTL, no stream',
    async (_, TableName, schema) => {
      const client = (await dynoxide()).client();
      await createTables(client, 'state');
      const { Table } = await client.send(new DescribeTableCommand({ TableName }));
      expect(Table?.TableStatus).toBe('ACTIVE');
      expect(Table?.BillingModeSummary?.BillingMode).toBe('PAY_PER_REQUEST');
      expect(Table?.StreamSpecification?.StreamEnabled ?? false).toBe(false);
      expect(getNames(Table?.KeySchema)).toEqual(['pk', 'sk']);
      const indexes = Table?.GlobalSecondaryIndexes?.map((index) => ({
        name: index.IndexName,
        keys: getNames(index.KeySchema),
        projection: index.Projection?.ProjectionType,
      }));
      expect(indexes).toHaveLength(Object.keys(schema.indexes).length);
      for (const [name, { partitionKey, sortKey, holds }] of Object.entries(schema.indexes)) {
        const projection = holds === 'keys' ? 'KEYS_ONLY' : 'ALL';
        expect(indexes).toContainEqual({ name, keys: [partitionKey, sortKey], projection });
      }
      const ttl = await client.send(new DescribeTimeToLiveCommand({ TableName }));
      expect(ttl.TimeToLiveDescription).toMatchObject({ TimeToLiveStatus: 'ENABLED', AttributeName: 'ttl' });
    },
  );

  test('are created once, also concurrently, and keep their items', async () => {
    const client = (await dynoxide()).client();
    await Promise.all([1, 2, 3].map(() => createTables(client, 'state')));
    const tables = ['state', historyTableName('state')].map((tableName) =>
      createDynamoTable(client, { tableName }),
    );
    for (const table of tables) await table.write({ put: { pk: 'P', sk: '1' } });
    await createTables(client, 'state');
    for (const table of tables) expect(await table.get({ pk: 'P', sk: '1' })).toBeDefined();
  });

  test('an older table gets its missing indexes, with the existing items', async () => {
    const client = (await dynoxide()).client();
    await client.send(
      new CreateTableCommand({
        TableName: 'state',
        BillingMode: 'PAY_PER_REQUEST',
        KeySchema: [
          { AttributeName: 'pk', KeyType: 'HASH' },
          { AttributeName: 'sk', KeyType: 'RANGE' },
        ],
        AttributeDefinitions: ['pk', 'sk'].map((AttributeName) => ({ AttributeName, AttributeType: 'S' })),
      }),
    );
    const table = createDynamoTable(client, { tableName: 'state' });
    await table.write({ put: { pk: 'P', sk: '1', duePk: 'DUE', dueSk: '5', orderPk: 'O', orderSk: '6' } });
    await createTables(client, 'state');
    expect(await table.query({ pk: 'DUE', index: 'due' })).toMatchObject([{ sk: '1' }]);
    expect(await table.query({ pk: 'O', index: 'jobsByOrder' })).toMatchObject([{ sk: '1' }]);
  });
});

async function dynoxide() {
  const dynamo = await startDynamo();
  onTestFinished(dynamo.stop);
  return dynamo;
}

function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'jobwire-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

function getNames(keys: readonly KeySchemaElement[] | undefined) {
  return keys?.map(({ AttributeName }) => AttributeName);
}

describe('tables at dynamodbEndpoint that can’t be opened', () => {
  const endpoint = 'http://127.0.0.1:1';
  const stubKeys = (key: string | undefined) => {
    vi.stubEnv('AWS_ACCESS_KEY_ID', key);
    vi.stubEnv('AWS_SECRET_ACCESS_KEY', key);
    vi.stubEnv('AWS_PROFILE', undefined);
    vi.stubEnv('AWS_EC2_METADATA_DISABLED', 'true');
    for (const name of ['AWS_SHARED_CREDENTIALS_FILE', 'AWS_CONFIG_FILE']) vi.stubEnv(name, '/none');
    onTestFinished(() => void vi.unstubAllEnvs());
  };

  test('are reported with the setting and the address if the server is down', async () => {
    stubKeys('local');
    await expect(openTables({ folder: '.', endpoint })).rejects.toThrow(
      new StartError(
        `The tables at dynamodbEndpoint (${endpoint}) can’t be used: the connection was refused (ECONNREFUSED).`,
      ),
    );
  });

  test('are reported with the variables if there are no AWS credentials', async () => {
    stubKeys(undefined);
    await expect(openTables({ folder: '.', endpoint })).rejects.toThrow(
      new StartError(
        `The tables at dynamodbEndpoint (${endpoint}) require AWS credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY.`,
      ),
    );
  });
});
