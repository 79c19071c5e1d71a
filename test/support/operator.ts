/** The operator's function, and the dependencies of account and endpoint operations, on tables in memory with a clock that tests set. */
import { randomUUID } from 'node:crypto';
import { createOperateHandler } from '../../functions/handlers/operate.ts';
import type { Telemetry } from '../../functions/telemetry.ts';
import type { TestDeps } from '../../shared/accounts/account-test.ts';
import { type AccountSecrets, createAccountSecrets } from '../../shared/accounts/credentials.ts';
import type { AccountDeps } from '../../shared/accounts/managed-accounts.ts';
import { createReferenceRemover } from '../../shared/api/account-references.ts';
import { createDeliveryLog } from '../../shared/delivery/delivery-log.ts';
import type { EndpointDeps } from '../../shared/delivery/endpoint-edits.ts';
import { createSigningSecrets } from '../../shared/delivery/signing-secrets.ts';
import type { SinkPort } from '../../shared/delivery/sink.ts';
import { epochFloor } from '../../shared/log/head.ts';
import { createEventLog } from '../../shared/log/log.ts';
import { unfollowAccount } from '../../shared/notifications/settings.ts';
import { removeItemEntries } from '../../shared/search/indexing.ts';
import { SecretError } from '../../shared/secrets.ts';
import { historySchema } from '../../shared/storage/schema.ts';
import { createMemoryTable } from '../../shared/storage/sqlite-table.ts';
import type { Table } from '../../shared/storage/table.ts';
import { FakeKms, sealWithKms } from './kms.ts';

/** Reference to the credentials of an account in these tests' cell. */
export const SECRET = 'jobwire/test/us/accounts/acme';

interface Options {
  readonly stage?: string;
  readonly table?: Table;
  readonly history?: Table;
  readonly now?: () => number;
  /** Sink of all endpoints. Default: accepts everything. */
  readonly port?: SinkPort;
  /** Store of account credentials. Default: the table, without secrets of owners. */
  readonly accountSecrets?: AccountSecrets;
  /** URLs of the ordering API. */
  readonly services?: TestDeps['services'];
  /** Time at which the table was restored from a backup (epoch ms). */
  readonly restoredAt?: number;
}

/** See the top of the file. */
export async function createOperator(options: Options = {}) {
  const clock = { now: Date.parse('2026-03-02T08:00:00Z') };
  const { now = () => clock.now, table = createMemoryTable() } = options;
  const { restoredAt } = options;
  const log = createEventLog(table, {
    ...(restoredAt !== undefined && { leastEpoch: epochFloor(restoredAt) }),
    now,
    newId: randomUUID,
    schemaBaseUrl: 'https://us.jobwire.example',
  });
  const reports: Parameters<Telemetry['operate']>[0][] = [];
  const { stage = 'test' } = options;
  const texts = sealWithKms(table, new FakeKms(), { stage, now });
  const secrets = createSigningSecrets(texts);
  const { port = { maxBatch: 1, deliver: async () => [{ kind: 'delivered' }] } } = options;
  const { history = createMemoryTable(historySchema) } = options;
  const endpoints: EndpointDeps = {
    ...{ table, log, secrets, now, newId: randomUUID },
    deliveries: createDeliveryLog(history, { newId: randomUUID }),
    open: async () => port,
    schemaBaseUrl: 'https://us.jobwire.example',
    allowPrivateNetworks: false,
  };
  const accounts: AccountDeps & TestDeps = {
    ...{ table, history, log, now, newId: randomUUID },
    removeReferences: createReferenceRemover(endpoints),
    unfollowNotifications: unfollowAccount,
    removeSearchEntries: removeItemEntries,
    secrets:
      options.accountSecrets ??
      createAccountSecrets(texts, {
        stage,
        cell: 'us',
        readSecret: (secretRef) => Promise.reject(new SecretError(secretRef, 'is missing.')),
      }),
    regions: ['us'],
    minIntervalSeconds: 60,
    services: options.services ?? {},
  };
  const run = createOperateHandler({
    ...{ table, log, now },
    region: 'us',
    isRestored: restoredAt !== undefined,
    telemetry: { operate: (report) => void reports.push(report) },
  });
  return { clock, table, log, texts, secrets, accounts, endpoints, reports, run };
}
