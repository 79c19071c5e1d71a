/** Statuses that need attention, and the start of production: null statuses, renames, older answers, restarts. */
import { describe, expect, it } from 'vitest';
import { pollAccount } from '../../shared/tracking/poll.ts';
import { createRig, type Rig } from '../support/tracker.ts';

const HOUR = 3600;

/** A rig whose account has a baseline of some jobs with the status Scheduled. */
async function baselined(events: Parameters<Rig['configure']>[0], count = 1, status = 'Scheduled') {
  const rig = await createRig({ events });
  const dateDue = rig.now() + 30 * 24 * HOUR * 1000;
  const jobs = Array.from({ length: count }, () => rig.upstream.createJob({ status, dateDue }));
  await rig.poll();
  await rig.fresh();
  return Object.assign(rig, { jobs, dateDue });
}

describe('job.needs_attention', () => {
  const ATTENTION = { attentionStatuses: ['Awaiting artwork', 'On hold'] };

  it('is emitted each time a job enters a configured status, after the change of its status', async () => {
    const rig = await baselined(ATTENTION);
    const [job = 0] = rig.jobs;
    rig.upstream.setStatus(job, 'On hold');
    expect(await rig.pollTypes()).toEqual([`job.status_changed ${job}`, `job.needs_attention ${job}`]);
    rig.upstream.edit(job, { description: 'Changed' });
    expect(await rig.pollTypes()).toEqual([`job.updated ${job}`]);
    rig.upstream.setStatus(job, 'Scheduled');
    expect(await rig.pollTypes()).toEqual([`job.status_changed ${job}`]);
    rig.upstream.setStatus(job, 'Awaiting artwork');
    await rig.poll();
    const [, event] = await rig.fresh();
    expect(event).toMatchObject({ type: 'job.needs_attention', data: { status: 'Awaiting artwork' } });
  });

  it('is emitted for a new job in such a status, also if its first answer lacks the status', async () => {
    const rig = await baselined(ATTENTION);
    const job = rig.upstream.createJob({ status: 'Awaiting artwork', dateDue: rig.dateDue });
    expect(await rig.pollTypes(2)).toEqual([`job.created ${job}`, `job.needs_attention ${job}`]);
    rig.sandbox.freedom.set({ nulls: { fields: { 'active.masterJobStatus': 1 } } });
    const unnamed = rig.upstream.createJob({ status: 'On hold', dateDue: rig.dateDue });
    expect(await rig.pollTypes(2)).toEqual([`job.created ${unnamed}`]);
    rig.sandbox.freedom.clear();
    expect(await rig.pollTypes(2)).toEqual([`job.needs_attention ${unnamed}`]);
  });

  it('is emitted for the first status of a new job that a sweep found before the list', async () => {
    const rig = await baselined(ATTENTION);
    rig.pass(HOUR);
    // The list lacks the job that the sweep of the next poll finds, and later its status.
    rig.sandbox.freedom.set({
      lagSeconds: { active: 300 },
      nulls: { fields: { 'active.masterJobStatus': 1 } },
    });
    const job = rig.upstream.createJob({ status: 'On hold', dateDue: rig.dateDue });
    await rig.poll();
    expect(await rig.snapshot(job)).toMatchObject({ list: null });
    expect(await rig.pollTypes(7)).toEqual([`job.created ${job}`]);
    rig.sandbox.freedom.clear();
    expect(await rig.pollTypes(2)).toEqual([`job.needs_attention ${job}`]);
  });

  it('is not emitted for jobs of the baseline, whether or not the answer had their status', async () => {
    const rig = await createRig({ events: ATTENTION });
    const dateDue = rig.now() + 30 * 24 * HOUR * 1000;
    rig.upstream.createJob({ status: 'On hold', dateDue });
    rig.sandbox.freedom.set({ nulls: { fields: { 'active.masterJobStatus': 1 } } });
    const other = rig.upstream.createJob({ status: 'On hold', dateDue });
    expect(await rig.pollTypes()).toEqual(['account.baselined']);
    rig.sandbox.freedom.clear();
    expect(await rig.pollTypes(2)).toEqual([]);
    // Nor for a job that was already in the status when it was configured.
    await rig.configure({ attentionStatuses: ['On hold', 'Scheduled'] });
    expect(await rig.pollTypes(2)).toEqual([]);
    rig.upstream.setStatus(other, 'Scheduled');
    expect(await rig.pollTypes()).toEqual([`job.status_changed ${other}`, `job.needs_attention ${other}`]);
  });

  it('follows a rename of the configured status, and is not emitted because of it', async () => {
    const rig = await baselined(ATTENTION, 20, 'On hold');
    const job = rig.upstream.createJob({ status: 'Scheduled', dateDue: rig.dateDue });
    await rig.pollTypes(2);
    rig.world.renameStatus('us', 'On hold', 'Paused');
    rig.sandbox.freedom.set({
      statuses: { renames: [{ region: 'us', former: 'On hold', current: 'Paused', share: 0.4 }] },
    });
    expect(await rig.pollTypes(20)).toEqual(['status.discovered']);
    rig.upstream.setStatus(job, 'Paused');
    expect(await rig.pollTypes(5)).toEqual([`job.status_changed ${job}`, `job.needs_attention ${job}`]);
    rig.sandbox.freedom.clear();
    expect(await rig.pollTypes(3)).toEqual([]);
    // The new name can be configured as well.
    await rig.configure({ attentionStatuses: ['Paused'] });
    expect(await rig.pollTypes(3)).toEqual([]);
  });
});

describe('job.production_started', () => {
  const details = (rig: Rig) => rig.sandbox.requests.count({ operation: 'job' });

  /** A new job whose detail was read, a number of seconds ago. */
  async function tracked(seconds = 2 * HOUR) {
    const rig = await baselined({});
    const job = rig.upstream.createJob({ status: 'Scheduled', dateDue: rig.dateDue });
    await rig.poll();
    await rig.fresh();
    rig.pass(seconds);
    await rig.poll();
    return { rig, job };
  }

  it('is emitted once when an open job can no longer be cancelled, with the detail that its status causes', async () => {
    const { rig, job } = await tracked();
    rig.sandbox.requests.clear();
    rig.upstream.setStatus(job, 'In production');
    await rig.poll();
    const [moved, started, ...others] = await rig.fresh();
    expect([moved?.type, others]).toEqual(['job.status_changed', []]);
    expect(started).toMatchObject({
      type: 'job.production_started',
      data: { changes: { isCancelable: { from: true, to: false } }, observed: { view: 'detail' } },
    });
    rig.upstream.setStatus(job, 'Ready to ship');
    expect(await rig.pollTypes()).toEqual([`job.status_changed ${job}`]);
    expect(details(rig)).toBe(2);
    await pollAccount(rig.depsOver(rig.table), rig.ref, rig.now() + 60_000);
    rig.upstream.dispatch(job);
    expect(await rig.pollTypes(3)).not.toContain(`job.production_started ${job}`);
  });

  it('is emitted again only after the job could be cancelled again', async () => {
    const { rig, job } = await tracked();
    const emitted: string[] = [];
    for (const status of ['In production', 'Ready to ship', 'Scheduled', 'In production']) {
      rig.upstream.setStatus(job, status);
      emitted.push(...(await rig.pollTypes()));
      rig.pass(2 * HOUR);
    }
    expect(emitted.filter((type) => type.startsWith('job.production'))).toEqual([
      `job.production_started ${job}`,
      `job.production_started ${job}`,
    ]);
  });

  it('is not emitted again because of an older detail', async () => {
    const { rig, job } = await tracked();
    rig.upstream.setStatus(job, 'In production');
    expect(await rig.pollTypes()).toContain(`job.production_started ${job}`);
    rig.sandbox.freedom.set({ lagSeconds: { detail: 1800 } });
    rig.upstream.setStatus(job, { master: 'Ready to ship' });
    expect(await rig.pollTypes(2)).toEqual([`job.status_changed ${job}`]);
    rig.sandbox.freedom.clear();
    rig.upstream.setStatus(job, 'In production');
    expect(await rig.pollTypes(2)).toEqual([`job.status_changed ${job}`]);
    rig.pass(2 * HOUR);
    rig.upstream.setStatus(job, 'Ready to ship');
    expect(await rig.pollTypes(2)).toEqual([`job.status_changed ${job}`]);
  });

  it('waits for a detail that shows the new status, or is an hour younger', async () => {
    const { rig, job } = await tracked(0);
    // The detail has a status of its own.
    rig.upstream.edit(job, { isCancelable: false });
    rig.upstream.setStatus(job, { master: 'In production' });
    expect(await rig.pollTypes(2)).toEqual([`job.status_changed ${job}`]);
    rig.pass(HOUR);
    rig.upstream.setStatus(job, { master: 'Ready to ship' });
    expect(await rig.pollTypes(2)).toEqual([`job.status_changed ${job}`, `job.production_started ${job}`]);
  });

  it('is emitted within a day if the list does not change', async () => {
    const { rig, job } = await tracked();
    rig.upstream.edit(job, { isCancelable: false });
    const emitted: string[] = [];
    for (let hour = 0; hour < 25; hour += 1) {
      rig.pass(HOUR - 60);
      emitted.push(...(await rig.pollTypes()));
    }
    expect(emitted).toEqual([`job.production_started ${job}`]);
  });

  it.each(['dispatch', 'close', 'cancel', 'remove'] as const)(
    'is not emitted for a job that ends: %s, although the list is behind',
    async (operation) => {
      const { rig, job } = await tracked();
      rig.sandbox.freedom.set({ lagSeconds: { active: 600, search: 600, closed: 600 } });
      rig.upstream.setStatus(job, { master: 'On hold' });
      rig.pass(540);
      rig.upstream[operation](job);
      const emitted = await rig.pollTypes(60);
      expect(emitted.filter((type) => type.startsWith('job.production'))).toEqual([]);
      expect(emitted.length).toBeGreaterThan(1);
    },
  );

  it('is emitted for a job that can no longer be edited, once it is still listed an hour later', async () => {
    const { rig, job } = await tracked();
    rig.upstream.lock(job);
    rig.upstream.setStatus(job, 'In production');
    expect(await rig.pollTypes(2)).toEqual([`job.locked ${job}`, `job.status_changed ${job}`]);
    rig.pass(HOUR);
    rig.upstream.setStatus(job, 'Ready to ship');
    expect(await rig.pollTypes(2)).toEqual([`job.status_changed ${job}`, `job.production_started ${job}`]);
  });

  it('is not emitted for the first detail of a job of the baseline', async () => {
    const rig = await baselined({}, 1, 'In production');
    for (let hour = 0; hour < 26; hour += 1) {
      rig.pass(HOUR - 60);
      expect(await rig.pollTypes()).toEqual([]);
    }
    expect((await rig.snapshot(rig.jobs[0] ?? 0))?.detail?.isCancelable).toBe(false);
  });
});
