/** Child processes of the benchmark, whose CPU time is not counted as that of the measured process. */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** A child process and its first message. */
export interface Child<Facts> extends Disposable {
  readonly process: ChildProcess;
  readonly facts: Facts;
  /** Sends a message and waits for the next one. */
  ask<Answer>(message: object): Promise<Answer>;
}

/**
 * Starts a module of this folder with arguments and waits for its first message. `Symbol.dispose` ends it. `detached`: in a session of its
 * own.
 */
export async function startChild<Facts>(
  module: string,
  args: string[] = [],
  execArgv: string[] = [],
  detached = false,
): Promise<Child<Facts>> {
  const child = fork(fileURLToPath(new URL(module, import.meta.url)), args, { execArgv, detached });
  const [facts] = (await once(child, 'message')) as [Facts];
  return {
    process: child,
    facts,
    async ask<Answer>(message: object) {
      const answer = once(child, 'message') as Promise<[Answer]>;
      child.send(message);
      return (await answer)[0];
    },
    [Symbol.dispose]: () => void child.kill(),
  };
}

const TICKS_PER_SECOND = 100;

/** Returns the CPU time of another process in ms. Linux only. */
export function readCpuMs(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? [];
  return ((Number(fields[11]) + Number(fields[12])) * 1000) / TICKS_PER_SECOND;
}
