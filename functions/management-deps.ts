/** Dependencies of the API operations that change accounts and endpoints. */
import { randomUUID } from 'node:crypto';
import { SecretsManagerClient } from '@aws-sdk/client-secrets-manager';
import type * as z from 'zod';
import { CELL_MIN_INTERVAL_SECONDS } from '../shared/accounts/account-input.ts';
import type { TestDeps } from '../shared/accounts/account-test.ts';
import { createAccountSecrets } from '../shared/accounts/credentials.ts';
import type { AccountDeps } from '../shared/accounts/managed-accounts.ts';
import { createSecretReader } from '../shared/accounts/owner-secrets.ts';
import { createReferenceRemover } from '../shared/api/account-references.ts';
import { createDeliveryLog } from '../shared/delivery/delivery-log.ts';
import type { EndpointDeps } from '../shared/delivery/endpoint-edits.ts';
import { createSigningReader, createSigningSecrets } from '../shared/delivery/signing-secrets.ts';
import { createQueueOpener } from '../shared/delivery/sqs.ts';
import type { EventLog } from '../shared/log/log.ts';
import { unfollowAccount } from '../shared/notifications/settings.ts';
import { removeItemEntries } from '../shared/search/indexing.ts';
import type { Table } from '../shared/storage/table.ts';
import { createHistoryTable, getEventUrls, REQUEST_TIMEOUTS, toRegionSettings } from './clients.ts';
import type { ManageEnv } from './env.ts';
import { createEndpointOpener } from './handlers/drain-sink.ts';
import { openCellSecrets } from './secrets.ts';
import type { Telemetry } from './telemetry.ts';

/** Why Jobwire cannot send to a queue. */
const UNDECLARED_QUEUE = 'the settings of the cell do not declare this queue (queues)';

/** Returns the dependencies of the account and endpoint operations, in the cell's one region. */
export function createManagement(
  env: z.infer<typeof ManageEnv>,
  parts: {
    readonly table: Table;
    readonly log: EventLog;
    readonly telemetry: Pick<Telemetry, 'attempt'>;
    /** Timeout (ms) of one step of testing credentials. */
    readonly stepMs: number;
  },
): { readonly accounts: AccountDeps & TestDeps; readonly endpoints: EndpointDeps } {
  const { table, log, telemetry, stepMs } = parts;
  const client = new SecretsManagerClient({ requestHandler: REQUEST_TIMEOUTS });
  const texts = openCellSecrets(env, table);
  const secrets = createSigningSecrets(texts);
  const history = createHistoryTable(env);
  const shared = { table, log, now: Date.now, newId: randomUUID };
  const endpoints: EndpointDeps = {
    ...shared,
    secrets,
    deliveries: createDeliveryLog(history, { newId: randomUUID }),
    attempted: (attempt) => telemetry.attempt(attempt),
    // No cache between requests: a secret that was just changed must sign the next request.
    open: createEndpointOpener({
      signing: createSigningReader(secrets, Date.now, 0),
      openQueue: createQueueOpener({ publicUrl: env.JOBWIRE_PUBLIC_URL, requestHandler: REQUEST_TIMEOUTS }),
      now: Date.now,
    }),
    ...getEventUrls(env),
    allowPrivateNetworks: false,
    checkQueue: (arn) => (env.JOBWIRE_QUEUES?.includes(arn) ? undefined : UNDECLARED_QUEUE),
  };
  return {
    accounts: {
      ...shared,
      history,
      removeReferences: createReferenceRemover(endpoints),
      unfollowNotifications: unfollowAccount,
      removeSearchEntries: removeItemEntries,
      secrets: createAccountSecrets(texts, {
        // No cache, so that credentials are current right after a change.
        readSecret: createSecretReader(client, { now: Date.now, maxAgeMs: 0 }).readSecret,
        stage: env.JOBWIRE_STAGE,
        cell: env.JOBWIRE_CELL,
      }),
      regions: [env.JOBWIRE_REGION],
      services: { [env.JOBWIRE_REGION]: toRegionSettings(env) },
      minIntervalSeconds: CELL_MIN_INTERVAL_SECONDS,
      stepMs,
    },
    endpoints,
  };
}
