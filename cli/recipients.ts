/** `jobwire recipients …` */

import type { ImportReport, Recipient, RecipientUpdate } from '../client/index.ts';
import { inputs } from '../client/inputs.ts';
import { mapValues } from '../shared/map-values.ts';
import {
  csvHeader,
  decodeCsv,
  formatCsvRow,
  NOT_UTF8,
  splitCsv,
} from '../shared/notifications/recipients-file.ts';
import {
  CSV,
  command,
  type Flags,
  type FlagValues,
  limitFlag,
  UsageError,
  withoutDefaults,
} from './command.ts';
import { parseList, readInputFile, withId } from './input.ts';
import { type Output, sanitizeLine } from './output.ts';

/** Exit code of an import with invalid rows. */
const BAD_ROWS = 6;

const atRecipient = (id: string, recipient: string) => ({ params: { path: { id, recipient } } });

const FIELDS = {
  name: { value: 'TEXT', about: 'Name of the recipient' },
  email: { value: 'ADDRESS', about: 'E-mail address' },
  mobile: {
    value: 'NUMBER',
    about: 'Mobile number, such as +64 21 123 4567, or in the national format of the region',
  },
  locale: {
    value: 'LOCALE',
    about: 'Locale of messages. Default: the account’s locale',
    choices: inputs['NewRecipient.locale'],
  },
  zone: { value: 'ZONE', about: 'Time zone, such as Europe/London. Default: the account’s zone' },
  channels: {
    value: 'A,B',
    about: 'Channels of messages. Default: each channel with an address',
    choices: inputs['NewRecipient.channels'],
    many: true,
  },
  kinds: {
    value: 'A,B',
    about: 'Kinds of messages. Default: dispatched, tracking',
    choices: inputs['NewRecipient.kinds'],
    many: true,
  },
} as const satisfies Flags;

const SCOPE = {
  'order-group': { value: 'NAME', about: 'Only jobs of this order group' },
  'order-number': { value: 'TEXT', about: 'Only jobs with this order number' },
  job: {
    value: 'NUMBER',
    about: 'Only this job',
    range: inputs['NewRecipient.jobNumber'],
    field: 'jobNumber',
  },
} as const satisfies Flags;

export const recipients = {
  'recipients list': command({
    about: 'Lists the notification recipients of an account.',
    more: 'With the role read, addresses are masked.',
    args: ['ACCOUNT'],
    flags: { limit: limitFlag(100), ...CSV },
    example: 'recipients list acme',
    async run({ api, out }, [account], { limit: max }) {
      return out.list(
        (onMore) =>
          api().list('/v1/accounts/{id}/recipients', 'recipients', { ...withId(account), max, onMore }),
        [
          { name: 'RECIPIENT', value: ({ id }) => id, long: true },
          { name: 'NAME', value: ({ name }) => name, long: true },
          { name: 'E-MAIL', value: ({ email }) => email, long: true },
          { name: 'MOBILE', value: ({ mobile }) => mobile },
          { name: 'CHANNELS', value: ({ channels }) => channels },
          { name: 'SCOPE', value: formatScope, long: true },
          { name: 'KINDS', value: ({ kinds }) => kinds, long: true },
          { name: 'LOCALE', value: ({ locale }) => locale },
          {
            name: 'STATE',
            value: ({ paused }) => (paused ? 'paused' : 'active'),
            style: ({ paused }) => (paused ? 'yellow' : 'green'),
          },
        ],
        'There are no recipients.',
      );
    },
  }),

  'recipients show': command({
    about: 'Shows a recipient.',
    args: ['ACCOUNT', 'ID'],
    example: 'recipients show acme 7f3k2m9q',
    async run({ api, out }, [account, id]) {
      const recipient = await api().get('/v1/accounts/{id}/recipients/{recipient}', atRecipient(account, id));
      const { name, email, mobile, zone, locale } = recipient;
      out.document(recipient, () =>
        out.fields([
          ['Recipient', sanitizeLine(recipient.id)],
          ['Name', name && sanitizeLine(name)],
          ['E-mail', email && sanitizeLine(email)],
          ['Mobile', mobile && sanitizeLine(mobile)],
          ['Scope', formatScope(recipient)],
          ['Channels', recipient.channels?.join(', ')],
          ['Kinds', recipient.kinds.join(', ')],
          ['Locale', locale],
          ['Zone', zone && sanitizeLine(zone)],
          ['State', recipient.paused ? out.paint('yellow', 'paused') : out.paint('green', 'active')],
        ]),
      );
    },
  }),

  'recipients add': command({
    about:
      'Adds a recipient of notifications about all jobs of an account, or about one order group, order or job.',
    args: ['ACCOUNT'],
    flags: {
      id: { value: 'ID', about: 'Id of the recipient. Default: generated' },
      ...FIELDS,
      ...SCOPE,
      paused: { about: 'Add the recipient paused' },
    },
    example: 'recipients add acme --name Ann --email ann@example.com --order-group Spring',
    async run({ api, out }, [account], flags) {
      const { paused, id } = flags;
      if (flags.email === undefined && flags.mobile === undefined) {
        throw new UsageError('--email or --mobile is missing.');
      }
      const body = { id, ...toBody(flags), ...toScope(flags), ...(paused ? { paused } : {}) };
      const created = await api().post('/v1/accounts/{id}/recipients', { ...withId(account), body });
      out.document(
        created,
        `${formatRecipient(created)} was added to ${sanitizeLine(account)} for ${formatScope(created)}.`,
      );
    },
  }),

  'recipients change': command({
    about: 'Changes the given values of a recipient. The value none removes a value.',
    args: ['ACCOUNT', 'ID'],
    flags: {
      ...withNone(withoutDefaults(FIELDS)),
      pause: { about: 'Pause notifications to the recipient', field: 'paused' },
      resume: { about: 'Resume notifications to the recipient', field: 'paused' },
    },
    example: 'recipients change acme 7f3k2m9q --mobile none --kinds dispatched',
    async run({ api, out }, [account, id], flags) {
      if (flags.pause && flags.resume) throw new UsageError('--pause and --resume can’t be combined.');
      const given = Object.entries(toBody(flags)).filter(([, value]) => value !== undefined);
      const body: RecipientUpdate = Object.fromEntries(
        given.map(([name, value]) => [name, String(value) === 'none' ? null : value]),
      );
      if (flags.pause || flags.resume) body.paused = flags.pause;
      if (Object.keys(body).length === 0)
        throw new UsageError('Nothing to change. Set at least one option, such as --email ADDRESS.');
      const at = atRecipient(account, id);
      const changed = await api().patch('/v1/accounts/{id}/recipients/{recipient}', { ...at, body });
      out.document(changed, `${formatRecipient(changed)} was changed.`);
    },
  }),

  'recipients remove': command({
    about: 'Removes a recipient.',
    args: ['ACCOUNT', 'ID'],
    example: 'recipients remove acme 7f3k2m9q',
    async run({ api, out }, [account, id]) {
      await api().delete('/v1/accounts/{id}/recipients/{recipient}', atRecipient(account, id));
      out.document({ removed: id }, `${sanitizeLine(id)} was removed.`);
    },
  }),

  'recipients import': command({
    about: 'Imports recipients from a CSV file and lists its invalid rows.',
    more: 'The columns are those of recipients export. If any row is invalid, the exit code is 6, and the valid rows are imported. The same file can be imported again.',
    args: ['ACCOUNT', 'FILE'],
    fields: { FILE: 'csv' },
    flags: { 'dry-run': { about: 'Validate only' } },
    example: 'recipients import acme recipients.csv --dry-run',
    async run({ api, out }, [account, file], flags) {
      const chunks = splitCsv(readCsv(file));
      const client = api();
      const invalidRows: ImportReport['invalidRows'] = [];
      const sum = { created: 0, updated: 0, unchanged: 0, invalidRows, dryRun: flags['dry-run'] };
      let done = 0;
      try {
        for (const [at, chunk] of chunks.entries()) {
          if (chunks.length > 1) out.progress(`Part ${at + 1} of ${chunks.length} …`);
          const body = { csv: chunk.csv, ...(flags['dry-run'] ? { dryRun: true } : {}) };
          const report = await client.post('/v1/accounts/{id}/recipients/import', {
            ...withId(account),
            body,
          });
          sum.created += report.created;
          sum.updated += report.updated;
          sum.unchanged += report.unchanged;
          done += 1;
          sum.invalidRows.push(
            ...report.invalidRows.map((row) => ({ ...row, line: chunk.toLine(row.line) })),
          );
        }
      } finally {
        // Also if a later part fails, because the earlier ones are imported.
        if (done > 0) printReport(out, sum);
      }
      return sum.invalidRows.length > 0 ? BAD_ROWS : undefined;
    },
  }),

  'recipients export': command({
    about: 'Writes the recipients of an account as CSV, in the format of recipients import.',
    more: 'Requires a key with the role operate or admin.',
    args: ['ACCOUNT'],
    example: 'recipients export acme',
    textOnly: true,
    async run({ api, out }, [account]) {
      const client = api();
      const { role } = await client.get('/v1/key');
      if (role === 'read') {
        out.note(
          'The API key has the role read, for which addresses are masked. Use a key of the role operate or admin.',
        );
        return 5;
      }
      const rows: string[] = [];
      const all = client.list('/v1/accounts/{id}/recipients', 'recipients', withId(account));
      // The own user's recipient is excluded, because it is synchronized from upstream.
      for await (const one of all) if (one.source === 'manual') rows.push(formatCsvRow(one));
      for (const row of [csvHeader, ...rows]) out.line(row);
      return undefined;
    },
  }),
};

function printReport(out: Output, report: ImportReport & { dryRun: boolean }): void {
  out.document(report, () => {
    if (report.invalidRows.length > 0) {
      out.table(
        report.invalidRows,
        [
          { name: 'LINE', value: ({ line }) => line, right: true },
          { name: 'FIELD', value: ({ field }) => field, style: () => 'yellow' },
          { name: 'REASON', value: ({ reason }) => reason, long: true },
        ],
        '',
      );
      out.line();
    }
    const bad =
      report.invalidRows.length > 0 ? out.paint('red', `${report.invalidRows.length} invalid`) : '0 invalid';
    const totals = `${report.created} new, ${report.updated} changed, ${report.unchanged} unchanged, ${bad}.`;
    out.line(report.dryRun ? `Dry run: ${totals} Nothing was written.` : totals);
  });
}

/** Returns options that accept `none`, too. */
function withNone<F extends Flags>(flags: F): F {
  return mapValues(flags, ({ choices, ...flag }) =>
    choices ? { ...flag, choices: [...choices, 'none'] } : flag,
  ) as F;
}

function toBody(flags: FlagValues<typeof FIELDS>) {
  const { name, email, mobile, zone, locale } = flags;
  const channels = parseList(flags.channels);
  const kinds = parseList(flags.kinds);
  return { name, email, mobile, locale, zone, channels, kinds };
}

function toScope(flags: FlagValues<typeof SCOPE>) {
  const given = Object.entries(SCOPE).filter(([flag]) => flags[flag as keyof typeof SCOPE] !== undefined);
  if (given.length > 1) {
    throw new UsageError('Only one of --order-group, --order-number and --job can be given.');
  }
  return { orderGroup: flags['order-group'], orderNumber: flags['order-number'], jobNumber: flags.job };
}

const formatRecipient = ({ id, name }: Recipient): string =>
  name === null ? sanitizeLine(id) : `${sanitizeLine(name)} (${sanitizeLine(id)})`;

function formatScope({ orderGroup, orderNumber, jobNumber }: Recipient): string {
  if (orderGroup !== null) return `order group ${sanitizeLine(orderGroup)}`;
  if (orderNumber !== null) return `order ${sanitizeLine(orderNumber)}`;
  return jobNumber === null ? 'all jobs' : `job ${jobNumber}`;
}

function readCsv(file: string): string {
  const text = decodeCsv(readInputFile(file, `FILE: ${file}`));
  if (text === undefined) throw new UsageError(`FILE: ${file} ${NOT_UTF8}.`);
  if (text.trim() === '')
    throw new UsageError(`FILE: ${file} is empty. Its first line must name the columns.`);
  return text;
}
