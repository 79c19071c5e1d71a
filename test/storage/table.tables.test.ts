/**
 * The table interface: guarantees of both implementations, and the retries of the DynamoDB adapter.
 * One file: each guarantee runs on both implementations.
 */
import { randomUUID } from 'node:crypto';
import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { mapValues } from '../../shared/map-values.ts';
import { createDynamoTable } from '../../shared/storage/dynamo-table.ts';
import { createMemoryTable } from '../../shared/storage/sqlite-table.ts';
import {
  type Clause,
  compareText,
  estimateSize,
  type Item,
  type Key,
  MAX_TRANSACTION_ACTIONS,
  type Table,
  TableError,
  type Write,
} from '../../shared/storage/table.ts';
import {
  awsError,
  cancelledFor,
  eachTable,
  type FaultyWire,
  mayUseNetwork,
  startFaultyWire,
  testDynamo,
  type WireCall,
} from '../support/tables.ts';

const key = (sk: string, pk = 'P'): { pk: string; sk: string } => ({ pk, sk });
const token = (): string => randomUUID();

/** Texts whose order by UTF-16 code unit is not their order by code point. */
const WIDE = '\uff5e';
const BEYOND = '\u{1f600}';

eachTable(
  'The table',
  (makeTable, kind, makeHistoryTable) => {
    let table: Table;
    beforeEach(async () => {
      table = await makeTable();
    });

    const put = (item: Item) => table.write({ put: item });
    const fill = async (items: readonly Item[]): Promise<void> => {
      for (let at = 0; at < items.length; at += 100) {
        await table.transact(
          items.slice(at, at + 100).map((item) => ({ put: item })),
          token(),
        );
      }
    };

    describe('stored items', () => {
      test('are read as they were put, each kind of value', async () => {
        const item: Item = {
          ...key('1'),
          text: 'naïve “text” 😀',
          empty: '',
          whole: 1_234_567_890_123_456,
          part: 0.1,
          negative: -5,
          yes: true,
          no: false,
          nothing: null,
          list: ['b', 'a', 'b'],
          none: [],
        };
        await put(item);
        expect(await table.get(key('1'))).toEqual(item);
        expect(await table.query({ pk: 'P' })).toEqual([item]);
        expect(await table.getMany([key('1')])).toEqual([item]);
      });

      test('have binary values byte for byte', async () => {
        const bytes = Uint8Array.from({ length: 3000 }, (_, at) => (at * 7) % 256);
        await put({ ...key('1'), bytes, none: new Uint8Array(0) });
        const read = await table.get(key('1'));
        expect(read?.bytes).toBeInstanceOf(Uint8Array);
        expect(Array.from(read?.bytes as Uint8Array)).toEqual(Array.from(bytes));
        expect(Array.from(read?.none as Uint8Array)).toEqual([]);
      });

      test('have no absent attributes', async () => {
        await put({ ...key('1'), a: undefined, b: 1 });
        expect(Object.keys((await table.get(key('1'))) ?? {}).sort()).toEqual(['b', 'pk', 'sk']);
      });

      test('do not change when the caller changes its object later', async () => {
        const list = ['a'];
        await put({ ...key('1'), list });
        list.push('b');
        const read = (await table.get(key('1'))) as Record<string, unknown>;
        (read.list as string[]).push('c');
        expect((await table.get(key('1')))?.list).toEqual(['a']);
      });

      test('are missing if they were never written', async () => {
        expect(await table.get(key('1'))).toBeUndefined();
        expect(await table.getMany([key('1'), key('2')])).toEqual([]);
        expect(await table.getMany([])).toEqual([]);
        expect(await table.query({ pk: 'P' })).toEqual([]);
      });

      test('over a hundred keys are read together, each item once', async () => {
        const items = Array.from({ length: 250 }, (_, at) => ({ ...key(`${at}`, `P${at % 7}`), at }));
        await fill(items);
        const wanted = [...items, ...items.slice(0, 5)].map(({ pk, sk }) => ({ pk, sk }));
        const read = await table.getMany([...wanted, key('none')]);
        expect(read.map(({ at }) => Number(at)).sort((a, b) => a - b)).toEqual(items.map(({ at }) => at));
      });

      test('over 400 KB are rejected, with their transaction', async () => {
        const big = { ...key('big'), text: 'x'.repeat(410_000) };
        await expect(put(big)).rejects.toThrow(TableError);
        await put({ ...key('grows'), text: 'x'.repeat(390_000) });
        await expect(
          table.write({ update: key('grows'), set: { more: 'x'.repeat(20_000) } }),
        ).rejects.toThrow(TableError);
        await expect(table.transact([{ put: { ...key('small') } }, { put: big }], token())).rejects.toThrow(
          TableError,
        );
        expect((await table.query({ pk: 'P' })).map(({ sk }) => sk)).toEqual(['grows']);
        expect((await table.get(key('grows')))?.more).toBeUndefined();
      });

      test('just under 400 KB, by our size estimate, are stored', async () => {
        const item = { ...key('1'), text: 'é'.repeat(199_900), at: 5 };
        expect(estimateSize(item)).toBeGreaterThan(399_800);
        expect(estimateSize(item)).toBeLessThan(400_000);
        expect(await put(item)).toMatchObject({ done: true });
      });
    });

    describe('writes', () => {
      test('a put replaces the whole item', async () => {
        await put({ ...key('1'), a: 1, b: 2 });
        expect(await table.write({ put: { ...key('1'), b: 3 } })).toEqual({
          done: true,
          item: { ...key('1'), b: 3 },
        });
        expect(await table.get(key('1'))).toEqual({ ...key('1'), b: 3 });
      });

      test('an update sets the named attributes, removes those that are undefined, and leaves the rest', async () => {
        await put({ ...key('1'), a: 1, b: 2, c: 3 });
        expect(await table.write({ update: key('1'), set: { a: 10, b: undefined, d: 4 } })).toEqual({
          done: true,
          item: { ...key('1'), a: 10, c: 3, d: 4 },
        });
        expect(await table.get(key('1'))).toEqual({ ...key('1'), a: 10, c: 3, d: 4 });
      });

      test('an update that only removes leaves the rest', async () => {
        await put({ ...key('1'), a: 1, b: 2 });
        await table.write({ update: key('1'), set: { a: undefined, never: undefined } });
        expect(await table.get(key('1'))).toEqual({ ...key('1'), b: 2 });
      });

      test('an update creates a missing item', async () => {
        await table.write({ update: key('1'), set: { a: 1 } });
        expect(await table.get(key('1'))).toEqual({ ...key('1'), a: 1 });
      });

      test('an update adds to numbers, of which an absent one counts as 0, also in a missing item', async () => {
        const add = { sum: 3, other: -1 };
        expect(await table.write({ update: key('1'), set: {}, add })).toEqual({
          done: true,
          item: { ...key('1'), sum: 3, other: -1 },
        });
        expect(
          await table.write({ update: key('1'), set: { sum2: 1, other: undefined }, add: { sum: 4 } }),
        ).toEqual({
          done: true,
          item: { ...key('1'), sum: 7, sum2: 1 },
        });
        expect(
          await table.write({ update: key('1'), set: {}, add: { sum: 1 }, when: [['sum', '=', 0]] }),
        ).toMatchObject({ done: false });
        await Promise.all(
          Array.from({ length: 20 }, () => table.write({ update: key('1'), set: {}, add: { sum: 1 } })),
        );
        expect(await table.get(key('1'))).toMatchObject({ sum: 27 });
      });

      test('an empty update changes nothing', async () => {
        await put({ ...key('1'), a: 1 });
        expect(await table.write({ update: key('1'), set: {} })).toEqual({
          done: true,
          item: { ...key('1'), a: 1 },
        });
        expect(await table.write({ update: key('1'), set: {}, when: [['a', '=', 2]] })).toMatchObject({
          done: false,
        });
        await expect(table.transact([{ update: key('1'), set: {} }], token())).rejects.toThrow(TableError);
      });

      test('attribute names can be reserved words of the expression language', async () => {
        await table.write({
          update: key('1'),
          set: { name: 'a', status: 'b', size: 1, 'with.dot': 2, 'with space': 3, ':colon': 4, '#hash': 5 },
          when: [
            ['status', 'absent'],
            ['with.dot', 'absent'],
          ],
        });
        expect(await table.get(key('1'))).toEqual({
          ...key('1'),
          name: 'a',
          status: 'b',
          size: 1,
          'with.dot': 2,
          'with space': 3,
          ':colon': 4,
          '#hash': 5,
        });
      });

      test('a delete removes the item, and a second one has no effect', async () => {
        await put({ ...key('1'), a: 1 });
        expect(await table.write({ delete: key('1') })).toEqual({ done: true });
        expect(await table.get(key('1'))).toBeUndefined();
        expect(await table.write({ delete: key('1') })).toEqual({ done: true });
      });

      test('a rejected write changes nothing and returns the current item', async () => {
        const item = { ...key('1'), a: 1 };
        await put(item);
        const when: Clause[] = [['a', '=', 2]];
        const refused = { done: false, item };
        expect(await table.write({ put: { ...key('1'), a: 5 }, when })).toEqual(refused);
        expect(await table.write({ update: key('1'), set: { a: 5 }, when })).toEqual(refused);
        expect(await table.write({ delete: key('1'), when })).toEqual(refused);
        expect(await table.get(key('1'))).toEqual(item);
      });

      test('a rejected write of a missing item returns none', async () => {
        expect(await table.write({ update: key('1'), set: { a: 5 }, when: [['a', 'present']] })).toEqual({
          done: false,
        });
        expect(await table.get(key('1'))).toBeUndefined();
      });

      test('of many concurrent conditional writes exactly one wins', async () => {
        await put({ ...key('1'), revision: 0 });
        const outcomes = await Promise.all(
          Array.from({ length: 20 }, (_, by) =>
            table.write({ update: key('1'), set: { revision: 1, by }, when: [['revision', '=', 0]] }),
          ),
        );
        const winners = outcomes.flatMap(({ done }, by) => (done ? [by] : []));
        expect(winners).toHaveLength(1);
        expect((await table.get(key('1')))?.by).toBe(winners[0]);
      });
    });

    describe('putting many items', () => {
      test('any number of items over any partitions, each completely and replacing earlier ones', async () => {
        const items = Array.from({ length: 120 }, (_, at) => ({
          ...key(String(at).padStart(3, '0'), `P${at % 7}`),
          at,
          list: ['a'],
          none: undefined,
        }));
        await put({ ...key('000', 'P0'), old: 1 });
        await table.putMany(items);
        const read = (
          await Promise.all([0, 1, 2, 3, 4, 5, 6].map((one) => table.query({ pk: `P${one}` })))
        ).flat();
        expect(read.toSorted((a, b) => Number(a.at) - Number(b.at))).toEqual(
          items.map(({ none: _, ...item }) => item),
        );
        await table.putMany([]);
      });

      test('of items with the same key the last one counts, at any distance', async () => {
        const others = Array.from({ length: 60 }, (_, at) => key(String(at), 'others'));
        await table.putMany([
          { ...key('1'), a: 1 },
          { ...key('2'), a: 1 },
          { ...key('1'), b: 2 },
          ...others,
          { ...key('2'), b: 3 },
        ]);
        expect(await table.query({ pk: 'P' })).toEqual([
          { ...key('1'), b: 2 },
          { ...key('2'), b: 3 },
        ]);
        expect(await table.query({ pk: 'others' })).toHaveLength(60);
      });

      test('an item over 400 KB is rejected with its batch', async () => {
        await expect(
          table.putMany([key('1'), { ...key('2'), text: 'x'.repeat(410_000) }, key('3')]),
        ).rejects.toThrow(TableError);
        expect(await table.query({ pk: 'P' })).toEqual([]);
      });

      test('do not change when the caller changes its object later', async () => {
        const list = ['a'];
        await table.putMany([{ ...key('1'), list }]);
        list.push('b');
        expect((await table.get(key('1')))?.list).toEqual(['a']);
      });

      test('indexes follow', async () => {
        await table.putMany([
          { ...key('a'), duePk: 'D', dueSk: '2' },
          { ...key('b'), duePk: 'D', dueSk: '1' },
          { ...key('c'), duePk: 'D', dueSk: '3' },
          key('c'),
        ]);
        expect((await table.query({ pk: 'D', index: 'due' })).map(({ sk }) => sk)).toEqual(['b', 'a']);
      });
    });

    describe('conditions', () => {
      // Each row: the clause on an item { number: 5, text: '5', wide: WIDE, flag: true, nothing: null, bytes }, and whether it
      // is true.
      const rows: [Clause, boolean][] = [
        [['number', 'present'], true],
        [['missing', 'present'], false],
        [['nothing', 'present'], true],
        [['flag', 'present'], true],
        [['number', 'absent'], false],
        [['missing', 'absent'], true],
        [['nothing', 'absent'], false],
        [['number', '=', 5], true],
        [['number', '=', 6], false],
        [['number', '=', '5'], false],
        [['text', '=', '5'], true],
        [['text', '=', 5], false],
        [['missing', '=', 5], false],
        [['nothing', '=', 0], false],
        [['flag', '=', 1], false],
        [['bytes', '=', '5'], false],
        [['number', '<', 6], true],
        [['number', '<', 5], false],
        [['number', '<', 10], true],
        [['number', '<', '6'], false],
        [['text', '<', '6'], true],
        [['text', '<', '5'], false],
        [['text', '<', '10'], false],
        [['text', '<', 6], false],
        [['missing', '<', 6], false],
        [['number', '<=', 5], true],
        [['number', '<=', 4], false],
        [['text', '<=', '5'], true],
        [['text', '<=', '4'], false],
        [['missing', '<=', 5], false],
        [['number', '>', 4], true],
        [['number', '>', 5], false],
        [['number', '>', '4'], false],
        [['text', '>', '4'], true],
        [['text', '>', '5'], false],
        [['text', '>', '10'], true],
        [['text', '>', ''], true],
        [['missing', '>', 0], false],
        [['nothing', '>', -1], false],
        [['number', 'absent or =', 5], true],
        [['number', 'absent or =', 6], false],
        [['number', 'absent or =', '5'], false],
        [['missing', 'absent or =', 5], true],
        [['number', 'absent or <', 6], true],
        [['number', 'absent or <', 5], false],
        [['missing', 'absent or <', 5], true],
        [['nothing', 'absent or <', 5], false],
        [['number', 'absent or <=', 5], true],
        [['number', 'absent or <=', 4], false],
        [['missing', 'absent or <=', 5], true],
        [['wide', '<', BEYOND], true],
        [['wide', '>', BEYOND], false],
        [['pk', '=', 'P'], true],
        [['pk', 'absent'], false],
      ];
      const item: Item = {
        ...key('1'),
        number: 5,
        text: '5',
        wide: WIDE,
        flag: true,
        nothing: null,
        bytes: new Uint8Array([53]),
      };

      test('each kind of clause is true exactly when it should be, alone and in a transaction', async () => {
        await put(item);
        for (const [clause, holds] of rows) {
          const single = await table.write({ update: key('1'), set: { touched: 1 }, when: [clause] });
          expect(single.done, `write when ${JSON.stringify(clause)}`).toBe(holds);
          const writes: Write[] = [{ check: key('1'), when: [clause] }];
          const together = await table.transact(writes, token());
          expect(together.done, `check when ${JSON.stringify(clause)}`).toBe(holds);
        }
      });

      test('for a missing item only absence is true', async () => {
        for (const [[attribute, ...rest]] of rows) {
          const clause = [attribute, ...rest] as unknown as Clause;
          const outcome = await table.transact([{ check: key('none'), when: [clause] }], token());
          expect(outcome.done, JSON.stringify(clause)).toBe(String(clause[1]).startsWith('absent'));
        }
      });

      test('all clauses must be true, and no clause is always true', async () => {
        await put(item);
        const both = (second: Clause): Clause[] => [['number', '=', 5], second];
        expect(await table.transact([{ check: key('1'), when: both(['text', '=', '5']) }], token())).toEqual({
          done: true,
        });
        expect(await table.transact([{ check: key('1'), when: both(['text', '=', 'x']) }], token())).toEqual({
          done: false,
          failed: [0],
        });
        expect(await table.transact([{ check: key('none'), when: [] }], token())).toEqual({ done: true });
        expect(await table.write({ update: key('1'), set: { a: 1 }, when: [] })).toMatchObject({
          done: true,
        });
      });
    });

    describe('transactions', () => {
      test('execute all writes, of each kind', async () => {
        await fill([
          { ...key('update'), a: 1 },
          { ...key('delete'), a: 1 },
          { ...key('check'), a: 1 },
        ]);
        expect(
          await table.transact(
            [
              { put: { ...key('put'), a: 1 }, when: [['pk', 'absent']] },
              { update: key('update'), set: { a: undefined, b: 2 }, when: [['a', '=', 1]] },
              { delete: key('delete'), when: [['a', '=', 1]] },
              { check: key('check'), when: [['a', '=', 1]] },
            ],
            token(),
          ),
        ).toEqual({ done: true });
        expect(await table.query({ pk: 'P' })).toEqual([
          { ...key('check'), a: 1 },
          { ...key('put'), a: 1 },
          { ...key('update'), b: 2 },
        ]);
      });

      test('execute nothing if one condition fails, and name every failed position', async () => {
        await put({ ...key('a'), revision: 1 });
        expect(
          await table.transact(
            [
              { put: { ...key('b') } },
              { update: key('a'), set: { revision: 3 }, when: [['revision', '=', 2]] },
              { delete: key('c') },
              { check: key('d'), when: [['pk', 'present']] },
              { put: { ...key('e') }, when: [['pk', 'absent']] },
            ],
            token(),
          ),
        ).toEqual({ done: false, failed: [1, 3] });
        expect(await table.query({ pk: 'P' })).toEqual([{ ...key('a'), revision: 1 }]);
      });

      test('of a hundred actions are written completely; a hundred and one, or none, are rejected', async () => {
        const puts = Array.from({ length: MAX_TRANSACTION_ACTIONS + 1 }, (_, at) => ({
          put: { ...key(String(at).padStart(3, '0')), at },
        }));
        expect(await table.transact(puts.slice(0, MAX_TRANSACTION_ACTIONS), token())).toEqual({ done: true });
        expect(await table.query({ pk: 'P' })).toHaveLength(MAX_TRANSACTION_ACTIONS);
        await expect(table.transact(puts, token())).rejects.toThrow(TableError);
        await expect(table.transact([], token())).rejects.toThrow(TableError);
      });

      test('with two actions on one item are rejected, for any kinds', async () => {
        await expect(
          table.transact(
            [{ put: { ...key('1'), a: 1 } }, { check: key('1'), when: [['pk', 'absent']] }],
            token(),
          ),
        ).rejects.toThrow(TableError);
        expect(await table.get(key('1'))).toBeUndefined();
      });

      test('keys that look alike only when concatenated are different items', async () => {
        const writes = [
          { put: key('b', 'a#b') },
          { put: key('b#b', 'a') },
          { put: key('\nb', 'a') },
          { put: key('b', 'a\n') },
        ];
        expect(await table.transact(writes, token())).toEqual({ done: true });
      });

      test('the same token again is the same call: executed once', async () => {
        const once = token();
        const writes: Write[] = [
          { update: key('1'), set: { revision: 1 }, when: [['revision', 'absent']] },
          { put: { ...key('2') }, when: [['pk', 'absent']] },
        ];
        expect(await table.transact(writes, once)).toEqual({ done: true });
        expect(await table.transact(writes, once)).toEqual({ done: true });
        await table.transact([{ update: key('1'), set: { revision: 2 } }, { delete: key('2') }], token());
        expect(await table.transact(writes, once)).toEqual({ done: true });
        expect(await table.query({ pk: 'P' })).toEqual([{ ...key('1'), revision: 2 }]);
      });

      test('the same writes with another token are another call', async () => {
        const writes: Write[] = [{ put: { ...key('1') }, when: [['pk', 'absent']] }];
        expect(await table.transact(writes, token())).toEqual({ done: true });
        expect(await table.transact(writes, token())).toEqual({ done: false, failed: [0] });
      });

      test('a token for other writes, or for the same with other values, is rejected', async () => {
        const once = token();
        await table.transact([{ put: { ...key('1'), a: 1 } }], once);
        await expect(table.transact([{ put: { ...key('1'), a: 2 } }], once)).rejects.toThrow(TableError);
        await expect(table.transact([{ put: { ...key('2'), a: 1 } }], once)).rejects.toThrow(TableError);
        expect(await table.query({ pk: 'P' })).toEqual([{ ...key('1'), a: 1 }]);
      });

      test('a token whose transaction failed is evaluated again', async () => {
        const once = token();
        const writes: Write[] = [{ put: { ...key('1') }, when: [['pk', 'absent']] }];
        await put(key('1'));
        expect(await table.transact(writes, once)).toEqual({ done: false, failed: [0] });
        await table.write({ delete: key('1') });
        expect(await table.transact(writes, once)).toEqual({ done: true });
      });

      test('of transactions that compete for one item exactly one is written', async () => {
        await put({ ...key('fence'), revision: 0 });
        const outcomes = await Promise.all(
          Array.from({ length: 20 }, (_, by) =>
            table.transact(
              [
                { update: key('fence'), set: { revision: 1 }, when: [['revision', '=', 0]] },
                { put: key(`by-${by}`, 'Q') },
              ],
              token(),
            ),
          ),
        );
        const winners = outcomes.flatMap(({ done }, by) => (done ? [`by-${by}`] : []));
        expect(winners).toHaveLength(1);
        expect((await table.query({ pk: 'Q' })).map(({ sk }) => sk)).toEqual(winners);
      });
    });

    describe('range reads', () => {
      const sks = ['a', 'b', 'c', 'd', 'e'];
      beforeEach(() => fill([...sks, 'f'].map((sk) => key(sk, sk === 'f' ? 'other' : 'P'))));
      const read = async (range: object): Promise<string> =>
        (await table.query({ pk: 'P', ...range })).map(({ sk }) => sk).join('');

      test.each([
        [{}, 'abcde'],
        [{ from: 'b' }, 'bcde'],
        [{ from: 'bb' }, 'cde'],
        [{ from: '' }, 'abcde'],
        [{ after: 'b' }, 'cde'],
        [{ after: 'bb' }, 'cde'],
        [{ after: '' }, 'abcde'],
        [{ after: 'e' }, ''],
        [{ to: 'b' }, 'ab'],
        [{ to: 'bb' }, 'ab'],
        [{ to: '' }, ''],
        [{ to: 'A' }, ''],
        [{ from: 'b', to: 'd' }, 'bcd'],
        [{ from: 'b', to: 'b' }, 'b'],
        [{ after: 'b', to: 'd' }, 'cd'],
        [{ after: 'b', to: 'b' }, ''],
        [{ after: 'bb', to: 'bc' }, ''],
        [{ from: 'd', to: 'b' }, ''],
        [{ after: 'd', to: 'b' }, ''],
        [{ from: BEYOND, to: WIDE }, ''],
        [{ from: 'a', after: 'c' }, 'de'],
        [{ limit: 2 }, 'ab'],
        [{ limit: 0 }, ''],
        [{ limit: 50 }, 'abcde'],
        [{ after: 'a', to: 'e', limit: 2 }, 'bc'],
        [{ after: 'a', to: 'b', limit: 1 }, 'b'],
        [{ descending: true }, 'edcba'],
        [{ descending: true, limit: 2 }, 'ed'],
        [{ descending: true, to: 'd', limit: 2 }, 'dc'],
        [{ descending: true, after: 'b', to: 'd' }, 'dc'],
        [{ descending: true, after: 'c', limit: 5 }, 'ed'],
      ])('%j returns exactly %j', async (range, expected) => {
        expect(await read(range)).toBe(expected);
      });

      test('sort keys are in the order of their UTF-8 bytes', async () => {
        const texts = ['Z', 'z', 'é', 'ퟻ', WIDE, BEYOND, `${BEYOND}a`, '\u{10ffff}', 'zz', '#', 'a#', 'a'];
        await fill(texts.map((sk) => key(sk, 'order')));
        const bytewise = texts.toSorted((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
        expect((await table.query({ pk: 'order' })).map(({ sk }) => sk)).toEqual(bytewise);
        expect(texts.toSorted(compareText)).toEqual(bytewise);
      });

      test('a partition over a megabyte is read completely, in order, in either direction', async () => {
        const many = Array.from({ length: 30 }, (_, at) => key(String(at).padStart(2, '0'), 'large'));
        for (const one of many) await put({ ...one, text: 'x'.repeat(100_000) });
        const all = many.map(({ sk }) => sk);
        const readSks = async (range: object) =>
          (await table.query({ pk: 'large', ...range })).map(({ sk }) => sk);
        expect(await readSks({})).toEqual(all);
        expect(await readSks({ descending: true })).toEqual(all.toReversed());
        expect(await readSks({ after: '01', limit: 25 })).toEqual(all.slice(2, 27));
        expect(await readSks({ after: '01', to: '28' })).toEqual(all.slice(2, 29));
      });
    });

    describe('indexes', () => {
      const at = (account: string, dueSk: string | undefined, duePk = 'POLLS#us#1') => ({
        ...key(account),
        duePk: dueSk === undefined ? undefined : duePk,
        dueSk,
        secret: 'not in the index',
      });
      const due = async (range: object = {}) =>
        (await table.query({ pk: 'POLLS#us#1', index: 'due', ...range })).map(({ sk }) => sk);

      test('an index is sparse, in the order of its own sort key, and contains keys only', async () => {
        await fill([
          at('a', '3'),
          at('b', '1'),
          at('c', undefined),
          at('d', '2'),
          at('e', '0', 'POLLS#us#2'),
        ]);
        expect(await due()).toEqual(['b', 'd', 'a']);
        expect(await table.query({ pk: 'POLLS#us#1', index: 'due', limit: 1 })).toEqual([
          { ...key('b'), duePk: 'POLLS#us#1', dueSk: '1' },
        ]);
      });

      test('an item is in an index only with both of its keys', async () => {
        await put({ ...key('a'), duePk: 'POLLS#us#1' });
        await put({ ...key('b'), dueSk: '1' });
        expect(await due()).toEqual([]);
      });

      test('ranges of an index are those of its sort key', async () => {
        await fill([at('z', '1'), at('y', '2'), at('x', '2'), at('w', '3'), at('v', '4')]);
        expect(await due({ to: '2' })).toHaveLength(3);
        expect(await due({ after: '2' })).toEqual(['w', 'v']);
        expect(await due({ from: '2', to: '2' })).toHaveLength(2);
        expect(await due({ after: '2', to: '3' })).toEqual(['w']);
        expect(await due({ after: '1', limit: 1 })).toHaveLength(1);
        expect(await due({ descending: true, limit: 2 })).toEqual(['v', 'w']);
        expect(await due({ from: '3', to: '2' })).toEqual([]);
      });

      test('an index follows every write', async () => {
        await fill([at('a', '1'), at('b', '2'), at('c', '3')]);
        await table.write({ update: key('a'), set: { dueSk: '9' } });
        await table.write({ update: key('b'), set: { duePk: undefined, dueSk: undefined } });
        expect(await due()).toEqual(['c', 'a']);
        await table.transact([{ delete: key('c') }, { put: at('d', '0') }], token());
        expect(await due()).toEqual(['d', 'a']);
        await put({ ...key('a'), other: 1 });
        expect(await due()).toEqual(['d']);
        expect(
          await table.transact(
            [{ put: at('e', '0') }, { check: key('d'), when: [['pk', 'absent']] }],
            token(),
          ),
        ).toMatchObject({ done: false });
        expect(await due()).toEqual(['d']);
      });

      test('an index that is not in the schema is an error', async () => {
        await expect(table.query({ pk: 'P', index: 'never' })).rejects.toThrow(TableError);
      });

      test('another schema has its own indexes: by the sort key of the table, of keys or of whole items', async () => {
        const history = await makeHistoryTable();
        const items = ['3', '1', '2'].map((sk) => ({
          ...key(sk, `P${sk}`),
          eventPk: 'E',
          failedPk: sk === '2' ? undefined : 'F',
          text: `text ${sk}`,
        }));
        await history.putMany(items);
        expect(await history.query({ pk: 'E', index: 'byEvent' })).toEqual(
          ['1', '2', '3'].map((sk) => ({ ...key(sk, `P${sk}`), eventPk: 'E' })),
        );
        expect(await history.query({ pk: 'F', index: 'failures', descending: true })).toEqual(
          ['3', '1'].map((sk) => ({ ...key(sk, `P${sk}`), eventPk: 'E', failedPk: 'F', text: `text ${sk}` })),
        );
        expect(await history.query({ pk: 'F', index: 'failures', after: '1', to: '3' })).toHaveLength(1);
        await expect(history.query({ pk: 'P', index: 'due' })).rejects.toThrow(TableError);
      });
    });

    test('units are counted as billed', async () => {
      await put({ ...key('1'), text: 'x'.repeat(10_000) });
      const written = table.units();
      await table.get(key('1'));
      const { read, write } = table.units();
      expect(write).toBe(written.write);
      if (kind !== 'on DynamoDB') expect({ read, write }).toEqual({ read: 0, write: 0 });
      else expect({ read: read - written.read, write }).toEqual({ read: 3, write: 10 });
      await table.putMany(Array.from({ length: 30 }, (_, at) => key(String(at), 'Q')));
      if (kind === 'on DynamoDB') expect(table.units().write - write).toBe(30);
    });
  },
  { inFile: true },
);

describe('the table in memory', () => {
  test('rejects the key of an index that is not a string or is empty, as DynamoDB does', async () => {
    const table = createMemoryTable();
    await expect(table.write({ put: { ...key('1'), orderPk: '', orderSk: 'x' } })).rejects.toThrow(
      TableError,
    );
    await expect(table.write({ update: key('1'), set: { dueSk: 5 } })).rejects.toThrow(TableError);
    await expect(
      table.transact([{ put: key('2') }, { put: { ...key('3'), openPk: null } }], token()),
    ).rejects.toThrow(TableError);
    expect(await table.query({ pk: 'P' })).toEqual([]);
  });

  test('creates no item for an update that only removes, as DynamoDB does not', async () => {
    const table = createMemoryTable();
    await table.write({ update: key('1'), set: { a: undefined } });
    expect(await table.get(key('1'))).toBeUndefined();
  });
});

describe.runIf(mayUseNetwork)('the table on DynamoDB with failing calls', () => {
  let wire: FaultyWire;
  let table: Table;
  let slept: number[];

  /** `attempts`: attempts of the client itself. One: only the adapter's own retries count. */
  async function connect(attempts: number): Promise<void> {
    const dynamo = testDynamo();
    wire = await startFaultyWire(dynamo.endpoint);
    const client = new DynamoDBClient({
      endpoint: wire.endpoint,
      region: 'us-east-1',
      credentials: { accessKeyId: 'a', secretAccessKey: 'b' },
      maxAttempts: attempts,
    });
    onTestFinished(async () => {
      client.destroy();
      await wire.stop();
    });
    slept = [];
    table = createDynamoTable(client, {
      tableName: await dynamo.freshTable(),
      sleep: async (ms) => slept.push(ms),
      random: () => 1,
    });
  }
  const sent = (operation: string): WireCall[] => wire.calls.filter((call) => call.operation === operation);
  const tokensSent = () => sent('TransactWriteItems').map(({ body }) => body.ClientRequestToken);

  const fence: Write[] = [
    { update: key('fence'), set: { revision: 1 }, when: [['revision', 'absent']] },
    { put: { ...key('1', 'LOG') }, when: [['pk', 'absent']] },
  ];

  describe('a transaction', () => {
    beforeEach(() => connect(1));

    test.each([
      ['TransactionConflict', cancelledFor('TransactionConflict', 'None')],
      ['a throttled action', cancelledFor('None', 'ThrottlingError')],
      ['an action over provisioned throughput', cancelledFor('ProvisionedThroughputExceeded', 'None')],
      ['conflict and throttling at once', cancelledFor('TransactionConflict', 'ThrottlingError')],
      ['a transaction still in progress', awsError('TransactionInProgressException')],
    ])('%s is retried with the same token and then succeeds', async (_, fault) => {
      wire.fail('TransactWriteItems', fault, fault, fault);
      const once = token();
      expect(await table.transact(fence, once)).toEqual({ done: true });
      expect(tokensSent()).toEqual([once, once, once, once]);
      expect(await table.get(key('fence'))).toMatchObject({ revision: 1 });
      expect(slept).toEqual(slept.toSorted((a, b) => a - b));
      expect(slept).toHaveLength(3);
    });

    test('a conflict before a condition fails is not the failure: the last result counts', async () => {
      await table.write({ put: { ...key('fence'), revision: 7 } });
      wire.fail('TransactWriteItems', cancelledFor('TransactionConflict', 'None'));
      expect(await table.transact(fence, token())).toEqual({ done: false, failed: [0] });
      expect(await table.query({ pk: 'LOG' })).toEqual([]);
    });

    test('repeated conflicts are a TableError with its cause, never a failed condition', async () => {
      wire.fail(
        'TransactWriteItems',
        ...Array.from({ length: 50 }, () => cancelledFor('TransactionConflict', 'None')),
      );
      const once = token();
      const error = await table.transact(fence, once).catch((cause: unknown) => cause);
      expect(error).toBeInstanceOf(TableError);
      expect(error).toMatchObject({
        operation: 'transact',
        cause: { name: 'TransactionCanceledException' },
      });
      expect(new Set(tokensSent())).toEqual(new Set([once]));
      expect(tokensSent()).toHaveLength(8);
    });

    test('a failed condition beside a conflict is the result, with the failed position', async () => {
      wire.fail('TransactWriteItems', cancelledFor('TransactionConflict', 'ConditionalCheckFailed'));
      expect(await table.transact(fence, token())).toEqual({ done: false, failed: [1] });
      expect(tokensSent()).toHaveLength(1);
    });

    test('a cancellation for any other reason is a TableError at once', async () => {
      wire.fail('TransactWriteItems', cancelledFor('ValidationError', 'None'));
      await expect(table.transact(fence, token())).rejects.toThrow(TableError);
      expect(tokensSent()).toHaveLength(1);
    });

    test('a permanently lost answer is a TableError, and the same token later finds it done', async () => {
      wire.fail('TransactWriteItems', { kind: 'lost answer' });
      const once = token();
      await expect(table.transact(fence, once)).rejects.toThrow(TableError);
      expect(await table.transact(fence, once)).toEqual({ done: true });
    });
  });

  describe('with the retries of the client', () => {
    beforeEach(() => connect(3));

    test('a transaction whose answer was lost is executed once', async () => {
      wire.fail('TransactWriteItems', { kind: 'lost answer' }, { kind: 'lost answer' });
      const once = token();
      expect(await table.transact(fence, once)).toEqual({ done: true });
      expect(tokensSent()).toEqual([once, once, once]);
      expect(await table.get(key('fence'))).toEqual({ ...key('fence'), revision: 1 });
      expect(await table.query({ pk: 'LOG' })).toHaveLength(1);
    });

    test('a transaction throttled as a whole is retried with the same token', async () => {
      wire.fail(
        'TransactWriteItems',
        awsError('ThrottlingException'),
        awsError('InternalServerError', {}, 500),
      );
      expect(await table.transact(fence, token())).toEqual({ done: true });
      expect(new Set(tokensSent()).size).toBe(1);
    });

    test('a batch of puts that was throttled, interrupted or whose answer was lost is written', async () => {
      wire.fail('BatchWriteItem', awsError('ProvisionedThroughputExceededException'), { kind: 'reset' });
      const items = Array.from({ length: 30 }, (_, at) => ({ ...key(String(at).padStart(2, '0')), at }));
      await table.putMany(items);
      wire.fail('BatchWriteItem', awsError('ThrottlingException'), { kind: 'lost answer' });
      await table.putMany(items.map((item) => ({ ...item, again: true })));
      expect(await table.query({ pk: 'P' })).toEqual(items.map((item) => ({ ...item, again: true })));
      expect(sent('BatchWriteItem')).toHaveLength(8);
    });

    test('a conditional write whose answer was lost succeeds, although its condition is no longer true', async () => {
      await table.write({ put: { ...key('gone') } });
      const bytes = new Uint8Array([1, 2]);
      const writes: Exclude<Write, { check: Key }>[] = [
        { put: { ...key('new'), list: ['a'], bytes, none: undefined }, when: [['pk', 'absent']] },
        { update: key('lease'), set: { owner: 'me', old: undefined }, when: [['owner', 'absent']] },
        { delete: key('gone'), when: [['pk', 'present']] },
      ];
      for (const operation of ['PutItem', 'UpdateItem', 'DeleteItem']) {
        wire.fail(operation, { kind: 'lost answer' });
      }
      for (const write of writes) {
        expect(await table.write(write), JSON.stringify(write)).toMatchObject({ done: true });
      }
      expect(sent('UpdateItem')).toHaveLength(2);
    });

    test('a conditional write that lost its race is rejected, also after a lost answer', async () => {
      await table.write({ put: { ...key('lease'), owner: 'other' } });
      const update = { update: key('lease'), set: { owner: 'me' }, when: [['owner', 'absent']] } as const;
      expect(await table.write(update)).toMatchObject({ done: false });
      wire.fail('UpdateItem', { kind: 'lost answer' });
      expect(await table.write(update)).toEqual({ done: false, item: { ...key('lease'), owner: 'other' } });
      expect(sent('UpdateItem')).toHaveLength(3);
    });

    test('a condition that fails at the first attempt is rejected, even if the item has the wanted state', async () => {
      await table.write({ put: { ...key('lease'), owner: 'me' } });
      const again = { update: key('lease'), set: { owner: 'me' }, when: [['owner', 'absent']] } as const;
      expect(await table.write(again)).toMatchObject({ done: false });
    });
  });

  describe('a single call', () => {
    beforeEach(() => connect(1));

    test('a write to an item locked by a transaction is retried', async () => {
      const conflict = awsError('TransactionConflictException');
      wire.fail('UpdateItem', conflict, conflict);
      const outcome = await table.write({ update: key('1'), set: { a: 1 }, when: [['pk', 'absent']] });
      expect(outcome).toEqual({ done: true, item: { ...key('1'), a: 1 } });
      wire.fail('PutItem', ...Array.from({ length: 50 }, () => conflict));
      await expect(table.write({ put: key('1') })).rejects.toMatchObject({
        name: 'TableError',
        cause: { name: 'TransactionConflictException' },
      });
      expect(sent('PutItem')).toHaveLength(8);
    });

    test('unprocessed keys are read again until all are read', async () => {
      const items = Array.from({ length: 120 }, (_, at) => ({ ...key(String(at)), at }));
      for (let at = 0; at < items.length; at += 100) {
        await table.transact(
          items.slice(at, at + 100).map((item) => ({ put: item })),
          token(),
        );
      }
      type Batch = Record<string, { Keys: unknown[] }>;
      const half = {
        kind: 'changed',
        call: (body: Record<string, unknown>) => ({
          ...body,
          RequestItems: mapValues(body.RequestItems as Batch, (part) => ({
            ...part,
            Keys: part.Keys.slice(0, Math.ceil(part.Keys.length / 2)),
          })),
        }),
        answer: (body: Record<string, unknown>, call: WireCall) => ({
          ...body,
          UnprocessedKeys: mapValues(call.body.RequestItems as Batch, (part) => ({
            ...part,
            Keys: part.Keys.slice(Math.ceil(part.Keys.length / 2)),
          })),
        }),
      } as const;
      wire.fail('BatchGetItem', half, half);
      const read = await table.getMany(items.map(({ pk, sk }) => ({ pk, sk })));
      expect(read.map(({ at }) => Number(at)).sort((a, b) => a - b)).toEqual(items.map(({ at }) => at));
      expect(sent('BatchGetItem')).toHaveLength(4);
    });

    test('keys that stay unprocessed are a TableError, not a missing item', async () => {
      const none = {
        kind: 'changed',
        answer: (_: Record<string, unknown>, call: WireCall) => ({
          Responses: {},
          UnprocessedKeys: call.body.RequestItems,
        }),
      } as const;
      wire.fail('BatchGetItem', ...Array.from({ length: 50 }, () => none));
      await expect(table.getMany([key('1')])).rejects.toThrow(TableError);
      expect(sent('BatchGetItem')).toHaveLength(8);
    });

    const many = Array.from({ length: 60 }, (_, at) => ({ ...key(String(at).padStart(2, '0')), at }));
    type Puts = Record<string, unknown[]>;
    /** The server gets the first half of a batch, and leaves the second. */
    const halfOfIt = {
      kind: 'changed',
      call: (body: Record<string, unknown>) => ({
        ...body,
        RequestItems: mapValues(body.RequestItems as Puts, (puts) =>
          puts.slice(0, Math.ceil(puts.length / 2)),
        ),
      }),
      answer: (body: Record<string, unknown>, call: WireCall) => ({
        ...body,
        UnprocessedItems: mapValues(call.body.RequestItems as Puts, (puts) =>
          puts.slice(Math.ceil(puts.length / 2)),
        ),
      }),
    } as const;

    test('unprocessed items are put again, with growing delays, until all are written', async () => {
      wire.fail('BatchWriteItem', halfOfIt, halfOfIt, halfOfIt);
      await table.putMany(many);
      expect(await table.query({ pk: 'P' })).toEqual(many);
      expect(sent('BatchWriteItem')).toHaveLength(6);
      expect(slept.length).toBeGreaterThan(0);
      expect(slept).toEqual(slept.toSorted((a, b) => a - b));
    });

    test('items that stay unprocessed are a TableError, for any number of attempts', async () => {
      const none = {
        kind: 'changed',
        call: (body: Record<string, unknown>) => ({
          ...body,
          RequestItems: mapValues(body.RequestItems as Puts, (puts) => puts.slice(0, 1)),
        }),
        answer: (body: Record<string, unknown>, call: WireCall) => ({
          ...body,
          UnprocessedItems: call.body.RequestItems,
        }),
      } as const;
      wire.fail('BatchWriteItem', ...Array.from({ length: 50 }, () => none));
      await expect(table.putMany(many.slice(0, 3))).rejects.toMatchObject({
        name: 'TableError',
        operation: 'put many',
      });
      expect(sent('BatchWriteItem')).toHaveLength(8);
    });

    test('every failure is a TableError with its cause', async () => {
      const calls: [string, () => Promise<unknown>][] = [
        ['GetItem', () => table.get(key('1'))],
        ['BatchGetItem', () => table.getMany([key('1')])],
        ['Query', () => table.query({ pk: 'P' })],
        ['BatchWriteItem', () => table.putMany([key('1')])],
        ['PutItem', () => table.write({ put: key('1') })],
        ['UpdateItem', () => table.write({ update: key('1'), set: { a: 1 } })],
        ['DeleteItem', () => table.write({ delete: key('1') })],
        ['TransactWriteItems', () => table.transact([{ put: key('1') }], token())],
      ];
      for (const [operation, call] of calls) {
        wire.fail(operation, awsError('AccessDeniedException'));
        const error = await call().catch((cause: unknown) => cause);
        expect(error, operation).toBeInstanceOf(TableError);
        expect(error, operation).toMatchObject({ cause: { name: 'AccessDeniedException' } });
      }
    });
  });
});
