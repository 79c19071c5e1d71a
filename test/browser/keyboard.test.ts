/** Keyboard operation and screen readers. */
import type { Page } from 'playwright-core';
import { describe, expect, test } from 'vitest';
import { show, signedIn, visit } from '../support/browser.ts';
import { furnishedDesk, places, sharedTab } from './desk.ts';

const desk = furnishedDesk();
const open = sharedTab(desk);

describe.each(places)('$name', (place) => {
  test('every control is reachable by keyboard and shows its focus', async () => {
    const page = await open(place);
    const stops = await tabThrough(page);
    const unseen = stops.filter(({ seen }) => !seen).map(({ what }) => what);
    expect(unseen, 'without a visible focus').toEqual([]);
    const missed = await page.evaluate(notReached);
    expect(missed, 'not reached').toEqual([]);
  });
});

/** Returns the elements that Tab reaches, from the start of the page. */
async function tabThrough(page: Page): Promise<{ what: string; seen: boolean }[]> {
  const stops: { what: string; seen: boolean }[] = [];
  await page.evaluate(() => {
    (document.activeElement as HTMLElement | null)?.blur();
    getSelection()?.removeAllRanges();
  });
  for (let at = 0; at < 400; at += 1) {
    await page.keyboard.press('Tab');
    const stop = await page.evaluate(async (number) => {
      // On its way across a frame of another process, for a moment nothing has the focus.
      if (document.activeElement === document.body && document.querySelector('iframe'))
        await new Promise((done) => {
          addEventListener('focusin', done, { once: true });
          setTimeout(done, 1000);
        });
      const one = document.activeElement;
      if (!one || one === document.body) return null;
      const before = one.getAttribute('data-was-reached');
      one.setAttribute('data-was-reached', String(number));
      // Date and time inputs have several stops.
      const within = before === String(number - 1);
      const again = before !== null && !within;
      const readStyle = (of: Element) => {
        const { outlineStyle, outlineWidth, boxShadow, borderColor } = getComputedStyle(of);
        return {
          ring: outlineStyle !== 'none' && outlineWidth !== '0px',
          rest: `${boxShadow} ${borderColor}`,
        };
      };
      // An outline of the element or of an ancestor, or a border that differs from the one without focus.
      const around = [one, one.parentElement, one.parentElement?.parentElement].filter((of) => !!of);
      const focused = around.map(readStyle);
      let seen = focused.some(({ ring }) => ring);
      if (!seen && !within && one instanceof HTMLElement) {
        one.blur();
        seen = around.some((of, index) => readStyle(of).rest !== focused[index]?.rest);
        one.focus();
      }
      return { what: one.outerHTML.slice(0, 160), seen: seen || within, again };
    }, at);
    if (!stop || stop.again) return stops;
    stops.push(stop);
  }
  throw new Error(`Tab did not return to the start after ${stops.length} stops.`);
}

/** Runs in the page: returns the controls that Tab did not reach. */
function notReached(): string[] {
  const pressable =
    'a[href], button, input, select, textarea, summary, [role="button"], [role="tab"], [tabindex="0"]';
  return (
    [...document.querySelectorAll<HTMLElement>(pressable)]
      .filter(
        (one) =>
          one.checkVisibility({ visibilityProperty: true }) && !one.matches(':disabled, [tabindex="-1"]'),
      )
      .filter((one) => !one.hasAttribute('data-was-reached'))
      // Radio buttons of one name and parts of a composite have one stop; arrow keys reach the others.
      .filter((one) => !one.matches('input[type="radio"], [role="tab"], [role="option"], [role="menuitem"]'))
      .map((one) => one.outerHTML.slice(0, 160))
  );
}

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
    // The number of items that need attention follows the name of the page Now.
    expect(await here.allTextContents()).toEqual([
      expect.stringMatching(new RegExp(`^${name}(\\d+ need attention)?$`)),
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
  await page.getByRole('region', { name: 'Accounts' }).getByText('in the configuration file').waitFor();
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
