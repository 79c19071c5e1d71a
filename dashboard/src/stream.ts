/**
 * The live events: one stream for the whole page. It is read with fetch, because EventSource cannot send the key in a header.
 * It resumes at its cursor and marks gaps. Events arrive in feed order, each once. While the page is hidden for minutes, the
 * stream is closed to save costs.
 */

import { ApiError, type Client } from '../../client/index.ts';
import type { JobEvent } from '../../shared/events/event.ts';
import { type Backoff, backoff, type Jitter, sleep, withJitter } from '../../shared/retry.ts';
import { getRetryAfterMs, toErrorMessage } from './api.ts';

/** A received event. */
export interface EventRow {
  readonly kind: 'event';
  /** Ascending row number. */
  readonly number: number;
  readonly event: JobEvent;
  /** Time of receipt (epoch ms); `null` for events from before the page was opened. */
  readonly receivedAt: number | null;
}

/** Events are missing here, because they expired or the log was restored from a backup. */
export interface GapRow {
  readonly kind: 'gap';
  readonly number: number;
  readonly reason: string;
}

/** State of the connection. */
export type Connection =
  | { readonly phase: 'connecting' }
  | { readonly phase: 'live' }
  /** Reconnecting with increasing delays. `since`: epoch ms. */
  | { readonly phase: 'lost'; readonly since: number; readonly failureReason: string };

/** State of the stream; a new object after each change. */
export interface StreamState {
  readonly connection: Connection;
  /** The latest rows, oldest first, without gaps except at gap rows. */
  readonly rows: readonly (EventRow | GapRow)[];
  /** Number of the latest row, including gaps. */
  readonly count: number;
  /** Whether events from before the page was opened are loaded. */
  readonly loaded: boolean;
}

/** The live events of a session. */
export interface EventStream {
  getState(): StreamState;
  /** Calls `listener` after changes of the state, at most ten times a second. */
  subscribe(listener: () => void): () => void;
  /** Calls `listener` with batches of new events, without those from before the page was opened. */
  onEvents(listener: (events: readonly JobEvent[]) => void): () => void;
  /** Closes the stream for good. */
  stop(): void;
}

/** Maximum number of rows. */
export const MAX_ROWS = 5_000;
/** Number of events per region to load from before the page was opened. */
const EARLIER_EVENTS = 200;
/** Minimum interval between notifications of listeners. */
const FLUSH_MS = 100;
/** Time after which the stream of a hidden page is suspended. */
const SUSPEND_MS = 5 * 60_000;
const RETRY_MS: Backoff = { first: 500, max: 15_000 };
const RETRY_JITTER: Jitter = { least: 0.75, range: 0.5 };

/** Visibility of the page. */
export interface Visibility {
  hidden(): boolean;
  /** Whether the user has left the page: it may be in the back/forward cache, where a stream would keep its connection. */
  left(): boolean;
  /** Calls `listener` on each change, until the returned function is called. */
  onChange(listener: () => void): () => void;
}

/** Opens the stream: first earlier events, then all that follow. */
export function createEventStream(
  api: Client,
  visibility: Visibility,
  now: () => number = Date.now,
): EventStream {
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
    if (visibility.left()) {
      suspension.abort();
    } else if (visibility.hidden()) {
      suspendTimer = setTimeout(() => suspension.abort(), SUSPEND_MS);
    } else if (suspension.signal.aborted) {
      suspension = new AbortController();
      wake?.();
    }
  }

  /** Resolves when the page is visible again, or the stream is stopped. */
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
    row: { kind: 'event'; event: JobEvent; receivedAt: number | null } | { kind: 'gap'; reason: string },
  ) {
    count += 1;
    waiting.push({ ...row, number: count });
    flushing ??= setTimeout(flush, FLUSH_MS);
  }

  function flush(): void {
    clearTimeout(flushing);
    flushing = undefined;
    if (waiting.length === 0) return;
    const added = waiting;
    waiting = [];
    const rows = [...state.rows, ...added];
    set({ rows: rows.length > MAX_ROWS ? rows.slice(-MAX_ROWS) : rows, count });
    const events = added.flatMap((row) =>
      row.kind === 'event' && row.receivedAt !== null ? [row.event] : [],
    );
    if (events.length > 0) for (const listener of eventListeners) listener(events);
  }

  /** Loads the latest earlier events and the cursor after them. */
  async function loadEarlier(signal: AbortSignal): Promise<void> {
    const params = { query: { last: EARLIER_EVENTS, limit: 1000 } };
    const page = await api.get('/v1/events', { params, signal });
    for (const event of sortByTime(page.events)) add({ kind: 'event', event, receivedAt: null });
    cursor = page.next;
    flush();
    set({ loaded: true });
  }

  /** Reads until the connection ends. Resolves then, because the server closes streams after some minutes. */
  async function follow(signal: AbortSignal): Promise<void> {
    const suspended = suspension.signal;
    try {
      const messages = api.stream('/v1/events/stream', {
        params: { query: { after: cursor } },
        signal: AbortSignal.any([signal, suspended]),
        onOpen: () => set({ connection: { phase: 'live' } }),
      });
      for await (const message of messages) {
        cursor = message.cursor;
        if (message.event === null) continue;
        add({ kind: 'event', event: JSON.parse(message.event) as JobEvent, receivedAt: now() });
      }
    } catch (cause) {
      if (!suspended.aborted) throw cause;
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
        // A proxy may close each stream at once.
        if (now() - began < RETRY_MS.first) await sleep(RETRY_MS.first, signal);
      } catch (cause) {
        if (signal.aborted) return;
        if (state.connection.phase === 'live') failures = 0;
        failures += 1;
        if (cause instanceof ApiError && cause.kind === 'cursor-gone') {
          const { restored, earliest } = cause.problem;
          const place = restored ?? earliest;
          cursor = typeof place === 'string' ? place : undefined;
          add({ kind: 'gap', reason: cause.message });
          if (failures === 1) continue;
        }
        const since = state.connection.phase === 'lost' ? state.connection.since : now();
        set({ connection: { phase: 'lost', since, failureReason: toErrorMessage(cause) } });
        const pause = backoff(failures - 1, RETRY_MS);
        await sleep(
          Math.max(getRetryAfterMs(cause) ?? 0, withJitter(pause, RETRY_JITTER, Math.random())),
          signal,
        );
      }
    }
  }

  const off = visibility.onChange(onVisibilityChange);
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
 * Sorts the events of several logs by time, and keeps the order within each log: one poll does not always number its events
 * by the time of the responses.
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
