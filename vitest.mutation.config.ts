import { defineConfig } from 'vitest/config';

/** What runs against every mutant: pure tests only, each a few milliseconds (docs/mutation-testing.md). */
export default defineConfig({
  test: { include: ['test/decisions/*.test.ts'] },
});
