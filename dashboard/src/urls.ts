/** Addresses within the dashboard. They contain the state of a page, so that they can be bookmarked and shared. */
import { useCallback, useMemo } from 'react';
import { navigate, useSearch } from 'wouter/use-browser-location';

/** Addresses of the lists of accounts and of endpoints: parts of one page. */
export const ACCOUNTS_PATH = '/health#accounts';
export const ENDPOINTS_PATH = '/health#endpoints';

/** Returns a path with query parameters, before its fragment. They replace those of the path. Undefined and empty ones are omitted. */
export function buildHref(
  path: string,
  params: Readonly<Record<string, string | number | undefined>> = {},
): string {
  const [, page, given, fragment] = /^([^?#]*)\??([^#]*)(#.*)?$/.exec(path) ?? [];
  const query = new URLSearchParams(given);
  for (const [name, value] of Object.entries(params))
    if (value !== undefined && value !== '') query.set(name, String(value));
  return `${page}${query.size === 0 ? '' : `?${query}`}${fragment ?? ''}`;
}

/** Decodes a path segment; returns it unchanged if it is malformed. */
export function decodeSegment(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

const joinPath = (...parts: readonly string[]): string =>
  parts.map((part) => `/${encodeURIComponent(part)}`).join('');

/** Returns the path of a job. Account ids are unique across regions. */
export const jobHref = (account: string, jobNumber: number): string =>
  joinPath('jobs', account, String(jobNumber));
export const accountHref = (account: string, tab: ResourceTab = 'state'): string =>
  joinPath('accounts', account, ...toTabPath(tab));
/** Returns the path of an endpoint. Endpoint ids are unique within a region. */
export const endpointHref = (region: string, id: string, tab: ResourceTab = 'state'): string =>
  joinPath('endpoints', region, id, ...toTabPath(tab));

/** A tab of the page of an account or endpoint. */
export type ResourceTab = 'state' | 'activity' | 'settings';
const toTabPath = (tab: ResourceTab): readonly string[] => (tab === 'state' ? [] : [tab]);

/** Returns the path of an alert rule. Ids are unique within a region. */
export const alertRuleHref = (region: string, id: string): string =>
  joinPath('setup', 'alert-rules', region, id);

/** Reads and changes query parameters; `undefined` removes one. Replaces the history entry. */
export function useParams(): readonly [
  read: (name: string) => string | undefined,
  change: (to: Readonly<Record<string, string | undefined>>) => void,
] {
  // Not `useSearchParams`: it decodes the query before it parses it, which changes values with `%`.
  const search = useSearch();
  const params = useMemo(() => new URLSearchParams(search), [search]);
  const read = useCallback((name: string) => params.get(name) || undefined, [params]);
  const change = useCallback((to: Readonly<Record<string, string | undefined>>) => {
    // The current query, not that of the last render: several changes can follow each other.
    const next = new URLSearchParams(location.search);
    for (const [name, value] of Object.entries(to)) {
      if (value === undefined || value === '') next.delete(name);
      else next.set(name, value);
    }
    navigate(next.size === 0 ? location.pathname : `${location.pathname}?${next}`, { replace: true });
  }, []);
  return [read, change];
}

/** Returns the selected region, the query parameter `region`; `null` for all. */
export function useRegion(): string | null {
  const [read] = useParams();
  return read('region') ?? null;
}

/** Returns `buildHref` with the selected region as default parameter. */
export function useHref(): typeof buildHref {
  const region = useRegion() ?? undefined;
  return useCallback(
    (path, params = {}) => buildHref(path, { ...params, region: params.region ?? region }),
    [region],
  );
}
