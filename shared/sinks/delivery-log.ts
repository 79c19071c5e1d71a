/**
 * The delivery log: every attempt to deliver an event and what became of it, kept in the history table for a while. It is
 * only looked back at; nothing goes by it, so a drain goes on when an entry could not be kept.
 *
 * The entries of a sink are spread over a few partitions by the event's id, for one partition takes only so many writes a
 * second; they are put together again by their sort keys, which begin with the instant.
 */
import {
  DELIVERY_SHARDS,
  deliveryPk,
  eventDeliveriesPk,
  failuresPk,
  instantText,
  keys,
} from '../table/schema.ts';
import type { Item, Query, Table } from '../table/table.ts';
import { EXCERPT_BYTES, type SinkRecord } from './sink.ts';

/** One attempt to deliver one event. */
export interface DeliveryEntry {
  readonly region: string;
  readonly sink: string;
  /** When the sink was made (epoch ms): its id may have been that of another one before. */
  readonly sinkCreatedAt?: number | undefined;
  readonly eventId: string;
  readonly type: string;
  readonly account: string;
  readonly sequence: number;
  readonly jobNumber?: number | undefined;
  /** When the attempt began (epoch ms). */
  readonly at: number;
  readonly latencyMs: number;
  readonly outcome: 'delivered' | 'rejected' | 'retry';
  /** In words, when it was not delivered. */
  readonly reason?: string | undefined;
  /** The status of the answer, if there was one. */
  readonly status?: number | undefined;
  /** How the response began: at most 1 kB is kept. */
  readonly excerpt?: string | undefined;
  /** Why it was sent. */
  readonly cause: 'live' | 'parked' | 'replay' | 'resend' | 'ping';
  /** The replay it belongs to. */
  readonly replay?: string | undefined;
}

/** One attempt as a line of a log: nothing of what was sent or answered is in it but the status. */
export interface Attempt extends Omit<DeliveryEntry, 'at' | 'excerpt'> {
  /** From when the event was observed until the attempt was over. */
  readonly lagMs: number;
}

/** Which deliveries of a sink are asked for. */
export interface DeliveryQuery {
  /** Only what is older than this: the `next` of the page before. */
  readonly before?: string | undefined;
  /**
   * Only attempts for the sink that was made then (epoch ms), and none for earlier ones of the same id; null: for one that
   * was not made through the API. Absent: all of that id.
   */
  readonly sinkCreatedAt?: number | null | undefined;
  /** Only attempts that began then or later (epoch ms). */
  readonly since?: number | undefined;
  /** 50 unless told. */
  readonly limit?: number | undefined;
  /** `failed`: rejected or to be retried. */
  readonly outcome?: DeliveryEntry['outcome'] | 'failed' | undefined;
}

/** See the top of the file. */
export interface DeliveryLog {
  /** Keeps entries, any number of them. Throws TableError when it could not; then some are kept and some are not. */
  record(entries: readonly DeliveryEntry[]): Promise<void>;
  /** Deliveries of a sink, newest first; `next` is there when there are more. */
  bySink(
    region: string,
    sink: string,
    query?: DeliveryQuery,
  ): Promise<{ readonly entries: DeliveryEntry[]; readonly next?: string }>;
  /** The last deliveries of one event, by all sinks, first to last. On AWS those of the last moment can be missing. */
  byEvent(region: string, eventId: string, limit?: number): Promise<DeliveryEntry[]>;
}

/** How long entries are kept unless told. */
const RETENTION_DAYS = 30;
/** What health is judged by. */
const HEALTH_MS = 86_400_000;
const HEALTH_ATTEMPTS = 500;

/** The delivery log over a history table. */
export function createDeliveryLog(
  history: Table,
  options: { readonly retentionDays?: number; readonly newId: () => string },
): DeliveryLog {
  const keptSeconds = (options.retentionDays ?? RETENTION_DAYS) * 86_400;

  return {
    async record(entries) {
      // One id for all; the place behind it tells those of one millisecond apart, and keeps their order.
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
              reason: beginningOf(entry.reason),
              excerpt: beginningOf(entry.excerpt),
            }),
          };
        }),
      );
    },

    async bySink(region, sink, { before, since, limit = 50, outcome, sinkCreatedAt } = {}) {
      const from = Math.max(since ?? 0, sinkCreatedAt ?? 0);
      const found = await newestOf(history, rangesOf(region, sink, outcome), {
        ...(before === undefined ? {} : { before }),
        ...(from === 0 ? {} : { from: instantText(from) }),
        keep: (item) =>
          // Sparse indexes hold those that failed; those that did not are nearly all, and are picked out.
          (outcome !== 'delivered' || item.failedPk === undefined) &&
          // What an earlier sink had under way can come late.
          (sinkCreatedAt === undefined || (item.sinkCreatedAt ?? sinkCreatedAt) === sinkCreatedAt),
        limit: limit + 1,
      });
      const page = found.slice(0, limit);
      const next = found.length > limit ? page.at(-1)?.sk : undefined;
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

/** How a sink fared lately. */
export interface DeliveryHealth {
  /** Attempts of the last 24 hours, the last 500 at most; pings and resends don't count. */
  readonly attempts: number;
  readonly delivered: number;
  /** From 0 to 1; absent without attempts. */
  readonly successRate?: number;
  /** Of what was delivered: half was as fast as this, or faster. */
  readonly p50Ms?: number;
  readonly p95Ms?: number;
  /** The last attempt that failed: when it began (epoch ms), and why in words. */
  readonly lastError?: { readonly at: number; readonly reason: string };
}

/** How a sink fared in the 24 hours before `now` (epoch ms). One bounded read. */
export async function healthOf(
  log: DeliveryLog,
  { region, id, createdAt }: Pick<SinkRecord, 'region' | 'id' | 'createdAt'>,
  now: number,
): Promise<DeliveryHealth> {
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
  const p50Ms = percentile(latencies, 50);
  const p95Ms = percentile(latencies, 95);
  return {
    attempts: counted.length,
    delivered: latencies.length,
    ...(counted.length === 0 ? {} : { successRate: latencies.length / counted.length }),
    ...(p50Ms === undefined ? {} : { p50Ms }),
    ...(p95Ms === undefined ? {} : { p95Ms }),
    ...(lastFailed === undefined ? {} : { lastError: { at: lastFailed.at, reason: inWords(lastFailed) } }),
  };
}

/** The smallest of sorted values that so many per cent are not above; none of none. */
function percentile(sorted: readonly number[], percent: number): number | undefined {
  return sorted[Math.ceil((sorted.length * percent) / 100) - 1];
}

function inWords({ reason, status }: DeliveryEntry): string {
  return reason ?? (status === undefined ? 'The delivery failed.' : `The answer was ${status}.`);
}

/** Where the deliveries of a sink stand that can have an outcome. */
function rangesOf(region: string, sink: string, outcome: DeliveryQuery['outcome']): Query[] {
  switch (outcome) {
    case 'rejected':
    case 'retry':
      return [{ index: 'failures', pk: failuresPk(region, sink, outcome) }];
    case 'failed':
      return [...rangesOf(region, sink, 'rejected'), ...rangesOf(region, sink, 'retry')];
    case 'delivered':
    case undefined:
      return Array.from({ length: DELIVERY_SHARDS }, (_, shard) => ({ pk: deliveryPk(region, sink, shard) }));
  }
}

/**
 * The newest items of several ranges together, newest first. Each range is asked for its share and a little more, which is
 * mostly enough; where one has more of the newest than that, it is asked again.
 */
async function newestOf(
  table: Table,
  ranges: readonly Query[],
  wanted: {
    readonly before?: string;
    readonly from?: string;
    readonly limit: number;
    readonly keep?: (item: Item) => boolean;
  },
): Promise<Item[]> {
  const { before, from, limit, keep = () => true } = wanted;
  const pageItems = ranges.length === 1 ? limit : Math.ceil((limit / ranges.length) * 1.25) + 5;
  const found: Item[] = [];
  /** Ranges with more to read, and how far down each has been read. */
  let open: { range: Query; to: string | undefined }[] = ranges.map((range) => ({ range, to: before }));
  for (;;) {
    const pages = await Promise.all(
      open.map(async ({ range, to }) => {
        // The upper bound of a range is inclusive; what stands there was read before.
        const items = await table.query({
          ...range,
          ...(from === undefined ? {} : { from }),
          ...(to === undefined ? {} : { to }),
          descending: true,
          limit: pageItems + 1,
        });
        found.push(...items.filter((item) => item.sk !== to && keep(item)));
        return items.length > pageItems ? [{ range, to: items.at(-1)?.sk }] : [];
      }),
    );
    open = pages.flat();
    found.sort((a, b) => (a.sk > b.sk ? -1 : 1));
    const enough = found[limit - 1];
    // What is still to be read stands below what its range has given.
    if (open.length === 0 || (enough && open.every(({ to }) => to !== undefined && to <= enough.sk))) {
      return found.slice(0, limit);
    }
  }
}

function toEntry(item: Item): DeliveryEntry {
  return JSON.parse(String(item.entry)) as DeliveryEntry;
}

/** At most {@link EXCERPT_BYTES} of UTF-8, no character by half. */
function beginningOf(text: string | undefined): string | undefined {
  if (text === undefined || Buffer.byteLength(text) <= EXCERPT_BYTES) return text;
  // In a stream, the bytes of a character that is not yet whole are held back.
  const decoder = new TextDecoder('utf-8', { ignoreBOM: true });
  return decoder.decode(Buffer.from(text).subarray(0, EXCERPT_BYTES), { stream: true });
}
