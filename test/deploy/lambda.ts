/** A function of the template: its bundle in its own processes, one for each concurrent invocation. */
import { type ChildProcess, spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { clockAhead } from './clock.ts';
import { FunctionError } from './deployment.ts';
import type { Routes } from './network.ts';
import type { FromRuntime, ToRuntime } from './runtime.ts';
import type { Resource, StackTemplate } from './template.ts';

const RUNTIME = fileURLToPath(new URL('./runtime.ts', import.meta.url));
const TIMES_CHECKED_EVERY_MS = 100;

/** Environment of a function. */
export interface LambdaHost {
  readonly routes: Routes;
  /** PEM file of the authority that signs the certificates of all servers with https. */
  readonly caFile: string;
  /** Called when an invocation begins. */
  readonly onBegin: () => void;
  /** Called for every failed invocation, with the reason. */
  readonly onFailed: (reason: string) => void;
  /** Called for every line that a function writes. */
  readonly onLine: (line: string) => void;
  /** Called for every rejected connection. */
  readonly onRefused: (destination: string) => void;
}

/** Receives parts of a streamed response. */
export type OnPart = (bytes: Buffer) => void;

interface Invocation {
  readonly payload: unknown;
  readonly onPart: OnPart | undefined;
  readonly done: (answer: unknown) => void;
  readonly fail: (cause: FunctionError) => void;
}

/** An execution environment: one process, one invocation at a time. */
interface Environment {
  readonly child: ChildProcess;
  readonly exited: Promise<void>;
  ready: boolean;
  work: (Invocation & { readonly deadline: number }) | undefined;
}

/** An alias of a function, and its version. */
export interface Alias {
  readonly name: string;
  readonly version: string;
}

/** A deployed function, or the version of one to which an alias points. */
export class Lambda {
  readonly name: string;
  /** By which it is invoked, with the alias. */
  readonly arn: string;
  readonly timeoutMs: number;
  /** Maximum number of environments. */
  readonly limit: number;
  readonly #host: LambdaHost;
  readonly #taskRoot: string;
  readonly #env: Readonly<Record<string, string>>;
  readonly #environments = new Set<Environment>();
  readonly #waiting: Invocation[] = [];
  readonly #timer: NodeJS.Timeout;
  #closed = false;
  #invocations = 0;

  constructor(
    template: StackTemplate,
    resource: Resource,
    { most, alias, host }: { readonly most: number; readonly alias?: Alias; readonly host: LambdaHost },
  ) {
    const { properties } = resource;
    const major = /^nodejs(\d+)\.x$/.exec(String(properties.Runtime))?.[1];
    if (process.versions.node.split('.')[0] !== major) {
      throw new Error(
        `${resource.path} runs on ${properties.Runtime}, and this is Node ${process.versions.node}.`,
      );
    }
    this.name = template.ref(resource.id);
    const arn = String(template.resolve({ 'Fn::GetAtt': [resource.id, 'Arn'] }));
    this.arn = alias ? `${arn}:${alias.name}` : arn;
    this.timeoutMs = Number(properties.Timeout) * 1000;
    this.limit = Math.min(most, Number(properties.ReservedConcurrentExecutions ?? most));
    this.#host = host;
    this.#taskRoot = template.getAsset(resource);
    if (!existsSync(this.#taskRoot)) throw new Error(`The bundle of ${resource.path} is not there.`);
    const own = (template.resolve(properties.Environment) ?? {}) as { Variables?: Record<string, string> };
    const logging = (template.resolve(properties.LoggingConfig) ?? {}) as { LogGroup?: string };
    this.#env = {
      // The environment variables of the runtime.
      PATH: process.env.PATH ?? '',
      LANG: 'en_US.UTF-8',
      TZ: ':UTC',
      _HANDLER: String(properties.Handler),
      LAMBDA_TASK_ROOT: this.#taskRoot,
      LAMBDA_RUNTIME_DIR: '/var/runtime',
      AWS_REGION: template.region,
      AWS_DEFAULT_REGION: template.region,
      AWS_ACCESS_KEY_ID: 'ASIAEMULATED',
      AWS_SECRET_ACCESS_KEY: 'emulated',
      AWS_SESSION_TOKEN: 'emulated',
      AWS_EXECUTION_ENV: `AWS_Lambda_${properties.Runtime}`,
      AWS_LAMBDA_INITIALIZATION_TYPE: 'on-demand',
      AWS_LAMBDA_FUNCTION_NAME: this.name,
      AWS_LAMBDA_FUNCTION_VERSION: alias?.version ?? '$LATEST',
      AWS_LAMBDA_FUNCTION_MEMORY_SIZE: String(properties.MemorySize),
      AWS_LAMBDA_LOG_GROUP_NAME: logging.LogGroup ?? `/aws/lambda/${this.name}`,
      AWS_LAMBDA_LOG_STREAM_NAME: `2026/01/01/[${alias?.version ?? '$LATEST'}]0`,
      ...own.Variables,
      // Read when the process starts. The runtime removes it.
      NODE_EXTRA_CA_CERTS: host.caFile,
    };
    this.#timer = setInterval(() => this.#endOverdue(), TIMES_CHECKED_EVERY_MS);
  }

  /** Number of invocations so far. */
  get invocations(): number {
    return this.#invocations;
  }

  /** Number of invocations that run or wait for an environment. */
  get busy(): number {
    return [...this.#environments].filter(({ work }) => work).length + this.#waiting.length;
  }

  /** Invokes the function. Throws {@link FunctionError} if it throws, dies or times out. */
  invoke(payload: unknown, onPart?: OnPart): Promise<unknown> {
    return new Promise((done, fail) => {
      if (this.#closed) return fail(new FunctionError(`${this.name} is no longer there.`));
      this.#invocations += 1;
      this.#waiting.push({ payload: structuredClone(payload), onPart, done, fail });
      this.#assign();
    });
  }

  /** Ends the processes with an invocation, as if they had crashed. */
  kill(): void {
    const atWork = [...this.#environments].filter(({ work }) => work);
    for (const environment of atWork) this.#end(environment, 'The process ended with signal SIGKILL.');
  }

  /** Sends the lead of the clock to all processes. */
  tellClock(): void {
    for (const { child } of this.#environments) tell(child, { kind: 'clock', clockAheadMs: clockAhead() });
  }

  /** Ends all processes and waits for their end. */
  async close(): Promise<void> {
    this.#closed = true;
    clearInterval(this.#timer);
    const environments = [...this.#environments];
    for (const invocation of this.#waiting.splice(0))
      invocation.fail(new FunctionError('It was never begun.'));
    for (const environment of environments) this.#end(environment, 'The deployment is gone.');
    await Promise.all(environments.map(({ exited }) => exited));
  }

  #assign(): void {
    while (this.#waiting.length > 0) {
      const free = [...this.#environments].find(({ ready, work }) => ready && !work);
      if (!free) break;
      const invocation = this.#waiting.shift() as Invocation;
      const deadline = Date.now() + this.timeoutMs;
      free.work = { ...invocation, deadline };
      this.#host.onBegin();
      tell(free.child, { kind: 'invoke', payload: invocation.payload, deadline, arn: this.arn });
    }
    const starting = [...this.#environments].filter(({ ready }) => !ready).length;
    const wanted = Math.min(this.#waiting.length - starting, this.limit - this.#environments.size);
    for (let at = 0; at < wanted; at += 1) this.#start();
  }

  #start(): void {
    const child = spawn(process.execPath, [RUNTIME], {
      cwd: this.#taskRoot,
      env: this.#env,
      stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
    });
    const exited = new Promise<void>((done) => child.once('close', () => done()));
    const environment: Environment = { child, exited, ready: false, work: undefined };
    this.#environments.add(environment);
    for (const pipe of [child.stdout, child.stderr]) {
      let rest = '';
      pipe?.setEncoding('utf8').on('data', (text: string) => {
        const lines = (rest + text).split('\n');
        rest = lines.pop() ?? '';
        for (const line of lines) this.#host.onLine(line);
      });
    }
    child.on('message', (message: FromRuntime) => this.#hear(environment, message));
    child.once('error', (cause) =>
      this.#end(environment, `The process could not be started: ${cause.message}`),
    );
    child.once('exit', (code, signal) => this.#end(environment, `The process ended with ${signal ?? code}.`));
  }

  #hear(environment: Environment, message: FromRuntime): void {
    const { work } = environment;
    switch (message.kind) {
      case 'up':
        tell(environment.child, { kind: 'start', routes: this.#host.routes, clockAheadMs: clockAhead() });
        break;
      case 'ready':
        environment.ready = true;
        this.#assign();
        break;
      case 'part':
        work?.onPart?.(Buffer.from(message.bytes, 'base64'));
        break;
      case 'answer':
        environment.work = undefined;
        work?.done(message.answer);
        this.#assign();
        break;
      case 'failed':
        // The process ended before it was ready: fails the waiting invocation.
        environment.work = undefined;
        if (work) {
          this.#fail(work, message.error);
          this.#assign();
        } else this.#end(environment, message.error);
        break;
      case 'rejected':
        this.#host.onRefused(message.destination);
        break;
    }
  }

  #endOverdue(): void {
    for (const environment of this.#environments) {
      if (environment.work && Date.now() > environment.work.deadline) {
        this.#end(environment, `Task timed out after ${this.timeoutMs / 1000} seconds.`);
      }
    }
  }

  #end(environment: Environment, reason: string): void {
    if (!this.#environments.delete(environment)) return;
    environment.child.kill('SIGKILL');
    // Without an invocation, it died during its start: fails the invocation that has waited longest.
    const work = environment.work ?? (environment.ready ? undefined : this.#waiting.shift());
    if (work) this.#fail(work, reason);
    if (!this.#closed) this.#assign();
  }

  #fail(work: Invocation, reason: string): void {
    if (!this.#closed) this.#host.onFailed(reason);
    work.fail(new FunctionError(reason));
  }
}

function tell(child: ChildProcess, message: ToRuntime): void {
  if (child.connected) child.send(message, () => {});
}
