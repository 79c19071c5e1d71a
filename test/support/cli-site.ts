/** The built CLI and a real Jobwire that it calls. */
import { join } from 'node:path';
import { inject } from 'vitest';
import { launch, type Running } from './command.ts';
import { configFor, type End, launchJobwire, startSandbox, writeConfig } from './jobwire.ts';

export const KEY = 'a-key-for-the-tests-only';
/** The built CLI. */
export const binary = join(inject('packageFolder'), 'cli', 'jobwire.js');

/** Options of a CLI process. */
export interface RunOptions {
  readonly env?: Record<string, string | undefined>;
  readonly input?: string;
}

/** Starts a Jobwire that tracks the account `acme` of a sandbox, whose account `bakery` it does not track. */
export async function startSite(end: End, more: object = {}) {
  const { sandbox, world } = await startSandbox({}, end);
  const acme = world.addAccount({ region: 'us', name: 'acme' });
  const bakery = world.addAccount({ region: 'us', name: 'bakery' });
  const job = acme.createJob({ status: 'Scheduled' });
  const config = { ...configFor(sandbox, [acme]), apiKey: KEY, webhooks: { allowPrivateNetworks: true } };
  const running = launchJobwire(['--config', writeConfig({ ...config, ...more }, end)], { end });
  await running.said(/account\.baselined/);
  const url = await running.said(/HTTP API +(\S+)/);
  const env = { JOBWIRE_URL: url, JOBWIRE_API_KEY: KEY };
  const start = (args: readonly string[], options: RunOptions = {}): Running => {
    const started = launch([process.execPath, binary, ...args], {
      ...options,
      env: { ...env, ...options.env },
    });
    end(() => void started.child.kill('SIGKILL'));
    return started;
  };
  const run = (...args: string[]) => start(args).ended;
  /** Runs with `--json`. Returns the documents. */
  const json = async (...args: string[]) => toDocuments((await run(...args, '--json')).out);
  return { url, env, world, acme, bakery, job, start, run, json };
}

/** Parses a JSON document per line. */
export const toDocuments = (text: string) =>
  text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line));
