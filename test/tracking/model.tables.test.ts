/**
 * For any upstream history, any faults and any crashing or overtaken polls, the log has every change exactly once, and nothing
 * false. Random histories; a failing one is printed in its smallest form, with the seed and the path that repeat it
 * (docs/internals/testing.md). The seed is fixed, so that a failure is caused by the current change.
 */
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { freeHistories, histories, play } from '../support/model.ts';
import { runs } from '../support/runs.ts';
import { eachTable } from '../support/tables.ts';

eachTable('the log is correct, complete and without duplicates', (makeTable, kind) => {
  test('over random histories', { timeout: 7_200_000 }, async () => {
    await fc.assert(
      fc.asyncProperty(histories, async (history) => {
        expect(await play(history, await makeTable())).toEqual([]);
      }),
      kind === 'in memory' ? runs(24, 2_000, 1) : runs(2, 50, 1),
    );
  });

  test('over random histories at an API that uses the freedoms of its contract', {
    timeout: 7_200_000,
  }, async () => {
    await fc.assert(
      fc.asyncProperty(freeHistories, async (history) => {
        expect(await play(history, await makeTable())).toEqual([]);
      }),
      kind === 'in memory' ? runs(14, 2_000, 1) : runs(1, 20, 1),
    );
  });
});
