/** A sink with a rate that was idle may catch up on this much time. */
const BURST_MS = 100;

/** Spaces the deliveries to a sink with a rate. */
export class Pacer {
  readonly #ratePerSecond: number | undefined;
  readonly #now: () => number;
  #nextSendAt: number;

  constructor(ratePerSecond: number | undefined, nextSendAt: number, now: () => number) {
    this.#ratePerSecond = ratePerSecond;
    this.#nextSendAt = nextSendAt;
    this.#now = now;
  }

  /** Time (epoch ms) before which the sink gets no event: at most one interval ahead, also after the clock was set back. */
  get nextSendAt(): number {
    const intervalMs = this.#ratePerSecond ? 1000 / this.#ratePerSecond : 0;
    this.#nextSendAt = Math.min(this.#nextSendAt, this.#now() + intervalMs);
    return this.#nextSendAt;
  }

  /** Counts deliveries against the sink's rate. */
  count(deliveries: number): void {
    if (!this.#ratePerSecond) return;
    const from = Math.max(this.nextSendAt, this.#now() - BURST_MS);
    this.#nextSendAt = from + (deliveries * 1000) / this.#ratePerSecond;
  }
}
