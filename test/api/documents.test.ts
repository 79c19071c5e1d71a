/** The committed API documents equal the generated ones, and have no undocumented breaking changes. */
import { existsSync, readFileSync } from 'node:fs';
import { Ajv } from 'ajv';
import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import { RE2JS } from 're2js';
import { describe, expect, test } from 'vitest';
import { BASELINE, documents, serialize } from '../../documents.ts';
import { getInputSchemas } from '../../shared/api/openapi.ts';
import { toSample } from '../../shared/api/reference/schema.ts';
import { routes } from '../../shared/api/routes/all.ts';
import { asyncApiDocument } from '../../shared/events/asyncapi.ts';
import { eventTypes } from '../../shared/events/catalogue.ts';
import { getExample } from '../../shared/events/examples.ts';
import { breakingInAsyncApi, breakingInOpenApi } from '../support/compatibility.ts';

/** Any part of a document. */
// biome-ignore lint/suspicious/noExplicitAny: documents are read and changed anywhere
type Any = any;

const read = (file: string): Any => JSON.parse(readFileSync(file, 'utf8'));

describe.each(Object.keys(documents))('%s', (name) => {
  test('as committed equals the generated one (else: npm run build)', () => {
    expect(readFileSync(`docs/${name}`, 'utf8') === serialize(documents[name]?.() ?? {})).toBe(true);
  });

  test('breaks no released version, or names the change in the notes of a new version', () => {
    expect(existsSync(`${BASELINE}/${name}`), 'released versions are kept: node documents.ts release').toBe(
      true,
    );
    const [before, after] = [read(`${BASELINE}/${name}`), read(`docs/${name}`)];
    const breaking = (name === 'asyncapi.json' ? breakingInAsyncApi : breakingInOpenApi)(before, after);
    expect(unannounced(breaking, before.info.version, after.info.version, notes)).toEqual([]);
  });
});

// Versions and their notes

const notes = readFileSync('docs/api-changes.md', 'utf8');

/** Breaking changes that are not named, in backticks, in the notes of a later major version. */
function unannounced(breaking: readonly string[], before: string, after: string, text: string): string[] {
  const major = (version: string) => Number(version.split('.')[0]);
  if (major(after) <= major(before)) return [...breaking];
  const note = findNote(after, text) ?? '';
  return breaking.filter((one) => !note.includes(`\`${one}\``));
}

function findNote(version: string, text: string): string | undefined {
  return text.split(/^## /m).find((section) => section.split(/\s/, 1)[0] === version);
}

test('all documents have the same version, and it has notes', () => {
  const versions = Object.keys(documents).map((name) => read(`docs/${name}`).info.version);
  expect(new Set(versions).size).toBe(1);
  expect(findNote(versions[0], notes)).toBeDefined();
});

test('a breaking change requires a new major version and its name in the notes', () => {
  const breaking = ['GET /v1/things is gone', 'server sns is gone'];
  const note =
    '# Changes\n\n## 2.0.0\n\n- `GET /v1/things is gone`: it moved.\n\n## 1.0.0\n\n`server sns is gone`\n';
  expect(unannounced([], '1.0.0', '1.0.0', '')).toEqual([]);
  expect(unannounced(breaking, '1.0.0', '1.0.0', note)).toEqual(breaking);
  expect(unannounced(breaking, '1.0.0', '1.9.0', note)).toEqual(breaking);
  expect(unannounced(breaking, '1.0.0', '2.0.0', note)).toEqual(['server sns is gone']);
  expect(unannounced(breaking.slice(0, 1), '1.0.0', '2.0.0', note)).toEqual([]);
});

describe('the AsyncAPI document', () => {
  test('has every event type in each of its channels', () => {
    const { channels } = asyncApiDocument() as Any;
    const getTypes = (channel: string) => Object.keys(channels[channel].messages).sort();
    const logged = eventTypes.filter((type) => type !== 'jobwire.ping').sort();
    expect(getTypes('webhook')).toEqual([...eventTypes].sort());
    expect(getTypes('topic')).toEqual([...logged, 'reference'].sort());
    expect(getTypes('stream')).toEqual([...logged, 'cursor'].sort());
    expect([...getTypes('accountStream'), ...getTypes('regionStream')].sort()).toEqual(
      [...logged, 'cursor', 'cursor'].sort(),
    );
  });

  test('has examples that match their schemas', () => {
    // The parser does not check them in AsyncAPI 3.
    const document = read('docs/asyncapi.json');
    const ajv = new Ajv({ strict: false, allErrors: true });
    addFormats.default(ajv);
    const { components } = document;
    ajv.addSchema({ components }, 'document');
    let tried = 0;
    for (const [name, message] of Object.entries<Any>(document.components.messages)) {
      const trait = message.traits[0].$ref.split('/').at(-1);
      for (const { headers, payload } of message.examples) {
        const parts = [
          [`document#/components/messageTraits/${trait}/headers`, headers],
          ...(payload ? [[`document${message.payload.$ref}`, payload]] : []),
        ];
        for (const [$ref, value] of parts) {
          const validate = ajv.compile({ $ref });
          expect(validate(value), `${name}: ${ajv.errorsText(validate.errors)}`).toBe(true);
          tried++;
        }
      }
    }
    // The headers of three channels (of one for the ping), the payloads once, the reference and the cursor.
    expect(tried).toBe((eventTypes.length - 1) * 3 + 1 + eventTypes.length + 4);
  });
});

test('all patterns of both documents are valid in RE2, without lookahead and backreferences', () => {
  const patterns = Object.keys(documents).flatMap((name) => patternsIn(read(`docs/${name}`)));
  expect(patterns.length).toBeGreaterThan(50);
  for (const pattern of new Set(patterns)) expect(() => RE2JS.compile(pattern), pattern).not.toThrow();
  for (const not of ['^(?=.*a)b$', '(?!a)', '(a)\\1', '(?<=a)b'])
    expect(() => RE2JS.compile(not), not).toThrow();
});

function patternsIn(value: unknown): string[] {
  if (typeof value !== 'object' || value === null) return [];
  const { pattern } = value as { pattern?: unknown };
  const within = Object.values(value).flatMap(patternsIn);
  return typeof pattern === 'string' ? [pattern, ...within] : within;
}

describe('the OpenAPI document', () => {
  const document = read('docs/openapi.json');
  const schemas: Any = document.components.schemas;
  const operations: Any[] = Object.values<Any>(document.paths).flatMap((item) => Object.values<Any>(item));
  const ajv = new Ajv2020({ strict: false, allErrors: true });
  addFormats.default(ajv);
  ajv.addSchema(document, 'document');

  test('names the schema of every JSON body and of every form', () => {
    const unnamed = operations.flatMap(({ operationId, requestBody, responses }) =>
      [requestBody, ...Object.values<Any>(responses)]
        .flatMap((one) => Object.values<Any>(one?.content ?? {}))
        .filter(({ schema }) => schema.$ref === undefined && Object.keys(schema.properties ?? {}).length > 0)
        .map(() => operationId),
    );
    expect(unnamed).toEqual([]);
    expect(schemas).toHaveProperty('EndpointPage');
  });

  test.each(eventTypes)('describes %s with its data as an alternative of Event, and as a webhook', (type) => {
    const example = getExample(type);
    const name = schemas.Event.discriminator.mapping[type];
    expect(schemas.Event.oneOf).toContainEqual({ $ref: name });
    const { requestBody, parameters } = document.webhooks[type].post;
    expect(requestBody.content['application/cloudevents+json'].schema).toEqual({ $ref: name });
    expect(parameters.map((one: Any) => one.name)).toContain('webhook-signature');
    for (const $ref of [`document${name}`, 'document#/components/schemas/Event']) {
      const validate = ajv.compile({ $ref });
      expect(validate(example), `${$ref}: ${ajv.errorsText(validate.errors)}`).toBe(true);
      // `data` is that of the type: it is rejected without a required field.
      const { region: _, ...data } = example?.data ?? {};
      expect(validate({ ...example, data })).toBe(false);
    }
  });

  test('lists the values of inputs as closed enumerations, and those of responses and events as open ones', () => {
    const inputs = getInputSchemas(document);
    const enums = (value: unknown, key: string): unknown[] =>
      typeof value !== 'object' || value === null
        ? []
        : Object.entries(value).flatMap(([name, part]) =>
            name === key && Array.isArray(part) && part.length > 1 ? [part] : enums(part, key),
          );
    const [input, output] = [true, false].map((isInput) =>
      Object.entries(schemas).flatMap(([name, schema]) => (inputs.has(name) === isInput ? [schema] : [])),
    );
    const parameters = operations.map((operation) => operation.parameters);
    expect(enums([input, parameters], 'enum').length).toBeGreaterThan(30);
    expect(enums([input, parameters], 'x-extensible-enum')).toEqual([]);
    expect(enums(output, 'x-extensible-enum').length).toBeGreaterThan(60);
    expect(enums([output, operations.map((operation) => operation.responses)], 'enum')).toEqual([]);
    expect(enums(read('docs/asyncapi.json'), 'enum')).toEqual([]);
  });

  test('has a webhook for event types only', () => {
    expect(Object.keys(document.webhooks)).toEqual(eventTypes);
    expect(Object.keys(schemas.Event.discriminator.mapping)).toEqual(eventTypes);
  });

  test('documents the headers of responses, and no limits that the API does not send', () => {
    for (const { operationId, parameters = [], responses } of operations) {
      const replayed = parameters.some((one: Any) => one.name === 'Idempotency-Key');
      for (const [status, response] of Object.entries<Any>(responses)) {
        const names = Object.keys(response.headers);
        const at = `${operationId} ${status}`;
        expect(names, at).toContain('X-Request-Id');
        if (['429', '503'].includes(status)) expect(names, at).toContain('Retry-After');
        if (/^2/.test(status)) expect(names.includes('Idempotency-Replayed'), at).toBe(replayed);
        if (status === '304') expect(names, at).toContain('ETag');
        if (['401', '429'].includes(status)) expect(names, at).toContain('RateLimit');
        else expect(names, at).not.toContain('RateLimit');
      }
    }
  });
});

test('every object in a schema of AsyncAPI has a unique title, by which generators name types', () => {
  const { schemas } = (asyncApiDocument() as Any).components;
  const titles: string[] = [];
  const visit = (value: Any, at: string): void => {
    if (typeof value !== 'object' || value === null) return;
    if (value.type === 'object' && !Array.isArray(value)) {
      expect(value.title, at).toBeTypeOf('string');
      titles.push(value.title);
    }
    for (const [key, one] of Object.entries(value)) visit(one, `${at}/${key}`);
  };
  visit(schemas, '');
  expect(new Set(titles).size).toBe(titles.length);
  expect(titles).toContain('JobStatusChangedData');
});

test('accepts the bodies of its examples, and of the commands in the API reference', () => {
  const { paths, components } = read('docs/openapi.json');
  const named = { schemas: components.schemas, examples: new Map() };
  const rejected = routes.flatMap(({ spec }) => {
    const { requestBody } = paths[spec.path]?.[spec.method] ?? {};
    const content = requestBody?.content['application/json'];
    if (!content) return [];
    const { error } = spec.body.safeParse(content.example ?? toSample(content.schema, named));
    return error ? [`${spec.id}: ${error.issues[0]?.message}`] : [];
  });
  expect(rejected).toEqual([]);
});
