/**
 * The machine-readable documents of the API, as they are committed in docs/. `npm run build` writes them.
 * `node documents.ts release` keeps them as those of a released version: what comes later is compared with them.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { openApiDocument } from './shared/api/openapi.ts';
import { asyncApiDocument } from './shared/events/asyncapi.ts';

/** Every document by the name of its file. */
export const documents: Readonly<Record<string, () => object>> = {
  'openapi.json': openApiDocument,
  'asyncapi.json': asyncApiDocument,
};

/** Where the documents of the last released version are. */
export const BASELINE = 'docs/api-baseline';

/** A document as it is written. */
export function textOf(document: object): string {
  return `${JSON.stringify(document, null, 2)}\n`;
}

/** Writes all documents into a folder. */
export function writeDocuments(folder: string): void {
  mkdirSync(folder, { recursive: true });
  for (const [name, make] of Object.entries(documents)) writeFileSync(`${folder}/${name}`, textOf(make()));
}

if (import.meta.main) {
  writeDocuments('docs');
  if (process.argv[2] === 'release') writeDocuments(BASELINE);
}
