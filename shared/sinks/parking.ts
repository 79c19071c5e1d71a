/**
 * Parking: events that a sink refused, and the later events of their lanes, set aside so that the rest flows. The first of
 * a lane is tried again on the schedule of retries; once it is taken, or dead after the last attempt, the next one is the
 * first. An event is set aside before its cursor moves past it, so nothing is lost in between.
 */

import { randomUUID } from 'node:crypto';
import type { EventLog, LoggedEvent } from '../log/log.ts';
import { cellLog, drainDue, keys, parkedPk } from '../table/schema.ts';
import type { Item, Table, Write } from '../table/table.ts';
import { waitOf } from './health.ts';
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
/** How long dead events can be looked up, and sent again. */
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

/** The lanes of a sink that are set aside, as its drain works with them: nobody else changes them while it holds the lease. */
export class ParkedLanes {
  readonly #deps: ParkingDeps;
  readonly #region: string;
  readonly #sink: string;
  readonly #lanes = new Map<string, ParkedEvent[]>();
  readonly #busy = new Set<string>();
  /** Lanes whose first event is about to go. */
  readonly #leaving = new Set<string>();
  /** Events that are set aside and not stored yet: what became of one can't be stored before it is. */
  readonly #unstored = new Set<ParkedEvent>();
  /** Settled when what was set aside is stored. */
  #storing: Promise<unknown> = Promise.resolve();
  #count = 0;

  constructor(deps: ParkingDeps, region: string, sink: string) {
    this.#deps = deps;
    this.#region = region;
    this.#sink = sink;
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

  /** Whether this very event is set aside: by a drain that died before it could say so at the cursor. */
  holds(event: LoggedEvent): boolean {
    const lane = this.#lanes.get(`${event.account}#${laneOf(event)}`);
    return lane?.some(({ sequence }) => sequence === event.sequence) ?? false;
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
   * for its lane counts at once; it is stored after those before it, together with `mark`, a write on the sink that says
   * that something is set aside. False when the mark's condition does not hold: then it is not set aside.
   */
  async park(event: LoggedEvent, reason: string | null, mark: Write): Promise<boolean> {
    const { now } = this.#deps;
    const { account, sequence, type } = event;
    const lane = laneOf(event);
    const name = `${account}#${lane}`;
    // It stands behind one that is about to go, and whoever lets that one go has already looked what is next.
    const isNext = this.#leaving.has(name) && this.#lanes.get(name)?.length === 1;
    const parked: ParkedEvent = {
      ...{ account, sequence, type, lane },
      eventId: event.id,
      ...(event.jobNumber === undefined ? {} : { jobNumber: event.jobNumber }),
      parkedAt: now(),
      attempts: reason === null ? 0 : 1,
      reason,
      retryAt: reason !== null ? this.#retryAfter(1) : isNext ? now() : null,
    };
    this.#add(parked);
    this.#unstored.add(parked);
    const stored = this.#storing.then(() => this.#store(parked, mark));
    this.#storing = stored;
    const done = await stored;
    this.#unstored.delete(parked);
    return done;
  }

  /** Stores an event that is set aside: behind the first of its lane if that one is still there, else as the first. */
  async #store(parked: ParkedEvent, mark: Write): Promise<boolean> {
    const { table, now, newId } = this.#deps;
    const put = { put: this.#toItem(parked) };
    if (parked.retryAt !== null) return (await table.transact([mark, put], newId())).done;
    const [first = parked] = this.#lanes.get(nameOf(parked)) ?? [];
    // Somebody may have discarded it; and who did saw nothing behind it.
    const behind: Write = { update: this.#keyOf(first), set: { first: true }, when: [['pk', 'present']] };
    const outcome = first === parked ? undefined : await table.transact([mark, put, behind], newId());
    if (outcome?.done) return true;
    if (outcome?.failed.includes(0)) return false;
    const due = { ...parked, retryAt: now() };
    this.#unstored.add(due);
    this.#replace(due);
    const { done } = await table.transact([mark, { put: this.#toItem(due) }], newId());
    this.#unstored.delete(due);
    return done;
  }

  /** Whether an event is still set aside: somebody may have discarded it. */
  async isStored(parked: ParkedEvent): Promise<boolean> {
    return (await this.#deps.table.get(this.#keyOf(parked))) !== undefined;
  }

  /**
   * The event of a lane that was taken reached the sink, or can't any more: the next one is the first. With `remove` that is
   * what takes it away, by the write it is given.
   */
  async settle(parked: ParkedEvent, remove?: (removal: Write) => Promise<void>): Promise<void> {
    await this.#promoteNext(parked);
    const key = this.#keyOf(parked);
    if (remove) await remove({ delete: key, when: [['pk', 'present']] });
    else await this.#deps.table.write({ delete: key });
    this.#remove(parked);
  }

  /** The event that was taken was refused again. True when that was the last attempt: it is dead, said so, and its lane goes on. */
  async refused(parked: ParkedEvent, reason: string): Promise<boolean> {
    const { table, now, retrySeconds } = this.#deps;
    const attempts = parked.attempts + 1;
    if (attempts <= retrySeconds.length) {
      const again = { ...parked, attempts, reason, retryAt: this.#retryAfter(attempts) };
      // Not there any more: somebody discarded it meanwhile.
      const { pk, sk, ...set } = this.#toItem(again);
      const kept = await table.write({ update: { pk, sk }, set, when: [['pk', 'present']] });
      if (kept.done) this.#replace(again);
      else this.#remove(parked);
      return false;
    }
    await this.#promoteNext(parked);
    const diedAt = now();
    const dead: Item = {
      ...keys.dead(this.#region, this.#sink, parked.account, parked.sequence),
      ...attributesOf({ ...parked, attempts, reason }),
      diedAt,
      ttl: Math.ceil(diedAt / 1000) + DEAD_DAYS * 86_400,
    };
    const writes: Write[] = [{ put: dead }, { delete: this.#keyOf(parked), when: [['pk', 'present']] }];
    const buried = await this.#bury(parked, { attempts, reason, diedAt }, writes);
    this.#remove(parked);
    return buried;
  }

  /** Writes down a death and says it. Deaths of events of the cell's own log are not said there: one could be the next. */
  async #bury(
    parked: ParkedEvent,
    death: { readonly attempts: number; readonly reason: string; readonly diedAt: number },
    writes: readonly Write[],
  ): Promise<boolean> {
    const { table, log, newId } = this.#deps;
    const ref = cellLog(this.#region);
    const bury = async (): Promise<boolean> => (await table.transact(writes, newId())).done;
    if (parked.account === ref.account) return bury();
    const { attempts, reason, diedAt } = death;
    const { account, sequence, eventId: event } = parked;
    const data = { endpoint: this.#sink, account, sequence, event, attempts, reason };
    const said = await log.append(ref, [{ type: 'endpoint.event_dead', time: diedAt, data }], writes);
    // Refused because somebody discarded it, or because that log is not there yet.
    return said.kind === 'appended' || bury();
  }

  #retryAfter(attempts: number): number {
    const { now, random, retrySeconds } = this.#deps;
    return now() + waitOf(retrySeconds, attempts, random());
  }

  /** What stands behind the first of a lane is due at once when that one goes; marked first, so that a crash leaves it due. */
  async #promoteNext(first: ParkedEvent): Promise<void> {
    this.#leaving.add(nameOf(first));
    const next = this.#lanes.get(nameOf(first))?.[1];
    if (!next) return;
    await this.#storing;
    const due = { ...next, retryAt: this.#deps.now() };
    const { pk, sk, ...set } = this.#toItem(due);
    await this.#deps.table.write({ update: { pk, sk }, set, when: [['pk', 'present']] });
    this.#replace(due);
  }

  #add(parked: ParkedEvent): void {
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
    this.#leaving.delete(name);
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
