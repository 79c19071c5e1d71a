/** Lambda: the HTTP API of a cell. */
import { SecretsManagerClient } from '@aws-sdk/client-secrets-manager';
import middy from '@middy/core';
import { createApi } from '../shared/api/app.ts';
import { createSecretReader } from '../shared/secrets.ts';
import { createCellLog, createCellTable, REQUEST_TIMEOUTS } from './clients.ts';
import { ApiEnv, readEnv } from './env.ts';
import { createRestProxyHandler } from './handlers/rest-proxy.ts';
import { createTelemetry } from './telemetry.ts';

const env = readEnv(ApiEnv, process.env);
const table = createCellTable(env);
const telemetry = createTelemetry('api', { stage: env.JOBWIRE_STAGE, region: env.JOBWIRE_REGION });
const secrets = createSecretReader(new SecretsManagerClient({ requestHandler: REQUEST_TIMEOUTS }), {
  now: Date.now,
  maxAgeMs: 300_000,
});

const app = createApi({
  table,
  log: createCellLog(env, table),
  regions: [env.JOBWIRE_REGION],
  // Once per cold start: a changed key is known everywhere when the last instance with the old one has gone.
  apiKey: await secrets.readText(env.JOBWIRE_API_KEY_SECRET),
  now: Date.now,
  // An answer is handed over whole when it ends: short streams, which clients resume by the last id they got.
  pace: { streamMs: 20_000 },
  onError: (cause, request) => telemetry.fault('A request failed.', cause, request),
});

/** Invoked by the REST API for every path. */
export const handler = middy(createRestProxyHandler((request) => app.fetch(request))).use(telemetry.logging);
