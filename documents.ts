/**
 * The machine-readable documents of the API, which are committed in docs/. `npm run build` writes them. `node documents.ts release` stores
 * them as those of the released version, the baseline for comparing later ones.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { openApiDocument } from './shared/api/openapi.ts';
import { asyncApiDocument } from './shared/events/asyncapi.ts';

/** Every document by file name. */
export const documents: Readonly<Record<string, () => object>> = {
  'openapi.json': openApiDocument,
  'asyncapi.json': asyncApiDocument,
};

/** Folder with the documents of the last released version. */
export const BASELINE = 'docs/api-baseline';

/** Serializes a document. */
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
