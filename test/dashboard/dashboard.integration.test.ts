/** The self-hosted dashboard: built from the sources, served at its paths, with its policy. */
import { hash } from 'node:crypto';
import { readFileSync, statSync, utimesSync } from 'node:fs';
import { gunzipSync } from 'node:zlib';
import { beforeAll, describe, expect, test } from 'vitest';
import { buildDashboard } from '../../dashboard/build.ts';
import { createDashboard } from '../../local/dashboard.ts';
import { FILE_HEADERS, findFile, getCacheControl, getContentPolicy } from '../../shared/dashboard-headers.ts';

const ORIGIN = 'http://127.0.0.1:4000';

describe('Paths of the dashboard', () => {
  test.each([
    ['/', 'index.html'],
    ['/jobs', 'index.html'],
    ['/jobs/', 'index.html'],
    ['/jobs/acme/410018', 'index.html'],
    ['/health/endpoints/us/erp', 'index.html'],
    ['/setup/keys', 'index.html'],
    ['/mail-frame.html', 'mail-frame.html'],
    ['/favicon.svg', 'favicon.svg'],
    ['/cells.json', 'cells.json'],
    ['/assets/page-x_1.js', 'assets/page-x_1.js'],
  ])('%s is answered with %s', (path, file) => expect(findFile(path)).toBe(file));

  test.each([
    ...[
      '/v1/accounts',
      '/docs',
      '/docs/assets/1/a.js',
      '/openapi.json',
      '/healthz',
      '/mailbox',
      '/index.html',
    ],
    ...[
      '/jobsx',
      '/assets/',
      '/assets/../index.html',
      '/assets/a/b.js',
      '/assets/%2e%2e/x',
      '/.vite/manifest.json',
    ],
    ...['//', '/licenses.md', ''],
  ])('%s is not a path of the dashboard', (path) => expect(findFile(path)).toBeUndefined());
});

describe('Policies', () => {
  test('of the page allow its own files and its own API, and no inline script or style', () => {
    const policy = getContentPolicy('index.html');
    expect(policy).toContain("default-src 'none'");
    expect(policy).not.toContain('unsafe');
    expect(policy).not.toMatch(/https?:|\*/);
  });

  test('of the mail frame allow no requests, no origin and only the script of the frame', () => {
    const policy = getContentPolicy('mail-frame.html');
    expect(policy).toContain('sandbox allow-scripts;');
    expect(policy).toContain("default-src 'none'");
    const html = readFileSync('dashboard/public/mail-frame.html', 'utf8');
    const [, script = ''] = /<script>([\s\S]*?)<\/script>/.exec(html) ?? [];
    expect(html.match(/<script/g)).toHaveLength(1);
    expect(policy).toContain(`script-src 'sha256-${hash('sha256', script, 'base64')}';`);
    expect(policy).not.toMatch(/allow-same-origin|connect-src|https?:|\*/);
  });

  test('allow caching only for files with a content hash in their name', () => {
    expect(getCacheControl('assets/page-1.js')).toContain('immutable');
    for (const file of ['index.html', 'cells.json', 'mail-frame.html']) {
      expect(getCacheControl(file)).toBe('no-cache');
    }
  });
});

describe('Served files', () => {
  const dashboard = createDashboard();
  const get = async (path: string, init?: RequestInit, others?: Response): Promise<Response> =>
    dashboard(new Request(`${ORIGIN}${path}`, init), () => {
      if (!others) throw new Error(`${path} is not a path of the dashboard.`);
      return others;
    });
  let page = '';
  let scripts: string[] = [];
  beforeAll(async () => {
    page = await (await get('/')).text();
    scripts = [...page.matchAll(/(?:src|href)="(\/assets\/[^"]+)"/g)].map(([, path]) => path ?? '');
  }, 60_000);

  test('the page has no inline content, and its files are served with type, policy and headers', async () => {
    expect(page).not.toMatch(/<script(?![^>]* src=)|<style|\sstyle=|\son\w+=/);
    expect(scripts.length).toBeGreaterThan(1);
    const types = { js: 'text/javascript; charset=utf-8', css: 'text/css; charset=utf-8' };
    for (const path of ['/', ...scripts]) {
      const { status, headers } = await get(path);
      const file = findFile(path) ?? '';
      expect(status, path).toBe(200);
      expect(Object.fromEntries(headers), path).toMatchObject({
        ...FILE_HEADERS,
        'content-type': types[path.split('.').at(-1) as 'js'] ?? 'text/html; charset=utf-8',
        'content-security-policy': getContentPolicy(file),
        'cache-control': getCacheControl(file),
      });
    }
  });

  test('deep links get the same page', async () => {
    expect(await (await get('/jobs/acme/1?x=1')).text()).toBe(page);
  });

  test('responses are compressed if accepted, and 304 if the client has the current version', async () => {
    const [script = ''] = scripts;
    const plain = await (await get(script)).arrayBuffer();
    const packed = await get(script, { headers: { 'accept-encoding': 'br, gzip' } });
    expect(packed.headers.get('content-encoding')).toBe('gzip');
    expect(gunzipSync(await packed.arrayBuffer())).toEqual(Buffer.from(plain));
    const excluded = await get(script, { headers: { 'accept-encoding': 'identity, gzip;q=0' } });
    expect(excluded.headers.get('content-encoding')).toBeNull();
    const etag = packed.headers.get('etag') ?? '';
    for (const tags of [etag, etag.replace('W/', ''), `"other", ${etag}`, '*']) {
      const again = await get(script, { headers: { 'if-none-match': tags } });
      expect([tags, again.status, await again.text()]).toEqual([tags, 304, '']);
    }
    const head = await get(script, { method: 'HEAD' });
    expect([head.status, await head.text()]).toEqual([200, '']);
  });

  test('missing files are 404; other methods and paths are passed on', async () => {
    expect((await get('/assets/page-gone.js')).status).toBe(404);
    const others = new Response('{}');
    expect(await get('/', { method: 'POST' }, others)).toBe(others);
    expect(await get('/v1/accounts', {}, others)).toBe(others);
  });

  test('navigation of a browser to an unknown path returns the page; other clients get the original response', async () => {
    const navigation = {
      headers: { accept: 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8' },
    };
    const none = new Response('{}', { status: 404 });
    const found = new Response('<html>', { status: 200 });
    const shown = await get('/nowhere/x', navigation, none);
    expect([shown.status, await shown.text()]).toEqual([200, page]);
    expect(shown.headers.get('content-security-policy')).toBe(getContentPolicy('index.html'));
    for (const accept of ['*/*', 'application/json', 'image/avif,image/webp,*/*;q=0.8', ''])
      expect(await get('/nowhere/x', { headers: { accept } }, none), accept).toBe(none);
    expect(await get('/v1/accounts/none', navigation, none)).toBe(none);
    expect(await get('//nowhere', navigation, none)).toBe(none);
    expect(await get('/nowhere', { ...navigation, method: 'DELETE' }, none)).toBe(none);
    expect(await get('/docs', navigation, found)).toBe(found);
  });
});

test('reusing a build updates its modification time, so that a later build does not delete it', async () => {
  const folder = await buildDashboard();
  const before = new Date(Date.now() - 30 * 86_400_000);
  utimesSync(folder, before, before);
  expect(await buildDashboard()).toBe(folder);
  expect(Date.now() - statSync(folder).mtimeMs).toBeLessThan(86_400_000);
}, 60_000);
