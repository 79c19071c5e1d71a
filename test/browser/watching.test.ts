/** The fault detection of the browser tests (`test/support/browser.ts`), on pages that cause each fault. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { axe, expectFault, getFaults, layoutShift, visit } from '../support/browser.ts';

const site = { url: '' };
const POLICY = "default-src 'none'; script-src 'self'; connect-src *; frame-src 'self'";
const pages: Record<string, string> = {
  '/': '<!doctype html><html lang="en"><title>Fine</title><main><h1>Fine</h1></main>',
  '/inline': '<!doctype html><title>x</title><script>document.title = "run"</script>',
  '/frame': '<!doctype html><title>x</title><iframe src="/inline"></iframe>',
  '/picture': '<!doctype html><title>x</title><img alt="" src="/other.png">',
  '/missing': '<!doctype html><title>x</title><script src="/nothing.js"></script>',
  '/pale': '<!doctype html><html lang="en"><title>x</title><main><h1 class="pale">Pale</h1></main>',
};
const server = createServer((request, response) => {
  const { pathname } = new URL(request.url ?? '/', 'http://x');
  const body = pages[pathname];
  response.writeHead(body === undefined ? 404 : 200, {
    'content-type': 'text/html',
    'content-security-policy': POLICY,
  });
  response.end(body);
});
beforeAll(async () => {
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done));
  site.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
});
afterAll(() => server.close());

test.each([
  ['a script in the page', '/inline', /^policy: script-src-elem forbids inline/],
  ['one in a frame', '/frame', /^policy: script-src-elem forbids inline at .*\/inline$/],
  ['a picture', '/picture', /^policy: img-src forbids/],
])('the content security policy is enforced, and %s that it forbids is a fault', async (_, path, fault) => {
  const page = await visit(site, path);
  await expect.poll(() => getFaults(page)).toContainEqual(expect.stringMatching(fault));
  expect(await page.title()).toBe('x');
  for (const kind of [/^policy: /, /^console: .*Content Security Policy/]) expectFault(page, kind);
  if (path === '/picture') expectFault(page, /^failed: GET .*other\.png/);
});

test('a response with an error status is a fault', async () => {
  const page = await visit(site, '/missing');
  expect(getFaults(page)).toEqual([expect.stringMatching(/^answered 404: GET .*\/nothing\.js$/)]);
  expectFault(page, /^answered 404/);
  expect(getFaults(page), 'once it is named').toEqual([]);
});

test('errors of scripts and of the console, dialogs and requests to other origins are faults', async () => {
  const page = await visit(site, '/');
  await page.evaluate(() => {
    setTimeout(() => {
      throw new Error('thrown');
    });
    console.error('said');
    alert('asked');
    return fetch('http://elsewhere.example/').catch(() => {});
  });
  const kinds = [
    /^script: thrown/,
    /^console: said/,
    /^dialog: alert asked/,
    /^other origin: GET http:\/\/elsewhere\.example\/$/,
    /^failed: GET http:\/\/elsewhere\.example\/ \(net::ERR_NAME_NOT_RESOLVED\)/,
  ];
  for (const kind of kinds) {
    await expect.poll(() => getFaults(page)).toContainEqual(expect.stringMatching(kind));
  }
  for (const kind of kinds) expectFault(page, kind);
});

test('too little contrast is found, with the strict policy in force', async () => {
  const page = await visit(site, '/pale');
  await axe(page);
  await page.evaluate(() => {
    const [heading] = document.getElementsByClassName('pale');
    if (heading instanceof HTMLElement) heading.style.color = '#ddd';
  });
  await expect(axe(page)).rejects.toThrow(/color-contrast/);
});

test('an element that moves others down counts as a layout shift', async () => {
  const page = await visit(site, '/');
  expect(await layoutShift(page)).toBe(0);
  await page.evaluate(
    () =>
      new Promise<void>((done) => {
        const late = document.createElement('div');
        late.style.height = '300px';
        document.body.prepend(late);
        requestAnimationFrame(() => requestAnimationFrame(() => done()));
      }),
  );
  expect(await layoutShift(page)).toBeGreaterThan(0.1);
});
