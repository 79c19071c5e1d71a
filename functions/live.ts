/** Lambda: the part of a cell's HTTP API that waits: streams and feeds. Each holds an invocation. */
import { randomUUID } from 'node:crypto';
import middy from '@middy/core';
import { executionModeStreamifyResponse } from '@middy/core/StreamifyResponse';
import { createApi } from '../shared/api/app.ts';
import { createSlots } from '../shared/api/waiting-limit.ts';
import { createCellTable } from './clients.ts';
import { LiveEnv, readEnv } from './env.ts';
import { createStreamingHandler } from './handlers/rest-proxy.ts';
import { createApiDeps, settling } from './http.ts';
import { createTelemetry } from './telemetry.ts';

const env = readEnv(LiveEnv, process.env);
const region = env.JOBWIRE_REGION;
const table = createCellTable(env);
const telemetry = createTelemetry('live', env);

const parts = createApiDeps(env, table, telemetry);

const app = createApi({
  ...parts,
  // A client that disconnects does not end the invocation: only its own end does.
  pace: { streamMs: env.JOBWIRE_STREAM_SECONDS * 1000 },
  slots: createSlots({
    table,
    region,
    perKey: env.JOBWIRE_STREAMS_PER_KEY,
    inAll: env.JOBWIRE_STREAMS,
    now: Date.now,
    newId: randomUUID,
    random: Math.random,
  }),
});

/** Invoked by the REST API for streams and feeds; streams the response. */
export const handler = middy(
  createStreamingHandler((request, from) => app.fetch(request, from), {
    pass: env.JOBWIRE_DISTRIBUTION_PASS,
  }),
  { executionMode: executionModeStreamifyResponse },
)
  .use(telemetry.logging)
  .use(telemetry.counting)
  .use(settling(parts));
