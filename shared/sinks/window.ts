/**
 * The window of a cursor: its events between what is done and what has been read, by lane. Pure bookkeeping.
 *
 *   position            readTo              head
 *   ──┬─────────────────────┬─────────────────┬──▶ sequence
 *     done below             window             not read yet
 *
 * A lane is the events of one job: one at a time, first to last. Lanes go side by side, so events are done out of order;
 * the position is the last one below which all is done.
 */
import type { LoggedEvent } from '../log/log.ts';

/** The lane of an event within its account's log: the job, or everything that is about no job. */
export function laneOf(event: Pick<LoggedEvent, 'jobNumber'>): string {
  return event.jobNumber === undefined ? 'account' : String(event.jobNumber);
}

/** The events of one cursor that are being worked off. */
export class CursorWindow {
  #position: number;
  #readTo: number;
  readonly #done = new Set<number>();
  /** Events per lane that nobody has taken yet, first to last. Lanes stand in the order in which they were read. */
  readonly #lanes = new Map<string, LoggedEvent[]>();
  readonly #busy = new Set<string>();
  #waiting = 0;

  /** Events done beyond the position, as far as known from before: they are not taken again. */
  readonly #ahead: Set<number>;

  constructor(position: number, ahead = '') {
    this.#position = position;
    this.#readTo = position;
    this.#ahead = parseRanges(ahead);
  }

  /** What is done beyond the position, as text that is stored with it: `8-16,20`; empty for nothing. */
  get ahead(): string {
    return formatRanges([...this.#done, ...this.#ahead]);
  }

  /** Everything up to here is done. */
  get position(): number {
    return this.#position;
  }

  /** The last sequence that has been read. */
  get readTo(): number {
    return this.#readTo;
  }

  /** Events read and not yet taken. */
  get waiting(): number {
    return this.#waiting;
  }

  /** Whether all that was read is done. */
  get isDone(): boolean {
    return this.#position === this.#readTo;
  }

  /** Takes in the events that follow what was read; those that are not wanted are done at once. Gives how many those were. */
  add(events: readonly LoggedEvent[], wanted: (event: LoggedEvent) => boolean): number {
    let passedOver = 0;
    for (const event of events) {
      this.#readTo = event.sequence;
      if (this.#ahead.delete(event.sequence)) {
        this.#done.add(event.sequence);
        continue;
      }
      if (!wanted(event)) {
        passedOver += 1;
        this.#done.add(event.sequence);
        continue;
      }
      const lane = laneOf(event);
      const queue = this.#lanes.get(lane);
      if (queue) queue.push(event);
      else this.#lanes.set(lane, [event]);
      this.#waiting += 1;
    }
    this.#moveOn();
    return passedOver;
  }

  /**
   * The first event of the first free lane, which is then busy. Events with the ids to avoid are left where they are, and
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

  /** An event that was taken is done; its lane goes on. */
  settle(event: LoggedEvent): void {
    this.#busy.delete(laneOf(event));
    this.#done.add(event.sequence);
    this.#moveOn();
  }

  /** An event that was taken was not done: it is the first of its lane again. */
  putBack(event: LoggedEvent): void {
    const lane = laneOf(event);
    this.#busy.delete(lane);
    this.#waiting += 1;
    const queue = this.#lanes.get(lane);
    if (queue) queue.unshift(event);
    else this.#lanes.set(lane, [event]);
  }

  #moveOn(): void {
    while (this.#done.delete(this.#position + 1)) this.#position += 1;
  }
}

function formatRanges(sequences: readonly number[]): string {
  const ranges: [first: number, last: number][] = [];
  for (const sequence of sequences.toSorted((a, b) => a - b)) {
    const range = ranges.at(-1);
    if (range && sequence === range[1] + 1) range[1] = sequence;
    else ranges.push([sequence, sequence]);
  }
  return ranges.map(([first, last]) => (first === last ? `${first}` : `${first}-${last}`)).join(',');
}

function parseRanges(text: string): Set<number> {
  const sequences = new Set<number>();
  for (const range of text.split(',')) {
    const [first = 0, last = first] = range.split('-').map(Number);
    for (let sequence = first; sequence > 0 && sequence <= last; sequence += 1) sequences.add(sequence);
  }
  return sequences;
}
