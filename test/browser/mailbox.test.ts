/** The pages that stand beside the dashboard: the demo's mailbox, and the routes at `/docs`. */
import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { axe, demoSite, type Look, layoutShift, visit } from '../support/browser.ts';

const site = demoSite();
const looks: [string, Look][] = [
  ['light on a desktop', { theme: 'light', size: 'desktop' }],
  ['dark on a phone', { theme: 'dark', size: 'phone' }],
];

test.each(looks)(
  'the mailbox shows what customers get as it comes, %s, accessibly and without a jump',
  async (_, look) => {
    const page = await visit(site, '/mailbox', look);
    expect(await page.title()).toContain('Mailbox');
    // Of what comes some are SMS, which have no frame; and others come above it.
    const mail = page.locator('#list a.email').first();
    // The first one closes with its window, some seconds after the start.
    await mail.waitFor({ timeout: 60_000 });
    await axeAtRest(page);
    const opened = await mail.getAttribute('href');
    await page.locator(`#list a[href="${opened}"]`).click();
    await expect
      .poll(() => page.frames().map((frame) => frame.url()))
      .toContainEqual(expect.stringMatching(/html$/));
    await axeAtRest(page);
    // The list itself makes room for what comes, as it should.
    expect(await layoutShift(page, { growing: '#list', touched: true })).toBeLessThan(0.1);
  },
  120_000,
);

/** axe takes what glides, and is cut off where the list begins, to lie over the bar: nothing glides while it looks. */
async function axeAtRest(page: Page): Promise<void> {
  await page.emulateMedia({ reducedMotion: 'reduce' });
  await axe(page);
  await page.emulateMedia({ reducedMotion: 'no-preference' });
}

test.each([
  [true, 'stands still for who wants no motion'],
  [false, 'glides down for others'],
])(
  'with reduced motion %s, the list %s when something comes',
  async (reducedMotion, _) => {
    const page = await visit(site, '/favicon.svg', { reducedMotion });
    await page.addInitScript(() => {
      const { animate } = Element.prototype;
      Element.prototype.animate = function (...how) {
        document.body.dataset.moved = 'yes';
        return animate.apply(this, how);
      };
    });
    await page.goto(`${site.url}/mailbox`);
    await page.locator('#list a.arrived').nth(1).waitFor({ timeout: 60_000 });
    expect(await page.locator('body').getAttribute('data-moved')).toBe(reducedMotion ? null : 'yes');
  },
  120_000,
);

test('the page of the routes asks nobody else for anything', async () => {
  const page = await visit(site, '/docs');
  await page.locator('[data-path="/v1/accounts/{id}/jobs"]').first().waitFor();
});
