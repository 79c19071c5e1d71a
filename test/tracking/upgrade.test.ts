/** Newer code compares more fields than older code stored (rule 6): it takes over without events, and no change is lost. */
import { describe, expect, test } from 'vitest';
import { keys, snapshotPk } from '../../shared/storage/schema.ts';
import { createMemoryTable } from '../../shared/storage/sqlite-table.ts';
import type { Table } from '../../shared/storage/table.ts';
import { pollAccount } from '../../shared/tracking/poll.ts';
import type { TrackingSettings } from '../../shared/tracking/schedule.ts';
import { sized } from '../support/runs.ts';
import { createRig, type Rig, watchedTable } from '../support/tracker.ts';

const OLD = 1;
const NEW = 2;
/** Fields that the older code did not know. */
const LIST_FIELDS = ['originCode', 'mustDate'];
const DETAIL_FIELDS = ['invoiceNumber', 'mustDate'];

/** Polls with newer code. */
function upgraded(rig: Rig): Rig {
  const deps = { ...rig.deps, projectionVersion: NEW };
  const poll: Rig['poll'] = () => {
    rig.pass(60);
    return pollAccount(deps, rig.ref, rig.now() + 600_000);
  };
  return {
    ...rig,
    poll,
    async pollTypes(times = 1) {
      for (let n = 0; n < times; n += 1) await poll();
      return (await rig.fresh()).map(({ type, subject }) => (subject ? `${type} ${subject.slice(5)}` : type));
    },
  };
}

/** Converts the stored state to that of the older code. */
async function forget(rig: Rig, table: Table): Promise<void> {
  for (const item of await table.query({ pk: snapshotPk(rig.ref) })) {
    const snapshot = JSON.parse(String(item.snapshot)) as Record<
      'list' | 'detail',
      Record<string, unknown> | null
    >;
    for (const field of LIST_FIELDS) delete snapshot.list?.[field];
    for (const field of DETAIL_FIELDS) delete snapshot.detail?.[field];
    await table.write({ put: { ...item, snapshot: JSON.stringify(snapshot) } });
  }
}

/** Jobs that the older code knows: some from the list only, one with its detail too, and one that settles. */
async function stored(jobs = 6, settings: Partial<TrackingSettings> = {}) {
  let strike = (_: 'before' | 'after', __: string): void => undefined;
  const inner = createMemoryTable();
  const table = watchedTable(inner, {
    before: ({ call }) => strike('before', call),
    after: ({ call }) => strike('after', call),
  });
  const rig = await createRig({ table, settings });
  const old = { ...rig.deps, projectionVersion: OLD };
  const poll = () => {
    rig.pass(60);
    return pollAccount(old, rig.ref, rig.now() + 600_000);
  };
  const numbers = Array.from({ length: jobs }, () => rig.upstream.createJob({ status: 'Scheduled' }));
  await poll();
  const [, detailed = 0, settling = 0] = numbers;
  rig.upstream.setStatus(detailed, 'In production');
  rig.upstream.dispatch(settling);
  rig.upstream.close(settling);
  await poll();
  await rig.fresh();
  await forget(rig, inner);
  return {
    rig,
    numbers,
    table,
    pollOld: poll,
    onWrite(hook: (when: 'before' | 'after') => void) {
      strike = (when, call) => {
        if (call === 'write' || call === 'transact') hook(when);
      };
    },
  };
}

const counts = async (rig: Rig) => (await rig.table.get(keys.head(rig.ref)))?.projectionVersion;

describe('newer code that compares more fields (rule 6)', () => {
  test('emits nothing for fields it observes for the first time, and their changes afterwards', async () => {
    const { rig: before, numbers } = await stored();
    const rig = upgraded(before);
    const [listed = 0, detailed = 0, settling = 0] = numbers;
    for (const job of numbers) rig.upstream.edit(job, { mustDate: true });
    rig.upstream.invoice(settling);
    expect(await rig.pollTypes(10)).toEqual([]);
    for (const job of [listed, detailed]) rig.upstream.edit(job, { mustDate: false });
    expect(await rig.pollTypes()).toEqual([listed, detailed].map((job) => `job.due_date_changed ${job}`));
  });

  test('loses no change of the others, in either view', async () => {
    const { rig: before, numbers } = await stored();
    const rig = upgraded(before);
    const [listed = 0, detailed = 0, settling = 0, leaving = 0] = numbers;
    rig.upstream.setStatus(listed, 'Quality check');
    rig.upstream.edit(detailed, { description: 'Another', mustDate: true });
    rig.upstream.addTracking(settling, { trackingNumber: 'T1' });
    rig.upstream.dispatch(leaving);
    rig.upstream.close(leaving);
    const created = rig.upstream.createJob();
    const types = await rig.pollTypes(8);
    expect(types.filter((type) => !type.startsWith('job.locked')).sort()).toEqual(
      [
        `job.status_changed ${listed}`,
        `job.updated ${detailed}`,
        `job.tracking_added ${settling}`,
        `job.dispatched ${leaving}`,
        `job.closed ${leaving}`,
        `job.created ${created}`,
      ].sort(),
    );
  });

  test('is quiet again at once: the next poll reads no snapshot', async () => {
    const { rig: before, table } = await stored();
    const rig = upgraded(before);
    await rig.poll();
    await rig.poll();
    table.calls.length = 0;
    await rig.poll();
    expect(table.calls.map(({ of }) => of.join())).toEqual(['ACCOUNTS', 'STATUS', 'CELL', 'INDEX', 'STATUS']);
  });

  test('takes over a limited number per poll; until all are, `observedThrough` does not advance, and nothing is lost', async () => {
    const { rig: before, numbers } = await stored(250, { upgradesPerPoll: 100 });
    const rig = upgraded(before);
    const seen = (await rig.status()).lastGoodCrawlStartedAt;
    for (const job of numbers) rig.upstream.edit(job, { mustDate: true });
    const last = numbers.at(-1) ?? 0;
    const first = numbers[3] ?? 0;
    for (const job of [first, last]) rig.upstream.setStatus(job, 'Quality check');
    expect([(await rig.poll()).outcome, (await rig.poll()).outcome]).toEqual(['partial', 'partial']);
    expect(await rig.status()).toMatchObject({ state: 'tracking', lastGoodCrawlStartedAt: seen });
    expect(await rig.poll()).toMatchObject({ outcome: 'complete' });
    const types = (await rig.fresh()).map(({ type, subject }) => `${type} ${subject?.slice(5)}`);
    expect(types.sort()).toEqual([first, last].map((job) => `job.status_changed ${job}`).sort());
    expect((await rig.status()).lastGoodCrawlStartedAt).toBeGreaterThan(seen ?? 0);
  });

  test('prevents older code from polling from its first write on', async () => {
    const { rig: before, pollOld } = await stored();
    const rig = upgraded(before);
    expect(await pollOld()).toMatchObject({ outcome: 'complete' });
    await rig.poll();
    expect(await counts(rig)).toBe(NEW);
    expect(await pollOld()).toMatchObject({ outcome: 'skipped', requests: 0 });
  });

  test('resumes after a crash at any of its writes, and the older code stays excluded', async () => {
    for (let at = 1; ; at += 1) {
      for (const when of ['before', 'after'] as const) {
        const { rig: before, numbers, pollOld, onWrite } = await stored(sized(310, 400));
        const rig = upgraded(before);
        for (const job of numbers.slice(3)) rig.upstream.edit(job, { mustDate: true });
        const [listed = 0] = numbers;
        const last = numbers.at(-1) ?? 0;
        for (const job of [listed, last]) rig.upstream.setStatus(job, 'Quality check');
        let writes = 0;
        onWrite((now) => {
          if (now === 'before') writes += 1;
          if (now === when && writes === at) throw new Error('killed');
        });
        const killed = await rig.poll().then(
          () => false,
          () => true,
        );
        onWrite(() => undefined);
        if (!killed) {
          expect(at).toBeGreaterThan(5);
          return;
        }
        if (at > 1 || when === 'after') expect(await pollOld()).toMatchObject({ outcome: 'skipped' });
        expect((await rig.pollTypes(2)).sort(), `${when} write ${at}`).toEqual(
          [listed, last].map((job) => `job.status_changed ${job}`).sort(),
        );
      }
    }
  });
});
