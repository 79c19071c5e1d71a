/** What the pages of Health ask for. */
import { keepPreviousData, type QueryClient, type UseQueryResult, useQuery } from '@tanstack/react-query';
import pLimit from 'p-limit';
import type { AccountRecord, AccountReport, PollRecord } from '../../../shared/accounts/account-input.ts';
import type { JobEvent } from '../../../shared/events/event.ts';
import { type Api, ApiError } from '../api.ts';
import { allPages, useApi } from '../queries.ts';
import { useSession } from '../session.ts';
import type { Endpoint, Health } from './status.ts';

/** Healths that are asked for side by side: each reads the places of an endpoint in all logs that it follows. */
const limitConcurrency = pLimit(4);
/** How often what moves by itself is asked for while it is on screen. */
const MOVING_MS = 5_000;
const MANY_MS = 15_000;
/** Of the events of an account the last so many are looked through for those of the account itself. */
export const SCANNED_EVENTS = 1_000;

/** All endpoints of the key with what is built in, asked again every 15 s. */
export function useEndpoints(): UseQueryResult<readonly Endpoint[]> {
  const api = useApi();
  const { forAll } = useSession();
  return useQuery({
    queryKey: ['endpoints', 'all'],
    queryFn: ({ signal }) =>
      allPages<Endpoint>(api, '/v1/endpoints', 'endpoints', {
        query: forAll ? { builtIn: 'true' } : {},
        signal,
      }),
    refetchInterval: MANY_MS,
    placeholderData: keepPreviousData,
  });
}

/** Where the parts of an endpoint are. */
export function endpointPath(id: string, rest = ''): string {
  return `/v1/endpoints/${encodeURIComponent(id)}${rest}`;
}

/** Where the parts of an account are. */
export function accountPath(id: string, rest = ''): string {
  return `/v1/accounts/${encodeURIComponent(id)}${rest}`;
}

export function useEndpoint(region: string, id: string): UseQueryResult<Endpoint> {
  const api = useApi();
  return useQuery({
    queryKey: ['endpoints', 'one', region, id],
    queryFn: ({ signal }) => api.get<Endpoint>(endpointPath(id), { query: { region }, signal }),
    refetchInterval: MOVING_MS,
  });
}

/** How an endpoint is doing. `often`: it is what is looked at; otherwise it is one of many. */
export function useEndpointHealth(
  { region, id }: Pick<Endpoint, 'region' | 'id'>,
  { enabled = true, often = false } = {},
): UseQueryResult<Health> {
  const api = useApi();
  return useQuery({
    queryKey: healthKey(region, id),
    queryFn: ({ signal }) =>
      limitConcurrency(() => api.get<Health>(endpointPath(id, '/health'), { query: { region }, signal })),
    enabled,
    refetchInterval: often ? MOVING_MS : MANY_MS,
    placeholderData: keepPreviousData,
  });
}

function healthKey(region: string, id: string): readonly string[] {
  return ['endpoints', 'health', region, id];
}

/** What is known of an endpoint's health without asking. */
export function getCachedHealth(client: QueryClient, { region, id }: Endpoint): Health | undefined {
  return client.getQueryData<Health>(healthKey(region, id));
}

/** An account, how it stands, and its last polls, newest first. */
export interface AccountDetails {
  readonly record: AccountRecord;
  readonly report: AccountReport | null;
  readonly polls: readonly PollRecord[];
}

export function useAccount(id: string): UseQueryResult<AccountDetails> {
  const api = useApi();
  return useQuery({
    queryKey: ['accounts', 'health', id],
    queryFn: async ({ signal }): Promise<AccountDetails> => {
      const [record, report, polls] = await Promise.all([
        api.get<AccountRecord>(accountPath(id), { signal }),
        nullIfNotFound(api.get<AccountReport>(accountPath(id, '/status'), { signal })),
        nullIfNotFound(api.get<{ polls: PollRecord[] }>(accountPath(id, '/polls'), { signal })),
      ]);
      return { record, report, polls: polls?.polls ?? [] };
    },
    refetchInterval: MOVING_MS,
  });
}

/** Whether what was there is there no more: what is known of it is not shown any longer. */
export function isGone({ error }: { readonly error: unknown }): boolean {
  return error instanceof ApiError && error.status === 404;
}

/** An account that is being made has a record, and not yet all of the rest. */
async function nullIfNotFound<T>(asked: Promise<T>): Promise<T | null> {
  try {
    return await asked;
  } catch (cause) {
    if (cause instanceof ApiError && cause.status === 404) return null;
    throw cause;
  }
}

/** The events of an account about itself among its last {@link SCANNED_EVENTS}, newest first. `head`: where its log stands. */
export function useAccountEvents(id: string, head: string | undefined): UseQueryResult<readonly JobEvent[]> {
  const api = useApi();
  return useQuery({
    queryKey: ['accountEvents', id],
    queryFn: ({ signal }) => readAccountEvents(api, id, head ?? '', signal),
    enabled: head !== undefined,
    placeholderData: keepPreviousData,
  });
}

interface EventPage {
  readonly events: readonly JobEvent[];
  readonly next: string;
  readonly head: string;
}

async function readAccountEvents(
  api: Api,
  id: string,
  head: string,
  signal: AbortSignal,
): Promise<readonly JobEvent[]> {
  const [, epoch = '', number = '0'] = /^(.*)\.(\d+)$/.exec(head) ?? [];
  let after: string | undefined = `${epoch}.${Math.max(0, Number(number) - SCANNED_EVENTS)}`;
  const found: JobEvent[] = [];
  for (let pages = 0; pages < 12; pages += 1) {
    const query = { types: 'account.*', limit: SCANNED_EVENTS, after };
    let page: EventPage;
    try {
      page = await api.get<EventPage>(accountPath(id, '/events'), { query, signal });
    } catch (cause) {
      // Older ones are no longer kept: from the first that is.
      if (after === undefined || !(cause instanceof ApiError) || cause.status !== 410) throw cause;
      after = undefined;
      continue;
    }
    found.push(...page.events);
    if (page.next === page.head || page.next === after) break;
    after = page.next;
  }
  return found.reverse();
}
