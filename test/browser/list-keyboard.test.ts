/** Lists and tables by keyboard, and states in forced colours. */
import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { axe, loaded, signedIn } from '../support/browser.ts';
import { furnishedDesk } from './desk.ts';

const desk = furnishedDesk();

/** Returns the number of tab stops within a list, and that of its controls. */
const countStops = (
  page: Page,
  list: string,
): Promise<{ readonly stops: number; readonly controls: number }> =>
  page.evaluate((selector) => {
    const controls = [...document.querySelectorAll<HTMLElement>(`${selector} :is(a[href], button)`)];
    return { stops: controls.filter(({ tabIndex }) => tabIndex >= 0).length, controls: controls.length };
  }, list);

/** Returns the position of the focused control: its row, and its position in the row. */
const getPlace = (page: Page, list: string): Promise<readonly [row: number, place: number]> =>
  page.evaluate((selector) => {
    const rows = [...document.querySelectorAll(`${selector} > *`)].map((row) => [
      ...row.querySelectorAll('a[href], button'),
    ]);
    const filled = rows.filter((controls) => controls.length > 0);
    const row = filled.findIndex((controls) => controls.includes(document.activeElement ?? document.body));
    return [row, filled[row]?.indexOf(document.activeElement ?? document.body) ?? -1] as const;
  }, list);

test('Live events have one tab stop, and arrow keys move between the rows', async () => {
  const page = await signedIn(desk, '/?view=feed');
  await loaded(page);
  const list = 'ol[aria-label="Events"]';
  await expect.poll(async () => (await countStops(page, list)).controls).toBeGreaterThan(3);
  expect((await countStops(page, list)).stops).toBe(1);
  await page.locator(`${list} a[tabindex="0"]`).focus();
  expect(await getPlace(page, list)).toEqual([0, 0]);
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('ArrowDown');
  expect(await getPlace(page, list)).toEqual([2, 0]);
  await page.keyboard.press('ArrowUp');
  expect(await getPlace(page, list)).toEqual([1, 0]);
  await page.keyboard.press('Home');
  expect(await getPlace(page, list)).toEqual([0, 0]);
  expect((await countStops(page, list)).stops).toBe(1);
  // The next stop is outside the list, and back again it is where it was.
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Tab');
  expect(await getPlace(page, list)).toEqual([-1, -1]);
  await page.keyboard.press('Shift+Tab');
  expect(await getPlace(page, list)).toEqual([1, 0]);
});

test('a table has one tab stop, and arrow keys move between its rows and within a row', {
  tags: 'firefox',
}, async () => {
  const page = await signedIn(desk, '/health');
  await loaded(page);
  const bodies = page.locator('main table tbody');
  expect(await bodies.count()).toBeGreaterThan(1);
  for (const stops of await bodies.evaluateAll((all) =>
    all.map((body) => body.querySelectorAll(':is(a[href], button, input)[tabindex="0"]').length),
  )) {
    expect(stops).toBe(1);
  }
  await bodies.first().locator('[tabindex="0"]').focus();
  const readFocused = () =>
    page.evaluate(() => document.activeElement?.ariaLabel || document.activeElement?.textContent);
  const before = await readFocused();
  expect(before).toMatch(/^Select /);
  await page.keyboard.press('ArrowDown');
  expect(await readFocused()).not.toBe(before);
  await page.keyboard.press('ArrowUp');
  expect(await readFocused()).toBe(before);
  await page.keyboard.press('ArrowUp');
  expect(await readFocused()).toBe(before);
  // Right of the checkbox is the link of the row.
  await page.keyboard.press('ArrowRight');
  expect(`Select ${await readFocused()}`).toBe(before);
  await axe(page);
});

test('states stay visible in forced colours', { tags: 'firefox' }, async () => {
  const page = await signedIn(desk, '/health', { forcedColors: true });
  expect(await page.evaluate(() => matchMedia('(forced-colors: active)').matches)).toBe(true);
  const isMarked = (selector: string): Promise<boolean[]> =>
    page.locator(selector).evaluateAll((all) => {
      const canvas = getComputedStyle(document.body).backgroundColor;
      return all.map((one) => getComputedStyle(one, '::before').backgroundColor !== canvas);
    });
  const badges = await isMarked('main [class*="badge"][data-tone]');
  expect(badges.length).toBeGreaterThan(0);
  expect(badges).not.toContain(false);
  expect(await isMarked('header [data-phase]')).toEqual([true]);
  const current = page.locator('nav [aria-current="page"]').first();
  expect(await current.evaluate((one) => getComputedStyle(one).outlineStyle)).toBe('solid');
});

test('recipients are a table with row headers and one tab stop', async () => {
  for (const name of ['Bo', 'Cy'])
    await desk.api('/accounts/acme/recipients', {
      body: { name, email: `${name}@customer.example`, paused: true },
    });
  const page = await signedIn(desk, '/setup/customers/acme/recipients');
  await page.getByRole('table', { name: 'Recipients' }).getByRole('rowheader', { name: 'Bo' }).waitFor();
  const body = 'table[aria-label="Recipients"] tbody';
  await expect.poll(async () => (await countStops(page, body)).controls).toBe(3);
  expect((await countStops(page, body)).stops).toBe(1);
  await page.locator(`${body} a[tabindex="0"]`).focus();
  await page.keyboard.press('ArrowDown');
  expect(await getPlace(page, body)).toEqual([1, 0]);
});

test('cards have no invisible tab stop', async () => {
  const page = await signedIn(desk, '/health', { size: 'phone' });
  await loaded(page);
  const all = page.locator('thead input');
  expect(await all.count()).toBeGreaterThan(0);
  for (const box of await all.all())
    expect(await box.evaluate((one) => getComputedStyle(one).visibility)).toBe('hidden');
});

test('a printed page has dark text and no navigation', async () => {
  const page = await signedIn(desk, '/health', { theme: 'dark' });
  await loaded(page);
  const readColour = () => page.evaluate(() => getComputedStyle(document.body).color);
  const screen = await readColour();
  await page.emulateMedia({ media: 'print' });
  expect(await page.getByRole('navigation', { name: 'Pages' }).isVisible()).toBe(false);
  // The browser resolves the colours again only after it has answered.
  await expect.poll(readColour).not.toBe(screen);
});

test('the focus stays in the section of a control that disappears, also after a dialog', async () => {
  const place = () => page.evaluate(() => document.activeElement?.tagName);
  const page = await signedIn(desk, '/?view=feed&text=nothing');
  await page.getByRole('button', { name: 'Clear filters' }).press('Enter');
  await page.getByRole('button', { name: 'Clear filters' }).waitFor({ state: 'detached' });
  await expect.poll(place).toBe('SECTION');
  await desk.api('/keys', { body: { role: 'read', name: 'short-lived' } });
  await page.goto(`${desk.url}/setup/keys`);
  const revoke = page.getByRole('button', { name: 'Revoke short-lived' });
  await revoke.press('Enter');
  await page.getByRole('dialog').getByRole('button', { name: 'Revoke', exact: true }).press('Enter');
  await revoke.waitFor({ state: 'detached' });
  await expect.poll(place).toBe('SECTION');
});
