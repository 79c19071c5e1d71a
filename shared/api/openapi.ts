/**
 * The OpenAPI document (3.1) of the HTTP API, made from the routes. Only the build and tests make it: what a process serves is
 * the committed file, so no function carries the generator (docs/decisions/0019-routes-as-data.md).
 */
import { createRoute, OpenAPIHono } from '@hono/zod-openapi';
import * as z from 'zod';
import { webhookHeaders } from '../events/asyncapi.ts';
import { catalogue, eventTypes } from '../events/catalogue.ts';
import { exampleOf } from '../events/examples.ts';
import { eventComponents, type JsonSchema, pascalCase } from '../events/schemas.ts';
import { IdempotencyKey } from './idempotency.ts';
import { PROBLEM_TYPE, type ProblemKind, problems } from './problems.ts';
import { type Answer, problemsOf, type Route, tags, takesIdempotencyKey } from './route.ts';
import { routes } from './routes/all.ts';
import { API_VERSION } from './version.ts';

const Problem = z
  .looseObject({
    type: z.string().describe(`\`${PROBLEM_TYPE}\` and the kind; never changes its meaning.`),
    title: z.string(),
    status: z.int(),
    detail: z.string().describe('What was wrong, and what would be right, in a sentence.'),
    field: z.string().optional().describe('The path of the parameter or field it is about.'),
    requestId: z.string().describe('The id of the request, as in the header `X-Request-Id`.'),
  })
  .meta({ id: 'Problem', description: 'Problem details (RFC 9457).' });

const IDEMPOTENCY_KEY = IdempotencyKey.optional().describe(
  'A text of your own, new for each request: sent again with it, the request is answered as the first time.',
);
const IF_NONE_MATCH = z
  .string()
  .optional()
  .describe('The `ETag` of the copy that the client has. If it is current, the status is 304.');
const IF_MATCH = z.string().optional().describe('The `ETag` that it must still have.');

/** What forms are sent as. */
const FORMS = ['application/x-www-form-urlencoded', 'multipart/form-data'];

const Text = (text: string) => ({ schema: { type: 'string' as const }, description: text });

const DOCUMENT_TAG = 'What `If-None-Match` takes.';
const NOT_MODIFIED: Answer = {
  status: 304,
  description: '`If-None-Match` names the current `ETag`. No body.',
  headers: { ETag: DOCUMENT_TAG },
};

/** Makes the document. */
export function openApiDocument(): object {
  const api = new OpenAPIHono();
  api.openAPIRegistry.registerComponent('securitySchemes', 'key', {
    type: 'http',
    scheme: 'bearer',
    description: 'An API key: `jw_<id>_<secret>`, or the one that the configuration names.',
  });
  for (const route of routes) api.openAPIRegistry.registerPath(toPath(route));
  const document = api.getOpenAPI31Document({
    openapi: '3.1.0',
    info: {
      title: 'Jobwire',
      version: API_VERSION,
      description:
        'Events of print jobs, made by polling an ordering service that has none: accounts, their logs and jobs, webhooks, keys. What is not as asked for is a problem document (RFC 9457), whose `type` says which kind; lists go on with `after`, the `next` of the page before; a POST with an Idempotency-Key is done once, and a change with If-Match only if nobody was faster.',
    },
    servers: [{ url: '/', description: 'Where this document was found.' }],
    tags: [
      ...Object.entries(tags).map(([name, description]) => ({ name, description })),
      { name: 'Webhooks', description: 'Events as endpoints get them.' },
    ],
  });
  return completed(JSON.parse(JSON.stringify(document)));
}

function toPath(route: Route) {
  const { spec } = route;
  const { method, path, id, tag, summary, description, role, of, params, query, body, form, example } = spec;
  const answers = [
    spec.validated
      ? { ...spec.answer, headers: { ...spec.answer.headers, ETag: DOCUMENT_TAG } }
      : spec.answer,
    ...(spec.also ?? []),
    ...(spec.validated ? [NOT_MODIFIED] : []),
  ];
  const headers = {
    ...(takesIdempotencyKey(spec) ? { 'Idempotency-Key': IDEMPOTENCY_KEY } : {}),
    ...(spec.conditional ? { 'If-Match': IF_MATCH } : {}),
    ...(spec.validated ? { 'If-None-Match': IF_NONE_MATCH } : {}),
    ...Object.fromEntries(
      Object.entries(spec.headers ?? {}).map(([name, text]) => [
        name,
        z.string().optional().describe(String(text)),
      ]),
    ),
  };
  const pathParams = { ...of?.params, ...params?.shape };
  const queryParams = { ...query?.shape, ...of?.query };
  const bodyOptional = body?.safeParse({}).success;
  return createRoute({
    method,
    path,
    operationId: id,
    tags: [tag],
    summary,
    ...(description === undefined ? {} : { description }),
    security: role === null ? [] : [{ key: [] }],
    ...(role === null ? {} : { 'x-role': role }),
    request: {
      ...(Object.keys(pathParams).length > 0 ? { params: z.object(pathParams) } : {}),
      ...(Object.keys(queryParams).length > 0 ? { query: z.object(queryParams) } : {}),
      ...(Object.keys(headers).length > 0 ? { headers: z.object(headers) } : {}),
      ...(body
        ? {
            body: {
              required: !bodyOptional,
              content: {
                'application/json': { schema: body, ...(example === undefined ? {} : { example }) },
              },
            },
          }
        : {}),
      ...(form
        ? {
            body: {
              required: false,
              content: Object.fromEntries(FORMS.map((type) => [type, { schema: form }])),
            },
          }
        : {}),
    },
    responses: withProblems(
      Object.fromEntries(answers.map((one: Answer) => [one.status, toResponse(one)])),
      problemResponses(problemsOf(route)),
    ),
  });
}

function toResponse({ description, schema, contentType = 'application/json', headers = {} }: Answer) {
  return {
    description,
    headers: Object.fromEntries(Object.entries(headers).map(([name, text]) => [name, Text(text)])),
    ...(schema ? { content: { [contentType]: { schema } } } : {}),
  };
}

type Responses = Record<string, { readonly content?: object }>;

/** An answer and a problem may have the same status: a page that says that there is nothing, say. */
function withProblems<A extends Responses, P extends Responses>(answers: A, problems: P): A & P {
  const merged = Object.entries(problems).map(([status, of]) => {
    const answer = answers[status];
    return [status, answer ? { ...answer, ...of, content: { ...answer.content, ...of.content } } : of];
  });
  return { ...answers, ...Object.fromEntries(merged) };
}

function problemResponses(kinds: readonly ProblemKind[]) {
  const byStatus = Map.groupBy(kinds, (kind) => problems[kind].status);
  return Object.fromEntries(
    [...byStatus]
      .sort(([a], [b]) => a - b)
      .map(([status, of]) => [
        status,
        {
          description: of.map((kind) => `\`${kind}\`: ${problems[kind].title}.`).join(' '),
          // For programs: the comparison of versions finds a kind that is gone.
          'x-problems': of,
          content: { 'application/problem+json': { schema: Problem } },
        },
      ]),
  );
}

// What the generator of the library does not write

interface Document {
  readonly paths: Record<string, Record<string, Operation>>;
  webhooks?: Record<string, object>;
  readonly components: {
    schemas: Record<string, JsonSchema>;
    headers?: object;
  };
}

interface Operation {
  readonly operationId: string;
  readonly parameters?: readonly { readonly name: string }[];
  readonly responses: Record<string, Response>;
}

interface Response {
  headers?: Record<string, object>;
  readonly content?: Record<string, { schema: JsonSchema }>;
  readonly 'x-problems'?: readonly ProblemKind[];
}

const HEADERS = {
  'X-Request-Id': Text('The id of the request, as in the log of the service.'),
  'Retry-After': {
    schema: { type: 'integer', minimum: 0 },
    description: 'Seconds to wait before the request is repeated.',
  },
  'Idempotency-Replayed': {
    schema: { type: 'string', const: 'true' },
    description: 'The response is that of the first request with this `Idempotency-Key`. Absent otherwise.',
  },
  'WWW-Authenticate': Text('`Bearer`, with `error="invalid_token"` if a key was sent.'),
};

/** Adds the schemas of events, webhooks and the headers of responses, and names the schemas of lists. */
function completed(document: Document): object {
  const { schemas } = document.components;
  // Routes describe an event by its envelope only: they send what is stored.
  Object.assign(schemas, eventComponents());
  for (const operation of Object.values(document.paths).flatMap((item) => Object.values(item))) {
    const replayed = operation.parameters?.some(({ name }) => name === 'Idempotency-Key') ?? false;
    for (const [status, response] of Object.entries(operation.responses)) {
      const names = headersOf(status, response, replayed);
      response.headers = {
        ...Object.fromEntries(names.map((name) => [name, { $ref: `#/components/headers/${name}` }])),
        ...response.headers,
      };
      for (const content of Object.values(response.content ?? {})) {
        const name = nameOfPage(content.schema);
        if (name === undefined) continue;
        if (schemas[name] && JSON.stringify(schemas[name]) !== JSON.stringify(content.schema)) {
          throw new Error(`${operation.operationId} answers with another ${name} than other operations.`);
        }
        schemas[name] = content.schema;
        content.schema = { $ref: `#/components/schemas/${name}` };
      }
    }
  }
  for (const schema of Object.values(schemas)) dropObjectDefaults(schema);
  document.components.headers = HEADERS;
  document.webhooks = webhooks();
  return document;
}

/** Removes defaults that are objects, which generators do not read. Descriptions have them. */
function dropObjectDefaults(schema: unknown): void {
  if (typeof schema !== 'object' || schema === null) return;
  const all = schema as Record<string, unknown>;
  if (typeof all.default === 'object' && all.default !== null && !Array.isArray(all.default))
    delete all.default;
  for (const part of Object.values(all)) dropObjectDefaults(part);
}

/** Names of the headers that any response of its kind may have. */
function headersOf(status: string, response: Response, replayed: boolean): (keyof typeof HEADERS)[] {
  const kinds = response['x-problems'] ?? [];
  const busy = kinds.includes('conflict') || kinds.includes('still-in-progress');
  return [
    'X-Request-Id',
    ...(['202', '429', '503'].includes(status) || busy ? (['Retry-After'] as const) : []),
    ...(replayed && /^(2..|400|404|409|412|422)$/.test(status) ? (['Idempotency-Replayed'] as const) : []),
    ...(status === '401' ? (['WWW-Authenticate'] as const) : []),
  ];
}

/** A page of a list is named by what it lists. `undefined` for a schema that is no page, or that has a name. */
function nameOfPage(schema: JsonSchema): string | undefined {
  const properties = (schema.properties ?? {}) as Record<string, { readonly items?: { $ref?: string } }>;
  const names = Object.keys(properties);
  if (names.length !== 2 || names[1] !== 'next') return undefined;
  const item = properties[names[0] ?? '']?.items?.$ref?.split('/').at(-1);
  return item && `${item.replace(/^Listed/, '')}Page`;
}

/** The headers of webhooks as parameters. Not as components: generators take those for unused that only webhooks use. */
function webhookParameters(): readonly JsonSchema[] {
  const { properties, required } = webhookHeaders() as {
    properties: Record<string, JsonSchema>;
    required: readonly string[];
  };
  return Object.entries(properties).map(([name, { description, ...schema }]) => ({
    ...{ name, in: 'header', required: required.includes(name), description, schema },
  }));
}

/** What receivers get: one webhook for each event type. */
function webhooks(): Record<string, object> {
  return Object.fromEntries(
    eventTypes.map((type) => {
      const name = pascalCase(type);
      const post = {
        operationId: `receive${name}`,
        tags: ['Webhooks'],
        summary: type,
        description: catalogue[type].when,
        security: [],
        parameters: webhookParameters(),
        requestBody: {
          required: true,
          content: {
            'application/cloudevents+json': {
              schema: { $ref: `#/components/schemas/${name}Event` },
              example: exampleOf(type),
            },
          },
        },
        responses: {
          '2XX': { description: 'The event was delivered.' },
          '410': { description: 'The endpoint is gone: it is disabled.' },
          default: { description: 'The event was not delivered. It is sent again later.' },
        },
      };
      return [type, { post }];
    }),
  );
}
