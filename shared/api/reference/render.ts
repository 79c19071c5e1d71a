/**
 * Renders the OpenAPI document as the static HTML pages of the API reference: a start page, one page for each tag, and one with all
 * schemas. Only builds and checkouts render; a process serves the files (`pages.ts`, docs/decisions/0081-static-api-reference.md).
 * One file: all pages share the document, and state once what many of its parts have in common.
 */
import { readFileSync } from 'node:fs';
import type { JsonSchema } from '../../json-schema.ts';
import { meanings } from '../problem-meanings.ts';
import { type ProblemKind, problems } from '../problems.ts';
import { getAssetVersion, SCHEMAS_PAGE, START_PAGE, toAssetFile, toPageFile, toPageName } from './pages.ts';
import { code, esc, getRefName, link, renderLimits, renderType, toSample, toSchemaHref } from './schema.ts';

interface Described {
  readonly description?: string;
  readonly schema: JsonSchema;
}

interface Parameter extends Described {
  readonly name: string;
  readonly in: string;
  readonly required?: boolean;
}

type Content = Readonly<Record<string, { readonly schema: JsonSchema; readonly example?: unknown }>>;

interface Response {
  readonly description: string;
  readonly headers?: Readonly<Record<string, { readonly $ref?: string; readonly description?: string }>>;
  readonly content?: Content;
  readonly 'x-problems'?: readonly string[];
}

export interface Operation {
  readonly operationId: string;
  readonly tags: readonly string[];
  readonly summary: string;
  readonly description?: string;
  readonly 'x-role'?: string;
  readonly parameters?: readonly Parameter[];
  readonly requestBody?: { readonly required?: boolean; readonly content: Content };
  readonly responses: Readonly<Record<string, Response>>;
}

/** The parts of an OpenAPI document that are rendered. */
export interface OpenApi {
  readonly info: { readonly title: string; readonly version: string; readonly description: string };
  readonly tags: readonly { readonly name: string; readonly description: string }[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly webhooks: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: {
    readonly schemas: Readonly<Record<string, JsonSchema>>;
    readonly securitySchemes: Readonly<Record<string, { readonly description: string }>>;
    readonly headers: Readonly<Record<string, Described>>;
  };
}

interface FieldParts {
  readonly description?: string | undefined;
  readonly prefix?: string;
  readonly note?: string;
  readonly id?: string;
}

/** A table row with its table. */
interface Row {
  /** Title of the table. */
  readonly title: string;
  /** Path of the field, name of the header, or status. */
  readonly name: string;
  readonly html: string;
}

interface Place {
  readonly operation: Operation;
  readonly method: string;
  /** Of a webhook: `null`. */
  readonly path: string | null;
}

const PROBLEM = 'application/problem+json';

/** Fields of webhooks whose schema depends on the event type. */
const generalFields: Readonly<Record<string, JsonSchema>> = {
  type: { type: 'string', description: 'Event type.' },
  data: { type: 'object', description: 'Depends on the event type.' },
};

const block = (text: string) => `<pre><code>${esc(text)}</code></pre>`;
const json = (value: unknown) => JSON.stringify(value, null, 2);
const details = (summary: string, html: string) =>
  `<details><summary>${esc(summary)}</summary>${html}</details>`;
const toPath = (page: string) => (page === START_PAGE ? '/docs' : `/docs/${page}`);
const table = (head: string, rows: readonly string[]) =>
  `<table${head === 'Status' ? ' class="responses"' : ''}><thead><tr><th scope="col">${head}</th><th scope="col">Description</th></tr></thead><tbody>${rows.join('')}</tbody></table>`;
const getHtml = ({ html }: Row) => html;
/** Renders a table for each title. */
const tables = (rows: readonly Row[]) =>
  [...Map.groupBy(rows, ({ title }) => title)]
    .map(
      ([title, all]) =>
        `<h3>${title}</h3>${table(title === 'Responses' ? 'Status' : 'Name', all.map(getHtml))}`,
    )
    .join('');
/** Returns the first of the bodies of a request, which have the same schema. */
const getBody = ({ requestBody }: Operation) => {
  const [[type, content] = ['', { schema: {} }]] = Object.entries(requestBody?.content ?? {});
  return { type, example: undefined, ...content };
};
/** Returns the row above the fields of one of several alternatives. */
const toCaption = (name: string): Row => ({
  ...{ title: 'Fields', name },
  html: `<tr><th scope="rowgroup" colspan="2">${name}</th></tr>`,
});
const row = (head: string, html: string, id?: string) =>
  `<tr${id === undefined ? '' : ` id="${esc(id)}"`}><th scope="row">${head}</th><td>${html}</td></tr>`;
const verb = (method: string) => `<span class="method ${method.toLowerCase()}">${method}</span>`;
const heading = (text: string, id: string) =>
  `<h2 id="${esc(id)}">${esc(text)} <a class="anchor" href="#${esc(id)}" aria-label="Link to ${esc(text)}">#</a></h2>`;

/** Returns all files of the reference by name. */
export function renderReference(document: OpenApi): ReadonlyMap<string, string> {
  const { schemas, headers, securitySchemes } = document.components;
  const toPlaces = (item: Readonly<Record<string, Operation>>, path: string | null): Place[] =>
    Object.entries(item).map(([method, operation]) => ({ operation, method: method.toUpperCase(), path }));
  const requests = Object.entries(document.paths).flatMap(([path, item]) => toPlaces(item, path));
  const webhooks = Object.values(document.webhooks).flatMap((item) => toPlaces(item, null));
  const places = [...requests, ...webhooks];
  const byStatus = Map.groupBy(
    requests.flatMap(({ operation }) => Object.entries(operation.responses)),
    ([status]) => status,
  );
  // What all responses of a status have, and all operations with a role, is on the start page only.
  const generalHeaders = new Map(
    Object.keys(headers).map((name) => {
      const general = [...byStatus].filter(([, all]) => all.every(([, one]) => one.headers?.[name]?.$ref));
      return [name, general.map(([status]) => status).sort()];
    }),
  );
  const generalProblems = Object.keys(problems).filter((kind) =>
    requests.every(
      ({ operation }) =>
        !operation['x-role'] ||
        Object.values(operation.responses).some((one) => one['x-problems']?.includes(kind)),
    ),
  );
  const byTag = Map.groupBy(places, ({ operation }) => operation.tags[0]);
  /** Operations by the names that descriptions use. */
  const named = new Map(
    places.flatMap(({ operation, method, path }) =>
      [operation.summary, `${method} ${path}`].map((name) => [name, toHref(operation)] as const),
    ),
  );
  /** Examples in the document by the name of their schema. */
  const examples = new Map(
    places
      .flatMap(({ operation }) => Object.values(operation.requestBody?.content ?? {}))
      .flatMap(({ schema, example }) => (schema.$ref && example ? [[getRefName(schema.$ref), example]] : [])),
  );
  const assets = ['page.css', 'page.js'].map(
    (name) => [name, readFileSync(new URL(name, import.meta.url), 'utf8')] as const,
  );
  const [style, script] = assets.map(([name, content]) => `/docs/assets/${getAssetVersion(content)}/${name}`);

  return new Map([
    [toPageFile(START_PAGE), page(START_PAGE, `${document.info.title} API`, start())],
    ...document.tags.map(({ name, description }) => {
      const group = byTag.get(name) ?? [];
      const sections = group.map((place) => (place.path === null ? '' : operationSection(place))).join('');
      const events = group.some(({ path }) => path === null) ? webhookSections() : '';
      const main = `${text(description)}${list(group)}${sections}${events}`;
      return [toPageFile(toPageName(name)), page(toPageName(name), name, main)] as const;
    }),
    [
      toPageFile(SCHEMAS_PAGE),
      page(SCHEMAS_PAGE, 'Schemas', schemaIndex() + Object.keys(schemas).map(schemaSection).join('')),
    ],
    ...assets.map(([name, content]) => [toAssetFile(name), content] as const),
  ]);

  function page(name: string, title: string, main: string): string {
    const items = [
      [START_PAGE, 'Overview'],
      ...document.tags.map((tag) => [toPageName(tag.name), tag.name]),
      [SCHEMAS_PAGE, 'Schemas'],
    ];
    const nav = items.map(([target = '', label]) => {
      const current = target === name ? ' aria-current="page"' : '';
      return `<li><a href="${esc(toPath(target))}"${current}>${esc(label)}</a></li>`;
    });
    const html = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="description" content="Reference of the HTTP API of ${esc(document.info.title)}: ${esc(title)}.">
<title>${esc(title)}${name === START_PAGE ? '' : ` – ${esc(document.info.title)} API`}</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="${style}">
<script defer src="${script}"></script>
</head>
<body>
<a class="skip" href="#main">Skip to the content</a>
<header>
<a class="home" href="/docs">${esc(document.info.title)} API</a>
<span class="muted">${esc(document.info.version)}</span>
<a href="/openapi.json">openapi.json</a>
<a href="/asyncapi.json">asyncapi.json (events)</a>
<a href="/v1/event-types">event types</a>
</header>
<div class="frame">
<nav aria-label="Sections"><ul>${nav.join('')}</ul></nav>
<main id="main" tabindex="-1">
<h1>${esc(title)}</h1>
${main}
</main>
</div>
</body>
</html>
`;
    // Relative, because the path of the API can begin with the name of a stage.
    return html.replace(/ (href|src)="\//g, ` $1="${name === START_PAGE ? '' : '../'}`);
  }

  function start(): string {
    const groups = document.tags.map(
      ({ name, description }) =>
        `<div class="group" data-tag="${esc(name)}"><h3>${link(toPath(toPageName(name)), esc(name))}</h3>${text(description)}${list(byTag.get(name))}</div>`,
    );
    const schemes = Object.values(securitySchemes).map(
      ({ description }) => `<li>${inline(description)}</li>`,
    );
    const kinds = Object.entries(problems).map(([kind, { status }]) =>
      row(
        `${code(kind)}<small>${status}${generalProblems.includes(kind) ? ' · general' : ''}</small>`,
        inline(meanings[kind as ProblemKind]),
        `problem-${kind}`,
      ),
    );
    return `${text(document.info.description)}
<section>${heading('Authentication', 'authentication')}
<p>Send an API key or an ID token in each request, except to operations without authentication:</p>
${block('Authorization: Bearer $JOBWIRE_API_KEY')}
<ul>${schemes.join('')}</ul>
<p>The commands on these pages use two variables: ${code('$JOBWIRE_URL')} is the base URL of this API, and ${code('$JOBWIRE_API_KEY')} is the key. A self-hosted Jobwire whose configuration has no key generates one, in the file ${code('api-key')} of its data folder.</p>
<p>Each operation states the role that it requires. The role ${code('operate')} includes ${code('read')}, and ${code('admin')} includes both.</p></section>
<section>${heading('Operations', 'operations')}
<search><label for="filter">Search operations</label><input id="filter" type="search" autocomplete="off" spellcheck="false"><div id="found" class="muted" role="status"></div></search>
${groups.join('')}</section>
<section>${heading('Errors', 'errors')}
<p>The body of an error is ${link(toSchemaHref('Problem'), 'problem details')} with the media type ${code(PROBLEM)}. The last part of its ${code('type')} is one of these names. Each operation that requires a role can return the general errors. Its section lists only its other errors.</p>
${table('Problem type', kinds)}</section>
<section>${heading('Response headers', 'headers')}
${table(
  'Header',
  Object.entries(headers).map(([name, header]) => {
    const statuses = generalHeaders.get(name) ?? [];
    const suffix = statuses.length === byStatus.size ? '' : ` with status ${statuses.join(', ')}`;
    const note = statuses.length > 0 ? ` · in every response${suffix}` : '';
    return field(name, header.schema, { ...header, id: `header-${name}`, note });
  }),
)}</section>`;
  }

  function list(group: readonly Place[] = []): string {
    const items = group.map(({ operation, method, path }) => {
      // Paths wrap at slashes.
      const subject = esc(path ?? operation.summary).replace(/(?<=.)\//g, '<wbr>/');
      const parts = [
        path !== null && verb(method),
        `<code>${subject}</code>`,
        path !== null && `<span class="summary">${esc(operation.summary)}</span>`,
      ];
      return `<li data-id="${esc(operation.operationId)}">${link(toHref(operation), parts.filter(Boolean).join(' '))}</li>`;
    });
    return `<ul class="operations${group[0]?.path === null ? ' names' : ''}">${items.join('')}</ul>`;
  }

  function operationSection({ operation, method, path }: Place): string {
    const { operationId, summary, description, parameters = [], requestBody, responses } = operation;
    const role = operation['x-role'];
    const rows = Object.entries(responses).flatMap((one) => responseRow(one, role ? generalProblems : []));
    const rare = Object.entries(responses).flatMap(([status, { headers = {} }]) =>
      Object.keys(headers).filter(
        (name) => headers[name]?.$ref && !generalHeaders.get(name)?.includes(status),
      ),
    );
    const notes = [
      role && `Also: ${link('/docs#errors', 'general errors')}.`,
      rare.length > 0 &&
        `Headers: ${[...new Set(rare)].map((name) => link(`/docs#header-${name}`, esc(name))).join(', ')}.`,
    ].filter(Boolean);
    const parts = [
      heading(summary, operationId),
      `<p class="request">${verb(method)} <code>${esc(path)}</code></p>`,
      `<p class="muted">${role ? `Role: ${code(role)}` : 'No authentication'} · ${code(operationId)}</p>`,
      text(description),
      `<div class="curl">${block(curl(operation, method, path ?? ''))}</div>`,
      tables(parameters.map((one) => parameterRow('Parameters', one))),
      requestBody && bodySection(requestBody),
      tables(rows),
      notes.length > 0 && `<p>${notes.join(' ')}</p>`,
    ];
    return `<section>${parts.filter(Boolean).join('\n')}</section>\n`;
  }

  /** Renders webhooks: what many of them have in common, then what is special about each. */
  function webhookSections(): string {
    const all = webhooks.map(({ operation }) => ({ operation, rows: webhookRows(operation) }));
    const counts = Map.groupBy(
      all.flatMap(({ rows }) => rows),
      getHtml,
    );
    const count = (html: string) => counts.get(html)?.length ?? 0;
    // Of rows with the same name, only the most frequent one, because the types refer to it by that name.
    const isMostFrequent = ({ name, html }: Row) =>
      [...counts.values()].every(([other]) => other?.name !== name || count(other.html) <= count(html));
    // Not without the object that contains it.
    const hasCommonParent = ({ name, html }: Row) =>
      all.some(
        ({ rows }) =>
          rows.some((row) => row.html === html) &&
          rows.every((row) => !name.startsWith(`${row.name}.`) || isMostFrequent(row)),
      );
    const isCommon = (row: Row) =>
      count(row.html) > all.length / 4 && isMostFrequent(row) && hasCommonParent(row);
    const isInAll = ({ name }: Row) => all.every(({ rows }) => rows.some((row) => row.name === name));
    const common = [...counts.values()]
      .flatMap(([row]) => (row && isCommon(row) ? [row] : []))
      .map((row) => (isInAll(row) ? row : { ...row, title: `${row.title} of some types` }));
    const optional = new Set(common.filter((row) => !isInAll(row)).map(getHtml));
    const sections = all.map(({ operation, rows }) => {
      const names = rows.filter(({ html }) => optional.has(html)).map(({ name }) => code(name));
      const { data = {} } = resolve(getBody(operation).schema).properties ?? {};
      return `<section>${heading(operation.summary, operation.operationId)}
<p class="muted">${code(operation.operationId)} · Schema of ${code('data')}: ${renderType(data)}</p>
${text(operation.description)}${names.length > 0 ? `<p>With ${names.join(', ')}.</p>` : ''}${tables(rows.filter((row) => !isCommon(row)))}</section>
`;
    });
    const [{ type, example } = {}] = webhooks.map(({ operation }) => getBody(operation));
    return `<section>${heading('All event types', 'all-event-types')}
<p class="request">${verb('POST')} URL of the endpoint</p>
<p>${code(type)}. The section of each event type states which rows of the table “Fields of some types” apply to it, and what is different or additional.</p>
${tables(common)}${details('Example', block(json(example)))}</section>
${sections.join('')}`;
  }

  /** Returns the rows of a webhook. Fields of named schemas within `data` are links. */
  function webhookRows(webhook: Operation): Row[] {
    return [
      ...(webhook.parameters ?? []).map((one) => parameterRow('Headers', one)),
      ...toRows(getBody(webhook).schema, 2).map((row) => {
        const general = generalFields[row.name];
        return general ? { ...row, html: field(row.name, general, general) } : row;
      }),
      ...Object.entries(webhook.responses).flatMap((one) => responseRow(one, [])),
    ];
  }

  function parameterRow(title: string, { name, schema, in: from, required, description }: Parameter): Row {
    const note = `${title === 'Headers' ? '' : ` · ${esc(from)}`}${required ? REQUIRED : ''}`;
    return { title, name, html: field(name, schema, { description, note }) };
  }

  /** Renders a request body. All its media types have the same fields. */
  function bodySection({ required, content }: NonNullable<Operation['requestBody']>): string {
    const [{ schema } = { schema: {} }] = Object.values(content);
    const types = Object.keys(content).map(code).join(' or ');
    return `<h3>Request body</h3><p>${types}${required ? '' : ', optional'}</p>${fields(schema, Number.POSITIVE_INFINITY)}`;
  }

  /** Renders a response as a table row. Returns none if it has only the problem types `omitted`. */
  function responseRow([status, response]: [string, Response], omitted: readonly string[]): Row[] {
    const { description, headers = {}, content = {}, 'x-problems': kinds } = response;
    const parts = Object.entries(content)
      .filter(([type]) => type !== PROBLEM)
      .map(
        ([type, { schema }]) =>
          `<div>${code(type)}: ${renderType(schema)}${renderItems(schema)}${fields(schema, 0)}</div>`,
      );
    const links = (kinds ?? [])
      .filter((kind) => !omitted.includes(kind))
      .map((kind) => link(`/docs#problem-${kind}`, code(kind)));
    if (kinds && links.length + parts.length === 0) return [];
    const own = Object.entries(headers).flatMap(([name, { $ref, description = '' }]) =>
      $ref ? [] : `<li>${code(name)}: ${inline(description)}</li>`,
    );
    const html = `${kinds ? `<p>${links.join(', ')}</p>` : text(description)}${parts.join('')}${own.length > 0 ? `<ul>${own.join('')}</ul>` : ''}`;
    return [{ title: 'Responses', name: status, html: row(code(status), html) }];
  }

  /** Renders links to the schemas of items, such as those of a page. */
  function renderItems(schema: JsonSchema): string {
    const all = Object.values((schema.$ref && resolve(schema).properties) || {});
    const items = all.flatMap((one) => (one.items?.$ref ? renderType(one.items) : []));
    return items.length > 0 ? ` with ${items.join(', ')}` : '';
  }

  function schemaIndex(): string {
    const names = Object.keys(schemas).filter((name) => !getEvent(name));
    const items = names.sort().map((name) => `<li>${link(toSchemaHref(name), esc(name))}</li>`);
    return `<ul class="operations names">${items.join('')}</ul>`;
  }

  /** Returns the webhook whose body has a schema. */
  function getEvent(name: string): Operation | undefined {
    const isBody = ({ operation }: Place) => getRefName(getBody(operation).schema.$ref ?? '') === name;
    return webhooks.find(isBody)?.operation;
  }

  function schemaSection(name: string): string {
    const $ref = `#/components/schemas/${name}`;
    const event = getEvent(name);
    if (event)
      return `<section>${heading(name, name)}<p>Event: ${link(toHref(event), code(event.summary))}</p></section>`;
    const schema = resolve({ $ref });
    const rows = fields({ $ref }, 1);
    return `<section>${heading(name, name)}${text(schema.description)}${rows && schema.type === 'object' ? '' : `<p>${renderType(schema)}</p>`}${rows}</section>`;
  }

  function resolve(schema: JsonSchema): JsonSchema {
    return schema.$ref === undefined ? schema : (schemas[getRefName(schema.$ref)] ?? {});
  }

  function fields(schema: JsonSchema, depth: number): string {
    const rows = toRows(schema, depth).map(getHtml);
    return rows.length === 0 ? '' : table('Name', rows);
  }

  /** `depth`: number of nested named schemas that are expanded. Others are links. Request bodies expand all. */
  function toRows(schema: JsonSchema, depth: number, prefix = '', within: readonly string[] = []): Row[] {
    const { $ref, properties = {}, required = [], items, additionalProperties: map, anyOf, oneOf } = schema;
    const rest = (one: JsonSchema, path: string) => toRows(one, depth, path, within);
    if ($ref !== undefined) {
      if (within.includes($ref) || within.length >= depth) return [];
      return toRows(resolve(schema), depth, prefix, [...within, $ref]);
    }
    const alternatives = (anyOf ?? oneOf ?? [])
      .map((part) => rest(part, prefix))
      .filter((rows) => rows.length > 0);
    const [ifRequired, ifOptional] =
      depth === Number.POSITIVE_INFINITY ? [REQUIRED, ''] : ['', ' · optional'];
    return [
      ...Object.entries(properties).flatMap(([name, property]) => {
        const note = required.includes(name) ? ifRequired : ifOptional;
        const description = property.description ?? resolve(property).description;
        const html = field(name, property, { description, prefix, note });
        return [{ title: 'Fields', name: `${prefix}${name}`, html }, ...rest(property, `${prefix}${name}.`)];
      }),
      ...(items ? rest(items, `${prefix.replace(/\.$/, '')}[].`) : []),
      ...(typeof map === 'object' ? rest(map, `${prefix}*.`) : []),
      ...alternatives.flatMap((rows, at) => [
        ...(alternatives.length > 1 ? [toCaption(at === 0 ? 'Either:' : 'Or:')] : []),
        ...rows,
      ]),
    ];
  }

  /** Renders a field, a parameter or a header. `note` is HTML. */
  function field(
    name: string,
    schema: JsonSchema,
    { description, prefix = '', note = '', id }: FieldParts,
  ): string {
    const stated = description?.replaceAll('`', '') ?? '';
    // A limit that the description states is not repeated.
    const limits = renderLimits(schema).filter((limit) => {
      const [before, after] = stated.split(limit.replace(/<[^>]+>|\.$/g, ''), 2);
      return after === undefined || /\w$/.test(before ?? '') || /^\w/.test(after);
    });
    const wrap = (part: string) => esc(part).replace(/(?<=[a-z])(?=[A-Z])|(?<=\.)/g, '<wbr>');
    const before = prefix && `<span class="prefix">${wrap(prefix)}</span>`;
    return row(
      `<code>${before}${wrap(name)}</code><small>${renderType(schema)}${note}</small>`,
      `${text(description)}${limits.length > 0 ? `<small>${limits.join(' ')}</small>` : ''}`,
      id,
    );
  }

  /** Renders code and emphasis. Names of operations become links. */
  function inline(source: string): string {
    return esc(source)
      .replace(/`([^`]+)`/g, (_, name: string) => withLink(name, `<code>${name}</code>`))
      .replace(/(?<![\w*])\*([^*`<>]+)\*(?![\w*])/g, (_, name: string) => withLink(name, `<em>${name}</em>`));
  }

  function withLink(name: string, html: string): string {
    const href = named.get(name);
    return href === undefined ? html : link(href, html);
  }

  /** Renders the Markdown of descriptions: paragraphs, lists, code and emphasis. */
  function text(source = ''): string {
    return source
      .split(/\n{2,}/)
      .filter((block) => block !== '')
      .map((block) => {
        const items = block.split(/^- /m);
        if (items.length === 1) return `<p>${inline(block)}</p>`;
        const [before = '', ...rest] = items;
        return `${before.trim() && `<p>${inline(before.trim())}</p>`}<ul>${rest.map((item) => `<li>${inline(item.trim())}</li>`).join('')}</ul>`;
      })
      .join('');
  }

  function toHref({ tags: [tag = ''], operationId }: Operation): string {
    return `${toPath(toPageName(tag))}#${operationId}`;
  }

  function curl(operation: Operation, method: string, path: string): string {
    const query = (operation.parameters ?? [])
      .filter((one) => one.in === 'query' && one.required)
      .map(({ name }) => `${name}=${toPlaceholder(name)}`);
    const url = `$JOBWIRE_URL${path.replace(/\{(\w+)\}/g, (_, name: string) => toPlaceholder(name))}${query.length > 0 ? `?${query.join('&')}` : ''}`;
    const isStream = Object.values(operation.responses).some(({ content }) => content?.['text/event-stream']);
    const body = operation.requestBody?.content['application/json'];
    const data = body && json(body.example ?? toSample(body.schema, { schemas, examples }));
    return [
      `curl${isStream ? ' --no-buffer' : ''}${method === 'GET' ? '' : ` -X ${method}`} "${url}"`,
      ...(operation['x-role'] ? ['-H "Authorization: Bearer $JOBWIRE_API_KEY"'] : []),
      ...(data ? ["-H 'Content-Type: application/json'", `-d '${data.replaceAll("'", "'\\''")}'`] : []),
    ].join(' \\\n  ');
  }
}

const REQUIRED = ' · <span class="required">required</span>';

/** Returns `JOB_NUMBER` for `jobNumber`. */
function toPlaceholder(name: string): string {
  return name.replace(/(?<=[a-z])(?=[A-Z])/g, '_').toUpperCase();
}
