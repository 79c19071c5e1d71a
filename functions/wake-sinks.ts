/** Lambda: wakes the sinks of accounts whose log grew. */
import { SQSClient } from '@aws-sdk/client-sqs';
import middy from '@middy/core';
import { createCellTable, getLeastEpoch, REQUEST_TIMEOUTS } from './clients.ts';
import { readEnv, WakeSinksEnv } from './env.ts';
import { createSend } from './handlers/messages.ts';
import { createWakeSinksHandler } from './handlers/wake-sinks.ts';
import { createTelemetry } from './telemetry.ts';
import { createXrayTracing } from './tracing.ts';

const env = readEnv(WakeSinksEnv, process.env);
const telemetry = createTelemetry('wake-sinks', env);
const { tracing, sending } = createXrayTracing(env, telemetry);

/** Invoked with new wake marks of the table's stream. */
export const handler = middy(
  createWakeSinksHandler({
    region: env.JOBWIRE_REGION,
    table: createCellTable(env),
    leastEpoch: getLeastEpoch(env),
    sendDrains: createSend(new SQSClient({ requestHandler: REQUEST_TIMEOUTS }), env.JOBWIRE_DRAIN_QUEUE_URL),
    telemetry,
    tracing,
    now: Date.now,
  }),
)
  .use(telemetry.logging)
  .use(sending);
