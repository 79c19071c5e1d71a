/**
 * Where threads are kept: the sink that folds events into them, and the notices that come of it.
 *
 *   drain ─ sink ─▶ thread ─ window over, all of it folded ─▶ closed notice ─ made into messages ─▶ finished
 *                     └──────── one item, each write only over the one before ────────┘
 *
 * A crash anywhere leaves the item as the last write left it: an event that comes again was folded or was not, and a notice
 * that was closed and not finished is given again with the same content and id.
 */
import { randomUUID } from 'node:crypto';
import { deflateRawSync, inflateRawSync } from 'node:zlib';
import pLimit from 'p-limit';
import type { LoggedEvent } from '../log/log.ts';
import type { Delivery, DeliveryOutcome, SinkPort } from '../sinks/sink.ts';
import {
  type AccountRef,
  dueUntil,
  keys,
  logPk,
  NOTIFY_SHARDS,
  notifyDue,
  notifyDuePk,
  threadPk,
} from '../table/schema.ts';
import { type Item, type Key, MAX_ITEM_BYTES, type Table, TableError, type Write } from '../table/table.ts';
import { messageId, recordNoMessage, workId } from './messages.ts';
import {
  type Message,
  type MessageKind,
  type MessageReason,
  NOTIFICATIONS_SINK,
  type NoticeContent,
} from './model.ts';
import { readSettings } from './settings.ts';
import {
  type Closing,
  close,
  dueOf,
  emptyThread,
  type FrozenNotice,
  finished,
  fold,
  isEmpty,
  move,
  type NoticeScope,
  stands,
  type Thread,
  type Told,
  threadOf,
  tidied,
  toTold,
  windowsOf,
} from './thread.ts';

/** What notices need. */
export interface NoticeDeps {
  readonly table: Table;
  readonly history: Table;
  /** Epoch ms. */
  readonly now: () => number;
  /** How long after a window's end it is waited for what was observed in it; absent: {@link GRACE_MS}. The same everywhere. */
  readonly graceMs?: number;
}

/** A notice whose content is fixed, and which is to become messages. */
export interface ClosedNotice {
  readonly ref: AccountRef;
  readonly thread: string;
  /** Of all notices of the thread the only one. */
  readonly id: string;
  readonly content: NoticeContent;
  /** By what recipients of its jobs are found: in full, as against what is shown. */
  readonly scopes: readonly NoticeScope[];
  /**
   * Jobs whose dispatch was told once before, and that it was taken back since: news only for recipients who are told that too
   * (`dispatch_revoked`).
   */
  readonly again: readonly number[];
  /** Ids of notices that were told before in this thread, oldest first; the last ones. */
  readonly earlier: readonly string[];
}

const GRACE_MS = 15_000;
/** How long whoever was given a notice has to finish it, before it is given again. */
const GIVE_AGAIN_MS = 60_000;
/** When a thread is looked at again whose window is over while events are still to be folded. */
const LOOK_AGAIN_MS = 5_000;
/** The same, for one that could not be worked on. */
const FAILED_MS = 60_000;
/** The same, for one that can't be read. */
const UNREADABLE_MS = 3_600_000;
/** How often more threads are looked up while those that were found have nothing to give yet. */
const MAX_ROUNDS = 10;
/** A poll lasts two minutes at most: so much later than one behind it an event of the log may have been observed. */
const DISORDER_MS = 120_000;
/** Threads stay so long after the last that happened. */
const KEPT_MS = 180 * 86_400_000;
/** More than so many bytes of a thread are packed. */
const PACKED_FROM = 8_000;
/** What one thread may be when something is added; what is told of it later is kept twice for a moment, and must fit. */
const MAX_THREAD_BYTES = 200_000;
/** What it may be when something is closed, with a margin for what stands beside it in the item. */
const MAX_CLOSED_BYTES = MAX_ITEM_BYTES - 20_000;
/** How often something is decided anew because somebody else came in between. */
const ATTEMPTS = 50;
const THREADS_AT_ONCE = 8;
/** Events folded together: each of another job. */
const MAX_BATCH = 100;

/** The sink that folds events into threads. It takes every event: what can't be folded is noted in the history. */
export function createNotificationsSink(deps: NoticeDeps): SinkPort {
  return {
    maxBatch: MAX_BATCH,
    async deliver(deliveries) {
      const outcomes = new Map<Delivery, DeliveryOutcome>();
      const live = deliveries.filter(({ replay }) => !replay);
      await Promise.all(
        [...groupBy(live, ({ event }) => `${event.region}#${event.account}`).values()].map((some) =>
          deliverTo(deps, some, outcomes),
        ),
      );
      return deliveries.map((one) => outcomes.get(one) ?? { kind: 'delivered' });
    },
  };
}

/** Events of one account. Those that could not be folded now are noted in `outcomes`. */
async function deliverTo(
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
        // It would be the same each time, and nobody else's events are to wait for that.
        const why = `The event could not be folded: ${cause instanceof Error ? cause.name : 'a fault'}.`;
        for (const { event } of some) await setAside(deps, ref, event, why);
      });
    } catch (cause) {
      const reason = cause instanceof TableError ? cause.message : 'What became of it could not be noted.';
      for (const one of some) outcomes.set(one, { kind: 'retry', reason });
    }
  };
  await attempt(deliveries, async () => {
    const pace = await readPace(deps.table, ref);
    if (!pace) return;
    const limit = pLimit(THREADS_AT_ONCE);
    const reads = deliveries
      // What was observed before it was enabled is not told.
      .filter(({ event }) => Object.hasOwn(FOLDED, event.type) && event.time >= pace.since)
      .map((delivery) => ({ delivery, event: delivery.event, ...toTold(delivery.event) }));
    const told = reads.filter((read) => 'told' in read);
    const isMove = ({ told }: Read): boolean => movedFrom(told) !== undefined;
    const threads = groupBy(
      told.filter((read) => !isMove(read)),
      ({ told: { job } }) => threadOf(job.jobNumber, job.orderGroup),
    );
    await limit.map(
      reads.filter((read) => 'problem' in read),
      ({ delivery, event, problem }) =>
        attempt([delivery], () => setAside(deps, ref, event, `The event could not be read: ${problem}.`)),
    );
    await limit.map([...threads], ([thread, some]) =>
      attempt(
        some.map(({ delivery }) => delivery),
        () => foldInto(deps, ref, thread, some, pace),
      ),
    );
    for (const read of told.filter(isMove)) {
      await attempt([read.delivery], () => moveJob(deps, ref, read, pace));
    }
  });
}

/** The thread that a job was in before an event took it to another. */
function movedFrom({ job, changes }: Told): string | undefined {
  const from = changes.orderGroup && threadOf(job.jobNumber, changes.orderGroup.from);
  return from === threadOf(job.jobNumber, job.orderGroup) ? undefined : from;
}

interface Pace {
  readonly since: number;
  readonly windowMs: number;
  readonly maxAgeMs: number;
}

/** How an account notifies; `undefined` when it does not. */
async function readPace(table: Table, ref: AccountRef): Promise<Pace | undefined> {
  const settings = await readSettings(table, ref);
  if (!settings?.enabled) return undefined;
  const { since, windowSeconds, maxAgeHours } = settings;
  return { since, windowMs: windowSeconds * 1000, maxAgeMs: maxAgeHours * 3_600_000 };
}

/** An event, and what was read of it. */
interface Read {
  readonly told: Told;
  readonly event: LoggedEvent;
}

/** Folds events of several jobs into their thread: one write. */
async function foldInto(
  deps: NoticeDeps,
  ref: AccountRef,
  name: string,
  events: readonly Read[],
  pace: Pace,
): Promise<void> {
  await retried(`folded into a thread of ${ref.account}`, async () => {
    const stored = await load(deps.table, ref, name);
    const folded = ({ told }: Read, thread: Thread): Thread => fold(thread, told, pace.windowMs, deps.now());
    const latest = Math.max(...events.map(({ told: { time } }) => time));
    let thread = tidied(
      events.reduce((before, read) => folded(read, before), stored.thread),
      latest,
    );
    const aside: Read[] = [];
    if (!fits(thread)) {
      // One by one, to find those for which there is no room.
      thread = stored.thread;
      for (const read of events) {
        const after = folded(read, thread);
        if (fits(after) || sizeOfThread(after) <= sizeOfThread(thread)) thread = after;
        else aside.push(read);
      }
    }
    const write = writeOf(deps, ref, name, stored, thread);
    if (write && !(await deps.table.write(write)).done) return undefined;
    for (const { event } of aside) await setAside(deps, ref, event, TOO_MUCH);
    return true;
  });
}

const TOO_MUCH = 'There is more to say about its order group than can be kept.';

/** Takes a job to another thread, and folds the event that says so there. */
async function moveJob(deps: NoticeDeps, ref: AccountRef, { told, event }: Read, pace: Pace): Promise<void> {
  const { table, now } = deps;
  const toName = threadOf(told.job.jobNumber, told.job.orderGroup);
  const fromName = movedFrom(told) ?? toName;
  await retried(`moved to a thread of ${ref.account}`, async () => {
    const [from, to] = await Promise.all([load(table, ref, fromName), load(table, ref, toName)]);
    const moved = move(from.thread, to.thread, told, toName);
    const after = tidied(fold(moved.to, told, pace.windowMs, now()), told.time);
    if (!fits(after)) {
      await setAside(deps, ref, event, TOO_MUCH);
      return true;
    }
    const writes = [
      writeOf(deps, ref, fromName, from, moved.from),
      writeOf(deps, ref, toName, to, after),
    ].filter((write) => write !== undefined);
    if (writes.length === 0) return true;
    const { done } = await table.transact(writes, randomUUID());
    return done ? true : undefined;
  });
}

/**
 * Closes what is due, about `limit` notices at most, and gives again what was closed and not finished within a minute. Notices
 * that are not told (too old, taken back, turned off) are noted in the history, and not given. A thread that can't be worked on
 * is told to `failed`, and waits for a while; throws when that befalls all of them.
 */
export async function takeDueNotices(
  deps: NoticeDeps,
  region: string,
  limit: number,
  failed?: (ref: AccountRef, cause: unknown) => void,
): Promise<ClosedNotice[]> {
  const { table, now } = deps;
  const accounts = new Map<string, Promise<AccountState>>();
  const stateOf = (ref: AccountRef): Promise<AccountState> => {
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
      // What an index gives is more than a key, and DynamoDB takes nothing else for one.
      const key = { pk, sk };
      try {
        notices.push(...(await takeFrom(deps, ref, key, await stateOf(ref))));
        isAnyDone = true;
      } catch (cause) {
        fault ??= { cause };
        failed?.(ref, cause);
        await putBack(table, ref, key, now() + FAILED_MS).catch(() => undefined);
      }
    });
    // What waits for events stands further back now, and others may be in front.
    if (due.length < limit) break;
  }
  if (fault && !isAnyDone) throw fault.cause;
  return notices.sort((a, b) => a.content.observedAt - b.content.observedAt);
}

/** The keys of threads with something to be closed or given again, those first that have waited longest. */
async function dueThreads(table: Table, region: string, now: number, limit: number): Promise<Item[]> {
  const shards = await Promise.all(
    Array.from({ length: NOTIFY_SHARDS }, (_, shard) =>
      table.query({ index: 'due', pk: notifyDuePk('notices', region, shard), to: dueUntil(now), limit }),
    ),
  );
  const due = shards.flat().sort((a, b) => (String(a.dueSk) < String(b.dueSk) ? -1 : 1));
  return due.slice(0, limit);
}

/** Has a thread looked at again later (epoch ms), whatever is in it. */
async function putBack(table: Table, ref: AccountRef, key: Key, dueAt: number): Promise<void> {
  const place = notifyDue('notices', ref, key.sk, dueAt);
  await table.write({ update: key, set: place, when: [['pk', 'present']] });
}

/** What closing goes by in an account. */
interface AccountState {
  readonly pace: Pace | undefined;
  /** Everything that was observed before (epoch ms) is folded. */
  readonly foldedTo: number;
}

async function readAccount(table: Table, ref: AccountRef): Promise<AccountState> {
  const foldedTo = await readFoldedTo(table, ref);
  return { pace: await readPace(table, ref), foldedTo };
}

/** Everything that was observed before this (epoch ms) and is in the log is folded. */
async function readFoldedTo(table: Table, ref: AccountRef): Promise<number> {
  const cursorKey = keys.cursor(ref.region, NOTIFICATIONS_SINK, ref.account);
  // The cursor after the head: it only ever comes closer.
  const head = await table.get(keys.head(ref));
  const cursor = await table.get(cursorKey);
  const position = Number(cursor?.position ?? 0);
  if (!head || !cursor || position >= Number(head.sequence)) return Number.POSITIVE_INFINITY;
  const [next] = await table.query({ pk: logPk(ref), after: keys.event(ref, position).sk, limit: 1 });
  return next ? Number(next.time) - DISORDER_MS : Number.POSITIVE_INFINITY;
}

/** Closes what is due in one thread. */
async function takeFrom(
  deps: NoticeDeps,
  ref: AccountRef,
  key: Key,
  { pace, foldedTo }: AccountState,
): Promise<ClosedNotice[]> {
  const { table, now, graceMs = GRACE_MS } = deps;
  return retried(`closed in a thread of ${ref.account}`, async () => {
    const item = await table.get(key);
    if (!item) return [];
    const at = now();
    const stored = readable(item);
    if (!stored) {
      // Whoever looks after the table has to; until then the others go on.
      await putBack(table, ref, key, at + UNREADABLE_MS);
      return [];
    }
    const giveAt = at + GIVE_AGAIN_MS;
    const closing = { now: at, graceMs, foldedTo, settings: pace ?? null, giveAt };
    const closed = closedInPart(stored.thread, closing);
    const known = new Set(stored.thread.frozen.map(({ id }) => id));
    // What comes after one that somebody is making into messages would overtake it.
    const held = closed.frozen.findIndex((notice) => notice.giveAt > at && known.has(notice.id));
    const given = held < 0 ? closed.frozen : closed.frozen.slice(0, held);
    const thread = {
      ...closed,
      frozen: closed.frozen.map((notice) => (given.includes(notice) ? { ...notice, giveAt } : notice)),
    };
    const due = dueOf(thread, graceMs);
    const notBefore = due !== undefined && due <= at ? at + LOOK_AGAIN_MS : 0;
    const write = writeOf(deps, ref, stored.name, stored, thread, notBefore);
    if (write && !(await table.write(write)).done) return undefined;
    for (const notice of given) {
      if (notice.because === null) continue;
      await noteUntold(deps, ref, stored.name, notice, notice.because);
      await finish(deps, ref, stored.name, notice.id);
    }
    return given
      .filter(({ because }) => because === null)
      .map(({ id, content, scopes, again, earlier }) => {
        return { ref, thread: stored.name, id, content, scopes, again, earlier };
      });
  });
}

/** Closes what there is room for: all of it, or one window, or nothing until what was closed before is finished. */
function closedInPart(thread: Thread, closing: Closing): Thread {
  const hasRoom = (closed: Thread): boolean => sizeOfThread(closed) <= MAX_CLOSED_BYTES;
  const all = close(thread, closing);
  if (hasRoom(all)) return all;
  const one = close(thread, { ...closing, most: 1 });
  return hasRoom(one) || thread.frozen.length === 0 ? one : thread;
}

function readable(item: Item): Stored | undefined {
  try {
    return toStored(item);
  } catch {
    return undefined;
  }
}

/** A notice has become messages: it is not given again. */
export function finishNotice(deps: NoticeDeps, { ref, thread, id }: ClosedNotice): Promise<void> {
  return finish(deps, ref, thread, id);
}

async function finish(deps: NoticeDeps, ref: AccountRef, name: string, id: string): Promise<void> {
  await retried(`finished in a thread of ${ref.account}`, async () => {
    const stored = await load(deps.table, ref, name);
    const write = writeOf(deps, ref, name, stored, finished(stored.thread, id));
    return !write || (await deps.table.write(write)).done ? true : undefined;
  });
}

/** Of which of its jobs a notice still holds true. */
export async function standingJobs(
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
  const standing = new Set<number>();
  for (const facts of content.jobs) {
    let name = thread;
    const seen = new Set<string>();
    while (!seen.has(name)) {
      seen.add(name);
      const answer = stands((await loaded(name)).thread, content, facts);
      if (answer === true) standing.add(facts.jobNumber);
      if (typeof answer === 'boolean') break;
      name = answer.movedTo;
    }
  }
  return standing;
}

/** Open windows that a job is in: what will be said of which jobs, and when (epoch ms) at the earliest. */
export async function upcomingOf(
  table: Table,
  ref: AccountRef,
  jobNumber: number,
  orderGroup: string | null,
  graceMs = GRACE_MS,
): Promise<{ kind: MessageKind; dueAt: number; jobs: number[] }[]> {
  const { thread } = await load(table, ref, threadOf(jobNumber, orderGroup));
  return windowsOf(thread)
    .filter(({ entries }) => entries.some(({ job }) => job === jobNumber))
    .map(({ kind, end, entries }) => ({
      ...{ kind, dueAt: end + graceMs },
      jobs: entries.map(({ job }) => job).sort((a, b) => a - b),
    }));
}

// Items

/** A thread as it is kept. */
interface Stored {
  readonly name: string;
  readonly thread: Thread;
  /** Raised by every write; 0 while there is none. */
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

/** The state of a thread as it is stored. */
function pack(thread: Thread): string | Uint8Array {
  const known = packed.get(thread);
  if (known !== undefined) return known;
  const json = JSON.stringify(thread);
  const state = json.length < PACKED_FROM ? json : deflateRawSync(json);
  packed.set(thread, state);
  return state;
}
/** Threads are measured before they are written. */
const packed = new WeakMap<Thread, string | Uint8Array>();

function sizeOfThread(thread: Thread): number {
  const state = pack(thread);
  return typeof state === 'string' ? Buffer.byteLength(state) : state.byteLength;
}

function fits(thread: Thread): boolean {
  return sizeOfThread(thread) <= MAX_THREAD_BYTES;
}

/**
 * The write that makes a stored thread another one; `undefined` when nothing changes. Where it stands in the index is nobody's
 * business but of who closes, and says until when it is `notBefore` to be looked at (epoch ms). An empty one leaves by its TTL.
 */
function writeOf(
  { now, graceMs = GRACE_MS }: NoticeDeps,
  ref: AccountRef,
  name: string,
  stored: Stored,
  thread: Thread,
  notBefore?: number,
): Exclude<Write, { check: Key }> | undefined {
  const key = keys.thread(ref, name);
  const due = dueOf(thread, graceMs);
  const place =
    due === undefined
      ? { duePk: undefined, dueSk: undefined }
      : notifyDue('notices', ref, key.sk, Math.max(due, notBefore ?? 0, 0));
  const isThere = stored.revision > 0;
  const when = isThere ? ([['revision', '=', stored.revision]] as const) : ([['pk', 'absent']] as const);
  const isOver = isEmpty(thread);
  if (isOver && !isThere) return undefined;
  if (thread === stored.thread || JSON.stringify(thread) === JSON.stringify(stored.thread)) {
    const isInPlace = notBefore === undefined || place.dueSk === stored.dueSk;
    return isInPlace ? undefined : { update: key, set: place, when };
  }
  return {
    put: {
      ...{ ...key, ...place, name, revision: stored.revision + 1, state: pack(thread) },
      ttl: Math.ceil((now() + (isOver ? 0 : KEPT_MS)) / 1000),
    },
    when,
  };
}

// History

/** Notes what is not told, and why. */
function noteUntold(
  deps: NoticeDeps,
  ref: AccountRef,
  thread: string,
  { id, content }: FrozenNotice,
  reason: MessageReason,
): Promise<void> {
  const { kind, orderGroup, jobs, observedAt } = content;
  return note(
    deps,
    ref,
    { thread, notice: id },
    {
      ...{ kind, orderGroup, jobs: jobs.map(({ jobNumber }) => jobNumber), observedAt },
      ...{ state: 'suppressed', reason, detail: null },
    },
  );
}

/** Notes an event that can't be folded; the rest goes on without it. */
function setAside(deps: NoticeDeps, ref: AccountRef, event: LoggedEvent, why: string): Promise<void> {
  const kind = FOLDED[event.type] ?? 'dispatched';
  return note(
    deps,
    ref,
    { thread: '', notice: event.id },
    {
      ...{ kind, orderGroup: null, jobs: event.jobNumber === undefined ? [] : [event.jobNumber] },
      ...{ observedAt: event.time, state: 'failed', reason: 'refused', detail: `${why} (${event.id})` },
    },
  );
}

/** The types of events that are folded, and what they may come to. */
const FOLDED: Readonly<Record<string, MessageKind>> = {
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

/** Puts a message into the history that nobody gets; again, it is the same. */
async function note(
  deps: NoticeDeps,
  ref: AccountRef,
  identity: { readonly thread: string; readonly notice: string },
  what: Pick<Message, 'kind' | 'orderGroup' | 'jobs' | 'state' | 'reason' | 'detail'> & {
    readonly observedAt: number;
  },
): Promise<void> {
  const { observedAt, ...said } = what;
  const work = workId({ ...ref, ...identity, channel: null, address: null });
  await recordNoMessage(
    { ...deps, newId: randomUUID },
    {
      ...{ region: ref.region, account: ref.account, id: messageId(work, observedAt), ...said },
      ...{ channel: null, to: null, createdAt: deps.now(), dueAt: null, sentAt: null, attempts: 0 },
      ...{ repeats: 0, providerId: null, subject: null, text: null, segments: null },
    },
  );
}

// Helpers

/** Does something until nobody comes in between. */
async function retried<T>(what: string, attempt: () => Promise<T | undefined>): Promise<T> {
  for (let tries = 0; tries < ATTEMPTS; tries += 1) {
    const done = await attempt();
    if (done !== undefined) return done;
  }
  throw new TableError('write', `something was to be ${what}, and met a change of it each time`);
}

function groupBy<T>(all: readonly T[], keyOf: (one: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const one of all) groups.set(keyOf(one), [...(groups.get(keyOf(one)) ?? []), one]);
  return groups;
}
