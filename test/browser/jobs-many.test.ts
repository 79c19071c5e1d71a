/** The Jobs page with ten thousand jobs in one account, the supported maximum. */
import { beforeAll, expect, test, vi } from 'vitest';
import { axe, scriptedSite, signedIn } from '../support/browser.ts';

const MANY = 10_000;
const dayFromNow = (days: number): string =>
  new Date(Date.now() + days * 86_400_000).toISOString().slice(0, 10);

let last = 0;
const config: { accounts?: readonly object[] } = {};
const site = scriptedSite({
  config,
  prepare(world) {
    const big = world.addAccount({ region: 'us', name: 'big' });
    for (let n = 0; n < MANY; n += 1) {
      const job = big.createJob({
        ...{ status: 'Scheduled', description: `Crest ${n}`, orderNumber: `PO-${n}` },
        ...{ dateDue: dayFromNow(1 + (n % 60)), lines: [{}] },
      });
      if (n % 60 === 59) last = job;
    }
    // Polled once: repeated polls of this size are tested elsewhere.
    config.accounts = world.accounts().map(({ name, region, clientId, clientSecret }) => ({
      ...{ id: name, region, clientId, clientSecret },
      pollIntervalSeconds: name === 'big' ? 3_600 : 1,
    }));
  },
});

beforeAll(async () => {
  const within = { timeout: 110_000, interval: 500 };
  await vi.waitFor(async () => {
    const { openJobs } = await site.api<{ openJobs: number }>('/accounts/big/status');
    expect(openJobs).toBe(MANY);
  }, within);
}, 120_000);

test('of ten thousand jobs fewer than 100 rows are rendered, and the last is reached by scrolling and by keyboard', async () => {
  const page = await signedIn(site, '/jobs?account=big');
  const rows = page.getByRole('grid', { name: 'Jobs' }).locator('[data-index]');
  await rows.first().waitFor();
  // The first rows appear before all jobs are read.
  await page.getByText(/^First [\d,]+ jobs by due day; scroll for more$/).waitFor();
  const drawn: number[] = [];
  const atEnd = () =>
    page.evaluate(async () => {
      window.scrollBy({ top: 4_000, behavior: 'instant' });
      await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
      // Heights of rows are measured as they appear: the end of the page moves until the last row is drawn.
      return document.querySelector('[role="grid"] [aria-rowindex="10001"]') !== null;
    });
  await expect
    .poll(
      async () => {
        const ended = await atEnd();
        drawn.push(await rows.count());
        return ended;
      },
      { timeout: 150_000, interval: 10 },
    )
    .toBe(true);
  expect(Math.max(...drawn)).toBeLessThan(100);
  await page
    .getByRole('row')
    .filter({ hasText: String(last) })
    .waitFor();
  expect(await rows.last().getAttribute('aria-rowindex')).toBe('10001');
  await axe(page);
  await rows.last().focus();
  await page.keyboard.press('Home');
  const focused = () => page.evaluate(() => document.activeElement?.getAttribute('aria-rowindex'));
  await expect.poll(focused).toBe('2');
  await page.keyboard.press('End');
  await expect.poll(focused).toBe('10001');
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { name: `Job ${last}` }).waitFor();
  // Back navigation restores the position.
  await page.goBack();
  await page
    .getByRole('row')
    .filter({ hasText: String(last) })
    .waitFor();
}, 200_000);
