/** Derives from a poll's result the account's state, its events, and the time of the next poll. Pure. */

import type { Account, AccountState, Status } from '../accounts/accounts.ts';
import { turnFrom } from '../accounts/accounts.ts';
import type { EventDraft } from '../events/event.ts';
import { OrderingError } from '../ordering/errors.ts';
import { describeLastingFault } from '../ordering/remedies.ts';
import { backoff } from '../retry.ts';
import type { Absence, Ruling } from './quarantine.ts';

/** Result of a poll with regard to the account. */
export type PollResult =
  /**
   * The poll observed and committed everything. With a `problem`, a few entries were unreadable.
   * - `baselinedWith`: number of open jobs, if this poll completed the baseline.
   * - `absence`: jobs missing after the poll, and the ruling on them (rule 10).
   */
  | {
      readonly kind: 'good';
      readonly problem?: unknown;
      readonly baselinedWith?: number;
      readonly absence?: { readonly counts: Absence; readonly ruling: Ruling };
    }
  /**
   * The poll could not observe or commit something.
   * - `accepted`: the upstream API nevertheless answered with these credentials.
   * - `covered`: something was read of every page of the list.
   */
  | {
      readonly kind: 'failed';
      readonly problem: unknown;
      readonly accepted: boolean;
      readonly covered?: boolean;
    }
  /** The credentials belong to another account than the pinned one (rule 9). */
  | { readonly kind: 'mismatch'; readonly expectedId: number; readonly actualId: number };

/** Next state of the account, with the events for the same transaction. Times are epoch ms. */
export interface Transition {
  readonly state: AccountState;
  readonly consecutiveFailures: number;
  /** Whether account.poll_failing was emitted without account.poll_recovered since. */
  readonly alarmed: boolean;
  /** Message: why the poll failed or was incomplete. */
  readonly problem: string | undefined;
  /** Time since which negative verdicts are held back (rule 10). `null` if they are not. */
  readonly quarantinedAt: number | null;
  /** Time of the next poll. `null` if the account waits for an operator. */
  readonly nextPollAt: number | null;
  readonly events: readonly EventDraft[];
}

/** Maximum time between polls while they fail (rules 11 and 12), unless the interval is longer (s). */
const MAX_BACK_OFF_SECONDS = 900;
/** Maximum `Retry-After` that the poller honors (ms). A longer one is an upstream error and is capped. */
const MAX_RETRY_AFTER_MS = 86_400_000;
/**
 * Minimum gap between a poll and the next turn, as a fraction of the interval. An earlier turn is skipped.
 */
const LEAST_GAP = 0.1;

/** Fault kinds that mean that the credentials are no longer valid. */
const REFUSALS: ReadonlySet<string> = new Set(['credentials_rejected', 'unauthorized']);

/**
 * Returns whether a fault means that the credentials are no longer valid. No further request may then use
 * them.
 */
export function isCredentialsRejection(problem: unknown): boolean {
  return problem instanceof OrderingError && REFUSALS.has(problem.kind);
}

/**
 * Returns the message of a fault for operators, with its remedy if a setting or the credentials may have caused
 * it. Errors of the ordering client never contain secrets or payloads.
 */
export function describeProblem(problem: unknown, region: string): string {
  const remedy = problem instanceof OrderingError ? describeLastingFault(region, problem) : undefined;
  if (remedy !== undefined) return remedy;
  return problem instanceof Error ? problem.message : 'The poll failed.';
}

/**
 * Computes the transition after a poll that started at `startedAt` and ends at `now`.
 *
 * Rejected credentials are emitted at once. Other failures are emitted after `failuresBeforeAlarm`
 * consecutive failed polls. Recovery from either is emitted once observed.
 */
export function transition(
  result: PollResult,
  before: {
    readonly status: Pick<Status, 'state' | 'consecutiveFailures' | 'alarmed' | 'quarantinedAt'>;
    readonly account: Pick<Account, 'region' | 'pollIntervalSeconds'>;
    readonly baselined: boolean;
    readonly failuresBeforeAlarm: number;
    /**
     * Whether upstream fails for the whole region. That is emitted once for the region, not for each
     * account (rule 12).
     */
    readonly regionFails?: boolean;
    /** Position of the account's turns within its interval: see {@link turnFrom}. */
    readonly phase: number;
  },
  startedAt: number,
  now: number,
): Transition {
  const { status, account, phase } = before;
  const intervalMs = account.pollIntervalSeconds * 1000;
  /**
   * Returns the last turn before `waitMs` plus a tenth of the interval have passed since the poll's start.
   * The tenth allows for a poll that started late.
   */
  const turnAfter = (waitMs: number): number =>
    turnFrom(startedAt + waitMs - (1 - LEAST_GAP) * intervalMs, intervalMs, phase);
  const wereRejected = status.state === 'credentials_rejected';
  const events: EventDraft[] = [];
  switch (result.kind) {
    case 'good': {
      if (result.baselinedWith !== undefined) {
        events.push({ type: 'account.baselined', time: now, data: { openJobs: result.baselinedWith } });
      }
      if (wereRejected) events.push({ type: 'account.credentials_accepted', time: now, data: {} });
      if (status.alarmed) {
        const data = { failedPolls: status.consecutiveFailures };
        events.push({ type: 'account.poll_recovered', time: now, data });
      }
      const quarantinedAt = quarantine(result.absence, status.quarantinedAt, now, events);
      return {
        state: quarantinedAt === null ? 'tracking' : 'quarantined',
        consecutiveFailures: 0,
        alarmed: false,
        problem: result.problem === undefined ? undefined : describeProblem(result.problem, account.region),
        quarantinedAt,
        nextPollAt: turnAfter(intervalMs),
        events,
      };
    }
    case 'mismatch': {
      const { expectedId, actualId } = result;
      // The response that shows the other account. After the confirmation, the former state is not known.
      if (wereRejected) events.push({ type: 'account.credentials_accepted', time: now, data: {} });
      events.push({ type: 'account.identity_mismatch', time: now, data: { expectedId, actualId } });
      return {
        state: 'identity_mismatch',
        consecutiveFailures: status.consecutiveFailures + 1,
        alarmed: status.alarmed,
        problem: 'The credentials belong to another account.',
        quarantinedAt: status.quarantinedAt,
        nextPollAt: null,
        events,
      };
    }
    case 'failed': {
      const consecutiveFailures = status.consecutiveFailures + 1;
      const reason = describeProblem(result.problem, account.region);
      const regionFails = before.regionFails === true;
      // While a region fails, only a few of its accounts are polled anyway. All must be polled when it
      // recovers. If every page is answered, upstream is not failing.
      const isSteady = regionFails || result.covered === true;
      const doublings = isSteady ? 0 : Math.min(consecutiveFailures - 1, 10);
      const backOffMs = backoff(doublings, {
        first: intervalMs,
        max: Math.max(intervalMs, MAX_BACK_OFF_SECONDS * 1000),
      });
      const retryAfterMs = result.problem instanceof OrderingError ? (result.problem.retryAfterMs ?? 0) : 0;
      const asked = Math.min(retryAfterMs, MAX_RETRY_AFTER_MS);
      const rejectedNow = isCredentialsRejection(result.problem);
      // Only an answer proves that the credentials are valid again. A failure before an answer proves
      // nothing.
      const rejected = rejectedNow || (wereRejected && !result.accepted);
      const problem =
        rejected && !rejectedNow
          ? `${reason.replace(/[^.…]$/, '$&.')} Before that, the ordering API rejected the credentials.`
          : reason;
      const failing = !rejected && consecutiveFailures >= before.failuresBeforeAlarm;
      const alarmed = status.alarmed || (failing && !regionFails);
      if (rejectedNow && !wereRejected) {
        events.push({ type: 'account.credentials_rejected', time: now, data: { reason } });
      }
      if (wereRejected && !rejected) {
        events.push({ type: 'account.credentials_accepted', time: now, data: {} });
      }
      if (alarmed && !status.alarmed) {
        const data = { consecutiveFailures, reason };
        events.push({ type: 'account.poll_failing', time: now, data });
      }
      return {
        state: rejected
          ? 'credentials_rejected'
          : failing || alarmed
            ? 'failing'
            : status.quarantinedAt !== null
              ? 'quarantined'
              : before.baselined
                ? 'tracking'
                : 'baselining',
        consecutiveFailures,
        alarmed,
        problem,
        quarantinedAt: status.quarantinedAt,
        nextPollAt: Math.max(turnAfter(backOffMs), turnFrom(startedAt + asked, intervalMs, phase)),
        events,
      };
    }
  }
}

/**
 * Returns the time since which negative verdicts are held back after a good poll. Adds the resulting event
 * to `events`.
 */
function quarantine(
  absence: { readonly counts: Absence; readonly ruling: Ruling } | undefined,
  since: number | null,
  now: number,
  events: EventDraft[],
): number | null {
  if (absence?.ruling === 'quarantine' && since === null) {
    const { listed: openJobs, suspected, contradictory, reported } = absence.counts;
    const data = { openJobs, suspected, contradictory, reported };
    events.push({ type: 'account.quarantined', time: now, data });
    return now;
  }
  // The quarantine stays while it is unknown whether the jobs are listed again.
  if (absence?.ruling === 'clear' && since !== null) {
    events.push({
      type: 'account.resumed',
      time: now,
      data: { previousState: 'quarantined', by: 'automatic' },
    });
    return null;
  }
  return since;
}
