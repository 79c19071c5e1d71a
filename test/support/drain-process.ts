/**
 * A delivering process for tests: drains the sinks of one region as a host does, until it is killed. It has no code for being
 * killed. It reports each drain, and ends with its parent process.
 */
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { setDefaultCACertificates } from 'node:tls';
import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { historyTableName } from '../../local/dynamo-tables.ts';
import { createDeliveryLog } from '../../shared/delivery/delivery-log.ts';
import { drainSink } from '../../shared/delivery/drain.ts';
import type { DrainReport, NewWork } from '../../shared/delivery/drain-deps.ts';
import { MAX_LANES } from '../../shared/delivery/lanes.ts';
import { breakLease } from '../../shared/delivery/lease.ts';
import { createConnectionPool } from '../../shared/delivery/outbound.ts';
import { createSigningReader, openLocalSigningSecrets } from '../../shared/delivery/signing-secrets.ts';
import { listSinks } from '../../shared/delivery/sink.ts';
import { listDueSinks, listPendingWakes, wakeSinks } from '../../shared/delivery/wakes.ts';
import { createWebhookSink } from '../../shared/delivery/webhook.ts';
import { createEventLog } from '../../shared/log/log.ts';
import { createDynamoTable } from '../../shared/storage/dynamo-table.ts';
import { historySchema } from '../../shared/storage/schema.ts';

/** The first message to the process. */
export interface Setup {
  readonly dynamoEndpoint: string;
  readonly tableName: string;
  readonly region: string;
  /** Key of the secrets of endpoints, in hex. */
  readonly secretKey: string;
  /** All host names resolve to this address. */
  readonly address: string;
  /** The only trusted certificate authority. */
  readonly authorityPem: string;
  readonly retrySeconds: readonly number[];
  readonly timeouts: { readonly connectMs: number; readonly totalMs: number };
  /** Sent with each request as `x-life`, to distinguish the requests of one process from those of the next. */
  readonly life: number;
}

/** Messages of the process. */
export type Said =
  | { readonly kind: 'drained'; readonly report: DrainReport; readonly at: number }
  | { readonly kind: 'fault'; readonly problem: string }
  /** Response to any further message: no work is due or in progress. */
  | { readonly kind: 'idle' };

const TICK_MS = 300;
const DRAIN_MS = 55_000;

const say = (said: Said): void => void process.send?.(said);

process.on('disconnect', () => process.exit());
const [setup] = (await once(process, 'message')) as [Setup];
let asked = false;
process.on('message', () => {
  asked = true;
});

setDefaultCACertificates([setup.authorityPem]);
const { region } = setup;
const client = new DynamoDBClient({
  region: 'us-east-1',
  credentials: { accessKeyId: 'local', secretAccessKey: 'local' },
  endpoint: setup.dynamoEndpoint,
});
const table = createDynamoTable(client, { tableName: setup.tableName });
const history = createDynamoTable(client, {
  tableName: historyTableName(setup.tableName),
  schema: historySchema,
});
const log = createEventLog(table, {
  now: Date.now,
  newId: randomUUID,
  schemaBaseUrl: 'https://jobwire.example',
});
const deliveries = createDeliveryLog(history, { newId: randomUUID });
const secrets = await openLocalSigningSecrets(table, Buffer.from(setup.secretKey, 'hex'));
const signing = createSigningReader(secrets, Date.now);
const connections = createConnectionPool({
  allowPrivateNetworks: true,
  resolve: async () => [{ address: setup.address, family: 4 }],
  timeouts: setup.timeouts,
});

/** Drains in progress, and those of them that wait for new work. */
const underWay = new Set<string>();
const lingering = new Map<string, (news: NewWork | undefined) => void>();

async function drain(sink: string): Promise<void> {
  const report = await drainSink(
    {
      ...{ table, log, deliveries, now: Date.now, newId: randomUUID, random: Math.random },
      retrySeconds: setup.retrySeconds,
      linger: () => new Promise((resolve) => lingering.set(sink, resolve)),
      async open(record) {
        return createWebhookSink({
          ...{ url: record.target, now: Date.now },
          async signing() {
            const { secrets, headers } = await signing(region, record.id, record);
            return { secrets, headers: { ...headers, 'x-life': String(setup.life) } };
          },
          connections: connections.of(record.id, record.concurrency ?? MAX_LANES),
        });
      },
    },
    region,
    sink,
    Date.now() + DRAIN_MS,
  );
  say({ kind: 'drained', report, at: Date.now() });
}

// No other process uses this table: an existing lease is that of a killed process.
for (const sink of await listSinks(table, region)) await breakLease(table, sink);

for (;;) {
  const told = new Map<string, Set<string>>();
  for (const { ref, sequence } of await listPendingWakes(table, region, 100)) {
    for (const sink of await wakeSinks(table, ref, sequence, Date.now())) {
      told.set(sink, (told.get(sink) ?? new Set()).add(ref.account));
    }
  }
  const due = new Set(await listDueSinks(table, region, Date.now()));
  for (const [sink, tell] of lingering) {
    lingering.delete(sink);
    const accounts = [...(told.get(sink) ?? [])];
    tell(due.has(sink) || accounts.length > 0 ? { accounts, due: due.has(sink) } : undefined);
  }
  for (const sink of due) {
    if (underWay.has(sink)) continue;
    underWay.add(sink);
    drain(sink)
      .catch((cause: unknown) => say({ kind: 'fault', problem: String(cause) }))
      .finally(() => underWay.delete(sink));
  }
  if (asked && due.size === 0 && told.size === 0 && underWay.size === 0) break;
  await sleep(TICK_MS);
}
say({ kind: 'idle' });
