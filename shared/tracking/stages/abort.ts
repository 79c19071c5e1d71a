/** Last stage of a poll that stopped: records why. */
import type { AccountState } from '../../accounts/accounts.ts';
import { describeProblem } from '../account-state.ts';
import { isUpstreamFailure, recordUpstreamFailure } from '../breaker.ts';
import { IdentityMismatch, type Poll, type PollFailure } from '../poll-context.ts';
import { recordState } from '../record-state.ts';

/** Records the failure in the account and, if upstream caused it, in the state of the region. */
export async function abort(
  poll: Poll,
  cause: PollFailure | IdentityMismatch,
): Promise<{ readonly state: AccountState; readonly problem: string }> {
  const { deps, account, progress } = poll;
  const outcome = 'failed';
  const status = { lastPollAt: poll.context.startedAt };
  if (cause instanceof IdentityMismatch) {
    const { pinned: expectedId, id: actualId } = cause.identity;
    const result = { kind: 'mismatch', expectedId, actualId } as const;
    return { state: await recordState(poll, { result, outcome, status }), problem: cause.message };
  }
  const { problem, accepted } = cause;
  if (progress.upstream && progress.pages === 0 && isUpstreamFailure(problem)) {
    const failure = { at: deps.now(), reason: problem.message };
    progress.upstream = await recordUpstreamFailure(deps, account, failure, progress.upstream);
  }
  const result = { kind: 'failed', problem, accepted } as const;
  const state = await recordState(poll, { result, outcome, status });
  return { state, problem: describeProblem(problem, account.region) };
}
