/** The polls of an account whose polls fail for some time, at the times at which Jobwire schedules them. */
import { type Transition, transition } from '../../shared/tracking/account-state.ts';
import { DEFAULT_TRACKING } from '../../shared/tracking/schedule.ts';

/** A poll. `at`: its start, in seconds. */
export interface SimulatedPoll {
  readonly at: number;
  readonly failed: boolean;
  /** State of the account after the poll. */
  readonly state: Transition['state'];
}

/** Returns the polls until `until`. Polls fail from `from` until `to`. Times are in seconds. */
export function simulateBackOff(
  pollIntervalSeconds: number,
  { from, to, until }: { readonly from: number; readonly to: number; readonly until: number },
): SimulatedPoll[] {
  const account = { region: 'us', pollIntervalSeconds };
  const { failuresBeforeAlarm } = DEFAULT_TRACKING;
  const polls: SimulatedPoll[] = [];
  let status: Pick<Transition, 'state' | 'consecutiveFailures' | 'alarmed' | 'quarantinedAt'> = {
    ...{ state: 'tracking', consecutiveFailures: 0, alarmed: false, quarantinedAt: null },
  };
  for (let at = 0; at < until; ) {
    const failed = at >= from && at < to;
    const result = failed
      ? ({ kind: 'failed', problem: new Error('The list is not readable.'), accepted: true } as const)
      : ({ kind: 'good' } as const);
    const before = { status, account, baselined: true, failuresBeforeAlarm, phase: 0 };
    const next = transition(result, before, at * 1000, at * 1000 + 500);
    polls.push({ at, failed, state: next.state });
    status = next;
    at = (next.nextPollAt ?? Number.POSITIVE_INFINITY) / 1000;
  }
  return polls;
}
