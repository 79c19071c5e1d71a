/** The regions that are served. */
import * as z from 'zod';
import { readUpstream } from '../../tracking/breaker.ts';
import { ofRegion } from '../access.ts';
import { instant, instantText, nextOf } from '../parameters.ts';
import { type Route, type RouteParts, route } from '../route.ts';

const Region = z
  .object({
    id: z.string().describe('Its name, as the configuration has it: `us`, say.'),
    state: z
      .enum(['ok', 'outage'])
      .describe('`outage`: the ordering service fails for the whole region, and that was announced.'),
    failingSince: instant.nullable().describe('When the failures of an outage began.'),
    problem: z.string().nullable().describe('What the failures are, in a sentence.'),
  })
  .meta({ id: 'Region', description: 'A region of the ordering service.' });

/** Regions, and how the ordering service does there. */
export const regionRoutes: readonly Route[] = [
  route(
    {
      method: 'get',
      path: '/v1/regions',
      id: 'listRegions',
      tag: 'Regions',
      summary: 'The regions that are served; none for a key that is for some accounts only',
      role: 'read',
      answer: {
        status: 200,
        description: 'All of them.',
        schema: z.object({ regions: z.array(Region), next: nextOf }),
      },
    },
    async ({ caller }, parts) => {
      const ids = caller.accounts === null ? parts.feed.regions : [];
      return { body: { regions: await Promise.all(ids.map((id) => read(parts, id))), next: null } };
    },
  ),
  route(
    {
      method: 'get',
      path: '/v1/regions/{id}',
      id: 'getRegion',
      tag: 'Regions',
      summary: 'One region',
      role: 'read',
      of: ofRegion,
      answer: { status: 200, description: 'The region.', schema: Region },
    },
    async ({ subject }, parts) => ({ body: await read(parts, subject.region) }),
  ),
];

async function read({ feed }: RouteParts, id: string): Promise<z.input<typeof Region>> {
  const { openedAt, run } = await readUpstream(feed.table, id);
  const outage = openedAt !== null && run !== null;
  return {
    id,
    state: outage ? 'outage' : 'ok',
    failingSince: outage ? instantText(run.since) : null,
    problem: outage ? run.reason : null,
  };
}
