/** Serves the built files of the dashboard. `shared/dashboard-headers.ts` defines paths and headers. */
import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { createStaticReader, type StaticBody, staticAnswer } from '../shared/api/static-body.ts';
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

/**
 * Serves from the folder beside the program. In a checkout, the first request builds the dashboard and requests wait for it. Files are
 * cached in memory once read.
 */
export function createDashboard(): Dashboard {
  let folder: Promise<string> | undefined;
  const load = createStaticReader(async (file) => {
    folder ??= findBuild();
    const from = await folder.catch((cause: unknown) => {
      folder = undefined;
      throw cause;
    });
    return new Uint8Array(await readFile(join(from, file)));
  });

  async function answer(request: Request, file: string): Promise<Response> {
    let found: StaticBody;
    try {
      found = await load(file);
    } catch (cause) {
      if ((cause as NodeJS.ErrnoException).code !== 'ENOENT') throw cause;
      return new Response('File not found.\n', { status: 404, headers: FILE_HEADERS });
    }
    const { status, body, headers } = staticAnswer(request.headers, found);
    return new Response(request.method === 'HEAD' ? null : body, {
      status,
      headers: {
        ...FILE_HEADERS,
        'content-type': getContentType(file),
        'content-security-policy': getContentPolicy(file),
        'cache-control': getCacheControl(file),
        vary: 'accept-encoding',
        ...headers,
      },
    });
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
