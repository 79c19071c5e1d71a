/** Child processes of the benchmark, so that what they compute is not counted as ours. */
import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';

/** A child, and the first message it sent. */
export interface Child<Facts> extends Disposable {
  readonly process: ChildProcess;
  readonly facts: Facts;
  /** Sends a message and waits for the next one. */
  ask(message: object): Promise<unknown>;
}

/** Starts a module of this folder with arguments and waits for its first message. It ends with `Symbol.dispose`. */
export async function startChild<Facts>(
  module: string,
  args: string[] = [],
  execArgv: string[] = [],
): Promise<Child<Facts>> {
  const child = fork(fileURLToPath(new URL(module, import.meta.url)), args, { execArgv });
  const [facts] = (await once(child, 'message')) as [Facts];
  return {
    process: child,
    facts,
    async ask(message) {
      const answer = once(child, 'message');
      child.send(message);
      return (await answer)[0];
    },
    [Symbol.dispose]: () => void child.kill(),
  };
}
