/** Lambda: the part of a cell's HTTP API that changes something. */
import { randomUUID } from 'node:crypto';
import { SecretsManagerClient } from '@aws-sdk/client-secrets-manager';
import middy from '@middy/core';
import { createApi } from '../shared/api/app.ts';
import { createIdempotency } from '../shared/api/idempotency.ts';
import { createAwsAccountSecrets } from '../shared/tracking/credentials.ts';
import { createCellLog, createCellTable, REQUEST_TIMEOUTS, serviceOf } from './clients.ts';
import { ManageEnv, readEnv } from './env.ts';
import { MIN_INTERVAL_SECONDS } from './handlers/operate.ts';
import { createRestProxyHandler } from './handlers/rest-proxy.ts';
import { apiParts, settling } from './http.ts';
import { createTelemetry } from './telemetry.ts';

const env = readEnv(ManageEnv, process.env);
const table = createCellTable(env);
const log = createCellLog(env, table);
const telemetry = createTelemetry('manage', { stage: env.JOBWIRE_STAGE, region: env.JOBWIRE_REGION });

const parts = apiParts(env, table, telemetry);

const app = createApi({
  ...parts,
  manage: {
    accounts: {
      ...{ table, log, now: Date.now, newId: randomUUID },
      secrets: createAwsAccountSecrets(new SecretsManagerClient({ requestHandler: REQUEST_TIMEOUTS }), {
        stage: env.JOBWIRE_STAGE,
        keyArn: env.JOBWIRE_KEY_ARN,
        now: Date.now,
      }),
      regions: [env.JOBWIRE_REGION],
      services: { [env.JOBWIRE_REGION]: serviceOf(env) },
      minIntervalSeconds: MIN_INTERVAL_SECONDS,
    },
    idempotency: createIdempotency({
      table,
      now: Date.now,
      onFault: (cause) => telemetry.fault('What became of a request could not be kept.', cause),
    }),
  },
});

/** Invoked by the REST API for every method that changes something. */
export const handler = middy(createRestProxyHandler((request, from) => app.fetch(request, from)))
  .use(telemetry.logging)
  .use(telemetry.counting)
  .use(settling(parts));
