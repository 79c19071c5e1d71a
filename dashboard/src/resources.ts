/** Lists of the selected region, and resources that forms edit. */
import { type QueryKey, useQuery, useQueryClient } from '@tanstack/react-query';
import { useMemo } from 'react';
import type { LoadedQuery } from './queries.ts';
import { useRegion } from './urls.ts';

/** A resource that forms edit. */
export interface Resource<T> {
  readonly latest: T;
  /** Fetches the latest version. */
  readonly read: () => Promise<T>;
  /** Stores a saved version, and refetches the list. */
  readonly store: (saved: T) => void;
}

/** Loads a resource that forms edit. `listKey`: query of its list. */
export function useResource<T>(
  queryKey: QueryKey,
  listKey: QueryKey,
  read: () => Promise<T>,
  { enabled = true } = {},
): LoadedQuery<Resource<T>> {
  const client = useQueryClient();
  const query = useQuery({ queryKey, queryFn: read, refetchInterval: 15_000, enabled });
  const { data, error, refetch } = query;
  const store = (saved: T): void => {
    client.setQueryData(queryKey, saved);
    void client.invalidateQueries({ queryKey: listKey, exact: true });
  };
  return { data: data && { latest: data, read, store }, error, refetch };
}

/** Returns a list without the entries of other regions than the selected one. */
export function useInRegion<T extends { readonly region: string }>(
  list: LoadedQuery<readonly T[]>,
): LoadedQuery<readonly T[]> {
  const { data, error, refetch } = list;
  const selected = useRegion();
  const found = useMemo(
    () => data?.filter(({ region }) => selected === null || region === selected),
    [data, selected],
  );
  return { data: found, error, refetch };
}
