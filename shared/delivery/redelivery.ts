/**
 * Redelivery of parked and dead events by filter. Parked events become due in their lanes. Dead events are sent by a
 * replay. So both keep the order within each job, and an interruption loses nothing.
 */
import type { Rejection } from '../resources.ts';
import { deadPk } from '../storage/schema.ts';
import type { Item, Table } from '../storage/table.ts';
import { matchesRejected, type RejectedEventFilter } from './dead-events.ts';
import type { ResourceGenerators } from './endpoint-edits.ts';
import type { Redelivery } from './endpoint-input.ts';
import type { RedeliveryReport } from './endpoint-views.ts';
import {
  type DeadEvent,
  listParked,
  type ParkedEvent,
  retryAllParked,
  toDead,
  toRejectedEvent,
} from './parked-events.ts';
import { type DeadEvents, type ReplayDeps, startDeadReplay } from './replays.ts';

/** Maximum number of dead events that one request examines. */
export const MAX_EXAMINED_DEAD = 10_000;
const PAGE_EVENTS = 1_000;
/** Number of events in a report. */
const LISTED_EVENTS = 20;

/** Sends parked and dead events again, or only counts them (`dryRun`). `isVisible`: accounts of the caller that the sink follows. */
export async function redeliver(
  deps: ReplayDeps,
  { region, id: sink }: { readonly region: string; readonly id: string },
  { states = ['parked', 'dead'], filter: given = {}, dryRun = false }: Redelivery,
  isVisible: (account: string) => boolean,
  generators: Pick<ResourceGenerators, 'newId'>,
): Promise<({ readonly kind: 'redelivered' } & RedeliveryReport) | Rejection> {
  const { table, now } = deps;
  const filter = toFilter(given);
  const isWanted = (event: ParkedEvent | DeadEvent): boolean =>
    isVisible(event.account) && matchesRejected(filter, event);
  const parked = states.includes('parked') ? (await listParked(table, region, sink)).filter(isWanted) : [];
  const { items, complete } = states.includes('dead')
    ? await readDead(table, deadPk(region, sink))
    : { items: [], complete: true };
  const dead = items.map(toDead).filter(isWanted);
  const report = {
    ...{ kind: 'redelivered' as const, dryRun, parked: parked.length, dead: dead.length, complete },
    events: [
      ...parked.map((event) => ({ ...toRejectedEvent(event), state: 'parked' as const })),
      ...dead.map((event) => ({ ...toRejectedEvent(event), state: 'dead' as const })),
    ].slice(0, LISTED_EVENTS),
    replay: null,
  };
  if (dryRun) return report;
  const started =
    dead.length > 0
      ? await startDeadReplay(deps, region, sink, toDeadEvents(dead, filter), generators)
      : null;
  if (started && started.kind !== 'started') return started;
  if (parked.length > 0) await retryAllParked(table, region, sink, { ids: 'all', isWanted }, now());
  return { ...report, replay: started?.replay ?? null };
}

function toFilter({ from, to, ...filter }: NonNullable<Redelivery['filter']>): RejectedEventFilter {
  const times = {
    from: from === undefined ? from : Date.parse(from),
    to: to === undefined ? to : Date.parse(to),
  };
  return { ...filter, ...times };
}

/** Returns the first dead events, by account and sequence, and whether these are all. */
async function readDead(
  table: Table,
  pk: string,
): Promise<{ readonly items: readonly Item[]; readonly complete: boolean }> {
  const items: Item[] = [];
  while (items.length < MAX_EXAMINED_DEAD) {
    const after = items.at(-1)?.sk;
    const page = await table.query({ pk, ...(after === undefined ? {} : { after }), limit: PAGE_EVENTS });
    items.push(...page);
    if (page.length < PAGE_EVENTS) return { items, complete: true };
  }
  return { items, complete: false };
}

/**
 * Returns the range of each account from its first to its last dead event. The time of the last death can be later than now: the clock may
 * have been set back.
 */
function toDeadEvents(dead: readonly DeadEvent[], filter: RejectedEventFilter): DeadEvents {
  const ranges = [...Map.groupBy(dead, ({ account }) => account)].map(([account, events]) => ({
    account,
    position: (events[0]?.sequence ?? 1) - 1,
    end: events.at(-1)?.sequence ?? 0,
  }));
  const until = dead.reduce((last, { diedAt }) => Math.max(last, diedAt), 0);
  return { filter, until, count: dead.length, ranges };
}
