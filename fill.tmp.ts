import { randomUUID } from 'node:crypto';
import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { createDynamoTable } from '/work/wt/cli2/shared/table/dynamo-table.ts';
import { createEventLog } from '/work/wt/cli2/shared/log/log.ts';
import { forwardLogs } from '/work/wt/cli2/shared/log/cell-feed.ts';
const moved = (jobNumber: number, to: string, time: number) => ({ type: 'job.status_changed', jobNumber, time,
 data: { job: { jobNumber, status: to, description: 'x', orderNumber: null, orderGroup: 'G'+jobNumber, orderGroupSequence: null, originCode: null, dateDue: null, mustDate: null, dateOut: null, tracking: [] },
 observed: { at: new Date(time).toISOString(), since: null, view: 'list' }, changes: { status: { from: null, to } } } }) as any;
const [endpoint, region='us', account='acme', n='50000'] = process.argv.slice(2);
const client = new DynamoDBClient({ endpoint, region: 'us-east-1', credentials: { accessKeyId: 'x', secretAccessKey: 'x' } });
const table = createDynamoTable(client, { tableName: 'jobwire-state' });
const N = Number(n); const span = 24*3600_000; const t0 = Date.now() - span;
let at = t0; const now = () => at;
const log = createEventLog(table, { now, newId: randomUUID, schemaBaseUrl: 'http://x', retentionDays: 30 });
const started = Date.now();
for (let i=0;i<N;i+=90) { at = t0 + Math.floor(span*i/N); 
 const o = await log.append({region, account}, Array.from({length:Math.min(90,N-i)},(_,k)=>moved(100000+(i+k)%5000,'In production', at)));
 if (o.kind !== 'appended') throw new Error(JSON.stringify(o));
 await forwardLogs(table, [{region, account}], { now });
}
console.log('took', Date.now()-started);
