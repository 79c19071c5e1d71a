/**
 * Says what is to be said: closes notices whose window is over, makes messages of them for everybody who is to be told, and
 * sends what is due.
 *
 *   due ─ read ─ judge ─┬─▶ not now, or never: noted
 *                       └─ render ─ claim ─ send ─▶ noted
 *
 * A claim is written before a message goes and what became of it after, so a crash in between leaves a claim that nobody
 * answers for. An e-mail is sent again then, with the same Message-ID, and counted as a repeat; of an SMS it stays unknown.
 * What is NOT guaranteed: that two mails to one address in different threads go in the order in which things happened.
 */
import pLimit from 'p-limit';
import { type AccountRef, cellLog, dueUntil, keys, NOTIFY_SHARDS, notifyDuePk } from '../table/schema.ts';
import { gatherTableReads } from '../table/shared-reads.ts';
import { type Item, type Key, type Table, TableError, type Write } from '../table/table.ts';
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
} from './model.ts';
import { itemsOf, recipientsFor, toRecipient } from './recipients.ts';
import type { Rendered } from './render.ts';
import { sending } from './rendering.ts';
import { readSettingsOf } from './settings.ts';
import { changeSmsUse, monthOf, quietUntil, REGION_MONTHLY_SEGMENTS, readSmsUse } from './sms-limits.ts';
import { type Suppression, suppress, suppressionsOf } from './suppressions.ts';
import { resolveTemplate, type Template } from './templates.ts';
import { type ClosedNotice, finishNotice, standingJobs, takeDueNotices } from './threads.ts';
import { addressSealOf, unsubscribeUrlOf } from './unsubscribe.ts';

/** What sending needs. */
export interface SendDeps extends JournalDeps {
  /** From 0 (inclusive) to 1 (exclusive). */
  readonly random: () => number;
  /** Where links to Jobwire begin. */
  readonly publicUrl: string;
  /** Absent: nothing is set up that could send it. */
  readonly email?: EmailTransport | undefined;
  readonly sms?: SmsTransport | undefined;
  /** Sends under way at once, of each channel; 8 unless told. */
  readonly concurrency?: number | undefined;
  /** How long a transport may take until nobody knows what became of it; 60 s unless told. */
  readonly sendTimeoutMs?: number | undefined;
  /** How long after a window's end it is waited for what was observed in it. */
  readonly graceMs?: number;
  /** SMS segments of all accounts of a region in a month; absent: {@link REGION_MONTHLY_SEGMENTS}. */
  readonly regionMonthlySegments?: number | undefined;
  /** Told of everything that becomes of a message, and of everything that went wrong. */
  readonly report?: ((line: SendLine) => void) | undefined;
}

/** What became of one message, or one thing that went wrong, as a line of a log: ids, no addresses. */
export interface SendLine {
  readonly region: string;
  readonly account?: string;
  readonly message?: string;
  readonly thread?: string;
  readonly channel?: Channel | null;
  readonly kind?: MessageKind;
  readonly outcome: Message['state'] | 'fault';
  readonly reason?: MessageReason | null;
  /** In words. */
  readonly detail?: string | null;
  readonly attempts?: number;
  readonly repeats?: number;
  /** Of the attempt. */
  readonly latencyMs?: number;
}

/** What a run of the sender came to. */
export interface SendReport {
  /** Notices that became messages, or were found to concern nobody. */
  readonly notices: number;
  /** Messages that were made. */
  readonly messages: number;
  readonly sent: number;
  /** E-mails among those sent that may have gone before. */
  readonly repeats: number;
  /** Not sent, and tried again later. */
  readonly later: number;
  readonly failed: number;
  readonly suppressed: number;
  readonly dryRun: number;
  /** SMS of which nobody knows whether they went. */
  readonly unknown: number;
  /** Channels that nothing goes by at the moment. */
  readonly held: readonly Channel[];
  /** There was no time for all of it. */
  readonly more: boolean;
}

/** Notices that are worked on together. */
const NOTICES_AT_ONCE = 100;
/** Notices whose recipients are read at the same time. */
const NOTICES_READ_AT_ONCE = 8;
/** What is due is read by so many of each shard. */
const PAGE = 200;
/** Messages that are judged together; the first ones are few, so that something goes soon. */
const JUDGED_FIRST = 25;
const JUDGED_TOGETHER = 100;
/** E-mails claimed together: what a crash may send again. */
const CLAIMED_TOGETHER = 40;
/** How long a claim holds. Somebody who is alive has noted by then what became of it. */
const CLAIM_MS = 180_000;
const SEND_TIMEOUT_MS = 60_000;
/** Before a claim ends there must be time to note what became of it. */
const CLAIM_MARGIN_MS = 10_000;
/** When a message is tried again that could not be sent; the last one stands for all further. */
const RETRY_MS = [60_000, 300_000, 900_000, 3_600_000];
/** So many attempts running of which nobody knows what became, and a channel is left alone until the next run. */
const MAX_UNKNOWN_RUNNING = 3;
/** Sends that are not noted yet: what a crash sends again at most, with those under way. */
const MAX_UNNOTED = 60;
/** With an entry of the journal they are one transaction. */
const NOTED_TOGETHER = 99;
/** What became of messages is noted as soon as it is so much, or after a moment: many together cost a fraction. */
const NOTED_FROM = 40;
const NOTED_AFTER_MS = 50;
const HOUR_MS = 3_600_000;
/** How often something is decided anew because somebody else came in between. */
const ATTEMPTS = 20;
/** What is kept of a text that went. */
const MAX_TEXT = 20_000;
const MAX_DETAIL = 300;

/** Closes, makes and sends what is due in a region until there is no more, or until the deadline (epoch ms). */
export async function sendDue(deps: SendDeps, region: string, deadline: number): Promise<SendReport> {
  const from = deps.now();
  // Half of the time, so that what is made is sent as well.
  const making = makeDue(deps, region, from + (deadline - from) / 2);
  // What was made before goes, whatever befalls what is to be made.
  await making.catch(() => undefined);
  const run = new Run(deps, region, deadline);
  await run.all();
  const made = await making;
  return { ...run.report(), ...made, more: made.more || run.report().more };
}

// From notices to messages

/** Closes the notices whose window is over, and makes messages of them, until there are none or the deadline has come. */
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
    // They are given again after a while.
    if (finished === 0) return report;
  }
  return { ...report, more: true };
}

/** Makes messages of notices. One that can't be made into any stays as it is, and the rest goes on. */
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
  // What stands behind one of its thread that could not be told would overtake it.
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
    // One of them may be what can't be written.
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

/** The messages that a notice becomes: one for each channel and address; or the record of one that nobody gets. */
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
    // Who was not told that it was taken back has no use for being told again.
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

/** How closely somebody is tied to a job: who is closest says the name, the language and the zone. */
function closeness(scope: Scope): number {
  return ['account', 'orderGroup', 'orderNumber', 'job'].indexOf(scope.for);
}

const addressOf = (recipient: Recipient, channel: Channel): string | null =>
  channel === 'email' ? recipient.email : recipient.mobile;

// From messages to mails

/** What is known of the world around a message that is to go. */
export interface Surroundings {
  readonly now: number;
  readonly settings: NotificationSettings | undefined;
  /** Those of the message that there are. */
  readonly recipients: readonly Recipient[];
  readonly suppression: Suppression | undefined;
  /** Jobs of which it holds true. */
  readonly standing: ReadonlySet<number>;
  /** What was to be said before in its thread to the same address, as far as it is there. */
  readonly before: readonly Message[];
  readonly canSend: boolean;
}

/** What is to become of a message that is due. */
export type Verdict =
  | { readonly kind: 'send'; readonly settings: NotificationSettings; readonly jobs: readonly number[] }
  /** As it is to stand. */
  | { readonly kind: 'change'; readonly message: Message }
  /** It has to wait for another one, and there is nothing to note. */
  | { readonly kind: 'wait' };

/** Decides on a message that is due. */
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
  // Whoever claimed it is gone.
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

/** What becomes of a message that was handed over, or not. `before`: whether an attempt before may have reached the recipient. */
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
  readonly message: Message /** An attempt may have reached the recipient, and there may be another. */;
  readonly maybeSent: boolean;
} {
  // What was certainly not taken is no repeat.
  const unrepeated = { ...message, repeats: message.repeats - (before ? 1 : 0) };
  const step = RETRY_MS[Math.min(message.attempts, RETRY_MS.length) - 1] ?? RETRY_MS[0] ?? 0;
  const again = (least: number, delay: number): number => {
    const dueAt = now + Math.max(least, Math.round(delay * (0.9 + random / 5)));
    // It is not looked at later than when it is given up.
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
      // The message is not to blame for what befalls all.
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

/** A text from the other side without whom it is about. */
export function withoutAddresses(text: string, { to }: Pick<Message, 'to'>): string {
  const digits = (to?.address ?? '').replace(/^\+/, '');
  return (digits === '' ? text : text.replaceAll(digits, '…'))
    .replace(/[^\s<>()"'@,;:]+@[^\s<>()"',;]+/g, '…')
    .replace(/\+\d[\d ().-]{5,}\d/g, '…')
    .replace(/[\p{Cc}\s]+/gu, ' ')
    .slice(0, MAX_DETAIL);
}

/** A message that is ready to go. */
interface Ready {
  readonly work: Work;
  readonly settings: NotificationSettings;
  /** As it goes: its subject, its text. */
  readonly message: Message;
  /** Once it is claimed: whether an attempt before may have reached the recipient. */
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
  /** Addresses that were found to take nothing. */
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

  /** Sends what is due; throws the first thing that went wrong with the table, when all that was begun is noted. */
  async all(): Promise<void> {
    const ends = await Promise.allSettled(channels.map((channel) => this.#channel(channel)));
    const noted = await Promise.allSettled([this.#notes.end()]);
    for (const end of [...ends, ...noted]) if (end.status === 'rejected') throw end.reason;
  }

  /** Sends what is due by one channel. What has to wait for something else gets its turn once that is over. */
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

  /** Goes once through all that is due: how many had to wait for another. */
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

  /** Whether it was found in this run that its address takes nothing. */
  #isShut({ message: { channel, to } }: Work): boolean {
    return channel !== null && to !== null && this.#shut.has(`${channel} ${normalized(channel, to.address)}`);
  }

  /** Whether a claim may end before it is known what became of the send. */
  #isLate({ claim }: Work): boolean {
    const { now, sendTimeoutMs = SEND_TIMEOUT_MS } = this.#deps;
    return claim !== null && now() + sendTimeoutMs + CLAIM_MARGIN_MS > claim.until;
  }

  /** Work of a channel that is due, read page by page. */
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

  /** The work in an item; of one that can't be read none, and it holds nobody up. */
  #read(item: Item): Work[] {
    try {
      return [toWork(item)];
    } catch (cause) {
      reportFault(this.#deps, { ref: { region: this.#region } }, cause);
      return [];
    }
  }

  /** Decides on work that is due; notes what is not to go, and gives what is, rendered. */
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

  /** Reads what messages are judged by, of all of them together. */
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

  /** A message with its words, ready to go; as it is to stand when it does not. */
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

  /** An account's own template, read once in a run. */
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

  /** Claims what is ready, as much as the lane may have. An SMS is claimed right before it goes, for that is final. */
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

  /** Claims e-mails: those that nobody else came to. */
  async #claimed(some: readonly Ready[]): Promise<Ready[]> {
    const claims = some.map((one) => this.#claim(one));
    const done = await claimMessages(
      this.#deps,
      claims.map(({ claim }) => claim),
    );
    return claims.filter((_, at) => done[at]).map(({ ready }) => ready);
  }

  /** A claim, and the message with it. */
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

  /** Claims an SMS together with what it takes of the account's month; `undefined` when it does not go. */
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
      // What is not sent in the end is given back to the account; for the region it stays counted.
      const along = [changeSmsUse(ref, use, segments), changeSmsUse(region, all, segments)];
      const [done] = await claimMessages(this.#deps, [{ ...claim, along }]);
      if (done) return claimed;
      const item = await table.get(workKey(ready.work));
      // Somebody else came to it; otherwise it was the month's use that moved.
      if (item?.revision !== ready.work.revision) return undefined;
    }
    throw new TableError('write', 'the SMS of a month were counted by others each time');
  }

  /** One thing after the other of those that change the counts of SMS. */
  #inTurn<T>(action: () => Promise<T>): Promise<T> {
    const turn = this.#smsTurn.then(action);
    this.#smsTurn = turn.catch(() => undefined);
    return turn;
  }

  /** Hands a message over and notes what became of it. */
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

  /** What an attempt makes of a message as it stands, as a change of it. */
  async #outcome(
    { settings, before = false }: Ready,
    work: Work,
    outcome: SendOutcome,
    latencyMs: number,
  ): Promise<Note> {
    const { table, now, random } = this.#deps;
    const giveUpAt = giveUpAtOf(work, settings);
    const after = afterAttempt(work, outcome, { now: now(), random: random(), before, giveUpAt });
    // That something came back tells more than what was answered.
    const message = work.feedback
      ? withFeedback({ ...after.message, state: 'sent' }, work.feedback)
      : after.message;
    // What certainly did not go is not counted.
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
   * Notes what became of an attempt on the message as it stands: something may have come back of it meanwhile, or the claim ran
   * out and somebody else has it.
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
      // Whoever has it does not know what is known here.
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

/** A change of a message that is to be noted. */
interface Note {
  readonly work: Work;
  readonly change: Change;
  /** Of the attempt behind it. */
  readonly latencyMs?: number;
  /** It is nothing to tell of. */
  readonly quiet?: boolean;
  /** What is done when the message does not stand as it was read. */
  readonly lost?: () => Promise<void>;
}

/**
 * Notes what becomes of messages: many together, in the background, each as soon as those before it are written. What it could
 * not write is as if the sender had crashed there.
 */
class Notes {
  readonly counts = { sent: 0, repeats: 0, later: 0, failed: 0, suppressed: 0, dryRun: 0, unknown: 0 };
  /** Messages that are over. */
  over = 0;
  readonly #deps: SendDeps;
  readonly #region: string;
  readonly #running = new Set<Promise<void>>();
  #queue: Note[] = [];
  #writing: Promise<void> | undefined;
  /** Ends the moment in which more is gathered. */
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

  /** Waits until so little is to be written that more may come. */
  async room(): Promise<void> {
    while (this.#queue.length > MAX_UNNOTED) await this.#writing;
  }

  /** Waits until everything is written, in the history too. */
  async settled(): Promise<void> {
    while (this.#writing || this.#running.size > 0) {
      this.#enough?.();
      await Promise.all([this.#writing, ...this.#running]);
    }
  }

  /** Waits until everything is written. Throws the first thing that went wrong. */
  async end(): Promise<void> {
    await this.settled();
    if (this.#fault) throw this.#fault.cause;
  }

  /** Writes what is decided on a message as it stands, until nobody comes in between. */
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

  /** Waits a moment for what may come. */
  async #more(): Promise<void> {
    let timer: NodeJS.Timeout | undefined;
    await new Promise<void>((resolve) => {
      this.#enough = resolve;
      timer = setTimeout(resolve, NOTED_AFTER_MS);
    });
    clearTimeout(timer);
    this.#enough = undefined;
  }

  /** The history can wait, and when it can't be written it is written later. */
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
 * The sends of one channel in one pass: one at a time until the other side has shown that it is there, then several; none any
 * more once it is clear that nothing goes.
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

  /** So many are about to be run, or finished without. */
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

  /** Waits until another one may be run. */
  async room(): Promise<void> {
    while (this.#running.size >= (this.isProven ? this.#concurrency : 1)) await Promise.race(this.#running);
  }

  /** Waits until it is known whether anything goes, as far as something is under way that will tell. */
  async known(): Promise<void> {
    while (this.#state === 'probing' && this.#claimed > 0) {
      if (this.#running.size > 0) await Promise.race(this.#running);
      else await new Promise((resolve) => setImmediate(resolve));
    }
  }

  /** Waits until nothing is under way. */
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

/** A message as it is to stand, whoever had claimed it. */
function plain(work: Work, message: Message): Change {
  return { work, message, set: work.claim ? { claim: undefined, maybeSent: true } : {} };
}

/** A claim is given back, and nothing has happened. */
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

/** Templates are others' text: whatever befalls one is its own fault. */
async function tried<T>(render: () => Promise<Rendered<T>>): Promise<Rendered<T>> {
  try {
    return await render();
  } catch (cause) {
    return { kind: 'failed', reason: `It failed (${cause instanceof Error ? cause.name : typeof cause}).` };
  }
}

const shortened = (text: string): string => (text.length <= MAX_TEXT ? text : `${text.slice(0, MAX_TEXT)}…`);

/** The same, with the next one always under way. */
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

/** Faults speak of keys, not of people; what others threw is named only. */
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
