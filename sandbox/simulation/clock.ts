// A sandbox clock of its own, which can be set forward.

/** Real time from an instant on, or one that stands still, in both cases with what it was set forward by. */
export class SandboxClock {
  readonly standing: boolean;
  /** What is added to real time, or, when it stands, to nothing. */
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

  /** Sets it forward. */
  advance(ms: number): void {
    this.#offsetMs += ms;
  }
}
