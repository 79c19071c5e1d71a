/**
 * A child process: measures a self-hosted Jobwire as a process with a data folder, for a number of accounts and cores. This process is
 * the ordering API and the receiver of the webhooks. With one core for Jobwire, it runs on another one. Linux only (`taskset`, `/proc`).
 */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { DatabaseSync } from 'node:sqlite';
import { setTimeout as sleep } from 'node:timers/promises';
import { startSandbox } from '../sandbox/server.ts';
import { createWorld } from '../sandbox/world/world.ts';
import { close, listen } from '../shared/http-server.ts';
import { readCpuMs } from './child.ts';
import { SECRET } from './wire.ts';

/** Results. */
export interface SizingResults {
  readonly cores: number;
  readonly accounts: number;
  /** Open jobs of each account. */
  readonly jobs: number;
  readonly startSeconds: number;
  /** Resident memory at its maximum. */
  readonly peakMemoryMb: number;
  /** CPU time of a poll without changes. */
  readonly pollCpuMs: number;
  /** Polls without changes per second, at the shortest interval. */
  readonly pollsPerSecond: number;
  /** Events from the change upstream until all webhooks arrived. `null` if not measured. */
  readonly eventsPerSecond: number | null;
  /** CPU time of an event: detail fetch, commit, webhook, delivery log. */
  readonly eventCpuMs: number | null;
  /** Growth of the database. */
  readonly bytesPerEvent: number | null;
  /** Size of the database before the first change, divided by the open jobs. */
  readonly bytesPerJob: number;
}

const QUIET_MS = 8_000;
const EVENTS = 2_000;
/** A change of each of more accounts takes longer than a benchmark: Jobwire starts 16 polls per second. */
const MAX_CHANGED_ACCOUNTS = 100;

const [cores = 1, accounts = 1, jobs = 1] = process.argv.slice(2).map(Number);
/** Pins a process to its first cores, or to all others. */
const [own, others] =
  cores < availableParallelism()
    ? [`0-${cores - 1}`, `${cores}-${availableParallelism() - 1}`]
    : [`0-${cores - 1}`, `0-${cores - 1}`];
execFileSync('taskset', ['-apc', others, String(process.pid)], { stdio: 'ignore' });

const world = createWorld({ now: Date.now });
const [first, second] = world.statuses('us').map(({ name }) => name);
if (!first || !second) throw new Error('The sandbox has fewer than two statuses.');
const upstream = Array.from({ length: accounts }, (_, at) => {
  const account = world.addAccount({ region: 'us', name: `account-${at}` });
  const numbers = Array.from({ length: jobs }, (_, job) =>
    account.createJob({
      status: first,
      orderNumber: `PO-${job}`,
      description: `Order ${job} of the spring collection`,
    }),
  );
  return { account, numbers };
});
const sandbox = await startSandbox({ world });

let received = 0;
const receiver = createServer((request, response) => {
  request.resume();
  request.on('end', () => {
    if (!String(request.headers['webhook-id']).startsWith('region')) received += 1;
    response.writeHead(204).end();
  });
});
const receiverUrl = `${await listen(receiver)}/`;

const folder = mkdtempSync(join(tmpdir(), 'jobwire-sizing-'));
const config = {
  port: 0,
  dataDir: join(folder, 'data'),
  metrics: { port: 0 },
  regions: { us: { baseUrl: sandbox.apiUrl('us'), authUrl: sandbox.authUrl('us'), realm: 'us' } },
  accounts: upstream.map(({ account: { name, clientId, clientSecret } }) => ({
    ...{ id: name, region: 'us', clientId, clientSecret, pollIntervalSeconds: 1 },
  })),
  endpoints: [{ id: 'bench', url: receiverUrl, secret: SECRET, types: ['job.status_changed'] }],
  webhooks: { allowPrivateNetworks: true },
};
writeFileSync(join(folder, 'jobwire.json'), JSON.stringify(config));

const began = performance.now();
const main = new URL('../local/main.ts', import.meta.url).pathname;
const program = [process.execPath, main, '--config', join(folder, 'jobwire.json')];
const jobwire = spawn('taskset', ['-c', own, ...program], { stdio: ['ignore', 'pipe', 'inherit'] });
const { pid = 0 } = jobwire;
let baselined = 0;
let metricsUrl = '';
for await (const line of createInterface({ input: jobwire.stdout })) {
  metricsUrl = /Metrics +(http\S+)/.exec(line)?.[1] ?? metricsUrl;
  if (line.includes('account.baselined')) baselined += 1;
  if (baselined === accounts) break;
}
jobwire.stdout.resume();
const startSeconds = (performance.now() - began) / 1000;

await sleep(2_000);
const bytesBefore = readSize();
const quiet = await measure(() => sleep(QUIET_MS));
const pollCpuMs = quiet.cpuMs / quiet.polls;

const changed = accounts > MAX_CHANGED_ACCOUNTS ? undefined : await measureChanges();
const peakMemoryMb = Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) / 1024;

jobwire.kill('SIGTERM');
await once(jobwire, 'exit');
await sandbox.stop();
await close(receiver);
rmSync(folder, { recursive: true });
process.send?.({
  ...{ cores, accounts, jobs, startSeconds, peakMemoryMb, pollCpuMs },
  pollsPerSecond: quiet.polls / quiet.seconds,
  eventsPerSecond: changed?.eventsPerSecond ?? null,
  eventCpuMs: changed?.eventCpuMs ?? null,
  bytesPerEvent: changed?.bytesPerEvent ?? null,
  bytesPerJob: bytesBefore / (accounts * jobs),
} satisfies SizingResults);
process.disconnect();

/** Changes the same number of jobs of each account, twice, and waits for the webhooks. The first time warms up. */
async function measureChanges() {
  const each = Math.ceil(EVENTS / accounts);
  const count = each * accounts;
  const round = async (status: string): Promise<void> => {
    const end = received + count;
    for (const { account, numbers } of upstream) {
      for (const jobNumber of numbers.slice(0, each)) account.setStatus(jobNumber, status);
    }
    while (received < end) await sleep(20);
  };
  await round(second as string);
  await sleep(2_000);
  const bytes = readSize();
  const run = await measure(() => round(first as string));
  await sleep(2_000);
  return {
    eventsPerSecond: count / run.seconds,
    eventCpuMs: run.cpuMs / count,
    bytesPerEvent: (readSize() - bytes) / count,
  };
}

/** Measures CPU time, polls and duration of some work. */
async function measure(work: () => Promise<unknown>) {
  const [cpuBefore, pollsBefore, from] = [readCpuMs(pid), await readPolls(), performance.now()];
  await work();
  const seconds = (performance.now() - from) / 1000;
  return { seconds, cpuMs: readCpuMs(pid) - cpuBefore, polls: (await readPolls()) - pollsBefore };
}

async function readPolls(): Promise<number> {
  const text = await (await fetch(metricsUrl)).text();
  return Number(/^jobwire_polls(?:_total)?\{[^}]*\} (\d+)/m.exec(text)?.[1]);
}

/** Returns the used bytes of the database, including its write-ahead log. */
function readSize(): number {
  const database = new DatabaseSync(join(folder, 'data/tables.db'), { readOnly: true });
  const read = (pragma: string) => Number(Object.values(database.prepare(`PRAGMA ${pragma}`).get() ?? {})[0]);
  const bytes = (read('page_count') - read('freelist_count')) * read('page_size');
  database.close();
  return bytes;
}
