/** The health of an endpoint for display: its state, its backlog, and its recent deliveries. */
import pLimit from 'p-limit';
import type { EventLog } from '../log/log.ts';
import { cursorPk, deadPk, keys, parkedPk } from '../storage/schema.ts';
import type { Item, Table } from '../storage/table.ts';
import { type DeliveryLog, readDeliveryHealth } from './delivery-log.ts';
import type { EndpointHealth } from './endpoint-views.ts';
import { follows, type Sink, toSink, withHealthOfParts } from './sink.ts';

/** Maximum numbers of cursors, heads and parked events read. */
const MAX_CURSORS = 2000;
const MAX_HEADS = 200;
const MAX_PARKED_READ = 1100;
/** Maximum number of dead events counted. */
export const MAX_DEAD = 100;
/** Number of accounts whose backlog is listed, and whose oldest event is read. */
const LISTED_ACCOUNTS = 20;
const READS_AT_ONCE = 10;

/**
 * Returns the health of an endpoint or a built-in sink, or `undefined` if it does not exist. The number of
 * reads is bounded, for any number of accounts.
 */
export async function readEndpointHealth(
  deps: {
    readonly table: Table;
    readonly log: EventLog;
    readonly deliveries: DeliveryLog;
    /** Epoch ms. */
    readonly now: () => number;
  },
  region: string,
  id: string,
): Promise<EndpointHealth | undefined> {
  const { table, log, deliveries, now } = deps;
  const item = await table.get(keys.sink(region, id));
  if (!item) return undefined;
  const sink = (await withHealthOfParts(table, [item])).map(toSink)[0] ?? toSink(item);
  const [backlog, parked, dead, statistics] = await Promise.all([
    readBacklog({ table, log }, sink),
    table.query({ pk: parkedPk(region, id), limit: MAX_PARKED_READ }),
    table.query({ pk: deadPk(region, id), limit: MAX_DEAD }),
    readDeliveryHealth(deliveries, sink, now()),
  ]);
  return {
    ...toHealthState(sink, now()),
    parked: { count: parked.length, oldestAt: minimum(parked.map(({ parkedAt }) => Number(parkedAt))) },
    dead: dead.length,
    backlog,
    statistics,
  };
}

/** Returns the events that a sink has not reached yet. The number of reads is bounded, for any number of accounts. */
export async function readBacklog(
  { table, log }: { readonly table: Table; readonly log: EventLog },
  sink: Sink,
): Promise<EndpointHealth['backlog']> {
  const { region, id } = sink;
  const cursors = await table.query({ pk: cursorPk(region, id), limit: MAX_CURSORS });
  // Due cursors first: the others are at the head, unless a wake-up is in progress. Replays are not part of
  // the backlog.
  const live = cursors.filter(({ sk }) => !sk.includes('#') && follows(sink, sk)).sort(byDue);
  const looked = live.slice(0, MAX_HEADS);
  const heads = await table.getMany(looked.map(({ sk }) => keys.head({ region, account: sk })));
  const behind = looked
    .map(({ sk: account, position }) => {
      const { pk } = keys.head({ region, account });
      const head = heads.find((one) => one.pk === pk);
      return {
        account,
        position: Number(position ?? 0),
        events: Number(head?.sequence ?? 0) - Number(position ?? 0),
      };
    })
    .filter(({ events }) => events > 0);
  // In the order in which they became due, so the oldest event is most likely among the first.
  const oldest = await pLimit(READS_AT_ONCE).map(behind.slice(0, LISTED_ACCOUNTS), ({ account, position }) =>
    oldestAfter(log, region, account, position),
  );
  return {
    events: behind.reduce((sum, { events }) => sum + events, 0),
    oldestAt: minimum(oldest.filter((time) => time !== undefined)),
    accounts: behind
      .map(({ account, events }) => ({ account, events }))
      .sort((a, b) => b.events - a.events)
      .slice(0, LISTED_ACCOUNTS),
    complete: cursors.length < MAX_CURSORS && live.length <= MAX_HEADS,
  };
}

/** Returns the state from the endpoint's item. Pure. */
export function toHealthState(
  { paused, health }: Sink,
  now: number,
): Omit<EndpointHealth, 'parked' | 'dead' | 'backlog' | 'statistics'> {
  const waits = health.waitUntil > now;
  const failing = waits || health.failingSince !== null;
  const state = health.disabledAt !== null ? 'disabled' : paused ? 'paused' : failing ? 'failing' : 'active';
  const { failingSince, disabledAt, lastDeliveredAt, lastFailedAt, lost } = health;
  return {
    state,
    waitUntil: waits ? health.waitUntil : null,
    problem: state === 'disabled' ? (health.disabledReason ?? health.problem) : health.problem,
    ...{ failingSince, disabledAt, lastDeliveredAt, lastFailedAt, lost },
  };
}

/** Sorts due cursors first, the longest due before others. */
function byDue(a: Item, b: Item): number {
  const [left, right] = [a, b].map(({ dueSk }) => (typeof dueSk === 'string' ? dueSk : '~'));
  return (left ?? '') < (right ?? '') ? -1 : left === right ? 0 : 1;
}

async function oldestAfter(
  log: EventLog,
  region: string,
  account: string,
  position: number,
): Promise<number | undefined> {
  const ref = { region, account };
  let page = await log.read(ref, position, 1);
  if (page?.kind === 'gone') {
    page = await log.read(ref, Math.min(page.earliest - 1, page.head.sequence), 1);
  }
  return page?.kind === 'events' ? page.events[0]?.time : undefined;
}

function minimum(values: readonly number[]): number | null {
  return values.length === 0 ? null : values.reduce((a, b) => Math.min(a, b));
}
