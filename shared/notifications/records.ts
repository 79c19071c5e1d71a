/** Records of settings, recipients and messages: the fields of their responses, and the account. Times are epoch ms. */
import type { AccountRef } from '../storage/schema.ts';
import type * as views from './notification-views.ts';
import type { Scope } from './types.ts';

/** Notification settings of an account. `since` is 0 if they were never enabled. */
export type NotificationSettings = AccountRef &
  Omit<views.NotificationSettings, 'since' | 'channels' | 'warnings'> & { readonly since: number };

/** Appearance and sender name of an account's messages. Customer text: escape it wherever it is shown. */
export type Branding = NotificationSettings['branding'];

/** Daily interval in the recipient's time zone, `HH:MM`. `from` may be later than `to`. */
export type QuietHours = NonNullable<NotificationSettings['sms']['quietHours']>;

/** A recipient of notifications. Mobile numbers are in E.164. */
export type Recipient = AccountRef &
  Omit<views.Recipient, 'orderGroup' | 'orderNumber' | 'jobNumber'> & { readonly scope: Scope };

/**
 * A message in the history: one for each recipient address, channel and notice, or one for a notice without recipients. Its id is
 * the same when the notice is processed again. Its address is never logged.
 */
export type Message = AccountRef &
  Omit<views.Message, 'sentBy'> & { readonly sentBy?: views.Message['sentBy'] };
