/** The sandbox's OpenAPI document: complete and correct. */
import { Ajv2020 } from 'ajv/dist/2020.js';
import formats from 'ajv-formats';
import { beforeAll, expect, test } from 'vitest';
import * as z from 'zod';
import { openApiDocument } from '../../sandbox/http/openapi.ts';
import { listAnswers } from '../../sandbox/http/operation.ts';
import { OPERATIONS } from '../../sandbox/http/traffic.ts';
import { operations } from '../../sandbox/operations.ts';
import { startService } from '../support/ordering-api.ts';

/** Any part of a document. */
// biome-ignore lint/suspicious/noExplicitAny: documents are read anywhere
type Any = any;

const ORIGIN = 'http://127.0.0.1:4010';
let all: Any;
beforeAll(() => {
  all = openApiDocument({ origin: ORIGIN });
});
const getOperation = (name: string): Any =>
  Object.values<Any>(all.paths)
    .flatMap((item) => Object.values<Any>(item))
    .find(({ operationId }) => operationId === name);

test('is served without a token, for all regions and for each with its own URLs', async () => {
  const { sandbox } = await startService();
  const read = async (path: string): Promise<Any> => {
    const answer = await fetch(sandbox.url + path);
    expect(answer.status).toBe(200);
    expect(answer.headers.get('content-type')).toBe('application/json; charset=utf-8');
    return answer.json();
  };
  const whole = await read('/openapi.json');
  expect(whole.servers).toMatchObject([
    { url: `${sandbox.url}/{region}/api`, variables: { region: { enum: ['us', 'nz', 'au', 'uk', 'eu'] } } },
  ]);
  const token = '/realms/{realm}/protocol/openid-connect/token';
  expect(whole.paths[token].servers).toMatchObject([{ url: `${sandbox.url}/{region}/auth` }]);

  const nz = await read('/nz/api/openapi.json');
  expect(nz.servers).toMatchObject([{ url: `${sandbox.url}/nz/api` }]);
  expect(nz.paths[token.replace('{realm}', 'nz')].servers).toMatchObject([{ url: `${sandbox.url}/nz/auth` }]);
  expect(nz.components.securitySchemes.client.flows.clientCredentials.tokenUrl).toBe(
    `${sandbox.url}/nz/auth/realms/nz/protocol/openid-connect/token`,
  );
  expect({ ...nz.paths, ...whole.paths }).toMatchObject(whole.paths);
  expect(sandbox.requests.count(), 'its requests are not counted').toBe(1);
});

test('has every operation with every answer, each with its schema', () => {
  const described = Object.values<Any>(all.paths)
    .flatMap((item) => [item.get, item.post, item.patch])
    .filter(Boolean)
    .map(({ operationId }) => operationId);
  expect(described.toSorted()).toEqual([...operations.map(({ name }) => name), 'token'].toSorted());
  for (const spec of operations) {
    const { responses, tags } = all.paths[spec.path][spec.method];
    expect(tags).toEqual([spec.tag]);
    expect(Object.keys(responses)).toEqual(Object.keys(listAnswers(spec)));
    for (const [status, { schema }] of Object.entries(listAnswers(spec))) {
      const types = Object.keys(responses[status].content ?? {});
      expect(types.length > 0, `${spec.name} ${status} has a body`).toBe(schema !== undefined);
      if (Number(status) === 200) expect(types).toEqual(spec.produces ?? ['application/json']);
    }
  }
});

test('has all operations of the contract', () => {
  expect([...operations.map(({ name }) => name), 'token', 'unknown'].toSorted()).toEqual(
    OPERATIONS.toSorted(),
  );
});

test('its schemas compile, and those with an id are components', () => {
  const ajv = new Ajv2020({
    ...{ strict: true, strictTypes: false, strictRequired: false, keywords: ['components'] },
  });
  (formats as unknown as { default: (to: Ajv2020) => void }).default(ajv);
  ajv.addSchema({ $id: 'api', components: all.components });
  for (const name of Object.keys(all.components.schemas)) {
    expect(() => ajv.compile({ $ref: `api#/components/schemas/${name}` })).not.toThrow();
  }
  expect(Object.keys(all.components.schemas)).toEqual(
    expect.arrayContaining(['JobDto', 'ActiveJobDto', 'ProblemDetails', 'Token', 'TokenError']),
  );
  // The described fields are complete.
  expect(all.components.schemas.JobDto.additionalProperties).toBe(false);
  expect(all.components.schemas.JobDto.properties).toMatchObject({
    jobNumber: { type: 'integer' },
    description: { type: ['string', 'null'] },
    dateDue: { type: 'string' },
    orderGroupSequence: { type: ['integer', 'null'] },
    lines: { type: ['array', 'null'], items: { $ref: '#/components/schemas/JobLineDto' } },
  });
});

test('accepts the documented parameter values, and none beyond their limits', () => {
  let limits = 0;
  for (const spec of operations) {
    for (const { name, in: place, schema, required } of getOperation(spec.name).parameters ?? []) {
      if (place === 'header') continue;
      const what = `${spec.name} ${name}`;
      const reader: Any = (place === 'path' ? spec.params : spec.query)?.shape[name];
      const takes = (value: unknown) => reader.safeParse(String(value)).success;
      expect(reader.safeParse(undefined).success, what).toBe(!required);
      if (schema.default !== undefined) {
        expect(reader.parse(String(schema.default)), what).toEqual(reader.parse(undefined));
      }
      for (const value of schema.enum ?? []) expect(takes(value), `${what}=${value}`).toBe(true);
      if (schema.enum) expect(takes('neither of them'), what).toBe(false);
      if (schema.type === 'integer' || schema.type === 'number') {
        expect(takes('x'), what).toBe(false);
        expect(takes('1.5'), what).toBe(schema.type === 'number');
        expect(takes(schema.minimum ?? 1), what).toBe(true);
        if (schema.minimum !== undefined) expect(takes(schema.minimum - 1), what).toBe(false);
        if (schema.maximum !== undefined) {
          limits += 1;
          expect(takes(schema.maximum), what).toBe(true);
          expect(takes(schema.maximum + 1), what).toBe(false);
        }
      }
      if (schema.maxLength !== undefined) {
        expect(takes('x'.repeat(schema.maxLength)), what).toBe(true);
        expect(takes('x'.repeat(schema.maxLength + 1)), what).toBe(false);
      }
      if (schema.type === 'boolean') {
        for (const value of [true, false]) expect(reader.parse(String(value)), what).toBe(value);
        expect(takes('yes'), what).toBe(false);
      }
      if (schema.type === 'array') expect(reader.parse('a, b,'), what).toEqual(['a', 'b']);
    }
  }
  expect(limits).toBeGreaterThan(0);
});

test('has the documented defaults and maxima', () => {
  const getSchema = (operation: string, parameter: string) =>
    getOperation(operation).parameters.find(({ name }: Any) => name === parameter).schema;
  expect(getSchema('activeJobs', 'page')).toEqual({ type: 'integer', minimum: 1, default: 1 });
  expect(getSchema('activeJobs', 'pageSize')).toEqual({
    ...{ type: 'integer', minimum: 1, maximum: 100, default: 20 },
  });
  expect(getSchema('activeJobs', 'includeClosedJobs')).toMatchObject({ type: 'boolean' });
  expect(getSchema('job', 'jobNumber')).toEqual({ type: 'integer' });
});

test('rejects a second schema of the same name but another shape', () => {
  const [spec] = operations;
  if (!spec) expect.unreachable();
  const other = z.object({ jobNumber: z.string() }).meta({ id: 'JobDto' });
  const changed = operations as unknown as unknown[];
  changed.push({ ...spec, path: '/other', answers: { 200: { description: 'Another.', schema: other } } });
  try {
    expect(() => openApiDocument()).toThrow('Two schemas are called JobDto.');
  } finally {
    changed.pop();
  }
});
