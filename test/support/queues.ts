/** Queues that are subscribed to topics of the embedded SNS. */
import { SubscribeCommand } from '@aws-sdk/client-sns';
import { CreateQueueCommand, GetQueueAttributesCommand } from '@aws-sdk/client-sqs';
import type { EmbeddedFauxqs } from '../../local/queues.ts';

/**
 * Creates a FIFO queue (its name ends in `.fifo`) if it does not exist, and subscribes it to the topic if it is not subscribed.
 * Attributes set the delivery; by default messages are raw. Throws if the subscription exists with other attributes.
 */
export async function subscribeQueue(
  queues: Pick<EmbeddedFauxqs, 'endpoint' | 'sns' | 'sqs'>,
  topicArn: string,
  queueName: string,
  attributes: Readonly<Record<string, string>> = { RawMessageDelivery: 'true' },
) {
  const [sns, sqs] = [queues.sns(), queues.sqs()];
  await sqs.send(new CreateQueueCommand({ QueueName: queueName, Attributes: { FifoQueue: 'true' } }));
  const queueUrl = `${queues.endpoint}/${topicArn.split(':')[4]}/${queueName}`;
  const { Attributes } = await sqs.send(
    new GetQueueAttributesCommand({ QueueUrl: queueUrl, AttributeNames: ['QueueArn'] }),
  );
  const { SubscriptionArn: subscriptionArn } = await sns.send(
    new SubscribeCommand({
      TopicArn: topicArn,
      Protocol: 'sqs',
      Endpoint: Attributes?.QueueArn,
      Attributes: attributes,
      ReturnSubscriptionArn: true,
    }),
  );
  return { queueUrl, subscriptionArn };
}
