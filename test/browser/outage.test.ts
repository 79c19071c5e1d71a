/** When the program behind the page is away, and when what an address names is not there. */
import { expect, test } from 'vitest';
import { axe, expectFault, loaded, scriptedSite, signedIn, signIn, visit } from '../support/browser.ts';

const site = scriptedSite();

/** What a page meets while a program is started anew. */
const AWAY = /answered 503|ERR_CONNECTION_(REFUSED|RESET)|ERR_EMPTY_RESPONSE|ERR_INCOMPLETE_CHUNKED_ENCODING/;

test('a page whose program goes away says so, and comes back by itself', async () => {
  const page = await signedIn(site, '/');
  await page.getByRole('status').getByText('Live', { exact: true }).waitFor();
  await loaded(page);
  expectFault(page, AWAY);
  await site.stop();
  await page.getByRole('status').getByText('Not live').waitFor();
  await axe(page);
  await site.start();
  await page.getByRole('status').getByText('Live', { exact: true }).waitFor();
});

test('what happened while the program was away is shown when it is back', async () => {
  const page = await signedIn(site, '/');
  await page.getByRole('status').getByText('Live', { exact: true }).waitFor();
  await loaded(page);
  expectFault(page, AWAY);
  await site.stop();
  const job = site.account.createJob({ orderNumber: 'PO-MEANWHILE' });
  await site.start();
  await page.getByText(String(job)).first().waitFor({ timeout: 30_000 });
});

test('a sign-in while the program is away says so, and takes the key when it is back', async () => {
  const page = await visit(site, '/');
  expectFault(page, /ERR_CONNECTION_REFUSED/);
  await site.stop();
  await page.getByLabel('API key').fill(site.key);
  await page.keyboard.press('Enter');
  const alert = page.getByRole('alert');
  expect(await alert.textContent()).toMatch(/^[A-Z].{15,}\.$/);
  await site.start();
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'Now', level: 1 }).waitFor();
});

test('a page whose script can’t be loaded any more says so, and the others go on', async () => {
  const page = await signedIn(site, '/');
  await page.getByRole('heading', { name: 'Now', level: 1 }).waitFor();
  await page.route(/Health\w*-[\w-]+\.js$/, (route) => route.fulfill({ status: 404, body: 'gone' }));
  expectFault(page, /answered 404: GET .*Health/);
  expectFault(page, /^console: .*Failed to fetch dynamically imported module/);
  const pages = page.getByRole('navigation', { name: 'Pages' });
  await pages.getByRole('link', { name: 'Health' }).click();
  await page.getByRole('heading', { name: 'This page can’t be shown', level: 1 }).waitFor();
  await axe(page);
  await pages.getByRole('link', { name: 'Now' }).click();
  await page.getByRole('heading', { name: 'Now', level: 1 }).waitFor();
  await page.unroute(/Health\w*-[\w-]+\.js$/);
  await pages.getByRole('link', { name: 'Health' }).click();
  await page.getByRole('button', { name: 'Load it again' }).click();
  await page.getByRole('heading', { name: 'Health', level: 1 }).waitFor();
});

test('without its chart the page has the same as a table', async () => {
  const page = await visit(site, '/');
  await page.route(/Chart\w*-[\w-]+\.js$/, (route) => route.fulfill({ status: 404, body: 'gone' }));
  expectFault(page, /answered 404: GET .*Chart/);
  expectFault(page, /^console: .*Failed to fetch dynamically imported module/);
  await signIn(page, site.key);
  await page.getByRole('columnheader', { name: 'Dispatched' }).waitFor();
  await page.getByRole('heading', { name: 'Now', level: 1 }).waitFor();
});

test.each([
  ['a job that nobody knows', '/jobs/acme/999999999', true],
  ['a job of an account that nobody knows', '/jobs/nobody/410001', true],
  ['what is no number of a job', '/jobs/acme/%3Cb%3E', false],
  ['an account that nobody knows', '/health/accounts/nobody', true],
  ['an endpoint that nobody knows', '/health/endpoints/us/nobody', true],
  ['an endpoint of a region that nobody knows', '/health/endpoints/moon/nobody', true],
  ['a page that is none', '/setup/nowhere', false],
  ['an address that is broken', '/jobs/%E0%A4%A/1', true],
])('%s: the page says so in words', async (_, path, asks) => {
  const page = await signedIn(site, path);
  if (asks) expectFault(page, /answered 40[03]|answered 404/);
  await page
    .getByText(
      /there is no|no such|not found|no page exists|not known|no .* is known|doesn.t know|is not here/i,
    )
    .first()
    .waitFor();
  await axe(page);
});
