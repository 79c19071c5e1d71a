/**
 * Changes of signing secrets and headers of endpoints during a drain, in the process that made the change and in another one on
 * the same table. Receivers verify with the reference implementation of Standard Webhooks.
 */
import { randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Webhook } from 'standardwebhooks';
import { expect, onTestFinished, test } from 'vitest';
import { createEndpointOpener } from '../../functions/handlers/drain-sink.ts';
import { registerAccount } from '../../shared/accounts/accounts.ts';
import { createDeliveryLog } from '../../shared/delivery/delivery-log.ts';
import { drainSink } from '../../shared/delivery/drain.ts';
import type { DrainReport } from '../../shared/delivery/drain-deps.ts';
import { rotateSecret } from '../../shared/delivery/endpoint-controls.ts';
import type { EndpointDeps } from '../../shared/delivery/endpoint-edits.ts';
import { createEndpoint, deleteEndpoint, updateEndpoint } from '../../shared/delivery/endpoints.ts';
import { createConnectionPool } from '../../shared/delivery/outbound.ts';
import {
  createSigningReader,
  openLocalSigningSecrets,
  SIGNING_MAX_AGE_MS,
  type SigningSecrets,
  withCacheInvalidation,
} from '../../shared/delivery/signing-secrets.ts';
import type { SinkRecord } from '../../shared/delivery/sink.ts';
import { wakeSinks } from '../../shared/delivery/wakes.ts';
import { createWebhookSink } from '../../shared/delivery/webhook.ts';
import { createEventLog, type LoggedEvent } from '../../shared/log/log.ts';
import { historySchema } from '../../shared/storage/schema.ts';
import { createMemoryTable } from '../../shared/storage/sqlite-table.ts';
import { moved, newSecret, REGION, type Received } from '../support/delivery-world.ts';

const ACCOUNT = { region: REGION, account: 'acme' };

interface Post extends Received {
  readonly path: string;
}

/** A receiver on loopback that accepts everything; `during` runs before the answer to each request, from 1. */
async function startReceiver() {
  const posts: Post[] = [];
  const hooks: { during: (at: number) => unknown } = { during: () => undefined };
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = Buffer.concat(chunks).toString();
    await hooks.during(posts.push({ path: request.url ?? '', headers: request.headers, body }));
    response.writeHead(204).end();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    return new Promise<void>((resolve) => server.close(() => resolve()));
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, posts, hooks };
}

/** Processes on one table, a clock that tests move, and a receiver. */
async function createCell() {
  const clock = { now: Date.now() };
  const now = () => clock.now;
  const table = createMemoryTable();
  const receiver = await startReceiver();
  const log = createEventLog(table, { now, newId: randomUUID, schemaBaseUrl: 'https://jobwire.example' });
  await registerAccount(
    table,
    log,
    { ...ACCOUNT, secretRef: 'acme', pollIntervalSeconds: 60, paused: false },
    { now: clock.now, epoch: 'e1' },
  );
  const stored = await openLocalSigningSecrets(table, new Uint8Array(32).fill(7));

  function startProcess() {
    const store: { -readonly [K in keyof SigningSecrets]: SigningSecrets[K] } = { ...stored };
    const reader = createSigningReader(store, now);
    const connections = createConnectionPool({ allowPrivateNetworks: true });
    onTestFinished(() => connections.close());
    const open = async (record: SinkRecord) =>
      createWebhookSink({
        ...{ url: record.target, now },
        signing: () => reader(record.region, record.id, record),
        connections: connections.of(record.id, 1),
      });
    const deps: EndpointDeps = {
      ...{ table, log, now, open, newId: randomUUID, schemaBaseUrl: 'https://jobwire.example' },
      secrets: withCacheInvalidation(store, reader),
      deliveries: createDeliveryLog(createMemoryTable(historySchema), { newId: randomUUID }),
      allowPrivateNetworks: true,
    };
    return {
      deps,
      /** Source of the secrets. */
      store,
      drain: (): Promise<DrainReport> =>
        drainSink(
          { ...{ table, log, now, open, newId: randomUUID }, random: () => 0.5, retrySeconds: [1] },
          REGION,
          'erp',
          clock.now + 600_000,
        ),
    };
  }

  return {
    clock,
    receiver,
    startProcess,
    /** Creates the endpoint: one event at a time. Returns its secret. */
    async create(deps: EndpointDeps, input: object = {}): Promise<string> {
      const made = await createEndpoint(deps, REGION, {
        ...{ id: 'erp', url: `${receiver.url}/erp`, concurrency: 1 },
        ...input,
      });
      if (made.kind !== 'created') throw new Error(made.reason);
      if (made.secret === null) throw new Error('The endpoint has no secret.');
      return made.secret;
    },
    async emit(count: number): Promise<void> {
      const events = Array.from({ length: count }, (_, at) => ({ ...moved(at + 1, 'x'), time: clock.now }));
      const appended = await log.append(ACCOUNT, events);
      if (appended.kind !== 'appended') throw new Error('The events were rejected.');
      await wakeSinks(table, ACCOUNT, appended.head.sequence, clock.now);
    },
  };
}

/** Returns whether a receiver with this secret accepts a request. */
function isSignedBy(secret: string, { body, headers }: Post): boolean {
  try {
    new Webhook(secret).verify(body, headers as Record<string, string>);
    return true;
  } catch {
    return false;
  }
}

async function rotate(deps: EndpointDeps, input: object = {}): Promise<string> {
  const rotated = await rotateSecret(deps, REGION, 'erp', input);
  if (rotated.kind !== 'rotated') throw new Error(rotated.reason);
  return rotated.secret;
}

const ALONE = { gracePeriodSeconds: 0 };

test('a secret rotated during a drain signs its next attempt, together with the former one', async () => {
  const cell = await createCell();
  const { deps, drain } = cell.startProcess();
  const old = await cell.create(deps);
  await cell.emit(4);
  let next = '';
  cell.receiver.hooks.during = async (at) => {
    if (at === 2) next = await rotate(deps);
  };
  expect(await drain()).toMatchObject({ outcome: 'drained', delivered: 4, failed: 0 });
  const { posts } = cell.receiver;
  expect(posts.map((post) => isSignedBy(old, post))).toEqual([true, true, true, true]);
  expect(posts.map((post) => isSignedBy(next, post))).toEqual([false, false, true, true]);
  expect(posts.map(({ headers }) => String(headers['webhook-signature']).split(' ').length)).toEqual([
    ...[1, 1, 2, 2],
  ]);
});

test('a former secret revoked during a drain does not sign its next attempt', async () => {
  const cell = await createCell();
  const { deps, drain } = cell.startProcess();
  const old = await cell.create(deps);
  await cell.emit(3);
  let next = '';
  cell.receiver.hooks.during = async (at) => {
    if (at === 1) next = await rotate(deps, ALONE);
  };
  await drain();
  expect(cell.receiver.posts.map((post) => [isSignedBy(old, post), isSignedBy(next, post)])).toEqual([
    ...[[true, false], ...Array(2).fill([false, true])],
  ]);
});

test('a former secret stops signing at its expiry, also within a drain', async () => {
  const cell = await createCell();
  const { deps, drain } = cell.startProcess();
  const old = await cell.create(deps);
  const next = await rotate(deps, { gracePeriodSeconds: 2 });
  await cell.emit(3);
  cell.receiver.hooks.during = (at) => {
    cell.clock.now += at === 1 ? 1_999 : 1;
  };
  await drain();
  expect(cell.receiver.posts.map((post) => [isSignedBy(old, post), isSignedBy(next, post)])).toEqual([
    ...[[true, true], ...[[true, true]], ...[[false, true]]],
  ]);
});

test('a secret rotated in another process signs requests after at most 5 s, also in a running drain', async () => {
  expect(SIGNING_MAX_AGE_MS).toBeLessThanOrEqual(5_000);
  const cell = await createCell();
  const [operator, worker] = [cell.startProcess(), cell.startProcess()];
  const old = await cell.create(operator.deps);
  await cell.emit(4);
  let next = '';
  cell.receiver.hooks.during = async (at) => {
    if (at === 2) next = await rotate(operator.deps, ALONE);
    if (at === 3) cell.clock.now += 5_000;
  };
  expect(await worker.drain()).toMatchObject({ outcome: 'drained', delivered: 4 });
  const [, , , last] = cell.receiver.posts;
  expect(last && [isSignedBy(old, last), isSignedBy(next, last)]).toEqual([false, true]);
});

test('headers changed during a drain are those of its next attempt, in another process after at most 5 s', async () => {
  const cell = await createCell();
  const [operator, worker] = [cell.startProcess(), cell.startProcess()];
  await cell.create(operator.deps, { headers: { 'X-Token': 'first' } });
  const change = (value: string) =>
    updateEndpoint(operator.deps, REGION, 'erp', { headers: { 'X-Token': value } });
  await cell.emit(3);
  cell.receiver.hooks.during = async (at) => {
    if (at === 1) expect(await change('second')).toMatchObject({ kind: 'changed' });
    if (at === 4) {
      await change('third');
      cell.clock.now += 5_000;
    }
  };
  await operator.drain();
  await cell.emit(2);
  // A drain that finds changed settings ends, and the next one continues.
  expect(await worker.drain()).toMatchObject({ outcome: 'more' });
  expect(await worker.drain()).toMatchObject({ outcome: 'drained' });
  expect(cell.receiver.posts.map(({ headers }) => headers['x-token'])).toEqual([
    ...['first', 'second', 'second', 'second', 'third'],
  ]);
});

test('headers changed together with the URL are never sent to the former URL', async () => {
  const cell = await createCell();
  const { deps, drain } = cell.startProcess();
  const url = (path: string) => cell.receiver.url + path;
  await cell.create(deps, { url: url('/old'), headers: { 'X-Token': 'old' } });
  await cell.emit(4);
  cell.receiver.hooks.during = async (at) => {
    if (at !== 1) return;
    const moved = { url: url('/new'), headers: { 'X-Token': 'new' } };
    expect(await updateEndpoint(deps, REGION, 'erp', moved)).toMatchObject({ kind: 'changed' });
  };
  await drain();
  await cell.emit(1);
  await drain();
  const sent = (path: string) =>
    cell.receiver.posts.filter((post) => post.path === path).map(({ headers }) => headers['x-token']);
  expect(new Set(sent('/old'))).toEqual(new Set(['old']));
  expect(new Set(sent('/new'))).toEqual(new Set(['new']));
  // The URL is changed back, so the current headers are now those of that URL.
  await updateEndpoint(deps, REGION, 'erp', { url: url('/old') });
  await cell.emit(1);
  await drain();
  expect(sent('/old').at(-1)).toBe('new');
});

test('an endpoint re-created with the same id is never signed with a cached secret of its predecessor', async () => {
  const cell = await createCell();
  const [operator, worker] = [cell.startProcess(), cell.startProcess()];
  const former = await cell.create(operator.deps, { headers: { 'X-Token': 'former' } });
  await cell.emit(1);
  await worker.drain();
  await deleteEndpoint(operator.deps, REGION, 'erp');
  const secret = await cell.create(operator.deps);
  await cell.emit(1);
  // The clock is stopped, so the values that the worker cached have not expired.
  expect(await worker.drain()).toMatchObject({ outcome: 'drained', delivered: 1 });
  const [before, after] = cell.receiver.posts;
  expect(before && isSignedBy(former, before)).toBe(true);
  expect(after && [isSignedBy(former, after), isSignedBy(secret, after)]).toEqual([false, true]);
  expect(after?.headers).not.toHaveProperty('x-token');
});

test.each(['the same process', 'another process'])(
  'a drain of a deleted endpoint never sends the secrets of its replacement: in %s',
  async (where) => {
    const cell = await createCell();
    const worker = cell.startProcess();
    const operator = where === 'the same process' ? worker : cell.startProcess();
    const former = await cell.create(operator.deps, { url: `${cell.receiver.url}/former` });
    await cell.emit(4);
    let secret = '';
    cell.receiver.hooks.during = async (at) => {
      if (at !== 1) return;
      await deleteEndpoint(operator.deps, REGION, 'erp');
      secret = await cell.create(operator.deps, { headers: { 'X-Token': 'new' } });
      cell.clock.now += where === 'the same process' ? 0 : 5_000;
    };
    await worker.drain();
    const { posts } = cell.receiver;
    expect(posts.map(({ path }) => path)).toEqual(['/former']);
    expect(posts.map((post) => [isSignedBy(former, post), isSignedBy(secret, post)])).toEqual([
      [true, false],
    ]);
  },
);

test('no request is sent while the secrets are unreadable; the event is sent afterwards', async () => {
  const cell = await createCell();
  const { deps, drain, store } = cell.startProcess();
  const secret = await cell.create(deps);
  await cell.emit(2);
  const { load } = store;
  cell.receiver.hooks.during = () => {
    store.load = async () => Promise.reject(new Error('The secret erp could not be read.'));
    cell.clock.now += 5_000;
  };
  expect(await drain()).toMatchObject({ outcome: 'waiting', problem: 'The secret erp could not be read.' });
  expect(cell.receiver.posts).toHaveLength(1);
  store.load = load;
  cell.clock.now += 60_000;
  expect(await drain()).toMatchObject({ outcome: 'drained', delivered: 1 });
  expect(cell.receiver.posts.map((post) => isSignedBy(secret, post))).toEqual([true, true]);
});

test('a clock that is set back does not extend the lifetime of a cached secret', async () => {
  const clock = { now: Date.now() };
  const [old, next] = [newSecret(), newSecret()];
  let kept = { secrets: [old] };
  const read = createSigningReader({ load: async () => kept }, () => clock.now);
  expect((await read(REGION, 'erp')).secrets).toEqual([old]);
  kept = { secrets: [next] };
  clock.now -= 3_600_000;
  expect((await read(REGION, 'erp')).secrets).toEqual([next]);
});

test('a function reads the secrets of an endpoint for each attempt, by its record', async () => {
  const asked: unknown[] = [];
  const open = createEndpointOpener({
    async signing(...of) {
      asked.push(of);
      return { secrets: [newSecret()], headers: {} };
    },
    openQueue: () => expect.fail('No queue is opened.'),
    now: Date.now,
  });
  const record: SinkRecord = {
    ...{ region: REGION, id: 'erp', kind: 'webhook', accounts: [], types: [], paused: false },
    // Not public, so nothing is sent.
    ...{ target: 'https://127.0.0.1:8443/', creation: 'c1' },
  };
  const port = await open(record);
  asked.length = 0;
  const event = { id: 'acme.e1.1', json: '{}' } as LoggedEvent;
  for (let attempt = 1; attempt <= 2; attempt += 1) {
    expect(await port.deliver([{ event }])).toMatchObject([{ kind: 'retry' }]);
    expect(asked).toEqual(Array(attempt).fill([REGION, 'erp', record]));
  }
});
