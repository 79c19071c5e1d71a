/** The cell feed: all events of all accounts of a region, each once, in one sequence without gaps, whatever happens meanwhile. */
import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createGrowthSignal } from '../shared/api/growth.ts';
import {
  type CellFeedDeps,
  type FeedPageQuery,
  followFeed,
  formatPlaces,
  locateFeed,
  parsePlaces,
  readFeedPage,
} from '../shared/api/merged-feed.ts';
import {
  createCellFeed,
  createForwarder,
  type ForwardOptions,
  forwardLogs,
  renewFeed,
  startFeed,
} from '../shared/log/cell-feed.ts';
import { createEventLog, epochFloor, newEpoch } from '../shared/log/log.ts';
import { leftoverWakes, wakeSinks } from '../shared/sinks/sink.ts';
import { createMemoryTable } from '../shared/table/memory-table.ts';
import {
  type AccountRef,
  accountPk,
  cellLog,
  cursorPk,
  FEED_LOG,
  feedLog,
  indexPk,
  keys,
  logPk,
} from '../shared/table/schema.ts';
import { type Item, type Key, keyOf, type Table, type Write } from '../shared/table/table.ts';
import { registerAccount } from '../shared/tracking/accounts.ts';
import { renewLogs } from '../shared/tracking/operator.ts';
import { moved } from './support/delivery.ts';
import { eachTable } from './support/tables.ts';

const START = Date.parse('2026-03-02T08:00:00Z');
const DAY_MS = 86_400_000;
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

/** What reads a cell's feed, as the API does. */
function readerOf(
  { table, now, growth }: Pick<Awaited<ReturnType<typeof createCell>>, 'table' | 'now' | 'growth'>,
  regions: readonly string[] = [REGION],
): CellFeedDeps {
  const pace = { recheckMs: 60_000, heartbeatMs: 60_000, streamMs: 600_000, retryMs: 1_000, waitMs: 25_000 };
  return { feed: createCellFeed(table, now), regions, growth, now, pace };
}

/** The ids of all events of the feed from a number on, with what is asserted of every read: it moves, and upwards. */
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

/** That numbers follow each other without a hole, as they stand in the table. */
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

/** The process is gone: before a write, or after it and before its answer. */
class Crash extends Error {}

/** A table on which the nth write from now on kills whoever wrote. */
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
  test('has every event once, without gaps and in order, whoever crashes, overlaps or reads meanwhile', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 40 }), async (steps) => {
        const table = fragile(await makeTable());
        const cell = await createCell(table, ['a', 'b', 'c']);
        const { clock, now } = cell;
        const deps = readerOf(cell);
        let after: string | undefined;
        const got: string[] = [];
        const said = new Set(['a', 'b', 'c']);
        /** As the stream and the tick do: whatever mark there is. */
        const wake = async (): Promise<void> => {
          const forwarder = createForwarder(table, cell.forwarding);
          const marks = await leftoverWakes(table, REGION, 100);
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
          } else if (one.do === 'wake' || one.do === 'overlap') {
            const times = one.do === 'overlap' ? one.forwarders : 1;
            await Promise.all(Array.from({ length: times }, wake));
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
        expect(await leftoverWakes(table, REGION, 100)).toEqual([]);
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
      { numRuns: kind === 'in memory' ? 300 : 15 },
    );
  }, 120_000);
});
void [
  fc,
  describe,
  followFeed,
  formatPlaces,
  locateFeed,
  renewFeed,
  startFeed,
  epochFloor,
  createMemoryTable,
  accountPk,
  cellLog,
  cursorPk,
  FEED_LOG,
  indexPk,
  keys,
  keyOf,
  renewLogs,
  DAY_MS,
];
void (0 as unknown as FeedPageQuery | Item | Key);
