/** Serves the built files of the dashboard. `shared/dashboard-headers.ts` defines paths and headers. */
import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import {
  FILE_HEADERS,
  findFallbackFile,
  findFile,
  getCacheControl,
  getContentPolicy,
  getContentType,
} from '../shared/dashboard-headers.ts';

/** Folder beside the packaged program that contains the built files. */
export const PACKED_DASHBOARD = 'dashboard';

/**
 * Serves requests for the dashboard and passes all others to `others`. If `others` responds with not found to a browser that navigates to a
 * page, the response is the dashboard page, which reports that the page does not exist.
 */
export type Dashboard = (
  request: Request,
  others: () => Response | Promise<Response>,
) => Response | Promise<Response>;

interface CachedFile {
  readonly plain: Uint8Array<ArrayBuffer>;
  readonly packed: Uint8Array<ArrayBuffer>;
  readonly etag: string;
}

/**
 * Serves from the folder beside the program. In a checkout, the first request builds the dashboard and requests wait for it. Files are
 * cached in memory once read.
 */
export function createDashboard(): Dashboard {
  const files = new Map<string, Promise<CachedFile | undefined>>();
  let folder: Promise<string> | undefined;

  async function read(file: string): Promise<CachedFile | undefined> {
    folder ??= findBuild();
    const from = await folder.catch((cause: unknown) => {
      folder = undefined;
      throw cause;
    });
    try {
      const plain = new Uint8Array(await readFile(join(from, file)));
      const packed = new Uint8Array(await promisify(gzip)(plain));
      const etag = `"${createHash('sha256').update(plain).digest('base64url').slice(0, 22)}"`;
      return { plain, packed, etag };
    } catch (cause) {
      if ((cause as NodeJS.ErrnoException).code === 'ENOENT') return undefined;
      throw cause;
    }
  }

  async function answer(request: Request, file: string): Promise<Response> {
    const reading = files.get(file) ?? read(file);
    files.set(file, reading);
    const found = await reading.catch((cause: unknown) => {
      files.delete(file);
      throw cause;
    });
    if (!found) {
      // Requests can name any number of missing files.
      files.delete(file);
      return new Response('File not found.\n', { status: 404, headers: FILE_HEADERS });
    }
    const packs = /\bgzip\b/.test(request.headers.get('accept-encoding') ?? '');
    const headers = {
      ...FILE_HEADERS,
      'content-type': getContentType(file),
      'content-security-policy': getContentPolicy(file),
      'cache-control': getCacheControl(file),
      etag: found.etag,
      vary: 'accept-encoding',
    };
    if (request.headers.get('if-none-match') === found.etag) {
      return new Response(null, { status: 304, headers });
    }
    const body = request.method === 'HEAD' ? null : packs ? found.packed : found.plain;
    return new Response(body, { headers: packs ? { ...headers, 'content-encoding': 'gzip' } : headers });
  }

  async function serve(request: Request, file: string): Promise<Response> {
    try {
      return await answer(request, file);
    } catch (cause) {
      console.error(`Could not serve the dashboard: ${cause instanceof Error ? cause.message : cause}`);
      return new Response('The dashboard could not be built. The reason is on the terminal.\n', {
        status: 500,
      });
    }
  }

  return async (request, others) => {
    if (request.method !== 'GET' && request.method !== 'HEAD') return others();
    const { pathname } = new URL(request.url);
    const file = findFile(pathname);
    if (file !== undefined) return serve(request, file);
    const answered = await others();
    const page = findFallbackFile(pathname, request.headers.get('accept') ?? '');
    return answered.status === 404 && page !== undefined ? serve(request, page) : answered;
  };
}

async function findBuild(): Promise<string> {
  const packed = join(import.meta.dirname, PACKED_DASHBOARD);
  if (existsSync(packed)) return packed;
  // Built in a separate process: the build takes hundreds of megabytes and does not release them.
  const builder = join(import.meta.dirname, '../dashboard/build.ts');
  const { stdout } = await promisify(execFile)(process.execPath, [builder]);
  return stdout.trim().split('\n').at(-1) ?? '';
}
