/**
 * The sandbox's description of itself: an OpenAPI document (3.1) made from `operations.ts`. It is loaded when somebody
 * first asks for it, so that starting costs nothing.
 *
 * Schemas are written by zod itself, not by the generator of our own API's document: that one has to be loaded before
 * the first schema is made.
 */
import * as z from 'zod';
import { Problem } from '../../shared/ordering/contract/common.ts';
import { Token, TokenError, TokenRequest } from '../../shared/ordering/contract/tokens.ts';
import { operations } from '../operations.ts';
import { REGIONS, type RegionCode } from '../world/regions.ts';
import { type AnswerSpec, answersOf, type Operation } from './operation.ts';

/** What a document is made for. */
export interface DescriptionOptions {
  /** Where the sandbox is, such as `http://127.0.0.1:4010`; addresses are relative without it. */
  readonly origin?: string;
  /** The region it describes; all of them when left out. */
  readonly region?: RegionCode;
}

type Json = Record<string, unknown>;

const TAGS: Readonly<Record<Operation['tag'] | 'Tokens', string>> = {
  Tokens: 'What every other request carries. Each region has a token host of its own.',
  'Price codes': 'What can be ordered, with sizes, questions and prices.',
  Jobs: 'Creating jobs, following them, changing and cancelling them.',
  Assets: 'Prints already made, which can be ordered again.',
  Account: 'The account of the credentials, its users and payments.',
  Lookups: 'Reference data: read it, do not know it.',
  Stock: 'Goods in stock and how they are shipped.',
  'Promo codes': 'Discounts.',
};

/** Media types of request bodies that no operation names. */
const JSON_ONLY = ['application/json'];

/** Makes the document of all regions, or of one. */
export function openApiDocument({ origin = '', region }: DescriptionOptions = {}): object {
  const schemas = new NamedSchemas();
  const paths: Record<string, Json> = { [tokenPath(region)]: tokenItem(schemas, origin, region) };
  for (const spec of operations) {
    const { method, path } = spec;
    paths[path] = { ...paths[path], [method]: operationOf(spec, schemas) };
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Ordering service (sandbox)',
      version: 'V1',
      description:
        'A made-up wholesale ordering service for heat transfers and stocked goods. A token belongs to one account of one region; what belongs to another account answers like what does not exist. What goes wrong is a problem document (RFC 7807).',
    },
    servers: [serverOf('api', origin, region)],
    tags: Object.entries(TAGS).map(([name, description]) => ({ name, description })),
    security: [{ client: [] }],
    paths,
    components: {
      schemas: schemas.all(),
      securitySchemes: {
        client: {
          type: 'oauth2',
          description:
            'Client credentials (a key id and a secret) of an account. Tokens last ten minutes; keep one until shortly before it expires. Each region has a token endpoint of its own, whose tokens no other region takes.',
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

function serverOf(host: 'api' | 'auth', origin: string, region: RegionCode | undefined): Json {
  if (region) return { url: `${origin}/${region}/${host}`, description: `The region ${region}.` };
  return {
    url: `${origin}/{region}/${host}`,
    description: 'Each region has a host of its own.',
    variables: { region: { enum: REGIONS, default: 'us', description: 'Comes with the credentials.' } },
  };
}

const tokenPath = (realm = '{realm}'): string => `/realms/${realm}/protocol/openid-connect/token`;

function tokenItem(schemas: NamedSchemas, origin: string, region: RegionCode | undefined): Json {
  const realm = {
    name: 'realm',
    in: 'path',
    required: true,
    description: 'Named like the region.',
    schema: { type: 'string', enum: REGIONS },
  };
  const refused = (description: string) => ({
    description,
    content: { 'application/json': { schema: schemas.of(TokenError, 'output') } },
  });
  return {
    servers: [serverOf('auth', origin, region)],
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
        400: refused('The form is not valid, or asks for another grant.'),
        401: refused('The client or its secret is wrong.'),
        404: refused('There is no such realm here.'),
        413: refused('The form is larger than 1 MiB.'),
      },
    },
  };
}

function operationOf(spec: Operation, schemas: NamedSchemas): Json {
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
    ...(spec.body ? { requestBody: bodyOf(spec, spec.body, schemas) } : {}),
    responses: Object.fromEntries(
      Object.entries(answersOf(spec)).map(([status, answer]) => [
        status,
        responseOf(answer, Number(status) < 300 ? (spec.produces ?? JSON_ONLY) : JSON_ONLY, schemas),
      ]),
    ),
  };
}

function bodyOf(spec: Operation, body: z.ZodType, schemas: NamedSchemas): Json {
  const shapes = spec.bodyShapes;
  const schema = shapes
    ? { anyOf: shapes.map((shape) => schemas.of(shape, 'input')) }
    : schemas.of(body, 'input');
  const types = spec.consumes ?? JSON_ONLY;
  return { required: true, content: Object.fromEntries(types.map((type) => [type, { schema }])) };
}

function responseOf(
  { description, schema }: AnswerSpec,
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
    const { schema, description, fallback, required } = parameterOf(given as z.ZodType);
    return {
      ...{ name, in: place, required: place === 'path' || required },
      ...(description === undefined ? {} : { description }),
      ...(schema.type === 'array' ? { explode: false } : {}),
      schema: { ...schema, ...(fallback === undefined ? {} : { default: fallback }) },
    };
  });
}

/** How a parameter is written: as `parameters.ts` says in the metadata `parameter`, or the text that its schema takes. */
function parameterOf(given: z.ZodType) {
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
  const said = inner.meta()?.parameter as Json | undefined;
  const schema = said ?? tidy(z.toJSONSchema(inner, { io: 'input' }) as Json);
  const { $schema: _, description: __, parameter: ___, ...rest } = schema as Json;
  if (Array.isArray(rest.enum)) {
    // What is read in any case is described as it is written.
    fallback =
      rest.enum.find((one) => String(one).toLowerCase() === String(fallback).toLowerCase()) ?? fallback;
  }
  return { schema: rest, description, fallback, required };
}

/** The schemas that have a name, as components; others stand where they are used. */
class NamedSchemas {
  readonly #named: Record<string, Json> = {};

  /** A schema as it is referred to. */
  of(schema: z.ZodType, io: 'input' | 'output'): Json {
    const { $schema: _, $defs = {}, ...own } = z.toJSONSchema(schema, { io }) as Json & { $defs?: Json };
    for (const [name, value] of Object.entries($defs)) {
      const tidied = tidy(value as Json);
      const known = this.#named[name];
      if (known && JSON.stringify(known) !== JSON.stringify(tidied)) {
        throw new Error(`Two schemas are called ${name}.`);
      }
      this.#named[name] = tidied;
    }
    return tidy(own);
  }

  /** By name. */
  all(): Json {
    return Object.fromEntries(Object.entries(this.#named).sort(([one], [other]) => (one < other ? -1 : 1)));
  }
}

/** References lead to components, what may be null has two types, an integer has no limits that are those of all integers. */
function tidy<T>(part: T): T {
  if (Array.isArray(part)) return part.map(tidy) as T;
  if (typeof part !== 'object' || part === null) return part;
  const tidied: Json = {};
  for (const [key, value] of Object.entries(part)) {
    if (key === 'minimum' && value === Number.MIN_SAFE_INTEGER) continue;
    if (key === 'maximum' && value === Number.MAX_SAFE_INTEGER) continue;
    tidied[key] = key === '$ref' ? String(value).replace('#/$defs/', '#/components/schemas/') : tidy(value);
  }
  const { anyOf, ...rest } = tidied;
  const [one, other] = Array.isArray(anyOf) ? (anyOf as Json[]) : [];
  const isNullable = other?.type === 'null' && typeof one?.type === 'string';
  return (
    isNullable && !one.enum && !('const' in one) ? { ...one, type: [one.type, 'null'], ...rest } : tidied
  ) as T;
}
