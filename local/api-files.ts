/** The files that the HTTP API serves as they were built: its documents, and what the page at `/docs` is made of. */
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { createRequire } from 'node:module';
import { referenceFiles } from '../shared/api/reference.ts';

/** The folder beside the program that has them all, where they were packed with it. */
export const PACKED = 'api-files';

/** Where each of them is in a checkout, by the name that it is served under. */
export function apiFiles(): ReadonlyMap<string, string> {
  const { resolve } = createRequire(import.meta.url);
  return new Map([
    ...['openapi.json', 'asyncapi.json'].map(
      (name) => [name, `${import.meta.dirname}/../docs/${name}`] as const,
    ),
    ...referenceFiles.map(({ name, source }) => [name, resolve(source)] as const),
  ]);
}

/** Reads one by its name. Rejects when there is no such file. */
export async function readApiFile(name: string): Promise<Uint8Array<ArrayBuffer>> {
  const packed = `${import.meta.dirname}/${PACKED}`;
  const path = existsSync(packed) ? `${packed}/${name}` : apiFiles().get(name);
  if (path === undefined) throw new Error(`There is no file ${name}.`);
  return new Uint8Array(await readFile(path));
}
