/** Rule 18: one event when the last job of an order group that is not cancelled is dispatched. */
import { describe, expect, test } from 'vitest';
import { createMemoryTable } from '../../shared/storage/sqlite-table.ts';
import { createRig, type Rig, watchedTable } from '../support/tracker.ts';

/** Polls a minute apart, until a suspicion of the first one is confirmed. */
const CONFIRMED = 17;

async function baselined(
  groups: readonly (string | null)[],
  options: Parameters<typeof createRig>[0] = {},
): Promise<{ rig: Rig; jobs: number[] }> {
  const rig = await createRig(options);
  // Existing jobs without a group.
  rig.upstream.createJob();
  const jobs = groups.map((orderGroup) => rig.upstream.createJob({ status: 'Scheduled', orderGroup }));
  await rig.poll();
  await rig.fresh();
  return { rig, jobs };
}

/** The group events of the next polls. */
async function groupEvents(rig: Rig, polls = 1) {
  for (let n = 0; n < polls; n += 1) await rig.poll();
  const events = await rig.fresh();
  return events.flatMap(({ type, subject, data }) => {
    if (type !== 'order_group.dispatched') return [];
    const { jobs, excludedJobs, repeated } = data as unknown as {
      jobs: number[];
      excludedJobs: number[];
      repeated: boolean;
    };
    return [{ subject, jobs, excludedJobs, repeated }];
  });
}

/** Number of upstream requests for the group WEB-1. */
const asked = (rig: Rig): number =>
  rig.sandbox.requests.list().filter(({ query }) => query.orderGroup === 'WEB-1').length;

const complete = (
  jobs: readonly number[],
  more: { excludedJobs?: number[]; repeated?: boolean; name?: string } = {},
) => ({
  subject: `order-groups/${more.name ?? 'WEB-1'}`,
  jobs: [...jobs],
  excludedJobs: more.excludedJobs ?? [],
  repeated: more.repeated ?? false,
});

describe('an order group (rule 18)', () => {
  test('emits order_group.dispatched once, after the dispatch of its last member', async () => {
    const { rig, jobs } = await baselined(['WEB-1', 'WEB-1', 'WEB-1', 'WEB-2', null]);
    const [a = 0, b = 0, c = 0] = jobs;
    rig.upstream.dispatch(a);
    expect(await groupEvents(rig)).toEqual([]);
    rig.upstream.dispatch(b);
    expect(await groupEvents(rig)).toEqual([]);
    rig.upstream.dispatch(c);
    await rig.poll();
    const events = await rig.fresh();
    const types = ['job.locked', 'job.dispatched', 'order_group.dispatched'];
    expect(events.map(({ type }) => type)).toEqual(types);
    expect(events[2]).toMatchObject({
      subject: 'order-groups/WEB-1',
      data: { orderGroup: 'WEB-1', jobs: [a, b, c], excludedJobs: [], repeated: false },
    });
    rig.upstream.addTracking(a, { trackingNumber: 'T1' });
    for (const job of [a, b, c]) rig.upstream.close(job);
    expect(await groupEvents(rig, 10)).toEqual([]);
  });

  test('its event has the window in which it became complete', async () => {
    const { rig, jobs } = await baselined(['WEB-1', 'WEB-1']);
    const [a = 0, b = 0] = jobs;
    rig.upstream.dispatch(a);
    await rig.poll();
    await rig.fresh();
    const before = rig.now();
    rig.pass(5);
    rig.upstream.dispatch(b);
    await rig.poll();
    const event = (await rig.fresh()).find(({ type }) => type === 'order_group.dispatched');
    const observed = { since: new Date(before).toISOString(), at: event?.time, view: 'search' };
    expect(event?.data).toMatchObject({ observed });
  });

  test('its event is dated from the dispatch, not from another change in the same poll', async () => {
    const { rig, jobs } = await baselined(['WEB-1']);
    const [a = 0] = jobs;
    rig.sandbox.freedom.set({ nulls: { fields: { 'active.dateOut': 1, 'groups.dateOut': 0 } } });
    rig.upstream.setStatus(a, 'Scheduled again');
    await rig.poll();
    rig.upstream.dispatch(a);
    const dispatchedAt = rig.now();
    await rig.pollTypes(3);
    // Only now does the list show a reason to fetch the detail.
    rig.upstream.setStatus(a, 'Shipped');
    await rig.poll();
    const times = (await rig.fresh()).flatMap(({ type, data }) =>
      ['job.dispatched', 'order_group.dispatched'].includes(type)
        ? [Date.parse((data.observed as { since: string }).since)]
        : [],
    );
    expect(times).toHaveLength(2);
    expect(Math.max(...times)).toBeLessThanOrEqual(dispatchedAt);
  });

  test('members that never changed count: all of them are requested first', async () => {
    const rig = await createRig();
    const [early = 0, a = 0, b = 0] = Array.from({ length: 3 }, () =>
      rig.upstream.createJob({ orderGroup: 'WEB-1' }),
    );
    // In no list that the tracker ever reads by itself.
    rig.upstream.dispatch(early);
    rig.upstream.close(early);
    await rig.poll();
    await rig.fresh();
    rig.upstream.dispatch(a);
    expect(await groupEvents(rig)).toEqual([]);
    // With and without closed jobs.
    expect(asked(rig)).toBe(2);
    // From here on all members are known, so no request is sent before the last one changes.
    expect(await groupEvents(rig, 3)).toEqual([]);
    expect(asked(rig)).toBe(2);
    rig.upstream.dispatch(b);
    expect(await groupEvents(rig)).toEqual([complete([early, a, b])]);
    expect(asked(rig)).toBe(3);
  });

  test('cancelled members do not count, and the cancellation of the last open one completes it', async () => {
    const { rig, jobs } = await baselined(['WEB-1', 'WEB-1', 'WEB-1']);
    const [a = 0, b = 0, c = 0] = jobs;
    rig.upstream.dispatch(a);
    rig.upstream.dispatch(b);
    expect(await groupEvents(rig)).toEqual([]);
    rig.upstream.cancel(c);
    // A suspicion emits nothing.
    expect(await groupEvents(rig, 10)).toEqual([]);
    expect(await groupEvents(rig, CONFIRMED)).toEqual([complete([a, b], { excludedJobs: [c] })]);
  });

  test('a group with only cancelled jobs emits no order_group.dispatched', async () => {
    const { rig, jobs } = await baselined(['WEB-1', 'WEB-1']);
    for (const job of jobs) rig.upstream.cancel(job);
    expect(await groupEvents(rig, 2 * CONFIRMED)).toEqual([]);
  });

  test('a late member reopens it, and its dispatch emits the event again', async () => {
    const { rig, jobs } = await baselined(['WEB-1']);
    const [a = 0] = jobs;
    rig.upstream.dispatch(a);
    expect(await groupEvents(rig)).toEqual([complete([a])]);
    const late = rig.upstream.createJob({ orderGroup: 'WEB-1' });
    expect(await groupEvents(rig, 3)).toEqual([]);
    rig.upstream.dispatch(late);
    expect(await groupEvents(rig)).toEqual([complete([a, late], { repeated: true })]);
  });

  test('a member created and dispatched between two polls is a late member too', async () => {
    const { rig, jobs } = await baselined(['WEB-1']);
    const [a = 0] = jobs;
    rig.upstream.dispatch(a);
    await groupEvents(rig);
    const late = rig.upstream.createJob({ orderGroup: 'WEB-1' });
    rig.upstream.dispatch(late);
    expect(await groupEvents(rig)).toEqual([complete([a, late], { repeated: true })]);
  });

  test('a cancelled member that returned and was dispatched between two polls is a late member too', async () => {
    const { rig, jobs } = await baselined(['WEB-1', 'WEB-1']);
    const [a = 0, b = 0] = jobs;
    rig.upstream.cancel(a);
    rig.upstream.dispatch(b);
    expect(await groupEvents(rig, CONFIRMED)).toEqual([complete([b])]);
    rig.upstream.reopen(a);
    rig.upstream.dispatch(a);
    expect(await groupEvents(rig)).toEqual([complete([a, b], { repeated: true })]);
  });

  test('a revoked dispatch reopens it', async () => {
    const { rig, jobs } = await baselined(['WEB-1', 'WEB-1']);
    const [a = 0, b = 0] = jobs;
    for (const job of jobs) rig.upstream.dispatch(job);
    expect(await groupEvents(rig)).toEqual([complete([a, b])]);
    rig.upstream.clearDateOut(a);
    expect(await groupEvents(rig, 3)).toEqual([]);
    rig.upstream.dispatch(a);
    expect(await groupEvents(rig)).toEqual([complete([a, b], { repeated: true })]);
  });

  test('a job that moves to another group leaves its old one, which may complete it, and counts in the new one', async () => {
    const { rig, jobs } = await baselined(['WEB-1', 'WEB-1', 'WEB-2']);
    const [a = 0, b = 0, c = 0] = jobs;
    rig.upstream.dispatch(a);
    rig.upstream.dispatch(c);
    expect(await groupEvents(rig)).toEqual([complete([c], { name: 'WEB-2' })]);
    rig.upstream.edit(b, { orderGroup: 'WEB-2' });
    expect(await groupEvents(rig)).toEqual([complete([a])]);
    rig.upstream.dispatch(b);
    expect(await groupEvents(rig)).toEqual([complete([b, c], { name: 'WEB-2', repeated: true })]);
  });

  test('a group without jobs is remembered: a later member completes it again', async () => {
    const { rig, jobs } = await baselined(['WEB-1', 'WEB-2']);
    const [a = 0, b = 0] = jobs;
    rig.upstream.dispatch(a);
    await groupEvents(rig);
    rig.upstream.edit(a, { orderGroup: null });
    rig.upstream.edit(b, { orderGroup: 'WEB-1' });
    expect(await groupEvents(rig)).toEqual([]);
    rig.upstream.dispatch(b);
    expect(await groupEvents(rig)).toEqual([complete([b], { repeated: true })]);
  });

  test('a job that joins it after it has settled is ignored if its dispatch was revoked meanwhile', async () => {
    const { rig, jobs } = await baselined([null, 'WEB-1']);
    const [a = 0, b = 0] = jobs;
    rig.upstream.dispatch(a);
    rig.upstream.close(a);
    await rig.poll();
    rig.pass(8 * 86_400);
    expect(await groupEvents(rig, 2)).toEqual([]);
    rig.upstream.clearDateOut(a);
    rig.upstream.edit(a, { orderGroup: 'WEB-1' });
    rig.upstream.dispatch(b);
    expect(await groupEvents(rig)).toEqual([complete([b], { excludedJobs: [a] })]);
  });

  test('a member whose dispatch was revoked after it has settled is ignored', async () => {
    const { rig, jobs } = await baselined(['WEB-1', 'WEB-1']);
    const [a = 0, b = 0] = jobs;
    rig.upstream.dispatch(a);
    rig.upstream.close(a);
    await groupEvents(rig);
    rig.pass(8 * 86_400);
    expect(await groupEvents(rig, 2)).toEqual([]);
    rig.upstream.clearDateOut(a);
    rig.upstream.dispatch(b);
    expect(await groupEvents(rig)).toEqual([complete([b], { excludedJobs: [a] })]);
  });

  test('a group complete before tracking began is never emitted, nor one that an old hidden job completes', async () => {
    const rig = await createRig();
    const [a = 0, b = 0, hidden = 0] = Array.from({ length: 3 }, () =>
      rig.upstream.createJob({ orderGroup: 'WEB-1' }),
    );
    for (const job of [a, b, hidden]) rig.upstream.dispatch(job);
    rig.upstream.hide(hidden);
    rig.pass(1800);
    await rig.poll();
    await rig.fresh();
    rig.upstream.unhide(hidden);
    rig.upstream.addTracking(a, { trackingNumber: 'T1' });
    expect(await groupEvents(rig, 3)).toEqual([]);
  });

  test('a member whose dispatch is revoked and restored between two fetches does not keep it open', async () => {
    const rig = await createRig();
    const [a = 0, b = 0] = [1, 2].map(() => rig.upstream.createJob({ orderGroup: 'WEB-1' }));
    rig.upstream.dispatch(a);
    await groupEvents(rig);
    const { dateOut = null } = rig.upstream.job(a) ?? {};
    rig.upstream.dispatch(b);
    rig.sandbox.onRequest = ({ query }) => {
      rig.upstream.edit(a, { dateOut: query.orderGroup ? null : dateOut });
    };
    expect(await groupEvents(rig)).toEqual([]);
    rig.sandbox.onRequest = undefined;
    rig.upstream.edit(a, { dateOut });
    expect(await groupEvents(rig, 2)).toEqual([complete([a, b])]);
  });

  test('a request without an answer keeps it pending; the event is emitted after the answer', async () => {
    const { rig, jobs } = await baselined(['WEB-1', 'WEB-1']);
    const [a = 0, b = 0] = jobs;
    rig.upstream.dispatch(a);
    await rig.poll();
    rig.fault({ match: { query: { orderGroup: 'WEB-1' } }, fault: { kind: 'status', status: 500 } });
    rig.upstream.dispatch(b);
    // At once and with the next poll, then at growing distances.
    expect(await groupEvents(rig, 10)).toEqual([]);
    expect(asked(rig)).toBeLessThanOrEqual(1 + 2 * 4);
    rig.sandbox.faults.clear();
    rig.pass(1800);
    expect(await groupEvents(rig)).toEqual([complete([a, b])]);
  });

  test('is not requested forever without an answer; but again when a member changes', async () => {
    const { rig, jobs } = await baselined(['WEB-1']);
    const [a = 0] = jobs;
    rig.upstream.dispatch(a);
    rig.fault({ match: { query: { orderGroup: 'WEB-1' } }, fault: { kind: 'emptyList' } });
    for (let day = 0; day < 9; day += 1) {
      await rig.poll();
      rig.pass(86_400);
    }
    const before = asked(rig);
    await groupEvents(rig, 3);
    expect(asked(rig)).toBe(before);
    rig.sandbox.faults.clear();
    const late = rig.upstream.createJob({ orderGroup: 'WEB-1' });
    rig.upstream.dispatch(late);
    expect(await groupEvents(rig)).toEqual([complete([a, late])]);
  });

  test('is requested again after a pause of a week, even if the first request after it fails', async () => {
    const { rig, jobs } = await baselined(['WEB-1']);
    rig.fault({ match: { query: { orderGroup: 'WEB-1' } }, fault: { kind: 'status', status: 500 } });
    rig.upstream.dispatch(jobs[0] ?? 0);
    await rig.poll();
    rig.pass(8 * 86_400);
    await rig.poll();
    rig.sandbox.faults.clear();
    expect(await groupEvents(rig, 10)).toEqual([complete(jobs)]);
  });

  test('a member that page drift skips is not forgotten', async () => {
    const rig = await createRig();
    const jobs = Array.from({ length: 101 }, (_, n) =>
      rig.upstream.createJob({ orderGroup: 'WEB-1', orderGroupSequence: n + 1 }),
    );
    await rig.poll();
    await rig.fresh();
    const open = jobs.at(-1) ?? 0;
    for (const job of jobs) if (job !== open) rig.upstream.dispatch(job);
    rig.sandbox.onRequest = ({ query }) => {
      if (query.orderGroup !== 'WEB-1' || query.page !== '2') return;
      // The first of page 2, and the only undispatched one, is now the last of page 1.
      rig.sandbox.onRequest = undefined;
      rig.upstream.remove(jobs[0] ?? 0);
    };
    expect(await groupEvents(rig)).toEqual([]);
    expect(rig.sandbox.onRequest).toBeUndefined();
    rig.upstream.dispatch(open);
    expect((await groupEvents(rig, 3)).map((event) => event.jobs.length)).toEqual([100]);
  });

  test.each([
    ['an empty list', { kind: 'emptyList' } as const],
    ['another page', { kind: 'wrongPageEcho' } as const],
  ])('%s as an answer proves nothing', async (_, fault) => {
    const { rig, jobs } = await baselined(['WEB-1']);
    const [a = 0] = jobs;
    rig.fault({ match: { query: { orderGroup: 'WEB-1' } }, fault });
    rig.upstream.dispatch(a);
    expect(await groupEvents(rig, 2)).toEqual([]);
    rig.sandbox.faults.clear();
    rig.pass(300);
    expect(await groupEvents(rig)).toEqual([complete([a])]);
  });

  test("more pending groups than a poll's limit: the oldest come first, and none is omitted", async () => {
    const names = Array.from({ length: 45 }, (_, n) => `WEB-${n}`);
    const { rig, jobs } = await baselined(names);
    rig.fault({ match: { query: { orderGroup: 'WEB-0' } }, fault: { kind: 'status', status: 500 } });
    for (const job of jobs) rig.upstream.dispatch(job);
    const said = await groupEvents(rig, 3);
    expect(said.map(({ subject }) => subject).sort()).toEqual(
      names
        .slice(1)
        .map((name) => `order-groups/${name}`)
        .sort(),
    );
  });

  test("names are customers' texts: long and similar ones are separate groups", async () => {
    const long = 'ü'.repeat(600);
    const { rig, jobs } = await baselined([long, `${long}x`, 'a/b #1', 'web-1', 'WEB-1']);
    for (const job of jobs) rig.upstream.dispatch(job);
    const said = await groupEvents(rig);
    expect(said.map(({ jobs: [job] }) => job).sort()).toEqual([...jobs].sort());
    expect(said.map(({ subject }) => subject)).toContain('order-groups/a%2Fb%20%231');
  });

  test('a quiet poll does nothing for groups', async () => {
    const table = watchedTable(createMemoryTable());
    const { rig, jobs } = await baselined(['WEB-1', 'WEB-1'], { table });
    rig.upstream.dispatch(jobs[0] ?? 0);
    await rig.poll();
    await rig.poll();
    table.calls.length = 0;
    await rig.poll();
    expect(table.calls.map(({ of }) => of.join())).toEqual(['ACCOUNTS', 'STATUS', 'CELL', 'INDEX', 'STATUS']);
  });
});

describe('a poll that crashes while it emits a group', () => {
  test('at any write, before or after it: the event is emitted once', async () => {
    for (let at = 1; ; at += 1) {
      for (const when of ['before', 'after'] as const) {
        let writes = Number.NEGATIVE_INFINITY;
        const strike = (now: 'before' | 'after') => (call: { call: string }) => {
          if (call.call !== 'write' && call.call !== 'transact') return;
          if (now === 'before') writes += 1;
          if (now === when && writes === at) throw new Error('killed');
        };
        const table = watchedTable(createMemoryTable(), { before: strike('before'), after: strike('after') });
        const { rig, jobs } = await baselined(['WEB-1', 'WEB-1'], { table });
        for (const job of jobs) rig.upstream.dispatch(job);
        writes = 0;
        const died = await rig.poll().then(
          () => false,
          () => true,
        );
        if (!died) {
          expect(at).toBeGreaterThan(3);
          return;
        }
        expect(await groupEvents(rig, 3), `${when} write ${at}`).toEqual([complete(jobs)]);
      }
    }
  });
});
