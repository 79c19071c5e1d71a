/** Layout of every page in narrow and wide windows. */
import type { Page } from 'playwright-core';
import { describe, expect, test } from 'vitest';
import { answeredLate, layoutShift, loaded, show, signedIn, weigh } from '../support/browser.ts';
import { furnishedDesk, places, sharedTab } from './desk.ts';

const desk = furnishedDesk();
const open = sharedTab(desk, { size: 'narrow' });
const delayed = new WeakSet<Page>();

describe.each(places)('$name', (place) => {
  test('fits into 320 to 1280 pixels, and has no layout shift while it loads', async () => {
    const page = await open(place);
    if (!delayed.has(page)) {
      await answeredLate(page);
      delayed.add(page);
      await page.reload();
      await loaded(page);
    }
    for (const size of ['narrow', 'desktop'] as const) {
      if (size === 'desktop') {
        await show(page, { size });
        await page.reload();
        await loaded(page);
      }
      expect(await layoutShift(page), size).toBeLessThan(0.1);
      expect(await tooWide(page), size).toEqual([]);
      if (size === 'narrow') expect(await overflowing(page)).toEqual([]);
    }
    for (const width of [768, 960, 1024, 1100]) {
      await page.setViewportSize({ width, height: 768 });
      // Charts follow the window in a later frame.
      await expect.poll(() => tooWide(page), { message: `${width} pixels` }).toEqual([]);
    }
  });

  test('no script blocks its first paint, and its size and number of elements are limited', async () => {
    const { blocking, kilobytes, elements } = await weigh(await open(place));
    expect(blocking).toEqual([]);
    expect(kilobytes).toBeLessThan(600);
    expect(elements).toBeLessThan(1_400);
  });
});

test('the whole width of a large screen is used, and at 400 % zoom most of the page is free for content', async () => {
  const page = await open(places[0] as (typeof places)[number]);
  await page.setViewportSize({ width: 2560, height: 1300 });
  await page.goto(`${desk.url}/health`);
  await loaded(page);
  const table = await page.getByRole('table').first().boundingBox();
  expect(table?.width).toBeGreaterThan(2_400);
  // 1280 × 1024 CSS pixels at 400 %.
  await page.setViewportSize({ width: 320, height: 256 });
  for (const path of ['/', '/jobs', '/health', '/setup/new-endpoint']) {
    await page.goto(desk.url + path);
    await loaded(page);
    expect(await tooWide(page), path).toEqual([]);
    // After scrolling, no bar covers the content.
    const covered = await page.evaluate(() => {
      window.scrollTo(0, 200);
      const bars = [...document.querySelectorAll('body *')].filter((one) =>
        /fixed|sticky/.test(getComputedStyle(one).position),
      );
      return bars.reduce((sum, one) => sum + Math.max(0, one.getBoundingClientRect().height), 0);
    });
    expect(covered, path).toBeLessThan(32);
  }
});

test('grey lines take the place of data, and of a page whose code is loaded, until these arrive', async () => {
  const page = await signedIn(desk, '/start');
  const lines = page.locator('main [class*="skeleton"] > span, main [class*="skeletonTitle"]');
  for (const [path, held] of [
    ['/', /\/v1\/attention/],
    ['/jobs', /\/v1\/accounts/],
    ['/endpoints/us/erp', /\/v1\/endpoints/],
    ['/setup/keys', /\/v1\/keys/],
    ['/setup', /\/assets\/SetupPages/],
  ] as const) {
    const { promise: released, resolve: release } = Promise.withResolvers<void>();
    await page.route(held, async (route) => {
      await released;
      await route.continue().catch(() => {});
    });
    await page.goto(desk.url + path);
    await expect.poll(() => lines.evaluateAll(countVisible), { message: path }).toBeGreaterThan(2);
    expect(await page.locator('[aria-busy="true"]').count(), path).toBeGreaterThan(0);
    release();
    await lines.first().waitFor({ state: 'detached' });
    await page.unroute(held);
  }
});

/** Counts elements that have a size and are not transparent. */
const countVisible = (all: readonly Element[]): number =>
  all.filter((one) => {
    const { width, height } = one.getBoundingClientRect();
    return one.checkVisibility({ opacityProperty: true }) && width > 40 && height > 8;
  }).length;

/** Returns the cells of tables whose content covers the cell beside it. */
function overflowing(page: Page): Promise<string[]> {
  return page
    .locator('td')
    .evaluateAll((cells) =>
      cells
        .filter(({ scrollWidth, clientWidth }) => scrollWidth > clientWidth + 1)
        .map((cell) => cell.outerHTML.slice(0, 160)),
    );
}

/** Returns the elements that make the page wider than the window. */
function tooWide(page: Page): Promise<string[]> {
  return page.evaluate(() => {
    const { scrollWidth, clientWidth } = document.documentElement;
    if (scrollWidth <= clientWidth) return [];
    const wide = [...document.body.querySelectorAll('*')].filter((one) => {
      const { right, width } = one.getBoundingClientRect();
      return width > 0 && right > clientWidth + 1;
    });
    return [
      `${scrollWidth} of ${clientWidth} pixels`,
      ...wide.slice(0, 5).map((one) => one.outerHTML.slice(0, 160)),
    ];
  });
}
