/** The drains of a process: wake-ups reach the running drain or the next one. */
import { expect, test } from 'vitest';
import { createDrainers } from '../../local/drainers.ts';
import type { NewWork } from '../../shared/delivery/drain-deps.ts';

type Linger = (holdMs?: number) => Promise<NewWork | undefined>;

/** Drains that run the scripts one after the other. `ended` resolves when all of them have run and no drain runs. */
function runDrains(...scripts: ((linger: Linger) => Promise<void>)[]) {
  const left = [...scripts];
  const { promise: ended, resolve, reject } = Promise.withResolvers<void>();
  let running = 0;
  let count = 0;
  const drains = createDrainers(
    async (_region, _sink, linger) => {
      count += 1;
      await left.shift()?.(linger);
      return false;
    },
    (_what, action) => {
      running += 1;
      action()
        .then(() => {
          running -= 1;
          if (running === 0 && left.length === 0) resolve();
        })
        .catch(reject);
    },
  );
  return { ...drains, ended, count: () => count };
}

const withAccounts = (...accounts: string[]): NewWork => ({ accounts, due: false });

test('a drain that is started by a commit continues with its account, whose cursor is not marked yet', async () => {
  const drains = runDrains(async (linger) => {
    expect(await linger()).toEqual(withAccounts('acme'));
  });
  drains.request('us', 'erp', ['acme']);
  await drains.ended;
});

test('a commit during the end of a drain is delivered by the next drain', async () => {
  const drains = runDrains(
    async (linger) => {
      expect(await linger(1)).toBeUndefined();
      drains.request('us', 'erp', ['acme']);
      drains.request('us', 'erp', ['other']);
    },
    async (linger) => {
      expect(await linger()).toEqual(withAccounts('acme', 'other'));
    },
  );
  drains.request('us', 'erp');
  await drains.ended;
});

test('a drain that cannot send is not repeated for the commits that started it', async () => {
  const drains = runDrains(async () => {});
  drains.request('us', 'erp', ['acme']);
  await drains.ended;
  expect(drains.count()).toBe(1);
});
