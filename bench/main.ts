/**
 * `npm run bench`: measures polling, delivery, notifications and reading, prints tables and JSON lines, and checks each result against
 * its limit. Exit code 1 if a limit is missed. Ratios are computed within one run, because machines and their load differ.
 * `npm run bench -- --only dashboard` measures only the dashboard in a browser, `--only sandbox` the sandbox of the ordering API,
 * `--only tables` the tables of a self-hosted Jobwire. `npm run bench -- --cost` estimates the cost of a cell on AWS, and `--write` also
 * writes its tables to docs/deploying.md and its measurements to bench/measured-costs.json. `npm run bench -- --sizing` measures a self-hosted Jobwire with different numbers of accounts, on
 * one core and on two, and prints the table of docs/self-hosting.md. `--cores 1` measures only on one core. `npm run bench -- --peers`
 * compares it with other systems (bench/peers/compare.ts). `npm run bench -- --lighthouse` installs Lighthouse and scores every kind of
 * page with it. The scores depend on the speed of the machine and on its load.
 */
import { once } from 'node:events';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { loadavg } from 'node:os';
import { parseArgs } from 'node:util';
import { CHROMIUM } from '../test/support/chromium.ts';
import type { BacklogResults } from './backlog.ts';
import type { BundleResults } from './bundles.ts';
import { type Child, startChild } from './child.ts';
import type { ColdStartResults } from './cold-start.ts';
import { BARS, calculateCosts, type Measured, replaceBetween, toTables, total } from './costs.ts';
import type { DashboardResults } from './dashboard.ts';
import type { DeliveryResults } from './delivery.ts';
import type { HangingResults } from './hanging.ts';
import type { PageResults } from './lighthouse/measure.ts';
import type { ListResults } from './lists.ts';
import type { NotificationResults } from './notifications.ts';
import { comparePeers } from './peers/compare.ts';
import type { PollingResults } from './polling.ts';
import type { RateResults } from './rates.ts';
import type { ReadingResults } from './reading.ts';
import type { SandboxResults } from './sandbox.ts';
import type { SizingResults } from './sizing.ts';
import type { TableResults } from './tables.ts';

type Bar = { readonly what: string; readonly measured: number } & (
  | { readonly atMost: number; readonly atLeast?: undefined }
  | { readonly atLeast: number; readonly atMost?: undefined }
);
const atMost = (what: string, measured: number, limit: number): Bar => ({ what, measured, atMost: limit });
const atLeast = (what: string, measured: number, limit: number): Bar => ({ what, measured, atLeast: limit });

const SIZES = [
  { jobs: 500, rounds: 21 },
  { jobs: 5_000, rounds: 15 },
  { jobs: 20_000, rounds: 11 },
];
/** Maximum factor between the ratios of two sizes that noise alone explains. */
const GROWTH = 1.15;

/** Numbers of accounts, and of open jobs of each, with which a self-hosted Jobwire is measured. */
const ACCOUNTS = [
  [1, 5_000],
  [10, 500],
  [100, 50],
  [1_000, 20],
] as const;

/** The measurements behind the tables of docs/deploying.md. */
const MEASURED_COSTS = new URL('./measured-costs.json', import.meta.url);

/** Functions that contain the HTTP app. */
const API_FUNCTIONS = ['api', 'manage', 'live'];

const { values: options } = parseArgs({
  options: {
    cost: { type: 'boolean' },
    write: { type: 'boolean' },
    only: { type: 'string' },
    sizing: { type: 'boolean' },
    cores: { type: 'string' },
    peers: { type: 'boolean' },
    rounds: { type: 'string' },
    systems: { type: 'string' },
    quick: { type: 'boolean' },
    lighthouse: { type: 'boolean' },
  },
});
const PARTS = ['dashboard', 'sandbox', 'tables'];
if (options.only !== undefined && !PARTS.includes(options.only)) {
  throw new Error(`--only must be one of ${PARTS.join(', ')}.`);
}
const isWanted = (part: string) => options.only === undefined || options.only === part;
if (options.peers) {
  await comparePeers(options);
  process.exit();
}
const bars = options.sizing
  ? await measureSizes()
  : options.cost
    ? await measureCosts()
    : options.lighthouse
      ? await measureScores()
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

/** Estimates the monthly cost of a cell. With `--write`, also writes the tables to the docs. */
async function measureCosts(): Promise<Bar[]> {
  console.log('Measuring the work of one account …');
  const measured = await measure<Measured>('cost.ts', ['9']);
  const costs = calculateCosts(measured);
  const tables = toTables(measured);
  console.log(JSON.stringify({ bench: 'cost', ...measured }));
  console.log(`\nOne account with one endpoint, per month:\n${tables.marginal}`);
  console.log(`\nA cell per month, without accounts:\n${tables.fixed}`);
  console.log(`\nOptions, per month:\n${tables.optional}`);
  console.log(`\nIn other AWS regions, per month:\n${tables.regions}`);
  console.log(`\nCustomer notifications:\n${tables.messages}`);
  console.log(`\nA cell with notifications, additional cost per month:\n${tables.telling}`);
  if (options.write) {
    writeFileSync(MEASURED_COSTS, `${JSON.stringify(measured, null, 2)}\n`);
    const file = new URL('../docs/deploying.md', import.meta.url);
    let text = readFileSync(file, 'utf8');
    for (const [name, table] of Object.entries(tables)) text = replaceBetween(text, name, table);
    writeFileSync(file, text);
  }
  const whats = {
    one: 'One account, the only one of its cell: $ per month',
    thousand: 'One account of 1,000: $ per month',
    fixed: 'A cell without accounts: $ per month',
    messages: '1,000 e-mails to customers about 1,000 dispatches: $',
    telling: 'A cell with notifications: additional $ per month',
  } as const;
  return (Object.keys(whats) as (keyof typeof whats)[]).map((name) =>
    atMost(whats[name], total(costs[name]), BARS[name]),
  );
}

/** Measures a self-hosted Jobwire of several sizes. Prints a Markdown table. */
async function measureSizes(): Promise<Bar[]> {
  const results: SizingResults[] = [];
  for (const cores of options.cores === undefined ? [1, 2] : [Number(options.cores)]) {
    for (const [accounts, jobs] of ACCOUNTS) {
      console.log(`Running ${accounts} accounts with ${jobs} open jobs each, cores: ${cores} …`);
      const one = await measure<SizingResults>('sizing.ts', [cores, accounts, jobs].map(String));
      console.log(JSON.stringify({ bench: 'sizing', ...one }));
      results.push(one);
    }
  }
  const format = (value: number | null, digits = 0) => value?.toFixed(digits) ?? 'not measured';
  const rows = results.map((one) =>
    [
      ...[one.cores, `${one.accounts.toLocaleString('en')} × ${one.jobs.toLocaleString('en')}`],
      ...[format(one.pollCpuMs, 1), `${format((one.pollCpuMs * one.accounts) / 1_200, 1)} %`],
      ...[format(one.eventsPerSecond), format(one.eventCpuMs, 1), `${format(one.peakMemoryMb)} MB`],
    ].join(' | '),
  );
  console.log(
    [
      '\n| cores | accounts × open jobs | CPU per quiet poll, ms | CPU at an interval of 120 s | events per second | CPU per event, ms | memory |',
      '|---|---|---|---|---|---|---|',
      ...rows.map((row) => `| ${row} |`),
    ].join('\n'),
  );
  const most = (field: keyof SizingResults) => Math.max(...results.map((one) => one[field] ?? 0));
  return [
    atMost('Sizing: memory, MB', most('peakMemoryMb'), 800),
    atMost('Sizing: bytes per event', most('bytesPerEvent'), 12_000),
    atMost('Sizing: bytes per open job', most('bytesPerJob'), 12_000),
  ];
}

/** Compares the tables of a self-hosted Jobwire with a DynamoDB server on the same machine. */
async function measureTables(): Promise<Bar[]> {
  console.log('Committing to tables …');
  const tables = await measure<TableResults>('tables.ts', ['5']);
  console.table(roundAll(tables));
  console.log(JSON.stringify({ bench: 'tables', ...tables }));
  return [
    atLeast('Commits of 32 writers: SQLite / dynoxide', tables.commitRatio, 2),
    atMost('CPU per commit: SQLite / dynoxide', tables.cpuRatio, 0.5),
  ];
}

async function measureAll(): Promise<Bar[]> {
  const polling: PollingResults[] = [];
  for (const { jobs, rounds } of SIZES) {
    console.log(`Polling ${jobs} open jobs …`);
    polling.push(await measure<PollingResults>('polling.ts', [String(jobs), String(rounds)]));
  }
  console.log('Delivering …');
  const delivery = await measure<DeliveryResults>('delivery.ts', ['300']);
  console.log('Delivering a backlog …');
  const rates = await measure<RateResults>('rates.ts', ['5']);
  console.log('Delivering to a dead endpoint …');
  const backlog = await measure<BacklogResults>('backlog.ts', ['100000']);
  console.log('Delivering while one endpoint hangs …');
  const hanging = await measure<HangingResults>('hanging.ts', ['3']);
  console.log('Sending notifications …');
  const notifications = await measure<NotificationResults>('notifications.ts', ['7']);
  console.log('Reading feeds and streams …');
  const reading = await measure<ReadingResults>('reading.ts', ['31']);
  console.log('Importing the functions of a cell …');
  const bundles = await measure<BundleResults[]>('bundles.ts', ['9']);
  console.log('Polling after a cold start …');
  const coldStart = await measure<ColdStartResults>('cold-start.ts', ['500', '9']);

  const others = { delivery, rates, backlog, hanging, notifications, reading, 'cold-start': coldStart };
  console.table(Object.fromEntries(polling.map((results) => [`${results.jobs} jobs`, roundAll(results)])));
  console.table(Object.fromEntries(bundles.map(({ entry, ...results }) => [entry, roundAll(results)])));
  for (const [name, results] of Object.entries(others)) console.table({ [name]: roundAll(results) });
  for (const results of polling) console.log(JSON.stringify({ bench: 'polling', ...results }));
  for (const [bench, results] of Object.entries(others)) console.log(JSON.stringify({ bench, ...results }));
  for (const results of bundles) console.log(JSON.stringify({ bench: 'bundles', ...results }));

  const [small, middle, large] = polling;
  if (!small || !middle || !large) throw new Error('A size was not measured.');
  return [
    atMost('Quiet poll of 5,000 jobs: requests', middle.quietRequests, 51),
    atMost('Quiet poll of 5,000 jobs: read units', middle.readUnits, 24),
    atMost('Quiet poll of 5,000 jobs: writes (Status only)', middle.writesPerQuietPoll, 1),
    atMost('Quiet poll of 5,000 jobs: CPU / floor', middle.quietCpuRatio, 1.15),
    atMost('Quiet poll of 5,000 jobs: wall / floor', middle.quietWallRatio, 1.15),
    atMost('Quiet poll of 5,000 jobs: peak memory, MB', middle.peakMemoryMb, 150),
    atMost('Poll of 5,000 jobs with 50 changes: wall less commit / floor', middle.changedWallRatio, 1.8),
    atMost(
      'Growth of the CPU ratio from 500 to 20,000 jobs',
      large.quietCpuRatio / small.quietCpuRatio,
      GROWTH,
    ),
    atMost(
      'Growth of the wall ratio from 500 to 20,000 jobs',
      large.quietWallRatio / small.quietWallRatio,
      GROWTH,
    ),
    atMost('Commit → webhook, p50 / bare signed POST, p50', delivery.webhookP50Ms / delivery.bareP50Ms, 10),
    atLeast('One fast endpoint: rate / bare loop with the same log', rates.oneRatio, 0.6),
    atLeast('50 endpoints in sum: rate / bare loop', rates.fiftyRatio, 0.6),
    atLeast('50 endpoints in sum: rate / one endpoint', rates.fiftyPerSecond / rates.onePerSecond, 1),
    atLeast('An endpoint that responds after 200 ms: rate / 16 lanes', rates.slowRatio, 4),
    atMost('100,000 events behind a dead endpoint: growth of memory', backlog.memoryGrowth, 1.1),
    atMost('100,000 events behind a dead endpoint: probes per step', backlog.probesPerStep, 1),
    atLeast(
      '100,000 events behind a dead endpoint: rate after its recovery / a new endpoint',
      backlog.recoveryRatio,
      0.9,
    ),
    atMost('49 endpoints while another one hangs: p99 / without it', hanging.ratio, 2),
    atMost(
      '1,000 dispatches in 200 groups with 2 recipients each: deviation from 400 e-mails',
      notifications.wrong,
      0,
    ),
    atLeast('Due e-mails: rate / bare loop of nodemailer to the same server', notifications.ratio, 0.5),
    atMost('Feed page of 1,000 events / bare Query of the same events', reading.pageRatio, 3),
    atMost('200 readers of a feed: errors', reading.readerErrors, 0),
    atMost(
      '200 readers of a feed: p99 / p50 of a single reader',
      reading.readersP99Ms / reading.loneP50Ms,
      20,
    ),
    atMost('Commit → live stream of an account: p95, ms', reading.accountStreamP95Ms, 300),
    atMost('Commit → live stream of all accounts: p95, ms', reading.cellStreamP95Ms, 300),
    ...bundles.flatMap(({ entry, bytes, importMs }): Bar[] => {
      const api = API_FUNCTIONS.includes(entry);
      return [
        atMost(`Bundle of ${entry}: MB`, bytes / 1e6, 1),
        atMost(`Bundle of ${entry}: import, ms`, importMs, api ? 400 : 250),
      ];
    }),
    atMost(
      'First poll after a cold start / a warm poll, 500 jobs, upstream latency 30 ms',
      coldStart.ratio,
      6,
    ),
    atMost(
      'First poll after a cold start / a bare process that fetches the same pages, upstream without latency',
      coldStart.overBare,
      3,
    ),
  ];
}

/** Measures the sandbox of the ordering API at its maximum load. */
async function measureSandbox(): Promise<Bar[]> {
  console.log('Starting the sandbox with 20,000 open jobs, and reading their pages …');
  const sandbox = await measure<SandboxResults>('sandbox.ts', ['31', '5', '--scenario', 'season']);
  const [load = 0] = loadavg();
  console.table({ sandbox: roundAll(sandbox) });
  console.log(JSON.stringify({ bench: 'sandbox', ...sandbox, load }));
  return [
    // Jobs are created and closed during the measurement.
    atLeast('Sandbox: open jobs', sandbox.openJobs, 19_900),
    atMost(
      'Sandbox, 20,000 open jobs: page of 100 / a bare handler that sends the same bytes',
      sandbox.pageRatio,
      5,
    ),
    atMost('Sandbox, 20,000 open jobs: start until the first response, ms', sandbox.startMs, 1_500),
  ];
}

/** Measures the dashboard in a real browser at 50 events per second. */
async function measureDashboard(): Promise<Bar[]> {
  if (!existsSync(CHROMIUM)) {
    console.log(`The dashboard is not measured: there is no browser at ${CHROMIUM}.`);
    return [];
  }
  console.log('Measuring the dashboard for a minute …');
  const dashboard = await measure<DashboardResults>('dashboard.ts', ['50', '60']);
  const [load = 0] = loadavg();
  console.table({ dashboard: roundAll(dashboard) });
  console.log(JSON.stringify({ bench: 'dashboard', ...dashboard, load }));
  console.log('Scrolling long lists, and an hour of the page Now …');
  const { idle, jobs, attention, ...hour } = await measure<ListResults>('lists.ts', []);
  console.table({ idle, jobs, attention });
  console.log(JSON.stringify({ bench: 'lists', idle, jobs, attention, ...hour, load }));
  const scrolled = [
    ['10,000 jobs', jobs],
    [`${hour.attentionRows} attention rows`, attention],
  ] as const;
  return [
    ...scrolled.flatMap(([what, { frameMaxMs, taskMaxCpuMs }]) => [
      atMost(
        `Dashboard, ${what} scrolled: longest frame beyond that of an idle page, ms`,
        frameMaxMs - idle.frameMaxMs,
        100,
      ),
      atMost(`Dashboard, ${what} scrolled: CPU time of a task, ms`, taskMaxCpuMs, 100),
    ]),
    atMost(
      'Dashboard, an hour of the page Now: growth of the heap, %',
      100 * (hour.heapAfter / hour.heapBefore - 1),
      10,
    ),
    atMost('Dashboard, 50 events/s for a minute: longest frame, ms', dashboard.frameMaxMs, 100),
    atMost('Dashboard: commit → on screen, p95, ms', dashboard.screenP95Ms, 500),
    atMost('Dashboard: events that were never on screen', dashboard.unseen, 0),
  ];
}

/** Scores the pages of the demo with Lighthouse. The mobile settings are for information. */
async function measureScores(): Promise<Bar[]> {
  console.log('Scoring the pages, some minutes …');
  const pages = await measure<PageResults[]>('lighthouse/measure.ts', []);
  console.table(pages.map(({ failed: _, ...rest }) => rest));
  console.log(JSON.stringify({ bench: 'lighthouse', pages, load: loadavg()[0] }));
  return pages
    .filter(({ settings }) => settings === 'desktop')
    .flatMap(({ page, performance, accessibility }) => [
      atLeast(`Lighthouse, ${page}: performance`, performance, 90),
      atLeast(`Lighthouse, ${page}: accessibility`, accessibility, 100),
    ]);
}

/** Runs one benchmark in a separate process and returns its results. */
async function measure<Results>(module: string, args: string[]): Promise<Results> {
  const part: Child<Results> = await startChild<Results>(module, args, ['--expose-gc']);
  if (part.process.exitCode === null) await once(part.process, 'exit');
  return part.facts;
}

/** Returns results with rounded numbers. */
function roundAll(results: object): object {
  return Object.fromEntries(
    Object.entries(results).map(([name, value]) => [name, typeof value === 'number' ? round(value) : value]),
  );
}

function round(value: number): number {
  return Math.round(value * 100) / 100;
}
