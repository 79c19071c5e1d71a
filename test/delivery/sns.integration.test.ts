/**
 * The SNS sink: over sockets to fauxqs, a server of SNS and SQS, with consumers as the AWS SDK has them.
 * One file: its tests share the embedded SNS and the recording client.
 */
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import {
  CreateTopicCommand,
  type PublishBatchRequestEntry,
  SNSClient,
  SubscribeCommand,
} from '@aws-sdk/client-sns';
import {
  ChangeMessageVisibilityCommand,
  CreateQueueCommand,
  DeleteMessageBatchCommand,
  GetQueueAttributesCommand,
  type Message,
  ReceiveMessageCommand,
  type SQSClient,
} from '@aws-sdk/client-sqs';
import fc from 'fast-check';
import { afterEach, describe, expect, test } from 'vitest';
import { type EmbeddedFauxqs, startFauxqs } from '../../local/queues.ts';
import { registerAccount } from '../../shared/accounts/accounts.ts';
import { createApi } from '../../shared/api/app.ts';
import { drainSink } from '../../shared/delivery/drain.ts';
import type { Delivery, SinkPort } from '../../shared/delivery/sink.ts';
import { createSnsSink } from '../../shared/delivery/sns.ts';
import type { EventDraft } from '../../shared/events/event.ts';
import type { LoggedEvent } from '../../shared/log/log.ts';
import { type AccountRef, cellLog } from '../../shared/storage/schema.ts';
import { apiParts } from '../support/api.ts';
import { createDeliveryRig, delivered, moved, REGION, someDeliveries } from '../support/delivery-world.ts';
import { subscribeQueue } from '../support/queues.ts';
import { anyCharacter, runs } from '../support/runs.ts';

const PUBLIC_URL = 'https://us.jobwire.example';
const MAX_BYTES = 262_144;
/** The characters that SQS accepts. */
const ACCEPTED = /^[\t\n\r\u0020-\uD7FF\uE000-\uFFFD\u{10000}-\u{10FFFF}]+$/u;

const open: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of open.splice(0).reverse()) await close();
});

describe('FIFO topic', () => {
  test('each event reaches consumers once and in order per job, although a drain crashes and consumers fail', async () => {
    const { queues, topic } = await startSns();
    const { queueUrl } = await subscribeQueue(queues, topic, 'jobs.fifo');
    const rig = await createDeliveryRig(delivered, { accounts: ['acme', 'zeta'] });
    const said: LoggedEvent[] = [];
    for (const ref of rig.refs) {
      for (let round = 0; round < 6; round += 1) {
        const jobs = Array.from({ length: 7 }, (_, job) => moved(job + 1, `round ${round}`));
        await rig.say([...jobs, groupDispatched('G1'), credentialsAccepted()], ref);
      }
      said.push(...(await getEvents(rig.log, ref)));
    }
    const sink = createSnsSink(queues.sns(), topic, { publicUrl: PUBLIC_URL });
    let calls = 0;
    let published = 0;
    const port: SinkPort = {
      maxBatch: sink.maxBatch,
      async deliver(deliveries) {
        published += deliveries.length;
        const outcomes = await sink.deliver(deliveries);
        calls += 1;
        // Killed after SNS accepted them, before that was stored.
        if (calls === 3 || calls === 5) throw new Error('The process was killed.');
        return outcomes;
      },
    };

    let draining = true;
    const drained = drainUntilDone(rig, port).finally(() => {
      draining = false;
    });
    const handled: { group: string; id: string; sequence: number }[] = [];
    const failedOnce = new Set<string>();
    const consumer = async (): Promise<void> => {
      const sqs = queues.sqs();
      for (;;) {
        const done = !draining;
        const messages = await receive(sqs, queueUrl, 1);
        if (messages.length === 0 && done) return;
        const stopped = new Set<string>();
        const deleted: Message[] = [];
        const released: Message[] = [];
        for (const message of messages) {
          const { id, sequence } = JSON.parse(message.Body ?? '') as { id: string; sequence: string };
          const group = message.Attributes?.MessageGroupId ?? '';
          // Every fifth fails the first time, and with it its successors in its group.
          if (Number(sequence) % 5 === 0 && !failedOnce.has(id)) {
            failedOnce.add(id);
            stopped.add(group);
          }
          if (stopped.has(group)) {
            released.push(message);
          } else {
            handled.push({ group, id, sequence: Number(sequence) });
            deleted.push(message);
          }
        }
        await deleteAll(sqs, queueUrl, deleted);
        // As if their visibility time-out had expired; last first, because fauxqs puts each at the front of its group.
        for (const message of released.reverse()) await hide(sqs, queueUrl, message, 0);
      }
    };
    await Promise.all([drained, consumer(), consumer()]);

    console.log(
      `SNS → SQS: ${said.length} events, ${published} published, ${failedOnce.size} failed once at a consumer, ${handled.length} handled`,
    );
    expect(published).toBeGreaterThan(said.length);
    expect(failedOnce.size).toBeGreaterThan(0);
    expect(handled.map(({ id }) => id).sort()).toEqual(said.map(({ id }) => id).sort());
    const last = new Map<string, number>();
    for (const { group, sequence } of handled) {
      expect(sequence).toBeGreaterThan(last.get(group) ?? 0);
      last.set(group, sequence);
    }
    expect([...last.keys()].sort()).toEqual(
      ['acme', 'zeta'].flatMap((account) =>
        ['1', '2', '3', '4', '5', '6', '7', 'account'].map((lane) => `${account}/${lane}`),
      ),
    );
  });

  test('an undeleted message delays its group, not others, and returns before later ones', async () => {
    const { queues, topic } = await startSns();
    const { queueUrl } = await subscribeQueue(queues, topic, 'jobs.fifo');
    const sqs = queues.sqs();
    const sink = createSnsSink(queues.sns(), topic, { publicUrl: PUBLIC_URL });
    const [a1, a2, b1] = await readDeliveries([moved(1, 'a'), moved(1, 'b'), moved(2, 'a')]);
    if (!a1 || !a2 || !b1) throw new Error('There are no events.');
    await sink.deliver([a1]);
    const [first] = await receive(sqs, queueUrl);
    if (!first) throw new Error('Nothing came.');
    await sink.deliver([a2, b1]);
    expect(getIds(await receive(sqs, queueUrl))).toEqual([b1.event.id]);
    await hide(sqs, queueUrl, first, 0);
    expect(getIds(await takeAll(sqs, queueUrl))).toEqual([a1.event.id, a2.event.id]);
  });

  test('a duplicate publication arrives once, a requested repetition arrives again', async () => {
    const { queues, topic } = await startSns();
    const { queueUrl } = await subscribeQueue(queues, topic, 'jobs.fifo');
    const sink = createSnsSink(queues.sns(), topic, { publicUrl: PUBLIC_URL });
    const deliveries = await someDeliveries(10);
    const ids = deliveries.map(({ event }) => event.id).sort();
    expect(await sink.deliver(deliveries)).toEqual(ids.map(() => ({ kind: 'delivered' })));
    expect(await sink.deliver(deliveries)).toEqual(ids.map(() => ({ kind: 'delivered' })));
    expect(getIds(await takeAll(queues.sqs(), queueUrl)).sort()).toEqual(ids);
    await sink.deliver(deliveries.slice(0, 1).map((delivery) => ({ ...delivery, replay: 'rp-1' })));
    const again = await takeAll(queues.sqs(), queueUrl);
    expect(getIds(again)).toEqual([deliveries[0]?.event.id]);
    expect(getAttributes(again[0])).toMatchObject({ replay: 'true' });
  });

  test("a message has its event's attributes for filtering, ten at most", async () => {
    const { queues, topic } = await startSns();
    const { queueUrl } = await subscribeQueue(queues, topic, 'jobs.fifo');
    const sink = createSnsSink(queues.sns(), topic, { publicUrl: PUBLIC_URL });
    const [job, group, account] = await readDeliveries([
      withJob(moved(4711, 'a'), { originCode: 'WEB', orderGroup: 'Ä/1', description: 'x'.repeat(300_000) }),
      groupDispatched('G 1'),
      credentialsAccepted(),
    ]);
    const [cell] = await readDeliveries([outage()], cellLog(REGION));
    if (!job || !group || !account || !cell) throw new Error('There are no events.');
    await sink.deliver([{ ...job, replay: 'rp-1' }, group, cell]);
    await sink.deliver([account]);
    const messages = await takeAll(queues.sqs(), queueUrl);
    const found = new Map(messages.map((message) => [getIds([message])[0], getAttributes(message)]));
    expect(found.get(job.event.id)).toEqual({
      type: 'job.status_changed',
      accountId: 'acme',
      region: 'us',
      jobNumber: '4711',
      orderGroup: 'Ä/1',
      originCode: 'WEB',
      subject: 'jobs/4711',
      reference: 'true',
      replay: 'true',
    });
    expect(found.get(group.event.id)).toEqual({
      type: 'order_group.dispatched',
      accountId: 'acme',
      region: 'us',
      orderGroup: 'G 1',
      subject: 'order-groups/G%201',
    });
    expect(found.get(account.event.id)).toEqual({
      type: 'account.credentials_accepted',
      accountId: 'acme',
      region: 'us',
    });
    expect(found.get(cell.event.id)).toEqual({ type: 'upstream.outage', region: 'us' });
    for (const attributes of found.values()) expect(Object.keys(attributes).length).toBeLessThan(10);
  });

  test('a subscription with a filter policy gets the matching events, raw or wrapped', async () => {
    const { queues, topic } = await startSns();
    const raw = await subscribeQueue(queues, topic, 'moves-of-acme.fifo', {
      RawMessageDelivery: 'true',
      FilterPolicy: JSON.stringify({ type: ['job.status_changed'], accountId: ['acme'] }),
    });
    const wrapped = await subscribeQueue(queues, topic, 'groups.fifo', {
      FilterPolicy: JSON.stringify({ type: [{ prefix: 'order_group.' }], orderGroup: ['G2'] }),
    });
    const sink = createSnsSink(queues.sns(), topic, { publicUrl: PUBLIC_URL });
    const drafts = [moved(1, 'a'), groupDispatched('G1'), groupDispatched('G2'), credentialsAccepted()];
    const events: LoggedEvent[] = [];
    for (const account of ['acme', 'zeta']) {
      for (const delivery of await readDeliveries(drafts, { region: REGION, account })) {
        await sink.deliver([delivery]);
        events.push(delivery.event);
      }
    }
    const json = (account: string, at: number) =>
      events.filter((event) => event.account === account)[at]?.json;
    const sqs = queues.sqs();
    expect((await takeAll(sqs, raw.queueUrl)).map(({ Body }) => Body)).toEqual([json('acme', 0)]);
    const envelopes = (await takeAll(sqs, wrapped.queueUrl)).map(
      ({ Body }) => JSON.parse(Body ?? '') as { Type: string; Message: string; MessageAttributes: object },
    );
    expect(envelopes).toMatchObject(
      ['acme', 'zeta'].map((account) => ({
        Type: 'Notification',
        Message: json(account, 2),
        MessageAttributes: { accountId: { Type: 'String', Value: account } },
      })),
    );
  });
});

describe('docs/sns.md', () => {
  const text = readFileSync('docs/sns.md', 'utf8');
  const blocks = [...text.matchAll(/```json\n([\s\S]*?)```/g)].map(
    ([, json = '']) => JSON.parse(json) as object,
  );

  test('its filter policies select the documented events', async () => {
    const { queues, topic } = await startSns();
    const policies = blocks.filter((block) => 'type' in block && Array.isArray(block.type));
    const subscribed = [];
    for (const [at, policy] of policies.entries()) {
      subscribed.push(
        await subscribeQueue(queues, topic, `chosen-${at}.fifo`, { FilterPolicy: JSON.stringify(policy) }),
      );
    }
    const sink = createSnsSink(queues.sns(), topic, { publicUrl: PUBLIC_URL });
    const types = [
      'job.dispatched',
      'job.line_status_changed',
      'order_group.dispatched',
      'account.baselined',
    ];
    for (const account of ['acme', 'zeta', 'other']) {
      const drafts = [moved(1, 'a'), moved(2, 'a'), groupDispatched('G'), credentialsAccepted()];
      const deliveries = await readDeliveries(drafts, { region: REGION, account });
      for (const [at, { event }] of deliveries.entries()) {
        await sink.deliver([{ event: { ...event, type: types[at] ?? '' } }]);
      }
    }
    const chosen = subscribed.map(async ({ queueUrl }) =>
      (await takeAll(queues.sqs(), queueUrl)).map(({ Body }) => {
        const { MessageAttributes } = JSON.parse(Body ?? '') as {
          MessageAttributes: Record<'accountId' | 'type', { Value: string }>;
        };
        return `${MessageAttributes.accountId.Value} ${MessageAttributes.type.Value}`;
      }),
    );
    expect((await Promise.all(chosen)).map((found) => found.sort())).toEqual([
      [
        'acme job.dispatched',
        'acme order_group.dispatched',
        'zeta job.dispatched',
        'zeta order_group.dispatched',
      ],
      ['acme job.dispatched', 'other job.dispatched', 'zeta job.dispatched'],
      ['acme account.baselined', 'other account.baselined', 'zeta account.baselined'],
    ]);
    for (const policy of policies) expect(Object.keys(policy).length).toBeLessThanOrEqual(5);
  });

  test('its table has the existing attributes, its reference the fields', async () => {
    const { client, calls } = recordingClient();
    const sink = createSnsSink(client, 'arn:x:events.fifo', { publicUrl: PUBLIC_URL });
    const job = { originCode: 'WEB', description: 'x'.repeat(300_000) };
    const [delivery] = await readDeliveries([withJob(moved(1, 'a'), job)]);
    if (!delivery) throw new Error('There are no events.');
    await sink.deliver([{ ...delivery, replay: 'rp-1' }]);
    const [entry] = calls.flat();
    const table = text.slice(text.indexOf('| attribute |'), text.indexOf('All are `String`'));
    expect([...table.matchAll(/^\| `(\w+)` /gm)].map(([, name]) => name)).toEqual(
      Object.keys(entry?.MessageAttributes ?? {}),
    );
    const reference = blocks.find((block) => 'jobwire' in block);
    expect(Object.keys(reference ?? {})).toEqual(Object.keys(JSON.parse(entry?.Message ?? '')));
  });
});

describe('standard topic', () => {
  test('its subscribers get every event, with the same attributes and a text for e-mails', async () => {
    const { queues } = await startSns();
    const sns = queues.sns();
    const { TopicArn = '' } = await sns.send(new CreateTopicCommand({ Name: 'jobwire-test-standard' }));
    const sqs = queues.sqs();
    const { QueueUrl = '' } = await sqs.send(new CreateQueueCommand({ QueueName: 'jobs' }));
    const { Attributes } = await sqs.send(
      new GetQueueAttributesCommand({ QueueUrl, AttributeNames: ['QueueArn'] }),
    );
    await sns.send(new SubscribeCommand({ TopicArn, Protocol: 'sqs', Endpoint: Attributes?.QueueArn }));
    const sink = createSnsSink(sns, TopicArn, { publicUrl: PUBLIC_URL });
    const deliveries = await someDeliveries(10);
    expect(await sink.deliver(deliveries)).toEqual(deliveries.map(() => ({ kind: 'delivered' })));
    const messages = await takeAll(sqs, QueueUrl);
    const bodies = messages.map(({ Body }) => JSON.parse(Body ?? '') as Record<string, unknown>);
    expect(bodies.map(({ Message }) => Message).sort()).toEqual(
      deliveries.map(({ event }) => event.json).sort(),
    );
    expect(bodies.find(({ Message }) => Message === deliveries[0]?.event.json)).toMatchObject({
      Subject: 'job.status_changed, jobs/1 (acme)',
      MessageAttributes: { jobNumber: { Type: 'String', Value: '1' } },
    });
  });

  test('entries have neither group nor deduplication id, and a subject that SNS accepts', async () => {
    const { client, calls } = recordingClient();
    const sink = createSnsSink(client, 'arn:aws:sns:us-east-1:111122223333:events', {
      publicUrl: PUBLIC_URL,
    });
    await sink.deliver(await readDeliveries([groupDispatched('Ä\n'.repeat(60)), credentialsAccepted()]));
    for (const entry of calls.flat()) {
      expect(entry).not.toHaveProperty('MessageGroupId');
      expect(entry).not.toHaveProperty('MessageDeduplicationId');
      expect(entry.Subject).toMatch(/^[\x20-\x7e]{1,99}$/);
    }
  });
});

describe('limits', () => {
  test('a batch too large for one call is split into several, each within the limit, and all arrive', async () => {
    const { queues, topic } = await startSns();
    const { queueUrl } = await subscribeQueue(queues, topic, 'jobs.fifo');
    const wire = await startWire(queues.endpoint);
    const sink = createSnsSink(wire.client, topic, { publicUrl: PUBLIC_URL });
    const deliveries = await readDeliveries(
      Array.from({ length: 10 }, (_, at) =>
        withJob(moved(at + 1, 'a'), { description: 'é'.repeat(35_000 - at) }),
      ),
    );
    expect(await sink.deliver(deliveries)).toEqual(deliveries.map(() => ({ kind: 'delivered' })));
    expect(wire.calls.map((entries) => entries.length).sort()).toEqual([1, 3, 3, 3]);
    for (const entries of wire.calls) expect(countedBytes(entries)).toBeLessThanOrEqual(MAX_BYTES);
    expect(getIds(await takeAll(queues.sqs(), queueUrl)).sort()).toEqual(
      deliveries.map(({ event }) => event.id).sort(),
    );
  });

  test('for any sizes, no call exceeds the limit and every event is in exactly one', async () => {
    const [delivery] = await someDeliveries(1);
    if (!delivery) throw new Error('There are no events.');
    const lengths = fc.array(fc.integer({ min: 0, max: 300_000 }), { minLength: 1, maxLength: 10 });
    await fc.assert(
      fc.asyncProperty(lengths, fc.constantFrom('x', 'é', '"', '\uFFFF'), async (sizes, character) => {
        const { client, calls } = recordingClient();
        const sink = createSnsSink(client, 'arn:x:events.fifo', { publicUrl: PUBLIC_URL });
        const deliveries = sizes.map((size, at) => {
          const envelope = JSON.parse(delivery.event.json) as { data: { job: object } };
          const job = { ...envelope.data.job, description: character.repeat(size) };
          const json = JSON.stringify({ ...envelope, data: { ...envelope.data, job } });
          return { event: { ...delivery.event, id: `acme.e1.${at + 1}`, sequence: at + 1, json } };
        });
        expect(await sink.deliver(deliveries)).toEqual(sizes.map(() => ({ kind: 'delivered' })));
        expect(calls.flat().map(({ MessageDeduplicationId }) => MessageDeduplicationId)).toEqual(
          deliveries.map(({ event }) => event.id),
        );
        for (const entries of calls) expect(countedBytes(entries)).toBeLessThanOrEqual(MAX_BYTES);
        // Also as SNS wraps it without raw message delivery.
        for (const { Message, MessageAttributes } of calls.flat()) {
          expect(
            Buffer.byteLength(JSON.stringify({ Message, MessageAttributes })) + 1_500,
          ).toBeLessThanOrEqual(MAX_BYTES);
        }
      }),
      runs(10, 60),
    );
  });

  test('an event over the limit becomes a reference to it in the feed: of an account, and of a region', async () => {
    const { queues, topic } = await startSns();
    const { queueUrl } = await subscribeQueue(queues, topic, 'jobs.fifo');
    const sink = createSnsSink(queues.sns(), topic, { publicUrl: `${PUBLIC_URL}/` });
    const rig = await createDeliveryRig(delivered, { accounts: [] });
    const api = createApi({
      table: rig.table,
      log: rig.log,
      regions: [REGION],
      ...apiParts(rig.table, 'the-key-of-this-test'),
      now: () => rig.state.now,
    });
    const account = {
      region: REGION,
      account: 'big',
      secretRef: 'big',
      pollIntervalSeconds: 60,
      paused: false,
    };
    await registerAccount(rig.table, rig.log, account, { now: rig.state.now, epoch: 'e7' });
    const big = 'x'.repeat(300_000);
    await rig.log.append(account, [
      moved(1, 'a'),
      withJob(moved(2, 'b'), { description: big }),
      moved(3, 'c'),
    ]);
    await rig.table.transact([rig.log.start(cellLog(REGION), 'e8')], randomUUID());
    await rig.log.append(cellLog(REGION), [outage(big)]);
    for (const [ref, at] of [
      [account, 1],
      [cellLog(REGION), 0],
    ] as const) {
      const event = (await getEvents(rig.log, ref))[at];
      if (!event) throw new Error('There is no event.');
      expect(await sink.deliver([{ event }])).toEqual([{ kind: 'delivered' }]);
      const [message] = await takeAll(queues.sqs(), queueUrl);
      expect(getAttributes(message)).toMatchObject({ reference: 'true', type: event.type });
      expect(message?.Attributes).toMatchObject({ MessageDeduplicationId: event.id });
      const { jobwire, feed, ...rest } = JSON.parse(message?.Body ?? '') as Record<string, string>;
      expect(jobwire).toBe('reference');
      const { id, type, source, subject, time, sequence } = JSON.parse(event.json) as Record<string, string>;
      expect(rest).toEqual({ id, type, source, ...(subject ? { subject } : {}), time, sequence });
      expect(feed).toMatch(new RegExp(`^${PUBLIC_URL}/v1/(accounts|regions)/`));
      const answer = await api.request((feed ?? '').slice(PUBLIC_URL.length), {
        headers: { authorization: 'Bearer the-key-of-this-test' },
      });
      expect(answer.status).toBe(200);
      expect(await answer.json()).toMatchObject({ events: [JSON.parse(event.json)] });
    }
  });
});

describe('characters', () => {
  const anyText = fc.oneof(
    fc.string({ unit: anyCharacter }),
    fc.array(fc.integer({ min: 0, max: 0xffff })).map((units) => String.fromCharCode(...units)),
    fc
      .array(fc.constantFrom('\u0000', '\u001f', '\u007f', '\ufffe', '\uffff', '\ud800', '\udc00', '\\', '"'))
      .map((characters) => characters.join('')),
  );

  test("for any customers' texts, a message has only characters that SQS accepts, and means the same", async () => {
    const [delivery] = await someDeliveries(1);
    if (!delivery) throw new Error('There are no events.');
    const { event } = delivery;
    await fc.assert(
      fc.asyncProperty(anyText, fc.boolean(), async (text, bare) => {
        const { client, calls } = recordingClient();
        const sink = createSnsSink(client, 'arn:x:events.fifo', { publicUrl: PUBLIC_URL });
        const envelope = JSON.parse(event.json) as { data: { job: object } };
        const job = { ...envelope.data.job, description: text, orderGroup: text, originCode: text };
        const safe = JSON.stringify({ ...envelope, data: { ...envelope.data, job } });
        // Other writers of JSON leave half characters as they are.
        const json = bare ? safe.replace(/(?<!\\)\\u(d[89a-f]..)/g, (_, hex) => unit(hex)) : safe;
        await sink.deliver([{ event: { ...event, json } }]);
        const [entry] = calls.flat();
        expect(entry?.Message).toMatch(ACCEPTED);
        expect(JSON.parse(entry?.Message ?? '')).toEqual(JSON.parse(json));
        for (const { StringValue } of Object.values(entry?.MessageAttributes ?? {})) {
          expect(StringValue).toMatch(ACCEPTED);
          expect(StringValue?.trim()).not.toBe('');
        }
      }),
      runs(40, 500),
    );
  });

  test('an attribute that is blank, or too long to be complete, is omitted', async () => {
    for (const orderGroup of ['', ' ', '\n\t', 'G'.repeat(2000)]) {
      const { client, calls } = recordingClient();
      const sink = createSnsSink(client, 'arn:x:events.fifo', { publicUrl: PUBLIC_URL });
      await sink.deliver(await readDeliveries([withJob(moved(1, 'a'), { orderGroup })]));
      const [entry] = calls.flat();
      expect(Object.keys(entry?.MessageAttributes ?? {})).toEqual([
        'type',
        'accountId',
        'region',
        'jobNumber',
        'subject',
      ]);
    }
  });
});

describe('answers', () => {
  test('each event has its own result: accepted, rejected, to be retried, unanswered', async () => {
    const { queues, topic } = await startSns();
    const wire = await startWire(queues.endpoint);
    const sink = createSnsSink(wire.client, topic, { publicUrl: PUBLIC_URL });
    const failed = (id: number, code: string, senderFault: boolean) =>
      `<member><Id>${id}</Id><Code>${code}</Code><Message>of 111122223333</Message><SenderFault>${senderFault}</SenderFault></member>`;
    wire.answer = () => ({
      status: 200,
      body: `<PublishBatchResponse xmlns="http://sns.amazonaws.com/doc/2010-03-31/"><PublishBatchResult>
        <Successful><member><Id>4</Id><MessageId>m</MessageId></member></Successful>
        <Failed>${failed(0, 'InvalidParameter', true)}${failed(1, 'InternalError', false)}${failed(2, 'Throttled', true)}${failed(3, 'KMSDisabled', true)}${failed(6, 'NeverHeardOf', true)}</Failed>
        </PublishBatchResult><ResponseMetadata><RequestId>r</RequestId></ResponseMetadata></PublishBatchResponse>`,
    });
    expect(await sink.deliver(await someDeliveries(7))).toEqual([
      { kind: 'rejected', reason: 'SNS rejected the request as invalid (InvalidParameter).' },
      { kind: 'retry', reason: 'SNS failed (InternalError).' },
      { kind: 'retry', reason: 'SNS throttles requests (Throttled).' },
      { kind: 'retry', reason: 'SNS cannot use the encryption key of the topic (KMSDisabled).' },
      { kind: 'delivered' },
      { kind: 'retry', reason: 'SNS returned no outcome for this event.' },
      { kind: 'rejected', reason: 'SNS rejected the event (NeverHeardOf).' },
    ]);
  });

  test.each([
    [400, 'Throttling', 'SNS throttles requests (Throttling).'],
    [429, 'Throttled', 'SNS throttles requests (Throttled).'],
    [404, 'NotFound', 'The topic does not exist (NotFound).'],
    [403, 'AuthorizationError', 'Jobwire has no permission to publish to the topic (AuthorizationError).'],
    [
      403,
      'InvalidClientTokenId',
      'Jobwire has no permission to publish to the topic (InvalidClientTokenId).',
    ],
    [400, 'KMSAccessDenied', 'SNS cannot use the encryption key of the topic (KMSAccessDenied).'],
    [400, 'KMSThrottling', 'SNS throttles requests (KMSThrottling).'],
    [500, 'InternalError', 'SNS failed (InternalError).'],
    [418, 'NeverHeardOf', 'SNS responded with status 418 (NeverHeardOf).'],
  ])('an answer %i %s makes the sink wait, with a reason', async (status, code, reason) => {
    const { queues, topic } = await startSns();
    const wire = await startWire(queues.endpoint);
    const sink = createSnsSink(wire.client, topic, { publicUrl: PUBLIC_URL });
    wire.answer = () => ({ status, body: errorBody(code) });
    const outcomes = await sink.deliver(await someDeliveries(3));
    expect(outcomes).toEqual(outcomes.map(() => ({ kind: 'retry', reason })));
    expect(wire.calls).toHaveLength(1);
  });

  test('the Retry-After of SNS is passed on', async () => {
    const { queues, topic } = await startSns();
    const wire = await startWire(queues.endpoint);
    const sink = createSnsSink(wire.client, topic, { publicUrl: PUBLIC_URL });
    wire.answer = () => ({
      status: 503,
      body: errorBody('ServiceUnavailable'),
      headers: { 'retry-after': '7' },
    });
    expect(await sink.deliver(await someDeliveries(1))).toEqual([
      { kind: 'retry', reason: 'SNS failed (ServiceUnavailable).', afterMs: 7000 },
    ]);
  });

  test('one invalid event does not delay the others of its batch', async () => {
    const { queues, topic } = await startSns();
    const { queueUrl } = await subscribeQueue(queues, topic, 'jobs.fifo');
    const wire = await startWire(queues.endpoint);
    const sink = createSnsSink(wire.client, topic, { publicUrl: PUBLIC_URL });
    const deliveries = await someDeliveries(5);
    const bad = deliveries[2]?.event.id ?? '';
    wire.answer = (entries) =>
      entries.some(({ MessageDeduplicationId }) => MessageDeduplicationId === bad)
        ? { status: 400, body: errorBody('InvalidParameter') }
        : undefined;
    expect(await sink.deliver(deliveries)).toEqual(
      deliveries.map(({ event }) =>
        event.id === bad
          ? {
              kind: 'retry',
              reason: 'SNS rejected the request as invalid (InvalidParameter).',
              suspect: true,
            }
          : { kind: 'delivered' },
      ),
    );
    const arrived = getIds(await takeAll(queues.sqs(), queueUrl)).sort();
    expect(arrived).toEqual(
      deliveries
        .map(({ event }) => event.id)
        .filter((id) => id !== bad)
        .sort(),
    );
  });

  test.each([
    ['resets', 'reset' as const, /^SNS could not be reached: the connection was cut \(ECONNRESET\)\.$/],
    ['does not answer', 'silent' as const, /^SNS did not respond in time\.$/],
    [
      'does not respond like SNS',
      { status: 502, body: '<html>Bad gateway' },
      /^SNS responded with status 502 \(\w+\)\.$/,
    ],
    [
      'does not respond like SNS, with status 200',
      { status: 200, body: '{}' },
      /^SNS responded with status 200 \(\w+\)\.$/,
    ],
  ])('a connection that %s is a wait with a message, not a fault', async (_, answer, reason) => {
    const { queues, topic } = await startSns();
    const wire = await startWire(queues.endpoint);
    const sink = createSnsSink(wire.client, topic, { publicUrl: PUBLIC_URL });
    wire.answer = () => answer;
    const outcomes = await sink.deliver(await someDeliveries(2));
    expect(outcomes).toEqual([1, 2].map(() => ({ kind: 'retry', reason: expect.stringMatching(reason) })));
  });

  test('after an outage of SNS nothing is missing', async () => {
    const { queues, topic } = await startSns();
    const { queueUrl } = await subscribeQueue(queues, topic, 'jobs.fifo');
    const wire = await startWire(queues.endpoint);
    const rig = await createDeliveryRig(delivered);
    await rig.say([moved(1, 'a'), moved(1, 'b'), moved(2, 'a')]);
    let down = true;
    wire.answer = () => (down ? 'reset' : undefined);
    const sink = createSnsSink(wire.client, topic, { publicUrl: PUBLIC_URL });
    const deps = { ...rig.deps, open: async () => sink };
    expect(await drainSink(deps, REGION, 'erp', rig.state.now + 60_000)).toMatchObject({
      outcome: 'waiting',
      problem: 'SNS could not be reached: the connection was cut (ECONNRESET).',
    });
    down = false;
    await drainUntilDone(rig, sink);
    expect(getIds(await takeAll(queues.sqs(), queueUrl)).sort()).toEqual([
      'acme.e1.1',
      'acme.e1.2',
      'acme.e1.3',
    ]);
  });

  test('a missing topic makes the sink wait', async () => {
    const { queues, topic } = await startSns();
    const sink = createSnsSink(queues.sns(), topic.replace('jobwire-test', 'nothing'), {
      publicUrl: PUBLIC_URL,
    });
    const rig = await createDeliveryRig(delivered);
    await rig.say([moved(1, 'a')]);
    const report = await drainSink(
      { ...rig.deps, open: async () => sink },
      REGION,
      'erp',
      rig.state.now + 60_000,
    );
    expect(report).toMatchObject({
      outcome: 'waiting',
      delivered: 0,
      problem: 'The topic does not exist (NotFound).',
    });
    expect(await rig.position()).toEqual({ position: 0, due: true });
  });
});

// SNS and SQS

async function startSns(): Promise<{ queues: EmbeddedFauxqs; topic: string }> {
  const queues = await startFauxqs({ unsigned: true });
  open.push(() => queues.stop());
  return { queues, topic: await queues.ensureTopic('jobwire-test.fifo') };
}

/** An answer instead of the server's; `undefined` lets the server answer. */
type WireAnswer =
  | { readonly status: number; readonly body: string; readonly headers?: Readonly<Record<string, string>> }
  | 'reset'
  | 'silent'
  | undefined;

/** A proxy of SNS that records publications, and gives configured answers. Its client tries once. */
async function startWire(endpoint: string) {
  const wire = {
    calls: [] as PublishBatchRequestEntry[][],
    answer: (() => undefined) as (entries: readonly PublishBatchRequestEntry[]) => WireAnswer,
    client: undefined as unknown as SNSClient,
  };
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', async () => {
      const body = Buffer.concat(chunks).toString();
      const entries = entriesIn(new URLSearchParams(body));
      wire.calls.push(entries);
      const told = wire.answer(entries);
      if (told === 'silent') return;
      if (told === 'reset') {
        request.socket.resetAndDestroy();
        return;
      }
      const answer = told ?? (await forward(endpoint, request.headers, body));
      response.writeHead(answer.status, { 'content-type': 'text/xml', ...answer.headers }).end(answer.body);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  wire.client = new SNSClient({
    region: 'us-east-1',
    credentials: { accessKeyId: 'test', secretAccessKey: 'test' },
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    maxAttempts: 1,
    requestHandler: { requestTimeout: 2_000, throwOnRequestTimeout: true },
  });
  open.push(() => {
    wire.client.destroy();
    server.closeAllConnections();
    return new Promise((resolve) => server.close(resolve));
  });
  return wire;
}

async function forward(endpoint: string, headers: IncomingHttpHeaders, body: string) {
  const answer = await fetch(endpoint, {
    method: 'POST',
    headers: {
      'content-type': headers['content-type'] ?? '',
      authorization: headers.authorization ?? '',
    },
    body,
  });
  return { status: answer.status, body: await answer.text(), headers: {} };
}

/** The entries of a PublishBatch in the form body. */
function entriesIn(form: URLSearchParams): PublishBatchRequestEntry[] {
  const entries: PublishBatchRequestEntry[] = [];
  for (let at = 1; ; at += 1) {
    const field = (name: string) => form.get(`PublishBatchRequestEntries.member.${at}.${name}`) ?? undefined;
    const Id = field('Id');
    if (Id === undefined) return entries;
    const MessageAttributes: PublishBatchRequestEntry['MessageAttributes'] = {};
    for (let place = 1; field(`MessageAttributes.entry.${place}.Name`) !== undefined; place += 1) {
      const attribute = (name: string) => field(`MessageAttributes.entry.${place}.${name}`);
      MessageAttributes[attribute('Name') ?? ''] = {
        DataType: attribute('Value.DataType'),
        StringValue: attribute('Value.StringValue'),
      };
    }
    const Message = field('Message');
    const MessageDeduplicationId = field('MessageDeduplicationId');
    entries.push({ Id, Message, MessageDeduplicationId, MessageAttributes });
  }
}

/** A client that accepts everything and records its input. */
function recordingClient(): { client: SNSClient; calls: PublishBatchRequestEntry[][] } {
  const calls: PublishBatchRequestEntry[][] = [];
  const client = {
    async send({ input }: { input: { PublishBatchRequestEntries: PublishBatchRequestEntry[] } }) {
      calls.push(input.PublishBatchRequestEntries);
      return { Successful: input.PublishBatchRequestEntries.map(({ Id }) => ({ Id })) };
    },
  };
  return { client: client as unknown as SNSClient, calls };
}

/** The size that SNS counts: bodies, and names, types and values of attributes. */
function countedBytes(entries: readonly PublishBatchRequestEntry[]): number {
  const texts = entries.flatMap(({ Message, MessageAttributes }) => [
    Message,
    ...Object.entries(MessageAttributes ?? {}).flatMap(([name, value]) => [
      name,
      value.DataType,
      value.StringValue,
    ]),
  ]);
  return texts.reduce((sum, text) => sum + Buffer.byteLength(text ?? ''), 0);
}

function errorBody(code: string): string {
  return `<ErrorResponse xmlns="http://sns.amazonaws.com/doc/2010-03-31/"><Error><Type>Sender</Type><Code>${code}</Code><Message>about arn:aws:sns:us-east-1:111122223333:x</Message></Error><RequestId>r</RequestId></ErrorResponse>`;
}

/** Up to ten messages; they stay hidden until they are deleted or released. */
async function receive(sqs: SQSClient, QueueUrl: string, WaitTimeSeconds = 0): Promise<Message[]> {
  const { Messages = [] } = await sqs.send(
    new ReceiveMessageCommand({
      QueueUrl,
      MaxNumberOfMessages: 10,
      WaitTimeSeconds,
      VisibilityTimeout: 600,
      MessageAttributeNames: ['All'],
      MessageSystemAttributeNames: ['MessageGroupId', 'MessageDeduplicationId'],
    }),
  );
  return Messages;
}

async function hide(sqs: SQSClient, QueueUrl: string, message: Message, seconds: number): Promise<void> {
  const { ReceiptHandle } = message;
  await sqs.send(new ChangeMessageVisibilityCommand({ QueueUrl, ReceiptHandle, VisibilityTimeout: seconds }));
}

async function deleteAll(sqs: SQSClient, QueueUrl: string, messages: readonly Message[]): Promise<void> {
  if (messages.length === 0) return;
  const Entries = messages.map(({ ReceiptHandle }, at) => ({ Id: String(at), ReceiptHandle }));
  await sqs.send(new DeleteMessageBatchCommand({ QueueUrl, Entries }));
}

/** All messages of a queue, removed from it. */
async function takeAll(sqs: SQSClient, queueUrl: string): Promise<Message[]> {
  const all: Message[] = [];
  for (;;) {
    const messages = await receive(sqs, queueUrl);
    if (messages.length === 0) return all;
    await deleteAll(sqs, queueUrl, messages);
    all.push(...messages);
  }
}

function getIds(messages: readonly Message[]): string[] {
  return messages.map(({ Body }) => (JSON.parse(Body ?? '') as { id: string }).id);
}

function getAttributes(message: Message | undefined): Record<string, string | undefined> {
  const attributes = Object.entries(message?.MessageAttributes ?? {});
  return Object.fromEntries(attributes.map(([name, { StringValue }]) => [name, StringValue]));
}

// Events

type Rig = Awaited<ReturnType<typeof createDeliveryRig>>;

/** Drains again and again, with time passing in between, until everything is delivered. */
async function drainUntilDone(rig: Rig, port: SinkPort): Promise<void> {
  for (let turn = 0; turn < 20; turn += 1) {
    rig.state.now += 3_600_000;
    const deps = { ...rig.deps, open: async () => port };
    const { outcome } = await drainSink(deps, REGION, 'erp', rig.state.now + 60_000);
    if (outcome === 'drained') return;
  }
  throw new Error('The sink was not drained.');
}

async function getEvents(log: Rig['log'], ref: AccountRef): Promise<readonly LoggedEvent[]> {
  const page = await log.read(ref, 0, 500);
  if (page?.kind !== 'events') throw new Error('There are no events.');
  return page.events;
}

async function readDeliveries(
  drafts: EventDraft[],
  ref: AccountRef = { region: REGION, account: 'acme' },
): Promise<Delivery[]> {
  const rig = await createDeliveryRig(delivered, { accounts: [ref.account] });
  await rig.say(drafts, ref);
  return (await getEvents(rig.log, ref)).map((event) => ({ event }));
}

function withJob(draft: EventDraft, job: Record<string, unknown>): EventDraft {
  const data = draft.data as { job: object };
  return { ...draft, data: { ...data, job: { ...data.job, ...job } } } as EventDraft;
}

function groupDispatched(orderGroup: string): EventDraft {
  const observed = { at: '2026-03-02T08:00:00.000Z', since: null, view: 'list' as const };
  return {
    type: 'order_group.dispatched',
    time: Date.parse(observed.at),
    data: { observed, orderGroup, jobs: [1, 2], excludedJobs: [], repeated: false },
  };
}

function credentialsAccepted(): EventDraft {
  return { type: 'account.credentials_accepted', time: Date.parse('2026-03-02T08:00:00Z'), data: {} };
}

function outage(reason = 'The ordering service answered 503.'): EventDraft {
  return {
    type: 'upstream.outage',
    time: Date.parse('2026-03-02T08:00:00Z'),
    data: { reason },
  } as EventDraft;
}

function unit(hex: string): string {
  return String.fromCharCode(Number.parseInt(hex, 16));
}
