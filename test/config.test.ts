import { generateKeyPairSync } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import * as z from 'zod';
import { ConfigError, parseConfig, parseConfigText, parseStorage } from '../shared/config.ts';
import { newSigningSecret } from '../shared/delivery/signing-secrets.ts';
import { checkInput } from '../shared/validation.ts';

const secret = newSigningSecret();

/** A configuration with one endpoint, and given overrides. */
function withEndpoint(endpoint: object, more: object = {}): object {
  return {
    regions: { us: { baseUrl: 'https://x.example/api', authUrl: 'https://x.example', realm: 'us' } },
    accounts: [{ id: 'acme', region: 'us', clientId: 'c', clientSecret: 's' }],
    endpoints: [{ id: 'erp', url: 'https://erp.example.com/', secret, ...endpoint }],
    ...more,
  };
}

function findRejection(config: object): string {
  try {
    parseConfig(config, {});
  } catch (cause) {
    if (cause instanceof ConfigError) return cause.message;
    throw cause;
  }
  throw new Error('Nothing was rejected.');
}

describe('several problems', () => {
  test('are all reported, each on a line, a misspelled setting first and with the similar known one', () => {
    const rejection = findRejection({
      ...withEndpoint({}),
      prot: 4000,
      regions: { us: { baseUlr: 'https://a.example.com', authUrl: 'nowhere', realm: 'us' } },
      accounts: [{ id: 'acme', region: 'us', clientId: 'c', clientSecret: 's', evnts: {} }],
      settling: { days: 'seven' },
    });
    expect(rejection.split('\n')).toEqual([
      'regions.us.baseUlr is not a known setting. Did you mean baseUrl?',
      'accounts[0].evnts is not a known setting. Did you mean events?',
      'prot is not a known setting. Did you mean port?',
      'regions.us.authUrl must be a URL that begins with http:// or https://.',
      'settling.days must be a number of days.',
    ]);
  });

  test('are at most ten', () => {
    const accounts = Array.from({ length: 15 }, () => ({ id: 'acme!' }));
    const lines = findRejection({ ...withEndpoint({}), accounts }).split('\n');
    expect(lines).toHaveLength(11);
    expect(lines.at(-1)).toMatch(/^\d+ more problems follow\.$/);
  });

  test('with variables and files that do not exist are all reported', () => {
    const account = { id: 'acme', region: 'us', clientId: 'env:NOT_SET', clientSecret: 'env:NOT_SET_EITHER' };
    expect(findRejection({ ...withEndpoint({}), accounts: [account] }).split('\n')).toEqual([
      'accounts[0].clientId refers to the environment variable NOT_SET, which is not set.',
      'accounts[0].clientSecret refers to the environment variable NOT_SET_EITHER, which is not set.',
    ]);
  });
});

test.each<[object, string]>([
  [{ regions: {} }, 'regions must name at least one region.'],
  [
    { accounts: [{ id: 'acme', region: 'us', clientId: 'c', clientSecret: 's', pollIntervalSeconds: 0 }] },
    'accounts[0].pollIntervalSeconds must be an integer number of seconds from 1 to 86400.',
  ],
  [
    { accounts: [{ id: 'acme', region: 'us', clientId: 'c', clientSecret: 's', pollIntervalSeconds: 1.5 }] },
    'accounts[0].pollIntervalSeconds must be an integer number of seconds from 1 to 86400.',
  ],
  [{ metrics: { port: 4000 } }, 'metrics.port must differ from port.'],
  [{ port: 9400, metrics: { port: 9400, host: '0.0.0.0' } }, 'metrics.port must differ from port.'],
])('one problem has one message: %j', (more, message) => {
  expect(findRejection(withEndpoint({}, more))).toBe(message);
});

test('both ports can be 0, for any free ports', () => {
  expect(parseConfig(withEndpoint({}, { port: 0, metrics: { port: 0 } }), {}).metrics?.port).toBe(0);
});

test.each(['a key with some spaces', 'schlüssel-schlüssel'])(
  'an API key that clients cannot send is rejected: %s',
  (apiKey) => {
    expect(findRejection({ ...withEndpoint({}), apiKey })).toBe(
      'apiKey must be printable ASCII without spaces.',
    );
  },
);

test('event settings of an account are optional and checked', () => {
  const account = (events: object) => ({
    accounts: [{ id: 'acme', region: 'us', clientId: 'c', clientSecret: 's', events }],
  });
  const events = { dueSoonHours: 48, stalledByStatus: { 'On hold': null } };
  expect(parseConfig(withEndpoint({}, account(events)), {}).accounts[0]).toMatchObject({ events });
  expect(findRejection(withEndpoint({}, account({ stalledAfterWorkingDays: 0 })))).toMatch(
    /^accounts\[0\]\.events\.stalledAfterWorkingDays must be an integer number of working days from 1 to 250/,
  );
});

test.each<[object, string]>([
  [{ tracing: { endpoint: 'http://user:top-secret@127.0.0.1:4318' } }, 'tracing.endpoint'],
  [{ publicUrl: 'https://top-secret@jobwire.example.com' }, 'publicUrl'],
  [{ dynamodbEndpoint: 'http://user:top-secret@127.0.0.1:8000' }, 'dynamodbEndpoint'],
  [
    { regions: { us: { baseUrl: 'https://user:top-secret@a.example', authUrl: 'https://a', realm: 'us' } } },
    'regions.us.baseUrl',
  ],
])('no URL contains a password, which log lines and links would show: %j', (more, field) => {
  expect(findRejection(withEndpoint({}, more))).toBe(`${field} must not contain a user name or password.`);
});

test('URLs to which paths are appended have no query', () => {
  const tracing = { endpoint: 'http://127.0.0.1:4318/?token=top-secret' };
  expect(findRejection(withEndpoint({}, { tracing }))).toBe('tracing.endpoint must not contain ? or #.');
});

describe('endpoints in the configuration', () => {
  test('can have several secrets, filters, rates and headers', () => {
    const wishes = {
      secret: [newSigningSecret(), secret],
      types: ['job.*'],
      orderGroups: ['Spring'],
      origins: ['WEB'],
      jobFields: { mustDate: true, dateOut: null },
      headers: { 'X-Tenant': 'acme' },
      concurrency: 400,
      ratePerSecond: 0.5,
    };
    expect(parseConfig(withEndpoint(wishes), {}).endpoints).toEqual([
      { id: 'erp', url: 'https://erp.example.com/', ...wishes },
    ]);
  });

  test.each([
    [{ secret: 'whsec_c2hvcnQ=' }, 'secret'],
    [{ secret: `whsec_${'A'.repeat(43)}` }, 'secret must be "whsec_" and 24 to 64 random bytes in base64'],
    [
      { secret: [secret, `whsec_${'A'.repeat(34)}`] },
      'secret[1] must be "whsec_" and 24 to 64 random bytes in base64',
    ],
    [
      { secret: [] },
      'secret must be "whsec_" and 24 to 64 random bytes in base64, with padding, or a list of 1 to 4',
    ],
    [
      { secret: Array(5).fill(secret) },
      'secret must be "whsec_" and 24 to 64 random bytes in base64, with padding, or a list of 1 to 4',
    ],
    [{ types: ['jobs.*'] }, 'types[0] must match an existing event type'],
    [{ jobFields: { colour: 'red' } }, 'jobFields.colour is not a job field'],
    [{ jobFields: { mustDate: 'yes' } }, 'jobFields.mustDate must be true or false'],
    [{ headers: { 'Webhook-Id': 'x' } }, 'headers.Webhook-Id must not be a header'],
    [{ headers: { connection: 'close' } }, 'headers.connection must not be a header'],
    [{ headers: { 'x-a': 'b\r\nc: d' } }, 'headers.x-a must be printable ASCII'],
    [{ concurrency: 401 }, 'concurrency must be an integer from 1 to 400'],
    [{ ratePerSecond: 0 }, 'ratePerSecond must be a number from 0.1 to 1000'],
    [{ concurrency: '8' }, 'concurrency must be an integer from 1 to 400, as a number, not as text'],
    [{ url: 'https://10.0.0.1/' }, 'url is not accepted'],
    [{ url: 'https://erp.example.com:22/' }, 'url is not accepted'],
  ])('are rejected with a message that names the field: %j', (endpoint, words) => {
    const rejection = findRejection(withEndpoint(endpoint));
    expect(rejection).toContain(`endpoints[0].${words}`);
    expect(rejection.match(/\.( |$)/g), 'one error message').toHaveLength(1);
    expect(rejection).not.toContain('c2hvcnQ');
  });

  test('a number in quotes is rejected with that reason', () => {
    expect(findRejection(withEndpoint({}, { port: '4000' }))).toBe(
      'port must be a port number from 0 to 65535, as a number, not as text.',
    );
  });

  test('are disabled after five days by default', () => {
    expect(parseConfig(withEndpoint({}), {}).webhooks.disableAfterDays).toBe(5);
    expect(findRejection(withEndpoint({}, { webhooks: { disableAfterDays: 0 } }))).toBe(
      'webhooks.disableAfterDays must be more than 0.',
    );
  });
});

test.each([
  [z.array(z.string()).min(1), [], 'must contain at least 1 entry'],
  [z.array(z.string()).min(2), ['a'], 'must contain at least 2 entries'],
  [z.array(z.string()).max(1), ['a', 'b'], 'must contain at most 1 entry'],
  [z.tuple([z.string(), z.string()]), ['a'], 'must contain at least 2 entries'],
  [z.string().min(3), 'a', 'must be at least 3 characters'],
  [z.string().max(1), 'ab', 'must be at most 1 character'],
  [z.number().min(3), 1, 'must be at least 3'],
  [z.number().positive(), 0, 'must be more than 0'],
  [z.number().lt(3), 3, 'must be less than 3'],
])('a size without a message of its own has no text of the validation library: %#', (shape, value, rule) => {
  const result = checkInput<unknown>(z.object({ field: shape }), { field: value });
  expect(result).toEqual({ kind: 'rejected', reason: `field ${rule}.` });
});

test('a key has 100 streams and long polls by default', () => {
  expect(parseConfig(withEndpoint({}), {}).streamsPerKey).toBe(100);
  for (const streamsPerKey of [0, 1001, 2.5]) {
    expect(findRejection(withEndpoint({}, { streamsPerKey }))).toBe(
      'streamsPerKey must be an integer from 1 to 1000.',
    );
  }
});

describe('notifications in the configuration', () => {
  const told = (notifications: object, more: object = { publicUrl: 'https://jobwire.example.com' }) =>
    withEndpoint({}, { notifications, ...more });
  const from = 'orders@acme.example';
  const smtp = { host: 'mail.acme.example' };

  test('require a mail server only; by default the port determines whether TLS starts at once', () => {
    const { notifications, publicUrl } = parseConfig(
      told({ from, smtp }, { publicUrl: 'https://acme.example/jobwire/' }),
      {},
    );
    expect(notifications).toEqual({ from, smtp: { ...smtp, port: 587, secure: false } });
    expect(publicUrl, 'links add their own slash').toBe('https://acme.example/jobwire');
    const secure = (more: object) =>
      parseConfig(told({ from, smtp: { ...smtp, ...more } }), {}).notifications?.smtp.secure;
    expect([secure({ port: 465 }), secure({ port: 465, secure: false }), secure({ secure: true })]).toEqual([
      true,
      false,
      true,
    ]);
  });

  test('can have a password, a DKIM key, and SMS', () => {
    const { privateKey } = generateKeyPairSync('rsa', {
      modulusLength: 2048,
      publicKeyEncoding: { type: 'spki', format: 'pem' },
      privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
    });
    const notifications = {
      from,
      smtp: {
        ...smtp,
        port: 2525,
        secure: false,
        user: 'jobwire',
        password: 'env:MAIL_PASSWORD',
        dkim: { domain: 'acme.example', selector: 'jobwire', privateKey: 'env:DKIM_KEY' },
      },
      sms: { awsRegion: 'ap-southeast-2', senderId: 'Acme' },
    };
    const parsed = parseConfig(told(notifications), { MAIL_PASSWORD: 'hidden', DKIM_KEY: privateKey });
    expect(parsed.notifications).toEqual({
      ...notifications,
      smtp: {
        ...notifications.smtp,
        password: 'hidden',
        dkim: { ...notifications.smtp.dkim, privateKey },
      },
    });
  });

  test.each<[object, string]>([
    [{ smtp }, 'notifications.from is missing; it must be the sender address of e-mails'],
    [
      { from: 'Acme <orders@acme.example>', smtp },
      'notifications.from must be the sender address of e-mails',
    ],
    [{ from }, 'notifications.smtp is missing'],
    [{ from, smtp: {} }, 'notifications.smtp.host is missing; it must be the name of a mail server'],
    [{ from, smtp: { ...smtp, port: 0 } }, 'notifications.smtp.port must be a port number from 1 to 65535'],
    [{ from, smtp: { ...smtp, user: 'u' } }, 'notifications.smtp.password must be given with user'],
    [
      { from, smtp: { ...smtp, password: 'top-secret' } },
      'notifications.smtp.user must be given with password',
    ],
    [
      { from, smtp: { ...smtp, dkim: { domain: 'd', selector: 's', privateKey: 'top-secret' } } },
      'notifications.smtp.dkim.privateKey must be the PEM of an RSA key',
    ],
    [
      { from, smtp, sms: { awsRegion: 'Sydney' } },
      'notifications.sms.awsRegion must be an AWS region such as eu-central-1',
    ],
    [
      { from, smtp, sms: { awsRegion: 'us-east-1', senderId: 'far too long' } },
      'notifications.sms.senderId must be 1 to 11 letters and digits, one letter at least',
    ],
    [{ from, smtp, ses: {} }, 'notifications.ses is not a known setting'],
  ])('are rejected with a message that names the field: %j', (notifications, words) => {
    const rejection = findRejection(told(notifications));
    expect(rejection).toContain(words);
    expect(rejection.match(/\.( |$)/g), 'one error message').toHaveLength(1);
    expect(rejection).not.toContain('top-secret');
  });

  test.each<[object, string]>([
    [{}, 'publicUrl is required with notifications, because links in e-mails begin with it.'],
    [{ publicUrl: 'acme.example' }, 'publicUrl must be a URL that begins with http:// or https://.'],
    [{ publicUrl: 'https://acme.example/?a=b' }, 'publicUrl must not contain ? or #.'],
  ])('accept a URL prefix for links: %j', (more, words) => {
    expect(findRejection(told({ from, smtp }, more))).toBe(words);
  });
});

describe('the text of a configuration file', () => {
  test('may contain comments and trailing commas', () => {
    const text = '{\n  // The port of the API.\n  "port": 4000, /* default */\n}\n';
    expect(parseConfigText('jobwire.json', text)).toEqual({ port: 4000 });
  });

  test('may begin with a byte order mark', () => {
    expect(parseConfigText('jobwire.json', '\uFEFF{"port": 4000}')).toEqual({ port: 4000 });
  });

  test('is rejected if an object contains a key twice, with the key and its line', () => {
    const text =
      '{\n  "accounts": [{ "id": "a" }, { "id": "b" }],\n  "port": 1,\n  "sns": { "port": 2 },\n  "port": 3\n}';
    expect(() => parseConfigText('jobwire.json', text)).toThrow(
      new ConfigError('jobwire.json contains the key "port" twice in the same object, again in line 5.'),
    );
    expect(parseConfigText('jobwire.json', text.replace('"port": 3', '"host": "h"'))).toMatchObject({
      port: 1,
    });
  });

  test.each([
    ['{\n  "port": 4000\n  "host": "::1"\n}', 'comma expected at line 3, column 3'],
    ['{"port": 4000', 'close brace expected at line 1, column 14'],
    ['port: 4000', 'invalid symbol at line 1, column 1'],
    ['', 'value expected at line 1, column 1'],
  ])('%j is rejected with the place of the error', (text, problem) => {
    expect(() => parseConfigText('jobwire.json', text)).toThrow(
      new ConfigError(`jobwire.json is not JSON: ${problem}.`),
    );
  });
});

describe('references', () => {
  const configWith = (clientSecret: string) => ({
    ...withEndpoint({}),
    accounts: [{ id: 'acme', region: 'us', clientId: 'c', clientSecret }],
  });
  const folder = mkdtempSync(join(tmpdir(), 'jobwire-config-'));
  afterAll(() => rmSync(folder, { recursive: true, force: true }));

  test('a relative dataDir starts at the folder of the configuration file', () => {
    for (const [dataDir, expected] of [
      [undefined, join(folder, '.jobwire')],
      ['data', join(folder, 'data')],
      ['/var/lib/data', '/var/lib/data'],
    ]) {
      expect(parseConfig({ ...configWith('secret'), dataDir }, {}, folder).dataDir).toBe(expected);
      expect(parseStorage({ dataDir }, {}, folder).dataDir).toBe(expected);
    }
  });

  test('file: is replaced with the text of the file, without its final line break, relative to the given folder', () => {
    writeFileSync(join(folder, 'acme.secret'), 'from a file\n');
    for (const path of ['acme.secret', join(folder, 'acme.secret')]) {
      const [account] = parseConfig(configWith(`file:${path}`), {}, folder).accounts;
      expect(account?.clientSecret).toBe('from a file');
    }
  });

  test('$schema is not a reference: it may be a URL that begins with file:', () => {
    const $schema = 'file:///C:/none/jobwire.schema.json';
    expect(parseConfig({ $schema, ...configWith('secret') }, {}, folder)).toMatchObject({ $schema });
  });

  test('a missing or empty variable and an unreadable or empty file are reported with the field', () => {
    const reject = (reference: string) => () => parseConfig(configWith(reference), {}, folder);
    writeFileSync(join(folder, 'empty'), '\n');
    expect(reject('env:NOT_SET')).toThrow(
      new ConfigError(
        'accounts[0].clientSecret refers to the environment variable NOT_SET, which is not set.',
      ),
    );
    expect(() => parseConfig(configWith('env:EMPTY'), { EMPTY: '' }, folder)).toThrow(
      new ConfigError('accounts[0].clientSecret refers to the environment variable EMPTY, which is empty.'),
    );
    expect(reject('file:none')).toThrow(
      new ConfigError(
        `accounts[0].clientSecret refers to the file ${join(folder, 'none')}, which can’t be read: the file or its folder does not exist (ENOENT).`,
      ),
    );
    expect(reject('env:')).toThrow(
      new ConfigError(
        'accounts[0].clientSecret must contain the name of an environment variable after env:.',
      ),
    );
    expect(reject('file:')).toThrow(
      new ConfigError('accounts[0].clientSecret must contain the path of a file after file:.'),
    );
    expect(reject('file:empty')).toThrow(/^accounts\[0\]\.clientSecret must be the client secret /);
  });
});
