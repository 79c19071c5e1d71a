/**
 * `npm run bench`: measures what polling, delivering, telling customers and reading cost, prints a table and JSON lines, and says of each bar whether
 * it is met. Exit code 1 when one is not. Ratios are taken within one run, for machines differ and are busy.
 * `npm run bench -- --only dashboard` does the same with the dashboard in a browser alone, `--only sandbox` with the sandbox of the
 * ordering service, `--only tables` with the tables of a self-hosted Jobwire; `npm run bench -- --cost` with what a cell on AWS costs; `--write` puts its tables into docs/deploying.md.
 */
import { once } from 'node:events';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { loadavg } from 'node:os';
import { parseArgs } from 'node:util';
import { CHROMIUM } from '../test/support/chromium.ts';
import type { BacklogFigures } from './backlog.ts';
import type { BundleFigures } from './bundles.ts';
import { type Child, startChild } from './child.ts';
import type { ColdStartFigures } from './cold-start.ts';
import type { CostFigures } from './cost.ts';
import { MARGINAL_NOTE, MESSAGES_NOTE, replaceBetween, toMarkdown, total } from './costs.ts';
import type { DashboardFigures } from './dashboard.ts';
import type { DeliveryFigures } from './delivery.ts';
import type { HangingFigures } from './hanging.ts';
import type { NotificationFigures } from './notifications.ts';
import type { PollingFigures } from './polling.ts';
import type { RateFigures } from './rates.ts';
import type { ReadingFigures } from './reading.ts';
import type { SandboxFigures } from './sandbox.ts';
import type { TableFigures } from './tables.ts';

type Bar = { readonly what: string; readonly measured: number } & (
  | { readonly atMost: number; readonly atLeast?: undefined }
  | { readonly atLeast: number; readonly atMost?: undefined }
);

const SIZES = [
  { jobs: 500, rounds: 21 },
  { jobs: 5_000, rounds: 15 },
  { jobs: 20_000, rounds: 11 },
];
/** How much a ratio may differ between two sizes before it counts as growth: what noise alone does. */
const GROWTH = 1.15;

/** Functions that answer requests; they carry the HTTP app. */
const OF_THE_API = ['api', 'manage', 'live'];

const { values: options } = parseArgs({
  options: { cost: { type: 'boolean' }, write: { type: 'boolean' }, only: { type: 'string' } },
});
const PARTS = ['dashboard', 'sandbox', 'tables'];
if (options.only !== undefined && !PARTS.includes(options.only)) {
  throw new Error(`Only one of these can be measured alone: ${PARTS.join(', ')}.`);
}
const isWanted = (part: string) => options.only === undefined || options.only === part;
const bars = options.cost
  ? await measureCosts()
  : [
      ...(options.only ? [] : await measureAll()),
      ...(isWanted('tables') ? await measureTables() : []),
      ...(isWanted('sandbox') ? await measureSandbox() : []),
      ...(isWanted('dashboard') ? await measureDashboard() : []),
    ];
console.log();
for (const bar of bars) {
  const met = bar.atMost === undefined ? bar.measured >= bar.atLeast : bar.measured <= bar.atMost;
  const limit = bar.atMost === undefined ? `at least ${bar.atLeast}` : `at most ${bar.atMost}`;
  console.log(`${met ? 'met   ' : 'MISSED'}  ${bar.what}: ${round(bar.measured)} (${limit})`);
  console.log(JSON.stringify({ bench: 'bar', ...bar, met }));
  if (!met) process.exitCode = 1;
}

/** What a cell costs a month; with `--write` the tables also go into the docs. */
async function measureCosts(): Promise<Bar[]> {
  console.log('Measuring the work of one account …');
  const { work, one, thousand, fixed, telling, messages, besides } = await measure<CostFigures>('cost.ts', [
    '9',
  ]);
  const marginal = { 'a cell with 1 account': one, 'with 1,000 accounts': thousand };
  const tables = {
    marginal: toMarkdown(marginal, MARGINAL_NOTE),
    fixed: toMarkdown({ 'a cell': fixed }),
    messages: toMarkdown({ '1,000 e-mails': messages }, MESSAGES_NOTE, '1,000 e-mails'),
    telling: toMarkdown({ 'a cell': besides }),
  };
  console.log(JSON.stringify({ bench: 'cost', work, telling }));
  console.log(`\nOne account a month, without its secret:\n${tables.marginal}`);
  console.log(`\nA cell a month, without any account:\n${tables.fixed}`);
  console.log(`\nTelling customers:\n${tables.messages}`);
  console.log(`\nA cell that tells customers, a month besides:\n${tables.telling}`);
  if (options.write) {
    const file = new URL('../docs/deploying.md', import.meta.url);
    let text = readFileSync(file, 'utf8');
    for (const [name, table] of Object.entries(tables)) text = replaceBetween(text, name, table);
    writeFileSync(file, text);
  }
  return [
    { what: 'One account, the only one of its cell: $ a month', measured: total(one), atMost: 0.6 },
    { what: 'One account of 1,000: $ a month', measured: total(thousand), atMost: 0.45 },
    { what: 'A cell without accounts: $ a month', measured: total(fixed), atMost: 12 },
    { what: '1,000 e-mails to customers, of 1,000 dispatches: $', measured: total(messages), atMost: 0.5 },
    { what: 'A cell that tells customers: $ a month besides', measured: total(besides), atMost: 3 },
  ];
}

/** The tables of a self-hosted Jobwire beside a DynamoDB server on the same machine. */
async function measureTables(): Promise<Bar[]> {
  console.log('Committing to tables …');
  const tables = await measure<TableFigures>('tables.ts', ['5']);
  console.table(
    Object.fromEntries(Object.entries(tables).map(([what, value]) => [what, round(value as number)])),
  );
  console.log(JSON.stringify({ bench: 'tables', ...tables }));
  return [
    { what: 'Commits of 32 writers: SQLite / dynoxide', measured: tables.commitRatio, atLeast: 2 },
    { what: 'CPU per commit: SQLite / dynoxide', measured: tables.cpuRatio, atMost: 0.5 },
  ];
}

async function measureAll(): Promise<Bar[]> {
  const polling: PollingFigures[] = [];
  for (const { jobs, rounds } of SIZES) {
    console.log(`Polling ${jobs} open jobs …`);
    polling.push(await measure<PollingFigures>('polling.ts', [String(jobs), String(rounds)]));
  }
  console.log('Delivering …');
  const delivery = await measure<DeliveryFigures>('delivery.ts', ['300']);
  console.log('Delivering a backlog …');
  const rates = await measure<RateFigures>('rates.ts', ['5']);
  console.log('Delivering to a dead endpoint …');
  const backlog = await measure<BacklogFigures>('backlog.ts', ['100000']);
  console.log('Delivering beside an endpoint that hangs …');
  const hanging = await measure<HangingFigures>('hanging.ts', ['3']);
  console.log('Telling customers …');
  const notifications = await measure<NotificationFigures>('notifications.ts', ['7']);
  console.log('Reading feeds and streams …');
  const reading = await measure<ReadingFigures>('reading.ts', ['31']);
  console.log('Importing the functions of a cell …');
  const bundles = await measure<BundleFigures[]>('bundles.ts', ['9']);
  console.log('Starting a function and polling …');
  const coldStart = await measure<ColdStartFigures>('cold-start.ts', ['500', '9']);

  console.table(
    Object.fromEntries(
      polling.map((figures) => [
        `${figures.jobs} jobs`,
        Object.fromEntries(Object.entries(figures).map(([name, value]) => [name, round(value as number)])),
      ]),
    ),
  );
  console.table(
    Object.fromEntries(
      bundles.map(({ entry, ...figures }) => [
        entry,
        Object.fromEntries(
          Object.entries(figures).map(([name, value]) => [
            name,
            typeof value === 'number' ? round(value) : value,
          ]),
        ),
      ]),
    ),
  );
  for (const [name, figures] of Object.entries({
    ...{ delivery, rates, backlog, hanging, notifications, reading, coldStart },
  })) {
    console.table({
      [name]: Object.fromEntries(
        Object.entries(figures).map(([what, value]) => [what, round(value as number)]),
      ),
    });
  }
  for (const figures of polling) console.log(JSON.stringify({ bench: 'polling', ...figures }));
  console.log(JSON.stringify({ bench: 'delivery', ...delivery }));
  console.log(JSON.stringify({ bench: 'rates', ...rates }));
  console.log(JSON.stringify({ bench: 'backlog', ...backlog }));
  console.log(JSON.stringify({ bench: 'hanging', ...hanging }));
  console.log(JSON.stringify({ bench: 'notifications', ...notifications }));
  console.log(JSON.stringify({ bench: 'reading', ...reading }));
  for (const figures of bundles) console.log(JSON.stringify({ bench: 'bundles', ...figures }));
  console.log(JSON.stringify({ bench: 'cold-start', ...coldStart }));

  const [small, middle, large] = polling;
  if (!small || !middle || !large) throw new Error('Not every size was measured.');
  return [
    { what: 'Quiet poll of 5,000 jobs: requests', measured: middle.quietRequests, atMost: 51 },
    { what: 'Quiet poll of 5,000 jobs: read units', measured: middle.readUnits, atMost: 24 },
    {
      what: 'Quiet poll of 5,000 jobs: writes (Status only)',
      measured: middle.writesPerQuietPoll,
      atMost: 1,
    },
    { what: 'Quiet poll of 5,000 jobs: CPU / floor', measured: middle.quietCpuRatio, atMost: 1.5 },
    { what: 'Quiet poll of 5,000 jobs: wall / floor', measured: middle.quietWallRatio, atMost: 1.5 },
    { what: 'Quiet poll of 5,000 jobs: peak memory, MB', measured: middle.peakMemoryMb, atMost: 200 },
    {
      what: 'Poll of 5,000 jobs with 50 changes: wall less commit / floor',
      measured: middle.changedWallRatio,
      atMost: 2,
    },
    {
      what: 'Growth of the CPU ratio from 500 to 20,000 jobs',
      measured: large.quietCpuRatio / small.quietCpuRatio,
      atMost: GROWTH,
    },
    {
      what: 'Growth of the wall ratio from 500 to 20,000 jobs',
      measured: large.quietWallRatio / small.quietWallRatio,
      atMost: GROWTH,
    },
    {
      what: 'Commit → webhook, p50 / bare signed POST, p50',
      measured: delivery.webhookP50Ms / delivery.bareP50Ms,
      atMost: 10,
    },
    { what: 'One fast endpoint: rate / bare loop with the same log', measured: rates.oneRatio, atLeast: 0.6 },
    { what: '50 endpoints in sum: rate / bare loop', measured: rates.fiftyRatio, atLeast: 0.6 },
    {
      what: '50 endpoints in sum: rate / one endpoint',
      measured: rates.fiftyPerSecond / rates.onePerSecond,
      atLeast: 1,
    },
    { what: 'An endpoint that takes 200 ms: rate / 16 lanes', measured: rates.slowRatio, atLeast: 0.9 },
    {
      what: '100,000 events behind a dead endpoint: growth of memory',
      measured: backlog.memoryGrowth,
      atMost: 1.1,
    },
    {
      what: '100,000 events behind a dead endpoint: probes a step',
      measured: backlog.probesPerStep,
      atMost: 1,
    },
    {
      what: '100,000 events behind a dead endpoint: rate once it is back / a new endpoint',
      measured: backlog.recoveryRatio,
      atLeast: 0.9,
    },
    { what: '49 endpoints beside one that hangs: p99 / without it', measured: hanging.ratio, atMost: 2 },
    {
      what: '1,000 dispatches in 200 groups with 2 recipients each: e-mails more or fewer than 400',
      measured: notifications.wrong,
      atMost: 0,
    },
    {
      what: 'E-mails that are due: rate / bare loop of nodemailer to the same server',
      measured: notifications.ratio,
      atLeast: 0.5,
    },
    { what: 'Feed page of 1,000 events / the bare Query of them', measured: reading.pageRatio, atMost: 3 },
    { what: '200 readers of a feed: errors', measured: reading.readerErrors, atMost: 0 },
    {
      what: '200 readers of a feed: p99 / p50 of a lone one',
      measured: reading.readersP99Ms / reading.loneP50Ms,
      atMost: 20,
    },
    {
      what: 'Commit → live stream of an account: p95, ms',
      measured: reading.accountStreamP95Ms,
      atMost: 300,
    },
    { what: 'Commit → live stream of everything: p95, ms', measured: reading.cellStreamP95Ms, atMost: 300 },
    ...bundles.flatMap(({ entry, bytes, importMs }): Bar[] => {
      const api = OF_THE_API.includes(entry);
      return [
        { what: `Bundle of ${entry}: MB`, measured: bytes / 1e6, atMost: 1 },
        { what: `Bundle of ${entry}: import, ms`, measured: importMs, atMost: api ? 400 : 250 },
      ];
    }),
    {
      what: 'First poll after a cold start / a warm one, 500 jobs at a service 30 ms away',
      measured: coldStart.ratio,
      atMost: 6,
    },
    {
      what: 'First poll after a cold start / a bare process that fetches the same pages, at a service that answers at once',
      measured: coldStart.overBare,
      atMost: 3,
    },
  ];
}

/** The sandbox of the ordering service in its busiest season. */
async function measureSandbox(): Promise<Bar[]> {
  console.log('Starting the sandbox with 20,000 open jobs, and reading their pages …');
  const sandbox = await measure<SandboxFigures>('sandbox.ts', ['31', '5', '--scenario', 'season']);
  const [load = 0] = loadavg();
  console.table({
    sandbox: Object.fromEntries(Object.entries(sandbox).map(([what, value]) => [what, round(value)])),
  });
  console.log(JSON.stringify({ bench: 'sandbox', ...sandbox, load }));
  return [
    // Some leave and some come while it is measured.
    { what: 'Sandbox: open jobs', measured: sandbox.openJobs, atLeast: 19_900 },
    {
      what: 'Sandbox, 20,000 open jobs: page of 100 / a bare handler that sends the same bytes',
      measured: sandbox.pageRatio,
      atMost: 5,
    },
    {
      what: 'Sandbox, 20,000 open jobs: from its start to the first answer, ms',
      measured: sandbox.startMs,
      atMost: 1_500,
    },
  ];
}

/** The dashboard in a real browser, while 50 events a second come in. */
async function measureDashboard(): Promise<Bar[]> {
  if (!existsSync(CHROMIUM)) {
    console.log(`The dashboard is not measured: there is no browser at ${CHROMIUM}.`);
    return [];
  }
  console.log('Watching the dashboard for a minute …');
  const dashboard = await measure<DashboardFigures>('dashboard.ts', ['50', '60']);
  const [load = 0] = loadavg();
  console.table({
    dashboard: Object.fromEntries(Object.entries(dashboard).map(([what, value]) => [what, round(value)])),
  });
  console.log(JSON.stringify({ bench: 'dashboard', ...dashboard, load }));
  return [
    {
      what: 'Dashboard, 50 events/s for a minute: longest frame, ms',
      measured: dashboard.frameMaxMs,
      atMost: 100,
    },
    { what: 'Dashboard: commit → on screen, p95, ms', measured: dashboard.screenP95Ms, atMost: 500 },
    { what: 'Dashboard: events that never were on screen', measured: dashboard.unseen, atMost: 0 },
  ];
}

/** Runs one part in a process of its own and returns what it measured. */
async function measure<Figures>(module: string, args: string[]): Promise<Figures> {
  const part: Child<Figures> = await startChild<Figures>(module, args, ['--expose-gc']);
  if (part.process.exitCode === null) await once(part.process, 'exit');
  return part.facts;
}

function round(value: number): number {
  return Math.round(value * 100) / 100;
}
