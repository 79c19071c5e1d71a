/**
 * Dead events that are sent again. A replay of dead events has a filter and the time of the last death, so that events
 * that die later are not part of it. Its cursors move from dead event to dead event. A dead event that is
 * delivered is deleted, so that the list contains only what was never delivered.
 */
import pLimit from 'p-limit';
import { typeMatches } from '../events/types.ts';
import type { EventLog, LoggedEvent } from '../log/log.ts';
import { deadPk, keys } from '../storage/schema.ts';
import type { Item, Table } from '../storage/table.ts';
import { type DeadEvent, type ParkedEvent, toDead } from './parked-events.ts';
import { toSpans } from './window.ts';

/** A filter of parked and dead events. An absent field restricts nothing. All given fields must match. */
export interface RejectedEventFilter {
  readonly accounts?: readonly string[] | undefined;
  /** Event types, with a final `*` as a wildcard. */
  readonly types?: readonly string[] | undefined;
  readonly jobNumbers?: readonly number[] | undefined;
  /** HTTP statuses of the last rejection. */
  readonly statuses?: readonly number[] | undefined;
  /** Parked at this time or later, and before another time (epoch ms). */
  readonly from?: number | undefined;
  readonly to?: number | undefined;
}

/** The dead events of a replay: those that match the filter, and died not later than `until` (epoch ms). */
export interface DeadSelection {
  readonly filter: RejectedEventFilter;
  readonly until: number;
}

/** Number of dead events that are read at once. */
const PAGE_EVENTS = 100;
/** Maximum number of events between two dead events that are read from the log in one call. */
const NEAR_EVENTS = 20;
const READS_AT_ONCE = 10;

/** Reports whether a parked or dead event passes a filter. */
export function matchesRejected(
  filter: RejectedEventFilter,
  event: Pick<ParkedEvent | DeadEvent, 'account' | 'type' | 'jobNumber' | 'status' | 'parkedAt'>,
): boolean {
  const { accounts, types, jobNumbers, statuses, from, to } = filter;
  return (
    (accounts?.includes(event.account) ?? true) &&
    (types === undefined || typeMatches(event.type, types)) &&
    (jobNumbers === undefined || (event.jobNumber !== undefined && jobNumbers.includes(event.jobNumber))) &&
    (statuses === undefined || (event.status !== null && statuses.includes(event.status))) &&
    (from === undefined || event.parkedAt >= from) &&
    (to === undefined || event.parkedAt < to)
  );
}

/** Returns the dead events that a stored replay sends; nothing if it sends events of the log. */
export function toDeadSelection({ dead, until, createdAt }: Item): { readonly dead?: DeadSelection } {
  if (typeof dead !== 'string') return {};
  // Replays that an earlier version stored have only the time of their start.
  return { dead: { filter: JSON.parse(dead) as RejectedEventFilter, until: Number(until ?? createdAt) } };
}

/**
 * Returns the next dead events of an account that are selected, in order, after a sequence and up to another. `readTo`: the
 * sequence up to which there are no others. `missing`: number of events that have expired from the log.
 */
export async function readDeadEvents(
  { table, log }: { readonly table: Table; readonly log: EventLog },
  { region, id }: { readonly region: string; readonly id: string },
  { filter, until }: DeadSelection,
  range: { readonly account: string; readonly after: number; readonly end: number },
): Promise<{ readonly events: LoggedEvent[]; readonly missing: number; readonly readTo: number }> {
  const { account, after, end } = range;
  const items = await table.query({
    pk: deadPk(region, id),
    after: keys.dead(region, id, account, after).sk,
    to: keys.dead(region, id, account, end).sk,
    limit: PAGE_EVENTS,
  });
  const dead = items.map(toDead);
  const sequences = dead
    .filter((one) => one.diedAt <= until && matchesRejected(filter, one))
    .map(({ sequence }) => sequence);
  const read = await pLimit(READS_AT_ONCE).map(toSpans(sequences, NEAR_EVENTS), ([first, last]) =>
    readSpan(log, { region, account }, first, last),
  );
  const wanted = new Set(sequences);
  const events = read.flat().filter(({ sequence }) => wanted.has(sequence));
  const readTo = items.length < PAGE_EVENTS ? end : (dead.at(-1)?.sequence ?? end);
  return { events, missing: sequences.length - events.length, readTo };
}

/** Returns the events of a span that are still in the log. */
async function readSpan(
  log: EventLog,
  ref: { readonly region: string; readonly account: string },
  first: number,
  last: number,
): Promise<readonly LoggedEvent[]> {
  const page = await log.read(ref, first - 1, last - first + 1);
  if (page?.kind !== 'gone') return page?.events ?? [];
  return page.earliest <= first || page.earliest > last ? [] : readSpan(log, ref, page.earliest, last);
}
