import { expect, test } from 'vitest';

test('runs on Node 24', () => {
  expect(process.versions.node).toMatch(/^24\./);
});
