/** Accessibility of pages without data, and with failed requests. */
import { expect, test } from 'vitest';
import { axe, expectFault, loaded, scriptedSite, show, signedIn } from '../support/browser.ts';

const bare = scriptedSite();

test('pages without data display a message', async () => {
  const page = await signedIn(bare, '/');
  for (const path of ['/', '/jobs', '/health', '/setup', '/setup/keys']) {
    await page.goto(`${bare.url}${path}`);
    await loaded(page);
    await axe(page);
    await show(page, { theme: 'dark' });
    await axe(page, { themeOnly: true });
    await show(page, { size: 'phone' });
    await axe(page);
    await show(page, { theme: 'light', size: 'desktop' });
  }
});

test.each([
  '/',
  '/jobs',
  '/jobs/acme/410001',
  '/health',
  '/accounts/acme',
  '/endpoints/us/erp',
  '/setup/keys',
])('%s: a failed request shows a message and a button that repeats it', async (path) => {
  const page = await signedIn(bare, '/setup/nowhere');
  await page.clock.install();
  await page.route(/\/v1\/(?!key$|events\/stream)/, (route) =>
    route.fulfill({ status: 500, contentType: 'application/problem+json', body: PROBLEM }),
  );
  expectFault(page, /^answered 500/);
  await page.goto(`${bare.url}${path}`);
  const message = page.getByRole('alert').getByText('It broke.').first();
  // Failed requests are repeated three times before the message appears.
  await expect
    .poll(async () => {
      await page.clock.fastForward(1_000);
      return message.isVisible();
    })
    .toBe(true);
  await page.clock.resume();
  await axe(page);
  await show(page, { theme: 'dark', size: 'phone' });
  await axe(page);
});

const PROBLEM = JSON.stringify({
  type: 'urn:jobwire:problem:fault',
  title: 'A fault',
  status: 500,
  detail: 'It broke.',
});
