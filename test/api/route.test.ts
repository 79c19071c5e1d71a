/** What all routes have in common. */
import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import { registerAccount } from '../../shared/accounts/accounts.ts';
import { createApi } from '../../shared/api/app.ts';
import { routes } from '../../shared/api/routes/all.ts';
import { sinkAttributes } from '../../shared/delivery/sink.ts';
import { createEventLog } from '../../shared/log/log.ts';
import { keys } from '../../shared/storage/schema.ts';
import { createMemoryTable } from '../../shared/storage/sqlite-table.ts';
import { apiParts } from '../support/api.ts';

const ABSENT = ['deliveries', 'notifications', 'alerts', 'manage', 'readFile'] as const;
type Absent = (typeof ABSENT)[number];
const KEY = 'correct-horse-battery-staple';
const now = () => Date.parse('2026-03-02T08:00:00Z');

/** An API over the account `acme`, without an optional dependency. Returns the table and a function that sends a request. */
async function start(absent?: Absent) {
  const table = createMemoryTable();
  const log = createEventLog(table, { now, newId: randomUUID, schemaBaseUrl: 'http://jobwire.test' });
  const account = { region: 'us', account: 'acme', secretRef: 'x', pollIntervalSeconds: 120, paused: false };
  await registerAccount(table, log, account, { now: now(), epoch: 'e1' });
  const parts = { ...apiParts(table, KEY, now, ['us']), ...(absent && { [absent]: undefined }) };
  const api = createApi({ table, log, regions: ['us'], ...parts, now });
  const ask = async (method: string, path: string, body?: string, type = 'application/json') => {
    const headers = {
      authorization: `Bearer ${KEY}`,
      ...(body === undefined ? {} : { 'content-type': type }),
    };
    const response = await api.request(path, { method, headers, ...(body === undefined ? {} : { body }) });
    const text = await response.text();
    return { status: response.status, ...(text === '' ? {} : (JSON.parse(text) as { field?: string })) };
  };
  return { table, ask, api };
}

test('HEAD has the status of GET, also for the statistics of a built-in endpoint', async () => {
  const { table, ask } = await start();
  const sink = { region: 'us', id: 'sns', accounts: [], types: [], paused: false, target: 'arn:aws:sns:x' };
  await table.write({ put: { ...keys.sink('us', 'sns'), ...sinkAttributes({ ...sink, kind: 'sns' }) } });
  for (const method of ['GET', 'HEAD']) {
    expect((await ask(method, '/v1/endpoints/sns/statistics')).status, method).toBe(404);
  }
  expect((await ask('POST', '/v1/endpoints/sns/pause')).status).toBe(409);
});

test.each(ABSENT)('without %s, some routes are not served, and no other route needs it', async (absent) => {
  const sink = { region: 'us', id: 'acme', accounts: ['acme'], types: [], paused: false };
  const endpoint = { ...sink, kind: 'webhook', target: 'http://127.0.0.1:9/', createdAt: now() } as const;
  const outcomes = await Promise.all(
    [await start(), await start(absent)].map(async ({ table, api }) => {
      await table.write({
        put: { ...keys.sink('us', 'acme'), ...sinkAttributes(endpoint), createdAt: now(), revision: 1 },
      });
      const found: number[] = [];
      for (const { spec } of routes.filter(({ surface }) => surface !== 'live')) {
        const path = spec.path.replaceAll(/\{(?:jobNumber|(\w+))\}/g, (_, name) => (name ? 'acme' : '1'));
        const body = spec.example === undefined ? {} : { body: JSON.stringify(spec.example) };
        const headers = { authorization: `Bearer ${KEY}`, 'content-type': 'application/json' };
        const method = spec.method.toUpperCase();
        const { status } = await api.request(path, { method, headers, ...body });
        expect(status, `${method} ${path}`).not.toBe(500);
        found.push(status);
      }
      return found;
    }),
  );
  const [complete = [], without = []] = outcomes;
  expect(without.some((status, at) => status === 404 && complete[at] !== 404)).toBe(true);
});
