/** Report of one poll, written as the wide log line. */
import type { AccountState } from '../accounts/accounts.ts';
import type { EventDraft } from '../events/event.ts';
import type { ErrorCounts } from '../ordering/client.ts';
import type { Poll } from './poll-context.ts';

/** Result of one poll. Contains only ids and counts. */
export interface PollReport {
  readonly region: string;
  readonly account: string;
  readonly outcome: /** The poll read everything and committed all of it. */
    | 'complete'
    /** The poll left work for the next one, because pages failed or time ran out. */
    | 'partial'
    /** The poll could read nothing. */
    | 'failed'
    /** Superseded: a newer poll committed first. */
    | 'fenced'
    /** Not polled: the account is unknown, paused, stopped, or stored by newer code. */
    | 'skipped';
  readonly state?: AccountState;
  readonly pages: number;
  readonly openJobs: number;
  /**
   * Number of unreadable entries in the list (rule 2). `unreadInSweep` counts those among the newest jobs
   * that the sweep reads together with closed jobs (rule 8).
   */
  readonly unread: number;
  readonly unreadInSweep: number;
  readonly changedJobs: number;
  readonly events: number;
  readonly detailFetches: number;
  /** Number of detail fetches still owed, because they were not answered or exceed the budget. */
  readonly fetchesLeft: number;
  /** Number of delisted jobs whose outcome is not yet known. Absent if the list was not read to its end. */
  readonly unresolved?: number;
  /** Number of requests to the ordering API, without token requests. */
  readonly requests: number;
  /** Number of those requests that were retries. */
  readonly retries: number;
  /** Number of upstream faults by kind, including those of requests that were retried. */
  readonly upstreamErrors: ErrorCounts;
  /** Types of the events about the account itself. */
  readonly accountEvents: readonly EventDraft['type'][];
  /** Whether an outage of the whole region was emitted and, as far as this poll knows, is not resolved. */
  readonly outage: boolean;
  readonly ms: number;
  readonly problem?: string;
}

/** The part of a report that does not depend on the request for the poll. */
export type PollSummary = Omit<PollReport, 'region' | 'account' | 'ms'>;

const NOTHING = {
  pages: 0,
  openJobs: 0,
  unread: 0,
  unreadInSweep: 0,
  changedJobs: 0,
  events: 0,
  detailFetches: 0,
  fetchesLeft: 0,
  requests: 0,
  retries: 0,
  upstreamErrors: {},
  accountEvents: [],
  outage: false,
} as const;

/** Returns the report of an account that is not polled. */
export function reportSkipped(problem: string): PollSummary {
  return { ...NOTHING, outcome: 'skipped', problem };
}

/** Returns the report of a poll, with its progress so far. */
export function reportPoll(
  { status, progress, writer }: Poll,
  outcome: PollReport['outcome'],
  results: Partial<PollSummary> = {},
): PollSummary {
  const { counts, tokenFault, pages, accountEvents, upstream } = progress;
  return {
    ...NOTHING,
    openJobs: status.openJobs ?? 0,
    pages,
    events: writer.events,
    requests: counts?.requests ?? 0,
    retries: counts?.retries ?? 0,
    upstreamErrors: tokenFault ? { [tokenFault.kind]: 1 } : { ...counts?.errors },
    accountEvents,
    outage: typeof upstream?.openedAt === 'number',
    outcome,
    ...results,
  };
}
