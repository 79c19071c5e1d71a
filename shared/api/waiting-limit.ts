/**
 * How much may wait with one API key at the same time: streams, and long polls that have nothing to say yet. Each holds an
 * invocation for as long as it waits, so open dashboards must not be without number. All instances share the count, so
 * it is kept in a table: a key has so many numbered slots, and whoever waits holds one of them.
 *
 * A slot is free when there is no item, or when the item has expired. Whoever holds one gives it back at the end; who
 * can't any more (a killed instance) leaves it to its expiry, which is never before the end of what it was taken for. So
 * there are never more than allowed, and for a while there may be fewer.
 */
import { keys, streamPk } from '../storage/schema.ts';
import type { Item, Table } from '../storage/table.ts';

/** The slots of all keys of a cell. */
export interface Slots {
  /** Number of slots per key. */
  readonly perKey: number;
  /**
   * Takes a slot of a key until it is given back, at most for `lifeMs`; `undefined` when none is free. Throws `TableError`
   * when the table does not answer: then nothing is taken, or it expires by itself.
   */
  take(keyId: string, lifeMs: number): Promise<Slot | undefined>;
}

/** A held slot. */
export interface Slot {
  /** Gives it back; what has expired, and is perhaps somebody else's by now, is left alone. Throws `TableError`. */
  giveBack(): Promise<void>;
}

/** What slots are kept in and counted with. */
export interface SlotDeps {
  readonly table: Table;
  /** The region whose cell this is. */
  readonly region: string;
  readonly perKey: number;
  /** Epoch ms. */
  readonly now: () => number;
  readonly newId: () => string;
  /** From 0 to below 1. */
  readonly random: () => number;
}

/** The id of the key that is configured rather than made. */
export const BOOTSTRAP_KEY = 'bootstrap';

/** How long beyond its time a slot is held if nobody gives it back: a while longer than anything that holds it lasts. */
export const SLOT_GRACE_MS = 30_000;

/** Maximum number of slots per key: they fit in one page of a query. */
export const MAX_SLOTS_PER_KEY = 1000;

/**
 * Slots in a table. The first try is a conditional put of any one of them, which is all there is to it while most are free.
 * Only when that one is taken are they looked through, so that a rejection costs one write and one query.
 */
export function createSlots(deps: SlotDeps): Slots {
  const { table, region, perKey, now, newId, random } = deps;

  async function take(keyId: string, lifeMs: number): Promise<Slot | undefined> {
    const holder = newId();
    let slot = Math.floor(random() * perKey);
    for (;;) {
      const key = keys.streamSlot(region, keyId, slot);
      const giveBack = async () => {
        await table.write({ delete: key, when: [['holder', '=', holder]] });
      };
      const at = now();
      const expiresAt = at + lifeMs;
      const item = { ...key, holder, expiresAt, ttl: Math.ceil(expiresAt / 1000) };
      let taken: boolean;
      try {
        ({ done: taken } = await table.write({ put: item, when: [['expiresAt', 'absent or <=', at]] }));
      } catch (cause) {
        // It may have been written all the same.
        await giveBack().catch(() => undefined);
        throw cause;
      }
      if (taken) return { giveBack };
      const free = await freeSlots(keyId, at);
      const other = free[Math.floor(random() * free.length)];
      if (other === undefined) return undefined;
      slot = other;
    }
  }

  async function freeSlots(keyId: string, at: number): Promise<number[]> {
    const items = await table.query({ pk: streamPk(region, keyId) });
    const held = new Set(items.filter((item) => isHeld(item, at)).map(({ sk }) => Number(sk)));
    return Array.from({ length: perKey }, (_, slot) => slot).filter((slot) => !held.has(slot));
  }

  return { perKey, take };
}

function isHeld({ expiresAt }: Item, at: number): boolean {
  return typeof expiresAt === 'number' && expiresAt > at;
}
