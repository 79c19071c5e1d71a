/** The files of the dashboard: a folder beside the bundle. */
import { readdir, readFile } from 'node:fs/promises';

/** Name of the folder beside the bundle that contains them. */
export const DASHBOARD_FILES = 'dashboard';

/** Returns all files by name, such as `assets/index-4f2a.js`. */
export async function readDashboard(): Promise<ReadonlyMap<string, Uint8Array>> {
  const folder = new URL(`./${DASHBOARD_FILES}/`, import.meta.url);
  const found = await readdir(folder, { recursive: true, withFileTypes: true });
  const names = found
    .filter((entry) => entry.isFile())
    .map((entry) => `${entry.parentPath}/${entry.name}`.slice(folder.pathname.length).replace(/^\/+/, ''));
  return new Map(
    await Promise.all(names.map(async (name) => [name, await readFile(new URL(name, folder))] as const)),
  );
}
