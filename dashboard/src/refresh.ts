/** Refetch of queries when events arrive. Independent of React and the browser. */
import type { QueryClient, QueryMeta } from '@tanstack/react-query';
import type { JobEvent } from '../../shared/events/event.ts';
import { typeMatches } from '../../shared/events/types.ts';

/** Returns whether an event has one of the types (patterns such as `job.*`) and, with `account`, is about this account or a region. */
export function isRelevant(
  { type, data }: Pick<JobEvent, 'type' | 'data'>,
  types: readonly string[],
  account?: string,
): boolean {
  const isAbout = account === undefined || data.account === undefined || data.account === account;
  return isAbout && typeMatches(type, types);
}

/** Returns whether a list is updated only by the user, because it has several pages (`usePages`). */
export function isFrozenList(list: {
  readonly meta: QueryMeta | undefined;
  readonly state: { readonly data: unknown };
}): boolean {
  const { pages = [] } = (list.state.data ?? {}) as { readonly pages?: readonly unknown[] };
  return list.meta?.freezes === true && pages.length > 1;
}

/** Refetches the active queries with these keys, except frozen lists. */
export function refreshQueries(client: QueryClient, queryKeys: readonly (readonly unknown[])[]): void {
  for (const queryKey of queryKeys)
    void client.invalidateQueries({ queryKey, predicate: (query) => !isFrozenList(query) });
}
