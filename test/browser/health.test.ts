/** The Health pages: problems of accounts and endpoints, and the actions on them. */
import type { Locator, Page } from 'playwright-core';
import { expect, test } from 'vitest';
import type { SandboxAccount } from '../../sandbox/world/world.ts';
import { axe, expectFault, scriptedSite, show, signedIn } from '../support/browser.ts';

const site = scriptedSite({
  prepare: (_, acme) => {
    for (let at = 0; at < 20; at += 1) acme.createJob({ status: 'Scheduled' });
  },
});

/** Time limit of steps that take several polls or attempts. */
const LONG = { timeout: 40_000 };

const button = (on: Page | Locator, name: string) => on.getByRole('button', { name, exact: true });
const panel = (page: Page, name: string | RegExp) => page.getByRole('region', { name });
const row = (page: Page, table: string, name: string | RegExp) =>
  page.getByRole('table', { name: table }).getByRole('row').filter({ hasText: name });

/** Opens a tab of an account or endpoint. */
const openTab = (page: Page, name: 'State' | 'Activity' | 'Settings') =>
  page.getByRole('navigation').getByRole('link', { name, exact: true }).click();

/** Clicks a button, then the button `verb` in the confirmation dialog that contains `text`. */
async function confirmed(page: Page, name: string, verb: string, text: RegExp): Promise<void> {
  await button(page, name).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByText(text).waitFor();
  await button(dialog, verb).click();
  await dialog.waitFor({ state: 'detached' });
}

/** Creates an account through the API, with its own sandbox account. */
async function createAccount(id: string, jobs = 0): Promise<SandboxAccount> {
  const account = site.world.addAccount({ region: 'us', name: id });
  for (let at = 0; at < jobs; at += 1) account.createJob({ status: 'Scheduled' });
  await site.api('/accounts', {
    body: { id, region: 'us', credentials: toCredentials(account), pollIntervalSeconds: 1 },
  });
  await expect.poll(() => readState(id), LONG).toBe('tracking');
  return account;
}

const toCredentials = ({ clientId, clientSecret }: SandboxAccount) => ({ clientId, clientSecret });
const readState = async (id: string) => (await site.api<{ state: string }>(`/accounts/${id}/status`)).state;

/** Creates an endpoint of `acme` through the API. */
async function createEndpoint(id: string, more: object = {}): Promise<void> {
  await site.api('/endpoints', { body: { id, url: site.receiver.url, accounts: ['acme'], ...more } });
}

test('the overview summarizes the accounts and displays the last observation and the poll durations', async () => {
  const page = await signedIn(site, '/health');
  await page.getByText(/^(The account is|All \d accounts are) up to date/).waitFor(LONG);
  const acme = row(page, 'Accounts', 'acme');
  await acme.getByText('Polling').waitFor();
  await acme
    .getByText(/^(\d+(\.\d)? (s|ms)).*\d/)
    .first()
    .waitFor();
  await axe(page);
  await acme.getByRole('link', { name: 'acme', exact: true }).click();
  await page.getByRole('heading', { name: 'Account acme', level: 1 }).waitFor();
  await panel(page, 'Polls')
    .getByText(/^Last \d+ polls: latest .*; none failed\.$/)
    .waitFor(LONG);
  await openTab(page, 'Activity');
  await panel(page, 'Account events').getByText('Baseline complete: 20 open jobs').waitFor();
  await axe(page);
  await openTab(page, 'State');
  await button(page, 'Test credentials').click();
  await page.getByText('The credentials are valid.').waitFor();
  await expect.poll(() => page.getByText(/: passed$/).count()).toBe(3);
  await axe(page);
  await openTab(page, 'Settings');
  await page.getByText('is declared in the configuration').waitFor();
  expect(new URL(page.url()).pathname).toBe('/accounts/acme/settings');
  await page.goBack();
  await panel(page, 'Polls')
    .getByText(/^Last \d+ polls/)
    .waitFor();
});

test('earlier addresses of accounts and endpoints lead to the tabs of their pages', async () => {
  await createEndpoint('moved');
  const page = await signedIn(site, '/');
  for (const [before, after] of [
    ['/health/accounts/acme?region=us', '/accounts/acme?region=us'],
    ['/setup/accounts/acme', '/accounts/acme/settings'],
    ['/health/endpoints/us/moved', '/endpoints/us/moved'],
    ['/setup/endpoints/us/moved?region=us', '/endpoints/us/moved/settings?region=us'],
  ] as const) {
    await page.goto(new URL(before, site.url).href);
    await page.waitForURL(new URL(after, site.url).href);
    const current = page.getByRole('navigation').locator('[aria-current=page]');
    await expect
      .poll(() => current.allTextContents())
      .toEqual(['Health', after.includes('settings') ? 'Settings' : 'State']);
  }
  for (const [before, after] of [
    ['/setup/accounts?region=us', '/health?region=us#accounts'],
    ['/setup/endpoints', '/health#endpoints'],
    ['/accounts', '/health#accounts'],
  ] as const) {
    await page.goto(new URL(before, site.url).href);
    await page.waitForURL(new URL(after, site.url).href);
    await page.getByRole('heading', { name: 'Health', level: 1 }).waitFor();
  }
  // From the list to each tab.
  await row(page, 'Endpoints', 'moved').getByRole('link', { name: 'Settings of moved' }).click();
  await page.waitForURL('**/endpoints/us/moved/settings');
  await page.goto(new URL('/accounts/acme/nothing', site.url).href);
  await page.getByRole('heading', { name: 'Page not found' }).waitFor();
  await site.api('/endpoints/moved?region=us', { method: 'DELETE' });
});

test('a list of several pages says that it is not updated, and can be updated', async () => {
  await createEndpoint('pinged', { types: ['upstream.outage'] });
  const ping = () => site.api('/endpoints/pinged/ping', { method: 'POST' });
  for (let at = 0; at < 26; at += 1) await ping();
  const page = await signedIn(site, '/endpoints/us/pinged/activity');
  await button(page, 'Show more').click();
  const rows = page.getByRole('table', { name: 'Deliveries' }).getByRole('row');
  await expect.poll(() => rows.count()).toBe(27);
  await ping();
  await page.getByText('The list is not updated while it has several pages.').waitFor();
  await button(page, 'Update').click();
  await expect.poll(() => rows.count()).toBe(28);
});

test('a filter in the address can be cleared, also of a short list', async () => {
  const page = await signedIn(site, '/health?accounts=nothing');
  await page.getByText('No accounts match the filter.').waitFor();
  await page.getByRole('searchbox', { name: 'Filter accounts' }).fill('');
  await row(page, 'Accounts', 'acme').waitFor();
});

test('an account that is no longer polled is marked stale in the list and on its page', async () => {
  const page = await signedIn(site, '/health');
  await row(page, 'Accounts', 'acme').getByText('Polling').waitFor();
  // Polls hang without failing, and the clock of the browser advances by three minutes.
  const fault = site.sandbox.faults.add({ match: { account: 'acme' }, fault: { kind: 'hang' } });
  try {
    await page.clock.install({ time: Date.now() + 180_000 });
    await page.goto(new URL('/accounts/acme', site.url).href);
    await page.getByText('Stale.').waitFor();
    await page.getByText(/^3 min ago, stale$/).waitFor();
    await page.getByRole('navigation').getByRole('link', { name: 'Health' }).click();
    await row(page, 'Accounts', 'acme').getByText('Stale', { exact: true }).waitFor();
    await page
      .getByText(/is stale|are stale|None of/)
      .first()
      .waitFor();
  } finally {
    site.sandbox.faults.remove(fault);
  }
});

test('pausing and resuming an account updates its page', async () => {
  await createAccount('initech');
  const page = await signedIn(site, '/accounts/initech');
  await confirmed(page, 'Pause', 'Pause', /No events are emitted for its jobs/);
  await page.getByText('Paused.', { exact: true }).first().waitFor();
  expect(await readState('initech')).toBe('paused');
  await button(page, 'Resume').click();
  await page.getByText('Polling.').waitFor();
  await page.getByText('1 s', { exact: true }).waitFor();
  await page.getByText('now', { exact: true }).waitFor();
  expect(await readState('initech')).toBe('tracking');
});

test('an endpoint that was deleted elsewhere is replaced by an error', async () => {
  await createEndpoint('short-lived');
  const page = await signedIn(site, '/endpoints/us/short-lived');
  await page.getByRole('button', { name: 'Ping' }).waitFor();
  // Nothing was delivered.
  await page.getByText('Active. No delivery is failing.').waitFor();
  await site.api('/endpoints/short-lived?region=us', { method: 'DELETE' });
  await page.getByRole('alert').waitFor();
  expectFault(page, /answered 404/);
  expect(await page.getByRole('button', { name: 'Ping' }).count()).toBe(0);
});

test('a quarantine displays its reason and ends after a confirmation that explains its effect', async () => {
  const account = await createAccount('hooli', 30);
  for (const job of account.activeJobNumbers().slice(0, 15)) account.cancel(job);
  const page = await signedIn(site, '/accounts/hooli');
  await page.getByText('Quarantined.').waitFor(LONG);
  await page.getByText(/15 (awaiting a second check|with contradictory)/).waitFor(LONG);
  await axe(page);
  await openTab(page, 'Activity');
  await panel(page, 'Account events')
    .getByText(/Quarantined: 15 jobs/)
    .waitFor(LONG);
  await openTab(page, 'State');
  await confirmed(page, 'Confirm missing jobs', 'Confirm', /15 jobs are missing/);
  await page.getByText('Polling.').waitFor(LONG);
  await openTab(page, 'Activity');
  await panel(page, 'Account events')
    .getByText(/confirmed by an operator/)
    .waitFor(LONG);
});

test('the events of an account appear while its page is open', async () => {
  await createAccount('vandelay');
  const other = site.world.addAccount({ region: 'us', name: 'latex' });
  const page = await signedIn(site, '/accounts/vandelay/activity');
  await panel(page, 'Account events')
    .getByText(/Baseline complete/)
    .waitFor(LONG);
  await site.api('/accounts/vandelay/credentials', { method: 'PUT', body: toCredentials(other) });
  await panel(page, 'Account events')
    .getByText(/Polling stopped/)
    .waitFor(LONG);
});

test('credentials of another account stop polling until an operator confirms the identity', async () => {
  await createAccount('umbrella');
  const other = site.world.addAccount({ region: 'us', name: 'other' });
  const page = await signedIn(site, '/accounts/umbrella');
  await page.getByText('Polling.').waitFor();
  await site.api('/accounts/umbrella/credentials', { method: 'PUT', body: toCredentials(other) });
  await page.getByText('Identity mismatch.').waitFor(LONG);
  await page.getByText(`Found: account ${other.id}.`).waitFor();
  await confirmed(page, `Change to account ${other.id}`, `Change to ${other.id}`, /cannot be undone/);
  await page.getByText('Polling.').waitFor(LONG);
});

test('a failing endpoint displays the reason and becomes active when retried after the fix', async () => {
  await createEndpoint('erp');
  const [job = 0] = site.account.activeJobNumbers();
  site.receiver.answer = () => ({ status: 503, body: '<b>Closed for lunch</b>' });
  site.account.setStatus(job, 'In production');
  const page = await signedIn(site, '/health');
  const erp = row(page, 'Endpoints', 'erp');
  await erp.getByText('Failing').waitFor(LONG);
  await page.getByText(/1 endpoint is failing\./).waitFor(LONG);
  await erp.getByRole('link', { name: 'erp', exact: true }).click();
  await page.getByText(/^Failing since/).waitFor();
  await row(page, 'Longest backlogs', 'acme').waitFor();
  await axe(page);
  await openTab(page, 'Activity');
  const attempt = row(page, 'Deliveries', 'Status changed').first();
  await attempt.getByText('Failed').waitFor(LONG);
  await attempt.getByText('Response body').click();
  await attempt.getByText('<b>Closed for lunch</b>').waitFor();
  const statistics = panel(page, 'Statistics');
  await statistics.getByText(/^\d+ × 503$/).waitFor(LONG);
  await statistics.getByRole('img', { name: /^Success rate over time: 0 % of/ }).waitFor();
  await statistics.getByLabel('Window').selectOption('Last hour');
  await page.waitForURL(/window=1h/);
  await statistics.getByRole('img', { name: /in \d+ of 12 points\.$/ }).waitFor();
  await axe(page);
  await show(page, { theme: 'dark', size: 'phone' });
  await axe(page);
  await show(page, { theme: 'light', size: 'desktop' });

  site.receiver.answer = () => ({ status: 204 });
  await openTab(page, 'State');
  // The scheduled attempt may come first.
  const retryNow = button(page, 'Retry now');
  await retryNow.click({ timeout: 2_000 }).catch(() => {});
  await page.getByText('Active.').waitFor(LONG);
  await openTab(page, 'Activity');
  await page.getByLabel('Outcome').selectOption('Delivered');
  await row(page, 'Deliveries', 'Status changed').first().getByText('Delivered').waitFor(LONG);
});

test('an endpoint that responds with 410 stays disabled until it is enabled, and a ping displays its outcome', {
  tags: 'firefox',
}, async () => {
  await createEndpoint('crm');
  const [job = 0] = site.account.activeJobNumbers();
  site.receiver.answer = () => ({ status: 410 });
  site.account.setStatus(job, 'Packing');
  const page = await signedIn(site, '/endpoints/us/crm');
  await page.getByText('Disabled.').waitFor(LONG);
  await button(page, 'Ping').click();
  await page.getByText('Ping: failed').waitFor();
  await page.getByText(/status code 410/).waitFor();
  site.receiver.answer = () => ({ status: 204 });
  await button(page, 'Enable').click();
  await page.getByText('Active.').waitFor(LONG);
  await button(page, 'Ping').click();
  await page.getByText('Ping: delivered').waitFor();
  expect(site.receiver.requests.some(({ body }) => body.includes('jobwire.ping'))).toBe(true);
  await confirmed(page, 'Pause', 'Pause', /No events are sent until the endpoint is resumed/);
  await page.getByText('Paused.', { exact: true }).waitFor();
  await button(page, 'Resume').click();
  await page.getByText('Active.').waitFor();
});

test('rejected events are parked, and an operator can retry or discard them', async () => {
  await createEndpoint('picky');
  const [first = 0, second = 0, third = 0] = site.account.activeJobNumbers().slice(3);
  site.receiver.answer = (body) =>
    body.includes('job.locked') ? { status: 422, body: 'No such order' } : { status: 204 };
  for (const job of [first, second, third]) site.account.lock(job);
  const page = await signedIn(site, '/endpoints/us/picky');
  const parked = page.getByRole('table', { name: 'Parked events' });
  await panel(page, /^Parked: 3 events/).waitFor(LONG);
  const of = (job: number) => parked.getByRole('row').filter({ hasText: String(job) });
  await of(first).getByText(/422/).waitFor();
  // The first two automatic retries come within seconds, the next after ten minutes.
  await expect.poll(() => parked.getByText(/^in \d+ min$/).count(), LONG).toBe(3);
  // An attempt that is due is not “1 h ago”.
  const later = await signedIn(site, '/health');
  await later.clock.install({ time: Date.now() + 3_600_000 });
  await later.goto(page.url());
  const due = later.getByRole('table', { name: 'Parked events' }).getByText('now', { exact: true });
  await expect.poll(() => due.count(), LONG).toBe(3);
  await parked.getByRole('checkbox', { name: `Select Locked, ${third}` }).check();
  await axe(page);
  await confirmed(page, 'Discard 1 selected', 'Discard', /not sent to picky again/);
  await of(third).waitFor({ state: 'detached', ...LONG });

  site.receiver.answer = () => ({ status: 204 });
  await of(second).getByRole('checkbox').check();
  await button(page, 'Retry 1 selected').click();
  await of(second).waitFor({ state: 'detached', ...LONG });
  await button(page, 'Retry all').click();
  await panel(page, /^Parked/).waitFor({ state: 'detached', ...LONG });
  await page.getByText('Active.').waitFor(LONG);
});

test('an operator replays the dead events of a fixed endpoint in at most four clicks from the list of endpoints', async () => {
  await createEndpoint('recovered');
  const [first = 0, second = 0] = site.account.activeJobNumbers().slice(8);
  site.receiver.answer = (body) =>
    body.includes('job.locked') ? { status: 422, body: 'No such order' } : { status: 204 };
  for (const job of [first, second]) site.account.lock(job);
  const list = async (what: 'parked' | 'dead') =>
    (await site.api<Record<string, { attempts: number }[]>>(`/endpoints/recovered/${what}`))[what] ?? [];
  // After the automatic retries, the last attempt is started by hand.
  await expect.poll(async () => (await list('parked')).map(({ attempts }) => attempts), LONG).toEqual([3, 3]);
  await site.api('/endpoints/recovered/parked/retry', { body: { all: true } });
  await expect.poll(async () => (await list('dead')).length, LONG).toBe(2);
  site.receiver.answer = () => ({ status: 204 });
  const page = await signedIn(site, '/health');
  let clicks = 0;
  const click = async (on: Locator): Promise<void> => {
    clicks += 1;
    await on.click();
  };
  await click(row(page, 'Endpoints', 'recovered').getByRole('link', { name: 'recovered', exact: true }));
  await click(button(page, 'Replay dead…'));
  const dialog = page.getByRole('dialog');
  await button(dialog, 'Replay 2 events').waitFor();
  expect((await list('dead')).length, 'counting sends nothing').toBe(2);
  await dialog.getByLabel('Job numbers').fill(String(second));
  await button(dialog, 'Replay 1 event').waitFor();
  await dialog.getByLabel('Status codes').fill('500');
  await dialog.getByText('0 dead events').waitFor();
  expect(await button(dialog, 'Replay 0 events').isDisabled()).toBe(true);
  // The count of an invalid filter is unknown.
  await dialog.getByLabel('Job numbers').fill('x');
  await dialog.getByText('0 dead events').waitFor({ state: 'detached' });
  await dialog.getByLabel('Status codes').fill('422');
  await dialog.getByLabel('Job numbers').fill('');
  await button(dialog, 'Replay 2 events').waitFor();
  await axe(page);
  await click(button(dialog, 'Replay 2 events'));
  await dialog.waitFor({ state: 'detached' });
  expect(clicks).toBeLessThanOrEqual(4);
  await panel(page, 'Replays').getByText('2 of 2: 2 delivered').waitFor(LONG);
  await panel(page, 'Dead').waitFor({ state: 'detached', ...LONG });
  expect(await list('dead')).toEqual([]);
});

test('a replay is started in a form, displays its progress, and completes or is cancelled', async () => {
  site.receiver.answer = () => ({ status: 204 });
  await expect.poll(() => readState('acme'), LONG).toBe('tracking');
  for (let at = 0; at < 220; at += 1) site.account.createJob({ status: 'Scheduled' });
  const sequence = async () =>
    Number(/\d+$/.exec((await site.api<{ head: string }>('/accounts/acme/status')).head)?.[0]);
  await expect.poll(sequence, LONG).toBeGreaterThan(220);
  await createEndpoint('mirror', { ratePerSecond: 40 });
  const page = await signedIn(site, '/endpoints/us/mirror');
  const replays = panel(page, 'Replays');
  await button(page, 'Start replay').click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('Start', { exact: true }).selectOption('Cursor of one account');
  await dialog.getByLabel('Account').fill('unknown');
  await dialog.getByLabel('Cursor', { exact: true }).fill('e1.1');
  await button(dialog, 'Start replay').click();
  // At the field, and in the summary of the form.
  await dialog
    .getByText(/must contain only accounts whose events the endpoint receives/)
    .first()
    .waitFor();
  expectFault(page, /answered 422/);
  await dialog.getByLabel('Start', { exact: true }).selectOption('Time');
  await dialog.getByLabel('Start time').fill('');
  await button(dialog, 'Start replay').click();
  await dialog
    .getByText(/must be/)
    .first()
    .waitFor();
  await axe(page);
  await dialog.getByLabel('Start', { exact: true }).selectOption('Oldest kept event');
  await button(dialog, 'Start replay').click();
  await dialog.waitFor({ state: 'detached' });
  const bar = replays.getByRole('progressbar');
  const value = async () => Number(await bar.first().getAttribute('value'));
  await expect.poll(value, LONG).toBeGreaterThan(0);
  expect(await value()).toBeLessThan(Number(await bar.first().getAttribute('max')));
  await replays.getByText('Completed', { exact: true }).waitFor(LONG);
  expect(await value()).toBe(Number(await bar.first().getAttribute('max')));
  await axe(page);

  await button(page, 'Start replay').click();
  await dialog.getByLabel('Start', { exact: true }).selectOption('Oldest kept event');
  await button(dialog, 'Start replay').click();
  await dialog.waitFor({ state: 'detached' });
  await replays.getByText('Running', { exact: true }).waitFor();
  await confirmed(page, 'Stop', 'Stop replay', /No further events are sent/);
  await replays.getByText('Cancelled', { exact: true }).waitFor();
}, 120_000);

test('a read-only key displays all Health pages without any action', async () => {
  await createEndpoint('seen');
  const { key } = await site.makeKey('read');
  const page = await signedIn(site, '/health', { key });
  await row(page, 'Endpoints', 'seen').getByText('Active').waitFor();
  await page.goto(new URL('/accounts/acme', site.url).href);
  await panel(page, 'Polls')
    .getByText(/^Last \d+ polls/)
    .waitFor(LONG);
  const offered = () => page.getByRole('main').getByRole('button').allTextContents();
  expect(await offered()).toEqual([]);
  await page.goto(new URL('/endpoints/us/seen', site.url).href);
  await panel(page, 'Replays')
    .getByText(/No recent replays/)
    .waitFor();
  expect(await offered()).toEqual([]);
});
