/** Cursors of the feed of all accounts, when the served regions change. */
import { randomUUID } from 'node:crypto';
import { expect, test } from 'vitest';
import { registerAccount } from '../../shared/accounts/accounts.ts';
import { createApi } from '../../shared/api/app.ts';
import { createKey, OPERATOR } from '../../shared/api/keys.ts';
import { forwardLogs } from '../../shared/log/feed-forwarding.ts';
import { createEventLog } from '../../shared/log/log.ts';
import { feedLog, keys } from '../../shared/storage/schema.ts';
import { createMemoryTable } from '../../shared/storage/sqlite-table.ts';
import { apiParts } from '../support/api.ts';
import { moved } from '../support/delivery-world.ts';

const KEY = 'the-key-of-this-test';
const now = () => Date.parse('2026-03-02T08:00:00Z');

/** A table with an account in each of two regions, and an API that serves some of the regions. */
async function serve() {
  const table = createMemoryTable();
  const schemaBaseUrl = 'https://jobwire.example';
  const log = createEventLog(table, { now, newId: randomUUID, schemaBaseUrl });
  const refs = [
    { region: 'us', account: 'acme' },
    { region: 'nz', account: 'kiwi' },
  ];
  const tell = async (ref: (typeof refs)[number], events: number) => {
    await log.append(
      ref,
      Array.from({ length: events }, (_, at) => moved(at + 1, 'a')),
    );
    await forwardLogs(table, [ref], { now, sleep: async () => undefined });
  };
  for (const ref of refs) {
    const account = { ...ref, secretRef: 'x', pollIntervalSeconds: 60, paused: false };
    await registerAccount(table, log, account, { now: now(), epoch: `e${ref.region}` });
  }
  const created = await createKey({ table, now }, { name: 'k', role: 'read', accounts: ['acme'] }, OPERATOR);
  if (!('secret' in created)) throw new Error(JSON.stringify(created));
  const read = async (regions: readonly string[], query: string, key = KEY) => {
    const api = createApi({ table, log, regions, ...apiParts(table, KEY, now, regions), now });
    const headers = { authorization: `Bearer ${key}` };
    const answer = await api.request(`/v1/events?${query}`, { headers });
    const body = (await answer.json()) as { events?: { id: string }[]; next: string; detail?: string };
    const events = body.events?.map(({ id }) => id.replace(/\.[^.]+\./, '.')) ?? [];
    return { status: answer.status, next: body.next, detail: body.detail, events };
  };
  const [acme, kiwi] = refs as [(typeof refs)[0], (typeof refs)[0]];
  return { table, tell, read, acme, kiwi, restricted: created.secret };
}

test('a cursor stored while one region was served is still valid after a second region was added', async () => {
  const { read, tell, acme, kiwi, restricted } = await serve();
  await tell(acme, 3);
  await tell(kiwi, 1);
  for (const [key, others] of [
    [KEY, ['kiwi.1']],
    [restricted, []],
  ] as const) {
    const { next } = await read(['us'], 'limit=2', key);
    expect(next).toBe('eus.2');
    const after = await read(['nz', 'us'], `after=${next}`, key);
    expect(after).toMatchObject({ status: 200, events: [...others, 'acme.3'] });
    expect(after.next).toMatch(key === KEY ? /^nz\.enz\.1~us\.eus\.3$/ : /^us\.eus\.3$/);
    const newest = await read(['nz', 'us'], `order=newest&before=${next}`, key);
    expect(newest).toMatchObject({ status: 200, events: ['acme.2', 'acme.1'] });
  }
});

test('a cursor from before the first account is still valid after a second region was added', async () => {
  const { read, tell, acme, kiwi } = await serve();
  const { next } = await read(['fr'], '');
  expect(next).toBe('0');
  await tell(acme, 1);
  await tell(kiwi, 1);
  expect((await read(['fr', 'nz', 'us'], `after=${next}`)).events).toEqual(['kiwi.1', 'acme.1']);
});

test('a cursor of an epoch that was replaced by a restore is found in its region', async () => {
  const { read, tell, table, acme } = await serve();
  await tell(acme, 3);
  const former = ['eold.2'];
  await table.write({ update: keys.head(feedLog('us')), set: { former } });
  expect(await read(['nz', 'us'], 'after=eold.1')).toMatchObject({
    status: 200,
    events: ['acme.2', 'acme.3'],
  });
});

test('a cursor of an unknown epoch gets 400 from several regions, also with a key for some accounts', async () => {
  const { read, tell, acme, restricted } = await serve();
  await tell(acme, 3);
  for (const key of [KEY, restricted]) {
    for (const cursor of ['ezz.1', 'us.eus.1~ezz.1', 'xx.7']) {
      const { status, detail } = await read(['nz', 'us'], `after=${cursor}`, key);
      expect([status, detail], cursor).toEqual([400, expect.stringContaining('after must be')]);
    }
  }
});

test('a cursor of a key for some accounts remains valid if it names only regions that are no longer served', async () => {
  const { read, tell, acme, restricted } = await serve();
  await tell(acme, 1);
  for (const cursor of ['none.0', 'fr.e1.7', 'fr.0', 'fr.e1.7~es.0']) {
    expect(await read(['nz', 'us'], `after=${cursor}`, restricted), cursor).toMatchObject({
      ...{ status: 200, events: ['acme.1'], next: 'us.eus.1' },
    });
  }
});
