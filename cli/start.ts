/** Runs commands that need a newer Node than the CLI. `jobwire start` does the same as `npm start`. */
import { spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { basename, dirname, join } from 'node:path';
import { quote } from '../local/terminal.ts';
import { requireCached } from '../shared/short-start.ts';
import { type Context, UsageError } from './command.ts';

/** Node version that the embedded parts require and the project is tested on. */
const NODE_MAJOR = 24;

/** Starts Jobwire, which continues to run after this function returns. */
export async function start(
  { out }: Pick<Context, 'out'>,
  flags: {
    readonly config: string | undefined;
    readonly port: number | undefined;
    readonly seed: number | undefined;
  },
): Promise<number | undefined> {
  const args: string[] = [];
  if (flags.config !== undefined) args.push('--config', flags.config);
  if (flags.port !== undefined) args.push('--port', String(flags.port));
  if (flags.seed !== undefined) args.push('--seed', String(flags.seed));
  if (out.verbose) args.push('--verbose');
  return onRecentNode('start', async () => {
    // Ends with the parent process, which runs an older Node and started this one.
    if (process.send) {
      process.once('disconnect', () => process.kill(process.pid, 'SIGTERM'));
      process.channel?.unref();
    }
    process.argv.splice(2, process.argv.length, ...args);
    if (import.meta.filename.endsWith('.ts')) await import('../local/main.ts');
    else requireCached(join(import.meta.dirname, 'start.cjs'));
    return undefined;
  });
}

/**
 * Runs a command. If this Node is too old, runs the same command line in a child process on the Node of the `node` package, and returns its
 * exit code.
 */
export async function onRecentNode(
  name: string,
  run: () => Promise<number | undefined>,
): Promise<number | undefined> {
  if (isRecent(process.versions.node)) return run();
  const beside = findInstalledNode();
  if (beside === undefined) {
    throw new UsageError(
      `The command ${name} requires Node ${NODE_MAJOR} or later. This is Node ${process.versions.node}. ${describeNodeFix()}`,
    );
  }
  if (!existsSync(beside.binary)) throw new UsageError(`${NOT_RUN} ${REBUILD}`);
  const child = spawn(beside.binary, process.argv.slice(1), {
    stdio: ['inherit', 'inherit', 'inherit', 'ipc'],
  });
  // Ctrl-C in the terminal reaches both processes. The child process shuts down by itself.
  process.on('SIGINT', () => {});
  process.on('SIGTERM', () => child.kill('SIGTERM'));
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', (code, signal) => resolve(code ?? (signal === 'SIGINT' ? 130 : 1)));
  });
}

/**
 * Returns how to get a recent Node. Next to a global jobwire, npm installs the `node` package only globally, and not over a Node in the same
 * folder.
 */
export function describeNodeFix(program = import.meta.filename): string {
  const [, modules = ''] = /^(.*[\\/]node_modules)[\\/]jobwire[\\/]/.exec(program) ?? [];
  const folder = dirname(modules);
  const isWindows = process.platform === 'win32';
  // npm creates this file in each folder of a local installation.
  const isLocal = existsSync(join(folder, 'package.json')) || (!isWindows && basename(folder) !== 'lib');
  if (modules === '' || isLocal) {
    return `To install the required version next to jobwire, run: npm install node@${NODE_MAJOR}`;
  }
  const prefix = isWindows ? folder : dirname(folder);
  if (existsSync(isWindows ? join(prefix, 'node.exe') : join(prefix, 'bin', 'node'))) {
    return `Replace this Node by Node ${NODE_MAJOR} or later.`;
  }
  return `To install the required version next to jobwire, run: npm install --global --prefix ${quote(prefix)} node@${NODE_MAJOR}`;
}

function isRecent(version: string): boolean {
  return Number.parseInt(version, 10) >= NODE_MAJOR;
}

/** Error if the `node` package is installed without its binary, and its fix. */
export const NOT_RUN = 'The install script of the npm package node did not run.';
export const REBUILD =
  'Run npm rebuild node where the package is installed (with npm 12, first npm approve-scripts node).';

/** Returns path and version of Node from the installed `node` package, if it is recent enough. The binary may be missing. */
function findInstalledNode(): { readonly binary: string; readonly version: string } | undefined {
  try {
    const description = createRequire(import.meta.url).resolve('node/package.json');
    const { version } = JSON.parse(readFileSync(description, 'utf8')) as { version: string };
    const binary = join(dirname(description), 'bin', process.platform === 'win32' ? 'node.exe' : 'node');
    return isRecent(version) ? { binary, version } : undefined;
  } catch {
    return undefined;
  }
}

/**
 * Returns the Node version that `jobwire start` uses, whether it comes from the `node` package, and whether that lacks its binary. `undefined`
 * without a suitable version.
 */
export function findNode():
  | { readonly version: string; readonly beside: boolean; readonly missing: boolean }
  | undefined {
  if (isRecent(process.versions.node)) {
    return { version: process.versions.node, beside: false, missing: false };
  }
  const found = findInstalledNode();
  return found && { version: found.version, beside: true, missing: !existsSync(found.binary) };
}
