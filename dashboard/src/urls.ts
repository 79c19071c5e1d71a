/** Addresses within the page: what is looked at stands in them, so each can be kept, sent and gone back to. */
import { useCallback } from 'react';
import { useSearchParams } from 'wouter';

/** The address of a page with what it is asked for; what is undefined or empty is left out. */
export function buildHref(
  path: string,
  params: Readonly<Record<string, string | number | undefined>> = {},
): string {
  const query = new URLSearchParams(
    Object.entries(params).flatMap(([name, value]) =>
      value === undefined || value === '' ? [] : [[name, String(value)]],
    ),
  );
  return query.size > 0 ? `${path}?${query}` : path;
}

/** What stands in a part of an address; as it is where it is no such thing. */
export function decodeSegment(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** Where a job is. Ids of accounts are the same in no two regions. */
export function jobHref(account: string, jobNumber: number): string {
  return `/jobs/${encodeURIComponent(account)}/${jobNumber}`;
}

export function accountHref(account: string): string {
  return `/health/accounts/${encodeURIComponent(account)}`;
}

/** Where an endpoint is; its id is unique in its region. */
export function endpointHref(region: string, id: string): string {
  return `/health/endpoints/${encodeURIComponent(region)}/${encodeURIComponent(id)}`;
}

/** A parameter of the address, and how to change some of them at once (`undefined` takes one away) without a step back. */
export function useParams(): readonly [
  read: (name: string) => string | undefined,
  change: (to: Readonly<Record<string, string | undefined>>) => void,
] {
  const [params, setParams] = useSearchParams();
  const read = useCallback((name: string) => params.get(name) || undefined, [params]);
  const change = useCallback(
    (to: Readonly<Record<string, string | undefined>>) =>
      setParams(
        (old) => {
          const next = new URLSearchParams(old);
          for (const [name, value] of Object.entries(to)) {
            if (value === undefined || value === '') next.delete(name);
            else next.set(name, value);
          }
          return next;
        },
        { replace: true },
      ),
    [setParams],
  );
  return [read, change];
}

/** The region that is looked at; null: all. It stands in the address of every page as `region`. */
export function useRegion(): string | null {
  const [read] = useParams();
  return read('region') ?? null;
}
