/** Jobs as they stand. */
import * as z from 'zod';
import { ofAccount } from '../access.ts';
import { decodeJobsCursor, type JobFilter, listJobs, readJob } from '../jobs.ts';
import { cursorBy, day, limit, one, textUpTo } from '../parameters.ts';
import { problem } from '../problems.ts';
import { type Route, route } from '../route.ts';
import { cursorGone } from './events.ts';

const JOB_FILTERS = ['status', 'orderNumber', 'dueBefore'] as const;

const JobsQuery = z
  .strictObject({
    after: cursorBy(decodeJobsCursor, 'must be the `next` of a page of jobs').optional(),
    limit,
    status: textUpTo(200).optional(),
    orderNumber: textUpTo(500).optional(),
    dueBefore: day.optional(),
  })
  .superRefine((given, context) => {
    const [first, second] = JOB_FILTERS.filter((name) => given[name] !== undefined);
    if (second === undefined) return;
    context.addIssue({ code: 'custom', path: [second], message: `can't be combined with ${first}` });
  });

/** Everything about jobs. */
export const jobRoutes: readonly Route[] = [
  route(
    {
      method: 'get',
      path: '/v1/accounts/{id}/jobs',
      id: 'listJobs',
      tag: 'Jobs',
      summary: 'Jobs of an account',
      role: 'read',
      of: ofAccount,
      query: JobsQuery,
      answer: { status: 200, description: 'A page of jobs.', schema: z.looseObject({}) },
      problems: ['cursor-gone'],
    },
    async ({ c, subject, query: { after: cursor, limit, ...given } }, { feed }) => {
      const filter = toFilter(given);
      if (cursor && JSON.stringify(cursor.filter) !== JSON.stringify(filter)) {
        const detail = 'after must be the `next` of a page with the same filter.';
        return problem(c, 'bad-parameter', { field: 'after', detail });
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
      summary: 'One job',
      role: 'read',
      of: ofAccount,
      params: z.object({
        jobNumber: one.regex(/^[1-9]\d{0,11}$/, 'must be a whole number from 1 to 999999999999'),
      }),
      answer: { status: 200, description: 'The job as it stands.', schema: z.looseObject({}) },
    },
    async ({ c, subject, params }, { feed }) => {
      const found = await readJob(feed, subject, Number(params.jobNumber));
      return found ? { body: { ...found } } : problem(c, 'not-found', { detail: 'There is no such job.' });
    },
  ),
];

function toFilter(given: { status?: string; orderNumber?: string; dueBefore?: string }): JobFilter {
  if (given.status !== undefined) return { by: 'status', status: given.status };
  if (given.orderNumber !== undefined) return { by: 'orderNumber', orderNumber: given.orderNumber };
  if (given.dueBefore !== undefined) return { by: 'dueBefore', day: given.dueBefore };
  return { by: 'none' };
}
