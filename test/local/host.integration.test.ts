/**
 * The complete self-hosted process: endpoints of the configuration and of the API, on each table and real sockets.
 * One file: all tests start the process with the same ordering API, receivers and tables.
 */
import { randomUUID } from 'node:crypto';
import { EventEmitter, once } from 'node:events';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout } from 'node:timers/promises';
import { Webhook } from 'standardwebhooks';
import { afterEach, expect, test, vi } from 'vitest';
import { type Host, startHost } from '../../local/host.ts';
import type { HostOptions } from '../../local/host-options.ts';
import { testAccount } from '../../shared/accounts/account-test.ts';
import { registerAccount, schedule } from '../../shared/accounts/accounts.ts';
import {
  createAccount,
  deleteAccount,
  pauseAccount,
  readAccount,
} from '../../shared/accounts/managed-accounts.ts';
import { type Config, ConfigError, parseConfig } from '../../shared/config.ts';
import { createDeliveryLog } from '../../shared/delivery/delivery-log.ts';
import { enableEndpoint, pingEndpoint, rotateSecret } from '../../shared/delivery/endpoint-controls.ts';
import { createEndpoint, updateEndpoint } from '../../shared/delivery/endpoints.ts';
import { readReplay, startReplay } from '../../shared/delivery/replays.ts';
import { newSigningSecret } from '../../shared/delivery/signing-secrets.ts';
import { createEventLog } from '../../shared/log/log.ts';
import {
  alertRulePk,
  cursorPk,
  historySchema,
  keys,
  pollDuePk,
  sinkPk,
  wakePk,
} from '../../shared/storage/schema.ts';
import { createMemoryTable } from '../../shared/storage/sqlite-table.ts';
import type { Table } from '../../shared/storage/table.ts';
import { claimDue } from '../../shared/tracking/claims.ts';
import { pageAccountsWithStatus } from '../../shared/tracking/operator.ts';
import { readEndpoint } from '../support/endpoints.ts';
import { configFor, startSandbox } from '../support/jobwire.ts';
import { eachTable } from '../support/tables.ts';

const open: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of open.splice(0).reverse()) await close();
});

interface Post {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** Receivers on loopback, one per path; each answers 204 by default. */
async function startReceivers() {
  const posts: Post[] = [];
  const news = new EventEmitter();
  const statuses = new Map<string, number>();
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const path = request.url ?? '';
      response.writeHead(statuses.get(path) ?? 204).end();
      posts.push({ path, headers: request.headers, body: Buffer.concat(chunks).toString() });
      news.emit('post');
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  open.push(() => {
    server.closeAllConnections();
    return new Promise((resolve) => server.close(resolve));
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    url,
    statuses,
    of: (path: string) => posts.filter((post) => post.path === path),
    /** Waits until a condition is true; checked after every request. */
    async until(holds: () => boolean) {
      while (!holds()) await once(news, 'post');
    },
  };
}

const verify = (secret: string, { body, headers }: Post): unknown =>
  new Webhook(secret).verify(body, headers as Record<string, string>);

eachTable('A host', (makeTable, _, makeHistoryTable) => {
  async function setUp(endpoints: (url: string) => object[]) {
    const { sandbox, world } = await startSandbox();
    const account = world.addAccount({ region: 'us', name: 'acme' });
    const receivers = await startReceivers();
    const [table, history] = [await makeTable(), await makeHistoryTable()];
    const polled = configFor(sandbox, [account]);
    const config = parseConfig(
      {
        ...polled,
        accounts: polled.accounts.map((one) => ({ ...one, pollIntervalSeconds: 86_400 })),
        endpoints: endpoints(receivers.url),
        webhooks: { allowPrivateNetworks: true, retrySeconds: [0.2] },
      },
      {},
    );
    const faults: unknown[] = [];
    const start = async (changed: Config = config, hooks: Partial<HostOptions> = {}): Promise<Host> => {
      const host = await startHost({
        ...{ config: changed, table, history },
        secretKey: Buffer.alloc(32, 1),
        publicUrl: 'http://jobwire.example',
        exclusive: true,
        tickMs: 50,
        onFault: (_, cause) => faults.push(cause),
        ...hooks,
      });
      open.push(() => host.stop(2_000));
      return host;
    };
    const say = (host: Host, ...numbers: number[]) =>
      host.log.append(
        { region: 'us', account: 'acme' },
        numbers.map((number) => {
          const observed = { at: new Date().toISOString(), since: null, view: 'list' as const };
          return { type: 'status.discovered', time: Date.now(), data: { observed, status: `${number}` } };
        }),
      );
    return { receivers, table, history, config, faults, start, say, world };
  }

  test('a declared endpoint gets its filtered events, with its own headers, signed by each of its secrets', async () => {
    const secrets = [newSigningSecret(), newSigningSecret()];
    const { receivers, faults, history, start, say } = await setUp((url) => [
      {
        ...{ id: 'erp', url: `${url}/erp`, secret: secrets, types: ['status.*'] },
        headers: { 'x-tenant': 'acme' },
        ...{ concurrency: 2, ratePerSecond: 100 },
      },
      { id: 'jobs', url: `${url}/jobs`, secret: secrets[0], jobFields: { status: 'Shipped' } },
    ]);
    const host = await start();
    await say(host, 1, 2, 3);
    await receivers.until(() => receivers.of('/erp').length >= 3);
    const [post] = receivers.of('/erp');
    if (!post) throw new Error('Nothing was received.');
    for (const secret of secrets) expect(verify(secret, post)).toMatchObject({ type: 'status.discovered' });
    expect(post.headers['x-tenant']).toBe('acme');
    await host.stop(2_000);
    expect(receivers.of('/jobs'), 'events about accounts have no fields of a job').toEqual([]);
    const log = createDeliveryLog(history, { newId: () => 'x' });
    const { entries } = await log.bySink('us', 'erp');
    expect(entries.length).toBeGreaterThanOrEqual(3);
    expect(
      entries.every(({ outcome, status, cause }) => `${outcome} ${status} ${cause}` === 'delivered 204 live'),
    ).toBe(true);
    expect(faults).toEqual([]);
  });

  test('an endpoint created with the id of a declared one of another region has neither its headers nor its secret', async () => {
    const declared = newSigningSecret();
    const { receivers, config, start } = await setUp((url) => [
      { id: 'erp', url: `${url}/erp`, secret: declared, accounts: ['acme'], headers: { 'x-tenant': 'acme' } },
    ]);
    const { us } = config.regions;
    if (!us) throw new Error('There is no region.');
    const host = await start({ ...config, regions: { us, nz: us } });
    const made = await createEndpoint(host.endpoints, 'nz', { id: 'erp', url: `${receivers.url}/thief` });
    if (made.kind !== 'created') throw new Error(made.reason);
    expect(await pingEndpoint(host.endpoints, 'nz', 'erp')).toMatchObject({ outcome: 'delivered' });
    const [post] = receivers.of('/thief');
    if (!post) throw new Error('Nothing was received.');
    expect(post.headers['x-tenant']).toBeUndefined();
    expect(() => verify(declared, post)).toThrow();
    expect(verify(made.secret ?? '', post)).toMatchObject({ type: 'jobwire.ping' });
    expect(await pingEndpoint(host.endpoints, 'us', 'erp')).toMatchObject({ outcome: 'delivered' });
    // The poll of its account may have delivered an event before.
    const received = receivers.of('/erp').map((post) => verify(declared, post));
    expect(received).toContainEqual(expect.objectContaining({ type: 'jobwire.ping' }));
  });

  test('an account whose poll crashed with the previous process is polled at once, not after its claim expired', async () => {
    const { table, receivers, start } = await setUp((url) => [
      { id: 'erp', url: `${url}/erp`, secret: newSigningSecret(), types: ['account.*'] },
    ]);
    const account = {
      region: 'us',
      account: 'acme',
      secretRef: 'acme',
      pollIntervalSeconds: 60,
      paused: false,
    };
    const log = createEventLog(table, {
      now: Date.now,
      newId: randomUUID,
      schemaBaseUrl: 'http://x.example',
    });
    await registerAccount(table, log, account, { now: Date.now(), epoch: 'e1' });
    const claim = { now: Date.now(), limit: 1, claimSeconds: 86_400 };
    expect(await claimDue(table, 'us', claim)).toHaveLength(1);
    await start();
    await receivers.until(() => receivers.of('/erp').some(({ body }) => body.includes('account.baselined')));
  });

  test.each(['while it runs', 'while it is stopped'])(
    'accounts are polled although the clock was set back by hours %s',
    async (when) => {
      const { config, start } = await setUp(() => []);
      const accounts = config.accounts.map((account) => ({ ...account, pollIntervalSeconds: 1 }));
      const real = Date.now;
      let ahead = 7_200_000;
      const clock = vi.spyOn(Date, 'now').mockImplementation(() => real() + ahead);
      open.push(() => clock.mockRestore());
      const polls = new EventEmitter();
      const begin = () => start({ ...config, accounts }, { onPoll: () => polls.emit('poll') });
      const host = await begin();
      await once(polls, 'poll');
      await once(polls, 'poll');
      if (when === 'while it is stopped') await host.stop(2_000);
      ahead = 0;
      if (when === 'while it is stopped') await begin();
      // One may have been in progress.
      await once(polls, 'poll');
      await once(polls, 'poll');
    },
    15_000,
  );

  test('an endpoint created at run time gets events, is pinged, rotated, replayed to, and exists after a restart', async () => {
    const { receivers, config, start, say } = await setUp(() => []);
    const first = await start();
    await say(first, 1, 2);
    const made = await createEndpoint(first.endpoints, 'us', {
      id: 'shop',
      url: `${receivers.url}/shop`,
      types: ['status.*'],
    });
    if (made.kind !== 'created') throw new Error(made.reason);
    expect(await pingEndpoint(first.endpoints, 'us', 'shop')).toMatchObject({
      outcome: 'delivered',
      status: 204,
    });
    await say(first, 3);
    await receivers.until(() => receivers.of('/shop').length >= 2);
    const [ping, live] = receivers.of('/shop');
    if (!ping || !live) throw new Error('Nothing was received.');
    expect(verify(made.secret ?? '', ping)).toMatchObject({
      type: 'jobwire.ping',
      data: { endpoint: 'shop' },
    });
    expect(verify(made.secret ?? '', live)).toMatchObject({ data: { status: '3' } });

    const replay = await startReplay(first.endpoints, 'us', 'shop', { from: 'beginning' });
    if (replay.kind !== 'started') throw new Error('The replay was rejected.');
    const replayed = () =>
      receivers.of('/shop').filter(({ headers }) => headers['webhook-replay'] === 'true');
    await receivers.until(() =>
      replayed().some(({ headers }) => headers['webhook-id'] === live.headers['webhook-id']),
    );
    expect(replayed().every((post) => verify(made.secret ?? '', post) !== undefined)).toBe(true);
    await first.stop(2_000);
    expect(await readReplay(first.endpoints, 'us', 'shop', replay.replay.id)).toMatchObject({
      state: 'done',
    });

    const second = await start();
    expect(await readEndpoint(second.endpoints, 'us', 'shop')).toMatchObject({
      paused: false,
      managed: true,
    });
    const turned = await rotateSecret(second.endpoints, 'us', 'shop', {});
    if (turned.kind !== 'rotated') throw new Error(turned.reason);
    const before = receivers.of('/shop').length;
    await say(second, 4);
    await receivers.until(() => receivers.of('/shop').length > before);
    const rotated = receivers.of('/shop').at(-1);
    if (!rotated) throw new Error('Nothing was received.');
    for (const secret of [made.secret ?? '', turned.secret]) {
      expect(verify(secret, rotated)).toMatchObject({ data: { status: '4' } });
    }
    await second.stop(2_000);
    const endpoints: Config['endpoints'] = [
      { id: 'shop', url: `${receivers.url}/x`, secret: newSigningSecret() },
    ];
    await expect(start({ ...config, endpoints })).rejects.toThrow(ConfigError);
  });

  test('a secret or header changed while a drain lingers applies to the next request', async () => {
    const { receivers, start, say } = await setUp(() => []);
    const host = await start();
    const made = await createEndpoint(host.endpoints, 'us', {
      ...{ id: 'shop', url: `${receivers.url}/shop`, types: ['status.*'] },
      headers: { 'X-Token': 'old' },
    });
    if (made.kind !== 'created') throw new Error(made.reason);
    const next = async (status: number): Promise<Post> => {
      const before = receivers.of('/shop').length;
      await say(host, status);
      await receivers.until(() => receivers.of('/shop').length > before);
      return receivers.of('/shop')[before] as Post;
    };
    expect(verify(made.secret ?? '', await next(1))).toMatchObject({ data: { status: '1' } });
    const rotated = await rotateSecret(host.endpoints, 'us', 'shop', { gracePeriodSeconds: 0 });
    if (rotated.kind !== 'rotated') throw new Error(rotated.reason);
    await updateEndpoint(host.endpoints, 'us', 'shop', { headers: { 'X-Token': 'new' } });
    const post = await next(2);
    expect(verify(rotated.secret ?? '', post)).toMatchObject({ data: { status: '2' } });
    expect(() => verify(made.secret ?? '', post)).toThrow('No matching signature');
    expect(post.headers['x-token']).toBe('new');
  });

  test('an account created at run time is polled at once, stays after a restart, and keeps its id from the file', async () => {
    const { receivers, config, start, world } = await setUp((url) => [
      { id: 'erp', url: `${url}/erp`, secret: newSigningSecret(), types: ['account.*'] },
    ]);
    const { clientId, clientSecret } = world.addAccount({ region: 'us', name: 'globex' });
    const first = await start();
    const input = { id: 'globex', credentials: { clientId, clientSecret }, pollIntervalSeconds: 1 };
    expect(await createAccount(first.accounts, input)).toMatchObject({ kind: 'created' });
    const isReceived = (type: string) => () =>
      receivers.of('/erp').some(({ body }) => body.includes(type) && body.includes('"globex"'));
    await receivers.until(isReceived('account.baselined'));
    expect(await testAccount(first.accounts, { region: 'us', account: 'globex' })).toMatchObject({
      report: { ok: true, openJobs: 0 },
    });
    expect(await pauseAccount(first.accounts, { region: 'us', account: 'acme' })).toMatchObject({
      kind: 'conflict',
    });
    await first.stop(2_000);

    const second = await start();
    const page = await pageAccountsWithStatus(second.accounts);
    expect(page).toMatchObject({
      accounts: [
        { id: 'acme', managed: false, paused: false },
        { id: 'globex', managed: true, paused: false, status: { state: 'tracking' } },
      ],
    });
    const declared = { ...config.accounts[0], id: 'globex' } as Config['accounts'][number];
    await second.stop(2_000);
    await expect(start({ ...config, accounts: [...config.accounts, declared] })).rejects.toThrow(
      'accounts: the id "globex" belongs to an account in the region us, which was created through the API.',
    );

    // An account removed from the file is paused, and can be deleted then.
    const third = await start({ ...config, accounts: [] });
    expect(await readAccount(third.accounts, { region: 'us', account: 'acme' })).toMatchObject({
      managed: true,
      paused: true,
    });
    expect(await deleteAccount(third.accounts, { region: 'us', account: 'acme' })).toMatchObject({
      kind: 'deleted',
    });
    expect(await deleteAccount(third.accounts, { region: 'us', account: 'globex' })).toMatchObject({
      kind: 'deleted',
    });
    await third.stop(2_000);
    const fourth = await start();
    expect(await readAccount(fourth.accounts, { region: 'us', account: 'acme' })).toMatchObject({
      managed: false,
      paused: false,
    });
  });

  test('an endpoint that answers 410 is disabled, with an event in the region’s own log, and resumes at its cursor once enabled', async () => {
    const { receivers, start, say } = await setUp((url) => [
      { id: 'erp', url: `${url}/erp`, secret: newSigningSecret(), types: ['status.*'] },
      { id: 'watch', url: `${url}/watch`, secret: newSigningSecret(), types: ['endpoint.*'] },
    ]);
    const host = await start();
    await say(host, 1);
    await receivers.until(() => receivers.of('/erp').length >= 1);
    receivers.statuses.set('/erp', 410);
    await say(host, 2);
    await receivers.until(() => receivers.of('/watch').length >= 1);
    expect(JSON.parse(receivers.of('/watch')[0]?.body ?? '')).toMatchObject({
      type: 'endpoint.disabled',
      source: '/regions/us',
      data: { endpoint: 'erp', reason: expect.stringContaining('410') },
    });
    await say(host, 3);
    receivers.statuses.delete('/erp');
    expect(await enableEndpoint(host.endpoints, 'us', 'erp')).toMatchObject({ kind: 'changed' });
    await receivers.until(() => receivers.of('/watch').length >= 2);
    expect(JSON.parse(receivers.of('/watch')[1]?.body ?? '')).toMatchObject({ type: 'endpoint.recovered' });
    const bodies = receivers.of('/erp').map(({ body }) => JSON.parse(body).data.status);
    expect(new Set(bodies)).toEqual(new Set(['1', '2', '3']));
  });

  test('a start after which nothing has changed writes nothing, however many accounts and endpoints there are', async () => {
    const { config, table, start, say } = await setUp((url) => [
      { id: 'erp', url: `${url}/erp`, secret: newSigningSecret() },
      { id: 'former', url: `${url}/former`, secret: newSigningSecret() },
    ]);
    const [acme] = config.accounts;
    if (!acme) throw new Error('There is no account.');
    const first = await start({ ...config, accounts: [acme, { ...acme, id: 'removed' }] });
    await createEndpoint(first.endpoints, 'us', { id: 'managed', url: 'https://erp.example.com/hook' });
    await say(first, 1, 2);
    await first.stop(2_000);
    const changed = { ...config, endpoints: config.endpoints.filter(({ id }) => id === 'erp') };
    const second = await start(changed);
    await second.stop(2_000);
    const writes: unknown[] = [];
    const note =
      <A extends unknown[], R>(write: (...args: A) => R) =>
      (...args: A): R => {
        if (!isStarted) writes.push(args);
        return write(...args);
      };
    let isStarted = false;
    const { write, transact, putMany } = table;
    const watched = { ...table, write: note(write), transact: note(transact), putMany: note(putMany) };
    await start(changed, { table: watched });
    isStarted = true;
    expect(writes).toEqual([]);
  });

  test('ticks read no endpoint while nothing happens', async () => {
    const { table, config, start, say, receivers } = await setUp((url) => [
      { id: 'erp', url: `${url}/erp`, secret: newSigningSecret() },
    ]);
    let reads = 0;
    const ticks = new EventEmitter();
    const query: Table['query'] = (range) => {
      if (range.pk === sinkPk('us')) reads += 1;
      return table.query(range);
    };
    const polled = Promise.withResolvers<void>();
    const host = await start(config, {
      table: { ...table, query },
      onTick: () => ticks.emit('tick'),
      onPoll: () => polled.resolve(),
    });
    await polled.promise;
    await receivers.until(() => receivers.of('/erp').length > 0);
    // The read that the first event started has ended before the next tick.
    await once(ticks, 'tick');
    const atStart = reads;
    for (let tick = 0; tick < 3; tick += 1) await once(ticks, 'tick');
    expect(reads).toBe(atStart);
    const { url } = receivers;
    await createEndpoint(host.endpoints, 'us', { id: 'new', url: `${url}/new` });
    await say(host, 1);
    await receivers.until(() => receivers.of('/new').length > 0);
    expect(reads).toBeGreaterThan(atStart);
  });

  test('remains of an endpoint whose deletion was interrupted are removed within a minute after its lock has expired', async () => {
    const { table, config, start } = await setUp(() => []);
    const ticks = new EventEmitter();
    const real = Date.now;
    let ahead = 0;
    const clock = vi.spyOn(Date, 'now').mockImplementation(() => real() + ahead);
    open.push(() => clock.mockRestore());
    const host = await start(config, { onTick: () => ticks.emit('tick') });
    await createEndpoint(host.endpoints, 'us', { id: 'erp', url: 'https://erp.example.com/hook' });
    await table.write({ delete: keys.sink('us', 'erp') });
    await table.write({
      update: keys.endpointLock('us', 'erp'),
      set: { owner: 'crashed', until: Date.now() },
    });
    ahead = 60_000;
    const readRemains = async () => [
      ...(await table.query({ pk: cursorPk('us', 'erp') })),
      ...(await table.getMany([keys.endpointSecrets('us', 'erp')])),
    ];
    while ((await readRemains()).length > 0) await once(ticks, 'tick');
  });
});

test('accounts of one region whose ordering API does not respond delay no polls of other regions, and are claimed only as their polls start', async () => {
  const silent = createServer(() => {}).listen(0, '127.0.0.1');
  await once(silent, 'listening');
  open.push(async () => {
    silent.closeAllConnections();
    silent.close();
  });
  const url = `http://127.0.0.1:${(silent.address() as AddressInfo).port}`;
  const declare = (id: string, region: string) => ({ id, region, clientId: id, clientSecret: 'x' });
  const service = (realm: string) => ({ baseUrl: url, authUrl: url, realm });
  const config = parseConfig(
    {
      regions: { us: service('us'), nz: service('nz') },
      accounts: [
        ...Array.from({ length: 40 }, (_, at) => declare(`us-${at}`, 'us')),
        declare('kowhai', 'nz'),
      ],
    },
    {},
  );
  const table = createMemoryTable();
  const started: string[] = [];
  const ticked = Promise.withResolvers<void>();
  const host = await startHost({
    ...{ config, table, history: createMemoryTable(historySchema), secretKey: Buffer.alloc(32, 1) },
    ...{ publicUrl: 'http://jobwire.example', exclusive: true, tickMs: 50 },
    onFault: ticked.reject,
    onPollStart: ({ account }) => started.push(account),
    onTick: (region) => region === 'nz' && ticked.resolve(),
  });
  open.push(() => host.stop(100));
  await ticked.promise;
  expect(started).toContain('kowhai');
  const statuses = await table.getMany(
    config.accounts.map(({ id, region }) => keys.status({ region, account: id })),
  );
  expect(statuses.filter(({ claimedAt }) => claimedAt !== undefined)).toHaveLength(started.length);
});

test('polls that end while others are being claimed do not count as running afterwards', async () => {
  const { sandbox, world } = await startSandbox();
  const names = Array.from({ length: 6 }, (_, at) => `acme-${at}`);
  const all = names.map((name) => world.addAccount({ region: 'us', name }));
  const stored = createMemoryTable();
  const news = new EventEmitter();
  let running = 0;
  let scheduled: Promise<unknown> = Promise.resolve();
  const table: Table = {
    ...stored,
    async query(query) {
      if (query.pk !== pollDuePk('us', 0)) return stored.query(query);
      // A claim takes until all polls have ended.
      while (running > 0) await once(news, 'poll');
      await scheduled;
      return stored.query(query);
    },
  };
  /** Maximum number of concurrent polls in each round. All accounts are due at the beginning of a round. */
  const rounds = [0];
  const done = Promise.withResolvers<void>();
  const host = await startHost({
    ...{ config: parseConfig(configFor(sandbox, all), {}), table },
    ...{ history: createMemoryTable(historySchema), secretKey: Buffer.alloc(32, 1) },
    ...{ publicUrl: 'http://jobwire.example', exclusive: true, tickMs: 5 },
    onFault: (_, cause) => done.reject(cause),
    onPollStart: () => {
      running += 1;
      rounds.push(Math.max(rounds.pop() ?? 0, running));
    },
    onPoll: () => {
      running -= 1;
      news.emit('poll');
    },
    onTick: (region) => {
      if (running > 0 || rounds.at(-1) === 0) return;
      if (rounds.length === 8) done.resolve();
      rounds.push(0);
      scheduled = Promise.all(
        names.map((account) =>
          stored.write({ update: keys.status({ region, account }), set: schedule({ region, account }, 1) }),
        ),
      );
    },
  });
  open.push(() => host.stop(2_000));
  await done.promise;
  expect(rounds.slice(0, 8)).toEqual(Array.from({ length: 8 }, () => names.length));
});

test('no tick begins before the previous one has ended, not even the first', async () => {
  const stored = createMemoryTable();
  const { sandbox, world } = await startSandbox();
  const account = world.addAccount({ region: 'us', name: 'acme' });
  let [running, most] = [0, 0];
  const table: Table = {
    ...stored,
    async query(query) {
      if (query.pk !== wakePk('us', 0)) return stored.query(query);
      running += 1;
      most = Math.max(most, running);
      // Several intervals of the ticker.
      for (let turn = 0; turn < 5; turn += 1) await setTimeout(5);
      running -= 1;
      return stored.query(query);
    },
  };
  const ticked = Promise.withResolvers<void>();
  const host = await startHost({
    ...{ config: parseConfig(configFor(sandbox, [account]), {}), table },
    ...{ history: createMemoryTable(historySchema), secretKey: Buffer.alloc(32, 1) },
    ...{ publicUrl: 'http://jobwire.example', exclusive: true, tickMs: 5 },
    onFault: (_, cause) => ticked.reject(cause),
    onTick: () => ticked.resolve(),
  });
  open.push(() => host.stop(2_000));
  await ticked.promise;
  expect(most).toBe(1);
});

test('alert rules of a region are evaluated although every tick fails for another one', async () => {
  const stored = createMemoryTable();
  const evaluated = Promise.withResolvers<void>();
  const table: Table = {
    ...stored,
    async query(query) {
      if (query.pk === alertRulePk('us')) evaluated.resolve();
      if (query.pk === wakePk('nz', 0)) throw new Error('The table does not respond.');
      return stored.query(query);
    },
  };
  const service = { baseUrl: 'http://127.0.0.1:1', authUrl: 'http://127.0.0.1:1', realm: 'none' };
  const host = await startHost({
    ...{ config: parseConfig({ regions: { us: service, nz: service }, accounts: [] }, {}), table },
    ...{ history: createMemoryTable(historySchema), secretKey: Buffer.alloc(32, 1) },
    ...{ publicUrl: 'http://jobwire.example', exclusive: true, tickMs: 5, onFault: () => {} },
  });
  open.push(() => host.stop(2_000));
  await evaluated.promise;
});
