/** Rules for all source files. */
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

const root = join(import.meta.dirname, '..');
const MAX_LINES = 500;

test(`a file of more than ${MAX_LINES} lines says in its first comment why it is one file`, () => {
  const long = globSync(
    '{bench,cli,client,dashboard/src,functions,infra,local,receive,sandbox,shared,test}/**/*.{ts,tsx,css,py}',
    { cwd: root, exclude: ['**/node_modules/**', 'client/paths.ts', 'receive/events.ts'] },
  )
    .map((path) => ({ path, text: readFileSync(join(root, path), 'utf8') }))
    .filter(({ text }) => text.split('\n').length - 1 > MAX_LINES);
  expect(long.length).toBeGreaterThan(20);
  const unexplained = long.filter(({ text }) => !/One file:/.test(text.slice(0, text.indexOf('\nimport '))));
  expect(unexplained.map(({ path }) => path)).toEqual([]);
});
