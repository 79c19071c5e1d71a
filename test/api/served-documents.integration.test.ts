/** The documents as they are served, by the Node server and through API Gateway: compressed, and not sent again unchanged. */
import { execFileSync } from 'node:child_process';
import type { AddressInfo } from 'node:net';
import { serve } from '@hono/node-server';
import { Ajv2020 } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';
import type { APIGatewayProxyEvent } from 'aws-lambda';
import { expect, onTestFinished, test } from 'vitest';
import { createRestProxyHandler } from '../../functions/handlers/rest-proxy.ts';
import { createApi } from '../../shared/api/app.ts';
import type { OpenApi } from '../../shared/api/reference/render.ts';
import { eventTypes } from '../../shared/events/catalogue.ts';
import { getExample } from '../../shared/events/examples.ts';
import type { EventLog } from '../../shared/log/log.ts';
import { createMemoryTable } from '../../shared/storage/sqlite-table.ts';
import { apiParts } from '../support/api.ts';

const ORIGIN = 'https://tools.example.com';

function createApp(parts: Partial<Parameters<typeof createApi>[0]> = {}) {
  const table = createMemoryTable();
  return createApi({
    ...apiParts(table, 'the-key-of-this-test'),
    ...parts,
    ...{ table, log: {} as EventLog, regions: ['us'], now: Date.now, corsOrigins: [ORIGIN] },
    schemaBaseUrl: 'https://us.jobwire.example',
  });
}

type Get = (path: string, headers?: Record<string, string>) => Promise<Response>;

/** Over a socket. `fetch` decompresses, so only `content-encoding` shows the compression. */
async function overNode(): Promise<Get> {
  const server = serve({ fetch: createApp().fetch, port: 0, hostname: '127.0.0.1' });
  onTestFinished(() => void server.close());
  if (!server.listening) await new Promise((done) => server.once('listening', done));
  const { port } = server.address() as AddressInfo;
  return (path, headers = {}) =>
    fetch(`http://127.0.0.1:${port}${path}`, { headers: { 'accept-encoding': 'identity', ...headers } });
}

/** As API Gateway invokes the function, and passes its response on with all media types binary. */
async function throughApiGateway(): Promise<Get> {
  const app = createApp();
  const handler = createRestProxyHandler((request, from) => app.fetch(request, from));
  return async (path, headers = {}) => {
    const answer = await handler({
      ...{ httpMethod: 'GET', path, body: null, isBase64Encoded: false, requestContext: {} },
      multiValueHeaders: Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, [value]])),
      multiValueQueryStringParameters: null,
    } as unknown as APIGatewayProxyEvent);
    const head = new Headers(
      Object.entries(answer.multiValueHeaders ?? {}).map(([name, values]) => [name, values.join(', ')]),
    );
    const body = Buffer.from(answer.body, answer.isBase64Encoded ? 'base64' : 'utf8');
    const stream = new Response(body).body ?? new ReadableStream();
    const unpacked =
      head.get('content-encoding') === 'gzip' ? stream.pipeThrough(new DecompressionStream('gzip')) : stream;
    return new Response(answer.statusCode === 304 ? null : unpacked, {
      ...{ status: answer.statusCode, headers: head },
    });
  };
}

const DOCUMENTS = [
  '/openapi.json',
  '/asyncapi.json',
  '/docs',
  '/schemas/v1/job.dispatched.json',
  '/v1/event-types/job.dispatched/schema',
];

test.each([
  ['the Node server', overNode],
  ['API Gateway', throughApiGateway],
])('%s serves each document plain, as gzip, and as 304', async (_, connect) => {
  const get = await connect();
  const page = await (await get('/docs')).text();
  const pages = new Set([...page.matchAll(/"(docs\/[a-z-]+)"/g)].map(([, path = '']) => `/${path}`));
  expect(pages.size).toBe(15);
  const assets = [...page.matchAll(/"(docs\/assets\/[^"]+)"/g)].map(([, asset = '']) => `/${asset}`);
  expect(assets).toHaveLength(2);
  for (const path of [...DOCUMENTS, ...pages, ...assets]) {
    const plain = await get(path, { origin: ORIGIN });
    expect([plain.status, plain.headers.get('content-encoding')], path).toEqual([200, null]);
    expect(plain.headers.get('vary')?.toLowerCase(), path).toMatch(/accept-encoding/);
    expect(plain.headers.get('vary')?.toLowerCase(), path).toMatch(/origin/);
    const text = await plain.text();

    const packed = await get(path, { 'accept-encoding': 'gzip' });
    expect(packed.headers.get('content-encoding'), path).toBe(text.length < 1_000 ? null : 'gzip');
    expect(packed.headers.get('content-type'), path).toBe(plain.headers.get('content-type'));
    expect((await packed.text()) === text, path).toBe(true);

    const etag = packed.headers.get('etag') ?? '';
    expect(etag, path).toBe(plain.headers.get('etag'));
    const again = await get(path, { 'if-none-match': etag, 'accept-encoding': 'gzip' });
    expect([again.status, await again.text(), again.headers.get('etag')], path).toEqual([304, '', etag]);
    expect(again.headers.get('cache-control'), path).toBe(plain.headers.get('cache-control'));
    expect((await get(path, { 'if-none-match': '"another"' })).status, path).toBe(200);
  }
});

test('concurrent first requests for a document, which need no key, read and compress it once', async () => {
  let reads = 0;
  const app = createApp({
    readFile: async () => {
      reads += 1;
      return new TextEncoder().encode('{}');
    },
  });
  for (const path of ['/openapi.json', '/asyncapi.json', '/docs']) {
    reads = 0;
    await Promise.all(Array.from({ length: 20 }, () => app.request(path)));
    expect(reads, path).toBe(1);
  }
});

test.each(eventTypes)(
  'a strict validator accepts the schema of %s, its example, and unknown values of texts',
  async (type) => {
    const schema = (await (await createApp().request(`/schemas/v1/${type}.json`)).json()) as object;
    const ajv = new Ajv2020({ allErrors: true });
    addFormats.default(ajv);
    const validate = ajv.compile(schema);
    const data: Record<string, unknown> | undefined = getExample(type)?.data;
    expect([validate(data), validate.errors]).toEqual([true, null]);
    // The keyword of known values is `examples`, which restricts nothing.
    expect(JSON.stringify(schema)).not.toContain('x-extensible');
    const observed = data?.observed;
    if (typeof observed === 'object') {
      const later = { ...data, observed: { ...observed, view: 'a later one' } };
      expect([validate(later), validate.errors]).toEqual([true, null]);
    }
  },
);

test('the API reference has a curl command for each operation, quoted for a shell', async () => {
  const app = createApp();
  const document = (await (await app.request('/openapi.json')).json()) as OpenApi;
  const operations = Object.entries(document.paths).flatMap(([path, item]) =>
    Object.entries(item).map(([method, operation]) => ({ path, method, operation })),
  );
  const pages = new Map<string, string>();
  for (const { name } of document.tags) {
    pages.set(name, await (await app.request(`/docs/${name.toLowerCase()}`)).text());
  }
  const commands = operations.map(
    ({
      operation: {
        tags: [tag = ''],
        operationId,
      },
    }) => {
      const [, section = ''] = pages.get(tag)?.split(`<h2 id="${operationId}">`) ?? [];
      const html = /<div class="curl"><pre><code>([^<]*)/.exec(section)?.[1] ?? '';
      return html
        .replaceAll('&quot;', '"')
        .replaceAll('&#39;', "'")
        .replaceAll('&lt;', '<')
        .replaceAll('&gt;', '>')
        .replaceAll('&amp;', '&');
    },
  );
  const script = `curl() { printf '%s\\0' "$@"; printf '\\1'; }\n${commands.join('\n')}`;
  const env = { JOBWIRE_URL: 'https://us.jobwire.example', JOBWIRE_API_KEY: 'a key' };
  const calls = execFileSync('/bin/sh', ['-eu', '-c', script], { env, encoding: 'utf8' })
    .split('\u0001')
    .map((call) => call.split('\0').slice(0, -1));
  expect(calls).toHaveLength(operations.length + 1);
  operations.forEach(({ method, path, operation }, index) => {
    const body = operation.requestBody?.content['application/json'];
    const call = calls[index] ?? [];
    const [start = ''] = path.split('{');
    expect(call.find((part) => part.startsWith(`${env.JOBWIRE_URL}${start}`))).not.toMatch(/[{}]/);
    expect(call[call.indexOf('-X') + 1]?.toLowerCase() === method).toBe(method !== 'get');
    expect(call.includes('Authorization: Bearer a key')).toBe(operation['x-role'] !== undefined);
    expect(call.includes('-d')).toBe(body !== undefined);
    const data = body && JSON.parse(call[call.indexOf('-d') + 1] ?? '');
    if (body?.example) expect(data).toEqual(body.example);
  });
});
