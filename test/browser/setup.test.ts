/**
 * Setup pages: accounts, endpoints and keys are created, changed and deleted.
 * One file: its tests share one running site and its browser.
 */
import type { Locator, Page, Request } from 'playwright-core';
import { describe, expect, test } from 'vitest';
import type { SandboxAccount } from '../../sandbox/world/world.ts';
import { axe, expectFault, loaded, scriptedSite, show, signedIn } from '../support/browser.ts';

const DECLARED_SECRET = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
const site = scriptedSite({
  prepare: (world) => world.addAccount({ region: 'nz', name: 'kiwi' }),
  config: {
    endpoints: [
      {
        ...{ id: 'warehouse', url: 'http://127.0.0.1:9/jobs', secret: DECLARED_SECRET },
        ...{ accounts: ['acme'], types: ['upstream.outage'] },
      },
    ],
  },
});

interface Endpoint {
  readonly id: string;
  readonly revision: number;
  readonly [field: string]: unknown;
}

let count = 0;
/** Returns an unused name. */
const fresh = (prefix: string): string => `${prefix}-${++count}`;
const heading = (page: Page, name: string) => page.getByRole('heading', { name, level: 1, exact: true });
const button = (of: Page | Locator, name: string | RegExp) => of.getByRole('button', { name, exact: true });
const toast = (page: Page, text: string | RegExp) => page.getByRole('alert').filter({ hasText: text });
/** Finds an input by its label, with or without the asterisk of required fields. */
const field = (of: Page | Locator, label: string) =>
  of.getByLabel(new RegExp(`^${label.replace(/[()]/g, '\\$&')}( \\*)?$`));
/** Finds a group of controls by its legend. */
const group = (page: Page, name: string) => page.getByRole('group', { name, exact: true });
/** The error summary of a form. */
const errorSummary = (page: Page) => page.getByRole('alert').filter({ hasText: /^Correct th/ });
/** Returns the description of an invalid field, as screen readers announce it. */
async function errorAt(field: Locator): Promise<string> {
  await expect.poll(() => field.getAttribute('aria-invalid')).toBe('true');
  return field.evaluate((one) =>
    (one.getAttribute('aria-describedby') ?? '')
      .split(' ')
      .map((id) => document.getElementById(id)?.textContent ?? '')
      .join(' '),
  );
}
/** Creates an account of the sandbox that Jobwire does not know. */
const stranger = (): SandboxAccount => site.world.addAccount({ region: 'us', name: fresh('nova') });

async function newEndpoint(more: object = {}): Promise<Endpoint> {
  const body = { id: fresh('erp'), region: 'us', url: site.receiver.url, types: ['job.*'], ...more };
  return (await site.api<{ endpoint: Endpoint }>('/endpoints', { body })).endpoint;
}

const endpointNow = (id: string) => site.api<Endpoint>(`/endpoints/${id}?region=us`);
/** Collects the page's requests with a method from now on. */
function getRequests(page: Page, method: string): Request[] {
  const requests: Request[] = [];
  page.on('request', (request) => {
    if (request.method() === method) requests.push(request);
  });
  return requests;
}

/** Returns everything that the page shows or stores. */
const everythingOn = (page: Page): Promise<string> =>
  page.evaluate(() =>
    JSON.stringify([
      document.documentElement.outerHTML,
      [...document.querySelectorAll('input, textarea')].map((one) => (one as HTMLInputElement).value),
      { ...sessionStorage },
      { ...localStorage },
      document.cookie,
      history.state,
      location.href,
    ]),
  );

/** Reads the secret from its dialog, checks that the dialog stays open until confirmed, and closes it. */
async function takeSecret(page: Page, title: RegExp): Promise<string> {
  const dialog = page.getByRole('dialog', { name: title });
  const secret = await dialog.getByRole('textbox').inputValue();
  // axe takes controls that the sticky header covers in part for too small.
  await page.evaluate(() => scrollTo(0, 0));
  await axe(page);
  await page.keyboard.press('Escape');
  await page.mouse.click(5, 5);
  expect(await button(dialog, 'Close').isDisabled()).toBe(true);
  expect(await dialog.isVisible()).toBe(true);
  await dialog.getByLabel('I have stored it').check();
  await button(dialog, 'Close').click();
  await dialog.waitFor({ state: 'detached' });
  return secret;
}

describe('accounts', () => {
  test('an account is tested, created, given another interval and other credentials, and deleted', async () => {
    const { name, clientId, clientSecret } = stranger();
    const page = await signedIn(site, '/health');
    await page.getByRole('link', { name: 'New account' }).click();
    await field(page, 'Id').fill(name);
    await field(page.getByRole('main'), 'Region').selectOption('us');
    await field(page, 'Client id').fill(clientId);
    await field(page, 'Client secret').fill('not the secret');
    await button(page, 'Test credentials').click();
    const steps = page.getByRole('list', { name: 'Steps of the test' }).getByRole('listitem');
    await expect.poll(() => steps.count()).toBe(1);
    await field(page, 'Client secret').fill(clientSecret);
    // The result of other credentials disappears.
    expect(await steps.count()).toBe(0);
    await button(page, 'Test credentials').click();
    await page.getByText('The credentials are valid.').waitFor();
    expect(await steps.count()).toBe(3);
    expect(await site.api<{ accounts: { id: string }[] }>('/accounts')).not.toMatchObject({
      accounts: expect.arrayContaining([expect.objectContaining({ id: name })]),
    });
    await field(page, 'Poll interval (seconds)').fill('30');
    await page.getByLabel('Start paused').check();
    await button(page, 'Create account').click();
    await heading(page, `Account ${name}`).waitFor();
    expect(await site.api(`/accounts/${name}`)).toMatchObject({
      ...{ region: 'us', managed: true, pollIntervalSeconds: 30, paused: true },
    });
    expect(await everythingOn(page)).not.toContain(clientSecret);
    // The new account begins with its state.
    await page.getByText('Paused.', { exact: true }).first().waitFor();
    await page.getByRole('link', { name: 'Settings', exact: true }).click();

    const patches = getRequests(page, 'PATCH');
    await field(page, 'Poll interval (seconds)').fill('45');
    await button(page, 'Save interval').click();
    await toast(page, 'saved.').waitFor();
    expect(await site.api(`/accounts/${name}`)).toMatchObject({ pollIntervalSeconds: 45 });
    expect(patches.map((request) => request.headers()['if-match'])).toEqual(['"1"']);

    await field(page, 'Client id').fill(clientId);
    await field(page, 'Client secret').fill(clientSecret);
    await button(page, 'Replace credentials').click();
    await toast(page, /^Credentials of .* replaced/).waitFor();
    expect(await field(page, 'Client secret').inputValue()).toBe('');
    expect(await everythingOn(page)).not.toContain(clientSecret);

    // The page repeats the request until the deletion is complete, which the server reports by 204 or, later, by 404.
    await page.route(`**/v1/accounts/${name}`, async (route) => {
      if (route.request().method() !== 'DELETE') return route.fallback();
      const response = await route.fetch();
      return route.fulfill(response.status() === 404 ? { status: 204 } : { response });
    });
    await button(page, `Delete ${name}`).click();
    const dialog = page.getByRole('dialog');
    for (const item of ['event log', 'jobs', 'recipients', 'credentials'])
      expect(await dialog.textContent()).toContain(item);
    await axe(page);
    expect(await button(dialog, 'Delete permanently').isDisabled()).toBe(true);
    await dialog.getByRole('textbox').fill(name);
    await button(dialog, 'Delete permanently').click();
    await heading(page, 'Health').waitFor();
    await toast(page, 'deleted.').waitFor();
    await expect.poll(() => page.getByRole('link', { name, exact: true }).count()).toBe(0);
    await expect(site.api(`/accounts/${name}`)).rejects.toThrow('404');
  });

  test('an account is added in at most five clicks from Now', async () => {
    const { name, clientId, clientSecret } = stranger();
    const page = await signedIn(site, '/');
    let clicks = 0;
    const click = async (on: Locator): Promise<void> => {
      clicks += 1;
      await on.click();
    };
    await click(page.getByRole('navigation').getByRole('link', { name: 'Setup' }));
    await click(page.getByRole('link', { name: 'New account' }));
    await field(page, 'Id').fill(name);
    await field(page.getByRole('main'), 'Region').selectOption('us');
    await field(page, 'Client id').fill(clientId);
    await field(page, 'Client secret').fill(clientSecret);
    await click(button(page, 'Create account'));
    await heading(page, `Account ${name}`).waitFor();
    expect(clicks).toBeLessThanOrEqual(5);
    // The open page would request the deleted account.
    await page.goto('about:blank');
    await site.api(`/accounts/${name}`, { method: 'DELETE' });
  });

  test('the deletion of a large account is followed until it is complete, and leaving it requires confirmation', async () => {
    const { name, clientId, clientSecret } = stranger();
    const credentials = { clientId, clientSecret };
    await site.api('/accounts', { body: { id: name, region: 'us', credentials, paused: true } });
    const page = await signedIn(site, `/accounts/${name}/settings`);
    // Not those of the server: a deletion that takes longer than this test would add further responses.
    const answers = [202, 202, 204];
    await page.route(`**/v1/accounts/${name}`, async (route) => {
      const status = route.request().method() === 'DELETE' ? answers.shift() : undefined;
      return status === undefined ? route.continue() : route.fulfill({ status });
    });
    await button(page, `Delete ${name}`).click();
    await page.getByRole('dialog').getByRole('textbox').fill(name);
    await button(page.getByRole('dialog'), 'Delete permanently').click();
    await page.getByText('Keep this page open until it is complete.').waitFor();
    await page.getByRole('navigation').getByRole('link', { name: 'Now' }).click();
    await button(page.getByRole('dialog', { name: 'Leave before the data is removed?' }), 'Cancel').click();
    await toast(page, 'deleted.').waitFor();
    await heading(page, 'Health').waitFor();
    expect(answers).toEqual([]);
    await site.api(`/accounts/${name}`, { method: 'DELETE' });
  });

  test.each<[field: string, typed: string, message: RegExp]>([
    ['Id', '', /It must be 1–63 lower-case letters/],
    ['Id', 'No Such', /It must be 1–63 lower-case letters/],
    ['Client id', '', /It must be the client id of the account’s credentials\./],
    ['Client id', ' padded', /It must not begin or end with a space/],
    ['Client id', 'x'.repeat(1001), /It must be at most 1000 characters\./],
    ['Client secret', '', /It must be the client secret/],
    ['Poll interval (seconds)', '', /It must be an integer number of seconds from 1 to 86400\./],
    ['Poll interval (seconds)', '0', /It must be an integer number of seconds/],
    ['Poll interval (seconds)', '1.5', /It must be an integer number of seconds/],
    ['Poll interval (seconds)', '86401', /It must be an integer number of seconds/],
    ['Poll interval (seconds)', 'often', /It must be an integer number of seconds/],
  ])(
    'an error of %s (%#) appears at the field and in a summary that leads to it',
    async (name, typed, message) => {
      const page = await signedIn(site, '/setup/new-account?region=us');
      const posts = getRequests(page, 'POST');
      const values = {
        Id: 'nova',
        'Client id': 'id',
        'Client secret': 'secret',
        'Poll interval (seconds)': '120',
      };
      for (const [label, value] of Object.entries({ ...values, [name]: typed }))
        await field(page, label).fill(value);
      await button(page, 'Create account').click();
      const wrong = field(page, name);
      expect(await errorAt(wrong)).toMatch(message);
      // The summary has the focus. Its lines lead to the fields.
      expect(await page.evaluate(() => document.activeElement?.textContent)).toMatch(/Correct this field/);
      await button(errorSummary(page), name).click();
      expect(await wrong.evaluate((one) => one === document.activeElement)).toBe(true);
      expect(await wrong.inputValue()).toBe(typed);
      expect(posts).toEqual([]);
    },
  );

  test('unsaved changes can be left for the API reference', async () => {
    const page = await signedIn(site, '/setup/new-account?region=us');
    await field(page, 'Id').fill('unsaved');
    const open = async (): Promise<void> => {
      await button(page, 'User menu').click();
      await page.getByRole('menuitem', { name: 'API reference' }).click();
      await button(page.getByRole('dialog'), 'Leave').waitFor();
      await page.getByRole('menu').waitFor({ state: 'detached' });
    };
    await open();
    await button(page.getByRole('dialog'), 'Cancel').click();
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await expect.poll(() => page.locator(':focus').getAttribute('aria-label')).toBe('User menu');
    expect(await field(page, 'Id').inputValue()).toBe('unsaved');
    await open();
    await button(page.getByRole('dialog'), 'Leave').click();
    await page.locator('#content').waitFor({ state: 'detached' });
    expect(new URL(page.url()).pathname).toBe('/docs');
  });

  test('an error of the API appears at its field, and input is kept', async () => {
    const page = await signedIn(site, '/setup/new-account?region=us');
    expectFault(page, /answered 409: POST .*\/v1\/accounts$/);
    expectFault(page, /answered 422: POST .*\/v1\/accounts$/);
    await field(page, 'Id').fill('acme');
    await field(page, 'Client id').fill('some-id');
    await field(page, 'Client secret').fill('some-secret');
    await button(page, 'Create account').click();
    expect(await errorAt(field(page, 'Id'))).toContain('It must be new: an account "acme" already exists.');
    await axe(page);
    expect(await field(page, 'Client secret').inputValue()).toBe('some-secret');
    await field(page, 'Id').fill(fresh('nova'));
    await page.getByLabel('Secret of the cell').check();
    await field(page, 'Secret name').fill('cell/us/nova');
    await button(page, 'Create account').click();
    expect(await errorAt(field(page, 'Secret name'))).toContain('It must be omitted');
  });

  test('a change of a modified account reports the conflict and keeps the input', async () => {
    const { name, clientId, clientSecret } = stranger();
    const credentials = { clientId, clientSecret };
    await site.api('/accounts', { body: { id: name, region: 'us', credentials, paused: true } });
    const page = await signedIn(site, `/accounts/${name}/settings`);
    await field(page, 'Poll interval (seconds)').fill('77');
    await site.api(`/accounts/${name}`, { method: 'PATCH', body: { pollIntervalSeconds: 300 } });
    expectFault(page, /answered 412: PATCH/);
    await button(page, 'Save interval').click();
    await page.getByText('The data was modified after you opened this page').waitFor();
    await button(page, 'Load latest version').click();
    await page.getByText('Modified meanwhile: poll interval.').waitFor();
    expect(await field(page, 'Poll interval (seconds)').inputValue()).toBe('77');
    await button(page, 'Save interval').click();
    await toast(page, 'saved.').waitFor();
    expect(await site.api(`/accounts/${name}`)).toMatchObject({ pollIntervalSeconds: 77 });
  });

  test('a change does not conflict with one of other fields', async () => {
    const { name, clientId, clientSecret } = stranger();
    const credentials = { clientId, clientSecret };
    await site.api('/accounts', { body: { id: name, region: 'us', credentials, paused: true } });
    const page = await signedIn(site, `/accounts/${name}/settings`);
    await field(page, 'Due soon (hours)').fill('12');
    await field(page, 'Poll interval (seconds)').fill('90');
    await button(page, 'Save interval').click();
    await toast(page, /^Poll interval/).waitFor();
    await button(page, 'Save events').click();
    await toast(page, /^Event settings/).waitFor();
    expect(await site.api(`/accounts/${name}`)).toMatchObject({
      ...{ pollIntervalSeconds: 90, events: { dueSoonHours: 12 } },
    });
  });

  test.each<[string, (page: Page) => Promise<unknown>]>([
    ['back', (page) => page.goBack()],
    ['a link', (page) => page.getByRole('link', { name: 'Health' }).click()],
  ])('two edited forms are left by %s after one confirmation', async (_, leave) => {
    const { name, clientId, clientSecret } = stranger();
    const credentials = { clientId, clientSecret };
    await site.api('/accounts', { body: { id: name, region: 'us', credentials, paused: true } });
    const page = await signedIn(site, '/health');
    await page.getByRole('link', { name: `Settings of ${name}` }).click();
    await field(page, 'Due soon (hours)').fill('12');
    await field(page, 'Poll interval (seconds)').fill('90');
    await leave(page);
    const dialog = page.getByRole('dialog', { name: 'Leave without saving?' });
    await button(dialog, 'Leave').click();
    await heading(page, 'Health').waitFor();
    await dialog.waitFor({ state: 'detached' });
  });
});

describe('endpoints', () => {
  test('an endpoint is created by keyboard; its secret is shown once and stored nowhere', async () => {
    const id = fresh('desk');
    const page = await signedIn(site, '/health?region=us');
    const press = (key: string) => page.keyboard.press(key);
    /** Presses Tab until the element with this label or text has the focus. */
    async function tabTo(name: string): Promise<void> {
      const passed: string[] = [];
      for (let at = 0; at < 120; at += 1) {
        await press('Tab');
        const here = await page.evaluate(() => {
          const one = document.activeElement as HTMLInputElement | null;
          return one?.labels?.[0]?.textContent ?? one?.textContent ?? '';
        });
        if (here.replace(/ \*$/, '').trim() === name) return;
        passed.push(here);
      }
      throw new Error(`Tab did not reach ${name}, only ${passed.join(', ')}.`);
    }
    await tabTo('New endpoint');
    await press('Enter');
    await heading(page, 'New endpoint').waitFor();
    await tabTo('URL');
    await page.keyboard.type(site.receiver.url);
    await tabTo('Id');
    await page.keyboard.type(id);
    await tabTo('All types');
    await press('ArrowDown');
    await tabTo('Jobs: all of job.*');
    await press('Space');
    await tabTo('Add a header');
    await press('Enter');
    await press('Shift+Tab');
    await press('Shift+Tab');
    await press('Shift+Tab');
    await press('Shift+Tab');
    await page.keyboard.type('x-tenant');
    await press('Tab');
    await page.keyboard.type('the-value');
    await tabTo('Create endpoint');
    await press('Enter');
    const dialog = page.getByRole('dialog', { name: `Endpoint ${id} created` });
    await dialog.waitFor();
    const secret = await dialog.getByRole('textbox').inputValue();
    expect(secret).toMatch(/^whsec_/);
    await press('Escape');
    await tabTo('I have stored it');
    await press('Space');
    await tabTo('Close');
    await press('Enter');
    await heading(page, `Endpoint ${id}`).waitFor();
    await loaded(page);
    const kept = await everythingOn(page);
    expect(kept).not.toContain(secret);
    expect(kept).not.toContain('the-value');
    expect(kept).toContain('x-tenant');
    expect(await endpointNow(id)).toMatchObject({ types: ['job.*'], accounts: [], headers: ['x-tenant'] });

    const job = site.account.createJob({ status: 'Scheduled' });
    await expect
      .poll(() => site.receiver.requests.some(({ body }) => body.includes(`"jobNumber":${job}`)))
      .toBe(true);
    expect(site.receiver.requests.at(-1)?.headers).toMatchObject({ 'x-tenant': 'the-value' });
  });

  test('an endpoint is created with every field', async () => {
    const id = fresh('whole');
    const page = await signedIn(site, '/setup/new-endpoint?region=us');
    await field(page, 'URL').fill(site.receiver.url);
    await field(page, 'Description').fill('All fields');
    await field(page, 'Id').fill(id);
    const accounts = group(page, 'Accounts');
    await accounts.getByLabel('Selected accounts').check();
    expect(await accounts.getByRole('checkbox').count()).toBe(
      (await site.api<{ accounts: object[] }>('/accounts?region=us')).accounts.length,
    );
    await accounts.getByLabel('acme').check();
    const types = group(page, 'Event types');
    await types.getByLabel('Selected types').check();
    await types.getByLabel('job.dispatched').check();
    await types.getByLabel('Other patterns').fill('account.poll_*');
    await field(page, 'Order groups').fill('Spring\nSummer');
    await field(page, 'Origins').fill('WEB');
    await button(page, 'Add a field').click();
    await field(page, 'Field 1').selectOption('mustDate');
    await field(page, 'Value of field 1').fill('true');
    await page.getByLabel('Beginning: all retained events').check();
    await field(page, 'Concurrent jobs').fill('3');
    await field(page, 'Requests per second').fill('2.5');
    await button(page, 'Create endpoint').click();
    await takeSecret(page, /created/);
    expect(await endpointNow(id)).toMatchObject({
      ...{ url: site.receiver.url, description: 'All fields', accounts: ['acme'] },
      ...{ types: ['job.dispatched', 'account.poll_*'], orderGroups: ['Spring', 'Summer'], origins: ['WEB'] },
      ...{ jobFields: { mustDate: true }, concurrency: 3, ratePerSecond: 2.5 },
    });
  });

  test('an endpoint that is a queue has no headers and no secret, and its errors appear at its field', async () => {
    const id = fresh('queue');
    const page = await signedIn(site, '/setup/new-endpoint?region=us');
    expectFault(page, /answered 422: POST .*\/v1\/endpoints$/);
    await page.getByLabel('Queue: messages in Amazon SQS').check();
    expect(await group(page, 'Headers').count()).toBe(0);
    await field(page, 'Id').fill(id);
    await field(page, 'Queue').fill('arn:aws:sns:us-east-1:111122223333:jobs');
    await button(page, 'Create endpoint').click();
    expect(await errorAt(field(page, 'Queue'))).toContain('It must be the ARN or the URL of an SQS queue');
    await axe(page);
    await field(page, 'Queue').fill('https://sqs.us-east-1.amazonaws.com/111122223333/jobs.fifo');
    await button(page, 'Create endpoint').click();
    await heading(page, `Endpoint ${id}`).waitFor();
    await loaded(page);
    expect(await endpointNow(id)).toMatchObject({
      ...{ kind: 'sqs', url: 'arn:aws:sqs:us-east-1:111122223333:jobs.fifo' },
    });
    expect(await button(page, 'Rotate secret').count()).toBe(0);
    expect(await group(page, 'Kind').count()).toBe(0);
    await axe(page);
    await field(page, 'Description').fill('Jobs of the ERP');
    await button(page, 'Save changes').click();
    await expect.poll(async () => (await endpointNow(id)).description).toBe('Jobs of the ERP');
  });

  test('a save sends only edited fields and does not overwrite changes made meanwhile', async () => {
    const { id } = await newEndpoint({ description: 'Initial', headers: { 'x-a': 'b' } });
    const page = await signedIn(site, `/endpoints/us/${id}/settings`);
    const patches = getRequests(page, 'PATCH');
    await field(page, 'Description').fill('Mine');
    await button(page, 'Save changes').click();
    await toast(page, 'saved.').waitFor();
    expect(patches.map((request) => [request.postDataJSON(), request.headers()['if-match']])).toEqual([
      [{ description: 'Mine' }, '"1"'],
    ]);

    await field(page, 'Requests per second').fill('9');
    const others = { types: ['job.dispatched'], description: 'Theirs' };
    await site.api(`/endpoints/${id}?region=us`, { method: 'PATCH', body: others });
    expectFault(page, /answered 412: PATCH/);
    await button(page, 'Save changes').click();
    await page.getByText('The data was modified after you opened this page').waitFor();
    expect(await endpointNow(id)).toMatchObject({ ...others, ratePerSecond: null });
    await axe(page);
    await button(page, 'Load latest version').click();
    await page.getByText('Modified meanwhile: description, event types.').waitFor();
    expect(await field(page, 'Description').inputValue()).toBe('Theirs');
    expect(await field(page, 'Requests per second').inputValue()).toBe('9');
    await button(page, 'Save changes').click();
    await expect.poll(() => endpointNow(id)).toMatchObject({ ...others, ratePerSecond: 9 });
    expect(patches.at(-1)?.postDataJSON()).toEqual({ ratePerSecond: 9 });
    await button(page, 'Save changes').click();
    await page.getByText('No changes to save.').waitFor();
    expect(patches).toHaveLength(3);
  });

  test('an endpoint gets a new secret, shown once, and is deleted', async () => {
    const { id } = await newEndpoint();
    const page = await signedIn(site, `/endpoints/us/${id}/settings`);
    await button(page, 'Rotate secret').click();
    const rotation = page.getByRole('dialog', { name: `Rotate the secret of ${id}` });
    await rotation.getByLabel('Previous secrets stay valid for').selectOption({ label: '1 hour' });
    await axe(page);
    await button(rotation, 'Rotate secret').click();
    await page.getByText('Previous secrets are valid until').waitFor();
    const secret = await takeSecret(page, /rotated/);
    expect(secret).toMatch(/^whsec_/);
    expect(await everythingOn(page)).not.toContain(secret);
    await page.reload();
    await heading(page, `Endpoint ${id}`).waitFor();
    await loaded(page);
    expect(await everythingOn(page)).not.toContain(secret);

    await button(page, `Delete ${id}`).click();
    const dialog = page.getByRole('dialog');
    expect(await dialog.textContent()).toContain('parked');
    await dialog.getByRole('textbox').fill(id);
    await button(dialog, 'Delete permanently').click();
    await heading(page, 'Health').waitFor();
    await expect(endpointNow(id)).rejects.toThrow('404');
    await expect.poll(() => page.getByRole('link', { name: id, exact: true }).count()).toBe(0);
  });

  test('all errors of a form appear at once, each at its field and in the order of the fields', async () => {
    const page = await signedIn(site, '/setup/new-endpoint?region=us');
    const posts = getRequests(page, 'POST');
    await field(page, 'Id').fill('No Such');
    await group(page, 'Accounts').getByLabel('Selected accounts').check();
    await group(page, 'Event types').getByLabel('Selected types').check();
    await field(page, 'Order groups').fill('x'.repeat(201));
    await button(page, 'Add a field').click();
    await field(page, 'Field 1').selectOption('jobNumber');
    await field(page, 'Value of field 1').fill('many');
    await page.getByLabel('At a time').check();
    await button(page, 'Add a header').click();
    await field(page, 'Name of header 1').fill('host');
    await field(page, 'Concurrent jobs').fill('401');
    await field(page, 'Requests per second').fill('0');
    await button(page, 'Create endpoint').click();
    const errors = await errorSummary(page).getByRole('listitem').allTextContents();
    expect(errors.sort()).toEqual([
      expect.stringMatching(/^Accounts: It must name at least one account\.$/),
      expect.stringMatching(/^Concurrent jobs: It must be .* 1 to 400\.$/),
      expect.stringMatching(/^Event types: It must name at least one type\.$/),
      expect.stringMatching(/^Id: It must be 1–63/),
      expect.stringMatching(/^Name of header 1: It must not be a header/),
      expect.stringMatching(/^Order groups: It must be at most 200 characters\.$/),
      expect.stringMatching(/^Requests per second: It must be a number from 0\.1 to 1000\.$/),
      expect.stringMatching(/^Start time: It must be a date and time\.$/),
      expect.stringMatching(/^URL: It must be a URL/),
      expect.stringMatching(/^Value of field 1: It must be an integer\.$/),
    ]);
    await axe(page);
    await show(page, { theme: 'dark' });
    await axe(page);
    for (const label of ['URL', 'Id', 'Concurrent jobs', 'Requests per second'])
      expect(await errorAt(field(page, label)), label).toMatch(/It must be/);
    await button(errorSummary(page), 'Accounts').click();
    expect(await page.evaluate(() => (document.activeElement as HTMLInputElement).name)).toBe('accountScope');
    const places: number[] = [];
    for (const link of await errorSummary(page).getByRole('button').all()) {
      await link.click();
      places.push(
        await page.evaluate(() =>
          [...document.querySelectorAll('input, select, textarea')].indexOf(
            document.activeElement as Element,
          ),
        ),
      );
    }
    expect(places, 'in the order of the fields').toEqual(places.toSorted((one, other) => one - other));
    expect(posts).toEqual([]);

    const other = await signedIn(site, '/setup/new-endpoint?region=us');
    expectFault(other, /answered 422: POST/);
    await field(other, 'URL').fill('ftp://example.com');
    await button(other, 'Create endpoint').click();
    expect(await errorAt(field(other, 'URL'))).toMatch(/must begin with https:\/\/ or http:\/\//);
  });
});

describe('keys', () => {
  test('a key is created, shown once, valid for sign-in, and revoked', async () => {
    const name = fresh('Packing desk');
    const page = await signedIn(site, '/setup/keys');
    await page.getByRole('link', { name: 'New key' }).click();
    await field(page, 'Name').fill(name);
    await field(page, 'Role').selectOption('operate');
    await group(page, 'Accounts').getByLabel('Selected accounts').check();
    await button(page, 'Create key').click();
    await expect
      .poll(() => errorSummary(page).getByRole('listitem').allTextContents())
      .toEqual(['Accounts: It must name at least one account.']);
    await group(page, 'Accounts').getByLabel('acme').check();
    await group(page, 'Expiry').getByLabel('At a time').check();
    await field(page, 'Expiry time').fill('2001-01-01T10:00');
    await button(page, 'Create key').click();
    expect(await errorAt(field(page, 'Expiry time'))).toContain('It must be in the future.');
    await field(page, 'Expiry time').fill('2099-01-01T10:00');
    await button(page, 'Create key').click();
    const key = await takeSecret(page, /created/);
    await heading(page, 'Keys').waitFor();
    expect(await site.api('/key', { key })).toMatchObject({
      ...{ name, role: 'operate', accounts: ['acme'], expiresAt: '2099-01-01T09:00:00.000Z' },
    });
    const row = page.getByRole('row').filter({ hasText: name });
    expect(await row.textContent()).toMatch(/Operate.*acme/);
    expect(await everythingOn(page)).not.toContain(key);

    await button(page, `Revoke ${name}`).click();
    expect(await page.getByRole('dialog').textContent()).toContain('within 30 seconds');
    await axe(page);
    await button(page.getByRole('dialog'), 'Revoke').click();
    await row.waitFor({ state: 'detached' });
    const { keys } = await site.api<{ keys: { name: string }[] }>('/keys');
    expect(keys.map((one) => one.name)).not.toContain(name);
  });

  test('revoking the key of the session signs out', async () => {
    const { id, key } = await site.makeKey('admin');
    const page = await signedIn(site, '/setup/keys', { key });
    const row = page.getByRole('row').filter({ hasText: 'the key you signed in with' });
    expect(await row.textContent()).toContain(id);
    await button(row, /^Revoke/).click();
    expect(await page.getByRole('dialog').textContent()).toContain('you will be signed out');
    await button(page.getByRole('dialog'), 'Revoke').click();
    await page.getByLabel('API key').waitFor();
    await page.getByText('You revoked the key you were signed in with.').waitFor();
  });
});

test('a declared resource shows a note with its section of the configuration, and is not editable', async () => {
  const page = await signedIn(site, '/health');
  for (const [path, part] of [
    ['/accounts/acme/settings', 'accounts'],
    ['/endpoints/us/warehouse/settings', 'endpoints'],
  ] as const) {
    await page.goto(`${site.url}${path}`);
    const note = page.getByText('is declared in the configuration');
    await note.waitFor();
    expect(await note.textContent()).toContain(`edit ${part}`);
    await loaded(page);
    const buttons = await page.getByRole('main').getByRole('button').allTextContents();
    expect(buttons.filter((name) => name !== 'Test stored credentials')).toEqual([]);
    expect(await page.getByRole('main').getByRole('textbox').count()).toBe(0);
  }
});

test('a key with the role read sees resources with no action but the export of lists', async () => {
  const { id } = await newEndpoint({ accounts: ['acme'] });
  const { key } = await site.makeKey('read', ['acme']);
  const page = await signedIn(site, '/setup', { key });
  for (const [path, buttons] of [
    ['/setup', []],
    ['/health', ['Export CSV', 'Export CSV']],
    ['/accounts/acme/settings', []],
    [`/endpoints/us/${id}/settings`, []],
    ['/setup/keys', []],
  ] as const) {
    await page.goto(`${site.url}${path}`);
    await page.getByRole('heading', { level: 1 }).waitFor();
    await loaded(page);
    const main = page.getByRole('main');
    expect(await main.getByRole('button').allTextContents(), path).toEqual(buttons);
    expect(await main.getByRole('link', { name: /^New/ }).count(), path).toBe(0);
    expect(await main.textContent(), path).not.toContain('kiwi');
  }
});

test('a key for some accounts creates endpoints and keys for these only, and no accounts', async () => {
  const { key } = await site.makeKey('admin', ['acme']);
  const page = await signedIn(site, '/setup', { key });
  await page.getByRole('link', { name: 'New key' }).waitFor();
  expect(await page.getByRole('link', { name: 'New account' }).count()).toBe(0);
  await page.getByRole('link', { name: 'New endpoint' }).click();
  const accounts = group(page, 'Accounts');
  await accounts.getByLabel('acme').check();
  expect(await accounts.getByRole('checkbox').count()).toBe(1);
  expect(await accounts.getByRole('radio').count()).toBe(0);
  expect(await group(page, 'Kind').count()).toBe(0);
  await field(page, 'URL').fill(site.receiver.url);
  await button(page, 'Create endpoint').click();
  await takeSecret(page, /created/);
});

test('leaving an edited form by a link, the search, signing out or back requires confirmation', async () => {
  const page = await signedIn(site, '/setup/keys');
  await page.getByRole('link', { name: 'New key' }).click();
  await page.getByRole('link', { name: 'Cancel' }).click();
  await heading(page, 'Keys').waitFor();
  await page.getByRole('link', { name: 'New key' }).click();
  await field(page, 'Name').fill('Half a name');
  await page.getByRole('link', { name: 'Health' }).click();
  const dialog = page.getByRole('dialog', { name: 'Leave without saving?' });
  await button(dialog, 'Cancel').click();
  await dialog.waitFor({ state: 'detached' });
  expect(await field(page, 'Name').inputValue()).toBe('Half a name');
  await page.keyboard.press('Control+k');
  await page.getByRole('combobox', { name: 'Search' }).fill('Late jobs');
  await page.keyboard.press('Enter');
  await button(dialog, 'Cancel').click();
  await dialog.waitFor({ state: 'detached' });
  await button(page, 'User menu').click();
  await page.getByRole('menuitem', { name: 'Sign out' }).click();
  await button(dialog, 'Cancel').click();
  await dialog.waitFor({ state: 'detached' });
  expect(await field(page, 'Name').inputValue()).toBe('Half a name');
  await page.goBack();
  await dialog.waitFor();
  expect(page.url()).toContain('/setup/new-key');
  await button(dialog, 'Cancel').click();
  await dialog.waitFor({ state: 'detached' });
  expect(await field(page, 'Name').inputValue()).toBe('Half a name');
  await page.goBack();
  await button(dialog, 'Leave').click();
  await heading(page, 'Keys').waitFor();
});

test('the overview counts resources and links to their pages', async () => {
  const page = await signedIn(site, '/setup?region=nz');
  await loaded(page);
  const accounts = page.getByRole('region', { name: 'Accounts' });
  expect(await accounts.textContent()).toMatch(/^Accounts1 declared in the configuration/);
  await accounts.getByRole('link', { name: 'View accounts' }).click();
  await heading(page, 'Health').waitFor();
  expect(new URL(page.url()).search).toBe('?region=nz');
  expect(new URL(page.url()).hash).toBe('#accounts');
  const rows = page.getByRole('table', { name: 'Accounts' }).getByRole('row');
  await expect.poll(() => rows.count()).toBe(2);
});

// Last, because the configuration changes.
test('an endpoint that was removed from the configuration file can be deleted', async () => {
  await site.stop();
  site.configure({ endpoints: [] });
  await site.start();
  const page = await signedIn(site, '/endpoints/us/warehouse/settings');
  await page.getByText(/^Endpoint warehouse is no longer in the configuration file\./).waitFor();
  await axe(page);
  await button(page, 'Delete warehouse').click();
  const dialog = page.getByRole('dialog');
  await dialog.getByRole('textbox').fill('warehouse');
  await button(dialog, 'Delete permanently').click();
  await toast(page, 'Endpoint warehouse deleted.').waitFor();
});
