// Order of actions on the sandbox clock.

interface Entry {
  readonly at: number;
  /** Number of entries that were added before. */
  readonly place: number;
  readonly run: () => void;
}

/** Planned actions, earliest first; at the same time, in the order in which they were added. */
export class Timeline {
  /** A binary heap. */
  readonly #heap: Entry[] = [];
  #added = 0;
  #reachedMs = Number.NEGATIVE_INFINITY;
  readonly #runAt: (at: number, run: () => void) => void;

  /** `runAt` runs each action; it receives the time for which the action was planned (epoch ms). */
  constructor(runAt: (at: number, run: () => void) => void) {
    this.#runAt = runAt;
  }

  add(at: number, run: () => void): void {
    const heap = this.#heap;
    const entry = { at, place: this.#added, run };
    this.#added += 1;
    let hole = heap.length;
    heap.push(entry);
    while (hole > 0) {
      const parent = heap[(hole - 1) >>> 1];
      if (!parent || isBefore(parent, entry)) break;
      heap[hole] = parent;
      hole = (hole - 1) >>> 1;
    }
    heap[hole] = entry;
  }

  /** Runs all actions up to a time, inclusive, and those that they add within it. */
  runUntil(instantMs: number): void {
    this.#reachedMs = Math.max(this.#reachedMs, instantMs);
    for (let first = this.#heap[0]; first && first.at <= instantMs; first = this.#heap[0]) {
      this.#removeFirst();
      this.#runAt(first.at, first.run);
    }
  }

  /** Runs actions that were added after their time had passed. */
  catchUp(): void {
    this.runUntil(this.#reachedMs);
  }

  #removeFirst(): void {
    const heap = this.#heap;
    const last = heap.pop();
    if (!last || heap.length === 0) return;
    let hole = 0;
    for (;;) {
      const left = 2 * hole + 1;
      const [one, other] = [heap[left], heap[left + 1]];
      if (!one) break;
      const least = other && isBefore(other, one) ? other : one;
      if (isBefore(last, least)) break;
      heap[hole] = least;
      hole = least === one ? left : left + 1;
    }
    heap[hole] = last;
  }
}

function isBefore(one: Entry, other: Entry): boolean {
  return one.at < other.at || (one.at === other.at && one.place < other.place);
}
