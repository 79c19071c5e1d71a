/** Alert rules in requests and responses. The dashboard and the CLI use it too. */
import * as z from 'zod';
import { zone } from '../notifications/notification-input.ts';
import { count, textOrNull, timestamp, timestampOrNull } from '../representation.ts';
import { existingId, flag, id, integerFrom, line, nullableFields } from '../validation.ts';

/** Conditions of rules: the unit of their value and threshold, and what the value is. */
export const conditions = {
  late_jobs: {
    name: 'Late jobs',
    unit: 'jobs',
    about: 'Number of open, undispatched jobs past their due time.',
  },
  account_not_observed: {
    name: 'Account not observed',
    unit: 'minutes',
    about: 'Minutes since the last complete poll. Paused accounts do not count.',
  },
  endpoint_failing: {
    name: 'Endpoint failing',
    unit: 'minutes',
    about:
      'Minutes for which an endpoint has been failing without interruption. Disabled endpoints count, paused ones do not.',
  },
  dead_events: {
    name: 'Dead events',
    unit: 'events',
    about: 'Number of dead events: at most 100 of each of the 100 endpoints with the most recent failures.',
  },
  notifications_delayed: {
    name: 'Notifications delayed',
    unit: 'minutes',
    about:
      'Minutes for which a customer notification has been due and not sent. Cannot be limited to accounts.',
  },
  messages_failed: {
    name: 'Messages failed',
    unit: 'messages',
    about:
      'Number of customer messages of the last 24 hours that failed, bounced, were marked as spam, or have an unknown outcome. At most 500 are counted.',
  },
} as const;
/** Name of a condition. */
export type Condition = keyof typeof conditions;
const conditionNames = Object.keys(conditions) as [Condition, ...Condition[]];

/** Days of the week, Monday first. */
export const weekdays = ['mon', 'tue', 'wed', 'thu', 'fri', 'sat', 'sun'] as const;

const time = z
  .string('must be a time such as 21:00')
  .regex(/^([01]\d|2[0-3]):[0-5]\d$/, 'must be a time such as 21:00');

/** Times in which no message is sent. */
export const QuietHours = z
  .strictObject({
    zone,
    from: time.describe('Local time of the beginning.'),
    to: time.describe('Local time of the end, on the next day if not after `from`.'),
    days: z
      .array(z.enum(weekdays, `must be one of ${weekdays.join(', ')}`), 'must be a list of days')
      .min(1, 'must name at least one day')
      .max(7, 'must name each day once')
      .describe('Days on which the quiet hours begin.'),
    action: z
      .enum(['defer', 'drop'], 'must be defer or drop')
      .describe(
        '`defer`: after the quiet hours, one message reports the state if it differs from the last report. `drop`: changes during the quiet hours are not reported.',
      ),
  })
  .meta({ id: 'AlertQuietHours' });
export type QuietHours = z.infer<typeof QuietHours>;

/** Kinds of targets. */
export const targetKinds = ['email', 'slack', 'teams', 'webhook'] as const;

const URL_KINDS = z.enum(['slack', 'teams', 'webhook']);
const target = z
  .discriminatedUnion(
    'kind',
    [
      z.strictObject({
        kind: z.literal('email'),
        to: z
          .array(
            z.string('must be an e-mail address').max(320, 'must be an e-mail address'),
            'must be a list of e-mail addresses',
          )
          .min(1, 'must name at least one address')
          .max(10, 'must name at most 10 addresses')
          .describe('E-mail addresses.'),
      }),
      z.strictObject({
        kind: URL_KINDS,
        url: z
          .string('must be a URL')
          .max(2000, 'must be at most 2000 characters')
          .describe('URL to which messages are posted. No response contains it.'),
      }),
    ],
    'must be {"kind": "email", "to": [addresses]} or {"kind": "slack" | "teams" | "webhook", "url": URL}',
  )
  .describe(
    'Recipient of the messages. `slack`: the URL of an incoming webhook. `teams`: the URL of a workflow that receives webhook requests. `webhook`: a URL that accepts JSON.',
  );
export type AlertTarget = z.infer<typeof target>;

const fields = {
  name: line(100).describe('Name of the rule. Each message contains it.'),
  condition: z
    .enum(conditionNames, `must be one of ${conditionNames.join(', ')}`)
    .describe(
      [
        'What is measured. For a condition in minutes, the longest time of all measured accounts or endpoints counts.\n',
        ...Object.entries(conditions).map(([key, { about }]) => `- \`${key}\`: ${about}`),
      ].join('\n'),
    ),
  threshold: integerFrom(0, 1_000_000).describe('Threshold. The rule fires if the value is greater.'),
  accounts: z
    .array(existingId, 'must be a list of accounts')
    .min(1, 'must name at least one account')
    .max(1000, 'must name at most 1000 accounts')
    .describe(
      'Ids of the accounts to which the rule is limited. An endpoint counts only if all its accounts are among them.',
    ),
  forMinutes: integerFrom(0, 1440).describe(
    'Time for which the value must be above the threshold, in minutes. Default: 0.',
  ),
  repeatMinutes: integerFrom(5, 10_080).describe(
    'Interval of reminders while the rule fires, in minutes. Default: no reminders.',
  ),
  notifyResolved: flag.describe('Whether a message is sent when the rule no longer fires. Default: `true`.'),
  quietHours: QuietHours.describe('Times in which nothing is sent. Default: none.'),
  enabled: flag.describe('Whether the rule is evaluated. Default: `true`.'),
  target,
};

/** A new rule. */
export const NewAlertRule = z.strictObject({
  ...z.object(fields).partial().shape,
  ...{ name: fields.name, condition: fields.condition, threshold: fields.threshold, target },
  id: id.optional().describe('Id of the rule. Default: generated.'),
});

/** A change of a rule. Absent fields stay, `null` resets a field to its default. */
export const AlertRuleUpdate = z
  .strictObject({
    ...nullableFields(fields),
    name: fields.name.optional(),
    condition: fields.condition.optional(),
    threshold: fields.threshold.optional(),
    target: target.optional(),
  })
  .meta({ id: 'AlertRuleUpdate' });

/** A rule with its state, as responses show it. */
export const AlertRule = z
  .object({
    id: z.string().describe('Id of the rule.'),
    region: z.string(),
    name: z.string(),
    condition: z.enum(conditionNames).describe('What is measured.'),
    threshold: count.describe('Threshold. The rule fires if the value is greater.'),
    accounts: z.array(z.string()).nullable().describe('Only these accounts (ids). `null`: all.'),
    forMinutes: count.describe('Time for which the value must be above the threshold, in minutes.'),
    repeatMinutes: count.nullable().describe('Interval of reminders in minutes. `null`: none.'),
    notifyResolved: z.boolean().describe('Whether a message is sent when the rule no longer fires.'),
    quietHours: QuietHours.nullable().describe('Times in which nothing is sent. `null`: none.'),
    enabled: z.boolean(),
    target: z
      .object({
        kind: z.enum(targetKinds),
        to: z
          .array(z.string())
          .nullable()
          .describe(
            'E-mail addresses, masked for keys with the role `read`. `null`: the messages are posted to a URL.',
          ),
        host: textOrNull.describe('Host of the URL. `null`: the messages are sent by e-mail.'),
      })
      .describe('Recipient of the messages.'),
    state: z
      .object({
        status: z
          .enum(['ok', 'pending', 'firing'])
          .describe('`pending`: the value has been above the threshold for less than `forMinutes`.'),
        since: timestampOrNull.describe('Start of the status. `null`: the rule was not evaluated yet.'),
        value: z.number().nullable().describe('Last value. `null`: the value is not known.'),
        sentAt: timestampOrNull.describe('Time of the last message. `null`: none was sent.'),
        problem: textOrNull.describe(
          'Why the last message could not be sent. Jobwire tries again later. `null`: no error.',
        ),
      })
      .describe('State of the rule.'),
    createdAt: timestamp.describe('Creation time.'),
    changedAt: timestamp.describe('Time of the last change.'),
    revision: count.describe('Revision number. Each change increments it.'),
  })
  .meta({ id: 'AlertRule' });

/** Parts of a stored rule. */
export type AlertRuleRecord = Readonly<
  Omit<
    z.infer<typeof AlertRule>,
    'id' | 'region' | 'target' | 'state' | 'createdAt' | 'changedAt' | 'revision'
  >
>;
