/** Views of the ordering API that differ: older or incomplete answers must cause no false event and hide no true one. */
import { describe, expect, it } from 'vitest';
import { createRig, type Rig } from '../support/tracker.ts';

const PARCELS = ['1Z-A', '1Z-B'].map((trackingNumber) => ({ trackingNumber, trackingLink: null }));

/** A rig with a baseline of some jobs. Returns the number of one of them. */
async function baselined(input: Parameters<Rig['upstream']['createJob']>[0] = {}) {
  const rig = await createRig();
  for (let n = 0; n < 4; n += 1) rig.upstream.createJob();
  const job = rig.upstream.createJob(input);
  await rig.poll();
  await rig.fresh();
  return { rig, job };
}

/** Polls often enough for the first three fetches of a job that left the list: 45 minutes. */
const SETTLED = 45;

describe('Tracking', () => {
  it.each(['fails once', 'was never fetched'])(
    'emits a parcel that only the detail of a delisted job contains, although the detail %s',
    async (detail) => {
      const { rig, job } = await baselined();
      const records = [{ region: 'us', jobNumber: job, detail: 'error' } as const];
      if (detail === 'fails once') rig.sandbox.freedom.set({ records });
      rig.upstream.dispatch(job, { tracking: PARCELS.slice(0, 1) });
      if (detail === 'fails once') {
        expect(await rig.pollTypes()).toEqual([
          `job.locked ${job}`,
          `job.dispatched ${job}`,
          `job.tracking_added ${job}`,
        ]);
      } else {
        rig.sandbox.freedom.set({ records });
        await rig.pollTypes(2);
      }
      rig.upstream.edit(job, { tracking: PARCELS });
      rig.upstream.close(job);
      rig.sandbox.freedom.clear();
      await rig.poll();
      for (let n = 0; n < 20; n += 1) await rig.poll();
      const added = (await rig.fresh()).filter(({ type }) => type === 'job.tracking_added');
      expect(added.map(({ data }) => 'tracking' in data && data.tracking)).toEqual([
        [{ number: '1Z-B', link: null }],
      ]);
    },
  );

  it('emits no parcel that the list has replaced, when an older detail still contains it', async () => {
    const { rig, job } = await baselined();
    rig.sandbox.freedom.set({ lagSeconds: { detail: 300 } });
    rig.upstream.dispatch(job, { tracking: PARCELS.slice(0, 1) });
    await rig.pollTypes(2);
    rig.upstream.edit(job, { tracking: PARCELS.slice(1) });
    rig.upstream.dispatch(job, { tracking: PARCELS.slice(1) });
    const emitted = await rig.pollTypes(SETTLED);
    expect(emitted.filter((event) => event.startsWith('job.tracking_added'))).toEqual([
      `job.tracking_added ${job}`,
    ]);
  });
});

describe('Sweep', () => {
  it('emits the tracking of all delisted jobs for which a sweep shows it, even if they exceed the budget of a poll', async () => {
    const rig = await createRig({ settings: { fetchesPerPoll: 4 } });
    const jobs = Array.from({ length: 20 }, () => rig.upstream.createJob());
    rig.upstream.createJob();
    await rig.poll();
    for (const job of jobs) {
      rig.upstream.dispatch(job);
      rig.upstream.close(job);
    }
    // After 12 hours, the scheduled fetches of these jobs are far apart.
    await rig.pollTypes(12 * 60);
    for (const job of jobs) rig.upstream.edit(job, { tracking: PARCELS });
    const emitted = await rig.pollTypes(30);
    expect(emitted.toSorted()).toEqual(jobs.map((job) => `job.tracking_added ${job}`));
  });
});

describe('Older answers', () => {
  it('a search that is five minutes behind changes no field of a job that it finds', async () => {
    const { rig, job } = await baselined({ dateDue: '2026-03-20T00:00:00' });
    rig.sandbox.freedom.set({ lagSeconds: { search: 300 } });
    await rig.pollTypes(6);
    rig.upstream.edit(job, { dateDue: '2026-03-25T00:00:00', status: 'In production' });
    rig.upstream.lock(job);
    expect(await rig.pollTypes()).toEqual([
      `job.due_date_changed ${job}`,
      `job.locked ${job}`,
      `job.status_changed ${job}`,
    ]);
    rig.upstream.hide(job);
    expect(await rig.pollTypes(2)).toEqual([]);
    rig.upstream.unhide(job);
    expect(await rig.pollTypes(SETTLED)).toEqual([]);
  });

  it.each([120, 300, 900])(
    'a detail that is %d s behind repeats no change of the list after the job left it',
    async (lag) => {
      const { rig, job } = await baselined({ dateDue: '2026-03-20T00:00:00', status: 'Queued' });
      rig.sandbox.freedom.set({ lagSeconds: { detail: lag } });
      await rig.pollTypes(20);
      const emitted: string[] = [];
      for (const [status, day] of [
        ['Printing', 21],
        ['Packing', 22],
        ['Printing', 23],
        ['Checking', 24],
      ]) {
        rig.upstream.edit(job, { dateDue: `2026-03-${day}T00:00:00`, status: String(status) });
        emitted.push(...(await rig.pollTypes()));
      }
      rig.upstream.close(job);
      emitted.push(...(await rig.pollTypes(150)));
      const count = (type: string) => emitted.filter((event) => event === `${type} ${job}`).length;
      expect({ status: count('job.status_changed'), due: count('job.due_date_changed') }).toEqual({
        status: 4,
        due: 4,
      });
      expect(count('job.closed')).toBe(1);
    },
  );

  it('a change after the job left the list is emitted, although the detail was behind until then', async () => {
    const { rig, job } = await baselined({ dateDue: '2026-03-20T00:00:00' });
    rig.sandbox.freedom.set({ lagSeconds: { detail: 300 } });
    await rig.pollTypes(6);
    rig.upstream.edit(job, { dateDue: '2026-03-21T00:00:00' });
    await rig.pollTypes();
    rig.upstream.close(job);
    await rig.pollTypes(2);
    rig.upstream.edit(job, { dateDue: '2026-03-22T00:00:00' });
    for (let n = 0; n < 200; n += 1) await rig.poll();
    const changed = (await rig.fresh()).filter(({ type }) => type === 'job.due_date_changed');
    expect(changed.map(({ data }) => 'changes' in data && data.changes)).toEqual([
      { dateDue: { from: '2026-03-21T00:00:00', to: '2026-03-22T00:00:00' } },
    ]);
  });
});

describe('A full list that is five minutes behind the list', () => {
  it('still contains a cancelled job as editable: the job is reported as cancelled, not as closed', async () => {
    const rig = await createRig();
    const jobs = Array.from({ length: 30 }, () => rig.upstream.createJob());
    await rig.poll();
    rig.sandbox.freedom.set({ lagSeconds: { closed: 270, closedSearch: 270 } });
    await rig.pollTypes(6);
    const [closed = 0, cancelled = 0, ...others] = jobs;
    rig.upstream.cancel(cancelled);
    rig.upstream.close(closed);
    expect((await rig.pollTypes(25)).sort()).toEqual([`job.cancelled ${cancelled}`, `job.closed ${closed}`]);
    // Many such jobs do not quarantine the account.
    for (const job of others.slice(0, 20)) rig.upstream.close(job);
    const types = (await rig.pollTypes(10)).filter((type) => !type.startsWith('job.locked'));
    expect(types.sort()).toEqual(others.slice(0, 20).map((job) => `job.closed ${job}`));
  });
});

describe('A status that was null', () => {
  it('is no change when it becomes known', async () => {
    const rig = await createRig();
    rig.sandbox.freedom.set({ nulls: { fields: { masterJobStatus: 1, jobStatus: 1 } } });
    const job = rig.upstream.createJob({ status: 'Queued' });
    await rig.poll();
    await rig.fresh();
    rig.sandbox.freedom.clear();
    expect(await rig.pollTypes(3)).not.toContain(`job.status_changed ${job}`);
    rig.upstream.edit(job, { status: 'Printing' });
    expect(await rig.pollTypes(3)).toContain(`job.status_changed ${job}`);
  });

  it('is a change when the job changed at the same time', async () => {
    const rig = await createRig();
    rig.sandbox.freedom.set({ nulls: { fields: { masterJobStatus: 1, jobStatus: 1 } } });
    const job = rig.upstream.createJob({ status: 'Queued' });
    await rig.poll();
    await rig.fresh();
    rig.sandbox.freedom.clear();
    rig.upstream.edit(job, { status: 'Printing' });
    rig.upstream.lock(job);
    expect(await rig.pollTypes(3)).toEqual(
      expect.arrayContaining([`job.locked ${job}`, `job.status_changed ${job}`]),
    );
  });
});
