/**
 * The sink that folds events into threads. A redelivered event is either folded already or not, so redelivery changes nothing.
 */
import { randomUUID } from 'node:crypto';
import pLimit from 'p-limit';
import type { Delivery, DeliveryOutcome, SinkPort } from '../delivery/sink.ts';
import type { LoggedEvent } from '../log/log.ts';
import type { AccountRef } from '../storage/schema.ts';
import { TableError } from '../storage/table.ts';
import { recordUnfoldable } from './notice-history.ts';
import { type FoldSettings, readFoldSettings } from './settings.ts';
import { fold, moveBetweenThreads, removeStale, type Thread, threadName } from './thread.ts';
import { parseThreadEvent, type ThreadEvent } from './thread-event.ts';
import {
  fits,
  load,
  type NoticeDeps,
  retryOnConflict,
  sizeOfThread,
  THREADS_AT_ONCE,
  toWrite,
} from './thread-items.ts';
import { FOLDED_TYPES } from './types.ts';

/** Maximum number of events folded together, each of a different job. */
const MAX_BATCH = 100;

/** Creates the sink that folds events into threads. Accepts every event: events that cannot be folded are recorded in the history. */
export function createNotificationsSink(deps: NoticeDeps): SinkPort {
  return {
    maxBatch: MAX_BATCH,
    async deliver(deliveries) {
      const outcomes = new Map<Delivery, DeliveryOutcome>();
      const live = deliveries.filter(({ replay }) => !replay);
      await Promise.all(
        [...Map.groupBy(live, ({ event }) => `${event.region}#${event.account}`).values()].map((some) =>
          deliverToAccount(deps, some, outcomes),
        ),
      );
      return deliveries.map((one) => outcomes.get(one) ?? { kind: 'delivered' });
    },
  };
}

/** Folds events of one account. Events that cannot be folded now get an error in `outcomes`. */
async function deliverToAccount(
  deps: NoticeDeps,
  deliveries: readonly Delivery[],
  outcomes: Map<Delivery, DeliveryOutcome>,
): Promise<void> {
  const [first] = deliveries;
  if (!first) return;
  const ref = { region: first.event.region, account: first.event.account };
  const attempt = async (some: readonly Delivery[], action: () => Promise<void>): Promise<void> => {
    try {
      await action().catch(async (cause: unknown) => {
        if (cause instanceof TableError) throw cause;
        // The event would fail each time, and events of other jobs must not wait for it.
        const why = `The event could not be processed: ${cause instanceof Error ? cause.name : 'unknown error'}.`;
        for (const { event } of some) await recordUnfoldable(deps, ref, event, why);
      });
    } catch (cause) {
      const reason =
        cause instanceof TableError ? cause.message : 'The failure of the event could not be recorded.';
      for (const one of some) outcomes.set(one, { kind: 'retry', reason });
    }
  };
  await attempt(deliveries, async () => {
    const pace = await readFoldSettings(deps.table, ref);
    if (!pace) return;
    const limit = pLimit(THREADS_AT_ONCE);
    const reads = deliveries
      // Observations from before notifications were enabled are not sent.
      .filter(({ event }) => Object.hasOwn(FOLDED_TYPES, event.type) && event.time >= pace.since)
      .map((delivery) => ({ delivery, event: delivery.event, ...parseThreadEvent(delivery.event) }));
    const parsed = reads.filter((read) => 'parsed' in read);
    const isMove = (read: ParsedEvent): boolean => previousThreadName(read.parsed) !== undefined;
    const threads = Map.groupBy(
      parsed.filter((read) => !isMove(read)),
      ({ parsed: { job } }) => threadName(job.jobNumber, job.orderGroup),
    );
    await limit.map(
      reads.filter((read) => 'problem' in read),
      ({ delivery, event, problem }) =>
        attempt([delivery], () =>
          recordUnfoldable(deps, ref, event, `The event could not be parsed: ${problem}.`),
        ),
    );
    await limit.map([...threads], ([thread, some]) =>
      attempt(
        some.map(({ delivery }) => delivery),
        () => foldEvents(deps, ref, thread, some, pace),
      ),
    );
    for (const read of parsed.filter(isMove)) {
      await attempt([read.delivery], () => moveJob(deps, ref, read, pace));
    }
  });
}

/** Returns the thread that an event moved the job from. */
function previousThreadName({ job, changes }: ThreadEvent): string | undefined {
  const from = changes.orderGroup && threadName(job.jobNumber, changes.orderGroup.from);
  return from === threadName(job.jobNumber, job.orderGroup) ? undefined : from;
}

/** An event and its parsed fields. */
interface ParsedEvent {
  readonly parsed: ThreadEvent;
  readonly event: LoggedEvent;
}

/** Folds events of several jobs into their thread with one write. */
async function foldEvents(
  deps: NoticeDeps,
  ref: AccountRef,
  name: string,
  events: readonly ParsedEvent[],
  pace: FoldSettings,
): Promise<void> {
  await retryOnConflict(`folded into a thread of ${ref.account}`, async () => {
    const stored = await load(deps.table, ref, name);
    const folded = ({ parsed }: ParsedEvent, thread: Thread): Thread =>
      fold(thread, parsed, pace.windowMs, deps.now());
    const latest = Math.max(...events.map(({ parsed: { time } }) => time));
    let thread = removeStale(
      events.reduce((before, read) => folded(read, before), stored.thread),
      latest,
    );
    const tooLarge: ParsedEvent[] = [];
    if (!fits(thread)) {
      // Folds them one by one, to find those that do not fit.
      thread = stored.thread;
      for (const read of events) {
        const after = folded(read, thread);
        if (fits(after) || sizeOfThread(after) <= sizeOfThread(thread)) thread = after;
        else tooLarge.push(read);
      }
    }
    const write = toWrite(deps, ref, name, stored, thread);
    if (write && !(await deps.table.write(write)).done) return undefined;
    for (const { event } of tooLarge) await recordUnfoldable(deps, ref, event, TOO_LARGE);
    return true;
  });
}

const TOO_LARGE = 'The state of its order group exceeds the maximum size.';

/** Moves a job to another thread and folds the event that causes the move. */
async function moveJob(
  deps: NoticeDeps,
  ref: AccountRef,
  { parsed, event }: ParsedEvent,
  pace: FoldSettings,
): Promise<void> {
  const { table, now } = deps;
  const toName = threadName(parsed.job.jobNumber, parsed.job.orderGroup);
  const fromName = previousThreadName(parsed) ?? toName;
  await retryOnConflict(`moved to a thread of ${ref.account}`, async () => {
    const [from, to] = await Promise.all([load(table, ref, fromName), load(table, ref, toName)]);
    const moved = moveBetweenThreads(from.thread, to.thread, parsed, toName);
    const after = removeStale(fold(moved.to, parsed, pace.windowMs, now()), parsed.time);
    if (!fits(after)) {
      await recordUnfoldable(deps, ref, event, TOO_LARGE);
      return true;
    }
    const writes = [
      toWrite(deps, ref, fromName, from, moved.from),
      toWrite(deps, ref, toName, to, after),
    ].filter((write) => write !== undefined);
    if (writes.length === 0) return true;
    const { done } = await table.transact(writes, randomUUID());
    return done ? true : undefined;
  });
}
