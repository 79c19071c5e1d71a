/** Sign-in of users at a real OpenID Connect server: the requested page, renewal, the end of a session, sign-out. */
import type { Page } from 'playwright-core';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { axe, expectFault, layoutShift, scriptedSite, signIn, visit } from '../support/browser.ts';
import { type Issuer, startIssuer } from '../support/issuer.ts';

/** Lifetime of ID tokens. A page renews them after half of it. */
const TOKEN_SECONDS = 2;
const site = scriptedSite();
const origins: string[] = [];
let issuer: Issuer;

beforeAll(async () => {
  // The site is running. It is started again with the issuer, which has to know its address.
  origins.push(site.url);
  issuer = await startIssuer({
    origins,
    idTokenSeconds: TOKEN_SECONDS,
    users: {
      ann: { email: 'ann@acme.example', groups: ['admins'] },
      bob: { email: 'bob@acme.example', groups: ['admins'] },
      eve: { email: 'eve@acme.example', groups: ['others'] },
    },
  });
  await site.stop();
  site.configure({
    signIn: { issuer: issuer.url, clientId: issuer.clientId, groups: { admins: { role: 'admin' } } },
  });
  await site.start();
}, 120_000);
afterAll(() => issuer.stop());

const heading = (page: Page, name: string) => page.getByRole('heading', { name, level: 1, exact: true });
const button = (page: Page) => page.getByRole('button', { name: 'Continue with single sign-on' });

/** Opens a page, and signs in at the issuer. */
async function signInAs(user: string, path: string): Promise<Page> {
  const page = await visit(site, path);
  expectFault(page, /^other origin: .* http:\/\/127\.0\.0\.1:/);
  await button(page).click();
  await page.getByLabel('User').fill(user);
  await page.getByRole('button', { name: 'Log in' }).click();
  return page;
}

/** Visits pages, which request data, until something holds. */
async function browseUntil(page: Page, holds: () => boolean | Promise<boolean>): Promise<void> {
  for (let at = 0; !(await holds()); at += 1) {
    const name = ['Health', 'Setup', 'Jobs'][at % 3] ?? '';
    // It is gone when the session ends.
    const link = page.getByRole('navigation').getByRole('link', { name, exact: true });
    await link.click({ timeout: 2_000 }).catch(() => {});
  }
}

/** Returns everything that scripts can read. */
const readStored = (page: Page) =>
  page.evaluate(() =>
    JSON.stringify([
      Object.entries(sessionStorage),
      Object.entries(localStorage),
      document.cookie,
      history.state,
      location.href,
    ]),
  );

test('the sign-in page offers single sign-on and API keys, is accessible and has no layout shift', async () => {
  const page = await visit(site, '/jobs');
  await button(page).waitFor();
  await axe(page);
  expect(await layoutShift(page)).toBeLessThan(0.1);
  await signIn(page, site.key);
  await heading(page, 'Jobs').waitFor();
});

test('a single sign-on that cannot begin shows the reason', async () => {
  const page = await visit(site, '/');
  await page.evaluate(() => Object.defineProperty(crypto, 'subtle', { value: undefined }));
  await page.evaluate(() => Object.defineProperty(window, 'isSecureContext', { value: false }));
  await button(page).click();
  await page.getByRole('alert').getByText('Single sign-on requires HTTPS.').waitFor();
  expect(await button(page).isEnabled()).toBe(true);
});

test('a user lands on the requested page; no token is stored where scripts can read it, or stays in the history', async () => {
  const page = await signInAs('ann', '/jobs?account=acme');
  await heading(page, 'Jobs').waitFor();
  expect(page.url()).toBe(`${site.url}/jobs?account=acme`);
  const stored = await readStored(page);
  expect(stored).not.toMatch(/eyJ|code|jobwire_session|nonce/i);
  const [cookie] = (await page.context().cookies(`${site.url}/v1/session`)).filter(
    ({ name }) => name === 'jobwire_session',
  );
  expect(cookie).toMatchObject({ httpOnly: true, sameSite: 'Strict', path: '/v1/session', secure: true });
  await page.getByRole('button', { name: 'User menu' }).click();
  await page.getByText('ann@acme.example').waitFor();
});

test('a token is renewed before it expires, and a reload and a new tab continue the session', async () => {
  const page = await signInAs('ann', '/health');
  await heading(page, 'Health').waitFor();
  let renewals = 0;
  page.on('response', (response) => {
    if (response.url().endsWith('/v1/session/renewal') && response.ok()) renewals += 1;
  });
  await browseUntil(page, () => renewals > 1);
  await page.goto(`${site.url}/setup`);
  await heading(page, 'Setup').waitFor();
  const tab = await page.context().newPage();
  await tab.goto(`${site.url}/setup/keys`);
  await heading(tab, 'Keys').waitFor();
  await tab.getByText('The user you signed in as').waitFor();
});

test('a session that the issuer has ended leads to the sign-in page, and a new sign-in to the same page', async () => {
  const page = await signInAs('ann', '/setup/keys');
  await heading(page, 'Keys').waitFor();
  const readRecent = () => page.evaluate(() => sessionStorage.getItem('jobwire.recent'));
  await page.keyboard.press('Control+k');
  await page.getByRole('combobox', { name: 'Search' }).fill('Late jobs');
  await page.keyboard.press('Enter');
  await heading(page, 'Jobs').waitFor();
  expect(await readRecent()).toContain('Late jobs');
  expectFault(page, /answered 401: POST .*renewal$/);
  await page.context().clearCookies({ name: 'jobwire_session' });
  await browseUntil(page, () => button(page).isVisible());
  const { pathname } = new URL(page.url());
  expect(await page.getByRole('status').textContent()).toMatch(/session has ended/);
  expect(await readRecent()).toBeNull();
  await axe(page);
  // The user is still signed in at the issuer.
  await button(page).click();
  await page.getByRole('button', { name: 'User menu' }).waitFor();
  expect(page.url()).toBe(`${site.url}${pathname}`);
});

test('sign-out ends the session here, in other tabs and at the issuer', async () => {
  const page = await signInAs('ann', '/jobs');
  await heading(page, 'Jobs').waitFor();
  const other = await page.context().newPage();
  await other.goto(`${site.url}/health`);
  await heading(other, 'Health').waitFor();
  await page.getByRole('button', { name: 'User menu' }).click();
  await page.getByRole('menuitem', { name: 'Sign out' }).click();
  await page.getByRole('button', { name: 'Log out' }).click();
  await button(page).waitFor();
  expect(page.url()).toBe(`${site.url}/`);
  await button(other).waitFor();
  expect(await other.getByRole('status').textContent()).toMatch(/session has ended in another tab/);
  const cookies = await page.context().cookies(`${site.url}/v1/session`);
  expect(cookies.map(({ name }) => name)).not.toContain('jobwire_session');
  await button(page).click();
  await page.getByLabel('User').waitFor();
});

test('a user without a group with access gets a page with the reason, and can sign in as another user', async () => {
  const page = await signInAs('eve', '/jobs');
  expectFault(page, /answered 403: POST .*session$/);
  await heading(page, 'No access').waitFor();
  expect(await page.getByRole('status').textContent()).toMatch(/not in a group with access/);
  await axe(page);
  await page.getByRole('button', { name: 'Sign in as another user' }).click();
  await page.getByLabel('User').fill('ann');
  await page.getByRole('button', { name: 'Log in' }).click();
  await heading(page, 'Jobs').waitFor();
});

test('a tab does not continue as another user who signs in in another tab', async () => {
  const page = await signInAs('eve', '/jobs');
  expectFault(page, /answered 403: POST .*session$/);
  const other = await page.context().newPage();
  await other.goto(`${site.url}/health`);
  await button(other).click();
  const signInAnewAs = async (tab: Page, user: string): Promise<void> => {
    await tab.getByRole('button', { name: 'Sign in as another user' }).click();
    await tab.getByLabel('User').fill(user);
    await tab.getByRole('button', { name: 'Log in' }).click();
  };
  await signInAnewAs(other, 'ann');
  await heading(other, 'Health').waitFor();
  await signInAnewAs(page, 'bob');
  await heading(page, 'Jobs').waitFor();
  await button(other).waitFor();
  expect(await other.getByRole('status').textContent()).toMatch(/Another user has signed in/);
  await page.reload();
  await page.getByRole('button', { name: 'User menu' }).click();
  await page.getByText('bob@acme.example').waitFor();
});

test('a response that this tab did not request is rejected', async () => {
  const page = await visit(site, '/sign-in?code=stolen&state=other');
  expect(await page.getByRole('status').textContent()).toMatch(/expired, or was begun in another tab/);
  expect(page.url()).toBe(`${site.url}/`);
});
