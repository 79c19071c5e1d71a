/** Lambda: the operator's commands. IAM controls who may invoke it. */
import middy from '@middy/core';
import { createCellLog, createCellTable } from './clients.ts';
import { OperateEnv, readEnv } from './env.ts';
import { createOperateHandler } from './handlers/operate.ts';
import { managing } from './management-deps.ts';
import { createTelemetry } from './telemetry.ts';

const env = readEnv(OperateEnv, process.env);
const table = createCellTable(env);
const telemetry = createTelemetry('operate', { stage: env.JOBWIRE_STAGE, region: env.JOBWIRE_REGION });
const { accounts, endpoints } = managing(env, { table, log: createCellLog(env, table), telemetry });

/** Invoked with one command: see {@link createOperateHandler}. */
export const handler = middy(
  createOperateHandler({
    ...endpoints,
    accounts,
    region: env.JOBWIRE_REGION,
    isRestored: env.JOBWIRE_RESTORED_AT !== undefined,
    telemetry,
  }),
).use(telemetry.logging);
