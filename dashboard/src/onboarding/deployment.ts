/** The state of the checklist, read from the API. */
import { type UseQueryResult, useQuery } from '@tanstack/react-query';
import type { Client } from '../../../client/index.ts';
import { withEndpoint, withId } from '../api.ts';
import { type Account, collect, useApi } from '../queries.ts';
import type { Endpoint } from '../setup/endpoint-values.ts';
import { useRefresh } from '../stream-hooks.ts';
import type { Progress } from './steps.ts';

/** Maximum number of endpoints, and of accounts, whose state is read. Each takes one request. */
const MAX_READ = 5;
/** Refetch interval while the first poll or the first delivery is expected. */
const SOON_MS = 3_000;
const REFETCH_MS = 15_000;

/** The progress, and the resources that the steps are about. */
export interface Deployment {
  readonly progress: Progress;
  readonly accounts: readonly Account[];
  readonly endpoints: readonly Endpoint[];
}

/** Returns the state of the deployment. Refetched every 3 s while a poll or a delivery is expected, otherwise every 15 s. */
export function useDeployment({ enabled = true } = {}): UseQueryResult<Deployment> {
  const api = useApi();
  useRefresh(['account.*'], [['deployment'], ['accounts']]);
  return useQuery({
    queryKey: ['deployment'],
    queryFn: ({ signal }) => readDeployment(api, signal),
    enabled,
    refetchInterval: ({ state: { data } }) => {
      if (!data) return REFETCH_MS;
      const { accounts, observed, endpoints, delivered } = data.progress;
      return (accounts > 0 && !observed) || (endpoints > 0 && !delivered) ? SOON_MS : REFETCH_MS;
    },
  });
}

async function readDeployment(api: Client, signal: AbortSignal): Promise<Deployment> {
  const [accounts, endpoints] = await Promise.all([
    collect(api.list('/v1/accounts', 'accounts', { params: { query: { include: 'status' } }, signal })),
    collect(api.list('/v1/endpoints', 'endpoints', { signal })),
  ]);
  const [health, notifications] = await Promise.all([
    Promise.all(
      endpoints
        .slice(0, MAX_READ)
        .map((one) => api.get('/v1/endpoints/{id}/health', { ...withEndpoint(one), signal })),
    ),
    Promise.all(
      accounts
        .slice(0, MAX_READ)
        .map(({ id }) => api.get('/v1/accounts/{id}/notifications', { ...withId(id), signal })),
    ),
  ]);
  return {
    accounts,
    endpoints,
    progress: {
      accounts: accounts.length,
      observed: accounts.some(({ status }) => status?.observedThrough != null),
      endpoints: endpoints.length,
      delivered: health.some(
        ({ lastDeliveredAt, statistics }) => lastDeliveredAt !== null || statistics.delivered > 0,
      ),
      notifying: notifications.some(({ enabled }) => enabled),
    },
  };
}
