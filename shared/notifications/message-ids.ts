/** Ids of messages and keys of the work on them. */
import { hash } from 'node:crypto';
import type { AccountRef } from '../storage/schema.ts';
import type { Channel } from './types.ts';

/** Identity of a message: account, thread, notice in the thread, channel and address. */
export interface MessageIdentity extends AccountRef {
  readonly thread: string;
  readonly notice: string;
  /** `null`, as is the address, for a notice that becomes no messages. */
  readonly channel: Channel | null;
  /** Never contained in ids as plain text, because ids are shown and logged: sealed with the key of the region. */
  readonly address: string | null;
}

/** Returns the key of a message's work. Does not depend on when the notice was observed. */
export function toWorkId({ region, account, thread, notice, channel, address }: MessageIdentity): string {
  const digest = hash('sha256', JSON.stringify([region, account, thread, notice, channel, address]));
  return `${channel?.[0] ?? 'n'}${digest.slice(0, 32)}`;
}

/** Returns whether the work with this key is a message of the channel. */
export const belongsToChannel = (workId: string, channel: Channel): boolean =>
  workId.startsWith(channel.slice(0, 1));

/** Returns the id of a message. Ids sort by the time of the change that the message is about, and end in the key of its work. */
export function toMessageId(workId: string, observedAt: number): string {
  return `m${Math.max(0, Math.floor(observedAt)).toString(36).padStart(9, '0')}-${workId}`;
}

/** Returns whether a text can be a message id. Other texts are not looked up. */
export const isMessageId = (text: string): boolean => /^m[0-9a-z]{9,11}-[a-z][0-9a-f]{32}$/.test(text);

/** Returns the key of the work on a message. */
export const parseWorkId = (messageId: string): string => messageId.slice(messageId.indexOf('-') + 1);
