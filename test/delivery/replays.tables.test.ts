/**
 * Replays: their own cursors beside the live ones, completed or cancelled, for any interruption.
 * One file: its tests share the rig of an endpoint with a filled log.
 */
import { randomUUID } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { registerAccount } from '../../shared/accounts/accounts.ts';
import { createDeliveryLog } from '../../shared/delivery/delivery-log.ts';
import {
  cancelReplay,
  listReplays,
  MAX_RUNNING_REPLAYS,
  type ReplayDeps,
  readReplay,
  resendEvent,
  startReplay,
} from '../../shared/delivery/replays.ts';
import {
  type Delivery,
  type DeliveryOutcome,
  registerSink,
  type SinkRecord,
} from '../../shared/delivery/sink.ts';
import { createEventLog } from '../../shared/log/log.ts';
import {
  CELL_LOG,
  cursorPk,
  DRAIN_SHARDS,
  drainDuePk,
  historySchema,
  keys,
  replayPk,
} from '../../shared/storage/schema.ts';
import { createMemoryTable } from '../../shared/storage/sqlite-table.ts';
import type { Item, Table } from '../../shared/storage/table.ts';
import { moved, REGION } from '../support/delivery-world.ts';
import { crashStep, eachTable } from '../support/tables.ts';

const START = Date.parse('2026-03-02T08:00:00Z');
const DAY_MS = 86_400_000;
const LATER_MS = 130_000;
const HOUR_MS = 3_600_000;

/** A sink that follows `acme` and `other`, with ten and five events an hour apart. */
async function createRig(
  makeTable: () => Promise<Table> = async () => createMemoryTable(),
  record: Partial<SinkRecord> = {},
) {
  const clock = { now: START + 20 * HOUR_MS };
  const now = () => clock.now;
  const table = await makeTable();
  const log = createEventLog(table, {
    now,
    newId: randomUUID,
    schemaBaseUrl: 'https://jobwire.example',
    retentionDays: 7,
  });
  const say = async (account: string, count: number, from = START) => {
    const events = Array.from({ length: count }, (_, at) => ({
      ...moved(at + 1, 'x'),
      time: from + at * HOUR_MS,
    }));
    await log.append({ region: REGION, account }, events);
  };
  for (const account of ['acme', 'other']) {
    const settings = { secretRef: account, pollIntervalSeconds: 60, paused: false };
    await registerAccount(
      table,
      log,
      { region: REGION, account, ...settings },
      { now: clock.now, epoch: 'e1' },
    );
  }
  await say('acme', 10);
  await say('other', 5);
  const sink: SinkRecord = {
    region: REGION,
    id: 'erp',
    kind: 'webhook',
    target: 'https://erp.example.com/hook',
    accounts: [],
    types: [],
    paused: false,
    ...record,
  };
  await registerSink(
    table,
    log,
    sink,
    ['acme', 'other'].map((account) => ({ region: REGION, account })),
  );
  const sent: Delivery[] = [];
  const state = { answer: { kind: 'delivered', answer: { status: 204, excerpt: '' } } as DeliveryOutcome };
  const deliveries = createDeliveryLog(createMemoryTable(historySchema), { newId: randomUUID });
  const deps: ReplayDeps = {
    table,
    log,
    deliveries,
    now,
    newId: randomUUID,
    open: async () => ({
      maxBatch: 1,
      deliver: async (all) => {
        sent.push(...all);
        return all.map(() => state.answer);
      },
    }),
  };
  return {
    ...{ clock, table, log, deps, deliveries, say, sent, state },
    start: (input: unknown, over = deps) => startReplay(over, REGION, 'erp', input),
    read: (id: string) => readReplay(deps, REGION, 'erp', id),
    /** The cursors of replays. */
    async cursors(): Promise<Item[]> {
      const all = await table.query({ pk: cursorPk(REGION, 'erp') });
      return all.filter(({ sk }) => sk.includes('#'));
    },
    /** Stores the progress of a replay's cursor, like a drain. */
    async work(account: string, replay: string, set: object) {
      await table.write({ update: keys.replayCursor(REGION, 'erp', account, replay), set: { ...set } });
    },
    async finish(replay: string) {
      for (const cursor of await this.cursors()) {
        if (cursor.replay !== replay) continue;
        await this.work(String(cursor.account), replay, {
          position: cursor.end as number,
          doneAt: clock.now,
        });
      }
    },
  };
}
type Rig = Awaited<ReturnType<typeof createRig>>;

async function started(rig: Rig, input: object) {
  const answer = await rig.start(input);
  if (answer.kind !== 'started') throw new Error(answer.reason);
  return answer.replay;
}

const at = (hours: number) => ({ at: new Date(START + hours * HOUR_MS).toISOString() });

eachTable('replays', (makeTable, kind) => {
  test('have their own cursors, due at once, one for each account; the live ones stay', async () => {
    const rig = await createRig(makeTable);
    const live = await rig.table.get(keys.cursor(REGION, 'erp', 'acme'));
    const replay = await started(rig, { id: 'again', from: 'beginning' });
    expect(replay).toEqual({
      id: 'again',
      state: 'running',
      accounts: ['acme', 'other'],
      filter: {},
      dead: null,
      total: 15,
      done: 0,
      delivered: 0,
      failed: 0,
      skipped: 0,
      truncatedAccounts: [],
      startedAt: rig.clock.now,
      finishedAt: null,
    });
    const second = await started(rig, { from: 'beginning' });
    const cursors = await rig.cursors();
    expect(cursors).toHaveLength(4);
    expect(cursors.find(({ sk }) => sk === 'acme#again')).toMatchObject({
      sink: 'erp',
      replay: 'again',
      account: 'acme',
      position: 0,
      end: 10,
    });
    const due = await Promise.all(
      Array.from({ length: DRAIN_SHARDS }, (_, shard) =>
        rig.table.query({ index: 'due', pk: drainDuePk(REGION, shard) }),
      ),
    );
    const places = due.flat().filter(({ sk }) => sk.includes('#'));
    expect(places.map(({ sk }) => sk).sort()).toEqual(cursors.map(({ sk }) => sk).sort());
    expect(new Set(places.map(({ dueSk }) => dueSk)).size).toBe(4);
    expect(await rig.table.get(keys.cursor(REGION, 'erp', 'acme'))).toEqual(live);
    expect((await listReplays(rig.deps, REGION, 'erp')).map(({ id }) => id).sort()).toEqual(
      ['again', second.id].sort(),
    );
  });

  test('have a range: the beginning, times, cursors; later events are excluded', async () => {
    const rig = await createRig(makeTable);
    const ranges = async (input: object) => {
      const { id, total } = await started(rig, input);
      await rig.say('acme', 1, rig.clock.now);
      const cursors = (await rig.cursors()).filter(({ replay }) => replay === id);
      const found = Object.fromEntries(
        cursors.map(({ account, position, end }) => [String(account), [position, end]]),
      );
      await rig.finish(id);
      return { total, ...found };
    };
    expect(await ranges({ from: 'beginning', to: 'now' })).toEqual({
      total: 15,
      acme: [0, 10],
      other: [0, 5],
    });
    expect(await ranges({ from: at(3), to: at(7) })).toEqual({ total: 6, acme: [3, 7], other: [3, 5] });
    expect(await ranges({ from: { cursors: { other: 'e1.2' } } })).toEqual({ total: 3, other: [2, 5] });
    expect(await ranges({ from: { cursors: { acme: '4' } }, to: { cursors: { acme: 'e1.6' } } })).toEqual({
      total: 2,
      acme: [4, 6],
    });
    const filter = { accounts: ['other'], types: ['job.*'], jobFields: { jobNumber: 3 } };
    expect(await ranges({ from: 'beginning', filter })).toEqual({ total: 5, other: [0, 5] });
    const [last] = await listReplays(rig.deps, REGION, 'erp');
    expect(last).toBeDefined();
    const filters = (await listReplays(rig.deps, REGION, 'erp')).map((replay) => replay.filter);
    expect(filters).toContainEqual({ types: ['job.*'], jobFields: { jobNumber: 3 } });
  });

  test('can be requested again by their id, and are not started twice', async () => {
    const rig = await createRig(makeTable);
    const replay = await started(rig, { from: 'beginning' });
    expect(await started(rig, { id: replay.id, from: 'beginning' })).toEqual(replay);
    expect(await rig.cursors()).toHaveLength(replay.accounts.length);
  });

  test('show their progress until they are done', async () => {
    const rig = await createRig(makeTable);
    const { id } = await started(rig, { from: 'beginning' });
    await rig.work('acme', id, { position: 6, delivered: 3, failed: 1, skipped: 2 });
    expect(await rig.read(id)).toMatchObject({
      state: 'running',
      total: 15,
      done: 6,
      delivered: 3,
      failed: 1,
      skipped: 2,
      finishedAt: null,
    });
    await rig.work('other', id, { position: 5, delivered: 5, doneAt: rig.clock.now });
    expect(await rig.read(id)).toMatchObject({ state: 'running', done: 11, delivered: 8 });
    await rig.work('acme', id, { position: 10, delivered: 7, doneAt: rig.clock.now + 5 });
    expect(await rig.read(id)).toMatchObject({
      state: 'done',
      done: 15,
      delivered: 12,
      finishedAt: rig.clock.now + 5,
    });
    expect(await cancelReplay(rig.deps, REGION, 'erp', id)).toEqual({
      kind: 'conflict',
      reason: `The replay "${id}" is already done.`,
    });
  });

  test('that are cancelled lose their cursors and keep their progress', async () => {
    const rig = await createRig(makeTable);
    const { id } = await started(rig, { id: 'mine', from: 'beginning' });
    const other = await started(rig, { from: 'beginning' });
    await rig.work('acme', id, { position: 6, delivered: 4, skipped: 2 });
    rig.clock.now += 1000;
    const expected = { state: 'cancelled', done: 6, delivered: 4, skipped: 2, finishedAt: rig.clock.now };
    expect(await cancelReplay(rig.deps, REGION, 'erp', id)).toMatchObject({
      kind: 'cancelled',
      replay: expected,
    });
    rig.clock.now += 1000;
    expect(await cancelReplay(rig.deps, REGION, 'erp', id)).toMatchObject({ replay: expected });
    expect(await rig.read(id)).toMatchObject(expected);
    expect((await rig.cursors()).every(({ replay }) => replay === other.id)).toBe(true);
    // Requested again by its id, it does not restart.
    expect(await rig.start({ id, from: 'beginning' })).toMatchObject({ replay: expected });
    expect(await rig.cursors()).toHaveLength(2);
  });

  test('run five at a time, also if more are requested at once', async () => {
    const rig = await createRig(makeTable);
    const running: { id: string }[] = [];
    for (let turn = 0; turn < 3; turn += 1) {
      const answers = await Promise.all(Array.from({ length: 4 }, () => rig.start({ from: 'beginning' })));
      running.push(...answers.flatMap((answer) => (answer.kind === 'started' ? [answer.replay] : [])));
    }
    expect(running.length).toBeGreaterThanOrEqual(3);
    expect(running.length).toBeLessThanOrEqual(MAX_RUNNING_REPLAYS);
    while (running.length < MAX_RUNNING_REPLAYS) running.push(await started(rig, { from: 'beginning' }));
    const refused = {
      kind: 'conflict',
      reason: '"erp" has 5 running replays, which is the maximum. Wait for one to complete, or cancel one.',
    };
    expect(await rig.start({ from: 'beginning' })).toEqual(refused);
    expect(await rig.cursors(), 'the rejected ones leave nothing').toHaveLength(10);
    expect(await rig.table.query({ pk: replayPk(REGION, 'erp') })).toHaveLength(5);
    await rig.finish(running[0]?.id ?? '');
    await started(rig, { from: 'beginning' });
    expect(await rig.start({ from: 'beginning' })).toEqual(refused);
    await cancelReplay(rig.deps, REGION, 'erp', running[1]?.id ?? '');
    await started(rig, { from: 'beginning' });
  });

  test('wherever a start is interrupted, repeating it or the next start completes it, and cancelling ends it', async () => {
    let crashes = 0;
    for (const then of ['again', 'next', 'cancel'] as const) {
      for (const when of ['before', 'after'] as const) {
        for (let atWrite = 0; ; atWrite += crashStep(kind)) {
          const rig = await createRig(makeTable);
          let writes = 0;
          let dead = false;
          const table: Table = {
            ...rig.table,
            async write(write) {
              if (dead) throw new Error('dead');
              dead = writes++ === atWrite;
              if (dead && when === 'before') throw new Error('dead');
              const outcome = await rig.table.write(write);
              if (dead) throw new Error('dead');
              return outcome;
            },
          };
          const input = { id: 'r', from: 'beginning' };
          await rig.start(input, { ...rig.deps, table }).catch(() => undefined);
          if (!dead) break;
          crashes += 1;
          const where = `${then}, ${when} write ${atWrite}`;
          const there = (await rig.read('r')) !== undefined;
          if (then === 'cancel') {
            expect((await cancelReplay(rig.deps, REGION, 'erp', 'r')).kind).toBe(
              there ? 'cancelled' : 'unknown',
            );
            expect(await rig.cursors(), where).toEqual([]);
            continue;
          }
          rig.clock.now += LATER_MS;
          // The existing part may have been delivered meanwhile.
          const begun = (await rig.cursors()).some(({ sk }) => sk === 'acme#r');
          if (begun) await rig.work('acme', 'r', { position: 10, doneAt: 1 });
          if (begun) expect((await rig.read('r'))?.state, where).not.toBe('done');
          if (then === 'again') await rig.start(input);
          else await started(rig, { id: 'next', from: at(4) });
          if (then === 'next' && !there) continue;
          const cursors = (await rig.cursors()).filter(({ replay }) => replay === 'r');
          expect(
            cursors.map(({ account, position, end }) => [account, position, end]),
            where,
          ).toEqual([
            ['acme', begun ? 10 : 0, 10],
            ['other', 0, 5],
          ]);
          expect((await rig.read('r'))?.state).toBe('running');
        }
      }
    }
    expect(crashes).toBeGreaterThanOrEqual(20 / crashStep(kind));
  });

  test('of expired events start at the oldest stored one and report that; an expired cursor is rejected', async () => {
    const rig = await createRig(makeTable);
    rig.clock.now = START + 20 * HOUR_MS + 7 * DAY_MS - 1000;
    await rig.say('acme', 3, rig.clock.now);
    rig.clock.now += 2000;
    const replay = await started(rig, { from: at(0), filter: { accounts: ['acme'] } });
    expect(replay).toMatchObject({ total: 3, truncatedAccounts: ['acme'] });
    expect((await rig.cursors())[0]).toMatchObject({ position: 10, end: 13 });
    expect(await rig.start({ from: { cursors: { acme: 'e1.9' } } })).toEqual({
      kind: 'rejected',
      reason: 'from must have a cursor from e1.10 to e1.13 for "acme".',
    });
    expect(await rig.start({ from: 'beginning', filter: { accounts: ['other'] } })).toEqual({
      kind: 'rejected',
      reason: 'from and to must have at least one event between them.',
    });
  });

  test('that are complete are deleted when there are very many', async () => {
    const rig = await createRig(makeTable);
    for (let turn = 0; turn < 53; turn += 1) {
      rig.clock.now += 1;
      const { id } = await started(rig, { id: `r${turn}`, from: { cursors: { other: '4' } } });
      await rig.finish(id);
    }
    const left = await listReplays(rig.deps, REGION, 'erp');
    expect(left).toHaveLength(51);
    expect(left[0]?.id).toBe('r52');
    expect(left.at(-1)?.id).toBe('r2');
    expect(await rig.cursors()).toHaveLength(51);
  });

  test('of an account removed from the sink end without it', async () => {
    const rig = await createRig(makeTable);
    const { id } = await started(rig, { from: 'beginning' });
    await rig.table.write({ delete: keys.replayCursor(REGION, 'erp', 'acme', id) });
    await rig.finish(id);
    expect(await rig.read(id)).toMatchObject({ state: 'done', total: 15, done: 5 });
  });
});

describe('an invalid request is rejected with one message', () => {
  const begin = 'must be "beginning", {"at": timestamp} or {"cursors": {account: cursor}}.';
  const end = 'to must be "now", {"at": timestamp} or {"cursors": {account: cursor}}.';
  test.each<[reason: string, input: unknown]>([
    [`from is missing; it ${begin}`, {}],
    [`from ${begin}`, { from: 'now' }],
    ['from.at must be a timestamp such as 2026-03-02T08:00:00Z.', { from: { at: 'noon' } }],
    ['from.cursors must name at least one account.', { from: { cursors: {} } }],
    [end, { from: 'beginning', to: 'beginning' }],
    ['from must not be in the future.', { from: at(21) }],
    ['to must not be in the future.', { from: 'beginning', to: at(21) }],
    ['from and to must have at least one event between them.', { from: at(15) }],
    ['from and to must have at least one event between them.', { from: at(5), to: at(5) }],
    ['from must have a cursor from e1.0 to e1.10 for "acme".', { from: { cursors: { acme: 'e1.11' } } }],
    ['from must have a cursor from e1.0 to e1.10 for "acme".', { from: { cursors: { acme: 'e2.1' } } }],
    [
      'to must have a cursor from e1.0 to e1.10 for "acme".',
      { from: 'beginning', to: { cursors: { acme: 'x' } } },
    ],
    [
      'from must contain only accounts whose events the endpoint receives; "nobody" is not one of them.',
      { from: { cursors: { nobody: '1' } } },
    ],
    [
      'filter.accounts must contain only accounts whose events "erp" receives; "nobody" is not one of them.',
      { from: 'beginning', filter: { accounts: ['nobody'] } },
    ],
    [
      'filter.types[0] must match an existing event type.',
      { from: 'beginning', filter: { types: ['nothing'] } },
    ],
    ['filter.colour is not a known setting.', { from: 'beginning', filter: { colour: 'red' } }],
    ['filter must be a filter.', { from: 'beginning', filter: 'job.*' }],
    ['speed is not a known setting.', { from: 'beginning', speed: 2 }],
  ])('%s', async (reason, input) => {
    const rig = await createRig();
    expect(await rig.start(input)).toEqual({ kind: 'rejected', reason });
    expect(await rig.cursors()).toEqual([]);
    expect(await rig.table.query({ pk: replayPk(REGION, 'erp') })).toEqual([]);
  });

  test('an account that the sink does not follow is neither replayed nor resent to it', async () => {
    const rig = await createRig(undefined, { accounts: ['acme'] });
    expect(await rig.start({ from: 'beginning', filter: { accounts: ['other'] } })).toEqual({
      kind: 'rejected',
      reason:
        'filter.accounts must contain only accounts whose events "erp" receives; "other" is not one of them.',
    });
    expect((await rig.start({ from: { cursors: { other: '1' } } })).kind).toBe('rejected');
    expect(await started(rig, { from: 'beginning' })).toMatchObject({ accounts: ['acme'], total: 10 });
    expect(await resendEvent(rig.deps, REGION, 'erp', 'other', 1)).toEqual({
      kind: 'rejected',
      reason: 'account must be one whose events "erp" receives; "other" is not one of them.',
    });
    expect(rig.sent).toEqual([]);
  });

  test('an unknown replay is reported as such', async () => {
    const rig = await createRig();
    const unknown = { kind: 'unknown', reason: 'There is no sink "x".' };
    expect(await startReplay(rig.deps, REGION, 'x', { from: 'beginning' })).toEqual(unknown);
    expect(await resendEvent(rig.deps, REGION, 'x', 'acme', 1)).toEqual(unknown);
    expect(await cancelReplay(rig.deps, REGION, 'erp', 'x')).toEqual({
      kind: 'unknown',
      reason: 'There is no replay "x" to "erp".',
    });
    expect(await rig.read('x')).toBeUndefined();
  });
});

describe('resending one event', () => {
  test('sends it unchanged, marked as resent, and logs it; also to a paused sink that filters its type', async () => {
    const rig = await createRig(undefined, { paused: true, types: ['job.invoiced'] });
    const cursor = await rig.table.get(keys.cursor(REGION, 'erp', 'acme'));
    expect(await resendEvent(rig.deps, REGION, 'erp', 'acme', 4)).toEqual({
      kind: 'attempted',
      outcome: 'delivered',
      status: 204,
      latencyMs: 0,
      message: 'Delivered.',
      logged: true,
    });
    const page = await rig.log.read({ region: REGION, account: 'acme' }, 3, 1);
    expect(rig.sent).toEqual([
      { event: page?.kind === 'events' && page.events[0], replay: expect.any(String) },
    ]);
    expect((await rig.deliveries.bySink(REGION, 'erp')).entries).toMatchObject([
      { cause: 'resend', eventId: 'acme.e1.4', sequence: 4, jobNumber: 4, status: 204, outcome: 'delivered' },
    ]);
    expect(await rig.table.get(keys.cursor(REGION, 'erp', 'acme'))).toEqual(cursor);
    rig.state.answer = {
      kind: 'rejected',
      reason: 'The endpoint responded with status 422.',
      answer: { status: 422, excerpt: '' },
    };
    expect(await resendEvent(rig.deps, REGION, 'erp', 'acme', 4)).toMatchObject({
      outcome: 'rejected',
      status: 422,
      message: 'The endpoint responded with status 422.',
    });
    const [first, second] = rig.sent.map(({ replay }) => replay);
    expect(second, 'each resend has an id of its own').not.toBe(first);
  });

  test('works only if it is in the log, and the error names the stored range', async () => {
    const rig = await createRig();
    const outside = {
      kind: 'unknown',
      reason: 'sequence must be from e1.1 to e1.10 in the log of "acme".',
    };
    expect(await resendEvent(rig.deps, REGION, 'erp', 'acme', 11)).toEqual(outside);
    expect(await resendEvent(rig.deps, REGION, 'erp', 'acme', 99)).toEqual(outside);
    for (const sequence of [0, -1, 1.5]) {
      expect(await resendEvent(rig.deps, REGION, 'erp', 'acme', sequence)).toEqual({
        kind: 'rejected',
        reason: 'sequence must be a positive integer.',
      });
    }
    expect(await resendEvent(rig.deps, REGION, 'erp', 'nobody', 1)).toEqual({
      kind: 'unknown',
      reason: 'There is no account "nobody" in region us.',
    });
    expect(await resendEvent(rig.deps, REGION, 'erp', CELL_LOG, 1)).toEqual({
      kind: 'unknown',
      reason: `The log of "${CELL_LOG}" has no events.`,
    });
    rig.clock.now += 8 * DAY_MS;
    await rig.say('acme', 1);
    expect(await resendEvent(rig.deps, REGION, 'erp', 'acme', 4)).toEqual({
      kind: 'unknown',
      reason: 'sequence must be from e1.11 to e1.11 in the log of "acme".',
    });
    expect(rig.sent).toEqual([]);
  });
});
