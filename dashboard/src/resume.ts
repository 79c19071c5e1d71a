/** The state of the sign-in, and what it is when the page is loaded. */
import { createClient } from '../../client/index.ts';
import { hasStatus, toErrorMessage } from './api.ts';
import { type CurrentKey, keyStore, wallKeyStore } from './session.ts';
import { resumeUser, SignInError, type UserSession } from './user-session.ts';

/** State of the sign-in. */
export type SignInState =
  | { readonly phase: 'signed in'; readonly by: string | UserSession; readonly own: CurrentKey }
  /** `reason`: why the previous session ended. */
  | { readonly phase: 'signed out'; readonly reason: string | null }
  /** The user is in no group with access. */
  | { readonly phase: 'no access'; readonly reason: string }
  | { readonly phase: 'failed'; readonly error: unknown };

/** Returns the state after the end of a session. Deletes what the tab stored for it, unless it may still exist. */
export function toSignedOut(cause: unknown): SignInState {
  const hasEnded = cause instanceof SignInError || hasStatus(cause, 401) || hasStatus(cause, 403);
  const message = toErrorMessage(cause);
  if (!hasEnded) return { phase: 'failed', error: new Error(message, { cause }) };
  keyStore.clear();
  if (hasStatus(cause, 403)) return { phase: 'no access', reason: message };
  const reason = cause instanceof SignInError ? message : 'Your session has ended. Sign in again.';
  return { phase: 'signed out', reason };
}

/** Resumes the session of the tab, or of the browser. */
export async function resume(): Promise<SignInState> {
  const saved = keyStore.read();
  try {
    const by = saved ?? (await resumeUser());
    if (by === null) {
      keyStore.clear();
      return await resumeWall();
    }
    const key = typeof by === 'string' ? by : by.token;
    return { phase: 'signed in', by, own: await createClient({ url: location.origin, key }).get('/v1/key') };
  } catch (error) {
    if (saved === null) return toSignedOut(error);
    if (!hasStatus(error, 401)) return { phase: 'failed', error };
    keyStore.clear();
    return { phase: 'signed out', reason: 'The saved key is no longer valid. Sign in again.' };
  }
}

/** Whether this page is a wall display: its address says so, or the screen is paired. */
export const isWallDisplay = (): boolean =>
  new URLSearchParams(location.search).has('wall') || wallKeyStore.read() !== null;

/** Resumes a paired wall display. A revoked key is deleted, so that the screen shows a new code. */
async function resumeWall(): Promise<SignInState> {
  const key = wallKeyStore.read();
  if (key === null) return { phase: 'signed out', reason: null };
  try {
    const own = await createClient({ url: location.origin, key }).get('/v1/key');
    const url = new URL(location.href);
    url.searchParams.set('wall', '1');
    history.replaceState(null, '', url);
    return { phase: 'signed in', by: key, own };
  } catch (error) {
    if (!hasStatus(error, 401)) return { phase: 'failed', error };
    wallKeyStore.clear();
    return { phase: 'signed out', reason: 'The key of this wall display was revoked.' };
  }
}
