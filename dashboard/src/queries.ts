/** Queries of several pages. Query keys begin with the resource, so that events can invalidate them. */
import { keepPreviousData, type UseQueryResult, useQuery } from '@tanstack/react-query';
import { createContext, useContext } from 'react';
import type * as z from 'zod';
import type { AccountRecord, AccountReport } from '../../shared/accounts/account-input.ts';
import type { Api } from './api.ts';
import { useSession } from './session.ts';

export const ApiContext = createContext<Api | null>(null);

/** Returns the API client with the key of the session. */
export function useApi(): Api {
  const api = useContext(ApiContext);
  if (!api) throw new Error('ApiContext is missing.');
  return api;
}

/** An account with its status; `status` is `null` during registration. */
export type Account = z.infer<typeof AccountRecord> & {
  readonly status?: z.infer<typeof AccountReport> | null;
};

/** A region with the state of its ordering API. */
export interface Region {
  readonly id: string;
  readonly state: 'ok' | 'outage';
  readonly failingSince: string | null;
  readonly problem: string | null;
}

/** Returns all pages of a list. `field`: name of the array in the response. */
export async function allPages<T>(
  api: Api,
  path: string,
  field: string,
  options: {
    readonly query?: Record<string, string | number | undefined>;
    readonly signal?: AbortSignal;
  } = {},
): Promise<T[]> {
  const all: T[] = [];
  let after: string | undefined;
  do {
    const page = await api.get<Record<string, unknown>>(path, {
      query: { limit: 500, ...options.query, after },
      signal: options.signal,
    });
    all.push(...((page[field] ?? []) as T[]));
    after = typeof page.next === 'string' ? page.next : undefined;
  } while (after !== undefined);
  return all;
}

/**
 * Returns all accounts of the key in all regions, with their status. Refetched every 15 s while the tab is visible; every
 * minute if there are more than 100.
 */
export function useAccounts({ enabled = true } = {}): UseQueryResult<readonly Account[]> {
  const api = useApi();
  return useQuery({
    queryKey: ['accounts'],
    queryFn: ({ signal }) =>
      allPages<Account>(api, '/v1/accounts', 'accounts', { query: { include: 'status' }, signal }),
    enabled,
    refetchInterval: ({ state }) => ((state.data?.length ?? 0) > 100 ? 60_000 : 15_000),
    placeholderData: keepPreviousData,
  });
}

/** Returns the served regions. Disabled for keys that are limited to some accounts. */
export function useRegions(): UseQueryResult<readonly Region[]> {
  const api = useApi();
  const { forAll } = useSession();
  return useQuery({
    queryKey: ['regions'],
    queryFn: async ({ signal }) =>
      (await api.get<{ regions: readonly Region[] }>('/v1/regions', { signal })).regions,
    enabled: forAll,
    refetchInterval: 15_000,
  });
}
