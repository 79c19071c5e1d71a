/**
 * `jobwire notifications …`, `templates …`, `messages …`, `suppressions …`: notification of customers.
 * One file: the commands share the input of settings and the output of lists.
 */

import { writeFileSync } from 'node:fs';
import {
  ifMatch,
  type Message,
  type NotificationSettings,
  type NotificationSettingsInput,
  type Paths,
  type PreviewRequest,
} from '../client/index.ts';
import { inputs } from '../client/inputs.ts';
import { formatCode } from '../shared/error-codes.ts';
import { type Context, CSV, command, type Flags, limitFlag, UsageError } from './command.ts';
import { readTemplateFile, withId } from './input.ts';
import { type Column, sanitizeLine, toJson } from './output.ts';

const SWITCH = { value: 'on|off', choices: ['on', 'off'] } as const;

/** In place of the address of a suppression. Only the link to unsubscribe has no address. */
const NOT_STORED = 'not stored (unsubscribed by link)';

const TEMPLATE_CHOICES = {
  KIND: inputs['getTemplate.kind'],
  CHANNEL: inputs['getTemplate.channel'],
  LOCALE: inputs['getTemplate.locale'],
} as const;

/** Options of the content of a message. */
const KIND = {
  value: 'KIND',
  about: 'Kind of message',
  choices: inputs['PreviewRequest.kind'],
  required: true,
} as const;
const CONTENT = {
  locale: {
    value: 'LOCALE',
    about: 'Locale. Default: that of the recipient or the account',
    choices: inputs['PreviewRequest.locale'],
  },
  zone: { value: 'ZONE', about: 'Time zone. Default: that of the recipient or the account' },
  job: {
    value: 'NUMBER',
    about: 'Job number. Default: a sample job',
    range: inputs['PreviewRequest.jobNumber'],
    field: 'jobNumber',
  },
} as const satisfies Flags;

/** Fields of the settings that the API returns but does not accept. */
const READ_ONLY: Readonly<
  Record<Exclude<keyof NotificationSettings, keyof NotificationSettingsInput>, true>
> = { channels: true, revision: true, since: true, warnings: true };

const STATE_STYLE: Record<string, 'green' | 'red' | 'yellow' | undefined> = {
  sent: 'green',
  failed: 'red',
  bounced: 'red',
  complained: 'red',
  unknown: 'red',
  suppressed: 'yellow',
  dry_run: 'yellow',
};

export const notifications = {
  'templates send-test': command({
    about: 'Sends a test e-mail of a template.',
    more: 'ADDRESS must be the reply-to address of the notification settings, or the address of a recipient who gets messages about all jobs of the account. The subject begins with [Test].',
    args: ['ACCOUNT', 'ADDRESS'],
    fields: { ADDRESS: 'to' },
    flags: {
      kind: KIND,
      ...CONTENT,
      recipient: { value: 'ID', about: 'Recipient whose name, locale and zone are used' },
      template: {
        value: 'FILE',
        about: 'JSON file of a template to render instead of the current one. Requires the role admin',
      },
    },
    example: 'templates send-test acme orders@acme.example --kind dispatched --locale en-GB',
    async run({ api, out }, [account, to], flags) {
      const { kind, locale, zone, job: jobNumber, recipient } = flags;
      const template =
        flags.template === undefined ? undefined : readTemplateFile('template', flags.template);
      const body = { to, kind, locale, zone, jobNumber, recipient, template };
      const result = await api().post('/v1/accounts/{id}/notifications/test', { ...withId(account), body });
      out.document(
        result,
        result.sent
          ? `“${sanitizeLine(result.subject)}” was sent to ${sanitizeLine(to)}.`
          : `It was not sent: ${sanitizeLine(result.message)}`,
      );
      return result.sent ? 0 : 1;
    },
  }),

  'notifications show': command({
    about: 'Shows the customer notification settings of an account.',
    args: ['ACCOUNT'],
    example: 'notifications show acme',
    async run(context, [account]) {
      const settings = await context.api().get('/v1/accounts/{id}/notifications', withId(account));
      context.out.document(settings, () => printSettings(context, account, settings));
    },
  }),

  'notifications set': command({
    about: 'Changes the given customer notification settings of an account.',
    more: 'Customers are not notified of events that were emitted before notifications were switched on. The value none removes --logo, --website, --footer, --reply-to, --sender-id or --quiet.',
    args: ['ACCOUNT'],
    flags: {
      send: { ...SWITCH, about: 'Send notifications to customers', field: 'enabled' },
      'dry-run': {
        ...SWITCH,
        about: 'Create messages without sending them. jobwire messages list shows them',
      },
      'own-user': {
        ...SWITCH,
        about:
          'Also notify the user to whom the credentials belong in the ordering API, if this user’s settings there allow it',
      },
      window: {
        value: 'SECONDS',
        about: 'Time in which changes of one order group are combined into one message. Default: 300',
        range: inputs['NotificationSettingsInput.windowSeconds'],
        field: 'windowSeconds',
      },
      'max-age': {
        value: 'HOURS',
        about:
          'Older changes are not sent. The age of a dispatch is counted from its dispatch date. Default: 24',
        range: inputs['NotificationSettingsInput.maxAgeHours'],
        field: 'maxAgeHours',
      },
      locale: {
        value: 'LOCALE',
        about: 'Locale of messages',
        choices: inputs['NotificationSettingsInput.locale'],
      },
      zone: { value: 'ZONE', about: 'Time zone, such as Europe/London' },
      name: { value: 'TEXT', about: 'Sender name of messages', field: 'branding.name' },
      logo: { value: 'URL', about: 'URL of the logo image (https)', field: 'branding.logoUrl' },
      color: { value: '#RRGGBB', about: 'Color of buttons', field: 'branding.color' },
      website: { value: 'URL', about: 'Link target of the logo (https)', field: 'branding.website' },
      footer: { value: 'TEXT', about: 'Footer line of e-mails', field: 'branding.footer' },
      'reply-to': { value: 'ADDRESS', about: 'Reply-To address of e-mails' },
      sms: { ...SWITCH, about: 'Send SMS', field: 'sms.enabled' },
      'sender-id': {
        value: 'TEXT',
        about: 'Sender id of SMS, where the destination country allows it',
        field: 'sms.senderId',
      },
      'sms-limit': {
        value: 'N',
        about: 'Maximum number of SMS segments per calendar month. Default: 1000',
        range: inputs['NotificationSettingsInput.sms.monthlySegments'],
        field: 'sms.monthlySegments',
      },
      quiet: {
        value: 'HH:MM-HH:MM',
        about: 'Hours in which no SMS is sent, in the recipient’s time zone',
        field: 'sms.quietHours',
      },
    },
    example: 'notifications set acme --send on --name Acme --reply-to orders@acme.example',
    async run(context, [account], flags) {
      const on = (flag: 'send' | 'dry-run' | 'own-user' | 'sms') => {
        const text = flags[flag];
        return text === undefined ? undefined : text === 'on';
      };
      const given: Record<string, unknown> = {
        enabled: on('send'),
        dryRun: on('dry-run'),
        ownUser: on('own-user'),
        windowSeconds: flags.window,
        maxAgeHours: flags['max-age'],
        locale: flags.locale,
        zone: flags.zone,
        replyTo: parseOptional(flags['reply-to']),
      };
      const branding = {
        name: flags.name,
        logoUrl: parseOptional(flags.logo),
        color: flags.color,
        website: parseOptional(flags.website),
        footer: parseOptional(flags.footer),
      };
      const sms = {
        enabled: on('sms'),
        senderId: parseOptional(flags['sender-id']),
        monthlySegments: flags['sms-limit'],
        quietHours: parseQuietHours(flags.quiet),
      };
      if ([given, branding, sms].every((part) => Object.keys(omitUndefined(part)).length === 0)) {
        throw new UsageError('Nothing to set. Set at least one option, such as --send on.');
      }
      if (flags.name === 'none') throw new UsageError('--name can’t be removed.');
      const client = context.api();
      const before = await client.get('/v1/accounts/{id}/notifications', withId(account));
      const body: NotificationSettingsInput = {
        ...(Object.fromEntries(
          Object.entries(before).filter(([name]) => !(name in READ_ONLY)),
        ) as NotificationSettingsInput),
        ...omitUndefined(given),
        branding: { ...before.branding, ...omitUndefined(branding) },
        sms: { ...before.sms, ...omitUndefined(sms) },
      };
      const params = { path: { id: account }, header: ifMatch(before.revision) };
      const settings = await client.put('/v1/accounts/{id}/notifications', { params, body });
      context.out.document(settings, () => printSettings(context, account, settings));
    },
  }),

  'notifications preview': command({
    about: 'Renders a message for a real job or for a sample job.',
    more: 'Prints the text. Nothing is sent.',
    args: ['ACCOUNT'],
    flags: {
      kind: KIND,
      channel: {
        value: 'CHANNEL',
        about: 'Channel of the message',
        choices: inputs['PreviewRequest.channel'],
        default: 'email',
      },
      ...CONTENT,
      recipient: { value: 'ID', about: 'Recipient. Default: a recipient without a name' },
      template: { value: 'FILE', about: 'JSON file of a template to render instead of the current one' },
      html: { value: 'FILE', about: 'File to which the HTML of an e-mail is written' },
    },
    example: 'notifications preview acme --kind dispatched --job 100042 --html mail.html',
    async run({ api, out }, [account], flags) {
      const { channel } = flags;
      if (channel === 'sms' && flags.html !== undefined) {
        throw new UsageError('--html requires --channel email.');
      }
      const body: PreviewRequest = {
        kind: flags.kind,
        channel,
        locale: flags.locale,
        zone: flags.zone,
        jobNumber: flags.job,
        recipient: flags.recipient,
        template: flags.template === undefined ? undefined : readTemplateFile('template', flags.template),
      };
      const preview = await api().post('/v1/accounts/{id}/notifications/preview', {
        ...withId(account),
        body,
      });
      if (flags.html !== undefined) writeTextFile('html', flags.html, preview.html ?? '');
      out.document(preview, () => {
        if (preview.subject !== null) {
          out.line(`${out.paint('dim', 'Subject')}  ${out.paint('bold', sanitizeLine(preview.subject))}`);
          out.line();
        }
        for (const line of preview.text.trimEnd().split('\n'))
          out.line(line === '' ? '' : sanitizeLine(line));
        out.line();
        const { segments, encoding } = preview;
        const summary = [
          preview.jobNumber === null ? 'Sample job' : `Job ${preview.jobNumber}`,
          `${preview.locale}, ${sanitizeLine(preview.zone)}`,
          preview.custom ? 'custom template' : 'default template',
          segments === null
            ? undefined
            : `${segments} SMS ${segments === 1 ? 'segment' : 'segments'} (${encoding})`,
        ];
        out.note(`${summary.filter((part) => part !== undefined).join('; ')}.`);
        if (flags.html !== undefined) out.note(`The HTML was written to ${sanitizeLine(flags.html)}.`);
      });
    },
  }),

  'templates list': command({
    about: 'Lists the custom message templates of an account.',
    args: ['ACCOUNT'],
    flags: { all: { about: 'Include the default templates' } },
    example: 'templates list acme',
    async run({ api, out }, [account], { all }) {
      const { templates } = await api().get('/v1/accounts/{id}/templates', withId(account));
      const shown = templates.filter(({ custom }) => custom || all);
      if (out.json) for (const one of shown) out.jsonLine(one);
      else {
        out.table(
          shown,
          [
            { name: 'KIND', value: ({ kind }) => kind },
            { name: 'CHANNEL', value: ({ channel }) => channel },
            { name: 'LOCALE', value: ({ locale }) => locale },
            {
              name: 'TEMPLATE',
              value: ({ custom }) => (custom ? 'custom' : 'default'),
              style: ({ custom }) => (custom ? 'green' : 'dim'),
            },
          ],
          'The account has no custom templates. Use --all to list the default templates.',
        );
      }
    },
  }),

  'templates show': command({
    about:
      'Shows the custom template, or the default template if there is none, in the format of jobwire templates set.',
    args: ['ACCOUNT', 'KIND', 'CHANNEL', 'LOCALE'],
    choices: TEMPLATE_CHOICES,
    example: 'templates show acme dispatched email en-GB',
    async run({ api, out }, [account, ...which]) {
      const found = await api().get(TEMPLATE, atTemplate(account, which));
      out.document(found, () => {
        // To be edited and set again.
        out.line(toJson(found.template, 2));
        out.note(found.custom ? 'Custom template.' : 'Default template. The account has no custom one.');
      });
    },
  }),

  'templates set': command({
    about: 'Sets a custom template of an account. A template that can’t be rendered is rejected.',
    more: 'FILE contains JSON. For an e-mail: subject, preheader, heading, intro and outro, or the whole message as html and text. For an SMS: text. See docs/notifications.md for the variables.',
    args: ['ACCOUNT', 'KIND', 'CHANNEL', 'LOCALE', 'FILE'],
    choices: TEMPLATE_CHOICES,
    example: 'templates set acme dispatched email en-GB dispatched.json',
    async run({ api, out }, [account, kind, channel, locale, file]) {
      const body = readTemplateFile('FILE', file);
      const saved = await api().put(TEMPLATE, { ...atTemplate(account, [kind, channel, locale]), body });
      out.document(
        saved,
        `The template of ${sanitizeLine(account)} for ${sanitizeLine(kind)}, ${sanitizeLine(channel)}, ${sanitizeLine(locale)} was set.`,
      );
    },
  }),

  'templates remove': command({
    about: 'Removes a custom template of an account. The default template applies again.',
    args: ['ACCOUNT', 'KIND', 'CHANNEL', 'LOCALE'],
    choices: TEMPLATE_CHOICES,
    example: 'templates remove acme dispatched email en-GB',
    async run({ api, out }, [account, ...which]) {
      await api().delete(TEMPLATE, atTemplate(account, which));
      out.document({ removed: which }, 'The template was removed. The default template applies again.');
    },
  }),

  'messages list': command({
    about:
      'Lists the messages to customers of an account, newest first. With --job, includes upcoming messages.',
    args: ['ACCOUNT'],
    flags: {
      job: {
        value: 'NUMBER',
        about: 'Only messages about this job',
        range: inputs['PreviewRequest.jobNumber'],
      },
      recipient: { value: 'ID', about: 'Only messages to this recipient' },
      state: { value: 'STATE', about: 'Only messages in this state', choices: inputs['listMessages.state'] },
      limit: limitFlag(50),
      ...CSV,
    },
    example: 'messages list acme --state failed',
    async run(context, [account], { job, recipient, state, limit: max }) {
      const { api, out } = context;
      if ([job, recipient, state].filter((one) => one !== undefined).length > 1) {
        throw new UsageError('Only one of --job, --recipient and --state can be given.');
      }
      const path = { id: account, jobNumber: String(job) };
      if (job !== undefined) {
        const params = { path, query: { limit: 1 } };
        const { upcoming } = await api().get(OF_JOB, { params });
        for (const { kind, dueAt, jobs } of upcoming) {
          const when = Date.parse(dueAt) <= Date.now() ? 'now' : out.formatTimeCell(dueAt);
          out.note(`Upcoming (${when}): ${kind}, ${jobs.length === 1 ? 'this job' : `${jobs.length} jobs`}.`);
        }
      }
      return out.list(
        (onMore) => {
          const options = { max, onMore };
          if (job !== undefined) {
            const params = { path };
            return api().list(OF_JOB, 'messages', { params, ...options });
          }
          if (recipient !== undefined) {
            const params = { path: { id: account, recipient } };
            return api().list(OF_RECIPIENT, 'messages', { params, ...options });
          }
          const params = { path: { id: account }, query: { state } };
          return api().list('/v1/accounts/{id}/messages', 'messages', { params, ...options });
        },
        messageColumns(context),
        'There are no messages.',
      );
    },
  }),

  'messages show': command({
    about: 'Shows one message: recipient, state and text.',
    args: ['ACCOUNT', 'MESSAGE'],
    example: 'messages show acme m0m9x2k1c3-4fz81',
    async run({ api, out }, [account, id]) {
      const params = { path: { id: account, message: id } };
      const message = await api().get('/v1/accounts/{id}/messages/{message}', { params });
      const { to, state, segments } = message;
      out.document(message, () => {
        out.fields([
          ['Message', sanitizeLine(message.id)],
          [
            'About',
            `${message.kind}: ${message.jobs.length === 1 ? 'job' : 'jobs'} ${message.jobs.join(', ')}`,
          ],
          ['Order group', message.orderGroup && sanitizeLine(message.orderGroup)],
          ['To', to && sanitizeLine([to.name, `<${to.address}>`].filter((part) => part !== null).join(' '))],
          ['Recipient', to && sanitizeLine(to.recipient)],
          ['Channel', message.channel],
          ['Locale and zone', to && `${to.locale}, ${sanitizeLine(to.zone)}`],
          ['State', out.paint(STATE_STYLE[state] ?? 'reset', state)],
          ['Reason', formatReason(message)],
          ['Created', out.formatTimeWithAge(message.createdAt)],
          ['Due', out.formatTimeWithAge(message.dueAt)],
          ['Sent', out.formatTimeWithAge(message.sentAt)],
          ['Sent by', message.sentBy && sanitizeLine(message.sentBy.name ?? message.sentBy.id)],
          ['Attempts', message.attempts > 0 ? String(message.attempts) : null],
          [
            'Sent again',
            message.repeats > 0 ? `${message.repeats} times: the recipient may have duplicates` : null,
          ],
          ['Segments', segments === null ? null : String(segments)],
          ['Provider id', message.providerId && sanitizeLine(message.providerId)],
          ['Subject', message.subject && sanitizeLine(message.subject)],
        ]);
        if (message.text === null) return;
        out.line();
        for (const line of message.text.trimEnd().split('\n'))
          out.line(line === '' ? '' : sanitizeLine(line));
      });
    },
  }),

  'suppressions list': command({
    about: 'Lists the suppressed addresses of an account, masked, with the reasons.',
    more: 'The address of a recipient who unsubscribed by a link is not shown. jobwire messages list with --state suppressed shows the recipients whose messages were not sent.',
    args: ['ACCOUNT'],
    flags: { limit: limitFlag(100), ...CSV },
    example: 'suppressions list acme',
    async run({ api, out }, [account], { limit: max }) {
      return out.list(
        (onMore) =>
          api().list('/v1/accounts/{id}/suppressions', 'suppressions', { ...withId(account), max, onMore }),
        [
          { name: 'SUPPRESSION', value: ({ id }) => id, long: true },
          { name: 'CHANNEL', value: ({ channel }) => channel },
          { name: 'ADDRESS', value: ({ address }) => address ?? NOT_STORED, long: true },
          { name: 'REASON', value: ({ reason }) => reason },
          { name: 'SINCE', value: ({ since }) => out.formatTimeCell(since) },
        ],
        'No address is suppressed.',
      );
    },
  }),

  'suppressions add': command({
    about: 'Suppresses an address. The account sends no more messages to it.',
    args: ['ACCOUNT', 'ADDRESS'],
    example: 'suppressions add acme ann@example.com',
    async run({ api, out }, [account, address]) {
      const channel = address.includes('@') ? 'email' : 'sms';
      if (channel === 'sms' && !/\d/.test(address)) {
        throw new UsageError(
          'ADDRESS must be an e-mail address, or a mobile number such as +64 21 123 4567.',
        );
      }
      const body = { channel, address } as const;
      const created = await api().post('/v1/accounts/{id}/suppressions', { ...withId(account), body });
      out.document(
        created,
        `${sanitizeLine(created.address)} is suppressed for ${sanitizeLine(account)} (${sanitizeLine(created.id)}).`,
      );
    },
  }),

  'suppressions remove': command({
    about: 'Removes a suppression. The address can receive messages again.',
    more: 'SUPPRESSION is the id in the list. jobwire suppressions add prints the id of an address, even if the address is already suppressed. If the recipient unsubscribed, remove the suppression only if the recipient asks for it.',
    args: ['ACCOUNT', 'SUPPRESSION'],
    example: 'suppressions remove acme email-pU7qQJc-Bv8jrfz928FNII-h8oI3ktgk',
    async run({ api, out }, [account, id]) {
      await api().delete('/v1/accounts/{id}/suppressions/{suppression}', {
        params: { path: { id: account, suppression: id } },
      });
      out.document(
        { removed: id },
        `${sanitizeLine(id)} was removed. The address can receive messages again.`,
      );
    },
  }),
};

function printSettings({ out }: Context, account: string, settings: NotificationSettings): void {
  const { enabled, dryRun, branding, sms } = settings;
  const state = enabled ? (dryRun ? 'dry run' : 'on') : 'off';
  const { quietHours } = sms;
  out.fields([
    ['Account', sanitizeLine(account)],
    ['Notifications', out.paint(enabled ? (dryRun ? 'yellow' : 'green') : 'yellow', state)],
    ['Since', out.formatTimeWithAge(settings.since)],
    ['Combined', `changes of one order group within ${settings.windowSeconds} s`],
    ['Maximum age', `${settings.maxAgeHours} h`],
    ['Language and zone', `${settings.locale}, ${sanitizeLine(settings.zone)}`],
    ['Sender name', sanitizeLine(branding.name)],
    ['Reply-To', settings.replyTo && sanitizeLine(settings.replyTo)],
    ['Logo', branding.logoUrl && sanitizeLine(branding.logoUrl)],
    ['Color', sanitizeLine(branding.color)],
    ['Website', branding.website && sanitizeLine(branding.website)],
    ['Footer', branding.footer && sanitizeLine(branding.footer)],
    ['SMS', sms.enabled ? `on, up to ${sms.monthlySegments} segments per month` : 'off'],
    ['SMS sender id', sms.senderId && sanitizeLine(sms.senderId)],
    ['Quiet hours', quietHours && `${quietHours.from} to ${quietHours.to}, recipient’s time zone`],
    ['API user', settings.ownUser ? 'notified' : null],
  ]);
  for (const warning of settings.warnings) out.note(sanitizeLine(warning));
}

function messageColumns({ out }: Context): Column<Message>[] {
  return [
    { name: 'MESSAGE', value: ({ id }) => id, long: true },
    { name: 'CREATED', value: ({ createdAt }) => out.formatTimeCell(createdAt) },
    { name: 'KIND', value: ({ kind }) => kind },
    { name: 'JOBS', value: ({ jobs }) => jobs, long: true },
    { name: 'CHANNEL', value: ({ channel }) => channel },
    { name: 'TO', value: ({ to }) => to?.address, long: true },
    { name: 'STATE', value: ({ state }) => state, style: ({ state }) => STATE_STYLE[state] },
    { name: 'REASON', value: formatReason, long: true },
  ];
}

/** A message that waits for another attempt has no reason, but the detail of the last attempt. */
const formatReason = ({ reason, detail }: Message): string | undefined =>
  sanitizeLine([reason, detail].filter((part) => part !== null).join(': ')) || undefined;

const OF_JOB = '/v1/accounts/{id}/jobs/{jobNumber}/messages';
const OF_RECIPIENT = '/v1/accounts/{id}/recipients/{recipient}/messages';
const TEMPLATE = '/v1/accounts/{id}/templates/{kind}/{channel}/{locale}';
const atTemplate = (id: string, [kind, channel, locale]: readonly [string, string, string]) => ({
  params: { path: { id, kind, channel, locale } as Paths[typeof TEMPLATE]['get']['params']['path'] },
});

/** Parses an optional text. `none` clears the value. */
const parseOptional = (text: string | undefined): string | null | undefined =>
  text === 'none' ? null : text;

function parseQuietHours(text: string | undefined): object | null | undefined {
  if (text === undefined || text === 'none') return parseOptional(text) as null | undefined;
  const [, from, to] = /^((?:[01]\d|2[0-3]):[0-5]\d)-((?:[01]\d|2[0-3]):[0-5]\d)$/.exec(text) ?? [];
  if (from === undefined) throw new UsageError('--quiet must be HH:MM-HH:MM, such as 21:00-08:00, or none.');
  return { from, to };
}

function omitUndefined(values: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined));
}

function writeTextFile(flag: string, file: string, text: string): void {
  try {
    writeFileSync(file, text);
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    throw new UsageError(`--${flag}: ${file} can’t be written${formatCode(code)}.`, { cause });
  }
}
