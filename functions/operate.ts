/** Lambda: an operator's commands. Who may invoke it is IAM's business. */
import { randomUUID } from 'node:crypto';
import { SecretsManagerClient } from '@aws-sdk/client-secrets-manager';
import middy from '@middy/core';
import { createDeliveryLog } from '../shared/sinks/delivery-log.ts';
import { createAwsSigningSecrets, createSigningReader } from '../shared/sinks/signing-secrets.ts';
import { createAwsAccountSecrets } from '../shared/tracking/credentials.ts';
import {
  createCellLog,
  createCellTable,
  createHistoryTable,
  REQUEST_TIMEOUTS,
  serviceOf,
} from './clients.ts';
import { OperateEnv, readEnv } from './env.ts';
import { createWebhookOpener } from './handlers/drain-sink.ts';
import { createOperateHandler, MIN_INTERVAL_SECONDS } from './handlers/operate.ts';
import { createTelemetry } from './telemetry.ts';

const env = readEnv(OperateEnv, process.env);
const table = createCellTable(env);
const log = createCellLog(env, table);
const secretsManager = new SecretsManagerClient({ requestHandler: REQUEST_TIMEOUTS });
const keeping = { stage: env.JOBWIRE_STAGE, keyArn: env.JOBWIRE_KEY_ARN, now: Date.now };
const secrets = createAwsSigningSecrets(secretsManager, keeping);
const telemetry = createTelemetry('operate', { stage: env.JOBWIRE_STAGE, region: env.JOBWIRE_REGION });

/** Invoked with one command: see {@link createOperateHandler}. */
export const handler = middy(
  createOperateHandler({
    region: env.JOBWIRE_REGION,
    accounts: {
      ...{ table, log, now: Date.now, newId: randomUUID },
      secrets: createAwsAccountSecrets(secretsManager, keeping),
      regions: [env.JOBWIRE_REGION],
      services: { [env.JOBWIRE_REGION]: serviceOf(env) },
      minIntervalSeconds: MIN_INTERVAL_SECONDS,
    },
    isRestored: env.JOBWIRE_RESTORED_AT !== undefined,
    table,
    log,
    secrets,
    deliveries: createDeliveryLog(createHistoryTable(env), { newId: randomUUID }),
    // Nothing is kept from one command to the next: a secret that was just changed is the one to sign with.
    attempted: (attempt) => telemetry.attempt(attempt),
    open: createWebhookOpener({ signing: createSigningReader(secrets, Date.now, 0), now: Date.now }),
    schemaBaseUrl: env.JOBWIRE_PUBLIC_URL.replace(/\/$/, ''),
    allowPrivateNetworks: false,
    now: Date.now,
    newId: randomUUID,
    telemetry,
  }),
).use(telemetry.logging);
