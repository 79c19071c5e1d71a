/** Records the attempts of a drain: in the delivery log, and through the drain's callback. */

import { isEndpointKind } from '../built-in-sinks.ts';
import type { LoggedEvent } from '../log/log.ts';
import { RELAXED } from '../storage/table.ts';
import type { Run } from './cursors.ts';
import { type DeliveryEntry, toDeliveryEntry } from './delivery-log.ts';
import type { DeliveryCounter } from './delivery-statistics.ts';
import type { DrainDeps } from './drain-deps.ts';
import type { ParkedEvent } from './parked-events.ts';
import type { DeliveryOutcome, Sink } from './sink.ts';

/** One event in delivery: of a cursor, or of a parked lane. */
export type InFlightEvent = { readonly event: LoggedEvent } & (
  | { readonly run: Run; readonly parked?: undefined }
  | { readonly run?: undefined; readonly parked: ParkedEvent }
);

/** Number of attempts written to the delivery log in one batch. */
const LOG_BATCH = 25;

/** The attempts of one drain. */
export class AttemptRecorder {
  readonly #deps: Pick<DrainDeps, 'attempted' | 'deliveries' | 'now'>;
  readonly #sink: Sink;
  readonly #begin: (action: () => Promise<unknown>) => void;
  /** Attempts that are not in the delivery log yet. */
  #attempts: DeliveryEntry[] = [];
  #logging: Promise<void> = Promise.resolve();
  /** Settles when the counters are stored: one write at a time. */
  #counting: Promise<void> = Promise.resolve();
  #unlogged = 0;
  readonly #counter: DeliveryCounter | undefined;

  /** `begin` starts an operation in the background. */
  constructor(
    deps: Pick<DrainDeps, 'attempted' | 'deliveries' | 'now'>,
    sink: Sink,
    begin: (action: () => Promise<unknown>) => void,
  ) {
    this.#deps = deps;
    this.#sink = sink;
    this.#begin = begin;
    this.#counter = isEndpointKind(sink.kind) ? deps.deliveries?.count?.(sink, deps.now()) : undefined;
  }

  /** Number of attempts that could not be recorded in the delivery log. */
  get unlogged(): number {
    return this.#unlogged;
  }

  /** Records an attempt that began at a time (epoch ms) and has just ended. */
  record({ event, run, parked }: InFlightEvent, outcome: DeliveryOutcome, at: number): void {
    const { attempted, deliveries, now } = this.#deps;
    const isKept = deliveries !== undefined && isEndpointKind(this.#sink.kind);
    if (!isKept && !attempted) return;
    const endedAt = now();
    const cause = parked ? 'parked' : run.replay ? 'replay' : 'live';
    const entry = toDeliveryEntry(this.#sink, event, outcome, {
      at,
      endedAt,
      cause,
      replay: run?.replay?.id,
    });
    if (attempted) {
      const { at: _, excerpt: __, headers: ___, ...attempt } = entry;
      attempted({ ...attempt, lagMs: Math.max(0, endedAt - event.time) });
    }
    if (!isKept) return;
    this.#attempts.push(entry);
    this.#counter?.count(entry);
    if (this.#attempts.length >= LOG_BATCH) this.#begin(() => this.flush());
  }

  /**
   * Writes all pending attempts to the delivery log, or counts them as unlogged: history is only read for
   * review.
   */
  flush(): Promise<void> {
    const { deliveries } = this.#deps;
    const attempts = this.#attempts;
    if (!deliveries || attempts.length === 0) return this.#logging;
    this.#attempts = [];
    const logged = deliveries.record(attempts, RELAXED).catch(() => {
      this.#unlogged += attempts.length;
    });
    this.#logging = Promise.all([this.#logging, logged]).then(() => undefined);
    if (this.#counter?.isDue(this.#deps.now())) this.#begin(() => this.storeCounters());
    return this.#logging;
  }

  /** Stores the counters of the attempts. A failure is ignored: the next call stores them too. */
  storeCounters(): Promise<void> {
    const store = () => this.#counter?.store(this.#deps.now()).catch(() => undefined);
    this.#counting = this.#counting.then(store);
    return this.#counting;
  }
}
