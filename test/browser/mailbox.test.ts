/** The pages besides the dashboard: the demo's mailbox, and the API documentation at `/docs`. */
import { expect, test } from 'vitest';
import { axe, demoSite, type Look, layoutShift, visit, weigh } from '../support/browser.ts';

const site = demoSite();
const looks: [string, Look][] = [
  ['light on a desktop', { theme: 'light', size: 'desktop' }],
  ['dark on a phone', { theme: 'dark', size: 'phone' }],
];

test.each(looks)(
  'the mailbox shows messages as they arrive, %s, accessible and without layout shift',
  async (_, look) => {
    const page = await visit(site, '/mailbox', look);
    expect(await page.title()).toContain('Mailbox');
    // SMS have no frame. More messages arrive above this one.
    const mail = page.locator('#list a.email').first();
    // The first message is sent when its window closes, some seconds after the start.
    await mail.waitFor({ timeout: 60_000 });
    await axe(page);
    const opened = await mail.getAttribute('href');
    await page.locator(`#list a[href="${opened}"]`).click();
    await expect
      .poll(() => page.frames().map((frame) => frame.url()))
      .toContainEqual(expect.stringMatching(/html$/));
    await axe(page);
    // The list itself grows with each message, as intended.
    expect(await layoutShift(page, { growing: '#list', touched: true })).toBeLessThan(0.1);
    expect(await weigh(page)).toMatchObject({ blocking: [] });
  },
  120_000,
);

test.each([
  [true, 'is not animated'],
  [false, 'is animated'],
])(
  'with reduced motion %s, the list %s when a message arrives',
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

test('the API documentation loads nothing from third parties, and shows the parameters of an operation', async () => {
  const page = await visit(site, '/docs');
  // Swagger UI parses the whole document before it shows the groups of operations.
  await page.getByRole('heading', { name: /^Jobs/ }).click({ timeout: 60_000 });
  expect(await weigh(page)).toMatchObject({ blocking: [] });
  await page.locator('[data-path="/v1/accounts/{id}/jobs"]').first().click();
  // It resolves all references of the document first, which takes seconds of CPU time.
  await page.locator('[data-param-name="undispatched"]').waitFor({ timeout: 60_000 });
}, 120_000);
