/** The Jobs page: search, filters, live updates; the page of a job with its timeline. */
import type { Locator, Page } from 'playwright-core';
import { beforeAll, expect, test, vi } from 'vitest';
import type { SandboxAccount } from '../../sandbox/world/world.ts';
import { axe, expectFault, layoutShift, scriptedSite, show, signedIn } from '../support/browser.ts';

const HOSTILE = '<img src=x onerror="alert(1)"><script>alert(2)</script>\u202Egnp.exe';
const LONG = 'W'.repeat(300);
/** An order group whose name contains an escape sequence. */
const GROUP = 'Spring%20& Co';
const GROUP_QUERY = String(new URLSearchParams({ orderGroup: GROUP }));
const dayFromNow = (days: number): string =>
  new Date(Date.now() + days * 86_400_000).toISOString().slice(0, 10);

let kiwi: SandboxAccount;
const jobs = { shipped: 0, late: 0, hostile: 0, grouped: 0, kiwi: 0 };
const site = scriptedSite({
  prepare(world, acme) {
    kiwi = world.addAccount({ region: 'nz', name: 'kiwi' });
    const add = (account: SandboxAccount, job: object) => account.createJob({ status: 'Scheduled', ...job });
    add(acme, { description: 'Crest', orderNumber: 'PO-1', dateDue: dayFromNow(3) });
    jobs.late = add(acme, {
      description: 'Badge',
      status: 'Waiting for garments',
      orderNumber: 'PO-2',
      dateDue: `${dayFromNow(-3)}T10:00:00-07:00`,
    });
    jobs.hostile = add(acme, { description: HOSTILE, orderNumber: `"><b>${LONG}`, dateDue: dayFromNow(5) });
    jobs.grouped = add(acme, {
      description: 'Sleeve',
      orderGroup: GROUP,
      status: 'Held',
      dateDue: dayFromNow(1),
    });
    add(acme, { description: 'Back', orderGroup: GROUP, dateDue: dayFromNow(9) });
    jobs.shipped = add(acme, { description: 'Neck label', dateDue: dayFromNow(4) });
    jobs.kiwi = add(kiwi, { description: 'Names', orderNumber: 'PO-2', dateDue: dayFromNow(2) });
    add(kiwi, { description: 'Undated', orderNumber: '77', dateDue: null });
  },
});

type Listed = { jobs: { jobNumber: number }[] };
const listFromApi = async (query: string, accounts = ['acme', 'kiwi']): Promise<number[]> => {
  const pages = await Promise.all(accounts.map((id) => site.api<Listed>(`/accounts/${id}/jobs?${query}`)));
  return pages.flatMap((page) => page.jobs.map(({ jobNumber }) => jobNumber)).sort();
};
const grid = (page: Page) => page.getByRole('grid', { name: 'Jobs' });
const readJobNumbers = async (page: Page): Promise<number[]> => {
  const links = await grid(page).getByRole('link').allTextContents();
  return links.map(Number).sort();
};
const findRow = (page: Page, job: number) =>
  grid(page)
    .getByRole('row')
    .filter({ has: page.getByRole('link', { name: String(job), exact: true }) });

const isCut = (text: Locator): Promise<boolean> =>
  text.evaluate(({ scrollWidth, clientWidth }) => scrollWidth > clientWidth);

beforeAll(async () => {
  const within = { timeout: 30_000, interval: 100 };
  await vi.waitFor(async () => expect(await listFromApi('late=true')).toEqual([jobs.late]), within);
  site.account.dispatch(jobs.shipped, { status: 'Shipped' });
  await vi.waitFor(async () => expect(await listFromApi('undispatched=true')).toHaveLength(7), within);
}, 60_000);

test('a job is found by job number or order number in all accounts, using only the keyboard', async () => {
  const page = await signedIn(site, '/jobs');
  await findRow(page, jobs.kiwi).waitFor();
  await page.keyboard.press('/');
  const field = page.getByRole('textbox', { name: 'Job or order number' });
  expect(await field.evaluate((one) => one === document.activeElement)).toBe(true);
  await page.keyboard.type('PO-2');
  await expect.poll(() => readJobNumbers(page)).toEqual([jobs.late, jobs.kiwi].sort());
  expect(new URL(page.url()).search).toBe('?q=PO-2');
  await field.fill(String(jobs.shipped));
  await expect.poll(() => readJobNumbers(page)).toEqual([jobs.shipped]);
  await field.fill('PO-');
  await page.getByText('No job has this order number.').waitFor();
  await page.getByRole('button', { name: 'Clear filters' }).click();
  await expect.poll(async () => readJobNumbers(page)).toEqual(await listFromApi('undispatched=true'));
});

test.each([
  ['status', 'status=Scheduled'],
  ['due day', `dueOn=${dayFromNow(2)}`],
  ['due before', `dueBefore=${dayFromNow(4)}`],
  ['late', 'late=true'],
  ['order group', GROUP_QUERY],
  ['order number', 'orderNumber=PO-2', 'q=PO-2'],
  ['all jobs', '', 'which=all'],
])('filtering by %s shows the jobs that the API lists', async (_, query, own = query) => {
  const page = await signedIn(site, `/jobs?${own}`);
  const expected = await listFromApi(query);
  expect(expected.length).toBeGreaterThan(0);
  await expect.poll(() => readJobNumbers(page)).toEqual(expected);
});

test('filtering by day of dispatch shows the jobs that the API lists and the totals count', async () => {
  const zone = 'America/Denver';
  const day = new Intl.DateTimeFormat('sv', { timeZone: zone }).format(Date.now());
  const page = await signedIn(site, `/jobs?dispatchedOn=${day}`);
  await expect.poll(() => readJobNumbers(page)).toEqual([jobs.shipped]);
  expect(await listFromApi(`dispatchedOn=${day}`)).toEqual([jobs.shipped]);
  const { total } = await site.api<{ total: { dispatched: number } }>(
    `/accounts/acme/rollups?from=${day}&to=${day}`,
  );
  expect(total.dispatched).toBe(1);
});

test('filters combine, and are kept in the address across reload and back navigation', {
  tags: 'firefox',
}, async () => {
  const page = await signedIn(site, `/jobs?${GROUP_QUERY}`);
  await expect.poll(() => readJobNumbers(page)).toHaveLength(2);
  await page.getByRole('combobox', { name: 'Status' }).selectOption('Held');
  await expect.poll(() => readJobNumbers(page)).toEqual([jobs.grouped]);
  await page.reload();
  await expect.poll(() => readJobNumbers(page)).toEqual([jobs.grouped]);
  expect(await page.getByRole('textbox', { name: 'Order group' }).inputValue()).toBe(GROUP);
  await grid(page).getByRole('link').click();
  await page.getByRole('heading', { name: `Job ${jobs.grouped}` }).waitFor();
  await page.goBack();
  await expect.poll(() => readJobNumbers(page)).toEqual([jobs.grouped]);
  expect(await page.getByRole('combobox', { name: 'Status' }).inputValue()).toBe('Held');
  await page.getByRole('combobox', { name: 'Account' }).selectOption('kiwi');
  await page.getByText('No jobs match the filters.').waitFor();
});

test('the list is operable by keyboard and passes the axe checks in both themes and on a phone', async () => {
  const page = await signedIn(site, '/jobs');
  await findRow(page, jobs.kiwi).waitFor();
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
  // The job with the earliest due date.
  await page.getByRole('heading', { name: `Job ${jobs.late}` }).waitFor();
  await page.goBack();
  await findRow(page, jobs.kiwi).waitFor();
  // The row that was opened is the tab stop after the return.
  await rows.first().focus();
  await page.keyboard.press('End');
  await expect.poll(focused).toBe('8');
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { level: 1, name: /^Job / }).waitFor();
  await page.goBack();
  await findRow(page, jobs.kiwi).waitFor();
  const stop = grid(page).locator('[data-index][tabindex="0"]');
  expect(await stop.getAttribute('aria-rowindex')).toBe('8');
  await show(page, { theme: 'dark', size: 'phone' });
  await findRow(page, jobs.late).getByText('late').waitFor();
  await axe(page);
  for (const width of [390, 800, 1280]) {
    await page.setViewportSize({ width, height: 800 });
    // The time in the status is cut first.
    await expect.poll(() => isCut(findRow(page, jobs.late).locator('[data-area="status"] bdi'))).toBe(false);
  }
  await show(page, { size: 'phone' });
  await expect.poll(() => isWithinWindow(page)).toBe(true);
});

test('a list of jobs that await dispatch has no columns about the dispatch, and account names are not cut', async () => {
  const page = await signedIn(site, '/jobs');
  await findRow(page, jobs.late).waitFor();
  const dispatched = page.getByRole('columnheader', { name: /^Dispatched, / });
  expect(await dispatched.count()).toBe(0);
  expect(await page.getByRole('columnheader', { name: 'Risk details' }).count()).toBe(1);
  // 16 letters fit at 1280 px.
  const account = findRow(page, jobs.late).locator('[data-area="account"]');
  await account.locator('bdi').evaluate((name) => {
    name.textContent = 'bluebird-apparel';
  });
  expect(await isCut(account)).toBe(false);
  await page.goto(`${site.url}/jobs?which=open`);
  await dispatched.waitFor();
});

test('a row follows its job, stays when it no longer matches, and new matches are offered', async () => {
  const moving = site.account.createJob({ status: 'Ready', description: 'Moving', dateDue: dayFromNow(6) });
  await expect.poll(() => listFromApi('status=Ready')).toEqual([moving]);
  const page = await signedIn(site, '/jobs?status=Ready');
  await findRow(page, moving).waitFor();
  site.account.edit(moving, { description: 'Moved on' });
  await findRow(page, moving).getByText('Moved on').waitFor();
  const other = site.account.createJob({ status: 'Ready', dateDue: dayFromNow(1) });
  site.account.setStatus(moving, 'Printed');
  await findRow(page, moving).getByText('No longer matches: Printed').waitFor();
  await axe(page);
  await page.getByRole('button', { name: 'Show 1 new match' }).click();
  await expect.poll(() => readJobNumbers(page)).toEqual([other]);
  expect(await layoutShift(page, { touched: true })).toBeLessThan(0.1);
});

test('the rows of an open list are read again, because delays and risks change without events', async () => {
  const page = await signedIn(site, '/jobs?late=true');
  await findRow(page, jobs.late).getByText('late').waitFor();
  await page.route('**/v1/accounts/acme/jobs?*', async (route) => {
    const response = await route.fetch();
    const body = (await response.json()) as { jobs: object[] };
    await route.fulfill({
      response,
      json: { ...body, jobs: body.jobs.map((job) => ({ ...job, hoursLate: 31 })) },
    });
  });
  await page.clock.install();
  await page.clock.fastForward(61_000);
  await findRow(page, jobs.late).getByText('31 h late').waitFor();
});

test('a job page shows the state, and each event with its change, evidence and deliveries', {
  tags: 'firefox',
}, async () => {
  const body = { region: 'us', url: site.receiver.url, accounts: ['acme'], id: 'erp' };
  await site.api('/endpoints', { body });
  const job = site.account.createJob({
    ...{ status: 'Scheduled', description: 'Story', orderNumber: 'PO-9', orderGroup: GROUP },
    ...{ dateDue: dayFromNow(4), lines: [{}, {}] },
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
      return readJobNumbers(page).catch(() => []);
    })
    .toEqual([job]);
  await grid(page).getByRole('link').click();
  const events = page.getByRole('list', { name: 'Events' }).locator(':scope > li');
  await events.filter({ hasText: 'New job' }).waitFor();
  // Live, without a reload.
  site.account.setStatus(job, 'Printed');
  const changed = events.filter({ hasText: 'Status from' }).first();
  await changed.waitFor();
  expect((await changed.textContent()) ?? '').toMatch(/Status from Scheduled .* to Printed/);
  await changed
    .getByText(
      /Observed in the list at .*\. Previous observation: .*\. Changed within the .* between the two observations\./,
    )
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
  const { events: recorded } = await site.api<{ events: { id: string; sequence: string }[] }>(
    `/accounts/acme/jobs/${job}/events`,
  );
  await expect.poll(() => events.count()).toBe(recorded.length);
  expect(await events.first().textContent()).toContain(`Event ${Number(recorded[0]?.sequence)}`);
  await events.first().getByText('erp: delivered').waitFor();
  await events.first().locator('summary').click();
  await events
    .first()
    .getByText(/delivered, status code 204/)
    .waitFor();
  const before = site.receiver.requests.length;
  await events.first().getByRole('button', { name: 'Resend' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Resend' }).click();
  await expect.poll(() => site.receiver.requests.length).toBe(before + 1);
  await events.first().getByText('(resend)').waitFor();
  await axe(page);
  await show(page, { theme: 'dark', size: 'phone' });
  await axe(page);
  await page
    .getByRole('link', { name: /Spring%20& Co/ })
    .first()
    .click();
  await expect.poll(async () => (await readJobNumbers(page)).length).toBe(3);
});

test('the page of a job says whether the job is still in the list of active jobs', async () => {
  const job = site.account.createJob({ status: 'Scheduled', dateDue: dayFromNow(6) });
  await expect.poll(() => listFromApi(`jobNumber=${job}`, ['acme'])).toEqual([job]);
  const page = await signedIn(site, `/jobs/acme/${job}`);
  await page.getByText(/^Last observed in the list of active jobs /).waitFor();
  site.account.close(job);
  await page.getByText(/^No longer in the list of active jobs, last observed there /).waitFor();
});

/** Returns whether the page needs no horizontal scrolling. After a change of the window's size, that takes a few frames. */
function isWithinWindow(page: Page): Promise<boolean> {
  return page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth);
}

test('customer text is shown unchanged as text', async () => {
  const page = await signedIn(site, '/jobs');
  const row = findRow(page, jobs.hostile);
  await row.waitFor();
  expect(await row.textContent()).toContain(HOSTILE);
  await row.getByRole('link').click();
  await page.getByText(HOSTILE).first().waitFor();
  await page.getByText(`"><b>${LONG}`).first().waitFor();
  for (const size of ['desktop', 'narrow'] as const) {
    await show(page, { size });
    await expect.poll(() => isWithinWindow(page)).toBe(true);
  }
  expect(await page.locator('img').count()).toBe(0);
});

test('an unknown job or account shows an explanation', async () => {
  const page = await signedIn(site, '/jobs/acme/999999999');
  expectFault(page, /answered 404: GET .*\/jobs\/999999999$/);
  await page.getByText('Job 999999999 of account acme does not exist').waitFor();
  await page.goto(`${site.url}/jobs/acme/what`);
  await page.getByText('Job what of account acme does not exist').waitFor();
  await page.goto(`${site.url}/jobs?account=unknown`);
  await page.getByText('Account unknown does not exist').waitFor();
  await axe(page);
});

test('a read-only key shows no resend button', async () => {
  const { key } = await site.makeKey('read', ['acme']);
  const page = await signedIn(site, '/jobs', { key });
  await findRow(page, jobs.late).waitFor();
  expect(await findRow(page, jobs.kiwi).count()).toBe(0);
  await page
    .getByRole('combobox', { name: 'Status' })
    .locator('option', { hasText: 'Held' })
    .waitFor({ state: 'attached' });
  await page.goto(`${site.url}/jobs/acme/${jobs.shipped}`);
  await page.getByRole('list', { name: 'Events' }).waitFor();
  expect(await page.getByRole('button', { name: 'Resend' }).count()).toBe(0);
});
