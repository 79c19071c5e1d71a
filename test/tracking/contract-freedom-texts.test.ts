/** Texts of any length: the contract names no maximum. */
import { describe, expect, it } from 'vitest';
import { TRUNCATED } from '../../shared/tracking/texts.ts';
import { createRig, type Rig } from '../support/tracker.ts';

const LONG = `${'é😀"\u0001'.repeat(25_000)}`;

async function baselined(description: string | null = null): Promise<{ rig: Rig; job: number }> {
  const rig = await createRig();
  const job = rig.upstream.createJob({ description });
  await rig.poll();
  await rig.fresh();
  return { rig, job };
}

describe('Texts that end within a character', () => {
  it('as a status and an order group are stored with U+FFFD, and the other jobs have their events', async () => {
    const rig = await createRig();
    const cut = rig.upstream.createJob({ status: 'New \ud83d', orderGroup: 'Group \ud83d' });
    const other = rig.upstream.createJob();
    expect(await rig.pollTypes()).toEqual(['account.baselined']);
    rig.upstream.dispatch(cut, { status: 'Out \ud83d' });
    rig.upstream.dispatch(other);
    const types = await rig.pollTypes();
    expect(types).toEqual(expect.arrayContaining([`job.dispatched ${cut}`, `job.dispatched ${other}`]));
    const list = { status: 'Out \ufffd', orderGroup: 'Group \ufffd' };
    expect(await rig.snapshot(cut)).toMatchObject({ list, detail: list });
    expect(await rig.status()).toMatchObject({ truncatedJobs: 0, problem: null });
  });
});

describe('A job that is too large to be stored', () => {
  it('is named in the status of the account, and the other jobs have their events', async () => {
    const { rig, job } = await baselined();
    const lines = Array.from({ length: 6_000 }, () => ({
      jobLineStatus: 'Scheduled for the next day'.repeat(3),
    }));
    const large = rig.upstream.createJob({ lines });
    rig.upstream.setStatus(job, 'Scheduled');
    expect(await rig.pollTypes()).toEqual([`job.status_changed ${job}`]);
    const problem = `Job ${large} is too large to be stored.`;
    expect(await rig.status()).toMatchObject({ state: 'tracking', problem });
  });
});

describe('Texts that are too long to be stored', () => {
  it('a job with a description of 250 kB has all of its events, with a truncated and marked text', async () => {
    const { rig } = await baselined();
    const created = rig.upstream.createJob({ description: LONG });
    const report = await rig.poll();
    expect(report.problem).toBeUndefined();
    const [event, ...others] = await rig.fresh();
    expect(others).toEqual([]);
    expect(event?.type).toBe('job.created');
    const { description } = (event?.data.job ?? {}) as { description: string };
    expect(description.endsWith(TRUNCATED)).toBe(true);
    expect(LONG.startsWith(description.slice(0, -TRUNCATED.length))).toBe(true);
    expect(description.isWellFormed()).toBe(true);
    expect(Buffer.byteLength(JSON.stringify(description))).toBeLessThanOrEqual(32_770);
    expect(await rig.status()).toMatchObject({ truncatedJobs: 1, unreadJobs: 0 });

    rig.upstream.setStatus(created, 'Scheduled');
    expect(await rig.pollTypes()).toEqual([`job.status_changed ${created}`]);
    // Beyond the maximum length.
    rig.upstream.edit(created, { description: `${LONG} and more` });
    expect(await rig.pollTypes(2)).toEqual([]);
    rig.upstream.edit(created, { description: `now ${LONG}` });
    expect(await rig.pollTypes()).toEqual([`job.updated ${created}`]);
    rig.upstream.close(created);
    expect(await rig.pollTypes()).toEqual([`job.locked ${created}`, `job.closed ${created}`]);
    expect(await rig.pollTypes(2)).toEqual([]);
    expect(await rig.status()).toMatchObject({ truncatedJobs: 0 });
  });

  it('a description that is too long only in the detail hides no event', async () => {
    const { rig, job } = await baselined('Shirts');
    rig.sandbox.freedom.set({ records: [{ region: 'us', jobNumber: job, descriptionLength: 1_000_000 }] });
    rig.upstream.setStatus(job, 'In production');
    expect(await rig.pollTypes()).toEqual([`job.status_changed ${job}`]);
    rig.upstream.dispatch(job);
    expect(await rig.pollTypes()).toEqual([`job.locked ${job}`, `job.dispatched ${job}`]);
  });
});
