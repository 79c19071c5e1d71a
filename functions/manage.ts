/** Lambda: the part of a cell's HTTP API that changes resources. */
import middy from '@middy/core';
import { createApi } from '../shared/api/app.ts';
import { createIdempotency } from '../shared/api/idempotency.ts';
import { createSesTransport } from '../shared/notifications/ses.ts';
import { createCellTable } from './clients.ts';
import { ManageEnv, readEnv } from './env.ts';
import { createRestProxyHandler } from './handlers/rest-proxy.ts';
import { apiParts, notificationParts, settling } from './http.ts';
import { createManagement } from './management-deps.ts';
import { createTelemetry } from './telemetry.ts';

/** Timeout of one step (ms). Testing credentials takes three steps, and API Gateway waits for 29 seconds. */
const STEP_MS = 8_000;

const env = readEnv(ManageEnv, process.env);
const table = createCellTable(env);
const telemetry = createTelemetry('manage', env);
const parts = apiParts(env, table, telemetry);

const app = createApi({
  ...parts,
  notifications: notificationParts(env),
  manage: {
    mailer: createMailer(env),
    ...createManagement(env, { table, log: parts.log, telemetry, stepMs: STEP_MS }),
    idempotency: createIdempotency({
      table,
      now: Date.now,
      onFault: (cause) => telemetry.fault('The outcome of a request could not be stored.', cause),
    }),
  },
});

/** Returns the transport of test e-mails. `undefined` in cells without notifications. */
function createMailer(settings: typeof env) {
  const { JOBWIRE_MAIL_FROM: from, JOBWIRE_MAIL_CONFIGURATION_SET: configurationSet } = settings;
  if (from === undefined) return undefined;
  return createSesTransport({
    ...{ aws: {}, from, timeoutMs: STEP_MS },
    ...(configurationSet === undefined ? {} : { configurationSet }),
  });
}

/** Invoked by the REST API for every method that changes resources. */
export const handler = middy(
  createRestProxyHandler((request, from) => app.fetch(request, from), {
    pass: env.JOBWIRE_DISTRIBUTION_PASS,
  }),
)
  .use(telemetry.logging)
  .use(telemetry.counting)
  .use(settling(parts));
