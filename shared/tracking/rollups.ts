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
export const FIGURES = ['created', 'dispatched', 'onTime', 'late', 'overdue', 'cancelled', 'closed'] as const;
type Figure = (typeof FIGURES)[number];
/** Totals by name. */
export type Figures = Record<Figure, number>;

/** Increment or decrement of one total of a day (YYYY-MM-DD). */
export interface Count {
  readonly day: string;
  readonly figure: Figure;
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
export function noFigures(): Figures {
  return { created: 0, dispatched: 0, onTime: 0, late: 0, overdue: 0, cancelled: 0, closed: 0 };
}

/** Adds `more` to `sum`, in place. */
export function addFigures(sum: Figures, more: Readonly<Figures>): void {
  for (const figure of FIGURES) sum[figure] += more[figure];
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
  let standing = counted;
  const count = (dispatch: CountedDispatch, by: 1 | -1): void => {
    const { day, late } = dispatch;
    counts.push({ day, figure: 'dispatched', by });
    if (late !== null) counts.push({ day, figure: late ? 'late' : 'onTime', by });
  };
  const dispatched = (dateOut: string | null, dateDue: string | null, time: number): void => {
    if (standing) count(standing, -1);
    standing = undefined;
    if (dateOut === null) return;
    const late = dateDue === null ? null : isAfterDue(dateOut, dateDue, zone);
    standing = { day: dayOf(dateOut, zone, time), late };
    count(standing, 1);
  };
  for (const { type, time, data } of events) {
    switch (type) {
      case 'job.created':
        counts.push({ day: dayOf(data.occurredAt, zone, time), figure: 'created', by: 1 });
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
        if (data.changes.dateOut && standing) {
          dispatched(data.changes.dateOut.to, data.job.dateDue, time);
        }
        break;
      case 'job.overdue':
        counts.push({ day: dayIn(time, zone), figure: 'overdue', by: 1 });
        break;
      case 'job.cancelled':
        counts.push({ day: dayIn(time, zone), figure: 'cancelled', by: 1 });
        break;
      case 'job.closed':
        counts.push({ day: dayIn(time, zone), figure: 'closed', by: 1 });
        break;
      default:
        break;
    }
  }
  return { counts, counted: standing };
}

/**
 * Returns the day of the upstream date, or that of the observation (epoch ms) if there is no plausible
 * date.
 */
function dayOf(said: string | null, zone: string | null, time: number): string {
  const named = said === null ? undefined : dayNamed(said, zone);
  const at = named === undefined ? Number.NaN : Date.parse(named);
  return named !== undefined && at <= time + AHEAD_MS && at >= time - BACK_MS ? named : dayIn(time, zone);
}

/** The roll-ups that a poll changes, and their pending writes. */
export class PollRollups {
  readonly #ref: AccountRef;
  readonly #days = new Map<string, Figures>();
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
    for (const item of items) this.#days.set(dayOfRollup(item), toFigures(item));
  }

  /** Returns how many items {@link takeWrites} would write with these counts added. */
  touchedWith(counts: readonly Count[]): number {
    const more = new Set(counts.map(({ day }) => day).filter((day) => !this.#touched.has(day)));
    return this.#touched.size + more.size;
  }

  add(counts: readonly Count[]): void {
    for (const { day, figure, by } of counts) {
      const figures = this.#days.get(day) ?? noFigures();
      // The roll-up from which this is subtracted may have expired meanwhile.
      figures[figure] = Math.max(0, figures[figure] + by);
      this.#days.set(day, figures);
      this.#touched.add(day);
    }
  }

  /** Returns the writes pending since the last call, for the transaction that carries the events. */
  takeWrites(): Write[] {
    const writes = [...this.#touched].map((day) => ({
      put: {
        ...keys.rollup(this.#ref, day),
        ...(this.#days.get(day) ?? noFigures()),
        ttl: Math.ceil(Date.parse(day) / 1000) + ROLLUP_DAYS * 86_400,
      },
    }));
    this.#touched.clear();
    return writes;
  }
}

/** Returns the totals of an item. */
export function toFigures(item: Item): Figures {
  const figures = noFigures();
  for (const figure of FIGURES) figures[figure] = Number(item[figure] ?? 0);
  return figures;
}

/** Returns the day of an item. */
export function dayOfRollup({ pk }: Pick<Item, 'pk'>): string {
  return pk.slice(pk.lastIndexOf('#') + 1);
}
