/** Outages of Jobwire, and addresses of resources that do not exist. */
import { expect, test } from 'vitest';
import { axe, expectFault, loaded, scriptedSite, signedIn, signIn, visit } from '../support/browser.ts';

const site = scriptedSite();

/** Expected network errors during a restart of Jobwire. */
const AWAY = /answered 503|ERR_CONNECTION_(REFUSED|RESET)|ERR_EMPTY_RESPONSE|ERR_INCOMPLETE_CHUNKED_ENCODING/;

test('a page shows that the connection is lost, reconnects automatically, and offers a new build', async () => {
  const page = await signedIn(site, '/');
  await page.getByRole('status').getByText('Live', { exact: true }).waitFor();
  await loaded(page);
  expectFault(page, AWAY);
  await site.stop();
  await page.getByRole('status').getByText('Disconnected').waitFor();
  await axe(page);
  // The build that answers is another one.
  await page.route(`${site.url}/`, (route) =>
    route.fulfill({ contentType: 'text/html', body: '<div id="root"></div><script src="/new.js"></script>' }),
  );
  await site.start();
  await page.getByRole('status').getByText('Live', { exact: true }).waitFor();
  await page.getByText('Jobwire has been upgraded.').waitFor();
  await axe(page);
});

test('a page offers a new build if its streams are closed and opened again without an error', async () => {
  const page = await visit(site, '/');
  const headers = { 'content-type': 'text/event-stream' };
  await page.route('**/v1/events/stream*', (route) => route.fulfill({ headers, body: '' }));
  await signIn(page, site.key);
  await page.getByRole('status').getByText('Live', { exact: true }).waitFor();
  await page.route(`${site.url}/`, (route) =>
    route.fulfill({ contentType: 'text/html', body: '<div id="root"></div><script src="/new.js"></script>' }),
  );
  await page.evaluate(() => {
    const now = Date.now;
    Date.now = () => now() + 600_000;
  });
  await page.getByText('Jobwire has been upgraded.').waitFor();
});

test('a wall display shows that the connection is lost, and loads a new build when it returns', async () => {
  const page = await signedIn(site, '/?wall=1');
  await page.getByRole('button', { name: 'Exit wall display' }).waitFor();
  await loaded(page);
  expectFault(page, AWAY);
  await site.stop();
  await page.getByRole('status').getByText('Disconnected').waitFor();
  await page.evaluate(() => Object.assign(window, { isOld: true }));
  await page.route(`${site.url}/`, (route) =>
    route.fulfill({ contentType: 'text/html', body: '<div id="root"></div><script src="/new.js"></script>' }),
  );
  await site.start();
  await page.waitForFunction(() => !('isOld' in window));
});

test('events from an outage of Jobwire are shown after it', async () => {
  const page = await signedIn(site, '/?view=feed');
  await page.getByRole('status').getByText('Live', { exact: true }).waitFor();
  await loaded(page);
  expectFault(page, AWAY);
  await site.stop();
  const job = site.account.createJob({ orderNumber: 'PO-MEANWHILE' });
  await site.start();
  await page.getByText(String(job)).first().waitFor({ timeout: 30_000 });
});

test('a failed refetch is reported above the earlier data, which does not become stale', async () => {
  const page = await signedIn(site, '/accounts/acme');
  await page.getByText('Polling.').waitFor();
  expectFault(page, /answered 503: GET .*status$/);
  await page.route('**/v1/accounts/acme/status', (route) => route.fulfill({ status: 503 }));
  await page.waitForResponse((response) => response.status() === 503);
  await page.evaluate(() => {
    const now = Date.now;
    Date.now = () => now() + 180_000;
  });
  await page.getByRole('alert').getByRole('button', { name: 'Try again' }).waitFor();
  expect(await page.getByText('Stale.').count()).toBe(0);
  await page.getByText('Polling.').waitFor();
});

test('settings of notifications that cannot be loaded are not counted as off', async () => {
  const page = await signedIn(site, '/');
  expectFault(page, /answered 503: GET .*notifications$/);
  await page.route('**/v1/accounts/*/notifications', (route) => route.fulfill({ status: 503 }));
  await page.getByRole('navigation').getByRole('link', { name: 'Setup' }).click();
  await page.getByText('– accounts notify their customers').waitFor();
});

test('a sign-in during an outage shows an error and succeeds after it', async () => {
  const page = await visit(site, '/');
  expectFault(page, /ERR_CONNECTION_REFUSED/);
  // The icon of the page may still be loading.
  await page.waitForLoadState('networkidle');
  await site.stop();
  await page.getByLabel('API key').fill(site.key);
  await page.keyboard.press('Enter');
  const alert = page.getByRole('alert');
  expect(await alert.textContent()).toMatch(/^[A-Z].{15,}\.$/);
  await site.start();
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'Now', level: 1 }).waitFor();
});

test('a page whose script is missing shows an error until the script loads, and other pages work', async () => {
  const page = await signedIn(site, '/');
  await page.getByRole('heading', { name: 'Now', level: 1 }).waitFor();
  await page.route(/Health\w*-[\w-]+\.js$/, (route) => route.fulfill({ status: 404, body: 'gone' }));
  expectFault(page, /answered 404: GET .*Health/);
  expectFault(page, /^console: .*Failed to fetch dynamically imported module/);
  const pages = page.getByRole('navigation', { name: 'Pages' });
  await pages.getByRole('link', { name: 'Health' }).click();
  await page.getByRole('heading', { name: 'Page failed to load', level: 1 }).waitFor();
  await axe(page);
  await pages.getByRole('link', { name: 'Now' }).click();
  await page.getByRole('heading', { name: 'Now', level: 1 }).waitFor();
  await page.unroute(/Health\w*-[\w-]+\.js$/);
  await pages.getByRole('link', { name: 'Health' }).click();
  await page.getByRole('heading', { name: 'Health', level: 1 }).waitFor();
});

test('without the chart script, the page shows a table', async () => {
  const page = await visit(site, '/');
  await page.route(/Chart\w*-[\w-]+\.js$/, (route) => route.fulfill({ status: 404, body: 'gone' }));
  expectFault(page, /answered 404: GET .*Chart/);
  expectFault(page, /^console: .*Failed to fetch dynamically imported module/);
  await signIn(page, site.key);
  await page.getByRole('columnheader', { name: /^Dispatched/ }).waitFor();
  await page.getByRole('heading', { name: 'Now', level: 1 }).waitFor();
});

test.each([
  ['an unknown job', '/jobs/acme/999999999', true],
  ['a job of an unknown account', '/jobs/unknown/410001', true],
  ['an invalid job number', '/jobs/acme/%3Cb%3E', false],
  ['an unknown account', '/accounts/unknown', true],
  ['an unknown endpoint', '/endpoints/us/unknown', true],
  ['an endpoint of an unknown region', '/endpoints/moon/unknown', true],
  ['an unknown page', '/setup/nowhere', false],
  ['a malformed address', '/jobs/%E0%A4%A/1', true],
])('%s: the page explains that it does not exist', async (_, path, asks) => {
  const page = await signedIn(site, path);
  if (asks) expectFault(page, /answered 40[03]|answered 404/);
  await page
    .getByText(
      /does not exist|not found|there is no|no such|no page exists|not known|no .* is known|is not here/i,
    )
    .first()
    .waitFor();
  await axe(page);
});
