/** Messages to customers in the words of people: what they are about, how they go, where they stand. Free of React. */
import {
  type Channel,
  type MessageKind,
  type MessageState,
  messageKinds,
  messageStates,
} from '../../shared/notifications/types.ts';

/** What a message is about, in two or three words. */
export const kindNames: Readonly<Record<MessageKind, string>> = {
  dispatched: 'Dispatched',
  tracking: 'Tracking came',
  dispatch_revoked: 'Dispatch taken back',
  due_date_changed: 'New due date',
  cancelled: 'Cancelled',
};
export const kinds = Object.keys(messageKinds) as MessageKind[];

export const channelNames: Readonly<Record<Channel, string>> = { email: 'E-mail', sms: 'SMS' };

/** Where a message stands: a word or two, and how that is. */
export const stateNames: Readonly<
  Record<MessageState, readonly [name: string, tone: 'good' | 'warn' | 'bad' | 'plain']>
> = {
  waiting: ['Waiting', 'plain'],
  sending: ['Being sent', 'plain'],
  sent: ['Sent', 'good'],
  unknown: ['Not known whether it went', 'warn'],
  failed: ['Could not be sent', 'bad'],
  suppressed: ['Held back', 'warn'],
  dry_run: ['Dry run: not sent', 'plain'],
  bounced: ['Came back', 'bad'],
  complained: ['Marked as spam', 'bad'],
};
export const states = Object.keys(messageStates) as MessageState[];
