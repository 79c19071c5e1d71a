/** Stage of a poll: compares the account's identity with the pinned one before anything is committed (rule 9). */
import { readIdentity } from '../identity.ts';
import { type Identity, IdentityMismatch, type Poll, PollFailure, type Session } from '../poll-context.ts';

/**
 * Returns the identity, if it was read. `latest` is an identity read after that of the session. Throws
 * {@link IdentityMismatch} if the credentials belong to another account.
 */
export async function verifyIdentity(
  poll: Poll,
  session: Session,
  latest: Identity | undefined,
): Promise<Identity | undefined> {
  const { client, checkedTokens } = session;
  let identity = latest ?? session.identity;
  // A token renewed during the poll may belong to another account. Then the observations do too.
  if (client.counts.tokens > checkedTokens) {
    identity = await readIdentity(poll, client).catch((problem: unknown) => {
      throw new PollFailure({ problem, accepted: true });
    });
  }
  if (identity && identity.id !== identity.pinned) throw new IdentityMismatch(identity);
  // Before the baseline, the pinned account is the one that was read last.
  if (session.identity && identity?.id !== session.identity.id) {
    throw new PollFailure({ problem: new Error('The credentials changed during the poll.'), accepted: true });
  }
  return identity;
}
