/**
 * Requests as an OpenAPI document describes them, and requests beyond it. Values come from the schemas or, by field name, from
 * the data of a world.
 */
import * as fc from 'fast-check';
import { anyCharacter } from './runs.ts';

/** A schema of the document, as far as it is used here. */
export interface Schema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly const?: unknown;
  readonly enum?: readonly unknown[];
  readonly anyOf?: readonly Schema[];
  readonly oneOf?: readonly Schema[];
  readonly allOf?: readonly Schema[];
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly additionalProperties?: boolean | Schema;
  readonly items?: Schema;
  readonly format?: string;
  readonly pattern?: string;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly minimum?: number;
  readonly maximum?: number;
  readonly exclusiveMinimum?: number;
}

interface Parameter {
  readonly name: string;
  readonly in: 'path' | 'query' | 'header';
  readonly required?: boolean;
  readonly schema: Schema;
}

/** An operation of the document. */
export interface Operation {
  readonly method: string;
  readonly path: string;
  readonly operationId: string;
  readonly parameters: readonly Parameter[];
  readonly body: Schema | undefined;
  /** Media types of its body. */
  readonly bodyTypes: readonly string[];
  readonly responses: Readonly<
    Record<string, { readonly content?: Readonly<Record<string, { readonly schema: Schema }>> }>
  >;
}

/** A request to send. */
export interface Asked {
  readonly method: string;
  /** With the query, percent-encoded correctly or not. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | undefined;
}

/** A document, as far as it is used here. */
export interface Document {
  readonly paths: Record<
    string,
    Record<
      string,
      Omit<Operation, 'body' | 'bodyTypes' | 'path' | 'method'> & {
        readonly requestBody?: { readonly content: Record<string, { readonly schema: Schema }> };
      }
    >
  >;
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> };
}

/** All operations of a document, each with its JSON body. */
export function listOperations(document: Document): Operation[] {
  return Object.entries(document.paths).flatMap(([path, { servers: _, ...methods }]) =>
    Object.entries(methods).map(([method, { requestBody, ...operation }]) => ({
      ...operation,
      ...{ path, method: method.toUpperCase(), parameters: operation.parameters ?? [] },
      body: requestBody?.content['application/json']?.schema,
      bodyTypes: Object.keys(requestBody?.content ?? {}),
    })),
  );
}

/** Unusual texts of every kind. */
export const strangeText = fc.oneof(
  fc.string({ unit: anyCharacter, maxLength: 20 }),
  fc.string({ maxLength: 12 }),
  fc.constantFrom(
    ...['', ' ', '\u0000', '\ud800', 'a\ud800b', '\udc00', '\u{1f600}', '\u202e', '\r\n', '\t', '%', '%00'],
    ...['..', '../..', '/', '//', '\\', '?', '#', '&', '=', '~', '*', '__proto__', 'constructor', 'null'],
    ...['-1', '0', '1e9', '0x10', '١٢', '9'.repeat(40), 'NaN', 'x'.repeat(201), 'é'.repeat(1100)],
    ...['2026-02-30', '2026-13-01', '9999-12-31', '0000-00-00', '{}', '[]', '"', "' OR 1=1 --"],
    ...['e1.', '.1', 'e1.99999999999999999999', 'us.e1.1~', '~us.f1.1', 'us.f1.1~us.f1.2', '_cell', '_feed'],
  ),
);
const strangeValue: fc.Arbitrary<unknown> = fc.oneof(
  strangeText,
  fc.constantFrom<unknown>(
    null,
    true,
    0,
    -1,
    1.5,
    1e308,
    Number.MAX_SAFE_INTEGER,
    [],
    {},
    [[]],
    [null],
    [''],
  ),
  fc.constantFrom<unknown>({ __proto__: null, constructor: 1 }, 'x'.repeat(5000), Array(2000).fill('x')),
  fc.jsonValue({ maxDepth: 2 }),
);

/** Sources of requests besides the document. */
export interface Requests {
  /** The named schemas of the document. */
  readonly named: Readonly<Record<string, Schema>>;
  /** Values by the name of a field or parameter. They are also used for the items of an array of that name. */
  readonly known: Readonly<Record<string, fc.Arbitrary<unknown>>>;
  readonly day: fc.Arbitrary<string>;
  readonly instant: fc.Arbitrary<string>;
  /** Valid tokens. */
  readonly token: fc.Arbitrary<string>;
  /** Complete `Authorization` headers of unusual requests. Empty: no header. */
  readonly authorizations: readonly string[];
  /** Header names of unusual requests. */
  readonly headers: readonly string[];
  /** Bodies that are accepted more often than those generated from the schema alone. */
  readonly body?: (described: fc.Arbitrary<unknown>) => fc.Arbitrary<unknown>;
  /** Another value for a path parameter, depending on the other parameters. */
  readonly inPath?: (name: string, path: Readonly<Record<string, string>>) => string | undefined;
}

/** Requests of an operation: those that conform to the document and are likely to succeed, and unusual ones. */
export function requestsFrom(
  operation: Operation,
  { named, known, day, instant, token, authorizations, headers: headerNames, body, inPath }: Requests,
) {
  function toArbitrary(given: Schema, name: string, isItem = false): fc.Arbitrary<unknown> {
    const schema = resolve(given);
    const hint = known[name];
    const choices = schema.anyOf ?? schema.oneOf;
    // A range in a body has the same field names as the day in a query.
    const inner = name === 'from' || name === 'to' ? '' : name;
    if (choices) return fc.oneof(...choices.map((choice) => toArbitrary(choice, inner, isItem)));
    if (Array.isArray(schema.type)) {
      return fc.oneof(...schema.type.map((type: string) => toArbitrary({ ...schema, type }, name, isItem)));
    }
    if (hint && (schema.type !== 'array' || isItem)) return hint;
    if ('const' in schema) return fc.constant(schema.const);
    if (schema.enum) return fc.constantFrom(...schema.enum);
    if (schema.allOf)
      return fc
        .tuple(...schema.allOf.map((part) => toArbitrary(part, name)))
        .map((all) => Object.assign({}, ...all));
    switch (schema.type) {
      case 'array':
        return hint
          ? fc.uniqueArray(hint, { minLength: 1, maxLength: 3 })
          : fc.array(toArbitrary(schema.items ?? {}, name, true), {
              minLength: schema.minItems ?? 0,
              maxLength: Math.min(schema.maxItems ?? 3, 3),
            });
      case 'object':
        return toObjectArbitrary(schema);
      case 'boolean':
        return fc.boolean();
      case 'null':
        return fc.constant(null);
      case 'integer':
      case 'number':
        return fc.integer({
          min: Math.ceil(
            schema.minimum ?? (schema.exclusiveMinimum === undefined ? 0 : schema.exclusiveMinimum + 1),
          ),
          max: Math.floor(Math.min(schema.maximum ?? 1_000_000, Number.MAX_SAFE_INTEGER)),
        });
      case 'string': {
        if (schema.format === 'date') return day;
        if (schema.format === 'date-time') return instant;
        if (schema.pattern) return fc.stringMatching(new RegExp(schema.pattern));
        const minLength = schema.minLength ?? 0;
        return fc.string({
          unit: 'grapheme',
          minLength,
          maxLength: Math.min(schema.maxLength ?? 12, minLength + 12),
        });
      }
      default:
        return strangeValue;
    }
  }

  function toObjectArbitrary({ properties = {}, required = [] }: Schema): fc.Arbitrary<object> {
    const entries = Object.entries(properties).map(
      ([name, schema]) => [name, toArbitrary(schema, name)] as const,
    );
    const optional = entries.filter(([name]) => !required.includes(name));
    return fc
      .tuple(
        fc.record(Object.fromEntries(entries.filter(([name]) => required.includes(name)))),
        // Only a few of them: many together are rarely valid.
        optional.length === 0
          ? fc.constant([])
          : fc.subarray(optional, { maxLength: Math.min(4, optional.length) }),
      )
      .chain(([must, may]) => fc.record(Object.fromEntries(may)).map((more) => ({ ...must, ...more })));
  }

  function resolve(schema: Schema): Schema {
    const name = schema.$ref?.replace('#/components/schemas/', '');
    return name === undefined ? schema : resolve(named[name] ?? {});
  }

  /** A request that conforms to the document. */
  const parts = fc.record({
    path: fc.record(valuesIn('path')),
    query: seldom('query'),
    headers: seldom('header'),
    body: operation.body ? toBodyArbitrary(operation.body) : fc.constant(undefined),
    contentType: operation.body
      ? fc.constantFrom<string | undefined>(...operation.bodyTypes)
      : fc.constant(undefined),
    method: fc.constant(operation.method),
    token,
  });
  type Parts = typeof parts extends fc.Arbitrary<infer P> ? P : never;

  function toBodyArbitrary(schema: Schema): fc.Arbitrary<unknown> {
    const described = toArbitrary(schema, '');
    return body ? body(described) : described;
  }

  function valuesIn(place: Parameter['in']): Record<string, fc.Arbitrary<string>> {
    return Object.fromEntries(
      operation.parameters
        .filter((parameter) => parameter.in === place)
        .map(({ name, schema }) => [name, toArbitrary(schema, name).map(String)]),
    );
  }
  function seldom(place: Parameter['in']): fc.Arbitrary<Record<string, string>> {
    const values = valuesIn(place);
    const isRequired = (one: string) =>
      operation.parameters.some(({ name, required }) => name === one && required === true);
    const optional = Object.keys(values).filter((name) => !isRequired(name));
    if (Object.keys(values).length === 0) return fc.constant({});
    return fc.subarray(optional, { maxLength: Math.min(2, optional.length) }).chain((chosen) => {
      const names = [...Object.keys(values).filter(isRequired), ...chosen];
      return fc.record(Object.fromEntries(names.map((name) => [name, values[name] ?? fc.constant('')])));
    });
  }

  /** One deviation from the document. */
  const twist: fc.Arbitrary<(given: Parts & Extra) => Parts & Extra> = fc.oneof(
    ...Object.keys(valuesIn('path')).flatMap((name) => [
      strangeText.map((text) => (given: Parts & Extra) => ({
        ...given,
        path: { ...given.path, [name]: text },
      })),
    ]),
    fc
      .constantFrom(
        '%',
        '%E0%A4%A',
        '%00',
        '%2e%2e',
        '%2F',
        '%ff%fe',
        ' ',
        '',
        '{id}',
        '%25',
        '\u00e9',
        ';a=b',
      )
      .map((raw) => (given: Parts & Extra) => ({ ...given, rawPath: raw })),
    fc.tuple(strangeText, strangeText).map(([name, text]) => (given: Parts & Extra) => ({
      ...given,
      query: { ...given.query, [name]: text },
    })),
    ...Object.keys(valuesIn('query')).flatMap((name) => [
      strangeText.map((text) => (given: Parts & Extra) => ({
        ...given,
        query: { ...given.query, [name]: text },
      })),
      fc.constant((given: Parts & Extra) => ({ ...given, rawQuery: `${name}=1&${name}=2` })),
      fc.constant((given: Parts & Extra) => ({ ...given, rawQuery: `${name}` })),
      fc.constant((given: Parts & Extra) => ({ ...given, rawQuery: `${name}=%E0%A4&%=%` })),
    ]),
    ...(operation.body
      ? [
          fc.tuple(fc.nat(), strangeValue).map(([at, value]) => (given: Parts & Extra) => ({
            ...given,
            body: changed(given.body, at, value),
          })),
          fc.tuple(strangeText, strangeValue).map(([name, value]) => (given: Parts & Extra) => ({
            ...given,
            body: { ...(given.body as object), [name]: value },
          })),
          fc
            .nat()
            .map((at) => (given: Parts & Extra) => ({ ...given, body: changed(given.body, at, undefined) })),
          strangeValue.map((value) => (given: Parts & Extra) => ({ ...given, body: value })),
          fc
            .constantFrom(
              '{',
              '{"a":1',
              '',
              'null',
              '[',
              '['.repeat(20_000),
              '\u0000',
              '{"a":1}{}',
              '\ufeff{}',
              `"${'x'.repeat(120_000)}"`,
              '{"__proto__":{"x":1}}',
            )
            .map((rawBody) => (given: Parts & Extra) => ({ ...given, rawBody })),
          fc
            .constantFrom(
              undefined,
              'text/plain',
              'application/json; charset=utf-16',
              'application/merge-patch+json',
              'application/jsonx',
              ';',
              'multipart/form-data',
            )
            .map((contentType) => (given: Parts & Extra) => ({ ...given, contentType })),
        ]
      : []),
    fc
      .constantFrom('GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS', 'PROPFIND')
      .map((method) => (given: Parts & Extra) => ({ ...given, method })),
    fc
      .tuple(
        fc.constantFrom(...headerNames),
        fc.oneof(
          fc.string({ maxLength: 20 }),
          fc.constantFrom(
            '',
            ' ',
            '*',
            '""',
            '"',
            'W/"1"',
            ',',
            '\u00ff',
            'x'.repeat(300),
            'e1.1',
            '0',
            '-1',
            'us.f1.1',
            'a b',
            'text/html',
            'br',
          ),
        ),
      )
      .map(([name, value]) => (given: Parts & Extra) => ({
        ...given,
        headers: { ...given.headers, [name]: value },
      })),
    fc
      .constantFrom(...authorizations)
      .map((authorization) => (given: Parts & Extra) => ({ ...given, authorization })),
  );

  /** A request that conforms to the document and is likely to succeed. */
  const valid = parts.map((given) => render(given));
  const strange = fc
    .tuple(parts, fc.array(twist, { minLength: 1, maxLength: 3 }))
    .map(([given, twists]) => render(twists.reduce<Parts & Extra>((sofar, one) => one(sofar), given)));
  return { valid, strange };

  function render(given: Parts & Extra): Asked {
    const values = given.path as Record<string, string>;
    let path = operation.path.replace(
      /\{(\w+)\}/g,
      (_, name: string) =>
        (values[name] === '' ? inPath?.(name, values) : undefined) ?? encode(values[name] ?? ''),
    );
    if (given.rawPath !== undefined) path = path.replace(/[^/]*$/, given.rawPath);
    const query = [
      ...Object.entries(given.query).map(([name, value]) => `${encode(name)}=${encode(value)}`),
      ...(given.rawQuery === undefined ? [] : [given.rawQuery]),
    ].join('&');
    const body = given.rawBody ?? (given.body === undefined ? undefined : JSON.stringify(given.body));
    const { authorization = `Bearer ${given.token}` } = given;
    return {
      method: given.method,
      path: `${path}${query === '' ? '' : `?${query}`}`,
      headers: {
        ...given.headers,
        ...(authorization === '' ? {} : { Authorization: authorization }),
        ...(given.contentType === undefined ? {} : { 'Content-Type': given.contentType }),
      },
      ...(body === undefined || ['GET', 'HEAD'].includes(given.method) ? {} : { body }),
    };
  }
}

/** The additional parts of unusual requests. */
interface Extra {
  readonly rawPath?: string;
  readonly rawQuery?: string;
  readonly rawBody?: string;
  readonly authorization?: string;
}

/** Lone surrogates cannot be sent in a URL. */
const encode = (text: string): string => encodeURIComponent(text.toWellFormed());

/** The same body with one changed or removed field. */
function changed(value: unknown, at: number, to: unknown): unknown {
  if (typeof value !== 'object' || value === null) return to;
  const names = Object.keys(value);
  const name = names[at % Math.max(1, names.length)];
  if (name === undefined) return to;
  const inner = (value as Record<string, unknown>)[name];
  const isDeep = typeof inner === 'object' && inner !== null && at % 2 === 1;
  const entries = { ...value, [name]: isDeep ? changed(inner, Math.floor(at / 2), to) : to };
  return Array.isArray(value) ? Object.values(entries) : entries;
}
