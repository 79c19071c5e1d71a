/**
 * Renders the OpenAPI document as the static HTML pages of the API reference: a start page, one page for each tag, and one with all
 * schemas. Only builds and checkouts render; a process serves the files (`pages.ts`, docs/decisions/0081-static-api-reference.md).
 */
import { readFileSync } from 'node:fs';
import type { JsonSchema } from '../../json-schema.ts';
import { meanings } from '../problem-meanings.ts';
import { type ProblemKind, problems } from '../problems.ts';
import { getAssetVersion, SCHEMAS_PAGE, START_PAGE, toAssetFile, toPageFile, toPageName } from './pages.ts';
import { code, esc, limitsOf, link, nameOf, toSample, toSchemaHref, typeOf } from './schema.ts';

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

interface Place {
  readonly operation: Operation;
  readonly method: string;
  /** Of a webhook: `null`. */
  readonly path: string | null;
}

const PROBLEM = 'application/problem+json';

const block = (text: string) => `<pre><code>${esc(text)}</code></pre>`;
const json = (value: unknown) => JSON.stringify(value, null, 2);
const details = (summary: string, html: string) =>
  `<details><summary>${esc(summary)}</summary>${html}</details>`;
const toPath = (page: string) => (page === START_PAGE ? '/docs' : `/docs/${page}`);
const table = (heads: readonly string[], rows: readonly string[], kind = '') =>
  `<table${kind && ` class="${kind}"`}><thead><tr>${heads.map((head) => `<th scope="col">${head}</th>`).join('')}</tr></thead><tbody>${rows.join('')}</tbody></table>`;
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
  const places = [
    ...Object.entries(document.paths).flatMap(([path, item]) => toPlaces(item, path)),
    ...Object.values(document.webhooks).flatMap((item) => toPlaces(item, null)),
  ];
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
      .flatMap(({ schema, example }) => (schema.$ref && example ? [[nameOf(schema.$ref), example]] : [])),
  );
  const assets = ['page.css', 'page.js'].map(
    (name) => [name, readFileSync(new URL(name, import.meta.url), 'utf8')] as const,
  );
  const [style, script] = assets.map(([name, content]) => `/docs/assets/${getAssetVersion(content)}/${name}`);

  return new Map([
    [toPageFile(START_PAGE), page(START_PAGE, `${document.info.title} API`, start())],
    ...document.tags.map(({ name, description }) => {
      const group = byTag.get(name) ?? [];
      const main = `${text(description)}${list(group)}${group.map(operationSection).join('')}`;
      return [toPageFile(toPageName(name)), page(toPageName(name), name, main)] as const;
    }),
    [
      toPageFile(SCHEMAS_PAGE),
      page(SCHEMAS_PAGE, 'Schemas', Object.entries(schemas).map(schemaSection).join('')),
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
      row(`${code(kind)}<small>${status}</small>`, inline(meanings[kind as ProblemKind]), `problem-${kind}`),
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
<p>The body of an error is ${link(toSchemaHref('Problem'), 'problem details')} with the media type ${code(PROBLEM)}. The last part of its ${code('type')} is one of these names:</p>
${table(['Problem type', 'Meaning'], kinds)}</section>
<section>${heading('Response headers', 'headers')}
${table(
  ['Header', 'Description'],
  Object.entries(headers).map(([name, header]) =>
    field(name, header.schema, { ...header, id: `header-${name}` }),
  ),
)}</section>`;
  }

  function list(group: readonly Place[] = []): string {
    const items = group.map(({ operation, method, path }) => {
      // Paths wrap at slashes.
      const subject = esc(path ?? 'URL of the endpoint').replace(/(?<=.)\//g, '<wbr>/');
      const parts = [
        verb(method),
        `<code>${subject}</code>`,
        `<span class="summary">${esc(operation.summary)}</span>`,
      ];
      return `<li data-id="${esc(operation.operationId)}">${link(toHref(operation), parts.join(' '))}</li>`;
    });
    return `<ul class="operations">${items.join('')}</ul>`;
  }

  function operationSection(place: Place): string {
    const { operation, method, path } = place;
    const { operationId, summary, description, parameters = [], requestBody, responses } = operation;
    const role = operation['x-role'];
    const responseList = Object.entries(responses);
    const failures = responseList.filter(([, response]) => response['x-problems']);
    const parts = [
      heading(summary, operationId),
      `<p class="request">${verb(method)} ${path === null ? 'URL of the endpoint' : `<code>${esc(path)}</code>`}</p>`,
      `<p class="muted">${path === null ? '' : role ? `Role: ${code(role)} · ` : 'No authentication · '}${code(operationId)}</p>`,
      text(description),
      path === null ? '' : `<div class="curl">${block(curl(place, path))}</div>`,
      parameters.length > 0 &&
        `<h3>Parameters</h3>${table(['Parameter', 'Description'], parameters.map(parameterRow))}`,
      requestBody && bodySection(requestBody, path === null),
      ...responseList.filter((one) => !failures.includes(one)).map(responseSection),
      failures.length > 0 &&
        `<h3>Errors</h3>${table(['Status', 'Problem types and headers'], failures.map(failureRow), 'errors')}`,
    ];
    return `<section>${parts.filter(Boolean).join('\n')}</section>\n`;
  }

  function parameterRow({ name, schema, in: from, required, description }: Parameter): string {
    return field(name, schema, { description, note: ` · ${esc(from)}${required ? REQUIRED : ''}` });
  }

  /** Renders a request body. All its media types have the same fields. */
  function bodySection(
    { required, content }: NonNullable<Operation['requestBody']>,
    withExample: boolean,
  ): string {
    const [{ schema, example } = { schema: {} }] = Object.values(content);
    const types = Object.keys(content).map(code).join(' or ');
    return `<h3>Request body</h3><p>${types}${required ? '' : ', optional'}</p>${fields(schema, { expand: true, input: true })}${withExample ? details('Example', block(json(example))) : ''}`;
  }

  function responseSection([status, { description, headers, content = {} }]: [string, Response]): string {
    const bodies = Object.entries(content).map(([type, { schema }]) => {
      const sample = toSample(schema, { schemas, examples });
      const rows = fields(schema, { expand: true });
      return [
        `<p>${code(type)}: ${typeOf(schema)}</p>`,
        rows && details(`Fields of the response ${status}`, rows),
        typeof sample === 'object' && details(`Example of the response ${status}`, block(json(sample))),
      ].filter(Boolean);
    });
    return `<h3>Response ${code(status)}</h3>${text(description)}${headerList(headers)}${bodies.flat().join('')}`;
  }

  function failureRow([status, response]: [string, Response]): string {
    const kinds = (response['x-problems'] ?? []).map((kind) => link(`/docs#problem-${kind}`, code(kind)));
    const others = Object.keys(response.content ?? {}).filter((type) => type !== PROBLEM);
    return row(
      code(status),
      `<p>${kinds.join(', ')}${others.map((type) => `, or ${code(type)}`).join('')}</p>${headerList(response.headers)}`,
    );
  }

  function headerList(all: Response['headers'] = {}): string {
    const entries = Object.entries(all);
    const shared = entries
      .filter(([, { $ref }]) => $ref)
      .map(([name]) => link(`/docs#header-${name}`, esc(name)));
    const own = entries
      .filter(([, { $ref }]) => !$ref)
      .map(([name, { description = '' }]) => `<li>${code(name)}: ${inline(description)}</li>`);
    return `${shared.length > 0 ? `<small>Headers: ${shared.join(', ')}</small>` : ''}${own.length > 0 ? `<ul>${own.join('')}</ul>` : ''}`;
  }

  function schemaSection([name, schema]: [string, JsonSchema]): string {
    return `<section>${heading(name, name)}${text(schema.description)}<p>${typeOf(schema)}</p>${fields(schema, { expand: false })}</section>`;
  }

  /** Renders the fields of a schema as a table. `expand`: also those of named schemas, which are links otherwise. */
  function fields(
    schema: JsonSchema,
    { expand, input = false }: { expand: boolean; input?: boolean },
  ): string {
    const rows = rowsOf(schema, '', []);
    return rows.length === 0 ? '' : table(['Field', 'Description'], rows);

    function rowsOf(one: JsonSchema, prefix: string, within: readonly string[]): string[] {
      if (one.$ref !== undefined) {
        const target = schemas[nameOf(one.$ref)];
        const isTop = prefix === '' && within.length === 0;
        if (!target || within.includes(one.$ref) || !(expand || isTop)) return [];
        return rowsOf(target, prefix, [...within, one.$ref]);
      }
      const { properties = {}, required = [], items, additionalProperties: map, anyOf = [] } = one;
      return [
        ...Object.entries(properties).flatMap(([name, property]) => {
          const isRequired = required.includes(name);
          const note = input ? (isRequired ? REQUIRED : '') : isRequired ? '' : ' · optional';
          const description = property.description ?? schemas[nameOf(property.$ref ?? '')]?.description;
          return [
            field(name, property, { description, prefix, note }),
            ...rowsOf(property, `${prefix}${name}.`, within),
          ];
        }),
        ...(items ? rowsOf(items, `${prefix.replace(/\.$/, '')}[].`, within) : []),
        ...(typeof map === 'object' ? rowsOf(map, `${prefix}*.`, within) : []),
        ...anyOf.flatMap((part) => rowsOf(part, prefix, within)),
      ];
    }
  }

  /** Renders a field, a parameter or a header. `note` is HTML. */
  function field(
    name: string,
    schema: JsonSchema,
    { description, prefix = '', note = '', id }: FieldParts,
  ): string {
    const stated = description?.replaceAll('`', '') ?? '';
    // A limit that the description states is not repeated.
    const limits = limitsOf(schema).filter((limit) => {
      const [before, after] = stated.split(limit.replace(/<[^>]+>|\.$/g, ''), 2);
      return after === undefined || /\w$/.test(before ?? '') || /^\w/.test(after);
    });
    const wrap = (part: string) => esc(part).replace(/(?<=[a-z])(?=[A-Z])|(?<=\.)/g, '<wbr>');
    const before = prefix && `<span class="prefix">${wrap(prefix)}</span>`;
    return row(
      `<code>${before}${wrap(name)}</code><small>${typeOf(schema)}${note}</small>`,
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

  function curl({ operation, method }: Place, path: string): string {
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
