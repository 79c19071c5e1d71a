import { randomUUID } from 'node:crypto';
import { readApiFile } from '../../local/api-files.ts';
import { type AccountSecrets, openLocalAccountSecrets } from '../../shared/accounts/credentials.ts';
import { createReferenceRemover } from '../../shared/api/account-references.ts';
import type { ApiDeps } from '../../shared/api/app.ts';
import { createIdempotency } from '../../shared/api/idempotency.ts';
import { createKeyring } from '../../shared/api/keys.ts';
import { createDeliveryLog } from '../../shared/delivery/delivery-log.ts';
import type { EndpointDeps } from '../../shared/delivery/endpoint-edits.ts';
import { createConnectionPool } from '../../shared/delivery/outbound.ts';
import {
  createSigningReader,
  openLocalSigningSecrets,
  type SigningSecrets,
} from '../../shared/delivery/signing-secrets.ts';
import { createWebhookSink } from '../../shared/delivery/webhook.ts';
import { createEventLog } from '../../shared/log/log.ts';
import { unfollowAccount } from '../../shared/notifications/settings.ts';
import { removeItemEntries } from '../../shared/search/indexing.ts';
import { openSealedTexts, type SealedTexts } from '../../shared/secrets.ts';
import { historySchema } from '../../shared/storage/schema.ts';
import { createMemoryTable } from '../../shared/storage/sqlite-table.ts';
import type { Table } from '../../shared/storage/table.ts';

/** A store of credentials that no other process reads. */
function accountSecrets(): AccountSecrets {
  const opening = openLocalAccountSecrets(createMemoryTable(), new Uint8Array(32).fill(8));
  return {
    save: async (...of) => (await opening).save(...of),
    read: async (...of) => (await opening).read(...of),
    remove: async (...of) => (await opening).remove(...of),
    checkSecretRef: () => undefined,
  };
}

/** The dependencies of an API besides table, log and regions, with a configured key that has all permissions. */
export function apiParts(
  table: Table,
  bootstrap: string,
  now: () => number = Date.now,
  regions: readonly string[] = ['us', 'nz'],
): Required<Pick<ApiDeps, 'keyring' | 'deliveries' | 'manage' | 'readFile' | 'notifications' | 'alerts'>> {
  const schemaBaseUrl = 'http://jobwire.test';
  const log = createEventLog(table, { now, newId: randomUUID, schemaBaseUrl });
  const history = createMemoryTable(historySchema);
  const deliveries = createDeliveryLog(history, { newId: randomUUID });
  const secrets = lazySecrets(table);
  const signing = createSigningReader(secrets, now, 0);
  const connections = createConnectionPool({ allowPrivateNetworks: true });
  const endpoints: EndpointDeps = {
    ...{ table, log, secrets, deliveries, now, schemaBaseUrl },
    newId: randomUUID,
    allowPrivateNetworks: true,
    checkQueue: (arn) => (arn.includes(':111122223333:') ? undefined : 'this test has no such queue'),
    open: async ({ region, id, target }) =>
      createWebhookSink({
        url: target,
        ...(await signing(region, id)),
        now,
        connections: connections.of(`${region}/${id}`, 4),
      }),
  };
  return {
    keyring: createKeyring({ table, now, bootstrap }),
    deliveries,
    notifications: { history, publicUrl: schemaBaseUrl, channels: ['email', 'sms'] },
    readFile: readApiFile,
    alerts: {
      rules: { table, now, targets: lazyTargets(table), allowPrivateNetworks: true, canMail: false },
      sending: {
        ...{ targets: lazyTargets(table), connections, mailer: undefined },
        dashboardUrl: `${schemaBaseUrl}/`,
      },
    },
    manage: {
      idempotency: createIdempotency({ table, now }),
      accounts: {
        ...{ table, history, log, now, newId: randomUUID, regions, services: {} },
        secrets: accountSecrets(),
        removeReferences: createReferenceRemover(endpoints),
        unfollowNotifications: unfollowAccount,
        removeSearchEntries: removeItemEntries,
        minIntervalSeconds: 60,
      },
      endpoints,
      mailer: { domain: 'shop.example', send: async () => ({ kind: 'accepted', providerId: null }) },
    },
  };
}

/** Opened on first use, because opening writes an item. */
function lazyTargets(table: Table): SealedTexts {
  let opened: Promise<SealedTexts> | undefined;
  const open = () => {
    opened ??= openSealedTexts(table, new Uint8Array(32).fill(7));
    return opened;
  };
  return {
    load: async (...args) => (await open()).load(...args),
    save: async (...args) => (await open()).save(...args),
    remove: async (...args) => (await open()).remove(...args),
  };
}

/** Opened on first use, because opening writes an item. */
function lazySecrets(table: Table): SigningSecrets {
  let opened: Promise<SigningSecrets> | undefined;
  const open = () => {
    opened ??= openLocalSigningSecrets(table, new Uint8Array(32).fill(7));
    return opened;
  };
  return {
    load: async (...args) => (await open()).load(...args),
    save: async (...args) => (await open()).save(...args),
    remove: async (...args) => (await open()).remove(...args),
  };
}
