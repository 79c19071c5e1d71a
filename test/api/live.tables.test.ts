/**
 * Live requests: streams through the streaming function, and the slots that they occupy.
 * One file: its tests share the cell and the fake Lambda response stream.
 */
import { randomUUID } from 'node:crypto';
import { Writable } from 'node:stream';
import middy from '@middy/core';
import { executionModeStreamifyResponse } from '@middy/core/StreamifyResponse';
import type { APIGatewayProxyEvent, APIGatewayProxyResult, Context } from 'aws-lambda';
import { afterEach, beforeAll, describe, expect, test } from 'vitest';
import {
  createRestProxyHandler,
  createStreamingHandler,
  type Fetch,
} from '../../functions/handlers/rest-proxy.ts';
import { registerAccount } from '../../shared/accounts/accounts.ts';
import { type ApiDeps, createApi } from '../../shared/api/app.ts';
import { type FeedPace, toBody } from '../../shared/api/feed.ts';
import { createKey, createKeyring, OPERATOR, revokeKey } from '../../shared/api/keys.ts';
import { BOOTSTRAP_KEY, createSlots, SLOT_GRACE_MS } from '../../shared/api/waiting-limit.ts';
import type { JobEvent } from '../../shared/events/event.ts';
import { createEventLog } from '../../shared/log/log.ts';
import { streamPk } from '../../shared/storage/schema.ts';
import { createMemoryTable } from '../../shared/storage/sqlite-table.ts';
import { type Table, TableError } from '../../shared/storage/table.ts';
import { apiParts } from '../support/api.ts';
import { eachTable } from '../support/tables.ts';

const KEY = 'the-key-of-this-test';
const START = Date.UTC(2026, 10, 21, 12);
const ACME = { region: 'us', account: 'acme' };
const STREAM = '/v1/accounts/acme/events/stream';
const FEED = '/v1/accounts/acme/events';
const STREAM_MS = 300_000;

beforeAll(() => {
  // As in Lambda: metadata and eight null bytes precede the first chunk.
  Object.assign(globalThis, {
    awslambda: {
      streamifyResponse: (handler: unknown) => handler,
      HttpResponseStream: {
        from(connection: Connection, metadata: unknown) {
          connection.prelude = Buffer.from(`${JSON.stringify(metadata)}\0\0\0\0\0\0\0\0`);
          return connection;
        },
      },
    },
  });
});

const closers: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

describe('a streamed answer', () => {
  test('has status, headers and each cookie first, then each chunk as it is created', async () => {
    const source = createSource();
    const headers = new Headers([
      ['content-type', 'text/event-stream'],
      ['set-cookie', 'a=1'],
      ['set-cookie', 'b=2'],
    ]);
    const { connection, done } = invoke(() => new Response(source.stream, { status: 201, headers }));
    source.say('one');
    await connection.holds('one');
    expect(connection.metadata()).toEqual({
      statusCode: 201,
      multiValueHeaders: { 'content-type': ['text/event-stream'], 'set-cookie': ['a=1', 'b=2'] },
    });
    source.say('two');
    await connection.holds('onetwo');
    source.close();
    await done;
    expect([connection.text(), connection.writableFinished]).toEqual(['onetwo', true]);
  });

  test('is created no faster than the connection reads', async () => {
    let made = 0;
    const stream = new ReadableStream<Uint8Array>(
      {
        pull(controller) {
          made += 1;
          controller.enqueue(new Uint8Array(50_000));
          if (made === 20) controller.close();
        },
      },
      { highWaterMark: 0 },
    );
    const { connection, done } = invoke(() => new Response(stream), { holding: true });
    for (let taken = 1; taken <= 5; taken += 1) {
      await connection.takes();
      // Long enough for any read-ahead, because nothing here takes time.
      for (let turn = 0; turn < 50; turn += 1) await new Promise((resolve) => setImmediate(resolve));
      // One in progress, one in its buffer, one on the way.
      expect(made).toBeLessThanOrEqual(taken + 3);
    }
    connection.letGo();
    await done;
    expect(made).toBe(20);
  });

  test('with a broken connection is cancelled at once, also if it is silent, and the invocation waits for that', async () => {
    const source = createSource({ slowCancel: true });
    const { connection, done } = invoke(() => new Response(source.stream));
    source.say('one');
    await connection.holds('one');
    const order: string[] = [];
    const failed = expect(done.finally(() => order.push('ended'))).rejects.toThrow('The connection broke.');
    connection.destroy(new Error('The connection broke.'));
    await source.cancelled;
    order.push('cancelled');
    source.finishCancel();
    await failed;
    expect(order).toEqual(['cancelled', 'ended']);
  });

  test('may be short or empty', async () => {
    const short = invoke(() => Response.json({ status: 404 }, { status: 404 }));
    await short.done;
    expect(short.connection.metadata()).toMatchObject({ statusCode: 404 });
    expect(JSON.parse(short.connection.text())).toEqual({ status: 404 });
    const empty = invoke(() => new Response(null, { status: 204 }));
    await empty.done;
    expect([empty.connection.metadata().statusCode, empty.connection.text()]).toEqual([204, '']);
  });
});

describe('a body', () => {
  test('without a reader is aborted after its time, and its source is notified', async () => {
    let ended = () => {};
    const end = new Promise<void>((resolve) => {
      ended = resolve;
    });
    const body = toBody(
      async function* () {
        yield 'never';
      },
      { onFault: (cause) => expect.fail(String(cause)), onEnd: async () => ended(), cutMs: 5 },
    );
    await end;
    await expect(body.getReader().read()).rejects.toThrow('aborted');
  });
});

eachTable('the function that waits', (makeTable) => {
  test('has events as they are committed, and a client that resumes has neither gaps nor repeats', async () => {
    const cell = await createCell(await makeTable());
    const live = cell.instance();
    const first = live.invoke(STREAM);
    await first.connection.holds('retry: 1000\nid: e1.0\nevent: cursor\ndata: {"cursor":"e1.0"}\n\n');
    expect(first.connection.metadata()).toMatchObject({
      statusCode: 200,
      multiValueHeaders: { 'content-type': ['text/event-stream'], 'cache-control': ['no-store'] },
    });
    await cell.grow(1);
    await first.connection.holds('id: e1.1\n');
    await cell.grow(2);
    await first.connection.holds('id: e1.3\n');
    await first.end();
    await cell.grow(2);
    const second = live.invoke(STREAM, { headers: { 'last-event-id': [lastId(first.connection.text())] } });
    await second.connection.holds('id: e1.5\n');
    await cell.grow(1);
    await second.connection.holds('id: e1.6\n');
    await second.end();
    const told = [first, second].flatMap(({ connection }) => sequences(connection.text()));
    expect(told).toEqual([1, 2, 3, 4, 5, 6]);
  });

  test('sends a heartbeat after less than 30 s of silence, ends by the clock, and releases its slot before', async () => {
    const cell = await createCell(await makeTable());
    const { connection, done } = cell.instance().invoke(STREAM);
    await connection.holds('id: e1.0');
    expect(await cell.held()).toBe(1);
    for (let beat = 1; beat <= 3; beat += 1) {
      cell.pass(29_999);
      await connection.holds(':\n\n'.repeat(beat));
    }
    cell.pass(STREAM_MS);
    await done;
    expect([connection.writableFinished, await cell.held()]).toEqual([true, 0]);
  });

  test('ends within 30 s after its key is revoked', async () => {
    const cell = await createCell(await makeTable());
    const deps = { table: cell.table, now: cell.now };
    const created = await createKey(deps, { role: 'read' }, OPERATOR);
    if (created.kind !== 'created') throw new Error(created.reason);
    const keyring = createKeyring(deps);
    const authorization = `Bearer ${created.secret}`;
    const response = await cell.api({ keyring }).request(STREAM, { headers: { authorization } });
    const reader = response.body?.getReader();
    await reader?.read();
    // The key is read with this heartbeat, and revoked just afterwards.
    cell.pass(30_000);
    await reader?.read();
    await revokeKey(deps, created.key.id, OPERATOR);
    cell.pass(9_000);
    await cell.grow(1);
    await reader?.read();
    cell.pass(15_000);
    expect(await reader?.read()).toMatchObject({ done: true });
    await keyring.settled();
  });

  test('a long poll is a page as on other functions, with the events that arrived while it waited', async () => {
    const cell = await createCell(await makeTable());
    const waiting = cell.instance().invoke(FEED, { query: { after: ['0'], wait: ['25'] } });
    await cell.waits(1);
    await cell.grow(1);
    await waiting.done;
    expect(waiting.connection.metadata().statusCode).toBe(200);
    const { events, next } = JSON.parse(waiting.connection.text()) as { events: JobEvent[]; next: string };
    expect([events.map(({ id }) => id), next]).toEqual([['acme.e1.1'], 'e1.1']);
    expect(await cell.held()).toBe(0);
  });

  test('a broken connection releases the slot', async () => {
    const cell = await createCell(await makeTable());
    const { connection, done } = cell.instance().invoke(STREAM);
    await connection.holds('id: e1.0');
    connection.destroy(new Error('The connection broke.'));
    await expect(done).rejects.toThrow('The connection broke.');
    expect(await cell.held()).toBe(0);
  });
});

test.each([
  ['its time has passed', (cell: Cell) => cell.pass(STREAM_MS)],
  ['its connection fails', (_: Cell, connection: Connection) => connection.destroy(new Error('It broke.'))],
])('an invocation whose stream ends because %s ends after its slot is released', async (_, end) => {
  const inner = createMemoryTable();
  let begun = () => {};
  let finish = () => {};
  const deleting = new Promise<void>((resolve) => {
    begun = resolve;
  });
  const gate = new Promise<void>((resolve) => {
    finish = resolve;
  });
  const table: Table = {
    ...inner,
    async write(write) {
      if ('delete' in write) {
        begun();
        await gate;
      }
      return inner.write(write);
    },
  };
  const cell = await createCell(table);
  const { connection, done } = cell.instance().invoke(STREAM);
  await connection.holds('id: e1.0');
  let over = false;
  const ended = done
    .catch(() => {})
    .then(() => {
      over = true;
    });
  end(cell, connection);
  await deleting;
  for (let turn = 0; turn < 50; turn += 1) await new Promise((resolve) => setImmediate(resolve));
  expect(over).toBe(false);
  finish();
  await ended;
  expect(await cell.held()).toBe(0);
});

eachTable('the cap of a key', (makeTable) => {
  test('applies to all instances: one more is rejected with one message, and admitted after one has ended', async () => {
    const cell = await createCell(await makeTable(), { perKey: 3 });
    const [one, two] = [cell.instance(), cell.instance()];
    const running = [one.invoke(STREAM), two.invoke('/v1/events/stream'), two.invoke(STREAM)];
    for (const { connection } of running) await connection.holds('id: ');
    for (const instance of [one, two]) {
      const refused = instance.invoke(STREAM);
      await refused.done;
      expect(refused.connection.metadata()).toMatchObject({
        statusCode: 429,
        multiValueHeaders: {
          'content-type': ['application/problem+json'],
          'retry-after': ['15'],
          'ratelimit-policy': ['"streams";q=3;qu="concurrent-requests"'],
          ratelimit: ['"streams";r=0;t=15'],
        },
      });
      expect(JSON.parse(refused.connection.text())).toEqual({
        type: 'urn:jobwire:problem:too-many-streams',
        title: 'Too Many Open Streams',
        status: 429,
        detail: 'At most 3 streams and long polls of a key can be open at a time. Retry when one has ended.',
        requestId: expect.any(String),
      });
    }
    await running[0]?.end();
    const admitted = one.invoke(STREAM);
    await admitted.connection.holds('id: ');
  });

  test('admits exactly as many of concurrent requests', async () => {
    const cell = await createCell(await makeTable(), { perKey: 5 });
    const instances = [cell.instance(), cell.instance()];
    const all = Array.from({ length: 14 }, (_, at) => instances[at % 2]?.invoke(STREAM));
    await Promise.all(all.map((one) => one?.connection.holds('')));
    const statuses = all.map((one) => one?.connection.metadata().statusCode).sort();
    expect(statuses).toEqual([...Array(5).fill(200), ...Array(9).fill(429)]);
    expect(await cell.held()).toBe(5);
  });

  test('is not used by an immediate page, nor by anything except a stream', async () => {
    const cell = await createCell(await makeTable(), { perKey: 1 });
    const live = cell.instance();
    await cell.grow(1);
    const ask = (path: string, query: Record<string, string[]> = {}, method?: string) =>
      live.status(path, { query, ...(method ? { method } : {}) });
    const untouched = async () => ({
      events: await ask(FEED, { wait: ['25'] }),
      empty: await ask(FEED, { after: ['1'] }),
      head: await ask(STREAM, {}, 'HEAD'),
      gone: await ask(STREAM, { after: ['e0.1'] }),
      wrong: await ask(STREAM, { after: ['?'] }),
      unknown: await ask('/v1/accounts/nobody/events/stream'),
    });
    const expected = { events: 200, empty: 200, head: 200, gone: 410, wrong: 400, unknown: 404 };
    expect([await untouched(), await cell.held()]).toEqual([expected, 0]);
    const stream = live.invoke(STREAM);
    await stream.connection.holds('id: ');
    expect(await untouched(), 'with the only slot taken').toEqual(expected);
    expect(await ask(FEED, { after: ['1'], wait: ['25'] }), 'about to wait').toBe(429);
  });

  test('is per key: the slots of another do not count', async () => {
    const cell = await createCell(await makeTable(), { perKey: 1 });
    expect(await cell.slots().acquire('another', 1000)).toBeDefined();
    expect(await cell.slots().acquire(BOOTSTRAP_KEY, 1000)).toBeDefined();
  });

  test('is within that of the cell, which all keys share; a rejection occupies no slot of the key', async () => {
    const cell = await createCell(await makeTable(), { perKey: 2, inAll: 2 });
    const [one, two] = [await cell.slots().acquire('one', 1000), await cell.slots().acquire('two', 1000)];
    expect(await cell.slots().acquire('one', 1000)).toBeUndefined();
    await two?.release();
    const [again, more] = [await cell.slots().acquire('one', 1000), await cell.slots().acquire('one', 1000)];
    expect([one, again, more].map((slot) => slot !== undefined)).toEqual([true, true, false]);
  });

  test('slots of a killed instance are free after their maximum duration', async () => {
    // The first try is always the same slot, so that the other one must be searched.
    const cell = await createCell(await makeTable(), { perKey: 2, random: () => 0 });
    const killed = cell.api();
    for (let n = 0; n < 2; n += 1) await killed.request(STREAM, cell.init());
    const live = cell.instance();
    cell.pass(STREAM_MS + SLOT_GRACE_MS - 1);
    expect(await live.status(STREAM)).toBe(429);
    cell.pass(1);
    const streams = [live.invoke(STREAM), live.invoke(STREAM)];
    for (const { connection } of streams) await connection.holds('id: ');
    expect(await live.status(STREAM)).toBe(429);
  });

  test('a slot is released only by its owner', async () => {
    const cell = await createCell(await makeTable(), { perKey: 1 });
    const late = await cell.slots().acquire('key', 1000);
    cell.pass(1000);
    const slot = await cell.slots().acquire('key', 1000);
    await late?.release();
    expect(await cell.slots().acquire('key', 1000)).toBeUndefined();
    await slot?.release();
    expect(await cell.slots().acquire('key', 1000)).toBeDefined();
  });

  test('costs one write if the first try is free; a rejection one write and one query', async () => {
    const table = await makeTable();
    const calls: string[] = [];
    const counted: Table = {
      ...table,
      write: (write) => {
        calls.push('write');
        return table.write(write);
      },
      query: (query) => {
        calls.push('query');
        return table.query(query);
      },
    };
    const cell = await createCell(table, { perKey: 2, random: () => 0 });
    const slots = cell.slots(counted);
    const costs = async () => {
      await slots.acquire('key', 1000);
      return calls.splice(0);
    };
    expect(await costs()).toEqual(['write']);
    expect(await costs(), 'another one is free').toEqual(['write', 'query', 'write']);
    expect(await costs(), 'none is').toEqual(['write', 'query']);
    const [item] = await table.query({ pk: streamPk('us', 'key') });
    expect(item?.ttl).toBe((START + 1000) / 1000);
  });
});

describe('a failing table', () => {
  /** A table whose writes of slots fail; `lost` ones are written nevertheless. */
  function faulty() {
    const inner = createMemoryTable();
    const state: { puts?: 'rejected' | 'lost'; deletes?: 'rejected' } = {};
    const table: Table = {
      ...inner,
      async write(write) {
        if ('put' in write && state.puts === 'lost') await inner.write(write);
        const fails = ('put' in write && state.puts) || ('delete' in write && state.deletes);
        if (fails) throw new TableError('write', 'injected');
        return inner.write(write);
      },
    };
    return { table, state };
  }

  test.each(['rejected', 'lost'] as const)(
    'while a slot is acquired (%s) admits no request, and occupies none',
    async (puts) => {
      const { table, state } = faulty();
      const cell = await createCell(table, { perKey: 2 });
      const live = cell.instance();
      state.puts = puts;
      for (const path of [STREAM, '/v1/events/stream']) expect(await live.status(path)).toBe(503);
      expect(await live.status(FEED, { query: { wait: ['25'] } })).toBe(503);
      delete state.puts;
      expect(await cell.held()).toBe(0);
    },
  );

  test('that prevents every release occupies slots for their duration, and no longer', async () => {
    const { table, state } = faulty();
    const cell = await createCell(table, { perKey: 1 });
    const live = cell.instance();
    Object.assign(state, { puts: 'lost', deletes: 'rejected' });
    expect(await live.status(STREAM)).toBe(503);
    delete state.puts;
    delete state.deletes;
    expect(await live.status(STREAM)).toBe(429);
    cell.pass(STREAM_MS + SLOT_GRACE_MS);
    await live.invoke(STREAM).connection.holds('id: ');
  });

  test('when a slot is released is reported to the operator; the client has its answer', async () => {
    const { table, state } = faulty();
    const cell = await createCell(table, { perKey: 1 });
    state.deletes = 'rejected';
    const { connection, done } = cell.instance().invoke(STREAM);
    await connection.holds('id: ');
    cell.pass(STREAM_MS);
    await done;
    expect([connection.writableFinished, cell.errors]).toEqual([true, [expect.any(TableError)]]);
  });
});

test('the function for other requests never waits, for any request', async () => {
  const cell = await createCell(createMemoryTable());
  const app = cell.api({ pace: { streamMs: 0, waitMs: 0 }, slots: undefined });
  const handler = createRestProxyHandler((request) => app.fetch(request));
  const ask = async (path: string, query: Record<string, string[]> = {}): Promise<APIGatewayProxyResult> =>
    handler(proxyEvent(path, { headers: { authorization: [`Bearer ${KEY}`] }, query }));
  expect(await ask(FEED, { wait: ['25'] })).toMatchObject({ statusCode: 200 });
  const body = 'retry: 1000\nid: e1.0\nevent: cursor\ndata: {"cursor":"e1.0"}\n\n';
  expect(await ask(STREAM)).toMatchObject({ statusCode: 200, body });
});

// Support

/** The runtime's end of a streamed response. */
class Connection extends Writable {
  prelude: Buffer | undefined;
  #bytes = Buffer.alloc(0);
  #holding: boolean;
  #release: (() => void) | undefined;
  #changed: (() => void)[] = [];

  constructor(holding: boolean) {
    super();
    this.#holding = holding;
  }

  override _write(chunk: Buffer, _: string, callback: () => void): void {
    this.#bytes = Buffer.concat([this.#bytes, this.prelude ?? '', chunk].map((part) => Buffer.from(part)));
    this.prelude = Buffer.alloc(0);
    if (this.#holding && chunk.length > 0) this.#release = callback;
    else callback();
    for (const tell of this.#changed.splice(0)) tell();
  }

  metadata(): { statusCode: number; multiValueHeaders: Record<string, string[]> } {
    return JSON.parse(this.#bytes.subarray(0, this.#bytes.indexOf('\0\0\0\0\0\0\0\0')).toString());
  }

  /** The body so far. */
  text(): string {
    const end = this.#bytes.indexOf('\0\0\0\0\0\0\0\0');
    return end < 0 ? '' : this.#bytes.subarray(end + 8).toString();
  }

  /** Resolves when the metadata exist, and the body contains this. */
  async holds(part: string): Promise<void> {
    while (this.#bytes.length === 0 || !this.text().includes(part)) {
      await new Promise<void>((resolve) => this.#changed.push(resolve));
    }
  }

  /** Takes one of the held-back chunks, if there is one. */
  async takes(): Promise<void> {
    while (!this.#release) await new Promise<void>((resolve) => this.#changed.push(resolve));
    const release = this.#release;
    this.#release = undefined;
    release();
  }

  /** Stops holding back. */
  letGo(): void {
    this.#holding = false;
    this.#release?.();
  }
}

interface Asked {
  readonly headers?: Record<string, string[]>;
  readonly query?: Record<string, string[]>;
  readonly method?: string;
}

/** Invokes a streaming function of an app as Lambda would. */
function invoke(fetch: Fetch, options: Asked & { readonly path?: string; readonly holding?: boolean } = {}) {
  const handler = middy(createStreamingHandler(fetch), {
    executionMode: executionModeStreamifyResponse,
  }) as unknown as (event: APIGatewayProxyEvent, connection: Connection, context: Context) => Promise<void>;
  const connection = new Connection(options.holding ?? false);
  // A failure is that of the invocation.
  connection.on('error', () => {});
  const context = { getRemainingTimeInMillis: () => 330_000 } as Context;
  const done = handler(proxyEvent(options.path ?? '/', options), connection, context);
  done.catch(() => {});
  return { connection, done };
}

function proxyEvent(path: string, { headers = {}, query, method = 'GET' }: Asked): APIGatewayProxyEvent {
  return {
    path,
    httpMethod: method,
    body: null,
    isBase64Encoded: false,
    headers: {},
    multiValueHeaders: headers,
    queryStringParameters: null,
    multiValueQueryStringParameters: query ?? null,
    pathParameters: null,
    stageVariables: null,
    resource: '/{proxy+}',
    requestContext: { domainName: 'api.example' } as APIGatewayProxyEvent['requestContext'],
  };
}

/** A stream with given chunks. */
function createSource(options: { readonly slowCancel?: boolean } = {}) {
  const encoder = new TextEncoder();
  let controller: ReadableStreamDefaultController<Uint8Array> | undefined;
  let tellCancelled = () => {};
  let finishCancel = () => {};
  const cancelled = new Promise<void>((resolve) => {
    tellCancelled = resolve;
  });
  const finished = new Promise<void>((resolve) => {
    finishCancel = resolve;
  });
  const stream = new ReadableStream<Uint8Array>({
    start(given) {
      controller = given;
    },
    async cancel() {
      tellCancelled();
      if (options.slowCancel) await finished;
    },
  });
  return {
    stream,
    cancelled,
    finishCancel: () => finishCancel(),
    say: (text: string) => controller?.enqueue(encoder.encode(text)),
    close: () => controller?.close(),
  };
}

type Cell = Awaited<ReturnType<typeof createCell>>;

/** A cell with one account, a stopped clock, and any number of instances of its function. */
async function createCell(
  table: Table,
  options: { readonly perKey?: number; readonly inAll?: number; readonly random?: () => number } = {},
) {
  let clock = START;
  const now = () => clock;
  const log = createEventLog(table, { now, newId: randomUUID, schemaBaseUrl: 'https://us.example' });
  const account = { ...ACME, secretRef: 'acme', pollIntervalSeconds: 60, paused: false };
  await registerAccount(table, log, account, { now: clock, epoch: 'e1' });
  const errors: unknown[] = [];
  const slots = (over = table) =>
    createSlots({
      ...{ table: over, region: 'us', perKey: options.perKey ?? 20, inAll: options.inAll, now },
      newId: randomUUID,
      random: options.random ?? Math.random,
    });
  // Nothing wakes a reader on Lambda: it polls.
  const pace: Partial<FeedPace> = { recheckMs: 2, heartbeatMs: 15_000, streamMs: STREAM_MS };
  const api = (more: { [K in keyof ApiDeps]?: ApiDeps[K] | undefined } = {}) => {
    const { slots: given = slots(), ...rest } = more;
    const shared = { table, log, regions: ['us'], ...apiParts(table, KEY), now, pace };
    const onError = (cause: unknown) => errors.push(cause);
    return createApi({
      ...{ ...shared, onError, ...rest },
      ...('slots' in more && !more.slots ? {} : { slots: given }),
    } as ApiDeps);
  };
  const headers = { authorization: [`Bearer ${KEY}`] };

  return {
    ...{ table, now, errors, slots, api },
    init: () => ({ headers: { authorization: `Bearer ${KEY}` } }),
    pass(ms: number): void {
      clock += ms;
    },
    /** Appends events to the account's log. */
    async grow(events: number): Promise<void> {
      const event = { type: 'account.credentials_accepted', time: clock, data: {} } as const;
      await log.append(ACME, Array(events).fill(event));
    },
    /** How many slots of the key are held. */
    async held(): Promise<number> {
      return (await table.query({ pk: streamPk('us', BOOTSTRAP_KEY) })).length;
    },
    /** Resolves when this many readers wait. */
    async waits(count: number): Promise<void> {
      let over = false;
      closers.push(() => {
        over = true;
      });
      while (!over && (await this.held()) < count) await new Promise((resolve) => setImmediate(resolve));
    },
    instance() {
      const app = api();
      const start = (path: string, asked: Asked = {}) => {
        const running = invoke((request) => app.fetch(request), {
          ...asked,
          path,
          headers: { ...headers, ...asked.headers },
        });
        const end = async () => {
          running.connection.destroy(new Error('The test is over.'));
          await running.done.catch(() => {});
        };
        closers.push(end);
        return { ...running, end };
      };
      return {
        invoke: start,
        /** Returns the status of a request that is neither a stream nor a long poll. */
        async status(path: string, asked: Asked = {}): Promise<number> {
          const { connection, done } = start(path, asked);
          await done;
          return connection.metadata().statusCode;
        },
      };
    },
  };
}

function sequences(text: string): number[] {
  return [...text.matchAll(/^event: (?!cursor).*\ndata: (.*)$/gm)].map(([, json = '']) =>
    Number((JSON.parse(json) as JobEvent).sequence),
  );
}

function lastId(text: string): string {
  return [...text.matchAll(/^id: (.*)$/gm)].at(-1)?.[1] ?? '';
}
