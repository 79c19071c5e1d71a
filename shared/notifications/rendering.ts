/**
 * Renders messages without letting an account's own template hold up anything else: it runs in a worker thread with a
 * limit on memory, one after the other, and is killed with the worker when it takes too long. The templates that come with
 * Jobwire are rendered where they are asked for.
 */
import { type ResourceLimits, Worker } from 'node:worker_threads';
import { workerFile } from '../worker-file.ts';
import {
  type Rendered,
  type RenderedEmail,
  type RenderedSms,
  type RenderInput,
  renderEmail,
  renderSms,
  type TemplateProblem,
} from './render.ts';
import type { Template, TemplatePlace } from './templates.ts';

/** What the worker is asked to do. */
export type RenderTask =
  | { readonly what: 'email' | 'sms'; readonly input: RenderInput }
  | { readonly what: 'check'; readonly place: TemplatePlace; readonly template: Template };

/** Renders messages, and tries out templates. */
export interface Renderer {
  /** `owner`: whose template it is; owners take turns. */
  email(input: RenderInput, owner: string): Promise<Rendered<RenderedEmail>>;
  sms(input: RenderInput, owner: string): Promise<Rendered<RenderedSms>>;
  /** As `checkTemplate` of `render.ts`. */
  check(place: TemplatePlace, template: Template, owner: string): Promise<TemplateProblem[]>;
}

/** What a template may take; injected by tests. */
interface Limits {
  readonly memory?: ResourceLimits;
  readonly killAfterMs?: number;
  /** So many templates of one owner may wait or be rendered; more are refused. Absent: any number. */
  readonly perOwner?: number;
}

/** Rendering stops by itself after 2 s, and says why; a template that gets around that is killed. */
const KILL_AFTER_MS = 3_000;
/** The start of a worker does not count as the template's time. */
const START_MS = 30_000;
const NOT_AGAIN_MS = 600_000;
const MAX_KILLED = 100;
const MEMORY = { maxOldGenerationSizeMb: 96, maxYoungGenerationSizeMb: 16, stackSizeMb: 4 };
const TOO_MANY = 'two of this account are being rendered; wait until one is done';

/** A template was killed: why, as a sentence about it continues. */
class KilledError extends Error {}

/** Makes a renderer with a worker of its own, which starts with the first own template and does not keep the process alive. */
export function createRenderer({
  memory = MEMORY,
  killAfterMs = KILL_AFTER_MS,
  perOwner = Number.POSITIVE_INFINITY,
}: Limits = {}): Renderer {
  let running: { readonly worker: Worker; readonly ready: Promise<unknown> } | undefined;

  function start() {
    const worker = new Worker(workerFile('render-worker', import.meta.url), {
      resourceLimits: memory,
      execArgv: [],
    });
    worker.unref();
    const ready = new Promise((done) => worker.once('online', done));
    const started = { worker, ready };
    worker.once('exit', () => {
      if (running === started) running = undefined;
    });
    return started;
  }

  async function carryOut(task: RenderTask): Promise<unknown> {
    running ??= start();
    const { worker, ready } = running;
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    const failed = (cause: NodeJS.ErrnoException) =>
      reject(cause.code === 'ERR_WORKER_OUT_OF_MEMORY' ? new KilledError('it takes too much memory') : cause);
    const ended = () => reject(new KilledError('it takes too long'));
    const kill = () => void worker.terminate();
    let timer = setTimeout(kill, START_MS);
    worker.once('message', resolve).once('error', failed).once('exit', ended).ref();
    try {
      worker.postMessage(task);
      await Promise.race([ready, promise]);
      clearTimeout(timer);
      timer = setTimeout(kill, killAfterMs);
      return await promise;
    } finally {
      clearTimeout(timer);
      worker.off('message', resolve).off('error', failed).off('exit', ended).unref();
    }
  }

  /** One at a time, for the time of a template begins when nothing else is rendered; owners in turn. */
  async function inTurn(task: RenderTask, owner: string): Promise<unknown> {
    const own = queues.get(owner) ?? [];
    if (own.length >= perOwner) throw new KilledError(TOO_MANY);
    queues.set(owner, own);
    const { promise, resolve } = Promise.withResolvers<void>();
    own.push(resolve);
    if (!busy) next();
    await promise;
    try {
      return await carryOut(task);
    } finally {
      own.shift();
      queues.delete(owner);
      // To the end of the line.
      if (own.length > 0) queues.set(owner, own);
      next();
    }
  }

  function next(): void {
    const [first] = queues.values();
    busy = first !== undefined;
    first?.[0]?.();
  }
  /** What waits, and first what is rendered, of each owner; the next owner first. */
  const queues = new Map<string, (() => void)[]>();
  let busy = false;

  /** Templates that were killed, and until when (epoch ms) they are not tried again: others wait for their turn. */
  const killed = new Map<string, { readonly until: number; readonly reason: string }>();

  async function render<T>(what: 'email' | 'sms', input: RenderInput, owner: string): Promise<Rendered<T>> {
    const name = JSON.stringify(input.template);
    const before = killed.get(name);
    if (before && before.until > Date.now()) return { kind: 'failed', reason: before.reason };
    killed.delete(name);
    try {
      return (await inTurn({ what, input }, owner)) as Rendered<T>;
    } catch (cause) {
      if (!(cause instanceof KilledError)) throw cause;
      const reason = `template: ${cause.message}`;
      if (cause.message === TOO_MANY) return { kind: 'failed', reason };
      if (killed.size >= MAX_KILLED) killed.clear();
      killed.set(name, { until: Date.now() + NOT_AGAIN_MS, reason });
      return { kind: 'failed', reason };
    }
  }

  return {
    email: async (input, owner) => (input.template ? render('email', input, owner) : renderEmail(input)),
    sms: async (input, owner) => (input.template ? render('sms', input, owner) : renderSms(input)),
    async check(place, template, owner) {
      try {
        return (await inTurn({ what: 'check', place, template }, owner)) as TemplateProblem[];
      } catch (cause) {
        if (!(cause instanceof KilledError)) throw cause;
        const [field = 'text'] = Object.keys(template);
        return [{ field, reason: cause.message }];
      }
    },
  };
}

/** For what is sent, and for what is tried out through the API: neither waits for the other. */
export const sending = createRenderer();
export const previewing = createRenderer({ perOwner: 2 });
