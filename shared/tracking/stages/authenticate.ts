/** Stage of a poll: gets a token, and checks the account's identity if that is due. */
import { OrderingError } from '../../ordering/errors.ts';
import { hashToken, readIdentity } from '../identity.ts';
import { type Poll, PollFailure, RESERVE_MS, type Session } from '../poll-context.ts';

/** Maximum time between two comparisons of the account's identity (ms). Every new token also triggers one. */
const IDENTITY_CHECK_MS = 600_000;

/**
 * Connects to the ordering API. Throws {@link PollFailure} if there is no token, or if the identity cannot
 * be read: no event may be emitted while the owner of the jobs is unknown.
 */
export async function authenticate(poll: Poll): Promise<Session> {
  const { deps, deadline } = poll;
  const connected = await connect(poll).catch((problem: unknown) => {
    throw new PollFailure({ problem, accepted: false });
  });
  return {
    ...connected,
    checkedTokens: Math.max(1, connected.client.counts.tokens),
    signal: AbortSignal.timeout(Math.max(1, deadline - RESERVE_MS - deps.now())),
  };
}

async function connect(poll: Poll): Promise<Pick<Session, 'client' | 'identity'>> {
  const { deps, account, status, baselined, progress, context } = poll;
  const { client, tokens, ownAddress } = await deps.connect(account, progress.holds);
  if (ownAddress) progress.upstream = undefined;
  progress.counts = client.counts;
  const token = await tokens.get().catch((fault: unknown) => {
    if (fault instanceof OrderingError) progress.tokenFault = fault;
    throw fault;
  });
  const checkedAt = status.identityCheckedAt;
  // The poll for which the token was issued may have ended without a check.
  const isChecked = !token.fresh && status.tokenHash === hashToken(token.value);
  const isRecent = checkedAt !== null && context.startedAt - checkedAt < IDENTITY_CHECK_MS;
  const identity = baselined && isChecked && isRecent ? undefined : await readIdentity(poll, client);
  return { client, identity };
}
