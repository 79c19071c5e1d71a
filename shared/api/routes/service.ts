/** Routes without authentication: health, event catalogue and documents. */
import type { Context } from 'hono';
import * as z from 'zod';
import { catalogue, eventTypes } from '../../events/catalogue.ts';
import { getExample } from '../../events/examples.ts';
import { getSchemaPath } from '../../events/types.ts';
import { keys } from '../../storage/schema.ts';
import type { ApiEnv } from '../env.ts';
import { Event } from '../job-events.ts';
import { one } from '../parameters.ts';
import { problem } from '../problems.ts';
import type { Reference } from '../reference/pages.ts';
import { createRouteFactory, type Route, type RouteParts, sendStatic } from '../route.ts';

const route = createRouteFactory('Service');
const catalogueRoute = createRouteFactory('Catalogue');

/** Cache headers of the catalogue and the schemas, which change only with a release. */
const CACHED = { 'cache-control': 'public, max-age=3600' };

const EventType = z
  .object({
    type: z.string().describe('Event type, for example `job.dispatched`.'),
    when: z.string().describe('Condition under which the event is emitted.'),
    schema: z.string().describe('Path of the JSON Schema of the `data` of the event.'),
    example: z.string().describe('Path of an example event.'),
  })
  .meta({ id: 'CatalogueEntry' });

const EventTypeList = z.object({ types: z.array(EventType) }).meta({ id: 'EventTypeList' });

const typeParam = z.object({ type: one.describe('Event type, for example `job.dispatched`.') });

const OK = { body: { status: 'ok' } } as const;
const State = z.object({ status: z.literal('ok') }).meta({ id: 'ServiceState' });

const SCHEMA_ANSWER = {
  description: 'A JSON Schema.',
  schema: z.looseObject({}),
  contentType: 'application/schema+json',
} as const;

const DOCUMENT = { role: null, document: true, validated: true } as const;
const HTML = { schema: z.string(), contentType: 'text/html' } as const;

/** All routes without authentication. */
export const serviceRoutes: readonly Route[] = [
  route(
    {
      path: '/healthz',
      id: 'getHealth',
      summary: 'Check whether the process is alive',
      role: null,
      answer: { description: 'The process is alive.', schema: State },
    },
    () => OK,
  ),
  route(
    {
      path: '/readyz',
      id: 'getReadiness',
      summary: 'Check whether the service is ready',
      description:
        'The service is ready if its store responds. Self-hosted, writes to the store must succeed too.',
      role: null,
      answer: { description: 'The store responds.', schema: State },
    },
    async ({ c }, { feed, checkWrites }) => {
      await feed.table.get(keys.upstream(feed.regions[0] ?? ''));
      const fault = await checkWrites?.();
      if (fault === undefined) return OK;
      return problem(c, 'service-unavailable', { detail: `Writes to the store fail: ${fault}.` });
    },
  ),
  catalogueRoute(
    {
      path: '/v1/event-types',
      id: 'listEventTypes',
      summary: 'List event types',
      role: null,
      answer: { description: 'All event types.', schema: EventTypeList },
    },
    () => ({ body: { types: eventTypes.map(toEventTypeResponse) }, headers: CACHED }),
  ),
  catalogueRoute(
    {
      path: '/v1/event-types/{type}/schema',
      id: 'getEventTypeSchema',
      summary: 'Get the JSON Schema of an event type',
      description: 'Returns the same document as `/schemas/v1/{type}.json`.',
      role: null,
      validated: true,
      params: typeParam,
      answer: SCHEMA_ANSWER,
    },
    ({ c, params: { type } }, parts) => sendSchema(c, type, parts),
  ),
  catalogueRoute(
    {
      path: '/schemas/v1/{file}',
      id: 'getSchema',
      summary: 'Get a JSON Schema by its versioned path',
      description:
        'The `dataschema` of an event contains this path. Changes within `v1` only add optional fields.',
      role: null,
      validated: true,
      params: z.object({
        file: one.describe('Event type with the extension `.json`, for example `job.dispatched.json`.'),
      }),
      answer: SCHEMA_ANSWER,
    },
    ({ c, params: { file } }, parts) =>
      sendSchema(c, file.endsWith('.json') ? file.slice(0, -'.json'.length) : '', parts),
  ),
  catalogueRoute(
    {
      path: '/v1/event-types/{type}',
      id: 'getEventType',
      summary: 'Get an event type',
      role: null,
      params: typeParam,
      answer: { description: 'The event type.', schema: EventType },
    },
    ({ c, params: { type } }) => {
      const found = eventTypes.find((one) => one === type);
      return found ? { body: toEventTypeResponse(found), headers: CACHED } : unknownType(c);
    },
  ),
  catalogueRoute(
    {
      path: '/v1/event-types/{type}/example',
      id: 'getEventTypeExample',
      summary: 'Get an example event',
      role: null,
      params: typeParam,
      answer: {
        description: 'An example event in its envelope.',
        schema: Event,
        contentType: 'application/cloudevents+json',
      },
    },
    ({ c, params: { type } }) => {
      const event = getExample(type);
      return event ? { body: { ...event }, headers: CACHED } : unknownType(c);
    },
  ),
  ...(['openapi', 'asyncapi'] as const).map((name) =>
    route(
      {
        path: `/${name}.json`,
        id: name === 'openapi' ? 'getOpenApi' : 'getAsyncApi',
        summary: name === 'openapi' ? 'Get this OpenAPI document' : 'Get the AsyncAPI document of the events',
        ...DOCUMENT,
        answer: { description: 'The document.', schema: z.looseObject({}) },
      },
      async ({ c }, { documents }) =>
        sendStatic(c, await documents.read(`${name}.json`), {
          'content-type': 'application/json',
          'cache-control': 'public, max-age=300',
        }),
    ),
  ),
  route(
    {
      path: '/docs',
      id: 'getApiReference',
      summary: 'Get the API reference',
      ...DOCUMENT,
      answer: { description: 'The API reference as a web page.', ...HTML },
    },
    ({ c }, { documents }) => sendReference(c, documents.reference.page()),
  ),
  route(
    {
      path: '/docs/{page}',
      id: 'getApiReferencePage',
      summary: 'Get a page of the API reference',
      ...DOCUMENT,
      params: z.object({
        page: one.describe('`webhooks`, `schemas`, or the name of a tag in lower case, such as `jobs`.'),
      }),
      answer: { description: 'A web page.', ...HTML },
    },
    ({ c, params: { page } }, { documents }) => sendReference(c, documents.reference.page(page)),
  ),
  route(
    {
      path: '/docs/assets/{version}/{name}',
      id: 'getApiReferenceAsset',
      summary: 'Get an asset of the API reference',
      ...DOCUMENT,
      params: z.object({
        version: one.describe('Version of the build, from the link in the page.'),
        name: one.describe('File name.'),
      }),
      answer: { description: 'A stylesheet or a script.', schema: z.string(), contentType: 'text/*' },
    },
    ({ c, params: { version, name } }, { documents }) =>
      sendReference(c, documents.reference.asset(version, name)),
  ),
];

async function sendReference(c: Context<ApiEnv>, loading: ReturnType<Reference['page']>): Promise<Response> {
  const found = await loading;
  if (!found) return problem(c, 'not-found', { detail: 'There is no such page or file.' });
  return sendStatic(c, found.body, found.headers);
}

function sendSchema(c: Context<ApiEnv>, type: string, { schemas }: RouteParts): Response {
  const found = schemas(type);
  if (!found) return unknownType(c);
  return sendStatic(c, found, { 'content-type': 'application/schema+json', ...CACHED });
}

function unknownType(c: Context<ApiEnv>): Response {
  return problem(c, 'not-found', { detail: 'There is no such event type.' });
}

function toEventTypeResponse(type: (typeof eventTypes)[number]) {
  return {
    type,
    when: catalogue[type].when,
    schema: getSchemaPath(type),
    example: `/v1/event-types/${type}/example`,
  };
}
