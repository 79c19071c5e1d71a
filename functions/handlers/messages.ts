/** What stands in the cell's queues, and how it is sent and worked off. */
import { SendMessageBatchCommand, type SQSClient } from '@aws-sdk/client-sqs';
import type { SQSBatchResponse, SQSEvent, SQSRecord } from 'aws-lambda';
import pLimit from 'p-limit';
import * as z from 'zod';
import type { Telemetry } from '../telemetry.ts';

/**
 * How long an account stays claimed, from when its poll is due or, if that was before, from when it was claimed. The poll
 * is begun within that, or it never is: a later tick has asked for it again, and a slow queue must not fill with polls.
 */
export const CLAIM_SECONDS = 300;

/** Poll this account of the cell once, when it is due (epoch ms). */
export const PollMessage = z.object({ account: z.string().min(1), dueAt: z.int() });
/** Drain this sink of the cell. */
export const DrainMessage = z.object({ sink: z.string().min(1) });

/** Tell customers what is due, and has been since then at most (epoch ms). */
export const NotifyMessage = z.object({ dueSince: z.int() });

/** Sends messages to one queue. */
export type Send<T> = (messages: readonly T[]) => Promise<void>;

/** Messages did not get into a queue. Some of those sent with them may have. */
export class QueueError extends Error {
  override readonly name = 'QueueError';
}

/** SQS's limit on the entries of one SendMessageBatch. */
export const MAX_ENTRIES = 10;
/** Calls to one queue at the same time. */
const CALLS_AT_ONCE = 5;
/** SQS's limit on DelaySeconds. */
const MAX_DELAY_SECONDS = 900;

/**
 * A sender to a queue, ten messages a call, some calls side by side. Throws {@link QueueError} when any did not get in.
 * `waitMs`: how long the queue is to keep a message to itself, whole seconds and rounded up; absent, not at all.
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
    if (failure) throw new QueueError(`The queue refused a message (${failure.Code ?? 'no code'}).`);
  }
}

/**
 * Works off the messages of a batch side by side, and says which of them failed: a message that is not understood, or
 * whose work throws, fails alone.
 */
export function workOff<T>(
  event: SQSEvent,
  shape: z.ZodType<T>,
  telemetry: Pick<Telemetry, 'fault'>,
  work: (message: T, record: SQSRecord) => Promise<void>,
): Promise<SQSBatchResponse> {
  return workOffRecords(event, telemetry, (record) => work(shape.parse(JSON.parse(record.body)), record));
}

/** The same for messages that are not ours: what they say is for the work to read. */
export async function workOffRecords(
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
