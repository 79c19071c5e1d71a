import { defineConfig } from 'vitest/config';

/** The test of a deployed cell: `npm run test:deploy`. */
export default defineConfig({
  test: {
    include: ['test/deploy/*.test.ts'],
    testTimeout: 60_000,
    hookTimeout: 120_000,
  },
});
