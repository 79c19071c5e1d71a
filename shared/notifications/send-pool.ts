/** Concurrency of the sends of one channel. */

import type { SendDeps } from './send-report.ts';
import type { Channel, SendOutcome } from './types.ts';

/** Number of consecutive attempts with unknown outcome after which the run stops using a channel. */
const MAX_CONSECUTIVE_UNKNOWN = 3;

/**
 * The sends of one channel in one pass: one at a time until the provider has responded, then several, and none once the channel is down.
 */
export class SendPool {
  readonly channel: Channel;
  readonly #concurrency: number;
  readonly #running = new Set<Promise<void>>();
  #reserved = 0;
  #state: 'probing' | 'open' | 'closed' = 'probing';
  #consecutiveUnknown = 0;

  constructor(channel: Channel, { concurrency = 8, email }: SendDeps) {
    this.channel = channel;
    const connections = channel === 'email' ? email?.connections : undefined;
    this.#concurrency = Math.min(concurrency, connections ?? concurrency);
  }

  get isClosed(): boolean {
    return this.#state === 'closed';
  }
  get isProven(): boolean {
    return this.#state === 'open';
  }

  /** Adds messages that will be run or finished without a run. */
  reserve(count: number): void {
    this.#reserved += count;
  }

  release(): void {
    this.#reserved -= 1;
  }

  run(task: () => Promise<void>): void {
    const running = task().finally(() => {
      this.#running.delete(running);
      this.release();
    });
    this.#running.add(running);
  }

  /** Waits until another message can be run. */
  async waitForSlot(): Promise<void> {
    while (this.#running.size >= (this.isProven ? this.#concurrency : 1)) await Promise.race(this.#running);
  }

  /** Waits until it is known whether the channel works, as long as a send in progress can show it. */
  async waitUntilProbed(): Promise<void> {
    while (this.#state === 'probing' && this.#reserved > 0) {
      if (this.#running.size > 0) await Promise.race(this.#running);
      else await new Promise((resolve) => setImmediate(resolve));
    }
  }

  /** Waits until no send is in progress. */
  async waitUntilIdle(): Promise<void> {
    while (this.#running.size > 0) await Promise.race(this.#running);
  }

  recordOutcome(outcome: SendOutcome): void {
    this.#consecutiveUnknown = outcome.kind === 'unknown' ? this.#consecutiveUnknown + 1 : 0;
    const isDown = outcome.kind === 'later' && outcome.everything;
    if (isDown || this.#consecutiveUnknown >= MAX_CONSECUTIVE_UNKNOWN) this.#state = 'closed';
    else if (outcome.kind !== 'unknown' && this.#state === 'probing') this.#state = 'open';
  }
}
