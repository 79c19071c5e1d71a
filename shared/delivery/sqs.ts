/**
 * The queue sink: sends events to an SQS queue, with attributes.
 *
 * A FIFO queue keeps the order of each job and accepts an event once within five minutes. A standard queue
 * guarantees neither.
 */
import {
  SendMessageBatchCommand,
  type SendMessageBatchRequestEntry,
  SQSClient,
  type SQSClientConfig,
} from '@aws-sdk/client-sqs';
import {
  createBatchSink,
  measureMessage,
  toEntryResults,
  toFifoFields,
  toMessageAttributes,
} from './batches.ts';
import { parseQueueAddress } from './queue-address.ts';
import type { SinkPort } from './sink.ts';

interface Options {
  /** Base URL of the HTTP API: an event that is too large for SQS is fetched from its feed. */
  readonly publicUrl: string;
  /** URL of another server with the SQS API. Default: Amazon SQS. */
  readonly endpoint?: string | undefined;
  /** Default: those of the environment. */
  readonly credentials?: SQSClientConfig['credentials'];
  readonly requestHandler: NonNullable<SQSClientConfig['requestHandler']>;
}

/** Creates the opener of queue sinks by ARN. It has one client for each AWS region. */
export function createQueueOpener({
  publicUrl,
  endpoint,
  credentials,
  requestHandler,
}: Options): (arn: string) => SinkPort {
  const clients = new Map<string, SQSClient>();
  return (arn) => {
    const queue = parseQueueAddress(arn);
    if (!queue) throw new Error('The target of the endpoint is not the ARN of an SQS queue.');
    const { awsRegion: region } = queue;
    const client =
      clients.get(region) ??
      new SQSClient({
        ...{ region, requestHandler, useQueueUrlAsEndpoint: false },
        ...(endpoint === undefined ? {} : { endpoint }),
        ...(credentials ? { credentials } : {}),
      });
    clients.set(region, client);
    const url = endpoint === undefined ? queue.url : `${endpoint.replace(/\/$/, '')}/${queue.path}`;
    return createQueueSink(client, { url, fifo: queue.fifo, publicUrl });
  };
}

/**
 * Creates a sink that sends to a queue. In a FIFO queue, the message group is the event's lane: account and
 * job, or the account as a whole. The deduplication id is the event's id, so an event sent again within five
 * minutes is one message. A requested resend has another deduplication id, because it must arrive.
 *
 * The body is the envelope; for an event that is too large, a reference to it in the feed. The attributes are
 * those of SNS.
 */
function createQueueSink(
  client: SQSClient,
  { url, fifo, publicUrl }: { readonly url: string; readonly fifo: boolean; readonly publicUrl: string },
): SinkPort {
  return createBatchSink({
    ...{ name: 'SQS', target: 'queue', publicUrl },
    toEntry: ({ id, event, body, replay, values }): SendMessageBatchRequestEntry => ({
      Id: id,
      MessageBody: body,
      MessageAttributes: toMessageAttributes(values),
      // In a standard queue a message group would turn on fair queues, which not every consumer wants.
      ...(fifo && toFifoFields(event, replay)),
    }),
    measure: measureMessage,
    async send(entries: readonly SendMessageBatchRequestEntry[]) {
      const batch = { QueueUrl: url, Entries: [...entries] };
      return toEntryResults(entries, await client.send(new SendMessageBatchCommand(batch)));
    },
  });
}
