/** Common parts of resources that users create, change and delete: rejections, preconditions and locks. */
import type { Clause, Item, Key, Table } from './storage/table.ts';

/** A rejected operation, with a message. */
export type Rejection = {
  readonly kind: /** The input is invalid, or the operation is impossible. */
    | 'rejected'
    /** The resource does not exist. */
    | 'unknown'
    /** The resource has a different state than expected, or another process holds its lock. */
    | 'conflict';
  readonly reason: string;
  /**
   * For conflicts that may resolve soon: another process holds the lock, or has changed the resource since it
   * was read.
   */
  readonly why?: 'busy' | 'changed';
};

/** The input is invalid, or the operation is impossible. */
export const rejected = (reason: string) => ({ kind: 'rejected', reason }) as const satisfies Rejection;

/** The resource does not exist: `an endpoint "erp"`. */
export const notFound = (what: string) =>
  ({ kind: 'unknown', reason: `There is no ${what}.` }) as const satisfies Rejection;

/** The resource has a state in which the operation is impossible. */
export const conflict = (reason: string) => ({ kind: 'conflict', reason }) as const satisfies Rejection;

/** The id of a new resource is in use: `an endpoint`, `erp`. */
export const alreadyExists = (what: string, id: string) =>
  conflict(`id must be new: ${what} "${id}" already exists.`);

/** Another resource would exceed a maximum: `The region has 10 endpoints`. */
export const atMaximum = (what: string) => conflict(`${what}, which is the maximum. Delete one first.`);

/** The resource was changed since it was read: `endpoint "erp"`. */
export const modified = (what: string) =>
  ({
    kind: 'conflict',
    why: 'changed',
    reason: `The ${what} was modified. Fetch it again and retry.`,
  }) as const satisfies Rejection;

/** A precondition: the resource was not changed since. */
export interface Expectation {
  readonly revision?: number;
}

/** Returns the number of changes of a resource. */
export const getRevision = (item: Item): number => Number(item.revision ?? 0);

/** Returns the condition that the resource is unchanged since it was read. */
export function revisionUnchanged(item: Item): Clause {
  return item.revision === undefined ? ['revision', 'absent'] : ['revision', '=', getRevision(item)];
}

/** Returns whether an item has these attributes. */
export function hasAttributes(item: Item, attributes: { readonly [name: string]: unknown }): boolean {
  return Object.entries(attributes).every(
    ([name, value]) => JSON.stringify(item[name]) === JSON.stringify(value),
  );
}

/** Time (ms) after which a lock expires. */
const LOCK_MS = 120_000;
/** Retention (ms) of a released lock's data. */
const LOCK_TTL_MS = 86_400_000;

/** A held lock: its owner, and the data stored with it. */
export interface Lock {
  readonly owner: string;
  readonly item: Item | undefined;
}

/** Runs an exclusive operation on `id`. The lock is a separate item, and expires. */
export async function withItemLock<T>(
  { table, newId, now }: { readonly table: Table; readonly newId: () => string; readonly now: () => number },
  key: Key,
  id: string,
  work: (lock: Lock) => Promise<T>,
): Promise<T | Rejection> {
  const owner = newId();
  const at = now();
  const acquired = await table.write({
    update: key,
    // The item stays until the lock is released, so that interrupted operations can be found.
    set: { owner, until: at + LOCK_MS, ttl: undefined },
    when: [['until', 'absent or <=', at]],
  });
  if (!acquired.done && acquired.item?.owner !== owner) return lockConflict(id);
  try {
    return await work({ owner, item: acquired.item });
  } finally {
    // A lock that cannot be released expires.
    const ttl = Math.ceil((now() + LOCK_TTL_MS) / 1000);
    await table
      .write({ update: key, set: { owner: undefined, until: undefined, ttl }, when: [['owner', '=', owner]] })
      .catch(() => undefined);
  }
}

/** Returns the conflict for a lock that another process holds. */
export const lockConflict = (id: string): Rejection => ({
  kind: 'conflict',
  why: 'busy',
  reason: `Another operation on "${id}" is in progress. Retry in a few seconds.`,
});

/** Returns an id for a new resource: a prefix, and letters and digits of a generated id. */
export function newResourceId(prefix: string, newId: () => string): string {
  return `${prefix}-${newId()
    .replace(/[^a-z0-9]/gi, '')
    .toLowerCase()
    .slice(0, 24)}`;
}

/** Returns an object without its undefined fields. */
export function withoutUndefined<T extends object>(fields: T): Partial<T> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Partial<T>;
}
