/** A child process: measures the memory of quiet polls. */
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { createConnector } from '../shared/accounts/connect.ts';
import { createEventLog } from '../shared/log/log.ts';
import { createDynamoTable } from '../shared/storage/dynamo-table.ts';
import { pollAccount } from '../shared/tracking/poll.ts';
import { DEFAULT_TRACKING } from '../shared/tracking/schedule.ts';
import type { UpstreamFacts } from './upstream.ts';

/** Results. */
export interface QuietFacts {
  readonly peakMemoryMb: number;
}

const POLLS = 5;
const facts = JSON.parse(process.argv[2] ?? '') as UpstreamFacts & { endpoint: string; jobs: number };
const client = new DynamoDBClient({
  endpoint: facts.endpoint,
  region: 'us-east-1',
  credentials: { accessKeyId: 'local', secretAccessKey: 'local' },
});
const table = createDynamoTable(client, { tableName: 'bench' });
const now = Date.now;
const newId = randomUUID;
const log = createEventLog(table, { now, newId, schemaBaseUrl: 'http://bench' });
const connect = createConnector({
  regions: { us: { baseUrl: facts.apiUrl, authUrl: facts.authUrl, realm: 'us' } },
  readSecret: async () => ({ ...facts, version: '1' }),
  now,
});
const deps = {
  table,
  log,
  now,
  newId,
  settings: DEFAULT_TRACKING,
  connect,
  syncApiUser: async () => undefined,
};
for (let poll = 0; poll < POLLS; poll += 1) {
  const report = await pollAccount(deps, { region: 'us', account: 'bench' }, now() + 600_000);
  if (report.outcome !== 'complete' || report.openJobs !== facts.jobs || report.events !== 0) {
    throw new Error(`A quiet poll was not: ${JSON.stringify(report)}`);
  }
}
// `maxRSS` of a new process is at least that of its parent.
const peakKb = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync('/proc/self/status', 'utf8'))?.[1];
process.send?.({ peakMemoryMb: Number(peakKb) / 1024 } satisfies QuietFacts);
process.disconnect();
client.destroy();
