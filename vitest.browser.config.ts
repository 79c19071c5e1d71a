import { defineConfig } from 'vitest/config';

/** The pages in a real browser: `npm run test:browser`. */
export default defineConfig({
  test: {
    include: ['test/browser/*.test.ts'],
    globalSetup: 'test/support/browser-setup.ts',
    maxWorkers: 2,
    testTimeout: 60_000,
    hookTimeout: 90_000,
    expect: { poll: { timeout: 15_000, interval: 50 } },
  },
});
