// The sandbox clock, which can be advanced.

/** Real time from a start time, or a stopped clock; both plus the time by which they were advanced. */
export class SandboxClock {
  readonly standing: boolean;
  /** Offset to real time, or the time of a stopped clock. */
  #offsetMs: number;

  /** `startAt` in epoch ms; now by default. */
  constructor({ startAt = Date.now(), standing = false }: { startAt?: number; standing?: boolean } = {}) {
    this.standing = standing;
    this.#offsetMs = startAt - (standing ? 0 : Date.now());
  }

  /** Epoch ms. */
  now(): number {
    return this.#offsetMs + (this.standing ? 0 : Date.now());
  }

  /** Advances the clock. */
  advance(ms: number): void {
    this.#offsetMs += ms;
  }
}
