import { randomUUID } from 'node:crypto';
import type { ApiDeps } from '../../shared/api/app.ts';
import { createIdempotency } from '../../shared/api/idempotency.ts';
import { createKeyring } from '../../shared/api/keys.ts';
import { createDeliveryLog } from '../../shared/sinks/delivery-log.ts';
import { createMemoryTable } from '../../shared/table/memory-table.ts';
import { historySchema } from '../../shared/table/schema.ts';
import type { Table } from '../../shared/table/table.ts';

/** What an API needs besides table, log and regions, with a configured key that may do everything. */
export function apiParts(
  table: Table,
  bootstrap: string,
): Required<Pick<ApiDeps, 'keyring' | 'deliveries' | 'manage'>> {
  const now = Date.now;
  return {
    keyring: createKeyring({ table, now, bootstrap }),
    deliveries: createDeliveryLog(createMemoryTable(historySchema), { newId: randomUUID }),
    manage: { idempotency: createIdempotency({ table, now }) },
  };
}
