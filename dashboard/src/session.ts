/** Who is signed in: an API key, kept for this tab only, and sent in a header only. */
import { createContext, useContext } from 'react';
import type { Role } from '../../shared/api/key-input.ts';

/** What a key may do, as `GET /v1/key` says. */
export interface CurrentKey {
  readonly id: string;
  readonly name: string | null;
  readonly role: Role;
  /** Ids; null: all. */
  readonly accounts: readonly string[] | null;
  readonly expiresAt: string | null;
}

/** Somebody who is signed in. */
export interface Session {
  readonly key: CurrentKey;
  /** Whether the key's role allows what takes this one. */
  may(role: Role): boolean;
  /** Whether the key is for all accounts. */
  readonly forAll: boolean;
  /** Forgets the key, and shows the sign-in, with a sentence where there is something to say. */
  signOut(why?: string): void;
}

const STORAGE_KEY = 'jobwire.key';
const ROLES: readonly Role[] = ['read', 'operate', 'admin'];

/** The key of this tab. */
export const keyStore = {
  read: (): string | null => sessionStorage.getItem(STORAGE_KEY),
  save: (key: string): void => sessionStorage.setItem(STORAGE_KEY, key),
  clear: (): void => sessionStorage.removeItem(STORAGE_KEY),
};

/** A session of a key. */
export function toSession(key: CurrentKey, signOut: Session['signOut']): Session {
  return {
    key,
    forAll: key.accounts === null,
    signOut,
    may: (role) => ROLES.indexOf(key.role) >= ROLES.indexOf(role),
  };
}

export const SessionContext = createContext<Session | null>(null);

/** The session; only below the sign-in. */
export function useSession(): Session {
  const session = useContext(SessionContext);
  if (!session) throw new Error('There is no session here.');
  return session;
}
