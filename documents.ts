/**
 * The generated documents in docs/, which are committed: those of the API, the JSON Schema of the configuration file, and the reference in
 * docs/configuration.md. `node documents.ts` and `npm run build` write them. `node documents.ts release` also stores the documents of the API
 * as those of the released version, the baseline for comparing later ones. `node documents.ts files FOLDER` writes the files that the API serves.
 */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { settingsSchema } from './infra/settings.ts';
import { writeApiFiles } from './local/api-files.ts';
import { openApiDocument } from './shared/api/openapi.ts';
import { configReference, configSchemaDocument, schemaDocument } from './shared/config-documents.ts';
import { asyncApiDocument } from './shared/events/asyncapi.ts';

/** Every document by file name. */
export const documents: Readonly<Record<string, () => object>> = {
  'openapi.json': openApiDocument,
  'asyncapi.json': asyncApiDocument,
};

/** Folder with the documents of the last released version. */
export const BASELINE = 'docs/api-baseline';

/** Serializes a document. */
export function serialize(document: object): string {
  return `${JSON.stringify(document, null, 2)}\n`;
}

/** Writes all documents into a folder. */
export function writeDocuments(folder: string): void {
  mkdirSync(folder, { recursive: true });
  for (const [name, make] of Object.entries(documents)) writeFileSync(`${folder}/${name}`, serialize(make()));
}

const CONFIG_MARK = '<!-- Below is written by documents.ts. -->\n';

/** Returns the documents about the configuration file by path. The examples in the reference are from the page's own example. */
export function configDocuments(): Readonly<Record<string, string>> {
  const [page = ''] = readFileSync('docs/configuration.md', 'utf8').split(CONFIG_MARK);
  const example: unknown = JSON.parse(/```json\n([\s\S]*?)```/.exec(page)?.[1] ?? '');
  const [awsPage = ''] = readFileSync('docs/aws-settings.md', 'utf8').split(CONFIG_MARK);
  const awsExample: unknown = JSON.parse(readFileSync('jobwire.cells.example.json', 'utf8'));
  return {
    'docs/jobwire.schema.json': serialize(configSchemaDocument()),
    'docs/configuration.md': `${page}${CONFIG_MARK}\n${configReference(example)}`,
    'docs/jobwire.cells.schema.json': serialize(
      schemaDocument(settingsSchema, {
        title: 'Jobwire settings on AWS',
        description: 'Settings of the stages and cells that are deployed to AWS (docs/aws-settings.md).',
      }),
    ),
    'docs/aws-settings.md': `${awsPage}${CONFIG_MARK}\n${configReference(awsExample, settingsSchema)}`,
  };
}

/** Writes the documents about the configuration file. */
export function writeConfigDocuments(): void {
  for (const [path, text] of Object.entries(configDocuments())) writeFileSync(path, text);
}

if (import.meta.main) {
  const [, , task, folder] = process.argv;
  if (task === 'files' && folder !== undefined) {
    await writeApiFiles(folder);
  } else {
    writeDocuments('docs');
    writeConfigDocuments();
    if (task === 'release') writeDocuments(BASELINE);
  }
}
