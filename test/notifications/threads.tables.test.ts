/**
 * Notices of a thread: one for each order group and window, each change once, and only changes that still apply.
 * One file: single cases and the property over random orders share the world of threads.
 */
import { randomBytes, randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { drainSink } from '../../shared/delivery/drain.ts';
import { registerSink } from '../../shared/delivery/sink.ts';
import { wakeSinks } from '../../shared/delivery/wakes.ts';
import type { EventDraft } from '../../shared/events/event.ts';
import { createEventLog, type LoggedEvent } from '../../shared/log/log.ts';
import { listMessages } from '../../shared/notifications/message-history.ts';
import { createNotificationsSink } from '../../shared/notifications/notifications-sink.ts';
import { oldestUnsent } from '../../shared/notifications/oldest-unsent.ts';
import {
  type ClosedNotice,
  findValidJobs,
  finishNotice,
  listUpcoming,
  takeDueNotices,
} from '../../shared/notifications/thread-store.ts';
import {
  type ContentKind,
  type MessageKind,
  NOTIFICATIONS_SINK,
  noticeKinds,
} from '../../shared/notifications/types.ts';
import { getDrainName, historySchema, keys } from '../../shared/storage/schema.ts';
import { createMemoryTable } from '../../shared/storage/sqlite-table.ts';
import { type Item, type Table, TableError, type Write } from '../../shared/storage/table.ts';
import { runs, sized } from '../support/runs.ts';
import { eachTable } from '../support/tables.ts';

const REGION = 'us';
const ref = { region: REGION, account: 'acme' };
const START = Date.parse('2026-03-04T12:00:00Z');
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const WINDOW = 5 * MINUTE;
const GRACE = 15_000;
/** How often properties are tried. */
const RUNS = sized(100, 200);
const WINDOW_RUNS = sized(50, 200);

type Type =
  | 'job.dispatched'
  | 'job.dispatch_revoked'
  | 'job.tracking_added'
  | 'job.tracking_updated'
  | 'job.tracking_removed'
  | 'job.due_date_changed'
  | 'job.cancelled'
  | 'job.reopened'
  | 'job.updated';
type Parcel = { number: string | null; link: string | null };
const linkTo = (number: string) => `https://carrier.example/${number}`;

interface JobOptions {
  orderGroup?: string | null;
  orderNumber?: string | null;
  description?: string | null;
  dateOut?: string | null;
  dateDue?: string | null;
  tracking?: Parcel[];
}

/** An event about a job, `at` ms after the start. */
function jobEvent(
  type: Type,
  jobNumber: number,
  at: number,
  job: JobOptions = {},
  more: object = {},
): EventDraft {
  const time = START + at;
  return {
    type,
    jobNumber,
    time,
    data: {
      job: {
        ...{ jobNumber, status: null, description: `Job ${jobNumber}`, orderNumber: `PO-${jobNumber}` },
        ...{
          orderGroup: 'SPRING',
          orderGroupSequence: null,
          originCode: null,
          dateDue: null,
          mustDate: null,
        },
        ...{ dateOut: null, tracking: [] },
        ...job,
      },
      observed: { at: new Date(time).toISOString(), since: null, view: 'list' },
      changes: {},
      ...more,
    },
  } as EventDraft;
}

const toPlace = (notice: ClosedNotice | undefined) => ({ thread: notice?.thread, id: notice?.id });

const DAY_1 = '2026-03-04T10:00:00';
const DAY_2 = '2026-03-05T10:00:00';
const dispatched = (jobNumber: number, at: number, job: JobOptions = {}) =>
  jobEvent('job.dispatched', jobNumber, at, { dateOut: DAY_1, ...job });
const revoked = (jobNumber: number, at: number, job: JobOptions = {}) =>
  jobEvent('job.dispatch_revoked', jobNumber, at, job);

async function saveSettings(
  table: Table,
  changes: Partial<Record<'enabled' | 'since', unknown>> = {},
  more = {},
) {
  await table.write({
    put: {
      ...keys.notificationSettings(ref),
      ...{ enabled: true, since: START - HOUR, ...(changes as object) },
      settings: JSON.stringify({ windowSeconds: WINDOW / 1000, maxAgeHours: 24, ...more }),
      revision: 1,
    },
  });
}

/** A log, the sink, and a clock. `around` wraps the table for the sink and the notices. */
async function createWorld(around: (table: Table) => Table = (table) => table) {
  const state = { now: START };
  const memory = createMemoryTable();
  const table = around(memory);
  const history = createMemoryTable(historySchema);
  const now = () => state.now;
  const deps = { table, history, now };
  const log = createEventLog(memory, { now, newId: randomUUID, schemaBaseUrl: 'https://jobwire.example' });
  await memory.transact([log.start(ref, 't3k9x1a2b3c4')], randomUUID());
  await saveSettings(memory);
  const port = createNotificationsSink(deps);
  return {
    ...{ state, table: memory, history, deps, log, port },
    /** Writes events to the log. */
    async append(...drafts: EventDraft[]): Promise<LoggedEvent[]> {
      const from = (await log.head(ref))?.sequence ?? 0;
      await log.append(ref, drafts);
      const page = await log.read(ref, from, drafts.length);
      return page?.kind === 'events' ? [...page.events] : [];
    },
    /** Folds events, all that are in the log being folded then. */
    async fold(...drafts: EventDraft[]): Promise<LoggedEvent[]> {
      const events = await this.append(...drafts);
      for (const event of events) expect(await port.deliver([{ event }])).toEqual([{ kind: 'delivered' }]);
      await this.setPosition((await log.head(ref))?.sequence ?? 0);
      return events;
    },
    /** The sink's cursor is at this position. */
    async setPosition(position: number): Promise<void> {
      const sink = NOTIFICATIONS_SINK;
      await memory.write({ put: { ...keys.cursor(REGION, sink, ref.account), sink, position } });
    },
    /** Closes the windows due at a time after the start, without finishing the notices. */
    async closeDue(at: number) {
      state.now = START + at;
      return takeDueNotices(deps, REGION, 100);
    },
    /** The same, and finished. */
    async finishDue(at: number) {
      const notices = await this.closeDue(at);
      for (const notice of notices) await finishNotice(deps, notice);
      return notices.map(({ content }) => ({
        kind: content.kind,
        jobs: content.jobs.map(({ jobNumber }) => jobNumber),
      }));
    },
    async listRecorded() {
      const { messages } = await listMessages(history, ref);
      return messages.map(({ kind, jobs, state, reason }) => ({ kind, jobs, state, reason }));
    },
  };
}

describe('notices of order groups', () => {
  test('dispatches of a group in one window of event time are one notice, each of them once', async () => {
    const world = await createWorld();
    await world.fold(dispatched(1, 0), dispatched(2, 4 * MINUTE));
    expect(await world.finishDue(WINDOW + GRACE - 1)).toEqual([]);
    expect(await oldestUnsent(world.table, REGION, START + WINDOW + GRACE)).toBeDefined();
    expect(await world.finishDue(WINDOW + GRACE)).toEqual([{ kind: 'dispatched', jobs: [1, 2] }]);
    expect(await world.finishDue(10 * HOUR)).toEqual([]);
    expect(await oldestUnsent(world.table, REGION, START + 10 * HOUR)).toBeUndefined();
  });

  test('a dispatch reverted within the window is not notified, and the history has the reason', async () => {
    const world = await createWorld();
    await world.fold(dispatched(1, 0), revoked(1, MINUTE));
    expect(await world.finishDue(WINDOW + GRACE)).toEqual([]);
    expect(await world.listRecorded()).toEqual([
      { kind: 'dispatched', jobs: [1], state: 'suppressed', reason: 'revoked' },
    ]);
  });

  test('an open window can be read', async () => {
    const world = await createWorld();
    await world.fold(dispatched(1, 0), dispatched(2, MINUTE));
    expect(await listUpcoming(world.table, ref, 2, 'SPRING')).toEqual([
      { kind: 'dispatched', dueAt: START + WINDOW + GRACE, jobs: [1, 2] },
    ]);
    expect(await listUpcoming(world.table, ref, 3, 'SPRING')).toEqual([]);
  });

  test('a change reverted after its notice was closed is marked as outdated', async () => {
    const world = await createWorld();
    await world.fold(dispatched(1, 0, { dateOut: DAY_1 }), dispatched(2, 0, { dateOut: DAY_2 }));
    const [notice] = await world.closeDue(WINDOW + GRACE);
    if (!notice) throw new Error('Nothing was closed.');
    expect([...(await findValidJobs(world.table, ref, notice.thread, notice.content)).valid]).toEqual([1, 2]);
    await world.fold(revoked(1, 6 * MINUTE));
    expect([...(await findValidJobs(world.table, ref, notice.thread, notice.content)).valid]).toEqual([2]);
  });
});

describe('changes of a job', () => {
  const first = { number: '1Z1', link: linkTo('1Z1') };
  const bare = { number: '1Z2', link: null };
  const added = (jobNumber: number, at: number, ...tracking: Parcel[]) =>
    jobEvent('job.tracking_added', jobNumber, at, { dateOut: DAY_1, tracking }, { tracking });

  test('tracking that arrives before the dispatch is notified comes with it; later tracking is one follow-up, and a link another', async () => {
    const world = await createWorld();
    await world.fold(dispatched(1, 0), dispatched(2, 0), added(1, MINUTE, first));
    const [notice] = await world.closeDue(WINDOW + GRACE);
    expect(notice?.content.jobs.map(({ tracking }) => tracking)).toEqual([[first], []]);
    await finishNotice(world.deps, required(notice));
    // The parcel is known of one job only; additions are news of both.
    await world.fold(added(2, 10 * MINUTE, first, bare), added(1, 11 * MINUTE, first, bare));
    const [later, none] = await world.closeDue(20 * MINUTE);
    expect(later?.content.kind).toBe('tracking');
    expect(later?.content.jobs.map(({ tracking }) => tracking)).toEqual([[bare], [first, bare]]);
    expect(later?.earlier).toEqual([notice?.id]);
    expect(none).toBeUndefined();
    await finishNotice(world.deps, required(later));
    const linked = { ...bare, link: linkTo('1Z2') };
    const tracking = [{ from: bare, to: linked }];
    await world.fold(
      jobEvent('job.tracking_updated', 1, HOUR, { dateOut: DAY_1, tracking: [first, linked] }, { tracking }),
    );
    const [link] = await world.closeDue(2 * HOUR);
    expect(link?.content.jobs.map(({ tracking: news }) => news)).toEqual([[linked]]);
  });

  test('a link that gets its number is still the parcel that was notified', async () => {
    const world = await createWorld();
    const from = { number: null, link: linkTo('x') };
    const to = { number: 'X', link: linkTo('x') };
    await world.fold(dispatched(1, 0, { tracking: [from] }));
    expect(await world.finishDue(HOUR)).toHaveLength(1);
    await world.fold(
      jobEvent(
        'job.tracking_updated',
        1,
        HOUR,
        { dateOut: DAY_1, tracking: [to] },
        { tracking: [{ from, to }] },
      ),
    );
    expect(await world.finishDue(2 * HOUR)).toEqual([]);
  });

  test('tracking of a job whose dispatch was not notified is not notified', async () => {
    const world = await createWorld();
    await world.fold(jobEvent('job.tracking_added', 1, 0, { tracking: [first] }, { tracking: [first] }));
    expect(await world.finishDue(HOUR)).toEqual([]);
    expect(await world.listRecorded()).toEqual([]);
  });

  test('a dispatch that flaps on one day is notified once; on another day it is notified again', async () => {
    const world = await createWorld();
    await world.fold(dispatched(1, 0));
    expect(await world.finishDue(HOUR)).toEqual([{ kind: 'dispatched', jobs: [1] }]);
    await world.fold(revoked(1, HOUR), dispatched(1, HOUR + MINUTE, { dateOut: '2026-03-04T18:00:00' }));
    expect(await world.finishDue(2 * HOUR)).toEqual([]);
    await world.fold(revoked(1, 2 * HOUR), dispatched(1, 2 * HOUR + MINUTE, { dateOut: DAY_2 }));
    expect(await world.finishDue(3 * HOUR)).toEqual([{ kind: 'dispatched', jobs: [1] }]);
  });

  test('a repeated dispatch is a notice, which names the earlier notices about the dispatch', async () => {
    const world = await createWorld();
    await world.fold(dispatched(1, 0));
    const [notice] = await world.closeDue(HOUR);
    expect(notice?.dispatches).toEqual({});
    await finishNotice(world.deps, required(notice));
    await world.fold(revoked(1, HOUR));
    const [correction] = await world.closeDue(2 * HOUR);
    expect(correction?.content.kind).toBe('dispatch_revoked');
    await finishNotice(world.deps, required(correction));
    await world.fold(dispatched(1, 2 * HOUR));
    const [again] = await world.closeDue(3 * HOUR);
    expect(again?.content.kind).toBe('dispatched');
    expect(again?.dispatches).toEqual({ 1: [notice, correction].map(toPlace) });
    await finishNotice(world.deps, required(again));
    await world.fold(jobEvent('job.updated', 1, 3 * HOUR, { dateOut: DAY_1, description: 'Bags' }));
    expect(await world.finishDue(4 * HOUR)).toEqual([]);
  });

  test('notified parcels are not repeated in the order group that a job moves to', async () => {
    const world = await createWorld();
    await world.fold(dispatched(1, 0, { tracking: [first] }));
    expect(await world.finishDue(HOUR)).toHaveLength(1);
    const there = { dateOut: DAY_1, orderGroup: 'SUMMER' };
    const changes = { orderGroup: { from: 'SPRING', to: 'SUMMER' } };
    await world.fold(jobEvent('job.updated', 1, HOUR, { ...there, tracking: [first] }, { changes }));
    const tracking = [first, bare];
    await world.fold(jobEvent('job.tracking_added', 1, HOUR, { ...there, tracking }, { tracking: [bare] }));
    const [notice] = await world.closeDue(2 * HOUR);
    expect(notice?.content.jobs.map((facts) => facts.tracking)).toEqual([[bare]]);
  });

  test('each window closes on its own', async () => {
    const world = await createWorld();
    const changes = { dateDue: { from: DAY_1, to: DAY_2 } };
    await world.fold(
      jobEvent('job.due_date_changed', 1, 0, { dateDue: DAY_2 }, { changes }),
      dispatched(2, GRACE, { dateDue: DAY_2 }),
    );
    expect(await world.finishDue(WINDOW + GRACE)).toEqual([{ kind: 'due_date_changed', jobs: [1] }]);
    expect(await world.finishDue(WINDOW + 2 * GRACE)).toEqual([{ kind: 'dispatched', jobs: [2] }]);
  });

  test('a due date is outdated by a dispatch, and notified if the dispatch is reverted', async () => {
    const world = await createWorld();
    const changes = { dateDue: { from: DAY_1, to: DAY_2 } };
    await world.fold(jobEvent('job.due_date_changed', 1, 0, { dateDue: DAY_2 }, { changes }));
    const notice = required((await world.closeDue(HOUR))[0]);
    expect((await findValidJobs(world.table, ref, notice.thread, notice.content)).valid.size).toBe(1);
    await world.fold(dispatched(1, HOUR, { dateDue: DAY_2 }));
    expect((await findValidJobs(world.table, ref, notice.thread, notice.content)).valid.size).toBe(0);
    await finishNotice(world.deps, notice);
    expect(await world.finishDue(2 * HOUR)).toEqual([{ kind: 'dispatched', jobs: [1] }]);
    const again = { changes: { dateDue: { from: DAY_2, to: '2026-03-09' } } };
    const later = { dateOut: DAY_1, dateDue: '2026-03-09' };
    await world.fold(jobEvent('job.due_date_changed', 1, 2 * HOUR, later, again));
    expect(await world.finishDue(3 * HOUR)).toEqual([]);
    await world.fold(revoked(1, 3 * HOUR, { dateDue: '2026-03-09' }));
    expect((await world.finishDue(4 * HOUR)).map(({ kind }) => kind).sort()).toEqual([
      'dispatch_revoked',
      'due_date_changed',
    ]);
  });

  test('a dispatch counts from its date: the old ones of a window are recorded, the others notified', async () => {
    const world = await createWorld();
    await world.fold(
      dispatched(1, 0, { dateOut: '2026-03-03' }),
      dispatched(2, 0, { dateOut: '2026-03-02' }),
      dispatched(3, 0, { dateOut: '2026-03-03T12:00:00Z' }),
      dispatched(4, 0, { dateOut: 'yesterday' }),
      dispatched(5, 0, { dateOut: '2026-03-05T12:00:00Z' }),
    );
    const [notice, ...others] = await world.closeDue(WINDOW + GRACE);
    expect(notice?.content.jobs.map(({ jobNumber }) => jobNumber)).toEqual([1, 4, 5]);
    expect(others).toEqual([]);
    expect(await world.listRecorded()).toEqual([
      { kind: 'dispatched', jobs: [2, 3], state: 'suppressed', reason: 'too_old' },
    ]);
  });

  test('a time without an offset is read in the zone of the event', async () => {
    const world = await createWorld();
    const inZone = (jobNumber: number, zone: string | null) =>
      jobEvent('job.dispatched', jobNumber, 0, { dateOut: '2026-03-03T23:00:00' }, { zone });
    await world.fold(inZone(1, 'Pacific/Auckland'), inZone(2, 'America/Los_Angeles'), inZone(3, null));
    expect(await world.finishDue(WINDOW + GRACE)).toEqual([{ kind: 'dispatched', jobs: [2, 3] }]);
  });

  test('a job that is back is a correction of its cancellation, once, and names the notice that it corrects', async () => {
    const world = await createWorld();
    await world.fold(jobEvent('job.cancelled', 1, 0), jobEvent('job.cancelled', 2, 0));
    const notice = required((await world.closeDue(HOUR))[0]);
    await finishNotice(world.deps, notice);
    await world.fold(jobEvent('job.reopened', 1, HOUR));
    const [correction, ...others] = await world.closeDue(2 * HOUR);
    expect(others).toEqual([]);
    expect(correction).toMatchObject({
      content: { kind: 'reinstated', jobs: [{ jobNumber: 1 }] },
      corrects: { 1: { thread: '=SPRING', id: notice.id } },
      earlier: [notice.id],
    });
    await finishNotice(world.deps, required(correction));
    await world.fold(jobEvent('job.updated', 1, 2 * HOUR, { description: 'Bags' }));
    expect(await world.finishDue(3 * HOUR)).toEqual([]);
    await world.fold(jobEvent('job.cancelled', 1, 3 * HOUR));
    expect(await world.finishDue(4 * HOUR)).toEqual([{ kind: 'cancelled', jobs: [1] }]);
  });

  test('a job that is back before its cancellation is closed is no correction', async () => {
    const world = await createWorld();
    await world.fold(jobEvent('job.cancelled', 1, 0), jobEvent('job.reopened', 1, MINUTE));
    expect(await world.finishDue(HOUR)).toEqual([]);
    // Nor is one whose cancellation was too old.
    world.state.now = START + 60 * HOUR;
    await world.fold(jobEvent('job.cancelled', 2, 2 * HOUR));
    expect(await world.finishDue(60 * HOUR)).toEqual([]);
    await world.fold(jobEvent('job.reopened', 2, 60 * HOUR));
    expect(await world.finishDue(61 * HOUR)).toEqual([]);
  });

  test('a cancellation that a former release notified is corrected as well', async () => {
    const world = await createWorld();
    await world.fold(jobEvent('job.cancelled', 1, 0));
    expect(await world.finishDue(HOUR)).toHaveLength(1);
    const item = required(await world.table.get(keys.thread(ref, '=SPRING')));
    const state = JSON.parse(String(item.state)) as { jobs: Record<string, { cancelled: object }> };
    required(state.jobs['1']).cancelled = { holds: true, notified: true };
    const former = JSON.stringify(state).replaceAll('"notified":', '"told":');
    await world.table.write({ put: { ...item, state: former } });
    await world.fold(jobEvent('job.reopened', 1, HOUR));
    const [correction] = await world.closeDue(2 * HOUR);
    expect(correction).toMatchObject({ content: { kind: 'reinstated' }, corrects: {} });
  });

  test('a dispatch that is restored within its window is notified at the original time', async () => {
    const world = await createWorld();
    await world.fold(dispatched(1, 0), revoked(1, MINUTE), dispatched(1, 2 * MINUTE));
    expect(await world.finishDue(WINDOW + GRACE)).toEqual([{ kind: 'dispatched', jobs: [1] }]);
  });

  test('a corrected date is the same dispatch', async () => {
    const world = await createWorld();
    await world.fold(dispatched(1, 0));
    expect(await world.finishDue(HOUR)).toHaveLength(1);
    const changes = { dateOut: { from: DAY_1, to: DAY_2 } };
    await world.fold(jobEvent('job.updated', 1, HOUR, { dateOut: DAY_2 }, { changes }));
    await world.fold(revoked(1, 2 * HOUR), dispatched(1, 2 * HOUR + MINUTE, { dateOut: DAY_2 }));
    expect(await world.finishDue(3 * HOUR)).toEqual([]);
  });

  test('a notified dispatch is outdated when another one is pending', async () => {
    const world = await createWorld();
    await world.fold(dispatched(1, 0));
    const first = required((await world.closeDue(HOUR))[0]);
    await world.fold(revoked(1, HOUR), dispatched(1, HOUR + MINUTE, { dateOut: DAY_2 }));
    const validJobs = async ({ thread, content }: ClosedNotice) => [
      ...(await findValidJobs(world.table, ref, thread, content)).valid,
    ];
    expect(await validJobs(first)).toEqual([]);
    await finishNotice(world.deps, first);
    const second = required((await world.closeDue(2 * HOUR))[0]);
    expect(await validJobs(first)).toEqual([]);
    expect(await validJobs(second)).toEqual([1]);
  });

  test('a notified cancellation is not repeated if the job was only temporarily back', async () => {
    const world = await createWorld();
    await world.fold(jobEvent('job.cancelled', 1, 0));
    expect(await world.finishDue(HOUR)).toEqual([{ kind: 'cancelled', jobs: [1] }]);
    await world.fold(jobEvent('job.reopened', 1, HOUR), jobEvent('job.cancelled', 1, 2 * HOUR));
    expect(await world.finishDue(3 * HOUR)).toEqual([]);
  });

  test('a due date that returns to its old value is not notified', async () => {
    const world = await createWorld();
    const due = (at: number, from: string | null, to: string | null) =>
      jobEvent('job.due_date_changed', 1, at, { dateDue: to }, { changes: { dateDue: { from, to } } });
    await world.fold(due(0, DAY_1, DAY_2), due(MINUTE, DAY_2, DAY_1));
    expect(await world.finishDue(HOUR)).toEqual([]);
    await world.fold(due(HOUR, DAY_1, DAY_2), due(HOUR + MINUTE, DAY_2, '2026-03-09'));
    const [notice] = await world.closeDue(2 * HOUR);
    expect(notice?.content.jobs).toMatchObject([{ formerDateDue: DAY_1, dateDue: '2026-03-09' }]);
  });

  test('changes that are too old when they are folded are not notified, and the history has the reason', async () => {
    const world = await createWorld();
    world.state.now = START + 30 * HOUR;
    await world.fold(dispatched(1, 0), dispatched(2, 29 * HOUR));
    expect(await world.finishDue(30 * HOUR)).toEqual([{ kind: 'dispatched', jobs: [2] }]);
    expect(await world.listRecorded()).toEqual([
      { kind: 'dispatched', jobs: [1], state: 'suppressed', reason: 'too_old' },
    ]);
    // As if it had not happened: neither its tracking nor its reversal is news.
    await world.fold(added(1, 31 * HOUR, first), revoked(1, 32 * HOUR));
    expect(await world.finishDue(40 * HOUR)).toEqual([]);
  });

  test('the revocation of a notified dispatch is notified after a later dispatch that was too old, and not before', async () => {
    const world = await createWorld();
    await world.fold(dispatched(1, 0));
    expect(await world.finishDue(HOUR)).toHaveLength(1);
    const old = { dateOut: '2026-03-01T10:00:00' };
    await world.fold(revoked(1, HOUR), dispatched(1, HOUR + MINUTE, old));
    expect(await world.finishDue(2 * HOUR)).toEqual([]);
    await world.fold(jobEvent('job.updated', 1, 2 * HOUR, { ...old, description: 'Bags' }));
    expect(await world.finishDue(3 * HOUR)).toEqual([]);
    await world.fold(revoked(1, 3 * HOUR));
    expect(await world.finishDue(4 * HOUR)).toEqual([{ kind: 'dispatch_revoked', jobs: [1] }]);
  });

  test('a due date is notified although the dispatch was revoked while notifications were off, which is not notified', async () => {
    const world = await createWorld();
    await world.fold(dispatched(1, 0));
    expect(await world.finishDue(HOUR)).toHaveLength(1);
    await saveSettings(world.table, { enabled: false });
    await world.fold(revoked(1, 2 * HOUR));
    await saveSettings(world.table, { since: START + 3 * HOUR });
    const changes = { dateDue: { from: DAY_1, to: DAY_2 } };
    await world.fold(
      jobEvent('job.reopened', 1, 4 * HOUR, { dateDue: DAY_2 }),
      jobEvent('job.due_date_changed', 1, 4 * HOUR, { dateDue: DAY_2 }, { changes }),
    );
    const notice = required((await world.closeDue(5 * HOUR))[0]);
    expect(notice.content.kind).toBe('due_date_changed');
    expect([...(await findValidJobs(world.table, ref, notice.thread, notice.content)).valid]).toEqual([1]);
    await finishNotice(world.deps, notice);
    await world.fold(dispatched(1, 5 * HOUR, { dateOut: DAY_2 }), revoked(1, 6 * HOUR));
    expect(await world.finishDue(7 * HOUR)).toEqual([{ kind: 'dispatch_revoked', jobs: [1] }]);
  });

  test('a revocation is notified although another change of the job was observed with it', async () => {
    const world = await createWorld();
    await world.fold(dispatched(1, 0));
    expect(await world.finishDue(HOUR)).toHaveLength(1);
    const changes = { dateDue: { from: DAY_1, to: DAY_2 } };
    const job = { dateDue: DAY_2 };
    await world.fold(jobEvent('job.due_date_changed', 1, HOUR, job, { changes }), revoked(1, HOUR, job));
    expect((await world.finishDue(2 * HOUR)).map(({ kind }) => kind).sort()).toEqual([
      'dispatch_revoked',
      'due_date_changed',
    ]);
  });

  test('an event that arrives after its notice was closed starts a new notice', async () => {
    const world = await createWorld();
    await world.fold(dispatched(1, 0));
    expect(await world.finishDue(WINDOW + GRACE)).toEqual([{ kind: 'dispatched', jobs: [1] }]);
    await world.fold(dispatched(2, 4 * MINUTE));
    expect(await world.finishDue(HOUR)).toEqual([{ kind: 'dispatched', jobs: [2] }]);
  });

  test('changes observed before notifications were enabled are skipped', async () => {
    const world = await createWorld();
    await saveSettings(world.table, { since: START + MINUTE });
    await world.fold(dispatched(1, 0), dispatched(2, MINUTE));
    expect(await world.finishDue(HOUR)).toEqual([{ kind: 'dispatched', jobs: [2] }]);
    expect(await world.listRecorded()).toEqual([]);
  });

  test('a replay has no effect', async () => {
    const world = await createWorld();
    const [event] = await world.append(dispatched(1, 0));
    expect(await world.port.deliver([{ event: required(event), replay: 'rp-1' }])).toEqual([
      { kind: 'delivered' },
    ]);
    expect(await world.finishDue(HOUR)).toEqual([]);
  });
});

describe('concurrent changes', () => {
  test('a window keeps its initial length', async () => {
    const world = await createWorld();
    await world.fold(dispatched(1, 0));
    await saveSettings(world.table, {}, { windowSeconds: 3600 });
    await world.fold(dispatched(2, 4 * MINUTE), dispatched(3, 6 * MINUTE));
    expect(await world.finishDue(WINDOW + GRACE)).toEqual([{ kind: 'dispatched', jobs: [1, 2] }]);
    expect(await world.finishDue(HOUR)).toEqual([]);
    expect(await world.finishDue(2 * HOUR)).toEqual([{ kind: 'dispatched', jobs: [3] }]);
  });

  test('disabling notifications during a window drops its changes, even if they are enabled again', async () => {
    const world = await createWorld();
    await world.fold(dispatched(1, 0));
    await saveSettings(world.table, { enabled: false });
    await world.fold(dispatched(2, MINUTE));
    await saveSettings(world.table, { since: START + 2 * MINUTE });
    await world.fold(dispatched(3, 3 * MINUTE));
    expect(await world.finishDue(HOUR)).toEqual([]);
    expect(await world.listRecorded()).toEqual([
      { kind: 'dispatched', jobs: [1, 3], state: 'suppressed', reason: 'disabled' },
    ]);
  });

  test('a deleted account gets no notices; a new one with the same id starts empty', async () => {
    const world = await createWorld();
    await world.fold(dispatched(1, 0), dispatched(2, 0));
    const thread = keys.thread(ref, '=SPRING');
    await world.table.write({ delete: keys.notificationSettings(ref) });
    await world.table.write({ delete: thread });
    expect(await world.finishDue(HOUR)).toEqual([]);
    const [late] = await world.append(revoked(1, MINUTE));
    await world.port.deliver([{ event: required(late) }]);
    expect(await world.table.get(thread)).toBeUndefined();

    await saveSettings(world.table, { since: START + HOUR });
    for (const key of [keys.head(ref), ...[1, 2, 3].map((sequence) => keys.event(ref, sequence))]) {
      await world.table.write({ delete: key });
    }
    await world.table.transact([world.log.start(ref, 't4k9x1a2b3c4')], randomUUID());
    await world.fold(dispatched(1, 2 * HOUR));
    expect(await world.finishDue(3 * HOUR)).toEqual([{ kind: 'dispatched', jobs: [1] }]);
  });

  test('a restored log continues: its new events are notified, older ones are not folded again', async () => {
    const world = await createWorld();
    const [old] = await world.fold(dispatched(1, 0));
    expect(await world.finishDue(HOUR)).toEqual([{ kind: 'dispatched', jobs: [1] }]);
    const log = createEventLog(world.table, {
      ...{ now: world.deps.now, newId: randomUUID, schemaBaseUrl: '', leastEpoch: 't5' },
    });
    await log.renew(ref, 't5k9x1a2b3c4', () => []);
    await world.fold(revoked(1, HOUR));
    await world.port.deliver([{ event: required(old) }]);
    expect(await world.finishDue(2 * HOUR)).toEqual([{ kind: 'dispatch_revoked', jobs: [1] }]);
  });

  test('a job that moves to another order group takes its pending and notified changes with it', async () => {
    const world = await createWorld();
    const move = (at: number, from: string | null, to: string | null) =>
      jobEvent(
        'job.updated',
        1,
        at,
        { dateOut: DAY_1, orderGroup: to },
        { changes: { orderGroup: { from, to } } },
      );
    await world.fold(dispatched(1, 0), dispatched(2, 0), move(MINUTE, 'SPRING', 'SUMMER'));
    await world.fold(dispatched(3, 2 * MINUTE, { orderGroup: 'SUMMER' }));
    const notices = await world.finishDue(WINDOW + GRACE);
    expect(notices.map(({ jobs }) => jobs).sort()).toEqual([[1, 3], [2]]);
    await world.fold(move(HOUR, 'SUMMER', null), revoked(1, HOUR + MINUTE, { orderGroup: null }));
    const [notice] = await world.closeDue(2 * HOUR);
    expect(notice?.thread).toBe('#1');
    expect(notice?.content).toMatchObject({ kind: 'dispatch_revoked', orderGroup: null });
  });

  test('a notice is outdated if a job that moved on changes', async () => {
    const world = await createWorld();
    await world.fold(dispatched(1, 0), dispatched(2, 0));
    const { thread, content } = required((await world.closeDue(HOUR))[0]);
    const changes = { orderGroup: { from: 'SPRING', to: 'SUMMER' } };
    await world.fold(jobEvent('job.updated', 1, HOUR, { dateOut: DAY_1, orderGroup: 'SUMMER' }, { changes }));
    expect([...(await findValidJobs(world.table, ref, thread, content)).valid]).toEqual([1, 2]);
    await world.fold(revoked(1, HOUR + MINUTE, { orderGroup: 'SUMMER' }));
    expect([...(await findValidJobs(world.table, ref, thread, content)).valid]).toEqual([2]);
  });

  test('a window with unfolded events stays open, for at most an hour', async () => {
    const world = await createWorld();
    const [one, two] = await world.append(dispatched(1, 0), dispatched(2, MINUTE));
    await world.port.deliver([{ event: required(one) }]);
    await world.setPosition(1);
    expect(await world.finishDue(WINDOW + GRACE)).toEqual([]);
    await world.port.deliver([{ event: required(two) }]);
    await world.setPosition(2);
    expect(await world.finishDue(WINDOW + 2 * GRACE)).toEqual([{ kind: 'dispatched', jobs: [1, 2] }]);

    // The next event was observed after the window; one behind it may still belong to it.
    world.state.now = START + 60 * MINUTE;
    await world.fold(dispatched(5, 60 * MINUTE, { orderGroup: 'AUTUMN' }));
    await world.append(dispatched(6, 66 * MINUTE, { orderGroup: 'AUTUMN' }));
    expect(await world.finishDue(66 * MINUTE)).toEqual([]);
    await world.setPosition(4);
    expect(await world.finishDue(67 * MINUTE)).toEqual([{ kind: 'dispatched', jobs: [5] }]);

    const [three] = await world.append(dispatched(3, 70 * MINUTE), dispatched(4, 71 * MINUTE));
    world.state.now = START + 80 * MINUTE;
    await world.port.deliver([{ event: required(three) }]);
    expect(await world.finishDue(139 * MINUTE)).toEqual([]);
    expect(await world.finishDue(141 * MINUTE)).toEqual([{ kind: 'dispatched', jobs: [3] }]);
  });
});

describe('failures', () => {
  test('an unfinished notice is returned again after a minute, unchanged, until it is finished', async () => {
    const world = await createWorld();
    await world.fold(dispatched(1, 0));
    const [notice] = await world.closeDue(HOUR);
    expect(await world.closeDue(HOUR)).toEqual([]);
    await world.fold(revoked(1, HOUR));
    expect(await world.closeDue(HOUR + 2 * MINUTE)).toEqual([notice]);
    await finishNotice(world.deps, required(notice));
    await finishNotice(world.deps, required(notice));
    expect((await world.closeDue(2 * HOUR)).map(({ content }) => content.kind)).toEqual(['dispatch_revoked']);
  });

  test('an invalid event is recorded with the reason, and the others are notified', async () => {
    const world = await createWorld();
    const events = await world.append(...[1, 2, 3, 4, 5].map((job) => dispatched(job, 0)));
    const broken = (place: number, change: (data: Record<string, Record<string, unknown>>) => void) => {
      const event = required(events[place]);
      const { data, ...rest } = JSON.parse(event.json);
      change(data);
      return { ...event, json: JSON.stringify({ ...rest, data }) };
    };
    const sent = [
      { ...required(events[0]), json: '{' },
      broken(1, (data) => Object.assign(required(data.job), { jobNumber: 'two' })),
      broken(2, (data) => Object.assign(required(data.job), { dateOut: null })),
      // Requests only the required fields.
      broken(3, (data) =>
        Object.assign(required(data.job), { description: 4, tracking: [null, {}, { number: 7 }] }),
      ),
      required(events[4]),
    ];
    expect(await world.port.deliver(sent.map((event) => ({ event })))).toEqual(
      sent.map(() => ({ kind: 'delivered' })),
    );
    await world.setPosition(5);
    expect(await world.finishDue(HOUR)).toEqual([{ kind: 'dispatched', jobs: [4, 5] }]);
    const recorded = await world.listRecorded();
    expect(recorded.flatMap(({ jobs }) => jobs).sort()).toEqual([1, 2, 3]);
    for (const one of recorded) expect(one).toMatchObject({ state: 'failed', reason: 'rejected' });
  });

  test('an unreadable thread delays no other', async () => {
    const world = await createWorld();
    await world.fold(dispatched(1, 0), dispatched(2, 0, { orderGroup: 'SUMMER' }));
    await world.table.write({ update: keys.thread(ref, '=SPRING'), set: { state: '{' } });
    await world.fold(dispatched(3, MINUTE), dispatched(4, MINUTE, { orderGroup: 'SUMMER' }));
    expect(await world.finishDue(HOUR)).toEqual([{ kind: 'dispatched', jobs: [2, 4] }]);
    expect(await world.listRecorded()).toMatchObject([{ jobs: [3], state: 'failed' }]);
  });

  test('a message has the beginning of a long text, and recipients are found by all of it', async () => {
    const world = await createWorld();
    const long = '\u{1f4e6}'.repeat(400);
    await world.fold(dispatched(1, 0, { orderNumber: long, description: long, orderGroup: long }));
    const [notice] = await world.closeDue(HOUR);
    const [facts] = notice?.content.jobs ?? [];
    for (const text of [facts?.orderNumber, facts?.description]) {
      expect(text?.length).toBeLessThanOrEqual(200);
      expect(text?.isWellFormed()).toBe(true);
    }
    expect(notice?.content.orderGroup).toBe(long);
    expect(notice?.scopes).toEqual([{ jobNumber: 1, orderNumber: long, orderGroup: long }]);
  });

  test('links with other schemes than http and https are dropped', async () => {
    const world = await createWorld();
    const tracking = [
      { number: 'A', link: 'javascript:alert(1)' },
      { number: null, link: 'ftp://carrier.example' },
    ];
    await world.fold(dispatched(1, 0, { tracking }));
    const [notice] = await world.closeDue(HOUR);
    expect(notice?.content.jobs[0]?.tracking).toEqual([{ number: 'A', link: null }]);
  });

  test('a very large group is notified completely, in notices that can be stored', async () => {
    const world = await createWorld();
    const jobs = Array.from({ length: 1200 }, (_, place) => place + 1);
    for (let from = 0; from < jobs.length; from += 90) {
      const events = await world.append(...jobs.slice(from, from + 90).map((job) => dispatched(job, job)));
      await world.port.deliver(events.map((event) => ({ event })));
    }
    await world.setPosition(jobs.length);
    const notices = [...(await world.finishDue(HOUR)), ...(await world.finishDue(HOUR + MINUTE))];
    expect(notices.flatMap((notice) => notice.jobs).sort((a, b) => a - b)).toEqual(jobs);
    expect(notices.length).toBe(2);
  }, 60_000);

  test('changes that do not fit into a thread are recorded, and the rest is notified', async () => {
    const world = await createWorld();
    const noise = () => randomBytes(150).toString('base64');
    const tracking = () => Array.from({ length: 50 }, () => ({ number: noise(), link: null }));
    for (let job = 1; job <= 50; job += 10) {
      const some = Array.from({ length: 10 }, (_, place) =>
        dispatched(job + place, 0, { tracking: tracking() }),
      );
      const events = await world.append(...some);
      await world.port.deliver(events.map((event) => ({ event })));
    }
    await world.setPosition(50);
    const recorded = await world.listRecorded();
    expect(recorded.length).toBeGreaterThan(5);
    for (const one of recorded) expect(one).toMatchObject({ state: 'failed', reason: 'rejected' });
    const notices = [];
    for (let at = HOUR; at < HOUR + 20 * MINUTE; at += MINUTE) notices.push(...(await world.finishDue(at)));
    const all = [...notices, ...recorded].flatMap(({ jobs }) => jobs);
    expect(all.sort((a, b) => a - b)).toEqual(Array.from({ length: 50 }, (_, place) => place + 1));
  }, 60_000);

  test("changes that exceed a thread's capacity at closing are closed in parts", async () => {
    const world = await createWorld();
    const noise = () => randomBytes(150).toString('base64');
    const jobs = Array.from({ length: 20 }, (_, place) => place + 1);
    await world.fold(...jobs.map((job) => dispatched(job, 0)));
    expect(await world.finishDue(HOUR)).toHaveLength(1);
    for (const job of jobs) {
      const tracking = Array.from({ length: 50 }, () => ({ number: noise(), link: null }));
      const change = { changes: { dateDue: { from: '2026-03-05', to: '2026-03-06' } } };
      await world.fold(
        revoked(job, HOUR, { tracking }),
        jobEvent('job.due_date_changed', job, HOUR + 1, { tracking }, change),
        jobEvent('job.cancelled', job, HOUR + 2, { tracking }),
      );
    }
    expect(await world.listRecorded()).toEqual([]);
    const notices = [];
    for (let at = 2 * HOUR; at < 2 * HOUR + MINUTE; at += 6_000) notices.push(...(await world.finishDue(at)));
    for (const kind of ['dispatch_revoked', 'due_date_changed', 'cancelled']) {
      const jobs = notices.flatMap((notice) => (notice.kind === kind ? notice.jobs : []));
      expect(jobs.sort((a, b) => a - b)).toEqual(Array.from({ length: 20 }, (_, place) => place + 1));
    }
  }, 60_000);

  test('a thread that cannot be written delays no other, and is reported', async () => {
    let isBroken = false;
    const world = await createWorld((table) => ({
      ...table,
      write: async (write) => {
        if (isBroken && 'put' in write && write.put.sk === keys.thread(ref, '=SPRING').sk) {
          throw new TableError('write', 'it is too large');
        }
        return table.write(write);
      },
    }));
    await world.fold(dispatched(1, 0), dispatched(2, 1, { orderGroup: 'SUMMER' }));
    isBroken = true;
    world.state.now = START + HOUR;
    const failed: string[] = [];
    const notices = await takeDueNotices(world.deps, REGION, 1, ({ account }) => failed.push(account));
    expect(notices.map(({ thread }) => thread)).toEqual(['=SUMMER']);
    expect(failed).toEqual([ref.account]);
    isBroken = false;
    expect((await world.closeDue(HOUR + 30_000)).length).toBe(0);
    expect((await world.closeDue(HOUR + MINUTE)).map(({ thread }) => thread)).toContain('=SPRING');
  });

  test("folding puts only threads, as the drain's permissions require", async () => {
    const writes: Write[] = [];
    const world = await createWorld((table) => ({
      ...table,
      write: (write) => {
        writes.push(write);
        return table.write(write);
      },
      transact: (some, token) => {
        writes.push(...some);
        return table.transact(some, token);
      },
    }));
    await world.fold(dispatched(1, 0));
    const [waiting] = await world.append(jobEvent('job.updated', 1, MINUTE, { dateOut: DAY_1 }));
    // Read again later, because an event is still to be folded.
    expect(await world.closeDue(10 * MINUTE)).toEqual([]);
    writes.length = 0;
    await world.port.deliver([{ event: required(waiting) }]);
    await world.setPosition(2);
    expect(writes).toEqual([]);
    expect(await world.finishDue(HOUR)).toEqual([{ kind: 'dispatched', jobs: [1] }]);
    writes.length = 0;
    const weeks = 40 * 24 * HOUR;
    world.state.now = START + weeks;
    await world.fold(jobEvent('job.updated', 2, weeks));
    expect(writes).toMatchObject([{ put: { name: '=SPRING' } }]);
    // Nothing is left to store.
    const thread = await world.table.get(keys.thread(ref, '=SPRING'));
    expect(thread?.ttl).toBeLessThanOrEqual((START + weeks) / 1000);
    await world.fold(dispatched(3, weeks, { dateOut: '2026-04-13T10:00:00' }));
    expect(await world.finishDue(weeks + HOUR)).toEqual([{ kind: 'dispatched', jobs: [3] }]);
  });

  test('jobs of one thread in one batch are one write', async () => {
    let writes = 0;
    const world = await createWorld((table) => ({
      ...table,
      write: (write) => {
        writes += 1;
        return table.write(write);
      },
    }));
    const events = await world.append(...[1, 2, 3].map((job) => dispatched(job, 0)));
    await world.port.deliver(events.map((event) => ({ event })));
    expect(writes).toBe(1);
    await world.port.deliver(events.map((event) => ({ event })));
    expect(writes).toBe(1);
  });
});

eachTable('as drains do it', (makeTable, _kind, makeHistoryTable) => {
  test('events of many jobs and groups become one notice per group, for any batches of the drain', async () => {
    const table = await makeTable();
    const history = await makeHistoryTable();
    const state = { now: START };
    const now = () => state.now;
    const deps = { table, history, now };
    const log = createEventLog(table, { now, newId: randomUUID, schemaBaseUrl: '' });
    await table.transact([log.start(ref, 't3k9x1a2b3c4')], randomUUID());
    await saveSettings(table);
    const sink = {
      ...{ region: REGION, id: NOTIFICATIONS_SINK, kind: 'notifications' as const, target: '-' },
      ...{ accounts: [ref.account], types: [], paused: false },
    };
    await registerSink(table, log, sink, [ref]);
    const jobs = Array.from({ length: 60 }, (_, place) => place + 1);
    const drafts = jobs.map((job) => dispatched(job, job * 1000, { orderGroup: `G${job % 6}` }));
    const moves = { orderGroup: { from: 'G1', to: 'G2' } };
    drafts.push(jobEvent('job.updated', 1, MINUTE, { dateOut: DAY_1, orderGroup: 'G2' }, { changes: moves }));
    await log.append(ref, drafts);
    await wakeSinks(table, ref, drafts.length, state.now);
    const report = await drainSink(
      {
        ...{ table, log, now, newId: randomUUID, random: () => 0.5, retrySeconds: [5] },
        open: async () => createNotificationsSink(deps),
      },
      REGION,
      getDrainName(NOTIFICATIONS_SINK, ref.account),
      START + HOUR,
    );
    expect(report).toMatchObject({ outcome: 'drained', delivered: 61 });
    expect(await oldestUnsent(table, REGION, START + WINDOW)).toBeUndefined();
    state.now = START + 10 * MINUTE;
    expect(await oldestUnsent(table, REGION, state.now)).toBeDefined();
    const notices = await takeDueNotices(deps, REGION, 100);
    const jobsByGroup = new Map(
      notices.map(({ content }) => [content.orderGroup, content.jobs.map(({ jobNumber }) => jobNumber)]),
    );
    expect(jobsByGroup.size).toBe(notices.length);
    for (let group = 0; group < 6; group += 1) {
      const expected = jobs.filter((job) => (job === 1 ? group === 2 : job % 6 === group));
      expect(jobsByGroup.get(`G${group}`)).toEqual(expected);
    }
    for (const notice of notices) await finishNotice(deps, notice);
    expect(await oldestUnsent(table, REGION, START + 24 * HOUR)).toBeUndefined();
  });
});

// Any order, any crash

/** A possible life of a job upstream: one step is one event, or none if it is impossible. */
const ACTS = [
  ...[
    'dispatch',
    'dispatch',
    'dispatch',
    'dispatch',
    'stale',
    'revoke',
    'revoke',
    'correct',
    'track',
    'track',
  ],
  ...['link', 'untrack', 'due', 'due', 'cancel', 'cancel', 'reopen', 'reopen', 'reopen', 'move', 'rename'],
] as const;
const GAPS = [0, 1000, 20_000, MINUTE, 2 * MINUTE, 4 * MINUTE, 6 * MINUTE, 20 * MINUTE, 3 * HOUR, 26 * HOUR];
const JOBS = [1, 2, 3, 4];
const steps = fc.array(
  fc.record({
    job: fc.constantFrom(...JOBS),
    act: fc.constantFrom<string>(...ACTS),
    n: fc.nat(2),
    gap: fc.constantFrom(...GAPS),
    /** How much earlier it was observed than its predecessor in the log. */
    early: fc.constantFrom(0, 0, 0, 30_000),
  }),
  { minLength: 2, maxLength: 40, size: 'max' },
);
type Step = (typeof steps extends fc.Arbitrary<infer T> ? T : never)[number];

interface Life {
  dateOut: string | null;
  dateDue: string | null;
  orderGroup: string | null;
  description: string;
  cancelled: boolean;
  tracking: Parcel[];
}
const bornAs = (job: number): Life => ({
  ...{ dateOut: null, dateDue: null, cancelled: false, tracking: [], description: `Job ${job}` },
  orderGroup: job === 4 ? null : job === 3 ? 'B' : 'A',
});
/** Times from midnight of the day of the observation to the dispatch, hours: of recent dispatches, and of one that is too old. */
const DISPATCHED_AFTER = [10, 34, 40];
const STALE_AFTER = -62;
const PARCELS = ['1Z1', '1Z2', '1Z3'];

/** The events of a life: each observation, and the job after it. */
function live(all: readonly Step[]): { draft: EventDraft; life: Life; job: number; time: number }[] {
  const lives = new Map(JOBS.map((job) => [job, bornAs(job)]));
  const lastByJob = new Map<number, number>();
  let at = 0;
  return all.flatMap(({ job, act, n, gap, early }) => {
    const was = lives.get(job) ?? bornAs(job);
    const life: Life = { ...was, tracking: [...was.tracking] };
    const number = PARCELS[n] ?? '';
    const parcel = was.tracking.find((one) => one.number === number);
    let type: Type | undefined;
    let changes: object = {};
    let more: object = {};
    const hours = act === 'stale' ? STALE_AFTER : (DISPATCHED_AFTER[n] ?? 0);
    const midnight = Math.floor((START + at) / (24 * HOUR)) * 24 * HOUR;
    const day = new Date(midnight + hours * HOUR).toISOString().slice(0, 19);
    if ((act === 'dispatch' || act === 'stale') && was.dateOut === null) {
      type = 'job.dispatched';
      life.dateOut = day;
      life.cancelled = false;
      changes = { dateOut: { from: null, to: day } };
    } else if (act === 'revoke' && was.dateOut !== null) {
      type = 'job.dispatch_revoked';
      life.dateOut = null;
      changes = { dateOut: { from: was.dateOut, to: null } };
    } else if (act === 'correct' && was.dateOut !== null && was.dateOut !== day) {
      type = 'job.updated';
      life.dateOut = day;
      changes = { dateOut: { from: was.dateOut, to: day } };
    } else if (act === 'track' && !parcel) {
      type = 'job.tracking_added';
      const added = { number, link: job % 2 === 0 ? null : linkTo(number) };
      life.tracking.push(added);
      more = { tracking: [added] };
    } else if (act === 'link' && parcel && parcel.link === null) {
      type = 'job.tracking_updated';
      const to = { number, link: linkTo(number) };
      life.tracking = was.tracking.map((one) => (one === parcel ? to : one));
      more = { tracking: [{ from: parcel, to }] };
    } else if (act === 'untrack' && parcel) {
      type = 'job.tracking_removed';
      life.tracking = was.tracking.filter((one) => one !== parcel);
      more = { tracking: [parcel] };
    } else if (act === 'due') {
      const to = n === 0 ? null : `2026-03-1${n}T17:00:00`;
      if (to !== was.dateDue) {
        type = 'job.due_date_changed';
        life.dateDue = to;
        changes = { dateDue: { from: was.dateDue, to } };
      }
    } else if (act === 'cancel' && !was.cancelled && was.dateOut === null) {
      type = 'job.cancelled';
      life.cancelled = true;
    } else if (act === 'reopen' && was.cancelled) {
      type = 'job.reopened';
      life.cancelled = false;
    } else if (act === 'move') {
      const to = [null, 'A', 'B'][n] ?? null;
      if (to !== was.orderGroup) {
        type = 'job.updated';
        life.orderGroup = to;
        changes = { orderGroup: { from: was.orderGroup, to } };
      }
    } else if (act === 'rename') {
      type = 'job.updated';
      life.description = `${was.description}+`;
      changes = { description: { from: was.description, to: life.description } };
    }
    if (type === undefined) return [];
    at += gap;
    const time = Math.max(at - early, lastByJob.get(job) ?? 0, 0);
    lastByJob.set(job, time);
    lives.set(job, life);
    const { cancelled: _, ...shown } = life;
    return [{ draft: jobEvent(type, job, time, shown, { changes, ...more }), life, job, time: START + time }];
  });
}

/** Events around the sink. */
const ops = fc.array(
  fc.oneof(
    fc.record({ op: fc.constant('say' as const), count: fc.integer({ min: 1, max: 8 }) }),
    fc.record({
      op: fc.constantFrom('fold' as const, 'fold' as const, 'both' as const),
      jobs: fc.subarray(JOBS, { minLength: 1 }),
      /** Delivers something again that was delivered before. */
      again: fc.option(fc.nat(29)),
    }),
    fc.record({ op: fc.constant('store' as const) }),
    fc.record({ op: fc.constant('take' as const), finish: fc.boolean() }),
    fc.record({
      op: fc.constant('wait' as const),
      ms: fc.constantFrom(1000, GRACE, MINUTE, WINDOW + GRACE, 30 * MINUTE, 2 * HOUR),
    }),
    /** The table fails at the nth write from now; `written` tells whether that one succeeds. */
    fc.record({ op: fc.constantFrom('fail' as const), at: fc.nat(2), lands: fc.boolean() }),
  ),
  { minLength: 10, maxLength: 80, size: 'max' },
);

/** A table with delays, and with failures on request. */
function faulty(paces: readonly number[]) {
  const fault = { left: Number.POSITIVE_INFINITY, lands: false, happened: 0 };
  /** Called for each item that was put. */
  const landed: ((item: Item) => void)[] = [];
  const onWritten = (write: Write): void => {
    if ('put' in write) for (const listen of landed) listen(write.put);
  };
  let calls = 0;
  const slowly = async <T>(call: () => Promise<T>): Promise<T> => {
    for (let turn = paces[calls++ % paces.length] ?? 0; turn > 0; turn -= 1) await Promise.resolve();
    return call();
  };
  const writing = async <T>(call: () => Promise<T>): Promise<T> => {
    const fails = fault.left === 0;
    fault.left -= 1;
    if (!fails) return slowly(call);
    fault.happened += 1;
    if (fault.lands) await slowly(call);
    throw new TableError('write', 'it failed');
  };
  const around = (table: Table): Table => ({
    ...table,
    get: (key) => slowly(() => table.get(key)),
    query: (query) => slowly(() => table.query(query)),
    write: (write) =>
      writing(async () => {
        const outcome = await table.write(write);
        if (outcome.done) onWritten(write);
        return outcome;
      }),
    transact: (writes, token) =>
      writing(async () => {
        const outcome = await table.transact(writes, token);
        if (outcome.done) writes.forEach(onWritten);
        return outcome;
      }),
  });
  return { fault, around, landed };
}

/** A notice: its order of closing, its time, and the minimum and maximum fold position of each job. */
interface Out {
  readonly notice: ClosedNotice;
  readonly order: number;
  readonly at: number;
  readonly folded: ReadonlyMap<number, readonly [least: number, most: number]>;
}

/** Drives the sink through a script as drains do: lanes in order, at least once; then everything to its end. */
async function play(
  all: readonly Step[],
  script: typeof ops extends fc.Arbitrary<infer T> ? T : never,
  paces: number[],
) {
  const { fault, around, landed } = faulty(paces);
  const world = await createWorld(around);
  const events = live(all);
  const logged: { event: LoggedEvent; job: number; at: number }[] = [];
  const lanes = new Map(JOBS.map((job) => [job, { done: 0, tried: 0 }]));
  const doneSequences = new Set<number>();
  const closed = new Map<string, Omit<Out, 'notice'>>();
  const outs = new Map<string, Out>();
  const finished = new Set<string>();
  landed.push((item) => {
    if (typeof item.state !== 'string') return;
    for (const { id } of (JSON.parse(item.state) as { frozen: { id: string }[] }).frozen) {
      const name = `${item.name} ${id}`;
      const folded = new Map([...lanes].map(([job, { done, tried }]) => [job, [done, tried] as const]));
      if (!closed.has(name)) closed.set(name, { order: closed.size, at: world.state.now, folded });
    }
  });

  const jobEvents = (job: number) => logged.filter((one) => one.job === job).map(({ event }) => event);
  const say = async (count: number) => {
    const some = events.slice(logged.length, logged.length + count);
    if (some.length === 0) return;
    world.state.now = Math.max(world.state.now, ...some.map(({ time }) => time));
    const appended = await world.append(...some.map(({ draft }) => draft));
    appended.forEach((event, place) => {
      logged.push({ event, job: some[place]?.job ?? 0, at: world.state.now });
    });
  };
  const fold = async (jobs: readonly number[], again: number | null) => {
    const old = again === null ? undefined : logged[again];
    const isOld = old !== undefined && doneSequences.has(old.event.sequence);
    const batch = jobs.flatMap((job) => {
      const event = jobEvents(job)[lanes.get(job)?.done ?? 0];
      return event && !(isOld && old.job === job) ? [event] : [];
    });
    for (const { jobNumber = 0 } of batch) {
      const lane = lanes.get(jobNumber);
      if (lane) lane.tried = lane.done + 1;
    }
    const sent = [...batch, ...(isOld ? [old.event] : [])];
    const outcomes = await world.port.deliver(sent.map((event) => ({ event })));
    batch.forEach((event, place) => {
      const lane = lanes.get(event.jobNumber ?? 0);
      if (outcomes[place]?.kind !== 'delivered' || !lane) return;
      lane.done = lane.tried;
      doneSequences.add(event.sequence);
    });
  };
  const store = async () => {
    let position = 0;
    while (doneSequences.has(position + 1)) position += 1;
    await world.setPosition(position);
  };
  const take = async (finish: boolean) => {
    let notices: ClosedNotice[];
    try {
      notices = await takeDueNotices(world.deps, REGION, 3);
    } catch (cause) {
      if (cause instanceof TableError) return;
      throw cause;
    }
    for (const notice of notices) {
      const name = `${notice.thread} ${notice.id}`;
      const known = outs.get(name);
      if (known) expect(notice).toEqual(known.notice);
      else outs.set(name, { notice, ...required(closed.get(name)) });
      expect(finished.has(name)).toBe(false);
      if (!finish) continue;
      await finishNotice(world.deps, notice).then(
        () => finished.add(name),
        (cause: unknown) => {
          if (!(cause instanceof TableError)) throw cause;
        },
      );
    }
  };

  await world.setPosition(0);
  for (const one of script) {
    if (one.op === 'say') await say(one.count);
    else if (one.op === 'fold') await fold(one.jobs, one.again);
    else if (one.op === 'both') {
      const half = Math.ceil(one.jobs.length / 2);
      await Promise.all([fold(one.jobs.slice(0, half), null), fold(one.jobs.slice(half), null), take(true)]);
    } else if (one.op === 'store') await store();
    else if (one.op === 'take') await take(one.finish);
    else if (one.op === 'wait') world.state.now += one.ms;
    else if (one.op === 'fail') {
      fault.left = one.at;
      fault.lands = one.lands;
    }
  }
  fault.left = Number.POSITIVE_INFINITY;
  while (logged.length < events.length) {
    await say(1);
    await fold(JOBS, null);
  }
  while (JOBS.some((job) => jobEvents(job).length > (lanes.get(job)?.done ?? 0))) await fold(JOBS, null);
  await store();
  for (let round = 0; round < 40; round += 1) {
    world.state.now += 2 * MINUTE;
    await take(true);
  }
  expect(await oldestUnsent(world.table, REGION, world.state.now + 365 * 24 * HOUR)).toBeUndefined();
  const { messages } = await listMessages(world.history, ref, { limit: 500 });
  return { events, outs: [...outs.values()], recorded: messages, faults: fault.happened, logged };
}

function required<T>(value: T | undefined): T {
  if (value === undefined) throw new Error('It is not there.');
  return value;
}

const getDay = (date: string | null) => date?.slice(0, 10) ?? null;
type Played = Awaited<ReturnType<typeof play>>;

/** Every notice is true at some time while it was closed, and is about one thread, of one window, and no later events. */
function expectTrue({ events, outs, recorded }: Played): void {
  const isSplit = recorded.some(({ kind, reason }) => kind === 'dispatched' && reason === 'too_old');
  for (const { notice, at, folded } of outs) {
    const { kind, jobs, observedAt, orderGroup } = notice.content;
    // A dispatch that is too old can have opened the window.
    const opened = kind === 'dispatched' && isSplit ? observedAt - WINDOW : observedAt;
    expect(at).toBeGreaterThanOrEqual(opened + WINDOW + GRACE);
    expect(at - observedAt).toBeLessThanOrEqual(24 * HOUR);
    expect(jobs.length).toBeGreaterThan(0);
    expect(jobs.map(({ jobNumber }) => jobNumber)).toEqual(
      [...new Set(jobs.map(({ jobNumber }) => jobNumber))].sort((a, b) => a - b),
    );
    for (const facts of jobs) {
      const lived = events.filter(({ job }) => job === facts.jobNumber);
      const [least, most] = required(folded.get(facts.jobNumber));
      const known = [least, most].flatMap((count) => lived[count - 1]?.life ?? []);
      const fits = known.filter((life) => {
        if (life.orderGroup !== orderGroup || life.description !== facts.description) return false;
        if (kind === 'dispatched') {
          const all = life.tracking.map((one) => JSON.stringify(one)).sort();
          const inNotice = facts.tracking.map((one) => JSON.stringify(one)).sort();
          return life.dateOut !== null && life.dateOut === facts.dateOut && all.join() === inNotice.join();
        }
        if (kind === 'tracking') {
          const all = life.tracking.map((one) => JSON.stringify(one));
          return (
            life.dateOut === facts.dateOut &&
            life.dateOut !== null &&
            facts.tracking.length > 0 &&
            facts.tracking.every((one) => all.includes(JSON.stringify(one)))
          );
        }
        if (kind === 'dispatch_revoked') return life.dateOut === null;
        if (kind === 'due_date_changed') return life.dateDue === facts.dateDue && life.dateOut === null;
        return kind === 'cancelled' ? life.cancelled : !life.cancelled && life.dateOut === null;
      });
      expect(fits.length, JSON.stringify({ kind, facts, known })).toBeGreaterThan(0);
      // Without a zone the dispatch was at the latest at that time in UTC−12.
      if (kind === 'dispatched')
        expect(at - Date.parse(`${facts.dateOut}-12:00`)).toBeLessThanOrEqual(24 * HOUR);
    }
  }
}

/**
 * No change is notified twice, and finally customers know the current state, except changes that were too old, which the
 * history has.
 */
function expectNotified({ events, outs, recorded }: Played): void {
  const ordered = outs.toSorted((a, b) => a.order - b.order);
  for (const job of JOBS) {
    const lived = events.filter((one) => one.job === job);
    const now = lived.at(-1)?.life;
    if (!now) continue;
    const types = lived.map(({ draft }) => draft.type);
    const isTooOld = (kind: MessageKind): boolean =>
      recorded.some((one) => one.reason === 'too_old' && one.kind === kind && one.jobs.includes(job));
    // A corrected date is not notified, so texts are not compared.
    const isCorrected = lived.some(
      ({ draft }) => draft.type === 'job.updated' && 'dateOut' in draft.data.changes,
    );
    const knowsDays = !isCorrected && !isTooOld('dispatched') && !isTooOld('dispatch_revoked');
    const knowsDue = !isTooOld('due_date_changed');
    const places: unknown[] = [];
    const belief = { day: null as string | null, taken: false, due: null as string | null, cancelled: false };
    for (const { notice } of ordered) {
      const facts = notice.content.jobs.find(({ jobNumber }) => jobNumber === job);
      if (!facts) continue;
      const day = getDay(facts.dateOut);
      switch (notice.content.kind) {
        case 'dispatched':
          if (knowsDays) expect(belief.day === day && !belief.taken).toBe(false);
          expect(notice.dispatches?.[job] ?? []).toEqual(places);
          places.push(toPlace(notice));
          Object.assign(belief, { day, taken: false, cancelled: false });
          break;
        case 'dispatch_revoked':
          expect(belief.day).not.toBeNull();
          expect(belief.taken).toBe(false);
          expect(notice.dispatches?.[job]).toEqual(places);
          places.push(toPlace(notice));
          belief.taken = true;
          break;
        case 'due_date_changed':
          if (knowsDue) expect(facts.formerDateDue).toBe(belief.due);
          expect(facts.dateDue).not.toBe(facts.formerDateDue);
          belief.due = facts.dateDue;
          break;
        case 'cancelled':
          expect(belief.cancelled).toBe(false);
          belief.cancelled = true;
          places.push(toPlace(notice));
          break;
        case 'reinstated':
          expect(belief.cancelled).toBe(true);
          belief.cancelled = false;
          break;
        case 'tracking':
          expect(belief.day).not.toBeNull();
      }
    }
    if (knowsDays) expect(belief.taken ? null : belief.day).toBe(getDay(now.dateOut));
    // After a dispatch a new due date is no news.
    if (knowsDue && now.dateOut === null) expect(belief.due).toBe(now.dateDue);
    if (now.dateOut === null && !isTooOld('cancelled')) expect(belief.cancelled).toBe(now.cancelled);

    const groups = [bornAs(job), ...lived.map(({ life }) => life)].map(({ orderGroup }) => orderGroup);
    const threadNotices = ordered.filter(({ notice }) =>
      isIn(groups, notice.content.orderGroup, notice.thread, job),
    );
    if (knowsDays && now.dateOut !== null && !recorded.some(({ reason }) => reason === 'too_old')) {
      const parcels = threadNotices.flatMap(({ notice }) =>
        notice.content.jobs.flatMap(({ jobNumber, tracking }) => (jobNumber === job ? tracking : [])),
      );
      for (const { number, link } of now.tracking) {
        expect(parcels.some((one) => one.number === number && (link === null || one.link !== null))).toBe(
          true,
        );
      }
    }
    const isNoted = recorded.some((one) => one.kind === 'dispatched' && one.jobs.includes(job));
    const isNotified = threadNotices.some(({ notice }) => notice.content.kind === 'dispatched');
    if (types.includes('job.dispatched') && !isNotified) expect(isNoted).toBe(true);
  }
  // Each parcel is news of a job once, and once more when it gets its link.
  for (const place of new Set(outs.flatMap(({ notice }) => JOBS.map((job) => `${notice.thread} ${job}`)))) {
    const knownParcels = new Map<string | null, boolean>();
    for (const { notice } of ordered) {
      if (!['dispatched', 'tracking'].includes(notice.content.kind)) continue;
      const parcels = notice.content.jobs.flatMap(({ jobNumber, tracking }) =>
        `${notice.thread} ${jobNumber}` === place ? tracking : [],
      );
      if (notice.content.kind === 'tracking') {
        for (const { number, link } of parcels) {
          expect(knownParcels.has(number) && (knownParcels.get(number) === true || link === null)).toBe(
            false,
          );
        }
      }
      for (const { number, link } of parcels)
        knownParcels.set(number, knownParcels.get(number) === true || link !== null);
    }
  }
}

function isIn(
  groups: readonly (string | null)[],
  group: string | null,
  thread: string,
  job: number,
): boolean {
  return groups.includes(group) && (group !== null || thread === `#${job}`);
}

const paces = fc.array(fc.nat(12), { minLength: 1, maxLength: 20 });

test('for any life, order of folding, redelivery and crash, notices are true when closed, notified once, and finally complete', async () => {
  const seen = {
    notices: 0,
    recorded: 0,
    faults: 0,
    kinds: new Set<ContentKind>(),
    reasons: new Set<string | null>(),
  };
  await fc.assert(
    fc.asyncProperty(steps, ops, paces, async (all, script, pace) => {
      const played = await play(all, script, pace);
      expectTrue(played);
      expectNotified(played);
      seen.notices += played.outs.length;
      seen.recorded += played.recorded.length;
      seen.faults += played.faults;
      for (const { notice } of played.outs) seen.kinds.add(notice.content.kind);
      for (const { reason } of played.recorded) seen.reasons.add(reason);
    }),
    runs(RUNS, RUNS),
  );
  // The property is meaningful only with actions.
  expect(seen.notices).toBeGreaterThan(RUNS);
  expect(seen.faults).toBeGreaterThan(RUNS / 10);
  expect([...seen.kinds].sort()).toEqual([...noticeKinds].sort());
  expect([...seen.reasons].sort()).toEqual(['revoked', 'too_old']);
}, 1_800_000);

// Windows, exact to the millisecond

/** Dispatches in log order, and the window of each according to the guarantee. */
function getWindows(times: readonly { job: number; time: number }[]): number[][] {
  const windows: { start: number; jobs: number[] }[] = [];
  for (const { job, time } of times.toSorted((a, b) => a.time - b.time)) {
    const last = windows.at(-1);
    if (last && (time - last.start < WINDOW || time === last.start)) last.jobs.push(job);
    else windows.push({ start: time, jobs: [job] });
  }
  return windows.map(({ jobs }) => jobs.sort((a, b) => a - b));
}

test('for any sink delay, folding order and crash, each window of event time is one notice', async () => {
  let many = 0;
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.constantFrom(0, 1000, MINUTE, 2 * MINUTE, 4 * MINUTE, WINDOW, 7 * MINUTE, HOUR), {
        minLength: 1,
        maxLength: 12,
      }),
      // Order of folding, reads in between, and table failures.
      fc.array(
        fc.record({
          pick: fc.nat(11),
          batch: fc.integer({ min: 1, max: 4 }),
          take: fc.boolean(),
          fail: fc.option(fc.record({ at: fc.nat(2), lands: fc.boolean() }), { freq: 5 }),
        }),
        { maxLength: 40 },
      ),
      paces,
      async (gaps, script, pace) => {
        const { fault, around } = faulty(pace);
        const world = await createWorld(around);
        await world.setPosition(0);
        let at = 0;
        const times = gaps.map((gap, place) => {
          at += gap;
          return { job: place + 1, time: at };
        });
        // An outage: all events are in the log before the first is folded.
        const events = await world.append(...times.map(({ job, time }) => dispatched(job, time)));
        world.state.now = START + at + 30 * MINUTE;
        const left = [...events];
        const notices = new Map<string, readonly number[]>();
        const take = async () => {
          const taken = await takeDueNotices(world.deps, REGION, 10).catch((cause: unknown) => {
            if (cause instanceof TableError) return [];
            throw cause;
          });
          for (const { id, content } of taken) {
            notices.set(
              id,
              content.jobs.map(({ jobNumber }) => jobNumber),
            );
          }
        };
        for (const { pick, batch, take: takes, fail } of [...script, ...events.map(() => LAST)]) {
          fault.left = fail?.at ?? Number.POSITIVE_INFINITY;
          fault.lands = fail?.lands ?? false;
          const some = left.splice(pick % Math.max(1, left.length), batch);
          const outcomes = await world.port.deliver(some.map((event) => ({ event })));
          left.push(...some.filter((_, place) => outcomes[place]?.kind !== 'delivered'));
          // Like a drain: all events up to there are folded.
          const first = Math.min(events.length + 1, ...left.map(({ sequence }) => sequence));
          await world.setPosition(first - 1);
          if (takes) await take();
          world.state.now += 10_000;
        }
        fault.left = Number.POSITIVE_INFINITY;
        for (let round = 0; round < 20; round += 1) {
          world.state.now += MINUTE;
          await take();
        }
        const expected = getWindows(times);
        expect([...notices.values()].sort((a, b) => (a[0] ?? 0) - (b[0] ?? 0))).toEqual(expected);
        if (expected.length > 1) many += 1;
      },
    ),
    runs(WINDOW_RUNS, WINDOW_RUNS),
  );
  expect(many).toBeGreaterThan(WINDOW_RUNS / 4);
}, 1_800_000);
const LAST = { pick: 0, batch: 4, take: true, fail: null };
