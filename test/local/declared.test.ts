/** The work of a start on accounts and sinks, in numbers of reads and writes. */
import { randomUUID } from 'node:crypto';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { describe, expect, test } from 'vitest';
import { reconcile, withDeclared } from '../../local/declared.ts';
import { findAccount, toAccount } from '../../shared/accounts/accounts.ts';
import { openLocalAccountSecrets } from '../../shared/accounts/credentials.ts';
import { type AccountDeps, createAccount, deleteAccount } from '../../shared/accounts/managed-accounts.ts';
import { listSharedCredentials } from '../../shared/accounts/shared-credentials.ts';
import { ConfigError, parseConfig } from '../../shared/config.ts';
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
  await apply(table, {
    regions: ['us'],
    accounts: Array.from({ length: declared.accounts }, (_, at) => ({
      ...{ id: `a${at}`, region: 'us', clientId: `client-${at}`, clientSecret: 's', pollIntervalSeconds },
    })),
    endpoints: Array.from({ length: declared.endpoints }, (_, at) => ({
      id: `e${at}`,
      url: URL,
      secret: SECRET,
    })),
  });
}

/** Applies a configuration to a table. Returns the dependencies of later operations on accounts. */
async function apply(
  table: Table,
  declared: { regions: readonly string[]; accounts: readonly object[]; endpoints?: readonly object[] },
  removeReferences: AccountDeps['removeReferences'] = async () => true,
): Promise<AccountDeps> {
  const region = { baseUrl: 'https://api.example.com', authUrl: 'https://auth.example.com', realm: 'r' };
  const regions = Object.fromEntries(declared.regions.map((name) => [name, region]));
  const config = parseConfig({ ...declared, regions }, {});
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
    regions: declared.regions,
    removeReferences,
    unfollowNotifications: async () => {},
    removeSearchEntries: async () => {},
  };
  const host = { config, table, history: createMemoryTable(historySchema), secretKey: KEY, exclusive: true };
  await reconcile({ ...host, publicUrl: 'https://jobwire.example', onFault: () => {} }, accounts);
  return accounts;
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

/** An entry of the configuration file. */
const entry = (id: string, region: string) => ({ id, region, clientId: 'client', clientSecret: 's' });

describe('a start with an id of an account in another region', () => {
  const regions = ['us', 'eu'];
  const listRegions = async (table: Table, account: string) =>
    (await table.getMany(regions.map((region) => keys.account({ region, account })))).map(
      (item) => toAccount(item).region,
    );

  test('is rejected before it writes anything, until the account is deleted as the message describes', async () => {
    const table = createMemoryTable();
    await apply(table, { regions, accounts: [entry('acme', 'us')] });
    const moved = { regions, accounts: [entry('new', 'us'), entry('acme', 'eu')] };
    await expect(apply(table, moved)).rejects.toThrow(
      new ConfigError(
        'accounts: the id "acme" belongs to an account in the region us. Set that region again, or choose another id. To delete that account, remove the entry, start Jobwire, and run jobwire accounts delete acme --yes. Then add the entry again, and restart Jobwire.',
      ),
    );
    expect(await listRegions(table, 'new')).toEqual([]);
    await apply(table, { regions, accounts: [entry('acme', 'us')] });
    const running = await apply(table, { regions, accounts: [entry('new', 'us')] });
    await deleteAccount(running, { region: 'us', account: 'acme' });
    await apply(table, moved);
    expect(await listRegions(table, 'acme')).toEqual(['eu']);
  });

  test('is rejected if that account was created through the API', async () => {
    const table = createMemoryTable();
    const running = await apply(table, { regions, accounts: [] });
    const credentials = { clientId: 'client', clientSecret: 's' };
    await createAccount(running, { id: 'beta', region: 'us', credentials });
    for (const region of ['us', 'eu']) {
      await expect(apply(table, { regions, accounts: [entry('beta', region)] })).rejects.toThrow(
        /^accounts: the id "beta" belongs to an account in the region us, which was created through the API\. Choose another id\. To delete /,
      );
    }
  });

  test('completes the deletion of that account, also in API keys, before it creates the new one', async () => {
    const table = createMemoryTable();
    await apply(table, { regions, accounts: [entry('acme', 'us')] });
    const running = await apply(table, { regions, accounts: [] });
    const interrupted = { ...running, removeReferences: async () => false };
    await deleteAccount(interrupted, { region: 'us', account: 'acme' });
    const existing: string[][] = [];
    await apply(table, { regions: ['eu', 'us'], accounts: [entry('acme', 'eu')] }, async (ref, from) => {
      if (from === 'keys') existing.push(await listRegions(table, ref.account));
      return true;
    });
    expect(existing).toEqual([[]]);
    expect(await listRegions(table, 'acme')).toEqual(['eu']);
  });

  test('in the data of an earlier version is rejected, until one of the two accounts is deleted as the message describes', async () => {
    const table = createMemoryTable();
    // An earlier version, or a time at which the configuration did not have the other region.
    await apply(table, { regions: ['eu'], accounts: [entry('acme', 'eu')] });
    await apply(table, { regions: ['us'], accounts: [entry('acme', 'us')] });
    const of = (kept: string, other: string) => ({
      ...{ kept, other, accounts: [entry('acme', kept)] },
      advice: `accounts: the id "acme" belongs to an account in the region ${other}. Choose another id. To delete that account, remove the entry, put ${other} first in regions, start Jobwire, and run jobwire accounts delete acme --yes.`,
    });
    for (const { accounts, advice } of [of('eu', 'us'), of('us', 'eu')]) {
      await expect(apply(table, { regions, accounts })).rejects.toThrow(advice);
    }
    const running = await apply(table, { regions: ['us', 'eu'], accounts: [] });
    const addressed = await findAccount(table, running.regions, 'acme');
    expect(addressed?.region).toBe('us');
    await deleteAccount(running, { region: 'us', account: 'acme' });
    await apply(table, { regions, accounts: [entry('acme', 'eu')] });
    expect(await listRegions(table, 'acme')).toEqual(['eu']);
  });
});

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
