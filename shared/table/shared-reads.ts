/**
 * The same table, for a process in which many read the same at the same time: what is asked for several times within one turn
 * of the event loop is read once. Nobody is given an answer that was asked for before they asked, so nothing is older than it
 * would be otherwise.
 */
import type { Item, Key, Table } from './table.ts';

/** Shares reads; writes go through as they are. What is given is shared, and must not be changed. */
export function shareTableReads(table: Table): Table {
  return {
    ...table,
    get: shared((key) => table.get(key), { inTurn: true }),
    getMany: shared((keys) => table.getMany(keys), { inTurn: true }),
    query: shared((query) => table.query(query)),
  };
}

/**
 * The same table, for a process that looks at many things at once: single reads that are asked for in one turn of the event loop
 * are read together. What is given is shared, and must not be changed.
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
 * A function whose equal calls of one turn are one call. With `inTurn` there is one of them at a time, too: what is asked for
 * meanwhile is read when that one is over, which is what a machine with too much to do can stand.
 */
export function shared<A, R>(
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
