/**
 * A child process: measures the rate of feed reads and the latency of live streams, over HTTP from a self-hosted Jobwire with the
 * embedded DynamoDB. A page is compared with a bare Query of the same items, and many readers with a single one.
 */
import { once } from 'node:events';
import { Agent, get, type IncomingMessage } from 'node:http';
import { DynamoDBDocumentClient, QueryCommand } from '@aws-sdk/lib-dynamodb';
import { logPk } from '../shared/storage/schema.ts';
import { startChild } from './child.ts';
import type { Commit, Committed, LiveServerFacts, LiveServerOptions } from './live-server.ts';
import { median, percentile } from './statistics.ts';
import { ACCOUNT, startTables, toDraft, toJobNumber } from './wire.ts';

/** Results; times in ms. */
export interface ReadingResults {
  readonly pageMs: number;
  readonly queryMs: number;
  /** Ratio of the two above, in alternation. */
  readonly pageRatio: number;
  readonly loneP50Ms: number;
  readonly readersP50Ms: number;
  readonly readersP99Ms: number;
  readonly readersPerSecond: number;
  readonly readerErrors: number;
  readonly accountStreamP50Ms: number;
  readonly accountStreamP95Ms: number;
  readonly cellStreamP50Ms: number;
  readonly cellStreamP95Ms: number;
}

const API_KEY = 'the-key-of-the-benchmark';
const EVENTS = 1_000;
const READERS = 200;
const PAGE = 100;
/** Number of pages of each reader, and of the single one. */
const PAGES = 20;
const LONE_PAGES = 300;
const WARM_UP = 10;

const rounds = Number(process.argv[2]);
const tables = await startTables();
const { account } = ACCOUNT;
const options: LiveServerOptions = {
  ...{ endpoint: tables.endpoint, tableName: 'bench', accounts: [account], apiKey: API_KEY },
};
const server = await startChild<LiveServerFacts>('live-server.ts', [JSON.stringify(options)]);
const { url } = server.facts;
const agent = new Agent({ keepAlive: true });
let jobs = 0;
while (jobs < EVENTS) await commit(Math.min(90, EVENTS - jobs));

const page = await measurePage();
const readers = await measureReaders();
const live = await measureStreams();
agent.destroy();
server.process.kill();
await once(server.process, 'exit');
await tables.stop();
process.send?.({ ...page, ...readers, ...live } satisfies ReadingResults);
process.disconnect();

/** Compares a page of 1,000 events with a Query of the same items. */
async function measurePage() {
  const dynamo = DynamoDBDocumentClient.from(tables.client);
  const feed = `/v1/accounts/${account}/events?after=0&limit=${EVENTS}`;
  const took = async (work: () => Promise<number>) => {
    const start = performance.now();
    const events = await work();
    if (events !== EVENTS) throw new Error(`${events} events were read.`);
    return performance.now() - start;
  };
  const ofPage = async () => ((await read(feed)) as { events: unknown[] }).events.length;
  const ofQuery = async () => {
    let items = 0;
    let ExclusiveStartKey: Record<string, unknown> | undefined;
    do {
      const found = await dynamo.send(
        new QueryCommand({
          TableName: 'bench',
          KeyConditionExpression: 'pk = :pk',
          ExpressionAttributeValues: { ':pk': logPk(ACCOUNT) },
          ConsistentRead: true,
          Limit: EVENTS - items,
          ...(ExclusiveStartKey ? { ExclusiveStartKey } : {}),
        }),
      );
      items += found.Items?.length ?? 0;
      ExclusiveStartKey = items < EVENTS ? found.LastEvaluatedKey : undefined;
    } while (ExclusiveStartKey);
    return items;
  };
  const pages: number[] = [];
  const queries: number[] = [];
  for (let round = -WARM_UP; round < rounds; round += 1) {
    // The order alternates, so that noise of the machine affects all sides equally.
    const work = [async () => pages.push(await took(ofPage)), async () => queries.push(await took(ofQuery))];
    for (const one of round % 2 === 0 ? work : work.reverse()) await one();
    if (round < 0) pages.length = queries.length = 0;
  }
  return {
    pageMs: median(pages),
    queryMs: median(queries),
    pageRatio: median(pages.map((ms, at) => ms / (queries[at] ?? Number.NaN))),
  };
}

/** Compares concurrent readers of the whole feed with a single one. */
async function measureReaders() {
  let errors = 0;
  const follow = async (pages: number): Promise<number[]> => {
    const took: number[] = [];
    let after = '0';
    while (took.length < pages) {
      const start = performance.now();
      try {
        // Readers share the cores with the server, so they only parse the end of each response.
        const pieces = await readBytes(`/v1/accounts/${account}/events?after=${after}&limit=${PAGE}`);
        const tail = Buffer.concat(pieces.slice(-2)).subarray(-300).toString('latin1');
        const [, next, head] = /"next":"([^"]+)","head":"([^"]+)"/.exec(tail) ?? [];
        after = next === undefined || next === head ? '0' : next;
      } catch (cause) {
        console.error(cause);
        errors += 1;
      }
      took.push(performance.now() - start);
    }
    return took;
  };
  await follow(LONE_PAGES);
  const lone = await follow(LONE_PAGES);
  // Connections are opened before the measurement.
  await Promise.all(Array.from({ length: READERS }, () => follow(2)));
  const start = performance.now();
  const all = (await Promise.all(Array.from({ length: READERS }, () => follow(PAGES)))).flat();
  return {
    loneP50Ms: median(lone),
    readersP50Ms: median(all),
    readersP99Ms: percentile(all, 0.99),
    readersPerSecond: all.length / ((performance.now() - start) / 1000),
    readerErrors: errors,
  };
}

/** Measures the latency from commit to client, on the stream of an account and on that of all accounts. */
async function measureStreams() {
  const [one, all] = await Promise.all([
    open(`/v1/accounts/${account}/events/stream`),
    open('/v1/events/stream'),
  ]);
  const waits: { account: number[]; cell: number[] } = { account: [], cell: [] };
  for (let round = -WARM_UP; round < rounds * 4; round += 1) {
    const arrived = Promise.all([one.next(), all.next()]);
    const committedAt = await commit(1);
    const [atAccount, atCell] = await arrived;
    if (round < 0) continue;
    waits.account.push(atAccount - committedAt);
    waits.cell.push(atCell - committedAt);
  }
  one.close();
  all.close();
  return {
    accountStreamP50Ms: median(waits.account),
    accountStreamP95Ms: percentile(waits.account, 0.95),
    cellStreamP50Ms: median(waits.cell),
    cellStreamP95Ms: percentile(waits.cell, 0.95),
  };
}

/** Opens a stream at the head. `next` returns the arrival time of the next event (ms since the epoch). */
async function open(path: string) {
  const [response] = (await once(
    get(`${url}${path}`, { headers: { authorization: `Bearer ${API_KEY}` } }),
    'response',
  )) as [IncomingMessage];
  response.setEncoding('utf8');
  let onArrival: ((at: number) => void) | undefined;
  let began: (() => void) | undefined;
  const hasBegun = new Promise<void>((resolve) => {
    began = resolve;
  });
  response.on('data', (text: string) => {
    began?.();
    if (text.includes('\nevent: job.')) onArrival?.(performance.timeOrigin + performance.now());
  });
  await hasBegun;
  return {
    next: () =>
      new Promise<number>((resolve) => {
        onArrival = resolve;
      }),
    close: () => response.destroy(),
  };
}

async function read(path: string): Promise<unknown> {
  return JSON.parse(Buffer.concat(await readBytes(path)).toString());
}

async function readBytes(path: string): Promise<Buffer[]> {
  const request = get(`${url}${path}`, { agent, headers: { authorization: `Bearer ${API_KEY}` } });
  const [response] = (await once(request, 'response')) as [IncomingMessage];
  const pieces: Buffer[] = [];
  response.on('data', (piece: Buffer) => pieces.push(piece));
  await once(response, 'end');
  if (response.statusCode !== 200) throw new Error(`${path} responded with HTTP ${response.statusCode}.`);
  return pieces;
}

async function commit(count: number): Promise<number> {
  const events = Array.from({ length: count }, () => toDraft(toJobNumber(++jobs), Date.now()));
  const { committedAt } = await server.ask<Committed>({ account, events } satisfies Commit);
  return committedAt;
}
