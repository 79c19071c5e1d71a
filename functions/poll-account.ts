/** Lambda: polls the accounts that the tick has claimed. */
import { randomUUID } from 'node:crypto';
import { SecretsManagerClient } from '@aws-sdk/client-secrets-manager';
import middy from '@middy/core';
import { createConnector, tableTokenCache } from '../shared/accounts/connect.ts';
import { createAccountSecrets, isKept } from '../shared/accounts/credentials.ts';
import { createSecretReader } from '../shared/accounts/owner-secrets.ts';
import { syncOwnUser } from '../shared/notifications/own-user.ts';
import { cacheReads } from '../shared/secrets.ts';
import { DEFAULT_TRACKING } from '../shared/tracking/schedule.ts';
import {
  CREDENTIALS_MAX_AGE_MS,
  createCellLog,
  createCellTable,
  REQUEST_TIMEOUTS,
  toRegionSettings,
} from './clients.ts';
import { PollAccountEnv, readEnv } from './env.ts';
import { createPollAccountHandler } from './handlers/poll-account.ts';
import { openCellSecrets } from './secrets.ts';
import { createTelemetry } from './telemetry.ts';
import { createXrayTracing } from './tracing.ts';

const env = readEnv(PollAccountEnv, process.env);
const table = createCellTable(env);
const telemetry = createTelemetry('poll-account', env);
const { tracing, sending } = createXrayTracing(env, telemetry);
const owned = createSecretReader(new SecretsManagerClient({ requestHandler: REQUEST_TIMEOUTS }), {
  now: Date.now,
  maxAgeMs: CREDENTIALS_MAX_AGE_MS,
});
const readKept = cacheReads(
  createAccountSecrets(openCellSecrets(env, table)).read,
  Date.now,
  CREDENTIALS_MAX_AGE_MS,
);

/** Invoked with messages of the poll queue. */
export const handler = middy(
  createPollAccountHandler({
    region: env.JOBWIRE_REGION,
    polling: {
      table,
      log: createCellLog(
        env,
        table,
        tracing && { traceCommit: tracing.traceCommit, onCommitted: tracing.committed },
      ),
      settings: DEFAULT_TRACKING,
      now: Date.now,
      newId: randomUUID,
      syncApiUser: syncOwnUser,
      connect: createConnector({
        regions: { [env.JOBWIRE_REGION]: toRegionSettings(env) },
        readSecret: (secretRef) => (isKept(secretRef) ? readKept(secretRef) : owned.readSecret(secretRef)),
        onCredentialsRejected: (secretRef) => {
          owned.forget(secretRef);
          readKept.forget(secretRef);
        },
        tokenCache: (ref, version) => tableTokenCache(table, ref, version),
        now: Date.now,
      }),
    },
    telemetry,
    tracing,
  }),
)
  .use(telemetry.logging)
  .use(telemetry.counting)
  .use(sending);
