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
  return (Object.keys(whats) as (keyof typeof whats)[]).map((name) => ({
    what: whats[name],
    measured: total(costs[name]),
    atMost: BARS[name],
  }));
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
  const most = (read: (one: SizingResults) => number | null) =>
    Math.max(...results.map((one) => read(one) ?? 0));
  return [
    { what: 'Sizing: memory, MB', measured: most(({ peakMemoryMb }) => peakMemoryMb), atMost: 800 },
    { what: 'Sizing: bytes per event', measured: most(({ bytesPerEvent }) => bytesPerEvent), atMost: 12_000 },
    { what: 'Sizing: bytes per open job', measured: most(({ bytesPerJob }) => bytesPerJob), atMost: 12_000 },
  ];
}

/** Compares the tables of a self-hosted Jobwire with a DynamoDB server on the same machine. */
async function measureTables(): Promise<Bar[]> {
  console.log('Committing to tables …');
  const tables = await measure<TableResults>('tables.ts', ['5']);
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

  console.table(
    Object.fromEntries(
      polling.map((results) => [
        `${results.jobs} jobs`,
        Object.fromEntries(Object.entries(results).map(([name, value]) => [name, round(value as number)])),
      ]),
    ),
  );
  console.table(
    Object.fromEntries(
      bundles.map(({ entry, ...results }) => [
        entry,
        Object.fromEntries(
          Object.entries(results).map(([name, value]) => [
            name,
            typeof value === 'number' ? round(value) : value,
          ]),
        ),
      ]),
    ),
  );
  for (const [name, results] of Object.entries({
    ...{ delivery, rates, backlog, hanging, notifications, reading, coldStart },
  })) {
    console.table({
      [name]: Object.fromEntries(
        Object.entries(results).map(([what, value]) => [what, round(value as number)]),
      ),
    });
  }
  for (const results of polling) console.log(JSON.stringify({ bench: 'polling', ...results }));
  console.log(JSON.stringify({ bench: 'delivery', ...delivery }));
  console.log(JSON.stringify({ bench: 'rates', ...rates }));
  console.log(JSON.stringify({ bench: 'backlog', ...backlog }));
  console.log(JSON.stringify({ bench: 'hanging', ...hanging }));
  console.log(JSON.stringify({ bench: 'notifications', ...notifications }));
  console.log(JSON.stringify({ bench: 'reading', ...reading }));
  for (const results of bundles) console.log(JSON.stringify({ bench: 'bundles', ...results }));
  console.log(JSON.stringify({ bench: 'cold-start', ...coldStart }));

  const [small, middle, large] = polling;
  if (!small || !middle || !large) throw new Error('A size was not measured.');
  return [
    { what: 'Quiet poll of 5,000 jobs: requests', measured: middle.quietRequests, atMost: 51 },
    { what: 'Quiet poll of 5,000 jobs: read units', measured: middle.readUnits, atMost: 24 },
    {
      what: 'Quiet poll of 5,000 jobs: writes (Status only)',
      measured: middle.writesPerQuietPoll,
      atMost: 1,
    },
    { what: 'Quiet poll of 5,000 jobs: CPU / floor', measured: middle.quietCpuRatio, atMost: 1.15 },
    { what: 'Quiet poll of 5,000 jobs: wall / floor', measured: middle.quietWallRatio, atMost: 1.15 },
    { what: 'Quiet poll of 5,000 jobs: peak memory, MB', measured: middle.peakMemoryMb, atMost: 150 },
    {
      what: 'Poll of 5,000 jobs with 50 changes: wall less commit / floor',
      measured: middle.changedWallRatio,
      atMost: 1.8,
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
    {
      what: 'An endpoint that responds after 200 ms: rate / 16 lanes',
      measured: rates.slowRatio,
      atLeast: 4,
    },
    {
      what: '100,000 events behind a dead endpoint: growth of memory',
      measured: backlog.memoryGrowth,
      atMost: 1.1,
    },
    {
      what: '100,000 events behind a dead endpoint: probes per step',
      measured: backlog.probesPerStep,
      atMost: 1,
    },
    {
      what: '100,000 events behind a dead endpoint: rate after its recovery / a new endpoint',
      measured: backlog.recoveryRatio,
      atLeast: 0.9,
    },
    { what: '49 endpoints while another one hangs: p99 / without it', measured: hanging.ratio, atMost: 2 },
    {
      what: '1,000 dispatches in 200 groups with 2 recipients each: deviation from 400 e-mails',
      measured: notifications.wrong,
      atMost: 0,
    },
    {
      what: 'Due e-mails: rate / bare loop of nodemailer to the same server',
      measured: notifications.ratio,
      atLeast: 0.5,
    },
    {
      what: 'Feed page of 1,000 events / bare Query of the same events',
      measured: reading.pageRatio,
      atMost: 3,
    },
    { what: '200 readers of a feed: errors', measured: reading.readerErrors, atMost: 0 },
    {
      what: '200 readers of a feed: p99 / p50 of a single reader',
      measured: reading.readersP99Ms / reading.loneP50Ms,
      atMost: 20,
    },
    {
      what: 'Commit → live stream of an account: p95, ms',
      measured: reading.accountStreamP95Ms,
      atMost: 300,
    },
    { what: 'Commit → live stream of all accounts: p95, ms', measured: reading.cellStreamP95Ms, atMost: 300 },
    ...bundles.flatMap(({ entry, bytes, importMs }): Bar[] => {
      const api = API_FUNCTIONS.includes(entry);
      return [
        { what: `Bundle of ${entry}: MB`, measured: bytes / 1e6, atMost: 1 },
        { what: `Bundle of ${entry}: import, ms`, measured: importMs, atMost: api ? 400 : 250 },
      ];
    }),
    {
      what: 'First poll after a cold start / a warm poll, 500 jobs, upstream latency 30 ms',
      measured: coldStart.ratio,
      atMost: 6,
    },
    {
      what: 'First poll after a cold start / a bare process that fetches the same pages, upstream without latency',
      measured: coldStart.overBare,
      atMost: 3,
    },
  ];
}

/** Measures the sandbox of the ordering API at its maximum load. */
async function measureSandbox(): Promise<Bar[]> {
  console.log('Starting the sandbox with 20,000 open jobs, and reading their pages …');
  const sandbox = await measure<SandboxResults>('sandbox.ts', ['31', '5', '--scenario', 'season']);
  const [load = 0] = loadavg();
  console.table({
    sandbox: Object.fromEntries(Object.entries(sandbox).map(([what, value]) => [what, round(value)])),
  });
  console.log(JSON.stringify({ bench: 'sandbox', ...sandbox, load }));
  return [
    // Jobs are created and closed during the measurement.
    { what: 'Sandbox: open jobs', measured: sandbox.openJobs, atLeast: 19_900 },
    {
      what: 'Sandbox, 20,000 open jobs: page of 100 / a bare handler that sends the same bytes',
      measured: sandbox.pageRatio,
      atMost: 5,
    },
    {
      what: 'Sandbox, 20,000 open jobs: start until the first response, ms',
      measured: sandbox.startMs,
      atMost: 1_500,
    },
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
  console.table({
    dashboard: Object.fromEntries(Object.entries(dashboard).map(([what, value]) => [what, round(value)])),
  });
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
      {
        what: `Dashboard, ${what} scrolled: longest frame beyond that of an idle page, ms`,
        measured: frameMaxMs - idle.frameMaxMs,
        atMost: 100,
      },
      { what: `Dashboard, ${what} scrolled: CPU time of a task, ms`, measured: taskMaxCpuMs, atMost: 100 },
    ]),
    {
      what: 'Dashboard, an hour of the page Now: growth of the heap, %',
      measured: 100 * (hour.heapAfter / hour.heapBefore - 1),
      atMost: 10,
    },
    {
      what: 'Dashboard, 50 events/s for a minute: longest frame, ms',
      measured: dashboard.frameMaxMs,
      atMost: 100,
    },
    { what: 'Dashboard: commit → on screen, p95, ms', measured: dashboard.screenP95Ms, atMost: 500 },
    { what: 'Dashboard: events that were never on screen', measured: dashboard.unseen, atMost: 0 },
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
      { what: `Lighthouse, ${page}: performance`, measured: performance, atLeast: 90 },
      { what: `Lighthouse, ${page}: accessibility`, measured: accessibility, atLeast: 100 },
    ]);
}

/** Runs one benchmark in a separate process and returns its results. */
async function measure<Results>(module: string, args: string[]): Promise<Results> {
  const part: Child<Results> = await startChild<Results>(module, args, ['--expose-gc']);
  if (part.process.exitCode === null) await once(part.process, 'exit');
  return part.facts;
}

function round(value: number): number {
  return Math.round(value * 100) / 100;
}
