// The order in which things come to pass on the sandbox clock.

interface Entry {
  readonly at: number;
  /** How many were added before. */
  readonly place: number;
  readonly run: () => void;
}

/** What is yet to happen, earliest first; what falls on the same instant, in the order in which it was added. */
export class Timeline {
  /** A binary heap. */
  readonly #heap: Entry[] = [];
  #added = 0;
  #reachedMs = Number.NEGATIVE_INFINITY;

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

  /** Runs all up to and including an instant, and what these add within it. */
  runUntil(instantMs: number): void {
    this.#reachedMs = Math.max(this.#reachedMs, instantMs);
    for (let first = this.#heap[0]; first && first.at <= instantMs; first = this.#heap[0]) {
      this.#removeFirst();
      first.run();
    }
  }

  /** Runs what was added since the last run although its time had come. */
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
