import { configDefaults, defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    // They take a synthesized assembly (npm run test:deploy) and a browser (npm run test:browser).
    exclude: [...configDefaults.exclude, 'test/deploy/**', 'test/browser/**'],
    testTimeout: 20_000,
    hookTimeout: 30_000,
  },
});
