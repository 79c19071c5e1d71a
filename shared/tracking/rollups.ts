/**
 * Roll-ups: daily totals of an account's log. They are counted from the events, in the transaction that
 * carries the events, so each event counts exactly once. docs/truth.md defines the totals.
 *
 * A poll reads the items of the days that its events concern. A chunk writes fence, events, snapshots and
 * roll-ups. The fence makes read and write atomic: a commit of a newer poll since the revision was read
 * fences this poll off, and its counts are discarded with its observations. A snapshot stores where its
 * dispatch is counted, so that the count can be reversed there.
 */
import type { EventDraft } from '../events/event.ts';
import { type AccountRef, keys, ROLLUP_DAYS } from '../storage/schema.ts';
import type { Item, Key, Write } from '../storage/table.ts';
import type { CountedDispatch } from './snapshot.ts';
import { dayIn, dayNamed, isAfterDue } from './timestamps.ts';

/** Names of the daily totals. */
export const TOTALS = ['created', 'dispatched', 'onTime', 'late', 'overdue', 'cancelled', 'closed'] as const;
type TotalName = (typeof TOTALS)[number];
/** Totals by name. */
export type Totals = Record<TotalName, number>;

/** Increment or decrement of one total of a day (YYYY-MM-DD). */
export interface Count {
  readonly day: string;
  readonly total: TotalName;
  readonly by: 1 | -1;
}

const DAY_MS = 86_400_000;
/**
 * Maximum time that a date may be ahead of its observation (ms): a later date is an error in the data.
 * Zones differ by up to a day.
 */
const AHEAD_MS = 2 * DAY_MS;
/** Maximum age of a date (ms). An older one would be counted in a roll-up about to expire. */
const BACK_MS = (ROLLUP_DAYS - 1) * DAY_MS;

/** Returns totals of zero. */
export function createTotals(): Totals {
  return { created: 0, dispatched: 0, onTime: 0, late: 0, overdue: 0, cancelled: 0, closed: 0 };
}

/** Adds `more` to `sum`, in place. */
export function addTotals(sum: Totals, more: Readonly<Totals>): void {
  for (const name of TOTALS) sum[name] += more[name];
}

/**
 * Returns what the events of one job add to the roll-ups. `counted` is where its dispatch was counted
 * before, and in the result, where it is counted now.
 *
 * The day is that of the job's location. Events that upstream dates count on that date, the others on the
 * day of their observation. Pure.
 */
export function countEvents(
  events: readonly EventDraft[],
  zone: string | null,
  counted: CountedDispatch | undefined,
): { readonly counts: readonly Count[]; readonly counted: CountedDispatch | undefined } {
  const counts: Count[] = [];
  let countedDispatch = counted;
  const count = (dispatch: CountedDispatch, by: 1 | -1): void => {
    const { day, late } = dispatch;
    counts.push({ day, total: 'dispatched', by });
    if (late !== null) counts.push({ day, total: late ? 'late' : 'onTime', by });
  };
  const dispatched = (dateOut: string | null, dateDue: string | null, time: number): void => {
    if (countedDispatch) count(countedDispatch, -1);
    countedDispatch = undefined;
    if (dateOut === null) return;
    const late = dateDue === null ? null : isAfterDue(dateOut, dateDue, zone);
    countedDispatch = { day: toDay(dateOut, zone, time), late };
    count(countedDispatch, 1);
  };
  for (const { type, time, data } of events) {
    switch (type) {
      case 'job.created':
        counts.push({ day: toDay(data.occurredAt, zone, time), total: 'created', by: 1 });
        break;
      case 'job.dispatched':
        dispatched(data.occurredAt, data.job.dateDue, time);
        break;
      case 'job.dispatch_revoked':
        dispatched(null, null, time);
        break;
      case 'job.updated':
        // A corrected date. A dispatch from before tracking began is not counted, and a correction does not
        // change that.
        if (data.changes.dateOut && countedDispatch) {
          dispatched(data.changes.dateOut.to, data.job.dateDue, time);
        }
        break;
      case 'job.overdue':
        counts.push({ day: dayIn(time, zone), total: 'overdue', by: 1 });
        break;
      case 'job.cancelled':
        counts.push({ day: dayIn(time, zone), total: 'cancelled', by: 1 });
        break;
      case 'job.closed':
        counts.push({ day: dayIn(time, zone), total: 'closed', by: 1 });
        break;
      default:
        break;
    }
  }
  return { counts, counted: countedDispatch };
}

/**
 * Returns the day of the upstream date, or that of the observation (epoch ms) if there is no plausible
 * date.
 */
function toDay(date: string | null, zone: string | null, time: number): string {
  const named = date === null ? undefined : dayNamed(date, zone);
  const at = named === undefined ? Number.NaN : Date.parse(named);
  return named !== undefined && at <= time + AHEAD_MS && at >= time - BACK_MS ? named : dayIn(time, zone);
}

/** The roll-ups that a poll changes, and their pending writes. */
export class PollRollups {
  readonly #ref: AccountRef;
  readonly #days = new Map<string, Totals>();
  readonly #touched = new Set<string>();

  constructor(ref: AccountRef) {
    this.#ref = ref;
  }

  /** Returns the keys of the items to load before these counts are added. */
  wanted(counts: readonly Count[]): Key[] {
    const days = new Set(counts.map(({ day }) => day));
    return [...days].filter((day) => !this.#days.has(day)).map((day) => keys.rollup(this.#ref, day));
  }

  /** Loads stored items. */
  load(items: readonly Item[]): void {
    for (const item of items) this.#days.set(dayOfRollup(item), toTotals(item));
  }

  /** Returns how many items {@link takeWrites} would write with these counts added. */
  touchedWith(counts: readonly Count[]): number {
    const more = new Set(counts.map(({ day }) => day).filter((day) => !this.#touched.has(day)));
    return this.#touched.size + more.size;
  }

  add(counts: readonly Count[]): void {
    for (const { day, total, by } of counts) {
      const totals = this.#days.get(day) ?? createTotals();
      // The roll-up from which this is subtracted may have expired meanwhile.
      totals[total] = Math.max(0, totals[total] + by);
      this.#days.set(day, totals);
      this.#touched.add(day);
    }
  }

  /** Returns the writes pending since the last call, for the transaction that carries the events. */
  takeWrites(): Write[] {
    const writes = [...this.#touched].map((day) => ({
      put: {
        ...keys.rollup(this.#ref, day),
        ...(this.#days.get(day) ?? createTotals()),
        ttl: Math.ceil(Date.parse(day) / 1000) + ROLLUP_DAYS * 86_400,
      },
    }));
    this.#touched.clear();
    return writes;
  }
}

/** Returns the totals of an item. */
export function toTotals(item: Item): Totals {
  const totals = createTotals();
  for (const name of TOTALS) totals[name] = Number(item[name] ?? 0);
  return totals;
}

/** Returns the day of an item. */
export function dayOfRollup({ pk }: Pick<Item, 'pk'>): string {
  return pk.slice(pk.lastIndexOf('#') + 1);
}
