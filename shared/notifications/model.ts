/**
 * What is said to customers, to whom and by which channel: the words that the parts of the notifications sink share.
 *
 *   event ─ fold ─▶ thread: notices of one order group, each with a window ─ close ─▶ notice ─ recipients × channels ─▶ messages
 *                                                                                                  └─ claim ─ render ─ send ─▶ history
 */
import type { AccountRef } from '../table/schema.ts';

/** What a message can be about, and what it says in a word. */
export const messageKinds = {
  dispatched: 'Jobs were dispatched.',
  tracking: 'Tracking was added after the dispatch notification.',
  dispatch_revoked: 'A dispatch that was notified was revoked.',
  due_date_changed: 'The due date of jobs changed.',
  cancelled: 'Jobs seem to be cancelled: the ordering API no longer lists them.',
} as const;
export type MessageKind = keyof typeof messageKinds;

/** What recipients are told of unless they say otherwise. */
export const DEFAULT_KINDS: readonly MessageKind[] = ['dispatched', 'tracking'];

/** How a message goes. */
export const channels = ['email', 'sms'] as const;
export type Channel = (typeof channels)[number];

/** The languages that there are templates for. */
export const locales = ['en-US', 'en-GB', 'en-AU', 'en-NZ', 'de', 'fr'] as const;
export type Locale = (typeof locales)[number];

/** The id of the built-in sink that folds events into notices. */
export const NOTIFICATIONS_SINK = 'notifications';

/** The id of the recipient that the ordering service's own user settings make. */
export const OWN_USER = 'own-user';

/** The look of an account's messages, and who they seem to come from. Customer text: escaped wherever it is shown. */
export interface Branding {
  readonly name: string;
  /** An https URL; null: the name as text. */
  readonly logoUrl: string | null;
  /** `#rrggbb` */
  readonly color: string;
  readonly website: string | null;
  /** A line or two at the end of e-mails: a postal address, say. */
  readonly footer: string | null;
}

/** By the clock of the recipient's zone, `HH:MM`; `from` may be later than `to`. */
export interface QuietHours {
  readonly from: string;
  readonly to: string;
}

/** How an account notifies its customers. */
export interface NotificationSettings extends AccountRef {
  readonly enabled: boolean;
  /** Since when (epoch ms): what was observed before is not told. */
  readonly since: number;
  /** Everything happens but sending: messages end as `dry_run`. */
  readonly dryRun: boolean;
  /** The user of the account's credentials is a recipient by the settings he has in the ordering service. */
  readonly ownUser: boolean;
  /** How much event time of an order group becomes one message, seconds. */
  readonly windowSeconds: number;
  /** What is older by then is not told. */
  readonly maxAgeHours: number;
  /** For recipients without their own. */
  readonly locale: Locale;
  /** IANA name; for recipients without their own. */
  readonly zone: string;
  readonly branding: Branding;
  readonly replyTo: string | null;
  readonly sms: {
    readonly enabled: boolean;
    /** 1–11 letters and digits; null: the cell's. Not all countries allow one. */
    readonly senderId: string | null;
    /** SMS of this account in a calendar month (UTC), counted in segments: what is above is not sent. */
    readonly monthlySegments: number;
    readonly quietHours: QuietHours | null;
  };
  readonly revision: number;
}

/** For which jobs a recipient is. */
export type Scope =
  | { readonly for: 'account' }
  | { readonly for: 'orderGroup'; readonly orderGroup: string }
  | { readonly for: 'orderNumber'; readonly orderNumber: string }
  | { readonly for: 'job'; readonly jobNumber: number };

/** Somebody who is told. */
export interface Recipient extends AccountRef {
  readonly id: string;
  readonly scope: Scope;
  readonly name: string | null;
  readonly email: string | null;
  /** E.164. */
  readonly mobile: string | null;
  /** Null: the account's. */
  readonly locale: Locale | null;
  readonly zone: string | null;
  readonly channels: readonly Channel[];
  readonly kinds: readonly MessageKind[];
  readonly paused: boolean;
  /** Who made it: people, or the ordering service's own user settings. */
  readonly source: 'people' | 'upstream';
  /** Epoch ms. */
  readonly createdAt: number;
  readonly revision: number;
}

/** One parcel. */
export interface Parcel {
  readonly number: string | null;
  /** Null when the carrier gives none. Only http and https; anything else is no link. */
  readonly link: string | null;
}

/** What a message says of one job. Customer text: escaped wherever it is shown. */
export interface JobFacts {
  readonly jobNumber: number;
  readonly orderNumber: string | null;
  readonly description: string | null;
  /** In the words of the service: with an offset an instant, without one the wall clock of its location. */
  readonly dateOut: string | null;
  readonly dateDue: string | null;
  /** Of due_date_changed: what it was when the window opened. */
  readonly formerDateDue: string | null;
  /** All of its parcels; of `tracking` those that are news. */
  readonly tracking: readonly Parcel[];
}

/** What a notice says: fixed when its window is over. */
export interface NoticeContent {
  readonly kind: MessageKind;
  readonly orderGroup: string | null;
  /** By job number; at least one. */
  readonly jobs: readonly JobFacts[];
  /** When the first of it was observed (epoch ms). */
  readonly observedAt: number;
}

/** Where a message stands. Final: all but `waiting` and `sending`. */
export const messageStates = {
  waiting: 'Scheduled.',
  sending: 'Being sent.',
  sent: 'Accepted by the mail server or the SMS service.',
  unknown: 'An SMS whose outcome is unknown. It is not sent again.',
  failed: 'Failed permanently.',
  suppressed: 'Not sent on purpose.',
  dry_run: 'Not sent, because `dryRun` is on.',
  bounced: 'Sent, and returned as undeliverable.',
  complained: 'Sent, and marked as spam by the recipient.',
} as const;
export type MessageState = keyof typeof messageStates;

/** Why a message was not sent, or came to nothing. */
export const messageReasons = {
  revoked: 'The change was revoked before the message was sent.',
  too_old: 'The events are older than `maxAgeHours`.',
  no_recipient: 'There is no recipient for the message.',
  unsubscribed: 'The recipient has unsubscribed.',
  opted_out: 'The mobile number has opted out of SMS.',
  bounced: 'E-mail to this address was returned as undeliverable.',
  complained: 'The recipient marked an e-mail as spam.',
  quota: 'The monthly SMS quota is used up.',
  no_channel: 'The channel is not configured.',
  template: 'The template failed.',
  refused: 'The provider rejected the message permanently.',
  gave_up: 'All attempts failed.',
  unknown_outcome: 'The SMS service did not confirm the message.',
  turned_off: 'Notifications or the recipient were disabled or deleted.',
} as const;
export type MessageReason = keyof typeof messageReasons;

/** A message as it is kept in the history: one per recipient address, channel and notice, or one for a notice that nobody got. */
export interface Message extends AccountRef {
  /** Sorts by the instant of what it is about; the same whenever the notice is worked on again. */
  readonly id: string;
  readonly kind: MessageKind;
  readonly orderGroup: string | null;
  readonly jobs: readonly number[];
  /** Null with `to`: a notice that became no messages. */
  readonly channel: Channel | null;
  readonly to: {
    /** The recipient, or the first of several with the same address. */
    readonly recipient: string;
    readonly name: string | null;
    /** The e-mail address or mobile number. Never logged. */
    readonly address: string;
    readonly locale: Locale;
    readonly zone: string;
  } | null;
  readonly state: MessageState;
  readonly reason: MessageReason | null;
  /** More of it in a sentence, without addresses. */
  readonly detail: string | null;
  /** Epoch ms. */
  readonly createdAt: number;
  readonly dueAt: number | null;
  readonly sentAt: number | null;
  readonly attempts: number;
  /** How often an e-mail was sent again because nobody knew whether it went: at most so many duplicates. */
  readonly repeats: number;
  /** The id that the mail server or SMS service gave. */
  readonly providerId: string | null;
  /** As it went, or would have gone. */
  readonly subject: string | null;
  readonly text: string | null;
  /** Of SMS. */
  readonly segments: number | null;
}

/** What became of handing a message over. */
export type SendOutcome =
  | { readonly kind: 'accepted'; readonly providerId: string | null }
  /** This message never goes; `address`: nor does any other to this address. */
  | { readonly kind: 'refused'; readonly reason: string; readonly address?: 'bounced' | 'opted_out' }
  /** It was certainly not taken; `everything`: nor will anything be at the moment. */
  | {
      readonly kind: 'later';
      readonly reason: string;
      readonly everything: boolean;
      readonly afterMs?: number;
    }
  /** Nobody knows whether it was taken. */
  | { readonly kind: 'unknown'; readonly reason: string };

/** An e-mail on its way. */
export interface OutgoingEmail {
  /** The same whenever it is sent again, without angle brackets. */
  readonly messageId: string;
  /** Ids of the mails it follows up, oldest first. */
  readonly references: readonly string[];
  readonly fromName: string;
  readonly to: { readonly name: string | null; readonly address: string };
  readonly replyTo: string | null;
  readonly subject: string;
  readonly html: string;
  readonly text: string;
  /** For List-Unsubscribe. */
  readonly unsubscribeUrl: string;
  /** For the provider's events: which message it is. */
  readonly tags: { readonly region: string; readonly account: string; readonly message: string };
}

/** Hands e-mails over. `send` never throws for what the other side does. */
export interface EmailTransport {
  /** Domain of message ids. */
  readonly domain: string;
  send(mail: OutgoingEmail): Promise<SendOutcome>;
  close(): void;
}

/** An SMS on its way. */
export interface OutgoingSms {
  /** E.164. */
  readonly to: string;
  readonly text: string;
  readonly senderId: string | null;
}

/** Hands SMS over, each at most once: no retries inside. `send` never throws for what the other side does. */
export interface SmsTransport {
  send(sms: OutgoingSms): Promise<SendOutcome>;
}
