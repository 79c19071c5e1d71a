/**
 * Notifications to customers: settings, recipients, templates with preview, messages and suppressions.
 * One file: its tests share one running site and its mailbox.
 */
import { readFile } from 'node:fs/promises';
import type { FrameLocator, Page } from 'playwright-core';
import { beforeAll, describe, expect, test, vi } from 'vitest';
import { axe, expectFault, loaded, scriptedSite, signedIn, sizes } from '../support/browser.ts';

const site = scriptedSite();
const AT = '/setup/customers/acme';
const settings = {
  ...{ enabled: true, windowSeconds: 0, replyTo: 'desk@acme.example' },
  branding: { name: 'Acme', color: '#1d4ed8' },
};
const put = (path: string, body: unknown): Promise<unknown> => site.api(path, { method: 'PUT', body });

beforeAll(async () => {
  await put('/accounts/acme/notifications', settings);
});

/** Finds the error of an input. The summary of the form has the same text. */
const fieldError = (page: Page, name: string, text: RegExp | string) =>
  page
    .locator('.mantine-InputWrapper-root')
    .filter({ has: field(page, name) })
    .getByText(text);
/** Finds an input by its label. */
const field = (page: Page, name: string) => page.getByLabel(name, { exact: true });
/** Presses a button of the confirmation dialog. */
async function answer(page: Page, button: string): Promise<void> {
  const dialog = page.getByRole('dialog');
  await dialog.getByRole('button', { name: button }).click();
  await dialog.waitFor({ state: 'detached' });
}
const row = (page: Page, name: string) => page.getByRole('row', { name });

test('the list of accounts shows the notification status', async () => {
  const page = await signedIn(site, '/setup/customers');
  const account = row(page, 'acme');
  await account.getByText('On', { exact: true }).waitFor();
  await account.getByRole('link', { name: 'acme', exact: true }).click();
  await page.getByRole('heading', { name: 'Notifications of acme' }).waitFor();
});

describe('settings', () => {
  test('are saved, and validation errors appear at their fields', async () => {
    const page = await signedIn(site, AT);
    await field(page, 'Website').fill('http://acme.example');
    await field(page, 'Maximum age (hours)').fill('a day');
    await page.getByRole('button', { name: 'Save' }).click();
    await fieldError(page, 'Website', /must be an https URL/).waitFor();
    await fieldError(page, 'Maximum age (hours)', /must be an integer number of hours/).waitFor();
    await axe(page);
    await field(page, 'Website').fill('https://acme.example');
    await field(page, 'Maximum age (hours)').fill('48');
    await page.getByLabel('Quiet hours').uncheck();
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('Settings saved.').waitFor();
    expect(await site.api('/accounts/acme/notifications')).toMatchObject({
      ...{ maxAgeHours: 48, replyTo: 'desk@acme.example' },
      branding: { website: 'https://acme.example' },
      sms: { quietHours: null },
    });
  });

  test('that were modified meanwhile are not overwritten, and a note reports the conflict', async () => {
    const page = await signedIn(site, AT);
    await field(page, 'Reply-to address').fill('mine@acme.example');
    await put('/accounts/acme/notifications', {
      ...{ ...settings, replyTo: 'theirs@acme.example' },
      branding: { ...settings.branding, name: 'Theirs' },
    });
    await page.getByRole('button', { name: 'Save' }).click();
    await page
      .getByRole('alert')
      .getByText(/The data was modified after you opened this page/)
      .waitFor();
    expectFault(page, /answered 412/);
    await axe(page);
    await page.getByRole('button', { name: 'Load latest version' }).click();
    await page.getByText(/^Latest version loaded.*: .*reply-to address, branding/).waitFor();
    expect(await field(page, 'Reply-to address').inputValue()).toBe('mine@acme.example');
    expect(await page.getByLabel(/^Name/).inputValue()).toBe('Theirs');
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('Settings saved.').waitFor();
    expect(await site.api('/accounts/acme/notifications')).toMatchObject({
      ...{ replyTo: 'mine@acme.example', branding: { name: 'Theirs' } },
    });
  });

  test('that start or stop messages require confirmation, which names the effects', async () => {
    const page = await signedIn(site, AT);
    await page.getByLabel('Notify customers').uncheck();
    await page.getByRole('button', { name: 'Save' }).click();
    await page
      .getByRole('dialog')
      .getByText(/Waiting messages are not sent/)
      .waitFor();
    await axe(page);
    await answer(page, 'Save and stop sending');
    await page.getByText('Off', { exact: true }).waitFor();
    expect(await site.api('/accounts/acme/notifications')).toMatchObject({ enabled: false });
    await page.getByLabel('Dry run').check();
    await page.getByLabel('Notify customers').check();
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('dryRun is on, so nothing is sent.').waitFor();
    await page.getByLabel('Dry run').uncheck();
    await page.getByRole('button', { name: 'Save' }).click();
    await answer(page, 'Save and start sending');
    await page.getByText('On', { exact: true }).waitFor();
    expect(await site.api('/accounts/acme/notifications')).toMatchObject({ enabled: true, dryRun: false });
  });
});

describe('recipients', () => {
  test('are added, changed and removed; errors appear at their fields', async () => {
    const page = await signedIn(site, `${AT}/recipients`);
    await page.getByRole('link', { name: 'New recipient' }).click();
    await field(page, 'Name').fill('Ann Lee');
    // The list has the same path as the form.
    await page.getByRole('link', { name: 'Recipients', exact: true }).click();
    await page.getByRole('dialog', { name: 'Leave without saving?' }).waitFor();
    await answer(page, 'Cancel');
    expect(await field(page, 'Name').inputValue()).toBe('Ann Lee');
    await page.getByRole('button', { name: 'Add' }).click();
    // Only the API checks this.
    await fieldError(page, 'E-mail', 'It is required unless mobile is given.').waitFor();
    expectFault(page, /answered 422: POST .*\/recipients$/);
    await field(page, 'E-mail').fill('ann@');
    await field(page, 'Jobs').selectOption('orderGroup');
    await page.getByRole('button', { name: 'Add' }).click();
    await fieldError(page, 'E-mail', /must be an e-mail address such as/).waitFor();
    await fieldError(page, 'Order group', /must not be empty/).waitFor();
    // The summary has the focus. axe takes controls that the sticky header covers in part for too small.
    await page.evaluate(() => scrollTo(0, 0));
    await axe(page);
    await field(page, 'E-mail').fill('ann@customer.example');
    await field(page, 'Order group').fill('Spring <b>38</b>');
    await page.getByRole('button', { name: 'Add' }).click();
    await row(page, 'Ann Lee').getByText('order group Spring <b>38</b>').waitFor();

    await page.getByRole('link', { name: 'Ann Lee' }).click();
    await field(page, 'Jobs').selectOption('account');
    await page.getByLabel('New due date').check();
    await page.getByLabel('Paused').check();
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('Recipient saved.').waitFor();
    const { recipients } = await site.api<{ recipients: object[] }>('/accounts/acme/recipients');
    expect(recipients).toEqual([
      expect.objectContaining({
        ...{ name: 'Ann Lee', email: 'ann@customer.example', orderGroup: null, paused: true },
        kinds: ['dispatched', 'tracking', 'due_date_changed'],
      }),
    ]);

    await page.getByRole('button', { name: 'Remove' }).click();
    await page
      .getByRole('dialog')
      .getByText(/no longer notified of all jobs of acme/)
      .waitFor();
    await answer(page, 'Remove');
    await page.getByText(/No recipients yet/).waitFor();
    expect(await site.api('/accounts/acme/recipients')).toMatchObject({ recipients: [] });
  });

  test('of a file are previewed with invalid rows by line, then imported unless the user leaves, listed in a virtual table, and exported', async () => {
    const page = await signedIn(site, `${AT}/recipients`);
    await page.getByRole('link', { name: 'Import' }).click();
    // Paused, so that they receive nothing in other tests.
    const lines = ['id,name,email,paused'];
    for (let at = 1; at <= 300; at += 1) lines.push(`c-${at},"=Customer, ${at}",c${at}@customer.example,yes`);
    lines[3] = 'c-3,Customer,c3-at-customer.example,yes';
    lines[290] = 'c-290,Customer,c290@customer.example,perhaps';
    const file = { name: 'all.csv', mimeType: 'text/csv', buffer: Buffer.from(`${lines.join('\n')}\n`) };
    await page.locator('input[type=file]').setInputFiles(file);
    await page.getByRole('heading', { name: 'Preview of all.csv' }).waitFor();
    await row(page, '4 email')
      .getByText(/must be an e-mail address/)
      .waitFor();
    await row(page, '291 paused').waitFor();
    await axe(page);
    expect(await site.api('/accounts/acme/recipients')).toMatchObject({ recipients: [] });

    const held = Promise.withResolvers<void>();
    await page.route('**/recipients/import', async (route) => {
      await held.promise;
      await route.continue();
    });
    await page.getByRole('button', { name: 'Import 298 rows' }).click();
    await page.getByRole('link', { name: 'Templates', exact: true }).click();
    await page.getByText('The rest of the file is not imported.').waitFor();
    await answer(page, 'Cancel');
    held.resolve();
    await page.getByRole('heading', { name: 'Imported' }).waitFor({ timeout: 60_000 });
    await page.getByRole('link', { name: 'Show recipients' }).click();
    const table = page.getByRole('table', { name: 'Recipients' });
    await table.waitFor();
    expect(await table.getAttribute('aria-rowcount')).toBe('299');
    expect(await table.getByRole('row').count()).toBeLessThan(60);
    await page.evaluate(() => scrollTo(0, document.documentElement.scrollHeight));
    await table.getByText('c99@customer.example').waitFor();
    await page.getByLabel('Find recipients').fill('c277@');
    await expect.poll(() => table.getByRole('row').count()).toBe(2);

    const downloading = page.waitForEvent('download');
    await page.getByRole('button', { name: 'Export' }).click();
    const download = await downloading;
    expect(download.suggestedFilename()).toBe('recipients-acme.csv');
    const text = await readFile(await download.path(), 'utf8');
    expect(text.split('\n')).toHaveLength(300);
    expect(text, 'no formula').toContain(`"'=Customer, 277"`);

    // Importing the same file again changes nothing.
    await page.goto(new URL(`${AT}/recipients?form=import`, site.url).href);
    await page.locator('input[type=file]').setInputFiles({ ...file, buffer: Buffer.from(text) });
    await page.getByText('No changes to import.').waitFor();
  }, 120_000);

  test('of a file that is not UTF-8 are not imported', async () => {
    const page = await signedIn(site, `${AT}/recipients?form=import`);
    const buffer = Buffer.from('name,email\nRen\xe9,rene@customer.example\n', 'latin1');
    await page.locator('input[type=file]').setInputFiles({ name: 'old.csv', mimeType: 'text/csv', buffer });
    await page
      .getByRole('alert')
      .getByText(/must be UTF-8/)
      .waitFor();
  });
});

describe('a template', () => {
  const path = `${AT}/templates/dispatched/email/en-US`;

  test('is previewed while it is edited, saved, used for mails, and deleted', async () => {
    await site.api('/accounts/acme/recipients', { body: { name: 'Bo', email: 'bo@customer.example' } });
    const page = await signedIn(site, `${AT}/templates`);
    await page.getByRole('link', { name: 'Dispatch, E-mail, English (United States): default' }).click();
    const mail = getMailFrame(page);
    await mail.getByRole('heading', { name: 'SPRING-38' }).waitFor();

    await page.getByRole('button', { name: 'Customize: Subject' }).click();
    // The text is visible as a whole.
    const hiddenPx = field(page, 'Subject').evaluate((one) => one.scrollHeight - one.clientHeight);
    expect(await hiddenPx).toBeLessThan(3);
    await field(page, 'Subject').fill('Good news: {{ ordr }}');
    await page.getByText('It cannot be rendered: unknown variable ordr (line 1, column 15).').waitFor();
    expect(await mail.getByRole('heading', { name: 'SPRING-38' }).count(), 'last valid version').toBe(1);
    expectFault(page, /answered 422: POST .*\/preview$/);
    await field(page, 'Subject').fill('Good news: {{ order }} left us');
    await page.getByText(/Good news: SPRING-38 left us$/).waitFor();
    await mail.getByRole('heading', { name: 'Good news: SPRING-38 left us' }).waitFor();
    await page.getByRole('button', { name: 'Customize: Heading' }).click();
    await field(page, 'Heading').fill('Off it went');
    await mail.getByRole('heading', { name: 'Off it went' }).waitFor();
    const choose = (name: string, option: string) =>
      page.getByRole('radiogroup', { name }).getByText(option, { exact: true }).click();
    await choose('Colours', 'Dark');
    await choose('Width', 'Phone');
    await axe(page);
    await choose('Part', 'Text');
    await page.locator('pre').getByText('Off it went').waitFor();

    await page.getByRole('button', { name: 'Save', exact: true }).click();
    await page.getByText('Custom', { exact: true }).waitFor();
    const apiPath = '/accounts/acme/templates/dispatched/email/en-US';
    expect(await site.api(apiPath)).toMatchObject({ custom: true, template: { heading: 'Off it went' } });
    const job = site.account.createJob({ orderNumber: 'PO-7 <i>x</i>', status: 'Ready to ship' });
    type Jobs = { jobs: { jobNumber: number }[] };
    await expect
      .poll(async () => (await site.api<Jobs>('/accounts/acme/jobs')).jobs.map((one) => one.jobNumber))
      .toContain(job);
    site.account.dispatch(job);
    const { messages } = await vi.waitFor(async () => {
      const answer = await site.api<{ messages: object[] }>(`/accounts/acme/jobs/${job}/messages`);
      expect(answer).toMatchObject({ messages: [{ state: 'sent' }] });
      return answer;
    }, 90_000);
    expect(messages).toMatchObject([{ subject: 'Good news: PO-7 <i>x</i> left us' }]);
    expect(await subjects()).toContain('Good news: PO-7 <i>x</i> left us');

    await page.goto(new URL(`${AT}/messages?region=us`, site.url).href);
    const message = page
      .getByRole('row')
      .filter({ hasText: String(job) })
      .filter({ hasText: 'Bo' });
    await message.getByText('Sent', { exact: true }).waitFor();
    const jobLink = message.getByRole('link', { name: String(job), exact: true });
    expect(await jobLink.getAttribute('href')).toBe(`/jobs/acme/${job}?region=us`);
    await message.getByRole('link', { name: 'Dispatch message' }).click();
    await page.getByText('Good news: PO-7 <i>x</i> left us').waitFor();
    await axe(page);

    await page.goto(new URL(path, site.url).href);
    await page.getByRole('button', { name: 'Delete' }).click();
    await page
      .getByRole('dialog')
      .getByText(/then use the default template/)
      .waitFor();
    await answer(page, 'Delete');
    await page.getByText('Default', { exact: true }).waitFor();
    expect(await site.api(apiPath)).toMatchObject({ custom: false });
  }, 180_000);

  test('that another user has changed is not overwritten, and is loaded when the page is opened again', async () => {
    const apiPath = '/accounts/acme/templates/dispatched/email/de';
    // The first rendering can exceed its time limit.
    const body = { kind: 'dispatched', channel: 'email', locale: 'de' };
    await vi.waitFor(() => site.api('/accounts/acme/notifications/preview', { body }), 30_000);
    const page = await signedIn(site, `${AT}/templates/dispatched/email/de`);
    await page.getByRole('button', { name: 'Customize: Subject' }).click();
    await field(page, 'Subject').fill('Mine');
    await put(apiPath, { subject: 'Theirs' });
    await page.getByRole('button', { name: 'Save', exact: true }).click();
    await page.getByText('Another user has changed this template.').waitFor();
    expect(await site.api(apiPath)).toMatchObject({ template: { subject: 'Theirs' } });
    await page.getByRole('button', { name: 'Discard changes' }).click();
    await page.getByRole('link', { name: 'Templates', exact: true }).click();
    await page.getByRole('heading', { name: 'Templates of acme' }).waitFor();
    await page.goBack();
    expect(await field(page, 'Subject').inputValue()).toBe('Theirs');
    await site.api(apiPath, { method: 'DELETE' });
  });

  test('keeps text that is typed while it is saved', async () => {
    const apiPath = '/accounts/acme/templates/dispatched/email/fr';
    const page = await signedIn(site, `${AT}/templates/dispatched/email/fr`);
    const sent = Promise.withResolvers<void>();
    const typed = Promise.withResolvers<void>();
    await page.route(`**/v1${apiPath}`, async (route) => {
      if (route.request().method() === 'PUT') {
        sent.resolve();
        await typed.promise;
      }
      await route.continue();
    });
    await page.getByRole('button', { name: 'Customize: Subject' }).click();
    await field(page, 'Subject').fill('One');
    await page.getByRole('button', { name: 'Save', exact: true }).click();
    await sent.promise;
    await field(page, 'Subject').fill('One, two');
    typed.resolve();
    await page.getByText('Template saved.').waitFor();
    expect(await field(page, 'Subject').inputValue()).toBe('One, two');
    await page.getByRole('button', { name: 'Discard changes' }).click();
    expect(await field(page, 'Subject').inputValue()).toBe('One');
    await site.api(apiPath, { method: 'DELETE' });
  });

  test('is sent as a test e-mail, but not to any address', async () => {
    await put('/accounts/acme/notifications', settings);
    const page = await signedIn(site, path);
    expectFault(page, /answered 422: POST .*\/notifications\/test$/);
    await field(page, 'Send to').fill('eve@example.org');
    await page.getByRole('button', { name: 'Send test e-mail' }).click();
    await page.getByText(/^to must be the address of the signed-in user/).waitFor();
    await field(page, 'Send to').fill(settings.replyTo);
    await page.getByRole('button', { name: 'Send test e-mail' }).click();
    await page.getByText('Test e-mail sent.').waitFor();
    expect(await page.getByText(/^to must be/).count()).toBe(0);
  });

  test('has the height of its mail in the preview, also outside the window', async () => {
    const page = await signedIn(site, path, { size: 'narrow' });
    const frame = page.locator('iframe[title^="Preview"]');
    const { top, height } = await frame.evaluate((one) => one.getBoundingClientRect());
    expect(top).toBeGreaterThan(sizes.narrow.height);
    const mail = await getMailFrame(page)
      .locator(':root')
      .evaluate((root) => root.getBoundingClientRect().height);
    expect(height).toBe(Math.ceil(mail));
  });

  test('that is hostile runs no scripts in the preview, sends no requests, and does not navigate', async () => {
    const page = await signedIn(site, path);
    await page.getByRole('button', { name: 'Customize: HTML' }).click();
    await page.getByRole('textbox', { name: 'HTML' }).fill(HOSTILE);
    const mail = getMailFrame(page);
    const link = mail.getByText('press me');
    await link.waitFor();
    const frame = page.frames().find((one) => one.url().endsWith('/mail-frame.html'));
    if (!frame) throw new Error('The preview frame is missing.');
    for (const what of [link, mail.getByText('away'), mail.getByText('by script'), mail.getByText('send')]) {
      await what.click();
      await what.click({ button: 'middle' });
    }
    await mail.getByText('press me').hover();
    expect(await frame.evaluate(() => 'hurt' in window || document.title === 'hurt')).toBe(false);
    expect(await page.evaluate(() => 'hurt' in window || document.title.includes('hurt'))).toBe(false);
    expect(await frame.evaluate(() => origin)).toBe('null');
    expect(frame.url()).toMatch(/\/mail-frame\.html$/);
    expect(new URL(page.url()).pathname).toBe(path);
    expect(page.context().pages()).toHaveLength(1);
    // Harmless attributes remain.
    const left = await frame.evaluate(() =>
      [...document.querySelectorAll('body *')].flatMap((one) => [one.localName, ...one.getAttributeNames()]),
    );
    expect(new Set(left)).toEqual(
      new Set([
        'p',
        'a',
        'b',
        'img',
        'div',
        'table',
        'tbody',
        'tr',
        'td',
        'span',
        'alt',
        'id',
        'style',
        'title',
        'bgcolor',
      ]),
    );
    expect(await mail.getByText('coloured').evaluate((one) => getComputedStyle(one).color)).toBe(
      'rgb(1, 2, 3)',
    );

    // The policy of the frame blocks what the sanitizer would miss.
    await frame.evaluate(() => {
      const script = document.createElement('script');
      script.textContent = 'window.hurt = 9';
      document.body.append(script);
      const image = new Image();
      image.src = 'https://evil.example/beneath.png';
    });
    expect(await frame.evaluate(() => 'hurt' in window)).toBe(false);
    const kinds = [
      /script-src-elem forbids inline/,
      /img-src forbids https:\/\/evil/,
      /^(other origin|failed): .*beneath\.png/,
      /base-uri forbids/,
    ];
    // The browser reports content that the sanitizer removes later.
    for (const kind of [...kinds, /script-src-attr forbids inline/, /^console: .*Content Security Policy/])
      expectFault(page, kind);
  });

  test('of SMS shows segments and encoding, and the data of a chosen job as text', async () => {
    const job = site.account.createJob({ orderNumber: 'Zoë 😀 <b>9</b>', status: 'Scheduled' });
    const page = await signedIn(site, `${AT}/templates/dispatched/sms/en-US`);
    await page
      .getByText(/1 segment, \d+ characters in GSM-7/)
      .or(page.getByText(/2 segments/))
      .waitFor();
    await field(page, 'Job').fill('999');
    await page.getByText(/must be the number of a/).waitFor();
    expectFault(page, /answered 422: POST .*\/preview$/);
    await expect
      .poll(() =>
        site.api(`/accounts/acme/jobs/${job}`).then(
          () => true,
          () => false,
        ),
      )
      .toBe(true);
    await field(page, 'Job').fill(String(job));
    await page.getByText('Zoë 😀 <b>9</b>').waitFor();
    await page.getByText(/in UCS-2/).waitFor();
    await axe(page);
  });
});

test('an address is suppressed until the suppression is lifted, after a warning', async () => {
  const page = await signedIn(site, `${AT}/suppressions`);
  await field(page, 'E-mail address').fill('nobody');
  await page.getByRole('button', { name: 'Suppress', exact: true }).click();
  await fieldError(page, 'E-mail address', /must be an e-mail address/).waitFor();
  expectFault(page, /answered 422: POST .*\/suppressions$/);
  await field(page, 'E-mail address').fill('gone@customer.example');
  await page.getByRole('button', { name: 'Suppress', exact: true }).click();
  const one = row(page, 'g•••@c•••.example');
  await one.getByText('Unsubscribed').waitFor();
  await axe(page);
  type Suppressions = { suppressions: { address: string }[] };
  const kept = async () => (await site.api<Suppressions>('/accounts/acme/suppressions')).suppressions.length;
  expect(await kept()).toBe(1);
  await one.getByRole('button', { name: /Lift suppression/ }).click();
  await page
    .getByRole('dialog')
    .getByText(/without consent is illegal/)
    .waitFor();
  await axe(page);
  await answer(page, 'Lift suppression');
  await page.getByText(/No suppressed addresses/).waitFor();
  expect(await kept()).toBe(0);
  // The form is empty again, so leaving needs no confirmation.
  await page.getByRole('link', { name: 'Messages', exact: true }).click();
  await page.getByRole('heading', { name: 'Messages of acme' }).waitFor();
});

test('a key with the role read is offered no actions except the export of messages and sees masked addresses', async () => {
  await site.api('/accounts/acme/recipients', {
    body: { id: 'cy', name: 'Cy', email: 'cyril@customer.example' },
  });
  const { key } = await site.makeKey('read', ['acme']);
  const page = await signedIn(site, `${AT}/recipients?q=Cy`, { key });
  await row(page, 'Cy').getByText('c•••@c•••.example').waitFor();
  const paths = [
    '',
    '/recipients',
    '/recipients?recipient=cy',
    '/recipients?form=new',
    '/recipients?form=import',
  ];
  for (const path of [...paths, '/templates/dispatched/email/de', '/messages', '/suppressions']) {
    await page.goto(new URL(`${AT}${path}`, site.url).href);
    await page.getByRole('heading', { level: 1 }).waitFor();
    await loaded(page);
    // The file has masked addresses too.
    const buttons = path === '/messages' ? ['Export CSV'] : [];
    expect(await page.getByRole('main').getByRole('button').allTextContents(), path).toEqual(buttons);
    expect(await page.getByRole('link', { name: /New recipient|Import/ }).count(), path).toBe(0);
    expect(await page.getByRole('main').textContent(), path).not.toContain('cyril@');
    await axe(page);
  }
});

test('a channel that is not configured causes a note with instructions', async () => {
  const page = await signedIn(site, AT);
  await page.getByLabel('Send SMS').check();
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByText(/SMS is not configured:/).waitFor();
});

const getMailFrame = (page: Page): FrameLocator => page.frameLocator('iframe[title^="Preview"]');

async function subjects(): Promise<(string | null)[]> {
  const answer = await site.mailbox.fetch(new Request('http://localhost/mailbox/messages'));
  const { messages } = (await answer.json()) as { messages: { subject: string | null }[] };
  return messages.map(({ subject }) => subject);
}

/** A mail with many kinds of active content. */
const HOSTILE = `<!doctype html><html><head><title>hurt?</title>
<meta http-equiv="refresh" content="0;url=https://evil.example/refresh">
<base href="https://evil.example/" target="_top">
<link rel="stylesheet" href="https://evil.example/x.css">
<style>@import "https://evil.example/y.css"; body { background: url(https://evil.example/z.png) } .c { color: rgb(1, 2, 3) }</style>
<script>document.title = 'hurt'; window.hurt = 1</script>
<script src="https://evil.example/x.js"></script></head>
<body onload="window.hurt = 2" onfocus="window.hurt = 2" style="margin: 0">
<p onclick="window.hurt = 3" onmouseover="window.hurt = 3"><a href="https://evil.example/press" target="_top" onclick="window.hurt = 4">press me</a></p>
<p><a href="https://evil.example/away" ping="https://evil.example/ping">away</a> <a href="javascript:window.hurt = 5">by script</a></p>
<img src="https://evil.example/pixel.png" alt="Logo" onerror="window.hurt = 6"><img src="x" alt="" onerror="window.hurt = 6">
<svg onload="window.hurt = 7"><script>window.hurt = 7</script><a href="https://evil.example/svg"><text>in a drawing</text></a></svg>
<math><mtext><style><img src=x onerror="window.hurt = 8"></style></mtext></math>
<form action="https://evil.example/form" target="_top"><b>send</b><input name="x"><button>send it</button></form>
<iframe src="https://evil.example/frame"></iframe><object data="https://evil.example/object"></object><embed src="https://evil.example/embed">
<video src="https://evil.example/video" autoplay></video><template><img src=x onerror="window.hurt = 8"></template>
<table bgcolor="#ffffff" background="https://evil.example/table.png"><tr><td style="background: url('https://evil.example/cell.png')">cell</td></tr></table>
<div style="position: static" id="x" contenteditable="true"><span style="color: rgb(1, 2, 3)">coloured</span></div>
{{ unsubscribe_url }}</body></html>`;
