/** Construction of shared dependencies from the environment. */
import { randomUUID } from 'node:crypto';
import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import type { RegionSettings } from '../shared/accounts/connect.ts';
import type { EventUrls } from '../shared/events/event.ts';
import { epochFloor } from '../shared/log/head.ts';
import { createEventLog, type EventLog } from '../shared/log/log.ts';
import { createDynamoTable } from '../shared/storage/dynamo-table.ts';
import { historySchema } from '../shared/storage/schema.ts';
import type { Table } from '../shared/storage/table.ts';
import type { Env } from './env.ts';

/**
 * Timeouts: a dead connection must cost seconds, not the function's whole time; a call that timed out is
 * retried.
 */
export const REQUEST_TIMEOUTS = {
  connectionTimeout: 2_000,
  requestTimeout: 5_000,
  throwOnRequestTimeout: true,
};

/**
 * Maximum age (ms) of cached account credentials; a change through the API or a rejection by the upstream API
 * ends it. Every read costs money, and each process creates its own.
 */
export const CREDENTIALS_MAX_AGE_MS = 3 * 3_600_000;

/** The cell's table. */
export function createCellTable(env: Pick<Env, 'JOBWIRE_TABLE'>): Table {
  const client = new DynamoDBClient({ requestHandler: REQUEST_TIMEOUTS });
  return createDynamoTable(client, { tableName: env.JOBWIRE_TABLE });
}

/** The cell's history table. */
export function createHistoryTable(env: Pick<Env, 'JOBWIRE_HISTORY_TABLE'>): Table {
  const client = new DynamoDBClient({ requestHandler: REQUEST_TIMEOUTS });
  return createDynamoTable(client, { tableName: env.JOBWIRE_HISTORY_TABLE, schema: historySchema });
}

/** Returns the base URLs in events. */
export function getEventUrls(env: Pick<Env, 'JOBWIRE_PUBLIC_URL'>): EventUrls {
  const publicUrl = env.JOBWIRE_PUBLIC_URL.replace(/\/$/, '');
  return { schemaBaseUrl: publicUrl, sourceBaseUrl: publicUrl };
}

/** The cell's event log. */
export function createCellLog(
  env: Pick<Env, 'JOBWIRE_PUBLIC_URL' | 'JOBWIRE_RETENTION_DAYS' | 'JOBWIRE_RESTORED_AT'>,
  table: Table,
  hooks: Pick<Parameters<typeof createEventLog>[1], 'traceCommit' | 'onCommitted'> = {},
): EventLog {
  return createEventLog(table, {
    ...hooks,
    retentionDays: env.JOBWIRE_RETENTION_DAYS,
    ...getEventUrls(env),
    leastEpoch: getLeastEpoch(env),
    now: Date.now,
    newId: randomUUID,
  });
}

/**
 * Returns the lower bound of epochs in a cell whose table was restored: logs, and the cell feed, of an
 * earlier epoch must be renewed first.
 */
export function getLeastEpoch(env: Pick<Env, 'JOBWIRE_RESTORED_AT'>): string | undefined {
  return env.JOBWIRE_RESTORED_AT && epochFloor(Date.parse(env.JOBWIRE_RESTORED_AT));
}

/** Returns the URLs of the cell's ordering API. */
export function toRegionSettings(
  env: Pick<Env, 'JOBWIRE_UPSTREAM_BASE_URL' | 'JOBWIRE_UPSTREAM_AUTH_URL' | 'JOBWIRE_UPSTREAM_REALM'>,
): RegionSettings {
  return {
    baseUrl: env.JOBWIRE_UPSTREAM_BASE_URL,
    authUrl: env.JOBWIRE_UPSTREAM_AUTH_URL,
    realm: env.JOBWIRE_UPSTREAM_REALM,
  };
}
