/** Customer notifications with data of every kind: settings, recipients, messages, a link. */

import { readMessage } from '../../shared/notifications/message-history.ts';
import { toMessageId, toWorkId } from '../../shared/notifications/message-ids.ts';
import { createMessages } from '../../shared/notifications/messages.ts';
import { createRecipient } from '../../shared/notifications/recipients.ts';
import type { Message } from '../../shared/notifications/records.ts';
import { sampleNotice } from '../../shared/notifications/samples.ts';
import { type NotificationDeps, saveSettings } from '../../shared/notifications/settings.ts';
import { createSuppression } from '../../shared/notifications/suppressions.ts';
import type { Channel } from '../../shared/notifications/types.ts';
import { createUnsubscribeUrl } from '../../shared/notifications/unsubscribe.ts';
import type { AccountRef } from '../../shared/storage/schema.ts';
import type { Table } from '../../shared/storage/table.ts';

/** The notification data of an account. */
export interface Notifying {
  readonly recipients: readonly string[];
  readonly messages: readonly string[];
  readonly suppressions: readonly string[];
  /** The last part of the path of an unsubscribe page. */
  readonly token: string;
}

/** The addresses of recipients that {@link notifying} creates. */
export const ADDRESSES = {
  email: { ann: 'ann@example.com', ben: 'ben@example.com' },
  mobile: '+64211234567',
} as const;

/** Creates the data. Messages are about `job`. */
export async function notifying(
  deps: NotificationDeps & { readonly history: Table },
  ref: AccountRef,
  job: number,
): Promise<Notifying> {
  const saved = await saveSettings(deps, ref, {
    enabled: true,
    branding: { name: 'Acme Print' },
    locale: 'en-GB',
    zone: 'Europe/London',
  });
  if (saved.kind !== 'saved') throw new Error(saved.reason);
  const all = [
    { id: 'ann', name: 'Ann Lee', email: ADDRESSES.email.ann },
    { id: 'ben', email: ADDRESSES.email.ben, mobile: ADDRESSES.mobile, orderGroup: 'G1' },
  ];
  for (const recipient of all) {
    const made = await createRecipient(deps, ref, recipient);
    if (made.kind !== 'created') throw new Error(made.reason);
  }
  const suppressions: string[] = [];
  for (const address of ['eve@example.com', 'zoe@example.com']) {
    const made = await createSuppression(deps, ref, { channel: 'email', address });
    if (made.kind !== 'created') throw new Error(made.reason);
    suppressions.push(made.suppression.id);
  }
  const messages: string[] = [];
  for (const [at, recipient, channel, address] of [
    [1, 'ann', 'email', ADDRESSES.email.ann],
    [2, 'ann', 'email', ADDRESSES.email.ann],
    [3, 'ben', 'sms', ADDRESSES.mobile],
  ] as const) {
    messages.push(await toldBy(deps, ref, { job, at, recipient, channel, address }));
  }
  const url = await createUnsubscribeUrl(
    { table: deps.table, publicUrl: 'http://jobwire.test', now: deps.now },
    ref,
    'email',
    ADDRESSES.email.ann,
  );
  return { recipients: ['ann', 'ben'], messages, suppressions, token: url.replace(/.*\//, '') };
}

async function toldBy(
  deps: NotificationDeps & { readonly history: Table },
  ref: AccountRef,
  to: {
    readonly job: number;
    readonly at: number;
    readonly recipient: string;
    readonly channel: Channel;
    readonly address: string;
  },
): Promise<string> {
  const { job, at, recipient, channel, address } = to;
  const now = deps.now();
  const work = toWorkId({ ...ref, thread: '=G1', notice: `n${at}`, channel, address });
  const id = toMessageId(work, now + at);
  const message: Message = {
    ...ref,
    ...{ id, kind: 'dispatched', orderGroup: 'G1', jobs: [job], channel },
    to: { recipient, name: null, address, locale: 'en-GB', zone: 'Europe/London' },
    ...{ state: 'waiting', reason: null, detail: null, createdAt: now, dueAt: now + 60_000, sentAt: null },
    ...{ attempts: 0, repeats: 0, providerId: null },
    subject: 'Stop: http://jobwire.test/v1/unsubscribe/us.acme.email.xyz',
    text: 'Stop: http://jobwire.test/v1/unsubscribe/us.acme.email.xyz',
    segments: channel === 'sms' ? 1 : null,
  };
  const content = sampleNotice('dispatched');
  await createMessages(deps, ref.region, [
    { ref, message, thread: '=G1', content, recipients: [recipient], before: [] },
  ]);
  if (!(await readMessage(deps.history, ref, id))) throw new Error('The message was not made.');
  return id;
}
