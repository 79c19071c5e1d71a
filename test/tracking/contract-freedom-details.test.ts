/** Job details that fail, are throttled, lag behind or come late: what the tracker does with them. */
import { describe, expect, it } from 'vitest';
import type { FreedomSettings } from '../../sandbox/http/freedom.ts';
import { createRig, type Rig } from '../support/tracker.ts';

const DAY = 86_400;
const T1 = { trackingNumber: 'T1', trackingLink: 'https://carrier.example/T1' };

type Options = Parameters<typeof createRig>[0];

/** A rig with a baseline of `count` jobs that are due in a month. */
async function baselined(count: number, options: Options = {}) {
  const rig = await createRig(options);
  const dateDue = rig.now() + 30 * DAY * 1000;
  const jobs = Array.from({ length: count }, () => rig.upstream.createJob({ status: 'Scheduled', dateDue }));
  await rig.poll();
  await rig.fresh();
  return Object.assign(rig, { jobs });
}

const unreadable = (detail: 'error' | 'forbidden', ...jobs: number[]): FreedomSettings => ({
  records: jobs.map((jobNumber) => ({ region: 'us', jobNumber, detail })),
});

const details = (rig: Rig, jobNumber?: number) =>
  rig.sandbox.requests
    .list({ operation: 'job' })
    .filter((request) => jobNumber === undefined || request.jobNumber === jobNumber).length;

describe('A detail that cannot be read', () => {
  it.each(['error', 'forbidden'] as const)(
    'emits dispatch, tracking and closing from the list with closed jobs, and reports the problem: %s',
    async (fault) => {
      const rig = await baselined(3, { leavesListOnDispatch: true });
      const [dispatched = 0, closed = 0] = rig.jobs;
      rig.sandbox.freedom.set(unreadable(fault, dispatched, closed));
      rig.upstream.dispatch(dispatched, { tracking: [T1] });
      rig.upstream.close(dispatched);
      rig.upstream.close(closed);
      expect((await rig.pollTypes(2)).sort()).toEqual([
        `job.closed ${dispatched}`,
        `job.closed ${closed}`,
        `job.dispatched ${dispatched}`,
        `job.tracking_added ${dispatched}`,
      ]);
      expect((await rig.status()).problem).toMatch(/^The detail of job \d+ and 1 other jobs can’t be read: /);
      rig.sandbox.freedom.clear();
      rig.pass(1_200);
      // Only what the lists do not show is left to emit.
      const late = await rig.pollTypes(2);
      expect(late.filter((event) => !/job\.(locked|status_changed)/.test(event))).toEqual([]);
      expect((await rig.status()).problem).toBeNull();
    },
  );

  it('tracks a new job without it after three attempts if the credentials may not read it', async () => {
    const rig = await baselined(1);
    const job = rig.upstream.createJob({ status: 'Scheduled' });
    rig.sandbox.freedom.set(unreadable('forbidden', job));
    await rig.poll();
    rig.upstream.dispatch(job, { tracking: [T1] });
    const emitted = await rig.pollTypes(5);
    expect(emitted).toContain(`job.dispatched ${job}`);
    expect(emitted).toContain(`job.tracking_added ${job}`);
    expect((await rig.status()).problem).toMatch(`The detail of job ${job} can’t be read: `);
  });

  it('tracks a new job without it after an hour if it fails for another reason', async () => {
    const rig = await baselined(1);
    const job = rig.upstream.createJob({ status: 'Scheduled' });
    rig.sandbox.freedom.set(unreadable('error', job));
    await rig.poll();
    rig.upstream.dispatch(job);
    expect(await rig.pollTypes(50)).toEqual([]);
    expect(await rig.pollTypes(30)).toContain(`job.dispatched ${job}`);
  });
});

describe('Retry-After', () => {
  it('of the detail stops all details, also in later polls, and no list or search', async () => {
    const rig = await baselined(30);
    rig.sandbox.freedom.set({ throttled: { detail: { retryAfterSeconds: 600 } } });
    const [closed = 0, ...rest] = rig.jobs;
    for (const job of rest) rig.upstream.setStatus(job, 'In production');
    rig.upstream.close(closed);
    rig.sandbox.requests.clear();
    const emitted = await rig.pollTypes(5);
    expect(emitted.filter((event) => event.startsWith('job.status_changed'))).toHaveLength(29);
    expect(emitted).toContain(`job.closed ${closed}`);
    // Those under way at the time of the first answer.
    expect(details(rig)).toBeLessThanOrEqual(4);
    rig.sandbox.freedom.clear();
    rig.sandbox.requests.clear();
    rig.pass(600);
    await rig.poll();
    expect(details(rig)).toBeGreaterThanOrEqual(29);
  });

  it('of the detail does not repeat fetches of the daily rotation, and none is omitted', async () => {
    const rig = await baselined(288, { pollIntervalSeconds: 3_600 });
    rig.fault({
      match: { operation: 'job', nth: 4 },
      fault: { kind: 'status', status: 429, retryAfter: 60 },
    });
    await rig.pollTypes(24);
    expect(rig.jobs.filter((job) => details(rig, job) === 0)).toEqual([]);
    expect(rig.jobs.filter((job) => details(rig, job) > 1)).toHaveLength(1);
  });

  it('of the search stops searches, and no detail', async () => {
    const rig = await baselined(10);
    rig.sandbox.freedom.set({ throttled: { search: { retryAfterSeconds: 600 } } });
    const [changed = 0, ...closed] = rig.jobs;
    for (const job of closed) rig.upstream.close(job);
    rig.upstream.setStatus(changed, 'In production');
    rig.sandbox.requests.clear();
    await rig.pollTypes(5);
    expect(rig.sandbox.requests.list().filter(({ view }) => view === 'search').length).toBeLessThanOrEqual(4);
    expect(details(rig, changed)).toBe(1);
    rig.sandbox.freedom.clear();
    rig.pass(600);
    expect((await rig.pollTypes(15)).filter((event) => event.startsWith('job.closed'))).toHaveLength(9);
  });
});

describe('Backlog', () => {
  it('emits job.created in the next poll although 2,000 jobs changed at once', async () => {
    const rig = await baselined(2_000);
    for (const job of rig.jobs) rig.upstream.setStatus(job, 'In production');
    await rig.pollTypes();
    const created = rig.upstream.createJob();
    expect(await rig.pollTypes()).toEqual([`job.created ${created}`]);
    let polls = 2;
    for (; polls < 20 && (await rig.poll()).fetchesLeft > 0; ) polls += 1;
    expect(polls).toBeLessThan(15);
  }, 120_000);
});

describe('Changes after the departure', () => {
  it('emits late dispatch and tracking of a recent job within 20 minutes, without further requests', async () => {
    const rig = await baselined(3);
    const [late = 0] = rig.jobs;
    rig.upstream.close(late);
    // Its detail is by now fetched every six hours.
    await rig.pollTypes(200);
    rig.sandbox.requests.clear();
    await rig.pollTypes(20);
    const lists = rig.sandbox.requests.count({ operation: 'activeJobs' });
    rig.upstream.dispatch(late, { tracking: [T1] });
    rig.sandbox.requests.clear();
    expect((await rig.pollTypes(20)).sort()).toEqual([
      `job.dispatched ${late}`,
      `job.tracking_added ${late}`,
    ]);
    expect(rig.sandbox.requests.count({ operation: 'activeJobs' })).toBeLessThanOrEqual(lists + 1);
  });
});

describe('Daily rotation', () => {
  it('emits job.invoiced of a listed job within a day, with one detail fetch a job and day', async () => {
    const rig = await baselined(40, { pollIntervalSeconds: 300 });
    await rig.pollTypes(289);
    const [invoiced = 0] = rig.jobs;
    rig.upstream.invoice(invoiced);
    rig.sandbox.requests.clear();
    expect(await rig.pollTypes(289)).toEqual([`job.invoiced ${invoiced}`]);
    for (const job of rig.jobs) expect(details(rig, job)).toBeLessThanOrEqual(2);
    expect(details(rig)).toBeLessThanOrEqual(41);
  }, 120_000);

  it('reads the details of the other jobs once a day while the detail of a job cannot be read', async () => {
    const rig = await baselined(10, { pollIntervalSeconds: 900 });
    const [broken = 0, ...others] = rig.jobs;
    rig.sandbox.freedom.set(unreadable('error', broken));
    rig.upstream.setStatus(broken, { master: 'Packing' });
    await rig.pollTypes(97);
    for (const job of others) rig.upstream.invoice(job);
    rig.sandbox.requests.clear();
    expect((await rig.pollTypes(97)).sort()).toEqual(others.map((job) => `job.invoiced ${job}`));
    expect(details(rig) - details(rig, broken)).toBeLessThanOrEqual(others.length + 1);
  });

  it('reads the detail of a job whose list entry is different in every poll', async () => {
    const rig = await baselined(2, { pollIntervalSeconds: 900 });
    const [job = 0] = rig.jobs;
    for (let n = 0; n < 96; n += 1) {
      rig.upstream.edit(job, { description: `Version ${n}` });
      await rig.poll();
    }
    expect(details(rig, job)).toBe(1);
  });

  it('reads the detail of a job whose status the list omits, and its next status has the evidence of the last one', async () => {
    const rig = await baselined(2);
    const [job = 0] = rig.jobs;
    rig.pass(86_400);
    await rig.pollTypes(5);
    const knownAt = rig.now();
    rig.sandbox.freedom.set({ nulls: { fields: { 'active.masterJobStatus': 1 } } });
    await rig.poll();
    rig.upstream.invoice(job);
    rig.pass(86_400);
    expect(await rig.pollTypes(5)).toContain(`job.invoiced ${job}`);
    rig.sandbox.freedom.clear();
    rig.upstream.setStatus(job, 'Shipped');
    await rig.poll();
    const [event] = await rig.fresh();
    expect(event?.type).toBe('job.status_changed');
    const { since } = (event?.data.observed ?? {}) as { since: string };
    expect(Date.parse(since)).toBeLessThanOrEqual(knownAt);
  });
});

describe('Overdue', () => {
  it('is emitted in the zone of the location for a job known only from the baseline', async () => {
    const rig = await createRig({ pollIntervalSeconds: 300 });
    const location = { name: 'Auckland', timezone: 'Pacific/Auckland' };
    // 22:30 in Auckland is 09:30 UTC: the daily fetch of the detail is later.
    const job = rig.upstream.createJob({ dateDue: '2026-03-02T22:30:00', location });
    await rig.poll();
    await rig.fresh();
    for (;;) {
      await rig.poll();
      const [event] = await rig.fresh();
      if (!event) continue;
      expect(event).toMatchObject({ type: 'job.overdue', subject: `jobs/${job}` });
      expect(event.data).toMatchObject({ dueAt: '2026-03-02T09:30:00.000Z', zone: 'Pacific/Auckland' });
      expect(rig.now() - Date.parse('2026-03-02T09:30:00Z')).toBeLessThanOrEqual(300_000);
      break;
    }
    expect(details(rig, job)).toBe(1);
  });
});
