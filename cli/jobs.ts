/** `jobwire jobs …` */
import type { Event, JobEntry } from '../client/index.ts';
import { deliveryColumns } from './attempts.ts';
import { CSV, command, limitFlag, UsageError } from './command.ts';
import { eventPrinter } from './events.ts';
import { isDay, parseList } from './input.ts';
import { count, sanitizeLine } from './output.ts';

export const jobs = {
  'jobs list': command({
    about: 'Lists the current state of an account’s jobs: all jobs, or those that match all given filters.',
    args: ['ACCOUNT'],
    flags: {
      late: {
        about: 'Open jobs that Jobwire has observed as undispatched after their due time',
      },
      risk: {
        value: 'LEVEL',
        about: 'Open, undispatched jobs with this risk of being late',
        choices: ['late', 'at-risk', 'on-track', 'unknown'],
      },
      undispatched: { about: 'Open, undispatched jobs' },
      status: { value: 'NAME', about: 'Jobs in this status' },
      due: {
        value: 'DAY',
        about: 'Open, undispatched jobs due on this day, such as 2026-03-02',
        field: 'dueOn',
      },
      'due-from': {
        value: 'DAY',
        about: 'Open, undispatched jobs due on this day or later',
      },
      'due-before': { value: 'DAY', about: 'Open, undispatched jobs due before this day' },
      dispatched: { value: 'DAY', about: 'Jobs dispatched on this day', field: 'dispatchedOn' },
      'dispatched-from': { value: 'DAY', about: 'Jobs dispatched on this day or later' },
      'dispatched-before': { value: 'DAY', about: 'Jobs dispatched before this day' },
      'order-number': { value: 'TEXT', about: 'Jobs with this order number' },
      'order-group': { value: 'NAME', about: 'Jobs of this order group' },
      sort: {
        value: 'FIELD',
        about:
          'Sort order. dateDue requires a filter by status or due date, --late, --risk or --undispatched. dateOut requires a filter by day of dispatch',
        choices: ['jobNumber', 'dateDue', 'dateOut'],
      },
      descending: { about: 'Reverse the order of --sort' },
      expand: {
        value: 'A,B',
        about: 'Additional content of each job with --json',
        choices: ['detail', 'events'],
        many: true,
      },
      limit: limitFlag(100),
      ...CSV,
    },
    example: 'jobs list acme --late --status Proof --sort dateDue',
    async run({ api, out }, [account], flags) {
      if (flags.descending && flags.sort === undefined) {
        throw new UsageError('--descending requires --sort.');
      }
      const filters = {
        late: flags.late ? ('true' as const) : undefined,
        risk: flags.risk,
        undispatched: flags.undispatched ? ('true' as const) : undefined,
        status: flags.status,
        dueOn: parseDay('due', flags.due),
        dueFrom: parseDay('due-from', flags['due-from']),
        dueBefore: parseDay('due-before', flags['due-before']),
        dispatchedOn: parseDay('dispatched', flags.dispatched),
        dispatchedFrom: parseDay('dispatched-from', flags['dispatched-from']),
        dispatchedBefore: parseDay('dispatched-before', flags['dispatched-before']),
        orderNumber: flags['order-number'],
        orderGroup: flags['order-group'],
        sort: flags.sort && (`${flags.descending ? '-' : ''}${flags.sort}` as const),
        expand: parseList(flags.expand)?.join(','),
      };
      const params = { path: { id: account }, query: filters };
      return out.list(
        (onMore) => api().list('/v1/accounts/{id}/jobs', 'jobs', { params, max: flags.limit, onMore }),
        [
          { name: 'JOB', value: ({ jobNumber }) => jobNumber, right: true },
          { name: 'STATUS', value: ({ status }) => status },
          {
            name: 'DUE',
            value: ({ dateDue }) => dateDue,
            style: ({ mustDate }) => (mustDate ? 'bold' : undefined),
          },
          { name: 'RISK', value: formatRisk, style: ({ risk }) => (risk === 'late' ? 'bold' : undefined) },
          { name: 'DISPATCHED', value: ({ dateOut }) => dateOut },
          { name: 'ORDER', value: ({ orderNumber }) => orderNumber, long: true },
          { name: 'GROUP', value: ({ orderGroup }) => orderGroup, long: true },
          { name: 'STATE', value: formatState, style: ({ outcome }) => (outcome ? 'dim' : undefined) },
          { name: 'DESCRIPTION', value: ({ description }) => description, long: true },
        ],
        'There are no matching jobs.',
      );
    },
  }),

  'jobs show': command({
    about: 'Shows the current state of a job and its events.',
    args: ['ACCOUNT', 'NUMBER'],
    flags: { limit: limitFlag(100, 'events') },
    example: 'jobs show acme 100042',
    async run(context, [account, number], flags) {
      const { out } = context;
      checkNumber(number);
      const api = context.api();
      const path = { id: account, jobNumber: number };
      const { job, asOf } = await api.get('/v1/accounts/{id}/jobs/{jobNumber}', { params: { path } });
      const events: Event[] = [];
      let truncated = false;
      const onMore = (): void => {
        truncated = true;
      };
      const params = { path, query: { order: 'newest' } } as const;
      const newest = { params, max: flags.limit, onMore };
      for await (const event of api.list('/v1/accounts/{id}/jobs/{jobNumber}/events', 'events', newest)) {
        events.push(event);
      }
      // The API returned the newest first. They are printed in chronological order.
      events.reverse();
      out.document({ job, asOf, events }, () => {
        const parcels = job.tracking.map(({ number: parcel, link }) =>
          [parcel, link].filter((part) => part !== null).join(' '),
        );
        out.fields([
          ['Job', `${job.jobNumber} of ${sanitizeLine(account)}`],
          ['Status', job.status && sanitizeLine(job.status)],
          ['State', formatState(job)],
          ['Description', job.description && sanitizeLine(job.description)],
          ['Order number', job.orderNumber && sanitizeLine(job.orderNumber)],
          ['Order group', job.orderGroup && sanitizeLine(job.orderGroup)],
          ['Origin', job.originCode && sanitizeLine(job.originCode)],
          ['Due', job.dateDue && `${sanitizeLine(job.dateDue)}${job.mustDate ? ' (mandatory)' : ''}`],
          ['Risk', formatRisk(job)],
          ['Reason', describeForecast(job)],
          ['In status', describeStay(job)],
          [
            'Furthest behind',
            job.blockingLine &&
              `${sanitizeLine(job.blockingLine.status)}: line ${job.blockingLine.jobLineIds.join(', ')}`,
          ],
          ['Dispatched', job.dateOut && sanitizeLine(job.dateOut)],
          ...parcels.map((parcel): [string, string] => ['Parcel', sanitizeLine(parcel)]),
          ...(job.lines ?? []).map((line): [string, string] => [
            `Line ${line.jobLineId}`,
            sanitizeLine(line.status),
          ]),
          ['Invoice', job.invoiceNumber && sanitizeLine(job.invoiceNumber)],
          ['Last listed', out.formatTimeWithAge(job.lastListedAt)],
          ['Detail fetched', out.formatTimeWithAge(job.detailAt)],
        ]);
        if (events.length > 0) {
          out.line();
          const show = eventPrinter(context);
          for (const event of events) show(JSON.stringify(event));
        }
      });
      if (truncated) out.note('The job has more events. Use --limit to show more.');
    },
  }),

  'jobs durations': command({
    about:
      'Shows two usual durations for each status of the jobs of an account: how long a job has the status, and how long it takes from the beginning of the status until dispatch. Also shows how many of the jobs flagged as at risk became late.',
    args: ['ACCOUNT'],
    example: 'jobs durations acme',
    async run({ api, out }, [account]) {
      const params = { path: { id: account } };
      const durations = await api().get('/v1/accounts/{id}/status-durations', { params });
      const { statuses, flags, fromMonth, minimumJobs } = durations;
      out.document(durations, () => {
        out.table(
          statuses,
          [
            { name: 'STATUS', value: ({ status }) => status },
            { name: 'STAYS', value: ({ stays }) => stays, right: true },
            { name: 'P50', value: ({ stay }) => formatHours(stay?.p50Hours), right: true },
            { name: 'P90', value: ({ stay }) => formatHours(stay?.p90Hours), right: true },
            { name: 'DISPATCHES', value: ({ dispatches }) => dispatches, right: true },
            { name: 'LEFT P50', value: ({ remaining }) => formatHours(remaining?.p50Hours), right: true },
            { name: 'LEFT P90', value: ({ remaining }) => formatHours(remaining?.p90Hours), right: true },
          ],
          `There are no durations yet. They are counted when jobs change their status, and shown from ${minimumJobs} jobs on.`,
        );
        if (statuses.length > 0) out.line();
        const hasResults = flags.flagged + flags.late > 0;
        out.fields([
          [
            'Durations',
            statuses.length > 0 ? `since ${fromMonth}; unknown with fewer than ${minimumJobs} jobs` : null,
          ],
          [
            'Flagged',
            hasResults
              ? `${count(flags.flagged, 'job')} since ${flags.from}; ${flags.flaggedLate} became late`
              : 'no results yet: no job became late, and no flagged job was dispatched',
          ],
          [
            'Late',
            hasResults
              ? `${count(flags.late, 'job')}; ${flags.lateFlaggedDayBefore} flagged a day before`
              : null,
          ],
        ]);
      });
    },
  }),

  'jobs deliveries': command({
    about: 'Lists the delivery attempts of the events of a job, newest event first.',
    args: ['ACCOUNT', 'NUMBER'],
    flags: { limit: limitFlag(50), ...CSV },
    example: 'jobs deliveries acme 100042',
    async run(context, [account, number], { limit: max }) {
      checkNumber(number);
      const params = { path: { id: account, jobNumber: number } };
      const path = '/v1/accounts/{id}/jobs/{jobNumber}/deliveries';
      // A page has the attempts of at most 20 events.
      const options = { params, max, pageSize: 20 };
      return context.out.list(
        (onMore) => context.api().list(path, 'deliveries', { ...options, onMore }),
        deliveryColumns(context),
        'There are no delivery attempts.',
      );
    },
  }),
};

/** Throws a {@link UsageError} if a text is not a job number. */
export function checkNumber(text: string): void {
  if (!/^[1-9]\d{0,11}$/.test(text))
    throw new UsageError('NUMBER must be an integer from 1 to 999999999999.');
}

function parseDay(flag: string, text: string | undefined): string | undefined {
  if (text === undefined || isDay(text)) return text;
  throw new UsageError(`--${flag} must be a day (YYYY-MM-DD).`);
}

/** Returns the risk of a job, and by how much it is late. */
function formatRisk({ risk, hoursLate }: JobEntry): string | null {
  return hoursLate === null ? risk : `late by ${formatHours(hoursLate)}`;
}

/** Returns the reason for the risk of a job, in numbers. */
function describeForecast({ forecast }: JobEntry): string | null {
  if (!forecast) return null;
  const { hoursLeft, remaining, unknown } = forecast;
  if (remaining === null || hoursLeft === null) return UNKNOWN_RISKS[unknown ?? 'too-few-jobs'];
  const { p50Hours, p90Hours, jobs: compared, longer } = remaining;
  const left = hoursLeft < 0 ? 'due time has passed' : `${formatHours(hoursLeft)} left`;
  const usual = `usually ${formatHours(p50Hours)} until dispatch, ${formatHours(p90Hours)} for 90 % of the jobs`;
  return `${left}; ${usual}; ${longer} of ${compared} jobs needed longer`;
}

const UNKNOWN_RISKS = {
  'no-due-date': 'no due date',
  'entry-not-observed': 'Jobwire did not observe when the job entered its status',
  'entry-too-vague': 'it is too uncertain when the job entered its status',
  'too-few-jobs': 'too few jobs that had this status were dispatched',
} as const;

/** Returns the time of a job in its status, with the usual one. */
function describeStay({ inStatus }: JobEntry): string | null {
  if (!inStatus) return null;
  const { hours, usual, sinceEarliest } = inStatus;
  const stay = `${sinceEarliest === null ? 'at least ' : ''}${formatHours(hours)}`;
  return usual
    ? `${stay}; usually ${formatHours(usual.p50Hours)}, ${formatHours(usual.p90Hours)} for 90 % of the jobs`
    : stay;
}

/** Formats hours: of three days or more, as days. */
function formatHours(hours: number | undefined): string | null {
  if (hours === undefined) return null;
  return Math.abs(hours) < 72 ? `${hours.toFixed(1)} h` : `${(hours / 24).toFixed(1)} d`;
}

/** Returns the tracking state of a job. */
function formatState({ outcome, phase }: JobEntry): string {
  if (outcome !== null) return sanitizeLine(outcome);
  return phase === 'departed' ? 'missing' : phase === 'settling' ? 'left the list' : 'open';
}
