/** Decisions about due messages: whether to send one, and its state after an attempt. Pure. */
import { once } from '../once.ts';
import { type Jitter, scheduledWait, withJitter } from '../retry.ts';
import { sameTime } from '../tracking/timestamps.ts';
import { getAddress } from './addresses.ts';
import { normalizeAddress } from './email-address.ts';
import { addKnownParcels, findNewParcels, type KnownParcels } from './known-parcels.ts';
import { applyFeedback, isFinal, type Work } from './messages.ts';
import type { Suppression } from './notification-views.ts';
import { acceptsMessage } from './recipient-fields.ts';
import { matchesScope } from './recipient-matching.ts';
import type { Message, NotificationSettings, Recipient } from './records.ts';
import { quietUntil } from './sms-limits.ts';
import { sameDispatch } from './thread.ts';
import { truncate } from './thread-event.ts';
import { changeTime } from './thread-windows.ts';
import type {
  ContentKind,
  JobFacts,
  MessageReason,
  MessageState,
  NoticeContent,
  Scope,
  SendOutcome,
} from './types.ts';

/** Delays before retries of a message that was not sent. The last one repeats. */
const RETRY_MS = [60_000, 300_000, 900_000, 3_600_000];
const JITTER: Jitter = { least: 0.9, range: 0.2 };

const HOUR_MS = 3_600_000;

/** Time after quiet hours to send an SMS that became too old during them. */
const AFTER_QUIET_MS = HOUR_MS;

const MAX_DETAIL = 300;

/** State that the verdict on a due message depends on. */
export interface DecisionContext {
  readonly now: number;
  readonly settings: NotificationSettings | undefined;
  /** The existing recipients of the message. */
  readonly recipients: readonly Recipient[];
  readonly suppression: Suppression | undefined;
  /** Jobs of which the notice is still true. */
  readonly validJobs: ReadonlySet<number>;
  /** Jobs of which the notice may become true again until a window closes, with the end of the window (epoch ms). */
  readonly openJobs: ReadonlyMap<number, number>;
  /** Earlier messages of its thread to the same address, as far as they still exist. */
  readonly before: readonly Message[];
  /** Facts that are new to the address, by job number ({@link findNews}). */
  readonly news: ReadonlyMap<number, JobFacts>;
  readonly canSend: boolean;
}

/** Verdict on a due message. */
export type Decision =
  | { readonly kind: 'send'; readonly settings: NotificationSettings; readonly jobs: readonly JobFacts[] }
  /** The changed message. */
  | { readonly kind: 'change'; readonly message: Message }
  /** It has to wait for another message, and there is nothing to record. */
  | { readonly kind: 'wait' };

/** Decides on a due message. */
export function decide({ message, content, maybeSent, feedback }: Work, context: DecisionContext): Decision {
  const { now, settings, recipients, suppression, validJobs, openJobs, before, news, canSend } = context;
  const { channel, to, kind } = message;
  const finish = (
    state: Message['state'],
    reason: MessageReason | null,
    detail: string | null = maybeSent ? 'An earlier attempt may have reached the recipient.' : null,
  ): Decision => ({ kind: 'change', message: { ...message, state, reason, detail, dueAt: null } });

  if (feedback) {
    return { kind: 'change', message: applyFeedback({ ...message, state: 'sent' }, feedback) };
  }
  // The process that claimed it has stopped.
  if (message.state === 'sending' && channel === 'sms') {
    return finish(
      'unknown',
      'unknown_outcome',
      'The process stopped before it recorded the provider’s answer.',
    );
  }
  if (!settings?.enabled || !channel || !to || (channel === 'sms' && !settings.sms.enabled)) {
    return finish('suppressed', 'disabled');
  }
  // Disabled and enabled again since the change, as when a window closes.
  if (content.observedAt < settings.since) return finish('suppressed', 'disabled');
  const isStillAddressed = (recipient: Recipient): boolean => {
    const address = getAddress(recipient, channel);
    return (
      acceptsMessage(recipient, channel, kind) &&
      address !== null &&
      normalizeAddress(channel, address) === normalizeAddress(channel, to.address)
    );
  };
  const addressed = recipients.filter(isStillAddressed);
  if (addressed.length === 0) return finish('suppressed', 'disabled');
  // Their jobs may have changed since: they must not get messages about others.
  const wanted = content.jobs.filter((facts) =>
    addressed.some(({ scope }) => isAbout(scope, content, facts)),
  );
  if (wanted.length === 0) return finish('suppressed', 'no_recipient');
  const current = wanted.filter((facts) => now <= getDeadline(message, changeTime(content, facts), settings));
  if (current.length === 0) {
    return message.attempts > 0
      ? finish('failed', 'attempts_exhausted', message.detail)
      : finish('suppressed', 'too_old');
  }
  const young = message.jobs.filter((job) => current.some(({ jobNumber }) => jobNumber === job));
  const jobs = young.filter((job) => validJobs.has(job));
  const open = young.flatMap((job) => openJobs.get(job) ?? []);
  if (jobs.length === 0 && open.length === 0) return finish('suppressed', 'revoked');
  if (suppression) return finish('suppressed', suppression.reason);
  const waitUntil = (dueAt: number): Decision =>
    dueAt > now ? { kind: 'change', message: { ...message, state: 'waiting', dueAt } } : { kind: 'wait' };
  const pending = before.find(({ state }) => !isFinal(state));
  if (pending) return waitUntil(pending.state === 'waiting' ? (pending.dueAt ?? now) : now);
  if (open.length > 0) return waitUntil(Math.max(...open));
  const covered = jobs.flatMap((job) => news.get(job) ?? []);
  if (covered.length === 0) return finish('suppressed', 'revoked', NO_NEWS[content.kind]);
  if (!settings.dryRun && !canSend) return finish('failed', 'no_channel');
  if (channel === 'sms' && !settings.dryRun) {
    // The recipient's current time zone: it may have been corrected while the message waited.
    const recipient = addressed.find(({ id }) => id === to.recipient);
    const zone = recipient ? (recipient.zone ?? settings.zone) : to.zone;
    const dueAt = quietUntil(settings.sms.quietHours, zone, now);
    if (dueAt > now) return waitUntil(dueAt);
  }
  return { kind: 'send', settings, jobs: covered };
}

/** Returns whether a recipient's scope contains a job. The content has only the beginning of a long order number. */
function isAbout(scope: Scope, { orderGroup }: NoticeContent, { jobNumber, orderNumber }: JobFacts): boolean {
  return scope.for === 'orderNumber'
    ? truncate(scope.orderNumber) === truncate(orderNumber)
    : matchesScope(scope, { jobNumber, orderNumber, orderGroup });
}

/** Returns a message after an attempt. `before`: whether an earlier attempt may have reached the recipient. */
export function afterAttempt(
  { message, channelFailures }: Pick<Work, 'message' | 'channelFailures'>,
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
  readonly message: Message;
  /** Whether an attempt may have reached the recipient and another one may follow. */
  readonly maybeSent: boolean;
  /** Number of attempts that failed with the whole channel, if this one did. */
  readonly channelFailures?: number;
} {
  // A message that was certainly not accepted is no repeat.
  const unrepeated = { ...message, repeats: message.repeats - (before ? 1 : 0) };
  const step = scheduledWait(RETRY_MS, Math.max(1, message.attempts - channelFailures)) ?? 0;
  const again = (least: number, delay: number): number => {
    const dueAt = now + Math.max(least, Math.round(withJitter(delay, JITTER, random)));
    // The next check is at the latest when the message is given up.
    return Math.min(dueAt, Math.max(now, giveUpAt + 1));
  };
  switch (outcome.kind) {
    case 'accepted': {
      const { providerId } = outcome;
      const over = { reason: null, detail: null, dueAt: null, sentAt: now, providerId } as const;
      return { message: { ...message, state: 'sent', ...over }, maybeSent: false };
    }
    case 'rejected': {
      // Nothing was sent, because the recipient wants nothing. No other rejection is deliberate.
      const over =
        outcome.address === 'opted_out'
          ? ({ state: 'suppressed', reason: 'opted_out' } as const)
          : ({ state: 'failed', reason: 'rejected' } as const);
      const detail = withoutAddresses(outcome.reason, message);
      return { message: { ...unrepeated, ...over, detail, dueAt: null }, maybeSent: before };
    }
    case 'later': {
      // A failure of the whole channel does not count as the message's own.
      const dueAt = again(outcome.afterMs ?? 0, outcome.everything ? (RETRY_MS[0] ?? 0) : step);
      const detail = withoutAddresses(outcome.reason, message);
      return {
        message: { ...unrepeated, state: 'waiting', detail, dueAt },
        maybeSent: before,
        ...(outcome.everything ? { channelFailures: channelFailures + 1 } : {}),
      };
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

/** Removes addresses from a text of the provider. */
export function withoutAddresses(text: string, { to }: Pick<Message, 'to'>): string {
  const digits = (to?.address ?? '').replace(/^\+/, '');
  return (digits === '' ? text : text.replaceAll(digits, '…'))
    .replace(/[^\s<>()"'@,;:]+@[^\s<>()"',;]+/g, '…')
    .replace(/\+\d[\d ().-]{5,}\d/g, '…')
    .replace(/[\p{Cc}\s]+/gu, ' ')
    .slice(0, MAX_DETAIL);
}

/** Returns the time (epoch ms) after which no job of a message is sent. */
export const getExpiry = ({ message, content }: Work, settings: NotificationSettings): number =>
  getDeadline(message, Math.max(...content.jobs.map((facts) => changeTime(content, facts))), settings);

/**
 * Returns the time (epoch ms) after which a change is too old for a message. An SMS that would become too old during quiet hours can be
 * sent for {@link AFTER_QUIET_MS} after them: otherwise quiet hours longer than `maxAgeHours` would suppress it.
 */
function getDeadline(
  { channel, to }: Pick<Message, 'channel' | 'to'>,
  changedAt: number,
  { maxAgeHours, sms }: NotificationSettings,
): number {
  const deadline = changedAt + maxAgeHours * HOUR_MS;
  if (channel !== 'sms' || !to) return deadline;
  const quietEnd = quietUntil(sms.quietHours, to.zone, deadline);
  return quietEnd > deadline ? quietEnd + AFTER_QUIET_MS : deadline;
}

/** Details of messages that are not new to their address, by the kind of their content. */
const NO_NEWS: Partial<Record<ContentKind, string>> = {
  dispatched: 'The dispatch was already sent to this address.',
  tracking: 'The parcels were already sent to this address.',
  dispatch_revoked: 'The dispatch was not sent to this address.',
  due_date_changed: 'The recipient already knows this due date.',
  reinstated: 'The cancellation that it corrects was not sent to this address.',
};

/** States in which a message has reached its recipient, as far as known. An SMS with an unknown outcome may have. */
const RECEIVED: readonly MessageState[] = ['sent', 'unknown', 'complained'];

/** In place of a job number: an address knows a parcel, whichever job it was sent for. */
const ANY_JOB = 0;

/** An earlier message to the same address. */
type Earlier = Pick<Work, 'content' | 'message' | 'maybeSent'>;

/**
 * Returns the facts of a message that are new to its address, by job number: a dispatch, unless the address knows it, and its parcels if it
 * wants tracking; parcels that no earlier message to the address contained; a due date, with the former one that the address knows; a
 * revocation, if the address knows a dispatch; the correction of a cancellation, if the cancellation was sent; and all facts of any other
 * message. An address knows a dispatch if it got neither a revocation nor a cancellation after it. `before` are the earlier messages to the
 * address by key. `dryRun`: simulated messages count. `wantsTracking`: whether a recipient gets messages of the kind `tracking`.
 */
export function findNews(
  {
    content,
    before: keys,
    corrects,
    dispatches,
  }: Pick<Work, 'content' | 'before' | 'corrects' | 'dispatches'>,
  before: ReadonlyMap<string, Earlier>,
  options: { readonly dryRun: boolean; readonly wantsTracking: boolean },
): ReadonlyMap<number, JobFacts> {
  const isReceived = ({ message: { state } }: Pick<Work, 'message'>): boolean =>
    RECEIVED.includes(state) || (options.dryRun && state === 'dry_run');
  /** Facts of the jobs in messages that the address got. */
  const received = [...before.values()]
    .filter(isReceived)
    .flatMap(({ content, message }) => content.jobs.filter((one) => message.jobs.includes(one.jobNumber)));
  /** Parcels that the address knows from facts, of whichever job. */
  const listParcels = (facts: readonly JobFacts[]): KnownParcels =>
    addKnownParcels(
      {},
      facts.map(({ tracking }) => ({ job: ANY_JOB, tracking, at: 0 })),
    );
  const receivedParcels = once(() => listParcels(received));
  const isNews = (facts: JobFacts): boolean => {
    const { jobNumber, dateOut } = facts;
    const findLast = (places: readonly string[], kinds: readonly ContentKind[]) =>
      places
        .flatMap((key) => before.get(key) ?? [])
        .findLast((work) => {
          const { message, maybeSent } = work;
          const { kind } = work.content;
          // Of two opposite messages, one that may have been received is followed by the other.
          const isPossible = maybeSent && kind !== content.kind;
          return kinds.includes(kind) && message.jobs.includes(jobNumber) && (isReceived(work) || isPossible);
        });
    switch (content.kind) {
      case 'dispatched':
      case 'dispatch_revoked': {
        const kinds = ['dispatched', 'dispatch_revoked', 'cancelled'] as const;
        const last = findLast(dispatches?.[jobNumber] ?? keys, kinds)?.content;
        const known = last?.kind === 'dispatched' ? last : undefined;
        if (content.kind === 'dispatch_revoked') return known !== undefined;
        const knownOut = known?.jobs.find((one) => one.jobNumber === jobNumber)?.dateOut ?? null;
        if (knownOut === null || dateOut === null || !sameDispatch(knownOut, dateOut)) return true;
        const receivedForJob = received.filter((one) => one.jobNumber === jobNumber);
        return (
          options.wantsTracking &&
          findNewParcels(facts.tracking, listParcels(receivedForJob), ANY_JOB).length > 0
        );
      }
      case 'reinstated': {
        const place = corrects?.[jobNumber];
        return findLast(place === undefined ? keys : [place], ['cancelled']) !== undefined;
      }
      default:
        return true;
    }
  };
  /** The earlier messages of the same kind, with their jobs by number. */
  const listEarlier = once(() =>
    keys
      .flatMap((key) => before.get(key) ?? [])
      .filter((work) => work.content.kind === content.kind)
      .map((work) => ({
        work,
        sent: new Set(work.message.jobs),
        facts: new Map(work.content.jobs.map((one) => [one.jobNumber, one])),
      })),
  );
  /**
   * Due dates of a job that the address may know, from before the messages that it missed. The first one assumes that messages with an
   * unknown outcome were not received, the second one that they were.
   */
  const findDueDates = ({ jobNumber, formerDateDue }: JobFacts): (string | null)[] =>
    [isReceived, (work: Earlier) => isReceived(work) || work.maybeSent].map((isKnown) => {
      const earlier = listEarlier();
      const last = earlier.findLastIndex(({ work, sent }) => isKnown(work) && sent.has(jobNumber));
      const [missed] = earlier.slice(last + 1).flatMap(({ facts }) => facts.get(jobNumber) ?? []);
      return (missed ?? { formerDateDue }).formerDateDue;
    });
  const toNews = (facts: JobFacts): JobFacts[] => {
    switch (content.kind) {
      case 'tracking': {
        const tracking = findNewParcels(facts.tracking, receivedParcels(), ANY_JOB);
        return tracking.length > 0 ? [{ ...facts, tracking }] : [];
      }
      case 'due_date_changed': {
        const former = findDueDates(facts).find((date) => !sameTime(date, facts.dateDue));
        return former === undefined ? [] : [{ ...facts, formerDateDue: former }];
      }
      default:
        return isNews(facts) ? [facts] : [];
    }
  };
  return new Map(content.jobs.flatMap(toNews).map((facts) => [facts.jobNumber, facts]));
}
