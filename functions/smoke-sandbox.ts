/** Lambda behind a function URL, deployed only for a smoke test: see {@link createSmokeSandbox}. */
import { SendMessageCommand, SQSClient } from '@aws-sdk/client-sqs';
import { handle } from 'hono/aws-lambda';
import { REQUEST_TIMEOUTS } from './clients.ts';
import { readEnv, SmokeSandboxEnv } from './env.ts';
import { createSmokeSandbox } from './handlers/smoke-sandbox.ts';

const env = readEnv(SmokeSandboxEnv, process.env);
const sqs = new SQSClient({ requestHandler: REQUEST_TIMEOUTS });

export const handler = handle(
  createSmokeSandbox({
    region: env.JOBWIRE_REGION,
    secretHash: env.SMOKE_SECRET_HASH,
    startedAt: env.SMOKE_STARTED_AT,
    now: Date.now,
    async keep(webhook) {
      const MessageBody = JSON.stringify(webhook);
      await sqs.send(new SendMessageCommand({ QueueUrl: env.SMOKE_QUEUE_URL, MessageBody }));
    },
  }),
);
