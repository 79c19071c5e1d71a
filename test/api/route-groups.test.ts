/** Groups of routes: which requests load them. */
import { randomUUID } from 'node:crypto';
import { expect, test, vi } from 'vitest';
import { createApi } from '../../shared/api/app.ts';
import { routes } from '../../shared/api/routes/all.ts';
import { groups } from '../../shared/api/routes/groups.ts';
import { createEventLog } from '../../shared/log/log.ts';
import { createMemoryTable } from '../../shared/storage/sqlite-table.ts';
import { apiParts } from '../support/api.ts';

const KEY = 'a-key-of-the-operator';

test('every path of a route, with any ids, is in the group that contains the route, and no other', async () => {
  expect(routes.length).toBeGreaterThan(100);
  for (const { spec } of routes) {
    for (const id of ['x', 'events', 'deliveries', 'messages', 'jobs', 'a\nb']) {
      const path = spec.path.replaceAll(/\{\w+\}/g, id);
      const loaded = await groups.find(({ paths }) => paths.test(path))?.load();
      expect(
        loaded?.some((route) => route.spec.path === spec.path && route.spec.method === spec.method),
        path,
      ).toBe(true);
    }
  }
  const all = (await Promise.all(groups.map((group) => group.load()))).flat();
  expect(new Set(all).size).toBe(all.length);
  expect(new Set(routes)).toEqual(new Set(all));
});

test('a request loads one group, once; if that fails, the response is a problem and the next request tries again', async () => {
  const loads = groups.map((group) => vi.spyOn(group, 'load'));
  const table = createMemoryTable();
  const errors: unknown[] = [];
  const api = createApi({
    ...apiParts(table, KEY),
    ...{
      table,
      log: createEventLog(table, { now: Date.now, newId: randomUUID, schemaBaseUrl: '' }),
      regions: ['us'],
      now: Date.now,
    },
    onError: (cause, request) => errors.push([cause, request.requestId]),
  });
  const get = (path: string) => api.request(path, { headers: { authorization: `Bearer ${KEY}` } });
  const countLoads = () => loads.map(({ mock }) => mock.calls.length);

  expect(countLoads()).toEqual([0, 0, 0, 0]);
  expect((await get('/healthz')).status).toBe(200);
  expect(countLoads()).toEqual([1, 0, 0, 0]);
  const cause = new Error('The file is missing.');
  loads[1]?.mockRejectedValueOnce(cause);
  const failed = await get('/v1/endpoints');
  expect(failed.status).toBe(500);
  const problem = (await failed.json()) as { requestId: string };
  expect(problem).toMatchObject({ type: 'urn:jobwire:problem:internal-server-error' });
  expect(errors).toEqual([[cause, problem.requestId]]);
  for (let time = 0; time < 2; time += 1) expect((await get('/v1/endpoints')).status).toBe(200);
  expect(countLoads()).toEqual([1, 2, 0, 0]);
});
