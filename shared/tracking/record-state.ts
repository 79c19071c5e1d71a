/** Records the state of the account at the end of a poll. */
import { type AccountState, schedule } from '../accounts/accounts.ts';
import { addPoll, type PollOutcome } from '../accounts/poll-history.ts';
import { pollPhase, troubledIndexKeys } from '../storage/schema.ts';
import type { Write } from '../storage/table.ts';
import { type PollResult, type Transition, transition } from './account-state.ts';
import { isRegionFailing, isUpstreamFailure } from './breaker.ts';
import type { Poll } from './poll-context.ts';
import type { Attributes } from './poll-writer.ts';

/** End of a poll. */
export interface Ending {
  readonly result: PollResult;
  readonly outcome: PollOutcome;
  /** Further attributes of Status and Head, and writes of the same transaction. */
  readonly status: Attributes;
  readonly head?: Attributes | undefined;
  readonly writes?: readonly Write[];
}

/** Writes the next state in one transaction with its events. Returns the state. */
export async function recordState(poll: Poll, ending: Ending): Promise<AccountState> {
  const { writer, progress } = poll;
  const { head, writes = [] } = ending;
  const now = poll.deps.now();
  const next = nextState(poll, ending.result, now);
  const status = statusAttributes(poll, ending, next, now);
  if (next.events.length > 0 || head || writes.length > 0) {
    await writer.commit({ events: next.events, writes, status, head });
    progress.accountEvents = next.events.map(({ type }) => type);
  } else {
    await writer.writeStatus(status);
  }
  return next.state;
}

/** Whether an account in this state is not observed, or not completely. */
const isTroubled = (state: AccountState): boolean => state !== 'tracking' && state !== 'baselining';

function nextState(poll: Poll, result: PollResult, now: number): Transition {
  const { status, account, baselined, deps, progress, context } = poll;
  const { upstream } = progress;
  const isFault = result.kind === 'failed' && isUpstreamFailure(result.problem);
  return transition(
    result,
    {
      ...{ status, account, baselined },
      failuresBeforeAlarm: deps.settings.failuresBeforeAlarm,
      regionFails: isFault && upstream !== undefined && isRegionFailing(upstream, now),
      phase: pollPhase(account),
    },
    context.startedAt,
    now,
  );
}

function statusAttributes(
  { account, status, statusItem, context, progress, writer }: Poll,
  ending: Ending,
  next: Transition,
  now: number,
): Attributes {
  const holds = [...progress.holds].flatMap(([kind, until]) => (until > now ? [`${kind}:${until}`] : []));
  const changed = {
    ...ending.status,
    state: next.state,
    consecutiveFailures: next.consecutiveFailures,
    alarmed: next.alarmed,
    problem: next.problem,
    quarantinedAt: next.quarantinedAt ?? undefined,
    holds: holds.length > 0 ? holds : undefined,
    ...schedule(account, next.nextPollAt),
    ...troubledIndexKeys(account, isTroubled(next.state)),
  };
  const past = {
    startedAt: context.startedAt,
    ms: now - context.startedAt,
    outcome: ending.outcome,
    requests: progress.counts?.requests ?? 0,
    events: writer.events + next.events.length,
    problem: next.problem ?? null,
  };
  return { ...changed, ...addPoll(status.polls, past, { ...statusItem, ...changed }) };
}
