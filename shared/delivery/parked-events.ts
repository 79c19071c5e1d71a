/** Parked and dead-lettered events as stored, and the operator's requests about them: list, retry, discard. */
import { randomUUID } from 'node:crypto';
import pLimit from 'p-limit';
import { deadPk, drainDue, keys, parkedPk } from '../storage/schema.ts';
import type { Item, Table, Write } from '../storage/table.ts';
import { markCursorDue } from './sink.ts';

/** An event that was dead-lettered after its last attempt. */
export interface DeadEvent extends Omit<ParkedEvent, 'retryAt'> {
  readonly diedAt: number;
}

/** Converts a parked or dead-lettered event as the API names its fields. */
export function toRejectedEvent<T extends ParkedEvent | DeadEvent>(rejected: T) {
  const { eventId: event, jobNumber = null } = rejected;
  return { ...rejected, event, jobNumber };
}

/** Returns all parked events of a sink, in order within each lane. */
export async function listParked(table: Table, region: string, sink: string): Promise<ParkedEvent[]> {
  return (await table.query({ pk: parkedPk(region, sink) })).map(toParked);
}

/** The parameters of a page: its size, `next` of the previous page, and the accounts whose events are listed (`null`: all). */
interface PageQuery {
  readonly limit: number;
  readonly after?: string | undefined;
  readonly accounts?: readonly string[] | null;
}

/** Returns a page of a sink's parked events, by account, in order within each lane. */
export async function listParkedPage(
  table: Table,
  region: string,
  sink: string,
  page: PageQuery,
): Promise<{ readonly parked: ParkedEvent[]; readonly next: string | null }> {
  const { items, next } = await readPage(table, parkedPk(region, sink), page);
  return { parked: items.map(toParked), next };
}

/** Returns a page of a sink's dead-lettered events, by account and sequence. */
export async function listDeadPage(
  table: Table,
  region: string,
  sink: string,
  page: PageQuery,
): Promise<{ readonly dead: DeadEvent[]; readonly next: string | null }> {
  const { items, next } = await readPage(table, deadPk(region, sink), page);
  return { dead: items.map(toDead), next };
}

/** Reads the ranges of the accounts, so that `next` names no other account. */
async function readPage(table: Table, pk: string, { limit, after = '', accounts = null }: PageQuery) {
  const found: Item[] = [];
  for (const account of accounts?.toSorted() ?? [null]) {
    const range = account === null ? {} : { from: `${account}#`, to: `${account}$` };
    if (found.length > limit || (range.to !== undefined && range.to <= after)) continue;
    const place = after > (range.from ?? '') ? { after } : {};
    found.push(...(await table.query({ pk, ...range, ...place, limit: limit + 1 - found.length })));
  }
  const items = found.slice(0, limit);
  return { items, next: found.length > limit ? (items.at(-1)?.sk ?? null) : null };
}

/** The number of affected events, and the named ones that are not parked. */
interface ParkedOutcome {
  readonly count: number;
  readonly missing: readonly string[];
}

const LANES_AT_ONCE = 16;

/** Makes the lanes of these events due for the next drain, from their first event on. */
export async function retryAllParked(
  table: Table,
  region: string,
  sink: string,
  which: ParkedEventSelection,
  now: number,
): Promise<ParkedOutcome> {
  const retried = await pLimit(LANES_AT_ONCE).map(
    await selectLanes(table, region, sink, which),
    async ({ first, chosen }) => ((await retryParked(table, region, sink, first, now)) ? chosen : []),
  );
  return toParkedOutcome(
    which,
    retried.flat().map(({ eventId }) => eventId),
  );
}

/**
 * Discards these events: they are not sent again, and their lanes resume. The first of a lane is discarded
 * last. So if the call is interrupted, the lane still has a first event that is due.
 */
export async function discardAllParked(
  table: Table,
  region: string,
  sink: string,
  which: ParkedEventSelection,
  now: number,
): Promise<ParkedOutcome> {
  const lanes = await selectLanes(table, region, sink, which);
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
        if (!chosen.includes(first)) await retryParked(table, region, sink, first, now, true);
        else if (await discardParked(table, region, sink, first, now)) gone.push(first.eventId);
      });
    }),
  );
  // If nothing is left to deliver, a drain finds that the sink is no longer failing.
  const accounts = new Set(lanes.filter(({ isWhole }) => isWhole).map(({ first }) => first.account));
  await calls.map(accounts, (account) => markCursorDue(table, { region, id: sink }, account, now));
  return toParkedOutcome(which, gone);
}

/** A selection of parked events: all, or those with these ids, that match a condition. */
interface ParkedEventSelection {
  readonly ids: readonly string[] | 'all';
  readonly isWanted: (parked: ParkedEvent) => boolean;
}

/** Returns the selected events by lane, with the first event of the lane. `isWhole`: all events of the lane are selected. */
async function selectLanes(
  table: Table,
  region: string,
  sink: string,
  { ids, isWanted }: ParkedEventSelection,
) {
  const parked = await listParked(table, region, sink);
  const wanted = ids === 'all' ? undefined : new Set(ids);
  return [...Map.groupBy(parked, formatLaneName).values()].flatMap((lane) => {
    const [first] = lane;
    const chosen = lane.filter((event) => isWanted(event) && (!wanted || wanted.has(event.eventId)));
    return first && chosen.length > 0 ? [{ first, chosen, isWhole: chosen.length === lane.length }] : [];
  });
}

function toParkedOutcome({ ids }: ParkedEventSelection, done: readonly string[]): ParkedOutcome {
  const missing = ids === 'all' ? [] : [...new Set(ids)].filter((id) => !done.includes(id));
  return { count: done.length, missing };
}

/**
 * Makes the first event of a lane due for the next drain. With `isResumed`, only if it has no time yet, because it waited for an
 * earlier event that was removed. False if the lane has no such event.
 */
export async function retryParked(
  table: Table,
  region: string,
  sink: string,
  parked: Pick<ParkedEvent, 'account' | 'lane'>,
  now: number,
  isResumed = false,
): Promise<boolean> {
  const [first] = await laneItems(table, region, sink, parked, 1);
  if (!first || (isResumed && first.retryAt !== undefined)) return false;
  return (await table.write(toRetry(region, sink, first, now))).done;
}

/** Returns the write that makes a parked event due. */
function toRetry(region: string, sink: string, item: Item, retryAt: number) {
  const { pk, sk } = item;
  const due = toDueAttributes(region, sink, { ...toParked(item), retryAt });
  return { update: { pk, sk }, set: { retryAt, ...due }, when: [['pk', 'present']] } as const;
}

/** Discards a parked event: it is not sent again, and its lane resumes. False if it does not exist. */
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
    // In one transaction, so that no event remains that is never due.
    const { done } = await table.transact([removal, toRetry(region, sink, next, now)], randomUUID());
    if (done) return true;
  }
  const gone = await table.write(removal);
  if (gone.done) await retryParked(table, region, sink, parked, now, true);
  return gone.done;
}

/** Returns the first events of a parked lane. */
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

export function formatLaneName({ account, lane }: ParkedEvent): string {
  return `${account}#${lane}`;
}

/** Only the first event of a lane has a due time; those behind it are in no index. */
export function toDueAttributes(
  region: string,
  sink: string,
  parked: ParkedEvent,
): Record<'duePk' | 'dueSk', string | undefined> {
  if (parked.retryAt === null) return { duePk: undefined, dueSk: undefined };
  return drainDue(region, sink, formatLaneName(parked), parked.retryAt);
}

export function toParkedAttributes(parked: Omit<ParkedEvent, 'retryAt'>) {
  const { account, lane, eventId, type, jobNumber, parkedAt, attempts, reason, status } = parked;
  return {
    ...{ account, lane, eventId, type, jobNumber, parkedAt, attempts },
    ...{ reason: reason ?? undefined, status: status ?? undefined },
  };
}

export function toDead(item: Item): DeadEvent {
  const { retryAt: _retryAt, ...event } = toParked(item);
  return { ...event, diedAt: Number(item.diedAt) };
}

/** An event parked for a sink. Times are epoch ms. */
export type ParkedEvent = Readonly<ReturnType<typeof toParked>>;

function toParked(item: Item) {
  return {
    account: String(item.account),
    lane: String(item.lane),
    sequence: Number(item.sk.slice(-16)),
    eventId: String(item.eventId),
    type: String(item.type),
    ...(typeof item.jobNumber === 'number' ? { jobNumber: item.jobNumber } : {}),
    parkedAt: Number(item.parkedAt),
    /** Number of rejected attempts; 0 for an event that only waits for an earlier one. */
    attempts: Number(item.attempts),
    /** Reason for the last rejection. */
    reason: typeof item.reason === 'string' ? item.reason : null,
    /** HTTP status of the last rejection; `null` if there was no response. */
    status: typeof item.status === 'number' ? item.status : null,
    /** Time of the next retry; `null` for an event that waits for an earlier one. */
    retryAt: typeof item.retryAt === 'number' ? item.retryAt : null,
  };
}
