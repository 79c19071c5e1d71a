/** Display names of message kinds, channels and states. Independent of React. */
import {
  type Channel,
  type MessageKind,
  type MessageState,
  messageKinds,
  messageStates,
  type SentKind,
} from '../../shared/notifications/types.ts';
import type { Tone } from './texts.ts';

/** Names of the message kinds. They name the subject of a message, not its state. */
export const kindNames: Readonly<Record<SentKind, string>> = {
  dispatched: 'Dispatch',
  tracking: 'Tracking',
  dispatch_revoked: 'Dispatch revocation',
  due_date_changed: 'New due date',
  cancelled: 'Cancellation',
  note: 'Note',
};
/** Formats the kind of one message: `Dispatch message`. */
export const formatMessageKind = (kind: SentKind): string =>
  kind === 'note' ? kindNames.note : `${kindNames[kind]} message`;
export const kinds = Object.keys(messageKinds) as MessageKind[];

export const channelNames: Readonly<Record<Channel, string>> = { email: 'E-mail', sms: 'SMS' };

/** Names and tones of the message states. */
export const stateNames: Readonly<Record<MessageState, readonly [name: string, tone: Tone]>> = {
  waiting: ['Waiting', 'plain'],
  sending: ['Sending', 'plain'],
  sent: ['Sent', 'good'],
  unknown: ['Outcome unknown', 'warn'],
  failed: ['Failed', 'bad'],
  suppressed: ['Suppressed', 'warn'],
  dry_run: ['Dry run', 'plain'],
  bounced: ['Bounced', 'bad'],
  complained: ['Marked as spam', 'bad'],
};
export const states = Object.keys(messageStates) as MessageState[];
