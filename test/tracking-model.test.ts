/**
 * Whatever happens at the ordering service, whatever goes wrong on the way and whenever a poll dies or is overtaken: the log
 * says what was, once, and all of it. Random histories; a failing one is printed in its smallest form, with the seed that
 * makes it again (`MODEL_SEED`, `MODEL_PATH`). `MODEL_RUNS` and `MODEL_RUNS_DYNAMODB` say how many are tried.
 */
import fc from 'fast-check';
import { beforeAll, describe, expect, test } from 'vitest';
import { createMemoryTable } from '../shared/table/memory-table.ts';
import type { Table } from '../shared/table/table.ts';
import { histories, play } from './support/model.ts';
import { startTestDynamo } from './support/tables.ts';

const { MODEL_RUNS = '2000', MODEL_RUNS_DYNAMODB = '50', MODEL_SEED, MODEL_PATH } = process.env;
const TIMEOUT_MS = 1_800_000;

async function holds(runs: string, makeTable: () => Promise<Table>): Promise<void> {
  await fc.assert(
    fc.asyncProperty(histories, async (history) => {
      expect(await play(history, await makeTable())).toEqual([]);
    }),
    {
      numRuns: Number(runs),
      ...(MODEL_SEED !== undefined && { seed: Number(MODEL_SEED) }),
      ...(MODEL_PATH !== undefined && { path: MODEL_PATH }),
    },
  );
}

describe('the log is true, whole and said once, over random histories', () => {
  test(`in memory: ${MODEL_RUNS}`, () => holds(MODEL_RUNS, async () => createMemoryTable()), TIMEOUT_MS);

  describe('on DynamoDB', () => {
    beforeAll(async () => {
      await startTestDynamo();
    });
    test(
      `${MODEL_RUNS_DYNAMODB}`,
      async () => {
        const { makeTable } = await startTestDynamo();
        await holds(MODEL_RUNS_DYNAMODB, makeTable);
      },
      TIMEOUT_MS,
    );
  });
});
