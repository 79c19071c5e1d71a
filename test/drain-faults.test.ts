/** Drains that crash, lose their lease or are meddled with: nothing is lost, overtaken or left lying. */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { LoggedEvent } from '../shared/log/log.ts';
import { type DrainDeps, drainSink, type News } from '../shared/sinks/drain.ts';
import { enabled, healthAttributes } from '../shared/sinks/health.ts';
import { discardParked, listParked, retryParked } from '../shared/sinks/parking.ts';
import {
  type DeliveryOutcome,
  dueSinks,
  leftoverWakes,
  registerSink,
  type SinkPort,
  toSink,
  wakeSinks,
} from '../shared/sinks/sink.ts';
import { createMemoryTable } from '../shared/table/memory-table.ts';
import { deadPk, drainDue, keys } from '../shared/table/schema.ts';
import type { Table } from '../shared/table/table.ts';
import { createDeliveryRig, delivered, inOrderPerJob, moved, REGION } from './support/delivery.ts';

/** What a receiver may do with an event. */
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

/** What happens around one drain of each sink. */
const round = () =>
  fc.record({
    /** The table fails from this write on, and whether that one is still written. */
    writes: fc.integer({ min: 1, max: 40 }),
    lands: fc.boolean(),
    wake: fc.constantFrom('lost', 'once', 'twice'),
    /** At which attempts somebody else takes the lease, and an operator does something about what is set aside. */
    stealAt: fc.option(fc.nat(6)),
    meddleAt: fc.option(fc.nat(10)),
    meddle: fc.constantFrom('retry', 'discard'),
    replay: fc.option(fc.constantFrom('start', 'cancel')),
    cancelAt: fc.option(fc.nat(10)),
    linger: fc.boolean(),
    enable: fc.boolean(),
  });

test('whatever the sinks answer, wherever drains crash, whoever takes their lease, discards, cancels or enables: every event arrives, is said to be dead or was discarded, in order per job, and no cursor is ahead', async () => {
  const seen = { events: 0, crashes: 0, repeats: 0, dead: 0, discarded: 0, replays: 0, steals: 0 };
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.record({ account: fc.constantFrom(...ACCOUNTS), job: fc.integer({ min: 1, max: 4 }) }), {
        minLength: 1,
        maxLength: 60,
      }),
      fc.array(fc.constantFrom(...ANSWERS), { maxLength: 80 }),
      // Events that the first sink never takes, or breaks on.
      fc.array(fc.record({ at: fc.nat(59), kind: fc.constantFrom('rejected', 'broken') }), { maxLength: 2 }),
      fc.array(round(), { maxLength: 8 }),
      // How long the table takes for a call, in turns of the event loop's queue.
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
          async function drain(linger?: () => Promise<News | undefined>) {
            rig.state.now += 1;
            const with_ = linger ? { ...deps, linger } : deps;
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
            const set = healthAttributes(enabled(health));
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
            if (appended.kind !== 'appended') throw new Error('The event was refused.');
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
            const news = async (): Promise<News | undefined> => {
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
        // What a tick does: wake marks that are left, sinks with something due.
        for (let tick = 0; tick < 40; tick += 1) {
          for (const { ref, sequence } of await leftoverWakes(memory, REGION, 10)) {
            await wakeSinks(memory, ref, sequence, rig.state.now);
          }
          for (const sink of sinks) await sink.enable();
          const due = await dueSinks(memory, REGION, rig.state.now);
          for (const sink of sinks) if (due.includes(sink.id)) await sink.drain();
          rig.state.now += LONG_MS;
        }
        expect(await dueSinks(memory, REGION, rig.state.now), 'nothing is left to do').toEqual([]);
        for (const { id, got, attempts, discarded, replays, ...sink } of sinks) {
          expect(await listParked(memory, REGION, id)).toEqual([]);
          const dead = (await sink.dead()).filter((event) => !event.startsWith('_cell'));
          for (const event of dead) expect(attempts.get(event), event).toBeGreaterThanOrEqual(4);
          const arrived = got.filter(({ account }) => account !== '_cell');
          const done = new Set([...arrived.map((event) => event.id), ...dead, ...discarded]);
          expect([...done].filter((event) => !event.startsWith('_cell')).sort(), id).toEqual([...all].sort());
          const first = arrived.filter((event, at) => arrived.findIndex((one) => one.id === event.id) === at);
          // What was given up may yet arrive, from a drain that has lost its lease, say.
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
    {
      numRuns: Number(process.env.ENGINE_RUNS ?? 250),
      ...(process.env.ENGINE_SEED ? { seed: Number(process.env.ENGINE_SEED) } : {}),
      ...(process.env.ENGINE_PATH ? { path: process.env.ENGINE_PATH } : {}),
    },
  );
  console.info(JSON.stringify(seen));
  for (const [what, count] of Object.entries(seen)) expect(count, `${what} were tried`).toBeGreaterThan(0);
}, 180_000);
