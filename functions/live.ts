/** Lambda: the part of a cell's HTTP API that waits, streams and feeds; an invocation is held for each. */
import { randomUUID } from 'node:crypto';
import middy from '@middy/core';
import { executionModeStreamifyResponse } from '@middy/core/StreamifyResponse';
import { createApi } from '../shared/api/app.ts';
import { createKeyring } from '../shared/api/keys.ts';
import { createSlots } from '../shared/api/slots.ts';
import { createCellLog, createCellTable } from './clients.ts';
import { LiveEnv, readEnv } from './env.ts';
import { createStreamingHandler } from './handlers/rest-proxy.ts';
import { createTelemetry } from './telemetry.ts';

const env = readEnv(LiveEnv, process.env);
const region = env.JOBWIRE_REGION;
const table = createCellTable(env);
const telemetry = createTelemetry('live', { stage: env.JOBWIRE_STAGE, region });

const app = createApi({
  table,
  log: createCellLog(env, table),
  regions: [region],
  keyring: createKeyring({ table, now: Date.now }),
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
  onError: (cause, request) => telemetry.fault('A request failed.', cause, { ...request }),
});

/** Invoked by the REST API for the streams and feeds; answers as it goes. */
export const handler = middy(
  createStreamingHandler((request) => app.fetch(request)),
  { executionMode: executionModeStreamifyResponse },
).use(telemetry.logging);
