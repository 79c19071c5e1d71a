/** Errors found by the random histories of model.tables.test.ts, with an API that uses the freedoms of its contract. */
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
    const types = await rig.pollTypes(20);
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

/** Polls, and returns the changes of a field that the log has for a job. */
async function getChanges(
  rig: Rig,
  job: number,
  field: string,
  polls: number,
): Promise<[unknown, unknown][]> {
  for (let n = 0; n < polls; n += 1) await rig.poll();
  return (await rig.fresh()).flatMap(({ subject, data }) => {
    const change = (data.changes as Record<string, { from: unknown; to: unknown }> | undefined)?.[field];
    return subject === `jobs/${job}` && change ? [[change.from, change.to] as [unknown, unknown]] : [];
  });
}

describe('A detail that is a quarter of an hour behind the list', () => {
  it('causes no correction of a dispatch date that the list has corrected before', async () => {
    const rig = await baselined(({ upstream, sandbox }) => {
      sandbox.freedom.set({ lagSeconds: { detail: 900 } });
      upstream.createJob();
      upstream.createJob();
    });
    const [job = 0] = [...(await rig.index())].map(([jobNumber]) => jobNumber);
    const dates: unknown[] = [null];
    for (const waitSeconds of [0, 900, DAY, 0]) {
      rig.pass(waitSeconds);
      rig.upstream.dispatch(job);
      for (const [from, to] of await getChanges(rig, job, 'dateOut', 1)) {
        expect(from).toBe(dates.at(-1));
        dates.push(to);
      }
    }
    expect(dates.slice(1)).toEqual([...new Set(dates.slice(1))].toSorted());
    expect(dates).toHaveLength(5);
    rig.pass(DAY);
    expect(await getChanges(rig, job, 'dateOut', 20)).toEqual([]);
  });
});

describe('A list that is behind', () => {
  it('leaves no value in the log that was changed back before the job was closed', async () => {
    const rig = await baselined(({ upstream }) => {
      upstream.createJob();
      upstream.createJob({ description: 'Front print' });
    });
    const [, job = 0] = [...(await rig.index())].map(([jobNumber]) => jobNumber);
    // Until the rotation has read the detail.
    rig.pass(DAY);
    await rig.pollTypes(5);
    rig.sandbox.freedom.set({ lagSeconds: { active: 90 } });
    rig.upstream.edit(job, { description: 'Back print' });
    rig.pass(30);
    rig.upstream.edit(job, { description: 'Front print' });
    rig.upstream.close(job);
    expect(await getChanges(rig, job, 'description', 1)).toEqual([['Front print', 'Back print']]);
    rig.pass(2 * 3600);
    expect(await getChanges(rig, job, 'description', 20)).toEqual([['Back print', 'Front print']]);
  });
});

describe('A job that was never listed', () => {
  it('emits nothing while its detail cannot be read, and no partial state after that', async () => {
    const rig = await baselined(({ upstream }) => upstream.createJob());
    const job = rig.upstream.createJob();
    rig.upstream.addTracking(job, { trackingNumber: '1Z', trackingLink: null });
    rig.upstream.close(job);
    rig.upstream.createJob();
    rig.sandbox.freedom.set({ records: [{ region: 'us', jobNumber: job, detail: 'error' }] });
    const types = await rig.pollTypes(20);
    rig.pass(2 * DAY);
    expect([...types, ...(await rig.pollTypes(10))].filter((type) => type.endsWith(` ${job}`))).toEqual([]);
  });

  it('has no changed order number because a detail omits it once', async () => {
    const rig = await baselined(({ upstream }) => upstream.createJob());
    const job = rig.upstream.createJob({ orderNumber: 'PO-1' });
    rig.upstream.close(job);
    rig.upstream.createJob();
    expect((await rig.pollTypes(20)).filter((type) => type.endsWith(` ${job}`))).toEqual([
      `job.created ${job}`,
      `job.closed ${job}`,
    ]);
    rig.sandbox.freedom.set({ nulls: { fields: { 'detail.orderNumber': 1 } } });
    rig.pass(DAY);
    expect(await rig.pollTypes(3)).toEqual([]);
    rig.sandbox.freedom.set({});
    rig.pass(DAY);
    expect(await rig.pollTypes(3)).toEqual([]);
  });
});

describe('A revoked dispatch', () => {
  it('has a time between the entry in the list with closed jobs and the list without the dispatch', async () => {
    const rig = await baselined(({ upstream }) => {
      upstream.createJob();
      upstream.createJob();
    });
    const [, job = 0] = [...(await rig.index())].map(([jobNumber]) => jobNumber);
    rig.sandbox.freedom.set({ records: [{ region: 'us', jobNumber: job, detail: 'error' }] });
    rig.upstream.dispatch(job, { tracking: [{ trackingNumber: '1Z', trackingLink: null }] });
    rig.upstream.close(job);
    expect(await rig.pollTypes(5)).toContain(`job.dispatched ${job}`);
    const clearedAt = rig.now();
    rig.upstream.clearDateOut(job);
    rig.upstream.removeTracking(job);
    rig.upstream.reopen(job);
    expect(await rig.pollTypes(5)).toEqual([`job.reopened ${job}`]);
    rig.sandbox.freedom.clear();
    rig.pass(900);
    await rig.poll();
    const gone = (await rig.fresh()).filter(({ type }) => /dispatch_revoked|tracking_removed/.test(type));
    expect(gone).toHaveLength(2);
    for (const { data } of gone) {
      const { since } = data.observed as { since: string };
      expect(Date.parse(since)).toBeLessThanOrEqual(clearedAt);
    }
  });

  it('is not emitted as a dispatch again by a detail that is behind', async () => {
    const rig = await baselined(({ upstream, sandbox }) => {
      sandbox.freedom.set({ lagSeconds: { detail: 300 } });
      upstream.createJob();
      upstream.createJob();
    });
    const [, job = 0] = [...(await rig.index())].map(([jobNumber]) => jobNumber);
    rig.upstream.dispatch(job);
    const types = await rig.pollTypes();
    rig.upstream.clearDateOut(job);
    // Each change of the status causes a fetch of the detail.
    for (let n = 0; n < 12; n += 1) {
      rig.upstream.setStatus(job, `Stage ${n}`);
      types.push(...(await rig.pollTypes()));
    }
    rig.pass(DAY);
    types.push(...(await rig.pollTypes(5)));
    expect(types.filter((type) => /dispatch/.test(type))).toEqual([
      `job.dispatched ${job}`,
      `job.dispatch_revoked ${job}`,
    ]);
  });
});

describe('The first detail', () => {
  it('that is behind the list causes no correction to a dispatch date that the list has corrected since', async () => {
    const rig = await createRig();
    const { upstream } = rig;
    upstream.createJob();
    const job = upstream.createJob();
    upstream.dispatch(job);
    rig.pass(DAY);
    rig.sandbox.freedom.set({ lagSeconds: { detail: 300 } });
    upstream.dispatch(job);
    await rig.poll();
    await rig.fresh();
    const changes: [unknown, unknown][] = [];
    // Each change of the status causes a fetch of the detail.
    for (let n = 0; n < 12; n += 1) {
      upstream.setStatus(job, `Stage ${n}`);
      if (n === 2) upstream.dispatch(job);
      changes.push(...(await getChanges(rig, job, 'dateOut', 1)));
    }
    const { dateOut } = upstream.jobDetail(job) ?? {};
    expect(changes).toEqual([[expect.any(String), dateOut]]);
  });
});

describe('A job that leaves the list while its detail is undecided', () => {
  it.each([
    ['another value', 'C'],
    ['the value before', 'A'],
  ])('has changed if it returns with %s', async (_, last) => {
    const rig = await baselined(({ upstream }) => {
      upstream.createJob();
      upstream.createJob({ description: 'A' });
    });
    const [, job = 0] = [...(await rig.index())].map(([jobNumber]) => jobNumber);
    rig.upstream.dispatch(job);
    await rig.pollTypes(2);
    rig.upstream.edit(job, { description: 'B' });
    expect(await getChanges(rig, job, 'description', 1)).toEqual([['A', 'B']]);
    rig.upstream.edit(job, { description: last });
    rig.upstream.hide(job);
    expect(await getChanges(rig, job, 'description', 1)).toEqual([]);
    rig.upstream.unhide(job);
    expect(await getChanges(rig, job, 'description', 20)).toEqual([['B', last]]);
  });
});
