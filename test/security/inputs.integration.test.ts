/**
 * Every string of a request is replaced, one at a time, by a hostile one: empty, longer than a table key, not well-formed, with
 * control characters. DynamoDB rejects empty keys, partition keys over 2,048 bytes and sort keys over 1,024 bytes, so the
 * tables are real ones.
 */
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import * as fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { jobsWithOrderNumber, toJobIndexKeys } from '../../shared/storage/job-indexes.ts';
import { getRequests, type Operation, operations } from '../support/api-requests.ts';
import { type ApiWorld, createApiWorld, OWN, sharedWorld } from '../support/api-world.ts';
import {
  builtProgram,
  configFor,
  generatedKey,
  type Jobwire,
  startJobwire,
  startSandbox,
  writeConfig,
} from '../support/jobwire.ts';
import type { Asked } from '../support/openapi-requests.ts';
import { sized } from '../support/runs.ts';
import { testDynamo } from '../support/tables.ts';

/** The replacements of each string, by their name in a failure. */
const BAD: Readonly<Record<string, string>> = {
  empty: '',
  '1,025 bytes': 'x'.repeat(1025),
  '2,049 bytes': 'x'.repeat(2049),
  '1,026 bytes in 513 characters': 'é'.repeat(513),
  'a lone surrogate': 'a\ud800b',
  'a control character': 'a\u0007b',
  'a line break': 'a\r\nb',
  NUL: 'a\u0000b',
  __proto__: '__proto__',
  'a separator of keys': '#',
  'a pair of surrogates across 200 characters': `${'x'.repeat(199)}\u{1f600}y`,
};

const base64 = (text: string): string => Buffer.from(text).toString('base64url');
/** Texts with several parts, and an invalid text in place of each part. By the name of the parameter or field. */
const SHAPES: Readonly<Record<string, readonly ((text: string) => string)[]>> = {
  after: [
    base64,
    (text) => base64(`${text}/us`),
    (text) => base64(`us/${text}`),
    (text) => base64(`1/${text}`),
    (text) => base64(JSON.stringify({ asOf: 'e1.1', filter: { by: 'none' }, behind: text })),
    (text) => base64(JSON.stringify({ asOf: `${text}.1`, filter: { by: 'none' }, behind: '1' })),
    (text) => `us/${text}`,
    (text) => `${text}.1`,
    (text) => `e1.${text}`,
    (text) => `us.${text}.1`,
    (text) => `email-${text}`,
  ],
  event: [(text) => `${text}.e1.1`, (text) => `${OWN}.${text}.1`, () => `${OWN}.e1.0`],
  csv: [
    (text) => `id,email\n"${text}",ann@example.com\n`,
    (text) => `email,orderGroup\nann@example.com,"${text}"\n`,
    (text) => `email,orderNumber\nann@example.com,"${text}"\n`,
  ],
};

/** Only every nth request is sent. 10 has no divisor in common with the number of invalid texts, so all of them occur. */
const STEP = sized(20, 1);
/** Number of requests whose bodies are used: enough to contain every field at least once. */
const SAMPLES = 150;
const SEED = 20_260_302;

/** Path of a string in a JSON body. `isKey`: the name of the field itself. */
interface Place {
  readonly path: readonly (string | number)[];
  readonly isKey: boolean;
}

/** Returns the paths of all strings in a value, and of all names that the schema does not fix. */
function placesIn(value: unknown, path: readonly (string | number)[] = []): Place[] {
  if (typeof value === 'string') return [{ path, isKey: false }];
  if (typeof value !== 'object' || value === null) return [];
  return Object.entries(value).flatMap(([name, inner]) => {
    const at = [...path, Array.isArray(value) ? Number(name) : name];
    return [...(Array.isArray(value) ? [] : [{ path: at, isKey: true }]), ...placesIn(inner, at)];
  });
}

/** The same for all elements of a list. */
const getName = ({ path, isKey }: Place): string =>
  `${path.map((part) => (typeof part === 'number' ? '[]' : part)).join('.')}${isKey ? ' (name)' : ''}`;

/** Returns a value with another string at a path. `__proto__` becomes an own member, as in JSON. */
function withString(value: unknown, { path: [first, ...rest], isKey }: Place, text: string): unknown {
  if (first === undefined) return text;
  const entries = Object.entries(value as object).map(([name, inner]): [string, unknown] => {
    if (name !== String(first)) return [name, inner];
    if (isKey && rest.length === 0) return [text, inner];
    return [name, withString(inner, { path: rest, isKey }, text)];
  });
  return Array.isArray(value) ? entries.map(([, inner]) => inner) : Object.fromEntries(entries);
}

/** Percent-encodes a text. A lone surrogate becomes three bytes that are not UTF-8. */
const encode = (text: string): string =>
  [...text].map((each) => (each.isWellFormed() ? encodeURIComponent(each) : '%ED%A0%80')).join('');

/** A request, and its invalid part. */
interface Case {
  readonly what: string;
  readonly asked: Asked;
  /** Whether it has a text that is not well-formed, or a field `__proto__`. */
  readonly malformed: boolean;
}

/** Returns the requests of an operation with one invalid string in each. */
function listCases(operation: Operation, world: ApiWorld): Case[] {
  const { valid } = getRequests(operation, world);
  const samples = fc.sample(valid, { seed: SEED, numRuns: operation.body ? SAMPLES : 1 });
  const [first] = samples;
  if (!first) return [];
  const cases: Case[] = [];
  let at = 0;
  const add = (place: string, field: string, request: (text: string) => Asked) => {
    for (const [name, text] of Object.entries(BAD)) {
      for (const shape of [(plain: string) => plain, ...(SHAPES[field] ?? [])]) {
        at += 1;
        if (at % STEP !== 0) continue;
        const asked = request(shape(text));
        const malformed = /%ED%A0%80/.test(asked.path) || /\\ud800|"__proto__":/.test(asked.body ?? '');
        cases.push({ what: `${operation.operationId}: ${place}: ${name}`, asked, malformed });
      }
    }
  };
  const admin = { Authorization: `Bearer ${world.keys['admin all'].secret}` };
  const good = (asked: Asked): Asked => ({
    ...asked,
    path: getPath(operation, world),
    headers: {
      ...admin,
      ...(asked.headers['Content-Type'] ? { 'Content-Type': asked.headers['Content-Type'] } : {}),
    },
  });
  for (const { name, in: kind } of operation.parameters) {
    const { path, ...rest } = good(first);
    if (kind === 'path') {
      add(`path ${name}`, name, (text) => ({
        ...rest,
        path: operation.path.replace(/\{(\w+)\}/g, (_, each: string) =>
          each === name ? encode(text) : encode(getKnownValue(operation, world, each)),
        ),
      }));
    } else if (kind === 'query') {
      add(`query ${name}`, name, (text) => ({ ...rest, path: `${path}?${name}=${encode(text)}` }));
    } else {
      add(`header ${name}`, name, (text) => ({ ...rest, path, headers: { ...rest.headers, [name]: text } }));
    }
  }
  const seen = new Map<string, number>();
  for (const sample of samples) {
    if (sample.body === undefined) continue;
    const body: unknown = JSON.parse(sample.body);
    for (const place of placesIn(body)) {
      const name = getName(place);
      // The other fields decide how far a request is processed.
      if ((seen.get(name) ?? 0) >= sized(1, 8)) continue;
      seen.set(name, (seen.get(name) ?? 0) + 1);
      add(`body ${name}`, String(place.path.at(-1)), (text) => ({
        ...good(sample),
        body: JSON.stringify(withString(body, place, text)),
      }));
    }
  }
  return cases;
}

/** Returns a path of an operation with existing ids. */
const getPath = (operation: Operation, world: ApiWorld): string =>
  operation.path.replace(/\{(\w+)\}/g, (_, name: string) => encode(getKnownValue(operation, world, name)));

/** Returns the name of a path parameter in the world. */
function getKnownValue({ path }: Operation, { ids, keys }: ApiWorld, name: string): string {
  const told = ids.notifying[OWN];
  const known: Record<string, string | undefined> = {
    event: ids.events[0],
    jobNumber: String(ids.jobs[0]),
    kind: 'dispatched',
    channel: 'email',
    locale: 'en-GB',
    recipient: told?.recipients[0],
    message: told?.messages[0],
    suppression: told?.suppressions[0],
    token: told?.token,
    replay: ids.replays.own?.[0],
    type: 'job.dispatched',
  };
  if (name !== 'id') return known[name] ?? 'x';
  if (path.startsWith('/v1/regions')) return 'us';
  if (path.startsWith('/v1/keys')) return keys['read own'].id;
  return path.startsWith('/v1/endpoints') ? 'own' : OWN;
}

/** Returns the status and body of the response. `undefined`: no client can send the request. */
async function ask(world: ApiWorld, { method, path, headers, body }: Asked) {
  let request: Request;
  try {
    const all = { method, headers, ...(body === undefined ? {} : { body }) };
    request = new Request(`http://jobwire.test${path}`, all);
  } catch {
    return undefined;
  }
  const response = await world.app.fetch(request, {});
  // A stream continues until it is closed.
  if (response.headers.get('content-type')?.startsWith('text/event-stream')) {
    await response.body?.cancel();
    return { status: response.status, text: '' };
  }
  return { status: response.status, text: await response.text() };
}

async function makeWorld(): Promise<ApiWorld> {
  const { makeTable, makeHistoryTable } = testDynamo();
  return createApiWorld({ table: await makeTable(), history: await makeHistoryTable() });
}

test('no string in any request causes a fault of the store: no response is 5xx, and text that is not well-formed is rejected with 400', {
  timeout: 1_800_000,
}, async () => {
  const world = await makeWorld();
  const wrong: string[] = [];
  let answers = 0;
  for (const operation of operations) {
    for (const { what, asked, malformed } of listCases(operation, world)) {
      const answer = await ask(world, asked);
      if (!answer) continue;
      answers += 1;
      if (answer.status >= 500 || (malformed && answer.status !== 400)) {
        wrong.push(`${what} → ${answer.status} ${answer.text.slice(0, 300)}`);
      }
      if (asked.method !== 'GET') await world.undo();
    }
  }
  expect(wrong).toEqual([]);
  // Else the generator no longer finds the places.
  expect(answers).toBeGreaterThan(sized(280, 5_000));
});

/** For requests that never reach a table. */
const shared = sharedWorld();
const tooLong = ['x'.repeat(1025), 'x'.repeat(2049)];
const url = 'https://erp.example.com/hook';
test.each([
  ['POST', '/v1/endpoints', (account: string) => ({ url, accounts: [OWN, account] }), 'accounts[1]'],
  ['PATCH', '/v1/endpoints/own', (account: string) => ({ accounts: [account] }), 'accounts[0]'],
  [
    'POST',
    '/v1/endpoints/own/replays',
    (account: string) => ({ from: 'beginning', filter: { accounts: [account] } }),
    'filter.accounts[0]',
  ],
  ['POST', '/v1/keys', (account: string) => ({ role: 'read', accounts: [account] }), 'accounts[0]'],
])('%s %s rejects an invalid account id with a 400 that names the field', async (...given) => {
  const [method, path, bodyWith, field] = given;
  const { world } = shared;
  for (const account of ['', ...tooLong, 'ACME', 'a#b', 'é'.repeat(600), 'a\u0000']) {
    const body = JSON.stringify(bodyWith(account));
    const answer = await ask(world, { method, path, headers: getJson(world), body });
    expect(answer?.status, account.slice(0, 20)).toBe(400);
    const problem = JSON.parse(answer?.text ?? '') as object;
    expect(problem).toMatchObject({ type: 'urn:jobwire:problem:invalid-body', field });
    expect(problem).toMatchObject({ detail: expect.stringContaining(`${field} must be 1–63 lower-case`) });
  }
  expect(world.faults).toEqual([]);
});

test.each([
  ['a lone surrogate', String.raw`{"description":"a\ud800"}`, 'description', 'lone surrogate'],
  ['a lone surrogate in a name', String.raw`{"headers":{"\udc00":"a"}}`, 'headers.\ufffd', 'lone surrogate'],
  ['a field called __proto__', '{"__proto__":{"url":"x"}}', '__proto__', 'no field may be named __proto__'],
  [
    'an escaped __proto__',
    String.raw`{"jobFields":{"\u005f_proto__":1}}`,
    'jobFields.__proto__',
    '__proto__',
  ],
  [
    'a lone surrogate 20,000 levels deep',
    `{"types":${'['.repeat(20_000)}"\\ud800"${']'.repeat(20_000)}}`,
    'types[0][0]',
    'lone surrogate',
  ],
])('a JSON body with %s is a 400 that names the field', async (_, body, field, detail) => {
  const { world } = shared;
  const path = '/v1/endpoints/own';
  const answer = await ask(world, { method: 'PATCH', path, headers: getJson(world), body });
  expect(answer?.status).toBe(400);
  const problem = JSON.parse(answer?.text ?? '') as { field: string; detail: string };
  expect(problem).toMatchObject({ type: 'urn:jobwire:problem:invalid-body' });
  expect(problem.field.startsWith(field), problem.field).toBe(true);
  expect(problem.detail).toContain(detail);
});

test('keys made from an order number are well-formed wherever it is truncated, and found again', async () => {
  const orderNumber = `${'x'.repeat(199)}\u{1f600}y`;
  const ref = { region: 'us', account: OWN };
  const job = { ...{ jobNumber: 7, status: null, dueDay: null, open: true }, dispatchedDay: null };
  const places = toJobIndexKeys(ref, { ...job, orderNumber, orderGroup: null });
  const table = await testDynamo().makeTable();
  await table.putMany([{ pk: 'x', sk: 'y', ...places }]);
  const found = await table.query(jobsWithOrderNumber(ref, orderNumber));
  expect(found.map(({ sk }) => sk)).toEqual(['y']);
});

test('a surrogate pair is accepted as text', async () => {
  const { world } = shared;
  const body = JSON.stringify({ description: 'cards \u{1f600}' });
  const answer = await ask(world, {
    method: 'PATCH',
    path: '/v1/endpoints/own',
    headers: getJson(world),
    body,
  });
  expect(answer).toMatchObject({ status: 200, text: expect.stringContaining('cards \u{1f600}') });
});

const getJson = (world: ApiWorld) => ({
  Authorization: `Bearer ${world.keys['admin all'].secret}`,
  'Content-Type': 'application/json',
});

describe('an invalid request over a socket', () => {
  const ends: (() => void | Promise<void>)[] = [];
  let jobwire: Jobwire;
  let key: string;

  beforeAll(async () => {
    const end = (stop: () => void | Promise<void>) => ends.unshift(stop);
    const { sandbox, world } = await startSandbox({}, end);
    const account = world.addAccount({ region: 'us', name: OWN });
    const file = writeConfig(configFor(sandbox, [account]), end);
    jobwire = await startJobwire(['--config', file], { command: builtProgram(), end });
    key = await generatedKey(jobwire);
  });
  afterAll(async () => {
    for (const stop of ends) await stop();
  });

  /** Returns the complete response to the head of a request with the given lines. */
  async function answerTo(...lines: readonly string[]): Promise<string> {
    const { hostname, port } = new URL(jobwire.url);
    const socket = connect(Number(port), hostname);
    socket.write([...lines, 'Connection: close', '', ''].join('\r\n'));
    return text(socket);
  }

  const getStatus = (answer: string) => Number(/^HTTP\/1\.1 (\d{3})/.exec(answer)?.[1]);
  const getProblem = (answer: string) =>
    JSON.parse(/\{.*\}/s.exec(answer)?.[0] ?? 'null') as Record<string, unknown> | null;

  test.each(['/v1/accounts', '/healthz', '/', '/nowhere'])(
    'with two Host headers is a 400 that names Host: %s',
    async (path) => {
      for (const hosts of [
        ['Host: a.example', 'Host: b.example'],
        ['Host: a.example', 'HOST: a.example'],
      ]) {
        const answer = await answerTo(`GET ${path} HTTP/1.1`, ...hosts, `Authorization: Bearer ${key}`);
        expect(getStatus(answer), answer).toBe(400);
        expect(getProblem(answer)).toMatchObject({
          type: 'urn:jobwire:problem:invalid-parameter',
          field: 'Host',
          requestId: expect.any(String),
        });
      }
    },
  );

  test('without a Host header is a 400, with one it is answered', async () => {
    expect(getStatus(await answerTo('GET /healthz HTTP/1.1'))).toBe(400);
    expect(getStatus(await answerTo('GET /healthz HTTP/1.1', 'Host: localhost'))).toBe(200);
  });

  test('of HTTP/1.0 is answered without a Host header: load balancers check the health so', async () => {
    expect(getStatus(await answerTo('GET /healthz HTTP/1.0'))).toBe(200);
  });

  test.each([
    ['/v1/accounts/%E0%A4%A', 'path'],
    ['/v1/accounts/%', 'path'],
    ['/v1/accounts/%zz/events/stream', 'path'],
    ['/v1/accounts/%ED%A0%80', 'path'],
    ['/v1/event-types/%ff', 'path'],
    ['/%E0%A4%A', 'path'],
    ['/mailbox/opted-out/%E0%A4%A', 'path'],
    ['/v1/accounts?after=%E0%A4%A', 'query'],
    ['/v1/accounts?%=1', 'query'],
    [`/v1/accounts/${OWN}/jobs?orderNumber=50%`, 'query'],
    ['/healthz?x=%c0%80', 'query'],
  ])('with malformed percent-encoding is a 400 problem document: %s', async (path, part) => {
    for (const method of ['GET', 'POST']) {
      const answer = await answerTo(
        `${method} ${path} HTTP/1.1`,
        'Host: localhost',
        `Authorization: Bearer ${key}`,
      );
      expect(getStatus(answer), answer).toBe(400);
      expect(answer).toContain('content-type: application/problem+json');
      expect(getProblem(answer)).toMatchObject({
        detail: expect.stringContaining(`The ${part} must be percent-encoded UTF-8`),
      });
    }
  });
});
