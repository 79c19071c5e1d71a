/** `jobwire recipients …` */
import { readFileSync } from 'node:fs';
import type * as z from 'zod';
import type * as views from '../shared/api/notification-views.ts';
import {
  csvHeader,
  decodeCsv,
  formatCsvRow,
  NOT_UTF8,
  splitCsv,
} from '../shared/notifications/recipients-file.ts';
import { command, type Flags, type FlagValues, UsageError } from './command.ts';
import { listOf, segment, wholeNumber } from './input.ts';
import { clean } from './output.ts';

type Recipient = z.infer<typeof views.Recipient>;
type ImportReport = z.infer<typeof views.ImportReport>;

/** Exit code of an import with invalid rows. */
const BAD_ROWS = 6;

const pathOf = (account: string, rest = ''): string => `/v1/accounts/${segment(account)}/recipients${rest}`;

const FIELDS = {
  name: { value: 'TEXT', about: 'How to address them' },
  email: { value: 'ADDRESS', about: 'E-mail address' },
  mobile: { value: 'NUMBER', about: 'Mobile number: +64 21 123 4567, or as it is dialled in the region' },
  locale: { value: 'LOCALE', about: 'en-US, en-GB, en-AU, en-NZ, de or fr (the account’s)' },
  zone: { value: 'ZONE', about: 'Time zone: Europe/London (the account’s)' },
  channels: { value: 'A,B', about: 'email, sms (what there is an address for)', many: true },
  kinds: {
    value: 'A,B',
    about:
      'What they are told of: dispatched, tracking, dispatch_revoked, due_date_changed, cancelled (dispatched, tracking)',
    many: true,
  },
} as const satisfies Flags;

const SCOPE = {
  'order-group': { value: 'NAME', about: 'Only of jobs of this order group', field: 'orderGroup' },
  'order-number': { value: 'TEXT', about: 'Only of jobs with this order number', field: 'orderNumber' },
  job: { value: 'NUMBER', about: 'Only of this job', field: 'jobNumber' },
} as const satisfies Flags;

export const recipients = {
  'recipients list': command({
    about: 'Lists who is told about the jobs of an account.',
    more: 'Keys of role read are shown addresses without their middle.',
    args: ['ACCOUNT'],
    flags: { limit: { value: 'N', about: 'At most so many (100)' } },
    example: 'recipients list acme',
    async run({ api, out }, [account], { limit = '100' }) {
      const most = wholeNumber('limit', limit, 1, 1_000_000);
      return out.list(
        (more) => api().list<Recipient>(pathOf(account), 'recipients', {}, most, more),
        [
          { name: 'RECIPIENT', of: ({ id }) => id, long: true },
          { name: 'NAME', of: ({ name }) => name, long: true },
          { name: 'E-MAIL', of: ({ email }) => email, long: true },
          { name: 'MOBILE', of: ({ mobile }) => mobile },
          { name: 'BY', of: ({ channels }) => channels },
          { name: 'FOR', of: forWhat, long: true },
          { name: 'OF', of: ({ kinds }) => kinds, long: true },
          { name: 'LOCALE', of: ({ locale }) => locale },
          {
            name: 'STATE',
            of: ({ paused }) => (paused ? 'paused' : 'active'),
            style: ({ paused }) => (paused ? 'yellow' : 'green'),
          },
        ],
        'There are no recipients.',
      );
    },
  }),

  'recipients add': command({
    about: 'Adds somebody who is told about the jobs of an account: all of them, or those of one thing.',
    args: ['ACCOUNT'],
    flags: {
      id: { value: 'ID', about: 'Their id (generated)' },
      ...FIELDS,
      ...SCOPE,
      paused: { about: 'Add them paused' },
    },
    example: 'recipients add acme --name Ann --email ann@example.com --order-group Spring',
    async run({ api, out }, [account], flags) {
      const { paused, id } = flags;
      const body = { id, ...bodyOf(flags), ...scopeOf(flags), ...(paused ? { paused } : {}) };
      const made = await api().post<Recipient>(pathOf(account), body);
      out.document(made, () => out.line(`${who(made)} is told of ${forWhat(made)} of ${clean(account)}.`));
      return undefined;
    },
  }),

  'recipients change': command({
    about: 'Changes a recipient. What is not named stays as it is; none takes away a value.',
    args: ['ACCOUNT', 'ID'],
    flags: {
      ...FIELDS,
      pause: { about: 'They are told nothing for the time being', field: 'paused' },
      resume: { about: 'They are told again', field: 'paused' },
    },
    example: 'recipients change acme 7f3k2m9q --mobile none --kinds dispatched',
    async run({ api, out }, [account, id], flags) {
      if (flags.pause && flags.resume) throw new UsageError('--pause and --resume can’t be combined.');
      const given = Object.entries(bodyOf(flags)).filter(([, value]) => value !== undefined);
      const body: Record<string, unknown> = Object.fromEntries(
        given.map(([name, value]) => [name, value === 'none' ? null : value]),
      );
      if (flags.pause || flags.resume) body.paused = flags.pause;
      if (Object.keys(body).length === 0) throw new UsageError('Say what to change: --email ADDRESS, say.');
      const changed = await api().patch<Recipient>(pathOf(account, `/${segment(id)}`), body);
      out.document(changed, () => out.line(`${who(changed)} is changed.`));
      return undefined;
    },
  }),

  'recipients remove': command({
    about: 'Removes a recipient: nothing is sent to them any more.',
    args: ['ACCOUNT', 'ID'],
    flags: {},
    example: 'recipients remove acme 7f3k2m9q',
    async run({ api, out }, [account, id]) {
      await api().remove(pathOf(account, `/${segment(id)}`));
      out.document({ removed: id }, () => out.line(`${clean(id)} is removed.`));
      return undefined;
    },
  }),

  'recipients import': command({
    about: 'Adds and changes recipients by a CSV file, and says which of its rows are not good.',
    more: 'The first line names the columns, as recipients export writes them. Rows that are not good are left out, with the line, the field and the reason; the exit code is 6 then. The same file may be imported again: rows that changed nothing are told apart.',
    args: ['ACCOUNT', 'FILE'],
    flags: { 'dry-run': { about: 'Only look: nothing is written' } },
    example: 'recipients import acme recipients.csv --dry-run',
    async run({ api, out }, [account, file], flags) {
      const chunks = splitCsv(textIn(file));
      const client = api();
      const sum = { created: 0, updated: 0, unchanged: 0, invalidRows: [] as ImportReport['invalidRows'] };
      for (const [at, chunk] of chunks.entries()) {
        if (chunks.length > 1) out.progress(`Part ${at + 1} of ${chunks.length} …`);
        const body = { csv: chunk.csv, ...(flags['dry-run'] ? { dryRun: true } : {}) };
        const report = await client.post<ImportReport>(pathOf(account, '/import'), body);
        sum.created += report.created;
        sum.updated += report.updated;
        sum.unchanged += report.unchanged;
        sum.invalidRows.push(...report.invalidRows.map((row) => ({ ...row, line: chunk.lineOf(row.line) })));
      }
      out.document({ ...sum, dryRun: flags['dry-run'] }, () => {
        if (sum.invalidRows.length > 0) {
          out.table(
            sum.invalidRows,
            [
              { name: 'LINE', of: ({ line }) => line, right: true },
              { name: 'FIELD', of: ({ field }) => field, style: () => 'yellow' },
              { name: 'WHY', of: ({ reason }) => reason, long: true },
            ],
            '',
          );
          out.line();
        }
        const bad =
          sum.invalidRows.length > 0 ? out.paint('red', `${sum.invalidRows.length} not good`) : '0 not good';
        const said = `${sum.created} new, ${sum.updated} changed, ${sum.unchanged} unchanged, ${bad}.`;
        out.line(flags['dry-run'] ? `It would be: ${said} Nothing was written.` : said);
      });
      return sum.invalidRows.length > 0 ? BAD_ROWS : undefined;
    },
  }),

  'recipients export': command({
    about: 'Writes the recipients of an account as CSV, as recipients import reads it.',
    more: 'It takes a key of role operate or above: others are shown addresses without their middle, and an import would be of those.',
    args: ['ACCOUNT'],
    flags: {},
    example: 'recipients export acme',
    textOnly: true,
    async run({ api, out }, [account]) {
      const client = api();
      const { role } = await client.get<{ role: string }>('/v1/key');
      if (role === 'read') {
        out.note(
          'The key is of role read: addresses are not shown to it. Take one of role operate or above.',
        );
        return 5;
      }
      out.line(csvHeader);
      const all = client.list<Recipient>(pathOf(account), 'recipients', {}, 10_000_000, () => {});
      // The own user's recipient is excluded, because it is synchronized from upstream.
      for await (const one of all) if (one.source === 'manual') out.line(formatCsvRow(one));
      return undefined;
    },
  }),
};

function bodyOf(flags: FlagValues<typeof FIELDS>) {
  const { name, email, mobile, locale, zone } = flags;
  const channels = listOf(flags.channels);
  const kinds = listOf(flags.kinds);
  return { name, email, mobile, locale, zone, channels, kinds };
}

function scopeOf(flags: FlagValues<typeof SCOPE>) {
  const given = Object.entries(SCOPE).filter(([flag]) => flags[flag as keyof typeof SCOPE] !== undefined);
  if (given.length > 1) {
    throw new UsageError('Only one of --order-group, --order-number and --job can be given.');
  }
  return {
    orderGroup: flags['order-group'],
    orderNumber: flags['order-number'],
    jobNumber: flags.job === undefined ? undefined : wholeNumber('job', flags.job, 1, 999_999_999_999),
  };
}

const who = ({ id, name }: Recipient): string =>
  name === null ? clean(id) : `${clean(name)} (${clean(id)})`;

function forWhat({ orderGroup, orderNumber, jobNumber }: Recipient): string {
  if (orderGroup !== null) return `order group ${clean(orderGroup)}`;
  if (orderNumber !== null) return `order ${clean(orderNumber)}`;
  return jobNumber === null ? 'all jobs' : `job ${jobNumber}`;
}

function textIn(file: string): string {
  let bytes: Uint8Array;
  try {
    bytes = readFileSync(file);
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    throw new UsageError(`FILE: ${file} can’t be read (${code ?? 'unknown'}).`, { cause });
  }
  const text = decodeCsv(bytes);
  if (text === undefined) throw new UsageError(`FILE: ${file} ${NOT_UTF8}.`);
  if (text.trim() === '')
    throw new UsageError(`FILE: ${file} is empty; its first line must name the columns.`);
  return text;
}
