/** Logs, a sink with configurable answers, and receivers on loopback. */
import { randomBytes, randomUUID } from 'node:crypto';
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished } from 'vitest';
import { drainSink } from '../../shared/delivery/drain.ts';
import type { DrainDeps } from '../../shared/delivery/drain-deps.ts';
import {
  type Delivery,
  type DeliveryOutcome,
  type EventFilter,
  registerSink,
  type SinkPort,
  type SinkRecord,
  toSink,
} from '../../shared/delivery/sink.ts';
import { wakeSinks } from '../../shared/delivery/wakes.ts';
import { catalogue, type EventType } from '../../shared/events/catalogue.ts';
import type { EventDraft } from '../../shared/events/event.ts';
import { createEventLog, type LoggedEvent } from '../../shared/log/log.ts';
import { type AccountRef, cellLog, drainDue, keys } from '../../shared/storage/schema.ts';
import { createMemoryTable } from '../../shared/storage/sqlite-table.ts';
import type { Table } from '../../shared/storage/table.ts';
import type { End } from './jobwire.ts';

/** The region of these tests. */
export const REGION = 'us';

/** An event about a job; the status distinguishes events. */
export function moved(jobNumber: number, to: string): EventDraft {
  return {
    type: 'job.status_changed',
    jobNumber,
    time: Date.parse('2026-03-02T08:00:00Z'),
    data: {
      job: {
        jobNumber,
        status: to,
        description: '<b>"x"</b>',
        orderNumber: null,
        orderGroup: `G${jobNumber}`,
        orderGroupSequence: null,
        originCode: null,
        dateDue: null,
        mustDate: null,
        dateOut: null,
        tracking: [],
      },
      observed: { at: '2026-03-02T08:00:00.000Z', since: null, view: 'list' },
      changes: { status: { from: null, to } },
    },
  };
}

/** Logs, a sink with configurable answers, and a clock. */
export async function createDeliveryRig(
  answer: (event: LoggedEvent, attempt: number) => DeliveryOutcome | Promise<DeliveryOutcome>,
  options: { accounts?: string[]; maxBatch?: number; table?: Table; record?: Partial<SinkRecord> } = {},
) {
  const state = { now: Date.parse('2026-03-02T08:00:00Z') };
  const table = options.table ?? createMemoryTable();
  const now = () => state.now;
  const log = createEventLog(table, { now, newId: randomUUID, schemaBaseUrl: 'https://jobwire.example' });
  const refs = (options.accounts ?? ['acme']).map((account): AccountRef => ({ region: REGION, account }));
  for (const ref of [...refs, cellLog(REGION)]) await table.transact([log.start(ref, 'e1')], randomUUID());
  const record: SinkRecord = {
    region: REGION,
    id: 'erp',
    kind: 'webhook',
    target: 'http://127.0.0.1/',
    accounts: [],
    types: [],
    paused: false,
    ...options.record,
  };
  await registerSink(table, log, record, refs);
  const got: LoggedEvent[] = [];
  /** The ids of events delivered as a replay. */
  const replays: string[] = [];
  const attempts = new Map<string, number>();
  const batches: LoggedEvent[][] = [];
  const port: { -readonly [K in keyof SinkPort]: SinkPort[K] } = {
    maxBatch: options.maxBatch ?? 1,
    async deliver(deliveries) {
      batches.push(deliveries.map(({ event }) => event));
      return Promise.all(
        deliveries.map(async ({ event, replay: replayed }) => {
          const attempt = (attempts.get(event.id) ?? 0) + 1;
          attempts.set(event.id, attempt);
          const outcome = await answer(event, attempt);
          if (replayed) replays.push(event.id);
          else if (outcome.kind === 'delivered') got.push(event);
          return outcome;
        }),
      );
    },
  };
  const deps: DrainDeps = {
    table,
    log,
    now,
    newId: randomUUID,
    random: () => 0.5,
    retrySeconds: [5, 300, 1800],
    open: async () => port,
  };
  return {
    state,
    table,
    log,
    refs,
    got,
    replays,
    batches,
    port,
    attempts: (id: string) => attempts.get(id) ?? 0,
    deps,
    /** The stored sink. */
    async sink() {
      const item = await table.get(keys.sink(REGION, 'erp'));
      if (!item) throw new Error('There is no sink.');
      return toSink(item);
    },
    /** The cell's own log: type and data. */
    async readCellLog() {
      const page = await log.read(cellLog(REGION), 0, 500);
      if (page?.kind !== 'events') throw new Error('The cell has no log.');
      return page.events.map(({ json }) => {
        const { type, data } = JSON.parse(json);
        expect(catalogue[type as EventType].data().parse(data)).toEqual(data);
        return { type, ...data };
      });
    },
    /** Starts a replay of an account's log, like its use-case. */
    async replay(id: string, position: number, end: number, filter: EventFilter = {}, account = 'acme') {
      await table.write({ put: { ...keys.replay(REGION, 'erp', id), filter: JSON.stringify(filter) } });
      const key = keys.replayCursor(REGION, 'erp', account, id);
      const due = drainDue(REGION, 'erp', key.sk, state.now);
      await table.write({ put: { ...key, sink: 'erp', replay: id, position, end, ...due } });
      return async () => table.get(key);
    },
    /** Appends events and wakes the sinks, like the stream. */
    async say(events: EventDraft[], ref: AccountRef | undefined = refs[0]) {
      if (!ref) throw new Error('There is no account.');
      const appended = await log.append(ref, events);
      if (appended.kind !== 'appended') throw new Error('The events were rejected.');
      return wakeSinks(table, ref, appended.head.sequence, state.now);
    },
    async drain(deadline = state.now + 60_000) {
      state.now += 1;
      return drainSink(deps, REGION, 'erp', deadline);
    },
    async position(account = 'acme') {
      const item = await table.get(keys.cursor(REGION, 'erp', account));
      return { position: item?.position, due: item?.dueSk !== undefined };
    },
  };
}

/** The answer of a sink that accepts everything. */
export const delivered = (): DeliveryOutcome => ({ kind: 'delivered' });

/** Whether the delivered events are in order of sequence within each job. */
export function inOrderPerJob(events: readonly LoggedEvent[]): boolean {
  const last = new Map<string, number>();
  return events.every((event) => {
    const lane = `${event.account}/${event.jobNumber}`;
    const ordered = event.sequence > (last.get(lane) ?? 0);
    last.set(lane, event.sequence);
    return ordered;
  });
}

/** A request to a receiver. */
export interface Received {
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** A receiver on loopback with configurable answers. */
export async function startReceiver(
  answer: (request: Received, at: number) => { status: number; headers?: Record<string, string> },
  end: End = onTestFinished,
) {
  const requests: Received[] = [];
  const server: Server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const seen = { headers: request.headers, body: Buffer.concat(chunks).toString() };
      const { status, headers } = answer(seen, requests.push(seen));
      response.writeHead(status, headers).end('a body of some length');
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  end(() => {
    server.closeAllConnections();
    return new Promise<void>((resolve) => server.close(() => resolve()));
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`, requests };
}

/** A signing secret. */
export const newSecret = () => `whsec_${randomBytes(32).toString('base64')}`;

/** Events of as many jobs, as deliveries. */
export async function someDeliveries(count: number): Promise<Delivery[]> {
  const rig = await createDeliveryRig(delivered);
  await rig.say(Array.from({ length: count }, (_, at) => moved(at + 1, `s${at}`)));
  const page = await rig.log.read({ region: REGION, account: 'acme' }, 0, count);
  if (page?.kind !== 'events') throw new Error('There are no events.');
  return page.events.map((event) => ({ event }));
}
