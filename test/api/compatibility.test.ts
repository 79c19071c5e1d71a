/**
 * The compatibility check finds breaking changes and accepts others, in schemas of all shapes and everything around them.
 * One file: its tests change copies of the same documents.
 */
import { Ajv2020 } from 'ajv/dist/2020.js';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { asyncApiDocument } from '../../shared/events/asyncapi.ts';
import { breakingInAsyncApi, breakingInOpenApi } from '../support/compatibility.ts';
import { runs, sized } from '../support/runs.ts';

/** Any part of a document, to be changed. */
// biome-ignore lint/suspicious/noExplicitAny: documents are changed anywhere
type Any = any;

/** A small document with a part of every kind. */
function openApi(): Any {
  const problem = { $ref: '#/components/responses/Problem' };
  const answer = (schema: Any) => ({
    200: { description: 'ok', headers: { ETag: { schema: { type: 'string' } } }, content: json(schema) },
    404: problem,
  });
  return {
    openapi: '3.1.0',
    info: { title: 'A small one', version: '1.0.0' },
    security: [{ key: [] }],
    paths: {
      '/v1/things': {
        get: {
          operationId: 'listThings',
          'x-role': 'read',
          parameters: [
            {
              name: 'limit',
              in: 'query',
              schema: { type: 'integer', minimum: 1, maximum: 500, default: 100 },
            },
            { name: 'state', in: 'query', schema: { type: 'string', enum: ['open', 'closed'] } },
            { name: 'If-Match', in: 'header', schema: { type: 'string' } },
          ],
          responses: answer({
            type: 'object',
            required: ['things', 'next'],
            properties: {
              things: { type: 'array', items: { $ref: '#/components/schemas/Thing' } },
              next: { anyOf: [{ type: 'string' }, { type: 'null' }] },
            },
            additionalProperties: false,
          }),
        },
        post: {
          operationId: 'makeThing',
          'x-role': 'operate',
          requestBody: { required: false, content: json({ $ref: '#/components/schemas/NewThing' }) },
          responses: answer({ $ref: '#/components/schemas/Thing' }),
        },
      },
      '/healthz': {
        get: { operationId: 'getHealth', security: [], responses: { 200: { description: 'ok' } } },
      },
    },
    webhooks: {
      'thing.made': { post: { requestBody: { content: json({ $ref: '#/components/schemas/Made' }) } } },
    },
    components: {
      securitySchemes: { key: { type: 'http', scheme: 'bearer' } },
      responses: {
        Problem: {
          description: 'not ok',
          'x-problems': ['not-found', 'gone'],
          content: {
            'application/problem+json': {
              schema: {
                type: 'object',
                required: ['type'],
                properties: { type: { type: 'string', enum: ['urn:a', 'urn:b'] } },
              },
            },
          },
        },
      },
      schemas: {
        Thing: {
          type: 'object',
          required: ['id', 'state', 'part'],
          properties: {
            id: { type: 'string', maxLength: 20 },
            state: { type: 'string', enum: ['open', 'closed'] },
            hint: { type: 'string', 'x-extensible-enum': ['a', 'b'] },
            size: { type: 'number' },
            part: {
              oneOf: [
                {
                  type: 'object',
                  required: ['kind', 'n'],
                  properties: { kind: { const: 'n' }, n: { type: 'number' } },
                },
                {
                  type: 'object',
                  required: ['kind', 's'],
                  properties: { kind: { const: 's' }, s: { type: 'string' } },
                },
              ],
            },
            labels: { type: 'object', additionalProperties: { type: 'string' } },
            inner: { $ref: '#/components/schemas/Thing' },
          },
        },
        Made: {
          oneOf: ['made', 'kept'].map((type) => ({
            ...{ type: 'object', required: ['type', 'at'] },
            properties: { type: { const: type }, at: { type: 'string' } },
          })),
          discriminator: { propertyName: 'type' },
          'x-extensible': true,
        },
        NewThing: {
          type: 'object',
          required: ['name'],
          properties: {
            name: { type: 'string', minLength: 1, maxLength: 50 },
            size: { type: ['number', 'null'] },
            tags: { type: 'array', items: { type: 'string' }, maxItems: 5 },
            mode: { type: 'string', enum: ['a', 'b'] },
          },
          additionalProperties: false,
        },
      },
    },
  };
}

function json(schema: Any) {
  return { 'application/json': { schema } };
}

const list = (d: Any) => d.paths['/v1/things'].get;
const make = (d: Any) => d.paths['/v1/things'].post;
const thing = (d: Any) => d.components.schemas.Thing;
const part = (d: Any) => thing(d).properties.part.oneOf;
const fresh = (d: Any) => d.components.schemas.NewThing;
const page = (d: Any) => list(d).responses[200].content['application/json'].schema;
const problem = (d: Any) => d.components.responses.Problem;
const made = (d: Any) => d.components.schemas.Made;
const lost = () => ({ ...made(openApi()).oneOf[0], properties: { type: { const: 'lost' } } });

describe('in OpenAPI', () => {
  test.each<[change: string, (d: Any) => void, said: string]>([
    ['a path is removed', (d) => delete d.paths['/healthz'], 'GET /healthz is gone'],
    ['an operation is removed', (d) => delete d.paths['/v1/things'].post, 'POST /v1/things is gone'],
    ['an operation is renamed', (d) => (list(d).operationId = 'x'), 'GET /v1/things has another operationId'],
    [
      'an operation requires a higher role',
      (d) => (list(d)['x-role'] = 'admin'),
      'GET /v1/things takes the role admin',
    ],
    [
      'a public operation requires a key',
      (d) => delete d.paths['/healthz'].get.security,
      'GET /healthz asks for more than nothing',
    ],
    [
      'another security scheme is required',
      (d) => (list(d).security = [{ other: [] }]),
      'GET /v1/things asks for more than key',
    ],
    [
      'a scope is required',
      (d) => (d.security = [{ key: ['big'] }]),
      'GET /v1/things asks for more than key',
    ],
    [
      'the key is sent in another place',
      (d) => (d.components.securitySchemes.key = { type: 'apiKey', in: 'header', name: 'k' }),
      'security scheme key is another',
    ],
    ['a parameter is removed', (d) => list(d).parameters.shift(), 'GET /v1/things query limit is gone'],
    [
      'a parameter becomes required',
      (d) => (list(d).parameters[0].required = true),
      'GET /v1/things query limit is required',
    ],
    [
      'a new parameter is required',
      (d) => list(d).parameters.push({ name: 'n', in: 'query', required: true, schema: {} }),
      'GET /v1/things query n is new and required',
    ],
    [
      'a header becomes required',
      (d) => (list(d).parameters[2].required = true),
      'GET /v1/things header if-match is required',
    ],
    [
      'a parameter is serialized differently',
      (d) => (list(d).parameters[1].explode = false),
      'GET /v1/things query state has another explode',
    ],
    [
      'a parameter accepts fewer values',
      (d) => (list(d).parameters[0].schema.maximum = 100),
      'GET /v1/things query limit has a stricter maximum',
    ],
    [
      'a value is no longer accepted',
      (d) => list(d).parameters[1].schema.enum.pop(),
      'GET /v1/things query state no longer takes "closed"',
    ],
    [
      'a default changes',
      (d) => (list(d).parameters[0].schema.default = 50),
      'GET /v1/things query limit has another default',
    ],
    ['a body is required', (d) => (make(d).requestBody.required = true), 'POST /v1/things body is required'],
    [
      'a new body is required',
      (d) => (list(d).requestBody = { required: true, content: {} }),
      'GET /v1/things body is required',
    ],
    [
      'a media type of a body is removed',
      (d) => (make(d).requestBody.content = { 'text/plain': {} }),
      'POST /v1/things body as application/json is gone',
    ],
    ['a field is required', (d) => fresh(d).required.push('mode'), 'schema NewThing (in): mode is required'],
    [
      'a new field is required',
      (d) => {
        fresh(d).required.push('more');
        fresh(d).properties.more = {};
      },
      'schema NewThing (in): more is required',
    ],
    [
      'a field is no longer accepted',
      (d) => delete fresh(d).properties.mode,
      'schema NewThing (in): mode is gone',
    ],
    [
      'a field accepts fewer values',
      (d) => (fresh(d).properties.name.maxLength = 49),
      'schema NewThing (in): name has a stricter maxLength',
    ],
    [
      'a list accepts fewer entries',
      (d) => (fresh(d).properties.tags.maxItems = 4),
      'schema NewThing (in): tags has a stricter maxItems',
    ],
    [
      'the entries of a list accept fewer values',
      (d) => (fresh(d).properties.tags.items.minLength = 1),
      'schema NewThing (in): tags[] has a stricter minLength',
    ],
    [
      'null is no longer accepted',
      (d) => (fresh(d).properties.size.type = 'number'),
      'schema NewThing (in): size no longer takes null',
    ],
    [
      'a pattern is added',
      (d) => (fresh(d).properties.name.pattern = '^a'),
      'schema NewThing (in): name has another pattern',
    ],
    [
      'a type is replaced by another',
      (d) => (fresh(d).properties.name = { type: 'integer' }),
      'schema NewThing (in): name no longer takes string',
    ],
    [
      'fractions are no longer accepted',
      (d) => (fresh(d).properties.size.type = ['integer', 'null']),
      'schema NewThing (in): size no longer takes number',
    ],
    [
      'any text becomes an enumeration',
      (d) => (fresh(d).properties.name = { enum: ['a'] }),
      'schema NewThing (in): name takes some values only',
    ],
    [
      'an unknown constraint is added',
      (d) => (fresh(d).properties.name.not = { const: 'x' }),
      'schema NewThing (in): name has another not',
    ],
    ['a response is removed', (d) => delete list(d).responses[404], 'GET /v1/things answer 404 is gone'],
    [
      'another success status is added',
      (d) => (make(d).responses[202] = { description: 'later' }),
      'POST /v1/things answer 202 is new',
    ],
    [
      'a media type of a response is removed',
      (d) => (list(d).responses[200].content = {}),
      'GET /v1/things answer 200 as application/json is gone',
    ],
    [
      'a header is removed',
      (d) => delete list(d).responses[200].headers.ETag,
      'GET /v1/things answer 200 header etag is gone',
    ],
    ['a field is removed', (d) => delete thing(d).properties.size, 'schema Thing (out): size is gone'],
    [
      'a field of a page is removed',
      (d) => delete page(d).properties.next,
      'GET /v1/things answer 200: next is gone',
    ],
    [
      'a field may be missing',
      (d) => page(d).required.pop(),
      'GET /v1/things answer 200: next may be missing',
    ],
    [
      'null may occur',
      (d) => (thing(d).properties.id.type = ['string', 'null']),
      'schema Thing (out): id may be null',
    ],
    [
      'a type is replaced by another',
      (d) => (thing(d).properties.id = { type: 'integer' }),
      'schema Thing (out): id may be integer',
    ],
    [
      'a text may be longer',
      (d) => (thing(d).properties.id.maxLength = 21),
      'schema Thing (out): id has a looser maxLength',
    ],
    [
      'a value is added',
      (d) => thing(d).properties.state.enum.push('x'),
      'schema Thing (out): state may be "x"',
    ],
    [
      'a value is no longer sent',
      (d) => thing(d).properties.state.enum.pop(),
      'schema Thing (out): state is never "closed" any more',
    ],
    [
      'an enumeration becomes any value',
      (d) => delete thing(d).properties.state.enum,
      'schema Thing (out): state may be any value',
    ],
    [
      'a known value is removed',
      (d) => thing(d).properties.hint['x-extensible-enum'].pop(),
      'schema Thing (out): hint no longer knows "b"',
    ],
    ['an alternative is removed', (d) => part(d).pop(), 'schema Thing (out): part is never object any more'],
    [
      'one of several alternatives is added',
      (d) => part(d).push({ type: 'object', required: ['kind'], properties: { kind: { const: 'z' } } }),
      'schema Thing (out): part.kind may be "z"',
    ],
    [
      'a field of one of several alternatives is removed',
      (d) => {
        delete part(d)[1].properties.s;
        part(d)[1].required = ['kind'];
      },
      'schema Thing (out): part.s is gone',
    ],
    [
      'the values of labels change',
      (d) => (thing(d).properties.labels.additionalProperties.type = 'number'),
      'schema Thing (out): labels.* may be number',
    ],
    [
      'a problem is no longer sent',
      (d) => problem(d)['x-problems'].pop(),
      'GET /v1/things answer 404 problem gone is gone',
    ],
    [
      'a type of problem is removed',
      (d) => problem(d).content['application/problem+json'].schema.properties.type.enum.pop(),
      'GET /v1/things answer 404: type is never "urn:b" any more',
    ],
    ['a webhook is removed', (d) => delete d.webhooks['thing.made'], 'webhook thing.made is gone'],
    [
      'a webhook has another media type',
      (d) => (d.webhooks['thing.made'].post.requestBody.content = { 'text/plain': {} }),
      'webhook thing.made as application/json is gone',
    ],
    [
      'a field of an alternative is removed',
      (d) => delete made(d).oneOf[1].properties.at,
      'schema Made (out): at is gone',
    ],
    [
      'an alternative of an extensible union is removed',
      (d) => made(d).oneOf.pop(),
      'schema Made (out) is never object any more',
    ],
    [
      'an alternative is added to a union that is not extensible',
      (d) => {
        made(d).oneOf.push(lost());
        delete made(d)['x-extensible'];
      },
      'schema Made (out): at is gone',
    ],
  ])('it breaks when %s', (_, change, said) => {
    const after = openApi();
    change(after);
    expect(breakingInOpenApi(openApi(), after)).toContain(said);
  });

  test.each<[change: string, (d: Any) => void]>([
    ['nothing changes', () => {}],
    ['a path is added', (d) => (d.paths['/v1/more'] = { get: { responses: {} } })],
    ['an operation is added', (d) => (d.paths['/v1/things'].put = { operationId: 'p', responses: {} })],
    ['an operation requires a lower role', (d) => (make(d)['x-role'] = 'read')],
    ['a key is no longer required', (d) => (list(d).security = [])],
    ['another security scheme is accepted', (d) => (d.security = [{ key: [] }, { other: [] }])],
    [
      'a parameter is added',
      (d) => list(d).parameters.push({ name: 'n', in: 'query', schema: { type: 'string' } }),
    ],
    ['a parameter accepts more values', (d) => (list(d).parameters[0].schema.maximum = 1000)],
    ['an additional value is accepted', (d) => list(d).parameters[1].schema.enum.push('late')],
    ['an optional body is added', (d) => (list(d).requestBody = { content: {} })],
    ['an optional field is added', (d) => (fresh(d).properties.more = { type: 'string' })],
    ['a field becomes optional', (d) => (fresh(d).required = [])],
    ['null is accepted', (d) => (fresh(d).properties.name.type = ['string', 'null'])],
    [
      'null is accepted in another notation',
      (d) => (fresh(d).properties.size = { anyOf: [{ type: 'null' }, { type: 'number' }] }),
    ],
    ['a bound is removed', (d) => delete fresh(d).properties.name.maxLength],
    ['an enumeration becomes any value', (d) => delete fresh(d).properties.mode.enum],
    ['unknown fields are accepted', (d) => delete fresh(d).additionalProperties],
    ['a field of a response is added', (d) => (thing(d).properties.more = { type: 'string' })],
    ['a field is always present', (d) => thing(d).required.push('size')],
    ['null is no longer sent', (d) => (page(d).properties.next = { type: 'string' })],
    ['only integers are sent', (d) => (thing(d).properties.size.type = 'integer')],
    ['the maximum length becomes shorter', (d) => (thing(d).properties.id.maxLength = 19)],
    ['an alternative is added to an extensible union', (d) => made(d).oneOf.push(lost())],
    ['a webhook is added', (d) => (d.webhooks['thing.lost'] = { post: {} })],
    ['a known value is added', (d) => thing(d).properties.hint['x-extensible-enum'].push('c')],
    ['the order of several changes', (d) => part(d).reverse()],
    [
      'a schema is inlined',
      (d) => (thing(d).properties.inner = { allOf: [{ $ref: '#/components/schemas/Thing' }] }),
    ],
    [
      'a kind of problem is added',
      (d) => problem(d).content['application/problem+json'].schema.properties.type.enum.push('urn:c'),
    ],
    [
      'a conditional request is added, which is answered with 304',
      (d) => {
        list(d).parameters.push({ name: 'If-None-Match', in: 'header', schema: { type: 'string' } });
        list(d).responses[304] = { description: 'not modified' };
      },
    ],
    ['a status of problems is added', (d) => (list(d).responses[429] = { description: 'slow' })],
    [
      'words change',
      (d) => {
        d.info.title = 'x';
        thing(d).description = 'x';
        list(d).summary = 'x';
        thing(d).example = {};
      },
    ],
    [
      'a header of a response is added',
      (d) => (list(d).responses[200].headers.Age = { schema: { type: 'string' } }),
    ],
  ])('is compatible when %s', (_, change) => {
    const after = openApi();
    change(after);
    expect(breakingInOpenApi(openApi(), after)).toEqual([]);
  });
});

describe('in AsyncAPI', () => {
  const text = JSON.stringify(asyncApiDocument());
  const document = (): Any => JSON.parse(text);
  const closed = (d: Any) => d.components.schemas['job.closed'];

  test.each<[change: string, (d: Any) => void, said: string]>([
    ['a channel is removed', (d) => delete d.channels.webhook, 'channel webhook is gone'],
    [
      'a channel has another address',
      (d) => (d.channels.stream.address = '/v2'),
      'channel stream has another address',
    ],
    ['a server is removed', (d) => delete d.servers.sns, 'server sns is gone'],
    ['a server is changed', (d) => (d.servers.sns.protocol = 'sqs'), 'server sns has another protocol'],
    ['an operation is removed', (d) => delete d.operations.followAll, 'operation followAll is gone'],
    [
      'an operation changes its direction',
      (d) => (d.operations.followAll.action = 'receive'),
      'operation followAll has another action',
    ],
    [
      'a type is removed',
      (d) => delete d.channels.topic.messages['job.closed'],
      'channel topic message job.closed is gone',
    ],
    [
      'a type is renamed',
      (d) => (closed(d).properties.type.const = 'job.shut'),
      'schema job.closed (out): type may be "job.shut"',
    ],
    [
      'a field is removed',
      (d) => delete d.components.schemas.Job.properties.mustDate,
      'schema Job (out): mustDate is gone',
    ],
    [
      'a field changes its type',
      (d) => (d.components.schemas.Job.properties.jobNumber.type = 'string'),
      'schema Job (out): jobNumber may be string',
    ],
    [
      'a field may be missing',
      (d) => d.components.schemas.Job.required.shift(),
      'schema Job (out): jobNumber may be missing',
    ],
    [
      'a known value is removed',
      (d) => d.components.schemas.Observed.properties.view['x-extensible-enum'].pop(),
      'schema Observed (out): view no longer knows "search"',
    ],
    [
      'a field of the envelope is removed',
      (d) => delete closed(d).properties.sequence,
      'schema job.closed (out): sequence is gone',
    ],
    [
      'an event may have no subject',
      (d) => (closed(d).required = closed(d).required.filter((name: string) => name !== 'subject')),
      'schema job.closed (out): subject may be missing',
    ],
    [
      'a header is removed',
      (d) => delete d.components.messageTraits.webhook.headers.properties['webhook-id'],
      'channel webhook message job.created header: webhook-id is gone',
    ],
    [
      'an attribute is removed',
      (d) => delete d.components.messageTraits.topic.headers.properties.region,
      'channel topic message job.created header: region is gone',
    ],
    [
      'the media type changes',
      (d) => (d.components.messageTraits.webhook.contentType = 'text/plain'),
      'channel webhook message job.closed has another content type',
    ],
  ])('it breaks when %s', (_, change, said) => {
    const after = document();
    change(after);
    expect(breakingInAsyncApi(document(), after)).toContain(said);
  });

  test.each<[change: string, (d: Any) => void]>([
    ['nothing changes', () => {}],
    ['a type is added', (d) => (d.channels.topic.messages['job.moved'] = { payload: { type: 'object' } })],
    ['a field is added', (d) => (d.components.schemas.Job.properties.weight = { type: 'number' })],
    [
      'a required field is added',
      (d) => {
        d.components.schemas.Job.properties.weight = { type: 'number' };
        d.components.schemas.Job.required.push('weight');
      },
    ],
    ['a channel is added', (d) => (d.channels.more = { messages: {} })],
    [
      'an attribute is added',
      (d) => (d.components.messageTraits.topic.headers.properties.more = { type: 'string' }),
    ],
    [
      'descriptions and examples change',
      (d) => {
        closed(d).description = 'x';
        d.components.messages['webhook.job.closed'].examples = [];
      },
    ],
  ])('is compatible when %s', (_, change) => {
    const after = document();
    change(after);
    expect(breakingInAsyncApi(document(), after)).toEqual([]);
  });
});

// Random schemas. An accepted comparison is tried with values: a value of the narrower side must be valid for the other.

const leaf: fc.Arbitrary<Any> = fc.oneof(
  fc.record({ type: fc.constant('string'), minLength: fc.nat(2), maxLength: fc.integer({ min: 2, max: 4 }) }),
  fc.record({
    type: fc.constantFrom('integer', 'number'),
    minimum: fc.nat(3),
    maximum: fc.integer({ min: 3, max: 6 }),
  }),
  fc.record({ type: fc.constantFrom('string', 'boolean', 'null', 'integer', 'number') }),
  fc.record({ type: fc.uniqueArray(fc.constantFrom('string', 'null', 'integer'), { minLength: 1 }) }),
  fc.record({ enum: fc.uniqueArray(fc.constantFrom('a', 'b', 'ccc', 1, null), { minLength: 1 }) }),
);
const { schema } = fc.letrec<{ schema: Any }>((tie) => ({
  schema: fc.oneof(
    { maxDepth: 3, depthSize: 'small' },
    leaf,
    fc.record({ type: fc.constant('array'), items: tie('schema'), maxItems: fc.nat(3) }),
    fc.record({ anyOf: fc.array(tie('schema'), { minLength: 1, maxLength: 3 }) }),
    fc
      .record({
        properties: fc.dictionary(fc.constantFrom('p', 'q', 'r'), tie('schema'), { noNullPrototype: true }),
        closed: fc.boolean(),
        needed: fc.uniqueArray(fc.constantFrom('p', 'q', 'r')),
      })
      .map(({ properties, closed, needed }) => ({
        ...{ type: 'object', properties, required: needed.filter((name) => name in properties) },
        ...(closed ? { additionalProperties: false } : {}),
      })),
  ),
}));

/** Values that a schema may take, on its bounds and off them. */
function valuesFor(schema: Any): fc.Arbitrary<unknown> {
  if (schema.enum) return fc.constantFrom(...schema.enum);
  if (schema.anyOf) return fc.oneof(...schema.anyOf.map(valuesFor));
  const types = [schema.type].flat();
  return fc.oneof(
    ...types.map((type: string): fc.Arbitrary<unknown> => {
      switch (type) {
        case 'string':
          return fc.string({ minLength: schema.minLength ?? 0, maxLength: schema.maxLength ?? 6 });
        case 'integer':
          return fc.integer({ min: schema.minimum ?? -2, max: schema.maximum ?? 9 });
        case 'number':
          return fc.double({ min: schema.minimum ?? -2, max: schema.maximum ?? 9, noNaN: true });
        case 'boolean':
          return fc.boolean();
        case 'array':
          return fc.array(valuesFor(schema.items), { maxLength: schema.maxItems });
        case 'object': {
          const model = {
            ...Object.fromEntries(
              Object.entries(schema.properties).map(([name, one]) => [name, valuesFor(one)]),
            ),
            ...(schema.additionalProperties === false ? {} : others(schema)),
          };
          const requiredKeys = schema.required.filter((name: string) => name in model);
          return fc.record(model, { requiredKeys, noNullPrototype: true });
        }
        default:
          return fc.constant(null);
      }
    }),
  );
}

/** Required fields without a schema. */
function others({ properties, required }: Any): Record<string, fc.Arbitrary<unknown>> {
  const names = ['z', ...required].filter((name) => !(name in properties));
  return Object.fromEntries(names.map((name) => [name, fc.constant(1)]));
}

/** A schema, and one that differs slightly or completely. */
const pair = fc.oneof(
  fc.tuple(schema, schema),
  fc
    .tuple(schema, fc.array(fc.tuple(fc.nat(), fc.nat()), { minLength: 1, maxLength: 2 }))
    .map(([one, changes]) => {
      const other = structuredClone(one);
      for (const [where, how] of changes) {
        const nodes = getNodes(other);
        alter(nodes[where % nodes.length], how);
      }
      return [one, other];
    }),
);

function getNodes(schema: Any): Any[] {
  const inner = [
    ...(schema.anyOf ?? []),
    ...Object.values(schema.properties ?? {}),
    schema.items ?? [],
  ].flat();
  return [schema, ...inner.flatMap(getNodes)];
}

function alter(node: Any, how: number): void {
  const changes: (() => void)[] = [
    () => node.enum?.length > 1 && node.enum.pop(),
    () => node.enum?.includes('zz') || node.enum?.push('zz'),
    () => move(node, 'maxLength', how),
    () => move(node, 'minimum', how),
    () => delete node.maxItems,
    () => node.required?.pop(),
    () => node.required?.includes('q') || node.required?.push('q'),
    () => node.properties && Object.assign(node.properties, { s: { type: 'string' } }),
    () => node.properties && delete node.properties.p,
    () => delete node.additionalProperties,
    () => node.properties && Object.assign(node, { additionalProperties: false }),
    () => ['string', 'array'].includes(node.type) && Object.assign(node, { type: [node.type, 'null'] }),
    () => node.anyOf?.length > 1 && node.anyOf.pop(),
  ];
  changes[how % changes.length]?.();
}

function move(node: Any, bound: string, how: number): void {
  // Away from the other bound, or one step towards it; they never cross.
  const room = bound === 'maxLength' ? node.maxLength - node.minLength : node.maximum - node.minimum;
  if (room > 0) node[bound] += (how % 3) - 1;
}

const ajv = new Ajv2020({ strict: false, unicodeRegExp: false });

function around(direction: 'in' | 'out', schema: Any): Any {
  const content = json(schema);
  const operation = direction === 'in' ? { requestBody: { content } } : { responses: { 200: { content } } };
  return { openapi: '3.1.0', paths: { '/': { post: operation } } };
}

describe('random schemas', () => {
  test('a compatible body accepts every value that was accepted', () => {
    let passed = 0;
    fc.assert(
      fc.property(pair, ([before, after]) => {
        if (breakingInOpenApi(around('in', before), around('in', after)).length > 0) return;
        passed++;
        const [was, is] = [ajv.compile(before), ajv.compile(after)];
        for (const value of fc.sample(valuesFor(before), 20)) {
          if (was(value)) expect(is(value), JSON.stringify({ before, after, value })).toBe(true);
        }
      }),
      runs(80, 1_000),
    );
    // Compatible pairs are frequent enough to be tried.
    expect(passed).toBeGreaterThan(sized(12, 100));
  });

  test('a compatible answer has no unexpected values', () => {
    let passed = 0;
    fc.assert(
      fc.property(pair, ([before, after]) => {
        if (breakingInOpenApi(around('out', before), around('out', after)).length > 0) return;
        passed++;
        // Clients ignore unknown fields.
        const [was, is] = [ajv.compile(open(before)), ajv.compile(after)];
        for (const value of fc.sample(valuesFor(after), 20)) {
          if (is(value)) expect(was(value), JSON.stringify({ before, after, value })).toBe(true);
        }
      }),
      runs(80, 1_000),
    );
    expect(passed).toBeGreaterThan(sized(12, 100));
  });

  test.each(['in', 'out'] as const)('no change is compatible (%s)', (direction) => {
    fc.assert(
      fc.property(schema, (one) => {
        expect(breakingInOpenApi(around(direction, one), around(direction, structuredClone(one)))).toEqual(
          [],
        );
      }),
    );
  });
});

function open(schema: Any): Any {
  const copy = structuredClone(schema);
  for (const node of getNodes(copy)) delete node.additionalProperties;
  return copy;
}
