/**
 * Generates the OpenAPI document (3.1) of the HTTP API from the routes. Only the build and tests generate it: a process serves
 * the committed file, so that no function contains the generator (docs/decisions/0019-routes-as-data.md).
 */
import { createRoute, OpenAPIHono } from '@hono/zod-openapi';
import * as z from 'zod';
import { webhookHeaders } from '../events/asyncapi.ts';
import { catalogue, eventTypes } from '../events/catalogue.ts';
import { getExample } from '../events/examples.ts';
import { eventComponents, type JsonSchema, pascalCase } from '../events/schemas.ts';
import { withOpenEnums } from '../json-schema.ts';
import { mapValues } from '../map-values.ts';
import { VERSION } from '../version.ts';
import { IdempotencyKey } from './idempotency.ts';
import { meanings } from './problem-meanings.ts';
import { PROBLEM_TYPE, type ProblemKind, problems } from './problems.ts';
import {
  getCsvPage,
  listProblems,
  type ResponseSpec,
  type Route,
  tags,
  takesIdempotencyKey,
} from './route.ts';
import { routes } from './routes/all.ts';

const Problem = z
  .looseObject({
    type: z
      .string()
      .describe(
        [
          `Kind of the problem: \`${PROBLEM_TYPE}\`, followed by one of these names. New kinds can be added at any time. The meaning of a kind never changes.\n`,
          ...Object.entries(problems).map(
            ([kind, { status }]) => `- \`${kind}\` (${status}): ${meanings[kind as ProblemKind]}`,
          ),
        ].join('\n'),
      ),
    title: z.string(),
    status: z.int(),
    detail: z.string().describe('Explanation of the error.'),
    field: z.string().optional().describe('Name of the invalid parameter, or path of the field.'),
    requestId: z.string().describe('Id of the request, as in the header `X-Request-Id`.'),
  })
  .meta({ id: 'Problem', description: 'Problem details (RFC 9457).' });

const IDEMPOTENCY_KEY = IdempotencyKey.optional().describe('Makes it safe to repeat the request.');
const IF_NONE_MATCH = z
  .string()
  .optional()
  .describe('`ETag` of the cached copy. If it is current, the response is 304.');
const IF_MATCH = z.string().optional().describe('`ETag` of the revision to change.');

/** Media types of forms. */
const FORMS = ['application/x-www-form-urlencoded', 'multipart/form-data'];

const Text = (text: string) => ({ schema: { type: 'string' as const }, description: text });

const DOCUMENT_TAG = 'Revision of the document, for `If-None-Match`.';
const NOT_MODIFIED: ResponseSpec = {
  status: 304,
  description: 'The cached copy is current.',
  headers: { ETag: DOCUMENT_TAG },
};

/** What holds for many operations. */
const INTRODUCTION = [
  'Jobwire polls an ordering API for print jobs and records each change of a job as an event. Each account has an event log. Events about outages and endpoints are in the log of the region: one log for each deployment of Jobwire (cell) that serves the region. "The list" is the list of active jobs in the ordering API. The *job detail* is all data of one job.',
  '- Pages: to get the next page of a list, send `next` as `after`. A page can have fewer items than `limit`, or none, although further pages follow.\n- Cursors: a cursor is a position in a log.\n- Access: an API key can be restricted to some accounts. Lists contain only what the key can access. With the role `read`, the addresses of customers are masked.\n- Times are in UTC (ISO 8601), except dates of the ordering API, such as `dateDue` and `dateOut`. Days are `YYYY-MM-DD`. Later versions can add fields and known values.\n- PATCH: omitted fields are unchanged. `null` removes a value, or resets it to its default.\n- `Idempotency-Key`: a POST request with the same key is not executed again. It returns the first response, unless that was a 429 or 5xx.\n- `If-Match`: the request changes the resource only if the header equals its current `ETag`. Otherwise, the response is 412. Without the header, the revision is not checked.\n- Errors are problem details (RFC 9457). Their `type` identifies the kind of error. Every operation can also return `request-blocked` (403) and, on AWS, `too-many-requests` (429).',
].join('\n\n');

/** Generates the document. */
export function openApiDocument(): object {
  const api = new OpenAPIHono();
  api.openAPIRegistry.registerComponent('securitySchemes', 'key', {
    type: 'http',
    scheme: 'bearer',
    description: 'API key: `jw_<id>_<secret>`, or the key from the configuration.',
  });
  api.openAPIRegistry.registerComponent('securitySchemes', 'idToken', {
    type: 'http',
    scheme: 'bearer',
    bearerFormat: 'JWT',
    description: 'ID token of a user (OpenID Connect). `GET /v1/sign-in` returns the issuer.',
  });
  for (const route of routes) api.openAPIRegistry.registerPath(toPath(route));
  const document = api.getOpenAPI31Document({
    openapi: '3.1.0',
    info: {
      title: 'Jobwire',
      version: VERSION,
      description: INTRODUCTION,
    },
    servers: [{ url: '/', description: 'Server that returned this document.' }],
    tags: [
      ...Object.entries(tags).map(([name, description]) => ({ name, description })),
      {
        name: 'Webhooks',
        description:
          'Requests that Jobwire sends to webhook endpoints, one for each event type. The header `webhook-replay` is not signed: use it only for display and logs.',
      },
    ],
  });
  return completed(JSON.parse(JSON.stringify(document)));
}

function toPath(route: Route) {
  const { spec } = route;
  const { method, path, id, tag, summary, description, role, subject, params, query, body, form, example } =
    spec;
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
    ...mapValues(spec.headers ?? {}, (text) => z.string().optional().describe(text)),
  };
  const pathParams = { ...subject?.params, ...params?.shape };
  const queryParams = { ...query?.shape, ...subject?.query };
  const bodyOptional = body?.safeParse({}).success;
  return createRoute({
    method,
    path,
    operationId: id,
    tags: [tag],
    summary,
    description,
    security: role === null ? [] : [{ key: [] }, { idToken: [] }],
    ...(role === null ? {} : { 'x-role': role }),
    request: {
      ...(Object.keys(pathParams).length > 0 ? { params: z.object(pathParams) } : {}),
      ...(Object.keys(queryParams).length > 0 ? { query: z.object(queryParams) } : {}),
      ...(Object.keys(headers).length > 0 ? { headers: z.object(headers) } : {}),
      body: body
        ? { required: !bodyOptional, content: { 'application/json': { schema: body, example } } }
        : form && {
            required: false,
            content: Object.fromEntries(FORMS.map((type) => [type, { schema: form }])),
          },
    },
    responses: withProblems(
      Object.fromEntries(
        answers.map((one: ResponseSpec) => [
          one.status ?? 200,
          toResponse(one, one === spec.answer && getCsvPage(spec) !== undefined),
        ]),
      ),
      problemResponses(listProblems(route)),
    ),
  });
}

function toResponse(
  { description, schema, contentType = 'application/json', headers = {} }: ResponseSpec,
  hasCsv: boolean,
) {
  return {
    description,
    headers: mapValues(headers, Text),
    ...(schema ? { content: { [contentType]: { schema }, ...(hasCsv ? CSV : {}) } } : {}),
  };
}

const CSV = { 'text/csv': { schema: { type: 'string' as const } } };

type Responses = Record<string, { readonly content?: object }>;

/** Merges responses. A regular response and a problem can have the same status, for example an HTML page with status 404. */
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
          description: of.map((kind) => `\`${kind}\``).join(', '),
          // Machine-readable: the compatibility check detects removed kinds.
          'x-problems': of,
          content: { 'application/problem+json': { schema: Problem } },
        },
      ]),
  );
}

// Parts that the generator of the library does not support

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
  readonly parameters?: readonly { readonly name: string; readonly schema: { description?: string } }[];
  readonly requestBody?: unknown;
  readonly responses: Record<string, Response>;
}

interface Response {
  headers?: Record<string, object>;
  readonly content?: Record<string, { schema: JsonSchema }>;
  readonly 'x-problems'?: readonly ProblemKind[];
}

const HEADERS = {
  Link: Text(
    'With `Accept: text/csv`: address of the next page, with `rel="next"`. Absent on the last page, and at the end of an event feed.',
  ),
  'X-Request-Id': Text('Id of the request, as in the server log.'),
  'Retry-After': {
    schema: { type: 'integer', minimum: 0 },
    description: 'Time to wait before the request is repeated, in seconds.',
  },
  'Idempotency-Replayed': {
    schema: { type: 'string', const: 'true' },
    description: '`true`: stored response to the first request with this `Idempotency-Key`.',
  },
  'RateLimit-Policy': Text(
    'Quota (draft-ietf-httpapi-ratelimit-headers): `q` requests in `w` seconds, or `q` concurrent requests if `qu="concurrent-requests"`.',
  ),
  RateLimit: Text(
    'State of the quota: `r` requests are left, and more may be available in `t` seconds. Absent if not known.',
  ),
  'WWW-Authenticate': Text(
    '`Bearer`, with `error="invalid_token"` if the request contained an API key or ID token.',
  ),
};

/** Adds event schemas, webhooks and response headers, and names the schemas of lists. */
function completed(document: Document): object {
  const { schemas } = document.components;
  // Routes only declare the envelope of events, because they send stored JSON.
  Object.assign(schemas, eventComponents());
  for (const operation of Object.values(document.paths).flatMap((item) => Object.values(item))) {
    const replayed = operation.parameters?.some(({ name }) => name === 'Idempotency-Key') ?? false;
    // The parameter itself has the same description.
    for (const { schema } of operation.parameters ?? []) delete schema.description;
    for (const [status, response] of Object.entries(operation.responses)) {
      const names = listHeaders(status, response, replayed);
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
  const inputs = getInputSchemas(document);
  for (const [name, schema] of Object.entries(schemas)) {
    dropObjectDefaults(schema);
    if (!inputs.has(name)) schemas[name] = withOpenEnums(schema);
  }
  document.components.headers = HEADERS;
  document.webhooks = webhooks();
  return document;
}

/** The parts of a document that contain the schemas of request bodies. */
interface WithInputs {
  readonly paths: Readonly<Record<string, Readonly<Record<string, { readonly requestBody?: unknown }>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, unknown>> };
}

/** Returns the names of the schemas of request bodies, and of the schemas within them. */
export function getInputSchemas({ paths, components }: WithInputs): ReadonlySet<string> {
  const names = new Set<string>();
  const add = (value: unknown): void => {
    if (typeof value !== 'object' || value === null) return;
    for (const [key, part] of Object.entries(value)) {
      if (key !== '$ref') add(part);
      else {
        const name = String(part).replace(/^.*\//, '');
        if (!names.has(name)) add(components.schemas[names.add(name) && name]);
      }
    }
  };
  for (const { requestBody } of Object.values(paths).flatMap((item) => Object.values(item))) add(requestBody);
  return names;
}

/** Removes object defaults, which code generators do not support. Descriptions contain them. */
function dropObjectDefaults(schema: unknown): void {
  if (typeof schema !== 'object' || schema === null) return;
  const all = schema as Record<string, unknown>;
  if (typeof all.default === 'object' && all.default !== null && !Array.isArray(all.default))
    delete all.default;
  for (const part of Object.values(all)) dropObjectDefaults(part);
}

/** Returns the names of the headers that a response can have. */
function listHeaders(status: string, response: Response, replayed: boolean): (keyof typeof HEADERS)[] {
  const kinds = response['x-problems'] ?? [];
  const busy = kinds.includes('conflict') || kinds.includes('request-in-progress');
  return [
    'X-Request-Id',
    ...(['202', '429', '503'].includes(status) || busy ? (['Retry-After'] as const) : []),
    ...(replayed && /^(2..|400|404|409|412|422)$/.test(status) ? (['Idempotency-Replayed'] as const) : []),
    ...(status === '401' ? (['WWW-Authenticate'] as const) : []),
    ...(response.content?.['text/csv'] ? (['Link'] as const) : []),
    ...(['401', '429'].includes(status) ? (['RateLimit-Policy', 'RateLimit'] as const) : []),
  ];
}

/** Returns the schema name of a page, derived from its items. Returns `undefined` if the schema is not an unnamed page. */
function nameOfPage(schema: JsonSchema): string | undefined {
  const properties = (schema.properties ?? {}) as Record<string, { readonly items?: { $ref?: string } }>;
  const names = Object.keys(properties);
  if (names.length !== 2 || names[1] !== 'next') return undefined;
  const item = properties[names[0] ?? '']?.items?.$ref?.split('/').at(-1);
  return item && `${item.replace(/^Listed/, '')}Page`;
}

/** Returns the webhook headers as parameters. Not as components: code generators report components as unused if only webhooks use them. */
function webhookParameters(): readonly JsonSchema[] {
  const { properties, required } = webhookHeaders() as {
    properties: Record<string, JsonSchema>;
    required: readonly string[];
  };
  return Object.entries(properties).map(([name, { description, ...schema }]) => ({
    ...{ name, in: 'header', required: required.includes(name), description, schema },
  }));
}

const WEBHOOK_RESPONSES = {
  '2XX': { description: 'Delivered.' },
  '410': { description: 'The endpoint is disabled.' },
  default: { description: 'Not delivered. Sent again later.' },
};
/** A ping is one attempt, which does not change the state of the endpoint. */
const PING_RESPONSES = {
  '2XX': { description: 'The ping was delivered.' },
  '410': {
    description: 'Not delivered. The endpoint is not disabled.',
  },
  default: { description: 'Not delivered. Not sent again.' },
};

/** Returns one webhook per event type. */
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
              example: getExample(type),
            },
          },
        },
        responses: type === 'jobwire.ping' ? PING_RESPONSES : WEBHOOK_RESPONSES,
      };
      return [type, { post }];
    }),
  );
}
