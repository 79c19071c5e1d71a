/** The drains of a process: wake-ups reach the running drain or the next one. */
import { expect, test } from 'vitest';
import { createDrainers } from '../../local/drainers.ts';
import type { DrainDeps, NewWork } from '../../shared/delivery/drain-deps.ts';

type Work = Required<Pick<DrainDeps, 'linger' | 'takeGrown'>>;

/** Drains that run the scripts one after the other. `ended` resolves when all of them have run and no drain runs. */
function runDrains(...scripts: ((work: Work) => Promise<unknown>)[]) {
  const left = [...scripts];
  const { promise: ended, resolve, reject } = Promise.withResolvers<void>();
  let running = 0;
  let count = 0;
  const drains = createDrainers(
    async (_region, _sink, work) => {
      count += 1;
      return (await left.shift()?.(work)) === true;
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
  const drains = runDrains(async ({ linger }) => {
    expect(await linger()).toEqual(withAccounts('acme'));
  });
  drains.request('us', 'erp', ['acme']);
  await drains.ended;
});

test('a commit during the end of a drain is delivered by the next drain', async () => {
  const drains = runDrains(
    async ({ linger }) => {
      expect(await linger(1)).toBeUndefined();
      drains.request('us', 'erp', ['acme']);
      drains.request('us', 'erp', ['other']);
    },
    async ({ linger }) => {
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

test('a drain takes commits while it works, and is notified of further ones', async () => {
  const drains = runDrains(async ({ linger, takeGrown }) => {
    const grown = Promise.withResolvers<void>();
    expect(takeGrown(grown.resolve)).toEqual(['acme']);
    expect(takeGrown(grown.resolve)).toEqual([]);
    drains.request('us', 'erp', ['other']);
    await grown.promise;
    expect(takeGrown(() => {})).toEqual(['other']);
    expect(await linger(1)).toBeUndefined();
  });
  drains.request('us', 'erp', ['acme']);
  await drains.ended;
});

test('a commit that a drain has taken just before its end is delivered by the next drain', async () => {
  const drains = runDrains(
    async ({ takeGrown }) => {
      takeGrown(() => {});
      return true;
    },
    async ({ linger }) => {
      expect(await linger()).toEqual(withAccounts('acme'));
    },
  );
  drains.request('us', 'erp', ['acme']);
  await drains.ended;
});
