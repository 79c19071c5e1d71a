/**
 * The AWS environment of polls in virtual time: a clock that jumps from event to event, a queue with its event source, and a
 * function with its environments. Every wait uses the clock, and all randomness comes from a seed, so that a run can be
 * repeated. Simplifications without effect on polls are documented where they occur.
 */
import type { SQSBatchResponse, SQSEvent, SQSRecord } from 'aws-lambda';

/** Time that advances only when no work is left at the current time. */
export interface VirtualTime {
  /** Epoch ms. */
  now(): number;
  at(time: number, act: () => void): void;
  /** Rejects with the reason of the signal if it is aborted first. */
  sleep(ms: number, signal?: AbortSignal): Promise<void>;
  /** `AbortSignal.timeout` by this clock. */
  timeout(ms: number): AbortSignal;
  /** Advances to a time. */
  runUntil(time: number): Promise<void>;
}

/** From 0 (inclusive) to 1 (exclusive). */
export type Random = () => number;

/** Chance by a seed (mulberry32). */
export function createRandom(seed: number): Random {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

interface Timed {
  readonly at: number;
  /** Of several at the same time, the first caller is first. */
  readonly order: number;
  readonly act: () => void;
}

export function createVirtualTime(start: number): VirtualTime {
  let clock = start;
  let order = 0;
  const events = new Heap();

  const time: VirtualTime = {
    now: () => clock,
    at(instant, act) {
      order += 1;
      events.push({ at: Math.max(clock, Math.ceil(instant)), order, act });
    },
    sleep(ms, signal) {
      if (!signal) return new Promise((resolve) => time.at(clock + ms, resolve));
      return new Promise((resolve, reject) => {
        if (signal.aborted) return reject(signal.reason);
        const onAbort = () => reject(signal.reason);
        signal.addEventListener('abort', onAbort, { once: true });
        time.at(clock + ms, () => {
          signal.removeEventListener('abort', onAbort);
          resolve();
        });
      });
    },
    timeout(ms) {
      const controller = new AbortController();
      time.at(clock + ms, () => controller.abort(new DOMException('The time is up.', 'TimeoutError')));
      return controller.signal;
    },
    async runUntil(until) {
      for (let next = events.peek(); next && next.at <= until; next = events.peek()) {
        clock = next.at;
        for (; next?.at === clock; next = events.peek()) events.pop()?.act();
        // Work without a delay runs now: promises are settled before this.
        await new Promise((resolve) => setImmediate(resolve));
      }
      clock = until;
    },
  };
  return time;
}

class Heap {
  readonly #items: Timed[] = [];

  peek(): Timed | undefined {
    return this.#items[0];
  }

  push(item: Timed): void {
    const items = this.#items;
    let at = items.length;
    items.push(item);
    while (at > 0) {
      const parent = (at - 1) >> 1;
      const above = items[parent] as Timed;
      if (!before(item, above)) break;
      items[at] = above;
      at = parent;
    }
    items[at] = item;
  }

  pop(): Timed | undefined {
    const items = this.#items;
    const [first] = items;
    const last = items.pop();
    if (!last || items.length === 0) return first;
    let at = 0;
    for (;;) {
      let child = 2 * at + 1;
      if (child >= items.length) break;
      const right = items[child + 1];
      if (right && before(right, items[child] as Timed)) child += 1;
      const below = items[child] as Timed;
      if (!before(below, last)) break;
      items[at] = below;
      at = child;
    }
    items[at] = last;
    return first;
  }
}

function before(one: Timed, other: Timed): boolean {
  return one.at < other.at || (one.at === other.at && one.order < other.order);
}

/** A process of a function. Its pending calls never return after its end. */
export interface Environment {
  readonly alive: boolean;
  /** Ends the process and its invocation. */
  die(): void;
  /** Hangs until the timeout of the invocation. */
  freeze(): void;
}

type Handler = (
  event: SQSEvent,
  context: { getRemainingTimeInMillis(): number },
) => Promise<SQSBatchResponse>;

/** A completed invocation. Times are epoch ms. */
export interface Invocation {
  readonly startedAt: number;
  readonly endedAt: number;
  /** The start of a new process is included. */
  readonly billedMs: number;
  readonly died: boolean;
}

interface FunctionOptions {
  readonly time: VirtualTime;
  readonly random: Random;
  readonly timeoutSeconds: number;
  /** Initialization of a process: creates its handler. */
  readonly start: (environment: Environment) => Handler;
  readonly onEnd: (invocation: Invocation) => void;
}

/** A function that its event sources invoke. */
export interface VirtualFunction {
  /** Returns the handler's result, or that its process crashed. */
  invoke(event: SQSEvent): Promise<SQSBatchResponse | 'died'>;
}

export function createFunction({ time, random, ...options }: FunctionOptions): VirtualFunction {
  interface Process {
    readonly environment: Environment;
    readonly handler: Handler;
    /** Ends the current invocation. */
    die: (() => void) | undefined;
  }
  const idle: Process[] = [];

  function start(): Process {
    let alive = true;
    const environment: Environment = {
      get alive() {
        return alive;
      },
      die() {
        alive = false;
        process.die?.();
      },
      freeze() {
        alive = false;
      },
    };
    const process: Process = { environment, handler: options.start(environment), die: undefined };
    return process;
  }

  return {
    async invoke(event) {
      const requestedAt = time.now();
      let process = idle.pop();
      if (!process) {
        await time.sleep(500 + 700 * random());
        process = start();
      }
      const { environment, handler } = process;
      const startedAt = time.now();
      const timeoutAt = startedAt + options.timeoutSeconds * 1000;
      const outcome = await new Promise<SQSBatchResponse | 'died'>((resolve) => {
        const die = () => resolve('died');
        process.die = die;
        // By then the process may have another invocation.
        time.at(timeoutAt, () => process.die === die && environment.die());
        void handler(event, { getRemainingTimeInMillis: () => timeoutAt - time.now() }).then(resolve);
      });
      process.die = undefined;
      const endedAt = time.now();
      options.onEnd({ startedAt, endedAt, billedMs: endedAt - requestedAt, died: outcome === 'died' });
      if (environment.alive) idle.push(process);
      return outcome;
    },
  };
}

interface Message {
  readonly body: string;
  readonly sentAt: number;
  received: number;
}

interface QueueOptions {
  readonly time: VirtualTime;
  readonly random: Random;
  readonly consumer: VirtualFunction;
  readonly batchSize: number;
  readonly batchingSeconds: number;
  readonly maxConcurrency: number;
  readonly visibilitySeconds: number;
  readonly retentionSeconds: number;
  readonly maxReceiveCount: number;
}

/** A standard queue with its event source. */
export interface VirtualQueue {
  send(body: string, delaySeconds: number): void;
  /** Dead-lettered messages, with the time (epoch ms). */
  readonly dead: readonly { readonly at: number; readonly body: string }[];
  /** Messages that expired unreceived. */
  readonly forgotten: number;
  /** Maximum number of visible messages at once. */
  readonly longest: number;
}

/** Range of a backlog from which a receive chooses: a standard queue keeps its order only approximately. */
const REACH = 50;
/** One of this many messages is received twice. */
const TWICE = 2_000;
/** Initial pollers of an event source, and those added per second during a backlog. */
const POLLERS = 5;

export function createQueue(options: QueueOptions): VirtualQueue {
  const { time, random, consumer } = options;
  const visible: { message: Message; since: number }[] = [];
  const dead: { at: number; body: string }[] = [];
  let forgotten = 0;
  let longest = 0;
  let running = 0;
  let pollers = POLLERS;
  let lastAddedAt = time.now();

  function show(message: Message): void {
    visible.push({ message, since: time.now() });
    longest = Math.max(longest, visible.length);
    receive();
  }

  /** Delivers full batches, and batches that were gathered for long enough. */
  function receive(): void {
    while (visible.length > 0 && running < Math.min(pollers, options.maxConcurrency)) {
      const gatheredUntil = (visible[0]?.since ?? 0) + options.batchingSeconds * 1000;
      if (visible.length < options.batchSize && time.now() < gatheredUntil) {
        time.at(gatheredUntil, receive);
        return;
      }
      const batch = take();
      if (batch.length > 0) void work(batch);
    }
    if (visible.length === 0 || running >= options.maxConcurrency) return;
    // More pollers are on their way.
    const moreAt = lastAddedAt + 1000;
    if (time.now() >= moreAt) {
      lastAddedAt = time.now();
      pollers += POLLERS;
      receive();
    } else time.at(moreAt, receive);
  }

  function take(): Message[] {
    const batch: Message[] = [];
    while (batch.length < options.batchSize && visible.length > 0) {
      const [{ message }] = visible.splice(Math.floor(random() * Math.min(REACH, visible.length)), 1) as [
        (typeof visible)[number],
      ];
      if (time.now() >= message.sentAt + options.retentionSeconds * 1000) {
        forgotten += 1;
      } else if (message.received >= options.maxReceiveCount) {
        dead.push({ at: time.now(), body: message.body });
      } else {
        message.received += 1;
        batch.push(message);
      }
    }
    return batch;
  }

  async function work(batch: readonly Message[]): Promise<void> {
    running += 1;
    const receivedAt = time.now();
    const outcome = await consumer.invoke({ Records: batch.map(toRecord) });
    running -= 1;
    const failed = outcome === 'died' ? undefined : outcome.batchItemFailures;
    batch.forEach((message, at) => {
      const done = failed?.every(({ itemIdentifier }) => itemIdentifier !== String(at));
      if (!done) time.at(receivedAt + options.visibilitySeconds * 1000, () => show(message));
    });
    receive();
  }

  return {
    send(body, delaySeconds) {
      const message = { body, sentAt: time.now(), received: 0 };
      const shownAt = time.now() + delaySeconds * 1000 + 20 + 180 * random();
      time.at(shownAt, () => show(message));
      if (random() < 1 / TWICE) time.at(shownAt + 20_000 * random(), () => show({ ...message, received: 0 }));
    },
    dead,
    get forgotten() {
      return forgotten;
    },
    get longest() {
      return longest;
    },
  };
}

function toRecord({ body, sentAt }: Message, at: number): SQSRecord {
  return {
    messageId: String(at),
    receiptHandle: '',
    body,
    attributes: {
      ApproximateReceiveCount: '1',
      SentTimestamp: String(sentAt),
      SenderId: '',
      ApproximateFirstReceiveTimestamp: '',
    },
    messageAttributes: {},
    md5OfBody: '',
    eventSource: 'aws:sqs',
    eventSourceARN: '',
    awsRegion: '',
  };
}
