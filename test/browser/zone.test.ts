/** The time zone of times: chosen in the user menu, named in columns, and kept in the browser. */
import { expect, test } from 'vitest';
import { axe, layoutShift, loaded, scriptedSite, signedIn } from '../support/browser.ts';

const LONG = { timeout: 40_000 };
const site = scriptedSite({
  prepare: (world, account) => {
    account.createJob({ status: 'Booked in' });
    world.addAccount({ region: 'nz', name: 'kiwi' }).createJob({ status: 'Booked in' });
  },
});

test('times follow the chosen zone, which columns name, and which is kept after a reload', async () => {
  const page = await signedIn(site, '/accounts/acme/activity', { zone: 'America/Denver' });
  const header = page.getByRole('columnheader', { name: /^Time, / });
  await header.waitFor(LONG);
  expect(await header.textContent()).toMatch(/^Time, (GMT-[67]|M[SD]T)$/);
  const time = page.locator('tbody time').first();
  const readHour = async () => Number(/(\d+):\d\d/.exec((await time.textContent()) ?? '')?.[1]);
  const before = await readHour();
  const menu = () => page.getByRole('button', { name: 'User menu' }).click();
  await menu();
  await axe(page);
  const [own, utc, ...regions] = await page.getByRole('menuitemradio').allTextContents();
  expect(own).toMatch(/^Time zone of this device \((GMT-[67]|M[SD]T)\)$/);
  expect(utc).toBe('UTC');
  expect(regions.map((name) => name.slice(0, 'Region NZ'.length)).sort()).toEqual(['Region NZ', 'Region US']);
  await page.getByRole('menuitemradio', { name: 'UTC' }).click();
  await expect.poll(() => header.textContent()).toBe('Time, UTC');
  const at = new Date(String(await time.getAttribute('datetime')));
  // The clock of the locale has 12 or 24 hours.
  expect([at.getUTCHours(), at.getUTCHours() % 12 || 12]).toContain(await readHour());
  expect(before).not.toBe(await readHour());
  await page.reload();
  await loaded(page);
  expect(await header.textContent()).toBe('Time, UTC');
  expect(await layoutShift(page)).toBeLessThan(0.1);
  await menu();
  expect(await page.getByRole('menuitemradio', { checked: true }).textContent()).toBe('UTC');
});

test('the columns of jobs with times name the zone', async () => {
  const page = await signedIn(site, '/jobs?which=open', { zone: 'America/Denver' });
  for (const name of ['Due', 'Dispatched']) {
    const header = page.getByRole('columnheader', { name: new RegExp(`^${name}, `) });
    expect(await header.textContent()).toMatch(/^\w+, (GMT-[67]|M[SD]T)( ↑)?$/);
  }
});

test('after midnight, the times of an open list of events show their day', async () => {
  const page = await signedIn(site, '/?view=feed');
  const time = page.getByRole('list', { name: 'Events' }).locator('time').first();
  await time.waitFor(LONG);
  const month = /[A-Z][a-z]{2}/;
  expect(await time.textContent()).not.toMatch(month);
  await page.clock.setFixedTime(Date.now() + 86_400_000);
  await expect.poll(() => time.textContent()).toMatch(month);
});
