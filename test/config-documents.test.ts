/** The documents about the configuration file: the reference in docs/configuration.md, and the JSON Schema. */
import { generateKeyPairSync } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { Ajv } from 'ajv';
import addFormats from 'ajv-formats';
import { describe, expect, it, test } from 'vitest';
import { configDocuments } from '../documents.ts';
import { parseConfig, parseConfigText } from '../shared/config.ts';
import { newSigningSecret } from '../shared/delivery/signing-secrets.ts';

const page = readFileSync('docs/configuration.md', 'utf8');
const example = JSON.parse(/```json\n([\s\S]*?)```/.exec(page)?.[1] ?? '');

const ajv = new Ajv({ allErrors: true, allowUnionTypes: true });
addFormats.default(ajv);
const isValid = ajv.compile(JSON.parse(readFileSync('docs/jobwire.schema.json', 'utf8')));

test.each(Object.entries(configDocuments()))(
  '%s as committed equals the generated one (else: node documents.ts)',
  (path, text) => {
    expect(readFileSync(path, 'utf8') === text).toBe(true);
  },
);

test('the reference lists the accepted numbers of a setting that accepts only some', () => {
  expect(readFileSync('docs/aws-settings.md', 'utf8')).toContain('| `minutes` | 5, 10, 15 or 30 |');
});

describe('the example configuration', () => {
  it('is accepted by Jobwire and by the JSON Schema', () => {
    const { privateKey } = generateKeyPairSync('rsa', {
      modulusLength: 2048,
      publicKeyEncoding: { type: 'spki', format: 'pem' },
      privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
    });
    const config = parseConfig(example, {
      JOBWIRE_API_KEY: 'a-key-of-some-length',
      ACME_SECRET: 'secret',
      MAIL_PASSWORD: 'secret',
      DKIM_KEY: privateKey,
      ERP_SECRET: newSigningSecret(),
    });
    expect(config.$schema).toBe('docs/jobwire.schema.json');
    isValid(example);
    expect(isValid.errors).toBeNull();
  });

  it('contains the default of each key whose default it shows', () => {
    const { accounts, regions } = example;
    const { webhooks, departures, settling, port, host, dataDir } = parseConfig(
      { accounts: [], regions },
      {},
    );
    expect({ ...example, accounts, dataDir: resolve(example.dataDir) }).toMatchObject({
      webhooks,
      departures,
      settling,
      port,
      host,
      dataDir,
    });
  });
});

describe('the reference', () => {
  const rows = [...page.matchAll(/^\| `([$\w]+)` \| (.*) \| (.*) \| (.*) \| (.*) \|$/gm)];

  it('has a type, a default, a description and an example of every key', () => {
    expect(rows.length).toBeGreaterThan(50);
    expect(rows.filter(([, ...cells]) => cells.includes('')).map(([, key]) => key)).toEqual([]);
    for (const [, key, , , description] of rows) expect(description, key).toMatch(/\.$|\.\)$/);
  });
});

describe('the JSON Schema', () => {
  const { webhooks: _, ...rest } = example;

  it.each<[string, object]>([
    ['an unknown key', { ...rest, webhook: {} }],
    ['an unknown key of an account', { ...rest, accounts: [{ ...rest.accounts[0], interval: 5 }] }],
    ['a port that is text', { ...rest, port: '4000' }],
    ['a short API key', { ...rest, apiKey: 'short' }],
    [
      'an interval above a day',
      { ...rest, accounts: [{ ...rest.accounts[0], pollIntervalSeconds: 86_401 }] },
    ],
    ['missing regions', { ...rest, regions: undefined }],
    ['an id with capitals', { ...rest, accounts: [{ ...rest.accounts[0], id: 'Acme' }] }],
  ])('rejects %s, as Jobwire does', (_, config) => {
    const text = JSON.stringify(config);
    expect(isValid(JSON.parse(text))).toBe(false);
    const env = {
      JOBWIRE_API_KEY: 'x'.repeat(16),
      ACME_SECRET: 's',
      MAIL_PASSWORD: 's',
      DKIM_KEY: 's',
      ERP_SECRET: 's',
    };
    expect(() => parseConfig(parseConfigText('jobwire.json', text), env)).toThrow();
  });

  it('has no links in its descriptions', () => {
    expect(readFileSync('docs/jobwire.schema.json', 'utf8')).not.toContain('](');
  });

  it('accepts references to environment variables and files in every text with a rule', () => {
    const [account] = example.accounts;
    const config = { ...example, publicUrl: 'env:URL', accounts: [{ ...account, id: 'file:id' }] };
    isValid({ ...config, apiKey: 'file:key', notifications: { ...example.notifications, from: 'env:FROM' } });
    expect(isValid.errors).toBeNull();
  });
});
