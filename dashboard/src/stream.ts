/**
 * The live events: one stream for the whole page, read with fetch because a stream with a key needs a header. It resumes
 * where it was, so nothing is missed; where something had to be, it says so. Events come in the order of the feed, each once.
 * While nobody has looked at the page for minutes it rests, for an open stream costs somebody something.
 */

import { createParser } from 'eventsource-parser';
import type { JobEvent } from '../../shared/events/event.ts';
import { type Backoff, backoff, type Jitter, withJitter } from '../../shared/retry.ts';
import { type Api, ApiError, toErrorMessage } from './api.ts';

/** An event as it came. */
export interface EventRow {
  readonly kind: 'event';
  /** Counts up: newer is larger. */
  readonly number: number;
  /** The envelope. */
  readonly event: JobEvent;
  /** When the page got it, epoch ms; null for what was there before it was opened. */
  readonly receivedAt: number | null;
}

/** A place where events are missing: they are no longer kept, or the log was restored from a backup. */
export interface GapRow {
  readonly kind: 'hole';
  readonly number: number;
  readonly reason: string;
}

/** How the connection is. */
export type Connection =
  | { readonly phase: 'connecting' }
  | { readonly phase: 'live' }
  /** Broken off; tried again from time to time. `since`: epoch ms. */
  | { readonly phase: 'lost'; readonly since: number; readonly why: string };

/** What the page knows of the stream; a new object with each change. */
export interface StreamState {
  readonly connection: Connection;
  /** The latest, oldest first; older ones leave, so there is no hole within but where one stands. */
  readonly rows: readonly (EventRow | GapRow)[];
  /** The number of the latest row: how many came since the page was opened, holes among them. */
  readonly count: number;
  /** Whether what was before the page was opened is there. */
  readonly loaded: boolean;
}

/** The live events of a session. */
export interface EventStream {
  getState(): StreamState;
  /** Told after each change of the state, at most ten times a second. */
  subscribe(listener: () => void): () => void;
  /** Told of events as they come, some at a time, not of those from before the page was opened. */
  onEvents(listener: (events: readonly JobEvent[]) => void): () => void;
  /** Ends it. */
  stop(): void;
}

/** How many rows are kept. */
export const MAX_ROWS = 5_000;
/** Events from before the page was opened, of each region. */
const EARLIER_EVENTS = 200;
/** Changes are told so often at most. */
const FLUSH_MS = 100;
/** The service says something every 15 s; a connection that is silent for longer is broken. */
const SILENCE_MS = 40_000;
/** Hidden for so long, the page rests until it is looked at again. */
const SUSPEND_MS = 5 * 60_000;
const RETRY_MS: Backoff = { first: 500, max: 15_000 };
const RETRY_JITTER: Jitter = { least: 0.75, range: 0.5 };

/** Whether the page is looked at. */
export interface Visibility {
  hidden(): boolean;
  /** Told when that changes, until what is returned is called. */
  onChange(listener: () => void): () => void;
}

interface Page {
  readonly events: readonly JobEvent[];
  readonly next: string;
}

/** Begins to read. Rows of before come first, then all that follows them. */
export function createEventStream(api: Api, sight: Visibility, now: () => number = Date.now): EventStream {
  const stopping = new AbortController();
  const listeners = new Set<() => void>();
  const eventListeners = new Set<(events: readonly JobEvent[]) => void>();
  let state: StreamState = { connection: { phase: 'connecting' }, rows: [], count: 0, loaded: false };
  let cursor: string | undefined;
  let waiting: (EventRow | GapRow)[] = [];
  let count = 0;
  let flushing: ReturnType<typeof setTimeout> | undefined;
  let suspension = new AbortController();
  let suspendTimer: ReturnType<typeof setTimeout> | undefined;
  let wake: (() => void) | undefined;

  function onVisibilityChange(): void {
    clearTimeout(suspendTimer);
    if (sight.hidden()) {
      suspendTimer = setTimeout(() => suspension.abort(), SUSPEND_MS);
    } else if (suspension.signal.aborted) {
      suspension = new AbortController();
      wake?.();
    }
  }

  /** Resolves when the page is looked at again, or is ended. */
  async function waitUntilVisible(signal: AbortSignal): Promise<void> {
    set({ connection: { phase: 'connecting' } });
    await new Promise<void>((resolve) => {
      wake = resolve;
      signal.addEventListener('abort', () => resolve(), { once: true });
    });
    wake = undefined;
  }

  function set(change: Partial<StreamState>): void {
    state = { ...state, ...change };
    for (const listener of listeners) listener();
  }

  function add(
    row: { kind: 'event'; event: JobEvent; receivedAt: number | null } | { kind: 'hole'; reason: string },
  ) {
    count += 1;
    waiting.push({ ...row, number: count });
    flushing ??= setTimeout(flush, FLUSH_MS);
  }

  function flush(): void {
    clearTimeout(flushing);
    flushing = undefined;
    if (waiting.length === 0) return;
    const fresh = waiting;
    waiting = [];
    const rows = [...state.rows, ...fresh];
    set({ rows: rows.length > MAX_ROWS ? rows.slice(-MAX_ROWS) : rows, count });
    const events = fresh.flatMap((row) =>
      row.kind === 'event' && row.receivedAt !== null ? [row.event] : [],
    );
    if (events.length > 0) for (const hearer of eventListeners) hearer(events);
  }

  /** The latest events from before, and the place behind them. */
  async function loadEarlier(signal: AbortSignal): Promise<void> {
    const page = await api.get<Page>('/v1/events', { query: { last: EARLIER_EVENTS, limit: 1000 }, signal });
    for (const event of sortByTime(page.events)) add({ kind: 'event', event, receivedAt: null });
    cursor = page.next;
    flush();
    set({ loaded: true });
  }

  /** Reads until the connection ends; resolves then, for the stream of a service ends by itself after some minutes. */
  async function follow(signal: AbortSignal): Promise<void> {
    const silence = new AbortController();
    const resting = suspension.signal;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const heard = (): void => {
      clearTimeout(timer);
      timer = setTimeout(() => silence.abort(), SILENCE_MS);
    };
    try {
      heard();
      const any = AbortSignal.any([signal, silence.signal, resting]);
      const response = await api.open('/v1/events/stream', { query: { after: cursor }, signal: any });
      const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
      if (!reader) return;
      set({ connection: { phase: 'live' } });
      const parser = createParser({
        onEvent({ id, event, data }) {
          cursor = id ?? cursor;
          // Moves the cursor, and holds no event.
          if (event === 'cursor') return;
          add({ kind: 'event', event: JSON.parse(data) as JobEvent, receivedAt: now() });
        },
      });
      for (;;) {
        const { value, done } = await reader.read();
        if (done) return;
        heard();
        parser.feed(value);
      }
    } catch (cause) {
      if (resting.aborted) return;
      if (silence.signal.aborted) throw new Error('Nothing was heard for a while.', { cause });
      throw cause;
    } finally {
      clearTimeout(timer);
    }
  }

  async function run(): Promise<void> {
    const { signal } = stopping;
    let failures = 0;
    while (!signal.aborted) {
      if (suspension.signal.aborted) {
        await waitUntilVisible(signal);
        continue;
      }
      try {
        if (!state.loaded) await loadEarlier(signal);
        const began = now();
        await follow(signal);
        failures = 0;
        // The service ends a stream after minutes; something in between may end each at once.
        if (now() - began < RETRY_MS.first) await sleep(RETRY_MS.first, signal);
      } catch (cause) {
        if (signal.aborted) return;
        if (state.connection.phase === 'live') failures = 0;
        failures += 1;
        if (cause instanceof ApiError && cause.kind === 'cursor-gone') {
          const { restored, earliest } = cause.members;
          const place = restored ?? earliest;
          cursor = typeof place === 'string' ? place : undefined;
          add({ kind: 'hole', reason: cause.message });
          if (failures === 1) continue;
        }
        const since = state.connection.phase === 'lost' ? state.connection.since : now();
        set({ connection: { phase: 'lost', since, why: toErrorMessage(cause) } });
        const asked = cause instanceof ApiError ? (cause.retryAfterSeconds ?? 0) * 1000 : 0;
        const pause = backoff(failures - 1, RETRY_MS);
        await sleep(Math.max(asked, withJitter(pause, RETRY_JITTER, Math.random())), signal);
      }
    }
  }

  const off = sight.onChange(onVisibilityChange);
  onVisibilityChange();
  void run();
  return {
    getState: () => state,
    subscribe(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    onEvents(listener) {
      eventListeners.add(listener);
      return () => eventListeners.delete(listener);
    },
    stop() {
      stopping.abort();
      off();
      clearTimeout(suspendTimer);
      clearTimeout(flushing);
    },
  };
}

/**
 * Events of several logs by time, those of each log in its own order: what one poll saw is not always numbered by the time of
 * the answers that showed it.
 */
function sortByTime(events: readonly JobEvent[]): readonly JobEvent[] {
  const latest = new Map<string, number>();
  return [...events]
    .sort((a, b) => (a.sequence < b.sequence ? -1 : a.sequence > b.sequence ? 1 : 0))
    .map((event) => {
      const at = Math.max(Date.parse(event.time), latest.get(event.source) ?? 0);
      latest.set(event.source, at);
      return { at, event };
    })
    .sort((a, b) => a.at - b.at)
    .map(({ event }) => event);
}

async function sleep(ms: number, signal: AbortSignal): Promise<void> {
  await new Promise<void>((resolve) => {
    const end = (): void => {
      clearTimeout(timer);
      signal.removeEventListener('abort', end);
      resolve();
    };
    const timer = setTimeout(end, ms);
    signal.addEventListener('abort', end);
  });
}
