/**
 * Lambda: the read part of a cell's HTTP API. Changes are in `manage.ts`, requests that wait in `live.ts`.
 */
import { randomUUID } from 'node:crypto';
import middy from '@middy/core';
import { createApi } from '../shared/api/app.ts';
import { createDeliveryLog } from '../shared/delivery/delivery-log.ts';
import { readApiFile } from './api-files.ts';
import { createCellTable, createHistoryTable } from './clients.ts';
import { ApiEnv, readEnv } from './env.ts';
import { createRestProxyHandler } from './handlers/rest-proxy.ts';
import { createApiDeps, createNotificationDeps, settling } from './http.ts';
import { createTelemetry } from './telemetry.ts';

const env = readEnv(ApiEnv, process.env);
const telemetry = createTelemetry('api', env);

const parts = createApiDeps(env, createCellTable(env), telemetry);

const app = createApi({
  ...parts,
  readFile: readApiFile,
  notifications: createNotificationDeps(env),
  deliveries: createDeliveryLog(createHistoryTable(env), { newId: randomUUID }),
  // Requests that wait are routed to another function. One that arrives here is answered at once.
  pace: { streamMs: 0, waitMs: 0 },
});

/** Invoked by the REST API for GET, HEAD and OPTIONS of every path without a separate function. */
export const handler = middy(
  createRestProxyHandler((request, from) => app.fetch(request, from), {
    pass: env.JOBWIRE_DISTRIBUTION_PASS,
  }),
)
  .use(telemetry.logging)
  .use(telemetry.counting)
  .use(settling(parts));
