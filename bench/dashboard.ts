/**
 * A child process: measures the dashboard in a real browser, signed in on the live events of the page Now, while events are
 * committed at a constant rate and its totals change: the duration of frames, and the latency from commit to screen.
 */
import { once } from 'node:events';
import type { EventDraft } from '../shared/events/event.ts';
import { createDynamoTable } from '../shared/storage/dynamo-table.ts';
import { openJobsWrite } from '../shared/tracking/open-jobs.ts';
import { PollRollups } from '../shared/tracking/rollups.ts';
import { launchChromium } from '../test/support/chromium.ts';
import { startChild } from './child.ts';
import type { Commit, Committed, LiveServerFacts, LiveServerOptions } from './live-server.ts';
import { median, percentile } from './statistics.ts';
import { startTrace } from './trace.ts';
import { startTables, toDraft } from './wire.ts';

/** Results; times in ms. */
export interface DashboardResults {
  readonly events: number;
  /** Latency from the commit to the frame that shows the row. */
  readonly screenP50Ms: number;
  readonly screenP95Ms: number;
  readonly screenMaxMs: number;
  /** Number of committed events that never appeared in the page. */
  readonly unseen: number;
  /** Time between frames. */
  readonly frameP50Ms: number;
  readonly frameP99Ms: number;
  readonly frameMaxMs: number;
  /** Number of tasks of the page that took over 50 ms. */
  readonly longTasks: number;
  readonly longTaskMaxMs: number;
  /** Maximum CPU time of one task of the page: the minimum duration of its frame on an idle machine. */
  readonly taskMaxCpuMs: number;
  /** CPU time of the page, in ms per second. */
  readonly cpuMsPerSecond: number;
}

const API_KEY = 'the-key-of-the-benchmark';
const ACCOUNTS = ['acme', 'birch', 'cedar', 'dune', 'elm'];
/** Number of events per commit, as in polls. */
const BATCH = 5;
const SIZE = { width: 1920, height: 1080 };
const WARM_UP_MS = 5_000;
const STATUSES = [
  'Scheduled',
  'In production',
  'Quality check',
  'Ready to ship',
  'Shipped',
  'Awaiting artwork',
];

/** Runs in the page: records when each job's row appeared (ms since the epoch), each frame and each long task. */
const WATCH = `
  const watched = { seen: new Map(), frames: [], tasks: [] };
  window.watched = watched;
  let last = performance.now();
  requestAnimationFrame(function frame() {
    const now = performance.now();
    watched.frames.push(now - last);
    last = now;
    requestAnimationFrame(frame);
  });
  new PerformanceObserver((list) => {
    for (const { duration } of list.getEntries()) watched.tasks.push(duration);
  }).observe({ type: 'longtask' });
  // After the frame that renders them.
  const note = (numbers) => requestAnimationFrame(() => setTimeout(() => {
    const at = performance.timeOrigin + performance.now();
    for (const number of numbers) if (!watched.seen.has(number)) watched.seen.set(number, at);
  }));
  new MutationObserver((changes) => {
    const numbers = [];
    for (const { addedNodes } of changes) {
      for (const node of addedNodes) {
        if (!(node instanceof Element)) continue;
        for (const link of node.querySelectorAll('[data-event] a')) numbers.push(Number(link.textContent));
      }
    }
    if (numbers.length > 0) note(numbers);
  }).observe(document, { childList: true, subtree: true });
`;

const perSecond = Number(process.argv[2]);
const seconds = Number(process.argv[3]);
const tables = await startTables();
const table = createDynamoTable(tables.client, { tableName: 'bench' });
const options: LiveServerOptions = {
  ...{ endpoint: tables.endpoint, tableName: 'bench', accounts: ACCOUNTS, apiKey: API_KEY, dashboard: true },
};
const server = await startChild<LiveServerFacts>('live-server.ts', [JSON.stringify(options)]);
const browser = await launchChromium();
const page = await (await browser.newContext({ viewport: SIZE })).newPage();
const books = ACCOUNTS.map((account) => new PollRollups({ region: 'us', account }));
const committedAt = new Map<number, number>();
let jobs = 100_000;

await moveResults(0);
await page.addInitScript(WATCH);
await page.goto(`${server.facts.url}/?view=feed`);
await page.getByLabel('API key').fill(API_KEY);
await page.getByRole('button', { name: 'Sign in' }).click();
await page.getByRole('heading', { name: 'Live events' }).waitFor();
await run(WARM_UP_MS);
await page.evaluate('watched.frames.length = watched.tasks.length = 0');
committedAt.clear();
const trace = await startTrace(browser);
await run(seconds * 1000);
const cpu = await trace.stop();
// Waits for the last committed events.
for (let patience = 100; patience > 0 && !(await page.evaluate(`watched.seen.has(${jobs})`)); patience -= 1) {
  await new Promise((resolve) => setTimeout(resolve, 100));
}
const { seen, frames, tasks } = (await page.evaluate(
  '({ seen: [...watched.seen], frames: watched.frames, tasks: watched.tasks })',
)) as { seen: [job: number, at: number][]; frames: number[]; tasks: number[] };
await browser.close();
server.process.kill();
await once(server.process, 'exit');
await tables.stop();

const shownAt = new Map(seen);
const waits = [...committedAt].flatMap(([job, at]) => {
  const shown = shownAt.get(job);
  return shown === undefined ? [] : [shown - at];
});
process.send?.({
  events: committedAt.size,
  screenP50Ms: median(waits),
  screenP95Ms: percentile(waits, 0.95),
  screenMaxMs: Math.max(...waits),
  unseen: committedAt.size - waits.length,
  frameP50Ms: median(frames),
  frameP99Ms: percentile(frames, 0.99),
  frameMaxMs: Math.max(...frames),
  longTasks: tasks.length,
  longTaskMaxMs: Math.max(0, ...tasks),
  taskMaxCpuMs: Math.max(...cpu),
  cpuMsPerSecond: cpu.reduce((sum, ms) => sum + ms, 0) / seconds,
} satisfies DashboardResults);
process.disconnect();

/** Commits events at the rate for the duration, and changes the totals every second. */
async function run(forMs: number): Promise<void> {
  const began = performance.now();
  const commits = Math.round((forMs / 1000) * (perSecond / BATCH));
  for (let at = 0; at < commits; at += 1) {
    const due = began + at * (forMs / commits);
    await new Promise((resolve) => setTimeout(resolve, Math.max(0, due - performance.now())));
    const events = Array.from({ length: BATCH }, () => toFrequentDraft(++jobs));
    const account = ACCOUNTS[at % ACCOUNTS.length] ?? '';
    const answer = await server.ask<Committed>({ account, events } satisfies Commit);
    for (const { jobNumber = 0 } of events) committedAt.set(jobNumber, answer.committedAt);
    if (at % Math.round(perSecond / BATCH) === 0) await moveResults(at);
  }
}

/** Writes open jobs and roll-ups as polls would after these events. */
async function moveResults(at: number): Promise<void> {
  const now = Date.now();
  const day = (ahead: number): string => new Date(now + ahead * 86_400_000).toISOString().slice(0, 10);
  for (const [which, account] of ACCOUNTS.entries()) {
    const ref = { region: 'us', account };
    const figures = {
      ...{
        jobs: 2_000 + at,
        dispatched: 300 + at,
        otherStatuses: 0,
        dueEarlier: 0,
        dueLater: 4,
        withoutDueDate: 9,
      },
      statuses: STATUSES.map((status, nth) => [status, 100 + ((at * (nth + 3)) % 97)] as const),
      dueDays: [-1, 0, 1, 2].map(
        (ahead) => [day(ahead), [[now + ahead * 86_400_000, 20 + (at % 13)]]] as const,
      ),
    } satisfies Parameters<typeof openJobsWrite>[1];
    const book = books[which];
    book?.add(
      [-3, -2, -1, 0].flatMap((ahead) =>
        (['created', 'dispatched', 'onTime'] as const).map((total) => ({
          day: day(ahead),
          total,
          by: 1 as const,
        })),
      ),
    );
    await table.transact(
      [openJobsWrite(ref, figures, { changedAt: now }).write, ...(book?.takeWrites() ?? [])],
      `figures-${which}-${at}-${now}`,
    );
  }
}

/** Returns an event of a frequent type and typical size. */
function toFrequentDraft(jobNumber: number): EventDraft {
  const draft = toDraft(jobNumber, Date.now());
  const { job, observed } = draft.data;
  switch (jobNumber % 4) {
    case 0: {
      const changes = { dateOut: { from: null, to: observed.at } };
      const data = { job, observed, changes, occurredAt: observed.at, zone: null };
      return { ...draft, type: 'job.dispatched', data };
    }
    case 1: {
      const data = { job, observed, changes: {}, tracking: [{ number: `1Z${jobNumber}`, link: null }] };
      return { ...draft, type: 'job.tracking_added', data };
    }
    default:
      return draft;
  }
}
