/**
 * Decorators of a table for a process in which many callers read the same items at the same time. Equal reads
 * within one turn of the event loop run once. A caller never receives a response to a read that began before
 * its call, so data is no older than without sharing.
 */
import type { Item, Key, Table } from './table.ts';

/** Shares equal reads; writes pass through unchanged. Results are shared and must not be modified. */
export function shareTableReads(table: Table): Table {
  return {
    ...table,
    get: shareCalls((key) => table.get(key), { inTurn: true }),
    getMany: shareCalls((keys) => table.getMany(keys), { inTurn: true }),
    query: shareCalls((query) => table.query(query)),
  };
}

/**
 * Batches single reads: those requested in one turn of the event loop become one `getMany`. For a process
 * that checks many items at once. Results are shared and must not be modified.
 */
export function gatherTableReads(table: Table): Table {
  let asked: Map<string, Key> | undefined;
  let answer: Promise<Map<string, Item>> | undefined;
  const name = ({ pk, sk }: Key): string => JSON.stringify([pk, sk]);
  return {
    ...table,
    async get(key) {
      if (!asked || !answer) {
        const all = new Map<string, Key>();
        asked = all;
        answer = new Promise((resolve) => setImmediate(resolve)).then(async () => {
          asked = undefined;
          return new Map((await table.getMany([...all.values()])).map((item) => [name(item), item]));
        });
      }
      asked.set(name(key), key);
      return (await answer).get(name(key));
    },
  };
}

/**
 * Returns a function whose equal calls within one turn are one call. With `inTurn`, only one of them runs at
 * a time: requests that arrive meanwhile share the next read. This limits the load on an overloaded machine.
 */
export function shareCalls<A, R>(
  read: (asked: A) => Promise<R>,
  { inTurn = false } = {},
): (asked: A) => Promise<R> {
  const waiting = new Map<string, Promise<R>>();
  const running = new Map<string, Promise<unknown>>();
  return (asked) => {
    const name = JSON.stringify(asked);
    const known = waiting.get(name);
    if (known) return known;
    const before = running.get(name) ?? new Promise((resolve) => setImmediate(resolve));
    const reading = before.then(() => {
      waiting.delete(name);
      const answer = read(asked);
      if (inTurn) {
        const over = answer
          .catch(() => undefined)
          .then(() => {
            if (running.get(name) === over) running.delete(name);
          });
        running.set(name, over);
      }
      return answer;
    });
    waiting.set(name, reading);
    return reading;
  };
}
