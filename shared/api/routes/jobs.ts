/** Job routes: current jobs, their events, and statistics. */
import * as z from 'zod';
import { ofAccount, ofRegion } from '../access.ts';
import { readJobEvents } from '../job-events.ts';
import { decodeJobsCursor, type JobFilter, JobPage, JobResponse, listJobs, readJob } from '../jobs.ts';
import { cursorBy, day, flag, limit, nextCursor, one, textUpTo } from '../parameters.ts';
import { problem } from '../problems.ts';
import { type Route, route } from '../route.ts';
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
import { cursorGone, Event } from './events.ts';

const jobNumber = one.regex(/^[1-9]\d{0,11}$/, 'must be an integer from 1 to 999999999999');

/** Filters. At most one per request: each has its own index. */
const filters = {
  jobNumber: jobNumber.describe('The job with this number.'),
  status: textUpTo(200).describe('Jobs with this status name, ordered by due date.'),
  dueOn: day.describe('Open, undispatched jobs due on this day (`YYYY-MM-DD`).'),
  dueBefore: day.describe('Open, undispatched jobs due before this day (`YYYY-MM-DD`), ordered by due date.'),
  late: flag.describe(
    '`true`: late jobs, ordered by due date. A job is late if it is open, and Jobwire observed after its due time that it was not dispatched.',
  ),
  undispatched: flag.describe(
    '`true`: open, undispatched jobs, ordered by due date. Jobs without a due date come last.',
  ),
  dispatchedOn: day.describe(
    'Jobs dispatched on this day (`YYYY-MM-DD`). The day is the same as in the daily statistics. For jobs dispatched before Jobwire began to observe the account, it is the day of `dateOut`. Jobs that were last stored by an older version of Jobwire, which did not have this filter, are missing until they change.',
  ),
  orderNumber: textUpTo(500).describe('Jobs with exactly this order number.'),
  orderGroup: textUpTo(500).describe('Jobs of this order group.'),
};
type FilterName = keyof typeof filters;
const FILTERS = Object.keys(filters) as FilterName[];

const JobsQuery = z
  .strictObject({
    ...z.object(filters).partial().shape,
    limit,
    after: cursorBy(decodeJobsCursor, 'must be the `next` of a page of jobs')
      .optional()
      .describe('Cursor: the `next` of the previous page. The filter must be the same.'),
  })
  .superRefine((given, context) => {
    const [first, second] = FILTERS.filter((name) => given[name] !== undefined && given[name] !== false);
    if (second === undefined) return;
    context.addIssue({ code: 'custom', path: [second], message: `cannot be combined with ${first}` });
  });

/** A job of an account, by its number. */
export const jobParams = z.object({
  jobNumber: jobNumber.describe('Number of the job.'),
});

/** Cursor of the events of a job. */
export const afterJobEvent = one
  .regex(/^\d{1,15}$/, 'must be the `next` of a page of events of a job')
  .transform((text) => ({ sequence: Number(text) }))
  .optional()
  .describe('Cursor: the `next` of the previous page.');

const JobEventsQuery = z.strictObject({
  order: z.enum(['newest', 'oldest'], 'must be newest or oldest').default('newest').describe('Sort order.'),
  limit,
  after: afterJobEvent,
});

const rollupsQuery = z.strictObject({
  from: day.optional().describe('First day (`YYYY-MM-DD`). Default: six days before `to`.'),
  to: day.optional().describe('Last day (`YYYY-MM-DD`). Default: today (UTC).'),
});

/** All job routes. */
export const jobRoutes: readonly Route[] = [
  route(
    {
      method: 'get',
      path: '/v1/accounts/{id}/jobs',
      id: 'listJobs',
      tag: 'Jobs',
      summary: 'List jobs of an account',
      description:
        'Without a filter, the jobs are ordered by number. Only one filter can be given. A filter uses an index that is updated with a short delay, so a job that has just changed can be missing. The data of each returned job is current.',
      role: 'read',
      of: ofAccount,
      query: JobsQuery,
      answer: { status: 200, description: 'A page of jobs.', schema: JobPage },
      problems: ['cursor-gone'],
    },
    async ({ c, subject, query: { after: cursor, limit, ...given } }, { feed }) => {
      const filter = toFilter(given);
      if (cursor && JSON.stringify(cursor.filter) !== JSON.stringify(filter)) {
        const detail = 'after must be the `next` of a page with the same filter.';
        return problem(c, 'invalid-parameter', { field: 'after', detail });
      }
      const page = await listJobs(feed, subject, { filter, limit, cursor });
      if (!page) return problem(c, 'not-found', { detail: 'There is no such account.' });
      if (page.kind === 'gone') return cursorGone(c, page);
      return { body: { jobs: page.jobs, next: page.next, asOf: page.asOf } };
    },
  ),
  route(
    {
      method: 'get',
      path: '/v1/accounts/{id}/jobs/{jobNumber}',
      id: 'getJob',
      tag: 'Jobs',
      summary: 'Get a job',
      role: 'read',
      of: ofAccount,
      params: jobParams,
      answer: { status: 200, description: 'The current job.', schema: JobResponse },
    },
    async ({ c, subject, params }, { feed }) => {
      const found = await readJob(feed, subject, Number(params.jobNumber));
      return found ? { body: found } : problem(c, 'not-found', { detail: 'There is no such job.' });
    },
  ),
  route(
    {
      method: 'get',
      path: '/v1/accounts/{id}/jobs/{jobNumber}/events',
      id: 'listJobEvents',
      tag: 'Jobs',
      summary: 'List events of a job',
      description:
        'Returns the events that are still stored. The newest events can be missing for a short time. To follow events, use the event log of the account.',
      role: 'read',
      of: ofAccount,
      params: jobParams,
      query: JobEventsQuery,
      answer: {
        status: 200,
        description: 'A page of events of the job. Empty if the job is unknown.',
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
      method: 'get',
      path: '/v1/accounts/{id}/rollups',
      id: 'listAccountRollups',
      tag: 'Jobs',
      summary: 'List daily statistics of an account',
      description: `A request can cover at most ${MAX_ROLLUP_DAYS.account} days.`,
      role: 'read',
      of: ofAccount,
      query: rollupsQuery,
      answer: { status: 200, description: 'One entry for each day of the range.', schema: AccountRollups },
    },
    async ({ c, subject, query }, { feed }) => {
      const { from, to } = toDayRange(query, feed.now());
      if (!dayRange(from, to, MAX_ROLLUP_DAYS.account)) return badRange(c, MAX_ROLLUP_DAYS.account);
      return { body: await readRollups(feed, subject, from, to) };
    },
  ),
  route(
    {
      method: 'get',
      path: '/v1/accounts/{id}/open-jobs',
      id: 'getAccountOpenJobs',
      tag: 'Jobs',
      summary: 'Get open-job counts of an account',
      description: 'Returns the numbers of jobs by status and by due date.',
      role: 'read',
      of: ofAccount,
      answer: {
        status: 200,
        description: 'Counts at the last complete reading of the list of active jobs.',
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
      method: 'get',
      path: '/v1/regions/{id}/rollups',
      id: 'listRegionRollups',
      tag: 'Regions',
      summary: 'List daily statistics of a region',
      description: `A request can cover at most ${MAX_ROLLUP_DAYS.region} days.`,
      role: 'read',
      of: ofRegion,
      query: rollupsQuery,
      answer: {
        status: 200,
        description: 'One entry for each day of the range, and the totals of each account.',
        schema: RegionRollups,
      },
    },
    async ({ c, subject, query }, { feed }) => {
      const { from, to } = toDayRange(query, feed.now());
      if (!dayRange(from, to, MAX_ROLLUP_DAYS.region)) return badRange(c, MAX_ROLLUP_DAYS.region);
      return { body: await readRegionRollups(feed, subject.region, from, to) };
    },
  ),
  route(
    {
      method: 'get',
      path: '/v1/regions/{id}/open-jobs',
      id: 'getRegionOpenJobs',
      tag: 'Regions',
      summary: 'Get open-job counts of a region',
      description: 'Returns the numbers of jobs by status, by due date and by account.',
      role: 'read',
      of: ofRegion,
      answer: {
        status: 200,
        description: 'Counts at the last complete reading of the list of active jobs of each account.',
        schema: RegionOpenJobs,
      },
    },
    async ({ subject }, { feed }) => ({ body: await readRegionOpenJobs(feed, subject.region) }),
  ),
];

function toFilter(given: { readonly [N in FilterName]?: string | boolean | undefined }): JobFilter {
  const { status, dueOn, dueBefore, late, orderNumber, orderGroup, dispatchedOn } = given;
  if (typeof given.jobNumber === 'string') return { by: 'jobNumber', jobNumber: Number(given.jobNumber) };
  if (typeof status === 'string') return { by: 'status', status };
  if (typeof dueOn === 'string') return { by: 'dueOn', day: dueOn };
  if (typeof dueBefore === 'string') return { by: 'dueBefore', day: dueBefore };
  if (late) return { by: 'late' };
  if (given.undispatched) return { by: 'undispatched' };
  if (typeof dispatchedOn === 'string') return { by: 'dispatchedOn', day: dispatchedOn };
  if (typeof orderNumber === 'string') return { by: 'orderNumber', orderNumber };
  if (typeof orderGroup === 'string') return { by: 'orderGroup', orderGroup };
  return { by: 'none' };
}

const DAY_MS = 86_400_000;

function toDayRange(
  { from, to }: { readonly from?: string | undefined; readonly to?: string | undefined },
  now: number,
): { readonly from: string; readonly to: string } {
  const last = to ?? new Date(now).toISOString().slice(0, 10);
  return { from: from ?? new Date(Date.parse(last) - 6 * DAY_MS).toISOString().slice(0, 10), to: last };
}

function badRange(c: Parameters<typeof problem>[0], most: number): Response {
  const detail = `from must not be after to, and at most ${most - 1} days before it.`;
  return problem(c, 'invalid-parameter', { field: 'from', detail });
}
