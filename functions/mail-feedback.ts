/** Lambda: keeps what SES hears of mails. */
import { randomUUID } from 'node:crypto';
import middy from '@middy/core';
import { createCellTable, createHistoryTable } from './clients.ts';
import { MailFeedbackEnv, readEnv } from './env.ts';
import { createMailFeedbackHandler } from './handlers/mail-feedback.ts';
import { createTelemetry } from './telemetry.ts';

const env = readEnv(MailFeedbackEnv, process.env);
const telemetry = createTelemetry('mail-feedback', { stage: env.JOBWIRE_STAGE, region: env.JOBWIRE_REGION });

/** Invoked with events of SES, as its topic puts them into the queue. */
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
