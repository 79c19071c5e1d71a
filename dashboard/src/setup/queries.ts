/** Queries of several setup pages. */
import { useQuery } from '@tanstack/react-query';
import { collect, useApi } from '../queries.ts';
import { useSession } from '../session.ts';

/** Fetches the keys. Disabled without the role admin. */
export function useKeys() {
  const api = useApi();
  const { hasRole } = useSession();
  return useQuery({
    queryKey: ['keys'],
    queryFn: ({ signal }) => collect(api.list('/v1/keys', 'keys', { signal })),
    refetchInterval: 30_000,
    enabled: hasRole('admin'),
  });
}
