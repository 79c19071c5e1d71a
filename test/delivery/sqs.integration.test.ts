/**
 * Endpoints that are queues: over sockets to fauxqs, a server of SQS, and to a server whose answers a test chooses.
 * One file: its tests share the queues and how they are read.
 */
import { createHash, randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import {
  CreateQueueCommand,
  DeleteMessageBatchCommand,
  type Message,
  ReceiveMessageCommand,
} from '@aws-sdk/client-sqs';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { startHost } from '../../local/host.ts';
import { startFauxqs } from '../../local/queues.ts';
import { registerAccount } from '../../shared/accounts/accounts.ts';
import { parseConfig } from '../../shared/config.ts';
import { drainSink } from '../../shared/delivery/drain.ts';
import { pingEndpoint, rotateSecret } from '../../shared/delivery/endpoint-controls.ts';
import { createEndpoint, updateEndpoint } from '../../shared/delivery/endpoints.ts';
import { parseQueueAddress } from '../../shared/delivery/queue-address.ts';
import type { SinkPort, SinkRecord } from '../../shared/delivery/sink.ts';
import { createQueueOpener } from '../../shared/delivery/sqs.ts';
import type { LoggedEvent } from '../../shared/log/log.ts';
import { historySchema } from '../../shared/storage/schema.ts';
import { createMemoryTable } from '../../shared/storage/sqlite-table.ts';
import { createDeliveryRig, delivered, moved, REGION } from '../support/delivery-world.ts';

const PUBLIC_URL = 'https://us.jobwire.example';
const ARN = 'arn:aws:sqs:us-east-1:000000000000:jobs';
const CREDENTIALS = { accessKeyId: 'local', secretAccessKey: 'local' };
const TIMEOUTS = { connectionTimeout: 2_000, requestTimeout: 10_000, throwOnRequestTimeout: true };

const open: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of open.splice(0).reverse()) await close();
});

describe('addresses of queues', () => {
  test.each([
    [ARN, ARN],
    ['https://sqs.us-east-1.amazonaws.com/000000000000/jobs', ARN],
    [`${ARN}.fifo`, `${ARN}.fifo`],
    [
      'https://sqs.cn-north-1.amazonaws.com.cn/111122223333/a_b-c',
      'arn:aws-cn:sqs:cn-north-1:111122223333:a_b-c',
    ],
    [
      'https://sqs.us-gov-west-1.amazonaws.com/111122223333/a',
      'arn:aws-us-gov:sqs:us-gov-west-1:111122223333:a',
    ],
  ])('%s is a queue', (text, arn) => {
    const queue = parseQueueAddress(text);
    expect(queue?.arn).toBe(arn);
    // Both notations are the same queue.
    expect(parseQueueAddress(queue?.url ?? '')).toEqual(queue);
  });

  test.each([
    'arn:aws:sns:us-east-1:000000000000:jobs',
    'arn:aws:sqs:us-east-1:000000000000:jobs/x',
    'arn:aws:sqs:us-east-1:000000000000:*',
    'arn:aws:sqs:us-east-1:1:jobs',
    'http://sqs.us-east-1.amazonaws.com/000000000000/jobs',
    'https://sqs.us-east-1.amazonaws.com.evil.example/000000000000/jobs',
    'https://sqs.us-east-1.amazonaws.com@evil.example/000000000000/jobs',
    'https://erp.example/000000000000/jobs',
    '',
  ])('%s is none', (text) => {
    expect(parseQueueAddress(text)).toBeUndefined();
  });
});

describe('a FIFO queue', () => {
  test('has each event once and in order per job, although drains crash, SQS fails, and the process restarts', async () => {
    const { take, opener } = await startQueue('jobs.fifo');
    const rig = await createDeliveryRig(delivered, { accounts: ['acme', 'zeta'], record: QUEUE });
    const said: LoggedEvent[] = [];
    for (const ref of rig.refs) {
      for (let round = 0; round < 6; round += 1) {
        await rig.say(
          Array.from({ length: 7 }, (_, job) => moved(job + 1, `round ${round}`)),
          ref,
        );
      }
      const page = await rig.log.read(ref, 0, 500);
      if (page?.kind === 'events') said.push(...page.events);
    }
    let calls = 0;
    let sent = 0;
    // Each drain is one of a new process: it has a new client.
    const restart = (): SinkPort => {
      const sink = opener()(`${ARN}.fifo`);
      return {
        maxBatch: sink.maxBatch,
        async deliver(deliveries) {
          calls += 1;
          if (calls === 2) return deliveries.map(() => ({ kind: 'retry', reason: 'SQS failed.' }));
          const outcomes = await sink.deliver(deliveries);
          sent += deliveries.length;
          // Killed after SQS accepted them, before that was stored.
          if (calls === 4 || calls === 6) throw new Error('The process was killed.');
          return outcomes;
        },
      };
    };
    let outcome: string | undefined;
    for (let turn = 0; outcome !== 'drained' && turn < 20; turn += 1) {
      rig.state.now += 3_600_000;
      const port = restart();
      const deps = { ...rig.deps, open: async () => port };
      ({ outcome } = await drainSink(deps, REGION, 'erp', rig.state.now + 60_000));
    }
    expect(outcome).toBe('drained');
    expect(sent).toBeGreaterThan(said.length);
    const messages = await take();
    expect(messages.map(({ id }) => id).sort()).toEqual(said.map(({ id }) => id).sort());
    const last = new Map<string, number>();
    for (const { group, sequence, id, message } of messages) {
      expect(sequence).toBeGreaterThan(last.get(group) ?? 0);
      last.set(group, sequence);
      expect(message.Attributes?.MessageDeduplicationId).toBe(id);
    }
    expect([...last.keys()].sort()).toEqual(
      ['acme', 'zeta'].flatMap((account) => [1, 2, 3, 4, 5, 6, 7].map((job) => `${account}/${job}`)),
    );
  });

  test('accepts an event once for each replay and each resend, also within five minutes', async () => {
    const { take, opener } = await startQueue('jobs.fifo');
    const [event] = await readEvents(1);
    const port = opener()(`${ARN}.fifo`);
    for (const replay of [undefined, 'rp-1', 'rp-1', 'rp-2', undefined]) {
      expect(await port.deliver([{ event, ...(replay && { replay }) }])).toEqual([{ kind: 'delivered' }]);
    }
    expect((await take()).map(({ id }) => id)).toEqual([event.id, event.id, event.id]);
  });
});

describe('a standard queue', () => {
  test('has the event as its body, unchanged, and attributes to filter by', async () => {
    const { take, opener } = await startQueue('jobs');
    const [event] = await readEvents(1);
    const port = opener()(ARN);
    expect(await port.deliver([{ event, replay: 'rp-1' }])).toEqual([{ kind: 'delivered' }]);
    const [{ message, group }] = (await take()) as [Taken];
    expect(message.Body).toBe(event.json);
    expect(group).toBe('');
    const attributes = Object.entries(message.MessageAttributes ?? {});
    expect(Object.fromEntries(attributes.map(([name, { StringValue }]) => [name, StringValue]))).toEqual({
      type: 'job.status_changed',
      accountId: 'acme',
      region: 'us',
      jobNumber: '1',
      orderGroup: 'G1',
      subject: 'jobs/1',
      replay: 'true',
    });
  });

  test('has a reference to an event that is too large', async () => {
    const { take, opener } = await startQueue('jobs');
    const [event] = await readEvents(1);
    const large = JSON.parse(event.json);
    large.data.job.description = 'x'.repeat(300_000);
    await opener()(ARN).deliver([{ event: { ...event, json: JSON.stringify(large) } }]);
    const [{ message }] = (await take()) as [Taken];
    expect(JSON.parse(message.Body ?? '')).toMatchObject({
      jobwire: 'reference',
      id: event.id,
      feed: `${PUBLIC_URL}/v1/accounts/acme/events?after=e1.0&limit=1`,
    });
    expect(message.MessageAttributes?.reference?.StringValue).toBe('true');
  });
});

describe('failures', () => {
  test('of one message of a batch: it is parked with the later events of its job, the others are delivered', async () => {
    const sqs = await startAnswers((entry) =>
      /"jobNumber":2,/.test(entry.MessageBody)
        ? { Code: 'InvalidMessageContents', SenderFault: true, Message: 'secret detail' }
        : undefined,
    );
    const rig = await createDeliveryRig(delivered, { record: QUEUE, maxBatch: 10 });
    await rig.say([1, 2, 3, 2].map((job, at) => moved(job, `${at}`)));
    const report = await drain(rig, sqs.opener);
    expect(report).toMatchObject({ outcome: 'drained', delivered: 2, parked: 2 });
    expect(sqs.accepted).toEqual([1, 3]);
  });

  test.each([
    [{ Code: 'InternalError', SenderFault: false }, 'SQS failed (InternalError).'],
    [{ Code: 'KmsAccessDenied', SenderFault: true }, 'SQS cannot use the encryption key of the queue'],
    [{ Code: 'RequestThrottled', SenderFault: false }, 'SQS throttles requests (RequestThrottled).'],
  ])(
    'of a message that concern the queue (%o): the endpoint waits, and nothing is parked',
    async (failure, problem) => {
      const sqs = await startAnswers(() => ({ ...failure, Message: 'about the queue' }));
      const rig = await createDeliveryRig(delivered, { record: QUEUE });
      await rig.say([moved(1, 'a')]);
      expect(await drain(rig, sqs.opener)).toMatchObject({
        ...{ outcome: 'waiting', parked: 0 },
        problem: expect.stringContaining(problem),
      });
    },
  );

  test.each([
    ['QueueDoesNotExist', 400, 'The queue does not exist (QueueDoesNotExist).'],
    ['AccessDeniedException', 403, 'Jobwire has no permission to publish to the queue (AccessDenied).'],
    ['OverLimit', 403, 'SQS throttles requests (OverLimit).'],
  ])(
    'of the whole call (%s): the endpoint waits, and the reason names no ARN',
    async (code, status, problem) => {
      const sqs = await startAnswers(() => undefined, { code, status });
      const rig = await createDeliveryRig(delivered, { record: QUEUE });
      await rig.say([moved(1, 'a')]);
      expect(await drain(rig, sqs.opener)).toMatchObject({ outcome: 'waiting', problem });
    },
  );

  test('of a queue of another AWS region: its requests are signed for that region', async () => {
    const sqs = await startAnswers(() => undefined);
    const [event] = await readEvents(1);
    await sqs.opener('arn:aws:sqs:eu-west-2:111122223333:jobs').deliver([{ event }]);
    expect(sqs.calls).toEqual([
      { path: `${sqs.url}/111122223333/jobs`, scope: expect.stringContaining('/eu-west-2/sqs/') },
    ]);
  });
});

describe('a self-hosted Jobwire', () => {
  const environment = { AWS_ACCESS_KEY_ID: '', AWS_SECRET_ACCESS_KEY: '' };
  const before = { ...process.env };
  beforeEach(() => {
    open.push(() => {
      for (const name of Object.keys(environment)) {
        if (before[name] === undefined) delete process.env[name];
        else process.env[name] = before[name];
      }
    });
  });

  test('sends to a queue of the configured server, with the credentials of the environment', async () => {
    const { take, endpoint, credentials } = await startQueue('jobs.fifo');
    process.env.AWS_ACCESS_KEY_ID = credentials.accessKeyId;
    process.env.AWS_SECRET_ACCESS_KEY = credentials.secretAccessKey;
    const host = await startJobwire({ sqs: { endpoint } });
    const url = 'https://sqs.us-east-1.amazonaws.com/000000000000/jobs.fifo';
    const made = await createEndpoint(host.endpoints, REGION, { id: 'erp', kind: 'sqs', url });
    expect(made).toMatchObject({ kind: 'created', secret: null });
    expect(made).toMatchObject({ endpoint: { kind: 'sqs', url: `${ARN}.fifo`, headers: [] } });
    expect(await pingEndpoint(host.endpoints, REGION, 'erp')).toMatchObject({
      ...{ outcome: 'delivered', status: null, logged: true },
    });
    expect(await take()).toMatchObject([{ group: '_cell/account', type: 'jobwire.ping' }]);

    const appended = await host.log.append({ region: REGION, account: 'acme' }, [moved(1, 'a')]);
    expect(appended).toMatchObject({ kind: 'appended' });
    const received: Taken[] = [];
    await expect
      .poll(
        async () => {
          received.push(...(await take()));
          return received.map(({ type }) => type);
        },
        { timeout: 20_000 },
      )
      .toEqual(['job.status_changed']);

    expect(await rotateSecret(host.endpoints, REGION, 'erp')).toMatchObject({ kind: 'rejected' });
    expect(await updateEndpoint(host.endpoints, REGION, 'erp', { headers: { 'x-a': '1' } })).toEqual({
      ...{ kind: 'rejected', reason: 'headers must be absent for a queue.' },
    });
    expect(
      await updateEndpoint(host.endpoints, REGION, 'erp', { url: 'https://erp.example/hook' }),
    ).toMatchObject({ kind: 'rejected', reason: expect.stringMatching(/^url must be the ARN or the URL/) });
    expect(await updateEndpoint(host.endpoints, REGION, 'erp', { url: ARN, types: ['job.*'] })).toMatchObject(
      {
        ...{ kind: 'changed', endpoint: { kind: 'sqs', url: ARN, types: ['job.*'] } },
      },
    );
    const secret = `whsec_${Buffer.alloc(24, 1).toString('base64')}`;
    expect(await createEndpoint(host.endpoints, REGION, { kind: 'sqs', url: ARN, secret })).toEqual({
      ...{ kind: 'rejected', reason: 'secret must be absent for a queue.' },
    });
  });

  test('without the setting sqs rejects queues, and names the setting', async () => {
    const host = await startJobwire({});
    expect(await createEndpoint(host.endpoints, REGION, { kind: 'sqs', url: ARN })).toEqual({
      kind: 'rejected',
      reason: 'url is not accepted: queues require "sqs" in the configuration file.',
    });
  });

  async function startJobwire(settings: object) {
    const config = parseConfig(
      {
        regions: { us: { baseUrl: 'http://127.0.0.1:9', authUrl: 'http://127.0.0.1:9', realm: 'us' } },
        accounts: [],
        ...settings,
      },
      {},
    );
    const table = createMemoryTable();
    const host = await startHost({
      ...{ config, table, history: createMemoryTable(historySchema) },
      secretKey: Buffer.alloc(32, 1),
      publicUrl: PUBLIC_URL,
      exclusive: true,
      tickMs: 50,
      onFault: () => {},
    });
    open.push(() => host.stop(2_000));
    const account = { region: REGION, account: 'acme', secretRef: 'acme', pollIntervalSeconds: 60 };
    await registerAccount(table, host.log, { ...account, paused: true }, { now: Date.now(), epoch: 'e1' });
    return host;
  }
});

// Queues

const QUEUE: Partial<SinkRecord> = { kind: 'sqs', target: ARN };

interface Taken {
  readonly id: string;
  readonly type: string;
  readonly sequence: number;
  readonly group: string;
  readonly message: Message;
}

/** A queue of fauxqs, and openers of sinks that send to it. */
async function startQueue(name: string) {
  const queues = await startFauxqs();
  open.push(() => queues.stop());
  const sqs = queues.sqs();
  const fifo = name.endsWith('.fifo');
  const { QueueUrl } = await sqs.send(
    new CreateQueueCommand({ QueueName: name, ...(fifo ? { Attributes: { FifoQueue: 'true' } } : {}) }),
  );
  const { endpoint, credentials } = queues;
  return {
    ...{ endpoint, credentials },
    opener: () =>
      createQueueOpener({ publicUrl: PUBLIC_URL, endpoint, credentials, requestHandler: TIMEOUTS }),
    /** All messages of the queue, removed from it. */
    async take(): Promise<Taken[]> {
      const all: Message[] = [];
      for (;;) {
        const { Messages = [] } = await sqs.send(
          new ReceiveMessageCommand({
            ...{ QueueUrl, MaxNumberOfMessages: 10, VisibilityTimeout: 600 },
            MessageAttributeNames: ['All'],
            MessageSystemAttributeNames: ['MessageGroupId', 'MessageDeduplicationId'],
          }),
        );
        if (Messages.length === 0) break;
        all.push(...Messages);
        const Entries = Messages.map(({ ReceiptHandle }, at) => ({ Id: String(at), ReceiptHandle }));
        await sqs.send(new DeleteMessageBatchCommand({ QueueUrl, Entries }));
      }
      return all.map((message) => {
        const { id, type, sequence } = JSON.parse(message.Body ?? '');
        const group = message.Attributes?.MessageGroupId ?? '';
        return { id, type, sequence: Number(sequence), group, message };
      });
    },
  };
}

interface Entry {
  readonly Id: string;
  readonly MessageBody: string;
}

/** A server of SQS that fails the messages that a test chooses, or every call. */
async function startAnswers(
  fail: (entry: Entry) => object | undefined,
  whole?: { readonly code: string; readonly status: number },
) {
  const accepted: number[] = [];
  const calls: { path: string; scope: string }[] = [];
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = JSON.parse(Buffer.concat(chunks).toString()) as { QueueUrl: string; Entries: Entry[] };
    calls.push({ path: body.QueueUrl, scope: request.headers.authorization ?? '' });
    response.setHeader('content-type', 'application/x-amz-json-1.0');
    if (whole) {
      response.writeHead(whole.status).end(JSON.stringify({ __type: `com.amazonaws.sqs#${whole.code}` }));
      return;
    }
    const Successful: object[] = [];
    const Failed: object[] = [];
    for (const entry of body.Entries) {
      const { Id, MessageBody } = entry;
      const failure = fail(entry);
      if (failure) Failed.push({ Id, ...failure });
      else {
        accepted.push(JSON.parse(MessageBody).data.job.jobNumber);
        const MD5OfMessageBody = createHash('md5').update(MessageBody).digest('hex');
        Successful.push({ Id, MessageId: randomUUID(), MD5OfMessageBody });
      }
    }
    response.writeHead(200).end(JSON.stringify({ Successful, Failed }));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  open.push(() => {
    server.closeAllConnections();
    return new Promise((resolve) => server.close(resolve));
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const opener = createQueueOpener({
    ...{ publicUrl: PUBLIC_URL, endpoint: url, credentials: CREDENTIALS, requestHandler: TIMEOUTS },
  });
  return { accepted, calls, opener, url };
}

type Rig = Awaited<ReturnType<typeof createDeliveryRig>>;

function drain(rig: Rig, opener: (arn: string) => SinkPort) {
  rig.state.now += 1;
  const deps = { ...rig.deps, open: async ({ target }: SinkRecord) => opener(target) };
  return drainSink(deps, REGION, 'erp', rig.state.now + 60_000);
}

/** Events of as many jobs. */
async function readEvents(count: number): Promise<[LoggedEvent, ...LoggedEvent[]]> {
  const rig = await createDeliveryRig(delivered);
  await rig.say(Array.from({ length: count }, (_, at) => moved(at + 1, `s${at}`)));
  const page = await rig.log.read({ region: REGION, account: 'acme' }, 0, count);
  if (page?.kind !== 'events') throw new Error('There are no events.');
  const [first, ...rest] = page.events;
  if (!first) throw new Error('There are no events.');
  return [first, ...rest];
}
