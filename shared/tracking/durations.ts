/**
 * Usual durations of an account: how long its jobs stay in each status, and how long it takes from the beginning of a
 * stay until dispatch. Also the results of its risk flags. docs/truth.md defines them (rule 22).
 *
 * Both are counted in the transaction that carries the events from which they follow, so each counts once: see
 * rollups.ts. One item per account has the counts of the current month and of the months before. Durations are
 * counted in fixed buckets on a logarithmic scale, so that months can be added up and an item stays small.
 */
import { type AccountRef, keys } from '../storage/schema.ts';
import type { Item, Write } from '../storage/table.ts';

/** Kinds of durations: in the status, and from the beginning of the stay until dispatch. */
export type DurationKind = 'stay' | 'remaining';

/** A duration that a job had in or from a status (ms). */
export interface Duration {
  readonly status: string;
  readonly kind: DurationKind;
  readonly ms: number;
}

/** Result of a job whose due time has passed, or that was dispatched before. */
export interface RiskResult {
  readonly late: boolean;
  /** Time for which the job was flagged as at risk before its due time (ms). `undefined`: it was not flagged. */
  readonly flaggedBeforeMs: number | undefined;
}

/** Numbers of jobs with a result. */
export interface FlagCounts {
  /** Jobs that were flagged as at risk, and how many of these became late. */
  readonly flagged: number;
  readonly flaggedLate: number;
  /** Jobs that became late, and how many of these were flagged at least a day before their due time. */
  readonly late: number;
  readonly lateFlaggedDayBefore: number;
}

/** Minimum number of jobs for a usual duration. With fewer it is unknown. */
export const MIN_JOBS = 10;
/** Months whose durations are counted, and weeks whose results are counted, including the current ones. */
export const DURATION_MONTHS = 3;
export const RESULT_WEEKS = 8;
/** Maximum number of statuses in a month, and maximum length of their names. Others have no usual durations. */
const MAX_STATUSES = 40;
const MAX_STATUS_LENGTH = 200;
/** Maximum size of the item: each month has two histograms for each status. */
export const DURATIONS_BYTES = 200_000;

const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;
/** Upper bound of the first bucket (ms), and number of buckets in which the bound doubles. */
const FIRST_BOUND_MS = 300_000;
const BUCKETS_PER_DOUBLING = 4;
/** Last bucket. Its bound is 323 days. */
const LAST_BUCKET = 66;

/** Returns the upper bound of a bucket (ms). Every duration in a bucket counts as its upper bound. */
function toBound(bucket: number): number {
  return Math.round(FIRST_BOUND_MS * 2 ** (bucket / BUCKETS_PER_DOUBLING));
}

function toBucket(ms: number): number {
  const bucket = Math.ceil(BUCKETS_PER_DOUBLING * Math.log2(ms / FIRST_BOUND_MS) - 1e-6);
  return Math.min(LAST_BUCKET, Math.max(0, bucket));
}

/**
 * Returns the duration to count if it is only known to be between two values (ms): the longer value. Returns `undefined`
 * if they differ by more than an hour and also by more than a fifth of the longer value.
 */
export function toCountedDuration(least: number, most: number): number | undefined {
  return most > 0 && most - Math.max(0, least) <= Math.max(HOUR_MS, most / 5) ? most : undefined;
}

/** Durations of a status: the upper bounds of their buckets (ms), in ascending order, with the number of jobs. */
export class Histogram {
  readonly #entries: readonly (readonly [ms: number, jobs: number])[];
  readonly jobs: number;

  constructor(counts: ReadonlyMap<number, number> = new Map()) {
    const buckets = [...counts].sort(([a], [b]) => a - b);
    this.#entries = buckets.map(([bucket, jobs]) => [toBound(bucket), jobs]);
    this.jobs = buckets.reduce((sum, [, jobs]) => sum + jobs, 0);
  }

  /** The different durations (ms), in ascending order. */
  get durations(): readonly number[] {
    return this.#entries.map(([ms]) => ms);
  }

  /** Returns the number of jobs with a longer duration. */
  countLongerThan(ms: number): number {
    return this.#entries.reduce((sum, [bound, jobs]) => (bound > ms ? sum + jobs : sum), 0);
  }

  /**
   * Returns the duration (ms) that this share of the jobs did not exceed, of the jobs with a longer duration than
   * `longerThan`. `undefined`: there are none.
   */
  quantile(share: number, longerThan = 0): number | undefined {
    const compared = this.#entries.filter(([bound]) => bound > longerThan);
    let left = share * compared.reduce((sum, [, jobs]) => sum + jobs, 0);
    for (const [bound, jobs] of compared) {
      left -= jobs;
      if (left <= 1e-9) return bound;
    }
    return undefined;
  }
}

/** Number of jobs by bucket, for each kind, for each status. */
type Month = Map<string, { readonly [K in DurationKind]: Map<number, number> }>;
type StoredMonth = {
  readonly [status: string]: { readonly [K in DurationKind]: readonly [number, number][] };
};

const NO_FLAGS: FlagCounts = { flagged: 0, flaggedLate: 0, late: 0, lateFlaggedDayBefore: 0 };

/** The durations and results of an account, as stored, with what a poll adds to them. */
export class Durations {
  readonly #now: number;
  /** By month (YYYY-MM). */
  readonly #months: Map<string, Month>;
  /** By Monday of the week (YYYY-MM-DD, UTC). */
  readonly #weeks: Map<string, FlagCounts>;
  #changed = false;

  /** `item`: absent before the first count. `now`: time of the counts that are added (epoch ms). */
  constructor(item: Item | undefined, now: number) {
    this.#now = now;
    const stored = item ? (JSON.parse(String(item.figures)) as Stored) : { months: {}, weeks: {} };
    const [firstMonth, firstWeek] = [this.firstMonth, this.firstWeek];
    this.#months = new Map(
      Object.entries(stored.months).flatMap(([month, statuses]) =>
        month < firstMonth ? [] : [[month, toMonth(statuses)] as const],
      ),
    );
    this.#weeks = new Map(Object.entries(stored.weeks).filter(([week]) => week >= firstWeek));
  }

  /** First month (YYYY-MM) with a duration and first week (its Monday) with a result. The current ones if there are none. */
  get firstCountedMonth(): string {
    return [...this.#months.keys()].sort()[0] ?? new Date(this.#now).toISOString().slice(0, 7);
  }
  get firstCountedWeek(): string {
    return [...this.#weeks.keys()].sort()[0] ?? toMonday(this.#now);
  }

  /** First month and first week that are kept. */
  get firstMonth(): string {
    const today = new Date(this.#now);
    const first = Date.UTC(today.getUTCFullYear(), today.getUTCMonth() + 1 - DURATION_MONTHS);
    return new Date(first).toISOString().slice(0, 7);
  }
  get firstWeek(): string {
    return toMonday(this.#now - (RESULT_WEEKS - 1) * 7 * DAY_MS);
  }

  /** The statuses with a duration. */
  get statuses(): readonly string[] {
    return [...new Set([...this.#months.values()].flatMap((month) => [...month.keys()]))];
  }

  /** Number of jobs with a result in all weeks. */
  get results(): FlagCounts {
    return [...this.#weeks.values()].reduce(addFlags, NO_FLAGS);
  }

  /** Returns the durations of a status in all months. */
  of(status: string, kind: DurationKind): Histogram {
    const sums = new Map<number, number>();
    for (const month of this.#months.values()) {
      for (const [bucket, jobs] of month.get(status)?.[kind] ?? []) {
        sums.set(bucket, (sums.get(bucket) ?? 0) + jobs);
      }
    }
    return new Histogram(sums);
  }

  /** Replaces former status names: `toCurrent` returns the current name. */
  rename(toCurrent: (name: string) => string): void {
    for (const [name, month] of this.#months) {
      const renamed: Month = new Map();
      for (const [status, counts] of month) {
        const sums = renamed.get(toCurrent(status)) ?? { stay: new Map(), remaining: new Map() };
        for (const kind of ['stay', 'remaining'] as const) {
          for (const [bucket, jobs] of counts[kind]) increment(sums[kind], bucket, jobs);
        }
        renamed.set(toCurrent(status), sums);
      }
      this.#months.set(name, renamed);
    }
  }

  add(durations: readonly Duration[], result: RiskResult | undefined): void {
    const thisMonth = new Date(this.#now).toISOString().slice(0, 7);
    const month: Month = this.#months.get(thisMonth) ?? new Map();
    for (const { status, kind, ms } of durations) {
      if (!month.has(status) && (month.size >= MAX_STATUSES || status.length > MAX_STATUS_LENGTH)) continue;
      const counts = month.get(status) ?? { stay: new Map(), remaining: new Map() };
      increment(counts[kind], toBucket(ms), 1);
      month.set(status, counts);
      this.#months.set(thisMonth, month);
      this.#changed = true;
    }
    if (!result) return;
    const week = toMonday(this.#now);
    this.#weeks.set(week, addFlags(this.#weeks.get(week) ?? NO_FLAGS, toFlagCounts(result)));
    this.#changed = true;
  }

  /** Returns the write of what was added since the last call. */
  takeWrites(ref: AccountRef): Write[] {
    if (!this.#changed) return [];
    this.#changed = false;
    const months = [...this.#months].map(([month, statuses]) => [month, toStoredMonth(statuses)] as const);
    const figures: Stored = {
      months: Object.fromEntries(months),
      weeks: Object.fromEntries(this.#weeks),
    };
    return [{ put: { ...keys.durations(ref), figures: JSON.stringify(figures) } }];
  }
}

interface Stored {
  readonly months: { readonly [month: string]: StoredMonth };
  readonly weeks: { readonly [week: string]: FlagCounts };
}

function toMonth(stored: StoredMonth): Month {
  return new Map(
    Object.entries(stored).map(([status, { stay, remaining }]) => [
      status,
      { stay: new Map(stay), remaining: new Map(remaining) },
    ]),
  );
}

function toStoredMonth(month: Month): StoredMonth {
  return Object.fromEntries(
    [...month].map(([status, { stay, remaining }]) => [
      status,
      { stay: [...stay], remaining: [...remaining] },
    ]),
  );
}

function toFlagCounts({ late, flaggedBeforeMs }: RiskResult): FlagCounts {
  const flagged = flaggedBeforeMs === undefined ? 0 : 1;
  return {
    flagged,
    flaggedLate: late ? flagged : 0,
    late: late ? 1 : 0,
    lateFlaggedDayBefore: late && flaggedBeforeMs !== undefined && flaggedBeforeMs >= DAY_MS ? 1 : 0,
  };
}

function addFlags(a: FlagCounts, b: FlagCounts): FlagCounts {
  return {
    flagged: a.flagged + b.flagged,
    flaggedLate: a.flaggedLate + b.flaggedLate,
    late: a.late + b.late,
    lateFlaggedDayBefore: a.lateFlaggedDayBefore + b.lateFlaggedDayBefore,
  };
}

function increment(counts: Map<number, number>, bucket: number, by: number): void {
  counts.set(bucket, (counts.get(bucket) ?? 0) + by);
}

/** Returns the Monday (YYYY-MM-DD, UTC) of the week of a time (epoch ms). */
function toMonday(time: number): string {
  const weekday = (new Date(time).getUTCDay() + 6) % 7;
  return new Date(time - weekday * DAY_MS).toISOString().slice(0, 10);
}
