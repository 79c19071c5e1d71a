/** Lambda: the tick, each minute. */
import { SQSClient } from '@aws-sdk/client-sqs';
import middy from '@middy/core';
import { createCellLog, createCellTable, REQUEST_TIMEOUTS } from './clients.ts';
import { readEnv, TickEnv } from './env.ts';
import { createSend } from './handlers/messages.ts';
import { createTickHandler } from './handlers/tick.ts';
import { createTelemetry } from './telemetry.ts';

const env = readEnv(TickEnv, process.env);
const table = createCellTable(env);
const sqs = new SQSClient({ requestHandler: REQUEST_TIMEOUTS });
const untilDue = ({ dueAt }: { readonly dueAt: number }) => dueAt - Date.now();
const telemetry = createTelemetry('tick', env);

/** Invoked by the schedule. */
export const handler = middy(
  createTickHandler({
    region: env.JOBWIRE_REGION,
    table,
    log: createCellLog(env, table),
    topicArn: env.JOBWIRE_TOPIC_ARN,
    standardTopicArn: env.JOBWIRE_STANDARD_TOPIC_ARN,
    eventBusArn: env.JOBWIRE_EVENT_BUS_ARN,
    sendPolls: createSend(sqs, env.JOBWIRE_POLL_QUEUE_URL, untilDue),
    sendLonePolls: createSend(sqs, env.JOBWIRE_LONE_POLL_QUEUE_URL, untilDue),
    sendDrains: createSend(sqs, env.JOBWIRE_DRAIN_QUEUE_URL),
    sendNotify: env.JOBWIRE_NOTIFY_QUEUE_URL ? createSend(sqs, env.JOBWIRE_NOTIFY_QUEUE_URL) : undefined,
    telemetry,
    now: Date.now,
  }),
)
  .use(telemetry.logging)
  .use(telemetry.counting);
