/** The tick: the work of each minute, independent of the outcome of messages. */
import type { Context } from 'aws-lambda';
import pLimit from 'p-limit';
import type * as z from 'zod';
import { listAccounts } from '../../shared/accounts/accounts.ts';
import type { BUILT_IN_SINKS } from '../../shared/built-in-sinks.ts';
import { oldestUndelivered } from '../../shared/delivery/lag.ts';
import { registerSink, type SinkRecord, toSink } from '../../shared/delivery/sink.ts';
import {
  type DueSink,
  ForwardError,
  indexFormerSinks,
  listPendingWakes,
  readDueSinks,
  toReadyNames,
  wakeSinks,
} from '../../shared/delivery/wakes.ts';
import { createForwarder, startFeed } from '../../shared/log/feed-forwarding.ts';
import { newEpoch } from '../../shared/log/head.ts';
import type { EventLog } from '../../shared/log/log.ts';
import { oldestUnsent } from '../../shared/notifications/oldest-unsent.ts';
import { indexFormerData } from '../../shared/search/indexing.ts';
import { cellLog, keys } from '../../shared/storage/schema.ts';
import type { Key, Table } from '../../shared/storage/table.ts';
import { readBreakerState } from '../../shared/tracking/breaker.ts';
import { claimPolls, duePolls } from '../../shared/tracking/claims.ts';
import type { Telemetry } from '../telemetry.ts';
import {
  CLAIM_SECONDS,
  type DrainMessage,
  MAX_ENTRIES,
  type NotifyMessage,
  type PollMessage,
  type Send,
} from './messages.ts';

/** Dependencies of the handler. */
export interface TickDeps {
  readonly region: string;
  readonly table: Table;
  readonly log: EventLog;
  readonly topicArn: string;
  /** Absent in a cell without a standard topic. */
  readonly standardTopicArn?: string | undefined;
  /** Absent in a cell without an event bus. */
  readonly eventBusArn?: string | undefined;
  /** Queue of polls that run concurrently; messages are delayed until they are due. */
  readonly sendPolls: Send<z.infer<typeof PollMessage>>;
  /** Queue of polls that run alone; messages are delayed as well. */
  readonly sendLonePolls: Send<z.infer<typeof PollMessage>>;
  readonly sendDrains: Send<z.infer<typeof DrainMessage>>;
  /** Absent in a cell without notifications. */
  readonly sendNotify?: Send<z.infer<typeof NotifyMessage>> | undefined;
  readonly telemetry: Pick<Telemetry, 'tick'>;
  /** Epoch ms. */
  readonly now: () => number;
  /** Waits in real time. Tests inject their own. */
  readonly sleep?: (ms: number) => Promise<unknown>;
}

/**
 * How far ahead (s) a tick claims; the queue delays a poll until it is due. The scheduler guarantees a tick
 * within its minute, so two can be nearly two minutes apart, and are when one is lost. A tick itself takes
 * seconds. None of that makes a poll late. A larger value would only leave more polls in progress when a
 * regional outage is noticed.
 */
export const LOOK_AHEAD_SECONDS = 130;

/** The built-in sink of each cell: all events, to the cell's topic. */
export const TOPIC_SINK = 'topic' satisfies BuiltInSink;
/** The built-in sink of cells with a standard topic: all events since it exists. */
export const STANDARD_TOPIC_SINK = 'sns-standard' satisfies BuiltInSink;
/** The built-in sink of cells with an EventBridge bus: all events since it exists. */
export const EVENT_BUS_SINK = 'event-bus' satisfies BuiltInSink;
type BuiltInSink = (typeof BUILT_IN_SINKS)[number];

/**
 * Number of concurrent batches. Accounts are claimed and queued by message batch. If a tick crashes in
 * between, up to 50 accounts wait for their claim to expire.
 */
const BATCHES_AT_ONCE = 5;
/**
 * Maximum number of accounts per tick that are polled alone. A poll that crashes its process makes up to nine
 * others suspects. If very many are suspects, another cause made the polls fail, and polling them one by one
 * would take hours.
 */
const ALONE_PER_TICK = 50;
/**
 * Number of open jobs from which an account is always polled alone. Ten such polls exceed the memory of one
 * process. As suspects they would be polled together again in their next turn, because their phases never
 * change.
 */
const MANY_OPEN_JOBS = 15_000;
/** Maximum number of wake marks handled in one tick, per shard. */
const WAKES_PER_SHARD = 100;
const CALLS_AT_ONCE = 10;
/** Number of logs of which the head and the cursor of a new sink are read by one call, which has at most 100 keys. */
const LOGS_AT_ONCE = 50;
/** Maximum number of pages of an earlier version's jobs and recipients that one tick adds to the search index. */
const FORMER_PAGES = 20;
/**
 * Maximum number of accounts of a cell. For any beyond it, a new sink starts at the beginning of their logs.
 */
const MAX_ACCOUNTS = 100_000;
/** Time (ms) before the tick's timeout from which no more accounts are claimed. */
const TAIL_MS = 10_000;

/**
 * Creates the handler of a cell's tick. It queues due polls, processes wake marks that the stream left
 * behind, and requests drains of sinks with due work: after a wait, or after a lost message. In cells with
 * notifications, it requests sending when something is due.
 */
export function createTickHandler(deps: TickDeps) {
  const { region, table, sendPolls, sendLonePolls, sendDrains, sendNotify, telemetry, now } = deps;
  return async (_event: unknown, context: Pick<Context, 'getRemainingTimeInMillis'>): Promise<void> => {
    const startedAt = now();
    const deadline = startedAt + context.getRemainingTimeInMillis() - TAIL_MS;
    // Concurrently, so that neither failing sinks nor very many accounts delay the other half.
    const finding = findDrains();
    const [polls, drains, state, notifying, waking, indexing] = await Promise.allSettled([
      queuePolls(deadline),
      finding.then(queueDrains),
      finding.then(({ due }) => readCellState(due)),
      requestNotifications(),
      finding.then(({ fault }) => {
        if (fault) throw fault.cause;
      }),
      indexFormerData(table, region, now(), FORMER_PAGES),
    ]);
    const parts = [polls, drains, state, notifying, waking, indexing];
    telemetry.tick({
      whole: parts.every(({ status }) => status === 'fulfilled'),
      ...(polls.status === 'fulfilled' ? polls.value : { claimed: 0, alone: 0 }),
      ...(drains.status === 'fulfilled' ? drains.value : { wakes: 0, drains: 0 }),
      ...(state.status === 'fulfilled' ? state.value : {}),
      ...(notifying.status === 'fulfilled' ? notifying.value : {}),
      ms: now() - startedAt,
    });
    for (const part of parts) if (part.status === 'rejected') throw part.reason;
  };

  /**
   * Returns how many accounts were claimed and queued. On error, the rest stays unclaimed: the next tick
   * finds them.
   */
  async function queuePolls(deadline: number): Promise<{ claimed: number; alone: number }> {
    const until = now() + LOOK_AHEAD_SECONDS * 1000;
    const due = await duePolls(table, region, { now: now(), until, limit: MAX_ACCOUNTS });
    let next = 0;
    let claimed = 0;
    let alone = 0;
    const queueOn = async (): Promise<void> => {
      while (next < due.length && now() < deadline) {
        const batch = due.slice(next, next + MAX_ENTRIES);
        next += MAX_ENTRIES;
        try {
          const claims = await claimPolls(table, batch, { now: now(), claimSeconds: CLAIM_SECONDS });
          const apart = claims.filter(({ suspect, openJobs }) => suspect || openJobs >= MANY_OPEN_JOBS);
          const lone = new Set(apart.slice(0, ALONE_PER_TICK - alone));
          alone += lone.size;
          const messages = (some: typeof claims) => some.map(({ account, dueAt }) => ({ account, dueAt }));
          const sent = await Promise.allSettled([
            sendPolls(messages(claims.filter((claim) => !lone.has(claim)))),
            sendLonePolls(messages([...lone])),
          ]);
          for (const outcome of sent) if (outcome.status === 'rejected') throw outcome.reason;
          claimed += claims.length;
        } catch (cause) {
          next = due.length;
          throw cause;
        }
      }
    };
    const outcomes = await Promise.allSettled(Array.from({ length: BATCHES_AT_ONCE }, queueOn));
    for (const outcome of outcomes) if (outcome.status === 'rejected') throw outcome.reason;
    return { claimed, alone };
  }

  async function findDrains(): Promise<PendingWork> {
    await indexFormerSinks(table, region, now());
    await keepBuiltInSinks(deps);
    const { leastEpoch } = deps.log;
    const starting = startFeed(table, region, { epoch: newEpoch(now()), leastEpoch, now });
    const [started] = await Promise.allSettled([starting]);
    const awakened = await wakePendingSinks(deps, leastEpoch);
    return started.status === 'rejected' ? { ...awakened, fault: { cause: started.reason } } : awakened;
  }

  async function queueDrains({ wakes, sinks }: PendingWork): Promise<{ wakes: number; drains: number }> {
    await sendDrains(sinks.map((sink) => ({ sink })));
    return { wakes, drains: sinks.length };
  }

  async function requestNotifications(): Promise<{ unsentSeconds?: number }> {
    const dueSince = sendNotify && (await oldestUnsent(table, region, now()));
    if (dueSince === undefined) return {};
    await sendNotify?.([{ dueSince }]);
    return { unsentSeconds: Math.max(0, Math.round((now() - dueSince) / 1000)) };
  }

  /** Returns the state of the cell as a whole. */
  async function readCellState(due: readonly DueSink[]) {
    const at = now();
    const [{ openedAt }, oldest] = await Promise.all([
      readBreakerState(table, region),
      oldestUndelivered(table, due, at),
    ]);
    return {
      outage: openedAt !== null,
      oldestSeconds: oldest === undefined ? 0 : Math.max(0, Math.round((at - oldest.time) / 1000)),
      ...(oldest && {
        oldestSink: oldest.sink,
        oldestAccount: oldest.account,
        oldestSequence: oldest.sequence,
      }),
    };
  }
}

/** The work found for sinks: remaining wake marks, and the sinks with due work. */
interface PendingWork {
  readonly wakes: number;
  readonly due: readonly DueSink[];
  /** Drain names of the sinks that can be drained now. */
  readonly sinks: readonly string[];
  /** The first error; all other work was done. */
  readonly fault?: { readonly cause: unknown };
}

/**
 * Processes the wake marks that the stream left behind, forwards their logs to the cell feed, and returns the
 * sinks with due work.
 */
async function wakePendingSinks(
  { table, region, now, sleep }: TickDeps,
  leastEpoch: string,
): Promise<PendingWork> {
  const limit = pLimit(CALLS_AT_ONCE);
  const forwarder = createForwarder(table, { leastEpoch, now, ...(sleep && { sleep }) });
  const wakes = await listPendingWakes(table, region, WAKES_PER_SHARD);
  let fault: PendingWork['fault'];
  const woken = await limit.map(wakes, async ({ ref, sequence }) => {
    try {
      return await wakeSinks(table, ref, sequence, now(), () => forwarder.forward(ref));
    } catch (cause) {
      // Neither the other accounts nor delivery depends on it; the mark stays.
      fault ??= { cause };
      return cause instanceof ForwardError ? cause.sinks : [];
    }
  });
  // The index may not yet contain what was marked just now, so those sinks are added.
  const due = await readDueSinks(table, region, now());
  const sinks = [...new Set([...woken.flat(), ...toReadyNames(due, now())])];
  return { wakes: wakes.length, due, sinks, ...(fault && { fault }) };
}

/** Creates the built-in sinks of a new cell, and updates their targets when those were replaced. */
async function keepBuiltInSinks(deps: TickDeps): Promise<void> {
  const { region, table, log, topicArn, now } = deps;
  const topic = (await readSink(deps, TOPIC_SINK)) ?? newSink(region, TOPIC_SINK, 'sns');
  if (topic.target !== topicArn) {
    // Without accounts, no cursor is created: the topic gets every log from its beginning.
    await registerSink(table, log, { ...topic, target: topicArn }, [], now());
  }
  await keepOptionalSink(deps, STANDARD_TOPIC_SINK, 'sns', deps.standardTopicArn);
  await keepOptionalSink(deps, EVENT_BUS_SINK, 'eventbridge', deps.eventBusArn);
}

/** Keeps a sink that a setting of the cell turns on and off. `target` is absent if it is off. */
async function keepOptionalSink(
  deps: TickDeps,
  id: string,
  kind: SinkRecord['kind'],
  target: string | undefined,
): Promise<void> {
  const { region, table, log, now } = deps;
  const found = await readSink(deps, id);
  if (target !== undefined && found?.target !== target) {
    if (!found) await startAtHeads(deps, id);
    const sink = found ?? newSink(region, id, kind);
    const paused = sink.paused && sink.target !== NO_TARGET;
    await registerSink(table, log, { ...sink, target, paused }, [], now());
  }
  if (target === undefined && found && !found.paused) {
    // Its cursors stay, in case the target returns. The target distinguishes this from an operator's pause.
    await table.write({ update: keys.sink(region, id), set: { paused: true, target: NO_TARGET } });
  }
}

async function readSink({ region, table }: TickDeps, id: string): Promise<SinkRecord | undefined> {
  const item = await table.get(keys.sink(region, id));
  return item && toSink(item);
}

/** Target of a sink whose topic or bus does not exist, or no longer. */
const NO_TARGET = 'none';

function newSink(region: string, id: string, kind: SinkRecord['kind']): SinkRecord {
  return { region, id, kind, target: NO_TARGET, accounts: [], types: [], paused: false };
}

/**
 * Writes the cursors of a new sink at the current heads, so that its subscribers get no e-mails about old
 * events. With very many accounts, the tick can end before the last one: the next tick writes only those that are missing.
 */
async function startAtHeads({ region, table }: TickDeps, sink: string): Promise<void> {
  const limit = pLimit(CALLS_AT_ONCE);
  const logs = [...(await listAccounts(table, region, MAX_ACCOUNTS)), cellLog(region)];
  for (let at = 0; at < logs.length; at += LOGS_AT_ONCE) {
    const pairs = logs
      .slice(at, at + LOGS_AT_ONCE)
      .map((log) => ({ head: keys.head(log), cursor: keys.cursor(region, sink, log.account) }));
    const items = await table.getMany(pairs.flatMap(({ head, cursor }) => [head, cursor]));
    const find = ({ pk, sk }: Key) => items.find((item) => item.pk === pk && item.sk === sk);
    await limit.map(
      pairs.filter(({ cursor }) => !find(cursor)),
      ({ head, cursor }) =>
        table.write({
          put: { ...cursor, sink, position: Number(find(head)?.sequence ?? 0) },
          when: [['pk', 'absent']],
        }),
    );
  }
}
