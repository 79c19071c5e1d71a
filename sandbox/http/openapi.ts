/**
 * The OpenAPI document (3.1) of the sandbox, generated from `operations.ts`. It is loaded on first use, so that it costs no
 * start time.
 *
 * zod generates the schemas: Jobwire's own generator has to be loaded before the first schema is created.
 */
import * as z from 'zod';
import { Problem } from '../../shared/ordering/contract/common.ts';
import { Token, TokenError, TokenRequest } from '../../shared/ordering/contract/tokens.ts';
import { operations } from '../operations.ts';
import { REGIONS, type RegionCode } from '../world/regions.ts';
import { listAnswers, type Operation, type ResponseSpec } from './operation.ts';

/** Options of a document. */
export interface DescriptionOptions {
  /** URL of the sandbox, such as `http://127.0.0.1:4010`; servers are relative without it. */
  readonly origin?: string;
  /** The described region. Default: all. */
  readonly region?: RegionCode;
}

type Json = Record<string, unknown>;

const TAGS: Readonly<Record<Operation['tag'] | 'Tokens', string>> = {
  Tokens: 'Access tokens. Each region has its own token host.',
  'Price codes': 'Price codes with sizes, attributes and prices.',
  Jobs: 'Creating jobs, following them, changing and cancelling them.',
  Assets: 'Existing prints, which can be reordered.',
  Account: 'The account of the credentials, its users and payments.',
  Lookups: 'Reference data.',
  Stock: 'Goods in stock and how they are shipped.',
  'Promo codes': 'Discounts.',
};

/** Media types of request bodies that no operation names. */
const JSON_ONLY = ['application/json'];

/** Creates the document of one region, or of all. */
export function openApiDocument({ origin = '', region }: DescriptionOptions = {}): object {
  const schemas = new NamedSchemas();
  const paths: Record<string, Json> = { [tokenPath(region)]: tokenItem(schemas, origin, region) };
  for (const spec of operations) {
    const { method, path } = spec;
    paths[path] = { ...paths[path], [method]: toOperation(spec, schemas) };
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Ordering service (sandbox)',
      version: 'V1',
      description:
        'A simulated wholesale ordering API for heat transfers and stocked goods. A token belongs to one account of one region; requests for resources of other accounts are answered as if the resources did not exist. Errors are problem documents (RFC 7807).',
    },
    servers: [toServer('api', origin, region)],
    tags: Object.entries(TAGS).map(([name, description]) => ({ name, description })),
    security: [{ client: [] }],
    paths,
    components: {
      schemas: schemas.all(),
      securitySchemes: {
        client: {
          type: 'oauth2',
          description:
            'Client credentials (a key id and a secret) of an account. Tokens expire after ten minutes; reuse a token until shortly before it expires. Each region has its own token endpoint. Its tokens are valid in that region only.',
          flows: {
            clientCredentials: {
              tokenUrl: `${origin}/${region ?? 'us'}/auth${tokenPath(region ?? 'us')}`,
              scopes: {},
            },
          },
        },
      },
    },
  };
}

function toServer(host: 'api' | 'auth', origin: string, region: RegionCode | undefined): Json {
  if (region) return { url: `${origin}/${region}/${host}`, description: `The region ${region}.` };
  return {
    url: `${origin}/{region}/${host}`,
    description: 'Each region has its own host.',
    variables: { region: { enum: REGIONS, default: 'us', description: 'Part of the credentials.' } },
  };
}

const tokenPath = (realm = '{realm}'): string => `/realms/${realm}/protocol/openid-connect/token`;

function tokenItem(schemas: NamedSchemas, origin: string, region: RegionCode | undefined): Json {
  const realm = {
    name: 'realm',
    in: 'path',
    required: true,
    description: 'The name of the region.',
    schema: { type: 'string', enum: REGIONS },
  };
  const failure = (description: string) => ({
    description,
    content: { 'application/json': { schema: schemas.of(TokenError, 'output') } },
  });
  return {
    servers: [toServer('auth', origin, region)],
    post: {
      operationId: 'token',
      tags: ['Tokens'],
      summary: 'A token for client credentials.',
      security: [],
      ...(region ? {} : { parameters: [realm] }),
      requestBody: {
        required: true,
        content: { 'application/x-www-form-urlencoded': { schema: schemas.of(TokenRequest, 'input') } },
      },
      responses: {
        200: {
          description: 'The token.',
          content: { 'application/json': { schema: schemas.of(Token, 'output') } },
        },
        400: failure('The form is invalid, or requests an unsupported grant.'),
        401: failure('The client or its secret is wrong.'),
        404: failure('The realm does not exist.'),
        413: failure('The form is larger than 1 MiB.'),
      },
    },
  };
}

function toOperation(spec: Operation, schemas: NamedSchemas): Json {
  const parameters = [
    ...parametersIn('path', spec.params),
    ...parametersIn('query', spec.query),
    ...Object.entries(spec.headers ?? {}).map(([name, description]) => ({
      ...{ name, in: 'header', required: false, description },
      schema: { type: 'string' },
    })),
  ];
  return {
    operationId: spec.name,
    tags: [spec.tag],
    summary: spec.summary,
    ...(spec.description === undefined ? {} : { description: spec.description }),
    ...(parameters.length > 0 ? { parameters } : {}),
    ...(spec.body ? { requestBody: toRequestBody(spec, spec.body, schemas) } : {}),
    responses: Object.fromEntries(
      Object.entries(listAnswers(spec)).map(([status, answer]) => [
        status,
        toResponse(answer, Number(status) < 300 ? (spec.produces ?? JSON_ONLY) : JSON_ONLY, schemas),
      ]),
    ),
  };
}

function toRequestBody(spec: Operation, body: z.ZodType, schemas: NamedSchemas): Json {
  const shapes = spec.bodyShapes;
  const schema = shapes
    ? { anyOf: shapes.map((shape) => schemas.of(shape, 'input')) }
    : schemas.of(body, 'input');
  const types = spec.consumes ?? JSON_ONLY;
  return { required: true, content: Object.fromEntries(types.map((type) => [type, { schema }])) };
}

function toResponse(
  { description, schema }: ResponseSpec,
  types: readonly string[],
  schemas: NamedSchemas,
): Json {
  if (!schema) return { description };
  const choices = schema instanceof z.ZodUnion ? (schema.options as readonly z.ZodType[]) : [schema];
  const content: Record<string, { schema: unknown }> = {};
  if (choices.includes(Problem)) {
    content['application/problem+json'] = { schema: schemas.of(Problem, 'output') };
  }
  const others = choices.filter((choice) => choice !== Problem).map((choice) => schemas.of(choice, 'output'));
  if (others.length > 0) {
    for (const type of types) content[type] = { schema: others.length === 1 ? others[0] : { anyOf: others } };
  }
  return { description, content };
}

function parametersIn(place: 'path' | 'query', taken: z.ZodObject | undefined): Json[] {
  return Object.entries(taken?.shape ?? {}).map(([name, given]) => {
    const { schema, description, fallback, required } = toParameter(given as z.ZodType);
    return {
      ...{ name, in: place, required: place === 'path' || required },
      ...(description === undefined ? {} : { description }),
      ...(schema.type === 'array' ? { explode: false } : {}),
      schema: { ...schema, ...(fallback === undefined ? {} : { default: fallback }) },
    };
  });
}

/** The schema of a parameter: the metadata `parameter` of `parameters.ts`, or a string. */
function toParameter(given: z.ZodType) {
  let inner = given;
  let fallback: unknown;
  let required = true;
  let description = given.description;
  while (inner instanceof z.ZodOptional || inner instanceof z.ZodDefault) {
    required = false;
    if (inner instanceof z.ZodDefault) fallback = inner.def.defaultValue;
    inner = inner.unwrap() as z.ZodType;
    description ??= inner.description;
  }
  const described = inner.meta()?.parameter as Json | undefined;
  const schema = described ?? normalizeSchema(z.toJSONSchema(inner, { io: 'input' }) as Json);
  const { $schema: _, description: __, parameter: ___, ...rest } = schema as Json;
  if (Array.isArray(rest.enum)) {
    // Case-insensitive values are described in their canonical case.
    fallback =
      rest.enum.find((one) => String(one).toLowerCase() === String(fallback).toLowerCase()) ?? fallback;
  }
  return { schema: rest, description, fallback, required };
}

/** Named schemas as components; others are inline. */
class NamedSchemas {
  readonly #named: Record<string, Json> = {};

  /** A reference to a named schema. */
  of(schema: z.ZodType, io: 'input' | 'output'): Json {
    const { $schema: _, $defs = {}, ...own } = z.toJSONSchema(schema, { io }) as Json & { $defs?: Json };
    for (const [name, value] of Object.entries($defs)) {
      const tidied = normalizeSchema(value as Json);
      const known = this.#named[name];
      if (known && JSON.stringify(known) !== JSON.stringify(tidied)) {
        throw new Error(`Two schemas are called ${name}.`);
      }
      this.#named[name] = tidied;
    }
    return normalizeSchema(own);
  }

  /** By name. */
  all(): Json {
    return Object.fromEntries(Object.entries(this.#named).sort(([one], [other]) => (one < other ? -1 : 1)));
  }
}

/** References point to components, nullable schemas have two types, and integers omit the limits that all integers have. */
function normalizeSchema<T>(part: T): T {
  if (Array.isArray(part)) return part.map(normalizeSchema) as T;
  if (typeof part !== 'object' || part === null) return part;
  const tidied: Json = {};
  for (const [key, value] of Object.entries(part)) {
    if (key === 'minimum' && value === Number.MIN_SAFE_INTEGER) continue;
    if (key === 'maximum' && value === Number.MAX_SAFE_INTEGER) continue;
    tidied[key] =
      key === '$ref' ? String(value).replace('#/$defs/', '#/components/schemas/') : normalizeSchema(value);
  }
  const { anyOf, ...rest } = tidied;
  const [one, other] = Array.isArray(anyOf) ? (anyOf as Json[]) : [];
  const isNullable = other?.type === 'null' && typeof one?.type === 'string';
  return (
    isNullable && !one.enum && !('const' in one) ? { ...one, type: [one.type, 'null'], ...rest } : tidied
  ) as T;
}
