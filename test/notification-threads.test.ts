/** What customers are to hear of: of each order group one notice a window, once, and only what still holds. */
import { randomUUID } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import type { EventDraft } from '../shared/events/event.ts';
import { createEventLog, type LoggedEvent } from '../shared/log/log.ts';
import { listMessages } from '../shared/notifications/messages.ts';
import { NOTIFICATIONS_SINK } from '../shared/notifications/model.ts';
import {
  createNotificationsSink,
  finishNotice,
  noticesDue,
  standingJobs,
  takeDueNotices,
  upcomingOf,
} from '../shared/notifications/threads.ts';
import { createMemoryTable } from '../shared/table/memory-table.ts';
import { historySchema, keys } from '../shared/table/schema.ts';
import type { Table } from '../shared/table/table.ts';

const REGION = 'us';
const ref = { region: REGION, account: 'acme' };
const START = Date.parse('2026-03-04T12:00:00Z');
const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const WINDOW = 5 * MINUTE;
const GRACE = 15_000;

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

interface JobOptions {
  orderGroup?: string | null;
  orderNumber?: string | null;
  description?: string | null;
  dateOut?: string | null;
  dateDue?: string | null;
  tracking?: Parcel[];
}

/** An event about a job, `at` ms after the start. */
function said(
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

const DAY_1 = '2026-03-04T10:00:00';
const DAY_2 = '2026-03-05T10:00:00';
const dispatched = (jobNumber: number, at: number, job: JobOptions = {}) =>
  said('job.dispatched', jobNumber, at, { dateOut: DAY_1, ...job });
const revoked = (jobNumber: number, at: number, job: JobOptions = {}) =>
  said('job.dispatch_revoked', jobNumber, at, job);

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

/** A log, the sink, and a clock. */
async function createWorld() {
  const state = { now: START };
  const table = createMemoryTable();
  const history = createMemoryTable(historySchema);
  const now = () => state.now;
  const deps = { table, history, now };
  const log = createEventLog(table, { now, newId: randomUUID, schemaBaseUrl: 'https://jobwire.example' });
  await table.transact([log.start(ref, 't3k9x1a2b3c4')], randomUUID());
  await saveSettings(table);
  const port = createNotificationsSink(deps);
  return {
    ...{ state, table, history, deps, log, port },
    /** Puts events into the log. */
    async say(...drafts: EventDraft[]): Promise<LoggedEvent[]> {
      const from = (await log.head(ref))?.sequence ?? 0;
      await log.append(ref, drafts);
      const page = await log.read(ref, from, drafts.length);
      return page?.kind === 'events' ? [...page.events] : [];
    },
    /** Folds events, all that are in the log being folded then. */
    async fold(...drafts: EventDraft[]): Promise<LoggedEvent[]> {
      const events = await this.say(...drafts);
      for (const event of events) expect(await port.deliver([{ event }])).toEqual([{ kind: 'delivered' }]);
      await this.stand((await log.head(ref))?.sequence ?? 0);
      return events;
    },
    /** The sink's cursor stands there. */
    async stand(position: number): Promise<void> {
      const sink = NOTIFICATIONS_SINK;
      await table.write({ put: { ...keys.cursor(REGION, sink, ref.account), sink, position } });
    },
    /** What is closed at an instant after the start; nothing of it is finished. */
    async taken(at: number) {
      state.now = START + at;
      return takeDueNotices(deps, REGION, 100);
    },
    /** The same, and finished. */
    async told(at: number) {
      const notices = await this.taken(at);
      for (const notice of notices) await finishNotice(deps, notice);
      return notices.map(({ content }) => ({
        kind: content.kind,
        jobs: content.jobs.map(({ jobNumber }) => jobNumber),
      }));
    },
    async untold() {
      const { messages } = await listMessages(history, ref);
      return messages.map(({ kind, jobs, state: became, reason }) => ({ kind, jobs, became, reason }));
    },
  };
}

describe('what comes together is told together', () => {
  test('jobs of a group dispatched in a window of event time are one notice, and each is told once', async () => {
    const world = await createWorld();
    await world.fold(dispatched(1, 0), dispatched(2, 4 * MINUTE));
    expect(await world.told(WINDOW + GRACE - 1)).toEqual([]);
    expect(await noticesDue(world.table, REGION, START + WINDOW + GRACE)).toBe(true);
    expect(await world.told(WINDOW + GRACE)).toEqual([{ kind: 'dispatched', jobs: [1, 2] }]);
    expect(await world.told(10 * HOUR)).toEqual([]);
    expect(await noticesDue(world.table, REGION, START + 10 * HOUR)).toBe(false);
  });

  test('a dispatch that is taken back in the window is not told, and the history says so', async () => {
    const world = await createWorld();
    await world.fold(dispatched(1, 0), revoked(1, MINUTE));
    expect(await world.told(WINDOW + GRACE)).toEqual([]);
    expect(await world.untold()).toEqual([
      { kind: 'dispatched', jobs: [1], became: 'suppressed', reason: 'revoked' },
    ]);
  });

  test('a window that is open can be looked at', async () => {
    const world = await createWorld();
    await world.fold(dispatched(1, 0), dispatched(2, MINUTE));
    expect(await upcomingOf(world.table, ref, 2, 'SPRING')).toEqual([
      { kind: 'dispatched', dueAt: START + WINDOW + GRACE, jobs: [1, 2] },
    ]);
    expect(await upcomingOf(world.table, ref, 3, 'SPRING')).toEqual([]);
  });

  test('what was taken back after its notice was closed no longer stands', async () => {
    const world = await createWorld();
    await world.fold(dispatched(1, 0, { dateOut: DAY_1 }), dispatched(2, 0, { dateOut: DAY_2 }));
    const [notice] = await world.taken(WINDOW + GRACE);
    if (!notice) throw new Error('Nothing was closed.');
    expect([...(await standingJobs(world.table, ref, notice.thread, notice.content))]).toEqual([1, 2]);
    await world.fold(revoked(1, 6 * MINUTE));
    expect([...(await standingJobs(world.table, ref, notice.thread, notice.content))]).toEqual([2]);
  });
});
