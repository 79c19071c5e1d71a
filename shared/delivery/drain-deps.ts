/** The dependencies of a drain, and its result. */
import type { EventLog } from '../log/log.ts';
import type { Table } from '../storage/table.ts';
import type { EarlyStores } from './cursors.ts';
import type { Attempt, DeliveryLog } from './delivery-log.ts';
import type { SharedRequests } from './lanes.ts';
import type { SinkPort, SinkRecord } from './sink.ts';

/** Dependencies of a drain. */
export interface DrainDeps {
  readonly table: Table;
  readonly log: EventLog;
  /** Epoch ms. */
  readonly now: () => number;
  readonly newId: () => string;
  /** From 0 (inclusive) to 1 (exclusive). */
  readonly random: () => number;
  /** Waits before the n-th retry, of a sink or of a rejected event. For a sink, the last one repeats. */
  readonly retrySeconds: readonly number[];
  /** Time after which a sink whose attempts all fail is disabled (s). Default: 5 days. */
  readonly disableAfterSeconds?: number;
  /** Opens the sink of a record. Throws if it cannot be created. */
  readonly open: (record: SinkRecord) => Promise<SinkPort>;
  /** The requests in progress of all drains of the process. Default: no limit but that of the sink. */
  readonly sharedRequests?: SharedRequests;
  /** The positions that all drains of the process store early. Default: none. */
  readonly earlyStores?: EarlyStores;
  /** Records attempts at webhooks. An error is counted and does not stop the drain. */
  readonly deliveries?: Pick<DeliveryLog, 'record'> & Partial<Pick<DeliveryLog, 'count'>>;
  /**
   * Called with each attempt at a sink of any kind, as soon as it ends. Must not throw. Default: no callback.
   */
  readonly attempted?: (attempt: Attempt) => void;
  /**
   * Called when all due work is done. Resolves with news as soon as there are any, or with `undefined` to end
   * the drain. The drain keeps its lease and positions meanwhile, so an event committed in this process needs
   * only one read. With `holdMs`, it resolves after that time (ms) at the latest: `undefined` then ends only the wait, because
   * the drain has positions to store.
   *
   * Default: the drain ends at once (on Lambda, waiting costs money).
   */
  readonly linger?: (holdMs?: number) => Promise<NewWork | undefined>;
  /**
   * Returns the accounts whose logs grew since the last call, without waiting. `onGrowth` is called when there are more. Called while
   * events are in delivery. Default: they are found when all due work is done.
   */
  readonly takeGrown?: (onGrowth: () => void) => readonly string[];
  /** Aborted when the process stops: no further delivery begins, and positions are stored. Default: never. */
  readonly stopping?: AbortSignal;
  /** Waits in real time, for sinks with a rate. Tests inject their own. */
  readonly sleep?: (ms: number) => Promise<unknown>;
}

/** New work for a drain that lingers. */
export interface NewWork {
  /** Accounts whose logs grew. */
  readonly accounts: readonly string[];
  /** Other work may be due. */
  readonly due: boolean;
}

/** The result of one drain, logged as one wide line. */
export interface DrainReport {
  readonly region: string;
  readonly sink: string;
  readonly outcome: /** Every due cursor is at its head. */
    | 'drained'
    /** The deadline came; the rest stays due. */
    | 'more'
    /** The sink waits until `waitUntil`. */
    | 'waiting'
    /** The sink gets no more events until the operator or its owner enables it. */
    | 'disabled'
    /** Another drain holds the lease, or the sink waits, is paused, disabled or unknown. */
    | 'busy';
  readonly delivered: number;
  /** Number of events that the sink's filter excluded. */
  readonly skipped: number;
  /** Number of failed attempts, for any reason. */
  readonly failed: number;
  /** Of these, the attempts in which the receiver rejected the event itself. */
  readonly rejected: number;
  /** Number of events parked: rejected, or waiting for a rejected one. */
  readonly parked: number;
  /** Number of events dead-lettered after their last attempt. */
  readonly dead: number;
  /** Number of events past retention. */
  readonly lost: number;
  /** Number of attempts that could not be recorded in the delivery log. */
  readonly unlogged: number;
  readonly waitUntil?: number;
  readonly problem?: string;
}
