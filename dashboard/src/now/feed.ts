/** Which events the list shows: those that fit a filter, kept up with as more come. Free of React. */
import type { JobEvent } from '../../../shared/events/event.ts';
import { typeMatches } from '../../../shared/events/types.ts';
import { describeEvent, getJobNumber } from '../events.ts';
import type { EventRow, GapRow } from '../stream.ts';

/** What is asked for; whatever is absent or empty asks for nothing. */
export interface EventFilter {
  /** Patterns such as `job.*`. */
  readonly types?: readonly string[] | undefined;
  readonly account?: string | undefined;
  readonly region?: string | undefined;
  /** Stands anywhere in what is shown of the event; capitals or not. */
  readonly text?: string | undefined;
}

export type Row = EventRow | GapRow;

/** Whether an event is asked for. */
export function matchesFilter(event: JobEvent, { types = [], account, region, text }: EventFilter): boolean {
  return (
    (types.length === 0 || typeMatches(event.type, types)) &&
    (!account || event.data.account === account) &&
    (!region || event.data.region === region) &&
    (!text || getSearchText(event).includes(text.trim().toLowerCase()))
  );
}

const texts = new WeakMap<JobEvent, string>();

/** All that is shown of an event, and by what its job is known. */
function getSearchText(event: JobEvent): string {
  const known = texts.get(event);
  if (known !== undefined) return known;
  const { more = [], ...first } = describeEvent(event);
  const job = (event.data as { job?: Record<string, unknown> }).job;
  const text = [
    ...[event.type, event.data.account, getJobNumber(event)],
    ...[first, ...more].flatMap(({ label: what, from, to }) => [what, from, to]),
    ...[job?.description, job?.orderNumber, job?.orderGroup, job?.status],
  ];
  const all = text
    .filter((one) => one !== undefined && one !== null)
    .join('\n')
    .toLowerCase();
  texts.set(event, all);
  return all;
}

/**
 * Gives those of the rows that fit, in their order. It may be asked again and again with what a stream holds by then, and
 * looks at each row once. Holes always fit: whoever filters has to know of them too.
 */
export function createRowFilter(filter: EventFilter): (rows: readonly Row[]) => readonly Row[] {
  let seen: readonly Row[] = [];
  let chosen: readonly Row[] = [];
  return (rows) => {
    if (rows === seen) return chosen;
    const last = seen.at(-1)?.number ?? 0;
    const first = rows[0]?.number ?? 0;
    const goesOn = seen.length > 0 && first >= (seen[0]?.number ?? 0) && (rows.at(-1)?.number ?? 0) >= last;
    const fresh = (goesOn ? rows.slice(Math.max(0, last + 1 - first)) : rows).filter(
      (row) => row.kind === 'hole' || matchesFilter(row.event, filter),
    );
    const kept = goesOn ? chosen.slice(countUpTo(chosen, first - 1)) : [];
    seen = rows;
    if (fresh.length > 0 || kept.length !== chosen.length) chosen = [...kept, ...fresh];
    return chosen;
  };
}

/** How many of the rows came after the one with a number. */
export function countAfter(rows: readonly Row[], number: number): number {
  return rows.length - countUpTo(rows, number);
}

/** Rows stand by number. */
function countUpTo(rows: readonly Row[], number: number): number {
  let [low, high] = [0, rows.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((rows[middle]?.number ?? 0) <= number) low = middle + 1;
    else high = middle;
  }
  return low;
}
