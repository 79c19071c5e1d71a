/** Keyboard operation and screen readers. */
import { expect, test } from 'vitest';
import { show, signedIn, visit } from '../support/browser.ts';
import { furnishedDesk } from './desk.ts';

const desk = furnishedDesk();

test('navigation to a page sets the title of the tab and moves the focus to the heading', async () => {
  const page = await signedIn(desk, '/');
  await page.getByRole('heading', { name: 'Now', level: 1 }).waitFor();
  for (const name of ['Jobs', 'Health', 'Setup', 'Now']) {
    await page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name }).click();
    await page.getByRole('heading', { name, level: 1 }).waitFor();
    await expect.poll(() => page.title()).toBe(`${name} · Jobwire`);
    const focused = page.locator(':focus');
    await expect
      .poll(() => focused.evaluate((one) => `${one.tagName} ${one.textContent}`))
      .toBe(`H1 ${name}`);
    const here = page.getByRole('navigation', { name: 'Pages' }).locator('[aria-current="page"]');
    // The number of items that need attention follows the name of the pages Now and Health.
    expect(await here.allTextContents()).toEqual([
      expect.stringMatching(new RegExp(`^${name}(\\d+.* attention)?$`)),
    ]);
  }
});

test('a page is busy for screen readers until all its content is loaded', async () => {
  const page = await signedIn(desk, '/setup');
  const content = page.getByRole('main');
  await expect.poll(() => content.getAttribute('aria-busy')).toBe('false');
  const held = Promise.withResolvers<void>();
  await page.route(/\/v1\/keys\?/, async (route) => {
    await held.promise;
    await route.continue();
  });
  await page.reload();
  const keys = page.getByRole('region', { name: 'Keys' });
  await keys.waitFor();
  await page.getByRole('region', { name: 'Accounts' }).getByText('in the configuration').waitFor();
  expect(await content.getAttribute('aria-busy')).toBe('true');
  held.resolve();
  await expect.poll(() => content.getAttribute('aria-busy')).toBe('false');
  expect(await keys.textContent()).toMatch(/^Keys\s*\d/);
});

test('the first stop skips the navigation', async () => {
  const page = await signedIn(desk, '/health');
  await page.getByRole('heading', { name: 'Health', level: 1 }).waitFor();
  await page.evaluate(() => (document.activeElement as HTMLElement | null)?.blur());
  await page.keyboard.press('Tab');
  const skip = page.getByRole('link', { name: 'Skip to content' });
  expect(await skip.evaluate((one) => one === document.activeElement)).toBe(true);
  expect((await skip.boundingBox())?.y, 'is visible').toBeGreaterThanOrEqual(0);
  await page.keyboard.press('Enter');
  expect(await page.evaluate(() => document.activeElement?.tagName)).toBe('MAIN');
  expect(new URL(page.url()).pathname).toBe('/health');
});

test('reduced motion disables animations', async () => {
  const page = await signedIn(desk, '/', { reducedMotion: true });
  await page.getByRole('heading', { name: 'Now', level: 1 }).waitFor();
  await page.getByRole('button', { name: 'User menu' }).click();
  await page.getByRole('menuitem', { name: 'Sign out' }).waitFor();
  const longest = await page.evaluate(() =>
    Math.max(
      0,
      ...document.getAnimations().map((one) => Number(one.effect?.getComputedTiming().duration ?? 0)),
    ),
  );
  expect(longest, 'ms').toBeLessThan(1);
});

test('the theme follows the system until the user chooses one, which is stored', async () => {
  const page = await visit(desk, '/', { theme: 'dark' });
  const scheme = () => page.evaluate(() => document.documentElement.dataset.mantineColorScheme);
  await page.getByLabel('API key').fill(desk.key);
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: 'Now', level: 1 }).waitFor();
  expect(await scheme()).toBe('dark');
  await show(page, { theme: 'light' });
  await expect.poll(scheme).toBe('light');
  await page.getByRole('button', { name: 'Switch to dark colours' }).click();
  expect(await scheme()).toBe('dark');
  await page.reload();
  await page.getByRole('heading', { name: 'Now', level: 1 }).waitFor();
  expect(await scheme()).toBe('dark');
});
