import { configDefaults, defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    // It takes a synthesized assembly: npm run test:deploy.
    exclude: [...configDefaults.exclude, 'test/deploy/**'],
    testTimeout: 20_000,
    hookTimeout: 30_000,
  },
});
