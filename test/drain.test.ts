import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { drainSink } from '../shared/sinks/drain.ts';
import {
  dueSinks,
  leftoverWakes,
  listSinks,
  registerSink,
  type SinkRecord,
  wakeSinks,
} from '../shared/sinks/sink.ts';
import { createMemoryTable } from '../shared/table/memory-table.ts';
import { keys } from '../shared/table/schema.ts';
import type { Table } from '../shared/table/table.ts';
import { createDeliveryRig, delivered, inOrderPerJob, moved, REGION } from './support/delivery.ts';

describe('cursor engine', () => {
  test('every event arrives, those of one job in order, and the cursor ends at the head, no longer due', async () => {
    const rig = await createDeliveryRig(async (event) => {
      // Answers come back in another order than they were asked for.
      for (let turn = 0; turn < (event.sequence * 7) % 5; turn += 1) await Promise.resolve();
      return { kind: 'delivered' };
    });
    const events = Array.from({ length: 450 }, (_, at) => moved(1 + (at % 7), `s${at}`));
    for (let at = 0; at < events.length; at += 90) await rig.say(events.slice(at, at + 90));
    expect(await rig.drain()).toMatchObject({ outcome: 'drained', delivered: 450, failed: 0 });
    expect(rig.got.map(({ sequence }) => sequence).sort((a, b) => a - b)).toEqual(
      Array.from({ length: 450 }, (_, at) => at + 1),
    );
    expect(inOrderPerJob(rig.got)).toBe(true);
    expect(await rig.position()).toEqual({ position: 450, due: false });
    expect(await rig.drain()).toMatchObject({ outcome: 'drained', delivered: 0 });
  });

  test('at most 16 events are under way at once, never two of one job', async () => {
    let most = 0;
    const underWay = new Set<string>();
    const rig = await createDeliveryRig(async (event) => {
      const lane = String(event.jobNumber);
      expect(underWay.has(lane)).toBe(false);
      underWay.add(lane);
      most = Math.max(most, underWay.size);
      for (let turn = 0; turn < 10; turn += 1) await Promise.resolve();
      underWay.delete(lane);
      return { kind: 'delivered' };
    });
    await rig.say(Array.from({ length: 90 }, (_, at) => moved(1 + (at % 30), `s${at}`)));
    await rig.drain();
    expect(most).toBe(16);
  });

  test('a batch holds at most one event per job', async () => {
    const rig = await createDeliveryRig(delivered, { maxBatch: 10 });
    await rig.say(Array.from({ length: 60 }, (_, at) => moved(1 + (at % 12), `s${at}`)));
    await rig.drain();
    expect(rig.got).toHaveLength(60);
    expect(Math.max(...rig.batches.map((batch) => batch.length))).toBe(10);
    for (const batch of rig.batches) {
      expect(new Set(batch.map(({ jobNumber }) => jobNumber)).size).toBe(batch.length);
    }
  });

  test('when the sink fails it waits, loses nothing, and goes on where it stood with one probe before full speed', async () => {
    let down = true;
    let underWay = 0;
    let most = 0;
    const rig = await createDeliveryRig(async (event) => {
      underWay += 1;
      most = Math.max(most, underWay);
      for (let turn = 0; turn < 5; turn += 1) await Promise.resolve();
      underWay -= 1;
      return down && event.sequence >= 5 ? { kind: 'retry', reason: 'down' } : { kind: 'delivered' };
    });
    await rig.say(Array.from({ length: 40 }, (_, at) => moved(at, 'x')));
    expect(await rig.drain()).toMatchObject({
      outcome: 'waiting',
      delivered: 4,
      waitUntil: rig.state.now + 5_000,
    });
    expect(await rig.position()).toEqual({ position: 4, due: true });

    expect(await rig.drain(), 'before its time').toMatchObject({ outcome: 'busy' });
    rig.state.now += 5_000;
    most = 0;
    const probe = await rig.drain();
    expect(probe).toMatchObject({ outcome: 'waiting', delivered: 0, failed: 1 });
    expect(most, 'one probe').toBe(1);
    expect(probe.waitUntil, 'the second wait of the schedule').toBe(rig.state.now + 300_000);

    down = false;
    rig.state.now += 300_000;
    expect(await dueSinks(rig.table, REGION, rig.state.now)).toEqual(['erp']);
    most = 0;
    expect(await rig.drain()).toMatchObject({ outcome: 'drained', delivered: 36 });
    expect(most, 'full speed after the probe').toBe(16);
    expect(inOrderPerJob(rig.got)).toBe(true);
    const [sink] = await listSinks(rig.table, REGION);
    expect(sink?.health).toEqual({ failures: 0, waitUntil: 0, problem: null });
  });

  test('a Retry-After longer than the schedule is honoured, one of years is not', async () => {
    let afterMs = 60_000;
    const rig = await createDeliveryRig(() => ({ kind: 'retry', reason: 'busy', afterMs }));
    await rig.say([moved(1, 'x')]);
    expect((await rig.drain()).waitUntil).toBe(rig.state.now + 60_000);
    afterMs = 1e12;
    rig.state.now += 60_000;
    expect((await rig.drain()).waitUntil).toBe(rig.state.now + 86_400_000);
  });

  test('a refused event is never skipped: the sink waits', async () => {
    const rig = await createDeliveryRig((event) =>
      event.sequence === 2
        ? { kind: 'rejected', reason: 'The endpoint answered 422.' }
        : { kind: 'delivered' },
    );
    await rig.say([moved(1, 'a'), moved(2, 'b'), moved(2, 'c')]);
    expect(await rig.drain()).toMatchObject({ outcome: 'waiting', problem: 'The endpoint answered 422.' });
    expect(await rig.position()).toEqual({ position: 1, due: true });
    expect(rig.got.map(({ sequence }) => sequence)).not.toContain(3);
  });

  test('types and accounts that a sink does not follow are passed over, and its cursor still reaches the head', async () => {
    const rig = await createDeliveryRig(delivered, {
      accounts: ['acme', 'other'],
      record: { accounts: ['acme'], types: ['job.disp*', 'account.baselined'] },
    });
    await rig.say([moved(1, 'a'), { type: 'account.baselined', time: 0, data: { openJobs: 1 } }]);
    expect(await rig.say([moved(1, 'a')], rig.refs[1])).toEqual([]);
    expect(await rig.drain()).toMatchObject({ delivered: 1, skipped: 1 });
    expect(await rig.position()).toEqual({ position: 2, due: false });
    expect(await rig.table.get(keys.cursor(REGION, 'erp', 'other'))).toBeUndefined();
  });

  test('a new sink starts at the head of known accounts, and at the beginning of later ones', async () => {
    const rig = await createDeliveryRig(delivered);
    await rig.say([moved(1, 'a'), moved(1, 'b')]);
    const late: SinkRecord = {
      region: REGION,
      id: 'late',
      kind: 'webhook',
      target: 'http://127.0.0.1/',
      accounts: [],
      types: [],
      paused: false,
    };
    await registerSink(rig.table, rig.log, late, rig.refs);
    const newcomer = { region: REGION, account: 'newcomer' };
    await rig.table.transact([rig.log.start(newcomer, 'e1')], randomUUID());
    await rig.say([moved(9, 'first')], newcomer);
    await rig.say([moved(1, 'c')]);
    rig.state.now += 1;
    await drainSink(rig.deps, REGION, 'late', rig.state.now + 60_000);
    expect(rig.got.map(({ id }) => id).sort()).toEqual(['acme.e1.3', 'newcomer.e1.1']);
  });

  test('a paused sink gets nothing and keeps its place', async () => {
    const rig = await createDeliveryRig(delivered);
    await rig.table.write({ update: keys.sink(REGION, 'erp'), set: { paused: true } });
    expect(await rig.say([moved(1, 'a')])).toEqual([]);
    expect(await rig.drain()).toMatchObject({ outcome: 'busy' });
    await rig.table.write({ update: keys.sink(REGION, 'erp'), set: { paused: false } });
    expect(await rig.drain()).toMatchObject({ outcome: 'drained', delivered: 1 });
  });

  test('while one drain holds the lease another does nothing; a lease that ran out is taken over', async () => {
    let release: (() => void) | undefined;
    const rig = await createDeliveryRig(
      () =>
        new Promise((resolve) => {
          release = () => resolve({ kind: 'delivered' });
        }),
    );
    await rig.say([moved(1, 'a')]);
    const first = rig.drain();
    while (!release) await Promise.resolve();
    const finishFirst = release;
    expect(await rig.drain()).toMatchObject({ outcome: 'busy' });

    rig.state.now += 90_000;
    release = undefined;
    const second = rig.drain();
    while (!release) await Promise.resolve();
    (release as () => void)();
    expect(await second).toMatchObject({ outcome: 'drained', delivered: 1 });
    const fence = async () => (await rig.table.get(keys.cursor(REGION, 'erp', 'acme')))?.fence;
    const fenceOfSecond = await fence();
    await rig.say([moved(1, 'b')]);
    // The first wakes up with a lease that is no longer its own: it must not touch what the second has done.
    finishFirst();
    await first;
    expect(await rig.position()).toEqual({ position: 1, due: true });
    expect(await fence()).toBe(fenceOfSecond);
  });

  test('a drain stops before its time is up and leaves the rest due', async () => {
    const rig = await createDeliveryRig(() => {
      rig.state.now += 1_000;
      return { kind: 'delivered' };
    });
    for (let at = 0; at < 5; at += 1) {
      await rig.say(Array.from({ length: 80 }, (_, n) => moved(1, `${at}-${n}`)));
    }
    const report = await rig.drain(rig.state.now + 10_000);
    expect(report.outcome).toBe('more');
    expect(report.delivered).toBeLessThan(20);
    expect(await rig.position()).toEqual({ position: report.delivered, due: true });
    while ((await rig.drain()).outcome === 'more');
    expect(rig.got.map(({ sequence }) => sequence)).toEqual(Array.from({ length: 400 }, (_, at) => at + 1));
  });

  test('an account with a long backlog does not keep others waiting', async () => {
    const rig = await createDeliveryRig(delivered, { accounts: ['hot', 'calm'] });
    for (let at = 0; at < 10; at += 1) {
      await rig.say(
        Array.from({ length: 90 }, (_, n) => moved(n % 3, `${at}-${n}`)),
        rig.refs[0],
      );
    }
    await rig.say([moved(1, 'calm')], rig.refs[1]);
    await rig.drain();
    expect(rig.got.findIndex(({ account }) => account === 'calm')).toBeLessThan(40);
    expect(rig.got).toHaveLength(901);
  });

  test('a wake-up that is lost is made good by the next tick, one that comes twice does nothing', async () => {
    const rig = await createDeliveryRig(delivered);
    const [ref] = rig.refs;
    if (!ref) throw new Error('There is no account.');
    await rig.log.append(ref, [moved(1, 'a')]);
    const [left] = await leftoverWakes(rig.table, REGION, 10);
    expect(left).toEqual({ ref, sequence: 1 });
    await wakeSinks(rig.table, ref, 1, rig.state.now);
    await wakeSinks(rig.table, ref, 1, rig.state.now);
    expect(await leftoverWakes(rig.table, REGION, 10)).toEqual([]);
    await rig.drain();
    await wakeSinks(rig.table, ref, 1, rig.state.now);
    expect(await rig.position()).toEqual({ position: 1, due: false });
    expect(rig.got).toHaveLength(1);
  });

  test('a wake mark for events that came later is not deleted by an earlier wake-up', async () => {
    const rig = await createDeliveryRig(delivered);
    const [ref] = rig.refs;
    if (!ref) throw new Error('There is no account.');
    await rig.log.append(ref, [moved(1, 'a')]);
    await rig.log.append(ref, [moved(1, 'b')]);
    await wakeSinks(rig.table, ref, 1, rig.state.now);
    expect(await leftoverWakes(rig.table, REGION, 10)).toEqual([{ ref, sequence: 2 }]);
  });

  test('events that come while a window is delivered are delivered in the same drain', async () => {
    let said = false;
    const rig = await createDeliveryRig(async () => {
      if (!said) {
        said = true;
        await rig.say([moved(2, 'meanwhile')]);
      }
      return { kind: 'delivered' };
    });
    await rig.say([moved(1, 'a')]);
    expect(await rig.drain()).toMatchObject({ outcome: 'drained', delivered: 2 });
    expect(await rig.position()).toEqual({ position: 2, due: false });
  });

  test('what fell out of retention is passed over, the rest is delivered', async () => {
    const rig = await createDeliveryRig(delivered);
    await rig.say([moved(1, 'old')]);
    rig.state.now += 91 * 86_400_000;
    await rig.say([moved(1, 'new')]);
    await rig.drain();
    expect(rig.got.map(({ sequence }) => sequence)).toEqual([2]);
  });

  test('whatever the sink answers, and wherever a drain crashes: every event arrives, in order per job, the cursor never ahead', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.integer({ min: 1, max: 5 }), { minLength: 1, maxLength: 60 }),
        fc.array(fc.constantFrom('ok', 'ok', 'ok', 'retry', 'rejected', 'throw'), { maxLength: 40 }),
        fc.array(fc.integer({ min: 1, max: 40 }), { maxLength: 6 }),
        async (jobs, answers, crashes) => {
          const memory = createMemoryTable();
          let writesLeft = Number.POSITIVE_INFINITY;
          const table: Table = {
            ...memory,
            async write(write) {
              writesLeft -= 1;
              if (writesLeft < 0) throw new Error('crash');
              return memory.write(write);
            },
          };
          let asked = 0;
          const rig = await createDeliveryRig(
            () => {
              const answer = answers[asked++] ?? 'ok';
              if (answer === 'throw') throw new Error('receiver');
              return answer === 'ok' ? { kind: 'delivered' } : { kind: answer as 'retry', reason: answer };
            },
            { table },
          );
          for (let at = 0; at < jobs.length; at += 20) {
            await rig.say(jobs.slice(at, at + 20).map((job, n) => moved(job, `${at + n}`)));
          }
          for (const crash of crashes) {
            writesLeft = crash;
            await rig.drain().catch(() => undefined);
            writesLeft = Number.POSITIVE_INFINITY;
            const position = Number((await rig.position()).position);
            const arrived = new Set(rig.got.map(({ sequence }) => sequence));
            for (let sequence = 1; sequence <= position; sequence += 1)
              expect(arrived.has(sequence)).toBe(true);
            rig.state.now += 2_000_000;
          }
          for (let round = 0; round < 50 && (await rig.position()).position !== jobs.length; round += 1) {
            await rig.drain();
            rig.state.now += 2_000_000;
          }
          expect(await rig.position()).toEqual({ position: jobs.length, due: false });
          const first = rig.got.filter((event, at) => rig.got.findIndex(({ id }) => id === event.id) === at);
          expect(first).toHaveLength(jobs.length);
          expect(inOrderPerJob(first)).toBe(true);
        },
      ),
      { numRuns: 150 },
    );
  });
});
