/** Redelivery by filter: which parked and dead events are sent again, in which order, and after any interruption. */
import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import { createDeliveryLog } from '../../shared/delivery/delivery-log.ts';
import type { Redelivery } from '../../shared/delivery/endpoint-input.ts';
import { listDeadPage, listParked } from '../../shared/delivery/parked-events.ts';
import { MAX_EXAMINED_DEAD, redeliver } from '../../shared/delivery/redelivery.ts';
import {
  MAX_RUNNING_REPLAYS,
  type ReplayDeps,
  readReplay,
  resendEvent,
} from '../../shared/delivery/replays.ts';
import type { DeliveryOutcome } from '../../shared/delivery/sink.ts';
import { historySchema, keys } from '../../shared/storage/schema.ts';
import { createMemoryTable } from '../../shared/storage/sqlite-table.ts';
import type { Table } from '../../shared/storage/table.ts';
import { createDeliveryRig, delivered, inOrderPerJob, moved, REGION } from '../support/delivery-world.ts';
import { eachTable } from '../support/tables.ts';

const rejected = (status = 422): DeliveryOutcome => ({
  kind: 'rejected',
  reason: `The endpoint responded with status ${status}.`,
  answer: { status, excerpt: '' },
});

/** A sink whose receiver can be fixed, with parked and dead events. */
async function createRig(
  makeTable: () => Promise<Table>,
  answer: (job: number) => DeliveryOutcome = () => rejected(),
) {
  const receiver = { answer };
  const rig = await createDeliveryRig(({ jobNumber = 0 }) => receiver.answer(jobNumber), {
    accounts: ['acme', 'other'],
    table: await makeTable(),
  });
  const deps: ReplayDeps = {
    ...rig.deps,
    deliveries: createDeliveryLog(createMemoryTable(historySchema), { newId: randomUUID }),
  };
  return {
    ...{ ...rig, receiver, deps },
    redeliver: (input: Redelivery, isVisible = (_: string) => true) =>
      redeliver(deps, { region: REGION, id: 'erp' }, input, isVisible, { newId: randomUUID }),
    /** Stores dead events of the log, as the drain does after the last attempt. */
    async die(account: string, sequences: readonly number[], over: object = {}) {
      const page = await rig.log.read({ region: REGION, account }, 0, 2000);
      const events = page?.kind === 'events' ? page.events : [];
      await rig.table.putMany(
        events
          .filter(({ sequence }) => sequences.includes(sequence))
          .map(({ id, type, sequence, jobNumber }) => ({
            ...keys.dead(REGION, 'erp', account, sequence),
            ...{ account, lane: String(jobNumber), eventId: id, type, jobNumber, attempts: 4 },
            ...{ parkedAt: rig.state.now, diedAt: rig.state.now, reason: 'x', status: 422, ...over },
          })),
      );
    },
    /** Delivers everything that is due live, so that only what is parked or dead is left. */
    async settle() {
      receiver.answer = delivered;
      await rig.drain();
      rig.batches.length = 0;
      rig.got.length = 0;
    },
    async dead() {
      const { dead } = await listDeadPage(rig.table, REGION, 'erp', { limit: 1000 });
      return dead.map(({ eventId }) => eventId);
    },
    read: (id: string) => readReplay(deps, REGION, 'erp', id),
    /** The sequences sent since the last {@link settle}, in order. */
    sent: () => rig.batches.flat().map(({ sequence }) => sequence),
  };
}
type Rig = Awaited<ReturnType<typeof createRig>>;

async function report(rig: Rig, input: Redelivery, isVisible?: (account: string) => boolean) {
  const outcome = await rig.redeliver(input, isVisible);
  if (outcome.kind !== 'redelivered') throw new Error(outcome.reason);
  return outcome;
}

eachTable('redelivery', (makeTable) => {
  test('records the HTTP status of the rejection of parked and dead events', async () => {
    const rig = await createRig(makeTable, (job) => rejected(400 + job));
    await rig.say([moved(1, 'a'), moved(1, 'b')]);
    await rig.drain();
    expect(await listParked(rig.table, REGION, 'erp')).toMatchObject([{ status: 401 }, { status: null }]);
    for (let attempt = 0; attempt < 3; attempt += 1) {
      rig.state.now += 2_200_000;
      await rig.drain();
    }
    expect((await listDeadPage(rig.table, REGION, 'erp', { limit: 9 })).dead).toMatchObject([
      { status: 401 },
    ]);
  });

  test('a dry run counts and lists the events, and changes nothing', async () => {
    const rig = await createRig(makeTable);
    await rig.say([moved(1, 'a'), moved(2, 'b'), moved(2, 'c'), moved(3, 'd')]);
    await rig.drain();
    await rig.die('acme', [1, 4]);
    const before = await listParked(rig.table, REGION, 'erp');
    const preview = await report(rig, { dryRun: true, filter: { jobNumbers: [2, 3] } });
    expect(preview).toMatchObject({ dryRun: true, parked: 3, dead: 1, complete: true, replay: null });
    expect(preview.events.map(({ event, state }) => [event, state])).toEqual([
      ['acme.e1.2', 'parked'],
      ['acme.e1.3', 'parked'],
      ['acme.e1.4', 'parked'],
      ['acme.e1.4', 'dead'],
    ]);
    expect(await listParked(rig.table, REGION, 'erp')).toEqual(before);
    expect(await rig.dead()).toEqual(['acme.e1.1', 'acme.e1.4']);
    rig.receiver.answer = delivered;
    rig.batches.length = 0;
    await rig.drain();
    expect(rig.batches).toEqual([]);
  });

  test('sends exactly the dead events that match every filter, and only those are no longer dead', async () => {
    const rig = await createRig(makeTable);
    await rig.say(Array.from({ length: 30 }, (_, at) => moved(at % 3, 'x')));
    await rig.say(
      Array.from({ length: 3 }, () => moved(0, 'x')),
      { region: REGION, account: 'other' },
    );
    await rig.settle();
    await rig.die('acme', [2, 5, 8], { status: 500 });
    await rig.die('acme', [11, 14, 17]);
    await rig.die('acme', [20], { parkedAt: rig.state.now - 60_000 });
    await rig.die('acme', [3], {});
    await rig.die('other', [1, 2]);
    const from = new Date(rig.state.now - 1).toISOString();
    const { dead, replay } = await report(rig, {
      filter: { accounts: ['acme'], statuses: [422], jobNumbers: [1], types: ['job.*'], from },
    });
    expect(dead).toBe(3);
    await rig.drain();
    expect(rig.sent()).toEqual([11, 14, 17]);
    expect(rig.replays, 'they are marked as a replay').toEqual(['acme.e1.11', 'acme.e1.14', 'acme.e1.17']);
    expect(await rig.dead()).toEqual([
      ...[2, 3, 5, 8, 20].map((sequence) => `acme.e1.${sequence}`),
      ...['other.e1.1', 'other.e1.2'],
    ]);
    expect(await rig.read(replay?.id ?? '')).toMatchObject({
      ...{ state: 'done', total: 3, done: 3, delivered: 3, failed: 0, skipped: 0 },
      dead: { accounts: ['acme'], types: ['job.*'], jobNumbers: [1], statuses: [422], to: null },
    });
  });

  test('does not send dead events that a resend has delivered', async () => {
    const rig = await createRig(makeTable);
    await rig.say([moved(1, 'x'), moved(2, 'x')]);
    await rig.settle();
    await rig.die('acme', [1, 2]);
    await resendEvent(rig.deps, REGION, 'erp', 'acme', 1);
    expect(await rig.dead(), 'delivered').toEqual(['acme.e1.2']);
    rig.receiver.answer = () => rejected();
    await resendEvent(rig.deps, REGION, 'erp', 'acme', 2);
    expect(await rig.dead(), 'rejected again').toEqual(['acme.e1.2']);
    expect(await report(rig, {})).toMatchObject({ dead: 1 });
  });

  test('sends the dead events of each job in order, also if they are far apart', async () => {
    const rig = await createRig(makeTable);
    for (let at = 0; at < 15; at += 1) {
      await rig.say(Array.from({ length: 80 }, (_, n) => moved((at * 80 + n) % 7, 'x')));
    }
    await rig.settle();
    await rig.die(
      'acme',
      Array.from({ length: 1200 }, (_, at) => at + 1).filter((n) => n % 97 === 0 || n > 900 || n < 5),
    );
    const count = (await rig.dead()).length;
    const { replay } = await report(rig, { states: ['dead'] });
    for (let drains = 0; (await rig.read(replay?.id ?? ''))?.state !== 'done' && drains < 9; drains += 1) {
      await rig.drain();
    }
    expect(rig.batches.flat()).toHaveLength(count);
    expect(inOrderPerJob(rig.batches.flat())).toBe(true);
    expect(await rig.dead()).toEqual([]);
    expect(await rig.read(replay?.id ?? '')).toMatchObject({ state: 'done', done: count, delivered: count });
  });

  test('an event that is rejected again stays dead and is counted', async () => {
    const rig = await createRig(makeTable);
    await rig.say([moved(1, 'a'), moved(2, 'b')]);
    await rig.settle();
    await rig.die('acme', [1, 2]);
    rig.receiver.answer = (job) => (job === 1 ? rejected(409) : delivered());
    const { replay } = await report(rig, {});
    await rig.drain();
    expect(await rig.dead()).toEqual(['acme.e1.1']);
    expect(await rig.read(replay?.id ?? '')).toMatchObject({ state: 'done', delivered: 1, failed: 1 });
  });

  test('continues after a drain that crashed, without sending delivered events again', async () => {
    const rig = await createRig(makeTable);
    await rig.say(Array.from({ length: 60 }, (_, at) => moved(at, 'x')));
    await rig.settle();
    await rig.die(
      'acme',
      Array.from({ length: 60 }, (_, at) => at + 1),
    );
    const { replay } = await report(rig, {});
    // The process ends before the position of the replay is stored.
    const { table } = rig.deps;
    let isDown = false;
    const write: Table['write'] = async (one) => {
      const isPosition = 'update' in one && one.update.sk === `acme#${replay?.id}`;
      if (isPosition) isDown = true;
      if (isDown) throw new Error('The process ended.');
      return table.write(one);
    };
    Object.assign(rig.deps, { table: { ...table, write } });
    await rig.drain().catch(() => undefined);
    const sent = rig.batches.flat().length;
    Object.assign(rig.deps, { table });
    isDown = false;
    for (let drains = 0; (await rig.read(replay?.id ?? ''))?.state !== 'done' && drains < 9; drains += 1) {
      rig.state.now += 600_000;
      await rig.drain();
    }
    expect(await rig.dead()).toEqual([]);
    expect(new Set(rig.sent()).size).toBe(60);
    expect(rig.batches.flat().length, `${sent} were sent before the crash`).toBe(60);
  });

  test('events that die after the start, or belong to accounts that the caller cannot see, are not sent', async () => {
    const rig = await createRig(makeTable);
    await rig.say([moved(1, 'a'), moved(2, 'b'), moved(3, 'c')]);
    await rig.say([moved(1, 'a')], { region: REGION, account: 'other' });
    await rig.settle();
    await rig.die('acme', [1, 3]);
    await rig.die('other', [1]);
    const { dead } = await report(rig, {}, (account) => account === 'acme');
    expect(dead).toBe(2);
    rig.state.now += 1;
    await rig.die('acme', [2]);
    await rig.drain();
    expect(await rig.dead()).toEqual(['acme.e1.2', 'other.e1.1']);
  });

  test('sends the events that died before the clock was set back', async () => {
    const rig = await createRig(makeTable);
    await rig.say([moved(1, 'a'), moved(2, 'b')]);
    await rig.settle();
    await rig.die('acme', [1], { diedAt: rig.state.now - 1 });
    await rig.die('acme', [2]);
    rig.state.now -= 3_600_000;
    const { replay } = await report(rig, {});
    await rig.drain();
    expect(rig.sent()).toEqual([1, 2]);
    expect(await rig.dead()).toEqual([]);
    expect(await rig.read(replay?.id ?? '')).toMatchObject({ state: 'done', total: 2, delivered: 2 });
  });

  test('retries the lanes of parked events that match, and leaves the others', async () => {
    const rig = await createRig(makeTable, (job) => rejected(job === 1 ? 422 : 400));
    await rig.say([moved(1, 'a'), moved(1, 'b'), moved(2, 'c'), moved(3, 'd')]);
    await rig.drain();
    rig.receiver.answer = delivered;
    rig.batches.length = 0;
    const { parked, dead, replay } = await report(rig, { filter: { statuses: [422] } });
    expect([parked, dead, replay]).toEqual([1, 0, null]);
    await rig.drain();
    expect(rig.sent(), 'with the later events of the job').toEqual([1, 2]);
    expect((await listParked(rig.table, REGION, 'erp')).map(({ sequence }) => sequence)).toEqual([3, 4]);
  });

  test('changes nothing if the replay cannot be started', async () => {
    const rig = await createRig(makeTable);
    await rig.say([moved(1, 'a'), moved(2, 'b')]);
    await rig.drain();
    await rig.die('acme', [1]);
    for (let at = 0; at < MAX_RUNNING_REPLAYS; at += 1) await report(rig, { states: ['dead'] });
    const before = await listParked(rig.table, REGION, 'erp');
    expect(await rig.redeliver({})).toMatchObject({ kind: 'conflict' });
    expect(await listParked(rig.table, REGION, 'erp')).toEqual(before);
  });
});

test('examines a bounded number of dead events, and reports that', async () => {
  const rig = await createRig(async () => createMemoryTable());
  await rig.table.putMany(
    Array.from({ length: MAX_EXAMINED_DEAD + 1 }, (_, at) => ({
      ...keys.dead(REGION, 'erp', 'acme', at + 1),
      ...{ account: 'acme', lane: '1', eventId: `acme.e1.${at + 1}`, type: 'job.created', jobNumber: 1 },
      ...{ attempts: 4, parkedAt: 0, diedAt: 0, reason: 'x' },
    })),
  );
  expect(await report(rig, { dryRun: true })).toMatchObject({ dead: MAX_EXAMINED_DEAD, complete: false });
});
