/**
 * A child process: a self-hosted Jobwire with its HTTP API on existing tables. Accounts are never polled: it commits the events of its
 * commands. Tests use it too, to kill and restart it.
 */
import type { Server } from 'node:http';
import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { createAdaptorServer } from '@hono/node-server';
import { readApiFile } from '../local/api-files.ts';
import { createDashboard } from '../local/dashboard.ts';
import { historyTableName } from '../local/dynamo-tables.ts';
import { startHost } from '../local/host.ts';
import { createAccount } from '../shared/accounts/managed-accounts.ts';
import { createApi } from '../shared/api/app.ts';
import { createIdempotency } from '../shared/api/idempotency.ts';
import { createKeyring } from '../shared/api/keys.ts';
import { parseConfig } from '../shared/config.ts';
import type { EventDraft } from '../shared/events/event.ts';
import { close, listen } from '../shared/http-server.ts';
import { createDynamoTable } from '../shared/storage/dynamo-table.ts';
import { historySchema } from '../shared/storage/schema.ts';

/** Options, as JSON argument. */
export interface LiveServerOptions {
  readonly endpoint: string;
  readonly tableName: string;
  /** Accounts of the region `us`. Missing ones are created. */
  readonly accounts: readonly string[];
  readonly apiKey: string;
  /** Default: a free port. */
  readonly port?: number;
  /** Maximum duration of streams. Default: that of production. */
  readonly streamMs?: number;
  /** Whether to serve the dashboard. */
  readonly dashboard?: boolean;
}
/** Sent when it is ready. */
export interface LiveServerFacts {
  readonly url: string;
}
/** A command: events to commit in one transaction. Answered by {@link Committed}. */
export interface Commit {
  readonly account: string;
  readonly events: readonly EventDraft[];
}
/** Time of the commit (ms since the epoch, with fractions). */
export interface Committed {
  readonly committedAt: number;
}

const options = JSON.parse(process.argv[2] ?? '{}') as LiveServerOptions;
const client = new DynamoDBClient({
  endpoint: options.endpoint,
  region: 'us-east-1',
  credentials: { accessKeyId: 'x', secretAccessKey: 'x' },
});
const { tableName, apiKey } = options;
const table = createDynamoTable(client, { tableName });
let committedAt = 0;
const host = await startHost({
  config: parseConfig(
    {
      regions: { us: { baseUrl: 'http://127.0.0.1:1', authUrl: 'http://127.0.0.1:1', realm: 'us' } },
      accounts: [],
    },
    {},
  ),
  table,
  history: createDynamoTable(client, { tableName: historyTableName(tableName), schema: historySchema }),
  secretKey: Buffer.alloc(32),
  publicUrl: 'http://bench',
  exclusive: true,
  onGrowth: () => {
    committedAt = performance.timeOrigin + performance.now();
  },
  onFault: (what, cause) => console.error(`Could not ${what}.`, cause),
});
for (const id of options.accounts) {
  const credentials = { clientId: 'none', clientSecret: 'none' };
  await createAccount(host.accounts, { id, region: 'us', credentials, paused: true });
}
const api = createApi({
  ...{ table, log: host.log, growth: host.growth, deliveries: host.deliveries, now: Date.now },
  regions: ['us'],
  readFile: readApiFile,
  keyring: createKeyring({ table, now: Date.now, bootstrap: apiKey }),
  manage: {
    idempotency: createIdempotency({ table, now: Date.now }),
    accounts: host.accounts,
    endpoints: host.endpoints,
  },
  onError: (cause) => console.error(cause),
  ...(options.streamMs === undefined ? {} : { pace: { streamMs: options.streamMs } }),
});
const dashboard = options.dashboard ? createDashboard() : undefined;
const server = createAdaptorServer({
  fetch: (request) => dashboard?.(request, () => api.fetch(request)) ?? api.fetch(request),
}) as Server;
process.send?.({ url: await listen(server, options.port) } satisfies LiveServerFacts);

process.on('message', async ({ account, events }: Commit) => {
  const outcome = await host.log.append({ region: 'us', account }, events);
  if (outcome.kind !== 'appended') throw new Error(`The account ${account} did not accept the events.`);
  process.send?.({ committedAt } satisfies Committed);
});
process.on('disconnect', () => process.exit(0));
process.on('SIGTERM', async () => {
  await close(server);
  await host.stop(1_000);
  process.exit(0);
});
