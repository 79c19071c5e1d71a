/** The attention queue of the Now page: what is late and why, actions in the row, filters, keyboard, number of requests. */
import type { Page } from 'playwright-core';
import { describe, expect, test } from 'vitest';
import { axe, expectFault, loaded, scriptedSite, signedIn } from '../support/browser.ts';

const HOUR_MS = 3_600_000;
const LONG = { timeout: 40_000 };
const REGIONS = ['nz', 'au', 'uk', 'eu'] as const;

const site = scriptedSite({
  prepare: (world, account) => {
    for (const [at, status] of ['On hold', 'In production', 'Awaiting artwork'].entries())
      account.createJob({ status, dateDue: Date.now() - (at + 2) * 24 * HOUR_MS, orderNumber: `PO-${at}` });
    account.createJob({ status: 'Scheduled', dateDue: Date.now() + 72 * HOUR_MS });
    for (const region of REGIONS)
      world.addAccount({ region, name: `of-${region}` }).createJob({ status: 'Booked in' });
  },
  config: { webhooks: { allowPrivateNetworks: true, retrySeconds: [1] } },
});

const items = (page: Page) => page.getByRole('list', { name: 'Items' }).getByRole('listitem');
const item = (page: Page, text: string | RegExp) => items(page).filter({ hasText: text });
async function open(path = '/', key?: string): Promise<Page> {
  const page = await signedIn(site, path, key === undefined ? {} : { key });
  await items(page).first().waitFor(LONG);
  await loaded(page);
  return page;
}
/** Opens the menu of a row and selects an entry. */
async function choose(page: Page, text: string, entry: string): Promise<void> {
  await item(page, text)
    .getByRole('button', { name: /^More for/ })
    .click();
  await page.getByRole('menuitem', { name: entry }).click();
}

async function findJob(orderNumber: string): Promise<number> {
  const path = `/accounts/acme/jobs?orderNumber=${orderNumber}`;
  return (await site.api<{ jobs: { jobNumber: number }[] }>(path)).jobs[0]?.jobNumber ?? 0;
}

async function countMails(): Promise<number> {
  const answer = await site.mailbox.fetch(new Request('http://localhost/mailbox/messages'));
  return ((await answer.json()) as { messages: object[] }).messages.length;
}

describe('the queue', () => {
  test('shows which jobs are late and why without a click, the latest first', {
    tags: 'firefox',
  }, async () => {
    const page = await open();
    await expect.poll(() => items(page).count(), LONG).toBe(3);
    const rows = await items(page).allTextContents();
    expect(rows[0]).toMatch(/PO-2.*4 days late. In the status “Awaiting artwork”/);
    expect(rows[1]).toMatch(/PO-1.*3 days late. In the status “In production”/);
    expect(rows[2]).toMatch(/PO-0.*2 days late. In the status “On hold”/);
    for (const row of rows) expect(row).toMatch(/Late jobs.*Notifications off/);
    await axe(page);
  });

  test('the navigation shows the number of items on every page, apart from the state of the connection', async () => {
    const page = await open();
    const now = page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: /^Now/ });
    await expect.poll(() => now.textContent()).toMatch(/^Now3 need attention$/);
    await page.getByRole('status').getByText('Live', { exact: true }).waitFor();
    await page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: 'Jobs' }).click();
    await expect.poll(() => now.textContent()).toMatch(/^Now3 need attention$/);
  });

  test('a failing endpoint is fixed and its dead events are replayed with two clicks', async () => {
    site.receiver.answer = () => ({ status: 422 });
    await site.api('/endpoints', {
      body: { id: 'erp', url: site.receiver.url, accounts: ['acme'], types: ['job.created'] },
    });
    const job = site.account.createJob({ status: 'Scheduled', dateDue: Date.now() + 72 * HOUR_MS });
    await expect
      .poll(async () => (await site.api<{ dead: object[] }>('/endpoints/erp/dead')).dead.length, LONG)
      .toBe(1);
    site.receiver.answer = () => ({ status: 503, body: 'Maintenance until noon' });
    site.account.createJob({ status: 'Scheduled', dateDue: Date.now() + 72 * HOUR_MS });
    const page = await open();
    await item(page, /^Failing endpoints.*erp.*1 event rejected on every attempt/).waitFor(LONG);
    const health = page.getByRole('navigation', { name: 'Pages' }).getByRole('link', { name: /^Health/ });
    await expect.poll(() => health.textContent(), LONG).toBe('Health1: 1 endpoint needs attention');
    // Hidden in the queue, the endpoint still has its problem.
    await choose(page, 'erp', 'Acknowledge');
    await item(page, 'erp').waitFor({ state: 'detached' });
    await page.goto(`${site.url}/?state=acknowledged`);
    await expect.poll(() => health.textContent()).toBe('Health1: 1 endpoint needs attention');
    await choose(page, 'erp', 'Reopen');
    await item(page, 'erp').waitFor({ state: 'detached' });
    for (const [id, path] of [
      ['us~~endpoint~erp', '/endpoints/us/erp'],
      [`us~acme~job~${await findJob('PO-1')}`, `/jobs/acme/${await findJob('PO-1')}`],
    ]) {
      await site.api(`/attention/${id}/note`, { body: { note: 'Ben called them.' } });
      await page.goto(`${site.url}${path}`);
      await page.getByText('Note: Ben called them.').waitFor();
      await site.api(`/attention/${id}/note`, { body: { note: null } });
    }
    await page.goto(`${site.url}/`);
    await item(page, 'erp').waitFor();
    const response = item(page, 'erp').getByRole('button', { name: 'Response' });
    await response.click();
    await item(page, 'erp').getByText('Maintenance until noon').waitFor();
    expect(await item(page, 'erp').getByRole('definition').allTextContents()).toContain('503');
    await axe(page);
    await response.click();
    await item(page, 'erp').getByText('Maintenance until noon').waitFor({ state: 'detached' });
    site.receiver.answer = () => ({ status: 204 });
    site.receiver.requests.splice(0);
    await item(page, 'erp').getByRole('button', { name: 'Retry now' }).click();
    await item(page, /^Dead events.*erp/).waitFor(LONG);
    await item(page, 'erp').getByRole('button', { name: 'Response' }).click();
    await item(page, 'erp').getByText('Last rejected attempt').waitFor();
    expect(await item(page, 'erp').getByRole('definition').allTextContents()).toContain('422');
    await item(page, 'erp').getByRole('button', { name: 'Replay dead' }).click();
    await item(page, 'erp').waitFor({ state: 'detached', ...LONG });
    await expect
      .poll(() => site.receiver.requests.some(({ body }) => body.includes(`"jobNumber":${job}`)), LONG)
      .toBe(true);
    expect((await site.api<{ dead: object[] }>('/endpoints/erp/dead')).dead).toEqual([]);
  });

  test('the customer of a late job is notified: recipient, text, preview, then one message', async () => {
    const page = await open();
    const notify = () => item(page, 'PO-2').getByRole('button', { name: 'Notify' }).click();
    const dialog = page.getByRole('dialog');
    await item(page, /PO-2.*Notifications off/).waitFor();
    expect(await item(page, 'PO-2').getByRole('button', { name: 'Notify' }).count()).toBe(0);
    const settings = { enabled: true, branding: { name: 'Acme' } };
    await site.api('/accounts/acme/notifications', { method: 'PUT', body: settings });
    await page.reload();
    await item(page, /PO-2.*Customer not notified/).waitFor();
    await notify();
    await dialog.getByText('The job has no recipient with an address.').waitFor();
    await page.keyboard.press('Escape');
    for (const [name, more] of [
      ['Bea', {}],
      ['Paul', { paused: true }],
    ] as const)
      await site.api('/accounts/acme/recipients', {
        body: { name, email: `${name.toLowerCase()}@example.com`, orderNumber: 'PO-2', ...more },
      });
    await notify();
    await dialog.getByText('The recipient is paused.').waitFor();
    expect(await dialog.getByRole('radio', { name: /Paul/ }).isDisabled()).toBe(true);
    await dialog.getByLabel('Message').fill('It leaves on Thursday.');
    await axe(page);
    await dialog.getByRole('button', { name: 'Preview' }).click();
    await dialog.getByText('About your order PO-2').waitFor();
    await page.frameLocator('[title^="Preview"]').getByText('It leaves on Thursday.').last().waitFor();
    expect(await countMails()).toBe(0);
    await dialog.getByRole('button', { name: 'Send' }).dblclick();
    await dialog.waitFor({ state: 'detached' });
    await expect.poll(countMails, LONG).toBe(1);
    await page.reload();
    await item(page, /PO-2.*Customer notified/).waitFor();
    expect(await countMails()).toBe(1);
    await item(page, 'PO-2').getByRole('link').click();
    await page.getByRole('button', { name: 'Notify' }).click();
    await dialog.getByText(/^Note, sent \(bea@example\.com\)/).waitFor();
  });

  test('an item is acknowledged, found by its state and reopened; its cause brings it back', {
    tags: 'firefox',
  }, async () => {
    const page = await open();
    await choose(page, 'PO-0', 'Acknowledge');
    await item(page, 'PO-0').waitFor({ state: 'detached' });
    await page.getByLabel('State').selectOption('Acknowledged');
    await page.waitForURL(/state=acknowledged/);
    await choose(page, 'PO-0', 'Reopen');
    await page.getByLabel('State').selectOption('Open');
    await item(page, 'PO-0').waitFor();
    await choose(page, 'PO-0', 'Snooze for a week');
    await item(page, 'PO-0').waitFor({ state: 'detached' });
    site.account.setStatus(await findJob('PO-0'), 'In production');
    await item(page, /PO-0.*Changed since it was hidden/).waitFor(LONG);
  });

  test('filters are in the address, and a saved view restores them', async () => {
    const page = await open();
    await choose(page, 'PO-1', 'Assign');
    await page.getByLabel('Name').fill('ann');
    await page.keyboard.press('Enter');
    await item(page, /PO-1.*ann/).waitFor();
    await page.getByLabel('Assignee').selectOption('ann');
    await page.getByLabel('Kind').selectOption('Late jobs');
    await page.waitForURL(/assignee=ann.*kind=job_late|kind=job_late.*assignee=ann/);
    await expect.poll(() => items(page).count()).toBe(1);
    await page.getByRole('button', { name: 'Views' }).click();
    await page.getByRole('menuitem', { name: 'Save this view' }).click();
    await page.getByLabel('Name of the view').fill('Ann’s late jobs');
    await page.keyboard.press('Enter');
    await page.reload();
    await expect.poll(() => items(page).count()).toBe(1);
    await page.getByLabel('Assignee').selectOption('');
    await page.getByLabel('Kind').selectOption('');
    await expect.poll(() => items(page).count()).toBeGreaterThan(1);
    await page.getByRole('button', { name: 'Views' }).click();
    await page.getByRole('menuitem', { name: 'Ann’s late jobs' }).click();
    await expect.poll(() => items(page).count()).toBe(1);
    await page.getByLabel('Kind').selectOption('Outages');
    await page.getByText(/^No items match the filters/).waitFor();
    // The other tab keeps the filters. Another browser tab keeps the views.
    await page.getByRole('link', { name: 'Live events' }).click();
    await page.getByRole('link', { name: /^Needs attention \(/ }).click();
    await page.getByText(/^No items match the filters/).waitFor();
    const other = await page.context().newPage();
    await other.goto(page.url());
    await other.evaluate((key) => sessionStorage.setItem('jobwire.key', key), site.key);
    await other.reload();
    for (const [tab, name] of [
      [other, 'Theirs'],
      [page, 'Mine'],
    ] as const) {
      await tab.getByRole('button', { name: 'Views' }).click();
      await tab.getByRole('menuitem', { name: 'Save this view' }).click();
      await tab.getByLabel('Name of the view').fill(name);
      await tab.keyboard.press('Enter');
      await tab.getByRole('dialog').waitFor({ state: 'detached' });
    }
    await page.reload();
    await page.getByRole('button', { name: 'Theirs' }).click();
    await page.getByRole('menuitem', { name: 'Mine' }).waitFor();
    await page.keyboard.press('Escape');
    await axe(page);
  });

  test('one row is in the tab order, and the arrow keys move between rows', { tags: 'firefox' }, async () => {
    const page = await open();
    const focused = () => page.evaluate(() => document.activeElement?.textContent);
    const names = await items(page).getByRole('link').allTextContents();
    await items(page).first().getByRole('link').focus();
    await page.keyboard.press('ArrowDown');
    expect(await focused()).toBe(names[1]);
    await page.keyboard.press('End');
    expect(await focused()).toBe(names.at(-1));
    await page.keyboard.press('ArrowUp');
    await page.keyboard.press('Home');
    expect(await focused()).toBe(names[0]);
    const tabbable = page.locator('[aria-label="Items"] a[tabindex="0"]');
    expect(await tabbable.count()).toBe(1);
    await page.keyboard.press('Enter');
    await page.waitForURL('**/jobs/acme/*');
  });

  test('closing a dialog of an item returns the focus to the button of its menu', async () => {
    const page = await open();
    await choose(page, 'PO-1', 'Note…');
    await page.getByRole('dialog').getByLabel('Note').press('Escape');
    await expect
      .poll(() => page.locator(':focus').getAttribute('aria-label'))
      .toBe(`More for Job ${await findJob('PO-1')}`);
  });

  test('a note that is being written is kept after a click beside it, when its item leaves the queue, and when it cannot be saved', async () => {
    const page = await open();
    await choose(page, 'PO-1', 'Note…');
    const note = page.getByRole('dialog').getByLabel('Note');
    await note.fill('Artwork is promised for Thursday');
    // A click beside the dialog does not discard the text.
    await page.mouse.click(10, 790);
    const { items: all } = await site.api<{ items: { id: string; subject: { orderNumber: string } }[] }>(
      '/attention',
    );
    const path = `/attention/${encodeURIComponent(all.find(({ subject }) => subject.orderNumber === 'PO-1')?.id ?? '')}`;
    await site.api(`${path}/acknowledge`, { body: {} });
    await page.getByText('1 acknowledged').waitFor(LONG);
    expect(await note.inputValue()).toBe('Artwork is promised for Thursday');
    expectFault(page, /503/);
    await page.route('**/note', (route) => route.fulfill({ status: 503, body: '' }));
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByRole('dialog').getByRole('alert').waitFor();
    expect(await note.inputValue()).toBe('Artwork is promised for Thursday');
    await page.unroute('**/note');
    await page.getByRole('button', { name: 'Save' }).click();
    await note.waitFor({ state: 'detached' });
    await item(page, 'PO-1').waitFor({ state: 'detached' });
    await site.api(`${path}/reopen`, { body: {} });
    await item(page, /PO-1.*Note: Artwork is promised for Thursday/).waitFor(LONG);
  });

  test('when the focused item leaves the queue, the focus moves to the item at its place', async () => {
    const page = await open();
    const [, second = ''] = await items(page).allTextContents();
    const button = items(page)
      .nth(1)
      .getByRole('button', { name: /^More for/ });
    await items(page).nth(1).getByRole('link').first().focus();
    await button.press('Enter');
    await page.keyboard.press('ArrowDown');
    const entry = page.getByRole('menuitem', { name: 'Acknowledge' });
    await entry.press('Enter');
    await expect.poll(() => items(page).count(), LONG).toBe(2);
    const focusedRow = () =>
      page.evaluate(() => document.activeElement?.closest('[data-item]')?.textContent ?? null);
    await expect.poll(focusedRow).toBe((await items(page).allTextContents())[1]);
    expect(await focusedRow()).not.toBe(second);
    const acknowledged = await site.api<{ items: { id: string }[] }>('/attention?state=acknowledged');
    for (const { id } of acknowledged.items)
      await site.api(`/attention/${encodeURIComponent(id)}/reopen`, { body: {} });
  });

  test('a key that may only read is offered the history only', async () => {
    const { key } = await site.makeKey('read', ['acme']);
    const page = await open('/', key);
    await items(page)
      .first()
      .getByRole('button', { name: /^More for/ })
      .click();
    expect(await page.getByRole('menuitem').allTextContents()).toEqual(['History']);
    await page.getByRole('menuitem', { name: 'History' }).click();
    await page
      .getByRole('dialog')
      .getByText(/^Rank \d+; \+\d+ /)
      .waitFor();
  });

  test('an empty queue displays that nothing needs attention, and what is monitored', async () => {
    const page = await signedIn(site, '/?region=nz');
    await page
      .getByText(/^Nothing needs attention\. Watched: 1 account and \d endpoints? in NZ/)
      .waitFor(LONG);
    await axe(page);
  });
});

test('the page sends at most 40 requests a minute with five regions, while events arrive', {
  timeout: 120_000,
}, async () => {
  const page = await open();
  let requests = 0;
  page.on('request', (request) => {
    if (new URL(request.url()).pathname.startsWith('/v1/')) requests += 1;
  });
  const seconds = 30;
  const job = site.account.createJob({ status: 'Scheduled', dateDue: Date.now() + 72 * HOUR_MS });
  // An event every second, for half a minute: the length of the measurement is what is counted.
  for (let at = 0; at < seconds; at += 1) {
    site.account.setStatus(job, at % 2 === 0 ? 'In production' : 'Scheduled');
    await page.waitForTimeout(1_000);
  }
  expect(requests).toBeGreaterThan(0);
  expect(requests).toBeLessThanOrEqual((40 * seconds) / 60);
});
