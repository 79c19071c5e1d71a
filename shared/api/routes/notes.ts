/** Routes of the recipients of a job, and of notes, which users send to them. */
import { randomUUID } from 'node:crypto';
import * as z from 'zod';
import { createNote, findJobRecipients, type JobRecipient, MAX_NOTE } from '../../notifications/notes.ts';
import {
  ChannelName,
  JobRecipient as JobRecipientView,
  Message,
} from '../../notifications/notification-views.ts';
import type { NotificationSettings } from '../../notifications/records.ts';
import { messageRenderer } from '../../notifications/rendering.ts';
import type { NoticeContent } from '../../notifications/types.ts';
import { textOrNull } from '../../representation.ts';
import { type Rejection, rejected } from '../../resources.ts';
import { existingId, lines } from '../../validation.ts';
import { jobItem } from '../attention/items.ts';
import { recordAction } from '../attention/recording.ts';
import { readJob } from '../jobs.ts';
import type { Caller } from '../keys.ts';
import { formatAddress, toMessageResponse } from '../notification-responses.ts';
import { afterBy, decodePageCursor, encodePageCursor, limit } from '../parameters.ts';
import { problem } from '../problems.ts';
import { pageAnswer } from '../resource.ts';
import { createRouteFactory, type Route, type RouteParts } from '../route.ts';
import { jobParams } from './jobs.ts';
import { readNoticeContent, settingsSubject, toUnsubscribeUrl } from './previews.ts';

const route = createRouteFactory('Notifications');

const NO_JOB = 'There is no such job.';

const NoteInput = z
  .strictObject({
    recipient: existingId.describe('Id of a recipient of the job.'),
    channel: ChannelName.describe('Channel of the message.'),
    text: lines(MAX_NOTE)
      .min(1, 'must not be empty')
      .describe('Plain text. In an e-mail, empty lines separate paragraphs.'),
    dryRun: z.boolean().default(false).describe('Only render the message.'),
  })
  .meta({ id: 'NoteInput' });

const NoteResult = z
  .object({
    created: z
      .boolean()
      .describe(
        'Whether this request created the message. `false`: with `dryRun`, or if `message` is an earlier message with the same text.',
      ),
    message: Message.describe('The message. With `dryRun`: not stored, in the state `dry_run`.'),
    html: textOrNull.describe('HTML of the e-mail. `null` for an SMS.'),
  })
  .meta({ id: 'NoteResult' });

/** Routes of notes. */
export const noteRoutes: readonly Route[] = [
  route(
    {
      path: '/v1/accounts/{id}/jobs/{jobNumber}/recipients',
      id: 'listJobRecipients',
      summary: 'List recipients of a job',
      description: 'Returns an entry for each recipient and channel.',
      role: 'read',
      subject: settingsSubject,
      params: jobParams,
      query: z.strictObject({ limit, after: afterBy('recipients', decodeJobRecipient) }),
      answer: pageAnswer('recipients', JobRecipientView, 'A page of the recipients of the job.'),
    },
    async ({ c, caller, subject, params, query: { limit: most, after = '' } }, parts) => {
      const places = await readJobRecipients(subject, Number(params.jobNumber), parts);
      if (!places) return problem(c, 'not-found', { detail: NO_JOB });
      const rest = places
        .map((place) => ({ place, name: `${place.recipient.id} ${place.channel}` }))
        .sort((a, b) => (a.name < b.name ? -1 : 1))
        .filter(({ name }) => name > after);
      const page = rest.slice(0, most);
      const next = rest.length > most ? encodePageCursor(page.at(-1)?.name ?? null) : null;
      return { body: { recipients: page.map(({ place }) => toResponse(place, caller)), next } };
    },
  ),
  route(
    {
      method: 'post',
      path: '/v1/accounts/{id}/jobs/{jobNumber}/messages',
      id: 'sendNote',
      summary: 'Send a note to a recipient of a job',
      description:
        'Sends a text about the job within a minute. An SMS waits until the quiet hours end. Nothing is sent to recipients who are paused, do not use the channel, or have unsubscribed. A text that was sent to the same address about the same job within 14 days is not sent again.',
      role: 'operate',
      subject: settingsSubject,
      params: jobParams,
      body: NoteInput,
      record: ({ subject, params, ...by }, parts) =>
        recordAction('send_note', jobItem(subject, params.jobNumber), by, parts),
      hasEffect: ({ created }) => created,
      example: { recipient: 'ann', channel: 'email', text: 'Your order leaves our press on Thursday.' },
      answer: { description: 'The message.', schema: NoteResult },
      problems: ['unprocessable-content'],
    },
    async ({ c, caller, subject: settings, params, body }, parts) => {
      const jobNumber = Number(params.jobNumber);
      const { feed, notifications } = parts;
      const facts = await readNoticeContent(feed, settings, 'note', jobNumber);
      const places = await readJobRecipients(settings, jobNumber, parts);
      if (!facts || !places) return problem(c, 'not-found', { detail: NO_JOB });
      const place = places.find(
        ({ recipient, channel }) => recipient.id === body.recipient && channel === body.channel,
      );
      if (!place)
        return rejected('recipient must be a recipient of the job with an address for the channel.');
      if (place.detail !== null) return rejected(`recipient cannot be sent a note: ${place.detail}`);
      const note = { place, content: { ...facts, text: body.text }, sentBy: toSender(caller) };
      const rendered = await renderNote(settings, note, toUnsubscribeUrl(notifications));
      if ('kind' in rendered) return rendered;
      const { html, subject, text, segments } = rendered;
      const deps = { table: feed.table, history: notifications.history, now: feed.now, newId: randomUUID };
      const outcome = await createNote(deps, settings, note, body);
      const message = {
        ...outcome.message,
        ...(outcome.message.text === null && { subject, text, segments }),
      };
      return { body: { created: outcome.created, message: toMessageResponse(message, caller), html } };
    },
  ),
];

/** Decodes a position in the list of recipients of a job: the name of its last entry, `<recipient> <channel>`. */
function decodeJobRecipient(text: string): string | undefined {
  const name = decodePageCursor(text);
  return name !== undefined && /^\S+ \S+$/.test(name) ? name : undefined;
}

/** Returns the recipients of a stored job. `undefined`: the job is not stored. */
async function readJobRecipients(
  settings: NotificationSettings,
  jobNumber: number,
  { feed, notifications }: RouteParts,
): Promise<JobRecipient[] | undefined> {
  const found = await readJob(feed, settings, jobNumber);
  if (!found) return undefined;
  const deps = { table: feed.table, now: feed.now(), available: notifications.channels };
  return findJobRecipients(deps, settings, found.job);
}

const toResponse = ({ recipient, ...place }: JobRecipient, caller: Caller) => ({
  ...place,
  recipient: recipient.id,
  address: formatAddress(caller, place.address),
});

/** Returns who sends a note: the user, or the API key. */
const toSender = ({ keyId, name, user }: Caller) => ({ id: keyId, name: user?.name ?? name });

/** Renders a note as the sender does, except for the link to unsubscribe. */
async function renderNote(
  { branding, replyTo, account }: NotificationSettings,
  { place: { name, locale, zone, channel }, content }: { place: JobRecipient; content: NoticeContent },
  unsubscribeUrl: string,
): Promise<(Pick<Message, 'subject' | 'text' | 'segments'> & { html: string | null }) | Rejection> {
  const input = { content, branding, replyTo, unsubscribeUrl, recipient: { name, locale, zone } };
  if (channel === 'email') {
    const mail = await messageRenderer.email(input, account);
    return mail.kind === 'failed' ? rejected(mail.reason) : { ...mail.value, segments: null };
  }
  const sms = await messageRenderer.sms(input, account);
  if (sms.kind === 'failed')
    return rejected(`text cannot be sent as an SMS: ${sms.reason.replace(/^\w+: /, '')}.`);
  const { text, segments } = sms.value;
  return { subject: null, text, segments, html: null };
}
