import { toEndpoint } from '../../shared/delivery/endpoint.ts';
import type { Endpoint } from '../../shared/delivery/endpoint-views.ts';
import { keys } from '../../shared/storage/schema.ts';
import type { Table } from '../../shared/storage/table.ts';

/** Returns an endpoint, or `undefined`. */
export async function readEndpoint(
  { table }: { readonly table: Table },
  region: string,
  id: string,
): Promise<Endpoint | undefined> {
  const item = await table.get(keys.sink(region, id));
  return item?.kind === 'webhook' ? toEndpoint(item) : undefined;
}
