/**
 * Lines and comments of a job: changes of fields that only the detail contains, while it lags, omits fields or is read again
 * after a restart.
 */
import { describe, expect, it } from 'vitest';
import type { JobEvent } from '../../shared/events/event.ts';
import { keys } from '../../shared/storage/schema.ts';
import { pollAccount } from '../../shared/tracking/poll.ts';
import { createRig, type Rig } from '../support/tracker.ts';

const DAY = 86_400;
const LINES = [
  { jobLineId: 901, quantity: 10, comments: 'Left chest', jobLineStatus: 'Scheduled' },
  { jobLineId: 902, quantity: 20, jobLineStatus: 'Scheduled' },
] as const;

/** An account with a job whose detail is known, two hours after the last change. */
async function tracked() {
  const rig = await createRig({ pollIntervalSeconds: 300 });
  const dateDue = rig.now() + 30 * DAY * 1000;
  const job = rig.upstream.createJob({ status: 'Scheduled', dateDue, comments: 'Rush', lines: [...LINES] });
  rig.upstream.createJob({ dateDue });
  await rig.poll();
  rig.upstream.setStatus(job, 'In production');
  await rig.poll();
  await rig.fresh();
  rig.pass(7_200);
  return Object.assign(rig, { job });
}

/** Changes the status, so that the detail is fetched, and returns the other events. */
async function afterFetch(rig: Rig & { readonly job: number }): Promise<readonly JobEvent[]> {
  const { masterJobStatus } = rig.upstream.job(rig.job) ?? {};
  rig.upstream.setStatus(rig.job, { master: masterJobStatus === 'Packing' ? 'Quality check' : 'Packing' });
  await rig.poll();
  const events = await rig.fresh();
  return events.filter(({ type }) => !type.includes('status'));
}

const getChanges = (events: readonly JobEvent[]) => events.map(({ type, data }) => [type, data.changes]);

describe('Lines and comments', () => {
  it('emits job.updated for added, removed and changed lines and comments, with the next detail of the job', async () => {
    const rig = await tracked();
    rig.upstream.edit(rig.job, {
      comments: 'No rush',
      lines: [
        { jobLineId: 901, quantity: 15, comments: 'Left chest' },
        { jobLineId: 903, quantity: 5, comments: 'Sleeve' },
      ],
    });
    expect(getChanges(await afterFetch(rig))).toEqual([
      [
        'job.updated',
        {
          comments: { from: 'Rush', to: 'No rush' },
          lines: {
            from: [
              { jobLineId: 901, quantity: 10, comments: 'Left chest' },
              { jobLineId: 902, quantity: 20, comments: null },
            ],
            to: [
              { jobLineId: 901, quantity: 15, comments: 'Left chest' },
              { jobLineId: 903, quantity: 5, comments: 'Sleeve' },
            ],
          },
        },
      ],
    ]);
    rig.pass(7_200);
    expect(await afterFetch(rig)).toEqual([]);
  });

  it('emits it within a day without another change of the job, and fetches no detail for it', async () => {
    const rig = await tracked();
    rig.pass(DAY);
    await rig.pollTypes(289);
    rig.sandbox.requests.clear();
    rig.upstream.edit(rig.job, { lines: [{ ...LINES[0], quantity: 11 }, LINES[1]] });
    expect(await rig.pollTypes(289)).toEqual([`job.updated ${rig.job}`]);
    const fetches = rig.sandbox.requests
      .list({ operation: 'job' })
      .filter((one) => one.jobNumber === rig.job);
    expect(fetches.length).toBeLessThanOrEqual(2);
  });

  it('a reordered list of lines, and null quantities, comments and lines, are no change', async () => {
    const rig = await tracked();
    rig.upstream.edit(rig.job, { lines: [...LINES].reverse() });
    expect(await afterFetch(rig)).toEqual([]);
    const givenNulls: Record<string, number>[] = [
      { 'detail.lines': 1, 'detail.comments': 1 },
      { 'detail.lines.comments': 1, 'detail.lines.jobLineStatus': 1 },
    ];
    for (const fields of givenNulls) {
      rig.sandbox.freedom.set({ nulls: { fields } });
      expect(await afterFetch(rig)).toEqual([]);
      rig.sandbox.freedom.clear();
      rig.pass(7_200);
      expect(await afterFetch(rig)).toEqual([]);
    }
    for (const lines of [null, undefined, [], [{ ...LINES[0], quantity: null }, LINES[1]]]) {
      rig.upstream.override(rig.job, { detail: { lines } });
      rig.pass(7_200);
      expect(await afterFetch(rig)).toEqual([]);
    }
  });

  it('a detail that falls behind after a change removes no line and adds none; the change is emitted once', async () => {
    const rig = await tracked();
    rig.sandbox.freedom.set({ lagSeconds: { detail: 1 } });
    rig.pass(60);
    rig.upstream.edit(rig.job, { comments: 'New', lines: [...LINES, { jobLineId: 903 }] });
    rig.pass(60);
    expect(getChanges(await afterFetch(rig))).toHaveLength(1);
    rig.sandbox.freedom.set({ lagSeconds: { detail: 1_800 } });
    expect(await afterFetch(rig)).toEqual([]);
    expect(await afterFetch(rig)).toEqual([]);
    rig.sandbox.freedom.set({ lagSeconds: { detail: 1 } });
    expect(await afterFetch(rig)).toEqual([]);
    rig.pass(7_200);
    expect(await afterFetch(rig)).toEqual([]);
  });

  it('a change that is taken back within the hour is emitted with a later detail', async () => {
    const rig = await tracked();
    rig.upstream.edit(rig.job, { comments: 'New' });
    expect(await afterFetch(rig)).toHaveLength(1);
    rig.upstream.edit(rig.job, { comments: 'Rush' });
    expect(await afterFetch(rig)).toEqual([]);
    rig.pass(3_600);
    expect(getChanges(await afterFetch(rig))).toEqual([
      ['job.updated', { comments: { from: 'New', to: 'Rush' } }],
    ]);
  });

  it('a process that dies at any write emits the change once', async () => {
    for (const death of ['before', 'after'] as const) {
      const rig = await tracked();
      rig.upstream.edit(rig.job, { comments: 'New' });
      rig.upstream.setStatus(rig.job, { master: 'Packing' });
      const { table } = rig;
      const dying: typeof table = {
        ...table,
        get: (key) => table.get(key),
        getMany: (wanted) => table.getMany(wanted),
        query: (query) => table.query(query),
        write: (write) => table.write(write),
        async transact(writes, token) {
          if (death === 'after') await table.transact(writes, token);
          throw new Error('killed');
        },
      };
      rig.pass(300);
      await pollAccount(rig.depsOver(dying), rig.ref, rig.now() + 600_000).catch(() => undefined);
      await rig.poll();
      const events = await rig.fresh();
      expect(events.filter(({ type }) => type === 'job.updated')).toHaveLength(1);
    }
  });

  it('a snapshot that the former release stored is read without an event, and no later change is lost', async () => {
    const rig = await tracked();
    const item = await rig.table.get(keys.snapshot(rig.ref, rig.job));
    const snapshot = JSON.parse(String(item?.snapshot));
    delete snapshot.detail.comments;
    for (const line of snapshot.detail.lines) {
      delete line.quantity;
      delete line.comments;
    }
    if (item) await rig.table.write({ put: { ...item, snapshot: JSON.stringify(snapshot) } });
    expect(await afterFetch(rig)).toEqual([]);
    rig.upstream.edit(rig.job, { comments: 'New', lines: [{ ...LINES[0], quantity: 11 }] });
    rig.pass(7_200);
    expect(getChanges(await afterFetch(rig))).toMatchObject([
      ['job.updated', { comments: { to: 'New' }, lines: { from: [{}, {}], to: [{ quantity: 11 }] } }],
    ]);
  });

  it('long comments of 300 lines are cut off, and the job is stored', async () => {
    const rig = await tracked();
    const lines = Array.from({ length: 300 }, (_, n) => ({
      ...{ jobLineId: 1000 + n, quantity: 1 },
      comments: '😀'.repeat(500),
    }));
    rig.upstream.edit(rig.job, { comments: 'é'.repeat(50_000), lines });
    const [updated] = await afterFetch(rig);
    expect(JSON.stringify(updated).length).toBeLessThan(100_000);
    expect(await rig.snapshot(rig.job)).toMatchObject({
      detail: { comments: expect.stringMatching(/é… \[truncated\]$/) },
    });
    rig.pass(7_200);
    expect(await afterFetch(rig)).toEqual([]);
  });
});
