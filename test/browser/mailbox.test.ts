/** The pages that stand beside the dashboard: the demo's mailbox, and the routes at `/docs`. */
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
    await page.locator('#list li').first().waitFor();
    await axe(page);
    await page.locator('#list li').first().click();
    await expect
      .poll(() => page.frames().map((frame) => frame.url()))
      .toContainEqual(expect.stringMatching(/html$/));
    await axe(page);
    // The list itself makes room for what comes, as it should.
    expect(await layoutShift(page, { growing: '#list', touched: true })).toBeLessThan(0.1);
  },
);

test('the page of the routes asks nobody else for anything', async () => {
  const page = await visit(site, '/docs');
  await page.locator('[data-path="/v1/accounts/{id}/jobs"]').first().waitFor();
});
