import { expect, test } from 'vitest';
import { createRig } from './support/rig.ts';

test('the first complete crawl is the baseline: jobs are stored, one account.baselined, no job events (rule 5)', async () => {
  const rig = await createRig();
  for (let n = 0; n < 250; n += 1) rig.upstream.createJob({});
  const report = await rig.poll();
  expect(report).toMatchObject({
    outcome: 'complete',
    state: 'tracking',
    pages: 3,
    openJobs: 250,
    events: 1,
  });
  expect((await rig.fresh()).map((event) => event.type)).toEqual(['account.baselined']);
  expect((await rig.poll()).requests).toBe(3);
  expect(await rig.fresh()).toEqual([]);
});
