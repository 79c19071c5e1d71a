import { SubscribeCommand } from '@aws-sdk/client-sns';
import { CreateQueueCommand, GetQueueAttributesCommand, ReceiveMessageCommand } from '@aws-sdk/client-sqs';
import { afterEach, describe, expect, test } from 'vitest';
import { startFauxqs } from '../local/embedded.ts';
import { drainSink } from '../shared/sinks/drain.ts';
import { createSnsSink } from '../shared/sinks/sns.ts';
import { createDeliveryRig, delivered, moved, REGION, someDeliveries } from './support/delivery.ts';

const open: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of open.splice(0).reverse()) await close();
});

describe('SNS sink', () => {
  test('a subscribed FIFO queue gets each event once, in order per job, with attributes to filter by', async () => {
    const queues = await startFauxqs({});
    open.push(() => queues.stop());
    const topic = await queues.ensureTopic('jobwire-test.fifo');
    const sqs = queues.sqs();
    const sns = queues.sns();
    const { QueueUrl } = await sqs.send(
      new CreateQueueCommand({ QueueName: 'jobs.fifo', Attributes: { FifoQueue: 'true' } }),
    );
    const { Attributes } = await sqs.send(
      new GetQueueAttributesCommand({ QueueUrl, AttributeNames: ['QueueArn'] }),
    );
    await sns.send(
      new SubscribeCommand({
        TopicArn: topic,
        Protocol: 'sqs',
        Endpoint: Attributes?.QueueArn,
        Attributes: { RawMessageDelivery: 'true' },
      }),
    );
    const sink = createSnsSink(sns, topic);
    const deliveries = await someDeliveries(10);
    const events = deliveries.map(({ event }) => event);
    expect(await sink.deliver(deliveries)).toEqual(events.map(() => ({ kind: 'delivered' })));
    // Published again, as after a crash: the topic knows their ids.
    await sink.deliver(deliveries);
    const messages = [];
    for (;;) {
      const { Messages = [] } = await sqs.send(
        new ReceiveMessageCommand({
          QueueUrl,
          MaxNumberOfMessages: 10,
          WaitTimeSeconds: 0,
          MessageAttributeNames: ['All'],
          MessageSystemAttributeNames: ['MessageGroupId', 'MessageDeduplicationId'],
        }),
      );
      if (Messages.length === 0) break;
      messages.push(...Messages);
    }
    expect(messages.map(({ Body }) => Body).sort()).toEqual(events.map(({ json }) => json).sort());
    const first = messages.find(({ Body }) => Body === events[0]?.json);
    expect(first?.Attributes).toMatchObject({
      MessageGroupId: 'acme/1',
      MessageDeduplicationId: 'acme.e1.1',
    });
    const attributes = Object.entries(first?.MessageAttributes ?? {}).map(([name, { StringValue }]) => [
      name,
      StringValue,
    ]);
    expect(Object.fromEntries(attributes)).toEqual({
      type: 'job.status_changed',
      accountId: 'acme',
      region: 'us',
      jobNumber: '1',
      orderGroup: 'G1',
    });
  });

  test('a topic that is not there is waited for', async () => {
    const queues = await startFauxqs({});
    open.push(() => queues.stop());
    const topic = await queues.ensureTopic('jobwire-test.fifo');
    const sink = createSnsSink(queues.sns(), topic.replace('jobwire-test', 'nothing'));
    const rig = await createDeliveryRig(delivered);
    await rig.say([moved(1, 'a')]);
    const report = await drainSink(
      { ...rig.deps, open: async () => sink },
      REGION,
      'erp',
      rig.state.now + 60_000,
    );
    expect(report).toMatchObject({ outcome: 'waiting', delivered: 0 });
    expect(await rig.position()).toEqual({ position: 0, due: true });
  });
});
