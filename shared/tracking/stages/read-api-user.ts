/** Stage of a poll: reads the API user, for accounts that notify this user. */
import type { AccountUser } from '../../ordering/schemas.ts';
import { readIdentity } from '../identity.ts';
import type { Identity, Poll, Session } from '../poll-context.ts';

/** Retry interval of the read after a failure (ms). */
const RETRY_MS = 900_000;

/** Attributes of Status: the account's `ownUserSince` for which the user was read, and the time of the next read. */
export interface ApiUserStatus {
  readonly ownUserSince: number;
  readonly ownUserDueAt: number;
}

/** Result of the read. */
export interface ApiUserRead {
  /** Status attributes to write unless the user is synchronized. */
  readonly status: ApiUserStatus;
  /** User (`null`: unknown upstream), and the identity read after it. Absent if the read failed. */
  readonly answer?: { readonly user: AccountUser | null; readonly identity: Identity };
}

/**
 * Reads the API user if the read is due. Otherwise returns `undefined`.
 *
 * The answer is accepted only if an identity check with the same token follows it (rule 9). A failure does
 * not affect the observation of jobs.
 */
export async function readApiUser(poll: Poll, { client, signal }: Session): Promise<ApiUserRead | undefined> {
  const { startedAt } = poll.context;
  const since = poll.account.ownUserSince;
  if (since === undefined || !poll.baselined || signal.aborted) return undefined;
  const { ownUserSince, ownUserDueAt } = poll.status;
  if (ownUserSince === since && startedAt < (ownUserDueAt ?? 0)) return undefined;
  const status = { ownUserSince: since, ownUserDueAt: startedAt + RETRY_MS };
  try {
    const user = (await client.accountUser(signal)).body ?? null;
    const { tokens } = client.counts;
    const identity = await readIdentity(poll, client);
    return client.counts.tokens === tokens ? { status, answer: { user, identity } } : { status };
  } catch {
    return { status };
  }
}
