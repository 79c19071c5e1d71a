/** Usual durations, risk flags and their results, over a simulated history (rule 22). */
import { describe, expect, test } from 'vitest';
import { findCandidates } from '../../shared/api/attention/sources.ts';
import { readStatusDurations } from '../../shared/api/job-timing.ts';
import { listJobs, readJob } from '../../shared/api/jobs.ts';
import { OPERATOR } from '../../shared/api/keys.ts';
import { createMemoryTable } from '../../shared/storage/sqlite-table.ts';
import { pollAccount } from '../../shared/tracking/poll.ts';
import { sized } from '../support/runs.ts';
import { createRig, type Rig, watchedTable } from '../support/tracker.ts';

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
/** Number of jobs with a known history. */
const KNOWN_JOBS = 12;

/** Polls every hour until a time has passed (hours). */
async function pass(rig: Rig, hours: number): Promise<void> {
  for (let n = 0; n < hours; n += 1) await rig.poll();
}

/** An account in which jobs are a day in "New", then two days in "In production", and are then dispatched. */
async function withHistory(options: Parameters<typeof createRig>[0] = {}): Promise<Rig> {
  const rig = await createRig({ pollIntervalSeconds: 3600, ...options });
  await rig.poll();
  const jobs = Array.from({ length: KNOWN_JOBS }, () => create(rig, 5 * DAY));
  await pass(rig, 24);
  for (const job of jobs) rig.upstream.setStatus(job, 'In production');
  await pass(rig, 48);
  for (const job of jobs) rig.upstream.dispatch(job);
  await pass(rig, 1);
  return rig;
}

const create = (rig: Rig, dueInMs: number, status = 'New') =>
  rig.upstream.createJob({ status, dateDue: rig.now() + dueInMs });

async function read(rig: Rig, jobNumber: number) {
  const found = await readJob(rig, rig.ref, jobNumber);
  if (!found) throw new Error('There is no such job.');
  return found.job;
}

describe('the history of an account', () => {
  test('gives the usual time in each status, and from there until dispatch', async () => {
    const rig = await withHistory();
    const { statuses, flags } = await readStatusDurations(rig, rig.ref);
    expect(statuses.map(({ status }) => status)).toEqual(['New', 'In production']);
    const [created, production] = statuses;
    expect(created).toMatchObject({ stays: KNOWN_JOBS, dispatches: KNOWN_JOBS });
    expect(production).toMatchObject({ stays: KNOWN_JOBS, dispatches: KNOWN_JOBS });
    // The poll interval, and the width of a bucket.
    const isAbout = (hours: number | undefined, usual: number) => {
      expect(hours).toBeGreaterThanOrEqual(usual);
      expect(hours).toBeLessThan(1.2 * (usual + 2));
    };
    isAbout(created?.stay?.p50Hours, 24);
    isAbout(created?.remaining?.p90Hours, 72);
    isAbout(production?.stay?.p90Hours, 48);
    isAbout(production?.remaining?.p50Hours, 48);
    expect(flags).toMatchObject({ flagged: 0, flaggedLate: 0, late: 0, lateFlaggedDayBefore: 0 });
  }, 60_000);

  test('does not count stays that began or ended in a long gap between polls', async () => {
    const rig = await createRig({ pollIntervalSeconds: 1800 });
    await rig.poll();
    const jobs = Array.from({ length: KNOWN_JOBS }, () => create(rig, 5 * DAY));
    await rig.poll();
    rig.pass(20 * 3600);
    for (const job of jobs) rig.upstream.setStatus(job, 'In production');
    rig.pass(20 * 3600);
    await rig.poll();
    await rig.poll();
    for (const job of jobs) rig.upstream.dispatch(job);
    await rig.poll();
    const { statuses } = await readStatusDurations(rig, rig.ref);
    // Only the time from the creation to the dispatch is known.
    expect(statuses).toMatchObject([{ status: 'New', stays: 0, dispatches: KNOWN_JOBS, stay: null }]);
  });
});

/** Returns the kinds and jobs of the attention queue. */
async function readQueue(rig: Rig) {
  const deps = { table: rig.table, history: undefined, now: rig.now };
  const { candidates } = await findCandidates(deps, rig.ref.region, OPERATOR);
  return candidates.map(({ kind, subject }) => [kind, Number(subject.id)]);
}

describe('a job', () => {
  test('that takes long in a status is flagged a day before it is late, without any read of the API', async () => {
    const rig = await withHistory();
    const slow = create(rig, 5 * DAY);
    const normal = create(rig, 5 * DAY);
    await pass(rig, 24);
    rig.upstream.setStatus(slow, 'In production');
    rig.upstream.setStatus(normal, 'In production');
    await pass(rig, 12);
    for (const job of [slow, normal]) {
      expect(await read(rig, job)).toMatchObject({
        risk: 'on-track',
        inStatus: { usual: { jobs: KNOWN_JOBS } },
        forecast: { unknown: null, flaggedAt: null, remaining: { jobs: KNOWN_JOBS, longer: 0 } },
      });
    }
    await pass(rig, 36);
    rig.upstream.dispatch(normal);
    await pass(rig, 24);
    const flagged = await read(rig, slow);
    expect(flagged).toMatchObject({ risk: 'at-risk', late: false, hoursLate: null });
    expect(flagged.forecast?.flaggedAt).toBeLessThan((flagged.dueAt ?? 0) - DAY);
    expect(await read(rig, normal)).toMatchObject({ risk: null, forecast: null, inStatus: null });
    const atRisk = await listJobs(rig, rig.ref, { filter: { risk: 'at-risk' }, limit: 10 });
    expect(atRisk?.kind === 'jobs' && atRisk.jobs.map(({ jobNumber }) => jobNumber)).toEqual([slow]);
    expect(await readQueue(rig)).toEqual([['job_at_risk', slow]]);

    await pass(rig, 26);
    expect(await readQueue(rig)).toEqual([['job_late', slow]]);
    const late = await read(rig, slow);
    expect(late).toMatchObject({ risk: 'late', late: true });
    expect(late.hoursLate).toBeGreaterThan(0);
    expect(late.hoursLate).toBeLessThan(4);
    const lateJobs = await listJobs(rig, rig.ref, { filter: { risk: 'late' }, limit: 10 });
    expect(lateJobs?.kind === 'jobs' && lateJobs.jobs.map(({ jobNumber }) => jobNumber)).toEqual([slow]);
    rig.upstream.dispatch(slow);
    await pass(rig, 1);
    expect(await readQueue(rig)).toEqual([]);
    expect(await read(rig, slow)).toMatchObject({ late: false, risk: null });
    expect((await read(rig, slow)).hoursLate).toBeGreaterThan(0);
    expect((await readStatusDurations(rig, rig.ref)).flags).toMatchObject({
      ...{ flagged: 1, flaggedLate: 1, late: 1, lateFlaggedDayBefore: 1 },
    });
  }, 60_000);

  test('is of unknown risk after the baseline, and with too few jobs in its status', async () => {
    const rig = await createRig();
    const old = create(rig, DAY);
    await rig.poll();
    const young = create(rig, DAY);
    await rig.poll();
    await rig.poll();
    expect(await read(rig, old)).toMatchObject({
      ...{ risk: 'unknown', forecast: { unknown: 'entry-not-observed' }, inStatus: { sinceEarliest: null } },
    });
    expect(await read(rig, young)).toMatchObject({
      ...{ risk: 'unknown', forecast: { unknown: 'too-few-jobs', remaining: null } },
    });
    expect((await read(rig, young)).inStatus?.sinceEarliest).not.toBeNull();
  });

  test('has blocking lines: those in the status that is furthest from dispatch', async () => {
    const rig = await withHistory();
    const job = rig.upstream.createJob({
      ...{ status: 'New', dateDue: rig.now() + 9 * DAY, lines: [{}, {}, {}] },
    });
    await pass(rig, 1);
    expect(await read(rig, job)).toMatchObject({ blockingLine: null });
    rig.upstream.setStatus(job, 'In production');
    for (const [line, status] of ['In production', 'New', 'In production'].entries()) {
      rig.upstream.setLineStatus(job, line, status);
    }
    const second = rig.upstream.job(job)?.lines[1]?.jobLineId;
    await pass(rig, 1);
    expect(await read(rig, job)).toMatchObject({
      blockingLine: { status: 'New', jobLineIds: [second], lines: 1 },
    });
  }, 60_000);
});

/** Jobs that are flagged early and late, rightly and wrongly, and one that is late without a flag. */
async function playResults(rig: Rig, poll = () => rig.poll() as Promise<unknown>): Promise<void> {
  const go = async (hours: number) => {
    for (let n = 0; n < hours; n += 1) await poll();
  };
  const [early, hurried, wrong, good] = [1, 2, 3, 4].map(() => create(rig, 5 * DAY));
  await go(20);
  rig.upstream.setStatus(good ?? 0, 'In production');
  await go(11);
  // Due in an hour instead of in three days: it is flagged then, and late soon after.
  rig.upstream.edit(hurried ?? 0, { dateDue: rig.now() + 2 * HOUR });
  await go(20);
  rig.upstream.dispatch(good ?? 0);
  await go(40);
  rig.upstream.dispatch(wrong ?? 0);
  await go(32);
  for (const job of [early, hurried]) rig.upstream.dispatch(job ?? 0);
  await go(2);
}

/** Of the jobs above: three are flagged, two of them become late, one of these flagged a day before. */
const RESULTS = { flagged: 3, flaggedLate: 2, late: 2, lateFlaggedDayBefore: 1 };

describe('the results of the flags', () => {
  test('count every flagged job and every late job once', async () => {
    const rig = await withHistory();
    await playResults(rig);
    const { flags } = await readStatusDurations(rig, rig.ref);
    expect(flags).toMatchObject(RESULTS);
  }, 60_000);

  test('and the durations are the same, whichever of its writes a poll crashes at', async () => {
    const story = async (dies?: { at: number; when: 'before' | 'after' }) => {
      let counting = false;
      let written = 0;
      const die = (when: 'before' | 'after') => (call: { call: string; of: readonly string[] }) => {
        if (!counting || !call.of.includes('DURATIONS') || call.call === 'get') return;
        if (when === 'before') written += 1;
        if (dies?.when === when && written === dies.at) throw new Error('killed');
      };
      const table = watchedTable(createMemoryTable(), { before: die('before'), after: die('after') });
      const rig = await withHistory({ table });
      counting = true;
      await playResults(rig, () => rig.poll().catch(() => undefined));
      return { ...(await readStatusDurations(rig, rig.ref)), written };
    };
    const whole = await story();
    expect(whole.flags).toMatchObject(RESULTS);
    expect(whole.written).toBeGreaterThan(4);
    for (let at = 1; at <= whole.written; at += sized(4, 1)) {
      for (const when of ['before', 'after'] as const) {
        const { flags, statuses } = await story({ at, when });
        expect(flags, `${when} write ${at}`).toEqual(whole.flags);
        const counts = (all: typeof statuses) =>
          all.map(({ status, stays, dispatches }) => ({ status, stays, dispatches }));
        expect(counts(statuses), `${when} write ${at}`).toEqual(counts(whole.statuses));
      }
    }
  }, 240_000);

  test('count once if two polls overlap', async () => {
    const inner = createMemoryTable();
    const rig = await withHistory({ table: inner });
    const before = await readStatusDurations(rig, rig.ref);
    const job = create(rig, 2 * DAY);
    await pass(rig, 24);
    rig.upstream.dispatch(job);
    const { promise: released, resolve: release } = Promise.withResolvers<void>();
    const { promise: reached, resolve: reach } = Promise.withResolvers<void>();
    const held = watchedTable(inner, {
      async before({ call, of }) {
        if (call === 'get' || !of.includes('DURATIONS')) return;
        reach();
        await released;
      },
    });
    rig.pass(3600);
    const late = pollAccount(rig.depsOver(held), rig.ref, rig.now() + 600_000);
    await Promise.race([reached, late]);
    await rig.poll();
    release();
    await late;
    const count = ({ statuses }: typeof before) =>
      statuses.find(({ status }) => status === 'New')?.dispatches;
    expect(count(await readStatusDurations(rig, rig.ref))).toBe((count(before) ?? 0) + 1);
  }, 60_000);
});

describe('the table', () => {
  test('is read and written for one more item in a poll with such a change, and for none in others', async () => {
    const table = watchedTable(createMemoryTable());
    const rig = await withHistory({ table });
    const calls = async () => {
      table.calls.length = 0;
      await rig.poll();
      return table.calls.filter(({ of }) => of.includes('DURATIONS')).map(({ call }) => call);
    };
    expect(await calls()).toEqual([]);
    const job = create(rig, 9 * DAY);
    await pass(rig, 20);
    rig.upstream.setStatus(job, 'In production');
    expect(await calls()).toEqual(['get', 'transact']);
    rig.upstream.edit(job, { description: 'another' });
    expect(await calls()).toEqual([]);
    await pass(rig, 20);
    rig.upstream.dispatch(job);
    expect(await calls()).toEqual(['get', 'transact']);
    expect(await calls()).toEqual([]);
  }, 60_000);
});
