/**
 * The cell feed: all events of all accounts of a region, each once, in one gapless sequence, for any concurrency and crashes.
 * One file: its tests share the cell and the check for a gapless feed.
 */
import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { registerAccount } from '../../shared/accounts/accounts.ts';
import { createGrowthSignal } from '../../shared/api/growth-signal.ts';
import {
  type CellFeedDeps,
  type FeedPage,
  type FeedPageQuery,
  followFeed,
  formatPlaces,
  locateFeed,
  parsePlaces,
  readFeedPage,
  readNewestFeedPage,
} from '../../shared/api/merged-feed.ts';
import { listPendingWakes, wakeSinks } from '../../shared/delivery/wakes.ts';
import { createCellFeed } from '../../shared/log/cell-feed.ts';
import {
  createForwarder,
  type ForwardOptions,
  forwardLogs,
  startFeed,
} from '../../shared/log/feed-forwarding.ts';
import { epochFloor, newEpoch } from '../../shared/log/head.ts';
import { createEventLog } from '../../shared/log/log.ts';
import {
  type AccountRef,
  cellLog,
  cursorPk,
  FEED_LOG,
  feedLog,
  keys,
  logPk,
} from '../../shared/storage/schema.ts';
import { createMemoryTable } from '../../shared/storage/sqlite-table.ts';
import { getKey, type Item, type Table, type Write } from '../../shared/storage/table.ts';
import { renewLogs } from '../../shared/tracking/operator.ts';
import { moved } from '../support/delivery-world.ts';
import { runs } from '../support/runs.ts';
import { eachTable } from '../support/tables.ts';

const START = Date.parse('2026-03-02T08:00:00Z');
const REGION = 'us';
const ref = (account: string, region = REGION): AccountRef => ({ region, account });
const never = new AbortController().signal;

/** A cell with a clock, the logs of some accounts, and its feed. */
async function createCell(table: Table, accounts: readonly string[] = ['acme', 'bakery']) {
  const clock = { now: START };
  const now = () => clock.now;
  const growth = createGrowthSignal();
  const options = { now, newId: randomUUID, schemaBaseUrl: 'https://jobwire.example', retentionDays: 1 };
  const log = createEventLog(table, { ...options, sleep: async () => undefined });
  const forwarding: ForwardOptions = {
    ...{ now, sleep: async () => undefined },
    onForwarded: (feed) => growth.grew(feed),
  };
  const register = (account: string, region = REGION) =>
    registerAccount(
      table,
      log,
      { ...ref(account, region), secretRef: 'x', pollIntervalSeconds: 60, paused: false },
      { now: clock.now, epoch: newEpoch(clock.now) },
    );
  for (const account of accounts) await register(account);
  const say = async (account: string, events: number, region = REGION): Promise<void> => {
    const drafts = Array.from({ length: events }, (_, at) => moved(at + 1, 'a'));
    const outcome = await log.append(ref(account, region), drafts);
    if (outcome.kind !== 'appended') throw new Error(`${account} has no log.`);
  };
  const forward = (...some: readonly string[]) =>
    forwardLogs(
      table,
      some.map((one) => ref(one)),
      forwarding,
    );
  return { table, clock, now, growth, log, forwarding, register, say, forward, options };
}

/** Reads a cell's feed, like the API. */
function createReaderFor(
  { table, now, growth }: Pick<Awaited<ReturnType<typeof createCell>>, 'table' | 'now' | 'growth'>,
  regions: readonly string[] = [REGION],
): CellFeedDeps {
  const pace = { recheckMs: 60_000, heartbeatMs: 60_000, streamMs: 600_000, retryMs: 1_000, waitMs: 25_000 };
  return { feed: createCellFeed(table, now), regions, growth, now, pace };
}

/** The ids of all events of the feed from a number on; asserts that every read advances. */
async function idsIn(table: Table, now: () => number, from = 0, events = 100): Promise<string[]> {
  const feed = createCellFeed(table, now);
  const ids: string[] = [];
  for (let after = from; ; ) {
    const outcome = await feed.read(REGION, after, { accounts: null, events, ranges: 100 });
    if (outcome?.kind !== 'events') throw new Error(`The feed can't be read after ${after}.`);
    for (const { number, event } of outcome.events) {
      expect(number).toBeGreaterThan(after);
      expect(number).toBeLessThanOrEqual(outcome.through);
      after = number;
      ids.push(event.id);
    }
    if (outcome.through === outcome.head.sequence) return ids;
    if (outcome.through === after && outcome.events.length === 0)
      throw new Error(`Nobody gets past ${after}.`);
    after = outcome.through;
  }
}

/** Every id in the logs of these accounts that has not expired. */
async function idsInLogs(table: Table, accounts: readonly string[], now: () => number): Promise<string[]> {
  const logs = accounts.map((account) => table.query({ pk: logPk(ref(account)) }));
  return (await Promise.all(logs))
    .flat()
    .filter(({ expiresAt }) => Number(expiresAt) > now())
    .map(({ id }) => String(id));
}

/** Asserts that the stored numbers are consecutive. */
async function expectGapless(table: Table): Promise<void> {
  const ranges = await table.query({ pk: logPk(feedLog(REGION)) });
  for (const [at, { after, to, sk }] of ranges.entries()) {
    const before = at === 0 ? Number(sk) - (Number(to) - Number(after)) : Number(ranges[at - 1]?.sk);
    expect(Number(sk) - (Number(to) - Number(after))).toBe(before);
  }
}

function expectInOrder(ids: readonly string[]): void {
  const latest = new Map<string, number>();
  for (const id of ids) {
    const [account = '', , sequence] = id.split('.');
    expect(Number(sequence), `${id} after ${latest.get(account)}`).toBeGreaterThan(latest.get(account) ?? 0);
    latest.set(account, Number(sequence));
  }
}

/** The process crashes: before a write, or after it and before its answer. */
class Crash extends Error {}

/** A table on which the nth write from now on crashes the writer. */
function fragile(table: Table): Table & { crash: { after: number; written: boolean } | undefined } {
  async function doom<T>(write: () => Promise<T>): Promise<T> {
    const { crash } = self;
    if (crash === undefined) return write();
    crash.after -= 1;
    if (crash.after > 0) return write();
    if (crash.after === 0 && crash.written) await write();
    throw new Crash();
  }
  const self = {
    ...table,
    crash: undefined as { after: number; written: boolean } | undefined,
    write: (write: Parameters<Table['write']>[0]) => doom(() => table.write(write)),
    transact: (writes: readonly Write[], token: string) => doom(() => table.transact(writes, token)),
  };
  return self;
}

const ACCOUNTS = ['a', 'b', 'c', 'd'] as const;
const account = fc.constantFrom(...ACCOUNTS);
const step = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      do: fc.constant('say' as const),
      account,
      events: fc.integer({ min: 1, max: 7 }),
    }),
  },
  { weight: 3, arbitrary: fc.record({ do: fc.constant('wake' as const) }) },
  {
    weight: 2,
    arbitrary: fc.record({
      do: fc.constant('crash' as const),
      after: fc.integer({ min: 1, max: 6 }),
      written: fc.boolean(),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constant('overlap' as const), forwarders: fc.integer({ min: 2, max: 4 }) }),
  },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constant('pass' as const), hours: fc.integer({ min: 1, max: 10 }) }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ do: fc.constant('read' as const), limit: fc.integer({ min: 1, max: 9 }) }),
  },
);

eachTable('The cell feed', (makeTable, kind) => {
  test('has every event once, without gaps and in order, for any crashes, concurrency and reads', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 40 }), async (steps) => {
        const table = fragile(await makeTable());
        const cell = await createCell(table, ['a', 'b', 'c']);
        const { clock, now } = cell;
        const deps = createReaderFor(cell);
        let after: string | undefined;
        const got: string[] = [];
        const said = new Set(['a', 'b', 'c']);
        /** Like the stream and the tick: processes any existing mark. */
        const wake = async (): Promise<void> => {
          const forwarder = createForwarder(table, cell.forwarding);
          const marks = await listPendingWakes(table, REGION, 100);
          const woken = await Promise.allSettled(
            marks.map(({ ref, sequence }) =>
              wakeSinks(table, ref, sequence, now(), () => forwarder.forward(ref)),
            ),
          );
          for (const one of woken) {
            if (one.status === 'fulfilled') continue;
            expect([one.reason, one.reason.cause].some((cause) => cause instanceof Crash)).toBe(true);
          }
        };
        const readOn = async (limit: number): Promise<void> => {
          const cursor = after === undefined ? undefined : parsePlaces(deps, after);
          const page = await readFeedPage(deps, { accounts: null, after: cursor, limit, waitMs: 0 }, never);
          if (page.kind === 'gone') {
            after = page.earliest;
          } else if (page.kind === 'page') {
            got.push(...page.events.map((json) => JSON.parse(json).id));
            after = page.next;
          }
        };
        for (const one of steps) {
          if (one.do === 'say') {
            if (!said.has(one.account)) await cell.register(one.account);
            said.add(one.account);
            await cell.say(one.account, one.events);
          } else if (one.do === 'wake') {
            await wake();
          } else if (one.do === 'overlap') {
            // The batches overlap in some accounts.
            const some = (turn: number) => [...said].filter((_, at) => (at + turn) % 3 > 0);
            await Promise.all(
              Array.from({ length: one.forwarders }, (_, turn) => cell.forward(...some(turn))),
            );
          } else if (one.do === 'crash') {
            table.crash = { after: one.after, written: one.written };
            await wake();
            table.crash = undefined;
          } else if (one.do === 'pass') {
            clock.now += one.hours * 3_600_000;
          } else {
            await readOn(one.limit);
          }
        }
        await wake();
        expect(await listPendingWakes(table, REGION, 100)).toEqual([]);
        await expectGapless(table);
        let before: string | undefined;
        do {
          before = after;
          await readOn(50);
        } while (before !== after);
        expect(new Set(got).size).toBe(got.length);
        expectInOrder(got);
        const kept = await idsInLogs(table, [...said], now);
        expect(got).toEqual(expect.arrayContaining(kept));
        const head = await deps.feed.head(REGION);
        const first = head ? await deps.feed.earliest(REGION, head) : 1;
        expect((await idsIn(table, now, first - 1)).sort()).toEqual(kept.sort());
      }),
      kind === 'in memory' ? runs(30, 150) : runs(2, 6),
    );
  }, 120_000);
});

/** A table that remembers earlier versions of its items, for consistent and torn backups of its past. */
function remembering(table: Table) {
  let moment = 0;
  const versions = new Map<string, { at: number; item: Item | undefined }[]>();
  async function keep(writes: readonly Write[]): Promise<void> {
    moment += 1;
    for (const key of writes.map(getKey)) {
      const name = `${key.pk} ${key.sk}`;
      versions.set(name, [...(versions.get(name) ?? []), { at: moment, item: await table.get(key) }]);
    }
  }
  const kept: Table = {
    ...table,
    async write(write) {
      const outcome = await table.write(write);
      if (outcome.done) await keep([write]);
      return outcome;
    },
    async transact(writes, token) {
      const outcome = await table.transact(writes, token);
      if (outcome.done) await keep(writes);
      return outcome;
    },
  };
  return {
    table: kept,
    /** Every item as of a number of writes before the last, given by `back`. */
    async backup(into: Table, back: () => number): Promise<Table> {
      for (const items of versions.values()) {
        const at = moment - back();
        const version = items.findLast((one) => one.at <= at);
        if (version?.item) await into.putMany([version.item]);
      }
      return into;
    },
  };
}

describe('a restored cell feed', () => {
  const said = fc.record({
    account: fc.constantFrom('a', 'b', 'c', '_cell'),
    events: fc.integer({ min: 1, max: 3 }),
  });
  const round = fc.record({ say: fc.array(said, { minLength: 1, maxLength: 4 }), together: fc.boolean() });

  test.each([
    ['whole', 0],
    ['torn within its last transaction', 1],
    ['torn over its last three transactions', 3],
  ])(
    'continues without gaps and has the events of its logs, each once: for a backup that is %s',
    async (_, window) => {
      await fc.assert(
        fc.asyncProperty(
          fc.array(round, { minLength: 1, maxLength: 8 }),
          fc.array(fc.nat(window), { minLength: 60, maxLength: 60 }),
          fc.array(round, { maxLength: 3 }),
          async (rounds, back, later) => {
            const lost = remembering(createMemoryTable());
            const cell = await createCell(lost.table, ['a', 'b', 'c']);
            const { clock, now } = cell;
            // The registration is not torn: an operator repeats it.
            for (let n = 0; n < 4; n += 1) await cell.say('a', 1);
            const run = async (
              over: Pick<typeof cell, 'table' | 'say' | 'forwarding'>,
              some: typeof rounds,
            ) => {
              for (const { say, together } of some) {
                const forwarder = createForwarder(over.table, over.forwarding);
                const forwards: Promise<boolean>[] = [];
                for (const { account, events } of say) {
                  await over.say(account, events);
                  if (together) forwards.push(forwarder.forward(ref(account)));
                  else await forwarder.forward(ref(account));
                }
                await Promise.all(forwards);
              }
            };
            await run(cell, rounds);
            const delivered = await idsIn(lost.table, now);
            const chance = back.values();
            const table = await lost.backup(createMemoryTable(), () => chance.next().value ?? 0);
            clock.now += 3_600_000;
            const leastEpoch = epochFloor(clock.now);
            const forwarding = { ...cell.forwarding, leastEpoch };
            const log = createEventLog(table, { ...cell.options, leastEpoch, sleep: async () => undefined });
            const say = async (account: string, events: number): Promise<void> => {
              await log.append(
                ref(account),
                Array.from({ length: events }, () => moved(1, 'b')),
              );
            };
            clock.now += 60_000;

            // Nothing is numbered before the feed is renewed.
            const before = await table.get(keys.head(feedLog(REGION)));
            expect(await forwardLogs(table, [ref('a')], forwarding)).toBe(false);
            expect(await table.get(keys.head(feedLog(REGION)))).toEqual(before);
            await renewLogs({ table, log, now }, REGION);
            for (const mark of await listPendingWakes(table, REGION, 100)) {
              await wakeSinks(table, mark.ref, mark.sequence, now());
            }
            await run({ table, say, forwarding }, later);
            clock.now += 120_000;
            await expectGapless(table);
            const feed = createCellFeed(table, now);
            const head = await feed.head(REGION);
            // A feed whose first range is lost starts behind it.
            const ids = await idsIn(table, now, head ? (await feed.earliest(REGION, head)) - 1 : 0);
            expect(new Set(ids).size).toBe(ids.length);
            const all = await idsInLogs(table, ['a', 'b', 'c', '_cell'], now);
            // Two lost ranges of one log can leave no trace of the first.
            if (window > 1) expect(all).toEqual(expect.arrayContaining(ids));
            else expect([...ids].sort()).toEqual(all.sort());
            if (window > 0) return;
            expect(ids.slice(0, delivered.length)).toEqual(delivered);
            expectInOrder(ids);
          },
        ),
        runs(20, 80),
      );
    },
    60_000,
  );
});

describe('reading the cell feed', () => {
  type Query = Partial<FeedPageQuery> & { readonly cursor?: string };

  async function createReader(accounts?: readonly string[], regions = [REGION]) {
    const table = createMemoryTable();
    const cell = await createCell(table, accounts);
    const deps = createReaderFor(cell, regions);
    const page = async ({ cursor, ...query }: Query = {}, abort = never) => {
      const after = cursor === undefined ? undefined : parsePlaces(deps, cursor);
      return readFeedPage(deps, { accounts: null, limit: 100, waitMs: 0, after, ...query }, abort);
    };
    const read = async (query?: Query) => {
      const found = await page(query);
      if (found.kind !== 'page') throw new Error(`There is no page: ${found.kind}.`);
      return { ...found, ids: getIds(found.events) };
    };
    const tell = async (account: string, events: number, region = REGION): Promise<void> => {
      await cell.say(account, events, region);
      await forwardLogs(table, [ref(account, region)], cell.forwarding);
    };
    return { ...cell, deps, page, read, tell };
  }
  const getIds = (events: readonly string[]): string[] =>
    events.map((json) => JSON.parse(json).id.replace(/\.[^.]+\./, '.'));

  test('returns stored envelopes byte for byte, by page, with a small cursor for any number of accounts', async () => {
    const { tell, read, table } = await createReader();
    await tell('acme', 3);
    await tell('bakery', 2);
    await tell('acme', 7);
    const stored = [
      ...(await table.query({ pk: logPk(ref('acme')) })),
      ...(await table.query({ pk: logPk(ref('bakery')) })),
    ].map(({ event }) => event);
    const got: string[] = [];
    let cursor: string | undefined;
    for (let n = 0; n < 4; n += 1) {
      const page = await read({ limit: 3, ...(cursor !== undefined && { cursor }) });
      got.push(...page.events);
      cursor = page.next;
      expect(cursor).toMatch(/^[0-9a-z]+\.\d+$/);
    }
    expect([...got].sort()).toEqual([...stored].sort());
    expect(getIds(got)).toEqual([
      ...['acme.1', 'acme.2', 'acme.3', 'bakery.1', 'bakery.2'],
      ...['acme.4', 'acme.5', 'acme.6', 'acme.7', 'acme.8', 'acme.9', 'acme.10'],
    ]);
    expect(await read({ cursor: cursor ?? '' })).toMatchObject({ events: [], next: cursor, head: cursor });
  });

  test('starts a number of events before the end of each region, and continues without gaps', async () => {
    const { tell, read, register } = await createReader(['acme'], ['us', 'nz']);
    await register('kiwi', 'nz');
    await tell('acme', 5);
    await tell('kiwi', 2, 'nz');
    const latest = await read({ last: 3 });
    expect([...latest.ids].sort()).toEqual(['acme.3', 'acme.4', 'acme.5', 'kiwi.1', 'kiwi.2']);
    expect(latest.next).toBe(latest.head);
    await tell('acme', 1);
    expect((await read({ cursor: latest.next })).ids).toEqual(['acme.6']);
    expect((await read({ last: 1_000 })).ids).toHaveLength(8);
    expect((await read({ last: 3, accounts: ['kiwi'] })).ids).toEqual(['kiwi.1', 'kiwi.2']);
    expect((await read({ last: 3, limit: 1 })).ids).toHaveLength(1);
  });

  test('is read from the newest events of all regions backwards, each once and in the order of its log', async () => {
    const { tell, deps, read, register } = await createReader(undefined, ['us', 'nz']);
    await register('kiwi', 'nz');
    for (const events of [3, 30, 1]) {
      await tell('acme', events);
      await tell('kiwi', events, 'nz');
      await tell('bakery', events);
    }
    const lists: [accounts: readonly string[] | null, limit: number][] = [
      ...[1, 7, 500].map((limit): [null, number] => [null, limit]),
      [['kiwi', 'bakery'], 5],
    ];
    for (const [accounts, limit] of lists) {
      const got: string[] = [];
      let first: FeedPage | undefined;
      for (let before: string | null | undefined; before !== null; ) {
        const places = before === undefined ? undefined : parsePlaces(deps, before);
        const page = await readNewestFeedPage(deps, { accounts, limit, before: places });
        if (page.kind !== 'page') throw new Error('There is no page.');
        expect(page.events.length).toBeLessThanOrEqual(limit);
        got.push(...getIds(page.events));
        first ??= page;
        before = page.previous ?? null;
      }
      for (const account of accounts ?? ['acme', 'kiwi', 'bakery']) {
        const own = got.filter((id) => id.startsWith(`${account}.`));
        expect(own).toEqual(Array.from({ length: 34 }, (_, at) => `${account}.${34 - at}`));
      }
      expect(got).toHaveLength(34 * (accounts?.length ?? 3));
      expect(first?.next).toBe(first?.head);
      expect((await read({ cursor: first?.next ?? '' })).ids).toEqual([]);
    }
    const unknown = parsePlaces(deps, 'us.e9.1');
    expect(await readNewestFeedPage(deps, { accounts: null, limit: 1, before: unknown })).toMatchObject({
      kind: 'gone',
    });
  });

  test('of some accounts, or of some types, returns only theirs, and the cursor moves past the rest', async () => {
    const { tell, read, log, table, forwarding } = await createReader();
    await tell('acme', 40);
    await tell('bakery', 2);
    await tell('acme', 40);
    await log.append(cellLog(REGION), [
      {
        type: 'upstream.outage',
        time: START,
        data: { since: '2026-03-02T08:00:00Z', failedPolls: 3, accounts: 2, reason: 'No answer.' },
      },
    ]);
    await forwardLogs(table, [cellLog(REGION)], forwarding);
    const some = await read({ accounts: ['bakery', 'nobody'], limit: 1 });
    expect(some.ids).toEqual(['bakery.1']);
    const rest = await read({ accounts: ['bakery', 'nobody'], cursor: some.next });
    expect([rest.ids, rest.next]).toEqual([['bakery.2'], rest.head]);
    expect((await read({ accounts: [] })).events).toEqual([]);
    const types = await read({ types: ['upstream.*'] });
    expect([types.ids, types.next]).toEqual([['_cell.1'], types.head]);
  });

  test('reads a bounded number of events per page, and the next page continues behind it', async () => {
    const { tell, read, deps } = await createReader();
    for (let n = 0; n < 60; n += 1) await tell('acme', 90);
    await tell('bakery', 1);
    const types = ['upstream.outage'];
    const first = await read({ types });
    expect([first.events, first.next === first.head]).toEqual([[], false]);
    let looks = 0;
    const counting = {
      ...deps.feed,
      read: (...query: Parameters<typeof deps.feed.read>) => {
        looks += 1;
        return deps.feed.read(...query);
      },
    };
    const after = parsePlaces(deps, first.next);
    await readFeedPage(
      { ...deps, feed: counting },
      { accounts: null, types, after, limit: 1, waitMs: 0 },
      never,
    );
    expect(looks).toBeLessThan(20);
    // Others' events are passed without being read: this is found at once.
    expect((await read({ accounts: ['bakery'] })).ids).toEqual(['bakery.1']);
  });

  test('a long poll answers as soon as a matching event arrives, and not for filtered ones', async () => {
    const { tell, page, read, growth } = await createReader();
    const { next } = await read();
    const waiting = page({ cursor: next, accounts: ['bakery'], waitMs: 20_000 });
    await tell('acme', 1);
    expect(growth.watches).toBe(1);
    await tell('bakery', 1);
    const answer = await waiting;
    expect(answer.kind === 'page' && getIds(answer.events)).toEqual(['bakery.1']);
    expect(growth.watches).toBe(0);
    const mayWait = async () => false;
    expect(await page({ cursor: (await read()).next, waitMs: 20_000, mayWait })).toEqual({ kind: 'crowded' });
  });

  test('reports invalid cursors: of another epoch, beyond the head, or expired', async () => {
    const { tell, page, clock, read } = await createReader();
    await tell('acme', 3);
    clock.now += 23 * 3_600_000;
    await tell('bakery', 2);
    const { head } = await read();
    const [epoch = ''] = head.split('.');
    for (const cursor of ['zzz.1', `${epoch}.6`]) {
      expect(await page({ cursor })).toEqual({ kind: 'gone', earliest: `${epoch}.0`, head: `${epoch}.5` });
    }
    clock.now += 2 * 3_600_000;
    expect(await page({ cursor: `${epoch}.1` })).toEqual({
      ...{ kind: 'gone', earliest: `${epoch}.3`, head: `${epoch}.5` },
    });
    expect((await read()).ids).toEqual(['bakery.1', 'bakery.2']);
    expect((await read({ cursor: '3' })).ids).toEqual(['bakery.1', 'bakery.2']);
  });

  test('skips the events of a deleted account, and distinguishes a new one with the same id', async () => {
    const { tell, read, table, register, clock } = await createReader();
    await tell('acme', 2);
    await tell('bakery', 3);
    await tell('acme', 1);
    clock.now += 5_000;
    for (const item of await table.query({ pk: logPk(ref('acme')) })) await table.write({ delete: item });
    for (const key of [keys.head(ref('acme')), keys.account(ref('acme')), keys.status(ref('acme'))]) {
      await table.write({ delete: key });
    }
    const gone = await read();
    expect([gone.ids, gone.next]).toEqual([['bakery.1', 'bakery.2', 'bakery.3'], gone.head]);
    await register('acme');
    await tell('acme', 2);
    expect((await read()).ids).toEqual([...gone.ids, 'acme.1', 'acme.2']);
  });

  test('waits for an event whose transaction is not visible yet, instead of skipping it', async () => {
    const { tell, read, table, clock } = await createReader();
    await tell('acme', 3);
    const hidden = await table.get(keys.event(ref('acme'), 2));
    if (!hidden) throw new Error('There is no event.');
    await table.write({ delete: hidden });
    const first = await read();
    expect([first.ids, first.next.split('.')[1]]).toEqual([['acme.1'], '1']);
    await table.write({ put: hidden });
    expect((await read({ cursor: first.next })).ids).toEqual(['acme.2', 'acme.3']);
    await table.write({ delete: hidden });
    clock.now += 61_000;
    expect((await read()).ids).toEqual(['acme.1', 'acme.3']);
  });

  test('of several regions has a cursor for each, and a later region is read from its beginning', async () => {
    const { tell, read, page, register, deps } = await createReader(['acme'], ['us', 'nz']);
    await tell('acme', 2);
    const first = await read();
    expect(first.ids).toEqual(['acme.1', 'acme.2']);
    expect(first.next).toMatch(/^nz\.0~us\.[0-9a-z]+\.2$/);
    await register('kiwi', 'nz');
    await tell('kiwi', 30, 'nz');
    await tell('acme', 30);
    const second = await read({ cursor: first.next, limit: 10 });
    expect(new Set(second.ids.map((id) => id.split('.')[0]))).toEqual(new Set(['kiwi', 'acme']));
    const third = await read({ cursor: second.next });
    expect([...second.ids, ...third.ids]).toHaveLength(60);
    expect(new Set([...second.ids, ...third.ids]).size).toBe(60);
    expect(parsePlaces(deps, first.next.split('~')[1] ?? '')?.size).toBe(1);
    for (const text of ['', 'us', 'x.e.1', 'us.e.1~', 'us.e.x', first.next.slice(3)]) {
      const places = parsePlaces(deps, text);
      expect(places === undefined || [...places.keys()].every((region) => region === 'us'), text).toBe(true);
    }
    const broken = first.next.replace(/us\.[0-9a-z]+/, 'us.zzz');
    expect(await page({ cursor: broken })).toMatchObject({
      kind: 'gone',
      earliest: expect.stringMatching(/^nz\.[0-9a-z]+\.0~us\.[0-9a-z]+\.0$/),
    });
  });

  test('a page has the head of every region, also of those that it has no room for', async () => {
    const { tell, read, register } = await createReader(['acme'], ['nz', 'us']);
    await register('kiwi', 'nz');
    await tell('kiwi', 1, 'nz');
    await tell('acme', 5);
    const { ids, next, head } = await read({ limit: 1 });
    expect(ids).toEqual(['kiwi.1']);
    expect(head).toMatch(/^nz\.[0-9a-z]+\.1~us\.[0-9a-z]+\.5$/);
    expect(next).not.toBe(head);
  });

  test('streams have every event once, in order, over any number of ends and resumes', async () => {
    const { tell, deps, growth, clock } = await createReader(['a', 'b', 'c']);
    const total = 120;
    const start = await locateFeed(deps, undefined, 'head');
    if (start.kind !== 'places') throw new Error('There is no feed.');
    const telling = (async () => {
      for (let n = 0; n < total; n += 1) {
        await tell(['a', 'b', 'c'][n % 3] ?? '', 1 + (n % 4));
        if (n % 5 === 0) await new Promise((resolve) => setImmediate(resolve));
      }
    })();
    const expected = Array.from({ length: total }, (_, n) => 1 + (n % 4)).reduce((sum, n) => sum + n, 0);
    const follow = async (turns: number): Promise<string[]> => {
      const got: string[] = [];
      let last = formatPlaces(deps, start.places);
      for (let turn = 1; got.length < expected; turn += 1) {
        const from = await locateFeed(deps, parsePlaces(deps, last), 'head');
        if (from.kind !== 'places') throw new Error('The place is gone.');
        const abort = new AbortController();
        let taken = 0;
        for await (const text of followFeed(deps, from.places, { accounts: null }, abort.signal)) {
          for (const block of text.split('\n\n')) {
            const [, id] = /^id: (.+)$/m.exec(block) ?? [];
            const [, json] = /^data: (.+)$/m.exec(block) ?? [];
            // Interrupted within a frame, after the id or before it.
            if (taken >= (turn * turns) % 50) break;
            if (id !== undefined) last = id;
            if (json === undefined || block.includes('event: cursor')) continue;
            got.push(JSON.parse(json).id);
            taken += 1;
          }
          if (got.length >= expected || taken >= (turn * turns) % 50) break;
        }
        abort.abort();
      }
      return got;
    };
    const followers = await Promise.all([follow(7), follow(11), follow(13)]);
    await telling;
    expect(growth.watches).toBe(0);
    for (const got of followers) {
      expect(got).toHaveLength(expected);
      expect(new Set(got).size).toBe(expected);
      expectInOrder(got);
      expect(got).toEqual(followers[0]);
    }
    expect(clock.now).toBe(START);
  });
});

/** Returns the table with the number of writes of each transaction so far. */
function countTransactions(table: Table): { readonly counted: Table; readonly transactions: number[] } {
  const transactions: number[] = [];
  const counted: Table = {
    ...table,
    transact(writes, token) {
      transactions.push(writes.length);
      return table.transact(writes, token);
    },
  };
  return { counted, transactions };
}

describe('filling the cell feed', () => {
  test('writes concurrent commits of several accounts in one transaction', async () => {
    const table = createMemoryTable();
    const names = Array.from({ length: 40 }, (_, at) => `account-${at}`);
    const cell = await createCell(table, names);
    const { counted, transactions } = countTransactions(table);
    const forwarder = createForwarder(counted, cell.forwarding);
    for (const name of names) await cell.say(name, 2);
    expect(await Promise.all(names.map((name) => forwarder.forward(ref(name))))).not.toContain(false);
    expect(transactions).toEqual([81]);
    expect(await idsIn(table, cell.now)).toHaveLength(80);
    await forwarder.forward(ref('account-0'));
    expect(transactions, 'nothing to do').toHaveLength(1);
  });

  test('with an interval, requests after a transaction go together with the next one', async () => {
    const table = createMemoryTable();
    const names = ['acme', 'beta', 'zeta'];
    const cell = await createCell(table, names);
    const { counted, transactions } = countTransactions(table);
    const forwarder = createForwarder(counted, { ...cell.forwarding, everyMs: 1_000 });
    for (const name of names) await cell.say(name, 1);
    await forwarder.forward(ref('acme'));
    const second = forwarder.forward(ref('beta'));
    await new Promise((resolve) => setImmediate(resolve));
    await Promise.all([second, forwarder.forward(ref('zeta'))]);
    expect(transactions).toEqual([3, 5]);
  });

  test('scales to 2,000 accounts, which a reader reads in pages of constant cost', async () => {
    const table = createMemoryTable();
    const names = Array.from({ length: 2_000 }, (_, at) => `account-${at}`);
    const cell = await createCell(table, names);
    for (const name of names) await cell.say(name, 1);
    const forwarder = createForwarder(table, cell.forwarding);
    await Promise.all(names.map((name) => forwarder.forward(ref(name))));
    let reads = 0;
    const counted: Table = {
      ...table,
      get: (key) => {
        reads += 1;
        return table.get(key);
      },
      query: (query) => {
        reads += 1;
        return table.query(query);
      },
      getMany: (wanted) => {
        reads += 1;
        return table.getMany(wanted);
      },
    };
    const ids = await idsIn(counted, cell.now, 0, 100);
    expect(new Set(ids).size).toBe(2_000);
    // Head, references and events for each hundred.
    expect(reads).toBeLessThanOrEqual(3 * 21);
    const deps = createReaderFor({ ...cell, table: counted });
    const page = await readFeedPage(deps, { accounts: ['account-1999'], limit: 10, waitMs: 0 }, never);
    expect(page.kind === 'page' && page.events).toHaveLength(1);
  });

  test('of an existing cell starts at the current heads, and misses no concurrent event', async () => {
    const table = createMemoryTable();
    const cell = await createCell(table);
    await cell.say('acme', 5);
    await table.write({ delete: keys.head(feedLog(REGION)) });
    expect(await cell.forward('acme'), 'without a feed there is nothing to do').toBe(true);
    // Emitted after its position was stored, before the feed exists.
    let isSaid = false;
    const between: Table = {
      ...table,
      async write(write) {
        if ('put' in write && write.put.sk === 'HEAD' && !isSaid) {
          isSaid = true;
          await cell.say('acme', 2);
          expect(await cell.forward('acme')).toBe(true);
        }
        return table.write(write);
      },
    };
    const starting = { ...cell.forwarding, epoch: newEpoch(START) };
    await startFeed(between, REGION, starting);
    await cell.register('later');
    await cell.say('later', 1);
    await cell.forward('later');
    await startFeed(table, REGION, { ...starting, epoch: 'other' });
    const ids = await idsIn(table, cell.now);
    expect(ids.map((id) => id.replace(/\.[^.]+\./, '.'))).toEqual(['acme.6', 'acme.7', 'later.1']);
  });

  test('an interrupted start is completed by the next one', async () => {
    const table = createMemoryTable();
    const cell = await createCell(table);
    await cell.say('acme', 5);
    await table.write({ delete: keys.head(feedLog(REGION)) });
    for (let after = 1; after <= 5; after += 1) {
      const crashing = fragile(table);
      crashing.crash = { after, written: after % 2 === 0 };
      await startFeed(crashing, REGION, { ...cell.forwarding, epoch: 'e1' }).catch((cause) => {
        expect(cause).toBeInstanceOf(Crash);
      });
    }
    await startFeed(table, REGION, { ...cell.forwarding, epoch: 'e2' });
    expect(await table.get(keys.head(feedLog(REGION)))).toMatchObject({ epoch: 'e1', sequence: 0 });
    expect((await table.get(keys.head(feedLog(REGION))))?.starting).toBeUndefined();
    await cell.say('acme', 1);
    await cell.forward('acme');
    expect(await idsIn(table, cell.now)).toHaveLength(1);
  });

  test('a wake mark stays until its events are in the feed, and sinks are woken regardless', async () => {
    const table = createMemoryTable();
    const cell = await createCell(table);
    await cell.say('acme', 1);
    const fault = new Error('no answer');
    const failing = wakeSinks(table, ref('acme'), 1, START, () => Promise.reject(fault));
    await expect(failing).rejects.toMatchObject({ name: 'ForwardError', sinks: [], cause: fault });
    await wakeSinks(table, ref('acme'), 1, START, async () => false);
    expect(await listPendingWakes(table, REGION, 10)).toHaveLength(1);
    await wakeSinks(table, ref('acme'), 1, START);
    expect(await listPendingWakes(table, REGION, 10)).toEqual([]);
    expect(await idsIn(table, cell.now)).toHaveLength(1);
  });

  test('a wake-up for an earlier epoch removes no mark of concurrent events', async () => {
    const memory = createMemoryTable();
    let isAsked = false;
    // The log grows between the read and the end of the wake-up.
    const table: Table = {
      ...memory,
      write: async (write) => {
        if (!isAsked && 'delete' in write && write.delete.pk === keys.wake(ref('acme')).pk) {
          isAsked = true;
          await cell.say('acme', 2);
        }
        return memory.write(write);
      },
    };
    const cell = await createCell(memory);
    await cell.say('acme', 3);
    await wakeSinks(table, ref('acme'), 50, START);
    expect(isAsked).toBe(true);
    expect(await listPendingWakes(memory, REGION, 10)).toEqual([{ ref: ref('acme'), sequence: 5 }]);
    await wakeSinks(memory, ref('acme'), 5, START);
    expect(await listPendingWakes(memory, REGION, 10)).toEqual([]);
    expect(await idsIn(memory, cell.now)).toHaveLength(5);
  });

  test('no account can have the id of the feed', async () => {
    const cell = await createCell(createMemoryTable());
    await expect(cell.register(FEED_LOG)).rejects.toThrow('No account can have the id _feed.');
    expect(await cell.table.query({ pk: cursorPk(REGION, FEED_LOG) })).toEqual([]);
  });
});
