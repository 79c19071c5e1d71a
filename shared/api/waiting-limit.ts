/**
 * Limits the number of concurrent streams and waiting long polls of an API key, because each occupies an invocation while it
 * waits. All instances share the count in a table: a key has numbered slots, and each waiting request holds one.
 *
 * A slot is free if its item does not exist or has expired. A request releases its slot at its end. The slot of a killed
 * instance expires, never before the maximum duration of its request. So the limit is never exceeded, and temporarily fewer
 * slots may be available.
 */
import { keys, streamPk } from '../storage/schema.ts';
import type { Item, Table } from '../storage/table.ts';

/** The slots of all keys of a cell. */
export interface Slots {
  /** Number of slots per key. */
  readonly perKey: number;
  /** Number of slots of all keys together. Absent: no limit. */
  readonly inAll?: number | undefined;
  /**
   * Acquires a slot of a key until it is released, at most for `lifeMs`. Returns `undefined` if none is free. Throws
   * `TableError` if the table does not respond; a slot acquired anyway expires.
   */
  acquire(keyId: string, lifeMs: number): Promise<Slot | undefined>;
}

/** A held slot. */
export interface Slot {
  /** Releases the slot, unless it has expired and another request may hold it. Throws `TableError`. */
  release(): Promise<void>;
}

/** Dependencies of slots. */
export interface SlotDeps {
  readonly table: Table;
  /** Region of the cell. */
  readonly region: string;
  readonly perKey: number;
  readonly inAll?: number | undefined;
  /** Epoch ms. */
  readonly now: () => number;
  readonly newId: () => string;
  /** From 0 to below 1. */
  readonly random: () => number;
}

/** Id of the key that is set by the configuration. */
export const BOOTSTRAP_KEY = 'bootstrap';

/** Holds the slots of all keys together. No key has this id. */
const ALL_KEYS = '_all';

/** Time (ms) after the maximum duration of its request at which an unreleased slot expires. */
export const SLOT_GRACE_MS = 30_000;

/** Maximum number of slots per key: they fit in one page of a query. */
export const MAX_SLOTS_PER_KEY = 1000;

/**
 * Creates slots in a table. The first attempt is a conditional put of a random slot, which suffices while most are free. Only if
 * that slot is held are all slots queried, so a rejection costs one write and one query. With a limit for all keys, a request also
 * holds one of those slots.
 */
export function createSlots(deps: SlotDeps): Slots {
  const { table, region, perKey, inAll, now, newId, random } = deps;

  async function acquire(keyId: string, lifeMs: number): Promise<Slot | undefined> {
    const own = await acquireOne(keyId, perKey, lifeMs);
    if (!own || inAll === undefined) return own;
    try {
      const shared = await acquireOne(ALL_KEYS, inAll, lifeMs);
      if (shared) return { release: async () => void (await Promise.all([own.release(), shared.release()])) };
    } catch (cause) {
      await own.release().catch(() => undefined);
      throw cause;
    }
    await own.release();
    return undefined;
  }

  async function acquireOne(keyId: string, limit: number, lifeMs: number): Promise<Slot | undefined> {
    const holder = newId();
    let slot = Math.floor(random() * limit);
    for (;;) {
      const key = keys.streamSlot(region, keyId, slot);
      const release = async () => {
        await table.write({ delete: key, when: [['holder', '=', holder]] });
      };
      const at = now();
      const expiresAt = at + lifeMs;
      const item = { ...key, holder, expiresAt, ttl: Math.ceil(expiresAt / 1000) };
      let acquired: boolean;
      try {
        ({ done: acquired } = await table.write({ put: item, when: [['expiresAt', 'absent or <=', at]] }));
      } catch (cause) {
        // The item may have been written anyway.
        await release().catch(() => undefined);
        throw cause;
      }
      if (acquired) return { release };
      const free = await freeSlots(keyId, limit, at);
      const other = free[Math.floor(random() * free.length)];
      if (other === undefined) return undefined;
      slot = other;
    }
  }

  async function freeSlots(keyId: string, limit: number, at: number): Promise<number[]> {
    const items = await table.query({ pk: streamPk(region, keyId) });
    const held = new Set(items.filter((item) => isHeld(item, at)).map(({ sk }) => Number(sk)));
    return Array.from({ length: limit }, (_, slot) => slot).filter((slot) => !held.has(slot));
  }

  return { perKey, inAll, acquire };
}

function isHeld({ expiresAt }: Item, at: number): boolean {
  return typeof expiresAt === 'number' && expiresAt > at;
}
