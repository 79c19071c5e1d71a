/** Built files that the HTTP API serves: its documents, and the pages of the API reference. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';

/** Folder beside the packaged program that contains them. */
export const PACKED = 'api-files';

/** Files of a checkout by name. */
let files: Promise<ReadonlyMap<string, string>> | undefined;

async function build(): Promise<ReadonlyMap<string, string>> {
  const read = (name: string) => readFileSync(`${import.meta.dirname}/../docs/${name}`, 'utf8');
  const openApi = read('openapi.json');
  // The packaged program does not render.
  const { renderReference } = await import('../shared/api/reference/render.ts');
  return new Map([
    ['openapi.json', openApi],
    ['asyncapi.json', read('asyncapi.json')],
    ...renderReference(JSON.parse(openApi)),
  ]);
}

/** Writes all files of a checkout into a new folder. */
export async function writeApiFiles(folder: string): Promise<void> {
  mkdirSync(folder, { recursive: true });
  for (const [name, content] of await build()) writeFileSync(`${folder}/${name}`, content);
}

/** Reads a file by name. Rejects if there is none. */
export async function readApiFile(name: string): Promise<Uint8Array<ArrayBuffer>> {
  const packed = `${import.meta.dirname}/${PACKED}`;
  if (existsSync(packed)) return new Uint8Array(await readFile(`${packed}/${name}`));
  files ??= build();
  const content = (await files).get(name);
  if (content === undefined) throw new Error(`File not found: ${name}.`);
  return new TextEncoder().encode(content);
}
