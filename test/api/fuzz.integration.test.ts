/**
 * Sends valid and invalid requests to every operation of the OpenAPI document. Every answer matches the document, and neither
 * answers nor logs contain secrets.
 */
import { Ajv2020, type ErrorObject, type ValidateFunction } from 'ajv/dist/2020.js';
import formats from 'ajv-formats';
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { PROBLEM_TYPE, type ProblemKind, problems } from '../../shared/api/problems.ts';
import { mapValues } from '../../shared/map-values.ts';
import {
  type Asked,
  getRequests,
  namedSchemas,
  type Operation,
  operations,
  type Schema,
} from '../support/api-requests.ts';
import {
  type ApiWorld,
  CANARY,
  createApiWorld,
  getListId,
  OWN,
  SIGNING_SECRET,
} from '../support/api-world.ts';
import { runs, samples, sized } from '../support/runs.ts';
import { eachTable } from '../support/tables.ts';

const { seed: SEED } = runs(0, 0, 20_261_121);
/** Before any route: the encoding of the path, the key, the path, the method, the size of the body. */
const BEFORE_ROUTES = [400, 401, 404, 405, 413, 429];

const ajv = new Ajv2020({
  ...{ strict: true, strictTypes: false, strictRequired: false, allErrors: false },
  keywords: ['x-role', 'x-problems', 'x-extensible', 'discriminator'],
});
// Clients must accept other values of a response. This version sends none.
ajv.addKeyword({
  keyword: 'x-extensible-enum',
  validate: (known: readonly string[], value: unknown) => value === null || known.includes(value as string),
});
(formats as unknown as { default: (to: Ajv2020) => void }).default(ajv);
// Each under its own name: ajv compiles those once, but `$defs` again for each reference.
for (const [name, schema] of Object.entries(namedSchemas)) ajv.addSchema(strict(schema) as object, name);

/** Compiles a schema. Equal ones, such as those of problems, are compiled once. */
const compiled = new Map<string, ValidateFunction>();
function compile(schema: Schema): ValidateFunction {
  const text = JSON.stringify(schema);
  const validate = compiled.get(text) ?? ajv.compile(strict(schema) as object);
  compiled.set(text, validate);
  return validate;
}

/** Checks an answer's body by operation, status and content type. */
const validators = new Map<string, ValidateFunction>(
  operations.flatMap(({ method, path, responses }) =>
    Object.entries(responses).flatMap(([status, { content = {} }]) =>
      Object.entries(content).map(
        ([type, { schema }]) => [`${method} ${path} ${status} ${type}`, compile(schema)] as const,
      ),
    ),
  ),
);
const byRoute = new Map(operations.map((operation) => [`${operation.method} ${operation.path}`, operation]));

eachTable('every operation', (makeTable, kind, makeHistoryTable) => {
  test('answers any request as documented, without secrets', {
    timeout: 1_800_000,
  }, async () => {
    const world = await createApiWorld({ table: await makeTable(), history: await makeHistoryTable() });
    const tally = new Map<string, number>();
    const succeeded = new Set<string>();
    const began = performance.now();
    const wrong: string[] = [];
    let answers = 0;
    const { numRuns } = kind === 'in memory' ? runs(3, 120) : runs(1, 15);
    for (const operation of operations) {
      const after = await listNextCursors(world, operation);
      const { valid, strange } = getRequests(operation, world, after);
      // One seed per operation, so that new operations do not change the requests of others.
      const seed = [...operation.operationId].reduce((sum, one) => (sum * 31 + one.charCodeAt(0)) | 0, SEED);
      const property = fc.asyncProperty(fc.oneof(valid, strange), async (asked) => {
        try {
          const { status, route } = await check(world, asked);
          if (status === 0) return;
          answers += 1;
          tally.set(`${status}`, (tally.get(`${status}`) ?? 0) + 1);
          if (status < 300 && route === `${operation.method} ${operation.path}`) {
            succeeded.add(operation.operationId);
          }
        } finally {
          await world.undo();
        }
      });
      const outcome = await fc.check(property, { seed, numRuns });
      if (outcome.failed) {
        const cause = outcome.errorInstance instanceof Error ? outcome.errorInstance.message : '';
        wrong.push(`${operation.operationId}: ${fc.stringify(outcome.counterexample)}\n${cause}`);
      }
    }
    // Short runs may miss requests that need several matching values.
    for (const operation of operations) {
      const { valid } = getRequests(operation, world, await listNextCursors(world, operation));
      for (const asked of succeeded.has(operation.operationId) ? [] : samples(valid, SEED, 200)) {
        const { status } = await check(world, asked).finally(() => world.undo());
        answers += 1;
        if (status < 200 || status > 299) continue;
        succeeded.add(operation.operationId);
        break;
      }
    }
    // A renewal needs a cookie, which the document does not describe.
    const never = operations
      .filter(({ operationId }) => !succeeded.has(operationId) && operationId !== 'renewSession')
      .map(({ operationId }) => operationId);
    console.log(
      JSON.stringify({
        kind,
        seed: SEED,
        operations: operations.length,
        answers,
        statuses: Object.fromEntries([...tally].sort()),
        seconds: Math.round((performance.now() - began) / 100) / 10,
      }),
    );
    expect(wrong.join('\n\n')).toBe('');
    expect(never, 'operations without a successful request').toEqual([]);
  });

  test('rejects names that are longer than a table key', async () => {
    const world = await createApiWorld({ table: await makeTable(), history: await makeHistoryTable() });
    const named = operations.filter(({ path }) => path.includes('{'));
    const some = kind === 'in memory' ? 1 : sized(20, 1);
    for (const operation of named.filter((_, at) => at % some === 0)) {
      const [sample] = fc.sample(getRequests(operation, world).valid, { seed: SEED, numRuns: 1 });
      const names = operation.parameters
        .filter((parameter) => parameter.in === 'path')
        .map(({ name }) => name);
      for (const long of names) {
        for (const text of [
          'x'.repeat(1500),
          encodeURIComponent('é'.repeat(900)),
          `${OWN}.${'e'.repeat(2100)}.1`,
        ]) {
          const path = operation.path.replace(/\{(\w+)\}/g, (_, name: string) =>
            name === long
              ? text
              : name === 'id'
                ? operation.path.includes('/endpoints/')
                  ? 'own'
                  : OWN
                : '1',
          );
          if (sample)
            expect([400, 404], path.slice(0, 60)).toContain((await check(world, { ...sample, path })).status);
        }
      }
    }
  });
});

/** Sends a request, and checks the answer. */
async function check(world: ApiWorld, asked: Asked) {
  world.logged.length = 0;
  world.faults.length = 0;
  const { method, path, headers, body } = asked;
  let request: Request;
  try {
    request = new Request(`http://jobwire.test${path}`, {
      method,
      headers,
      ...(body === undefined ? {} : { body }),
    });
  } catch {
    // No client can send it.
    return { status: 0, route: null };
  }
  const response = await world.app.fetch(request, {
    clientAddress: `10.0.0.${answersSoFar++ % 250}.${answersSoFar}`,
  });
  const text = await response.text();
  const { status } = response;
  const what = `${method} ${path} → ${status} ${text.slice(0, 500)}`;
  expect(world.faults, what).toEqual([]);
  expect(status, what).toBeLessThan(500);

  const logged = world.logged as {
    request: { route: string | null; requestId: string };
    answer: { status: number };
  }[];
  expect(logged, what).toHaveLength(1);
  const route = logged[0]?.request.route ?? null;
  const requestId = response.headers.get('x-request-id');
  expect(requestId, what).toBe(logged[0]?.request.requestId);
  expect(requestId, what).toMatch(/^[\w\-=]{1,255}$/);
  expect(response.headers.get('x-content-type-options'), what).toBe('nosniff');
  expect(response.headers.get('x-frame-options'), what).toBe('DENY');
  expect(response.headers.get('content-security-policy'), what).toMatch(/default-src 'none'/);
  expect(response.headers.get('cache-control'), what).not.toBeNull();

  const said = `${text} ${JSON.stringify([...response.headers])} ${JSON.stringify(logged)}`;
  for (const secret of [CANARY, SIGNING_SECRET, ...getSecrets(world)]) {
    // A caller's path or parameter may be quoted.
    if (path.includes(secret)) continue;
    expect(said.includes(secret), `a secret in ${what}`).toBe(false);
  }

  const type = (response.headers.get('content-type') ?? '').replace(/;.*/, '');
  if (type === 'application/problem+json' && method !== 'HEAD') {
    const problem = JSON.parse(text) as { type: string; status: number; requestId: string; title: string };
    const kind = problem.type.slice(PROBLEM_TYPE.length) as ProblemKind;
    expect(problem, what).toMatchObject({
      type: `${PROBLEM_TYPE}${kind}`,
      status,
      requestId,
      title: problems[kind]?.title,
    });
    expect(problems[kind].status, what).toBe(status);
  }
  if (route === null) {
    expect(BEFORE_ROUTES, what).toContain(status);
    expect(type, what).toBe('application/problem+json');
    return { status, route };
  }
  const operation = byRoute.get(route);
  const documented = operation?.responses[status];
  expect(documented, `undocumented: ${what}`).toBeDefined();
  if (method === 'HEAD') return { status, route };
  if (!documented?.content) {
    expect(text, what).toBe('');
    return { status, route };
  }
  const validate =
    validators.get(`${route} ${status} ${type}`) ??
    validators.get(`${route} ${status} ${type.replace(/\/.*/, '/*')}`);
  if (!validate) expect.unreachable(`undocumented type ${type}: ${what}`);
  const value = /json$/.test(type) ? JSON.parse(text) : text;
  if (!validate(value)) expect.unreachable(`${describe(validate.errors)}: ${what}`);
  if (type === 'application/problem+json') {
    const kinds = (documented as { 'x-problems'?: string[] })['x-problems'] ?? [];
    expect(kinds, `undocumented kind: ${what}`).toContain(
      (value as { type: string }).type.slice(PROBLEM_TYPE.length),
    );
  }
  return { status, route };
}
let answersSoFar = 0;

const describe = (errors: readonly ErrorObject[] | null | undefined) =>
  (errors ?? [])
    .map(({ instancePath, message, params }) => `${instancePath} ${message} ${JSON.stringify(params)}`)
    .join('; ');

function getSecrets(world: ApiWorld): string[] {
  return [
    ...Object.values(world.keys).map(({ secret }) => secret),
    world.revoked,
    world.expired,
    world.credentials.clientSecret,
  ];
}

/** The cursors in the pages of a list. */
async function listNextCursors(world: ApiWorld, { method, path, parameters }: Operation): Promise<string[]> {
  if (method !== 'GET' || !parameters.some(({ name }) => name === 'after')) return [];
  const list = path
    .replace('/stream', '')
    .replace('{id}', getListId(path))
    .replace('{recipient}', 'ann')
    .replace('{jobNumber}', String(world.ids.jobs[0]));
  const response = await world.app.request(`${list}?limit=1`, {
    headers: { authorization: `Bearer ${world.keys['admin all'].secret}` },
  });
  const { next } = (await response.json()) as { next?: string | null };
  return next ? [next] : [];
}

/** The schema with resolved references; objects have only described fields, unless they allow others. */
function strict(schema: Schema): unknown {
  if (Array.isArray(schema)) return schema.map(strict);
  if (typeof schema !== 'object' || schema === null) return schema;
  const { $ref, ...rest } = schema;
  const mapped = mapValues(rest, (value) => strict(value as Schema));
  const isClosed = schema.properties && !('additionalProperties' in schema) && !schema.allOf;
  return {
    ...mapped,
    ...(isClosed ? { additionalProperties: false } : {}),
    ...($ref === undefined ? {} : { $ref: $ref.replace('#/components/schemas/', '') }),
  };
}
