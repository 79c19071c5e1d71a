/** The databases and the broker of the compared systems, each with its data in a folder of its own, on loopback. */
import { execFileSync } from 'node:child_process';
import { chmodSync, chownSync, existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { type Processes, type Program, run, waitUntil } from './processes.ts';

/** A database or broker. */
export interface Database {
  /** Name of its part. */
  readonly name: string;
  readonly port: number;
  /** Creates its data. The database is running afterwards. */
  initialize(): Promise<void>;
  /** Starts it. Returns when it accepts connections. */
  start(): Promise<void>;
  stop(): Promise<void>;
}

const POSTGRES_VERSIONS = '/usr/lib/postgresql';
/** Debian's command of the same name requires root or the user `rabbitmq`, and its folders. */
const RABBITMQ = '/usr/lib/rabbitmq/bin/rabbitmq-server';

/** Returns the programs that are not installed, as names of Debian packages. */
export function listMissingPackages(): string[] {
  return [
    ...(findPostgres() === undefined ? ['postgresql'] : []),
    ...(existsSync('/usr/bin/redis-server') ? [] : ['redis-server']),
    ...(existsSync(RABBITMQ) ? [] : ['rabbitmq-server']),
  ];
}

/** Creates a PostgreSQL cluster with one database. As root, it runs as the user `postgres`. */
export function createPostgres(
  processes: Processes,
  folder: string,
  port: number,
  database: string,
): Database {
  const name = 'postgres';
  const data = join(folder, name);
  const bin = (program: string) => join(findPostgres() ?? '', program);
  const user =
    process.getuid?.() === 0
      ? Number(execFileSync('id', ['-u', 'postgres'], { encoding: 'utf8' }))
      : undefined;
  const client = (command: string, ...args: string[]): Program => ({
    command: bin(command),
    args: ['-h', '127.0.0.1', '-p', String(port), '-U', 'postgres', ...args],
  });
  async function start(): Promise<void> {
    processes.start(name, {
      command: bin('postgres'),
      args: ['-D', data, '-p', String(port), '-k', data, '-h', '127.0.0.1', '-c', 'max_connections=250'],
      user,
    });
    await waitUntil(() => run(client('psql', '-c', 'SELECT 1', 'postgres')).then(() => true), name);
  }
  return {
    ...{ name, port, start },
    async initialize() {
      mkdirSync(data, { mode: 0o700 });
      chmodSync(folder, 0o755);
      if (user !== undefined) chownSync(data, user, user);
      const args = ['-D', data, '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--locale=C.UTF-8'];
      await run({ command: bin('initdb'), args, user });
      await start();
      await run(client('createdb', database));
    },
    // The fast shutdown, which does not wait for clients.
    stop: () => processes.stop(name, 'SIGINT'),
  };
}

/** Creates a Redis whose data survives its end: an append-only file, synced each second. */
export function createRedis(processes: Processes, folder: string, port: number): Database {
  const name = 'redis';
  const data = join(folder, name);
  async function start(): Promise<void> {
    const options = { port, bind: '127.0.0.1', dir: data, appendonly: 'yes', appendfsync: 'everysec' };
    const args = Object.entries(options).flatMap(([option, value]) => [`--${option}`, String(value)]);
    processes.start(name, { command: 'redis-server', args });
    const ping = { command: 'redis-cli', args: ['-p', String(port), 'ping'] };
    await waitUntil(async () => (await run(ping)).startsWith('PONG'), name);
  }
  return {
    ...{ name, port, start },
    async initialize() {
      mkdirSync(data);
      await start();
    },
    stop: () => processes.stop(name),
  };
}

/** Creates a RabbitMQ node, with a port mapper of its own. Uses three ports. */
export function createRabbitMq(
  processes: Processes,
  folder: string,
  [port, distributionPort, mapperPort]: readonly [number, number, number],
): Database {
  const name = 'rabbitmq';
  const data = join(folder, name);
  async function start(): Promise<void> {
    if (!processes.isRunning('epmd')) {
      processes.start('epmd', {
        command: 'epmd',
        args: ['-address', '127.0.0.1', '-port', String(mapperPort)],
      });
    }
    processes.start(name, {
      command: RABBITMQ,
      env: {
        HOME: data,
        RABBITMQ_NODENAME: 'bench@localhost',
        RABBITMQ_MNESIA_BASE: join(data, 'mnesia'),
        RABBITMQ_LOG_BASE: join(data, 'log'),
        RABBITMQ_PID_FILE: join(data, 'pid'),
        RABBITMQ_CONFIG_FILE: join(data, 'rabbitmq'),
        RABBITMQ_ENABLED_PLUGINS_FILE: join(data, 'enabled_plugins'),
        RABBITMQ_DIST_PORT: String(distributionPort),
        RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS: '-kernel inet_dist_use_interface {127,0,0,1}',
        ERL_EPMD_PORT: String(mapperPort),
        ERL_EPMD_ADDRESS: '127.0.0.1',
      },
    });
    await waitUntil(() => accepts(port), name);
  }
  return {
    ...{ name, port, start },
    async initialize() {
      mkdirSync(data);
      writeFileSync(join(data, 'rabbitmq.conf'), `listeners.tcp.local = 127.0.0.1:${port}\n`);
      writeFileSync(join(data, 'enabled_plugins'), '[].\n');
      await start();
    },
    async stop() {
      await processes.stop(name);
      await processes.stop('epmd');
    },
  };
}

/** Returns the folder of the programs of the latest installed PostgreSQL. */
function findPostgres(): string | undefined {
  if (!existsSync(POSTGRES_VERSIONS)) return undefined;
  const versions = readdirSync(POSTGRES_VERSIONS).sort((a, b) => Number(b) - Number(a));
  return versions
    .map((version) => join(POSTGRES_VERSIONS, version, 'bin'))
    .find((bin) => existsSync(join(bin, 'initdb')));
}

function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.on('connect', () => {
      socket.destroy();
      resolve(true);
    });
    socket.on('error', () => resolve(false));
  });
}
