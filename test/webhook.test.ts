import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { CloudEvent } from 'cloudevents';
import { Webhook } from 'standardwebhooks';
import { afterEach, describe, expect, test } from 'vitest';
import { isPublic, refuseUrl } from '../shared/sinks/outbound.ts';
import { createWebhookSink, judge } from '../shared/sinks/webhook.ts';
import { newSecret, someDeliveries, startReceiver } from './support/delivery.ts';

const open: (() => unknown)[] = [];
afterEach(async () => {
  for (const close of open.splice(0).reverse()) await close();
});

describe('webhook sink', () => {
  test('each request is signed as Standard Webhooks has it, with every secret, over the bytes of the envelope', async () => {
    const { url, requests } = await startReceiver(() => ({ status: 204 }));
    const secrets = [newSecret(), newSecret()];
    const sink = createWebhookSink({ url, secrets, allowPrivateNetworks: true, now: Date.now });
    const [delivery] = await someDeliveries(1);
    if (!delivery) throw new Error('There is no event.');
    expect(await sink.deliver([delivery])).toEqual([{ kind: 'delivered' }]);
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
      dataschema: 'https://jobwire.example/v1/event-types/job.status_changed/schema',
      datacontenttype: 'application/json',
    });
    expect(new CloudEvent(raw).validate()).toBe(true);
  });

  test.each([
    [200, 'delivered'],
    [204, 'delivered'],
    [301, 'retry'],
    [308, 'retry'],
    [400, 'rejected'],
    [401, 'retry'],
    [403, 'retry'],
    [404, 'retry'],
    [405, 'retry'],
    [408, 'retry'],
    [422, 'rejected'],
    [425, 'retry'],
    [429, 'retry'],
    [500, 'retry'],
    [503, 'retry'],
  ])('%i means %s', (status, kind) => {
    expect(judge(status, undefined, 0).kind).toBe(kind);
  });

  test('Retry-After is read as seconds and as a date', () => {
    const now = Date.parse('2026-03-02T08:00:00Z');
    expect(judge(429, '120', now)).toMatchObject({ afterMs: 120_000 });
    expect(judge(503, 'Mon, 02 Mar 2026 08:01:00 GMT', now)).toMatchObject({ afterMs: 60_000 });
    expect(judge(503, 'soon', now)).not.toHaveProperty('afterMs');
  });

  test('a redirect is not followed', async () => {
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
    expect(await sink.deliver(await someDeliveries(1))).toMatchObject([{ kind: 'retry' }]);
    expect(requests).toHaveLength(1);
  });

  test('a receiver that resets or is gone is waited for, and the reason never shows the URL', async () => {
    const server = createServer((request) => request.socket.destroy());
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const { port } = server.address() as AddressInfo;
    const url = `http://127.0.0.1:${port}/key-in-the-path`;
    const sink = createWebhookSink({
      url,
      secrets: [newSecret()],
      allowPrivateNetworks: true,
      now: Date.now,
    });
    const reset = await sink.deliver(await someDeliveries(1));
    await new Promise((resolve) => server.close(resolve));
    const gone = await sink.deliver(await someDeliveries(1));
    expect([...reset, ...gone].map(({ kind }) => kind)).toEqual(['retry', 'retry']);
    expect(JSON.stringify([reset, gone])).not.toContain('key-in-the-path');
    expect(gone).toMatchObject([{ reason: 'The endpoint could not be reached (ECONNREFUSED).' }]);
  });

  test('a receiver that never answers is given up after the time-out', async () => {
    const server = createServer(() => undefined);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    open.push(() => {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(resolve));
    });
    const { port } = server.address() as AddressInfo;
    const sink = createWebhookSink({
      url: `http://127.0.0.1:${port}/`,
      secrets: [newSecret()],
      allowPrivateNetworks: true,
      now: Date.now,
      timeoutMs: 50,
    });
    expect(await sink.deliver(await someDeliveries(1))).toEqual([
      { kind: 'retry', reason: 'The endpoint did not answer in time.' },
    ]);
  });

  test('private addresses are refused, as literals in any spelling and behind names, before anything is sent', async () => {
    const { url, requests } = await startReceiver(() => ({ status: 204 }));
    const { port } = new URL(url);
    const events = await someDeliveries(1);
    for (const address of [`https://127.0.0.1:${port}/`, `https://localhost:${port}/`]) {
      const sink = createWebhookSink({
        url: address,
        secrets: [newSecret()],
        allowPrivateNetworks: false,
        now: Date.now,
      });
      expect(await sink.deliver(events)).toMatchObject([{ kind: 'retry' }]);
    }
    expect(requests).toHaveLength(0);
    for (const host of [
      '2130706433',
      '0x7f.1',
      '0177.0.0.1',
      '[::1]',
      '[::ffff:10.0.0.1]',
      '169.254.169.254',
      '10.1.2.3',
    ]) {
      expect(refuseUrl(`https://${host}/`, false), host).toMatch(/not a public address/);
    }
    expect(refuseUrl('http://example.com/', false)).toBe('It must begin with https://.');
    expect(refuseUrl('https://example.com/', false)).toBeUndefined();
    expect(isPublic('8.8.8.8')).toBe(true);
  });
});
