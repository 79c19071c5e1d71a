/** Notification resources as returned by the API. Their records have the same fields, with times as epoch ms. */
import * as z from 'zod';
import { count, type SchemaOutput, textOrNull, timestamp, timestampOrNull } from '../representation.ts';
import {
  channels,
  locales,
  messageKinds,
  messageReasons,
  messageStates,
  sentKinds,
  suppressionReasons,
} from './types.ts';

const describeValues = (of: Readonly<Record<string, string>>) =>
  Object.entries(of)
    .map(([name, what]) => `\`${name}\`: ${what}`)
    .join(' ');
const getKeys = <T extends string>(of: Readonly<Record<T, string>>) => Object.keys(of) as [T, ...T[]];

const revision = count.describe('Revision number. Each change increments it.');
const MASKED = 'Masked for keys with the role `read`.';

/** Kind of message. */
export const Kind = z.enum(getKeys(messageKinds), `must be one of ${getKeys(messageKinds).join(', ')}`);
/** Kind of message, with those that are sent on demand. */
export const SentKindName = z.enum(getKeys(sentKinds), `must be one of ${getKeys(sentKinds).join(', ')}`);
/** Channel of a message. */
export const ChannelName = z.enum(channels, `must be one of ${channels.join(', ')}`);
/** Locale of a message. */
export const LocaleName = z.enum(locales, `must be one of ${locales.join(', ')}`);

const kind = Kind.describe('Kind of message, as in `Message`.');
const channel = ChannelName.describe('Channel of the message.');
const locale = LocaleName.describe('Locale: language and date format.');
const zone = z.string().describe('IANA name of a time zone, for example `Pacific/Auckland`.');

/** Notification settings of an account. */
export const NotificationSettings = z
  .object({
    enabled: z.boolean().describe('Whether customers of the account are notified.'),
    since: timestampOrNull.describe(
      'Time at which notifications were enabled. Customers are not notified of earlier changes. `null`: never.',
    ),
    dryRun: z.boolean().describe('`true`: messages are created but not sent. Their state is `dry_run`.'),
    ownUser: z
      .boolean()
      .describe(
        "Whether the user of the API credentials is notified too, according to the user's settings in the ordering API. This user gets SMS only about dispatches.",
      ),
    windowSeconds: count.describe(
      'Length of the notification window, in seconds. Changes of an order group within this time after the first change are combined into one message.',
    ),
    maxAgeHours: count.describe(
      'Maximum age of a change, in hours, counted from the dispatch date or, for other changes, from the observation. Customers are not notified of older changes. A delayed SMS can still be sent within an hour after the quiet hours.',
    ),
    locale: locale.describe('Locale of recipients without their own.'),
    zone: zone.describe('Time zone of recipients without their own.'),
    branding: z.object({
      name: z.string().describe('Sender name in messages.'),
      logoUrl: textOrNull.describe('HTTPS URL of a logo. `null`: the sender name is displayed instead.'),
      color: z.string().describe('Color as `#rrggbb`.'),
      website: textOrNull.describe('URL to which the sender name or the logo links.'),
      footer: textOrNull.describe('Footer of e-mails.'),
    }),
    replyTo: textOrNull.describe('Reply-to address of e-mails.'),
    sms: z.object({
      enabled: z.boolean().describe('Whether SMS are sent.'),
      senderId: textOrNull.describe('Sender id of SMS, in countries that support sender ids.'),
      monthlySegments: count.describe(
        'Maximum number of SMS segments per calendar month (UTC). Further SMS are not sent. All accounts of a region together have a maximum too.',
      ),
      quietHours: z
        .object({ from: z.string(), to: z.string() })
        .nullable()
        .describe('Hours in which SMS wait (`HH:MM`, in the time zone of the recipient).'),
    }),
    revision,
    channels: z.array(ChannelName).describe('Channels available in this installation.'),
    warnings: z.array(z.string()).describe('Warnings about the settings.'),
  })
  .meta({ id: 'NotificationSettings' });

export type NotificationSettings = SchemaOutput<typeof NotificationSettings>;

/** A recipient of notifications. */
export const Recipient = z
  .object({
    id: z.string().describe('Id of the recipient, unique in its account.'),
    orderGroup: textOrNull.describe('Only about jobs of this order group. `null`: no restriction.'),
    orderNumber: textOrNull.describe('Only about jobs with this order number. `null`: no restriction.'),
    jobNumber: z.int().nullable().describe('Only about this job. `null`: no restriction.'),
    name: textOrNull.describe('Name used in messages.'),
    email: textOrNull.describe(`E-mail address. ${MASKED}`),
    mobile: textOrNull.describe(`Mobile number, for example \`+64211234567\`. ${MASKED}`),
    locale: locale.nullable().describe('Locale. `null`: that of the account.'),
    zone: zone.nullable().describe('Time zone. `null`: that of the account.'),
    channels: z.array(channel).describe('Channels by which the recipient is notified.'),
    kinds: z.array(kind).describe('Kinds of messages that the recipient receives.'),
    paused: z.boolean().describe('Whether notifications to the recipient are paused.'),
    source: z
      .enum(['manual', 'upstream'])
      .describe('`upstream`: created from the settings of the API user in the ordering API.'),
    createdAt: timestamp,
    revision,
  })
  .meta({ id: 'Recipient' });

export type Recipient = SchemaOutput<typeof Recipient>;

/** A message. */
export const Message = z
  .object({
    id: z
      .string()
      .describe(
        'Id of the message. Sorted by id, messages are in the order of the job changes that they report.',
      ),
    kind: SentKindName.describe(describeValues(sentKinds)),
    orderGroup: textOrNull,
    jobs: z.array(z.int()).describe('Job numbers of the jobs in the message.'),
    channel: channel
      .nullable()
      .describe('Channel. `null`: no message was created, for the reason in `reason`.'),
    to: z
      .object({
        recipient: z.string().describe('Id of the recipient: the most specific one with this address.'),
        name: textOrNull,
        address: z.string().describe(`E-mail address or mobile number. ${MASKED}`),
        locale,
        zone,
      })
      .nullable()
      .describe('Recipient. `null`: no message was created.'),
    state: z
      .enum(getKeys(messageStates), `must be one of ${getKeys(messageStates).join(', ')}`)
      .describe(describeValues(messageStates)),
    reason: z
      .enum(getKeys(messageReasons))
      .nullable()
      .describe(`Reason why the message failed or was not sent. ${describeValues(messageReasons)}`),
    detail: textOrNull.describe('Details of the reason.'),
    createdAt: timestamp,
    dueAt: timestampOrNull.describe('Scheduled time.'),
    sentAt: timestampOrNull,
    attempts: count.describe('Number of attempts.'),
    repeats: count.describe('Number of times the e-mail was sent again because its outcome was unknown.'),
    providerId: textOrNull.describe('Id assigned by the mail server or SMS service.'),
    subject: textOrNull.describe('Subject, as sent or rendered.'),
    text: textOrNull.describe('Text without HTML, as sent or rendered.'),
    segments: count.nullable().describe('Number of SMS segments. `null` for e-mails.'),
    sentBy: z
      .object({
        id: z.string().describe('Id of the API key, or of the user.'),
        name: textOrNull.describe('Name of the user or the key.'),
      })
      .nullable()
      .describe('Sender of a note. `null`: not a note.'),
  })
  .meta({ id: 'Message' });

export type Message = SchemaOutput<typeof Message>;

/** A recipient of a job by one channel. */
export const JobRecipient = z
  .object({
    recipient: z.string().describe('Id of the recipient.'),
    name: textOrNull,
    channel,
    address: z.string().describe(`E-mail address or mobile number. ${MASKED}`),
    locale,
    zone,
    kinds: z.array(kind).describe('Kinds of event messages that the recipient receives.'),
    reason: z
      .enum(getKeys(messageReasons))
      .nullable()
      .describe('Why no note can be sent by this channel. `null`: a note can be sent.'),
    detail: textOrNull.describe('Explanation of `reason`.'),
    notBefore: timestampOrNull.describe(
      'Earliest time at which an SMS is sent: the end of the quiet hours. `null`: a note can be sent now.',
    ),
  })
  .meta({ id: 'JobRecipient' });

export type JobRecipient = SchemaOutput<typeof JobRecipient>;

/** A message that is not created yet, because its window is open. */
export const Upcoming = z
  .object({
    kind,
    dueAt: timestamp.describe('Time at which the message is due.'),
    jobs: z.array(z.int()).describe('Job numbers of the jobs in the upcoming message.'),
  })
  .meta({ id: 'UpcomingMessage' });

export type Upcoming = SchemaOutput<typeof Upcoming>;

const place = { kind, channel, locale };
const custom = z.boolean().describe('Whether the template is a custom template of the account.');
const changedAt = timestampOrNull.describe('Time of the last change. `null` for a default template.');

/** An entry in the list of templates. */
export const ListedTemplate = z.object({ ...place, custom, changedAt }).meta({ id: 'ListedTemplate' });

/** A template. */
export const Template = z
  .object({
    ...place,
    custom,
    changedAt,
    template: z.record(z.string(), z.string()).describe('Template. Absent fields have default values.'),
  })
  .meta({ id: 'Template' });

/** A rendered message. */
export const Preview = z
  .object({
    ...place,
    zone,
    jobNumber: z.int().nullable().describe('Number of the job. `null`: the message contains sample data.'),
    custom: z.boolean().describe('Whether the custom template of the account was used.'),
    subject: textOrNull.describe('Subject of an e-mail. `null` for an SMS.'),
    html: textOrNull.describe('HTML of an e-mail. `null` for an SMS.'),
    text: z.string(),
    segments: count.nullable().describe('Number of SMS segments. `null` for an e-mail.'),
    encoding: z.enum(['GSM-7', 'UCS-2']).nullable().describe('Encoding of an SMS. `null` for an e-mail.'),
  })
  .meta({ id: 'MessagePreview' });

/** Result of an import. */
export const ImportReport = z
  .object({
    created: count.describe('Number of rows that created a recipient.'),
    updated: count.describe('Number of rows that updated a recipient.'),
    unchanged: count.describe('Number of rows that changed nothing.'),
    invalidRows: z
      .array(
        z.object({
          line: z.int().describe('First line of the row. The header is line 1.'),
          field: textOrNull.describe('Name of the invalid column. `null`: the whole row.'),
          reason: z.string().describe('Explanation of the error.'),
        }),
      )
      .describe('Invalid rows, which were skipped.'),
  })
  .meta({ id: 'ImportReport' });
export type ImportReport = SchemaOutput<typeof ImportReport>;

/** A suppressed address. */
export const Suppression = z
  .object({
    id: z.string().describe('Id of the suppression.'),
    channel,
    address: textOrNull.describe(
      'Masked address. `null`: only a hash is stored, because the recipient unsubscribed with a link.',
    ),
    reason: z.enum(suppressionReasons).describe('Reason, as in `Message`.'),
    since: timestamp,
    reasons: z
      .array(z.object({ reason: z.enum(suppressionReasons), since: timestamp }))
      .describe('All reasons for the suppression.'),
  })
  .meta({ id: 'Suppression' });

export type Suppression = SchemaOutput<typeof Suppression>;
