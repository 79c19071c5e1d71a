/**
 * Parking: rejected events, and the later events of their lanes, are parked so that other lanes continue. The
 * first event of a lane is retried on the retry schedule. Once it is delivered, or dead after the last
 * attempt, the next event becomes the first. An event is parked before its cursor moves past it, so nothing
 * is lost in between.
 */
import type { EventDraft } from '../events/event.ts';
import type { LoggedEvent } from '../log/log.ts';
import { cellLog, getDrainName, keys } from '../storage/schema.ts';
import type { Item, TransactOutcome, Value, Write } from '../storage/table.ts';
import { MAX_SKEW_MS } from './clock.ts';
import type { DrainDeps } from './drain-deps.ts';
import { getRetryWait } from './health.ts';
import type { Lease } from './lease.ts';
import {
  type DeadEvent,
  formatLaneName,
  listParked,
  type ParkedEvent,
  toDueAttributes,
  toParkedAttributes,
} from './parked-events.ts';
import { getLane } from './window.ts';

/** Maximum number of parked events of one sink, or of a part of a divided sink; above it, the sink waits. */
export const MAX_PARKED = 1000;
/** Minimum time for which dead events are listed (ms). With a longer retention of events, they are listed for that time. */
const LEAST_DEAD_MS = 90 * 86_400_000;

/**
 * Returns the longest wait (ms) before a retry of a parked event. A retry that is later than that was scheduled before the
 * clock was set back.
 */
export function getLongestWait(retrySeconds: readonly number[]): number {
  return Math.max(...retrySeconds.map((_, at) => getRetryWait(retrySeconds, at + 1, 1)));
}

/** Dependencies of parking. */
export type ParkingDeps = Pick<DrainDeps, 'table' | 'log' | 'now' | 'newId' | 'random' | 'retrySeconds'>;

/** A rejection of an event: the reason, and the HTTP status if there was a response. */
export interface EventRejection {
  readonly reason: string;
  readonly status?: number | undefined;
}

/** Writes of one transaction. The first one checks the lease, and so guards all of them. */
type GuardedWrites = readonly [guard: Write, ...others: Write[]];

/**
 * The parked lanes of a sink, as its drain uses them. Its writes are conditional on the lease and run one
 * after another. So the first event of each lane is in the `due` index, independent of other processes. An
 * operator may discard events meanwhile.
 */
export class ParkedLanes {
  readonly #deps: ParkingDeps;
  readonly #region: string;
  readonly #sink: string;
  readonly #lease: Lease;
  readonly #longestWaitMs: number;
  readonly #lanes = new Map<string, ParkedEvent[]>();
  readonly #busy = new Set<string>();
  /** Ids of all events that are parked, or were since this was loaded. */
  readonly #known = new Set<string>();
  /**
   * Parked events that are not stored yet. The outcome of such an event cannot be stored before the event
   * itself.
   */
  readonly #unstored = new Set<ParkedEvent>();
  /** Settles when all earlier writes have. */
  #writing: Promise<unknown> = Promise.resolve();
  #count = 0;

  constructor(deps: ParkingDeps, sink: { readonly region: string; readonly id: string }, lease: Lease) {
    this.#deps = deps;
    this.#region = sink.region;
    this.#sink = sink.id;
    this.#lease = lease;
    this.#longestWaitMs = getLongestWait(deps.retrySeconds);
  }

  /**
   * Loads the parked events, at most {@link MAX_PARKED} small items for each part of the sink. Removes those of
   * accounts that are no longer followed.
   */
  async load(follows: (account: string) => boolean): Promise<void> {
    for (const parked of await listParked(this.#deps.table, this.#region, this.#sink)) {
      if (getDrainName(this.#sink, parked.account) !== this.#lease.name) continue;
      if (follows(parked.account)) this.#add(parked);
      else await this.#deps.table.write({ delete: this.#toKey(parked) });
    }
  }

  get count(): number {
    return this.#count;
  }

  /** Reports whether a lane is parked, so that its later events have to wait behind it. */
  has(account: string, lane: string): boolean {
    return this.#lanes.has(`${account}#${lane}`);
  }

  /**
   * Reports whether this event is parked, or was during this drain. A process that crashed before it moved
   * the cursor leaves the event both parked and behind the cursor.
   */
  wasParked(event: LoggedEvent): boolean {
    return this.#known.has(event.id);
  }

  /** Whether {@link take} would return an event. */
  get isDue(): boolean {
    const now = this.#deps.now();
    return [...this.#lanes].some(([name, [first]]) => first !== undefined && this.#isFree(name, first, now));
  }

  #isFree(name: string, first: ParkedEvent, now: number): boolean {
    const { retryAt } = first;
    const isTime = retryAt === null || retryAt <= now || retryAt > now + this.#longestWaitMs + MAX_SKEW_MS;
    return isTime && !this.#busy.has(name) && !this.#unstored.has(first);
  }

  /**
   * Takes the first event of a due lane that is not in delivery, and marks it as in delivery. Events with the
   * ids to avoid are skipped.
   */
  take(avoid?: ReadonlySet<string>): ParkedEvent | undefined {
    const now = this.#deps.now();
    for (const [name, [first]] of this.#lanes) {
      if (!first || !this.#isFree(name, first, now) || avoid?.has(first.eventId)) continue;
      this.#busy.add(name);
      return first;
    }
    return undefined;
  }

  /** Returns an event to its lane for a later attempt: the sink as a whole could not accept it. */
  putBack(parked: ParkedEvent): void {
    this.#busy.delete(formatLaneName(parked));
  }

  /**
   * Parks an event: with its rejection, or without one if its lane is parked. The lane
   * changes at once. The event is stored together with a mark at the sink that it has parked events. Returns
   * false if the lease is lost: then the event is not parked.
   */
  park(event: LoggedEvent, rejection: EventRejection | null): Promise<boolean> {
    const { now } = this.#deps;
    const { account, sequence, type } = event;
    const parked: ParkedEvent = {
      ...{ account, sequence, type },
      lane: getLane(event),
      eventId: event.id,
      ...(event.jobNumber === undefined ? {} : { jobNumber: event.jobNumber }),
      parkedAt: now(),
      attempts: rejection === null ? 0 : 1,
      reason: rejection?.reason ?? null,
      status: rejection?.status ?? null,
      retryAt: rejection === null ? null : this.#retryAfter(1),
    };
    this.#add(parked);
    this.#unstored.add(parked);
    return this.#runSerially(async () => {
      const stored = await this.#store(parked);
      this.#unstored.delete(parked);
      return stored;
    });
  }

  /** Reports whether an event is still parked: an operator may have discarded it. */
  async isStored(parked: ParkedEvent): Promise<boolean> {
    return (await this.#deps.table.get(this.#toKey(parked))) !== undefined;
  }

  /**
   * Removes an event that reached the sink, or can no longer reach it; the next event becomes the first of its lane.
   * `write` replaces the plain removal if more is to be written. `mark`: new attributes of the sink. Returns true if this call removed it.
   */
  settle(
    parked: ParkedEvent,
    write: (writes: GuardedWrites) => Promise<TransactOutcome> = (writes) => this.#transact(writes),
    mark?: { readonly [attribute: string]: Value },
  ): Promise<boolean> {
    return this.#runSerially(async () => {
      for (;;) {
        const next = this.#lanes.get(formatLaneName(parked))?.[1];
        // An event that is not stored yet will be stored as the first.
        const isStored = next !== undefined && !this.#unstored.has(next);
        const due = isStored ? { ...next, retryAt: this.#deps.now() } : undefined;
        const gone: Write = { delete: this.#toKey(parked), when: [['pk', 'present']] };
        const outcome = await write([
          this.#lease.toGuardWrite(mark),
          gone,
          ...(due ? [this.#toUpdate(due)] : []),
        ]);
        if (outcome.done || outcome.failed.includes(1)) {
          if (due) this.#replace(due);
          this.#remove(parked);
          return outcome.done;
        }
        if (this.#detectLostLease(outcome)) return false;
        if (!isStored) return false;
        // The next event was discarded.
        this.#remove(next);
      }
    });
  }

  /**
   * Records another rejection. Returns true if that was the last attempt: the event is dead, its death is
   * emitted, and its lane resumes.
   */
  async recordRejection(parked: ParkedEvent, { reason, status }: EventRejection): Promise<boolean> {
    const { now, retrySeconds } = this.#deps;
    const attempts = parked.attempts + 1;
    const rejected = { ...parked, attempts, reason, status: status ?? null };
    if (attempts <= retrySeconds.length) {
      const again = { ...rejected, retryAt: this.#retryAfter(attempts) };
      await this.#runSerially(async () => {
        const outcome = await this.#transact([this.#lease.toGuardWrite(), this.#toUpdate(again)]);
        if (outcome.done) this.#replace(again);
        // The item is missing: an operator discarded the event meanwhile.
        else if (!this.#detectLostLease(outcome)) this.#remove(parked);
      });
      return false;
    }
    const diedAt = now();
    // The attention queue finds by this mark which endpoints have dead events.
    const mark = { lastDiedAt: diedAt };
    return this.settle(parked, (writes) => this.#deadLetter({ ...rejected, diedAt }, writes), mark);
  }

  /**
   * Stores a dead event and emits its death. Deaths of events of the cell's own log are not emitted there:
   * that event could die as well.
   */
  async #deadLetter(
    death: DeadEvent & { readonly reason: string },
    writes: GuardedWrites,
  ): Promise<TransactOutcome> {
    const ref = cellLog(this.#region);
    const { account, sequence, eventId: event, attempts, reason, diedAt } = death;
    const dead: Item = {
      ...keys.dead(this.#region, this.#sink, account, sequence),
      ...toParkedAttributes(death),
      diedAt,
      // So a dead event is listed as long as it can be sent again.
      ttl: Math.ceil((diedAt + Math.max(LEAST_DEAD_MS, this.#deps.log.retentionMs)) / 1000),
    };
    const all: GuardedWrites = [...writes, { put: dead }];
    if (account !== ref.account) {
      const data = { endpoint: this.#sink, account, sequence, event, attempts, reason };
      const draft: EventDraft = { type: 'endpoint.event_dead', time: diedAt, data };
      if ((await this.#deps.log.append(ref, [draft], all)).kind === 'appended') return { done: true };
    }
    // Even if that log does not exist yet. This write then shows the other cause of the failure.
    return this.#transact(all);
  }

  #retryAfter(attempts: number): number {
    const { now, random, retrySeconds } = this.#deps;
    return now() + getRetryWait(retrySeconds, attempts, random());
  }

  /** Stores a parked event: behind the first of its lane if that one still exists, else as the first. */
  async #store(parked: ParkedEvent): Promise<boolean> {
    const mark = this.#lease.toGuardWrite({ parking: true });
    const [first] = this.#lanes.get(formatLaneName(parked)) ?? [];
    if (parked.retryAt === null && first && first !== parked) {
      // A concurrent discard saw nothing behind the first event, or fails: one of the two writes comes first.
      const behind: Write = { update: this.#toKey(first), set: { first: true }, when: [['pk', 'present']] };
      const outcome = await this.#transact([mark, { put: this.#toItem(parked) }, behind]);
      if (outcome.done) return true;
      if (this.#detectLostLease(outcome)) return false;
    }
    const due = { ...parked, retryAt: parked.retryAt ?? this.#deps.now() };
    this.#unstored.add(due);
    this.#replace(due);
    const outcome = await this.#transact([mark, { put: this.#toItem(due) }]);
    this.#unstored.delete(due);
    return outcome.done || !this.#detectLostLease(outcome);
  }

  /** Runs one write after the other: all of them write the sink's item, and some also each other's events. */
  #runSerially<T>(write: () => Promise<T>): Promise<T> {
    const written = this.#writing.then(write);
    this.#writing = written;
    return written;
  }

  #transact(writes: GuardedWrites): Promise<TransactOutcome> {
    return this.#deps.table.transact(writes, this.#deps.newId());
  }

  #detectLostLease(outcome: TransactOutcome): boolean {
    if (outcome.done || !outcome.failed.includes(0)) return false;
    this.#lease.lose();
    return true;
  }

  /** Returns the write that changes a parked event, unless it was discarded. */
  #toUpdate(parked: ParkedEvent): Write {
    const { pk, sk, ...set } = this.#toItem(parked);
    return { update: { pk, sk }, set, when: [['pk', 'present']] };
  }

  #add(parked: ParkedEvent): void {
    this.#known.add(parked.eventId);
    this.#count += 1;
    const name = formatLaneName(parked);
    const lane = this.#lanes.get(name);
    if (lane) lane.push(parked);
    else this.#lanes.set(name, [parked]);
  }

  #replace(parked: ParkedEvent): void {
    const lane = this.#lanes.get(formatLaneName(parked));
    const at = lane?.findIndex(({ sequence }) => sequence === parked.sequence) ?? -1;
    if (lane && at >= 0) lane[at] = parked;
    if (at === 0) this.#busy.delete(formatLaneName(parked));
  }

  #remove(parked: ParkedEvent): void {
    const name = formatLaneName(parked);
    const before = this.#lanes.get(name) ?? [];
    const lane = before.filter(({ sequence }) => sequence !== parked.sequence);
    this.#count -= before.length - lane.length;
    this.#busy.delete(name);
    if (lane.length === 0) this.#lanes.delete(name);
    else this.#lanes.set(name, lane);
  }

  #toKey({ account, lane, sequence }: ParkedEvent) {
    return keys.parked(this.#region, this.#sink, account, lane, sequence);
  }

  #toItem(parked: ParkedEvent): Item {
    const due = toDueAttributes(this.#region, this.#sink, parked);
    return {
      ...this.#toKey(parked),
      ...toParkedAttributes(parked),
      retryAt: parked.retryAt ?? undefined,
      ...due,
    };
  }
}
