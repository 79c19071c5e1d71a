/** What stands in the cell's queues, and how it is sent and worked off. */
import { SendMessageBatchCommand, type SQSClient } from '@aws-sdk/client-sqs';
import type { SQSBatchResponse, SQSEvent } from 'aws-lambda';
import * as z from 'zod';
import type { Telemetry } from '../telemetry.ts';

/** Poll this account of the cell once; `dueAt`: when its poll was due (epoch ms). */
export const PollMessage = z.object({ account: z.string().min(1), dueAt: z.number().optional() });
/** Drain this sink of the cell. */
export const DrainMessage = z.object({ sink: z.string().min(1) });

/** Sends messages to one queue. */
export type Send<T> = (messages: readonly T[]) => Promise<void>;

/** Messages did not get into a queue. Some of those sent with them may have. */
export class QueueError extends Error {
  override readonly name = 'QueueError';
}

/** SQS's limit on the entries of one SendMessageBatch. */
const MAX_ENTRIES = 10;

/** A sender to a queue, ten messages a call. Throws {@link QueueError} when any did not get in. */
export function createSend<T>(client: SQSClient, queueUrl: string): Send<T> {
  return async (messages) => {
    for (let at = 0; at < messages.length; at += MAX_ENTRIES) {
      const answer = await client
        .send(
          new SendMessageBatchCommand({
            QueueUrl: queueUrl,
            Entries: messages
              .slice(at, at + MAX_ENTRIES)
              .map((message, entry) => ({ Id: String(entry), MessageBody: JSON.stringify(message) })),
          }),
        )
        .catch((cause: unknown) => {
          throw new QueueError('The queue took no messages.', { cause });
        });
      const [failure] = answer.Failed ?? [];
      if (failure) throw new QueueError(`The queue refused a message (${failure.Code ?? 'no code'}).`);
    }
  };
}

/**
 * Works off the messages of a batch side by side, and says which of them failed: a message that is not understood, or
 * whose work throws, fails alone.
 */
export async function workOff<T>(
  event: SQSEvent,
  shape: z.ZodType<T>,
  telemetry: Pick<Telemetry, 'fault'>,
  work: (message: T) => Promise<void>,
): Promise<SQSBatchResponse> {
  const failed = await Promise.all(
    event.Records.map(async ({ messageId, body }) => {
      try {
        await work(shape.parse(JSON.parse(body)));
        return [];
      } catch (cause) {
        telemetry.fault('A message failed.', cause, { messageId });
        return [{ itemIdentifier: messageId }];
      }
    }),
  );
  return { batchItemFailures: failed.flat() };
}
