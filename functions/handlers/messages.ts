/** The messages in the cell's queues, and how they are sent and processed. */
import { SendMessageBatchCommand, type SQSClient } from '@aws-sdk/client-sqs';
import type { SQSBatchResponse, SQSEvent, SQSRecord } from 'aws-lambda';
import pLimit from 'p-limit';
import * as z from 'zod';
import type { Telemetry } from '../telemetry.ts';

/**
 * How long an account stays claimed (s), from its due time or, if that was before the claim, from the claim.
 * A poll begins within that time or never: a later tick has requested it again, and a slow queue must not
 * fill with polls.
 */
export const CLAIM_SECONDS = 300;

/** Requests one poll of an account of the cell at its due time (epoch ms). */
export const PollMessage = z.object({ account: z.string().min(1), dueAt: z.int() });
/** The trace of some events of an account: their sequences, and the `traceparent` of the span that caused the message. */
const Trace = z.object({
  account: z.string().min(1),
  from: z.int(),
  to: z.int(),
  trace: z.string(),
});
export type Trace = z.infer<typeof Trace>;
/** Maximum number of traces in a message. Further ones end with the wake-up. */
export const MAX_TRACES = 10;

/** Requests a drain of a sink of the cell, or of a part of a divided sink (its drain name). */
export const DrainMessage = z.object({
  sink: z.string().min(1),
  traces: z.array(Trace).max(MAX_TRACES).optional(),
});

/** Requests sending the due notifications; `dueSince` is the earliest due time (epoch ms). */
export const NotifyMessage = z.object({ dueSince: z.int() });

/** Sends messages to one queue. */
export type Send<T> = (messages: readonly T[]) => Promise<void>;

/** Some messages were not accepted by a queue. Others of the same call may have been. */
export class QueueError extends Error {
  override readonly name = 'QueueError';
}

/** SQS's limit on the entries of one SendMessageBatch. */
export const MAX_ENTRIES = 10;
/** Maximum number of concurrent calls to one queue. */
const CALLS_AT_ONCE = 5;
/** SQS's limit on DelaySeconds. */
const MAX_DELAY_SECONDS = 900;

/**
 * Creates a sender to a queue: ten messages per call, several calls concurrently. Throws {@link QueueError}
 * if any message was not accepted. `waitMs`: delay of a message, rounded up to whole seconds. Default: none.
 */
export function createSend<T>(
  client: SQSClient,
  queueUrl: string,
  waitMs: (message: T) => number = () => 0,
): Send<T> {
  const limit = pLimit(CALLS_AT_ONCE);
  return async (messages) => {
    const starts = Array.from(
      { length: Math.ceil(messages.length / MAX_ENTRIES) },
      (_, n) => n * MAX_ENTRIES,
    );
    await limit.map(starts, (at) => sendBatch(messages.slice(at, at + MAX_ENTRIES)));
  };

  async function sendBatch(messages: readonly T[]): Promise<void> {
    const Entries = messages.map((message, entry) => {
      const seconds = Math.min(MAX_DELAY_SECONDS, Math.max(0, Math.ceil(waitMs(message) / 1000)));
      return {
        Id: String(entry),
        MessageBody: JSON.stringify(message),
        ...(seconds === 0 ? {} : { DelaySeconds: seconds }),
      };
    });
    const answer = await client
      .send(new SendMessageBatchCommand({ QueueUrl: queueUrl, Entries }))
      .catch((cause: unknown) => {
        throw new QueueError('The queue took no messages.', { cause });
      });
    const [failure] = answer.Failed ?? [];
    if (failure) throw new QueueError(`The queue rejected a message (${failure.Code ?? 'no code'}).`);
  }
}

/**
 * Processes the messages of a batch concurrently, and returns the failed ones. An invalid message, or one
 * whose work throws, fails alone.
 */
export function processMessages<T>(
  event: SQSEvent,
  shape: z.ZodType<T>,
  telemetry: Pick<Telemetry, 'fault'>,
  work: (message: T, record: SQSRecord) => Promise<void>,
): Promise<SQSBatchResponse> {
  return processRecords(event, telemetry, (record) => work(shape.parse(JSON.parse(record.body)), record));
}

/** Does the same for external messages: the work parses their content. */
export async function processRecords(
  event: SQSEvent,
  telemetry: Pick<Telemetry, 'fault'>,
  work: (record: SQSRecord) => Promise<void>,
): Promise<SQSBatchResponse> {
  const failed = await Promise.all(
    event.Records.map(async (record) => {
      const { messageId } = record;
      try {
        await work(record);
        return [];
      } catch (cause) {
        telemetry.fault('A message failed.', cause, { messageId });
        return [{ itemIdentifier: messageId }];
      }
    }),
  );
  return { batchItemFailures: failed.flat() };
}
