/** SNS and SQS for self-hosted Jobwire: fauxqs, in this process, on loopback. Acknowledged messages survive a kill -9. */
import { mkdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pathToFileURL } from 'node:url';
import { CreateTopicCommand, SNSClient } from '@aws-sdk/client-sns';
import { SQSClient } from '@aws-sdk/client-sqs';
import type { buildApp } from 'fauxqs';
import { explainError } from '../shared/error-codes.ts';
import { type AwsCredentials, newAwsCredentials } from './data-dir.ts';
import { isSigned, namesCredentials } from './signature.ts';
import { StartError, toMessage } from './start-error.ts';

const HOST = '127.0.0.1';

/** The embedded SNS and SQS did not start, or responded unexpectedly. */
export class QueuesError extends StartError {
  override readonly name = 'QueuesError';
}

/** Options of {@link startFauxqs}. */
export interface FauxqsOptions {
  /** Folder of topics, queues and messages. Absent: in memory. */
  readonly dataDir?: string;
  /** Default: a free port. */
  readonly port?: number;
  /** Credentials that every request must be signed with. Default: new ones. */
  readonly credentials?: AwsCredentials;
  /** Whether to accept unsigned requests as well: for emulations of AWS that forward requests they have authorized themselves. */
  readonly unsigned?: boolean;
}

/** The running embedded SNS and SQS. */
export interface EmbeddedFauxqs {
  /** `http://127.0.0.1:<port>` */
  readonly endpoint: string;
  readonly credentials: AwsCredentials;
  /** Creates a client of this server. Stopping the server destroys it. */
  sns(): SNSClient;
  /** Creates a client of this server. Stopping the server destroys it. */
  sqs(): SQSClient;
  /** Creates a FIFO topic (its name ends in `.fifo`) if it does not exist, and returns its ARN. */
  ensureTopic(name: string): Promise<string>;
  /** Idempotent. */
  stop(): Promise<void>;
}

/**
 * Starts fauxqs in this process. It accepts only requests signed with the credentials: other users of this machine, and web pages, reach a
 * loopback port as well. Throws {@link QueuesError} if the port is taken.
 */
export async function startFauxqs(options: FauxqsOptions = {}): Promise<EmbeddedFauxqs> {
  const credentials = options.credentials ?? newAwsCredentials();
  const app = await buildFauxqs(options.dataDir);
  if (!options.unsigned) requireSignatures(app, credentials);
  let endpoint: string;
  try {
    endpoint = await app.listen({ host: HOST, port: options.port ?? 0 });
  } catch (cause) {
    await app.close();
    throw new QueuesError(`The embedded SNS and SQS did not start: ${toMessage(cause)}`, { cause });
  }
  const settings = { ...LOCAL_CLIENT, endpoint, credentials };
  const clients: { destroy(): void }[] = [];
  const register = <C extends { destroy(): void }>(client: C): C => {
    clients.push(client);
    return client;
  };
  const sns = () => register(new SNSClient(settings));
  // A queue's URL keeps the port it was created with. Client and server both use the name in it.
  const sqs = () => register(new SQSClient(settings));
  const ownClient = sns();
  let stopped: Promise<void> | undefined;

  return {
    ...{ endpoint, credentials },
    sns,
    sqs,
    async ensureTopic(name) {
      const created = await ownClient.send(
        new CreateTopicCommand({ Name: name, Attributes: { FifoTopic: 'true' } }),
      );
      if (created.TopicArn === undefined) {
        throw new QueuesError('The embedded SNS and SQS returned no topic ARN.');
      }
      return created.TopicArn;
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

/** SNS and SQS accept at most 1 MiB. Our requests are smaller. */
const MAX_BODY_BYTES = 2 * 1024 * 1024;
/** Maximum time to receive a request, and maximum number of connections. */
const REQUEST_MS = 30_000;
const MAX_CONNECTIONS = 256;

/**
 * Rejects unsigned requests and requests of web pages. Headers are checked before the body is read, because any user of the machine can
 * send a body of any size.
 */
function requireSignatures(app: Awaited<FauxqsApp>, credentials: AwsCredentials): void {
  app.server.requestTimeout = REQUEST_MS;
  app.server.maxConnections = MAX_CONNECTIONS;
  app.addHook('preParsing', async ({ raw }, reply, payload) => {
    const { headers } = raw;
    const reject = async () => {
      // The rest of the body is not read.
      await reply
        .code(403)
        .header('connection', 'close')
        .send(toRejection(headers['content-type'] ?? ''));
    };
    if (headers.origin !== undefined || !namesCredentials(headers, credentials)) return reject();
    const chunks: Buffer[] = [];
    let bytes = 0;
    for await (const chunk of payload) {
      bytes += (chunk as Buffer).length;
      if (bytes > MAX_BODY_BYTES) return reject();
      chunks.push(chunk as Buffer);
    }
    const body = Buffer.concat(chunks);
    const request = { method: raw.method ?? '', url: raw.url ?? '/', headers, body };
    if (!(await isSigned(request, credentials, Date.now()))) return reject();
    return Object.assign(Readable.from([body], { objectMode: false }), {
      receivedEncodedLength: body.length,
    });
  });
}

type FauxqsApp = ReturnType<typeof buildApp>;
type FauxqsStores = NonNullable<NonNullable<Parameters<typeof buildApp>[0]>['stores']>;
type FauxqsPersistence = NonNullable<FauxqsStores['sqsStore']['persistence']>;

const REJECTION = 'The request is not signed with the credentials of this Jobwire.';

/** Returns an error in the format of the protocol: JSON for SQS, XML for SNS. */
function toRejection(contentType: string): string {
  return contentType.includes('json')
    ? JSON.stringify({ __type: 'com.amazonaws.sqs#InvalidClientTokenId', message: REJECTION })
    : `<ErrorResponse><Error><Type>Sender</Type><Code>InvalidClientTokenId</Code><Message>${REJECTION}</Message></Error></ErrorResponse>`;
}

/**
 * Builds the server, not yet listening. The package's own `startFauxqs` always listens on every interface, so the app is built and bound
 * here. The stores and their persistence are not exported. They are loaded by their path in the package, whose version is pinned. The
 * published package bundles these files under the same paths (build.ts): `#fauxqs` resolves to either.
 */
async function buildFauxqs(dataDir: string | undefined): Promise<FauxqsApp> {
  const fauxqs = await import('#fauxqs');
  if (dataDir === undefined) return fauxqs.buildApp({ logger: false });
  // The bundle has no `import.meta.resolve`. In the sources, `require` does not find the ES module.
  const entry =
    import.meta.resolve?.('#fauxqs') ?? pathToFileURL(createRequire(import.meta.url).resolve('#fauxqs')).href;
  const load = async (file: string) =>
    (await import(new URL(file, entry).href)) as Record<string, new (...args: string[]) => unknown>;
  const [sqs, sns, s3, persistence] = await Promise.all(
    ['./sqs/sqsStore.js', './sns/snsStore.js', './s3/s3Store.js', './persistence.js'].map(load),
  );
  if (!sqs?.SqsStore || !sns?.SnsStore || !s3?.S3Store || !persistence?.PersistenceManager) {
    throw new QueuesError('This version of fauxqs is not supported: its stores were not found.');
  }
  const stores = {
    sqsStore: new sqs.SqsStore(),
    snsStore: new sns.SnsStore(),
    s3Store: new s3.S3Store(),
  } as FauxqsStores;
  let storage: FauxqsPersistence;
  try {
    mkdirSync(dataDir, { recursive: true });
    storage = new persistence.PersistenceManager(dataDir) as FauxqsPersistence;
    // Loaded before persistence is attached, so that loaded data is not written again.
    storage.loadSqsAndSns(stores.sqsStore, stores.snsStore);
  } catch (cause) {
    throw new QueuesError(
      `The database ${join(dataDir, 'fauxqs.db')} can’t be used: ${explainError(cause)}. Restore a backup. Or remove the file, with all topics, queues and messages of the embedded SNS and SQS.`,
      { cause },
    );
  }
  stores.sqsStore.persistence = storage;
  stores.snsStore.persistence = storage;
  for (const queue of stores.sqsStore.allQueues()) queue.persistence = storage;
  const app = fauxqs.buildApp({ logger: false, stores });
  app.addHook('onClose', () => storage.close());
  return app;
}
