/** A key that is for some accounts learns nothing of others: not even how much happens elsewhere. */
import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import { createApi } from '../../shared/api/app.ts';
import { createGrowthSignal } from '../../shared/api/growth.ts';
import { createForwarder, startFeed } from '../../shared/log/cell-feed.ts';
import { createEventLog } from '../../shared/log/log.ts';
import { createMemoryTable } from '../../shared/table/sqlite-table.ts';
import { registerAccount } from '../../shared/tracking/accounts.ts';
import { apiParts } from '../support/api.ts';
import { moved } from '../support/delivery.ts';

const ADMIN = 'an-admin-key-that-is-long';
const REGIONS = ['nz', 'us'];

async function createWorld() {
  const table = createMemoryTable();
  const now = Date.now;
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
    slots: { perKey: 5, take: async () => ({ giveBack: async () => {} }) },
  });
  const get = async (path: string, key: string) => {
    const answer = await app.request(path, { headers: { authorization: `Bearer ${key}` } });
    return { status: answer.status, body: (await answer.json()) as Record<string, never> };
  };
  const keyFor = async (...accounts: string[]) => {
    const answer = await app.request('/v1/keys', {
      method: 'POST',
      headers: { authorization: `Bearer ${ADMIN}`, 'content-type': 'application/json' },
      body: JSON.stringify({ name: 'k', role: 'read', accounts }),
    });
    return ((await answer.json()) as { secret: string }).secret;
  };
  return { say, get, keyFor };
}

test('a cursor of a key for accounts of one region names no other region, and goes on reading', async () => {
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

test('a cursor from before it was so is still good, and says no more afterwards', async () => {
  const { say, get, keyFor } = await createWorld();
  await say('us', 'acme', 3);
  await say('nz', 'kiwi', 4);
  const key = await keyFor('acme');
  const { status, body } = await get('/v1/events?after=nz.enz.2~us.eus.1', key);
  expect(status).toBe(200);
  expect(body.next).not.toContain('nz');
});

test('a key for accounts of two regions has a place in each', async () => {
  const { get, keyFor } = await createWorld();
  const key = await keyFor('acme', 'kiwi');
  expect(String((await get('/v1/events', key)).body.next)).toMatch(/^nz\..*~us\./);
});
