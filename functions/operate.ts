/** Lambda: the operator's commands. IAM controls who may invoke it. */
import middy from '@middy/core';
import { createCellLog, createCellTable } from './clients.ts';
import { OperateEnv, readEnv } from './env.ts';
import { createOperateHandler } from './handlers/operate.ts';
import { createTelemetry } from './telemetry.ts';

const env = readEnv(OperateEnv, process.env);
const table = createCellTable(env);
const telemetry = createTelemetry('operate', env);

/** Invoked with one command: see {@link createOperateHandler}. */
export const handler = middy(
  createOperateHandler({
    table,
    log: createCellLog(env, table),
    now: Date.now,
    region: env.JOBWIRE_REGION,
    isRestored: env.JOBWIRE_RESTORED_AT !== undefined,
    telemetry,
  }),
).use(telemetry.logging);
