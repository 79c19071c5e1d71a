/** A sink: somewhere events go. Its record, its cursors over the logs of the accounts it follows, and its port. */
import { typeMatches } from '../events/types.ts';
import { forwardLogs } from '../log/cell-feed.ts';
import type { EventLog, LoggedEvent } from '../log/log.ts';
import {
  type AccountRef,
  cursorPk,
  DRAIN_SHARDS,
  drainDue,
  drainDuePk,
  dueUntil,
  keys,
  sinkPk,
  WAKE_SHARDS,
  wakePk,
} from '../table/schema.ts';
import type { Item, Table, Value } from '../table/table.ts';
import { isReady, type SinkHealth, toHealth } from './health.ts';

/** One event on its way to a sink. */
export interface Delivery {
  readonly event: LoggedEvent;
  /** Sent again because somebody asked for it, not because it is new. */
  readonly replay?: boolean;
}

/** How much of an answer's body is kept, in bytes of UTF-8. */
export const EXCERPT_BYTES = 1024;

/** What a receiver answered, for the delivery log. */
export interface Answer {
  readonly status: number;
  /** The first {@link EXCERPT_BYTES} of the body, as text. */
  readonly excerpt: string;
}

/** The outcome for one event. */
export type DeliveryOutcome = (
  | { readonly kind: 'delivered' }
  /** This event is refused, others may not be. */
  | { readonly kind: 'rejected'; readonly reason: string }
  | {
      /** The sink can take nothing now; `afterMs` when it said for how long. */
      readonly kind: 'retry';
      readonly reason: string;
      readonly afterMs?: number;
      /** It may be this event rather than the sink: a receiver that breaks on one event answers so as well. */
      readonly suspect?: boolean;
    }
) & {
  readonly answer?: Answer;
  /** The receiver wants no more events, whatever became of this one: why, in words. */
  readonly disable?: string;
};

/** What a kind of sink has to do; the drain engine owns everything else. */
export interface SinkPort {
  /** How many events it takes at once. They are of different lanes, so their order among each other does not matter. */
  readonly maxBatch: number;
  /** One outcome per event, in the order given. Never throws for what the receiver does. */
  deliver(deliveries: readonly Delivery[]): Promise<readonly DeliveryOutcome[]>;
}

/** Which events somebody wants; what is absent or empty restricts nothing. All that is given must hold. */
export interface EventFilter {
  /** Types, with a final `*` as a wildcard. */
  readonly types?: readonly string[];
  readonly orderGroups?: readonly string[];
  /** Origin codes of jobs. */
  readonly origins?: readonly string[];
  /** Fields of the job that must have this value; a field the job does not have counts as null. */
  readonly jobFields?: Readonly<Record<string, string | number | boolean | null>>;
}

/** A sink as it is stored. Secrets, and the headers of its own that it may have, stand elsewhere: their values may be secrets too. */
export interface SinkRecord extends EventFilter {
  readonly region: string;
  readonly id: string;
  readonly kind: 'webhook' | 'sns' | 'notifications';
  /** Where: a URL, a topic's ARN, or nowhere (`-`). */
  readonly target: string;
  /** Accounts it follows; empty for all. */
  readonly accounts: readonly string[];
  readonly types: readonly string[];
  /** Lanes that may be under way at once; absent: {@link DEFAULT_CONCURRENCY}. */
  readonly concurrency?: number;
  /** At most so many deliveries a second; absent: as many as it takes. */
  readonly ratePerSecond?: number;
  /** A paused sink keeps its cursors and gets nothing. */
  readonly paused: boolean;
  /** When it was made through the API (epoch ms): an id can be used again. Absent: built in, or declared by the configuration. */
  readonly createdAt?: number;
  /** Identifies it among endpoints of the same id, one after another. Absent like {@link createdAt}. */
  readonly creation?: string;
}

/** A sink and how it is doing. */
export type Sink = SinkRecord & { readonly health: SinkHealth };

/** Lanes of one sink that are under way at the same time, unless its record says otherwise. */
export const DEFAULT_CONCURRENCY = 16;

/** Reads a sink's record and health. */
export function toSink(item: Item): Sink {
  return {
    region: item.pk.slice('SINKS#'.length),
    id: item.sk,
    kind: item.kind as SinkRecord['kind'],
    target: String(item.target),
    accounts: (item.accounts as readonly string[] | undefined) ?? [],
    types: (item.types as readonly string[] | undefined) ?? [],
    ...optional('orderGroups', item.orderGroups as readonly string[] | undefined),
    ...optional('origins', item.origins as readonly string[] | undefined),
    ...optional('jobFields', fromJson<NonNullable<SinkRecord['jobFields']>>(item.jobFields)),
    ...optional('concurrency', item.concurrency as number | undefined),
    ...optional('ratePerSecond', item.ratePerSecond as number | undefined),
    paused: item.paused === true,
    ...optional('createdAt', item.createdAt as number | undefined),
    ...optional('creation', item.creation as string | undefined),
    health: toHealth(item),
  };
}

function fromJson<T>(value: Value | undefined): T | undefined {
  return typeof value === 'string' ? (JSON.parse(value) as T) : undefined;
}

function optional<K extends string, T>(name: K, value: T | undefined): { readonly [P in K]?: T } {
  return (value === undefined ? {} : { [name]: value }) as { readonly [P in K]?: T };
}

/** All sinks of a region. */
export async function listSinks(table: Table, region: string): Promise<Sink[]> {
  return (await table.query({ pk: sinkPk(region) })).map(toSink);
}

/** Whether a sink follows an account. */
export function follows(sink: SinkRecord, account: string): boolean {
  return sink.accounts.length === 0 || sink.accounts.includes(account);
}

/** Whether an event passes a filter: a sink's, or that of a replay. */
export function passes(filter: EventFilter, event: LoggedEvent): boolean {
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

/**
 * Stores a sink, or changes a known one: its cursors and health stay. A sink starts where the logs of the accounts it
 * follows stand now; it gets accounts that are registered later from their beginning.
 */
export async function registerSink(
  table: Table,
  log: EventLog,
  sink: SinkRecord,
  accounts: readonly AccountRef[],
): Promise<void> {
  const { region, id } = sink;
  // Cursors first: were the sink there without them, a wake-up would start it at the beginning.
  for (const { account } of accounts) {
    if (!follows(sink, account)) continue;
    const head = await log.head({ region, account });
    await table.write({
      put: { ...keys.cursor(region, id, account), sink: id, position: head?.sequence ?? 0 },
      when: [['pk', 'absent']],
    });
  }
  await table.write({ update: keys.sink(region, id), set: sinkAttributes(sink) });
}

/** A record as the attributes of its item. */
export function sinkAttributes(sink: SinkRecord): { readonly [attribute: string]: Value | undefined } {
  const { kind, target, accounts, types, orderGroups, origins, concurrency, ratePerSecond, paused } = sink;
  return {
    ...{ kind, target, accounts, types, orderGroups, origins, concurrency, ratePerSecond, paused },
    jobFields: sink.jobFields && JSON.stringify(sink.jobFields),
  };
}

/**
 * Takes up that an account's log grew: marks its cursors due, and names the sinks that can be drained now; sees to it that the
 * cell feed has it. Then the wake mark goes, unless the log grew on. May be called twice, late, or for nothing:
 * also for an account that was deleted since, or for one that has its id now.
 */
export async function wakeSinks(
  table: Table,
  ref: AccountRef,
  grownTo: number,
  now: number,
  forward: () => Promise<boolean> = () => forwardLogs(table, [ref], { now: () => now }),
): Promise<string[]> {
  // Neither waits for the other, but the mark goes only after both.
  const [sinks, forwarded] = await Promise.allSettled([markDue(table, ref, grownTo, now), forward()]);
  if (sinks.status === 'rejected') throw sinks.reason;
  const { ready, isFormer } = sinks.value;
  if (forwarded.status === 'rejected') throw new ForwardError(ref, ready, forwarded.reason);
  if (forwarded.value) await clearWake(table, ref, grownTo, isFormer);
  return ready;
}

/** The cell feed could not be told that an account's log grew. Its sinks are woken; its wake mark is still there. */
export class ForwardError extends Error {
  override readonly name = 'ForwardError';
  /** Those that can be drained now. */
  readonly sinks: readonly string[];

  constructor({ account }: AccountRef, sinks: readonly string[], cause: unknown) {
    super(`The events of ${account} could not be forwarded to the cell feed.`, { cause });
    this.sinks = sinks;
  }
}

/** Marks the cursors of an account due, and names the sinks that can be drained now; whether it was a former log that grew. */
async function markDue(
  table: Table,
  ref: AccountRef,
  grownTo: number,
  now: number,
): Promise<{ readonly ready: string[]; readonly isFormer: boolean }> {
  const sinks = (await listSinks(table, ref.region)).filter((sink) => follows(sink, ref.account));
  // A drain may have been told of it in its process, and be through with it: one read for all saves a write each.
  const known = await table.getMany([
    keys.head(ref),
    ...sinks.map(({ id }) => keys.cursor(ref.region, id, ref.account)),
  ]);
  const head = known.find(({ sk }) => sk === 'HEAD');
  if (!head) return { ready: [], isFormer: true };
  // Never beyond the log as it is: what an earlier one of this id grew to would keep the next wake-ups from being heard.
  const sequence = Math.min(grownTo, Number(head.sequence));
  const through = new Set(
    known
      .filter(({ mark, position }) => Math.max(Number(mark ?? 0), Number(position ?? 0)) >= sequence)
      .map(({ pk }) => pk),
  );
  const behind = sinks.filter(({ id }) => !through.has(cursorPk(ref.region, id)));
  await Promise.all(
    behind.map((sink) =>
      table.write({
        update: keys.cursor(ref.region, sink.id, ref.account),
        set: { sink: sink.id, mark: sequence, ...drainDue(ref.region, sink.id, ref.account, now) },
        when: [
          ['mark', 'absent or <', sequence],
          ['position', 'absent or <', sequence],
        ],
      }),
    ),
  );
  const ready = sinks.filter((sink) => isReady(sink, now)).map((sink) => sink.id);
  return { ready, isFormer: grownTo > sequence };
}

/** What was said by a former log's end stands below its number, and may be news: then only its own mark goes. */
async function clearWake(table: Table, ref: AccountRef, sequence: number, isFormer: boolean): Promise<void> {
  const when = [['sequence', isFormer ? '=' : 'absent or <=', sequence]] as const;
  await table.write({ delete: keys.wake(ref), when });
}

/** The sinks of a region that can be drained now and have something due: after a wait, or when a wake-up was lost. */
export async function dueSinks(table: Table, region: string, now: number): Promise<string[]> {
  const ready = (await listSinks(table, region)).filter((sink) => isReady(sink, now));
  const due = await Promise.all(ready.map(async (sink) => (await dueAtSink(table, sink, now, 1)).length > 0));
  return ready.filter((_, at) => due[at]).map(({ id }) => id);
}

/** The keys of what is due at a sink: cursors, replays, what is set aside. `limit`: of each shard, the first ones. */
export async function dueAtSink(
  table: Table,
  { region, id }: Pick<Sink, 'region' | 'id'>,
  now: number,
  limit?: number,
): Promise<Item[]> {
  const shards = await Promise.all(
    Array.from({ length: DRAIN_SHARDS }, (_, shard) =>
      table.query({
        index: 'due',
        pk: drainDuePk(region, id, shard),
        to: dueUntil(now),
        ...(limit === undefined ? {} : { limit }),
      }),
    ),
  );
  return shards.flat();
}

/** The wake marks of a region that nobody has worked off yet, up to a limit per shard. */
export async function leftoverWakes(
  table: Table,
  region: string,
  limit: number,
): Promise<{ readonly ref: AccountRef; readonly sequence: number }[]> {
  const shards = await Promise.all(
    Array.from({ length: WAKE_SHARDS }, (_, shard) => table.query({ pk: wakePk(region, shard), limit })),
  );
  return shards
    .flat()
    .map((item) => ({ ref: { region, account: item.sk }, sequence: Number(item.sequence) }));
}
