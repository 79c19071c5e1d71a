/** Inputs and progress of one poll, shared by its stages. */
import type { Account, Status } from '../accounts/accounts.ts';
import type { Connection } from '../accounts/connect.ts';
import type { EventDraft } from '../events/event.ts';
import type { EventLog } from '../log/log.ts';
import type { Holds, OrderingClient, OrderingCounts } from '../ordering/client.ts';
import type { OrderingError } from '../ordering/errors.ts';
import type { AccountUser } from '../ordering/schemas.ts';
import type { AccountRef } from '../storage/schema.ts';
import type { Item, Table } from '../storage/table.ts';
import type { BreakerState } from './breaker.ts';
import type { ApplyContext } from './detail-fetches.ts';
import type { PollGroups } from './groups.ts';
import type { Tracked } from './observation.ts';
import type { Payments } from './payments.ts';
import type { PollWriter } from './poll-writer.ts';
import type { TrackingSettings } from './schedule.ts';

/** Dependencies of a poll. */
export interface PollDeps {
  readonly table: Table;
  readonly log: EventLog;
  readonly settings: TrackingSettings;
  /** Current time in epoch ms. */
  readonly now: () => number;
  readonly newId: () => string;
  /** Projection version to use instead of this code's version, for upgrade tests. */
  readonly projectionVersion?: number;
  /**
   * Connects to the ordering API with the account's credentials. The client respects `holds`, and adds to
   * them. Throws if the credentials are unavailable.
   */
  readonly connect: (account: Account, holds?: Holds) => Promise<Connection>;
  /**
   * Updates the recipient that represents the API user (`null`: there is none). `since` is the account's
   * `ownUserSince`: if it has changed meanwhile, nothing is written.
   */
  readonly syncApiUser: (
    deps: Pick<PollDeps, 'table' | 'now' | 'newId'>,
    ref: AccountRef,
    since: number,
    user: AccountUser | null,
  ) => Promise<unknown>;
}

/** One poll: the state of the account at its start, and its progress. Times are epoch ms. */
export interface Poll {
  readonly deps: PollDeps;
  readonly account: Account;
  readonly status: Status;
  /** Stored item of `status`. */
  readonly statusItem: Item;
  /** Time at which the process may be stopped. */
  readonly deadline: number;
  /** Whether the account has a baseline. Without one, no events about jobs are emitted (rule 5). */
  readonly baselined: boolean;
  readonly tracked: Tracked;
  readonly context: ApplyContext;
  readonly groups: PollGroups;
  /** Stored payments. `undefined` if they were never read. */
  readonly payments: Payments | undefined;
  readonly writer: PollWriter;
  readonly progress: Progress;
}

/** Progress of a poll, for its report. */
export interface Progress {
  /** State of the region's upstream API. `undefined`: the account uses another one. */
  upstream: BreakerState | undefined;
  /** Counters of the poll's client. `undefined` before the client exists. */
  counts?: OrderingCounts;
  /** Kinds of requests held back by a Retry-After, of this poll and earlier ones. */
  readonly holds: Holds;
  /** Error of the initial token request. */
  tokenFault?: OrderingError;
  /** Number of pages of the list of which something was read. */
  pages: number;
  /** Types of the emitted events about the account itself. */
  accountEvents: readonly EventDraft['type'][];
}

/** A connection to the ordering API for the duration of a poll. */
export interface Session {
  readonly client: OrderingClient;
  /** Aborts before the poll's deadline. */
  readonly signal: AbortSignal;
  /**
   * Number of tokens known to belong to this account: the first one, and every one issued before the
   * identity check.
   */
  readonly checkedTokens: number;
  /** Identity, if it was read at the start of the poll. */
  readonly identity: Identity | undefined;
}

/**
 * Account of the current credentials, and the account pinned at the baseline. Both are equal before there
 * is a baseline.
 */
export interface Identity {
  readonly id: number;
  readonly pinned: number;
  /** Hash of the token with which it was read. */
  readonly token: string;
}

/** Time before the deadline from which the poll starts nothing new (ms). */
export const RESERVE_MS = 3_000;

/** Returns whether no time is left to start another commit. */
export function isOutOfTime({ deps, deadline }: Poll): boolean {
  return deps.now() > deadline - RESERVE_MS / 2;
}

/** The poll stops without observations. `accepted`: upstream answered a request with these credentials. */
export class PollFailure extends Error {
  readonly problem: unknown;
  readonly accepted: boolean;

  constructor({ problem, accepted }: { readonly problem: unknown; readonly accepted: boolean }) {
    super('The poll failed.', { cause: problem });
    this.problem = problem;
    this.accepted = accepted;
  }
}

/** The poll stops because the credentials belong to another account (rule 9). */
export class IdentityMismatch extends Error {
  readonly identity: Identity;

  constructor(identity: Identity) {
    super('The credentials belong to another account.');
    this.identity = identity;
  }
}
