/** `jobwire notifications …`, `templates …`, `messages …`, `suppressions …`: notification of customers. */
import { readFileSync, writeFileSync } from 'node:fs';
import type * as z from 'zod';
import type * as views from '../shared/api/notification-views.ts';
import { type Context, command, UsageError } from './command.ts';
import { choiceOf, segment, wholeNumber } from './input.ts';
import { type Column, clean } from './output.ts';

type Settings = z.infer<typeof views.NotificationSettings>;
type Message = z.infer<typeof views.Message>;
type Upcoming = z.infer<typeof views.Upcoming>;
type Preview = z.infer<typeof views.Preview>;
type Template = z.infer<typeof views.Template>;
type ListedTemplate = z.infer<typeof views.ListedTemplate>;
type Suppression = z.infer<typeof views.Suppression>;

const pathOf = (account: string, rest: string): string => `/v1/accounts/${segment(account)}${rest}`;

const KIND = {
  value: 'KIND',
  about: 'dispatched, tracking, dispatch_revoked, due_date_changed or cancelled',
} as const;
const CHANNELS = ['email', 'sms'];
const SWITCH = ['on', 'off'];

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
  'notifications show': command({
    about: 'Shows how an account tells its customers.',
    args: ['ACCOUNT'],
    flags: {},
    example: 'notifications show acme',
    async run(context, [account]) {
      const settings = await context.api().get<Settings>(pathOf(account, '/notifications'));
      context.out.document(settings, () => showSettings(context, account, settings));
      return undefined;
    },
  }),

  'notifications set': command({
    about: 'Says how an account tells its customers. What is not named stays as it is.',
    more: 'What happens before it is switched on is not told. With --dry-run on, messages are made and kept, and not sent: jobwire messages list shows what would have gone to whom. none takes away a value.',
    args: ['ACCOUNT'],
    flags: {
      send: { value: 'on|off', about: 'Whether customers are told anything', field: 'enabled' },
      'dry-run': { value: 'on|off', about: 'Do everything but send', field: 'dryRun' },
      'own-user': {
        value: 'on|off',
        about: 'Tell the user of the credentials too, as their settings in the ordering service say',
        field: 'ownUser',
      },
      window: {
        value: 'SECONDS',
        about: 'How much of an order group becomes one message (300)',
        field: 'windowSeconds',
      },
      'max-age': { value: 'HOURS', about: 'What is older is not told (24)', field: 'maxAgeHours' },
      locale: { value: 'LOCALE', about: 'en-US, en-GB, en-AU, en-NZ, de or fr' },
      zone: { value: 'ZONE', about: 'Time zone: Europe/London' },
      name: { value: 'TEXT', about: 'Who messages come from', field: 'branding.name' },
      logo: { value: 'URL', about: 'Picture, https', field: 'branding.logoUrl' },
      color: { value: '#RRGGBB', about: 'Colour of buttons', field: 'branding.color' },
      website: { value: 'URL', about: 'Where the picture leads, https', field: 'branding.website' },
      footer: { value: 'TEXT', about: 'A line at the end of e-mails', field: 'branding.footer' },
      'reply-to': { value: 'ADDRESS', about: 'Where answers to e-mails go', field: 'replyTo' },
      sms: { value: 'on|off', about: 'Whether SMS are sent', field: 'sms.enabled' },
      'sender-id': { value: 'TEXT', about: 'Who SMS come from, where allowed', field: 'sms.senderId' },
      'sms-limit': {
        value: 'N',
        about: 'SMS segments in a calendar month at most',
        field: 'sms.monthlySegments',
      },
      quiet: {
        value: 'HH:MM-HH:MM',
        about: 'No SMS in these hours, by the clock of the recipient',
        field: 'sms.quietHours',
      },
    },
    example: 'notifications set acme --send on --name Acme --reply-to orders@acme.example',
    async run(context, [account], flags) {
      const on = (flag: 'send' | 'dry-run' | 'own-user' | 'sms') => {
        const text = flags[flag];
        return text === undefined ? undefined : choiceOf(flag, text, SWITCH) === 'on';
      };
      const given: Record<string, unknown> = {
        enabled: on('send'),
        dryRun: on('dry-run'),
        ownUser: on('own-user'),
        windowSeconds: flags.window && wholeNumber('window', flags.window, 0, 1_000_000),
        maxAgeHours: flags['max-age'] && wholeNumber('max-age', flags['max-age'], 0, 1_000_000),
        locale: flags.locale,
        zone: flags.zone,
        replyTo: orNull(flags['reply-to']),
      };
      const branding = {
        name: flags.name,
        logoUrl: orNull(flags.logo),
        color: flags.color,
        website: orNull(flags.website),
        footer: orNull(flags.footer),
      };
      const sms = {
        enabled: on('sms'),
        senderId: orNull(flags['sender-id']),
        monthlySegments: flags['sms-limit'] && wholeNumber('sms-limit', flags['sms-limit'], 0, 100_000_000),
        quietHours: quietOf(flags.quiet),
      };
      if ([given, branding, sms].every((part) => Object.keys(defined(part)).length === 0)) {
        throw new UsageError('Say what to set: --send on, say.');
      }
      const client = context.api();
      const path = pathOf(account, '/notifications');
      const { since: _, revision, warnings: __, ...before } = await client.get<Settings>(path);
      const body = {
        ...before,
        ...defined(given),
        branding: { ...before.branding, ...defined(branding) },
        sms: { ...before.sms, ...defined(sms) },
      };
      const settings = await client.put<Settings>(path, body, revision);
      context.out.document(settings, () => showSettings(context, account, settings));
      return undefined;
    },
  }),

  'notifications preview': command({
    about: 'Shows what a message would say: about a real job, or about one that is made up.',
    more: 'It prints the text; --html writes the HTML of an e-mail to a file. Nothing is sent.',
    args: ['ACCOUNT'],
    flags: {
      kind: { ...KIND, required: true },
      channel: { value: 'CHANNEL', about: 'email or sms (email)' },
      locale: { value: 'LOCALE', about: 'In this language (the recipient’s, or the account’s)' },
      zone: { value: 'ZONE', about: 'In this time zone (the same)' },
      job: { value: 'NUMBER', about: 'About this job (a made-up one)', field: 'jobNumber' },
      recipient: { value: 'ID', about: 'To this recipient (nobody by name)' },
      template: { value: 'FILE', about: 'With the template in this JSON file, before it is set' },
      html: { value: 'FILE', about: 'Write the HTML there' },
    },
    example: 'notifications preview acme --kind dispatched --job 100042 --html mail.html',
    async run({ api, out }, [account], flags) {
      const channel = choiceOf('channel', flags.channel ?? 'email', CHANNELS);
      if (channel === 'sms' && flags.html !== undefined) {
        throw new UsageError('--html goes with e-mails: an SMS has none.');
      }
      const body = {
        kind: flags.kind,
        channel,
        locale: flags.locale,
        zone: flags.zone,
        jobNumber: flags.job === undefined ? undefined : wholeNumber('job', flags.job, 1, 999_999_999_999),
        recipient: flags.recipient,
        template: flags.template === undefined ? undefined : jsonIn('template', flags.template),
      };
      const preview = await api().post<Preview>(pathOf(account, '/notifications/preview'), body);
      if (flags.html !== undefined) writeText('html', flags.html, preview.html ?? '');
      out.document(preview, () => {
        if (preview.subject !== null) {
          out.line(`${out.paint('dim', 'Subject')}  ${out.paint('bold', clean(preview.subject))}`);
          out.line();
        }
        for (const line of preview.text.trimEnd().split('\n')) out.line(line === '' ? '' : clean(line));
        out.line();
        const { segments, encoding } = preview;
        const said = [
          preview.jobNumber === null ? 'About a made-up job' : `About job ${preview.jobNumber}`,
          `${preview.locale}, ${clean(preview.zone)}`,
          preview.custom ? 'the account’s own template' : 'the default template',
          segments === null
            ? undefined
            : `${segments} SMS ${segments === 1 ? 'segment' : 'segments'} (${encoding})`,
        ];
        out.note(`${said.filter((part) => part !== undefined).join('; ')}.`);
        if (flags.html !== undefined) out.note(`The HTML is in ${clean(flags.html)}.`);
      });
      return undefined;
    },
  }),

  'templates list': command({
    about: 'Lists the templates of messages: those of the account, and with --all the default ones too.',
    args: ['ACCOUNT'],
    flags: { all: { about: 'The default ones too' } },
    example: 'templates list acme',
    async run({ api, out }, [account], { all }) {
      const path = pathOf(account, '/templates');
      const { templates } = await api().get<{ templates: ListedTemplate[] }>(path);
      const shown = templates.filter(({ custom }) => custom || all);
      if (out.json) for (const one of shown) out.jsonLine(one);
      else {
        out.table(
          shown,
          [
            { name: 'KIND', of: ({ kind }) => kind },
            { name: 'CHANNEL', of: ({ channel }) => channel },
            { name: 'LOCALE', of: ({ locale }) => locale },
            {
              name: 'TEMPLATE',
              of: ({ custom }) => (custom ? 'own' : 'default'),
              style: ({ custom }) => (custom ? 'green' : 'dim'),
            },
          ],
          'The account has no templates of its own; --all lists the default ones.',
        );
      }
      return undefined;
    },
  }),

  'templates show': command({
    about: 'Shows a template: the account’s own, or else the default one, as JSON that templates set takes.',
    args: ['ACCOUNT', 'KIND', 'CHANNEL', 'LOCALE'],
    flags: {},
    example: 'templates show acme dispatched email en-GB',
    async run({ api, out }, [account, ...which]) {
      const found = await api().get<Template>(templatePath(account, which));
      out.document(found, () => {
        // Printed unmodified, to be edited and set again. JSON contains no control characters.
        out.line(JSON.stringify(found.template, undefined, 2));
        out.note(found.custom ? 'The account’s own.' : 'The default one; the account has none of its own.');
      });
      return undefined;
    },
  }),

  'templates set': command({
    about: 'Gives an account a template of its own. It is tried out first, and not taken when it fails.',
    more: 'FILE holds JSON: subject, preheader, heading, intro, outro, or all of it as html and text, for an e-mail; text for an SMS. docs/notifications.md has all that can stand in them.',
    args: ['ACCOUNT', 'KIND', 'CHANNEL', 'LOCALE', 'FILE'],
    flags: {},
    example: 'templates set acme dispatched email en-GB dispatched.json',
    async run({ api, out }, [account, kind, channel, locale, file]) {
      const template = jsonIn('FILE', file);
      const saved = await api().put<Template>(templatePath(account, [kind, channel, locale]), template);
      out.document(saved, () =>
        out.line(
          `${clean(account)} has its own template for ${clean(kind)} by ${clean(channel)} in ${clean(locale)}.`,
        ),
      );
      return undefined;
    },
  }),

  'templates remove': command({
    about: 'Takes an account’s own template away: the default one counts again.',
    args: ['ACCOUNT', 'KIND', 'CHANNEL', 'LOCALE'],
    flags: {},
    example: 'templates remove acme dispatched email en-GB',
    async run({ api, out }, [account, ...which]) {
      await api().remove(templatePath(account, which));
      out.document({ removed: which }, () => out.line('It is removed; the default template counts again.'));
      return undefined;
    },
  }),

  'messages list': command({
    about: 'Lists what customers of an account were told, the newest first; of a job also what they will be.',
    args: ['ACCOUNT'],
    flags: {
      job: { value: 'NUMBER', about: 'About this job only' },
      recipient: { value: 'ID', about: 'To this recipient only' },
      state: {
        value: 'STATE',
        about:
          'In this state: waiting, sending, sent, failed, suppressed, dry_run, bounced, complained, unknown',
      },
      limit: { value: 'N', about: 'At most so many (50)' },
    },
    example: 'messages list acme --state failed',
    async run(context, [account], { job, recipient, state, limit = '50' }) {
      const { api, out } = context;
      if ([job, recipient, state].filter((one) => one !== undefined).length > 1) {
        throw new UsageError('Only one of --job, --recipient and --state can be given.');
      }
      const most = wholeNumber('limit', limit, 1, 100_000);
      const number = job === undefined ? undefined : wholeNumber('job', job, 1, 999_999_999_999);
      const path =
        number !== undefined
          ? pathOf(account, `/jobs/${number}/messages`)
          : recipient !== undefined
            ? pathOf(account, `/recipients/${segment(recipient)}/messages`)
            : pathOf(account, '/messages');
      if (number !== undefined && !out.json) {
        const { upcoming } = await api().get<{ upcoming: Upcoming[] }>(path, { limit: 1 });
        for (const { kind, dueAt, jobs } of upcoming) {
          const when = Date.parse(dueAt) <= Date.now() ? 'at any moment' : out.when(dueAt);
          out.note(`To come ${when}: ${kind}, of ${jobs.length === 1 ? 'this job' : `${jobs.length} jobs`}.`);
        }
      }
      return out.list(
        (more) => api().list<Message>(path, 'messages', { state }, most, more),
        messageColumns(context),
        'There are no messages.',
      );
    },
  }),

  'messages show': command({
    about: 'Shows one message: to whom, what became of it, and what it says.',
    args: ['ACCOUNT', 'MESSAGE'],
    flags: {},
    example: 'messages show acme m0m9x2k1c3-4fz81',
    async run({ api, out }, [account, id]) {
      const path = pathOf(account, `/messages/${segment(id)}`);
      const message = await api().get<Message>(path);
      const { to, state, segments } = message;
      out.document(message, () => {
        out.facts([
          ['Message', clean(message.id)],
          [
            'About',
            `${message.kind}: ${message.jobs.length === 1 ? 'job' : 'jobs'} ${message.jobs.join(', ')}`,
          ],
          ['Order group', message.orderGroup && clean(message.orderGroup)],
          [
            'To',
            to &&
              [to.name, `<${to.address}>`]
                .filter((part) => part !== null)
                .map(clean)
                .join(' '),
          ],
          ['Recipient', to && clean(to.recipient)],
          ['By', message.channel],
          ['In', to && `${to.locale}, ${clean(to.zone)}`],
          ['State', out.paint(STATE_STYLE[state] ?? 'reset', state)],
          ['Why', message.reason && whyOf(message)],
          ['Made', out.exactly(message.createdAt)],
          ['Due', out.exactly(message.dueAt)],
          ['Sent', out.exactly(message.sentAt)],
          ['Attempts', message.attempts > 0 ? String(message.attempts) : null],
          ['Sent again', message.repeats > 0 ? `${message.repeats} times: duplicates at most` : null],
          ['Segments', segments === null ? null : String(segments)],
          ['Id at the provider', message.providerId && clean(message.providerId)],
          ['Subject', message.subject && clean(message.subject)],
        ]);
        if (message.text === null) return;
        out.line();
        for (const line of message.text.trimEnd().split('\n')) out.line(line === '' ? '' : clean(line));
      });
      return undefined;
    },
  }),

  'suppressions list': command({
    about: 'Lists addresses that get nothing more from an account, and why.',
    args: ['ACCOUNT'],
    flags: { limit: { value: 'N', about: 'At most so many (100)' } },
    example: 'suppressions list acme',
    async run({ api, out }, [account], { limit = '100' }) {
      const most = wholeNumber('limit', limit, 1, 100_000);
      return out.list(
        (more) => api().list<Suppression>(pathOf(account, '/suppressions'), 'suppressions', {}, most, more),
        [
          { name: 'SUPPRESSION', of: ({ id }) => id, long: true },
          { name: 'BY', of: ({ channel }) => channel },
          { name: 'ADDRESS', of: ({ address }) => address, long: true },
          { name: 'WHY', of: ({ reason }) => reason },
          { name: 'SINCE', of: ({ since }) => out.when(since) },
        ],
        'No address is suppressed.',
      );
    },
  }),

  'suppressions add': command({
    about: 'Keeps an address from getting anything more from an account.',
    args: ['ACCOUNT', 'ADDRESS'],
    flags: {},
    example: 'suppressions add acme ann@example.com',
    async run({ api, out }, [account, address]) {
      const channel = address.includes('@') ? 'email' : 'sms';
      if (channel === 'sms' && !/\d/.test(address)) {
        throw new UsageError(
          'ADDRESS must be an e-mail address, or a mobile number such as +64 21 123 4567.',
        );
      }
      const body = { channel, address };
      const made = await api().post<Suppression>(pathOf(account, '/suppressions'), body);
      out.document(made, () =>
        out.line(`${clean(made.address)} gets nothing more from ${clean(account)} (${clean(made.id)}).`),
      );
      return undefined;
    },
  }),

  'suppressions remove': command({
    about: 'Lets an address get messages again.',
    more: 'Whoever unsubscribed has said that they want none: let them come again only when they ask for it.',
    args: ['ACCOUNT', 'SUPPRESSION'],
    flags: {},
    example: 'suppressions remove acme email-pU7qQJc-Bv8jrfz928FNII-h8oI3ktgk',
    async run({ api, out }, [account, id]) {
      await api().remove(pathOf(account, `/suppressions/${segment(id)}`));
      out.document({ removed: id }, () => out.line(`${clean(id)} is removed: it gets messages again.`));
      return undefined;
    },
  }),
};

function showSettings({ out }: Context, account: string, settings: Settings): void {
  const { enabled, dryRun, branding, sms } = settings;
  const state = enabled ? (dryRun ? 'dry run' : 'on') : 'off';
  const { quietHours } = sms;
  out.facts([
    ['Account', clean(account)],
    ['Customers are told', out.paint(enabled ? (dryRun ? 'yellow' : 'green') : 'yellow', state)],
    ['Since', out.exactly(settings.since)],
    ['Told together', `jobs of an order group within ${settings.windowSeconds} s`],
    ['Not told when older than', `${settings.maxAgeHours} h`],
    ['Language and zone', `${settings.locale}, ${clean(settings.zone)}`],
    ['From', clean(branding.name)],
    ['Answers to', settings.replyTo && clean(settings.replyTo)],
    ['Logo', branding.logoUrl && clean(branding.logoUrl)],
    ['Colour', clean(branding.color)],
    ['Website', branding.website && clean(branding.website)],
    ['Footer', branding.footer && clean(branding.footer)],
    ['SMS', sms.enabled ? `on, ${sms.monthlySegments} segments a month at most` : 'off'],
    ['SMS from', sms.senderId && clean(sms.senderId)],
    ['No SMS', quietHours && `${quietHours.from} to ${quietHours.to}, by the clock of the recipient`],
    ['User of the credentials', settings.ownUser ? 'is told too' : null],
  ]);
  for (const warning of settings.warnings) out.note(clean(warning));
}

function messageColumns({ out }: Context): Column<Message>[] {
  return [
    { name: 'MESSAGE', of: ({ id }) => id, long: true },
    { name: 'MADE', of: ({ createdAt }) => out.when(createdAt) },
    { name: 'ABOUT', of: ({ kind }) => kind },
    { name: 'JOBS', of: ({ jobs }) => jobs, long: true },
    { name: 'BY', of: ({ channel }) => channel },
    { name: 'TO', of: ({ to }) => to?.address, long: true },
    { name: 'STATE', of: ({ state }) => state, style: ({ state }) => STATE_STYLE[state] },
    { name: 'WHY', of: (message) => (message.reason === null ? undefined : whyOf(message)), long: true },
  ];
}

const whyOf = ({ reason, detail }: Message): string =>
  clean(detail === null ? reason : `${reason}: ${detail}`);

const templatePath = (account: string, which: readonly string[]): string =>
  pathOf(account, `/templates/${which.map(segment).join('/')}`);

/** Parses an optional text. `none` clears the value. */
const orNull = (text: string | undefined): string | null | undefined => (text === 'none' ? null : text);

function quietOf(text: string | undefined): object | null | undefined {
  if (text === undefined || text === 'none') return orNull(text) as null | undefined;
  const [, from, to] = /^((?:[01]\d|2[0-3]):[0-5]\d)-((?:[01]\d|2[0-3]):[0-5]\d)$/.exec(text) ?? [];
  if (from === undefined) throw new UsageError('--quiet must be HH:MM-HH:MM, such as 21:00-08:00, or none.');
  return { from, to };
}

function defined(values: Readonly<Record<string, unknown>>): Record<string, unknown> {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined));
}

function jsonIn(flag: string, file: string): object {
  const name = flag === 'FILE' ? flag : `--${flag}`;
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    throw new UsageError(`${name}: ${file} can’t be read (${code ?? 'unknown'}).`, { cause });
  }
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value;
  } catch {
    // Reported below.
  }
  throw new UsageError(`${name}: ${file} must hold a JSON object, such as {"subject": "…"}.`);
}

function writeText(flag: string, file: string, text: string): void {
  try {
    writeFileSync(file, text);
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    throw new UsageError(`--${flag}: ${file} can’t be written (${code ?? 'unknown'}).`, { cause });
  }
}
