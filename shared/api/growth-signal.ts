/**
 * Who waits for a log to grow, within one process. A hint and nothing more: what other processes write is not seen here,
 * so whoever waits looks at the table by itself now and then.
 */
import type { AccountRef } from '../storage/schema.ts';

/** Notifies waiting readers in this process that a log grew. */
export interface GrowthSignal {
  /** To be called after each transaction that added events (`onCommitted` of the log). Never throws. */
  grew(ref: AccountRef): void;
  /** Watches these logs. The watch must be closed. */
  watch(of: readonly AccountRef[]): Watch;
  /** Number of open watches. */
  readonly watches: number;
}

/** One listener. What grows between two calls of `next` is kept for the second, so no hint falls between read and wait. */
export interface Watch extends Disposable {
  /**
   * The accounts whose log grew since the last call, as soon as there is one; none when `timeoutMs` is over or the
   * signal is aborted. Never rejects. One call at a time.
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
      const { watch, hear } = createWatch(() => listeners.delete(listener));
      const listener = (ref: AccountRef) => {
        if (of.some(({ account, region }) => account === ref.account && region === ref.region)) hear(ref);
      };
      listeners.add(listener);
      return watch;
    },
    get watches() {
      return listeners.size;
    },
  };
}

/** A watch without a signal: waits until the timeout. */
export function deafWatch(): Watch {
  return createWatch(() => {}).watch;
}

function createWatch(close: () => void): { watch: Watch; hear: (ref: AccountRef) => void } {
  let heard = new Map<string, AccountRef>();
  let wake: (() => void) | undefined;
  const watch: Watch = {
    next(timeoutMs, abort) {
      return new Promise((resolve) => {
        const done = () => {
          clearTimeout(timer);
          abort.removeEventListener('abort', done);
          wake = undefined;
          const grown = [...heard.values()];
          heard = new Map();
          resolve(grown);
        };
        const timer = setTimeout(done, timeoutMs);
        if (heard.size > 0 || abort.aborted) {
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
    hear(ref) {
      heard.set(`${ref.region}/${ref.account}`, ref);
      wake?.();
    },
  };
}
