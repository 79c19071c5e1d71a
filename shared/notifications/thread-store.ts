/**
 * Storage of threads: the sink that folds events into them, and the notices that are closed from them.
 *
 * drain ─ sink ─▶ thread ─ window expired, all of it folded ─▶ closed notice ─ converted to messages ─▶ finished
 * └──────── one item, each write only over the one before ────────┘
 *
 * A crash leaves the item as the last write left it. A redelivered event is either folded already or not. A notice that was closed and not
 * finished is handed out again with the same content and id.
 */
import { randomUUID } from 'node:crypto';
import { deflateRawSync, inflateRawSync } from 'node:zlib';
import pLimit from 'p-limit';
import type { Delivery, DeliveryOutcome, SinkPort } from '../delivery/sink.ts';
import type { LoggedEvent } from '../log/log.ts';
import {
  type AccountRef,
  dueUntil,
  keys,
  logPk,
  NOTIFY_SHARDS,
  notifyDue,
  notifyDuePk,
  threadPk,
} from '../storage/schema.ts';
import { type Item, type Key, MAX_ITEM_BYTES, type Table, TableError, type Write } from '../storage/table.ts';
import { recordNoMessage, toMessageId, toWorkId } from './messages.ts';
import { readSettings } from './settings.ts';
import {
  type Closing,
  checkNotice,
  closeWindows,
  emptyThread,
  type FrozenNotice,
  fold,
  isEmptyThread,
  moveBetweenThreads,
  type NoticeScope,
  nextDueTime,
  parseThreadEvent,
  pendingWindows,
  removeNotice,
  removeStale,
  type Thread,
  type ThreadEvent,
  threadName,
} from './thread.ts';
import {
  type Message,
  type MessageKind,
  type MessageReason,
  NOTIFICATIONS_SINK,
  type NoticeContent,
} from './types.ts';

/** Dependencies of notices. */
export interface NoticeDeps {
  readonly table: Table;
  readonly history: Table;
  /** Epoch ms. */
  readonly now: () => number;
  /** Wait after a window's end for events that were observed in it, ms. Default: {@link GRACE_MS}. Must be the same in all processes. */
  readonly graceMs?: number;
}

/** A notice with fixed content that is to become messages. */
export interface ClosedNotice {
  readonly ref: AccountRef;
  readonly thread: string;
  /** Unique within the thread. */
  readonly id: string;
  readonly content: NoticeContent;
  /** Fields by which recipients of its jobs are matched: in full length, unlike the displayed ones. */
  readonly scopes: readonly NoticeScope[];
  /** Jobs whose dispatch was notified before and has been revoked since. Sent only to recipients of revocations (`dispatch_revoked`). */
  readonly again: readonly number[];
  /** Ids of the last notices sent in this thread, oldest first. */
  readonly earlier: readonly string[];
}

const GRACE_MS = 15_000;
/** Time that a process has to finish a notice before it is handed out again. */
const REISSUE_MS = 60_000;
/** Delay until the next check of a thread whose window has expired while events are still to be folded. */
const RECHECK_MS = 5_000;
/** Delay until the next check of a thread that failed. */
const FAILED_MS = 60_000;
/** Delay until the next check of a thread that cannot be parsed. */
const UNREADABLE_MS = 3_600_000;
/** Maximum number of further index reads while the threads found so far yield no notice. */
const MAX_ROUNDS = 10;
/** Maximum disorder of observation times in the log: a poll takes two minutes at most. */
const DISORDER_MS = 120_000;
/** Retention of threads after their last change. */
const KEPT_MS = 180 * 86_400_000;
/** Size from which a thread is compressed, bytes. */
const PACKED_FROM = 8_000;
/** Maximum size of a thread when an event is added, bytes. Its notices are stored twice for a short time and must fit as well. */
const MAX_THREAD_BYTES = 200_000;
/** Maximum size when a notice is closed, with a margin for the other attributes of the item. */
const MAX_CLOSED_BYTES = MAX_ITEM_BYTES - 20_000;
/** Maximum number of retries after concurrent modification. */
const ATTEMPTS = 50;
const THREADS_AT_ONCE = 8;
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
        [...groupBy(live, ({ event }) => `${event.region}#${event.account}`).values()].map((some) =>
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
        const why = `The event could not be folded: ${cause instanceof Error ? cause.name : 'a fault'}.`;
        for (const { event } of some) await recordUnfoldable(deps, ref, event, why);
      });
    } catch (cause) {
      const reason = cause instanceof TableError ? cause.message : 'What became of it could not be noted.';
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
    const threads = groupBy(
      parsed.filter((read) => !isMove(read)),
      ({ parsed: { job } }) => threadName(job.jobNumber, job.orderGroup),
    );
    await limit.map(
      reads.filter((read) => 'problem' in read),
      ({ delivery, event, problem }) =>
        attempt([delivery], () =>
          recordUnfoldable(deps, ref, event, `The event could not be read: ${problem}.`),
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

interface FoldSettings {
  readonly since: number;
  readonly windowMs: number;
  readonly maxAgeMs: number;
}

/** Reads the settings that folding needs. `undefined` if the account does not notify. */
async function readFoldSettings(table: Table, ref: AccountRef): Promise<FoldSettings | undefined> {
  const settings = await readSettings(table, ref);
  if (!settings?.enabled) return undefined;
  const { since, windowSeconds, maxAgeHours } = settings;
  return { since, windowMs: windowSeconds * 1000, maxAgeMs: maxAgeHours * 3_600_000 };
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

const TOO_LARGE = 'There is more to say about its order group than can be kept.';

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

/**
 * Closes due windows, up to about `limit` notices, and hands out again notices that were not finished within a minute. Notices that are not
 * sent (too old, undone, turned off) are recorded in the history and not returned. A thread that fails is reported to `failed` and delayed.
 * Throws if all of them fail.
 */
export async function takeDueNotices(
  deps: NoticeDeps,
  region: string,
  limit: number,
  failed?: (ref: AccountRef, cause: unknown) => void,
): Promise<ClosedNotice[]> {
  const { table, now } = deps;
  const accounts = new Map<string, Promise<AccountState>>();
  const readAccountOnce = (ref: AccountRef): Promise<AccountState> => {
    const known = accounts.get(ref.account) ?? readAccount(table, ref);
    accounts.set(ref.account, known);
    return known;
  };
  const notices: ClosedNotice[] = [];
  let isAnyDone = false;
  let fault: { readonly cause: unknown } | undefined;
  for (let round = 0; round < MAX_ROUNDS && notices.length < limit; round += 1) {
    const due = await dueThreads(table, region, now(), limit);
    await pLimit(THREADS_AT_ONCE).map(due, async ({ pk, sk }) => {
      if (notices.length >= limit) return;
      const ref = { region, account: pk.slice(threadPk({ region, account: '' }).length) };
      // Index items have more attributes than the key, and DynamoDB rejects them as a key.
      const key = { pk, sk };
      try {
        notices.push(...(await takeDueFromThread(deps, ref, key, await readAccountOnce(ref))));
        isAnyDone = true;
      } catch (cause) {
        fault ??= { cause };
        failed?.(ref, cause);
        await postpone(table, ref, key, now() + FAILED_MS).catch(() => undefined);
      }
    });
    // Threads that wait for events are delayed now, so others may be first in the index.
    if (due.length < limit) break;
  }
  if (fault && !isAnyDone) throw fault.cause;
  return notices.sort((a, b) => a.content.observedAt - b.content.observedAt);
}

/** Returns the keys of threads with windows to close or notices to hand out again, longest due first. */
async function dueThreads(table: Table, region: string, now: number, limit: number): Promise<Item[]> {
  const shards = await Promise.all(
    Array.from({ length: NOTIFY_SHARDS }, (_, shard) =>
      table.query({ index: 'due', pk: notifyDuePk('notices', region, shard), to: dueUntil(now), limit }),
    ),
  );
  const due = shards.flat().sort((a, b) => (String(a.dueSk) < String(b.dueSk) ? -1 : 1));
  return due.slice(0, limit);
}

/** Postpones a thread to `dueAt` (epoch ms), whatever its content. */
async function postpone(table: Table, ref: AccountRef, key: Key, dueAt: number): Promise<void> {
  const place = notifyDue('notices', ref, key.sk, dueAt);
  await table.write({ update: key, set: place, when: [['pk', 'present']] });
}

/** State of an account that closing depends on. */
interface AccountState {
  readonly pace: FoldSettings | undefined;
  /** All events observed before this time (epoch ms) are folded. */
  readonly foldedTo: number;
}

async function readAccount(table: Table, ref: AccountRef): Promise<AccountState> {
  const foldedTo = await readFoldedTo(table, ref);
  return { pace: await readFoldSettings(table, ref), foldedTo };
}

/** Returns the time before which all observed events in the log are folded (epoch ms). */
async function readFoldedTo(table: Table, ref: AccountRef): Promise<number> {
  const cursorKey = keys.cursor(ref.region, NOTIFICATIONS_SINK, ref.account);
  // The head is read before the cursor: the cursor only advances, so a cursor at this head has passed all events up to it.
  const head = await table.get(keys.head(ref));
  const cursor = await table.get(cursorKey);
  const position = Number(cursor?.position ?? 0);
  if (!head || !cursor || position >= Number(head.sequence)) return Number.POSITIVE_INFINITY;
  const [next] = await table.query({ pk: logPk(ref), after: keys.event(ref, position).sk, limit: 1 });
  return next ? Number(next.time) - DISORDER_MS : Number.POSITIVE_INFINITY;
}

/** Closes due windows of one thread. */
async function takeDueFromThread(
  deps: NoticeDeps,
  ref: AccountRef,
  key: Key,
  { pace, foldedTo }: AccountState,
): Promise<ClosedNotice[]> {
  const { table, now, graceMs = GRACE_MS } = deps;
  return retryOnConflict(`closed in a thread of ${ref.account}`, async () => {
    const item = await table.get(key);
    if (!item) return [];
    const at = now();
    const stored = parseStored(item);
    if (!stored) {
      // The operator has to repair the item. Other threads proceed meanwhile.
      await postpone(table, ref, key, at + UNREADABLE_MS);
      return [];
    }
    const giveAt = at + REISSUE_MS;
    const closing = { now: at, graceMs, foldedTo, settings: pace ?? null, giveAt };
    const closed = closeWhatFits(stored.thread, closing);
    const known = new Set(stored.thread.frozen.map(({ id }) => id));
    // A later notice must not overtake one that is being converted to messages.
    const held = closed.frozen.findIndex((notice) => notice.giveAt > at && known.has(notice.id));
    const given = held < 0 ? closed.frozen : closed.frozen.slice(0, held);
    const thread = {
      ...closed,
      frozen: closed.frozen.map((notice) => (given.includes(notice) ? { ...notice, giveAt } : notice)),
    };
    const due = nextDueTime(thread, graceMs);
    const notBefore = due !== undefined && due <= at ? at + RECHECK_MS : 0;
    const write = toWrite(deps, ref, stored.name, stored, thread, notBefore);
    if (write && !(await table.write(write)).done) return undefined;
    for (const notice of given) {
      if (notice.because === null) continue;
      await recordUnsent(deps, ref, stored.name, notice, notice.because);
      await finish(deps, ref, stored.name, notice.id);
    }
    return given
      .filter(({ because }) => because === null)
      .map(({ id, content, scopes, again, earlier }) => {
        return { ref, thread: stored.name, id, content, scopes, again, earlier };
      });
  });
}

/** Closes what fits into the item: all windows, or one, or none until earlier notices are finished. */
function closeWhatFits(thread: Thread, closing: Closing): Thread {
  const hasRoom = (closed: Thread): boolean => sizeOfThread(closed) <= MAX_CLOSED_BYTES;
  const all = closeWindows(thread, closing);
  if (hasRoom(all)) return all;
  const one = closeWindows(thread, { ...closing, most: 1 });
  return hasRoom(one) || thread.frozen.length === 0 ? one : thread;
}

function parseStored(item: Item): Stored | undefined {
  try {
    return toStored(item);
  } catch {
    return undefined;
  }
}

/** Marks a notice as finished: it has become messages and is not handed out again. */
export function finishNotice(deps: NoticeDeps, { ref, thread, id }: ClosedNotice): Promise<void> {
  return finish(deps, ref, thread, id);
}

async function finish(deps: NoticeDeps, ref: AccountRef, name: string, id: string): Promise<void> {
  await retryOnConflict(`finished in a thread of ${ref.account}`, async () => {
    const stored = await load(deps.table, ref, name);
    const write = toWrite(deps, ref, name, stored, removeNotice(stored.thread, id));
    return !write || (await deps.table.write(write)).done ? true : undefined;
  });
}

/** Returns the jobs of which a notice is still true. */
export async function findValidJobs(
  table: Table,
  ref: AccountRef,
  thread: string,
  content: NoticeContent,
): Promise<ReadonlySet<number>> {
  const threads = new Map<string, Promise<Stored>>();
  const loaded = (name: string): Promise<Stored> => {
    const known = threads.get(name) ?? load(table, ref, name);
    threads.set(name, known);
    return known;
  };
  const valid = new Set<number>();
  for (const facts of content.jobs) {
    let name = thread;
    const visited = new Set<string>();
    while (!visited.has(name)) {
      visited.add(name);
      const answer = checkNotice((await loaded(name)).thread, content, facts);
      if (answer === true) valid.add(facts.jobNumber);
      if (typeof answer === 'boolean') break;
      name = answer.movedTo;
    }
  }
  return valid;
}

/** Returns the open windows of a job: the kinds and jobs to be notified, and the earliest time (epoch ms). */
export async function listUpcoming(
  table: Table,
  ref: AccountRef,
  jobNumber: number,
  orderGroup: string | null,
  graceMs = GRACE_MS,
): Promise<{ kind: MessageKind; dueAt: number; jobs: number[] }[]> {
  const { thread } = await load(table, ref, threadName(jobNumber, orderGroup));
  return pendingWindows(thread)
    .filter(({ entries }) => entries.some(({ job }) => job === jobNumber))
    .map(({ kind, end, entries }) => ({
      ...{ kind, dueAt: end + graceMs },
      jobs: entries.map(({ job }) => job).sort((a, b) => a - b),
    }));
}

// Items

/** A stored thread. */
interface Stored {
  readonly name: string;
  readonly thread: Thread;
  /** Incremented by every write. 0 if there is no item. */
  readonly revision: number;
  readonly dueSk: string | undefined;
}

async function load(table: Table, ref: AccountRef, name: string): Promise<Stored> {
  const item = await table.get(keys.thread(ref, name));
  if (item) return toStored(item);
  const orderGroup = name.startsWith('=') ? name.slice(1) : null;
  return { name, thread: emptyThread(orderGroup), revision: 0, dueSk: undefined };
}

function toStored(item: Item): Stored {
  const { state } = item;
  const json = state instanceof Uint8Array ? inflateRawSync(state).toString('utf8') : String(state);
  return {
    name: String(item.name),
    thread: JSON.parse(json) as Thread,
    revision: Number(item.revision),
    dueSk: item.dueSk as string | undefined,
  };
}

/** Serializes the state of a thread. */
function pack(thread: Thread): string | Uint8Array {
  const known = packed.get(thread);
  if (known !== undefined) return known;
  const json = JSON.stringify(thread);
  const state = json.length < PACKED_FROM ? json : deflateRawSync(json);
  packed.set(thread, state);
  return state;
}
/** Cache of serialized threads, because their size is measured before they are written. */
const packed = new WeakMap<Thread, string | Uint8Array>();

function sizeOfThread(thread: Thread): number {
  const state = pack(thread);
  return typeof state === 'string' ? Buffer.byteLength(state) : state.byteLength;
}

function fits(thread: Thread): boolean {
  return sizeOfThread(thread) <= MAX_THREAD_BYTES;
}

/**
 * Returns the write that replaces a stored thread, or `undefined` if nothing changes. Only closing changes the thread's position in the
 * index; it passes `notBefore`, the time of the next check (epoch ms). An empty thread expires by its TTL.
 */
function toWrite(
  { now, graceMs = GRACE_MS }: NoticeDeps,
  ref: AccountRef,
  name: string,
  stored: Stored,
  thread: Thread,
  notBefore?: number,
): Exclude<Write, { check: Key }> | undefined {
  const key = keys.thread(ref, name);
  const due = nextDueTime(thread, graceMs);
  const place =
    due === undefined
      ? { duePk: undefined, dueSk: undefined }
      : notifyDue('notices', ref, key.sk, Math.max(due, notBefore ?? 0, 0));
  const exists = stored.revision > 0;
  const when = exists ? ([['revision', '=', stored.revision]] as const) : ([['pk', 'absent']] as const);
  const isFinished = isEmptyThread(thread);
  if (isFinished && !exists) return undefined;
  if (thread === stored.thread || JSON.stringify(thread) === JSON.stringify(stored.thread)) {
    const isUnmoved = notBefore === undefined || place.dueSk === stored.dueSk;
    return isUnmoved ? undefined : { update: key, set: place, when };
  }
  return {
    put: {
      ...{ ...key, ...place, name, revision: stored.revision + 1, state: pack(thread) },
      ttl: Math.ceil((now() + (isFinished ? 0 : KEPT_MS)) / 1000),
    },
    when,
  };
}

// History

/** Records notices that are not sent, with the reason. */
function recordUnsent(
  deps: NoticeDeps,
  ref: AccountRef,
  thread: string,
  { id, content }: FrozenNotice,
  reason: MessageReason,
): Promise<void> {
  const { kind, orderGroup, jobs, observedAt } = content;
  return recordInHistory(
    deps,
    ref,
    { thread, notice: id },
    {
      ...{ kind, orderGroup, jobs: jobs.map(({ jobNumber }) => jobNumber), observedAt },
      ...{ state: 'suppressed', reason, detail: null },
    },
  );
}

/** Records an event that cannot be folded. Other events proceed. */
function recordUnfoldable(deps: NoticeDeps, ref: AccountRef, event: LoggedEvent, why: string): Promise<void> {
  const kind = FOLDED_TYPES[event.type] ?? 'dispatched';
  return recordInHistory(
    deps,
    ref,
    { thread: '', notice: event.id },
    {
      ...{ kind, orderGroup: null, jobs: event.jobNumber === undefined ? [] : [event.jobNumber] },
      ...{ observedAt: event.time, state: 'failed', reason: 'rejected', detail: `${why} (${event.id})` },
    },
  );
}

/** Types of events that are folded, and the kind of message that each can cause. */
const FOLDED_TYPES: Readonly<Record<string, MessageKind>> = {
  'job.dispatched': 'dispatched',
  'job.updated': 'dispatched',
  'job.dispatch_revoked': 'dispatch_revoked',
  'job.tracking_added': 'tracking',
  'job.tracking_updated': 'tracking',
  'job.tracking_removed': 'tracking',
  'job.due_date_changed': 'due_date_changed',
  'job.cancelled': 'cancelled',
  'job.reopened': 'cancelled',
};

/** Records a message without recipient in the history. Idempotent. */
async function recordInHistory(
  deps: NoticeDeps,
  ref: AccountRef,
  identity: { readonly thread: string; readonly notice: string },
  what: Pick<Message, 'kind' | 'orderGroup' | 'jobs' | 'state' | 'reason' | 'detail'> & {
    readonly observedAt: number;
  },
): Promise<void> {
  const { observedAt, ...fields } = what;
  const work = toWorkId({ ...ref, ...identity, channel: null, address: null });
  await recordNoMessage(
    { ...deps, newId: randomUUID },
    {
      ...{ region: ref.region, account: ref.account, id: toMessageId(work, observedAt), ...fields },
      ...{ channel: null, to: null, createdAt: deps.now(), dueAt: null, sentAt: null, attempts: 0 },
      ...{ repeats: 0, providerId: null, subject: null, text: null, segments: null },
    },
  );
}

// Helpers

/** Retries an action until no concurrent modification interferes. */
async function retryOnConflict<T>(what: string, attempt: () => Promise<T | undefined>): Promise<T> {
  for (let tries = 0; tries < ATTEMPTS; tries += 1) {
    const done = await attempt();
    if (done !== undefined) return done;
  }
  throw new TableError('write', `something was to be ${what}, and met a change of it each time`);
}

function groupBy<T>(all: readonly T[], getKey: (one: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const one of all) groups.set(getKey(one), [...(groups.get(getKey(one)) ?? []), one]);
  return groups;
}
