/**
 * Messages: one notice, sent to one address by one channel. Each message is a work item in the state table until some days after it is
 * final, and a record in the history, which users read.
 *
 * state change of messages ─ and a journal entry that names them, in one transaction
 * history └─▶ their records, each only over an older one ─▶ journal entry deleted
 *
 * The work item is authoritative and the record is a copy. After a crash in between, the journal entry falls due like a message and the
 * records are written from the current work items. Every change increments a message's revision, and a record never overwrites a newer one.
 * So a late writer changes nothing.
 */
import {
  type AccountRef,
  cellLog,
  failedMessagesPk,
  keys,
  notifyDue,
  parseNotifyDue,
} from '../storage/schema.ts';
import {
  type Clause,
  estimateSize,
  type Item,
  type Key,
  MAX_TRANSACTION_ACTIONS,
  MAX_TRANSACTION_BYTES,
  type Table,
  type Write,
} from '../storage/table.ts';
import { toMessage } from './message-history.ts';
import { parseWorkId } from './message-ids.ts';
import type { Message } from './records.ts';
import { isUndelivered, type MessageState, type NoticeContent } from './types.ts';

/** Retention of the history of messages, days. */
const HISTORY_DAYS = 180;

/**
 * Retention of a work item after its message is final, days. During this time no message is created twice, feedback finds it, and later
 * messages are compared with it: longer than threads remember a quiet job.
 */
const WORK_DAYS = 40;

/** The same for notes, with which no message is compared. */
const NOTE_WORK_DAYS = 14;

/** Time until a journal entry falls due whose writer did not delete it. */
const JOURNAL_MS = 60_000;

/** Maximum number of retries after concurrent modification. */
const ATTEMPTS = 20;

/** A message with all data that sending it requires. */
export interface Work {
  readonly ref: AccountRef;
  readonly message: Message;
  readonly thread: string;
  /** Content of the notice about the recipient's jobs. */
  readonly content: NoticeContent;
  /** Ids of all recipients with this address. */
  readonly recipients: readonly string[];
  /** Keys of the work on earlier messages of this thread to the same address, oldest first. */
  readonly before: readonly string[];
  /** For a correction: keys of the work on the messages about the cancellations, by job number. Absent: any of the messages before it. */
  readonly corrects?: Readonly<Record<string, string>>;
  /** Keys of the work on earlier messages about dispatches, revocations and cancellations, oldest first, by job number. Absent: all before. */
  readonly dispatches?: Readonly<Record<string, readonly string[]>>;
  /** Incremented by every change. */
  readonly revision: number;
  /** Size of the item, an upper estimate. */
  readonly bytes: number;
  /** Sender that holds the message, and the time until which no other sender claims it (epoch ms). */
  readonly claim: { readonly id: string; readonly until: number } | null;
  /** Time at which it was first due (epoch ms). Absent: it is final. */
  readonly dueSince?: number | undefined;
  /** Whether there was an attempt with unknown outcome. True of each message that is claimed. Sending such an e-mail again is a repeat. */
  readonly maybeSent: boolean;
  /** Number of attempts that failed with the whole channel. They do not lengthen the delay before a retry. */
  readonly channelFailures: number;
  /** SMS segments counted for it, and the month. */
  readonly reserved: { readonly month: string; readonly segments: number } | null;
  /** Feedback that arrived before the send was recorded. */
  readonly feedback: Feedback | null;
}

/** A message to be created. */
export type NewWork = Pick<
  Work,
  'ref' | 'message' | 'thread' | 'content' | 'recipients' | 'before' | 'corrects' | 'dispatches'
>;

/** Feedback of a provider on a message. */
export interface Feedback {
  readonly state: 'bounced' | 'complained';
  readonly detail: string | null;
}

/** Whether a state is final: afterwards only feedback changes the message. */
export const isFinal = (state: MessageState): boolean => state !== 'waiting' && state !== 'sending';

/**
 * Records feedback on a sent message. If the feedback arrives before the sender has recorded the send, it is kept with the message, and the
 * message gets its state instead of `sent`. Returns the current message, or `undefined` if there is none.
 */
export async function recordFeedback(
  deps: JournalDeps,
  at: AccountRef & { readonly message: string },
  state: Feedback['state'],
  detail: string | null,
): Promise<Message | undefined> {
  const feedback = { state, detail };
  for (let tries = 0; tries < ATTEMPTS; tries += 1) {
    const item = await deps.table.get(keys.message(at, parseWorkId(at.message)));
    if (!item) return recordFeedbackInHistory(deps, at, feedback);
    const work = toWork(item);
    const message = applyFeedback(work.message, feedback);
    const early = work.message.state === 'sending';
    if (message === work.message && !early) return message;
    const change = { work, message, ...(early ? { set: { feedback: JSON.stringify(feedback) } } : {}) };
    const { done, keep } = await changeMessages(deps, at.region, [change]);
    if (done[0]) {
      await keep();
      return message;
    }
  }
  throw new Error(`Message ${at.message} was modified concurrently on every attempt to record feedback.`);
}

/** Returns the message after feedback. Returns the same object if the feedback changes nothing. */
export function applyFeedback(message: Message, { state, detail }: Feedback): Message {
  const { state: before, attempts } = message;
  const applies =
    before === 'sent' ||
    before === 'unknown' ||
    before === 'failed' ||
    (before === 'waiting' && attempts > 0) ||
    (before === 'bounced' && state === 'complained');
  return applies && attempts > 0 ? { ...message, state, reason: state, detail, dueAt: null } : message;
}

/** Records feedback on a message whose work item has expired. */
async function recordFeedbackInHistory(
  { history, now }: JournalDeps,
  at: AccountRef & { readonly message: string },
  feedback: Feedback,
): Promise<Message | undefined> {
  const key = keys.sentMessage(at, at.message);
  for (let tries = 0; tries < ATTEMPTS; tries += 1) {
    const item = await history.get(key);
    if (!item) return undefined;
    const before = toMessage(item);
    const message = applyFeedback(before, feedback);
    if (message === before) return message;
    const revision = Number(item.revision);
    const outcome = await history.write({
      update: key,
      set: { message: JSON.stringify(message), revision: revision + 1, ...toFailureKeys(message, now()) },
      when: [['revision', '=', revision]],
    });
    if (outcome.done) return message;
  }
  throw new Error(
    `The record of message ${at.message} was modified concurrently on every attempt to record feedback.`,
  );
}

/** Dependencies of writing messages. */
export interface JournalDeps {
  readonly table: Table;
  readonly history: Table;
  /** Epoch ms. */
  readonly now: () => number;
  readonly newId: () => string;
}

/** A conditional change of a message: applied only if the message is unchanged since it was read. */
export interface Change {
  readonly work: Work;
  /** The message after the change. */
  readonly message: Message;
  /** Attributes of the work item to set. `undefined` removes one. */
  readonly set?: {
    readonly claim?: string | undefined;
    readonly maybeSent?: boolean | undefined;
    readonly channelFailures?: number | undefined;
    readonly reserved?: string | undefined;
    readonly feedback?: string | undefined;
  };
  /** Writes in the same transaction: all or none. */
  readonly along?: readonly Write[];
}

/** Which of several changes were written, and the records in the history that are still to be written. */
export interface Changed {
  readonly done: readonly boolean[];
  keep(): Promise<void>;
}

/**
 * Writes changes of a region's messages. Each one is applied if its message is unchanged since it was read. Throws TableError; some changes
 * may be written then.
 */
export async function changeMessages(
  deps: JournalDeps,
  region: string,
  changes: readonly Change[],
): Promise<Changed> {
  const changed = changes.map(({ work, message }) => ({ ...work, message, revision: work.revision + 1 }));
  const journal = new Journal(deps, region, changed);
  const done = await writeEach(
    deps,
    changes.map((change) => toWrites(deps.now(), change)),
    { journal, held: changes.map(({ work }) => work.bytes) },
  );
  return { done, keep: () => journal.keep(changed.filter((_, at) => done[at])) };
}

/** Claim of a message by a sender that is about to send it. */
export interface Claim {
  readonly work: Work;
  readonly id: string;
  /** Epoch ms. */
  readonly until: number;
  /** Number of attempts, including this one. */
  readonly attempts: number;
  readonly repeats: number;
  readonly reserved?: Work['reserved'];
  /** Writes in the same transaction: all or none. */
  readonly along?: readonly Write[];
}

/** Claims messages, each one if it is unchanged since it was read. A claim is not written to the history. */
export async function claimMessages(deps: JournalDeps, claims: readonly Claim[]): Promise<boolean[]> {
  const writes = claims.map(({ work, id, until, attempts, repeats, reserved, along = [] }): Write[] => {
    const set = {
      ...{ claim: JSON.stringify({ id, until, attempts, repeats }), revision: work.revision + 1 },
      ...(reserved ? { reserved: JSON.stringify(reserved) } : {}),
    };
    return [{ update: toWorkKey(work), set, when: [['revision', '=', work.revision]] }, ...along];
  });
  return writeEach(deps, writes, { held: claims.map(({ work }) => work.bytes) });
}

/** Creates those messages that do not exist yet and returns their number. Existing messages are unchanged. */
export async function createMessages(
  deps: JournalDeps,
  region: string,
  fresh: readonly NewWork[],
): Promise<number> {
  const works = fresh.map(
    (one): Work => ({
      ...one,
      revision: 1,
      bytes: 0,
      claim: null,
      maybeSent: false,
      channelFailures: 0,
      reserved: null,
      feedback: null,
    }),
  );
  const journal = new Journal(deps, region, works);
  const done = await writeEach(
    deps,
    works.map((work) => [{ put: toItem(work), when: [['pk', 'absent']] }]),
    { journal },
  );
  const created = works.filter((_, at) => done[at]);
  await deps.history.putMany(created.flatMap(toPointers));
  await journal.keep(created);
  return created.length;
}

/** Writes the record of a notice that became no messages to the history. Idempotent. */
export async function recordNoMessage(deps: JournalDeps, message: Message): Promise<void> {
  await deps.history.putMany(toPointers({ message, recipients: [] }));
  await putRecords(deps, [{ message, revision: 1 }]);
}

/** Returns whether due work is a journal entry. */
export const isJournalEntry = (key: Key): boolean => key.sk.startsWith('~');

/** Writes the records that a journal entry names, after its writer failed to do so. */
export async function settleJournal(deps: JournalDeps, entry: Item): Promise<void> {
  const named = JSON.parse(String(entry.messages)) as Key[];
  const works = (await deps.table.getMany(named)).map(toWork);
  await deps.history.putMany(works.flatMap(toPointers));
  await putRecords(deps, works);
  await deps.table.write({ delete: { pk: entry.pk, sk: entry.sk } });
}

/** Journal entries of changed messages, one in each transaction. They are deleted once the history has the records. */
class Journal {
  readonly #deps: JournalDeps;
  readonly #region: string;
  readonly #works: readonly Work[];
  readonly #entries: Key[] = [];

  constructor(deps: JournalDeps, region: string, works: readonly Work[]) {
    this.#deps = deps;
    this.#region = region;
    this.#works = works;
  }

  /** Returns the write of the entry for a transaction that changes the works at these positions. */
  entry(positions: readonly number[]): Write {
    const at = cellLog(this.#region);
    const key = keys.message(at, `~${this.#deps.newId()}`);
    this.#entries.push(key);
    const named = positions.flatMap((position) => this.#works[position] ?? []).map(toWorkKey);
    const due = notifyDue('messages', at, key.sk, this.#deps.now() + JOURNAL_MS);
    return { put: { ...key, ...due, messages: JSON.stringify(named) } };
  }

  /** Writes the records and deletes the entries. */
  async keep(changed: readonly Work[]): Promise<void> {
    await putRecords(this.#deps, changed);
    await Promise.all(this.#entries.map((key) => this.#deps.table.write({ delete: key })));
  }
}

/** Writes records to the history, each only over an older one. */
async function putRecords(
  { history, now, newId }: JournalDeps,
  records: readonly Pick<Work, 'message' | 'revision'>[],
): Promise<void> {
  const puts = records.map(({ message, revision }): Write[] => {
    const item = {
      ...keys.sentMessage(message, message.id),
      revision,
      message: JSON.stringify(message),
      ttl: historyTtl(message),
      ...toFailureKeys(message, now()),
    };
    return [{ put: item, when: [['revision', 'absent or <', revision]] }];
  });
  await writeEach({ table: history, newId }, puts);
}

/** Returns the pointers by which a message is found: by job and by recipient. */
function toPointers({ message, recipients }: Pick<Work, 'message' | 'recipients'>): Item[] {
  const ttl = historyTtl(message);
  return [
    ...message.jobs.map((job) => ({ ...keys.sentOfJob(message, job, message.id), ttl })),
    ...recipients.map((recipient) => ({ ...keys.sentToRecipient(message, recipient, message.id), ttl })),
  ];
}

/** Places a message that did not reach its recipient in the `failures` index of the history, with the time of the failure (epoch ms). */
function toFailureKeys(
  { region, state }: Message,
  now: number,
): { readonly failedPk: string | undefined; readonly failedAt: number | undefined } {
  return isUndelivered(state)
    ? { failedPk: failedMessagesPk(region), failedAt: now }
    : { failedPk: undefined, failedAt: undefined };
}

const historyTtl = ({ createdAt }: Message): number => Math.floor(createdAt / 1000) + HISTORY_DAYS * 86_400;

/**
 * Writes groups of writes, each group atomically, and returns which were written. Several groups share a transaction, which is several
 * times as fast as one each. A group that fails is removed from its transaction. `journal` adds a write to each transaction. `held` is the
 * number of bytes that the items of a group contain besides what is written.
 */
async function writeEach(
  { table, newId }: Pick<JournalDeps, 'table' | 'newId'>,
  groups: readonly (readonly Write[])[],
  { journal, held = [] }: { readonly journal?: Journal; readonly held?: readonly number[] } = {},
): Promise<boolean[]> {
  const done = groups.map(() => false);
  await Promise.all(
    groupIntoTransactions(groups, held).map(async (positions) => {
      for (let left = positions; left.length > 0; ) {
        const owners = left.flatMap((at) => (groups[at] ?? []).map(() => at));
        const writes = left.flatMap((at) => groups[at] ?? []);
        const outcome = await table.transact(journal ? [...writes, journal.entry(left)] : writes, newId());
        if (outcome.done) {
          for (const at of left) done[at] = true;
          return;
        }
        const failed = new Set(outcome.failed.map((at) => owners[at]));
        if (failed.size === 0) throw new Error('A transaction failed without a failed condition.');
        left = left.filter((at) => !failed.has(at));
      }
    }),
  );
  return done;
}

/**
 * Returns the positions of groups that fit into one transaction with a journal entry. The transaction's size limit applies to whole items,
 * not only to changed attributes.
 */
function groupIntoTransactions(groups: readonly (readonly Write[])[], held: readonly number[]): number[][] {
  const transactions: number[][] = [];
  let actions = Number.POSITIVE_INFINITY;
  let bytes = 0;
  groups.forEach((group, at) => {
    // 200 bytes a group: the journal entry holds about one key for each.
    const size = group.reduce(
      (sum, write) => sum + 200 + estimateSize(getWrittenAttributes(write)),
      held[at] ?? 0,
    );
    if (actions + group.length > MAX_TRANSACTION_ACTIONS - 1 || bytes + size > MAX_TRANSACTION_BYTES) {
      transactions.push([]);
      actions = 0;
      bytes = 0;
    }
    transactions.at(-1)?.push(at);
    actions += group.length;
    bytes += size;
  });
  return transactions;
}

function getWrittenAttributes(write: Write) {
  if ('put' in write) return write.put;
  return 'update' in write ? write.set : {};
}

/** Returns the writes of a change. The first one is on the message's own item. */
function toWrites(now: number, { work, message, set = {}, along = [] }: Change): Write[] {
  const isDone = isFinal(message.state);
  const days = message.kind === 'note' ? NOTE_WORK_DAYS : WORK_DAYS;
  const place: Record<string, string | number | undefined> = isDone
    ? {
        ...{ duePk: undefined, dueSk: undefined, heldPk: undefined, heldSk: undefined },
        ttl: Math.floor(now / 1000) + days * 86_400,
      }
    : // A message that is being sent keeps its place in the index, so that it is found after a crash.
      message.state === 'waiting'
      ? // A retry does not change the time at which it was first due. A wait for something else does.
        toDueKey(work, message.dueAt ?? now, work.claim ? work.dueSince : undefined)
      : {};
  const own: Write = {
    update: toWorkKey(work),
    set: { ...place, ...set, revision: work.revision + 1, message: JSON.stringify(message) },
    when: [['revision', '=', work.revision]] satisfies Clause[],
  };
  return [own, ...along];
}

/** Returns the key of the work on a message. */
export function toWorkKey({ ref, message }: Pick<Work, 'ref' | 'message'>): Key {
  return keys.message(ref, parseWorkId(message.id));
}

function toDueKey({ ref, message: { id } }: Pick<Work, 'ref' | 'message'>, dueAt: number, since?: number) {
  return notifyDue('messages', ref, parseWorkId(id), dueAt, since);
}

function toItem(work: Work): Item {
  const { ref, message, thread, content, recipients, before, corrects, dispatches, revision } = work;
  return {
    ...toWorkKey(work),
    ...toDueKey(work, message.dueAt ?? message.createdAt),
    region: ref.region,
    account: ref.account,
    revision,
    message: JSON.stringify(message),
    work: JSON.stringify({ thread, content, recipients, before, corrects, dispatches }),
  };
}

/** Parses an item into the work on a message. */
export function toWork(item: Item): Work {
  const { reserved, feedback } = item;
  const message = toMessage(item);
  const claim =
    typeof item.claim === 'string'
      ? (JSON.parse(item.claim) as Pick<Claim, 'id' | 'until' | 'attempts' | 'repeats'>)
      : null;
  const claimed = claim && { state: 'sending' as const, attempts: claim.attempts, repeats: claim.repeats };
  return {
    ref: { region: String(item.region), account: String(item.account) },
    message: { ...message, ...claimed },
    ...(JSON.parse(String(item.work)) as Omit<NewWork, 'ref' | 'message'>),
    ...{ revision: Number(item.revision), bytes: estimateSize(item) },
    claim: claim && { id: claim.id, until: claim.until },
    dueSince: typeof item.dueSk === 'string' ? parseNotifyDue(item) : undefined,
    maybeSent: item.maybeSent === true || claim !== null,
    channelFailures: Number(item.channelFailures ?? 0),
    reserved: typeof reserved === 'string' ? (JSON.parse(reserved) as Work['reserved']) : null,
    feedback: typeof feedback === 'string' ? (JSON.parse(feedback) as Feedback) : null,
  };
}
