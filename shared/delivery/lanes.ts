/**
 * How many lanes of a sink are in delivery at once. The limit grows while a higher one does not make responses slower, and is
 * halved when the sink fails. So a slow endpoint that can answer many requests at once gets them, and an overloaded one does not.
 *
 *   limit ──▶ all lanes in use, latency stable: × 2, after the first decrease + 1/8
 *         ──▶ latency far above the lowest one: × 3/4, at least INITIAL_LANES
 *         ──▶ failure (429, 5xx, timeout, …):    ÷ 2, stored for the next drain until it is INITIAL_LANES again
 *         ──▶ after 50 windows:                  back to INITIAL_LANES, to measure the lowest latency anew
 *
 * Pure state: the caller measures the latencies.
 */

/** Limit of a sink about which nothing is known. */
export const INITIAL_LANES = 16;
/** Highest accepted maximum of a sink, and its default. */
export const MAX_LANES = 400;
/** Latencies up to this much (ms) above the lowest one are noise. */
const NOISE_MS = 10;
/** Windows after which the lowest latency is measured anew: the receiver may have become slower for other reasons. */
const WINDOWS_PER_MEASUREMENT = 50;

/**
 * The requests that all drains of a process have in progress. Each needs a connection, and the file descriptors of a process are
 * limited. Every drain may have {@link INITIAL_LANES}, whatever the others have; what exceeds them is limited by `max` for all together.
 */
export class SharedRequests {
  readonly #max: number;
  #inProgress = 0;

  constructor(max: number) {
    this.#max = max;
  }

  /** Number of further requests that a drain with `own` requests in progress may send. */
  free(own: number): number {
    return Math.max(this.#max - this.#inProgress, INITIAL_LANES - own, 0);
  }

  /** Counts requests that begin (positive) or end (negative). */
  count(requests: number): void {
    this.#inProgress += requests;
  }
}

/** The limit of one sink. */
export class LaneLimit {
  readonly #max: number;
  #limit: number;
  /** Whether the sink failed and the limit has not grown to {@link INITIAL_LANES} since. Then it does not double after a new measurement. */
  #hasFailed: boolean;
  /** Whether the limit doubles: it was not decreased since the last measurement. */
  #isSearching: boolean;
  #windows = 0;
  #lowestMs = Number.POSITIVE_INFINITY;
  #latencies: number[] = [];
  #isReached = false;

  /** `max`: the maximum of the sink's settings. `stored`: the limit at the end of the previous drain. */
  constructor(max: number | undefined, stored: number | undefined) {
    this.#max = max ?? MAX_LANES;
    this.#limit = Math.min(stored ?? INITIAL_LANES, this.#max);
    this.#hasFailed = stored !== undefined;
    this.#isSearching = !this.#hasFailed;
  }

  /** Current limit. */
  get current(): number {
    return this.#limit;
  }

  /** Called when an event waits because all lanes are in use. */
  noteReached(): void {
    this.#isReached = true;
  }

  /** Called with the latency (ms) of each response. The limit changes after as many responses as it allows at once. */
  noteResponse(latencyMs: number): void {
    this.#latencies.push(latencyMs);
    if (this.#latencies.length < this.#limit) return;
    const median = this.#latencies.sort((a, b) => a - b)[this.#latencies.length >> 1] ?? 0;
    const isReached = this.#isReached;
    this.#latencies = [];
    this.#isReached = false;
    this.#windows += 1;
    if (this.#windows % WINDOWS_PER_MEASUREMENT === 0) {
      this.#lowestMs = Number.POSITIVE_INFINITY;
      this.#isSearching = !this.#hasFailed;
      this.#limit = Math.min(this.#limit, INITIAL_LANES);
      return;
    }
    if (median > 2 * this.#lowestMs + NOISE_MS) {
      this.#isSearching = false;
      this.#limit = Math.max(Math.min(this.#limit, INITIAL_LANES), Math.floor(this.#limit * 0.75));
      return;
    }
    this.#lowestMs = Math.min(this.#lowestMs, median);
    if (!isReached || median > 1.25 * this.#lowestMs + NOISE_MS) return;
    const more = this.#isSearching ? this.#limit : Math.ceil(this.#limit / 8);
    this.#limit = Math.min(this.#max, this.#limit + more);
    if (this.#limit >= INITIAL_LANES) this.#hasFailed = false;
  }

  /** Called when the sink failed. */
  noteFailure(): void {
    this.#hasFailed = true;
    this.#isSearching = false;
    this.#limit = Math.max(1, Math.floor(this.#limit / 2));
  }

  /** Limit to store for the next drain. `undefined`: the sink did not fail or has recovered, so the next drain searches again. */
  get stored(): number | undefined {
    return this.#hasFailed ? this.#limit : undefined;
  }
}
