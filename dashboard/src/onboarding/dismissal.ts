/** Whether the checklist on the Now page is dismissed. Stored in this browser only. */
import { useSyncExternalStore } from 'react';
import { localStore } from '../storage.ts';

const STORAGE_KEY = 'jobwire.checklist';
const listeners = new Set<() => void>();

function subscribe(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export const useDismissed = (): boolean =>
  useSyncExternalStore(subscribe, () => localStore.getItem(STORAGE_KEY) === 'dismissed');

export function setDismissed(dismissed: boolean): void {
  if (dismissed) localStore.setItem(STORAGE_KEY, 'dismissed');
  else localStore.removeItem(STORAGE_KEY);
  for (const listener of listeners) listener();
}
