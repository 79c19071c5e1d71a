/** Responses about notifications for a key: addresses are masked for the role `read`. */
import { maskAddress } from '../notifications/masking.ts';
import type { Message as MessageResponse } from '../notifications/notification-views.ts';
import { scopeFields } from '../notifications/recipient-fields.ts';
import type { Message, NotificationSettings, Recipient } from '../notifications/records.ts';
import type { Channel } from '../notifications/types.ts';
import { roleAllows } from './key-input.ts';
import type { Caller } from './keys.ts';

/** Returns settings with the available channels and with warnings. */
export function toSettingsResponse(settings: NotificationSettings, available: readonly Channel[]) {
  const { enabled, dryRun, ownUser, sms } = settings;
  const warnings = [
    ownUser &&
      'ownUser is on. If the ordering API also notifies this user, the user receives every message twice.',
    enabled && dryRun && 'dryRun is on, so nothing is sent.',
    enabled && !available.includes('email') && 'No mail server is configured: e-mails are not sent.',
    enabled && sms.enabled && !available.includes('sms') && 'No SMS service is configured: SMS are not sent.',
  ];
  return {
    ...settings,
    since: settings.since > 0 ? settings.since : null,
    channels: available,
    warnings: warnings.filter((warning) => warning !== false),
  };
}

/** Returns a recipient as a key may see it. */
export function toRecipientResponse({ scope, ...recipient }: Recipient, caller: Caller) {
  const { email, mobile } = recipient;
  return {
    ...{ ...recipient, orderGroup: null, orderNumber: null, jobNumber: null, ...scopeFields(scope) },
    email: email && formatAddress(caller, email),
    mobile: mobile && formatAddress(caller, mobile),
  };
}

/** Returns a message as a key may see it. */
export function toMessageResponse(message: Message, caller: Caller): MessageResponse {
  const { to, subject, text } = message;
  return {
    ...message,
    sentBy: message.sentBy ?? null,
    to: to && { ...to, address: formatAddress(caller, to.address) },
    // A custom template can contain the unsubscribe link in the subject or the text.
    subject: maskLink(caller, subject),
    text: maskLink(caller, text),
  };
}

/** Removes the token of the unsubscribe link, which allows acting for the recipient. */
function maskLink(caller: Caller, text: string | null): string | null {
  return text && !canSeeAddresses(caller) ? text.replace(/(\/v1\/unsubscribe\/)[\w.~-]+/g, '$1…') : text;
}

/** Returns whether a key may see complete addresses. */
const canSeeAddresses = ({ role }: Caller): boolean => roleAllows(role, 'operate');

/** Returns an address as a key may see it. */
export function formatAddress(caller: Caller, address: string): string {
  return canSeeAddresses(caller) ? address : maskAddress(address);
}
