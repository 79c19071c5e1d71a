/**
 * A child process: measures polls, compared with a floor in the same run. The floor is the minimum work of any poller: `fetch` the same
 * pages with the same concurrency, JSON.parse, and one SHA-256 per job.
 */
import { createHash, randomUUID } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { esbuildOptions } from '../infra/bundling.ts';
import { createTables } from '../local/dynamo-tables.ts';
import { registerAccount } from '../shared/accounts/accounts.ts';
import { createConnector } from '../shared/accounts/connect.ts';
import { createEventLog } from '../shared/log/log.ts';
import { createDynamoTable } from '../shared/storage/dynamo-table.ts';
import { createMemoryTable } from '../shared/storage/sqlite-table.ts';
import type { Table } from '../shared/storage/table.ts';
import { pollAccount } from '../shared/tracking/poll.ts';
import type { PollDeps } from '../shared/tracking/poll-context.ts';
import type { PollReport } from '../shared/tracking/poll-report.ts';
import { DEFAULT_TRACKING } from '../shared/tracking/schedule.ts';
import { startDynamo } from '../test/support/dynoxide.ts';
import { startChild } from './child.ts';
import type { QuietFacts } from './quiet.ts';
import { median } from './statistics.ts';
import { newToken } from './token.ts';
import type { UpstreamFacts } from './upstream.ts';

/** Results at one size. Times in ms, memory in MB; `ratio…` are medians of pairs. */
export interface PollingResults {
  readonly jobs: number;
  readonly floorCpuMs: number;
  readonly floorWallMs: number;
  readonly quietCpuRatio: number;
  readonly quietWallRatio: number;
  readonly quietRequests: number;
  readonly changedWallRatio: number;
  readonly changedCpuRatio: number;
  readonly commitMs: number;
  readonly detailsPerChange: number;
  readonly peakMemoryMb: number;
  readonly readUnits: number;
  readonly writeUnits: number;
  readonly writesPerQuietPoll: number;
}

const CHANGES = 50;
const CONCURRENCY = 4;
const PAGE_SIZE = 100;
const ACCOUNT = { region: 'us', account: 'bench' };

const jobs = Number(process.argv[2]);
const rounds = Number(process.argv[3]);
/** Polls per sample. Small lists are polled several times, because garbage collection would dominate a single poll. */
const repeats = Math.max(1, Math.round(5_000 / jobs));
const upstream = await startChild<UpstreamFacts>('upstream.ts', [String(jobs)]);
const pages = Math.ceil(jobs / PAGE_SIZE);

/** Measurements of a piece of work. */
interface Cost {
  readonly cpuMs: number;
  readonly wallMs: number;
}

async function measureCost<T>(work: () => Promise<T>): Promise<Cost & { readonly result: T }> {
  globalThis.gc?.();
  const cpu = process.cpuUsage();
  const start = performance.now();
  const result = await work();
  const wallMs = performance.now() - start;
  const { user, system } = process.cpuUsage(cpu);
  return { result, wallMs, cpuMs: (user + system) / 1000 };
}

async function floor(): Promise<number> {
  token ??= await newToken(upstream.facts);
  let next = 1;
  let hashed = 0;
  const read = async (): Promise<void> => {
    while (next <= pages) {
      const page = next;
      next += 1;
      const answer = await fetch(`${upstream.facts.apiUrl}/Jobs/active?page=${page}&pageSize=${PAGE_SIZE}`, {
        headers: { authorization: `Bearer ${token}` },
      });
      const { items } = JSON.parse(await answer.text()) as { items: object[] };
      for (const job of items) {
        createHash('sha256').update(JSON.stringify(job)).digest();
        hashed += 1;
      }
    }
  };
  await Promise.all(Array.from({ length: CONCURRENCY }, read));
  return hashed;
}
let token: string | undefined;

/** Creates a tracker of the upstream on a table, past its baseline. `commitMs`: total time spent in transactions. */
async function tracker(
  table: Table,
): Promise<{ poll(): Promise<PollReport>; readonly times: { commitMs: number; writes: number } }> {
  const times = { commitMs: 0, writes: 0 };
  const timed: Table = {
    ...table,
    async transact(writes, requestToken) {
      const start = performance.now();
      try {
        return await table.transact(writes, requestToken);
      } finally {
        times.commitMs += performance.now() - start;
        times.writes += writes.length;
      }
    },
    async write(write) {
      times.writes += 1;
      return table.write(write);
    },
  };
  const log = createEventLog(timed, { now: Date.now, newId: randomUUID, schemaBaseUrl: 'http://bench' });
  const deps: PollDeps = {
    table: timed,
    log,
    now: Date.now,
    newId: randomUUID,
    settings: DEFAULT_TRACKING,
    syncApiUser: async () => undefined,
    connect: createConnector({
      regions: { us: { baseUrl: upstream.facts.apiUrl, authUrl: upstream.facts.authUrl, realm: 'us' } },
      readSecret: async () => ({ ...upstream.facts, version: '1' }),
      now: Date.now,
    }),
  };
  await registerAccount(
    timed,
    log,
    { ...ACCOUNT, secretRef: 'bench', pollIntervalSeconds: 60, paused: false },
    { now: Date.now(), epoch: 'bench' },
  );
  const poll = async (): Promise<PollReport> => {
    const report = await pollAccount(deps, ACCOUNT, Date.now() + 600_000);
    if (report.outcome !== 'complete') throw new Error(`A poll was ${report.outcome}: ${report.problem}`);
    return report;
  };
  const baseline = await poll();
  if (baseline.openJobs !== jobs) throw new Error(`The baseline has ${baseline.openJobs} jobs, not ${jobs}.`);
  return { poll, times };
}

const { poll, times } = await tracker(createMemoryTable());
// Warms up both sides.
for (let at = 0; at < 3; at += 1) {
  await floor();
  await poll();
}
const floors: Cost[] = [];
const quiet: { cpu: number; wall: number }[] = [];
let quietRequests = 0;
for (let round = 0; round < rounds; round += 1) {
  // The order alternates, so that noise of the machine affects all sides equally.
  const order = round % 2 === 0 ? [floor, poll] : [poll, floor];
  const costs = new Map<unknown, Cost & { result: unknown }>();
  for (const work of order) {
    const sample = async (): Promise<unknown> => {
      for (let at = 1; at < repeats; at += 1) await work();
      return work();
    };
    costs.set(work, await measureCost(sample));
  }
  const a = costs.get(poll);
  const b = costs.get(floor);
  if (!a || !b) throw new Error('A round was not measured.');
  floors.push({ cpuMs: b.cpuMs / repeats, wallMs: b.wallMs / repeats });
  quiet.push({ cpu: a.cpuMs / b.cpuMs, wall: a.wallMs / b.wallMs });
  const report = a.result as PollReport;
  if (report.events !== 0) throw new Error('A quiet poll emitted events.');
  quietRequests = Math.max(quietRequests, report.requests);
}

const changed: { cpu: number; wall: number }[] = [];
const commits: number[] = [];
let details = 0;
let moved = 0;
for (let round = 0; round < rounds; round += 1) {
  const least = await measureCost(floor);
  await upstream.ask({ change: CHANGES });
  const before = times.commitMs;
  const full = await measureCost(poll);
  const commit = times.commitMs - before;
  if (full.result.events < CHANGES) throw new Error(`${CHANGES} changes gave ${full.result.events} events.`);
  details += full.result.requests - pages;
  moved += full.result.events;
  commits.push(commit);
  changed.push({ cpu: full.cpuMs / least.cpuMs, wall: (full.wallMs - commit) / least.wallMs });
}

// Units as DynamoDB would bill them, counted on the emulator.
const dynamo = await startDynamo({});
const folder = mkdtempSync(join(tmpdir(), 'jobwire-quiet-'));
let readUnits = 0;
let writeUnits = 0;
let writes = 0;
let peakMemoryMb = 0;
try {
  const client = dynamo.client();
  await createTables(client, 'bench');
  const table = createDynamoTable(client, { tableName: 'bench' });
  const onDynamo = await tracker(table);
  await onDynamo.poll();
  const before = table.units();
  const writesBefore = onDynamo.times.writes;
  await onDynamo.poll();
  const after = table.units();
  readUnits = after.read - before.read;
  writeUnits = after.write - before.write;
  writes = onDynamo.times.writes - writesBefore;
  // In a separate process with one bundled file, as on Lambda.
  const file = join(folder, 'quiet.mjs');
  const entryPoints = [fileURLToPath(new URL('quiet.ts', import.meta.url))];
  await build({ ...esbuildOptions('poll-account'), entryPoints, outfile: file, write: true });
  const quietOnly = await startChild<QuietFacts>(file, [
    JSON.stringify({ ...upstream.facts, endpoint: dynamo.endpoint, jobs }),
  ]);
  peakMemoryMb = quietOnly.facts.peakMemoryMb;
} finally {
  await dynamo.stop();
  rmSync(folder, { recursive: true });
}

process.send?.({
  jobs,
  floorCpuMs: median(floors.map(({ cpuMs }) => cpuMs)),
  floorWallMs: median(floors.map(({ wallMs }) => wallMs)),
  quietCpuRatio: median(quiet.map(({ cpu }) => cpu)),
  quietWallRatio: median(quiet.map(({ wall }) => wall)),
  quietRequests,
  changedWallRatio: median(changed.map(({ wall }) => wall)),
  changedCpuRatio: median(changed.map(({ cpu }) => cpu)),
  commitMs: median(commits),
  detailsPerChange: details / moved,
  peakMemoryMb,
  readUnits,
  writeUnits,
  writesPerQuietPoll: writes,
} satisfies PollingResults);
upstream[Symbol.dispose]();
process.disconnect();
