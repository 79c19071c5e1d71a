/** The SNS sink: events to a FIFO topic, ordered per job, each with attributes that subscribers can filter by. */
import { PublishBatchCommand, type PublishBatchRequestEntry, type SNSClient } from '@aws-sdk/client-sns';
import type { LoggedEvent } from '../log/log.ts';
import type { DeliveryOutcome, SinkPort } from './sink.ts';

/** SNS's limit on the entries of one PublishBatch. */
const MAX_ENTRIES = 10;

/**
 * A sink that publishes to an SNS FIFO topic: message group = account and job, so SNS keeps the order of each job;
 * deduplication id = event id, so a repeated publish within five minutes is one message. Attributes for filter policies:
 * type, accountId, region, and where the event has them jobNumber and orderGroup.
 */
export function createSnsSink(client: SNSClient, topicArn: string): SinkPort {
  return {
    maxBatch: MAX_ENTRIES,
    async deliver(deliveries): Promise<DeliveryOutcome[]> {
      const answer = await client.send(
        new PublishBatchCommand({
          TopicArn: topicArn,
          PublishBatchRequestEntries: deliveries.map(({ event }, at) => toEntry(event, at)),
        }),
      );
      const failed = new Map((answer.Failed ?? []).map((entry) => [entry.Id, entry]));
      return deliveries.map((_, at) => {
        const failure = failed.get(String(at));
        if (!failure) return { kind: 'delivered' };
        const reason = `SNS answered ${failure.Code ?? 'an error'}.`;
        return failure.SenderFault ? { kind: 'rejected', reason } : { kind: 'retry', reason };
      });
    },
  };
}

function toEntry(event: LoggedEvent, at: number): PublishBatchRequestEntry {
  const text = (value: string) => ({ DataType: 'String', StringValue: value });
  const orderGroup = orderGroupOf(event);
  return {
    Id: String(at),
    Message: event.json,
    MessageGroupId: `${event.account}/${event.jobNumber ?? 'account'}`,
    MessageDeduplicationId: event.id,
    MessageAttributes: {
      type: text(event.type),
      accountId: text(event.account),
      region: text(event.region),
      ...(event.jobNumber === undefined ? {} : { jobNumber: text(String(event.jobNumber)) }),
      ...(orderGroup ? { orderGroup: text(orderGroup) } : {}),
    },
  };
}

function orderGroupOf(event: LoggedEvent): string | undefined {
  const { data } = JSON.parse(event.json) as {
    data: { orderGroup?: string; job?: { orderGroup?: string | null } };
  };
  return data.orderGroup ?? data.job?.orderGroup ?? undefined;
}
