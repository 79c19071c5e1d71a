/** The tick: what has to happen each minute, whatever became of messages. */
import type { Context } from 'aws-lambda';
import pLimit from 'p-limit';
import type * as z from 'zod';
import { createForwarder, startFeed } from '../../shared/log/cell-feed.ts';
import { type EventLog, newEpoch } from '../../shared/log/log.ts';
import { oldestUnsent } from '../../shared/notifications/waiting.ts';
import { oldestUndelivered } from '../../shared/sinks/behind.ts';
import type { BUILT_IN_SINKS } from '../../shared/sinks/built-in.ts';
import {
  dueSinks,
  ForwardError,
  leftoverWakes,
  listSinks,
  registerSink,
  type SinkRecord,
  wakeSinks,
} from '../../shared/sinks/sink.ts';
import { cellLog, keys } from '../../shared/table/schema.ts';
import type { Table } from '../../shared/table/table.ts';
import { claimPolls, duePolls, listAccounts } from '../../shared/tracking/accounts.ts';
import { readUpstream } from '../../shared/tracking/breaker.ts';
import type { Telemetry } from '../telemetry.ts';
import {
  CLAIM_SECONDS,
  type DrainMessage,
  MAX_ENTRIES,
  type NotifyMessage,
  type PollMessage,
  type Send,
} from './messages.ts';

/** What the handler needs. */
export interface TickDeps {
  readonly region: string;
  readonly table: Table;
  readonly log: EventLog;
  readonly topicArn: string;
  /** Absent in a cell without a standard topic. */
  readonly standardTopicArn?: string | undefined;
  /** To be received when they are due, and polled side by side. */
  readonly sendPolls: Send<z.infer<typeof PollMessage>>;
  /** The same, and each polled alone. */
  readonly sendLonePolls: Send<z.infer<typeof PollMessage>>;
  readonly sendDrains: Send<z.infer<typeof DrainMessage>>;
  /** Absent in a cell that tells customers nothing. */
  readonly sendNotify?: Send<z.infer<typeof NotifyMessage>> | undefined;
  readonly telemetry: Pick<Telemetry, 'tick'>;
  /** Epoch ms. */
  readonly now: () => number;
}

/**
 * How far ahead a tick claims; the queue keeps a poll until it is due. The scheduler promises a tick within its minute, so
 * two can be nearly two minutes apart, and are when one is lost; and a tick takes seconds itself. None of that makes a poll
 * late. More would only have more polls on their way into an outage of the region when it is noticed.
 */
export const LOOK_AHEAD_SECONDS = 130;

/** The built-in sink of each cell: everything, to the cell's topic. */
export const TOPIC_SINK = 'topic' satisfies BuiltInSink;
/** The built-in sink of cells with a standard topic: everything since there is one. */
export const STANDARD_TOPIC_SINK = 'sns-standard' satisfies BuiltInSink;
type BuiltInSink = (typeof BUILT_IN_SINKS)[number];

/**
 * Accounts are claimed and queued by the message batch, so many batches side by side: when a tick dies in between, up to
 * 50 accounts wait for their claim to run out.
 */
const BATCHES_AT_ONCE = 5;
/**
 * Accounts of one tick that are polled alone, at most. One that takes its process with it leaves up to nine others under
 * suspicion; where very many are, something else made polls die, and one by one they would take hours.
 */
const ALONE_PER_TICK = 50;
/**
 * From so many open jobs on an account is always polled alone. Ten such polls are more than the memory of one process;
 * found out as suspects, they would go together again in their next turn, for their turns are the same for ever.
 */
const MANY_OPEN_JOBS = 15_000;
/** Wake marks taken up in one tick, per shard. */
const WAKES_PER_SHARD = 100;
const CALLS_AT_ONCE = 10;
/** Accounts of a cell, at most: of any beyond them a new sink tells from the beginning of their logs. */
const MAX_ACCOUNTS = 100_000;
/** Milliseconds before the tick's time is up from which on no more accounts are claimed. */
const TAIL_MS = 10_000;

/**
 * One tick of a cell: queues the polls that are due, works off wake marks that the stream has left behind, and asks for
 * drains of sinks that have something due and nobody woken for them: after a wait, or after a message was lost. Where customers
 * are told, it asks for that when something is due.
 */
export function createTickHandler(deps: TickDeps) {
  const { region, table, sendPolls, sendLonePolls, sendDrains, sendNotify, telemetry, now } = deps;
  return async (_event: unknown, context: Pick<Context, 'getRemainingTimeInMillis'>): Promise<void> => {
    const startedAt = now();
    const deadline = startedAt + context.getRemainingTimeInMillis() - TAIL_MS;
    // Side by side, so that neither trouble with a sink nor very many accounts keep the other half waiting.
    const finding = findDrains();
    const [polls, drains, state, telling, waking] = await Promise.allSettled([
      queuePolls(deadline),
      finding.then(queueDrains),
      finding.then(({ sinks }) => stateOfCell(sinks)),
      askToNotify(),
      finding.then(({ fault }) => {
        if (fault) throw fault.cause;
      }),
    ]);
    const parts = [polls, drains, state, telling, waking];
    telemetry.tick({
      whole: parts.every(({ status }) => status === 'fulfilled'),
      ...(polls.status === 'fulfilled' ? polls.value : { claimed: 0, alone: 0 }),
      ...(drains.status === 'fulfilled' ? drains.value : { wakes: 0, drains: 0 }),
      ...(state.status === 'fulfilled' ? state.value : {}),
      ...(telling.status === 'fulfilled' ? telling.value : {}),
      ms: now() - startedAt,
    });
    for (const part of parts) if (part.status === 'rejected') throw part.reason;
  };

  /** How many accounts were claimed and queued. Throws with the rest unclaimed: the next tick finds them. */
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

  async function findDrains(): Promise<Awakened> {
    await keepTopicSinks(deps);
    const { leastEpoch } = deps.log;
    const starting = startFeed(table, region, { epoch: newEpoch(now()), leastEpoch, now });
    const [started] = await Promise.allSettled([starting]);
    const awakened = await awaken(table, region, leastEpoch, now);
    return started.status === 'rejected' ? { ...awakened, fault: { cause: started.reason } } : awakened;
  }

  async function queueDrains({ wakes, sinks }: Awakened): Promise<{ wakes: number; drains: number }> {
    await sendDrains(sinks.map((sink) => ({ sink })));
    return { wakes, drains: sinks.length };
  }

  async function askToNotify(): Promise<{ unsentSeconds?: number }> {
    const dueSince = sendNotify && (await oldestUnsent(table, region, now()));
    if (dueSince === undefined) return {};
    await sendNotify?.([{ dueSince }]);
    return { unsentSeconds: Math.max(0, Math.round((now() - dueSince) / 1000)) };
  }

  /** How the cell is doing, as nobody sees who looks at one account or one sink; `due` are the sinks with something due. */
  async function stateOfCell(due: readonly string[]) {
    const at = now();
    const [{ openedAt }, oldest] = await Promise.all([
      readUpstream(table, region),
      oldestUndelivered(table, region, due, at),
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

/** What was found for sinks to do: wake marks that were left, and the sinks that have something due. */
interface Awakened {
  readonly wakes: number;
  readonly sinks: readonly string[];
  /** What went wrong on the way, the first of it: all the rest was done. */
  readonly fault?: { readonly cause: unknown };
}

/** Marks what the stream left behind, takes it into the cell feed, and names the sinks that have something due. */
async function awaken(
  table: Table,
  region: string,
  leastEpoch: string,
  now: () => number,
): Promise<Awakened> {
  const limit = pLimit(CALLS_AT_ONCE);
  const forwarder = createForwarder(table, { leastEpoch, now });
  const wakes = await leftoverWakes(table, region, WAKES_PER_SHARD);
  let fault: Awakened['fault'];
  const woken = await limit.map(wakes, async ({ ref, sequence }) => {
    try {
      return await wakeSinks(table, ref, sequence, now(), () => forwarder.forward(ref));
    } catch (cause) {
      // Neither the other accounts nor delivery hang on it; the mark stays.
      fault ??= { cause };
      return cause instanceof ForwardError ? cause.sinks : [];
    }
  });
  // The index may not show yet what was marked just now, so those are named as well.
  const due = await dueSinks(table, region, now());
  return { wakes: wakes.length, sinks: [...new Set([...woken.flat(), ...due])], ...(fault && { fault }) };
}

/** Makes the built-in sinks of a new cell, and points them to their topics again when those were replaced. */
async function keepTopicSinks(deps: TickDeps): Promise<void> {
  const { region, table, log, topicArn, standardTopicArn } = deps;
  const known = await listSinks(table, region);
  const topic = known.find(({ id }) => id === TOPIC_SINK) ?? newTopicSink(region, TOPIC_SINK);
  if (topic.target !== topicArn) {
    // Without accounts no cursor is made: the topic gets every log from its beginning.
    await registerSink(table, log, { ...topic, target: topicArn }, []);
  }

  const standard = known.find(({ id }) => id === STANDARD_TOPIC_SINK);
  if (standardTopicArn !== undefined && standard?.target !== standardTopicArn) {
    if (!standard) await startAtHeads(deps, STANDARD_TOPIC_SINK);
    const sink = standard ?? newTopicSink(region, STANDARD_TOPIC_SINK);
    const paused = sink.paused && sink.target !== NO_TOPIC;
    await registerSink(table, log, { ...sink, target: standardTopicArn, paused }, []);
  }
  if (standardTopicArn === undefined && standard && !standard.paused) {
    // Its cursors stay, should the topic come back. The target tells that it was not an operator who paused it.
    const set = { paused: true, target: NO_TOPIC };
    await table.write({ update: keys.sink(region, STANDARD_TOPIC_SINK), set });
  }
}

/** The target of a sink whose topic is not there, or no longer. */
const NO_TOPIC = 'none';

function newTopicSink(region: string, id: string): SinkRecord {
  return { region, id, kind: 'sns', target: NO_TOPIC, accounts: [], types: [], paused: false };
}

/** Puts the cursors of a new sink where the logs stand, so that nobody is told by e-mail of what was long ago. */
async function startAtHeads({ region, table, log }: TickDeps, sink: string): Promise<void> {
  const limit = pLimit(CALLS_AT_ONCE);
  const logs = [...(await listAccounts(table, region, MAX_ACCOUNTS)), cellLog(region)];
  await limit.map(logs, async ({ account }) => {
    const head = await log.head({ region, account });
    await table.write({
      put: { ...keys.cursor(region, sink, account), sink, position: head?.sequence ?? 0 },
      when: [['pk', 'absent']],
    });
  });
}
