// Lists in order, and envelope A: a page of a list with its counts and the addresses of its neighbours.

import { blank } from '../operations/order-errors.ts';

/** Cuts a page from a filtered and sorted list; `url` is the requested URL. */
export function cutPage<T>(
  all: readonly T[],
  {
    page,
    pageSize,
    filter,
    url,
  }: { page: number; pageSize: number; filter?: string | undefined; url: string },
) {
  const entities = all.slice((page - 1) * pageSize, page * pageSize);
  const totalPages = Math.ceil(all.length / pageSize);
  const hasNext = page < totalPages;
  const hasPrevious = page > 1;
  const neighbour = (number: number): string => {
    const address = new URL(url);
    address.searchParams.set('page', String(number));
    address.searchParams.set('pageSize', String(pageSize));
    return address.href;
  };
  return {
    pageSize,
    returnedResults: entities.length,
    totalResults: all.length,
    totalPages,
    currentPage: page,
    hasNext,
    hasPrevious,
    // A blank filter matches everything.
    filter: blank(filter) ? null : filter,
    nextUrl: hasNext ? neighbour(page + 1) : null,
    previousUrl: hasPrevious ? neighbour(page - 1) : null,
    entities,
  };
}

/** Sorts a list by one value of each entry, strings case-insensitively. Null is lowest; the sort is stable. */
export function sortEntries<T>(
  all: readonly T[],
  getKey: (entry: T) => string | number | null,
  direction: 'ascending' | 'descending' = 'ascending',
): T[] {
  const sign = direction === 'ascending' ? 1 : -1;
  return all
    .map((entry) => {
      const value = getKey(entry);
      return { entry, value: typeof value === 'string' ? value.toLowerCase() : value };
    })
    .toSorted((one, other) => {
      if (one.value === other.value) return 0;
      if (one.value === null || other.value === null) return one.value === null ? -sign : sign;
      return one.value < other.value ? -sign : sign;
    })
    .map(({ entry }) => entry);
}

/** Whether one of the texts contains a filter, case-insensitively. A blank filter matches everything. */
export function matchesFilter(filter: string | undefined, texts: readonly (string | null)[]): boolean {
  const wanted = filter?.trim().toLowerCase() ?? '';
  return wanted === '' || texts.some((text) => text?.toLowerCase().includes(wanted));
}
