/** The page at /docs: self-contained, without inline scripts. */
import { readFile } from 'node:fs/promises';
import { expect, test } from 'vitest';
import { createReference, referenceFiles, SWAGGER_UI_VERSION } from '../../shared/api/reference-page.ts';
import type { StaticBody } from '../../shared/api/static-body.ts';

const reference = createReference((file) => readFile(`node_modules/${file.source}`));
const text = (body: StaticBody | undefined) => new TextDecoder().decode(body?.plain);
const page = () => text(reference.page().body);
const linked = () => [...page().matchAll(/(?:src|href)="([^"]+)"/g)].map(([, target = '']) => target);
const assets = () =>
  linked().flatMap((target) => {
    const [, version, name] = /^\/docs\/assets\/([^/]+)\/([^/]+)$/.exec(target) ?? [];
    return version && name ? [{ version, name }] : [];
  });

test('the page links to no other site, and has no inline script or style', () => {
  for (const target of linked()) expect(target).toMatch(/^(\/(?!\/)|data:,$)/);
  expect(page()).not.toMatch(/<script(?![^>]*\ssrc=)|<style|\sstyle=|\son\w+=/i);
  expect(
    assets()
      .map(({ name }) => name)
      .sort(),
  ).toEqual([...referenceFiles.map(({ name }) => name), 'page.css', 'start.js'].sort());
});

test('its policy allows same-origin resources, and no inline script', () => {
  const policy = reference.page().headers['content-security-policy'] ?? '';
  const directives = Object.fromEntries(
    policy.split('; ').map((one) => [one.slice(0, one.indexOf(' ')), one.slice(one.indexOf(' ') + 1)]),
  );
  expect(directives).toMatchObject({
    ...{ 'default-src': "'none'", 'script-src': "'self'", 'style-src': "'self'", 'connect-src': "'self'" },
    ...{ 'base-uri': "'none'", 'form-action': "'none'", 'frame-ancestors': "'none'" },
  });
  expect(policy).not.toMatch(/unsafe|https?:|\*/);
});

test('every asset has its type and can be cached forever', async () => {
  for (const { version, name } of assets()) {
    const answer = await reference.asset(version, name);
    expect(answer?.headers).toMatchObject({
      'content-type': name.endsWith('.js') ? 'text/javascript; charset=utf-8' : 'text/css; charset=utf-8',
      'cache-control': 'public, max-age=31536000, immutable',
    });
    const file = referenceFiles.find((one) => one.name === name);
    const source = file && (await readFile(`node_modules/${file.source}`));
    if (source) expect(Buffer.from(answer?.body.plain ?? []).equals(source)).toBe(true);
    else expect(text(answer?.body)).not.toBe('');
  }
});

test('no other file is served: not of another version, not with another name', async () => {
  const { version = '' } = assets()[0] ?? {};
  for (const name of ['', 'index.html', '../package.json', '..%2Fpackage.json', 'toString', '__proto__']) {
    expect(await reference.asset(version, name), name).toBeUndefined();
  }
  expect(await reference.asset('1', 'start.js')).toBeUndefined();
});

test('the version in the URLs is that of the installed package', async () => {
  const { version } = JSON.parse(await readFile('node_modules/swagger-ui-dist/package.json', 'utf8'));
  expect(SWAGGER_UI_VERSION).toBe(version);
  for (const asset of assets()) expect(asset.version).toMatch(new RegExp(`^${version}-[0-9a-f]{12}$`));
});

test('a file is read once, and again after a failure', async () => {
  const asked: string[] = [];
  const once = createReference(async ({ name }) => {
    asked.push(name);
    if (asked.length === 1) throw new Error('not there');
    return new TextEncoder().encode('body {}');
  });
  const { version = '' } = assets()[0] ?? {};
  await expect(once.asset(version, 'swagger-ui.css')).rejects.toThrow('not there');
  await once.asset(version, 'swagger-ui.css');
  expect(text((await once.asset(version, 'swagger-ui.css'))?.body)).toBe('body {}');
  expect(asked).toHaveLength(2);
});

test('keys are not stored, and the document is not loaded from a URL in the link', async () => {
  const { version = '' } = assets()[0] ?? {};
  const start = text((await reference.asset(version, 'start.js'))?.body);
  expect(start).toContain('persistAuthorization: false');
  expect(start).toContain('queryConfigEnabled: false');
  // By default, Swagger UI sends the document to a validator of third parties.
  expect(start).toContain('validatorUrl: null');
});
