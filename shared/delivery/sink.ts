/**
 * A sink: a destination of events. Its record, its cursors over the logs of the accounts it follows, and its
 * port.
 */

import pLimit from 'p-limit';
import type { EndpointKind } from '../built-in-sinks.ts';
import { typeMatches } from '../events/types.ts';
import type { EventLog, LoggedEvent } from '../log/log.ts';
import { hasAttributes } from '../resources.ts';
import {
  type AccountRef,
  ALL_ACCOUNTS,
  cursorPk,
  drainDue,
  getDrainNames,
  isPart,
  keys,
  sinkPk,
} from '../storage/schema.ts';
import type { Item, Table, Value } from '../storage/table.ts';
import { combineHealth, healthAttributes, resumeHealth, type SinkHealth, toHealth } from './health.ts';

/** Maximum number of concurrent reads and writes. */
const AT_ONCE = 32;

/** The delivery of one event to a sink. */
export interface Delivery {
  readonly event: LoggedEvent;
  /** Id of the request (a replay or a resend) with which the event is sent again. Absent: the event is new. */
  readonly replay?: string;
}

/** Number of bytes (UTF-8) of a response body that are retained. */
export const EXCERPT_BYTES = 1024;

/** A receiver's response, for the delivery log. */
export interface ReceiverResponse {
  readonly status: number;
  /** The first {@link EXCERPT_BYTES} of the body, as text. */
  readonly excerpt: string;
  /** Those headers that help to find the cause of a failure, by lower-case name. Absent: none, or delivered. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** The outcome for one event. */
export type DeliveryOutcome = (
  | { readonly kind: 'delivered' }
  /** The receiver rejects this event, perhaps not others. */
  | { readonly kind: 'rejected'; readonly reason: string }
  | {
      /** The sink accepts nothing now; `afterMs` if the receiver gave a time. */
      readonly kind: 'retry';
      readonly reason: string;
      readonly afterMs?: number;
      /**
       * Whether the cause may be this event rather than the sink: a receiver that fails on one event responds
       * the same way.
       */
      readonly suspect?: boolean;
    }
) & {
  readonly answer?: ReceiverResponse;
  /** Reason why the receiver requests no more events, independent of the outcome of this one. */
  readonly disable?: string;
};

/** The port of a sink kind; the drain engine does everything else. */
export interface SinkPort {
  /**
   * Maximum number of events per call. They are of different lanes, so their order among each other does not
   * matter.
   */
  readonly maxBatch: number;
  /**
   * Delivers events. Returns one outcome per event, in the given order. Never throws because of the receiver.
   */
  deliver(deliveries: readonly Delivery[]): Promise<readonly DeliveryOutcome[]>;
}

/** An event filter. An absent or empty field restricts nothing. All given fields must match. */
export interface EventFilter {
  /** Event types, with a final `*` as a wildcard. */
  readonly types?: readonly string[];
  readonly orderGroups?: readonly string[];
  /** Origin codes of jobs. */
  readonly origins?: readonly string[];
  /** Job fields and their required values. A field that the job lacks counts as `null`. */
  readonly jobFields?: Readonly<Record<string, string | number | boolean | null>>;
}

/**
 * A sink as stored. Secrets and custom headers are stored elsewhere, because header values may be secrets
 * too.
 */
export interface SinkRecord extends EventFilter {
  readonly region: string;
  readonly id: string;
  readonly kind: EndpointKind | 'sns' | 'eventbridge' | 'notifications';
  /** Target: a URL, the ARN of a queue, topic or bus, or none (`-`). */
  readonly target: string;
  /** Accounts that it follows. Empty: all. */
  readonly accounts: readonly string[];
  readonly types: readonly string[];
  /** Maximum number of concurrent lanes. Default: that of `lanes.ts`. */
  readonly concurrency?: number;
  /** Maximum number of deliveries per second. Default: unlimited. */
  readonly ratePerSecond?: number;
  /** Whether it is paused: it keeps its cursors and gets no events. */
  readonly paused: boolean;
  /**
   * Creation time if created through the API (epoch ms): an id can be reused. Absent: built in, or declared
   * by the configuration.
   */
  readonly createdAt?: number;
  /** Identifies the sink among successive endpoints of the same id. Absent like {@link createdAt}. */
  readonly creation?: string;
}

/** A sink with its health. */
export type Sink = SinkRecord & { readonly health: SinkHealth };

/** Attributes that a record has only if they are set. */
const OPTIONAL = ['orderGroups', 'origins', 'concurrency', 'ratePerSecond', 'createdAt', 'creation'] as const;

/** Reads a sink's record and health. */
export function toSink(item: Item): Sink {
  const optional = OPTIONAL.filter((name) => item[name] !== undefined).map((name) => [name, item[name]]);
  return {
    region: item.pk.slice('SINKS#'.length),
    id: item.sk,
    kind: item.kind as SinkRecord['kind'],
    target: String(item.target),
    accounts: (item.accounts as readonly string[] | undefined) ?? [],
    types: (item.types as readonly string[] | undefined) ?? [],
    ...(typeof item.jobFields === 'string' && { jobFields: JSON.parse(item.jobFields) }),
    ...(Object.fromEntries(optional) as Partial<SinkRecord>),
    paused: item.paused === true,
    health: toHealth(item),
  };
}

/** Returns all sinks of a region. */
export async function listSinks(table: Table, region: string): Promise<Sink[]> {
  return (await withHealthOfParts(table, await table.query({ pk: sinkPk(region) }))).map(toSink);
}

/** Returns the items of sinks; a divided sink with the combined health of its parts. */
export async function withHealthOfParts(table: Table, items: readonly Item[]): Promise<Item[]> {
  const states = items.map((item) => {
    const region = item.pk.slice('SINKS#'.length);
    const names = getDrainNames(item.sk);
    return names.length === 1 ? [] : names.map((name) => keys.sinkState(region, name));
  });
  const parts = states.some((keysOfParts) => keysOfParts.length > 0)
    ? await table.getMany(states.flat())
    : [];
  return items.map((item, at) => {
    const own = parts.filter(({ pk, sk }) => states[at]?.some((key) => key.pk === pk && key.sk === sk));
    if (own.length === 0) return item;
    const combined = combineHealth(own.map(toHealth));
    const lost = combined.lost + toHealth(item).lost;
    return { ...item, ...healthAttributes({ ...combined, lost }) };
  });
}

/** Returns the item of a divided sink with the state of one part. A part without a state starts with that of the sink. */
export function withStateOfPart(sink: Item, part: Item | undefined): Item {
  const { pk, sk } = sink;
  if (!part) return { ...sink, lost: undefined, leaseToken: undefined };
  return { ...sink, parking: undefined, ...healthAttributes(toHealth(part)), ...part, pk, sk };
}

/** Reports whether a sink follows an account. */
export function follows(sink: SinkRecord, account: string): boolean {
  return sink.accounts.length === 0 || sink.accounts.includes(account);
}

/** Reports whether an event passes a filter: a sink's, or that of a replay. */
export function matchesFilter(filter: EventFilter, event: LoggedEvent): boolean {
  const { types = [], orderGroups = [], origins = [], jobFields = {} } = filter;
  if (types.length > 0 && !typeMatches(event.type, types)) return false;
  const fields = Object.entries(jobFields);
  if (orderGroups.length === 0 && origins.length === 0 && fields.length === 0) return true;
  const { data } = JSON.parse(event.json) as {
    data: { orderGroup?: string; job?: Readonly<Record<string, unknown>> };
  };
  const group = data.orderGroup ?? data.job?.orderGroup;
  if (orderGroups.length > 0 && !(typeof group === 'string' && orderGroups.includes(group))) return false;
  const origin = data.job?.originCode;
  if (origins.length > 0 && !(typeof origin === 'string' && origins.includes(origin))) return false;
  return fields.every(([name, value]) => data.job !== undefined && (data.job[name] ?? null) === value);
}

/** Stores a sink: see {@link registerSinks}. */
export function registerSink(
  table: Table,
  log: EventLog,
  sink: SinkRecord,
  accounts: readonly AccountRef[],
  now = Date.now(),
): Promise<void> {
  return registerSinks(table, log, [sink], accounts, now);
}

/**
 * Stores sinks of one region, or updates known ones; their cursors stay. A new sink starts at the current heads
 * of the logs it follows. Accounts that are registered later are delivered from their beginning. An account that
 * is added again is delivered from its cursor, which becomes due at `now` (epoch ms). A failing sink is probed at once if its target
 * changes, or if it was paused. A divided sink whose target changes is also enabled: a deployment has replaced its topic or bus.
 * Unchanged items are not written.
 * Each head is read twice, however many sinks follow its log.
 */
export async function registerSinks(
  table: Table,
  log: EventLog,
  sinks: readonly SinkRecord[],
  accounts: readonly AccountRef[],
  now: number,
): Promise<void> {
  const limit = pLimit(AT_ONCE);
  const readHeads = async () =>
    new Map(
      await limit.map(accounts, async (ref) => [ref.account, (await log.head(ref))?.sequence ?? 0] as const),
    );
  const before = await readHeads();
  const behind: { readonly sink: SinkRecord; readonly account: string }[] = [];
  // Cursors first: a wake-up of a sink without cursors would start it at the beginning.
  for (const sink of sinks) {
    const { region, id } = sink;
    const followed = [...before].filter(([account]) => follows(sink, account));
    const stored = await (sink.accounts.length > 0 || followed.length === 0
      ? table.getMany(followed.map(([account]) => keys.cursor(region, id, account)))
      : table.query({ pk: cursorPk(region, id) }));
    const cursors = new Map(stored.map((cursor) => [cursor.sk, cursor]));
    await limit.map(followed, async ([account, head]) => {
      const put = { ...keys.cursor(region, id, account), sink: id, position: head };
      const item = cursors.get(account) ?? (await table.write({ put, when: [['pk', 'absent']] })).item;
      if (item && item.dueSk === undefined && Number(item.position ?? 0) < head)
        behind.push({ sink, account });
    });
  }
  await limit.map(sinks, async (sink) => {
    const attributes = sinkAttributes(sink);
    const item = await table.get(keys.sink(sink.region, sink.id));
    if (item && hasAttributes(item, attributes)) return;
    await putFollowers(table, sink);
    const isMoved = item !== undefined && item.target !== sink.target;
    if (isMoved) await enableParts(table, sink, now);
    const set = {
      ...attributes,
      ...(isMoved ? { waitUntil: undefined } : {}),
      ...(item?.paused === true && !sink.paused ? resumeHealth(item, now) : {}),
    };
    await table.write({ update: keys.sink(sink.region, sink.id), set });
  });
  // A wake-up in the meantime did not find the sinks.
  for (const [account, head] of await readHeads()) {
    if (head === before.get(account)) continue;
    for (const sink of sinks) if (follows(sink, account)) behind.push({ sink, account });
  }
  // Last, because a drain of a sink that does not follow the account ends its due work.
  await limit.map(behind, ({ sink, account }) => markCursorDue(table, sink, account, now));
}

/** Enables the parts of a divided sink that has a new target. Failures at the former target do not count. */
async function enableParts(table: Table, { region, id }: SinkRecord, now: number): Promise<void> {
  const names = getDrainNames(id).filter(isPart);
  const parts = await table.getMany(names.map((name) => keys.sinkState(region, name)));
  const enabled = { disabledAt: undefined, disabledReason: undefined };
  await Promise.all(
    parts.map((part) => {
      const { pk, sk } = part;
      return table.write({ update: { pk, sk }, set: { ...resumeHealth(part, now), ...enabled } });
    }),
  );
}

/** Marks a cursor due, unless it is due or was deleted. */
export async function markCursorDue(
  table: Table,
  { region, id }: Pick<SinkRecord, 'region' | 'id'>,
  account: string,
  now: number,
): Promise<void> {
  await table.write({
    update: keys.cursor(region, id, account),
    set: drainDue(region, id, account, now),
    when: [
      ['sink', 'present'],
      ['dueSk', 'absent'],
    ],
  });
}

/**
 * Indexes a sink by the accounts that it follows, so that a wake-up of an account finds it. Before the sink's
 * item: an index entry of a sink that does not follow the account has no effect.
 */
export async function putFollowers(
  table: Table,
  { region, id, accounts }: Pick<SinkRecord, 'region' | 'id' | 'accounts'>,
): Promise<void> {
  const followed = accounts.length > 0 ? accounts : [ALL_ACCOUNTS];
  await table.putMany(followed.map((account) => ({ ...keys.follower({ region, account }, id) })));
}

/** Converts a record to the attributes of its item. */
export function sinkAttributes(sink: SinkRecord): { readonly [attribute: string]: Value | undefined } {
  const { kind, target, accounts, types, orderGroups, origins, concurrency, ratePerSecond, paused } = sink;
  return {
    ...{ kind, target, accounts, types, orderGroups, origins, concurrency, ratePerSecond, paused },
    jobFields: sink.jobFields && JSON.stringify(sink.jobFields),
  };
}
