/** The representation of an endpoint, and its reads. */

import { isEndpointKind } from '../built-in-sinks.ts';
import { getRevision } from '../resources.ts';
import { sinkPk } from '../storage/schema.ts';
import type { Item, Table } from '../storage/table.ts';
import type { Endpoint } from './endpoint-views.ts';
import { type Sink, toSink, withHealthOfParts } from './sink.ts';

/** Minimum number of items of the second and further reads of a page: a filter may hide most of them. */
const NEXT_READ = 100;

/** Returns the endpoints of a region, by id. */
export async function listEndpoints(deps: { readonly table: Table }, region: string): Promise<Endpoint[]> {
  const items = await deps.table.query({ pk: sinkPk(region) });
  return items.filter(({ kind }) => isEndpointKind(kind)).map(toEndpoint);
}

/**
 * Returns a page of the visible endpoints and built-in sinks of several regions: by id, then by region, after
 * the given one. `next` identifies the last one of the page if more follow.
 */
export async function listEndpointsPage(
  { table }: { readonly table: Table },
  regions: readonly string[],
  page: {
    readonly limit: number;
    readonly after?: Pick<Endpoint, 'id' | 'region'> | undefined;
    readonly shows: (endpoint: Endpoint) => boolean;
  },
): Promise<{ readonly endpoints: Endpoint[]; readonly next: Pick<Endpoint, 'id' | 'region'> | null }> {
  const { limit, after, shows } = page;
  const enough = limit + 1;
  const byRegion = await Promise.all(
    regions.map(async (region) => {
      const found: Endpoint[] = [];
      let bound = after && (region <= after.region ? { after: after.id } : { from: after.id });
      for (let size = enough; ; size = Math.max(enough, NEXT_READ)) {
        const items = await table.query({ pk: sinkPk(region), ...bound, limit: size });
        const known = items.filter(({ kind }) => kind !== undefined);
        found.push(...(await withHealthOfParts(table, known)).map(toEndpoint).filter(shows));
        const last = items.at(-1);
        if (found.length >= enough || items.length < size || !last) return found;
        bound = { after: last.sk };
      }
    }),
  );
  const all = byRegion.flat().sort((a, b) => compare(a.id, b.id) || compare(a.region, b.region));
  const endpoints = all.slice(0, limit);
  return { endpoints, next: all.length > limit ? (endpoints.at(-1) ?? null) : null };
}

/** Compares as the table sorts: ids are ASCII. */
const compare = (a: string, b: string): number => (a < b ? -1 : a > b ? 1 : 0);

/** Converts the item of an endpoint, or of a built-in sink, to its representation. */
export function toEndpoint(item: Item): Endpoint {
  const sink = toSink(item);
  const { region, id, kind, target, accounts, types, orderGroups, origins, jobFields, paused } = sink;
  const number = (name: string) => (typeof item[name] === 'number' ? item[name] : null);
  return {
    // Version 1 of the API has no kind of its own for the event bus.
    kind: kind === 'eventbridge' ? 'sns' : kind,
    ...{ region, id, url: target, accounts, types, paused, state: toEndpointState(sink) },
    orderGroups: orderGroups ?? [],
    origins: origins ?? [],
    jobFields: jobFields ?? {},
    headers: (item.headerNames as readonly string[] | undefined) ?? [],
    concurrency: sink.concurrency ?? null,
    ratePerSecond: sink.ratePerSecond ?? null,
    description: typeof item.description === 'string' ? item.description : null,
    managed: isManaged(item),
    revision: getRevision(item),
    createdAt: number('createdAt'),
    changedAt: number('changedAt'),
  };
}

/** Returns the state from an item's data. Pure. */
export function toEndpointState({ paused, health }: Pick<Sink, 'paused' | 'health'>): Endpoint['state'] {
  if (health.disabledAt !== null) return 'disabled';
  if (paused) return 'paused';
  return health.failingSince === null ? 'active' : 'failing';
}

export const isManaged = (item: Item): boolean => item.createdAt !== undefined;
