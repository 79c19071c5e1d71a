/** Late dispatches, jobs that are due soon, and stalled jobs: dates without time or offset, time zones, weekends, restarts. */
import { describe, expect, it } from 'vitest';
import { pollAccount } from '../../shared/tracking/poll.ts';
import { createRig, type Rig } from '../support/tracker.ts';

const HOUR = 3600;
const DAY = 24 * HOUR;
const DENVER = { name: 'Denver', timezone: 'America/Denver' };

type JobInput = NonNullable<Parameters<Rig['upstream']['createJob']>[0]>;

/** A rig whose account has a baseline of some jobs. */
async function baselined(events: Parameters<Rig['configure']>[0], ...inputs: JobInput[]) {
  const rig = await createRig({ events });
  const jobs = inputs.map((input) => rig.upstream.createJob({ location: DENVER, ...input }));
  rig.upstream.createJob({ dateDue: null, location: DENVER });
  await rig.poll();
  await rig.fresh();
  return Object.assign(rig, { jobs });
}

/** Creates a job after the baseline. */
async function create(rig: Rig, input: JobInput): Promise<number> {
  const job = rig.upstream.createJob({ location: DENVER, ...input });
  await rig.poll();
  await rig.fresh();
  return job;
}

/** Moves the clock to a time, and polls. Returns the types of the events. */
async function pollAt(rig: Rig, time: string, polls = 1): Promise<string[]> {
  const { pollIntervalSeconds = 60 } = rig.ref as { pollIntervalSeconds?: number };
  rig.pass((Date.parse(time) - rig.now()) / 1000 - pollIntervalSeconds);
  return rig.pollTypes(polls);
}

describe('Late dispatches', () => {
  it.each([
    ['2026-03-03', '2026-03-03T23:59:00-07:00', DENVER, { late: false, lateBySeconds: null }],
    ['2026-03-03', '2026-03-04T00:10:00-07:00', DENVER, { late: true, lateBySeconds: 600 }],
    ['2026-03-03T17:00:00', '2026-03-03T17:00:30-07:00', DENVER, { late: true, lateBySeconds: 30 }],
    ['2026-03-03', '2026-03-03', DENVER, { late: false, lateBySeconds: null }],
    ['2026-03-03', '2026-03-05', DENVER, { late: true, lateBySeconds: 86_400 }],
    ['2026-03-03T17:00:00', '2026-03-03', DENVER, { late: null, lateBySeconds: null }],
    ['2026-03-03', '2026-03-04T00:10:00Z', null, { late: null, lateBySeconds: null }],
    ['2026-03-03', '2026-03-05T13:00:00Z', null, { late: true, lateBySeconds: 90_000 }],
    [null, '2026-03-03', DENVER, { late: null, lateBySeconds: null }],
  ])('due %s, dispatched %s', async (dateDue, dateOut, location, lateness) => {
    const rig = await baselined({});
    const job = await create(rig, { dateDue, location });
    rig.upstream.dispatch(job, { dateOut });
    await rig.poll();
    const dispatched = (await rig.fresh()).find(({ type }) => type === 'job.dispatched');
    expect(dispatched?.data).toMatchObject(lateness);
  });
});

describe('job.due_soon', () => {
  const SOON = { dueSoonHours: 24 };

  it('is emitted once per due date, however it is spelled, and again for a new one', async () => {
    const rig = await baselined(SOON);
    const job = await create(rig, { dateDue: '2026-03-05T17:00:00' });
    expect(await pollAt(rig, '2026-03-04T23:59:00Z')).toEqual([]);
    rig.pass(120);
    await rig.poll();
    const [event, ...others] = await rig.fresh();
    expect(others).toEqual([]);
    expect(event).toMatchObject({
      type: 'job.due_soon',
      data: { dueAt: '2026-03-06T00:00:00.000Z', zone: 'America/Denver' },
    });
    expect(event?.data).toMatchObject({ observed: { since: '2026-03-05T00:00:00.000Z' } });
    rig.upstream.edit(job, { dateDue: '2026-03-05T17:00:00-07:00' });
    expect(await rig.pollTypes(2)).toEqual([]);
    rig.upstream.edit(job, { dateDue: '2026-03-07' });
    expect(await rig.pollTypes(2)).toEqual([`job.due_date_changed ${job}`]);
    // A bare date ends with its day.
    expect(await pollAt(rig, '2026-03-07T06:59:00Z')).toEqual([]);
    expect(await pollAt(rig, '2026-03-07T07:02:00Z', 3)).toEqual([`job.due_soon ${job}`]);
    expect(await pollAt(rig, '2026-03-08T07:02:00Z', 3)).toEqual([`job.overdue ${job}`]);
  });

  it('is emitted once with spellings that change in every answer', async () => {
    const rig = await baselined(SOON);
    const job = await create(rig, { dateDue: '2026-03-05T18:00:00-07:00' });
    rig.sandbox.freedom.set({
      spelling: { styles: ['noSeconds', 'space', 'utc', 'sevenDigits'], share: 0.5 },
    });
    expect(await pollAt(rig, '2026-03-05T01:02:00Z', 10)).toEqual([`job.due_soon ${job}`]);
  });

  it('is not emitted for a job that was in the window at the baseline, and at its time for others', async () => {
    const rig = await baselined(
      SOON,
      { dateDue: '2026-03-02T17:00:00-07:00' },
      { dateDue: '2026-03-04T17:00:00-07:00' },
    );
    const [, later] = rig.jobs;
    expect(await rig.pollTypes(3)).toEqual([]);
    expect(await pollAt(rig, '2026-03-03T23:58:00Z')).toEqual([`job.overdue ${rig.jobs[0]}`]);
    expect(await pollAt(rig, '2026-03-04T00:02:00Z')).toEqual([`job.due_soon ${later}`]);
  });

  it('is not emitted for a job that is dispatched or delisted, even if only its detail shows the dispatch', async () => {
    const due = { dateDue: '2026-03-05T17:00:00-07:00' };
    const rig = await baselined(SOON, due, due, due);
    const [dispatched = 0, closed = 0, lagging = 0] = rig.jobs;
    rig.upstream.dispatch(dispatched);
    rig.upstream.close(closed);
    await rig.poll();
    rig.sandbox.freedom.set({ lagSeconds: { active: DAY } });
    rig.upstream.dispatch(lagging);
    rig.pass(DAY);
    await rig.poll();
    rig.upstream.edit(lagging, { description: 'Changed' });
    const types = await pollAt(rig, '2026-03-05T00:02:00Z', 3);
    expect(types.filter((type) => type.startsWith('job.due_soon'))).toEqual([]);
  });

  it('reads an unknown zone once, no earlier than the job may be due soon', async () => {
    const rig = await createRig({ events: SOON });
    const auckland = { name: 'Auckland', timezone: 'Pacific/Auckland' };
    const job = rig.upstream.createJob({ dateDue: '2026-03-03T22:13:00', location: auckland });
    // It may have been due soon at the baseline, before its zone was known.
    rig.upstream.createJob({ dateDue: '2026-03-03T10:00:00', location: auckland });
    await rig.pollTypes(3);
    const details = () =>
      rig.sandbox.requests.list({ operation: 'job' }).filter((one) => one.jobNumber === job);
    expect(await pollAt(rig, '2026-03-02T08:12:00Z')).toEqual([]);
    expect(details()).toHaveLength(0);
    expect(await pollAt(rig, '2026-03-02T08:14:00Z', 2)).toEqual([]);
    expect(details()).toHaveLength(1);
    expect(await pollAt(rig, '2026-03-02T09:12:00Z')).toEqual([]);
    expect(await pollAt(rig, '2026-03-02T09:14:00Z', 2)).toEqual([`job.due_soon ${job}`]);
    expect(details()).toHaveLength(1);
  });

  it('is emitted at creation if the job is due within the lead time', async () => {
    const rig = await baselined(SOON);
    const job = rig.upstream.createJob({ location: DENVER, dateDue: '2026-03-02T17:00:00-07:00' });
    expect(await rig.pollTypes(3)).toEqual([`job.created ${job}`, `job.due_soon ${job}`]);
  });

  it('is emitted for a new job that is due within the lead time, although a sweep found it before the list', async () => {
    const rig = await baselined({ dueSoonHours: 48 });
    rig.pass(HOUR);
    // The list lacks the job that the sweep of the next poll finds.
    rig.sandbox.freedom.set({ lagSeconds: { active: 300 } });
    const job = rig.upstream.createJob({ dateDue: rig.now() + DAY * 1000, location: DENVER });
    await rig.poll();
    expect(await rig.snapshot(job)).toMatchObject({ list: null });
    expect(await rig.pollTypes(7)).toEqual([`job.created ${job}`, `job.due_soon ${job}`]);
  });

  it('follows a changed setting, without events for jobs that are in the window by then', async () => {
    const rig = await baselined(
      {},
      { dateDue: '2026-03-05T17:00:00-07:00' },
      { dateDue: '2026-03-06T17:00:00-07:00' },
    );
    const [first, second] = rig.jobs;
    expect(await pollAt(rig, '2026-03-05T00:02:00Z')).toEqual([]);
    await rig.configure(SOON);
    expect(await rig.pollTypes(2)).toEqual([]);
    expect(await pollAt(rig, '2026-03-06T00:02:00Z', 2)).toEqual([
      `job.overdue ${first}`,
      `job.due_soon ${second}`,
    ]);
    await rig.configure({});
    rig.upstream.edit(second ?? 0, { dateDue: '2026-03-06T18:00:00-07:00' });
    expect(await rig.pollTypes(3)).toEqual([`job.due_date_changed ${second}`]);
  });

  it('is emitted at its time although a former setting would have emitted it before', async () => {
    const rig = await baselined({}, { dateDue: '2026-03-12T17:00:00-07:00' });
    const [job] = rig.jobs;
    await rig.configure({ dueSoonHours: 480 });
    expect(await rig.pollTypes(2)).toEqual([]);
    await rig.configure({ dueSoonHours: 24 });
    expect(await rig.pollTypes(2)).toEqual([]);
    expect(await pollAt(rig, '2026-03-12T00:02:00Z', 2)).toEqual([`job.due_soon ${job}`]);
    // An emitted one is not repeated.
    await rig.configure({ dueSoonHours: 12 });
    expect(await pollAt(rig, '2026-03-12T13:00:00Z', 2)).toEqual([]);
  });

  it.each(['before', 'after'])(
    'is emitted once if a poll stops %s its write, without a request of its own',
    async (when) => {
      const rig = await baselined(SOON, { dateDue: '2026-03-05T17:00:00-07:00' });
      // The rotation reads the detail with the zone.
      for (let hour = 0; hour < 25; hour += 1) {
        rig.pass(HOUR - 60);
        await rig.poll();
      }
      await pollAt(rig, '2026-03-04T23:50:00Z', 9);
      rig.pass(180);
      rig.sandbox.requests.clear();
      const stopping = rig.depsOver({
        ...rig.table,
        async transact(...args) {
          if (when === 'after') await rig.table.transact(...args);
          throw new Error('stopped');
        },
      });
      await expect(pollAccount(stopping, rig.ref, rig.now() + 60_000)).rejects.toThrow('stopped');
      expect(await rig.pollTypes(3)).toEqual([`job.due_soon ${rig.jobs[0]}`]);
      expect(rig.sandbox.requests.count({ operation: 'job' })).toBe(0);
    },
  );
});

describe('job.stalled', () => {
  const STALLED = { stalledAfterWorkingDays: 2, stalledByStatus: { 'On hold': null, 'Order received': 1 } };
  const NO_DATE = { dateDue: null };

  it('is emitted once per stay in a status, after working days at the location', async () => {
    const rig = await baselined(STALLED);
    // Friday 18:00 in Denver, which is Saturday in UTC.
    rig.pass((Date.parse('2026-03-07T00:59:00Z') - rig.now()) / 1000);
    const job = await create(rig, { ...NO_DATE, status: 'Scheduled' });
    // Clocks change on Sunday. Two working days later it is Tuesday 18:00, without Saturday and Sunday.
    expect(await pollAt(rig, '2026-03-10T23:58:00Z')).toEqual([]);
    rig.pass(180);
    await rig.poll();
    const [event, ...others] = await rig.fresh();
    expect(others).toEqual([]);
    expect(event).toMatchObject({
      type: 'job.stalled',
      subject: `jobs/${job}`,
      data: { status: 'Scheduled', workingDays: 2, zone: 'America/Denver' },
    });
    expect(event?.data).toMatchObject({ inStatusSince: expect.stringMatching(/^2026-03-07T01:00/) });
    expect(await pollAt(rig, '2026-03-20T00:00:00Z', 2)).toEqual([]);
    // One working day in this status.
    rig.upstream.setStatus(job, { master: 'Order received' });
    expect(await rig.pollTypes()).toEqual([`job.status_changed ${job}`]);
    expect(await pollAt(rig, '2026-03-20T23:58:00Z')).toEqual([]);
    expect(await pollAt(rig, '2026-03-21T00:02:00Z')).toEqual([]);
    expect(await pollAt(rig, '2026-03-24T00:02:00Z', 2)).toEqual([`job.stalled ${job}`]);
    // No limit in this one.
    rig.upstream.setStatus(job, { master: 'On hold' });
    expect(await pollAt(rig, '2026-04-24T00:02:00Z', 2)).toEqual([`job.status_changed ${job}`]);
    rig.upstream.setStatus(job, { master: 'Scheduled' });
    expect(await rig.pollTypes()).toEqual([`job.status_changed ${job}`]);
    expect(await pollAt(rig, '2026-04-30T00:02:00Z', 2)).toEqual([`job.stalled ${job}`]);
  });

  it('is emitted at its time although a former setting would have emitted it before', async () => {
    const rig = await createRig();
    const job = rig.upstream.createJob({ ...NO_DATE, location: DENVER });
    await rig.pollTypes(2);
    rig.pass(2 * DAY);
    await rig.configure({ stalledAfterWorkingDays: 1 });
    expect(await rig.pollTypes(2)).toEqual([]);
    await rig.configure({ stalledAfterWorkingDays: 4 });
    expect(await rig.pollTypes(2)).toEqual([]);
    rig.pass(5 * DAY);
    expect(await rig.pollTypes(2)).toEqual([`job.stalled ${job}`]);
    // An emitted one is not repeated.
    await rig.configure({ stalledAfterWorkingDays: 7 });
    rig.pass(7 * DAY);
    expect(await rig.pollTypes(2)).toEqual([]);
  });

  it('counts the stay of a job of the baseline from the baseline on, also after restarts', async () => {
    const rig = await baselined(STALLED, {
      ...NO_DATE,
      status: 'Scheduled',
      dateIn: '2026-01-05T09:00:00-07:00',
    });
    const [job = 0] = rig.jobs;
    for (let hour = 0; hour < 47; hour += 1) {
      rig.pass(HOUR);
      await pollAccount(rig.depsOver(rig.table), rig.ref, rig.now() + 60_000);
    }
    expect(await rig.pollTypes()).not.toContain(`job.stalled ${job}`);
    expect(await pollAt(rig, '2026-03-04T08:03:00Z', 3)).toEqual([`job.stalled ${job}`]);
  });

  it('is not restarted by a status that an answer lacks, a rename, or another change of the job', async () => {
    const rig = await baselined({ stalledByStatus: { Scheduled: 2 } });
    const job = await create(rig, { ...NO_DATE, status: 'Scheduled' });
    rig.sandbox.freedom.set({ nulls: { fields: { 'active.masterJobStatus': 1 } } });
    expect(await rig.pollTypes(2)).toEqual([]);
    rig.sandbox.freedom.clear();
    rig.upstream.edit(job, { description: 'Changed' });
    expect(await rig.pollTypes(2)).toEqual([`job.updated ${job}`]);
    rig.world.renameStatus('us', 'Scheduled', 'Planned');
    expect(await rig.pollTypes(2)).toEqual(['status.discovered']);
    expect(await pollAt(rig, '2026-03-04T07:59:00Z')).toEqual([]);
    expect(await pollAt(rig, '2026-03-04T08:04:00Z', 2)).toEqual([`job.stalled ${job}`]);
  });

  it('is not emitted for dispatched jobs, nor for jobs that are stalled when the setting is made', async () => {
    const rig = await baselined({});
    const stalled = await create(rig, { ...NO_DATE, status: 'Scheduled' });
    const dispatched = await create(rig, { ...NO_DATE, status: 'Scheduled' });
    rig.upstream.dispatch(dispatched, { status: 'Scheduled' });
    await pollAt(rig, '2026-03-05T08:00:00Z', 2);
    const later = await create(rig, { ...NO_DATE, status: 'Scheduled' });
    await rig.configure(STALLED);
    expect(await rig.pollTypes(2)).toEqual([]);
    expect(await pollAt(rig, '2026-03-09T09:00:00Z', 2)).toEqual([`job.stalled ${later}`]);
    rig.upstream.setStatus(stalled, { master: 'Order received' });
    expect(await rig.pollTypes()).toEqual([`job.status_changed ${stalled}`]);
    expect(await pollAt(rig, '2026-03-11T09:10:00Z', 2)).toEqual([`job.stalled ${stalled}`]);
  });
});
