/** Renamed statuses: an empty or failing lookup, former names that return, and renames that spread slowly. */
import { describe, expect, it } from 'vitest';
import type { FreedomSettings } from '../../sandbox/http/freedom.ts';
import { createRig, type Rig } from '../support/tracker.ts';

const HOUR = 3600;

async function baselined(jobs: number, before?: (rig: Rig) => void): Promise<{ rig: Rig; jobs: number[] }> {
  const rig = await createRig();
  before?.(rig);
  const created = Array.from({ length: jobs }, () => rig.upstream.createJob({ status: 'Scheduled' }));
  await rig.poll();
  await rig.fresh();
  return { rig, jobs: created };
}

const lookups = (rig: Rig): number => rig.sandbox.requests.count({ operation: 'jobStatuses' });

describe('The status lookup', () => {
  it.each(['empty', 'error'] as const)(
    'is read again if its answer at the baseline was an %s: a later rename is no change of any job',
    async (lookup) => {
      const { rig } = await baselined(40, ({ sandbox }) => sandbox.freedom.set({ statuses: { lookup } }));
      rig.sandbox.freedom.clear();
      rig.pass(900);
      expect(await rig.pollTypes()).toEqual([]);
      rig.world.renameStatus('us', 'Scheduled', 'Planned');
      expect(await rig.pollTypes(3)).toEqual(['status.discovered']);
    },
  );

  it.each(['empty', 'error'] as const)(
    'keeps its former content when its answer is an %s',
    async (lookup) => {
      const { rig, jobs } = await baselined(40);
      rig.sandbox.freedom.set({ statuses: { lookup } });
      rig.upstream.setStatus(jobs[0] ?? 0, 'Vulcanising');
      expect(await rig.pollTypes()).toEqual(['status.discovered', `job.status_changed ${jobs[0]}`]);
      rig.sandbox.freedom.clear();
      rig.world.renameStatus('us', 'Scheduled', 'Planned');
      expect(await rig.pollTypes(3)).toEqual(['status.discovered']);
    },
  );

  it('is read before a new name counts, even if the list with closed jobs showed it first', async () => {
    const { rig, jobs } = await baselined(3);
    for (const other of jobs) rig.upstream.setStatus(other, 'In production');
    const job = rig.upstream.createJob({ status: 'Scheduled' });
    await rig.pollTypes();
    rig.sandbox.freedom.set({ records: [{ region: 'us', jobNumber: job, detail: 'error' }] });
    rig.world.renameStatus('us', 'Scheduled', 'Planned');
    rig.upstream.dispatch(job);
    rig.upstream.close(job);
    expect(await rig.pollTypes()).toContain(`job.dispatched ${job}`);
    rig.sandbox.freedom.clear();
    rig.pass(900);
    expect((await rig.pollTypes(3)).filter((type) => /status/.test(type))).toEqual(['status.discovered']);
  });

  it('costs no request in quiet polls, two a day otherwise, and one in a poll with unknown names', async () => {
    const { rig, jobs } = await baselined(5);
    rig.sandbox.requests.clear();
    for (let n = 0; n < 30; n += 1) await rig.poll();
    expect(lookups(rig)).toBe(0);
    for (let n = 0; n < 24; n += 1) {
      rig.pass(HOUR - 60);
      await rig.poll();
    }
    expect(lookups(rig)).toBe(2);
    rig.sandbox.requests.clear();
    for (const job of jobs) rig.upstream.setStatus(job, { master: `List ${job}`, detail: `Detail ${job}` });
    await rig.poll();
    expect(lookups(rig)).toBe(1);
  });

  it('costs at most one request in four polls while it does not answer', async () => {
    const { rig } = await baselined(5, ({ sandbox }) =>
      sandbox.freedom.set({ statuses: { lookup: 'empty' } }),
    );
    rig.sandbox.requests.clear();
    for (let n = 0; n < 60; n += 1) await rig.poll();
    expect(lookups(rig)).toBeLessThanOrEqual(4);
  });
});

const spreading = (share: number): FreedomSettings => ({
  statuses: { renames: [{ region: 'us', former: 'Scheduled', current: 'Planned', share }] },
});

describe('A rename that spreads slowly', () => {
  it('causes one event, and none for its jobs, while answers contain both names', async () => {
    const { rig, jobs } = await baselined(60);
    const [settling = 0, moving = 0] = jobs;
    rig.upstream.close(settling);
    await rig.pollTypes(2);
    rig.world.renameStatus('us', 'Scheduled', 'Planned');
    rig.sandbox.freedom.set(spreading(0.4));
    rig.sandbox.requests.clear();
    expect(await rig.pollTypes(40)).toEqual(['status.discovered']);
    expect(lookups(rig)).toBeLessThanOrEqual(40);
    rig.pass(30 * HOUR);
    expect(await rig.pollTypes(10)).toEqual([]);
    // Other changes are emitted.
    rig.upstream.setStatus(moving, 'In production');
    expect(await rig.pollTypes(3)).toEqual([`job.status_changed ${moving}`]);
    rig.sandbox.freedom.clear();
    expect(await rig.pollTypes(5)).toEqual([]);
    expect((await rig.snapshot(settling))?.detail?.status).toBe('Planned');
  });

  it('is no change if the lookup is renamed a day before the jobs', async () => {
    const { rig } = await baselined(20);
    rig.world.renameStatus('us', 'Scheduled', 'Planned');
    rig.sandbox.freedom.set(spreading(1));
    const emitted: string[] = [];
    for (let n = 0; n < 30; n += 1) {
      rig.pass(HOUR);
      emitted.push(...(await rig.pollTypes()));
    }
    rig.sandbox.freedom.clear();
    expect([...emitted, ...(await rig.pollTypes(3))]).toEqual(['status.discovered']);
    // All jobs have the former name in all answers: that is no reason to read the lookup with every poll.
    expect(lookups(rig)).toBeLessThan(10);
  });

  it('does not affect a detail that was read before it', async () => {
    const { rig, jobs } = await baselined(3);
    const [job = 0] = jobs;
    rig.upstream.setStatus(job, 'In production');
    rig.upstream.setLineStatus(job, 0, 'Scheduled');
    await rig.pollTypes(2);
    rig.world.renameStatus('us', 'Scheduled', 'Planned');
    await rig.pollTypes(2);
    rig.world.addStatus('us', 'Scheduled', 'production');
    rig.pass(13 * HOUR);
    expect(await rig.pollTypes(2)).toEqual([]);
    rig.upstream.edit(job, { mustDate: true, dateOut: '2026-03-03T09:00:00Z' });
    rig.upstream.close(job);
    expect((await rig.pollTypes(2)).filter((event) => /status/.test(event))).toEqual([]);
  });
});

describe('A former name that returns', () => {
  it('as another status is a change of its jobs at once', async () => {
    const { rig, jobs } = await baselined(10);
    const [a = 0, b = 0] = jobs;
    rig.world.renameStatus('us', 'Scheduled', 'Planned');
    expect(await rig.pollTypes(2)).toEqual(['status.discovered']);
    rig.world.addStatus('us', 'Scheduled', 'production');
    rig.upstream.setStatus(a, 'Scheduled');
    await rig.poll();
    const events = await rig.fresh();
    expect(events.map(({ type, data }) => [type, data.changes])).toEqual([
      ['job.status_changed', { status: { from: 'Planned', to: 'Scheduled' } }],
    ]);
    rig.upstream.setStatus(b, 'Scheduled');
    expect(await rig.pollTypes()).toEqual([`job.status_changed ${b}`]);
    rig.upstream.setStatus(a, 'Planned');
    expect(await rig.pollTypes(3)).toEqual([`job.status_changed ${a}`]);
    // Its later rename is one of its own.
    rig.world.renameStatus('us', 'Scheduled', 'On the plan');
    expect(await rig.pollTypes(3)).toEqual(['status.discovered']);
    expect((await rig.snapshot(b))?.list?.status).toBe('On the plan');
    expect((await rig.snapshot(a))?.list?.status).toBe('Planned');
  });

  it('is a change of a job whose entry has the same text as before the rename', async () => {
    const { rig, jobs } = await baselined(10);
    const [a = 0] = jobs;
    expect(await rig.pollTypes(3)).toEqual([]);
    rig.world.renameStatus('us', 'Scheduled', 'Planned');
    rig.sandbox.freedom.set(spreading(1));
    rig.pass(12 * HOUR);
    expect(await rig.pollTypes(3)).toEqual(['status.discovered']);
    rig.world.addStatus('us', 'Scheduled', 'production');
    rig.upstream.setStatus(a, 'Scheduled');
    rig.sandbox.freedom.clear();
    expect(await rig.pollTypes(2)).toEqual([`job.status_changed ${a}`]);
  });

  it('is a change of its jobs a day later if the lookup does not answer', async () => {
    const { rig, jobs } = await baselined(10);
    const [a = 0] = jobs;
    rig.world.renameStatus('us', 'Scheduled', 'Planned');
    await rig.pollTypes(2);
    rig.sandbox.freedom.set({ statuses: { lookup: 'error' } });
    rig.pass(25 * HOUR);
    rig.world.addStatus('us', 'Scheduled', 'production');
    rig.upstream.setStatus(a, 'Scheduled');
    expect(await rig.pollTypes(2)).toEqual([`job.status_changed ${a}`]);
  });
});
