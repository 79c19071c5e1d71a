import { randomUUID } from 'node:crypto';
import type { ApiDeps } from '../../shared/api/app.ts';
import { createIdempotency } from '../../shared/api/idempotency.ts';
import { createKeyring } from '../../shared/api/keys.ts';
import { createEventLog } from '../../shared/log/log.ts';
import { createDeliveryLog } from '../../shared/sinks/delivery-log.ts';
import { createMemoryTable } from '../../shared/table/memory-table.ts';
import { historySchema } from '../../shared/table/schema.ts';
import type { Table } from '../../shared/table/table.ts';
import { type AccountSecrets, openLocalAccountSecrets } from '../../shared/tracking/credentials.ts';

/** A store of credentials that nobody else reads. */
function accountSecrets(): AccountSecrets {
  const opening = openLocalAccountSecrets(createMemoryTable(), new Uint8Array(32).fill(8));
  return {
    save: async (...of) => (await opening).save(...of),
    read: async (...of) => (await opening).read(...of),
    remove: async (...of) => (await opening).remove(...of),
    refuse: () => undefined,
  };
}

/** What an API needs besides table, log and regions, with a configured key that may do everything. */
export function apiParts(
  table: Table,
  bootstrap: string,
  regions: readonly string[] = ['us', 'nz'],
): Required<Pick<ApiDeps, 'keyring' | 'deliveries' | 'manage'>> {
  const now = Date.now;
  return {
    keyring: createKeyring({ table, now, bootstrap }),
    deliveries: createDeliveryLog(createMemoryTable(historySchema), { newId: randomUUID }),
    manage: {
      idempotency: createIdempotency({ table, now }),
      accounts: {
        ...{ table, now, newId: randomUUID, regions, services: {} },
        log: createEventLog(table, { now, newId: randomUUID, schemaBaseUrl: 'http://jobwire.test' }),
        secrets: accountSecrets(),
        minIntervalSeconds: 60,
      },
    },
  };
}
