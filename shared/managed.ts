/** What all that people make, change and take away has in common: why not, on what condition, and one at a time. */
import type { Clause, Item, Key, Table } from './table/table.ts';

/** Why something was not done, in one sentence. */
export type Refusal = {
  readonly kind: /** What was asked for can't be. */
    | 'refused'
    /** There is no such thing. */
    | 'unknown'
    /** It stands otherwise than was assumed, or somebody else is at work on it. */
    | 'conflict';
  readonly reason: string;
  /** Of conflicts that may be over the next moment: somebody else is at work, or has changed it since it was read. */
  readonly why?: 'busy' | 'changed';
};

/** For changes on the condition that nothing was changed since. */
export interface Expectation {
  readonly revision?: number;
}

/** How often something was changed. */
export const revisionOf = (item: Item): number => Number(item.revision ?? 0);

/** Nobody has changed it since it was read. */
export function revisionStill(item: Item): Clause {
  return item.revision === undefined ? ['revision', 'absent'] : ['revision', '=', revisionOf(item)];
}

/** How long something may take before somebody else may try. */
const LOCK_MS = 120_000;
/** How long it is remembered what the lock was used for. */
const LOCK_TTL_MS = 86_400_000;

/** A lock that is held: by whom, and what is kept with it. */
export interface Lock {
  readonly owner: string;
  readonly item: Item | undefined;
}

/** Does something with `id` that nobody else may do at the same time. The lock is an item of its own, and ends by itself. */
export async function whileLocked<T>(
  { table, newId, now }: { readonly table: Table; readonly newId: () => string; readonly now: () => number },
  key: Key,
  id: string,
  work: (lock: Lock) => Promise<T>,
): Promise<T | Refusal> {
  const owner = newId();
  const at = now();
  const taken = await table.write({
    update: key,
    // It stays until it is given back, so that what was cut off can be found.
    set: { owner, until: at + LOCK_MS, ttl: undefined },
    when: [['until', 'absent or <=', at]],
  });
  if (!taken.done && taken.item?.owner !== owner) return beingWorkedOn(id);
  try {
    return await work({ owner, item: taken.item });
  } finally {
    // One that can't be given back ends by itself.
    const ttl = Math.ceil((now() + LOCK_TTL_MS) / 1000);
    await table
      .write({ update: key, set: { owner: undefined, until: undefined, ttl }, when: [['owner', '=', owner]] })
      .catch(() => undefined);
  }
}

/** Somebody else has the lock. */
export const beingWorkedOn = (id: string): Refusal => ({
  kind: 'conflict',
  why: 'busy',
  reason: `Somebody else is at work on "${id}" at this moment; try again in two minutes at the latest.`,
});
