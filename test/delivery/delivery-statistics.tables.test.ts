/** Delivery statistics: counters of several drains, and their windows. */
import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import { createDeliveryLog, type DeliveryLog } from '../../shared/delivery/delivery-log.ts';
import { DeliveryCounter, readDeliveryStatistics } from '../../shared/delivery/delivery-statistics.ts';
import type { DeliveryOutcome, SinkRecord } from '../../shared/delivery/sink.ts';
import { historySchema, keys } from '../../shared/storage/schema.ts';
import { createMemoryTable } from '../../shared/storage/sqlite-table.ts';
import type { Table } from '../../shared/storage/table.ts';
import { createDeliveryRig, moved, REGION } from '../support/delivery-world.ts';
import { eachTable } from '../support/tables.ts';

const NOW = Date.parse('2026-03-02T12:34:56Z');
const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
const ERP = { region: REGION, id: 'erp' };

/** Counts attempts as one drain does, and stores them. */
async function drain(
  history: Table,
  attempts: readonly { at: number; latencyMs?: number; status?: number; failed?: boolean }[],
  endpoint: { region: string; id: string; createdAt?: number } = ERP,
): Promise<void> {
  const counter = new DeliveryCounter(history, endpoint, NOW);
  for (const { at, latencyMs = 20, status, failed = false } of attempts) {
    counter.count({ at, latencyMs, status, outcome: failed ? 'retry' : 'delivered' });
  }
  await counter.store(NOW);
}

eachTable('delivery statistics', (_, _kind, makeTable) => {
  test('add up over drains, by window, without what is before it', async () => {
    const history = await makeTable();
    await drain(history, [{ at: NOW - MINUTE_MS }, { at: NOW - 30 * MINUTE_MS }]);
    await drain(history, [
      { at: NOW - MINUTE_MS, failed: true, status: 503 },
      { at: NOW - 5 * HOUR_MS },
      { at: NOW - 6 * 24 * HOUR_MS, failed: true },
      { at: NOW - 8 * 24 * HOUR_MS },
    ]);
    const read = (window: '1h' | '24h' | '7d') => readDeliveryStatistics(history, ERP, window, NOW);
    const [hour, day, week] = [await read('1h'), await read('24h'), await read('7d')];
    expect([hour, day, week].map(({ total }) => [total.attempts, total.delivered, total.failed])).toEqual([
      [3, 2, 1],
      [4, 3, 1],
      [5, 3, 2],
    ]);
    expect(week.total.failures).toEqual([
      { status: null, count: 1 },
      { status: 503, count: 1 },
    ]);
    expect(day.total.successRate).toBe(0.75);
    expect([hour, day, week].map(({ points }) => points.length)).toEqual([12, 48, 84]);
    for (const { points, total, from, to } of [hour, day, week]) {
      expect(points.reduce((sum, { attempts }) => sum + attempts, 0)).toBe(total.attempts);
      expect([points[0]?.at, to]).toEqual([from, NOW]);
    }
    const latest = hour.points.at(-1);
    expect(latest).toMatchObject({ at: Date.parse('2026-03-02T12:30:00Z'), attempts: 2, successRate: 0.5 });
    expect(hour.points[0]).toMatchObject({ attempts: 0, successRate: null, p50Ms: null, p95Ms: null });
  });

  test('estimate percentiles of the latency of successful attempts', async () => {
    const history = await makeTable();
    const latencies = Array.from({ length: 100 }, (_, at) => (at + 1) * 10);
    await drain(history, [
      ...latencies.map((latencyMs) => ({ at: NOW, latencyMs })),
      { at: NOW, latencyMs: 15_000, failed: true },
    ]);
    const { total } = await readDeliveryStatistics(history, ERP, '1h', NOW);
    expect(total.p50Ms).toBe(500);
    expect(total.p95Ms).toBe(950);
    await drain(
      history,
      Array.from({ length: 300 }, () => ({ at: NOW, latencyMs: 60_000 })),
    );
    const slow = await readDeliveryStatistics(history, ERP, '1h', NOW);
    expect([slow.total.p50Ms, slow.total.p95Ms], 'the lower bound of the last bin').toEqual([15_000, 15_000]);
  });

  test('do not include those of an earlier endpoint of the same id', async () => {
    const history = await makeTable();
    await drain(history, [{ at: NOW }], { ...ERP, createdAt: 1 });
    await drain(history, [{ at: NOW }, { at: NOW }], { ...ERP, createdAt: 2 });
    const read = async (createdAt: number) =>
      (await readDeliveryStatistics(history, { ...ERP, createdAt }, '1h', NOW)).total.attempts;
    expect([await read(1), await read(2)]).toEqual([0, 2]);
  });

  test('are stored after a failure of the table, each attempt once', async () => {
    const history = await makeTable();
    await drain(history, [{ at: NOW }]);
    let isDown = true;
    const write: Table['write'] = async (one) => {
      if (isDown) throw new Error('down');
      return history.write(one);
    };
    const counter = new DeliveryCounter({ ...history, write }, ERP, NOW);
    counter.count({ at: NOW, latencyMs: 5, outcome: 'delivered' });
    await expect(counter.store(NOW)).rejects.toThrow('down');
    isDown = false;
    counter.count({ at: NOW, latencyMs: 5, outcome: 'delivered' });
    await counter.store(NOW);
    await counter.store(NOW);
    expect((await readDeliveryStatistics(history, ERP, '1h', NOW)).total.attempts).toBe(3);
  });
});

/** A rig whose drains record attempts in a history table that counts its writes. */
async function createCountedRig(answer: (job: number) => DeliveryOutcome, record: Partial<SinkRecord> = {}) {
  const inner = createMemoryTable(historySchema);
  const writes: string[] = [];
  const history: Table = {
    ...inner,
    write: async (one) => {
      writes.push('put' in one ? one.put.pk : '');
      return inner.write(one);
    },
  };
  const deliveries: DeliveryLog = createDeliveryLog(history, { newId: randomUUID });
  const rig = await createDeliveryRig(({ jobNumber = 0 }) => answer(jobNumber), { record });
  Object.assign(rig.deps, { deliveries });
  return { ...rig, deliveries, writes, history };
}

test('a drain stores the counters of hundreds of attempts in one write', async () => {
  const rig = await createCountedRig((job) =>
    job % 10 === 0
      ? { kind: 'rejected', reason: 'x', answer: { status: 422, excerpt: '' } }
      : { kind: 'delivered' },
  );
  await rig.say(Array.from({ length: 95 }, (_, at) => moved(at + 1, 'x')));
  await rig.say(Array.from({ length: 95 }, (_, at) => moved(at + 101, 'x')));
  await rig.drain();
  expect(rig.writes).toEqual([keys.deliveryStatistics(REGION, 'erp', 0).pk]);
  const { total } = await rig.deliveries.statistics(ERP, '1h', rig.state.now);
  expect(total).toMatchObject({ attempts: 190, delivered: 172, failed: 18 });
  expect(total.failures).toEqual([{ status: 422, count: 18 }]);
});

test('deliveries to a queue are counted as well', async () => {
  const rig = await createCountedRig(() => ({ kind: 'delivered' }), { kind: 'sqs' });
  await rig.say([moved(1, 'x')]);
  await rig.drain();
  expect((await rig.deliveries.statistics(ERP, '1h', rig.state.now)).total.delivered).toBe(1);
});

test('a delivery does not fail if its counters cannot be stored', async () => {
  const rig = await createCountedRig(() => ({ kind: 'delivered' }));
  Object.assign(rig.history, { write: () => Promise.reject(new Error('down')) });
  await rig.say([moved(1, 'x')]);
  expect(await rig.drain()).toMatchObject({ outcome: 'drained', delivered: 1 });
});
