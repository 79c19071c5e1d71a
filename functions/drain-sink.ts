/** Lambda: drains sinks. */
import { randomUUID } from 'node:crypto';
import { EventBridgeClient } from '@aws-sdk/client-eventbridge';
import { SNSClient } from '@aws-sdk/client-sns';
import middy from '@middy/core';
import { createDeliveryLog } from '../shared/delivery/delivery-log.ts';
import { DEFAULT_RETRY_SECONDS } from '../shared/delivery/health.ts';
import { createSigningReader, createSigningSecrets } from '../shared/delivery/signing-secrets.ts';
import { createQueueOpener } from '../shared/delivery/sqs.ts';
import { createNotificationsSink } from '../shared/notifications/notifications-sink.ts';
import { createCellLog, createCellTable, createHistoryTable, REQUEST_TIMEOUTS } from './clients.ts';
import { DrainSinkEnv, readEnv } from './env.ts';
import { createDrainSinkHandler, createSinkOpener } from './handlers/drain-sink.ts';
import { openCellSecrets } from './secrets.ts';
import { createTelemetry } from './telemetry.ts';
import { createXrayTracing } from './tracing.ts';

const env = readEnv(DrainSinkEnv, process.env);
const table = createCellTable(env);
const history = createHistoryTable(env);
const signingSecrets = createSigningSecrets(openCellSecrets(env, table));
const telemetry = createTelemetry('drain-sink', env);
const { tracing, sending } = createXrayTracing(env, telemetry);

/** Invoked with messages of the drain queue. */
export const handler = middy(
  createDrainSinkHandler({
    region: env.JOBWIRE_REGION,
    draining: {
      table,
      log: createCellLog(env, table),
      now: Date.now,
      newId: randomUUID,
      random: Math.random,
      retrySeconds: DEFAULT_RETRY_SECONDS,
      deliveries: createDeliveryLog(history, { newId: randomUUID }),
      open: createSinkOpener({
        sns: new SNSClient({ requestHandler: REQUEST_TIMEOUTS }),
        eventBridge: new EventBridgeClient({ requestHandler: REQUEST_TIMEOUTS }),
        openQueue: createQueueOpener({ publicUrl: env.JOBWIRE_PUBLIC_URL, requestHandler: REQUEST_TIMEOUTS }),
        publicUrl: env.JOBWIRE_PUBLIC_URL,
        signing: createSigningReader(signingSecrets, Date.now),
        now: Date.now,
        notifications: env.JOBWIRE_CHANNELS && createNotificationsSink({ table, history, now: Date.now }),
      }),
    },
    telemetry,
    tracing,
  }),
)
  .use(telemetry.logging)
  .use(telemetry.counting)
  .use(sending);
