/** Items that store threads. */
import { deflateRawSync, inflateRawSync } from 'node:zlib';
import { type AccountRef, keys, notifyDue, parseNotifyDue } from '../storage/schema.ts';
import { type Item, type Key, type Table, TableError, type Write } from '../storage/table.ts';
import { emptyThread, isEmptyThread, type Thread } from './thread.ts';
import { nextDueTime } from './thread-windows.ts';

/** Dependencies of notices. */
export interface NoticeDeps {
  readonly table: Table;
  readonly history: Table;
  /** Epoch ms. */
  readonly now: () => number;
  /** Wait after a window's end for events that were observed in it, ms. Default: {@link GRACE_MS}. Must be the same in all processes. */
  readonly graceMs?: number;
}

export const GRACE_MS = 15_000;

/** Retention of threads after their last change. */
const KEPT_MS = 180 * 86_400_000;

/** Size from which a thread is compressed, bytes. */
const PACKED_FROM = 8_000;

/** Maximum size of a thread when an event is added, bytes. Its notices are stored twice for a short time and must fit as well. */
const MAX_THREAD_BYTES = 200_000;

/** Maximum number of retries after concurrent modification. */
const ATTEMPTS = 50;

export const THREADS_AT_ONCE = 8;

/** A stored thread. */
export interface Stored {
  readonly name: string;
  readonly thread: Thread;
  /** Incremented by every write. 0 if there is no item. */
  readonly revision: number;
  readonly dueSk: string | undefined;
  /** Time at which it was first due (epoch ms). Infinity if it is not in the index. */
  readonly dueSince: number;
}

const UNPLACED = { dueSk: undefined, dueSince: Number.POSITIVE_INFINITY };

export async function load(table: Table, ref: AccountRef, name: string): Promise<Stored> {
  const item = await table.get(keys.thread(ref, name));
  if (item) return toStored(item);
  const orderGroup = name.startsWith('=') ? name.slice(1) : null;
  return { name, thread: emptyThread(orderGroup), revision: 0, ...UNPLACED };
}

export function toStored(item: Item): Stored {
  const { state } = item;
  const json = state instanceof Uint8Array ? inflateRawSync(state).toString('utf8') : String(state);
  return {
    name: String(item.name),
    // A reviver takes ten times as long.
    thread: JSON.parse(json, json.includes('"told":') ? renameFormer : undefined) as Thread,
    revision: Number(item.revision),
    ...(typeof item.dueSk === 'string' ? { dueSk: item.dueSk, dueSince: parseNotifyDue(item) } : UNPLACED),
  };
}

/** Reviver of threads that were stored before the field `told` was renamed. */
function renameFormer(this: { notified?: unknown }, key: string, value: unknown): unknown {
  if (key !== 'told') return value;
  this.notified = value;
  return undefined;
}

/** Serializes the state of a thread. */
function pack(thread: Thread): string | Uint8Array {
  const known = packed.get(thread);
  if (known !== undefined) return known;
  const json = JSON.stringify(thread);
  const state = json.length < PACKED_FROM ? json : deflateRawSync(json);
  packed.set(thread, state);
  return state;
}

/** Cache of serialized threads, because their size is measured before they are written. */
const packed = new WeakMap<Thread, string | Uint8Array>();

export function sizeOfThread(thread: Thread): number {
  const state = pack(thread);
  return typeof state === 'string' ? Buffer.byteLength(state) : state.byteLength;
}

export function fits(thread: Thread): boolean {
  return sizeOfThread(thread) <= MAX_THREAD_BYTES;
}

/**
 * Returns the write that replaces a stored thread, or `undefined` if nothing changes. Only closing changes the thread's position in the
 * index; it passes `notBefore`, the time of the next check (epoch ms). An empty thread expires by its TTL.
 */
export function toWrite(
  { now, graceMs = GRACE_MS }: NoticeDeps,
  ref: AccountRef,
  name: string,
  stored: Stored,
  thread: Thread,
  notBefore?: number,
): Exclude<Write, { check: Key }> | undefined {
  const key = keys.thread(ref, name);
  const due = nextDueTime(thread, graceMs);
  // A closed notice keeps the time at which it was first due, because its window is gone.
  const closedSince = thread.frozen.length > 0 ? stored.dueSince : Number.POSITIVE_INFINITY;
  const place =
    due === undefined
      ? { duePk: undefined, dueSk: undefined }
      : notifyDue('notices', ref, key.sk, Math.max(due, notBefore ?? 0, 0), Math.min(due, closedSince));
  const exists = stored.revision > 0;
  const when = exists ? ([['revision', '=', stored.revision]] as const) : ([['pk', 'absent']] as const);
  const isFinished = isEmptyThread(thread);
  if (isFinished && !exists) return undefined;
  if (thread === stored.thread || JSON.stringify(thread) === JSON.stringify(stored.thread)) {
    const isUnmoved = notBefore === undefined || place.dueSk === stored.dueSk;
    return isUnmoved ? undefined : { update: key, set: place, when };
  }
  return {
    put: {
      ...{ ...key, ...place, name, revision: stored.revision + 1, state: pack(thread) },
      ttl: Math.ceil((now() + (isFinished ? 0 : KEPT_MS)) / 1000),
    },
    when,
  };
}

/** Retries an action until no concurrent modification interferes. */
export async function retryOnConflict<T>(what: string, attempt: () => Promise<T | undefined>): Promise<T> {
  for (let tries = 0; tries < ATTEMPTS; tries += 1) {
    const done = await attempt();
    if (done !== undefined) return done;
  }
  throw new TableError('write', `an item was to be ${what}, and was modified concurrently on every attempt`);
}
