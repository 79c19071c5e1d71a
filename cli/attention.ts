/** `jobwire attention …` and `jobwire figures`: what needs attention, and the figures of the overview. */
import type { AttentionItem } from '../client/index.ts';
import { inputs } from '../client/inputs.ts';
import { quote } from '../local/terminal.ts';
import { listCounted } from './catalogue.ts';
import { type Context, command, limitFlag, UsageError } from './command.ts';
import { parseList, parseTime, withId } from './input.ts';
import { count, sanitizeLine } from './output.ts';

const NOTE = { value: 'TEXT', about: 'Note for colleagues. Replaces the current one' } as const;
const REGION = { value: 'REGION', about: 'Only this region' } as const;

export const attentionCommands = {
  'attention list': command({
    about: 'Lists what needs attention, by rank, such as late jobs and failing endpoints.',
    flags: {
      region: REGION,
      kind: { value: 'A,B', about: 'Only items of these kinds, such as job_late', many: true },
      account: { value: 'ID', about: 'Only items of this account' },
      assignee: { value: 'NAME', about: 'Only items assigned to this name. "none": only unassigned items' },
      state: {
        value: 'STATE',
        about: 'Only items in this state. Default: open',
        choices: inputs['listAttention.state'],
      },
      limit: limitFlag(50),
    },
    example: 'attention list --kind job_late --assignee none',
    async run({ api, out }, _args, { kind, limit: max, ...filters }) {
      const params = { query: { ...filters, kind: parseList(kind)?.join(',') } };
      return out.list(
        (onMore) => api().list('/v1/attention', 'items', { params, max, onMore }),
        [
          { name: 'RANK', value: ({ rank }) => rank.score, right: true },
          { name: 'KIND', value: (one) => one.kind },
          { name: 'ACCOUNT', value: ({ account }) => account },
          { name: 'SUBJECT', value: ({ subject }) => subject.name, long: true },
          { name: 'SINCE', value: ({ since }) => out.formatTimeCell(since) },
          { name: 'CAUSE', value: ({ cause }) => cause.summary, long: true },
          { name: 'ASSIGNEE', value: ({ assignee }) => assignee },
          { name: 'STATE', value: ({ state }) => state },
          { name: 'ID', value: ({ id }) => id },
        ],
        'Nothing needs attention.',
      );
    },
  }),

  'attention show': command({
    about: 'Shows an item: its cause, its impact, and the recommended actions as commands.',
    args: ['ITEM'],
    example: 'attention show us~acme~job~100042',
    async run(context, [item]) {
      printItem(context, await context.api().get('/v1/attention/{id}', withId(item)));
    },
  }),

  'attention history': command({
    about: 'Lists the actions of users on an item, newest first.',
    args: ['ITEM'],
    flags: { limit: limitFlag(50) },
    example: 'attention history us~acme~job~100042',
    async run({ api, out }, [item], { limit: max }) {
      return out.list(
        (onMore) => api().list('/v1/attention/{id}/history', 'entries', { ...withId(item), max, onMore }),
        [
          { name: 'TIME', value: ({ at }) => out.formatTimeCell(at) },
          { name: 'BY', value: ({ by }) => by.name ?? by.id },
          { name: 'ACTION', value: ({ action }) => action },
          { name: 'UNTIL', value: ({ until }) => (until === null ? null : out.formatTimeCell(until)) },
          { name: 'ASSIGNEE', value: ({ assignee }) => assignee },
          { name: 'NOTE', value: ({ note }) => note, long: true },
          { name: 'CAUSE', value: ({ cause }) => cause, long: true },
        ],
        'This item was not changed.',
      );
    },
  }),

  'attention snooze': command({
    about: 'Hides an item until a given time or until its cause changes materially, whichever is earlier.',
    args: ['ITEM'],
    flags: {
      until: {
        value: 'WHEN',
        about: 'End of the snooze: a duration such as 4h, a date such as 2026-03-02, or a timestamp',
        required: true,
      },
      note: NOTE,
    },
    example: 'attention snooze us~acme~job~100042 --until 1d',
    async run(context, [item], { until, note }) {
      const body = { until: parseTime('until', until, 'ahead'), note };
      printItem(context, await context.api().post('/v1/attention/{id}/snooze', { ...withId(item), body }));
    },
  }),

  'attention ack': command({
    about: 'Acknowledges an item: hides it until its cause changes materially.',
    args: ['ITEM'],
    flags: { note: NOTE },
    example: 'attention ack us~acme~job~100042 --note informed',
    async run(context, [item], { note }) {
      const call = { ...withId(item), body: { note } };
      printItem(context, await context.api().post('/v1/attention/{id}/acknowledge', call));
    },
  }),

  'attention reopen': command({
    about: 'Undoes a snooze or an acknowledgement of an item.',
    args: ['ITEM'],
    flags: { note: NOTE },
    example: 'attention reopen us~acme~job~100042',
    async run(context, [item], { note }) {
      const call = { ...withId(item), body: { note } };
      printItem(context, await context.api().post('/v1/attention/{id}/reopen', call));
    },
  }),

  'attention assign': command({
    about: 'Assigns an item to a person by name, or removes the assignee.',
    args: ['ITEM', 'NAME?'],
    flags: { unassign: { about: 'Remove the assignee' }, note: NOTE },
    example: 'attention assign us~acme~job~100042 ann',
    async run(context, [item, name], { unassign, note }) {
      if (unassign === (name !== undefined)) {
        throw new UsageError('Either NAME or --unassign is required, but not both.');
      }
      const call = { ...withId(item), body: { assignee: name ?? null, note } };
      printItem(context, await context.api().post('/v1/attention/{id}/assign', call));
    },
  }),

  'attention note': command({
    about: 'Sets the note of an item, or removes it. Earlier notes stay in its history.',
    args: ['ITEM', 'TEXT?'],
    flags: { remove: { about: 'Remove the note' } },
    example: 'attention note us~acme~job~100042 Called',
    async run(context, [item, text], { remove }) {
      if (remove === (text !== undefined)) {
        throw new UsageError('Either TEXT or --remove is required, but not both.');
      }
      const call = { ...withId(item), body: { note: text ?? null } };
      printItem(context, await context.api().post('/v1/attention/{id}/note', call));
    },
  }),

  'attention figures': command({
    about: 'Shows key figures: open, late, due and dispatched jobs, and open items by kind.',
    flags: { region: REGION, day: { value: 'DAY', about: 'Day, such as 2026-03-02. Default: today (UTC)' } },
    example: 'attention figures',
    async run({ api, out }, _args, { region, day }) {
      const figures = await api().get('/v1/figures', { params: { query: { region, day } } });
      const { open, onTime, attention } = figures;
      out.document(figures, () => {
        out.fields([
          ['Open jobs', `${open.jobs} (${open.dispatched} dispatched)`],
          ['Late', String(open.late)],
          ['Due', `${figures.dueToday} on ${figures.day}`],
          ['Dispatched', `${figures.dispatchedToday} on ${figures.day}`],
          ['On time', `${onTime.onTime} of ${onTime.of} in ${onTime.days} days`],
          ['Accounts', `${figures.accountsCounted} of ${figures.accounts} counted`],
          ...listCounted(figures),
          ['Attention', `${count(attention.open, 'open item')}${attention.complete ? '' : ' or more'}`],
          ...attention.byKind.map(({ kind, items }): [string, string] => [`  ${kind}`, String(items)]),
        ]);
      });
    },
  }),
};

type Action = AttentionItem['actions'][number];

/** Commands of the recommended actions, with parts of their paths. Words in capitals are left to the user. */
const ACTION_COMMANDS: Readonly<Record<string, string>> = {
  getJob: 'jobs show {id} {sub}',
  sendNote: 'messages send {id} {sub} RECIPIENT TEXT',
  listJobMessages: 'messages list {id} --job {sub}',
  getMessage: 'messages show {id} {sub}',
  listEndpointDeliveries: 'endpoints deliveries {id} --region {region} --failed',
  enableEndpoint: 'endpoints enable {id} --region {region}',
  resumeEndpoint: 'endpoints resume {id} --region {region}',
  retryParkedEvents: 'endpoints retry {id} --region {region} --all',
  redeliverEvents: 'endpoints redeliver {id} --region {region} --dead --since {from}',
  pingEndpoint: 'endpoints ping {id} --region {region}',
  getEndpointHealth: 'endpoints health {id} --region {region}',
  resumeAccount: 'accounts resume {id}',
  confirmAccount: 'accounts confirm {id}',
  testAccount: 'accounts test {id}',
  rotateCredentials: 'accounts rotate {id} --client-id CLIENT_ID',
  getAccountStatus: 'accounts show {id}',
  getRegion: 'regions show {id}',
};

/** Returns the command of an action without the name of the CLI. `undefined`: the API is newer and has another action. */
export function toActionCommand({ operation, path, body }: Pick<Action, 'operation' | 'path' | 'body'>) {
  const command = Object.hasOwn(ACTION_COMMANDS, operation) ? ACTION_COMMANDS[operation] : undefined;
  const { pathname, searchParams } = new URL(path, 'http://jobwire');
  const [, , , id, , sub] = pathname.split('/').map(decodeURIComponent);
  const filter = body?.filter as { readonly from?: string } | undefined;
  const values: Readonly<Record<string, string | null | undefined>> = {
    ...{ id, sub, region: searchParams.get('region'), from: filter?.from },
  };
  return command?.replace(/\{(\w+)\}/g, (_, name: string) => quote(sanitizeLine(values[name])));
}

function printItem({ out, toCommand }: Context, item: AttentionItem): void {
  const { cause, impact, customer } = item;
  const events = [
    [impact.waitingEvents, 'waiting'],
    [impact.parkedEvents, 'parked'],
    [impact.deadEvents, 'dead'],
  ].flatMap(([number, what]) => (number ? [`${number} ${what}`] : []));
  out.document(item, () => {
    out.fields([
      ['Item', sanitizeLine(item.id)],
      ['Kind', item.kind],
      ['Account', item.account],
      ['Subject', sanitizeLine(item.subject.name)],
      ['Cause', sanitizeLine(cause.summary)],
      ['Error', cause.reason && sanitizeLine(cause.reason)],
      ['Since', out.formatTimeWithAge(item.since)],
      ['Jobs', impact.jobs === null ? null : String(impact.jobs)],
      ['Events', events.length > 0 ? events.join(', ') : null],
      ['Customer', customer && (customer.informed ? 'notified' : 'not notified')],
      [
        'Rank',
        `${item.rank.score}: ${item.rank.components.map(({ points, explanation }) => `${points} ${explanation}`).join('; ')}`,
      ],
      [
        'State',
        item.snoozedUntil ? `${item.state} until ${out.formatTimeWithAge(item.snoozedUntil)}` : item.state,
      ],
      ['Assignee', item.assignee && sanitizeLine(item.assignee)],
      ['Note', item.note && sanitizeLine(item.note)],
      [
        'Changed',
        item.changedBy &&
          `${out.formatTimeWithAge(item.changedAt)} by ${sanitizeLine(item.changedBy.name ?? item.changedBy.id)}`,
      ],
      ...item.actions.map((action): [string, string] => {
        const command = toActionCommand(action);
        const { operation, method, path } = action;
        return [
          'Action',
          command === undefined ? `${operation}: ${method} ${sanitizeLine(path)}` : toCommand(command),
        ];
      }),
    ]);
  });
}
