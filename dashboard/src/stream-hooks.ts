/** React hooks for the stream and the clock. */
import { useQueryClient } from '@tanstack/react-query';
import { createContext, useContext, useEffect, useRef, useSyncExternalStore } from 'react';
import { isRelevant, refreshQueries } from './refresh.ts';
import type { EventStream, StreamState, Visibility } from './stream.ts';

export const StreamContext = createContext<EventStream | null>(null);

/** Returns the stream of the session. */
export function useStream(): EventStream {
  const stream = useContext(StreamContext);
  if (!stream) throw new Error('StreamContext is missing.');
  return stream;
}

/** Returns the state of the stream; renders on each change. */
export function useStreamState(): StreamState {
  const stream = useStream();
  return useSyncExternalStore(stream.subscribe, stream.getState);
}

/** Returns the state of the connection; renders only when it changes. */
export function useConnection(): StreamState['connection'] {
  const stream = useStream();
  return useSyncExternalStore(stream.subscribe, () => stream.getState().connection);
}

/**
 * Refetches active queries when events of these types arrive (patterns such as `job.*`): immediately, then at most once per
 * `everyMs`. With `account`: only on events about it or a region.
 */
export function useRefresh(
  types: readonly string[],
  queryKeys: readonly (readonly unknown[])[],
  { everyMs = 2_000, account }: { readonly everyMs?: number; readonly account?: string } = {},
): void {
  const stream = useStream();
  const client = useQueryClient();
  const subscription = useRef({ types, queryKeys, account });
  subscription.current = { types, queryKeys, account };
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    let last = 0;
    const refresh = (): void => {
      timer = undefined;
      last = Date.now();
      refreshQueries(client, subscription.current.queryKeys);
    };
    const off = stream.onEvents((events) => {
      const { types, account } = subscription.current;
      if (timer !== undefined || !events.some((event) => isRelevant(event, types, account))) return;
      timer = setTimeout(refresh, Math.max(0, last + everyMs - Date.now()));
    });
    return () => {
      off();
      clearTimeout(timer);
    };
  }, [stream, client, everyMs]);
}

const PAGE_EVENTS = ['pagehide', 'pageshow'];
let isLeft = false;

/** Visibility of the document: background tabs, minimized windows and locked screens are hidden. */
export const documentVisibility: Visibility = {
  hidden: () => document.hidden,
  left: () => isLeft,
  onChange(listener) {
    const onPage = ({ type }: Event) => {
      isLeft = type === 'pagehide';
      listener();
    };
    document.addEventListener('visibilitychange', listener);
    for (const type of PAGE_EVENTS) window.addEventListener(type, onPage);
    return () => {
      document.removeEventListener('visibilitychange', listener);
      for (const type of PAGE_EVENTS) window.removeEventListener(type, onPage);
    };
  },
};

const TICK_MS = 1_000;
const clockListeners = new Set<() => void>();
let timer: ReturnType<typeof setInterval> | undefined;

/** Calls `listener` every second. Returns a function that unsubscribes. */
export function subscribeToClock(listener: () => void): () => void {
  clockListeners.add(listener);
  timer ??= setInterval(() => {
    for (const tick of clockListeners) tick();
  }, TICK_MS);
  return () => {
    clockListeners.delete(listener);
    if (clockListeners.size > 0) return;
    clearInterval(timer);
    timer = undefined;
  };
}

/** Returns the current time (epoch ms), rounded down to `stepMs`; renders on each step. */
export function useNow(stepMs = TICK_MS): number {
  return useSyncExternalStore(subscribeToClock, () => Math.floor(Date.now() / stepMs) * stepMs);
}
