/** SNS and SQS for one machine: fauxqs, in this process, on loopback. What it has acknowledged outlives a kill -9. */
import { mkdirSync } from 'node:fs';
import { Readable } from 'node:stream';
import { CreateTopicCommand, SNSClient, SubscribeCommand } from '@aws-sdk/client-sns';
import { CreateQueueCommand, GetQueueAttributesCommand, SQSClient } from '@aws-sdk/client-sqs';
import type { buildApp } from 'fauxqs';
import { type AwsCredentials, isSigned, namesCredentials, newAwsCredentials } from './signature.ts';

const HOST = '127.0.0.1';

/** The embedded SNS and SQS did not start, or do not answer as they should. */
export class QueuesError extends Error {
  override readonly name = 'QueuesError';
}

/** How {@link startFauxqs} starts. */
export interface FauxqsOptions {
  /** Where topics, queues and messages are kept. Absent: in memory. */
  readonly dataDir?: string;
  /** Absent: a free one. */
  readonly port?: number;
  /** What every request must be signed with. Absent: new ones. */
  readonly credentials?: AwsCredentials;
  /** Answers requests without any signature, too: for emulations of AWS that forward what they have judged themselves. */
  readonly unsigned?: boolean;
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
  readonly credentials: AwsCredentials;
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

/**
 * Starts fauxqs in this process. It answers only what is signed with the credentials: other users of this machine, and web
 * pages, reach a loopback port as well. Throws {@link QueuesError} when the port is taken.
 */
export async function startFauxqs(options: FauxqsOptions = {}): Promise<EmbeddedFauxqs> {
  const credentials = options.credentials ?? newAwsCredentials();
  const app = await buildFauxqs(options.dataDir);
  if (!options.unsigned) demandSignatures(app, credentials);
  let endpoint: string;
  try {
    endpoint = await app.listen({ host: HOST, port: options.port ?? 0 });
  } catch (cause) {
    await app.close();
    throw new QueuesError(`The embedded SNS and SQS did not start: ${messageOf(cause)}`, { cause });
  }
  const settings = { ...LOCAL_CLIENT, endpoint, credentials };
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
    ...{ endpoint, credentials },
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

const LOCAL_CLIENT = {
  region: 'us-east-1',
  maxAttempts: 3,
  requestHandler: { connectionTimeout: 2_000, requestTimeout: 30_000, throwOnRequestTimeout: true },
};

/** What SNS and SQS take at most is 1 MiB; a request of ours is smaller. */
const MAX_BODY_BYTES = 2 * 1024 * 1024;
/** How long a request may take to come in, and how many connections there may be. */
const REQUEST_MS = 30_000;
const MAX_CONNECTIONS = 256;

/**
 * Refuses requests that are not signed, and those that a web page made. What can be seen in the headers is judged before the
 * body is read: anybody on the machine can send one of any size.
 */
function demandSignatures(app: Awaited<FauxqsApp>, credentials: AwsCredentials): void {
  app.server.requestTimeout = REQUEST_MS;
  app.server.maxConnections = MAX_CONNECTIONS;
  app.addHook('preParsing', async ({ raw }, reply, payload) => {
    const { headers } = raw;
    const refuse = async () => {
      // Nothing more of it is read.
      await reply
        .code(403)
        .header('connection', 'close')
        .send(refusal(headers['content-type'] ?? ''));
    };
    if (headers.origin !== undefined || !namesCredentials(headers, credentials)) return refuse();
    const chunks: Buffer[] = [];
    let bytes = 0;
    for await (const chunk of payload) {
      bytes += (chunk as Buffer).length;
      if (bytes > MAX_BODY_BYTES) return refuse();
      chunks.push(chunk as Buffer);
    }
    const body = Buffer.concat(chunks);
    const request = { method: raw.method ?? '', url: raw.url ?? '/', headers, body };
    if (!(await isSigned(request, credentials, Date.now()))) return refuse();
    return Object.assign(Readable.from([body], { objectMode: false }), {
      receivedEncodedLength: body.length,
    });
  });
}

type FauxqsApp = ReturnType<typeof buildApp>;
type FauxqsStores = NonNullable<NonNullable<Parameters<typeof buildApp>[0]>['stores']>;
type FauxqsPersistence = NonNullable<FauxqsStores['sqsStore']['persistence']>;

const REFUSAL = 'The request is not signed with the credentials of this Jobwire.';

/** In the form of the protocol: SQS speaks JSON, SNS XML. */
function refusal(contentType: string): string {
  return contentType.includes('json')
    ? JSON.stringify({ __type: 'com.amazonaws.sqs#InvalidClientTokenId', message: REFUSAL })
    : `<ErrorResponse><Error><Type>Sender</Type><Code>InvalidClientTokenId</Code><Message>${REFUSAL}</Message></Error></ErrorResponse>`;
}

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
    throw new QueuesError('This version of fauxqs has its stores elsewhere.');
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
function present(value: string | undefined, what: string): string {
  if (value === undefined) throw new QueuesError(`The embedded SNS and SQS gave no ${what}.`);
  return value;
}

function messageOf(cause: unknown): string {
  return cause instanceof Error ? cause.message : String(cause);
}
