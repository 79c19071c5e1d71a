// The sandbox clock, which can be advanced.

/** Real time from a start time, or a stopped clock; both plus the time by which they were advanced. */
export class SandboxClock {
  readonly stopped: boolean;
  /** Offset to real time, or the time of a stopped clock. */
  #offsetMs: number;

  /** `startAt` in epoch ms; now by default. */
  constructor({ startAt = Date.now(), stopped = false }: { startAt?: number; stopped?: boolean } = {}) {
    this.stopped = stopped;
    this.#offsetMs = startAt - (stopped ? 0 : Date.now());
  }

  /** Epoch ms. */
  now(): number {
    return this.#offsetMs + (this.stopped ? 0 : Date.now());
  }

  /** Advances the clock. */
  advance(ms: number): void {
    this.#offsetMs += ms;
  }
}
