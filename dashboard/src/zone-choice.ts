/** The chosen time zone, kept in this browser. */
import { localStore } from './storage.ts';
import { toZone } from './zone.ts';

const KEY = 'jobwire.zone';
/** The window. The type without those of the browser, for the tests. */
const page = globalThis as unknown as EventTarget;
const listeners = new Set<() => void>();
let choice: string | undefined;

/** Returns the choice: `viewer`, `utc`, or the id of a region. */
export function getZoneChoice(): string {
  choice ??= localStore.getItem(KEY) ?? 'viewer';
  return choice;
}

/** Stores a choice. */
export function setZoneChoice(next: string): void {
  choice = next;
  localStore.setItem(KEY, next);
  for (const listener of listeners) listener();
}

/** Calls a function after each change of the choice, also in other tabs. Returns a function that ends this. */
export function subscribeToZone(listener: () => void): () => void {
  const onStorage = (event: Event & { readonly key?: string | null }): void => {
    if (event.key !== KEY) return;
    choice = undefined;
    listener();
  };
  listeners.add(listener);
  page.addEventListener('storage', onStorage);
  return () => {
    listeners.delete(listener);
    page.removeEventListener('storage', onStorage);
  };
}

/** Returns the IANA name of the chosen zone. */
export const getZone = (): string => toZone(getZoneChoice());
