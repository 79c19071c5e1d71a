/** Export of the events in the log that match the filter of the event list, newest first. */
import type { Client, ListOptions } from '../../../client/index.ts';
import type { JobEvent } from '../../../shared/events/event.ts';
import { toCsvLine } from '../export.tsx';
import { type EventFilter, matchesFilter } from './feed.ts';

const PAGE_SIZE = 1000;
/** Maximum number of requests. Pages can be empty if the key is limited to some accounts. */
const MAX_PAGES = 100;
const COLUMNS = ['id', 'type', 'source', 'subject', 'time', 'sequence', 'dataschema', 'data'] as const;

/** Yields the matching events among the newest `max`. */
export async function* exportEvents(
  api: Client,
  filter: EventFilter,
  { max, onMore }: Required<Pick<ListOptions, 'max' | 'onMore'>>,
): AsyncGenerator<string, void> {
  const { account: id } = filter;
  const types = filter.types?.join(',') || undefined;
  yield toCsvLine(COLUMNS);
  let before: string | null | undefined;
  for (let read = 0, pages = 0; read < max && pages < MAX_PAGES && before !== null; pages += 1) {
    const query = { order: 'newest', types, before, limit: Math.min(PAGE_SIZE, max - read) } as const;
    const page = id
      ? await api.get('/v1/accounts/{id}/events', { params: { path: { id }, query } })
      : await api.get('/v1/events', { params: { query } });
    for (const event of page.events as unknown as readonly JobEvent[])
      if (matchesFilter(event, filter)) yield toCsvLine(COLUMNS.map((column) => event[column]));
    read += page.events.length;
    before = page.previous ?? null;
  }
  if (before !== null) onMore();
}
