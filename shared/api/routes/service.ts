/** What needs no key: whether the service runs, and the catalogue of events. */
import * as z from 'zod';
import { catalogue, dataSchemaOf, eventTypes } from '../../events/catalogue.ts';
import { keys } from '../../table/schema.ts';
import { one } from '../parameters.ts';
import { problem } from '../problems.ts';
import { type Route, route } from '../route.ts';

/** Catalogue and schemas change with a release only. */
const CACHED = { 'cache-control': 'public, max-age=3600' };

const EventType = z
  .object({
    type: z.string(),
    when: z.string().describe('When it is sent.'),
    schema: z.string().describe('The path of the JSON Schema of its `data`.'),
  })
  .meta({ id: 'EventType' });

const OK = { body: { status: 'ok' } } as const;
const State = z.object({ status: z.literal('ok') });

/** Everything that needs no key. */
export const serviceRoutes: readonly Route[] = [
  route(
    {
      method: 'get',
      path: '/healthz',
      id: 'getHealth',
      tag: 'Service',
      summary: 'Whether the process answers',
      role: null,
      answer: { status: 200, description: 'It does.', schema: State },
    },
    () => OK,
  ),
  route(
    {
      method: 'get',
      path: '/readyz',
      id: 'getReadiness',
      tag: 'Service',
      summary: 'Whether requests can be served: the store answers',
      role: null,
      answer: { status: 200, description: 'They can.', schema: State },
    },
    async (_, { feed }) => {
      await feed.table.get(keys.upstream(feed.regions[0] ?? ''));
      return OK;
    },
  ),
  route(
    {
      method: 'get',
      path: '/v1/event-types',
      id: 'listEventTypes',
      tag: 'Catalogue',
      summary: 'All event types',
      role: null,
      answer: { status: 200, description: 'The catalogue.', schema: z.object({ types: z.array(EventType) }) },
    },
    () => ({ body: { types: eventTypes.map(shown) }, headers: CACHED }),
  ),
  route(
    {
      method: 'get',
      path: '/v1/event-types/{type}/schema',
      id: 'getEventTypeSchema',
      tag: 'Catalogue',
      summary: 'The JSON Schema of the data of an event type',
      role: null,
      params: z.object({ type: one.describe('The name of the type: `job.dispatched`, say.') }),
      answer: {
        status: 200,
        description: 'A JSON Schema.',
        schema: z.looseObject({}),
        contentType: 'application/schema+json',
      },
    },
    ({ c, params: { type } }) => {
      const found = dataSchemaOf(type);
      if (!found) return problem(c, 'not-found', { detail: 'There is no such event type.' });
      return { body: { ...found }, headers: CACHED };
    },
  ),
];

function shown(type: (typeof eventTypes)[number]) {
  return { type, when: catalogue[type].when, schema: `/v1/event-types/${type}/schema` };
}
