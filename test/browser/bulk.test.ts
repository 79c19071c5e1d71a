/** Actions on several rows of lists: accounts, endpoints, and items of the attention queue. */
import type { Page } from 'playwright-core';
import { beforeAll, expect, test, vi } from 'vitest';
import { axe, layoutShift, loaded, scriptedSite, signedIn } from '../support/browser.ts';

const HOUR_MS = 3_600_000;
const LONG = { timeout: 40_000 };
const site = scriptedSite({
  prepare: (_world, account) => {
    for (const at of [2, 3, 4])
      account.createJob({ dateDue: Date.now() - at * 24 * HOUR_MS, orderNumber: `PO-${at}` });
  },
  config: { webhooks: { allowPrivateNetworks: true } },
});
const own = site.world.addAccount({ region: 'us', name: 'own' });
own.createJob({ status: 'Booked in' });

beforeAll(async () => {
  for (const id of ['erp', 'shop', 'crm'])
    await site.api('/endpoints', { body: { id, url: site.receiver.url } });
  await site.api('/endpoints/crm/pause', { method: 'POST' });
  const { clientId, clientSecret } = own;
  await site.api('/accounts', { body: { id: 'own', region: 'us', credentials: { clientId, clientSecret } } });
  const accounts = () => site.api<{ openJobs: number | null }>('/accounts/own/status');
  await vi.waitFor(async () => expect((await accounts()).openJobs).toBe(1), LONG);
}, 60_000);

const box = (page: Page, name: string | RegExp) => page.getByRole('checkbox', { name });
const bar = (page: Page, noun: string) => page.getByRole('group', { name: `Actions on selected ${noun}s` });
const isPaused = async (id: string) => (await site.api<{ paused: boolean }>(`/endpoints/${id}`)).paused;

test('selected endpoints are paused after a preview, with a result for each', async () => {
  const page = await signedIn(site, '/health');
  await loaded(page);
  // By keyboard: the first row, then with Shift all rows to another one.
  await box(page, 'Select crm').focus();
  await page.keyboard.press('Space');
  await box(page, 'Select shop').focus();
  await page.keyboard.press('Shift+Space');
  await bar(page, 'endpoint').getByText('3 of 3 endpoints selected').waitFor();
  await axe(page);
  await bar(page, 'endpoint').getByRole('button', { name: 'Pause' }).click();
  const dialog = page.getByRole('dialog', { name: 'Pause 2 endpoints?' });
  await dialog.getByText('erp, shop').waitFor();
  await dialog.getByText('Left out: 1 already paused.').waitFor();
  await axe(page);
  await dialog.getByRole('button', { name: 'Pause 2 endpoints' }).click();
  await page.getByRole('status').getByText('2 endpoints paused.').waitFor();
  expect(await Promise.all(['erp', 'shop', 'crm'].map(isPaused))).toEqual([true, true, true]);
  await page.getByText('Result of each').click();
  await page.getByRole('listitem').filter({ hasText: 'shop: done' }).waitFor();
  expect(
    await box(page, /^Select (erp|shop|crm)$/).evaluateAll((all) =>
      all.map((one) => (one as HTMLInputElement).checked),
    ),
  ).toEqual([false, false, false]);
  expect(await layoutShift(page)).toBeLessThan(0.1);
});

test('accounts that cannot be changed are left out with the reason, and the others are changed', async () => {
  const page = await signedIn(site, '/health');
  await loaded(page);
  await page.getByRole('checkbox', { name: 'Select all: Accounts' }).check();
  await bar(page, 'account').getByRole('button', { name: 'Pause' }).click();
  await page.getByText('Left out: 1 declared in the configuration.').waitFor();
  await page.getByRole('dialog').getByRole('button', { name: 'Pause 1 account' }).click();
  await page.getByRole('status').getByText('1 account paused.').waitFor();
  // The figures name the paused account.
  await page.goto(`${site.url}/`);
  await page
    .getByText('1 open job, 0 of them late, belongs to 1 paused account, which is not observed: own (1).')
    .waitFor();
  await page.getByRole('link', { name: /Open jobs.*; 1 of paused accounts/ }).waitFor();
  await loaded(page);
  expect(await layoutShift(page)).toBeLessThan(0.1);
  await axe(page);
  await page.goto(`${site.url}/jobs?which=open`);
  await page
    .getByText(
      /^Jobs of accounts that are not observed may be outdated: own \(paused, observed up to .+\)\.$/,
    )
    .waitFor();
  await site.api('/accounts/own/resume', { method: 'POST' });
});

test('selected items of the attention queue are acknowledged and assigned', async () => {
  const page = await signedIn(site, '/');
  const items = page.getByRole('list', { name: 'Items' }).getByRole('listitem');
  await expect.poll(() => items.count(), LONG).toBe(3);
  await loaded(page);
  const select = (text: string) => items.filter({ hasText: text }).getByRole('checkbox').check();
  const top = () => items.filter({ hasText: 'PO-3' }).evaluate((row) => row.getBoundingClientRect().top);
  const before = await top();
  await select('PO-2');
  await bar(page, 'item').waitFor();
  expect(await top(), 'the actions move no row').toBe(before);
  await select('PO-3');
  await bar(page, 'item').getByRole('button', { name: 'Assign…' }).click();
  await page.getByRole('dialog').getByLabel(/^Name/).fill('Ann');
  await page.getByRole('dialog').getByRole('button', { name: 'Save' }).click();
  await page
    .getByRole('dialog')
    .getByRole('button', { name: /^Assign to Ann/ })
    .click();
  await page.getByRole('status').getByText('2 items assigned.').waitFor();
  await expect.poll(() => items.filter({ hasText: 'Ann' }).count()).toBe(2);
  await select('PO-2');
  await select('PO-4');
  // Nothing under the page's header, where axe would find it too small.
  await page.evaluate(() => scrollTo(0, 0));
  await axe(page);
  await bar(page, 'item').getByRole('button', { name: 'Acknowledge' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Acknowledge 2 items' }).click();
  await page.getByRole('status').getByText('2 items acknowledged.').waitFor();
  await expect.poll(() => items.count()).toBe(1);
});

test('a key that may only read cannot select rows', async () => {
  const { secret: key } = await site.api<{ secret: string }>('/keys', { body: { role: 'read' } });
  const page = await signedIn(site, '/health', { key });
  await loaded(page);
  expect(await page.getByRole('checkbox').count()).toBe(0);
});
