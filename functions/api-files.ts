/** The documents of the HTTP API, and what the page that shows them is made of: files that stand beside the bundle. */
import { readFile } from 'node:fs/promises';

/** The folder beside the bundle that holds them, by the names that they are served under. */
export const API_FILES = 'api-files';

/** Reads one. Rejects when there is no such file. */
export async function readApiFile(name: string): Promise<Uint8Array<ArrayBuffer>> {
  return new Uint8Array(await readFile(new URL(`./${API_FILES}/${name}`, import.meta.url)));
}
