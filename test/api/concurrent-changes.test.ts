/** Changes without `If-Match`, while others change the same resource. */
import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import { registerAccount } from '../../shared/accounts/accounts.ts';
import { createApi } from '../../shared/api/app.ts';
import { createKey, OPERATOR } from '../../shared/api/keys.ts';
import { createEventLog } from '../../shared/log/log.ts';
import { keys } from '../../shared/storage/schema.ts';
import { createMemoryTable } from '../../shared/storage/sqlite-table.ts';
import type { Key, Table } from '../../shared/storage/table.ts';
import { apiParts } from '../support/api.ts';

const KEY = 'correct-horse-battery-staple';
const now = () => Date.parse('2026-03-02T08:00:00Z');

/** An API over two accounts. `before` is called before each write of the item with the key. */
async function start() {
  const inner = createMemoryTable();
  const hooks: { key?: Key; before?: () => Promise<unknown> } = {};
  const meet = async (...keysOfWrites: (Key | undefined)[]) => {
    if (keysOfWrites.some((key) => key?.pk === hooks.key?.pk && key?.sk === hooks.key?.sk))
      await hooks.before?.();
  };
  const toKey = (write: Parameters<Table['write']>[0]): Key | undefined =>
    'update' in write ? write.update : 'put' in write ? write.put : write.delete;
  const table: Table = {
    ...inner,
    async write(write, durability) {
      await meet(toKey(write));
      return inner.write(write, durability);
    },
    async transact(writes, token) {
      await meet(...writes.map((write) => ('check' in write ? undefined : toKey(write))));
      return inner.transact(writes, token);
    },
  };
  const log = createEventLog(table, { now, newId: randomUUID, schemaBaseUrl: 'http://jobwire.test' });
  for (const account of ['acme', 'other']) {
    const settings = { secretRef: account, pollIntervalSeconds: 120, paused: false };
    await registerAccount(table, log, { region: 'us', account, ...settings }, { now: now(), epoch: 'e1' });
  }
  const created = await createKey({ table, now }, { role: 'admin', accounts: ['acme'] }, OPERATOR);
  if (created.kind !== 'created') throw new Error('There is no key.');
  const api = createApi({ table, log, regions: ['us'], ...apiParts(table, KEY, now, ['us']), now });
  const ask = async (method: string, path: string, body: object, key = KEY, headers: object = {}) => {
    const response = await api.request(path, {
      method,
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', ...headers },
      body: JSON.stringify(body),
    });
    return { status: response.status, headers: response.headers, body: await response.json() };
  };
  return { table: inner, hooks, ask, restricted: created.secret };
}

const RULE = {
  ...{ id: 'late', name: 'Late jobs', condition: 'late_jobs', threshold: 5 },
  target: { kind: 'webhook', url: 'https://hooks.example/1' },
};
const ENDPOINT = { id: 'erp', url: 'https://erp.example/', accounts: ['acme'] };

test('a change of an alert rule is performed on top of one that came first', async () => {
  const { hooks, ask } = await start();
  expect((await ask('POST', '/v1/alert-rules', RULE)).status).toBe(201);
  hooks.key = keys.alertRule('us', 'late');
  hooks.before = async () => {
    delete hooks.before;
    expect((await ask('PATCH', '/v1/alert-rules/late', { name: 'Changed first' })).status).toBe(200);
  };
  const changed = await ask('PATCH', '/v1/alert-rules/late', { threshold: 10 });
  expect(changed).toMatchObject({ status: 200, body: { name: 'Changed first', threshold: 10, revision: 3 } });
});

test('a change of an endpoint with a key for some accounts is performed on top of one that came first', async () => {
  const { hooks, ask, restricted } = await start();
  expect((await ask('POST', '/v1/endpoints', ENDPOINT)).status).toBe(201);
  hooks.key = keys.endpointLock('us', 'erp');
  hooks.before = async () => {
    delete hooks.before;
    expect((await ask('PATCH', '/v1/endpoints/erp', { types: ['job.created'] })).status).toBe(200);
  };
  const changed = await ask('PATCH', '/v1/endpoints/erp', { description: 'ERP' }, restricted);
  expect(changed).toMatchObject({ status: 200, body: { description: 'ERP', types: ['job.created'] } });
});

test('a key for some accounts does not change an endpoint that follows another account meanwhile', async () => {
  const { hooks, ask, restricted } = await start();
  expect((await ask('POST', '/v1/endpoints', ENDPOINT)).status).toBe(201);
  hooks.key = keys.endpointLock('us', 'erp');
  hooks.before = async () => {
    delete hooks.before;
    const accounts = ['acme', 'other'];
    expect((await ask('PATCH', '/v1/endpoints/erp', { accounts, description: 'Both' })).status).toBe(200);
  };
  expect((await ask('PATCH', '/v1/endpoints/erp', { description: 'ERP' }, restricted)).status).toBe(404);
  expect((await ask('PATCH', '/v1/endpoints/erp', {})).body).toMatchObject({ description: 'Both' });
});

test('a change that always comes second gets 409 with Retry-After, and its Idempotency-Key executes it again', async () => {
  const { hooks, table, ask } = await start();
  expect((await ask('POST', '/v1/endpoints', ENDPOINT)).status).toBe(201);
  await table.write({ update: keys.sink('us', 'erp'), set: { disabledAt: now() } });
  hooks.key = keys.attention('us', '~endpoint~erp');
  let revision = 100;
  hooks.before = async () => {
    revision += 1;
    const put = { ...keys.attention('us', '~endpoint~erp'), state: '{}', revision };
    await table.write({ put });
  };
  const acknowledge = () =>
    ask('POST', '/v1/attention/us~~endpoint~erp/acknowledge', {}, KEY, { 'idempotency-key': 'once' });
  const rejected = await acknowledge();
  expect([rejected.status, rejected.headers.get('retry-after')]).toEqual([409, '5']);
  let rest = 1;
  hooks.before = async () => {
    rest -= 1;
    if (rest < 0) return;
    await table.write({ put: { ...keys.attention('us', '~endpoint~erp'), state: '{}', revision: 1 } });
  };
  expect(await acknowledge()).toMatchObject({ status: 200, body: { state: 'acknowledged' } });
});
