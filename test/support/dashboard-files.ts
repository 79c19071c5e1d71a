/** Files as the dashboard's build writes them, for tests that do not depend on their content. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Content by file name. */
export const DASHBOARD: Readonly<Record<string, string>> = {
  'index.html': '<!doctype html><script type="module" src="/assets/index-Ab3_x-9Z.js"></script>',
  'mail-frame.html': '<!doctype html><script src="/assets/frame-1a2b3c4d.js"></script>',
  'favicon.svg': '<svg xmlns="http://www.w3.org/2000/svg"/>',
  'assets/index-Ab3_x-9Z.js': 'export {};',
  'assets/frame-1a2b3c4d.js': 'export {};',
  'assets/index-5e6f7a8b.css': 'body{}',
};

/** Writes them into a new folder, which is removed when the process ends. */
export function makeDashboardFolder(files: Readonly<Record<string, string>> = DASHBOARD): string {
  const folder = mkdtempSync(join(tmpdir(), 'jobwire-dashboard-'));
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
  mkdirSync(join(folder, 'assets'));
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
  return folder;
}
