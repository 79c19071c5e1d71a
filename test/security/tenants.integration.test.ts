/**
 * A key for some accounts reveals nothing of others, including their activity. Nor does it give access to an account that was
 * created with the id of a deleted one.
 */
import { randomUUID } from 'node:crypto';
import { describe, expect, test, vi } from 'vitest';
import { registerAccount } from '../../shared/accounts/accounts.ts';
import { createApi } from '../../shared/api/app.ts';
import { createGrowthSignal } from '../../shared/api/growth-signal.ts';
import { createForwarder, startFeed } from '../../shared/log/feed-forwarding.ts';
import { createEventLog } from '../../shared/log/log.ts';
import { keys, logPk } from '../../shared/storage/schema.ts';
import { createMemoryTable } from '../../shared/storage/sqlite-table.ts';
import { apiParts } from '../support/api.ts';
import { moved } from '../support/delivery-world.ts';

const ADMIN = 'an-admin-key-that-is-long';
const REGIONS = ['nz', 'us'];

async function createWorld() {
  const table = createMemoryTable();
  const clock = { now: Date.now() };
  const now = () => clock.now;
  const forwarder = createForwarder(table, { now, onForwarded: () => {} });
  const log = createEventLog(table, { now, newId: randomUUID, schemaBaseUrl: 'http://jobwire.test' });
  const say = async (region: string, account: string, count: number) => {
    const ref = { region, account };
    await log.append(
      ref,
      Array.from({ length: count }, (_, at) => ({ ...moved(at + 1, 'x'), time: now() })),
    );
    await forwarder.forward(ref);
  };
  for (const [region, account] of [
    ['us', 'acme'],
    ['nz', 'kiwi'],
  ] as const) {
    await startFeed(table, region, { epoch: `e${region}` });
    const record = { region, account, secretRef: 'x', pollIntervalSeconds: 60, paused: false };
    await registerAccount(table, log, record, { now: now(), epoch: 'e1' });
  }
  const app = createApi({
    ...{ table, log, regions: REGIONS, growth: createGrowthSignal(), now },
    ...apiParts(table, ADMIN, now, REGIONS),
    slots: { perKey: 5, acquire: async () => ({ release: async () => {} }) },
  });
  const request = (method: string, path: string, key: string, body?: object) =>
    app.request(path, {
      method,
      headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
      ...(body && { body: JSON.stringify(body) }),
    });
  const get = async (path: string, key: string) => {
    const answer = await request('GET', path, key);
    return { status: answer.status, body: (await answer.json()) as Record<string, never> };
  };
  const create = async (path: string, body: object): Promise<Record<string, string>> => {
    const answer = await request('POST', path, ADMIN, body);
    expect(answer.status, await answer.clone().text()).toBe(201);
    return answer.json() as Promise<Record<string, string>>;
  };
  const keyFor = async (...accounts: string[]): Promise<string> =>
    (await create('/v1/keys', { name: 'k', role: 'read', accounts })).secret ?? '';
  const createAccount = (id: string) =>
    create('/v1/accounts', { id, region: 'us', credentials: { clientId: 'c', clientSecret: 's' } });
  const deleteAccount = async (id: string, waitMs = 400_000) => {
    expect((await request('DELETE', `/v1/accounts/${id}`, ADMIN)).status).toBe(204);
    // Until then the id can't be used again.
    clock.now += waitMs;
  };
  return { table, clock, say, get, request, create, keyFor, createAccount, deleteAccount };
}

test('a cursor of a key for accounts of one region names no other region, and can be resumed', async () => {
  const { say, get, keyFor } = await createWorld();
  await say('us', 'acme', 3);
  await say('nz', 'kiwi', 45);
  const key = await keyFor('acme');
  const { body } = await get('/v1/events?limit=2', key);
  const { events, next, head } = body as unknown as { events: object[]; next: string; head: string };
  expect(events).toHaveLength(2);
  expect(next).toMatch(/^us\.eus\.\d+$/);
  expect(head).not.toContain('nz');
  const rest = await get(`/v1/events?after=${next}`, key);
  expect(rest.body.events).toHaveLength(1);
  // Of all accounts, all regions.
  expect(String((await get('/v1/events', ADMIN)).body.next)).toMatch(/^nz\.enz\.\d+~us\.eus\.\d+$/);
});

test('an older cursor with more regions remains valid, and reveals no more', async () => {
  const { say, get, keyFor } = await createWorld();
  await say('us', 'acme', 3);
  await say('nz', 'kiwi', 4);
  const key = await keyFor('acme');
  const { status, body } = await get('/v1/events?after=nz.enz.2~us.eus.1', key);
  expect(status).toBe(200);
  expect(body.next).not.toContain('nz');
});

test('a key for accounts of two regions has a cursor with both', async () => {
  const { get, keyFor } = await createWorld();
  const key = await keyFor('acme', 'kiwi');
  expect(String((await get('/v1/events', key)).body.next)).toMatch(/^nz\..*~us\./);
});

test.each(['parked', 'dead'] as const)(
  'a cursor of %s events names no account that the key cannot access, and leads to all events that it can',
  async (list) => {
    const { table, get, create, keyFor } = await createWorld();
    await create('/v1/endpoints', {
      ...{ id: 'erp', region: 'us', url: 'http://127.0.0.1:9/', accounts: ['acme'] },
    });
    // The endpoint followed other accounts before.
    const accounts = ['aaa', 'acme', 'acme-2', 'zzz'];
    const events = accounts.flatMap((account) => [1, 2, 3].map((sequence) => ({ account, sequence })));
    await table.putMany(
      events.map(({ account, sequence }) => ({
        ...(list === 'dead'
          ? keys.dead('us', 'erp', account, sequence)
          : keys.parked('us', 'erp', account, '4711', sequence)),
        ...{ account, lane: '4711', eventId: `${account}.e1.${sequence}`, type: 'job.created' },
        ...{ parkedAt: 0, diedAt: 0, attempts: 1 },
      })),
    );
    const read = async (key: string) => {
      const found: string[] = [];
      let after = '';
      for (;;) {
        const { body } = await get(`/v1/endpoints/erp/${list}?limit=1${after}`, key);
        const { next, [list]: page } = body as unknown as {
          [name in typeof list]: { event: string }[];
        } & { next: string | null };
        found.push(...page.map(({ event }) => event));
        if (next === null) return found;
        expect(Buffer.from(next, 'base64url').toString()).toMatch(key === ADMIN ? /#/ : /^(acme|zzz)#/);
        after = `&after=${next}`;
      }
    };
    expect(await read(await keyFor('acme'))).toEqual(['acme.e1.1', 'acme.e1.2', 'acme.e1.3']);
    expect(await read(await keyFor('zzz', 'acme'))).toHaveLength(6);
    expect(await read(ADMIN)).toHaveLength(12);
  },
);

test.each([
  { before: ['one', 'two'], after: ['three', 'four'] },
  { before: ['one'], after: ['one'] },
])(
  'the item of an endpoint of $after has no notes and no state of a deleted endpoint of $before with the same id',
  async ({ before, after }) => {
    const { table, get, request, create, keyFor, createAccount } = await createWorld();
    for (const account of new Set([...before, ...after])) await createAccount(account);
    const createEndpoint = async (accounts: readonly string[]) => {
      await create('/v1/endpoints', { id: 'erp', region: 'us', url: 'http://127.0.0.1:9/', accounts });
      const [account = ''] = accounts;
      const parked = { account, lane: '4711', eventId: `${account}.e1.1`, type: 'job.created', attempts: 1 };
      await table.putMany([{ ...keys.parked('us', 'erp', account, '4711', 1), ...parked, parkedAt: 0 }]);
    };
    await createEndpoint(before);
    const item = '/v1/attention/us~~endpoint~erp';
    const acted = await request('POST', `${item}/acknowledge`, ADMIN, { note: 'Their ERP is down.' });
    expect(acted.status).toBe(200);
    expect((await request('DELETE', '/v1/endpoints/erp', ADMIN)).status).toBe(204);
    await createEndpoint(after);
    const key = await keyFor(...after);
    expect((await get(item, key)).body).toMatchObject({ state: 'open', note: null, changedBy: null });
    expect((await get(`${item}/history`, key)).body.entries).toEqual([]);
  },
);

test.each(['new', 'acme,new'])(
  'a key for %s can repeat the deletion of an account until all of its data is removed',
  async (accounts) => {
    const { table, clock, request, create, createAccount } = await createWorld();
    await createAccount('new');
    const log = logPk({ region: 'us', account: 'new' });
    await table.putMany(Array.from({ length: 250 }, (_, at) => ({ pk: log, sk: `e${1_000 + at}` })));
    const { secret = '' } = await create('/v1/keys', {
      ...{ name: 'k', role: 'admin', accounts: accounts.split(',') },
    });
    const { query } = table;
    vi.spyOn(table, 'query').mockImplementation(async (range) => {
      const items = await query(range);
      // Longer than one request deletes, and than a process caches a key.
      if (range.pk === log && items.length > 0) clock.now += 60_000;
      return items;
    });
    const statuses: number[] = [];
    do statuses.push((await request('DELETE', '/v1/accounts/new', secret)).status);
    while (statuses.at(-1) === 202);
    expect(statuses).toEqual([202, 202, 202, 204]);
    expect(await table.query({ pk: log })).toEqual([]);
  },
);

describe('an account with the id of a deleted one', () => {
  test('is not accessible with keys that were created for the deleted account', async () => {
    const { get, keyFor, createAccount, deleteAccount } = await createWorld();
    await createAccount('new');
    const keys = [await keyFor('new'), await keyFor('new', 'acme')] as const;
    for (const key of keys) expect((await get('/v1/accounts/new', key)).status).toBe(200);
    await deleteAccount('new');
    await createAccount('new');
    const [alone, shared] = keys;
    expect((await get('/v1/accounts/new', alone)).status).toBe(401);
    expect((await get('/v1/accounts/new', shared)).status).toBe(404);
    expect((await get('/v1/accounts/acme', shared)).status).toBe(200);
    expect((await get('/v1/key', shared)).body.accounts).toEqual(['acme']);
    expect((await get('/v1/events', shared)).body.next).not.toContain('nz');
  });

  test('keeps its keys although it is in another region: it cannot be created before the deletion is complete', async () => {
    const { clock, get, request, create, keyFor, createAccount, deleteAccount } = await createWorld();
    await createAccount('new');
    await createAccount('old');
    await deleteAccount('new', 0);
    const account = { id: 'new', region: 'nz', credentials: { clientId: 'c', clientSecret: 's' } };
    expect((await request('POST', '/v1/accounts', ADMIN, account)).status).toBe(409);
    clock.now += 400_000;
    await create('/v1/accounts', account);
    const key = await keyFor('new');
    // Continues other deletions, too.
    await deleteAccount('old');
    expect((await get('/v1/accounts/new', key)).body).toMatchObject({ region: 'nz' });
  });

  test('is accessible with a key that was created before any account with the id', async () => {
    const { get, keyFor, createAccount } = await createWorld();
    const key = await keyFor('later');
    expect((await get('/v1/accounts/later', key)).status).toBe(404);
    await createAccount('later');
    expect((await get('/v1/accounts/later', key)).status).toBe(200);
  });

  test('is accessible with a key that was created for it before the deletion was complete', async () => {
    const { clock, get, keyFor, createAccount, deleteAccount } = await createWorld();
    await createAccount('new');
    await createAccount('old');
    await deleteAccount('new', 60_000);
    const key = await keyFor('new');
    clock.now += 400_000;
    // Completes other deletions, too.
    await deleteAccount('old');
    await createAccount('new');
    expect((await get('/v1/accounts/new', key)).status).toBe(200);
  });

  test('sends nothing to endpoints that were created for the deleted account', async () => {
    const { get, create, createAccount, deleteAccount } = await createWorld();
    await createAccount('new');
    const url = 'https://erp.example.com/hook';
    await create('/v1/endpoints', { id: 'alone', url, region: 'us', accounts: ['new'] });
    await create('/v1/endpoints', { id: 'shared', url, region: 'us', accounts: ['new', 'acme'] });
    await create('/v1/endpoints', { id: 'all', url, region: 'us' });
    await deleteAccount('new');
    await createAccount('new');
    expect((await get('/v1/endpoints/alone', ADMIN)).status).toBe(404);
    expect((await get('/v1/endpoints/shared', ADMIN)).body.accounts).toEqual(['acme']);
    expect((await get('/v1/endpoints/all', ADMIN)).body.accounts).toEqual([]);
  });

  test('is not measured by alert rules that were created for the deleted account', async () => {
    const { table, get, create, keyFor, createAccount, deleteAccount } = await createWorld();
    await createAccount('new');
    const rule = {
      ...{ region: 'us', name: 'Late jobs', condition: 'late_jobs', threshold: 0 },
      target: { kind: 'webhook', url: 'https://hooks.former-customer.example/secret' },
    };
    await create('/v1/alert-rules', { ...rule, id: 'alone', accounts: ['new'] });
    await create('/v1/alert-rules', { ...rule, id: 'shared', accounts: ['new', 'acme'] });
    await create('/v1/alert-rules', { ...rule, id: 'all' });
    await deleteAccount('new');
    await createAccount('new');
    expect((await get('/v1/alert-rules', await keyFor('new'))).body.alertRules).toEqual([]);
    expect((await get('/v1/alert-rules/alone', ADMIN)).status).toBe(404);
    const { body: shared } = await get('/v1/alert-rules/shared', ADMIN);
    expect(shared).toMatchObject({ accounts: ['acme'], revision: 2 });
    expect((await get('/v1/alert-rules/all', ADMIN)).body.accounts).toBeNull();
    const { pk } = keys.alertTarget('us', '');
    expect((await table.query({ pk })).map(({ sk }) => sk.split('.')[0])).toEqual(['all', 'shared']);
  });

  test("is not followed by an open stream of the deleted account's key", async () => {
    const { clock, request, keyFor, createAccount, deleteAccount } = await createWorld();
    await createAccount('new');
    const answer = await request('GET', '/v1/events/stream', await keyFor('new'));
    const reader = (answer.body as ReadableStream<Uint8Array>).getReader();
    expect((await reader.read()).done).toBe(false);
    await deleteAccount('new');
    clock.now += 15_000;
    expect(await reader.read()).toMatchObject({ done: true });
  });
});

test('a stream ends when its key is revoked', async () => {
  const { clock, request, create } = await createWorld();
  const secret = (await create('/v1/keys', { name: 'k', role: 'read' })).secret ?? '';
  const id = secret.split('_')[1];
  const answer = await request('GET', '/v1/events/stream', secret);
  const reader = (answer.body as ReadableStream<Uint8Array>).getReader();
  expect((await reader.read()).done).toBe(false);
  expect((await request('DELETE', `/v1/keys/${id}`, ADMIN)).status).toBe(204);
  clock.now += 31_000;
  expect(await reader.read()).toMatchObject({ done: true });
});

test.each(['/v1/events', '/v1/accounts/acme/events'])(
  'a long poll of %s does not wait for events if its key was revoked, although the key is cached for 30 seconds',
  async (path) => {
    const { clock, say, request, create } = await createWorld();
    const secret = (await create('/v1/keys', { name: 'k', role: 'read' })).secret ?? '';
    // Also loads the routes, which can take longer than the wait below.
    expect((await request('GET', path, secret)).status).toBe(200);
    expect((await request('DELETE', `/v1/keys/${secret.split('_')[1]}`, ADMIN)).status).toBe(204);
    clock.now += 29_000;
    const answer = request('GET', `${path}?wait=25`, secret);
    await new Promise((resolve) => setTimeout(resolve, 50));
    clock.now += 20_000;
    await say('us', 'acme', 1);
    expect(((await (await answer).json()) as { events: object[] }).events).toEqual([]);
  },
);
