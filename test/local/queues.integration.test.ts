/** The embedded SNS and SQS: startup, durability, and access control on the machine. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { type IncomingMessage, request } from 'node:http';
import { connect } from 'node:net';
import { networkInterfaces, tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { ListTopicsCommand, PublishCommand, SNSClient } from '@aws-sdk/client-sns';
import {
  DeleteMessageCommand,
  ListQueuesCommand,
  ReceiveMessageCommand,
  SQSClient,
} from '@aws-sdk/client-sqs';
import { describe, expect, onTestFinished, test } from 'vitest';
import { newAwsCredentials } from '../../local/data-dir.ts';
import { type FauxqsOptions, QueuesError, startFauxqs } from '../../local/queues.ts';
import { subscribeQueue } from '../support/queues.ts';

const modulePath = JSON.stringify(new URL('../../local/queues.ts', import.meta.url).href);
const supportPath = JSON.stringify(new URL('../support/queues.ts', import.meta.url).href);

describe('the embedded SNS and SQS', () => {
  test('listen on loopback only, with or without a folder for their data', async () => {
    for (const options of [{}, { dataDir: temporaryFolder() }]) {
      const fauxqs = await fauxqsForTest(options);
      expect(await reachableFrom(['127.0.0.1'], fauxqs.endpoint)).toEqual(['127.0.0.1']);
      expect(await reachableFrom(otherAddresses(), fauxqs.endpoint)).toEqual([]);
      await fauxqs.stop();
      await fauxqs.stop();
      expect(await reachableFrom(['127.0.0.1'], fauxqs.endpoint)).toEqual([]);
    }
  });

  test('an occupied port is an error', async () => {
    const { endpoint } = await fauxqsForTest();
    await expect(startFauxqs({ port: Number(new URL(endpoint).port) })).rejects.toThrow(QueuesError);
  });

  describe('reject every caller without the credentials', () => {
    const FORM = { 'content-type': 'application/x-www-form-urlencoded' };
    const JSON_1 = { 'content-type': 'application/x-amz-json-1.0' };
    const LIST = { ...JSON_1, 'x-amz-target': 'AmazonSQS.ListQueues' };
    test.each<[string, RequestInit]>([
      ['a page that is opened', {}],
      ['a command without a signature', { method: 'POST', headers: LIST, body: '{}' }],
      ['a form that a web page posts', { method: 'POST', headers: FORM, body: 'Action=ListTopics' }],
      ['a preflight request of a browser', { method: 'OPTIONS', headers: { origin: 'http://evil.example' } }],
      [
        'an empty signature',
        {
          method: 'POST',
          headers: {
            ...LIST,
            'x-amz-date': '20260101T000000Z',
            authorization: `AWS4-HMAC-SHA256 Credential=AKIA/20260101/us-east-1/sqs/aws4_request, SignedHeaders=host, Signature=${'0'.repeat(64)}`,
          },
          body: '{}',
        },
      ],
    ])('%s', async (_, init) => {
      const { endpoint } = await fauxqsForTest();
      const answer = await fetch(endpoint, init);
      expect(answer.status).toBe(403);
      expect(answer.headers.get('access-control-allow-origin')).toBeNull();
      expect(await answer.text()).not.toContain('Queue');
    });

    test('and reads nothing of an unsigned body', async () => {
      const fauxqs = await fauxqsForTest();
      const headers = { 'content-length': '400000000', 'content-type': 'application/x-amz-json-1.0' };
      const call = request(fauxqs.endpoint, { method: 'POST', headers });
      onTestFinished(() => void call.destroy());
      call.on('error', () => {});
      // Not a byte of it is sent.
      call.flushHeaders();
      const [answer] = (await once(call, 'response')) as [IncomingMessage];
      expect(answer.statusCode).toBe(403);
      expect(answer.headers.connection).toBe('close');
    });

    test('a client with other credentials', async () => {
      const fauxqs = await fauxqsForTest();
      const { accessKeyId } = fauxqs.credentials;
      for (const credentials of [newAwsCredentials(), { accessKeyId, secretAccessKey: 'guessed' }]) {
        const sqs = new SQSClient({ region: 'us-east-1', endpoint: fauxqs.endpoint, credentials });
        onTestFinished(() => sqs.destroy());
        await expect(sqs.send(new ListQueuesCommand())).rejects.toThrow('not signed with the credentials');
        const sns = new SNSClient({ region: 'us-east-1', endpoint: fauxqs.endpoint, credentials });
        onTestFinished(() => sns.destroy());
        await expect(sns.send(new ListTopicsCommand())).rejects.toThrow('not signed with the credentials');
      }
    });

    test.each<[string, (request: Signed) => Signed]>([
      ['was changed in transit', (request) => ({ ...request, body: request.body.replace('first', 'other') })],
      [
        'has another host name',
        ({ headers, body }) => ({ headers: { ...headers, host: 'evil.example' }, body }),
      ],
      ['comes from a web page', ({ headers, body }) => ({ headers: { ...headers, origin: 'null' }, body })],
      [
        'is a day old',
        ({ headers, body }) => ({ headers: { ...headers, 'x-amz-date': '20260101T000000Z' }, body }),
      ],
    ])('a request that was signed and %s', async (_, change) => {
      const fauxqs = await fauxqsForTest();
      await fauxqs.ensureTopic('events.fifo');
      const signed = await captured((endpoint) => {
        const { credentials } = fauxqs;
        return new SNSClient({ region: 'us-east-1', endpoint, credentials, maxAttempts: 1 });
      }, fauxqs.endpoint);
      expect((await post(fauxqs.endpoint, signed)).status).toBe(200);
      expect((await post(fauxqs.endpoint, change(signed))).status).toBe(403);
    });
  });

  test('a message published to the topic arrives in the subscribed queue, raw and in order', async () => {
    const fauxqs = await fauxqsForTest();
    const topic = await fauxqs.ensureTopic('events.fifo');
    const { queueUrl } = await subscribeQueue(fauxqs, topic, 'erp.fifo');
    const sns = fauxqs.sns();
    for (const text of ['first', 'second', 'second']) await sns.send(publish(topic, text));
    const sqs = fauxqs.sqs();
    expect(await receive(sqs, queueUrl)).toBe('first');
    expect(await receive(sqs, queueUrl)).toBe('second');
    expect(await receive(sqs, queueUrl)).toBeUndefined();
  });

  test('topic, queue and subscription are created once', async () => {
    const fauxqs = await fauxqsForTest();
    const topic = await fauxqs.ensureTopic('events.fifo');
    expect(await fauxqs.ensureTopic('events.fifo')).toBe(topic);
    const subscribed = await subscribeQueue(fauxqs, topic, 'erp.fifo');
    expect(await subscribeQueue(fauxqs, topic, 'erp.fifo')).toEqual(subscribed);
    await fauxqs.sns().send(publish(topic, 'once'));
    const sqs = fauxqs.sqs();
    expect(await receive(sqs, subscribed.queueUrl)).toBe('once');
    expect(await receive(sqs, subscribed.queueUrl)).toBeUndefined();
  });

  test('topic, subscription and published messages survive kill -9, also with another port', async () => {
    const dataDir = temporaryFolder();
    const program = runProgram(`
      const fauxqs = await startFauxqs({ dataDir: ${JSON.stringify(dataDir)} });
      const topic = await fauxqs.ensureTopic('events.fifo');
      const { queueUrl } = await subscribeQueue(fauxqs, topic, 'erp.fifo');
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
    // The URL names the old port, where no server listens.
    expect(await receive(sqs, queueUrl)).toBe('first');
    expect(await receive(sqs, queueUrl)).toBe('second');
    expect(await third.ensureTopic('events.fifo')).toBe(topic);
    expect((await subscribeQueue(third, topic, 'erp.fifo')).queueUrl).toContain(third.endpoint);
    await third.stop();

    const fourth = await fauxqsForTest({ dataDir });
    expect(await receive(fourth.sqs(), queueUrl)).toBeUndefined();
  });
});

interface Signed {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** A client's request to publish a message, as received by the endpoint. */
async function captured(client: (endpoint: string) => SNSClient, endpoint: string): Promise<Signed> {
  const sns = client(endpoint);
  let signed: Signed | undefined;
  sns.middlewareStack.add(
    (next) => async (args) => {
      const { headers, body } = args.request as unknown as { headers: Record<string, string>; body: string };
      signed = { headers, body };
      return next(args);
    },
    { step: 'finalizeRequest', priority: 'low' },
  );
  await sns.send(publish('arn:aws:sns:us-east-1:000000000000:events.fifo', 'first'));
  sns.destroy();
  if (!signed) throw new Error('Nothing was sent.');
  return signed;
}

/** Not with fetch, which sets the host itself. */
async function post(endpoint: string, { headers, body }: Signed): Promise<{ readonly status: number }> {
  const call = request(endpoint, {
    method: 'POST',
    headers: { ...headers, 'content-length': Buffer.byteLength(body) },
  });
  call.end(body);
  const [answer] = (await once(call, 'response')) as [IncomingMessage];
  answer.resume();
  return { status: answer.statusCode ?? 0 };
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

/** Runs a program in its own process group; it ends with the test. */
function runProgram(code: string): {
  child: ChildProcess;
  line(): Promise<string>;
  ended: Promise<unknown>;
} {
  const imports = `import { startFauxqs } from ${modulePath}; import { subscribeQueue } from ${supportPath};`;
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

/** Other addresses of this machine. A server that listens on all addresses accepts connections there. */
function otherAddresses(): string[] {
  const outside = Object.values(networkInterfaces())
    .flatMap((addresses) => addresses ?? [])
    .filter(({ internal, family }) => !internal && family === 'IPv4')
    .map(({ address }) => address);
  return process.platform === 'linux' ? ['127.0.0.2', ...outside] : outside;
}

/** Returns the addresses that accept connections at the port of the endpoint. */
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

function publish(topic: string, text: string): PublishCommand {
  return new PublishCommand({
    TopicArn: topic,
    Message: text,
    MessageGroupId: 'job',
    MessageDeduplicationId: text,
  });
}

/** Receives and deletes the next message of a queue. */
async function receive(sqs: SQSClient, queueUrl: string): Promise<string | undefined> {
  const { Messages } = await sqs.send(
    new ReceiveMessageCommand({ QueueUrl: queueUrl, MaxNumberOfMessages: 1 }),
  );
  const message = Messages?.[0];
  if (!message) return undefined;
  await sqs.send(new DeleteMessageCommand({ QueueUrl: queueUrl, ReceiptHandle: message.ReceiptHandle }));
  return message.Body;
}
