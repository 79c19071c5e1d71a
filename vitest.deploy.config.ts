import { defineConfig } from 'vitest/config';

/** The test of a deployed cell: `npm run test:deploy`. */
export default defineConfig({
  test: {
    include: ['test/deploy/*.test.ts'],
    // Each test goes on where the one before has ended.
    bail: 1,
    testTimeout: 60_000,
    hookTimeout: 120_000,
  },
});
