/**
 * The embedded parts of one machine: DynamoDB is dynoxide, a server on SQLite in a process of its own; SNS and SQS are
 * fauxqs, in this process. Both listen on loopback only and hold what they have acknowledged through a kill -9.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { accessSync, constants, mkdirSync, statSync } from 'node:fs';
import { createRequire } from 'node:module';
import { createServer } from 'node:net';
import { constants as osConstants } from 'node:os';
import { delimiter, dirname, join, resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import {
  CreateTableCommand,
  DescribeTableCommand,
  DescribeTimeToLiveCommand,
  DynamoDBClient,
  type KeySchemaElement,
  ResourceInUseException,
  UpdateTableCommand,
  UpdateTimeToLiveCommand,
  waitUntilTableExists,
} from '@aws-sdk/client-dynamodb';
import { CreateTopicCommand, SNSClient, SubscribeCommand } from '@aws-sdk/client-sns';
import { CreateQueueCommand, GetQueueAttributesCommand, SQSClient } from '@aws-sdk/client-sqs';
import type { buildApp } from 'fauxqs';
import { historySchema, stateSchema, type TableSchema } from '../shared/table/schema.ts';

const HOST = '127.0.0.1';
/** How long a server may take to answer for the first time, and to end when asked to. */
const START_TIMEOUT_MS = 15_000;
const STOP_TIMEOUT_MS = 5_000;
const PROBE_EVERY_MS = 20;
/** How often another port is tried when the free one was taken in between. */
const PORT_ATTEMPTS = 5;
/** How much of what a server complains of is kept for the error. */
const KEPT_STDERR_CHARACTERS = 4_000;

/** There is no embedded DynamoDB for this machine. */
export class MissingBinaryError extends Error {
  override readonly name = 'MissingBinaryError';

  constructor() {
    const { platform, arch } = process;
    super(
      `There is no embedded DynamoDB for ${platform}-${arch} here: run npm install with optional dependencies ` +
        `(@dynoxide/${platform}-${arch}), put a dynoxide binary on the PATH, or point dynamodbEndpoint in the config at a server.`,
    );
  }
}

/** An embedded part did not start, or ended although nobody stopped it. */
export class EmbeddedPartError extends Error {
  override readonly name = 'EmbeddedPartError';
}

/** How {@link startDynamo} starts. */
export interface DynamoOptions {
  /** The database file; its folder is made if need be. Absent: in memory. */
  readonly dbPath?: string;
  /** Absent: a free one. */
  readonly port?: number;
  /** Told when the server ends although nobody stopped it; what it acknowledged is in its file. */
  readonly onExit?: (error: EmbeddedPartError) => void;
  /** Where the binary is, or `undefined` if nowhere; injected by tests. */
  readonly findBinary?: () => string | undefined;
}

/** A running embedded DynamoDB. */
export interface EmbeddedDynamo {
  /** `http://127.0.0.1:<port>` */
  readonly endpoint: string;
  /** The server's process. */
  readonly pid: number;
  /** A new client of this server; it is destroyed with the server. */
  client(): DynamoDBClient;
  /** Ends the server, orderly if it can; may be called twice. */
  stop(): Promise<void>;
}

/**
 * Starts dynoxide and waits until it answers. It ends with this process, however that ends; it does not keep it alive.
 * Throws {@link MissingBinaryError}, or {@link EmbeddedPartError} with what the server said.
 */
export async function startDynamo(options: DynamoOptions = {}): Promise<EmbeddedDynamo> {
  const binary = (options.findBinary ?? findDynoxide)();
  if (binary === undefined) throw new MissingBinaryError();
  if (options.dbPath !== undefined) mkdirSync(dirname(resolve(options.dbPath)), { recursive: true });
  for (let attempt = 1; ; attempt += 1) {
    const port = await freePort(options.port);
    try {
      return await launch(binary, port, options);
    } catch (cause) {
      // Somebody else may have been given the same free port before the server bound it.
      const taken = options.port === undefined && cause instanceof Error && /in use/i.test(cause.message);
      if (!taken || attempt === PORT_ATTEMPTS) throw cause;
    }
  }
}

/** Creates a client of an embedded DynamoDB. */
export function createDynamoClient(endpoint: string): DynamoDBClient {
  return new DynamoDBClient({ ...LOCAL_CLIENT, endpoint });
}

/**
 * The dynoxide binary: of the package for this platform, else on the PATH, else `undefined`. The packages are optional
 * dependencies and npm installs only the one that fits.
 */
export function findDynoxide(
  machine: { readonly platform: string; readonly arch: string; readonly path: string } = {
    platform: process.platform,
    arch: process.arch,
    path: process.env.PATH ?? '',
  },
): string | undefined {
  const file = machine.platform === 'win32' ? 'dynoxide.exe' : 'dynoxide';
  const folders = machine.path.split(delimiter).filter((folder) => folder !== '');
  try {
    const description = `@dynoxide/${machine.platform}-${machine.arch}/package.json`;
    folders.unshift(dirname(createRequire(import.meta.url).resolve(description)));
  } catch {
    // Not installed: an optional dependency may be missing.
  }
  return folders.map((folder) => join(folder, file)).find(isExecutable);
}

/** Makes both tables, as {@link createTable} does: the state table of this name, and its history table. */
export async function createTables(client: DynamoDBClient, tableName: string): Promise<void> {
  await createTable(client, tableName, stateSchema);
  await createTable(client, historyTableName(tableName), historySchema);
}

/** The name of the history table beside a state table. */
export function historyTableName(tableName: string): string {
  return `${tableName}-history`;
}

/**
 * Makes the table of a key schema, if it is not there: on demand, TTL, no stream (with one the embedded server slows to a
 * crawl). An index that an older table lacks is added. May be called at any time, also by two at once. The name needs 3
 * characters at least.
 */
export async function createTable(
  client: DynamoDBClient,
  tableName: string,
  schema: TableSchema,
): Promise<void> {
  const TableName = tableName;
  const indexes = Object.entries(schema.indexes).map(([IndexName, index]) => ({
    IndexName,
    KeySchema: keySchema(index),
    Projection: { ProjectionType: index.holds === 'keys' ? ('KEYS_ONLY' as const) : ('ALL' as const) },
  }));
  try {
    await client.send(
      new CreateTableCommand({
        TableName,
        BillingMode: 'PAY_PER_REQUEST',
        KeySchema: keySchema(schema),
        AttributeDefinitions: textAttributes([schema, ...Object.values(schema.indexes)]),
        GlobalSecondaryIndexes: indexes,
      }),
    );
  } catch (cause) {
    if (!(cause instanceof ResourceInUseException)) throw cause;
  }
  await waitUntilTableExists({ client, maxWaitTime: 60, minDelay: 1, maxDelay: 2 }, { TableName });

  const { Table } = await client.send(new DescribeTableCommand({ TableName }));
  const known = new Set(Table?.GlobalSecondaryIndexes?.map((index) => index.IndexName));
  for (const index of indexes.filter(({ IndexName }) => !known.has(IndexName))) {
    await client.send(
      new UpdateTableCommand({
        TableName,
        AttributeDefinitions: textAttributes([schema, ...Object.values(schema.indexes)]),
        GlobalSecondaryIndexUpdates: [{ Create: index }],
      }),
    );
    await waitUntilTableExists({ client, maxWaitTime: 600, minDelay: 1, maxDelay: 5 }, { TableName });
  }

  const { TimeToLiveDescription: ttl } = await client.send(new DescribeTimeToLiveCommand({ TableName }));
  if (ttl?.TimeToLiveStatus === 'ENABLED' || ttl?.TimeToLiveStatus === 'ENABLING') return;
  const TimeToLiveSpecification = { AttributeName: schema.ttlAttribute, Enabled: true };
  await client.send(new UpdateTimeToLiveCommand({ TableName, TimeToLiveSpecification }));
}

/** How {@link startFauxqs} starts. */
export interface FauxqsOptions {
  /** Where topics, queues and messages are kept. Absent: in memory. */
  readonly dataDir?: string;
  /** Absent: a free one. */
  readonly port?: number;
}

/** A queue that gets what a topic publishes. */
export interface SubscribedQueue {
  readonly queueUrl: string;
  readonly queueArn: string;
  readonly subscriptionArn: string;
}

/** Running embedded SNS and SQS. */
export interface EmbeddedFauxqs {
  /** `http://127.0.0.1:<port>` */
  readonly endpoint: string;
  /** A new client of this server; it is destroyed with the server. */
  sns(): SNSClient;
  /** A new client of this server; it is destroyed with the server. */
  sqs(): SQSClient;
  /** Makes a FIFO topic (its name ends in `.fifo`), if it is not there, and gives its ARN. */
  ensureTopic(name: string): Promise<string>;
  /**
   * Makes a FIFO queue (its name ends in `.fifo`), if it is not there, and subscribes it, unless it is, to what the topic
   * publishes: the bare messages, or what the attributes say. Another set of attributes for a known subscription throws.
   */
  subscribeQueue(
    topicArn: string,
    queueName: string,
    attributes?: Readonly<Record<string, string>>,
  ): Promise<SubscribedQueue>;
  /** May be called twice. */
  stop(): Promise<void>;
}

/** Starts fauxqs in this process. Throws {@link EmbeddedPartError} when the port is taken. */
export async function startFauxqs(options: FauxqsOptions = {}): Promise<EmbeddedFauxqs> {
  const app = await buildFauxqs(options.dataDir);
  let endpoint: string;
  try {
    endpoint = await app.listen({ host: HOST, port: options.port ?? 0 });
  } catch (cause) {
    await app.close();
    throw new EmbeddedPartError(`The embedded SNS and SQS did not start: ${messageOf(cause)}`, { cause });
  }
  const settings = { ...LOCAL_CLIENT, endpoint };
  const clients: { destroy(): void }[] = [];
  const register = <C extends { destroy(): void }>(client: C): C => {
    clients.push(client);
    return client;
  };
  const sns = () => register(new SNSClient(settings));
  // A queue's URL keeps the port it was made with; client and server both go by the name in it.
  const sqs = () => register(new SQSClient(settings));
  const own = { sns: sns(), sqs: sqs() };
  let stopped: Promise<void> | undefined;

  return {
    endpoint,
    sns,
    sqs,
    async ensureTopic(name) {
      const made = await own.sns.send(
        new CreateTopicCommand({ Name: name, Attributes: { FifoTopic: 'true' } }),
      );
      return present(made.TopicArn, 'topic ARN');
    },
    async subscribeQueue(topicArn, queueName, attributes = { RawMessageDelivery: 'true' }) {
      await own.sqs.send(new CreateQueueCommand({ QueueName: queueName, Attributes: { FifoQueue: 'true' } }));
      const queueUrl = `${endpoint}/${topicArn.split(':')[4]}/${queueName}`;
      const { Attributes } = await own.sqs.send(
        new GetQueueAttributesCommand({ QueueUrl: queueUrl, AttributeNames: ['QueueArn'] }),
      );
      const queueArn = present(Attributes?.QueueArn, 'queue ARN');
      const subscription = await own.sns.send(
        new SubscribeCommand({
          TopicArn: topicArn,
          Protocol: 'sqs',
          Endpoint: queueArn,
          Attributes: attributes,
          ReturnSubscriptionArn: true,
        }),
      );
      return {
        queueUrl,
        queueArn,
        subscriptionArn: present(subscription.SubscriptionArn, 'subscription ARN'),
      };
    },
    stop() {
      stopped ??= (async () => {
        for (const client of clients) client.destroy();
        await app.close();
      })();
      return stopped;
    },
  };
}

/** What every client of an embedded part is made with: nobody checks region and credentials, the SDK only wants them. */
const LOCAL_CLIENT = {
  region: 'us-east-1',
  credentials: { accessKeyId: 'local', secretAccessKey: 'local' },
  maxAttempts: 3,
  requestHandler: { connectionTimeout: 2_000, requestTimeout: 30_000, throwOnRequestTimeout: true },
};

/**
 * A shell runs the server and beside it a watcher, says the id of the server, and ends when both have ended. The watcher
 * reads a pipe whose other end we alone hold: each line is a signal for the server, and when the pipe ends, we are gone
 * (even by kill -9, when no handler of ours runs) and it kills the server. Ids only: nothing is found by its name.
 */
const WATCHED = `
exec 3<&0 0</dev/null
"$0" "$@" 3<&- >/dev/null &
server=$!
{ while read -r signal; do kill -$signal $server; done; kill -KILL $server; } <&3 3<&- >/dev/null 2>&1 &
watcher=$!
exec 3<&-
echo $server
wait $server
code=$?
{ kill -KILL $watcher; wait $watcher; } 2>/dev/null
exit $code
`;

async function launch(binary: string, port: number, options: DynamoOptions): Promise<EmbeddedDynamo> {
  const serve = [binary, 'serve', '--host', HOST, '--port', String(port)];
  if (options.dbPath !== undefined) serve.push('--db-path', resolve(options.dbPath));
  const { child, signal, serverId } = spawnWatched(serve);
  let said = '';
  child.stderr?.setEncoding('utf8').on('data', (text: string) => {
    said = (said + text).slice(-KEPT_STDERR_CHARACTERS);
  });
  let ended: EmbeddedPartError | undefined;
  let stopping = false;
  let ready = false;
  const end = new Promise<void>((done) => {
    const close = (how: string, cause?: unknown): void => {
      if (ended) return;
      const words = said.trim();
      ended = new EmbeddedPartError(`The embedded DynamoDB ${how}${words && `: ${words}`}`, { cause });
      child.stdin?.destroy();
      done();
      if (ready && !stopping) options.onExit?.(ended);
    };
    child.once('error', (cause) => close(`could not be run (${cause.message})`, cause));
    // Not 'exit': by then what it said last may not have been read.
    child.once('close', (code, by) => close(howItEnded(code, by)));
  });
  const clients: DynamoDBClient[] = [];
  const endpoint = `http://${HOST}:${port}`;

  async function stop(): Promise<void> {
    stopping = true;
    for (const client of clients) client.destroy();
    if (ended) return;
    child.ref();
    signal('TERM');
    const patience = setTimeout(() => signal('KILL'), STOP_TIMEOUT_MS);
    await end;
    clearTimeout(patience);
  }

  const deadline = Date.now() + START_TIMEOUT_MS;
  while (!(serverId() && (await answers(endpoint)))) {
    if (Date.now() > deadline) {
      await stop();
      throw new EmbeddedPartError(
        `The embedded DynamoDB did not answer within ${START_TIMEOUT_MS} ms: ${said}`,
      );
    }
    await Promise.race([end, sleep(PROBE_EVERY_MS)]);
    if (ended) throw ended;
  }
  ready = true;
  // The watcher ends the server with us, so it need not keep us alive.
  child.unref();
  for (const pipe of child.stdio) (pipe as unknown as { unref?(): void } | null)?.unref?.();
  return {
    endpoint,
    pid: serverId() ?? 0,
    client() {
      const client = createDynamoClient(endpoint);
      clients.push(client);
      return client;
    },
    stop,
  };
}

interface Watched {
  readonly child: ChildProcess;
  readonly signal: (name: 'TERM' | 'KILL') => void;
  /** The id of the server's process, once it is known. */
  readonly serverId: () => number | undefined;
}

/** Detached, so that a Ctrl-C in the terminal reaches us alone and we stop the server when we no longer need it. */
function spawnWatched(command: readonly string[]): Watched {
  if (process.platform === 'win32') return spawnUnwatched(command);
  const child = spawn('sh', ['-c', WATCHED, ...command], { stdio: 'pipe', detached: true });
  let id = '';
  child.stdout.setEncoding('utf8').on('data', (text: string) => {
    id += text;
  });
  // The watcher may be gone before we tell it.
  child.stdin.on('error', () => {});
  return {
    child,
    signal: (name) => child.stdin.write(`${name}\n`),
    serverId: () => (id.endsWith('\n') ? Number(id) : undefined),
  };
}

/** Without a shell to watch: a parent that is killed leaves the server behind, every other end takes it along. */
function spawnUnwatched([binary = '', ...rest]: readonly string[]): Watched {
  const child = spawn(binary, rest, { stdio: ['ignore', 'ignore', 'pipe'], windowsHide: true });
  const kill = () => child.kill();
  process.once('exit', kill);
  child.once('exit', () => process.off('exit', kill));
  return { child, signal: (name) => child.kill(`SIG${name}`), serverId: () => child.pid };
}

/** The shell ends with 128 and the number of the signal that ended the server. */
function howItEnded(code: number | null, by: NodeJS.Signals | null): string {
  const signal = by ?? Object.entries(osConstants.signals).find(([, number]) => number + 128 === code)?.[0];
  return signal ? `was ended by ${signal}` : `ended with code ${code}`;
}

async function answers(endpoint: string): Promise<boolean> {
  try {
    const answer = await fetch(endpoint, { signal: AbortSignal.timeout(1_000) });
    await answer.body?.cancel();
    return answer.ok;
  } catch {
    return false;
  }
}

/** The port asked for, if it can be had, or a free one. */
function freePort(port: number | undefined): Promise<number> {
  return new Promise((done, fail) => {
    const probe = createServer();
    probe.once('error', (cause) =>
      fail(
        new EmbeddedPartError(`Port ${port ?? 0} can't be had for the embedded DynamoDB: ${cause.message}`, {
          cause,
        }),
      ),
    );
    probe.listen({ host: HOST, port: port ?? 0, exclusive: true }, () => {
      const address = probe.address();
      probe.close(() => done(typeof address === 'object' && address ? address.port : 0));
    });
  });
}

type FauxqsApp = ReturnType<typeof buildApp>;
type FauxqsStores = NonNullable<NonNullable<Parameters<typeof buildApp>[0]>['stores']>;
type FauxqsPersistence = NonNullable<FauxqsStores['sqsStore']['persistence']>;

/**
 * The server, not yet listening. Its own `startFauxqs` always listens on every interface, so the app is built and bound
 * here; the stores and their persistence are not exported and are loaded by their place in the package, whose version is
 * pinned. What is published has its files bundled, in the same places (build.ts): `#fauxqs` is the one or the other.
 */
async function buildFauxqs(dataDir: string | undefined): Promise<FauxqsApp> {
  const fauxqs = await import('#fauxqs');
  if (dataDir === undefined) return fauxqs.buildApp({ logger: false });
  const entry = import.meta.resolve('#fauxqs');
  const load = async (file: string) =>
    (await import(new URL(file, entry).href)) as Record<string, new (...args: string[]) => unknown>;
  const [sqs, sns, s3, persistence] = await Promise.all(
    ['./sqs/sqsStore.js', './sns/snsStore.js', './s3/s3Store.js', './persistence.js'].map(load),
  );
  if (!sqs?.SqsStore || !sns?.SnsStore || !s3?.S3Store || !persistence?.PersistenceManager) {
    throw new EmbeddedPartError('This version of fauxqs has its stores elsewhere.');
  }
  const stores = {
    sqsStore: new sqs.SqsStore(),
    snsStore: new sns.SnsStore(),
    s3Store: new s3.S3Store(),
  } as FauxqsStores;
  mkdirSync(dataDir, { recursive: true });
  const kept = new persistence.PersistenceManager(dataDir) as FauxqsPersistence;
  // Loaded before it is attached: what is loaded is not to be written again.
  kept.loadSqsAndSns(stores.sqsStore, stores.snsStore);
  stores.sqsStore.persistence = kept;
  stores.snsStore.persistence = kept;
  for (const queue of stores.sqsStore.allQueues()) queue.persistence = kept;
  const app = fauxqs.buildApp({ logger: false, stores });
  app.addHook('onClose', () => kept.close());
  return app;
}

function keySchema(keys: { readonly partitionKey: string; readonly sortKey: string }): KeySchemaElement[] {
  return [
    { AttributeName: keys.partitionKey, KeyType: 'HASH' },
    { AttributeName: keys.sortKey, KeyType: 'RANGE' },
  ];
}

function textAttributes(keys: readonly { readonly partitionKey: string; readonly sortKey: string }[]) {
  const names = new Set(keys.flatMap(({ partitionKey, sortKey }) => [partitionKey, sortKey]));
  return [...names].map((AttributeName) => ({ AttributeName, AttributeType: 'S' as const }));
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return statSync(file).isFile();
  } catch {
    return false;
  }
}

function present(value: string | undefined, what: string): string {
  if (value === undefined) throw new EmbeddedPartError(`The embedded SNS and SQS gave no ${what}.`);
  return value;
}

function messageOf(cause: unknown): string {
  return cause instanceof Error ? cause.message : String(cause);
}
