/** What needs no key: whether the service runs, and the catalogue of events. */
import type { Context } from 'hono';
import * as z from 'zod';
import { catalogue, dataSchemaOf, eventTypes } from '../../events/catalogue.ts';
import { exampleOf } from '../../events/examples.ts';
import { keys } from '../../table/schema.ts';
import { one } from '../parameters.ts';
import { problem } from '../problems.ts';
import { type ApiEnv, type Route, route } from '../route.ts';
import { Event } from './events.ts';

/** Catalogue and schemas change with a release only. */
const CACHED = { 'cache-control': 'public, max-age=3600' };

const EventType = z
  .object({
    type: z.string().describe('Its name: `job.dispatched`, say.'),
    when: z.string().describe('When it is sent.'),
    schema: z.string().describe('The path of the JSON Schema of its `data`.'),
    example: z.string().describe('The path of an example.'),
  })
  .meta({ id: 'EventType' });

const typeParam = z.object({ type: one.describe('The name of the type: `job.dispatched`, say.') });

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
      params: typeParam,
      answer: {
        status: 200,
        description: 'A JSON Schema.',
        schema: z.looseObject({}),
        contentType: 'application/schema+json',
      },
    },
    ({ c, params: { type } }) => {
      const found = dataSchemaOf(type);
      if (!found) return unknownType(c);
      return { body: { ...found }, headers: CACHED };
    },
  ),
  route(
    {
      method: 'get',
      path: '/v1/event-types/{type}',
      id: 'getEventType',
      tag: 'Catalogue',
      summary: 'One event type',
      role: null,
      params: typeParam,
      answer: { status: 200, description: 'The event type.', schema: EventType },
    },
    ({ c, params: { type } }) => {
      const found = eventTypes.find((one) => one === type);
      return found ? { body: shown(found), headers: CACHED } : unknownType(c);
    },
  ),
  route(
    {
      method: 'get',
      path: '/v1/event-types/{type}/example',
      id: 'getEventTypeExample',
      tag: 'Catalogue',
      summary: 'A whole event of a type, as an example',
      role: null,
      params: typeParam,
      answer: {
        status: 200,
        description: 'An envelope.',
        schema: Event,
        contentType: 'application/cloudevents+json',
      },
    },
    ({ c, params: { type } }) => {
      const event = exampleOf(type);
      return event ? { body: { ...event }, headers: CACHED } : unknownType(c);
    },
  ),
  ...(['openapi', 'asyncapi'] as const).map((name) =>
    route(
      {
        method: 'get',
        path: `/${name}.json`,
        id: name === 'openapi' ? 'getOpenApi' : 'getAsyncApi',
        tag: 'Service',
        summary: name === 'openapi' ? 'This document' : 'The AsyncAPI document of the events',
        role: null,
        document: true,
        answer: { status: 200, description: 'The document.', schema: z.looseObject({}) },
      },
      async ({ c }, { documents }) =>
        c.body(await documents.read(`${name}.json`), 200, {
          'content-type': 'application/json',
          'cache-control': 'public, max-age=300',
        }),
    ),
  ),
  route(
    {
      method: 'get',
      path: '/docs',
      id: 'getReference',
      tag: 'Service',
      summary: 'A page that shows this document',
      role: null,
      document: true,
      answer: { status: 200, description: 'A web page.', schema: z.string(), contentType: 'text/html' },
    },
    ({ c }, { documents }) => {
      const { body, headers } = documents.reference.page();
      return c.body(body, 200, headers);
    },
  ),
  route(
    {
      method: 'get',
      path: '/docs/assets/{version}/{name}',
      id: 'getReferenceAsset',
      tag: 'Service',
      summary: 'What belongs to the page',
      role: null,
      document: true,
      params: z.object({
        version: one.describe('Which build of it: the page names it.'),
        name: one.describe('The name of the file.'),
      }),
      answer: {
        status: 200,
        description: 'A style or a script.',
        schema: z.string(),
        contentType: 'text/*',
      },
    },
    async ({ c, params: { version, name } }, { documents }) => {
      const accepted = c.req.header('accept-encoding');
      const found = await documents.reference.asset(version, name, accepted);
      if (!found) return problem(c, 'not-found', { detail: 'There is no such file.' });
      return c.body(found.body, 200, found.headers);
    },
  ),
];

function unknownType(c: Context<ApiEnv>): Response {
  return problem(c, 'not-found', { detail: 'There is no such event type.' });
}

function shown(type: (typeof eventTypes)[number]) {
  return {
    type,
    when: catalogue[type].when,
    schema: `/v1/event-types/${type}/schema`,
    example: `/v1/event-types/${type}/example`,
  };
}
