/** The search: what it finds, for whom, and what it costs. One file: its suites share the rig and the helper that searches. */
import { randomUUID } from 'node:crypto';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { openLocalAccountSecrets } from '../../shared/accounts/credentials.ts';
import { deleteAccount } from '../../shared/accounts/managed-accounts.ts';
import { createApi } from '../../shared/api/app.ts';
import { createKey, OPERATOR } from '../../shared/api/keys.ts';
import { createRecipient, deleteRecipient, updateRecipient } from '../../shared/notifications/recipients.ts';
import { unfollowAccount } from '../../shared/notifications/settings.ts';
import { createAddressSealer } from '../../shared/notifications/unsubscribe.ts';
import { indexFormerData, removeItemEntries } from '../../shared/search/indexing.ts';
import { SEARCH_KINDS, type SearchResult, type SearchScope, search } from '../../shared/search/search.ts';
import { historySchema, keys, snapshotPk } from '../../shared/storage/schema.ts';
import {
  foldSearchText,
  isSearchable,
  MIN_SEARCH_LENGTH,
  toGroupSearchItem,
  toJobSearchItem,
  toSearchRange,
} from '../../shared/storage/search-index.ts';
import { createMemoryTable } from '../../shared/storage/sqlite-table.ts';
import type { Item, Table } from '../../shared/storage/table.ts';
import { KEPT_DAYS } from '../../shared/tracking/snapshot.ts';
import { apiParts } from '../support/api.ts';
import { runs } from '../support/runs.ts';
import { eachTable } from '../support/tables.ts';
import { createRig, START, watchedTable } from '../support/tracker.ts';

const REGION = 'us';
const ACME = { region: REGION, account: 'acme' };
const BOOTSTRAP = 'the-key-of-this-test';
const ALL: SearchScope = { accounts: null, addresses: true, isVisible: () => true };

/** Searches all kinds. Returns each result as `kind value`, and `account/job` of one with a job. */
async function find(table: Table, text: string, scope: SearchScope = ALL, limit = 20): Promise<string[]> {
  const { results } = await search(table, REGION, { text, kinds: SEARCH_KINDS, limit }, scope);
  return results.map(toLine);
}

const toLine = ({ kind, value, account, jobNumber }: SearchResult): string =>
  jobNumber === null ? `${kind} ${value}` : `${kind} ${value} ${account}/${jobNumber}`;

eachTable('the search index', (makeTable) => {
  test('finds a job by number, order number, order group and tracking number, as soon as it is committed', async () => {
    const rig = await createRig({ table: await makeTable() });
    const job = rig.upstream.createJob({ orderNumber: 'PO-Größe 7', orderGroup: 'Spring Sale' });
    await rig.poll();
    rig.upstream.dispatch(job, { tracking: [{ trackingNumber: '1Z 999 AA1', trackingLink: null }] });
    await rig.poll();
    expect(await find(rig.table, String(job).slice(0, 3))).toContain(`job ${job} acme/${job}`);
    expect(await find(rig.table, 'po-GRÖSSE')).toEqual([`orderNumber PO-Größe 7 acme/${job}`]);
    expect(await find(rig.table, '  SPRING   s')).toEqual(['orderGroup Spring Sale']);
    expect(await find(rig.table, '1z 999')).toEqual([`trackingNumber 1Z 999 AA1 acme/${job}`]);
    expect(await find(rig.table, 'AC')).toEqual(['account acme']);
    expect(await find(rig.table, 'nothing')).toEqual([]);
  });

  test('removes a former value with the commit that replaces it', async () => {
    const rig = await createRig({ table: await makeTable() });
    const job = rig.upstream.createJob({ orderNumber: 'First', orderGroup: 'Old group' });
    await rig.poll();
    rig.upstream.edit(job, { orderNumber: 'Second', orderGroup: 'New group' });
    await rig.poll();
    expect(await find(rig.table, 'first')).toEqual([]);
    expect(await find(rig.table, 'second')).toEqual([`orderNumber Second acme/${job}`]);
    expect(await rig.table.query(toSearchRange(REGION, 'orderNumber', 'first'))).toEqual([]);
    // The entry of a group belongs to all of its jobs. Without jobs, it finds nothing.
    expect(await find(rig.table, 'old')).toEqual([]);
    expect(await find(rig.table, 'new')).toEqual(['orderGroup New group']);
  });

  test('removes the entry of several tracking numbers that differ only in case and spaces', async () => {
    const rig = await createRig({ table: await makeTable() });
    const job = rig.upstream.createJob({});
    await rig.poll();
    const tracking = ['AB1', ' ab1'].map((trackingNumber) => ({ trackingNumber, trackingLink: null }));
    rig.upstream.dispatch(job, { tracking });
    await rig.poll();
    expect(await find(rig.table, 'ab1')).toHaveLength(1);
    rig.upstream.clearDateOut(job);
    rig.upstream.setTracking(job, []);
    await rig.pollTypes(2);
    expect(await rig.table.query(toSearchRange(REGION, 'trackingNumber', 'ab1'))).toEqual([]);
  });

  test('ignores entries whose job was not committed, and exact matches come first', async () => {
    const rig = await createRig({ table: await makeTable() });
    const job = rig.upstream.createJob({ orderNumber: 'AB12' });
    const other = rig.upstream.createJob({ orderNumber: 'AB' });
    await rig.poll();
    const stale = [toJobSearchItem(ACME, 'orderNumber', 'ABC', job), toGroupSearchItem(ACME, 'ABC')];
    await rig.table.putMany(stale.filter((item) => item !== undefined));
    expect(await find(rig.table, 'ab')).toEqual([
      `orderNumber AB acme/${other}`,
      `orderNumber AB12 acme/${job}`,
    ]);
  });

  test('entries of a job expire with it, and no longer when it is listed again', async () => {
    const rig = await createRig({
      table: await makeTable(),
      settings: { settlingDays: 0, settlingScheduleSeconds: [60] },
    });
    const job = rig.upstream.createJob({ orderNumber: 'Done' });
    await rig.poll();
    const entry = async () => (await rig.table.query(toSearchRange(REGION, 'orderNumber', 'done')))[0];
    expect((await entry())?.ttl).toBeUndefined();
    rig.upstream.close(job);
    for (let n = 0; n < 4 && (await entry())?.ttl === undefined; n += 1) await rig.poll();
    const snapshot = await rig.table.get(keys.snapshot(rig.ref, job));
    expect(Number((await entry())?.ttl)).toBeGreaterThan(START / 1000 + KEPT_DAYS * 86_400);
    expect((await entry())?.ttl).toBe(snapshot?.ttl);
    rig.upstream.reopen(job);
    for (let n = 0; n < 4 && (await entry())?.ttl !== undefined; n += 1) await rig.poll();
    expect((await entry())?.ttl).toBeUndefined();
  });

  test('finds a recipient by each word of the name, and by the complete address', async () => {
    const rig = await createRig({ table: await makeTable() });
    const deps = { table: rig.table, log: rig.log, now: rig.now, newId: randomUUID };
    const made = await createRecipient(deps, rig.ref, {
      name: 'Anna de Vries',
      email: 'Anna.Vries@example.com',
      mobile: '+1 202 555 0143',
    });
    if (made.kind !== 'created') throw new Error('not created');
    const { id } = made.recipient;
    const found = ['recipient Anna de Vries'];
    for (const text of ['anna', 'ANNA DE', 'de v', 'vries', 'anna.vries@EXAMPLE.com', '+1 (202) 555-0143']) {
      expect(await find(rig.table, text), text).toEqual(found);
    }
    expect(await find(rig.table, 'anna.vries@example')).toEqual([]);
    // Only keys that can read addresses can search for one.
    expect(await find(rig.table, 'anna.vries@example.com', { ...ALL, addresses: false })).toEqual([]);
    await updateRecipient(deps, rig.ref, id, { name: 'Bea', email: 'bea@example.com' });
    expect(await find(rig.table, 'anna')).toEqual([]);
    expect(await find(rig.table, 'anna.vries@example.com')).toEqual([]);
    expect(await find(rig.table, 'bea@example.com')).toEqual(['recipient Bea']);
    await deleteRecipient(deps, rig.ref, id);
    for (const text of ['bea', 'bea@example.com', '+12025550143']) {
      expect(await find(rig.table, text), text).toEqual([]);
    }
  });

  test('contains no address of a recipient in plain text', async () => {
    const items: Item[] = [];
    const inner = await makeTable();
    const table: Table = {
      ...watchedTable(inner),
      transact: (writes, token) => {
        items.push(...writes.flatMap((write) => ('put' in write ? [write.put] : [])));
        return inner.transact(writes, token);
      },
    };
    const rig = await createRig({ table });
    const deps = { table, log: rig.log, now: rig.now, newId: randomUUID };
    await createRecipient(deps, rig.ref, { email: 'secret.person@example.com', mobile: '+12025550143' });
    const entries = items.filter(({ pk }) => pk.startsWith('SEARCH#'));
    expect(entries).toHaveLength(2);
    expect(JSON.stringify(entries)).not.toMatch(/secret|person|example|2025550143/i);
  });

  test('a key for some accounts finds only those, and a search reads at most 500 entries of a kind', async () => {
    const table = await makeTable();
    const rig = await createRig({ table });
    const mine = rig.upstream.createJob({ orderNumber: 'PO-9', orderGroup: 'Shared' });
    await rig.poll();
    const others = Array.from({ length: 30 }, (_, at) =>
      toJobSearchItem({ region: REGION, account: 'zeta' }, 'orderNumber', `PO-${at + 10}`, at + 1),
    );
    await table.putMany(others.filter((item) => item !== undefined));
    const scope = (account: string): SearchScope => ({
      ...ALL,
      accounts: [account],
      isVisible: () => false,
    });
    expect(await find(table, 'po-', scope('acme'), 1)).toEqual([`orderNumber PO-9 acme/${mine}`]);
    expect(await find(table, 'po-', scope('zeta'))).toEqual([]);
    expect(await find(table, 'ac', scope('zeta'))).toEqual([]);
    expect(await find(table, 'shared', scope('zeta'))).toEqual([]);
    const limits: (number | undefined)[] = [];
    const watched: Table = {
      ...table,
      query: (query) => {
        limits.push(query.limit);
        return table.query(query);
      },
    };
    await find(watched, 'po-', scope('acme'));
    expect(Math.max(...limits.map((limit) => limit ?? Number.POSITIVE_INFINITY))).toBe(500);
  });

  test('a key for some accounts finds an account that follows accounts of the key that do not exist in the region', async () => {
    const { table } = await createRig({ table: await makeTable() });
    const scope = { ...ALL, accounts: ['ac-1', 'ac-2', 'ac-3', 'acme'] };
    expect(await find(table, 'ac', scope, 1)).toEqual(['account acme']);
  });

  test('jobs and recipients that an earlier version stored are indexed in portions, and again once no such version runs', async () => {
    const rig = await createRig({ table: await makeTable() });
    const { table } = rig;
    const deps = { table, log: rig.log, now: rig.now, newId: randomUUID };
    for (let n = 0; n < 130; n += 1) rig.upstream.createJob({ orderNumber: `Former ${n}` });
    await rig.poll();
    await createRecipient(deps, rig.ref, { name: 'Old Friend', email: 'old@example.com' });
    const stored = async (): Promise<Item[]> => [
      ...(await table.query({ pk: snapshotPk(rig.ref) })),
      ...(await table.query({ pk: `RECIPIENTS#us#acme` })),
    ];
    await removeItemEntries(table, rig.ref, await stored());
    expect(await find(table, 'former 1')).toEqual([]);

    const begin = rig.now();
    expect(await indexFormerData(table, REGION, begin, 1)).toBe(false);
    expect(await find(table, 'old friend')).toEqual([]);
    for (let n = 0; n < 4; n += 1) await indexFormerData(table, REGION, begin, 1);
    expect(await find(table, 'former 1', ALL, 20)).toHaveLength(20);
    expect(await find(table, 'old@example.com')).toEqual(['recipient Old Friend']);

    await removeItemEntries(table, rig.ref, await stored());
    expect(await indexFormerData(table, REGION, begin + 60_000, 10)).toBe(false);
    expect(await find(table, 'former 1')).toEqual([]);
    expect(await indexFormerData(table, REGION, begin + 21 * 60_000, 10)).toBe(true);
    expect(await find(table, 'former 129')).toHaveLength(1);
    const idle = watchedTable(table);
    await indexFormerData(idle, REGION, begin + 86_400_000, 10);
    expect(idle.calls).toEqual([{ call: 'get', of: ['CELL'] }]);
  });

  test('the deletion of an account removes its entries', async () => {
    const rig = await createRig({ table: await makeTable() });
    const { table } = rig;
    const deps = { table, log: rig.log, now: rig.now, newId: randomUUID };
    const job = rig.upstream.createJob({ orderNumber: 'Order', orderGroup: 'Group' });
    await rig.poll();
    await createRecipient(deps, rig.ref, { name: 'Person', email: 'person@example.com' });
    const seal = await createAddressSealer(table, REGION);
    const address = foldSearchText(seal({ channel: 'email', address: 'person@example.com' }));
    const readAll = async (): Promise<Item[]> => {
      const ranges = [
        toSearchRange(REGION, 'job', String(job)),
        toSearchRange(REGION, 'orderNumber', 'order'),
        toSearchRange(REGION, 'orderGroup', 'group'),
        toSearchRange(REGION, 'recipient', 'person'),
        toSearchRange(REGION, 'address', address),
      ];
      return (await Promise.all(ranges.map((range) => table.query(range)))).flat();
    };
    expect(await readAll()).toHaveLength(5);
    const deleted = await deleteAccount(
      {
        ...deps,
        history: createMemoryTable(historySchema),
        secrets: await openLocalAccountSecrets(table, new Uint8Array(32).fill(7)),
        removeReferences: async () => true,
        unfollowNotifications: unfollowAccount,
        removeSearchEntries: removeItemEntries,
        regions: [REGION],
        minIntervalSeconds: 1,
      },
      rig.ref,
    );
    expect(deleted).toEqual({ kind: 'deleted', complete: true });
    expect(await readAll()).toEqual([]);
  });

  test('a region without accounts needs no indexing', async () => {
    expect(await indexFormerData(await makeTable(), REGION, START, 1)).toBe(true);
  });
});

describe('GET /v1/search', () => {
  /** An API on an account with a job and a recipient. Returns a function that searches with a key. */
  async function serve() {
    const rig = await createRig();
    const { table, log, now } = rig;
    const deps = { table, log, now, newId: randomUUID };
    const job = rig.upstream.createJob({ orderNumber: 'PO-1', description: 'Cards' });
    await rig.poll();
    await createRecipient(deps, rig.ref, { name: 'Person', email: 'person@example.com' });
    const api = createApi({ table, log, regions: [REGION], ...apiParts(table, BOOTSTRAP, now), now });
    const get = async (query: string, key = BOOTSTRAP) => {
      const answer = await api.request(`/v1/search?${query}`, {
        headers: { authorization: `Bearer ${key}` },
      });
      const body = (await answer.json()) as { results?: SearchResult[]; detail?: string };
      return { status: answer.status, ...body };
    };
    const makeKey = async (input: object): Promise<string> => {
      const made = await createKey({ table, now }, { name: 'key', ...input }, OPERATOR);
      if (!('secret' in made)) throw new Error(JSON.stringify(made));
      return made.secret;
    };
    return { job: String(job), get, makeKey };
  }

  test('returns results with what identifies them, of the requested kinds', async () => {
    const { get } = await serve();
    const { status, results } = await get('q=po');
    expect(status).toBe(200);
    expect(results).toEqual([
      {
        ...{ kind: 'orderNumber', region: 'us', value: 'PO-1', account: 'acme', id: null },
        ...{ jobNumber: expect.any(Number), status: expect.any(String), description: 'Cards' },
      },
    ]);
    expect((await get('q=po&kinds=job,account')).results).toEqual([]);
    expect((await get('q=ac&kinds=job,account')).results).toHaveLength(1);
  });

  test('a key for some accounts finds nothing of others, and a key of role read no addresses', async () => {
    const { job, get, makeKey } = await serve();
    const [own, other, reading] = [
      await makeKey({ role: 'operate', accounts: ['acme'] }),
      await makeKey({ role: 'operate', accounts: ['zeta'] }),
      await makeKey({ role: 'read' }),
    ];
    for (const q of ['po', 'ac', 'person', 'person@example.com', job]) {
      expect((await get(`q=${q}`, own)).results, q).toHaveLength(1);
      expect((await get(`q=${q}`, other)).results, q).toEqual([]);
      expect((await get(`q=${q}`, reading)).results, q).toHaveLength(q.includes('@') ? 0 : 1);
    }
  });

  test('names the parameter that is invalid, and what is accepted', async () => {
    const { get } = await serve();
    for (const [query, detail] of [
      ['q=a', 'q must be 2 to 200 characters long.'],
      ['q=%20%20%20', 'q must be 2 to 200 characters long.'],
      ['q=ab&limit=21', 'limit must be an integer from 1 to 20.'],
      ['q=ab&kinds=job,orders', 'kinds must be comma-separated kinds: account, job,'],
      ['q=ab&region=mars', 'region must be one of the regions that are served here (us).'],
    ] as const) {
      const answer = await get(query);
      expect(answer.status, query).toBe(400);
      expect(answer.detail, query).toContain(detail);
    }
  });
});

describe('cost of the search index', () => {
  test('a new job costs one write per value, a change of other fields none, and a search at most eight queries', async () => {
    const inner = createMemoryTable();
    let written = 0;
    let queries = 0;
    const table: Table = {
      ...inner,
      putMany: (items) => {
        written += items.filter(({ pk }) => pk.startsWith('SEARCH#')).length;
        return inner.putMany(items);
      },
      query: (query) => {
        queries += 1;
        return inner.query(query);
      },
    };
    const rig = await createRig({ table });
    const job = rig.upstream.createJob({ orderNumber: 'PO-1', orderGroup: 'Group' });
    await rig.poll();
    expect(written).toBe(3);
    rig.upstream.setStatus(job, 'Scheduled');
    rig.upstream.edit(job, { description: 'Other' });
    await rig.poll();
    await rig.poll();
    expect(written).toBe(3);
    rig.upstream.dispatch(job, { tracking: [{ trackingNumber: 'T1', trackingLink: null }] });
    await rig.poll();
    expect(written).toBe(4);
    queries = 0;
    await find(table, 'a+b@example.com');
    await find(table, 'acme');
    expect(queries).toBeLessThanOrEqual(16);
  });
});

describe('a stored value', () => {
  test('is found by each of its beginnings of at least the minimum length, in any case', async () => {
    const segmenter = new Intl.Segmenter('en', { granularity: 'grapheme' });
    await fc.assert(
      fc.asyncProperty(fc.string({ unit: 'grapheme', minLength: 2, maxLength: 40 }), async (value) => {
        const table = createMemoryTable();
        const item = toJobSearchItem(ACME, 'orderNumber', value, 7);
        expect(item !== undefined).toBe(isSearchable(foldSearchText(value)));
        if (!item) return;
        await table.putMany([item]);
        const graphemes = [...segmenter.segment(value)].map(({ segment }) => segment);
        for (let length = MIN_SEARCH_LENGTH; length <= graphemes.length; length += 1) {
          const beginning = graphemes.slice(0, length).join('');
          for (const text of [
            beginning,
            beginning.toUpperCase(),
            beginning.toLowerCase(),
            ` ${beginning} `,
          ]) {
            const folded = foldSearchText(text);
            if (!isSearchable(folded)) continue;
            expect(await table.query(toSearchRange(REGION, 'orderNumber', folded)), text).toHaveLength(1);
            expect(foldSearchText(value).startsWith(folded), text).toBe(true);
          }
        }
      }),
      // A capital whose upper case is itself, but whose lower case has another upper case.
      { ...runs(200, 5_000), examples: [['STRAẞE !']] },
    );
  });
});
