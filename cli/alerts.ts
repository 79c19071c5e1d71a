/** `jobwire alerts …` */
import { type AlertRule, ifMatch, type ResponseData } from '../client/index.ts';
import { inputs } from '../client/inputs.ts';
import {
  type Context,
  CSV,
  command,
  type Flags,
  type FlagValues,
  limitFlag,
  parseRange,
  UsageError,
  withoutDefaults,
} from './command.ts';
import { parseList, readSecret } from './input.ts';
import { sanitizeLine } from './output.ts';

const REGION = {
  value: 'REGION',
  about: 'Region. Required if the id exists in several regions',
} as const;

const REGION_OF_NEW = {
  value: 'REGION',
  about: 'Region of the rule. Required if Jobwire serves several regions',
} as const;

const atRule = (id: string, region: string | undefined) => ({ params: { path: { id }, query: { region } } });

const REPEAT = inputs['NewAlertRule.repeatMinutes'];
const DAYS = inputs['NewAlertRule.quietHours.days'];

/** Options of a new or changed rule, except those of its quiet hours and its target. */
const BASICS = {
  accounts: { value: 'A,B', about: 'Only these accounts, or all. Default: all', many: true },
  for: {
    value: 'MINUTES',
    about: 'Time above the threshold after which the rule fires. Default: 0',
    range: inputs['NewAlertRule.forMinutes'],
    field: 'forMinutes',
  },
  repeat: {
    value: 'MINUTES',
    about: `Interval of reminders while the rule fires, ${REPEAT.least} to ${REPEAT.most}, or none. Default: none`,
    field: 'repeatMinutes',
  },
  resolved: {
    value: 'on|off',
    about: 'Send a message when the rule no longer fires. Default: on',
    choices: ['on', 'off'],
    field: 'notifyResolved',
  },
} as const satisfies Flags;

/** Options of a new or changed rule. */
const FIELDS = {
  ...BASICS,
  quiet: {
    value: 'HH:MM-HH:MM',
    about: 'Quiet hours, such as 21:00-08:00, or none',
    field: 'quietHours',
  },
  'quiet-days': {
    value: 'A,B',
    about: 'Days on which quiet hours begin. Default: all',
    choices: DAYS,
    many: true,
    field: 'quietHours.days',
  },
  'quiet-zone': {
    value: 'ZONE',
    about: 'Time zone of quiet hours, such as Europe/London. Default: UTC',
    field: 'quietHours.zone',
  },
  'quiet-action': {
    value: 'ACTION',
    about: 'Send messages after the quiet hours (defer), or never (drop). Default: defer',
    choices: inputs['NewAlertRule.quietHours.action'],
    field: 'quietHours.action',
  },
  email: { value: 'A,B', about: 'E-mail addresses', many: true, field: 'target' },
  post: {
    value: 'KIND',
    about: 'Post messages to Slack, to Teams, or as JSON to a webhook',
    choices: ['slack', 'teams', 'webhook'],
    field: 'target',
  },
  'url-file': {
    value: 'FILE',
    about: 'With --post: file that contains the URL',
    field: 'target.url',
  },
  'url-env': {
    value: 'NAME',
    about: 'With --post: environment variable that contains the URL',
    field: 'target.url',
  },
} as const satisfies Flags;

export const alerts = {
  'alerts list': command({
    about: 'Lists alert rules with their states.',
    flags: {
      region: { value: 'REGION', about: 'Only this region' },
      limit: limitFlag(100),
      ...CSV,
    },
    example: 'alerts list',
    async run({ api, out }, _args, { region, limit: max }) {
      const params = { query: { region } };
      return out.list(
        (onMore) => api().list('/v1/alert-rules', 'alertRules', { params, max, onMore }),
        [
          { name: 'RULE', value: ({ id }) => id, long: true },
          { name: 'REGION', value: ({ region }) => region },
          { name: 'STATE', value: getState, style: (rule) => STATE_STYLE[getState(rule)] },
          { name: 'CONDITION', value: formatCondition },
          { name: 'VALUE', value: ({ state }) => state.value, right: true },
          { name: 'TARGET', value: formatTarget, long: true },
          { name: 'LAST MESSAGE', value: ({ state }) => out.formatTimeCell(state.sentAt) },
          { name: 'PROBLEM', value: ({ state }) => state.problem, long: true },
        ],
        'There are no alert rules.',
      );
    },
  }),

  'alerts show': command({
    about: 'Shows an alert rule and its state.',
    args: ['ID'],
    flags: { region: REGION },
    example: 'alerts show late',
    async run(context, [id], { region }) {
      printRule(context, await context.api().get('/v1/alert-rules/{id}', atRule(id, region)));
    },
  }),

  'alerts add': command({
    about: 'Adds an alert rule, which is evaluated once a minute.',
    more: 'See docs/alerts.md for the conditions. The URL of --post is read from a file, an environment variable or stdin, or entered at a prompt.',
    args: ['ID'],
    flags: {
      region: REGION_OF_NEW,
      condition: {
        value: 'CONDITION',
        about: 'Measured value',
        choices: inputs['NewAlertRule.condition'],
        required: true,
      },
      above: {
        value: 'N',
        about: 'Threshold: the rule fires if the value is greater',
        range: inputs['NewAlertRule.threshold'],
        required: true,
        field: 'threshold',
      },
      name: { value: 'TEXT', about: 'Name in the messages. Default: the id' },
      ...FIELDS,
    },
    example: 'alerts add late --condition late_jobs --above 5 --for 10 --email ops@acme.example',
    async run(context, [id], flags) {
      const target = await readTarget(context, flags);
      if (!target) throw new UsageError('--email or --post is missing.');
      const { quietHours, accounts, repeatMinutes, ...fields } = toFields(flags);
      const body = {
        ...{ id, region: flags.region, condition: flags.condition, threshold: flags.above },
        ...{ name: flags.name ?? id, ...fields, quietHours: quietHours ?? undefined, target },
        ...{ accounts: accounts ?? undefined, repeatMinutes: repeatMinutes ?? undefined },
      };
      printRule(context, await context.api().post('/v1/alert-rules', { body }));
    },
  }),

  'alerts change': command({
    about: 'Changes the given settings of an alert rule.',
    more: '--quiet resets the other settings of the quiet hours, unless they are also given.',
    args: ['ID'],
    flags: {
      region: REGION,
      enabled: { value: 'on|off', about: 'Evaluate the rule', choices: ['on', 'off'] },
      above: {
        value: 'N',
        about: 'Threshold: the rule fires if the value is greater',
        range: inputs['NewAlertRule.threshold'],
        field: 'threshold',
      },
      name: { value: 'TEXT', about: 'Name in the messages' },
      ...FIELDS,
      ...withoutDefaults(BASICS),
    },
    example: 'alerts change late --above 10 --quiet 21:00-08:00 --quiet-zone Europe/London',
    async run(context, [id], flags) {
      const { enabled, above: threshold, name } = flags;
      const target = await readTarget(context, flags);
      const fields = { name, threshold, ...toFields(flags), target };
      const body = { ...fields, ...(enabled === undefined ? {} : { enabled: enabled === 'on' }) };
      if (Object.values(body).every((value) => value === undefined)) {
        throw new UsageError('Nothing to change. Set at least one option, such as --above 10.');
      }
      const api = context.api();
      const { revision } = await api.get('/v1/alert-rules/{id}', atRule(id, flags.region));
      const params = { ...atRule(id, flags.region).params, header: ifMatch(revision) };
      printRule(context, await api.patch('/v1/alert-rules/{id}', { params, body }));
    },
  }),

  'alerts remove': command({
    about: 'Deletes an alert rule.',
    args: ['ID'],
    flags: { region: REGION },
    example: 'alerts remove late',
    async run({ api, out }, [id], { region }) {
      await api().delete('/v1/alert-rules/{id}', atRule(id, region));
      out.document({ removed: id }, `The alert rule ${sanitizeLine(id)} is deleted.`);
    },
  }),

  'alerts test': command({
    about: 'Sends a test message to the target of an alert rule.',
    args: ['ID'],
    flags: { region: REGION },
    example: 'alerts test late',
    async run({ api, out }, [id], { region }) {
      const result = await api().post('/v1/alert-rules/{id}/test', atRule(id, region));
      out.document(
        result,
        result.sent ? 'The test message was sent.' : `It was not sent: ${sanitizeLine(result.message)}`,
      );
      return result.sent ? 0 : 1;
    },
  }),
};

type NewTarget = { kind: 'email'; to: string[] } | { kind: 'slack' | 'teams' | 'webhook'; url: string };

async function readTarget(
  context: Context,
  flags: FlagValues<typeof FIELDS>,
): Promise<NewTarget | undefined> {
  const { post: kind, 'url-file': file, 'url-env': variable } = flags;
  const to = parseList(flags.email);
  if (kind === undefined) {
    if (file !== undefined || variable !== undefined)
      throw new UsageError('--url-file and --url-env require --post.');
    return to && { kind: 'email', to };
  }
  if (to) throw new UsageError('--email and --post can’t be combined.');
  return { kind, url: await readSecret(context, 'The URL', { flag: 'url', file, variable }) };
}

function toFields(flags: FlagValues<typeof FIELDS>) {
  const { for: forMinutes, repeat, resolved, quiet = 'none' } = flags;
  const isQuietSet = [flags['quiet-zone'], flags['quiet-action'], parseList(flags['quiet-days'])].some(
    Boolean,
  );
  if (quiet === 'none' && isQuietSet) {
    throw new UsageError('--quiet-days, --quiet-zone and --quiet-action require --quiet HH:MM-HH:MM.');
  }
  const accounts = parseList(flags.accounts);
  return {
    ...{ accounts: String(accounts) === 'all' ? null : accounts, forMinutes },
    repeatMinutes: repeat === undefined ? undefined : parseRepeat(repeat),
    ...(resolved === undefined ? {} : { notifyResolved: resolved === 'on' }),
    quietHours: flags.quiet === undefined ? undefined : parseQuietHours(flags.quiet, flags),
  };
}

const parseRepeat = (text: string): number | null =>
  text === 'none' ? null : parseRange('repeat', text, REPEAT, ', or none');

function parseQuietHours(text: string, flags: FlagValues<typeof FIELDS>) {
  if (text === 'none') return null;
  const [, from, to] = /^(\d\d:\d\d)-(\d\d:\d\d)$/.exec(text) ?? [];
  if (from === undefined || to === undefined) {
    throw new UsageError('--quiet must be HH:MM-HH:MM, such as 21:00-08:00, or none.');
  }
  const { 'quiet-zone': zone = 'UTC', 'quiet-action': action = 'defer' } = flags;
  return { from, to, zone, action, days: parseList(flags['quiet-days']) ?? [...DAYS] };
}

const STATE_STYLE = { ok: 'green', pending: 'yellow', firing: 'red', new: 'dim', off: 'dim' } as const;

/** Returns the state of a rule. `new`: it was not evaluated yet. */
function getState({ enabled, state }: AlertRule): keyof typeof STATE_STYLE {
  if (!enabled) return 'off';
  return state.since === null ? 'new' : state.status;
}
const formatCondition = ({ condition, threshold }: AlertRule): string => `${condition} > ${threshold}`;
const formatTarget = ({ target }: AlertRule): string =>
  `${target.kind}: ${target.to?.join(', ') ?? target.host}`;

function printRule({ out }: Context, rule: ResponseData<'get', '/v1/alert-rules/{id}'>): void {
  const { quietHours: quiet, state } = rule;
  out.document(rule, () =>
    out.fields([
      ['Rule', sanitizeLine(rule.id)],
      ['Region', sanitizeLine(rule.region)],
      ['Name', sanitizeLine(rule.name)],
      ['Fires if', `${formatCondition(rule)}${rule.forMinutes > 0 ? ` for ${rule.forMinutes} min` : ''}`],
      ['Accounts', rule.accounts === null ? 'all' : sanitizeLine(rule.accounts.join(', '))],
      ['Target', sanitizeLine(formatTarget(rule))],
      ['Reminders', rule.repeatMinutes === null ? 'none' : `every ${rule.repeatMinutes} min`],
      ['When resolved', rule.notifyResolved ? 'a message' : 'no message'],
      [
        'Quiet hours',
        quiet &&
          `${quiet.from}-${quiet.to} ${sanitizeLine(quiet.zone)}, ${quiet.days.join(', ')}: ${quiet.action}`,
      ],
      ['State', out.paint(STATE_STYLE[getState(rule)], getState(rule))],
      ['Since', out.formatTimeWithAge(state.since)],
      ['Value', state.value === null ? null : String(state.value)],
      ['Last message', out.formatTimeWithAge(state.sentAt)],
      ['Problem', state.problem && sanitizeLine(state.problem)],
    ]),
  );
}
