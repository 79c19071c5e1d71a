/** The pages of Health: what is in trouble is seen, and can be acted on. */
import type { Locator, Page } from 'playwright-core';
import { expect, test } from 'vitest';
import type { SandboxAccount } from '../../sandbox/world/world.ts';
import { axe, expectFault, scriptedSite, show, signedIn } from '../support/browser.ts';

const site = scriptedSite({
  prepare: (_, acme) => {
    for (let at = 0; at < 20; at += 1) acme.createJob({ status: 'Scheduled' });
  },
});

/** What takes some polls, or some tries. */
const LONG = { timeout: 40_000 };

const button = (on: Page | Locator, name: string) => on.getByRole('button', { name, exact: true });
const panel = (page: Page, name: string | RegExp) => page.getByRole('region', { name });
const row = (page: Page, table: string, name: string | RegExp) =>
  page.getByRole('table', { name: table }).getByRole('row').filter({ hasText: name });

/** Presses a button, and the one in the dialog that says what will happen. */
async function confirmed(page: Page, name: string, verb: string, says: RegExp): Promise<void> {
  await button(page, name).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByText(says).waitFor();
  await button(dialog, verb).click();
  await dialog.waitFor({ state: 'detached' });
}

/** An account that people made, with a sandbox account of its own. */
async function makeAccount(id: string, jobs = 0): Promise<SandboxAccount> {
  const account = site.world.addAccount({ region: 'us', name: id });
  for (let at = 0; at < jobs; at += 1) account.createJob({ status: 'Scheduled' });
  await site.api('/accounts', {
    body: { id, region: 'us', credentials: credentialsOf(account), pollIntervalSeconds: 1 },
  });
  await expect.poll(() => stateOf(id), LONG).toBe('tracking');
  return account;
}

const credentialsOf = ({ clientId, clientSecret }: SandboxAccount) => ({ clientId, clientSecret });
const stateOf = async (id: string) => (await site.api<{ state: string }>(`/accounts/${id}/status`)).state;

/** An endpoint of `acme` that people made. */
async function makeEndpoint(id: string, more: object = {}): Promise<void> {
  await site.api('/endpoints', { body: { id, url: site.receiver.url, accounts: ['acme'], ...more } });
}

test('what is up to date is said in a sentence, with when it was seen and how long polls take', async () => {
  const page = await signedIn(site, '/health');
  await page.getByText(/^(The account is|All \d accounts are) up to date/).waitFor(LONG);
  const acme = row(page, 'Accounts', 'acme');
  await acme.getByText('Up to date').waitFor();
  await acme
    .getByText(/^(\d+(\.\d)? (s|ms)).*\d/)
    .first()
    .waitFor();
  await axe(page);
  await acme.getByRole('link', { name: 'acme' }).click();
  await page.getByRole('heading', { name: 'Account acme', level: 1 }).waitFor();
  await panel(page, 'Polls')
    .getByText(/^The last \d+ polls: the latest took .*; none failed\.$/)
    .waitFor(LONG);
  await panel(page, 'What was said of it').getByText('Tracking begins: 20 open jobs known').waitFor();
  await button(page, 'Test credentials').click();
  await page.getByText('The credentials work.').waitFor();
  await expect.poll(() => page.getByText(/: works$/).count()).toBe(3);
  await axe(page);
  // What the setup knows of the account is something else.
  await page.getByRole('link', { name: 'Its setup' }).click();
  await page.getByRole('heading', { name: /acme/, level: 1 }).waitFor();
  await page.goBack();
  await panel(page, 'Polls')
    .getByText(/^The last \d+ polls/)
    .waitFor();
});

test('an account that is no longer polled is loudly stale, in the list and on its page', async () => {
  const page = await signedIn(site, '/health');
  await row(page, 'Accounts', 'acme').getByText('Up to date').waitFor();
  // No poll ends from now on, and none fails; then the clock of whoever looks goes on for three minutes.
  const fault = site.sandbox.faults.add({ match: { account: 'acme' }, fault: { kind: 'hang' } });
  try {
    await page.clock.install({ time: Date.now() + 180_000 });
    await page.goto(new URL('/health/accounts/acme', site.url).href);
    await page.getByText('Not seen for too long.').waitFor();
    await page.getByText(/^3 min ago, too long ago$/).waitFor();
    await page.getByRole('navigation').getByRole('link', { name: 'Health' }).click();
    await row(page, 'Accounts', 'acme').getByText('Not seen for too long').waitFor();
    await page
      .getByText(/The account has not been seen|1 has not been seen|have not been seen|None of/)
      .first()
      .waitFor();
  } finally {
    site.sandbox.faults.remove(fault);
  }
});

test('an account is paused and resumed, and the page is as fresh as that', async () => {
  await makeAccount('initech');
  const page = await signedIn(site, '/health/accounts/initech');
  await confirmed(page, 'Pause', 'Pause', /not polled, and nothing new is said/);
  await page.getByText('Polling is paused.').first().waitFor();
  expect(await stateOf('initech')).toBe('paused');
  await button(page, 'Resume').click();
  await page.getByText('Up to date.').waitFor();
  expect(await stateOf('initech')).toBe('tracking');
});

test('what is deleted elsewhere is not shown as it was', async () => {
  await makeEndpoint('short-lived');
  const page = await signedIn(site, '/health/endpoints/us/short-lived');
  await page.getByRole('button', { name: 'Ping' }).waitFor();
  await site.api('/endpoints/short-lived?region=us', { method: 'DELETE' });
  await page.getByRole('alert').waitFor();
  expectFault(page, /answered 404/);
  expect(await page.getByRole('button', { name: 'Ping' }).count()).toBe(0);
});

test('a quarantine says what it is about, and is confirmed by somebody who was told what that does', async () => {
  const account = await makeAccount('hooli', 30);
  for (const job of account.activeJobNumbers().slice(0, 15)) account.cancel(job);
  const page = await signedIn(site, '/health/accounts/hooli');
  await page.getByText('Answers in doubt.').waitFor(LONG);
  await page.getByText(/15 (seem to be gone|with answers)/).waitFor(LONG);
  await panel(page, 'What was said of it')
    .getByText(/jobs seem to be gone at once/)
    .waitFor(LONG);
  await axe(page);
  await confirmed(page, 'Confirm that they are gone', 'They are gone', /15 jobs are missing/);
  await page.getByText('Up to date.').waitFor(LONG);
  await panel(page, 'What was said of it')
    .getByText(/somebody confirmed/)
    .waitFor(LONG);
});

test('credentials of another account stop polling, until somebody says which account it is', async () => {
  await makeAccount('umbrella');
  const other = site.world.addAccount({ region: 'us', name: 'other' });
  const page = await signedIn(site, '/health/accounts/umbrella');
  await page.getByText('Up to date.').waitFor();
  await site.api('/accounts/umbrella/credentials', { method: 'PUT', body: credentialsOf(other) });
  await page.getByText('Credentials of another account.').waitFor(LONG);
  await page.getByText(`Found: account ${other.id}.`).waitFor();
  await confirmed(
    page,
    `It is account ${other.id} from now on`,
    `It is ${other.id} from now on`,
    /can’t be taken back/,
  );
  await page.getByText('Up to date.').waitFor(LONG);
});

test('an endpoint that fails says so and why; when it is mended it goes on at once', async () => {
  await makeEndpoint('erp');
  const [job = 0] = site.account.activeJobNumbers();
  site.receiver.answer = () => ({ status: 503, body: '<b>Closed for lunch</b>' });
  site.account.setStatus(job, 'In production');
  const page = await signedIn(site, '/health');
  const erp = row(page, 'Endpoints', 'erp');
  await erp.getByText('Failing').waitFor(LONG);
  await page.getByText(/1 endpoint is failing\./).waitFor(LONG);
  await erp.getByRole('link', { name: 'erp' }).click();
  await page.getByText(/^Failing since/).waitFor();
  const attempt = row(page, 'Deliveries', 'Status changed').first();
  await attempt.getByText('Failed').waitFor(LONG);
  await attempt.getByText('How the answer began').click();
  await attempt.getByText('<b>Closed for lunch</b>').waitFor();
  await row(page, 'Longest backlogs', 'acme').waitFor();
  await axe(page);
  await show(page, { theme: 'dark', size: 'phone' });
  await axe(page);
  await show(page, { theme: 'light', size: 'desktop' });

  site.receiver.answer = () => ({ status: 204 });
  // Its own next try may come first.
  const tryNow = button(page, 'Try now');
  await tryNow.click({ timeout: 2_000 }).catch(() => {});
  await page.getByText('Takes events.').waitFor(LONG);
  await page.getByLabel('Which attempts').selectOption('Taken');
  await row(page, 'Deliveries', 'Status changed').first().getByText('Taken').waitFor(LONG);
});

test('an endpoint that wants no more is disabled until somebody enables it; a ping shows what came of it', async () => {
  await makeEndpoint('crm');
  const [job = 0] = site.account.activeJobNumbers();
  site.receiver.answer = () => ({ status: 410 });
  site.account.setStatus(job, 'Packing');
  const page = await signedIn(site, '/health/endpoints/us/crm');
  await page.getByText('Disabled.').waitFor(LONG);
  await button(page, 'Ping').click();
  await page.getByText('Ping: failed').waitFor();
  await page.getByText(/answered with 410/).waitFor();
  site.receiver.answer = () => ({ status: 204 });
  await button(page, 'Enable').click();
  await page.getByText('Takes events.').waitFor(LONG);
  await button(page, 'Ping').click();
  await page.getByText('Ping: taken').waitFor();
  expect(site.receiver.requests.some(({ body }) => body.includes('jobwire.ping'))).toBe(true);
  await confirmed(page, 'Pause', 'Pause', /gets nothing until somebody resumes it/);
  await page.getByText('Paused.', { exact: true }).waitFor();
  await button(page, 'Resume').click();
  await page.getByText('Takes events.').waitFor();
});

test('what it refuses is set aside, tried again when somebody says so, or discarded', async () => {
  await makeEndpoint('picky');
  const [first = 0, second = 0, third = 0] = site.account.activeJobNumbers().slice(3);
  site.receiver.answer = (body) =>
    body.includes('job.locked') ? { status: 422, body: 'No such order' } : { status: 204 };
  for (const job of [first, second, third]) site.account.lock(job);
  const page = await signedIn(site, '/health/endpoints/us/picky');
  const parked = page.getByRole('table', { name: 'Parked events' });
  await panel(page, /^Parked: 3 events/).waitFor(LONG);
  const of = (job: number) => parked.getByRole('row').filter({ hasText: String(job) });
  await of(first).getByText(/422/).waitFor();
  // By itself it is tried twice within seconds, and then in ten minutes.
  await expect.poll(() => parked.getByText(/^in \d+ min$/).count(), LONG).toBe(3);
  await of(third).getByRole('checkbox').check();
  await axe(page);
  await confirmed(page, 'Discard 1 chosen', 'Discard', /not sent to picky any more/);
  await of(third).waitFor({ state: 'detached', ...LONG });

  site.receiver.answer = () => ({ status: 204 });
  await of(second).getByRole('checkbox').check();
  await button(page, 'Retry 1 chosen').click();
  await of(second).waitFor({ state: 'detached', ...LONG });
  await button(page, 'Retry all').click();
  await panel(page, /^Parked/).waitFor({ state: 'detached', ...LONG });
  await page.getByText('Takes events.').waitFor(LONG);
});

test('a replay is asked for in a form, moves, and comes to its end; one that is not wanted is ended', async () => {
  site.receiver.answer = () => ({ status: 204 });
  await expect.poll(() => stateOf('acme'), LONG).toBe('tracking');
  for (let at = 0; at < 220; at += 1) site.account.createJob({ status: 'Scheduled' });
  const sequence = async () =>
    Number(/\d+$/.exec((await site.api<{ head: string }>('/accounts/acme/status')).head)?.[0]);
  await expect.poll(sequence, LONG).toBeGreaterThan(220);
  await makeEndpoint('mirror', { ratePerSecond: 40 });
  const page = await signedIn(site, '/health/endpoints/us/mirror');
  const replays = panel(page, 'Replays');
  await button(page, 'Send events again').click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('From when on').selectOption('A cursor in the log of one account');
  await dialog.getByLabel('Account').fill('nobody');
  await dialog.getByLabel('After the cursor').fill('e1.1');
  await button(dialog, 'Send again').click();
  await dialog.getByText(/must name accounts that are followed/).waitFor();
  expectFault(page, /answered 422/);
  await dialog.getByLabel('From when on').selectOption('A time');
  await dialog.getByLabel('What happened then or later').fill('');
  await button(dialog, 'Send again').click();
  await dialog.getByText(/must be/).waitFor();
  await axe(page);
  await dialog.getByLabel('From when on').selectOption('All that is kept');
  await button(dialog, 'Send again').click();
  await dialog.waitFor({ state: 'detached' });
  const bar = replays.getByRole('progressbar');
  const value = async () => Number(await bar.first().getAttribute('value'));
  await expect.poll(value, LONG).toBeGreaterThan(0);
  expect(await value()).toBeLessThan(Number(await bar.first().getAttribute('max')));
  await replays.getByText('Done', { exact: true }).waitFor(LONG);
  expect(await value()).toBe(Number(await bar.first().getAttribute('max')));
  await axe(page);

  await button(page, 'Send events again').click();
  await dialog.getByLabel('From when on').selectOption('All that is kept');
  await button(dialog, 'Send again').click();
  await dialog.waitFor({ state: 'detached' });
  await replays.getByText('Running', { exact: true }).waitFor();
  await confirmed(page, 'End', 'End it', /nothing else of it is sent/);
  await replays.getByText('Cancelled', { exact: true }).waitFor();
}, 120_000);

test('a key that may only read sees all of it, and is offered nothing', async () => {
  await makeEndpoint('seen');
  const { key } = await site.makeKey('read');
  const page = await signedIn(site, '/health', { key });
  await row(page, 'Endpoints', 'seen').getByText('Takes events').waitFor();
  await page.goto(new URL('/health/accounts/acme', site.url).href);
  await panel(page, 'Polls')
    .getByText(/^The last \d+ polls/)
    .waitFor(LONG);
  const offered = () => page.getByRole('main').getByRole('button').allTextContents();
  expect(await offered()).toEqual([]);
  await page.goto(new URL('/health/endpoints/us/seen', site.url).href);
  await panel(page, 'Replays').getByText('Nothing was sent again lately.').waitFor();
  expect(await offered()).toEqual([]);
});
