/** Order groups of which only some jobs are dispatched: emitted once, when the ordering API and the log agree (rule 18). */
import { describe, expect, it } from 'vitest';
import { createMemoryTable } from '../../shared/storage/sqlite-table.ts';
import { createRig, type Rig, watchedTable } from '../support/tracker.ts';

/** More polls than the 15 minutes that a confirmation takes. */
const CONFIRMED = 17;

type Options = Parameters<typeof createRig>[0];

/** An account with three jobs of the group WEB-1, known from the baseline or created after it. */
async function group(known: 'baseline' | 'created', options: Options = {}) {
  const rig = await createRig(options);
  rig.upstream.createJob();
  if (known === 'created') await rig.poll();
  const jobs = [1, 2, 3].map((orderGroupSequence) =>
    rig.upstream.createJob({ status: 'Scheduled', orderGroup: 'WEB-1', orderGroupSequence }),
  );
  await rig.poll();
  await rig.fresh();
  const [a = 0, b = 0, c = 0] = jobs;
  return { rig, jobs, a, b, c };
}

/** The group events of the next polls: type and jobs. */
async function groupEvents(rig: Rig, polls = 1) {
  for (let n = 0; n < polls; n += 1) await rig.poll();
  const events = await rig.fresh();
  return events.flatMap(({ type, data: { jobs, openJobs } }) =>
    type.startsWith('order_group.') ? [[type.slice(12), jobs, ...(openJobs ? [openJobs] : [])]] : [],
  );
}

const asked = (rig: Rig) => rig.sandbox.requests.list().filter(({ view }) => view === 'groups').length;

describe('A partially dispatched order group', () => {
  it.each(['baseline', 'created'] as const)(
    'is emitted once, with its first dispatch, and never after order_group.dispatched: jobs from %s',
    async (known) => {
      const { rig, a, b, c } = await group(known);
      const before = new Date(rig.now()).toISOString();
      rig.upstream.dispatch(b);
      await rig.poll();
      const event = (await rig.fresh()).find(({ type }) => type === 'order_group.partially_dispatched');
      expect(event).toMatchObject({
        subject: 'order-groups/WEB-1',
        data: {
          ...{ orderGroup: 'WEB-1', jobs: [b], openJobs: [a, c], excludedJobs: [] },
          ...{ dispatchedCount: 1, openCount: 2, observed: { since: before, at: event?.time } },
        },
      });
      expect(asked(rig)).toBe(1);
      rig.upstream.dispatch(a);
      expect(await groupEvents(rig, 3)).toEqual([]);
      rig.upstream.dispatch(c);
      expect(await groupEvents(rig, 3)).toEqual([['dispatched', [a, b, c]]]);
      expect(asked(rig)).toBe(2);
      rig.upstream.createJob({ orderGroup: 'WEB-1' });
      rig.upstream.clearDateOut(a);
      expect(await groupEvents(rig, 4)).toEqual([]);
    },
  );

  it.each(['baseline', 'created'] as const)(
    'is not emitted if all jobs are dispatched between two polls: jobs of the %s',
    async (known) => {
      const { rig, jobs } = await group(known);
      for (const job of jobs) rig.upstream.dispatch(job);
      expect(await groupEvents(rig, 3)).toEqual([['dispatched', jobs]]);
    },
  );

  it('waits until the search for its jobs shows the dispatch', async () => {
    const { rig, a, b, c } = await group('created');
    rig.sandbox.freedom.set({ lagSeconds: { groups: 240 } });
    rig.pass(600);
    rig.upstream.dispatch(a);
    expect(await groupEvents(rig, 3)).toEqual([]);
    expect(await groupEvents(rig, 12)).toEqual([['partially_dispatched', [a], [b, c]]]);
  });

  it('is not emitted late: if the search shows the first dispatch after the last one, only order_group.dispatched is', async () => {
    const { rig, jobs, a, b, c } = await group('created');
    rig.sandbox.freedom.set({ lagSeconds: { groups: 600 } });
    rig.pass(600);
    rig.upstream.dispatch(a);
    expect(await groupEvents(rig)).toEqual([]);
    for (const job of [b, c]) rig.upstream.dispatch(job);
    expect(await groupEvents(rig, 90)).toEqual([['dispatched', jobs]]);
  });

  it('a search that is ahead of the list is no contradiction: the event follows with the next poll', async () => {
    const { rig, a, b, c } = await group('created');
    rig.sandbox.freedom.set({ lagSeconds: { active: 90 } });
    rig.pass(600);
    rig.upstream.dispatch(a);
    rig.pass(80);
    rig.upstream.dispatch(b);
    const emitted = await groupEvents(rig, 8);
    expect(emitted).toEqual([['partially_dispatched', [a, b], [c]]]);
  });

  it('is not emitted if a job was dispatched before tracking began', async () => {
    const rig = await createRig();
    const [early = 0, listed = 0, a = 0, b = 0] = [1, 2, 3, 4].map((n) =>
      rig.upstream.createJob({ orderGroup: n === 2 ? 'WEB-2' : 'WEB-1' }),
    );
    const other = rig.upstream.createJob({ orderGroup: 'WEB-2' });
    rig.upstream.createJob({ orderGroup: 'WEB-2' });
    rig.upstream.dispatch(early);
    rig.upstream.close(early);
    rig.upstream.dispatch(listed);
    await rig.poll();
    await rig.fresh();
    for (const job of [a, other]) rig.upstream.dispatch(job);
    expect(await groupEvents(rig, 5)).toEqual([]);
    rig.upstream.dispatch(b);
    expect(await groupEvents(rig, 3)).toEqual([['dispatched', [early, a, b]]]);
  });

  it('an open job whose outcome is unknown is no proof: the group completes when it was cancelled or closed', async () => {
    for (const end of ['cancel', 'close'] as const) {
      const { rig, a, b, c } = await group('created');
      rig.upstream.dispatch(a);
      for (const job of [b, c]) rig.upstream[end](job);
      expect(await groupEvents(rig, CONFIRMED * 2)).toEqual([['dispatched', [a]]]);
    }
  });

  it('a cancelled job is among the excluded ones if others are open', async () => {
    const { rig, a, b, c } = await group('created');
    rig.upstream.cancel(c);
    expect(await groupEvents(rig, CONFIRMED)).toEqual([]);
    rig.upstream.dispatch(a);
    await rig.poll();
    const event = (await rig.fresh()).find(({ type }) => type.startsWith('order_group.'));
    expect(event?.data).toMatchObject({ jobs: [a], openJobs: [b], excludedJobs: [c], openCount: 1 });
  });

  it('is emitted again only after all of its dispatches were revoked', async () => {
    const { rig, a, b, c } = await group('created');
    rig.upstream.dispatch(a);
    expect(await groupEvents(rig, 2)).toHaveLength(1);
    rig.upstream.dispatch(b);
    expect(await groupEvents(rig, 3)).toEqual([]);
    rig.upstream.clearDateOut(a);
    expect(await groupEvents(rig, 3)).toEqual([]);
    rig.upstream.clearDateOut(b);
    expect(await groupEvents(rig, 3)).toEqual([]);
    rig.upstream.dispatch(c);
    expect(await groupEvents(rig, 3)).toEqual([['partially_dispatched', [c], [a, b]]]);
  });

  it('an unanswered search delays it; a failed search does not delay order_group.dispatched', async () => {
    const { rig, jobs, a, b, c } = await group('created');
    rig.fault({ match: { query: { orderGroup: 'WEB-1' } }, fault: { kind: 'emptyList' } });
    rig.upstream.dispatch(a);
    expect(await groupEvents(rig, 10)).toEqual([]);
    rig.sandbox.faults.clear();
    for (const job of [b, c]) rig.upstream.dispatch(job);
    expect(await groupEvents(rig)).toEqual([['dispatched', jobs]]);
  });

  it('a poll that dies at any write emits it once', async () => {
    for (let at = 1; ; at += 1) {
      for (const when of ['before', 'after'] as const) {
        let writes = Number.NEGATIVE_INFINITY;
        const strike = (now: 'before' | 'after') => (call: { call: string }) => {
          if (call.call !== 'write' && call.call !== 'transact') return;
          if (now === 'before') writes += 1;
          if (now === when && writes === at) throw new Error('killed');
        };
        const table = watchedTable(createMemoryTable(), { before: strike('before'), after: strike('after') });
        const { rig, a, b, c } = await group('created', { table });
        rig.upstream.dispatch(a);
        writes = 0;
        const died = await rig.poll().then(
          () => false,
          () => true,
        );
        if (!died) {
          expect(at).toBeGreaterThan(2);
          return;
        }
        const expected = [['partially_dispatched', [a], [b, c]]];
        expect(await groupEvents(rig, 3), `${when} write ${at}`).toEqual(expected);
      }
    }
  });
});
