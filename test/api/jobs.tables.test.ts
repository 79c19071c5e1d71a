/** Job queries, and queries of a job's events: correct, complete, and cheap. */
import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import * as z from 'zod';
import { readEvent, readJobEvents } from '../../shared/api/job-events.ts';
import {
  canSort,
  decodeJobsCursor,
  type JobExpansion,
  type JobFilter,
  JobPage,
  JobRecord,
  JobResponse,
  type JobSort,
  listJobs,
  readJob,
} from '../../shared/api/jobs.ts';
import { readRollups } from '../../shared/api/statistics.ts';
import type { JobEvent } from '../../shared/events/event.ts';
import { parseCursor } from '../../shared/log/head.ts';
import { createEventLog } from '../../shared/log/log.ts';
import { createEncoder } from '../../shared/representation.ts';
import { keys } from '../../shared/storage/schema.ts';
import type { Table } from '../../shared/storage/table.ts';
import { eachTable } from '../support/tables.ts';
import { createRig, type Rig, watchedTable } from '../support/tracker.ts';

type AnyRig = Pick<Rig, 'table' | 'log' | 'ref' | 'now'>;

/** The representation of a record as a client gets it. */
const toJson = (schema: z.ZodType, record: unknown): unknown =>
  JSON.parse(JSON.stringify(createEncoder(schema)(record)));

/** The numbers of all jobs that a filter finds, page by page. */
async function found(rig: AnyRig, filter: JobFilter, limit = 100, sort?: JobSort): Promise<number[]> {
  const jobs: number[] = [];
  let after: string | null | undefined;
  do {
    const cursor = after ? decodeJobsCursor(after) : undefined;
    expect(cursor === undefined).toBe(!after);
    const page = await listJobs(rig, rig.ref, { filter, sort, limit, cursor });
    if (page?.kind !== 'jobs') throw new Error('There is no such page.');
    const { kind: _, ...answer } = page;
    jobs.push(
      ...z.encode(JobPage, answer as z.output<typeof JobPage>).jobs.map(({ jobNumber }) => jobNumber),
    );
    after = page.next;
  } while (after);
  return jobs;
}

eachTable('jobs are found', (makeTable) => {
  test('by due day, open and undispatched', async () => {
    const rig = await createRig({ table: await makeTable() });
    const due = (dateDue: string | null) => rig.upstream.createJob({ dateDue });
    due('2026-03-04T23:59:59-07:00');
    const [noon, day] = [due('2026-03-05T12:00:00-07:00'), due('2026-03-05')];
    due('2026-03-06T00:00:00-07:00');
    due(null);
    const [dispatched, closed] = [due('2026-03-05'), due('2026-03-05')];
    await rig.poll();
    rig.upstream.dispatch(dispatched);
    rig.upstream.close(closed);
    await rig.poll();
    for (const limit of [1, 100]) {
      expect(await found(rig, { dueOn: '2026-03-05' }, limit)).toEqual([noon, day]);
      expect(await found(rig, { dueOn: '2026-03-07' }, limit)).toEqual([]);
    }
  });

  test('when they are late: observed undispatched after their due time, in the zone of their location', async () => {
    // Without offsets only a job's detail defines its dates.
    const rig = await createRig({ table: await makeTable() });
    const noon = rig.upstream.createJob({ dateDue: '2026-03-04T12:00:00' });
    const day = rig.upstream.createJob({ dateDue: '2026-03-04T00:00:00-07:00' });
    const out = rig.upstream.createJob({ dateDue: '2026-03-01T00:00:00-07:00' });
    rig.upstream.createJob({ dateDue: null });
    rig.upstream.createJob({ dateDue: '0001-01-01T00:00:00' });
    await rig.poll();
    expect(await found(rig, { late: true })).toEqual([out]);
    rig.upstream.dispatch(out);
    rig.upstream.setStatus(noon, 'On hold');
    await rig.poll();
    expect((await rig.snapshot(noon))?.detail?.timezone).toBe('America/Denver');
    expect(await found(rig, { late: true })).toEqual([]);
    rig.pass((Date.parse('2026-03-04T12:00:00-07:00') - rig.now()) / 1000);
    // Due time passed, but no crawl since.
    expect(await found(rig, { late: true })).toEqual([]);
    await rig.poll();
    expect(await found(rig, { late: true })).toEqual([noon]);
    rig.pass((Date.parse('2026-03-05T00:00:00-07:00') - rig.now()) / 1000);
    await rig.poll();
    for (const limit of [1, 100]) expect(await found(rig, { late: true }, limit)).toEqual([day, noon].sort());
  });

  test('by day of dispatch, as roll-ups count it, while they are stored', async () => {
    const rig = await createRig({ table: await makeTable() });
    const [early, out, corrected, revoked] = [1, 2, 3, 4].map(() =>
      rig.upstream.createJob({ dateDue: '2026-02-20' }),
    );
    const awaited = rig.upstream.createJob({ dateDue: '2026-02-20' });
    rig.upstream.edit(early ?? 0, { dateOut: '2026-03-02T08:00:00-07:00' });
    await rig.poll();
    const on = (day: string, limit = 100) => found(rig, { dispatchedOn: day }, limit);
    // Before tracking began: counted nowhere, but dispatched.
    expect(await on('2026-03-02')).toEqual([early]);
    for (const job of [out, corrected, revoked])
      rig.upstream.edit(job ?? 0, { dateOut: '2026-03-03T08:00:00-07:00' });
    await rig.poll();
    for (const limit of [1, 100]) expect(await on('2026-03-03', limit)).toEqual([out, corrected, revoked]);
    const { days } = await readRollups(rig, rig.ref, '2026-03-02', '2026-03-04');
    expect(days.map(({ dispatched }) => dispatched)).toEqual([0, 3, 0]);
    rig.upstream.edit(corrected ?? 0, { dateOut: '2026-03-04T08:00:00-07:00' });
    rig.upstream.edit(revoked ?? 0, { dateOut: null });
    await rig.poll();
    await rig.poll();
    expect(await on('2026-03-03')).toEqual([out]);
    expect(await on('2026-03-04')).toEqual([corrected]);
    // Dispatched jobs are in no list of pending dispatches.
    const open = [revoked, awaited];
    expect(await found(rig, { undispatched: true })).toEqual(open);
    expect(await found(rig, { dueBefore: '9999-12-31' })).toEqual(open);
    expect(await found(rig, { dueOn: '2026-03-03' })).toEqual([]);
    expect(await found(rig, { late: true })).toEqual(open);
    // Delisted jobs were dispatched too.
    rig.upstream.close(out ?? 0);
    await rig.poll();
    expect(await on('2026-03-03')).toEqual([out]);
  });

  test('when their dispatch is pending: by due day, and those without one last', async () => {
    const rig = await createRig({ table: await makeTable() });
    const due = (dateDue: string | null) => rig.upstream.createJob({ dateDue });
    const [none, later, sooner, out] = [due(null), due('2026-03-09'), due('2026-03-05'), due('2026-03-05')];
    rig.upstream.dispatch(out);
    await rig.poll();
    for (const limit of [1, 100])
      expect(await found(rig, { undispatched: true }, limit)).toEqual([sooner, later, none]);
  });

  test('by their number, and none by another', async () => {
    const rig = await createRig({ table: await makeTable() });
    const [, job = 0] = [1, 2, 3].map(() => rig.upstream.createJob({}));
    await rig.poll();
    expect(await found(rig, { jobNumber: job })).toEqual([job]);
    expect(await found(rig, { jobNumber: 999_999 })).toEqual([]);
  });

  test('by their order group, whether or not they changed since tracking began', async () => {
    const rig = await createRig({ table: await makeTable() });
    const long = 'g'.repeat(600);
    const grouped = (orderGroup: string | null) => rig.upstream.createJob({ orderGroup });
    const [a, b] = [grouped('Spring #1'), grouped('Spring #1')];
    grouped('Spring');
    grouped(null);
    const [c, leaves] = [grouped(long), grouped('Spring #1')];
    await rig.poll();
    rig.upstream.dispatch(b);
    rig.upstream.edit(leaves, { orderGroup: 'Autumn' });
    await rig.poll();
    for (const limit of [1, 100]) {
      expect(await found(rig, { orderGroup: 'Spring #1' }, limit)).toEqual([a, b]);
      expect(await found(rig, { orderGroup: 'Autumn' }, limit)).toEqual([leaves]);
      expect(await found(rig, { orderGroup: long }, limit)).toEqual([c]);
      expect(await found(rig, { orderGroup: 'spring #1' }, limit)).toEqual([]);
    }
  });

  test('only if their snapshots match, because an index can be outdated', async () => {
    const inner = await makeTable();
    const rig = await createRig({ table: inner });
    const job = rig.upstream.createJob({ orderGroup: 'G', dateDue: '2026-03-01T00:00:00-07:00' });
    await rig.poll();
    const before = await inner.get(keys.snapshot(rig.ref, job));
    const lagging: Table = {
      ...inner,
      async getMany(wanted) {
        const items = await inner.getMany(wanted);
        return items.map((item) => {
          const stored = JSON.parse(String(item.snapshot));
          const list = { ...stored.list, orderGroup: 'H', dateDue: '2027-01-01' };
          return { ...item, snapshot: JSON.stringify({ ...stored, list }) };
        });
      },
    };
    for (const filter of [{ late: true }, { dueOn: '2026-03-01' }, { orderGroup: 'G' }] as const) {
      expect(await found(rig, filter)).toEqual([job]);
      expect(await found({ ...rig, table: lagging }, filter)).toEqual([]);
    }
    rig.upstream.dispatch(job);
    await rig.poll();
    const day = new Date(rig.now()).toISOString().slice(0, 10);
    const filter = { dispatchedOn: day } as const;
    expect(await found(rig, filter)).toEqual([job]);
    const asItWas: Table = {
      ...inner,
      getMany: async (wanted) =>
        (await inner.getMany(wanted)).map((item) => ({ ...item, snapshot: before?.snapshot })),
    };
    expect(await found({ ...rig, table: asItWas }, filter)).toEqual([]);
  });

  test('late ones without reading those that are due in days', async () => {
    const inner = await makeTable();
    const rig = await createRig({ table: inner });
    const late = rig.upstream.createJob({ dateDue: '2026-02-20T00:00:00-07:00' });
    for (let n = 0; n < 60; n += 1) rig.upstream.createJob({ dateDue: '2026-03-05T00:00:00-07:00' });
    await rig.poll();
    let read = 0;
    const table: Table = {
      ...inner,
      getMany(wanted) {
        read += wanted.length;
        return inner.getMany(wanted);
      },
    };
    expect(await found({ ...rig, table }, { late: true }, 500)).toEqual([late]);
    expect(read).toBe(1);
  });
});

eachTable('a list of jobs', (makeTable) => {
  /** Jobs by name: some in group G, some scheduled, due on different days, one dispatched. */
  async function story() {
    const inner = await makeTable();
    const rig = await createRig({ table: inner });
    const create = (status: string, orderGroup: string | null, dateDue: string | null) =>
      rig.upstream.createJob({ status, orderGroup, dateDue });
    const jobs = {
      first: create('Scheduled', 'G', '2026-03-06'),
      held: create('On hold', 'G', '2026-03-05'),
      late: create('Scheduled', 'G', '2026-02-20'),
      other: create('Scheduled', null, '2026-03-05'),
      undated: create('Scheduled', 'G', null),
      out: create('Scheduled', 'G', '2026-03-05'),
    };
    await rig.poll();
    rig.upstream.edit(jobs.out, { dateOut: '2026-03-03T08:00:00-07:00' });
    await rig.poll();
    return { rig, inner, ...jobs };
  }

  test('contains the jobs that match all filters, however it is paged and sorted', async () => {
    const { rig, first, held, late, other, undated, out } = await story();
    const lists: [JobFilter, JobSort | undefined, number[]][] = [
      [{ status: 'Scheduled', orderGroup: 'G' }, undefined, [first, late, undated, out]],
      [{ status: 'Scheduled', orderGroup: 'G' }, '-jobNumber', [out, undated, late, first]],
      [{ status: 'Scheduled', orderGroup: 'G', undispatched: true }, 'dateDue', [late, first, undated]],
      [{ status: 'Scheduled', orderGroup: 'G', undispatched: true }, '-dateDue', [undated, first, late]],
      [{ status: 'Scheduled', dueFrom: '2026-03-05', dueBefore: '2026-03-07' }, undefined, [other, first]],
      [{ dueFrom: '2026-03-06' }, '-dateDue', [first]],
      [{ dueFrom: '2026-03-06', dueBefore: '2026-03-05' }, undefined, []],
      [{ status: 'Scheduled', orderGroup: 'G', late: true, dueBefore: '2026-03-06' }, undefined, [late]],
      [{ late: true }, 'jobNumber', [late]],
      [{ late: false }, undefined, [first, held, other, undated, out]],
      [{ late: false, undispatched: true }, 'dateDue', [held, other, first, undated]],
      [{ undispatched: false }, undefined, [out]],
      [{ undispatched: false, dispatchedOn: '2026-03-03' }, undefined, [out]],
      [{ jobNumber: first, status: 'On hold' }, undefined, []],
      [{ dispatchedFrom: '2026-03-03', dispatchedBefore: '2026-03-04' }, '-dateOut', [out]],
      [{ dispatchedBefore: '2026-03-03' }, undefined, []],
      [{ dispatchedOn: '2026-03-03', status: 'Scheduled', orderGroup: 'G' }, 'jobNumber', [out]],
    ];
    for (const [filter, sort, expected] of lists) {
      expect(sort === undefined || canSort(filter, sort)).toBe(true);
      for (const limit of [1, 2, 100]) expect(await found(rig, filter, limit, sort)).toEqual(expected);
    }
  });

  test('contains the detail and the newest events of each job, if requested', async () => {
    const { rig, out, first } = await story();
    const list = async (...expand: JobExpansion[]) => {
      const page = await listJobs(rig, rig.ref, { filter: { orderGroup: 'G' }, limit: 100, expand });
      if (page?.kind !== 'jobs') throw new Error('There is no such page.');
      const { jobs } = toJson(JobPage, page) as JobPage;
      return new Map(jobs.map((job) => [job.jobNumber, job]));
    };
    const { job } = (await readJob(rig, rig.ref, out)) ?? {};
    const encoded = toJson(JobRecord, job);
    const plain = (await list()).get(out);
    expect(Object.keys(encoded as object)).toEqual(expect.arrayContaining(Object.keys(plain ?? {})));
    expect(plain).not.toHaveProperty('lines');
    expect((await list('detail')).get(out)).toEqual(encoded);
    const events = await list('events');
    const stored = await readJobEvents(rig, rig.ref, out, { order: 'newest', limit: 10 });
    expect(events.get(out)?.events?.map((event) => JSON.stringify(event))).toEqual(stored.events);
    expect(stored.events.length).toBeGreaterThan(0);
    expect(events.get(first)).toEqual({ ...(await list()).get(first), events: [] });
  });

  test('with events has at most 50 jobs per page', async () => {
    const { rig } = await story();
    for (let n = 0; n < 50; n += 1) rig.upstream.createJob({ orderGroup: 'many' });
    await rig.poll();
    const filter = { orderGroup: 'many' };
    const page = await listJobs(rig, rig.ref, { filter, limit: 500, expand: ['events'] });
    expect(page).toMatchObject({ jobs: { length: 50 }, next: expect.any(String) });
    const all = await listJobs(rig, rig.ref, { filter, limit: 500 });
    expect(all).toMatchObject({ jobs: { length: 50 }, next: null });
  });
});

test('a list of jobs reads at most 500 jobs per page, and continues after them', async () => {
  const rig = await createRig();
  const { table: inner } = rig;
  rig.upstream.createJob({ status: 'Scheduled', dateDue: '2026-03-08' });
  for (let n = 0; n < 520; n += 1) rig.upstream.createJob({ status: 'Scheduled', dateDue: '2026-03-09' });
  const last = rig.upstream.createJob({ status: 'Scheduled', dateDue: '2026-03-09', orderGroup: 'H' });
  await rig.poll();
  let read = 0;
  const table: Table = {
    ...inner,
    getMany(wanted) {
      read += wanted.length;
      return inner.getMany(wanted);
    },
  };
  const query = { filter: { orderGroup: 'H', status: 'Scheduled' }, sort: 'dateDue', limit: 10 } as const;
  const page = await listJobs({ ...rig, table }, rig.ref, query);
  if (page?.kind !== 'jobs') throw new Error('There is no such page.');
  expect([page.jobs, read]).toEqual([[], 500]);
  const cursor = decodeJobsCursor(String(page.next));
  expect(await listJobs(rig, rig.ref, { ...query, cursor })).toMatchObject({
    jobs: [{ jobNumber: last }],
    next: null,
  });
  // The most selective index is read: a single job of the group.
  read = 0;
  await listJobs({ ...rig, table }, rig.ref, { ...query, sort: undefined });
  expect(read).toBe(1);
});

test.each([
  [{}, 'dateDue', false],
  [{ orderGroup: 'G' }, 'dateDue', false],
  [{ orderGroup: 'G', late: true }, 'dateDue', true],
  [{ late: false }, 'dateDue', false],
  [{ status: 'Scheduled' }, 'dateOut', false],
  [{ dispatchedFrom: '2026-03-03' }, '-dateOut', true],
  [{ jobNumber: 1 }, 'dateOut', true],
  [{ status: 'Scheduled' }, '-jobNumber', true],
] as const)('jobs with the filters %j are sorted by %s: %s', (filter, sort, expected) => {
  expect(canSort(filter, sort)).toBe(expected);
});

test('a single job matches its schema', async () => {
  const rig = await createRig();
  const job = rig.upstream.createJob({ lines: [{}, {}] });
  await rig.poll();
  rig.upstream.dispatch(job);
  await rig.poll();
  const answer = z.encode(
    JobResponse.strict(),
    (await readJob(rig, rig.ref, job)) as z.output<typeof JobResponse>,
  );
  expect(answer.job).toMatchObject({ jobNumber: job, phase: 'listed', timezone: 'America/Denver' });
  expect(answer.job.lines).toHaveLength(2);
});

eachTable('the events of one job', (makeTable) => {
  /** Two jobs with the same changes, and the first one's events in order. */
  async function story() {
    const inner = await makeTable();
    const rig = await createRig({ table: inner });
    const jobs = [0, 1].map(() => rig.upstream.createJob({ status: 'Scheduled' }));
    await rig.poll();
    for (const status of ['On hold', 'In production', 'Ready to ship']) {
      for (const job of jobs) rig.upstream.setStatus(job, status);
      await rig.poll();
    }
    for (const job of jobs) rig.upstream.dispatch(job);
    await rig.poll();
    const [job = 0] = jobs;
    const said = (await rig.fresh()).filter(({ subject }) => subject === `jobs/${job}`);
    expect(said.length).toBeGreaterThan(4);
    return { rig, inner, job, said };
  }
  const getIds = (texts: readonly string[]) => texts.map((text) => (JSON.parse(text) as JobEvent).id);

  test('are listed oldest or newest first, by page, each once, as stored', async () => {
    const { rig, job, said } = await story();
    const ids = said.map(({ id }) => id);
    for (const limit of [1, 2, 100]) {
      for (const order of ['oldest', 'newest'] as const) {
        const got: string[] = [];
        let after: ReturnType<typeof parseCursor>;
        do {
          const page = await readJobEvents(rig, rig.ref, job, { order, after, limit });
          got.push(...page.events);
          after = page.next === null ? undefined : parseCursor(page.next);
        } while (after);
        expect(getIds(got)).toEqual(order === 'oldest' ? ids : [...ids].reverse());
        expect(got.map((text) => JSON.parse(text))).toEqual(order === 'oldest' ? said : [...said].reverse());
      }
    }
    expect(await readJobEvents(rig, rig.ref, 77, { order: 'oldest', limit: 5 })).toEqual({
      events: [],
      next: null,
    });
  });

  test('are read with one Query of keys and one read of the events', async () => {
    const { rig, inner, job, said } = await story();
    const table = watchedTable(inner);
    await readJobEvents({ table, now: rig.now }, rig.ref, job, { order: 'newest', limit: 3 });
    expect(table.calls).toEqual([
      { call: 'query', of: ['JOB'] },
      { call: 'getMany', of: ['LOG'] },
    ]);
    expect(said.length).toBeGreaterThan(3);
  });

  test('expire with their retention, and so does an event by its id, for any deletions', async () => {
    const { rig, inner, job, said } = await story();
    const oldest = said[0] as JobEvent;
    const at = Number(oldest.sequence);
    await inner.write({ update: keys.event(rig.ref, at), set: { expiresAt: rig.now() } });
    const left = said.slice(1).map(({ id }) => id);
    const first = await readJobEvents(rig, rig.ref, job, { order: 'oldest', limit: 1 });
    expect(first.events).toEqual([]);
    const rest = await readJobEvents(rig, rig.ref, job, {
      order: 'oldest',
      after: parseCursor(String(first.next)),
      limit: 100,
    });
    expect(getIds(rest.events)).toEqual(left);
    const newest = await readJobEvents(rig, rig.ref, job, { order: 'newest', limit: said.length });
    expect([getIds(newest.events), newest.next]).toEqual([[...left].reverse(), null]);
    expect(await readEvent(rig, rig.ref, 'e1', at)).toBeUndefined();
  });

  test('are found one by one by their ids, in their own epoch only', async () => {
    const { rig, said } = await story();
    const { id, sequence } = said[1] as JobEvent;
    const text = await readEvent(rig, rig.ref, 'e1', Number(sequence));
    expect(JSON.parse(String(text))).toEqual(said[1]);
    expect(id).toBe(`acme.e1.${Number(sequence)}`);
    expect(await readEvent(rig, rig.ref, 'e2', Number(sequence))).toBeUndefined();
    expect(await readEvent(rig, rig.ref, 'e1', 9_999)).toBeUndefined();
    expect(await readEvent(rig, { ...rig.ref, account: 'other' }, 'e1', Number(sequence))).toBeUndefined();
  });
});

test('a page of a job’s events is cut below the response limit of Lambda', async () => {
  const rig = await createRig();
  const { ref, now } = rig;
  const log = createEventLog(rig.table, { now, newId: randomUUID, schemaBaseUrl: 'http://x' });
  const filler = 'x'.repeat(300_000);
  const event = (n: number) =>
    ({ type: 'job.closed', jobNumber: 5, time: now() + n, data: { job: { filler } } }) as never;
  for (let n = 0; n < 20; n += 1) await log.append(ref, [event(n)]);
  const first = await readJobEvents(rig, ref, 5, { order: 'oldest', limit: 100 });
  expect(first.events).toHaveLength(13);
  expect(first.next).toBe('13');
  const after = parseCursor(String(first.next));
  const second = await readJobEvents(rig, ref, 5, { order: 'oldest', after, limit: 100 });
  expect([second.events.length, second.next]).toEqual([7, null]);
});
