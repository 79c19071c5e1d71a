import { CloudEvent } from 'cloudevents';
import { Webhook } from 'standardwebhooks';
import { describe, expect, test } from 'vitest';
import { isReservedHeader } from '../../shared/delivery/endpoint-input.ts';
import { type Connections, createConnectionPool } from '../../shared/delivery/outbound.ts';
import { classifyResponse, createWebhookSink } from '../../shared/delivery/webhook.ts';
import { VERSION } from '../../shared/version.ts';
import { newSecret, someDeliveries, startReceiver } from '../support/delivery-world.ts';

describe('webhook sink', () => {
  test('each request is signed per Standard Webhooks, with every secret, over the bytes of the envelope', async () => {
    const { url, requests } = await startReceiver(() => ({ status: 204 }));
    const secrets = [newSecret(), newSecret()];
    const sink = createWebhookSink({ url, secrets, allowPrivateNetworks: true, now: Date.now });
    const [delivery] = await someDeliveries(1);
    if (!delivery) throw new Error('There is no event.');
    expect(await sink.deliver([delivery])).toEqual([
      { kind: 'delivered', answer: { status: 204, excerpt: '' } },
    ]);
    const [request] = requests;
    if (!request) throw new Error('Nothing was received.');
    for (const secret of secrets) {
      expect(() =>
        new Webhook(secret).verify(request.body, request.headers as Record<string, string>),
      ).not.toThrow();
    }
    expect(() =>
      new Webhook(newSecret()).verify(request.body, request.headers as Record<string, string>),
    ).toThrow('No matching signature');
    expect(request.headers['webhook-id']).toBe('acme.e1.1');
    expect(request.headers['content-type']).toMatch(/^application\/cloudevents\+json/);
    expect(request.headers['content-length']).toBe(String(Buffer.byteLength(request.body)));
    // Not compressed, so that nothing can expand when it is decompressed.
    expect(request.headers['accept-encoding']).toBe('identity');
    expect(request.headers).not.toHaveProperty('webhook-replay');
    expect(request.body).toBe(delivery.event.json);
  });

  test('the envelope is CloudEvents 1.0 in structured JSON', async () => {
    const [delivery] = await someDeliveries(1);
    const raw = JSON.parse(delivery?.event.json ?? '');
    expect(raw).toMatchObject({
      specversion: '1.0',
      id: 'acme.e1.1',
      source: '/regions/us/accounts/acme',
      type: 'job.status_changed',
      subject: 'jobs/1',
      time: '2026-03-02T08:00:00.000Z',
      sequence: '00000000000000000001',
      dataschema: 'https://jobwire.example/schemas/v1/job.status_changed.json',
      datacontenttype: 'application/json',
    });
    expect(new CloudEvent(raw).validate()).toBe(true);
  });

  test('an envelope of any characters is signed and sent unchanged', async () => {
    const { url, requests } = await startReceiver(() => ({ status: 204 }));
    const secret = newSecret();
    const sink = createWebhookSink({ url, secrets: [secret], allowPrivateNetworks: true, now: Date.now });
    const [delivery] = await someDeliveries(1);
    if (!delivery) throw new Error('There is no event.');
    const json = JSON.stringify({ data: 'Grüße, 世界 😀 \u2028 \u0000 \ud800' });
    await sink.deliver([{ event: { ...delivery.event, json } }]);
    const [request] = requests;
    expect(request?.body).toBe(json);
    expect(new Webhook(secret).verify(json, request?.headers as Record<string, string>)).toEqual(
      JSON.parse(json),
    );
  });

  test('each attempt has its own timestamp, and the event keeps its id', async () => {
    const { url, requests } = await startReceiver(() => ({ status: 503 }));
    const secret = newSecret();
    let now = Date.now() - 60_999;
    const sink = createWebhookSink({ url, secrets: [secret], allowPrivateNetworks: true, now: () => now });
    const deliveries = await someDeliveries(1);
    const times: number[] = [];
    for (let attempt = 0; attempt < 3; attempt += 1) {
      await sink.deliver(deliveries);
      times.push(Math.floor(now / 1000));
      now += 20_000;
    }
    expect(requests.map(({ headers }) => Number(headers['webhook-timestamp']))).toEqual(times);
    expect(new Set(requests.map(({ headers }) => headers['webhook-id'])).size).toBe(1);
    for (const { body, headers } of requests) {
      expect(() => new Webhook(secret).verify(body, headers as Record<string, string>)).not.toThrow();
    }
  });

  test('a resent event is marked as such', async () => {
    const { url, requests } = await startReceiver(() => ({ status: 204 }));
    const sink = createWebhookSink({
      url,
      secrets: [newSecret()],
      allowPrivateNetworks: true,
      now: Date.now,
    });
    const [delivery] = await someDeliveries(1);
    if (!delivery) throw new Error('There is no event.');
    await sink.deliver([{ ...delivery, replay: 'rp-1' }]);
    await sink.deliver([delivery]);
    expect(requests.map(({ headers }) => headers['webhook-replay'])).toEqual(['true', undefined]);
    expect(requests[0]?.headers['webhook-id']).toBe(delivery.event.id);
  });

  test('an endpoint’s own headers are sent, and never replace ours', async () => {
    const { url, requests } = await startReceiver(() => ({ status: 204 }));
    const sink = createWebhookSink({
      url,
      secrets: [newSecret()],
      headers: {
        Authorization: 'Bearer a-key',
        'X-Shop': 'north',
        'Webhook-Id': 'forged',
        'WEBHOOK-SIGNATURE': 'v1,forged',
        'webhook-replay': 'true',
        'Content-Type': 'text/plain',
        'Content-Length': '1',
        'Content-Encoding': 'gzip',
        'Transfer-Encoding': 'chunked',
        Host: 'elsewhere.example',
        'User-Agent': 'forged',
        'Accept-Encoding': 'gzip',
        Connection: 'close',
        Expect: '100-continue',
        'Proxy-Authorization': 'x',
      },
      allowPrivateNetworks: true,
      now: Date.now,
    });
    const [delivery] = await someDeliveries(1);
    if (!delivery) throw new Error('There is no event.');
    expect(await sink.deliver([delivery])).toMatchObject([{ kind: 'delivered' }]);
    const {
      'webhook-timestamp': timestamp,
      'webhook-signature': signature,
      ...headers
    } = requests[0]?.headers ?? {};
    expect(timestamp).toMatch(/^\d{10}$/);
    expect(signature).toMatch(/^v1,[A-Za-z0-9+/]{43}=$/);
    expect(headers).toEqual({
      authorization: 'Bearer a-key',
      'x-shop': 'north',
      'webhook-id': 'acme.e1.1',
      'content-type': 'application/cloudevents+json; charset=utf-8',
      'content-length': String(Buffer.byteLength(delivery.event.json)),
      'accept-encoding': 'identity',
      host: new URL(url).host,
      'user-agent': `Jobwire/${VERSION}`,
      connection: 'keep-alive',
    });
  });

  test.each([
    ['Webhook-Anything', true],
    ['HOST', true],
    ['Content-Length', true],
    ['TE', true],
    ['Upgrade', true],
    ['Proxy-Connection', true],
    ['Authorization', false],
    ['X-Webhook-Id', false],
    ['Cookie', false],
  ])('the name of a header %s is reserved: %s', (name, reserved) => {
    expect(isReservedHeader(name)).toBe(reserved);
  });

  test('an empty secret is invalid', () => {
    expect(() =>
      createWebhookSink({ url: 'https://a.example/', secrets: ['whsec_'], now: Date.now }),
    ).toThrow('A signing secret of the endpoint is empty.');
  });

  test.each([
    [200, { kind: 'delivered' }],
    [204, { kind: 'delivered' }],
    [299, { kind: 'delivered' }],
    [300, { kind: 'retry' }],
    [301, { kind: 'retry', reason: redirected(301) }],
    [308, { kind: 'retry', reason: redirected(308) }],
    [400, { kind: 'rejected' }],
    [401, { kind: 'retry' }],
    [402, { kind: 'rejected' }],
    [403, { kind: 'retry' }],
    [404, { kind: 'retry' }],
    [405, { kind: 'retry' }],
    [408, { kind: 'retry' }],
    [409, { kind: 'rejected' }],
    [410, { kind: 'retry', disable: 'The endpoint responded with status 410 (Gone).' }],
    [413, { kind: 'rejected' }],
    [422, { kind: 'rejected' }],
    [425, { kind: 'retry' }],
    [429, { kind: 'retry' }],
    [499, { kind: 'rejected' }],
    [500, { kind: 'retry', suspect: true }],
    [501, { kind: 'retry', suspect: true }],
    [502, { kind: 'retry' }],
    [503, { kind: 'retry' }],
    [504, { kind: 'retry' }],
    [505, { kind: 'retry', suspect: true }],
    [599, { kind: 'retry', suspect: true }],
  ])('%i means %j', (status, meaning) => {
    const reason =
      meaning.kind === 'delivered' ? {} : { reason: `The endpoint responded with status ${status}.` };
    expect(classifyResponse(status, {}, 0)).toEqual({ ...reason, ...meaning });
  });

  const NOW = Date.parse('2026-03-02T08:00:00Z');

  test.each([
    ['0', 0],
    ['120', 120_000],
    ['86401', 86_400_000],
    ['9'.repeat(400), 86_400_000],
    ['Mon, 02 Mar 2026 08:01:00 GMT', 60_000],
    ['Mon, 02 Mar 2026 07:00:00 GMT', 0],
    ['Sat, 02 Mar 2126 08:00:00 GMT', 86_400_000],
  ])('Retry-After: %s is a wait of %i ms', (text, afterMs) => {
    expect(classifyResponse(429, { 'retry-after': text }, NOW)).toMatchObject({ afterMs });
    expect(classifyResponse(503, { 'retry-after': text }, NOW)).toMatchObject({ afterMs });
    expect(classifyResponse(301, { 'retry-after': text }, NOW)).toMatchObject({ afterMs });
  });

  test.each([
    '',
    'soon',
    '-5',
    '1.5',
    '1e3',
    '0x10',
    '1 apple',
    '2026-03-02T09:00:00Z',
    'Mon, 32 Mar 2026 08:01:00 GMT',
  ])('Retry-After: %j is ignored', (text) => {
    expect(classifyResponse(429, { 'retry-after': text }, NOW)).toEqual({
      kind: 'retry',
      reason: 'The endpoint responded with status 429.',
    });
  });

  test('Retry-After is ignored where nothing is retried', () => {
    expect(classifyResponse(200, { 'retry-after': '5' }, NOW)).toEqual({ kind: 'delivered' });
    expect(classifyResponse(400, { 'retry-after': '5' }, NOW)).not.toHaveProperty('afterMs');
  });

  test.each([200, 302, 400, 410, 429, 500])(
    'webhook-delivery: disable ends deliveries, also with a %i',
    (status) => {
      for (const wish of ['disable', 'Disable', ' DISABLE ', 'x, disable']) {
        const { disable, ...rest } = classifyResponse(status, { 'webhook-delivery': wish }, NOW);
        const { disable: _, ...plain } = classifyResponse(status, {}, NOW);
        expect(disable).toMatch(/^The endpoint .*\.$/);
        expect(rest).toEqual(plain);
      }
      if (status !== 410) {
        expect(classifyResponse(status, { 'webhook-delivery': 'disabled' }, NOW)).not.toHaveProperty(
          'disable',
        );
      }
    },
  );

  test("the result of a failure has the receiver's message, and of its headers those that help to find the cause", async () => {
    const { url } = await startReceiver(() => ({
      status: 410,
      headers: {
        ...{ 'Webhook-Delivery': 'Disable', 'Retry-After': '7', 'X-Request-Id': 'r'.repeat(500) },
        'Set-Cookie': 'session=secret',
      },
    }));
    const sink = createWebhookSink({
      url,
      secrets: [newSecret()],
      allowPrivateNetworks: true,
      now: Date.now,
    });
    expect(await sink.deliver(await someDeliveries(1))).toEqual([
      {
        kind: 'retry',
        reason: 'The endpoint responded with status 410.',
        afterMs: 7_000,
        disable: 'The endpoint responded with status 410 (Gone).',
        answer: {
          ...{ status: 410, excerpt: 'a body of some length' },
          headers: { 'retry-after': '7', 'webhook-delivery': 'Disable', 'x-request-id': 'r'.repeat(200) },
        },
      },
    ]);
  });

  test('a redirect is not followed, and the reason says so', async () => {
    const { url, requests } = await startReceiver(() => ({
      status: 302,
      headers: { location: '/elsewhere' },
    }));
    const sink = createWebhookSink({
      url,
      secrets: [newSecret()],
      allowPrivateNetworks: true,
      now: Date.now,
    });
    expect(await sink.deliver(await someDeliveries(1))).toMatchObject([
      { kind: 'retry', reason: redirected(302), answer: { status: 302 } },
    ]);
    expect(requests).toHaveLength(1);
  });

  test('an event is suspect if the receiver may have crashed on it, and not if it never received it', async () => {
    const deliveries = await someDeliveries(1);
    const getOutcome = async (exchange: Awaited<ReturnType<Connections['post']>>) => {
      const connections: Connections = { post: async () => exchange, close: () => undefined };
      const sink = createWebhookSink({
        url: 'https://a.example/',
        secrets: [newSecret()],
        now: Date.now,
        connections,
      });
      return (await sink.deliver(deliveries))[0];
    };
    const reason = 'The endpoint broke off.';
    const answer = { status: 200, excerpt: 'the beginning' };
    expect(await getOutcome({ kind: 'failed', reason, sent: false })).toEqual({ kind: 'retry', reason });
    expect(await getOutcome({ kind: 'failed', reason, sent: true })).toEqual({
      kind: 'retry',
      reason,
      suspect: true,
    });
    expect(await getOutcome({ kind: 'failed', reason, sent: true, answer })).toEqual({
      kind: 'retry',
      reason,
      suspect: true,
      answer,
    });
  });

  test('each delivery of a batch has its own outcome, over the reused connections of the sink', async () => {
    const { url, requests } = await startReceiver(({ body }) => ({
      status: JSON.parse(body).data.job.jobNumber === 2 ? 422 : 204,
    }));
    const pool = createConnectionPool({ allowPrivateNetworks: true });
    const connections = pool.of('us/erp', 2);
    const sink = createWebhookSink({ url, secrets: [newSecret()], now: Date.now, connections });
    const outcomes = await sink.deliver(await someDeliveries(3));
    expect(outcomes.map(({ kind }) => kind)).toEqual(['delivered', 'rejected', 'delivered']);
    expect(requests).toHaveLength(3);
    pool.close();
  });

  test('private networks are closed unless allowed', async () => {
    const { url, requests } = await startReceiver(() => ({ status: 204 }));
    const deliveries = await someDeliveries(1);
    for (const address of [
      url,
      url.replace('http:', 'https:'),
      url.replace(/^http:..127.0.0.1/, 'https://localhost'),
    ]) {
      const sink = createWebhookSink({ url: address, secrets: [newSecret()], now: Date.now });
      const [outcome] = await sink.deliver(deliveries);
      expect(outcome).toEqual({
        kind: 'retry',
        reason: expect.stringMatching(/^The URL of the endpoint is not accepted\. /),
      });
      expect(JSON.stringify(outcome)).not.toContain('/hook');
    }
    expect(requests).toHaveLength(0);
  });
});

const redirected = (status: number) =>
  `The endpoint responded with a redirect (status ${status}), which is not followed.`;
