/** Queries of the Health pages. */
import { keepPreviousData, type QueryClient, type UseQueryResult, useQuery } from '@tanstack/react-query';
import pLimit from 'p-limit';
import type { Account, AccountStatus, Poll } from '../../../client/index.ts';
import type { JobEvent } from '../../../shared/events/event.ts';
import { hasStatus, withEndpoint, withId } from '../api.ts';
import { collect, useApi } from '../queries.ts';
import { useSession } from '../session.ts';
import { useRefresh } from '../stream-hooks.ts';
import type { Endpoint, Health } from './status.ts';

/** Limits concurrent health requests, because each reads the cursors of an endpoint in all its logs. */
const limitConcurrency = pLimit(4);
/** Refetch interval of a single resource. */
const REFETCH_MS = 5_000;
const REFETCH_LIST_MS = 15_000;
/** Maximum number of account events of an account. The API searches at least as many of its latest events for them. */
export const SCANNED_EVENTS = 1_000;

/** Returns all endpoints of the key and the built-in sinks. Refetched every 15 s. */
export function useEndpoints(): UseQueryResult<readonly Endpoint[]> {
  const api = useApi();
  const { hasAllAccounts } = useSession();
  return useQuery({
    queryKey: ['endpoints', 'all'],
    queryFn: ({ signal }) =>
      collect(
        api.list('/v1/endpoints', 'endpoints', {
          params: { query: hasAllAccounts ? { builtIn: 'true' } : {} },
          signal,
        }),
      ),
    refetchInterval: REFETCH_LIST_MS,
    placeholderData: keepPreviousData,
  });
}

export function useEndpoint(region: string, id: string): UseQueryResult<Endpoint> {
  const api = useApi();
  return useQuery({
    queryKey: ['endpoints', 'one', region, id],
    queryFn: ({ signal }) => api.get('/v1/endpoints/{id}', { ...withEndpoint({ region, id }), signal }),
    refetchInterval: REFETCH_MS,
  });
}

/** Returns the health of an endpoint. `often`: refetched every 5 s instead of every 15 s. */
export function useEndpointHealth(
  endpoint: Pick<Endpoint, 'region' | 'id'>,
  { enabled = true, often = false } = {},
): UseQueryResult<Health> {
  const api = useApi();
  return useQuery({
    queryKey: healthKey(endpoint),
    queryFn: ({ signal }) =>
      limitConcurrency(() => api.get('/v1/endpoints/{id}/health', { ...withEndpoint(endpoint), signal })),
    enabled,
    refetchInterval: often ? REFETCH_MS : REFETCH_LIST_MS,
    placeholderData: keepPreviousData,
  });
}

function healthKey({ region, id }: Pick<Endpoint, 'region' | 'id'>): readonly string[] {
  return ['endpoints', 'health', region, id];
}

/** Returns the cached health of an endpoint without a request. */
export function getCachedHealth(client: QueryClient, endpoint: Endpoint): Health | undefined {
  return client.getQueryData<Health>(healthKey(endpoint));
}

/** An account with its status and its last polls, newest first. */
export interface AccountDetails {
  readonly record: Account;
  readonly report: AccountStatus | null;
  readonly polls: readonly Poll[];
}

/** Returns an account. Refetched every 5 s, and with its events when one about it or its region arrives. */
export function useAccount(id: string): UseQueryResult<AccountDetails> {
  const api = useApi();
  const queryKey = ['accounts', 'health', id];
  useRefresh(['account.*', 'upstream.*'], [queryKey, ['accountEvents', id]], { account: id });
  return useQuery({
    queryKey,
    queryFn: async ({ signal }): Promise<AccountDetails> => {
      const [record, report, polls] = await Promise.all([
        api.get('/v1/accounts/{id}', { ...withId(id), signal }),
        nullIfNotFound(api.get('/v1/accounts/{id}/status', { ...withId(id), signal })),
        nullIfNotFound(api.get('/v1/accounts/{id}/polls', { ...withId(id), signal })),
      ]);
      return { record, report, polls: polls?.polls ?? [] };
    },
    refetchInterval: REFETCH_MS,
  });
}

/** Returns `null` for 404: an account that is being created has a record, but no status yet. */
async function nullIfNotFound<T>(response: Promise<T>): Promise<T | null> {
  try {
    return await response;
  } catch (cause) {
    if (hasStatus(cause, 404)) return null;
    throw cause;
  }
}

/** Returns the latest events about the account itself, newest first. */
export function useAccountEvents(id: string): UseQueryResult<readonly JobEvent[]> {
  const api = useApi();
  const query = { order: 'newest', types: 'account.*', limit: SCANNED_EVENTS } as const;
  return useQuery({
    queryKey: ['accountEvents', id],
    queryFn: async ({ signal }) => {
      const page = await nullIfNotFound(
        api.get('/v1/accounts/{id}/events', { params: { path: { id }, query }, signal }),
      );
      return page?.events ?? [];
    },
    placeholderData: keepPreviousData,
  });
}
