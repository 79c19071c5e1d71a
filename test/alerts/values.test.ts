/** Values of conditions that are limited to accounts, while other accounts have many endpoints, dead events and failed messages. */
import { expect, test } from 'vitest';
import { createValueReader } from '../../shared/alerts/values.ts';
import { toMessageId } from '../../shared/notifications/message-ids.ts';
import { failedMessagesPk, historySchema, keys } from '../../shared/storage/schema.ts';
import { createMemoryTable } from '../../shared/storage/sqlite-table.ts';
import type { Item } from '../../shared/storage/table.ts';
import { watchedTable } from '../support/tracker.ts';

const NOW = Date.parse('2026-03-02T12:00:00Z');

/** Returns items of failed messages of an account. The changes that they report are the given number of hours old. */
function failedMessages(account: string, count: number, hours: number): Item[] {
  return Array.from({ length: count }, (_, at) => {
    const createdAt = NOW - hours * 3_600_000;
    const id = toMessageId(`e${String(at).padStart(32, '0')}`, createdAt);
    const message = JSON.stringify({ account, createdAt });
    const ref = { region: 'us', account };
    return { ...keys.sentMessage(ref, id), message, failedPk: failedMessagesPk('us'), failedAt: NOW };
  });
}

test('failed messages of an account are counted although other accounts have more and later ones', async () => {
  const [table, history] = [createMemoryTable(), createMemoryTable(historySchema)];
  await history.putMany([...failedMessages('acme', 501, 2), ...failedMessages('other', 600, 1)]);
  const read = createValueReader({ table, history }, 'us', NOW);
  const count = (accounts: string[] | null) => read({ condition: 'messages_failed', accounts });
  expect(await Promise.all([count(null), count(['acme']), count(['third'])])).toEqual([500, 500, 0]);
});

test('dead events of an account are counted although other accounts have more endpoints that failed later', async () => {
  const table = watchedTable(createMemoryTable());
  const items = Array.from({ length: 151 }, (_, at): Item[] => {
    const account = at === 0 ? 'acme' : 'other';
    const sink = { kind: 'webhook', target: 'x', accounts: [account], types: [], paused: false };
    const dead = keys.dead('us', `e${at}`, account, 1);
    return [
      { ...keys.sink('us', `e${at}`), ...sink, lastFailedAt: NOW + at },
      { ...dead, diedAt: NOW },
    ];
  });
  await table.putMany(items.flat());
  const read = createValueReader({ table, history: createMemoryTable(historySchema) }, 'us', NOW);
  const count = (accounts: string[] | null) => read({ condition: 'dead_events', accounts });
  expect(await Promise.all([count(['acme']), count(null), count(['other'])])).toEqual([1, 100, 100]);
  // All rules share the reads.
  expect(table.calls.filter(({ call, of }) => call === 'query' && of[0] === 'DEAD')).toHaveLength(101);
});
