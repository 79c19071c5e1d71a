/**
 * Messages: what one address is told of one notice by one channel. Each is an item of work in the state table until some days
 * after it is over, and a record in the history, which is what people look at.
 *
 *   state   change of messages ─ and a journal entry that names them, in one transaction
 *   history                      └─▶ their records, each only over an older one ─▶ journal entry deleted
 *
 * The work is the truth and the record a copy of it. After a crash in between, the journal entry falls due like a message and
 * the records are written from the work as it stands. Every change raises a message's revision, and a record never goes over
 * a newer one, so whoever comes late changes nothing.
 */
import { hash } from 'node:crypto';
import {
  type AccountRef,
  cellLog,
  keys,
  notifyDue,
  sentOfJobPk,
  sentPk,
  sentToRecipientPk,
} from '../table/schema.ts';
import {
  type Clause,
  type Item,
  type Key,
  MAX_TRANSACTION_ACTIONS,
  MAX_TRANSACTION_BYTES,
  sizeOf,
  type Table,
  type Write,
} from '../table/table.ts';
import type { Channel, Message, MessageState, NoticeContent } from './model.ts';

/** How long the history of messages is kept. */
const HISTORY_DAYS = 180;
/** How long the work on a message stays after it is over: so long nothing is made twice, and feedback finds it. */
const WORK_DAYS = 14;
/** When a journal entry falls due whose writer did not come back. */
const JOURNAL_MS = 60_000;
/** How often something is decided anew because somebody else came in between. */
const ATTEMPTS = 20;

/** A message with all that sending it takes. */
export interface Work {
  readonly ref: AccountRef;
  readonly message: Message;
  readonly thread: string;
  /** What the notice says of the jobs that it is for. */
  readonly content: NoticeContent;
  /** All recipients with this address. */
  readonly recipients: readonly string[];
  /** The work on what was said before in this thread to the same address, oldest first. */
  readonly before: readonly string[];
  /** Raised by every change. */
  readonly revision: number;
  /** How large its item is, or a little more. */
  readonly bytes: number;
  /** Who is sending it, and until when (epoch ms) nobody else does. */
  readonly claim: { readonly id: string; readonly until: number } | null;
  /**
   * An attempt was made of which nobody knows what became, as it is of each that is claimed: an e-mail that is sent again is a
   * repeat.
   */
  readonly maybeSent: boolean;
  /** SMS segments counted for it, and in which month. */
  readonly reserved: { readonly month: string; readonly segments: number } | null;
  /** What came back before it was known that it was sent. */
  readonly feedback: Feedback | null;
}

/** What came back of a message. */
export interface Feedback {
  readonly state: 'bounced' | 'complained';
  readonly detail: string | null;
}

/** Whether nothing becomes of a message any more but feedback. */
export const isFinal = (state: MessageState): boolean => state !== 'waiting' && state !== 'sending';

/** What a message is known by: who tells it, the thread and the notice in it, and who is told how. */
export interface MessageIdentity extends AccountRef {
  readonly thread: string;
  readonly notice: string;
  /** Null, with the address, for a notice that becomes no messages. */
  readonly channel: Channel | null;
  /** Not as it is, for ids are shown and logged: sealed by the key of the region. */
  readonly address: string | null;
}

/** The key of a message's work: it can be told without knowing when the notice was observed. */
export function workId({ region, account, thread, notice, channel, address }: MessageIdentity): string {
  const digest = hash('sha256', JSON.stringify([region, account, thread, notice, channel, address]));
  return `${channel?.[0] ?? 'n'}${digest.slice(0, 32)}`;
}

/** Which channel a message goes by, by the key of its work. */
export const isOfChannel = (workId: string, channel: Channel): boolean =>
  workId.startsWith(channel.slice(0, 1));

/** The id of a message: sorts by the instant of what it is about, and ends in the key of its work. */
export function messageId(workId: string, observedAt: number): string {
  return `m${Math.max(0, Math.floor(observedAt)).toString(36).padStart(9, '0')}-${workId}`;
}

/** Whether a text can be the id of a message. No other text is looked up. */
export const isMessageId = (text: string): boolean => /^m[0-9a-z]{9,11}-[a-z][0-9a-f]{32}$/.test(text);

/** The key of the work on a message. */
export const workIdOf = (messageId: string): string => messageId.slice(messageId.indexOf('-') + 1);

/** A message as the history has it. */
export async function readMessage(history: Table, ref: AccountRef, id: string): Promise<Message | undefined> {
  const item = await history.get(keys.sentMessage(ref, id));
  return item && toMessage(item);
}

/** Which messages of an account are asked for. */
export interface MessageQuery {
  /** Only those about a job. */
  readonly job?: number | undefined;
  /** Only those to a recipient. */
  readonly recipient?: string | undefined;
  readonly state?: MessageState | undefined;
  /** Only what stands behind this: the `next` of the page before. */
  readonly after?: string | undefined;
  /** 50 unless told. */
  readonly limit?: number | undefined;
}

/** How many messages are looked through for those of one state before a page is given that is not full. */
const LOOKED_THROUGH = 1000;

/** An account's messages as the history has them, newest first; `next` is there when there may be more. */
export async function listMessages(
  history: Table,
  ref: AccountRef,
  { job, recipient, state, after, limit = 50 }: MessageQuery = {},
): Promise<{ readonly messages: Message[]; readonly next?: string }> {
  const pk =
    job !== undefined
      ? sentOfJobPk(ref, job)
      : recipient !== undefined
        ? sentToRecipientPk(ref, recipient)
        : sentPk(ref);
  const messages: Message[] = [];
  let last = after;
  for (let looked = 0; looked < LOOKED_THROUGH; looked += limit) {
    // The upper bound of a range is inclusive; what stands there was read before.
    const range = { pk, descending: true, limit: limit + 1, ...(last === undefined ? {} : { to: last }) };
    const read = await history.query(range);
    const page = read.filter(({ sk }) => sk !== last);
    const records = pk === sentPk(ref) ? page : await recordsOf(history, ref, page);
    const found = new Map(records.map((item) => [item.sk, toMessage(item)]));
    for (const { sk } of page) {
      const message = found.get(sk);
      if (message && (state === undefined || message.state === state)) {
        if (messages.length === limit) return { messages, ...(last === undefined ? {} : { next: last }) };
        messages.push(message);
      }
      last = sk;
    }
    if (read.length <= limit) return { messages };
  }
  return { messages, ...(last === undefined ? {} : { next: last }) };
}

/** The records that pointers name. */
function recordsOf(history: Table, ref: AccountRef, pointers: readonly Item[]): Promise<Item[]> {
  return history.getMany(pointers.map(({ sk }) => keys.sentMessage(ref, sk)));
}

/**
 * What came back of a message that was handed over. It may come before whoever sent it has said so: then it is kept with the
 * message, which becomes it instead of `sent`. Gives the message as it stands, `undefined` when there is none.
 */
export async function noteFeedback(
  deps: JournalDeps,
  at: AccountRef & { readonly message: string },
  state: Feedback['state'],
  detail: string | null,
): Promise<Message | undefined> {
  const feedback = { state, detail };
  for (let tries = 0; tries < ATTEMPTS; tries += 1) {
    const item = await deps.table.get(keys.message(at, workIdOf(at.message)));
    if (!item) return feedbackInHistory(deps, at, feedback);
    const work = toWork(item);
    const message = withFeedback(work.message, feedback);
    const early = work.message.state === 'sending';
    if (message === work.message && !early) return message;
    const change = { work, message, ...(early ? { set: { feedback: JSON.stringify(feedback) } } : {}) };
    const { done, keep } = await changeMessages(deps, at.region, [change]);
    if (done[0]) {
      await keep();
      return message;
    }
  }
  throw new Error(`Feedback on message ${at.message} met a change of it each time.`);
}

/** What becomes of a message that something came back of; the same one when it says nothing about it. */
export function withFeedback(message: Message, { state, detail }: Feedback): Message {
  const { state: before, attempts } = message;
  const applies =
    before === 'sent' ||
    before === 'unknown' ||
    before === 'failed' ||
    (before === 'waiting' && attempts > 0) ||
    (before === 'bounced' && state === 'complained');
  return applies && attempts > 0 ? { ...message, state, reason: state, detail, dueAt: null } : message;
}

/** Feedback on a message whose work is gone. */
async function feedbackInHistory(
  { history }: JournalDeps,
  at: AccountRef & { readonly message: string },
  feedback: Feedback,
): Promise<Message | undefined> {
  const key = keys.sentMessage(at, at.message);
  for (let tries = 0; tries < ATTEMPTS; tries += 1) {
    const item = await history.get(key);
    if (!item) return undefined;
    const before = toMessage(item);
    const message = withFeedback(before, feedback);
    if (message === before) return message;
    const revision = Number(item.revision);
    const outcome = await history.write({
      update: key,
      set: { message: JSON.stringify(message), revision: revision + 1 },
      when: [['revision', '=', revision]],
    });
    if (outcome.done) return message;
  }
  throw new Error(`Feedback on message ${at.message} met a change of its record each time.`);
}

/** What the writes of messages need. */
export interface JournalDeps {
  readonly table: Table;
  readonly history: Table;
  /** Epoch ms. */
  readonly now: () => number;
  readonly newId: () => string;
}

/** A change of a message that still stands as it was read. */
export interface Change {
  readonly work: Work;
  /** As it stands then. */
  readonly message: Message;
  /** Attributes of the work to set; `undefined` removes one. */
  readonly set?: {
    readonly claim?: string | undefined;
    readonly maybeSent?: boolean | undefined;
    readonly reserved?: string | undefined;
    readonly feedback?: string | undefined;
  };
  /** Done in the same transaction, or not at all. */
  readonly along?: readonly Write[];
}

/** Which of several changes were made, and what is left to do: their records in the history. */
export interface Changed {
  readonly done: readonly boolean[];
  keep(): Promise<void>;
}

/**
 * Writes changes of a region's messages, each one if its message stands as it was read. Throws TableError; then some are
 * written and some are not.
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
    changes.map((change) => writesOf(deps.now(), change)),
    { journal, held: changes.map(({ work }) => work.bytes) },
  );
  return { done, keep: () => journal.keep(changed.filter((_, at) => done[at])) };
}

/** That a message is about to be sent. */
export interface Claim {
  readonly work: Work;
  readonly id: string;
  /** Epoch ms. */
  readonly until: number;
  /** With this one. */
  readonly attempts: number;
  readonly repeats: number;
  readonly reserved?: Work['reserved'];
  /** Done in the same transaction, or not at all. */
  readonly along?: readonly Write[];
}

/** Claims messages, each one if it stands as it was read. That is no news, so the history does not hear of it. */
export async function claimMessages(deps: JournalDeps, claims: readonly Claim[]): Promise<boolean[]> {
  const writes = claims.map(({ work, id, until, attempts, repeats, reserved, along = [] }): Write[] => {
    const set = {
      ...{ claim: JSON.stringify({ id, until, attempts, repeats }), revision: work.revision + 1 },
      ...(reserved ? { reserved: JSON.stringify(reserved) } : {}),
    };
    return [{ update: workKey(work), set, when: [['revision', '=', work.revision]] }, ...along];
  });
  return writeEach(deps, writes, { held: claims.map(({ work }) => work.bytes) });
}

/** Makes those messages that are not there yet, and gives how many. Those that are there stay as they are. */
export async function makeMessages(
  deps: JournalDeps,
  region: string,
  fresh: readonly Pick<Work, 'ref' | 'message' | 'thread' | 'content' | 'recipients' | 'before'>[],
): Promise<number> {
  const works = fresh.map(
    (one): Work => ({
      ...one,
      revision: 1,
      bytes: 0,
      claim: null,
      maybeSent: false,
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
  const made = works.filter((_, at) => done[at]);
  await deps.history.putMany(made.flatMap(pointersOf));
  await journal.keep(made);
  return made.length;
}

/** Puts the record of a notice that became no messages into the history; done again, it changes nothing. */
export async function recordNoMessage(deps: JournalDeps, message: Message): Promise<void> {
  await deps.history.putMany(pointersOf({ message, recipients: [] }));
  await putRecords(deps, [{ message, revision: 1 }]);
}

/** Whether work that is due is a journal entry. */
export const isJournal = (key: Key): boolean => key.sk.startsWith('~');

/** Writes the records that a journal entry names, because whoever made the entry did not come to it. */
export async function settleJournal(deps: JournalDeps, entry: Item): Promise<void> {
  const named = JSON.parse(String(entry.messages)) as Key[];
  const works = (await deps.table.getMany(named)).map(toWork);
  await deps.history.putMany(works.flatMap(pointersOf));
  await putRecords(deps, works);
  await deps.table.write({ delete: { pk: entry.pk, sk: entry.sk } });
}

/** The entries that name what was changed, one in each transaction, until the history has it. */
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

  /** The entry of a transaction that changes the works at these positions. */
  entry(positions: readonly number[]): Write {
    const at = cellLog(this.#region);
    const key = keys.message(at, `~${this.#deps.newId()}`);
    this.#entries.push(key);
    const named = positions.flatMap((position) => this.#works[position] ?? []).map(workKey);
    const due = notifyDue('messages', at, key.sk, this.#deps.now() + JOURNAL_MS);
    return { put: { ...key, ...due, messages: JSON.stringify(named) } };
  }

  /** Writes the records, and takes the entries away. */
  async keep(changed: readonly Work[]): Promise<void> {
    await putRecords(this.#deps, changed);
    await Promise.all(this.#entries.map((key) => this.#deps.table.write({ delete: key })));
  }
}

/** Puts records into the history, each over an older one only. */
async function putRecords(
  { history, newId }: JournalDeps,
  records: readonly Pick<Work, 'message' | 'revision'>[],
): Promise<void> {
  const puts = records.map(({ message, revision }): Write[] => {
    const item = {
      ...keys.sentMessage(message, message.id),
      revision,
      message: JSON.stringify(message),
      ttl: historyTtl(message),
    };
    return [{ put: item, when: [['revision', 'absent or <', revision]] }];
  });
  await writeEach({ table: history, newId }, puts);
}

/** Where a message is found by its jobs and its recipients. */
function pointersOf({ message, recipients }: Pick<Work, 'message' | 'recipients'>): Item[] {
  const ttl = historyTtl(message);
  return [
    ...message.jobs.map((job) => ({ ...keys.sentOfJob(message, job, message.id), ttl })),
    ...recipients.map((recipient) => ({ ...keys.sentToRecipient(message, recipient, message.id), ttl })),
  ];
}

const historyTtl = ({ createdAt }: Message): number => Math.floor(createdAt / 1000) + HISTORY_DAYS * 86_400;

/**
 * Writes groups of writes, each group by itself, all of it or nothing: which were written. Many go into one transaction, for
 * that is several times as fast as each alone; what fails in it is taken out. `journal` adds a write to each transaction; `held`
 * is what the items of a group hold, in bytes, besides what is written.
 */
async function writeEach(
  { table, newId }: Pick<JournalDeps, 'table' | 'newId'>,
  groups: readonly (readonly Write[])[],
  { journal, held = [] }: { readonly journal?: Journal; readonly held?: readonly number[] } = {},
): Promise<boolean[]> {
  const done = groups.map(() => false);
  await Promise.all(
    transactionsOf(groups, held).map(async (positions) => {
      for (let left = positions; left.length > 0; ) {
        const owners = left.flatMap((at) => (groups[at] ?? []).map(() => at));
        const writes = left.flatMap((at) => groups[at] ?? []);
        const outcome = await table.transact(journal ? [...writes, journal.entry(left)] : writes, newId());
        if (outcome.done) {
          for (const at of left) done[at] = true;
          return;
        }
        const failed = new Set(outcome.failed.map((at) => owners[at]));
        if (failed.size === 0) throw new Error('A transaction failed, and nothing in it.');
        left = left.filter((at) => !failed.has(at));
      }
    }),
  );
  return done;
}

/** Positions of groups that fit into one transaction, with a journal entry. Its limit is on items, not on what changes of them. */
function transactionsOf(groups: readonly (readonly Write[])[], held: readonly number[]): number[][] {
  const transactions: number[][] = [];
  let actions = Number.POSITIVE_INFINITY;
  let bytes = 0;
  groups.forEach((group, at) => {
    // The entry takes about as much as a key for each.
    const size = group.reduce((sum, write) => sum + 200 + sizeOf(contentOf(write)), held[at] ?? 0);
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

function contentOf(write: Write) {
  if ('put' in write) return write.put;
  return 'update' in write ? write.set : {};
}

/** A change as writes, the first of them on the message's own item. */
function writesOf(now: number, { work, message, set = {}, along = [] }: Change): Write[] {
  const over = isFinal(message.state);
  const place: Record<string, string | number | undefined> = over
    ? { duePk: undefined, dueSk: undefined, ttl: Math.floor(now / 1000) + WORK_DAYS * 86_400 }
    : // What is being sent keeps its place, so that whoever comes after a crash finds it.
      message.state === 'waiting'
      ? placeOf(work, message.dueAt ?? now)
      : {};
  const own: Write = {
    update: workKey(work),
    set: { ...place, ...set, revision: work.revision + 1, message: JSON.stringify(message) },
    when: [['revision', '=', work.revision]] satisfies Clause[],
  };
  return [own, ...along];
}

/** The key of the work on a message. */
export function workKey({ ref, message }: Pick<Work, 'ref' | 'message'>): Key {
  return keys.message(ref, workIdOf(message.id));
}

function placeOf({ ref, message: { id } }: Pick<Work, 'ref' | 'message'>, dueAt: number) {
  return notifyDue('messages', ref, workIdOf(id), dueAt);
}

function toItem(work: Work): Item {
  const { ref, message, thread, content, recipients, before, revision } = work;
  return {
    ...workKey(work),
    ...placeOf(work, message.dueAt ?? message.createdAt),
    region: ref.region,
    account: ref.account,
    revision,
    message: JSON.stringify(message),
    work: JSON.stringify({ thread, content, recipients, before }),
  };
}

/** The work on a message as it stands. */
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
    ...(JSON.parse(String(item.work)) as Pick<Work, 'thread' | 'content' | 'recipients' | 'before'>),
    ...{ revision: Number(item.revision), bytes: sizeOf(item) },
    claim: claim && { id: claim.id, until: claim.until },
    maybeSent: item.maybeSent === true || claim !== null,
    reserved: typeof reserved === 'string' ? (JSON.parse(reserved) as Work['reserved']) : null,
    feedback: typeof feedback === 'string' ? (JSON.parse(feedback) as Feedback) : null,
  };
}

function toMessage(item: Item): Message {
  return JSON.parse(String(item.message)) as Message;
}
