/** Traces on AWS: one trace from a poll to the attempts, through functions that share nothing but the table and messages. */
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { SQSEvent } from 'aws-lambda';
import { afterEach, expect, onTestFinished, test, vi } from 'vitest';
import { createDrainSinkHandler } from '../../functions/handlers/drain-sink.ts';
import { DrainMessage } from '../../functions/handlers/messages.ts';
import { createPollAccountHandler } from '../../functions/handlers/poll-account.ts';
import { createWakeSinksHandler } from '../../functions/handlers/wake-sinks.ts';
import { createTracing, createXraySender } from '../../functions/tracing.ts';
import { isSigned } from '../../local/signature.ts';
import { registerSink } from '../../shared/delivery/sink.ts';
import { createEventLog } from '../../shared/log/log.ts';
import { keys } from '../../shared/storage/schema.ts';
import { createMemoryTable } from '../../shared/storage/sqlite-table.ts';
import { type Item, TableError } from '../../shared/storage/table.ts';
import { createRig } from '../support/tracker.ts';

interface Span {
  readonly name: string;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly attributes: readonly { readonly key: string; readonly value: { readonly stringValue?: string } }[];
}

/** The functions of a cell: each has its own traces, as its own process has. */
async function createCell(sample: number, random = () => 0.5) {
  const table = createMemoryTable();
  const rig = await createRig({ table });
  const { now, ref } = rig;
  const spans: Span[] = [];
  const errors: unknown[] = [];
  const trace = () =>
    createTracing({
      ...{ sample, now, random, onError: (cause) => errors.push(cause) },
      async send(body) {
        for (const { scopeSpans } of JSON.parse(body).resourceSpans) spans.push(...scopeSpans[0].spans);
      },
    });
  const [polls, wakes, drains] = [trace(), trace(), trace()];
  const options = { now, newId: randomUUID, schemaBaseUrl: 'https://us.jobwire.example' };
  const log = createEventLog(table, {
    ...options,
    traceCommit: polls.traceCommit,
    onCommitted: polls.committed,
  });
  const telemetry = {
    ...{ poll() {}, drain() {}, attempt() {} },
    fault: (_: string, cause: unknown) => errors.push(cause),
  };
  const sink = {
    region: 'us',
    kind: 'webhook',
    target: 'https://erp.example',
    types: [],
    paused: false,
  } as const;
  for (const id of ['erp', 'shop']) await registerSink(table, log, { ...sink, id, accounts: [] }, []);
  const sent: object[] = [];
  const poll = createPollAccountHandler({
    ...{ region: 'us', polling: { ...rig.deps, log }, telemetry, tracing: polls },
  });
  const wake = createWakeSinksHandler({
    ...{ region: 'us', table, telemetry, now, tracing: wakes },
    sendDrains: async (messages) => void sent.push(...messages),
  });
  const drain = createDrainSinkHandler({
    region: 'us',
    draining: {
      ...{ table, log: createEventLog(table, options), now, newId: randomUUID },
      ...{ random: () => 0.5, retrySeconds: [5] },
      open: async () => ({ maxBatch: 1, deliver: async () => [{ kind: 'delivered' }] }),
    },
    ...{ telemetry, tracing: drains },
  });
  const context = { getRemainingTimeInMillis: () => 60_000 };
  return {
    ...{ rig, table, spans, sent, errors },
    async poll(batchItemFailures: readonly object[] = []) {
      rig.pass(60);
      expect(await poll(sqsEvent({ account: ref.account, dueAt: now() }), context)).toEqual({
        batchItemFailures,
      });
      await polls.flush();
    },
    async wake() {
      const mark = await table.get(keys.wake(ref));
      if (!mark) throw new Error('There is no wake mark.');
      const record = { dynamodb: { SequenceNumber: '1', NewImage: toImage(mark) } };
      expect(await wake({ Records: [record] })).toEqual({ batchItemFailures: [] });
      await wakes.flush();
    },
    async drain() {
      expect(await drain(sqsEvent(...sent.splice(0)), context)).toEqual({ batchItemFailures: [] });
      await drains.flush();
    },
  };
}

test('one trace joins a poll, its commit, the wake-up, and the drain and attempts of each endpoint', async () => {
  const cell = await createCell(1);
  await cell.poll();
  await cell.wake();
  await cell.drain();
  cell.spans.length = 0;
  const job = cell.rig.upstream.createJob({});
  await cell.poll();
  await cell.wake();
  for (const message of cell.sent) expect(DrainMessage.parse(message)).toEqual(message);
  await cell.drain();
  expect(cell.errors).toEqual([]);
  expect(new Set(cell.spans.map(({ traceId }) => traceId)).size).toBe(1);
  expect(new Set(cell.spans.map(({ spanId }) => spanId)).size).toBe(cell.spans.length);
  const path = (span: Span): string[] => {
    const parent = cell.spans.find(({ spanId }) => spanId === span.parentSpanId);
    return [...(parent ? path(parent) : []), span.name];
  };
  const attempts = cell.spans.filter(({ name }) => name === 'deliver');
  expect(attempts.map((span) => read(span, 'endpoint')).sort()).toEqual(['erp', 'shop']);
  for (const attempt of attempts) {
    expect(path(attempt)).toEqual(['poll', 'commit', 'wake', 'drain', 'deliver']);
    expect(read(attempt, 'type')).toBe('job.created');
  }
  // Ids and counts only.
  expect(JSON.stringify(cell.spans)).not.toMatch(/https?:|@/);
  expect(job).toBeGreaterThan(0);
});

test('a poll without events is not sent, and one outside the sample leaves no trace', async () => {
  const cell = await createCell(1);
  await cell.poll();
  cell.spans.length = 0;
  await cell.poll();
  expect(cell.spans).toEqual([]);

  const unsampled = await createCell(0.4);
  unsampled.rig.upstream.createJob({});
  await unsampled.poll();
  await unsampled.wake();
  expect(unsampled.sent).toEqual([{ sink: 'erp' }, { sink: 'shop' }]);
  await unsampled.drain();
  expect(unsampled.spans).toEqual([]);
});

test('a poll that throws is sent as failed, and its trace is not continued by the next poll of the account', async () => {
  const sampled = vi.fn(() => 0);
  const cell = await createCell(0.5, sampled);
  const fault = new TableError('get', 'throttled');
  const get = vi.spyOn(cell.table, 'get').mockRejectedValue(fault);
  await cell.poll([{ itemIdentifier: '0' }]);
  get.mockRestore();
  expect(cell.errors).toEqual([fault]);
  expect(cell.spans).toMatchObject([{ name: 'poll', status: { code: 2 } }]);
  expect(cell.spans.map((span) => [read(span, 'account'), read(span, 'outcome')])).toEqual([
    ['acme', 'failed'],
  ]);
  cell.spans.length = 0;
  sampled.mockReturnValue(0.9);
  cell.rig.upstream.createJob({});
  await cell.poll();
  await cell.wake();
  expect(cell.spans).toEqual([]);
});

test('spans are sent to X-Ray signed, and an error is reported once and fails nothing', async () => {
  const credentials = { accessKeyId: 'AKIDEXAMPLE', secretAccessKey: 'secret-of-the-function' };
  const before = { ...process.env };
  Object.assign(process.env, {
    ...{ AWS_ACCESS_KEY_ID: credentials.accessKeyId, AWS_SECRET_ACCESS_KEY: credentials.secretAccessKey },
  });
  restore.push(() => {
    for (const name of ['AWS_ACCESS_KEY_ID', 'AWS_SECRET_ACCESS_KEY']) {
      if (before[name] === undefined) delete process.env[name];
      else process.env[name] = before[name];
    }
  });
  const received: { path: string; signed: boolean; body: string }[] = [];
  let status = 200;
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = Buffer.concat(chunks);
    const { method = '', url = '', headers } = request;
    const signed = await isSigned({ method, url, headers, body }, credentials, Date.now());
    received.push({ path: url, signed, body: body.toString() });
    response.writeHead(status).end('{}');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => new Promise<void>((resolve) => server.close(() => resolve())));
  const errors: unknown[] = [];
  const tracing = createTracing({
    ...{ sample: 1, now: Date.now, random: Math.random, onError: (cause) => errors.push(cause) },
    send: createXraySender('us-east-1', `http://127.0.0.1:${(server.address() as AddressInfo).port}`),
  });
  const trace = { account: 'acme', from: 1, to: 1, trace: `00-${'a'.repeat(32)}-${'b'.repeat(16)}-01` };
  tracing.wake('us', trace);
  await tracing.flush();
  expect(received).toMatchObject([{ path: '/v1/traces', signed: true }]);
  expect(received[0]?.body).toContain('a'.repeat(32));
  // Nothing is left to send.
  await tracing.flush();
  expect(received).toHaveLength(1);
  status = 503;
  tracing.wake('us', trace);
  await tracing.flush();
  expect(errors).toEqual([new Error('X-Ray responded with 503.')]);
});

const restore: (() => void)[] = [];
afterEach(() => {
  for (const one of restore.splice(0)) one();
});

function read({ attributes }: Span, key: string): string | undefined {
  return attributes.find((one) => one.key === `jobwire.${key}`)?.value.stringValue;
}

function toImage(item: Item): object {
  return Object.fromEntries(
    Object.entries(item).map(([name, value]) => [
      name,
      typeof value === 'number' ? { N: String(value) } : { S: String(value) },
    ]),
  );
}

function sqsEvent(...bodies: readonly object[]): SQSEvent {
  const Records = bodies.map((body, at) => ({
    ...{ messageId: String(at), body: JSON.stringify(body) },
    attributes: { SentTimestamp: String(Date.now()) },
  }));
  return { Records } as unknown as SQSEvent;
}
