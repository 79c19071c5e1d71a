/**
 * The window of a cursor: its events between the position and the last read event, by lane. Pure state.
 *
 *   position            readTo              head
 *   ──┬─────────────────────┬─────────────────┬──▶ sequence
 *     done below             window             not read yet
 *
 * A lane is the events of one job: one at a time, in order. Lanes run concurrently, so events complete out of
 * order. The position is the last sequence up to which all events are done. The sequences that are read can
 * have gaps: a replay of dead events skips all others.
 */
import type { LoggedEvent } from '../log/log.ts';

/** Returns the lane of an event within its account's log: the job, or `account` for events about no job. */
export function getLane(event: Pick<LoggedEvent, 'jobNumber'>): string {
  return event.jobNumber === undefined ? 'account' : String(event.jobNumber);
}

/** Events of a log that were lost: their number, and the first and the last. Those between them may have been delivered. */
export interface LostEvents {
  readonly first: number;
  readonly last: number;
  readonly count: number;
}

/** The events of one cursor in process. */
export class CursorWindow {
  #position: number;
  #readTo: number;
  readonly #done = new Set<number>();
  /** Sequences of the events after the position, in order. */
  readonly #sequences: number[] = [];
  /** Events per lane that are not yet taken, in order. Lanes are in the order in which they were read. */
  readonly #lanes = new Map<string, LoggedEvent[]>();
  readonly #busy = new Set<string>();
  #waiting = 0;
  #doneCount = 0;

  /** Events done beyond the position, as loaded from the store: they are not taken again. */
  readonly #ahead: Set<number>;

  constructor(position: number, ahead = '') {
    this.#position = position;
    this.#readTo = position;
    this.#ahead = new Set([...parseRanges(ahead)].filter((sequence) => sequence > position));
  }

  /** Events done beyond the position, as text stored with it: `8-16,20`; empty for none. */
  get ahead(): string {
    return formatRanges([...this.#done, ...this.#ahead]);
  }

  /** Returns the events up to `last` that have neither been read nor done before. */
  findMissing(last: number): LostEvents {
    const done = [...this.#ahead].filter((sequence) => sequence <= last).length;
    const count = Math.max(0, last - this.#readTo - done);
    let [from, to] = [this.#readTo + 1, last];
    while (this.#ahead.has(from)) from += 1;
    while (this.#ahead.has(to)) to -= 1;
    return { first: from, last: to, count };
  }

  /** Last sequence up to which all events are done. */
  get position(): number {
    return this.#position;
  }

  /** Last sequence that has been read. */
  get readTo(): number {
    return this.#readTo;
  }

  /** Number of events read and not yet taken. */
  get waiting(): number {
    return this.#waiting;
  }

  /** Number of events from the first that is not done to the last that was read. */
  get size(): number {
    return this.#sequences.length;
  }

  /** Number of events done since the window was created. */
  get doneCount(): number {
    return this.#doneCount;
  }

  /** Whether all events that were read are done. */
  get isDone(): boolean {
    return this.#position === this.#readTo;
  }

  /**
   * Adds the next events after those already read. Events that are not wanted are done at once; returns their
   * number.
   */
  add(events: readonly LoggedEvent[], wanted: (event: LoggedEvent) => boolean): number {
    let passedOver = 0;
    for (const event of events) {
      this.#readTo = event.sequence;
      this.#sequences.push(event.sequence);
      if (this.#ahead.delete(event.sequence)) {
        this.#done.add(event.sequence);
        continue;
      }
      if (!wanted(event)) {
        passedOver += 1;
        this.#complete(event);
        continue;
      }
      const lane = getLane(event);
      const queue = this.#lanes.get(lane);
      if (queue) queue.push(event);
      else this.#lanes.set(lane, [event]);
      this.#waiting += 1;
    }
    this.#advance();
    return passedOver;
  }

  /** Records that there are no more events up to a sequence. */
  readThrough(sequence: number): void {
    this.#readTo = Math.max(this.#readTo, sequence);
    this.#advance();
  }

  /**
   * Takes the first event of the first free lane, which is then busy. Skips events with the ids to avoid, and
   * those beyond a sequence.
   */
  take(avoid?: ReadonlySet<string>, upTo = Number.POSITIVE_INFINITY): LoggedEvent | undefined {
    for (const [lane, queue] of this.#lanes) {
      const [event] = queue;
      if (!event || event.sequence > upTo || this.#busy.has(lane) || avoid?.has(event.id)) continue;
      queue.shift();
      if (queue.length === 0) this.#lanes.delete(lane);
      this.#busy.add(lane);
      this.#waiting -= 1;
      return event;
    }
    return undefined;
  }

  /** Completes an event that was taken; its lane resumes. */
  settle(event: LoggedEvent): void {
    this.#busy.delete(getLane(event));
    this.#complete(event);
    this.#advance();
  }

  /** Returns an event that was taken but not done: it is the first of its lane again. */
  putBack(event: LoggedEvent): void {
    const lane = getLane(event);
    this.#busy.delete(lane);
    this.#waiting += 1;
    const queue = this.#lanes.get(lane);
    if (queue) queue.unshift(event);
    else this.#lanes.set(lane, [event]);
  }

  #complete(event: LoggedEvent): void {
    this.#done.add(event.sequence);
    this.#doneCount += 1;
  }

  #advance(): void {
    let done = 0;
    while (this.#done.delete(this.#sequences[done] ?? 0)) done += 1;
    this.#sequences.splice(0, done);
    const [first] = this.#sequences;
    this.#position = first === undefined ? this.#readTo : first - 1;
  }
}

/** Groups ascending sequences at most `distance` apart: the first and the last of each group. */
export function toSpans(sequences: readonly number[], distance: number) {
  const spans: [first: number, last: number][] = [];
  for (const sequence of sequences) {
    const span = spans.at(-1);
    if (span && sequence - span[1] <= distance) span[1] = sequence;
    else spans.push([sequence, sequence]);
  }
  return spans;
}

function formatRanges(sequences: readonly number[]): string {
  const ordered = sequences.toSorted((a, b) => a - b);
  const spans = toSpans(ordered, 1);
  return spans.map(([first, last]) => (first === last ? `${first}` : `${first}-${last}`)).join(',');
}

function parseRanges(text: string): Set<number> {
  const sequences = new Set<number>();
  for (const range of text.split(',')) {
    const [first = 0, last = first] = range.split('-').map(Number);
    for (let sequence = first; sequence > 0 && sequence <= last; sequence += 1) sequences.add(sequence);
  }
  return sequences;
}
