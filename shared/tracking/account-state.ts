/** What a poll's result means for the account: its state, what is announced of it, and when it is polled next. Pure. */
import type { EventDraft } from '../events/event.ts';
import { OrderingError } from '../ordering/errors.ts';
import type { Account, AccountState, Status } from './accounts.ts';
import type { Absence, Ruling } from './quarantine.ts';

/** How a poll ended, as far as the account is concerned. */
export type PollResult =
  /**
   * Everything was seen and committed, but for the few entries that can't be read if there is a `problem`.
   * `baselinedWith`: this poll completed the baseline, with so many open jobs.
   * `absence`: what jobs are missing after it, and what follows (rule 10).
   */
  | {
      readonly kind: 'good';
      readonly problem?: unknown;
      readonly baselinedWith?: number;
      readonly absence?: { readonly counts: Absence; readonly ruling: Ruling };
    }
  /** Something could not be seen or committed. `accepted`: the service answered with these credentials all the same. */
  | { readonly kind: 'failed'; readonly problem: unknown; readonly accepted: boolean }
  /** The credentials belong to another account than the pinned one (rule 9). */
  | { readonly kind: 'mismatch'; readonly expectedId: number; readonly actualId: number };

/** The account's next state, with the events that belong into the same transaction. Times are epoch ms. */
export interface Transition {
  readonly state: AccountState;
  readonly consecutiveFailures: number;
  /** account.poll_failing was said, and its recovery was not. */
  readonly alarmed: boolean;
  /** Why the poll failed or could not see everything, in a sentence. */
  readonly problem: string | undefined;
  /** Negative verdicts are held back since then; null when they are not (rule 10). */
  readonly quarantinedAt: number | null;
  /** Null: not until an operator acts. */
  readonly nextPollAt: number | null;
  readonly events: readonly EventDraft[];
}

/** Polls are at most this far apart while they fail (rule 11), unless their interval is longer. */
const MAX_BACK_OFF_SECONDS = 900;
/** A service that asks to be left alone for longer than this has lost its mind or its clock; it is asked again all the same. */
const MAX_ASKED_MS = 86_400_000;
/** A turn that would come sooner than this part of the interval after a poll is left out. */
const LEAST_GAP = 0.1;

/** The kinds of faults that mean: these credentials are no longer good. */
const REFUSALS: ReadonlySet<string> = new Set(['credentials_rejected', 'unauthorized']);

/** Whether a fault means that the credentials are no longer good, so that nothing more should be asked with them. */
export function isRefusal(problem: unknown): boolean {
  return problem instanceof OrderingError && REFUSALS.has(problem.kind);
}

/** A fault in one sentence fit for an operator: the ordering client's errors never hold secrets or payloads. */
export function sentence(problem: unknown): string {
  return problem instanceof Error ? problem.message : 'The poll failed.';
}

/**
 * The transition after a poll that began at `startedAt` and ends at `now`. Broken credentials are announced at once, other
 * failures when `failuresBeforeAlarm` polls in a row failed; recovery from either is announced once it was seen.
 */
export function transition(
  result: PollResult,
  before: {
    readonly status: Pick<Status, 'state' | 'consecutiveFailures' | 'alarmed' | 'quarantinedAt'>;
    readonly account: Pick<Account, 'pollIntervalSeconds'>;
    readonly baselined: boolean;
    readonly failuresBeforeAlarm: number;
    /** The service fails for the whole region: that is announced once, and not for each account (rule 12). */
    readonly regionFails?: boolean;
    /** Where in its interval the account has its turns: see {@link turnFrom}. */
    readonly phase: number;
  },
  startedAt: number,
  now: number,
): Transition {
  const { status, account, phase } = before;
  const intervalMs = account.pollIntervalSeconds * 1000;
  /** The last turn until so long after this poll, or until a tenth of the interval later: this poll may have been late. */
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
        problem: result.problem === undefined ? undefined : sentence(result.problem),
        quarantinedAt,
        nextPollAt: turnAfter(intervalMs),
        events,
      };
    }
    case 'mismatch': {
      const { expectedId, actualId } = result;
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
      const problem = sentence(result.problem);
      const regionFails = before.regionFails === true;
      // Of a region that fails only a few accounts are polled as it is, and all shall be when it is back.
      const doublings = regionFails ? 0 : Math.min(consecutiveFailures - 1, 10);
      const backOffMs = Math.min(
        intervalMs * 2 ** doublings,
        Math.max(intervalMs, MAX_BACK_OFF_SECONDS * 1000),
      );
      const retryAfterMs = result.problem instanceof OrderingError ? (result.problem.retryAfterMs ?? 0) : 0;
      const asked = Math.min(retryAfterMs, MAX_ASKED_MS);
      const refused = isRefusal(result.problem);
      // Nothing but an answer proves that they are good again: a failure before it tells nothing of them.
      const rejected = refused || (wereRejected && !result.accepted);
      const failing = !rejected && consecutiveFailures >= before.failuresBeforeAlarm;
      const alarmed = status.alarmed || (failing && !regionFails);
      if (refused && !wereRejected) {
        events.push({ type: 'account.credentials_rejected', time: now, data: { reason: problem } });
      }
      if (wereRejected && !rejected) {
        events.push({ type: 'account.credentials_accepted', time: now, data: {} });
      }
      if (alarmed && !status.alarmed) {
        const data = { consecutiveFailures, reason: problem };
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
 * An account's first turn at or after an instant (epoch ms). Turns are an interval apart, from a phase (0 to 1) on that is
 * the account's own, so accounts are spread over their interval however they came to be registered, and after whatever
 * made them all wait for the same time.
 */
export function turnFrom(at: number, intervalMs: number, phase: number): number {
  const first = Math.floor(phase * intervalMs);
  return first + Math.ceil((at - first) / intervalMs) * intervalMs;
}

/** Since when negative verdicts are held back after a good poll; adds what is to be announced of that. */
function quarantine(
  absence: { readonly counts: Absence; readonly ruling: Ruling } | undefined,
  since: number | null,
  now: number,
  events: EventDraft[],
): number | null {
  if (absence?.ruling === 'quarantine' && since === null) {
    const { listed: openJobs, suspected, contradictory, announced } = absence.counts;
    const data = { openJobs, suspected, contradictory, announced };
    events.push({ type: 'account.quarantined', time: now, data });
    return now;
  }
  // Not while it is open whether they are back.
  if (absence?.ruling === 'clear' && since !== null) {
    events.push({ type: 'account.resumed', time: now, data: { was: 'quarantined', by: 'itself' } });
    return null;
  }
  return since;
}
