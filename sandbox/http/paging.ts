// Lists in order, and envelope A: a page of a list with its counts and the addresses of its neighbours.

import { blank } from '../operations/order-errors.ts';

/** Cuts a page from a whole list, which the caller has filtered and sorted; `url` is the address that was asked for. */
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
    // Blanks filter nothing.
    filter: blank(filter) ? null : filter,
    nextUrl: hasNext ? neighbour(page + 1) : null,
    previousUrl: hasPrevious ? neighbour(page - 1) : null,
    entities,
  };
}

/** A list sorted by one value of each entry, texts whatever their case. Null is lowest; what is equal stays as it stood. */
export function inOrder<T>(
  all: readonly T[],
  keyOf: (entry: T) => string | number | null,
  direction: 'ascending' | 'descending' = 'ascending',
): T[] {
  const sign = direction === 'ascending' ? 1 : -1;
  return all
    .map((entry) => {
      const value = keyOf(entry);
      return { entry, value: typeof value === 'string' ? value.toLowerCase() : value };
    })
    .toSorted((one, other) => {
      if (one.value === other.value) return 0;
      if (one.value === null || other.value === null) return one.value === null ? -sign : sign;
      return one.value < other.value ? -sign : sign;
    })
    .map(({ entry }) => entry);
}
