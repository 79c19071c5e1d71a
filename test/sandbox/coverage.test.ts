/**
 * The tests of the sandbox cover the whole contract: their titles name every status of every operation, every field of every
 * schema and every parameter. docs/sandbox.md lists the operations and statuses. `DOCS=write npx vitest run
 * test/sandbox/coverage.test.ts` updates its generated parts.
 */
import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { openApiDocument } from '../../sandbox/http/openapi.ts';
import { listAnswers } from '../../sandbox/http/operation.ts';
import { OPERATIONS } from '../../sandbox/http/traffic.ts';
import { ERROR_CODES, type ErrorCode, FAULTS } from '../../sandbox/operations/order-errors.ts';
import { operations } from '../../sandbox/operations.ts';
import { loadScenario, scenarioNames } from '../../sandbox/simulation/scenario-file.ts';
import { startService } from '../support/ordering-api.ts';

const DOCS = 'docs/sandbox.md';
/** The token endpoint, which is not an operation. */
const TOKEN = 'POST /realms/{realm}/protocol/openid-connect/token';

/** Schemas that extend another one and share its parser. */
const EXTENDED: Readonly<Record<string, string>> = {
  ShopCandidate: 'JobCandidate',
  CustomerShopCandidate: 'ShopCandidate',
};

/**
 * Operations with status, and fields, that titles name: `GET /Jobs/active 200` and `ActiveJobDto · dateOut`, with the first
 * title.
 */
function shownBy(titles: readonly string[]): Map<string, string> {
  const shown = new Map<string, string>();
  const note = (what: string, title: string) => shown.has(what) || shown.set(what, title);
  for (const title of titles) {
    for (const [what] of title.matchAll(/\b(?:GET|POST|PATCH) \/[^\s:,]* \d{3}\b/g)) note(what, title);
    for (const [, of = '', fields = ''] of title.matchAll(
      /([\w]+) · ([\w-]+\b(?! ·)(?:(?:, | and )[\w-]+\b(?! ·))*)/g,
    )) {
      for (const field of fields.split(/, | and /)) note(`${of} · ${field}`, title);
    }
  }
  return shown;
}

/** The quoted strings of a test file, outside comments: titles of tests, and literal cases of them. */
function titlesIn(source: string): string[] {
  return source
    .split('\n')
    .filter((line) => !/^\s*(?:\/\/|\/?\*)/.test(line))
    .flatMap((line) => [...line.matchAll(/'((?:\\.|[^'\\])*)'|"((?:\\.|[^"\\])*)"|`((?:\\.|[^`\\])*)`/g)])
    .map(([, single, double, back]) => (single ?? double ?? back ?? '').replace(/\\(.)/g, '$1'));
}

const titles = readdirSync('test/sandbox')
  .filter((file) => file.endsWith('.test.ts') && file !== 'coverage.test.ts')
  .sort()
  .flatMap((file) => titlesIn(readFileSync(`test/sandbox/${file}`, 'utf8')));
const shown = shownBy(titles);
const missing = (wanted: readonly string[]): string[] => wanted.filter((what) => !shown.has(what));

const ROW = /^\| `((?:GET|POST|PATCH) \S+)` \| ([\d, ]*) \| ([\d, ]*) \|$/;
/** The operations with each of their statuses in the table of the docs. */
function rowsIn(text: string): string[] {
  return text.split('\n').flatMap((line) => {
    const [, operation, ...cells] = ROW.exec(line) ?? [];
    return (cells.join(' ').match(/\d{3}/g) ?? []).map((status) => `${operation} ${status}`);
  });
}

/** The modules below a folder, sorted. */
function modulesIn(folder: string): string[] {
  return readdirSync(folder, { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts'))
    .sort();
}

/** The choices of modules where the contract is silent, from their docstrings. */
function choices(): string {
  const folder = 'sandbox';
  return modulesIn(folder)
    .flatMap((file) => {
      const [, listed = ''] =
        /contract is silent, the sandbox chose(?: \([^\n]*\))?:\n \*\n((?: \*.*\n)*?) \*\/\n/.exec(
          readFileSync(`${folder}/${file}`, 'utf8'),
        ) ?? [];
      if (listed === '') return [];
      const lines = listed.split('\n').map((line) => line.replace(/^ \* ?/, ''));
      return `[\`${file}\`](../${folder}/${file})\n\n${lines.join('\n').trim()}\n`;
    })
    .join('\n');
}

function formatTable(head: string, rows: readonly (readonly [string, string])[]): string {
  return [`| ${head} | |`, '|---|---|', ...rows.map(([name, text]) => `| \`${name}\` | ${text} |`)].join(
    '\n',
  );
}

/** Returns a document with other text between the markers of a name. */
function between(document: string, name: string, text: string): string {
  const [open, close] = [`<!-- ${name} -->\n`, `<!-- /${name} -->`];
  const [from, to] = [document.indexOf(open), document.indexOf(close)];
  if (from < 0 || to < from) throw new Error(`${DOCS} has no part ${name}.`);
  return `${document.slice(0, from + open.length)}\n${text.trim()}\n\n${document.slice(to)}`;
}

/** Generated parts of the docs, by marker. */
const generated: Readonly<Record<string, () => string>> = {
  choices,
  errorCodes: () => {
    const mark = (code: string) => (FAULTS.some((fault) => fault === code) ? ' **500**' : '');
    const reasons = Object.entries(ERROR_CODES).map(([code, why]) => [code, `${why}${mark(code)}`] as const);
    const evident = reasons.filter(([code]) => ERROR_CODES[code as ErrorCode] === '');
    return [
      formatTable(
        '`errorCode`',
        reasons.filter((reason) => !evident.includes(reason)),
      ),
      `These codes need no description: ${evident.map(([code, why]) => `\`${code}\`${why}`).join(', ')}.`,
    ].join('\n\n');
  },
  scenarios: () =>
    formatTable(
      '`--scenario`',
      scenarioNames().map((name) => [name, loadScenario(name).description ?? '']),
    ),
};

describe('docs/sandbox.md', () => {
  test.each(Object.keys(generated))('has the %s of the code (else: DOCS=write)', (name) => {
    const text = readFileSync(DOCS, 'utf8');
    const now = between(text, name, generated[name]?.() ?? '');
    if (process.env.DOCS === 'write') writeFileSync(DOCS, now);
    else expect(text === now).toBe(true);
  });

  test('has the choices of every module', () => {
    const modules = modulesIn('sandbox').filter((file) =>
      /contract is silent/i.test(readFileSync(`sandbox/${file}`, 'utf8')),
    );
    expect(modules.length).toBeGreaterThan(10);
    const documented = choices();
    expect(modules.filter((file) => !documented.includes(`[\`${file}\`]`))).toEqual([]);
  });

  test('has examples of an accepted order, and of one that is not created', async () => {
    const [, order = ''] = /```json\n([\s\S]*?)```/.exec(readFileSync(DOCS, 'utf8')) ?? [];
    const { us } = await startService();
    expect(await us.post('/Jobs', { ...JSON.parse(order), validateOnly: true })).toMatchObject({
      status: 200,
    });
    expect(await us.post('/Jobs', JSON.parse(order))).toMatchObject({ status: 201 });
  });

  test('lists each status of each operation exactly once', () => {
    const declared = operations.flatMap((spec) =>
      Object.keys(listAnswers(spec)).map((status) => `${spec.method.toUpperCase()} ${spec.path} ${status}`),
    );
    declared.push(...[200, 400, 401, 404, 413].map((status) => `${TOKEN} ${status}`));
    expect(rowsIn(readFileSync(DOCS, 'utf8')).toSorted()).toEqual(declared.toSorted());
  });
});

describe('test titles name', () => {
  test('every status of every operation', () => {
    const rows = rowsIn(readFileSync(DOCS, 'utf8'));
    expect(rows.length).toBeGreaterThan(100);
    expect(missing(rows)).toEqual([]);
  });

  test('every field of every schema', () => {
    const { components } = openApiDocument() as {
      components: { schemas: Record<string, { properties?: object }> };
    };
    const getFields = (id: string) => Object.keys(components.schemas[id]?.properties ?? {});
    const fields = Object.keys(components.schemas).flatMap((id) =>
      getFields(id)
        .filter((field) => !getFields(EXTENDED[id] ?? '').includes(field))
        .map((field) => `${id} · ${field}`),
    );
    expect(fields.length).toBeGreaterThan(300);
    expect(missing(fields)).toEqual([]);
  });

  test('every parameter of a query and every header', () => {
    const parameters = operations.flatMap(({ name, query, headers = {} }) =>
      [...Object.keys(query?.shape ?? {}), ...Object.keys(headers)].map((one) => `${name} · ${one}`),
    );
    expect(missing(parameters)).toEqual([]);
  });

  test('nothing else: each named operation, status, field and parameter exists', () => {
    const rows = new Set(rowsIn(readFileSync(DOCS, 'utf8')));
    const names: ReadonlySet<string> = new Set([
      ...OPERATIONS,
      ...Object.keys((openApiDocument() as { components: { schemas: object } }).components.schemas),
    ]);
    const strange = [...shown.keys()].filter((what) =>
      what.includes(' · ') ? !names.has(what.split(' · ')[0] ?? '') : !rows.has(what),
    );
    expect(strange).toEqual([]);
  });
});

describe('the title parser', () => {
  const source = [
    "test('GET /Jobs/{jobNumber} 404: an unknown job', () => {});",
    "// test('GET /Jobs/{jobNumber} 403: not a test')",
    " * 'GET /Jobs/{jobNumber} 500' in a comment",
    "test('GET /Stock 200 · StockItem · rank, slug, StockVariant · colour: it\\'s there', () => {});",
    "  ['POST /Jobs 400', 'JobCandidate · items and promocode'],",
  ].join('\n');

  test('reads quoted strings, and finds operations and fields', () => {
    const found = shownBy(titlesIn(source));
    expect([...found.keys()]).toEqual([
      ...['GET /Jobs/{jobNumber} 404', 'GET /Stock 200', 'StockItem · rank', 'StockItem · slug'],
      ...['StockVariant · colour', 'POST /Jobs 400', 'JobCandidate · items', 'JobCandidate · promocode'],
    ]);
    expect(found.get('GET /Stock 200')).toBe(
      "GET /Stock 200 · StockItem · rank, slug, StockVariant · colour: it's there",
    );
  });
});
