/** The linter of OpenAPI documents, as `redocly.yaml` sets it. */
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

/** What the linter found. */
export interface Finding {
  readonly ruleId: string;
  readonly severity: string;
  readonly message: string;
  readonly location: readonly { readonly pointer?: string }[];
}

/** What Redocly finds wrong with a document, warnings included. It asks nobody over the network. */
export async function findingsIn(document: object): Promise<Finding[]> {
  const folder = mkdtempSync(join(tmpdir(), 'jobwire-redocly-'));
  try {
    const file = join(folder, 'openapi.json');
    writeFileSync(file, JSON.stringify(document));
    const env = { ...process.env, REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' };
    const args = [
      'node_modules/@redocly/cli/bin/cli.js',
      'lint',
      '--config=redocly.yaml',
      '--format=json',
      file,
    ];
    // It ends with 1 when it found something.
    const { stdout } = await promisify(execFile)(process.execPath, args, { env }).catch((cause) => cause);
    return (JSON.parse(stdout) as { problems: Finding[] }).problems;
  } finally {
    rmSync(folder, { recursive: true });
  }
}
