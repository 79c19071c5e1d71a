/** Shared parts of the delivery benchmarks: a log with a backlog, its sinks, drains, and the bare loop for comparison. */
import { createHmac, createSecretKey, randomUUID } from 'node:crypto';
import { Agent, request } from 'node:http';
import { createTables, historyTableName } from '../local/dynamo-tables.ts';
import { createDeliveryLog, type DeliveryEntry, type DeliveryLog } from '../shared/delivery/delivery-log.ts';
import { drainSink } from '../shared/delivery/drain.ts';
import type { DrainDeps, DrainReport } from '../shared/delivery/drain-deps.ts';
import { MAX_LANES } from '../shared/delivery/lanes.ts';
import { type ConnectionPool, createConnectionPool } from '../shared/delivery/outbound.ts';
import { registerSink, type SinkRecord } from '../shared/delivery/sink.ts';
import { createWebhookSink } from '../shared/delivery/webhook.ts';
import { type EventDraft, toEvent } from '../shared/events/event.ts';
import { createEventLog, type EventLog, shareReads } from '../shared/log/log.ts';
import { createDynamoTable } from '../shared/storage/dynamo-table.ts';
import { cellLog, drainDue, historySchema, keys } from '../shared/storage/schema.ts';
import type { Item, Table } from '../shared/storage/table.ts';
import { startDynamo } from '../test/support/dynoxide.ts';

/** Account whose log is delivered. */
export const ACCOUNT = { region: 'us', account: 'bench' };
/** Signing secret. */
export const SECRET = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
const EPOCH = 'bench';
const RETENTION_MS = 90 * 86_400_000;
const SCHEMA_BASE_URL = 'http://bench';
/** Number of jobs of the backlog's events. */
const JOBS = 400;
const CONCURRENCY = 16;
const LOG_BATCH = 25;
const SEED_BATCH = 500;
const FOR_EVER = 600_000;

/** A log of one account and what drains need. */
export interface Wire {
  readonly table: Table;
  readonly log: EventLog;
  readonly deliveries: DeliveryLog;
  readonly connections: ConnectionPool;
  readonly now: () => number;
}

/** Creates a wire on the tables of a client. */
export function createWire(client: Parameters<typeof createDynamoTable>[0], { now = Date.now } = {}): Wire {
  const table = createDynamoTable(client, { tableName: 'bench' });
  const history = createDynamoTable(client, {
    tableName: historyTableName('bench'),
    schema: historySchema,
  });
  return {
    ...{ table, now },
    log: shareReads(createEventLog(table, { now, newId: randomUUID, schemaBaseUrl: SCHEMA_BASE_URL })),
    deliveries: createDeliveryLog(history, { newId: randomUUID }),
    connections: createConnectionPool({ allowPrivateNetworks: true }),
  };
}

/** Creates empty tables in memory, in a separate process. */
export async function startTables() {
  const dynamo = await startDynamo({});
  const client = dynamo.client();
  await createTables(client, 'bench');
  return { endpoint: dynamo.endpoint, client, stop: () => dynamo.stop() };
}

/** Creates the logs with a backlog of events, stored in the log's format. */
export async function fill({ table, log }: Wire, events: number): Promise<void> {
  for (const ref of [ACCOUNT, cellLog(ACCOUNT.region)]) {
    await table.transact([log.start(ref, EPOCH)], randomUUID());
  }
  const time = Date.now();
  for (let first = 1; first <= events; first += SEED_BATCH) {
    const size = Math.min(SEED_BATCH, events + 1 - first);
    await table.putMany(Array.from({ length: size }, (_, at) => toItem(first + at, time)));
  }
  await table.write({
    update: keys.head(ACCOUNT),
    set: { sequence: events, eventsExpireAt: time + RETENTION_MS },
  });
}

/** Registers a due sink at a position of a log of the given length. */
export async function addSink(
  { table, log, now }: Wire,
  id: string,
  target: string,
  events: number,
  position = 0,
): Promise<void> {
  const { region } = ACCOUNT;
  const record: SinkRecord = {
    ...{ region, id, target, kind: 'webhook', accounts: [], types: [], paused: false },
  };
  const due = drainDue(region, id, ACCOUNT.account, now());
  await table.write({
    put: { ...keys.cursor(region, id, ACCOUNT.account), sink: id, position, mark: events, ...due },
  });
  await registerSink(table, log, record, []);
}

/** Drains a sink for at most the given time. */
export function drain(wire: Wire, id: string, forMs = FOR_EVER): Promise<DrainReport> {
  const { connections, ...rest } = wire;
  const deps: DrainDeps = {
    ...rest,
    newId: randomUUID,
    random: () => 0.5,
    retrySeconds: [5, 300, 1800],
    open: async ({ target }) =>
      createWebhookSink({
        ...{ url: target, secrets: [SECRET], now: Date.now },
        connections: connections.of(id, MAX_LANES),
      }),
  };
  return drainSink(deps, ACCOUNT.region, id, wire.now() + forMs);
}

/** An event that is POSTed without a log. */
export interface Posted {
  readonly id: string;
  readonly json: string;
  readonly sequence: number;
}

/** Reads events from the beginning of the log. */
export async function readEvents({ log }: Wire, count: number): Promise<Posted[]> {
  const events: Posted[] = [];
  while (events.length < count) {
    const page = await log.read(ACCOUNT, events.length, 500);
    if (page?.kind !== 'events' || page.events.length === 0) throw new Error('The log is too short.');
    events.push(...page.events);
  }
  return events.slice(0, count);
}

/**
 * Performs the minimum work of a delivery: signs and POSTs events in memory with as many connections, and writes each attempt to the
 * delivery log in the same batches. Without order and cursors.
 */
export function createBareLoop(
  { deliveries }: Wire,
  url: string,
): (events: readonly Posted[]) => Promise<void> {
  const agent = new Agent({ keepAlive: true, maxSockets: CONCURRENCY });
  const key = createSecretKey(Buffer.from(SECRET.slice('whsec_'.length), 'base64'));
  const { hostname, port, pathname: path } = new URL(url);

  function post({ id, json }: Posted): Promise<number> {
    const timestamp = String(Math.floor(Date.now() / 1000));
    const signature = createHmac('sha256', key).update(`${id}.${timestamp}.${json}`).digest('base64');
    const headers = {
      'content-type': 'application/cloudevents+json; charset=utf-8',
      'webhook-id': id,
      'webhook-timestamp': timestamp,
      'webhook-signature': `v1,${signature}`,
    };
    return new Promise((resolve, reject) => {
      const sent = request({ agent, hostname, port, path, headers, method: 'POST' }, (answer) => {
        answer.resume();
        answer.on('end', () => resolve(answer.statusCode ?? 0));
      });
      sent.on('error', reject);
      sent.end(json);
    });
  }

  return async (events) => {
    let next = 0;
    let attempts: DeliveryEntry[] = [];
    const writes: Promise<void>[] = [];
    const lane = async (): Promise<void> => {
      for (let event = events[next]; event; event = events[next]) {
        next += 1;
        const at = Date.now();
        const status = await post(event);
        attempts.push({
          ...{
            ...ACCOUNT,
            sink: 'bare',
            eventId: event.id,
            type: 'job.status_changed',
            sequence: event.sequence,
          },
          ...{ jobNumber: toJobNumber(event.sequence), at, latencyMs: Date.now() - at, outcome: 'delivered' },
          ...{ status, excerpt: '', cause: 'live' },
        });
        if (attempts.length < LOG_BATCH) continue;
        writes.push(deliveries.record(attempts));
        attempts = [];
      }
    };
    await Promise.all(Array.from({ length: CONCURRENCY }, lane));
    writes.push(deliveries.record(attempts));
    await Promise.all(writes);
  };
}

/** Returns the duration of an action in seconds, and its result. */
export async function timed<T>(
  work: () => Promise<T>,
): Promise<{ readonly seconds: number; readonly result: T }> {
  globalThis.gc?.();
  const start = performance.now();
  const result = await work();
  return { seconds: (performance.now() - start) / 1000, result };
}

/** Returns the job of an event of the backlog. */
export function toJobNumber(sequence: number): number {
  return 100_000 + (sequence % JOBS);
}

/** Returns an event of typical size that is not yet in a log. */
export function toDraft(
  jobNumber: number,
  time: number,
  orderNumber = `PO-${jobNumber}`,
): Extract<EventDraft, { type: 'job.status_changed' }> {
  return {
    ...{ type: 'job.status_changed', jobNumber, time },
    data: {
      job: {
        ...{ jobNumber, status: 'In production', description: `Order ${jobNumber} of the spring collection` },
        ...{ orderNumber, orderGroup: `G-${jobNumber % 50}`, orderGroupSequence: 1 },
        ...{ originCode: 'WEB', dateDue: '2026-04-01', mustDate: null, dateOut: null, tracking: [] },
      },
      observed: {
        at: new Date(time).toISOString(),
        since: new Date(time - 60_000).toISOString(),
        view: 'list',
      },
      changes: { status: { from: 'Prepress', to: 'In production' } },
    },
  };
}

/** Returns a dispatch that is not yet in a log. */
export function toDispatch(jobNumber: number, time: number, orderGroup: string | null = null): EventDraft {
  const at = new Date(time).toISOString();
  const order = orderGroup ?? jobNumber;
  return {
    ...{ type: 'job.dispatched', jobNumber, time },
    data: {
      job: {
        ...{ jobNumber, status: null, description: '500 flyers', orderNumber: `PO-${order}`, orderGroup },
        ...{ orderGroupSequence: null, originCode: null, dateDue: null, mustDate: null, dateOut: at },
        tracking: [{ number: `1Z${order}`, link: `https://carrier.example/1Z${order}` }],
      },
      observed: { at, since: null, view: 'list' },
      changes: {},
    },
  } as EventDraft;
}

/** Returns an event of typical size, as the log stores it. */
function toItem(sequence: number, time: number): Item {
  const jobNumber = toJobNumber(sequence);
  const draft = toDraft(jobNumber, time);
  const event = toEvent(draft, ACCOUNT, { epoch: EPOCH, sequence }, { schemaBaseUrl: SCHEMA_BASE_URL });
  return {
    ...keys.event(ACCOUNT, sequence),
    ...{ id: event.id, type: event.type, jobNumber, time, event: JSON.stringify(event) },
    ...{ expiresAt: time + RETENTION_MS, ttl: Math.ceil((time + RETENTION_MS) / 1000) },
  };
}
