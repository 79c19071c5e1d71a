import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { problems } from '../shared/api/problems.ts';
import { parseConfig } from '../shared/config.ts';
import { catalogue } from '../shared/events/catalogue.ts';

const readme = readFileSync('README.md', 'utf8');
const documents = [
  'README.md',
  ...readdirSync('docs', { recursive: true }).map((name) => join('docs', String(name))),
].filter((name) => name.endsWith('.md'));

test('every linked file of the documents exists', () => {
  for (const document of documents) {
    for (const [, target = ''] of readFileSync(document, 'utf8').matchAll(
      /\]\((?!https?:)([^)#]+)[^)]*\)/g,
    )) {
      expect(existsSync(join(dirname(document), target)), `${document} → ${target}`).toBe(true);
    }
  }
});

test('the README names eight files from the upstream client to the webhook', () => {
  const files = [...readme.matchAll(/\[`(shared\/[^`]+\.ts)`\]\(\1\)/g)].map(([, file]) => file);
  expect(files).toHaveLength(8);
});

test("the README lists exactly the event types, with the catalogue's descriptions", () => {
  const rows = [
    ...readme.matchAll(
      /^\| `((?:job|account|status|order_group|upstream|endpoint|jobwire)\.[a-z_]+)` \| (.*) \|$/gm,
    ),
  ];
  expect(Object.fromEntries(rows.map(([, type, when]) => [type, when]))).toEqual(
    Object.fromEntries(Object.entries(catalogue).map(([type, { when }]) => [type, when])),
  );
});

test('the guide to the API lists exactly the kinds of problems, with their status and meaning', () => {
  const rows = [...readFileSync('docs/api.md', 'utf8').matchAll(/^\| `([a-z-]+)` \| (\d{3}) \| (.*) \|$/gm)];
  expect(rows.map(([, kind, status, meaning]) => ({ kind, status: Number(status), meaning }))).toEqual(
    Object.entries(problems).map(([kind, { status, meaning }]) => ({ kind, status, meaning })),
  );
});

test('the configuration in the README is valid, with every setting but host and dynamodbEndpoint', () => {
  const [, json = ''] = /```json\n([\s\S]*?)```/.exec(readme) ?? [];
  const env = {
    JOBWIRE_API_KEY: 'a-key-of-some-length',
    ACME_SECRET: 'secret',
    MAIL_PASSWORD: 'secret',
    ERP_SECRET: `whsec_${Buffer.alloc(32, 1).toString('base64')}`,
  };
  const config = parseConfig(JSON.parse(json), env);
  expect(config.accounts).toHaveLength(1);
  const written = JSON.parse(json) as object;
  expect(Object.keys(written).sort()).toEqual(
    Object.keys(config)
      .filter((key) => key !== 'host')
      .sort(),
  );
});

test('CI runs the test command of the README verbatim', () => {
  const [, command = ''] = /^(npm ci && npm test)\b/m.exec(readme) ?? [];
  expect(command).not.toBe('');
  const lines = readFileSync('.ci/run', 'utf8').split('\n');
  expect(lines.map((line) => line.trim())).toContain(command);
});
