/**
 * The cell on ministack, an emulator of AWS with CloudFormation, IAM and Lambda, deployed by CDK's own tool as an operator does
 * it. Parts of the template that ministack does not support, and their replacements:
 *
 * | not supported | replacement |
 * |---|---|
 * | advancing the time, finding out whether work is in progress | `ministack_host.py`, in ministack's process |
 * | `dynamodb:LeadingKeys`, `kms:EncryptionContext`, permissions of batches by their single action, permissions of e-mails | `ministack_host.py` |
 * | in CloudFormation: FIFO topics, `Ref` of a secret, alarms on expressions, DNS records of an identity | `ministack_host.py` |
 * | responses streamed by API Gateway; `awslambda.streamifyResponse` | routed by ministack; the gateway passes the response |
 * | a schedule that is invoked on demand | it is disabled, and its target is invoked |
 * | a distribution with a bucket and an API as origins | `distribution.ts`, from the template |
 * | MaximumRetryAttempts, BisectBatchOnFunctionError and partial failures of a stream | not part of the scenario |
 * | TTL and PITR of a GlobalTable | none: no test needs them |
 *
 * One file: deployment, calls and replacements share the running emulator.
 */
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { chmod, mkdir, mkdtemp, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { createServer, type IncomingMessage, request, type Server, type ServerResponse } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { makeCertificate } from '../support/certificates.ts';
import type { AwsCall, CallFate } from './aws-call.ts';
import { clockAhead, setClockAhead } from './clock.ts';
import { type Deploy, FunctionError, type FunctionName } from './deployment.ts';
import { createDistribution } from './distribution.ts';
import { certificates, FUNCTIONS, forwardTo, listen } from './emulated.ts';
import type { FunctionSetup } from './ministack-function.ts';
import { Outbox } from './outbox.ts';
import { StackTemplate } from './template.ts';

const run = promisify(execFile);
const here = (name: string) => fileURLToPath(new URL(name, import.meta.url));
const ROOT = here('../../');
const REQUIREMENTS = here('./ministack-requirements.txt');
const VERSION = '1.5.33';
const REGION = 'us-east-1';
const ACCOUNT = '000000000000';
const INSTALL_TIMEOUT_MS = 120_000;
const START_TIMEOUT_MS = 30_000;
const SETTLE_TIMEOUT_MS = 60_000;
/** Time is advanced in steps, so that a message becomes visible again before its retention time has passed. */
const STEP_SECONDS = 10;

/** The installed ministack, or why it cannot be installed. */
export type Ministack =
  | { readonly kind: 'installed'; readonly python: string; readonly packages: string }
  | { readonly kind: 'missing'; readonly why: string };

/** Installs ministack into a folder of its own, once, from PyPI with hashes. */
export async function installMinistack(): Promise<Ministack> {
  try {
    const python = 'python3';
    const { stdout } = await run(python, ['-c', 'import sys; print("%d%d" % sys.version_info[:2])']);
    const cache = join(ROOT, 'node_modules/.cache/jobwire');
    const packages = join(cache, `ministack-${VERSION}-py${stdout.trim()}`);
    if (!existsSync(packages)) {
      await mkdir(cache, { recursive: true });
      const fresh = await mkdtemp(`${packages}-`);
      const pip = [
        '-m',
        'pip',
        '--quiet',
        '--no-input',
        '--disable-pip-version-check',
        '--retries',
        '1',
        '--timeout',
        '10',
      ];
      const what = ['--no-deps', '--require-hashes', '--only-binary', ':all:', '-r', REQUIREMENTS];
      try {
        await run(python, [...pip, 'install', '--target', fresh, ...what], { timeout: INSTALL_TIMEOUT_MS });
        await rename(fresh, packages);
      } catch (cause) {
        await rm(fresh, { recursive: true, force: true });
        // Another process may have installed it in the meantime.
        if (!existsSync(packages)) throw cause;
      }
    }
    return { kind: 'installed', python, packages };
  } catch (cause) {
    const said = String((cause as { stderr?: string }).stderr || (cause as Error).message);
    const lines = said.split('\n').filter((line) => line.trim() !== '');
    return {
      kind: 'missing',
      why: lines.findLast((line) => line.startsWith('ERROR')) ?? lines.at(-1) ?? 'no word',
    };
  }
}

/** Deploys a stack of a synthesized assembly on a new ministack. */
export function onMinistack(
  installed: Ministack & { kind: 'installed' },
  assembly: string,
  stack: string,
): Deploy {
  return async ({ hosts }) => {
    await using opened = new AsyncDisposableStack();
    const directory = await mkdtemp(join(tmpdir(), 'jobwire-ministack-'));
    opened.defer(() => rm(directory, { recursive: true, force: true }));
    const setClock = (ms: number) => {
      setClockAhead(ms);
      // Replaced atomically: other processes read it at any time.
      writeFileSync(join(directory, 'clock.new'), String(ms / 1000));
      renameSync(join(directory, 'clock.new'), join(directory, 'clock'));
    };
    setClock(0);
    opened.defer(() => setClockAhead(0));

    const authority = makeCertificate('Jobwire test authority', { authority: true });
    const caFile = join(directory, 'ca.pem');
    await writeFile(caFile, authority.certPem);
    const outside = await listen(createSecureServer(certificates(authority), forwardTo(hosts)));
    opened.defer(outside.close);
    const complaints: string[] = [];
    const outbox = new Outbox();
    const fates = new Map<FunctionName, (call: AwsCall) => CallFate>();
    const template = new StackTemplate(assembly, stack);
    const physicalIds = new Map<string, string>();
    const functions = () =>
      Object.entries(FUNCTIONS).flatMap(([name, path]) => {
        const resource = template.resources.find((candidate) => candidate.path === path);
        return resource ? [[name as FunctionName, physicalIds.get(resource.id) ?? ''] as const] : [];
      });
    const physicalName = (name: FunctionName): string => {
      const found = functions().find(([candidate]) => candidate === name)?.[1];
      if (!found) throw new Error(`${stack} has no function ${name}.`);
      return found;
    };
    /** Functions with an invocation: process ids and physical names. */
    const atWork = (): [number, string][] => {
      const file = join(directory, 'workers.json');
      const workers: Record<string, string> = existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : {};
      return Object.entries(workers).map(([pid, name]) => [Number(pid), name]);
    };
    // A free port, because ministack requires a port number.
    const { port, close } = await listen(createServer());
    await close();
    const gateway = await listen(
      createGateway(
        port,
        (pid, call) => {
          const physical = atWork().find(([candidate]) => candidate === pid)?.[1];
          const name = functions().find(([, candidate]) => candidate === physical)?.[0];
          return (name && fates.get(name)?.(call)) ?? 'pass';
        },
        (sentence) => complaints.push(sentence),
        (taken) => outbox.take(taken),
      ),
    );
    opened.defer(gateway.close);
    const endpoint = `http://127.0.0.1:${gateway.port}`;
    const setup: FunctionSetup = {
      routes: Object.fromEntries(Object.keys(hosts).map((host) => [host, outside.port])),
      gatewayPort: gateway.port,
      streamPath: STREAM_PATH,
      streamHeader: STREAM_HEADER,
    };
    await writeFile(join(directory, 'function.json'), JSON.stringify(setup));
    opened.use(await startMinistack(installed, { directory, port, gatewayPort: gateway.port, caFile }));
    const outputs = await deployStack({ assembly, stack, directory, endpoint });

    /** Sends a request to ministack as the account, with all permissions. */
    async function call(service: string, path: string, init: RequestInit = {}): Promise<Response> {
      const scope = `test/20260101/${REGION}/${service}/aws4_request`;
      const authorization = `AWS4-HMAC-SHA256 Credential=${scope}, SignedHeaders=host, Signature=0`;
      return fetch(`${endpoint}${path}`, { ...init, headers: { authorization } });
    }
    const listed = await call('cloudformation', '/', {
      method: 'POST',
      body: new URLSearchParams({
        Action: 'DescribeStackResources',
        StackName: stack,
        Version: '2010-05-15',
      }).toString(),
    });
    for (const [member] of (await listed.text()).matchAll(/<member>.*?<\/member>/gs)) {
      const getText = (tag: string) => new RegExp(`<${tag}>(.*?)</${tag}>`, 's').exec(member)?.[1] ?? '';
      physicalIds.set(getText('LogicalResourceId'), getText('PhysicalResourceId'));
    }
    const physicalId = (path: string): string => {
      const id = physicalIds.get(template.at(path).id);
      if (id === undefined) throw new Error(`Ministack made nothing of ${path}.`);
      return id;
    };

    async function invoke(nameOrArn: string, payload: unknown): Promise<unknown> {
      const path = `/2015-03-31/functions/${encodeURIComponent(nameOrArn)}/invocations`;
      const answer = await call('lambda', path, { method: 'POST', body: JSON.stringify(payload) });
      const text = await answer.text();
      const value = text === '' ? null : JSON.parse(text);
      if (answer.status < 300 && !answer.headers.has('x-amz-function-error')) return value;
      throw new FunctionError(String(value?.errorMessage ?? value?.message ?? answer.status));
    }

    /** Disables the schedules, because the test invokes their targets. Returns the targets. */
    function takeSchedules(): Promise<Target[]> {
      const resources = template.ofType('AWS::Scheduler::Schedule');
      return Promise.all(
        resources.map(async ({ id }) => {
          const path = `/schedules/${physicalIds.get(id)}`;
          const schedule = (await (await call('scheduler', path)).json()) as { readonly Target: Target };
          const off = JSON.stringify({ ...schedule, State: 'DISABLED' });
          const answer = await call('scheduler', path, { method: 'PUT', body: off });
          if (!answer.ok) throw new Error(`A schedule could not be switched off: ${await answer.text()}`);
          return schedule.Target;
        }),
      );
    }
    const targets = await takeSchedules();

    async function settled(): Promise<void> {
      const until = performance.now() + SETTLE_TIMEOUT_MS;
      // A stream continues as long as a client reads it.
      const but = functions().find(([name]) => name === 'live')?.[1] ?? '';
      while (await (await fetch(`http://127.0.0.1:${port}/_host/under-way?${but}`)).json()) {
        if (performance.now() > until) throw new Error('The cell is still at work after a minute.');
        await sleep(10);
      }
    }

    const { host, pathname } = new URL(outputs.ApiUrl ?? '');
    const reached = {
      apiUrl: `${endpoint}${API_PATH}${host.split('.')[0]}${pathname.replace(/\/$/, '')}`,
      aws: { region: REGION, endpoint, credentials: CREDENTIALS },
    };
    const distribution = await listen(
      createDistribution(template, reached, (id) => physicalIds.get(id) ?? ''),
    );
    opened.defer(distribution.close);
    const resources = opened.move();
    return {
      stage: stack.split('-')[1] ?? '',
      region: stack.split('-')[2] ?? '',
      outputs,
      ...reached,
      dashboardUrl: `http://127.0.0.1:${distribution.port}`,
      physicalId,
      outbox,
      invoke: (name, payload) => invoke(physicalName(name), payload),
      async tick() {
        for (const { Arn, Input = '{}' } of targets) {
          await invoke(Arn, JSON.parse(Input)).catch((cause: unknown) => {
            if (!(cause instanceof FunctionError)) throw cause;
          });
        }
      },
      settled,
      async passTime(seconds) {
        for (let left = seconds; left > 0; left -= STEP_SECONDS) {
          await settled();
          setClock(clockAhead() + Math.min(left, STEP_SECONDS) * 1000);
        }
      },
      complaints: () => complaints,
      faults: {
        onCall(name, fate) {
          if (fate) fates.set(name, fate);
          else fates.delete(name);
        },
      },
      [Symbol.asyncDispose]: () => resources.disposeAsync(),
    };
  };
}

/** The target of a schedule. */
interface Target {
  readonly Arn: string;
  readonly Input?: string;
}

/** Returns the URL at which ministack serves a REST API, by id and stage. */
const API_PATH = '/_aws/execute-api/';
const CREDENTIALS = { accessKeyId: 'test', secretAccessKey: 'test' };

/** Starts ministack on loopback, with all its files in one directory, and without access to containers. */
async function startMinistack(
  { python, packages }: Ministack & { kind: 'installed' },
  place: {
    readonly directory: string;
    readonly port: number;
    readonly gatewayPort: number;
    readonly caFile: string;
  },
): Promise<AsyncDisposable> {
  const { directory, port, gatewayPort, caFile } = place;
  await Promise.all(['bin', 'home', 'tmp'].map((name) => mkdir(join(directory, name))));
  // Ministack uses the first `node` in the path. The process id in each AWS call identifies the caller.
  const node = join(directory, 'bin/node');
  const shim = here('./ministack-function.ts');
  await writeFile(
    node,
    `#!/bin/sh\nAWS_SDK_UA_APP_ID=$$ exec '${process.execPath}' --import '${shim}' "$@"\n`,
  );
  await chmod(node, 0o755);
  const args = ['-m', 'hypercorn', 'ministack_host:app', '--workers', '0', '--bind', `127.0.0.1:${port}`];
  const child = spawn(python, [...args, '--keep-alive', '75'], {
    cwd: directory,
    // Its own process group, so that the processes of functions end with it.
    detached: true,
    // Its stdin is closed when this process ends, so ministack ends too.
    stdio: ['pipe', 'pipe', 'pipe'],
    env: {
      PATH: [join(directory, 'bin'), '/usr/bin', '/bin'].join(delimiter),
      HOME: join(directory, 'home'),
      TMPDIR: join(directory, 'tmp'),
      STATE_DIR: join(directory, 'tmp/state'),
      S3_DATA_DIR: join(directory, 'tmp/s3'),
      PYTHONPATH: [packages, here('.')].join(delimiter),
      PYTHONDONTWRITEBYTECODE: '1',
      JOBWIRE_HOST_DIR: directory,
      NODE_EXTRA_CA_CERTS: caFile,
      BIND_HOST: '127.0.0.1',
      MINISTACK_HOST: '127.0.0.1',
      // The address that it reports, not the one at which it listens.
      GATEWAY_PORT: String(gatewayPort),
      AWS_ENDPOINT_URL: `http://127.0.0.1:${gatewayPort}`,
      AUTH: 'true',
      DOCKER_HOST: `unix://${join(directory, 'none')}`,
    },
  });
  let output = '';
  for (const pipe of [child.stdout, child.stderr]) {
    pipe.setEncoding('utf8').on('data', (text: string) => {
      output = (output + text).slice(-OUTPUT_KEPT);
    });
  }
  const started: AsyncDisposable = {
    async [Symbol.asyncDispose]() {
      const gone = once(child, 'close');
      if (child.pid !== undefined && child.exitCode === null && child.signalCode === null) {
        process.kill(-child.pid, 'SIGKILL');
        await gone;
      }
    },
  };
  try {
    await up(child, port);
    return started;
  } catch (cause) {
    await started[Symbol.asyncDispose]();
    throw new Error(`Ministack did not start: ${output}`, { cause });
  }
}

const OUTPUT_KEPT = 5_000;

async function up(child: ChildProcess, port: number): Promise<void> {
  const until = performance.now() + START_TIMEOUT_MS;
  for (;;) {
    if (child.exitCode !== null) throw new Error(`It ended with ${child.exitCode}.`);
    if (performance.now() > until) throw new Error('It took too long.');
    const answer = await fetch(`http://127.0.0.1:${port}/_ministack/health`).catch(() => undefined);
    if (answer?.ok) return;
    await sleep(50);
  }
}

/**
 * Deploys as `docs/deploying.md` describes: CDK's own tool bootstraps the account, then deploys. Returns the outputs of the
 * stack.
 */
async function deployStack(what: {
  readonly assembly: string;
  readonly stack: string;
  readonly directory: string;
  readonly endpoint: string;
}): Promise<Record<string, string>> {
  const { assembly, stack, directory, endpoint } = what;
  const cdk = async (...args: string[]) => {
    const tool = join(ROOT, 'node_modules/aws-cdk/bin/cdk');
    const general = ['--app', assembly, '--no-notices', '--no-color', '--ci'];
    await run(process.execPath, [tool, ...args, ...general], {
      cwd: directory,
      timeout: START_TIMEOUT_MS * 6,
      env: {
        PATH: process.env.PATH ?? '',
        HOME: join(directory, 'home'),
        TMPDIR: join(directory, 'tmp'),
        AWS_ENDPOINT_URL: endpoint,
        AWS_ACCESS_KEY_ID: CREDENTIALS.accessKeyId,
        AWS_SECRET_ACCESS_KEY: CREDENTIALS.secretAccessKey,
        AWS_REGION: REGION,
        AWS_EC2_METADATA_DISABLED: 'true',
        CDK_DISABLE_CLI_TELEMETRY: 'true',
      },
    });
  };
  const outputs = join(directory, 'outputs.json');
  await cdk('bootstrap', `aws://${ACCOUNT}/${REGION}`);
  await cdk('deploy', stack, '--require-approval', 'never', '--outputs-file', outputs);
  return JSON.parse(await readFile(outputs, 'utf8'))[stack];
}

const STREAM_PATH = '/_host/streams/';
const STREAM_HEADER = 'x-jobwire-stream';

/**
 * Gateway to ministack for all clients. It identifies the calling process of a function by a number in the call, asks for the
 * fate of the call, and reports denied and successful calls. It adds an id to each request to the API, under which a function
 * streams its response; ministack's own response arrives too late then.
 */
function createGateway(
  port: number,
  getFate: (pid: number, call: AwsCall) => CallFate,
  onDenied: (sentence: string) => void,
  onTaken: (call: AwsCall) => void,
): Server {
  const waiting = new Map<string, ServerResponse>();

  async function serve(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = incoming.url ?? '/';
    if (path.startsWith(STREAM_PATH)) return takeStream(incoming, path.slice(STREAM_PATH.length), response);
    if (path.startsWith(API_PATH)) {
      const stream = randomUUID();
      incoming.headers[STREAM_HEADER] = stream;
      waiting.set(stream, response);
      response.once('close', () => waiting.delete(stream));
    }
    const body = await buffer(incoming);
    const pid = Number(/\bapp\/(\d+)/.exec(incoming.headers['user-agent'] ?? '')?.[1]);
    const fate = Number.isNaN(pid) ? 'pass' : getFate(pid, parseCall(incoming, body));
    if (fate === 'fail') {
      response.writeHead(500, { 'content-type': 'application/x-amz-json-1.0' });
      response.end(JSON.stringify({ __type: 'InternalServerError', message: 'Injected.' }));
      return;
    }
    if (fate !== 'kill before') {
      const answer = await ask(port, incoming, body);
      const answered = await buffer(answer);
      const denial = /User: [^"<]* is not authorized to perform: [^"<]*/.exec(answered.toString('utf8'))?.[0];
      if (answer.statusCode === 200) onTaken(parseCall(incoming, body));
      if (denial && !Number.isNaN(pid) && (answer.statusCode ?? 0) >= 400) onDenied(denial);
      if (fate === 'pass') {
        if (!response.headersSent) response.writeHead(answer.statusCode ?? 502, answer.headers).end(answered);
        return;
      }
    }
    process.kill(pid, 'SIGKILL');
    incoming.socket.destroy();
  }

  async function takeStream(
    incoming: IncomingMessage,
    name: string,
    response: ServerResponse,
  ): Promise<void> {
    const client = waiting.get(name);
    let line = '';
    for await (const chunk of incoming) {
      if (client?.headersSent) client.write(chunk);
      else {
        const end = (chunk as Buffer).indexOf('\n');
        line += chunk.subarray(0, end < 0 ? undefined : end).toString('utf8');
        if (end < 0) continue;
        const { statusCode, headers } = JSON.parse(line) as {
          statusCode: number;
          headers: Record<string, string>;
        };
        client?.writeHead(statusCode, headers);
        client?.flushHeaders();
        client?.write(chunk.subarray(end + 1));
      }
    }
    client?.end();
    response.writeHead(204).end();
  }

  return createServer((incoming, response) => {
    serve(incoming, response).catch(() => incoming.socket.destroy());
  });
}

function ask(
  port: number,
  { method, url, headers }: IncomingMessage,
  body: Buffer,
): Promise<IncomingMessage> {
  return new Promise((done, fail) => {
    const asked = request({ host: '127.0.0.1', port, method, path: url, headers }, done);
    asked.once('error', fail).end(body);
  });
}

function parseCall({ headers, url }: IncomingMessage, body: Buffer): AwsCall {
  const service = /Credential=[^/]+\/\d+\/[^/]+\/([^/]+)\//.exec(headers.authorization ?? '')?.[1];
  const target = String(headers['x-amz-target'] ?? '').split('.')[1];
  const text = body.toString('utf8');
  const operation =
    url === '/v2/email/outbound-emails' ? 'SendEmail' : (target ?? new URLSearchParams(text).get('Action'));
  return { service: service ?? '', operation: operation ?? '', text };
}
