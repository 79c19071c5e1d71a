/** The API reference at /docs: complete, well-formed, and without requests to other hosts. */
import { readFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { openApiDocument } from '../../shared/api/openapi.ts';
import { meanings } from '../../shared/api/problem-meanings.ts';
import { createReference } from '../../shared/api/reference/pages.ts';
import { type OpenApi, renderReference } from '../../shared/api/reference/render.ts';
import { tags } from '../../shared/api/route.ts';
import { createStaticReader, type StaticBody } from '../../shared/api/static-body.ts';
import type { JsonSchema } from '../../shared/json-schema.ts';

const document = openApiDocument() as OpenApi;
const files = renderReference(document);
const raw = new Map(
  [...files]
    .filter(([name]) => name.endsWith('.html'))
    .map(([name, html]) => [name === 'docs-index.html' ? '/docs' : `/docs/${name.slice(5, -5)}`, html]),
);
/** The pages with the paths to which their links lead. */
const pages = new Map(
  [...raw].map(([page, html]) => [
    page,
    html.replace(/ (href|src)="([^"#:][^":]*)"/g, (_, name, href) => {
      const { pathname, hash } = new URL(href, `http://api.example${page}`);
      return ` ${name}="${pathname}${hash}"`;
    }),
  ]),
);
const { schemas } = document.components;
const getName = (ref = '') => ref.split('/').at(-1) ?? '';
const resolve = (schema: JsonSchema = {}) => (schema.$ref ? (schemas[getName(schema.$ref)] ?? {}) : schema);
const operations = [...Object.entries(document.paths), ...Object.entries(document.webhooks)].flatMap(
  ([path, item]) =>
    Object.entries(item).map(([method, operation]) => {
      const isWebhook = path in document.webhooks;
      const page = `/docs/${operation.tags[0]?.toLowerCase()}`;
      return { method, path, operation, isWebhook, page, html: getSection(page, operation.operationId) };
    }),
);

/** What all event types have in common, and the fields that only some of them have. */
const [allTypes = '', someTypes = ''] = getSection('/docs/webhooks', 'all-event-types').split(
  '<h3>Fields of some types</h3>',
);

/** Returns the row of a problem or a header on the start page. */
function getStartRow(id: string): string {
  return pages.get('/docs')?.split(`<tr id="${id}">`)[1]?.split('</tr>')[0] ?? '';
}

/** Returns whether the start page states that every response with a status has a header. */
function isInEvery(header: string, status: string): boolean {
  const [note, statuses] =
    / · in every response(?: with status ([\d, ]+))?/.exec(getStartRow(`header-${header}`)) ?? [];
  return note !== undefined && (statuses?.split(', ').includes(status) ?? true);
}

/** Returns the section of an operation or a schema. */
function getSection(page: string, id: string): string {
  const section = (pages.get(page) ?? '').split('<section>').find((one) => one.startsWith(`<h2 id="${id}">`));
  if (section === undefined) throw new Error(`${page} does not contain ${id}.`);
  return section.split('</section>')[0] ?? '';
}

/** Returns the text of HTML. Throws if its tags are not nested correctly. */
function getText(html: string): string {
  const open: string[] = [];
  let text = '';
  for (const [token, close, name = '', empty] of html.matchAll(
    /<(\/?)([a-z]\w*)[^<>]*>|<!doctype html>|([^<>]+)/g,
  )) {
    if (empty !== undefined) text += empty;
    else if (token === '<!doctype html>' || ['meta', 'link', 'input', 'wbr'].includes(name)) continue;
    else if (!close) open.push(name);
    else if (open.pop() !== name) throw new Error(`${token} closes no element: ${text.slice(-100)}`);
  }
  if (open.length > 0) throw new Error(`${open.join(' ')} is not closed.`);
  const entities: Record<string, string> = { lt: '<', gt: '>', quot: '"', '#39': "'", amp: '&' };
  return text.replace(/&([^;]+);/g, (entity, name) => entities[name] ?? entity);
}

/** Removes what Markdown and HTML show differently. */
const normalize = (text: string) => text.replace(/^- |[\s`*]/gm, '');
/** The normalized texts of HTML that several texts are expected in. */
const texts = new Map<string, string>();
function expectText(html: string, text = ''): void {
  const shown = texts.get(html) ?? normalize(getText(html));
  texts.set(html, shown);
  expect(shown).toContain(normalize(text));
}

/** Returns the rows of a table by their name. */
function getRows(html: string): Map<string, string[]> {
  const rows = html.match(/<tr[^>]*><th scope="row">.*?<\/tr>/gs) ?? [];
  return Map.groupBy(rows, (one) => getText(/<code>.*?<\/code>/.exec(one)?.[0] ?? ''));
}

describe('renderReference', () => {
  it('describes every operation with its parameters, responses, problems and role', () => {
    for (const { method, path, operation, isWebhook, html } of operations) {
      for (const text of [operation.summary, operation.description]) expectText(html, text);
      if (isWebhook) expectText(allTypes, 'POST URL of the endpoint');
      else expectText(html, `${method.toUpperCase()}${path}`);
      const role = operation['x-role'];
      if (role) expectText(html, `Role: ${role}`);
      else expect(html).not.toContain('Role:');
      const rows = getRows(isWebhook ? allTypes + someTypes + html : html);
      for (const { name, required, description, schema, ...parameter } of operation.parameters ?? []) {
        const row = rows.get(name)?.find((one) => isWebhook || one.includes(` · ${parameter.in}`)) ?? '';
        expectText(row, description);
        expectValues(row, schema);
        expect(row.includes('required')).toBe(required);
      }
      for (const [status, response] of Object.entries(operation.responses)) {
        const { description, content = {}, headers = {}, 'x-problems': kinds } = response;
        // The row of an event type replaces that of all types.
        const row = rows.get(status)?.at(-1) ?? '';
        if (!kinds) expectText(row, `${status}${description}`);
        for (const kind of kinds ?? []) {
          const isGeneral = role && getStartRow(`problem-${kind}`).includes(' · general');
          if (isGeneral) expect(html).toContain('<a href="/docs#errors">general errors</a>');
          else expect(row).toContain(`/docs#problem-${kind}`);
        }
        for (const [name, { $ref }] of Object.entries(headers)) {
          if (!$ref) expectText(row, name);
          else if (!isInEvery(name, status)) expect(html).toContain(`/docs#header-${name}`);
        }
        for (const [type, { schema }] of Object.entries(content)) {
          if (type === 'application/problem+json') continue;
          expectText(row, type);
          expectValues(row, schema);
          for (const { items } of Object.values(resolve(schema).properties ?? {}))
            if (items?.$ref) expect(row).toContain(`href="/docs/schemas#${getName(items.$ref)}"`);
          if (!schema.$ref) visitFields(schema, '', (field) => expectText(row, field));
        }
      }
    }
    expect(operations.length).toBeGreaterThan(120);
  });

  it('states once which headers all responses have, and which problems all operations with a role have', () => {
    for (const { operation, isWebhook } of operations) {
      if (isWebhook) continue;
      const responses = Object.entries(operation.responses);
      const returned = responses.flatMap(([, one]) => one['x-problems'] ?? []);
      for (const kind of Object.keys(meanings)) {
        if (operation['x-role'] && getStartRow(`problem-${kind}`).includes(' · general'))
          expect(returned).toContain(kind);
      }
      for (const [status, { headers = {} }] of responses) {
        for (const name of Object.keys(document.components.headers)) {
          if (isInEvery(name, status)) expect(headers).toHaveProperty(name);
        }
      }
    }
    expect(isInEvery('X-Request-Id', '200')).toBe(true);
    expect(isInEvery('Link', '200')).toBe(false);
    expect(getStartRow('problem-unauthorized')).toContain(' · general');
    for (const { operation, html } of operations) {
      expect(html).not.toContain('#header-X-Request-Id');
      if (operation['x-role']) expect(html).not.toContain('#problem-unauthorized');
    }
  });

  it('describes what many event types have in common once, and the other fields of each type', () => {
    for (const { operation, isWebhook, html } of operations) {
      if (!isWebhook) continue;
      const [{ schema } = { schema: {} }] = Object.values(operation.requestBody?.content ?? {});
      const event = resolve(schema);
      const { type, data } = event.properties ?? {};
      expect(type?.const).toBe(operation.summary);
      expect(html).toContain(`href="/docs/schemas#${getName(data?.$ref)}"`);
      expect(getSection('/docs/schemas', getName(schema.$ref))).toContain(
        `href="/docs/webhooks#${operation.operationId}"`,
      );
      const paths = new Set<string>();
      const [all, some, own] = [allTypes, someTypes, html].map(getRows);
      const listed = /<p>With (.*?)\.<\/p>/.exec(html)?.[1]?.split(', ').map(getText) ?? [];
      const properties = { ...event.properties, type: {}, data: resolve(data) };
      visitFields({ ...event, properties }, '', (path, field, isRequired) => {
        paths.add(path);
        const rows = own?.get(path) ?? (listed.includes(path) ? some : all)?.get(path) ?? [];
        expect(rows, `${operation.summary}: ${path}`).not.toEqual([]);
        expect(rows.some((one) => one.includes(' · optional') !== isRequired)).toBe(true);
        expectText(rows.join(''), field.description);
        expectValues(rows.join(''), field);
      });
      for (const path of [...listed, ...(all?.keys() ?? [])].filter(
        (one) => !/^webhook-|^\d|^default$/.test(one),
      ))
        expect(paths, operation.summary).toContain(path);
      // No row of an event type repeats one of all types.
      for (const row of [...(own?.values() ?? [])].flat()) expect(allTypes + someTypes).not.toContain(row);
    }
    expect([...getRows(someTypes).keys()]).toContain('data.job');
  });

  it('lists every operation on the start page and on the page of its tag', () => {
    for (const { operation, page } of operations) {
      const link = `<li data-id="${operation.operationId}"><a href="${page}#${operation.operationId}">`;
      for (const one of ['/docs', page]) expect(pages.get(one)?.split(link)).toHaveLength(2);
    }
  });

  it('describes every field of every schema, with its description, values and limits', () => {
    let count = 0;
    const events = resolve({ $ref: 'Event' }).oneOf?.map(({ $ref }) => getName($ref)) ?? [];
    expect(events.length).toBeGreaterThan(40);
    for (const [name, schema] of Object.entries(schemas)) {
      if (events.includes(name)) continue;
      const html = getSection('/docs/schemas', name);
      expectText(html, schema.description);
      const rows = getRows(html);
      visitFields(schema, '', (path, field, isRequired) => {
        count += 1;
        const row = rows.get(path)?.find((one) => one.includes(' · optional') !== isRequired) ?? '';
        const variants = rows.get(path)?.join('') ?? '';
        expectText(row, '');
        expect(row, `${name}: ${path}`).not.toBe('');
        expectText(variants, field.description);
        expectValues(variants, field);
      });
    }
    expect(count).toBeGreaterThan(1000);
  });

  it('does not repeat a limit that the description states', () => {
    const [limit] = getRows(getSection('/docs/events', 'listEvents')).get('limit') ?? [];
    const text = getText(`<p>${limit}</p>`);
    expect(text.split('1 to 1000')).toHaveLength(2);
    expect(text.split('Default: 100')).toHaveLength(2);
    const [order] = getRows(getSection('/docs/events', 'listEvents')).get('order') ?? [];
    expect(getText(`<p>${order}</p>`)).toContain('Values: oldest, newest.');
  });

  it('describes the fields of request bodies at the operation, also those of named schemas', () => {
    const rows = getRows(getSection('/docs/accounts', 'createAccount'));
    expect(rows.get('credentials.clientId')?.[0]).toContain('required');
    for (const { operation, isWebhook, html } of operations) {
      const names = [...getRows(html).keys()];
      for (const { schema } of Object.values(operation.requestBody?.content ?? {})) {
        const fields = Object.keys(resolve(schema).properties ?? {});
        if (!isWebhook) expect(names).toEqual(expect.arrayContaining(fields));
      }
    }
  });

  it('separates the fields of alternatives', () => {
    const text = getText(getSection('/docs/alerts', 'createAlertRule'));
    expect(text).toMatch(/Either:target\.kind.*email.*target\.to.*Or:target\.kind.*slack.*target\.url/s);
    expect(getText(getSection('/docs/alerts', 'listAlertRules'))).not.toContain('Either:');
  });

  it('explains every type of problem', () => {
    for (const [kind, meaning] of Object.entries(meanings)) {
      expectText(getStartRow(`problem-${kind}`), meaning);
    }
  });

  it('has only relative links, because the path of the API can begin with the name of a stage', () => {
    for (const [page, html] of raw) {
      expect(/ (href|src)="\//.test(html), page).toBe(false);
      const links = [...html.matchAll(/ (?:href|src)="([^"#:][^":]*)"/g)].map(([, href = '']) => href);
      expect(links.length).toBeGreaterThan(20);
      for (const href of links) {
        const { pathname } = new URL(href, `http://api.example/prod${page}`);
        expect(pathname, href).toMatch(
          /^\/prod\/(docs|docs\/[^/]+|docs\/assets\/.+|(openapi|asyncapi)\.json|v1\/event-types)$/,
        );
      }
    }
  });

  it('links only to places that exist, and has no other host, inline script or inline style', () => {
    const served = ['/openapi.json', '/asyncapi.json', '/v1/event-types', 'data:,'];
    for (const [page, html] of pages) {
      const ids = [...html.matchAll(/\sid="([^"]*)"/g)].map(([, id]) => id);
      expect(new Set(ids).size, page).toBe(ids.length);
      for (const [, href = ''] of html.matchAll(/(?:href|src)="([^"]*)"/g)) {
        const [path = '', id] = href.split('#');
        if (served.includes(href)) continue;
        if (path.startsWith('/docs/assets/'))
          expect([...files.keys()]).toContain(`docs-${path.split('/').at(-1)}`);
        else expect(pages.get(path || page), href).toContain(id === undefined ? '<main' : ` id="${id}"`);
      }
      expect(html).not.toMatch(/<script(?![^>]*\ssrc=)|<style|\sstyle=|\son\w+=/i);
    }
  });

  it('has one level-1 heading on each page, no skipped level, a language, landmarks and table headers', () => {
    for (const [page, html] of pages) {
      const levels = [...html.matchAll(/<h(\d)/g)].map(([, level]) => Number(level));
      expect(
        levels.filter((level) => level === 1),
        page,
      ).toHaveLength(1);
      levels.forEach((level, index) => void expect(level - (levels[index - 1] ?? 0)).toBeLessThan(2));
      expect(html).toMatch(/<html lang="en">[\s\S]*<header>[\s\S]*<nav aria-label=[\s\S]*<main id="main"/);
      expect(html.split('<table').length).toBe(html.split('<thead>').length);
      expect(() => getText(html)).not.toThrow();
    }
  });

  it('is small: at most 12 kB per page when compressed, 40 kB for all schemas, and a script of less than 3 kB', () => {
    for (const [name, content] of files)
      expect(gzipSync(content).length, name).toBeLessThan(name === 'docs-schemas.html' ? 40_000 : 12_000);
    expect(files.get('docs-page.js')?.length).toBeLessThan(3_000);
  });

  it('escapes every text of the document, and ends at recursive schemas', () => {
    const evil = `<b x='1' y="2">&amp;'"`;
    const ref = { $ref: `#/components/schemas/Tree${evil.replaceAll('/', '')}` };
    const tree: JsonSchema = {
      ...{
        type: ['object', evil],
        format: evil,
        description: `${evil} \`${evil}\` *${evil}*\n\n- ${evil}`,
        required: [evil],
      },
      properties: {
        [evil]: { const: evil, description: evil },
        children: { type: 'array', items: ref },
        map: { type: 'object', additionalProperties: ref },
        values: { anyOf: [{ type: 'string', enum: [evil], pattern: evil, default: evil }, ref] },
      },
    };
    const content = { [evil]: { schema: tree, example: { [evil]: evil } } };
    const operation = {
      ...{ operationId: evil, summary: evil, description: evil, tags: [evil], 'x-role': evil },
      parameters: [{ name: evil, in: evil, required: true, description: evil, schema: tree }],
      requestBody: { content: { ...content, 'application/json': { schema: ref } } },
      responses: {
        [evil]: { description: evil, headers: { [evil]: { description: evil } }, content },
        400: { description: evil, headers: { [evil]: ref }, content, 'x-problems': [evil] },
      },
    };
    const texts = renderReference({
      info: { title: evil, version: evil, description: evil },
      tags: [{ name: evil, description: evil }],
      ...{ paths: { [`/${evil}`]: { get: operation } }, webhooks: { [evil]: { post: operation } } },
      components: {
        schemas: { [`Tree${evil}`]: tree },
        securitySchemes: { [evil]: { description: evil } },
        headers: { [evil]: { description: evil, schema: tree } },
      },
    });
    for (const [name, html] of texts) {
      if (/page\.(css|js)$/.test(name)) continue;
      expect(html).not.toMatch(/<b\b|y="2"|x='1'|&amp;'/);
      expect(getText(html), name).toContain(evil);
    }
    // The data of a command is in single quotes.
    expect(getText([...texts.values()][1] ?? '')).toContain(`<b x='\\''1'\\'' y=`);
    expect(texts.size).toBe(5);
  });
});

/** Calls `visit` for each field of a schema, with its path. Does not follow references. */
function visitFields(
  { properties = {}, required = [], items, additionalProperties: map, anyOf = [] }: JsonSchema,
  prefix: string,
  visit: (path: string, field: JsonSchema, isRequired: boolean) => void,
): void {
  for (const [name, field] of Object.entries(properties)) {
    visit(`${prefix}${name}`, field, required.includes(name));
    visitFields(field, `${prefix}${name}.`, visit);
  }
  if (items) visitFields(items, `${prefix.slice(0, -1)}[].`, visit);
  if (typeof map === 'object') visitFields(map, `${prefix}*.`, visit);
  for (const part of anyOf) visitFields(part, prefix, visit);
}

/** Expects every value and limit of a schema in the HTML. */
function expectValues(html: string, schema: JsonSchema): void {
  const { type, format, pattern, minimum, maximum, minLength, maxLength, minItems, maxItems, $ref } = schema;
  const limits = [minimum, maximum, minLength, maxLength, minItems, maxItems, pattern, format, schema.const];
  const isMap =
    typeof schema.additionalProperties === 'object' && Object.keys(schema.additionalProperties).length > 0;
  const types = [type ?? []].flat().map((one) => (one === 'object' && isMap ? 'map of' : one));
  const named = types.concat($ref?.split('/').at(-1) ?? []);
  for (const value of [
    ...limits,
    ...named,
    ...(schema['x-extensible-enum'] ?? schema.enum ?? []),
    schema.default,
  ]) {
    if (value !== undefined)
      expectText(html, typeof value === 'object' ? JSON.stringify(value) : String(value));
  }
  const values = isMap ? (schema.additionalProperties as JsonSchema) : [];
  for (const part of [schema.items ?? [], schema.anyOf ?? [], values].flat()) expectValues(html, part);
}

describe('createReference', () => {
  const read = async (name: string) => new TextEncoder().encode(files.get(name) ?? name);
  const reference = createReference(createStaticReader(read), Object.keys(tags));
  const toText = (body: StaticBody | undefined) => new TextDecoder().decode(body?.plain);
  const assets = [...(pages.get('/docs') ?? '').matchAll(/\/docs\/assets\/([^/]+)\/([\w.]+)/g)].map(
    ([, version = '', name = '']) => ({ version, name }),
  );

  it('serves every page, with a policy that allows only resources of the same origin', async () => {
    for (const [path, html] of raw) {
      const answer = await reference.page(path.split('/')[2]);
      expect(toText(answer?.body) === html, path).toBe(true);
      expect(answer?.headers).toMatchObject({
        ...{ 'content-type': 'text/html; charset=utf-8', 'cache-control': 'no-cache' },
        'content-security-policy':
          "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
      });
    }
  });

  it('serves the stylesheet and the script, to be cached forever', async () => {
    expect(assets.map(({ name }) => name)).toEqual(['page.css', 'page.js']);
    for (const { version, name } of assets) {
      const answer = await reference.asset(version, name);
      expect(answer?.headers).toEqual({
        'content-type': `text/${name.endsWith('.js') ? 'javascript' : 'css'}; charset=utf-8`,
        'cache-control': 'public, max-age=31536000, immutable',
      });
      expect(toText(answer?.body)).toBe(readFileSync(`shared/api/reference/${name}`, 'utf8'));
    }
  });

  it('serves nothing else: no other name, no other version', async () => {
    const [{ version } = { version: '' }] = assets;
    for (const name of ['', 'index.html', '../package.json', '..%2Fpackage.json', 'toString', '__proto__']) {
      expect(await reference.asset(version, name), name).toBeUndefined();
      expect(await reference.page(name), name).toBeUndefined();
    }
    expect(await reference.asset('1', 'page.js')).toBeUndefined();
  });
});
