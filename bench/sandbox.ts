/**
 * A child process: measures the sandbox of the ordering API with 20,000 open jobs: the start of its program, as by `npm run sandbox`, until
 * its first response, and pages of its list compared with the same bytes from a bare Hono handler.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { Agent, get, type IncomingMessage } from 'node:http';
import { fileURLToPath } from 'node:url';
import type { BareFacts } from './bare-pages.ts';
import { startChild } from './child.ts';
import { median } from './statistics.ts';
import { newToken } from './token.ts';

/** Results; times in ms. */
export interface SandboxResults {
  readonly openJobs: number;
  /** Median time from process start until its first response. */
  readonly startMs: number;
  readonly fastestStartMs: number;
  readonly pageMs: number;
  readonly barePageMs: number;
  /** Ratio of the two above, in alternation. */
  readonly pageRatio: number;
  readonly pageBytes: number;
}

interface Started {
  readonly process: ChildProcess;
  readonly url: string;
  readonly adminUrl: string;
  readonly tookMs: number;
}

const PAGE_SIZE = 100;
/** Number of pages read from one side before the other. */
const PAGES_PER_TURN = 20;
const WARM_UP = 10;

const agent = new Agent({ keepAlive: true });
const [rounds = 0, starts = 0, ...flags] = process.argv
  .slice(2)
  .map((arg, at) => (at < 2 ? Number(arg) : arg));

const took: number[] = [];
for (let start = 1; start < Number(starts); start += 1) {
  const one = await startSandbox();
  took.push(one.tookMs);
  await end(one);
}
const sandbox = await startSandbox();
took.push(sandbox.tookMs);
const pages = await measurePages();
agent.destroy();
await end(sandbox);
process.send?.({
  ...pages,
  startMs: median(took),
  fastestStartMs: Math.min(...took),
} satisfies SandboxResults);
process.disconnect();

/** Starts the program with 20,000 open jobs and waits for its first response. */
async function startSandbox(): Promise<Started> {
  const began = performance.now();
  const main = fileURLToPath(new URL('../sandbox/main.ts', import.meta.url));
  const child = spawn(process.execPath, [main, '--port', '0', ...flags.map(String)], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let output = '';
  child.stdout.setEncoding('utf8');
  let found: RegExpExecArray | null = null;
  while (!found) {
    const [text] = (await Promise.race([once(child.stdout, 'data'), once(child, 'exit')])) as [unknown];
    if (typeof text !== 'string') throw new Error(`The sandbox exited: ${output}`);
    output += text;
    found = /^Sandbox\D+ (http:[^ ,]+), [\s\S]*^ +panel +(http:\S+) [\s\S]*open jobs/m.exec(output);
  }
  const [, url = '', adminUrl = ''] = found;
  await read(`${url}/us/api/Lookups/job-statuses`, '', 401);
  return { process: child, url, adminUrl, tookMs: performance.now() - began };
}

async function end({ process: child }: Started): Promise<void> {
  child.kill();
  if (child.exitCode === null) await once(child, 'exit');
}

/** Compares pages of the list with the same bytes from the bare handler. */
async function measurePages() {
  const accounts = JSON.parse(String(await read(`${sandbox.adminUrl}/accounts`))) as {
    region: string;
    clientId: string;
    clientSecret: string;
    activeJobs: number;
  }[];
  const [largest] = accounts.toSorted((one, other) => other.activeJobs - one.activeJobs);
  if (!largest) throw new Error('The sandbox has no accounts.');
  const { region, activeJobs } = largest;
  const token = await newToken({ ...largest, authUrl: `${sandbox.url}/${region}/auth` }, region);
  const listUrl = `${sandbox.url}/${region}/api/Jobs/active`;
  const pages = Math.floor(activeJobs / PAGE_SIZE);
  const bare = await startChild<BareFacts>('bare-pages.ts', [listUrl, token, `${pages}`, `${PAGE_SIZE}`]);

  let bytes = 0;
  const timed = async (url: string, round: number): Promise<number> => {
    const began = performance.now();
    for (let at = 0; at < PAGES_PER_TURN; at += 1) {
      // Spread over the list, the same pages on both sides.
      const page = ((round + WARM_UP) * PAGES_PER_TURN + at) * 37;
      bytes = (await read(`${url}?page=${(page % pages) + 1}&pageSize=${PAGE_SIZE}`, token)).length;
    }
    return (performance.now() - began) / PAGES_PER_TURN;
  };
  const ours: number[] = [];
  const theirs: number[] = [];
  for (let round = -WARM_UP; round < Number(rounds); round += 1) {
    // The order alternates, so that noise of the machine affects all sides equally.
    const work = [
      async () => ours.push(await timed(listUrl, round)),
      async () => theirs.push(await timed(bare.facts.url, round)),
    ];
    for (const one of round % 2 === 0 ? work : work.reverse()) await one();
    if (round < 0) ours.length = theirs.length = 0;
  }
  bare[Symbol.dispose]();
  const openJobs = accounts.reduce((sum, one) => sum + one.activeJobs, 0);
  return {
    openJobs,
    pageMs: median(ours),
    barePageMs: median(theirs),
    pageRatio: median(ours.map((ms, at) => ms / (theirs[at] ?? Number.NaN))),
    pageBytes: bytes,
  };
}

async function read(url: string, token = '', status = 200): Promise<Buffer> {
  const request = get(url, { agent, headers: token === '' ? {} : { authorization: `Bearer ${token}` } });
  const [response] = (await once(request, 'response')) as [IncomingMessage];
  const pieces: Buffer[] = [];
  for await (const piece of response) pieces.push(piece);
  if (response.statusCode !== status) throw new Error(`${url} responded with HTTP ${response.statusCode}.`);
  return Buffer.concat(pieces);
}
