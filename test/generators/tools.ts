/** Installs generators and runs programs with them. */
import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect } from 'vitest';

export const HOME = process.env.GENERATORS_DIR ?? join(tmpdir(), 'jobwire-generators');
export const BIN = join(HOME, 'bin');
export const VENV = join(HOME, 'venv/bin');

export const INSTALL_MS = 600_000;
export const GENERATE_MS = 600_000;
export const COMPILE_MS = 600_000;

/** Pinned, so that support of a later version is tested when this changes. */
const OAPI_CODEGEN = 'github.com/oapi-codegen/oapi-codegen/v2/cmd/oapi-codegen@v2.8.2';
const PYTHON_CLIENT = 'openapi-python-client==0.29.1';

type Skip = (reason: string) => never;

const execute = promisify(execFile);

/** Runs a program in a folder below {@link HOME}. Returns its output, and rejects with its output if it fails. */
export async function run(
  folder: string,
  timeout: number,
  program: string,
  ...args: string[]
): Promise<string> {
  const env = { ...process.env, GOBIN: BIN, PATH: `${BIN}:${VENV}:${process.env.PATH}` };
  const cwd = folder.startsWith('/') ? folder : join(HOME, folder);
  const { stdout, stderr } = await execute(program, args, { cwd, env, timeout, maxBuffer: 50_000_000 });
  return `${stdout}${stderr}`;
}

/** Installs a missing tool. Returns the reason if that fails. */
export async function install(tool: string, steps: () => Promise<unknown>): Promise<string | undefined> {
  if (existsSync(tool)) return undefined;
  return steps().then(
    () => undefined,
    (cause) => `${tool} could not be installed: ${String(cause).slice(0, 300)}`,
  );
}

/** Creates an empty folder below {@link HOME}. Returns its path. */
export function makeEmpty(folder: string): string {
  const path = join(HOME, folder);
  rmSync(path, { recursive: true, force: true });
  mkdirSync(path, { recursive: true });
  return path;
}

/** Installs oapi-codegen, or skips the test. */
export async function installOapiCodegen(skip: Skip): Promise<void> {
  const missing = await install(join(BIN, 'oapi-codegen'), () =>
    run('.', INSTALL_MS, 'go', 'install', OAPI_CODEGEN),
  );
  if (missing) leaveOut(skip, missing);
}

/** Installs openapi-python-client, or skips the test. */
export async function installPythonClient(skip: Skip): Promise<void> {
  const missing = await install(join(VENV, 'openapi-python-client'), async () => {
    await run('.', INSTALL_MS, 'python3', '-m', 'venv', 'venv');
    await run('.', INSTALL_MS, join(VENV, 'pip'), 'install', '--quiet', PYTHON_CLIENT);
  });
  if (missing) leaveOut(skip, missing);
}

/** Skips a test whose generator is missing. With GENERATORS=required that is a failure. */
export function leaveOut(skip: Skip, reason: string): void {
  if (process.env.GENERATORS === 'required') expect.unreachable(reason);
  skip(reason);
}
