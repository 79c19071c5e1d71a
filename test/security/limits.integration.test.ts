/** Neither one tenant nor a caller without a key can exhaust shared capacity, or make others' work grow without limit. */
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { connect } from 'node:net';
import { createAdaptorServer } from '@hono/node-server';
import { expect, onTestFinished, test, vi } from 'vitest';
import { registerAccount } from '../../shared/accounts/accounts.ts';
import {
  type AlertRuleDeps,
  createAlertRule,
  MAX_ALERT_RULES_PER_ACCOUNT,
  readAlertRule,
  updateAlertRule,
} from '../../shared/alerts/rules.ts';
import { createApi } from '../../shared/api/app.ts';
import { createKey, listKeys, MAX_KEYS_OF_ACCOUNT, OPERATOR } from '../../shared/api/keys.ts';
import { createDeliveryLog } from '../../shared/delivery/delivery-log.ts';
import { listEndpointsPage } from '../../shared/delivery/endpoint.ts';
import type { EndpointDeps } from '../../shared/delivery/endpoint-edits.ts';
import {
  createEndpoint,
  MAX_ENDPOINTS,
  MAX_ENDPOINTS_PER_ACCOUNT,
  updateEndpoint,
} from '../../shared/delivery/endpoints.ts';
import { openLocalSigningSecrets } from '../../shared/delivery/signing-secrets.ts';
import { createEventLog } from '../../shared/log/log.ts';
import { listMessages } from '../../shared/notifications/message-history.ts';
import { createRecipient, MAX_RECIPIENTS } from '../../shared/notifications/recipients.ts';
import { importRecipients } from '../../shared/notifications/recipients-csv.ts';
import { openSealedTexts } from '../../shared/secrets.ts';
import { historySchema, keys } from '../../shared/storage/schema.ts';
import { createMemoryTable } from '../../shared/storage/sqlite-table.ts';
import type { Table } from '../../shared/storage/table.ts';
import { apiParts } from '../support/api.ts';

const REGION = 'us';
const ACME = { region: REGION, account: 'acme' };
const OTHER = { region: REGION, account: 'other' };
const URL = 'https://erp.example.com/hook';

async function createWorld() {
  const table = createMemoryTable();
  const now = () => Date.UTC(2026, 0, 1);
  const log = createEventLog(table, { now, newId: randomUUID, schemaBaseUrl: 'https://jobwire.example' });
  for (const ref of [ACME, OTHER]) {
    const account = { ...ref, secretRef: ref.account, pollIntervalSeconds: 60, paused: false };
    await registerAccount(table, log, account, { now: now(), epoch: 'e1' });
  }
  const deps: EndpointDeps = {
    ...{ table, log, now, newId: randomUUID, allowPrivateNetworks: false },
    schemaBaseUrl: 'https://jobwire.example',
    secrets: await openLocalSigningSecrets(table, new Uint8Array(32)),
    deliveries: createDeliveryLog(createMemoryTable(historySchema), { newId: randomUUID }),
    open: async () => ({ maxBatch: 1, deliver: async () => [{ kind: 'delivered' }] }),
  };
  const fill = (count: number, accounts: readonly string[]) =>
    table.putMany(
      Array.from({ length: count }, (_, at) => [
        ...accounts.map((account) => ({ ...keys.follower({ region: REGION, account }, `e${at}`) })),
        {
          ...keys.sink(REGION, `e${at}`),
          ...{ kind: 'webhook', target: URL, accounts, types: [], createdAt: 1, revision: 1 },
        },
      ]).flat(),
    );
  return { table, deps, fill };
}

test('a region has a maximum number of endpoints', async () => {
  const { deps, fill } = await createWorld();
  await fill(MAX_ENDPOINTS - 1, []);
  expect(await createEndpoint(deps, REGION, { id: 'last', url: URL })).toMatchObject({ kind: 'created' });
  expect(await createEndpoint(deps, REGION, { id: 'beyond', url: URL })).toMatchObject({
    kind: 'conflict',
    reason: expect.stringContaining('Delete one first'),
  });
});

test('an account is named by a maximum number of endpoints, without effect on others', async () => {
  const { deps, fill } = await createWorld();
  await fill(MAX_ENDPOINTS_PER_ACCOUNT, ['acme']);
  const full = { kind: 'conflict', reason: expect.stringContaining('"acme"') };
  expect(await createEndpoint(deps, REGION, { id: 'x', url: URL, accounts: ['acme'] })).toMatchObject(full);
  const own = await createEndpoint(deps, REGION, { id: 'x', url: URL, accounts: ['other'] });
  expect(own).toMatchObject({ kind: 'created' });
  expect(await updateEndpoint(deps, REGION, 'x', { accounts: ['other', 'acme'] })).toMatchObject(full);
  expect(await updateEndpoint(deps, REGION, 'x', { description: 'mine' })).toMatchObject({ kind: 'changed' });
});

test('the creation of endpoints does not read all others each time', async () => {
  const { table, deps, fill } = await createWorld();
  const [others, created] = [2_000, 50];
  await fill(others, []);
  let read = 0;
  const query: Table['query'] = async (range) => {
    const items = await table.query(range);
    read += items.length;
    return items;
  };
  const watched = { ...deps, table: { ...table, query } };
  for (let at = 0; at < created; at += 1) {
    const outcome = await createEndpoint(watched, REGION, { url: URL, accounts: ['acme'] });
    expect(outcome).toMatchObject({ kind: 'created' });
  }
  // All others once, and for each creation the endpoints of its account.
  expect(read).toBeLessThan(others + created * created);
});

test('a page of one entry takes few reads, although a filter or the permissions of the key hide a thousand others', async () => {
  const { table, fill } = await createWorld();
  const history = createMemoryTable(historySchema);
  const places = Array.from({ length: 1_000 }, (_, at) => String(at).padStart(12, 'a'));
  await fill(places.length, ['other']);
  await table.putMany(places.map((id) => ({ ...keys.apiKey(id), role: 'read', accounts: ['other'] })));
  const message = JSON.stringify({ state: 'sent' });
  await history.putMany(places.map((id) => ({ ...keys.sentMessage(ACME, id), message })));
  const reads = [vi.spyOn(table, 'query'), vi.spyOn(history, 'query')];
  const shows = ({ accounts }: { readonly accounts: readonly string[] }) => accounts.includes('acme');
  expect(await listEndpointsPage({ table }, [REGION], { limit: 1, shows })).toMatchObject({ endpoints: [] });
  expect(await listKeys({ table }, { limit: 1 }, { ...OPERATOR, accounts: ['acme'] })).toMatchObject({
    keys: [],
  });
  expect(await listMessages(history, ACME, { limit: 1, state: 'failed' })).toMatchObject({ messages: [] });
  for (const { mock } of reads) expect(mock.calls.length).toBeLessThan(30);
});

test('an account is named by a maximum number of keys, without effect on others', async () => {
  const { table, deps } = await createWorld();
  await table.putMany(
    Array.from({ length: MAX_KEYS_OF_ACCOUNT }, (_, at) => ({
      ...keys.apiKey(String(at).padStart(12, 'a')),
      accounts: at % 2 === 0 ? ['acme'] : ['acme', 'third'],
    })),
  );
  const create = (...accounts: string[]) =>
    createKey({ table, now: deps.now }, { role: 'read', accounts }, OPERATOR);
  const full = { kind: 'conflict', reason: expect.stringContaining('"acme"') };
  expect(await create('other', 'acme')).toMatchObject(full);
  expect(await create('other')).toMatchObject({ kind: 'created' });
});

test('an account is named by a maximum number of alert rules, without effect on others', async () => {
  const { table, deps } = await createWorld();
  const rules: AlertRuleDeps = {
    ...{ table, now: deps.now, allowPrivateNetworks: false, canMail: true },
    targets: await openSealedTexts(table, new Uint8Array(32)),
  };
  const create = (id: string, ...accounts: string[]) =>
    createAlertRule(
      rules,
      REGION,
      {
        ...{ id, name: id, condition: 'late_jobs', threshold: 1 },
        ...{ target: { kind: 'email', to: ['ops@example.com'] }, ...(accounts.length > 0 && { accounts }) },
      },
      randomUUID,
    );
  for (let at = 0; at < MAX_ALERT_RULES_PER_ACCOUNT; at += 1) {
    expect(await create(`r${at}`, 'acme')).toMatchObject({ kind: 'created' });
  }
  const full = { kind: 'conflict', reason: expect.stringContaining('"acme"') };
  expect(await create('more', 'other', 'acme')).toMatchObject(full);
  expect(await create('own', 'other')).toMatchObject({ kind: 'created' });
  expect(await create('all')).toMatchObject({ kind: 'created' });
  const change = async (id: string, input: object) => {
    const stored = await readAlertRule(table, REGION, id);
    return stored && updateAlertRule(rules, stored, input, {}, randomUUID);
  };
  expect(await change('own', { accounts: ['other', 'acme'] })).toMatchObject(full);
  expect(await change('r0', { threshold: 2, accounts: ['acme', 'other'] })).toMatchObject({ rule: {} });
});

test('an account has a maximum number of recipients, created one by one or imported', async () => {
  const { table, deps } = await createWorld();
  const { now, newId, log } = deps;
  const people = { table, log, now, newId };
  await table.putMany(
    Array.from({ length: MAX_RECIPIENTS - 1 }, (_, at) => ({
      ...keys.recipient(ACME, `r${at}`),
      ...{ source: 'manual', revision: 1 },
    })),
  );
  const csv = 'email\nann@example.com\nben@example.com\n';
  expect(await importRecipients(people, ACME, csv)).toMatchObject({
    created: 1,
    invalidRows: [{ line: 3, reason: expect.stringContaining('Delete some first') }],
  });
  const input = { email: 'cy@example.com' };
  expect(await createRecipient(people, ACME, input)).toMatchObject({ kind: 'conflict' });
  expect(await createRecipient(people, OTHER, input)).toMatchObject({ kind: 'created' });
});

test.each([
  ['/v1/accounts', 120_000],
  ['/v1/accounts/import', 0],
])(
  'of a body without a length that is sent to %s without a key, at most %i bytes are read',
  async (path, most) => {
    const table = createMemoryTable();
    const { log } = (await createWorld()).deps;
    const app = createApi({
      ...{ table, log, regions: [REGION], now: Date.now },
      ...apiParts(table, 'the-key-of-this-test'),
    });
    let bytes = 0;
    const body = new ReadableStream<Uint8Array>(
      {
        pull(controller) {
          bytes += 10_000;
          if (bytes > 5_000_000) controller.close();
          else controller.enqueue(new Uint8Array(10_000));
        },
      },
      { highWaterMark: 0 },
    );
    const headers = { 'content-type': 'application/json', 'transfer-encoding': 'chunked' };
    const answer = await app.request(path, { method: 'POST', headers, body, duplex: 'half' } as RequestInit);
    expect(answer.status).toBe(most === 0 ? 401 : 413);
    expect(bytes).toBeLessThanOrEqual(most);
  },
);

test.each([
  ['/v1/accounts', 'Transfer-Encoding: chunked', '5\r\naaaaa\r\n'],
  ['/v1/wall-pairings/key', 'Content-Length: 100', 'aaaaa'],
])(
  'a client without a key that disconnects within its body causes no failed request: %s, %s',
  async (path, header, part) => {
    const table = createMemoryTable();
    const { log } = (await createWorld()).deps;
    const faults: unknown[] = [];
    const answered = Promise.withResolvers<number>();
    const app = createApi({
      ...{ table, log, regions: [REGION], now: Date.now },
      ...apiParts(table, 'the-key-of-this-test'),
      onError: (cause) => faults.push(cause),
      onAnswer: (_, { status }) => answered.resolve(status),
    });
    const begun = Promise.withResolvers<void>();
    const server = createAdaptorServer({
      fetch: (request) => {
        begun.resolve();
        return app.fetch(request);
      },
    });
    onTestFinished(() => void server.close());
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    const address = server.address();
    const socket = connect(typeof address === 'object' ? (address?.port ?? 0) : 0, '127.0.0.1');
    socket.write(`POST ${path} HTTP/1.1\r\nHost: localhost\r\n${header}\r\n\r\n${part}`);
    await begun.promise;
    socket.destroy();
    expect(await answered.promise).toBe(400);
    expect(faults).toEqual([]);
  },
);
