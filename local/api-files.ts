/** Built files that the HTTP API serves: its documents, and the parts of the page at `/docs`. */
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { referenceFiles } from '../shared/api/reference-page.ts';

/** Folder beside the packaged program that contains them. */
export const PACKED = 'api-files';

/** Returns the path in a checkout of each file, by the name under which it is served. */
export function apiFiles(): ReadonlyMap<string, string> {
  const { resolve } = createRequire(import.meta.url);
  return new Map([
    ...['openapi.json', 'asyncapi.json'].map(
      (name) => [name, `${import.meta.dirname}/../docs/${name}`] as const,
    ),
    ...referenceFiles.map(({ name, source }) => [name, resolve(source)] as const),
  ]);
}

/** Reads a file by name. Rejects if there is none. */
export async function readApiFile(name: string): Promise<Uint8Array<ArrayBuffer>> {
  const packed = `${import.meta.dirname}/${PACKED}`;
  const path = existsSync(packed) ? `${packed}/${name}` : apiFiles().get(name);
  if (path === undefined) throw new Error(`File not found: ${name}.`);
  return new Uint8Array(await readFile(path));
}
