/** The work of a start on accounts and sinks, in numbers of reads and writes. */
import { randomUUID } from 'node:crypto';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { reconcile, withDeclared } from '../../local/declared.ts';
import { openLocalAccountSecrets } from '../../shared/accounts/credentials.ts';
import type { AccountDeps } from '../../shared/accounts/managed-accounts.ts';
import { listSharedCredentials } from '../../shared/accounts/shared-credentials.ts';
import { parseConfig } from '../../shared/config.ts';
import { newSigningSecret } from '../../shared/delivery/signing-secrets.ts';
import { listDueWork } from '../../shared/delivery/wakes.ts';
import { createEventLog } from '../../shared/log/log.ts';
import { historySchema, keys } from '../../shared/storage/schema.ts';
import { createMemoryTable } from '../../shared/storage/sqlite-table.ts';
import type { Key, Table } from '../../shared/storage/table.ts';

const URL = 'https://erp.example.com/hook';
const SECRET = newSigningSecret();
const KEY = Buffer.alloc(32, 1);

/** Applies a configuration with numbers of accounts and endpoints to a table. */
async function start(
  table: Table,
  declared: { accounts: number; endpoints: number; intervalSeconds?: number },
) {
  const { intervalSeconds: pollIntervalSeconds = 60 } = declared;
  const config = parseConfig(
    {
      regions: {
        us: { baseUrl: 'https://api.example.com', authUrl: 'https://auth.example.com', realm: 'us' },
      },
      accounts: Array.from({ length: declared.accounts }, (_, at) => ({
        ...{ id: `a${at}`, region: 'us', clientId: `client-${at}`, clientSecret: 's', pollIntervalSeconds },
      })),
      endpoints: Array.from({ length: declared.endpoints }, (_, at) => ({
        id: `e${at}`,
        url: URL,
        secret: SECRET,
      })),
    },
    {},
  );
  const now = Date.now;
  const log = createEventLog(table, { now, newId: randomUUID, schemaBaseUrl: 'https://jobwire.example' });
  const accounts: AccountDeps = {
    ...{
      table,
      history: createMemoryTable(historySchema),
      log,
      now,
      newId: randomUUID,
      minIntervalSeconds: 1,
      lateWritesMs: 0,
    },
    secrets: withDeclared(await openLocalAccountSecrets(table, KEY), config),
    regions: ['us'],
    removeReferences: async () => true,
    unfollowNotifications: async () => {},
    removeSearchEntries: async () => {},
  };
  const host = { config, table, history: createMemoryTable(historySchema), secretKey: KEY, exclusive: true };
  await reconcile({ ...host, publicUrl: 'https://jobwire.example', onFault: () => {} }, accounts);
}

/** Stores endpoints that were created through the API. */
const fill = (table: Table, count: number) =>
  table.putMany(
    Array.from({ length: count }, (_, at) => ({
      ...{ ...keys.sink('us', `managed-${at}`), kind: 'webhook', target: URL, accounts: ['a0'], types: [] },
      ...{ createdAt: 1, revision: 1 },
    })),
  );

/** Returns the keys of all single reads of some work on a table. */
async function listReads(stored: Table, work: (table: Table) => Promise<void>): Promise<readonly Key[]> {
  const reads: Key[] = [];
  await work({
    ...stored,
    get(key) {
      reads.push(key);
      return stored.get(key);
    },
    getMany(wanted) {
      reads.push(...wanted);
      return stored.getMany(wanted);
    },
  });
  return reads;
}

describe('a start', () => {
  test('reads each log twice, however many endpoints follow it, and no endpoint of the API that is not leased', async () => {
    const count = async (endpoints: number, managed: number) => {
      const table = createMemoryTable();
      await start(table, { accounts: 10, endpoints });
      await fill(table, managed);
      const reads = await listReads(table, (watched) => start(watched, { accounts: 10, endpoints }));
      return {
        heads: reads.filter(({ sk }) => sk === 'HEAD').length,
        managed: reads.filter(({ sk }) => sk.startsWith('managed-')).length,
        all: reads.length,
      };
    };
    const few = await count(2, 5);
    const many = await count(20, 50);
    // The 10 accounts and the log of the region, and whether the feed was started.
    expect(few.heads).toBe(2 * 11 + 1);
    expect(many.heads).toBe(few.heads);
    expect(many.managed).toBe(0);
    // Each further declared endpoint: whether its id is free, and its record.
    expect(many.all - few.all).toBe(2 * 18);
  });

  test('writes changed accounts concurrently, so that the writer commits them together', async () => {
    const stored = createMemoryTable();
    await start(stored, { accounts: 40, endpoints: 1 });
    let [running, most, all] = [0, 0, 0];
    const watched: Table = {
      ...stored,
      async transact(...asked) {
        running += 1;
        all += 1;
        most = Math.max(most, running);
        await nextTurn();
        running -= 1;
        return stored.transact(...asked);
      },
    };
    await start(watched, { accounts: 40, endpoints: 1, intervalSeconds: 30 });
    expect({ all, most }).toEqual({ all: 40, most: 32 });
  });

  test('finds accounts with the same credentials in a number of steps that is proportional to the number of accounts', () => {
    let reads = 0;
    const list = Array.from({ length: 1_000 }, (_, at) => ({
      ...{ account: `a${at}`, region: 'us', secretRef: `a${at}` },
      get clientHash() {
        reads += 1;
        return `client ${at < 3 ? 'shared' : at}`;
      },
    }));
    expect([...listSharedCredentials(list)]).toEqual([
      'The accounts "a0", "a1" and "a2" in region us have the same credentials, so each of them reports the same jobs.',
    ]);
    expect(reads).toBeLessThan(5 * list.length);
  });

  test('delivers an event that another process records while an endpoint of a known account is being stored', async () => {
    const stored = createMemoryTable();
    await start(stored, { accounts: 1, endpoints: 0 });
    const log = createEventLog(stored, {
      now: Date.now,
      newId: randomUUID,
      schemaBaseUrl: 'https://a.example',
    });
    const ref = { region: 'us', account: 'a0' };
    const table: Table = {
      ...stored,
      async write(...asked) {
        const [written] = asked;
        // After the cursor was placed, and before a wake-up finds the endpoint.
        if ('update' in written && written.update.sk === 'e0') {
          const observed = { at: new Date().toISOString(), since: null, view: 'list' as const };
          const data = { observed, status: 'Shipped' };
          await log.append(ref, [{ type: 'status.discovered', time: Date.now(), data }]);
        }
        return stored.write(...asked);
      },
    };
    await start(table, { accounts: 1, endpoints: 1 });
    expect(await listDueWork(stored, 'us', 'e0')).toMatchObject([{ sk: 'a0' }]);
  });
});
