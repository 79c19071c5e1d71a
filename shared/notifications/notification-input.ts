/**
 * Input schemas of notifications: settings, recipients, templates, suppressions. Has no Node dependency, because the dashboard validates
 * with it too. Every message is the rest of a sentence that begins with the field's name.
 * Rules that need more than the input are checked elsewhere: mobile numbers, and whether a template renders.
 */
import * as z from 'zod';
import { flag, id, integerFrom, jobNumber, line, lines, nullableFields } from '../validation.ts';
import { checkEmail } from './email-address.ts';
import { channels, DEFAULT_KINDS, locales, type MessageKind, messageKinds, OWN_USER } from './types.ts';

/** An IANA time zone. */
export const zone = z
  .string('must be the name of a time zone')
  .refine(isZone, 'must be the IANA name of a time zone, such as Europe/London')
  .describe('IANA name of a time zone, such as `Europe/London`.');

/** A language that has templates. */
export const locale = z
  .enum(locales, `must be one of ${locales.join(', ')}`)
  .describe('Locale: language and date format.');

/** An e-mail address. The output is in the form that is stored and sent. */
export const email = z.string('must be an e-mail address').transform((text, context) => {
  const checked = checkEmail(text);
  if (checked.kind === 'checked') return checked.address;
  context.addIssue({ code: 'custom', message: checked.rule });
  return z.NEVER;
});

const httpsUrl = z
  .string('must be an https URL')
  .max(2000, 'must be at most 2000 characters')
  .refine(isHttpsUrl, 'must be an https URL without a user and password');

const time = z
  .string('must be a time such as 21:00')
  .regex(/^([01]\d|2[0-3]):[0-5]\d$/, 'must be a time from 00:00 to 23:59');

const quietHours = z
  .strictObject({ from: time, to: time })
  .refine(({ from, to }) => from !== to, 'must have different times `from` and `to`')
  .describe(
    'Hours in which SMS wait, in the time zone of the recipient. `from` can be later than `to`. `null`: none. Default: 21:00 to 08:00.',
  );

const between = (least: number, most: number, unit: string) =>
  integerFrom(least, most, `must be an integer number of ${unit} from ${least} to ${most}`);
/** A length and a pattern without lookahead, so that RE2 accepts it. */
const SENDER_RULE = 'must be 1 to 11 letters and digits, with at least one letter';

/** Notification settings of an account. Absent fields get their defaults. */
export const SettingsInput = z
  .strictObject({
    enabled: flag.describe('Whether customers are notified.'),
    dryRun: flag
      .default(false)
      .describe('`true`: messages are created but not sent. Their state is `dry_run`.'),
    ownUser: flag
      .default(false)
      .describe(
        "Whether the user of the API credentials is notified too, according to the user's settings in the ordering API. This user gets SMS only about dispatches.",
      ),
    windowSeconds: between(0, 3600, 'seconds')
      .default(300)
      .describe(
        'Length of the notification window, in seconds. Changes of an order group within this time after the first change are combined into one message.',
      ),
    maxAgeHours: between(1, 168, 'hours')
      .default(24)
      .describe(
        'Maximum age of a change, in hours, counted from the dispatch date or, for other changes, from the observation. Customers are not notified of older changes.',
      ),
    locale: locale
      .optional()
      .describe('Locale of recipients without their own. The default depends on the region.'),
    zone: zone
      .optional()
      .describe('Time zone of recipients without their own. The default depends on the region.'),
    branding: z
      .strictObject({
        name: line(100).describe('Sender name in messages.'),
        logoUrl: httpsUrl
          .nullable()
          .default(null)
          .describe('HTTPS URL of a logo. `null`: the sender name is displayed instead.'),
        color: z
          .string('must be a colour such as #1a73e8')
          .regex(/^#[0-9a-fA-F]{6}$/, 'must be a colour such as #1a73e8')
          .default('#1f2937'),
        website: httpsUrl.nullable().default(null),
        footer: lines(500).nullable().default(null).describe('Footer of e-mails.'),
      })
      .describe('Branding of messages.'),
    replyTo: email.nullable().default(null).describe('Reply-to address of e-mails.'),
    sms: z
      .strictObject({
        enabled: flag.default(false).describe('Whether SMS are sent. Default: `false`.'),
        senderId: z
          .string('must be 1 to 11 letters and digits')
          .regex(/^[A-Za-z0-9]*[A-Za-z][A-Za-z0-9]*$/, SENDER_RULE)
          .max(11, SENDER_RULE)
          .nullable()
          .default(null)
          .describe(
            'Sender id of SMS, in countries that support sender ids. `null`: that of the installation.',
          ),
        monthlySegments: between(0, 1_000_000, 'segments')
          .default(1000)
          .describe(
            'Maximum number of SMS segments per calendar month (UTC). Further SMS are not sent. All accounts of a region together have a maximum too.',
          ),
        quietHours: quietHours.nullable().default({ from: '21:00', to: '08:00' }),
      })
      .prefault({}),
  })
  .meta({ id: 'NotificationSettingsInput' });
export type SettingsInput = z.infer<typeof SettingsInput>;

export const kindNames = Object.keys(messageKinds) as [MessageKind, ...MessageKind[]];

const once = <T>(values: readonly T[]): T[] => [...new Set(values)];

/** Fields of a recipient. Whether a mobile number in national form is valid depends on the region. */
const fields = {
  name: line(200).describe('Name used in messages.'),
  email,
  mobile: z
    .string('must be a mobile number')
    .trim()
    .min(1, 'must not be empty')
    .max(40, 'must be at most 40 characters')
    .describe(
      'Mobile number in international format (`+64 21 123 4567`) or in the national format of the region.',
    ),
  locale,
  zone,
  channels: z
    .array(z.enum(channels, `must be one of ${channels.join(', ')}`), 'must be a list of channels')
    .min(1, 'must have at least one channel; to stop notifications, set `paused`')
    .max(10, 'must not repeat channels')
    .transform(once)
    .describe('Channels. Default: the channels for which the recipient has an address.'),
  kinds: z
    .array(z.enum(kindNames, `must be one of ${kindNames.join(', ')}`), 'must be a list of kinds')
    .min(1, 'must have at least one kind; to stop notifications, set `paused`')
    .max(20, 'must not repeat kinds')
    .transform(once)
    .describe(`Kinds of messages. Default: ${DEFAULT_KINDS.join(' and ')}.`),
  paused: flag.describe('Whether notifications to the recipient are paused.'),
  orderGroup: z
    .string('must be the name of an order group')
    .min(1, 'must not be empty')
    .max(1000, 'must be at most 1000 characters')
    .describe('Only about jobs of this order group.'),
  orderNumber: z
    .string('must be an order number')
    .min(1, 'must not be empty')
    .max(1000, 'must be at most 1000 characters')
    .describe('Only about jobs with this order number.'),
  jobNumber: jobNumber.describe('Only about this job.'),
};

/**
 * A new recipient: at least one address, and at most one of orderGroup, orderNumber and jobNumber. With none of them: all jobs of the
 * account.
 */
export const NewRecipient = z
  .strictObject({
    id: id
      .refine((value) => value !== OWN_USER, `must not be ${OWN_USER}, which is reserved for the API user`)
      .optional()
      .describe('Id of the recipient. Cannot be changed. Default: generated.'),
    ...nullableFields(fields),
    paused: fields.paused.default(false),
  })
  .meta({ id: 'NewRecipient' });

/** A change of a recipient: absent fields are unchanged, `null` clears a field. The scope is replaced as a whole. */
export const RecipientUpdate = z
  .strictObject({ ...nullableFields(fields), paused: fields.paused.optional() })
  .meta({ id: 'RecipientUpdate' });
export type RecipientUpdate = z.infer<typeof RecipientUpdate>;

/** A person's request to receive nothing more. */
export const NewSuppression = z
  .strictObject({
    channel: z.enum(channels, `must be one of ${channels.join(', ')}`),
    address: z
      .string('must be an e-mail address or a mobile number')
      .trim()
      .min(1, 'must not be empty')
      .max(320, 'must be at most 320 characters')
      .describe('E-mail address or mobile number.'),
  })
  .meta({ id: 'NewSuppression' });

const template = (most: number) =>
  z.string('must be text').max(most, `must be at most ${most} characters`).optional();

/** Content of a template. */
export const TemplateInput = z
  .strictObject({
    subject: template(500).describe('Subject of an e-mail, one line.'),
    preheader: template(1000).describe('Preview text of an e-mail in the inbox.'),
    heading: template(1000).describe('Heading of an e-mail. Default: the subject.'),
    intro: template(5000).describe('Text of an e-mail above the parcels. Empty lines separate paragraphs.'),
    outro: template(5000).describe('Text of an e-mail below the parcels. Empty: none.'),
    html: template(50_000).describe('Complete HTML of an e-mail, instead of the default layout.'),
    text: template(50_000).describe('Text of an SMS, or plain text of an e-mail, instead of the default.'),
  })
  .meta({ id: 'TemplateInput' });

/** Returns whether the text is a time zone name. Offsets are rejected: they do not observe daylight saving time. */
function isZone(name: string): boolean {
  if (!/^[A-Za-z][A-Za-z0-9_+-]*(?:\/[A-Za-z0-9_+-]+)*$/.test(name)) return false;
  try {
    new Intl.DateTimeFormat('en', { timeZone: name });
    return true;
  } catch {
    return false;
  }
}

function isHttpsUrl(text: string): boolean {
  const url = URL.parse(text);
  return (
    url?.protocol === 'https:' && url.username === '' && url.password === '' && !/[\s\p{Cc}]/u.test(text)
  );
}
