import { readFileSync } from 'node:fs';
import { runInNewContext } from 'node:vm';
import { Webhook } from 'standardwebhooks';
import { afterEach, describe, expect, test, vi } from 'vitest';
import {
  createReceiver,
  EventParseError,
  type KnownEvent,
  parseEvent,
  parseMessage,
  type RawBody,
  type VerificationErrorCode,
  WebhookVerificationError,
} from '../../receive/index.ts';
import { createWebhookSink } from '../../shared/delivery/webhook.ts';
import { type EventData, type EventType, eventTypes } from '../../shared/events/catalogue.ts';
import { typesOfEvents } from '../../shared/events/typescript.ts';
import { newSecret, someDeliveries, startReceiver } from '../support/delivery-world.ts';

interface Vector {
  readonly name: string;
  readonly secrets: readonly string[];
  readonly id: string;
  readonly timestamp: string;
  readonly body: string;
  readonly signature: string;
  readonly now: number;
  readonly verdict: 'ok' | VerificationErrorCode;
  readonly sent?: true;
}

const { cases } = JSON.parse(readFileSync('test/vectors/webhook-signatures.json', 'utf8')) as {
  cases: readonly Vector[];
};
const NOW = Date.parse('2026-03-02T08:00:00Z');

afterEach(() => {
  vi.useRealTimers();
});

/** The same bytes in each form that a body can have; views begin within their buffers, and end before them. */
function getBodies(bytes: Uint8Array<ArrayBuffer>, text: string): RawBody[] {
  const room = new Uint8Array(bytes.length + 16).fill(120);
  room.set(bytes, 8);
  const view = [room.buffer, 8, bytes.length] as const;
  const wide =
    bytes.length % 8 === 0
      ? [
          new Float64Array(room.buffer, 8, bytes.length / 8),
          new Uint16Array(room.buffer, 8, bytes.length / 2),
        ]
      : [];
  return [
    ...[text, bytes, bytes.buffer, Buffer.from(bytes)],
    ...[new Uint8Array(...view), new DataView(...view), new Int8Array(...view), ...wide],
    // Of another realm.
    runInNewContext('new Uint8Array(bytes).buffer', { bytes: [...bytes] }) as ArrayBuffer,
  ];
}

test('a body of bytes in any form is verified and parsed like its text', async () => {
  const secret = newSecret();
  const [delivery] = await someDeliveries(1);
  // An element has 8 bytes.
  const json = JSON.stringify({ ...JSON.parse(delivery?.event.json ?? ''), pad: '' });
  const text = json.replace('"pad":""', `"pad":"${'x'.repeat((8 - (Buffer.byteLength(json) % 8)) % 8)}"`);
  const bytes = new TextEncoder().encode(text);
  const bodies = getBodies(bytes, text);
  expect(bodies).toHaveLength(10);
  const at = new Date();
  const headers = {
    'webhook-id': 'acme.e1.1',
    'webhook-timestamp': String(Math.floor(at.getTime() / 1000)),
    'webhook-signature': new Webhook(secret).sign('acme.e1.1', at, text),
  };
  const receiver = createReceiver({ secret });
  for (const body of bodies) {
    expect(await receiver.receive(body, headers)).toEqual({ ...JSON.parse(text), replay: false });
    expect(parseEvent(body)).toEqual(JSON.parse(text));
    expect(parseMessage(body)).toEqual(JSON.parse(text));
  }
  const other = new TextEncoder().encode(text.replace('acme', 'amce'));
  for (const body of getBodies(other, text.replace('acme', 'amce'))) {
    await expect(receiver.receive(body, headers)).rejects.toMatchObject({ code: 'bad-signature' });
  }
});

test('a body of bytes that changes during verification is parsed as verified', async () => {
  const secret = newSecret();
  const [delivery] = await someDeliveries(1);
  const text = delivery?.event.json ?? '';
  const at = new Date();
  const headers = {
    'webhook-id': 'acme.e1.1',
    'webhook-timestamp': String(Math.floor(at.getTime() / 1000)),
    'webhook-signature': new Webhook(secret).sign('acme.e1.1', at, text),
  };
  const body = new TextEncoder().encode(text);
  const receiving = createReceiver({ secret }).receive(body.buffer, headers);
  body.set(new TextEncoder().encode(text.replaceAll('acme', 'amce')));
  expect(await receiving).toMatchObject({ id: 'acme.e1.1' });
});

test.each([Number.NaN, Number('unset'), -1])(
  'a receiver with the tolerance %s is not created',
  (toleranceSeconds) => {
    // NaN is less than no age, so it would accept webhooks of any age.
    expect(() => createReceiver({ secret: newSecret(), toleranceSeconds })).toThrow(RangeError);
  },
);

test('webhook-replay is not signed: adding it in transit changes `replay`, and neither the verdict nor the event', async () => {
  const secret = newSecret();
  const { url, requests } = await startReceiver(() => ({ status: 204 }));
  const sink = createWebhookSink({ url, secrets: [secret], allowPrivateNetworks: true, now: Date.now });
  await sink.deliver(await someDeliveries(1));
  const [request] = requests;
  if (!request) throw new Error('Nothing was received.');
  const receiver = createReceiver({ secret });
  const event = await receiver.receive(request.body, request.headers);
  const marked = await receiver.receive(request.body, { ...request.headers, 'webhook-replay': 'true' });
  expect([event.replay, marked.replay]).toEqual([false, true]);
  expect({ ...marked, replay: false }).toEqual(event);
  // So the documents must not recommend relying on it.
  expect(readFileSync('docs/asyncapi.json', 'utf8')).toContain('Not covered by the signature');
  const guide = readFileSync('docs/receiving-events.md', 'utf8');
  expect(guide).toMatch(/`webhook-replay` \|.*Not signed/);
  expect(guide).not.toMatch(/event\.replay` is true/);
});

describe('the signature vectors', () => {
  test.each(cases)('$verdict: $name', async (vector) => {
    const headers = getHeaders(vector);
    const bytes = new TextEncoder().encode(vector.body);
    for (const body of getBodies(bytes, vector.body)) {
      const verified = async () => createReceiverFor(vector).verify(body, headers);
      if (vector.verdict === 'ok') await verified();
      else expect(await catchFault(verified)).toMatchObject({ code: vector.verdict });
    }
  });

  test.each(cases)('the standardwebhooks package agrees: $name', (vector) => {
    vi.useFakeTimers({ now: vector.now * 1000, toFake: ['Date'] });
    const verdicts = vector.secrets.map((secret) => {
      try {
        new Webhook(secret).verify(vector.body, getHeaders(vector), { jsonParse: false });
        return true;
      } catch {
        return false;
      }
    });
    expect(verdicts.includes(true)).toBe(vector.verdict === 'ok');
  });

  test.each(cases.filter(({ sent }) => sent))('the webhook sink sends it: $name', async (vector) => {
    const { url, requests } = await startReceiver(() => ({ status: 204 }));
    const sink = createWebhookSink({
      url,
      secrets: vector.secrets,
      allowPrivateNetworks: true,
      now: () => Number(vector.timestamp) * 1000,
    });
    const [delivery] = await someDeliveries(1);
    if (!delivery) throw new Error('There is no event.');
    const event = { ...delivery.event, id: vector.id, json: vector.body };
    expect(await sink.deliver([{ ...delivery, event }])).toMatchObject([{ kind: 'delivered' }]);
    expect(requests).toMatchObject([{ headers: getHeaders(vector), body: vector.body }]);
  });

  test('cover every verdict, and the sender for some', () => {
    const codes: Record<VerificationErrorCode, unknown> = {
      'bad-secret': 1,
      'bad-body': 1,
      'missing-header': 1,
      'bad-timestamp': 1,
      'too-old': 1,
      'too-new': 1,
      'bad-signature': 1,
    };
    const verdicts = new Set(cases.map(({ verdict }) => verdict));
    // A parsed body has no form as a text.
    expect([...verdicts, 'bad-body'].sort()).toEqual(['ok', ...Object.keys(codes)].sort());
    expect(cases.filter(({ sent }) => sent).length).toBeGreaterThan(3);
  });
});

describe('a receiver', () => {
  test('returns the event of a webhook, and whether it is a replay', async () => {
    const { body, headers, receiver } = await signedEvent();
    const event = await receiver.receive(body, headers);
    expect(event).toEqual({ ...JSON.parse(body), replay: false });
    expect(await receiver.receive(body, { ...headers, 'webhook-replay': 'true' })).toMatchObject({
      replay: true,
    });
  });

  test('accepts headers as Fetch, Node and Lambda have them', async () => {
    const { body, headers, receiver } = await signedEvent();
    const upper = Object.fromEntries(
      Object.entries(headers).map(([name, value]) => [name.toUpperCase(), value]),
    );
    const listed = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, [value]]));
    for (const given of [new Headers(headers), new Map(Object.entries(headers)), upper, listed]) {
      await receiver.verify(body, given as Headers);
    }
    const apart = { ...headers, 'webhook-signature': ['v1,none', headers['webhook-signature'] ?? ''] };
    await receiver.verify(body, apart);
  });

  test('rejects an already parsed body of any type', async () => {
    const { body, headers, receiver } = await signedEvent();
    for (const parsed of [JSON.parse(body), {}, undefined, null]) {
      expect(await catchFault(() => receiver.verify(parsed, headers))).toMatchObject({ code: 'bad-body' });
    }
  });

  test('requires a secret; undefined ones are ignored', async () => {
    for (const options of [{}, { secret: '' }, { secret: undefined }, { secrets: [undefined, ''] }]) {
      expect(await catchFault(async () => createReceiver(options))).toMatchObject({ code: 'bad-secret' });
    }
    const { body, headers, secret } = await signedEvent();
    await createReceiver({ secrets: [undefined, secret, ''], now: () => NOW }).verify(body, headers);
  });

  test('accepts a secret without padding', async () => {
    const { body, headers, secret } = await signedEvent();
    await createReceiver({ secret: secret.replace(/=+$/, ''), now: () => NOW }).verify(body, headers);
  });

  test('rejects invalid secrets, also beside a valid one', async () => {
    const short = `whsec_${Buffer.alloc(23).toString('base64')}`;
    const long = `whsec_${Buffer.alloc(65).toString('base64')}`;
    for (const secret of [short, long, 'whsec_a b', `${newSecret()}\n`, 'whsec_AAAAA']) {
      const fault = await catchFault(async () => createReceiver({ secrets: [newSecret(), secret] }));
      expect(fault).toMatchObject({ code: 'bad-secret' });
    }
  });

  test('has a configurable tolerance', async () => {
    const { body, headers, secret } = await signedEvent();
    const at = (seconds: number) =>
      createReceiver({ secret, toleranceSeconds: 10, now: () => NOW + seconds * 1000 }).verify(body, headers);
    await at(10);
    await at(-10);
    expect(await catchFault(() => at(11))).toMatchObject({ code: 'too-old' });
    expect(await catchFault(() => at(-11))).toMatchObject({ code: 'too-new' });
  });

  test('has one error message, without secret and body', async () => {
    for (const vector of cases.filter(({ verdict }) => verdict !== 'ok')) {
      const fault = await catchFault(async () =>
        createReceiverFor(vector).verify(vector.body, getHeaders(vector)),
      );
      expect(fault.message).toMatch(/^[A-Z][^\n]+\.$/);
      for (const secret of vector.secrets.filter((one) => one.length > 6)) {
        expect(fault.message).not.toContain(secret.slice(6));
      }
      expect(fault.message).not.toContain('Flyers');
    }
  });

  test('distinguishes a signed body that is no event from an invalid signature', async () => {
    const secret = newSecret();
    for (const body of ['', 'no JSON', '[]', '{}', '{"specversion":"1.0"}']) {
      const headers = signed(secret, 'acme.e1.1', body);
      const fault = await catchFault(() => createReceiver({ secret, now: () => NOW }).receive(body, headers));
      expect(fault).toBeInstanceOf(EventParseError);
    }
  });
});

describe('parsing', () => {
  test('an event from the feed, as text, bytes or object', async () => {
    const { body } = await signedEvent();
    for (const given of [body, new TextEncoder().encode(body), JSON.parse(body)]) {
      expect(parseEvent(given)).toEqual(JSON.parse(body));
    }
  });

  test('an event of a later type', async () => {
    const { body } = await signedEvent();
    const later = { ...JSON.parse(body), type: 'job.teleported', data: { to: 'elsewhere' }, more: 1 };
    const event = parseEvent(later);
    expect(event).toEqual(later);
    switch (event.type) {
      case 'job.created':
        throw new Error('It is not of that type.');
      default:
        expect(event.data).toEqual({ to: 'elsewhere' });
    }
  });

  test('a message of SNS, with and without its wrapping, and from the record of a Lambda', async () => {
    const { body } = await signedEvent();
    const wrapped = { Type: 'Notification', TopicArn: 'arn:aws:sns:eu-west-1:1:jobs.fifo', Message: body };
    for (const given of [body, JSON.stringify(wrapped), wrapped]) {
      expect(parseMessage(given)).toEqual(JSON.parse(body));
    }
    const confirm = { ...wrapped, Type: 'SubscriptionConfirmation', Message: 'You have chosen …' };
    expect(() => parseMessage(confirm)).toThrow(
      'Expected an SNS Notification, received a SubscriptionConfirmation.',
    );
  });

  test('the reference to an event that is too large for SNS', async () => {
    const reference = {
      jobwire: 'reference',
      id: 'acme.e1.7',
      type: 'job.updated',
      source: '/regions/us/accounts/acme',
      subject: 'jobs/1',
      time: '2026-03-02T08:00:00.000Z',
      sequence: '00000000000000000007',
      feed: 'https://jobwire.example/v1/accounts/acme/events?after=e1.6&limit=1',
    };
    const message = parseMessage(JSON.stringify(reference));
    expect(message).toEqual(reference);
    expect('feed' in message && message.feed).toBe(reference.feed);
    const { feed: _, ...without } = reference;
    expect(() => parseMessage(without)).toThrow('The event has no feed.');
    expect(() => parseEvent(reference)).toThrow(EventParseError);
  });

  test('rejects anything that lacks a required attribute', async () => {
    const { body } = await signedEvent();
    for (const field of ['specversion', 'id', 'source', 'type', 'time', 'sequence', 'data']) {
      for (const value of [undefined, '', 1, null, []]) {
        expect(() => parseEvent({ ...JSON.parse(body), [field]: value })).toThrow(EventParseError);
      }
    }
    expect(faultMessage(() => parseEvent('the text of a customer'))).toBe('The message is not valid JSON.');
  });
});

describe('the types of events', () => {
  test('are generated from the current catalogue (npm run types generates them)', () => {
    expect(readFileSync('receive/events.ts', 'utf8')).toBe(typesOfEvents());
  });

  test('equal the catalogue, type by type', () => {
    // Checked by the compiler: the data of both are mutually assignable.
    const catalogueFits = (data: { [T in EventType]: EventData<T> }): Told => data;
    const receivedFits = (data: Told): { [T in EventType]: EventData<T> } => data;
    expect([catalogueFits, receivedFits]).toHaveLength(2);
    for (const type of eventTypes) expect(typesOfEvents()).toContain(`  '${type}': `);
  });
});

/** The data of each type as receivers get it. */
type Told = { [T in KnownEvent['type']]: KnownEvent<T>['data'] };

function createReceiverFor({ secrets, now }: Vector) {
  return createReceiver({ secrets, now: () => now * 1000 });
}

function getHeaders({ id, timestamp, signature }: Vector): Record<string, string> {
  const all = { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': signature };
  return Object.fromEntries(Object.entries(all).filter(([, value]) => value !== ''));
}

/** An event with a secret, the headers of its webhook, sent now, and its receiver. */
async function signedEvent() {
  const [delivery] = await someDeliveries(1);
  if (!delivery) throw new Error('There is no event.');
  const secret = newSecret();
  const body = delivery.event.json;
  const receiver = createReceiver({ secret, now: () => NOW });
  return { secret, body, headers: signed(secret, delivery.event.id, body), receiver };
}

function signed(secret: string, id: string, body: string): Record<string, string> {
  return {
    'webhook-id': id,
    'webhook-timestamp': String(NOW / 1000),
    'webhook-signature': new Webhook(secret).sign(id, new Date(NOW), body),
  };
}

async function catchFault(work: () => Promise<unknown>): Promise<WebhookVerificationError> {
  const fault = await work().then(
    () => undefined,
    (cause: unknown) => cause,
  );
  if (fault instanceof WebhookVerificationError || fault instanceof EventParseError) {
    return fault as WebhookVerificationError;
  }
  throw new Error('It was not rejected.', { cause: fault });
}

function faultMessage(work: () => unknown): string | undefined {
  try {
    work();
    return undefined;
  } catch (cause) {
    return cause instanceof Error ? cause.message : undefined;
  }
}
