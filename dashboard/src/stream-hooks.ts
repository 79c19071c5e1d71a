/** The stream and the clock, for components. */
import { useQueryClient } from '@tanstack/react-query';
import { createContext, useContext, useEffect, useRef, useSyncExternalStore } from 'react';
import { typeMatches } from '../../shared/events/types.ts';
import type { EventStream, StreamState, Visibility } from './stream.ts';

export const StreamContext = createContext<EventStream | null>(null);

/** The stream of the session. */
export function useStream(): EventStream {
  const stream = useContext(StreamContext);
  if (!stream) throw new Error('There is no stream here.');
  return stream;
}

/** What the page knows of the stream, drawn anew with each change. */
export function useStreamState(): StreamState {
  const stream = useStream();
  return useSyncExternalStore(stream.subscribe, stream.getState);
}

/** How the connection is; drawn anew only when that changes. */
export function useConnection(): StreamState['connection'] {
  const stream = useStream();
  return useSyncExternalStore(stream.subscribe, () => stream.getState().connection);
}

/**
 * Has queries asked again when events of these types come (patterns such as `job.*`), at most once in `everyMs`: at once,
 * and once more after the last. Only queries that are on screen ask.
 */
export function useRefresh(
  types: readonly string[],
  queryKeys: readonly (readonly unknown[])[],
  everyMs = 2_000,
): void {
  const stream = useStream();
  const client = useQueryClient();
  const wanted = useRef({ types, queryKeys });
  wanted.current = { types, queryKeys };
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    let last = 0;
    const refresh = (): void => {
      timer = undefined;
      last = Date.now();
      for (const queryKey of wanted.current.queryKeys) void client.invalidateQueries({ queryKey });
    };
    const off = stream.onEvents((events) => {
      if (timer !== undefined || !events.some(({ type }) => typeMatches(type, wanted.current.types))) return;
      timer = setTimeout(refresh, Math.max(0, last + everyMs - Date.now()));
    });
    return () => {
      off();
      clearTimeout(timer);
    };
  }, [stream, client, everyMs]);
}

/** Tabs that are behind others, windows that are minimized, and screens that are locked are hidden. */
export const documentVisibility: Visibility = {
  hidden: () => document.hidden,
  onChange(listener) {
    document.addEventListener('visibilitychange', listener);
    return () => document.removeEventListener('visibilitychange', listener);
  },
};

const TICK_MS = 1_000;
const clockListeners = new Set<() => void>();
let timer: ReturnType<typeof setInterval> | undefined;

/** Tells of each second that passes. */
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

/** The time in steps (epoch ms): whoever uses it is drawn anew with each step. */
export function useNow(stepMs = TICK_MS): number {
  return useSyncExternalStore(subscribeToClock, () => Math.floor(Date.now() / stepMs) * stepMs);
}
