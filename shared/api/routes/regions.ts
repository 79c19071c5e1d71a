/** Region routes. */
import * as z from 'zod';
import { type SchemaOutput, textOrNull, timestampOrNull } from '../../representation.ts';
import { readBreakerState } from '../../tracking/breaker.ts';
import { regionSubject } from '../access.ts';
import { limit, one } from '../parameters.ts';
import { badParameter } from '../problems.ts';
import { pageAnswer } from '../resource.ts';
import { createRouteFactory, type Route, type RouteParts } from '../route.ts';

const route = createRouteFactory('Regions');

const Region = z
  .object({
    id: z.string().describe('Name of the region as configured, for example `us`.'),
    state: z
      .enum(['ok', 'outage'])
      .describe('`outage`: the ordering API fails for the whole region, and `upstream.outage` was emitted.'),
    failingSince: timestampOrNull.describe('Start of the outage. `null`: there is no outage.'),
    problem: textOrNull.describe('Error message of the failures. `null`: there is no outage.'),
  })
  .meta({ id: 'Region', description: 'A region of the ordering API.' });

/** All region routes. */
export const regionRoutes: readonly Route[] = [
  route(
    {
      path: '/v1/regions',
      id: 'listRegions',
      summary: 'List regions',
      description: 'The list is empty for a restricted API key.',
      role: 'read',
      query: z.strictObject({
        limit,
        after: one.optional().describe('The `next` of the previous page.'),
      }),
      answer: pageAnswer('regions', Region, 'A page of regions.'),
    },
    async ({ c, caller, query: { limit: most, after } }, parts) => {
      const { regions } = parts.feed;
      const begin = after === undefined ? 0 : regions.indexOf(after) + 1;
      if (after !== undefined && begin === 0) {
        return badParameter(c, 'after must be the `next` of a page of regions.');
      }
      const ids = caller.accounts === null ? regions.slice(begin, begin + most) : [];
      const next = ids.length > 0 && regions.length > begin + most ? (ids.at(-1) ?? null) : null;
      return { body: { regions: await Promise.all(ids.map((id) => read(parts, id))), next } };
    },
  ),
  route(
    {
      path: '/v1/regions/{id}',
      id: 'getRegion',
      summary: 'Get a region',
      role: 'read',
      subject: regionSubject,
      answer: { description: 'The region.', schema: Region },
    },
    async ({ subject }, parts) => ({ body: await read(parts, subject.region) }),
  ),
];

async function read({ feed }: RouteParts, id: string): Promise<SchemaOutput<typeof Region>> {
  const { openedAt, run } = await readBreakerState(feed.table, id);
  const outage = openedAt !== null && run !== null;
  return {
    id,
    state: outage ? 'outage' : 'ok',
    failingSince: outage ? run.since : null,
    problem: outage ? run.reason : null,
  };
}
