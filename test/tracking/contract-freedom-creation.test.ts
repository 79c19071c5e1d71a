/** Whether a job is new if its date is not reliable: missing, without a time, or from a wrong clock. */
import { describe, expect, it } from 'vitest';
import { keys } from '../../shared/storage/schema.ts';
import { highestNumber } from '../../shared/tracking/job-numbers.ts';
import { pollAccount } from '../../shared/tracking/poll.ts';
import { createRig, type Rig } from '../support/tracker.ts';

const OUTLIER = 900_000_000;

/** A rig with a baseline of four jobs, and of further ones. */
async function baselined(before: (rig: Rig) => void = () => {}) {
  const rig = await createRig();
  for (let n = 0; n < 4; n += 1) rig.upstream.createJob();
  before(rig);
  await rig.poll();
  await rig.fresh();
  return rig;
}

/** Events of a job, without those of the account and of others. */
const getTypes = async (rig: Rig, job: number, polls = 3) =>
  (await rig.pollTypes(polls))
    .filter((event) => event.endsWith(` ${job}`))
    .map((event) => event.split(' ')[0]);

describe('A job with a higher number than all of the baseline is new', () => {
  it('without a date', async () => {
    const rig = await baselined();
    rig.sandbox.freedom.set({ nulls: { fields: { dateIn: 1 } } });
    expect(await getTypes(rig, rig.upstream.createJob())).toEqual(['job.created']);
  });

  it.each([-12, -5, 5])('with the clock of the ordering API %d minutes ahead', async (clockSkewMinutes) => {
    const rig = await baselined();
    rig.sandbox.freedom.set({ clockSkewMinutes });
    expect(await getTypes(rig, rig.upstream.createJob())).toEqual(['job.created']);
  });

  it('although one number of the baseline is far above the others', async () => {
    const rig = await baselined(({ upstream }) => upstream.createJob({ jobNumber: OUTLIER }));
    rig.sandbox.freedom.set({ nulls: { fields: { dateIn: 1 } } });
    expect(await getTypes(rig, rig.upstream.createJob({ jobNumber: 410_100 }))).toEqual(['job.created']);
  });

  it('although one old job with a higher number was hidden until now', async () => {
    const rig = await baselined();
    const hidden = rig.upstream.createJob({ jobNumber: 410_050, dateIn: '2025-06-01T00:00:00Z' });
    expect(await getTypes(rig, hidden)).toEqual([]);
    rig.sandbox.freedom.set({ nulls: { fields: { dateIn: 1 } } });
    expect(await getTypes(rig, rig.upstream.createJob({ jobNumber: 410_100 }))).toEqual(['job.created']);
  });

  it('although the process stopped before it stored one hidden old job with a higher number', async () => {
    const rig = await baselined(({ upstream }) => {
      for (let n = 0; n < 200; n += 1) upstream.createJob();
    });
    for (const { jobNumber } of rig.upstream.jobs()) rig.upstream.edit(jobNumber, { description: 'Changed' });
    rig.upstream.createJob({ jobNumber: 410_500, dateIn: '2025-06-01T00:00:00Z' });
    let commits = 0;
    const stopping = rig.depsOver({
      ...rig.table,
      async transact(...args) {
        commits += 1;
        if (commits > 1) throw new Error('stopped');
        return rig.table.transact(...args);
      },
    });
    rig.pass(60);
    await expect(pollAccount(stopping, rig.ref, rig.now() + 60_000)).rejects.toThrow('stopped');
    await rig.poll();
    rig.sandbox.freedom.set({ nulls: { fields: { dateIn: 1 } } });
    expect(await getTypes(rig, rig.upstream.createJob({ jobNumber: 410_600 }))).toEqual(['job.created']);
  });

  it('also if it was created and closed between two polls, with the origin that the list with closed jobs shows', async () => {
    const rig = await baselined();
    rig.sandbox.freedom.set({ nulls: { fields: { dateIn: 1 } } });
    const job = rig.upstream.createJob({ originCode: 'SHOP' });
    rig.upstream.close(job);
    for (let n = 0; n < 20; n += 1) await rig.poll();
    const created = (await rig.fresh()).find(({ type }) => type === 'job.created');
    expect(created).toMatchObject({ subject: `jobs/${job}`, data: { job: { originCode: 'SHOP' } } });
  });
});

describe('Half a year later', () => {
  const DAY_SECONDS = 86_400;

  it.each([
    ['with', 0],
    ['without', 1],
  ])(
    'a job %s a date whose history has expired is not new, although its number is far above the others',
    async (_, dateIn) => {
      const rig = await baselined();
      rig.sandbox.freedom.set({ nulls: { fields: { dateIn } } });
      const job = rig.upstream.createJob({ jobNumber: 415_000 });
      expect(await getTypes(rig, job)).toEqual(['job.created']);
      rig.upstream.dispatch(job);
      rig.upstream.close(job);
      for (let day = 0; day < 10; day += 1) {
        rig.pass(DAY_SECONDS);
        await rig.pollTypes(2);
      }
      expect((await rig.index()).get(job)).toBeUndefined();
      rig.pass(181 * DAY_SECONDS);
      await rig.table.write({ delete: keys.snapshot(rig.ref, job) });
      expect(await getTypes(rig, job, 5)).toEqual([]);
      expect(await getTypes(rig, rig.upstream.createJob({ jobNumber: 415_001 }))).toEqual(['job.created']);
    },
  );

  it('a job is new that was created early in a pause of polling', async () => {
    const rig = await baselined();
    rig.pass(DAY_SECONDS);
    const listed = rig.upstream.createJob();
    const closed = rig.upstream.createJob();
    rig.upstream.close(closed);
    rig.pass(300 * DAY_SECONDS);
    const events = await rig.pollTypes(3);
    expect(events).toEqual(expect.arrayContaining([`job.created ${listed}`, `job.created ${closed}`]));
  });
});

describe('Numbers are no evidence', () => {
  it('of a new job below them', async () => {
    const rig = await baselined();
    rig.sandbox.freedom.set({ nulls: { fields: { dateIn: 1 } } });
    expect(await getTypes(rig, rig.upstream.createJob({ jobNumber: 1_000 }))).toEqual([]);
  });

  it('once the dates of two jobs contradicted them', async () => {
    const rig = await baselined();
    rig.pass(7_200);
    for (const jobNumber of [500, 501]) rig.upstream.createJob({ jobNumber });
    await rig.pollTypes(2);
    rig.sandbox.freedom.set({ nulls: { fields: { dateIn: 1 } } });
    expect(await getTypes(rig, rig.upstream.createJob({ jobNumber: 410_100 }))).toEqual([]);
  });
});

it.each([
  [[], 0],
  [[7], 7],
  [[1, 2, 3], 3],
  [[1, 2, 3, 900], 900],
  [[1, 2, 90_000], 90_000],
  [[1, 2, 3, 90_000], 3],
  [[1, 40_000, 90_000], 90_000],
  [[3, 90_000, 2, 90_000, 1], 3],
])('the highest of the job numbers %j is %d', (numbers, highest) => {
  expect(highestNumber(numbers)).toBe(highest);
});
