/**
 * A child process: measures long lists of the dashboard in a real browser, and the memory of the page Now after an hour. A self-hosted
 * Jobwire polls a sandbox: an account with 10,000 open jobs, and two with 100 late jobs each, all of which need attention.
 *
 * The hour passes in some minutes: the clock of the page is virtual and advances by a minute 80 times, of which the first 20 are not
 * measured. All its timers run, so it sends the requests of that time. In each measured minute, the status of 20 jobs changes, and
 * the page receives their events from its stream. In the minutes before, so many jobs change that the page keeps its maximum number
 * of events.
 */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { MAX_ROWS } from '../dashboard/src/stream.ts';
import { startSandbox } from '../sandbox/server.ts';
import { createWorld } from '../sandbox/world/world.ts';
import { launchChromium } from '../test/support/chromium.ts';
import { launch } from '../test/support/command.ts';
import { percentile } from './statistics.ts';
import { startTrace } from './trace.ts';

/** Time between frames while a list is scrolled, beside that of an idle page in the same run. In ms. */
export interface ScrollResults {
  readonly frames: number;
  readonly frameP99Ms: number;
  readonly frameMaxMs: number;
  /** CPU time of the longest task: the minimum duration of its frame on an idle machine. */
  readonly taskMaxCpuMs: number;
}

/** Results. */
export interface ListResults {
  readonly idle: ScrollResults;
  readonly jobs: ScrollResults;
  readonly attention: ScrollResults;
  readonly attentionRows: number;
  /** Used heap after a garbage collection, in bytes: when caches and lists are full, and an hour later. */
  readonly heapBefore: number;
  readonly heapAfter: number;
  /** Requests of the page, and events that it received, between the two. */
  readonly requests: number;
  readonly events: number;
}

const JOBS = 10_000;
const LATE_ACCOUNTS = ['late-1', 'late-2'];
/** The attention queue lists no more of an account. */
const LATE_JOBS = 100;
const CHANGES_PER_MINUTE = 20;
const WARM_UP_MINUTES = 20;
const WARM_UP_CHANGES_PER_MINUTE = MAX_ROWS / WARM_UP_MINUTES;
const KEY = 'the-key-of-the-benchmark';
const SCROLL_MS = 10_000;

const folder = mkdtempSync(join(tmpdir(), 'jobwire-bench-'));
const world = createWorld({ now: Date.now });
const account = world.addAccount({ region: 'us', name: 'big' });
const dueIn = (days: number): string => new Date(Date.now() + days * 86_400_000).toISOString().slice(0, 10);
const numbers = Array.from({ length: JOBS }, (_, at) =>
  account.createJob({
    ...{ status: 'Scheduled', description: `Crest ${at}`, orderNumber: `PO-${at}`, lines: [{}] },
    dateDue: dueIn(3 + (at % 60)),
  }),
);
for (const name of LATE_ACCOUNTS) {
  const late = world.addAccount({ region: 'us', name });
  for (let at = 0; at < LATE_JOBS; at += 1) late.createJob({ status: 'Scheduled', dateDue: dueIn(-2) });
}
const sandbox = await startSandbox({ world });
const file = join(folder, 'jobwire.json');
writeFileSync(
  file,
  JSON.stringify({
    ...{ port: 0, apiKey: KEY, dataDir: join(folder, 'data') },
    regions: { us: { baseUrl: sandbox.apiUrl('us'), authUrl: sandbox.authUrl('us'), realm: 'us' } },
    accounts: world.accounts().map(({ name, region, clientId, clientSecret }) => ({
      ...{ id: name, region, clientId, clientSecret },
      pollIntervalSeconds: 5,
    })),
  }),
);
const running = launch([process.execPath, 'local/main.ts', '--config', file]);
const url = (await running.printed(/HTTP API +(http\S+)/)).trim();
const browser = await launchChromium();
try {
  await until(async () => (await get<{ openJobs?: number }>('/accounts/big/status')).openJobs === JOBS);
  const late = LATE_ACCOUNTS.length * LATE_JOBS;
  await until(async () => (await get<{ items?: object[] }>('/attention?limit=500')).items?.length === late);
  const idle = await scroll(await open('/setup/nowhere'), 0);
  const jobsPage = await open('/jobs?account=big');
  await jobsPage.getByRole('grid', { name: 'Jobs' }).locator('[data-index]').first().waitFor();
  const jobs = await scroll(jobsPage, 300);
  const queue = await open('/');
  const items = queue.getByRole('list', { name: 'Items' }).getByRole('listitem');
  await items.first().waitFor();
  for (let more = queue.getByRole('button', { name: 'Show more' }); await more.isVisible(); ) {
    const before = await items.count();
    await more.click();
    await until(async () => (await items.count()) > before || !(await more.isVisible()));
  }
  const attentionRows = await items.count();
  const attention = await scroll(queue, 300);
  process.send?.({ idle, jobs, attention, attentionRows, ...(await measureHour()) } satisfies ListResults);
} finally {
  await browser.close();
  running.child.kill('SIGTERM');
  await running.ended;
  await sandbox.stop();
  rmSync(folder, { recursive: true, force: true });
  process.disconnect?.();
}

async function open(path: string, virtual = false): Promise<Page> {
  const page = await (await browser.newContext({ viewport: { width: 1280, height: 800 } })).newPage();
  page.setDefaultTimeout(60_000);
  if (virtual) await page.clock.install();
  await page.goto(`${url}/favicon.svg`);
  await page.evaluate(`sessionStorage.setItem('jobwire.key', '${KEY}')`);
  await page.goto(url + path);
  await page.locator('h1').waitFor();
  return page;
}

/** Scrolls a page by this number of pixels in each frame, down and back up, and measures the frames. */
async function scroll(page: Page, pixels: number): Promise<ScrollResults> {
  const trace = await startTrace(browser);
  const frames = (await page.evaluate(`new Promise((done) => {
    const frames = [];
    let last = performance.now();
    let by = ${pixels};
    const ends = last + ${SCROLL_MS};
    requestAnimationFrame(function frame() {
      const now = performance.now();
      frames.push(now - last);
      last = now;
      const before = scrollY;
      scrollBy({ top: by, behavior: 'instant' });
      if (scrollY === before) by = -by;
      if (now < ends) requestAnimationFrame(frame);
      else done(frames);
    });
  })`)) as number[];
  const tasks = await trace.stop();
  await page.context().close();
  return {
    frames: frames.length,
    frameP99Ms: percentile(frames, 0.99),
    frameMaxMs: Math.max(...frames),
    taskMaxCpuMs: Math.max(0, ...tasks),
  };
}

async function measureHour() {
  const page = await open('/', true);
  const session = await page.context().newCDPSession(page);
  let requests = 0;
  page.on('request', (request) => {
    if (request.url().includes('/v1/')) requests += 1;
  });
  const readHeap = async (): Promise<number> => {
    await session.send('HeapProfiler.collectGarbage');
    return (await session.send('Runtime.getHeapUsage')).usedSize;
  };
  const countEvents = async () =>
    (await get<{ events: { sequence: string }[] }>('/accounts/big/events?order=newest&limit=1')).events[0];
  let heapBefore = 0;
  let first = 0;
  let changed = 0;
  for (let minute = 0; minute < WARM_UP_MINUTES + 60; minute += 1) {
    if (minute === WARM_UP_MINUTES) {
      heapBefore = await readHeap();
      requests = 0;
      first = Number((await countEvents())?.sequence ?? 0);
    }
    const changes = minute < WARM_UP_MINUTES ? WARM_UP_CHANGES_PER_MINUTE : CHANGES_PER_MINUTE;
    for (const end = changed + changes; changed < end; changed += 1)
      account.setStatus(numbers[changed] as number, 'In production');
    await page.clock.runFor(60_000);
  }
  const last = numbers[changed - 1];
  await until(async () =>
    (await get<{ events: { subject: string }[] }>('/accounts/big/events?order=newest&limit=100')).events.some(
      ({ subject }) => subject.endsWith(String(last)),
    ),
  );
  // The stream delivers what is left.
  await page.clock.runFor(5_000);
  const events = Number((await countEvents())?.sequence ?? 0) - first;
  return { heapBefore, heapAfter: await readHeap(), requests, events };
}

async function get<T>(path: string): Promise<T> {
  // On a loaded machine, an idle connection could be closed while it is used again.
  const headers = { authorization: `Bearer ${KEY}`, connection: 'close' };
  const response = await fetch(`${url}/v1${path}`, { headers });
  return (await response.json()) as T;
}

async function until(holds: () => Promise<boolean>): Promise<void> {
  while (!(await holds())) await new Promise((done) => setTimeout(done, 200));
}
