/** Queries of the customers pages. */
import { type QueryKey, useQuery, useQueryClient } from '@tanstack/react-query';
import { useState } from 'react';
import type { Client } from '../../../client/index.ts';
import { useApi } from '../queries.ts';

/**
 * Loads a resource that a form edits. Render the form with `key={version}`: `restart` remounts it, with the saved resource if given,
 * else with a new fetch. Other refreshes of the query leave the form and its input alone.
 */
export function useEditable<T>(queryKey: QueryKey, read: (api: Client, signal: AbortSignal) => Promise<T>) {
  const api = useApi();
  const queries = useQueryClient();
  const [version, setVersion] = useState(0);
  const query = useQuery({ queryKey, queryFn: ({ signal }) => read(api, signal) });
  const restart = async (saved?: T): Promise<void> => {
    // Set synchronously, so that input typed after saving is not lost.
    if (saved) queries.setQueryData(queryKey, saved);
    else await query.refetch();
    setVersion((before) => before + 1);
  };
  return { ...query, version, restart };
}
