/** Job routes: current jobs, their events, and statistics. */
import * as z from 'zod';
import { accountSubject, regionSubject } from '../access.ts';
import { Event, readJobEvents } from '../job-events.ts';
import { readStatusDurations, StatusDurations } from '../job-timing.ts';
import {
  canSort,
  DISPATCHED_FILTERS,
  decodeJobsCursor,
  EXPANDED,
  isCursorFor,
  JOB_SORTS,
  type JobExpansion,
  JobFilter,
  JobPage,
  JobResponse,
  jobNumberText,
  listJobs,
  OPEN_FILTERS,
  readJob,
} from '../jobs.ts';
import { commaSeparated, cursorBy, day, limit, nextCursor, one } from '../parameters.ts';
import { problem } from '../problems.ts';
import { createRouteFactory, type Route } from '../route.ts';
import {
  AccountRollups,
  dayRange,
  MAX_ROLLUP_DAYS,
  OpenJobs,
  RegionOpenJobs,
  RegionRollups,
  readOpenJobs,
  readRegionOpenJobs,
  readRegionRollups,
  readRollups,
} from '../statistics.ts';
import { cursorGone } from './events.ts';

const route = createRouteFactory('Jobs');
const regionRoute = createRouteFactory('Regions');

/** Filters that an index with an order requires, for the error. */
const SORTED_BY = {
  jobNumber: [],
  dateDue: [
    'status',
    ...OPEN_FILTERS.map((name) => (name === 'late' || name === 'undispatched' ? `${name}=true` : name)),
  ],
  dateOut: DISPATCHED_FILTERS,
};

const JobsQuery = z
  .strictObject({
    ...JobFilter.shape,
    sort: z
      .enum(JOB_SORTS, `must be one of ${JOB_SORTS.join(', ')}`)
      .optional()
      .describe(
        'Sort order. A leading `-` reverses it.\n\n- `jobNumber`: by job number.\n- `dateDue`: by day of the due date, with jobs without a due date last. Requires `status` or a filter of open jobs.\n- `dateOut`: by day of dispatch. Requires a filter of dispatched jobs.\n\nDefault: `jobNumber` with the filter `jobNumber`, `orderNumber` or `orderGroup`. Otherwise `dateOut` or `dateDue` if the filters permit it, or else `jobNumber`.',
      ),
    expand: commaSeparated<JobExpansion>(['detail', 'events'], 'must be detail, events or detail,events')
      .optional()
      .describe(
        `Comma-separated additional content. \`detail\`: the fields of the job detail. \`events\`: the ${EXPANDED.events} newest events, with at most ${EXPANDED.jobs} jobs per page.`,
      ),
    limit,
    after: cursorBy(decodeJobsCursor, 'must be the `next` of a page of jobs')
      .optional()
      .describe('The `next` of the previous page. The filters and `sort` must be the same.'),
  })
  .superRefine(({ sort, ...given }, context) => {
    const open = OPEN_FILTERS.find((name) => given[name]);
    const dispatched = DISPATCHED_FILTERS.find((name) => given[name] !== undefined);
    if (open !== undefined && dispatched !== undefined) {
      const message = `cannot be combined with ${open}, which only matches jobs that are not dispatched`;
      context.addIssue({ code: 'custom', path: [dispatched], message });
    } else if (sort !== undefined && !canSort(given, sort)) {
      const needed = SORTED_BY[sort.replace('-', '') as keyof typeof SORTED_BY].join(', ');
      const message = `requires one of these filters for ${sort}: ${needed}`;
      context.addIssue({ code: 'custom', path: ['sort'], message });
    }
  });

/** A job of an account, by its number. */
export const jobParams = z.object({
  jobNumber: jobNumberText.describe('Number of the job.'),
});

/** Cursor of the events of a job. */
export const afterJobEvent = one
  .regex(/^\d{1,15}$/, 'must be the `next` of a page of events of a job')
  .transform((text) => ({ sequence: Number(text) }))
  .optional()
  .describe('The `next` of the previous page.');

const JobEventsQuery = z.strictObject({
  order: z.enum(['newest', 'oldest'], 'must be newest or oldest').default('newest').describe('Sort order.'),
  limit,
  after: afterJobEvent,
});

const rollupsQuery = z.strictObject({
  from: day.optional().describe('First day. Default: six days before `to`.'),
  to: day.optional().describe('Last day. Default: today (UTC).'),
});

/** All job routes. */
export const jobRoutes: readonly Route[] = [
  route(
    {
      path: '/v1/accounts/{id}/jobs',
      id: 'listJobs',
      summary: 'List jobs of an account',
      description:
        'A job must match all filters. Filters of open jobs (`late=true`, `risk`, `undispatched=true`, `due…`) cannot be combined with filters of dispatched jobs (`dispatched…`). A job that has just changed can be missing. If a page is 410, the account was restored or created again. Request the first page again.',
      role: 'read',
      subject: accountSubject,
      query: JobsQuery,
      answer: { description: 'A page of jobs.', schema: JobPage },
      problems: ['cursor-gone'],
    },
    async ({ c, subject, query: { after: cursor, limit, sort, expand, ...filter } }, { feed }) => {
      if (cursor && !isCursorFor(cursor, subject, { filter, sort })) {
        const detail =
          'after must be the `next` of a page of the same account, with the same filters and sort order.';
        return problem(c, 'invalid-parameter', { field: 'after', detail });
      }
      const page = await listJobs(feed, subject, { filter, sort, limit, cursor, expand });
      if (!page) return problem(c, 'not-found', { detail: 'There is no such account.' });
      if (page.kind === 'gone') return cursorGone(c, page);
      return { body: { jobs: page.jobs, next: page.next, asOf: page.asOf } };
    },
  ),
  route(
    {
      path: '/v1/accounts/{id}/jobs/{jobNumber}',
      id: 'getJob',
      summary: 'Get a job',
      role: 'read',
      subject: accountSubject,
      params: jobParams,
      answer: { description: 'The current job.', schema: JobResponse },
    },
    async ({ c, subject, params }, { feed }) => {
      const found = await readJob(feed, subject, Number(params.jobNumber));
      return found ? { body: found } : problem(c, 'not-found', { detail: 'There is no such job.' });
    },
  ),
  route(
    {
      path: '/v1/accounts/{id}/jobs/{jobNumber}/events',
      id: 'listJobEvents',
      summary: 'List events of a job',
      description:
        'The newest events can be missing for a short time. To follow events, use the log of the account.',
      role: 'read',
      subject: accountSubject,
      params: jobParams,
      query: JobEventsQuery,
      answer: {
        description: 'A page of events of the job.',
        schema: z.object({ events: z.array(Event), next: nextCursor }).meta({ id: 'JobEventPage' }),
      },
    },
    async ({ c, subject, params, query }, { feed }) => {
      const { events, next } = await readJobEvents(feed, subject, Number(params.jobNumber), query);
      return c.body(`{"events":[${events.join(',')}],"next":${JSON.stringify(next)}}`, 200, {
        'content-type': 'application/json',
      });
    },
  ),
  route(
    {
      path: '/v1/accounts/{id}/rollups',
      id: 'listAccountRollups',
      summary: 'List daily statistics of an account',
      description: `A request can cover at most ${MAX_ROLLUP_DAYS.account} days.`,
      role: 'read',
      subject: accountSubject,
      query: rollupsQuery,
      answer: { description: 'One entry for each day.', schema: AccountRollups },
    },
    async ({ c, subject, query }, { feed }) => {
      const { from, to } = toDayRange(query, feed.now());
      if (!dayRange(from, to, MAX_ROLLUP_DAYS.account)) return badRange(c, MAX_ROLLUP_DAYS.account);
      return { body: await readRollups(feed, subject, from, to) };
    },
  ),
  route(
    {
      path: '/v1/accounts/{id}/open-jobs',
      id: 'getAccountOpenJobs',
      summary: 'Get open-job counts of an account',
      role: 'read',
      subject: accountSubject,
      answer: {
        description: 'Counts at the last complete reading of the list.',
        schema: OpenJobs,
      },
    },
    async ({ c, subject }, { feed }) => {
      const found = await readOpenJobs(feed, subject);
      const detail = 'The list of the account has not been read completely yet.';
      return found ? { body: found } : problem(c, 'not-found', { detail });
    },
  ),
  route(
    {
      path: '/v1/accounts/{id}/status-durations',
      id: 'getStatusDurations',
      summary: 'Get usual durations of an account',
      description:
        'Returns how long jobs usually stay in each status, how long they take from the beginning of the status until dispatch, and how many jobs flagged as at risk became late.',
      role: 'read',
      subject: accountSubject,
      answer: {
        description: 'Usual durations. Empty until the first durations are known.',
        schema: StatusDurations,
      },
    },
    async ({ subject }, { feed }) => ({ body: await readStatusDurations(feed, subject) }),
  ),
  regionRoute(
    {
      path: '/v1/regions/{id}/rollups',
      id: 'listRegionRollups',
      summary: 'List daily statistics of a region',
      description: `A request can cover at most ${MAX_ROLLUP_DAYS.region} days.`,
      role: 'read',
      subject: regionSubject,
      query: rollupsQuery,
      answer: {
        description: 'Totals of each day and of each account.',
        schema: RegionRollups,
      },
    },
    async ({ c, subject, query }, { feed }) => {
      const { from, to } = toDayRange(query, feed.now());
      if (!dayRange(from, to, MAX_ROLLUP_DAYS.region)) return badRange(c, MAX_ROLLUP_DAYS.region);
      return { body: await readRegionRollups(feed, subject.region, from, to) };
    },
  ),
  regionRoute(
    {
      path: '/v1/regions/{id}/open-jobs',
      id: 'getRegionOpenJobs',
      summary: 'Get open-job counts of a region',
      role: 'read',
      subject: regionSubject,
      answer: {
        description: 'Counts at the last complete reading of each list.',
        schema: RegionOpenJobs,
      },
    },
    async ({ subject }, { feed }) => ({ body: await readRegionOpenJobs(feed, subject.region) }),
  ),
];

const DAY_MS = 86_400_000;

function toDayRange(
  { from, to }: { readonly from?: string | undefined; readonly to?: string | undefined },
  now: number,
): { readonly from: string; readonly to: string } {
  const last = to ?? new Date(now).toISOString().slice(0, 10);
  return { from: from ?? new Date(Date.parse(last) - 6 * DAY_MS).toISOString().slice(0, 10), to: last };
}

function badRange(c: Parameters<typeof problem>[0], most: number): Response {
  const detail = `from must be at most ${most - 1} days before to, and not after it.`;
  return problem(c, 'invalid-parameter', { field: 'from', detail });
}
