/** What the random histories of model.tables.test.ts found at an API that uses the freedoms of its contract. */
import { describe, expect, it } from 'vitest';
import { createRig, type Rig } from '../support/tracker.ts';

const DAY = 86_400;

async function baselined(create: (rig: Rig) => void): Promise<Rig> {
  const rig = await createRig();
  create(rig);
  rig.pass(2 * DAY);
  await rig.poll();
  await rig.fresh();
  return rig;
}

describe('A dispatch that only the detail shows', () => {
  const freedom = { nulls: { fields: { 'active.dateOut': 1, 'active.tracking': 1 } } };

  it('is no news if it is older than the baseline, and neither are its parcels', async () => {
    const rig = await baselined(({ upstream, sandbox }) => {
      sandbox.freedom.set(freedom);
      upstream.createJob();
      upstream.dispatch(upstream.createJob(), {
        tracking: [{ trackingNumber: '1Z', trackingLink: null }],
      });
    });
    rig.pass(DAY);
    expect(await rig.pollTypes(3)).toEqual([]);
  });

  it('is news if it is later', async () => {
    const rig = await baselined(({ upstream, sandbox }) => {
      sandbox.freedom.set(freedom);
      upstream.createJob();
    });
    const [job = 0] = [...(await rig.index())].map(([jobNumber]) => jobNumber);
    rig.upstream.dispatch(job);
    expect(await rig.pollTypes()).toEqual([`job.locked ${job}`]);
    rig.pass(DAY);
    expect(await rig.pollTypes(3)).toContain(`job.dispatched ${job}`);
  });
});

describe('The list with closed jobs', () => {
  it('emits a job that came and went although the list is behind and a later job is already listed', async () => {
    const rig = await baselined(({ upstream }) => upstream.createJob());
    rig.sandbox.freedom.set({ lagSeconds: { closed: 20 } });
    rig.pass(3600);
    const gone = rig.upstream.createJob();
    rig.upstream.close(gone);
    const later = rig.upstream.createJob();
    rig.pass(-55);
    expect(await rig.pollTypes(20)).toEqual([
      `job.created ${later}`,
      `job.created ${gone}`,
      `job.closed ${gone}`,
    ]);
  });
});

describe('An order group', () => {
  it('is not complete while a member is open whose group only the active list shows', async () => {
    const rig = await baselined(({ upstream, sandbox }) => {
      sandbox.freedom.set({ nulls: { fields: { 'groups.orderGroup': 1, 'detail.orderGroup': 1 } } });
      for (let n = 0; n < 3; n += 1) upstream.createJob(n === 0 ? {} : { orderGroup: 'WEB-1' });
    });
    const [, a = 0, b = 0] = [...(await rig.index())].map(([jobNumber]) => jobNumber);
    rig.upstream.dispatch(a);
    const types = await rig.pollTypes(10);
    expect(types).toContain(`job.dispatched ${a}`);
    expect(types.filter((type) => type.startsWith('order_group.dispatched'))).toEqual([]);
    rig.upstream.dispatch(b);
    rig.pass(DAY);
    expect((await rig.pollTypes(3)).filter((type) => type.startsWith('order_group.dispatched'))).toHaveLength(
      1,
    );
  });
});

describe('A renamed status', () => {
  it('is no change of a new job whose entry has the former name and whose detail has the current one', async () => {
    const rig = await baselined(({ upstream }) => upstream.createJob());
    rig.world.renameStatus('us', 'In production', 'Printing');
    const views = ['active', 'closed', 'search', 'closedSearch', 'groups'] as const;
    rig.sandbox.freedom.set({
      statuses: {
        renames: [
          { region: 'us', former: 'In production', current: 'Printing', share: 1, views: [...views] },
        ],
      },
    });
    const job = rig.upstream.createJob({ status: 'Printing' });
    expect((await rig.pollTypes(3)).filter((type) => !type.startsWith('status'))).toEqual([
      `job.created ${job}`,
    ]);
  });
});
