/**
 * Requests as the OpenAPI document describes them, and requests beyond it, for every operation there is: values come from the
 * schemas, or by the name of their field from what the world holds. An operation that is added later needs nothing here unless
 * its fields have names of things that this file doesn't know.
 */
import * as fc from 'fast-check';
import { openApiDocument } from '../../shared/api/openapi.ts';
import { createReference } from '../../shared/api/reference.ts';
import { eventTypes } from '../../shared/events/catalogue.ts';
import { type ApiWorld, BOOTSTRAP, CANARY, FAR, FOREIGN, OWN, REGIONS } from './api-world.ts';

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
  readonly responses: Readonly<
    Record<string, { readonly content?: Readonly<Record<string, { readonly schema: Schema }>> }>
  >;
}

/** A request, as it goes out. */
export interface Asked {
  readonly method: string;
  /** With the query, percent-encoded or badly so. */
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | undefined;
}

interface Document {
  readonly paths: Record<
    string,
    Record<
      string,
      Omit<Operation, 'body' | 'path' | 'method'> & {
        readonly requestBody?: { readonly content: Record<string, { readonly schema: Schema }> };
      }
    >
  >;
  readonly components: { readonly schemas: Readonly<Record<string, Schema>> };
}

const document = openApiDocument() as Document;

/** The schemas that have a name. */
export const namedSchemas = document.components.schemas;

/** All operations. */
export const operations: readonly Operation[] = Object.entries(document.paths).flatMap(([path, methods]) =>
  Object.entries(methods).map(([method, { requestBody, ...operation }]) => ({
    ...operation,
    ...{ path, method: method.toUpperCase(), parameters: operation.parameters ?? [] },
    body: requestBody?.content['application/json']?.schema,
  })),
);

/** What the page at `/docs` refers to. */
const assets = [
  ...String(createReference(async () => new Uint8Array()).page().body).matchAll(
    /assets\/([^/]+)\/([\w.-]+)/g,
  ),
].map(([, version = '', name = '']) => ({ version, name }));

/** Texts of every kind that nobody means. */
const strangeText = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 20 }),
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

/** Requests of an operation over a world; `after` are the `next` that its pages give. */
export function requestsOf(operation: Operation, world: ApiWorld, after: readonly string[] = []) {
  const { ids } = world;
  const accounts = fc.constantFrom<string>(OWN, OWN, FOREIGN, FAR);
  const some = <T>(one: fc.Arbitrary<T>) => fc.uniqueArray(one, { minLength: 1, maxLength: 3 });
  const texts = (...all: string[]) => fc.constantFrom(...all);
  const event = texts(...ids.events, `${FOREIGN}.x.1`);
  const day = texts('2026-03-01', '2026-03-02', '2026-03-07', '2026-02-27');
  const instant = texts('2026-03-02T08:00:00Z', '2027-01-01T00:00:00.000Z');
  const cursor = texts(
    '0',
    '1',
    '3',
    ...ids.events.slice(0, 3).map((id) => id.split('.').slice(1).join('.')),
  );
  const told = ids.notifying[OWN];
  const endpoint = texts('own', 'own', 'everything', 'both', 'foreign', 'sns');
  /** By the name of a field or parameter; what an array of that name holds is found by it as well. */
  const known: Record<string, fc.Arbitrary<unknown>> = {
    account: accounts,
    accounts,
    region: texts('us', 'us', ...REGIONS),
    event,
    events: event,
    jobNumber: fc.constantFrom(...ids.jobs, 1, 2),
    type: texts(...eventTypes),
    types: texts('job.*', 'account.*', 'job.status_changed'),
    status: texts('Printing', 'Awaiting artwork'),
    include: texts('status'),
    orderNumber: texts('PO-0', 'PO-1'),
    orderGroup: texts('G0', 'G1'),
    url: texts(world.receiverUrl, world.receiverUrl, 'https://erp.example.com/hook', 'http://10.0.0.1/x'),
    clientId: texts(world.credentials.clientId, `${CANARY}-id`),
    // Some of them are refused, and are no more quoted than those that are taken.
    clientSecret: texts(world.credentials.clientSecret, `${CANARY}-client-secret`, ` ${CANARY}`),
    secret: texts(`whsec_${Buffer.alloc(32, 3).toString('base64')}`, `whsec_${CANARY}!`),
    headers: fc.constantFrom<object>(
      { 'x-tenant': `${CANARY}-tenant` },
      { 'x-tenant': `${CANARY}-é` },
      { host: CANARY },
    ),
    jobFields: fc.constant({ status: 'Printing', mustDate: true }),
    cursors: fc.constant({ [OWN]: '0' }),
    expiresAt: texts('2027-01-01T00:00:00.000Z'),
    pollIntervalSeconds: fc.integer({ min: 60, max: 600 }),
    concurrency: fc.integer({ min: 1, max: 64 }),
    ratePerSecond: fc.integer({ min: 1, max: 100 }),
    recipient: texts(...(told?.recipients ?? [])),
    message: texts(...(told?.messages ?? [])),
    suppression: texts(...(told?.suppressions ?? [])),
    token: texts(told?.token ?? ''),
    email: texts('new@example.com', 'no address'),
    mobile: texts('+64 21 123 4568', '12'),
    replyTo: texts('orders@example.com'),
    address: texts('ann@example.com', '+64211234567'),
    zone: texts('Europe/London', 'Pacific/Auckland'),
    logoUrl: texts('https://example.com/logo.png'),
    website: texts('https://example.com'),
    senderId: texts('ACME'),
    quietHours: fc.constant({ from: '21:00', to: '08:00' }),
    csv: texts('name,email\nAnn,ann@example.com\n,nobody\n', 'name;mobile\nBen;+64211234567\n', 'x'),
    subject: texts('{{ order }} is on its way', '{{ oops'),
    html: texts('<p>{{ order }}</p>'),
    text: texts('{{ order }} is on its way'),
    after: after.length > 0 ? fc.constantFrom(...after) : cursor,
    at: instant,
    from: day,
    to: day,
    dueOn: day,
    dueBefore: day,
    limit: fc.integer({ min: 1, max: 20 }),
    wait: texts('0', '1'),
    version: texts(assets[0]?.version ?? ''),
    name: texts('a name'),
    'Idempotency-Key': fc.string({ unit: fc.constantFrom(...'abc123'), minLength: 1, maxLength: 12 }),
    'If-Match': texts('*', '"1"', '"1", "2"', 'W/"1"', '"7"'),
    'Last-Event-ID': cursor,
    ...worldOf(operation.path),
  };

  /** What `{id}` and `{replay}` stand for goes by the path. */
  function worldOf(path: string): Record<string, fc.Arbitrary<unknown>> {
    if (operation.method === 'POST' && !path.includes('{'))
      return { id: texts('new-1', 'new-2', 'own', OWN) };
    if (path.startsWith('/docs')) return { name: texts(...assets.map(({ name }) => name)) };
    if (path.startsWith('/v1/regions')) return { id: texts(...REGIONS) };
    if (path.startsWith('/v1/keys')) {
      return { id: fc.constantFrom(...Object.values(world.keys).map(({ id }) => id)) };
    }
    if (path.startsWith('/v1/endpoints')) return { id: endpoint };
    return { id: accounts };
  }

  function arbitraryOf(given: Schema, name: string, isItem = false): fc.Arbitrary<unknown> {
    const schema = resolve(given);
    const hint = known[name];
    const choices = schema.anyOf ?? schema.oneOf;
    // A range in a body has the name of a day in a query.
    const inner = name === 'from' || name === 'to' ? '' : name;
    if (choices) return fc.oneof(...choices.map((choice) => arbitraryOf(choice, inner, isItem)));
    if (Array.isArray(schema.type)) {
      return fc.oneof(...schema.type.map((type: string) => arbitraryOf({ ...schema, type }, name, isItem)));
    }
    if (hint && (schema.type !== 'array' || isItem)) return hint;
    if ('const' in schema) return fc.constant(schema.const);
    if (schema.enum) return fc.constantFrom(...schema.enum);
    if (schema.allOf)
      return fc
        .tuple(...schema.allOf.map((part) => arbitraryOf(part, name)))
        .map((all) => Object.assign({}, ...all));
    switch (schema.type) {
      case 'array':
        return hint
          ? some(hint)
          : fc.array(arbitraryOf(schema.items ?? {}, name, true), {
              minLength: schema.minItems ?? 0,
              maxLength: Math.min(schema.maxItems ?? 3, 3),
            });
      case 'object':
        return objectOf(schema);
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

  function objectOf({ properties = {}, required = [] }: Schema): fc.Arbitrary<object> {
    const entries = Object.entries(properties).map(
      ([name, schema]) => [name, arbitraryOf(schema, name)] as const,
    );
    const optional = entries.filter(([name]) => !required.includes(name));
    return fc
      .tuple(
        fc.record(Object.fromEntries(entries.filter(([name]) => required.includes(name)))),
        // A few of them: many together seldom make sense.
        optional.length === 0
          ? fc.constant([])
          : fc.subarray(optional, { maxLength: Math.min(4, optional.length) }),
      )
      .chain(([must, may]) => fc.record(Object.fromEntries(may)).map((more) => ({ ...must, ...more })));
  }

  /** As the document says. */
  const parts = fc.record({
    path: fc.record(valuesIn('path')),
    query: seldom(valuesIn('query')),
    headers: seldom(valuesIn('header')),
    body: operation.body ? arbitraryOf(operation.body, '') : fc.constant(undefined),
    contentType: fc.constant<string | undefined>(operation.body ? 'application/json' : undefined),
    method: fc.constant(operation.method),
    key: fc.constantFrom(BOOTSTRAP, world.keys['admin all'].secret, world.keys['admin all'].secret),
  });
  type Parts = typeof parts extends fc.Arbitrary<infer P> ? P : never;

  function valuesIn(place: Parameter['in']): Record<string, fc.Arbitrary<string>> {
    return Object.fromEntries(
      operation.parameters
        .filter((parameter) => parameter.in === place)
        .map(({ name, schema }) => [
          name,
          name === 'replay' ? fc.constant('') : arbitraryOf(schema, name).map(String),
        ]),
    );
  }
  function seldom(values: Record<string, fc.Arbitrary<string>>): fc.Arbitrary<Record<string, string>> {
    const names = Object.keys(values);
    if (names.length === 0) return fc.constant({});
    return fc
      .subarray(names, { maxLength: Math.min(2, names.length) })
      .chain((chosen) =>
        fc.record(Object.fromEntries(chosen.map((name) => [name, values[name] ?? fc.constant('')]))),
      );
  }

  /** One thing that is otherwise, beyond what the document says. */
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
        fc.constantFrom(
          'If-Match',
          'Idempotency-Key',
          'Last-Event-ID',
          'X-Request-Id',
          'Accept',
          'Origin',
          'Accept-Encoding',
          'X-Forwarded-For',
          'Content-Length',
        ),
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
      .constantFrom(
        ...Object.values(world.keys).map(({ secret }) => `Bearer ${secret}`),
        ...[`Bearer ${world.expired}`, `Bearer ${world.revoked}`, 'Bearer', 'Bearer  x', 'Basic eDp5', ''],
        ...['bearer \u00ff', `Bearer ${'x'.repeat(4000)}`, `Bearer jw_${'a'.repeat(12)}_${'A'.repeat(43)}`],
      )
      .map((authorization) => (given: Parts & Extra) => ({ ...given, authorization })),
  );

  /** As the document says and with a chance to succeed. */
  const valid = parts.map((given) => render(given));
  const strange = fc
    .tuple(parts, fc.array(twist, { minLength: 1, maxLength: 3 }))
    .map(([given, twists]) => render(twists.reduce<Parts & Extra>((sofar, one) => one(sofar), given)));
  return { valid, strange };

  function render(given: Parts & Extra): Asked {
    let path = operation.path.replace(/\{(\w+)\}/g, (_, name: string) => {
      const value = (given.path as Record<string, string>)[name] ?? '';
      if (name !== 'replay' || value !== '') return encode(value);
      // The replays of the very endpoint.
      const [replay = 'none'] = ids.replays[(given.path as Record<string, string>).id ?? ''] ?? [];
      return replay;
    });
    if (given.rawPath !== undefined) path = path.replace(/[^/]*$/, given.rawPath);
    const query = [
      ...Object.entries(given.query).map(([name, value]) => `${encode(name)}=${encode(value)}`),
      ...(given.rawQuery === undefined ? [] : [given.rawQuery]),
    ].join('&');
    const body = given.rawBody ?? (given.body === undefined ? undefined : JSON.stringify(given.body));
    const { authorization = `Bearer ${given.key}` } = given;
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

/** What only strange requests have. */
interface Extra {
  readonly rawPath?: string;
  readonly rawQuery?: string;
  readonly rawBody?: string;
  readonly authorization?: string;
}

/** Lone surrogates can't be sent in a URL. */
const encode = (text: string): string => encodeURIComponent(text.toWellFormed());

/** The same with one of its fields otherwise, or without it. */
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

function resolve(schema: Schema): Schema {
  const name = schema.$ref?.replace('#/components/schemas/', '');
  return name === undefined ? schema : resolve(namedSchemas[name] ?? {});
}
