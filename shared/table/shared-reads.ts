/**
 * The same table, for a process in which many read the same at the same time: what is asked for several times within one turn
 * of the event loop is read once. Nobody is given an answer that was asked for before they asked, so nothing is older than it
 * would be otherwise.
 */
import type { Table } from './table.ts';

/** Shares reads; writes go through as they are. What is given is shared, and must not be changed. */
export function shareTableReads(table: Table): Table {
  return {
    ...table,
    get: shared((key) => table.get(key)),
    getMany: shared((keys) => table.getMany(keys)),
    query: shared((query) => table.query(query)),
  };
}

/** A function whose equal calls of one turn are one call. */
export function shared<A, R>(read: (asked: A) => Promise<R>): (asked: A) => Promise<R> {
  const waiting = new Map<string, Promise<R>>();
  return (asked) => {
    const name = JSON.stringify(asked);
    const known = waiting.get(name);
    if (known) return known;
    const reading = new Promise((resolve) => setImmediate(resolve)).then(() => {
      waiting.delete(name);
      return read(asked);
    });
    waiting.set(name, reading);
    return reading;
  };
}
