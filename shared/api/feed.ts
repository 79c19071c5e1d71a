/**
 * Reading a log, an account's or a cell's own, as clients do: page by page with a cursor, waiting for what comes (long poll), or as a stream.
 *
 * A cursor says "everything up to here is mine"; what comes next stands after it. Filters never hold a cursor back: it
 * moves past events that were not asked for.
 */

import { toStatus } from '../accounts/accounts.ts';
import { typeMatches } from '../events/types.ts';
import { findEpochEnd, formatCursor, type parseCursor, resolveCursor } from '../log/head.ts';
import type { EventLog, LoggedEvent } from '../log/log.ts';
import { type AccountRef, keys } from '../storage/schema.ts';
import type { Table } from '../storage/table.ts';
import { deafWatch, type GrowthSignal, type Watch } from './growth-signal.ts';

/** What reading feeds needs. */
export interface FeedDeps {
  readonly table: Table;
  readonly log: EventLog;
  /** Wakes waiting readers at once. Without it (on Lambda) they look at the table every `recheckMs`. */
  readonly growth?: GrowthSignal | undefined;
  readonly pace: FeedPace;
  /** Epoch ms. */
  readonly now: () => number;
}

/** How readers wait and how streams go. */
export interface FeedPace {
  /** How often a waiting reader looks at the table by itself. */
  readonly recheckMs: number;
  /** A stream that has nothing to say says so after this time. */
  readonly heartbeatMs: number;
  /** A stream ends by itself after this time; the client resumes where it stands. */
  readonly streamMs: number;
  /** How long clients are asked to wait before they resume. */
  readonly retryMs: number;
  /** A long poll waits so long at most, whatever it was asked for. */
  readonly waitMs: number;
}

/** Where a reader stands in one log. */
export interface Place {
  readonly epoch: string;
  /** Everything up to this number has been read. */
  readonly sequence: number;
}

/** A cursor as a client gave it. */
export type GivenCursor = NonNullable<ReturnType<typeof parseCursor>>;

/** The log can't be read from a cursor: of another epoch, beyond the head, or before retention. Both are cursors. */
export interface Gone {
  readonly kind: 'gone';
  /** Reads on with the earliest event there still is. */
  readonly earliest: string;
  readonly head: string;
  /** The log was restored to a place before the cursor: reads on with all that has been said since then. */
  readonly restored?: string;
}

/** A page of the feed. */
export interface Page {
  readonly kind: 'page';
  /** The envelopes as stored, byte for byte. */
  readonly events: readonly string[];
  /** The cursor to go on with. */
  readonly next: string;
  readonly head: string;
  /**
   * Epoch ms: everything the ordering service's list showed before this instant is at or before `next` (or was there
   * before tracking began). Null when the page ends before the head, for then it can't be said, and for a cell's own log.
   */
  readonly observedThrough: number | null;
}

/** What a page is asked for with. */
export interface PageQuery {
  /** Absent: from the earliest event there still is. */
  readonly after?: GivenCursor | undefined;
  readonly limit: number;
  /** Patterns as of {@link typeMatches}; absent: all types. */
  readonly types?: readonly string[] | undefined;
  /** How long to wait for the first event that matches; 0 answers at once. */
  readonly waitMs: number;
  /** Asked each time before waiting. False: there is no place for it, and the page is {@link Crowded}. */
  readonly mayWait?: () => Promise<boolean>;
}

/** Too many wait already. */
export interface Crowded {
  readonly kind: 'crowded';
}

/** Events looked at for one page, whether they match or not. */
const SCANNED_EVENTS = 2000;
/** Events read at once, when most may not match. */
const SCAN_BATCH = 250;
/** A page is cut (after its first event) before it grows over this: a Lambda answers with 6 MB at most. */
export const PAGE_BYTES = 4_000_000;
/** Events a stream reads at once. */
const STREAM_BATCH = 100;

/**
 * One page of a log; `undefined` where there is none. When `waitMs` is given and nothing matches, it
 * waits until something does, the time is over, or the client is gone. A page can be empty and yet end before the head:
 * then as much was looked at as one request may, and `next` has moved.
 */
export async function readPage(
  deps: FeedDeps,
  ref: AccountRef,
  query: PageQuery,
  abort: AbortSignal,
): Promise<Page | Gone | Crowded | undefined> {
  const until = deps.now() + query.waitMs;
  // Listening begins before the first look, so that nothing falls between the two.
  using watch = query.waitMs > 0 ? watchOf(deps, [ref]) : deafWatch();
  const start = await locate(deps.log, ref, query.after, 'earliest');
  if (!start || 'kind' in start) return start;
  let place = start;
  let budget = SCANNED_EVENTS;
  for (;;) {
    // Read before the log: a poll writes this when all it saw is in the log, so what the log holds afterwards covers it.
    const status = await deps.table.get(keys.status(ref));
    const scan = await scanFrom(deps.log, ref, place, query, budget);
    if (!scan || 'kind' in scan) {
      // Retention moved on since the earliest was looked up, and nobody asked for what is gone now.
      if (scan && query.after === undefined) return readPage(deps, ref, query, abort);
      return scan;
    }
    budget -= scan.place.sequence - place.sequence;
    place = scan.place;
    const left = until - deps.now();
    if (scan.events.length > 0 || budget <= 0 || left <= 0 || abort.aborted) {
      return {
        kind: 'page',
        events: scan.events,
        next: cursorOf(place),
        head: formatCursor(place.epoch, scan.head),
        observedThrough:
          status && place.sequence === scan.head ? toStatus(status).lastGoodCrawlStartedAt : null,
      };
    }
    if (query.mayWait && !(await query.mayWait())) return { kind: 'crowded' };
    await grown(deps, ref, place, watch, until, abort);
  }
}

/** Waits until a log has grown beyond a place, the time is over, or the client is gone. */
async function grown(
  deps: FeedDeps,
  ref: AccountRef,
  place: Place,
  watch: Watch,
  until: number,
  abort: AbortSignal,
): Promise<void> {
  for (;;) {
    const left = until - deps.now();
    if (left <= 0 || abort.aborted) return;
    const hints = await watch.next(Math.min(left, deps.pace.recheckMs), abort);
    if (hints.length > 0) return;
    const head = await deps.log.head(ref);
    if (head?.epoch !== place.epoch || head.sequence !== place.sequence) return;
  }
}

/**
 * Where reading begins: at a cursor, or without one at the earliest event or at the head. `undefined` for an account
 * without a log. That a cursor has fallen out of retention shows only when the log is read.
 */
export async function locate(
  log: EventLog,
  ref: AccountRef,
  cursor: GivenCursor | undefined,
  otherwise: 'earliest' | 'head',
): Promise<Place | Gone | undefined> {
  const head = await log.head(ref);
  if (!head) return undefined;
  if (!cursor) {
    const sequence = otherwise === 'head' ? head.sequence : (await log.earliest(ref, head)) - 1;
    return { epoch: head.epoch, sequence };
  }
  const sequence = resolveCursor(head, cursor);
  if (sequence !== undefined) return { epoch: head.epoch, sequence };
  const answer = gone(head, await log.earliest(ref, head));
  const end = cursor.epoch === undefined ? undefined : findEpochEnd(head, cursor.epoch);
  return end === undefined ? answer : { ...answer, restored: formatCursor(head.epoch, end) };
}

/**
 * Where a stream begins: at a cursor whose next event is still there, or without one at the head. It says what is gone
 * while that can still be answered, before the stream begins.
 */
export async function locateStream(
  log: EventLog,
  ref: AccountRef,
  cursor: GivenCursor | undefined,
): Promise<Place | Gone | undefined> {
  const place = await locate(log, ref, cursor, 'head');
  if (!place || 'kind' in place || !cursor) return place;
  const outcome = await log.read(ref, place.sequence, 1);
  return outcome?.kind === 'gone' ? gone(outcome.head, outcome.earliest) : place;
}

/** A place as a cursor. */
export function cursorOf(place: Place): string {
  return formatCursor(place.epoch, place.sequence);
}

function gone(head: Place, earliest: number): Gone {
  return { kind: 'gone', earliest: formatCursor(head.epoch, earliest - 1), head: cursorOf(head) };
}

/** Looks through a log until there are enough matches, its end, or the budget of events looked at is used up. */
async function scanFrom(
  log: EventLog,
  ref: AccountRef,
  from: Place,
  query: PageQuery,
  budget: number,
): Promise<{ place: Place; events: string[]; head: number } | Gone | undefined> {
  const events: string[] = [];
  let bytes = 0;
  let { epoch, sequence: at } = from;
  for (;;) {
    const left = budget - (at - from.sequence);
    const size = Math.min(left, query.types ? SCAN_BATCH : query.limit - events.length);
    const outcome = await log.read(ref, at, size);
    if (!outcome) return undefined;
    if (resolveCursor(outcome.head, { epoch, sequence: at }) === undefined) {
      return gone(outcome.head, await log.earliest(ref, outcome.head));
    }
    // It may have been renewed since: what was read so far is in it all the same.
    epoch = outcome.head.epoch;
    if (outcome.kind === 'gone') return gone(outcome.head, outcome.earliest);
    // Events can come with a head that was read before they were written.
    const head = () => Math.max(outcome.head.sequence, at);
    for (const event of outcome.events) {
      if (!query.types || typeMatches(event.type, query.types)) {
        bytes += Buffer.byteLength(event.json);
        if (events.length > 0 && bytes > PAGE_BYTES) return { place: placeAt(), events, head: head() };
        events.push(event.json);
      }
      at = event.sequence;
      if (events.length === query.limit) return { place: placeAt(), events, head: head() };
    }
    if (outcome.events.length < size || at - from.sequence >= budget) {
      return { place: placeAt(), events, head: head() };
    }
  }

  function placeAt(): Place {
    return { epoch, sequence: at };
  }
}

/**
 * A log's events after a place as server-sent events, until the stream's time is over or the signal is aborted. It
 * also ends when its place is no longer in the log: a client that resumes is told so.
 */
export function followLog(
  deps: FeedDeps,
  ref: AccountRef,
  from: Place,
  types: readonly string[] | undefined,
  abort: AbortSignal,
): AsyncGenerator<string> {
  return serverSentEvents(deps, abort, () => {
    const watch = watchOf(deps, [ref]);
    let place = from;
    return {
      cursor: () => cursorOf(place),
      async read() {
        const outcome = await deps.log.read(ref, place.sequence, STREAM_BATCH);
        if (outcome?.kind !== 'events' || outcome.head.epoch !== place.epoch) return 'over';
        const frames: Frame[] = [];
        for (const event of outcome.events) {
          place = { ...place, sequence: event.sequence };
          if (!types || typeMatches(event.type, types)) frames.push({ id: cursorOf(place), event });
        }
        return { frames, more: outcome.events.length > 0 };
      },
      wait: (ms) => grown(deps, ref, place, watch, deps.now() + ms, abort),
      [Symbol.dispose]: () => watch[Symbol.dispose](),
    };
  });
}

/** An event of a stream with the cursor that stands right behind it. */
export interface Frame {
  readonly id: string;
  readonly event: LoggedEvent;
}

/** What a stream tells: its events from some place on. */
export interface StreamSource extends Disposable {
  /** Where it stands: behind everything read so far, told or filtered out. */
  cursor(): string;
  /** What there is now, and whether there may be more at once. `over`: it can't be read on from where it stands. */
  read(): Promise<{ readonly frames: readonly Frame[]; readonly more: boolean } | 'over'>;
  /** Waits for more, at most so long, and not when the client is gone. */
  wait(ms: number): Promise<void>;
}

/**
 * The `event:` name of frames that hold a cursor and no event. Not a type: those have a dot.
 */
export const CURSOR_EVENT = 'cursor';

/** A frame that moves the client's cursor. With data, for clients skip a frame without, and its id with it. */
function cursorFrame(cursor: string): string {
  return `id: ${cursor}\nevent: ${CURSOR_EVENT}\ndata: ${JSON.stringify({ cursor })}\n\n`;
}

/**
 * The text of a stream of server-sent events. It begins with a cursor frame, so that a client resumes without a gap even if it
 * is cut off before the first event. Further ones take the cursor past events that were filtered out; otherwise the heartbeat
 * is a comment. The source is opened with the first read of the text, and closed however the stream ends.
 */
export async function* serverSentEvents(
  deps: Pick<FeedDeps, 'pace' | 'now'>,
  abort: AbortSignal,
  open: () => StreamSource,
): AsyncGenerator<string> {
  const { pace, now } = deps;
  using source = open();
  const endsAt = now() + pace.streamMs;
  let said = source.cursor();
  let saidAt = now();
  yield `retry: ${pace.retryMs}\n${cursorFrame(said)}`;
  while (!abort.aborted && now() < endsAt) {
    const batch = await source.read();
    if (batch === 'over') return;
    const last = batch.frames.at(-1);
    if (last) {
      said = last.id;
      saidAt = now();
      // One piece per batch; the next one is read when this one was taken.
      yield batch.frames
        .map(({ id, event }) => `id: ${id}\nevent: ${event.type}\ndata: ${event.json}\n\n`)
        .join('');
    } else if (now() >= saidAt + pace.heartbeatMs) {
      saidAt = now();
      yield moved() || ':\n\n';
    }
    if (batch.more) continue;
    const ms = Math.min(saidAt + pace.heartbeatMs, endsAt) - now();
    if (ms > 0) await source.wait(ms);
  }
  const rest = moved();
  if (rest !== '' && !abort.aborted) yield rest;

  function moved(): string {
    const cursor = source.cursor();
    if (cursor === said) return '';
    said = cursor;
    return cursorFrame(cursor);
  }
}

/** What belongs to a body besides its text. */
export interface BodyParts {
  /** Called with a fault of the maker. */
  readonly onFault: (cause: unknown) => void;
  /** Called once when the maker has ended, however that came; the body's end waits for it. Must not reject. */
  readonly onEnd: () => Promise<void>;
  /** After this time the body is cut off, whether anybody reads it or not. */
  readonly cutMs: number;
}

/**
 * A response body from a text that is made as it is read: nothing is made ahead of a slow client, and nothing at all for
 * one that never reads. When the client goes, the maker is told through its signal and ends at once. A fault ends the
 * body, as the end of a stream's time does: the client resumes and is answered properly. A client that stopped reading
 * would never see that end, so the body is cut off some time after it.
 */
export function toBody(
  make: (abort: AbortSignal) => AsyncGenerator<string>,
  parts: BodyParts,
): ReadableStream<Uint8Array> {
  const gone = new AbortController();
  const text = make(gone.signal);
  const encoder = new TextEncoder();
  let ended: Promise<void> | undefined;
  let cut: ReturnType<typeof setTimeout> | undefined;

  function end(): Promise<void> {
    clearTimeout(cut);
    ended ??= parts.onEnd();
    return ended;
  }
  async function stop(): Promise<void> {
    gone.abort();
    await text.return(undefined).catch(parts.onFault);
    await end();
  }

  return new ReadableStream(
    {
      start(controller) {
        cut = setTimeout(() => {
          void stop();
          controller.error(new Error('The stream was cut off: its time was over and nobody read on.'));
        }, parts.cutMs).unref();
      },
      async pull(controller) {
        try {
          const { done, value } = await text.next();
          if (gone.signal.aborted) return;
          if (!done) return controller.enqueue(encoder.encode(value));
        } catch (cause) {
          parts.onFault(cause);
        }
        await end();
        if (!gone.signal.aborted) controller.close();
      },
      cancel: stop,
    },
    { highWaterMark: 0 },
  );
}

/** A watch on some logs, deaf where there is no signal. */
export function watchOf(deps: Pick<FeedDeps, 'growth'>, of: readonly AccountRef[]): Watch {
  return deps.growth?.watch(of) ?? deafWatch();
}
