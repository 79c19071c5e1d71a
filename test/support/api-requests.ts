/**
 * Requests as the OpenAPI document describes them, and requests beyond it, for every operation. Values come from the schemas
 * or, by field name, from the data of the world. A new operation needs no change here unless its fields have new names.
 */
import { readFileSync } from 'node:fs';
import * as fc from 'fast-check';
import { readApiFile } from '../../local/api-files.ts';
import { MAX_LANES } from '../../shared/delivery/lanes.ts';
import { eventTypes } from '../../shared/events/catalogue.ts';
import { type ApiWorld, BOOTSTRAP, CANARY, FAR, FOREIGN, MOVING, NOTED, OWN, REGIONS } from './api-world.ts';
import { ADDRESSES } from './notification-samples.ts';
import {
  type Asked,
  type Document,
  listOperations,
  type Operation,
  requestsFrom,
  type Schema,
} from './openapi-requests.ts';

export type { Asked, Operation, Schema };

/** The stored document, which equals the generated one (test/api/documents.test.ts). */
const document = JSON.parse(
  readFileSync(new URL('../../docs/openapi.json', import.meta.url), 'utf8'),
) as Document;

/** The named schemas. */
export const namedSchemas = document.components.schemas;

/** All operations. */
export const operations = listOperations(document);

/** Assets of the API reference. */
const assets = [
  ...new TextDecoder().decode(await readApiFile('docs-index.html')).matchAll(/assets\/([^/]+)\/([\w.-]+)/g),
].map(([, version = '', name = '']) => ({ version, name }));

/** Requests of an operation on a world. `after`: the `next` values of its pages. */
export function getRequests(operation: Operation, world: ApiWorld, after: readonly string[] = []) {
  const { ids } = world;
  const accounts = fc.constantFrom<string>(OWN, OWN, FOREIGN, FAR);
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
  /** Values by the name of a field or parameter. They are also used for the items of an array of that name. */
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
    data: texts(world.exported),
    // Some of them are rejected. Neither rejected nor accepted ones may be quoted in a response.
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
    concurrency: fc.integer({ min: 1, max: MAX_LANES }),
    ratePerSecond: fc.integer({ min: 1, max: 100 }),
    replay: texts(''),
    recipient: texts(...(told?.recipients ?? [])),
    message: texts(...(told?.messages ?? [])),
    suppression: texts(...(told?.suppressions ?? [])),
    token: texts(told?.token ?? ''),
    code: texts(ids.pairing.code),
    deviceToken: texts(ids.pairing.deviceToken),
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
    dispatchedOn: day,
    limit: fc.integer({ min: 1, max: 20 }),
    wait: texts('0', '1'),
    version: texts(assets[0]?.version ?? ''),
    name: texts('a name'),
    'Idempotency-Key': fc.string({ unit: fc.constantFrom(...'abc123'), minLength: 1, maxLength: 12 }),
    'If-None-Match': texts('*', '"1"', 'W/"1", "2"'),
    file: texts('job.dispatched.json', 'job.eaten.json', 'job.closed'),
    'If-Match': texts('*', '"1"', '"1", "2"', 'W/"1"', '"7"'),
    'Last-Event-ID': cursor,
    ...buildPathValues(operation.path),
  };

  /** The values of `{id}` and `{replay}` depend on the path. */
  function buildPathValues(path: string): Record<string, fc.Arbitrary<unknown>> {
    if (operation.method === 'POST' && !path.includes('{'))
      return { id: texts('new-1', 'new-2', 'own', OWN) };
    if (path.startsWith('/docs')) {
      return { name: texts(...assets.map(({ name }) => name)), page: texts('jobs', 'schemas', 'none') };
    }
    if (path.startsWith('/v1/attention')) {
      return {
        id: texts('us~~endpoint~own', 'us~~endpoint~everything', NOTED),
        until: fc.constant(new Date(world.now() + 86_400_000).toISOString()),
      };
    }
    if (/\/(move|export)$/.test(path)) return { id: texts(MOVING, OWN) };
    if (path.startsWith('/v1/regions')) return { id: texts(...REGIONS) };
    if (path.startsWith('/v1/keys')) {
      return { id: fc.constantFrom(...Object.values(world.keys).map(({ id }) => id)) };
    }
    if (path.startsWith('/v1/alert-rules')) return { id: texts('own', 'everything') };
    if (path.endsWith('/notifications/test')) return { id: accounts, to: texts(ADDRESSES.email.ann) };
    if (path.startsWith('/v1/endpoints')) return { id: endpoint };
    return { id: accounts };
  }

  return requestsFrom(operation, {
    ...{ named: namedSchemas, known, day, instant },
    token: fc.constantFrom(BOOTSTRAP, world.keys['admin all'].secret, world.keys['admin all'].secret),
    authorizations: [
      ...Object.values(world.keys).map(({ secret }) => `Bearer ${secret}`),
      ...[`Bearer ${world.expired}`, `Bearer ${world.revoked}`, 'Bearer', 'Bearer  x', 'Basic eDp5', ''],
      ...['bearer \u00ff', `Bearer ${'x'.repeat(4000)}`, `Bearer jw_${'a'.repeat(12)}_${'A'.repeat(43)}`],
    ],
    headers: [
      'If-Match',
      'Idempotency-Key',
      'Last-Event-ID',
      'X-Request-Id',
      'Accept',
      'Origin',
      'Accept-Encoding',
      'X-Forwarded-For',
      'Content-Length',
    ],
    // Replays of the endpoint in the path.
    inPath: (name, { id = '' }) => (name === 'replay' ? (ids.replays[id]?.[0] ?? 'none') : undefined),
  });
}
