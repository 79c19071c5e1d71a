/** Queries of several pages. Query keys begin with the resource, so that events can invalidate them. */
import { keepPreviousData, type UseQueryResult, useQuery } from '@tanstack/react-query';
import { createContext, useContext } from 'react';
import type { Client, Figures, ListedAccount, Region } from '../../client/index.ts';
import { withId } from './api.ts';
import { useSession } from './session.ts';
import { useNow } from './stream-hooks.ts';
import { useZone } from './times.tsx';
import { useRegion } from './urls.ts';
import { findToday } from './zone.ts';

export const ApiContext = createContext<Client | null>(null);

/** Returns the API client with the key of the session. */
export function useApi(): Client {
  const api = useContext(ApiContext);
  if (!api) throw new Error('ApiContext is missing.');
  return api;
}

/** An account with its status; `status` is `null` during registration. */
export type Account = ListedAccount;
export type { Region };

/** Returns all entries of a list. */
export async function collect<T>(entries: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const entry of entries) all.push(entry);
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
      collect(api.list('/v1/accounts', 'accounts', { params: { query: { include: 'status' } }, signal })),
    enabled,
    refetchInterval: ({ state }) => ((state.data?.length ?? 0) > 100 ? 60_000 : 15_000),
    placeholderData: keepPreviousData,
  });
}

/** Returns the served regions. Disabled for keys that are limited to some accounts. */
export function useRegions(): UseQueryResult<readonly Region[]> {
  const api = useApi();
  const { hasAllAccounts } = useSession();
  return useQuery({
    queryKey: ['regions'],
    queryFn: async ({ signal }) => (await api.get('/v1/regions', { signal })).regions,
    enabled: hasAllAccounts,
    refetchInterval: 15_000,
  });
}

/** Interval at which the figures and the attention queue are fetched without events, because jobs become late without one. */
export const ATTENTION_MS = 15_000;

/** Returns the ids of the regions of the key. `undefined` before they are loaded, empty if they cannot be loaded. */
export function useServedRegions(): readonly string[] | undefined {
  const { hasAllAccounts } = useSession();
  const regions = useRegions();
  const accounts = useAccounts({ enabled: !hasAllAccounts });
  if ((hasAllAccounts ? regions : accounts).isPending) return undefined;
  if (hasAllAccounts) return regions.data?.map(({ id }) => id) ?? [];
  return [...new Set(accounts.data?.map(({ region }) => region))].sort();
}

/** Returns the current day of the selected region, or of all regions. */
export function useToday(): ReturnType<typeof findToday> {
  const region = useRegion();
  const served = useServedRegions() ?? [];
  return findToday(region === null ? served : [region], useZone().zone, useNow(60_000));
}

/** Returns the figures of the selected region, or of all regions: one request for a page. Their day depends on the regions. */
export function useFigures(): UseQueryResult<Figures> {
  const api = useApi();
  const region = useRegion() ?? undefined;
  const isDayKnown = useServedRegions() !== undefined || region !== undefined;
  const { day } = useToday();
  return useQuery({
    queryKey: ['attention', 'figures', region, day],
    queryFn: ({ signal }) => api.get('/v1/figures', { params: { query: { region, day } }, signal }),
    enabled: isDayKnown,
    refetchInterval: ATTENTION_MS,
    placeholderData: keepPreviousData,
  });
}

/** Returns the query of the notification settings of an account. */
export const notificationsQuery = (api: Client, account: string) => ({
  queryKey: ['notifications', account],
  queryFn: ({ signal }: { readonly signal: AbortSignal }) =>
    api.get('/v1/accounts/{id}/notifications', { ...withId(account), signal }),
  staleTime: 60_000,
});

/** A query whose result is shown. */
export interface LoadedQuery<T> {
  readonly data: T | undefined;
  readonly error: unknown;
  readonly refetch: () => unknown;
}
