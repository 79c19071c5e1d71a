import { randomBytes, randomUUID } from 'node:crypto';
import { createServer, type IncomingHttpHeaders, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { SubscribeCommand } from '@aws-sdk/client-sns';
import { CreateQueueCommand, GetQueueAttributesCommand, ReceiveMessageCommand } from '@aws-sdk/client-sqs';
import { CloudEvent } from 'cloudevents';
import fc from 'fast-check';
import { Webhook } from 'standardwebhooks';
import { afterEach, describe, expect, test } from 'vitest';
import { startFauxqs } from '../local/embedded.ts';
import type { EventDraft } from '../shared/events/event.ts';
import { createEventLog, type LoggedEvent } from '../shared/log/log.ts';
import { type DrainDeps, drainSink } from '../shared/sinks/drain.ts';
import { isPublic, refuseUrl } from '../shared/sinks/outbound.ts';
import {
  type DeliveryOutcome,
  dueSinks,
  leftoverWakes,
  listSinks,
  registerSink,
  type SinkPort,
  type SinkRecord,
  wakeSinks,
} from '../shared/sinks/sink.ts';
import { createSnsSink } from '../shared/sinks/sns.ts';
import { createWebhookSink, judge } from '../shared/sinks/webhook.ts';
import { createMemoryTable } from '../shared/table/memory-table.ts';
import { type AccountRef, keys } from '../shared/table/schema.ts';
import type { Table } from '../shared/table/table.ts';

const REGION = 'us';
const open: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of open.splice(0).reverse()) await close();
});

/** An event about a job; the status tells one from another. */
function moved(jobNumber: number, to: string): EventDraft {
  return {
    type: 'job.status_changed',
    jobNumber,
    time: Date.parse('2026-03-02T08:00:00Z'),
    data: {
      job: {
        jobNumber,
        status: to,
        description: '<b>"x"</b>',
        orderNumber: null,
        orderGroup: `G${jobNumber}`,
        orderGroupSequence: null,
        originCode: null,
        dateDue: null,
        mustDate: null,
        dateOut: null,
        tracking: [],
      },
      observed: { at: '2026-03-02T08:00:00.000Z', since: null, view: 'list' },
      changes: { status: { from: null, to } },
    },
  };
}

/** Logs, a sink that does as the test says, and a clock. */
async function bench(
  answer: (event: LoggedEvent, attempt: number) => DeliveryOutcome | Promise<DeliveryOutcome>,
  options: { accounts?: string[]; maxBatch?: number; table?: Table; record?: Partial<SinkRecord> } = {},
) {
  const state = { now: Date.parse('2026-03-02T08:00:00Z') };
  const table = options.table ?? createMemoryTable();
  const now = () => state.now;
  const log = createEventLog(table, { now, newId: randomUUID, schemaBaseUrl: 'https://jobwire.example' });
  const refs = (options.accounts ?? ['acme']).map((account): AccountRef => ({ region: REGION, account }));
  for (const ref of refs) await table.transact([log.start(ref, 'e1')], randomUUID());
  const record: SinkRecord = {
    region: REGION,
    id: 'erp',
    kind: 'webhook',
    target: 'http://127.0.0.1/',
    accounts: [],
    types: [],
    paused: false,
    ...options.record,
  };
  await registerSink(table, log, record, refs);
  const got: LoggedEvent[] = [];
  const attempts = new Map<string, number>();
  const batches: LoggedEvent[][] = [];
  const port: SinkPort = {
    maxBatch: options.maxBatch ?? 1,
    async deliver(events) {
      batches.push([...events]);
      return Promise.all(
        events.map(async (event) => {
          const attempt = (attempts.get(event.id) ?? 0) + 1;
          attempts.set(event.id, attempt);
          const outcome = await answer(event, attempt);
          if (outcome.kind === 'delivered') got.push(event);
          return outcome;
        }),
      );
    },
  };
  const deps: DrainDeps = {
    table,
    log,
    now,
    newId: randomUUID,
    random: () => 0.5,
    retrySeconds: [5, 300, 1800],
    open: async () => port,
  };
  return {
    state,
    table,
    log,
    refs,
    got,
    batches,
    deps,
    /** Appends events and wakes the sinks, as the stream does. */
    async say(events: EventDraft[], ref: AccountRef | undefined = refs[0]) {
      if (!ref) throw new Error('There is no account.');
      const appended = await log.append(ref, events);
      if (appended.kind !== 'appended') throw new Error('The events were refused.');
      return wakeSinks(table, ref, appended.head.sequence, state.now);
    },
    async drain(deadline = state.now + 60_000) {
      state.now += 1;
      return drainSink(deps, REGION, 'erp', deadline);
    },
    async position(account = 'acme') {
      const item = await table.get(keys.cursor(REGION, 'erp', account));
      return { position: item?.position, due: item?.dueSk !== undefined };
    },
  };
}

const delivered = (): DeliveryOutcome => ({ kind: 'delivered' });

/** Whether what arrived is in order of sequence within each job. */
function inOrderPerJob(events: readonly LoggedEvent[]): boolean {
  const last = new Map<string, number>();
  return events.every((event) => {
    const lane = `${event.account}/${event.jobNumber}`;
    const ordered = event.sequence > (last.get(lane) ?? 0);
    last.set(lane, event.sequence);
    return ordered;
  });
}

describe('cursor engine', () => {
  test('every event arrives, those of one job in order, and the cursor ends at the head, no longer due', async () => {
    const rig = await bench(async (event) => {
      // Answers come back in another order than they were asked for.
      for (let turn = 0; turn < (event.sequence * 7) % 5; turn += 1) await Promise.resolve();
      return { kind: 'delivered' };
    });
    const events = Array.from({ length: 450 }, (_, at) => moved(1 + (at % 7), `s${at}`));
    for (let at = 0; at < events.length; at += 90) await rig.say(events.slice(at, at + 90));
    expect(await rig.drain()).toMatchObject({ outcome: 'drained', delivered: 450, failed: 0 });
    expect(rig.got.map(({ sequence }) => sequence).sort((a, b) => a - b)).toEqual(
      Array.from({ length: 450 }, (_, at) => at + 1),
    );
    expect(inOrderPerJob(rig.got)).toBe(true);
    expect(await rig.position()).toEqual({ position: 450, due: false });
    expect(await rig.drain()).toMatchObject({ outcome: 'drained', delivered: 0 });
  });

  test('at most 16 events are under way at once, never two of one job', async () => {
    let most = 0;
    const underWay = new Set<string>();
    const rig = await bench(async (event) => {
      const lane = String(event.jobNumber);
      expect(underWay.has(lane)).toBe(false);
      underWay.add(lane);
      most = Math.max(most, underWay.size);
      for (let turn = 0; turn < 10; turn += 1) await Promise.resolve();
      underWay.delete(lane);
      return { kind: 'delivered' };
    });
    await rig.say(Array.from({ length: 90 }, (_, at) => moved(1 + (at % 30), `s${at}`)));
    await rig.drain();
    expect(most).toBe(16);
  });

  test('a batch holds at most one event per job', async () => {
    const rig = await bench(delivered, { maxBatch: 10 });
    await rig.say(Array.from({ length: 60 }, (_, at) => moved(1 + (at % 12), `s${at}`)));
    await rig.drain();
    expect(rig.got).toHaveLength(60);
    expect(Math.max(...rig.batches.map((batch) => batch.length))).toBe(10);
    for (const batch of rig.batches) {
      expect(new Set(batch.map(({ jobNumber }) => jobNumber)).size).toBe(batch.length);
    }
  });

  test('when the sink fails it waits, loses nothing, and goes on where it stood with one probe before full speed', async () => {
    let down = true;
    let underWay = 0;
    let most = 0;
    const rig = await bench(async (event) => {
      underWay += 1;
      most = Math.max(most, underWay);
      for (let turn = 0; turn < 5; turn += 1) await Promise.resolve();
      underWay -= 1;
      return down && event.sequence >= 5 ? { kind: 'retry', reason: 'down' } : { kind: 'delivered' };
    });
    await rig.say(Array.from({ length: 40 }, (_, at) => moved(at, 'x')));
    expect(await rig.drain()).toMatchObject({
      outcome: 'waiting',
      delivered: 4,
      waitUntil: rig.state.now + 5_000,
    });
    expect(await rig.position()).toEqual({ position: 4, due: true });

    expect(await rig.drain(), 'before its time').toMatchObject({ outcome: 'busy' });
    rig.state.now += 5_000;
    most = 0;
    const probe = await rig.drain();
    expect(probe).toMatchObject({ outcome: 'waiting', delivered: 0, failed: 1 });
    expect(most, 'one probe').toBe(1);
    expect(probe.waitUntil, 'the second wait of the schedule').toBe(rig.state.now + 300_000);

    down = false;
    rig.state.now += 300_000;
    expect(await dueSinks(rig.table, REGION, rig.state.now)).toEqual(['erp']);
    most = 0;
    expect(await rig.drain()).toMatchObject({ outcome: 'drained', delivered: 36 });
    expect(most, 'full speed after the probe').toBe(16);
    expect(inOrderPerJob(rig.got)).toBe(true);
    const [sink] = await listSinks(rig.table, REGION);
    expect(sink?.health).toEqual({ failures: 0, waitUntil: 0, problem: null });
  });

  test('a Retry-After longer than the schedule is honoured, one of years is not', async () => {
    let afterMs = 60_000;
    const rig = await bench(() => ({ kind: 'retry', reason: 'busy', afterMs }));
    await rig.say([moved(1, 'x')]);
    expect((await rig.drain()).waitUntil).toBe(rig.state.now + 60_000);
    afterMs = 1e12;
    rig.state.now += 60_000;
    expect((await rig.drain()).waitUntil).toBe(rig.state.now + 86_400_000);
  });

  test('a refused event is never skipped: the sink waits', async () => {
    const rig = await bench((event) =>
      event.sequence === 2
        ? { kind: 'rejected', reason: 'The endpoint answered 422.' }
        : { kind: 'delivered' },
    );
    await rig.say([moved(1, 'a'), moved(2, 'b'), moved(2, 'c')]);
    expect(await rig.drain()).toMatchObject({ outcome: 'waiting', problem: 'The endpoint answered 422.' });
    expect(await rig.position()).toEqual({ position: 1, due: true });
    expect(rig.got.map(({ sequence }) => sequence)).not.toContain(3);
  });

  test('types and accounts that a sink does not follow are passed over, and its cursor still reaches the head', async () => {
    const rig = await bench(delivered, {
      accounts: ['acme', 'other'],
      record: { accounts: ['acme'], types: ['job.disp*', 'account.baselined'] },
    });
    await rig.say([moved(1, 'a'), { type: 'account.baselined', time: 0, data: { openJobs: 1 } }]);
    expect(await rig.say([moved(1, 'a')], rig.refs[1])).toEqual([]);
    expect(await rig.drain()).toMatchObject({ delivered: 1, skipped: 1 });
    expect(await rig.position()).toEqual({ position: 2, due: false });
    expect(await rig.table.get(keys.cursor(REGION, 'erp', 'other'))).toBeUndefined();
  });

  test('a new sink starts at the head of known accounts, and at the beginning of later ones', async () => {
    const rig = await bench(delivered);
    await rig.say([moved(1, 'a'), moved(1, 'b')]);
    const late: SinkRecord = {
      region: REGION,
      id: 'late',
      kind: 'webhook',
      target: 'http://127.0.0.1/',
      accounts: [],
      types: [],
      paused: false,
    };
    await registerSink(rig.table, rig.log, late, rig.refs);
    const newcomer = { region: REGION, account: 'newcomer' };
    await rig.table.transact([rig.log.start(newcomer, 'e1')], randomUUID());
    await rig.say([moved(9, 'first')], newcomer);
    await rig.say([moved(1, 'c')]);
    rig.state.now += 1;
    await drainSink(rig.deps, REGION, 'late', rig.state.now + 60_000);
    expect(rig.got.map(({ id }) => id).sort()).toEqual(['acme.e1.3', 'newcomer.e1.1']);
  });

  test('a paused sink gets nothing and keeps its place', async () => {
    const rig = await bench(delivered);
    await rig.table.write({ update: keys.sink(REGION, 'erp'), set: { paused: true } });
    expect(await rig.say([moved(1, 'a')])).toEqual([]);
    expect(await rig.drain()).toMatchObject({ outcome: 'busy' });
    await rig.table.write({ update: keys.sink(REGION, 'erp'), set: { paused: false } });
    expect(await rig.drain()).toMatchObject({ outcome: 'drained', delivered: 1 });
  });

  test('while one drain holds the lease another does nothing; a lease that ran out is taken over', async () => {
    let release: (() => void) | undefined;
    const rig = await bench(
      () =>
        new Promise((resolve) => {
          release = () => resolve({ kind: 'delivered' });
        }),
    );
    await rig.say([moved(1, 'a')]);
    const first = rig.drain();
    while (!release) await Promise.resolve();
    const finishFirst = release;
    expect(await rig.drain()).toMatchObject({ outcome: 'busy' });

    rig.state.now += 90_000;
    release = undefined;
    const second = rig.drain();
    while (!release) await Promise.resolve();
    (release as () => void)();
    expect(await second).toMatchObject({ outcome: 'drained', delivered: 1 });
    const fence = async () => (await rig.table.get(keys.cursor(REGION, 'erp', 'acme')))?.fence;
    const fenceOfSecond = await fence();
    await rig.say([moved(1, 'b')]);
    // The first wakes up with a lease that is no longer its own: it must not touch what the second has done.
    finishFirst();
    await first;
    expect(await rig.position()).toEqual({ position: 1, due: true });
    expect(await fence()).toBe(fenceOfSecond);
  });

  test('a drain stops before its time is up and leaves the rest due', async () => {
    const rig = await bench(() => {
      rig.state.now += 1_000;
      return { kind: 'delivered' };
    });
    for (let at = 0; at < 5; at += 1) {
      await rig.say(Array.from({ length: 80 }, (_, n) => moved(1, `${at}-${n}`)));
    }
    const report = await rig.drain(rig.state.now + 10_000);
    expect(report.outcome).toBe('more');
    expect(report.delivered).toBeLessThan(20);
    expect(await rig.position()).toEqual({ position: report.delivered, due: true });
    while ((await rig.drain()).outcome === 'more');
    expect(rig.got.map(({ sequence }) => sequence)).toEqual(Array.from({ length: 400 }, (_, at) => at + 1));
  });

  test('an account with a long backlog does not keep others waiting', async () => {
    const rig = await bench(delivered, { accounts: ['hot', 'calm'] });
    for (let at = 0; at < 10; at += 1) {
      await rig.say(
        Array.from({ length: 90 }, (_, n) => moved(n % 3, `${at}-${n}`)),
        rig.refs[0],
      );
    }
    await rig.say([moved(1, 'calm')], rig.refs[1]);
    await rig.drain();
    expect(rig.got.findIndex(({ account }) => account === 'calm')).toBeLessThan(40);
    expect(rig.got).toHaveLength(901);
  });

  test('a wake-up that is lost is made good by the next tick, one that comes twice does nothing', async () => {
    const rig = await bench(delivered);
    const [ref] = rig.refs;
    if (!ref) throw new Error('There is no account.');
    await rig.log.append(ref, [moved(1, 'a')]);
    const [left] = await leftoverWakes(rig.table, REGION, 10);
    expect(left).toEqual({ ref, sequence: 1 });
    await wakeSinks(rig.table, ref, 1, rig.state.now);
    await wakeSinks(rig.table, ref, 1, rig.state.now);
    expect(await leftoverWakes(rig.table, REGION, 10)).toEqual([]);
    await rig.drain();
    await wakeSinks(rig.table, ref, 1, rig.state.now);
    expect(await rig.position()).toEqual({ position: 1, due: false });
    expect(rig.got).toHaveLength(1);
  });

  test('a wake mark for events that came later is not deleted by an earlier wake-up', async () => {
    const rig = await bench(delivered);
    const [ref] = rig.refs;
    if (!ref) throw new Error('There is no account.');
    await rig.log.append(ref, [moved(1, 'a')]);
    await rig.log.append(ref, [moved(1, 'b')]);
    await wakeSinks(rig.table, ref, 1, rig.state.now);
    expect(await leftoverWakes(rig.table, REGION, 10)).toEqual([{ ref, sequence: 2 }]);
  });

  test('events that come while a window is delivered are delivered in the same drain', async () => {
    let said = false;
    const rig = await bench(async () => {
      if (!said) {
        said = true;
        await rig.say([moved(2, 'meanwhile')]);
      }
      return { kind: 'delivered' };
    });
    await rig.say([moved(1, 'a')]);
    expect(await rig.drain()).toMatchObject({ outcome: 'drained', delivered: 2 });
    expect(await rig.position()).toEqual({ position: 2, due: false });
  });

  test('what fell out of retention is passed over, the rest is delivered', async () => {
    const rig = await bench(delivered);
    await rig.say([moved(1, 'old')]);
    rig.state.now += 91 * 86_400_000;
    await rig.say([moved(1, 'new')]);
    await rig.drain();
    expect(rig.got.map(({ sequence }) => sequence)).toEqual([2]);
  });

  test('whatever the sink answers, and wherever a drain crashes: every event arrives, in order per job, the cursor never ahead', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.array(fc.integer({ min: 1, max: 5 }), { minLength: 1, maxLength: 60 }),
        fc.array(fc.constantFrom('ok', 'ok', 'ok', 'retry', 'rejected', 'throw'), { maxLength: 40 }),
        fc.array(fc.integer({ min: 1, max: 40 }), { maxLength: 6 }),
        async (jobs, answers, crashes) => {
          const memory = createMemoryTable();
          let writesLeft = Number.POSITIVE_INFINITY;
          const table: Table = {
            ...memory,
            async write(write) {
              writesLeft -= 1;
              if (writesLeft < 0) throw new Error('crash');
              return memory.write(write);
            },
          };
          let asked = 0;
          const rig = await bench(
            () => {
              const answer = answers[asked++] ?? 'ok';
              if (answer === 'throw') throw new Error('receiver');
              return answer === 'ok' ? { kind: 'delivered' } : { kind: answer as 'retry', reason: answer };
            },
            { table },
          );
          for (let at = 0; at < jobs.length; at += 20) {
            await rig.say(jobs.slice(at, at + 20).map((job, n) => moved(job, `${at + n}`)));
          }
          for (const crash of crashes) {
            writesLeft = crash;
            await rig.drain().catch(() => undefined);
            writesLeft = Number.POSITIVE_INFINITY;
            const position = Number((await rig.position()).position);
            const arrived = new Set(rig.got.map(({ sequence }) => sequence));
            for (let sequence = 1; sequence <= position; sequence += 1)
              expect(arrived.has(sequence)).toBe(true);
            rig.state.now += 2_000_000;
          }
          for (let round = 0; round < 50 && (await rig.position()).position !== jobs.length; round += 1) {
            await rig.drain();
            rig.state.now += 2_000_000;
          }
          expect(await rig.position()).toEqual({ position: jobs.length, due: false });
          const first = rig.got.filter((event, at) => rig.got.findIndex(({ id }) => id === event.id) === at);
          expect(first).toHaveLength(jobs.length);
          expect(inOrderPerJob(first)).toBe(true);
        },
      ),
      { numRuns: 150 },
    );
  });
});

interface Request {
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** A receiver on loopback that answers as told. */
async function receiver(
  answer: (request: Request, at: number) => { status: number; headers?: Record<string, string> },
) {
  const requests: Request[] = [];
  const server: Server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const seen = { headers: request.headers, body: Buffer.concat(chunks).toString() };
      const { status, headers } = answer(seen, requests.push(seen));
      response.writeHead(status, headers).end('a body of some length');
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  open.push(() => {
    server.closeAllConnections();
    return new Promise((resolve) => server.close(resolve));
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`, requests };
}

const newSecret = () => `whsec_${randomBytes(32).toString('base64')}`;

async function someEvents(count: number): Promise<LoggedEvent[]> {
  const rig = await bench(delivered);
  await rig.say(Array.from({ length: count }, (_, at) => moved(at + 1, `s${at}`)));
  const page = await rig.log.read({ region: REGION, account: 'acme' }, 0, count);
  if (page?.kind !== 'events') throw new Error('There are no events.');
  return [...page.events];
}

describe('webhook sink', () => {
  test('each request is signed as Standard Webhooks has it, with every secret, over the bytes of the envelope', async () => {
    const { url, requests } = await receiver(() => ({ status: 204 }));
    const secrets = [newSecret(), newSecret()];
    const sink = createWebhookSink({ url, secrets, allowPrivateNetworks: true, now: Date.now });
    const [event] = await someEvents(1);
    if (!event) throw new Error('There is no event.');
    expect(await sink.deliver([event])).toEqual([{ kind: 'delivered' }]);
    const [request] = requests;
    if (!request) throw new Error('Nothing was received.');
    for (const secret of secrets) {
      expect(() =>
        new Webhook(secret).verify(request.body, request.headers as Record<string, string>),
      ).not.toThrow();
    }
    expect(() =>
      new Webhook(newSecret()).verify(request.body, request.headers as Record<string, string>),
    ).toThrow('No matching signature');
    expect(request.headers['webhook-id']).toBe('acme.e1.1');
    expect(request.headers['content-type']).toMatch(/^application\/cloudevents\+json/);
    expect(request.body).toBe(event.json);
  });

  test('the envelope is CloudEvents 1.0 in structured JSON', async () => {
    const [event] = await someEvents(1);
    const raw = JSON.parse(event?.json ?? '');
    expect(raw).toMatchObject({
      specversion: '1.0',
      id: 'acme.e1.1',
      source: '/regions/us/accounts/acme',
      type: 'job.status_changed',
      subject: 'jobs/1',
      time: '2026-03-02T08:00:00.000Z',
      sequence: '00000000000000000001',
      dataschema: 'https://jobwire.example/v1/event-types/job.status_changed/schema',
      datacontenttype: 'application/json',
    });
    expect(new CloudEvent(raw).validate()).toBe(true);
  });

  test.each([
    [200, 'delivered'],
    [204, 'delivered'],
    [301, 'retry'],
    [308, 'retry'],
    [400, 'rejected'],
    [401, 'retry'],
    [403, 'retry'],
    [404, 'retry'],
    [405, 'retry'],
    [408, 'retry'],
    [422, 'rejected'],
    [425, 'retry'],
    [429, 'retry'],
    [500, 'retry'],
    [503, 'retry'],
  ])('%i means %s', (status, kind) => {
    expect(judge(status, undefined, 0).kind).toBe(kind);
  });

  test('Retry-After is read as seconds and as a date', () => {
    const now = Date.parse('2026-03-02T08:00:00Z');
    expect(judge(429, '120', now)).toMatchObject({ afterMs: 120_000 });
    expect(judge(503, 'Mon, 02 Mar 2026 08:01:00 GMT', now)).toMatchObject({ afterMs: 60_000 });
    expect(judge(503, 'soon', now)).not.toHaveProperty('afterMs');
  });

  test('a redirect is not followed', async () => {
    const { url, requests } = await receiver(() => ({ status: 302, headers: { location: '/elsewhere' } }));
    const sink = createWebhookSink({
      url,
      secrets: [newSecret()],
      allowPrivateNetworks: true,
      now: Date.now,
    });
    expect(await sink.deliver(await someEvents(1))).toMatchObject([{ kind: 'retry' }]);
    expect(requests).toHaveLength(1);
  });

  test('a receiver that resets or is gone is waited for, and the reason never shows the URL', async () => {
    const server = createServer((request) => request.socket.destroy());
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    const url = `http://127.0.0.1:${port}/key-in-the-path`;
    const sink = createWebhookSink({
      url,
      secrets: [newSecret()],
      allowPrivateNetworks: true,
      now: Date.now,
    });
    const reset = await sink.deliver(await someEvents(1));
    await new Promise((resolve) => server.close(resolve));
    const gone = await sink.deliver(await someEvents(1));
    expect([...reset, ...gone].map(({ kind }) => kind)).toEqual(['retry', 'retry']);
    expect(JSON.stringify([reset, gone])).not.toContain('key-in-the-path');
    expect(gone).toMatchObject([{ reason: 'The endpoint could not be reached (ECONNREFUSED).' }]);
  });

  test('a receiver that never answers is given up after the time-out', async () => {
    const server = createServer(() => undefined);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    open.push(() => {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(resolve));
    });
    const { port } = server.address() as AddressInfo;
    const sink = createWebhookSink({
      url: `http://127.0.0.1:${port}/`,
      secrets: [newSecret()],
      allowPrivateNetworks: true,
      now: Date.now,
      timeoutMs: 50,
    });
    expect(await sink.deliver(await someEvents(1))).toEqual([
      { kind: 'retry', reason: 'The endpoint did not answer in time.' },
    ]);
  });

  test('private addresses are refused, as literals in any spelling and behind names, before anything is sent', async () => {
    const { url, requests } = await receiver(() => ({ status: 204 }));
    const { port } = new URL(url);
    const events = await someEvents(1);
    for (const address of [`https://127.0.0.1:${port}/`, `https://localhost:${port}/`]) {
      const sink = createWebhookSink({
        url: address,
        secrets: [newSecret()],
        allowPrivateNetworks: false,
        now: Date.now,
      });
      expect(await sink.deliver(events)).toMatchObject([{ kind: 'retry' }]);
    }
    expect(requests).toHaveLength(0);
    for (const host of [
      '2130706433',
      '0x7f.1',
      '0177.0.0.1',
      '[::1]',
      '[::ffff:10.0.0.1]',
      '169.254.169.254',
      '10.1.2.3',
    ]) {
      expect(refuseUrl(`https://${host}/`, false), host).toMatch(/not a public address/);
    }
    expect(refuseUrl('http://example.com/', false)).toBe('It must begin with https://.');
    expect(refuseUrl('https://example.com/', false)).toBeUndefined();
    expect(isPublic('8.8.8.8')).toBe(true);
  });
});

describe('SNS sink', () => {
  test('a subscribed FIFO queue gets each event once, in order per job, with attributes to filter by', async () => {
    const queues = await startFauxqs({});
    open.push(() => queues.stop());
    const topic = await queues.ensureTopic('jobwire-test.fifo');
    const sqs = queues.sqs();
    const sns = queues.sns();
    const { QueueUrl } = await sqs.send(
      new CreateQueueCommand({ QueueName: 'jobs.fifo', Attributes: { FifoQueue: 'true' } }),
    );
    const { Attributes } = await sqs.send(
      new GetQueueAttributesCommand({ QueueUrl, AttributeNames: ['QueueArn'] }),
    );
    await sns.send(
      new SubscribeCommand({
        TopicArn: topic,
        Protocol: 'sqs',
        Endpoint: Attributes?.QueueArn,
        Attributes: { RawMessageDelivery: 'true' },
      }),
    );
    const sink = createSnsSink(sns, topic);
    const events = await someEvents(10);
    expect(await sink.deliver(events)).toEqual(events.map(() => ({ kind: 'delivered' })));
    // Published again, as after a crash: the topic knows their ids.
    await sink.deliver(events);
    const messages = [];
    for (;;) {
      const { Messages = [] } = await sqs.send(
        new ReceiveMessageCommand({
          QueueUrl,
          MaxNumberOfMessages: 10,
          WaitTimeSeconds: 0,
          MessageAttributeNames: ['All'],
          MessageSystemAttributeNames: ['MessageGroupId', 'MessageDeduplicationId'],
        }),
      );
      if (Messages.length === 0) break;
      messages.push(...Messages);
    }
    expect(messages.map(({ Body }) => Body).sort()).toEqual(events.map(({ json }) => json).sort());
    const first = messages.find(({ Body }) => Body === events[0]?.json);
    expect(first?.Attributes).toMatchObject({
      MessageGroupId: 'acme/1',
      MessageDeduplicationId: 'acme.e1.1',
    });
    const attributes = Object.entries(first?.MessageAttributes ?? {}).map(([name, { StringValue }]) => [
      name,
      StringValue,
    ]);
    expect(Object.fromEntries(attributes)).toEqual({
      type: 'job.status_changed',
      accountId: 'acme',
      region: 'us',
      jobNumber: '1',
      orderGroup: 'G1',
    });
  });

  test('a topic that is not there is waited for', async () => {
    const queues = await startFauxqs({});
    open.push(() => queues.stop());
    const topic = await queues.ensureTopic('jobwire-test.fifo');
    const sink = createSnsSink(queues.sns(), topic.replace('jobwire-test', 'nothing'));
    const rig = await bench(delivered);
    await rig.say([moved(1, 'a')]);
    const report = await drainSink(
      { ...rig.deps, open: async () => sink },
      REGION,
      'erp',
      rig.state.now + 60_000,
    );
    expect(report).toMatchObject({ outcome: 'waiting', delivered: 0 });
    expect(await rig.position()).toEqual({ position: 0, due: true });
  });
});
