/**
 * Drains that crash, lose their lease or are interrupted: no event is lost, reordered or left undelivered.
 * One file: the property and its single cases share the sinks that fail at a chosen step.
 */
import { setImmediate } from 'node:timers/promises';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { EarlyStores } from '../../shared/delivery/cursors.ts';
import { drainSink } from '../../shared/delivery/drain.ts';
import type { DrainDeps, NewWork } from '../../shared/delivery/drain-deps.ts';
import { enableHealth, healthAttributes } from '../../shared/delivery/health.ts';
import { discardParked, listParked, retryParked } from '../../shared/delivery/parked-events.ts';
import { type DeliveryOutcome, registerSink, type SinkPort, toSink } from '../../shared/delivery/sink.ts';
import { listDueSinks, listPendingWakes, wakeSinks } from '../../shared/delivery/wakes.ts';
import type { LoggedEvent } from '../../shared/log/log.ts';
import { cellLog, cursorPk, deadPk, drainDue, keys } from '../../shared/storage/schema.ts';
import { createMemoryTable } from '../../shared/storage/sqlite-table.ts';
import type { Query, Table, Write } from '../../shared/storage/table.ts';
import { createDeliveryRig, delivered, inOrderPerJob, moved, REGION } from '../support/delivery-world.ts';
import { runs } from '../support/runs.ts';

/** Answers of a receiver to an event. */
const ANSWERS = [
  'ok',
  'ok',
  'ok',
  'ok',
  'ok',
  'retry',
  'broken',
  'rejected',
  'throw',
  'gone',
  'last',
] as const;
const ACCOUNTS = ['acme', 'other'];
const SINKS = ['erp', 'shop'] as const;
/** Longer than the longest wait of the rig's schedule. */
const LONG_MS = 2_200_000;
const DAY_MS = 86_400_000;

/** Faults and actions around one drain of each sink. */
const round = () =>
  fc.record({
    /** The table fails from this write on; `written` tells whether that one succeeds. */
    writes: fc.integer({ min: 1, max: 40 }),
    lands: fc.boolean(),
    wake: fc.constantFrom('lost', 'once', 'twice'),
    /** Attempts at which another process takes the lease, and an operator acts on parked events. */
    stealAt: fc.option(fc.nat(6)),
    meddleAt: fc.option(fc.nat(10)),
    meddle: fc.constantFrom('retry', 'discard'),
    replay: fc.option(fc.constantFrom('start', 'cancel')),
    cancelAt: fc.option(fc.nat(10)),
    linger: fc.boolean(),
    enable: fc.boolean(),
  });

test('for any sink answers, crashes, lost leases, discards, cancellations and re-enabling: every event is delivered, dead or discarded, in order per job, and no cursor is ahead', async () => {
  const seen = { events: 0, crashes: 0, repeats: 0, dead: 0, discarded: 0, replays: 0, steals: 0 };
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.record({ account: fc.constantFrom(...ACCOUNTS), job: fc.integer({ min: 1, max: 4 }) }), {
        minLength: 1,
        maxLength: 60,
      }),
      fc.array(fc.constantFrom(...ANSWERS), { maxLength: 80 }),
      // Events that the first sink never accepts, or crashes on.
      fc.array(fc.record({ at: fc.nat(59), kind: fc.constantFrom('rejected', 'broken') }), { maxLength: 2 }),
      fc.array(round(), { maxLength: 8 }),
      // Latency of a table call, in turns of the event loop's queue.
      fc.array(fc.nat(12), { minLength: 1, maxLength: 30 }),
      async (jobs, answers, poison, rounds, paces) => {
        const memory = createMemoryTable();
        const faults = { left: Number.POSITIVE_INFINITY, lands: false };
        let calls = 0;
        const slowly = async <T>(call: () => Promise<T>): Promise<T> => {
          const turns = paces[calls++ % paces.length] ?? 0;
          for (let turn = 0; turn < turns; turn += 1) await Promise.resolve();
          const answer = await call();
          for (let turn = 0; turn < turns; turn += 1) await Promise.resolve();
          return answer;
        };
        const faulty = async <T>(write: () => Promise<T>): Promise<T> => {
          faults.left -= 1;
          if (faults.left === -1 && faults.lands) await write();
          if (faults.left < 0) throw new Error('crash');
          return write();
        };
        const table: Table = {
          ...memory,
          get: (key) => slowly(() => memory.get(key)),
          query: (query) => slowly(() => memory.query(query)),
          write: (write) => slowly(() => faulty(() => memory.write(write))),
          transact: (writes, token) => slowly(() => faulty(() => memory.transact(writes, token))),
        };
        const rig = await createDeliveryRig(delivered, { table, accounts: ACCOUNTS });
        await registerSink(memory, rig.log, { ...(await rig.sink()), id: 'shop', concurrency: 2 }, rig.refs);
        const never = new Map<string, string>();
        const plans: Partial<Record<(typeof SINKS)[number], Plan>> = {};
        type Plan = {
          stealAt: number | null;
          meddleAt: number | null;
          cancelAt: number | null;
          meddle: string;
        };
        let asked = 0;
        let calm = false;
        let said = 0;
        const all: string[] = [];

        const sinks = SINKS.map((id) => {
          const got: LoggedEvent[] = [];
          const attempts = new Map<string, number>();
          const discarded = new Set<string>();
          let at = 0;
          const meddle = async (plan: Plan): Promise<void> => {
            const now = at++;
            if (now === plan.stealAt) {
              seen.steals += 1;
              rig.state.now += 61_000;
              await drain().catch(() => undefined);
            }
            if (now === plan.meddleAt) {
              const [parked] = await listParked(memory, REGION, id);
              if (parked && plan.meddle === 'retry')
                await retryParked(memory, REGION, id, parked, rig.state.now);
              if (parked && plan.meddle === 'discard') {
                if (await discardParked(memory, REGION, id, parked, rig.state.now))
                  discarded.add(parked.eventId);
              }
            }
            if (now === plan.cancelAt) await cancel();
          };
          const answer = async (event: LoggedEvent): Promise<DeliveryOutcome> => {
            const poisoned = id === 'erp' ? never.get(event.id) : undefined;
            const kind = poisoned ?? (calm ? 'ok' : answers[asked++]) ?? 'ok';
            const plan = plans[id];
            if (plan) await meddle(plan);
            if (kind === 'throw') throw new Error('receiver');
            if (kind === 'ok') return { kind: 'delivered' };
            if (kind === 'last') return { kind: 'delivered', disable: 'last' };
            if (kind === 'gone') return { kind: 'retry', reason: 'gone', disable: 'gone' };
            if (kind === 'broken') return { kind: 'retry', reason: 'broken', suspect: true };
            return { kind: kind as 'retry', reason: kind };
          };
          const port: SinkPort = {
            maxBatch: id === 'erp' ? 1 : 3,
            deliver: (deliveries) =>
              Promise.all(
                deliveries.map(async ({ event, replay }) => {
                  attempts.set(event.id, (attempts.get(event.id) ?? 0) + 1);
                  const outcome = await answer(event);
                  if (!replay && outcome.kind === 'delivered') got.push(event);
                  return outcome;
                }),
              ),
          };
          const deps: DrainDeps = { ...rig.deps, open: async () => port };
          async function drain(linger?: () => Promise<NewWork | undefined>) {
            rig.state.now += 1;
            const with_ = linger ? { ...deps, linger, earlyStores: new EarlyStores() } : deps;
            return drainSink(with_, REGION, id, rig.state.now + 600_000);
          }
          const replays: { id: string; account: string; end: number; cancelled: boolean }[] = [];
          async function replay(): Promise<void> {
            const account = 'acme';
            const end = (await rig.log.head({ region: REGION, account }))?.sequence ?? 0;
            if (end === 0) return;
            seen.replays += 1;
            const one = { id: `r${replays.length}`, account, end, cancelled: false };
            replays.push(one);
            await memory.write({ put: { ...keys.replay(REGION, id, one.id), filter: '{}' } });
            const key = keys.replayCursor(REGION, id, account, one.id);
            const due = drainDue(REGION, id, key.sk, rig.state.now);
            await memory.write({ put: { ...key, sink: id, replay: one.id, position: 0, end, ...due } });
          }
          async function cancel(): Promise<void> {
            const one = replays.find(({ cancelled }) => !cancelled);
            if (!one) return;
            one.cancelled = true;
            await memory.write({ update: keys.replay(REGION, id, one.id), set: { cancelledAt: 1 } });
            await memory.write({ delete: keys.replayCursor(REGION, id, one.account, one.id) });
          }
          async function enable(): Promise<void> {
            const item = await memory.get(keys.sink(REGION, id));
            if (!item) throw new Error('There is no sink.');
            const { health } = toSink(item);
            if (health.disabledAt === null) return;
            const set = healthAttributes(enableHealth(health));
            await memory.write({ update: keys.sink(REGION, id), set });
          }
          const dead = async (): Promise<string[]> =>
            (await memory.query({ pk: deadPk(REGION, id) })).map(({ eventId }) => String(eventId));
          const position = async (account: string): Promise<number> =>
            Number((await memory.get(keys.cursor(REGION, id, account)))?.position ?? 0);
          const start = (plan: Plan): void => {
            at = 0;
            plans[id] = plan;
          };
          return {
            ...{ id, got, attempts, discarded, drain, replay, replays, cancel, enable },
            ...{ dead, position, start },
          };
        });

        const sayNext = async (wake: string, count: number): Promise<string[]> => {
          const accounts: string[] = [];
          for (; said < jobs.length && count > 0; said += 1, count -= 1) {
            const { account, job } = jobs[said] ?? { account: 'acme', job: 1 };
            const ref = { region: REGION, account };
            const appended = await rig.log.append(ref, [moved(job, `${said}`)]);
            if (appended.kind !== 'appended') throw new Error('The event was rejected.');
            const { sequence } = appended.head;
            const id = `${account}.e1.${sequence}`;
            all.push(id);
            accounts.push(account);
            const poisoned = poison.find(({ at }) => at === said);
            if (poisoned) never.set(id, poisoned.kind);
            if (wake !== 'lost') await wakeSinks(memory, ref, sequence, rig.state.now);
            if (wake === 'twice') await wakeSinks(memory, ref, sequence, rig.state.now);
          }
          return accounts;
        };

        for (const { replay, enable, linger, wake, writes, lands, ...plan } of rounds) {
          await sayNext(wake, 12);
          for (const sink of sinks) {
            if (enable) await sink.enable();
            if (replay === 'start') await sink.replay();
            if (replay === 'cancel') await sink.cancel();
            sink.start(plan);
            Object.assign(faults, { left: writes, lands });
            let lingered = 0;
            const news = async (): Promise<NewWork | undefined> => {
              lingered += 1;
              if (lingered > 3) return undefined;
              const { left } = faults;
              faults.left = Number.POSITIVE_INFINITY;
              const accounts = await sayNext('lost', 3);
              faults.left = left;
              return { accounts, due: lingered === 2 };
            };
            await sink.drain(linger ? news : undefined).catch(() => undefined);
            if (faults.left < 0) seen.crashes += 1;
            faults.left = Number.POSITIVE_INFINITY;
            plans[sink.id] = undefined as never;
            const parked = (await listParked(memory, REGION, sink.id)).map(({ eventId }) => eventId);
            const known = new Set([
              ...sink.got.map(({ id }) => id),
              ...parked,
              ...(await sink.dead()),
              ...sink.discarded,
            ]);
            for (const account of ACCOUNTS) {
              const position = await sink.position(account);
              for (let sequence = 1; sequence <= position; sequence += 1) {
                expect(known, `${account} ${sequence} of ${position}`).toContain(`${account}.e1.${sequence}`);
              }
            }
          }
          rig.state.now += LONG_MS;
        }

        calm = true;
        await sayNext('lost', jobs.length);
        // Like a tick: remaining wake marks, due sinks.
        for (let tick = 0; tick < 40; tick += 1) {
          for (const { ref, sequence } of await listPendingWakes(memory, REGION, 10)) {
            await wakeSinks(memory, ref, sequence, rig.state.now);
          }
          for (const sink of sinks) await sink.enable();
          const due = await listDueSinks(memory, REGION, rig.state.now);
          for (const sink of sinks) if (due.includes(sink.id)) await sink.drain();
          rig.state.now += LONG_MS;
        }
        expect(await listDueSinks(memory, REGION, rig.state.now), 'nothing is left to do').toEqual([]);
        for (const { id, got, attempts, discarded, replays, ...sink } of sinks) {
          expect(await listParked(memory, REGION, id)).toEqual([]);
          const dead = (await sink.dead()).filter((event) => !event.startsWith('_cell'));
          for (const event of dead) expect(attempts.get(event), event).toBeGreaterThanOrEqual(4);
          const arrived = got.filter(({ account }) => account !== '_cell');
          const done = new Set([...arrived.map((event) => event.id), ...dead, ...discarded]);
          expect([...done].filter((event) => !event.startsWith('_cell')).sort(), id).toEqual([...all].sort());
          const first = arrived.filter((event, at) => arrived.findIndex((one) => one.id === event.id) === at);
          // A discarded event may still be delivered, for example by a drain that has lost its lease.
          const alive = first.filter((event) => !dead.includes(event.id) && !discarded.has(event.id));
          expect(inOrderPerJob(alive), id).toBe(true);
          for (const { id: replay, account, end, cancelled } of replays) {
            const cursor = await memory.get(keys.replayCursor(REGION, id, account, replay));
            if (cancelled) expect(cursor).toBeUndefined();
            else {
              expect(cursor).toMatchObject({ position: end, doneAt: expect.any(Number) });
              expect(Number(cursor?.delivered) + Number(cursor?.failed)).toBe(end);
            }
          }
          seen.repeats += arrived.length - first.length;
          seen.dead += dead.length;
          seen.discarded += discarded.size;
        }
        seen.events += all.length;
      },
    ),
    runs(30, 250),
  );
  console.info(JSON.stringify(seen));
  expect(Math.min(seen.events, seen.crashes, seen.repeats, seen.replays, seen.steals)).toBeGreaterThan(0);
}, 1_800_000);

/** A table that runs an action before or after a write. */
function hooked(hooks: {
  readonly before?: (write: Write) => Promise<void>;
  readonly read?: (query: Query) => Promise<void>;
}): Table {
  const memory = createMemoryTable();
  return {
    ...memory,
    async query(query) {
      await hooks.read?.(query);
      return memory.query(query);
    },
    async write(write) {
      await hooks.before?.(write);
      return memory.write(write);
    },
    async transact(writes, token) {
      for (const write of writes) await hooks.before?.(write);
      return memory.transact(writes, token);
    },
  };
}

const refused = (): DeliveryOutcome => ({
  kind: 'rejected',
  reason: 'The endpoint responded with status 422.',
});
const LANE = { account: 'acme', lane: '1' };
const jobs = (count: number, text = 'x') => Array.from({ length: count }, (_, at) => moved(at, text));

describe('parked events', () => {
  test('are not forgotten if the sink cannot be opened for a while', async () => {
    let mended = false;
    const rig = await createDeliveryRig(() => (mended ? { kind: 'delivered' } : refused()));
    await rig.say([moved(1, 'a')]);
    await rig.drain();
    mended = true;
    rig.state.now += 5_000;
    const open = async () => {
      throw new Error('Its secret could not be read.');
    };
    const report = await drainSink({ ...rig.deps, open }, REGION, 'erp', rig.state.now + 60_000);
    expect(report).toMatchObject({ outcome: 'waiting', problem: 'Its secret could not be read.' });
    await rig.say([moved(1, 'b')]);
    rig.state.now += LONG_MS;
    expect(await rig.drain()).toMatchObject({ outcome: 'drained', delivered: 2 });
    expect(rig.got.map(({ sequence }) => sequence)).toEqual([1, 2]);
    expect(await listDueSinks(rig.table, REGION, rig.state.now)).toEqual([]);
  });

  test('are delivered before new ones if no more can be parked, all in one drain once the sink accepts them', async () => {
    let mended = false;
    const memory = createMemoryTable();
    const slowly = async <T>(call: () => Promise<T>): Promise<T> => {
      for (let turn = 0; turn < 30; turn += 1) await Promise.resolve();
      return call();
    };
    const table: Table = {
      ...memory,
      write: (write) => slowly(() => memory.write(write)),
      transact: (writes, token) => slowly(() => memory.transact(writes, token)),
    };
    const rig = await createDeliveryRig(
      (event) => (event.sequence % 3 === 0 || mended ? { kind: 'delivered' } : refused()),
      { table },
    );
    for (let at = 0; at < 20; at += 1)
      await rig.say(Array.from({ length: 75 }, (_, n) => moved(at * 75 + n, 'x')));
    expect(await rig.drain()).toMatchObject({ outcome: 'drained', parked: 1000 });
    await rig.say([moved(0, 'of a lane that is set aside')]);
    expect(await rig.drain(), 'nothing is sent').toMatchObject({ outcome: 'waiting', parked: 0 });
    mended = true;
    rig.state.now += LONG_MS;
    expect(await rig.drain()).toMatchObject({ outcome: 'drained', delivered: 1001 });
    expect(new Set(rig.got.map(({ sequence }) => sequence)).size).toBe(1501);
    expect(inOrderPerJob(rig.got)).toBe(true);
  });

  test('behind an event that is discarded concurrently stay due', async () => {
    const rig = await createDeliveryRig(
      async (event) => {
        if (event.sequence === 1) return refused();
        if (event.sequence === 2)
          await discardParked(rig.table, REGION, 'erp', { ...LANE, sequence: 1 }, rig.state.now);
        return { kind: 'delivered' };
      },
      { record: { concurrency: 1 } },
    );
    await rig.say([moved(1, 'a')]);
    await rig.drain();
    await rig.say([moved(2, 'b'), moved(1, 'c')]);
    await rig.drain();
    for (let tick = 0; tick < 3; tick += 1) {
      rig.state.now += LONG_MS;
      if ((await listDueSinks(rig.table, REGION, rig.state.now)).length > 0) await rig.drain();
    }
    expect(rig.got.map(({ sequence }) => sequence)).toEqual([2, 3]);
    expect(rig.attempts('acme.e1.1'), 'it is not sent any more').toBe(1);
  });

  test('discarded during a drain are no longer sent', async () => {
    const rig = await createDeliveryRig(
      async (event, attempt) => {
        if (attempt === 1) return refused();
        // The other one, which the drain knows as due.
        const sequence = event.sequence === 1 ? 2 : 1;
        await discardParked(rig.table, REGION, 'erp', { account: 'acme', lane: `${sequence}`, sequence }, 0);
        return { kind: 'delivered' };
      },
      { record: { concurrency: 1 } },
    );
    await rig.say([moved(1, 'a'), moved(2, 'b')]);
    await rig.drain();
    rig.state.now += 5_000;
    expect(await rig.drain()).toMatchObject({ outcome: 'drained', delivered: 1, lost: 0 });
    expect(rig.attempts('acme.e1.1') + rig.attempts('acme.e1.2')).toBe(3);
    expect(await listParked(rig.table, REGION, 'erp')).toEqual([]);
  });

  test('stay due wherever discarding them is interrupted', async () => {
    for (let crash = 1; crash <= 3; crash += 1) {
      let left = Number.POSITIVE_INFINITY;
      const table = hooked({
        async before() {
          left -= 1;
          if (left < 0) throw new Error('crash');
        },
      });
      const rig = await createDeliveryRig(
        (event) => (event.sequence === 1 ? refused() : { kind: 'delivered' }),
        { table },
      );
      await rig.say([moved(1, 'a'), moved(1, 'b')]);
      await rig.drain();
      left = crash;
      await discardParked(table, REGION, 'erp', { ...LANE, sequence: 1 }, rig.state.now).catch(
        () => undefined,
      );
      left = Number.POSITIVE_INFINITY;
      expect(await listDueSinks(table, REGION, rig.state.now + DAY_MS), `after ${crash} writes`).toEqual([
        'erp',
      ]);
    }
  });

  test('parked by the drain that took over the lease stay due for the one that lost it', async () => {
    let stolen = false;
    const rig = await createDeliveryRig(async (event, attempt) => {
      if (event.sequence > 1 || attempt > 3) return { kind: 'delivered' };
      if (attempt === 2 && !stolen) {
        stolen = true;
        await rig.say([moved(1, 'b')]);
        rig.state.now += 61_000;
        await rig.drain();
        return { kind: 'delivered' };
      }
      return refused();
    });
    await rig.say([moved(1, 'a')]);
    await rig.drain();
    rig.state.now += 5_000;
    await rig.drain();
    expect(stolen).toBe(true);
    for (let tick = 0; tick < 3; tick += 1) {
      rig.state.now += LONG_MS;
      if ((await listDueSinks(rig.table, REGION, rig.state.now)).length > 0) await rig.drain();
    }
    expect(rig.got.map(({ sequence }) => sequence)).toContain(2);
    expect(await listParked(rig.table, REGION, 'erp')).toEqual([]);
  });

  test('become dead also if the cell has no log for the event', async () => {
    const rig = await createDeliveryRig(() => refused());
    await rig.table.write({ delete: keys.head(cellLog(REGION)) });
    await rig.say([moved(1, 'a')]);
    let dead = 0;
    for (let attempt = 0; attempt < 6; attempt += 1) {
      dead += (await rig.drain()).dead;
      rig.state.now += LONG_MS;
    }
    expect(dead).toBe(1);
    expect(rig.attempts('acme.e1.1')).toBe(4);
    expect(await rig.table.query({ pk: deadPk(REGION, 'erp') })).toHaveLength(1);
    expect(await listDueSinks(rig.table, REGION, rig.state.now)).toEqual([]);
  });
});

describe('expired events', () => {
  /** Takes the lease while the log is read. */
  async function createStolenRig(answer: () => DeliveryOutcome) {
    const state = { steal: false };
    const table = hooked({
      async read({ pk }) {
        if (!state.steal || !pk.startsWith('LOG#us#acme')) return;
        state.steal = false;
        await table.write({ update: keys.sink(REGION, 'erp'), set: { leaseToken: rig.state.now + 1000 } });
      },
    });
    const rig = await createDeliveryRig(answer, { table });
    return { ...rig, steal: () => (state.steal = true) };
  }

  test('are not skipped silently by a drain that has lost its lease', async () => {
    const rig = await createStolenRig(delivered);
    await rig.say([moved(1, 'old'), moved(2, 'old')]);
    rig.state.now += 91 * DAY_MS;
    rig.steal();
    expect(await rig.drain()).toMatchObject({ lost: 0 });
    expect(await rig.position()).toEqual({ position: 0, due: true });
    rig.state.now += 61_000;
    expect(await rig.drain()).toMatchObject({ outcome: 'drained', lost: 2 });
    expect(await rig.readCellLog()).toMatchObject([{ type: 'endpoint.events_lost', first: 1, last: 2 }]);
  });

  test('that were delivered before an earlier one are not reported as lost, and those in the log are not sent again', async () => {
    const rig = await createDeliveryRig(delivered);
    await rig.say(Array.from({ length: 10 }, (_, at) => moved(at + 1, 'old')));
    rig.state.now += 91 * DAY_MS;
    await rig.say([moved(1, 'new'), moved(2, 'new'), moved(3, 'new')]);
    // A drain crashed when only these were delivered.
    const cursor = keys.cursor(REGION, 'erp', 'acme');
    await rig.table.write({ update: cursor, set: { position: 0, ahead: '1-2,4,8-10,12' } });
    expect(await rig.drain()).toMatchObject({ outcome: 'drained', lost: 4, delivered: 2 });
    expect(await rig.readCellLog()).toMatchObject([{ type: 'endpoint.events_lost', first: 3, last: 7 }]);
    expect((await rig.sink()).health.lost).toBe(4);
    expect(rig.got.map(({ sequence }) => sequence)).toEqual([11, 13]);
    expect(await rig.position()).toEqual({ position: 13, due: false });
  });

  test('that were all delivered are skipped silently', async () => {
    const rig = await createDeliveryRig(delivered);
    await rig.say([moved(1, 'old'), moved(2, 'old')]);
    rig.state.now += 91 * DAY_MS;
    await rig.say([moved(1, 'new')]);
    await rig.table.write({ update: keys.cursor(REGION, 'erp', 'acme'), set: { position: 0, ahead: '1-2' } });
    expect(await rig.drain()).toMatchObject({ outcome: 'drained', lost: 0, delivered: 1 });
    expect(await rig.readCellLog()).toEqual([]);
    expect(await rig.position()).toEqual({ position: 3, due: false });
  });

  test('are not removed from the parked ones', async () => {
    const rig = await createStolenRig(refused);
    await rig.say([moved(1, 'old')]);
    await rig.drain();
    rig.state.now += 91 * DAY_MS;
    rig.steal();
    expect(await rig.drain()).toMatchObject({ lost: 0 });
    expect(await listParked(rig.table, REGION, 'erp')).toHaveLength(1);
    rig.state.now += 61_000;
    expect(await rig.drain()).toMatchObject({ outcome: 'drained', lost: 1 });
    expect(await rig.readCellLog()).toMatchObject([{ type: 'endpoint.events_lost', first: 1, last: 1 }]);
  });

  test('restore no cursor of an endpoint that is deleted concurrently', async () => {
    let deleting = false;
    const table = hooked({
      async read({ pk }) {
        if (!deleting || !pk.startsWith('LOG#us#acme')) return;
        deleting = false;
        await table.write({ delete: keys.sink(REGION, 'erp') });
        await table.write({ delete: keys.cursor(REGION, 'erp', 'acme') });
      },
    });
    const rig = await createDeliveryRig(delivered, { table });
    await rig.say([moved(1, 'old')]);
    rig.state.now += 91 * DAY_MS;
    deleting = true;
    await rig.drain();
    expect(await table.query({ pk: cursorPk(REGION, 'erp') })).toEqual([]);
    expect(await rig.readCellLog()).toEqual([]);
  });

  test('are counted and skipped, without an event, if the cell has no log', async () => {
    const rig = await createDeliveryRig(delivered);
    await rig.table.write({ delete: keys.head(cellLog(REGION)) });
    await rig.say([moved(1, 'old')]);
    rig.state.now += 91 * DAY_MS;
    expect(await rig.drain()).toMatchObject({ outcome: 'drained', lost: 1 });
    expect((await rig.sink()).health.lost).toBe(1);
    expect(await rig.position()).toEqual({ position: 1, due: false });
  });
});

test('a cursor that starts at the beginning stays due if its log could not be read', async () => {
  let broken = false;
  const table = hooked({
    async read({ pk }) {
      if (broken && pk.startsWith('LOG#us#acme')) throw new Error('The table is away.');
    },
  });
  const rig = await createDeliveryRig(delivered, { table });
  const [ref] = rig.refs;
  if (ref) await rig.log.append(ref, [moved(1, 'a')]);
  // As created with the endpoint: due, and never woken.
  const key = keys.cursor(REGION, 'erp', 'acme');
  await table.write({
    put: { ...key, sink: 'erp', position: 0, ...drainDue(REGION, 'erp', 'acme', rig.state.now) },
  });
  broken = true;
  await expect(rig.drain()).rejects.toThrow('The table is away.');
  broken = false;
  expect(await rig.position()).toEqual({ position: 0, due: true });
  expect(await rig.drain()).toMatchObject({ outcome: 'drained', delivered: 1 });
});

test('an event that crashes the receiver is detected, also if earlier suspects never return', async () => {
  const rig = await createDeliveryRig((event) =>
    event.sequence === 1 ? { kind: 'retry', reason: 'reset', suspect: true } : { kind: 'delivered' },
  );
  const suspects = ['a', 'b', 'c', 'd', 'e'];
  await rig.table.write({ update: keys.sink(REGION, 'erp'), set: { suspects } });
  await rig.say([moved(1, 'breaks')]);
  await rig.drain();
  await rig.say(Array.from({ length: 10 }, (_, at) => moved(at + 2, 'fine')));
  for (let probe = 0; probe < 3; probe += 1) {
    rig.state.now += LONG_MS;
    await rig.drain();
  }
  expect(rig.got).toHaveLength(10);
  expect((await rig.sink()).health.suspects).toHaveLength(4);
});

test('a dead event, and one that a replay gave up, is no longer suspect', async () => {
  const rig = await createDeliveryRig((event) =>
    event.sequence === 1 ? { kind: 'retry', reason: 'reset', suspect: true } : { kind: 'delivered' },
  );
  await rig.say([moved(1, 'breaks')]);
  for (let probe = 0; probe < 12; probe += 1) {
    await rig.drain();
    rig.state.now += LONG_MS;
  }
  expect(await rig.table.query({ pk: deadPk(REGION, 'erp') })).toHaveLength(1);
  expect((await rig.sink()).health.suspects).toEqual([]);
  const cursor = await rig.replay('r1', 0, 1);
  for (let probe = 0; probe < 4; probe += 1) {
    await rig.say([moved(2, 'fine')]);
    await rig.drain();
    rig.state.now += LONG_MS;
  }
  expect(await cursor()).toMatchObject({ position: 1, failed: 1 });
  expect((await rig.sink()).health.suspects).toEqual([]);
});

test('a replay of many accounts does not delay new events', async () => {
  const accounts = Array.from({ length: 300 }, (_, at) => `a${at}`);
  const rig = await createDeliveryRig(delivered, { accounts });
  for (const ref of rig.refs) await rig.say([moved(1, 'x')], ref);
  await rig.drain();
  for (const account of accounts) await rig.replay('r1', 0, 1, {}, account);
  rig.state.now += 10;
  await rig.say([moved(1, 'new')], rig.refs[7]);
  const order: string[] = [];
  const { deliver } = rig.port;
  rig.port.deliver = async (deliveries) => {
    order.push(...deliveries.map(({ replay }) => (replay ? 'replay' : 'new')));
    return deliver(deliveries);
  };
  await rig.drain();
  expect(order).toHaveLength(301);
  expect(order.indexOf('new')).toBeLessThan(60);
});

test.each([
  ['paused', { paused: true }],
  ['changed', { target: 'http://127.0.0.1/elsewhere', revision: 2 }],
])('a drain of a sink that is %s meanwhile ends soon, and the rest stays due', async (_, set) => {
  const rig = await createDeliveryRig(
    async (event) => {
      rig.state.now += 1_000;
      if (event.sequence === 5) await rig.table.write({ update: keys.sink(REGION, 'erp'), set });
      return { kind: 'delivered' };
    },
    { record: { concurrency: 1 } },
  );
  await rig.say(jobs(90));
  const report = await rig.drain(rig.state.now + 600_000);
  expect(report.outcome).toBe('more');
  expect(report.delivered).toBeLessThan(25);
  expect(await rig.position()).toEqual({ position: report.delivered, due: true });
});

test('a replay that is cancelled while it is sent ends soon, and new events continue', async () => {
  const rig = await createDeliveryRig(delivered, { record: { concurrency: 2 } });
  for (let at = 0; at < 10; at += 1) await rig.say(jobs(90, `${at}`));
  await rig.drain();
  const cursor = await rig.replay('r1', 0, 900);
  const { deliver } = rig.port;
  rig.port.deliver = async (deliveries) => {
    rig.state.now += 200;
    if (rig.replays.length === 10) {
      await rig.table.write({ update: keys.replay(REGION, 'erp', 'r1'), set: { cancelledAt: 1 } });
      await rig.table.write({ delete: keys.replayCursor(REGION, 'erp', 'acme', 'r1') });
      await rig.say([moved(1, 'new')]);
    }
    return deliver(deliveries);
  };
  expect(await rig.drain(rig.state.now + 600_000)).toMatchObject({ outcome: 'drained' });
  expect(rig.replays.length).toBeLessThan(40);
  expect(rig.got.at(-1)?.sequence).toBe(901);
  expect(await cursor()).toBeUndefined();
});

test('a rate limit does not extend a drain beyond its time, and needs one timer', async () => {
  const rig = await createDeliveryRig(delivered, { record: { ratePerSecond: 0.1 } });
  await rig.say(jobs(5));
  let slept = 0;
  const sleep = async (ms: number) => {
    slept += ms;
    rig.state.now += ms;
  };
  const report = await drainSink({ ...rig.deps, sleep }, REGION, 'erp', rig.state.now + 3_000);
  expect(report).toMatchObject({ outcome: 'more', delivered: 1 });
  expect(slept).toBe(3_000);
});

describe('parked events in detail', () => {
  test('count from the time they are stored, also for the drain after a crash', async () => {
    let dead = false;
    const table = hooked({
      async before() {
        if (dead) throw new Error('crash');
      },
    });
    const rig = await createDeliveryRig(
      (event, attempt) => {
        if (event.sequence === 1 && attempt < 3) return refused();
        if (event.sequence === 2 && attempt === 1) dead = true;
        return { kind: 'delivered' };
      },
      { table, record: { concurrency: 1 } },
    );
    await rig.say([moved(1, 'a')]);
    // Stored, and then the drain crashes before it stores the sink's state.
    const storing = hookOn(rig.table, 'PARKED#');
    await rig.say([moved(2, 'b')]);
    const { deliver } = rig.port;
    rig.port.deliver = async (deliveries) => {
      if (deliveries[0]?.event.sequence === 2) await storing;
      return deliver(deliveries);
    };
    await expect(rig.drain()).rejects.toThrow('crash');
    dead = false;
    expect(await listParked(table, REGION, 'erp')).toHaveLength(1);
    await rig.say([moved(1, 'c')]);
    for (let tick = 0; tick < 4; tick += 1) {
      rig.state.now += LONG_MS;
      await rig.drain();
    }
    const laneEvents = rig.got.filter(({ jobNumber }) => jobNumber === 1);
    expect(laneEvents.map(({ sequence }) => sequence)).toEqual([1, 3]);
    expect((await table.get(keys.sink(REGION, 'erp')))?.parking, 'none is parked any more').toBeUndefined();
  });

  test('are due behind a delivered one, also if the sink fails right then', async () => {
    let down = false;
    const rig = await createDeliveryRig((event, attempt) => {
      if (event.sequence === 1) return attempt === 1 ? refused() : { kind: 'delivered' };
      return down ? { kind: 'retry', reason: 'down' } : { kind: 'delivered' };
    });
    await rig.say([moved(1, 'a'), moved(1, 'b')]);
    await rig.drain();
    down = true;
    rig.state.now += 5_000;
    expect(await rig.drain()).toMatchObject({ outcome: 'waiting', delivered: 1 });
    down = false;
    rig.state.now += LONG_MS;
    expect(await listDueSinks(rig.table, REGION, rig.state.now)).toEqual(['erp']);
    expect(await rig.drain()).toMatchObject({ outcome: 'drained', delivered: 1 });
  });

  test('follow in the same drain if their predecessor is being delivered', async () => {
    let isParked = (): void => undefined;
    const parked = new Promise<void>((resolve) => {
      isParked = resolve;
    });
    let slow = false;
    const table = hooked({
      async before(write) {
        if (slow && 'delete' in write && write.delete.sk.startsWith('acme#1#')) await parked;
      },
    });
    const rig = await createDeliveryRig(
      (event, attempt) => {
        if (event.sequence <= 2 && attempt === 1) return refused();
        // It follows an event of a lane whose end waits behind the slow one.
        if (event.sequence === 4) isParked();
        return { kind: 'delivered' };
      },
      { table },
    );
    await rig.say([moved(1, 'a'), moved(2, 'b')]);
    await rig.drain();
    await rig.say([moved(2, 'c'), moved(3, 'd')]);
    rig.state.now += 5_000;
    slow = true;
    expect(await rig.drain()).toMatchObject({ outcome: 'drained', delivered: 4, parked: 1 });
    expect(await listParked(table, REGION, 'erp')).toEqual([]);
  });

  test('lose at most one attempt while the whole sink is down', async () => {
    let down = false;
    const rig = await createDeliveryRig((event) => {
      if (down) return { kind: 'retry', reason: 'down', suspect: true };
      return event.sequence === 1 ? refused() : { kind: 'delivered' };
    });
    await rig.say([moved(1, 'a')]);
    await rig.drain();
    down = true;
    await rig.say(Array.from({ length: 9 }, (_, at) => moved(at + 2, 'x')));
    for (let probe = 0; probe < 8; probe += 1) {
      rig.state.now += LONG_MS;
      await rig.drain();
    }
    // The attempt that may have detected it.
    expect(await listParked(rig.table, REGION, 'erp')).toMatchObject([{ sequence: 1, attempts: 2 }]);
  });
});

/** Resolves when an item under a partition is put in a transaction. */
function hookOn(table: Table, partition: string): Promise<void> {
  const { transact } = table;
  return new Promise((resolve) => {
    Object.assign(table, {
      async transact(writes: readonly Write[], token: string) {
        const outcome = await transact(writes, token);
        if (writes.some((write) => 'put' in write && write.put.pk.startsWith(partition))) resolve();
        return outcome;
      },
    });
  });
}

describe('fairness', () => {
  test.each(['a', 'b', 'c'])('a long backlog of %s delays no other', async (hot) => {
    const rig = await createDeliveryRig(delivered, { accounts: ['a', 'b', 'c'], record: { concurrency: 1 } });
    for (const ref of rig.refs) {
      for (let at = 0; at < (ref.account === hot ? 3 : 1); at += 1) await rig.say(jobs(90, `${at}`), ref);
    }
    await rig.drain();
    for (const account of ['a', 'b', 'c']) {
      expect(rig.got.slice(0, 30).filter((event) => event.account === account).length).toBeGreaterThan(5);
    }
  });

  test('accounts with a backlog, more than a drain can finish, do not delay one with few events', async () => {
    const accounts = [...Array.from({ length: 8 }, (_, at) => `busy${at}`), 'calm'];
    const rig = await createDeliveryRig(delivered, { accounts });
    for (const ref of rig.refs.slice(0, 8))
      for (let at = 0; at < 8; at += 1) await rig.say(jobs(90, `${at}`), ref);
    rig.state.now += 1;
    await rig.say([moved(1, 'x')], rig.refs[8]);
    await rig.drain();
    expect(rig.got).toHaveLength(8 * 720 + 1);
    expect(rig.got.findIndex(({ account }) => account === 'calm')).toBeLessThan(8 * 500);
  });

  test('the accounts that waited longest come first', async () => {
    const accounts = Array.from({ length: 30 }, (_, at) => `a${at}`);
    const rig = await createDeliveryRig(delivered, { accounts });
    for (const ref of rig.refs.toReversed()) {
      rig.state.now += 1_000;
      await rig.say([moved(1, 'x')], ref);
    }
    await rig.drain();
    const first = rig.got.slice(0, 8).map(({ account }) => account);
    expect(first.sort()).toEqual(accounts.slice(-8).sort());
  });

  test('a slow event delays at most a window of its account', async () => {
    let release = (): void => undefined;
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    const rig = await createDeliveryRig(async (event) => {
      if (event.sequence === 1) await held;
      return { kind: 'delivered' };
    });
    for (let at = 0; at < 10; at += 1)
      await rig.say(jobs(90, `${at}`).map((draft, n) => ({ ...draft, jobNumber: at * 90 + n })));
    const drained = rig.drain();
    let before = -1;
    while (rig.got.length > before) {
      before = rig.got.length;
      for (let turn = 0; turn < 20; turn += 1) await setImmediate();
    }
    expect(before).toBeGreaterThan(200);
    expect(before).toBeLessThanOrEqual(400);
    const cursor = await rig.table.get(keys.cursor(REGION, 'erp', 'acme'));
    const [, last] = String(cursor?.ahead).split('-');
    expect(before - Number(last), 'events that a crash would repeat').toBeLessThan(100);
    release();
    expect(await drained).toMatchObject({ outcome: 'drained', delivered: 900 });
  });
});

describe('a lingering drain', () => {
  /** Drains with these wake-ups, one after the other. */
  async function linger(
    rig: Awaited<ReturnType<typeof createDeliveryRig>>,
    news: readonly (() => Promise<NewWork>)[],
  ) {
    const left = [...news];
    rig.state.now += 1;
    const next = async () => left.shift()?.();
    return drainSink({ ...rig.deps, linger: next }, REGION, 'erp', rig.state.now + 600_000);
  }

  test('delivers events before they are marked, and the late mark starts nothing', async () => {
    const rig = await createDeliveryRig(delivered);
    const [ref] = rig.refs;
    if (!ref) throw new Error('There is no account.');
    const announce = async () => {
      await rig.log.append(ref, [moved(1, 'a')]);
      return { accounts: ['acme'], due: false };
    };
    expect(await linger(rig, [announce, announce])).toMatchObject({ outcome: 'drained', delivered: 2 });
    await wakeSinks(rig.table, ref, 2, rig.state.now);
    expect(await rig.position()).toEqual({ position: 2, due: false });
    const due = async () => {
      await rig.say([moved(1, 'b')]);
      return { accounts: [], due: true };
    };
    expect(await linger(rig, [due]), 'woken without the accounts').toMatchObject({ delivered: 1 });
  });

  test.each([
    { what: 'soon one after the other are stored together', passMs: 0, expected: [3] },
    { what: 'that continue for longer are stored in between', passMs: 300, expected: [2, 3] },
  ])('positions of events $what', async ({ passMs, expected }) => {
    const rig = await createDeliveryRig(delivered);
    const [ref] = rig.refs;
    if (!ref) throw new Error('There is no account.');
    const stored: unknown[] = [];
    const table: typeof rig.table = {
      ...rig.table,
      write(write) {
        if ('update' in write && write.set.position !== undefined) stored.push(write.set.position);
        return rig.table.write(write);
      },
    };
    const left = ['a', 'b', 'c'];
    const linger = async (): Promise<NewWork | undefined> => {
      rig.state.now += passMs;
      const status = left.shift();
      if (status === undefined) return undefined;
      await rig.log.append(ref, [moved(1, status)]);
      return { accounts: ['acme'], due: false };
    };
    rig.state.now += 1;
    await drainSink({ ...rig.deps, table, linger }, REGION, 'erp', rig.state.now + 600_000);
    expect(stored.filter((position) => position !== 0)).toEqual(expected);
  });

  test.each([
    {
      what: 'each event that a slow endpoint accepted',
      passMs: 20,
      expected: [1, 2, 3, 4, 5],
    },
    { what: 'several events that a fast endpoint accepted together', passMs: 4, expected: [1, 4] },
  ])('stores $what, so that a crash does not repeat them', async ({ passMs, expected }) => {
    const rig = await createDeliveryRig(delivered);
    await rig.say(jobs(6, 'a'));
    const { deps, stored, answer } = watchPositions(rig);
    const lingering = { ...deps, linger: async () => undefined };
    const drained = drainSink(lingering, REGION, 'erp', rig.state.now + 60_000);
    for (let sent = 0; sent < 5; sent += 1) await answer(passMs);
    expect(stored).toEqual(expected);
    await answer(0);
    expect(await drained).toMatchObject({ outcome: 'drained', delivered: 6 });
  });

  test('stores each event that a slow endpoint accepted although an earlier position waits at the head', async () => {
    const rig = await createDeliveryRig(delivered);
    const { deps, stored, answer } = watchPositions(rig);
    const news = [jobs(60, 'b')];
    const linger = async () => {
      const [next] = news.splice(0);
      if (!next) return undefined;
      await rig.say(next);
      return { accounts: ['acme'], due: false };
    };
    await rig.say([moved(1, 'a')]);
    const drained = drainSink({ ...deps, linger }, REGION, 'erp', rig.state.now + 60_000);
    await answer(1);
    for (let sent = 0; sent < 3; sent += 1) await answer(20);
    expect(stored).toEqual([1, 2, 3, 4]);
    for (let sent = 0; sent < 57; sent += 1) await answer(1);
    expect(await drained).toMatchObject({ outcome: 'drained', delivered: 61 });
  });

  test.each([
    { ordered: true, what: 'does not wait for the delivery log, which is written first' },
    { ordered: undefined, what: 'waits until the delivery log is written' },
  ] as const)('a position $what (tables with ordered writes: $ordered)', async ({ ordered }) => {
    const rig = await createDeliveryRig(delivered);
    await rig.say(jobs(1, 'a'));
    const writes: string[] = [];
    const logged = Promise.withResolvers<void>();
    const table: typeof rig.table = {
      ...rig.table,
      ...(ordered && { ordered }),
      write(write) {
        if ('update' in write && write.set.position === 1) writes.push('position');
        return rig.table.write(write);
      },
    };
    const deliveries = {
      async record() {
        writes.push('delivery log');
        await logged.promise;
      },
    };
    const drained = drainSink({ ...rig.deps, table, deliveries }, REGION, 'erp', rig.state.now + 60_000);
    for (let turn = 0; turn < 200; turn += 1) await setImmediate();
    expect(writes).toEqual(ordered ? ['delivery log', 'position'] : ['delivery log']);
    logged.resolve();
    expect(await drained).toMatchObject({ outcome: 'drained', delivered: 1 });
    expect(writes).toEqual(['delivery log', 'position']);
  });

  test('sends new events of other jobs while an event is in delivery', async () => {
    const rig = await createDeliveryRig(delivered);
    const [ref] = rig.refs;
    if (!ref) throw new Error('There is no account.');
    const slow = Promise.withResolvers<void>();
    const sent: number[] = [];
    rig.port.deliver = async (events) => {
      const [first] = events;
      if (!first) throw new Error('Nothing is sent.');
      sent.push(first.event.sequence);
      if (first.event.sequence === 1) {
        await rig.log.append(ref, [moved(2, 'a')]);
        grown.push('acme');
        wake();
        await slow.promise;
      } else slow.resolve();
      return events.map(() => ({ kind: 'delivered' }) as const);
    };
    const grown: string[] = [];
    let wake = (): void => {};
    const takeGrown = (onGrowth: () => void): string[] => {
      wake = onGrowth;
      return grown.splice(0);
    };
    await rig.say([moved(1, 'a')]);
    const deps = { ...rig.deps, takeGrown, linger: async () => undefined };
    const report = await drainSink(deps, REGION, 'erp', rig.state.now + 60_000);
    expect(report).toMatchObject({ outcome: 'drained', delivered: 2 });
    expect(sent).toEqual([1, 2]);
  });

  test('reads events that are announced while the position is stored', async () => {
    const rig = await createDeliveryRig(delivered);
    const [ref] = rig.refs;
    if (!ref) throw new Error('There is no account.');
    const grown: string[] = [];
    let wake = (): void => {};
    const table: typeof rig.table = {
      ...rig.table,
      async write(write) {
        const isEnd = 'update' in write && write.set.position === 1 && 'duePk' in write.set;
        if (isEnd && grown.length === 0) {
          await rig.log.append(ref, [moved(2, 'a')]);
          grown.push('acme');
          wake();
          await setImmediate();
        }
        return rig.table.write(write);
      },
    };
    const takeGrown = (onGrowth: () => void): string[] => {
      wake = onGrowth;
      return grown.splice(0);
    };
    await rig.say([moved(1, 'a')]);
    const report = await drainSink({ ...rig.deps, table, takeGrown }, REGION, 'erp', rig.state.now + 60_000);
    expect(report).toMatchObject({ outcome: 'drained', delivered: 2 });
  });

  test('does not open a cursor again that a later lease owns', async () => {
    const rig = await createDeliveryRig(delivered);
    const grown: string[] = [];
    let sent = 0;
    rig.port.deliver = async (events) => {
      sent += events.length;
      grown.push('acme');
      await rig.table.write({
        update: keys.cursor(REGION, 'erp', 'acme'),
        set: { fence: rig.state.now + 1_000_000 },
      });
      return events.map(() => ({ kind: 'delivered' }) as const);
    };
    await rig.say([moved(1, 'a')]);
    let asked = 0;
    const linger = async (): Promise<NewWork | undefined> => {
      asked += 1;
      // At first, the position is stored.
      return asked === 1 || asked > 3 ? undefined : { accounts: ['acme'], due: true };
    };
    const deps = { ...rig.deps, linger, takeGrown: () => grown.splice(0) };
    await drainSink(deps, REGION, 'erp', rig.state.now + 60_000);
    expect(sent).toBe(1);
  });

  test('keeps its lease', async () => {
    const rig = await createDeliveryRig(delivered);
    const announce = async () => {
      rig.state.now += 20_000;
      expect(await rig.drain()).toMatchObject({ outcome: 'busy' });
      await rig.say([moved(1, 'a')]);
      return { accounts: ['acme'], due: false };
    };
    const report = await linger(
      rig,
      Array.from({ length: 6 }, () => announce),
    );
    expect(report).toMatchObject({ outcome: 'drained', delivered: 6 });
  });
});

test('an event without an answer of the sink is not delivered', async () => {
  const rig = await createDeliveryRig(delivered);
  rig.port.deliver = async () => [];
  await rig.say([moved(1, 'a')]);
  expect(await rig.drain()).toMatchObject({ outcome: 'waiting', delivered: 0 });
  expect(await rig.position()).toEqual({ position: 0, due: true });
});

test('endpoint.recovered is emitted when the sink accepts an event, not when it is enabled', async () => {
  const rig = await createDeliveryRig((event) => ({
    kind: 'delivered',
    ...(event.sequence === 1 && { disable: 'The endpoint responded with status 410.' }),
  }));
  await rig.say([moved(1, 'a')]);
  await rig.drain();
  const { health } = await rig.sink();
  await rig.table.write({ update: keys.sink(REGION, 'erp'), set: healthAttributes(enableHealth(health)) });
  const types = async () => (await rig.readCellLog()).map(({ type }) => type);
  // No event of the cell's own log either.
  await rig.table.write({ delete: keys.cursor(REGION, 'erp', '_cell') });
  expect(await rig.drain()).toMatchObject({ outcome: 'drained', delivered: 0 });
  expect(await types()).toEqual(['endpoint.disabled']);
  await rig.say([moved(1, 'b')]);
  await rig.drain();
  expect(await types()).toEqual(['endpoint.disabled', 'endpoint.recovered']);
});

/**
 * Records the positions that a drain stores, and makes its deliveries wait. `answer` accepts the one that waits longest, after a time (ms),
 * and returns when its position can have been stored.
 */
function watchPositions(rig: Awaited<ReturnType<typeof createDeliveryRig>>) {
  const waiting: (() => void)[] = [];
  const stored: unknown[] = [];
  const table: typeof rig.table = {
    ...rig.table,
    write(write) {
      if ('update' in write && write.set.position !== undefined) stored.push(write.set.position);
      return rig.table.write(write);
    },
  };
  rig.port.deliver = async (events) => {
    await new Promise<void>((resolve) => waiting.push(resolve));
    return events.map(() => ({ kind: 'delivered' }) as const);
  };
  return {
    stored,
    deps: { ...rig.deps, table, earlyStores: new EarlyStores() },
    async answer(passMs: number): Promise<void> {
      while (waiting.length === 0) await setImmediate();
      rig.state.now += passMs;
      waiting.shift()?.();
      for (let turn = 0; turn < 20; turn += 1) await setImmediate();
    },
  };
}
