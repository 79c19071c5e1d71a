/**
 * Parking: events that a sink refused, and the later events of their lanes, set aside so that the rest flows. The first of
 * a lane is tried again on the schedule of retries; once it is taken, or dead after the last attempt, the next one is the
 * first. An event is set aside before its cursor moves past it, so nothing is lost in between.
 */

import { randomUUID } from 'node:crypto';
import pLimit from 'p-limit';
import type { EventDraft } from '../events/event.ts';
import type { EventLog, LoggedEvent } from '../log/log.ts';
import { cellLog, deadPk, drainDue, keys, parkedPk } from '../table/schema.ts';
import type { Item, Table, TransactOutcome, Write } from '../table/table.ts';
import { waitOf } from './health.ts';
import type { Lease } from './lease.ts';
import { laneOf } from './window.ts';

/** An event set aside for a sink. Instants are epoch ms. */
export interface ParkedEvent {
  readonly account: string;
  readonly lane: string;
  readonly sequence: number;
  readonly eventId: string;
  readonly type: string;
  readonly jobNumber?: number;
  readonly parkedAt: number;
  /** How often the sink refused it; 0 for one that only waits behind another. */
  readonly attempts: number;
  /** How it was refused the last time, in words. */
  readonly reason: string | null;
  /** When it is tried again; null for one that waits behind another. */
  readonly retryAt: number | null;
}

/** An event that was refused to the last attempt. */
export interface DeadEvent extends Omit<ParkedEvent, 'retryAt'> {
  readonly diedAt: number;
}

/** Events set aside for one sink at most; then the sink waits. */
export const MAX_PARKED = 1000;
/** How long dead events can be looked up. They can be sent again for as long as they are in the log. */
const DEAD_DAYS = 90;

/** What parking needs. */
export interface ParkingDeps {
  readonly table: Table;
  readonly log: EventLog;
  readonly now: () => number;
  readonly newId: () => string;
  readonly random: () => number;
  readonly retrySeconds: readonly number[];
}

/** Writes that belong together: the first one holds for the lease, and so for all of them. */
type Together = readonly [guard: Write, ...others: Write[]];

/**
 * The lanes of a sink that are set aside, as its drain works with them. What it writes is conditional on its lease and
 * written in turn, so of each lane the first event stands in the `due` index, whoever comes in between; somebody may
 * discard events meanwhile.
 */
export class ParkedLanes {
  readonly #deps: ParkingDeps;
  readonly #region: string;
  readonly #sink: string;
  readonly #lease: Lease;
  readonly #lanes = new Map<string, ParkedEvent[]>();
  readonly #busy = new Set<string>();
  /** The ids of all events that are set aside, or were since this was loaded. */
  readonly #known = new Set<string>();
  /** Events that are set aside and not stored yet: what became of one can't be stored before it is. */
  readonly #unstored = new Set<ParkedEvent>();
  /** Settled when what was written before is. */
  #writing: Promise<unknown> = Promise.resolve();
  #count = 0;

  constructor(deps: ParkingDeps, sink: { readonly region: string; readonly id: string }, lease: Lease) {
    this.#deps = deps;
    this.#region = sink.region;
    this.#sink = sink.id;
    this.#lease = lease;
  }

  /** Reads what is set aside: at most {@link MAX_PARKED} small items. What is of accounts not followed any more is forgotten. */
  async load(follows: (account: string) => boolean): Promise<void> {
    for (const parked of await listParked(this.#deps.table, this.#region, this.#sink)) {
      if (follows(parked.account)) this.#add(parked);
      else await this.#deps.table.write({ delete: this.#keyOf(parked) });
    }
  }

  get count(): number {
    return this.#count;
  }

  /** Whether a lane is set aside, so that its later events have to wait behind it. */
  has(account: string, lane: string): boolean {
    return this.#lanes.has(`${account}#${lane}`);
  }

  /**
   * Whether this very event is set aside, or was while this drain works: one that died before it could say so at the cursor
   * leaves it to both.
   */
  holds(event: LoggedEvent): boolean {
    return this.#known.has(event.id);
  }

  /** Whether there is something to {@link take}. */
  get isDue(): boolean {
    const now = this.#deps.now();
    return [...this.#lanes].some(([name, [first]]) => first !== undefined && this.#isFree(name, first, now));
  }

  #isFree(name: string, first: ParkedEvent, now: number): boolean {
    return !this.#busy.has(name) && !this.#unstored.has(first) && (first.retryAt ?? 0) <= now;
  }

  /**
   * The first event of a lane whose time has come and that is not under way; it is under way from now on. An event with
   * one of the ids to avoid is left where it is.
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

  /** An event that was taken is tried again another time: the sink as a whole could not take it. */
  putBack(parked: ParkedEvent): void {
    this.#busy.delete(nameOf(parked));
  }

  /**
   * Sets an event aside: with a reason because the sink refused it, without one because its lane is set aside. What counts
   * for its lane counts at once; it is stored together with a mark at the sink that something is set aside. False when the
   * lease is lost: then it is not set aside.
   */
  park(event: LoggedEvent, reason: string | null): Promise<boolean> {
    const { now } = this.#deps;
    const { account, sequence, type } = event;
    const parked: ParkedEvent = {
      ...{ account, sequence, type },
      lane: laneOf(event),
      eventId: event.id,
      ...(event.jobNumber === undefined ? {} : { jobNumber: event.jobNumber }),
      parkedAt: now(),
      attempts: reason === null ? 0 : 1,
      reason,
      retryAt: reason === null ? null : this.#retryAfter(1),
    };
    this.#add(parked);
    this.#unstored.add(parked);
    return this.#inTurn(async () => {
      const stored = await this.#store(parked);
      this.#unstored.delete(parked);
      return stored;
    });
  }

  /** Whether an event is still set aside: somebody may have discarded it. */
  async isStored(parked: ParkedEvent): Promise<boolean> {
    return (await this.#deps.table.get(this.#keyOf(parked))) !== undefined;
  }

  /**
   * The event of a lane that was taken reached the sink, or can't any more: the next one is the first. `write` is how that
   * is written if there is more to it. True when it was this that took it away.
   */
  settle(
    parked: ParkedEvent,
    write: (writes: Together) => Promise<TransactOutcome> = (writes) => this.#transact(writes),
  ): Promise<boolean> {
    return this.#inTurn(async () => {
      for (;;) {
        const next = this.#lanes.get(nameOf(parked))?.[1];
        // One that is not stored yet will be stored as the first.
        const isStored = next !== undefined && !this.#unstored.has(next);
        const due = isStored ? { ...next, retryAt: this.#deps.now() } : undefined;
        const gone: Write = { delete: this.#keyOf(parked), when: [['pk', 'present']] };
        const outcome = await write([this.#lease.whileHeld(), gone, ...(due ? [this.#change(due)] : [])]);
        if (outcome.done || outcome.failed.includes(1)) {
          if (due) this.#replace(due);
          this.#remove(parked);
          return outcome.done;
        }
        if (this.#noticeLoss(outcome)) return false;
        if (!isStored) return false;
        // It is the next one that was discarded.
        this.#remove(next);
      }
    });
  }

  /** The event that was taken was refused again. True when that was the last attempt: it is dead, said so, and its lane goes on. */
  async refused(parked: ParkedEvent, reason: string): Promise<boolean> {
    const { now, retrySeconds } = this.#deps;
    const attempts = parked.attempts + 1;
    if (attempts <= retrySeconds.length) {
      const again = { ...parked, attempts, reason, retryAt: this.#retryAfter(attempts) };
      await this.#inTurn(async () => {
        const outcome = await this.#transact([this.#lease.whileHeld(), this.#change(again)]);
        if (outcome.done) this.#replace(again);
        // Not there any more: somebody discarded it meanwhile.
        else if (!this.#noticeLoss(outcome)) this.#remove(parked);
      });
      return false;
    }
    const death = { attempts, reason, diedAt: now() };
    return this.settle(parked, (writes) => this.#bury(parked, death, writes));
  }

  /** Writes down a death and says it. Deaths of events of the cell's own log are not said there: one could be the next. */
  async #bury(
    parked: ParkedEvent,
    death: { readonly attempts: number; readonly reason: string; readonly diedAt: number },
    writes: Together,
  ): Promise<TransactOutcome> {
    const ref = cellLog(this.#region);
    const { attempts, reason, diedAt } = death;
    const { account, sequence, eventId: event } = parked;
    const dead: Item = {
      ...keys.dead(this.#region, this.#sink, account, sequence),
      ...attributesOf({ ...parked, attempts, reason }),
      diedAt,
      ttl: Math.ceil(diedAt / 1000) + DEAD_DAYS * 86_400,
    };
    const all: Together = [...writes, { put: dead }];
    if (account !== ref.account) {
      const data = { endpoint: this.#sink, account, sequence, event, attempts, reason };
      const draft: EventDraft = { type: 'endpoint.event_dead', time: diedAt, data };
      if ((await this.#deps.log.append(ref, [draft], all)).kind === 'appended') return { done: true };
    }
    // Also where that log is not there yet; and this tells what else was in the way.
    return this.#transact(all);
  }

  #retryAfter(attempts: number): number {
    const { now, random, retrySeconds } = this.#deps;
    return now() + waitOf(retrySeconds, attempts, random());
  }

  /** Stores an event that is set aside: behind the first of its lane if that one is still there, else as the first. */
  async #store(parked: ParkedEvent): Promise<boolean> {
    const mark = this.#lease.whileHeld({ parking: true });
    const [first] = this.#lanes.get(nameOf(parked)) ?? [];
    if (parked.retryAt === null && first && first !== parked) {
      // It is discarded by somebody who saw nothing behind it, or it is not: one of the two writes comes first.
      const behind: Write = { update: this.#keyOf(first), set: { first: true }, when: [['pk', 'present']] };
      const outcome = await this.#transact([mark, { put: this.#toItem(parked) }, behind]);
      if (outcome.done) return true;
      if (this.#noticeLoss(outcome)) return false;
    }
    const due = { ...parked, retryAt: parked.retryAt ?? this.#deps.now() };
    this.#unstored.add(due);
    this.#replace(due);
    const outcome = await this.#transact([mark, { put: this.#toItem(due) }]);
    this.#unstored.delete(due);
    return outcome.done || !this.#noticeLoss(outcome);
  }

  /** One write after the other: they all are about the sink's item as well, and some about each other's events. */
  #inTurn<T>(write: () => Promise<T>): Promise<T> {
    const written = this.#writing.then(write);
    this.#writing = written;
    return written;
  }

  #transact(writes: Together): Promise<TransactOutcome> {
    return this.#deps.table.transact(writes, this.#deps.newId());
  }

  #noticeLoss(outcome: TransactOutcome): boolean {
    if (outcome.done || !outcome.failed.includes(0)) return false;
    this.#lease.lose();
    return true;
  }

  /** The write that changes an event that is set aside, unless it was discarded. */
  #change(parked: ParkedEvent): Write {
    const { pk, sk, ...set } = this.#toItem(parked);
    return { update: { pk, sk }, set, when: [['pk', 'present']] };
  }

  #add(parked: ParkedEvent): void {
    this.#known.add(parked.eventId);
    this.#count += 1;
    const name = nameOf(parked);
    const lane = this.#lanes.get(name);
    if (lane) lane.push(parked);
    else this.#lanes.set(name, [parked]);
  }

  #replace(parked: ParkedEvent): void {
    const lane = this.#lanes.get(nameOf(parked));
    const at = lane?.findIndex(({ sequence }) => sequence === parked.sequence) ?? -1;
    if (lane && at >= 0) lane[at] = parked;
    if (at === 0) this.#busy.delete(nameOf(parked));
  }

  #remove(parked: ParkedEvent): void {
    const name = nameOf(parked);
    const before = this.#lanes.get(name) ?? [];
    const lane = before.filter(({ sequence }) => sequence !== parked.sequence);
    this.#count -= before.length - lane.length;
    this.#busy.delete(name);
    if (lane.length === 0) this.#lanes.delete(name);
    else this.#lanes.set(name, lane);
  }

  #keyOf({ account, lane, sequence }: ParkedEvent) {
    return keys.parked(this.#region, this.#sink, account, lane, sequence);
  }

  #toItem(parked: ParkedEvent): Item {
    const due = dueOf(this.#region, this.#sink, parked);
    return { ...this.#keyOf(parked), ...attributesOf(parked), retryAt: parked.retryAt ?? undefined, ...due };
  }
}

/** Everything set aside for a sink, first to last within each lane. */
export async function listParked(table: Table, region: string, sink: string): Promise<ParkedEvent[]> {
  return (await table.query({ pk: parkedPk(region, sink) })).map(toParked);
}

/** A part of a list: at most so many, after a place that a page before gave as its `next`. */
interface PageOf {
  readonly limit: number;
  readonly after?: string | undefined;
}

/** A page of what is set aside for a sink, by account, first to last within each lane. */
export async function pageOfParked(
  table: Table,
  region: string,
  sink: string,
  page: PageOf,
): Promise<{ readonly parked: ParkedEvent[]; readonly next: string | null }> {
  const { items, next } = await pageOf(table, parkedPk(region, sink), page);
  return { parked: items.map(toParked), next };
}

/** The events that a sink refused to the last attempt, while they are kept. */
export async function listDead(
  table: Table,
  region: string,
  sink: string,
  limit: number,
): Promise<DeadEvent[]> {
  return (await pageOfDead(table, region, sink, { limit })).dead;
}

/** A page of the events that a sink refused to the last attempt, by account and sequence. */
export async function pageOfDead(
  table: Table,
  region: string,
  sink: string,
  page: PageOf,
): Promise<{ readonly dead: DeadEvent[]; readonly next: string | null }> {
  const { items, next } = await pageOf(table, deadPk(region, sink), page);
  const dead = items.map((item) => {
    const { retryAt: _retryAt, ...event } = toParked(item);
    return { ...event, diedAt: Number(item.diedAt) };
  });
  return { dead, next };
}

async function pageOf(table: Table, pk: string, { limit, after }: PageOf) {
  const found = await table.query({ pk, ...(after === undefined ? {} : { after }), limit: limit + 1 });
  const items = found.slice(0, limit);
  return { items, next: found.length > limit ? (items.at(-1)?.sk ?? null) : null };
}

/** With how many events it was done, and which of those that were named are not set aside. */
interface ParkedOutcome {
  readonly count: number;
  readonly missing: readonly string[];
}

const LANES_AT_ONCE = 16;

/** Has the lanes of these events tried again with the next drain, from their first event on. */
export async function retryAllParked(
  table: Table,
  region: string,
  sink: string,
  which: WhichParked,
  now: number,
): Promise<ParkedOutcome> {
  const retried = await pLimit(LANES_AT_ONCE).map(
    await choose(table, region, sink, which),
    async ({ first, chosen }) => ((await retryParked(table, region, sink, first, now)) ? chosen : []),
  );
  return outcomeOf(
    which,
    retried.flat().map(({ eventId }) => eventId),
  );
}

/**
 * Takes these events out of the way: they are not sent any more, and their lanes go on. The first of a lane goes last, so
 * that wherever it is cut off the lane has a first one that is due.
 */
export async function discardAllParked(
  table: Table,
  region: string,
  sink: string,
  which: WhichParked,
  now: number,
): Promise<ParkedOutcome> {
  const lanes = await choose(table, region, sink, which);
  const gone: string[] = [];
  const calls = pLimit(LANES_AT_ONCE);
  await Promise.all(
    lanes.map(async ({ first, chosen }) => {
      const behind = chosen.filter((parked) => parked !== first);
      await calls.map(behind, async ({ account, lane, sequence, eventId }) => {
        const key = keys.parked(region, sink, account, lane, sequence);
        const { done } = await table.write({ delete: key, when: [['pk', 'present']] });
        if (done) gone.push(eventId);
      });
      await calls(async () => {
        if (!chosen.includes(first)) await retryParked(table, region, sink, first, now);
        else if (await discardParked(table, region, sink, first, now)) gone.push(first.eventId);
      });
    }),
  );
  return outcomeOf(which, gone);
}

/** Which of the events that are set aside: all, or those with these ids; of these accounts. */
interface WhichParked {
  readonly ids: readonly string[] | 'all';
  readonly isWanted: (account: string) => boolean;
}

/** The events that are meant, by lane, each with the first event of its lane. */
async function choose(table: Table, region: string, sink: string, { ids, isWanted }: WhichParked) {
  const parked = (await listParked(table, region, sink)).filter(({ account }) => isWanted(account));
  const wanted = ids === 'all' ? undefined : new Set(ids);
  return [...Map.groupBy(parked, nameOf).values()].flatMap((lane) => {
    const [first] = lane;
    const chosen = lane.filter(({ eventId }) => !wanted || wanted.has(eventId));
    return first && chosen.length > 0 ? [{ first, chosen }] : [];
  });
}

function outcomeOf({ ids }: WhichParked, done: readonly string[]): ParkedOutcome {
  const missing = ids === 'all' ? [] : [...new Set(ids)].filter((id) => !done.includes(id));
  return { count: done.length, missing };
}

/** Has the first event of a lane tried again with the next drain. False when nothing of the lane is set aside. */
export async function retryParked(
  table: Table,
  region: string,
  sink: string,
  parked: Pick<ParkedEvent, 'account' | 'lane'>,
  now: number,
): Promise<boolean> {
  const [first] = await laneItems(table, region, sink, parked, 1);
  if (!first) return false;
  const due = dueOf(region, sink, { ...toParked(first), retryAt: now });
  const { pk, sk } = first;
  return (await table.write({ update: { pk, sk }, set: { retryAt: now, ...due }, when: [['pk', 'present']] }))
    .done;
}

/** Takes an event that is set aside out of the way: it is not sent any more, and its lane goes on. False when it is not there. */
export async function discardParked(
  table: Table,
  region: string,
  sink: string,
  parked: Pick<ParkedEvent, 'account' | 'lane' | 'sequence'>,
  now: number,
): Promise<boolean> {
  const key = keys.parked(region, sink, parked.account, parked.lane, parked.sequence);
  const [first, next] = await laneItems(table, region, sink, parked, 2);
  const removal: Write = { delete: key, when: [['pk', 'present']] };
  if (first?.sk === key.sk && next) {
    // In one, so that nothing is left behind that nobody is told of.
    const due = dueOf(region, sink, { ...toParked(next), retryAt: now });
    const { pk, sk } = next;
    const promotion: Write = {
      update: { pk, sk },
      set: { retryAt: now, ...due },
      when: [['pk', 'present']],
    };
    const { done } = await table.transact([removal, promotion], randomUUID());
    if (done) return true;
  }
  const gone = await table.write(removal);
  if (gone.done) await retryParked(table, region, sink, parked, now);
  return gone.done;
}

/** The first events of a lane that is set aside. */
function laneItems(
  table: Table,
  region: string,
  sink: string,
  { account, lane }: Pick<ParkedEvent, 'account' | 'lane'>,
  limit: number,
): Promise<Item[]> {
  const { pk, sk } = keys.parked(region, sink, account, lane, 0);
  return table.query({ pk, from: sk, to: `${sk.slice(0, -16)}~`, limit });
}

function nameOf({ account, lane }: ParkedEvent): string {
  return `${account}#${lane}`;
}

/** Only the first of a lane has a time of its own; those behind it stand in no index. */
function dueOf(
  region: string,
  sink: string,
  parked: ParkedEvent,
): Record<'duePk' | 'dueSk', string | undefined> {
  if (parked.retryAt === null) return { duePk: undefined, dueSk: undefined };
  return drainDue(region, sink, nameOf(parked), parked.retryAt);
}

function attributesOf(parked: Omit<ParkedEvent, 'retryAt'>) {
  const { account, lane, eventId, type, jobNumber, parkedAt, attempts, reason } = parked;
  return { account, lane, eventId, type, jobNumber, parkedAt, attempts, reason: reason ?? undefined };
}

function toParked(item: Item): ParkedEvent {
  return {
    account: String(item.account),
    lane: String(item.lane),
    sequence: Number(item.sk.slice(-16)),
    eventId: String(item.eventId),
    type: String(item.type),
    ...(typeof item.jobNumber === 'number' ? { jobNumber: item.jobNumber } : {}),
    parkedAt: Number(item.parkedAt),
    attempts: Number(item.attempts),
    reason: typeof item.reason === 'string' ? item.reason : null,
    retryAt: typeof item.retryAt === 'number' ? item.retryAt : null,
  };
}
