/** Order groups, and returned jobs, with incomplete views of the ordering API. */
import { describe, expect, it } from 'vitest';
import type { FreedomSettings } from '../../sandbox/http/freedom.ts';
import { keys } from '../../shared/storage/schema.ts';
import { createRig, type Rig } from '../support/tracker.ts';

/** More polls than the 15 minutes that a confirmation takes. */
const CONFIRMED = 17;

/** An account with two jobs of the group WEB-1 and another job, after its baseline. */
async function group(
  options: { freedom?: FreedomSettings; leavesListOnDispatch?: boolean } = {},
): Promise<{ rig: Rig; a: number; b: number }> {
  const { freedom, ...more } = options;
  const rig = await createRig(more);
  rig.upstream.createJob();
  const [a = 0, b = 0] = [1, 2].map((orderGroupSequence) =>
    rig.upstream.createJob({
      status: 'Scheduled',
      orderGroup: 'WEB-1',
      orderGroupSequence,
      orderNumber: 'PO-1',
    }),
  );
  if (freedom) rig.sandbox.freedom.set(freedom);
  await rig.poll();
  await rig.fresh();
  return { rig, a, b };
}

/** The group events of the next polls, and the number of all other events by type. */
async function groupEvents(rig: Rig, polls = 1) {
  for (let n = 0; n < polls; n += 1) await rig.poll();
  const events = await rig.fresh();
  return {
    groups: events.flatMap(({ type, data }) => (type === 'order_group.dispatched' ? [data] : [])),
    types: [...new Set(events.map(({ type }) => type))].sort(),
  };
}

describe('Order group at departure', () => {
  const NULL_IN_DETAIL: FreedomSettings = {
    nulls: {
      fields: { 'detail.orderGroup': 1, 'detail.orderGroupSequence': 1, 'detail.orderNumber': 1 },
    },
  };

  it('a group, sequence and order number that only the list contains stay known after the departure', async () => {
    const { rig, a, b } = await group({ freedom: NULL_IN_DETAIL, leavesListOnDispatch: true });
    rig.upstream.dispatch(a);
    expect(await groupEvents(rig)).toEqual({
      groups: [],
      types: ['job.closed', 'job.dispatched', 'order_group.partially_dispatched'],
    });
    rig.upstream.dispatch(b);
    await rig.poll();
    const events = await rig.fresh();
    const types = ['job.dispatched', 'job.closed', 'order_group.dispatched'];
    expect(events.map(({ type }) => type)).toEqual(types);
    expect(events[0]?.data).toMatchObject({
      job: { orderGroup: 'WEB-1', orderGroupSequence: 2, orderNumber: 'PO-1' },
    });
    expect(events[2]?.data).toMatchObject({ orderGroup: 'WEB-1', jobs: [a, b], excludedJobs: [] });
    const stored = await rig.table.get(keys.snapshot(rig.ref, a));
    expect(JSON.stringify(stored)).toContain('WEB-1');
    rig.pass(600);
    expect(await groupEvents(rig, 8)).toEqual({ groups: [], types: [] });
  });

  it('a detail that loses the group after the departure is no change, another group is one', async () => {
    const { rig, a } = await group({ leavesListOnDispatch: true });
    rig.upstream.dispatch(a);
    await groupEvents(rig);
    rig.sandbox.freedom.set(NULL_IN_DETAIL);
    rig.pass(600);
    expect(await groupEvents(rig, 2)).toEqual({ groups: [], types: [] });
    expect((await rig.snapshot(a))?.detail).toMatchObject({ orderGroup: 'WEB-1', orderNumber: 'PO-1' });
    rig.sandbox.freedom.clear();
    rig.upstream.edit(a, { orderGroup: 'WEB-2' });
    rig.pass(4000);
    expect(await groupEvents(rig, 2)).toMatchObject({
      groups: [{ orderGroup: 'WEB-2', jobs: [a] }],
      types: ['job.updated', 'order_group.dispatched'],
    });
  });

  it('a group whose jobs show no group in the search for it is complete with its known jobs', async () => {
    const { rig, a, b } = await group({ freedom: { nulls: { fields: { 'groups.orderGroup': 1 } } } });
    for (const job of [a, b]) rig.upstream.dispatch(job);
    expect((await groupEvents(rig)).groups).toMatchObject([{ jobs: [a, b], excludedJobs: [] }]);
  });
});

describe('A job that moves to another group', () => {
  it('does not return to the former one while the search for its jobs is behind', async () => {
    const { rig, a, b } = await group();
    rig.pass(900);
    rig.sandbox.freedom.set({ lagSeconds: { groups: 900 } });
    rig.upstream.edit(b, { orderGroup: 'WEB-2' });
    rig.upstream.dispatch(a);
    expect((await groupEvents(rig, 60)).groups).toMatchObject([
      { orderGroup: 'WEB-1', jobs: [a], excludedJobs: [] },
    ]);
  });
});

describe('Members that close without dispatch', () => {
  it('the closing of the last open member completes the group: it is among the excluded jobs', async () => {
    const { rig, a, b } = await group();
    rig.upstream.dispatch(a);
    expect((await groupEvents(rig)).groups).toEqual([]);
    rig.upstream.close(b);
    expect((await groupEvents(rig, 2)).groups).toMatchObject([
      { jobs: [a], excludedJobs: [b], repeated: false },
    ]);
  });

  it('a member that was closed before does not keep the group open', async () => {
    const { rig, a, b } = await group();
    rig.upstream.close(b);
    expect(await groupEvents(rig, 2)).toEqual({ groups: [], types: ['job.closed'] });
    rig.upstream.dispatch(a);
    expect((await groupEvents(rig, 2)).groups).toMatchObject([{ jobs: [a], excludedJobs: [b] }]);
  });

  it('a member that was closed before tracking began does not keep the group open', async () => {
    const rig = await createRig();
    const [closed = 0, a = 0, b = 0] = [1, 2, 3].map(() => rig.upstream.createJob({ orderGroup: 'WEB-1' }));
    rig.upstream.close(closed);
    await rig.poll();
    await rig.fresh();
    rig.upstream.dispatch(a);
    expect((await groupEvents(rig, 3)).groups).toEqual([]);
    rig.upstream.dispatch(b);
    expect((await groupEvents(rig, 2)).groups).toMatchObject([
      { jobs: [a, b], excludedJobs: [closed], repeated: false },
    ]);
  });

  it('a late dispatch of a closed member emits the event again with it', async () => {
    const { rig, a, b } = await group();
    rig.upstream.dispatch(a);
    rig.upstream.close(b);
    expect((await groupEvents(rig, 2)).groups).toMatchObject([{ jobs: [a], excludedJobs: [b] }]);
    rig.upstream.dispatch(b);
    rig.pass(600);
    expect((await groupEvents(rig, 2)).groups).toMatchObject([
      { jobs: [a, b], excludedJobs: [], repeated: true },
    ]);
  });

  it('a group with only closed jobs emits no event', async () => {
    const { rig, a, b } = await group();
    for (const job of [a, b]) rig.upstream.close(job);
    expect(await groupEvents(rig, 4)).toEqual({ groups: [], types: ['job.closed'] });
  });
});

describe('A job after a return', () => {
  it.each([true, false])(
    'is not cancelled when its dispatch is cleared and it is locked and in no list (left before: %s)',
    async (leftBefore) => {
      const { rig, a } = await group();
      rig.upstream.dispatch(a);
      if (leftBefore) rig.upstream.hide(a);
      expect((await groupEvents(rig, 2)).types).toContain('job.dispatched');
      rig.upstream.clearDateOut(a);
      rig.upstream.lock(a, 'Returned.');
      if (!leftBefore) {
        expect((await groupEvents(rig, 3)).types).toEqual(['job.dispatch_revoked']);
      }
      rig.upstream.hide(a);
      rig.pass(600);
      const { types } = await groupEvents(rig, CONFIRMED * 2);
      expect(types).toEqual(leftBefore ? ['job.dispatch_revoked'] : []);
      rig.pass(86_400);
      expect((await groupEvents(rig, CONFIRMED)).types).toEqual([]);
    },
  );

  it('is cancelled like any other once it was back in work', async () => {
    const { rig, a } = await group();
    rig.upstream.dispatch(a);
    await groupEvents(rig, 2);
    rig.upstream.clearDateOut(a);
    expect((await groupEvents(rig, 3)).types).toEqual(['job.dispatch_revoked', 'job.unlocked']);
    rig.upstream.cancel(a);
    expect((await groupEvents(rig, CONFIRMED)).types).toContain('job.cancelled');
  });
});
