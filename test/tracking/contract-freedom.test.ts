/**
 * Cases that the contract of the ordering API permits, and in which the tracker must neither miss an event nor emit a false
 * one.
 */
import { describe, expect, it } from 'vitest';
import { createRig, type Rig } from '../support/tracker.ts';

/** More polls than the 15 minutes that a confirmation takes. */
const CONFIRMED = 17;

async function baselined(create: (rig: Rig) => void): Promise<Rig> {
  const rig = await createRig();
  create(rig);
  await rig.poll();
  await rig.fresh();
  return rig;
}

describe('Job numbers', () => {
  it.each([-7, 0, 1_000_000_000_000, Number.MAX_SAFE_INTEGER])(
    'an entry with the number %d is unread, and the account is still polled',
    async (jobNumber) => {
      const rig = await baselined(({ upstream }) => upstream.createJob());
      rig.upstream.createJob({ jobNumber });
      const created = rig.upstream.createJob({ jobNumber: 500_000 });
      expect(await rig.poll()).toMatchObject({ outcome: 'complete', unread: 1 });
      expect((await rig.fresh()).map(({ type, subject }) => `${type} ${subject?.slice(5)}`)).toEqual([
        `job.created ${created}`,
      ]);
      expect(await rig.status()).toMatchObject({ unreadJobs: 1, consecutiveFailures: 0 });
    },
  );

  it.each(['close', 'cancel'] as const)(
    'a job whose number is a prefix of 1,250 others is found missing: %s',
    async (operation) => {
      const rig = await baselined(({ upstream }) => {
        for (const jobNumber of [6, 7, 8]) upstream.createJob({ jobNumber });
        for (let n = 0; n < 1_250; n += 1) upstream.createJob({ jobNumber: 70_000 + n });
      });
      rig.upstream[operation](7);
      const expected = operation === 'close' ? 'job.closed 7' : 'job.cancelled 7';
      expect(await rig.pollTypes(CONFIRMED)).toEqual([expected]);
    },
  );
});

describe('Search index', () => {
  it('emits job.cancelled although the index is 90 s behind and jobs are created continuously', async () => {
    const rig = await baselined(({ upstream }) => {
      for (let n = 0; n < 5; n += 1) upstream.createJob();
    });
    const [cancelled = 0] = [...(await rig.index())].map(([jobNumber]) => jobNumber);
    rig.upstream.cancel(cancelled);
    const rules: string[] = [];
    const emitted: string[] = [];
    for (let n = 0; n < CONFIRMED; n += 1) {
      const query = { searchText: String(rig.upstream.createJob()) };
      rules.push(
        rig.sandbox.faults.add({ match: { operation: 'activeJobs', query }, fault: { kind: 'emptyList' } }),
      );
      const indexed = rules.at(-3);
      if (indexed) rig.sandbox.faults.remove(indexed);
      emitted.push(...(await rig.pollTypes()));
    }
    expect(emitted.filter((event) => !event.startsWith('job.created'))).toEqual([
      `job.cancelled ${cancelled}`,
    ]);
    expect(emitted).toHaveLength(CONFIRMED + 1);
  });
});

describe('Timestamps', () => {
  it('emits one job.overdue for a due date, and no change, however the due date is spelled', async () => {
    const rig = await createRig();
    const due = '2026-03-01T10:00:00';
    const job = rig.upstream.createJob();
    await rig.poll();
    await rig.fresh();
    rig.upstream.edit(job, { dateDue: due });
    const emitted: string[] = [];
    for (const spelling of [
      due,
      due.replace('T', ' '),
      `${due}.000`,
      `${due}.0000000`,
      `${due}+13:00`,
      due,
    ]) {
      rig.upstream.edit(job, { dateDue: spelling });
      emitted.push(...(await rig.pollTypes(2)));
    }
    expect(emitted.filter((event) => !event.startsWith('job.overdue'))).toEqual([
      `job.due_date_changed ${job}`,
    ]);
    expect(emitted.filter((event) => event.startsWith('job.overdue'))).toHaveLength(1);
  });

  it('treats a date in year 1 as no date: the job is neither due nor dispatched', async () => {
    const rig = await baselined(({ upstream }) => upstream.createJob({ dateDue: null }));
    const [job = 0] = [...(await rig.index())].map(([jobNumber]) => jobNumber);
    rig.upstream.edit(job, { dateDue: '0001-01-01T00:00:00', dateOut: '0001-01-01T00:00:00' });
    // The sandbox locks a job with a date, whatever the date.
    expect(await rig.pollTypes(3)).toEqual([`job.locked ${job}`]);
    rig.upstream.close(job);
    expect(await rig.pollTypes(3)).toEqual([`job.closed ${job}`]);
  });
});
