/**
 * Sends notifications: closes notices whose window has expired, creates messages for all recipients, and sends due messages.
 *
 * due ─ read ─ judge ─┬─▶ not now, or never: recorded
 * └─ render ─ claim ─ send ─▶ recorded
 *
 * A claim is written before a message is sent and the outcome after it. So a crash in between leaves a claim without outcome. An e-mail is
 * then sent again with the same Message-ID and counted as a repeat. An SMS becomes `unknown`.
 * What is NOT guaranteed: that two mails to one address in different threads are sent in the order in which the changes happened.
 */
import pLimit from 'p-limit';
import { type AccountRef, cellLog, dueUntil, keys, NOTIFY_SHARDS, notifyDuePk } from '../storage/schema.ts';
import { gatherTableReads } from '../storage/shared-reads.ts';
import { type Item, type Key, type Table, TableError, type Write } from '../storage/table.ts';
import { normalized } from './addresses.ts';
import {
  type Change,
  type Changed,
  type Claim,
  changeMessages,
  claimMessages,
  isFinal,
  isJournal,
  isOfChannel,
  type JournalDeps,
  makeMessages,
  messageId,
  recordNoMessage,
  settleJournal,
  toWork,
  type Work,
  withFeedback,
  workId,
  workIdOf,
  workKey,
} from './messages.ts';
import { itemsOf, recipientsFor, toRecipient } from './recipients.ts';
import type { Rendered } from './render.ts';
import { sending } from './rendering.ts';
import { readSettingsOf } from './settings.ts';
import { changeSmsUse, monthOf, quietUntil, REGION_MONTHLY_SEGMENTS, readSmsUse } from './sms-limits.ts';
import { type Suppression, suppress, suppressionsOf } from './suppressions.ts';
import { resolveTemplate, type Template } from './templates.ts';
import { type ClosedNotice, finishNotice, standingJobs, takeDueNotices } from './thread-store.ts';
import {
  type Channel,
  channels,
  type EmailTransport,
  type Locale,
  type Message,
  type MessageKind,
  type MessageReason,
  type NotificationSettings,
  type OutgoingEmail,
  type OutgoingSms,
  type Recipient,
  type Scope,
  type SendOutcome,
  type SmsTransport,
} from './types.ts';
import { addressSealOf, unsubscribeUrlOf } from './unsubscribe.ts';

/** Dependencies of sending. */
export interface SendDeps extends JournalDeps {
  /** From 0 (inclusive) to 1 (exclusive). */
  readonly random: () => number;
  /** Base URL of Jobwire, for links. */
  readonly publicUrl: string;
  /** Absent: no e-mail transport is configured. */
  readonly email?: EmailTransport | undefined;
  readonly sms?: SmsTransport | undefined;
  /** Maximum number of concurrent sends of each channel. Default: 8. */
  readonly concurrency?: number | undefined;
  /** Time after which the outcome of a send is unknown, ms. Default: 60 s. */
  readonly sendTimeoutMs?: number | undefined;
  /** Wait after a window's end for events that were observed in it, ms. */
  readonly graceMs?: number;
  /** Maximum SMS segments of all accounts of a region in a month. Default: {@link REGION_MONTHLY_SEGMENTS}. */
  readonly regionMonthlySegments?: number | undefined;
  /** Called for every result of a message and every failure. */
  readonly report?: ((line: SendLine) => void) | undefined;
}

/** Result of one message, or one failure, as a log line: ids, no addresses. */
export interface SendLine {
  readonly region: string;
  readonly account?: string;
  readonly message?: string;
  readonly thread?: string;
  readonly channel?: Channel | null;
  readonly kind?: MessageKind;
  readonly outcome: Message['state'] | 'fault';
  readonly reason?: MessageReason | null;
  /** Explanation. */
  readonly detail?: string | null;
  readonly attempts?: number;
  readonly repeats?: number;
  /** Of the attempt. */
  readonly latencyMs?: number;
}

/** Result of a run of the sender. */
export interface SendReport {
  /** Number of notices that became messages or had no recipients. */
  readonly notices: number;
  /** Number of messages created. */
  readonly messages: number;
  readonly sent: number;
  /** Number of e-mails among those sent that may have been sent before. */
  readonly repeats: number;
  /** Number of messages not sent that are retried later. */
  readonly later: number;
  readonly failed: number;
  readonly suppressed: number;
  readonly dryRun: number;
  /** Number of SMS with unknown outcome. */
  readonly unknown: number;
  /** Channels that accept no message at present. */
  readonly held: readonly Channel[];
  /** Whether work was left at the deadline. */
  readonly more: boolean;
}

/** Number of notices processed together. */
const NOTICES_AT_ONCE = 100;
/** Number of notices whose recipients are read concurrently. */
const NOTICES_READ_AT_ONCE = 8;
/** Number of due items read at once from each shard. */
const PAGE = 200;
/** Number of messages judged together. The first batch is small, so that sending starts soon. */
const JUDGED_FIRST = 25;
const JUDGED_TOGETHER = 100;
/** Number of e-mails claimed together: the maximum that a crash may send again. */
const CLAIMED_TOGETHER = 40;
/** Duration of a claim. A live sender has recorded the outcome by then. */
const CLAIM_MS = 180_000;
const SEND_TIMEOUT_MS = 60_000;
/** Time before a claim's end that is reserved for recording the outcome. */
const CLAIM_MARGIN_MS = 10_000;
/** Delays before retries of a message that was not sent. The last one repeats. */
const RETRY_MS = [60_000, 300_000, 900_000, 3_600_000];
/** Number of consecutive attempts with unknown outcome after which the run stops using a channel. */
const MAX_UNKNOWN_RUNNING = 3;
/** Maximum number of sends whose outcome is not recorded. A crash sends at most these again, and those in progress. */
const MAX_UNNOTED = 60;
/** With a journal entry they make one transaction. */
const NOTED_TOGETHER = 99;
/** Outcomes are recorded once there are this many, or after a short wait. A batch costs a fraction of single writes. */
const NOTED_FROM = 40;
const NOTED_AFTER_MS = 50;
const HOUR_MS = 3_600_000;
/** Maximum number of retries after concurrent modification. */
const ATTEMPTS = 20;
/** Maximum length of stored text of a sent message, characters. */
const MAX_TEXT = 20_000;
const MAX_DETAIL = 300;

/** Closes due windows of a region, creates their messages and sends due ones, until none is left or until the deadline (epoch ms). */
export async function sendDue(deps: SendDeps, region: string, deadline: number): Promise<SendReport> {
  const from = deps.now();
  // Half of the time, so that new messages are sent as well.
  const making = makeDue(deps, region, from + (deadline - from) / 2);
  // Messages that exist are sent even if creating new ones fails.
  await making.catch(() => undefined);
  const run = new Run(deps, region, deadline);
  await run.all();
  const made = await making;
  return { ...run.report(), ...made, more: made.more || run.report().more };
}

// From notices to messages

/** Closes notices whose window has expired and creates their messages, until none is left or until the deadline. */
export async function makeDue(
  deps: SendDeps,
  region: string,
  deadline: number,
): Promise<Pick<SendReport, 'notices' | 'messages' | 'more'>> {
  const report = { notices: 0, messages: 0, more: false };
  while (deps.now() < deadline) {
    const notices = await takeDueNotices(deps, region, NOTICES_AT_ONCE, (ref, cause) =>
      reportFault(deps, { ref }, cause),
    );
    if (notices.length === 0) return report;
    const { finished, made } = await tell(deps, region, notices);
    report.notices += finished;
    report.messages += made;
    // Failed notices are handed out again later.
    if (finished === 0) return report;
  }
  return { ...report, more: true };
}

/** Creates messages of notices. A notice that fails is unchanged, and the others proceed. */
async function tell(
  deps: SendDeps,
  region: string,
  notices: readonly ClosedNotice[],
): Promise<{ readonly finished: number; readonly made: number }> {
  const refs = new Map(notices.map(({ ref }) => [ref.account, ref]));
  const settings = new Map(
    (await readSettingsOf(deps.table, [...refs.values()])).map((one) => [one.account, one]),
  );
  const limit = pLimit(NOTICES_READ_AT_ONCE);
  const table = gatherTableReads(deps.table);
  const seal = await addressSealOf(deps.table, region);
  const told = (
    await limit.map([...notices], async (notice) => {
      try {
        const found = await recipientsFor(table, notice.ref, notice.scopes);
        const ofAccount = settings.get(notice.ref.account);
        return [{ notice, ...messagesOf(notice, ofAccount, found, deps.now(), seal) }];
      } catch (cause) {
        reportFault(deps, notice, cause);
        return [];
      }
    })
  ).flat();
  // A later notice of the same thread would overtake one that failed.
  const stuck = new Set(
    notices
      .filter((one) => !told.some(({ notice }) => notice === one))
      .map(({ thread, ref }) => `${ref.account} ${thread}`),
  );
  const ready = told.filter(({ notice }) => !stuck.has(`${notice.ref.account} ${notice.thread}`));
  const works = ready.flatMap((one) => one.works);
  let made: number;
  let done = ready;
  try {
    made = await makeMessages(deps, region, works);
  } catch (cause) {
    // One of them may be the one that cannot be written.
    if (ready.length === 1) throw cause;
    made = 0;
    done = [];
    for (const one of ready) {
      try {
        made += await makeMessages(deps, region, one.works);
        done.push(one);
      } catch (fault) {
        reportFault(deps, one.notice, fault);
      }
    }
    if (done.length === 0) throw cause;
  }
  await limit.map(done, async ({ notice, nobody }) => {
    if (nobody) {
      await recordNoMessage(deps, nobody);
      reportMessage(deps, nobody);
    }
    await finishNotice(deps, notice);
  });
  return { finished: done.length, made };
}

/** Returns the messages of a notice: one for each channel and address, or the record of a notice without recipients. */
export function messagesOf(
  notice: ClosedNotice,
  settings: NotificationSettings | undefined,
  found: readonly { readonly recipient: Recipient; readonly jobs: readonly number[] }[],
  now: number,
  seal: (address: string) => string,
): {
  readonly works: readonly Pick<Work, 'ref' | 'message' | 'thread' | 'content' | 'recipients' | 'before'>[];
  readonly nobody?: Message;
} {
  const { ref, thread, id: noticeId, content, again, earlier } = notice;
  const common = {
    ...{ region: ref.region, account: ref.account, kind: content.kind, orderGroup: content.orderGroup },
    ...{ detail: null, createdAt: now, sentAt: null, attempts: 0, repeats: 0, providerId: null },
    ...{ subject: null, text: null, segments: null },
  };
  const numbers = content.jobs.map(({ jobNumber }) => jobNumber);
  const identity = { ...ref, thread, notice: noticeId };
  const nobody = (reason: MessageReason): { works: []; nobody: Message } => ({
    works: [],
    nobody: {
      ...common,
      id: messageId(workId({ ...identity, channel: null, address: null }), content.observedAt),
      ...{ jobs: numbers, channel: null, to: null, state: 'suppressed', reason, dueAt: null },
    },
  });
  if (!settings?.enabled) return nobody('turned_off');

  const addressed = new Map<
    string,
    { channel: Channel; address: string; jobs: Set<number>; all: Recipient[]; closest: Recipient }
  >();
  for (const { recipient, jobs } of found) {
    if (recipient.paused || !recipient.kinds.includes(content.kind)) continue;
    // A recipient that was not sent the revocation does not need the repeated dispatch.
    const news = jobs.filter((job) => !again.includes(job) || recipient.kinds.includes('dispatch_revoked'));
    for (const channel of recipient.channels) {
      const address = addressOf(recipient, channel);
      if (address === null || news.length === 0 || (channel === 'sms' && !settings.sms.enabled)) continue;
      const key = `${channel} ${normalized(channel, address)}`;
      const known = addressed.get(key) ?? {
        ...{ channel, address, jobs: new Set<number>(), all: [], closest: recipient },
      };
      for (const job of news) if (numbers.includes(job)) known.jobs.add(job);
      known.all.push(recipient);
      if (closeness(recipient.scope) > closeness(known.closest.scope)) {
        known.closest = recipient;
        known.address = address;
      }
      addressed.set(key, known);
    }
  }
  const works = [...addressed.values()]
    .filter(({ jobs }) => jobs.size > 0)
    .map(({ channel, address, jobs, all, closest }) => {
      const place = { channel, address: seal(normalized(channel, address)) };
      const message: Message = {
        ...common,
        id: messageId(workId({ ...identity, ...place }), content.observedAt),
        ...{ jobs: numbers.filter((job) => jobs.has(job)), channel, state: 'waiting', reason: null },
        dueAt: now,
        to: {
          ...{ recipient: closest.id, name: closest.name, address },
          ...{ locale: closest.locale ?? settings.locale, zone: closest.zone ?? settings.zone },
        },
      };
      return {
        ...{ ref, message, thread, recipients: all.map(({ id }) => id) },
        content: { ...content, jobs: content.jobs.filter(({ jobNumber }) => jobs.has(jobNumber)) },
        before: earlier.map((notice) => workId({ ...ref, thread, notice, ...place })),
      };
    });
  return works.length > 0 ? { works } : nobody('no_recipient');
}

/** Returns how specific a recipient's scope is. The most specific recipient determines name, language and time zone. */
function closeness(scope: Scope): number {
  return ['account', 'orderGroup', 'orderNumber', 'job'].indexOf(scope.for);
}

const addressOf = (recipient: Recipient, channel: Channel): string | null =>
  channel === 'email' ? recipient.email : recipient.mobile;

// From messages to mails

/** State that the verdict on a due message depends on. */
export interface Surroundings {
  readonly now: number;
  readonly settings: NotificationSettings | undefined;
  /** The existing recipients of the message. */
  readonly recipients: readonly Recipient[];
  readonly suppression: Suppression | undefined;
  /** Jobs of which the notice is still true. */
  readonly standing: ReadonlySet<number>;
  /** Earlier messages of its thread to the same address, as far as they still exist. */
  readonly before: readonly Message[];
  readonly canSend: boolean;
}

/** Verdict on a due message. */
export type Verdict =
  | { readonly kind: 'send'; readonly settings: NotificationSettings; readonly jobs: readonly number[] }
  /** The changed message. */
  | { readonly kind: 'change'; readonly message: Message }
  /** It has to wait for another message, and there is nothing to record. */
  | { readonly kind: 'wait' };

/** Decides on a due message. */
export function judge({ message, content, maybeSent, feedback }: Work, around: Surroundings): Verdict {
  const { now, settings, recipients, suppression, standing, before, canSend } = around;
  const { channel, to, kind } = message;
  const become = (
    state: Message['state'],
    reason: MessageReason | null,
    detail: string | null = maybeSent ? 'An attempt before this may have reached the recipient.' : null,
  ): Verdict => ({ kind: 'change', message: { ...message, state, reason, detail, dueAt: null } });

  if (feedback) {
    return { kind: 'change', message: withFeedback({ ...message, state: 'sent' }, feedback) };
  }
  // The process that claimed it has stopped.
  if (message.state === 'sending' && channel === 'sms') {
    return become('unknown', 'unknown_outcome', 'Whoever sent it did not come to say what became of it.');
  }
  if (!settings?.enabled || !channel || !to || (channel === 'sms' && !settings.sms.enabled)) {
    return become('suppressed', 'turned_off');
  }
  const isThere = (recipient: Recipient): boolean => {
    const address = addressOf(recipient, channel);
    return (
      !recipient.paused &&
      recipient.channels.includes(channel) &&
      recipient.kinds.includes(kind) &&
      address !== null &&
      normalized(channel, address) === normalized(channel, to.address)
    );
  };
  if (!recipients.some(isThere)) return become('suppressed', 'turned_off');
  if (now > content.observedAt + settings.maxAgeHours * HOUR_MS) {
    return message.attempts > 0
      ? become('failed', 'gave_up', message.detail)
      : become('suppressed', 'too_old');
  }
  const jobs = message.jobs.filter((job) => standing.has(job));
  if (jobs.length === 0) return become('suppressed', 'revoked');
  if (suppression) return become('suppressed', suppression.reason);
  const ahead = before.find(({ state }) => !isFinal(state));
  if (ahead) {
    const dueAt = ahead.state === 'waiting' ? (ahead.dueAt ?? now) : now;
    return dueAt > now
      ? { kind: 'change', message: { ...message, state: 'waiting', dueAt } }
      : { kind: 'wait' };
  }
  if (!settings.dryRun && !canSend) return become('failed', 'no_channel');
  if (channel === 'sms' && !settings.dryRun) {
    const dueAt = quietUntil(settings.sms.quietHours, to.zone, now);
    if (dueAt > now) return { kind: 'change', message: { ...message, state: 'waiting', dueAt } };
  }
  return { kind: 'send', settings, jobs };
}

/** Returns a message after an attempt. `before`: whether an earlier attempt may have reached the recipient. */
export function afterAttempt(
  { message }: Work,
  outcome: SendOutcome,
  {
    now,
    random,
    before,
    giveUpAt,
  }: {
    readonly now: number;
    readonly random: number;
    readonly before: boolean;
    readonly giveUpAt: number;
  },
): {
  readonly message: Message /** Whether an attempt may have reached the recipient and another one may follow. */;
  readonly maybeSent: boolean;
} {
  // A message that was certainly not accepted is no repeat.
  const unrepeated = { ...message, repeats: message.repeats - (before ? 1 : 0) };
  const step = RETRY_MS[Math.min(message.attempts, RETRY_MS.length) - 1] ?? RETRY_MS[0] ?? 0;
  const again = (least: number, delay: number): number => {
    const dueAt = now + Math.max(least, Math.round(delay * (0.9 + random / 5)));
    // The next check is at the latest when the message is given up.
    return Math.min(dueAt, Math.max(now, giveUpAt + 1));
  };
  switch (outcome.kind) {
    case 'accepted': {
      const { providerId } = outcome;
      const over = { reason: null, detail: null, dueAt: null, sentAt: now, providerId } as const;
      return { message: { ...message, state: 'sent', ...over }, maybeSent: false };
    }
    case 'refused': {
      const reason = outcome.address === 'opted_out' ? 'opted_out' : 'refused';
      const detail = withoutAddresses(outcome.reason, message);
      return {
        message: { ...unrepeated, state: 'failed', reason, detail, dueAt: null },
        maybeSent: before,
      };
    }
    case 'later': {
      // A failure of the whole channel does not count as the message's own.
      const dueAt = again(outcome.afterMs ?? 0, outcome.everything ? (RETRY_MS[0] ?? 0) : step);
      const detail = withoutAddresses(outcome.reason, message);
      return { message: { ...unrepeated, state: 'waiting', detail, dueAt }, maybeSent: before };
    }
    case 'unknown': {
      const detail = withoutAddresses(outcome.reason, message);
      if (message.channel === 'sms') {
        const over = { reason: 'unknown_outcome', detail, dueAt: null } as const;
        return { message: { ...message, state: 'unknown', ...over }, maybeSent: false };
      }
      const dueAt = again(0, step);
      return { message: { ...message, state: 'waiting', detail, dueAt }, maybeSent: true };
    }
  }
}

/** Removes addresses from a text of the other side. */
export function withoutAddresses(text: string, { to }: Pick<Message, 'to'>): string {
  const digits = (to?.address ?? '').replace(/^\+/, '');
  return (digits === '' ? text : text.replaceAll(digits, '…'))
    .replace(/[^\s<>()"'@,;:]+@[^\s<>()"',;]+/g, '…')
    .replace(/\+\d[\d ().-]{5,}\d/g, '…')
    .replace(/[\p{Cc}\s]+/gu, ' ')
    .slice(0, MAX_DETAIL);
}

/** A message that is ready to be sent. */
interface Ready {
  readonly work: Work;
  readonly settings: NotificationSettings;
  /** With the subject and text that are sent. */
  readonly message: Message;
  /** Set with the claim: whether an earlier attempt may have reached the recipient. */
  readonly before?: boolean;
  readonly send: (deps: SendDeps) => Promise<SendOutcome>;
}

/** One run of the sender. */
class Run {
  readonly #deps: SendDeps;
  readonly #region: string;
  readonly #deadline: number;
  readonly #table: Table;
  readonly #notes: Notes;
  readonly #templates = new Map<string, Promise<Template | undefined>>();
  #smsTurn: Promise<unknown> = Promise.resolve();
  readonly #held = new Set<Channel>();
  /** Addresses that rejected mail for good in this run. */
  readonly #shut = new Set<string>();
  #more = false;

  constructor(deps: SendDeps, region: string, deadline: number) {
    this.#deps = deps;
    this.#region = region;
    this.#deadline = deadline;
    this.#table = gatherTableReads(deps.table);
    this.#notes = new Notes(deps, region);
  }

  report(): Omit<SendReport, 'notices' | 'messages'> {
    return { ...this.#notes.counts, held: [...this.#held], more: this.#more };
  }

  /** Sends due messages. Throws the first table error after everything in progress is recorded. */
  async all(): Promise<void> {
    const ends = await Promise.allSettled(channels.map((channel) => this.#channel(channel)));
    const noted = await Promise.allSettled([this.#notes.end()]);
    for (const end of [...ends, ...noted]) if (end.status === 'rejected') throw end.reason;
  }

  /** Sends due messages of one channel. Messages that wait for others are tried again after those. */
  async #channel(channel: Channel): Promise<void> {
    for (;;) {
      const lane = new Lane(channel, this.#deps);
      const before = this.#notes.over;
      const waiting = await this.#pass(lane);
      await this.#notes.settled();
      if (lane.isClosed) this.#held.add(channel);
      if (waiting === 0 || lane.isClosed || this.#notes.over === before || this.#isOver()) return;
    }
  }

  #isOver(): boolean {
    const over = this.#deps.now() >= this.#deadline;
    if (over) this.#more = true;
    return over;
  }

  /** Goes once through all due messages and returns how many had to wait for another. */
  async #pass(lane: Lane): Promise<number> {
    let waiting = 0;
    const ready = ahead(
      mapped(this.#due(lane), async (items) => {
        const judged = await this.#judged(lane, items);
        waiting += judged.waiting;
        return judged.ready;
      }),
    );
    try {
      for await (const claimed of ahead(this.#claims(lane, ready))) {
        for (const one of claimed) {
          await lane.room();
          const isShut = this.#isShut(one.work);
          if (isShut) waiting += 1;
          if (lane.isClosed || isShut || this.#isLate(one.work)) {
            const isClaimed = one.before !== undefined;
            if (isClaimed)
              this.#notes.add({ change: released(one, this.#deps.now()), work: one.work, quiet: true });
            lane.finished();
          } else {
            lane.run(() => this.#attempt(lane, one).catch((cause: unknown) => this.#notes.fail(cause)));
          }
        }
        await this.#notes.room();
      }
    } finally {
      await lane.idle();
    }
    return waiting;
  }

  /** Returns whether the address rejected mail for good in this run. */
  #isShut({ message: { channel, to } }: Work): boolean {
    return channel !== null && to !== null && this.#shut.has(`${channel} ${normalized(channel, to.address)}`);
  }

  /** Returns whether a claim may expire before the outcome of the send is known. */
  #isLate({ claim }: Work): boolean {
    const { now, sendTimeoutMs = SEND_TIMEOUT_MS } = this.#deps;
    return claim !== null && now() + sendTimeoutMs + CLAIM_MARGIN_MS > claim.until;
  }

  /** Reads due work of a channel page by page. */
  async *#due(lane: Lane): AsyncGenerator<Item[]> {
    const to = dueUntil(this.#deps.now());
    let isFirst = true;
    const first = Math.floor(this.#deps.random() * NOTIFY_SHARDS);
    let shards = Array.from({ length: NOTIFY_SHARDS }, (_, at) => ({
      pk: notifyDuePk('messages', this.#region, (first + at) % NOTIFY_SHARDS),
      after: undefined as string | undefined,
    }));
    while (shards.length > 0 && !lane.isClosed && !this.#isOver()) {
      const pages = await Promise.all(
        shards.map(async (shard) => {
          const page = await this.#deps.table.query({
            ...{ index: 'due', pk: shard.pk, to, limit: PAGE },
            ...(shard.after === undefined ? {} : { after: shard.after }),
          });
          return { page, next: { pk: shard.pk, after: String(page.at(-1)?.dueSk) } };
        }),
      );
      shards = pages.filter(({ page }) => page.length === PAGE).map(({ next }) => next);
      const found = pages.flatMap(({ page }) => page);
      const mine = found.filter(({ sk }) => isOfChannel(sk, lane.channel));
      const journals = lane.channel === 'email' ? found.filter(isJournal) : [];
      for (const journal of await this.#deps.table.getMany(journals.map(keyOfItem))) {
        await settleJournal(this.#deps, journal).catch((cause: unknown) => {
          reportFault(this.#deps, { ref: { region: this.#region } }, cause);
        });
      }
      for (let at = 0; at < mine.length && !lane.isClosed; ) {
        const some = mine.slice(at, at + (isFirst ? JUDGED_FIRST : JUDGED_TOGETHER));
        isFirst = false;
        at += some.length;
        const items = await this.#deps.table.getMany(some.map(keyOfItem));
        yield items.filter((item) => typeof item.duePk === 'string');
      }
    }
  }

  /** Parses an item. An invalid one yields no work and does not delay the others. */
  #read(item: Item): Work[] {
    try {
      return [toWork(item)];
    } catch (cause) {
      reportFault(this.#deps, { ref: { region: this.#region } }, cause);
      return [];
    }
  }

  /** Decides on due work. Records messages that are not sent and yields the others, rendered. */
  async #judged(
    lane: Lane,
    items: readonly Item[],
  ): Promise<{ readonly ready: Ready[]; readonly waiting: number }> {
    const { now } = this.#deps;
    const works = items
      .flatMap((item) => this.#read(item))
      .filter(
        ({ message, claim }) =>
          !isFinal(message.state) &&
          (message.state === 'sending' ? (claim?.until ?? 0) <= now() : (message.dueAt ?? 0) <= now()),
      )
      .sort((a, b) => (a.message.id < b.message.id ? -1 : 1));
    if (works.length === 0) return { ready: [], waiting: 0 };
    const around = await this.#around(lane, works);
    const ready: Ready[] = [];
    let waiting = 0;
    await Promise.all(
      works.map(async (work, at) => {
        try {
          const surroundings = around[at];
          if (!surroundings) return;
          const verdict = judge(work, surroundings);
          if (verdict.kind === 'wait') waiting += 1;
          else if (verdict.kind === 'change') this.#notes.add({ change: plain(work, verdict.message), work });
          else {
            const made = await this.#rendered(work, verdict.settings, verdict.jobs, surroundings.before);
            if ('send' in made) ready.push(made);
            else this.#notes.add({ change: plain(work, made), work });
          }
        } catch (cause) {
          if (cause instanceof TableError) throw cause;
          reportFault(this.#deps, work, cause);
        }
      }),
    );
    return { ready, waiting };
  }

  /** Reads the state that verdicts depend on, for all messages of a batch. */
  async #around(lane: Lane, works: readonly Work[]): Promise<(Surroundings | undefined)[]> {
    const { table, now } = this.#deps;
    const refs = new Map(works.map(({ ref }) => [ref.account, ref]));
    const asked = works.map(({ ref, message }) => {
      return { ref, channel: lane.channel, address: message.to?.address ?? '' };
    });
    const earlier = works.flatMap(({ ref, before }) => before.map((id) => keys.message(ref, id)));
    const [settings, recipients, suppressions, before, standing] = await Promise.all([
      readSettingsOf(table, [...refs.values()]),
      Promise.all(
        [...refs.values()].map(async (ref) => {
          const ids = works
            .filter((work) => work.ref.account === ref.account)
            .flatMap((work) => work.recipients);
          const found = await itemsOf(table, ref, ids);
          return new Map(found.map((item) => [item.sk, toRecipient(ref, item)]));
        }),
      ),
      suppressionsOf(table, asked),
      earlier.length === 0 ? [] : table.getMany(earlier),
      Promise.all(
        works.map((work) =>
          standingJobs(this.#table, work.ref, work.thread, work.content).catch((cause: unknown) => {
            if (cause instanceof TableError) throw cause;
            reportFault(this.#deps, work, cause);
            return undefined;
          }),
        ),
      ),
    ]);
    const byAccount = new Map([...refs.keys()].map((account, at) => [account, recipients[at]]));
    const found = new Map(
      before.flatMap((item) => this.#read(item).map(({ message }) => [`${item.pk} ${item.sk}`, message])),
    );
    return works.map((work, at) => {
      const stands = standing[at];
      if (!stands) return undefined;
      return {
        now: now(),
        settings: settings.find(({ account }) => account === work.ref.account),
        recipients: work.recipients.flatMap((id) => byAccount.get(work.ref.account)?.get(id) ?? []),
        suppression: suppressions[at],
        standing: stands,
        before: work.before.flatMap((id) => {
          const { pk, sk } = keys.message(work.ref, id);
          return found.get(`${pk} ${sk}`) ?? [];
        }),
        canSend: this.#deps[lane.channel] !== undefined,
      };
    });
  }

  /** Renders a message. Returns the changed message if it cannot be sent. */
  async #rendered(
    work: Work,
    settings: NotificationSettings,
    jobs: readonly number[],
    before: readonly Message[],
  ): Promise<Ready | Message> {
    const { ref, message, content } = work;
    const { channel, to } = message;
    if (!channel || !to) throw new Error('A message to nobody was to be sent.');
    const unsubscribeUrl = await unsubscribeUrlOf(this.#deps, ref, channel, to.address);
    const template = await this.#template(ref, content.kind, channel, to.locale);
    const input = {
      content: { ...content, jobs: content.jobs.filter(({ jobNumber }) => jobs.includes(jobNumber)) },
      ...{ recipient: to, branding: settings.branding, unsubscribeUrl, template },
    };
    const failed = (reason: string): Message => {
      const detail = withoutAddresses(reason, message);
      return { ...message, state: 'failed', reason: 'template', detail, dueAt: null };
    };
    const dryRun = { state: 'dry_run', reason: null, detail: null, dueAt: null } as const;
    if (channel === 'email') {
      const rendered = await tried(() => sending.email(input, ref.account));
      if (rendered.kind === 'failed') return failed(rendered.reason);
      const { subject, html, text } = rendered.value;
      const worded = { ...message, jobs, subject, text: shortened(text) };
      if (settings.dryRun) return { ...worded, ...dryRun };
      const mail = (domain: string): OutgoingEmail => ({
        messageId: `${workIdOf(message.id)}@${domain}`,
        references: before
          .filter(({ sentAt }) => sentAt !== null)
          .map(({ id }) => `${workIdOf(id)}@${domain}`),
        ...{ fromName: settings.branding.name, to, replyTo: settings.replyTo },
        ...{ subject, html, text, unsubscribeUrl },
        tags: { region: ref.region, account: ref.account, message: message.id },
      });
      return {
        ...{ work, settings, message: worded },
        send: async ({ email }) => (email ? email.send(mail(email.domain)) : NOTHING_SET_UP),
      };
    }
    const rendered = await tried(() => sending.sms(input, ref.account));
    if (rendered.kind === 'failed') return failed(rendered.reason);
    const { text, segments } = rendered.value;
    const worded = { ...message, jobs, text, segments };
    if (settings.dryRun) return { ...worded, ...dryRun };
    const outgoing: OutgoingSms = { to: to.address, text, senderId: settings.sms.senderId };
    return {
      ...{ work, settings, message: worded },
      send: async ({ sms }) => (sms ? sms.send(outgoing) : NOTHING_SET_UP),
    };
  }

  /** Reads an account's own template, once per run. */
  #template(
    ref: AccountRef,
    kind: MessageKind,
    channel: Channel,
    locale: Locale,
  ): Promise<Template | undefined> {
    const name = `${ref.account} ${kind} ${channel} ${locale}`;
    const known = this.#templates.get(name) ?? resolveTemplate(this.#deps.table, ref, kind, channel, locale);
    this.#templates.set(name, known);
    return known;
  }

  /** Claims ready messages, as many as the lane can send. An SMS is claimed right before it is sent, because its claim is final. */
  async *#claims(lane: Lane, ready: AsyncIterable<readonly Ready[]>): AsyncGenerator<Ready[]> {
    for await (const batch of ready) {
      for (let at = 0; at < batch.length; ) {
        await lane.known();
        if (lane.isClosed || this.#notes.hasFailed || this.#isOver()) return;
        const some = batch.slice(at, at + (lane.isProven ? CLAIMED_TOGETHER : 1));
        at += some.length;
        const claimed = lane.channel === 'sms' ? some : await this.#claimed(some);
        lane.begin(claimed.length);
        if (claimed.length > 0) yield claimed;
      }
    }
  }

  /** Claims e-mails and returns those that no other sender claimed. */
  async #claimed(some: readonly Ready[]): Promise<Ready[]> {
    const claims = some.map((one) => this.#claim(one));
    const done = await claimMessages(
      this.#deps,
      claims.map(({ claim }) => claim),
    );
    return claims.filter((_, at) => done[at]).map(({ ready }) => ready);
  }

  /** Returns a claim and the message with it. */
  #claim(ready: Ready, reserved: Work['reserved'] = null): { readonly claim: Claim; readonly ready: Ready } {
    const { work, message } = ready;
    const [id, until] = [this.#deps.newId(), this.#deps.now() + CLAIM_MS];
    const attempts = work.message.attempts + 1;
    const repeats = work.message.repeats + (work.maybeSent ? 1 : 0);
    const claimed: Work = {
      ...work,
      ...{ message: { ...message, state: 'sending', attempts, repeats }, revision: work.revision + 1 },
      ...{ claim: { id, until }, maybeSent: true, reserved },
    };
    return {
      claim: { work, id, until, attempts, repeats, reserved },
      ready: { ...ready, work: claimed, before: work.maybeSent },
    };
  }

  /** Claims an SMS together with its segments of the account's monthly limit. `undefined` if it is not sent. */
  async #claimedSms(ready: Ready): Promise<Ready | undefined> {
    const { table, now, regionMonthlySegments = REGION_MONTHLY_SEGMENTS } = this.#deps;
    const { ref, message } = ready.work;
    const region = cellLog(ref.region);
    const segments = ready.message.segments ?? 1;
    for (let tries = 0; tries < ATTEMPTS; tries += 1) {
      const month = monthOf(now());
      const [use, all] = await Promise.all([readSmsUse(table, ref, month), readSmsUse(table, region, month)]);
      const isOver = use.segments + segments > ready.settings.sms.monthlySegments;
      if (isOver || all.segments + segments > regionMonthlySegments) {
        const over = { state: 'suppressed', reason: 'quota', detail: null, dueAt: null } as const;
        this.#notes.add({ work: ready.work, change: plain(ready.work, { ...message, ...over }) });
        return undefined;
      }
      const { claim, ready: claimed } = this.#claim(ready, { month: use.month, segments });
      // Segments of an SMS that is not sent are returned to the account. For the region they stay counted.
      const along = [changeSmsUse(ref, use, segments), changeSmsUse(region, all, segments)];
      const [done] = await claimMessages(this.#deps, [{ ...claim, along }]);
      if (done) return claimed;
      const item = await table.get(workKey(ready.work));
      // Another process changed the message. Otherwise the monthly use changed.
      if (item?.revision !== ready.work.revision) return undefined;
    }
    throw new TableError('write', 'the SMS of a month were counted by others each time');
  }

  /** Serializes actions that change the counts of SMS. */
  #inTurn<T>(action: () => Promise<T>): Promise<T> {
    const turn = this.#smsTurn.then(action);
    this.#smsTurn = turn.catch(() => undefined);
    return turn;
  }

  /** Sends a message and records the outcome. */
  async #attempt(lane: Lane, ready: Ready): Promise<void> {
    const one = lane.channel === 'sms' ? await this.#inTurn(() => this.#claimedSms(ready)) : ready;
    if (!one) return;
    const began = performance.now();
    const outcome = await this.#handOver(one);
    const latencyMs = Math.round(performance.now() - began);
    lane.answered(outcome);
    const { ref, message } = one.work;
    if (outcome.kind === 'refused' && outcome.address && message.to) {
      const addressed = { channel: lane.channel, address: message.to.address };
      this.#shut.add(`${lane.channel} ${normalized(lane.channel, message.to.address)}`);
      await suppress(this.#deps, ref, addressed, outcome.address).catch((cause: unknown) => {
        reportFault(this.#deps, one.work, cause);
      });
    }
    const lost = (): Promise<void> => this.#lost(one, outcome, latencyMs);
    if (lane.channel === 'sms') await this.#inTurn(lost);
    else this.#notes.add({ ...(await this.#outcome(one, one.work, outcome, latencyMs)), lost });
  }

  async #handOver({ send }: Ready): Promise<SendOutcome> {
    const { sendTimeoutMs = SEND_TIMEOUT_MS } = this.#deps;
    let timer: NodeJS.Timeout | undefined;
    const silence = new Promise<SendOutcome>((resolve) => {
      const reason = `There was no answer within ${Math.round(sendTimeoutMs / 1000)} s.`;
      timer = setTimeout(() => resolve({ kind: 'unknown', reason }), sendTimeoutMs);
    });
    try {
      return await Promise.race([send(this.#deps), silence]);
    } catch (cause) {
      const reason = `It failed without an answer (${cause instanceof Error ? cause.name : typeof cause}).`;
      return { kind: 'unknown', reason };
    } finally {
      clearTimeout(timer);
    }
  }

  /** Returns the change of a message after an attempt. */
  async #outcome(
    { settings, before = false }: Ready,
    work: Work,
    outcome: SendOutcome,
    latencyMs: number,
  ): Promise<Note> {
    const { table, now, random } = this.#deps;
    const giveUpAt = giveUpAtOf(work, settings);
    const after = afterAttempt(work, outcome, { now: now(), random: random(), before, giveUpAt });
    // Feedback is more informative than the response.
    const message = work.feedback
      ? withFeedback({ ...after.message, state: 'sent' }, work.feedback)
      : after.message;
    // An SMS that was certainly not sent is not counted.
    const back = outcome.kind === 'refused' || outcome.kind === 'later' ? work.reserved : null;
    const use = back && (await readSmsUse(table, work.ref, back.month));
    const along: Write[] = back && use ? [changeSmsUse(work.ref, use, -back.segments)] : [];
    const set = {
      ...{ claim: undefined, ...(after.maybeSent ? { maybeSent: true } : {}) },
      ...(back ? { reserved: undefined } : {}),
    };
    return { work, change: { work, message, set, along }, latencyMs };
  }

  /**
   * Records the outcome of an attempt on the current message. Meanwhile feedback may have arrived, or the claim may have expired and
   * another sender may hold the message.
   */
  async #lost(one: Ready, outcome: SendOutcome, latencyMs: number): Promise<void> {
    await this.#notes.force(async () => {
      const item = await this.#deps.table.get(workKey(one.work));
      if (!item) return undefined;
      const stands = toWork(item);
      const { attempts, repeats, state } = stands.message;
      const work = { ...stands, message: { ...one.work.message, attempts, repeats, state } };
      if (state === 'sending' && stands.claim?.id === one.work.claim?.id) {
        return this.#outcome(one, work, outcome, latencyMs);
      }
      // The process that holds it does not know this outcome.
      const isOpen = !isFinal(state) || state === 'failed' || state === 'unknown';
      const isNews = outcome.kind === 'accepted' ? isOpen : outcome.kind === 'refused' && state === 'unknown';
      return isNews ? this.#outcome({ ...one, before: false }, work, outcome, latencyMs) : undefined;
    });
  }
}

const NOTHING_SET_UP: SendOutcome = {
  kind: 'later',
  reason: 'Nothing is set up that could send it.',
  everything: true,
};

/** A change of a message to be recorded. */
interface Note {
  readonly work: Work;
  readonly change: Change;
  /** Of the attempt that caused it. */
  readonly latencyMs?: number;
  /** Whether not to report it. */
  readonly quiet?: boolean;
  /** Called if the message was modified since it was read. */
  readonly lost?: () => Promise<void>;
}

/**
 * Records outcomes of messages: in batches, in the background, each after those before it. An outcome that cannot be written has the effect
 * of a crash at that point.
 */
class Notes {
  readonly counts = { sent: 0, repeats: 0, later: 0, failed: 0, suppressed: 0, dryRun: 0, unknown: 0 };
  /** Number of messages that are final. */
  over = 0;
  readonly #deps: SendDeps;
  readonly #region: string;
  readonly #running = new Set<Promise<void>>();
  #queue: Note[] = [];
  #writing: Promise<void> | undefined;
  /** Ends the wait for more outcomes. */
  #enough: (() => void) | undefined;
  #fault: { readonly cause: unknown } | undefined;

  constructor(deps: SendDeps, region: string) {
    this.#deps = deps;
    this.#region = region;
  }

  get hasFailed(): boolean {
    return this.#fault !== undefined;
  }

  fail(cause: unknown): void {
    this.#fault ??= { cause };
  }

  add(note: Note): void {
    this.#queue.push(note);
    this.#writing ??= this.#write();
    if (this.#queue.length >= NOTED_FROM) this.#enough?.();
  }

  /** Waits until few enough outcomes are unrecorded to add more. */
  async room(): Promise<void> {
    while (this.#queue.length > MAX_UNNOTED) await this.#writing;
  }

  /** Waits until everything is written, including the history. */
  async settled(): Promise<void> {
    while (this.#writing || this.#running.size > 0) {
      this.#enough?.();
      await Promise.all([this.#writing, ...this.#running]);
    }
  }

  /** Waits until everything is written. Throws the first error. */
  async end(): Promise<void> {
    await this.settled();
    if (this.#fault) throw this.#fault.cause;
  }

  /** Writes a decision on the current message, and decides again after concurrent modification. */
  async force(decide: () => Promise<Note | undefined>): Promise<void> {
    for (let tries = 0; tries < ATTEMPTS; tries += 1) {
      const note = await decide();
      if (!note) return;
      const changed = await changeMessages(this.#deps, this.#region, [note.change]);
      if (!changed.done[0]) continue;
      this.#count(note);
      this.#keep(changed);
      return;
    }
    throw new TableError('write', 'a message was changed by others each time');
  }

  async #write(): Promise<void> {
    while (this.#queue.length > 0) {
      if (this.#queue.length < NOTED_FROM) await this.#more();
      const notes = this.#queue.splice(0, NOTED_TOGETHER);
      try {
        const changes = notes.map(({ change }) => change);
        const changed = await changeMessages(this.#deps, this.#region, changes);
        notes.forEach((note, at) => {
          if (changed.done[at]) this.#count(note);
          else if (note.lost) this.#run(note.lost());
        });
        this.#keep(changed);
      } catch (cause) {
        this.fail(cause);
      }
    }
    this.#writing = undefined;
  }

  /** Waits briefly for more outcomes. */
  async #more(): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    await new Promise<void>((resolve) => {
      this.#enough = resolve;
      timer = setTimeout(resolve, NOTED_AFTER_MS);
    });
    clearTimeout(timer);
    this.#enough = undefined;
  }

  /** Writes the history without waiting. If that fails, it is written later. */
  #keep(changed: Changed): void {
    this.#run(
      changed.keep().catch((cause: unknown) => {
        reportFault(this.#deps, { ref: { region: this.#region } }, cause);
      }),
    );
  }

  #run(work: Promise<void>): void {
    const running = work
      .catch((cause: unknown) => this.fail(cause))
      .then(() => {
        this.#running.delete(running);
      });
    this.#running.add(running);
  }

  #count({ change: { message }, latencyMs, quiet }: Note): void {
    if (quiet) return;
    const { counts } = this;
    if (message.state === 'sent') {
      counts.sent += 1;
      if (message.repeats > 0) counts.repeats += 1;
    } else if (message.state === 'waiting') counts.later += 1;
    else if (message.state === 'failed') counts.failed += 1;
    else if (message.state === 'suppressed') counts.suppressed += 1;
    else if (message.state === 'dry_run') counts.dryRun += 1;
    else if (message.state === 'unknown') counts.unknown += 1;
    if (isFinal(message.state)) this.over += 1;
    reportMessage(this.#deps, message, latencyMs);
  }
}

/**
 * The sends of one channel in one pass: one at a time until the other side has responded, then several, and none once the channel is down.
 */
class Lane {
  readonly channel: Channel;
  readonly #concurrency: number;
  readonly #running = new Set<Promise<void>>();
  #claimed = 0;
  #state: 'probing' | 'open' | 'closed' = 'probing';
  #unknownRunning = 0;

  constructor(channel: Channel, { concurrency = 8 }: SendDeps) {
    this.channel = channel;
    this.#concurrency = concurrency;
  }

  get isClosed(): boolean {
    return this.#state === 'closed';
  }
  get isProven(): boolean {
    return this.#state === 'open';
  }

  /** Adds messages that will be run or finished without a run. */
  begin(count: number): void {
    this.#claimed += count;
  }

  finished(): void {
    this.#claimed -= 1;
  }

  run(task: () => Promise<void>): void {
    const running = task().finally(() => {
      this.#running.delete(running);
      this.finished();
    });
    this.#running.add(running);
  }

  /** Waits until another message can be run. */
  async room(): Promise<void> {
    while (this.#running.size >= (this.isProven ? this.#concurrency : 1)) await Promise.race(this.#running);
  }

  /** Waits until it is known whether the channel works, as long as a send in progress can show it. */
  async known(): Promise<void> {
    while (this.#state === 'probing' && this.#claimed > 0) {
      if (this.#running.size > 0) await Promise.race(this.#running);
      else await new Promise((resolve) => setImmediate(resolve));
    }
  }

  /** Waits until no send is in progress. */
  async idle(): Promise<void> {
    while (this.#running.size > 0) await Promise.race(this.#running);
  }

  answered(outcome: SendOutcome): void {
    this.#unknownRunning = outcome.kind === 'unknown' ? this.#unknownRunning + 1 : 0;
    const isDown = outcome.kind === 'later' && outcome.everything;
    if (isDown || this.#unknownRunning >= MAX_UNKNOWN_RUNNING) this.#state = 'closed';
    else if (outcome.kind !== 'unknown' && this.#state === 'probing') this.#state = 'open';
  }
}

/** Returns the change to `message`. Removes any claim, whichever sender holds it. */
function plain(work: Work, message: Message): Change {
  return { work, message, set: work.claim ? { claim: undefined, maybeSent: true } : {} };
}

/** Returns the change that releases a claim without effect. */
function released({ work, before, settings: _, message: __ }: Ready, now: number): Change {
  const { attempts, repeats } = work.message;
  const message: Message = {
    ...work.message,
    ...{ state: 'waiting', attempts: attempts - 1, repeats: repeats - (before ? 1 : 0) },
    ...{ subject: null, text: null, segments: null, dueAt: now },
  };
  const set = { claim: undefined, ...(before ? { maybeSent: true } : {}) };
  return { work, message, set };
}

const keyOfItem = ({ pk, sk }: Item): Key => ({ pk, sk });

const giveUpAtOf = ({ content }: Work, { maxAgeHours }: NotificationSettings): number =>
  content.observedAt + maxAgeHours * HOUR_MS;

/** Renders a customer's template. Any exception counts as a fault of that template. */
async function tried<T>(render: () => Promise<Rendered<T>>): Promise<Rendered<T>> {
  try {
    return await render();
  } catch (cause) {
    return { kind: 'failed', reason: `It failed (${cause instanceof Error ? cause.name : typeof cause}).` };
  }
}

const shortened = (text: string): string => (text.length <= MAX_TEXT ? text : `${text.slice(0, MAX_TEXT)}…`);

/** Yields the same items, and fetches the next one ahead. */
async function* ahead<T>(source: AsyncGenerator<T>): AsyncGenerator<T> {
  const begin = (): Promise<IteratorResult<T>> => {
    const next = source.next();
    next.catch(() => undefined);
    return next;
  };
  let next = begin();
  try {
    for (;;) {
      const { done, value } = await next;
      if (done) return;
      next = begin();
      yield value;
    }
  } finally {
    await next.catch(() => undefined);
    await source.return(undefined);
  }
}

async function* mapped<A, B>(source: AsyncIterable<A>, map: (one: A) => Promise<B>): AsyncGenerator<B> {
  for await (const one of source) yield await map(one);
}

function reportMessage({ report }: SendDeps, message: Message, latencyMs?: number): void {
  const { region, account, id, channel, kind, state, reason, detail, attempts, repeats } = message;
  report?.({
    ...{ region, account, message: id, channel, kind, outcome: state, reason, detail, attempts, repeats },
    ...(latencyMs === undefined ? {} : { latencyMs }),
  });
}

/** Reports a failure. Messages of our own faults contain keys and no personal data. Of other errors only the name is reported. */
function reportFault(
  { report }: SendDeps,
  of: {
    readonly ref: { readonly region: string; readonly account?: string };
    readonly message?: Message;
    readonly thread?: string;
  },
  cause: unknown,
): void {
  const { region, account } = of.ref;
  report?.({
    ...{ region, outcome: 'fault', detail: cause instanceof TableError ? cause.message : nameOf(cause) },
    ...(account === undefined ? {} : { account }),
    ...(of.message === undefined ? {} : { message: of.message.id }),
    ...(of.thread === undefined ? {} : { thread: of.thread }),
  });
}

const nameOf = (cause: unknown): string => (cause instanceof Error ? cause.name : typeof cause);
