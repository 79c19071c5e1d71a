/**
 * The SNS sink: publishes events to a topic, with attributes for subscription filters.
 *
 * A FIFO topic keeps the order of each job and accepts an event once within five minutes; it delivers to SQS
 * only. A standard topic guarantees neither, and also delivers to e-mail, SMS, Lambda and HTTP.
 */
import { PublishBatchCommand, type PublishBatchRequestEntry, type SNSClient } from '@aws-sdk/client-sns';
import type { JobEvent } from '../events/event.ts';
import type { LoggedEvent } from '../log/log.ts';
import {
  BATCH_BYTES,
  createBatchSink,
  measureMessage,
  toEntryResults,
  toFifoFields,
  toMessageAttributes,
} from './batches.ts';
import type { SinkPort } from './sink.ts';

/** Size of the wrapper that SNS adds for subscriptions without raw delivery, besides body and attributes. */
const WRAPPING_BYTES = 2_048;
/** SNS requires e-mail subjects shorter than 100 characters. */
const MAX_SUBJECT_CHARACTERS = 99;

interface Options {
  /** Base URL of the HTTP API: an event that is too large for SNS is fetched from its feed. */
  readonly publicUrl: string;
}

/**
 * Creates a sink that publishes to an SNS topic, FIFO if its name ends in `.fifo`. In a FIFO topic, the
 * message group is the event's lane: account and job, or the account as a whole. The deduplication id is the
 * event's id, so an event published again within five minutes is one message. A requested resend has another
 * deduplication id, because it must arrive.
 *
 * The message is the envelope; for an event that is too large, a reference to it in the feed. Attributes:
 * type, accountId (absent in a cell's own log), region, and if the event has them jobNumber, orderGroup,
 * originCode and subject. `reference` and `replay` are `true` or absent. All are text. An attribute that SNS
 * does not accept is omitted.
 */
export function createSnsSink(client: SNSClient, topicArn: string, options: Options): SinkPort {
  const fifo = topicArn.endsWith('.fifo');
  return createBatchSink({
    ...{ name: 'SNS', target: 'topic', publicUrl: options.publicUrl },
    toEntry: ({ id, event, envelope, body, replay, values }): PublishBatchRequestEntry => ({
      Id: id,
      Message: body,
      MessageAttributes: toMessageAttributes(values),
      ...(fifo
        ? toFifoFields(event, replay)
        : // Without a message group: with one, subscribed SQS queues would become fair queues, which not every subscriber wants.
          { Subject: subjectLine(event, envelope) }),
    }),
    measure: measureMessage,
    fits,
    async send(entries: readonly PublishBatchRequestEntry[]) {
      const batch = { TopicArn: topicArn, PublishBatchRequestEntries: [...entries] };
      return toEntryResults(entries, await client.send(new PublishBatchCommand(batch)));
    },
  });
}

/** Returns the subject line of an e-mail. */
function subjectLine({ account, region }: LoggedEvent, { type, subject }: JobEvent): string {
  const about = subject ?? `region ${region}`;
  return `${type}, ${about} (${account})`.slice(0, MAX_SUBJECT_CHARACTERS);
}

/**
 * Reports whether SNS accepts an entry, and can deliver it wrapped as a text in JSON, where every quotation
 * mark is escaped.
 */
function fits(entry: PublishBatchRequestEntry): boolean {
  const limit = BATCH_BYTES;
  const bytes = measureMessage(entry);
  // An escaped text is at most twice as long.
  if (2 * bytes + WRAPPING_BYTES <= limit) return true;
  const { Message, MessageAttributes } = entry;
  const wrapped = Buffer.byteLength(JSON.stringify({ Message, MessageAttributes }));
  return Math.max(bytes, wrapped + WRAPPING_BYTES) <= limit;
}
