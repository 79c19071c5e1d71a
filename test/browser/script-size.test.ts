/** Size of the scripts of each page. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { buildDashboard } from '../../dashboard/build.ts';

/** Maximum for everything except the charts, which are loaded last. */
const MAX_BYTES = 250_000;

interface Chunk {
  readonly file: string;
  readonly imports?: readonly string[];
  readonly dynamicImports?: readonly string[];
}

test('no page loads more than 250 kB of compressed script before its charts', async () => {
  const folder = await buildDashboard();
  const chunks = JSON.parse(readFileSync(join(folder, '.vite/manifest.json'), 'utf8')) as Record<
    string,
    Chunk
  >;
  const getBytes = (file: string): number => gzipSync(readFileSync(join(folder, file))).length;

  /** Returns the scripts of a chunk and of its static imports. */
  const withImports = (name: string, files = new Set<string>()): Set<string> => {
    const { file, imports = [] } = chunks[name] ?? { file: '' };
    if (!file.endsWith('.js') || files.has(file)) return files;
    files.add(file);
    for (const next of imports) withImports(next, files);
    return files;
  };

  const pages: { name: string; bytes: number; files: Set<string> }[] = [];
  /** Adds up the scripts along each path of dynamic imports. */
  const follow = (name: string, before: ReadonlySet<string>, from = ''): void => {
    if (/charts?\.tsx$/i.test(name)) return;
    const files = new Set([...before, ...withImports(name)]);
    if (files.size === before.size) return;
    pages.push({ name, files, bytes: [...files].reduce((sum, file) => sum + getBytes(file), 0) });
    // The Now page shows the checklist too. Its forms are loaded when a dialog is opened, and count as part of its own page, `/start`.
    if (name.endsWith('/ChecklistPage.tsx') && from.endsWith('/Home.tsx')) return;
    for (const next of chunks[name]?.dynamicImports ?? []) follow(next, files, name);
  };
  for (const name of Object.keys(chunks)) if (name.endsWith('.html')) follow(name, new Set());

  pages.sort((one, other) => other.bytes - one.bytes);
  const all = new Set(pages.flatMap(({ files }) => [...files]));
  const list = [
    ...pages.map(({ name, bytes }) => `${bytes} bytes for ${name}`),
    `${[...all].reduce((sum, file) => sum + getBytes(file), 0)} bytes in all:`,
    ...[...all].map((file) => `  ${getBytes(file)} ${file}`),
  ].join('\n');
  console.log(list);
  expect(pages.length, 'pages').toBeGreaterThan(4);
  expect(pages[0]?.bytes, list).toBeLessThanOrEqual(MAX_BYTES);
});
