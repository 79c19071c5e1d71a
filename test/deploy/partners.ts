/** The external systems of a deployed cell: the ordering API, and receivers of events. */
import { hash, randomBytes } from 'node:crypto';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { SNSClient, SubscribeCommand } from '@aws-sdk/client-sns';
import {
  CreateQueueCommand,
  DeleteMessageBatchCommand,
  GetQueueAttributesCommand,
  ReceiveMessageCommand,
  SQSClient,
} from '@aws-sdk/client-sqs';
import { createReceiver, type EventReference, type JobwireEvent, parseMessage } from '../../receive/index.ts';
import { type Sandbox, startSandbox } from '../../sandbox/server.ts';
import { createWorld } from '../../sandbox/world/world.ts';
import type { Deployment } from './deployment.ts';

/** A received event: its identity and its position. */
export interface ReceivedEvent {
  readonly id: string;
  readonly type: string;
  readonly account: string;
  /** The job of the event, if any. The events of a job are delivered in order. */
  readonly subject: string;
  readonly sequence: number;
}

/** Returns the compared fields of an event. */
export function toReceivedEvent(
  event: Pick<EventReference, 'id' | 'type' | 'source' | 'subject' | 'sequence'>,
): ReceivedEvent {
  const account = /\/accounts\/([^/]+)$/.exec(event.source)?.[1] ?? '_cell';
  const { id, type, subject = 'account', sequence } = event;
  return { id, type, account, subject, sequence: Number(sequence) };
}

/** Starts the ordering API of the region us, without accounts. */
export async function startOrdering(): Promise<Sandbox> {
  return startSandbox({ world: createWorld({ now: () => Date.now() }) });
}

/** A receiver of webhooks that verifies each request. */
export interface WebhookReceiver extends AsyncDisposable {
  readonly url: string;
  readonly secret: string;
  /** Verifies further requests with another secret. */
  trust(secret: string): void;
  /** Accepted events in order of arrival, including repetitions. */
  readonly events: ReceivedEvent[];
  /** Requests without a valid signature or event. */
  readonly refused: string[];
  /** Called for each event before the response. Returns the status. */
  answer: (event: ReceivedEvent) => number | Promise<number>;
}

/** Starts a receiver on loopback. */
export async function startWebhookReceiver(): Promise<WebhookReceiver> {
  const secret = `whsec_${randomBytes(32).toString('base64')}`;
  const verifying = (by: string) => createReceiver({ secret: by, now: () => Date.now() }).receive;
  let receive = verifying(secret);
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    let status = 400;
    try {
      const event = toReceivedEvent(await receive(Buffer.concat(chunks), request.headers));
      status = await receiver.answer(event);
      if (status < 300) receiver.events.push(event);
    } catch (cause) {
      receiver.refused.push(String(cause));
    }
    response.writeHead(status).end();
  });
  const receiver: WebhookReceiver = {
    url: await listen(server),
    secret,
    trust(other) {
      receive = verifying(other);
    },
    events: [],
    refused: [],
    answer: () => 204,
    [Symbol.asyncDispose]: () => close(server),
  };
  return receiver;
}

/** A received message of a queue. */
export interface QueueMessage {
  readonly event: ReceivedEvent;
  readonly body: string;
  readonly attributes: Readonly<Record<string, string>>;
  /** Message group and deduplication id: of a FIFO queue only. */
  readonly group: string | undefined;
  readonly deduplicationId: string | undefined;
}

/** A queue of a receiver of events. */
export interface ReceivingQueue extends Disposable {
  /** Returns all messages so far in order of arrival, including repetitions. Receives from the queue first. */
  messages(): Promise<readonly QueueMessage[]>;
}

/** Creates a queue of the receiver in the AWS account of the cell, by its ARN. */
export async function createReceivingQueue(cell: Deployment, arn: string): Promise<ReceivingQueue> {
  const sqs = new SQSClient(cell.aws);
  const QueueName = arn.split(':').at(-1);
  const Attributes: Record<string, string> = arn.endsWith('.fifo') ? { FifoQueue: 'true' } : {};
  const { QueueUrl = '' } = await sqs.send(new CreateQueueCommand({ QueueName, Attributes }));
  return { messages: readQueue(sqs, QueueUrl), [Symbol.dispose]: () => sqs.destroy() };
}

/** Returns a function that receives all messages of a queue and deletes them there. */
function readQueue(sqs: SQSClient, QueueUrl: string): ReceivingQueue['messages'] {
  const got: QueueMessage[] = [];
  return async () => {
    for (;;) {
      const { Messages = [] } = await sqs.send(
        new ReceiveMessageCommand({
          ...{ QueueUrl, MaxNumberOfMessages: 10 },
          ...{ MessageAttributeNames: ['All'], MessageSystemAttributeNames: ['All'] },
        }),
      );
      if (Messages.length === 0) return got;
      for (const { Body = '', MessageAttributes = {}, Attributes } of Messages) {
        got.push({
          ...{ event: toReceivedEvent(parseMessage(Body)), body: Body },
          attributes: Object.fromEntries(
            Object.entries(MessageAttributes).map(([name, { StringValue = '' }]) => [name, StringValue]),
          ),
          group: Attributes?.MessageGroupId,
          deduplicationId: Attributes?.MessageDeduplicationId,
        });
      }
      await sqs.send(
        new DeleteMessageBatchCommand({
          QueueUrl,
          Entries: Messages.map(({ ReceiptHandle }, at) => ({ Id: String(at), ReceiptHandle })),
        }),
      );
    }
  };
}

/** A queue that subscribes to the cell's topic. */
export interface Subscriber extends Disposable {
  /** Returns the received events in order, including repetitions. Receives from the queue first. */
  events(): Promise<readonly ReceivedEvent[]>;
}

/** Subscribes its own FIFO queue to the cell's topic, as users do. */
export async function subscribe(cell: Deployment): Promise<Subscriber> {
  const sns = new SNSClient(cell.aws);
  const sqs = new SQSClient(cell.aws);
  // Without this permission, messages of the topic are dropped.
  const leave = {
    Effect: 'Allow',
    Principal: { Service: 'sns.amazonaws.com' },
    Action: 'sqs:SendMessage',
    Resource: '*',
    Condition: { ArnEquals: { 'aws:SourceArn': cell.outputs.TopicArn } },
  };
  const Policy = JSON.stringify({ Version: '2012-10-17', Statement: [leave] });
  const { QueueUrl = '' } = await sqs.send(
    new CreateQueueCommand({ QueueName: 'subscriber.fifo', Attributes: { FifoQueue: 'true', Policy } }),
  );
  const { Attributes } = await sqs.send(
    new GetQueueAttributesCommand({ QueueUrl, AttributeNames: ['QueueArn'] }),
  );
  await sns.send(
    new SubscribeCommand({
      TopicArn: cell.outputs.TopicArn,
      Protocol: 'sqs',
      Endpoint: Attributes?.QueueArn,
      Attributes: { RawMessageDelivery: 'true' },
    }),
  );
  const receive = readQueue(sqs, QueueUrl);
  return {
    events: async () => (await receive()).map(({ event }) => event),
    [Symbol.dispose]() {
      sns.destroy();
      sqs.destroy();
    },
  };
}

/** A client of the HTTP API. */
export function createApiClient(cell: Deployment, key: string) {
  const headers = { authorization: `Bearer ${key}` };
  return {
    get: (path: string) => fetch(`${cell.apiUrl}${path}`, { headers }),
    /** Sends a request that changes something. The same request has the same idempotency key. */
    send: (method: 'POST' | 'PUT' | 'PATCH' | 'DELETE', path: string, body: unknown = {}) =>
      fetch(`${cell.apiUrl}${path}`, {
        method,
        headers: {
          ...headers,
          'content-type': 'application/json',
          'idempotency-key': hash('sha256', `${method} ${path} ${JSON.stringify(body)}`),
        },
        ...(method === 'DELETE' ? {} : { body: JSON.stringify(body) }),
      }),
    /** Reads the complete log of an account through the pull feed. */
    async feed(account: string): Promise<ReceivedEvent[]> {
      const events: ReceivedEvent[] = [];
      for (let after = ''; ; ) {
        const query = after === '' ? '' : `&after=${after}`;
        const answer = await fetch(`${cell.apiUrl}/v1/accounts/${account}/events?limit=100${query}`, {
          headers,
        });
        if (answer.status !== 200) throw new Error(`The feed of ${account} answered ${answer.status}.`);
        const page = (await answer.json()) as { events: JobwireEvent[]; next: string; head: string };
        events.push(...page.events.map(toReceivedEvent));
        if (page.next === page.head) return events;
        after = page.next;
      }
    },
    /** Returns the ids of events from a live stream, which is closed when the iteration ends. */
    async *stream(path: string): AsyncGenerator<ReceivedEvent> {
      const gone = new AbortController();
      try {
        const answer = await fetch(`${cell.apiUrl}${path}`, { headers, signal: gone.signal });
        if (answer.status !== 200 || !answer.body) throw new Error(`The stream answered ${answer.status}.`);
        let text = '';
        for await (const chunk of answer.body.pipeThrough(new TextDecoderStream())) {
          text += chunk;
          const blocks = text.split('\n\n');
          text = blocks.pop() ?? '';
          for (const block of blocks) {
            const data = block.split('\n').filter((line) => line.startsWith('data:'));
            if (data.length > 0 && !block.includes('\nevent: cursor\n'))
              yield toReceivedEvent(JSON.parse(data.map((line) => line.slice(5)).join('\n')));
          }
        }
      } finally {
        gone.abort();
      }
    },
  };
}

async function listen(server: Server): Promise<string> {
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

function close(server: Server): Promise<void> {
  server.closeAllConnections();
  return new Promise((done) => server.close(() => done()));
}
