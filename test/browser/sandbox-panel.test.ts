/** The pages of the sandbox's control panel. */
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Sandbox, startSandbox } from '../../sandbox/server.ts';
import { SandboxClock } from '../../sandbox/simulation/clock.ts';
import { createWorld, type SandboxAccount } from '../../sandbox/world/world.ts';
import { axe, show, visit } from '../support/browser.ts';

let sandbox: Sandbox;
let account: SandboxAccount;
let site: { readonly url: string };

beforeAll(async () => {
  const clock = new SandboxClock({ startAt: Date.parse('2026-11-20T16:14:00Z') });
  const world = createWorld({ now: () => clock.now() });
  account = world.addAccount({ region: 'us', name: 'acme' });
  world.addAccount({ region: 'nz', name: 'kiwi' });
  for (const description of ['Left chest logo', 'Harbour tee', 'x'.repeat(200)])
    account.createJob({ description });
  sandbox = await startSandbox({ world, clock });
  site = { url: sandbox.adminUrl };
});
afterAll(() => sandbox.stop());

test('the pages keep to WCAG 2.2 AA and fit, in both themes, on a phone and on a desktop', async () => {
  const [job] = account.activeJobNumbers();
  const page = await visit(site, '/');
  for (const path of ['/panel', `/panel/jobs/us/${job}`]) {
    await page.goto(`${site.url}${path}`);
    if (process.env.PICTURES === 'write' && path === '/panel')
      await page.screenshot({ path: 'docs/images/sandbox-panel.png' });
    for (const summary of await page.locator('summary').all()) await summary.click();
    for (const size of ['phone', 'desktop'] as const) {
      for (const theme of ['light', 'dark'] as const) {
        await show(page, { size, theme });
        await axe(page);
        const isWide = () => document.documentElement.scrollWidth > document.documentElement.clientWidth;
        expect(await page.evaluate(isWide), `${path} ${size}`).toBe(false);
      }
    }
  }
});

test('a job is made late and dispatched from its row, and the page stays where it was', async () => {
  const job = account.createJob({ description: 'To be dispatched' });
  const page = await visit(site, '/', { size: 'phone' });
  const late = page.getByRole('button', { name: `Make late ${job}` });
  await late.scrollIntoViewIfNeeded();
  const before = await page.evaluate(() => scrollY);
  await late.click();
  await page.getByRole('status').getByText(`Job ${job} is late`).waitFor();
  await expect.poll(async () => Math.abs((await page.evaluate(() => scrollY)) - before)).toBeLessThan(120);
  await page.getByRole('button', { name: `Dispatch ${job}` }).click();
  await page.getByRole('status').getByText(`Job ${job} is dispatched.`).waitFor();
  expect(account.job(job)?.tracking).toMatchObject([{ trackingNumber: `SBX${job}` }]);
});

test('changes of the sandbox appear by themselves', async () => {
  const page = await visit(site, '/');
  const job = account.createJob({ description: 'Appears later' });
  await page.getByRole('link', { name: String(job) }).waitFor();
});

test('the control panel can be used by keyboard: a fault is switched on and off', async () => {
  const page = await visit(site, '/');
  await page.getByRole('combobox', { name: /^Fault/ }).focus();
  await page.keyboard.press('Tab');
  await page.keyboard.press('Enter');
  await page.getByRole('status').getByText('The fault is on.').waitFor();
  expect(sandbox.faults.list()).toHaveLength(1);
  await page.getByRole('button', { name: 'Switch off' }).focus();
  await page.keyboard.press('Enter');
  await page.getByRole('status').getByText('The fault is off.').waitFor();
  expect(sandbox.faults.list()).toEqual([]);
});
