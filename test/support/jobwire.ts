/**
 * The parts that integration tests start: a simulated ordering API and a Jobwire that polls it. They stop with the test, or
 * when `end` decides.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { inject, onTestFinished } from 'vitest';
import { type Sandbox, type SandboxOptions, startSandbox as start } from '../../sandbox/server.ts';
import { createWorld, type SandboxAccount, type World } from '../../sandbox/world/world.ts';
import { launch, type Running } from './command.ts';

/** Registers what stops a part. */
export type End = (stop: () => void | Promise<void>) => unknown;

/** Starts a sandbox on free ports. Default of `world`: an empty one with the real clock. */
export async function startSandbox(
  options: Partial<SandboxOptions> = {},
  end: End = onTestFinished,
): Promise<{ readonly sandbox: Sandbox; readonly world: World }> {
  const world = options.world ?? createWorld({ now: Date.now });
  const sandbox = await start({ ...options, world });
  end(() => sandbox.stop());
  return { sandbox, world };
}

/** A configuration that polls accounts of a sandbox every second, under their names. */
export function configFor(sandbox: Sandbox, accounts: readonly SandboxAccount[]) {
  const regions = [...new Set(accounts.map(({ region }) => region))];
  return {
    port: 0,
    regions: Object.fromEntries(
      regions.map((region) => [
        region,
        { baseUrl: sandbox.apiUrl(region), authUrl: sandbox.authUrl(region), realm: region },
      ]),
    ),
    accounts: accounts.map(({ name, region, clientId, clientSecret }) => ({
      ...{ id: name, region, clientId, clientSecret },
      pollIntervalSeconds: 1,
    })),
  };
}

/** Options of starting a Jobwire. */
export interface StartOptions {
  /** The program. Default: `local/main.ts`. */
  readonly command?: readonly string[];
  readonly cwd?: string;
  readonly env?: Record<string, string | undefined>;
  readonly end?: End;
}

/** A running Jobwire. */
export interface Jobwire extends Running {
  /** URL of its HTTP API and dashboard. */
  readonly url: string;
}

/** `jobwire start` of the built package. It takes two thirds of the CPU time of a start from the sources. */
export const builtProgram = (): readonly string[] => [
  process.execPath,
  join(inject('packageFolder'), 'cli', 'jobwire.js'),
  'start',
];

/** `npm start`. */
const sourceProgram: readonly string[] = [resolve('node_modules/.bin/node'), 'local/main.ts'];

/** Starts the program and does not wait: it may end by itself. */
export function launchJobwire(args: readonly string[], options: StartOptions = {}): Running {
  const { command = sourceProgram, end = onTestFinished, ...rest } = options;
  const running = launch([...command, ...args], rest);
  end(async () => {
    running.child.kill('SIGKILL');
    await running.ended;
  });
  return running;
}

/** Starts the program and waits until it accepts requests. */
export async function startJobwire(args: readonly string[], options: StartOptions = {}): Promise<Jobwire> {
  const running = launchJobwire(args, options);
  return { ...running, url: (await running.printed(/HTTP API +(http\S+)/)).trim() };
}

/** Returns the generated API key of a started program, from the file that it prints. */
export async function generatedKey(running: Pick<Running, 'printed'>): Promise<string> {
  return readFileSync((await running.printed(/API key +in (\S+)/)).trim(), 'utf8').trim();
}

/**
 * Writes a configuration into a new folder, which also contains the data folder. Without `sns: true`, SNS and SQS do not start: they need
 * a third of the CPU time of a start.
 */
export function writeConfig(config: object, end: End = onTestFinished): string {
  const folder = mkdtempSync(join(tmpdir(), 'jobwire-test-'));
  end(() => rmSync(folder, { recursive: true, force: true }));
  const file = join(folder, 'jobwire.json');
  writeFileSync(file, JSON.stringify({ dataDir: join(folder, 'data'), sns: false, ...config }));
  return file;
}
