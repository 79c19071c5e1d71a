import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join, matchesGlob } from 'node:path';
import { describe, expect, it, test } from 'vitest';
import type * as z from 'zod';
import { PORT as SANDBOX_PORT } from '../sandbox/flags.ts';
import { addDemoAccounts } from '../sandbox/simulation/scenario.ts';
import { createWorld } from '../sandbox/world/world.ts';
import { meanings } from '../shared/api/problem-meanings.ts';
import { type ProblemKind, problems } from '../shared/api/problems.ts';
import { parseConfig } from '../shared/config.ts';
import { catalogue } from '../shared/events/catalogue.ts';
import { getExample } from '../shared/events/examples.ts';

const readme = readFileSync('README.md', 'utf8');

/** Content of every Markdown file of the project, by path. */
const documents = new Map(
  globSync('**/*.md', { exclude: [...ignoredFolders(), '.git', '**/node_modules'] }).map((path) => [
    path,
    readFileSync(path, 'utf8'),
  ]),
);

/** Returns the folders of .gitignore. */
function ignoredFolders(): string[] {
  return [...readFileSync('.gitignore', 'utf8').matchAll(/^([^/*]+)\/$/gm)].map(([, folder = '']) => folder);
}

/** Returns the text without code blocks, which contain neither links nor headings. */
function prose(text: string): string {
  return text.replace(/^ *```[\s\S]*?^ *```$/gm, '');
}

/** Returns the anchors of the headings of a Markdown file, as GitHub generates them. */
function toAnchors(text: string): string[] {
  return [...prose(text).matchAll(/^#+ (.*)$/gm)].map(([, title = '']) =>
    title
      .replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
      .toLowerCase()
      .replace(/[^\p{L}\p{N}_ -]/gu, '')
      .replaceAll(' ', '-'),
  );
}

/** Returns the names in backticks. */
function quoted(text: string): string[] {
  return [...text.matchAll(/`([^`]+)`/g)].map(([, name = '']) => name);
}

/** Returns the first JSON document in a Markdown text. */
function readJson(text: string): unknown {
  return JSON.parse(/```json\n([\s\S]*?)```/.exec(text)?.[1] ?? '');
}

test('the files that the documentation lets users write into the checkout are ignored by Git', () => {
  const paths = ['README.md', 'docs/self-hosting.md', 'docs/notifications.md', 'docs/alerts.md'];
  const named =
    /\bSave [^`\n]*\bas `([^`]+)`|(?:--html|--url-file|import acme|restore \S+ --config) ([\w-]+\.\w+)/g;
  const files = paths.flatMap((path) =>
    [...readFileSync(path, 'utf8').matchAll(named)].map(([, saved, written]) => saved ?? written ?? ''),
  );
  expect(files).toEqual(
    expect.arrayContaining(['jobwire.json', 'receiver.mjs', 'mail.html', 'recipients.csv']),
  );
  const patterns = readFileSync('.gitignore', 'utf8').split('\n');
  const isIgnored = (file: string) =>
    patterns.some((pattern) => matchesGlob(file, pattern.replace(/^\//, '')));
  expect(files.filter((file) => !isIgnored(file))).toEqual([]);
});

test('every relative link of every Markdown file leads to an existing file and heading', () => {
  const broken = [...documents].flatMap(([document, text]) =>
    [...prose(text).matchAll(/\]\((?![a-z]+:)([^)#\s]*)#?([^)\s]*)\)/g)].flatMap(
      ([, path = '', anchor = '']) => {
        const target = path === '' ? document : join(dirname(document), path);
        const exists =
          existsSync(target) && (anchor === '' || toAnchors(documents.get(target) ?? '').includes(anchor));
        return exists ? [] : [`${document} → ${path}${anchor && `#${anchor}`}`];
      },
    ),
  );
  expect(broken).toEqual([]);
  expect(documents.size).toBeGreaterThan(60);
});

test('every document that the code names exists', () => {
  const broken = globSync('**/*.{ts,tsx}', {
    exclude: [...ignoredFolders(), '.git', '**/node_modules'],
  }).flatMap((file) =>
    [...readFileSync(file, 'utf8').matchAll(/\bdocs\/[\w/-]+\.(?:md|json)\b/g)].flatMap(([document]) =>
      existsSync(document) ? [] : [`${file} → ${document}`],
    ),
  );
  expect(broken).toEqual([]);
});

test('the README names eight files from the upstream client to the webhook', () => {
  const files = [...readme.matchAll(/\[`(shared\/[^`]+\.ts)`\]\(\1\)/g)].map(([, file]) => file);
  expect(files).toHaveLength(8);
});

describe('docs/events.md', () => {
  const text = readFileSync('docs/events.md', 'utf8');
  const rows = [...text.matchAll(/^\| `([a-z_]+\.[a-z_]+)` \| (.*) \| (.*) \| (\[.*) \|$/gm)].map(
    ([, type = '', when, data = '']) => ({ type, when, data: quoted(data) }),
  );

  it("lists exactly the event types, with the catalogue's descriptions and fields", () => {
    expect(rows).toEqual(
      Object.entries(catalogue).map(([type, { when, data }]) => ({
        type,
        when,
        data: Object.entries<z.ZodType>(data().shape).flatMap(([name, value]) => {
          if (name === 'changes')
            return Object.keys((value as z.ZodObject).shape).map((field) => `changes.${field}`);
          const isCommon =
            ['region', 'job', 'observed'].includes(name) ||
            (name === 'account' && !type.startsWith('endpoint.'));
          return isCommon ? [] : [name];
        }),
      })),
    );
  });

  it('describes every field', () => {
    const [, fields = ''] = text.split('## Fields');
    const described = [...fields.matchAll(/^\| (`.*?) \|/gm)].flatMap(([, names = '']) => quoted(names));
    for (const { type, data } of rows) {
      for (const field of data) expect(described, `${field} of ${type}`).toContain(field);
    }
  });

  it('contains the example of job.dispatched', () => {
    expect(readJson(text)).toEqual(getExample('job.dispatched'));
  });
});

test('the guide to webhooks lists exactly the codes of failed verifications', () => {
  const [, type = ''] =
    /type VerificationErrorCode =([^;]*);/.exec(readFileSync('receive/index.ts', 'utf8')) ?? [];
  const [, section = ''] = readFileSync('docs/receiving-events.md', 'utf8').split(
    '### If the verification fails',
  );
  const rows = section.split('\n## ', 1)[0]?.match(/^\| `.*?\|/gm) ?? [];
  expect(rows.flatMap(quoted).sort()).toEqual(
    [...type.matchAll(/'([^']+)'/g)].map(([, code]) => code).sort(),
  );
});

test('the guide to the API lists exactly the kinds of problems, with their status and meaning', () => {
  const rows = [...readFileSync('docs/api.md', 'utf8').matchAll(/^\| `([a-z-]+)` \| (\d{3}) \| (.*) \|$/gm)];
  expect(rows.map(([, kind, status, meaning]) => ({ kind, status: Number(status), meaning }))).toEqual(
    Object.entries(meanings).map(([kind, meaning]) => {
      const { status } = problems[kind as ProblemKind];
      return { kind, status, meaning };
    }),
  );
});

test('the configuration in the README is the one of an account of the sandbox', () => {
  const config = parseConfig(readJson(readme), { ACME_SECRET: 'us-demo-1-secret' });
  const sandbox = `http://127.0.0.1:${SANDBOX_PORT}/us`;
  expect(config.regions).toEqual({
    us: { baseUrl: `${sandbox}/api`, authUrl: `${sandbox}/auth`, realm: 'us' },
  });
  const [account] = addDemoAccounts(createWorld({ now: Date.now }), 1);
  expect(config.accounts).toMatchObject([
    { clientId: account?.clientId, clientSecret: account?.clientSecret },
  ]);
  // Exported, because doctor in the same terminal needs it too.
  expect(readme).toMatch(/\nexport ACME_SECRET=us-demo-1-secret .*\nnpm start -- --config jobwire\.json /);
});

test('the numbers in the summaries equal those in the measured tables', () => {
  const read = (name: string) => readFileSync(`docs/${name}.md`, 'utf8');
  const cells = (row: string) => row.split('|').map((cell) => cell.trim());
  const [summary = '', delays = ''] = read('truth').split('<!-- delays -->');
  const getDelays = (event: string) =>
    cells(delays.split('\n').find((line) => line.startsWith(`| ${event} |`)) ?? '').slice(2, 6);
  const rows = [
    ['most changes of a listed job', '`job.status_changed`'],
    [
      'dispatch or tracking after the job left the list, if it is among the newest 100 jobs',
      '`job.dispatched`, after the job left the list, among the newest 100',
    ],
    ['cancelled, unavailable', '`job.cancelled`, without quarantine'],
    [
      'values only in the job detail, such as lines and the invoice',
      '`job.invoiced`, of a listed job without another change',
    ],
  ] as const;
  for (const [what, event] of rows) {
    const [typical, worst, ...slower] = getDelays(event);
    expect(summary).toContain(`\n| ${what} | ${typical}, ${worst} | ${slower.join(', ')} |\n`);
  }

  const costs = read('deploying').split('<!-- costs:');
  const totals = (table: string) => {
    const row = costs
      .find((part) => part.startsWith(table))
      ?.split('\n')
      .find((line) => line.startsWith('| **per month**'));
    return [...(row ?? '').matchAll(/\$[\d.]+/g)].map(([amount]) => Number(amount.slice(1)).toFixed(2));
  };
  const [one = '', thousand = ''] = totals('marginal');
  const [typical = '', worst = ''] = getDelays('`job.status_changed`');
  const [, killed] = [
    ...read('internals/mutation-testing').matchAll(/^\| `shared.* \| ([\d,]+) \| ([\d,]+) \|/gm),
  ].reduce(
    ([mutants, detected], [, all = '', found = '']) =>
      [mutants + Number(all.replace(',', '')), detected + Number(found.replace(',', ''))] as const,
    [0, 0] as readonly [number, number],
  );
  const [perSecond = ''] = cells(
    /^\| transactions per second.*$/m.exec(read('decisions/0040-sqlite-tables'))?.[0] ?? '',
  ).slice(2);
  const figures = [
    `typical ${typical}, worst ${worst}`,
    `$${thousand} to $${one}`,
    `$${totals('fixed')[0]}`,
    killed.toLocaleString('en'),
    perSecond,
  ];
  for (const figure of figures) expect(read('why')).toContain(figure);
  for (const figure of [
    `${parseInt(typical, 10)} seconds`,
    `at most ${parseInt(worst, 10)}`,
    `$${thousand} to $${one}`,
  ])
    expect(read('faq')).toContain(figure);
});

test('CI runs the test command of the README verbatim', () => {
  const [, command = ''] = /^(npm ci && npm test)\b/m.exec(readme) ?? [];
  expect(command).not.toBe('');
  const lines = readFileSync('.ci/run', 'utf8').split('\n');
  expect(lines.map((line) => line.trim())).toContain(command);
});
