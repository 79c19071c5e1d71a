/** The checklist of an empty deployment: each step is done in place, from no account to notified customers. */
import type { Page } from 'playwright-core';
import { describe, expect, test } from 'vitest';
import { axe, layoutShift, loaded, picture, scriptedSite, show, signedIn } from '../support/browser.ts';

const site = scriptedSite({ config: { accounts: [] } });

const checklist = (page: Page) => page.getByRole('region', { name: 'Getting started' });
const step = (page: Page, name: string) =>
  page.getByRole('list', { name: 'Steps' }).getByRole('listitem').filter({ hasText: name }).first();

/** Finds an input by its label, with or without the asterisk of required fields. */
const field = (page: Page, label: string) =>
  page.getByRole('dialog').getByLabel(new RegExp(`^${label}( \\*)?$`));

/** Clicks on the Now page and counts it. */
function counter() {
  let clicks = 0;
  return {
    click: async (page: Page, name: string | RegExp) => {
      clicks += 1;
      await page.getByRole('button', { name, exact: true }).last().click();
    },
    count: () => clicks,
  };
}

/** Checks the page as it is at both widths and in both themes. */
async function axeEverywhere(page: Page): Promise<void> {
  for (const size of ['phone', 'desktop'] as const) {
    for (const theme of ['dark', 'light'] as const) {
      await show(page, { size, theme });
      await axe(page);
    }
  }
}

describe('an empty deployment', () => {
  test('a key that cannot set anything up gets no checklist, but a page with the steps that it can watch', async () => {
    const { key } = await site.makeKey('read');
    const page = await signedIn(site, '/', { key });
    await page.getByText('No accounts yet.').waitFor();
    expect(await checklist(page).count()).toBe(0);
    await page.getByRole('button', { name: 'User menu' }).click();
    await page.getByRole('menuitem', { name: 'Getting started' }).click();
    await page.getByRole('menu').waitFor({ state: 'detached' });
    const steps = page.getByRole('list', { name: 'Steps' }).getByRole('listitem');
    await expect.poll(() => steps.count()).toBe(2);
    expect(await page.getByRole('main').getByRole('button').count()).toBe(0);
    await axe(page);
  });

  test('Escape closes only the dialog above, and asks before input is lost', async () => {
    const page = await signedIn(site, '/start');
    await page.getByRole('button', { name: 'Add an account', exact: true }).click();
    await field(page, 'Id').fill('acme');
    const question = page.getByRole('dialog', { name: 'Leave without saving?' });
    await page.keyboard.press('Escape');
    await question.waitFor();
    await page.keyboard.press('Escape');
    await question.waitFor({ state: 'detached' });
    expect(await field(page, 'Id').inputValue()).toBe('acme');
    await page.keyboard.press('Escape');
    await question.getByRole('button', { name: 'Leave' }).click();
    await expect.poll(() => page.getByRole('dialog').count()).toBe(0);
  });

  test('the checklist leads from no account to notified customers without leaving the page, and disappears', async () => {
    const { account, receiver } = site;
    account.createJob({ status: 'Scheduled' });
    const page = await signedIn(site, '/');
    await checklist(page).getByText('0 of 5 done').waitFor();
    expect(await layoutShift(page)).toBeLessThan(0.1);
    await axeEverywhere(page);

    const { click, count } = counter();
    await click(page, 'Add an account');
    await axe(page);
    await field(page, 'Id').fill('acme');
    await field(page, 'Client id').fill(account.clientId);
    await field(page, 'Client secret').fill(account.clientSecret);
    await click(page, 'Create account');
    expect(count()).toBeLessThanOrEqual(5);
    // The result of the test, then the first poll.
    await step(page, 'Add an account').getByText('The credentials are valid.').waitFor();
    await step(page, 'Baseline').getByText('acme has 1 open job.').waitFor();
    await checklist(page).getByText('2 of 5 done').waitFor();
    await page.evaluate(() => scrollTo(0, 0));
    await picture(page, 'start');

    await click(page, 'Create an endpoint');
    await field(page, 'URL').fill(receiver.url);
    await page.getByRole('button', { name: 'Create endpoint' }).click();
    await page.getByLabel('I have stored it').waitFor();
    await page.keyboard.press('Escape');
    await page.getByLabel('I have stored it').check();
    await page.getByRole('button', { name: 'Close', exact: true }).last().click();
    // The result of the ping, then the events from the beginning of the log.
    await step(page, 'Create an endpoint').getByText('Ping: delivered').waitFor();
    await step(page, 'First delivery').getByText('An endpoint has acknowledged an event.').waitFor();
    await checklist(page).getByText('4 of 5 done').waitFor();
    await axeEverywhere(page);

    await click(page, 'Set up notifications');
    await field(page, 'Notify customers').check();
    await field(page, 'Name').fill('Acme');
    await axe(page);
    await page.getByRole('dialog').getByRole('button', { name: 'Save', exact: true }).click();
    await page.getByRole('button', { name: 'Save and start sending' }).click();
    await page.getByRole('alert').filter({ hasText: 'The setup is complete.' }).waitFor();
    await checklist(page).waitFor({ state: 'detached' });
    expect(new URL(page.url()).pathname).toBe('/');

    await page.getByRole('button', { name: 'User menu' }).click();
    await page.getByRole('menuitem', { name: 'Getting started' }).click();
    await page.getByRole('menu').waitFor({ state: 'detached' });
    await page.getByText('5 of 5 done').waitFor();
    await axeEverywhere(page);
  });

  test('a dismissed checklist stays away in this browser', async () => {
    await site.api('/accounts/acme/notifications', {
      method: 'PUT',
      body: { enabled: false, branding: { name: 'Acme', color: '#1d4ed8' } },
    });
    const page = await signedIn(site, '/');
    await checklist(page).getByText('4 of 5 done').waitFor();
    await checklist(page).getByRole('button', { name: 'Dismiss' }).click();
    await checklist(page).waitFor({ state: 'detached' });
    await page.reload();
    await loaded(page);
    expect(await checklist(page).count()).toBe(0);
    await page.goto(`${site.url}/start`);
    await page.getByText('4 of 5 done').waitFor();
  });
});

test('credentials that the ordering API rejects are reported in the step, with the failed step of the test', async () => {
  const other = site.world.addAccount({ region: 'us', name: 'nova' });
  await site.api('/accounts/acme', { method: 'DELETE' });
  const page = await signedIn(site, '/start');
  await page.getByRole('button', { name: 'Add an account', exact: true }).click();
  await field(page, 'Id').fill('nova');
  await field(page, 'Client id').fill(other.clientId);
  await field(page, 'Client secret').fill('not the secret');
  await page.getByRole('button', { name: 'Create account' }).click();
  await step(page, 'Add an account').getByText('The credentials test failed.').waitFor();
  await step(page, 'Baseline').getByRole('button', { name: 'Test the credentials' }).waitFor();
  await axe(page);
});
