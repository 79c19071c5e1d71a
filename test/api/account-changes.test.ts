/** Accounts over HTTP: keys for some accounts, and concurrent or repeated changes. */
import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import { registerAccount } from '../../shared/accounts/accounts.ts';
import { createApi } from '../../shared/api/app.ts';
import { createKey, OPERATOR } from '../../shared/api/keys.ts';
import { createEventLog } from '../../shared/log/log.ts';
import { snapshotPk } from '../../shared/storage/schema.ts';
import { createMemoryTable } from '../../shared/storage/sqlite-table.ts';
import type { Table } from '../../shared/storage/table.ts';
import { apiParts } from '../support/api.ts';

const KEY = 'correct-horse-battery-staple';
const START = Date.parse('2026-03-02T08:00:00Z');

/** The API over the accounts `acme` and `other`, with credentials in a store that references can name. */
async function start() {
  const clock = { now: START };
  const now = () => clock.now;
  const inner = createMemoryTable();
  /** An action of a test right before a write. */
  const hooks: { beforeWrite?: (write: Parameters<Table['write']>[0]) => unknown } = {};
  const table: Table = {
    ...inner,
    async write(write) {
      await hooks.beforeWrite?.(write);
      return inner.write(write);
    },
    async transact(writes, token) {
      for (const write of writes) if (!('check' in write)) await hooks.beforeWrite?.(write);
      return inner.transact(writes, token);
    },
  };
  const log = createEventLog(table, { now, newId: randomUUID, schemaBaseUrl: 'http://jobwire.test' });
  for (const account of ['acme', 'other']) {
    const settings = { secretRef: account, pollIntervalSeconds: 120, paused: false };
    await registerAccount(table, log, { region: 'us', account, ...settings }, { now: START, epoch: 'e1' });
  }
  const parts = apiParts(table, KEY, now, ['us']);
  const { accounts } = parts.manage;
  const manage = {
    ...parts.manage,
    accounts: { ...accounts, secrets: { ...accounts.secrets, refuse: () => undefined } },
  };
  const api = createApi({ table, log, regions: ['us'], ...parts, manage, now });

  async function ask(
    method: string,
    path: string,
    options: { body?: object; key?: string; headers?: object },
  ) {
    const { body, key = KEY, headers = {} } = options;
    const response = await api.request(path, {
      method,
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json', ...headers },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    return { status: response.status, headers: response.headers, body: text === '' ? {} : JSON.parse(text) };
  }
  return {
    ...{ clock, hooks, table, ask },
    async getAdmin(...ids: string[]) {
      const made = await createKey({ table, now }, { role: 'admin', accounts: ids }, OPERATOR);
      if (made.kind !== 'created') throw new Error('no key');
      return made.secret;
    },
  };
}

test('a key for some accounts cannot make them use the credentials of another', async () => {
  const rig = await start();
  const key = await rig.getAdmin('acme');
  const patch = (body: object, of?: string) =>
    rig.ask('PATCH', '/v1/accounts/acme', { body, ...(of === undefined ? {} : { key: of }) });
  const refused = await patch({ secretRef: 'other' }, key);
  expect([refused.status, refused.body.field]).toEqual([403, 'secretRef']);
  const shown = await rig.ask('GET', '/v1/accounts/acme', { key });
  expect(shown.body.secretRef).toBe('acme');
  expect((await patch({ pollIntervalSeconds: 300 }, key)).status).toBe(200);
  expect((await patch({ secretRef: 'elsewhere' })).body.secretRef).toBe('elsewhere');
});

test('a conditional change that is repeated with its Idempotency-Key has the first answer', async () => {
  const { ask } = await start();
  const etag = (await ask('GET', '/v1/accounts/acme', {})).headers.get('etag') ?? '';
  const headers = { 'if-match': etag, 'idempotency-key': 'pause-1' };
  const first = await ask('POST', '/v1/accounts/acme/pause', { headers });
  expect([first.status, first.body.paused]).toEqual([200, true]);
  const again = await ask('POST', '/v1/accounts/acme/pause', { headers });
  expect([again.status, again.headers.get('idempotency-replayed')]).toEqual([200, 'true']);
  expect(again.body).toEqual(first.body);
  const resume = (tag: string) =>
    ask('POST', '/v1/accounts/acme/resume', { headers: { 'if-match': tag, 'idempotency-key': 'resume-1' } });
  expect((await resume(etag)).status).toBe(412);
  const onAnother = await resume(first.headers.get('etag') ?? '');
  expect([onAnother.status, onAnother.body.field]).toEqual([422, 'Idempotency-Key']);
});

test('a conditional change answers 412 also after a concurrent change', async () => {
  const changes = [
    ['PATCH', '', { pollIntervalSeconds: 600 }],
    ['PUT', '/credentials', { clientId: 'a', clientSecret: 'b' }],
    ['POST', '/pause', undefined],
    ['DELETE', '', undefined],
  ] as const;
  for (const [method, rest, body] of changes) {
    const { hooks, ask } = await start();
    const etag = (await ask('GET', '/v1/accounts/acme', {})).headers.get('etag') ?? '';
    hooks.beforeWrite = async () => {
      delete hooks.beforeWrite;
      const between = { body: { pollIntervalSeconds: 300 } };
      expect((await ask('PATCH', '/v1/accounts/acme', between)).status).toBe(200);
    };
    const headers = { 'if-match': etag };
    const late = await ask(method, `/v1/accounts/acme${rest}`, { headers, ...(body ? { body } : {}) });
    expect([late.status, late.body.field], `${method} ${rest}`).toEqual([412, 'If-Match']);
    expect((await ask('GET', '/v1/accounts/acme', {})).body).toMatchObject({ pollIntervalSeconds: 300 });
  }
});

test('a conditional deletion can be repeated unchanged until nothing is left', async () => {
  const { clock, hooks, table, ask } = await start();
  const etag = (await ask('GET', '/v1/accounts/acme', {})).headers.get('etag') ?? '';
  const pk = snapshotPk({ region: 'us', account: 'acme' });
  await table.putMany(Array.from({ length: 250 }, (_, at) => ({ pk, sk: String(at) })));
  // One request has time for only a part of the deletion.
  hooks.beforeWrite = (write) => {
    if ('delete' in write && write.delete.pk === pk) clock.now += 100;
  };
  const again = async (tag: string) =>
    (await ask('DELETE', '/v1/accounts/acme', { headers: { 'if-match': tag } })).status;
  expect(await again('"9"')).toBe(412);
  const statuses = [await again(etag), await again(etag), await again(etag)];
  expect(statuses).toEqual([202, 202, 204]);
});
