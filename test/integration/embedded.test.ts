/** The embedded parts of one machine: they start, they keep what they acknowledged, and they leave nothing behind. */
import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { connect, createServer } from 'node:net';
import { networkInterfaces, tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import {
  CreateTableCommand,
  DescribeTableCommand,
  DescribeTimeToLiveCommand,
  ListTablesCommand,
} from '@aws-sdk/client-dynamodb';
import { PublishCommand } from '@aws-sdk/client-sns';
import { DeleteMessageCommand, ReceiveMessageCommand, type SQSClient } from '@aws-sdk/client-sqs';
import { describe, expect, onTestFinished, test, vi } from 'vitest';
import {
  createTable,
  createTables,
  type DynamoOptions,
  EmbeddedPartError,
  type FauxqsOptions,
  findDynoxide,
  historyTableName,
  MissingBinaryError,
  startDynamo,
  startFauxqs,
} from '../../local/embedded.ts';
import { createDynamoTable } from '../../shared/table/dynamo-table.ts';
import { historySchema, stateSchema, type TableSchema } from '../../shared/table/schema.ts';

const modulePath = JSON.stringify(new URL('../../local/embedded.ts', import.meta.url).href);

describe('The embedded DynamoDB', () => {
  test('answers as soon as it is started, on loopback only, and is gone when it is stopped', async () => {
    const dynamo = await dynamoForTest();
    expect(dynamo.endpoint).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
    expect(await dynamo.client().send(new ListTablesCommand())).toMatchObject({ TableNames: [] });
    expect(await reachableFrom(otherAddresses(), dynamo.endpoint)).toEqual([]);
    expect(isRunning(dynamo.pid)).toBe(true);
    const group = groupOf(dynamo.pid);
    expect(isRunning(-group)).toBe(true);
    await dynamo.stop();
    expect(isRunning(dynamo.pid)).toBe(false);
    // Nor is anything left that was started to look after it.
    expect(isRunning(-group)).toBe(false);
    await dynamo.stop();
  });

  test('several run side by side, each with its own tables', async () => {
    const [one, two] = await Promise.all([dynamoForTest(), dynamoForTest()]);
    await createTables(one.client(), 'only-here');
    expect(await two.client().send(new ListTablesCommand())).toMatchObject({ TableNames: [] });
  });

  test('listens on the port asked for', async () => {
    const port = await closedPort();
    const dynamo = await dynamoForTest({ port });
    expect(dynamo.endpoint).toBe(`http://127.0.0.1:${port}`);
  });

  test('a port that is taken is an error that names it, and leaves its owner alone', async () => {
    const owner = await dynamoForTest();
    const port = Number(new URL(owner.endpoint).port);
    const error = await startDynamo({ port }).catch((cause: unknown) => cause);
    expect(error).toBeInstanceOf(EmbeddedPartError);
    expect(String(error)).toContain(String(port));
    expect(await owner.client().send(new ListTablesCommand())).toMatchObject({ TableNames: [] });
  });

  test('without a binary it says in one sentence what to do', async () => {
    const error = await startDynamo({ findBinary: () => undefined }).catch((cause: unknown) => cause);
    expect(error).toBeInstanceOf(MissingBinaryError);
    const { message } = error as MissingBinaryError;
    expect(message).toContain(`@dynoxide/${process.platform}-${process.arch}`);
    expect(message).toContain('PATH');
    expect(message).toContain('dynamodbEndpoint');
    expect(message.match(/\.( |$)/g)).toHaveLength(1);
  });

  test('the binary is that of the package for the platform, else one on the PATH that can be run', () => {
    const folder = temporaryFolder();
    const none = { platform: 'plan9', arch: 'mips', path: '' };
    expect(findDynoxide({ ...none, platform: process.platform, arch: process.arch })).toMatch(
      /@dynoxide.*dynoxide/,
    );
    expect(findDynoxide(none)).toBeUndefined();
    expect(findDynoxide({ ...none, path: `/nowhere:${folder}` })).toBeUndefined();
    const file = join(folder, 'dynoxide');
    writeFileSync(file, '');
    expect(findDynoxide({ ...none, path: `/nowhere:${folder}` })).toBeUndefined();
    chmodSync(file, 0o755);
    expect(findDynoxide({ ...none, path: `/nowhere:${folder}` })).toBe(file);
  });

  test('a server that ends at once is an error with its code and its words', async () => {
    const file = join(temporaryFolder(), 'dynoxide');
    writeFileSync(file, '#!/bin/sh\necho "the disk is full of cats" >&2\nexit 3\n', { mode: 0o755 });
    const error = await startDynamo({ findBinary: () => file }).catch((cause: unknown) => cause);
    expect(error).toBeInstanceOf(EmbeddedPartError);
    expect(String(error)).toMatch(/code 3.*full of cats/s);
    await expect(startDynamo({ findBinary: () => '/nowhere/dynoxide' })).rejects.toThrow(/nowhere/);
  });

  test('a file that is no database is an error with the server’s words, and stays as it is', async () => {
    const dbPath = join(temporaryFolder(), 'state.db');
    writeFileSync(dbPath, 'This is a letter, not a database. '.repeat(200));
    await expect(startDynamo({ dbPath })).rejects.toThrow(/database/i);
    expect(readFileSync(dbPath, 'utf8')).toMatch(/^This is a letter/);
  });

  test('a server that dies later is reported, once and with how', async () => {
    const onExit = vi.fn<NonNullable<DynamoOptions['onExit']>>();
    const dynamo = await dynamoForTest({ onExit });
    process.kill(dynamo.pid, 'SIGKILL');
    await vi.waitFor(() => expect(onExit).toHaveBeenCalled(), PATIENCE);
    await dynamo.stop();
    expect(onExit.mock.calls).toHaveLength(1);
    expect(onExit.mock.calls[0]?.[0]).toBeInstanceOf(EmbeddedPartError);
    expect(onExit.mock.calls[0]?.[0].message).toContain('SIGKILL');
  });

  test('a server that is stopped is not reported', async () => {
    const onExit = vi.fn();
    const dynamo = await dynamoForTest({ onExit });
    await dynamo.stop();
    expect(onExit).not.toHaveBeenCalled();
  });

  describe('ends with the program that started it', () => {
    test.each([
      ['kill -9', 'setInterval(() => {}, 1000)', 'SIGKILL'],
      ['a signal it does not handle', 'setInterval(() => {}, 1000)', 'SIGTERM'],
      ['process.exit', 'process.exit(0)', undefined],
      ['an uncaught error', 'setImmediate(() => { throw new Error("planned") })', undefined],
      ['having nothing more to do', '', undefined],
    ] as const)('by %s', async (_, then, signal) => {
      const program = runProgram(`
        const servers = await Promise.all([startDynamo(), startDynamo()]);
        console.log(servers.map(({ pid }) => pid).join());
        ${then}`);
      const pids = (await program.line()).split(',').map(Number);
      expect(pids.filter((pid) => pid > 1)).toHaveLength(2);
      onTestFinished(() => {
        for (const pid of pids.filter(isRunning)) process.kill(pid, 'SIGKILL');
      });
      if (signal) {
        expect(pids.filter(isRunning)).toEqual(pids);
        program.child.kill(signal);
      }
      await program.ended;
      await vi.waitFor(() => expect(pids.filter(isRunning)).toEqual([]), PATIENCE);
    });

    test('but not before it: a Ctrl-C in the terminal leaves the program its table', async () => {
      const program = runProgram(`
        const dynamo = await startDynamo();
        process.on('SIGINT', async () => {
          await createTables(dynamo.client(), 'written-late');
          await dynamo.stop();
          console.log('orderly');
          process.exit();
        });
        console.log(dynamo.pid);
        setInterval(() => {}, 1000);`);
      const pid = Number(await program.line());
      // A terminal signals the whole process group.
      process.kill(-(program.child.pid ?? 0), 'SIGINT');
      expect(await program.line()).toBe('orderly');
      expect(isRunning(pid)).toBe(false);
    });
  });

  test('what was acknowledged is there after kill -9 in the middle of writes, and no transaction by halves', async () => {
    const dbPath = join(temporaryFolder(), 'deep', 'state.db');
    const first = await dynamoForTest({ dbPath });
    await createTables(first.client(), 'state');
    const table = createDynamoTable(first.client(), { tableName: 'state' });
    const acknowledged: string[] = [];
    let killed = false;
    const writer = async (name: string): Promise<void> => {
      for (let at = 0; !killed; at += 1) {
        const sk = `${name}-${at}`;
        const outcome = await table.transact(
          [
            { put: { pk: 'LEFT', sk, text: 'x'.repeat(500) }, when: [['pk', 'absent']] },
            { put: { pk: 'RIGHT', sk } },
          ],
          sk,
        );
        if (outcome.done) acknowledged.push(sk);
        if (acknowledged.length === 150) {
          killed = true;
          process.kill(first.pid, 'SIGKILL');
        }
      }
    };
    await Promise.allSettled(['a', 'b', 'c', 'd'].map(writer));
    expect(acknowledged.length).toBeGreaterThanOrEqual(150);
    await first.stop();

    const second = await dynamoForTest({ dbPath });
    await createTables(second.client(), 'state');
    const again = createDynamoTable(second.client(), { tableName: 'state' });
    const left = (await again.query({ pk: 'LEFT' })).map(({ sk }) => sk);
    const right = (await again.query({ pk: 'RIGHT' })).map(({ sk }) => sk);
    expect(left).toEqual(right);
    expect(acknowledged.filter((sk) => !left.includes(sk))).toEqual([]);
  });
});

describe('The tables', () => {
  test.each<[string, string, TableSchema]>([
    ['state', 'state', stateSchema],
    ['history', 'state-history', historySchema],
  ])(
    '%s: made of its key schema: on demand, with its indexes, TTL, no stream',
    async (_, TableName, schema) => {
      const client = (await dynamoForTest()).client();
      await createTables(client, 'state');
      const { Table } = await client.send(new DescribeTableCommand({ TableName }));
      expect(Table?.TableStatus).toBe('ACTIVE');
      expect(Table?.BillingModeSummary?.BillingMode).toBe('PAY_PER_REQUEST');
      expect(Table?.StreamSpecification?.StreamEnabled ?? false).toBe(false);
      expect(namesOf(Table?.KeySchema)).toEqual(['pk', 'sk']);
      const indexes = Table?.GlobalSecondaryIndexes?.map((index) => ({
        name: index.IndexName,
        keys: namesOf(index.KeySchema),
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

  test('are made once, however often and by how many at once, and keep what they hold', async () => {
    const client = (await dynamoForTest()).client();
    await Promise.all([1, 2, 3].map(() => createTables(client, 'state')));
    const tables = ['state', historyTableName('state')].map((tableName) =>
      createDynamoTable(client, { tableName }),
    );
    for (const table of tables) await table.write({ put: { pk: 'P', sk: '1' } });
    await createTables(client, 'state');
    for (const table of tables) expect(await table.get({ pk: 'P', sk: '1' })).toBeDefined();
  });

  test('a data folder from before there was a history table gets one at the next start', async () => {
    const dbPath = join(temporaryFolder(), 'state.db');
    const first = await dynamoForTest({ dbPath });
    await createTable(first.client(), 'state', stateSchema);
    await createDynamoTable(first.client(), { tableName: 'state' }).write({ put: { pk: 'P', sk: '1' } });
    await first.stop();
    const client = (await dynamoForTest({ dbPath })).client();
    await createTables(client, 'state');
    expect(await createDynamoTable(client, { tableName: 'state' }).get({ pk: 'P', sk: '1' })).toBeDefined();
    const history = createDynamoTable(client, {
      tableName: historyTableName('state'),
      schema: historySchema,
    });
    await history.putMany([{ pk: 'P', sk: '1', eventPk: 'E' }]);
    expect(await history.query({ pk: 'E', index: 'byEvent' })).toHaveLength(1);
  });

  test('an older table gets the indexes it lacks, with the items it holds in them', async () => {
    const client = (await dynamoForTest()).client();
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

describe('The embedded SNS and SQS', () => {
  test('listen on loopback only, with or without a folder to keep things in', async () => {
    for (const options of [{}, { dataDir: temporaryFolder() }]) {
      const fauxqs = await fauxqsForTest(options);
      expect(await reachableFrom(['127.0.0.1'], fauxqs.endpoint)).toEqual(['127.0.0.1']);
      expect(await reachableFrom(otherAddresses(), fauxqs.endpoint)).toEqual([]);
      await fauxqs.stop();
      await fauxqs.stop();
      expect(await reachableFrom(['127.0.0.1'], fauxqs.endpoint)).toEqual([]);
    }
  });

  test('a port that is taken is an error', async () => {
    const { endpoint } = await fauxqsForTest();
    await expect(startFauxqs({ port: Number(new URL(endpoint).port) })).rejects.toThrow(EmbeddedPartError);
  });

  test('what is published to the topic arrives in the subscribed queue, bare and in order', async () => {
    const fauxqs = await fauxqsForTest();
    const topic = await fauxqs.ensureTopic('events.fifo');
    const { queueUrl } = await fauxqs.subscribeQueue(topic, 'erp.fifo');
    const sns = fauxqs.sns();
    for (const text of ['first', 'second', 'second']) await sns.send(publish(topic, text));
    const sqs = fauxqs.sqs();
    expect(await receive(sqs, queueUrl)).toBe('first');
    expect(await receive(sqs, queueUrl)).toBe('second');
    expect(await receive(sqs, queueUrl)).toBeUndefined();
  });

  test('topic, queue and subscription are made once', async () => {
    const fauxqs = await fauxqsForTest();
    const topic = await fauxqs.ensureTopic('events.fifo');
    expect(await fauxqs.ensureTopic('events.fifo')).toBe(topic);
    const subscribed = await fauxqs.subscribeQueue(topic, 'erp.fifo');
    expect(await fauxqs.subscribeQueue(topic, 'erp.fifo')).toEqual(subscribed);
    await fauxqs.sns().send(publish(topic, 'once'));
    const sqs = fauxqs.sqs();
    expect(await receive(sqs, subscribed.queueUrl)).toBe('once');
    expect(await receive(sqs, subscribed.queueUrl)).toBeUndefined();
  });

  test('topic, subscription and what was published are there after kill -9, under another port', async () => {
    const dataDir = temporaryFolder();
    const program = runProgram(`
      const fauxqs = await startFauxqs({ dataDir: ${JSON.stringify(dataDir)} });
      const topic = await fauxqs.ensureTopic('events.fifo');
      const { queueUrl } = await fauxqs.subscribeQueue(topic, 'erp.fifo');
      const { PublishCommand } = await import('@aws-sdk/client-sns');
      await fauxqs.sns().send(new PublishCommand({
        TopicArn: topic, Message: 'first', MessageGroupId: 'job', MessageDeduplicationId: '1',
      }));
      console.log(fauxqs.endpoint, topic, queueUrl);
      setInterval(() => {}, 1000);`);
    const [endpoint, topic = '', queueUrl = ''] = (await program.line()).split(' ');
    program.child.kill('SIGKILL');
    await program.ended;

    const second = await fauxqsForTest({ dataDir });
    expect(second.endpoint).not.toBe(endpoint);
    await second.sns().send(publish(topic, 'second'));
    await second.stop();

    const third = await fauxqsForTest({ dataDir });
    const sqs = third.sqs();
    // The URL names the old port, where nobody listens.
    expect(await receive(sqs, queueUrl)).toBe('first');
    expect(await receive(sqs, queueUrl)).toBe('second');
    expect(await third.ensureTopic('events.fifo')).toBe(topic);
    expect((await third.subscribeQueue(topic, 'erp.fifo')).queueUrl).toContain(third.endpoint);
    await third.stop();

    const fourth = await fauxqsForTest({ dataDir });
    expect(await receive(fourth.sqs(), queueUrl)).toBeUndefined();
  });
});

/** Until what comes by itself has come; it is over sooner if it has. */
const PATIENCE = { timeout: 15_000, interval: 10 };

async function dynamoForTest(options: DynamoOptions = {}) {
  const dynamo = await startDynamo(options);
  onTestFinished(dynamo.stop);
  return dynamo;
}

async function fauxqsForTest(options: FauxqsOptions = {}) {
  const fauxqs = await startFauxqs(options);
  onTestFinished(fauxqs.stop);
  return fauxqs;
}

function temporaryFolder(): string {
  const folder = mkdtempSync(join(tmpdir(), 'jobwire-'));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  return folder;
}

/** Runs a program of its own in a process group of its own; it is ended with the test. */
function runProgram(code: string): {
  child: ChildProcess;
  line(): Promise<string>;
  ended: Promise<unknown>;
} {
  const imports = `import { startDynamo, createTables, startFauxqs } from ${modulePath};`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', `${imports}\n${code}`], {
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  });
  onTestFinished(() => {
    child.kill('SIGKILL');
  });
  let complaints = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    complaints += text;
  });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  return {
    child,
    ended: once(child, 'exit'),
    async line() {
      const { value, done } = await lines.next();
      if (done) throw new Error(`The program ended: ${complaints}`);
      return value;
    },
  };
}

function groupOf(pid: number): number {
  return Number(execFileSync('ps', ['-o', 'pgid=', '-p', String(pid)], { encoding: 'utf8' }));
}

/** Whether a process, or with a negative id anything of a process group, runs: one that ended but was not yet collected does not. */
function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
  } catch {
    return false;
  }
  if (process.platform !== 'linux' || pid < 0) return true;
  try {
    return !/^\d+ \(.*\) Z/s.test(readFileSync(`/proc/${pid}/stat`, 'utf8'));
  } catch {
    return false;
  }
}

/** Addresses of this machine, other than that of the servers, which something that listens everywhere answers on. */
function otherAddresses(): string[] {
  const outside = Object.values(networkInterfaces())
    .flatMap((addresses) => addresses ?? [])
    .filter(({ internal, family }) => !internal && family === 'IPv4')
    .map(({ address }) => address);
  return process.platform === 'linux' ? ['127.0.0.2', ...outside] : outside;
}

/** The addresses on which something listens at the port of the endpoint. */
async function reachableFrom(addresses: readonly string[], endpoint: string): Promise<string[]> {
  const reached = await Promise.all(
    addresses.map(
      (host) =>
        new Promise<string[]>((done) => {
          const socket = connect({ host, port: Number(new URL(endpoint).port) });
          const settle = (found: string[]): void => {
            socket.destroy();
            done(found);
          };
          socket.once('connect', () => settle([host]));
          socket.once('error', () => settle([]));
        }),
    ),
  );
  return reached.flat();
}

async function closedPort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  await once(server, 'close');
  return typeof address === 'object' && address ? address.port : 0;
}

function publish(topic: string, text: string): PublishCommand {
  return new PublishCommand({
    TopicArn: topic,
    Message: text,
    MessageGroupId: 'job',
    MessageDeduplicationId: text,
  });
}

/** The next message of a queue, taken off it. */
async function receive(sqs: SQSClient, queueUrl: string): Promise<string | undefined> {
  const { Messages } = await sqs.send(
    new ReceiveMessageCommand({ QueueUrl: queueUrl, MaxNumberOfMessages: 1 }),
  );
  const message = Messages?.[0];
  if (!message) return undefined;
  await sqs.send(new DeleteMessageCommand({ QueueUrl: queueUrl, ReceiptHandle: message.ReceiptHandle }));
  return message.Body;
}

function namesOf(keys: readonly { AttributeName: string | undefined }[] | undefined): string[] {
  return (keys ?? []).map(({ AttributeName }) => AttributeName ?? '');
}
