/** The built CLI and a real Jobwire that it calls. */
import { EventEmitter } from 'node:events';
import { mkdtempSync, readdirSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join } from 'node:path';
import { Readable, Writable } from 'node:stream';
import { pathToFileURL } from 'node:url';
import { inject } from 'vitest';
import type * as Cli from '../../cli/run.ts';
import { launch, type Running } from './command.ts';
import { builtProgram, configFor, type End, launchJobwire, startSandbox, writeConfig } from './jobwire.ts';

/** The URLs of a region of the ordering API. */
export type Region = { readonly baseUrl: string; readonly authUrl: string; readonly realm: string };
export const KEY = 'a-key-for-the-tests-only';
const folder = join(inject('packageFolder'), 'cli');
/** The built CLI. */
export const binary = join(folder, 'jobwire.js');
const cli = await loadCli(folder);

/** The commands that test/cli/operations.integration.test.ts runs. */
export const OPERATION_COMMANDS: readonly string[] = [
  ...['batch', 'show', 'update', 'resend', 'rotate-secret', 'retry', 'discard', 'dead', 'cancel-replay'].map(
    (name) => `endpoints ${name}`,
  ),
  ...['accounts polls', 'accounts statistics', 'accounts open-jobs', 'jobs deliveries'],
  ...['regions list', 'regions show', 'regions statistics', 'regions open-jobs'],
  ...['event-types list', 'event-types show', 'keys show', 'recipients show'],
  ...['profiles add', 'profiles list', 'profiles use', 'profiles remove', 'get', 'trigger'],
];

/** Options of a command line. */
export interface RunOptions {
  readonly env?: Record<string, string | undefined>;
  readonly input?: string;
}

/**
 * Starts a Jobwire that tracks the account `acme` of a sandbox, whose account `bakery` it does not track. `names`: commands, and groups of
 * commands, that `run`, `exec` and `json` start as processes until one has succeeded.
 */
export async function startSite(end: End, names: readonly string[], more: object = {}) {
  const { sandbox, world } = await startSandbox({}, end);
  const acme = world.addAccount({ region: 'us', name: 'acme' });
  const bakery = world.addAccount({ region: 'us', name: 'bakery' });
  const job = acme.createJob({ status: 'Scheduled' });
  const upstream = configFor(sandbox, [acme]);
  const config = { ...upstream, apiKey: KEY, webhooks: { allowPrivateNetworks: true } };
  const file = writeConfig({ ...config, ...more }, end);
  const running = launchJobwire(['--config', file], { command: builtProgram(), end });
  await running.printed(/account\.baselined/);
  const url = await running.printed(/HTTP API +(\S+)/);
  // As an installed command.
  const bin = mkdtempSync(join(tmpdir(), 'jobwire-bin-'));
  end(() => rmSync(bin, { recursive: true, force: true }));
  symlinkSync(binary, join(bin, 'jobwire'));
  const PATH = [bin, process.env.PATH].join(delimiter);
  const env = { JOBWIRE_URL: url, JOBWIRE_API_KEY: KEY, PATH };
  /** The commands that were successful as a process. */
  const started = new Set<string>();
  /** Runs a command line as a process. */
  const start = (args: readonly string[], options: RunOptions = {}): Running => {
    const running = launch([process.execPath, binary, ...args], {
      ...options,
      env: { ...env, ...options.env },
    });
    end(() => void running.child.kill('SIGKILL'));
    void running.ended.then(({ code }) => code === 0 && started.add(cli.getName(args)));
    return running;
  };
  /** Runs a command line in this process, which costs a hundredth of a process. */
  const runHere = (args: readonly string[], options: RunOptions = {}) =>
    cli.run(args, { ...options, env: { ...env, ...options.env } });
  const isTested = (name: string): boolean => {
    const inGroup = names.includes(name.split(' ')[0] ?? '') && !OPERATION_COMMANDS.includes(name);
    return inGroup || names.includes(name);
  };
  /** Runs a command line of `names` as a process, until a process of its command has succeeded; others in this process. */
  const exec = (args: readonly string[], options: RunOptions = {}) => {
    const name = cli.getName(args);
    return isTested(name) && !started.has(name) ? start(args, options).ended : runHere(args, options);
  };
  const run = (...args: string[]) => exec(args);
  /** Runs with `--json`. Returns the documents. */
  const json = async (...args: string[]) => toDocuments((await run(...args, '--json')).out);
  return {
    ...{ url, env, sandbox, world, region: upstream.regions.us as Region, acme, bakery },
    ...{ job, start, runHere, exec, run, json, dataDir: join(dirname(file), 'data') },
    /** Returns the commands of `names` without a successful process. */
    notStarted: () => Object.keys(cli.commands).filter((name) => isTested(name) && !started.has(name)),
  };
}

/** Loads the part of a built CLI that its entry point loads. */
export async function loadCli(folder: string) {
  const [module = ''] = readdirSync(folder).filter((file) => /^run-\w+\.js$/.test(file));
  const { loadCommands, run }: typeof Cli = await import(pathToFileURL(join(folder, module)).href);
  const commands = await loadCommands();
  return {
    commands,
    /** Returns the name of the command of a command line that begins with it. */
    getName([first = '', second]: readonly string[]): string {
      return first in commands ? first : `${first} ${second}`;
    },
    /** Runs a command line in this process, without a terminal. */
    run: (args: readonly string[], options: RunOptions) => runInProcess(run, args, options),
  };
}

async function runInProcess(
  run: typeof Cli.run,
  args: readonly string[],
  { env = {}, input = '' }: RunOptions,
) {
  const output = { out: '', err: '' };
  const writable = (to: keyof typeof output) =>
    new Writable({
      write(text, _, done) {
        output[to] += text;
        done();
      },
    });
  const host = Object.assign(new EventEmitter(), {
    ...{
      stdin: Readable.from(input === '' ? [] : [input]),
      stdout: writable('out'),
      stderr: writable('err'),
      env,
    },
    exit(code: number): never {
      throw new Error(`The CLI exits with ${code}.`);
    },
  });
  const code = await run(args, host as unknown as Cli.Host);
  return { code, ...output };
}

/** Parses a JSON document per line. */
export const toDocuments = (text: string) =>
  text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line));
