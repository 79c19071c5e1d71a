/**
 * Renders messages so that an account's own template cannot delay anything else. Own templates run in a worker thread with a memory limit,
 * one at a time. A template that takes too long is killed with the worker, and fails if that happens twice. Built-in templates are rendered in the calling
 * thread, which loads them for the first message: a start need not wait for them.
 */
import { type ResourceLimits, Worker } from 'node:worker_threads';
import { workerFile } from '../worker-file.ts';
import type { Rendered, RenderedEmail, RenderedSms, RenderInput } from './render-types.ts';
import type { Template, TemplatePlace, TemplateProblem } from './template.ts';

/** Task of the worker. */
export type RenderTask =
  | { readonly what: 'email' | 'sms'; readonly input: RenderInput }
  | { readonly what: 'check'; readonly place: TemplatePlace; readonly template: Template };

/** Renders messages and checks templates. */
export interface Renderer {
  /** `owner`: owner of the template. Owners take turns. */
  email(input: RenderInput, owner: string): Promise<Rendered<RenderedEmail>>;
  sms(input: RenderInput, owner: string): Promise<Rendered<RenderedSms>>;
  /** As `checkTemplate` of `render.ts`. */
  check(place: TemplatePlace, template: Template, owner: string): Promise<TemplateProblem[]>;
}

/** Limits of a template. Tests override them. */
interface Limits {
  readonly memory?: ResourceLimits;
  readonly killAfterMs?: number;
  /** Maximum number of waiting and running templates of one owner. Further ones are rejected. Default: unlimited. */
  readonly perOwner?: number;
}

/**
 * Time after which a template is killed. Rendering stops by itself after 2 s with a reason. This is for templates that bypass that limit.
 */
const KILL_AFTER_MS = 3_000;
/** Maximum start time of a worker. It does not count as the template's time. */
const START_MS = 30_000;
const RETRY_KILLED_MS = 600_000;
const MAX_KILLED = 100;
const MEMORY = { maxOldGenerationSizeMb: 96, maxYoungGenerationSizeMb: 16, stackSizeMb: 4 };
const TOO_MANY = 'two templates of this account are already being rendered; retry when one is done';

/** A template was killed. The message continues a phrase that names it. */
class KilledError extends Error {}

/** Creates a renderer with its own worker. The worker starts with the first own template and does not keep the process alive. */
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
    // Its first message: its modules are loaded.
    const ready = new Promise((done) => worker.once('message', done));
    const started = { worker, ready };
    worker.once('exit', () => {
      if (running === started) running = undefined;
    });
    return started;
  }

  async function runTask(task: RenderTask): Promise<unknown> {
    running ??= start();
    const { worker, ready } = running;
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    const failed = (cause: NodeJS.ErrnoException) =>
      reject(cause.code === 'ERR_WORKER_OUT_OF_MEMORY' ? new KilledError('it uses too much memory') : cause);
    const ended = () => reject(new KilledError('it takes too long'));
    const kill = () => void worker.terminate();
    let timer = setTimeout(kill, START_MS);
    worker.once('error', failed).once('exit', ended).ref();
    try {
      await Promise.race([ready, promise]);
      clearTimeout(timer);
      timer = setTimeout(kill, killAfterMs);
      worker.once('message', resolve).postMessage(task);
      return await promise;
    } finally {
      clearTimeout(timer);
      worker.off('message', resolve).off('error', failed).off('exit', ended).unref();
    }
  }

  /** Runs one task at a time, because the time of a template starts when no other is rendered. Owners take turns. */
  async function enqueue(task: RenderTask, owner: string): Promise<unknown> {
    const own = queues.get(owner) ?? [];
    if (own.length >= perOwner) throw new KilledError(TOO_MANY);
    queues.set(owner, own);
    const { promise, resolve } = Promise.withResolvers<void>();
    own.push(resolve);
    if (!busy) next();
    await promise;
    try {
      return await runTask(task);
    } finally {
      own.shift();
      queues.delete(owner);
      // The owner moves to the end of the queue.
      if (own.length > 0) queues.set(owner, own);
      next();
    }
  }

  function next(): void {
    const [first] = queues.values();
    busy = first !== undefined;
    first?.[0]?.();
  }
  /** Waiting tasks of each owner, the running one first. The next owner is first. */
  const queues = new Map<string, (() => void)[]>();
  let busy = false;

  /** Killed templates, and the time until which they are not tried again (epoch ms), because other templates are waiting. */
  const killed = new Map<string, { readonly until: number; readonly reason: string }>();

  async function render<T>(what: 'email' | 'sms', input: RenderInput, owner: string): Promise<Rendered<T>> {
    const name = JSON.stringify(input.template);
    const before = killed.get(name);
    if (before && before.until > Date.now()) return { kind: 'failed', reason: before.reason };
    killed.delete(name);
    try {
      return (await enqueue({ what, input }, owner).catch((cause: unknown) => {
        if (!(cause instanceof KilledError) || cause.message === TOO_MANY) throw cause;
        // Once more: a machine that stalls also ends the time of a template.
        return enqueue({ what, input }, owner);
      })) as Rendered<T>;
    } catch (cause) {
      if (!(cause instanceof KilledError)) throw cause;
      const reason = `template: ${cause.message}`;
      if (cause.message === TOO_MANY) return { kind: 'failed', reason };
      if (killed.size >= MAX_KILLED) killed.clear();
      killed.set(name, { until: Date.now() + RETRY_KILLED_MS, reason });
      return { kind: 'failed', reason };
    }
  }

  return {
    async email(input, owner) {
      return input.template
        ? render('email', input, owner)
        : (await import('./render.ts')).renderEmail(input);
    },
    async sms(input, owner) {
      return input.template ? render('sms', input, owner) : (await import('./render.ts')).renderSms(input);
    },
    async check(place, template, owner) {
      try {
        return (await enqueue({ what: 'check', place, template }, owner)) as TemplateProblem[];
      } catch (cause) {
        if (!(cause instanceof KilledError)) throw cause;
        const [field = 'text'] = Object.keys(template);
        return [{ field, reason: cause.message }];
      }
    },
  };
}

/** One renderer for sending and one for checks through the API: neither waits for the other. */
export const messageRenderer = createRenderer();
export const previewRenderer = createRenderer({ perOwner: 2 });
