/** The command palette: its results by keyboard and by touch, and its message when nothing is found. */
import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { axe, expectFault, loaded, show, signedIn } from '../support/browser.ts';
import { furnishedDesk } from './desk.ts';

const desk = furnishedDesk();

/** Opens the palette with the shortcut. */
async function open(page: Page) {
  await page.keyboard.press('Control+k');
  const dialog = page.getByRole('dialog', { name: 'Search and commands' });
  const input = dialog.getByRole('combobox', { name: 'Search' });
  await input.waitFor();
  await expect.poll(() => input.evaluate((one) => one === document.activeElement)).toBe(true);
  return { dialog, input, options: dialog.getByRole('option') };
}

/** Returns the text of the option that the input names as active. */
const getActive = (page: Page): Promise<string> =>
  page.evaluate(() => {
    const id = document.activeElement?.getAttribute('aria-activedescendant') ?? '';
    const option = document.getElementById(id);
    return option?.getAttribute('aria-selected') === 'true' ? (option.textContent ?? '') : '';
  });

test('Ctrl+K finds a job by its number with one request, and Enter opens it', async () => {
  const page = await signedIn(desk, '/');
  await loaded(page);
  const asked: string[] = [];
  page.on('request', (request) => {
    const { pathname, searchParams } = new URL(request.url());
    if (pathname === '/v1/search') asked.push(searchParams.get('q') ?? '');
  });
  const { dialog, input } = await open(page);
  await input.fill(String(desk.jobs.plain));
  await dialog.getByRole('group', { name: 'Jobs' }).getByRole('option').waitFor();
  expect(asked).toEqual([String(desk.jobs.plain)]);
  expect(await getActive(page)).toContain(String(desk.jobs.plain));
  await page.keyboard.press('Enter');
  await page.waitForURL(`**/jobs/acme/${desk.jobs.plain}`);
  await dialog.waitFor({ state: 'detached' });
  // A loaded page moves the focus to its heading.
  await loaded(page);

  // It is now the first recent entry.
  const again = await open(page);
  await again.dialog.getByRole('group', { name: 'Recent' }).waitFor();
  expect(await getActive(page)).toContain(String(desk.jobs.plain));
});

test('finds accounts, order groups, recipients and endpoints in any case, by kind', {
  tags: 'firefox',
}, async () => {
  const page = await signedIn(desk, '/');
  const { dialog, input } = await open(page);
  for (const [text, kind, value] of [
    ['ACM', 'Accounts', 'acme'],
    ['spr', 'Order groups', 'Spring'],
    ['LEE', 'Recipients', 'Ann Lee'],
    ['er', 'Endpoints', 'erp'],
  ] as const) {
    // With `fill`, React does not notice the text in Firefox.
    await input.press('Control+a');
    await input.pressSequentially(text);
    const option = dialog.getByRole('group', { name: kind }).getByRole('option').first();
    await option.waitFor();
    expect(await option.textContent()).toContain(value);
  }
  await input.press('Control+a');
  await input.pressSequentially('ann@customer.example');
  await dialog.getByRole('group', { name: 'Recipients' }).getByRole('option').click();
  await page.getByRole('heading', { name: /Ann Lee/ }).waitFor();
});

test('arrow keys move through pages, actions and results, and Escape closes the palette and returns the focus', {
  tags: 'firefox',
}, async () => {
  const page = await signedIn(desk, '/jobs');
  await loaded(page);
  const button = page.getByRole('button', { name: 'Search' });
  await button.focus();
  const { dialog, options } = await open(page);
  const first = await getActive(page);
  await page.keyboard.press('ArrowDown');
  expect(await getActive(page)).not.toBe(first);
  await page.keyboard.press('ArrowUp');
  await page.keyboard.press('ArrowUp');
  expect(await getActive(page)).toBe(await options.last().textContent());
  await page.keyboard.press('Escape');
  await dialog.waitFor({ state: 'detached' });
  await expect.poll(() => button.evaluate((one) => one === document.activeElement)).toBe(true);
});

test('offers only what the role of the key permits', async () => {
  const { key } = await desk.makeKey('read', ['acme']);
  const page = await signedIn(desk, '/', { key });
  const { options } = await open(page);
  const names = await options.allTextContents();
  for (const name of ['Alert rules', 'Keys', 'Wall displays', 'Getting started', 'Sign out'])
    expect(names).toContain(name);
  expect(names).not.toContain('Add an account');
  expect(names).not.toContain('New endpoint');
  expect(names).not.toContain('New key');
});

test('performs its actions: colours, wall display, API reference, sign-out', async () => {
  const page = await signedIn(desk, '/jobs');
  const choose = async (name: string): Promise<void> => {
    await loaded(page);
    const { dialog, input } = await open(page);
    await input.fill(name);
    await dialog.getByRole('option', { name, exact: true }).click();
    await dialog.waitFor({ state: 'detached' });
  };
  const scheme = () => page.evaluate(() => document.documentElement.dataset.mantineColorScheme);
  const before = await scheme();
  await choose('Switch colours');
  expect(await scheme()).toBe(before === 'dark' ? 'light' : 'dark');
  await choose('Switch colours');
  expect(await scheme()).toBe(before);
  await choose('Wall display');
  await page.getByRole('button', { name: 'Exit wall display' }).click();
  await choose('API reference');
  await page.waitForURL('**/docs');
  await page.goBack();
  await choose('Sign out');
  await page.getByLabel('API key', { exact: true }).waitFor();
});

test('ignores the response to an earlier text, and displays a message when nothing is found or a search fails', async () => {
  const page = await signedIn(desk, '/');
  const held = Promise.withResolvers<void>();
  await page.route(/\/v1\/search\?q=acme/, async (route) => {
    await held.promise;
    await route.continue().catch(() => {});
  });
  const { dialog, input, options } = await open(page);
  const slow = page.waitForRequest(/\/v1\/search\?q=acme/);
  await input.fill('acme');
  await slow;
  await input.fill('zzzz');
  await dialog.getByText('No results.').waitFor();
  held.resolve();
  expect(await options.count()).toBe(0);
  await page.route(/\/v1\/search\?q=broken/, (route) =>
    route.fulfill({
      status: 400,
      contentType: 'application/problem+json',
      body: JSON.stringify({ type: 'urn:jobwire:problem:x', title: 'x', status: 400, detail: 'It broke.' }),
    }),
  );
  expectFault(page, /^answered 400/);
  await input.fill('broken');
  await dialog.getByRole('alert').getByText('It broke.').waitFor();
});

test('keeps to WCAG 2.2 AA in both themes, on a phone and on a desk', async () => {
  const page = await signedIn(desk, '/');
  await loaded(page);
  for (const size of ['desktop', 'phone'] as const) {
    for (const theme of ['light', 'dark'] as const) {
      await show(page, { size, theme });
      await page.getByRole('button', { name: 'Search' }).click();
      const dialog = page.getByRole('dialog', { name: 'Search and commands' });
      await dialog.getByRole('combobox').fill('ac');
      await dialog.getByRole('option').first().waitFor();
      await dialog.getByText(/result/).waitFor();
      await axe(page);
      if (process.env.PICTURES)
        await page.screenshot({ path: `${process.env.PICTURES}/${size}-${theme}.png` });
      await page.keyboard.press('Escape');
      await dialog.waitFor({ state: 'detached' });
    }
  }
});
