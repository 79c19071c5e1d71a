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
import { type Item, type Table, TableError, type Write } from '../table/table.ts';
import { messageId, recordNoMessage, workId } from './messages.ts';
import {
  type Message,
  type MessageKind,
  type MessageReason,
  NOTIFICATIONS_SINK,
  type NoticeContent,
} from './model.ts';
import {
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
/** A poll lasts two minutes at most: so much later than one behind it an event of the log may have been observed. */
const DISORDER_MS = 120_000;
/** Threads stay so long after the last that happened. */
const KEPT_MS = 180 * 86_400_000;
/** More than so many bytes of a thread are packed. */
const PACKED_FROM = 8_000;
/** What one thread may be. */
const MAX_THREAD_BYTES = 350_000;
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
      for (const [account, some] of groupBy(live, ({ event }) => `${event.region}#${event.account}`)) {
        const { region = '', account: id = '' } = some[0]?.event ?? {};
        await deliverTo(deps, { region, account: id }, some, outcomes).catch((cause: unknown) => {
          const reason =
            cause instanceof TableError ? cause.message : `Threads of ${account} could not be kept.`;
          for (const one of some) if (!outcomes.has(one)) outcomes.set(one, { kind: 'retry', reason });
          if (!(cause instanceof TableError)) throw cause;
        });
      }
      return deliveries.map((one) => outcomes.get(one) ?? { kind: 'delivered' });
    },
  };
}

/** Events of one account. */
async function deliverTo(
  deps: NoticeDeps,
  ref: AccountRef,
  deliveries: readonly Delivery[],
  outcomes: Map<Delivery, DeliveryOutcome>,
): Promise<void> {
  const pace = await readPace(deps.table, ref);
  if (!pace) return;
  const groups = new Map<string, { delivery: Delivery; told: Told; thread: string }[]>();
  const moves: { delivery: Delivery; told: Told; from: string; to: string }[] = [];
  for (const delivery of deliveries) {
    const { event } = delivery;
    // What was observed before it was enabled is not told.
    if (event.time < pace.since) continue;
    const read = toTold(event);
    if ('problem' in read) {
      await setAside(deps, ref, event, `The event could not be read: ${read.problem}.`);
      continue;
    }
    const { told } = read;
    const { jobNumber, orderGroup } = told.job;
    const thread = threadOf(jobNumber, orderGroup);
    const from = told.changes.orderGroup && threadOf(jobNumber, told.changes.orderGroup.from);
    if (from !== undefined && from !== thread) moves.push({ delivery, told, from, to: thread });
    else groups.set(thread, [...(groups.get(thread) ?? []), { delivery, told, thread }]);
  }
  const limit = pLimit(THREADS_AT_ONCE);
  await limit.map([...groups], async ([thread, some]) => {
    const ordered = some.toSorted((a, b) => a.told.mark.sequence - b.told.mark.sequence);
    await foldInto(
      deps,
      ref,
      thread,
      ordered.map(({ told, delivery }) => ({ told, event: delivery.event })),
      pace,
    );
    for (const { delivery } of ordered) outcomes.set(delivery, { kind: 'delivered' });
  });
  for (const { delivery, told, from, to } of moves) {
    await moveJob(deps, ref, { told, event: delivery.event }, from, to, pace);
    outcomes.set(delivery, { kind: 'delivered' });
  }
}

interface Pace {
  readonly since: number;
  readonly windowMs: number;
  readonly maxAgeMs: number;
}

/** How an account notifies; `undefined` when it does not. */
async function readPace(table: Table, ref: AccountRef): Promise<Pace | undefined> {
  const item = await table.get(keys.notificationSettings(ref));
  if (item?.enabled !== true) return undefined;
  const { windowSeconds, maxAgeHours } = JSON.parse(String(item.settings)) as Record<string, number>;
  return {
    since: Number(item.since),
    windowMs: Number(windowSeconds) * 1000,
    maxAgeMs: Number(maxAgeHours) * 3_600_000,
  };
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
    let { thread } = stored;
    const aside: { event: LoggedEvent; why: string }[] = [];
    for (const { told, event } of events) {
      const after = tried(() => fold(thread, told, pace.windowMs, deps.now()));
      if ('fault' in after) aside.push({ event, why: `The event could not be folded: ${after.fault}.` });
      else thread = after.value;
    }
    if (!fits(thread)) {
      thread = stored.thread;
      const size = sizeOfThread(thread);
      for (const { told, event } of events) {
        const after = tried(() => fold(thread, told, pace.windowMs, deps.now()));
        if ('fault' in after) continue;
        if (fits(after.value) || sizeOfThread(after.value) <= size) thread = after.value;
        else aside.push({ event, why: 'There is too much to say about its order group.' });
      }
    }
    const write = writeOf(deps, ref, name, stored, thread);
    if (write && !(await deps.table.write(write)).done) return undefined;
    for (const { event, why } of aside) await setAside(deps, ref, event, why);
    return true;
  });
}

/** Takes a job to another thread, and folds the event that says so there. */
async function moveJob(
  deps: NoticeDeps,
  ref: AccountRef,
  { told, event }: Read,
  fromName: string,
  toName: string,
  pace: Pace,
): Promise<void> {
  await retried(`moved to a thread of ${ref.account}`, async () => {
    const [from, to] = await Promise.all([load(deps.table, ref, fromName), load(deps.table, ref, toName)]);
    const after = tried(() => {
      const moved = move(from.thread, to.thread, told, toName);
      return { from: moved.from, to: fold(moved.to, told, pace.windowMs, deps.now()) };
    });
    const why =
      'fault' in after
        ? `The event could not be folded: ${after.fault}.`
        : fits(after.value.to)
          ? undefined
          : 'There is too much to say about its order group.';
    if ('fault' in after || why !== undefined) {
      await setAside(deps, ref, event, why ?? '');
      return true;
    }
    const writes = [
      writeOf(deps, ref, fromName, from, after.value.from),
      writeOf(deps, ref, toName, to, after.value.to),
    ].filter((write) => write !== undefined);
    if (writes.length === 0) return true;
    const { done } = await deps.table.transact(writes, randomUUID());
    return done ? true : undefined;
  });
}

/** Closes what is due, `limit` notices at most or a few more, and gives again what was closed and not finished in time. */
export async function takeDueNotices(
  deps: NoticeDeps,
  region: string,
  limit: number,
): Promise<ClosedNotice[]> {
  const { table, now } = deps;
  const shards = await Promise.all(
    Array.from({ length: NOTIFY_SHARDS }, (_, shard) =>
      table.query({ index: 'due', pk: notifyDuePk('notices', region, shard), to: dueUntil(now()), limit }),
    ),
  );
  const due = shards
    .flat()
    .sort((a, b) => (String(a.dueSk) < String(b.dueSk) ? -1 : 1))
    .slice(0, limit);
  const accounts = new Map<string, Promise<AccountState>>();
  const stateOf = (ref: AccountRef): Promise<AccountState> => {
    const known = accounts.get(ref.account) ?? readAccount(table, ref);
    accounts.set(ref.account, known);
    return known;
  };
  const notices: ClosedNotice[] = [];
  await pLimit(THREADS_AT_ONCE).map(due, async ({ pk, sk }) => {
    if (notices.length >= limit) return;
    const ref = { region, account: pk.slice(threadPk({ region, account: '' }).length) };
    // What an index gives is more than a key, and DynamoDB takes nothing else for one.
    notices.push(...(await takeFrom(deps, ref, { pk, sk }, await stateOf(ref))));
  });
  return notices.sort((a, b) => a.content.observedAt - b.content.observedAt);
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
  key: { readonly pk: string; readonly sk: string },
  { pace, foldedTo }: AccountState,
): Promise<ClosedNotice[]> {
  const { table, now, graceMs = GRACE_MS } = deps;
  return retried(`closed in a thread of ${ref.account}`, async () => {
    const item = await table.get(key);
    if (!item) return [];
    const stored = toStored(item);
    const at = now();
    const giveAt = at + GIVE_AGAIN_MS;
    const settings = pace ?? null;
    const closed = close(stored.thread, { now: at, graceMs, foldedTo, settings, giveAt });
    const given = closed.frozen.filter((notice) => notice.giveAt <= at || notice.giveAt === giveAt);
    const thread = {
      ...closed,
      frozen: closed.frozen.map((notice) => (given.includes(notice) ? { ...notice, giveAt } : notice)),
    };
    const due = dueOf(thread, graceMs);
    const write = writeOf(deps, ref, stored.name, stored, thread, {
      ...(due !== undefined && due <= at ? { notBefore: at + LOOK_AGAIN_MS } : {}),
    });
    if (write && !(await table.write(write)).done) return undefined;
    const told = given.filter(({ because }) => because === null);
    for (const notice of given) {
      if (notice.because === null) continue;
      await noteUntold(deps, ref, stored.name, notice, notice.because);
      await finish(deps, ref, stored.name, notice.id);
    }
    return told.map(({ id, content, scopes, again, earlier }) => {
      return { ref, thread: stored.name, id, content, scopes, again, earlier };
    });
  });
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

/** Whether there are notices to be closed or given again. */
export async function noticesDue(table: Table, region: string, now: number): Promise<boolean> {
  const shards = await Promise.all(
    Array.from({ length: NOTIFY_SHARDS }, (_, shard) =>
      table.query({ index: 'due', pk: notifyDuePk('notices', region, shard), to: dueUntil(now), limit: 1 }),
    ),
  );
  return shards.some(({ length }) => length > 0);
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
  const json = JSON.stringify(thread);
  return json.length < PACKED_FROM ? json : deflateRawSync(json);
}

function sizeOfThread(thread: Thread): number {
  const state = pack(thread);
  return typeof state === 'string' ? Buffer.byteLength(state) : state.byteLength;
}

function fits(thread: Thread): boolean {
  return sizeOfThread(thread) <= MAX_THREAD_BYTES;
}

/** The write that makes a stored thread another one; `undefined` when nothing changes. */
function writeOf(
  { now, graceMs = GRACE_MS }: NoticeDeps,
  ref: AccountRef,
  name: string,
  stored: Stored,
  thread: Thread,
  { notBefore = 0 } = {},
): Exclude<Write, { check: unknown }> | undefined {
  const key = keys.thread(ref, name);
  const due = dueOf(thread, graceMs);
  const place = due === undefined ? {} : notifyDue('notices', ref, key.sk, Math.max(due, notBefore, 0));
  const isSame = thread === stored.thread || JSON.stringify(thread) === JSON.stringify(stored.thread);
  if (isSame && ('dueSk' in place ? place.dueSk : undefined) === stored.dueSk) return undefined;
  const when = [
    stored.revision === 0 ? (['pk', 'absent'] as const) : (['revision', '=', stored.revision] as const),
  ];
  if (isEmpty(thread)) return stored.revision === 0 ? undefined : { delete: key, when };
  return {
    put: {
      ...key,
      ...place,
      name,
      revision: stored.revision + 1,
      state: pack(thread),
      ttl: Math.ceil((now() + KEPT_MS) / 1000),
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
  const kind = KIND_OF[event.type] ?? 'dispatched';
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

const KIND_OF: Readonly<Record<string, MessageKind>> = {
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

function tried<T>(action: () => T): { readonly value: T } | { readonly fault: string } {
  try {
    return { value: action() };
  } catch (cause) {
    return { fault: cause instanceof Error ? cause.name : 'something was thrown' };
  }
}

function groupBy<T>(all: readonly T[], keyOf: (one: T) => string): Map<string, T[]> {
  const groups = new Map<string, T[]>();
  for (const one of all) groups.set(keyOf(one), [...(groups.get(keyOf(one)) ?? []), one]);
  return groups;
}
