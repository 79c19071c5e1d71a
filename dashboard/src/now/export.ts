/** Export of the events in the log that match the filter of the event list, newest first. */
import type { Client } from '../../../client/index.ts';
import type { JobEvent } from '../../../shared/events/event.ts';
import { type CsvSource, toCsvLine } from '../export.tsx';
import { type EventFilter, matchesFilter } from './feed.ts';

const PAGE_SIZE = 1000;
/** Maximum number of requests. Pages can be empty if the key is limited to some accounts. */
const MAX_PAGES = 100;
const COLUMNS = ['id', 'type', 'source', 'subject', 'time', 'sequence', 'dataschema', 'data'] as const;

/** Yields the matching events, at most `max`. */
export async function* exportEvents(
  api: Client,
  filter: EventFilter,
  { max, onMore }: Parameters<CsvSource>[0],
): AsyncGenerator<string, void> {
  const { account: id } = filter;
  const types = filter.types?.join(',') || undefined;
  yield toCsvLine(COLUMNS);
  let before: string | null | undefined;
  let read = 0;
  let left = max;
  for (let pages = 0; left > 0 && pages < MAX_PAGES && before !== null; pages += 1) {
    const query = { order: 'newest', types, before, limit: PAGE_SIZE } as const;
    const page = id
      ? await api.get('/v1/accounts/{id}/events', { params: { path: { id }, query } })
      : await api.get('/v1/events', { params: { query } });
    const found = (page.events as unknown as readonly JobEvent[]).filter((event) =>
      matchesFilter(event, filter),
    );
    for (const event of found.slice(0, left)) yield toCsvLine(COLUMNS.map((column) => event[column]));
    left -= found.length;
    read += page.events.length;
    before = page.previous ?? null;
  }
  if (left < 0 || (left === 0 && before !== null)) onMore();
  else if (before !== null)
    onMore(`The file has the matches among the newest ${read.toLocaleString()} events only.`);
}
