/** Decisions about due messages: whether to send one, and its state after an attempt. Pure. */
import { type Jitter, scheduledWait, withJitter } from '../retry.ts';
import { getAddress } from './addresses.ts';
import { normalizeAddress } from './email-address.ts';
import { applyFeedback, isFinal, type Work } from './messages.ts';
import type { Suppression } from './notification-views.ts';
import { acceptsMessage } from './recipient-fields.ts';
import type { Message, NotificationSettings, Recipient } from './records.ts';
import { quietUntil } from './sms-limits.ts';
import { changeTime } from './thread-windows.ts';
import type { MessageReason, SendOutcome } from './types.ts';

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
  /** Earlier messages of its thread to the same address, as far as they still exist. */
  readonly before: readonly Message[];
  /** For a correction: jobs whose cancellation was sent to the address. */
  readonly sentCancellations: ReadonlySet<number>;
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
  const { now, settings, recipients, suppression, validJobs, before, sentCancellations, canSend } = context;
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
  const isStillAddressed = (recipient: Recipient): boolean => {
    const address = getAddress(recipient, channel);
    return (
      acceptsMessage(recipient, channel, kind) &&
      address !== null &&
      normalizeAddress(channel, address) === normalizeAddress(channel, to.address)
    );
  };
  if (!recipients.some(isStillAddressed)) return finish('suppressed', 'disabled');
  const expired = content.jobs.filter(
    (facts) => now > changeTime(content, facts) + settings.maxAgeHours * HOUR_MS,
  );
  if (expired.length === content.jobs.length) {
    return message.attempts > 0
      ? finish('failed', 'attempts_exhausted', message.detail)
      : finish('suppressed', 'too_old');
  }
  const jobs = message.jobs.filter(
    (job) => validJobs.has(job) && !expired.some(({ jobNumber }) => jobNumber === job),
  );
  if (jobs.length === 0) return finish('suppressed', 'revoked');
  if (suppression) return finish('suppressed', suppression.reason);
  const pending = before.find(({ state }) => !isFinal(state));
  if (pending) {
    const dueAt = pending.state === 'waiting' ? (pending.dueAt ?? now) : now;
    return dueAt > now
      ? { kind: 'change', message: { ...message, state: 'waiting', dueAt } }
      : { kind: 'wait' };
  }
  const isCorrection = content.kind === 'reinstated';
  const covered = isCorrection ? jobs.filter((job) => sentCancellations.has(job)) : jobs;
  if (covered.length === 0) {
    return finish('suppressed', 'revoked', 'The cancellation that it corrects was not sent to this address.');
  }
  if (!settings.dryRun && !canSend) return finish('failed', 'no_channel');
  if (channel === 'sms' && !settings.dryRun) {
    const dueAt = quietUntil(settings.sms.quietHours, to.zone, now);
    if (dueAt > now) return { kind: 'change', message: { ...message, state: 'waiting', dueAt } };
  }
  return { kind: 'send', settings, jobs: covered };
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
      const reason = outcome.address === 'opted_out' ? 'opted_out' : 'rejected';
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

/**
 * Returns the jobs of a correction whose cancellation was sent to its address. `before` are the earlier messages to the address by key.
 * An SMS with an unknown outcome may have been received. A simulated correction follows a simulated cancellation.
 */
export function findSentCancellations(
  { content, corrects }: Pick<Work, 'content' | 'corrects'>,
  before: ReadonlyMap<string, Pick<Work, 'content' | 'message'>>,
  dryRun: boolean,
): ReadonlySet<number> {
  const isSent = (
    { message: { state, jobs }, content: { kind } }: Pick<Work, 'content' | 'message'>,
    job: number,
  ) =>
    kind === 'cancelled' &&
    jobs.includes(job) &&
    (['sent', 'unknown', 'bounced', 'complained'].includes(state) || (dryRun && state === 'dry_run'));
  const sent = content.jobs.filter(({ jobNumber }) => {
    const key = corrects?.[jobNumber];
    const candidates = key === undefined ? [...before.values()] : [before.get(key) ?? []].flat();
    return candidates.some((work) => isSent(work, jobNumber));
  });
  return new Set(sent.map(({ jobNumber }) => jobNumber));
}
