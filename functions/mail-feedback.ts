/** Lambda: records the mail feedback of SES. */
import { randomUUID } from 'node:crypto';
import middy from '@middy/core';
import { createCellTable, createHistoryTable } from './clients.ts';
import { MailFeedbackEnv, readEnv } from './env.ts';
import { createMailFeedbackHandler } from './handlers/mail-feedback.ts';
import { createTelemetry } from './telemetry.ts';

const env = readEnv(MailFeedbackEnv, process.env);
const telemetry = createTelemetry('mail-feedback', env);

/** Invoked with SES events from the queue of its topic. */
export const handler = middy(
  createMailFeedbackHandler({
    region: env.JOBWIRE_REGION,
    messages: {
      table: createCellTable(env),
      history: createHistoryTable(env),
      now: Date.now,
      newId: randomUUID,
    },
    telemetry,
  }),
)
  .use(telemetry.logging)
  .use(telemetry.counting);
