/** Builds the dashboard and the package once, for all files that start or install them. */
import { execFile } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { TestProject } from 'vitest/node';

declare module 'vitest' {
  export interface ProvidedContext {
    /** The folder of the built package. */
    readonly packageFolder: string;
    /** The same, packed. */
    readonly tarball: string;
  }
}

export default async function setUp(project: TestProject): Promise<() => void> {
  const folder = mkdtempSync(join(tmpdir(), 'jobwire-package-'));
  const built = join(folder, 'dist');
  const run = promisify(execFile);
  await run(process.execPath, ['build.ts', built], { timeout: 120_000 });
  // npm must not take this repository for the folder it works in.
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^npm_/i.test(name)));
  const { stdout } = await run('npm', ['pack', built, '--json'], { cwd: folder, env, timeout: 60_000 });
  const [{ filename }] = JSON.parse(stdout);
  project.provide('packageFolder', built);
  project.provide('tarball', join(folder, filename));
  return () => rmSync(folder, { recursive: true, force: true });
}
