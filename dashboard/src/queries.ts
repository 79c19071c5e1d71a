/** What several pages ask for. Keys begin with what they are about, so that events can have them asked again. */
import { keepPreviousData, type UseQueryResult, useQuery } from '@tanstack/react-query';
import { createContext, useContext } from 'react';
import type * as z from 'zod';
import type { AccountRecord, AccountReport } from '../../shared/accounts/account-input.ts';
import type { Api } from './api.ts';
import { useSession } from './session.ts';

export const ApiContext = createContext<Api | null>(null);

/** The API, with the key of the session. */
export function useApi(): Api {
  const api = useContext(ApiContext);
  if (!api) throw new Error('There is no API here.');
  return api;
}

/** An account with how it stands; `status` is null while it is not registered to its end. */
export type Account = z.infer<typeof AccountRecord> & {
  readonly status?: z.infer<typeof AccountReport> | null;
};

/** A region, and whether the ordering service answers there. */
export interface Region {
  readonly id: string;
  readonly state: 'ok' | 'outage';
  readonly failingSince: string | null;
  readonly problem: string | null;
}

/** All pages of a list: `field` is what its entries are called. */
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
 * All accounts of the key in all regions, each with how it stands. Asked again every 15 s while the tab is seen, and every
 * minute where there are so many that asking costs something.
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

/** The regions that are served, for keys for all accounts; for others nothing. */
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
