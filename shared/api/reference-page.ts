/**
 * The page at `/docs`: the OpenAPI document to read and to try out, by Swagger UI. Everything comes from here: no request goes
 * to anybody else, and the page's policy lets none. Keys that are typed in stay in the page and go with it.
 */
import { createHash } from 'node:crypto';
import { type StaticBody, toStaticBody } from './static-body.ts';

/** A file of `swagger-ui-dist` that the page needs. */
export interface ReferenceFile {
  /** As it is served, and as it is named where files are copied to. */
  readonly name: string;
  /** From `node_modules`. */
  readonly source: string;
}

/** The files that have to be there: in `node_modules`, or copied beside the program by their names. */
export const referenceFiles: readonly ReferenceFile[] = [
  { name: 'swagger-ui.css', source: 'swagger-ui-dist/swagger-ui.css' },
  { name: 'swagger-ui-bundle.js', source: 'swagger-ui-dist/swagger-ui-bundle.js' },
];

/** The version of those files: it stands in their addresses. A test compares it with what is installed. */
export const SWAGGER_UI_VERSION = '5.35.0';

/** A body with its headers. */
export interface ReferenceAnswer {
  readonly body: StaticBody;
  readonly headers: Readonly<Record<string, string>>;
}

/** The page and what belongs to it. */
export interface Reference {
  /** What `/docs` answers. */
  page(): ReferenceAnswer;
  /**
   * What `/docs/assets/{version}/{name}` answers; `undefined` for anything else. Rejects when a file can't be read.
   */
  asset(version: string, name: string): Promise<ReferenceAnswer | undefined>;
}

const START = `const dark = matchMedia('(prefers-color-scheme: dark)');
const paint = () => document.documentElement.classList.toggle('dark-mode', dark.matches);
paint();
dark.addEventListener('change', paint);
// Swagger UI resolves all references of the document, two seconds of CPU time, when it is asked for a part of it. At the start, it asks for
// the security schemes, which have no references.
const requestResolvedSubtree = (resolve) => (path) => (path[0] === 'components' ? undefined : resolve(path));
SwaggerUIBundle({
  url: '/openapi.json',
  dom_id: '#reference',
  presets: [SwaggerUIBundle.presets.apis],
  plugins: [{ statePlugins: { spec: { wrapActions: { requestResolvedSubtree } } } }],
  layout: 'BaseLayout',
  deepLinking: true,
  docExpansion: 'none',
  defaultModelsExpandDepth: 0,
  defaultModelRendering: 'model',
  displayRequestDuration: true,
  filter: true,
  persistAuthorization: false,
  queryConfigEnabled: false,
  tryItOutEnabled: false,
  validatorUrl: null,
});
`;

const STYLE = `:root { color-scheme: light dark; }
body { margin: 0; background: #fff; color: #1f2328; font: 15px/1.5 system-ui, sans-serif; }
.top { display: flex; flex-wrap: wrap; gap: 4px 20px; align-items: baseline; padding: 12px 20px; border-bottom: 1px solid #d0d7de; }
.top strong { font-size: 17px; }
.top a { color: #0550ae; }
.top a:focus-visible { outline: 2px solid #0550ae; outline-offset: 2px; }
#reference > p { padding: 0 20px; }
/* Long paths and names wrap on narrow screens. */
.swagger-ui .wrapper { padding: 0 20px; box-sizing: border-box; }
.swagger-ui .opblock .opblock-summary-path { overflow-wrap: anywhere; word-break: normal; }
.swagger-ui table { table-layout: auto; }
@media (max-width: 640px) {
  .swagger-ui .wrapper, .top { padding-left: 12px; padding-right: 12px; }
  .swagger-ui .opblock .opblock-summary { flex-wrap: wrap; }
  .swagger-ui .opblock .opblock-summary-description { flex-basis: 100%; padding: 2px 0 4px; }
  .swagger-ui .info { margin: 24px 0; }
  .swagger-ui .info .title { font-size: 26px; }
  .swagger-ui .opblock-body, .swagger-ui .model-box { overflow-x: auto; }
}
@media (prefers-color-scheme: dark) {
  body { background: #1c2022; color: #e6edf3; }
  .top { border-color: #3d444d; }
  .top a { color: #79c0ff; }
  .top a:focus-visible { outline-color: #79c0ff; }
}
`;

const own: Readonly<Record<string, string>> = { 'start.js': START, 'page.css': STYLE };
const types: Readonly<Record<string, string>> = {
  js: 'text/javascript; charset=utf-8',
  css: 'text/css; charset=utf-8',
};

/** Changes with every byte that is served under it. */
const VERSION = `${SWAGGER_UI_VERSION}-${createHash('sha256').update(JSON.stringify(own)).digest('hex').slice(0, 12)}`;

const asset = (name: string) => `/docs/assets/${VERSION}/${name}`;

const PAGE = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Jobwire API</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="${asset('swagger-ui.css')}">
<link rel="stylesheet" href="${asset('page.css')}">
<script defer src="${asset('swagger-ui-bundle.js')}"></script>
<script defer src="${asset('start.js')}"></script>
</head>
<body>
<header class="top">
<strong>Jobwire API</strong>
<a href="/openapi.json">openapi.json</a>
<a href="/asyncapi.json">asyncapi.json (events)</a>
<a href="/v1/event-types">event types</a>
</header>
<main id="reference"><noscript><p>This page takes JavaScript. The documents above say the same.</p></noscript></main>
</body>
</html>
`;

/**
 * No script, style or request but our own. Swagger UI draws arrows and locks as `data:` images; its styles are set by script on
 * single elements, which a policy does not concern.
 */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

/** `read` returns one of {@link referenceFiles}; each is read once. */
export function createReference(read: (file: ReferenceFile) => Promise<Uint8Array<ArrayBuffer>>): Reference {
  const bodies = new Map<string, Promise<StaticBody>>();
  let page: StaticBody | undefined;

  async function load(name: string, file: ReferenceFile | undefined): Promise<StaticBody> {
    return toStaticBody(file ? await read(file) : (own[name] ?? ''));
  }

  return {
    page() {
      page ??= toStaticBody(PAGE);
      return {
        body: page,
        headers: {
          'content-type': 'text/html; charset=utf-8',
          'content-security-policy': POLICY,
          'referrer-policy': 'no-referrer',
          'cache-control': 'no-cache',
        },
      };
    },
    async asset(version, name) {
      const file = referenceFiles.find((one) => one.name === name);
      if (version !== VERSION || (!file && !Object.hasOwn(own, name))) return undefined;
      let loading = bodies.get(name);
      if (!loading) {
        loading = load(name, file);
        bodies.set(name, loading);
        // What could not be read is tried again.
        loading.catch(() => bodies.delete(name));
      }
      return {
        body: await loading,
        headers: {
          'content-type': types[name.slice(name.lastIndexOf('.') + 1)] ?? 'application/octet-stream',
          'cache-control': 'public, max-age=31536000, immutable',
        },
      };
    },
  };
}
