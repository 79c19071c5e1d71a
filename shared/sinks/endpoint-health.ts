/** How an endpoint is doing, for people: its state, how far behind it is, and how its deliveries went lately. */
import pLimit from 'p-limit';
import type { EventLog } from '../log/log.ts';
import { cursorPk, deadPk, keys, parkedPk } from '../table/schema.ts';
import type { Item, Table } from '../table/table.ts';
import { type DeliveryHealth, type DeliveryLog, healthOf } from './delivery-log.ts';
import { follows, type Sink, toSink } from './sink.ts';

/** Instants are epoch ms. */
export interface EndpointHealth {
  /** Failing: nothing was taken since the last failure. */
  readonly state: 'active' | 'paused' | 'failing' | 'disabled';
  /** Until when it is left alone after a failure. */
  readonly waitUntil: number | null;
  /** What is wrong, in a sentence. */
  readonly problem: string | null;
  readonly failingSince: number | null;
  readonly disabledAt: number | null;
  readonly lastDeliveredAt: number | null;
  readonly lastFailedAt: number | null;
  /** Events that fell out of retention before it took them. */
  readonly lost: number;
  /** Events set aside because it refused them, or one before them of the same job. */
  readonly parked: { readonly count: number; readonly oldestAt: number | null };
  /** Events that it refused to the last attempt; those of the last 90 days, {@link MAX_DEAD} at most. */
  readonly dead: number;
  /** Events that it has not come to yet, wanted or not. */
  readonly backlog: {
    readonly events: number;
    /** The time of the oldest of them. */
    readonly oldestAt: number | null;
    /** By account, the longest first, a few of them. */
    readonly accounts: readonly { readonly account: string; readonly events: number }[];
    /** False when there are too many accounts for all to be looked at: then there may be more. */
    readonly complete: boolean;
  };
  readonly lately: DeliveryHealth;
}

/** Cursors, heads and parked events read at most. */
const MAX_CURSORS = 2000;
const MAX_HEADS = 200;
const MAX_PARKED_READ = 1100;
/** Dead events that are counted at most. */
export const MAX_DEAD = 100;
/** Accounts whose backlog is shown, and whose oldest event is looked for. */
const SHOWN_ACCOUNTS = 20;
const READS_AT_ONCE = 10;

/** The health of an endpoint or a built-in sink, or `undefined` when there is none. A bounded number of reads, whatever the accounts. */
export async function endpointHealth(
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
  const sink = toSink(item);
  const [cursors, parked, dead, lately] = await Promise.all([
    table.query({ pk: cursorPk(region, id), limit: MAX_CURSORS }),
    table.query({ pk: parkedPk(region, id), limit: MAX_PARKED_READ }),
    table.query({ pk: deadPk(region, id), limit: MAX_DEAD }),
    healthOf(deliveries, sink, now()),
  ]);
  // Those that are due first: the others are at the head, unless a wake-up is on its way. Replays are not the backlog.
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
  const oldest = await pLimit(READS_AT_ONCE).map(behind.slice(0, SHOWN_ACCOUNTS), ({ account, position }) =>
    oldestAfter(log, region, account, position),
  );
  return {
    ...stateOf(sink, now()),
    parked: { count: parked.length, oldestAt: least(parked.map(({ parkedAt }) => Number(parkedAt))) },
    dead: dead.length,
    backlog: {
      events: behind.reduce((sum, { events }) => sum + events, 0),
      oldestAt: least(oldest.filter((time) => time !== undefined)),
      accounts: behind
        .map(({ account, events }) => ({ account, events }))
        .sort((a, b) => b.events - a.events)
        .slice(0, SHOWN_ACCOUNTS),
      complete: cursors.length < MAX_CURSORS && live.length <= MAX_HEADS,
    },
    lately,
  };
}

/** What its item says. Pure. */
function stateOf(
  { paused, health }: Sink,
  now: number,
): Omit<EndpointHealth, 'parked' | 'dead' | 'backlog' | 'lately'> {
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

/** Due ones first, those that have been longest before others. */
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

function least(values: readonly number[]): number | null {
  return values.length === 0 ? null : values.reduce((a, b) => Math.min(a, b));
}
