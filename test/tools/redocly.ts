/** The linter of OpenAPI documents, configured by `redocly.yaml`. */
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

/** A finding of the linter. */
export interface Finding {
  readonly ruleId: string;
  readonly severity: string;
  readonly message: string;
  readonly location: readonly { readonly pointer?: string }[];
}

/** Returns the findings of Redocly in each of the documents, including warnings. One process without network requests. */
export async function findingsIn(...documents: readonly object[]): Promise<Finding[][]> {
  const folder = mkdtempSync(join(tmpdir(), 'jobwire-redocly-'));
  try {
    const files = documents.map((document, at) => {
      const file = join(folder, `openapi-${at}.json`);
      writeFileSync(file, JSON.stringify(document));
      return file;
    });
    const env = { ...process.env, REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' };
    const args = [
      'test/tools/node_modules/@redocly/cli/bin/cli.js',
      'lint',
      '--config=redocly.yaml',
      '--format=json',
      ...files,
    ];
    // Exit code 1: there are findings.
    const { stdout } = await promisify(execFile)(process.execPath, args, { env }).catch((cause) => cause);
    // One JSON document for each file, in their order.
    const reports = (stdout as string).split(/(?<=^\})(?=\{)/m).map((text) => JSON.parse(text).problems);
    if (reports.length !== files.length) throw new Error(`Redocly has reported on ${reports.length} files.`);
    return reports;
  } finally {
    rmSync(folder, { recursive: true });
  }
}
