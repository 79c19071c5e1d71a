/**
 * Reads the log of an account or a region for clients: paged with a cursor, as a long poll, or as a stream.
 *
 * A cursor is the position up to which the client has read. It also advances past events that a filter excludes.
 */

import { toStatus } from '../accounts/accounts.ts';
import { typeMatches } from '../events/types.ts';
import { findEpochEnd, formatCursor, type parseCursor, resolveCursor } from '../log/head.ts';
import type { EventLog, LoggedEvent } from '../log/log.ts';
import { type AccountRef, keys } from '../storage/schema.ts';
import type { Table } from '../storage/table.ts';
import { type BackSource, readBack } from './feed-back.ts';
import { createTimer, type GrowthSignal, type Watch } from './growth-signal.ts';

/** Dependencies of feeds. */
export interface FeedDeps {
  readonly table: Table;
  readonly log: EventLog;
  /** Wakes waiting readers immediately. Without it (on Lambda), they read the table every `recheckMs`. */
  readonly growth?: GrowthSignal | undefined;
  readonly pace: FeedPace;
  /** Epoch ms. */
  readonly now: () => number;
}

/** Intervals of waiting readers and streams. */
export interface FeedPace {
  /** Interval at which a waiting reader reads the table. */
  readonly recheckMs: number;
  /** Interval of heartbeats in a stream without events. */
  readonly heartbeatMs: number;
  /** Maximum duration of a stream. The client then resumes at its cursor. */
  readonly streamMs: number;
  /** Time that clients are asked to wait before they reconnect. */
  readonly retryMs: number;
  /** Maximum duration of a long poll. */
  readonly waitMs: number;
}

/** Position of a reader in a log. */
export interface LogPosition {
  readonly epoch: string;
  /** Sequence number of the last event read. */
  readonly sequence: number;
}

/** A cursor sent by a client. */
export type GivenCursor = NonNullable<ReturnType<typeof parseCursor>>;

/** The log cannot be read from a cursor: it is of another epoch, beyond the head, or older than retention. All fields are cursors. */
export interface Gone {
  readonly kind: 'gone';
  /** Resumes with the earliest event still kept. */
  readonly earliest: string;
  readonly head: string;
  /** The log was restored to a position before the cursor: resumes with all events since then. */
  readonly restored?: string;
}

/** A page of the feed. */
export interface Page {
  readonly kind: 'page';
  /** The envelopes as stored, byte for byte. */
  readonly events: readonly string[];
  /** Cursor of the next page. For a page that begins with the newest events: after its newest event. */
  readonly next: string;
  /** Cursor of the page of older events, or `null` if there are none. Only for a page that begins with the newest events. */
  readonly previous?: string | null;
  readonly head: string;
  /**
   * Time up to which all upstream changes are in the log at or before `next` (epoch ms). `null` if the page ends before the head, and
   * for the log of a region.
   */
  readonly observedThrough: number | null;
}

/** Query of a page. */
export interface PageQuery {
  /** Default: the earliest event still kept. */
  readonly after?: GivenCursor | undefined;
  readonly limit: number;
  /** Patterns of {@link typeMatches}. Default: all types. */
  readonly types?: readonly string[] | undefined;
  /** Maximum time to wait for the first matching event. 0: no waiting. */
  readonly waitMs: number;
  /** Called before each wait. If false, the result is {@link Crowded}. */
  readonly mayWait?: () => Promise<boolean>;
}

/** The limit of waiting requests is reached. */
export interface Crowded {
  readonly kind: 'crowded';
}

/** Maximum number of events scanned for one page. */
const SCANNED_EVENTS = 2000;
/** Number of events per read with a type filter. */
const SCAN_BATCH = 250;
/** Maximum size of a page with more than one event. Lambda responses are limited to 6 MB. */
export const PAGE_BYTES = 4_000_000;
/** Number of events per read of a stream. */
const STREAM_BATCH = 100;

/**
 * Returns a page of a log; `undefined` if there is no log. With `waitMs`, waits for the first matching event, the end of the time or
 * the disconnection of the client. A page can be empty and end before the head, if the maximum number of events was scanned without a
 * match; `next` has advanced.
 */
export async function readPage(
  deps: FeedDeps,
  ref: AccountRef,
  query: PageQuery,
  abort: AbortSignal,
): Promise<Page | Gone | Crowded | undefined> {
  const until = deps.now() + query.waitMs;
  // The watch begins before the first read, so that no event is missed between the two.
  using watch = query.waitMs > 0 ? watchLogs(deps, [ref]) : createTimer();
  const start = await locate(deps.log, ref, query.after, 'earliest');
  if (!start || 'kind' in start) return start;
  let place = start;
  let budget = SCANNED_EVENTS;
  for (;;) {
    // Read before the log: a poll writes the status after its events, so the log read afterwards contains them.
    const status = await deps.table.get(keys.status(ref));
    const scan = await scanFrom(deps.log, ref, place, query, budget);
    if (!scan || 'kind' in scan) {
      // Events expired since `earliest` was read, and the client gave no cursor: start again.
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
        next: formatPlace(place),
        head: formatCursor(place.epoch, scan.head),
        observedThrough:
          status && place.sequence === scan.head ? toStatus(status).lastGoodCrawlStartedAt : null,
      };
    }
    if (query.mayWait && !(await query.mayWait())) return { kind: 'crowded' };
    await grown(deps, ref, place, watch, until, abort);
  }
}

/**
 * Returns a page of a log that begins with the newest event, or with the last event before a cursor. `undefined` if there is no log.
 * A page can be empty although there are older events, if the maximum number of events was scanned without a match.
 */
export async function readNewestPage(
  { log, table }: Pick<FeedDeps, 'log' | 'table'>,
  ref: AccountRef,
  {
    before,
    limit,
    types,
  }: { readonly before?: GivenCursor | undefined } & Pick<PageQuery, 'limit' | 'types'>,
): Promise<Page | Gone | undefined> {
  const start = await locate(log, ref, before, 'head');
  if (!start || 'kind' in start) return start;
  // Read before the log: a poll writes the status after its events, so the log read afterwards contains them.
  const status = await table.get(keys.status(ref));
  let head = before ? undefined : start.sequence;
  const source: BackSource = {
    from: start.sequence,
    isHead: before === undefined,
    async readWindow(after, upTo) {
      const outcome = await log.read(ref, after, upTo - after);
      head = Math.max(head ?? 0, outcome?.head.sequence ?? 0);
      if (outcome?.kind !== 'events') return outcome;
      const events = outcome.events.map((event) => ({ number: event.sequence, event }));
      return { kind: 'events', events, through: events.at(-1)?.number ?? after };
    },
  };
  const { events, places } = await readBack([source], {
    ...{ limit, maxBytes: PAGE_BYTES, matches: matcher(types) },
    ...{ budget: SCANNED_EVENTS, batch: types ? SCAN_BATCH : limit },
  });
  const { newest, older } = places[0] ?? { newest: 0, older: null };
  const at = (sequence: number) => formatCursor(start.epoch, sequence);
  return {
    kind: 'page',
    events,
    next: at(newest),
    previous: older === null ? null : at(older),
    head: at(head ?? (await log.head(ref))?.sequence ?? newest),
    observedThrough: status && newest === head ? toStatus(status).lastGoodCrawlStartedAt : null,
  };
}

/** Returns the function that decides whether an event has one of the types. */
export function matcher(types: readonly string[] | undefined): (event: { readonly type: string }) => boolean {
  return ({ type }) => types === undefined || typeMatches(type, types);
}

/** Waits until a log grows beyond a position, the time ends, or the client disconnects. */
function grown(
  deps: FeedDeps,
  ref: AccountRef,
  place: LogPosition,
  ...waiting: [watch: Watch, until: number, abort: AbortSignal]
): Promise<void> {
  return waitForGrowth(deps, ...waiting, async () => {
    const head = await deps.log.head(ref);
    return head?.epoch !== place.epoch || head.sequence !== place.sequence;
  });
}

/** Waits until a hint of growth, until `hasGrown`, the end of the time, or the disconnection of the client. */
export async function waitForGrowth(
  { now, pace }: Pick<FeedDeps, 'now' | 'pace'>,
  watch: Watch,
  until: number,
  abort: AbortSignal,
  hasGrown: () => Promise<boolean>,
): Promise<void> {
  for (;;) {
    const left = until - now();
    if (left <= 0 || abort.aborted) return;
    const hints = await watch.next(Math.min(left, pace.recheckMs), abort);
    if (hints.length > 0 || (await hasGrown())) return;
  }
}

/**
 * Returns the start position: at a cursor, or without one at the earliest event or at the head. `undefined` for an account without a
 * log. An expired cursor is detected only when the log is read.
 */
export async function locate(
  log: EventLog,
  ref: AccountRef,
  cursor: GivenCursor | undefined,
  start: 'earliest' | 'head',
): Promise<LogPosition | Gone | undefined> {
  const head = await log.head(ref);
  if (!head) return undefined;
  if (!cursor) {
    const sequence = start === 'head' ? head.sequence : (await log.earliest(ref, head)) - 1;
    return { epoch: head.epoch, sequence };
  }
  const sequence = resolveCursor(head, cursor);
  if (sequence !== undefined) return { epoch: head.epoch, sequence };
  const answer = gone(head, await log.earliest(ref, head));
  const end = cursor.epoch === undefined ? undefined : findEpochEnd(head, cursor.epoch);
  return end === undefined ? answer : { ...answer, restored: formatCursor(head.epoch, end) };
}

/**
 * Returns the start position of a stream: at a cursor whose next event is still kept, or without one at the head. Expired cursors are
 * detected before the stream begins, so that the response can be a 410.
 */
export async function locateStream(
  log: EventLog,
  ref: AccountRef,
  cursor: GivenCursor | undefined,
): Promise<LogPosition | Gone | undefined> {
  const place = await locate(log, ref, cursor, 'head');
  if (!place || 'kind' in place || !cursor) return place;
  const outcome = await log.read(ref, place.sequence, 1);
  return outcome?.kind === 'gone' ? gone(outcome.head, outcome.earliest) : place;
}

/** Formats a position as a cursor. */
export function formatPlace(place: LogPosition): string {
  return formatCursor(place.epoch, place.sequence);
}

function gone(head: LogPosition, earliest: number): Gone {
  return { kind: 'gone', earliest: formatCursor(head.epoch, earliest - 1), head: formatPlace(head) };
}

/** Scans a log until the page is full, the log ends, or the budget of scanned events is used up. */
async function scanFrom(
  log: EventLog,
  ref: AccountRef,
  from: LogPosition,
  query: PageQuery,
  budget: number,
): Promise<{ place: LogPosition; events: string[]; head: number } | Gone | undefined> {
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
    // The epoch may have changed since. The events read so far are part of it as well.
    epoch = outcome.head.epoch;
    if (outcome.kind === 'gone') return gone(outcome.head, outcome.earliest);
    // The head may have been read before the events were written.
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

  function placeAt(): LogPosition {
    return { epoch, sequence: at };
  }
}

/**
 * Returns the events of a log after a position as server-sent events, until the maximum duration or the abort of the signal. Also ends
 * if the position is no longer in the log: a client that reconnects gets a 410.
 */
export function followLog(
  deps: FeedDeps,
  ref: AccountRef,
  from: LogPosition,
  types: readonly string[] | undefined,
  abort: AbortSignal,
): AsyncGenerator<string> {
  return serverSentEvents(deps, abort, () => {
    const watch = watchLogs(deps, [ref]);
    let place = from;
    return {
      cursor: () => formatPlace(place),
      async read() {
        const outcome = await deps.log.read(ref, place.sequence, STREAM_BATCH);
        if (outcome?.kind !== 'events' || outcome.head.epoch !== place.epoch) return 'over';
        const frames: Frame[] = [];
        for (const event of outcome.events) {
          place = { ...place, sequence: event.sequence };
          if (!types || typeMatches(event.type, types)) frames.push({ id: formatPlace(place), event });
        }
        return { frames, more: outcome.events.length > 0 };
      },
      wait: (ms) => grown(deps, ref, place, watch, deps.now() + ms, abort),
      [Symbol.dispose]: () => watch[Symbol.dispose](),
    };
  });
}

/** An event of a stream with the cursor after it. */
export interface Frame {
  readonly id: string;
  readonly event: LoggedEvent;
}

/** Source of the events of a stream. */
export interface StreamSource extends Disposable {
  /** Returns the cursor after all events read so far, including filtered ones. */
  cursor(): string;
  /** Returns the available events, and whether more may be available. `over`: the log cannot be read from the current position. */
  read(): Promise<{ readonly frames: readonly Frame[]; readonly more: boolean } | 'over'>;
  /** Waits for more events, at most this long or until the client disconnects. */
  wait(ms: number): Promise<void>;
}

/**
 * `event:` name of frames that contain a cursor instead of an event. Event types contain a dot, so it is none.
 */
export const CURSOR_EVENT = 'cursor';

/** Returns a frame that advances the client's cursor. It has data, because clients ignore frames without data, including their id. */
function cursorFrame(cursor: string): string {
  return `id: ${cursor}\nevent: ${CURSOR_EVENT}\ndata: ${JSON.stringify({ cursor })}\n\n`;
}

/**
 * Returns the text of a stream of server-sent events. It begins with a cursor frame, so that a client resumes without a gap even if it is
 * disconnected before the first event. Further cursor frames advance past filtered events. Otherwise the heartbeat is a comment. The
 * source is opened with the first read of the text, and always closed.
 */
export async function* serverSentEvents(
  deps: Pick<FeedDeps, 'pace' | 'now'>,
  abort: AbortSignal,
  open: () => StreamSource,
): AsyncGenerator<string> {
  const { pace, now } = deps;
  using source = open();
  const endsAt = now() + pace.streamMs;
  let sentCursor = source.cursor();
  let sentAt = now();
  yield `retry: ${pace.retryMs}\n${cursorFrame(sentCursor)}`;
  while (!abort.aborted && now() < endsAt) {
    const batch = await source.read();
    if (batch === 'over') return;
    const last = batch.frames.at(-1);
    if (last) {
      sentCursor = last.id;
      sentAt = now();
      // One chunk per batch. The next one is read when the client has received this one.
      yield batch.frames
        .map(({ id, event }) => `id: ${id}\nevent: ${event.type}\ndata: ${event.json}\n\n`)
        .join('');
    } else if (now() >= sentAt + pace.heartbeatMs) {
      sentAt = now();
      yield moved() || ':\n\n';
    }
    if (batch.more) continue;
    const ms = Math.min(sentAt + pace.heartbeatMs, endsAt) - now();
    if (ms > 0) await source.wait(ms);
  }
  const rest = moved();
  if (rest !== '' && !abort.aborted) yield rest;

  function moved(): string {
    const cursor = source.cursor();
    if (cursor === sentCursor) return '';
    sentCursor = cursor;
    return cursorFrame(cursor);
  }
}

/** Callbacks and limits of a body. */
export interface BodyParts {
  /** Called with an error of the generator. */
  readonly onFault: (cause: unknown) => void;
  /** Called once when the generator has ended. The body ends after it. Must not reject. */
  readonly onEnd: () => Promise<void>;
  /** Time after which the body is aborted, even if the client does not read. */
  readonly cutMs: number;
}

/**
 * Returns a response body from a generator, which runs only as fast as the client reads. When the client disconnects, the generator is
 * aborted. An error ends the body, as the maximum duration does: the client reconnects and gets a proper response. A client that stopped
 * reading would not notice the end, so the body is aborted some time later.
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
          controller.error(
            new Error('The stream was aborted: the maximum duration had passed and the client did not read.'),
          );
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

/** Watches logs. Without a signal, the watch never reports anything. */
export function watchLogs(deps: Pick<FeedDeps, 'growth'>, of: readonly AccountRef[]): Watch {
  return deps.growth?.watch(of) ?? createTimer();
}
