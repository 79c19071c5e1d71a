/** Processes of a compared system: their start and end, CPU time and memory. Linux only (`/proc`). */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { closeSync, openSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { readClockMs } from './results.ts';

/** A program to run. */
export interface Program {
  readonly command: string;
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** User and group id. Default: those of this process. */
  readonly user?: number | undefined;
}

/** The processes of a system, by the name of their part. */
export interface Processes {
  /** Starts a part. Its output goes to `<folder>/<name>.log`. */
  start(name: string, program: Program): void;
  isRunning(name: string): boolean;
  /** Stops a part and its children. Kills them if they do not exit within {@link STOP_MS}. */
  stop(name: string, signal?: NodeJS.Signals): Promise<void>;
  /**
   * Kills parts (default: all) and their children with SIGKILL, at the same time. Returns when none of them is alive: the time (ms of the
   * monotonic clock) from which on all of them had the signal.
   */
  kill(name?: string): Promise<number>;
  /** Number of processes, CPU time in ms and memory (proportional set size) in MB of all parts, their children included. */
  measure(): { readonly count: number; readonly cpuMs: number; readonly memoryMb: number };
}

const STOP_MS = 20_000;
const MS_PER_TICK = 10;

/** Parts that may be alive. They are in sessions of their own, so they would outlive this process. */
const parts = new Set<ChildProcess>();
process.on('exit', () => killTrees([...parts]));

/** Creates the processes of a system. */
export function createProcesses(folder: string): Processes {
  const own = new Map<string, ChildProcess>();

  async function forget(names: readonly string[], pids: readonly number[]): Promise<void> {
    await waitUntil(() => pids.every((pid) => !isAlive(pid)), 'processes to exit', STOP_MS);
    for (const name of names) {
      const part = own.get(name);
      if (part) parts.delete(part);
      own.delete(name);
    }
  }

  async function kill(...names: string[]): Promise<number> {
    const wanted = names.length > 0 ? names : [...own.keys()];
    const pids = killTrees(wanted.flatMap((name) => own.get(name) ?? []));
    const killedAt = readClockMs();
    await forget(wanted, pids);
    return killedAt;
  }

  return {
    start(name, { command, args = [], env, user }) {
      const log = openSync(join(folder, `${name}.log`), 'a');
      const part = spawn(command, args, {
        // A session of its own, as a service has: Linux divides CPU time by sessions first.
        detached: true,
        cwd: folder,
        stdio: ['ignore', log, log],
        env: { ...process.env, ...env },
        ...(user === undefined ? {} : { uid: user, gid: user }),
      });
      closeSync(log);
      part.on('error', (cause) => console.error(`${command} did not start: ${cause.message}`));
      parts.add(part);
      own.set(name, part);
    },
    isRunning: (name) => own.has(name),
    async stop(name, signal = 'SIGTERM') {
      const part = own.get(name);
      if (!part) return;
      const pids = listTree([part]).map(({ pid }) => pid);
      part.kill(signal);
      await forget([name], pids).catch(async () => void (await kill(name)));
    },
    kill: (name) => (name === undefined ? kill() : kill(name)),
    measure() {
      const tree = listTree([...own.values()]);
      return {
        count: tree.length,
        cpuMs: tree.reduce((sum, { cpuMs }) => sum + cpuMs, 0),
        memoryMb: tree.reduce((sum, { pid }) => sum + readMemoryMb(pid), 0),
      };
    },
  };
}

/** Runs a program to its end, and returns its output. */
export async function run({ command, args = [], env, user }: Program): Promise<string> {
  const ids = user === undefined ? {} : { uid: user, gid: user };
  const { stdout } = await promisify(execFile)(command, [...args], {
    env: { ...process.env, ...env },
    ...ids,
  });
  return stdout;
}

/** Waits until a condition holds. A condition that throws does not hold. */
export async function waitUntil(
  holds: () => boolean | Promise<boolean>,
  what: string,
  timeoutMs = 120_000,
): Promise<void> {
  const end = performance.now() + timeoutMs;
  for (;;) {
    try {
      if (await holds()) return;
    } catch {
      // The next attempt may succeed.
    }
    if (performance.now() > end) throw new Error(`Waited ${timeoutMs / 1000} s for ${what}.`);
    await sleep(25);
  }
}

interface ProcessState {
  readonly pid: number;
  readonly parent: number;
  readonly state: string;
  /** CPU time, including that of children that have exited. */
  readonly cpuMs: number;
}

function readProcess(pid: number): ProcessState | undefined {
  try {
    const text = readFileSync(`/proc/${pid}/stat`, 'utf8');
    // The name of the program, in parentheses, may contain spaces.
    const [state = '', parent, ...fields] = text.slice(text.lastIndexOf(')') + 2).split(' ');
    const ticks = fields.slice(9, 13).reduce((sum, field) => sum + Number(field), 0);
    return { pid, parent: Number(parent), state, cpuMs: ticks * MS_PER_TICK };
  } catch {
    return undefined;
  }
}

function isAlive(pid: number): boolean {
  const state = readProcess(pid)?.state;
  return state !== undefined && state !== 'Z';
}

/** Returns the processes and all their descendants. */
function listTree(roots: readonly ChildProcess[]): ProcessState[] {
  const all = readdirSync('/proc').flatMap((name) =>
    /^\d+$/.test(name) ? (readProcess(Number(name)) ?? []) : [],
  );
  const wanted = new Set(roots.map(({ pid }) => pid));
  const found = all.filter(({ pid }) => wanted.has(pid));
  for (const { pid } of found) found.push(...all.filter(({ parent }) => parent === pid));
  return found;
}

function readMemoryMb(pid: number): number {
  try {
    return Number(/^Pss:\s+(\d+)/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8'))?.[1] ?? 0) / 1024;
  } catch {
    return 0;
  }
}

/** Kills processes and their descendants. Returns their ids. */
function killTrees(roots: readonly ChildProcess[]): number[] {
  const pids = roots.length > 0 ? listTree(roots).map(({ pid }) => pid) : [];
  for (const pid of pids) {
    try {
      process.kill(pid, 'SIGKILL');
    } catch {
      // It has exited meanwhile.
    }
  }
  return pids;
}
