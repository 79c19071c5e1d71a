/**
 * Roll-ups: how much an account's log said of a day. They are counted from the events, in the transaction that carries
 * them, so each event counts exactly once; docs/truth.md says what the figures mean.
 *
 *   poll   reads the items of the days that its events are about ── a chunk: fence, events, snapshots, roll-ups
 *
 * The fence makes reading and writing one: whoever has spoken since the revision was read fences this poll off, and what it
 * counted is dropped with what it saw. A snapshot remembers where its dispatch is counted, so that it can be taken back from
 * there.
 */
import type { EventDraft } from '../events/event.ts';
import { type AccountRef, keys } from '../table/schema.ts';
import type { Item, Key, Write } from '../table/table.ts';
import { dayIn, dayNamed, isAfterDue } from './instants.ts';
import { type CountedDispatch, ROLLUP_DAYS } from './snapshot.ts';
import type { Work } from './work.ts';

/** What is counted. */
export const FIGURES = ['created', 'dispatched', 'onTime', 'late', 'overdue', 'cancelled', 'closed'] as const;
type Figure = (typeof FIGURES)[number];
/** How many of each. */
export type Figures = Record<Figure, number>;

/** One more, or one less, of a figure of a day (YYYY-MM-DD). */
export interface Count {
  readonly day: string;
  readonly figure: Figure;
  readonly by: 1 | -1;
}

const DAY_MS = 86_400_000;
/** A date further ahead of its observation is a mistake of somebody's; zones are up to a day apart. */
const AHEAD_MS = 2 * DAY_MS;
/** Further back it would be counted only to leave. */
const BACK_MS = (ROLLUP_DAYS - 1) * DAY_MS;

/** Figures of which there are none. */
export function noFigures(): Figures {
  return { created: 0, dispatched: 0, onTime: 0, late: 0, overdue: 0, cancelled: 0, closed: 0 };
}

/** Adds to the first figures what the others are. */
export function addFigures(sum: Figures, more: Readonly<Figures>): void {
  for (const figure of FIGURES) sum[figure] += more[figure];
}

/** Notes what a work's events add to the roll-ups, and where its dispatch is counted now. To be called once. */
export function countWork(work: Work): void {
  if (work.events.length === 0) return;
  const { snapshot } = work;
  const { counts, counted } = countEvents(work.events, snapshot.detail?.timezone ?? null, snapshot.counted);
  work.counts = counts;
  const { counted: _, ...rest } = snapshot;
  work.snapshot = counted === undefined ? rest : { ...rest, counted };
}

/**
 * What the events of one job add to the roll-ups; `counted` is where its dispatch was counted before, and is now. The day is
 * that of the job's location: what the service dates counts on the day it says, the rest on the day it was seen. Pure.
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
        // A corrected date. One that was there before tracking began is not counted, and is not by being corrected.
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

/** The day that the service's own date names, or else that of the observation (epoch ms). */
function dayOf(said: string | null, zone: string | null, time: number): string {
  const named = said === null ? undefined : dayNamed(said, zone);
  const at = named === undefined ? Number.NaN : Date.parse(named);
  return named !== undefined && at <= time + AHEAD_MS && at >= time - BACK_MS ? named : dayIn(time, zone);
}

/** The roll-ups that a poll touches, and what has to be written of them. */
export class RollupBook {
  readonly #ref: AccountRef;
  readonly #days = new Map<string, Figures>();
  readonly #touched = new Set<string>();

  constructor(ref: AccountRef) {
    this.#ref = ref;
  }

  /** The items to be read before these are added. */
  wanted(counts: readonly Count[]): Key[] {
    const days = new Set(counts.map(({ day }) => day));
    return [...days].filter((day) => !this.#days.has(day)).map((day) => keys.rollup(this.#ref, day));
  }

  /** Takes in stored items. */
  load(items: readonly Item[]): void {
    for (const item of items) this.#days.set(dayOfRollup(item), toFigures(item));
  }

  /** How many items {@link takeWrites} would write if these were added. */
  touchedWith(counts: readonly Count[]): number {
    const more = new Set(counts.map(({ day }) => day).filter((day) => !this.#touched.has(day)));
    return this.#touched.size + more.size;
  }

  add(counts: readonly Count[]): void {
    for (const { day, figure, by } of counts) {
      const figures = this.#days.get(day) ?? noFigures();
      // What it is taken back from may have left meanwhile.
      figures[figure] = Math.max(0, figures[figure] + by);
      this.#days.set(day, figures);
      this.#touched.add(day);
    }
  }

  /** What must be written since the last call, in the transaction that carries the events. */
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

/** The figures in an item. */
export function toFigures(item: Item): Figures {
  const figures = noFigures();
  for (const figure of FIGURES) figures[figure] = Number(item[figure] ?? 0);
  return figures;
}

/** The day an item is of. */
export function dayOfRollup({ pk }: Pick<Item, 'pk'>): string {
  return pk.slice(pk.lastIndexOf('#') + 1);
}
