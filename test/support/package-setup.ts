/** Builds the dashboard and the package, and installs it, once for all test files that use them. */
import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';
import type { TestProject } from 'vitest/node';

declare module 'vitest' {
  export interface ProvidedContext {
    /** The folder of the built package. */
    readonly packageFolder: string;
    /** A folder with a private package, in which the built package was installed, packed and offline. */
    readonly consumerFolder: string;
  }
}

export default async function setUp(project: TestProject): Promise<() => void> {
  const folder = mkdtempSync(join(tmpdir(), 'jobwire-package-'));
  const built = join(folder, 'dist');
  const run = promisify(execFile);
  await run(process.execPath, ['build.ts', built], { timeout: 120_000 });
  // Fills V8's compile cache: servers that are killed by tests write none.
  await run(process.execPath, [join(built, 'cli', 'jobwire.js'), 'start', '--config', '']).catch(() => {});
  // npm must not use this repository as its working folder, nor find our Node first.
  const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^npm_/i.test(name)));
  const paths = (env.PATH ?? '').split(delimiter).filter((path) => !path.includes('node_modules'));
  env.PATH = paths.join(delimiter);
  project.provide('packageFolder', built);
  const consumer = join(folder, 'consumer');
  mkdirSync(consumer);
  writeFileSync(join(consumer, 'package.json'), '{ "private": true, "type": "module" }');
  // `--install-links` packs the folder, and installs the package.
  const install = ['install', '--offline', '--no-audit', '--no-fund', '--install-links', built];
  await run('npm', install, { cwd: consumer, env, timeout: 60_000 });
  project.provide('consumerFolder', consumer);
  return () => rmSync(folder, { recursive: true, force: true });
}
