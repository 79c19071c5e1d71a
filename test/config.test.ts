import { describe, expect, test } from 'vitest';
import { ConfigError, parseConfig } from '../shared/config.ts';
import { newSigningSecret } from '../shared/sinks/signing-secrets.ts';

const secret = newSigningSecret();

/** A configuration with one endpoint, and whatever else. */
function withEndpoint(endpoint: object, more: object = {}): object {
  return {
    regions: { us: { baseUrl: 'https://x.example/api', authUrl: 'https://x.example', realm: 'us' } },
    accounts: [{ id: 'acme', region: 'us', clientId: 'c', clientSecret: 's' }],
    endpoints: [{ id: 'erp', url: 'https://erp.example.com/', secret, ...endpoint }],
    ...more,
  };
}

function refusalOf(config: object): string {
  try {
    parseConfig(config, {});
  } catch (cause) {
    if (cause instanceof ConfigError) return cause.message;
    throw cause;
  }
  throw new Error('Nothing was refused.');
}

describe('endpoints in the configuration', () => {
  test('may be rotated, filtered, paced and given headers', () => {
    const wishes = {
      secret: [newSigningSecret(), secret],
      types: ['job.*'],
      orderGroups: ['Spring'],
      origins: ['WEB'],
      jobFields: { mustDate: true, dateOut: null },
      headers: { 'X-Tenant': 'acme' },
      concurrency: 64,
      ratePerSecond: 0.5,
    };
    expect(parseConfig(withEndpoint(wishes), {}).endpoints).toEqual([
      { id: 'erp', url: 'https://erp.example.com/', ...wishes },
    ]);
  });

  test.each([
    [{ secret: 'whsec_c2hvcnQ=' }, 'secret'],
    [{ secret: [] }, 'secret'],
    [{ types: ['jobs.*'] }, 'types[0] must match one of the event types'],
    [{ jobFields: { colour: 'red' } }, 'jobFields.colour is not a field of the job'],
    [{ jobFields: { mustDate: 'yes' } }, 'jobFields.mustDate must be a value that this field can have'],
    [{ headers: { 'Webhook-Id': 'x' } }, 'headers.Webhook-Id must be another header'],
    [{ headers: { connection: 'close' } }, 'headers.connection must be another header'],
    [{ headers: { 'x-a': 'b\r\nc: d' } }, 'headers.x-a must be printable ASCII'],
    [{ concurrency: 65 }, 'concurrency must be a whole number from 1 to 64'],
    [{ ratePerSecond: 0 }, 'ratePerSecond must be a number from 0.1 to 1000'],
    [{ url: 'https://10.0.0.1/' }, 'url is refused'],
    [{ url: 'https://erp.example.com:22/' }, 'url is refused'],
  ])('are refused with a sentence that names the field: %j', (endpoint, words) => {
    const refusal = refusalOf(withEndpoint(endpoint));
    expect(refusal).toContain(`endpoints[0].${words}`);
    expect(refusal.match(/\.( |$)/g), 'one sentence').toHaveLength(1);
    expect(refusal).not.toContain('c2hvcnQ');
  });

  test('are disabled after five days unless told otherwise', () => {
    expect(parseConfig(withEndpoint({}), {}).webhooks.disableAfterDays).toBe(5);
    expect(refusalOf(withEndpoint({}, { webhooks: { disableAfterDays: 0 } }))).toBe(
      'webhooks.disableAfterDays must be more than 0.',
    );
  });
});

test('a key may have 100 streams and waiting long polls unless told otherwise', () => {
  expect(parseConfig(withEndpoint({}), {}).streamsPerKey).toBe(100);
  for (const streamsPerKey of [0, 1001, 2.5]) {
    expect(refusalOf(withEndpoint({}, { streamsPerKey }))).toBe(
      'streamsPerKey must be a whole number from 1 to 1000.',
    );
  }
});
