/** Jobs: found and narrowed across accounts, followed as they change; and a job with its story. */
import type { Page } from 'playwright-core';
import { beforeAll, expect, test, vi } from 'vitest';
import type { SandboxAccount } from '../../sandbox/world/world.ts';
import { axe, expectFault, layoutShift, scriptedSite, show, signedIn } from '../support/browser.ts';

const HOSTILE = '<img src=x onerror="alert(1)"><script>alert(2)</script>\u202Egnp.exe';
const LONG = 'W'.repeat(300);
const dayOf = (days: number): string => new Date(Date.now() + days * 86_400_000).toISOString().slice(0, 10);

let kiwi: SandboxAccount;
const jobs = { shipped: 0, late: 0, hostile: 0, grouped: 0, kiwi: 0 };
const site = scriptedSite({
  prepare(world, acme) {
    kiwi = world.addAccount({ region: 'nz', name: 'kiwi' });
    const add = (account: SandboxAccount, job: object) => account.createJob({ status: 'Scheduled', ...job });
    add(acme, { description: 'Crest', orderNumber: 'PO-1', dateDue: dayOf(3) });
    jobs.late = add(acme, {
      description: 'Badge',
      orderNumber: 'PO-2',
      dateDue: `${dayOf(-3)}T10:00:00-07:00`,
    });
    jobs.hostile = add(acme, { description: HOSTILE, orderNumber: `"><b>${LONG}`, dateDue: dayOf(5) });
    jobs.grouped = add(acme, {
      description: 'Sleeve',
      orderGroup: 'Spring & Co',
      status: 'Held',
      dateDue: dayOf(1),
    });
    add(acme, { description: 'Back', orderGroup: 'Spring & Co', dateDue: dayOf(9) });
    jobs.shipped = add(acme, { description: 'Neck label', dateDue: dayOf(4) });
    jobs.kiwi = add(kiwi, { description: 'Names', orderNumber: 'PO-2', dateDue: dayOf(2) });
    add(kiwi, { description: 'Undated', orderNumber: '77', dateDue: null });
  },
});

type Listed = { jobs: { jobNumber: number }[] };
const inApi = async (query: string, accounts = ['acme', 'kiwi']): Promise<number[]> => {
  const pages = await Promise.all(accounts.map((id) => site.api<Listed>(`/accounts/${id}/jobs?${query}`)));
  return pages.flatMap((page) => page.jobs.map(({ jobNumber }) => jobNumber)).sort();
};
const grid = (page: Page) => page.getByRole('grid', { name: 'Jobs' });
const rowsOf = async (page: Page): Promise<number[]> => {
  const links = await grid(page).getByRole('link').allTextContents();
  return links.map(Number).sort();
};
const rowOf = (page: Page, job: number) =>
  grid(page)
    .getByRole('row')
    .filter({ has: page.getByRole('link', { name: String(job), exact: true }) });

beforeAll(async () => {
  const within = { timeout: 30_000, interval: 100 };
  await vi.waitFor(async () => expect(await inApi('late=true')).toEqual([jobs.late]), within);
  site.account.dispatch(jobs.shipped, { status: 'Shipped' });
  await vi.waitFor(async () => expect(await inApi('undispatched=true')).toHaveLength(7), within);
}, 60_000);

test('a job is found by its number and by the number of its order, in all accounts, from the keyboard', async () => {
  const page = await signedIn(site, '/jobs');
  await rowOf(page, jobs.kiwi).waitFor();
  await page.keyboard.press('/');
  const field = page.getByRole('textbox', { name: 'Job or order number' });
  expect(await field.evaluate((one) => one === document.activeElement)).toBe(true);
  await page.keyboard.type('PO-2');
  await expect.poll(() => rowsOf(page)).toEqual([jobs.late, jobs.kiwi].sort());
  expect(new URL(page.url()).search).toBe('?q=PO-2');
  await field.fill(String(jobs.shipped));
  await expect.poll(() => rowsOf(page)).toEqual([jobs.shipped]);
  await field.fill('PO-');
  await page.getByText('No job has this order number.').waitFor();
  await page.getByRole('button', { name: 'Clear the filters' }).click();
  await expect.poll(async () => rowsOf(page)).toEqual(await inApi('undispatched=true'));
});

test.each([
  ['status', 'status=Scheduled'],
  ['due day', `dueOn=${dayOf(2)}`],
  ['due before', `dueBefore=${dayOf(4)}`],
  ['late', 'late=true'],
  ['order group', 'orderGroup=Spring+%26+Co'],
  ['order number', 'orderNumber=PO-2', 'q=PO-2'],
  ['all that are known', '', 'which=all'],
])('by %s the rows are those that the API lists', async (_, query, own = query) => {
  const page = await signedIn(site, `/jobs?${own}`);
  const expected = await inApi(query);
  expect(expected.length).toBeGreaterThan(0);
  await expect.poll(() => rowsOf(page)).toEqual(expected);
});

test('by the day they went out on the rows are those that the API lists, and the figures count', async () => {
  const zone = 'America/Denver';
  const day = new Intl.DateTimeFormat('sv', { timeZone: zone }).format(Date.now());
  const page = await signedIn(site, `/jobs?dispatchedOn=${day}`);
  await expect.poll(() => rowsOf(page)).toEqual([jobs.shipped]);
  expect(await inApi(`dispatchedOn=${day}`)).toEqual([jobs.shipped]);
  const { total } = await site.api<{ total: { dispatched: number } }>(
    `/accounts/acme/rollups?from=${day}&to=${day}`,
  );
  expect(total.dispatched).toBe(1);
});

test('filters go together, are chosen in the form, and stand in the address: after a reload and a step back', async () => {
  const page = await signedIn(site, '/jobs?orderGroup=Spring+%26+Co');
  await expect.poll(() => rowsOf(page)).toHaveLength(2);
  await page.getByRole('combobox', { name: 'Status' }).selectOption('Held');
  await expect.poll(() => rowsOf(page)).toEqual([jobs.grouped]);
  await page.reload();
  await expect.poll(() => rowsOf(page)).toEqual([jobs.grouped]);
  expect(await page.getByRole('textbox', { name: 'Order group' }).inputValue()).toBe('Spring & Co');
  await grid(page).getByRole('link').click();
  await page.getByRole('heading', { name: `Job ${jobs.grouped}` }).waitFor();
  await page.goBack();
  await expect.poll(() => rowsOf(page)).toEqual([jobs.grouped]);
  expect(await page.getByRole('combobox', { name: 'Status' }).inputValue()).toBe('Held');
  await page.getByRole('combobox', { name: 'Account' }).selectOption('kiwi');
  await page.getByText('No job is like that.').waitFor();
});

test('the list is told from the keyboard, and is as axe wants it in both themes and on a phone', async () => {
  const page = await signedIn(site, '/jobs');
  await rowOf(page, jobs.kiwi).waitFor();
  expect(await grid(page).getAttribute('aria-rowcount')).toBe('8');
  await axe(page);
  const rows = grid(page).locator('[data-index]');
  await rows.first().focus();
  const focused = () => page.evaluate(() => document.activeElement?.getAttribute('aria-rowindex'));
  for (const [key, at] of [
    ['ArrowDown', '3'],
    ['End', '8'],
    ['ArrowDown', '8'],
    ['PageUp', '2'],
    ['End', '8'],
    ['Home', '2'],
  ] as const) {
    await page.keyboard.press(key);
    await expect.poll(focused).toBe(at);
  }
  await page.keyboard.press('Enter');
  // The one that is due first.
  await page.getByRole('heading', { name: `Job ${jobs.late}` }).waitFor();
  await page.goBack();
  await rowOf(page, jobs.kiwi).waitFor();
  await show(page, { theme: 'dark', size: 'phone' });
  await rowOf(page, jobs.late).getByText('Late').waitFor();
  await axe(page);
  expect(await page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth)).toBe(true);
});

test('a row changes as the job does, stays where it is when it no longer matches, and new ones are announced', async () => {
  const moving = site.account.createJob({ status: 'Ready', description: 'Moving', dateDue: dayOf(6) });
  await expect.poll(() => inApi('status=Ready')).toEqual([moving]);
  const page = await signedIn(site, '/jobs?status=Ready');
  await rowOf(page, moving).waitFor();
  site.account.edit(moving, { description: 'Moved on' });
  await rowOf(page, moving).getByText('Moved on').waitFor();
  const other = site.account.createJob({ status: 'Ready', dateDue: dayOf(1) });
  site.account.setStatus(moving, 'Printed');
  await rowOf(page, moving).getByText('No longer matches: Printed').waitFor();
  await axe(page);
  await page.getByRole('button', { name: 'Show 1 more job' }).click();
  await expect.poll(() => rowsOf(page)).toEqual([other]);
  expect(await layoutShift(page, { touched: true })).toBeLessThan(0.1);
});

test('a job shows how it stands, each event from what to what, how it is known, and to whom it was told', async () => {
  const body = { region: 'us', url: site.receiver.url, accounts: ['acme'], id: 'erp' };
  await site.api('/endpoints', { body });
  const job = site.account.createJob({
    ...{ status: 'Scheduled', description: 'Story', orderNumber: 'PO-9', orderGroup: 'Spring & Co' },
    ...{ dateDue: dayOf(4), lines: [{}, {}] },
  });
  const page = await signedIn(site, `/jobs?q=PO-9`);
  await expect
    .poll(async () => {
      await page.reload();
      await page
        .getByRole('status')
        .filter({ hasText: 'by due day' })
        .or(page.getByText('No job has'))
        .waitFor();
      return rowsOf(page).catch(() => []);
    })
    .toEqual([job]);
  await grid(page).getByRole('link').click();
  const events = page.getByRole('list', { name: 'Events' }).locator(':scope > li');
  await events.filter({ hasText: 'New job' }).waitFor();
  // While one looks.
  site.account.setStatus(job, 'Printed');
  const changed = events.filter({ hasText: 'Status' }).first();
  await changed.waitFor();
  expect((await changed.textContent()) ?? '').toMatch(/Status from Scheduled .* to Printed/);
  await changed
    .getByText(/Seen in the list of active jobs at .*, last seen otherwise at .*: it happened within/)
    .waitFor();
  site.account.dispatch(job, {
    status: 'Shipped',
    tracking: [
      { trackingNumber: '1Z9', trackingLink: 'https://carrier.example/1Z9' },
      { trackingNumber: 'bad', trackingLink: 'javascript:alert(3)' },
    ],
  });
  await events.filter({ hasText: 'Dispatched' }).first().waitFor();
  const link = page.getByRole('link', { name: '1Z9' });
  await link.waitFor();
  expect(await link.getAttribute('rel')).toBe('noopener noreferrer');
  expect(await page.locator('a[href^="javascript"]').count()).toBe(0);
  const { events: said } = await site.api<{ events: { id: string; sequence: string }[] }>(
    `/accounts/acme/jobs/${job}/events`,
  );
  await expect.poll(() => events.count()).toBe(said.length);
  expect(await events.first().textContent()).toContain(`Event ${Number(said[0]?.sequence)}`);
  await events.first().getByText('erp: taken').waitFor();
  await events.first().locator('summary').click();
  await events
    .first()
    .getByText(/taken, answered 204/)
    .waitFor();
  const before = site.receiver.requests.length;
  await events.first().getByRole('button', { name: 'Send again' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Send again' }).click();
  await expect.poll(() => site.receiver.requests.length).toBe(before + 1);
  await events.first().getByText('(sent again)').waitFor();
  await axe(page);
  await show(page, { theme: 'dark', size: 'phone' });
  await axe(page);
  await page
    .getByRole('link', { name: /Spring & Co/ })
    .first()
    .click();
  await expect.poll(async () => (await rowsOf(page)).length).toBe(3);
});

test('what customers wrote is shown as they wrote it, and does nothing', async () => {
  const page = await signedIn(site, '/jobs');
  const row = rowOf(page, jobs.hostile);
  await row.waitFor();
  expect(await row.textContent()).toContain(HOSTILE);
  await row.getByRole('link').click();
  await page.getByText(HOSTILE).first().waitFor();
  await page.getByText(`"><b>${LONG}`).first().waitFor();
  for (const size of ['desktop', 'narrow'] as const) {
    await show(page, { size });
    expect(await page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth)).toBe(true);
  }
  expect(await page.locator('img').count()).toBe(0);
});

test('a job, or an account, that is not known is said to be so', async () => {
  const page = await signedIn(site, '/jobs/acme/999999999');
  expectFault(page, /answered 404: GET .*\/jobs\/999999999$/);
  await page.getByText('No job 999999999 of an account acme is known here').waitFor();
  await page.goto(`${site.url}/jobs/acme/what`);
  await page.getByText('No job what of an account acme is known here').waitFor();
  await page.goto(`${site.url}/jobs?account=nobody`);
  await page.getByText('There is no account nobody').waitFor();
  await axe(page);
});

test('whoever may only read is not offered to send anything', async () => {
  const { key } = await site.makeKey('read', ['acme']);
  const page = await signedIn(site, '/jobs', { key });
  await rowOf(page, jobs.late).waitFor();
  expect(await rowOf(page, jobs.kiwi).count()).toBe(0);
  await page
    .getByRole('combobox', { name: 'Status' })
    .locator('option', { hasText: 'Held' })
    .waitFor({ state: 'attached' });
  await page.goto(`${site.url}/jobs/acme/${jobs.shipped}`);
  await page.getByRole('list', { name: 'Events' }).waitFor();
  expect(await page.getByRole('button', { name: 'Send again' }).count()).toBe(0);
});
