/**
 * Roll-ups per account and day, and the totals of open jobs: correct, counted once, and cheap.
 * One file: its tests share the table and the days that they count.
 */
import { describe, expect, test } from 'vitest';
import * as z from 'zod';
import { figureKeys } from '../../shared/accounts/deletion.ts';
import {
  AccountRollups,
  dayRange,
  MAX_ROLLUP_DAYS,
  OpenJobs,
  RegionOpenJobs,
  RegionRollups,
  readOpenJobs,
  readRegionOpenJobs,
  readRegionRollups,
  readRollups,
} from '../../shared/api/statistics.ts';
import { type AccountRef, keys } from '../../shared/storage/schema.ts';
import { createMemoryTable } from '../../shared/storage/sqlite-table.ts';
import { estimateSize, MAX_TRANSACTION_ACTIONS, type Table, type Write } from '../../shared/storage/table.ts';
import { countOpenJobs, OpenKinds, openJobsWrite } from '../../shared/tracking/open-jobs.ts';
import { pollAccount } from '../../shared/tracking/poll.ts';
import { countEvents } from '../../shared/tracking/rollups.ts';
import { dayNamed, isAfterDue } from '../../shared/tracking/timestamps.ts';
import type { ListView } from '../../shared/tracking/views.ts';
import { rollupProblems } from '../support/rollup-oracle.ts';
import { createRig, type Rig, START, watchedTable } from '../support/tracker.ts';

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
/** The rig's clock starts at 01:00 in Denver, where its jobs are produced. */
const TODAY = '2026-03-02';

type AnyRig = Pick<Rig, 'table' | 'ref'>;

async function rollups({ table, ref }: AnyRig, from = TODAY, to = from): Promise<AccountRollups> {
  return AccountRollups.parse(await readRollups({ table }, ref, from, to));
}

/** The totals of a day that are not 0. */
async function readTotals(rig: AnyRig, day = TODAY): Promise<Record<string, unknown>> {
  const [row] = (await rollups(rig, day)).days;
  return Object.fromEntries(Object.entries(row ?? {}).filter(([name, n]) => name !== 'day' && n !== 0));
}

async function openJobs(rig: Pick<Rig, 'table' | 'ref' | 'now'>): Promise<z.input<typeof OpenJobs>> {
  return z.encode(OpenJobs, (await readOpenJobs(rig, rig.ref)) as OpenJobs);
}

async function baselined(jobs: number, options: Parameters<typeof createRig>[0] = {}) {
  const rig = await createRig(options);
  const numbers = Array.from({ length: jobs }, () => rig.upstream.createJob({ status: 'Scheduled' }));
  await rig.poll();
  await rig.poll();
  return { rig, jobs: numbers };
}

describe('the roll-up of a day', () => {
  test('counts created, dispatched on time and late, overdue, closed and cancelled jobs', async () => {
    const { rig, jobs } = await baselined(6);
    const { upstream } = rig;
    const [onTime = 0, late = 0, undated = 0, overdue = 0, closed = 0, cancelled = 0] = jobs;
    expect(await readTotals(rig)).toEqual({});
    upstream.createJob();
    upstream.edit(late, { dateDue: rig.now() - HOUR });
    upstream.edit(undated, { dateDue: null });
    upstream.edit(overdue, { dateDue: rig.now() - HOUR });
    for (const jobNumber of [onTime, late, undated]) upstream.dispatch(jobNumber);
    upstream.close(closed);
    upstream.cancel(cancelled);
    for (let n = 0; n < 20; n += 1) await rig.poll();
    expect(await readTotals(rig)).toEqual({
      ...{ created: 1, dispatched: 3, onTime: 1, late: 1, overdue: 1, closed: 1, cancelled: 1 },
    });
  });

  test('is that of the location: a dispatch before its midnight counts before it, for any time of observation', async () => {
    const { rig, jobs } = await baselined(2);
    const [evening = 0, night = 0] = jobs;
    rig.upstream.dispatch(evening, { dateOut: '2026-03-02T23:50:00-07:00' });
    rig.upstream.dispatch(night, { dateOut: '2026-03-03T07:10:00Z' });
    rig.pass(30 * 3600);
    await rig.poll();
    expect(await readTotals(rig)).toEqual({ dispatched: 1, onTime: 1 });
    expect(await readTotals(rig, '2026-03-03')).toEqual({ dispatched: 1, onTime: 1 });
  });

  test('is that of the observation if the upstream date is implausible', async () => {
    const { rig, jobs } = await baselined(2);
    const [old = 0, future = 0] = jobs;
    rig.upstream.dispatch(old, { dateOut: '2019-03-02T09:00:00-07:00' });
    rig.upstream.dispatch(future, { dateOut: '2031-03-02T09:00:00-07:00' });
    await rig.poll();
    expect(await readTotals(rig)).toMatchObject({ dispatched: 2 });
  });

  test('subtracts a dispatch that is revoked later; a new one counts on its own day', async () => {
    const { rig, jobs } = await baselined(1);
    const [job = 0] = jobs;
    rig.upstream.dispatch(job);
    await rig.poll();
    expect(await readTotals(rig)).toEqual({ dispatched: 1, onTime: 1 });
    rig.pass(3 * 86_400);
    rig.upstream.clearDateOut(job);
    await rig.poll();
    expect((await rig.fresh()).map(({ type }) => type)).toContain('job.dispatch_revoked');
    expect((await rollups(rig, TODAY, '2026-03-09')).total.dispatched).toBe(0);
    rig.upstream.dispatch(job);
    await rig.poll();
    expect(await readTotals(rig)).toEqual({});
    expect(await readTotals(rig, '2026-03-05')).toMatchObject({ dispatched: 1 });
  });

  test('assigns a corrected dispatch to its new day, and judges lateness by that date', async () => {
    const { rig, jobs } = await baselined(1);
    const [job = 0] = jobs;
    rig.upstream.edit(job, { dateDue: '2026-03-02T00:00:00-07:00' });
    rig.upstream.dispatch(job);
    await rig.poll();
    expect(await readTotals(rig)).toEqual({ dispatched: 1, onTime: 1 });
    rig.pass(2 * 86_400);
    rig.upstream.correctDateOut(job, '2026-03-03T10:00:00-07:00');
    await rig.poll();
    expect(await readTotals(rig)).toEqual({});
    expect(await readTotals(rig, '2026-03-03')).toEqual({ dispatched: 1, late: 1 });
  });

  test('ignores dispatches before tracking began, and their later changes', async () => {
    const rig = await createRig();
    const job = rig.upstream.createJob();
    rig.upstream.dispatch(job);
    const other = rig.upstream.createJob();
    await rig.poll();
    rig.upstream.dispatch(other);
    await rig.poll();
    rig.upstream.clearDateOut(job);
    await rig.poll();
    expect(await readTotals(rig)).toEqual({ dispatched: 1, onTime: 1 });
  });

  test('is counted once, whichever of its writes a poll crashes at', async () => {
    const story = async (dies?: { at: number; when: 'before' | 'after' }) => {
      let counting = false;
      let written = 0;
      const die = (when: 'before' | 'after') => (call: { call: string }) => {
        if (!counting || (call.call !== 'write' && call.call !== 'transact')) return;
        if (when === 'before') written += 1;
        if (dies?.when === when && written === dies.at) throw new Error('killed');
      };
      const table = watchedTable(createMemoryTable(), { before: die('before'), after: die('after') });
      const { rig, jobs } = await baselined(5, { table, settings: { fetchesPerPoll: 100 } });
      counting = true;
      const poll = () => rig.poll().catch(() => undefined);
      for (const [n, job] of jobs.entries()) {
        rig.upstream.dispatch(job);
        if (n % 2 === 1) await poll();
      }
      rig.upstream.clearDateOut(jobs[0] ?? 0);
      rig.upstream.createJob();
      for (let n = 0; n < 3; n += 1) await poll();
      const { changedAt, observedThrough, ...open } = await openJobs(rig);
      return { figures: await readTotals(rig), open, written };
    };
    const whole = await story();
    expect(whole.figures).toEqual({ created: 1, dispatched: 4, onTime: 4 });
    for (let at = 1; at <= whole.written; at += 1) {
      for (const when of ['before', 'after'] as const) {
        const cut = await story({ at, when });
        expect(cut.figures, `${when} write ${at}`).toEqual(whole.figures);
        expect(cut.open, `${when} write ${at}`).toEqual(whole.open);
      }
    }
  });

  test('is counted once when polls overlap: the late one drops its observations and counts', async () => {
    for (const nth of [1, 2, 3, 4, 5, 6, 7, 8]) {
      const inner = createMemoryTable();
      const { rig, jobs } = await baselined(2, { table: inner });
      const { promise: released, resolve: release } = Promise.withResolvers<void>();
      const { promise: reached, resolve: reach } = Promise.withResolvers<void>();
      const held = watchedTable(inner, {
        async before() {
          if (held.calls.length !== nth) return;
          reach();
          await released;
        },
      });
      rig.upstream.dispatch(jobs[0] ?? 0);
      rig.pass(60);
      const late = pollAccount(rig.depsOver(held), rig.ref, rig.now() + 600_000);
      await Promise.race([reached, late]);
      rig.upstream.dispatch(jobs[1] ?? 0);
      await rig.poll();
      release();
      await late;
      await rig.poll();
      expect(await readTotals(rig), `held at call ${nth}`).toEqual({ dispatched: 2, onTime: 2 });
      const known = { events: await rig.fresh(), snapshots: await rig.snapshots() };
      const time = { from: START, to: rig.now() };
      expect(await rollupProblems(inner, rig.ref, known, time)).toEqual([]);
    }
  });

  test('is written with its events: no transaction exceeds the limit, for any number of days', async () => {
    const inner = createMemoryTable();
    const sizes: number[] = [];
    const table: Table = {
      ...inner,
      transact(writes, token) {
        sizes.push(writes.length);
        return inner.transact(writes, token);
      },
    };
    const { rig, jobs } = await baselined(150, { table });
    rig.pass(160 * 86_400);
    await rig.poll();
    for (const [n, job] of jobs.entries()) rig.upstream.dispatch(job, { dateOut: START + n * DAY });
    sizes.length = 0;
    for (let n = 0; n < 4; n += 1) await rig.poll();
    expect(Math.max(...sizes)).toBeLessThanOrEqual(MAX_TRANSACTION_ACTIONS);
    expect(Math.max(...sizes)).toBeGreaterThan(80);
    const days = await rollups(rig, TODAY, '2026-05-31');
    expect(days.days.every(({ dispatched }) => dispatched === 1)).toBe(true);
    expect(days.days).toHaveLength(91);
  });

  test('expires after 400 days', async () => {
    const { rig, jobs } = await baselined(1);
    rig.upstream.dispatch(jobs[0] ?? 0);
    await rig.poll();
    const item = await rig.table.get(keys.rollup(rig.ref, TODAY));
    expect(item?.ttl).toBe((Date.parse(TODAY) + 400 * DAY) / 1000);
  });
});

describe('a dispatch is late', () => {
  test.each([
    ['2026-03-02T16:00:00-07:00', '2026-03-02T17:00:00-07:00', null, false],
    ['2026-03-02T17:00:01-07:00', '2026-03-02T17:00:00-07:00', null, true],
    ['2026-03-02T17:00:00-07:00', '2026-03-02T17:00:00-07:00', null, false],
    // Midnight is the end of the day.
    ['2026-03-02T23:59:00-07:00', '2026-03-02T00:00:00-07:00', null, false],
    ['2026-03-03T00:01:00-07:00', '2026-03-02T00:00:00-07:00', null, true],
    // Without a time of day it was some time of it.
    ['2026-03-02', '2026-03-02', null, false],
    ['2026-03-03', '2026-03-02', null, true],
    ['2026-03-02', '2026-03-02T17:00:00', 'America/Denver', false],
    // Two local times of the same location.
    ['2026-03-02T18:00:00', '2026-03-02T17:00:00', null, true],
    ['2026-03-02T16:00:00', '2026-03-02T17:00:00', null, false],
    // One of them in an unknown zone: only if it is certain.
    ['2026-03-03T01:00:00Z', '2026-03-02T17:00:00', null, false],
    ['2026-03-03T01:00:00Z', '2026-03-02T17:00:00', 'America/Denver', true],
    ['2026-03-02T18:00:00Z', 'soon', null, null],
    ['0001-01-01', '2026-03-02', null, null],
  ])('%s, due %s, zone %s: %s', (dateOut, dateDue, zone, late) => {
    expect(isAfterDue(dateOut, dateDue, zone)).toBe(late);
  });
});

test.each([
  ['2026-03-02T23:30:00-07:00', 'America/Denver', '2026-03-02'],
  ['2026-03-03T06:30:00Z', 'America/Denver', '2026-03-02'],
  ['2026-03-03T06:30:00Z', null, '2026-03-03'],
  ['2026-03-03T06:30:00', 'America/Denver', '2026-03-03'],
  // Midnight means the day.
  ['2026-03-03T00:00:00Z', 'America/Denver', '2026-03-03'],
  ['2026-03-03', 'Pacific/Auckland', '2026-03-03'],
  ['2026-03-02T23:30:00-07:00', 'Nowhere/Land', '2026-03-03'],
  ['2026-03-02T23:30:00-07:00', 'constructor', '2026-03-03'],
  ['0001-01-01', null, undefined],
])('the day of %s in %s is %s', (text, zone, day) => {
  expect(dayNamed(text, zone)).toBe(day);
});

test('other events count nothing', () => {
  const job = { dateDue: null } as never;
  const event = { type: 'job.updated', jobNumber: 1, time: START, data: { job, changes: {} } } as never;
  expect(countEvents([event], null, undefined)).toEqual({ counts: [], counted: undefined });
});

describe('reading roll-ups', () => {
  test('of an account by key, and of a region with a Query a day, in total and by account', async () => {
    const inner = createMemoryTable();
    const { rig, jobs } = await baselined(2, { table: inner });
    rig.upstream.dispatch(jobs[0] ?? 0);
    await rig.poll();
    const other: AccountRef = { region: 'us', account: 'zeta' };
    const foreign: AccountRef = { region: 'nz', account: 'acme' };
    const figures = { created: 2, dispatched: 0, onTime: 0, late: 0, overdue: 0, cancelled: 0, closed: 0 };
    await inner.putMany([
      { ...keys.rollup(other, TODAY), ...figures },
      { ...keys.rollup(foreign, TODAY), ...figures },
    ]);
    const table = watchedTable(inner);
    const region = RegionRollups.parse(await readRegionRollups({ table }, 'us', '2026-03-01', '2026-03-03'));
    expect(table.calls.map(({ call }) => call)).toEqual(['query', 'query', 'query']);
    expect(region.days.map(({ day, created, dispatched }) => [day, created, dispatched])).toEqual([
      ['2026-03-01', 0, 0],
      ['2026-03-02', 2, 1],
      ['2026-03-03', 0, 0],
    ]);
    expect(region.total).toMatchObject({ created: 2, dispatched: 1, onTime: 1 });
    expect(region.accounts.map(({ account, created, dispatched }) => [account, created, dispatched])).toEqual(
      [
        ['acme', 0, 1],
        ['zeta', 2, 0],
      ],
    );
    table.calls.length = 0;
    expect((await rollups({ table, ref: rig.ref }, '2026-03-01', '2026-05-31')).days).toHaveLength(92);
    expect(table.calls.map(({ call }) => call)).toEqual(['getMany']);
  });

  test('only for days in order, and at most a quarter, or a month of a region', async () => {
    const table = createMemoryTable();
    const ref = { region: 'us', account: 'acme' };
    for (const [from, to] of [
      ['2026-03-02', '2026-03-01'],
      ['2026-02-30', '2026-03-01'],
      ['2026-03-01', '2026-06-01'],
      ['yesterday', 'today'],
    ] as const) {
      expect(dayRange(from, to, MAX_ROLLUP_DAYS.account)).toBeUndefined();
      await expect(readRollups({ table }, ref, from, to)).rejects.toThrow(RangeError);
    }
    await expect(readRegionRollups({ table }, 'us', '2026-03-01', '2026-04-01')).rejects.toThrow(RangeError);
    expect(dayRange('2026-03-01', '2026-05-31', 92)).toHaveLength(92);
    expect(dayRange('2026-03-01', '2026-03-01', 1)).toEqual(['2026-03-01']);
  });
});

test('all roll-ups of an account can be listed for deletion, from the oldest to the next day', async () => {
  const { rig, jobs } = await baselined(3);
  rig.pass(450 * 86_400);
  await rig.poll();
  for (const [n, days] of [-1, 398, 399].entries()) {
    rig.upstream.dispatch(jobs[n] ?? 0, { dateOut: rig.now() - days * DAY });
  }
  await rig.poll();
  const days = new Set((await rig.snapshots()).map(({ counted }) => counted?.day));
  expect(days.size).toBe(3);
  const kept = await rig.table.getMany(figureKeys(rig.ref, rig.now()));
  expect(kept.filter(({ pk }) => pk.startsWith('ROLLUPS#')).length).toBeGreaterThanOrEqual(3);
  expect(kept.filter(({ pk }) => pk.startsWith('OPEN#'))).toHaveLength(1);
});

describe('the open jobs', () => {
  test('are counted by status and by due day from the baseline on, as listed', async () => {
    const rig = await createRig();
    expect(await readOpenJobs(rig, rig.ref)).toBeUndefined();
    const { upstream } = rig;
    for (const dateDue of ['2026-03-04T00:00:00-07:00', '2026-03-04T17:00:00-07:00', '2026-03-05', null]) {
      upstream.createJob({ status: 'Scheduled', dateDue });
    }
    const out = upstream.createJob({ status: 'Ready to ship', dateDue: '2026-03-01T00:00:00-07:00' });
    upstream.dispatch(out);
    upstream.createJob({ status: null, dateDue: '2026-02-27T00:00:00-07:00' });
    await rig.poll();
    expect(await openJobs(rig)).toEqual({
      ...{ region: 'us', account: 'acme', jobs: 6, dispatched: 1, late: 1, otherStatuses: 0 },
      observedThrough: '2026-03-02T08:01:00.000Z',
      changedAt: '2026-03-02T08:01:00.000Z',
      byStatus: [
        { status: 'Scheduled', jobs: 4 },
        { status: 'Ready to ship', jobs: 1 },
        { status: null, jobs: 1 },
      ],
      byDueDay: [
        { day: '2026-02-27', jobs: 1, late: 1 },
        { day: '2026-03-04', jobs: 2, late: 0 },
        { day: '2026-03-05', jobs: 1, late: 0 },
      ],
      ...{ dueEarlier: 0, dueLater: 0, withoutDueDate: 1 },
    });
  });

  test('become late with the clock, to the millisecond, without a write', async () => {
    const table = watchedTable(createMemoryTable());
    const rig = await createRig({ table });
    rig.upstream.createJob({ dateDue: '2026-03-04T17:00:00-07:00' });
    await rig.poll();
    await rig.poll();
    const due = Date.parse('2026-03-04T17:00:00-07:00');
    expect((await readOpenJobs({ table, now: () => due }, rig.ref))?.late).toBe(0);
    expect((await readOpenJobs({ table, now: () => due + 1 }, rig.ref))?.late).toBe(1);
    rig.pass((due - rig.now()) / 1000 + 60);
    // job.overdue is emitted once; then nothing changes.
    for (let n = 0; n < 2; n += 1) await rig.poll();
    const before = await table.get(keys.openJobs(rig.ref));
    table.calls.length = 0;
    await rig.poll();
    expect(table.calls.filter(({ call }) => call === 'write' || call === 'transact')).toEqual([
      { call: 'write', of: ['STATUS'] },
    ]);
    expect(await table.get(keys.openJobs(rig.ref))).toEqual(before);
    expect(await openJobs(rig)).toMatchObject({ late: 1, changedAt: '2026-03-02T08:01:00.000Z' });
  });

  test('change with the list, in the transaction of `observedThrough`', async () => {
    const transactions: Write[][] = [];
    const inner = createMemoryTable();
    const table: Table = {
      ...inner,
      transact(writes, token) {
        transactions.push([...writes]);
        return inner.transact(writes, token);
      },
    };
    const { rig, jobs } = await baselined(3, { table });
    transactions.length = 0;
    rig.upstream.setStatus(jobs[0] ?? 0, 'On hold');
    await rig.poll();
    const status = await rig.status();
    const [last = []] = transactions.slice(-1);
    expect(last.map((write) => Object.keys(write)[0])).toEqual(['update', 'put']);
    expect(last[0]).toMatchObject({ update: keys.status(rig.ref), set: { lastPollAt: status.lastPollAt } });
    expect((await openJobs(rig)).byStatus).toEqual([
      { status: 'Scheduled', jobs: 2 },
      { status: 'On hold', jobs: 1 },
    ]);
  });

  test('are unchanged after an incomplete crawl', async () => {
    const { rig } = await baselined(101);
    const before = await openJobs(rig);
    rig.upstream.createJob();
    rig.fault({
      match: { operation: 'activeJobs', query: { page: '2' } },
      fault: { kind: 'status', status: 503 },
    });
    expect(await rig.poll()).toMatchObject({ outcome: 'partial', pages: 1 });
    expect(await openJobs(rig)).toEqual(before);
  });

  test('of a region are read with one Query, in total and by account', async () => {
    const inner = createMemoryTable();
    await baselined(3, { table: inner });
    const view = { status: 'Proof', dateDue: '2026-03-01', dateOut: null } as ListView;
    const kind = new OpenKinds().of(view);
    const response = { requestedAt: 0, respondedAt: 0, view: 'list' as const };
    const observations = new Map([1, 2].map((n) => [n, { kind, response }]));
    const other = countOpenJobs({ observations, startedAt: START });
    const zeta = { region: 'us', account: 'zeta' };
    await inner.transact([openJobsWrite(zeta, other, { changedAt: START }).write], 'zeta');
    const table = watchedTable(inner);
    // The day has ended in every time zone.
    const now = () => Date.parse('2026-03-02T12:00:00.001Z');
    const region = z.encode(RegionOpenJobs, await readRegionOpenJobs({ table, now }, 'us'));
    expect(table.calls).toEqual([
      { call: 'query', of: ['OPEN'] },
      { call: 'query', of: ['ACCOUNTS'] },
    ]);
    expect(region).toMatchObject({ region: 'us', jobs: 5, late: 2 });
    expect(region.byStatus).toEqual([
      { status: 'Scheduled', jobs: 3 },
      { status: 'Proof', jobs: 2 },
    ]);
    expect(region.accounts.map(({ account, jobs, late }) => [account, jobs, late])).toEqual([
      ['acme', 3, 0],
      ['zeta', 2, 2],
    ]);
    expect(await readOpenJobs({ table: inner, now }, zeta)).toMatchObject({
      byDueDay: [{ day: '2026-03-01', jobs: 2, late: 2 }],
      observedThrough: null,
    });
    const lastMoment = () => Date.parse('2026-03-02T12:00:00Z');
    expect((await readRegionOpenJobs({ table, now: lastMoment }, 'us')).late).toBe(0);
  });

  test('of a day with many due times count as late exactly, at each crawl', () => {
    const kinds = new OpenKinds();
    const response = { requestedAt: 0, respondedAt: 0, view: 'list' as const };
    const due = (n: number) => START + (n - 20) * 420_000;
    const observations = new Map(
      Array.from({ length: 60 }, (_, n) => {
        const view = {
          status: 'Scheduled',
          dateDue: new Date(due(n)).toISOString(),
          dateOut: null,
        } as ListView;
        return [n, { print: n, kind: kinds.of(view), response }] as const;
      }),
    );
    for (let startedAt = START - 1; startedAt < START + 3 * 3_600_000; startedAt += 420_000) {
      const { dueDays } = countOpenJobs({ observations, startedAt });
      // Now, and until the eighth of the next ones.
      for (const soon of [startedAt, startedAt + 8 * 420_000 - 1]) {
        const said = dueDays.flatMap(([, all]) => all).reduce((sum, [at, n]) => sum + (at < soon ? n : 0), 0);
        const truly = [...observations.keys()].filter((n) => due(n) < soon).length;
        expect(said, new Date(soon).toISOString()).toBe(truly);
      }
    }
  });

  test('are a small item for any 50,000 jobs; the sums are complete, and no job is late too early', () => {
    const kinds = new OpenKinds();
    const response = { requestedAt: 0, respondedAt: 0, view: 'list' as const };
    const due = (n: number) => START - 200 * DAY + n * 700_001;
    const observations = new Map(
      Array.from({ length: 50_000 }, (_, n) => {
        const dateDue = n % 7 === 0 ? null : new Date(due(n)).toISOString();
        const status = n % 11 === 0 ? 'x'.repeat(500) : `Status ${n % 300}`;
        const view = { status, dateDue, dateOut: n % 13 === 0 ? '2026-03-01' : null } as ListView;
        return [n, { print: n, kind: kinds.of(view), response }] as const;
      }),
    );
    const figures = countOpenJobs({ observations, startedAt: START });
    const { write } = openJobsWrite({ region: 'us', account: 'acme' }, figures, { changedAt: START });
    expect('put' in write && estimateSize(write.put)).toBeLessThan(100_000);
    const { jobs, dispatched, dueEarlier, dueLater, withoutDueDate, otherStatuses, statuses } = figures;
    const dated = figures.dueDays.flatMap(([, all]) => all.map(([, n]) => n)).reduce((a, b) => a + b, 0);
    expect(jobs).toBe(50_000);
    expect(dispatched + dueEarlier + dueLater + withoutDueDate + dated).toBe(jobs);
    expect(statuses.reduce((sum, [, n]) => sum + n, otherStatuses)).toBe(jobs);
    expect(statuses).toHaveLength(100);
    expect(figures.dueDays).toHaveLength(120);
    expect(dueEarlier).toBeGreaterThan(0);
    expect(dueLater).toBeGreaterThan(0);
    // At any time at most the late ones are counted as late.
    for (const now of [START, START + DAY + 1]) {
      const late = figures.dueDays
        .flatMap(([, all]) => all)
        .reduce((sum, [at, n]) => sum + (at < now ? n : 0), dueEarlier);
      const truly = [...observations.keys()].filter(
        (n) => n % 7 !== 0 && n % 13 !== 0 && due(n) < now,
      ).length;
      expect(late).toBeLessThanOrEqual(truly);
      expect(truly - late).toBeLessThan(10);
    }
  });
});
