/**
 * Whatever happens at the ordering service, whatever goes wrong on the way and whenever a poll dies or is overtaken: the log
 * says what was, once, and all of it. Random histories; a failing one is printed in its smallest form, with the seed and the
 * path that make it again (`MODEL_SEED`, `MODEL_PATH`). `MODEL_RUNS` and `MODEL_RUNS_DYNAMODB` say how many are tried.
 *
 * Everybody gets the same histories, so that a failure is about the change at hand; `MODEL_SEED=random` looks for new ones.
 */
import fc from 'fast-check';
import { beforeAll, describe, expect, test } from 'vitest';
import { createMemoryTable } from '../shared/table/memory-table.ts';
import type { Table } from '../shared/table/table.ts';
import { histories, play } from './support/model.ts';
import { startTestDynamo } from './support/tables.ts';

const { MODEL_RUNS = '2000', MODEL_RUNS_DYNAMODB = '50', MODEL_SEED = '1', MODEL_PATH } = process.env;
const SEED = MODEL_SEED === 'random' ? Date.now() % 2 ** 31 : Number(MODEL_SEED);
const TIMEOUT_MS = 1_800_000;

async function holds(runs: string, makeTable: () => Promise<Table>): Promise<void> {
  await fc.assert(
    fc.asyncProperty(histories, async (history) => {
      expect(await play(history, await makeTable())).toEqual([]);
    }),
    {
      numRuns: Number(runs),
      seed: SEED,
      ...(MODEL_PATH !== undefined && { path: MODEL_PATH }),
    },
  );
}

describe('the log is true, whole and said once, over random histories', () => {
  test(
    `in memory: ${MODEL_RUNS}, seed ${SEED}`,
    () => holds(MODEL_RUNS, async () => createMemoryTable()),
    TIMEOUT_MS,
  );

  describe('on DynamoDB', () => {
    beforeAll(async () => {
      await startTestDynamo();
    });
    test(
      `${MODEL_RUNS_DYNAMODB}, seed ${SEED}`,
      async () => {
        const { makeTable } = await startTestDynamo();
        await holds(MODEL_RUNS_DYNAMODB, makeTable);
      },
      TIMEOUT_MS,
    );
  });
});
