/**
 * Types of the notifications sink: recipients, channels, notices and messages.
 *
 * event ─ fold ─▶ thread: notices of one order group, each with a window ─ close ─▶ notice ─ recipients × channels ─▶ messages
 * └─ claim ─ render ─ send ─▶ history
 */
import type { EventType } from '../events/catalogue.ts';

/** Kinds of messages, with their short labels. */
export const messageKinds = {
  dispatched: 'Jobs were dispatched.',
  tracking: 'Tracking numbers or links were added after the dispatch message.',
  dispatch_revoked: 'A dispatch was revoked after a message about it was sent.',
  due_date_changed: 'The due date of jobs changed.',
  cancelled:
    'Jobs seem to be cancelled. If they are listed again, another message of this kind corrects the first one.',
} as const;
export type MessageKind = keyof typeof messageKinds;

/**
 * Kinds of notices. `reinstated` corrects a cancellation that was sent: the job is listed again. Its messages are of the kind `cancelled`
 * and go to recipients of that kind.
 */
export const noticeKinds = [...(Object.keys(messageKinds) as MessageKind[]), 'reinstated'] as const;
export type NoticeKind = (typeof noticeKinds)[number];

/**
 * Kinds of all messages, with their short labels. A note is a text that a user sends on demand: it follows from no event, has no templates,
 * and is not among the kinds that a recipient chooses.
 */
export const sentKinds = { ...messageKinds, note: 'A text about a job that a user sent.' } as const;
export type SentKind = keyof typeof sentKinds;

/** Kinds of content: of notices, and of notes. */
export type ContentKind = NoticeKind | 'note';

/** Returns the kind of the messages with a content. */
export function toMessageKind(kind: NoticeKind): MessageKind;
export function toMessageKind(kind: ContentKind): SentKind;
export function toMessageKind(kind: ContentKind): SentKind {
  return kind === 'reinstated' ? 'cancelled' : kind;
}

/** Types of events that the sink folds, in the order that it stores, and the kind of message that each can cause. */
export const FOLDED_TYPES: Readonly<Record<string, MessageKind>> = {
  'job.dispatched': 'dispatched',
  'job.dispatch_revoked': 'dispatch_revoked',
  'job.tracking_added': 'tracking',
  'job.tracking_updated': 'tracking',
  'job.tracking_removed': 'tracking',
  'job.due_date_changed': 'due_date_changed',
  'job.cancelled': 'cancelled',
  'job.reopened': 'cancelled',
  'job.updated': 'dispatched',
} satisfies Partial<Record<EventType, MessageKind>>;

/** Default kinds of a recipient. */
export const DEFAULT_KINDS: readonly MessageKind[] = ['dispatched', 'tracking'];

/** Channels of messages. */
export const channels = ['email', 'sms'] as const;
export type Channel = (typeof channels)[number];

/** A problem of a channel, and the settings to check. Both are sentences without secrets. */
export interface ChannelProblem {
  readonly message: string;
  readonly fix: string;
}

/** Languages that have templates. */
export const locales = ['en-US', 'en-GB', 'en-AU', 'en-NZ', 'de', 'fr'] as const;
export type Locale = (typeof locales)[number];

/** The id of the built-in sink that folds events into notices. */
export const NOTIFICATIONS_SINK = 'notifications';

/** Id of the recipient that is derived from the user settings of the ordering API. */
export const OWN_USER = 'own-user';

/** Jobs that a recipient is notified of. */
export type Scope =
  | { readonly for: 'account' }
  | { readonly for: 'orderGroup'; readonly orderGroup: string }
  | { readonly for: 'orderNumber'; readonly orderNumber: string }
  | { readonly for: 'job'; readonly jobNumber: number };

/** One parcel. */
export interface Parcel {
  readonly number: string | null;
  /** `null` if the carrier gives none. Only http and https: any other URL is dropped. */
  readonly link: string | null;
}

/** Facts of one job in a message. Customer text: escape it wherever it is shown. */
export interface JobFacts {
  readonly jobNumber: number;
  readonly orderNumber: string | null;
  readonly description: string | null;
  /** As upstream wrote it: a timestamp if it has an offset, otherwise local time at the job's location. */
  readonly dateOut: string | null;
  readonly dateDue: string | null;
  /** For `due_date_changed`: the due date when the window opened. */
  readonly formerDateDue: string | null;
  /** All parcels of the job. For `tracking`: only the new ones. */
  readonly tracking: readonly Parcel[];
  /** For `dispatched`: latest time that `dateOut` can mean (epoch ms). Absent if it is not a date. */
  readonly dispatchedBy?: number;
}

/** Content of a notice, fixed when its window closes. */
export interface NoticeContent {
  readonly kind: ContentKind;
  readonly orderGroup: string | null;
  /** Ordered by job number. At least one. */
  readonly jobs: readonly JobFacts[];
  /** Time of the first observation in it, or time of a note (epoch ms). */
  readonly observedAt: number;
  /** Text of a note. Absent otherwise. */
  readonly text?: string;
}

/** States of a message. All are final except `waiting` and `sending`. */
export const messageStates = {
  waiting: 'Scheduled.',
  sending: 'Being sent.',
  sent: 'Accepted by the mail server or the SMS service.',
  unknown: 'The SMS service did not report whether it accepted the SMS, which is not sent again.',
  failed: 'Failed permanently.',
  suppressed: 'Deliberately not sent (see `reason`).',
  dry_run: 'Not sent, because `dryRun` is on.',
  bounced: 'Returned as undeliverable.',
  complained: 'Marked as spam by the recipient.',
} as const;
export type MessageState = keyof typeof messageStates;

/** Whether a message in this state did not reach its recipient, or may not have. */
export const isUndelivered = (state: MessageState): boolean =>
  state === 'failed' || state === 'bounced' || state === 'complained' || state === 'unknown';

/** Reasons why a message was not sent or not delivered. */
export const messageReasons = {
  revoked: 'The change was revoked in the meantime.',
  too_old: 'The change is older than `maxAgeHours`.',
  no_recipient: 'No recipient gets messages of this kind about this job.',
  unsubscribed: 'The recipient has unsubscribed, or a user suppressed the address.',
  opted_out: 'The mobile number has opted out of SMS.',
  bounced: 'The address is undeliverable.',
  complained: 'The recipient marked an e-mail as spam.',
  quota: 'The monthly SMS quota is used up.',
  no_channel: 'The channel is not configured.',
  template: 'The template failed.',
  rejected: 'The provider rejected the message permanently.',
  attempts_exhausted: 'All attempts failed.',
  unknown_outcome: 'The SMS service did not report the outcome.',
  disabled: 'Notifications or the recipient were disabled or deleted.',
} as const;
export type MessageReason = keyof typeof messageReasons;

/** Reasons of a suppression. The first one present is the one reported. */
export const suppressionReasons = [
  'unsubscribed',
  'complained',
  'opted_out',
  'bounced',
] as const satisfies readonly MessageReason[];
export type SuppressionReason = (typeof suppressionReasons)[number];

/** Outcome of handing a message to a transport. */
export type SendOutcome =
  | { readonly kind: 'accepted'; readonly providerId: string | null }
  /** This message can never be sent. With `address`, neither can any other to this address. */
  | { readonly kind: 'rejected'; readonly reason: string; readonly address?: 'bounced' | 'opted_out' }
  /** The message was certainly not accepted. With `everything`, no message is accepted at present. */
  | {
      readonly kind: 'later';
      readonly reason: string;
      readonly everything: boolean;
      readonly afterMs?: number;
    }
  /** Outcome unknown: the message may have been accepted. */
  | { readonly kind: 'unknown'; readonly reason: string };

/** An e-mail to be sent. */
export interface OutgoingEmail {
  /** Without angle brackets. The same for every repeat. */
  readonly messageId: string;
  /** Ids of the mails that it follows up, oldest first. */
  readonly references: readonly string[];
  readonly fromName: string;
  readonly to: { readonly name: string | null; readonly address: string };
  readonly replyTo: string | null;
  readonly subject: string;
  readonly html: string;
  readonly text: string;
  /** URL for List-Unsubscribe. `null`: the e-mail is not to a customer. */
  readonly unsubscribeUrl: string | null;
  /** Tags that identify the message in the provider's events. */
  readonly tags: { readonly region: string; readonly account: string; readonly message: string };
}

/** Sends e-mails. `send` never throws for a failure of the other side. */
export interface EmailTransport {
  /** Domain of message ids. */
  readonly domain: string;
  /** Maximum number of concurrent mails. Further ones wait, which counts as their time. Default: unlimited. */
  readonly connections?: number;
  send(mail: OutgoingEmail): Promise<SendOutcome>;
  close(): void;
}

/** An SMS to be sent. */
export interface OutgoingSms {
  /** E.164. */
  readonly to: string;
  readonly text: string;
  readonly senderId: string | null;
}

/** Sends SMS, each at most once: no retries inside. `send` never throws for a failure of the other side. */
export interface SmsTransport {
  send(sms: OutgoingSms): Promise<SendOutcome>;
}
