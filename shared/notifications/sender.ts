/**
 * Sends notifications: closes notices whose window has expired, creates messages for all recipients, and sends due messages.
 *
 * due ─ read ─ decide ─┬─▶ postponed or final: recorded
 *                       └─ render ─ claim ─ send ─▶ recorded
 *
 * A claim is written before a message is sent and the outcome after it. So a crash in between leaves a claim without outcome. An e-mail is
 * then sent again with the same Message-ID and counted as a repeat. An SMS becomes `unknown`.
 * What is NOT guaranteed: that two mails to one address in different threads are sent in the order in which the changes happened.
 * One file: it is one sequence, whose steps share the claim of a message.
 */
import { cellLog, dueUntil, keys, NOTIFY_SHARDS, notifyDuePk } from '../storage/schema.ts';
import { gatherTableReads } from '../storage/shared-reads.ts';
import { type Item, type Key, type Table, TableError } from '../storage/table.ts';
import { mapAsync, prefetch } from './async-iterables.ts';
import { normalizeAddress } from './email-address.ts';
import { belongsToChannel } from './message-ids.ts';
import {
  applyFeedback,
  type Change,
  type Claim,
  claimMessages,
  isFinal,
  isJournalEntry,
  settleJournal,
  toWork,
  toWorkKey,
  type Work,
} from './messages.ts';
import { createDueMessages } from './notice-messages.ts';
import { ATTEMPTS, type MessageRecord, OutcomeRecorder } from './outcome-recorder.ts';
import { type Ready, ReadyRenderer } from './ready-messages.ts';
import { acceptsMessage, toRecipient } from './recipient-fields.ts';
import { readItems } from './recipient-matching.ts';
import type { Message } from './records.ts';
import { afterAttempt, type DecisionContext, decide, findNews, getExpiry } from './send-decision.ts';
import { SendPool } from './send-pool.ts';
import { reportFault, type SendDeps, type SendReport } from './send-report.ts';
import { readSettingsOfAccounts } from './settings.ts';
import { REGION_MONTHLY_SEGMENTS, readSmsUse, toMonth, toReturnWrites, toSmsUseWrite } from './sms-limits.ts';
import { findSuppressions, suppress } from './suppressions.ts';
import { findValidJobs } from './thread-store.ts';
import { type Channel, channels, type SendOutcome } from './types.ts';

/** Number of due items read at once from each shard. */
const PAGE = 200;

/** Number of messages judged together. The first batch is small, so that sending starts soon. */
const FIRST_BATCH = 25;

const DECISION_BATCH = 100;

/** Number of e-mails claimed together: the maximum that a crash may send again. */
const CLAIM_BATCH = 40;

/** Duration of a claim. A live sender has recorded the outcome by then. */
const CLAIM_MS = 180_000;

const SEND_TIMEOUT_MS = 60_000;

/** Time before a claim's end that is reserved for recording the outcome. */
const CLAIM_MARGIN_MS = 10_000;

/** Closes due windows of a region, creates their messages and sends due ones, until none is left or until the deadline (epoch ms). */
export async function sendDue(deps: SendDeps, region: string, deadline: number): Promise<SendReport> {
  const from = deps.now();
  // Half of the time, so that new messages are sent as well.
  const creating = createDueMessages(deps, region, from + (deadline - from) / 2);
  // Messages that exist are sent even if creating new ones fails.
  await creating.catch(() => undefined);
  const run = new SendRun(deps, region, deadline);
  await run.run();
  const created = await creating;
  return { ...run.report(), ...created, more: created.more || run.report().more };
}

/** One run of the sender. */
class SendRun {
  readonly #deps: SendDeps;
  readonly #region: string;
  readonly #deadline: number;
  readonly #table: Table;
  readonly #recorder: OutcomeRecorder;
  readonly #renderer: ReadyRenderer;
  #smsTurn: Promise<unknown> = Promise.resolve();
  readonly #unavailable = new Set<Channel>();
  /** Addresses that rejected mail for good in this run. */
  readonly #blocked = new Set<string>();
  #more = false;

  constructor(deps: SendDeps, region: string, deadline: number) {
    this.#deps = deps;
    this.#region = region;
    this.#deadline = deadline;
    this.#table = gatherTableReads(deps.table);
    this.#recorder = new OutcomeRecorder(deps, region);
    this.#renderer = new ReadyRenderer(deps);
  }

  report(): Omit<SendReport, 'notices' | 'messages'> {
    return { ...this.#recorder.counts, held: [...this.#unavailable], more: this.#more };
  }

  /** Sends due messages. Throws the first table error after everything in progress is recorded. */
  async run(): Promise<void> {
    const sent = await Promise.allSettled(channels.map((channel) => this.#sendChannel(channel)));
    const recorded = await Promise.allSettled([this.#recorder.close()]);
    for (const result of [...sent, ...recorded]) if (result.status === 'rejected') throw result.reason;
  }

  /** Sends due messages of one channel. Messages that wait for others are tried again after those. */
  async #sendChannel(channel: Channel): Promise<void> {
    for (;;) {
      const pool = new SendPool(channel, this.#deps);
      const before = this.#recorder.finalCount;
      const waiting = await this.#sendDueOnce(pool);
      await this.#recorder.flush();
      if (pool.isClosed) this.#unavailable.add(channel);
      if (waiting === 0 || pool.isClosed || this.#recorder.finalCount === before || this.#isPastDeadline())
        return;
    }
  }

  #isStopping(): boolean {
    const isStopping = this.#deps.stopping?.aborted === true;
    if (isStopping) this.#more = true;
    return isStopping;
  }

  #isPastDeadline(): boolean {
    const isPast = this.#isStopping() || this.#deps.now() >= this.#deadline;
    if (isPast) this.#more = true;
    return isPast;
  }

  /** Processes all due messages once and returns how many had to wait for another message. */
  async #sendDueOnce(pool: SendPool): Promise<number> {
    let waiting = 0;
    const ready = prefetch(
      mapAsync(this.#readDue(pool), async (items) => {
        const decided = await this.#decideAll(pool, items);
        waiting += decided.waiting;
        return decided.ready;
      }),
    );
    try {
      for await (const claimed of prefetch(this.#claimReady(pool, ready))) {
        for (const one of claimed) {
          await pool.waitForSlot();
          const isBlocked = this.#isBlocked(one.work);
          if (isBlocked) waiting += 1;
          if (pool.isClosed || isBlocked || this.#isStopping() || this.#mayExpire(one.work)) {
            const isClaimed = one.before !== undefined;
            if (isClaimed)
              this.#recorder.add({
                change: toReleaseChange(one, this.#deps.now()),
                work: one.work,
                quiet: true,
              });
            pool.release();
          } else {
            pool.run(() =>
              this.#sendAndRecord(pool, one).catch((cause: unknown) => this.#recorder.fail(cause)),
            );
          }
        }
        await this.#recorder.waitForCapacity();
      }
    } finally {
      await pool.waitUntilIdle();
    }
    return waiting;
  }

  /** Returns whether the address rejected mail for good in this run. */
  #isBlocked({ message: { channel, to } }: Work): boolean {
    return (
      channel !== null &&
      to !== null &&
      this.#blocked.has(`${channel} ${normalizeAddress(channel, to.address)}`)
    );
  }

  /** Returns whether a claim may expire before the outcome of the send is known. */
  #mayExpire({ claim }: Work): boolean {
    const { now, sendTimeoutMs = SEND_TIMEOUT_MS } = this.#deps;
    return claim !== null && now() + sendTimeoutMs + CLAIM_MARGIN_MS > claim.until;
  }

  /** Reads due work of a channel page by page. */
  async *#readDue(pool: SendPool): AsyncGenerator<Item[]> {
    const to = dueUntil(this.#deps.now());
    let isFirst = true;
    const first = Math.floor(this.#deps.random() * NOTIFY_SHARDS);
    let shards = Array.from({ length: NOTIFY_SHARDS }, (_, at) => ({
      pk: notifyDuePk('messages', this.#region, (first + at) % NOTIFY_SHARDS),
      after: undefined as string | undefined,
    }));
    while (shards.length > 0 && !pool.isClosed && !this.#isPastDeadline()) {
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
      const mine = found.filter(({ sk }) => belongsToChannel(sk, pool.channel));
      const journals = pool.channel === 'email' ? found.filter(isJournalEntry) : [];
      for (const journal of await this.#deps.table.getMany(journals.map(toKey))) {
        await settleJournal(this.#deps, journal).catch((cause: unknown) => {
          reportFault(this.#deps, { ref: { region: this.#region } }, cause);
        });
      }
      for (let at = 0; at < mine.length && !pool.isClosed; ) {
        const some = mine.slice(at, at + (isFirst ? FIRST_BATCH : DECISION_BATCH));
        isFirst = false;
        at += some.length;
        const items = await this.#deps.table.getMany(some.map(toKey));
        yield items.filter((item) => typeof item.duePk === 'string');
      }
    }
  }

  /** Parses an item. An invalid one yields no work and does not delay the others. */
  #parse(item: Item): Work[] {
    try {
      return [toWork(item)];
    } catch (cause) {
      reportFault(this.#deps, { ref: { region: this.#region } }, cause);
      return [];
    }
  }

  /** Decides on due work. Records messages that are not sent and returns the others, rendered. */
  async #decideAll(
    pool: SendPool,
    items: readonly Item[],
  ): Promise<{ readonly ready: Ready[]; readonly waiting: number }> {
    const { now } = this.#deps;
    const works = items
      .flatMap((item) => this.#parse(item))
      .filter(
        ({ message, claim }) =>
          !isFinal(message.state) &&
          (message.state === 'sending' ? (claim?.until ?? 0) <= now() : (message.dueAt ?? 0) <= now()),
      )
      .sort((a, b) => (a.message.id < b.message.id ? -1 : 1));
    if (works.length === 0) return { ready: [], waiting: 0 };
    const contexts = await this.#readContexts(pool, works);
    const ready: Ready[] = [];
    let waiting = 0;
    await Promise.all(
      works.map(async (work, at) => {
        try {
          const context = contexts[at];
          if (!context) return;
          const decision = decide(work, context);
          if (decision.kind === 'wait') waiting += 1;
          else if (decision.kind === 'change')
            this.#recorder.add({ change: toChange(work, decision.message), work });
          else {
            const rendered = await this.#renderer.render(work, decision, context.before);
            if ('send' in rendered) ready.push(rendered);
            else this.#recorder.add({ change: toChange(work, rendered), work });
          }
        } catch (cause) {
          if (cause instanceof TableError) throw cause;
          reportFault(this.#deps, work, cause);
        }
      }),
    );
    return { ready, waiting };
  }

  /** Reads the contexts of decisions, for all messages of a batch. */
  async #readContexts(pool: SendPool, works: readonly Work[]): Promise<(DecisionContext | undefined)[]> {
    const { table, now } = this.#deps;
    const refs = new Map(works.map(({ ref }) => [ref.account, ref]));
    const addresses = works.map(({ ref, message }) => {
      return { ref, channel: pool.channel, address: message.to?.address ?? '' };
    });
    const earlier = works.flatMap(({ ref, before }) => before.map((id) => keys.message(ref, id)));
    const [settings, recipients, suppressions, before, checks] = await Promise.all([
      readSettingsOfAccounts(table, [...refs.values()]),
      Promise.all(
        [...refs.values()].map(async (ref) => {
          const ids = works
            .filter((work) => work.ref.account === ref.account)
            .flatMap((work) => work.recipients);
          const found = await readItems(table, ref, ids);
          return new Map(found.map((item) => [item.sk, toRecipient(ref, item)]));
        }),
      ),
      findSuppressions(table, addresses),
      earlier.length === 0 ? [] : table.getMany(earlier),
      Promise.all(
        works.map((work) =>
          findValidJobs(this.#table, work.ref, work.thread, work.content).catch((cause: unknown) => {
            if (cause instanceof TableError) throw cause;
            reportFault(this.#deps, work, cause);
            return undefined;
          }),
        ),
      ),
    ]);
    const byAccount = new Map([...refs.keys()].map((account, at) => [account, recipients[at]]));
    const found = new Map(
      before.flatMap((item) => this.#parse(item).map((work) => [`${item.pk} ${item.sk}`, work])),
    );
    return works.map((work, at) => {
      const checked = checks[at];
      if (!checked) return undefined;
      const accountSettings = settings.find(({ account }) => account === work.ref.account);
      const earlierWorks = work.before.flatMap((id): [string, Work][] => {
        const { pk, sk } = keys.message(work.ref, id);
        const one = found.get(`${pk} ${sk}`);
        return one ? [[id, one]] : [];
      });
      const known = work.recipients.flatMap((id) => byAccount.get(work.ref.account)?.get(id) ?? []);
      return {
        now: now(),
        settings: accountSettings,
        recipients: known,
        suppression: suppressions[at],
        validJobs: checked.valid,
        openJobs: checked.open,
        before: earlierWorks.map(([, { message }]) => message),
        news: findNews(work, new Map(earlierWorks), {
          dryRun: accountSettings?.dryRun === true,
          wantsTracking: known.some((recipient) => acceptsMessage(recipient, pool.channel, 'tracking')),
        }),
        canSend: this.#deps[pool.channel] !== undefined,
      };
    });
  }

  /** Claims ready messages, as many as the pool can send. An SMS is claimed right before it is sent, because its claim is final. */
  async *#claimReady(pool: SendPool, ready: AsyncIterable<readonly Ready[]>): AsyncGenerator<Ready[]> {
    for await (const batch of ready) {
      for (let at = 0; at < batch.length; ) {
        await pool.waitUntilProbed();
        if (pool.isClosed || this.#recorder.hasFailed || this.#isPastDeadline()) return;
        const some = batch.slice(at, at + (pool.isProven ? CLAIM_BATCH : 1));
        at += some.length;
        const claimed = pool.channel === 'sms' ? some : await this.#claimEmails(some);
        pool.reserve(claimed.length);
        if (claimed.length > 0) yield claimed;
      }
    }
  }

  /** Claims e-mails and returns those that no other sender claimed. */
  async #claimEmails(some: readonly Ready[]): Promise<Ready[]> {
    const claims = some.map((one) => this.#toClaim(one));
    const done = await claimMessages(
      this.#deps,
      claims.map(({ claim }) => claim),
    );
    return claims.filter((_, at) => done[at]).map(({ ready }) => ready);
  }

  /** Returns a claim and the message with it. */
  #toClaim(
    ready: Ready,
    reserved: Work['reserved'] = null,
  ): { readonly claim: Claim; readonly ready: Ready } {
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
  async #claimSms(ready: Ready): Promise<Ready | undefined> {
    const { table, now, regionMonthlySegments = REGION_MONTHLY_SEGMENTS } = this.#deps;
    const { ref, message } = ready.work;
    const region = cellLog(ref.region);
    const segments = ready.message.segments ?? 1;
    for (let tries = 0; tries < ATTEMPTS; tries += 1) {
      if (this.#isStopping()) return undefined;
      const month = toMonth(now());
      const [use, all] = await Promise.all([readSmsUse(table, ref, month), readSmsUse(table, region, month)]);
      const isOver = use.segments + segments > ready.settings.sms.monthlySegments;
      if (isOver || all.segments + segments > regionMonthlySegments) {
        const over = { state: 'suppressed', reason: 'quota', detail: null, dueAt: null } as const;
        this.#recorder.add({ work: ready.work, change: toChange(ready.work, { ...message, ...over }) });
        return undefined;
      }
      const { claim, ready: claimed } = this.#toClaim(ready, { month: use.month, segments });
      const along = [toSmsUseWrite(ref, use, segments), toSmsUseWrite(region, all, segments)];
      const [done] = await claimMessages(this.#deps, [{ ...claim, along }]);
      if (done) return claimed;
      const item = await table.get(toWorkKey(ready.work));
      // Another process changed the message. Otherwise the monthly use changed.
      if (item?.revision !== ready.work.revision) return undefined;
    }
    throw new TableError('write', 'the SMS count of a month was modified concurrently on every attempt');
  }

  /** Serializes actions that change the counts of SMS. */
  #serialize<T>(action: () => Promise<T>): Promise<T> {
    const turn = this.#smsTurn.then(action);
    this.#smsTurn = turn.catch(() => undefined);
    return turn;
  }

  /** Sends a message and records the outcome. */
  async #sendAndRecord(pool: SendPool, ready: Ready): Promise<void> {
    const one = pool.channel === 'sms' ? await this.#serialize(() => this.#claimSms(ready)) : ready;
    if (!one) return;
    const began = performance.now();
    const outcome = await this.#send(one);
    const latencyMs = Math.round(performance.now() - began);
    pool.recordOutcome(outcome);
    const { ref, message } = one.work;
    if (outcome.kind === 'rejected' && outcome.address && message.to) {
      const addressed = { channel: pool.channel, address: message.to.address };
      this.#blocked.add(`${pool.channel} ${normalizeAddress(pool.channel, message.to.address)}`);
      await suppress(this.#deps, ref, addressed, outcome.address).catch((cause: unknown) => {
        reportFault(this.#deps, one.work, cause);
      });
    }
    const onConflict = (): Promise<void> => this.#recordOnCurrent(one, outcome, latencyMs);
    if (pool.channel === 'sms') await this.#serialize(onConflict);
    else this.#recorder.add({ ...(await this.#toRecord(one, one.work, outcome, latencyMs)), onConflict });
  }

  async #send({ send }: Ready): Promise<SendOutcome> {
    const { sendTimeoutMs = SEND_TIMEOUT_MS } = this.#deps;
    let timer: NodeJS.Timeout | undefined;
    const silence = new Promise<SendOutcome>((resolve) => {
      const reason = `No response within ${Math.round(sendTimeoutMs / 1000)} s.`;
      timer = setTimeout(() => resolve({ kind: 'unknown', reason }), sendTimeoutMs);
    });
    try {
      return await Promise.race([send(this.#deps), silence]);
    } catch (cause) {
      const reason = `The transport failed without a result (${cause instanceof Error ? cause.name : typeof cause}).`;
      return { kind: 'unknown', reason };
    } finally {
      clearTimeout(timer);
    }
  }

  /** Returns the change of a message after an attempt. */
  async #toRecord(
    { settings, before = false }: Ready,
    work: Work,
    outcome: SendOutcome,
    latencyMs: number,
  ): Promise<MessageRecord> {
    const { table, now, random } = this.#deps;
    const giveUpAt = getExpiry(work, settings);
    const after = afterAttempt(work, outcome, { now: now(), random: random(), before, giveUpAt });
    // Feedback is more informative than the response.
    const message = work.feedback
      ? applyFeedback({ ...after.message, state: 'sent' }, work.feedback)
      : after.message;
    // An SMS that was certainly not sent is not counted.
    const back = outcome.kind === 'rejected' || outcome.kind === 'later' ? work.reserved : null;
    const along = back ? await toReturnWrites(table, work.ref, back) : [];
    const set = {
      ...{ claim: undefined, ...(after.maybeSent ? { maybeSent: true } : {}) },
      ...(after.channelFailures === undefined ? {} : { channelFailures: after.channelFailures }),
      ...(back ? { reserved: undefined } : {}),
    };
    return { work, change: { work, message, set, along }, latencyMs };
  }

  /**
   * Records the outcome of an attempt on the current message. Meanwhile feedback may have arrived, or the claim may have expired and
   * another sender may hold the message.
   */
  async #recordOnCurrent(one: Ready, outcome: SendOutcome, latencyMs: number): Promise<void> {
    await this.#recorder.recordDecision(async () => {
      const item = await this.#deps.table.get(toWorkKey(one.work));
      if (!item) return undefined;
      const current = toWork(item);
      const { attempts, repeats, state } = current.message;
      const work = { ...current, message: { ...one.work.message, attempts, repeats, state } };
      if (state === 'sending' && current.claim?.id === one.work.claim?.id) {
        return this.#toRecord(one, work, outcome, latencyMs);
      }
      // The process that holds it does not know this outcome.
      const isOpen = !isFinal(state) || state === 'failed' || state === 'unknown';
      const isNews =
        outcome.kind === 'accepted' ? isOpen : outcome.kind === 'rejected' && state === 'unknown';
      return isNews ? this.#toRecord({ ...one, before: false }, work, outcome, latencyMs) : undefined;
    });
  }
}

/** Returns the change to `message`. Removes any claim, whichever sender holds it. */
function toChange(work: Work, message: Message): Change {
  return { work, message, set: work.claim ? { claim: undefined, maybeSent: true } : {} };
}

/** Returns the change that releases a claim without effect. */
function toReleaseChange({ work, before, settings: _, message: __ }: Ready, now: number): Change {
  const { attempts, repeats } = work.message;
  const message: Message = {
    ...work.message,
    ...{ state: 'waiting', attempts: attempts - 1, repeats: repeats - (before ? 1 : 0) },
    ...{ subject: null, text: null, segments: null, dueAt: now },
  };
  const set = { claim: undefined, ...(before ? { maybeSent: true } : {}) };
  return { work, message, set };
}

const toKey = ({ pk, sk }: Item): Key => ({ pk, sk });
