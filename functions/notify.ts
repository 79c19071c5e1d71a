/** Lambda: sends notifications to customers. */
import { randomUUID } from 'node:crypto';
import middy from '@middy/core';
import type { SendDeps } from '../shared/notifications/send-report.ts';
import { sendDue } from '../shared/notifications/sender.ts';
import { createSesTransport } from '../shared/notifications/ses.ts';
import { createSnsSmsTransport } from '../shared/notifications/sms.ts';
import { createCellTable, createHistoryTable } from './clients.ts';
import { NotifyEnv, readEnv } from './env.ts';
import { createNotifyHandler, SEND_TIMEOUT_MS } from './handlers/notify.ts';
import { createTelemetry } from './telemetry.ts';

const env = readEnv(NotifyEnv, process.env);
const region = env.JOBWIRE_REGION;
const telemetry = createTelemetry('notify', env);
const deps: SendDeps = {
  table: createCellTable(env),
  history: createHistoryTable(env),
  now: Date.now,
  newId: randomUUID,
  random: Math.random,
  publicUrl: env.JOBWIRE_PUBLIC_URL.replace(/\/$/, ''),
  email: createSesTransport({
    aws: {},
    from: env.JOBWIRE_MAIL_FROM,
    configurationSet: env.JOBWIRE_MAIL_CONFIGURATION_SET,
  }),
  ...(env.JOBWIRE_CHANNELS?.includes('sms')
    ? { sms: createSnsSmsTransport({ aws: {}, senderId: env.JOBWIRE_SMS_SENDER_ID ?? null }) }
    : {}),
  sendTimeoutMs: SEND_TIMEOUT_MS,
  report: (line) => telemetry.notification(line),
};

/** Invoked with messages of the tick. */
export const handler = middy(
  createNotifyHandler({ send: (deadline) => sendDue(deps, region, deadline), telemetry, now: Date.now }),
)
  .use(telemetry.logging)
  .use(telemetry.counting);
