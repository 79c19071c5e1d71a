/** `jobwire event-types …`, `regions …` and `get`: what a Jobwire serves. */
import { type OpenJobs, type RegionOpenJobs, type Rollup, UnreachableError } from '../client/index.ts';
import { eventTypes } from '../client/inputs.ts';
import { type Context, CSV, command, type Flags, type FlagValues, limitFlag, UsageError } from './command.ts';
import { suggestText, withId } from './input.ts';
import { count, sanitizeLine, toJson } from './output.ts';

/** Options of the days of daily statistics. */
export const DAYS = {
  from: { value: 'DAY', about: 'First day, such as 2026-03-02. Default: six days before --to' },
  to: { value: 'DAY', about: 'Last day. Default: today (UTC)' },
} as const satisfies Flags;

export const toDays = ({ from, to }: FlagValues<typeof DAYS>) => ({ from, to });

export const eventTypeCommands = {
  'event-types list': command({
    about: 'Lists the event types and when each is emitted.',
    example: 'event-types list',
    async run({ api, out }) {
      const { types } = await api().get('/v1/event-types');
      return out.list(
        async function* () {
          yield* types;
        },
        [
          { name: 'TYPE', value: ({ type }) => type },
          { name: 'EMITTED', value: ({ when }) => when, long: true },
        ],
        'There are no event types.',
      );
    },
  }),

  'event-types show': command({
    about: 'Shows when an event type is emitted, and an example event.',
    args: ['TYPE'],
    suggestions: { TYPE: eventTypes },
    example: 'event-types show job.dispatched',
    async run({ api, out, toCommand }, [type]) {
      const path = { params: { path: { type } } };
      // A later version of Jobwire may have further types, so that the API decides.
      const found = await api().get('/v1/event-types/{type}', path).catch(suggestText(type, eventTypes));
      const example = await api().get('/v1/event-types/{type}/example', path);
      out.document({ ...found, example }, () => {
        out.fields([
          ['Type', sanitizeLine(found.type)],
          ['Emitted', sanitizeLine(found.when)],
          ['Schema', toCommand(`get ${sanitizeLine(found.schema)}`)],
        ]);
        out.line();
        out.line(toJson(example, 2));
      });
    },
  }),
};

export const regions = {
  'regions list': command({
    about: 'Lists the regions of the ordering API and their states.',
    flags: { limit: limitFlag(100), ...CSV },
    example: 'regions list',
    async run({ api, out }, _args, { limit: max }) {
      return out.list(
        (onMore) => api().list('/v1/regions', 'regions', { max, onMore }),
        [
          { name: 'REGION', value: ({ id }) => id },
          {
            name: 'STATE',
            value: ({ state }) => state,
            style: ({ state }) => (state === 'ok' ? 'green' : 'red'),
          },
          { name: 'FAILING SINCE', value: ({ failingSince }) => out.formatTimeCell(failingSince) },
          { name: 'PROBLEM', value: ({ problem }) => problem, long: true },
        ],
        'There are no regions that the API key can access.',
      );
    },
  }),

  'regions show': command({
    about: 'Shows the state of a region.',
    args: ['REGION'],
    example: 'regions show us',
    async run({ api, out }, [id]) {
      const region = await api().get('/v1/regions/{id}', withId(id));
      out.document(region, () =>
        out.fields([
          ['Region', sanitizeLine(region.id)],
          ['State', out.paint(region.state === 'ok' ? 'green' : 'red', region.state)],
          ['Failing since', out.formatTimeWithAge(region.failingSince)],
          ['Problem', region.problem && sanitizeLine(region.problem)],
        ]),
      );
    },
  }),

  'regions statistics': command({
    about: 'Shows the daily statistics of a region: jobs created, dispatched, late and cancelled.',
    args: ['REGION'],
    flags: DAYS,
    example: 'regions statistics us --from 2026-03-02 --to 2026-03-08',
    async run({ api, out }, [id], flags) {
      const params = { path: { id }, query: toDays(flags) };
      const statistics = await api().get('/v1/regions/{id}/rollups', { params });
      out.document(statistics, () => printStatistics(out, statistics));
    },
  }),

  'regions open-jobs': command({
    about: 'Shows the number of open jobs of a region, by status and by account.',
    args: ['REGION'],
    example: 'regions open-jobs us',
    async run({ api, out }, [id]) {
      const counts = await api().get('/v1/regions/{id}/open-jobs', withId(id));
      out.document(counts, () => {
        printOpenJobs(out, counts);
        out.line();
        out.table(
          counts.accounts,
          [
            { name: 'ACCOUNT', value: ({ account }) => account, long: true },
            { name: 'JOBS', value: ({ jobs }) => jobs, right: true },
            { name: 'DISPATCHED', value: ({ dispatched }) => dispatched, right: true },
            { name: 'LATE', value: ({ late }) => late, right: true },
          ],
          'There are no accounts with open jobs.',
        );
      });
    },
  }),
};

/** Sends a GET request to a path of the API with its query, and prints the response. */
export async function get({ api, out }: Context, path: string): Promise<undefined> {
  // The path continues the base URL. Any other first character could change the host.
  if (!/^\/[\x21-\x7e]*$/.test(path)) {
    throw new UsageError('PATH must begin with / and contain no spaces, such as /v1/accounts.');
  }
  if (/\/stream(\?|$)/.test(path)) {
    throw new UsageError('PATH must not be that of a stream. Use jobwire events tail.');
  }
  const document = await api()
    .get(path as '/v1/key')
    .catch((cause) => {
      if (cause instanceof UnreachableError && cause.cause instanceof SyntaxError) {
        throw new UsageError('PATH must be that of a JSON document.', { cause });
      }
      throw cause;
    });
  out.document(document, toJson(document, 2));
}

/** Prints daily statistics as a table with a row of totals. */
export function printStatistics(
  out: Context['out'],
  { days, total }: { readonly days: readonly Rollup[]; readonly total: Omit<Rollup, 'day'> },
): void {
  out.table(
    [...days, { day: 'total', ...total }],
    [
      { name: 'DAY', value: ({ day }) => day, style: ({ day }) => (day === 'total' ? 'bold' : undefined) },
      { name: 'CREATED', value: ({ created }) => created, right: true },
      { name: 'DISPATCHED', value: ({ dispatched }) => dispatched, right: true },
      { name: 'ON TIME', value: ({ onTime }) => onTime, right: true },
      { name: 'LATE', value: ({ late }) => late, right: true },
      { name: 'OVERDUE', value: ({ overdue }) => overdue, right: true },
      { name: 'CANCELLED', value: ({ cancelled }) => cancelled, right: true },
      { name: 'CLOSED', value: ({ closed }) => closed, right: true },
    ],
    '',
  );
}

/** Returns the fields that name the paused accounts in totals, and the accounts whose jobs are counted more than once. */
export function listCounted({
  paused,
  countedTwice,
}: Pick<RegionOpenJobs, 'paused' | 'countedTwice'>): [string, string | null][] {
  const names = paused.accounts.map(({ account, jobs }) => `${account} (${jobs})`);
  const more = paused.total - names.length;
  const text = `${paused.jobs} of the open jobs, ${paused.late} of the late ones, in ${names.join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
  return [
    ['Paused', paused.total === 0 ? null : text],
    ...countedTwice.map(({ accounts, jobs }): [string, string] => [
      'Counted twice',
      `${count(jobs, 'job')}: the accounts ${accounts.join(', ')} belong to one account of the ordering API`,
    ]),
  ];
}

/** Prints counts of open jobs: totals, and a row for each status. */
export function printOpenJobs(out: Context['out'], counts: OpenJobs | RegionOpenJobs): void {
  out.fields([
    ['Open jobs', String(counts.jobs)],
    ['Dispatched', String(counts.dispatched)],
    ['Late', String(counts.late)],
    ['Without due date', counts.withoutDueDate > 0 ? String(counts.withoutDueDate) : null],
    ['Observed up to', 'observedThrough' in counts ? out.formatTimeWithAge(counts.observedThrough) : null],
    ...('paused' in counts ? listCounted(counts) : []),
  ]);
  if (counts.byStatus.length === 0) return;
  out.line();
  out.table(
    counts.byStatus,
    [
      { name: 'STATUS', value: ({ status }) => status, long: true },
      { name: 'JOBS', value: ({ jobs }) => jobs, right: true },
    ],
    '',
  );
  if (counts.otherStatuses > 0) out.note(`${count(counts.otherStatuses, 'job')} in further statuses.`);
}
