/** Files such as the dashboard's build makes, where a test is not about what is in them. */
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Their names, and what is in them. */
export const DASHBOARD: Readonly<Record<string, string>> = {
  'index.html': '<!doctype html><script type="module" src="/assets/index-Ab3_x-9Z.js"></script>',
  'mail-frame.html': '<!doctype html><script src="/assets/frame-1a2b3c4d.js"></script>',
  'favicon.svg': '<svg xmlns="http://www.w3.org/2000/svg"/>',
  'assets/index-Ab3_x-9Z.js': 'export {};',
  'assets/frame-1a2b3c4d.js': 'export {};',
  'assets/index-5e6f7a8b.css': 'body{}',
};

/** Makes a folder of them. It is there until the process ends. */
export function makeDashboardFolder(files: Readonly<Record<string, string>> = DASHBOARD): string {
  const folder = mkdtempSync(join(tmpdir(), 'jobwire-dashboard-'));
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
  mkdirSync(join(folder, 'assets'));
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
  return folder;
}
