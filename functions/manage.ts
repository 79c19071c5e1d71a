/** Lambda: the part of a cell's HTTP API that changes resources. */
import middy from '@middy/core';
import { createApi } from '../shared/api/app.ts';
import { createIdempotency } from '../shared/api/idempotency.ts';
import { createConnectionPool } from '../shared/delivery/outbound.ts';
import { createCellTable } from './clients.ts';
import { ManageEnv, readEnv } from './env.ts';
import { createRestProxyHandler } from './handlers/rest-proxy.ts';
import { createApiDeps, createNotificationDeps, settling } from './http.ts';
import { createMailer } from './mailer.ts';
import { createManagement } from './management-deps.ts';
import { openCellSecrets } from './secrets.ts';
import { createTelemetry } from './telemetry.ts';

/** Timeout of one step (ms). Testing credentials takes three steps, and API Gateway waits for 29 seconds. */
const STEP_MS = 8_000;

const env = readEnv(ManageEnv, process.env);
const table = createCellTable(env);
const telemetry = createTelemetry('manage', env);
const parts = createApiDeps(env, table, telemetry);
const mailer = createMailer(env, STEP_MS);
const targets = openCellSecrets(env, table);

const app = createApi({
  ...parts,
  notifications: createNotificationDeps(env),
  manage: {
    mailer,
    ...createManagement(env, { table, log: parts.log, telemetry, stepMs: STEP_MS }),
    idempotency: createIdempotency({
      table,
      now: Date.now,
      onFault: (cause) => telemetry.fault('The outcome of a request could not be stored.', cause),
    }),
  },
  alerts: {
    rules: {
      ...{ table, targets, allowPrivateNetworks: false, canMail: mailer !== undefined },
      now: Date.now,
    },
    sending: {
      ...{ targets, mailer, dashboardUrl: env.JOBWIRE_DASHBOARD_URL ?? null },
      connections: createConnectionPool({ allowPrivateNetworks: false }),
    },
  },
});

/** Invoked by the REST API for every method that changes resources. */
export const handler = middy(
  createRestProxyHandler((request, from) => app.fetch(request, from), {
    pass: env.JOBWIRE_DISTRIBUTION_PASS,
  }),
)
  .use(telemetry.logging)
  .use(telemetry.counting)
  .use(settling(parts));
