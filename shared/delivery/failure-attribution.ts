import type { InFlightEvent } from './attempt-recorder.ts';
import { MAX_REJECTIONS, MAX_SUSPECTS, type SinkHealth } from './health.ts';
import type { DeliveryOutcome } from './sink.ts';

/** Decides, during a drain, whether an event or its sink caused a failure; see `health.ts`. */
export class FailureAttribution {
  /** A sink that failed last time gets one event as a probe first. */
  isProbing: boolean;
  /** The probe was the only available event. */
  isOnlyEvent = false;
  readonly #before: SinkHealth;
  readonly #suspects: Set<string>;
  #rejections: number;
  #deliveredAt: number | null = null;
  /** Time of the last failed attempt, including rejected ones; `null` if there was none. */
  failedAt: number | null = null;

  constructor(before: SinkHealth) {
    this.#before = before;
    this.isProbing = before.failures > 0;
    this.#rejections = before.rejections;
    this.#suspects = new Set(before.suspects);
  }

  /** Ids of the events whose failure made the sink wait. */
  get suspects(): ReadonlySet<string> {
    return this.#suspects;
  }

  /** Number of events parked since the last delivered one. */
  get rejections(): number {
    return this.#rejections;
  }

  /** Time of the last delivered event; `null` if there was none. */
  get deliveredAt(): number | null {
    return this.#deliveredAt;
  }

  noteDelivered(eventId: string, now: number): void {
    this.#deliveredAt = now;
    this.#rejections = 0;
    this.isProbing = false;
    this.#suspects.delete(eventId);
  }

  countRejection(): void {
    this.#rejections += 1;
  }

  /** Removes a suspect. */
  clear(eventId: string): void {
    this.#suspects.delete(eventId);
  }

  /**
   * Adds a suspect. Above the maximum, the oldest is dropped: it may belong to an event that is never sent
   * again.
   */
  suspect(eventId: string): void {
    const [first] = this.#suspects;
    const isNew = !this.#suspects.has(eventId);
    if (isNew && first !== undefined && this.#suspects.size >= MAX_SUSPECTS) this.#suspects.delete(first);
    this.#suspects.add(eventId);
  }

  /** Reports whether a failure is caused by this event rather than by the sink. */
  isEventRejected(
    { event, run }: InFlightEvent,
    outcome: Exclude<DeliveryOutcome, { kind: 'delivered' }>,
  ): boolean {
    const tooMany = this.#rejections >= MAX_REJECTIONS;
    if (outcome.kind === 'rejected') return run === undefined || run.replay !== undefined || !tooMany;
    if (!outcome.suspect || outcome.disable !== undefined) return false;
    const acceptsOthers = this.#deliveredAt !== null;
    if (run === undefined)
      return acceptsOthers || !this.isProbing || (this.isOnlyEvent && this.#suspects.has(event.id));
    if (!this.#suspects.has(event.id) || tooMany) return false;
    // There is no other event to try. Parking this event avoids blocking all later ones.
    return acceptsOthers || (this.isOnlyEvent && this.#before.failures >= 2);
  }
}
