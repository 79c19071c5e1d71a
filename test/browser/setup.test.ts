/** Accounts, endpoints and keys: made, changed and taken away by hand. */
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

let made = 0;
/** A name that nothing has yet. */
const fresh = (word: string): string => `${word}-${++made}`;
const heading = (page: Page, name: string) => page.getByRole('heading', { name, level: 1, exact: true });
const button = (of: Page | Locator, name: string | RegExp) => of.getByRole('button', { name, exact: true });
const toast = (page: Page, words: string | RegExp) => page.getByRole('alert').filter({ hasText: words });
/** A field by its label, which may have the star of what is required. */
const field = (of: Page | Locator, label: string) => of.getByLabel(new RegExp(`^${label}( \\*)?$`));
/** Controls that belong together. */
const group = (page: Page, name: string) => page.getByRole('group', { name, exact: true });
/** A form's list of what is not right. */
const problems = (page: Page) => page.getByRole('alert').filter({ hasText: 'not right yet' });
/** What is told at a field, as a screen reader has it. */
async function toldAt(field: Locator): Promise<string> {
  await expect.poll(() => field.getAttribute('aria-invalid')).toBe('true');
  return field.evaluate((one) =>
    (one.getAttribute('aria-describedby') ?? '')
      .split(' ')
      .map((id) => document.getElementById(id)?.textContent ?? '')
      .join(' '),
  );
}
/** An account of the sandbox that is not registered. */
const stranger = (): SandboxAccount => site.world.addAccount({ region: 'us', name: fresh('nova') });

async function newEndpoint(more: object = {}): Promise<Endpoint> {
  const body = { id: fresh('erp'), region: 'us', url: site.receiver.url, types: ['job.*'], ...more };
  return (await site.api<{ endpoint: Endpoint }>('/endpoints', { body })).endpoint;
}

const endpointNow = (id: string) => site.api<Endpoint>(`/endpoints/${id}?region=us`);
/** Requests of a method that the page makes from here on. */
function requestsOf(page: Page, method: string): Request[] {
  const requests: Request[] = [];
  page.on('request', (request) => {
    if (request.method() === method) requests.push(request);
  });
  return requests;
}

/** Everything that the page shows or keeps. */
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

/** Reads the secret that a dialog shows, sees that the dialog stays until it is confirmed, and closes it. */
async function takeSecret(page: Page, title: RegExp): Promise<string> {
  const dialog = page.getByRole('dialog', { name: title });
  const secret = await dialog.getByRole('textbox').inputValue();
  await axe(page);
  await page.keyboard.press('Escape');
  await page.mouse.click(5, 5);
  expect(await button(dialog, 'Close').isDisabled()).toBe(true);
  expect(await dialog.isVisible()).toBe(true);
  await dialog.getByLabel('I have kept it').check();
  await button(dialog, 'Close').click();
  await dialog.waitFor({ state: 'detached' });
  return secret;
}

describe('accounts', () => {
  test('one is tried out, made, polled otherwise, given other credentials, and deleted', async () => {
    const { name, clientId, clientSecret } = stranger();
    const page = await signedIn(site, '/setup/accounts');
    await page.getByRole('link', { name: 'New account' }).click();
    await field(page, 'Id').fill(name);
    await field(page.getByRole('main'), 'Region').selectOption('us');
    await field(page, 'Client id').fill(clientId);
    await field(page, 'Client secret').fill('not the secret');
    await button(page, 'Test first').click();
    const steps = page.getByRole('list', { name: 'Steps of the test' }).getByRole('listitem');
    await expect.poll(() => steps.count()).toBe(1);
    await field(page, 'Client secret').fill(clientSecret);
    // What came of other credentials says nothing of these.
    expect(await steps.count()).toBe(0);
    await button(page, 'Test first').click();
    await page.getByText('The credentials work').waitFor();
    expect(await steps.count()).toBe(3);
    expect(await site.api<{ accounts: { id: string }[] }>('/accounts')).not.toMatchObject({
      accounts: expect.arrayContaining([expect.objectContaining({ id: name })]),
    });
    await field(page, 'Seconds between polls').fill('30');
    await page.getByLabel('Start paused').check();
    await button(page, 'Make the account').click();
    await heading(page, name).waitFor();
    expect(await site.api(`/accounts/${name}`)).toMatchObject({
      ...{ region: 'us', managed: true, pollIntervalSeconds: 30, paused: true },
    });
    expect(await everythingOn(page)).not.toContain(clientSecret);

    const patches = requestsOf(page, 'PATCH');
    await field(page, 'Seconds between polls').fill('45');
    await button(page, 'Save the interval').click();
    await toast(page, 'is saved').waitFor();
    expect(await site.api(`/accounts/${name}`)).toMatchObject({ pollIntervalSeconds: 45 });
    expect(patches.map((request) => request.headers()['if-match'])).toEqual(['"1"']);

    await field(page, 'Client id').fill(clientId);
    await field(page, 'Client secret').fill(clientSecret);
    await button(page, 'Replace the credentials').click();
    await toast(page, 'polled with the new credentials').waitFor();
    expect(await field(page, 'Client secret').inputValue()).toBe('');
    expect(await everythingOn(page)).not.toContain(clientSecret);

    await button(page, `Delete ${name}`).click();
    const dialog = page.getByRole('dialog');
    for (const word of ['log of events', 'jobs', 'recipients', 'credentials'])
      expect(await dialog.textContent()).toContain(word);
    await axe(page);
    expect(await button(dialog, 'Delete for good').isDisabled()).toBe(true);
    await dialog.getByRole('textbox').fill(name);
    await button(dialog, 'Delete for good').click();
    await heading(page, 'Accounts').waitFor();
    await toast(page, 'is deleted').waitFor();
    await expect.poll(() => page.getByRole('link', { name, exact: true }).count()).toBe(0);
    await expect(site.api(`/accounts/${name}`)).rejects.toThrow('404');
  });

  test('one of which much is kept is followed until nothing is left', async () => {
    const { name, clientId, clientSecret } = stranger();
    const credentials = { clientId, clientSecret };
    await site.api('/accounts', { body: { id: name, region: 'us', credentials, paused: true } });
    const page = await signedIn(site, `/setup/accounts/${name}`);
    const answers = [202, 202];
    const whole: Promise<void>[] = [];
    await page.route(`**/v1/accounts/${name}`, async (route) => {
      const status = route.request().method() === 'DELETE' ? answers.shift() : undefined;
      if (status === undefined) return route.continue();
      whole.push(route.fulfill({ status }));
    });
    await button(page, `Delete ${name}`).click();
    await page.getByRole('dialog').getByRole('textbox').fill(name);
    await button(page.getByRole('dialog'), 'Delete for good').click();
    await page.getByText('still being taken away').waitFor();
    await toast(page, 'is deleted').waitFor();
    await heading(page, 'Accounts').waitFor();
    expect(whole).toHaveLength(2);
  });

  test.each<[field: string, typed: string, sentence: RegExp]>([
    ['Id', '', /It must be 1–63 lower-case letters/],
    ['Id', 'No Such', /It must be 1–63 lower-case letters/],
    ['Client id', '', /It must be the client id of the account’s credentials\./],
    ['Client id', ' padded', /It must be without spaces around it/],
    ['Client id', 'x'.repeat(1001), /It must be at most 1000 characters\./],
    ['Client secret', '', /It must be the client secret/],
    ['Seconds between polls', '', /It must be a whole number of seconds from 1 to 86400\./],
    ['Seconds between polls', '0', /It must be a whole number of seconds/],
    ['Seconds between polls', '1.5', /It must be a whole number of seconds/],
    ['Seconds between polls', '86401', /It must be a whole number of seconds/],
    ['Seconds between polls', 'often', /It must be a whole number of seconds/],
  ])(
    'what a new one may not have is told at %s (%#), and in a list that leads there',
    async (name, typed, sentence) => {
      const page = await signedIn(site, '/setup/new-account?region=us');
      const posts = requestsOf(page, 'POST');
      const values = {
        Id: 'nova',
        'Client id': 'id',
        'Client secret': 'secret',
        'Seconds between polls': '120',
      };
      for (const [label, value] of Object.entries({ ...values, [name]: typed }))
        await field(page, label).fill(value);
      await button(page, 'Make the account').click();
      const wrong = field(page, name);
      expect(await toldAt(wrong)).toMatch(sentence);
      // The list has the focus; its lines lead to the fields.
      expect(await page.evaluate(() => document.activeElement?.textContent)).toMatch(
        /One thing is not right yet/,
      );
      await button(problems(page), name).click();
      expect(await wrong.evaluate((one) => one === document.activeElement)).toBe(true);
      expect(await wrong.inputValue()).toBe(typed);
      expect(posts).toEqual([]);
    },
  );

  test('what only the service can refuse is told at its field, and nothing that was typed is lost', async () => {
    const page = await signedIn(site, '/setup/new-account?region=us');
    expectFault(page, /answered 409: POST .*\/v1\/accounts$/);
    expectFault(page, /answered 422: POST .*\/v1\/accounts$/);
    await field(page, 'Id').fill('acme');
    await field(page, 'Client id').fill('some-id');
    await field(page, 'Client secret').fill('some-secret');
    await button(page, 'Make the account').click();
    expect(await toldAt(field(page, 'Id'))).toContain(
      'It must be new, and there is an account "acme" already.',
    );
    await axe(page);
    expect(await field(page, 'Client secret').inputValue()).toBe('some-secret');
    await field(page, 'Id').fill(fresh('nova'));
    await page.getByLabel('in a secret of the cell').check();
    await field(page, 'Name of the secret').fill('cell/us/nova');
    await button(page, 'Make the account').click();
    expect(await toldAt(field(page, 'Name of the secret'))).toContain('It must be left out here');
  });

  test('a change of one that somebody else has changed says so, and keeps what was typed', async () => {
    const { name, clientId, clientSecret } = stranger();
    const credentials = { clientId, clientSecret };
    await site.api('/accounts', { body: { id: name, region: 'us', credentials, paused: true } });
    const page = await signedIn(site, `/setup/accounts/${name}`);
    await field(page, 'Seconds between polls').fill('77');
    await site.api(`/accounts/${name}`, { method: 'PATCH', body: { pollIntervalSeconds: 300 } });
    expectFault(page, /answered 412: PATCH/);
    await button(page, 'Save the interval').click();
    await page.getByText('Somebody else has changed it').waitFor();
    await button(page, 'Load it as it is now').click();
    await page.getByText('Changed meanwhile: the interval.').waitFor();
    expect(await field(page, 'Seconds between polls').inputValue()).toBe('77');
    await button(page, 'Save the interval').click();
    await toast(page, 'is saved').waitFor();
    expect(await site.api(`/accounts/${name}`)).toMatchObject({ pollIntervalSeconds: 77 });
  });
});

describe('endpoints', () => {
  test('one is made with the keyboard alone; its secret is shown once, and stands nowhere later', async () => {
    const id = fresh('desk');
    const page = await signedIn(site, '/setup/endpoints?region=us');
    const press = (key: string) => page.keyboard.press(key);
    /** Tabs on until something that is called so has the focus. */
    async function tabTo(name: string): Promise<void> {
      const met: string[] = [];
      for (let at = 0; at < 120; at += 1) {
        await press('Tab');
        const here = await page.evaluate(() => {
          const one = document.activeElement as HTMLInputElement | null;
          return one?.labels?.[0]?.textContent ?? one?.textContent ?? '';
        });
        if (here.replace(/ \*$/, '').trim() === name) return;
        met.push(here);
      }
      throw new Error(`Tab never came to ${name}, but to ${met.join(', ')}.`);
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
    await tabTo('Make the endpoint');
    await press('Enter');
    const dialog = page.getByRole('dialog', { name: `The endpoint ${id} is made` });
    await dialog.waitFor();
    const secret = await dialog.getByRole('textbox').inputValue();
    expect(secret).toMatch(/^whsec_/);
    await press('Escape');
    await tabTo('I have kept it where it is needed');
    await press('Space');
    await tabTo('Close');
    await press('Enter');
    await heading(page, id).waitFor();
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

  test('all that one can have is typed in, and asked for as it was', async () => {
    const id = fresh('whole');
    const page = await signedIn(site, '/setup/new-endpoint?region=us');
    await field(page, 'URL').fill(site.receiver.url);
    await field(page, 'Description').fill('All of it');
    await field(page, 'Id').fill(id);
    const accounts = group(page, 'Accounts');
    await accounts.getByLabel('Only these').check();
    expect(await accounts.getByRole('checkbox').count()).toBe(
      (await site.api<{ accounts: object[] }>('/accounts?region=us')).accounts.length,
    );
    await accounts.getByLabel('acme').check();
    const types = group(page, 'Types');
    await types.getByLabel('Only these').check();
    await types.getByLabel('job.dispatched').check();
    await types.getByLabel('Other patterns').fill('account.poll_*');
    await field(page, 'Order groups').fill('Spring\nSummer');
    await field(page, 'Origins').fill('WEB');
    await button(page, 'Add a field').click();
    await field(page, 'Field 1').selectOption('mustDate');
    await field(page, 'Value of field 1').fill('true');
    await page.getByLabel('At the beginning').check();
    await field(page, 'Jobs side by side').fill('3');
    await field(page, 'Requests a second').fill('2.5');
    await button(page, 'Make the endpoint').click();
    await takeSecret(page, /is made/);
    expect(await endpointNow(id)).toMatchObject({
      ...{ url: site.receiver.url, description: 'All of it', accounts: ['acme'] },
      ...{ types: ['job.dispatched', 'account.poll_*'], orderGroups: ['Spring', 'Summer'], origins: ['WEB'] },
      ...{ jobFields: { mustDate: true }, concurrency: 3, ratePerSecond: 2.5 },
    });
  });

  test('only what was typed is changed, and what somebody else has changed meanwhile is not written over', async () => {
    const { id } = await newEndpoint({ description: 'As it was', headers: { 'x-a': 'b' } });
    const page = await signedIn(site, `/setup/endpoints/us/${id}`);
    const patches = requestsOf(page, 'PATCH');
    await field(page, 'Description').fill('Mine');
    await button(page, 'Save the changes').click();
    await toast(page, 'is saved').waitFor();
    expect(patches.map((request) => [request.postDataJSON(), request.headers()['if-match']])).toEqual([
      [{ description: 'Mine' }, '"1"'],
    ]);

    await field(page, 'Requests a second').fill('9');
    const others = { types: ['job.dispatched'], description: 'Theirs' };
    await site.api(`/endpoints/${id}?region=us`, { method: 'PATCH', body: others });
    expectFault(page, /answered 412: PATCH/);
    await button(page, 'Save the changes').click();
    await page.getByText('Somebody else has changed it').waitFor();
    expect(await endpointNow(id)).toMatchObject({ ...others, ratePerSecond: null });
    await axe(page);
    await button(page, 'Load it as it is now').click();
    await page.getByText('Changed meanwhile: the description, the types.').waitFor();
    expect(await field(page, 'Description').inputValue()).toBe('Theirs');
    expect(await field(page, 'Requests a second').inputValue()).toBe('9');
    await button(page, 'Save the changes').click();
    await expect.poll(() => endpointNow(id)).toMatchObject({ ...others, ratePerSecond: 9 });
    expect(patches.at(-1)?.postDataJSON()).toEqual({ ratePerSecond: 9 });
    await button(page, 'Save the changes').click();
    await page.getByText('Nothing is different from what is saved.').waitFor();
    expect(patches).toHaveLength(3);
  });

  test('one gets a new secret, shown once; deleted, it is gone', async () => {
    const { id } = await newEndpoint();
    const page = await signedIn(site, `/setup/endpoints/us/${id}`);
    await button(page, 'Make a new secret').click();
    const asked = page.getByRole('dialog', { name: `A new secret for ${id}` });
    await asked.getByLabel('The former secrets sign along').selectOption({ label: 'for an hour' });
    await axe(page);
    await button(asked, 'Make a new secret').click();
    await page.getByText('The former ones sign along until').waitFor();
    const secret = await takeSecret(page, /has a new secret/);
    expect(secret).toMatch(/^whsec_/);
    expect(await everythingOn(page)).not.toContain(secret);
    await page.reload();
    await heading(page, id).waitFor();
    await loaded(page);
    expect(await everythingOn(page)).not.toContain(secret);

    await button(page, `Delete ${id}`).click();
    const dialog = page.getByRole('dialog');
    expect(await dialog.textContent()).toContain('set aside');
    await dialog.getByRole('textbox').fill(id);
    await button(dialog, 'Delete for good').click();
    await heading(page, 'Endpoints').waitFor();
    await expect(endpointNow(id)).rejects.toThrow('404');
    await expect.poll(() => page.getByRole('link', { name: id, exact: true }).count()).toBe(0);
  });

  test('what may not be is told at each field of the form, in one go', async () => {
    const page = await signedIn(site, '/setup/new-endpoint?region=us');
    const posts = requestsOf(page, 'POST');
    await field(page, 'Id').fill('No Such');
    await group(page, 'Accounts').getByLabel('Only these').check();
    await group(page, 'Types').getByLabel('Only these').check();
    await field(page, 'Order groups').fill('x'.repeat(201));
    await button(page, 'Add a field').click();
    await field(page, 'Field 1').selectOption('jobNumber');
    await field(page, 'Value of field 1').fill('many');
    await page.getByLabel('At a time').check();
    await button(page, 'Add a header').click();
    await field(page, 'Name of header 1').fill('host');
    await field(page, 'Jobs side by side').fill('65');
    await field(page, 'Requests a second').fill('0');
    await button(page, 'Make the endpoint').click();
    const told = await problems(page).getByRole('listitem').allTextContents();
    expect(told.sort()).toEqual([
      expect.stringMatching(/^Accounts: It must name at least one account\.$/),
      expect.stringMatching(/^From: It must be a day and a time\.$/),
      expect.stringMatching(/^Id: It must be 1–63/),
      expect.stringMatching(/^Jobs side by side: It must be a whole number from 1 to 64\.$/),
      expect.stringMatching(/^Name of header 1: It must be another header/),
      expect.stringMatching(/^Order groups: It must be at most 200 characters\.$/),
      expect.stringMatching(/^Requests a second: It must be a number from 0\.1 to 1000\.$/),
      expect.stringMatching(/^Types: It must name at least one type\.$/),
      expect.stringMatching(/^URL: It must be a URL/),
      expect.stringMatching(/^Value of field 1: It must be a value that this field can have\.$/),
    ]);
    await axe(page);
    await show(page, { theme: 'dark' });
    await axe(page);
    for (const label of ['URL', 'Id', 'Jobs side by side', 'Requests a second'])
      expect(await toldAt(field(page, label)), label).toMatch(/It must be/);
    await button(problems(page), 'Accounts').click();
    expect(await page.evaluate(() => (document.activeElement as HTMLInputElement).name)).toBe('whose');
    expect(posts).toEqual([]);

    const other = await signedIn(site, '/setup/new-endpoint?region=us');
    expectFault(other, /answered 422: POST/);
    await field(other, 'URL').fill('ftp://example.com');
    await button(other, 'Make the endpoint').click();
    expect(await toldAt(field(other, 'URL'))).toMatch(/must begin with https:\/\/ or http:\/\//);
  });
});

describe('keys', () => {
  test('one is made, shown once, signs in, and is revoked', async () => {
    const name = fresh('Packing desk');
    const page = await signedIn(site, '/setup/keys');
    await page.getByRole('link', { name: 'New key' }).click();
    await field(page, 'Name').fill(name);
    await field(page, 'Role').selectOption('operate');
    await group(page, 'Accounts').getByLabel('Only these').check();
    await button(page, 'Make the key').click();
    await expect
      .poll(() => problems(page).getByRole('listitem').allTextContents())
      .toEqual(['Accounts: It must name at least one account.']);
    await group(page, 'Accounts').getByLabel('acme').check();
    await group(page, 'Expires').getByLabel('At a time').check();
    await field(page, 'From then on it is refused').fill('2001-01-01T10:00');
    await button(page, 'Make the key').click();
    expect(await toldAt(field(page, 'From then on it is refused'))).toContain('It must be in the future.');
    await field(page, 'From then on it is refused').fill('2099-01-01T10:00');
    await button(page, 'Make the key').click();
    const key = await takeSecret(page, /is made/);
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

  test('whoever revokes the own key is signed out', async () => {
    const { id, key } = await site.makeKey('admin');
    const page = await signedIn(site, '/setup/keys', { key });
    const row = page.getByRole('row').filter({ hasText: 'the one you signed in with' });
    expect(await row.textContent()).toContain(id);
    await button(row, /^Revoke/).click();
    expect(await page.getByRole('dialog').textContent()).toContain('you are signed out');
    await button(page.getByRole('dialog'), 'Revoke').click();
    await page.getByLabel('API key').waitFor();
    await page.getByText('You revoked the key you were signed in with.').waitFor();
  });
});

test('what the configuration declares is shown as such, with where it stands, and can’t be changed here', async () => {
  const page = await signedIn(site, '/setup/accounts');
  expect(await page.getByRole('row').filter({ hasText: 'acme' }).textContent()).toContain(
    'In the configuration file',
  );
  for (const [path, part] of [
    ['/setup/accounts/acme', 'accounts'],
    ['/setup/endpoints/us/warehouse', 'endpoints'],
  ] as const) {
    await page.goto(`${site.url}${path}`);
    const note = page.getByText('is declared in the configuration file');
    await note.waitFor();
    expect(await note.textContent()).toContain(`under ${part}`);
    await loaded(page);
    const buttons = await page.getByRole('main').getByRole('button').allTextContents();
    expect(buttons.filter((name) => name !== 'Test the credentials it has')).toEqual([]);
    expect(await page.getByRole('main').getByRole('textbox').count()).toBe(0);
  }
});

test('a key that may only read sees what there is, and nothing to change it with', async () => {
  const { id } = await newEndpoint({ accounts: ['acme'] });
  const { key } = await site.makeKey('read', ['acme']);
  const page = await signedIn(site, '/setup', { key });
  for (const path of ['', '/accounts', '/accounts/acme', '/endpoints', `/endpoints/us/${id}`, '/keys']) {
    await page.goto(`${site.url}/setup${path}`);
    await page.getByRole('heading', { level: 1 }).waitFor();
    await loaded(page);
    const main = page.getByRole('main');
    expect(await main.getByRole('button').allTextContents(), path).toEqual([]);
    expect(await main.getByRole('link', { name: /^New/ }).count(), path).toBe(0);
    expect(await main.textContent(), path).not.toContain('kiwi');
  }
});

test('a key for some accounts makes endpoints and keys for these alone, and no accounts', async () => {
  const { key } = await site.makeKey('admin', ['acme']);
  const page = await signedIn(site, '/setup', { key });
  await page.getByRole('link', { name: 'New key' }).waitFor();
  expect(await page.getByRole('link', { name: 'New account' }).count()).toBe(0);
  await page.getByRole('link', { name: 'New endpoint' }).click();
  const accounts = group(page, 'Accounts');
  await accounts.getByLabel('acme').check();
  expect(await accounts.getByRole('checkbox').count()).toBe(1);
  expect(await accounts.getByRole('radio').count()).toBe(0);
  await field(page, 'URL').fill(site.receiver.url);
  await button(page, 'Make the endpoint').click();
  await takeSecret(page, /is made/);
});

test('a form with something typed in is not left without asking, by a link or back', async () => {
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

test('the overview counts what there is, and leads to it', async () => {
  const page = await signedIn(site, '/setup?region=nz');
  await loaded(page);
  const accounts = page.getByRole('region', { name: 'Accounts' });
  expect(await accounts.textContent()).toMatch(/^Accounts1 in the configuration file/);
  await accounts.getByRole('link', { name: 'See the accounts' }).click();
  await heading(page, 'Accounts').waitFor();
  expect(new URL(page.url()).search).toBe('?region=nz');
  expect(await page.getByRole('row').count()).toBe(2);
});
