/** Filters the rows of the event list incrementally. Independent of React. */
import type { JobEvent } from '../../../shared/events/event.ts';
import { typeMatches } from '../../../shared/events/types.ts';
import { describeEvent, getJobNumber } from '../events.ts';
import type { EventRow, GapRow } from '../stream.ts';

/** Filter of the event list. Absent or empty fields match all events. */
export interface EventFilter {
  /** Patterns such as `job.*`. */
  readonly types?: readonly string[] | undefined;
  readonly account?: string | undefined;
  readonly region?: string | undefined;
  /** Part of the displayed text or of the job; case-insensitive. */
  readonly text?: string | undefined;
}

export type Row = EventRow | GapRow;

/** Whether an event matches the filter. */
export function matchesFilter(event: JobEvent, { types = [], account, region, text }: EventFilter): boolean {
  return (
    (types.length === 0 || typeMatches(event.type, types)) &&
    (!account || event.data.account === account) &&
    (!region || event.data.region === region) &&
    (!text || getSearchText(event).includes(text.trim().toLowerCase()))
  );
}

const texts = new WeakMap<JobEvent, string>();

/** Returns the searchable text of an event: its description and the fields of its job. */
function getSearchText(event: JobEvent): string {
  const known = texts.get(event);
  if (known !== undefined) return known;
  const { more = [], ...first } = describeEvent(event);
  const job = (event.data as { job?: Record<string, unknown> }).job;
  const text = [
    ...[event.type, event.data.account, getJobNumber(event)],
    ...[first, ...more].flatMap(({ label, from, to }) => [label, from, to]),
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
 * Returns a function that filters the rows of a stream, in order. Call it again with the current rows: each row is checked
 * once. Gaps always match, because they also affect filtered lists.
 */
export function createRowFilter(filter: EventFilter): (rows: readonly Row[]) => readonly Row[] {
  let previous: readonly Row[] = [];
  let chosen: readonly Row[] = [];
  return (rows) => {
    if (rows === previous) return chosen;
    const last = previous.at(-1)?.number ?? 0;
    const first = rows[0]?.number ?? 0;
    const isContinuation =
      previous.length > 0 && first >= (previous[0]?.number ?? 0) && (rows.at(-1)?.number ?? 0) >= last;
    const fresh = (isContinuation ? rows.slice(Math.max(0, last + 1 - first)) : rows).filter(
      (row) => row.kind === 'gap' || matchesFilter(row.event, filter),
    );
    const kept = isContinuation ? chosen.slice(countUpTo(chosen, first - 1)) : [];
    previous = rows;
    if (fresh.length > 0 || kept.length !== chosen.length) chosen = [...kept, ...fresh];
    return chosen;
  };
}

/** Returns the number of rows after the row with `number`. */
export function countAfter(rows: readonly Row[], number: number): number {
  return rows.length - countUpTo(rows, number);
}

/** Rows are sorted by number. */
const countUpTo = (rows: readonly Row[], number: number): number =>
  rows.findLastIndex((row) => row.number <= number) + 1;
