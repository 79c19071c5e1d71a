/**
 * Sends valid and invalid requests to every operation of the sandbox's OpenAPI document, over HTTP. Every answer matches the
 * document, including its body, and the sandbox keeps running.
 */
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import formats from 'ajv-formats';
import * as fc from 'fast-check';
import { expect, test, vi } from 'vitest';
import type { Sandbox } from '../../sandbox/server.ts';
import {
  type Asked,
  type Document,
  listOperations,
  type Operation,
  type Requests,
  requestsFrom,
  type Schema,
  strangeText,
} from '../support/openapi-requests.ts';
import { type Client, type Service, START, startService } from '../support/ordering-api.ts';
import { runs, samples } from '../support/runs.ts';

const { seed: SEED, numRuns: RUNS } = runs(12, 40, 20_261_121);
/** The only operation whose input can cause a 500. */
const MAY_FAIL = 'createJob';

test('every operation answers any request as documented', {
  timeout: 60_000 + RUNS * 3_000,
}, async () => {
  const complaints = vi.spyOn(console, 'error').mockImplementation(() => {});
  const service = await startService();
  const world = await fill(service);
  const document = await describedBy(service.sandbox);
  const operations = listOperations(document);
  const check = createChecker(service.sandbox, document, operations);
  const tally = new Map<number, number>();
  const succeeded = new Set<string>();
  const wrong: string[] = [];
  const began = performance.now();
  const ask = async (asked: Asked): Promise<void> => {
    const { status, operation } = await check(asked);
    tally.set(status, (tally.get(status) ?? 0) + 1);
    if (status >= 200 && status < 300) succeeded.add(operation);
  };
  const all = operations.map((operation) => ({
    operation,
    requests:
      operation.operationId === 'token' ? tokenRequests(service) : getRequests(operation, document, world),
  }));

  for (const { operation, requests } of all) {
    const { valid, strange } = requests;
    // One seed per operation, so that new operations do not change the requests of others.
    const seed = [...operation.operationId].reduce((sum, one) => (sum * 31 + one.charCodeAt(0)) | 0, SEED);
    const outcome = await fc.check(fc.asyncProperty(fc.oneof(valid, strange), ask), { seed, numRuns: RUNS });
    if (outcome.failed) {
      const cause = outcome.errorInstance instanceof Error ? outcome.errorInstance.message : '';
      wrong.push(`${operation.operationId}: ${fc.stringify(outcome.counterexample)}\n${cause}`);
    }
  }
  // Short runs may miss requests that need several matching values.
  for (const { operation, requests } of all) {
    for (const asked of samples(requests.valid, SEED, 200)) {
      if (succeeded.has(operation.operationId)) break;
      await ask(asked);
    }
  }
  const statuses = Object.fromEntries([...tally].sort(([one], [other]) => one - other));
  const seconds = Math.round((performance.now() - began) / 100) / 10;
  console.log(JSON.stringify({ seed: SEED, operations: operations.length, statuses, seconds }));

  expect(wrong.join('\n\n')).toBe('');
  expect(complaints.mock.calls, 'unexpected errors').toEqual([]);
  expect(
    operations.map(({ operationId }) => operationId).filter((id) => !succeeded.has(id)),
    'operations without a successful request',
  ).toEqual([]);
});

async function describedBy(sandbox: Sandbox): Promise<Document> {
  return (await fetch(`${sandbox.apiUrl('us')}/openapi.json`)).json() as Promise<Document>;
}

/** Sends a request, and compares the answer with the document. */
function createChecker(sandbox: Sandbox, { components }: Document, operations: readonly Operation[]) {
  const ajv = new Ajv2020({
    ...{ strict: true, strictTypes: false, strictRequired: false, keywords: ['components'] },
  });
  (formats as unknown as { default: (to: Ajv2020) => void }).default(ajv);
  ajv.addSchema({ $id: 'api', components });
  const compiled = new Map<Schema, ValidateFunction>();
  const compileValidator = (schema: Schema): ValidateFunction => {
    const text = JSON.stringify(schema).replaceAll('"#/components/', '"api#/components/');
    const validate = compiled.get(schema) ?? ajv.compile(JSON.parse(text));
    compiled.set(schema, validate);
    return validate;
  };
  const matches = (schema: Schema, body: unknown, what: string): void => {
    const validate = compileValidator(schema);
    if (!validate(body)) expect.unreachable(`${ajv.errorsText(validate.errors)}: ${what}`);
  };
  const problem: Schema = { $ref: '#/components/schemas/ProblemDetails' };

  return async ({ method, path, headers, body }: Asked) => {
    const before = sandbox.requests.count();
    const host = path.startsWith('/realms/') ? sandbox.authUrl('us') : sandbox.apiUrl('us');
    let answer: Response;
    try {
      answer = await fetch(
        new Request(host + path, { method, headers, ...(body === undefined ? {} : { body }) }),
      );
    } catch (cause) {
      // No client can send it; a broken connection would still be an error.
      if (sandbox.requests.count() > before) throw cause;
      return { status: 0, operation: 'unsent' };
    }
    const text = await answer.text();
    const { status } = answer;
    const what = `${method} ${path} ${body ?? ''} → ${status} ${text.slice(0, 500)}`;
    const type = (answer.headers.get('content-type') ?? '').replace(/;.*/, '');
    if (method !== 'HEAD' && status !== 204) {
      expect(answer.headers.get('content-length'), what).toBe(String(Buffer.byteLength(text)));
    }
    const [entry, ...more] = sandbox.requests.list().slice(before);
    expect(more, what).toEqual([]);
    const asked = operations.find(({ operationId }) => operationId === entry?.operation);
    if (!entry || !asked) {
      // Unknown operation: the path or the method does not exist.
      expect([401, 404], what).toContain(status);
      if (method !== 'HEAD' && !path.startsWith('/realms/')) {
        expect(type, what).toBe('application/problem+json');
        matches(problem, JSON.parse(text), what);
      }
      return { status, operation: 'none' };
    }
    expect(entry.status, what).toBe(status);
    const described = asked.responses[status];
    if (!described) expect.unreachable(`undocumented status: ${what}`);
    if (status >= 500) expect(asked.operationId, what).toBe(MAY_FAIL);
    if (method === 'HEAD') return { status, operation: 'none' };
    if (!described.content) {
      expect(text, what).toBe('');
    } else {
      const schema = described.content[type]?.schema;
      if (!schema) expect.unreachable(`undocumented type ${type}: ${what}`);
      matches(schema, JSON.parse(text), what);
    }
    return { status, operation: asked.operationId };
  };
}

/** Existing values for parameters. */
interface Filled {
  readonly tokens: readonly string[];
  readonly authorizations: readonly string[];
  readonly known: Readonly<Record<string, fc.Arbitrary<unknown>>>;
  readonly lines: readonly object[];
  readonly addresses: readonly object[];
}

/** Jobs in every state, of the account and of another one, and the codes that the API lists. */
async function fill({ us, as, acme, world }: Service): Promise<Filled> {
  const other = world.addAccount({ region: 'us', name: 'other' });
  const kiwi = await as('user', world.addAccount({ region: 'nz', name: 'kiwi' }));
  const jobs = Array.from({ length: 30 }, (_, at) =>
    acme.createJob({
      orderNumber: `PO-${at}`,
      orderGroup: at % 3 === 0 ? 'G1' : null,
      orderGroupSequence: at,
    }),
  );
  const [dispatched = 0, closed = 0, cancelled = 0] = jobs;
  acme.dispatch(dispatched, { tracking: [{ trackingNumber: 'T1', trackingLink: null }] });
  acme.invoice(dispatched);
  acme.close(closed);
  acme.cancel(cancelled);
  const foreign = other.createJob();
  const [administrator, staff, viewer] = await Promise.all([as('administrator'), as('staff'), as('viewer')]);

  const priced = (await us.get<PriceCodeFacts[]>('/PriceCodes/price-codes?pageSize=200')).json;
  const assets = (await us.get<{ entities: AssetFacts[] }>('/Assets?pageSize=200')).json.entities;
  const globals = (await us.get<{ entities: AssetFacts[] }>('/Assets/global')).json.entities;
  const stock = (await us.get<StockFacts[]>('/Stock?pageSize=200&includePricing=true')).json;
  const options = (await us.get<{ code: string; isCollection: boolean }[]>('/Jobs/delivery-options')).json;
  const processes = await us.get<{ processes: { processCode: string }[] }>('/PriceCodes/processes');
  const texts = (...all: readonly string[]) => fc.constantFrom(...all);
  const tags = [...assets, ...globals].map(({ assetTag }) => assetTag);
  const stockCodes = stock.flatMap(({ stockCode, stockVariants }) => [
    stockCode,
    ...stockVariants.map(({ variantCode }) => variantCode),
  ]);
  const codes = [...priced.map(({ priceCode }) => priceCode), 'no such code'];
  const user = fc.constantFrom(...acme.users.map(({ id }) => id), 1);
  return {
    tokens: [us, administrator, administrator, staff].map(({ token }) => token),
    authorizations: [
      ...[viewer, kiwi].map(({ token }: Client) => `Bearer ${token}`),
      ...['Bearer', 'Bearer  x', 'Basic eDp5', '', 'bearer \u00ff', `Bearer ${'x'.repeat(4000)}`],
    ],
    known: {
      jobNumber: fc.constantFrom(...jobs, foreign, 1),
      excludeJobNumber: fc.constantFrom(...jobs),
      customerUserId: user,
      userId: user,
      customerId: fc.constantFrom(acme.id, other.id),
      orderGroup: texts('G1', 'none'),
      searchText: texts('po-1', 'acme', 'nobody'),
      priceCode: texts(...codes),
      assetTag: texts(...tags, 'no-such-tag'),
      assetCode: texts(...tags, 'no-such-tag'),
      code: texts(...stockCodes, ...codes, ...tags, 'SAVE10', 'no-such-code'),
      variantCode: texts(...stockCodes),
      stockItemId: fc.integer({ min: 1, max: 40 }),
      market: texts('US', 'NZ', 'us', 'XX'),
      markets: texts('US', 'nz', 'XX'),
      countryCode: texts('US', 'NZ', 'gb', 'ZZ'),
      processCodes: texts(...processes.json.processes.map(({ processCode }) => processCode), 'none'),
      includeProcesses: texts(...processes.json.processes.map(({ processCode }) => processCode)),
      excludeProcesses: texts(...processes.json.processes.map(({ processCode }) => processCode)),
      itemType: texts('PriceCode', 'Asset', 'Stock', 'BillOfMaterial'),
      dateDue: texts('2026-12-24', '2026-12-24T17:00:00Z', '2020-01-01', 'soon'),
      countryCodeISO2: texts('US', 'USA'),
      deliveryMethod: texts(...options.map(({ code }) => code), 'teleport'),
      'X-Application-Name': texts('API', 'SHOP', 'nobody'),
    },
    lines: [
      ...priced.slice(0, 12).map((one) => ({
        ...{
          itemType: 'PriceCode',
          code: one.priceCode,
          quantity: one.minimumQuantity,
          customerReference: 'A',
        },
        attributes: Object.fromEntries(
          (one.attributes ?? [])
            .filter(({ required }) => required)
            .map((field) => [field.name, valueFor(field)]),
        ),
      })),
      ...[...assets, ...globals].slice(0, 6).map(({ assetTag, priceBands }) => ({
        ...{ itemType: 'Asset', code: assetTag, quantity: priceBands?.[0]?.from ?? 50 },
      })),
      ...stock.slice(0, 6).flatMap(({ stockCode, stockVariants: [variant], priceBands }) =>
        variant
          ? [
              {
                ...{ itemType: 'Stock', code: stockCode, variantCode: variant.variantCode },
                sizeQuantities: { [variant.sizesCsv.split(',')[0] ?? '']: priceBands?.[0]?.from ?? 1 },
              },
            ]
          : [],
      ),
    ],
    addresses: options.map(({ code }) => ({
      ...{ deliveryMethod: code, contactName: 'Robin', streetAddress: '1 Main St', city: 'Denver' },
      ...{ state: 'CO', postalCode: '80202', countryCodeISO2: 'US' },
    })),
  };
}

interface PriceCodeFacts {
  readonly priceCode: string;
  readonly minimumQuantity: number;
  readonly attributes: readonly AttributeFacts[] | null;
}
interface AttributeFacts {
  readonly name: string;
  readonly type: string;
  readonly required: boolean;
  readonly enumerableValues?: readonly { readonly value: string }[] | null;
  readonly minLength?: number;
  readonly minValue?: number;
}
interface AssetFacts {
  readonly assetTag: string;
  readonly priceBands: readonly { readonly from: number }[] | null;
}
interface StockFacts {
  readonly stockCode: string;
  readonly stockVariants: readonly { readonly variantCode: string; readonly sizesCsv: string }[];
  readonly priceBands: readonly { readonly from: number }[] | null;
}

function valueFor({ type, enumerableValues, minLength = 1, minValue = 1 }: AttributeFacts): unknown {
  if (type === 'select') return enumerableValues?.[0]?.value;
  return type === 'text' ? 'x'.repeat(Math.max(1, minLength)) : minValue;
}

function getRequests(operation: Operation, { components }: Document, world: Filled) {
  const day = fc.constantFrom('2026-12-24', '2026-11-20', '2020-02-29');
  const instant = fc.constantFrom('2026-12-24T08:00:00Z', new Date(START).toISOString());
  const order = fc.record({
    deliveryAddress: fc.constantFrom(...world.addresses),
    items: fc.array(fc.constantFrom(...world.lines), { minLength: 1, maxLength: 2 }),
  });
  const requests: Requests = {
    ...{ named: components.schemas, known: world.known, day, instant },
    token: fc.constantFrom(...world.tokens),
    authorizations: world.authorizations,
    headers: ['Accept', 'Origin', 'Accept-Encoding', 'X-Application-Name', 'X-Forwarded-For', 'If-Match'],
    ...(operation.operationId === 'createJob' && {
      // Random values of the schema are hardly ever a valid order.
      body: (described) =>
        fc.oneof(
          order,
          described,
          fc.tuple(described, order).map(([some, good]) => ({ ...(some as object), ...good })),
        ),
    }),
  };
  return requestsFrom(operation, requests);
}

/** Forms of token requests; the endpoint accepts no JSON. */
function tokenRequests({ acme }: Service) {
  const path = '/realms/us/protocol/openid-connect/token';
  const headers = { 'content-type': 'application/x-www-form-urlencoded' };
  const good = {
    grant_type: 'client_credentials',
    client_id: acme.clientId,
    client_secret: acme.clientSecret,
  };
  const valid = fc.constant<Asked>({
    ...{ method: 'POST', path, headers, body: new URLSearchParams(good).toString() },
  });
  const field = fc.constantFrom(...Object.keys(good));
  const strange = fc.oneof(
    fc.tuple(field, strangeText).map(
      ([name, text]): Asked => ({
        ...{ method: 'POST', path, headers },
        body: new URLSearchParams({ ...good, [name]: text.toWellFormed() }).toString(),
      }),
    ),
    strangeText.map((body): Asked => ({ method: 'POST', path, headers, body })),
    fc.constantFrom<Asked>(
      { method: 'POST', path: path.replace('us', 'nz'), headers, body: String(new URLSearchParams(good)) },
      { method: 'POST', path, headers: { 'content-type': 'application/json' }, body: JSON.stringify(good) },
      { method: 'POST', path, headers: {} },
      { method: 'GET', path, headers: {} },
    ),
  );
  return { valid, strange };
}
