/**
 * dynoxide, for tests and benchmarks of the DynamoDB adapter: a server with the DynamoDB API on loopback, in a process that
 * ends with this one.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createRequire } from 'node:module';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { DynamoDBClient } from '@aws-sdk/client-dynamodb';
import { findPort } from './port.ts';

const HOST = '127.0.0.1';
const START_TIMEOUT_MS = 15_000;
const PROBE_EVERY_MS = 20;
/** Number of retries with another port if the port is in use. */
const PORT_ATTEMPTS = 5;

/** A running server. */
export interface Dynoxide {
  /** `http://127.0.0.1:<port>` */
  readonly endpoint: string;
  /** The server's process. */
  readonly pid: number;
  /** Creates a client of this server. It is destroyed with the server. */
  client(): DynamoDBClient;
  /** Can be called twice. */
  stop(): Promise<void>;
}

/** Starts a server with tables in a file or in memory, and waits until it responds. */
export async function startDynamo({ dbPath }: { readonly dbPath?: string } = {}): Promise<Dynoxide> {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await launch(await findPort(), dbPath);
    } catch (cause) {
      const taken = cause instanceof Error && /in use/i.test(cause.message);
      if (!taken || attempt === PORT_ATTEMPTS) throw cause;
    }
  }
}

/** Creates a client of a server: it checks neither region nor credentials. */
export function createDynamoClient(endpoint: string): DynamoDBClient {
  return new DynamoDBClient({
    endpoint,
    region: 'us-east-1',
    credentials: { accessKeyId: 'local', secretAccessKey: 'local' },
    maxAttempts: 3,
    requestHandler: { connectionTimeout: 2_000, requestTimeout: 30_000, throwOnRequestTimeout: true },
  });
}

/**
 * A shell runs the server and a watcher. The watcher reads a pipe whose other end this process has open. When this process
 * ends, even by kill -9, the watcher kills the server by its process id.
 */
const WATCHED = `
exec 3<&0 0</dev/null
"$0" "$@" 3<&- >/dev/null &
server=$!
echo $server
{ cat >/dev/null; kill -KILL $server; } <&3 3<&- >/dev/null 2>&1 &
watcher=$!
exec 3<&-
wait $server
{ kill -KILL $watcher; wait $watcher; } 2>/dev/null
`;

async function launch(port: number, dbPath: string | undefined): Promise<Dynoxide> {
  const folder = createRequire(import.meta.url).resolve(
    `@dynoxide/${process.platform}-${process.arch}/package.json`,
  );
  const serve = [join(dirname(folder), 'dynoxide'), 'serve', '--host', HOST, '--port', String(port)];
  if (dbPath !== undefined) serve.push('--db-path', dbPath);
  const child = spawn('sh', ['-c', WATCHED, ...serve], { stdio: ['pipe', 'pipe', 'pipe'], detached: true });
  let complaints = '';
  child.stderr.setEncoding('utf8').on('data', (text: string) => {
    complaints += text;
  });
  child.stdin.on('error', () => {});
  const [pid] = (await once(child.stdout, 'data')) as [Buffer];
  const ended = once(child, 'exit');
  const endpoint = `http://${HOST}:${port}`;
  const clients: DynamoDBClient[] = [];
  const stop = async (): Promise<void> => {
    for (const client of clients) client.destroy();
    child.ref();
    child.stdin.end();
    await ended;
  };
  const deadline = Date.now() + START_TIMEOUT_MS;
  while (!(await answers(endpoint))) {
    if (child.exitCode !== null || Date.now() > deadline) {
      await stop();
      throw new Error(`dynoxide did not start: ${complaints}`);
    }
    await Promise.race([ended, sleep(PROBE_EVERY_MS)]);
  }
  // The watcher ends the server with this process, so the server does not need to keep this process running.
  child.unref();
  for (const pipe of [child.stdin, child.stdout, child.stderr])
    (pipe as unknown as { unref(): void }).unref();
  return {
    endpoint,
    pid: Number(pid),
    client() {
      const client = createDynamoClient(endpoint);
      clients.push(client);
      return client;
    },
    stop,
  };
}

async function answers(endpoint: string): Promise<boolean> {
  try {
    const answer = await fetch(endpoint, { signal: AbortSignal.timeout(1_000) });
    await answer.body?.cancel();
    return answer.ok;
  } catch {
    return false;
  }
}
