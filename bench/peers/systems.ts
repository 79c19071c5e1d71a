/** The compared systems: how each of them is built or found, started, configured and given events. */
import { execFileSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { build } from 'esbuild';
import { Agent, request } from 'undici';
import { bundleProgram, MODULES } from '../../bundles.ts';
import { toEvent } from '../../shared/events/event.ts';
import { findPort } from '../../test/support/port.ts';
import { toDraft } from '../wire.ts';
import {
  createPostgres,
  createRabbitMq,
  createRedis,
  type Database,
  listMissingPackages,
} from './databases.ts';
import { createProcesses, type Processes, type Program, run, waitUntil } from './processes.ts';

/** Names of the systems. */
export const SYSTEMS = ['jobwire', 'svix', 'outpost'] as const;
export type SystemName = (typeof SYSTEMS)[number];

/** A system with fresh data. */
export interface System {
  readonly processes: Processes;
  /** Creates the databases and starts everything. */
  initialize(): Promise<void>;
  /** Starts all parts that do not run. Returns when the API responds. */
  start(): Promise<void>;
  /** Stops all parts. */
  stop(): Promise<void>;
  /** Adds endpoints to a tenant, which is created if necessary. */
  addEndpoints(tenant: string, urls: readonly string[]): Promise<void>;
  /** Returns when the system has acknowledged the event. */
  publish(tenant: string, event: number, job: number): Promise<void>;
}

/** Delays between the attempts to deliver an event, for all systems. */
const RETRY_SECONDS = Array.from({ length: 12 }, () => 5).join(',');
const TYPE = 'job.status_changed';
const { SVIX_SERVER = '', OUTPOST_DIR = '' } = process.env;
const ROOT = join(import.meta.dirname, '../..');

/** Returns why systems can't be compared: what is missing and how to build it. `undefined`: nothing is missing. */
export function findMissing(systems: readonly SystemName[]): string | undefined {
  const missing = [
    ...(systems.includes('svix') && !existsSync(SVIX_SERVER)
      ? [
          'SVIX_SERVER must be the path of svix-server. Build it in server/ of github.com/svix/svix-webhooks: CARGO_PROFILE_RELEASE_LTO=off cargo build --release -p svix-server',
        ]
      : []),
    ...(systems.includes('outpost') && !existsSync(join(OUTPOST_DIR, 'outpost-server'))
      ? [
          'OUTPOST_DIR must be the folder of outpost and outpost-server. Build them in github.com/hookdeck/outpost: go build -o FOLDER/ ./cmd/outpost ./cmd/outpost-server',
        ]
      : []),
  ];
  const packages = systems.some((system) => system !== 'jobwire') ? listMissingPackages() : [];
  if (packages.length > 0) missing.push(`Install the databases: apt-get install ${packages.join(' ')}`);
  return missing.length > 0 ? missing.join('\n') : undefined;
}

/** Builds Jobwire as a package. `folder`: where. Returns how to run the compared program. */
export async function buildJobwire(folder: string): Promise<Program> {
  execFileSync(process.execPath, ['build.ts', folder], { cwd: ROOT, stdio: ['ignore', 'ignore', 'inherit'] });
  // As build.ts bundles the CLI, so that it starts from compiled code and finds the same files beside it.
  const cli = join(folder, 'cli');
  await bundleProgram(join(import.meta.dirname, 'jobwire.ts'), cli, 'bench-host');
  const start = `import { requireCached } from '../../shared/short-start.ts';
    import { join } from 'node:path';
    requireCached(join(import.meta.dirname, 'bench-host.cjs'));`;
  const stdin = { contents: start, resolveDir: import.meta.dirname };
  await build({ ...MODULES, stdin, outdir: cli, entryNames: 'bench' });
  // A copy: pages of a program that the benchmark runs too would count only in part.
  const command = join(folder, 'node');
  copyFileSync(process.execPath, command);
  return { command, args: [join(folder, 'cli/bench.js')] };
}

/** Creates a system. `folder`: an existing folder for its data. `jobwire`: how to run Jobwire. */
export async function createSystem(name: SystemName, folder: string, jobwire: Program): Promise<System> {
  mkdirSync(folder, { recursive: true });
  const processes = createProcesses(folder);
  const ports = await Promise.all(Array.from({ length: 6 }, findPort));
  if (name === 'jobwire') return createJobwire(processes, folder, ports, jobwire);
  return name === 'svix' ? createSvix(processes, folder, ports) : createOutpost(processes, folder, ports);
}

/** Starts and stops databases and a server. `server`: how to run it. `ping`: a request that it answers when it works. */
function createParts(
  processes: Processes,
  databases: readonly Database[],
  server: Program,
  ping: () => Promise<unknown>,
): Pick<System, 'processes' | 'start' | 'stop'> {
  return {
    processes,
    async start() {
      await Promise.all(databases.map((one) => processes.isRunning(one.name) || one.start()));
      processes.start('server', server);
      await waitUntil(() => ping().then(() => true), server.command);
    },
    async stop() {
      await processes.stop('server');
      for (const database of databases.toReversed()) await database.stop();
    },
  };
}

function createJobwire(processes: Processes, folder: string, [port]: number[], program: Program): System {
  const apiKey = 'bench-0123456789abcdef';
  const url = `http://127.0.0.1:${port}`;
  const call = createCaller(`${url}/v1/`, apiKey);
  const args = [...(program.args ?? []), join(folder, 'data'), String(port), apiKey, RETRY_SECONDS];
  const env = { XDG_CACHE_HOME: folder };
  const parts = createParts(processes, [], { ...program, args, env }, () => call('GET', 'endpoints'));
  const publish = createCaller(`${url}/publish/`, apiKey);
  return {
    ...parts,
    initialize: parts.start,
    async addEndpoints(tenant, urls) {
      // Creates the account.
      await publish('POST', tenant, getDraft(0, 0));
      for (const [at, target] of urls.entries()) {
        await call('POST', 'endpoints', {
          ...{ id: `${tenant}-${at}`, url: target, accounts: [tenant], types: [TYPE], start: 'now' },
        });
      }
      // The host reads new endpoints each second.
      await sleep(1_500);
    },
    publish: (tenant, event, job) => publish('POST', tenant, getDraft(event, job)),
  };
}

function createSvix(processes: Processes, folder: string, ports: number[]): System {
  const command = SVIX_SERVER;
  const [port = 0, postgresPort = 0, redisPort = 0] = ports;
  const databases = [
    createPostgres(processes, folder, postgresPort, 'svix'),
    createRedis(processes, folder, redisPort),
  ];
  const env = {
    SVIX_DB_DSN: `postgresql://postgres@127.0.0.1:${postgresPort}/svix`,
    SVIX_REDIS_DSN: `redis://127.0.0.1:${redisPort}`,
    SVIX_QUEUE_TYPE: 'redis',
    SVIX_JWT_SECRET: 'bench-0123456789abcdef',
    SVIX_MAIN_SECRET: 'bench-0123456789abcdef',
    SVIX_LISTEN_ADDRESS: `127.0.0.1:${port}`,
    SVIX_WHITELIST_SUBNETS: '[127.0.0.0/8]',
    SVIX_RETRY_SCHEDULE: `[${RETRY_SECONDS}]`,
    RUST_LOG: 'error',
  };
  let call = createCaller('', '');
  return {
    ...createParts(processes, databases, { command, env }, () => call('GET', '?limit=1')),
    async initialize() {
      for (const database of databases) await database.initialize();
      await run({ command, args: ['migrate'], env });
      const output = await run({ command, args: ['jwt', 'generate'], env });
      const token = /Bearer\)?:? *(\S+)/.exec(output)?.[1] ?? '';
      call = createCaller(`http://127.0.0.1:${port}/api/v1/app/`, token);
      await this.start();
    },
    async addEndpoints(tenant, urls) {
      await call('POST', '', { name: tenant, uid: tenant });
      for (const url of urls) await call('POST', `${tenant}/endpoint/`, { url, version: 1, description: '' });
    },
    publish: (tenant, event, job) =>
      call('POST', `${tenant}/msg/`, { eventType: TYPE, payload: getEnvelope(tenant, event, job) }),
  };
}

function createOutpost(processes: Processes, folder: string, ports: number[]): System {
  const [port = 0, postgresPort = 0, redisPort = 0, rabbitPort = 0, ...others] = ports;
  const [distributionPort = 0, mapperPort = 0] = others;
  const databases = [
    createPostgres(processes, folder, postgresPort, 'outpost'),
    createRedis(processes, folder, redisPort),
    createRabbitMq(processes, folder, [rabbitPort, distributionPort, mapperPort]),
  ];
  const apiKey = 'bench-0123456789abcdef';
  const env = {
    API_PORT: String(port),
    API_KEY: apiKey,
    API_JWT_SECRET: 'bench-0123456789abcdef',
    AES_ENCRYPTION_SECRET: '0123456789abcdef0123456789abcdef',
    TOPICS: TYPE,
    POSTGRES_URL: `postgres://postgres@127.0.0.1:${postgresPort}/outpost?sslmode=disable`,
    REDIS_HOST: '127.0.0.1',
    REDIS_PORT: String(redisPort),
    RABBITMQ_SERVER_URL: `amqp://guest:guest@127.0.0.1:${rabbitPort}`,
    RETRY_SCHEDULE: RETRY_SECONDS,
    // By default, one delivery at a time, and 20 endpoints.
    DELIVERY_MAX_CONCURRENCY: '100',
    PUBLISH_MAX_CONCURRENCY: '100',
    LOG_MAX_CONCURRENCY: '100',
    MAX_DESTINATIONS_PER_TENANT: '100',
    // By default 10 s, longer than the delay of the first retry, which needs the stored event.
    LOG_BATCH_THRESHOLD_SECONDS: '1',
    DISABLE_TELEMETRY: 'true',
    LOG_LEVEL: 'error',
  };
  const call = createCaller(`http://127.0.0.1:${port}/api/v1/`, apiKey);
  const server = { command: join(OUTPOST_DIR, 'outpost-server'), env };
  return {
    ...createParts(processes, databases, server, () => call('PUT', 'tenants/first')),
    async initialize() {
      for (const database of databases) await database.initialize();
      await run({ command: join(OUTPOST_DIR, 'outpost'), args: ['migrate', 'apply', '--yes'], env });
      await this.start();
    },
    async addEndpoints(tenant, urls) {
      await call('PUT', `tenants/${tenant}`);
      for (const url of urls) {
        await call('POST', `tenants/${tenant}/destinations`, {
          ...{ type: 'webhook', topics: ['*'], config: { url } },
        });
      }
    },
    publish: (tenant, event, job) =>
      call('POST', 'publish', { tenant_id: tenant, topic: TYPE, data: getEnvelope(tenant, event, job) }),
  };
}

/** Creates a function that sends a request with JSON to a path below the base URL. It throws unless the response is a success. */
function createCaller(baseUrl: string, token: string) {
  const dispatcher = new Agent({ connections: 256 });
  return async (method: 'GET' | 'POST' | 'PUT', path: string, body?: object): Promise<void> => {
    const { statusCode, body: answer } = await request(`${baseUrl}${path}`, {
      ...{ method, dispatcher },
      headers: { authorization: `Bearer ${token}`, ...(body ? { 'content-type': 'application/json' } : {}) },
      ...(body ? { body: JSON.stringify(body) } : {}),
    });
    const text = await answer.text();
    if (statusCode >= 300) throw new Error(`${method} ${path}: ${statusCode} ${text.slice(0, 500)}`);
  };
}

function getDraft(event: number, job: number) {
  return toDraft(job, Date.now(), `PO-${event}`);
}

/** The event as Jobwire sends it, so that all systems send bodies of the same size. */
function getEnvelope(tenant: string, event: number, job: number) {
  const ref = { region: 'us', account: tenant };
  return toEvent(
    getDraft(event, job),
    ref,
    { epoch: 'bench', sequence: event },
    { schemaBaseUrl: 'http://bench' },
  );
}
