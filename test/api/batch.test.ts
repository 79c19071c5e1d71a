/** Batches: each resource has its own result. */
import type { Context } from 'hono';
import { expect, it } from 'vitest';
import { findEach, MAX_BATCH, runBatch } from '../../shared/api/batch.ts';
import type { ApiEnv } from '../../shared/api/env.ts';
import { TableError } from '../../shared/storage/table.ts';

it('reports faults and rejections for the resources that have them, and performs the action on the others', async () => {
  const c = {
    get: () => 'request',
    body: (text: string, status: number) => new Response(text, { status }),
  } as unknown as Context<ApiEnv>;
  const faults: unknown[] = [];
  const report = (_: unknown, cause: unknown) => void faults.push(cause);
  const items = ['slow', 'busy', 'erp', 'broken', 'shop'].map((id) => ({ id, found: { id, region: 'us' } }));
  const results = await runBatch<{ id: string }>(c, { report }, items, async ({ id }) => {
    if (id === 'slow') throw new TableError('write', 'timeout');
    if (id === 'broken') throw new Error('a secret');
    return id === 'busy' ? { kind: 'conflict', why: 'busy', reason: 'In progress.' } : { events: 3 };
  });
  expect(results.map(({ id, events, problem }) => [id, events, problem?.status ?? null])).toEqual([
    ['slow', null, 503],
    ['busy', null, 409],
    ['erp', 3, null],
    ['broken', null, 500],
    ['shop', 3, null],
  ]);
  expect(faults).toHaveLength(2);
  expect(JSON.stringify(results)).not.toContain('secret');
});

it('reads each resource once, and only a few at a time', async () => {
  const ids = Array.from({ length: MAX_BATCH }, (_, at) => `e-${at}`);
  let running = 0;
  let most = 0;
  const items = await findEach([...ids, 'e-0'], async (id) => {
    running += 1;
    most = Math.max(most, running);
    await new Promise(setImmediate);
    running -= 1;
    return { id, found: { region: 'us' } };
  });
  expect(items.map(({ id }) => id)).toEqual(ids);
  expect(most).toBe(8);
});
