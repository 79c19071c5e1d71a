/**
 * The EventBridge sink: the client of the AWS SDK, over a socket to a server that records PutEvents and gives
 * configured results.
 */
import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { EventBridgeClient } from '@aws-sdk/client-eventbridge';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { drainSink } from '../../shared/delivery/drain.ts';
import { createEventBusSink } from '../../shared/delivery/event-bus.ts';
import type { Delivery, SinkPort } from '../../shared/delivery/sink.ts';
import type { EventDraft } from '../../shared/events/event.ts';
import { type AccountRef, cellLog } from '../../shared/storage/schema.ts';
import { createDeliveryRig, delivered, moved, REGION, someDeliveries } from '../support/delivery-world.ts';

const BUS = 'arn:aws:events:us-east-1:111122223333:event-bus/jobwire-test-us-events';
const PUBLIC_URL = 'https://us.jobwire.example';
const ACCEPTED = { EventId: 'e' };

interface Entry {
  readonly EventBusName: string;
  readonly Source: string;
  readonly DetailType: string;
  readonly Detail: string;
  readonly Resources: readonly string[];
  readonly Time: number;
}
interface Answer {
  readonly status?: number;
  readonly body: unknown;
}

const accept = (entries: readonly Entry[]): Answer => ({ body: { Entries: entries.map(() => ACCEPTED) } });
const wire = { calls: [] as Entry[][], answer: accept };
const server = createServer((request, response) => {
  const chunks: Buffer[] = [];
  request.on('data', (chunk: Buffer) => chunks.push(chunk));
  request.on('end', () => {
    expect(request.headers['x-amz-target']).toBe('AWSEvents.PutEvents');
    const { Entries } = JSON.parse(Buffer.concat(chunks).toString()) as { Entries: Entry[] };
    wire.calls.push(Entries);
    const { status = 200, body } = wire.answer(Entries);
    response.writeHead(status, { 'content-type': 'application/x-amz-json-1.1' }).end(JSON.stringify(body));
  });
});
let client: EventBridgeClient;
let sink: SinkPort;

beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  client = new EventBridgeClient({
    region: 'us-east-1',
    credentials: { accessKeyId: 'test', secretAccessKey: 'test' },
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    maxAttempts: 1,
  });
  sink = createEventBusSink(client, BUS, { publicUrl: `${PUBLIC_URL}/` });
});
afterAll(async () => {
  client.destroy();
  server.closeAllConnections();
  await new Promise((resolve) => server.close(resolve));
});
beforeEach(() => Object.assign(wire, { calls: [], answer: accept }));

describe('entries', () => {
  test('an event has its type, time, URI, the event itself, and fields to filter by', async () => {
    const [delivery] = await readDeliveries([withJob(moved(4711, 'Shipped'), { orderNumber: 'PO-1' })]);
    if (!delivery) throw new Error('There are no events.');
    expect(await sink.deliver([{ ...delivery, replay: 'rp-1' }])).toEqual([{ kind: 'delivered' }]);
    const [entry] = wire.calls.flat();
    const envelope = JSON.parse(delivery.event.json) as { source: string; time: string };
    expect(entry).toMatchObject({
      EventBusName: BUS,
      Source: 'jobwire',
      DetailType: 'job.status_changed',
      Resources: [`${envelope.source}/jobs/4711`],
      Time: Date.parse(envelope.time) / 1000,
    });
    expect(JSON.parse(entry?.Detail ?? '')).toEqual({
      type: 'job.status_changed',
      accountId: 'acme',
      region: 'us',
      jobNumber: '4711',
      orderGroup: 'G4711',
      subject: 'jobs/4711',
      orderNumber: 'PO-1',
      status: 'Shipped',
      replay: 'true',
      event: envelope,
    });
  });

  test('an event of the region has no account, a blank order number is absent', async () => {
    const [outage] = await readDeliveries([draft('upstream.outage', { reason: 'none' })], cellLog(REGION));
    const [blank] = await readDeliveries([withJob(moved(1, 'a'), { orderNumber: ' ' })]);
    if (!outage || !blank) throw new Error('There are no events.');
    await sink.deliver([outage, blank]);
    const [first, second] = wire.calls.flat().map(({ Detail }) => JSON.parse(Detail) as object);
    expect(Object.keys(first ?? {})).toEqual(['type', 'region', 'event']);
    expect(second).not.toHaveProperty('orderNumber');
  });

  test('calls have ten entries and 256 KB at most; a larger event is a reference to it in the feed', async () => {
    const jobs = Array.from({ length: 10 }, (_, at) =>
      withJob(moved(at + 1, 'a'), { description: 'ä'.repeat(at === 9 ? 150_000 : 30_000) }),
    );
    const deliveries = await readDeliveries(jobs);
    expect(sink.maxBatch).toBe(10);
    expect(await sink.deliver(deliveries)).toEqual(deliveries.map(() => ({ kind: 'delivered' })));
    expect(wire.calls.length).toBeGreaterThan(1);
    for (const entries of wire.calls) {
      const bytes = entries.reduce((sum, entry) => sum + Buffer.byteLength(JSON.stringify(entry)), 0);
      expect(bytes).toBeLessThan(262_144);
    }
    const details = wire.calls.flat().map(({ Detail }) => JSON.parse(Detail) as Record<string, object>);
    expect(details).toHaveLength(10);
    expect(details.filter(({ reference }) => reference !== undefined)).toMatchObject([
      {
        reference: 'true',
        jobNumber: '10',
        event: { jobwire: 'reference', feed: `${PUBLIC_URL}/v1/accounts/acme/events?after=e1.9&limit=1` },
      },
    ]);
  });
});

describe('results', () => {
  test('each event has its own result: accepted, rejected, to be retried, unanswered', async () => {
    const failed = (ErrorCode: string) => ({ ErrorCode, ErrorMessage: 'of 111122223333' });
    wire.answer = () => ({
      body: {
        FailedEntryCount: 5,
        Entries: [
          ...[failed('MalformedDetail'), failed('InternalFailure'), ACCEPTED, failed('ThrottlingException')],
          ...[failed('NotAuthorizedForSourceException'), failed('NeverHeardOf')],
        ],
      },
    });
    expect(await sink.deliver(await someDeliveries(7))).toEqual([
      { kind: 'rejected', reason: 'EventBridge rejected the request as invalid (MalformedDetail).' },
      { kind: 'retry', reason: 'EventBridge failed (InternalFailure).' },
      { kind: 'delivered' },
      { kind: 'retry', reason: 'EventBridge throttles requests (Throttling).' },
      {
        kind: 'retry',
        reason: 'Jobwire has no permission to publish to the event bus (NotAuthorizedForSource).',
      },
      { kind: 'retry', reason: 'EventBridge rejected the event (NeverHeardOf).' },
      { kind: 'retry', reason: 'EventBridge returned no outcome for this event.' },
    ]);
  });

  test.each([
    ['AccessDeniedException', 400, 'Jobwire has no permission to publish to the event bus (AccessDenied).'],
    ['ResourceNotFoundException', 400, 'The event bus does not exist (ResourceNotFound).'],
    ['InternalException', 500, 'EventBridge failed (Internal).'],
  ])('a call that fails with %s makes the sink wait, with a reason', async (code, status, reason) => {
    wire.answer = () => ({ status, body: { __type: code, message: 'of 111122223333' } });
    expect(await sink.deliver(await someDeliveries(2))).toEqual([
      { kind: 'retry', reason },
      { kind: 'retry', reason },
    ]);
    expect(wire.calls).toHaveLength(1);
  });

  test('after partial failures only the failed events are put again, in order per job, and none is missing', async () => {
    const rig = await createDeliveryRig(delivered);
    await rig.say(['a', 'b', 'c'].flatMap((to) => [1, 2, 3, 4].map((job) => moved(job, to))));
    const accepted: { job: string; sequence: number }[] = [];
    let turn = 0;
    wire.answer = (entries) => ({
      body: {
        Entries: entries.map(({ Detail }) => {
          turn += 1;
          if (turn % 3 === 0) return { ErrorCode: 'ThrottlingException' };
          const { jobNumber, event } = JSON.parse(Detail) as {
            jobNumber: string;
            event: { sequence: string };
          };
          accepted.push({ job: jobNumber, sequence: Number(event.sequence) });
          return ACCEPTED;
        }),
      },
    });
    let outcome: string | undefined;
    for (let drain = 0; drain < 30 && outcome !== 'drained'; drain += 1) {
      rig.state.now += 3_600_000;
      const deps = { ...rig.deps, open: async () => sink };
      ({ outcome } = await drainSink(deps, REGION, 'erp', rig.state.now + 60_000));
    }
    expect(outcome).toBe('drained');
    expect(turn).toBeGreaterThan(12);
    expect(accepted.map(({ sequence }) => sequence).sort((a, b) => a - b)).toEqual(
      Array.from({ length: 12 }, (_, at) => at + 1),
    );
    for (const job of ['1', '2', '3', '4']) {
      const sequences = accepted.filter((one) => one.job === job).map(({ sequence }) => sequence);
      expect(sequences).toEqual([...sequences].sort((a, b) => a - b));
    }
  });
});

describe('docs/eventbridge.md', () => {
  const blocks = [...readFileSync('docs/eventbridge.md', 'utf8').matchAll(/```json\n([\s\S]*?)```/g)].map(
    ([, json = '']) => JSON.parse(json) as Record<string, unknown>,
  );

  test('its event patterns select the documented events', async () => {
    const patterns = blocks.filter(
      (block) => typeof block.source !== 'string' && ('detail' in block || 'detail-type' in block),
    );
    const types = [
      'job.dispatched',
      'job.line_status_changed',
      'order_group.dispatched',
      'account.baselined',
    ];
    for (const account of ['acme', 'zeta', 'other']) {
      const jobs = [
        withJob(moved(1, 'Shipped'), { orderNumber: 'PO-2281' }),
        withJob(moved(2, 'Printing'), { orderNumber: 'PO-2281' }),
      ];
      Object.assign(jobs[0]?.data ?? {}, { late: account === 'zeta' });
      const rest = [draft('order_group.dispatched', { orderGroup: 'G' }), draft('account.baselined', {})];
      const deliveries = await readDeliveries([...jobs, ...rest], { region: REGION, account });
      await sink.deliver(
        deliveries.map(({ event }, at) => ({ event: { ...event, type: types[at] ?? event.type } })),
      );
    }
    const events = wire.calls.flat().map(({ Source, DetailType, Detail }) => ({
      ...{ source: Source, 'detail-type': DetailType, detail: JSON.parse(Detail) as { accountId: string } },
    }));
    const selected = patterns.map((pattern) =>
      events
        .filter((event) => matches(pattern, event))
        .map((event) => `${event.detail.accountId} ${event['detail-type']}`)
        .sort(),
    );
    const forAllAccounts = (type: string) => ['acme', 'other', 'zeta'].map((account) => `${account} ${type}`);
    expect(selected).toEqual([
      ['acme', 'zeta'].flatMap((account) => [
        `${account} job.dispatched`,
        `${account} order_group.dispatched`,
      ]),
      forAllAccounts('job.dispatched'),
      forAllAccounts('job.dispatched'),
      forAllAccounts('account.baselined'),
      ['zeta job.dispatched'],
    ]);
  });

  test('its example has the fields of an event on the bus', async () => {
    const job = { orderNumber: 'PO-2281', orderGroup: 'SPRING-38', originCode: 'SHOP' };
    await sink.deliver(await readDeliveries([withJob(moved(4711, 'Shipped'), job)]));
    const example = blocks.find(({ source }) => source === 'jobwire');
    const detail = JSON.parse(wire.calls[0]?.[0]?.Detail ?? '') as Record<string, unknown>;
    expect(Object.keys(example?.detail ?? {})).toEqual(Object.keys(detail));
    expect({ ...(example?.detail as object), type: detail.type, event: detail.event }).toEqual(detail);
  });
});

/** Matches an event pattern of EventBridge: values, `prefix`, `exists` and `anything-but`. */
function matches(pattern: unknown, value: unknown): boolean {
  if (!Array.isArray(pattern)) {
    return Object.entries(pattern as object).every(([name, inner]) =>
      matches(inner, (value as Record<string, unknown> | undefined)?.[name]),
    );
  }
  return pattern.some((rule: unknown) => {
    if (typeof rule !== 'object' || rule === null) return rule === value;
    if ('exists' in rule) return rule.exists === (value !== undefined);
    if (value === undefined) return false;
    if ('prefix' in rule) return String(value).startsWith(String(rule.prefix));
    if ('anything-but' in rule) return !(rule['anything-but'] as unknown[]).includes(value);
    throw new Error(`Unknown rule ${JSON.stringify(rule)}.`);
  });
}

async function readDeliveries(
  drafts: EventDraft[],
  ref: AccountRef = { region: REGION, account: 'acme' },
): Promise<Delivery[]> {
  const rig = await createDeliveryRig(delivered, { accounts: [ref.account] });
  await rig.say(drafts, ref);
  const page = await rig.log.read(ref, 0, 500);
  if (page?.kind !== 'events') throw new Error('There are no events.');
  return page.events.map((event) => ({ event }));
}

function withJob(event: EventDraft, job: Record<string, unknown>): EventDraft {
  const data = event.data as { job: object };
  return { ...event, data: { ...data, job: { ...data.job, ...job } } } as EventDraft;
}

function draft(type: string, data: object): EventDraft {
  return { type, time: Date.parse('2026-03-02T08:00:00Z'), data } as EventDraft;
}
