/**
 * Notes: short texts about a job that a user sends to one of its recipients, on demand. A note is a message like any other: the same
 * sender sends it, with the same suppressions, quiet hours, limits and history. Only its creation differs, which is here.
 */
import type { AccountRef } from '../storage/schema.ts';
import type { Table } from '../storage/table.ts';
import { getAddress } from './addresses.ts';
import { normalizeAddress } from './email-address.ts';
import { toMessageId, toWorkId } from './message-ids.ts';
import { createMessages, type JournalDeps, type NewWork, toWork, toWorkKey } from './messages.ts';
import type * as views from './notification-views.ts';
import { acceptsMessage } from './recipient-fields.ts';
import { findRecipients, type JobIdentity } from './recipient-matching.ts';
import type { Message, NotificationSettings, Recipient } from './records.ts';
import { quietUntil } from './sms-limits.ts';
import { findSuppressions } from './suppressions.ts';
import { type Channel, channels, type MessageReason, messageReasons, type NoticeContent } from './types.ts';
import { createSealer, findAddressSealer } from './unsubscribe.ts';

/** Maximum length of the text of a note, characters. */
export const MAX_NOTE = 1000;

/** The thread of notes. Notes are not ordered among each other. */
const THREAD = 'note';

/** Maximum number of messages with the same text to the same address about the same job, after failures. */
const MAX_TRIES = 20;

/** A recipient of a job by one channel. */
export type JobRecipient = Omit<views.JobRecipient, 'recipient'> & { readonly recipient: Recipient };

/** Returns the recipients of a job by each channel for which they have an address, and why a note cannot be sent. */
export async function findJobRecipients(
  {
    table,
    now,
    available,
  }: { readonly table: Table; readonly now: number; readonly available: readonly Channel[] },
  settings: NotificationSettings,
  job: JobIdentity,
): Promise<JobRecipient[]> {
  const found = await findRecipients(table, settings, [job]);
  const places = found.flatMap(({ recipient }) =>
    channels.flatMap((channel) => {
      const address = getAddress(recipient, channel);
      return address === null ? [] : [{ ref: settings, recipient, channel, address }];
    }),
  );
  // Without the key of seals, no address was ever suppressed. Reading does not create it.
  const isSealed = (await findAddressSealer(table, settings.region)) !== undefined;
  const suppressions = isSealed ? await findSuppressions(table, places) : [];
  return places.map(({ recipient, channel, address }, at): JobRecipient => {
    const { name, kinds } = recipient;
    const zone = recipient.zone ?? settings.zone;
    const suppressed = suppressions[at]?.reason;
    const blocked =
      explainBlock(settings, recipient, channel, available) ??
      (suppressed && ([suppressed, messageReasons[suppressed]] as const));
    const quiet =
      channel === 'sms' && !settings.dryRun ? quietUntil(settings.sms.quietHours, zone, now) : now;
    return {
      ...{ recipient, name, channel, address, kinds, zone, locale: recipient.locale ?? settings.locale },
      ...{ reason: blocked?.[0] ?? null, detail: blocked?.[1] ?? null },
      notBefore: quiet > now ? quiet : null,
    };
  });
}

/** Returns why no note can be sent to a recipient, except for suppressions. */
function explainBlock(
  { enabled, dryRun, sms }: NotificationSettings,
  recipient: Recipient,
  channel: Channel,
  available: readonly Channel[],
): readonly [MessageReason, string] | undefined {
  if (!enabled) return ['disabled', 'Notifications of the account are off.'];
  if (recipient.paused) return ['disabled', 'The recipient is paused.'];
  if (!recipient.channels.includes(channel))
    return ['disabled', 'This channel is not among the channels of the recipient.'];
  if (channel === 'sms' && !sms.enabled) return ['disabled', 'SMS of the account are off.'];
  if (!acceptsMessage(recipient, channel, 'note'))
    return ['disabled', 'The API user has agreed to SMS about dispatches only.'];
  if (!dryRun && !available.includes(channel)) return ['no_channel', messageReasons.no_channel];
  return undefined;
}

/** A note to be sent. */
export interface Note {
  readonly place: JobRecipient;
  /** Content of the kind `note`, about one job. */
  readonly content: NoticeContent & { readonly text: string };
  readonly sentBy: NonNullable<views.Message['sentBy']>;
}

/**
 * Creates the message of a note, which the sender sends at once, or after quiet hours. If the same text about the same job was already sent
 * to the address, or is being sent, returns that message instead, for as long as its work is retained (14 days). So a repeated request sends
 * nothing twice. After a failure, a new message is created. `dryRun`: returns the message without storing it.
 */
export async function createNote(
  deps: JournalDeps,
  ref: AccountRef,
  note: Note,
  { dryRun }: { readonly dryRun: boolean },
): Promise<{ readonly created: boolean; readonly message: Message }> {
  const seal = await createSealer(deps.table, ref.region);
  for (let tries = 0; tries < MAX_TRIES; tries += 1) {
    const fresh = toWorkOfNote(ref, note, seal, tries);
    const { message } = fresh;
    if (dryRun) return { created: false, message: { ...message, state: 'dry_run', dueAt: null } };
    if ((await createMessages(deps, ref.region, [fresh])) === 1) return { created: true, message };
    const item = await deps.table.get(toWorkKey(fresh));
    const existing = item && toWork(item).message;
    if (existing && !hasFailed(existing)) return { created: false, message: existing };
  }
  throw new Error('Messages with the same text failed too often.');
}

/** Returns the work on a note. `tries`: number of earlier messages with the same text. */
function toWorkOfNote(
  { region, account }: AccountRef,
  { place, content, sentBy }: Note,
  seal: (address: string) => string,
  tries: number,
): NewWork {
  const { recipient, name, channel, address, locale, zone } = place;
  const { observedAt, text, orderGroup } = content;
  const jobs = content.jobs.map(({ jobNumber }) => jobNumber);
  const work = toWorkId({
    ...{ region, account, thread: THREAD, channel, address: seal(normalizeAddress(channel, address)) },
    notice: JSON.stringify([jobs, text, tries]),
  });
  const message: Message = {
    ...{ region, account, id: toMessageId(work, observedAt), kind: 'note', orderGroup, jobs, channel },
    ...{ to: { recipient: recipient.id, name, address, locale, zone }, sentBy },
    ...{ state: 'waiting', reason: null, detail: null, createdAt: observedAt, dueAt: observedAt },
    ...{ sentAt: null, attempts: 0, repeats: 0, providerId: null, subject: null, text: null, segments: null },
  };
  return {
    ...{ ref: { region, account }, message, thread: THREAD, content },
    ...{ recipients: [recipient.id], before: [] },
  };
}

/** Whether a message certainly did not reach its recipient, so that its text may be sent again. */
const hasFailed = ({ state }: Message): boolean =>
  state === 'failed' || state === 'suppressed' || state === 'dry_run' || state === 'bounced';
