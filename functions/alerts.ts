/** Lambda: evaluates the alert rules, each minute. Separate from the tick, which a slow target must not delay. */
import middy from '@middy/core';
import { createConnectionPool } from '../shared/delivery/outbound.ts';
import { createCellTable, createHistoryTable } from './clients.ts';
import { AlertsEnv, readEnv } from './env.ts';
import { createAlertsHandler, MAIL_TIMEOUT_MS } from './handlers/alerts.ts';
import { createMailer } from './mailer.ts';
import { openCellSecrets } from './secrets.ts';
import { createTelemetry } from './telemetry.ts';

const env = readEnv(AlertsEnv, process.env);
const table = createCellTable(env);
const telemetry = createTelemetry('alerts', env);

/** Invoked by the schedule. */
export const handler = middy(
  createAlertsHandler({
    region: env.JOBWIRE_REGION,
    alerts: {
      table,
      history: createHistoryTable(env),
      targets: openCellSecrets(env, table),
      connections: createConnectionPool({ allowPrivateNetworks: false }),
      mailer: createMailer(env, MAIL_TIMEOUT_MS),
      dashboardUrl: env.JOBWIRE_DASHBOARD_URL ?? null,
      now: Date.now,
    },
    telemetry,
  }),
)
  .use(telemetry.logging)
  .use(telemetry.counting);
