/**
 * `npm start`: self-hosted Jobwire. Without a configuration it is a demo. With `--config FILE` it tracks real accounts.
 * One file: it is one sequence, from the arguments to the end of the process, and each step needs the parts of the former ones.
 */

import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { Server } from 'node:http';
import { dirname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { createAdaptorServer, type HttpBindings } from '@hono/node-server';
import { createApi, malformedPart } from '../shared/api/app.ts';
import { createIdempotency } from '../shared/api/idempotency.ts';
import { createKeyring } from '../shared/api/keys.ts';
import { PROBLEM_TYPE, problems } from '../shared/api/problems.ts';
import { createSignIn } from '../shared/api/sign-in.ts';
import { createSlots } from '../shared/api/waiting-limit.ts';
import { type Config, ConfigError, parseConfig, parseConfigText } from '../shared/config.ts';
import { listSinks, type SinkRecord } from '../shared/delivery/sink.ts';
import { explainCode, explainError, explainFileError, findCode, formatCode } from '../shared/error-codes.ts';
import type { JobEvent } from '../shared/events/event.ts';
import type { EventLog } from '../shared/log/log.ts';
import { channels } from '../shared/notifications/types.ts';
import { SecretError } from '../shared/secrets.ts';
import type { AccountRef } from '../shared/storage/schema.ts';
import { StoreFormatError } from '../shared/storage/sqlite-store.ts';
import { createMemoryTable } from '../shared/storage/sqlite-table.ts';
import { type Table, TableError } from '../shared/storage/table.ts';
import { readApiFile } from './api-files.ts';
import { createDashboard } from './dashboard.ts';
import { type DataDir, openDataDir } from './data-dir.ts';
import { LOAD_DEFERRED_MS, loadDeferredModules } from './deferred-modules.ts';
import { type Demo, startDemo } from './demo.ts';
import { addDemoRecipients } from './demo-customers.ts';
import { createFailureLines } from './failure-lines.ts';
import { getClientAddress, getRejectionReason } from './guard.ts';
import { startHost } from './host.ts';
import { createMetricsApp, createRecorder } from './metrics.ts';
import type { EmbeddedFauxqs } from './queues.ts';
import { adviseRestore, openSecretKey } from './secret-key.ts';
import { StartError, toMessage } from './start-error.ts';
import { openTables } from './tables.ts';
import { count, createTerminal, findCli, nameCli, quote } from './terminal.ts';
import { createTracer } from './tracing.ts';

// Node resolves names with at most half of these threads, 2 by default. So names whose servers do not respond would delay all others.
// Read when the first thread is needed.
process.env.UV_THREADPOOL_SIZE ??= '32';

/** Maximum time for work in progress to complete at shutdown. Interrupted work resumes after a restart. */
const SHUTDOWN_MS = 2_500;
/** Maximum time for the last traces to be sent at shutdown. */
const TRACES_MS = 500;
/** Maximum time of each step of the check of the mail server at the start. */
const MAIL_CHECK_MS = 10_000;
/** Exit code for an invalid command line, or a configuration that is invalid or unreadable. A service manager need not start Jobwire again. */
const INVALID_CONFIG = 2;
/** Exit code for a closed stdout, as the shell reports a program that SIGPIPE ended. */
const OUTPUT_CLOSED = 141;
/** Address that the CLI uses by default. */
const CLI_DEFAULT_URL = 'http://127.0.0.1:4000';
const USAGE = 'Usage: npm start -- [--config FILE] [--port N] [--seed N] [--verbose]';

const HELP = [
  '  --config FILE  Configuration file. Default: a demo on a simulated ordering API',
  '  --port N       Port of the HTTP API. Default: 4000, or the port in the configuration. 0: a free port',
  '  --seed N       Seed of the demo data. Each seed gives a different demo',
  '  --verbose      Also print a JSON object for each poll, drain, sending run and request',
  '  --help         Show this help',
  '',
  'To write a configuration, use: npm run jobwire -- init. The documentation begins in README.md.',
];

const terminal = createTerminal(process.stdout);
const cleanups: (() => unknown)[] = [];
let ending: Promise<never> | undefined;
/** Location of the tables, for error messages. */
let tablesAt = '';

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => void end(0, signal));
let isOutputLost = false;
process.stdout.on('error', ({ code }: NodeJS.ErrnoException) => {
  if (code === 'ENOSPC') {
    if (!isOutputLost) warn(`Lines of the output are lost${formatCode(code)}. Jobwire keeps running.`);
    isOutputLost = true;
    return;
  }
  warn(`The output can’t be written${formatCode(code)}. Jobwire stops.`);
  // The program that reads stdout may exit first. The exit code lets a service manager start Jobwire again.
  void end(code === 'EPIPE' ? OUTPUT_CLOSED : 1);
});

main().catch((cause: unknown) => {
  // What fails while the program ends is a consequence.
  if (!ending) console.error(describeStartError(cause) ?? cause);
  return end(cause instanceof ConfigError ? INVALID_CONFIG : 1);
});

async function main(): Promise<void> {
  const args = readArguments();
  const file = args.config === undefined ? undefined : readConfig(args.config);
  const port = args.port ?? file?.port ?? 4000;
  const host = file?.host ?? '127.0.0.1';
  const dataDir = openDataDir(file?.dataDir);
  cleanups.push(() => dataDir.release());

  // The port is bound first, so that nothing starts if it is taken.
  let handle: Handler | undefined;
  const server = createServer((request, env) => handle?.(request, env));
  const url = await listen(server, { port, host, where: '--port, or with port in the configuration' });
  let handleMetrics: Handler | undefined;
  const metricsUrl =
    file?.metrics &&
    (await listen(
      createServer((request, env) => handleMetrics?.(request, env)),
      { ...file.metrics, where: 'metrics.port in the configuration' },
    ));

  const failures = createFailureLines(warn);
  const [tables, queues] = await Promise.all([
    openTables({
      folder: dataDir.path,
      endpoint: file?.dynamodbEndpoint,
      onWrite: failures.onWrite,
      onFailure: (cause) => {
        if (ending) return;
        if (cause instanceof StoreFormatError) console.error(describeStartError(cause));
        else console.error('The tables are no longer writable. Restart Jobwire. No data is lost.', cause);
        void end(1);
      },
    }),
    file?.sns === false ? undefined : openQueues(dataDir, file !== undefined),
  ]);
  const { table, history, where } = tables;
  tablesAt = where;
  cleanups.push(() => tables.close());
  // Started late, because its jobs change from then on.
  const demo = file
    ? undefined
    : await startDemo({ port, host, url, seed: args.seed ?? 1, onCaught: terminal.caught });
  if (demo) cleanups.push(() => demo.stop());
  const config = file ?? demo?.config;
  if (!config) return;
  const apiKey = config.apiKey ?? dataDir.apiKey();
  const regions = Object.keys(config.regions);

  const recorder =
    config.metrics && createRecorder({ regions, notifications: config.notifications !== undefined });
  const reportFault = (what: string, cause: unknown): void => {
    // One line reports failing writes, instead of one for each write.
    if (cause instanceof TableError && tables.writeFault() !== undefined) return;
    warn(`Could not ${what}: ${toMessage(cause)}`);
  };
  const tracer =
    config.tracing &&
    createTracer(config.tracing, {
      now: Date.now,
      onError: (cause) => reportFault('send traces to the collector', cause),
    });
  if (tracer) cleanups.push(() => Promise.race([tracer.stop(), sleep(TRACES_MS)]));
  /** Prints a report with `--verbose`. */
  const print = (report: object): void => {
    if (args.verbose) terminal.line(terminal.dim(JSON.stringify(report)));
  };
  const printer = createPrinter();
  const running = await startHost({
    config,
    table,
    history,
    secretKey: await openSecretKey(table, dataDir, process.env.JOBWIRE_SECRET_KEY),
    ...(queues && { sns: { client: queues.sns(), topicArns: await createTopics(queues, regions) } }),
    publicUrl: config.publicUrl ?? url,
    exclusive: config.dynamodbEndpoint === undefined,
    restoredAt: dataDir.restoredAt(),
    ...demo?.host,
    onWarning: (message) => console.error(`Warning: ${message}`),
    onFault: reportFault,
    ...recorder,
    ...tracer,
    onGrowth(...grown) {
      printer.grew(...grown);
      tracer?.onGrowth(...grown);
    },
    onAttempt(attempt) {
      failures.onAttempt(attempt);
      recorder?.onAttempt(attempt);
      tracer?.onAttempt(attempt);
    },
    onPoll(report, late) {
      failures.onPoll(report);
      recorder?.onPoll(report, late);
      tracer?.onPoll(report, late);
      print({ poll: report });
    },
    onDrain(report) {
      failures.onDrain(report);
      recorder?.onDrain(report);
      print({ drain: report });
    },
    onMail: failures.onMail,
    onSms: failures.onSms,
    onAlert: failures.onAlert,
    onAlerts(summary, region) {
      recorder?.onAlerts(summary, region);
    },
    onSend(report, region) {
      recorder?.onSend(report, region);
      print({ send: report });
    },
  });
  cleanups.push(() => running.stop(SHUTDOWN_MS));
  if (file?.notifications) {
    const { checkSmtp } = await import('../shared/notifications/smtp.ts');
    // E-mails wait while the mail server does not respond.
    checkSmtp(file.notifications.smtp, MAIL_CHECK_MS).then((problem) => {
      if (problem) failures.onMailCheck(`${problem.message} ${problem.fix}`);
    });
    if (file.notifications.sms) {
      const { checkSmsCredentials } = await import('../shared/notifications/sms.ts');
      checkSmsCredentials(file.notifications.sms.awsRegion).then((problem) => {
        if (problem) failures.onSmsCheck(`${problem.message} ${problem.fix}`);
      });
    }
  }
  const signIn = config.signIn && createSignIn({ settings: config.signIn, now: Date.now });
  // API keys work without the issuer.
  signIn?.check().catch((cause: unknown) => warn(`Warning: users cannot sign in: ${toMessage(cause)}`));
  const keyring = createKeyring({ table, now: Date.now, bootstrap: apiKey, users: signIn });
  const api = createApi({
    table,
    log: running.log,
    regions,
    corsOrigins: config.corsOrigins,
    readFile: readApiFile,
    schemaBaseUrl: config.publicUrl ?? url,
    keyring,
    signIn,
    deliveries: running.deliveries,
    notifications: {
      history,
      publicUrl: config.publicUrl ?? url,
      channels: channels.filter((channel) =>
        channel === 'email' ? config.notifications : config.notifications?.sms,
      ),
    },
    alerts: running.alerts,
    checkWrites: tables.checkWrites,
    manage: {
      idempotency: createIdempotency({ table, now: Date.now }),
      accounts: running.accounts,
      endpoints: running.endpoints,
      mailer: running.mailer,
    },
    ...(running.accounts.isDeclared ? { isDeclared: running.accounts.isDeclared } : {}),
    now: Date.now,
    onError: (cause, { requestId, route }) =>
      warn(`${route ?? 'A request'} failed (request ${requestId}): ${toMessage(cause)}`),
    onAnswer(request, answer) {
      recorder?.onAnswer(request, answer);
      print({ request, ...answer });
    },
    growth: running.growth,
    // In memory, because only this process holds its connections. So a killed process leaves no slot occupied.
    slots: createSlots({
      table: createMemoryTable(),
      region: 'all',
      perKey: config.streamsPerKey,
      now: Date.now,
      newId: randomUUID,
      random: Math.random,
    }),
  });
  if (recorder && config.metrics) {
    const metrics = createMetricsApp({
      ...{ recorder, table, log: running.log, keyring, host: config.metrics.host, now: Date.now },
      onError: (cause) => warn(`The metrics were not read: ${toMessage(cause)}`),
    });
    handleMetrics = (request, { incoming }) =>
      metrics.fetch(request, { clientAddress: getClientAddress(incoming, config) });
  }
  const dashboard = createDashboard();
  const reach = { host, publicUrl: config.publicUrl };
  handle = (request, { incoming }) => {
    const hostHeaders = incoming.headersDistinct.host?.length ?? 0;
    const blocked = getRejectionReason(request, reach);
    const callApi = () =>
      api.fetch(request, { clientAddress: getClientAddress(incoming, config), hostHeaders, blocked });
    // The API rejects such a request, with any path.
    if (hostHeaders > 1 || blocked !== undefined) return callApi();
    if (demo && /^\/mailbox(\/|$)/.test(new URL(request.url).pathname)) {
      return malformedPart(request.url) ? callApi() : demo.mailbox.fetch(request);
    }
    // Below the dashboard's path, the dashboard page itself shows that a page does not exist.
    return dashboard(request, callApi);
  };

  printSummary({
    endpoints: await countEndpoints(table, regions),
    config,
    demo,
    url,
    metricsUrl,
    where,
    queues: queues?.endpoint,
    dataDir,
  });
  const accounts = config.accounts.map(({ region, id }) => ({ region, account: id }));
  printer.start(running.log);
  if (demo) await addDemoRecipients(running.accounts, accounts);
  setTimeout(
    () =>
      loadDeferredModules().catch((cause: unknown) =>
        warn(`Warning: files of the program are missing. Restart Jobwire: ${toMessage(cause)}`),
      ),
    LOAD_DEFERRED_MS,
  ).unref();
}

/** Prints a line to stderr, unless the program ends. */
function warn(line: string): void {
  if (!ending) console.error(line);
}

function readArguments(): { config?: string; port?: number; seed?: number; verbose: boolean } {
  let values: { config?: string; port?: string; seed?: string; verbose?: boolean; help?: boolean };
  try {
    ({ values } = parseArgs({
      options: {
        config: { type: 'string' },
        port: { type: 'string' },
        seed: { type: 'string' },
        verbose: { type: 'boolean' },
        help: { type: 'boolean' },
      },
    }));
  } catch (cause) {
    const why = cause instanceof Error ? cause.message.split('. ')[0] : '';
    throw new ConfigError(`${why}. ${USAGE}`, { cause });
  }
  if (values.help) {
    for (const line of [USAGE, '', ...HELP]) terminal.line(line);
    process.exit(0);
  }
  const parseInteger = (name: 'port' | 'seed', most: number): { [name: string]: number } => {
    const text = values[name];
    if (text === undefined) return {};
    if (!/^\d{1,10}$/.test(text) || Number(text) > most) {
      throw new ConfigError(`--${name} must be an integer from 0 to ${most}.`);
    }
    return { [name]: Number(text) };
  };
  return {
    ...(values.config === undefined ? {} : { config: values.config }),
    ...parseInteger('port', 65_535),
    ...parseInteger('seed', 4_294_967_295),
    verbose: values.verbose === true,
  };
}

function readConfig(path: string): Config {
  let text: string;
  try {
    text = readFileSync(path, 'utf8');
  } catch (cause) {
    throw new ConfigError(`The configuration file ${path} can’t be read${formatCode(findCode(cause))}.`, {
      cause,
    });
  }
  const raw = parseConfigText(path, text);
  try {
    return parseConfig(raw, process.env, dirname(path));
  } catch (cause) {
    if (cause instanceof ConfigError)
      throw new ConfigError(cause.message.replace(/^/gm, `${path}: `), { cause });
    throw cause;
  }
}

type Handler = (request: Request, env: HttpBindings) => Response | Promise<Response>;

/** Creates a server that responds with 503 while the handler returns `undefined`. */
function createServer(handler: (...args: Parameters<Handler>) => ReturnType<Handler> | undefined): Server {
  return createAdaptorServer({
    // For requests of HTTP/1.0, which need no Host header.
    hostname: 'localhost',
    fetch: (request, env) => handler(request, env as HttpBindings) ?? respondWhileStarting(),
  }) as Server;
}

function respondWhileStarting(): Response {
  const kind = 'service-unavailable';
  const requestId = randomUUID();
  const detail = 'Jobwire is starting. Retry later.';
  const body = { type: PROBLEM_TYPE + kind, ...problems[kind], detail, requestId };
  const headers = {
    'content-type': 'application/problem+json',
    'retry-after': '5',
    'x-request-id': requestId,
  };
  return Response.json(body, { status: body.status, headers });
}

/** Returns the URL of the server. `where`: the settings of the port, for the error message. */
async function listen(
  server: Server,
  { port, host, where }: { readonly port: number; readonly host: string; readonly where: string },
): Promise<string> {
  await new Promise<void>((resolve, reject) => {
    server.once('error', (cause: NodeJS.ErrnoException) =>
      reject(
        cause.code === 'EADDRINUSE'
          ? new StartError(
              `Port ${port} is in use. Stop the program that listens there, or choose another port with ${where}.`,
              {
                cause,
              },
            )
          : new StartError(`Can't listen on ${host}:${port}${formatCode(cause.code)}.`, { cause }),
      ),
    );
    server.listen(port, host, resolve);
  });
  cleanups.push(() => {
    server.close();
    server.closeAllConnections();
  });
  const address = server.address();
  const bound = typeof address === 'object' && address ? address.port : port;
  return `http://${host.includes(':') ? `[${host}]` : host}:${bound}`;
}

async function openQueues(dataDir: DataDir, lasting: boolean): Promise<EmbeddedFauxqs> {
  const { startFauxqs } = await import('./queues.ts');
  const queues = await startFauxqs({
    credentials: dataDir.awsCredentials(),
    ...(lasting ? { dataDir: dataDir.queuesPath } : {}),
  });
  cleanups.push(() => queues.stop());
  return queues;
}

/** Creates the topic of each region if it does not exist, and returns the ARNs. */
async function createTopics(
  queues: EmbeddedFauxqs,
  regions: readonly string[],
): Promise<Record<string, string>> {
  const topics = regions.map(
    async (region) => [region, await queues.ensureTopic(`jobwire-${region}-events.fifo`)] as const,
  );
  return Object.fromEntries(await Promise.all(topics));
}

/** Returns the number of endpoints, those of the configuration and those created through the API, as text. */
async function countEndpoints(table: Table, regions: readonly string[]): Promise<string> {
  const sinks = (await Promise.all(regions.map((region) => listSinks(table, region)))).flat();
  // An endpoint of the configuration can be stored in several regions.
  const countIds = (of: (sink: SinkRecord) => boolean): number =>
    new Set(sinks.filter(of).map(({ id, createdAt, region }) => (createdAt ? `${region}/${id}` : id))).size;
  const webhooks = countIds(({ kind, paused }) => kind === 'webhook' && !paused);
  const queues = countIds(({ kind, paused }) => kind === 'sqs' && !paused);
  const paused = countIds((sink) => (sink.kind === 'webhook' || sink.kind === 'sqs') && sink.paused);
  const parts = [
    ...(webhooks > 0 ? [count(webhooks, 'webhook')] : []),
    ...(queues > 0 ? [count(queues, 'queue')] : []),
    ...(paused > 0 ? [`${paused} paused`] : []),
  ];
  return parts.length > 0 ? parts.join(', ') : 'none';
}

function printSummary(facts: {
  endpoints: string;
  config: Config;
  demo: Demo | undefined;
  url: string;
  metricsUrl: string | undefined;
  where: string;
  /** Absent: SNS is switched off. */
  queues: string | undefined;
  dataDir: DataDir;
}): void {
  const { config, demo, url, dataDir } = facts;
  const row = (what: string, where: string): void => terminal.line(`  ${what.padEnd(20)} ${where}`);
  const regions = Object.keys(config.regions).length;
  terminal.line();
  terminal.line(
    terminal.heading(
      demo
        ? `Jobwire demo: ${count(config.accounts.length, 'account')} in ${count(regions, 'region')} of a sandbox`
        : `Jobwire: ${count(config.accounts.length, 'account')} in ${count(regions, 'region')}`,
    ),
  );
  row('Dashboard', `${url}/`);
  // The operator knows a key from the configuration. No key is printed, because output may be logged.
  if (config.apiKey === undefined) row('API key', `in ${dataDir.apiKeyPath} (sign in with this key)`);
  if (demo) row('Mailbox', `${url}/mailbox (e-mails and SMS to customers)`);
  row('HTTP API', url);
  row('API reference', `${url}/docs`);
  if (facts.metricsUrl) row('Metrics', `${facts.metricsUrl}/metrics`);
  if (demo) {
    row('Control panel', `${demo.sandboxAdminUrl}/panel (change jobs, inject faults)`);
    row('Ordering API', `${demo.sandboxUrl} (sandbox with simulated jobs)`);
    row('Webhook receiver', `${demo.receiver.url} (verifies every signature)`);
    row('Data', `${dataDir.path} (temporary: deleted at the end of the demo)`);
  } else {
    row('Endpoints', facts.endpoints);
    row('Mail server', config.notifications?.smtp.host ?? 'none (no customer notifications)');
    row('Data', dataDir.path);
  }
  row('Tables', facts.where);
  if (facts.queues) {
    row('SNS and SQS', `${facts.queues} (topics jobwire-<region>-events.fifo)`);
    row('AWS credentials', `in ${dataDir.awsCredentialsPath} (AWS_SHARED_CREDENTIALS_FILE)`);
  }
  terminal.line();
  terminal.line(
    terminal.heading(
      config.apiKey === undefined
        ? 'Try in another terminal'
        : 'Try in another terminal, with JOBWIRE_API_KEY set',
    ),
  );
  for (const command of listCommands(url, config, dataDir)) terminal.line(`  ${command}`);
  terminal.line();
  terminal.line(`${terminal.heading('Live events')}${terminal.dim('   Press Ctrl-C to stop')}`);
  if (!demo) return;
  terminal.repeat(() => {
    const { verified, rejected } = demo.receiver;
    const webhooks = `${count(verified, 'webhook')} with verified signature${rejected === 0 ? '' : `, ${rejected} rejected`}`;
    return `${''.padEnd(20)} ${terminal.heading(`Dashboard: ${url}/`)}${terminal.dim(`   ${webhooks}`)}`;
  });
}

/** Returns commands to try, complete for a POSIX shell. From the sources, they require the folder of the repository. */
function listCommands(url: string, config: Config, { apiKeyPath }: DataDir): string[] {
  const file = quote(apiKeyPath);
  const isOwnKey = config.apiKey !== undefined;
  const options = [
    ...(url === CLI_DEFAULT_URL ? [] : ['--url', url]),
    ...(isOwnKey ? [] : ['--key-file', file]),
  ];
  const cli = (...args: string[]): string => [findCli(), ...args, ...options].join(' ');
  const [account] = config.accounts;
  return [
    cli('accounts', 'list'),
    ...(account ? [cli('jobs', 'list', account.id, '--limit', '5')] : []),
    cli('events', 'tail', '--since', '1h'),
    `curl -H "Authorization: Bearer ${isOwnKey ? '$JOBWIRE_API_KEY' : `$(cat ${file})`}" "${url}/v1/events?limit=5"`,
  ];
}

/** Creates a printer of the events that this process records in any log, each once and in order. */
function createPrinter() {
  const positions = new Map<string, number>();
  const busy = new Map<string, boolean>();
  let log: EventLog | undefined;

  async function print(ref: AccountRef): Promise<void> {
    const name = `${ref.region}/${ref.account}`;
    if (!log) return;
    if (busy.has(name)) {
      busy.set(name, true);
      return;
    }
    busy.set(name, false);
    const page = await log.read(ref, positions.get(name) ?? 0, 200);
    // A new log under a deleted name is printed from its beginning.
    if (page?.kind === 'gone' && page.head.sequence < (positions.get(name) ?? 0)) {
      positions.delete(name);
      busy.set(name, true);
    }
    if (page?.kind === 'events') {
      for (const event of page.events) {
        terminal.event(JSON.parse(event.json) as JobEvent);
        positions.set(name, event.sequence);
      }
    }
    const again = busy.get(name);
    busy.delete(name);
    if (again || (page?.kind === 'events' && page.events.length > 0)) await print(ref);
  }

  /** Prints the new events of a log: a number of them, up to a sequence number. */
  function grew(ref: AccountRef, sequence: number, events: number): void {
    const name = `${ref.region}/${ref.account}`;
    if (!positions.has(name)) positions.set(name, sequence - events);
    print(ref).catch(() => busy.delete(name));
  }

  return {
    grew,
    /** Starts printing, with the events that the start itself recorded, such as account.restored. */
    start(source: EventLog): void {
      log = source;
      for (const [name, position] of positions) {
        const [region = '', account = ''] = name.split('/');
        grew({ region, account }, position, 0);
      }
    },
  };
}

/** Returns the error message of a failed start, or `undefined` for an error that only its stack trace explains. */
function describeStartError(cause: unknown): string | undefined {
  if (cause instanceof StoreFormatError) return `${cause.message}${adviseRestore(cause)}`;
  if (cause instanceof StartError || cause instanceof ConfigError || cause instanceof SecretError) {
    return nameCli(cause.message);
  }
  if (cause instanceof TableError) {
    return `The tables in ${tablesAt} can’t be used: ${explainError(cause)}.${adviseRestore(cause)}`;
  }
  const code = findCode(cause);
  if (code === undefined || explainCode(code) === undefined) return undefined;
  return `Jobwire can’t start: ${explainFileError(cause)}.`;
}

/** Stops everything in reverse order of its start, once, and exits. `signal`: why, for the terminal. */
function end(code: number, signal?: NodeJS.Signals): Promise<never> {
  ending ??= (async () => {
    if (signal) terminal.line(`Stopping: received ${signal}.`);
    const timer = setTimeout(() => process.exit(code), SHUTDOWN_MS + 1_500);
    timer.unref();
    for (const cleanup of cleanups.reverse()) {
      try {
        await cleanup();
      } catch (cause) {
        console.error(cause instanceof Error ? cause.message : cause);
      }
    }
    process.exit(code);
  })();
  return ending;
}
