/**
 * The feeds over HTTP: keys, errors, account feed, long polls, streams and account status.
 * One file: its tests share the served API on a filled log, and the parser of streams.
 */
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { createAdaptorServer } from '@hono/node-server';
import { afterEach, describe, expect, test } from 'vitest';
import { registerAccount, toStatus } from '../../shared/accounts/accounts.ts';
import { type ApiDeps, createApi } from '../../shared/api/app.ts';
import { createGrowthSignal } from '../../shared/api/growth-signal.ts';
import type { JobEntry, JobRecord } from '../../shared/api/jobs.ts';
import { eventTypes, type JobSummary } from '../../shared/events/catalogue.ts';
import type { EventDraft, JobEvent } from '../../shared/events/event.ts';
import { createForwarder } from '../../shared/log/feed-forwarding.ts';
import { createEventLog, type EventLog } from '../../shared/log/log.ts';
import { type AccountRef, keys } from '../../shared/storage/schema.ts';
import { createMemoryTable } from '../../shared/storage/sqlite-table.ts';
import { type Table, TableError } from '../../shared/storage/table.ts';
import { putSnapshot, type Snapshot } from '../../shared/tracking/snapshot.ts';
import type { DetailView, ListView } from '../../shared/tracking/views.ts';
import { apiParts } from '../support/api.ts';
import { launch } from '../support/command.ts';
import { eachTable } from '../support/tables.ts';

const KEY = 'correct-horse-battery-staple';
const NOW = Date.UTC(2026, 10, 21, 12, 0, 0);
const DAY_MS = 86_400_000;
const ACME: AccountRef = { region: 'us', account: 'acme' };
const KIWI: AccountRef = { region: 'nz', account: 'kiwi' };

const closers: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close();
});

/** An action of a test between the API and its table or log, after the call answered. */
interface Hooks {
  afterRead?: (ref: AccountRef) => unknown;
  afterQuery?: (index: string | undefined) => unknown;
  table?: Partial<Table>;
}

/** Bodies of any answer; each has some of these fields. */
interface Body {
  status: number;
  type: string;
  detail: string;
  field: string;
  earliest: string;
  head: string;
  next: string;
  events: JobEvent[];
  observedThrough: string | null;
  state: string;
  previous?: string | null;
  asOf: string;
  jobs: JobEntry[];
  job: JobRecord;
}

/** The API over real HTTP on loopback, with an in-memory table and two accounts in two regions. */
async function start(
  more: Partial<ApiDeps> & { inner?: Table; hinted?: boolean; retentionDays?: number } = {},
) {
  const { inner = createMemoryTable(), hinted = true, retentionDays, ...deps } = more;
  const hooks: Hooks = {};
  const clock = { now: NOW };
  const growth = createGrowthSignal();
  const table: Table = {
    ...inner,
    get: (key) => (hooks.table?.get ?? inner.get)(key),
    async query(query) {
      const items = await inner.query(query);
      await hooks.afterQuery?.(query.index);
      return items;
    },
  };
  const reads: AccountRef[] = [];
  // As self-hosted: committed events enter the cell feed at once.
  let forwards = 0;
  const forwarder = createForwarder(inner, { onForwarded: (feed) => growth.grew(feed) });
  const innerLog = createEventLog(inner, {
    now: () => clock.now,
    newId: randomUUID,
    schemaBaseUrl: 'http://jobwire.test',
    onCommitted: (ref) => {
      growth.grew(ref);
      forwards += 1;
      void forwarder.forward(ref).finally(() => {
        forwards -= 1;
      });
    },
    ...(retentionDays === undefined ? {} : { retentionDays }),
  });
  const log: EventLog = {
    ...innerLog,
    async read(ref, after, limit) {
      reads.push(ref);
      const outcome = await innerLog.read(ref, after, limit);
      await hooks.afterRead?.(ref);
      return outcome;
    },
  };
  const register = (ref: AccountRef, epoch = 'e1', paused = false) =>
    registerAccount(
      inner,
      innerLog,
      { ...ref, secretRef: 'none', pollIntervalSeconds: 60, paused },
      { now: NOW, epoch },
    );
  await register(ACME);
  await register(KIWI, 'e2');

  const errors: unknown[] = [];
  const api = createApi({
    table,
    log,
    regions: ['us', 'nz'],
    ...apiParts(inner, KEY),
    now: Date.now,
    onError: (cause) => errors.push(cause),
    // Only a wake-up can notify a reader in time, unless a test changes that.
    pace: { recheckMs: 60_000 },
    ...(hinted ? { growth } : {}),
    ...deps,
  });
  const server = createAdaptorServer({ fetch: api.fetch });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  closers.push(
    () =>
      new Promise((resolve) => {
        server.close(resolve);
        if ('closeAllConnections' in server) server.closeAllConnections();
      }),
  );
  const address = server.address();
  if (address === null || typeof address === 'string') throw new Error('no port');
  const url = `http://127.0.0.1:${address.port}`;

  const get = (path: string, init: RequestInit = {}) =>
    fetch(url + path, { ...init, headers: { authorization: `Bearer ${KEY}`, ...init.headers } });
  const json = async (path: string, init: RequestInit = {}) => {
    const response = await get(path, init);
    const body = (await response.json()) as Body;
    return { status: response.status, headers: response.headers, body };
  };
  return {
    api,
    url,
    port: address.port,
    get,
    json,
    table: inner,
    log: innerLog,
    growth,
    hooks,
    clock,
    reads,
    errors,
    register,
    append: (ref: AccountRef, drafts: readonly EventDraft[]) => append(innerLog, ref, drafts),
    forwards: () => forwards,
  };
}

/** Appends any number of events, in transactions of at most 90. */
async function append(log: EventLog, ref: AccountRef, drafts: readonly EventDraft[]) {
  for (let at = 0; at < drafts.length; at += 90) {
    const outcome = await log.append(ref, drafts.slice(at, at + 90));
    if (outcome.kind !== 'appended') throw new Error('rejected');
  }
}

function createJob(overrides: Partial<JobSummary> = {}): JobSummary {
  return {
    jobNumber: 1001,
    status: 'Proof',
    description: 'Business cards',
    orderNumber: 'PO-1',
    orderGroup: null,
    orderGroupSequence: null,
    originCode: null,
    dateDue: '2026-11-25',
    mustDate: false,
    dateOut: null,
    tracking: [],
    ...overrides,
  };
}

/** A job event; `n` goes into the job number. */
function jobEvent(n = 1, job: Partial<JobSummary> = {}): EventDraft {
  return {
    type: 'job.closed',
    jobNumber: 1000 + n,
    time: NOW,
    data: {
      job: createJob({ jobNumber: 1000 + n, ...job }),
      changes: {},
      observed: { at: new Date(NOW).toISOString(), since: null, view: 'list' },
    },
  };
}

const accountEvent = (): EventDraft => ({ type: 'account.credentials_accepted', time: NOW, data: {} });
const jobEvents = (count: number) => Array.from({ length: count }, (_, at) => jobEvent(at + 1));
const sequences = (events: readonly { sequence: string }[]) => events.map(({ sequence }) => Number(sequence));
const range = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, at) => from + at);

function createSnapshot(
  overrides: Partial<Omit<Snapshot, 'list'>> & { list?: Partial<ListView> | null } = {},
): Snapshot {
  const { list, ...rest } = overrides;
  const view: ListView = {
    status: 'Proof',
    originCode: null,
    description: 'Business cards',
    mustDate: false,
    dateDue: '2026-11-25',
    dateOut: null,
    orderNumber: 'PO-1',
    orderGroup: null,
    orderGroupSequence: null,
    canEdit: true,
    tracking: [],
    ...list,
  };
  return {
    jobNumber: 1001,
    list: list === null ? null : view,
    listAt: NOW - DAY_MS,
    detail: null,
    detailAt: 0,
    unsure: [],
    unproven: null,
    emitted: { dateOut: null, tracking: [], overdueFor: null },
    ended: null,
    departure: null,
    settling: null,
    owed: null,
    ...rest,
  };
}

const detail: DetailView = {
  status: 'Printing',
  description: 'Business cards',
  mustDate: false,
  dateDue: '2026-11-25',
  dateIn: '2026-11-20',
  dateOut: null,
  orderNumber: 'PO-1',
  orderGroup: null,
  orderGroupSequence: null,
  canEdit: true,
  invoiceNumber: 'INV-9',
  isCancelable: true,
  timezone: 'America/Denver',
  comments: null,
  lines: [{ jobLineId: 1, status: 'Cutting' }],
  tracking: [],
};

/** One server-sent event, or a block without data (a comment, or a bare id). */
interface Block {
  id?: string;
  event?: string;
  data?: string;
  retry?: string;
  comment?: boolean;
}

/** Reads a stream of server-sent events, block by block. */
async function openStream(response: Promise<Response>, abort: AbortController) {
  const opened = await response;
  if (!opened.body) throw new Error('no body');
  const reader = opened.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  const blocks: Block[] = [];
  closers.push(() => abort.abort());

  async function next(): Promise<Block | undefined> {
    for (;;) {
      const block = blocks.shift();
      if (block) return block;
      const { done, value } = await reader.read();
      if (done) return undefined;
      text += value;
      const parts = text.split('\n\n');
      text = parts.pop() ?? '';
      blocks.push(...parts.map(parseBlock));
    }
  }

  return {
    response: opened,
    next,
    /** The next block that carries an event. */
    async event(): Promise<Block & { data: string; id: string }> {
      for (;;) {
        const block = await next();
        if (!block) throw new Error('the stream ended');
        if (block.data !== undefined && block.id !== undefined && block.event !== 'cursor')
          return { ...block, data: block.data, id: block.id };
      }
    },
    close: () => abort.abort(),
  };
}

function parseBlock(text: string): Block {
  const block: Record<string, string | boolean> = {};
  for (const line of text.split('\n')) {
    const [, name = '', value = ''] = /^([a-z]*): ?(.*)$/s.exec(line) ?? [];
    if (name === '') block.comment = true;
    else block[name] = value;
  }
  return block;
}

/** A block that moves the cursor and holds no event. */
const cursorBlock = (cursor: string): Block => ({
  id: cursor,
  event: 'cursor',
  data: JSON.stringify({ cursor }),
});

type Api = Awaited<ReturnType<typeof start>>;

function stream(api: Api, path: string, headers: Record<string, string> = {}) {
  const abort = new AbortController();
  return openStream(api.get(path, { signal: abort.signal, headers }), abort);
}

async function until(holds: () => boolean, what: string) {
  const deadline = Date.now() + 5_000;
  while (!holds()) {
    if (Date.now() > deadline) throw new Error(`never: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

describe('API key', () => {
  const ask = (api: Api, authorization?: string) =>
    fetch(`${api.url}/v1/accounts/acme/status`, {
      headers: authorization === undefined ? {} : { authorization },
    });

  test.each([
    ['missing', undefined],
    ['wrong', 'Bearer wrong'],
    ['a prefix of the valid key', `Bearer ${KEY.slice(0, -1)}`],
    ['longer than the valid key', `Bearer ${KEY}x`],
    ['under another scheme', `Basic ${KEY}`],
    ['empty', 'Bearer '],
    ['without a scheme', KEY],
  ])('is rejected if it is %s, and is not echoed', async (_, authorization) => {
    const api = await start();
    const response = await ask(api, authorization);
    expect(response.status).toBe(401);
    expect(response.headers.get('content-type')).toBe('application/problem+json');
    expect(response.headers.get('www-authenticate')).toMatch(/^Bearer realm="jobwire"/);
    const text = await response.text();
    expect(JSON.parse(text)).toMatchObject({ type: 'urn:jobwire:problem:unauthorized', status: 401 });
    expect(text).not.toContain(KEY.slice(0, -1));
  });

  test('is accepted in any case of the scheme', async () => {
    const api = await start();
    expect((await ask(api, `bearer ${KEY}`)).status).toBe(200);
  });

  test('is required for every path below /v1, known or not, before any lookup', async () => {
    const api = await start();
    for (const path of [
      '/v1/accounts/acme/events',
      '/v1/accounts/nobody/events',
      '/v1/events/stream',
      '/v1/nowhere',
      '/v1/accounts/acme/jobs/1',
    ]) {
      expect((await fetch(api.url + path)).status, path).toBe(401);
    }
    expect((await fetch(`${api.url}/v1/accounts/acme/status`, { method: 'POST' })).status).toBe(401);
    expect((await fetch(`${api.url}/v1//accounts/acme/status`)).status).toBe(401);
  });

  test('is not required for health and event types', async () => {
    const api = await start();
    const health = await fetch(`${api.url}/healthz`);
    expect([health.status, await health.text()]).toEqual([200, '{"status":"ok"}']);
    const types = (await (await fetch(`${api.url}/v1/event-types`)).json()) as {
      types: { type: string; schema: string }[];
    };
    expect(types.types.map(({ type }) => type)).toEqual(eventTypes);
    for (const { schema } of types.types) {
      const response = await fetch(api.url + schema);
      expect([response.status, response.headers.get('content-type')]).toEqual([
        200,
        'application/schema+json',
      ]);
      expect(await response.json()).toMatchObject({ type: 'object' });
    }
    expect((await fetch(`${api.url}/v1/event-types/job.eaten/schema`)).status).toBe(404);
    expect((await fetch(`${api.url}/v1/event-types/toString/schema`)).status).toBe(404);
  });
});

describe('errors', () => {
  const events = '/v1/accounts/acme/events';
  const jobs = '/v1/accounts/acme/jobs';
  test.each([
    [`${events}?limit=0`, 'limit', 'from 1 to 1000'],
    [`${events}?limit=1001`, 'limit', 'from 1 to 1000'],
    [`${events}?limit=1e2`, 'limit', 'integer'],
    [`${events}?limit=`, 'limit', 'integer'],
    [`${events}?limit=-1`, 'limit', 'integer'],
    [`${events}?limit=1&limit=2`, 'limit', 'once'],
    [`${events}?wait=26`, 'wait', 'from 0 to 25'],
    [`${events}?wait=0.5`, 'wait', 'integer'],
    [`${events}?after=yesterday`, 'after', '<epoch>.<number>'],
    [`${events}?after=e1.-1`, 'after', '<epoch>.<number>'],
    [`${events}?after=`, 'after', '<epoch>.<number>'],
    [`${events}?types=jobs.*`, 'types', '"jobs.*"'],
    [`${events}?types=job.closed,`, 'types', '""'],
    [`${events}?types=`, 'types', '""'],
    [`${events}?since=1`, 'since', 'after, limit, types, wait'],
    [`${events}/stream?limit=5`, 'limit', 'after, types'],
    [`${events}/stream?after=x`, 'after', 'cursor'],
    ['/v1/events/stream?after=5', 'after', 'of its stream'],
    ['/v1/accounts/acme/status?verbose=1', 'verbose', 'none'],
    [`${events}?before=e1.1`, 'before', 'requires order=newest'],
    [`${events}?order=newest&after=e1.1`, 'after', 'combined with order=newest'],
    [`${events}?order=newest&wait=5`, 'wait', 'combined with order=newest'],
    ['/v1/events?order=newest&last=5', 'last', 'combined with order=newest'],
    ['/v1/events?order=newest&before=x', 'before', 'must be a `next`'],
    [`${jobs}?limit=x`, 'limit', 'integer'],
    [`${jobs}?after=5`, 'after', '`next`'],
    [`${jobs}?status=`, 'status', '1 to 200'],
    [`${jobs}?dueBefore=21.11.2026`, 'dueBefore', 'YYYY-MM-DD'],
    [`${jobs}?dueBefore=2026-02-30`, 'dueBefore', 'YYYY-MM-DD'],
    [`${jobs}?late=true&dispatchedOn=2026-11-21`, 'dispatchedOn', 'combined with late'],
    [`${jobs}?orderGroup=G&sort=dateDue`, 'sort', 'status, undispatched'],
    [`${jobs}?sort=due`, 'sort', '-dateDue'],
    [`${jobs}?expand=lines`, 'expand', 'detail,events'],
    [`${jobs}?order=1`, 'order', 'dueBefore'],
    [`${jobs}/abc`, 'jobNumber', 'integer'],
    [`${jobs}/0`, 'jobNumber', 'from 1'],
    [`${jobs}/1000000000000`, 'jobNumber', 'to 999999999999'],
    ['/v1/event-types?x=1', 'x', 'none'],
  ])('%s is rejected with the name of the parameter', async (path, field, rule) => {
    const api = await start();
    const { status, headers, body } = await api.json(path);
    expect(status).toBe(400);
    expect(headers.get('content-type')).toBe('application/problem+json');
    expect(body).toMatchObject({
      type: 'urn:jobwire:problem:invalid-parameter',
      title: expect.any(String),
      status: 400,
      field,
    });
    expect(body.detail).toContain(field);
    expect(body.detail).toContain(rule);
  });

  test('an invalid Last-Event-ID is rejected with its name', async () => {
    const api = await start();
    for (const path of [`${events}/stream`, '/v1/events/stream']) {
      const { status, body } = await api.json(path, { headers: { 'last-event-id': 'bogus!' } });
      expect([status, body.field]).toEqual([400, 'Last-Event-ID']);
    }
  });

  test('unknown routes, accounts and jobs answer 404, another method 405 with Allow', async () => {
    const api = await start();
    const strange = [
      '/nowhere',
      '/v1/nowhere',
      '/v1/accounts/nobody/events',
      '/v1/accounts/nobody/events/stream',
      '/v1/accounts/nobody/jobs',
      '/v1/accounts/nobody/jobs/1',
      '/v1/accounts/nobody/status',
      '/v1/accounts/_cell/events',
      '/v1/accounts/acme%23x/events',
      `/v1/accounts/${'a'.repeat(3000)}/status`,
      `${jobs}/77`,
    ];
    for (const path of strange) {
      const { status, headers, body } = await api.json(path);
      expect([path, status, headers.get('content-type')]).toEqual([path, 404, 'application/problem+json']);
      expect(body).toMatchObject({ status: 404, type: 'urn:jobwire:problem:not-found' });
    }
    const post = await api.json(events, { method: 'POST' });
    expect([post.status, post.headers.get('allow'), post.body.status]).toEqual([405, 'GET, HEAD', 405]);
    expect(post.headers.get('content-type')).toBe('application/problem+json');
  });

  test('an unavailable table answers 503 with Retry-After, any other fault 500 without details', async () => {
    const api = await start();
    for (const [cause, status] of [
      [new TableError('get', 'ProvisionedThroughputExceeded for jobwire-state'), 503],
      [new Error('secret detail of jobwire-state'), 500],
    ] as const) {
      api.hooks.table = { get: () => Promise.reject(cause) };
      const answer = await api.json('/v1/accounts/acme/status');
      expect(answer.status).toBe(status);
      expect(answer.headers.get('retry-after')).toBe(status === 503 ? '5' : null);
      expect(answer.headers.get('x-request-id')).toBeTruthy();
      expect(JSON.stringify(answer.body)).not.toContain('jobwire-state');
      expect(api.errors.at(-1)).toBe(cause);
    }
  });

  test("every answer has its own request id, or the client's; data is never cached", async () => {
    const api = await start();
    for (const path of [
      '/healthz',
      events,
      '/v1/nowhere',
      '/nowhere',
      `${events}?limit=0`,
      `${jobs}/77`,
      '/v1/accounts/acme/status',
    ]) {
      const response = await api.get(path);
      expect(response.headers.get('x-request-id'), path).toMatch(/^[\w-]{36}$/);
      expect(response.headers.get('cache-control'), path).toBe('no-store');
      expect(response.headers.get('x-content-type-options'), path).toBe('nosniff');
    }
    expect((await fetch(api.url + events)).headers.get('x-request-id')).toMatch(/^[\w-]{36}$/);
    const given = await api.get(events, { headers: { 'x-request-id': 'trace-1' } });
    expect(given.headers.get('x-request-id')).toBe('trace-1');
  });
});

describe('account feed', () => {
  const path = '/v1/accounts/acme/events';

  test('is contiguous over pages, from the first event to the head', async () => {
    const api = await start();
    await api.append(ACME, jobEvents(25));
    const got: number[] = [];
    let after = '';
    for (let pages = 0; ; pages += 1) {
      const { body } = await api.json(`${path}?limit=10${after}`);
      got.push(...sequences(body.events));
      expect(body.head).toBe('e1.25');
      expect(body.next).toBe(`e1.${got.length}`);
      after = `&after=${body.next}`;
      if (body.next === body.head) {
        expect(pages).toBe(2);
        break;
      }
    }
    expect(got).toEqual(range(1, 25));
    expect((await api.json(`${path}?after=e1.25`)).body).toMatchObject({
      events: [],
      next: 'e1.25',
      head: 'e1.25',
    });
  });

  /** Reads all pages from the newest event backwards. Returns the numbers, and the cursor of later events. */
  async function readBackwards(api: Api, query: string) {
    const got: number[] = [];
    let next: string | undefined;
    for (let before = ''; ; ) {
      const { status, body } = await api.json(`${path}?order=newest&${query}${before}`);
      expect(status).toBe(200);
      got.push(...sequences(body.events));
      next ??= body.next;
      if (body.previous === null) return { got, next };
      before = `&before=${body.previous}`;
    }
  }

  test('is read from the newest event backwards, each once, and new events follow after the first page', async () => {
    const api = await start();
    await api.append(ACME, [...jobEvents(12), accountEvent(), ...jobEvents(12)]);
    const all = range(1, 25).toReversed();
    for (const limit of [1, 7, 25, 100]) {
      expect(await readBackwards(api, `limit=${limit}`)).toEqual({ got: all, next: 'e1.25' });
      const jobNumbers = all.filter((number) => number !== 13);
      expect((await readBackwards(api, `limit=${limit}&types=job.*`)).got).toEqual(jobNumbers);
    }
    await api.append(ACME, jobEvents(1));
    const older = await api.json(`${path}?order=newest&before=e1.25&limit=2`);
    expect(older.body).toMatchObject({ next: 'e1.25', previous: 'e1.23', head: 'e1.26' });
    expect(sequences((await api.json(`${path}?after=${older.body.next}`)).body.events)).toEqual([26]);
    expect((await api.json(`${path}?order=newest&before=e1.0`)).body).toMatchObject({
      ...{ events: [], next: 'e1.0', previous: null, head: 'e1.26' },
    });
    for (const before of ['e1.27', 'e9.1']) {
      expect((await api.json(`${path}?order=newest&before=${before}`)).status).toBe(410);
    }
  });

  test('is read backwards to the earliest stored event', async () => {
    const api = await start({ retentionDays: 1 });
    await api.append(ACME, jobEvents(4));
    api.clock.now += DAY_MS / 2;
    await api.append(ACME, jobEvents(3));
    api.clock.now += DAY_MS / 2 + 1;
    for (const limit of [1, 2, 100]) {
      expect((await readBackwards(api, `limit=${limit}`)).got).toEqual([7, 6, 5]);
    }
    expect((await api.json(`${path}?order=newest&before=e1.3`)).body).toMatchObject({
      ...{ events: [], previous: null },
    });
  });

  test('is read backwards in pages of bounded cost and size', async () => {
    const api = await start();
    await api.append(ACME, [jobEvent(), ...Array.from({ length: 2100 }, accountEvent)]);
    const first = await api.json(`${path}?order=newest&types=job.*`);
    expect(first.body).toMatchObject({ events: [], next: 'e1.2101', previous: 'e1.101' });
    const second = await api.json(`${path}?order=newest&types=job.*&before=${first.body.previous}`);
    expect([sequences(second.body.events), second.body.previous]).toEqual([[1], null]);
    const description = 'x'.repeat(200_000);
    await api.append(
      ACME,
      range(1, 25).map((n) => jobEvent(n, { description })),
    );
    const big = await api.json(`${path}?order=newest&limit=25`);
    expect(JSON.stringify(big.body).length).toBeLessThan(5_000_000);
    const rest = await api.json(`${path}?order=newest&limit=25&types=job.*&before=${big.body.previous}`);
    expect(sequences([...big.body.events, ...rest.body.events]).slice(0, 25)).toEqual(
      range(2102, 2126).toReversed(),
    );
  });

  test('accepts a bare number for the current epoch', async () => {
    const api = await start();
    await api.append(ACME, jobEvents(3));
    expect(sequences((await api.json(`${path}?after=2`)).body.events)).toEqual([3]);
  });

  test('of an account without events is empty and has a cursor', async () => {
    const api = await start();
    expect((await api.json(path)).body).toEqual({
      events: [],
      next: 'e1.0',
      head: 'e1.0',
      observedThrough: null,
    });
  });

  test('filters by type and moves its cursor past the filtered events', async () => {
    const api = await start();
    await api.append(ACME, [...jobEvents(5), accountEvent(), ...jobEvents(4)]);
    const accounts = await api.json(`${path}?types=account.*`);
    expect(accounts.body.events.map((event) => event.type)).toEqual(['account.credentials_accepted']);
    expect(accounts.body.next).toBe('e1.10');
    const none = await api.json(`${path}?types=status.discovered,job.created`);
    expect(none.body).toMatchObject({ events: [], next: 'e1.10', head: 'e1.10' });
    // Ends behind the last returned event, not behind the last one read.
    const two = await api.json(`${path}?types=job.*&limit=2`);
    expect([sequences(two.body.events), two.body.next]).toEqual([[1, 2], 'e1.2']);
  });

  test('reads a bounded number of events per request, and still advances', async () => {
    const api = await start();
    await api.append(ACME, [...Array.from({ length: 2100 }, accountEvent), jobEvent()]);
    const first = await api.json(`${path}?types=job.*&wait=25`);
    expect(first.body).toMatchObject({ events: [], next: 'e1.2000', head: 'e1.2101', observedThrough: null });
    const second = await api.json(`${path}?types=job.*&wait=25&after=${first.body.next}`);
    expect([sequences(second.body.events), second.body.next]).toEqual([[2101], 'e1.2101']);
  });

  test('cuts pages of big events by size', async () => {
    const api = await start();
    await api.append(
      ACME,
      range(1, 40).map((n) => jobEvent(n, { description: 'x'.repeat(200_000) })),
    );
    const got: number[] = [];
    for (let after = '0'; got.length < 40; ) {
      const response = await api.get(`${path}?limit=500&after=${after}`);
      const text = await response.text();
      expect(text.length).toBeLessThan(5_000_000);
      const body = JSON.parse(text);
      expect(body.events.length).toBeGreaterThan(0);
      got.push(...sequences(body.events));
      after = body.next;
    }
    expect(got).toEqual(range(1, 40));
  });

  test('returns stored envelopes byte for byte, with any customer texts', async () => {
    const api = await start();
    const description = `</script><script>alert("1")</script> \\ \u2028 \u0000 \ud83d\ude00 \r\n\n data: x ${'é'.repeat(3)}`;
    await api.append(ACME, [jobEvent(1, { description }), jobEvent(2)]);
    // Written by another version: the same document in other bytes than this version's.
    await api.table.write({
      update: keys.event(ACME, 2),
      set: { event: '{ "id":"2","data":{"price":1.0, "b":2,"1":"\\u00e9"} }' },
    });
    const stored = (await Promise.all([1, 2].map((n) => api.table.get(keys.event(ACME, n))))).map((item) =>
      String(item?.event),
    );
    const response = await api.get(path);
    expect(response.headers.get('content-type')).toBe('application/json');
    const bytes = Buffer.from(await response.arrayBuffer());
    expect(bytes.subarray(0, '{"events":['.length + Buffer.byteLength(stored.join())).toString()).toBe(
      `{"events":[${stored.join()}`,
    );
    expect(JSON.parse(bytes.toString()).events[0].data.job.description).toBe(description);

    const live = await stream(api, `${path}/stream?after=0`);
    expect((await live.event()).data).toBe(stored[0]);
    expect((await live.event()).data).toBe(stored[1]);
  });

  test('rejects cursors of another epoch and beyond the head with 410 and the cursor to resume from', async () => {
    const api = await start();
    await api.append(ACME, jobEvents(3));
    for (const after of ['e9.1', 'e1.4', '4', '999999999999999']) {
      for (const route of [path, `${path}/stream`]) {
        const { status, body } = await api.json(`${route}?after=${after}`);
        expect([status, body.type, body.earliest, body.head]).toEqual([
          410,
          'urn:jobwire:problem:cursor-gone',
          'e1.0',
          'e1.3',
        ]);
      }
    }
  });

  test('rejects an expired cursor; without a cursor it starts at the earliest stored event', async () => {
    const api = await start({ retentionDays: 1 });
    await api.append(ACME, jobEvents(4));
    api.clock.now += DAY_MS / 2;
    await api.append(ACME, jobEvents(3));
    api.clock.now += DAY_MS / 2 + 1;
    for (const route of [path, `${path}/stream`]) {
      const gone = await api.json(`${route}?after=e1.2`);
      expect([gone.status, gone.body.earliest, gone.body.head]).toEqual([410, 'e1.4', 'e1.7']);
    }
    expect(sequences((await api.json(path)).body.events)).toEqual([5, 6, 7]);
    expect(sequences((await api.json(`${path}?after=e1.4`)).body.events)).toEqual([5, 6, 7]);
    api.clock.now += DAY_MS;
    expect((await api.json(path)).body).toMatchObject({ events: [], next: 'e1.7', head: 'e1.7' });
  });

  test('has observedThrough only if the page reaches the head', async () => {
    const api = await start();
    await api.append(ACME, jobEvents(3));
    await api.table.write({ update: keys.status(ACME), set: { lastGoodCrawlStartedAt: NOW } });
    expect((await api.json(`${path}?limit=2`)).body.observedThrough).toBeNull();
    expect((await api.json(`${path}?limit=3`)).body.observedThrough).toBe('2026-11-21T12:00:00.000Z');
    expect((await api.json(`${path}?after=3`)).body.observedThrough).toBe('2026-11-21T12:00:00.000Z');
  });

  test('never has an observedThrough whose events came after the page was read', async () => {
    const api = await start();
    await api.append(ACME, jobEvents(1));
    api.hooks.afterRead = async () => {
      // A poll completes between reading the log and responding.
      delete api.hooks.afterRead;
      const status = toStatus((await api.table.get(keys.status(ACME))) ?? { pk: '', sk: '' });
      const head = await api.log.head(ACME);
      if (!head) throw new Error('no head');
      await api.log.commit(ACME, {
        revision: status.revision,
        head,
        events: [jobEvent(2)],
        writes: [],
        statusAttributes: { lastGoodCrawlStartedAt: NOW },
      });
    };
    const { body } = await api.json(path);
    expect(sequences(body.events)).toEqual([1]);
    expect(body.observedThrough).toBeNull();
    expect((await api.json(path)).body).toMatchObject({
      next: 'e1.2',
      observedThrough: '2026-11-21T12:00:00.000Z',
    });
  });

  test('is the same on Lambda and on a server', async () => {
    const api = await start();
    await api.append(ACME, jobEvents(2));
    const response = await api.api.request(path, { headers: { authorization: `Bearer ${KEY}` } });
    expect(sequences(((await response.json()) as { events: JobEvent[] }).events)).toEqual([1, 2]);
  });
});

describe('a long poll', () => {
  const path = '/v1/accounts/acme/events?wait=25&after=e1.0';

  test('is answered by the append itself, without polling the table', async () => {
    const api = await start();
    const reading = new Promise<void>((resolve) => {
      api.hooks.afterRead = () => resolve();
    });
    const asked = api.json(path);
    await reading;
    await until(() => api.growth.watches === 1, 'a waiting reader');
    await api.append(ACME, [jobEvent()]);
    expect((await asked).body).toMatchObject({ next: 'e1.1', events: [{ type: 'job.closed' }] });
    expect(api.growth.watches).toBe(0);
  }, 5_000);

  test('misses no event that is appended between its read and its wait', async () => {
    const api = await start();
    api.hooks.afterRead = async () => {
      delete api.hooks.afterRead;
      await api.append(ACME, [jobEvent()]);
    };
    expect(sequences((await api.json(path)).body.events)).toEqual([1]);
  }, 5_000);

  test('keeps waiting if the new events do not match, or belong to another account', async () => {
    const api = await start();
    const asked = api.json(`${path}&types=account.*`);
    await until(() => api.reads.length === 1, 'a first look');
    await api.append(KIWI, [accountEvent()]);
    await api.append(ACME, [jobEvent()]);
    await until(() => api.reads.length === 2, 'a second look');
    await api.append(ACME, [accountEvent()]);
    expect((await asked).body).toMatchObject({
      next: 'e1.2',
      events: [{ type: 'account.credentials_accepted' }],
    });
  }, 5_000);

  test('polls the table if nothing wakes it', async () => {
    const api = await start({ hinted: false, pace: { recheckMs: 10 } });
    const asked = api.json(path);
    await until(() => api.reads.length === 1, 'a first look');
    await api.append(ACME, [jobEvent()]);
    expect(sequences((await asked).body.events)).toEqual([1]);
  }, 5_000);

  test('ends with an empty page after its time, with the current observedThrough', async () => {
    const api = await start();
    const began = Date.now();
    const asked = api.json('/v1/accounts/acme/events?wait=1&after=e1.0');
    await until(() => api.growth.watches === 1, 'a waiting reader');
    await api.table.write({ update: keys.status(ACME), set: { lastGoodCrawlStartedAt: NOW } });
    const { status, body } = await asked;
    expect(Date.now() - began).toBeGreaterThanOrEqual(950);
    expect([status, body]).toEqual([
      200,
      { events: [], next: 'e1.0', head: 'e1.0', observedThrough: '2026-11-21T12:00:00.000Z' },
    ]);
    expect(api.growth.watches).toBe(0);
  });

  test('ends at once when its client disconnects', async () => {
    const api = await start();
    const abort = new AbortController();
    const asked = api.get(path, { signal: abort.signal });
    await until(() => api.growth.watches === 1, 'a waiting reader');
    abort.abort();
    await expect(asked).rejects.toThrow();
    await until(() => api.growth.watches === 0, 'the reader ended');
  });
});

describe('account stream', () => {
  const path = '/v1/accounts/acme/events/stream';

  test('starts at the head and sends new events with cursor, type and envelope', async () => {
    const api = await start();
    await api.append(ACME, jobEvents(3));
    const live = await stream(api, path);
    expect(live.response.headers.get('content-type')).toBe('text/event-stream');
    expect(live.response.headers.get('cache-control')).toBe('no-store');
    expect(await live.next()).toEqual({ retry: '1000', ...cursorBlock('e1.3') });
    await api.append(ACME, [jobEvent(4)]);
    const event = await live.event();
    expect([event.id, event.event]).toEqual(['e1.4', 'job.closed']);
    expect(JSON.parse(event.data)).toMatchObject({
      id: 'acme.e1.4',
      specversion: '1.0',
      subject: 'jobs/1004',
    });
  });

  test('resumes after Last-Event-ID rather than the `after` it was opened with', async () => {
    const api = await start();
    await api.append(ACME, jobEvents(5));
    expect((await (await stream(api, `${path}?after=e1.3`)).event()).id).toBe('e1.4');
    expect((await (await stream(api, `${path}?after=e1.1`, { 'last-event-id': 'e1.4' })).event()).id).toBe(
      'e1.5',
    );
  });

  test('has neither gaps nor repeats for a client that is disconnected repeatedly while events are appended', async () => {
    const api = await start();
    const total = 400;
    const appending = (async () => {
      for (let n = 1; n <= total; n += 4) {
        await api.append(
          ACME,
          range(n, n + 3).map((at) => jobEvent(at)),
        );
        if (n % 3 === 0) await new Promise((resolve) => setImmediate(resolve));
      }
    })();
    const got: number[] = [];
    let last = 'e1.0';
    for (let turn = 1; got.length < total; turn += 1) {
      const live = await stream(api, path, { 'last-event-id': last });
      for (let count = 0; count < (turn * 7) % 60 && got.length < total; count += 1) {
        const { id, data } = await live.event();
        last = id;
        got.push(Number(JSON.parse(data).sequence));
        expect(id).toBe(`e1.${got.at(-1)}`);
      }
      live.close();
    }
    await appending;
    expect(got).toEqual(range(1, total));
    await until(() => api.growth.watches === 0, 'all streams ended');
  });

  test('loses nothing for a client that is disconnected before its first event', async () => {
    const api = await start();
    await api.append(ACME, jobEvents(2));
    const first = await stream(api, path);
    const id = (await first.next())?.id ?? '';
    first.close();
    await api.append(ACME, [jobEvent(3)]);
    expect((await (await stream(api, path, { 'last-event-id': id })).event()).id).toBe('e1.3');
  });

  test('filters, and its heartbeats carry the cursor past filtered events', async () => {
    const api = await start({ pace: { recheckMs: 60_000, heartbeatMs: 30 } });
    const live = await stream(api, `${path}?types=account.*`);
    expect((await live.next())?.id).toBe('e1.0');
    await api.append(ACME, jobEvents(3));
    let beat = await live.next();
    while (beat?.id === undefined) {
      expect(beat).toEqual({ comment: true });
      beat = await live.next();
    }
    expect(beat).toEqual(cursorBlock('e1.3'));
    await api.append(ACME, [jobEvent(4), accountEvent()]);
    expect((await live.event()).id).toBe('e1.5');
  });

  test('ends by itself after its time, so that the client resumes', async () => {
    const api = await start({ pace: { recheckMs: 60_000, streamMs: 60, heartbeatMs: 1000 } });
    const live = await stream(api, `${path}?types=account.*`);
    const { id } = (await live.next()) ?? {};
    expect(id).toBe('e1.0');
    await api.append(ACME, [jobEvent()]);
    // The time may be over before the stream sees the event.
    const rest: unknown[] = [];
    for (let block = await live.next(); block !== undefined; block = await live.next()) rest.push(block);
    expect([[], [cursorBlock('e1.1')]]).toContainEqual(rest);
    expect(api.growth.watches).toBe(0);
  });

  test('ends by itself also while events arrive continuously', async () => {
    const api = await start({ pace: { streamMs: 50 } });
    let over = false;
    const appending = (async () => {
      while (!over) {
        await api.append(ACME, [jobEvent()]);
        await new Promise((resolve) => setImmediate(resolve));
      }
    })();
    const live = await stream(api, path);
    while (await live.next());
    over = true;
    await appending;
    expect(api.errors).toEqual([]);
  });

  test('stops at once when its client disconnects: no listener is left, nothing more is read', async () => {
    const api = await start();
    const streams = await Promise.all(range(1, 10).map(() => stream(api, path)));
    for (const live of streams) await live.next();
    await until(() => api.growth.watches === 10, 'ten streams');
    for (const live of streams) live.close();
    await until(() => api.growth.watches === 0, 'no stream');
    const reads = api.reads.length;
    await api.append(ACME, jobEvents(3));
    expect(api.reads.length).toBe(reads);
    expect(api.errors).toEqual([]);
  });

  test('is not started for a HEAD request', async () => {
    const api = await start();
    const response = await api.get(path, { method: 'HEAD' });
    expect([response.status, response.headers.get('content-type')]).toEqual([200, 'text/event-stream']);
    expect(api.growth.watches).toBe(0);
  });

  test('reads no further than a slow client consumes', async () => {
    const api = await start();
    await api.append(
      ACME,
      range(1, 2000).map((n) => jobEvent(n, { description: 'x'.repeat(20_000) })),
    );
    const socket: Socket = connect(api.port, '127.0.0.1');
    closers.push(() => socket.destroy());
    await once(socket, 'connect');
    socket.pause();
    socket.write(`GET ${path}?after=0 HTTP/1.1\r\nhost: x\r\nauthorization: Bearer ${KEY}\r\n\r\n`);
    // 40 MB are stored; the sockets buffer some, and then the stream waits.
    let before = -1;
    while (api.reads.length !== before || before < 2) {
      before = api.reads.length;
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
    expect(api.reads.length).toBeLessThan(15);
    socket.destroy();
    await until(() => api.growth.watches === 0, 'the stream ended');
    expect(api.errors).toEqual([]);
  });

  test('with a fault ends, reports it, and can be resumed', async () => {
    const api = await start();
    const live = await stream(api, path);
    await live.next();
    const fault = new TableError('query', 'gone fishing');
    api.hooks.afterRead = () => Promise.reject(fault);
    await api.append(ACME, [jobEvent()]);
    expect(await live.next()).toBeUndefined();
    expect(api.errors).toEqual([fault]);
    expect(api.growth.watches).toBe(0);
    delete api.hooks.afterRead;
    expect((await (await stream(api, path, { 'last-event-id': 'e1.0' })).event()).id).toBe('e1.1');
  });

  test('ends when its log starts a new epoch, and resuming is rejected', async () => {
    const api = await start();
    const live = await stream(api, path);
    await live.next();
    await until(() => api.growth.watches === 1, 'a stream');
    await api.table.write({ update: keys.head(ACME), set: { epoch: 'e7' } });
    api.growth.grew(ACME);
    expect(await live.next()).toBeUndefined();
    expect((await api.json(path, { headers: { 'last-event-id': 'e1.0' } })).status).toBe(410);
  });
});

describe('stream of all accounts', () => {
  const path = '/v1/events/stream';

  test('is followed by the documented EventSource without a gap: ended before its first event, rejected, and resumed', async () => {
    const api = await start({ pace: { retryMs: 10 } });
    const asked: { after: string | null; last: string | undefined }[] = [];
    // The proxy that adds the key: it ends the first stream after its first frame, then rejects once.
    const between = createServer(async (request, response) => {
      const { pathname, search, searchParams } = new URL(request.url ?? '', 'http://x');
      const last = request.headers['last-event-id']?.toString();
      const turn = asked.push({ after: searchParams.get('after'), last });
      if (turn === 2) {
        await api.append(ACME, [jobEvent(1)]);
        response.writeHead(503).end();
        return;
      }
      const gone = new AbortController();
      response.on('close', () => gone.abort());
      const headers = last === undefined ? {} : { 'last-event-id': last };
      const answer = await api.get(`${pathname.replace('/jobwire', '')}${search}`, {
        headers,
        signal: gone.signal,
      });
      response.writeHead(answer.status, { 'content-type': 'text/event-stream' });
      try {
        for await (const chunk of answer.body ?? []) {
          response.write(chunk);
          if (turn === 1) break;
        }
        response.end();
      } catch {
        // The client has gone.
      }
    });
    await new Promise<void>((resolve) => between.listen(0, '127.0.0.1', resolve));
    closers.push(() => {
      between.closeAllConnections();
      between.close();
    });

    const guide = readFileSync('docs/receiving-events.md', 'utf8');
    const [, example = ''] = /^### With EventSource\n[\s\S]*?^```js\n([\s\S]*?)^```$/m.exec(guide) ?? [];
    expect(example).toContain('5_000');
    const folder = mkdtempSync(join(tmpdir(), 'jobwire-event-source-'));
    closers.push(() => rmSync(folder, { recursive: true }));
    symlinkSync(resolve('node_modules'), join(folder, 'node_modules'));
    const browser = `
      import * as undici from 'undici';
      globalThis.EventSource = class extends undici.EventSource {
        constructor(path) { super(new URL(path, process.env.ORIGIN)); }
      };
      // Its timers do not keep the process running.
      setInterval(() => {}, 60_000);
      await import('./follow.mjs');`;
    writeFileSync(join(folder, 'browser.mjs'), browser);
    writeFileSync(join(folder, 'follow.mjs'), example.replace('5_000', '50'));
    writeFileSync(join(folder, 'queue.mjs'), 'export const handle = ({ id }) => console.log(id);');
    const { port } = between.address() as AddressInfo;
    const { child, printed, ended } = launch(
      [process.execPath, '--no-warnings', join(folder, 'browser.mjs')],
      {
        env: { ORIGIN: `http://127.0.0.1:${port}` },
      },
    );
    closers.push(() => {
      child.kill('SIGKILL');
      return ended;
    });
    await printed(/acme\.e1\.1\n/);
    await api.append(KIWI, [jobEvent(1)]);
    await printed(/kiwi\.e2\.1\n/);
    const begun = 'nz.e2.0~us.e1.0';
    expect(asked).toEqual([
      { after: null, last: undefined },
      { after: null, last: begun },
      { after: begun, last: undefined },
    ]);
  });

  test('has the events of every region and resumes at its cursor', async () => {
    const api = await start();
    await api.append(ACME, jobEvents(3));
    const live = await stream(api, path);
    const begun = (await live.next())?.id ?? '';
    await api.append(ACME, [jobEvent(4)]);
    const first = await live.event();
    await api.append(KIWI, [jobEvent(1)]);
    const second = await live.event();
    expect([first, second].map(({ data }) => JSON.parse(data).id)).toEqual(['acme.e1.4', 'kiwi.e2.1']);
    live.close();

    const again = await stream(api, path, { 'last-event-id': begun });
    const ids = [await again.event(), await again.event()].map(({ data }) => JSON.parse(data).id);
    expect(ids.sort()).toEqual(['acme.e1.4', 'kiwi.e2.1']);
    const after = await stream(api, `${path}?after=${first.id}`);
    expect(JSON.parse((await after.event()).data).id).toBe('kiwi.e2.1');
  });

  test('has neither gaps nor repeats for a client that is disconnected repeatedly, nor for later accounts', async () => {
    const api = await start();
    const late: AccountRef = { region: 'us', account: 'late' };
    const refs = [ACME, KIWI, late];
    const total = 150;
    const begun = await stream(api, path);
    let last = (await begun.next())?.id ?? '';
    begun.close();
    const appending = (async () => {
      for (let n = 1; n <= total; n += 1) {
        if (n === 50) await api.register(late, 'e3');
        for (const ref of n < 50 ? [ACME, KIWI] : refs) await api.append(ref, [jobEvent(n)]);
        if (n % 2 === 0) await new Promise((resolve) => setImmediate(resolve));
      }
    })();
    const got = new Map<string, number[]>(refs.map(({ account }) => [account, []]));
    const expected = 2 * total + (total - 49);
    let count = 0;
    for (let turn = 1; count < expected; turn += 1) {
      const live = await stream(api, path, { 'last-event-id': last });
      for (let taken = 0; taken < (turn * 11) % 70 && count < expected; taken += 1) {
        const { id, data } = await live.event();
        const event: JobEvent = JSON.parse(data);
        last = id;
        got.get(event.data.account ?? '')?.push(Number(event.sequence));
        count += 1;
      }
      live.close();
    }
    await appending;
    expect(got.get('acme')).toEqual(range(1, total));
    expect(got.get('kiwi')).toEqual(range(1, total));
    expect(got.get('late')).toEqual(range(1, total - 49));
    await until(() => api.growth.watches === 0, 'all streams ended');
  });

  test('follows an account that is registered while it runs', async () => {
    const api = await start();
    const live = await stream(api, path);
    await live.next();
    await until(() => api.growth.watches === 1, 'a stream');
    const late: AccountRef = { region: 'nz', account: 'late' };
    await api.register(late, 'e3');
    await api.append(late, jobEvents(2));
    expect([await live.event(), await live.event()].map(({ data }) => JSON.parse(data).id)).toEqual([
      'late.e3.1',
      'late.e3.2',
    ]);
  });

  test('finds new events by polling if nothing wakes it', async () => {
    const api = await start({ hinted: false, pace: { recheckMs: 10 } });
    const live = await stream(api, path);
    await live.next();
    await api.append(KIWI, [jobEvent(1)]);
    expect(JSON.parse((await live.event()).data).id).toBe('kiwi.e2.1');
  });

  test('does not let a long log delay the others', async () => {
    const api = await start();
    const begun = await stream(api, path);
    const last = (await begun.next())?.id ?? '';
    begun.close();
    await api.append(ACME, jobEvents(500));
    await api.append(KIWI, jobEvents(500));
    const live = await stream(api, path, { 'last-event-id': last });
    const accounts = new Set<string>();
    for (let n = 0; n < 250; n += 1) accounts.add(JSON.parse((await live.event()).data).data.account);
    expect([...accounts].sort()).toEqual(['acme', 'kiwi']);
  });

  test('rejects a cursor that no feed can use, with the best cursor to resume from', async () => {
    const api = await start();
    await api.append(ACME, jobEvents(3));
    await api.append(KIWI, jobEvents(5));
    await until(() => api.forwards() === 0, 'all in the feed');
    for (const us of ['us.e9.3', 'us.e1.9']) {
      const { status, body } = await api.json(`${path}?after=nz.e2.2~${us}`);
      expect([status, body.type]).toEqual([410, 'urn:jobwire:problem:cursor-gone']);
      expect([body.earliest, body.head]).toEqual(['nz.e2.2~us.e1.0', 'nz.e2.5~us.e1.3']);
    }
    const { status, body } = await api.json(path, { headers: { 'last-event-id': 'nz.e2.2~us.e9.9' } });
    expect([status, body.head]).toEqual([410, 'nz.e2.5~us.e1.3']);
    expect((await (await stream(api, `${path}?after=${body.head}`)).next())?.id).toBe(body.head);
    for (const after of ['', 'e9.3', 'us', 'us.e1.x', '%7B%7D']) {
      const refused = await api.json(`${path}?after=${after}`);
      expect([refused.status, refused.body.field], after).toEqual([400, 'after']);
    }
  });

  test('of one region has the cursors of a log, equally small with many accounts', async () => {
    const api = await start({ regions: ['us'] });
    for (let n = 0; n < 1_200; n += 1) {
      await api.register({ region: 'us', account: `customer-${n}` }, `t4z9x${(n * 7919).toString(36)}`);
    }
    const live = await stream(api, path);
    expect((await live.next())?.id).toBe('e1.0');
    await api.append({ region: 'us', account: 'customer-777' }, [jobEvent(1)]);
    const { id, data } = await live.event();
    expect([id, JSON.parse(data).data.account]).toEqual(['e1.1', 'customer-777']);
    live.close();
    await api.append({ region: 'us', account: 'customer-78' }, [jobEvent(1)]);
    const again = await stream(api, path, { 'last-event-id': id });
    expect(JSON.parse((await again.event()).data).data.account).toBe('customer-78');
  });

  test('stops at once when its client disconnects', async () => {
    const api = await start();
    const live = await stream(api, path);
    await live.next();
    await until(() => api.growth.watches === 1, 'a stream');
    live.close();
    await until(() => api.growth.watches === 0, 'no stream');
    expect(api.errors).toEqual([]);
  });
});

describe('account status', () => {
  const path = '/v1/accounts/acme/status';

  test('describes the state of tracking', async () => {
    const api = await start();
    await api.append(ACME, jobEvents(2));
    expect((await api.json(path)).body).toEqual({
      state: 'baselining',
      lastPollAt: null,
      // At once.
      nextPollAt: '2026-11-21T12:00:00.000Z',
      pollMs: null,
      observedThrough: null,
      consecutiveFailures: 0,
      openJobs: null,
      unreadJobs: 0,
      truncatedJobs: 0,
      head: 'e1.2',
      problem: null,
      missingJobs: { pending: 0, suspected: 0, contradictory: 0 },
      quarantinedAt: null,
    });
    await api.table.write({
      update: keys.status(ACME),
      set: {
        state: 'failing',
        lastPollAt: NOW,
        lastGoodCrawlStartedAt: NOW - 1000,
        consecutiveFailures: 4,
        openJobs: 12,
        unreadJobs: 2,
        truncatedJobs: 3,
        problem: 'No answer.',
        unanswered: 3,
        suspected: 2,
        contradictory: 1,
        quarantinedAt: NOW - 2000,
      },
    });
    expect((await api.json(path)).body).toEqual({
      state: 'failing',
      lastPollAt: '2026-11-21T12:00:00.000Z',
      nextPollAt: '2026-11-21T12:00:00.000Z',
      pollMs: null,
      observedThrough: '2026-11-21T11:59:59.000Z',
      consecutiveFailures: 4,
      openJobs: 12,
      unreadJobs: 2,
      truncatedJobs: 3,
      head: 'e1.2',
      problem: 'No answer.',
      missingJobs: { pending: 3, suspected: 2, contradictory: 1 },
      quarantinedAt: '2026-11-21T11:59:58.000Z',
    });
  });

  test('is paused for a paused account', async () => {
    const api = await start();
    await api.register(ACME, 'e1', true);
    expect((await api.json(path)).body.state).toBe('paused');
  });
});

describe('confirmation by an operator', () => {
  const path = '/v1/accounts/acme/confirm';
  const confirm = (api: Api, body?: string | Buffer) => {
    const headers = { 'content-type': 'application/json' };
    return api.json(path, { method: 'POST', ...(body && { body, headers }) });
  };
  const set = (api: Api, attributes: Record<string, string | number>) =>
    api.table.write({ update: keys.status(ACME), set: attributes });

  test('ends a quarantine, with its event', async () => {
    const api = await start();
    await set(api, { state: 'quarantined', quarantinedAt: NOW, suspected: 20 });
    expect(await confirm(api)).toMatchObject({ status: 200, body: { confirmed: 'quarantined' } });
    expect((await api.json('/v1/accounts/acme/status')).body).toMatchObject({
      state: 'tracking',
      quarantinedAt: null,
    });
    const { body } = await api.json('/v1/accounts/acme/events');
    expect(body.events).toMatchObject([
      { type: 'account.resumed', data: { previousState: 'quarantined', by: 'operator' } },
    ]);
    expect(await confirm(api)).toMatchObject({
      status: 409,
      body: { type: 'urn:jobwire:problem:nothing-to-confirm' },
    });
  });

  test('of an identity mismatch can pin another account', async () => {
    const api = await start();
    await set(api, { state: 'identity_mismatch' });
    expect((await confirm(api, '{"upstreamId":4711}')).body).toEqual({ confirmed: 'identity_mismatch' });
    expect((await api.log.head(ACME))?.attributes.upstreamId).toBe(4711);
    expect((await api.table.get(keys.status(ACME)))?.duePk).toBeDefined();
  });

  test('keeps a paused account paused', async () => {
    const api = await start();
    await api.register(ACME, 'e1', true);
    await set(api, { state: 'identity_mismatch' });
    expect((await confirm(api)).status).toBe(200);
    expect((await api.table.get(keys.status(ACME)))?.duePk).toBeUndefined();
  });

  test.each([
    ['no JSON', '{', 400, 'must be JSON'],
    ['no UTF-8', Buffer.from('{"upstreamId":"\xe9"}', 'latin1'), 400, 'must be encoded in UTF-8'],
    ['no object', '[]', 400, 'must be a JSON object'],
    ['an unknown field', '{"upstream":1}', 400, 'upstream is not a known field. Known: upstreamId.'],
    ['no id', '{"upstreamId":"x"}', 400, 'upstreamId must be a positive integer'],
    ['too much', ' '.repeat(100_001), 413, 'no larger than 100000 bytes'],
  ])('%s is rejected with a message, and nothing changes', async (_, body, status, words) => {
    const api = await start();
    await set(api, { state: 'identity_mismatch' });
    const answer = await confirm(api, body);
    expect(answer.status).toBe(status);
    expect(answer.body.detail).toContain(words);
    expect((await api.table.get(keys.status(ACME)))?.state).toBe('identity_mismatch');
  });
});

eachTable('jobs', (makeTable) => {
  const path = '/v1/accounts/acme/jobs';
  const store = async (api: Api, ...snapshots: Snapshot[]) => {
    for (const snapshot of snapshots)
      await api.table.write(putSnapshot(ACME, snapshot) as Parameters<Table['write']>[0]);
  };
  const numbers = (body: { jobs: { jobNumber: number }[] }) => body.jobs.map(({ jobNumber }) => jobNumber);

  /** All pages of a list. */
  async function all(api: Api, query: string) {
    const got: number[] = [];
    const asOf = new Set<string>();
    let after = '';
    for (;;) {
      const { status, body } = await api.json(`${path}?${query}${after}`);
      expect(status).toBe(200);
      got.push(...numbers(body));
      asOf.add(body.asOf);
      if (body.next === null) return { got, asOf: [...asOf] };
      after = `&after=${body.next}`;
    }
  }

  test('are paged by number, each once, and all pages carry the cursor from before the first', async () => {
    const api = await start({ inner: await makeTable() });
    await api.append(ACME, jobEvents(3));
    await store(api, ...[5, 30, 200, 1000, 100_000].map((jobNumber) => createSnapshot({ jobNumber })));
    api.hooks.afterQuery = () => append(api.log, ACME, [jobEvent()]);
    const { got, asOf } = await all(api, 'limit=2');
    expect(got).toEqual([5, 30, 200, 1000, 100_000]);
    expect(asOf).toEqual(['e1.3']);
  });

  test('carry a cursor from before they were read: an event written meanwhile comes after it', async () => {
    const api = await start({ inner: await makeTable() });
    await store(api, createSnapshot());
    api.hooks.afterQuery = async () => {
      delete api.hooks.afterQuery;
      await append(api.log, ACME, [jobEvent()]);
    };
    const { body } = await api.json(path);
    expect(body.asOf).toBe('e1.0');
    expect(sequences((await api.json(`/v1/accounts/acme/events?after=${body.asOf}`)).body.events)).toEqual([
      1,
    ]);
  });

  test('have the fields of events, plus their outcome', async () => {
    const api = await start({ inner: await makeTable() });
    await api.table.write({ update: keys.status(ACME), set: { lastGoodCrawlStartedAt: NOW } });
    await store(
      api,
      createSnapshot({ jobNumber: 1 }),
      createSnapshot({ jobNumber: 2, departure: { tries: 1, suspected: null } }),
      createSnapshot({
        jobNumber: 3,
        ended: 'closed',
        settling: { since: NOW, fetches: 1 },
        detail,
        detailAt: NOW,
      }),
      createSnapshot({
        jobNumber: 4,
        list: null,
        detail,
        detailAt: NOW,
        settling: { since: NOW, fetches: 1 },
      }),
    );
    const { body } = await api.json(path);
    expect(
      body.jobs.map(({ phase, outcome, lastListedAt, status }) => [phase, outcome, lastListedAt, status]),
    ).toEqual([
      // Listed ones were observed in the last complete crawl, others when their snapshot says.
      ['listed', null, '2026-11-21T12:00:00.000Z', 'Proof'],
      ['departed', null, '2026-11-20T12:00:00.000Z', 'Proof'],
      ['settling', 'closed', '2026-11-20T12:00:00.000Z', 'Printing'],
      ['settling', null, null, 'Printing'],
    ]);
    expect(body.jobs[0]).toMatchObject(createJob({ jobNumber: 1 }));
  });

  test('are found by status, by order number and by due day', async () => {
    const api = await start({ inner: await makeTable() });
    await store(
      api,
      createSnapshot({ jobNumber: 1, list: { status: 'Proof', orderNumber: 'A', dateDue: '2026-11-25' } }),
      createSnapshot({
        jobNumber: 2,
        list: { status: 'Proof', orderNumber: 'A#1', dateDue: '2026-11-20T00:00:00' },
      }),
      createSnapshot({
        jobNumber: 3,
        list: { status: 'Proof & Press', orderNumber: 'A', dateDue: '2026-11-24' },
      }),
      createSnapshot({ jobNumber: 4, list: { status: 'Proof', orderNumber: 'AB', dateDue: null } }),
      createSnapshot({
        jobNumber: 5,
        list: { status: 'Press', orderNumber: null, dateDue: '2026-11-01', dateOut: '2026-11-01' },
        emitted: { dateOut: '2026-11-01', tracking: [], overdueFor: null },
      }),
      createSnapshot({
        jobNumber: 6,
        list: { status: 'Press', orderNumber: 'a', dateDue: '2026-11-01' },
        ended: 'closed',
        settling: { since: NOW, fetches: 0 },
      }),
    );
    for (const limit of [1, 100]) {
      expect((await all(api, `limit=${limit}&status=Proof`)).got).toEqual([2, 1, 4]);
      expect((await all(api, `limit=${limit}&status=${encodeURIComponent('Proof & Press')}`)).got).toEqual([
        3,
      ]);
      expect((await all(api, `limit=${limit}&status=proof`)).got).toEqual([]);
      expect((await all(api, `limit=${limit}&orderNumber=A`)).got).toEqual([1, 3]);
      expect((await all(api, `limit=${limit}&orderNumber=A%231`)).got).toEqual([2]);
      expect((await all(api, `limit=${limit}&dueBefore=2026-11-25`)).got).toEqual([2, 3]);
      expect((await all(api, `limit=${limit}&dueBefore=2026-11-26`)).got).toEqual([2, 3, 1]);
      expect((await all(api, `limit=${limit}&dueBefore=2026-11-20`)).got).toEqual([]);
      expect((await all(api, `limit=${limit}&dueBefore=9999-12-31`)).got).toEqual([2, 3, 1]);
    }
  });

  test('with the same first 200 characters of an order number are distinguished', async () => {
    const api = await start({ inner: await makeTable() });
    const long = 'x'.repeat(200);
    await store(
      api,
      createSnapshot({ jobNumber: 1, list: { orderNumber: `${long}1` } }),
      createSnapshot({ jobNumber: 2, list: { orderNumber: `${long}2` } }),
    );
    expect((await all(api, `limit=1&orderNumber=${long}2`)).got).toEqual([2]);
  });

  test('are not returned from an outdated index', async () => {
    const api = await start({ inner: await makeTable() });
    await store(api, createSnapshot({ jobNumber: 1 }), createSnapshot({ jobNumber: 2 }));
    api.hooks.afterQuery = async (index) => {
      if (index === 'jobsByStatus')
        await store(api, createSnapshot({ jobNumber: 1, list: { status: 'Press' } }));
    };
    expect((await all(api, 'status=Proof')).got).toEqual([2]);
  });

  test('are paged with the initial filter', async () => {
    const api = await start({ inner: await makeTable() });
    await store(api, createSnapshot({ jobNumber: 1 }), createSnapshot({ jobNumber: 2 }));
    const { body } = await api.json(`${path}?limit=1&status=Proof`);
    for (const filter of ['', '&status=Press', '&orderNumber=Proof', '&status=Proof&sort=-dateDue']) {
      const refused = await api.json(`${path}?limit=1${filter}&after=${body.next}`);
      expect([refused.status, refused.body.field]).toEqual([400, 'after']);
    }
    expect(numbers((await api.json(`${path}?limit=1&status=Proof&after=${body.next}`)).body)).toEqual([2]);
  });

  test('cannot be paged further after a new epoch: their cursor would be invalid', async () => {
    const api = await start({ inner: await makeTable() });
    await store(api, createSnapshot({ jobNumber: 1 }), createSnapshot({ jobNumber: 2 }));
    const { body } = await api.json(`${path}?limit=1`);
    await api.table.write({ update: keys.head(ACME), set: { epoch: 'e7' } });
    expect((await api.json(`${path}?limit=1&after=${body.next}`)).status).toBe(410);
  });

  test('read one by one have the fields of their detail, once it was fetched', async () => {
    const api = await start({ inner: await makeTable(), now: () => NOW });
    await api.append(ACME, jobEvents(2));
    await store(
      api,
      createSnapshot({ jobNumber: 1 }),
      createSnapshot({ jobNumber: 2, detail, detailAt: NOW }),
    );
    expect((await api.json(`${path}/1`)).body).toEqual({
      job: {
        ...createJob({ jobNumber: 1 }),
        phase: 'listed',
        outcome: null,
        late: false,
        lastListedAt: '2026-11-20T12:00:00.000Z',
        detailAt: null,
        lines: null,
        invoiceNumber: null,
        timezone: null,
        ...{ dueAt: '2026-11-26T12:00:00.000Z', hoursLate: null, inStatus: null, blockingLine: null },
        risk: 'unknown',
        forecast: { hoursLeft: 120, remaining: null, unknown: 'entry-not-observed', flaggedAt: null },
      },
      asOf: 'e1.2',
    });
    expect((await api.json(`${path}/2`)).body.job).toMatchObject({
      status: 'Proof',
      detailAt: '2026-11-21T12:00:00.000Z',
      lines: [{ jobLineId: 1, status: 'Cutting' }],
      invoiceNumber: 'INV-9',
      timezone: 'America/Denver',
    });
    expect((await api.json(`/v1/accounts/kiwi/jobs/1`)).status).toBe(404);
  });
});
