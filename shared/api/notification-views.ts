/** What customers are told as it is shown: instants as texts, and addresses whole only for keys that may act on them. */
import * as z from 'zod';
import { maskAddress } from '../notifications/masks.ts';
import {
  channels,
  locales,
  type MessageKind,
  type Message as MessageRecord,
  messageKinds,
  messageReasons,
  messageStates,
  type Recipient as RecipientRecord,
  type NotificationSettings as Settings,
} from '../notifications/model.ts';
import { type Suppression as SuppressionRecord, suppressionReasons } from '../notifications/suppressions.ts';
import type { EmailTemplate, SmsTemplate, TemplatePlace } from '../notifications/templates.ts';
import { roleAllows } from './key-input.ts';
import type { Caller } from './keys.ts';
import { instant, instantText } from './parameters.ts';

const count = z.int().min(0);
const listOf = (of: Readonly<Record<string, string>>) =>
  Object.entries(of)
    .map(([name, what]) => `\`${name}\`: ${what}`)
    .join(' ');
const namesOf = <T extends string>(of: Readonly<Record<T, string>>) => Object.keys(of) as [T, ...T[]];

const whySuppressed = Object.fromEntries(
  suppressionReasons.map((reason) => [reason, messageReasons[reason]]),
);

const revision = count.describe('Counted up with each change; the `ETag` is this.');
const MASKED = 'Without its middle for keys of role `read`.';

/** What a message is about. */
export const Kind = z.enum(namesOf(messageKinds), `must be one of ${namesOf(messageKinds).join(', ')}`);
/** How it goes. */
export const ChannelName = z.enum(channels, `must be one of ${channels.join(', ')}`);
/** In which language. */
export const LocaleName = z.enum(locales, `must be one of ${locales.join(', ')}`);

const kind = Kind.describe(listOf(messageKinds));
const channel = ChannelName.describe('How it goes.');
const locale = LocaleName.describe('Language and country, by which dates are written.');
const zone = z.string().describe('IANA name of a time zone: `Pacific/Auckland`.');

/** The settings of an account. */
export const NotificationSettings = z
  .object({
    enabled: z.boolean().describe('Whether customers of the account are told anything.'),
    since: instant
      .nullable()
      .describe('Since when; what was observed before is not told. Null: it was never enabled.'),
    dryRun: z.boolean().describe('Everything happens but sending: messages end as `dry_run`.'),
    ownUser: z
      .boolean()
      .describe('The user of the credentials is told too, as his settings in the ordering service say.'),
    windowSeconds: count.describe('How much of an order group becomes one message, in time of the events.'),
    maxAgeHours: count.describe('What is older by then is not told.'),
    locale: locale.describe('For recipients without their own.'),
    zone: zone.describe('For recipients without their own.'),
    branding: z.object({
      name: z.string().describe('Who messages seem to come from.'),
      logoUrl: z.string().nullable().describe('An https URL of a picture; null: the name as text.'),
      color: z.string().describe('`#rrggbb`'),
      website: z.string().nullable().describe('Where the name or the picture leads.'),
      footer: z.string().nullable().describe('A line or two at the end of e-mails.'),
    }),
    replyTo: z.string().nullable().describe('Where answers to e-mails go.'),
    sms: z.object({
      enabled: z.boolean().describe('Whether SMS are sent.'),
      senderId: z.string().nullable().describe('Who SMS seem to come from, where a country allows that.'),
      monthlySegments: count.describe('SMS segments in a calendar month (UTC); what is above is not sent.'),
      quietHours: z
        .object({ from: z.string(), to: z.string() })
        .nullable()
        .describe('No SMS in these hours (`HH:MM`, in the zone of the recipient): they wait.'),
    }),
    revision,
    channels: z
      .array(ChannelName)
      .describe('By what the service itself can send; empty: it has no notifications in its configuration.'),
    warnings: z.array(z.string()).describe('What may surprise, in sentences.'),
  })
  .meta({ id: 'NotificationSettings' });

/** Settings as they are shown, with what may surprise. */
export function showSettings(
  settings: Omit<Settings, 'region' | 'account'>,
  served: readonly (typeof channels)[number][],
): z.input<typeof NotificationSettings> {
  const { enabled, dryRun, ownUser, branding, sms } = settings;
  const warnings = [
    ownUser &&
      'ownUser is on: the ordering service may notify its user as well, who is then told of everything twice.',
    enabled && dryRun && 'dryRun is on: nothing is sent.',
    enabled && !served.includes('email') && 'No mail server is set up here: no e-mails are sent.',
    enabled && sms.enabled && !served.includes('sms') && 'No SMS service is set up here: no SMS are sent.',
  ];
  return {
    ...{ enabled, dryRun, ownUser },
    since: settings.since > 0 ? instantText(settings.since) : null,
    windowSeconds: settings.windowSeconds,
    maxAgeHours: settings.maxAgeHours,
    locale: settings.locale,
    zone: settings.zone,
    branding: { ...branding },
    replyTo: settings.replyTo,
    sms: { ...sms, quietHours: sms.quietHours && { ...sms.quietHours } },
    revision: settings.revision,
    channels: [...served],
    warnings: warnings.filter((warning) => warning !== false),
  };
}

/** Somebody who is told. */
export const Recipient = z
  .object({
    id: z.string().describe('Its id; unique in its account.'),
    orderGroup: z.string().nullable().describe('Only of jobs of this order group.'),
    orderNumber: z.string().nullable().describe('Only of jobs with this order number.'),
    jobNumber: z.int().nullable().describe('Only of this job. All three null: of all jobs of the account.'),
    name: z.string().nullable().describe('How to address them.'),
    email: z.string().nullable().describe(`The e-mail address. ${MASKED}`),
    mobile: z.string().nullable().describe(`The mobile number, as in \`+64211234567\`. ${MASKED}`),
    locale: locale.nullable().describe('Null: the account’s.'),
    zone: zone.nullable().describe('Null: the account’s.'),
    channels: z.array(channel).describe('How they are told.'),
    kinds: z.array(kind).describe('Of what they are told.'),
    paused: z.boolean().describe('They are told nothing for the time being.'),
    source: z
      .enum(['people', 'upstream'])
      .describe('`upstream`: made from what the user of the credentials set in the ordering service.'),
    createdAt: instant,
    revision,
  })
  .meta({ id: 'Recipient' });

/** A recipient as it is shown to a key. */
export function showRecipient(recipient: RecipientRecord, caller: Caller): z.input<typeof Recipient> {
  const { id, scope, name, email, mobile, channels, kinds, source, createdAt, revision } = recipient;
  return {
    id,
    orderGroup: scope.for === 'orderGroup' ? scope.orderGroup : null,
    orderNumber: scope.for === 'orderNumber' ? scope.orderNumber : null,
    jobNumber: scope.for === 'job' ? scope.jobNumber : null,
    name,
    email: email && addressFor(caller, email),
    mobile: mobile && addressFor(caller, mobile),
    locale: recipient.locale,
    zone: recipient.zone,
    channels: [...channels],
    kinds: [...kinds],
    paused: recipient.paused,
    source,
    createdAt: instantText(createdAt),
    revision,
  };
}

/** A message. */
export const Message = z
  .object({
    id: z.string().describe('Its id; ids sort by the instant of what messages are about.'),
    kind,
    orderGroup: z.string().nullable(),
    jobs: z.array(z.int()).describe('The numbers of the jobs that it is about.'),
    channel: channel.nullable().describe('Null: it came to no message, `reason` says why.'),
    to: z
      .object({
        recipient: z.string().describe('The id of the recipient; of the first of several with one address.'),
        name: z.string().nullable(),
        address: z.string().describe(`The e-mail address or mobile number. ${MASKED}`),
        locale,
        zone,
      })
      .nullable()
      .describe('To whom it goes.'),
    state: z
      .enum(namesOf(messageStates), `must be one of ${namesOf(messageStates).join(', ')}`)
      .describe(listOf(messageStates)),
    reason: z
      .enum(namesOf(messageReasons))
      .nullable()
      .describe(`Why it was not sent, or came to nothing. ${listOf(messageReasons)}`),
    detail: z.string().nullable().describe('More of that in a sentence.'),
    createdAt: instant,
    dueAt: instant.nullable().describe('When it is to go, or was.'),
    sentAt: instant.nullable(),
    attempts: count.describe('How often it was tried.'),
    repeats: count.describe('How often an e-mail was sent again because nobody knew whether it went.'),
    providerId: z.string().nullable().describe('The id that the mail server or SMS service gave it.'),
    subject: z.string().nullable().describe('As it went, or would have gone.'),
    text: z.string().nullable().describe('As it went, or would have gone, without HTML.'),
    segments: count.nullable().describe('Of an SMS.'),
  })
  .meta({ id: 'Message' });

/** A message as it is shown to a key. */
export function showMessage(message: MessageRecord, caller: Caller): z.input<typeof Message> {
  const { id, kind, orderGroup, jobs, channel, to, state, reason, detail } = message;
  return {
    ...{ id, kind, orderGroup, channel, state, reason, detail },
    jobs: [...jobs],
    to: to && {
      recipient: to.recipient,
      name: to.name,
      address: addressFor(caller, to.address),
      locale: to.locale,
      zone: to.zone,
    },
    createdAt: instantText(message.createdAt),
    dueAt: instantText(message.dueAt),
    sentAt: instantText(message.sentAt),
    attempts: message.attempts,
    repeats: message.repeats,
    providerId: message.providerId,
    // A template of one's own can have the link in either.
    subject: withoutLink(caller, message.subject),
    text: withoutLink(caller, message.text),
    segments: message.segments,
  };
}

/** Whoever has the link to unsubscribe can act for the recipient. */
function withoutLink(caller: Caller, said: string | null): string | null {
  return said && !maySee(caller) ? said.replace(/(\/v1\/unsubscribe\/)[\w.~-]+/g, '$1…') : said;
}

/** A message that is not made yet: its window is open. */
export const Upcoming = z
  .object({
    kind,
    dueAt: instant.describe('When the window is over.'),
    jobs: z.array(z.int()).describe('The numbers of the jobs that it would be about.'),
  })
  .meta({ id: 'UpcomingMessage' });

/** A window as it is shown. */
export function showUpcoming(upcoming: {
  readonly kind: MessageKind;
  readonly dueAt: number;
  readonly jobs: readonly number[];
}): z.input<typeof Upcoming> {
  return { ...upcoming, dueAt: instantText(upcoming.dueAt), jobs: [...upcoming.jobs] };
}

const place = { kind, channel, locale };
const own = z.boolean().describe('Whether it is the account’s own.');
const changedAt = instant.nullable().describe('When it was saved; null for a default one.');

/** For what there is a template. */
export const ListedTemplate = z.object({ ...place, own, changedAt }).meta({ id: 'ListedTemplate' });

/** A template. */
export const Template = z
  .object({
    ...place,
    own,
    changedAt,
    template: z
      .record(z.string(), z.string())
      .describe('As `PUT` takes it; what is not there is as in the default one.'),
  })
  .meta({ id: 'Template' });

/** A template as it is shown; `savedAt` in epoch ms, null: the default one. */
export function showTemplate(
  { kind, channel, locale }: TemplatePlace,
  template: EmailTemplate | SmsTemplate,
  savedAt: number | null,
): z.input<typeof Template> {
  const entries = Object.entries(template).filter(([, text]) => typeof text === 'string');
  return {
    ...{ kind, channel, locale },
    own: savedAt !== null,
    changedAt: instantText(savedAt),
    template: Object.fromEntries(entries),
  };
}

/** What a message would say. */
export const Preview = z
  .object({
    ...place,
    zone,
    jobNumber: z.int().nullable().describe('The job it is about; null: it is made up.'),
    own: z.boolean().describe('By the account’s own template.'),
    subject: z.string().nullable().describe('Of an e-mail.'),
    html: z.string().nullable().describe('Of an e-mail.'),
    text: z.string(),
    segments: count.nullable().describe('Of an SMS.'),
    encoding: z.enum(['GSM-7', 'UCS-2']).nullable().describe('Of an SMS.'),
  })
  .meta({ id: 'MessagePreview' });

/** What an import came to. */
export const ImportReport = z
  .object({
    imported: count.describe('Rows that made a recipient.'),
    changed: count.describe('Rows that changed one.'),
    unchanged: count.describe('Rows that say what was said before.'),
    bad: z
      .array(
        z.object({
          line: z.int().describe('The line where the row begins, from 1, that of the names included.'),
          field: z.string().nullable().describe('The column; null: the row as a whole.'),
          reason: z.string().describe('What is wrong, and what would be right.'),
        }),
      )
      .describe('Rows that are not good, and were left out.'),
  })
  .meta({ id: 'ImportReport' });

/** An address that gets nothing more. */
export const Suppression = z
  .object({
    id: z.string().describe('What it is known by.'),
    channel,
    address: z.string().nullable().describe('As much of the address as is kept of it.'),
    reason: z.enum(suppressionReasons).describe(listOf(whySuppressed)),
    since: instant,
    reasons: z
      .array(z.object({ reason: z.enum(suppressionReasons), since: instant }))
      .describe('All that there are.'),
  })
  .meta({ id: 'Suppression' });

/** A suppression as it is shown. */
export function showSuppression({
  id,
  channel,
  masked,
  reasons,
}: SuppressionRecord): z.input<typeof Suppression> {
  const all = reasons.map(({ reason, since }) => ({ reason, since: instantText(since) }));
  const [told = { reason: 'unsubscribed' as const, since: instantText(0) }] = all;
  return { id, channel, address: masked, ...told, reasons: all };
}

/** Whether a key is shown addresses as they are. */
const maySee = ({ role }: Caller): boolean => roleAllows(role, 'operate');

function addressFor(caller: Caller, address: string): string {
  return maySee(caller) ? address : maskAddress(address);
}
