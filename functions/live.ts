/** Lambda: the part of a cell's HTTP API that waits, streams and feeds; an invocation is held for each. */
import { randomUUID } from 'node:crypto';
import { SecretsManagerClient } from '@aws-sdk/client-secrets-manager';
import middy from '@middy/core';
import { executionModeStreamifyResponse } from '@middy/core/StreamifyResponse';
import { createApi } from '../shared/api/app.ts';
import { createSlots } from '../shared/api/slots.ts';
import { createSecretReader } from '../shared/secrets.ts';
import { createCellLog, createCellTable, REQUEST_TIMEOUTS } from './clients.ts';
import { LiveEnv, readEnv } from './env.ts';
import { createStreamingHandler } from './handlers/rest-proxy.ts';
import { createTelemetry } from './telemetry.ts';

const env = readEnv(LiveEnv, process.env);
const region = env.JOBWIRE_REGION;
const table = createCellTable(env);
const telemetry = createTelemetry('live', { stage: env.JOBWIRE_STAGE, region });
const secrets = createSecretReader(new SecretsManagerClient({ requestHandler: REQUEST_TIMEOUTS }), {
  now: Date.now,
  maxAgeMs: 300_000,
});

const app = createApi({
  table,
  log: createCellLog(env, table),
  regions: [region],
  // Once per cold start: a changed key is known everywhere when the last instance with the old one has gone.
  apiKey: await secrets.readText(env.JOBWIRE_API_KEY_SECRET),
  now: Date.now,
  // A client that goes does not end the invocation: only its own end does.
  pace: { streamMs: env.JOBWIRE_STREAM_SECONDS * 1000 },
  slots: createSlots({
    table,
    region,
    perKey: env.JOBWIRE_STREAMS_PER_KEY,
    now: Date.now,
    newId: randomUUID,
    random: Math.random,
  }),
  onError: (cause, request) => telemetry.fault('A request failed.', cause, request),
});

/** Invoked by the REST API for the streams and feeds; answers as it goes. */
export const handler = middy(
  createStreamingHandler((request) => app.fetch(request)),
  { executionMode: executionModeStreamifyResponse },
).use(telemetry.logging);
