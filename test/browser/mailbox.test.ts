/** The pages besides the dashboard: the demo's mailbox, and the API documentation at `/docs`. */
import { expect, onTestFinished, test } from 'vitest';
import {
  axe,
  demoSite,
  expectFault,
  type Look,
  layoutShift,
  settled,
  visit,
  weigh,
} from '../support/browser.ts';

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

test('while the demo is stopped, a selected message is not replaced by the one before it, and Clear keeps the list', async () => {
  const page = await visit(site, '/mailbox');
  const mails = page.locator('#list a.email');
  await mails.nth(1).waitFor({ timeout: 60_000 });
  // More messages arrive above these two.
  const [newer, older] = await mails.evaluateAll((links) =>
    links.slice(0, 2).map((link) => `#list a[href="${link.getAttribute('href')}"]`),
  );
  await page.locator(newer as string).click();
  const reader = page.getByRole('region', { name: 'Message' });
  await reader.getByRole('tab', { name: 'Message' }).waitFor();
  expectFault(page, /./);
  // Also after a failure: the next tests use the same demo.
  onTestFinished(() => site.start(), 60_000);
  await site.stop();
  await page.locator(older as string).click();
  await reader.getByText('This message cannot be loaded: the demo is stopped.').waitFor();
  expect(await reader.getByRole('tab').count()).toBe(0);
  await page.getByRole('button', { name: 'Clear' }).click();
  expect(await mails.count()).toBeGreaterThan(1);
}, 120_000);

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

test.each([
  ...looks,
  ['light on a phone', { theme: 'light', size: 'phone' }],
  ['dark on a desktop', { theme: 'dark', size: 'desktop' }],
] as typeof looks)(
  'the API reference is accessible, without layout shift and without scrolling sideways, %s',
  async (_, look) => {
    const page = await visit(site, '/docs', look);
    const paths = await page
      .locator('nav a')
      .evaluateAll((links) => links.map((link) => (link as HTMLAnchorElement).pathname));
    expect(paths).toHaveLength(16);
    for (const path of ['/docs', '/docs/accounts', '/docs/webhooks', '/docs/schemas']) {
      expect(paths).toContain(path);
      await page.goto(`${site.url}${path}`);
      await page
        .locator('summary')
        .evaluateAll((all) => all.slice(0, 4).forEach((one) => void (one as HTMLElement).click()));
      await axe(page);
      expect(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth)).toBe(true);
      expect(await layoutShift(page)).toBeLessThan(0.1);
      expect(await weigh(page)).toMatchObject({ blocking: [] });
    }
  },
  480_000,
);

test('the API reference filters operations, and old links lead to the operation', async () => {
  const page = await visit(site, '/docs');
  await page.keyboard.press('Tab');
  expect(await page.locator(':focus').textContent()).toBe('Skip to the content');
  await page.getByLabel('Search operations').fill('pauseAccount');
  await page.getByText('1 operation found').waitFor();
  expect(await page.locator('.operations li:visible').allTextContents()).toEqual([
    expect.stringContaining('/v1/accounts/{id}/pause'),
  ]);
  await page.locator('.operations li:visible a').click();
  await page.waitForURL(`${site.url}/docs/accounts#pauseAccount`);
  await page.getByRole('heading', { name: /^Pause/ }).waitFor();
  const curl = page.locator('section', { has: page.locator('#pauseAccount') }).locator('.curl code');
  expect(await curl.textContent()).toContain(`curl -X POST "${site.url}/v1/accounts/ID/pause"`);
  for (const link of ['/docs/accounts#pauseAccount', '/docs/schemas#NewEndpoint']) {
    await page.goto(`${site.url}${link}`);
    await settled(page);
    const heading = page.locator(`[id="${link.split('#')[1]}"]`);
    expect(Math.abs((await heading.boundingBox())?.y ?? Number.NaN)).toBeLessThan(50);
  }
  // From the start page, the browser changes the hash without loading the page.
  for (const [from, old] of [
    ['/docs', '#listJobs'],
    ['/docs/keys', '#/Jobs/listJobs'],
  ]) {
    await page.goto(`${site.url}${from}`);
    await page.goto(`${site.url}/docs${old}`);
    await page.waitForURL(`${site.url}/docs/jobs#listJobs`);
  }
}, 120_000);
