/** Sign-in, storage of the key, and sign-out. */
import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import {
  axe,
  expectFault,
  type Look,
  layoutShift,
  scriptedSite,
  signedIn,
  signIn,
  visit,
} from '../support/browser.ts';

const site = scriptedSite();

const heading = (page: Page, name: string) => page.getByRole('heading', { name, level: 1, exact: true });

/** Returns everything that a page has stored. */
const keptBy = (page: Page) =>
  page.evaluate(() => ({
    session: Object.values(sessionStorage),
    elsewhere: JSON.stringify([Object.entries(localStorage), document.cookie, history.state, location.href]),
  }));

/** Faults of a page while the program restarts and its key is revoked. */
const RESTARTED = /answered (401|503)|ERR_CONNECTION_REFUSED|ERR_INCOMPLETE_CHUNKED_ENCODING/;

/** Revokes a key. Restarts the program, so that the revocation applies without the delay of 30 seconds. */
async function revoke(id: string): Promise<void> {
  await site.api(`/keys/${id}`, { method: 'DELETE' });
  await site.stop();
  await site.start();
}

test.each<[string, Look]>([
  ['light on a desktop', { theme: 'light', size: 'desktop' }],
  ['dark on a phone', { theme: 'dark', size: 'phone' }],
])('the sign-in page is accessible, %s, also after an error, and has no layout shift', async (_, look) => {
  const page = await visit(site, '/jobs', look);
  const field = page.getByLabel('API key');
  await field.waitFor();
  expect(await page.title()).toBe('Sign in · Jobwire');
  await axe(page);
  expect(await layoutShift(page)).toBeLessThan(0.1);
  expectFault(page, /answered 401: GET .*\/v1\/key$/);
  await field.fill('no-key-of-this-site');
  await field.press('Enter');
  expect(await page.getByRole('alert').textContent()).toContain('unknown, revoked or expired');
  expect(await field.getAttribute('aria-invalid')).toBe('true');
  await axe(page);
});

test.each([
  ['', 'Enter an API key.'],
  ['schlüssel', 'Not an API key'],
])('text that cannot be a key (%j) is rejected without a request', async (typed, message) => {
  const page = await visit(site, '/');
  await page.getByLabel('API key').waitFor();
  const requests: string[] = [];
  page.on('request', (request) => {
    if (request.resourceType() === 'fetch') requests.push(request.url());
  });
  await page.getByLabel('API key').fill(typed);
  await page.getByRole('button', { name: 'Sign in' }).click();
  expect(await page.getByRole('alert').textContent()).toContain(message);
  expect(requests).toEqual([]);
});

test('a key is stored for its tab only, is never part of an address, and is deleted by signing out', {
  tags: 'firefox',
}, async () => {
  const page = await visit(site, '/jobs');
  const addresses: string[] = [];
  page.on('request', (request) => addresses.push(request.url()));
  await signIn(page, site.key);
  await heading(page, 'Jobs').waitFor();
  await page.getByRole('link', { name: 'Health' }).click();
  await heading(page, 'Health').waitFor();
  const kept = await keptBy(page);
  expect(kept.session).toEqual([site.key]);
  expect(kept.elsewhere).not.toContain(site.key);
  expect(addresses.filter((address) => address.includes(site.key))).toEqual([]);

  await page.reload();
  await heading(page, 'Health').waitFor();
  await page.getByRole('button', { name: 'User menu' }).click();
  await page.getByText('Key from the configuration').waitFor();
  await page.getByRole('menuitem', { name: 'Sign out' }).click();
  await page.getByLabel('API key').waitFor();
  expect(await keptBy(page)).toMatchObject({ session: [] });
  expect(await page.getByLabel('API key').inputValue()).toBe('');
  await page.reload();
  await page.getByLabel('API key').waitFor();
  await page.goBack();
  await page.getByLabel('API key').waitFor();
});

test('in a browser that blocks storage, a key is kept until the page is closed', async () => {
  const page = await visit(site, '/favicon.svg');
  await page.addInitScript(() => {
    const blocked = {
      get() {
        throw new DOMException('Storage is blocked.', 'SecurityError');
      },
    };
    Object.defineProperties(window, { localStorage: blocked, sessionStorage: blocked });
  });
  await page.goto(site.url);
  await signIn(page, site.key);
  await heading(page, 'Now').waitFor();
  await page.getByRole('link', { name: 'Health' }).click();
  await heading(page, 'Health').waitFor();
  await page.reload();
  await page.getByLabel('API key').waitFor();
});

test('a revoked key leads to the sign-in page with a message, and a new sign-in to the same page', async () => {
  const { id, key } = await site.makeKey('read');
  const page = await signedIn(site, '/jobs?account=acme', { key });
  await heading(page, 'Jobs').waitFor();
  expectFault(page, RESTARTED);
  await revoke(id);
  await page.getByLabel('API key').waitFor();
  expect(await page.getByRole('status').textContent()).toMatch(/expired or was revoked/);
  expect(await keptBy(page)).toMatchObject({ session: [] });
  await axe(page);
  await signIn(page, site.key);
  await heading(page, 'Jobs').waitFor();
  expect(page.url()).toBe(`${site.url}/jobs?account=acme`);
});

test('a tab with a revoked key shows a message when it is reloaded', async () => {
  const { id, key } = await site.makeKey('operate', ['acme']);
  const page = await signedIn(site, '/health', { key });
  await heading(page, 'Health').waitFor();
  expectFault(page, /answered 401: GET .*\/v1\/key$/);
  await page.goto('about:blank');
  await revoke(id);
  await page.goto(`${site.url}/health`);
  await page.getByLabel('API key').waitFor();
  expect(await page.getByRole('status').textContent()).toMatch(/no longer valid/);
});
