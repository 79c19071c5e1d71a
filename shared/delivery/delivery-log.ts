/**
 * The delivery log: every attempt to deliver an event and its outcome, retained in the history table for a
 * time. It is only displayed and affects no delivery, so a drain continues if an entry cannot be
 * stored.
 *
 * The entries of a sink are spread over a few partitions by event id, because one partition accepts a limited
 * number of writes a second. Reads merge them by sort key, which begins with the time.
 */
import { typeMatches } from '../events/types.ts';
import type { LoggedEvent } from '../log/log.ts';
import {
  DELIVERY_SHARDS,
  deliveryPk,
  eventDeliveriesPk,
  failuresPk,
  formatTimestamp,
  keys,
} from '../storage/schema.ts';
import type { Durability, Item, Query, Table } from '../storage/table.ts';
import { DeliveryCounter, readDeliveryStatistics, type StatisticsWindow } from './delivery-statistics.ts';
import type { Delivery, DeliveryStatistics, EndpointHealth } from './endpoint-views.ts';
import { type DeliveryOutcome, EXCERPT_BYTES, type SinkRecord } from './sink.ts';

/** One attempt to deliver one event. */
export interface DeliveryEntry {
  readonly region: string;
  readonly sink: string;
  /** Creation time of the sink (epoch ms): an earlier sink may have had the same id. */
  readonly sinkCreatedAt?: number | undefined;
  readonly eventId: string;
  readonly type: string;
  readonly account: string;
  readonly sequence: number;
  readonly jobNumber?: number | undefined;
  /** Start time of the attempt (epoch ms). */
  readonly at: number;
  readonly latencyMs: number;
  readonly outcome: 'delivered' | 'rejected' | 'retry';
  /** Reason for the failure; absent if delivered. */
  readonly reason?: string | undefined;
  /** HTTP status of the response, if there was one. */
  readonly status?: number | undefined;
  /** Beginning of the response: at most 1 kB is stored. */
  readonly excerpt?: string | undefined;
  /** Selected headers of the response; absent if delivered. */
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Cause of the attempt. */
  readonly cause: 'live' | 'parked' | 'replay' | 'resend' | 'ping';
  /** Id of the replay that the attempt belongs to. */
  readonly replay?: string | undefined;
}

/** Converts an entry of the delivery log into a delivery. */
export function toDelivery({ sink: endpoint, eventId: event, ...entry }: DeliveryEntry): Delivery {
  const { jobNumber = null, reason = null, status = null, excerpt = null, replay = null } = entry;
  const { headers = {} } = entry;
  return { ...entry, endpoint, event, jobNumber, reason, status, headers, excerpt, replay };
}

/** Returns the entry of an attempt to deliver an event, between two times (epoch ms). */
export function toDeliveryEntry(
  sink: Pick<SinkRecord, 'id' | 'createdAt'>,
  event: LoggedEvent,
  outcome: DeliveryOutcome,
  attempt: Pick<DeliveryEntry, 'at' | 'cause' | 'replay'> & { readonly endedAt: number },
): DeliveryEntry {
  // Written out without spreading, because it runs for every event.
  return {
    region: event.region,
    sink: sink.id,
    sinkCreatedAt: sink.createdAt,
    eventId: event.id,
    type: event.type,
    account: event.account,
    sequence: event.sequence,
    jobNumber: event.jobNumber,
    at: attempt.at,
    latencyMs: attempt.endedAt - attempt.at,
    outcome: outcome.kind,
    reason: outcome.kind === 'delivered' ? undefined : outcome.reason,
    status: outcome.answer?.status,
    excerpt: outcome.answer?.excerpt,
    headers: outcome.answer?.headers,
    cause: attempt.cause,
    replay: attempt.replay,
  };
}

/** One attempt as a log line: it contains nothing of the request or the response except the status. */
export interface Attempt extends Omit<DeliveryEntry, 'at' | 'excerpt' | 'headers'> {
  /** Time from the observation of the event to the end of the attempt. */
  readonly lagMs: number;
}

/** Parameters of a read of a sink's deliveries. */
export interface DeliveryQuery {
  /** Only entries older than this: `next` of the previous page. */
  readonly before?: string | undefined;
  /**
   * Only attempts for the sink created at this time (epoch ms), and none for earlier sinks of the same id.
   * `null`: a sink that was not created through the API. Default: all sinks of the id.
   */
  readonly sinkCreatedAt?: number | null | undefined;
  /** Only attempts that began at this time or later, and before another time (epoch ms). */
  readonly since?: number | undefined;
  readonly until?: number | undefined;
  /** Only attempts to deliver events of these types: patterns of {@link typeMatches}. */
  readonly types?: readonly string[] | undefined;
  /** Default: 50. */
  readonly limit?: number | undefined;
  /** `failed`: rejected or to be retried. */
  readonly outcome?: DeliveryEntry['outcome'] | 'failed' | undefined;
}

/** The delivery log; see the top of the file. */
export interface DeliveryLog {
  /** Creates the counter of a drain of a sink, from a time on (epoch ms). */
  count(sink: Pick<SinkRecord, 'region' | 'id' | 'createdAt'>, now: number): DeliveryCounter;
  /** Returns the statistics of a sink for a window that ends at a time (epoch ms). */
  statistics(
    sink: Pick<SinkRecord, 'region' | 'id' | 'createdAt'>,
    window: StatisticsWindow,
    now: number,
  ): Promise<DeliveryStatistics>;
  /** Stores any number of entries. Throws `TableError` on failure; then some entries may be stored. */
  record(entries: readonly DeliveryEntry[], durability?: Durability): Promise<void>;
  /**
   * Returns deliveries of a sink, newest first. `next` is present if there may be more. If a filter excludes most of them, the page
   * can have fewer entries than `limit`, because at most {@link EXAMINED_ATTEMPTS} are read for it.
   */
  bySink(
    region: string,
    sink: string,
    query?: DeliveryQuery,
  ): Promise<{ readonly entries: DeliveryEntry[]; readonly next?: string }>;
  /**
   * Returns the last deliveries of one event by all sinks, oldest first. On AWS, very recent ones can be
   * missing.
   */
  byEvent(region: string, eventId: string, limit?: number): Promise<DeliveryEntry[]>;
}

/** Maximum number of attempts read for a page, unless its `limit` requires more. */
export const EXAMINED_ATTEMPTS = 1000;
/** Minimum number of attempts of a range that are read at once, if most of those before were excluded. */
const NEXT_ATTEMPTS = 100;
/** Default retention of entries. */
const RETENTION_DAYS = 30;
/** Time range (ms) of the health statistics. */
const HEALTH_MS = 86_400_000;
const HEALTH_ATTEMPTS = 500;

/** Creates the delivery log over a history table. */
export function createDeliveryLog(
  history: Table,
  options: { readonly retentionDays?: number; readonly newId: () => string },
): DeliveryLog {
  const keptSeconds = (options.retentionDays ?? RETENTION_DAYS) * 86_400;

  return {
    count: (sink, now) => new DeliveryCounter(history, sink, now),
    statistics: (sink, window, now) => readDeliveryStatistics(history, sink, window, now),

    async record(entries, durability) {
      // One id for the whole call. The index after it distinguishes entries of the same millisecond and keeps
      // their order.
      const call = options.newId().slice(-12);
      await history.putMany(
        entries.map((entry, at): Item => {
          const { region, sink, eventId, outcome } = entry;
          return {
            ...keys.delivery(region, sink, eventId, entry.at, `${call}${String(at).padStart(4, '0')}`),
            ttl: Math.floor(entry.at / 1000) + keptSeconds,
            eventPk: eventDeliveriesPk(region, eventId),
            failedPk: outcome === 'delivered' ? undefined : failuresPk(region, sink, outcome),
            sinkCreatedAt: entry.sinkCreatedAt,
            entry: JSON.stringify({
              ...entry,
              reason: truncate(entry.reason),
              excerpt: truncate(entry.excerpt),
            }),
          };
        }),
        durability,
      );
    },

    async bySink(region, sink, query = {}) {
      const { before, since, until, types, limit = 50, outcome, sinkCreatedAt } = query;
      const from = Math.max(since ?? 0, sinkCreatedAt ?? 0);
      // A key is the time followed by more text, so the bare time sorts below all keys of that time.
      const [to] = [before, until === undefined ? undefined : formatTimestamp(until)]
        .filter((bound) => bound !== undefined)
        .sort();
      const { items: found, readTo } = await readNewest(history, listRanges(region, sink, outcome), {
        ...(to === undefined ? {} : { before: to }),
        ...(from === 0 ? {} : { from: formatTimestamp(from) }),
        keep: (item) =>
          // Sparse indexes contain failed attempts only. Nearly all attempts succeed, so those are selected
          // by a filter.
          (outcome !== 'delivered' || item.failedPk === undefined) &&
          // Attempts in progress at an earlier sink can be recorded late.
          (sinkCreatedAt === undefined || (item.sinkCreatedAt ?? sinkCreatedAt) === sinkCreatedAt) &&
          (types === undefined || typeMatches(toEntry(item).type, types)),
        limit: limit + 1,
      });
      const page = found.slice(0, limit);
      const next = found.length > limit ? page.at(-1)?.sk : readTo;
      return { entries: page.map(toEntry), ...(next === undefined ? {} : { next }) };
    },

    async byEvent(region, eventId, limit = 100) {
      const found = await history.query({
        index: 'byEvent',
        pk: eventDeliveriesPk(region, eventId),
        descending: true,
        limit,
      });
      const items = await history.getMany(found);
      return items.sort((a, b) => (a.sk < b.sk ? -1 : 1)).map(toEntry);
    },
  };
}

/** Returns the delivery statistics of a sink for the 24 hours before `now` (epoch ms). One bounded read. */
export async function readDeliveryHealth(
  log: DeliveryLog,
  { region, id, createdAt }: Pick<SinkRecord, 'region' | 'id' | 'createdAt'>,
  now: number,
): Promise<EndpointHealth['statistics']> {
  const { entries } = await log.bySink(region, id, {
    sinkCreatedAt: createdAt ?? null,
    since: now - HEALTH_MS,
    limit: HEALTH_ATTEMPTS,
  });
  const counted = entries.filter(({ cause }) => cause !== 'ping' && cause !== 'resend');
  const latencies = counted
    .filter(({ outcome }) => outcome === 'delivered')
    .map(({ latencyMs }) => latencyMs)
    .sort((a, b) => a - b);
  const lastFailed = counted.find(({ outcome }) => outcome !== 'delivered');
  return {
    attempts: counted.length,
    delivered: latencies.length,
    successRate: counted.length === 0 ? null : latencies.length / counted.length,
    p50Ms: percentile(latencies, 50),
    p95Ms: percentile(latencies, 95),
    lastError: lastFailed ? { at: lastFailed.at, reason: describeFailure(lastFailed) } : null,
  };
}

/** Returns the percentile of sorted values; `null` if there are none. */
function percentile(sorted: readonly number[], percent: number): number | null {
  return sorted[Math.ceil((sorted.length * percent) / 100) - 1] ?? null;
}

function describeFailure({ reason, status }: DeliveryEntry): string {
  return (
    reason ??
    (status === undefined ? 'The delivery failed.' : `The endpoint responded with status ${status}.`)
  );
}

/** Returns the key ranges of a sink's deliveries that can have an outcome. */
function listRanges(region: string, sink: string, outcome: DeliveryQuery['outcome']): Query[] {
  switch (outcome) {
    case 'rejected':
    case 'retry':
      return [{ index: 'failures', pk: failuresPk(region, sink, outcome) }];
    case 'failed':
      return [...listRanges(region, sink, 'rejected'), ...listRanges(region, sink, 'retry')];
    case 'delivered':
    case undefined:
      return Array.from({ length: DELIVERY_SHARDS }, (_, shard) => ({ pk: deliveryPk(region, sink, shard) }));
  }
}

/**
 * Returns the newest items of several ranges, newest first. Each range is first read for its share plus a
 * margin, which is usually enough. A range with more of the newest items is read again, until the maximum
 * number of items was read: then `readTo` is the sort key down to which all ranges were read.
 */
async function readNewest(
  table: Table,
  ranges: readonly Query[],
  wanted: {
    readonly before?: string;
    readonly from?: string;
    readonly limit: number;
    readonly keep?: (item: Item) => boolean;
  },
): Promise<{ readonly items: Item[]; readonly readTo?: string | undefined }> {
  const { before, from, limit, keep = () => true } = wanted;
  const share = ranges.length === 1 ? limit : Math.ceil((limit / ranges.length) * 1.25) + 5;
  let pageItems = share;
  let left = Math.max(EXAMINED_ATTEMPTS, limit);
  const found: Item[] = [];
  /** Ranges with more to read, and the sort key down to which each has been read. */
  let open: { range: Query; to: string | undefined }[] = ranges.map((range) => ({ range, to: before }));
  for (;;) {
    const pages = await Promise.all(
      open.map(async ({ range, to }) => {
        // The upper bound of a range is inclusive; the item at the bound was read before.
        const items = await table.query({
          ...range,
          ...(from === undefined ? {} : { from }),
          ...(to === undefined ? {} : { to }),
          descending: true,
          limit: pageItems + 1,
        });
        found.push(...items.filter((item) => item.sk !== to && keep(item)));
        left -= items.length;
        return items.length > pageItems ? [{ range, to: items.at(-1)?.sk }] : [];
      }),
    );
    open = pages.flat();
    found.sort((a, b) => (a.sk > b.sk ? -1 : 1));
    if (open.length === 0) return { items: found.slice(0, limit) };
    // Unread items of a range sort below its last returned item.
    const [readTo = ''] = open.map(({ to = '' }) => to).sort((a, b) => (a > b ? -1 : 1));
    const complete = found.filter(({ sk }) => sk >= readTo);
    if (complete.length >= limit) return { items: complete.slice(0, limit) };
    if (left <= 0) return { items: complete, readTo };
    // Most items are excluded.
    if (complete.length < limit / 2) pageItems = Math.max(share, NEXT_ATTEMPTS);
  }
}

function toEntry(item: Item): DeliveryEntry {
  return JSON.parse(String(item.entry)) as DeliveryEntry;
}

/** Returns at most {@link EXCERPT_BYTES} of UTF-8, without a partial character. */
function truncate(text: string | undefined): string | undefined {
  if (text === undefined || Buffer.byteLength(text) <= EXCERPT_BYTES) return text;
  // In stream mode, the decoder holds back the bytes of an incomplete character.
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
  return decoder.decode(Buffer.from(text).subarray(0, EXCERPT_BYTES), { stream: true });
}
