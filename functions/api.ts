/** Lambda: the HTTP API of a cell, but for what waits (`live.ts`). */
import { randomUUID } from 'node:crypto';
import middy from '@middy/core';
import { createApi } from '../shared/api/app.ts';
import { createKeyring } from '../shared/api/keys.ts';
import { createDeliveryLog } from '../shared/sinks/delivery-log.ts';
import { createCellLog, createCellTable, createHistoryTable } from './clients.ts';
import { ApiEnv, readEnv } from './env.ts';
import { createRestProxyHandler } from './handlers/rest-proxy.ts';
import { createTelemetry } from './telemetry.ts';

const env = readEnv(ApiEnv, process.env);
const table = createCellTable(env);
const telemetry = createTelemetry('api', { stage: env.JOBWIRE_STAGE, region: env.JOBWIRE_REGION });

const app = createApi({
  table,
  log: createCellLog(env, table),
  regions: [env.JOBWIRE_REGION],
  keyring: createKeyring({ table, now: Date.now }),
  deliveries: createDeliveryLog(createHistoryTable(env), { newId: randomUUID }),
  now: Date.now,
  // What waits is sent to another function. Should a request for it get here all the same, it is answered at once.
  pace: { streamMs: 0, waitMs: 0 },
  onError: (cause, request) => telemetry.fault('A request failed.', cause, { ...request }),
});

/** Invoked by the REST API for every path without a function of its own. */
export const handler = middy(createRestProxyHandler((request) => app.fetch(request))).use(telemetry.logging);
