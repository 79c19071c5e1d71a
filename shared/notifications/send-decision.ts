/** Decisions about due messages: whether to send one, and its state after an attempt. Pure. */
import { type Jitter, scheduledWait, withJitter } from '../retry.ts';
import { getAddress } from './addresses.ts';
import { normalizeAddress } from './email-address.ts';
import { applyFeedback, isFinal, type Work } from './messages.ts';
import type { Suppression } from './notification-views.ts';
import { acceptsMessage } from './recipient-fields.ts';
import { matchesScope } from './recipient-matching.ts';
import type { Message, NotificationSettings, Recipient } from './records.ts';
import { quietUntil } from './sms-limits.ts';
import { addKnownParcels, findNewParcels, sameDispatch } from './thread.ts';
import { truncate } from './thread-event.ts';
import { changeTime } from './thread-windows.ts';
import type {
  ContentKind,
  JobFacts,
  MessageReason,
  MessageState,
  NoticeContent,
  Parcel,
  Scope,
  SendOutcome,
} from './types.ts';

/** Delays before retries of a message that was not sent. The last one repeats. */
const RETRY_MS = [60_000, 300_000, 900_000, 3_600_000];
const JITTER: Jitter = { least: 0.9, range: 0.2 };

const HOUR_MS = 3_600_000;

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
  /** Jobs of which the message is new to the address ({@link findNews}). */
  readonly news: ReadonlySet<number>;
  readonly canSend: boolean;
}

/** Verdict on a due message. */
export type Decision =
  | { readonly kind: 'send'; readonly settings: NotificationSettings; readonly jobs: readonly number[] }
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
  const current = wanted.filter(
    (facts) => now <= changeTime(content, facts) + settings.maxAgeHours * HOUR_MS,
  );
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
  const covered = jobs.filter((job) => news.has(job));
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
  const step = scheduledWait(RETRY_MS, Math.max(1, message.attempts)) ?? 0;
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

/** Removes addresses from a text of the provider. */
export function withoutAddresses(text: string, { to }: Pick<Message, 'to'>): string {
  const digits = (to?.address ?? '').replace(/^\+/, '');
  return (digits === '' ? text : text.replaceAll(digits, '…'))
    .replace(/[^\s<>()"'@,;:]+@[^\s<>()"',;]+/g, '…')
    .replace(/\+\d[\d ().-]{5,}\d/g, '…')
    .replace(/[\p{Cc}\s]+/gu, ' ')
    .slice(0, MAX_DETAIL);
}

export const getExpiry = ({ content }: Work, { maxAgeHours }: NotificationSettings): number =>
  Math.max(...content.jobs.map((facts) => changeTime(content, facts))) + maxAgeHours * HOUR_MS;

/** Details of messages that are not new to their address, by the kind of their content. */
const NO_NEWS: Partial<Record<ContentKind, string>> = {
  dispatched: 'The dispatch was already sent to this address.',
  dispatch_revoked: 'The dispatch was not sent to this address.',
  reinstated: 'The cancellation that it corrects was not sent to this address.',
};

/** States in which a message has reached its recipient, as far as known. An SMS with an unknown outcome may have. */
const RECEIVED: readonly MessageState[] = ['sent', 'unknown', 'complained'];

/**
 * Returns the jobs of which a message is new to its address: a dispatch, unless the address knows it, and its parcels if it wants tracking; a
 * revocation, if the address knows a dispatch; the correction of a cancellation, if the cancellation was sent; and all jobs of any other
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
  before: ReadonlyMap<string, Pick<Work, 'content' | 'message' | 'maybeSent'>>,
  options: { readonly dryRun: boolean; readonly wantsTracking: boolean },
): ReadonlySet<number> {
  const isReceived = ({ message: { state } }: Pick<Work, 'message'>): boolean =>
    RECEIVED.includes(state) || (options.dryRun && state === 'dry_run');
  /** Parcels of the job in messages that the address got. */
  const findParcels = (job: number): Parcel[] =>
    [...before.values()]
      .filter((work) => isReceived(work) && work.message.jobs.includes(job))
      .flatMap(({ content: { jobs } }) => jobs.find((one) => one.jobNumber === job)?.tracking ?? []);
  const isNews = ({ jobNumber, dateOut, tracking }: JobFacts): boolean => {
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
        return (
          options.wantsTracking &&
          findNewParcels(tracking, addKnownParcels({}, findParcels(jobNumber), 0)).length > 0
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
  return new Set(content.jobs.filter(isNews).map(({ jobNumber }) => jobNumber));
}
