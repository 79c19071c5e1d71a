/**
 * The index of an account's jobs: for each job a fingerprint of its list view, its phase, and the time of
 * its next check, packed into shards of 2–4 KB. A quiet poll reads nothing else, so the size of the index
 * is the cost of tracking: 13 bytes a job.
 *
 * A shard covers the job numbers from its lowest one up to the next shard. Shards split when they exceed
 * {@link MAX_ENTRIES}, and are removed when empty. Job numbers only grow, so new jobs fill the last shard.
 */

/** Phase of a job in the tracker. */
export type Phase =
  /** Among the active jobs at the last complete observation. */
  | 'listed'
  /** Missing from a complete crawl. The reason is not known yet. */
  | 'departed'
  /** Departed, with a negative verdict that waits for its confirmation (rule 3). */
  | 'suspected'
  /** Departed, with contradictory answers. */
  | 'contradictory'
  /** Left the list for a reason that was emitted. Fetched again for some days (rule 7). */
  | 'settling';

/** Fingerprint that no view has: the job must be compared with its snapshot. */
export const UNKNOWN = 0;

/** Index data of one job. */
export interface IndexEntry {
  /** 48-bit fingerprint of the list view. */
  readonly fingerprint: number;
  readonly phase: Phase;
  /** Time at which the job is due for a check even if it does not change (epoch seconds). 0 for never. */
  readonly nextCheckAt: number;
}

/** Maximum number of entries in a shard before it splits: 320 × 13 bytes are 4 KB. */
export const MAX_ENTRIES = 320;

const PHASES: readonly Phase[] = ['listed', 'departed', 'settling', 'suspected', 'contradictory'];
const FORMAT = 1;

/** Entries by job number. */
type Entries = Pick<ReadonlyMap<number, IndexEntry>, 'get' | 'keys' | 'size' | typeof Symbol.iterator>;

/** One shard. The entries are columns as decoded, and become a map when a job is added or removed. */
interface Shard {
  readonly lowest: number;
  entries: Entries;
}

/** The whole index of one account, in memory for the duration of a poll. */
export class JobIndex {
  /** In order of `lowest`. The first shard covers everything below the second. */
  readonly #shards: Shard[];
  readonly #dirty = new Set<number>();

  private constructor(shards: Shard[]) {
    this.#shards = shards;
  }

  /**
   * Decodes stored shards, given in order of their lowest job number. The fingerprints of a `stale` shard,
   * written by code of another projection, become {@link UNKNOWN}. Throws for an unknown format.
   */
  static decode(
    stored: readonly { readonly lowest: number; readonly packed: Uint8Array; readonly stale?: boolean }[],
  ): JobIndex {
    return new JobIndex(
      stored.map(({ lowest, packed, stale }) => ({
        lowest,
        entries: new Columns(packed, stale === true),
      })),
    );
  }

  /** Number of jobs, in every phase. */
  get size(): number {
    return this.#shards.reduce((sum, shard) => sum + shard.entries.size, 0);
  }

  /** Returns the entry of a job, or `undefined`. */
  get(jobNumber: number): IndexEntry | undefined {
    return this.#findShard(jobNumber)?.entries.get(jobNumber);
  }

  /** Iterates over the number of every job, shard by shard. */
  *jobNumbers(): Generator<number> {
    for (const { entries } of this.#shards) yield* entries.keys();
  }

  /** Iterates over every entry, shard by shard. */
  *[Symbol.iterator](): Generator<[jobNumber: number, entry: IndexEntry]> {
    for (const shard of this.#shards) yield* shard.entries;
  }

  /** Returns the shard of a job as a sortable number. Jobs of one shard are best committed together. */
  shardNumber(jobNumber: number): number {
    return this.#findShard(jobNumber)?.lowest ?? 0;
  }

  /** Sets the entry of a job. `undefined` removes it. */
  set(jobNumber: number, entry: IndexEntry | undefined): void {
    let shard = this.#findShard(jobNumber);
    if (!shard) {
      if (!entry) return;
      shard = { lowest: 0, entries: new Map() };
      this.#shards.push(shard);
    }
    this.#dirty.add(shard.lowest);
    if (entry && shard.entries instanceof Columns && shard.entries.replace(jobNumber, entry)) return;
    const entries = shard.entries instanceof Map ? shard.entries : new Map(shard.entries);
    shard.entries = entries;
    if (entry) entries.set(jobNumber, entry);
    else entries.delete(jobNumber);
  }

  /**
   * Returns the writes for the entries set since the last call: shards to put, and removed shards (`packed`
   * is absent). They belong into the transaction with those jobs' snapshots and events.
   */
  takeChanges(): { readonly lowest: number; readonly packed?: Uint8Array }[] {
    const changes: { lowest: number; packed?: Uint8Array }[] = [];
    for (const lowest of [...this.#dirty].sort((a, b) => a - b)) {
      const at = this.#shards.findIndex((shard) => shard.lowest === lowest);
      const shard = this.#shards[at];
      if (!shard) continue;
      // The first shard stays even when empty, because it covers everything below the others.
      if (shard.entries.size === 0 && at > 0) {
        this.#shards.splice(at, 1);
        changes.push({ lowest });
        continue;
      }
      const parts = split(shard);
      this.#shards.splice(at, 1, ...parts);
      changes.push(...parts.map((part) => ({ lowest: part.lowest, packed: pack(part.entries) })));
    }
    this.#dirty.clear();
    return changes;
  }

  #findShard(jobNumber: number): Shard | undefined {
    let low = 0;
    let high = this.#shards.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >>> 1;
      if ((this.#shards[middle]?.lowest ?? 0) <= jobNumber) low = middle;
      else high = middle - 1;
    }
    return this.#shards[low];
  }
}

/**
 * Returns parts of at most MAX_ENTRIES, filled to three quarters so that the next few jobs do not split
 * them again.
 */
function split(shard: Shard): Shard[] {
  if (shard.entries.size <= MAX_ENTRIES) return [shard];
  const sorted = [...shard.entries].sort(([a], [b]) => a - b);
  const fill = Math.ceil(MAX_ENTRIES * 0.75);
  const parts: Shard[] = [];
  for (let at = 0; at < sorted.length; at += fill) {
    const entries = new Map(sorted.slice(at, at + fill));
    parts.push({ lowest: at === 0 ? shard.lowest : (sorted[at]?.[0] ?? 0), entries });
  }
  return parts;
}

/**
 * Format: a format byte, then per job in order of number the difference to the previous number (varint),
 * the fingerprint (6 bytes), and a phase byte. The phase byte also contains whether 4 bytes of nextCheckAt
 * follow.
 */
function pack(entries: Entries): Uint8Array {
  const sorted = [...entries].sort(([a], [b]) => a - b);
  const bytes = Buffer.allocUnsafe(1 + sorted.length * 19);
  let at = bytes.writeUInt8(FORMAT, 0);
  let before = 0;
  for (const [jobNumber, entry] of sorted) {
    let step = jobNumber - before;
    before = jobNumber;
    while (step >= 0x80) {
      at = bytes.writeUInt8((step % 0x80) | 0x80, at);
      step = Math.floor(step / 0x80);
    }
    at = bytes.writeUInt8(step, at);
    at = bytes.writeUIntBE(entry.fingerprint, at, 6);
    const timed = entry.nextCheckAt > 0;
    at = bytes.writeUInt8(PHASES.indexOf(entry.phase) | (timed ? 0x80 : 0), at);
    if (timed) at = bytes.writeUInt32BE(entry.nextCheckAt, at);
  }
  return Uint8Array.prototype.slice.call(bytes, 0, at);
}

/** The entries of a decoded shard. Objects for tens of thousands of jobs would take most of the memory that a poll keeps. */
class Columns implements Entries {
  readonly size: number;
  /** In ascending order. */
  readonly #numbers: Float64Array;
  readonly #fingerprints: Float64Array;
  readonly #phases: Uint8Array;
  readonly #nextChecks: Uint32Array;

  /** Decodes a shard. With `isStale`, its fingerprints become {@link UNKNOWN}. Throws for an unknown format. */
  constructor(packed: Uint8Array, isStale: boolean) {
    const bytes = Buffer.from(packed.buffer, packed.byteOffset, packed.byteLength);
    if (bytes[0] !== FORMAT)
      throw new Error(`An index shard has format ${bytes[0]}, this code reads ${FORMAT}.`);
    // An entry takes 8 bytes at least.
    const most = bytes.length >>> 3;
    const numbers = new Float64Array(most);
    this.#fingerprints = new Float64Array(most);
    this.#phases = new Uint8Array(most);
    this.#nextChecks = new Uint32Array(most);
    let at = 1;
    let size = 0;
    let jobNumber = 0;
    while (at < bytes.length) {
      let factor = 1;
      for (;;) {
        const byte = bytes.readUInt8(at);
        at += 1;
        jobNumber += (byte & 0x7f) * factor;
        if (byte < 0x80) break;
        factor *= 0x80;
      }
      numbers[size] = jobNumber;
      this.#fingerprints[size] = isStale ? UNKNOWN : bytes.readUIntBE(at, 6);
      const flags = bytes.readUInt8(at + 6);
      at += 7;
      if (PHASES[flags & 0x7f] === undefined)
        throw new Error(`An index shard holds an unknown phase ${flags & 0x7f}.`);
      this.#phases[size] = flags & 0x7f;
      if (flags >= 0x80) {
        this.#nextChecks[size] = bytes.readUInt32BE(at);
        at += 4;
      }
      size += 1;
    }
    this.size = size;
    this.#numbers = numbers.subarray(0, size);
  }

  get(jobNumber: number): IndexEntry | undefined {
    const place = this.#find(jobNumber);
    return place < 0 ? undefined : this.#read(place);
  }

  /** Replaces the entry of a job. Returns `false` if there is none. */
  replace(jobNumber: number, { fingerprint, phase, nextCheckAt }: IndexEntry): boolean {
    const place = this.#find(jobNumber);
    if (place < 0) return false;
    this.#fingerprints[place] = fingerprint;
    this.#phases[place] = PHASES.indexOf(phase);
    this.#nextChecks[place] = nextCheckAt;
    return true;
  }

  keys(): ArrayIterator<number> {
    return this.#numbers.values();
  }

  *[Symbol.iterator](): MapIterator<[number, IndexEntry]> {
    for (let place = 0; place < this.size; place += 1) {
      yield [this.#numbers[place] ?? 0, this.#read(place)];
    }
  }

  /** Returns the place of a job, or -1. */
  #find(jobNumber: number): number {
    const numbers = this.#numbers;
    let low = 0;
    let high = numbers.length - 1;
    while (low < high) {
      const middle = (low + high) >>> 1;
      if ((numbers[middle] ?? 0) < jobNumber) low = middle + 1;
      else high = middle;
    }
    return numbers[low] === jobNumber ? low : -1;
  }

  #read(place: number): IndexEntry {
    return {
      fingerprint: this.#fingerprints[place] ?? UNKNOWN,
      phase: PHASES[this.#phases[place] ?? 0] as Phase,
      nextCheckAt: this.#nextChecks[place] ?? 0,
    };
  }
}
