/**
 * The documents of the HTTP API, and the pages of the API reference. They are stored beside the bundle.
 */
import { readFile } from 'node:fs/promises';

/** Name of the folder beside the bundle that contains them, by their served names. */
export const API_FILES = 'api-files';

/** Reads a file. Rejects if it does not exist. */
export async function readApiFile(name: string): Promise<Uint8Array<ArrayBuffer>> {
  return new Uint8Array(await readFile(new URL(`./${API_FILES}/${name}`, import.meta.url)));
}
