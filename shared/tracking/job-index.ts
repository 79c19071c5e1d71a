/**
 * The index of an account's jobs: for each job a fingerprint of its list view, its phase, and when it is looked at next,
 * packed into shards of 2–4 KB. A quiet poll reads nothing else, so its size is what tracking costs: 13 bytes a job.
 *
 * A shard covers the job numbers from its lowest on, up to the next shard. Shards split when they grow over
 * {@link MAX_ENTRIES} and go when they are empty; numbers only grow, so new jobs fill the last one.
 */

/** Where a job stands with the tracker. */
export type Phase =
  /** Among the active jobs when last completely looked at. */
  | 'listed'
  /** Missing from a complete crawl; nothing has been found out about it yet. */
  | 'departed'
  /** As departed; a negative verdict about it waits for its confirmation (rule 3). */
  | 'suspected'
  /** As departed; the answers about it don't fit together. */
  | 'contradictory'
  /** Left the list for a reason that was announced; looked at again for some days (rule 7). */
  | 'settling';

/** A fingerprint that no view has: the job has to be compared with its snapshot. */
export const UNKNOWN = 0;

/** What the index holds of one job. */
export interface IndexEntry {
  /** 48 bits. */
  readonly fingerprint: number;
  readonly phase: Phase;
  /** Epoch seconds when the job wants to be looked at whether or not it changes; 0 for never. */
  readonly nextCheckAt: number;
}

/** Entries a shard holds before it is split: 320 × 13 bytes are 4 KB. */
export const MAX_ENTRIES = 320;

const PHASES: readonly Phase[] = ['listed', 'departed', 'settling', 'suspected', 'contradictory'];
const FORMAT = 1;

/** One shard: its lowest job number, and its entries by job number. */
interface Shard {
  readonly lowest: number;
  readonly entries: Map<number, IndexEntry>;
}

/** The whole index of one account, in memory for the length of a poll. */
export class JobIndex {
  /** In order of `lowest`; the first covers everything below the second. */
  readonly #shards: Shard[];
  readonly #dirty = new Set<number>();

  private constructor(shards: Shard[]) {
    this.#shards = shards;
  }

  /**
   * Reads shards as they come from the table, in order of their lowest job number. The fingerprints of a `stale` one, which
   * code of another projection wrote, are {@link UNKNOWN}. Throws on a format it doesn't know.
   */
  static decode(
    stored: readonly { readonly lowest: number; readonly packed: Uint8Array; readonly stale?: boolean }[],
  ): JobIndex {
    return new JobIndex(
      stored.map(({ lowest, packed, stale }) => ({ lowest, entries: unpack(packed, stale === true) })),
    );
  }

  /** How many jobs it holds, in every phase. */
  get size(): number {
    return this.#shards.reduce((sum, shard) => sum + shard.entries.size, 0);
  }

  /** The entry of a job, or `undefined`. */
  get(jobNumber: number): IndexEntry | undefined {
    return this.#shardOf(jobNumber)?.entries.get(jobNumber);
  }

  /** Every entry, shard by shard. */
  *[Symbol.iterator](): Generator<[jobNumber: number, entry: IndexEntry]> {
    for (const shard of this.#shards) yield* shard.entries;
  }

  /** The shard a job belongs to, as a number that sorts: jobs of one shard are best committed together. */
  shardNumber(jobNumber: number): number {
    return this.#shardOf(jobNumber)?.lowest ?? 0;
  }

  /** Sets or (with `undefined`) drops the entry of a job. */
  set(jobNumber: number, entry: IndexEntry | undefined): void {
    let shard = this.#shardOf(jobNumber);
    if (!shard) {
      if (!entry) return;
      shard = { lowest: 0, entries: new Map() };
      this.#shards.push(shard);
    }
    if (entry) shard.entries.set(jobNumber, entry);
    else shard.entries.delete(jobNumber);
    this.#dirty.add(shard.lowest);
  }

  /**
   * What must be written for the entries set since the last call: shards to put, and shards that are gone (`packed`
   * absent). To be written in the transaction that carries those jobs' snapshots and events.
   */
  takeChanges(): { readonly lowest: number; readonly packed?: Uint8Array }[] {
    const changes: { lowest: number; packed?: Uint8Array }[] = [];
    for (const lowest of [...this.#dirty].sort((a, b) => a - b)) {
      const at = this.#shards.findIndex((shard) => shard.lowest === lowest);
      const shard = this.#shards[at];
      if (!shard) continue;
      // The first shard stays even when empty, for it covers what lies below all others.
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

  #shardOf(jobNumber: number): Shard | undefined {
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

/** Parts of at most MAX_ENTRIES, filled three quarters so that the next few jobs don't split them again. */
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
 * A byte for the format, then per job in order of number: the step from the number before (varint), the fingerprint
 * (6 bytes), and a byte for the phase that also says whether 4 bytes of nextCheckAt follow.
 */
function pack(entries: ReadonlyMap<number, IndexEntry>): Uint8Array {
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

function unpack(packed: Uint8Array, stale: boolean): Map<number, IndexEntry> {
  const bytes = Buffer.from(packed.buffer, packed.byteOffset, packed.byteLength);
  if (bytes[0] !== FORMAT)
    throw new Error(`An index shard has format ${bytes[0]}, this code reads ${FORMAT}.`);
  const entries = new Map<number, IndexEntry>();
  let at = 1;
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
    const fingerprint = stale ? UNKNOWN : bytes.readUIntBE(at, 6);
    const flags = bytes.readUInt8(at + 6);
    at += 7;
    const phase = PHASES[flags & 0x7f];
    if (phase === undefined) throw new Error(`An index shard holds an unknown phase ${flags & 0x7f}.`);
    let nextCheckAt = 0;
    if (flags >= 0x80) {
      nextCheckAt = bytes.readUInt32BE(at);
      at += 4;
    }
    entries.set(jobNumber, { fingerprint, phase, nextCheckAt });
  }
  return entries;
}
