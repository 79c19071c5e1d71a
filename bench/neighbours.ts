/**
 * A child process: how long it takes from the commit of an event until forty-nine healthy endpoints have it, on the local
 * host, with and without a fiftieth that accepts everything and never answers.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { historyTableName } from '../local/embedded.ts';
import { startHost } from '../local/host.ts';
import { parseConfig } from '../shared/config.ts';
import { createDynamoTable } from '../shared/table/dynamo-table.ts';
import { historySchema } from '../shared/table/schema.ts';
import { startChild } from './child.ts';
import type { ReceiverFacts, ReceiverRequest, Tally } from './receiver.ts';
import type { UpstreamFacts } from './upstream.ts';
import { ACCOUNT, median, percentile, SECRET, startTables } from './wire.ts';

/** What was measured; times in ms, medians of the rounds. */
export interface NeighbourFigures {
  readonly deliveriesPerRound: number;
  readonly aloneP50Ms: number;
  readonly aloneP99Ms: number;
  readonly besideP50Ms: number;
  readonly besideP99Ms: number;
  /** The median of the pairs. */
  readonly p99Ratio: number;
}

const HEALTHY = 49;
const COMMITS = 80;
const COMMIT_EVERY_MS = 100;
/** Drains begin, connections are made. */
const WARM_UP = 20;
const PATIENCE_MS = 20_000;

const rounds = Number(process.argv[2]);
const [receiver, upstream, tables] = await Promise.all([
  startChild<ReceiverFacts>('receiver.ts'),
  startChild<UpstreamFacts>('upstream.ts', ['0']),
  startTables(),
]);
const { apiUrl, authUrl, clientId, clientSecret } = upstream.facts;
const table = createDynamoTable(tables.client, { tableName: 'bench' });
const history = createDynamoTable(tables.client, {
  tableName: historyTableName('bench'),
  schema: historySchema,
});
await receiver.ask({ note: true } satisfies ReceiverRequest);

await latencies(false, 0);
const alone: number[][] = [];
const beside: number[][] = [];
for (let round = 0; round < rounds; round += 1) {
  for (const hangs of round % 2 === 0 ? [false, true] : [true, false]) {
    (hangs ? beside : alone).push(await latencies(hangs, COMMITS));
  }
}
const p99 = (values: readonly number[]): number => percentile(values, 0.99);
process.send?.({
  deliveriesPerRound: HEALTHY * COMMITS,
  aloneP50Ms: median(alone.map(median)),
  aloneP99Ms: median(alone.map(p99)),
  besideP50Ms: median(beside.map(median)),
  besideP99Ms: median(beside.map(p99)),
  p99Ratio: median(beside.map((values, at) => p99(values) / p99(alone[at] ?? []))),
} satisfies NeighbourFigures);
await tables.stop();
receiver[Symbol.dispose]();
upstream[Symbol.dispose]();
process.disconnect();

/** From the commit of each of so many events until each healthy endpoint received it. */
async function latencies(hangs: boolean, commits: number): Promise<number[]> {
  const paths = [...Array.from({ length: HEALTHY }, (_, at) => `healthy-${at}`), ...(hangs ? ['hang'] : [])];
  let grownAt = 0;
  const host = await startHost({
    config: parseConfig(
      {
        regions: { us: { baseUrl: apiUrl, authUrl, realm: 'us' } },
        accounts: [
          { id: ACCOUNT.account, region: 'us', pollIntervalSeconds: 86_400, clientId, clientSecret },
        ],
        endpoints: paths.map((path) => ({ id: path, url: receiver.facts.url + path, secret: SECRET })),
        webhooks: { allowPrivateNetworks: true },
      },
      {},
    ),
    ...{ table, history, exclusive: true, secretKey: Buffer.alloc(32), publicUrl: 'http://bench' },
    onGrowth: () => {
      grownAt = performance.timeOrigin + performance.now();
    },
    onFault: (what, cause) => console.error(`Could not ${what}.`, cause),
  });
  const committedAt = new Map<string, number>();
  for (let commit = -WARM_UP; commit < commits; commit += 1) {
    const said = await host.log.append(ACCOUNT, [
      { type: 'account.baselined', time: Date.now(), data: { openJobs: commit + WARM_UP } },
    ]);
    if (said.kind !== 'appended') throw new Error('An event was refused.');
    const { epoch, sequence } = said.head;
    if (commit >= 0) committedAt.set(`${ACCOUNT.account}.${epoch}.${sequence}`, grownAt);
    await sleep(COMMIT_EVERY_MS);
  }
  const took: number[] = [];
  const until = Date.now() + PATIENCE_MS;
  while (took.length < HEALTHY * commits) {
    if (Date.now() > until) throw new Error(`${took.length} of ${HEALTHY * commits} deliveries came.`);
    const { noted } = (await receiver.ask({})) as Tally;
    for (const { id, path, receivedAt } of noted) {
      const from = path === '/hang' ? undefined : committedAt.get(id);
      if (from !== undefined) took.push(receivedAt - from);
    }
    await sleep(50);
  }
  // What hangs is broken off.
  await host.stop(200);
  return took;
}
