/** Runs functions as Lambda does: the deployed code in a separate process with only its own environment. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { json } from 'node:stream/consumers';
import { close, listen } from '../shared/http-server.ts';
import { FakeKms } from '../test/support/kms.ts';

/** Measurements of one invocation. */
export interface Invocation {
  readonly ms: number;
  readonly cpuMs: number;
  /** Number of bytes in its log. */
  readonly logBytes: number;
  /** Metrics in its log, with their dimensions. */
  readonly metrics: readonly string[];
  readonly result: unknown;
}

/** A process that runs a function. `Symbol.dispose` ends it. */
export interface Environment extends Disposable {
  readonly importMs: number;
  /** CPU time from process start until it can be invoked. */
  readonly startCpuMs: number;
  /** Since it was started. */
  ageMs(): number;
  /** Invokes the function. Throws if the handler throws or reports failed items of a batch. */
  invoke(event: unknown): Promise<Invocation>;
}

type Answer = Invocation & { readonly error?: string };

const RUNNER = `
let logBytes = 0;
let metrics = new Set();
for (const stream of [process.stdout, process.stderr]) {
  stream.write = (text, ...rest) => {
    logBytes += Buffer.byteLength(text);
    if (String(text).includes('"_aws"')) note(JSON.parse(text));
    rest.findLast((one) => typeof one === 'function')?.();
    return true;
  };
}
function note(line) {
  for (const { Namespace, Dimensions, Metrics } of line._aws.CloudWatchMetrics) {
    for (const names of Dimensions) for (const { Name } of Metrics) {
      metrics.add([Namespace, Name, ...names.map((name) => name + '=' + line[name])].join(' '));
    }
  }
}
const from = performance.now();
const { handler } = await import(process.argv[1]);
const { user, system } = process.cpuUsage();
process.send({ importMs: performance.now() - from, startCpuMs: (user + system) / 1000 });
process.on('message', async (event) => {
  logBytes = 0;
  metrics = new Set();
  const until = Date.now() + 120_000;
  const context = { awsRequestId: crypto.randomUUID(), functionName: process.env.AWS_LAMBDA_FUNCTION_NAME,
    functionVersion: '$LATEST', memoryLimitInMB: process.env.AWS_LAMBDA_FUNCTION_MEMORY_SIZE,
    invokedFunctionArn: 'arn:aws:lambda:us-east-1:111122223333:function:bench',
    getRemainingTimeInMillis: () => until - Date.now() };
  const cpu = process.cpuUsage();
  const start = performance.now();
  const answer = await handler(event, context).then((result) => ({ result }), (error) => ({ error: error.stack }));
  const ms = performance.now() - start;
  const { user, system } = process.cpuUsage(cpu);
  process.send({ ...answer, ms, cpuMs: (user + system) / 1000, logBytes, metrics: [...metrics] });
});
process.on('disconnect', () => process.exit(0));`;

/** Returns the relevant environment variables of Lambda, and those of the function. */
export function lambdaEnvironment(
  own: Readonly<Record<string, string>>,
  endpoints: Readonly<Record<string, string>> = {},
): Record<string, string> {
  return {
    ...{ AWS_REGION: 'us-east-1', AWS_EXECUTION_ENV: 'AWS_Lambda_nodejs24.x', TZ: ':UTC' },
    ...{ AWS_LAMBDA_FUNCTION_NAME: 'bench', AWS_LAMBDA_FUNCTION_MEMORY_SIZE: '1024' },
    ...{ AWS_ACCESS_KEY_ID: 'local', AWS_SECRET_ACCESS_KEY: 'local', AWS_SESSION_TOKEN: 'local' },
    ...own,
    ...endpoints,
  };
}

/** Starts a process and waits until it has imported the function. */
export async function startEnvironment(file: string, env: Record<string, string>): Promise<Environment> {
  const startedAt = performance.now();
  const child = spawn(process.execPath, ['--input-type=module', '--eval', RUNNER, file], {
    env,
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
  });
  const started = (await readAnswer(child)) as unknown as Pick<Environment, 'importMs' | 'startCpuMs'>;
  return {
    ...started,
    ageMs: () => performance.now() - startedAt,
    async invoke(event) {
      child.send(event as object);
      const answer = await readAnswer(child);
      if (answer.error !== undefined) throw new Error(answer.error);
      const { batchItemFailures = [] } = (answer.result ?? {}) as { batchItemFailures?: unknown[] };
      if (batchItemFailures.length > 0)
        throw new Error(`${file} failed for ${batchItemFailures.length} items.`);
      return answer;
    },
    [Symbol.dispose]: () => void child.kill(),
  };
}

async function readAnswer(child: ChildProcess): Promise<Answer> {
  const gone = new AbortController();
  const [answer] = (await Promise.race([
    once(child, 'message', { signal: gone.signal }),
    once(child, 'exit', { signal: gone.signal }).then(([code]) => {
      throw new Error(`The function's process ended with ${code}.`);
    }),
  ]).finally(() => gone.abort())) as [Answer];
  return answer;
}

/** Returns the SQS event of messages. */
export function sqsEvent(messages: readonly object[]): object {
  const attributes = { SentTimestamp: String(Date.now()) };
  return {
    Records: messages.map((message, at) => ({
      messageId: `${at}`,
      body: JSON.stringify(message),
      attributes,
    })),
  };
}

/** A stub of KMS. */
export interface KmsStandIn extends Disposable {
  readonly url: string;
  readonly kms: FakeKms;
}

/** Starts the stub in this process. */
export async function startKms(): Promise<KmsStandIn> {
  const kms = new FakeKms();
  const server = createServer(async (request, response) => {
    const [, operation = ''] = String(request.headers['x-amz-target']).split('.');
    const answer = kms.answerJson(operation, (await json(request)) as Record<string, unknown>);
    response.writeHead(200, { 'content-type': 'application/x-amz-json-1.1' });
    response.end(JSON.stringify(answer));
  });
  return { url: await listen(server), kms, [Symbol.dispose]: () => void close(server) };
}
