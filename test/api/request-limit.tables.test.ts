/** The limit of requests per API key: over several processes, over minutes, and in responses. */
import { Hono } from 'hono';
import { expect, test } from 'vitest';
import type { ApiEnv } from '../../shared/api/env.ts';
import { OPERATOR } from '../../shared/api/keys.ts';
import { createRequestLimit, limitRequests, type RequestLimit } from '../../shared/api/request-limit.ts';
import { requestCountPk } from '../../shared/storage/schema.ts';
import { createMemoryTable } from '../../shared/storage/sqlite-table.ts';
import { type Table, TableError } from '../../shared/storage/table.ts';
import { eachTable } from '../support/tables.ts';

const START = Date.UTC(2026, 10, 24, 12, 0, 20);

eachTable('requests per key', (makeTable) => {
  test.each([4, 50])(
    '%i processes together admit no more than the quota of a minute, and nearly all of it',
    async (count) => {
      const { processes } = rig(await makeTable(), 200, count);
      const outcomes = await Promise.all(
        processes.map(async (limit) => {
          let admitted = 0;
          for (let n = 0; n < 400 / count; n += 1) admitted += Number((await limit.count('k')).admitted);
          return admitted;
        }),
      );
      const total = outcomes.reduce((sum, admitted) => sum + admitted, 0);
      expect(total).toBeLessThanOrEqual(200);
      expect(total).toBeGreaterThan(180);
    },
  );

  test('processes with one request each are all admitted, as long as there is quota', async () => {
    const { processes } = rig(await makeTable(), 200, 200);
    const outcomes = await Promise.all(processes.map((limit) => limit.count('k')));
    expect(outcomes.filter(({ admitted }) => admitted)).toHaveLength(200);
    expect((await processes[0]?.count('k'))?.admitted).toBe(false);
  });

  test('concurrent requests in one process are all admitted, as long as there is quota', async () => {
    const { processes } = rig(await makeTable(), 100);
    const [limit] = processes as [RequestLimit];
    const outcomes = await Promise.all(Array.from({ length: 20 }, () => limit.count('k')));
    expect(outcomes.filter(({ admitted }) => admitted)).toHaveLength(20);
  });
});

test('a key does not use the quota of another, and the next minute begins anew', async () => {
  const { processes, pass } = rig(createMemoryTable(), 10);
  const [limit] = processes as [RequestLimit];
  for (let n = 0; n < 10; n += 1)
    expect(await limit.count('a')).toMatchObject({ admitted: true, remaining: 9 - n });
  expect(await limit.count('a')).toEqual({ admitted: false, remaining: 0, resetSeconds: 40 });
  expect(await limit.count('b')).toMatchObject({ admitted: true });
  pass(39_000);
  expect(await limit.count('a')).toMatchObject({ admitted: false, resetSeconds: 1 });
  pass(1000);
  expect(await limit.count('a')).toEqual({ admitted: true, remaining: 9, resetSeconds: 60 });
});

test('a busy key causes a write for a fiftieth of its quota, a rejected one none, and counters expire', async () => {
  const table = createMemoryTable();
  const { processes, writes } = rig(table, 1000);
  const [limit] = processes as [RequestLimit];
  for (let n = 0; n < 1000; n += 1) await limit.count('k');
  expect(writes()).toBeLessThanOrEqual(60);
  const before = writes();
  for (let n = 0; n < 100; n += 1) expect((await limit.count('k')).admitted).toBe(false);
  expect(writes()).toBe(before);
  const [item] = await table.query({ pk: requestCountPk('us', 'k') });
  expect(Number(item?.ttl)).toBe(Math.floor(START / 60_000) * 60 + 120);
});

test('requests are admitted while the table does not respond', async () => {
  const failing = {
    ...createMemoryTable(),
    write: () => Promise.reject(new TableError('write', 'It is down.')),
  };
  const limit = createRequestLimit({ table: failing, region: 'us', perMinute: 10, now: () => START });
  for (let n = 0; n < 20; n += 1) expect((await limit.count('k')).admitted).toBe(true);
});

test('responses have the rest of the quota, and beyond it there is 429 with the time to wait', async () => {
  const { processes } = rig(createMemoryTable(), 1);
  const [limit] = processes as [RequestLimit];
  const app = new Hono<ApiEnv>();
  app.use(async (c, next) => {
    c.set('caller', OPERATOR);
    await next();
  });
  app.use(limitRequests(limit));
  app.get('/', (c) => c.text('ok', 200, { 'ratelimit-policy': '"streams";q=20;qu="concurrent-requests"' }));
  const first = await app.request('/');
  expect([first.status, first.headers.get('ratelimit')]).toEqual([200, '"requests";r=0;t=40']);
  expect(first.headers.get('ratelimit-policy')).toBe(
    '"streams";q=20;qu="concurrent-requests", "requests";q=1;w=60',
  );
  const second = await app.request('/');
  expect([second.status, second.headers.get('retry-after')]).toEqual([429, '40']);
  expect(second.headers.get('ratelimit')).toBe('"requests";r=0;t=40');
  expect(await second.json()).toMatchObject({
    type: 'urn:jobwire:problem:too-many-requests',
    detail: 'The API key has reached its limit of 1 requests per minute. Retry after 40 s.',
  });
});

/** Processes that share a table and a clock. */
function rig(table: Table, perMinute: number, processes = 1) {
  let at = START;
  let writes = 0;
  const counting: Table = {
    ...table,
    write: (write) => {
      writes += 1;
      return table.write(write);
    },
  };
  return {
    processes: Array.from({ length: processes }, () =>
      createRequestLimit({ table: counting, region: 'us', perMinute, now: () => at }),
    ),
    pass(ms: number) {
      at += ms;
    },
    writes: () => writes,
  };
}
