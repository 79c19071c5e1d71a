/**
 * Delivery statistics of an endpoint: attempts, failures by HTTP status, and a histogram of the latency, in slots of
 * five minutes. An item of the history table holds the slots of one hour, and expires after 8 days.
 *
 * The drain of an endpoint counts in memory and stores the counters when it has no more work, and every 30 s. It
 * holds the lease, so it is the only writer. It first adds its counts to those that earlier drains have stored.
 * After a crash, the counts since the last store are missing: statistics affect no delivery.
 */
import { formatTimestamp, keys, statisticsPk } from '../storage/schema.ts';
import { type Item, RELAXED, type Table } from '../storage/table.ts';
import type { DeliveryStatistics } from './endpoint-views.ts';
import type { SinkRecord } from './sink.ts';

const SLOT_MS = 300_000;
const HOUR_MS = 3_600_000;
const SLOTS = HOUR_MS / SLOT_MS;
const RETENTION_MS = 8 * 24 * HOUR_MS;
/** Interval (ms) at which a busy drain stores its counters. */
const STORE_EVERY_MS = 30_000;
/** Upper bounds (ms) of the bins of the histogram. One more bin holds longer latencies. */
const BOUNDS_MS = [
  ...[1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100, 150, 200, 300, 500, 700],
  ...[1_000, 1_500, 2_000, 3_000, 5_000, 7_000, 10_000, 15_000],
];
/** The name of failures without a response, among those by HTTP status. */
const NO_RESPONSE = 'none';

/** The windows of statistics: their length, and the length of one point of the series (ms). */
export const WINDOWS = {
  '1h': { lengthMs: HOUR_MS, stepMs: SLOT_MS },
  '24h': { lengthMs: 24 * HOUR_MS, stepMs: HOUR_MS / 2 },
  '7d': { lengthMs: 7 * 24 * HOUR_MS, stepMs: 2 * HOUR_MS },
} as const;
export type StatisticsWindow = keyof typeof WINDOWS;

/** Counts by name; a missing name is 0. */
type Counts = Record<string, number>;

/** The counters of some time. */
interface Counters {
  /** Failed attempts by HTTP status. */
  readonly failures: Counts;
  /** Successful attempts by bin of the latency. */
  readonly latencies: Counts;
}

type EndpointRef = Pick<SinkRecord, 'region' | 'id' | 'createdAt'>;

/** Counted facts of an attempt: its start (epoch ms), its outcome, and the HTTP status of the response. */
interface CountedAttempt {
  readonly at: number;
  readonly outcome: 'delivered' | 'rejected' | 'retry';
  readonly status?: number | undefined;
  readonly latencyMs: number;
}

/** Counts the attempts of one drain. */
export class DeliveryCounter {
  readonly #history: Table;
  readonly #endpoint: EndpointRef;
  /** Slots by hour (start, epoch ms). `isLoaded`: the counts of earlier drains are included. */
  readonly #hours = new Map<number, { slots: Map<number, Counters>; isLoaded: boolean; isStored: boolean }>();
  #storedAt: number;

  constructor(history: Table, endpoint: EndpointRef, now: number) {
    this.#history = history;
    this.#endpoint = endpoint;
    this.#storedAt = now;
  }

  /** Counts an attempt in the slot of its start. */
  count({ at, outcome, status, latencyMs }: CountedAttempt): void {
    const start = toStep(at, HOUR_MS);
    const hour = this.#hours.get(start) ?? { slots: new Map(), isLoaded: false, isStored: false };
    const slot = Math.floor((at - start) / SLOT_MS);
    const counters = hour.slots.get(slot) ?? createCounters();
    if (outcome === 'delivered') increment(counters.latencies, String(findBin(latencyMs)));
    else increment(counters.failures, status === undefined ? NO_RESPONSE : String(status));
    hour.slots.set(slot, counters);
    hour.isStored = false;
    this.#hours.set(start, hour);
  }

  /** Returns whether it is time to store the counters. `now` is epoch ms. */
  isDue(now: number): boolean {
    return now - this.#storedAt >= STORE_EVERY_MS;
  }

  /** Stores the counters that have changed. Throws `TableError` on failure; they are then stored by the next call. */
  async store(now: number): Promise<void> {
    this.#storedAt = now;
    const { region, id, createdAt } = this.#endpoint;
    for (const [start, hour] of [...this.#hours]) {
      if (hour.isStored) continue;
      const key = keys.deliveryStatistics(region, id, start);
      if (!hour.isLoaded) {
        const stored = await this.#history.get(key);
        if (stored && belongsTo(stored, createdAt)) {
          for (const [slot, counters] of parseSlots(stored)) {
            const own = hour.slots.get(slot);
            if (own) addCounters(counters, own);
            hour.slots.set(slot, counters);
          }
        }
        hour.isLoaded = true;
      }
      hour.isStored = true;
      const slots = [...hour.slots].map(([slot, counters]) => [`slot${slot}`, JSON.stringify(counters)]);
      const item = {
        ...{ ...key, sinkCreatedAt: createdAt, ttl: Math.ceil((start + RETENTION_MS) / 1000) },
        ...(Object.fromEntries(slots) as Record<string, string>),
      };
      await this.#history.write({ put: item }, RELAXED).catch((cause: unknown) => {
        hour.isStored = false;
        throw cause;
      });
      if (start < toStep(now, HOUR_MS) - HOUR_MS && hour.isStored) this.#hours.delete(start);
    }
  }
}

/** Reads the statistics of an endpoint for a window that ends now. At most 170 items of one partition. */
export async function readDeliveryStatistics(
  history: Table,
  { region, id, createdAt }: EndpointRef,
  window: StatisticsWindow,
  now: number,
): Promise<DeliveryStatistics> {
  const { lengthMs, stepMs } = WINDOWS[window];
  const from = toStep(now, stepMs) + stepMs - lengthMs;
  const items = await history.query({
    pk: statisticsPk(region, id),
    from: formatTimestamp(toStep(from, HOUR_MS)),
    to: formatTimestamp(now),
  });
  const points = new Map<number, Counters>();
  for (let at = from; at <= now; at += stepMs) points.set(at, createCounters());
  const total = createCounters();
  for (const item of items.filter((one) => belongsTo(one, createdAt))) {
    for (const [slot, counters] of parseSlots(item)) {
      const point = points.get(toStep(Date.parse(item.sk) + slot * SLOT_MS, stepMs));
      if (!point) continue;
      addCounters(point, counters);
      addCounters(total, counters);
    }
  }
  const failures = Object.entries(total.failures)
    .map(([status, count]) => ({ status: status === NO_RESPONSE ? null : Number(status), count }))
    .sort((a, b) => b.count - a.count || (a.status ?? 0) - (b.status ?? 0));
  return {
    ...{ window, from, to: now, stepSeconds: stepMs / 1000 },
    total: { ...toFigures(total), failures },
    points: [...points].map(([at, counters]) => ({ at, ...toFigures(counters) })),
  };
}

/** Reports whether an item belongs to this endpoint, and not to an earlier one of the same id. */
const belongsTo = (item: Item, createdAt: number | undefined): boolean => item.sinkCreatedAt === createdAt;

const toStep = (at: number, stepMs: number): number => Math.floor(at / stepMs) * stepMs;

const createCounters = (): Counters => ({ failures: {}, latencies: {} });

function parseSlots(item: Item): [slot: number, Counters][] {
  return Array.from({ length: SLOTS }, (_, slot) => slot).flatMap((slot): [number, Counters][] => {
    const stored = item[`slot${slot}`];
    return typeof stored === 'string' ? [[slot, JSON.parse(stored) as Counters]] : [];
  });
}

function addCounters(sum: Counters, { failures, latencies }: Counters): void {
  for (const [status, count] of Object.entries(failures)) increment(sum.failures, status, count);
  for (const [bin, count] of Object.entries(latencies)) increment(sum.latencies, bin, count);
}

function increment(counts: Counts, name: string, by = 1): void {
  counts[name] = (counts[name] ?? 0) + by;
}

function findBin(latencyMs: number): number {
  const bin = BOUNDS_MS.findIndex((bound) => latencyMs <= bound);
  return bin < 0 ? BOUNDS_MS.length : bin;
}

function toFigures({ failures, latencies }: Counters) {
  const delivered = sum(latencies);
  const failed = sum(failures);
  const attempts = delivered + failed;
  return {
    ...{ attempts, delivered, failed },
    successRate: attempts === 0 ? null : delivered / attempts,
    p50Ms: estimatePercentile(latencies, delivered, 50),
    p95Ms: estimatePercentile(latencies, delivered, 95),
  };
}

const sum = (counts: Counts): number => Object.values(counts).reduce((a, b) => a + b, 0);

/** Estimates a percentile: interpolates within its bin. In the last bin, returns its lower bound. */
function estimatePercentile(latencies: Counts, count: number, percent: number): number | null {
  const rank = (count * percent) / 100;
  let below = 0;
  for (const [bin, bound] of BOUNDS_MS.entries()) {
    const here = latencies[String(bin)] ?? 0;
    if (here > 0 && below + here >= rank) {
      const lower = BOUNDS_MS[bin - 1] ?? 0;
      return Math.round(lower + ((bound - lower) * (rank - below)) / here);
    }
    below += here;
  }
  return count === 0 ? null : (BOUNDS_MS.at(-1) ?? null);
}
