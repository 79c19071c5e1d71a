/**
 * Storage of threads: the sink that folds events into them, and the notices that are closed from them.
 *
 * drain ─ sink ─▶ thread ─ window expired, all of it folded ─▶ closed notice ─ converted to messages ─▶ finished
 * └──────── one item, each write only over the one before ────────┘
 *
 * A crash leaves the item as the last write left it. A redelivered event is either folded already or not. A notice that was closed and not
 * finished is handed out again with the same content and id.
 */
import pLimit from 'p-limit';
import { getOrCreate } from '../get-or-create.ts';
import {
  type AccountRef,
  dueUntil,
  keys,
  logPk,
  notifyDue,
  parseNotifyDue,
  threadPk,
} from '../storage/schema.ts';
import { type Item, type Key, MAX_ITEM_BYTES, type Table } from '../storage/table.ts';
import { recordUnsent } from './notice-history.ts';
import { queryDue } from './oldest-unsent.ts';
import { type FoldSettings, readFoldSettings } from './settings.ts';
import { checkNotice, type FrozenNotice, removeNotice, type Thread, threadName } from './thread.ts';
import {
  GRACE_MS,
  load,
  type NoticeDeps,
  retryOnConflict,
  type Stored,
  sizeOfThread,
  THREADS_AT_ONCE,
  toStored,
  toWrite,
} from './thread-items.ts';
import { type Closing, closeWindows, nextDueTime, pendingWindows } from './thread-windows.ts';
import { type MessageKind, NOTIFICATIONS_SINK, type NoticeContent, toMessageKind } from './types.ts';

/** A notice with fixed content that is to become messages. */
export interface ClosedNotice extends Omit<FrozenNotice, 'because' | 'giveAt'> {
  readonly ref: AccountRef;
  readonly thread: string;
}

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

/** Maximum size when a notice is closed, with a margin for the other attributes of the item. */
const MAX_CLOSED_BYTES = MAX_ITEM_BYTES - 20_000;

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
  const readAccountOnce = (ref: AccountRef) =>
    getOrCreate(accounts, ref.account, () => readAccount(table, ref));
  const notices: ClosedNotice[] = [];
  let isAnyDone = false;
  let fault: { readonly cause: unknown } | undefined;
  for (let round = 0; round < MAX_ROUNDS && notices.length < limit; round += 1) {
    const due = await dueThreads(table, region, now(), limit);
    await pLimit(THREADS_AT_ONCE).map(due, async (item) => {
      if (notices.length >= limit) return;
      const ref = { region, account: item.pk.slice(threadPk({ region, account: '' }).length) };
      try {
        notices.push(...(await takeDueFromThread(deps, ref, toKey(item), await readAccountOnce(ref))));
        isAnyDone = true;
      } catch (cause) {
        fault ??= { cause };
        failed?.(ref, cause);
        await postpone(table, ref, item, now() + FAILED_MS).catch(() => undefined);
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
  const due = await queryDue(table, 'notices', region, { to: dueUntil(now), limit });
  return due.sort((a, b) => (String(a.dueSk) < String(b.dueSk) ? -1 : 1)).slice(0, limit);
}

/** Postpones a thread to `dueAt` (epoch ms), for any content. */
async function postpone(table: Table, ref: AccountRef, item: Item, dueAt: number): Promise<void> {
  const place = notifyDue('notices', ref, item.sk, dueAt, parseNotifyDue(item));
  await table.write({ update: toKey(item), set: place, when: [['duePk', 'present']] });
}

/** Items of the index have more attributes than the key, and DynamoDB rejects them as a key. */
const toKey = ({ pk, sk }: Key): Key => ({ pk, sk });

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
    // It is held for a move to another cell since it was found, or closed.
    if (item?.duePk === undefined) return [];
    const at = now();
    const stored = parseStored(item);
    if (!stored) {
      // The operator has to repair the item. Other threads proceed meanwhile.
      await postpone(table, ref, item, at + UNREADABLE_MS);
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
      .map(({ because: _, giveAt: __, ...notice }) => ({ ref, thread: stored.name, ...notice }));
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

/**
 * Returns the jobs of which a notice is still true, and those of which it may become true again until a window closes, with the end of the
 * window (epoch ms).
 */
export async function findValidJobs(
  table: Table,
  ref: AccountRef,
  thread: string,
  content: NoticeContent,
): Promise<{ readonly valid: ReadonlySet<number>; readonly open: ReadonlyMap<number, number> }> {
  const valid = new Set<number>();
  const open = new Map<number, number>();
  // Its user has decided that it is true.
  if (content.kind === 'note') {
    for (const { jobNumber } of content.jobs) valid.add(jobNumber);
    return { valid, open };
  }
  const threads = new Map<string, Promise<Stored>>();
  const loaded = (name: string) => getOrCreate(threads, name, () => load(table, ref, name));
  for (const facts of content.jobs) {
    let name = thread;
    const visited = new Set<string>();
    while (!visited.has(name)) {
      visited.add(name);
      const answer = checkNotice((await loaded(name)).thread, content, facts);
      if (answer === true) valid.add(facts.jobNumber);
      if (typeof answer === 'boolean') break;
      if ('openUntil' in answer) {
        open.set(facts.jobNumber, answer.openUntil);
        break;
      }
      name = answer.movedTo;
    }
  }
  return { valid, open };
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
      ...{ kind: toMessageKind(kind), dueAt: end + graceMs },
      jobs: entries.map(({ job }) => job).sort((a, b) => a - b),
    }));
}
