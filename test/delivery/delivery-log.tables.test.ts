/** The delivery log: stored attempts, queries, and the health of a sink. */
import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  createDeliveryLog,
  type DeliveryEntry,
  type DeliveryLog,
  type DeliveryQuery,
  readDeliveryHealth,
} from '../../shared/delivery/delivery-log.ts';
import { typeMatches } from '../../shared/events/types.ts';
import { historySchema } from '../../shared/storage/schema.ts';
import { createMemoryTable } from '../../shared/storage/sqlite-table.ts';
import { type Item, type Table, TableError } from '../../shared/storage/table.ts';
import { runs } from '../support/runs.ts';
import { eachTable } from '../support/tables.ts';
import { watchedTable } from '../support/tracker.ts';

const NOW = Date.parse('2026-03-02T08:00:00Z');
const DAY = 86_400_000;

function entry(overrides: Partial<DeliveryEntry> = {}): DeliveryEntry {
  return {
    region: 'us',
    sink: 'erp',
    eventId: randomUUID(),
    type: 'job.status_changed',
    account: 'acme',
    sequence: 12,
    jobNumber: 100_001,
    at: NOW,
    latencyMs: 12,
    outcome: 'delivered',
    status: 200,
    cause: 'live',
    ...overrides,
  };
}

const logOver = (history: Table): DeliveryLog => createDeliveryLog(history, { newId: randomUUID });
const logInMemory = (): DeliveryLog => logOver(createMemoryTable(historySchema));

/** All pages of a query, in order. */
async function readPages(log: DeliveryLog, query: DeliveryQuery): Promise<DeliveryEntry[][]> {
  const pages: DeliveryEntry[][] = [];
  for (let before = query.before; ; ) {
    const { entries, next } = await log.bySink('us', 'erp', { ...query, before });
    pages.push(entries);
    if (next === undefined) return pages;
    before = next;
  }
}

eachTable('The delivery log', (_, kind, makeHistory) => {
  test('an entry is found by its sink and by its event, unchanged', async () => {
    const log = logOver(await makeHistory());
    const full = entry({
      outcome: 'rejected',
      reason: 'The endpoint responded with status 422.',
      status: 422,
      excerpt: '{"error":"naïve 😀"}',
      cause: 'replay',
      replay: 'r1',
    });
    const { jobNumber: _, status: __, ...bare } = entry({ at: NOW + 1 });
    await log.record([full, bare]);
    expect(await log.bySink('us', 'erp')).toEqual({ entries: [bare, full] });
    expect(await log.byEvent('us', full.eventId)).toEqual([full]);
    expect(await log.byEvent('us', bare.eventId)).toEqual([bare]);
    expect(await log.bySink('us', 'erp', { outcome: 'failed' })).toEqual({ entries: [full] });
  });

  test('a sink’s deliveries are listed newest first by page, without duplicates or gaps', async () => {
    const log = logOver(await makeHistory());
    const entries = Array.from({ length: 130 }, (_, at) =>
      entry({
        at: NOW + at * 10,
        outcome: at % 7 === 0 ? 'retry' : at % 10 === 0 ? 'rejected' : 'delivered',
      }),
    );
    for (const half of [entries.slice(60), entries.slice(0, 60)]) await log.record(half);
    const newestFirst = entries.toReversed();
    const pages = await readPages(log, { limit: 40 });
    expect(pages.map(({ length }) => length)).toEqual([40, 40, 40, 10]);
    expect(pages.flat()).toEqual(newestFirst);
    for (const outcome of ['delivered', 'rejected', 'retry'] as const) {
      const expected = newestFirst.filter((one) => one.outcome === outcome);
      expect((await readPages(log, { outcome, limit: 9 })).flat(), outcome).toEqual(expected);
    }
    const failed = newestFirst.filter(({ outcome }) => outcome !== 'delivered');
    expect((await readPages(log, { outcome: 'failed', limit: 9 })).flat()).toEqual(failed);
  });

  test('an event’s deliveries are those to all sinks of its region, first to last', async () => {
    const log = logOver(await makeHistory());
    const eventId = randomUUID();
    const attempts = [
      entry({ eventId, sink: 'erp', at: NOW, outcome: 'retry', reason: 'No answer.' }),
      entry({ eventId, sink: 'shop', at: NOW + 1 }),
      entry({ eventId, sink: 'sns', at: NOW + 2 }),
      entry({ eventId, sink: 'erp', at: NOW + 5_000 }),
      entry({ eventId, sink: 'erp', at: NOW + DAY, cause: 'resend' }),
    ];
    for (const one of attempts.toReversed()) await log.record([one]);
    await log.record([entry(), entry({ eventId, region: 'nz' })]);
    expect(await log.byEvent('us', eventId)).toEqual(attempts);
    expect(await log.byEvent('us', eventId, 2)).toEqual(attempts.slice(-2));
    expect(await log.byEvent('us', randomUUID())).toEqual([]);
  });

  test('a delivery costs one write unit plus one for its event; a page of 50 at most 12 read units', async () => {
    const history = await makeHistory();
    const log = logOver(history);
    await log.record(
      Array.from({ length: 400 }, (_, at) =>
        entry({ eventId: `e-${at}`.padEnd(36, '0'), at: NOW + at, excerpt: '{"ok":true}' }),
      ),
    );
    const recorded = history.units();
    await log.bySink('us', 'erp', { limit: 50 });
    const paged = history.units();
    await log.record([
      entry({ outcome: 'retry', reason: 'The endpoint responded with status 500.', status: 500 }),
    ]);
    const failed = history.units();
    if (kind === 'in memory') return;
    expect(recorded.write).toBe(800);
    expect(paged.read).toBeLessThanOrEqual(12);
    expect(failed.write - paged.write).toBe(3);
  });
});

describe('Entries', () => {
  const stored = async (one: DeliveryEntry, retentionDays?: number): Promise<Item> => {
    const items: Item[] = [];
    const memory = createMemoryTable(historySchema);
    const history: Table = { ...memory, putMany: async (given) => void items.push(...given) };
    const kept = retentionDays === undefined ? {} : { retentionDays };
    await createDeliveryLog(history, { newId: randomUUID, ...kept }).record([one]);
    return items[0] as Item;
  };

  test('expire after 30 days, or the configured retention', async () => {
    expect((await stored(entry())).ttl).toBe((NOW + 30 * DAY) / 1000);
    expect((await stored(entry({ at: NOW + 999 }), 7)).ttl).toBe((NOW + 7 * DAY) / 1000);
  });

  test('store the first kilobyte of a response, without splitting a character', async () => {
    const log = logInMemory();
    const cut = async (excerpt: string) => {
      const one = entry({ excerpt, outcome: 'retry', reason: excerpt });
      await log.record([one]);
      const [read] = await log.byEvent('us', one.eventId);
      expect(read?.reason).toBe(read?.excerpt);
      return read?.excerpt;
    };
    expect(await cut('x'.repeat(1024))).toBe('x'.repeat(1024));
    expect(await cut('x'.repeat(1025))).toBe('x'.repeat(1024));
    expect(await cut('é'.repeat(600))).toBe('é'.repeat(512));
    expect(await cut(`x${'é'.repeat(600)}`)).toBe(`x${'é'.repeat(511)}`);
    expect(await cut('😀'.repeat(300))).toBe('😀'.repeat(256));
    expect(await cut(`xx${'😀'.repeat(300)}`)).toBe(`xx${'😀'.repeat(255)}`);
    expect(await cut(`\ufeff${'x'.repeat(2000)}`)).toBe(`\ufeff${'x'.repeat(1021)}`);
  });

  test('a fault of the table is thrown to the caller', async () => {
    const history = watchedTable(createMemoryTable(historySchema), {
      before: () => {
        throw new TableError('put many', '3 items remained unprocessed');
      },
    });
    await expect(logOver(history).record([entry()])).rejects.toThrow(TableError);
  });

  test('entries of the same millisecond do not overwrite each other, and keep their order', async () => {
    const log = logInMemory();
    const eventId = randomUUID();
    const sequences = Array.from({ length: 120 }, (_, sequence) => sequence);
    await log.record(sequences.map((sequence) => entry({ eventId, sequence })));
    await log.record(sequences.map((sequence) => entry({ sequence })));
    expect((await log.byEvent('us', eventId, 500)).map(({ sequence }) => sequence)).toEqual(sequences);
    expect((await readPages(log, { limit: 50 })).flat()).toHaveLength(240);
  });
});

describe('A page', () => {
  test('equals the sorted and filtered list of all entries, for any partitioning', async () => {
    const outcomes = ['delivered', 'rejected', 'retry'] as const;
    await fc.assert(
      fc.asyncProperty(
        fc.array(
          fc.record({
            at: fc.integer({ min: 0, max: 400 }),
            outcome: fc.constantFrom(...outcomes),
            // Few events: their shards are filled unevenly.
            event: fc.constantFrom(0, 0, 0, 0, 0, 1, 2, 3, 4, 5),
            sink: fc.constantFrom('erp', 'erp', 'erp', 'erp#0', 'er'),
            type: fc.constantFrom('job.created', 'job.closed', 'account.baselined'),
          }),
          { maxLength: 120, size: 'max' },
        ),
        fc.constantFrom(undefined, 'failed' as const, ...outcomes),
        fc.integer({ min: 1, max: 30 }),
        fc.option(fc.integer({ min: 0, max: 400 }), { nil: undefined }),
        fc.option(fc.integer({ min: 0, max: 400 }), { nil: undefined }),
        fc.constantFrom(undefined, ['job.*'], ['job.closed', 'account.baselined']),
        async (drafts, outcome, limit, since, until, types) => {
          const log = logInMemory();
          const entries = drafts.map((draft, sequence) =>
            entry({ ...draft, at: NOW + draft.at, eventId: `e${draft.event}`, sequence }),
          );
          await log.record(entries);
          const from = since === undefined ? undefined : NOW + since;
          const to = until === undefined ? undefined : NOW + until;
          const expected = entries
            .filter((one) => one.sink === 'erp' && one.at >= (from ?? 0) && one.at < (to ?? NOW + DAY))
            .filter(({ type }) => !types || typeMatches(type, types))
            .filter((one) =>
              outcome === 'failed' ? one.outcome !== 'delivered' : one.outcome === (outcome ?? one.outcome),
            )
            .sort((a, b) => b.at - a.at || b.sequence - a.sequence);
          const pages = await readPages(log, { outcome, limit, since: from, until: to, types });
          expect(pages.flat()).toEqual(expected);
          expect(pages).toHaveLength(Math.max(1, Math.ceil(expected.length / limit)));
        },
      ),
      runs(60, 300),
    );
  });

  test('has the newest entries, also if all are in one partition', async () => {
    const log = logInMemory();
    const older = Array.from({ length: 100 }, (_, at) => entry({ eventId: `e${at}`, at: NOW - 1 - at }));
    const newer = Array.from({ length: 120 }, (_, at) => entry({ eventId: 'one', at: NOW + at }));
    await log.record([...older, ...newer]);
    const expected = [...newer.toReversed(), ...older];
    for (const limit of [40, 100, 150]) {
      expect((await log.bySink('us', 'erp', { limit })).entries).toEqual(expected.slice(0, limit));
    }
  });

  test('requests a share from each partition, not the whole page', async () => {
    const history = createMemoryTable(historySchema);
    let items = 0;
    const counting: Table = {
      ...history,
      async query(query) {
        const found = await history.query(query);
        items += found.length;
        return found;
      },
    };
    const log = logOver(counting);
    await log.record(Array.from({ length: 3000 }, (_, at) => entry({ eventId: `e${at}`, at: NOW + at })));
    expect((await log.bySink('us', 'erp', { limit: 500 })).entries).toHaveLength(500);
    expect(items).toBeLessThan(700);
    // Few attempts match: a page ends after 1,000 others, and the next one continues there.
    items = 0;
    await log.record([entry({ at: NOW - 1, type: 'job.closed' })]);
    const query = { types: ['job.closed'], limit: 50 };
    const { entries, next } = await log.bySink('us', 'erp', query);
    expect([entries, next]).toEqual([[], expect.any(String)]);
    expect(items).toBeLessThan(1500);
    const pages = await readPages(log, query);
    expect(pages.flat()).toMatchObject([{ at: NOW - 1 }]);
    expect(pages.length).toBeLessThan(6);
  });
});

describe('Health', () => {
  test('covers the attempts of 24 hours: success rate, latencies of deliveries, the last error message', async () => {
    const log = logInMemory();
    await log.record([
      ...Array.from({ length: 100 }, (_, at) => entry({ at: NOW - 10_000 - at, latencyMs: at + 1 })),
      entry({ at: NOW - 5_000, outcome: 'retry', reason: 'No answer within 15 s.', latencyMs: 15_000 }),
      entry({
        at: NOW - 6_000,
        outcome: 'rejected',
        reason: 'The endpoint responded with status 422.',
        cause: 'parked',
      }),
      // Not counted.
      entry({ at: NOW - DAY - 1, outcome: 'retry', reason: 'Too long ago.' }),
      entry({ at: NOW - 1_000, outcome: 'retry', reason: 'A ping.', cause: 'ping' }),
      entry({ at: NOW - 1_000, latencyMs: 9_999, cause: 'resend' }),
      entry({ at: NOW - 1_000, outcome: 'rejected', sink: 'other' }),
    ]);
    expect(await readDeliveryHealth(log, { region: 'us', id: 'erp' }, NOW)).toEqual({
      attempts: 102,
      delivered: 100,
      successRate: 100 / 102,
      p50Ms: 50,
      p95Ms: 95,
      lastError: { at: NOW - 5_000, reason: 'No answer within 15 s.' },
    });
  });

  test('covers the last 500 attempts if there are more, and costs one read', async () => {
    let asked = 0;
    const log = logInMemory();
    const counting: DeliveryLog = {
      ...log,
      bySink: (...query) => {
        asked += 1;
        return log.bySink(...query);
      },
    };
    await log.record([
      entry({ at: NOW - 2_000, outcome: 'retry', reason: 'Before those.' }),
      ...Array.from({ length: 500 }, (_, at) => entry({ at: NOW - at, latencyMs: 7 })),
    ]);
    expect(await readDeliveryHealth(counting, { region: 'us', id: 'erp' }, NOW)).toEqual({
      attempts: 500,
      delivered: 500,
      successRate: 1,
      p50Ms: 7,
      p95Ms: 7,
      lastError: null,
    });
    expect(asked).toBe(1);
  });

  test("of a sink that reuses a deleted one's id is its own", async () => {
    const log = logInMemory();
    const [formerly, now] = [NOW - 5_000, NOW - 2_000];
    await log.record([
      entry({ at: NOW - 4_000, sinkCreatedAt: formerly }),
      entry({ at: NOW - 3_000, sinkCreatedAt: formerly, outcome: 'retry' }),
      // Was still under way.
      entry({ at: NOW - 1_000, sinkCreatedAt: formerly, outcome: 'retry' }),
      entry({ at: NOW - 500, sinkCreatedAt: now, latencyMs: 3 }),
      // From before the id was reused.
      entry({ at: NOW - 400, latencyMs: 4 }),
      entry({ at: NOW - 6_000 }),
    ]);
    expect(await readDeliveryHealth(log, { region: 'us', id: 'erp', createdAt: now }, NOW)).toEqual({
      attempts: 2,
      delivered: 2,
      successRate: 1,
      p50Ms: 3,
      p95Ms: 4,
      lastError: null,
    });
    const failed = await log.bySink('us', 'erp', { sinkCreatedAt: now, outcome: 'failed' });
    expect(failed).toEqual({ entries: [] });
  });

  test('without attempts is empty, and with failures only has no latencies', async () => {
    const log = logInMemory();
    expect(await readDeliveryHealth(log, { region: 'us', id: 'erp' }, NOW)).toEqual({
      attempts: 0,
      delivered: 0,
      ...{ successRate: null, p50Ms: null, p95Ms: null, lastError: null },
    });
    await log.record([entry({ at: NOW - 1, outcome: 'retry', status: 503 })]);
    expect(await readDeliveryHealth(log, { region: 'us', id: 'erp' }, NOW)).toEqual({
      attempts: 1,
      delivered: 0,
      ...{ successRate: 0, p50Ms: null, p95Ms: null },
      lastError: { at: NOW - 1, reason: 'The endpoint responded with status 503.' },
    });
  });
});
