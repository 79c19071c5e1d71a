/** A hundred clients on live streams during continuous events, kills and restarts of the server, and ending streams. */
import { type ChildProcess, fork } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { EventEmitter, once } from 'node:events';
import { get, type IncomingMessage } from 'node:http';

import { fileURLToPath } from 'node:url';
import { createParser } from 'eventsource-parser';
import { afterEach, expect, inject, test } from 'vitest';
import type { Commit, LiveServerFacts, LiveServerOptions } from '../../bench/live-server.ts';
import { createTables } from '../../local/dynamo-tables.ts';
import { createKey, OPERATOR } from '../../shared/api/keys.ts';
import { createEventLog } from '../../shared/log/log.ts';
import { createDynamoTable } from '../../shared/storage/dynamo-table.ts';
import { moved } from '../support/delivery-world.ts';
import { sized } from '../support/runs.ts';
import { testDynamo } from '../support/tables.ts';

const KEY = 'a-key-for-the-tests-only';
const ACCOUNTS = ['a', 'b', 'c', 'd'] as const;
const CLIENTS = sized(16, 100);
const STREAM_MS = 1_500;

const open: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of open.splice(0).reverse()) await close();
});

/** Notifications of clients. */
const news = new EventEmitter().setMaxListeners(0);

/** A client like a browser: it resumes after the last complete event. */
interface Client {
  readonly accounts: readonly string[];
  /** Ids of the received events, in order. */
  readonly got: string[];
  /** How streams ended: by themselves, or cut off. */
  readonly ends: { ended: number; cut: number };
  stop(): void;
}

test('no client misses an event, gets one twice, or out of order', { timeout: 120_000 }, async () => {
  const dynamo = testDynamo();
  const tableName = `live-${randomUUID()}`;
  const dynamoClient = dynamo.client;
  await createTables(dynamoClient, tableName);
  const table = createDynamoTable(dynamoClient, { tableName });
  const log = createEventLog(table, {
    now: Date.now,
    newId: randomUUID,
    schemaBaseUrl: 'http://jobwire.test',
  });

  // The server, killed and started again on the same port.
  let child: ChildProcess | undefined;
  let url = '';
  let isUp = false;
  async function start(): Promise<void> {
    const options: LiveServerOptions = {
      ...{ endpoint: dynamo.endpoint, tableName, accounts: ACCOUNTS, apiKey: KEY, streamMs: STREAM_MS },
      ...(url === '' ? {} : { port: Number(new URL(url).port) }),
    };
    child = fork(fileURLToPath(new URL('../../bench/live-server.ts', import.meta.url)), [
      JSON.stringify(options),
    ]);
    const [facts] = (await once(child, 'message')) as [LiveServerFacts];
    for (const event of ['message', 'exit']) child.on(event, () => news.emit('answered'));
    url = facts.url;
    isUp = true;
    news.emit('up');
  }
  async function stop(signal: 'SIGKILL' | 'SIGTERM'): Promise<void> {
    isUp = false;
    const running = child;
    child = undefined;
    if (!running) return;
    const ended = once(running, 'exit');
    running.kill(signal);
    await ended;
  }
  open.push(() => stop('SIGKILL'));
  const whenUp = async () => {
    while (!isUp) await once(news, 'up');
  };

  await start();
  const key = async (...accounts: string[]) => {
    const made = await createKey({ table, now: Date.now }, { role: 'read', accounts }, OPERATOR);
    if (made.kind !== 'created') throw new Error(made.reason);
    return made.secret;
  };
  const keyOfTwo = await key('a', 'b');
  const keyOfOne = await key('c');

  // Every fourth follows all events, every fourth those of one or two accounts, the others an account.
  const clients = Array.from({ length: CLIENTS }, (_, at): Client => {
    const account = ACCOUNTS[Math.floor(at / 4) % ACCOUNTS.length] ?? 'a';
    const stream = `/v1/accounts/${account}/events/stream`;
    const feed = '/v1/events/stream';
    const [path, secret, accounts] =
      at % 4 === 0
        ? ([feed, KEY, ACCOUNTS] as const)
        : at % 4 === 1
          ? at % 8 === 1
            ? ([feed, keyOfTwo, ['a', 'b']] as const)
            : ([feed, keyOfOne, ['c']] as const)
          : ([stream, account === 'c' ? keyOfOne : KEY, [account]] as const);
    return follow(() => url, whenUp, path, secret, accounts);
  });
  open.push(() => {
    for (const client of clients) client.stop();
  });
  // Each is at the head before the first event.
  await Promise.all(clients.map((client) => until(() => (client as Client & { at: string }).at !== '')));

  // Continuous events: from the server while it runs, and from another process with the same table.
  let job = 0;
  const events = (count: number) =>
    Array.from({ length: count }, () => ({ ...moved(++job, `s${job}`), time: Date.now() }));
  const fromServer = async (account: string) => {
    const to = child;
    if (!to || !isUp) return;
    const answered = once(news, 'answered');
    to.send({ account, events: events(1 + (job % 3)) } satisfies Commit, () => undefined);
    await answered;
  };
  const fromElsewhere = (account: string) => log.append({ region: 'us', account }, events(1 + (job % 2)));
  let isOver = false;
  let whileDown = 0;
  const writing = (async () => {
    for (let round = 0; !isOver; round += 1) {
      const account = ACCOUNTS[round % ACCOUNTS.length] ?? 'a';
      await fromServer(account);
      if (round % 5 === 0) await fromElsewhere(account);
      whileDown = isUp ? 0 : whileDown + 1;
      if (whileDown === 50) await whenUp();
      news.emit('wrote');
    }
  })();
  const written = async (more: number) => {
    const goal = job + more;
    while (job < goal) await once(news, 'wrote');
  };
  const ended = (least: number) => until(() => clients.every(({ ends }) => ends.ended >= least));

  await written(40);
  await stop('SIGKILL');
  await fromElsewhere('a');
  await fromElsewhere('c');
  await start();
  await written(40);
  await ended(1);
  if (inject('full')) {
    await stop('SIGKILL');
    await start();
    await written(20);
  }
  await stop('SIGTERM');
  await fromElsewhere('d');
  await start();
  await written(40);
  isOver = true;
  await writing;

  const logs = new Map<string, string[]>();
  for (const account of ACCOUNTS) {
    const ids: string[] = [];
    for (;;) {
      const page = await log.read({ region: 'us', account }, ids.length, 500);
      if (page?.kind !== 'events' || page.events.length === 0) break;
      ids.push(...page.events.map(({ id }) => id));
    }
    logs.set(account, ids);
  }
  const total = (accounts: readonly string[]) =>
    accounts.reduce((sum, one) => sum + (logs.get(one)?.length ?? 0), 0);
  await Promise.all(clients.map((client) => until(() => client.got.length >= total(client.accounts))));
  for (const client of clients) client.stop();

  for (const { got, accounts } of clients) {
    for (const account of accounts) {
      expect(got.filter((id) => id.startsWith(`${account}.`))).toEqual(logs.get(account));
    }
    expect(got).toHaveLength(total(accounts));
  }
  // The feed has one order for all clients.
  const [first, ...others] = clients.filter(({ accounts }) => accounts.length === ACCOUNTS.length);
  for (const { got } of others) expect(got).toEqual(first?.got);
  const ends = clients.reduce(
    (sum, { ends: { ended, cut } }) => ({ ended: sum.ended + ended, cut: sum.cut + cut }),
    { ended: 0, cut: 0 },
  );
  console.log(
    JSON.stringify({
      clients: CLIENTS,
      events: job,
      received: clients.reduce((sum, { got }) => sum + got.length, 0),
      ends,
    }),
  );
  expect(ends.cut, 'streams that were cut off').toBeGreaterThan(0);
});

function follow(
  url: () => string,
  whenUp: () => Promise<void>,
  path: string,
  secret: string,
  accounts: readonly string[],
): Client & { at: string } {
  let stopped = false;
  let current: IncomingMessage | undefined;
  const client = {
    ...{ accounts, got: [] as string[], ends: { ended: 0, cut: 0 }, at: '' },
    stop: () => {
      stopped = true;
      current?.destroy();
    },
  };
  const run = async () => {
    while (!stopped) {
      await whenUp();
      const headers = {
        authorization: `Bearer ${secret}`,
        ...(client.at === '' ? {} : { 'last-event-id': client.at }),
      };
      await new Promise<void>((over) => {
        const request = get(`${url()}${path}`, { headers, agent: false }, (response) => {
          current = response;
          if (response.statusCode !== 200) {
            news.emit('failed', new Error(`${path} answered ${response.statusCode}.`));
            stopped = true;
          }
          const parser = createParser({
            onEvent: ({ id, event, data }) => {
              if (event !== 'cursor') client.got.push((JSON.parse(data) as { id: string }).id);
              if (id !== undefined) client.at = id;
              news.emit('got');
            },
          });
          response.setEncoding('utf8');
          response.on('data', (text: string) => parser.feed(text));
          response.on('end', () => {
            client.ends.ended += 1;
            news.emit('got');
            over();
          });
          response.on('error', () => {
            client.ends.cut += 1;
            over();
          });
        });
        request.on('error', () => over());
      });
    }
  };
  void run();
  return client;
}

/** Waits until a condition is true; checked after every notification of a client. */
function until(holds: () => boolean): Promise<void> {
  return new Promise((resolve, reject) => {
    const look = () => {
      if (!holds()) return;
      news.off('got', look);
      news.off('failed', reject);
      resolve();
    };
    news.on('got', look);
    news.on('failed', reject);
    look();
  });
}
