/**
 * Delivery of a cell in virtual time: the real tick, wake-ups, drains and cell feed on the in-memory table, with production
 * settings. Simulated are the clock, the table's stream, SQS and Lambda (support/virtual-cloud.ts), receivers, and the CPU of each process: its
 * calls take turns. The events arrive at random at the rate of a day in which each account has 150 events in eight hours.
 * `test/tracking/load.test.ts` does the same for polls.
 */
import { expect, test } from 'vitest';
import { createDrainSinkHandler } from '../../functions/handlers/drain-sink.ts';
import type { Send } from '../../functions/handlers/messages.ts';
import { createTickHandler } from '../../functions/handlers/tick.ts';
import { createWakeSinksHandler } from '../../functions/handlers/wake-sinks.ts';
import { readStages } from '../../infra/settings.ts';
import { DRAINS, WAKES } from '../../infra/throughput.ts';
import { registerSink } from '../../shared/delivery/sink.ts';
import { createEventLog, type EventLog } from '../../shared/log/log.ts';
import { cellLog } from '../../shared/storage/schema.ts';
import { createMemoryTable } from '../../shared/storage/sqlite-table.ts';
import type { Table } from '../../shared/storage/table.ts';
import { inOrderPerJob, moved } from '../support/delivery-world.ts';
import { sized } from '../support/runs.ts';
import { createFunction, createQueue, createRandom, createVirtualTime } from '../support/virtual-cloud.ts';

const START = Date.parse('2026-03-02T08:00:00Z');
const MINUTE = 60_000;
const REGION = 'us';
/** CPU time (ms) of a call to an AWS service, on one vCPU: 1,769 MB. */
const CALL_CPU_MS = 1.4;
const VCPU_MB = 1_769;
const drainConcurrency = readStages('jobwire.cells.example.json').find(
  ({ stage }) => stage === 'prod',
)?.drainConcurrency;

test('events of accounts that each have an endpoint, ten thousand at full size, reach it and the topic within a minute, in order per job', async () => {
  const cell = await createCell(sized(60, 10_000));
  const minutes = sized(2, 5);
  // The first tick indexes the endpoints and creates the sink of the topic, which gets later events only.
  const from = START + 3 * MINUTE;
  cell.emit(from, from + minutes * MINUTE, (cell.accounts.length * 150) / (8 * 3_600));
  await cell.time.runUntil(from + (2 + minutes) * MINUTE);
  console.info(cell.summarize());
  expect(cell.faults).toEqual([]);
  expect(cell.lags('endpoint')).toHaveLength(cell.emitted());
  expect(cell.lags('topic')).toHaveLength(cell.emitted());
  expect(percentile(cell.lags('endpoint'), 0.99)).toBeLessThanOrEqual(60_000);
  expect(percentile(cell.lags('topic'), 0.99)).toBeLessThanOrEqual(60_000);
  expect(cell.isInOrder()).toBe(true);
}, 1_800_000);

test('three hundred events per second reach the topic, at full size; each job’s in order', async () => {
  const cell = await createCell(sized(40, 3_000), { hasEndpoints: false });
  const seconds = sized(10, 30);
  cell.emit(START + MINUTE, START + MINUTE + seconds * 1000, sized(30, 300));
  await cell.time.runUntil(START + 3 * MINUTE + seconds * 1000);
  console.info(cell.summarize());
  expect(cell.faults).toEqual([]);
  expect(cell.lags('topic')).toHaveLength(cell.emitted());
  expect(percentile(cell.lags('topic'), 0.99)).toBeLessThanOrEqual(60_000);
  expect(cell.isInOrder()).toBe(true);
}, 1_800_000);

function percentile(values: readonly number[], part: number): number {
  return values.toSorted((a, b) => a - b)[Math.floor(part * (values.length - 1))] ?? 0;
}

async function createCell(size: number, { hasEndpoints = true } = {}) {
  const random = createRandom(7);
  const time = createVirtualTime(START);
  const { now } = time;
  const memory = createMemoryTable();
  let ids = 0;
  const newId = () => String(++ids);
  const sleep = (ms: number) => time.sleep(ms);
  const faults: string[] = [];
  const telemetry = {
    fault: (message: string, cause: unknown) => void faults.push(`${message} ${cause}`),
    drain: () => {},
    attempt: () => {},
    tick: () => {},
  };
  const logOptions = { now, newId, schemaBaseUrl: 'https://us.jobwire.example', sleep, random };
  const createLog = (table: Table): EventLog => createEventLog(table, logOptions);

  /** The calls of a process with this memory: they take turns on its CPU, then wait for the service. */
  function createCpu(memoryMb: number) {
    let freeAt = 0;
    return async (latencyMs: number) => {
      freeAt = Math.max(now(), freeAt) + (CALL_CPU_MS * VCPU_MB) / memoryMb;
      await time.sleep(freeAt - now() + latencyMs);
    };
  }
  function over(table: Table, use: (latencyMs: number) => Promise<void>): Table {
    const reach = async <T>(call: () => Promise<T>): Promise<T> => {
      await use(3 + 6 * random());
      return call();
    };
    return {
      get: (key) => reach(() => table.get(key)),
      getMany: (wanted) => reach(() => table.getMany(wanted)),
      query: (query) => reach(() => table.query(query)),
      putMany: (items) => reach(() => table.putMany(items)),
      write: (write) => reach(() => table.write(write)),
      transact: (writes, token) => reach(() => table.transact(writes, token)),
      units: () => table.units(),
    };
  }

  // Accounts and endpoints

  const setup = createLog(memory);
  const accounts = Array.from({ length: size }, (_, n) => `account-${n}`);
  for (const ref of [cellLog(REGION), ...accounts.map((account) => ({ region: REGION, account }))]) {
    await memory.transact([setup.start(ref, 'e1')], newId());
  }
  for (const account of hasEndpoints ? accounts : []) {
    const record = {
      region: REGION,
      id: `of-${account}`,
      kind: 'webhook' as const,
      target: 'https://x.example/',
    };
    const sink = { ...record, accounts: [account], types: [], paused: false };
    await registerSink(memory, setup, sink, [{ region: REGION, account }]);
  }

  // Drains

  const got: {
    readonly sink: 'topic' | 'endpoint';
    readonly event: Parameters<typeof inOrderPerJob>[0][number];
    readonly at: number;
  }[] = [];
  const drainSink = createFunction({
    ...{ time, random, timeoutSeconds: DRAINS.timeoutSeconds, onEnd: () => {} },
    start() {
      const use = createCpu(DRAINS.memoryMb);
      const table = over(memory, use);
      return createDrainSinkHandler({
        region: REGION,
        telemetry,
        draining: {
          ...{ table, log: createLog(table), now, newId, random, sleep, retrySeconds: [5] },
          open: async ({ kind }) => ({
            maxBatch: kind === 'sns' ? 10 : 1,
            async deliver(deliveries) {
              await use(kind === 'sns' ? 20 + 20 * random() : 80 + 300 * random());
              const sink = kind === 'sns' ? 'topic' : 'endpoint';
              for (const { event } of deliveries) got.push({ sink, event, at: now() });
              return deliveries.map(() => ({ kind: 'delivered' }) as const);
            },
          }),
        },
      });
    },
  });
  const queue = createQueue({
    ...{ time, random, consumer: drainSink, batchSize: DRAINS.batchSize, batchingSeconds: 0 },
    maxConcurrency: drainConcurrency ?? 0,
    visibilitySeconds: DRAINS.timeoutSeconds + 30,
    retentionSeconds: DRAINS.retentionSeconds,
    maxReceiveCount: DRAINS.maxReceiveCount,
  });
  const sendTo =
    (use: (latencyMs: number) => Promise<void>): Send<{ sink: string }> =>
    async (messages) => {
      for (let at = 0; at < messages.length; at += 10) {
        await use(10 + 20 * random());
        for (const message of messages.slice(at, at + 10)) queue.send(JSON.stringify(message), 0);
      }
    };

  // Wake-ups: the stream hands on the marks of a lane in order, one batch at a time

  const wakeUps = Array.from({ length: WAKES.parallelization }, () => {
    const use = createCpu(WAKES.memoryMb);
    const wakeSinks = createWakeSinksHandler({
      ...{ region: REGION, table: over(memory, use), sendDrains: sendTo(use), telemetry, now, sleep },
    });
    let waiting: { account: string; sequence: number }[] = [];
    let isBusy = false;
    async function work(): Promise<void> {
      isBusy = true;
      while (waiting.length > 0) {
        if (waiting.length < WAKES.batchSize) await time.sleep(WAKES.batchingSeconds * 1000);
        const batch = waiting.slice(0, WAKES.batchSize);
        waiting = waiting.slice(batch.length);
        await wakeSinks({
          Records: batch.map(({ account, sequence }, n) => ({
            dynamodb: {
              SequenceNumber: String(n),
              NewImage: { sk: { S: account }, sequence: { N: String(sequence) } },
            },
          })),
        });
      }
      isBusy = false;
    }
    return (account: string, sequence: number) => {
      waiting.push({ account, sequence });
      if (!isBusy) void work();
    };
  });

  // Events

  let emitted = 0;
  const log = createEventLog(memory, {
    ...logOptions,
    onCommitted: ({ account }, sequence) => {
      const lane = Number(account.split('-')[1]) % wakeUps.length;
      wakeUps[lane]?.(account, sequence);
    },
  });

  // Ticks

  const tickCpu = createCpu(1024);
  const tickTable = over(memory, tickCpu);
  const tick = createTickHandler({
    ...{ region: REGION, table: tickTable, log: createLog(tickTable), topicArn: 'arn:of:a:topic' },
    ...{ sendPolls: async () => {}, sendLonePolls: async () => {}, sendDrains: sendTo(tickCpu) },
    ...{ telemetry, now, sleep },
  });
  for (let minute = 0; minute < 30; minute += 1) {
    time.at(START + minute * MINUTE + 5_000 * random(), () => {
      tick({}, { getRemainingTimeInMillis: () => 55_000 }).catch((cause) => faults.push(String(cause)));
    });
  }

  const lags = (sink: 'topic' | 'endpoint') =>
    got.filter((one) => one.sink === sink).map(({ event, at }) => at - event.time);
  return {
    time,
    faults,
    accounts,
    lags,
    emitted: () => emitted,
    /** Emits events of random accounts between two times. */
    emit(from: number, to: number, perSecond: number) {
      for (let at = from - (1000 / perSecond) * Math.log(1 - random()); at < to; ) {
        const account = accounts[Math.floor(random() * accounts.length)] ?? '';
        time.at(at, () => {
          emitted += 1;
          const event = { ...moved(1 + Math.floor(3 * random()), String(emitted)), time: now() };
          log.append({ region: REGION, account }, [event]).catch((cause) => faults.push(String(cause)));
        });
        at -= (1000 / perSecond) * Math.log(1 - random());
      }
    },
    isInOrder: () =>
      (['topic', 'endpoint'] as const).every((sink) =>
        inOrderPerJob(got.filter((one) => one.sink === sink).map(({ event }) => event)),
      ),
    summarize() {
      const describe = (sink: 'topic' | 'endpoint') =>
        `p50 ${percentile(lags(sink), 0.5)} ms, p99 ${percentile(lags(sink), 0.99)} ms, max ${percentile(lags(sink), 1)} ms`;
      return [
        `${size} accounts, ${emitted} events:`,
        `  lag of the topic      ${describe('topic')}`,
        ...(hasEndpoints ? [`  lag of the endpoints  ${describe('endpoint')}`] : []),
        `  drain queue           at most ${queue.longest} messages, ${queue.dead.length} dead`,
      ].join('\n');
    },
  };
}
