/**
 * Notifies readers in one process that a log grew. Only a hint: writes of other processes are not reported, so waiting readers
 * also poll the table.
 */
import type { AccountRef } from '../storage/schema.ts';

/** Notifies waiting readers in this process that a log grew. */
export interface GrowthSignal {
  /** Reports a transaction that added events (`onCommitted` of the log). Never throws. */
  grew(ref: AccountRef): void;
  /** Watches these logs. The watch must be closed. */
  watch(of: readonly AccountRef[]): Watch;
  /** Number of open watches. */
  readonly watches: number;
}

/** One reader. Growth between two calls of `next` is returned by the second, so no hint is lost between reading and waiting. */
export interface Watch extends Disposable {
  /**
   * Waits for growth and returns the logs that grew since the last call. Returns none after `timeoutMs`, or if the signal is
   * aborted. Never rejects. Calls must not overlap.
   */
  next(timeoutMs: number, abort: AbortSignal): Promise<readonly AccountRef[]>;
}

/** Creates a signal for one process. */
export function createGrowthSignal(): GrowthSignal {
  const listeners = new Set<(ref: AccountRef) => void>();
  return {
    grew(ref) {
      for (const listener of listeners) listener(ref);
    },
    watch(of) {
      const { watch, notify } = createWatch(() => listeners.delete(listener));
      const listener = (ref: AccountRef) => {
        if (of.some(({ account, region }) => account === ref.account && region === ref.region)) notify(ref);
      };
      listeners.add(listener);
      return watch;
    },
    get watches() {
      return listeners.size;
    },
  };
}

/** Returns a watch without a signal, which only waits for the timeout. */
export function createTimer(): Watch {
  return createWatch(() => {}).watch;
}

function createWatch(close: () => void): { watch: Watch; notify: (ref: AccountRef) => void } {
  let grown = new Map<string, AccountRef>();
  let wake: (() => void) | undefined;
  const watch: Watch = {
    next(timeoutMs, abort) {
      return new Promise((resolve) => {
        const done = () => {
          clearTimeout(timer);
          abort.removeEventListener('abort', done);
          wake = undefined;
          const refs = [...grown.values()];
          grown = new Map();
          resolve(refs);
        };
        const timer = setTimeout(done, timeoutMs);
        if (grown.size > 0 || abort.aborted) {
          done();
          return;
        }
        wake = done;
        abort.addEventListener('abort', done);
      });
    },
    [Symbol.dispose]() {
      close();
      wake?.();
    },
  };
  return {
    watch,
    notify(ref) {
      grown.set(`${ref.region}/${ref.account}`, ref);
      wake?.();
    },
  };
}
