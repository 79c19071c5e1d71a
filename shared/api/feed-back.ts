/**
 * Reads a log or the cell feed from the newest event backwards. Numbers have no gaps, so a page is a window of numbers, read
 * forwards and returned in reverse. It needs no other access than forward reading, and costs the same.
 */
import type { LoggedEvent } from '../log/log.ts';

/** An event with its number in a log or the cell feed. */
interface Numbered {
  readonly number: number;
  readonly event: LoggedEvent;
}

/** Reads the events after a number, up to another one. `gone`: the first number is older than the earliest event. */
export type ReadWindow = (
  after: number,
  upTo: number,
) => Promise<
  | {
      readonly kind: 'events';
      readonly events: readonly Numbered[];
      /** Last number that was read. Below `upTo` if the transaction of an event is not visible yet. */
      readonly through: number;
    }
  | { readonly kind: 'gone'; readonly earliest: number }
  | undefined
>;

/** A log to read backwards. */
export interface BackSource {
  readonly readWindow: ReadWindow;
  /** Number of the first event to return. */
  readonly from: number;
  /** Whether `from` is the head. Its transaction may not be visible yet. */
  readonly isHead: boolean;
}

/** Parameters of a page. */
interface BackQuery {
  readonly limit: number;
  readonly matches: (event: LoggedEvent) => boolean;
  /** Maximum size of a page with more than one event. */
  readonly maxBytes: number;
  /** Maximum number of events to read. */
  readonly budget: number;
  /** Number of events per read. */
  readonly batch: number;
}

/** Positions of a source after a page, as numbers of events. */
interface BackPlace {
  /** The events after it are newer than the page. */
  readonly newest: number;
  /** Number of the next older event; `null` if there is none. */
  readonly older: number | null;
}

/** Returns the newest matching events of several logs, the newest first, and the place of each log. */
export async function readBack(
  sources: readonly BackSource[],
  query: BackQuery,
): Promise<{ readonly events: readonly string[]; readonly places: readonly BackPlace[] }> {
  const budget = { left: query.budget };
  const readers = sources.map((source) => createReader(source, query, budget));
  const events: string[] = [];
  let bytes = 0;
  while (events.length < query.limit) {
    await Promise.all(readers.map((reader) => reader.fill()));
    // A log that was not read to its end can have newer events than the others.
    if (readers.some((reader) => reader.isInterrupted())) break;
    const [newest] = readers
      .flatMap((reader) => {
        const first = reader.peek();
        return first ? [{ reader, first }] : [];
      })
      .sort((a, b) => b.first.event.time - a.first.event.time);
    if (!newest) break;
    bytes += Buffer.byteLength(newest.first.event.json);
    if (events.length > 0 && bytes > query.maxBytes) break;
    events.push(newest.first.event.json);
    newest.reader.take();
  }
  return { events, places: readers.map((reader) => reader.place()) };
}

function createReader(
  { readWindow, from, isHead }: BackSource,
  { matches, batch }: BackQuery,
  budget: { left: number },
) {
  /** Matching events that were read and not taken, the newest first. */
  let buffer: readonly Numbered[] = [];
  /** Numbers up to this one were not read; no event up to `floor` exists. */
  let unread = from;
  let floor = 0;
  let newest = from;
  let [hasRead, stopped] = [false, false];

  return {
    /** Reads windows until an event matches, the beginning is reached, or nothing more may be read. */
    async fill(): Promise<void> {
      while (buffer.length === 0 && unread > floor && budget.left > 0 && !stopped) {
        const after = Math.max(floor, unread - Math.min(batch, budget.left));
        const window = await readWindow(after, unread);
        if (window?.kind === 'gone') {
          floor = Math.max(floor, window.earliest - 1);
          continue;
        }
        const through = window?.through ?? after;
        if (through < unread && !(isHead && !hasRead)) {
          stopped = true;
          return;
        }
        if (!hasRead) newest = through;
        hasRead = true;
        budget.left -= unread - after;
        unread = after;
        buffer = (window?.events ?? []).filter(({ event }) => matches(event)).toReversed();
      }
    },
    peek: () => buffer[0],
    take(): void {
      buffer = buffer.slice(1);
    },
    isInterrupted: () => buffer.length === 0 && unread > floor,
    place(): BackPlace {
      const older = buffer[0]?.number ?? unread;
      return { newest, older: older > floor ? older : null };
    },
  };
}
