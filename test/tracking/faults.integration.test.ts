/**
 * Overlapping polls, late polls, and failing calls: no change is lost, and none is emitted twice.
 * One file: its tests share the interrupted table and the check for one sequence.
 */
import { randomUUID } from 'node:crypto';
import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import pLimit from 'p-limit';
import { describe, expect, inject, test } from 'vitest';
import type { EventDraft, JobEvent } from '../../shared/events/event.ts';
import { createEventLog } from '../../shared/log/log.ts';
import { createDynamoTable } from '../../shared/storage/dynamo-table.ts';
import { keys } from '../../shared/storage/schema.ts';
import { createMemoryTable } from '../../shared/storage/sqlite-table.ts';
import { type Item, TableError } from '../../shared/storage/table.ts';
import { JobIndex } from '../../shared/tracking/job-index.ts';
import { pollAccount } from '../../shared/tracking/poll.ts';
import { toSnapshot } from '../../shared/tracking/snapshot.ts';
import { sized } from '../support/runs.ts';
import {
  awsError,
  cancelledFor,
  startFaultyWire,
  testDynamo,
  type WireCall,
  type WireFault,
} from '../support/tables.ts';
import { createRig, type Rig, START, watchedTable } from '../support/tracker.ts';

/** Upstream changes after the baseline, one of every kind of write. */
function live(rig: Rig, jobs: readonly number[]): void {
  const [moving = 0, dispatched = 0, closed = 0] = jobs;
  rig.upstream.setStatus(moving, 'Vulcanising');
  rig.upstream.dispatch(dispatched, { tracking: [{ trackingNumber: 'T1', trackingLink: null }] });
  rig.upstream.dispatch(closed);
  rig.upstream.close(closed);
  rig.upstream.createJob({ description: 'new' });
}

/** Every event as its type and job, sorted, so that the order between jobs does not matter. */
async function said(rig: Rig): Promise<string[]> {
  return (await rig.fresh()).map(({ type, subject }) => `${type} ${subject ?? ''}`.trim()).sort();
}

async function sequences(rig: Rig): Promise<number[]> {
  const page = await rig.log.read(rig.ref, 0, 500);
  return page?.kind === 'events' ? page.events.map(({ sequence }) => sequence) : [];
}

describe('a poll that crashes', () => {
  const writes = (call: string): boolean => call === 'write' || call === 'transact';

  async function story(dies: { readonly at: number; readonly when: 'before' | 'after' } | undefined) {
    let counting = false;
    let written = 0;
    const die = (when: 'before' | 'after') => (call: { call: string }) => {
      if (!counting || !writes(call.call)) return;
      if (when === 'before') written += 1;
      if (dies?.when === when && written === dies.at) throw new Error('killed');
    };
    const table = watchedTable(createMemoryTable(), { before: die('before'), after: die('after') });
    const rig = await createRig({ table });
    const jobs = Array.from({ length: 6 }, () => rig.upstream.createJob({ status: 'Scheduled' }));
    counting = true;
    const killed: unknown[] = [];
    const poll = () => rig.poll().catch((cause: unknown) => killed.push(cause));
    for (let at = 0; at < 3; at += 1) await poll();
    live(rig, jobs);
    for (let at = 0; at < 4; at += 1) await poll();
    return { said: await said(rig), sequences: await sequences(rig), written, killed: killed.length };
  }

  test('at any of its writes, before or after it: the next polls emit the same events', async () => {
    const whole = await story(undefined);
    expect(whole.killed).toBe(0);
    expect(whole.said.filter((event) => event.startsWith('job.dispatched'))).toHaveLength(2);
    expect(whole.written).toBeGreaterThan(8);
    for (let at = 1; at <= whole.written; at += 1) {
      for (const when of ['before', 'after'] as const) {
        const cut = await story({ at, when });
        expect(cut.killed, `${when} write ${at}`).toBe(1);
        expect(cut.said, `${when} write ${at}`).toEqual(whole.said);
        expect(cut.sequences).toEqual(cut.sequences.map((_, n) => n + 1));
      }
    }
  });
});

describe('a failing call to DynamoDB', () => {
  /** Concurrent writers of the same table. */
  interface Others {
    /** Another complete poll of the account. */
    poll(): Promise<unknown>;
    /** An operator's event, which needs no fence. */
    append(): Promise<unknown>;
  }
  /** Faults of a call: a network error, or a concurrent write before it arrives. */
  type Mishap = (call: WireCall, others: Others) => WireFault | Promise<unknown>;

  interface Told {
    readonly calls: readonly WireCall[];
    /** How the polls ended: their outcome, or that the table gave up. */
    readonly outcomes: readonly string[];
    /** Everything in the table but the random ids of polls and tokens. */
    readonly items: readonly Item[];
  }

  /** Options of a story. */
  interface Way {
    /** Attempts of the client per call: one means that every error reaches the poll. */
    readonly attempts: number;
    /** Polls that repair a failed one: one before the changes, and one after. */
    readonly spare: 0 | 1;
    readonly timeoutMs?: number;
  }
  /** No single error reaches a poll, as in production. */
  const PATIENT: Way = { attempts: 3, spare: 0 };
  /** Every error reaches a poll. */
  const FRAIL: Way = { attempts: 1, spare: 1 };

  /** Time of the upstream changes: the baseline is complete before, and nothing changes after. */
  const CHANGED_AT = START + 150_000;

  /** A registration and some polls, with every kind of read and write. `happens` is called for the call number `at`. */
  async function story(way: Way, mishap?: { readonly at: number; readonly happens: Mishap }): Promise<Told> {
    const dynamo = testDynamo();
    const tableName = await dynamo.freshTable();
    const wire = await startFaultyWire(dynamo.endpoint);
    const sender = new DynamoDBClient({
      endpoint: wire.endpoint,
      region: 'us-east-1',
      credentials: { accessKeyId: 'a', secretAccessKey: 'b' },
      maxAttempts: way.attempts,
      requestHandler: { requestTimeout: way.timeoutMs ?? 10_000, throwOnRequestTimeout: true },
    });
    await withoutPauses(sender);
    const rig = await createRig({
      table: createDynamoTable(sender, { tableName, sleep: async () => undefined }),
      registered: false,
      settings: { confirmAfterSeconds: 60, sweepSeconds: 60 },
    });
    const { upstream, ref, now } = rig;
    const direct = createDynamoTable(dynamo.client, { tableName });
    const log = createEventLog(direct, { now, newId: randomUUID, schemaBaseUrl: 'https://jobwire.example' });
    const others: Others = {
      poll: () => pollAccount({ ...rig.deps, table: direct, log }, ref, now() + 600_000),
      append: () => log.append(ref, [OPERATORS]),
    };
    wire.onCall = async (call) => {
      if (wire.calls.length !== mishap?.at) return undefined;
      const fault = mishap.happens(call, others);
      return fault instanceof Promise ? void (await fault) : fault;
    };
    const outcomes: string[] = [];
    const gaveUp = (cause: unknown): void => {
      expect(cause).toBeInstanceOf(TableError);
      outcomes.push('gave up');
    };
    const poll = () => rig.poll().then(({ outcome }) => outcomes.push(outcome), gaveUp);

    const jobs = Array.from({ length: 5 }, () => upstream.createJob({ status: 'Scheduled' }));
    const [moving = 0, dispatched = 0, closed = 0, cancelled = 0] = jobs;
    // A host whose start failed is started again.
    await rig.register().catch((cause: unknown) => {
      gaveUp(cause);
      return rig.register();
    });
    for (let times = 0; times < 1 + way.spare; times += 1) await poll();
    rig.pass((CHANGED_AT - now()) / 1000);
    upstream.setStatus(moving, 'Vulcanising');
    upstream.dispatch(dispatched, { tracking: [{ trackingNumber: 'T1', trackingLink: null }] });
    upstream.close(closed);
    upstream.cancel(cancelled);
    upstream.createJob({ description: 'new' });
    upstream.close(upstream.createJob({ description: 'came and went' }));
    for (let times = 0; times < 2 + way.spare; times += 1) await poll();

    sender.destroy();
    const single = [keys.account(ref), keys.status(ref), keys.wake(ref)];
    const whole = [keys.head(ref), keys.snapshot(ref, 1), keys.event(ref, 1)];
    const items = [
      ...(await Promise.all(single.map((key) => direct.get(key)))),
      ...(await Promise.all(whole.map(({ pk }) => direct.query({ pk })))).flat(),
    ];
    return {
      calls: wire.calls,
      outcomes,
      items: items.flatMap((item) => (item ? [{ ...item, pollId: undefined, tokenHash: undefined }] : [])),
    };
  }

  const OPERATORS: EventDraft = {
    type: 'status.discovered',
    time: START,
    data: { status: 'Operator', observed: { at: new Date(START).toISOString(), since: null, view: 'list' } },
  };

  /** The final content of the table, without times of observation. */
  function learnt({ items }: Told) {
    const of = (kind: string) => items.filter(({ pk }) => pk.startsWith(`${kind}#`));
    const [status] = of('STATUS');
    const [head, ...shards] = of('INDEX');
    const index = JobIndex.decode(
      shards.map(({ packed }, at) => ({ lowest: at, packed: packed as Uint8Array })),
    );
    return {
      events: getEvents(items)
        .map(({ type, subject, data: { observed: _, ...data } }) => JSON.stringify({ type, subject, data }))
        .sort(),
      snapshots: of('JOBS').map((item) => {
        // Times of observations differ: `stay.since` begins with the first complete poll, and a stay in the path after the
        // poll before it.
        const { listAt, detailAt, unproven, settling, owed, stay, path, ...snapshot } = toSnapshot(item);
        for (const [, from, to] of path ?? []) {
          expect(from).toBeLessThanOrEqual(CHANGED_AT);
          expect(to).toBeGreaterThanOrEqual(CHANGED_AT);
        }
        return {
          ...snapshot,
          path: path?.map(([status]) => status),
          stay: stay && { ...stay, since: null },
          unproven: unproven !== null,
          settling: settling !== null,
        };
      }),
      index: [...index].map(([jobNumber, { fingerprint, phase }]) => ({ jobNumber, fingerprint, phase })),
      head: { statusNames: head?.statusNames, upstreamId: head?.upstreamId },
      status: { state: status?.state, openJobs: status?.openJobs, failures: status?.consecutiveFailures },
    };
  }

  function getEvents(items: readonly Item[]): JobEvent[] {
    return items.flatMap(({ event }) => (typeof event === 'string' ? [JSON.parse(event) as JobEvent] : []));
  }

  /** Properties of every log, for any fault. */
  function expectGapless({ items }: Told): void {
    const events = getEvents(items);
    const numbers = events.map((_, at) => at + 1);
    expect(events.map(({ sequence }) => Number(sequence))).toEqual(numbers);
    expect(events.map(({ id }) => id)).toEqual(numbers.map((n) => `acme.e1.${n}`));
    expect(items.find(({ sk }) => sk === 'HEAD')).toMatchObject({ sequence: events.length });
    expect(items.find(({ pk }) => pk.startsWith('WAKE'))).toMatchObject({ sequence: events.length });
    const dispatched = events.filter(({ type }) => type === 'job.dispatched');
    expect(new Set(dispatched.map(({ subject }) => subject)).size).toBe(dispatched.length);
    // Everything changed at the same time, and every event's window contains it.
    for (const { subject, data } of events) {
      if (!subject) continue;
      const { since, at } = data.observed as { since: string | null; at: string };
      expect(Date.parse(since ?? '1970-01-01')).toBeLessThanOrEqual(CHANGED_AT);
      expect(Date.parse(at)).toBeGreaterThanOrEqual(CHANGED_AT);
    }
  }

  /** Faults possible for every kind of call. */
  const ANY_CALL: Readonly<Record<string, Mishap>> = {
    'over its throughput': () => awsError('ProvisionedThroughputExceededException'),
    throttled: () => awsError('ThrottlingException'),
    'answered with an internal error': () => awsError('InternalServerError', {}, 500),
    'cut off before it arrived': () => ({ kind: 'reset' }),
    'done, and its answer lost': () => ({ kind: 'lost answer' }),
  };
  /** Faults possible for some kinds. */
  const SOME_CALLS: Readonly<Record<string, readonly [operations: RegExp, mishap: Mishap]>> = {
    'a batch of which keys stay unprocessed': [/^BatchGetItem$/, () => HALF_READ],
    'a write to an item that a transaction holds': [
      /^(Put|Update|Delete)Item$/,
      () => awsError('TransactionConflictException'),
    ],
    'a transaction in conflict at its first action': [
      /^TransactWriteItems$/,
      (call) => cancelledFor(...reasons(call, (at) => at === 0, 'TransactionConflict')),
    ],
    'a transaction in conflict at all but its first action': [
      /^TransactWriteItems$/,
      (call) => cancelledFor(...reasons(call, (at) => at > 0, 'TransactionConflict')),
    ],
    'a transaction with a throttled action': [
      /^TransactWriteItems$/,
      (call) => cancelledFor(...reasons(call, (at) => at === 1, 'ThrottlingError')),
    ],
    'a transaction with an action over its throughput': [
      /^TransactWriteItems$/,
      (call) => cancelledFor(...reasons(call, (at) => at === 1, 'ProvisionedThroughputExceeded')),
    ],
    'a transaction that is still in progress': [
      /^TransactWriteItems$/,
      () => awsError('TransactionInProgressException'),
    ],
  };

  function reasons(call: WireCall, struck: (at: number) => boolean, code: string): string[] {
    return (call.body.TransactItems as unknown[]).map((_, at) => (struck(at) ? code : 'None'));
  }

  /** The second half of the keys, or the only one, is unprocessed. */
  const HALF_READ: WireFault = {
    kind: 'changed',
    answer(body, call) {
      type Batch<T> = Readonly<Record<string, T>>;
      const [[tableName, asked] = ['', { Keys: [] as unknown[] }]] = Object.entries(
        call.body.RequestItems as Batch<{ readonly Keys: readonly unknown[] }>,
      );
      const left = asked.Keys.slice(Math.floor(asked.Keys.length / 2));
      const keyTexts = new Set(left.map((key) => JSON.stringify(key)));
      const items = (body.Responses as Batch<readonly Readonly<Record<string, unknown>>[]>)[tableName] ?? [];
      return {
        ...body,
        Responses: {
          [tableName]: items.filter(({ pk, sk }) => !keyTexts.has(JSON.stringify({ pk, sk }))),
        },
        UnprocessedKeys: { [tableName]: { ...asked, Keys: left } },
      };
    },
  };

  /** Runs the story without faults. */
  const undisturbed = new Map<Way, Promise<Told>>();
  function whole(way: Way): Promise<Told> {
    const told = undisturbed.get(way) ?? story(way);
    undisturbed.set(way, told);
    return told;
  }

  /**
   * Runs the story once for each of its calls that the fault can hit, and checks the expectation. In `npm test`, for the first call
   * of each operation, or of every third one, beginning with `third`: similar faults then share the operations.
   */
  async function eachCall(
    way: Way,
    happens: Mishap,
    check: (told: Told, undisturbed: Told, met: WireCall | undefined) => void,
    { of = /./, third }: { readonly of?: RegExp | undefined; readonly third?: number | undefined } = {},
  ): Promise<void> {
    const usual = await whole(way);
    const all = usual.calls.flatMap(({ operation }, at) =>
      of.test(operation) ? [{ at: at + 1, operation }] : [],
    );
    expect(all.length).toBeGreaterThan(0);
    const firsts = all.filter(
      ({ operation }, at) => all.findIndex((one) => one.operation === operation) === at,
    );
    const sample = third === undefined ? firsts : firsts.filter((_, at) => at % 3 === third % 3);
    const met = inject('full') ? all : sample;
    await pLimit(4).map(met, async ({ at, operation }) => {
      const told = await story(way, { at, happens });
      expectGapless(told);
      try {
        check(told, usual, told.calls[at - 1]);
      } catch (cause) {
        throw new Error(`With call ${at}, ${operation}: ${cause instanceof Error ? cause.message : cause}`, {
          cause,
        });
      }
    });
  }

  test('without faults: the story has every kind of call, and emits each change once', async () => {
    for (const way of [PATIENT, FRAIL]) {
      const told = await whole(way);
      expect(new Set(told.calls.map(({ operation }) => operation))).toEqual(
        new Set([
          ...['GetItem', 'PutItem', 'UpdateItem', 'Query', 'BatchGetItem', 'BatchWriteItem'],
          'TransactWriteItems',
        ]),
      );
      expect(new Set(told.outcomes)).toEqual(new Set(['complete']));
      expectGapless(told);
      const types = getEvents(told.items).map(({ type }) => type);
      expect(types.sort()).toEqual([
        'account.baselined',
        'job.cancelled',
        'job.closed',
        'job.closed',
        'job.created',
        'job.created',
        'job.dispatched',
        'job.locked',
        'job.status_changed',
        'job.tracking_added',
        'status.discovered',
      ]);
    }
    expect(learnt(await whole(PATIENT))).toEqual(learnt(await whole(FRAIL)));
  });

  const CURED: [name: string, mishap: Mishap, calls: { of?: RegExp; third?: number }][] = [
    ...Object.entries(ANY_CALL).map(([name, mishap], third): (typeof CURED)[number] => [
      `a call ${name}`,
      mishap,
      { third },
    ]),
    ...Object.entries(SOME_CALLS).map(([name, [of, mishap]]): (typeof CURED)[number] => [
      name,
      mishap,
      { of },
    ]),
  ];
  test.each(CURED)(
    '%s: the call is retried, no poll notices, and the final table is identical',
    async (_, mishap, calls) => {
      await eachCall(
        PATIENT,
        mishap,
        (told, usual) => {
          expect(told.outcomes).toEqual(usual.outcomes);
          expect(told.items).toEqual(usual.items);
          expect(told.calls.length).toBeGreaterThan(usual.calls.length);
        },
        calls,
      );
    },
    60_000,
  );

  test('a write that succeeds without an answer: the client times out and retries, and nothing is emitted twice', async () => {
    // A slow call is retried too, which must not matter either.
    await eachCall(
      { ...PATIENT, timeoutMs: 600 },
      () => ({ kind: 'silence' }),
      (told, usual) => {
        expect(told.outcomes).toEqual(usual.outcomes);
        expect(told.items).toEqual(usual.items);
      },
      { of: /^(Put|Update|TransactWrite)Item/ },
    );
  }, 60_000);

  test.each([
    ['throttled', 0],
    ['cut off before it arrived', 1],
    ['executed, and its response lost', undefined],
  ])(
    'a call %s without retry: that poll ends there, and the next one repairs it',
    async (name, third) => {
      await eachCall(
        FRAIL,
        ANY_CALL[name] as Mishap,
        (told, usual, met) => {
          // The region's item is a hint, without which a poll works (rule 12).
          const ends = JSON.stringify(met?.body).includes('"CELL#us"') ? 0 : 1;
          expect(told.outcomes.filter((outcome) => outcome === 'gave up')).toHaveLength(ends);
          expect(learnt(told)).toEqual(learnt(usual));
        },
        { third },
      );
    },
    60_000,
  );

  test('an operator’s concurrent event: the poll renumbers its own, and no poll is lost', async () => {
    await eachCall(
      PATIENT,
      (_, others) => others.append(),
      (told, usual) => {
        expect(told.outcomes).toEqual(usual.outcomes);
        const { events, ...rest } = learnt(told);
        const theirs = events.filter((event) => event.includes('"Operator"'));
        expect(theirs.length).toBeLessThanOrEqual(1);
        const { events: own, ...same } = learnt(usual);
        expect(events.filter((event) => !theirs.includes(event))).toEqual(own);
        expect(rest).toEqual(same);
      },
    );
  }, 60_000);

  test('a concurrent poll that commits first: the later one is fenced and drops its observations, and all is emitted once', async () => {
    let fenced = 0;
    await eachCall(
      FRAIL,
      (_, others) => others.poll(),
      (told, usual) => {
        fenced += told.outcomes.filter((outcome) => outcome === 'fenced').length;
        expect(learnt(told)).toEqual(learnt(usual));
      },
    );
    expect(fenced).toBeGreaterThan(sized(1, 10));
  }, 60_000);
});

describe('two concurrent polls', () => {
  test('the one that started first and ends last writes nothing', async () => {
    const rig = await createRig();
    const jobs = Array.from({ length: 4 }, () => rig.upstream.createJob({ status: 'Scheduled' }));
    await rig.poll();
    await rig.fresh();
    const [job = 0] = jobs;
    rig.upstream.setStatus(job, 'In production');

    // The first has requested the list; its answer is delayed until a second poll is complete.
    let release = (): void => undefined;
    const asked = new Promise<void>((reached) => {
      rig.sandbox.onRequest = ({ operation }) => {
        if (operation !== 'activeJobs') return;
        rig.sandbox.onRequest = undefined;
        reached();
        return new Promise<void>((go) => {
          release = go;
        });
      };
    });
    const late = rig.poll();
    await asked;
    expect(await rig.poll()).toMatchObject({ outcome: 'complete' });
    rig.upstream.setStatus(job, 'Ready to ship');
    release();
    expect(await late).toMatchObject({ outcome: 'fenced' });
    expect(await said(rig)).toEqual([`job.status_changed jobs/${job}`]);
    // The next poll finds what only the late one observed.
    await rig.poll();
    expect(await said(rig)).toEqual([`job.status_changed jobs/${job}`]);
    expect(await sequences(rig)).toEqual([1, 2, 3]);
  });
});

test('a poll is fenced if the account was changed between its commit and its last write', async () => {
  const inner = createMemoryTable();
  let isArmed = false;
  const raise = async (): Promise<void> => {
    const status = await inner.get(keys.status(rig.ref));
    await inner.write({ update: keys.status(rig.ref), set: { revision: Number(status?.revision) + 1 } });
  };
  const table = watchedTable(inner, {
    before: async ({ call, of }) => {
      if (isArmed && call === 'write' && of.includes('STATUS')) await raise();
    },
  });
  const rig = await createRig({ table });
  const job = rig.upstream.createJob({ status: 'Scheduled' });
  await rig.poll();
  rig.upstream.edit(job, { description: 'Changed' });
  isArmed = true;
  expect(await rig.poll()).toMatchObject({ outcome: 'fenced', events: 1 });
});

describe('a quiet poll of 5,000 jobs', () => {
  test('requests 50 pages and the details of the daily rotation, reads Account, Status, the region and the index, and writes only Status', async () => {
    const table = watchedTable(createMemoryTable());
    const rig = await createRig({ table });
    for (let n = 0; n < 5_000; n += 1) rig.upstream.createJob();
    await rig.poll();
    await rig.poll();
    await rig.fresh();
    table.calls.length = 0;
    const { detailFetches, requests, ...report } = await rig.poll();
    expect(report).toMatchObject({ outcome: 'complete', pages: 50, events: 0 });
    expect(requests - detailFetches).toBe(50);
    // 5,000 jobs a day are 3.5 a minute.
    expect(detailFetches).toBeLessThanOrEqual(7);
    // Their snapshots are read, and first details are stored.
    const rotation = table.calls.filter(({ call }) => call === 'getMany' || call === 'transact');
    expect(rotation.length).toBeLessThanOrEqual(2);
    expect(table.calls.filter((call) => !rotation.includes(call))).toEqual([
      { call: 'get', of: ['ACCOUNTS'] },
      { call: 'get', of: ['STATUS'] },
      { call: 'get', of: ['CELL'] },
      { call: 'query', of: ['INDEX'] },
      { call: 'write', of: ['STATUS'] },
    ]);
  });
});

/** The client's own rule of which errors to retry, without delays. */
async function withoutPauses(client: DynamoDBClient): Promise<void> {
  const strategy = await client.config.retryStrategy();
  Object.assign(strategy, {
    retryBackoffStrategy: { setDelayBase: () => undefined, computeNextBackoffDelay: () => 0 },
  });
}
