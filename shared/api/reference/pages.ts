/**
 * Serves the API reference at `/docs`: static pages, a stylesheet and a script, rendered by `render.ts` when Jobwire is built.
 * The pages send no request to other hosts, and their policy allows none.
 */
import { createHash } from 'node:crypto';
import type { StaticBody } from '../static-body.ts';

/** A body with its headers. */
export interface ReferenceAnswer {
  readonly body: StaticBody;
  readonly headers: Readonly<Record<string, string>>;
}

/** The pages and their assets. All methods reject if a file cannot be read. */
export interface Reference {
  /** Returns the page at `/docs/{page}`, by default the one at `/docs`. `undefined`: it does not exist. */
  page(page?: string): Promise<ReferenceAnswer | undefined>;
  /** Returns the asset at `/docs/assets/{version}/{name}`. `undefined`: it does not exist. */
  asset(version: string, name: string): Promise<ReferenceAnswer | undefined>;
}

/** Name of the page at `/docs`. */
export const START_PAGE = 'index';

/** Name of the page with all schemas. */
export const SCHEMAS_PAGE = 'schemas';

/** Name of the page with the webhooks. */
const WEBHOOKS_PAGE = 'webhooks';

/** Media types of the assets, by name. */
const assetTypes: Readonly<Record<string, string>> = {
  'page.css': 'text/css; charset=utf-8',
  'page.js': 'text/javascript; charset=utf-8',
};

/** Returns the name of the page of a tag. */
export const toPageName = (tag: string): string => tag.toLowerCase();

/** Returns the name of the file that contains a page. */
export const toPageFile = (page: string): string => `docs-${page}.html`;

/** Returns the name of the file that contains an asset. */
export const toAssetFile = (name: string): string => `docs-${name}`;

/** Returns the version of an asset in its address, which changes with its content. */
export const getAssetVersion = (content: string | Uint8Array): string =>
  createHash('sha256').update(content).digest('hex').slice(0, 12);

const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  // The empty icon.
  'img-src data:',
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

/** `load` returns a file by name. `tags`: names of the tags, each of which has a page. */
export function createReference(
  load: (name: string) => Promise<StaticBody>,
  tags: readonly string[],
): Reference {
  const pages = new Set([START_PAGE, SCHEMAS_PAGE, WEBHOOKS_PAGE, ...tags.map(toPageName)]);
  return {
    async page(page = START_PAGE) {
      if (!pages.has(page)) return undefined;
      return {
        body: await load(toPageFile(page)),
        headers: {
          'content-type': 'text/html; charset=utf-8',
          'content-security-policy': POLICY,
          'referrer-policy': 'no-referrer',
          'cache-control': 'no-cache',
        },
      };
    },
    async asset(version, name) {
      const type = Object.hasOwn(assetTypes, name) ? assetTypes[name] : undefined;
      if (type === undefined) return undefined;
      const body = await load(toAssetFile(name));
      if (version !== getAssetVersion(body.plain)) return undefined;
      return {
        body,
        headers: { 'content-type': type, 'cache-control': 'public, max-age=31536000, immutable' },
      };
    },
  };
}
