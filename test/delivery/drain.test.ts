/**
 * The drain: order, parking, pacing, failing sinks, replays and the lease, on the in-memory table.
 * One file: its tests share one rig, and each file would load the delivery code once more.
 */
import { randomUUID } from 'node:crypto';
import { setImmediate } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import type { DeliveryEntry } from '../../shared/delivery/delivery-log.ts';
import { drainSink } from '../../shared/delivery/drain.ts';
import { toEndpointState } from '../../shared/delivery/endpoint.ts';
import { enableHealth, healthAttributes, isReady } from '../../shared/delivery/health.ts';
import { INITIAL_LANES, SharedRequests } from '../../shared/delivery/lanes.ts';
import {
  discardAllParked,
  discardParked,
  listDeadPage,
  listParked,
  retryParked,
} from '../../shared/delivery/parked-events.ts';
import { getLongestWait } from '../../shared/delivery/parking.ts';
import {
  type DeliveryOutcome,
  listSinks,
  putFollowers,
  registerSink,
  type SinkRecord,
} from '../../shared/delivery/sink.ts';
import { listDueSinks, listPendingWakes, wakeSinks } from '../../shared/delivery/wakes.ts';
import type { EventDraft } from '../../shared/events/event.ts';
import { type AccountRef, keys } from '../../shared/storage/schema.ts';
import { createMemoryTable } from '../../shared/storage/sqlite-table.ts';
import { getKey, type Table } from '../../shared/storage/table.ts';
import { createDeliveryRig, delivered, inOrderPerJob, moved, REGION } from '../support/delivery-world.ts';

const DAY_MS = 86_400_000;

describe('drain', () => {
  test('every event is delivered, those of one job in order, and the cursor ends at the head, no longer due', async () => {
    const rig = await createDeliveryRig(async (event) => {
      // Answers return in another order than the requests.
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

  test('16 events are in progress at first and more while the sink keeps its speed, never two of one job', async () => {
    const counts: number[] = [];
    const underWay = new Set<string>();
    const rig = await createDeliveryRig(async (event) => {
      const lane = String(event.jobNumber);
      expect(underWay.has(lane)).toBe(false);
      underWay.add(lane);
      counts.push(underWay.size);
      for (let turn = 0; turn < 10; turn += 1) await Promise.resolve();
      underWay.delete(lane);
      return { kind: 'delivered' };
    });
    await rig.say(Array.from({ length: 90 }, (_, at) => moved(1 + (at % 30), `s${at}`)));
    await rig.drain();
    expect(Math.max(...counts.slice(0, 16))).toBe(16);
    expect(Math.max(...counts), 'of 30 jobs').toBe(30);
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

  test('when the sink fails it waits, loses nothing, and resumes at its cursor with one probe, then with half as many at once', async () => {
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
    expect(await listDueSinks(rig.table, REGION, rig.state.now)).toEqual(['erp']);
    most = 0;
    expect(await rig.drain()).toMatchObject({ outcome: 'drained', delivered: 36 });
    // Half of the 16 that were in progress at the failure, and one more.
    expect(most, 'after the probe').toBeGreaterThan(8);
    expect(inOrderPerJob(rig.got)).toBe(true);
    const [sink] = await listSinks(rig.table, REGION);
    expect(sink?.health).toMatchObject({ failures: 0, waitUntil: 0, problem: null, failingSince: null });
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

  test.each([
    ['paused', { update: keys.sink(REGION, 'erp'), set: { paused: true } }],
    ['given another URL', { update: keys.sink(REGION, 'erp'), set: { target: 'http://127.0.0.2/' } }],
    ['deleted', { delete: keys.sink(REGION, 'erp') }],
  ])('no request begins 2 s after the sink was %s', async (_, change) => {
    const rig = await createDeliveryRig(delivered);
    for (let at = 0; at < 8; at += 1)
      await rig.say(Array.from({ length: 90 }, (_, n) => moved(at * 90 + n, 'a')));
    let [sent, changedAt, lastAt] = [0, 0, 0];
    rig.port.deliver = async () => {
      sent += 1;
      lastAt = rig.state.now;
      rig.state.now += 20;
      if (sent === 200) {
        changedAt = rig.state.now;
        await rig.table.write(change);
      }
      return [{ kind: 'delivered' }];
    };
    await rig.drain();
    expect(lastAt - changedAt).toBeLessThan(2_000);
    expect(sent).toBeLessThan(400);
  });

  test('a sink that was paused while its drain waits for new events does not get them', async () => {
    const rig = await createDeliveryRig(delivered);
    await rig.say([moved(1, 'a')]);
    let waits = 0;
    const linger = async () => {
      waits += 1;
      if (waits > 1) return undefined;
      await rig.table.write({ update: keys.sink(REGION, 'erp'), set: { paused: true } });
      rig.state.now += 2_000;
      await rig.log.append(rig.refs[0] as AccountRef, [moved(2, 'a')]);
      return { accounts: ['acme'], due: false };
    };
    await drainSink({ ...rig.deps, linger }, REGION, 'erp', rig.state.now + 60_000);
    expect(rig.got).toHaveLength(1);
  });

  test('types and accounts that a sink does not follow are skipped, and its cursor still reaches the head', async () => {
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

  test('an account that is declared again is delivered from its cursor, without waiting for its next event', async () => {
    const accounts = ['acme', 'bakery'];
    const rig = await createDeliveryRig(delivered, { accounts, record: { accounts } });
    const sink = {
      region: REGION,
      id: 'erp',
      kind: 'webhook',
      target: 'x',
      types: [],
      paused: false,
    } as const;
    const declare = (...followed: string[]) =>
      registerSink(rig.table, rig.log, { ...sink, accounts: followed }, rig.refs, rig.state.now);
    await rig.say([moved(1, 'a')]);
    await rig.drain();
    await declare('bakery');
    await rig.say([moved(1, 'b')]);
    await rig.drain();
    await declare(...accounts);
    expect(await listDueSinks(rig.table, REGION, rig.state.now)).toEqual(['erp']);
    await rig.drain();
    expect(rig.got.map(({ sequence }) => sequence)).toEqual([1, 2]);
    await declare(...accounts);
    expect(await listDueSinks(rig.table, REGION, rig.state.now), 'nothing is left').toEqual([]);
  });

  test('an account removed from a sink gets nothing more, whether due, parked or replayed', async () => {
    const rig = await createDeliveryRig(
      ({ sequence }) =>
        sequence === 1
          ? { kind: 'rejected', reason: 'The endpoint responded with status 422.' }
          : { kind: 'delivered' },
      { accounts: ['acme', 'other'], record: { accounts: ['acme', 'other'] } },
    );
    await rig.say([moved(1, 'a')]);
    await rig.say([moved(1, 'a'), moved(2, 'a')], rig.refs[1]);
    expect(await rig.drain()).toMatchObject({ delivered: 1, parked: 2 });
    await rig.say([moved(3, 'b')]);
    await rig.say([moved(3, 'b')], rig.refs[1]);
    const replayed = await rig.replay('r1', 0, 2, {}, 'other');
    await rig.table.write({ update: keys.sink(REGION, 'erp'), set: { accounts: ['acme'] } });
    rig.got.length = 0;
    rig.state.now += 10_000;
    expect(await rig.drain()).toMatchObject({ outcome: 'drained', delivered: 1, failed: 1 });
    expect(rig.got.map(({ id }) => id)).toEqual(['acme.e1.2']);
    expect(rig.replays).toEqual([]);
    expect(await replayed()).toBeUndefined();
    expect((await listParked(rig.table, REGION, 'erp')).map(({ account }) => account)).toEqual(['acme']);
    expect(await rig.position('other'), 'it may be added again').toEqual({ position: 2, due: false });
    expect(await listDueSinks(rig.table, REGION, rig.state.now)).toEqual([]);
  });

  test('an account that is added while a drain runs keeps its cursor, and stays due for the next one', async () => {
    const rig = await createDeliveryRig(
      async (event) => {
        if (event.account === 'acme') {
          const accounts = ['acme', 'other'];
          await putFollowers(rig.table, { region: REGION, id: 'erp', accounts });
          await rig.table.write({ update: keys.sink(REGION, 'erp'), set: { accounts } });
          await rig.say([moved(1, 'b')], rig.refs[1]);
          rig.state.now += 3_000;
        }
        return { kind: 'delivered' };
      },
      { accounts: ['acme', 'other'], record: { accounts: ['acme'] } },
    );
    await rig.say([moved(1, 'a')], rig.refs[1]);
    const cursor = { ...keys.cursor(REGION, 'erp', 'other'), sink: 'erp', position: 1 };
    await rig.table.write({ put: cursor });
    await rig.say([moved(1, 'a'), moved(2, 'a'), moved(3, 'a')]);
    expect(await rig.drain()).toMatchObject({ delivered: 3 });
    expect(await rig.position('other')).toEqual({ position: 1, due: true });
    await rig.drain();
    expect(rig.got.map(({ id }) => id)).toContain('other.e1.2');
    expect(rig.got.map(({ id }) => id)).not.toContain('other.e1.1');
  });

  test('a cursor deleted while it is read is not recreated, which would deliver everything again', async () => {
    const memory = createMemoryTable();
    const key = keys.cursor(REGION, 'erp', 'acme');
    let accounts = ['acme', 'other'];
    const table: Table = {
      ...memory,
      async query(query) {
        const found = await memory.query(query);
        if (query.index !== 'due' || !found.some(({ sk }) => sk === key.sk)) return found;
        await memory.write({ update: keys.sink(REGION, 'erp'), set: { accounts } });
        await memory.write({ delete: key });
        return found;
      },
    };
    const rig = await createDeliveryRig(delivered, { table, accounts, record: { accounts } });
    await rig.say([moved(1, 'a'), moved(1, 'b')]);
    accounts = ['other'];
    expect(await rig.drain()).toMatchObject({ outcome: 'drained', delivered: 0 });
    expect(await memory.get(key)).toBeUndefined();
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

  test('a paused sink gets nothing and keeps its cursors', async () => {
    const rig = await createDeliveryRig(delivered);
    await rig.table.write({ update: keys.sink(REGION, 'erp'), set: { paused: true } });
    expect(await rig.say([moved(1, 'a')])).toEqual([]);
    expect(await rig.drain()).toMatchObject({ outcome: 'busy' });
    await rig.table.write({ update: keys.sink(REGION, 'erp'), set: { paused: false } });
    expect(await rig.drain()).toMatchObject({ outcome: 'drained', delivered: 1 });
  });

  test('while one drain holds the lease another does nothing; an expired lease is taken over', async () => {
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
    // The first resumes with an expired lease: it must not change its successor's writes.
    finishFirst();
    await first;
    expect(await rig.position()).toEqual({ position: 1, due: true });
    expect(await fence()).toBe(fenceOfSecond);
  });

  test('a drain stops before its time limit and leaves the rest due', async () => {
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

  test('a drain of a process that stops begins no further delivery, and the next one repeats none', async () => {
    const stopping = new AbortController();
    const rig = await createDeliveryRig(async () => {
      if (rig.got.length >= 20) stopping.abort();
      await setImmediate();
      return { kind: 'delivered' };
    });
    await rig.say(Array.from({ length: 90 }, (_, at) => moved(at, 'x')));
    const deps = { ...rig.deps, stopping: stopping.signal };
    const report = await drainSink(deps, REGION, 'erp', rig.state.now + 60_000);
    expect(report.outcome).toBe('more');
    expect(report.delivered).toBeLessThan(70);
    expect(await rig.drain()).toMatchObject({ outcome: 'drained', delivered: 90 - report.delivered });
    expect(new Set(rig.got.map(({ sequence }) => sequence)).size).toBe(90);
    expect((await rig.sink()).health.failures).toBe(0);
  });

  test('an account with a long backlog does not delay others', async () => {
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

  test('the next tick replaces a lost wake-up; a duplicate one has no effect', async () => {
    const rig = await createDeliveryRig(delivered);
    const [ref] = rig.refs;
    if (!ref) throw new Error('There is no account.');
    await rig.log.append(ref, [moved(1, 'a')]);
    const [left] = await listPendingWakes(rig.table, REGION, 10);
    expect(left).toEqual({ ref, sequence: 1 });
    await wakeSinks(rig.table, ref, 1, rig.state.now);
    await wakeSinks(rig.table, ref, 1, rig.state.now);
    expect(await listPendingWakes(rig.table, REGION, 10)).toEqual([]);
    await rig.drain();
    await wakeSinks(rig.table, ref, 1, rig.state.now);
    expect(await rig.position()).toEqual({ position: 1, due: false });
    expect(rig.got).toHaveLength(1);
  });

  test('a wake-up for a cursor that is past it, or marked already, writes nothing to it', async () => {
    const rig = await createDeliveryRig(delivered, { accounts: ['acme', 'other'] });
    const [ref, other] = rig.refs;
    if (!ref || !other) throw new Error('There are no accounts.');
    await rig.say([moved(1, 'a')]);
    await rig.drain();
    await rig.say([moved(1, 'a')], other);
    const written: string[] = [];
    const table: Table = {
      ...rig.table,
      write: (write) => {
        written.push(getKey(write).pk);
        return rig.table.write(write);
      },
    };
    for (const one of [ref, other]) await wakeSinks(table, one, 1, rig.state.now);
    expect(written).toEqual([keys.wake(ref).pk, keys.wake(other).pk]);
    await rig.log.append(ref, [moved(1, 'b')]);
    await wakeSinks(table, ref, 2, rig.state.now);
    expect(written[2]).toBe(keys.cursor(REGION, 'erp', 'acme').pk);
  });

  test('a wake mark for later events is not deleted by an earlier wake-up', async () => {
    const rig = await createDeliveryRig(delivered);
    const [ref] = rig.refs;
    if (!ref) throw new Error('There is no account.');
    await rig.log.append(ref, [moved(1, 'a')]);
    await rig.log.append(ref, [moved(1, 'b')]);
    await wakeSinks(rig.table, ref, 1, rig.state.now);
    expect(await listPendingWakes(rig.table, REGION, 10)).toEqual([{ ref, sequence: 2 }]);
  });

  test('events that arrive while a window is delivered are delivered in the same drain', async () => {
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

  test('expired events are skipped, counted and reported; the rest is delivered', async () => {
    const rig = await createDeliveryRig(delivered);
    await rig.say([moved(1, 'old'), moved(2, 'old')]);
    rig.state.now += 91 * DAY_MS;
    await rig.say([moved(1, 'new')]);
    expect(await rig.drain()).toMatchObject({ outcome: 'drained', delivered: 1, lost: 2 });
    expect(rig.got.map(({ sequence }) => sequence)).toEqual([3]);
    expect(await rig.readCellLog()).toEqual([
      { type: 'endpoint.events_lost', region: 'us', endpoint: 'erp', account: 'acme', first: 1, last: 2 },
    ]);
    expect((await rig.sink()).health.lost).toBe(2);
    await rig.drain();
    expect(await rig.readCellLog(), 'emitted once').toHaveLength(1);
  });

  test('a sink is drained beyond the due cursors of one query', async () => {
    const accounts = Array.from({ length: 250 }, (_, at) => `a${at}`);
    const rig = await createDeliveryRig(delivered, { accounts });
    for (const ref of rig.refs) await rig.say([moved(1, 'x')], ref);
    expect(await rig.drain()).toMatchObject({ outcome: 'drained', delivered: 250 });
    expect(await listDueSinks(rig.table, REGION, rig.state.now)).toEqual([]);
  });

  test('events are filtered by order group, origin and fields of the job', async () => {
    const rig = await createDeliveryRig(delivered, {
      record: { orderGroups: ['G2', 'G3'], jobFields: { status: 'b' } },
    });
    await rig.say([
      moved(1, 'b'),
      moved(2, 'a'),
      moved(2, 'b'),
      moved(3, 'b'),
      { type: 'account.baselined', time: 0, data: { openJobs: 1 } },
    ]);
    expect(await rig.drain()).toMatchObject({ delivered: 2, skipped: 3 });
    expect(rig.got.map(({ sequence }) => sequence).sort()).toEqual([3, 4]);
  });

  test("no more lanes are in progress than the endpoint's concurrency", async () => {
    let most = 0;
    let underWay = 0;
    const rig = await createDeliveryRig(
      async () => {
        underWay += 1;
        most = Math.max(most, underWay);
        for (let turn = 0; turn < 10; turn += 1) await Promise.resolve();
        underWay -= 1;
        return { kind: 'delivered' };
      },
      { record: { concurrency: 3 } },
    );
    await rig.say(Array.from({ length: 90 }, (_, at) => moved(at, 'x')));
    expect(await rig.drain()).toMatchObject({ delivered: 90 });
    expect(most).toBe(3);
  });

  test.each([
    { others: 100, most: 40 },
    { others: 139, most: INITIAL_LANES },
  ])(
    'of 140 shared requests, $others in progress by others, a drain has $most: as many as initial lanes always',
    async ({ others, most }) => {
      const sharedRequests = new SharedRequests(140);
      sharedRequests.count(others);
      let highest = 0;
      let inFlight = 0;
      const rig = await createDeliveryRig(async () => {
        inFlight += 1;
        highest = Math.max(highest, inFlight);
        for (let turn = 0; turn < 10; turn += 1) await Promise.resolve();
        inFlight -= 1;
        return { kind: 'delivered' };
      });
      for (let from = 0; from < 400; from += 80)
        await rig.say(Array.from({ length: 80 }, (_, at) => moved(from + at, 'x')));
      await drainSink({ ...rig.deps, sharedRequests }, REGION, 'erp', rig.state.now + 60_000);
      expect(rig.got).toHaveLength(400);
      expect(highest).toBe(most);
      sharedRequests.count(-others);
      expect(sharedRequests.free(140)).toBe(140);
    },
  );

  test("an endpoint's rate limit holds in any second, across drains", async () => {
    const times: number[] = [];
    const rig = await createDeliveryRig(
      () => {
        times.push(rig.state.now);
        return { kind: 'delivered' };
      },
      { record: { ratePerSecond: 10 } },
    );
    const sleep = async (ms: number) => {
      rig.state.now += ms;
    };
    for (let round = 0; round < 3; round += 1) {
      await rig.say(Array.from({ length: 20 }, (_, at) => moved(at, `${round}`)));
      await drainSink({ ...rig.deps, sleep }, REGION, 'erp', rig.state.now + 60_000);
    }
    expect(times).toHaveLength(60);
    for (const [at, time] of times.entries()) {
      expect(
        times.filter((other) => other >= time && other < time + 1000).length,
        `from ${at}`,
      ).toBeLessThanOrEqual(11);
    }
    expect((times.at(-1) ?? 0) - (times[0] ?? 0)).toBeLessThan(6_500);
  });

  test('attempts are logged before the cursor moves past them; a failing log does not stop delivery', async () => {
    let broken = false;
    const logged: DeliveryEntry[] = [];
    const memory = createMemoryTable();
    const table: Table = {
      ...memory,
      async write(write) {
        if (
          'update' in write &&
          write.update.pk.startsWith('CURSORS#') &&
          'position' in write.set &&
          !broken
        ) {
          expect(new Set(logged.map(({ sequence }) => sequence)).size).toBeGreaterThanOrEqual(
            Number(write.set.position),
          );
        }
        return memory.write(write);
      },
    };
    const rig = await createDeliveryRig(
      async (event, attempt) => {
        await setImmediate();
        return event.sequence === 7 && attempt === 1
          ? {
              kind: 'retry',
              reason: 'The endpoint responded with status 503.',
              answer: { status: 503, excerpt: 'later' },
            }
          : { kind: 'delivered', answer: { status: 204, excerpt: '' } };
      },
      { table },
    );
    const deliveries = {
      async record(entries: readonly DeliveryEntry[]) {
        // Deliveries continue meanwhile.
        for (let turn = 0; turn < 20; turn += 1) await setImmediate();
        if (broken) throw new Error('The history fails.');
        logged.push(...entries);
      },
    };
    const drain = () => drainSink({ ...rig.deps, deliveries }, REGION, 'erp', rig.state.now + 60_000);
    for (let page = 0; page < 3; page += 1) {
      await rig.say(Array.from({ length: 90 }, (_, at) => moved(at % 30, `${page} ${at}`)));
    }
    await drain();
    rig.state.now += 10_000;
    await drain();
    expect(logged).toHaveLength(271);
    expect(logged.filter(({ outcome }) => outcome === 'retry')).toMatchObject([
      {
        region: 'us',
        sink: 'erp',
        eventId: 'acme.e1.7',
        sequence: 7,
        status: 503,
        excerpt: 'later',
        cause: 'live',
      },
    ]);
    broken = true;
    await rig.say([moved(1, 'unlogged')]);
    rig.state.now += 1;
    expect(await drain()).toMatchObject({ outcome: 'drained', delivered: 1, unlogged: 1 });
  });
});

describe('rejected events', () => {
  const refused = (status = 422): DeliveryOutcome => ({
    kind: 'rejected',
    reason: `The endpoint responded with status ${status}.`,
  });

  test('are parked with their lane while other lanes continue, retried on schedule, and their lane stays in order', async () => {
    let mended = false;
    const rig = await createDeliveryRig((event) =>
      event.sequence === 2 && !mended ? refused() : { kind: 'delivered' },
    );
    await rig.say([moved(1, 'a'), moved(2, 'b'), moved(2, 'c'), moved(3, 'd')]);
    expect(await rig.drain()).toMatchObject({ outcome: 'drained', delivered: 2, failed: 1, parked: 2 });
    expect(await rig.position()).toEqual({ position: 4, due: false });
    await rig.say([moved(2, 'e'), moved(1, 'f')]);
    expect(await rig.drain()).toMatchObject({ delivered: 1, parked: 1 });
    expect(await listParked(rig.table, REGION, 'erp')).toMatchObject([
      {
        sequence: 2,
        attempts: 1,
        reason: 'The endpoint responded with status 422.',
        eventId: 'acme.e1.2',
        lane: '2',
      },
      { sequence: 3, attempts: 0, reason: null, retryAt: null },
      { sequence: 5, attempts: 0 },
    ]);
    expect(
      await listDueSinks(rig.table, REGION, rig.state.now + 4_900),
      'before the first wait is over',
    ).toEqual([]);
    rig.state.now += 5_000;
    expect(await listDueSinks(rig.table, REGION, rig.state.now)).toEqual(['erp']);
    expect(await rig.drain(), 'rejected again').toMatchObject({ failed: 1, delivered: 0 });
    rig.state.now += 299_000;
    expect(await listDueSinks(rig.table, REGION, rig.state.now), 'the second wait').toEqual([]);
    mended = true;
    rig.state.now += 1_000;
    expect(await rig.drain()).toMatchObject({ delivered: 3, outcome: 'drained' });
    expect(rig.got.filter(({ jobNumber }) => jobNumber === 2).map(({ sequence }) => sequence)).toEqual([
      2, 3, 5,
    ]);
    expect(await listParked(rig.table, REGION, 'erp')).toEqual([]);
    expect(await listDueSinks(rig.table, REGION, rig.state.now + DAY_MS)).toEqual([]);
    await rig.say([moved(2, 'g')]);
    expect(await rig.drain(), 'the lane flows again').toMatchObject({ delivered: 1, parked: 0 });
  });

  test('are dead after the last attempt: emitted once, listed, and their lane continues', async () => {
    const rig = await createDeliveryRig((event) =>
      event.sequence === 1 ? refused() : { kind: 'delivered' },
    );
    await rig.say([moved(1, 'a'), moved(1, 'b'), moved(2, 'c')]);
    for (let attempt = 0; attempt < 6; attempt += 1) {
      await rig.drain();
      rig.state.now += 2_200_000;
    }
    expect(rig.attempts('acme.e1.1'), 'the schedule has three retries').toBe(4);
    expect(rig.got.map(({ sequence }) => sequence)).toEqual([3, 2]);
    expect(await rig.readCellLog()).toEqual([
      {
        type: 'endpoint.event_dead',
        region: 'us',
        endpoint: 'erp',
        account: 'acme',
        sequence: 1,
        event: 'acme.e1.1',
        attempts: 4,
        reason: 'The endpoint responded with status 422.',
      },
    ]);
    const { dead } = await listDeadPage(rig.table, REGION, 'erp', { limit: 10 });
    expect(dead).toMatchObject([
      { eventId: 'acme.e1.1', attempts: 4, sequence: 1, diedAt: expect.any(Number) },
    ]);
    expect(await listParked(rig.table, REGION, 'erp')).toEqual([]);
    const sink = await rig.table.get(keys.sink(REGION, 'erp'));
    expect(sink?.lastDiedAt, 'the mark by which the attention queue finds the endpoint').toBe(
      dead[0]?.diedAt,
    );
  });

  test.each([
    [14, 90],
    [365, 365],
  ])(
    'are listed as long as events are kept, at least for 90 days (kept for %i days)',
    async (kept, listed) => {
      const rig = await createDeliveryRig(() => refused());
      await rig.say([moved(1, 'a')]);
      const deps = { ...rig.deps, log: { ...rig.deps.log, retentionMs: kept * 86_400_000 } };
      for (let attempt = 0; attempt < 6; attempt += 1) {
        await drainSink(deps, REGION, 'erp', rig.state.now + 60_000);
        rig.state.now += 2_200_000;
      }
      const { dead } = await listDeadPage(rig.table, REGION, 'erp', { limit: 10 });
      const [{ account, sequence, diedAt }] = dead as [(typeof dead)[number]];
      const item = await rig.table.get(keys.dead(REGION, 'erp', account, sequence));
      expect(item?.ttl).toBe(Math.ceil(diedAt / 1000) + listed * 86_400);
    },
  );

  test('five consecutive ones mean that the sink fails: it waits, and no more are parked', async () => {
    let down = true;
    const rig = await createDeliveryRig(() => (down ? refused(400) : { kind: 'delivered' }), {
      record: { concurrency: 1 },
    });
    await rig.say(Array.from({ length: 20 }, (_, at) => moved(at, 'x')));
    expect(await rig.drain()).toMatchObject({ outcome: 'waiting', parked: 5, failed: 6 });
    rig.state.now += 400_000;
    // The parked lanes are due as well, but it gets only one probe.
    expect(await rig.drain()).toMatchObject({ outcome: 'waiting', parked: 0 });
    down = false;
    rig.state.now += 2_000_000;
    expect(await rig.drain()).toMatchObject({ outcome: 'drained', delivered: 20 });
    expect((await rig.sink()).health).toMatchObject({ failures: 0, rejections: 0 });
  });

  test('a sink that accepts some and rejects others waits at a thousand parked events, and loses none', async () => {
    let mended = false;
    const rig = await createDeliveryRig((event) =>
      event.sequence % 3 === 0 || mended ? { kind: 'delivered' } : refused(),
    );
    for (let at = 0; at < 18; at += 1)
      await rig.say(Array.from({ length: 90 }, (_, n) => moved(at * 90 + n, 'x')));
    const report = await rig.drain();
    expect(report).toMatchObject({
      outcome: 'waiting',
      parked: 1000,
      problem: '1000 events are parked, which is the maximum.',
    });
    expect(await listParked(rig.table, REGION, 'erp')).toHaveLength(1000);
    mended = true;
    rig.state.now += 2_000_000;
    while ((await rig.drain()).outcome !== 'drained');
    expect(new Set(rig.got.map(({ sequence }) => sequence)).size).toBe(18 * 90);
  });

  test('an event that crashes the receiver delays the rest for one wait, then waits alone', async () => {
    const rig = await createDeliveryRig((event) =>
      event.sequence === 3
        ? { kind: 'retry', reason: 'The endpoint responded with status 500.', suspect: true }
        : { kind: 'delivered' },
    );
    await rig.say(Array.from({ length: 40 }, (_, at) => moved(at, 'x')));
    expect(await rig.drain()).toMatchObject({ outcome: 'waiting' });
    rig.state.now += 5_000;
    expect(await rig.drain()).toMatchObject({ outcome: 'drained', parked: 1, failed: 1 });
    expect(rig.got).toHaveLength(39);
    expect(await listParked(rig.table, REGION, 'erp')).toMatchObject([{ sequence: 3, attempts: 1 }]);
    rig.state.now += 5_000;
    expect(await rig.drain(), 'its retry does not stop the sink').toMatchObject({
      outcome: 'drained',
      failed: 1,
    });
    expect(await listParked(rig.table, REGION, 'erp')).toMatchObject([{ sequence: 3, attempts: 2 }]);
  });

  test('a single event that crashes the receiver does not delay later ones', async () => {
    const rig = await createDeliveryRig((event) =>
      event.sequence === 1 ? { kind: 'retry', reason: 'reset', suspect: true } : { kind: 'delivered' },
    );
    await rig.say([moved(1, 'x')]);
    for (const wait of [5_000, 300_000, 0]) {
      await rig.drain();
      rig.state.now += wait;
    }
    expect(await listParked(rig.table, REGION, 'erp')).toHaveLength(1);
    await rig.say([moved(2, 'y')]);
    expect(await rig.drain()).toMatchObject({ outcome: 'drained', delivered: 1 });
  });

  test('a receiver that is completely down parks only a few, for any number of attempts', async () => {
    let down = true;
    const rig = await createDeliveryRig(() =>
      down ? { kind: 'retry', reason: 'down', suspect: true } : { kind: 'delivered' },
    );
    for (let round = 0; round < 30; round += 1) {
      await rig.say([moved(round, 'x')]);
      await rig.drain();
      rig.state.now += 3_000_000;
    }
    expect((await listParked(rig.table, REGION, 'erp')).length).toBeLessThanOrEqual(5);
    down = false;
    while ((await rig.drain()).delivered > 0) rig.state.now += 3_000_000;
    expect(new Set(rig.got.map(({ id }) => id)).size).toBe(30);
  });

  test('are logged before they are no longer parked', async () => {
    const logged: string[] = [];
    const memory = createMemoryTable();
    const table: Table = {
      ...memory,
      async transact(writes, token) {
        if (writes.some((write) => 'delete' in write && write.delete.pk.startsWith('PARKED#'))) {
          expect(logged).toEqual(['rejected', 'delivered']);
        }
        return memory.transact(writes, token);
      },
    };
    const rig = await createDeliveryRig((_, attempt) => (attempt === 1 ? refused() : { kind: 'delivered' }), {
      table,
    });
    const deliveries = {
      async record(entries: readonly DeliveryEntry[]) {
        for (let turn = 0; turn < 20; turn += 1) await setImmediate();
        logged.push(...entries.map(({ outcome }) => outcome));
      },
    };
    await rig.say([moved(1, 'a')]);
    for (let attempt = 0; attempt < 2; attempt += 1) {
      rig.state.now += 6_000;
      await drainSink({ ...rig.deps, deliveries }, REGION, 'erp', rig.state.now + 60_000);
    }
    expect(await listParked(table, REGION, 'erp')).toEqual([]);
  });

  test('are not retried before they are stored as parked, for any latency', async () => {
    const memory = createMemoryTable();
    let store = (): void => undefined;
    const stored = new Promise<void>((resolve) => {
      store = resolve;
    });
    const table: Table = {
      ...memory,
      async transact(writes, token) {
        if (writes.some((write) => 'put' in write && write.put.pk.startsWith('PARKED#'))) await stored;
        return memory.transact(writes, token);
      },
    };
    const rig = await createDeliveryRig(
      async (event, attempt) => {
        if (event.sequence === 1) return attempt === 1 ? refused() : { kind: 'delivered' };
        rig.state.now += 6_000;
        if (event.sequence === 3) {
          expect(rig.attempts('acme.e1.1')).toBe(1);
          store();
        }
        return { kind: 'delivered' };
      },
      { table, record: { concurrency: 1 } },
    );
    await rig.say([moved(1, 'a'), moved(2, 'b'), moved(3, 'c'), moved(4, 'd')]);
    expect(await rig.drain()).toMatchObject({ outcome: 'drained', delivered: 4, failed: 1 });
    expect(await listParked(rig.table, REGION, 'erp')).toEqual([]);
  });

  test('parked by a drain that crashed are not also sent by its cursor', async () => {
    const memory = createMemoryTable();
    let dead = false;
    const table: Table = {
      ...memory,
      async write(write) {
        if (dead) throw new Error('crash');
        return memory.write(write);
      },
    };
    const rig = await createDeliveryRig(
      async (event, attempt) => {
        if (event.sequence === 1 && attempt === 1) return refused();
        if (attempt === 1) {
          while ((await listParked(memory, REGION, 'erp')).length === 0) await setImmediate();
          dead = true;
        }
        return { kind: 'delivered' };
      },
      { table, record: { concurrency: 1 } },
    );
    await rig.say([moved(1, 'a'), moved(2, 'b')]);
    await expect(rig.drain()).rejects.toThrow('crash');
    expect(await rig.position()).toEqual({ position: 0, due: true });
    dead = false;
    rig.state.now += 61_000;
    await rig.drain();
    expect(rig.attempts('acme.e1.1')).toBe(2);
    expect(await rig.position()).toEqual({ position: 2, due: false });
  });

  test('a drain that lost its lease removes none of them, because it does not know their lanes', async () => {
    let successor: Promise<unknown> | undefined;
    const rig = await createDeliveryRig(async (event, attempt) => {
      if (event.sequence !== 1) return { kind: 'delivered' };
      if (attempt === 2) {
        rig.state.now += 61_000;
        await rig.say([moved(1, 'b')]);
        successor = drainSink(rig.deps, REGION, 'erp', rig.state.now + 60_000);
        await successor;
      }
      return attempt === 2 || attempt > 3 ? { kind: 'delivered' } : refused();
    });
    await rig.say([moved(1, 'a')]);
    await rig.drain();
    rig.state.now += 5_000;
    await rig.drain();
    expect(await successor).toMatchObject({ failed: 1, parked: 1 });
    expect(await listParked(rig.table, REGION, 'erp')).toMatchObject([{ sequence: 1 }, { sequence: 2 }]);
    rig.state.now += 2_000_000;
    expect(await listDueSinks(rig.table, REGION, rig.state.now)).toEqual(['erp']);
    await rig.drain();
    expect(await listParked(rig.table, REGION, 'erp')).toEqual([]);
  });

  test("a lingering drain yields to one that reads an operator's request", async () => {
    let mended = false;
    const rig = await createDeliveryRig(() => (mended ? { kind: 'delivered' } : refused()));
    await rig.say([moved(1, 'a')]);
    let asked = 0;
    const linger = async () => {
      asked += 1;
      mended = true;
      await retryParked(rig.table, REGION, 'erp', { account: 'acme', lane: '1' }, rig.state.now);
      return asked > 5 ? undefined : { accounts: [], due: true };
    };
    await drainSink({ ...rig.deps, linger }, REGION, 'erp', rig.state.now + 60_000);
    expect(asked).toBe(1);
    expect(await rig.drain()).toMatchObject({ outcome: 'drained', delivered: 1 });
  });

  test('an event that is discarded manually is no longer sent, and its lane continues', async () => {
    const rig = await createDeliveryRig((event) =>
      event.sequence === 1 ? refused() : { kind: 'delivered' },
    );
    await rig.say([moved(1, 'a'), moved(1, 'b')]);
    await rig.drain();
    const lane = { account: 'acme', lane: '1' };
    expect(await discardParked(rig.table, REGION, 'erp', { ...lane, sequence: 1 }, rig.state.now)).toBe(true);
    expect(await discardParked(rig.table, REGION, 'erp', { ...lane, sequence: 1 }, rig.state.now)).toBe(
      false,
    );
    expect(await listDueSinks(rig.table, REGION, rig.state.now)).toEqual(['erp']);
    await rig.drain();
    expect(rig.got.map(({ sequence }) => sequence)).toEqual([2]);
  });

  test('discarding a later event of a lane leaves the time of the next attempt at the first one', async () => {
    const rig = await createDeliveryRig(() => refused());
    await rig.say([moved(1, 'a'), moved(1, 'b'), moved(1, 'c')]);
    await rig.drain();
    const [first, second, third] = await listParked(rig.table, REGION, 'erp');
    if (!first || !second || !third) throw new Error('Three events must be parked.');
    rig.state.now += 1_000;
    const selection = { ids: [second.eventId], isWanted: () => true };
    await discardAllParked(rig.table, REGION, 'erp', selection, rig.state.now);
    expect(await discardParked(rig.table, REGION, 'erp', third, rig.state.now)).toBe(true);
    expect(await listParked(rig.table, REGION, 'erp')).toEqual([first]);
    expect(await listDueSinks(rig.table, REGION, rig.state.now)).toEqual([]);
  });

  test('a lane is retried at once on request', async () => {
    let mended = false;
    const rig = await createDeliveryRig(() => (mended ? { kind: 'delivered' } : refused()));
    await rig.say([moved(1, 'a')]);
    await rig.drain();
    mended = true;
    expect(await retryParked(rig.table, REGION, 'erp', { account: 'acme', lane: '1' }, rig.state.now)).toBe(
      true,
    );
    expect(await retryParked(rig.table, REGION, 'erp', { account: 'acme', lane: '2' }, rig.state.now)).toBe(
      false,
    );
    expect(await rig.drain()).toMatchObject({ delivered: 1 });
  });

  test('that the filter of the endpoint excludes since they were parked are not sent again, and their lane continues', async () => {
    const rig = await createDeliveryRig((event) =>
      event.type === 'job.status_changed' ? refused() : { kind: 'delivered' },
    );
    const dispatched: EventDraft = { ...moved(1, 'b'), type: 'job.dispatched' } as EventDraft;
    await rig.say([moved(1, 'a'), dispatched]);
    expect(await rig.drain()).toMatchObject({ parked: 2, rejected: 1 });
    await rig.table.write({
      update: keys.sink(REGION, 'erp'),
      set: { types: ['job.dispatched'] },
    });
    rig.state.now += 10_000;
    expect(await rig.drain()).toMatchObject({ outcome: 'drained', delivered: 1, skipped: 1, failed: 0 });
    expect(rig.attempts('acme.e1.1')).toBe(1);
    expect(rig.got.map(({ sequence }) => sequence)).toEqual([2]);
    expect(await listParked(rig.table, REGION, 'erp')).toEqual([]);
    expect(await rig.readCellLog()).toEqual([]);
  });

  test('an event that expired while it was parked is counted and reported', async () => {
    const rig = await createDeliveryRig(() => refused());
    await rig.say([moved(1, 'a')]);
    await rig.drain();
    rig.state.now += 91 * DAY_MS;
    expect(await rig.drain()).toMatchObject({ outcome: 'drained', lost: 1 });
    expect(await rig.readCellLog()).toMatchObject([{ type: 'endpoint.events_lost', first: 1, last: 1 }]);
    expect(await listParked(rig.table, REGION, 'erp')).toEqual([]);
  });
});

describe('a failing sink', () => {
  test('is disabled after five days of failure, emitted once; re-enabled, it resumes at its cursors, and its recovery is emitted', async () => {
    let down = true;
    const rig = await createDeliveryRig(() =>
      down ? { kind: 'retry', reason: 'down' } : { kind: 'delivered' },
    );
    await rig.say([moved(1, 'a'), moved(2, 'b')]);
    const began = rig.state.now + 1;

    let report = await rig.drain();
    while (report.outcome === 'waiting') {
      rig.state.now = report.waitUntil ?? 0;
      report = await rig.drain();
    }
    expect(report).toMatchObject({ outcome: 'disabled' });
    expect(rig.state.now - began).toBeGreaterThanOrEqual(5 * DAY_MS);
    expect(rig.state.now - began, 'with the next probe after that').toBeLessThan(5 * DAY_MS + 3_600_000);
    expect(await rig.readCellLog()).toEqual([
      {
        type: 'endpoint.disabled',
        region: 'us',
        endpoint: 'erp',
        reason: 'All deliveries failed for 5 days. Last failure: down',
        failingSince: new Date(began).toISOString(),
      },
    ]);
    expect(await listDueSinks(rig.table, REGION, rig.state.now + DAY_MS)).toEqual([]);
    expect(await rig.say([moved(3, 'c')]), 'a wake-up does not name it').toEqual([]);
    expect(await rig.drain()).toMatchObject({ outcome: 'busy' });

    down = false;
    const { health } = await rig.sink();
    await rig.table.write({ update: keys.sink(REGION, 'erp'), set: healthAttributes(enableHealth(health)) });
    expect(await rig.drain()).toMatchObject({ outcome: 'drained', delivered: 3 });
    expect((await rig.readCellLog()).at(-1)).toEqual({
      type: 'endpoint.recovered',
      region: 'us',
      endpoint: 'erp',
      disabledAt: new Date(health.disabledAt ?? 0).toISOString(),
    });
    await rig.say([moved(3, 'd')]);
    await rig.drain();
    expect(await rig.readCellLog(), 'each emitted once').toHaveLength(2);
  });

  test('that is declared again after a pause is probed at once, and not disabled because of the time of the pause', async () => {
    const rig = await createDeliveryRig(() => ({ kind: 'retry', reason: 'down' }));
    const { health: _, ...record } = await rig.sink();
    const declare = (change: Partial<SinkRecord>) =>
      registerSink(rig.table, rig.log, { ...record, ...change }, rig.refs, rig.state.now);
    await rig.say([moved(1, 'a')]);
    const { waitUntil } = await rig.drain();
    await declare({});
    expect(isReady(await rig.sink(), rig.state.now), 'unchanged').toBe(false);
    await declare({ target: 'https://erp.example.com/new' });
    expect(isReady(await rig.sink(), rig.state.now), 'with a new target').toBe(true);
    await rig.drain();
    await declare({ paused: true });
    rig.state.now = (waitUntil ?? 0) + 6 * DAY_MS;
    await declare({ paused: false });
    expect(await rig.drain()).toMatchObject({ outcome: 'waiting' });
  });

  test.each([
    ['fails', {}],
    ['requests no more events', { disable: 'The endpoint responded with status 410.' }],
  ])('whose URL is changed while the former one %s is probed at once at the new one', async (_, answer) => {
    const urls: string[] = [];
    const rig = await createDeliveryRig(async () => {
      if (urls.length > 1) return { kind: 'delivered' };
      const set = { target: 'https://erp.example.com/new', waitUntil: undefined };
      await rig.table.write({ update: keys.sink(REGION, 'erp'), set });
      return { kind: 'retry', reason: 'down', ...answer };
    });
    await rig.table.write({ update: keys.sink(REGION, 'erp'), set: { failures: 3 } });
    const open = async ({ target }: SinkRecord) => {
      urls.push(target);
      return rig.port;
    };
    const drain = () => drainSink({ ...rig.deps, open }, REGION, 'erp', rig.state.now + 60_000);
    await rig.say([moved(1, 'a')]);
    await drain();
    expect(await listDueSinks(rig.table, REGION, rig.state.now)).toEqual(['erp']);
    expect(await drain()).toMatchObject({ outcome: 'drained', delivered: 1 });
    expect(urls).toEqual(['http://127.0.0.1/', 'https://erp.example.com/new']);
    expect(await rig.readCellLog()).toEqual([]);
  });

  test('that is disabled again after an operator enabled it is emitted again', async () => {
    let isGone = true;
    const rig = await createDeliveryRig(() =>
      isGone ? { kind: 'retry', reason: 'gone', disable: 'It is gone.' } : { kind: 'delivered' },
    );
    await rig.say([moved(1, 'a')]);
    for (let time = 0; time < 2; time += 1) {
      expect(await rig.drain()).toMatchObject({ outcome: 'disabled' });
      const set = healthAttributes(enableHealth((await rig.sink()).health));
      await rig.table.write({ update: keys.sink(REGION, 'erp'), set });
    }
    const disabledAt = rig.state.now;
    isGone = false;
    expect(await rig.drain()).toMatchObject({ delivered: 1 });
    expect(await rig.readCellLog()).toMatchObject([
      { type: 'endpoint.disabled', reason: 'It is gone.' },
      { type: 'endpoint.disabled', reason: 'It is gone.' },
      { type: 'endpoint.recovered', disabledAt: new Date(disabledAt).toISOString() },
    ]);
  });

  test('with a success within five days is not disabled', async () => {
    const rig = await createDeliveryRig((event, attempt) =>
      event.sequence === 1 || attempt > 1 ? { kind: 'delivered' } : { kind: 'retry', reason: 'down' },
    );
    for (let day = 0; day < 12; day += 1) {
      await rig.say([moved(1, `${day}`)]);
      expect((await rig.drain()).outcome).not.toBe('disabled');
      rig.state.now += DAY_MS;
    }
  });

  describe('is no longer failing when nothing is left to deliver', () => {
    type Rig = Awaited<ReturnType<typeof createDeliveryRig>>;

    async function drainAfterWait(rig: Rig) {
      const { health } = await rig.sink();
      rig.state.now = Math.max(rig.state.now + 2_200_000, health.waitUntil);
      expect(await listDueSinks(rig.table, REGION, rig.state.now)).toEqual(['erp']);
      return rig.drain();
    }

    async function drainUntilParked(rig: Rig) {
      await drainAfterWait(rig);
      expect(await drainAfterWait(rig)).toMatchObject({ outcome: 'drained', parked: 1 });
      expect(toEndpointState(await rig.sink()), 'while an event is parked').toBe('failing');
    }

    test.each<readonly [string, (rig: Rig) => Promise<unknown>]>([
      [
        'an event that a changed filter excludes',
        async (rig) => {
          const set = { types: ['job.dispatched'] };
          await rig.table.write({ update: keys.sink(REGION, 'erp'), set });
          await drainAfterWait(rig);
        },
      ],
      [
        'a dead event',
        async (rig) => {
          await drainUntilParked(rig);
          while ((await drainAfterWait(rig)).dead === 0);
        },
      ],
      [
        'a discarded event',
        async (rig) => {
          await drainUntilParked(rig);
          await discardAllParked(
            rig.table,
            REGION,
            'erp',
            { ids: 'all', isWanted: () => true },
            rig.state.now,
          );
          await drainAfterWait(rig);
        },
      ],
    ])('after %s, and is not disabled by one failure days later', async (_, end) => {
      const rig = await createDeliveryRig(() => ({ kind: 'retry', reason: 'status 500', suspect: true }));
      const announcedAt = rig.state.now - DAY_MS;
      await rig.table.write({ update: keys.sink(REGION, 'erp'), set: { announcedAt } });
      await rig.say([moved(1, 'a')]);
      expect(await rig.drain()).toMatchObject({ outcome: 'waiting' });
      expect(toEndpointState(await rig.sink())).toBe('failing');
      await end(rig);
      const sink = await rig.sink();
      expect(toEndpointState(sink)).toBe('active');
      expect(sink.health).toMatchObject({
        ...{ failures: 0, failingSince: null, problem: null, suspects: [] },
        announcedAt,
      });
      await rig.table.write({ update: keys.sink(REGION, 'erp'), set: { types: [] } });
      rig.state.now += 6 * DAY_MS;
      await rig.say([moved(2, 'b')]);
      expect(await rig.drain()).toMatchObject({ outcome: 'waiting' });
    });

    test('but not because its settings changed while it could not be opened', async () => {
      const rig = await createDeliveryRig(() => ({ kind: 'retry', reason: 'status 503' }));
      await rig.say([moved(1, 'a')]);
      await rig.drain();
      rig.state.now += DAY_MS;
      const open = async () => {
        await rig.table.write({ update: keys.sink(REGION, 'erp'), set: { concurrency: 2 } });
        throw new Error('It could not be opened.');
      };
      await drainSink({ ...rig.deps, open }, REGION, 'erp', rig.state.now + 60_000);
      expect(toEndpointState(await rig.sink())).toBe('failing');
    });
  });

  test('that is re-enabled as soon as the event is emitted stays enabled', async () => {
    const memory = createMemoryTable();
    const table: Table = {
      ...memory,
      async transact(writes, token) {
        const done = await memory.transact(writes, token);
        if (JSON.stringify(writes).includes('endpoint.disabled')) {
          const { health } = await rig.sink();
          await memory.write({
            update: keys.sink(REGION, 'erp'),
            set: healthAttributes(enableHealth(health)),
          });
        }
        return done;
      },
    };
    const rig = await createDeliveryRig(
      (_, attempt) =>
        attempt === 1
          ? { kind: 'retry', reason: 'gone', disable: 'The endpoint responded with status 410.' }
          : { kind: 'delivered' },
      { table },
    );
    await rig.say([moved(1, 'a')]);
    expect(await rig.drain()).toMatchObject({ outcome: 'disabled' });
    expect(await rig.drain()).toMatchObject({ outcome: 'drained', delivered: 1 });
    expect((await rig.readCellLog()).map(({ type }) => type)).toEqual([
      'endpoint.disabled',
      'endpoint.recovered',
    ]);
  });

  test('is disabled at once if it requests that, whether or not it accepted the event', async () => {
    for (const kind of ['delivered', 'retry'] as const) {
      const rig = await createDeliveryRig(() => ({
        kind,
        reason: 'gone',
        disable: 'The endpoint responded with status 410.',
      }));
      await rig.say([moved(1, 'a'), moved(1, 'b')]);
      expect(await rig.drain()).toMatchObject({
        outcome: 'disabled',
        problem: 'The endpoint responded with status 410.',
        delivered: kind === 'delivered' ? 1 : 0,
      });
      expect(await rig.readCellLog()).toMatchObject([
        { type: 'endpoint.disabled', reason: 'The endpoint responded with status 410.' },
      ]);
      expect(await rig.position()).toEqual({ position: kind === 'delivered' ? 1 : 0, due: true });
    }
  });

  test('gets one probe per wait, for any number of accounts', async () => {
    const accounts = Array.from({ length: 30 }, (_, at) => `a${at}`);
    let asked = 0;
    const rig = await createDeliveryRig(
      () => {
        asked += 1;
        return { kind: 'retry', reason: 'down' };
      },
      { accounts },
    );
    for (const ref of rig.refs) await rig.say([moved(1, 'x'), moved(2, 'x')], ref);
    await rig.drain();
    asked = 0;
    for (let probe = 1; probe <= 6; probe += 1) {
      rig.state.now += 3_000_000;
      await rig.drain();
      expect(asked).toBe(probe);
    }
  });

  test('waits vary by a fifth either way', async () => {
    const waits = [];
    for (const random of [0, 0.25, 0.999_999]) {
      const rig = await createDeliveryRig(() => ({ kind: 'retry', reason: 'down' }));
      await rig.say([moved(1, 'a')]);
      rig.state.now += 1;
      const report = await drainSink(
        { ...rig.deps, random: () => random },
        REGION,
        'erp',
        rig.state.now + 60_000,
      );
      waits.push(Math.round((report.waitUntil ?? 0) - rig.state.now));
    }
    expect(waits).toEqual([4000, 4500, 6000]);
  });
});

describe('replays', () => {
  test('deliver a range of the log again, marked as a replay, while the live cursor stays', async () => {
    const rig = await createDeliveryRig(delivered);
    await rig.say(Array.from({ length: 50 }, (_, at) => moved(at % 5, `${at}`)));
    await rig.drain();
    const cursor = await rig.replay('r1', 10, 30, { types: ['job.*'] });
    const requests = new Set<string | undefined>();
    const { deliver } = rig.port;
    rig.port.deliver = (deliveries) => {
      for (const { replay } of deliveries) requests.add(replay);
      return deliver(deliveries);
    };
    await rig.say([moved(1, 'meanwhile')]);
    expect(await rig.drain()).toMatchObject({ outcome: 'drained', delivered: 21 });
    expect(rig.replays).toHaveLength(20);
    expect(requests).toEqual(new Set(['r1', undefined]));
    expect(rig.got.map(({ sequence }) => sequence)).toContain(51);
    expect(await cursor()).toMatchObject({ position: 30, delivered: 20, failed: 0, doneAt: rig.state.now });
    expect((await cursor())?.dueSk).toBeUndefined();
    expect(await rig.position()).toEqual({ position: 51, due: false });
  });

  test('skip filtered events, and park nothing: rejected events are counted', async () => {
    const rig = await createDeliveryRig((event, attempt) =>
      attempt > 1 && event.jobNumber === 2
        ? { kind: 'rejected', reason: 'The endpoint responded with status 409.' }
        : { kind: 'delivered' },
    );
    await rig.say(Array.from({ length: 12 }, (_, at) => moved(at % 4, 'x')));
    await rig.drain();
    const cursor = await rig.replay('r1', 0, 12, { orderGroups: ['G1', 'G2'] });
    await rig.drain();
    expect(await cursor()).toMatchObject({ position: 12, delivered: 3, failed: 3, skipped: 6 });
    expect(await listParked(rig.table, REGION, 'erp')).toEqual([]);
  });

  test('of any length do not delay new events', async () => {
    const rig = await createDeliveryRig(delivered);
    for (let at = 0; at < 20; at += 1) await rig.say(Array.from({ length: 90 }, (_, n) => moved(n, `${at}`)));
    while ((await rig.drain()).outcome !== 'drained');
    rig.got.length = 0;
    await rig.replay('r1', 0, 1800);
    await rig.replay('r2', 0, 1800);
    await rig.replay('r3', 0, 1800);
    await rig.say([moved(1, 'new')]);
    const order: string[] = [];
    const { deliver } = rig.port;
    rig.port.deliver = async (deliveries) => {
      order.push(...deliveries.map(({ replay }) => (replay ? 'replay' : 'new')));
      return deliver(deliveries);
    };
    await rig.drain();
    expect(order.indexOf('new')).toBeLessThan(60);
    expect(rig.replays).toHaveLength(3 * 1800);
  });

  test('that were cancelled, or whose endpoint was deleted, stop', async () => {
    const rig = await createDeliveryRig(delivered);
    await rig.say([moved(1, 'a')]);
    await rig.drain();
    const cancelled = await rig.replay('r1', 0, 1);
    await rig.table.write({ update: keys.replay(REGION, 'erp', 'r1'), set: { cancelledAt: 1 } });
    const gone = await rig.replay('r2', 0, 1);
    await rig.table.write({ delete: keys.replay(REGION, 'erp', 'r2') });
    await rig.drain();
    expect(rig.replays).toEqual([]);
    expect([await cancelled(), await gone()]).toEqual([undefined, undefined]);
  });
});

describe('the lease', () => {
  test('is renewed while a drain works', async () => {
    const rig = await createDeliveryRig(async () => {
      rig.state.now += 10_000;
      const other = await drainSink(rig.deps, REGION, 'erp', rig.state.now + 60_000);
      expect(other.outcome).toBe('busy');
      return { kind: 'delivered' };
    });
    await rig.say(Array.from({ length: 30 }, (_, at) => moved(1, `${at}`)));
    expect(await rig.drain(rig.state.now + 600_000)).toMatchObject({ outcome: 'drained', delivered: 30 });
  });

  test("once lost, ends a drain: it sends no more and changes nothing of its successor's", async () => {
    let successor: number | undefined;
    const rig = await createDeliveryRig(async (event) => {
      if (event.sequence === 3 && successor === undefined) {
        rig.state.now += 61_000;
        successor = 0;
        successor = (await drainSink(rig.deps, REGION, 'erp', rig.state.now + 60_000)).delivered;
      }
      return { kind: 'delivered' };
    });
    await rig.say(Array.from({ length: 40 }, (_, at) => moved(1, `${at}`)));
    const first = await rig.drain(rig.state.now + 600_000);
    expect(successor).toBe(40);
    expect(first.delivered).toBeLessThanOrEqual(4);
    expect(await rig.position()).toEqual({ position: 40, due: false });
    expect((await rig.sink()).health.failures).toBe(0);
  });
});

describe('after the clock was set back', () => {
  const HOUR_MS = 3_600_000;

  test('a sink with a rate waits for one interval, also in a drain that works', async () => {
    const rig = await createDeliveryRig(delivered, { record: { ratePerSecond: 1 } });
    const deps = {
      ...rig.deps,
      async sleep(ms: number) {
        rig.state.now += ms;
      },
    };
    await rig.say([moved(1, 'a')]);
    await drainSink(deps, REGION, 'erp', rig.state.now + 60_000);
    rig.state.now -= HOUR_MS;
    await rig.say([moved(2, 'a'), moved(3, 'a')]);
    const { deliver } = rig.port;
    rig.port.deliver = async (deliveries) => {
      rig.state.now -= HOUR_MS;
      return deliver(deliveries);
    };
    const before = rig.state.now;
    expect(await drainSink(deps, REGION, 'erp', before + 60_000)).toMatchObject({ delivered: 2 });
    expect(rig.state.now + 2 * HOUR_MS - before, 'one interval for each step of the clock').toBe(3_000);
  });

  test('the lease of a drain that crashed expires within two minutes, and one of a clock that is ahead is respected', async () => {
    const rig = await createDeliveryRig(delivered);
    await rig.say([moved(1, 'a')]);
    const takeFor = (ms: number) =>
      rig.table.write({
        update: keys.sink(REGION, 'erp'),
        set: { leaseUntil: rig.state.now + ms, leaseToken: rig.state.now + ms, leaseOwner: 'other' },
      });
    await takeFor(90_000);
    expect(await rig.drain()).toMatchObject({ outcome: 'busy' });
    await takeFor(HOUR_MS);
    expect(await rig.drain()).toMatchObject({ outcome: 'drained', delivered: 1 });
  });

  test('a failing sink is probed at once', async () => {
    let isDown = true;
    const rig = await createDeliveryRig(() =>
      isDown ? { kind: 'retry', reason: 'down' } : { kind: 'delivered' },
    );
    await rig.say([moved(1, 'a')]);
    await rig.drain();
    isDown = false;
    rig.state.now -= HOUR_MS;
    expect(await listDueSinks(rig.table, REGION, rig.state.now)).toEqual(['erp']);
    expect(await rig.drain()).toMatchObject({ outcome: 'drained', delivered: 1 });
  });

  test('a parked event is retried at the latest after the longest wait', async () => {
    let isFixed = false;
    const rig = await createDeliveryRig(() =>
      isFixed ? { kind: 'delivered' } : { kind: 'rejected', reason: 'no' },
    );
    await rig.say([moved(1, 'a')]);
    expect(await rig.drain()).toMatchObject({ parked: 1 });
    isFixed = true;
    const { retrySeconds } = rig.deps;
    const waits = getLongestWait(retrySeconds);
    expect(waits, 'of 1800 s, a fifth longer').toBeCloseTo(2_160_000);
    const listDue = () => listDueSinks(rig.table, REGION, rig.state.now, waits);
    rig.state.now -= HOUR_MS / 2;
    expect(await listDue(), 'it may have been scheduled since').toEqual([]);
    expect(await rig.drain()).toMatchObject({ delivered: 0 });
    rig.state.now -= 400 * DAY_MS;
    expect(await listDue()).toEqual(['erp']);
    expect(await rig.drain()).toMatchObject({ outcome: 'drained', delivered: 1 });
    expect(await listDue()).toEqual([]);
  });

  test('a drain that works renews its lease and finds cursors that became due', async () => {
    const rig = await createDeliveryRig(delivered, { accounts: ['acme', 'bakery'] });
    await rig.say(Array.from({ length: 3 }, (_, at) => moved(1, `${at}`)));
    const { deliver } = rig.port;
    rig.port.deliver = async (deliveries) => {
      const isFirst = rig.got.length === 0;
      if (isFirst) {
        rig.state.now -= HOUR_MS;
        await rig.say([moved(2, 'a')], rig.refs[1]);
      }
      return deliver(deliveries);
    };
    let until: unknown;
    const sleep = async () => undefined;
    const table: Table = {
      ...rig.table,
      async write(write, durability) {
        if ('update' in write && write.set.leaseUntil !== undefined) until = write.set.leaseUntil;
        return rig.table.write(write, durability);
      },
    };
    const deps = { ...rig.deps, table, sleep };
    expect(await drainSink(deps, REGION, 'erp', rig.state.now + 60_000)).toMatchObject({ delivered: 4 });
    expect(until).toBe(rig.state.now + 60_000);
  });
});
