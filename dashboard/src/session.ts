/** The session: an API key, stored for this tab only (of a wall display: in the browser) and sent in a header only, or a user's (`user-session.ts`). */
import { createContext, useContext } from 'react';
import type { CurrentKey } from '../../client/index.ts';
import type { Role } from '../../shared/api/key-input.ts';
import { localStore, sessionStore } from './storage.ts';

export type { CurrentKey };

/** A signed-in session. */
export interface Session {
  readonly key: CurrentKey;
  /** Reports whether the key's role includes `role`. */
  hasRole(role: Role): boolean;
  /** Whether the key has access to all accounts. */
  readonly hasAllAccounts: boolean;
  /** Deletes the key or ends the user's session, and shows the sign-in page, with `reason` if given. */
  signOut(reason?: string): void;
}

const STORAGE_KEY = 'jobwire.key';
/** Entries of the command palette that were chosen. They are deleted with the key. */
export const RECENT_KEY = 'jobwire.recent';
const ROLES: readonly Role[] = ['read', 'operate', 'admin'];

/** Stores the key in the tab's session storage. */
export const keyStore = {
  read: (): string | null => sessionStore.getItem(STORAGE_KEY),
  save: (key: string): void => sessionStore.setItem(STORAGE_KEY, key),
  clear: (): void => {
    sessionStore.removeItem(STORAGE_KEY);
    sessionStore.removeItem(RECENT_KEY);
  },
};

const WALL_STORAGE_KEY = 'jobwire.wall';

/** Stores the key of a paired wall display in the browser, so that it survives a restart of the screen. */
export const wallKeyStore = {
  read: (): string | null => localStore.getItem(WALL_STORAGE_KEY),
  save: (key: string): void => localStore.setItem(WALL_STORAGE_KEY, key),
  clear: (): void => localStore.removeItem(WALL_STORAGE_KEY),
};

/** Creates the session of a key or user. */
export function toSession(key: CurrentKey, signOut: Session['signOut']): Session {
  return {
    key,
    hasAllAccounts: key.accounts === null,
    signOut,
    hasRole: (role) => ROLES.indexOf(key.role) >= ROLES.indexOf(role),
  };
}

export const SessionContext = createContext<Session | null>(null);

/** Returns the session. Only valid within `SessionContext`. */
export function useSession(): Session {
  const session = useContext(SessionContext);
  if (!session) throw new Error('useSession requires a SessionContext.');
  return session;
}
