/** Notification resources as returned by the API. Their records have the same fields, with times as epoch ms. */
import * as z from 'zod';
import { count, type RecordOf, timestamp } from '../representation.ts';
import {
  channels,
  locales,
  messageKinds,
  messageReasons,
  messageStates,
  suppressionReasons,
} from './types.ts';

const describeValues = (of: Readonly<Record<string, string>>) =>
  Object.entries(of)
    .map(([name, what]) => `\`${name}\`: ${what}`)
    .join(' ');
const getKeys = <T extends string>(of: Readonly<Record<T, string>>) => Object.keys(of) as [T, ...T[]];

const suppressionDescriptions = Object.fromEntries(
  suppressionReasons.map((reason) => [reason, messageReasons[reason]]),
);

const revision = count.describe('Revision, incremented with each change. Value of the `ETag`.');
const MASKED = 'Masked for keys with the role `read`.';

/** Kind of message. */
export const Kind = z.enum(getKeys(messageKinds), `must be one of ${getKeys(messageKinds).join(', ')}`);
/** Channel of a message. */
export const ChannelName = z.enum(channels, `must be one of ${channels.join(', ')}`);
/** Locale of a message. */
export const LocaleName = z.enum(locales, `must be one of ${locales.join(', ')}`);

const kind = Kind.describe(describeValues(messageKinds));
const channel = ChannelName.describe('Channel of the message.');
const locale = LocaleName.describe('Locale: language and date format.');
const zone = z.string().describe('IANA name of a time zone, for example `Pacific/Auckland`.');

/** Notification settings of an account. */
export const NotificationSettings = z
  .object({
    enabled: z.boolean().describe('Whether customers of the account are notified.'),
    since: timestamp
      .nullable()
      .describe(
        'Time since which notifications are enabled. Earlier changes are not sent. `null` if never enabled.',
      ),
    dryRun: z
      .boolean()
      .describe('`true`: messages are processed but not sent; they end in the state `dry_run`.'),
    ownUser: z
      .boolean()
      .describe(
        "Also notify the user to whom the credentials belong in the ordering API, according to that user's notification settings there. SMS only about dispatches.",
      ),
    windowSeconds: count.describe(
      'Window in which events of an order group are combined into one message, in seconds between the times of the events.',
    ),
    maxAgeHours: count.describe(
      'Changes older than this (hours) are not sent. A dispatch counts from its date, any other change from its observation.',
    ),
    locale: locale.describe('Locale of recipients without their own.'),
    zone: zone.describe('Time zone of recipients without their own.'),
    branding: z.object({
      name: z.string().describe('Sender name in messages.'),
      logoUrl: z.string().nullable().describe('HTTPS URL of a logo. `null`: the name as text.'),
      color: z.string().describe('Color as `#rrggbb`.'),
      website: z.string().nullable().describe('URL that the name or the logo links to.'),
      footer: z.string().nullable().describe('Footer of e-mails.'),
    }),
    replyTo: z.string().nullable().describe('Reply-to address of e-mails.'),
    sms: z.object({
      enabled: z.boolean().describe('Whether SMS are sent.'),
      senderId: z.string().nullable().describe('Sender id of SMS, where the country supports it.'),
      monthlySegments: count.describe(
        'Maximum number of SMS segments per calendar month (UTC). Further SMS are not sent.',
      ),
      quietHours: z
        .object({ from: z.string(), to: z.string() })
        .nullable()
        .describe(
          'Hours without SMS (`HH:MM`, in the time zone of the recipient). SMS are delayed until the end.',
        ),
    }),
    revision,
    channels: z
      .array(ChannelName)
      .describe('Channels available in this installation. Empty: notifications are not configured.'),
    warnings: z.array(z.string()).describe('Warnings about the settings.'),
  })
  .meta({ id: 'NotificationSettings' });

export type NotificationSettings = RecordOf<typeof NotificationSettings>;

/** A recipient of notifications. */
export const Recipient = z
  .object({
    id: z.string().describe('Id of the recipient, unique in its account.'),
    orderGroup: z.string().nullable().describe('Only jobs of this order group. `null`: not restricted.'),
    orderNumber: z.string().nullable().describe('Only jobs with this order number. `null`: not restricted.'),
    jobNumber: z.int().nullable().describe('Only this job. `null`: not restricted.'),
    name: z.string().nullable().describe('Name used in messages.'),
    email: z.string().nullable().describe(`E-mail address. ${MASKED}`),
    mobile: z.string().nullable().describe(`Mobile number, for example \`+64211234567\`. ${MASKED}`),
    locale: locale.nullable().describe('Locale. `null`: the locale of the account.'),
    zone: zone.nullable().describe('Time zone. `null`: the time zone of the account.'),
    channels: z.array(channel).describe('Channels by which the recipient is notified.'),
    kinds: z.array(kind).describe('Kinds of messages that the recipient receives.'),
    paused: z.boolean().describe('Whether notifications to the recipient are paused.'),
    source: z
      .enum(['manual', 'upstream'])
      .describe('`upstream`: created from the settings of the API user upstream.'),
    createdAt: timestamp,
    revision,
  })
  .meta({ id: 'Recipient' });

export type Recipient = RecordOf<typeof Recipient>;

/** A message. */
export const Message = z
  .object({
    id: z.string().describe('Id of the message. Ids sort by the time of the underlying events.'),
    kind,
    orderGroup: z.string().nullable(),
    jobs: z.array(z.int()).describe('Numbers of the jobs in the message.'),
    channel: channel.nullable().describe('Channel. `null`: no message was created; see `reason`.'),
    to: z
      .object({
        recipient: z
          .string()
          .describe('Id of the recipient. If several have the same address: the first of them.'),
        name: z.string().nullable(),
        address: z.string().describe(`E-mail address or mobile number. ${MASKED}`),
        locale,
        zone,
      })
      .nullable()
      .describe('Recipient of the message.'),
    state: z
      .enum(getKeys(messageStates), `must be one of ${getKeys(messageStates).join(', ')}`)
      .describe(describeValues(messageStates)),
    reason: z
      .enum(getKeys(messageReasons))
      .nullable()
      .describe(`Reason why the message was not sent or failed. ${describeValues(messageReasons)}`),
    detail: z.string().nullable().describe('Details of the reason.'),
    createdAt: timestamp,
    dueAt: timestamp.nullable().describe('Scheduled time.'),
    sentAt: timestamp.nullable(),
    attempts: count.describe('Number of attempts.'),
    repeats: count.describe('Number of times an e-mail was sent again because its outcome was unknown.'),
    providerId: z.string().nullable().describe('Id assigned by the mail server or SMS service.'),
    subject: z.string().nullable().describe('Subject, as sent or rendered.'),
    text: z.string().nullable().describe('Text without HTML, as sent or rendered.'),
    segments: count.nullable().describe('Number of SMS segments. `null` for e-mails.'),
  })
  .meta({ id: 'Message' });

export type Message = RecordOf<typeof Message>;

/** A message that is not created yet, because its window is open. */
export const Upcoming = z
  .object({
    kind,
    dueAt: timestamp.describe('End of the window.'),
    jobs: z.array(z.int()).describe('Numbers of the jobs in the upcoming message.'),
  })
  .meta({ id: 'UpcomingMessage' });

export type Upcoming = RecordOf<typeof Upcoming>;

const place = { kind, channel, locale };
const custom = z.boolean().describe('Whether it is a custom template of the account.');
const changedAt = timestamp.nullable().describe('Time of the last change. `null` for a default template.');

/** An entry in the list of templates. */
export const ListedTemplate = z.object({ ...place, custom, changedAt }).meta({ id: 'ListedTemplate' });

/** A template. */
export const Template = z
  .object({
    ...place,
    custom,
    changedAt,
    template: z
      .record(z.string(), z.string())
      .describe('Template, as accepted by `PUT`. Absent parts have their defaults.'),
  })
  .meta({ id: 'Template' });

/** A rendered message. */
export const Preview = z
  .object({
    ...place,
    zone,
    jobNumber: z.int().nullable().describe('Number of the job. `null`: sample data.'),
    custom: z.boolean().describe('Whether the custom template of the account was used.'),
    subject: z.string().nullable().describe('Subject of an e-mail. `null` for an SMS.'),
    html: z.string().nullable().describe('HTML of an e-mail. `null` for an SMS.'),
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
    unchanged: count.describe('Number of rows without a change.'),
    invalidRows: z
      .array(
        z.object({
          line: z.int().describe('First line of the row, from 1, including the header line.'),
          field: z.string().nullable().describe('Column. `null`: the whole row.'),
          reason: z.string().describe('What is wrong and what is accepted.'),
        }),
      )
      .describe('Invalid rows, which were skipped.'),
  })
  .meta({ id: 'ImportReport' });
export type ImportReport = RecordOf<typeof ImportReport>;

/** A suppressed address. */
export const Suppression = z
  .object({
    id: z.string().describe('Id of the suppression.'),
    channel,
    address: z.string().nullable().describe('Masked address.'),
    reason: z.enum(suppressionReasons).describe(describeValues(suppressionDescriptions)),
    since: timestamp,
    reasons: z
      .array(z.object({ reason: z.enum(suppressionReasons), since: timestamp }))
      .describe('All reasons for the suppression.'),
  })
  .meta({ id: 'Suppression' });

export type Suppression = RecordOf<typeof Suppression>;
