/** `jobwire jobs …` */
import type { JobEntry, JobRecord } from '../shared/api/jobs.ts';
import type { JobEvent } from '../shared/events/event.ts';
import { command, UsageError } from './command.ts';
import { eventPrinter } from './events.ts';
import { segment, wholeNumber } from './input.ts';
import { clean } from './output.ts';

const pathOf = (account: string, rest = ''): string => `/v1/accounts/${segment(account)}/jobs${rest}`;

export const jobs = {
  'jobs list': command({
    about: 'Lists an account’s jobs as they stand: all, or those of one filter.',
    args: ['ACCOUNT'],
    flags: {
      late: { about: 'Open, not dispatched, and past the due instant' },
      status: { value: 'NAME', about: 'In this status' },
      due: { value: 'DAY', about: 'Open, not dispatched, and due on this day (2026-03-02)', field: 'dueOn' },
      'due-before': { value: 'DAY', about: 'The same, due before this day', field: 'dueBefore' },
      'order-number': { value: 'TEXT', about: 'With this order number', field: 'orderNumber' },
      'order-group': { value: 'NAME', about: 'Of this order group', field: 'orderGroup' },
      limit: { value: 'N', about: 'At most so many (100)' },
    },
    example: 'jobs list acme --late',
    async run({ api, out }, [account], flags) {
      const filters = {
        late: flags.late ? true : undefined,
        status: flags.status,
        dueOn: dayOf('due', flags.due),
        dueBefore: dayOf('due-before', flags['due-before']),
        orderNumber: flags['order-number'],
        orderGroup: flags['order-group'],
      };
      if (Object.values(filters).filter((value) => value !== undefined).length > 1) {
        throw new UsageError(
          'Only one of --late, --status, --due, --due-before, --order-number and --order-group can be given.',
        );
      }
      const limit = wholeNumber('limit', flags.limit ?? '100', 1, 1_000_000);
      return out.list(
        (more) => api().list<JobEntry>(pathOf(account), 'jobs', filters, limit, more),
        [
          { name: 'JOB', of: ({ jobNumber }) => jobNumber, right: true },
          { name: 'STATUS', of: ({ status }) => status },
          { name: 'DUE', of: dueOf, style: ({ mustDate }) => (mustDate ? 'bold' : undefined) },
          { name: 'DISPATCHED', of: ({ dateOut }) => dateOut?.slice(0, 10) },
          { name: 'ORDER', of: ({ orderNumber }) => orderNumber, long: true },
          { name: 'GROUP', of: ({ orderGroup }) => orderGroup, long: true },
          { name: 'IS', of: isOf, style: ({ outcome }) => (outcome ? 'dim' : undefined) },
          { name: 'DESCRIPTION', of: ({ description }) => description, long: true },
        ],
        'There are no such jobs.',
      );
    },
  }),

  'jobs show': command({
    about: 'Shows a job as it stands, with its events.',
    args: ['ACCOUNT', 'NUMBER'],
    flags: { limit: { value: 'N', about: 'At most so many events (100)' } },
    example: 'jobs show acme 100042',
    async run(context, [account, number], flags) {
      const { out } = context;
      if (!/^[1-9]\d{0,11}$/.test(number)) throw new UsageError('NUMBER must be the number of a job.');
      const limit = wholeNumber('limit', flags.limit ?? '100', 1, 100_000);
      const api = context.api();
      const { job, asOf } = await api.get<{ job: JobRecord; asOf: string }>(pathOf(account, `/${number}`));
      const said: JobEvent[] = [];
      const path = pathOf(account, `/${number}/events`);
      let cut = false;
      for await (const event of api.list<JobEvent>(path, 'events', { order: 'newest' }, limit, () => {
        cut = true;
      })) {
        said.push(event);
      }
      // The API returned the newest first. They are printed in chronological order.
      said.reverse();
      out.document({ job, asOf, events: said }, () => {
        const parcels = job.tracking.map(({ number: parcel, link }) =>
          [parcel, link].filter((part) => part !== null).join(' '),
        );
        out.facts([
          ['Job', `${job.jobNumber} of ${clean(account)}`],
          ['Status', job.status && clean(job.status)],
          ['Is', isOf(job)],
          ['Description', job.description && clean(job.description)],
          ['Order number', job.orderNumber && clean(job.orderNumber)],
          ['Order group', job.orderGroup && clean(job.orderGroup)],
          ['Origin', job.originCode && clean(job.originCode)],
          ['Due', job.dateDue && `${clean(job.dateDue)}${job.mustDate ? ' (must)' : ''}`],
          ['Dispatched', job.dateOut && clean(job.dateOut)],
          ...parcels.map((parcel): [string, string] => ['Parcel', clean(parcel)]),
          ...(job.lines ?? []).map((line): [string, string] => [
            `Line ${line.jobLineId}`,
            clean(line.status),
          ]),
          ['Invoice', job.invoiceNumber && clean(job.invoiceNumber)],
          ['Last in the list', out.exactly(job.lastListedAt)],
          ['Record read', out.exactly(job.detailAt)],
        ]);
        if (said.length > 0) {
          out.line();
          const show = eventPrinter(context);
          for (const event of said) show(JSON.stringify(event));
        }
      });
      if (cut) out.note('It has more events; --limit shows more of them.');
      return undefined;
    },
  }),
};

function dayOf(flag: string, text: string | undefined): string | undefined {
  if (text === undefined || (/^\d{4}-\d\d-\d\d$/.test(text) && !Number.isNaN(Date.parse(text)))) return text;
  throw new UsageError(`--${flag} must be a day (YYYY-MM-DD).`);
}

function dueOf({ dateDue }: JobEntry): string | undefined {
  return dateDue?.slice(0, 16).replace('T', ' ');
}

/** Returns the tracking state of a job. */
function isOf({ outcome, phase }: JobEntry): string {
  if (outcome !== null) return clean(outcome);
  return phase === 'departed' ? 'missing' : phase === 'settling' ? 'left the list' : 'open';
}
